"""The smoothed loss and its gradients in chunks of rows, without an ``[N, V]`` tensor. It saves the
memory of three such tensors. Without this kernel a training step takes 1.23 times as long in fp32,
1.17 in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from ..modules.decoder import Decoder
from ..modules.int8_linear import Int8Linear
from ..modules.label_smoothing import SmoothedLoss, smoothed_cross_entropy, smoothed_loss
from ..modules.products import product_type
from .cpu import row_losses
from .cpu.library import is_supported
from .cpu.onednn import product
from .plain_modules import plain_projection
from .registry import kernel
from .second_derivatives import differentiable_gradients

# Size of a chunk's logits. Fixed, so that sums have the same order in each run.
_CPU_BYTES = 8 << 20  # about the size of the inner caches
_CPU_LEAST_ROWS = 256  # because each chunk is added to the whole gradient of the matrix
_GPU_BYTES = 256 << 20
_CPU_ROWS = 64  # rows whose float32 logits fit into the inner caches, if torch computes
_CPU_CLASSES = 4096  # added to the gradient of the matrix at once, if the sum has another type


def _supports(
    features: Tensor, project: Callable[[Tensor], Tensor], target: Tensor, epsilon: float
) -> bool:
    projection = plain_projection(project)
    has_rows = 0 < features.size(0) >= target.size(0)
    return has_rows and projection is not None and projection.weight.is_floating_point()


@kernel(
    smoothed_loss,
    _supports,
    stands_for=[smoothed_cross_entropy, product_type, Decoder.output_layer, nn.Linear, Int8Linear],
)
def chunked_smoothed_loss(
    features: Tensor,
    project: Callable[[Tensor], Tensor],
    target: Tensor,
    epsilon: float,
) -> SmoothedLoss:
    """See ``smoothed_loss``.

    The forward pass computes the gradients, chunk by chunk. Only the smoothed loss can be
    differentiated.
    """
    projection = plain_projection(project)
    assert projection is not None
    weight = projection.weight
    with_gradient = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    return SmoothedLoss(*_ChunkedLoss.apply(features, weight, target, epsilon, with_gradient))


def rows_per_chunk(features: Tensor, vocabulary: int) -> int:
    """The number of rows in a chunk for this device, a multiple of 128."""
    room = _CPU_BYTES if features.device.type == "cpu" else _GPU_BYTES
    rows = room // (vocabulary * features.element_size())
    return max(_CPU_LEAST_ROWS, rows // 128 * 128)


def _pass_over_chunks(
    rows: Tensor, weight: Tensor, target: Tensor, epsilon: float, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The losses and the gradients, computed from the logits of a chunk of rows at a time.

    Returns:
        The smoothed and the plain loss, ``[2]``, in nats; the number of correct rows; the gradients
        of the rows, ``[N, D]``, and of the matrix, ``[V, D]``, or None without ``with_gradient``
        and, of the matrix, if it needs none.
    """
    on_cpu = rows.device.type == "cpu"
    wide = torch.promote_types(weight.dtype, torch.float32)
    vocabulary = weight.size(0)
    matrix = weight.to(rows.dtype)
    losses = torch.zeros(2, dtype=wide, device=rows.device)
    correct = torch.zeros((), dtype=torch.int64, device=rows.device)
    grad_rows = torch.empty_like(rows) if with_gradient else None
    wanted = with_gradient and weight.requires_grad
    grad_matrix = torch.zeros_like(weight, dtype=wide) if wanted else None

    chunk_size = min(rows_per_chunk(rows, vocabulary), rows.size(0))
    # Allocating memory for each chunk would cost more than the computation.
    buffer = rows.new_empty(chunk_size, vocabulary)
    at_once = _CPU_ROWS if on_cpu and not is_supported(rows) else chunk_size
    classes = _CPU_CLASSES if on_cpu else vocabulary

    for start in range(0, rows.size(0), chunk_size):
        h = rows[start : start + chunk_size]
        logits = product(h, matrix.t(), out=buffer[: h.size(0)])
        gold = target[start : start + chunk_size]
        logits[gold.size(0) :] = 0  # idle rows
        for part in zip(logits[: gold.size(0)].split(at_once), gold.split(at_once), strict=True):
            loss, nll, is_correct = _replace_by_gradient(*part, epsilon)
            losses += torch.stack([loss.sum(), nll.sum()])
            correct += is_correct.sum()
        if grad_rows is not None:
            grad_rows[start : start + chunk_size] = product(logits, matrix)
        if grad_matrix is not None:
            if grad_matrix.dtype == h.dtype:
                grad_matrix.addmm_(logits.t(), h)
            else:
                parts = zip(grad_matrix.split(classes), logits.split(classes, 1), strict=True)
                for part, of_classes in parts:
                    part += torch.mm(of_classes.t(), h)
    return losses, correct, grad_rows, grad_matrix


