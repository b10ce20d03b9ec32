"""The smoothed loss and its gradients in chunks of rows, without an ``[N, V]`` tensor. It saves the
memory of three such tensors, at no cost in time (``bench/kernels.py``)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ..modules.decoder import Decoder
from ..modules.label_smoothing import (
    SmoothedLoss,
    num_correct,
    smoothed_cross_entropy,
    smoothed_loss,
)
from ..modules.products import product_type
from .cpu.onednn import product
from .plain_modules import plain_projection
from .registry import kernel

# Size of a chunk's logits. Fixed, so that sums have the same order in each run.
_CPU_BYTES = 8 << 20  # about the size of the inner caches
_CPU_LEAST_ROWS = 256  # because each chunk is added to the whole gradient of the matrix
_GPU_BYTES = 256 << 20


def _supports(
    features: Tensor, project: Callable[[Tensor], Tensor], target: Tensor, epsilon: float
) -> bool:
    return (
        features.size(0) > 0
        and plain_projection(project) is not None
        and not torch.compiler.is_compiling()
    )


@kernel(smoothed_loss, _supports, stands_for=[smoothed_cross_entropy, Decoder.output_layer])
def chunked_smoothed_loss(
    features: Tensor,
    project: Callable[[Tensor], Tensor],
    target: Tensor,
    epsilon: float,
) -> SmoothedLoss:
    """See ``smoothed_loss``.

    The forward pass computes the gradients, chunk by chunk. Only the smoothed loss can be
    differentiated, and only once.
    """
    projection = plain_projection(project)
    assert projection is not None
    weight = projection.weight
    with_gradient = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    size = rows_per_chunk(features, weight.size(0))
    given = features, weight, target, epsilon, size, with_gradient
    return SmoothedLoss(*_ChunkedLoss.apply(*given))


def rows_per_chunk(features: Tensor, vocabulary: int) -> int:
    """The number of rows in a chunk for this device, a multiple of 128."""
    room = _CPU_BYTES if features.device.type == "cpu" else _GPU_BYTES
    rows = room // (vocabulary * features.element_size())
    return max(_CPU_LEAST_ROWS, rows // 128 * 128)


def _pass_over_chunks(
    rows: Tensor,
    weight: Tensor,
    target: Tensor,
    epsilon: float,
    chunk_size: int,
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """With p = softmax(h W^T) and q the smoothed target, the gradient of the logits is p - q.

    Returns:
        The smoothed and the plain loss, ``[2]``, in nats; the number of correct rows; the gradients
        of the rows, ``[N, D]``, and of the matrix, ``[V, D]``, or None without ``with_gradient``.
    """
    wide = torch.promote_types(weight.dtype, torch.float32)
    vocabulary = weight.size(0)
    share = epsilon / (vocabulary - 1)  # probability of each class in the smoothed target
    gold_share = 1 - epsilon - share  # additional probability of the gold class
    matrix = weight.to(rows.dtype)
    losses = torch.zeros(2, dtype=wide, device=rows.device)
    correct = torch.zeros((), dtype=torch.int64, device=rows.device)
    grad_rows = torch.empty_like(rows) if with_gradient else None
    grad_matrix = torch.zeros_like(weight, dtype=wide) if with_gradient else None

    chunk_size = min(chunk_size, rows.size(0))
    # Allocating memory for each chunk would cost more than the computation.
    all_logits = rows.new_empty(chunk_size, vocabulary)
    all_log_p = torch.empty_like(all_logits, dtype=wide)

    for start in range(0, rows.size(0), chunk_size):
        chunk = slice(start, start + chunk_size)
        h, gold = rows[chunk], target[chunk].unsqueeze(1)
        real = gold.size(0)  # rows of the chunk that are not idle
        logits = product(h, matrix.t(), out=all_logits[: h.size(0)])
        log_p = torch.log_softmax(logits[:real], 1, dtype=wide, out=all_log_p[:real])
        nll = -log_p.gather(1, gold).sum()
        losses[0] += gold_share * nll - share * log_p.sum()
        losses[1] += nll
        correct += num_correct(logits[:real], target[chunk])
        if grad_rows is not None and grad_matrix is not None:
            grad_logits = log_p.exp_().sub_(share)
            grad_logits.scatter_add_(1, gold, log_p.new_full(gold.shape, -gold_share))
            if real < h.size(0) or logits.dtype != wide:
                logits[:real].copy_(grad_logits)
                logits[real:] = 0
                grad_logits = logits
            grad_rows[chunk] = product(grad_logits, matrix)
            if grad_matrix.dtype == h.dtype:
                grad_matrix.addmm_(grad_logits.t(), h)
            else:
                grad_matrix += torch.mm(grad_logits.t(), h)
    return losses, correct, grad_rows, grad_matrix


class _ChunkedLoss(torch.autograd.Function):
    """Saves only the gradients of the features and of the output embedding."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        epsilon: float,
        chunk_size: int,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        device = features.device.type
        dtype = product_type(weight)
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)

        with torch.autocast(device, enabled=False):
            losses, correct, grad_rows, grad_matrix = _pass_over_chunks(
                features.to(dtype), weight, target, epsilon, chunk_size, with_gradient
            )
            if grad_rows is not None and grad_matrix is not None:
                ctx.save_for_backward(grad_rows.to(features.dtype), grad_matrix.to(weight.dtype))
        loss, nll_loss = losses.unbind()
        nll_loss = nll_loss.clone()
        ctx.mark_non_differentiable(nll_loss, correct)
        return loss.clone(), nll_loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss, _grad_nll, _grad_correct):  # type: ignore[no-untyped-def]
        grad_features, grad_weight = ctx.saved_tensors
        return grad_loss * grad_features, grad_loss * grad_weight, None, None, None, None
