"""Learn one joint sentencepiece BPE on both sides of CLEAN/train: joint.model and joint.vocab.

Trained straight on raw text (no tokeniser), with every character covered and no rewriting of
characters: clean.py has already normalised them, and what a model writes is scored as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import sentencepiece
from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from parallel_text import check_languages, read_lines


def learn(texts: list[Path], vocab_size: int, folder: Path) -> None:
    """Write joint.model and joint.vocab into `folder`; BadInput when the text has too few units."""
    for text in texts:
        for _ in read_lines(text):  # sentencepiece would replace what is not UTF-8 in silence
            pass
    try:
        sentencepiece.SentencePieceTrainer.train(
            input=[str(text) for text in texts],
            model_prefix=str(folder / "joint"),
            model_type="bpe",
            vocab_size=vocab_size,
            character_coverage=1.0,
            normalization_rule_name="identity",
            num_threads=1,
            minloglevel=1,
        )
    except (RuntimeError, OSError) as error:
        reason = str(error).rsplit("\n", 1)[-1].strip()
        raise BadInput(
            f"sentencepiece cannot learn --vocab-size {vocab_size} from "
            f"{' and '.join(map(str, texts))}: {reason}"
        ) from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, type=Path, help="folder of the clean text")
    parser.add_argument("--output", required=True, type=Path, help="folder for the model")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--vocab-size", required=True, type=int, help="of both languages together")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    texts = [args.input / f"train.{language}" for language in (args.source, args.target)]
    finish_step(
        args.output,
        inputs=texts,
        settings={"vocab_size": args.vocab_size, "sentencepiece": sentencepiece.__version__},
        work=lambda folder: learn(texts, args.vocab_size, folder),
    )


if __name__ == "__main__":
    exit_cleanly(main)
