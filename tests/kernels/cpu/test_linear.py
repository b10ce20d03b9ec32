"""Linear maps on a CPU: torch's values, and gradients against the formula in float64."""

import pytest
import torch
from torch import nn

from transformer_plugin import processor
from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.modules.linear import linear
from transformer_plugin.search.decoder_state import prepare_decoding

BF16, FP32, FP64 = torch.bfloat16, torch.float32, torch.float64
SHAPES = pytest.mark.parametrize("wide, narrow", [(48, 16), (16, 48)])
ROWS = pytest.mark.parametrize("leading", [(20,), (3, 4), ()])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(
    params=[(BF16, BF16), (BF16, FP32), (FP32, FP32)],
    ids=["bf16", "bf16_in_float32", "float32"],
)
def dtype(request, monkeypatch):
    """Of the tensors, on a processor that multiplies them in some type: their own by oneDNN."""
    kept, multiplied = request.param
    by_onednn = kept == multiplied
    if by_onednn and not (onednn._is_available() and (kept == FP32 or onednn._has_bf16())):
        pytest.skip("no oneDNN with this type for this processor")
    monkeypatch.setattr(processor, "has_fast_bf16", lambda: multiplied == BF16)
    monkeypatch.setattr(processor, "has_slow_mkl", lambda: kept == FP32)
    return kept


@ROWS
@pytest.mark.parametrize("relu", [False, True])
@SHAPES
def test_values_are_torchs(dtype, wide, narrow, relu, leading):
    layer, x = nn.Linear(wide, narrow).to(dtype), torch.randn(*leading, wide).to(dtype)
    found, expected = linear(layer, x, relu), linear.plain(layer, x, relu)
    assert type(found.grad_fn).__name__ == "_LinearBackward"
    torch.testing.assert_close(found, expected)


@ROWS
@pytest.mark.parametrize("relu", [False, True])
@SHAPES
def test_gradients(dtype, wide, narrow, relu, leading):
    layer = nn.Linear(wide, narrow).to(dtype)
    exact = nn.Linear(wide, narrow).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(*leading, wide).to(dtype).requires_grad_()
    importance = torch.randn(*leading, narrow).to(dtype)

    def gradients(layer, x):
        loss = (linear(layer, x, relu) * importance.to(x.dtype)).sum()
        return torch.autograd.grad(loss, [x, layer.weight, layer.bias])

    found, expected = gradients(layer, x), gradients(exact, x.detach().double().requires_grad_())
    allowed = 0.01 if dtype == BF16 else 1e-6
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == dtype
        assert (mine.double() - theirs).norm() <= allowed * theirs.norm()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype, training", [(FP32, False), (FP64, True)])
def test_the_rest_is_left_to_torch(monkeypatch, dtype, training, relu):
    monkeypatch.setattr(onednn, "affine", None)
    monkeypatch.setattr(processor, "has_slow_mkl", lambda: True)
    layer, x = nn.Linear(6, 5).to(dtype), torch.randn(4, 6, dtype=dtype)
    with torch.set_grad_enabled(training):
        found, expected = linear(layer, x, relu), layer(x)
    assert torch.equal(found, expected.relu() if relu else expected)


def test_autocast_is_left_to_torch(monkeypatch):
    monkeypatch.setattr(processor, "has_slow_mkl", lambda: True)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(nn.Linear(6, 5), torch.randn(32, 6)).dtype == BF16


@pytest.mark.parametrize("training", [False, True])
def test_a_weight_that_is_computed_is_computed_once_a_product(training):
    class Counted(nn.Module):
        calls = 0

        def forward(self, weight):
            self.calls += 1
            return 2 * weight

    layer, counted = nn.Linear(8, 8), Counted()
    nn.utils.parametrize.register_parametrization(layer, "weight", counted)
    counted.calls = 0
    with torch.set_grad_enabled(training):
        if not training:
            prepare_decoding(layer, 40)
        linear(layer, torch.randn(3, 8))
    assert counted.calls == 1


@pytest.mark.parametrize("bias", [torch.arange(96.0)[::2], torch.tensor([0.5]).expand(48)])
def test_a_bias_that_is_not_contiguous(dtype, bias):
    layer = nn.Linear(16, 48).to(dtype)
    layer.bias = nn.Parameter(bias.to(dtype))
    x = torch.randn(8, 16).to(dtype)
    torch.testing.assert_close(linear(layer, x), linear.plain(layer, x))


def test_weights_of_inference_replace_packed_ones(dtype):
    """They have no version to compare."""
    model = nn.Sequential(nn.Linear(48, 48)).to(dtype).requires_grad_(False)
    x = torch.randn(8, 48).to(dtype)
    with torch.no_grad():
        prepare_decoding(model, 8)
    with torch.inference_mode():
        model[0].weight = nn.Parameter(torch.ones(48, 48).to(dtype), requires_grad=False)
        torch.testing.assert_close(linear(model[0], x), linear.plain(model[0], x))


@pytest.mark.parametrize("shape", [(), (1,), (1, 48), (20, 1), (20, 48)])
def test_a_bias_of_another_shape_is_added_as_torch_adds_it(dtype, shape):
    layer, x = nn.Linear(16, 48).to(dtype), torch.randn(20, 16).to(dtype)
    layer.bias = nn.Parameter(torch.randn(shape).to(dtype))
    torch.testing.assert_close(linear(layer, x), linear.plain(layer, x))
    layer.requires_grad_(False)
    with torch.no_grad():
        prepare_decoding(layer, 20)
        torch.testing.assert_close(linear(layer, x), linear.plain(layer, x))
        bias, layer.bias = layer.bias, None
        prepare_decoding(layer, 20)
        layer.bias = bias  # after the weight was packed
        torch.testing.assert_close(linear(layer, x), linear.plain(layer, x))


def test_an_input_of_another_width_gives_torchs_message(dtype):
    layer = nn.Linear(16, 48).to(dtype)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        linear(layer, torch.randn(20, 15).to(dtype))
