"""A bounded queue of requests, from which waiting requests are translated together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A request: its sentences, whether the answer includes the attention, and how many
    translations it has of each sentence."""

    sentences: list[str]
    attention: bool = False
    nbest: int = 1


Answer = list[dict[str, Any]]  # one per sentence
Work = Callable[[list[Job]], list[Answer]]  # one per job


class Stopped(Exception):
    """The service stops before the job is done."""


class RequestQueue:
    """Hands jobs to one worker thread, so that the event loop stays free.

    Args:
        work: answers several jobs.
        max_waiting: jobs that may wait.
        max_sentences: the worker takes jobs until it has so many sentences.

    Attributes:
        waiting: jobs that the worker has not taken, oldest first, each under its future answer.
        under_way: number of jobs that the worker has taken.
    """

    def __init__(self, work: Work, max_waiting: int, max_sentences: int) -> None:
        self.work, self.max_waiting, self.max_sentences = work, max_waiting, max_sentences
        self.under_way = 0
        self.waiting: dict[asyncio.Future[Answer], Job] = {}
        self._arrived = asyncio.Event()
        self._unanswered: set[asyncio.Future[Answer]] = set()

    async def answer(self, job: Job) -> Answer:
        """Waits for the job's turn and returns its answer.

        Raises:
            asyncio.QueueFull: too many jobs are waiting.
            Stopped: ``stop`` was called.
        """
        if len(self.waiting) >= self.max_waiting:
            raise asyncio.QueueFull
        future = asyncio.get_running_loop().create_future()
        self.waiting[future] = job
        self._arrived.set()
        self._unanswered.add(future)
        try:
            return await future
        finally:
            self.waiting.pop(future, None)  # the client has gone
            self._unanswered.discard(future)

    def stop(self) -> None:
        """Raises ``Stopped`` in every ``answer`` that still waits."""
        for future in list(self._unanswered):
            if not future.done():
                future.set_exception(Stopped())

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Context in which jobs are answered. At its end the worker may still be busy."""
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="translator")
        serving = asyncio.create_task(self._serve(thread))
        try:
            yield
        finally:
            serving.cancel()
            thread.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, thread: ThreadPoolExecutor) -> None:
        while True:
            batch: list[tuple[Job, asyncio.Future[Answer]]] = []
            while not batch or (
                self.waiting and sum(len(job.sentences) for job, _ in batch) < self.max_sentences
            ):
                while not self.waiting:
                    self._arrived.clear()
                    await self._arrived.wait()
                future = next(iter(self.waiting))
                job = self.waiting.pop(future)
                if not future.done():  # else the client has gone
                    batch.append((job, future))
            jobs = [job for job, _ in batch]
            self.under_way = len(jobs)
            answers = await asyncio.get_running_loop().run_in_executor(thread, self._try, jobs)
            self.under_way = 0
            for (_, future), found in zip(batch, answers, strict=True):
                if future.done():  # the client has gone
                    continue
                if isinstance(found, Exception):
                    future.set_exception(found)
                else:
                    future.set_result(found)

    def _try(self, jobs: list[Job]) -> list[Answer | Exception]:
        """Answers all jobs together; if that fails, each alone, so that one bad job does not harm
        the others."""
        try:
            return list(self.work(jobs))
        except Exception as error:
            if len(jobs) > 1:
                return [answer for job in jobs for answer in self._try([job])]
            logger.exception("a request failed")
            return [error]
