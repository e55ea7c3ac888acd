"""Draws the figures of a report as SVG text."""

import math

from matplotlib.lines import Line2D

import drawing
import measures
from frontier import Frontier


def draw(figure, experiment, prefix):
    """Returns FIGURE of EXPERIMENT as an SVG element whose ids begin with PREFIX.

    REQUIRES: the figure is not a table, and selects a case.
    """
    panels = panels_of(figure, experiment)
    drawers = {"curves": _Curves, "time_to_accuracy": _Bars, "staleness": _Histogram, "value_age": _Histogram,
               "frontier": Frontier, "scan": _Scan}
    return drawing.render(drawers[figure.kind](figure, experiment, panels), panels, prefix)


def draw_efficiency(rows, prefix):
    """Returns the efficiencies as an SVG element, with one panel for each network."""
    networks = list(dict.fromkeys(row.network for row in rows))
    panels = [(network, [row for row in rows if row.network == network]) for network in networks]
    return drawing.render(_Efficiency(rows), panels, prefix)


def panels_of(figure, experiment):
    """Returns [(title, cases)] of the panels that have cases."""
    cases = experiment.select(figure.only)
    if not figure.panels:
        return [("", cases)] if cases else []
    split = [(setting, [case for case in cases if case.settings[figure.panels] == setting]) for setting in experiment.axes[figure.panels]]
    return [panel for panel in split if panel[1]]


