"""Records the inputs and settings of a finished stage: it runs again only if they change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..files import atomic_write, checksum

IGNORED = (
    ".log",
    ".partial",
    ".pyc",
)  # in a folder: files that may change without changing the result


class DoneFile:
    """``FOLDER/.done/NAME.json``: settings and checksums of the last complete run of a stage.

    Files are recorded by name, so that the folder of a run may move.

    Args:
        folder: of the run.
        name: of the stage.
        settings: everything else that the result depends on; values that JSON can hold.
        inputs: files and folders. A folder stands for all its files except hidden ones and logs.

    Raises:
        FileNotFoundError: an input is missing.
    """

    def __init__(
        self, folder: Path, name: str, settings: dict[str, Any], inputs: Iterable[Path]
    ) -> None:
        self.path = folder / ".done" / f"{name}.json"
        settings = json.loads(json.dumps(settings))  # tuples become lists, as in the file
        self._wanted = {"settings": settings, "inputs": checksums(inputs)}

    def changes(self) -> list[str]:
        """The names of inputs that have changed since the stage finished, and "settings" if those
        have; empty if it never finished."""
        record = self._record()
        if record is None:
            return []
        then, now = record["inputs"], self._wanted["inputs"]
        names = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
        return names + ["settings"] * (record["settings"] != self._wanted["settings"])

    def is_current(self, outputs: Iterable[Path]) -> bool:
        """Whether the stage made exactly these outputs from exactly these inputs and settings."""
        record = self._record()
        if record is None or self.changes():
            return False
        try:
            return bool(record["outputs"] == checksums(outputs))
        except FileNotFoundError:
            return False

    def is_of_other_inputs(self, outputs: Iterable[Path]) -> bool:
        """Whether exactly these outputs were made from other inputs: the stage continued from them
        and found nothing left to do."""
        record = self._record()
        return (
            record is not None
            and record["inputs"] != self._wanted["inputs"]
            and bool(record["outputs"] == checksums(outputs))
        )

    def _record(self) -> dict[str, Any] | None:
        """The file's contents; None if it is missing or damaged."""
        try:
            record = dict(json.loads(self.path.read_text(encoding="utf-8")))
            whole = isinstance(record["inputs"], dict) and {"settings", "outputs"} <= record.keys()
            return record if whole else None
        except (FileNotFoundError, LookupError, TypeError, ValueError):
            return None

    def clear(self) -> None:
        """Removes the record, before the outputs change."""
        self.path.unlink(missing_ok=True)

    def write(self, outputs: Iterable[Path]) -> None:
        """Writes the record, when the outputs are complete."""
        record = self._wanted | {"outputs": checksums(outputs)}
        self.path.parent.mkdir(exist_ok=True)
        with atomic_write(self.path) as file:
            json.dump(record, file, indent=1, sort_keys=True)
            file.write("\n")


def checksums(paths: Iterable[Path]) -> dict[str, str]:
    """The sha256 of each file by name; files in a folder are named NAME/FILE. Links are followed.

    Raises:
        FileNotFoundError: a path or the target of a link is missing.
    """
    found = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: run the stage that writes it first")
        files = _files(path, ()) if path.is_dir() else [path]
        for file in sorted(files):
            name = str(file.relative_to(path.parent))
            if name in found:  # a file in another folder has that name
                name = str(file)
            found[name] = checksum(file)
    return found


def _files(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    """The files of a folder at any depth, except hidden ones and logs. A link to a folder above it
    is not followed."""
    status = folder.stat()
    this = (status.st_dev, status.st_ino)
    if this in above:
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files(path, (*above, this))
        elif path.name[0] != "." and path.suffix not in IGNORED:
            if not path.exists():
                raise FileNotFoundError(f"{path} is a link to a file that does not exist")
            yield path
