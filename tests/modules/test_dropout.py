"""Dropout: its rate, its scale and its gradient, plain and by what stands for it."""

import pytest
import torch

from transformer_plugin.modules.dropout import dropout
from transformer_plugin.modules.layers import LayerShape
from transformer_plugin.modules.transformer import Transformer

BOTH = pytest.mark.parametrize("function", [dropout.plain, dropout], ids=["plain", "operation"])


@BOTH
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_element_is_dropped_with_the_rate(function, rate, dtype):
    torch.manual_seed(0)
    out = function(torch.ones(1000, 999, dtype=dtype), rate)
    kept = torch.tensor(1 / (1 - rate)).to(dtype).item()
    assert out.dtype == dtype and out.unique().tolist() == pytest.approx([0.0, kept], rel=0.005)
    dropped = out.eq(0).float()
    deviation = (rate * (1 - rate) / dropped.numel()) ** 0.5
    assert abs(dropped.mean().item() - rate) < 5 * deviation
    for lane in range(4):  # elements that share a random number are independent
        assert abs(dropped.flatten()[lane::4].mean().item() - rate) < 10 * deviation
    pairs = (dropped.flatten()[:-1] * dropped.flatten()[1:]).mean().item()
    assert pairs == pytest.approx(rate**2, rel=0.03)


@BOTH
@pytest.mark.parametrize("shape", [(40, 50), (301, 333)], ids=["small", "for several threads"])
def test_what_is_kept_is_scaled_and_gradients_follow(function, shape):
    y = torch.full(shape, 2.0, requires_grad=True)
    out = function(y, 0.2)
    assert torch.equal(out.detach().unique(), torch.tensor([0.0, 2 / 0.8]))
    out.sum().backward()
    torch.testing.assert_close(y.grad, (out.detach() > 0) * (1 / 0.8))


@BOTH
def test_the_result_is_on_the_device_of_the_input(function):
    x = torch.ones(100)
    with torch.device("meta"):
        assert function(x, 0.4).device == x.device


@BOTH
def test_the_seed_decides(function):
    def draw():
        torch.manual_seed(5)
        return function(torch.ones(100), 0.4)

    assert torch.equal(draw(), draw())


def test_the_number_of_threads_changes_nothing():
    def draw(threads):
        torch.set_num_threads(threads)
        torch.manual_seed(5)
        return dropout(torch.ones(100_003), 0.4)

    before = torch.get_num_threads()
    try:
        assert torch.equal(draw(1), draw(3))
    finally:
        torch.set_num_threads(before)


@BOTH
def test_rate_zero_changes_nothing(function):
    x = torch.randn(5)
    assert function(x, 0.0) is x


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_rate_of_a_model_acts_in_training_alone(name):
    rates = {"dropout": 0.0, name: 0.5}
    model = Transformer(9, 0, LayerShape(32, 64, 2, **rates), num_layers=1)
    sentences = torch.tensor([[3, 4, 5], [6, 7, 8]])
    assert not model(sentences, sentences).equal(model(sentences, sentences))
    model.eval()
    assert model(sentences, sentences).equal(model(sentences, sentences))
