"""Estimates from a few seeds: means with standard deviations, intervals of paired differences and ratios, and their texts.

Runs with the same seed have the same initial values and the same order of examples. Cases are therefore compared by the
differences (or ratios) of the runs with the same seed. Each interval is the 95 % interval of Student's t distribution.
"""

import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval. The interval of a single pair is unbounded."""

    estimate: float
    low: float
    high: float
    pairs: int


def deviation(values):
    """Returns the standard deviation of a sample, or None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def t_probability(t, freedom):
    """Returns the probability that |T| is below T, for a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3-4)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1
    total = term if freedom > 1 else 0
    for i in range(3 if odd else 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (i - 1) / i
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def t_quantile(freedom, probability=0.95):
    """Returns the t for which t_probability(t, FREEDOM) is PROBABILITY."""
    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def mean_interval(values):
    """Returns the Interval of the mean of VALUES."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf, len(values))
    half = t_quantile(len(values) - 1) * deviation(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


def paired_difference(first, second):
    """Returns the Interval of FIRST - SECOND, both {seed: value}, or None without a common seed."""
    seeds = sorted(first.keys() & second.keys())
    return mean_interval([first[seed] - second[seed] for seed in seeds]) if seeds else None


def paired_ratio(first, second):
    """Returns the Interval of FIRST / SECOND, both {seed: positive value}, or None without a common seed.

    The estimate is the geometric mean; the interval is that of the mean logarithm.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    logarithm = mean_interval([math.log(first[seed] / second[seed]) for seed in seeds])
    bounds = (math.exp(value) if value < 700 else math.inf for value in (logarithm.estimate, logarithm.low, logarithm.high))
    return Interval(*bounds, logarithm.pairs)


def decimals(value, spread):
    """Returns the number of decimals of VALUE that are known: one digit of SPREAD, or two if it begins with 1, at most four digits in all."""
    exponent = math.floor(math.log10(spread))
    known = -exponent + (1 if round(spread / 10**exponent, 6) < 2 else 0)
    return min(known, 3 - math.floor(math.log10(abs(value)))) if value else known


def rounded(value, places):
    """Returns VALUE as text with PLACES decimals, or rounded to tens, hundreds, ... for negative PLACES."""
    return f"{round(value, places) + 0.0:.{max(places, 0)}f}".replace("-", "\N{MINUS SIGN}")


def three_digits(value):
    return rounded(value, 2 - math.floor(math.log10(abs(value)))) if value else "0"


def with_deviation(values):
    """Returns "MEAN ± STANDARD DEVIATION" with the digits that are known, or only the mean if it has no deviation in four digits."""
    mean, spread = statistics.fmean(values), deviation(values)
    if not spread or spread < 1e-4 * abs(mean):
        return three_digits(mean)
    places = decimals(mean, spread)
    return f"{rounded(mean, places)} ± {rounded(spread, places)}"


def interval_text(interval):
    """Returns "ESTIMATE (95 % interval LOW to HIGH)" with the digits that are known."""
    if not math.isfinite(interval.high - interval.low):
        return three_digits(interval.estimate)
    half = (interval.high - interval.low) / 2
    if half <= 1e-4 * abs(interval.estimate):
        return f"{three_digits(interval.estimate)} with every seed"
    places = decimals(interval.estimate, half)
    return f"{rounded(interval.estimate, places)} (95 % interval {rounded(interval.low, places)} to {rounded(interval.high, places)})"
