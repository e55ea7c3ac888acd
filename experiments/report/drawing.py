"""The parts that all figures share: colours, layout, axes, and the SVG text. Equal drawings give equal bytes."""

import contextlib
import io
import math
import re
import statistics

import matplotlib
import numpy
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import measures

# Colours that remain different with every kind of colour blindness (Okabe and Ito 2008), without the pale yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH = 7.2  # inches
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "thinwire", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.titlesize": 9.5, "axes.titleweight": "bold", "legend.frameon": False,
    "lines.linewidth": 1.6, "lines.markersize": 4.5, "axes.edgecolor": "#555555", "figure.facecolor": "white",
}
ACCURACIES = (10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 88, 90, 92, 94, 95, 96, 97, 98, 99, 99.5, 99.8, 99.9)
AXIS_TITLES = {
    "accuracy": "test accuracy, %", "loss": "test loss", "seconds": "virtual time, s", "steps": "steps",
    "bytes": "MB sent and received", "examples": "examples", "busy": "time spent computing, %",
}


def scaled(figure_quantity, value):
    """Returns VALUE in the unit of its axis title."""
    return value * {"accuracy": 100, "busy": 100, "bytes": 1e-6}.get(figure_quantity, 1)


def styles(names):
    """Returns {name: line style} for names of cases. Names with two parts have a colour for the first and a dash for the second."""
    parts = [name.split(measures.SEPARATOR, 1) for name in names]
    firsts = list(dict.fromkeys(part[0] for part in parts))
    seconds = list(dict.fromkeys(part[1] for part in parts if len(part) == 2))
    if not seconds or len(firsts) > len(COLORS) or len(seconds) > len(DASHES):
        firsts, parts = list(names), [[name] for name in names]
        indices = [(i % len(COLORS), i // len(COLORS)) for i in range(len(names))]
    else:
        indices = [(firsts.index(part[0]), seconds.index(part[1]) if len(part) == 2 else 0) for part in parts]
    return {name: {"color": COLORS[color], "linestyle": DASHES[dash % len(DASHES)], "marker": MARKERS[(color + dash) % len(MARKERS)]}
            for name, (color, dash) in zip(names, indices)}


@contextlib.contextmanager
def _style():
    matplotlib.rcdefaults()
    with matplotlib.rc_context(STYLE):
        yield


def render(drawer, panels, prefix):
    """Lays out PANELS, lets DRAWER draw them, and returns the SVG element."""
    with _style():
        columns = min(len(panels), getattr(drawer, "columns", 3 if len(panels) in (3, 5, 6, 9) else 2))
        rows = math.ceil(len(panels) / columns)
        legend = drawer.legend()
        longest = max((len(name) for name, _ in legend), default=0)
        legend_columns = max(1, int(WIDTH / (0.078 * longest + 0.5)))
        legend_height = 0.2 * math.ceil(len(legend) / legend_columns) + 0.08 if legend else 0
        height = rows * drawer.height(panels, columns) + legend_height
        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        figure.set_layout_engine("constrained", h_pad=0.07, rect=(0, legend_height / height, 1, 1 - legend_height / height))
        axes = figure.subplots(rows, columns, squeeze=False, sharey=drawer.shares_y)
        for (title, cases), axis in zip(panels, axes.flat):
            axis.set_title(title)
            drawer.panel(axis, cases)
        for axis in list(axes.flat)[len(panels):]:
            axis.set_visible(False)
        if legend:
            figure.legend([handle for _, handle in legend], [name for name, _ in legend], loc="lower center", ncol=legend_columns,
                          columnspacing=1.4, handlelength=2.4, borderaxespad=0.2)
        drawer.finish(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(text.getvalue(), prefix)


def _inline(svg, prefix):
    """Returns the SVG element of a file without its prologue, its metadata and its fixed size. Ids get PREFIX."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'( id="|"#|url\(#)', rf"\g<1>{prefix}-", svg)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()
    return re.sub(r"<svg [^>]*>", f'<svg viewBox="0 0 {width} {height}" role="img">', svg, count=1).strip()


class Drawing:
    """The common parts of the figures of training runs: the names of the cases, their styles, and the legend."""

    shares_y = True

    def __init__(self, figure, experiment, panels):
        self.figure = figure
        self.experiment = experiment
        cases = [case for _, cases in panels for case in cases]
        self.axes = [axis for axis in measures.varying_axes(cases) if axis not in (figure.panels, figure.x_axis)]
        self.names = list(dict.fromkeys(self.name(case) for case in cases))
        self.styles = styles(self.names)

    def name(self, case):
        return measures.label(case, self.axes) if self.axes else ""

    def legend(self):
        if len(self.names) < 2:
            return []
        return [(name, Line2D([], [], **self.styles[name])) for name in self.names]

    def height(self, panels, columns):
        return 3.4 if columns == 1 else 2.6

    def finish(self, figure):
        pass


def _accuracy_scale(axis):
    """Scales the y axis by the logarithm of the error, so that differences near the end of training remain visible."""

    def forward(accuracy):
        return -numpy.log10(numpy.maximum(100.1 - numpy.asarray(accuracy), 1e-3))

    def inverse(scaled_values):
        return 100.1 - 10.0 ** -numpy.asarray(scaled_values)

    low, high = axis.get_ylim()
    axis.set_yscale("function", functions=(forward, inverse))
    low, high = max(low, 0), min(high, 100)
    axis.set_ylim(low, high)
    ticks = [value for value in ACCURACIES if low <= value <= high]
    if len(ticks) < 3:
        ticks = ticker.MaxNLocator(6).tick_values(low, high)
    axis.yaxis.set_major_locator(ticker.FixedLocator([value for value in ticks if low <= value <= high]))
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.4g}"))
    axis.yaxis.set_minor_locator(ticker.NullLocator())


def fit_accuracy(axis, values):
    """Sets the limits of an accuracy axis around VALUES, in per cent, with a margin in the scaled error."""
    low, high = min(values), max(values)
    factor = max(((100.1 - low) / (100.1 - high)) ** 0.06, 1.02)
    axis.set_ylim(100.1 - (100.1 - low) * factor, 100.1 - (100.1 - high) / factor)
    _accuracy_scale(axis)


def log_labels(axis):
    """Labels a logarithmic axis with plain numbers, also between the powers of ten if there are few of them."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = axis.get_view_interval()
    if high / low < 30:
        axis.set_minor_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""))
    else:
        axis.set_minor_formatter(ticker.NullFormatter())


def mean(values):
    return statistics.fmean(values)


def spans(groups):
    """Returns the means of GROUPS of values, and the distances to the smallest and the largest value of each for errorbar()."""
    means = [mean(values) for values in groups]
    return means, [[max(center - min(values), 0) for center, values in zip(means, groups)],
                   [max(max(values) - center, 0) for center, values in zip(means, groups)]]
