"""transformer-plugin serve with clients that are slow, many or gone, and when it is stopped."""

import asyncio
import contextlib
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from running_service import JSON, Service

from transformer_plugin.translation.request_queue import Job, RequestQueue

pytest.importorskip("uvicorn")
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def impatient(prepared):
    """A service with few connections and little time; its log is empty in the end."""
    running = Service(prepared("sentencepiece"), "--timeout", "2", "--queue", "1",
                      "--max-lines", "1")  # fmt: skip
    yield running
    assert running.stop() == (0, "")


HALVES = {"nothing": b"", "head": HEAD, "body": HEAD + b'Content-Length: 19\r\n\r\n{"text": "'}


@pytest.mark.parametrize("half", HALVES)
def test_half_sent_requests_hold_nobody_up(impatient, half):
    held = [impatient.connect(HALVES[half]) for _ in range(200)]
    deadline = time.monotonic() + 1.5  # the service has closed none of these for their age yet
    while time.monotonic() < deadline:
        assert impatient.request("GET", "/health")[0] == 200
        assert impatient.translate({"text": "the cat"})[0] == 200
    for connection in held:
        connection.settimeout(10)
        with connection, contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""


@pytest.mark.parametrize("half", [HEAD, HEAD + b"Content-Length: 1000\r\n\r\n"])
def test_a_trickle_of_bytes_wins_no_time(impatient, half):
    with impatient.connect(half) as connection:
        begun = time.monotonic()
        connection.settimeout(0.1)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while time.monotonic() < begun + 20:
                connection.sendall(b"x")
                with contextlib.suppress(TimeoutError):
                    assert connection.recv(1) == b""
                    break
    assert 1 < time.monotonic() - begun < 10


def test_a_slow_client_is_waited_for(impatient):
    body = b'{"text": "the cat"}'
    with impatient.connect(HEAD) as connection:
        time.sleep(0.5)
        connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body[:10])
        time.sleep(0.5)
        connection.sendall(body[10:])
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_clients_that_leave_are_no_errors(impatient):
    """What the fixture finds in the log, if they are."""
    whole = HEAD + b'Content-Length: 19\r\n\r\n{"text": "the cat"}'
    for end in (len(HEAD) // 2, len(whole) - 5, len(whole)):
        impatient.connect(whole[:end]).close()
    deadline = time.monotonic() + 20  # a request that is whole may take the only place for a while
    while impatient.translate({"text": "the cat"})[0] != 200:
        assert time.monotonic() < deadline


def test_too_many_that_wait_are_told_to_come_again(prepared):
    busy = Service(prepared("sentencepiece"), "--queue", "2", "--beam", "8")
    try:
        text = json.dumps({"text": "the quick cat sees the house slowly " * 40})
        with ThreadPoolExecutor(12) as clients:
            found = list(
                clients.map(lambda _: busy.request("POST", "/translate", text, **JSON), range(12))
            )
        statuses = [status for status, _, _ in found]
        assert set(statuses) == {200, 503} and statuses.count(200) >= 2
        refused = next(f for f in found if f[0] == 503)
        assert refused[2]["Retry-After"] == "1" and b"try again" in refused[1]
        assert busy.translate({"text": "the cat"})[0] == 200
    finally:
        busy.process.kill()
        busy.process.communicate()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_stopped_service_answers_what_it_has_begun(prepared, number):
    running = Service(prepared("sentencepiece"))
    with ThreadPoolExecutor(1) as client:
        answer = client.submit(running.translate, {"text": "the quick cat"})
        while running.health()["under_way"] == 0 and not answer.done():
            pass
        assert running.stop(number) == (0, "")
        assert answer.result()[0] == 200


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_stopped_service_waits_for_nobody(prepared, number):
    """It ends within 2 s; the limit here leaves time for a machine that is busy."""
    running = Service(prepared("sentencepiece"), "--beam", "8", "--max-body", "1000000")
    half = running.connect(HEAD + b"Content-Length: 100\r\n\r\n{")
    with ThreadPoolExecutor(1) as client:
        long = "\n".join(["the quick cat sees the house slowly " * 60] * 100)
        answer = client.submit(running.translate, {"text": long})
        while running.health()["under_way"] == 0:
            assert not answer.done()
        begun = time.monotonic()
        assert running.stop(number) == (0, "")
        assert time.monotonic() - begun < 4
        status, found = answer.result()
    assert status == 503 and "stopping" in found["error"]
    assert half.recv(1) == b""


class Work:
    """Translates into capitals, once it may go on; records the sentences of each call's jobs."""

    def __init__(self):
        self.started, self.go_on = threading.Event(), threading.Event()
        self.batches = []

    def __call__(self, jobs):
        self.batches.append([job.sentences for job in jobs])
        self.started.set()
        self.go_on.wait(10)
        if any("bad" in job.sentences for job in jobs):
            raise RuntimeError("no")
        return [[{"translation": s.upper()} for s in job.sentences] for job in jobs]


def test_one_bad_request_does_not_harm_the_others_of_its_batch():
    work = Work()

    async def ask():
        queue = RequestQueue(work, max_waiting=3, max_sentences=10)
        async with queue.open():
            first = asyncio.create_task(queue.answer(Job(["a"])))
            await asyncio.to_thread(work.started.wait, 10)
            waiting = [asyncio.create_task(queue.answer(Job([s]))) for s in ("b", "bad", "c")]
            await asyncio.sleep(0)
            with pytest.raises(asyncio.QueueFull):
                await queue.answer(Job(["d"]))
            work.go_on.set()
            return await asyncio.gather(first, *waiting, return_exceptions=True)

    a, b, bad, c = asyncio.run(ask())
    assert [x[0]["translation"] for x in (a, b, c)] == ["A", "B", "C"]
    assert isinstance(bad, RuntimeError)


def test_clients_that_have_left_take_no_place():
    work = Work()

    async def ask():
        queue = RequestQueue(work, max_waiting=1, max_sentences=10)
        async with queue.open():
            first = asyncio.create_task(queue.answer(Job(["a"])))
            await asyncio.to_thread(work.started.wait, 10)
            for sentence in ("b", "c"):
                gone = asyncio.create_task(queue.answer(Job([sentence])))
                await asyncio.wait([gone], timeout=0.1)
                gone.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await gone
            last = asyncio.create_task(queue.answer(Job(["d"])))
            work.go_on.set()
            return await asyncio.gather(first, last)

    assert asyncio.run(ask()) == [[{"translation": "A"}], [{"translation": "D"}]]


def test_requests_are_answered_together_up_to_a_number_of_sentences():
    work = Work()

    async def ask():
        queue = RequestQueue(work, max_waiting=9, max_sentences=4)
        async with queue.open():
            first = asyncio.create_task(queue.answer(Job(["x"])))
            await asyncio.to_thread(work.started.wait, 10)
            rest = [asyncio.create_task(queue.answer(Job(["x"] * n))) for n in (3, 1, 2, 1)]
            await asyncio.sleep(0)
            work.go_on.set()
            await asyncio.gather(first, *rest)

    asyncio.run(ask())
    sizes = [[len(sentences) for sentences in batch] for batch in work.batches]
    assert sizes == [[1], [3, 1], [2, 1]]


def test_nothing_is_kept_of_a_request_that_is_answered():
    work = Work()
    work.go_on.set()

    async def ask():
        queue = RequestQueue(work, max_waiting=3, max_sentences=10)
        async with queue.open():
            await queue.answer(Job(["a"]))
        return queue

    queue = asyncio.run(ask())
    assert not queue.waiting and not queue._unanswered
