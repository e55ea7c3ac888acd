"""Writes the report of an experiment as one HTML page without outside references."""

import html
import math
import re
import statistics

import claims
import estimates
import figures
import findings
import measures

TITLES = {
    "curves": "Curves", "time_to_accuracy": "Time to the target", "staleness": "Staleness", "value_age": "Age of sent values",
    "frontier": "Quality against bytes", "table": "Cases", "scan": "Scan",
}
NOTES = {
    "curves": "A line is the mean of the seeds; its band spans all seeds.",
    "time_to_accuracy": "A bar is the mean of the seeds that reached the target; a dot is one seed.",
    "staleness": "A point is the mean of the seeds; a vertical bar spans all seeds.",
    "value_age": "A point is the mean of the seeds; a vertical bar spans all seeds.",
    "frontier": "A point is the mean of the seeds; a vertical bar spans all seeds. A grey line joins the cases of one label. An arrow marks "
                "a point that lies below the figure, at the value beside it.",
    "scan": "A point is the mean of the seeds; a vertical bar spans all seeds.",
}
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --text: #1d2125; --quiet: #5c6670; --line: #dcdfe3;
  --supported: #0a6b3d; --not-supported: #a8321a; --undecided: #6b5600;
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --page: #14171a; --card: #1d2125; --text: #e6e8ea; --quiet: #9aa4ae; --line: #343a40;
    --supported: #5fd39b; --not-supported: #ff9a80; --undecided: #e0c35a;
  }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 56rem; padding: 1rem; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 0.5rem; }}
