"""A layer under torch.compile is one graph of the plain functions, with the layer's results."""

import pytest
import torch

from transformer_plugin.modules.key_values import WholeSentences
from transformer_plugin.modules.layers import DecoderLayer, EncoderLayer, LayerShape
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import remove_padding

SHAPE = LayerShape(d_model=32, d_ff=64, num_heads=4, dropout=0.0)
PADDING = torch.arange(7) >= torch.tensor([[7], [5], [6]])


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_one_graph_with_the_same_results_and_gradients(kind):
    torch.manual_seed(0)
    layer = kind(SHAPE)
    rows, packing = remove_padding(torch.randn(3, 7, 32), PADDING)
    memory, memory_packing = remove_padding(torch.randn(3, 7, 32), PADDING.flip(0))
    sentences = {
        EncoderLayer: WholeSentences(packing),
        DecoderLayer: WholeSentences(packing, True, memory, memory_packing),
    }[kind]
    found = []
    try:
        for run in (layer, torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)):
            layer.zero_grad()
            y = run(rows, sentences)[0]
            y.square().sum().backward()
            found.append([y, *(p.grad for p in layer.parameters())])
    finally:
        torch.compiler.reset()
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("kind", [EncoderLayer, MultiHeadAttention])
def test_layers_without_padding_are_exported(kind):
    layer = (EncoderLayer(SHAPE) if kind is EncoderLayer else MultiHeadAttention(32, 4)).eval()
    x = torch.randn(3, 7, 32)
    found = torch.export.export(layer, (x,)).module()(x)
    torch.testing.assert_close(found, layer(x))
    assert layer.to("meta")(x.to("meta"))[0].shape == x.shape
