"""What a command writes to a file, shown as it comes."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from spelling import shortened_usage_error

USAGE = re.compile(rb"^usage: ", re.MULTILINE)


class Running(Protocol):
    """What `follow` asks of a command."""

    def ended(self, seconds: float) -> bool: ...

    @property
    def status(self) -> int: ...


class Screen:
    """A stream to copy to; with `bar`, lines of progress become a bar with the time left. Nothing
    that happens to the stream stops the copying."""

    def __init__(self, stream: TextIO, bar: bool = False) -> None:
        self._stream: BinaryIO = stream.buffer
        self._bar: subprocess.Popen[bytes] | None = None
        if bar:
            with contextlib.suppress(OSError):
                self._bar = subprocess.Popen(
                    ["transformer-plugin", "progress"], stdin=subprocess.PIPE,
                    preexec_fn=_ignore_signals,
                )

    def follow(self, path: Path, start: int, command: Running) -> None:
        """Copies what `command` writes to `path` from byte `start` on, until it has ended. Of a
        usage error, which argparse puts after all of its options, only the error is shown."""
        usage = b""
        with path.open("rb") as file:
            file.seek(start)
            ended = False
            while not ended:
                ended = command.ended(0.1)
                text = file.read()
                if usage:
                    usage += text
                elif found := USAGE.search(text):
                    self._write(text[: found.start()])
                    usage = text[found.start() :]
                else:
                    self._write(text)
        if usage and command.status == 2:
            usage = shortened_usage_error(usage.decode(errors="replace")).encode()
        self._write(usage)
        self._close()

    def _write(self, text: bytes) -> None:
        if text and self._bar is not None:
            try:
                self._bar_input.write(text)
                self._bar_input.flush()
                return
            except OSError:
                self._close()
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()

    @property
    def _bar_input(self) -> Any:
        assert self._bar is not None
        return self._bar.stdin

    def _close(self) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar_input.close()
            self._bar.wait()
            self._bar = None


def _ignore_signals() -> None:
    """The bar ends after what it shows."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
