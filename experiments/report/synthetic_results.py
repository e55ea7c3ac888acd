"""Writes result files with chosen numbers, for tests and for looking at the page.

    synthetic_results.py DIR    writes results with every kind of figure to DIR
"""

import csv
import dataclasses
import json
import pathlib
import sys

import results

RUN_COLUMNS = ("seconds", "median_step_seconds", "steps", "updates", "examples", "push_bytes", "pull_bytes", "busy", "test_accuracy",
               "test_loss", "late_pushes", "dropped_pushes", "parameters_crc", "density", "sent_values", "model_values")
POINT_COLUMNS = ("seconds", "step", "examples", "updates", "push_bytes", "pull_bytes", "train_loss", "test_loss", "test_accuracy",
                 "noise_scale")


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
        self.decisions = []
        self.efficiency = []

    def run(self, settings, seed, points, staleness=(), value_age=(), **values):
        """Adds a run. SETTINGS has one setting per axis. POINTS are (seconds, accuracy) at equal distances in examples."""
        number = len(self.runs)
        seconds, accuracy = points[-1]
        default = {"seconds": seconds, "median_step_seconds": seconds / 100, "steps": 100, "updates": 100, "examples": 12800,
                   "push_bytes": 4_000_000, "pull_bytes": 4_000_000, "busy": 0.5, "test_accuracy": accuracy, "test_loss": 1 - accuracy,
                   "late_pushes": 0, "dropped_pushes": 0, "parameters_crc": "1978420f", "density": "nan", "sent_values": "nan", "model_values": 215370}
        row = {**default, **values}
        self.runs.append([number, *settings, seed, *(row[column] for column in RUN_COLUMNS)])
        for i, (at, reached) in enumerate(points):
            part = (i + 1) / len(points)
            self.curves.append([number, at, round(100 * part), round(12800 * part), round(100 * part), round(row["push_bytes"] * part),
                                round(row["pull_bytes"] * part), 1.1 - reached, 1 - reached, reached, ""])
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
        _write(folder / "decisions.csv", ("run", *(field.name for field in dataclasses.fields(results.Candidate))), self.decisions)
        if self.efficiency:
            _write(folder / "efficiency.csv", ("network", "workers", "method", "source", "efficiency", "step_seconds"), self.efficiency)


def _write(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def every_figure():
    """Results with every kind of figure, every verdict and an efficiency table."""
    files = Results(
        {"mode": ["sync", "a<b", "late & slow"], "times": ["constant", "exponential"]}, title="Every kind <of> figure", target_accuracy=0.8,
        figures=[{"kind": kind, "x_axis": "times" if kind == "scan" else "", "title": f"The {kind}"} for kind in results.KINDS]
        + [{"panels": "times", "x": "bytes", "y": "loss"}, {"kind": "frontier", "panels": "times"}, {"kind": "scan", "x_axis": "mode", "y": "seconds"},
           {"kind": "curves", "only": ["mode=sync", "times=constant"], "x": "steps"}, {"only": ["times=never"]}],
        claims=[{"text": "Claim.", "better": ["mode=sync"], "worse": ["mode=a<b"], "measure": measure} for measure in results.MEASURES])
    for i, mode in enumerate(("sync", "a<b", "late & slow")):
        for times in ("constant", "exponential"):
            for seed in (1, 2, 3):
                accuracy = (0.9, 0.85, 0.1)[i] + seed / 500
                files.run([mode, times], seed, [(5 + i + seed / 10, accuracy / 2), (10 + i, accuracy)], push_bytes=10 ** (5 + i),
                          staleness={0: 5, i: 3, 40 * i: 1}, value_age={1: 5, 9: 2}, late_pushes=3)
    for run in (0, 1):
        files.decisions += [[run, 0, 100, 0.0, 0.1, "fp32", 0.8, 0.02, 0.01, 0.001, 0.3, 0.0, 1, "all"],
                            [run, 0, 100, 0.0, 0.1, "table_1", "nan", "nan", "nan", "nan", 0.1, 3.5, 0, "all"]]
    for network in ("VGG-16", "ResNet-20"):
        for workers in (4, 8):
            files.efficiency.append([network, workers, "dense", "formulas", 1 / workers, 0.1 * workers])
    return files


if __name__ == "__main__":
    every_figure().write(pathlib.Path(sys.argv[1]))
