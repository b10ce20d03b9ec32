"""The texts and numbers of a run in a report."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from .run import Run
from .series import Series, best

_NONE = "–"


def headline(run: Run) -> list[tuple[str, str]]:
    """The most important facts, with their names; unknown ones are omitted."""
    scores, log = run.scores or {}, run.log
    named = (("BLEU", "bleu"), ("chrF", "chrf"), ("F1", "f1"))
    facts = [(name, f"{scores[key]:.2f}") for name, key in named if key in scores]
    if "no_tree" in scores:
        facts.append(("no tree", f"{_no_tree(scores):.1f} %"))
    if epochs := log.epochs["epoch"].values:
        facts.append(("epochs", f"{epochs[-1]:.0f}"))
    if log.phases.total:
        facts.append(("duration", duration(log.phases.total)))
    if arch := ((log.settings or {}).get("model") or {}).get("_name"):
        facts.append(("model", str(arch)))
    if log.parameters is not None:
        facts.append(("parameters", f"{log.parameters:,}"))
    return facts


def state(run: Run, now: datetime) -> str:
    """The progress of a run."""
    log = run.log
    total = f" of {log.total_updates:,}" if log.total_updates else ""
    text = f"{log.updates:,}{total} updates"
    if log.ended:
        return f"ended: {text}"
    if log.last is not None:
        text += f"; the log's last entry is {duration((now - log.last).total_seconds())} old"
    left = log.seconds_left()
    return f"not ended: {text}" + (f"; {duration(left)} left at this speed" if left else "")


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=max(0, round(seconds))))


def share(run: Run, phase: str) -> str:
    """The time of a phase, with its share of the total."""
    phases = run.log.phases
    if phase == "idle":
        return duration(phases.idle)
    part = 100 * phases.seconds[phase] / phases.total if phases.total else 0
    return f"{duration(phases.seconds[phase])} ({part:.1f} %)"


def results(runs: list[Run]) -> list[tuple[str, list[str]]]:
    """The rows of the table of results; those that no run has are omitted."""
    table = [(name, [value(run) for run in runs]) for name, value in _RESULTS]
    return [(name, values) for name, values in table if {*values} != {_NONE}]


def _number(value: float | None, form: str = ",.0f", unit: str = "") -> str:
    return _NONE if value is None or not math.isfinite(value) else f"{value:{form}}{unit}"


def _score(name: str) -> Callable[[Run], str]:
    return lambda run: _number((run.scores or {}).get(name), ".2f")


def _repaired_f1(run: Run) -> str:
    return _number((run.scores or {}).get("repaired", {}).get("f1"), ".2f")


def _no_tree(scores: dict[str, Any]) -> float:
    """The percentage of a parser's outputs that are not trees."""
    return 100 * scores["no_tree"] / scores["sentences"]


def _outputs_that_are_not_trees(run: Run) -> str:
    scores = run.scores or {}
    if "no_tree" not in scores:
        return _NONE
    return f"{_no_tree(scores):.1f} % ({scores['no_tree']:,} of {scores['sentences']:,})"


def _of_valid(name: str, largest: bool = False) -> Callable[[Run], str]:
    def text(run: Run) -> str:
        tables = list(run.log.valid.values())  # fairseq uses the first as well
        found = best(tables[0].get(name, Series()), largest) if tables else None
        return _NONE if found is None else f"{found[1]:g} (update {found[0]:,})"

    return text


def _last(name: str) -> Callable[[Run], str]:
    def text(run: Run) -> str:
        values = run.log.points[name].values
        return f"{values[-1]:g}" if values else _NONE

    return text


def _mean(name: str, unit: str) -> Callable[[Run], str]:
    return lambda run: _number(run.log.mean_rate(name), ".3g", unit)


_RESULTS: tuple[tuple[str, Callable[[Run], str]], ...] = (
    ("evaluated set", lambda run: str((run.scores or {}).get("set", _NONE))),
    ("BLEU", _score("bleu")),
    ("F1", _score("f1")),
    ("signature", lambda run: str((run.scores or {}).get("signature", _NONE))),
    ("chrF", _score("chrf")),
    ("signature of chrF", lambda run: str((run.scores or {}).get("chrf_signature", _NONE))),
    ("precision", _score("precision")),
    ("recall", _score("recall")),
    ("complete match", _score("complete_match")),
    ("tagging accuracy", _score("tagging")),
    ("outputs that are not trees", _outputs_that_are_not_trees),
    ("F1 with these repaired", _repaired_f1),
    ("best loss on valid", _of_valid("loss")),
    ("best perplexity on valid", _of_valid("ppl")),
    ("best BLEU on valid", _of_valid("bleu", largest=True)),
    ("best chrF on valid", _of_valid("chrf", largest=True)),
    ("last loss of training", _last("loss")),
    ("target tokens a second", lambda run: _number(run.log.tokens_per_second())),
    ("training FLOPs", lambda run: _number(run.log.attempts.flops or None, ".3g")),
    ("TFLOP/s, mean", _mean("tflops", "")),
    ("model-FLOPs utilisation, mean", _mean("mfu", " %")),
    ("parameters", lambda run: _number(run.log.parameters)),
    ("machine", lambda run: run.machine or _NONE),
    ("commit", lambda run: run.commit or _NONE),
    ("duration", lambda run: duration(run.log.phases.total)),
    ("starts", lambda run: str(run.log.starts)),
)
