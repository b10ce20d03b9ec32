"""What train.log says of a run of fairseq-train, and of its continuations in the same log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

INTENDED = 25_000  # tokens of an update, source and target each: section 5.1 of the paper
RESUMED = re.compile(r"Loaded checkpoint .*\(epoch \d+ @ (\d+) updates\)")
SIZE = re.compile(r"an update holds ([\d,]+) source and ([\d,]+) target tokens on average .* and"
                  r" takes (\S+) FLOPs; ([\d,]+) updates an epoch")
UPDATES = re.compile(r"\bnum_updates[ =](\d+)")
EPOCH = re.compile(r"\| epoch (\d+)")
DEPARTURES = re.compile(r" not as in the paper: (.*)")
DEVICES = re.compile(r"training on (\d+) devices")
FIGURE = re.compile(r"\| (loss|nll_loss|ppl|accuracy|bleu|best_loss|num_updates) ([\d.]+)")


def training_facts(log: Path) -> dict[str, Any]:
    """Updates and epochs made, tokens an update beside the paper's, FLOPs spent, departures from
    the paper, and the last and the best validation.

    FLOPs are those of all updates, also of such as were lost with an interruption; they are known
    to the last line of progress before it.
    """
    parts: list[dict[str, Any]] = []  # one each time that training was started
    found: dict[str, Any] = {"devices": None, "departures": None}
    updates = epoch = start = 0
    validations: list[dict[str, float]] = []
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := RESUMED.search(line):
                start = int(match.group(1))
            elif match := SIZE.search(line):
                source, target, flops, an_epoch = match.groups()
                parts.append({"from": start, "to": start, "source": _int(source),
                              "target": _int(target), "flops": float(flops)})
                found["updates_an_epoch"] = _int(an_epoch)
                updates, start = parts[-1]["from"], 0
            elif match := DEPARTURES.search(line):
                choices = match.group(1).strip()
                found["departures"] = [] if choices == "nothing" else choices.split("; ")
            elif match := DEVICES.search(line):
                found["devices"] = int(match.group(1))
            elif match := UPDATES.search(line):
                updates = int(match.group(1))
                if parts:
                    parts[-1]["to"] = max(parts[-1]["to"], updates)
            if match := EPOCH.search(line):
                epoch = int(match.group(1))
            if " valid on " in line:
                validations.append({name: float(value) for name, value in FIGURE.findall(line)})
    found |= {"updates": updates, "epochs": epoch, "starts": len(parts)}
    if parts:
        found["tokens_per_update"] = _beside_the_papers(parts[-1])
        found["flops"] = sum((part["to"] - part["from"]) * part["flops"] for part in parts)
        found["flops_per_update"] = parts[-1]["flops"]
    if validations:
        found["valid"] = validations[-1]
        found["best_valid"] = min(validations, key=lambda figures: figures["loss"])
    return found


def _beside_the_papers(part: dict[str, Any]) -> dict[str, Any]:
    found = {"intended": INTENDED}
    for side in ("source", "target"):
        found[side] = part[side]
        found[f"{side}_off_percent"] = round(100 * (part[side] / INTENDED - 1), 1)
    return found


def _int(text: str) -> int:
    return int(text.replace(",", ""))
