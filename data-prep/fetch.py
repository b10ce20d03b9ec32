"""Fetch a corpus into {train,valid,test}.{SOURCE,TARGET}, plain text.

The corpus is `toy`, which is generated; or the name or path of a manifest of data-prep/corpora/,
which is read from its public addresses or from DATA_MIRROR; or your own parallel files, given with
--train, --valid and --test: PREFIX stands for PREFIX.SOURCE and PREFIX.TARGET, each of which may be
compressed (.gz); several are PREFIX,PREFIX.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sources import user_files
from sources.archives import extract
from sources.file_formats import segment_numbers, sentences
from sources.manifests import Part, held_out, parts, read_manifest
from sources.mirror import fetch_file, other_editions
from steps.errors import BadInput, exit_cleanly
from steps.progress import progress
from steps.step import recorded_settings, run_step
from text.parallel import HOLD_OUT, SPLITS, check_aligned, check_languages, check_utf8
from toy.corpus import write_toy_corpus


def append_side(path: Path, part: Part, output: Path) -> int:
    """Add the sentences of one side of a part to `output` and return their number."""
    lines = 0
    with output.open("ab") as file:
        for sentence in progress(f"[raw] {part.name}", None, "lines", sentences(path, part.name)):
            file.write(sentence + b"\n")
            lines += 1
    return lines


def append_part(paths: Sequence[Path], sides: Sequence[Part], outputs: Sequence[Path]) -> None:
    """Add a part to its split; BadInput if its two sides are not aligned."""
    numbers = [segment_numbers(path, side.name) for path, side in zip(paths, sides, strict=True)]
    counts = [append_side(*side) for side in zip(paths, sides, outputs, strict=True)]
    if counts[0] != counts[1]:
        raise BadInput(
            f"{sides[0].name} has {counts[0]:,} lines but {sides[1].name} has {counts[1]:,}: "
            "the sides are misaligned"
        )
    if not counts[0]:
        raise BadInput(f"{sides[0].name} is empty: expected one sentence per line")
    if numbers[0] != numbers[1]:
        raise BadInput(f"the segments of {sides[0].name} and {sides[1].name} have different ids")


def fetch(
    manifest: dict[str, Any],
    wanted: dict[str, list[tuple[Part, Part]]],
    source: str,
    target: str,
    downloads: Path,
    folder: Path,
) -> None:
    """Fill `folder` with the wanted parts of a corpus. Each archive is read once."""
    for split, pairs in wanted.items():
        outputs = [folder / f"{split}.{language}" for language in (source, target)]
        archives: dict[str, list[tuple[Part, Part]]] = {}
        for sides in pairs:
            archives.setdefault(sides[0].file, []).append(sides)
        for group in archives.values():
            members: dict[Part, Path] = {}
            for side in (side for sides in group for side in sides if side.member):
                members.setdefault(side, folder / f".member{len(members)}")
            files = dict.fromkeys(side.file for sides in group for side in sides)
            print(f"[raw] {', '.join(files)}", file=sys.stderr)
            local = {file: fetch_file(manifest, file, downloads) for file in files}
            for file in files:
                if chosen := {
                    str(side.member): path for side, path in members.items() if side.file == file
                }:
                    extract(local[file], chosen)
            for sides in group:
                append_part([members.get(side, local[side.file]) for side in sides], sides, outputs)
            for path in members.values():
                path.unlink()
    if every := held_out(manifest):
        (folder / HOLD_OUT).write_text(json.dumps({"every": every}) + "\n", encoding="utf-8")


def check_splits(folder: Path, source: str, target: str, known: dict[str, int]) -> None:
    """Check and report each split; `known`: numbers of pairs of the public corpus."""
    for split in SPLITS:
        paths = [folder / f"{split}.{language}" for language in (source, target)]
        if split == "valid" and (folder / HOLD_OUT).is_file():
            print("[raw] valid: held out of train by the next step", file=sys.stderr)
            continue
        pairs = check_aligned(*paths)
        if split != "train":  # clean.py drops and counts bad lines of train
            for path in paths:
                check_utf8(path)
        print(f"[raw] {split}: {pairs:,} pairs", file=sys.stderr)
        if pairs != known.get(split, pairs):
            print(
                f"[raw] WARNING: the public {split} has {known[split]:,} pairs: scores will "
                "not be comparable with published ones",
                file=sys.stderr,
            )


def fetch_corpus(args: argparse.Namespace) -> None:
    """Fetch the corpus of a manifest into --output."""
    manifest = read_manifest(args.corpus)
    wanted = parts(manifest, args.source, args.target, args.variant)
    known = {}
    for split, pairs in manifest.get("pairs", {}).items():
        variant = args.variant or next(iter(manifest.get("variants", {})), "")
        known[split] = pairs.get(variant) if isinstance(pairs, dict) else pairs
    known = {split: pairs for split, pairs in known.items() if pairs}
    names = {
        split: [side.name for sides in pairs for side in sides] for split, pairs in wanted.items()
    }
    files = {
        side.file: manifest["files"][side.file]
        for pairs in wanted.values()
        for sides in pairs
        for side in sides
    }

    def work(folder: Path) -> None:
        fetch(manifest, wanted, args.source, args.target, args.downloads, folder)
        check_splits(folder, args.source, args.target, known)

    settings = {"parts": names, "files": files, "hold_out": held_out(manifest)}
    before = recorded_settings(args.output).get("other_editions", {})
    settings["other_editions"] = other_editions(manifest, files, before)
    run_step(args.output, inputs=[], work=work, settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", help="toy, a manifest's name, or its path")
    parser.add_argument("--variant", default="", help="variant of the corpus; default: its first")
    for split in SPLITS:
        parser.add_argument(
            f"--{split}",
            default="",
            metavar="PREFIX[,PREFIX]",
            help="files of your own, PREFIX.SOURCE and PREFIX.TARGET",
        )
    parser.add_argument(
        "--tokenised",
        action="store_true",
        help="Moses has tokenised these files: they become plain text first",
    )
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--output", required=True, type=Path, help="folder for the six text files")
    parser.add_argument(
        "--downloads",
        type=Path,
        help="folder for fetched files (default: downloads beside --output)",
    )
    args = parser.parse_args()
    check_languages(args.source, args.target)
    args.downloads = args.downloads or args.output.parent / "downloads"

    prefixes = {split: getattr(args, split) for split in SPLITS}
    if any(prefixes.values()):
        user_files.fetch(prefixes, args.source, args.target, args.output, args.tokenised)
    elif args.tokenised:
        parser.error("--tokenised is for files of your own: --train, --valid and --test")
    elif args.corpus is None:
        parser.error("give a corpus, or --train, --valid and --test")
    elif args.corpus == "toy":
        write_toy_corpus(args.output, source=args.source, target=args.target)
    else:
        fetch_corpus(args)


if __name__ == "__main__":
    exit_cleanly(main)
