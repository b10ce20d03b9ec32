"""Speed of training: the plugin against stock fairseq and peers, round by round in one run.

Each system trains a model of the same shape on the same batches in its own process, each round on
other ones; the processes take turns, so that other load on the machine slows all of them equally.
The figures are medians of the rounds; tokens are target tokens without padding.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from operator import truediv
from pathlib import Path
from statistics import median

import torch
from matmul_rate import matmul_rate
from results import Rows, leave_out, run_benchmark
from training_data import SENTENCES, WORDS, multi30k, write_synthetic
from training_peers import PACKAGES, PRECISIONS, installed
from training_plot import write_plot
from training_systems import COMPILED, Setting, stock_flags
from training_worker import KEEP_FREED_MEMORY, Worker

import transformer_plugin
from transformer_plugin.files import atomic_write
from transformer_plugin.flops import training_flops, transformer_flops
from transformer_plugin.presets import PRESETS
from transformer_plugin.reports.accounting import account
from transformer_plugin.throughput import peak_flops

REPO = Path(__file__).resolve().parent.parent
DATA_BIN = REPO / "runs/multi30k_en_de/data-bin"
GPU_MAX_TOKENS = 25_000  # the paper's batch (5.1)
CPU_MAX_TOKENS = {"vaswani_small": 4096, "vaswani_tiny": 4096}  # otherwise 2048


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", default="vaswani_small", choices=PRESETS, metavar="NAME")
    parser.add_argument(
        "--precision", nargs="+", default=["fp32", "bf16"], choices=PRECISIONS, metavar="P",
        help="fp32, bf16, fp16 (several; default: fp32 bf16)",
    )  # fmt: skip
    parser.add_argument("--data", choices=("multi30k", "synthetic"), default="multi30k")
    parser.add_argument("--data-bin", type=Path, default=DATA_BIN, help="of --data multi30k")
    parser.add_argument("--words", type=int, default=WORDS, help="of --data synthetic")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="of --data synthetic")
    parser.add_argument("--max-tokens", type=int, help="per batch, as fairseq counts them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=4, help="of a round")
    parser.add_argument(
        "--peers", nargs="+", default=["all"], choices=["all", "none", *PACKAGES], metavar="PEER",
        help=f"all, none, or some of {', '.join(PACKAGES)}",
    )  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--tuned-stock", action="store_true", help="stock's allocator keeps freed memory"
    )
    parser.add_argument(
        "--checkpoint-activations", action="store_true",
        help="the plugin recomputes activations instead of storing them",
    )  # fmt: skip
    parser.add_argument(
        "--compiled", action="store_true", help="also the plugin with layers that torch compiles"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE",
        help="write the time and the number of the operations of a round",
    )  # fmt: skip
    parser.add_argument("--plot", metavar="FILE", help="draw them")
    args = parser.parse_args()
    for name in ("rounds", "updates", "sentences"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(args, name)}")
    try:
        stock_flags(args.arch)
    except ValueError as error:
        parser.error(str(error))
    if args.max_tokens is None:
        args.max_tokens = (
            CPU_MAX_TOKENS.get(args.arch, 2048) if args.device == "cpu" else GPU_MAX_TOKENS
        )
    return args


def contenders(args: argparse.Namespace) -> list[tuple[str, str]]:
    """System and precision of each worker; stock, the baseline, comes first.

    Stock's bf16 crashes without a TPU, and its fp16 on a CPU; on a GPU fp16 is its fastest.
    """
    chosen = [("stock", "fp16" if args.device == "cuda" else "fp32")]
    precisions = list(dict.fromkeys(args.precision))
    if args.device == "cpu" and "fp16" in precisions:
        print("fp16 is left out: it needs a GPU", file=sys.stderr)
        precisions.remove("fp16")
    for system in ["plugin"] + [COMPILED] * args.compiled:
        chosen += [(system, precision) for precision in precisions]
    peers = list(PACKAGES) if "all" in args.peers else [p for p in PACKAGES if p in args.peers]
    for peer in peers:
        if installed(peer):
            chosen += [(peer, precision) for precision in precisions]
        else:
            print(f"{peer} is left out: {PACKAGES[peer]} is not installed", file=sys.stderr)
    return chosen


def started(args: argparse.Namespace, data_bin: Path) -> list[Worker]:
    """A worker for each system and precision, stock first; without the peers that fail.

    Raises:
        RuntimeError: the plugin or stock failed.
    """
    workers = []
    for system, precision in contenders(args):
        print(f"starting {system} {precision}", file=sys.stderr)
        setting = Setting(
            system, args.arch, precision, args.device, str(data_bin), args.max_tokens,
            args.checkpoint_activations,
        )  # fmt: skip
        tuned = args.tuned_stock and system == "stock"
        try:
            workers.append(
                Worker(setting, args.rounds, args.updates, KEEP_FREED_MEMORY if tuned else {})
            )
        except RuntimeError as error:
            leave_out(system, precision, error, PACKAGES)
    return workers


def measure(args: argparse.Namespace, stack: ExitStack) -> Rows:
    """One row for each system and precision.

    Raises:
        RuntimeError: a system failed.
    """
    if args.data == "synthetic":
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data_bin = write_synthetic(folder, args.words, args.sentences)
    else:
        data_bin = multi30k(args.data_bin)
    workers = started(args, data_bin)
    stock = workers[0]
    if any(sorted(worker.lengths) != sorted(stock.lengths) for worker in workers):
        raise RuntimeError("the systems do not train on the same sentences")

    rates: dict[str, list[float]] = {worker.setting.precision: [] for worker in workers}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        for worker in list(workers):
            try:
                worker.round()
            except RuntimeError as error:
                setting = worker.setting
                leave_out(setting.system, setting.precision, error, PACKAGES)
                workers.remove(worker)
        for precision, measured in rates.items():
            measured.append(matmul_rate(PRECISIONS[precision], args.device))

    tokens = sum(target for _source, target in stock.lengths) / args.rounds
    flops = step_flops(args.arch, stock.vocabulary, stock.lengths) / args.rounds
    if args.profile:
        found = {worker.name: worker.profile() for worker in workers}
        with atomic_write(args.profile) as file:
            file.write(f"{json.dumps(found, indent=1)}\n")
    rows = []
    for worker in workers:
        seconds = median(worker.seconds)
        peak = peak_flops(torch.device(args.device), worker.setting.precision != "fp32")
        rows.append(
            {
                "system": worker.setting.system,
                "arch": args.arch,
                "precision": worker.setting.precision,
                "data": args.data,
                "tokens_per_second": tokens / seconds,
                "ratio_to_stock": median(map(truediv, stock.seconds, worker.seconds)),
                "matmul_fraction": flops / seconds / median(rates[worker.setting.precision]),
                "peak_fraction": peak and flops / seconds / peak,  # None: no data sheet
                "peak_memory_bytes": worker.stop(),
            }
        )
    return rows


def step_flops(arch: str, vocabulary: int, lengths: list[tuple[int, int]]) -> float:
    """FLOPs of training on sentences of these source and target lengths, without padding."""
    shape = account(arch, vocabulary).shape
    return training_flops(sum(transformer_flops(shape, vocabulary, *pair) for pair in lengths))


def print_table(rows: Rows) -> None:
    """Prints the rows as a table."""
    print(f"{'system':16}{'precision':10}{'tokens/s':>12}{'/ stock':>9}{'/ matmul':>10}"
          f"{'/ peak':>8}{'peak GiB':>10}")  # fmt: skip
    for row in rows:
        peak = f"{row['peak_fraction']:.2f}" if row["peak_fraction"] else "-"
        print(
            f"{row['system']:16}{row['precision']:10}{row['tokens_per_second']:12,.0f}"
            f"{row['ratio_to_stock']:9.2f}{row['matmul_fraction']:10.2f}{peak:>8}"
            f"{row['peak_memory_bytes'] / 2**30:10.2f}"
        )


def main() -> None:
    """Measures, prints the table and writes the files."""
    args = parse_arguments()
    plugin = Path(transformer_plugin.__file__).parent
    what = f"{args.arch}, {args.data}, {args.max_tokens} tokens per batch, plugin of {plugin}"
    run_benchmark(args, what, measure, print_table, write_plot)


if __name__ == "__main__":
    main()
