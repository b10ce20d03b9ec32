"""Clean a parallel corpus: RAW/{train,valid,test}.{SOURCE,TARGET} to CLEAN, plus report.json.

Every line is normalised to Unicode NFC with single spaces; --moses also normalises punctuation and
tokenises, and --lowercase changes to lower case. A training pair is dropped when a side is not
valid UTF-8, has a NUL byte, is empty, too short or too long, when the ratio of the lengths is too
high, or when the pair is a duplicate; it is counted once, under the first of these reasons.
Validation and test pairs are never dropped: a line that cannot be a sentence is an error there.

If a corpus has no validation set (RAW/hold-out.json), every Nth clean training pair is held out as
one. Duplicates are then kept, as in the split of the literature. CLEAN/valid.raw.LANGUAGE has these
pairs before cleaning, to score translations with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.errors import BadInput, exit_cleanly
from steps.progress import progress
from steps.step import run_step
from steps.workers import add_workers, ordered_map, pair_blocks
from text.cleaning import (
    REASONS,
    CleanBlock,
    Limits,
    Normalisation,
    clean_block,
    clean_held_out_block,
)
from text.parallel import HOLD_OUT, SPLITS, check_aligned, check_languages, side_paths

if TYPE_CHECKING:
    from text.duplicates import DigestSet


def new_pairs(block: CleanBlock, seen: DigestSet) -> tuple[bytes, bytes]:
    """The pairs of a block that are not duplicates."""
    new = seen.add(block.digests)
    if new.all():
        return block.sides
    one, other = (
        b"".join(line for line, is_new in zip(side.splitlines(True), new, strict=True) if is_new)
        for side in block.sides
    )
    return one, other


def clean_train(
    paths: list[Path],
    output: Path,
    limits: Limits,
    normalise: Normalisation,
    every: int,
    workers: int,
) -> dict[str, dict[str, int]]:
    """Write the training pairs that are kept, every Nth to valid; return the counts."""
    from text.duplicates import DigestSet  # slow, and not needed for a step that is done

    counts = Counter(dict.fromkeys(("read", "kept", *REASONS), 0))
    seen = DigestSet()
    with ExitStack() as files:
        bar = files.enter_context(progress("[clean] train", check_aligned(*paths), "pairs"))
        outputs = [
            [
                files.enter_context((output / f"{split}.{language}").open("wb"))
                for language in normalise.languages
            ]
            for split in (("train", "valid", "valid.raw") if every else ("train",))
        ]
        clean_lines = partial(clean_block, limits=limits, normalise=normalise, with_raw=bool(every))
        for block in ordered_map(clean_lines, pair_blocks(*paths), workers):
            counts.update(block.counts)
            before = counts["kept"]
            sides = block.sides if every else new_pairs(block, seen)
            kept = sides[0].count(b"\n")
            counts["kept"] += kept
            counts["duplicate"] += len(block.digests) // 8 - kept
            for number, side in enumerate(sides):
                if not every:
                    outputs[0][number].write(side)
                    continue
                held = slice(-(before + 1) % every, None, every)
                lines = side.splitlines(True)
                outputs[1][number].writelines(lines[held])
                outputs[2][number].writelines(block.raw[number].splitlines(True)[held])
                del lines[held]
                outputs[0][number].writelines(lines)
            bar.update(block.counts["read"])
    held = counts["kept"] // every if every else 0
    counts["kept"] -= held
    if not counts["kept"]:
        raise BadInput(
            f"no pair of {paths[0]} and {paths[1]} is left after cleaning: {dict(counts)}"
        )
    return {"train": dict(counts), **({"valid": {"kept": held}} if every else {})}


def numbered(blocks: Iterator[tuple[list[bytes], list[bytes]]]) -> Iterator[Any]:
    """(number of the first line, block) of each block."""
    start = 1
    for block in blocks:
        yield start, block
        start += len(block[0])


def clean_held_out(
    paths: list[Path], output: Path, normalise: Normalisation, workers: int
) -> dict[str, int]:
    """Write every pair of a validation or test set; return the counts.

    BadInput if a line cannot be a sentence, or if half of the lines of a side are split into
    subwords: scores are computed on plain text.
    """
    pairs, empty = check_aligned(*paths), 0
    marked: tuple[list[int], list[int]] = ([], [])
    check = partial(clean_held_out_block, names=(str(paths[0]), str(paths[1])), normalise=normalise)
    with (output / paths[0].name).open("wb") as one, (output / paths[1].name).open("wb") as other:
        for block in ordered_map(check, numbered(pair_blocks(*paths)), workers):
            for file, side, found, lines in zip(
                (one, other), block.sides, marked, block.marked, strict=True
            ):
                file.write(side)
                found.extend(lines)
            empty += block.empty
    for path, lines in zip(paths, marked, strict=True):
        if 2 * len(lines) >= pairs:
            raise BadInput(
                f"{path}, line {lines[0]}: {len(lines):,} of {pairs:,} lines hold '@@ ' "
                "or '\u2581', the marks of subwords; expected plain text: give the text "
                "before it was split"
            )
    return {"read": pairs, "kept": pairs, "empty_but_kept": empty}


def clean(
    raw: Path, output: Path, limits: Limits, normalise: Normalisation, every: int, workers: int
) -> None:
    """Clean the splits of `raw` into the folder `output` and write its report.json."""
    report: dict[str, dict[str, int]] = {}
    for split in SPLITS:
        paths = [raw / f"{split}.{language}" for language in normalise.languages]
        if split == "train":
            report |= clean_train(paths, output, limits, normalise, every, workers)
        elif split not in report:
            report[split] = clean_held_out(paths, output, normalise, workers)
    unchanged = []
    for split, counts in report.items():
        if set(counts.values()) <= {0, counts["kept"]}:
            unchanged.append(f"{split} {counts['kept']:,}")
            continue
        summary = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
        print(f"[clean] {split}: {summary}", file=sys.stderr)
    if unchanged:
        print(f"[clean] all pairs kept: {', '.join(unchanged)}", file=sys.stderr)
    found = {"limits": asdict(limits), "form": asdict(normalise), "pairs": report}
    text = json.dumps(found, indent=1) + "\n"
    (output / "report.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--input", required=True, type=Path, help="folder of the raw text")
    parser.add_argument("--output", required=True, type=Path, help="folder for the clean text")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument(
        "--min-length",
        type=int,
        default=1,
        help="least words of a training sentence (default %(default)s)",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        default=250,
        help="most words of a training sentence (default %(default)s)",
    )
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=1.5,
        help="ratio of words of the longer to the shorter side (default %(default)s)",
    )
    parser.add_argument("--moses", action="store_true", help="normalise punctuation and tokenise")
    parser.add_argument("--lowercase", action="store_true", help="convert the text to lower case")
    add_workers(parser)
    args = parser.parse_args()
    check_languages(args.source, args.target)
    limits = Limits(args.min_length, args.max_length, args.max_ratio)
    limits.check()
    normalise = Normalisation((args.source, args.target), args.moses, args.lowercase)
    hold_out = args.input / HOLD_OUT
    every = json.loads(hold_out.read_text(encoding="utf-8"))["every"] if hold_out.is_file() else 0
    inputs = side_paths(args.input, normalise.languages)
    if every:
        inputs = [path for path in inputs if not path.name.startswith("valid.")] + [hold_out]
    run_step(
        args.output,
        inputs=inputs,
        settings={**asdict(limits), **asdict(normalise)},
        work=lambda folder: clean(args.input, folder, limits, normalise, every, args.workers),
    )


if __name__ == "__main__":
    exit_cleanly(main)
