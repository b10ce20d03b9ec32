"""One system in its own process, which translates the test set on request."""

from __future__ import annotations

import logging
import multiprocessing
import time
import traceback
import warnings
from collections import defaultdict
from multiprocessing.connection import Connection
from typing import Any

from decoding_systems import Setting, build, references


class Worker:
    """The parent's side: starts the process, requests rounds, ends it."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.name = f"{setting.system} {setting.precision}"
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=_work, args=(child, setting), daemon=True)
        self._process.start()
        child.close()
        self.references: list[str] = self._answer()
        self.seconds: dict[int, list[float]] = defaultdict(list)
        self.hypotheses: dict[int, list[str]] = {}

    def tune(self, beam: int) -> str:
        """Translates in batches of several sizes; returns the fastest size."""
        self._pipe.send(("tune", beam))
        return str(self._answer())

    def round(self, beam: int) -> None:
        """Translates once, and records the result and the time."""
        self._pipe.send(("translate", beam))
        seconds, self.hypotheses[beam] = self._answer()
        self.seconds[beam].append(seconds)

    def stop(self) -> None:
        """Ends the process."""
        self._pipe.send(("stop", 0))
        self._process.join()

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} ended without an answer: out of memory?") from None
        if isinstance(answer, BaseException):
            raise RuntimeError(f"{self.name} failed:\n{answer}")
        return answer


def _work(pipe: Connection, setting: Setting) -> None:
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    try:
        translate, sizes = build(setting)
        pipe.send(references(setting))
        size = sizes[0]
        while True:
            order, beam = pipe.recv()
            if order == "stop":
                return
            if order == "tune":
                translate(beam, sizes[0])  # not measured: allocations and one-time work
                size = min(sizes, key=lambda size: _timed(translate, beam, size)[0])
                pipe.send(f"batches of {size}")
            else:
                pipe.send(_timed(translate, beam, size))
    except EOFError:
        return  # the parent is gone
    except Exception:  # the parent shows any error
        pipe.send(RuntimeError(traceback.format_exc()))


def _timed(translate: Any, beam: int, size: int) -> tuple[float, list[str]]:
    started = time.perf_counter()
    hypotheses = translate(beam, size)
    return time.perf_counter() - started, hypotheses
