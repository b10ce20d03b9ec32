"""Shared libraries that are compiled from C++ on first use and kept in the user's cache folder.

A library runs with all permissions of its user. Only undamaged files that nobody else can write are
loaded; any other file is compiled again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

SECONDS = 240  # for the compiler, and for another process that compiles the same
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # permissions to write
_MAKING = "making-"  # temporary folders; those of killed processes are removed


def load(
    name: str,
    sources: Sequence[Path],
    headers: Sequence[Path],
    flags: Sequence[str],
    machine: str,
    libraries: Sequence[str] = (),
) -> ctypes.CDLL:
    """The library of these files, compiled with ``CXX`` (default ``c++``).

    It is kept as ``NAME-KEY-DIGEST.so``: the key depends on the compiler, the sources, the flags
    and ``machine``; the digest is that of the file itself. If the cache folder cannot be used, the
    library is compiled for this process only, and the log says why.

    Args:
        headers: files that the sources include.
        machine: describes everything else that a compiled file depends on.
        libraries: flags of the linker, which follow the sources.

    Raises:
        OSError: there is no compiler, it failed, or its output cannot be loaded.
    """
    compiler = [*_compiler(), *flags]
    made_from = repr((compiler, machine, *libraries)).encode()
    made_from += b"".join(path.read_bytes() for path in [*sources, *headers])
    stem = f"{name}-{_digest(made_from)}"
    command = [*compiler, *map(str, sources), *libraries]
    try:
        return _load_from_cache(stem, command)
    except (OSError, RuntimeError) as error:
        reason = error
    with tempfile.TemporaryDirectory(prefix=_MAKING) as making:
        library = ctypes.CDLL(str(_compile(command, Path(making) / f"{stem}.so")))
    logger.warning(
        "compiled %s cannot be kept, so every start compiles them again: %s", name, reason
    )
    return library


def _load_from_cache(stem: str, command: Sequence[str]) -> ctypes.CDLL:
    """The library of that name in the cache folder, compiled if necessary.

    Raises:
        OSError, RuntimeError: the folder cannot be used, or the compiler.
    """
    folder = _private_folder()
    if kept := _kept(folder, stem):
        return ctypes.CDLL(str(kept))
    with _lock(folder):
        if kept := _kept(folder, stem):  # another process has just compiled it
            return ctypes.CDLL(str(kept))
        _remove_leftovers(folder, stem)
        with tempfile.TemporaryDirectory(prefix=_MAKING, dir=folder) as making:
            made = _compile(command, Path(making) / f"{stem}.so")
            return ctypes.CDLL(str(_keep(made, folder)))


def _private_folder() -> Path:
    """The folder of kept libraries, created if necessary.

    Raises:
        OSError: it cannot be created, or others can write there.
        RuntimeError: the user has no home folder.
    """
    # The XDG Base Directory Specification says to ignore a relative XDG_CACHE_HOME.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = cache if cache.is_absolute() else Path.home() / ".cache"
    if not cache.is_absolute():
        raise OSError(f"the home folder {str(Path.home())!r} is not an absolute path: correct HOME")
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / "transformer_plugin"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder = folder.resolve()
    found = folder.stat()
    if found.st_uid == os.geteuid() and found.st_mode & _BY_OTHERS:
        folder.chmod(stat.S_IMODE(found.st_mode) & ~_BY_OTHERS)
    if not _is_private(folder):
        raise OSError(f"others can write to {folder}: set XDG_CACHE_HOME to another folder")
    for parent in folder.parents:  # its writers could replace the folder
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise OSError(f"everybody can write to {parent}: set XDG_CACHE_HOME to another folder")
    return folder


def _is_private(path: Path) -> bool:
    """Whether only this user and root can write to ``path``."""
    found = path.stat()
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & _BY_OTHERS


def _kept(folder: Path, stem: str) -> Path | None:
    """The undamaged library of that name, if there is one."""
    for path in folder.glob(f"{stem}-*.so"):
        with contextlib.suppress(OSError):  # just removed, or unreadable
            if _is_private(path) and path.name == f"{stem}-{_digest(path.read_bytes())}.so":
                return path
    return None


def _lock(folder: Path) -> contextlib.AbstractContextManager:
    """Lets one process compile at a time."""
    import filelock  # comes with torch; not needed once the library is compiled

    logging.getLogger("filelock").setLevel(logging.INFO)  # DEBUG logs every step
    return filelock.FileLock(folder / "lock", timeout=SECONDS)


def _remove_leftovers(folder: Path, stem: str) -> None:
    """Removes unfinished files of killed processes and damaged libraries. Needs the lock."""
    for path in folder.glob(f"{_MAKING}*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"{stem}-*.so"):
        logger.warning("%s is damaged, or others can write to it: it is compiled again", path)
        path.unlink()


def _compiler() -> list[str]:
    try:
        return shlex.split(os.environ.get("CXX", "")) or ["c++"]
    except ValueError as error:
        raise OSError(f"CXX={os.environ['CXX']}: {error}") from None


def _compile(command: Sequence[str], made: Path) -> Path:
    """Compiles ``made``, and returns it."""
    try:
        subprocess.run(
            [*command, "-o", str(made)],
            check=True,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.CalledProcessError as error:
        # "final link failed: No space left on device" comes before the last line, "error: ...".
        said = (x for x in error.stderr.splitlines() if "error" in x or "failed" in x)
        reason = next(said, f"exit status {error.returncode}")
        raise OSError(f"{command[0]} failed: {reason}") from None
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} took longer than {SECONDS} s") from None
    return made


def _keep(made: Path, folder: Path) -> Path:
    """Flushes a library to disk, moves it into the folder and returns its new path."""
    made.chmod(0o700)
    with made.open("rb") as file:
        kept = folder / f"{made.stem}-{_digest(file.read())}.so"
        os.fsync(file.fileno())
    return made.replace(kept)


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()[:32]
