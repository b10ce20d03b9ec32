"""Plots the figures of a report."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator

from .phases import PHASES
from .run import Run
from .series import Series

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

COLOURS = ("#3b82c4", "#d97706", "#16a05d", "#c2417c", "#8b5cf6", "#7c8a12", "#0e9aa7", "#b45309")
_INK = "#010203"  # replaced by the page's text colour, light or dark
_STYLE: dict[RcKeyType, Any] = {
    "font.size": 9, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False,
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
        absent: the reason if there is nothing to plot.
    """

    name: str
    title: str
    unit: str
    train: str = ""
    valid: str = ""
    scale: str = "linear"
    absent: str = "the log has none"


CHARTS = (
    Chart("loss", "Loss", "bits a token, smoothed", "loss", "loss"),
    Chart("perplexity", "Perplexity", "", "ppl", "ppl", "log"),
    Chart("bleu", "BLEU on valid", "", valid="bleu", absent="trained without --eval-bleu"),
    Chart("learning_rate", "Learning rate", "", "lr"),
    Chart("gradient_norm", "Gradient norm", "", "gnorm", scale="log"),
    Chart("tokens_per_second", "Speed", "target tokens a second", "wps"),
    Chart("tflops", "Arithmetic", "TFLOP/s", "tflops"),
    Chart("mfu", "Model-FLOPs utilisation", "%", "mfu", absent="no peak of the device is known"),
    Chart("loss_scale", "fp16 scale", "", "loss_scale", scale="log", absent="no run is in fp16"),
)


@dataclass
class Drawn:
    """A figure as SVG, for the page, and as PNG, for other uses."""

    name: str
    title: str
    svg: str
    png: bytes = field(repr=False)


def draw(runs: list[Run]) -> tuple[list[Drawn], list[str]]:
    """The figures of these runs; and a line for each missing figure, with the reason."""
    drawn, absent = [], []
    for chart in CHARTS:
        if any(_lines(chart, run) for run in runs):
            plot = functools.partial(_plot, chart=chart, runs=runs)
            drawn.append(_drawn(chart.name, chart.title, plot))
        else:
            absent.append(f"{chart.title}: {chart.absent}")
    if any(run.log.phases.total for run in runs):
        height = 1.3 + 0.35 * len(runs)
        drawn.append(_drawn("phases", "Time", lambda axes: _bars(axes, runs), height))
    return drawn, absent


def _lines(chart: Chart, run: Run) -> list[tuple[str, Series]]:
    """The lines of a run in a chart, by name. Epochs are plotted if the log has no other points."""
    log, found = run.log, []
    if chart.train:
        fine = log.train if log.train["loss"].updates else log.epochs
        found.append(("train", fine.get(chart.train, Series())))
    if chart.valid:
        found += [(subset, table.get(chart.valid, Series())) for subset, table in log.valid.items()]
    return [(name, series) for name, series in found if series.updates]


def _plot(axes: Axes, chart: Chart, runs: list[Run]) -> None:
    lines = 0
    for number, run in enumerate(runs):
        for name, series in _lines(chart, run):
            label = f"{run.name}, {name}" if len(runs) > 1 else name
            of_valid = name != "train"
            colour = number if len(runs) > 1 else of_valid
            axes.plot(
                series.updates,
                series.values,
                color=COLOURS[colour % len(COLOURS)],
                linestyle="--" if of_valid and len(runs) > 1 else "-",
                marker="o" if of_valid or len(series.updates) == 1 else "",
                markersize=3,
                label=label,
            )
            lines += 1
    axes.set_yscale(chart.scale)
    if chart.scale == "log":
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.5)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("updates")
    axes.set_ylabel(chart.unit)
    if lines > 1:
        axes.legend(fontsize=8)


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
    axes.legend(fontsize=8, ncols=len(PHASES), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _drawn(name: str, title: str, plot: Callable[[Axes], None], height: float = 3.0) -> Drawn:
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(5.6, height), layout="constrained")
        plot(figure.subplots())
        vector, pixels = io.StringIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata=_NO_METADATA)
        figure.savefig(pixels, format="png", dpi=160, transparent=False, facecolor="white")
    svg = vector.getvalue().replace(_INK, "currentColor")
    return Drawn(name, title, svg[svg.index("<svg") :], pixels.getvalue())
