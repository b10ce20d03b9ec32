"""Plots decoding times as bars."""

from __future__ import annotations

from typing import Any


def write_plot(rows: list[dict[str, Any]], path: str) -> None:
    """One group of bars for each beam size, in the format given by the suffix of ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    beams = list(dict.fromkeys(row["beam"] for row in rows))
    figure, panels = pyplot.subplots(1, len(beams), figsize=(6 * len(beams), 4), squeeze=False)
    for axes, beam in zip(panels[0], beams, strict=True):
        group = [row for row in rows if row["beam"] == beam]
        names = [f"{row['system']} {row['precision']}" for row in group]
        colours = ["tab:blue" if row["system"] == "plugin" else "tab:grey" for row in group]
        bars = axes.barh(names, [row["seconds"] for row in group], color=colours)
        axes.bar_label(bars, [f" {row['ratio_to_stock']:.1f} x" for row in group])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.set_title(f"Decoding, beam {beam}; x: stock's time over it")
        axes.margins(x=0.12)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
