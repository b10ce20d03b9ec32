"""Clean a parallel corpus: RAW/{train,valid,test}.{SOURCE,TARGET} to CLEAN, plus report.json.

Every line is brought to Unicode NFC with single spaces. A training pair is dropped when a side is
not valid UTF-8, is empty, is too short or too long, when the lengths differ by more than a ratio,
or when the same pair came before; each is counted once, under the first of these that holds.
Validation and test pairs are never dropped: what is not valid UTF-8 there is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import unicodedata
from dataclasses import asdict, dataclass
from pathlib import Path

from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from parallel_text import (
    SPLITS,
    check_aligned,
    check_languages,
    decode,
    read_pairs,
    side_paths,
    with_progress,
)

REASONS = ("invalid_utf8", "empty", "too_short", "too_long", "ratio", "duplicate")


@dataclass(frozen=True)
class Limits:
    """What a training pair must satisfy; lengths are counted in words between spaces."""

    min_length: int
    max_length: int
    max_ratio: float

    def check(self) -> None:
        """BadInput when no pair could satisfy them."""
        if not 1 <= self.min_length <= self.max_length:
            raise BadInput("expected 1 <= --min-length <= --max-length")
        if self.max_ratio < 1:
            raise BadInput("expected --max-ratio of at least 1")


def normalise(line: str) -> str:
    """Unicode NFC, and single spaces for any white space (a carriage return too)."""
    return " ".join(unicodedata.normalize("NFC", line).split())


def reason_to_drop(source: str, target: str, limits: Limits) -> str | None:
    """Why a pair of normalised sentences does not belong in the training set; None if it does."""
    lengths = sorted((len(source.split()), len(target.split())))
    shorter, longer = lengths
    if shorter == 0:
        return "empty"
    if shorter < limits.min_length:
        return "too_short"
    if longer > limits.max_length:
        return "too_long"
    if longer > limits.max_ratio * shorter:
        return "ratio"
    return None


def clean_train(source: Path, target: Path, output: Path, limits: Limits) -> dict[str, int]:
    """Write the training pairs that are kept; {read, kept, and one count per reason}."""
    counts = dict.fromkeys(("read", "kept", *REASONS), 0)
    seen: set[bytes] = set()  # 8-byte digests: about 3 GB for the 36 million pairs of WMT14 EN-FR
    total = check_aligned(source, target)
    with (
        (output / source.name).open("w", encoding="utf-8", newline="\n") as source_out,
        (output / target.name).open("w", encoding="utf-8", newline="\n") as target_out,
    ):
        for pair in with_progress(read_pairs(source, target), "[clean] train", total):
            counts["read"] += 1
            try:
                one, other = (normalise(side.decode("utf-8")) for side in pair)
            except UnicodeDecodeError:
                counts["invalid_utf8"] += 1
                continue
            reason = reason_to_drop(one, other, limits)
            if reason is None:
                digest = hashlib.blake2b(f"{one}\n{other}".encode(), digest_size=8).digest()
                if digest in seen:
                    reason = "duplicate"
                seen.add(digest)
            counts[reason or "kept"] += 1
            if reason is None:
                source_out.write(one + "\n")
                target_out.write(other + "\n")
    if not counts["kept"]:
        raise BadInput(f"no pair of {source} and {target} is left after cleaning: {counts}")
    return counts


def check_held_out(source: Path, target: Path, output: Path) -> dict[str, int]:
    """Write every pair of a validation or test set; BadInput on a line that is not UTF-8."""
    counts = {"read": 0, "kept": 0, "empty_but_kept": 0}
    check_aligned(source, target)
    with (
        (output / source.name).open("w", encoding="utf-8", newline="\n") as source_out,
        (output / target.name).open("w", encoding="utf-8", newline="\n") as target_out,
    ):
        for number, (one, other) in enumerate(read_pairs(source, target), start=1):
            sides = normalise(decode(one, source, number)), normalise(decode(other, target, number))
            source_out.write(sides[0] + "\n")
            target_out.write(sides[1] + "\n")
            counts["empty_but_kept"] += not all(sides)
    counts["read"] = counts["kept"] = number
    return counts


def clean(raw: Path, output: Path, source: str, target: str, limits: Limits) -> None:
    """Clean the three splits of `raw` into the folder `output` and write its report.json."""
    report = {}
    for split in SPLITS:
        paths = raw / f"{split}.{source}", raw / f"{split}.{target}"
        if split == "train":
            report[split] = clean_train(*paths, output, limits)
        else:
            report[split] = check_held_out(*paths, output)
        summary = ", ".join(f"{name} {count:,}" for name, count in report[split].items() if count)
        print(f"[clean] {split}: {summary}", file=sys.stderr)
    text = json.dumps({"limits": asdict(limits), "pairs": report}, indent=1) + "\n"
    (output / "report.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, type=Path, help="folder of the raw text")
    parser.add_argument("--output", required=True, type=Path, help="folder for the clean text")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--min-length", type=int, default=1, help="words (default %(default)s)")
    parser.add_argument("--max-length", type=int, default=250, help="words (default %(default)s)")
    parser.add_argument("--max-ratio", type=float, default=1.5,
                        help="words of the longer side to the shorter (default %(default)s)")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    limits = Limits(args.min_length, args.max_length, args.max_ratio)
    limits.check()
    finish_step(
        args.output,
        inputs=side_paths(args.input, (args.source, args.target)),
        settings=asdict(limits),
        work=lambda folder: clean(args.input, folder, args.source, args.target, limits),
    )


if __name__ == "__main__":
    exit_cleanly(main)
