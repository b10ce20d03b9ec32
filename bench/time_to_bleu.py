"""BLEU after minutes of training: one system per call, so that each fits a short GPU session.

    python bench/time_to_bleu.py plugin --minutes 8 --data-bin DATA-BIN --reference test.fr --work W
    python bench/time_to_bleu.py stock --minutes 8 --data-bin DATA-BIN --reference test.fr --work W
    python bench/time_to_bleu.py stock --minutes 16 ...   # continues from 8

Both train a model of the same shape with the same batches, rates and dropout, and average the last
five checkpoints; each translates the test set with its own search. The results are
`W/SYSTEM/train.log` and `W/SYSTEM/score.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import sacrebleu
from results import gpu_is_missing
from training_systems import plugin_flags, stock_flags

import transformer_plugin
from transformer_plugin.cli import main as transformer_plugin_command
from transformer_plugin.files import atomic_write
from transformer_plugin.presets import PRESETS
from transformer_plugin.reports.accounting import configuration
from transformer_plugin.reports.training_report.series import read_log
from transformer_plugin.scoring.hypotheses import read_hypotheses
from transformer_plugin.text_lines import read_lines

PLUGIN = str(Path(transformer_plugin.__file__).parent)
SAVED = 5  # checkpoints to average (6.1)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("system", choices=("plugin", "stock"))
    parser.add_argument("--minutes", type=float, required=True, help="of training, since its start")
    parser.add_argument("--data-bin", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True, help="of the test set, as text")
    parser.add_argument("--work", type=Path, required=True, help="a folder to keep between calls")
    parser.add_argument("--arch", default="vaswani_base", choices=PRESETS, metavar="NAME")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp16")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--max-tokens", type=int, default=25_000, help="of a batch (5.1)")
    parser.add_argument("--warmup-updates", type=int, default=2000)
    parser.add_argument("--save-updates", type=int, default=250)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args()
    for name in ("data_bin", "reference"):
        if not getattr(args, name).exists():
            parser.error(f"{getattr(args, name)}: no such file (--{name.replace('_', '-')})")
    return args


def training_flags(args: argparse.Namespace) -> list[str]:
    """The same peak rate for both: d_model^-0.5 * warmup^-0.5 (5.3)."""
    flags = plugin_flags(args.arch) if args.system == "plugin" else stock_flags(args.arch)
    rate = (configuration(args.arch).d_model * args.warmup_updates) ** -0.5
    flags += ["--warmup-updates", str(args.warmup_updates), "--dropout", str(args.dropout)]
    if args.system == "stock":
        flags += ["--lr", f"{rate:.6g}", "--warmup-init-lr", "1e-7"]
    flags += ["--cpu"] if args.device == "cpu" else []
    return flags + ([f"--{args.precision}"] if args.precision != "fp32" else [])


def run(log: Path, module: str, *words: object) -> None:
    """Runs a command of fairseq and appends its output to ``log``."""
    with log.open("a", encoding="utf-8") as file:
        subprocess.run(
            [sys.executable, "-m", module, *map(str, words), "--user-dir", PLUGIN],
            stdout=file,
            stderr=subprocess.STDOUT,
            check=True,
        )


def train(args: argparse.Namespace, folder: Path) -> None:
    """Trains for ``--minutes``, including those of earlier calls."""
    run(
        *(folder / "train.log", "fairseq_cli.train", args.data_bin, *training_flags(args)),
        *("--max-tokens", args.max_tokens, "--seed", 1, "--num-workers", 2),
        *("--distributed-world-size", 1, "--stop-time-hours", args.minutes / 60),
        *("--save-interval-updates", args.save_updates),
        *("--keep-interval-updates", SAVED, "--no-epoch-checkpoints", "--disable-validation"),
        *("--save-dir", folder / "checkpoints", "--log-format", "simple", "--log-interval", 50),
    )


def translate(args: argparse.Namespace, folder: Path) -> list[str]:
    """Translates the test set with the average of the last checkpoints; in order."""
    averaged, log = folder / "averaged.pt", folder / "generate.log"
    words = ["average", "--last", SAVED, "--allow-fewer", "--by", "updates", "--output", averaged]
    words += ["--checkpoints", folder / "checkpoints"]
    status = transformer_plugin_command([str(word) for word in words])
    if status:
        sys.exit(status)
    log.unlink(missing_ok=True)
    task = "vaswani_translation" if args.system == "plugin" else "translation"
    half = args.precision if args.device == "cuda" and args.precision != "fp32" else None
    run(
        *(log, "fairseq_cli.generate", args.data_bin, "--task", task, "--path", averaged),
        *("--beam", 4, "--lenpen", 0.6, "--remove-bpe", "sentencepiece"),
        *("--required-batch-size-multiple", 1),  # 8 skips the last sentences in the stock task
        *(["--cpu"] if args.device == "cpu" else []),
        *([f"--{half}"] if half else []),
    )
    return read_hypotheses(log)


def main() -> None:
    """Trains, translates, scores."""
    args = parse_arguments()
    if gpu_is_missing(args.device):
        return
    folder = args.work / args.system
    folder.mkdir(parents=True, exist_ok=True)
    train(args, folder)
    hypotheses = translate(args, folder)
    references = read_lines(args.reference)
    if len(references) != len(hypotheses):
        sys.exit(
            f"{args.reference}: {len(references):,} lines, but the test set of {args.data_bin} has"
            f" {len(hypotheses):,} sentences: give the reference of that test set"
        )
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(hypotheses, [references])
    updates = read_log(folder / "train.log").updates
    result = {
        **{"system": args.system, "arch": args.arch, "precision": args.precision},
        **{"minutes": args.minutes, "updates": updates, "bleu": score.score},
        "signature": str(metric.get_signature()),
    }
    with atomic_write(folder / "score.json") as file:
        file.write(f"{json.dumps(result, indent=1)}\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
