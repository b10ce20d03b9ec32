"""Speed and memory of preparing a corpus: data-prep against the tools of the literature.

Both turn the same raw text into fairseq's binary data, alternating round by round in one run. The
literature's tools are sacremoses (punctuation, tokens), subword-nmt (joint merges) and
fairseq-preprocess, each with two processes if possible; they clean nothing. Memory is the sum (PSS)
over all processes of a command, sampled five times per second.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from process_memory import peak_of_tree

REPO = Path(__file__).resolve().parent.parent
TEXT = REPO.parent / "shared/data/wmt14_en_fr/europarl-v7-slice"
HELD_OUT = 1000  # pairs of valid and of test
CHANGED = 0.1  # share of the words that change when the text repeats
SOURCE, TARGET = "en", "fr"
Step = tuple[str, str]  # its name, and the shell command


def read(prefix: Path, language: str) -> list[list[str]]:
    """The words of each line of PREFIX.LANGUAGE, plain or .gz."""
    plain, packed = Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")
    if not plain.is_file() and not packed.is_file():
        sys.exit(f"there is neither {plain} nor {packed}: give --text PREFIX")
    with plain.open("rb") if plain.is_file() else gzip.open(packed, "rb") as file:
        return [line.decode().split() for line in file]


def lines(text: list[list[str]], seed: int) -> Iterator[str]:
    """The lines of a text, repeated endlessly; repetitions have some words changed."""
    chance = random.Random(seed)
    words = [word for line in text[:20_000] for word in line]
    yield from map(" ".join, text)
    while True:
        for line in text:
            yield " ".join(
                chance.choice(words) if chance.random() < CHANGED else word for word in line
            )


def write_text(prefix: Path, pairs: int, folder: Path) -> None:
    """The raw text of a round: `pairs` of train, and other lines for valid and test."""
    for seed, language in enumerate((SOURCE, TARGET)):
        source = lines(read(prefix, language), seed)
        for split, count in (("valid", HELD_OUT), ("test", HELD_OUT), ("train", pairs)):
            with (folder / f"{split}.{language}").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in islice(source, count))


def ours(raw: str, output: str, subwords: str) -> list[Step]:
    """The steps of recipes/prepare.sh; the folders are words of a shell."""
    python, data_prep = shlex.quote(sys.executable), shlex.quote(f"{REPO}/data-prep")
    side = f"--source {SOURCE} --target {TARGET}"
    splits = " ".join(f"--{split} {raw}/{split}" for split in ("train", "valid", "test"))
    moses = "--moses --max-length 80 --max-ratio 9" if subwords == "moses-bpe" else ""
    return [
        (name, f"{python} {data_prep}/{name}.py {flags} {side}")
        for name, flags in (
            ("fetch", f"{splits} --output {output}/raw"),
            ("clean", f"--input {output}/raw --output {output}/clean {moses}"),
            (
                "subwords",
                f"--input {output}/clean --output {output}/subwords --kind {subwords} "
                "--vocab-size 32000 --merges 32000",
            ),
            (
                "binarise",
                f"--input {output}/clean --model {output}/subwords --output {output}/data-bin",
            ),
        )
    ]


def stock(raw: str, output: str, _: str) -> list[Step]:
    """The literature's steps, with two processes if the tool supports it; see ``ours``."""
    python = shlex.quote(sys.executable)
    texts = [
        (split, language) for split in ("train", "valid", "test") for language in (SOURCE, TARGET)
    ]
    tokenise = " && ".join(
        f"sacremoses -q -l {language} -j 2 normalize tokenize -x < {raw}/{split}.{language} "
        f"> {output}/tok.{split}.{language}"
        for split, language in texts
    )
    learn = (
        f"cat {output}/tok.train.{SOURCE} {output}/tok.train.{TARGET} > {output}/joint && "
        f"{python} -m subword_nmt.learn_bpe -s 32000 --num-workers 2 -i {output}/joint "
        f"-o {output}/codes"
    )
    apply = " && ".join(
        f"{python} -m subword_nmt.apply_bpe --num-workers 2 -c {output}/codes "
        f"-i {output}/tok.{split}.{language} -o {output}/{split}.{language}"
        for split, language in texts
    )
    splits = " ".join(f"--{split}pref {output}/{split}" for split in ("train", "valid", "test"))
    return [
        ("tokenise", tokenise),
        ("learn-bpe", learn),
        ("apply-bpe", apply),
        (
            "preprocess",
            f"{python} -m fairseq_cli.preprocess --source-lang {SOURCE} --target-lang "
            f"{TARGET} {splits} --joined-dictionary --destdir {output}/data-bin "
            "--workers 2",
        ),
    ]


