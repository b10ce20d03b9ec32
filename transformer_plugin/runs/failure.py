"""Finds out from the log of a failed command why it failed, or that it was only stopped."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from ..exit_status import INTERRUPTED
from .spelling import shortened_usage_error

_TAIL = 1 << 20  # bytes that are searched: each of many processes may end with a traceback
_USAGE = re.compile(r"^usage: ", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]: ?)?((?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*)")
# Exceptions by a signal, and torchrun's own; then those that follow from the end of another
# process: of gloo, of torch's store, of NCCL (ncclRemoteError).
_BY_SIGNAL = re.compile(
    r"^torch\.distributed\.elastic\.|^(?:\w+\.)*(?:SignalException|KeyboardInterrupt)\b"
)
_BY_OTHERS = re.compile(
    r"gloo/transport/|Connection was likely closed|remote process exited or there was a network"
)
# A warning, up to the line of code that caused it.
_WARNING = re.compile(r"^.*Warning: .*\n(?:(?!\d{4}-|Traceback ).*\n){,9}?[ \t].*\n", re.MULTILINE)
# Lines that give no reason: of loggers, warnings, tracebacks and launchers, and mere brackets.
_MESSAGE = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| |^(INFO|DEBUG):|Warning: |^\W*$|^\s"
    r"|^(\[rank\d+\]:)?\[?[EWI]\d{4} |^\[rank\d+\]: |^Traceback |^During handling |^The above "
    r"|^srun: (?!error: )|^slurmstepd-|: Exited with exit code \d"
)
_REPORT = re.compile(r"^torch\.distributed\.elastic\.\S+:\s*\n=+\n.*", re.MULTILINE | re.DOTALL)
_KILLED = re.compile(r"Root Cause.*?rank +: (\d+).*?traceback +: (Signal [^\n]+)", re.DOTALL)
_KILLED_TASK = re.compile(r"^srun: error: \S+: tasks? ([\d,-]+): (?!Exited)(.+)", re.MULTILINE)
_WAITED = "srun: error: First task exited"  # after this, srun kills the others
# Printed by torchrun.
_OUT_OF_TIME = re.compile(r"Unable to shutdown process.*SignalException", re.DOTALL)
_PORT_IN_USE = re.compile(r"port: (\d+), .*EADDRINUSE")
_NOT_SAVED = ": not written ("  # printed by training/atomic_checkpoints.py
# Printed by training/protection.py, and by torchrun about a process of it, once all is saved.
_STOPPED = re.compile(rf"training has stopped after update|exitcode +: {INTERRUPTED} ")
_BEGUN = re.compile(r"begin training epoch|\bnum_updates=")  # printed by fairseq
_FINISHED = "done training in"  # printed by fairseq
_CRASH = re.compile(r"rank \S+: |killed by ")  # from failure_message
_SIGNALS = {128 + number: number.name for number in signal.Signals}


def end_of_log(log: Path, start: int) -> str:
    """The end of what a command has written to its log since byte ``start``."""
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _TAIL))
        return file.read().decode(errors="replace")


def is_crash(message: str) -> bool:
    """Whether a ``failure_message`` is an exception, a killed process or empty. Any other is a
    refusal, which would occur again."""
    return not message or bool(_EXCEPTION.match(message) or _CRASH.match(message))


def was_stopped(text: str, interrupted: bool) -> bool:
    """Whether a failed command was only stopped by a signal and training has lost nothing. The exit
    status does not tell: launchers have their own.

    Args:
        text: the end of its log.
        interrupted: the recipe received the signal; otherwise only one of the processes did.
    """
    if _STOPPED.search(text) or (interrupted and _FINISHED in text):
        return True
    failed = not all(map(_BY_SIGNAL.search, _exceptions(text)))
    return interrupted and not (failed or _NOT_SAVED in text or _BEGUN.search(text))


def failure_message(text: str, status: int) -> str:
    """Why a command failed: a file that was not written, an exception, the usage error, a signal,
    or the last line that is not a logger's message; "" if there is none.

    Args:
        text: the end of its log.
        status: its exit status.
    """
    if usage := _USAGE.search(text):
        return shortened_usage_error(text[usage.start() :]).rstrip("\n").split("\n")[-1]
    if killed := _KILLED.search(text):
        return f"rank {killed[1]}: {killed[2]}"
    text = text.split(_WAITED)[0]
    own = _REPORT.sub("", _WARNING.sub("", text))
    lines = [line for line in own.split("\n") if not _MESSAGE.search(line)]
    exceptions = _exceptions(text)
    causes = [e for e in exceptions if not (_BY_SIGNAL.search(e) or _BY_OTHERS.search(e))]
    if causes := [line for line in lines if _NOT_SAVED in line] or causes:
        if port := _PORT_IN_USE.search(causes[-1]):
            return f"port {port[1]} is in use, perhaps by another training: set MASTER_PORT"
        return causes[-1].strip()
    if killed := _KILLED_TASK.search(text):
        return f"rank {killed[1]}: {killed[2]}"
    if _OUT_OF_TIME.search(text):
        return "killed by torchrun before it had saved: raise TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
    if status == 128 + signal.SIGKILL:
        return "killed by SIGKILL, perhaps for lack of memory"
    if status in _SIGNALS:
        return f"killed by {_SIGNALS[status]}"
    lines = [line for line in lines if not _EXCEPTION.match(line)] or exceptions
    return lines[-1].strip() if lines else ""


def _exceptions(text: str) -> list[str]:
    """The last lines of tracebacks."""
    return [match[1].strip() for line in text.split("\n") if (match := _EXCEPTION.match(line))]
