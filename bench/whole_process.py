"""The time of a whole fairseq-generate process, and its share of translation."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import torch

import transformer_plugin
from transformer_plugin.checkpoints.exchange.conversion import convert
from transformer_plugin.checkpoints.safe_loading import load

PLUGIN = Path(transformer_plugin.__file__).parent
GENERATE = [sys.executable, "-m", "fairseq_cli.generate"]
ROUNDS = 3


def whole_process(
    path: Path, data_bin: Path, subset: str, device: str, scratch: Path
) -> Iterator[str]:
    """A line for the plugin and one for stock fairseq, alternating; beam 4.

    Raises:
        RuntimeError: fairseq-generate failed.
    """
    stock = scratch / "stock.pt"
    torch.save(convert(load(path), "stock"), stock)
    tasks = {
        "plugin": ["--task", "vaswani_translation", "--path", str(path)],
        "stock": ["--task", "translation", "--path", str(stock)],
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, flags in tasks.items():
            seconds[name].append(_generate([*flags, "--gen-subset", subset], data_bin, device))
    for name, times in seconds.items():
        whole, translating = (median(column) for column in zip(*times, strict=True))
        yield f"fairseq-generate, {name}: {whole:.1f} s, of which translation {translating:.1f} s"


def _generate(flags: list[str], data_bin: Path, device: str) -> tuple[float, float]:
    """Seconds of the process, and of translation as reported by fairseq."""
    command = [*GENERATE, str(data_bin), "--user-dir", str(PLUGIN), "--beam", "4", *flags]
    started = time.perf_counter()
    done = subprocess.run(
        command + (["--cpu"] if device == "cpu" else ["--fp16"]),
        capture_output=True,
        text=True,
        check=False,
    )
    whole = time.perf_counter() - started
    found = re.search(r"Translated [\d,]+ sentences \([\d,]+ tokens\) in ([\d.]+)s", done.stderr)
    if done.returncode or not found:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return whole, float(found[1])
