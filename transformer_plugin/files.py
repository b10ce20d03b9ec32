"""Atomic writes and checksums of files."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w", follow_symlinks: bool = False) -> Iterator[IO[Any]]:
    """A file opened for writing, which replaces ``path`` when the block ends without an error.

    Until then it has a temporary name beside ``path``; it is flushed to disk. Devices, pipes and
    open descriptors such as /dev/stdout are written directly.

    Args:
        mode: "w" for UTF-8 text with unchanged line feeds; "wb" for bytes.
        follow_symlinks: keep a link, and replace the file that it leads to.

    Raises:
        FileNotFoundError: the folder does not exist.
        IsADirectoryError: ``path`` is a folder.
        OSError: the folder cannot be written or the disk is full; ``path`` is not changed.
    """
    check_target(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    if path.exists() and (not path.is_file() or _is_open(path)):
        with path.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
        return
    if follow_symlinks:
        path = path.resolve()
        check_target(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_target(path: Path, *others: Path | None) -> None:
    """Checks, before work whose result would be lost, that a file can be named ``path``.

    Args:
        others: files that the command reads, or writes besides.

    Raises:
        FileNotFoundError: the folder does not exist.
        IsADirectoryError: ``path`` is a folder.
        ValueError: ``path`` is one of the others.
    """
    same = os.path.realpath(path) in (os.path.realpath(other) for other in others if other)
    if same and (path.is_file() or not path.exists()):  # not a terminal
        raise ValueError(f"{path} would be read and overwritten, or written twice: name another")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder: create it first")


def _is_open(path: Path) -> bool:
    """Whether ``path`` is, or links to, an open descriptor such as /proc/self/fd/1."""
    while path.is_symlink():
        if path.parent.resolve().is_relative_to("/proc"):
            return True
        path = path.parent / path.readlink()
    return False


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path``, which replaces it when the block ends without an error.

    Raises:
        OSError: the folder cannot be written or the disk is full; ``path`` is not changed.
    """
    partial, former = (
        path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("partial", "former")
    )
    try:
        partial.mkdir(parents=True)
        yield partial
        if path.exists():
            path.rename(former)
        try:
            partial.rename(path)
        except OSError:
            if former.exists():
                former.rename(path)
            raise
    finally:
        for folder in (partial, former):
            shutil.rmtree(folder, ignore_errors=True)


def remove_unfinished(path: Path, is_pattern: bool = False) -> None:
    """Removes partial files of killed processes. No other process may be writing ``path``.

    Args:
        is_pattern: whether the name is a pattern of several.
    """
    name = path.name if is_pattern else glob.escape(path.name)
    for left in path.parent.glob(f".{name}.*"):
        if left.suffix in (".partial", ".former"):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """Hex digest of a file's bytes.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def shown_path(path: Path) -> str:
    """A path for messages: relative to the working directory, if it is inside that."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else path)
