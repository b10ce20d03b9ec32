"""A file lock, which is released when the processes that hold it end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import lock_descriptor

DATA_LOCK = Path(".done/.lock")  # in a folder of data; shared by the runs that use it
PATIENCE = 10.0  # seconds for a process that is just ending


class LockedError(OSError):
    """Another process holds the lock; the message names it."""


@contextlib.contextmanager
def file_lock(
    path: Path,
    holder: str,
    patience: float = PATIENCE,
    inherited: bool = False,
    shared: bool = False,
) -> Iterator[None]:
    """Holds a lock on the file ``path`` during the block: exclusive, or with ``shared`` one that
    others may share, but that excludes exclusive locks.

    The system releases the lock when every process that has the file open has ended, for whatever
    reason: this one, its forks, and with ``inherited`` the commands that it starts. On a file
    system without locks this does nothing.

    Args:
        holder: the name of this process in messages of other processes.
        patience: seconds to wait for the lock.

    Raises:
        LockedError: another process still holds it.
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        acquired = _acquired(file.fileno(), 0 if shared else patience)
        if acquired:  # nobody else holds it: the names in the file are stale
            file.truncate(0)
        if shared:
            acquired = _acquired(file.fileno(), patience, shared)
        if not acquired:
            file.seek(0)
            others = ", ".join(file.read().splitlines()) or "another process"
            raise LockedError(f"{path}: locked by {others}: wait for it to end, or stop it")
        os.set_inheritable(file.fileno(), inherited)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        file.write(f"{holder} (process {os.getpid()} on {socket.gethostname()}, since {since})\n")
        file.flush()
        yield


def _acquired(descriptor: int, patience: float, shared: bool = False) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            if _try_lock(descriptor, shared):
                return True
        except OSError:  # a file system without locks
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)


def _try_lock(descriptor: int, shared: bool) -> bool:
    if not shared:
        return lock_descriptor(descriptor, blocking=False)
    try:  # filelock has no shared lock of a descriptor; its exclusive one is of this kind
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
