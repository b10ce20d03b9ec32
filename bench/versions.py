"""Compares the speed of two checkouts, alternating: python bench/versions.py OLD NEW [OPTIONS].

Training on synthetic batches or, with --path and --data-bin, a search over the test set. Each
checkout runs in its own process, with its own `bench/`. Prints the medians, NEW's speed as a
multiple of OLD's, and the peak memory of both.

One checkout given twice, with --env for the second, shows what an environment variable does:

    python bench/versions.py . . --env OMP_WAIT_POLICY=passive --busy 1
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from training_data import write_synthetic


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=Path, metavar="CHECKOUT")
    parser.add_argument("--arch", default="vaswani_small")
    parser.add_argument("--precision", default="fp32", help="fp32 or bf16; also int8 for a search")
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--updates", type=int, default=4, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--path", help="a checkpoint: measure a search with it")
    parser.add_argument("--data-bin", help="of the search")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for NEW")
    parser.add_argument("--busy", type=int, default=0, help="other processes that compute")
    return parser.parse_args()


class Checkout:
    """A process that runs the code of a checkout."""

    def __init__(self, folder: Path, job: dict[str, Any], variables: Iterable[str]) -> None:
        folder = folder.resolve()
        job["folder"] = str(folder)
        paths = f"{folder}{os.pathsep}{folder / 'bench'}"
        self._process = subprocess.Popen(
            # -P: the checkout's bench/, not the one that this file lies in
            [
                *(sys.executable, "-P", str(Path(__file__).with_name("version_worker.py"))),
                json.dumps(job),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": paths} | dict(each.split("=", 1) for each in variables),
        )
        self.seconds: list[float] = []
        self._ask("warm")

    def round(self) -> None:
        """Runs a round, and records its time."""
        self.seconds.append(self._ask("round"))

    def stop(self) -> float:
        """Ends the process; returns its peak memory in GiB."""
        return self._ask("stop")

    def _ask(self, word: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit("a checkout failed, see above")
        return float(answer)


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """That many processes compute until the block ends."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


def main() -> None:
    """Measures and prints a row."""
    args = parse_arguments()
    job = {k: v for k, v in vars(args).items() if k not in ("checkouts", "env", "busy")}
    with tempfile.TemporaryDirectory() as folder:
        if args.path is None:
            job["data_bin"] = str(write_synthetic(Path(folder), args.words, 8000))
        old = Checkout(args.checkouts[0], dict(job), ())
        new = Checkout(args.checkouts[1], dict(job), args.env)
        with busy_processes(args.busy):
            for number in range(args.rounds):
                for each in (old, new) if number % 2 else (new, old):
                    each.round()
                    time.sleep(0.2)
        memory = [each.stop() for each in (old, new)]
    ratios = [a / b for a, b in zip(old.seconds, new.seconds, strict=True)]
    what = f"search, beam {args.beam}" if args.path else args.arch
    print(
        f"{what} {args.precision}: {statistics.median(old.seconds):.3f} s and"
        f" {statistics.median(new.seconds):.3f} s a round; the new one is"
        f" {statistics.median(ratios):.3f} times as fast ({min(ratios):.3f} to {max(ratios):.3f});"
        f" {memory[0]:.2f} and {memory[1]:.2f} GiB"
    )


if __name__ == "__main__":
    main()
