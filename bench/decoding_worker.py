"""One system in its own process, which translates the test set on request."""

from __future__ import annotations

import logging
import multiprocessing
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Sequence
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
        self.latencies: dict[int, list[float]] = defaultdict(list)

    def tune(self, beam: int) -> str:
        """Translates in batches of several sizes; returns the fastest size."""
        self._pipe.send(("tune", beam))
        return str(self._answer())

    def round(self, beam: int) -> None:
        """Translates once, and records the result and the time."""
        self._pipe.send(("translate", beam))
        seconds, self.hypotheses[beam] = self._answer()
        self.seconds[beam].append(seconds)

    def one_by_one(self, beam: int, sentences: Sequence[int]) -> None:
        """Translates sentences one at a time, and records how long each took."""
        self._pipe.send(("one by one", beam, sentences))
        self.latencies[beam].extend(self._answer())

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
        expected = references(setting)
        pipe.send(expected)
        size, everything = sizes[0], range(len(expected))
        while True:
            order, beam, *chosen = pipe.recv()
            if order == "stop":
                return
            if order == "tune":
                translate(beam, sizes[0], everything)  # not measured: allocations and one-time work
                size = min(sizes, key=lambda size: _timed(translate, beam, size, everything)[0])
                pipe.send(f"batches of {size}")
            elif order == "one by one":
                (sentences,) = chosen
                translate(beam, 1, sentences[:1])  # not measured: the caches are another system's
                pipe.send([_timed(translate, beam, 1, [i])[0] for i in sentences])
            else:
                pipe.send(_timed(translate, beam, size, everything))
    except EOFError:
        return  # the parent is gone
    except Exception:  # the parent shows any error
        pipe.send(RuntimeError(traceback.format_exc()))


def _timed(
    translate: Any, beam: int, size: int, sentences: Sequence[int]
) -> tuple[float, list[str]]:
    started = time.perf_counter()
    hypotheses = translate(beam, size, sentences)
    return time.perf_counter() - started, hypotheses
