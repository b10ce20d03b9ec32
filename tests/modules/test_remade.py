"""What is made again for backward: the same bits, and so the same gradients, from less memory."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from transformer_plugin.modules import compiled, linear, product_type
from transformer_plugin.modules.compiled_residual import residual_norm
from transformer_plugin.modules.layers import DecoderLayer, EncoderLayer, LayerShape
from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.remade import Recipe, recipe_of

pytestmark = pytest.mark.skipif(compiled.kernels() is None, reason="no C++ compiler")
LENGTHS = torch.tensor([25, 49, 12])
SHAPE = {"d_model": 64, "d_ff": 128, "num_heads": 2, "d_k": 32, "d_v": 32, "dropout": 0.3}


@pytest.fixture(autouse=True)
def bf16_is_converted(monkeypatch):
    """On any processor: without instructions for bf16 the layers would not be ours."""
    monkeypatch.setattr(product_type, "_is_bf16_faster", lambda: False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [16, 144, 512])
def test_a_norms_result_is_made_again_to_the_bit(width, dtype):
    torch.manual_seed(0)
    norm = nn.LayerNorm(width).to(dtype)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, y = (torch.randn(150, width).to(dtype).requires_grad_() for _ in range(2))
    out = residual_norm(x, y, 0.1, norm)
    remake, sources = recipe_of(out)
    assert all(source is not out for source in sources)
    assert remake(*sources).equal(out)


def test_other_tensors_are_kept_themselves():
    x = torch.randn(3)
    remake, sources = recipe_of(x)
    assert remake(*sources) is x


def trained(build, **changes):
    """Gradients of an update with dropout, and the tensors kept for it."""
    torch.manual_seed(0)
    layers = [build(LayerShape(**SHAPE, **changes)).bfloat16() for _ in range(2)]
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    x = torch.randn(int(LENGTHS.sum()), 64).bfloat16().requires_grad_()
    memory = [] if build is EncoderLayer else [torch.randn_like(x), packing]
    kept = {}
    with saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), lambda t: t):
        y = layers[0](x, packing, *memory)[0]
        y = layers[1](y, packing, *memory)[0]
    parameters = [p for layer in layers for p in layer.parameters()]
    return torch.autograd.grad(y.float().square().sum(), [x, *parameters]), list(kept.values())


@pytest.mark.parametrize("build, norms", [(EncoderLayer, 2), (DecoderLayer, 3)])
def test_the_same_gradients_from_less_memory(build, norms, monkeypatch):
    found, kept = trained(build)
    monkeypatch.setattr(linear, "recipe_of", lambda x: Recipe(lambda x: x, (x,)))
    expected, all_kept = trained(build)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.equal(theirs)
    rows = (int(LENGTHS.sum()), 64)
    spared = [sum(t.shape == rows for t in tensors) for tensors in (all_kept, kept)]
    assert spared[0] - spared[1] == 2 * norms - 1  # the last one's nobody asks for


def test_what_a_recomputed_layer_keeps_is_its_input_alone():
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    layer = EncoderLayer(LayerShape(**SHAPE, checkpoint_activations=True)).bfloat16()
    x = torch.randn(int(LENGTHS.sum()), 64).bfloat16().requires_grad_()
    y = layer(x, packing)[0]
    assert recipe_of(y).sources[0] is not y
    layer(y, packing)
    assert recipe_of(y).sources[0] is y
