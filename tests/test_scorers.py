"""What a search remembered is free when it is over, without the garbage collector."""

import functools
import gc
import weakref

import pytest
import torch

from transformer_plugin import scorers
from transformer_plugin.beam_search import beam_search
from transformer_plugin.modules import compiled, compiled_step
from transformer_plugin.modules.compiled_cache import CompiledPast
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.next_tokens import Rules

EOS, PAD, UNK = 2, 1, 3


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("kind", ["one call", "tables", "masks", "recorded"])
@torch.inference_mode()
def test_a_search_that_is_over_holds_nothing(build, batch, monkeypatch, no_collector, kind):
    by_kernels = kind in ("one call", "tables") and compiled.kernels() is not None
    if kind == "tables":
        monkeypatch.setattr(compiled_step, "is_supported", lambda *_: False)
    if not by_kernels:
        monkeypatch.setattr(compiled, "kernels", lambda: None)
    if kind == "recorded":  # by a recorder that refuses
        monkeypatch.setattr(scorers, "default_recorder", lambda _device: lambda step: step)
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    source = batch([5, 3], [5, 3])["net_input"]["src_tokens"]
    model = build(seed=1, d_model=64).eval()  # heads as wide as the kernels' vectors
    scorer = scorers.ModelScorer(model, source, 3, model.decoder.weights(6))
    assert isinstance(scorer.past, CompiledPast) == by_kernels
    held = [weakref.ref(part) for part in (scorer.past, *scorer.past.layers, scorer.chunks)]
    beam_search(scorer, torch.tensor([9, 9]), Rules(3, lp, "bound", EOS, PAD, UNK))
    assert all(part() is not None for part in held)
    del scorer
    assert all(part() is None for part in held)
