"""Runs commands that stop cleanly on a signal and end with this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

from ..exit_status import INTERRUPTED

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(parent: int) -> None:
    """Makes Linux send this process a SIGTERM when ``parent`` ends, also after ``exec``. Exits at
    once if ``parent`` has already ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(INTERRUPTED)


class Supervisor:
    """Runs commands, one at a time.

    SIGTERM, SIGINT, SIGUSR1 and SIGHUP to this process are passed on to the running command as one
    SIGTERM, and no other command starts after that; SIGHUP is ignored if it was, as under nohup.
    The command also gets a SIGTERM when this process ends, even by SIGKILL.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self.signal = ""  # name of the first signal
        self._process: subprocess.Popen[bytes] | None = None
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        if not self.interrupted:
            self.signal = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if not self.interrupted and self._process is not None:
            self._process.terminate()
        self.interrupted = True

    def start(
        self,
        words: Sequence[str],
        stdout: int | None = None,
        stderr: int | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Starts a command. It inherits open descriptors, such as the lock of the run.

        Args:
            stdout, stderr: descriptors for its output; None: those of this process.
            variables: added to the environment of this process.

        Raises:
            OSError: the command cannot be started.
        """
        parent = os.getpid()

        def before_exec() -> None:
            for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all
                signal.signal(number, signal.SIG_IGN)  # the command gets one SIGTERM
            end_with_parent(parent)

        self._process = subprocess.Popen(
            words,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **(variables or {})},
            close_fds=False,
            preexec_fn=before_exec,
        )
        if self.interrupted:  # the signal came before the process existed
            self._process.terminate()

    def ended(self, seconds: float | None = None) -> bool:
        """Waits up to ``seconds`` for the command to end; returns whether it has ended."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    @property
    def status(self) -> int:
        """The command's exit status. If a signal killed it: INTERRUPTED if this process was told to
        stop, too, else 128 plus the number of the signal."""
        assert self._process is not None
        status: int = self._process.returncode
        if -status in SIGNALS and self.interrupted:
            return INTERRUPTED
        return status if status >= 0 else 128 - status
