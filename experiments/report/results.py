"""The results of an experiment: the files that the laboratory writes (docs/experiments.md), read and checked."""

import csv
import dataclasses
import json
import math

KINDS = ("curves", "time_to_accuracy", "staleness", "value_age", "frontier", "table", "scan")
QUANTITIES = ("accuracy", "loss", "seconds", "steps", "bytes", "examples", "busy")
MEASURES = ("accuracy", "seconds_to_target", "median_step", "bytes", "loss", "busy")
# Runs with the same density may differ by this part in the values that they send.
MOST_DIFFERENT = 0.02


class ResultError(Exception):
    """A result file is missing or wrong. The message has the form `PLACE: PROBLEM (expected X, got Y)`."""


@dataclasses.dataclass(frozen=True)
class Point:
    """A test during a run."""

    seconds: float
    step: int
    examples: int
    bytes: int
    train_loss: float
    loss: float
    accuracy: float

    def quantity(self, name):
        return getattr(self, "step" if name == "steps" else name)


@dataclasses.dataclass
class Run:
    """One case with one seed."""

    number: int
    seed: int
    seconds: float
    median_step_seconds: float
    steps: int
    updates: int
    examples: int
    push_bytes: int
    pull_bytes: int
    busy: float
    accuracy: float
    loss: float
    late_pushes: int
    dropped_pushes: int
    parameters_crc: str
    density: float  # of sparse pushes, after the warm-up; not a number: others
    sent_values: float  # of a worker's gradient, in its last step; not a number: not counted
    model_values: float  # of the whole model
    curve: list = dataclasses.field(default_factory=list)
    staleness: dict = dataclasses.field(default_factory=dict)
    value_age: dict = dataclasses.field(default_factory=dict)
    decisions: list = dataclasses.field(default_factory=list)

    @property
    def bytes(self):
        return self.push_bytes + self.pull_bytes

    def quantity(self, name):
        return getattr(self, name)

    def seconds_to(self, target, quality="accuracy"):
        """Returns the time at which the accuracy rises to TARGET, or the loss (QUALITY: loss) falls to it; None if it never does.

        It is interpolated linearly between the last test before TARGET and the first test that reaches it.
        """
        before = None
        for point in self.curve:
            value = point.quantity(quality)
            if value >= target if quality == "accuracy" else value <= target:
                if before is None:
                    return point.seconds
                part = (target - before.quantity(quality)) / (value - before.quantity(quality))
                return before.seconds + part * (point.seconds - before.seconds)
            before = point
        return None


@dataclasses.dataclass
class Case:
    """One combination of settings, {axis: setting}, with its runs, {seed: Run}."""

    settings: dict
    runs: dict = dataclasses.field(default_factory=dict)

    def values(self, of):
        """Returns {seed: OF(run)} without the runs for which OF returns None or a number that is not finite."""
        found = {seed: of(run) for seed, run in self.runs.items()}
        return {seed: value for seed, value in found.items() if value is not None and math.isfinite(value)}


@dataclasses.dataclass(frozen=True)
class Figure:
    """The message Figure of proto/experiment.proto."""

    kind: str = "curves"
    title: str = ""
    x: str = "seconds"
    y: str = ""  # the quality
    panels: str = ""
    x_axis: str = ""
    only: tuple = ()


