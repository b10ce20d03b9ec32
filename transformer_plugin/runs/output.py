"""Runs a command that writes its own log file, and shows parts of the log on the screen."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from ..files import atomic_write
from .failure import end_of_log
from .plan import Command
from .process import Supervisor
from .screen import Screen, screen


def run(supervisor: Supervisor, command: Command) -> str:
    """Runs a command, with its output in its log file or result file, if it has one.

    Returns:
        The end of its log; "" if the command succeeded, or has no log.
    """
    if command.log is not None:
        return _run_logged(supervisor, command, command.log)
    if command.stdout is not None:
        return _run_captured(supervisor, command, command.stdout)
    supervisor.start(command.words, variables=command.variables)
    supervisor.ended()
    return ""


def _run_logged(supervisor: Supervisor, command: Command, log: Path) -> str:
    """Runs a command with both streams redirected to ``log``, and shows the file as it grows.

    The file is opened for appending, so several writers do not overwrite each other's lines, and
    if a process is killed, the lines written before are in the file.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        if not command.continues:
            file.truncate(0)
        start = file.seek(0, os.SEEK_END)
        supervisor.start(command.words, file.fileno(), file.fileno(), command.variables)
        return _follow(supervisor, log, start, screen(sys.stdout))


def _run_captured(supervisor: Supervisor, command: Command, output: Path) -> str:
    """Runs a command with standard output redirected to ``output``, which is replaced only if the
    command succeeds. Standard error goes to OUTPUT.stderr."""
    end = ""
    with (
        contextlib.suppress(_CommandFailed),
        atomic_write(output, "wb") as file,
        command.messages.open("ab") as errors,
    ):
        errors.truncate(0)
        supervisor.start(command.words, file.fileno(), errors.fileno(), command.variables)
        end = _follow(supervisor, command.messages, 0, screen(sys.stderr))
        if supervisor.status:
            raise _CommandFailed
    return end


class _CommandFailed(Exception):
    """Raised to keep the old file."""


def _follow(supervisor: Supervisor, path: Path, start: int, shown: Screen) -> str:
    """Shows what the command appends to ``path`` after byte ``start``, until it ends; returns the
    end of that if the command failed, or ""."""
    with path.open("rb") as file:
        file.seek(start)
        ended = False
        while not ended:
            ended = supervisor.ended(0.1)
            shown.write(file.read())
    shown.close()
    return end_of_log(path, start) if supervisor.status else ""