class _Curves(drawing.Drawing):
    """Mean curves over the seeds; a band spans all seeds. Point i of a curve is the mean of test i of each seed, in both x and y."""

    def __init__(self, figure, experiment, panels):
        super().__init__(figure, experiment, panels)
        ends = [run.curve[-1].quantity(figure.x) for _, cases in panels for case in cases for run in case.runs.values()]
        self.log_x = min(ends) > 0 and max(ends) > 8 * min(ends)
        self.shown = []

    def panel(self, axis, cases):
        for case in cases:
            points = [point for point in band(case, self.figure.x, self.figure.y) if point[0] > 0 or not self.log_x]
            if not points:
                continue
            x, y, low, high = zip(*points)
            style = dict(self.styles[self.name(case)])
            axis.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
            axis.plot(x, y, markevery=[len(x) - 1], **style)
            self.shown += [*y[len(y) // 4:], low[-1], high[-1]]
        axis.set_xlabel(drawing.AXIS_TITLES[self.figure.x])
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel(drawing.AXIS_TITLES[self.figure.y])
        if self.log_x:
            axis.set_xscale("log")
            drawing.log_labels(axis.xaxis)
        else:
            axis.set_xlim(left=0)

    def finish(self, figure):
        for axis in figure.axes:
            if self.figure.y == "accuracy" and self.shown:
                target = 100 * self.experiment.target
                drawing.fit_accuracy(axis, self.shown + ([target] if target else []))
                if target:
                    axis.axhline(target, color="#888888", linewidth=0.8, linestyle=(0, (2, 2)))
            elif self.figure.y == "loss":
                axis.set_yscale("log")
                drawing.log_labels(axis.yaxis)


def band(case, x, y):
    """Returns [(mean x, mean y, smallest y, largest y)] over the seeds of CASE, one per test that all seeds have."""
    points = []
    for tests in zip(*(run.curve for run in case.runs.values())):
        values = [drawing.scaled(y, test.quantity(y)) for test in tests]
        if all(math.isfinite(value) for value in values):
            points.append((drawing.mean([drawing.scaled(x, test.quantity(x)) for test in tests]), drawing.mean(values), min(values), max(values)))
    return points


class _Bars(drawing.Drawing):
    """Seconds to the target: a bar is the mean of the seeds that reached it, a dot is one seed."""

    shares_y = False

    def legend(self):
        return []

    def height(self, panels, columns):
        return 0.62 + 0.26 * max(len(cases) for _, cases in panels)

    columns = 1

    def panel(self, axis, cases):
        measure = measures.time_to_target(self.experiment)
        for place, case in enumerate(cases):
            values = sorted(case.values(measure.of).values())
            if values:
                axis.barh(place, drawing.mean(values), height=0.66, color=drawing.COLORS[5], edgecolor=drawing.COLORS[0], linewidth=0.8)
                axis.plot(values, [place] * len(values), linestyle="none", marker="o", markersize=3.2, color="#000000")
            if len(values) < len(case.runs):
                text = "not reached" if not values else f"reached by {len(values)} of {len(case.runs)} seeds"
                axis.annotate(text, (max(values, default=0), place), xytext=(6, 0), textcoords="offset points", va="center",
                              color="#8a3000", style="italic")
        axis.set_yticks(range(len(cases)), [self.name(case) or "all" for case in cases])
        axis.set_ylim(len(cases) - 0.4, -0.6)
        axis.grid(False, axis="y")
        axis.set_xlim(left=0)

    def finish(self, figure):
        right = max(axis.get_xlim()[1] for axis in figure.axes)
        for axis in figure.axes:
            axis.set_xlim(0, right)
        figure.axes[-1].set_xlabel("virtual time, s")


class _Histogram(drawing.Drawing):
    """The part of the pushes (or values) of a run in each bin: the mean of the seeds; a bar spans all seeds."""

    def __init__(self, figure, experiment, panels):
        super().__init__(figure, experiment, panels)
        histograms = [self.counts(run) for _, cases in panels for case in cases for run in case.runs.values()]
        self.bins = bins(max((max(counts) for counts in histograms if counts), default=0))

    def counts(self, run):
        return getattr(run, self.figure.kind)

    def panel(self, axis, cases):
        for case in cases:
            parts = [self.parts(self.counts(run)) for run in case.runs.values() if self.counts(run)]
            if not parts:
                continue
            y, span = drawing.spans(list(zip(*parts)))
            axis.errorbar(range(len(self.bins)), y, yerr=span, elinewidth=0.9, **self.styles[self.name(case)])
        texts = [str(low) if low == high else f"{low}\N{EN DASH}{high}" for low, high in self.bins]
        axis.set_xticks(range(len(self.bins)), texts, rotation=0 if len(texts) <= 8 else 60)
        staleness = self.figure.kind == "staleness"
        axis.set_xlabel("staleness, updates" if staleness else "age of a sent value, steps")
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel("% of accepted pushes" if staleness else "% of sent values")
        axis.set_ylim(bottom=0)

    def parts(self, counts):
        total = sum(counts.values())
        return [100 * sum(count for value, count in counts.items() if low <= value <= high) / total for low, high in self.bins]


def bins(largest):
    """Returns the first and the last value of each bin from 0 to LARGEST: single values, or powers of two if there are many."""
    if largest <= 16:
        return [(value, value) for value in range(largest + 1)]
    found = [(0, 0)]
    while found[-1][1] < largest:
        first = found[-1][1] + 1
        found.append((first, 2 * first - 1))
    return found


class _Scan(drawing.Drawing):
    """The last value of each case against the settings of an axis, at equal distances: the mean of the seeds; a bar spans all seeds."""

    def __init__(self, figure, experiment, panels):
        super().__init__(figure, experiment, panels)
        used = {case.settings[figure.x_axis] for _, cases in panels for case in cases}
        self.places = [setting for setting in experiment.axes[figure.x_axis] if setting in used]
        self.shown = []

    def panel(self, axis, cases):
        lines = {}
        for case in cases:
            values = [drawing.scaled(self.figure.y, value) for value in case.values(lambda run: run.quantity(self.figure.y)).values()]
            if values:
                lines.setdefault(self.name(case), []).append((self.places.index(case.settings[self.figure.x_axis]), values))
        for name, points in lines.items():
            points.sort()
            y, span = drawing.spans([values for _, values in points])
            axis.errorbar([place for place, _ in points], y, yerr=span, elinewidth=0.9, **self.styles[name])
            self.shown += [value for _, values in points for value in values]
        axis.set_xticks(range(len(self.places)), self.places, rotation=0 if sum(map(len, self.places)) < 50 else 60)
        axis.set_xlabel(self.figure.x_axis.replace("_", " "))
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel(drawing.AXIS_TITLES[self.figure.y])

    def finish(self, figure):
        for axis in figure.axes:
            if self.figure.y == "accuracy" and self.shown:
                drawing.fit_accuracy(axis, self.shown)
            elif self.figure.y not in ("accuracy", "loss"):
                axis.set_ylim(bottom=0)


class _Efficiency:
    """One line for each method and source, with a marker for each number of workers."""

    shares_y = True

    def __init__(self, rows):
        self.names = list(dict.fromkeys(f"{row.method}, {row.source}" for row in rows))
        self.styles = drawing.styles([str(count) for count in sorted({row.workers for row in rows})])

    def legend(self):
        return [(f"{count} workers", Line2D([], [], **{**style, "linestyle": "none"})) for count, style in self.styles.items()]

    def height(self, panels, columns):
        return 0.6 + 0.17 * len(self.names)

    def panel(self, axis, cases):
        for count, style in self.styles.items():
            points = [(100 * row.efficiency, self.names.index(f"{row.method}, {row.source}")) for row in cases if str(row.workers) == count]
            axis.plot([x for x, _ in points], [y for _, y in points], **{**style, "linestyle": "none"})
        axis.set_yticks(range(len(self.names)), self.names)
        axis.set_ylim(len(self.names) - 0.5, -0.5)
        axis.set_xlim(0, 102)
        axis.set_xlabel("efficiency, %")

    def finish(self, figure):
        pass
