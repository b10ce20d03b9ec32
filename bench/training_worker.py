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
from training_data import Batch, lengths, training_batches
from training_systems import Setting, Update, build

Operation = dict[str, Any]  # a row of a profile
LONGEST = 40  # rows of a profile, besides the calls of CUDA
KEEP_FREED_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_MMAP_THRESHOLD_": "100000000000",
}


class Worker:
    """The parent's side: starts the process, requests rounds, ends it."""

    def __init__(
        self, setting: Setting, rounds: int, updates: int, environment: dict[str, str]
    ) -> None:
        self.setting = setting
        self.name = f"{setting.system} {setting.precision}"
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        arguments = (child, setting, rounds, updates)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        with _environment(environment):
            self._process.start()
        child.close()
        self.lengths: list[tuple[int, int]] = self._answer()  # source, target; of all rounds
        self.vocabulary: int = self._answer()
        self.seconds: list[float] = []

    def round(self) -> None:
        """Makes the updates of the next round, and records their time."""
        self._pipe.send("round")
        self.seconds.append(self._answer())

    def profile(self) -> list[Operation]:
        """Repeats a round; the operations that took longest, and all calls of CUDA."""
        self._pipe.send("profile")
        found: list[Operation] = self._answer()
        return found

    def stop(self) -> int:
        """Ends the process; returns its peak memory in bytes."""
        self._pipe.send("stop")
        peak = self._answer()
        self._process.join()
        return peak

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} ended without an answer: out of memory?") from None
        if isinstance(answer, str):
            raise RuntimeError(f"{self.name} failed:\n{answer}")
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


def _work(pipe: Connection, setting: Setting, rounds: int, updates: int) -> None:
    """Each round has its own batches, as in training, where shapes seldom recur."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    try:
        task, update = build(setting)
        batches = training_batches(task, setting.max_tokens, updates * (rounds + 1))
        warm_up, *parts = [batches[i : i + updates] for i in range(0, len(batches), updates)]
        for batch in warm_up:  # not measured: allocations and one-time work
            update(batch)
        _release_memory(setting.device)
        pipe.send(lengths(task, batches[updates:]))
        pipe.send(len(task.target_dictionary))
        following = iter(parts)
        while (order := pipe.recv()) != "stop":
            if order == "round":
                pipe.send(_timed(update, next(following), setting.device))
            else:
                pipe.send(_profiled(update, parts[0], setting.device))
        pipe.send(_peak_memory(setting.device))
    except Exception:  # the parent shows any error
        pipe.send(traceback.format_exc())


def _timed(update: Update, batches: list[Batch], device: str) -> float:
    """Seconds of one update on each batch. A round with a skipped update is made again, because
    the loss scale of fp16 takes a while to settle.

    Raises:
        RuntimeError: an update was skipped in each of three rounds.
    """
    for _ in range(3):
        if device != "cpu":  # memory released below is allocated again before timing starts
            for batch in batches:
                update(batch)
            torch.cuda.synchronize()
        started = time.perf_counter()
        made = [update(batch) for batch in batches]
        if device != "cpu":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        _release_memory(device)
        if all(made):
            return seconds
    raise RuntimeError("updates are skipped: out of memory (give a lower --max-tokens), or"
                       " infinite gradients")  # fmt: skip


def _profiled(update: Update, batches: list[Batch], device: str) -> list[Operation]:
    """What an update consists of: each operation's name, calls and milliseconds, longest first."""
    for batch in batches:
        update(batch)
    with torch.profiler.profile() as profiler:  # records the processor, and a GPU if there is one
        for batch in batches:
            update(batch)
    _release_memory(device)
    found: list[Operation] = [
        {
            "name": event.key,
            "calls": event.count / len(batches),
            "gpu_ms": event.self_device_time_total / 1e3 / len(batches),
            "cpu_ms": event.self_cpu_time_total / 1e3 / len(batches),
        }
        for event in profiler.key_averages()
    ]
    found.sort(key=lambda row: max(row["gpu_ms"], row["cpu_ms"]), reverse=True)
    return [row for i, row in enumerate(found) if i < LONGEST or row["name"].startswith("cuda")]


def _release_memory(device: str) -> None:
    """Leaves the memory of a GPU to the other systems."""
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _peak_memory(device: str) -> int:
    """Peak bytes of the whole process, or of the tensors on a GPU."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