@dataclasses.dataclass(frozen=True)
class Claim:
    """The message Claim of proto/experiment.proto."""

    text: str = ""
    better: tuple = ()
    worse: tuple = ()
    measure: str = ""  # the quality
    expected_ratio: float = None
    within: float = 0.1
    deviations: float = 0


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate of a decision of adaptive precision. The predictions of a removed candidate are not a number."""

    step: int
    next_step: int
    seconds: float
    accuracy: float  # at the step of the decision
    candidate: str
    predicted_accuracy: float  # at next_step
    deviation: float
    gain_per_second: float
    gain_deviation: float
    seconds_per_step: float
    encoding_error: float  # not a number: not measured
    chosen: int
    layers: str  # whose candidate was chosen


@dataclasses.dataclass(frozen=True)
class EfficiencyRow:
    network: str
    workers: int
    method: str
    source: str
    efficiency: float
    step_seconds: float


@dataclasses.dataclass
class Experiment:
    name: str
    title: str
    question: str
    quality: str  # what the tests measure: accuracy, or loss if there is none
    target: float  # the quality whose time is compared; 0: none
    axes: dict  # {axis: [setting]}
    figures: list
    claims: list
    cases: list
    efficiency: list

    def select(self, only):
        """Returns the cases that have all settings of ONLY, texts "AXIS=SETTING". Settings without runs select no case."""
        wanted = [self.setting(text) for text in only]
        return [case for case in self.cases if all(case.settings[axis] == setting for axis, setting in wanted)]

    def setting(self, text):
        """Returns the axis and the setting that a text "AXIS=SETTING" names."""
        axis, separator, setting = text.partition("=")
        if not separator or axis not in self.axes:
            raise ResultError(f"experiment.json: {text!r}: unknown axis (expected AXIS=SETTING with an axis of "
                              f"{', '.join(self.axes) or 'none'}, got {axis!r})")
        return axis, setting


def read_experiment(folder):
    """Reads the result files in FOLDER, a pathlib.Path. Raises ResultError."""
    description = _read_json(folder / "experiment.json")
    axes = {axis["name"]: list(axis["settings"]) for axis in description["axes"]}
    quality = description.get("quality", "accuracy")
    experiment = Experiment(description["name"], description.get("title") or description["name"], description.get("question", ""),
                            quality, float(description.get(f"target_{quality}", 0)), axes,
                            [_message(Figure, {"y": quality, **figure}) for figure in description["figures"]],
                            [_message(Claim, {"measure": quality, **claim}) for claim in description["claims"]], [], [])
    _check(experiment)
    runs = _read_runs(folder / "runs.csv", experiment)
    _read_curves(folder / "curves.csv", runs)
    _read_counts(folder / "staleness.csv", runs, "staleness", "pushes")
    _read_counts(folder / "value_age.csv", runs, "age", "values")
    if (folder / "decisions.csv").exists():
        _read_decisions(folder / "decisions.csv", runs)
    if (folder / "efficiency.csv").exists():
        columns = {"network": str, "workers": int, "method": str, "source": str, "efficiency": float, "step_seconds": float}
        experiment.efficiency = [EfficiencyRow(**row) for row in _read_table(folder / "efficiency.csv", columns)]
    _check_sent_values(folder / "runs.csv", experiment)
    if not runs and not experiment.efficiency:
        raise ResultError(f"{folder / 'runs.csv'}: no runs (expected at least one, got only the header)")
    return experiment


def _read_json(path):
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path}: not JSON: {error}") from error
    for key in ("name", "axes", "figures", "claims"):
        if not isinstance(description, dict) or key not in description:
            raise ResultError(f"{path}: missing key (expected {key!r}, got none)")
    return description


def _message(kind, fields):
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(fields) - known)
    if unknown:
        raise ResultError(f"experiment.json: unknown field of a {kind.__name__.lower()} "
                          f"(expected {', '.join(sorted(known))}, got {unknown[0]!r})")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def _check(experiment):
    _require(experiment.quality in ("accuracy", "loss"), "quality", ("accuracy", "loss"), experiment.quality)
    for figure in experiment.figures:
        for value, known in ((figure.kind, KINDS), (figure.x, QUANTITIES), (figure.y, QUANTITIES)):
            _require(value in known, f"figure {figure.title!r}", known, value)
        for axis in (figure.panels, figure.x_axis):
            _require(not axis or axis in experiment.axes, f"figure {figure.title!r}: axis", experiment.axes, axis)
        _require(figure.kind != "scan" or figure.x_axis, f"figure {figure.title!r}: x_axis", experiment.axes, figure.x_axis)
        experiment.select(figure.only)
    for claim in experiment.claims:
        _require(claim.measure in MEASURES, f"claim {claim.text!r}: measure", MEASURES, claim.measure)
        _require(claim.better and claim.worse, f"claim {claim.text!r}: better and worse", ["AXIS=SETTING in both"], "none")
        experiment.select(claim.better + claim.worse)
    uses_target = [figure.kind == "time_to_accuracy" for figure in experiment.figures]
    uses_target += [claim.measure == "seconds_to_target" for claim in experiment.claims]
    _require(experiment.target > 0 or not any(uses_target), f"target_{experiment.quality}", ["a number above 0"], "none")


def _check_sent_values(path, experiment):
    """Checks that a density means the same in all cases with equally large models that a figure or a claim compares."""
    compared = [(f"figure {figure.title!r}", experiment.select(figure.only)) for figure in experiment.figures]
    compared += [(f"claim {claim.text!r}", experiment.select(claim.better) + experiment.select(claim.worse)) for claim in experiment.claims]
    for place, cases in compared:
        first = {}
        for run in (run for case in cases for run in case.runs.values()):
            if math.isnan(run.density) or math.isnan(run.sent_values):
                continue
            expected = first.setdefault((run.density, run.model_values), run)
            if abs(run.sent_values - expected.sent_values) > MOST_DIFFERENT * expected.sent_values:
                raise ResultError(f"{path}: {place}: run {run.number}: another number of sent values with density {run.density:g} "
                                  f"(expected {expected.sent_values:g} within {100 * MOST_DIFFERENT:g} %, as in run {expected.number}, "
                                  f"got {run.sent_values:g})")


def _require(holds, place, expected, got):
    if not holds:
        raise ResultError(f"experiment.json: {place}: wrong value (expected {' or '.join(expected)}, got {got!r})")


def _read_table(path, columns):
    """Returns the rows of a CSV file as dictionaries. COLUMNS, {name: type}, are exactly the columns of the file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    header = rows[0] if rows else []
    for name in header:
        if name not in columns:
            raise ResultError(f"{path}: unknown column (expected {', '.join(columns)}, got {name!r})")
    for name in columns:
        if header.count(name) != 1:
            raise ResultError(f"{path}: column {name}: expected once, got {header.count(name)} times")
    return [_parse_row(f"{path}:{number}", header, row, columns) for number, row in enumerate(rows[1:], 2)]


