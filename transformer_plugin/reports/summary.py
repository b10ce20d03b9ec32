"""``transformer-plugin summary``: examples, scores and speed of a run on one screen."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..scoring.text_lines import read_lines
from .training_report.series import read_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin summary``."""
    parser.add_argument("run", type=Path, help="folder of a finished experiment, runs/EXPERIMENT")
    parser.add_argument("--sentences", type=int, default=3, help="examples to show")


def main(args: argparse.Namespace) -> None:
    """Prints examples, scores, speed and the names of the files."""
    hypotheses = read_lines(args.run / "hypotheses.txt")
    scores = json.loads((args.run / "score.json").read_text(encoding="utf-8"))
    (source, reference) = test_texts(args.run)
    texts = list(zip(read_lines(source), read_lines(reference), hypotheses, strict=True))
    step = max(1, len(texts) // args.sentences)
    for sentence, expected, translation in texts[::step][: args.sentences]:
        print(f"source       {sentence}\nreference    {expected}\ntranslation  {translation}\n")
    print(f"BLEU {scores['bleu']:.2f} ({scores['signature']}), chrF {scores['chrf']:.2f}")
    speed = read_log(args.run / "train.log").tokens_per_second()
    if speed is not None:
        print(f"trained at {speed:,.0f} target tokens a second")
    print(f"written to {args.run.resolve()}: ", end="")
    print("data-bin/ checkpoints/ train.log hypotheses.txt score.json manifest.json")


def test_texts(run: Path) -> tuple[Path, Path]:
    """Source and reference of the test set, in the languages of data-bin.

    Raises:
        FileNotFoundError: there is no binarised test set.
    """
    for path in (run / "data-bin").glob("test.*-*.*.idx"):
        source, target = path.name.split(".")[1].split("-")
        return run / "raw" / f"test.{source}", run / "raw" / f"test.{target}"
    raise FileNotFoundError(f"{run / 'data-bin'}: no binarised test set")
