"""Linear maps in bf16 on a CPU: torch's values, and gradients against the formula in float64."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_plugin.modules import linear as module
from transformer_plugin.modules import product_type
from transformer_plugin.modules.linear import linear

SHAPES = pytest.mark.parametrize("wide, narrow", [(48, 16), (16, 48)])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["in_bf16", "in_float32"])
def products(request, monkeypatch):
    """The type that is taken to be the faster one for products of bf16."""
    if request.param == torch.bfloat16 and not module._has_fused_product():
        pytest.skip("no oneDNN with bf16 for this processor")
    is_bf16_faster = request.param == torch.bfloat16
    monkeypatch.setattr(product_type, "_is_bf16_faster", lambda: is_bf16_faster)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("leading", [(20,), (3, 4)])
@pytest.mark.parametrize("relu", [False, True])
@SHAPES
def test_values_are_torchs(wide, narrow, relu, leading):
    layer, x = nn.Linear(wide, narrow).bfloat16(), torch.randn(*leading, wide).bfloat16()
    found, expected = linear(layer, x, relu), F.linear(x, layer.weight, layer.bias)
    assert type(found.grad_fn).__name__ == "_HalfLinearBackward"
    torch.testing.assert_close(found, expected.relu() if relu else expected)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("leading", [(20,), (3, 4)])
@pytest.mark.parametrize("relu", [False, True])
@SHAPES
def test_gradients(wide, narrow, relu, leading):
    layer = nn.Linear(wide, narrow).bfloat16()
    exact = nn.Linear(wide, narrow).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(*leading, wide).bfloat16().requires_grad_()
    importance = torch.randn(*leading, narrow).bfloat16()

    def gradients(layer, x):
        loss = (linear(layer, x, relu) * importance.to(x.dtype)).sum()
        return torch.autograd.grad(loss, [x, layer.weight, layer.bias])

    found, expected = gradients(layer, x), gradients(exact, x.detach().double().requires_grad_())
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == torch.bfloat16
        assert (mine.double() - theirs).norm() <= 0.01 * theirs.norm()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_other_types_are_left_to_torch(dtype, relu):
    layer, x = nn.Linear(6, 5).to(dtype), torch.randn(4, 6, dtype=dtype)
    found, expected = linear(layer, x, relu), layer(x)
    assert torch.equal(found, expected.relu() if relu else expected)


def test_a_quantised_layer():
    model = nn.Sequential(nn.Linear(32, 16))
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    x = torch.randn(4, 32)
    assert torch.equal(linear(quantised[0], x, relu=True), quantised[0](x).relu())
