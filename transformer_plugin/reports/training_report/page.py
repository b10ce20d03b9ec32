"""Renders the report as a single HTML file without external resources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...checkpoints.last_checkpoints import is_numbered
from ...scoring.compare import TITLES, rows, title
from ...scoring.significance import METRICS
from ...single_page import inlined
from .breakdown import MOST_LINES, FrequencyGroup, LengthGroup, by_frequency, by_length
from .figures import RenderedFigure
from .phases import PHASES
from .results import headline, results, share, state
from .run import Checkpoint, Run
from .sentences import best_and_worst, most_different
from .settings import shown_settings
from .word_differences import differences

_TEMPLATE = Path(__file__).with_name("template")


class MetricComparison(NamedTuple):
    """Scores by one metric: the rows of ``scoring.compare``, and what they mean in words."""

    title: str
    rows: list[list[str]]
    conclusions: list[str]


class Breakdown(NamedTuple):
    """The translations of runs that share a test set, broken down.

    Attributes:
        training_text: the text in which words were counted.
    """

    runs: list[Run]
    lengths: list[LengthGroup]
    frequencies: list[FrequencyGroup]
    training_text: Path | None


def render(
    runs: list[Run],
    figures: list[RenderedFigure],
    absent: list[str],
    comparison: dict[str, Any] | None,
    now: datetime,
) -> str:
    """The page.

    Args:
        figures: the figures of these runs.
        absent: a line for each missing figure.
        comparison: the scores, from ``scoring.compare``; may be None.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (_TEMPLATE / "report.js").read_bytes()
    settings = [run.log.settings for run in runs if run.log.settings is not None]
    groups = _with_one_test_set(runs)
    html = environment.get_template("page.html").render(
        runs=runs,
        figures=figures,
        pointers={figure.name: figure.pointer for figure in figures if figure.pointer},
        absent=absent,
        comparisons=_compared(comparison) if comparison else [],
        results=results(runs),
        states=[state(run, now) for run in runs],
        headlines=[headline(run) for run in runs],
        phases=[(phase, [share(run, phase) for run in runs]) for phase in (*PHASES, "idle")],
        settings=shown_settings(settings) if len(settings) == len(runs) else [],
        breakdowns=[_broken_down(group) for group in groups],
        pairs=most_different(runs[0].sentences, runs[1].sentences)
        if len(runs) == 2 and groups == [runs]
        else [],
        best_and_worst=best_and_worst,
        differences=differences,
        most_lines=MOST_LINES,
        checkpoints=[_folded(run.checkpoints) for run in runs],
        zip=zip,
        script_hash=base64.b64encode(hashlib.sha256(script).digest()).decode(),
        now=now.isoformat(" ", "minutes"),
    )
    return inlined(html, _TEMPLATE)


def _compared(comparison: dict[str, Any]) -> list[MetricComparison]:
    return [
        MetricComparison(
            title(comparison, metric), rows(comparison, metric), _conclusions(comparison, metric)
        )
        for metric in METRICS
    ]


def _conclusions(comparison: dict[str, Any], metric: str) -> list[str]:
    """What the bootstrap says about each system except the baseline."""
    baseline, *others = comparison["systems"]
    tested = comparison["tests"]["bootstrap"]["systems"][1:] if others else []
    lines = []
    for system, test in zip(others, tested, strict=True):
        difference = system[metric]["mean"] - baseline[metric]["mean"]
        side = "below" if difference < 0 else "above"
        p = test[metric]["p_value"]
        verdict = "a significant difference" if p < 0.05 else "not a significant difference"
        lines.append(
            f"{system['name']} is {abs(difference):.2f} {TITLES[metric]} {side}"
            f" {baseline['name']}, {verdict} (p = {p:.4f})."
        )
    return lines


def _with_one_test_set(runs: list[Run]) -> list[list[Run]]:
    """The runs that have translations, grouped by their references and by whether case counts."""
    groups: dict[tuple[bool, tuple[str, ...]], list[Run]] = {}
    for run in runs:
        if run.sentences:
            references = tuple(sentence.reference for sentence in run.sentences)
            groups.setdefault((run.lowercase, references), []).append(run)
    return list(groups.values())


def _broken_down(runs: list[Run]) -> Breakdown:
    references = [sentence.reference for sentence in runs[0].sentences]
    systems = [[sentence.translation for sentence in run.sentences] for run in runs]
    lowercase = runs[0].lowercase
    texts = [run.training_text for run in runs]
    text = next((path for path in texts if path is not None and path.is_file()), None)
    return Breakdown(
        runs,
        by_length(references, systems, lowercase),
        [] if text is None else by_frequency(references, systems, text, lowercase),
        text,
    )


def _folded(checkpoints: Sequence[Checkpoint]) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """The checkpoints to show, and those to fold: of earlier epochs, or deleted."""

    def is_old(checkpoint: Checkpoint) -> bool:
        return checkpoint.megabytes is None or is_numbered(checkpoint.name)

    old = [checkpoint for checkpoint in checkpoints if is_old(checkpoint)]
    return [checkpoint for checkpoint in checkpoints if checkpoint not in old], old
