"""Checksums, sizes and line counts of the files of a run."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..files import checksum
from .done_file import is_ignored, read_record

FOLDERS = ("raw", "clean", "subwords", "subwords-target", "data-bin")
WITHOUT_LINES = {".bin", ".model", ".json", ".pt", ".gz"}
INDEX = struct.Struct("<9sQBQ")  # fairseq's: magic, version, type of the numbers, sentences


def data_facts(data: Path, before: dict[str, Any]) -> dict[str, Any]:
    """The settings and files of each folder of data-prep that exists.

    Checksums are read from the step's record, DATA/.done/FOLDER.json, if there is one. Lines are
    not counted again if the checksum is the same as in ``before``, an earlier result.
    """
    found = {}
    for folder in (data / name for name in FOLDERS):
        if not folder.is_dir():
            continue
        record = read_record(data / ".done" / f"{folder.name}.json") or {}
        known = before.get(folder.name, {}).get("files", {})
        names = sorted(
            path.name for path in folder.iterdir() if path.is_file() and not is_ignored(path)
        )
        found[folder.name] = {
            "settings": record.get("settings"),
            "files": file_facts(folder, names, record.get("outputs", {}), known),
        }
    return found


def file_facts(
    folder: Path,
    names: Iterable[str],
    checksums: dict[str, str] | None = None,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """``sha256``, ``bytes`` and, for text, ``lines`` of each file that exists."""
    found = {}
    for name in names:
        path = folder / name
        if not path.is_file():
            continue
        sha256 = (checksums or {}).get(name) or checksum(path)
        earlier = (known or {}).get(name, {})
        if earlier.get("sha256") == sha256:
            found[name] = earlier
            continue
        found[name] = {"sha256": sha256, "bytes": path.stat().st_size}
        lines = _lines(path)
        if lines is not None:
            found[name]["lines"] = lines
    return found


def _lines(path: Path) -> int | None:
    """The number of lines of a text, or of sentences of fairseq's index; None for other files."""
    if path.suffix in WITHOUT_LINES:
        return None
    with path.open("rb") as file:
        if path.suffix == ".idx":
            header = file.read(INDEX.size)
            known = len(header) == INDEX.size and header.startswith(b"MMIDIDX\0\0")
            return int(INDEX.unpack(header)[3]) if known else None
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
