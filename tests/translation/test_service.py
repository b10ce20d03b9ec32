"""transformer-plugin serve: what it answers, what it refuses, and that it stays up."""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from running_service import JSON, Service, arguments

from transformer_plugin import cli
from transformer_plugin.translation.alignment import alignment
from transformer_plugin.translation.arguments import add_model_arguments, add_search_arguments
from transformer_plugin.translation.loading import load_translator
from transformer_plugin.translation.request_queue import Job, RequestQueue

pytest.importorskip("uvicorn")
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SENTENCES = [
    "the cat sees the dog's “house”",
    "the quick cat",
    "slowly and slowly and slowly",
    "naïve (so) . and the cat",
    "unknown words ☃",
    "",
]


@pytest.fixture(scope="module")
def translator(prepared):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    add_search_arguments(parser)
    return load_translator(parser.parse_args(arguments(prepared("sentencepiece"))[1:]))


def test_80_requests_of_8_clients_are_answered(service, translator):
    expected = [t.text for t in translator.translate(SENTENCES)]

    def ask(i):
        i %= len(SENTENCES)
        status, answer = service.translate({"text": SENTENCES[i]})
        return status == 200 and answer["translations"][0]["translation"] == expected[i]

    with ThreadPoolExecutor(8) as clients:
        assert all(clients.map(ask, range(80)))


@pytest.mark.parametrize(
    "body, status, message",
    [
        (b"x" * 1_000_000, 413, "at most 32,768 bytes"),
        ({"text": "cat\n" * 101}, 413, "at most 100 lines"),
        (b'{"text": ', 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 30_000, 400, "not JSON"),
        (b'["text"]', 400, "expected {"),
        ({"text": 3}, 400, "expected {"),
        ({"text": "cat", "attention": "yes"}, 400, "true or false"),
        ({"text": "cat", "nbest": 5}, 400, "from 1 to 4"),
        ({"text": "cat", "nbest": True}, 400, "from 1 to 4"),
        (b'{"text": "\\ud800"}', 400, "surrogate"),
    ],
)
def test_what_it_refuses(service, body, status, message):
    found, answer = service.translate(body)
    assert found == status and message in answer["error"]
    assert service.translate({"text": "the cat"})[0] == 200  # and it stays up


def test_a_body_that_never_says_its_size_is_bounded(service):
    found, answer, _ = service.request("POST", "/translate", iter([b"x" * 10_000] * 100), **JSON)
    assert found == 413 and b"at most" in answer


@pytest.mark.parametrize(
    "headers, status",
    [
        (JSON, 200),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
        (JSON | {"Origin": "http://127.0.0.1:PORT"}, 200),
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (JSON | {"Origin": "http://elsewhere.example"}, 403),
        (JSON | {"Origin": "http://127.0.0.1:1"}, 403),
        (JSON | {"Origin": "null"}, 403),
        (JSON | {"Host": "elsewhere.example"}, 400),  # DNS rebinding
        (JSON | {"Host": "elsewhere.example", "Origin": "http://elsewhere.example"}, 400),
    ],
)
def test_pages_of_other_sites_get_nothing(service, headers, status):
    named = {name: value.replace("PORT", str(service.port)) for name, value in headers.items()}
    found, answer, sent = service.request("POST", "/translate", b'{"text": "the cat"}', **named)
    assert found == status, answer
    assert not [name for name in sent if name.lower().startswith("access-control-")]


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


def test_other_addresses_and_names_are_refused(service):
    assert service.request("GET", "/translate")[0] == 405
    assert service.request("GET", "/../setup.py")[0] == 404
    assert service.request("GET", "/health", Host="elsewhere.example")[0] == 400
    status, answer, _ = service.request("GET", "/health")
    assert status == 200 and json.loads(answer)["source_lang"] == "en"


