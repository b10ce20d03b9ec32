"""One system in its own process, which makes a round of updates on request."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import time
import traceback
import warnings
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import torch
from training_data import lengths, training_batches
from training_systems import Setting, build

KEEP_FREED_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_MMAP_THRESHOLD_": "100000000000",
}


class Worker:
    """The parent's side: starts the process, requests rounds, ends it."""

    def __init__(self, setting: Setting, updates: int, environment: dict[str, str]) -> None:
        self.setting = setting
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=_work, args=(child, setting, updates), daemon=True)
        with _environment(environment):
            self._process.start()
        child.close()
        self.lengths: list[tuple[int, int]] = self._answer()  # source, target; per sentence
        self.vocabulary: int = self._answer()
        self.seconds: list[float] = []

    def round(self) -> None:
        """Makes the updates of one round, and records their time."""
        self._pipe.send("round")
        self.seconds.append(self._answer())

    def stop(self) -> int:
        """Ends the process; returns its peak memory in bytes."""
        self._pipe.send("stop")
        peak = self._answer()
        self._process.join()
        return peak

    def _answer(self) -> Any:
        name = f"{self.setting.system} {self.setting.precision}"
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"{name} ended without an answer: out of memory?") from None
        if isinstance(answer, str):
            raise RuntimeError(f"{name} failed:\n{answer}")
        return answer


@contextmanager
def _environment(variables: dict[str, str]) -> Any:
    """Sets these variables for processes started inside; glibc reads its own only at start-up."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _work(pipe: Connection, setting: Setting, updates: int) -> None:
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    try:
        task, update = build(setting)
        batches = training_batches(task, setting.max_tokens, updates)
        for batch in batches:  # not measured: allocations and one-time work
            update(batch)
        pipe.send(lengths(task, batches))
        pipe.send(len(task.target_dictionary))
        while pipe.recv() == "round":
            pipe.send(_timed(update, batches, setting.device))
        pipe.send(_peak_memory(setting.device))
    except Exception:  # the parent shows any error
        pipe.send(traceback.format_exc())


def _timed(update: Any, batches: list[dict[str, Any]], device: str) -> float:
    """Seconds of one update on each batch."""
    if device != "cpu":  # memory released below is allocated again before timing starts
        for batch in batches:
            update(batch)
        torch.cuda.synchronize()
    started = time.perf_counter()
    for batch in batches:
        update(batch)
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    if device != "cpu":
        torch.cuda.empty_cache()  # for the other systems
    return seconds


def _peak_memory(device: str) -> int:
    """Peak bytes of the whole process, or of the tensors on a GPU."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
