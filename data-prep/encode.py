"""Split CLEAN/{train,valid,test}.{SOURCE,TARGET} into subwords with spaces between them.

`--remove-bpe sentencepiece` of fairseq-generate undoes it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import sentencepiece
from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from parallel_text import (
    SPLITS,
    check_languages,
    count_lines,
    read_lines,
    side_paths,
    with_progress,
)


def load_model(path: Path) -> sentencepiece.SentencePieceProcessor:
    """The subword model; BadInput when the file is missing or is not one."""
    if not path.is_file():
        raise BadInput(f"{path} is missing: learn it with data-prep/subwords.py first")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise BadInput(f"{path} is not a sentencepiece model: learn it again") from None


def encode(texts: list[Path], model: Path, folder: Path) -> None:
    """Write each text's subwords under the same name into `folder`."""
    processor = load_model(model)
    for text in texts:
        lines = with_progress(read_lines(text), f"[encoded] {text.name}", count_lines(text))
        with (folder / text.name).open("w", encoding="utf-8", newline="\n") as output:
            for line in lines:
                output.write(" ".join(processor.encode(line, out_type=str)) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, type=Path, help="folder of the clean text")
    parser.add_argument("--model", required=True, type=Path, help="the joint.model of subwords.py")
    parser.add_argument("--output", required=True, type=Path, help="folder for the encoded text")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    texts = side_paths(args.input, (args.source, args.target))
    if not args.model.is_file():
        load_model(args.model)
    finish_step(
        args.output,
        inputs=[*texts, args.model],
        settings={"splits": list(SPLITS)},
        work=lambda folder: encode(texts, args.model, folder),
    )


if __name__ == "__main__":
    exit_cleanly(main)
