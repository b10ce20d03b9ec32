"""Reads the folder of a run: log, checkpoints, scores and translations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...checkpoints.safe_loading import load_header
from ...deviations import run_deviations
from ...prepared_data import prepared_data
from ...scoring.score_file import ignores_case, read_scores
from ...scoring.translated_set import check_scored, translated_set
from ..scored_texts import scored_texts
from .manifest import Manifest
from .sentences import Sentence, translations
from .series import Saved, TrainingLog, read_log


@dataclass
class Checkpoint:
    """A checkpoint, with the epoch, updates and score in the log's entry."""

    name: str
    megabytes: float | None  # None: the log has an entry, but the file was removed
    epoch: int | None = None
    updates: int | None = None
    score: float | None = None


@dataclass
class Run:
    """One run.

    Attributes:
        machine: training hardware, from the manifest.
        commit: commit of the code, from the manifest.
        deviations: settings that differ from the paper; None if the settings are not known.
        scores: contents of score.json; None if there is none.
        lowercase: the score ignores case.
        sentences: the translated set.
        training_text: the target side of the clean training text.
        missing: a sentence for each part that cannot be shown, with the reason.
    """

    name: str
    log: TrainingLog
    path: Path  # the log
    machine: str | None = None
    commit: str | None = None
    deviations: list[str] | None = None
    scores: dict[str, Any] | None = None
    lowercase: bool = False
    sentences: list[Sentence] = field(default_factory=list)
    training_text: Path | None = None
    checkpoints: list[Checkpoint] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def find_log(path: Path) -> Path:
    """The training log in a run's folder, or ``path`` itself if it is a file.

    Raises:
        FileNotFoundError: there is no log.
    """
    if path.is_file():
        return path
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such folder; expected a run's folder, runs/EXPERIMENT")
    log = path / "train.log"
    if not log.is_file():
        raise FileNotFoundError(
            f"{path}: no training log: expected {log}, which recipes/train.sh writes; if it has"
            " another name, give the log itself"
        )
    return log


def read_run(path: Path, name: str) -> Run:
    """Reads a run, finished or not.

    Args:
        path: its folder or its log.

    Raises:
        OSError: there is no log, or it cannot be read.
        ValueError: it is not a log of fairseq-train.
    """
    file = find_log(path)
    log = read_log(file)
    run = Run(name, log, file)
    folder = path if path.is_dir() else None
    if log.unreadable_lines:
        run.missing.append(f"unreadable lines in the log: {log.unreadable_lines}")
    if folder is not None:
        run.checkpoints = _checkpoints(folder / "checkpoints", log)
        if log.settings is None:
            _take_settings(run, folder / "checkpoints/checkpoint_last.pt")
        manifest = Manifest(folder)
        run.machine, run.commit = manifest.machine, manifest.commit
        _take_scores(run, folder)
    if log.settings is None:
        run.missing.append("no settings: neither the log nor a checkpoint has all of them")
    else:
        try:
            run.deviations = run_deviations(log.settings)
        except ValueError as error:
            run.missing.append(f"the settings cannot be compared with the paper: {error}")
    return run


def _take_settings(run: Run, checkpoint: Path) -> None:
    try:
        settings = load_header(checkpoint).get("cfg")
    except (OSError, ValueError) as error:
        run.missing.append(str(error))
        return
    if settings is not None:
        run.log.settings = {
            part: vars(values) if hasattr(values, "__dict__") else values
            for part, values in dict(settings).items()
        }


def _checkpoints(folder: Path, log: TrainingLog) -> list[Checkpoint]:
    sizes = {path.name: path.stat().st_size / 1e6 for path in folder.glob("*.pt")}
    logged = {saved.name: saved for saved in log.saved}
    # Each save also writes these two, which the log does not mention.
    logged |= {name: saved for name, saved in _copies(log).items() if name in sizes}
    found = [
        Checkpoint(name, sizes.pop(name, None), saved.epoch, saved.updates, saved.score)
        for name, saved in logged.items()
    ]
    return found + [Checkpoint(name, size) for name, size in sorted(sizes.items())]


def _copies(log: TrainingLog) -> dict[str, Saved]:
    """The saves that checkpoint_last.pt and checkpoint_best.pt copy; later saves win ties."""
    largest = ((log.settings or {}).get("checkpoint") or {}).get("maximize_best_checkpoint_metric")
    scored = [(saved.score, saved) for saved in reversed(log.saved) if saved.score is not None]
    copies = {"checkpoint_last.pt": log.saved[-1]} if log.saved else {}
    if scored:
        choose = max if largest else min
        copies["checkpoint_best.pt"] = choose(scored, key=lambda pair: pair[0])[1]
    return copies


def _take_scores(run: Run, folder: Path) -> None:
    try:
        run.scores = read_scores(folder)
    except (FileNotFoundError, ValueError) as error:
        run.missing.append(str(error))
        return
    run.lowercase = ignores_case(run.scores)
    if "no_tree" in run.scores:
        run.missing.append(
            "no best and worst sentences: they are for translations, and these outputs are trees"
        )
        return
    try:
        hypotheses = folder / "hypotheses.txt"
        check_scored(folder, run.scores)
        evaluated = translated_set(hypotheses) or "test"
        source, reference = scored_texts(
            run.scores, prepared_data(folder), evaluated, run.log.settings
        )
        run.sentences = translations(source, reference, hypotheses, run.lowercase)
        # recipes/prepare.sh puts the texts below one folder, which may not be that of the run
        run.training_text = reference.parent.with_name("clean") / f"train{reference.suffix}"
    except (OSError, ValueError) as error:
        run.missing.append(f"no sentences: {error}")
