"""Compares the claims of an experiment with its runs."""

import dataclasses
import math

import estimates
import measures

SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A better and a worse case of a claim: their figures and the verdict."""

    better: str  # the name of the case
    worse: str
    better_text: str  # the values of the case
    worse_text: str
    effect: str  # the difference or the ratio, with its interval
    verdict: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Judgement:
    claim: object
    measure: object
    expected: str  # the expected ratio as text, or empty
    comparisons: list
    verdict: str
    reason: str


def judge(claim, experiment):
    """Returns the Judgement of CLAIM. Each comparison must be supported for the claim to be supported; one that is not refutes it."""
    measure = measures.of_claim(claim, experiment)
    comparisons = _comparisons(claim, measure, experiment)
    verdicts = [comparison.verdict for comparison in comparisons]
    if not comparisons:
        verdict, reason = UNDECIDED, "The experiment has no runs of both cases."
    else:
        verdict = next((kind for kind in (NOT_SUPPORTED, UNDECIDED) if kind in verdicts), SUPPORTED)
        counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in (SUPPORTED, NOT_SUPPORTED, UNDECIDED) if kind in verdicts)
        reason = comparisons[0].reason if len(comparisons) == 1 else f"{len(comparisons)} comparisons: {counts}."
    return Judgement(claim, measure, _expected(claim), comparisons, verdict, reason)


def _comparisons(claim, measure, experiment):
    """Compares all pairs of a better and a worse case with equal settings of the axes that the claim does not name."""
    named = {experiment.setting(text)[0] for text in claim.better + claim.worse}
    free = [axis for axis in experiment.axes if axis not in named]
    pairs = [(better, worse) for better in experiment.select(claim.better) for worse in experiment.select(claim.worse)
             if better is not worse and all(better.settings[axis] == worse.settings[axis] for axis in free)]
    axes = measures.varying_axes([case for pair in pairs for case in pair])
    return [_compare(claim, measure, better, worse, axes) for better, worse in pairs]


def _expected(claim):
    if claim.expected_ratio is None:
        return ""
    low, high = (estimates.three_digits(claim.expected_ratio * (1 + sign * claim.within)) for sign in (-1, 1))
    return f"{claim.expected_ratio:g} within {100 * claim.within:g} % ({low} to {high})"


def _compare(claim, measure, better, worse, axes):
    if claim.measure in ("accuracy", "loss", "busy"):
        return _compare_parts(claim, measure, better, worse, axes)
    values = [case.values(measure.of) for case in (better, worse)]
    texts = [_reached_text(measure, case, found) for case, found in zip((better, worse), values)]
    names = [measures.label(case, axes) for case in (better, worse)]
    # A run that did not reach the target counts with its whole time, so the ratio is a bound.
    limits = [case.values(lambda run: run.seconds) for case in (better, worse)]
    bounded = [len(found) < len(case.runs) for case, found in zip((better, worse), values)]
    counted = [limit | found if bound else found for limit, found, bound in zip(limits, values, bounded)]
    ratio = estimates.paired_ratio(counted[1], counted[0]) if all(value > 0 for found in counted for value in found.values()) else None
    if ratio is None:
        return Comparison(*names, *texts, "\N{EN DASH}", UNDECIDED, "There are no two runs with the same seed and a value above 0.")
    effect = f"ratio {estimates.interval_text(ratio)}"
    if any(bounded):
        ratio = dataclasses.replace(ratio, low=0 if bounded[0] else ratio.low, high=math.inf if bounded[1] else ratio.high)
        effect = "no ratio: both cases have runs that did not reach the target" if all(bounded) else \
            f"ratio {'below' if bounded[0] else 'above'} {estimates.three_digits(ratio.estimate)}"
    verdict, reason = _judge_ratio(claim, ratio)
    return Comparison(*names, *texts, effect, verdict, reason)


def _compare_parts(claim, measure, better, worse, axes):
    names = [measures.label(case, axes) for case in (better, worse)]
    values = [case.values(measure.of) for case in (better, worse)]
    texts = [measure.text(list(found.values())) for found in values]
    difference = measures.lead(measure, better, worse)
    if difference is None:
        return Comparison(*names, *texts, "\N{EN DASH}", UNDECIDED, "There are no two runs with the same seed.")
    # The better case may be worse by some standard deviations of the worse case's seeds.
    limit = -claim.deviations * (estimates.deviation(values[1].values()) or 0)
    verdict, reason = _judge_sign(difference, limit, measure.distance_text(limit) if limit else "0")
    return Comparison(*names, *texts, f"difference {measure.difference_text(difference)}", verdict, reason)


def _reached_text(measure, case, found):
    if not found:
        return "not reached"
    text = measure.text(list(found.values()))
    missing = len(case.runs) - len(found)
    return f"{text}, not reached by {missing} of {len(case.runs)} seeds" if missing else text


def _judge_sign(interval, neutral, text):
    """Judges the claim that the estimated value is above NEUTRAL, which the reason shows as TEXT."""
    seeds = measures.seeds_text(interval.pairs)
    if interval.pairs == 1:
        return UNDECIDED, "One seed does not show the spread."
    if interval.low > neutral:
        return SUPPORTED, f"The interval of {seeds} lies above {text}."
    if interval.high < neutral:
        return NOT_SUPPORTED, f"The interval of {seeds} lies below {text}."
    return UNDECIDED, f"Not distinguishable with {seeds}: the interval contains {text}."


def _judge_ratio(claim, ratio):
    if claim.expected_ratio is None:
        return _judge_sign(ratio, 1, "1")
    low, high = claim.expected_ratio * (1 - claim.within), claim.expected_ratio * (1 + claim.within)
    if ratio.pairs == 1:
        return UNDECIDED, "One seed does not show the spread."
    if low <= ratio.low and ratio.high <= high:
        return SUPPORTED, "The interval lies within the expected range."
    if ratio.high < low or ratio.low > high:
        return NOT_SUPPORTED, "The interval lies outside the expected range."
    return UNDECIDED, "The interval lies partly outside the expected range."
