"""Converts the output of a bundle's programs to table rows (name, measured value, target), and prints the table."""

import json
import math

# Target values of measurements on an H100 (docs/performance.md). Maps the name of a measurement to (target, whether
# larger values are better).
TARGETS = {
    **{
        f"gpu.{name}.{size}.{way} ratio": (0.85, True)
        for name in ("fp8_e5m2", "fp8_e4m3")
        for size in ("64mi", "256mi")
        for way in ("encode", "decode")
    },
    "gpu.topk_ef.64mi ratio": (0.75, True),
    "gpu.topk_ef.256mi ratio": (0.75, True),
    "gpu.topk_ef.1mi us": (40.0, False),
}


def measured(text):
    """Returns {"gpu.topk_ef.1mi us": 20.0} for lines such as "us gpu.topk_ef.1mi 20.0". Ignores other lines."""
    figures = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in ("us", "ratio", "gb/s"):
            figures[f"{words[1]} {words[0]}"] = float(words[2])
    return figures


def target(name, value):
    """Returns "0.85 or more: yes" for a figure with a target, else ""."""
    if name not in TARGETS:
        return ""
    bound, larger_is_better = TARGETS[name]
    met = value >= bound if larger_is_better else value <= bound
    return f"{bound:g} or {'more' if larger_is_better else 'less'}: {'yes' if met else 'NO'}"


def figure_rows(figures):
    """Returns one row per figure, and a row with the speedup over torch for each selection."""
    rows = [(name, f"{value:g}", target(name, value)) for name, value in figures.items()]
    for name, value in figures.items():
        torch_time = figures.get(name.replace("gpu.", "torch."))
        if name.startswith("gpu.topk_ef.") and name.endswith(" us") and torch_time:
            rows.append((f"{name[:-3]}, times faster than torch.topk_ef", f"{torch_time / value:.2f}", ""))
    return rows


def tests_row(name, report, gpu):
    """Returns the row of a GoogleTest program from its JSON report, and True if the program passed.

    A program passes if no case failed and, with a GPU, more cases ran than were skipped.
    """
    results = [
        "failed" if case.get("failures") else "skipped" if case["result"] == "SKIPPED" else "passed"
        for suite in report["testsuites"]
        for case in suite["testsuite"]
        if case["result"] != "SUPPRESSED"
    ]
    count = {kind: results.count(kind) for kind in ("passed", "failed", "skipped")}
    text = ", ".join(f"{number} {kind}" for kind, number in count.items())
    good = count["failed"] == 0 and (not gpu or count["passed"] > count["skipped"])
    return (name, text, "none failed" + (", most ran" if gpu else "") + (": yes" if good else ": NO")), good


def training_row(name, report):
    """Returns the row of a `thinwire train` run from its JSON report, and True if all processes finished."""
    loss = report["final_train_loss"]
    finite = loss is not None and math.isfinite(loss)
    good = finite and not report["workers_lost"] and not report["servers_lost"] and not report["interrupted"]
    accuracy = report["final_test_accuracy"]
    parts = [
        " and ".join(sorted({worker["device"] for worker in report["worker_rows"]})),
        "no loss" if loss is None else f"train loss {loss:.4f}",
        "no accuracy" if accuracy is None else f"test accuracy {accuracy:.4f}",
        f"{report['steps']} steps",
        f"{(report['median_step_seconds'] or 0) * 1e3:.1f} ms a step",
        f"{report['seconds']:.1f} s",
        f"{report['push_bytes_encoded'] / 1e6:.1f} MB pushed",
    ]
    return (name, ", ".join(parts), "all workers done: " + ("yes" if good else "NO")), good


def table(rows):
    """Returns ROWS as a markdown table."""
    lines = ["| figure | measured | target |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def read_json(path):
    """Returns the content of the JSON file PATH, or None if the program that writes it crashed."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
