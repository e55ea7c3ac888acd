"""What the programs of a bundle print, read into rows (name, value, asked for), and the table of rows."""

import json
import math

# The figures asked for on an H100 (docs/performance.md): a bound, and whether a value may be larger.
ASKED = {
    **{
        f"gpu.{name}.{size}.{way} ratio": (0.8, True)
        for name in ("fp8_e5m2", "fp8_e4m3")
        for size in ("64mi", "256mi")
        for way in ("encode", "decode")
    },
    "gpu.topk_ef.64mi ratio": (0.7, True),
    "gpu.topk_ef.256mi ratio": (0.7, True),
    "gpu.topk_ef.1mi us": (40.0, False),
}


def measured(text):
    """{"gpu.topk_ef.1mi us": 20.0} from lines such as "us gpu.topk_ef.1mi 20.0"; other lines are left out."""
    figures = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in ("us", "ratio", "gb/s"):
            figures[f"{words[1]} {words[0]}"] = float(words[2])
    return figures


def asked_for(name, value):
    """"0.8 or more: yes" for a figure that something is asked of, else ""."""
    if name not in ASKED:
        return ""
    bound, may_be_larger = ASKED[name]
    met = value >= bound if may_be_larger else value <= bound
    return f"{bound:g} or {'more' if may_be_larger else 'less'}: {'yes' if met else 'NO'}"


def figure_rows(figures):
    """One row per figure, and how much longer torch takes for the same selection."""
    rows = [(name, f"{value:g}", asked_for(name, value)) for name, value in figures.items()]
    for name, value in figures.items():
        torchs = figures.get(name.replace("gpu.", "torch."))
        if name.startswith("gpu.topk_ef.") and name.endswith(" us") and torchs:
            rows.append((f"{name[:-3]}, times faster than torch.topk_ef", f"{torchs / value:.2f}", ""))
    return rows


def tests_row(name, report, gpu):
    """The row of a GoogleTest program from its JSON report, and whether no case failed; with a GPU most must run."""
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
    """The row of a run of `thinwire train` from its JSON report, and whether every worker ended well."""
    loss = report["final_train_loss"]
    learned = loss is not None and math.isfinite(loss)
    good = learned and not report["workers_lost"] and not report["servers_lost"] and not report["interrupted"]
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
    """A markdown table."""
    lines = ["| what | measured | asked for |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def read_json(path):
    """None if PATH is no JSON, for a program that died."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
