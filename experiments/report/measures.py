"""The measures by which cases are compared: their values, their units, and the names of cases."""

import dataclasses
import statistics

import estimates

SEPARATOR = " / "  # between the settings in the name of a case


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number of a run. SCALES are (factor, unit) with descending factors; a text uses the first one that is not above the value."""

    name: str
    of: object  # a function of a Run; returns None if the run has no value
    higher_is_better: bool
    scales: tuple
    best: str  # "the highest final test accuracy"

    def scale(self, value):
        """Returns (factor, unit) for texts about VALUE."""
        return next((scale for scale in self.scales if abs(value) >= scale[0]), self.scales[-1])

    def text(self, values):
        """Returns the mean and the standard deviation of VALUES, a list, with a unit; a dash for an empty list."""
        if not values:
            return "\N{EN DASH}"
        factor, unit = self.scale(statistics.fmean(values))
        text = estimates.with_deviation([value / factor for value in values])
        return f"{text} {unit}".rstrip()

    def distance_text(self, value):
        """Returns VALUE, a difference of two values, with a unit."""
        factor, unit = self.scale(value)
        return f"{estimates.three_digits(value / factor)} {'points' if unit == '%' else unit}".rstrip()

    def difference_text(self, interval):
        """Returns an Interval of differences as a text with a unit."""
        factor, unit = self.scale(interval.estimate)
        scaled = dataclasses.replace(interval, estimate=interval.estimate / factor, low=interval.low / factor, high=interval.high / factor)
        text, rest = (estimates.interval_text(scaled).split(" ", 1) + [""])[:2]
        return f"{text} {'points' if unit == '%' else unit} {rest}".replace("  ", " ").rstrip()


PERCENT = ((0.01, "%"),)
SECONDS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))
COUNT = ((1, ""),)

QUANTITIES = {
    "accuracy": Measure("test accuracy", lambda run: run.accuracy, True, PERCENT, "the highest final test accuracy"),
    "loss": Measure("test loss", lambda run: run.loss, False, COUNT, "the lowest final test loss"),
    "seconds": Measure("virtual time", lambda run: run.seconds, False, SECONDS, "the shortest virtual time"),
    "steps": Measure("steps", lambda run: run.steps, False, COUNT, "the fewest steps"),
    "bytes": Measure("bytes sent and received", lambda run: run.bytes, False, BYTES, "the fewest bytes"),
    "busy": Measure("time spent computing", lambda run: run.busy, True, PERCENT, "the largest part of the time spent computing"),
    "examples": Measure("examples", lambda run: run.examples, False, COUNT, "the fewest examples"),
}
MEDIAN_STEP = Measure("median step", lambda run: run.median_step_seconds, False, SECONDS, "the shortest median step")


def quality(experiment):
    """Returns the Measure of what the tests of EXPERIMENT measure."""
    return QUANTITIES[experiment.quality]


def time_to_target(experiment):
    """Returns the Measure of the time to the target of EXPERIMENT."""
    return time_to(experiment.target, experiment.quality)


def time_to(target, quality_name="accuracy"):
    """Returns the Measure of the time to the accuracy or the loss TARGET."""
    if quality_name == "loss":
        return Measure(f"time to loss {target:g}", lambda run: run.seconds_to(target, "loss"), False, SECONDS, f"the shortest time to {target:g}")
    percent = estimates.three_digits(100 * target).rstrip("0").rstrip(".") if target < 1 else "100"
    return Measure(f"time to {percent} % accuracy", lambda run: run.seconds_to(target), False, SECONDS, f"the shortest time to {percent} %")


def of_claim(claim, experiment):
    """Returns the Measure of CLAIM, by its name in proto/experiment.proto."""
    name = claim.measure
    if name == "seconds_to_target":
        return time_to_target(experiment)
    return MEDIAN_STEP if name == "median_step" else QUANTITIES[name]


def lead(measure, better, worse):
    """Returns the Interval of the paired differences by which the case BETTER is better than WORSE; None without a common seed."""
    pair = (better.values(measure.of), worse.values(measure.of))
    return estimates.paired_difference(*(pair if measure.higher_is_better else pair[::-1]))


def varying_axes(cases):
    """Returns the axes in which CASES differ."""
    return [axis for axis in cases[0].settings if len({case.settings[axis] for case in cases}) > 1] if cases else []


def label(case, axes):
    """Returns the name of CASE among cases that differ in AXES."""
    return SEPARATOR.join(case.settings[axis] for axis in axes or case.settings) or "the only case"


def listing(texts, limit=8):
    """Returns "A, B and C". Texts beyond LIMIT are counted instead."""
    if len(texts) > limit:
        texts = texts[:limit] + [f"{len(texts) - limit} more"]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]


def seeds_text(count):
    return "one seed" if count == 1 else f"{count} seeds"
