"""One run at a time in a folder of checkpoints."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import IO

PATIENCE = 10  # seconds for a run that is just ending
_held: dict[Path, IO[str]] = {}  # closing the file, as collecting it would, gives the lock up


def hold_lock(folder: Path, patience: float = PATIENCE) -> None:
    """Keeps other runs out of ``folder`` until this process ends, however it ends.

    The lock is the kernel's, on ``folder/.lock``, and of this process alone: not of its children.

    Raises:
        SystemExit: another run has it.
    """
    path = folder.resolve() / ".lock"
    if path in _held:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except (BlockingIOError, PermissionError):
            if time.monotonic() >= deadline:
                file.seek(0)
                holder = file.read().strip() or "another process"
                file.close()
                raise SystemExit(
                    f"{folder}: {holder} trains into this folder (its lock is {path}). Wait for"
                    " it or stop it, or give this run another --save-dir"
                ) from None
            time.sleep(0.2)
        except OSError:  # a file system without locks
            break
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    _held[path] = file
