"""Plots tokens per second as bars."""

from __future__ import annotations

from typing import Any


def write_plot(rows: list[dict[str, Any]], path: str) -> None:
    """One bar for each row, in the format given by the suffix of ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [f"{row['system']}\n{row['precision']}" for row in rows]
    colours = ["tab:blue" if row["system"] == "plugin" else "tab:grey" for row in rows]
    figure, axes = pyplot.subplots(figsize=(1.2 + 1.1 * len(rows), 4))
    bars = axes.bar(names, [row["tokens_per_second"] for row in rows], color=colours)
    axes.bar_label(bars, [f"{row['ratio_to_stock']:.2f} x" for row in rows])
    axes.set_ylabel("target tokens per second")
    axes.set_title(f"Training {rows[0]['arch']}, {rows[0]['data']}; x: over stock")
    axes.margins(y=0.12)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
