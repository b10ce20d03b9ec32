"""Operations of fairseq's own systems by formula, against those that torch counts."""

from __future__ import annotations

import pytest
import torch
from fairseq.models import fconv, lstm
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer_plugin.fairseq_flops import (
    convs2s_flops,
    lstm_flops,
    stock_transformer_flops,
)
from transformer_plugin.throughput import batch_flops

HIDDEN = 12  # hidden size of the LSTM


def conv_tbc(x, weight, bias, padding):
    """torch.conv_tbc, which torch does not count, by a convolution that it counts. The decoder's
    last outputs, which fairseq drops, are zeros here."""
    width, causal = weight.size(0), padding == weight.size(0) - 1
    ends = (padding, 0 if causal else padding)
    y = F.conv1d(F.pad(x.permute(1, 2, 0), ends), weight.permute(2, 1, 0), bias)
    return F.pad(y, (0, width - 1 if causal else 0)).permute(2, 0, 1)


def attend(layer, query, states, padding_mask):
    """An attention layer of the LSTM by matrix products; fairseq has sums of products instead,
    which torch does not count.

    Args:
        query: ``[B, D]``.
        states: the encoder's, ``[S, B, D]``.
        padding_mask: ``[S, B]``.
    """
    keys = states.transpose(0, 1)
    scores = torch.bmm(keys, layer.input_proj(query).unsqueeze(2)).squeeze(2)
    weights = scores.masked_fill(padding_mask.t(), float("-inf")).softmax(1)
    found = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)
    return torch.tanh(layer.output_proj(torch.cat((found, query), 1))), weights.t()


@pytest.fixture
def counted(monkeypatch):
    """counted(model, sample): the operations that torch counts in a forward and in a backward
    pass, by products that it knows. These give the output of fairseq's own."""

    def count(model, sample):
        expected = model(**sample["net_input"])[0]
        monkeypatch.setattr(torch, "conv_tbc", conv_tbc)
        monkeypatch.setattr(lstm.AttentionLayer, "forward", attend)
        with torch.backends.mkldnn.flags(enabled=False):  # oneDNN's LSTM is not counted
            with FlopCounterMode(display=False) as forward:
                output = model(**sample["net_input"])[0]
            torch.testing.assert_close(output, expected)
            with FlopCounterMode(display=False) as backward:
                output.sum().backward()
        return forward.get_total_flops(), backward.get_total_flops()

    return count


def convs2s(dictionary, shared):
    """Layers of two widths, kernels of widths 3 and 1, and one layer without attention."""
    layers = ((8, 3), (8, 3), (16, 1))
    encoder = fconv.FConvEncoder(dictionary, 10, convolutions=layers, dropout=0.0)
    decoder = fconv.FConvDecoder(
        dictionary, 10, out_embed_dim=10 if shared else 6, convolutions=layers,
        attention=[True, False, True], dropout=0.0, share_embed=shared,
    )  # fmt: skip
    return fconv.FConvModel(encoder, decoder)


@pytest.mark.parametrize("shared", [False, True])
def test_convs2s(dictionary, batch, counted, shared):
    model = convs2s(dictionary, shared)
    forward, backward = counted(model, batch([7, 7], [5, 5]))
    assert forward == 2 * convs2s_flops(model, 7, 5)
    assert backward == 2 * forward


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("attention", [True, False])
def test_lstm(dictionary, batch, counted, bidirectional, shared, attention):
    encoder = lstm.LSTMEncoder(
        dictionary, 10, HIDDEN, num_layers=2, dropout_in=0.0, dropout_out=0.0, left_pad=False,
        bidirectional=bidirectional,
    )  # fmt: skip
    decoder = lstm.LSTMDecoder(
        dictionary, 10, HIDDEN, out_embed_dim=10, num_layers=2, dropout_in=0.0, dropout_out=0.0,
        attention=attention, encoder_output_units=encoder.output_units,
        share_input_output_embed=shared,
    )  # fmt: skip
    model = lstm.LSTMModel(encoder, decoder)
    forward, backward = counted(model, batch([7, 7], [5, 5]))
    assert forward == 2 * lstm_flops(model, 7, 5)
    # The states before the encoder's first step are zeros, without a gradient.
    zeros = 2 * 2 * (1 + bidirectional) * HIDDEN * 4 * HIDDEN * 2
    assert backward == 2 * forward - zeros


def test_the_transformer(build_stock, batch):
    """Two encoder layers, one decoder layer."""
    model = build_stock(encoder_layers=2, decoder_layers=1, dropout=0.0)
    sample = batch([7, 7], [5, 5])
    # torch does not count the other attention of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as forward:
        model(**sample["net_input"])
    assert forward.get_total_flops() == 2 * stock_transformer_flops(model, 7, 5)


def test_a_batch_counts_the_sentences_without_padding(dictionary):
    model = convs2s(dictionary, shared=False)
    found = batch_flops(model, torch.tensor([7, 3]), torch.tensor([5, 9]))
    assert found == 3 * (convs2s_flops(model, 7, 5) + convs2s_flops(model, 3, 9))
