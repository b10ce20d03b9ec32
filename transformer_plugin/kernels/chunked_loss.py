"""The smoothed loss and its gradients a chunk of rows at a time: no ``[N, V]`` tensor exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ..modules.decoder import Decoder
from ..modules.label_smoothing import SmoothedLoss, smoothed_loss
from ..modules.products import product_type
from .cpu.onednn import product
from .cpu.row_losses import is_in_place, row_losses
from .projection import plain_projection
from .registry import kernel

_CPU_CHUNK_BYTES = 8 << 20  # about the inner caches, so that a chunk's passes stay in it
_CPU_LEAST_ROWS = 256  # of a chunk: each adds once to the whole gradient of the matrix
_CPU_CLASSES = 2048  # whose part of that gradient stays in cache
_GPU_CHUNK_FRACTION = 8  # a chunk takes at most this fraction of the free device memory



def _supports(
    features: Tensor, project: Callable[[Tensor], Tensor], target: Tensor, epsilon: float
) -> bool:
    return plain_projection(project) is not None and not torch.compiler.is_compiling()


@kernel(smoothed_loss, _supports, stands_for=[Decoder.output_layer])
def chunked_smoothed_loss(
    features: Tensor,
    project: Callable[[Tensor], Tensor],
    target: Tensor,
    epsilon: float,
    chunk_size: int | None = None,
) -> SmoothedLoss:
    """See ``smoothed_loss``.

    The gradients are found in the forward pass, chunk by chunk. Only the smoothed loss can be
    differentiated, and only once.

    Args:
        chunk_size: rows a chunk; None chooses by the memory at hand.
    """
    projection = plain_projection(project)
    assert projection is not None
    weight = projection.weight
    if chunk_size is None:
        chunk_size = default_chunk_size(features, weight.size(0))
    loss, nll, correct = _ChunkedLoss.apply(features, weight, target, epsilon, chunk_size)
    return SmoothedLoss(loss, nll, correct)


def default_chunk_size(features: Tensor, vocabulary: int) -> int:
    """Rows a chunk: what stays in cache on a CPU, an eighth of the free memory on a GPU."""
    row = vocabulary * features.element_size()
    if features.is_cuda:
        free, _ = torch.cuda.mem_get_info(features.device)
        return max(256, free // _GPU_CHUNK_FRACTION // (3 * row))
    return max(_CPU_LEAST_ROWS, _CPU_CHUNK_BYTES // row // 128 * 128)


def _classes_at_once(matrix: Tensor) -> int:
    """Rows of ``[V, D]`` to convert together: all on a GPU, what the cache holds on a CPU."""
    return matrix.size(0) if matrix.is_cuda else min(_CPU_CLASSES, matrix.size(0))


class _MatrixGradient:
    """The gradient of the output embedding, the sum of p^T h over the chunks.

    Where it is wider than p and h, a product is converted before it is added: some classes at a
    time on a CPU, in memory that is kept, so that both stay in its cache. The sum lies in as many
    tensors, for which the C library finds room where one of its size would be new memory.

    Args:
        weight: the output embedding, ``[V, D]``.
        narrow: type of p and h.
        wide: type of the sum.
    """

    def __init__(self, weight: Tensor, narrow: torch.dtype, wide: torch.dtype) -> None:
        self._weight = weight
        self._classes = weight.size(0) if narrow == wide else _classes_at_once(weight)
        self._parts = [torch.zeros_like(w, dtype=wide) for w in weight.split(self._classes)]
        if narrow != wide:
            self._product = torch.empty_like(weight[: self._classes], dtype=narrow)
            self._converted = torch.empty_like(self._product, dtype=wide)

    def add(self, p: Tensor, h: Tensor) -> None:
        """Adds a chunk's, p ``[R, V]`` and h ``[R, D]``."""
        if self._parts[0].dtype == p.dtype:
            self._parts[0].addmm_(p.t(), h)
            return
        for part, total in zip(p.split(self._classes, dim=1), self._parts, strict=True):
            product = torch.mm(part.t(), h, out=self._product[: total.size(0)])
            total += self._converted[: total.size(0)].copy_(product)

    def less(self, constant: Tensor) -> Tensor:
        """What was added up less ``constant``, ``[D]``, in the embedding's type; it is not kept."""
        if len(self._parts) == 1:
            return self._parts.pop().sub_(constant).to(self._weight.dtype)
        whole = torch.empty_like(self._weight)
        for place in whole.split(self._classes):
            place.copy_(self._parts.pop(0).sub_(constant))
        return whole


