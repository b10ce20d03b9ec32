"""The output of a command: it writes the file itself, and this process shows what it writes."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import TextIO

from ..files import atomic_write
from .plan import Command
from .process import Supervisor
from .spelling import shortened_usage_error

_USAGE = re.compile(rb"^usage: ", re.MULTILINE)


def run(supervisor: Supervisor, command: Command) -> None:
    """Runs a command, with its output where it belongs."""
    if command.log is not None:
        _run_logged(supervisor, command, command.log)
    elif command.stdout is not None:
        _run_captured(supervisor, command, command.stdout)
    else:
        supervisor.start(command.words, variables=command.variables)
        supervisor.ended()


def _run_logged(supervisor: Supervisor, command: Command, log: Path) -> None:
    """Runs a command with both streams into ``log``, which is shown as it grows.

    The command appends to the file, whoever else writes: whatever is killed, no line is lost and
    no hole is left.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        if not command.continues:
            file.truncate(0)
        start = file.seek(0, os.SEEK_END)
        supervisor.start(command.words, file.fileno(), file.fileno(), command.variables)
        _follow(supervisor, log, start, Screen(sys.stdout, bar=sys.stdout.isatty()))


def _run_captured(supervisor: Supervisor, command: Command, output: Path) -> None:
    """Runs a command with standard output into ``output``, which is replaced only when the command
    succeeds; standard error is shown, and written to OUTPUT.stderr."""
    messages = output.with_name(f"{output.name}.stderr")
    with (
        contextlib.suppress(_CommandFailed),
        atomic_write(output, "wb") as file,
        messages.open("ab") as errors,
    ):
        errors.truncate(0)
        supervisor.start(command.words, file.fileno(), errors.fileno(), command.variables)
        _follow(supervisor, messages, 0, Screen(sys.stderr))
        if supervisor.status:
            raise _CommandFailed


class _CommandFailed(Exception):
    """So that the file is not replaced."""


def _follow(supervisor: Supervisor, path: Path, start: int, screen: Screen) -> None:
    """Shows what the command writes to ``path`` from byte ``start`` on, until it has ended. Of a
    usage error, which argparse puts after all of its options, only the error is shown."""
    usage = b""
    with path.open("rb") as file:
        file.seek(start)
        ended = False
        while not ended:
            ended = supervisor.ended(0.1)
            text = file.read()
            if usage:
                usage += text
            elif found := _USAGE.search(text):
                screen.write(text[: found.start()])
                usage = text[found.start() :]
            else:
                screen.write(text)
    if usage and supervisor.status == 2:
        usage = shortened_usage_error(usage.decode(errors="replace")).encode()
    screen.write(usage)
    screen.close()


class Screen:
    """A stream that is written to while somebody reads it; with ``bar``, a training log's lines
    of progress become a bar."""

    def __init__(self, stream: TextIO, bar: bool = False) -> None:
        self._stream = stream
        self._display = None
        self._line = b""  # not complete yet
        if bar:
            from ..reports.training_report.progress import ProgressDisplay  # tqdm takes its time

            self._display = ProgressDisplay(stream)

    def write(self, text: bytes) -> None:
        try:
            if self._display is None:
                self._stream.buffer.write(text)
                self._stream.flush()
                return
            *lines, self._line = (self._line + text).split(b"\n")
            for line in lines:
                self._display.show(line.decode(errors="replace") + "\n")
        except OSError:  # it is closed: the command goes on without
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def close(self) -> None:
        if self._display is not None:
            if self._line:
                self.write(b"\n")
            self._display.close()
