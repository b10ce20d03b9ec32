"""Adam in one pass over a weight."""

import pytest
import torch

from transformer_plugin.kernels.cpu import adam, library
from transformer_plugin.modules.adam import AdamOptions, AdamTensors, adam_update

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
OPTIONS = AdamOptions(3, 0.01, 0.9, 0.98, 1e-9, 0.1, 0.5)
TYPES = (torch.float32, torch.bfloat16)


def tensors(size, dtype):
    torch.manual_seed(size)
    weight, gradient, mean = torch.randn(3, size)
    rounded = None if dtype == torch.float32 else weight.to(dtype)
    return AdamTensors(weight, gradient.to(dtype), 0.1 * mean, torch.rand(size), rounded)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [1, 15, 33, 8192, 50_001])
@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        OPTIONS._replace(eps=1e-2),
        OPTIONS._replace(beta2=0.9999),
        OPTIONS._replace(step=1, beta2=1 - 1e-7),
    ],
    ids=["usual", "large epsilon", "beta2 near 1", "beta2 nearer to 1"],
)
def test_an_update_is_that_of_float64(dtype, size, options):
    found, exact = tensors(size, dtype), tensors(size, dtype)
    exact = AdamTensors(*(None if t is None else t.double() for t in exact))
    found.square.mul_(1e-6)
    exact.square.copy_(found.square)
    assert adam._supports([found], options)
    adam.adam_in_one_pass([found], options)
    adam_update.plain([exact._replace(rounded=None)], options)
    for name in ("weight", "mean", "square"):
        mine, theirs = getattr(found, name).double(), getattr(exact, name)
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=1e-8 if name == "square" else 2e-6)
    if found.rounded is not None:
        assert found.rounded.equal(found.weight.to(dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_changes_in_place_are_counted(dtype, monkeypatch):
    def of_one_tensor(tensor, count=torch.autograd.graph.increment_version):
        assert isinstance(tensor, torch.Tensor)  # older versions of torch take no list
        count(tensor)

    monkeypatch.setattr(torch.autograd.graph, "increment_version", of_one_tensor)
    given = tensors(20, dtype)
    changed = [t for t in (given.weight, given.mean, given.square, given.rounded) if t is not None]
    before = [t._version for t in changed]
    adam.adam_in_one_pass([given], OPTIONS)
    assert [t._version for t in changed] == [version + 1 for version in before]


def test_infinite_and_missing_numbers_stay_what_they_are():
    given = tensors(20, torch.bfloat16)
    given.gradient[:2] = torch.tensor([torch.nan, torch.inf])
    given.weight[1] = torch.tensor(-1, dtype=torch.int32).view(torch.float32)  # NaN of all ones
    adam.adam_in_one_pass([given], OPTIONS)
    assert given.weight[:2].isnan().all() and given.rounded[:2].isnan().all()
    assert given.weight[2:].isfinite().all()


@pytest.mark.parametrize(
    "changed",
    [
        {"weight": torch.zeros(4, 2).t()},
        {"weight": torch.zeros(2, 4, dtype=torch.float64)},
        {"gradient": torch.zeros(2, 4).to_sparse()},
        {"gradient": torch.zeros(2, 4, dtype=torch.float16)},
        {"rounded": torch.zeros(2, 4, dtype=torch.bfloat16)},
        {"square": torch.zeros(4, 2).t()},
        {"square": torch.zeros(2, 3)},
        {"mean": torch.zeros(2, 4, dtype=torch.bfloat16)},
        {"mean": torch.zeros(2, 4, dtype=torch.float64)},
        {"mean": torch.zeros(2, 4, device="meta")},
        {"gradient": torch._neg_view(torch.zeros(2, 4))},
        {"gradient": torch._efficientzerotensor((2, 4))},
        {"gradient": torch.zeros(1)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_tensors_are_left_to_torch(changed):
    plain = AdamTensors(*torch.zeros(4, 2, 4))
    assert adam._supports([plain], OPTIONS)
    assert not adam._supports([plain, plain._replace(**changed)], OPTIONS)