def timed(steps: list[Step], output: Path) -> tuple[dict[str, float], int]:
    """Seconds of each step, and their peak memory in bytes; ends the program on failure."""
    seconds, peak = {}, 0
    output.mkdir()
    for name, command in steps:
        start = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", f"set -o pipefail; {command}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=output,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )
        found: list[int] = []
        watcher = threading.Thread(target=lambda p=process, f=found: f.append(peak_of_tree(p)))
        watcher.start()
        _, errors = process.communicate()
        seconds[name] = time.monotonic() - start
        watcher.join()
        if process.returncode:
            sys.exit(f"{command}\nfailed:\n{errors[-2000:]}")
        peak = max(peak, found[0])
        print(f"  {name}: {seconds[name]:.1f} s", file=sys.stderr)
    return seconds, peak


SYSTEMS: dict[str, Callable[[str, str, str], list[Step]]] = {"stock": stock, "plugin": ours}


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each system: medians of the rounds."""
    runs: dict[str, list[tuple[dict[str, float], int]]] = {name: [] for name in args.systems}
    with tempfile.TemporaryDirectory(prefix="bench-prepare-") as scratch:
        raw = Path(scratch) / "raw"
        raw.mkdir()
        write_text(args.text, args.pairs, raw)
        for number in range(args.rounds):
            for name in args.systems:
                print(f"round {number + 1} of {args.rounds}: {name}", file=sys.stderr)
                output = Path(scratch) / f"{name}-{number}"
                words = shlex.quote(str(raw)), shlex.quote(str(output))
                runs[name].append(timed(SYSTEMS[name](*words, args.subwords), output))
    totals = {
        name: median(sum(seconds.values()) for seconds, _ in found) for name, found in runs.items()
    }
    return [
        {
            "system": name,
            "subwords": args.subwords if name == "plugin" else "moses-bpe",
            "pairs": args.pairs,
            "seconds": totals[name],
            "pairs_per_second": args.pairs / totals[name],
            "ratio_to_stock": totals["stock"] / totals[name] if "stock" in totals else None,
            "peak_memory_bytes": max(peak for _, peak in found),
            "steps": {step: median(seconds[step] for seconds, _ in found) for step in found[0][0]},
        }
        for name, found in runs.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="of train")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--subwords",
        choices=("sentencepiece", "moses-bpe"),
        default="sentencepiece",
        help="of the plugin; stock's are moses-bpe",
    )
    parser.add_argument(
        "--text",
        type=Path,
        default=TEXT,
        metavar="PREFIX",
        help=f"of PREFIX.{SOURCE} and PREFIX.{TARGET}, plain or .gz",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    args = parser.parse_args()
    for name in ("pairs", "rounds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(args, name)}")
    rows = measure(args)
    for row in rows:
        ratio = f"{row['ratio_to_stock']:.2f} x stock" if row["ratio_to_stock"] else ""
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in row["steps"].items())
        print(
            f"{row['system']:8} {row['seconds']:8.1f} s  {row['pairs_per_second']:9,.0f} pairs/s"
            f"  {row['peak_memory_bytes'] / 2**30:5.2f} GiB  {ratio}  ({steps})"
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