def _replace_by_gradient(
    logits: Tensor, target: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """With p = softmax(logits) and q the smoothed target, replaces ``logits`` by p - q.

    Args:
        logits: ``[n, V]``.
        target: gold classes, ``[n]``.

    Returns:
        Three tensors ``[n]``: the smoothed and the plain loss, in nats, and whether the gold class
        is among the likeliest.
    """
    gold = target.unsqueeze(1)
    share = epsilon / (logits.size(1) - 1)  # probability of each class in the smoothed target
    gold_share = 1 - epsilon - share  # additional probability of the gold class
    if row_losses.supports(logits, target):
        return row_losses.replace_by_gradient(logits, target, share, gold_share)
    p = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    gold_logits, top, sums = p.gather(1, gold), p.amax(1, keepdim=True), p.sum(1, keepdim=True)
    torch.softmax(p, 1, out=p)
    # log(sum(exp(logits - top))): the largest probability is at least 1 / V
    log_sum = -p.amax(1, keepdim=True).log()
    nll = top - gold_logits + log_sum  # in this order: the logits may be much larger
    loss = gold_share * nll - share * (sums - logits.size(1) * top - logits.size(1) * log_sum)
    p.sub_(share).scatter_add_(1, gold, p.new_full(gold.shape, -gold_share))
    logits.copy_(p)
    return loss.squeeze(1), nll.squeeze(1), (gold_logits >= top).squeeze(1)


class _ChunkedLoss(torch.autograd.Function):
    """Saves the gradients of the features and of the output embedding."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        epsilon: float,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        device = features.device.type
        dtype = product_type(weight)
        if torch.is_autocast_enabled(device) and dtype != torch.float64:
            dtype = torch.get_autocast_dtype(device)

        with torch.autocast(device, enabled=False):
            losses, correct, grad_rows, grad_matrix = _pass_over_chunks(
                features.to(dtype), weight, target, epsilon, with_gradient
            )
            if grad_rows is not None:
                grad_weight = None if grad_matrix is None else grad_matrix.to(weight.dtype)
                gradients = grad_rows.to(features.dtype), grad_weight
                ctx.save_for_backward(*gradients, features, weight, target)  # type: ignore[arg-type]
                ctx.epsilon = epsilon  # type: ignore[attr-defined]
        loss, nll_loss = losses.unbind()
        nll_loss = nll_loss.clone()
        ctx.mark_non_differentiable(nll_loss, correct)
        return loss.clone(), nll_loss, correct

    @staticmethod
    def backward(ctx, grad_loss, _grad_nll, _grad_correct):  # type: ignore[no-untyped-def]
        grad_features, grad_weight, features, weight, target = ctx.saved_tensors
        if torch.is_grad_enabled():

            def plain(features: Tensor, weight: Tensor) -> Tensor:
                project = functools.partial(F.linear, weight=weight.to(features.dtype))
                return smoothed_loss.plain(features, project, target, ctx.epsilon).loss

            found = differentiable_gradients(plain, (features, weight), grad_loss)
            return *found, None, None, None
        of_weight = None if grad_weight is None else grad_loss * grad_weight
        return grad_loss * grad_features, of_weight, None, None, None