def test_the_page_needs_nothing_from_elsewhere(service):
    status, page, headers = service.request("GET", "/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"://" not in page and b"@import" not in page


def test_attention_is_shown(service, translator):
    text = f"{SENTENCES[0]}\n\n{'cat ' * 200}"
    status, answer = service.translate({"text": text, "attention": True})
    first, empty, long = answer["translations"]
    assert status == 200 and empty["parts"] == [] and empty["translation"] == ""
    (part,) = first["parts"]
    weights = torch.tensor(part["attention"])
    assert weights.shape == (2, len(part["target"]) + 1, len(part["source"]) + 1)
    assert torch.allclose(weights.sum(dim=2), torch.ones(weights.shape[:2]), atol=3e-3)
    assert long["parts"][0]["attention"] is None
    assert "attention" not in service.translate({"text": "cat"})[1]["translations"][0]["parts"][0]


def test_hypotheses_are_those_of_the_beam(service, translator):
    """Whatever other requests of the same batch ask for."""
    asked = [{"text": "the quick cat", "nbest": n} for n in (1, 4, 3)]
    with ThreadPoolExecutor(3) as clients:
        answers = [answer["translations"][0] for _, answer in clients.map(service.translate, asked)]
    assert "hypotheses" not in answers[0]
    assert answers[1]["hypotheses"][:3] == answers[2]["hypotheses"]
    (expected,) = translator.n_best(["the quick cat"], 4)
    for found, one in zip(answers[1]["hypotheses"], expected, strict=True):
        assert found["translation"] == one.text and found["tokens"] == len(
            one.parts[0].target_tokens
        )
        assert found["score"] == pytest.approx(one.score, abs=1e-3)
        penalty = ((5 + found["tokens"]) / 6) ** 0.6  # section 6.1
        assert found["log_prob"] == pytest.approx(found["score"] * penalty, abs=1e-3)
    assert answers[1]["translation"] == answers[1]["hypotheses"][0]["translation"]


def test_alignment_is_what_the_decoder_saw_step_by_step(translator):
    (part,) = translator.translate([SENTENCES[0]])[0].parts
    found = alignment(translator.models[0], part)
    model, state = translator.models[0], {}
    memory = model.encoder(part.source_tokens[None])
    eos = torch.tensor([translator.task.target_dictionary.eos()])
    tokens = torch.cat([eos, part.target_tokens])
    with torch.no_grad():
        for t in range(len(part.target_tokens)):
            _, extra = model.decoder(tokens[None, : t + 1], memory, incremental_state=state)
            assert torch.allclose(extra["attn"][0][0, 0], found[-1, t], atol=1e-5)


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


def test_one_bad_request_does_not_harm_the_others_of_its_batch():
    started, go_on = threading.Event(), threading.Event()

    def work(jobs):
        started.set()
        go_on.wait(10)
        if any("bad" in job.sentences for job in jobs):
            raise RuntimeError("no")
        return [[{"translation": s.upper()} for s in job.sentences] for job in jobs]

    async def ask():
        queue = RequestQueue(work, max_waiting=3, max_sentences=10)
        async with queue.open():
            first = asyncio.create_task(queue.answer(Job(["a"])))
            await asyncio.to_thread(started.wait, 10)
            waiting = [asyncio.create_task(queue.answer(Job([s]))) for s in ("b", "bad", "c")]
            await asyncio.sleep(0)
            with pytest.raises(asyncio.QueueFull):
                await queue.answer(Job(["d"]))
            go_on.set()
            return await asyncio.gather(first, *waiting, return_exceptions=True)

    a, b, bad, c = asyncio.run(ask())
    assert [x[0]["translation"] for x in (a, b, c)] == ["A", "B", "C"]
    assert isinstance(bad, RuntimeError)


def test_an_address_that_is_taken_is_named(service, prepared, capsys):
    assert cli.main(arguments(prepared("sentencepiece"), "--port", str(service.port))) == 2
    error = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1, port {service.port}" in error and "--port" in error


def test_without_the_extra_it_says_what_to_install(prepared, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.main(arguments(prepared("sentencepiece"))) == 2
    assert "pip install 'transformer-plugin[serve]'" in capsys.readouterr().err
