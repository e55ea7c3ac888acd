"""States in sentences what a figure shows and how sure it is."""

import math
import statistics

import estimates
import measures


def ranking(cases, measure):
    """Returns sentences that compare CASES with the best of them."""
    values = [case.values(measure.of) for case in cases]
    axes = measures.varying_axes(cases)
    names = [measures.label(case, axes) for case in cases]
    order = sorted((i for i, found in enumerate(values) if found), key=lambda i: statistics.fmean(values[i].values()),
                   reverse=measure.higher_is_better)
    missing = [names[i] for i, found in enumerate(values) if not found]
    if not order:
        return [f"No case has a {measure.name}."]
    best = order[0]
    seeds = len(cases[best].runs)
    text = measure.text(list(values[best].values()))
    if len(cases) == 1:
        return [f"With {measures.seeds_text(seeds)}, the {measure.name} is {text}."]
    sentences = [f"With {measures.seeds_text(seeds)}, {names[best]} has {measure.best}: {text}."]
    if seeds == 1:
        sentences.append("One seed does not show the spread, so the differences are not tested.")
        return sentences + _missing(missing, measure)
    equal, worse = [], []
    for i in order[1:]:
        difference = measures.lead(measure, cases[best], cases[i])
        shown = measure.text(list(values[i].values()))
        if difference is None or difference.low <= 0:
            equal.append(f"{names[i]} ({shown})")
        else:
            worse.append((f"{names[i]} ({shown})", difference))
    if equal:
        sentences.append(f"Not distinguishable from it with {measures.seeds_text(seeds)}: {measures.listing(equal)}.")
    if worse:
        word = "lower" if measure.higher_is_better else "longer" if measure.scales is measures.SECONDS else "higher"
        name, difference = worse[0]
        sentences.append(f"{name} is {word} by {measure.difference_text(difference)}.")
        if len(worse) > 1:
            sentences.append(f"Also {word}: {measures.listing([name for name, _ in worse[1:]])}.")
    return sentences + _missing(missing, measure)


def _missing(names, measure):
    if not names:
        return []
    if measure.name.startswith("time to"):
        return [f"Not reached by {measures.listing(names)}."]
    return [f"No finite {measure.name}: {measures.listing(names)}."]


def time_to_target(cases, measure):
    sentences = ranking(cases, measure)
    axes = measures.varying_axes(cases)
    partly = [f"{measures.label(case, axes)} ({len(case.values(measure.of))} of {len(case.runs)} seeds)" for case in cases
              if 0 < len(case.values(measure.of)) < len(case.runs)]
    if partly:
        sentences.append(f"Reached by some seeds only, whose mean is shown: {measures.listing(partly)}.")
    return sentences


def frontier(cases, quality):
    """QUALITY: "accuracy" or "loss"."""
    measure, size = measures.QUANTITIES[quality], measures.QUANTITIES["bytes"]
    axes = measures.varying_axes(cases)
    better, worse = ("higher", "lower") if measure.higher_is_better else ("lower", "higher")

    def named(case):
        return f"{measures.label(case, axes)} ({size.text([_mean(case, 'bytes')])}, {measure.text(list(case.values(measure.of).values()))})"

    best = (max if measure.higher_is_better else min)(cases, key=lambda case: _mean(case, quality))
    seeds = measures.seeds_text(len(best.runs))
    sentences = [f"With {seeds}, {named(best)} has {measure.best}."]
    differences = [(case, measures.lead(measure, best, case)) for case in cases if case is not best]
    equal = [case for case, difference in differences if difference is not None and difference.low <= 0]
    if len(best.runs) == 1:
        sentences.append("One seed does not show the spread, so the differences are not tested.")
    elif equal:
        sentences.append(f"{len(equal)} of the other {len(differences)} cases are not distinguishable from it with {seeds}; the one with the "
                         f"fewest bytes is {named(min(equal, key=lambda case: _mean(case, 'bytes')))}.")
    elif differences:
        sentences.append(f"All other cases are distinguishably {worse}.")
    left = sorted((case for case in cases if case not in dominated(cases, quality)), key=lambda case: _mean(case, "bytes"))
    names = measures.listing([named(case) for case in left], 12)
    sentences.append(f"By the means, no other case has both fewer bytes and a {better} {quality} than {names}.")
    return sentences + _effect_of_groups(cases, quality)


