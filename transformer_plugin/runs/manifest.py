"""``manifest.json``: what each stage of a run has run, with what, and what came of it.

The file holds, for each stage, a list of entries, one each time that it was run; the last is what
the run stands on. None is ever taken out.
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
    """What there is to say of a stage; `before` is its last entry."""
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
        return dict(found)
    except FileNotFoundError:
        pass
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        aside = path.with_name(f"{path.name}.broken-{now()}")
        path.rename(aside)
        print(f"{path}: not a manifest ({error}); kept as {aside}, and begun anew", file=sys.stderr)
    return {"experiment": path.parent.name, "stages": {}}


def now() -> str:
    """In UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add(run: Path, data: Path, stage: str, commands: list[str], status: int = 0) -> None:
    """Adds an entry, unless the stage's last one says the same but for the time. The folder of the
    run must be locked.

    Args:
        data: folder of raw/ ... data-bin/.

    Raises:
        OSError: the folder cannot be written; the manifest is as it was.
    """
    path = run / "manifest.json"
    manifest = read(path)
    entries = manifest["stages"].setdefault(stage, [])
    before = entries[-1] if entries else {}
    entry = {
        **{"commands": commands, "status": status},
        **{"code": code(), "versions": versions(), "hardware": hardware()},
        **facts(stage, run, data, before),
    }
    if entry != {name: value for name, value in before.items() if name != "finished"}:
        entries.append({"finished": now(), **entry})
        with atomic_write(path) as file:
            json.dump(manifest, file, indent=1, ensure_ascii=False)
            file.write("\n")
