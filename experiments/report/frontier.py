"""Draws the figure of the kind frontier."""

import math

from matplotlib.lines import Line2D

import drawing
import findings
import labels
import measures


class Frontier(drawing.Drawing):
    """The last accuracy (or loss) against the bytes of the run: the mean of the seeds; a bar spans all seeds.

    The settings of the group axis have markers of their own, and a line joins the cases that differ only in it. The label of
    joined cases stands at the highest of them. A case whose accuracy has more than four times the smallest error is drawn at the lower edge.
    """

    columns = 1

    def __init__(self, figure, experiment, panels):
        super().__init__(figure, experiment, panels)
        cases = [case for _, cases in panels for case in cases]
        self.group = findings.group_axis(cases)
        if self.group == figure.panels:
            self.group = None
        self.groups = [s for s in experiment.axes.get(self.group, []) if any(case.settings[self.group] == s for case in cases)]
        self.label_axes = [axis for axis in self.axes if axis != self.group]
        self.quality = experiment.quality
        means = [drawing.mean(self.values(case)) for case in cases]
        self.floor = max(min(means), 100 - 4 * (100 - max(means))) if self.quality == "accuracy" else -math.inf
        self.shown = []
        self.labelled = {}  # axis: [(x, y, text)]
        self.points = {}  # axis: [(x, y)]
        self.lines = {}  # axis: [(x, y, x, y)]

    def values(self, case):
        return [drawing.scaled(self.quality, run.quantity(self.quality)) for run in case.runs.values()]

    def legend(self):
        if not self.group:
            return []
        return [(setting, Line2D([], [], linestyle="none", **self.marker(setting))) for setting in self.groups]

    def marker(self, setting):
        i = self.groups.index(setting) if self.group else 0
        face = (drawing.COLORS[0], "white", drawing.COLORS[2])[i]
        return {"marker": drawing.MARKERS[i], "color": drawing.COLORS[i], "markersize": 6, "markerfacecolor": face, "markeredgewidth": 1.3}

    def height(self, panels, columns):
        return 4.6

    def panel(self, axis, cases):
        joined, notes = {}, []
        self.points[axis], self.lines[axis] = [], []
        for case in cases:
            values = self.values(case)
            x, y = drawing.mean([run.bytes / 1e6 for run in case.runs.values()]), drawing.mean(values)
            low = y < self.floor
            if low:
                notes.append((x, self.floor, f"{y:.3g} %"))
                y, values = self.floor, [self.floor]
            setting = case.settings[self.group] if self.group else ""
            style = self.marker(setting)
            axis.errorbar(x, y, yerr=drawing.spans([values])[1], elinewidth=0.9, linestyle="none", zorder=3, **style)
            if low:
                axis.plot([x], [y], marker=11, markersize=7, color=style["color"], linestyle="none", zorder=4)
            self.points[axis].append((x, y))
            self.lines[axis].append((x, min(values), x, max(values)))
            self.shown += [max(min(values), self.floor), max(values)]
            joined.setdefault(measures.label(case, self.label_axes) if self.label_axes else setting, []).append((y, x))
        self.labelled[axis] = notes
        for text, points in joined.items():
            points.sort(reverse=True)
            if len(points) > 1:
                axis.plot([x for _, x in points], [y for y, _ in points], color="#999999", linewidth=0.9, zorder=2)
                self.lines[axis] += [(x, y, other_x, other_y) for (other_y, other_x), (y, x) in zip(points, points[1:])]
            self.labelled[axis].append((points[0][1], points[0][0], text))
        axis.set_xscale("log")
        axis.set_xlabel(drawing.AXIS_TITLES["bytes"])
        axis.set_ylabel(drawing.AXIS_TITLES[self.quality])

    def finish(self, figure):
        for axis in figure.axes:
            if self.quality == "accuracy":
                drawing.fit_accuracy(axis, self.shown)
            axis.set_xlim(axis.get_xlim()[0] / 1.1, axis.get_xlim()[1] * 1.1)
            drawing.log_labels(axis.xaxis)
        figure.canvas.draw()
        figure.set_layout_engine("none")  # labels move no axes
        for axis in figure.axes:
            self.place_labels(figure, axis)

    def place_labels(self, figure, axis):
        renderer = figure.canvas.get_renderer()
        texts = [axis.text(0, 0, text, fontsize=8, transform=None) for _, _, text in self.labelled[axis]]
        boxes = [text.get_window_extent(renderer) for text in texts]
        at = [tuple(axis.transData.transform((x, y))) for x, y, _ in self.labelled[axis]]
        half = 6.5
        obstacles = [(x - half, y - half, x + half, y + half) for x, y in axis.transData.transform(self.points[axis])]
        for x, y, other_x, other_y in self.lines[axis]:
            (left, bottom), (right, top) = axis.transData.transform([(x, y), (other_x, other_y)])
            obstacles.append((min(left, right) - 1, min(bottom, top), max(left, right) + 1, max(bottom, top)))
        corners = labels.place(at, [(box.width + 2, box.height) for box in boxes], axis.bbox.extents, obstacles)
        to_axes = axis.transAxes.inverted()
        for text, corner, point, box in zip(texts, corners, at, boxes):
            text.remove()
            center = (corner[0] + box.width / 2 + 1, corner[1] + box.height / 2)
            gap = math.dist(*labels.leader(point, (*corner, corner[0] + box.width, corner[1] + box.height)))
            line = {"arrowstyle": "-", "color": "#aaaaaa", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 5} if gap > 10 else None
            axis.annotate(text.get_text(), xy=to_axes.transform(point), xytext=to_axes.transform(center), xycoords="axes fraction",
                          textcoords="axes fraction", ha="center", va="center", fontsize=8, zorder=5, arrowprops=line)
