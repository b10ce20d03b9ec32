"""What goes to SDPA; on a GPU it leaves cuDNN aside, which makes a plan for each shape of a
search."""

import pytest
import torch
from torch import nn

from transformer_plugin.kernels import fused_attention as module
from transformer_plugin.modules.attention import AttentionScore, attention


class OnGPU(torch.Tensor):
    """A tensor that says that it lies on a GPU."""

    is_cuda = True


@pytest.fixture
def cudnn_in_sdpa(monkeypatch):
    """For each call of SDPA, whether it could have taken cuDNN. Afterwards all is as before."""
    seen, before = [], torch.backends.cuda.cudnn_sdp_enabled()
    sdpa = module.F.scaled_dot_product_attention

    def noted(*args, **kwargs):
        seen.append(torch.backends.cuda.cudnn_sdp_enabled())
        return sdpa(*args, **kwargs)

    monkeypatch.setattr(module.F, "scaled_dot_product_attention", noted)
    yield seen
    torch.backends.cuda.enable_cudnn_sdp(before)


def attend(kind=torch.Tensor):
    q, k, v = (torch.ones(1, 2, n, 8).as_subclass(kind) for n in (3, 5, 5))
    return module.fused_attention(q, k, v, AttentionScore("scaled_dot", 2, 8))[0]


@pytest.mark.parametrize("enabled", [True, False])
def test_sdpa_cannot_take_cudnn_on_a_gpu(cudnn_in_sdpa, monkeypatch, enabled):
    torch.backends.cuda.enable_cudnn_sdp(enabled)
    attend(OnGPU)
    assert cudnn_in_sdpa == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled() == enabled

    def out_of_memory(*_args, **_kwargs):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(module.F, "scaled_dot_product_attention", out_of_memory)
    with pytest.raises(torch.OutOfMemoryError):
        attend(OnGPU)
    assert torch.backends.cuda.cudnn_sdp_enabled() == enabled


def test_on_a_cpu_nothing_is_switched(cudnn_in_sdpa, monkeypatch):
    torch.backends.cuda.enable_cudnn_sdp(True)
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", lambda _on: pytest.fail("asked"))
    attend()
    assert cudnn_in_sdpa == [True]
    monkeypatch.undo()


def test_a_scale_that_is_learned_goes_by_the_plain_function():
    score = AttentionScore("scaled_dot", 2, 8)
    score.scale = nn.Parameter(torch.tensor(0.3))
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    context, _ = attention(q, k, v, score)
    assert torch.equal(context, attention.plain(q, k, v, score)[0])
    context.sum().backward()
    assert score.scale.grad is not None


@pytest.mark.parametrize(
    "allowed", [torch.tensor([True, False, True]), torch.tensor(True), torch.zeros(3, 3).double()]
)
def test_masks_that_sdpa_does_not_take(allowed):
    q, k, v = torch.randn(3, 2, 2, 3, 8)
    score = AttentionScore("scaled_dot", 2, 8)
    found, expected = (f(q, k, v, score, allowed)[0] for f in (attention, attention.plain))
    torch.testing.assert_close(found, expected)


def test_the_type_under_autocast_is_that_of_the_queries():
    q, k, v = torch.randn(3, 2, 2, 3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert attention(q, k, v, AttentionScore("scaled_dot", 2, 8))[0].dtype == torch.float32