def dominated(cases, quality):
    """Returns the cases for which another case has at most their mean bytes and on average at least their QUALITY."""
    sign = 1 if measures.QUANTITIES[quality].higher_is_better else -1
    points = [(_mean(case, "bytes"), sign * _mean(case, quality)) for case in cases]
    return [case for case, (size, value) in zip(cases, points)
            if any(s <= size and v >= value and (s, v) != (size, value) for s, v in points)]


def _mean(case, quantity):
    return statistics.fmean(run.quantity(quantity) for run in case.runs.values())


def group_axis(cases):
    """Returns the axis that a frontier shows by colour: of two or more varying axes, the one with the fewest settings, at most three."""
    axes = measures.varying_axes(cases)
    if len(axes) < 2:
        return None
    counts = {axis: len({case.settings[axis] for case in cases}) for axis in axes}
    smallest = min(reversed(axes), key=counts.get)
    return smallest if counts[smallest] <= 3 else None


def _effect_of_groups(cases, quality):
    """Compares the two settings of the group axis for each combination of the other settings."""
    axis = group_axis(cases)
    settings = list(dict.fromkeys(case.settings[axis] for case in cases)) if axis else []
    if len(settings) != 2:
        return []
    measure = measures.QUANTITIES[quality]
    axes = [other for other in measures.varying_axes(cases) if other != axis]
    groups = {}
    for case in cases:
        groups.setdefault(measures.label(case, axes), {})[case.settings[axis]] = case
    higher, lower, equal = [], [], []
    for name, pair in groups.items():
        if len(pair) < 2:
            continue
        difference = estimates.paired_difference(*(pair[setting].values(measure.of) for setting in settings))
        if difference is None or not math.isfinite(difference.low) or difference.low <= 0 <= difference.high:
            equal.append(name)
        else:
            (higher if difference.low > 0 else lower).append(f"{name} (by {measure.distance_text(abs(difference.estimate))})")
    sentences = []
    if higher:
        sentences.append(f"The {quality} with {settings[0]} is higher than with {settings[1]} for {measures.listing(higher, 30)}.")
    if lower:
        sentences.append(f"The {quality} with {settings[0]} is lower than with {settings[1]} for {measures.listing(lower, 30)}.")
    if equal:
        sentences.append(f"The two are not distinguishable for {measures.listing(equal, 30)}.")
    return sentences


def histogram(cases, of, noun):
    """Describes a histogram: OF(run) returns {value: count}; NOUN names the values."""
    axes = measures.varying_axes(cases)
    parts, empty = [], []
    for case in cases:
        means = [_weighted_mean(of(run)) for run in case.runs.values() if of(run)]
        if not means:
            empty.append(measures.label(case, axes))
            continue
        largest = max(max(of(run)) for run in case.runs.values() if of(run))
        parts.append(f"{measures.label(case, axes)} {estimates.with_deviation(means)} (largest {largest})")
    if not parts:
        return [f"No run has a {noun}."]
    sentences = [f"The mean {noun}, with its standard deviation over the seeds, is {measures.listing(parts, 12)}."]
    if empty:
        sentences.append(f"Without a {noun}: {measures.listing(empty, 12)}.")
    return sentences


def _weighted_mean(histogram_of_run):
    return sum(value * count for value, count in histogram_of_run.items()) / sum(histogram_of_run.values())


def curves(cases, figure):
    measure = measures.QUANTITIES[figure.y]
    sentences = ranking(cases, measure)
    if figure.x in ("seconds", "bytes"):
        x = measures.QUANTITIES[figure.x]
        means = {measures.label(case, measures.varying_axes(cases)): _mean(case, figure.x) for case in cases}
        few, many = min(means, key=means.get), max(means, key=means.get)
        if means[many] > 1.02 * means[few]:
            verb = "lasts" if figure.x == "seconds" else "takes"
            sentences.append(f"A run {verb} {x.text([means[few]])} with {few} and {x.text([means[many]])} with {many}.")
    return sentences

