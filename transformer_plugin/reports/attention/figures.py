"""Figures of attention: heat maps, and lines as in the paper's Figures 3 to 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...files import atomic_write
from .figure_choice import Panel

_CELL = 0.2  # inches for each subword
_LABEL = 1.1  # inches for the labels
_ACROSS = 4  # heat maps in a row


def save(figure: Figure, path: Path) -> None:
    """Writes ``path``.svg and ``path``.png; the same figure makes the same files."""
    forms: dict[str, Any] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 200}}
    with matplotlib.rc_context({"svg.hashsalt": "attention"}):
        for form, options in forms.items():
            with atomic_write(path.with_name(f"{path.name}.{form}"), "wb") as file:
                figure.savefig(file, format=form, **options)


def heat_maps(panel: Panel) -> Figure:
    """A map for each head, with queries as rows; all maps have the same scale. A shade is the
    square root of a weight, as in the page."""
    count = len(panel.names)
    across = min(count, _ACROSS)
    down = -(-count // across)
    width = across * (len(panel.keys) * _CELL + _LABEL) + 1
    height = down * (len(panel.queries) * _CELL + _LABEL + 0.4)
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    norm = PowerNorm(0.5, vmin=0, vmax=float(panel.weights.max()))
    for axes, weights, name in zip(grid.flat, panel.weights, panel.names, strict=False):
        image = axes.imshow(weights.numpy(), cmap="Blues", norm=norm)
        _label(axes, panel)
        axes.set_title(name, fontsize=9)
    for axes in grid.flat[count:]:
        axes.remove()
    figure.colorbar(image, ax=grid, shrink=0.6, label="weight")
    figure.suptitle(panel.title, fontsize=10)
    return figure


def lines(panel: Panel, query: int | None = None) -> Figure:
    """Queries above, keys below, and a line for each weight; larger weights are stronger.

    Each head has a colour. With ``query``, only its lines are drawn, and bars below the keys show
    its weights.
    """
    longest = max(len(panel.queries), len(panel.keys))
    figure = Figure(figsize=(longest * _CELL + 1, 2 * _LABEL + 1.6), layout="constrained")
    axes = figure.subplots()
    colours = _colours(len(panel.names))
    shown = range(len(panel.queries)) if query is None else [query]
    for head, (weights, colour) in enumerate(zip(panel.weights, colours, strict=True)):
        pairs = [(q, k) for q in shown for k in range(len(panel.keys)) if weights[q, k] > 0]
        strengths = [float(weights[q, k]) for q, k in pairs]
        axes.add_collection(
            LineCollection(
                [[(q, 1), (k, 0)] for q, k in pairs],
                colors=[to_rgba(colour, alpha) for alpha in strengths],
                linewidths=[0.5 + 2 * strength for strength in strengths],
            )
        )
        for (_, k), strength in zip(pairs if query is not None else [], strengths, strict=False):
            part = 0.16 / len(panel.names)
            place = (k - 0.4, -0.02 - part * (head + 1))
            axes.add_patch(Rectangle(place, 0.8, part, color=colour, alpha=strength, lw=0))
    for pieces, height, where in ((panel.queries, 1.03, "bottom"), (panel.keys, -0.2, "top")):
        for column, piece in enumerate(pieces):
            bold = height > 0 and column == query
            axes.text(column, height, piece, rotation=90, ha="center", va=where, fontsize=9,
                      weight="bold" if bold else "normal", parse_math=False)  # fmt: skip
    for name, colour in zip(panel.names, colours, strict=True):
        axes.plot([], [], color=colour, label=name)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, frameon=False)
    axes.set(xlim=(-0.7, longest - 0.3), ylim=(-0.2, 1.02))
    axes.set_axis_off()
    figure.suptitle(panel.title, fontsize=10)
    return figure


def _label(axes: Axes, panel: Panel) -> None:
    axes.xaxis.tick_top()
    plain: dict[str, Any] = {"fontsize": 8, "parse_math": False}  # $ is not TeX
    axes.set_xticks(range(len(panel.keys)), panel.keys, rotation=90, **plain)
    axes.set_yticks(range(len(panel.queries)), panel.queries, **plain)


def _colours(count: int) -> list:
    if count == 1:
        return ["#0b4fa3"]
    palette = matplotlib.colormaps["tab10" if count <= 10 else "hsv"]
    return [palette(i if count <= 10 else i / count) for i in range(count)]
