"""Binarise ENCODED/{train,valid,test}.{SOURCE,TARGET} with `fairseq-preprocess`, one dictionary
for both languages, into the folder that fairseq-train and fairseq-generate read."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from parallel_text import SPLITS, check_aligned, check_languages, side_paths


def preprocess(encoded: Path, source: str, target: str, workers: int, folder: Path) -> None:
    """Run fairseq-preprocess into `folder`; BadInput carries the end of its output if it fails."""
    for split in SPLITS:
        check_aligned(encoded / f"{split}.{source}", encoded / f"{split}.{target}")
    command = [
        *(sys.executable, "-m", "fairseq_cli.preprocess"),
        *("--source-lang", source, "--target-lang", target, "--joined-dictionary"),
        *("--trainpref", str(encoded / "train"), "--validpref", str(encoded / "valid")),
        *("--testpref", str(encoded / "test"), "--destdir", str(folder)),
        *("--workers", str(workers)),
    ]
    print(f"[data-bin] fairseq-preprocess with {workers} workers", file=sys.stderr)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        raise BadInput(f"fairseq-preprocess failed on {encoded}:\n{result.stdout[-2000:]}")
    for line in result.stdout.splitlines():
        if "replaced (by <unk>)" in line or "Dictionary:" in line:
            print(f"[data-bin] {line.rsplit('| ', 1)[-1]}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, type=Path, help="folder of the encoded text")
    parser.add_argument("--output", required=True, type=Path, help="folder for the binarised data")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--workers", type=int, default=2, help="processes (default %(default)s)")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    if args.workers < 1:
        raise BadInput("expected --workers of at least 1")
    finish_step(
        args.output,
        inputs=side_paths(args.input, (args.source, args.target)),
        settings={"source": args.source, "target": args.target},
        work=lambda folder: preprocess(
            args.input, args.source, args.target, args.workers, folder
        ),
    )


if __name__ == "__main__":
    exit_cleanly(main)
