"""Requests that wait are translated together, and only so many may wait."""

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
    """A request: ``attention`` says whether its answer shows that too."""

    sentences: list[str]
    attention: bool = False


Answer = list[dict[str, Any]]  # one a sentence
Work = Callable[[list[Job]], list[Answer]]  # one a job


class WaitingLine:
    """Puts jobs before one worker, which is a thread: the event loop stays free.

    Args:
        work: answers jobs, together.
        longest: jobs that may wait.
        together: sentences that the worker takes at a time, if there are several jobs.

    Attributes:
        under_way: jobs that the worker has taken.
    """

    def __init__(self, work: Work, longest: int, together: int) -> None:
        self.work, self.together = work, together
        self.under_way = 0
        self.waiting: asyncio.Queue[tuple[Job, asyncio.Future[Answer]]] = asyncio.Queue(longest)

    async def answer(self, job: Job) -> Answer:
        """The answer of a job, when its turn has come.

        Raises:
            asyncio.QueueFull: too many wait already.
        """
        future = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((job, future))
        return await future

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Within it, jobs are answered."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="translator") as thread:
            serving = asyncio.create_task(self._serve(thread))
            try:
                yield
            finally:
                serving.cancel()

    async def _serve(self, thread: ThreadPoolExecutor) -> None:
        while True:
            batch = [await self.waiting.get()]
            while (
                not self.waiting.empty()
                and sum(len(job.sentences) for job, _ in batch) < self.together
            ):
                batch.append(self.waiting.get_nowait())
            jobs = [job for job, _ in batch]
            self.under_way = len(jobs)
            answers = await asyncio.get_running_loop().run_in_executor(thread, self._try, jobs)
            self.under_way = 0
            for (_, future), found in zip(batch, answers, strict=True):
                if future.done():  # who asked has gone
                    continue
                if isinstance(found, Exception):
                    future.set_exception(found)
                else:
                    future.set_result(found)

    def _try(self, jobs: list[Job]) -> list[Answer | Exception]:
        """Where a batch fails, each job alone: one of them must not harm the others."""
        try:
            return list(self.work(jobs))
        except Exception as error:
            if len(jobs) > 1:
                return [found for job in jobs for found in self._try([job])]
            logger.exception("a request failed")
            return [error]
