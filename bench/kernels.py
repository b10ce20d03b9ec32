"""Measures the gain of each kernel: python bench/kernels.py [OPTIONS].

One process makes training updates, or searches with --path and --data-bin. Each round runs with all
kernels, and with each kernel switched off in turn. Prints, by file, how many times as long the work
takes without the kernel: the ratio of the shortest times, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
import version_worker
from results import gpu_is_missing
from training_data import write_synthetic

from transformer_plugin.files import atomic_write
from transformer_plugin.kernels.registry import REGISTRY


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="vaswani_small")
    parser.add_argument("--precision", default="fp32", help="fp32 or bf16; also int8 for a search")
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--updates", type=int, default=2, help="of a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--path", help="a checkpoint: measure a search with it")
    parser.add_argument("--data-bin", help="of the search")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", help="parts of names of kernels")
    parser.add_argument(
        "--cpu-time", action="store_true", help="measure CPU time, for a machine that others use"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    args = parser.parse_args()
    args.folder = str(Path(__file__).resolve().parent.parent)
    return args


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Context in which the kernels of that file are not used."""
    with ExitStack() as stack:
        for each in REGISTRY:
            if each.name == name and each.kernel in each.operation.implementations:
                place = each.operation.implementations.index(each.kernel)
                each.operation.implementations.remove(each.kernel)
                stack.callback(each.operation.implementations.insert, place, each.kernel)
        yield


def measure(run: Callable[[], None], clock: Callable[[], float]) -> float:
    """Seconds that it takes."""
    started = clock()
    run()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return clock() - started


def main() -> None:
    """Measures, and prints a row for each kernel."""
    args = parse_arguments()
    if gpu_is_missing(args.device):
        return
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    clock = time.process_time if args.cpu_time else time.perf_counter
    names = sorted({each.name for each in REGISTRY})
    names = [n for n in names if not args.only or any(part in n for part in args.only)]
    with tempfile.TemporaryDirectory() as folder:
        if args.path:
            run = version_worker.search(vars(args))
        else:
            args.data_bin = str(write_synthetic(Path(folder), args.words, 8000))
            run = version_worker.training(vars(args))
        run()
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for _ in range(args.rounds):
            for name in names:
                with switched_off(name):
                    without = measure(run, clock)
                seconds[name].append((without, measure(run, clock)))
    what = f"search, beam {args.beam}" if args.path else args.arch
    device = args.device if args.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{what} {args.precision}, {device}; times longer without:")
    rows = []
    for name, pairs in seconds.items():
        shortest = min(without for without, _ in pairs) / min(full for _, full in pairs)
        median = statistics.median(without / full for without, full in pairs)
        print(f"{shortest:7.3f} {median:7.3f}  {name}")
        rows.append({"kernel": name, "of_shortest": shortest, "median": median})
    if args.json:
        with atomic_write(args.json) as file:
            file.write(f"{json.dumps(rows, indent=1)}\n")


if __name__ == "__main__":
    main()
