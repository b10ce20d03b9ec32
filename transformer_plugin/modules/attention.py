"""Multi-head attention, section 3.2 of the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import compiled, compiled_attention, flash_attention
from .attention_score import AttentionScore
from .linear import linear
from .packing import Packing


def position_mask(length: int, causal: bool, window: int, device: torch.device) -> Tensor:
    """Which positions each position of a sentence may see, ``[L, L]``, True = may be seen.

    Args:
        causal: only those up to itself (section 3.2.3).
        window: only those at most so far away; 0 = any (section 4, restricted self-attention).
    """
    seen = torch.ones(length, length, dtype=torch.bool, device=device)
    if causal:
        seen = seen.tril()
    return seen.tril(window).triu(-window) if window else seen


def attention_weights(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """The softmax over the keys of equation (1), in float32.

    Args:
        scores: ``[B, H, T, S]``.
        allowed: broadcasts to ``[B, H, T, S]``: True = may be seen, or a float that is added to
            the scores; None = all may.

    Returns:
        ``[B, H, T, S]``, each row a distribution over the keys that may be seen.
    """
    scores = scores.float()
    if allowed is None:
        return scores.softmax(dim=-1)
    if allowed.dtype == torch.bool:
        return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return (scores + allowed).softmax(dim=-1)


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> Tensor:
    """torch's SDPA, in float32 on a CPU, where it is slow in bf16.

    Returns:
        ``[B, H, T, d_v]``, of the type of ``q``.
    """
    dtype = q.dtype
    if dtype == torch.bfloat16 and not q.is_cuda:
        q, k, v = q.float(), k.float(), v.float()
    context = F.scaled_dot_product_attention(
        q, k, v, allowed, dropout_p=dropout, is_causal=causal, scale=scale
    )
    return context.to(dtype)


def _one_batch(rows: Tensor | None) -> Tensor | None:
    """``[N, ...]`` as ``[1, N, ...]``."""
    return None if rows is None else rows.unsqueeze(0)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, section 3.2.2.

    Self-attention projects queries, keys and values in one matrix product, encoder-decoder
    attention in two: one for the queries, one for the keys and values of the memory.
    Deviation: all have biases, as in the authors' release; the paper's formulas have none.

    Args:
        d_model: width of the model, D.
        num_heads: number of heads, H.
        d_k: width of a query and of a key in one head, K.
        d_v: width of a value in one head.
        dropout: rate on the attention weights (none in the paper).
        encoder_decoder: whether keys and values come from the encoder's output.
        score: how queries and keys are compared, see ``AttentionScore``.
        window: self-attention sees positions at most so far away; 0 = any.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int,
        d_v: int,
        dropout: float = 0.0,
        encoder_decoder: bool = False,
        score: str = "scaled_dot",
        window: int = 0,
    ) -> None:
        super().__init__()
        self.num_heads, self.d_k, self.d_v = num_heads, d_k, d_v
        self.dropout = dropout
        self.encoder_decoder = encoder_decoder
        if encoder_decoder:
            self.query = nn.Linear(d_model, num_heads * d_k)
            self.key_value = nn.Linear(d_model, num_heads * (d_k + d_v))
        else:
            self.query_key_value = nn.Linear(d_model, num_heads * (2 * d_k + d_v))
        self.output = nn.Linear(num_heads * d_v, d_model)
        self.score = AttentionScore(score, num_heads, d_k)
        self.window = 0 if encoder_decoder else window

    def forward(
        self,
        x: Tensor,
        packing: Packing,
        memory: Tensor | None = None,
        memory_packing: Packing | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention over whole sentences.

        Args:
            x: packed inputs that ask, ``[N, D]``.
            packing: their layout.
            memory: packed encoder output ``[N_s, D]`` (encoder-decoder attention alone).
            memory_packing: its layout.
            causal: masked self-attention of the decoder.
            need_weights: also return the weights; costs the fused kernel.

        Returns:
            ``[N, D]`` and the weights ``[B, H, T, S]`` in float32, or None.
        """
        if not self.encoder_decoder:
            rows, memory_rows, keys = linear(self.query_key_value, x), None, packing
        elif memory is None or memory_packing is None:
            raise ValueError("encoder-decoder attention needs memory and memory_packing")
        else:
            rows, keys = linear(self.query, x), memory_packing
            memory_rows = linear(self.key_value, memory)
        if not need_weights and self._is_plain():
            if compiled.is_supported(rows, self.d_k, self.d_v):
                numbers = (self.num_heads, self.d_k, self.d_v, self.score.scale)
                heads = compiled_attention.PackedHeads(*numbers, packing, keys, causal)
                context = compiled_attention.attend(heads, rows, memory_rows)
                return linear(self.output, context), None
            if flash_attention.is_supported(rows, self.d_k, self.d_v):
                by_head = self._split(rows.unsqueeze(0), _one_batch(memory_rows))
                q, k, v = (x.squeeze(0).transpose(0, 1) for x in by_head)  # [N, H, K]
                context = flash_attention.attend(q, k, v, packing, keys, causal, self.score.scale)
                return linear(self.output, context.flatten(1)), None
        q, k, v = self._split(
            packing.pad(rows), None if memory_rows is None else keys.pad(memory_rows)
        )
        # A real query never sees the padding behind it, so causal attention needs no mask for it.
        allowed = None if causal else keys.allowed
        if self.window:
            near = position_mask(packing.max_length, causal, self.window, x.device)
            allowed, causal = (near if allowed is None else near & allowed), False
        context, weights = self.attend(q, k, v, allowed, causal, need_weights)
        return linear(self.output, packing.pack(context)), weights

    def _is_plain(self) -> bool:
        """Whether this is equation (1) without dropout or window."""
        return self.score.is_plain and not self.window and not (self.dropout and self.training)

    def heads(self, x: Tensor, width: int) -> Tensor:
        """``[B, L, H * width]`` to ``[B, H, L, width]``."""
        return x.view(*x.shape[:2], self.num_heads, width).transpose(1, 2)

    def _split(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The projections ``[B, L, ...]`` and ``[B, S, ...]`` as q, k and v of each head."""
        if memory is None:
            return self.self_heads(x)
        return self.heads(x, self.d_k), *self.memory_heads(memory)

    def self_heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The product of ``query_key_value``, ``[B, L, ...]``, as q, k and v ``[B, H, L, K]``."""
        width_k, width_v = self.num_heads * self.d_k, self.num_heads * self.d_v
        q, k, v = qkv.split([width_k, width_k, width_v], dim=-1)
        return self.heads(q, self.d_k), self.heads(k, self.d_k), self.heads(v, self.d_v)

    def memory_heads(self, key_value: Tensor) -> tuple[Tensor, Tensor]:
        """The product of ``key_value``, ``[B, S, ...]``, as k and v ``[B, H, S, K]``."""
        k, v = key_value.split([self.num_heads * self.d_k, self.num_heads * self.d_v], dim=-1)
        return self.heads(k, self.d_k), self.heads(v, self.d_v)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention(Q, K, V) of equation (1) for all heads, concatenated.

        Args:
            q: ``[B, H, T, K]``.
            k: ``[B, H, S, K]``.
            v: ``[B, H, S, d_v]``.
            allowed: broadcasts to ``[B, H, T, S]``: True = may be seen, or a float that is added
                to the scores; None = all may.
            causal: instead of ``allowed``, position i sees the positions up to i.

        Returns:
            ``[B, T, H * d_v]`` and the weights ``[B, H, T, S]`` in float32, or None.
        """
        dropout = self.dropout if self.training else 0.0
        dtype = q.dtype
        if need_weights or not self.score.is_product:
            if causal:
                allowed = position_mask(q.size(2), True, 0, q.device)
            weights = attention_weights(self.score(q.to(k.dtype), k), allowed)
            dropped = F.dropout(weights, dropout) if dropout else weights
            context = torch.matmul(dropped.to(v.dtype), v).to(dtype)
        else:
            weights = None
            context = fused_attention(
                self.score.transform(q), k, v, allowed, dropout, causal, self.score.scale
            )
        context = context.transpose(1, 2).flatten(2)  # [B, H, T, d_v] -> [B, T, H * d_v]
        return context, weights if need_weights else None
