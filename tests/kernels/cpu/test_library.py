"""Kernels without a compiler, and which tensors they take."""

import os
import subprocess
import sys

import pytest
import torch

from transformer_plugin import processor
from transformer_plugin.kernels.cpu import library, shared_library
from transformer_plugin.search.candidates import likeliest


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Kernels that have not been asked for, and an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.kernels.cache_clear()
    yield tmp_path
    library.kernels.cache_clear()


@pytest.mark.parametrize("compiler", ["there-is-no-such-compiler", "false", "c++ 'open"])
def test_without_a_compiler_decoding_goes_on(fresh, monkeypatch, caplog, compiler):
    monkeypatch.setenv("CXX", compiler)
    assert library.kernels() is None
    (line,) = caplog.messages
    assert "slower" in line and compiler in line and "\n" not in line
    logits = torch.randn(4, 9)
    found = likeliest(logits.clone(), 2, {}, torch.zeros(4, dtype=torch.int64))
    assert found.classes.equal(logits.topk(2).indices)


def test_a_variable_turns_them_off(fresh, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PLUGIN_COMPILED", "0")
    assert library.kernels() is None
    assert not list(fresh.iterdir())
    assert library.operators.__wrapped__() is None
    assert not list(fresh.iterdir())


@pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
@pytest.mark.parametrize("load", [library.kernels, library.operators], ids=lambda f: f.__name__)
def test_another_processor_or_torch_or_header_is_another_library(load, monkeypatch):
    """A home folder may be shared by several machines."""
    made_for = []
    assert library.kernels() is not None  # operators ask for them

    def record(_name, _sources, headers, _flags, machine, _libraries):
        assert {path.name for path in headers} >= {"attention_step.h", "vectors.h"}
        made_for.append(machine)

    monkeypatch.setattr(shared_library, "load", record)
    load.__wrapped__()
    monkeypatch.setattr(processor, "features", lambda: frozenset({"another"}))
    load.__wrapped__()
    monkeypatch.setattr(torch, "__version__", "99.0")
    load.__wrapped__()
    assert len(set(made_for)) == 3


def test_what_the_kernels_cannot_do():
    def supported(rows, d_k=16, d_v=16):
        return library.is_supported(rows, d_k, d_v)

    rows = torch.zeros(2, 48)
    assert supported(rows) == (library.kernels() is not None)
    assert not supported(rows.double())
    assert not supported(rows.to("meta"))
    assert not supported(rows, d_k=8) and not supported(rows, d_v=24)


def test_a_tensor_of_another_class_is_left_to_torch():
    """It may have no memory of its own, as a DTensor; the kernels would read it."""
    rows = torch.ones(4, 16)
    assert library.is_supported(rows, 16) == (library.kernels() is not None)
    assert not library.is_supported(rows.as_subclass(type("Mine", (torch.Tensor,), {})), 16)


@pytest.mark.slow
def test_threads_that_start_together_load_once(tmp_path):
    """Where nothing can be kept, each would load a file of its own, and operators that are
    registered twice end the process."""
    program = """
import threading
from concurrent.futures import ThreadPoolExecutor
from transformer_plugin.kernels.cpu import library
barrier = threading.Barrier(2)
def first(_):
    barrier.wait()
    return library.operators() is not None
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(first, range(2))), library.kernels() is not None)
"""
    environment = {**os.environ, "XDG_CACHE_HOME": "/proc/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    if library.operators() is None:
        assert done.stdout in ("[False, False] True\n", "[False, False] False\n")
    else:
        assert done.stdout == "[True, True] True\n"
        assert done.stderr.count("cannot be kept") == 2
