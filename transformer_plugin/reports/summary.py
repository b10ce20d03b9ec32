"""``transformer-plugin summary``: scores, sample translations, speed and files of a run."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ..files import shown_path
from ..prepared_data import prepared_data
from ..scoring.score_file import read_scores, score_lines
from ..scoring.translated_set import check_scored, translated_set
from ..text_lines import read_parallel
from .scored_texts import scored_texts
from .training_report.series import TrainingLog, read_log

_FILES = {  # files of a run
    "checkpoints/averaged.pt": "the model",
    "hypotheses.txt": "translations of the {} set",
    "train.log": "the output of training",
    "manifest.json": "commands, versions, data and hardware",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin summary``."""
    parser.add_argument("run", type=Path, help="folder of a finished experiment, runs/EXPERIMENT")
    parser.add_argument("--data", type=Path, help="folder of raw/ to data-bin/; default:"
                        " that which the run was trained on")  # fmt: skip
    parser.add_argument("--sentences", type=int, default=3, help="translations to show"
                        " (default %(default)s)")  # fmt: skip


def main(args: argparse.Namespace) -> None:
    """Prints the summary.

    Raises:
        OSError: a file of the run is missing.
        ValueError: a file is damaged.
    """
    print(summary(args.run, args.data or prepared_data(args.run), args.sentences))


def summary(
    run: Path,
    data: Path,
    sentences: int = 3,
    experiment: str | None = None,
    with_scores: bool = True,
) -> str:
    """Scores, sample translations, speed, files, and what to do next.

    Args:
        data: folder of raw/ ... data-bin/.
        sentences: number of samples.
        experiment: its name, for the suggested commands.
        with_scores: False if they have just been printed.

    Raises:
        OSError: a file of the run is missing, or the references have changed since it was scored.
        ValueError: a file is damaged, or scores and translations are of different sets.
    """
    scores = read_scores(run)
    check_scored(run, scores)
    evaluated = translated_set(run / "hypotheses.txt") or "test"
    log = read_log(run / "train.log") if (run / "train.log").exists() else None
    scored = scored_texts(scores, data, evaluated, log.settings if log else None)
    texts = read_parallel(*scored, run / "hypotheses.txt")
    samples = list(zip(*texts, strict=True))
    samples = samples[:: max(1, len(samples) // max(1, sentences))][:sentences]
    lines = score_lines(scores) if with_scores else []
    for sample in samples:
        names = ("source", "reference", "translation")
        lines += ["", *(f"{name:<12} {text}" for name, text in zip(names, sample, strict=True))]
    lines += ["", f"{_speed(log)}; files in {shown_path(run)}/:"]
    files = {name: text.format(evaluated) for name, text in _FILES.items()}
    lines += [f"  {name:<24} {text}" for name, text in files.items() if (run / name).exists()]
    if experiment and samples:
        lines += ["", "next:", *_next(run, data, log, experiment, samples[0][0])]
    return "\n".join(lines)


def _speed(log: TrainingLog | None) -> str:
    if log is None:
        return "trained elsewhere"
    speed = log.tokens_per_second()
    at = f" at {speed:,.0f} target tokens a second" if speed is not None else ""
    return f"{log.updates:,} updates{at}"


def _next(
    run: Path, data: Path, log: TrainingLog | None, experiment: str, sentence: str
) -> list[str]:
    """Suggested next commands, for the root of the repository; recipes find .venv themselves."""
    repository = Path(__file__).resolve().parents[2]
    is_elsewhere = not Path("recipes").is_dir() and (repository / "recipes").is_dir()
    paths = [path.absolute() if is_elsewhere else shown_path(path) for path in (run, data)]
    folder, data_folder = (shlex.quote(str(path)) for path in paths)
    checkpoint = f"{folder}/checkpoints/averaged.pt"
    knobs = f"DATA_DIR={data_folder} CHECKPOINT={checkpoint} "
    if folder == data_folder == shlex.quote(f"runs/{experiment}"):
        knobs = ""
    given = f"--data {data_folder}"
    if data != run:  # one of several runs on the same data
        given += f" --path {checkpoint}"
    commands = [f"  cd {shlex.quote(str(repository))}"] if is_elsewhere else []
    commands += [
        f"  echo {shlex.quote(sentence)} | {knobs}recipes/translate.sh {shlex.quote(experiment)}",
        "  . .venv/bin/activate",
        f"  transformer-plugin report {folder}  # curves, and the best and worst translations",
    ]
    model = ((log.settings if log else None) or {}).get("model") or {}
    if str(model.get("_name", "vaswani_")).startswith("vaswani_"):  # others give no weights
        commands.append(f"  transformer-plugin attention {given} --output {folder}/attention.html")
    return [*commands, "more: docs/tutorial.md"]
