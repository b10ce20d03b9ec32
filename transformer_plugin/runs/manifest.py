"""``manifest.json`` records every stage of a run: commands, versions, hardware and results.

Each stage has a list of entries, one for each time that it ran; ``prepare``, which skips its steps
by itself, has one for each time that the data changed. The last entry describes the files that are
there now. Entries are never removed.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

from ..files import atomic_write
from .data_files import data_facts, file_facts
from .machine import code, hardware, versions
from .training_facts import training_facts

Entry = dict[str, Any]


def facts(stage: str, run: Path, data: Path, before: Entry) -> Entry:
    """The results of a stage.

    Args:
        before: the stage's last entry.
    """
    if stage == "prepare":
        return {"data": data_facts(data, before.get("data", {}))}
    if stage == "train":
        return training_facts(run / "train.log")
    if stage == "average":
        return {"files": file_facts(run, ["checkpoints/averaged.pt"])}
    if stage == "generate":
        return {
            "deviations": search_deviations(run / "generate.log.stderr"),
            "files": file_facts(run, ["generate.log"]),
        }
    if stage == "hypotheses":
        return {"files": file_facts(run, ["hypotheses.txt"])}
    if stage == "score":
        scores = json.loads((run / "score.json").read_text(encoding="utf-8"))
        return {"scores": scores, "files": file_facts(run, ["hypotheses.txt", "score.json"])}
    return {}


def search_deviations(log: Path) -> list[str] | None:
    """How the search differed from the paper's, from its log; None if the log does not say."""
    mark = "search not as in the paper: "
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    found = next((line.split(mark)[1] for line in reversed(lines) if mark in line), None)
    return None if found is None else [] if found == "nothing" else found.split("; ")


def read(path: Path) -> Entry:
    """Reads the manifest. A damaged one is renamed, and a new one is started."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(entries, list) for entries in found["stages"].values()):
            raise ValueError("its stages are not lists")
        return dict(found)
    except FileNotFoundError:
        pass
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        aside = path.with_name(f"{path.name}.broken-{now()}")
        path.rename(aside)
        print(
            f"{path} is damaged ({error}): renamed to {aside}; a new one is written",
            file=sys.stderr,
        )
    return {"stages": {}}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add(run: Path, data: Path, stage: str, commands: list[str], status: int = 0) -> None:
    """Adds an entry, unless only its time differs from that of the stage's last one, or it is of
    ``prepare`` and the data is the same. The caller holds the lock of the run's folder.

    Args:
        data: the folder with raw/, clean/, subwords/ and data-bin/.

    Raises:
        OSError: the folder cannot be written; the manifest is unchanged.
    """
    path = run / "manifest.json"
    manifest = read(path)
    entries = manifest["stages"].setdefault(stage, [])
    before = entries[-1] if entries else {}
    results = facts(stage, run, data, before)
    if stage == "prepare" and results["data"] == before.get("data"):
        return
    entry = {
        **{"commands": commands, "status": status},
        **{"code": code(), "versions": versions(), "hardware": hardware()},
        **results,
    }
    if entry != {name: value for name, value in before.items() if name != "finished"}:
        entries.append({"finished": now(), **entry})
        with atomic_write(path) as file:
            json.dump(manifest, file, indent=1, ensure_ascii=False)
            file.write("\n")
