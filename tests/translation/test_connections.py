"""The service's connections, with clients that leave or read no answer."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest
from running_service import JSON

from transformer_plugin.translation import connections
from transformer_plugin.translation.connections import Connections
from transformer_plugin.translation.request_queue import RequestQueue
from transformer_plugin.translation.web import Bounds, application

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"  # its answer fills the socket's buffers

uvicorn = pytest.importorskip("uvicorn")


@contextlib.contextmanager
def served(work):
    """The address of a service whose jobs ``work`` does, and the set of its open connections."""
    queue = RequestQueue(work, max_waiting=100, max_sentences=1)
    app = application(queue, Bounds(10_000, 10, 1), {"model": "m" * 20_000_000}, ["127.0.0.1"])
    limits = Connections(limit=50, seconds=30)
    server = uvicorn.Server(uvicorn.Config(app, http=limits.protocol, log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=[[listener]])
    thread.start()
    try:
        yield listener.getsockname(), server.server_state.connections
    finally:
        limits.close_idle()
        server.should_exit = True
        thread.join(30)


def becomes(condition):
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def post(address, sentence):
    client = http.client.HTTPConnection(*address, timeout=30)
    client.request("POST", "/translate", json.dumps({"text": sentence}), JSON)
    return client


def get_health(address):
    client = http.client.HTTPConnection(*address, timeout=30)
    client.request("GET", "/health")
    assert client.getresponse().read()
    client.close()


def test_nothing_is_translated_for_clients_that_have_gone():
    seen, started, go_on = [], threading.Event(), threading.Event()

    def work(jobs):
        seen.extend(sentence for job in jobs for sentence in job.sentences)
        started.set()
        assert go_on.wait(30)
        return [[{"translation": "x"}] for _ in jobs]

    with served(work) as (address, open_connections):
        first = post(address, "first")
        assert started.wait(30)
        gone = post(address, "gone")
        assert becomes(lambda: len(open_connections) == 2)
        last = post(address, "last")
        assert becomes(lambda: len(open_connections) == 3)
        gone.close()
        assert becomes(lambda: len(open_connections) == 2)
        get_health(address)  # meanwhile the service has learnt of it everywhere
        go_on.set()
        assert first.getresponse().status == last.getresponse().status == 200
        first.close()
        last.close()
    assert seen == ["first", "last"]


def test_clients_that_send_requests_and_read_no_answer_are_closed(monkeypatch):
    monkeypatch.setattr(connections, "_SEND_SECONDS", 0.5)
    with served(lambda jobs: []) as (address, open_connections):
        client = socket.create_connection(address)
        client.sendall(HEALTH * 3)
        assert becomes(lambda: open_connections)
        assert becomes(lambda: not open_connections)
        client.close()


def test_clients_that_have_read_one_answer_are_not_closed_before_the_next(monkeypatch):
    monkeypatch.setattr(connections, "_SEND_SECONDS", 0.5)

    def work(jobs):
        time.sleep(1.5)
        return [[{"translation": "x"}] for _ in jobs]

    with served(work) as (address, _):
        body = b'{"text": "a"}'
        slow = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        slow += b"Content-Length: %d\r\n\r\n" % len(body) + body
        client = socket.create_connection(address, timeout=30)
        client.sendall(HEALTH + slow)
        received = b""
        while b'"translations"' not in received:
            chunk = client.recv(1_000_000)
            assert chunk
            received = received[-100:] + chunk
        client.close()


def test_a_translation_that_fails_is_an_error_and_is_over():
    """The service goes on, and says that nothing is waiting or under way."""

    def work(jobs):
        raise RuntimeError("no memory")

    with served(work) as (address, _):
        for _ in range(2):
            client = post(address, "a")
            response = client.getresponse()
            assert response.status == 500
            assert json.loads(response.read()) == {"error": "the translation failed: no memory"}
            client.close()


def test_health_counts_the_requests():
    started, go_on = threading.Event(), threading.Event()

    def work(jobs):
        started.set()
        assert go_on.wait(30)
        return [[{"translation": "x"}] for _ in jobs]

    def counts():
        client = http.client.HTTPConnection(*address, timeout=30)
        client.request("GET", "/health")
        found = json.loads(client.getresponse().read())
        client.close()
        return found["waiting"], found["under_way"]

    with served(work) as (address, _):
        clients = [post(address, "a")]
        assert started.wait(30)
        clients += [post(address, "b"), post(address, "c")]
        assert becomes(lambda: counts() == (2, 1))
        go_on.set()
        assert [client.getresponse().status for client in clients] == [200] * 3
        assert counts() == (0, 0)
