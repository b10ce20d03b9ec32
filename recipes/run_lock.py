"""Locks the folder of a run for a recipe: python3 recipes/run_lock.py DESCRIPTOR FILE NAME PID

DESCRIPTOR is the open lock file FILE, NAME and PID are of the recipe that has opened it. The lock
belongs to the open file: the recipe and every command that it starts hold it, until the last of
them has ended, however they end.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from pathlib import Path

PATIENCE = 10  # seconds for a recipe that is just ending


def main() -> None:
    descriptor, path, name, pid = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = path.read_text(encoding="utf-8", errors="replace").strip()
                sys.exit(f"{path.parent}: {holder or 'another recipe'}, or a command that it"
                         " started, is at work in this folder: wait for it, or stop it")
            time.sleep(0.1)
        except OSError:  # a file system without locks
            return
    os.ftruncate(descriptor, 0)
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    os.write(descriptor, f"{name} (process {pid} on {socket.gethostname()}, since {since})\n"
             .encode())


if __name__ == "__main__":
    main()