p {{ margin: 0.5rem 0; overflow-wrap: anywhere; }}
.quiet, figcaption {{ color: var(--quiet); font-size: 0.85rem; }}
.claim, .scroll {{ background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 0.6rem 0; }}
.claim {{ border-left: 4px solid var(--verdict); padding: 0.4rem 0.8rem; }}
.claim .scroll {{ border: 0; }}
.verdict {{ color: var(--verdict); font-weight: 600; }}
.supported {{ --verdict: var(--supported); }}
.not-supported {{ --verdict: var(--not-supported); }}
.undecided {{ --verdict: var(--undecided); }}
figure {{ margin: 0.5rem 0; }}
.plate {{ background: #ffffff; border: 1px solid var(--line); border-radius: 6px; padding: 0.5rem; overflow-x: auto; }}
.plate svg {{ display: block; width: 100%; min-width: 32rem; height: auto; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: 0.85rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.25rem 0.6rem; text-align: right; white-space: nowrap; }}
th.name, td.name {{ text-align: left; }}
thead th {{ color: var(--quiet); font-weight: 500; vertical-align: bottom; white-space: normal; }}
tbody tr {{ border-top: 1px solid var(--line); }}
@page {{ size: A4; margin: 16mm 14mm; }}
@media print {{
  :root {{
    color-scheme: light;
    --page: #ffffff; --card: #ffffff; --text: #000000; --quiet: #444444; --line: #bbbbbb;
    --supported: #0a6b3d; --not-supported: #a8321a; --undecided: #6b5600;
  }}
  body {{ max-width: none; padding: 0; font-size: 10pt; }}
  h2 {{ break-after: avoid; }}
  section.figure, tr {{ break-inside: avoid; }}
  .scroll, .plate {{ overflow: visible; border: 0; padding: 0; }}
  .plate svg {{ min-width: 0; }}
  table {{ font-size: 7.5pt; }}
  th, td {{ padding: 0.15rem 0.35rem; white-space: normal; }}
}}
</style>
</head>
<body>
"""
READING = """<section>
<h2>How to read this page</h2>
<p>Times are virtual (docs/experiments.md). "A ± B" is the mean and the standard deviation of the seeds. Runs with the same seed have
the same initial values and the same order of examples. Cases are therefore compared seed by seed: a difference or a ratio comes with the
95 % interval of Student's t distribution for the paired differences (for ratios, of their logarithms). Two cases are called
distinguishable if the interval of their difference does not contain 0. Of twenty such intervals, about one misses the true value. The best
case of a figure was chosen from the same runs, so its lead is slightly too large.</p>
<p>The time to a target is interpolated between the last test before it and the first test that reaches it. In a claim, a run that
did not reach the target counts with its whole time, so the ratio is a bound.</p>
</section>
"""


def write(experiment):
    """Returns the page as text."""
    parts = [HEAD.format(title=_text(experiment.title)), "<header>\n", f"<h1>{_text(experiment.title)}</h1>\n"]
    if experiment.question:
        parts.append(f"<p>{_text(experiment.question)}</p>\n")
    parts += [f'<p class="quiet">{_text(_summary(experiment))}</p>\n', "</header>\n<main>\n"]
    if experiment.claims:
        parts.append("<section>\n<h2>Claims</h2>\n")
        parts += [_claim(claims.judge(claim, experiment)) for claim in experiment.claims]
        parts.append("</section>\n")
    parts += [_figure(figure, experiment, f"figure{i}") for i, figure in enumerate(experiment.figures)]
    if any(run.decisions for case in experiment.cases for run in case.runs.values()):
        parts.append(_decisions(experiment.cases))
    if experiment.efficiency:
        parts.append(_efficiency(experiment.efficiency))
    if experiment.cases:
        parts += ["<section>\n<h2>All cases</h2>\n", _case_table(experiment.cases, _all_columns(experiment)), "</section>\n", READING]
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _text(text):
    """Returns TEXT for HTML. No line break separates a number from its unit or its deviation."""
    return html.escape(re.sub(r"(?<=\d) (?=(?:±|%|µs|ms|s|GB|MB|kB|bytes|points)(?!\w))|(?<=±) ", "\N{NO-BREAK SPACE}", text), quote=True)


def _summary(experiment):
    if not experiment.cases:
        return "No training runs; efficiencies by a cost model."
    counts = sorted({len(case.runs) for case in experiment.cases})
    seeds = measures.seeds_text(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    runs = sum(len(case.runs) for case in experiment.cases)
    factor, unit = measures.quality(experiment).scale(experiment.target)
    target = f" Target {experiment.quality}: {experiment.target / factor:g} {unit}".rstrip() + "." if experiment.target else ""
    return f"Experiment {experiment.name}: {runs} runs, {len(experiment.cases)} cases with {seeds} each.{target}"


def _claim(judgement):
    kind = judgement.verdict.replace(" ", "-")
    expected = f" Expected ratio: {judgement.expected}." if judgement.expected else ""
    name = _capital(judgement.measure.name)
    parts = [f'<div class="claim {kind}">\n<p><span class="verdict">{_capital(judgement.verdict)}.</span> {_text(judgement.claim.text)}</p>\n']
    if len(judgement.comparisons) == 1:
        found = judgement.comparisons[0]
        parts.append(f"<p>{_text(name)}: {_text(found.better)} {_text(found.better_text)}, {_text(found.worse)} {_text(found.worse_text)}; "
                     f"{_text(found.effect)}.{expected} {_text(found.reason)}</p>\n")
    else:
        parts.append(f"<p>{_text(name)}.{expected} {_text(judgement.reason)}</p>\n")
    if len(judgement.comparisons) > 1:
        rows = [[found.better, found.better_text, found.worse, found.worse_text, found.effect.replace("95 % interval ", ""),
                 found.verdict] for found in judgement.comparisons]
        parts.append(_table(["claimed better", "", "claimed worse", "", "effect (95 % interval)", "verdict"], rows, names=(0, 2, 4, 5)))
    return "".join(parts) + "</div>\n"


def _capital(text):
    return text[0].upper() + text[1:]


def _figure(figure, experiment, prefix):
    title = figure.title or TITLES[figure.kind]
    kind = "" if figure.kind == "table" else ' class="figure"'
    parts = [f"<section{kind}>\n<h2>{_text(title)}</h2>\n"]
    panels = figures.panels_of(figure, experiment)
    if not panels:
        return "".join(parts) + "<p>No runs have the settings of this figure.</p>\n</section>\n"
    if figure.kind == "table":
        cases = [case for _, cases in panels for case in cases]
        parts.append(_case_table(cases, _main_columns(experiment)))
    else:
        svg = figures.draw(figure, experiment, prefix).replace('role="img"', f'role="img" aria-label="{_text(title)}"', 1)
        parts.append(f'<figure>\n<div class="plate">\n{svg}\n</div>\n<figcaption>{NOTES[figure.kind]}</figcaption>\n</figure>\n')
    for name, cases in panels:
        heading = f"<b>{_text(name)}.</b> " if name else ""
        parts.append(f"<p>{heading}{_text(' '.join(_findings(figure, experiment, cases)))}</p>\n")
    return "".join(parts) + "</section>\n"


def _findings(figure, experiment, cases):
    if figure.kind == "curves":
        return findings.curves(cases, figure)
    if figure.kind == "time_to_accuracy":
        return findings.time_to_target(cases, measures.time_to_target(experiment))
    if figure.kind == "staleness":
        return findings.histogram(cases, lambda run: run.staleness, "staleness")
    if figure.kind == "value_age":
        return findings.histogram(cases, lambda run: run.value_age, "age")
    if figure.kind == "frontier":
        return findings.frontier(cases, experiment.quality)
    quantity = figure.y if figure.kind == "scan" else experiment.quality
    return findings.ranking(cases, measures.QUANTITIES[quantity])


def _main_columns(experiment):
    """Returns [(title, function of a case)] of a figure of the kind table."""
    quantities = [measures.quality(experiment), measures.QUANTITIES["seconds"], measures.MEDIAN_STEP, measures.QUANTITIES["bytes"]]
    return [(measure.name, _measured(measure)) for measure in quantities] + _sent_values(experiment.cases)


def _sent_values(cases):
    """Returns the column of the values that a worker sends in a step, if CASES have sparse pushes; else no column."""
    if all(math.isnan(run.density) for case in cases for run in case.runs.values()):
        return []
    measure = measures.Measure("sent values per step", lambda run: run.sent_values, False, measures.COUNT, "")
    return [(measure.name, _measured(measure))]


def _measured(measure):
    return lambda case: measure.text(list(case.values(measure.of).values()))


def _all_columns(experiment):
    columns = [("seeds", lambda case: str(len(case.runs)))]
    columns += [(measure.name, _measured(measure)) for measure in dict.fromkeys((measures.quality(experiment), measures.QUANTITIES["loss"]))]
    if experiment.target:
        measure = measures.time_to_target(experiment)
        columns.append((measure.name, lambda case: _time_to(case, measure)))
    size = measures.QUANTITIES["bytes"]
    columns += [("virtual time", _measured(measures.QUANTITIES["seconds"])), ("median step", _measured(measures.MEDIAN_STEP)),
                ("updates", lambda case: _count(case, "updates")),
                ("pushed", lambda case: size.text([run.push_bytes for run in case.runs.values()])),
                ("pulled", lambda case: size.text([run.pull_bytes for run in case.runs.values()])),
                ("time spent computing", lambda case: f"{100 * statistics.fmean(run.busy for run in case.runs.values()):.0f} %")]
    columns += _sent_values(experiment.cases)
    for name in ("late_pushes", "dropped_pushes"):
        if any(getattr(run, name) for case in experiment.cases for run in case.runs.values()):
            columns.append((name.replace("_", " "), lambda case, name=name: _count(case, name)))
    return columns


def _count(case, name):
    return estimates.rounded(statistics.fmean(getattr(run, name) for run in case.runs.values()), 0)


def _time_to(case, measure):
    values = case.values(measure.of)
    if not values:
        return "not reached"
    return measure.text(list(values.values())) + ("" if len(values) == len(case.runs) else f" ({len(values)} of {len(case.runs)} seeds)")


def _case_table(cases, columns):
    axes = measures.varying_axes(cases) or list(cases[0].settings)
    header = [axis.replace("_", " ") for axis in axes] + [title for title, _ in columns]
    rows = [[case.settings[axis] for axis in axes] + [of(case) for _, of in columns] for case in cases]
    return _table(header, rows, names=range(len(axes)))


def _decisions(cases):
    """Returns the table of the decisions of adaptive precision: one row for each case, step and candidate."""
    decided = [case for case in cases if any(run.decisions for run in case.runs.values())]
    axes = measures.varying_axes(decided) or list(decided[0].settings)
    rows = []
    for case in decided:
        groups = {}
        for run in case.runs.values():
            for candidate in run.decisions:
                groups.setdefault((candidate.step, candidate.candidate), []).append(candidate)
        # The order of the candidates is that of the first decision.
        names = list(dict.fromkeys(name for _, name in groups))
        for step, name in sorted(groups, key=lambda key: (key[0], names.index(key[1]))):
            found = groups[step, name]
            errors = [row.encoding_error for row in found if not math.isnan(row.encoding_error)]
            rows.append([*(case.settings[axis] for axis in axes), str(step), found[0].layers, name, _prediction(found),
                         measures.QUANTITIES["seconds"].text([row.seconds_per_step for row in found]),
                         estimates.three_digits(statistics.fmean(errors)) if errors else "not measured",
                         f"{sum(row.chosen for row in found)} of {len(case.runs)}"])
    header = [axis.replace("_", " ") for axis in axes] + ["step", "layers", "candidate", "predicted accuracy", "time per step",
                                                          "encoding error", "chosen by seeds"]
    return ("<section>\n<h2>Decisions of adaptive precision</h2>\n<p>A prediction is that of the test accuracy at the next decision: the mean "
            "of the seeds and the mean of their standard deviations. The encoding error is the sum of the squares of the errors at the end of the "
            "trial, divided by that of the encoded values.</p>\n"
            + _table(header, rows, names=(*range(len(axes)), len(axes) + 1, len(axes) + 2)) + "</section>\n")


def _prediction(candidates):
    predicted = [row for row in candidates if not math.isnan(row.predicted_accuracy)]
    if not predicted:
        return "removed"
    mean, deviation = (100 * statistics.fmean(getattr(row, name) for row in predicted) for name in ("predicted_accuracy", "deviation"))
    return f"{mean:.1f} ± {deviation:.1f} %"


def _efficiency(rows):
    workers = sorted({row.workers for row in rows})
    cells = {(row.network, row.method, row.source, row.workers): row for row in rows}
    table = [[*key, *(_efficiency_cell(cells.get((*key, count))) for count in workers)]
             for key in dict.fromkeys((row.network, row.method, row.source) for row in rows)]
    svg = figures.draw_efficiency(rows, "efficiency").replace('role="img"', 'role="img" aria-label="Efficiency"', 1)
    best = {}
    for row in rows:
        if row.workers == workers[-1] and (row.network not in best or row.efficiency > best[row.network].efficiency):
            best[row.network] = row
    texts = [f"{row.method} ({row.source}) for {network} with {100 * row.efficiency:.3g} %" for network, row in best.items()]
    return ('<section class="figure">\n<h2>Efficiency</h2>\n<figure>\n<div class="plate">\n' + svg + "\n</div>\n"
            "<figcaption>Efficiency is the computing time of a step divided by the time of the step. The figures follow from a cost model "
            "or are published; they have no seeds.</figcaption>\n</figure>\n"
            f"<p>{_text(f'The highest efficiencies at {workers[-1]} workers: {measures.listing(texts)}.')}</p>\n"
            + _table(["network", "method", "source"] + [f"{count} workers" for count in workers], table, names=(0, 1, 2)) + "</section>\n")


def _efficiency_cell(row):
    if row is None:
        return "\N{EN DASH}"
    return f"{100 * row.efficiency:.3g} % ({measures.QUANTITIES['seconds'].text([row.step_seconds])})"


def _table(header, rows, names):
    """Returns a table. The columns with the numbers NAMES are aligned left."""
    attributes = [' class="name"' if i in names else "" for i in range(len(header))]
    parts = ['<div class="scroll">\n<table>\n<thead><tr>']
    parts += [f"<th{attribute}>{_text(cell)}</th>" for attribute, cell in zip(attributes, header)]
    parts.append("</tr></thead>\n<tbody>\n")
    for row in rows:
        parts += ["<tr>", *(f"<td{attribute}>{_text(cell)}</td>" for attribute, cell in zip(attributes, row)), "</tr>\n"]
    return "".join(parts) + "</tbody>\n</table>\n</div>\n"
