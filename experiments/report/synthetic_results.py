"""Writes result files with chosen numbers, for tests and for looking at the page."""

import csv
import json

RUN_COLUMNS = ("seconds", "median_step_seconds", "steps", "updates", "examples", "push_bytes", "pull_bytes", "busy", "test_accuracy",
               "test_loss", "late_pushes", "dropped_pushes", "parameters_crc")
POINT_COLUMNS = ("seconds", "step", "examples", "updates", "push_bytes", "pull_bytes", "train_loss", "test_loss", "test_accuracy")


class Results:
    """The files of an experiment, as Python values. write() writes them."""

    def __init__(self, axes, **description):
        self.description = {"name": "synthetic", "title": "A synthetic experiment", "question": "Which case is best?",
                            "target_accuracy": 0, "axes": [{"name": name, "settings": settings} for name, settings in axes.items()],
                            "figures": [], "claims": [], **description}
        self.runs = []
        self.curves = []
        self.staleness = []
        self.value_age = []
        self.efficiency = []

    def run(self, settings, seed, points, staleness=(), value_age=(), **values):
        """Adds a run. SETTINGS has one setting per axis. POINTS are (seconds, accuracy) at equal distances in examples."""
        number = len(self.runs)
        seconds, accuracy = points[-1]
        default = {"seconds": seconds, "median_step_seconds": seconds / 100, "steps": 100, "updates": 100, "examples": 12800,
                   "push_bytes": 4_000_000, "pull_bytes": 4_000_000, "busy": 0.5, "test_accuracy": accuracy, "test_loss": 1 - accuracy,
                   "late_pushes": 0, "dropped_pushes": 0, "parameters_crc": "1978420f"}
        row = {**default, **values}
        self.runs.append([number, *settings, seed, *(row[column] for column in RUN_COLUMNS)])
        for i, (at, reached) in enumerate(points):
            part = (i + 1) / len(points)
            self.curves.append([number, at, round(100 * part), round(12800 * part), round(100 * part), round(row["push_bytes"] * part),
                                round(row["pull_bytes"] * part), 1.1 - reached, 1 - reached, reached])
        self.staleness += [[number, value, count] for value, count in dict(staleness).items()]
        self.value_age += [[number, value, count] for value, count in dict(value_age).items()]
        return number

    def write(self, folder):
        axes = [axis["name"] for axis in self.description["axes"]]
        (folder / "experiment.json").write_text(json.dumps(self.description), encoding="utf-8")
        _write(folder / "runs.csv", ("run", *axes, "seed", *RUN_COLUMNS), self.runs)
        _write(folder / "curves.csv", ("run", *POINT_COLUMNS), self.curves)
        _write(folder / "staleness.csv", ("run", "staleness", "pushes"), self.staleness)
        _write(folder / "value_age.csv", ("run", "age", "values"), self.value_age)
        if self.efficiency:
            _write(folder / "efficiency.csv", ("network", "workers", "method", "source", "efficiency", "step_seconds"), self.efficiency)


def _write(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
