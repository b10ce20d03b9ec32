"""Plots the figures of a report."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from .phases import PHASES
from .pointer import pointer_values
from .run import Run
from .series import Series, best

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

COLOURS = ("#3b82c4", "#d97706", "#16a05d", "#c2417c", "#8b5cf6", "#7c8a12", "#0e9aa7", "#b45309")
_INK = "#010203"  # replaced by the page's text colour, light or dark
_STYLE: dict[RcKeyType, Any] = {
    "font.size": 10, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.2, "lines.linewidth": 1.3, "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color",
                     "ytick.color", "grid.color"), _INK),
    "legend.frameon": False, "text.parse_math": False,
}  # fmt: skip
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True)
class Chart:
    """A plot of a quantity over updates.

    Attributes:
        train: its name in the log for training, if it has one.
        valid: its name in the log for validation.
        also: the name in the log of a number that is shown with each value.
        best: whether the ``largest`` or the ``smallest`` value of validation is marked.
        log: the y axis is logarithmic where the values differ much.
        from_zero: the y axis begins at 0.
        absent: the reason if there is nothing to plot.
    """

    name: str
    title: str
    unit: str
    train: str = ""
    valid: str = ""
    also: str = ""
    best: str = ""
    log: bool = False
    from_zero: bool = False
    absent: str = "the log has none"


# Loss and TFLOP/s would be the curves of perplexity and of speed again.
CHARTS = (
    Chart("perplexity", "Perplexity", "", "ppl", "ppl", "loss", "smallest", log=True),
    Chart("bleu", "BLEU on valid", "", valid="bleu", also="chrf", best="largest",
          absent="trained without --eval-bleu"),
    Chart("learning_rate", "Learning rate", "", "lr", from_zero=True),
    Chart("gradient_norm", "Gradient norm", "", "gnorm", log=True),
    Chart("speed", "Speed", "target tokens a second", "wps", also="tflops", from_zero=True),
    Chart("loss_scale", "fp16 scale", "", "loss_scale", log=True, absent="no run is in fp16"),
)  # fmt: skip


@dataclass
class RenderedFigure:
    """A figure as SVG, for the page, and as PNG, for other uses.

    Attributes:
        best: a line for each marked value.
        pointer: what the page's script needs; empty if a table has the values. ``lines`` (see
            ``pointer_values``) and ``also``; of the axes: the limits ``x`` and ``y``, ``log`` if y
            is logarithmic, and ``box``, their left, bottom, right and top in the figure.
    """

    name: str
    title: str
    svg: str
    png: bytes = field(repr=False)
    best: list[str] = field(default_factory=list)
    pointer: dict[str, Any] = field(default_factory=dict, repr=False)


class Line(NamedTuple):
    """A line of a chart; ``table`` has the other numbers of the same updates."""

    label: str
    colour: str
    style: str
    series: Series
    table: dict[str, Series]
    of_valid: bool


def draw(runs: list[Run]) -> tuple[list[RenderedFigure], list[str]]:
    """The figures of these runs; and a line for each missing figure, with the reason."""
    drawn, absent = [], []
    for chart in CHARTS:
        lines = _lines(chart, runs)
        if any(math.isfinite(value) for line in lines for value in line.series.values):
            plot = functools.partial(_plot, chart, lines)
            figure = _drawn(chart.name, chart.title, plot)
            figure.pointer["also"] = chart.also
            figure.pointer["lines"] = [
                pointer_values(line.label, line.colour, line.series, line.table, chart.also)
                for line in lines
            ]
            figure.best = [text for line in lines if (text := _best_text(chart, line))]
            drawn.append(figure)
        else:
            reason = "the log has no finite value" if lines else chart.absent
            absent.append(f"{chart.title}: {reason}")
    if any(run.log.phases.total for run in runs):
        height = 1.3 + 0.35 * len(runs)
        bars = _drawn("phases", "Time by phase", lambda axes: _bars(axes, runs), height)
        bars.pointer.clear()  # a table has its values
        drawn.append(bars)
    return drawn, absent


def _lines(chart: Chart, runs: list[Run]) -> list[Line]:
    """The lines of a chart."""
    lines = []
    for number, run in enumerate(runs):
        log, tables = run.log, []
        if chart.train:
            tables.append(("train", chart.train, log.points))
        if chart.valid:
            tables += [(subset, chart.valid, table) for subset, table in log.valid.items()]
        for name, key, table in tables:
            series, of_valid = table.get(key, Series()), name != "train"
            if series.updates:
                label = f"{run.name}, {name}" if len(runs) > 1 else name
                colour = COLOURS[(number if len(runs) > 1 else of_valid) % len(COLOURS)]
                style = "--" if of_valid and len(runs) > 1 else "-"
                lines.append(Line(label, colour, style, series, table, of_valid))
    return lines


def _best(chart: Chart, line: Line) -> tuple[int, float] | None:
    if not (chart.best and line.of_valid):
        return None
    return best(line.series, chart.best == "largest")


def _best_text(chart: Chart, line: Line) -> str:
    if (found := _best(chart, line)) is None:
        return ""
    epochs = line.table.get("epoch", Series())
    epoch = dict(zip(epochs.updates, epochs.values, strict=True)).get(found[0])
    where = f"update {found[0]:,}" + (f", epoch {epoch:.0f}" if epoch is not None else "")
    return f"best of {line.label}: {found[1]:g} at {where}"


def _plot(chart: Chart, lines: list[Line], axes: Axes) -> None:
    for line in lines:
        axes.plot(
            line.series.updates,
            line.series.values,
            color=line.colour,
            linestyle=line.style,
            marker="o" if line.of_valid or len(line.series.updates) == 1 else "",
            markersize=3,
            label=line.label,
        )
        # The x axis also has the updates without a finite value, which the pointer shows.
        axes.update_datalim([(update, 0) for update in line.series.updates], updatey=False)
    if chart.log:
        _scale(axes, [value for line in lines for value in line.series.values])
    for line in lines:
        if (found := _best(chart, line)) is not None:
            axes.plot(*found, "o", ms=9, mfc="none", mec=line.colour, mew=1.5, clip_on=False)
    if chart.from_zero:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("updates")
    axes.set_ylabel(chart.unit)
    if len(lines) > 1:
        axes.legend(fontsize=9)


def _scale(axes: Axes, values: list[float]) -> None:
    """A logarithmic y axis, if the values differ by more than a factor of 5."""
    positive = [value for value in values if 0 < value < math.inf]
    spread = max(positive) / min(positive) if positive else 1
    if spread > 5:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if spread < 1000 else (1,)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, runs: list[Run]) -> None:
    left = [0.0] * len(runs)
    rows = range(len(runs))
    longest = max(run.log.phases.total for run in runs)
    unit, seconds = next(((u, s) for u, s in _UNITS if longest >= 3 * s), ("seconds", 1))
    for colour, phase in zip(COLOURS, PHASES, strict=False):
        widths = [run.log.phases.seconds[phase] / seconds for run in runs]
        axes.barh(rows, widths, left=left, color=colour, label=phase, height=0.6)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(rows, [run.name for run in runs])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(unit)
    axes.legend(fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _drawn(
    name: str, title: str, plot: Callable[[Axes], None], height: float = 3.0
) -> RenderedFigure:
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(4.8, height), layout="constrained")
        axes = figure.subplots()
        plot(axes)
        vector, pixels = io.StringIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata=_NO_METADATA)
        pointer = {
            "box": list(axes.get_position().extents),  # as parts of the figure's width and height
            "x": axes.get_xlim(),
            "y": axes.get_ylim(),
            "log": axes.get_yscale() == "log",
        }
        figure.savefig(pixels, format="png", dpi=160, transparent=False, facecolor="white")
    svg = vector.getvalue().replace(_INK, "currentColor")
    return RenderedFigure(name, title, svg[svg.index("<svg") :], pixels.getvalue(), pointer=pointer)
