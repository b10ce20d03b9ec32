"""Finds the error message of a failed command in its log."""

from __future__ import annotations

import re
from pathlib import Path

from .spelling import shortened_usage_error

_TAIL = 1 << 16  # bytes that are searched
_USAGE = re.compile(r"^usage: ", re.MULTILINE)
_LAUNCHER = re.compile(r"^[EWI]\d{4} .*elastic.*", re.MULTILINE | re.DOTALL)  # torchrun's messages
_KILLED = re.compile(r"Root Cause.*?rank +: (\d+).*?traceback +: (Signal [^\n]+)", re.DOTALL)
_STOPPED = re.compile(r"(?:\w+\.)*(?:SignalException|KeyboardInterrupt)\b")
_NOT_SAVED = ": not written ("  # of training/atomic_checkpoints.py
_KILLED_RANK = re.compile(r"rank \d+: Signal ")  # from failure_message
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]: ?)?((?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*)")
# A logger's messages, and warnings.
_MESSAGE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| |^(INFO|DEBUG):|Warning: ")


def is_crash(message: str) -> bool:
    """Whether a ``failure_message`` is an exception, a killed process or empty. Any other is a
    refusal, which would occur again."""
    return not message or bool(_EXCEPTION.match(message) or _KILLED_RANK.match(message))


def is_stop(message: str) -> bool:
    """Whether the ``failure_message`` of a command that got a signal to stop tells of nothing else;
    launchers end with a status and a message of their own then."""
    if _STOPPED.match(message) or _KILLED_RANK.match(message):
        return True
    return not _EXCEPTION.match(message) and _NOT_SAVED not in message


def failure_message(log: Path, start: int) -> str:
    """The exception, the usage error or the last line of a command that is not a logger's message;
    "" if there is none.

    Args:
        start: byte at which the command's own output begins.
    """
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _TAIL))
        text = file.read().decode(errors="replace")
    if usage := _USAGE.search(text):
        return shortened_usage_error(text[usage.start() :]).rstrip("\n").split("\n")[-1]
    if killed := _KILLED.search(text):
        return f"rank {killed[1]}: {killed[2]}"
    lines = [line.strip() for line in _LAUNCHER.sub("", text).split("\n") if line.strip()]
    exceptions = [match[1] for line in lines if (match := _EXCEPTION.match(line))]
    if exceptions:
        return exceptions[-1]
    return next((line for line in reversed(lines) if not _MESSAGE.search(line)), "")
