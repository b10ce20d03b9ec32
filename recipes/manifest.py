"""Adds to RUN/manifest.json what a stage has run and what came of it:

    python recipes/manifest.py RUN --data DATA --stage train --commands "fairseq-train ..."

The file holds, for each stage, a list of entries, one each time that it was run; the last is what
the run stands on. None is ever taken out. The recipes call this after each stage; it imports
nothing but Python's own, so that it takes no time.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

from machine import code, hardware, versions
from prepared_data import data_facts, file_facts
from training_log import training_facts

Entry = dict[str, Any]


def facts(stage: str, run: Path, data: Path, before: Entry) -> Entry:
    """What there is to say of a stage; `before` is its last entry."""
    if stage == "prepare":
        return {"data": data_facts(data, before.get("data", {}))}
    if stage == "train":
        return training_facts(run / "train.log")
    if stage == "average":
        return {"files": file_facts(run, ["checkpoints/averaged.pt"])}
    if stage == "generate":
        return {"departures": search_departures(run / "generate.log.stderr"),
                "files": file_facts(run, ["generate.log"])}
    if stage == "hypotheses":
        return {"files": file_facts(run, ["hypotheses.txt"])}
    if stage == "score":
        scores = json.loads((run / "score.json").read_text(encoding="utf-8"))
        return {"scores": scores, "files": file_facts(run, ["hypotheses.txt", "score.json"])}
    return {}


def search_departures(log: Path) -> list[str] | None:
    """What the search did that the paper does not, as it said; None where it did not say."""
    mark = "search not as in the paper: "
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    found = next((line.split(mark)[1] for line in reversed(lines) if mark in line), None)
    return None if found is None else [] if found == "nothing" else found.split("; ")


def read(path: Path) -> Entry:
    """The manifest so far; one that cannot be read is set aside."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(entries, list) for entries in found["stages"].values()):
            raise ValueError("its stages are not lists")
        return found
    except FileNotFoundError:
        pass
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        aside = path.with_name(f"{path.name}.broken-{now()}")
        path.rename(aside)
        print(f"{path}: not a manifest ({error}); kept as {aside}, and begun anew", file=sys.stderr)
    return {"experiment": path.parent.name, "stages": {}}


def write(path: Path, manifest: Entry) -> None:
    """Replaces the file by a whole one, flushed to the disk."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def now() -> str:
    """In UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add(run: Path, data: Path, stage: str, commands: list[str], status: int = 0) -> None:
    """Adds an entry, unless the stage's last one says the same but for the time."""
    path = run / "manifest.json"
    with (run / ".manifest.lock").open("a") as lock:  # given up when the file is closed
        fcntl.lockf(lock, fcntl.LOCK_EX)
        manifest = read(path)
        entries = manifest["stages"].setdefault(stage, [])
        before = entries[-1] if entries else {}
        entry = {"commands": commands, "status": status, "code": code(), "versions": versions(),
                 "hardware": hardware(), **facts(stage, run, data, before)}
        if entry != {name: value for name, value in before.items() if name != "finished"}:
            entries.append({"finished": now(), **entry})
            write(path, manifest)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of the experiment, runs/EXPERIMENT")
    parser.add_argument("--data", type=Path, help="folder of raw/ ... data-bin/ (default: RUN)")
    parser.add_argument("--stage", required=True, help="prepare, train, average, ...")
    parser.add_argument("--commands", default="", help="what was run, a command a line")
    parser.add_argument("--status", type=int, default=0, help="with which it ended")
    args = parser.parse_args()
    try:
        args.run.mkdir(parents=True, exist_ok=True)
        add(args.run, args.data or args.run, args.stage, args.commands.splitlines(), args.status)
    except OSError as error:
        sys.exit(f"manifest.py: {error.filename or args.run}: {error.strerror or error}; nothing is"
                 f" said of this stage in {args.run}/manifest.json")


if __name__ == "__main__":
    main()
