"""Speed of decoding: the plugin against stock fairseq and peers, round by round in one run.

Each system loads the same trained model in its own process and translates the same sentences with
fairseq's rules; the processes take turns, so that other load on the machine slows all of them
equally. Times are medians of the rounds, without start-up. Some sentences are also translated one
at a time, as ``serve`` has them; the median time and the 95th percentile are in milliseconds.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import sacrebleu
from decoding_plot import write_plot
from decoding_systems import GRAPHLESS, PACKAGES, Setting, installed, refusal
from decoding_worker import Worker
from results import Rows, leave_out, run_benchmark
from whole_process import whole_process

REPO = Path(__file__).resolve().parent.parent
RUN = REPO / "runs/multi30k_en_de"
AVERAGED = RUN / "checkpoints/averaged.pt"
DEFAULT = {"cpu": ["fp32", "bf16", "int8"], "cuda": ["fp32", "fp16", "bf16"]}
STOCK = {"cpu": "fp32", "cuda": "fp16"}  # its fastest precision
CTRANSLATE2 = {"cpu": ["fp32", "int8"], "cuda": ["fp16", "int8"]}


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--path", nargs="+", type=Path, default=[AVERAGED], metavar="CKPT.pt",
        help="of the plugin; several are an ensemble, which only it and stock have",
    )  # fmt: skip
    parser.add_argument("--data-bin", type=Path, default=RUN / "data-bin")
    parser.add_argument("--subset", default="test")
    parser.add_argument("--precision", nargs="+", choices=("fp32", "bf16", "fp16", "int8"))
    parser.add_argument("--beam", nargs="+", type=int, default=[4, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers", nargs="+", default=["all"], choices=["all", "none", *PACKAGES], metavar="PEER",
        help=f"all, none, or some of {', '.join(PACKAGES)}",
    )  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--latency", type=int, default=100, metavar="N", help="time N sentences one at a time"
    )
    parser.add_argument(
        "--without-graphs", action="store_true", help="also the plugin without CUDA graphs"
    )
    parser.add_argument(
        "--whole-process", action="store_true", help="also time all of fairseq-generate"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    parser.add_argument("--plot", metavar="FILE", help="draw them")
    args = parser.parse_args()
    for name, paths in (("path", args.path), ("data-bin", [args.data_bin])):
        for missing in (path for path in paths if not path.exists()):
            parser.error(
                f"{missing}: no such file; train it with recipes/run.sh multi30k_en_de, or give"
                f" --{name}"
            )
    if min(args.rounds, args.latency, *args.beam) < 1:
        parser.error("--rounds, --latency and --beam must be at least 1")
    if args.whole_process and len(args.path) > 1:
        parser.error("--whole-process is for one checkpoint")
    return args


def contenders(args: argparse.Namespace) -> list[tuple[str, str]]:
    """System and precision of each worker; stock, the baseline, comes first."""
    chosen = [("stock", STOCK[args.device])]
    for system in ["plugin"] + [GRAPHLESS] * args.without_graphs:
        chosen += [(system, precision) for precision in args.precision or DEFAULT[args.device]]
    for peer, package in PACKAGES.items():
        if "all" not in args.peers and peer not in args.peers:
            continue
        if len(args.path) > 1:
            print(f"{peer} is left out: it has no ensembles", file=sys.stderr)
            continue
        if not installed(peer):
            print(f"{peer} is left out: {package} is not installed", file=sys.stderr)
            continue
        of_peer = CTRANSLATE2[args.device] if package == "ctranslate2" else [STOCK[args.device]]
        chosen += [(peer, precision) for precision in of_peer]
    return chosen


def measure(args: argparse.Namespace, stack: ExitStack) -> Rows:
    """One row for each system, precision and beam.

    Raises:
        RuntimeError: a system failed.
    """
    scratch = stack.enter_context(TemporaryDirectory())
    workers = []
    for system, precision in contenders(args):
        setting = Setting(
            system, precision, args.device, tuple(map(str, args.path)), str(args.data_bin),
            args.subset, scratch,
        )  # fmt: skip
        if reason := refusal(setting):
            print(f"{system} is left out: {reason}", file=sys.stderr)
            continue
        print(f"starting {system} {precision}", file=sys.stderr)
        try:
            workers.append(Worker(setting))
        except RuntimeError as error:
            leave_out(system, precision, error, PACKAGES)
    references = workers[0].references
    rows = []
    for beam in args.beam:
        for worker in workers:
            print(f"beam {beam}: {worker.name} settles on {worker.tune(beam)}", file=sys.stderr)
        for number in range(args.rounds):
            print(f"beam {beam}: round {number + 1} of {args.rounds}", file=sys.stderr)
            for worker in workers:
                worker.round(beam)
        alone = range(min(args.latency, len(references)))
        for start in alone[::20]:
            for worker in workers:
                worker.one_by_one(beam, alone[start : start + 20])
        stock = workers[0]
        for worker in workers:
            seconds = median(worker.seconds[beam])
            found = worker.hypotheses[beam]
            p50, p95 = np.percentile(worker.latencies[beam], (50, 95)) * 1000
            same = sum(a == b for a, b in zip(found, stock.hypotheses[beam], strict=True))
            rows.append(
                {
                    "system": worker.setting.system,
                    "precision": worker.setting.precision,
                    "beam": beam,
                    "seconds": seconds,
                    "ratio_to_stock": median(stock.seconds[beam]) / seconds,
                    "bleu": sacrebleu.corpus_bleu(found, [references]).score,
                    "identical_to_stock": same / len(found),
                    "p50_ms": p50,
                    "p95_ms": p95,
                }
            )
    for worker in workers:
        worker.stop()
    if args.whole_process:
        command = args.path[0], args.data_bin, args.subset, args.device, Path(scratch)
        print("\n".join(whole_process(*command)))
    return rows


def print_table(rows: Rows) -> None:
    """Prints the rows as a table."""
    print(f"{'system':22}{'precision':10}{'beam':>5}{'seconds':>9}{'stock / it':>12}{'BLEU':>8}"
          f"{'as stock':>10}{'p50 ms':>9}{'p95 ms':>9}")  # fmt: skip
    for row in rows:
        print(
            f"{row['system']:22}{row['precision']:10}{row['beam']:5}{row['seconds']:9.2f}"
            f"{row['ratio_to_stock']:12.2f}{row['bleu']:8.2f}{row['identical_to_stock']:10.1%}"
            f"{row['p50_ms']:9.1f}{row['p95_ms']:9.1f}"
        )


def main() -> None:
    """Measures, prints the table and writes the files."""
    args = parse_arguments()
    what = f"{', '.join(map(str, args.path))}, {args.subset} of {args.data_bin}"
    run_benchmark(args, what, measure, print_table, write_plot)


if __name__ == "__main__":
    main()
