"""Peak memory of a command with all its child processes, from /proc."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

INTERVAL = 0.2  # seconds


def children(parent: int) -> list[int]:
    """The process and all its descendants."""
    try:
        tasks = Path(f"/proc/{parent}/task").glob("*/children")
        direct = [int(number) for task in tasks for number in task.read_text().split()]
    except OSError:  # it has ended
        return []
    return [parent, *(number for child in direct for number in children(child))]


def memory(process: int) -> int:
    """Bytes of a process, with shared pages divided among the processes that use them (PSS)."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def peak_of_tree(process: subprocess.Popen) -> int:
    """Peak bytes of the command and its children together, sampled until it ends."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(memory, children(process.pid))))
        time.sleep(INTERVAL)
    return peak
