"""The loss in chunks against the plain one in float64, and its gradients against finite
differences."""

import pytest
import torch
from torch import nn

from transformer_plugin.kernels import chunked_loss
from transformer_plugin.kernels.chunked_loss import chunked_smoothed_loss, rows_per_chunk
from transformer_plugin.modules.label_smoothing import smoothed_loss

N, D, V, EPSILON = 23, 7, 11, 0.1


def tensors(dtype):
    torch.manual_seed(0)
    features = torch.randn(N, D, dtype=dtype, requires_grad=True)
    project = nn.Linear(D, V, bias=False).to(dtype)
    nn.init.normal_(project.weight)
    return features, project, torch.randint(V, (N,))


@pytest.fixture
def in_chunks_of(monkeypatch):
    """in_chunks_of(size) sets the rows a chunk."""
    return lambda size: monkeypatch.setattr(chunked_loss, "rows_per_chunk", lambda *_: size)


@pytest.mark.parametrize("epsilon", [0.0, EPSILON, 0.4])
@pytest.mark.parametrize("chunk_size", [1, 5, N, 1000])
def test_the_sums_are_those_of_the_plain_loss(epsilon, chunk_size, in_chunks_of):
    in_chunks_of(chunk_size)
    features, project, target = tensors(torch.float64)
    found = chunked_smoothed_loss(features, project, target, epsilon)
    expected = smoothed_loss.plain(features, project, target, epsilon)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.item() == pytest.approx(theirs.item(), rel=1e-12)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_gradients_are_those_of_the_plain_loss(dtype, tolerance, in_chunks_of):
    in_chunks_of(5)
    features, project, target = tensors(dtype)
    exact = nn.Linear(D, V, bias=False).double()
    exact.load_state_dict(project.state_dict())
    wide = features.detach().double().requires_grad_()
    loss = 3 * chunked_smoothed_loss(features, project, target, EPSILON).loss
    found = torch.autograd.grad(loss, [features, project.weight])
    loss = 3 * smoothed_loss.plain(wide, exact, target, EPSILON).loss
    expected = torch.autograd.grad(loss, [wide, exact.weight])
    for mine, theirs in zip(found, expected, strict=True):
        assert ((mine - theirs).abs().max() / theirs.abs().max()).item() < tolerance


def test_gradients_equal_finite_differences(in_chunks_of):
    in_chunks_of(4)
    features, project, target = tensors(torch.float64)

    def loss(features, weight):
        del project.weight
        project.weight = weight
        return chunked_smoothed_loss(features, project, target, EPSILON).loss

    weight = project.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(loss, (features, weight), atol=1e-7)


def test_a_weight_that_is_frozen_gets_no_gradient(in_chunks_of):
    in_chunks_of(5)
    features, project, target = tensors(torch.float64)
    chunked_smoothed_loss(features, project, target, EPSILON).loss.backward()
    expected, features.grad, project.weight.grad = features.grad, None, None
    project.requires_grad_(False)
    chunked_smoothed_loss(features, project, target, EPSILON).loss.backward()
    assert features.grad.equal(expected) and project.weight.grad is None
    given = features.detach(), project.weight, target, EPSILON, True
    assert chunked_loss._pass_over_chunks(*given)[3] is None


def test_without_gradient_the_loss_is_the_same():
    features, project, target = tensors(torch.float64)
    expected = chunked_smoothed_loss(features, project, target, EPSILON).loss
    with torch.no_grad():
        loss = chunked_smoothed_loss(features, project, target, EPSILON).loss
    assert loss.item() == expected.item() and not loss.requires_grad


def test_bf16_is_near(in_chunks_of):
    in_chunks_of(5)
    features, project, target = tensors(torch.float64)

    def gradients(features, project):
        loss = chunked_smoothed_loss(features, project, target, EPSILON).loss
        return torch.autograd.grad(loss, [features, project.weight])

    expected = gradients(features, project)
    found = gradients(features.detach().bfloat16().requires_grad_(), project.bfloat16())
    for mine, exact in zip(found, expected, strict=True):
        assert (mine.double() - exact).norm() / exact.norm() < 2e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gold_class_of_vanishing_probability_has_a_finite_loss(dtype):
    features = torch.tensor([[200.0], [1.0]], dtype=dtype)
    project = nn.Linear(1, 3, bias=False)
    project.weight = nn.Parameter(torch.tensor([[1.0], [-1.0], [0.5]], dtype=dtype))
    result = chunked_smoothed_loss(features, project, torch.tensor([1, 0]), 0.0)
    logits = torch.tensor([[200.0, -200.0, 100.0], [1.0, -1.0, 0.5]], dtype=torch.float64)
    expected = -logits.log_softmax(1)[[0, 1], [1, 0]].sum().item()
    assert result.nll_loss.item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("chunk_size", [4, 24, 100])
