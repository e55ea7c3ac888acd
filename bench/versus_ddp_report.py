#!/usr/bin/env python3
"""Collects the runs of bench/versus_ddp.sh and prints their table.

  versus_ddp_report.py add RUNS SYSTEM RATE SEED BYTES RESULT    appends the run in RESULT to the file RUNS
  versus_ddp_report.py show RUNS [DIR]                           prints the table; draws DIR/versus_ddp.svg

RESULT contains the JSON lines of bench/ddp_worker.py or the events of thinwire's worker 0.
"""

import collections
import json
import statistics
import sys


def read_run(path):
    """Returns (points, seconds, median step) of the run in PATH: points are (seconds, accuracy) per epoch."""
    points, seconds, step = [], None, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            event = json.loads(line)
            epoch = event.get("epoch")
            if isinstance(epoch, dict) and "test_accuracy" in epoch:
                points.append((epoch["seconds"], epoch["test_accuracy"]))
            elif "accuracy" in event:
                points.append((event["seconds"], event["accuracy"]))
            end = event.get("done", event)
            if "median_step_seconds" in end:
                seconds, step = end["seconds"], end["median_step_seconds"]
    if not points or step is None:
        raise ValueError(f"{path}: no result (expected an accuracy and a median step, got {len(points)} accuracies)")
    return points, seconds, step


def add(runs, system, rate, seed, sent_bytes, result):
    points, seconds, step = read_run(result)
    row = {"system": system, "rate": rate, "seed": int(seed), "sent_bytes": int(sent_bytes), "seconds": seconds}
    row |= {"median_step_seconds": step, "points": points}
    with open(runs, "a", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")


def mean_and_deviation(values, digits):
    deviation = f" +-{statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def show(runs, folder=None):
    groups = collections.defaultdict(list)
    with open(runs, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            groups[row["rate"], row["system"]].append(row)
    for (rate, system), rows in groups.items():
        figures = (
            mean_and_deviation([row["seconds"] for row in rows], 1),
            mean_and_deviation([100 * row["points"][-1][1] for row in rows], 2),
            mean_and_deviation([1e3 * row["median_step_seconds"] for row in rows], 2),
            mean_and_deviation([row["sent_bytes"] / 1e6 for row in rows], 1),
        )
        print("versus", system, rate, *figures)
    if folder:
        draw(groups, folder + "/versus_ddp.svg")


def draw(groups, path):
    """Draws accuracy against time, the mean over the seeds, one panel per rate."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    rates = list(dict.fromkeys(rate for rate, _ in groups))
    figure, axes = pyplot.subplots(1, len(rates), figsize=(6 * len(rates), 4), squeeze=False, sharey=True)
    for axis, rate in zip(axes[0], rates):
        for (group_rate, system), rows in groups.items():
            if group_rate != rate:
                continue
            seconds, accuracies = (
                [statistics.mean(values) for values in zip(*([point[i] for point in row["points"]] for row in rows))]
                for i in (0, 1)
            )
            style = "--" if system.startswith("ddp") else "-"
            axis.plot(seconds, [100 * value for value in accuracies], style, marker="o", label=system)
        axis.set(title=rate, xlabel="seconds of training", xscale="log")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("test accuracy in %")
    axes[0][-1].legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    if len(sys.argv) == 8 and sys.argv[1] == "add":
        add(*sys.argv[2:])
    elif len(sys.argv) in (3, 4) and sys.argv[1] == "show":
        show(*sys.argv[2:])
    else:
        sys.exit(__doc__)
