"""Steps of a search with a decoder, as ``ModelScorer`` makes them, and layers packed for one."""

import pytest
import torch
from torch import nn

from transformer_plugin.kernels.cpu.packed_linear import packed
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.decoder_state import bind_layers, prepare_decoding, start_decoding

LENGTHS = torch.tensor([7, 1, 4])
BOUNDS = {"fp32": 1e-5, "bf16": 0.05, "int8": 0.05}  # of differences, by precision


def packed_for_search(*layers):
    """The layers, with packed copies for 40 rows; skips the test where there are none."""
    with torch.no_grad():
        prepare_decoding(nn.Sequential(*layers, nn.LayerNorm(1)), 40)
        if any(packed(layer, torch.empty(0)) is None for layer in layers):
            pytest.skip("this processor has no use for it, or there is no C++ compiler")
    return layers


def memory_of(decoder):
    weight = decoder.embed_tokens.weight
    rows = torch.randn(int(LENGTHS.sum()), 64, generator=torch.Generator().manual_seed(1))
    return rows.to(weight.dtype)


def is_bound(decoder):
    """Whether the kernel is chosen for this decoder."""
    with torch.no_grad():
        return bind_layers(decoder) is not None


def steps(decoder, change=lambda: None):
    """Features of three steps, in which hypotheses branch and one sentence leaves; ``change`` is
    called after the first."""
    with torch.no_grad():
        packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
        state = start_decoding(decoder, memory_of(decoder), packing, 2)
        state.bind()
        found = [state.step(torch.tensor([[5], [6], [7]]))[0]]
        change()
        state.reorder(torch.tensor([[0, 0]] * 3))
        found.append(state.step(torch.tensor([[5, 6], [6, 7], [7, 8]]))[0])
        state.reorder(torch.tensor([[1, 0], [1, 1], [0, 0]]))
        state.select(torch.tensor([0, 2]))
        return [*found, state.step(torch.tensor([[8, 9], [9, 10]]))[0]]
