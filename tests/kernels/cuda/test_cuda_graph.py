"""CUDA graphs, seen without a GPU: what they share, and when steps are not recorded."""

import logging
import threading

import pytest
import torch

from transformer_plugin.kernels.cuda import cuda_graph as module
from transformer_plugin.kernels.cuda.cuda_graph import cuda_graph, is_in_use


class Stream:
    """A stream of a GPU, without one."""

    made = 0

    def __init__(self):
        Stream.made += 1

    def wait_stream(self, _other):
        pass


class Graph:
    """A CUDA graph that runs the step while it records; ``refused`` is what capturing raises."""

    refused, begun = None, []

    def capture_begin(self, pool=None, **_):
        self._pool = pool
        Graph.begun.append(pool)
        if Graph.refused and len(Graph.begun) > 1:
            raise Graph.refused

    def capture_end(self):
        pass

    def pool(self):
        return self._pool or "its pool"

    def replay(self):
        pass


@pytest.fixture
def gpu(monkeypatch):
    """torch.cuda as cuda_graph sees it; nothing recorded yet."""
    monkeypatch.setattr(module, "_recordings", module._Recordings())
    monkeypatch.setattr(module._Recordings, "failed", False)
    monkeypatch.setattr(Stream, "made", 0)
    monkeypatch.setattr(Graph, "begun", [])
    monkeypatch.setattr(Graph, "refused", None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream.__new__(Stream))
    monkeypatch.setattr(torch.cuda, "stream", lambda _stream: torch.no_grad())
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *shape, device=None: zeros(*shape))
    return torch.device("cuda")


def test_all_recordings_of_a_thread_share_a_stream_and_a_pool(gpu):
    for number in range(5):
        replay = cuda_graph(lambda number=number: torch.full((1,), number))
        assert replay().item() == number
    assert Stream.made == 1
    assert Graph.begun == [None] + ["its pool"] * 5  # the first has a new one
    thread = threading.Thread(target=cuda_graph, args=(lambda: torch.zeros(1),))
    thread.start()
    thread.join()
    assert Stream.made == 2 and Graph.begun[6:] == [None, "its pool"]


def test_a_result_outlives_another_graph_in_the_same_memory(gpu):
    """Models of an ensemble make their steps in turn, and their logits in chunks after that."""
    pool = torch.ones(1)
    first, second = cuda_graph(lambda: pool), cuda_graph(lambda: pool.fill_(2))
    pool.fill_(1)  # what replaying the first would write
    result = first()
    pool.fill_(2)
    assert second().item() == 2 and result.item() == 1


def test_nothing_is_recorded_after_a_failure(gpu, monkeypatch, caplog):
    error = RuntimeError("operation not permitted when stream is capturing")
    monkeypatch.setattr(Graph, "refused", error)
    made = []
    step = lambda: made.append(1) or torch.zeros(1)  # noqa: E731
    assert is_in_use(gpu)
    with caplog.at_level(logging.WARNING):
        replay = cuda_graph(step)
        assert made == []
        assert replay().item() == 0 and made == [1]
        assert cuda_graph(step) is step
    assert not is_in_use(gpu)
    assert len(Graph.begun) == 2  # the pool's own, and the one that failed
    assert caplog.text.count("without CUDA graphs") == 1 and "capturing" in caplog.text


def test_memory_that_runs_out_while_recording_is_no_failure(gpu, monkeypatch):
    monkeypatch.setattr(Graph, "refused", torch.OutOfMemoryError("no more memory"))
    with pytest.raises(torch.OutOfMemoryError):
        cuda_graph(lambda: torch.zeros(1))
    assert is_in_use(gpu)


def test_a_variable_turns_graphs_off(monkeypatch):
    gpu = torch.device("cuda")
    assert is_in_use(gpu)
    assert not is_in_use(torch.device("cpu"))
    monkeypatch.setenv("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "0")
    assert not is_in_use(gpu)
