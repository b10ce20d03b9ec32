"""Runs a command of a recipe, which ends when the recipe does:

    python3 recipes/command.py PARENT [--log LOG [--append] | --output FILE] -- CMD ...

PARENT is the process number of the shell that calls this. SIGTERM, SIGINT and SIGUSR1 go on to CMD
as one SIGTERM; so does the end of PARENT, even by SIGKILL (on Linux). The exit status is CMD's, 128
plus the number of the signal that killed it, or 85 when it was told to stop and did not succeed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from screen import Screen

STOPPED = 85  # as fairseq-train ends with the plugin: saved, and the same command goes on
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Command:
    """A command that is told once to stop, and that does not outlive this process."""

    def __init__(self, words: list[str], parent: int) -> None:
        self.words = words
        self.stopped = False
        self.process: subprocess.Popen[bytes] | None = None
        self._prctl = getattr(ctypes.CDLL(None), "prctl", None)
        for number in SIGNALS:
            signal.signal(number, self._stop)
        self._end_with(parent, lambda: self._stop(signal.SIGTERM, None))

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if not self.stopped and self.process is not None:
            self.process.terminate()
        self.stopped = True

    def _end_with(self, parent: int, ended: Callable[[], object]) -> None:
        """SIGTERM for this process when its parent ends; `ended` is called if it has already."""
        if self._prctl is not None:
            self._prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            ended()

    def start(self, stdout: int | None = None, stderr: int | None = None) -> None:
        """Starts it, with descriptors for its output; those that this process was given stay open
        in it, the lock of the run among them."""
        this = os.getpid()

        def before_exec() -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it as SIGTERM, once
            self._end_with(this, lambda: os._exit(STOPPED))

        if self.stopped:
            sys.exit(STOPPED)
        try:
            self.process = subprocess.Popen(
                self.words, stdout=stdout, stderr=stderr, close_fds=False, preexec_fn=before_exec
            )
        except OSError as error:
            print(f"{self.words[0]}: {error.strerror}", file=sys.stderr)
            sys.exit(127)
        if self.stopped:  # a signal came in between
            self.process.terminate()

    def ended(self, seconds: float | None = None) -> bool:
        """Waits for the end, `seconds` at most."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    @property
    def status(self) -> int:
        assert self.process is not None
        status: int = self.process.returncode
        if status and self.stopped:
            return STOPPED
        return status if status >= 0 else 128 - status


def run(command: Command) -> None:
    """Runs it with the standard streams of this process."""
    command.start()
    command.ended()


def run_logged(command: Command, log: Path, append: bool) -> None:
    """Runs it with both streams into `log`, which is shown as it grows.

    The command itself writes to the file, at its end whoever else writes: whatever is killed, no
    line is lost and no hole is left.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        if not append:
            file.truncate(0)
        start = file.seek(0, os.SEEK_END)
        command.start(file.fileno(), file.fileno())
        Screen(sys.stdout, bar=sys.stdout.isatty()).follow(log, start, command)


def run_captured(command: Command, output: Path) -> None:
    """Runs it with standard output into `output`, which appears only when it succeeds; standard
    error is shown, and written to OUTPUT.stderr."""
    partial, messages = (output.with_name(output.name + end) for end in (".partial", ".stderr"))
    output.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file, messages.open("ab") as errors:
        errors.truncate(0)
        command.start(file.fileno(), errors.fileno())
        Screen(sys.stderr).follow(messages, 0, command)
        if command.status == 0:
            os.fsync(file.fileno())
    if command.status == 0:
        partial.replace(output)
    else:
        partial.unlink()


def main() -> int:
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parent", type=int)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args(sys.argv[1:split])
    command = Command(sys.argv[split + 1 :], args.parent)
    if args.log:
        run_logged(command, args.log, args.append)
    elif args.output:
        run_captured(command, args.output)
    else:
        run(command)
    return command.status


if __name__ == "__main__":
    sys.exit(main())