def _parse_row(place, header, row, columns):
    if len(row) != len(header):
        raise ResultError(f"{place}: wrong number of cells (expected {len(header)}, got {len(row)})")
    values = {}
    for name, text in zip(header, row):
        try:
            values[name] = columns[name](text)
        except ValueError as error:
            raise ResultError(f"{place}: column {name}: not a number (expected {columns[name].__name__}, got {text!r})") from error
    return values


def _read_runs(path, experiment):
    """Adds the cases to EXPERIMENT and returns {number: Run}."""
    columns = {"run": int, **{axis: str for axis in experiment.axes}, "seed": int, "seconds": float, "median_step_seconds": float,
               "steps": int, "updates": int, "examples": int, "push_bytes": int, "pull_bytes": int, "busy": float,
               "test_accuracy": float, "test_loss": float, "late_pushes": int, "dropped_pushes": int, "parameters_crc": str,
               "density": float, "sent_values": float, "model_values": float}
    runs = {}
    cases = {}
    for row in _read_table(path, columns):
        number = row.pop("run")
        settings = {axis: row.pop(axis) for axis in experiment.axes}
        for axis, setting in settings.items():
            if setting not in experiment.axes[axis]:
                raise ResultError(f"{path}: run {number}: axis {axis}: unknown setting "
                                  f"(expected {', '.join(experiment.axes[axis])}, got {setting!r})")
        run = Run(number, accuracy=row.pop("test_accuracy"), loss=row.pop("test_loss"), **row)
        case = cases.setdefault(tuple(settings.values()), Case(settings))
        if number in runs or run.seed in case.runs:
            raise ResultError(f"{path}: run {number}: repeated (expected each run and each seed of a case once, got seed {run.seed} again)")
        runs[number] = case.runs[run.seed] = run
    experiment.cases = list(cases.values())
    return runs


def _run_of(path, runs, row):
    if row["run"] not in runs:
        raise ResultError(f"{path}: unknown run (expected a run of runs.csv, got {row['run']})")
    return runs[row["run"]]


def _read_curves(path, runs):
    columns = {"run": int, "seconds": float, "step": int, "examples": int, "updates": int, "push_bytes": int, "pull_bytes": int,
               "train_loss": float, "test_loss": float, "test_accuracy": float, "noise_scale": str}
    for row in _read_table(path, columns):
        _run_of(path, runs, row).curve.append(Point(row["seconds"], row["step"], row["examples"], row["push_bytes"] + row["pull_bytes"],
                                                    row["train_loss"], row["test_loss"], row["test_accuracy"]))
    for run in runs.values():
        if not run.curve:
            raise ResultError(f"{path}: run {run.number}: no points (expected at least one, got none)")


def _read_counts(path, runs, key, count):
    """Reads a histogram: COUNT pushes or values by KEY."""
    for row in _read_table(path, {"run": int, key: int, count: int}):
        run = _run_of(path, runs, row)
        (run.staleness if key == "staleness" else run.value_age)[row[key]] = row[count]


def _read_decisions(path, runs):
    columns = {"run": int, **{field.name: field.type for field in dataclasses.fields(Candidate)}}
    for row in _read_table(path, columns):
        _run_of(path, runs, row).decisions.append(Candidate(**{name: value for name, value in row.items() if name != "run"}))
