"""Renders the report as a single HTML file without external resources."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...scoring.compare import rows, title
from ...scoring.significance import METRICS
from .figures import Drawn
from .phases import PHASES
from .run import Run
from .series import Series, best
from .settings import differing

_HERE = Path(__file__).parent
_NONE = "–"


def render(
    runs: list[Run],
    figures: list[Drawn],
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
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    settings = [run.log.settings for run in runs]
    return environment.get_template("page.html").render(
        runs=runs,
        figures=figures,
        absent=absent,
        comparisons=[(title(comparison, metric), rows(comparison, metric)) for metric in METRICS]
        if comparison
        else [],
        results=[(name, [row(run) for run in runs]) for name, row in _RESULTS],
        states=[state(run, now) for run in runs],
        headlines=[headline(run) for run in runs],
        phases=[(phase, [_share(run, phase) for run in runs]) for phase in (*PHASES, "idle")],
        differing=differing([s for s in settings if s is not None]) if None not in settings else {},
        now=now.isoformat(" ", "minutes"),
    )


def headline(run: Run) -> str:
    """Scores, epochs, duration and model in one line; missing values are omitted."""
    scores, log = run.scores or {}, run.log
    named = (("BLEU", "bleu"), ("chrF", "chrf"), ("F1", "f1"))
    parts = [f"{name} {scores[key]:.2f}" for name, key in named if key in scores]
    if epochs := log.epochs["epoch"].values:
        parts.append(f"{epochs[-1]:.0f} epochs in {_duration(log.phases.total)}")
    if arch := ((log.settings or {}).get("model") or {}).get("_name"):
        parts.append(str(arch))
    if log.parameters is not None:
        parts.append(f"{log.parameters:,} parameters")
    return ", ".join(parts) or "nothing is known yet"


def state(run: Run, now: datetime) -> str:
    """The progress of a run."""
    log = run.log
    total = f" of {log.total_updates:,}" if log.total_updates else ""
    text = f"{log.updates:,}{total} updates"
    if log.ended:
        return f"ended: {text}"
    if log.last is not None:
        text += f"; the log's last entry is {_duration((now - log.last).total_seconds())} old"
    left = log.seconds_left()
    return f"not ended: {text}" + (f"; {_duration(left)} left at its speed" if left else "")


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=max(0, round(seconds))))


def _share(run: Run, phase: str) -> str:
    phases = run.log.phases
    if phase == "idle":
        return _duration(phases.idle)
    share = 100 * phases.seconds[phase] / phases.total if phases.total else 0
    return f"{_duration(phases.seconds[phase])} ({share:.1f} %)"


def _number(value: float | None, form: str = ",.0f", unit: str = "") -> str:
    return _NONE if value is None or not math.isfinite(value) else f"{value:{form}}{unit}"


def _score(name: str) -> Callable[[Run], str]:
    return lambda run: _number((run.scores or {}).get(name), ".2f")


def _of_valid(name: str, largest: bool = False) -> Callable[[Run], str]:
    def text(run: Run) -> str:
        tables = list(run.log.valid.values())  # fairseq uses the first as well
        found = best(tables[0].get(name, Series()), largest) if tables else None
        return _NONE if found is None else f"{found[1]:g} (update {found[0]:,})"

    return text


def _last(name: str) -> Callable[[Run], str]:
    def text(run: Run) -> str:
        series = run.log.train.get(name) or run.log.epochs.get(name) or Series()
        return f"{series.values[-1]:g}" if series.values else _NONE

    return text


def _mean(name: str, unit: str) -> Callable[[Run], str]:
    def text(run: Run) -> str:
        values = run.log.train.get(name, Series()).values
        return _number(sum(values) / len(values) if values else None, ".3g", unit)

    return text


_RESULTS: tuple[tuple[str, Callable[[Run], str]], ...] = (
    ("BLEU on the test set", _score("bleu")),
    ("signature", lambda run: str((run.scores or {}).get("signature", _NONE))),
    ("chrF", _score("chrf")),
    ("signature of chrF", lambda run: str((run.scores or {}).get("chrf_signature", _NONE))),
    ("best loss on valid", _of_valid("loss")),
    ("best perplexity on valid", _of_valid("ppl")),
    ("best BLEU on valid", _of_valid("bleu", largest=True)),
    ("last loss of training", _last("loss")),
    ("target tokens a second", lambda run: _number(run.log.tokens_per_second())),
    ("TFLOP/s, mean", _mean("tflops", "")),
    ("model-FLOPs utilisation, mean", _mean("mfu", " %")),
    ("parameters", lambda run: _number(run.log.parameters)),
    ("machine", lambda run: run.machine or _NONE),
    ("commit", lambda run: run.commit or _NONE),
    ("time", lambda run: _duration(run.log.phases.total)),
    ("starts", lambda run: str(run.log.starts)),
)