def test_idle_rows_count_for_nothing(chunk_size, in_chunks_of):
    in_chunks_of(chunk_size)
    features, project, target = tensors(torch.float64)
    wanted = (features, project.weight)
    short = smoothed_loss.plain(features[:19], project, target[:19], EPSILON)
    result = chunked_smoothed_loss(features, project, target[:19], EPSILON)
    assert result.loss.item() == pytest.approx(short.loss.item(), rel=1e-12)
    found = torch.autograd.grad(result.loss, wanted)
    assert found[0][19:].eq(0).all()
    for mine, theirs in zip(found, torch.autograd.grad(short.loss, wanted), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=1e-12)


def test_a_projection_that_is_not_the_plain_one_is_left_to_torch():
    """A bias, a hook, a function."""
    features, project, target = tensors(torch.float64)
    hooked = nn.Linear(D, V, bias=False).double()
    hooked.load_state_dict(project.state_dict())
    hooked.register_forward_hook(lambda _module, _inputs, logits: logits / 2)
    with_bias = nn.Linear(D, V).double()
    for other in (hooked, with_bias, lambda x: 2 * project(x)):
        found = smoothed_loss(features, other, target, EPSILON)
        expected = smoothed_loss.plain(features, other, target, EPSILON)
        assert all(map(torch.equal, found, expected))


def test_no_rows_lose_nothing():
    features, project, target = tensors(torch.float64)
    found = smoothed_loss(features[:0], project, target[:0], EPSILON)
    assert [float(x) for x in found] == [0, 0, 0]


def test_more_targets_than_rows_are_an_error():
    """The kernel left those out that had no row."""
    features, project, target = tensors(torch.float64)
    with pytest.raises(RuntimeError, match="does not match"):
        smoothed_loss(features[:20], project, target, EPSILON)


def test_no_gradients_are_made_where_none_are_wanted(monkeypatch):
    features, project, target = tensors(torch.float64)
    made = []
    pass_over_chunks = chunked_loss._pass_over_chunks

    def watched(*arguments):
        result = pass_over_chunks(*arguments)
        made.append(any(gradient is not None for gradient in result[2:]))
        return result

    monkeypatch.setattr(chunked_loss, "_pass_over_chunks", watched)
    chunked_smoothed_loss(features, project, target, EPSILON)
    with torch.no_grad():
        chunked_smoothed_loss(features, project, target, EPSILON)
    project.requires_grad_(False)
    chunked_smoothed_loss(features.detach(), project, target, EPSILON)
    assert made == [True, False, False]


class OnGPU(torch.Tensor):
    """A tensor that says that it lies on a GPU."""

    is_cuda, device = True, torch.device("cuda")


def test_chunks_do_not_depend_on_the_memory_at_hand(monkeypatch):
    for name in ("mem_get_info", "get_device_properties", "memory_reserved", "memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: pytest.fail("asked"))
    features = torch.empty(1, 8)
    assert rows_per_chunk(features, 8000) == 256
    assert rows_per_chunk(features.bfloat16(), 8000) == 512
    on_gpu = features.as_subclass(OnGPU)
    assert on_gpu.device.type == "cuda" and rows_per_chunk(on_gpu, 8000) == 8320
    assert rows_per_chunk(on_gpu.bfloat16(), 37_000) == 3584


@pytest.mark.parametrize("find", [smoothed_loss.plain, chunked_smoothed_loss])
def test_the_gold_class_among_equals_is_correct(find):
    project = nn.Linear(1, 3, bias=False)
    project.weight = nn.Parameter(torch.tensor([[1.0], [1.0], [0.5]]))
    rows, gold = torch.ones(4, 1), torch.tensor([0, 1, 2, 1])
    assert int(find(rows, project, gold, 0.1).num_correct) == 3


def test_large_logits_lose_no_digits():
    """The logits are exact in float32: 10,000 and a multiple of 1 / 128."""
    torch.manual_seed(0)
    project = nn.Linear(2, 500, bias=False)
    project.weight = nn.Parameter(
        torch.stack([torch.full((500,), 1e4), torch.randperm(500) / 128], 1)
    )
    features, target = torch.ones(1, 2), torch.tensor([7])
    found = chunked_smoothed_loss(features, project, target, EPSILON)
    expected = smoothed_loss.plain(features.double(), project.double(), target, EPSILON)
    assert found.nll_loss.item() == pytest.approx(expected.nll_loss.item(), rel=1e-6)
    assert found.loss.item() == pytest.approx(expected.loss.item(), rel=1e-4)