class _Sums(NamedTuple):
    """Over all rows: the smoothed and the plain loss, ``[2]``; the rows guessed right; and, where
    they are wanted, the gradients but for a correction of that of the matrix."""

    losses: Tensor
    correct: Tensor
    grad_rows: Tensor | None
    grad_matrix: _MatrixGradient | None


def _pass_over_chunks(
    rows: Tensor,
    weight: Tensor,
    target: Tensor,
    share: float,
    gold_share: float,
    chunk_size: int,
    with_gradient: bool,
) -> _Sums:
    """What a chunk and the matrix take, in the type of ``rows``, is free again afterwards.

    Args:
        share: of each class in the smoothed target, s.
        gold_share: what the gold class has beside it.
    """
    wide = torch.promote_types(weight.dtype, torch.float32)
    vocabulary = weight.size(0)
    matrix = weight.to(rows.dtype)
    # The sum over the classes of W, [D], a part at a time, as each is converted.
    parts = weight.split(_classes_at_once(weight))
    class_sum = sum(part.sum(dim=0, dtype=wide) for part in parts)
    losses = torch.zeros(2, dtype=wide, device=rows.device)
    correct = torch.zeros((), dtype=torch.int64, device=rows.device)
    grad_rows = torch.empty_like(rows) if with_gradient else None
    grad_matrix = _MatrixGradient(weight, rows.dtype, wide) if with_gradient else None

    chunk_size = min(chunk_size, rows.size(0))
    # Fresh memory for each chunk would cost more than what is done with it.
    all_logits = rows.new_empty(chunk_size, vocabulary)
    in_place = is_in_place(all_logits)
    all_p = all_logits if in_place else torch.empty_like(all_logits)

    for start in range(0, rows.size(0), chunk_size):
        chunk = slice(start, start + chunk_size)
        h, gold = rows[chunk], target[chunk]
        real = gold.size(0)  # rows of the chunk that are not idle
        logits = product(h, matrix.t(), out=all_logits[: h.size(0)])
        p = logits if in_place else all_p[: h.size(0)]
        found = row_losses(logits[:real], gold, gold_share, p[:real])
        nll, logit_sum = found.nll.sum(), (h[:real].to(wide) @ class_sum).sum()
        # The sum over the classes of -log p.
        spread = vocabulary * found.log_z.sum() - logit_sum
        losses[0] += gold_share * nll + share * spread
        losses[1] += nll
        correct += found.is_likeliest.sum()
        if grad_rows is not None and grad_matrix is not None:
            p[real:] = 0
            grad_rows[chunk] = product(p, matrix) - (share * class_sum).to(rows.dtype)
            grad_matrix.add(p, h)
    return _Sums(losses, correct, grad_rows, grad_matrix)


class _ChunkedLoss(torch.autograd.Function):
    """With p = softmax(h W^T), q the smoothed target and s = epsilon / (V - 1), the gradient of
    the logits is p - q = p - s - (1 - epsilon - s) [gold]. The constant s is taken out as a
    correction of rank one, so that ``row_losses`` alone passes over a chunk.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        epsilon: float,
        chunk_size: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        device = features.device.type
        dtype = product_type(weight)
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        share = epsilon / (weight.size(0) - 1)
        gold_share = 1 - epsilon - share
        with_gradient = any(ctx.needs_input_grad)  # type: ignore[attr-defined]

        with torch.autocast(device, enabled=False):
            rows = features.to(dtype)
            losses, correct, grad_rows, grad_matrix = _pass_over_chunks(
                rows, weight, target, share, gold_share, chunk_size, with_gradient
            )
            if grad_rows is not None and grad_matrix is not None:
                real = target.size(0)
                grad_rows[real:] = 0
                constant = share * rows[:real].sum(dim=0, dtype=losses.dtype)
                grad_weight = grad_matrix.less(constant)
                ctx.save_for_backward(grad_rows.to(features.dtype), grad_weight)
        loss, nll_loss = losses.unbind()
        nll_loss = nll_loss.clone()
        ctx.mark_non_differentiable(nll_loss, correct)
        return loss.clone(), nll_loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss, _grad_nll, _grad_correct):  # type: ignore[no-untyped-def]
        grad_features, grad_weight = ctx.saved_tensors
        return grad_loss * grad_features, grad_loss * grad_weight, None, None, None
