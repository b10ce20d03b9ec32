"""What a search remembered is free when it is over, without the garbage collector."""

import functools
import gc
import weakref

import pytest
import torch

from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.decoder_state import prepare_decoding, start_decoding
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.scorers import ModelScorer

EOS, PAD, UNK = 2, 1, 3


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "without",
    [[], [start_decoding]],
    ids=["tables", "masks"],
)
@torch.inference_mode()
def test_a_search_that_is_over_holds_nothing(build, batch, monkeypatch, no_collector, without):
    for operation in without:
        monkeypatch.setattr(operation, "implementations", [])
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    source = batch([5, 3], [5, 3])["net_input"]["src_tokens"]
    # Heads as wide as the kernels' vectors, and weights that can be packed.
    model = build(seed=1, d_model=64).eval().requires_grad_(False)
    decoder, (memory, packing, *_) = model.decoder, model.encoder.encode(source)
    prepare_decoding(decoder, 6)
    scorer = ModelScorer(decoder, decoder.output_layer, memory, packing, 3)
    cache = scorer.state._cache
    held = [weakref.ref(part) for part in (scorer.state, cache, *cache.layers)]
    del cache
    beam_search(scorer, torch.tensor([9, 9]), Rules(3, lp, "bound", EOS, PAD, UNK))
    assert all(part() is not None for part in held)
    del scorer
    assert all(part() is None for part in held)
