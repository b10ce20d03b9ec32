"""Records the inputs and settings of a stage: a finished one runs again only if they change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..files import atomic_write, checksum

IGNORED = (".*", "*.log", "*.partial", "*.pyc")  # files and folders that do not affect the result


class DoneFile:
    """``FOLDER/.done/NAME.json``: what a stage was last started with, and checksums of its outputs
    once it has finished.

    Files are recorded by name, so that the folder of a run may move.

    Args:
        folder: the run's folder.
        name: the stage's name.
        settings: everything else that the result depends on; values that JSON can hold.
        inputs: files and folders. A folder stands for all its files except hidden ones and logs.
        ignored: patterns of names of other files in folders that do not count.

    Raises:
        FileNotFoundError: an input is missing.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        settings: dict[str, Any],
        inputs: Iterable[Path],
        ignored: Sequence[str] = (),
    ) -> None:
        self.path = folder / ".done" / f"{name}.json"
        settings = json.loads(json.dumps(settings))  # tuples become lists, as in the file
        self._wanted = {"settings": settings, "inputs": checksums(inputs, ignored)}
        self._ignored = ignored
        self._before: tuple[dict[str, Any] | None, dict[str, str]] = (None, {})

    @property
    def has_record(self) -> bool:
        """Whether it is known what the stage was last started with."""
        return self._record() is not None

    @property
    def recorded_settings(self) -> dict[str, Any]:
        """The settings that the stage was last started with; empty if there is no record."""
        return dict((self._record() or {}).get("settings") or {})

    def changes(self) -> list[str]:
        """What has changed since the stage was started: "settings", and the names of inputs; empty
        if it never was."""
        return self._changes_of(self._record())

    def _changes_of(self, record: dict[str, Any] | None) -> list[str]:
        if record is None:
            return []
        then, now = record["inputs"], self._wanted["inputs"]
        then = {name: then[name] for name in then if not self._is_ignored(name)}
        names = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
        return ["settings"] * (record["settings"] != self._wanted["settings"]) + names

    def _is_ignored(self, name: str) -> bool:
        """Whether a recorded file in a folder no longer counts, because of its name."""
        return "/" in name and is_ignored(Path(name), self._ignored)

    def is_current(self, outputs: Iterable[Path]) -> bool:
        """Whether the stage made exactly these outputs from exactly these inputs and settings."""
        record = self._record()
        if record is None or self._changes_of(record):
            return False
        return bool(record["outputs"] == _checksums_of_existing(outputs))

    def not_written(self, folder: Path) -> Path | None:
        """A file or folder in the output ``folder`` that the stage has not written, except logs.
        None if it has written all, or was killed while it replaced the folder."""
        entries = sorted(folder.iterdir())
        if not self.path.exists():
            return next(iter(entries), None)
        outputs = (self._record() or {}).get("outputs")
        if outputs is None:
            return None
        return next((e for e in entries if e.name not in outputs and e.suffix != ".log"), None)

    def start(self, outputs: Iterable[Path]) -> None:
        """Records what the stage is started with; ``end`` must follow.

        Args:
            outputs: those that it continues from; none if it makes them anew.
        """
        self._before = self._record(), _checksums_of_existing(outputs)
        self._save(self._wanted | {"outputs": None})

    def end(
        self,
        outputs: Iterable[Path],
        finished: bool,
        before_saving: Callable[[], None] = lambda: None,
    ) -> None:
        """Records the outputs if the stage has finished.

        If it has not changed the outputs that it continued from, the record is restored in three
        cases: there was none; the stage failed; or it had already finished, with other inputs or
        settings, and found nothing left to do.

        Args:
            before_saving: called before a new record is saved. If the process is killed in it, the
                stage runs again.
        """
        record, before = self._before
        now = _checksums_of_existing(outputs)
        had_finished = record is not None and record["outputs"] is not None
        found_nothing_to_do = had_finished and bool(self._changes_of(record))
        is_unknown = record is None and bool(before)
        if now == before and (is_unknown or found_nothing_to_do or not finished):
            self._save(record)
        elif finished:
            before_saving()
            self._save(self._wanted | {"outputs": now})

    def _record(self) -> dict[str, Any] | None:
        return read_record(self.path)

    def clear(self) -> None:
        """Removes the record, before the outputs change."""
        self.path.unlink(missing_ok=True)

    def _save(self, record: dict[str, Any] | None) -> None:
        if record is None:
            self.clear()
            return
        self.path.parent.mkdir(exist_ok=True)
        with atomic_write(self.path) as file:
            json.dump(record, file, indent=1, sort_keys=True)
            file.write("\n")


def read_record(path: Path) -> dict[str, Any] | None:
    """The contents of a ``DoneFile``'s file; None if it is missing or damaged."""
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        whole = isinstance(record["inputs"], dict) and {"settings", "outputs"} <= record.keys()
        return record if whole else None
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return None


def _checksums_of_existing(paths: Iterable[Path]) -> dict[str, str]:
    return checksums(path for path in paths if path.exists())


def checksums(paths: Iterable[Path], ignored: Sequence[str] = ()) -> dict[str, str]:
    """The sha256 of each file by name; files in a folder are named NAME/FILE. Links are followed.
    Files in a folder whose names match a pattern of ``ignored`` are left out.

    Raises:
        FileNotFoundError: a path or the target of a link is missing.
    """
    found = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: run the stage that writes it first")
        files = _files(path, ignored) if path.is_dir() else [path]
        for file in sorted(files):
            name = str(file.relative_to(path.parent))
            if name in found:  # a file in another folder has that name
                name = str(file)
            found[name] = checksum(file)
    return found


def _files(
    folder: Path, ignored: Sequence[str], above: tuple[tuple[int, int], ...] = ()
) -> Iterator[Path]:
    """The files of a folder at any depth, except those of ``IGNORED`` and ``ignored``. A link to a
    folder above it is not followed."""
    status = folder.stat()
    this = (status.st_dev, status.st_ino)
    if this in above:
        return
    for path in folder.iterdir():
        if is_ignored(path):
            continue
        if path.is_dir():
            yield from _files(path, ignored, (*above, this))
        elif not is_ignored(path, ignored):
            if not path.exists():
                raise FileNotFoundError(f"{path} is a link to a file that does not exist")
            yield path


def is_ignored(path: Path, patterns: Sequence[str] = IGNORED) -> bool:
    """Whether the name of a file or folder matches one of the patterns."""
    return any(fnmatchcase(path.name, pattern) for pattern in patterns)
