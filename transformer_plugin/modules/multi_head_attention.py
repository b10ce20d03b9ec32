"""Multi-head attention, section 3.2.2 of the paper."""

from __future__ import annotations

from torch import Tensor, nn

from .attention import AttentionScore, Positions, attention
from .key_values import KeyValues, WholeSentences
from .linear import linear
from .packing import pad_like, remove_padding


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, section 3.2.2.

    Self-attention projects queries, keys and values in one matrix product, encoder-decoder
    attention in two: one for the queries, one for the keys and values of the memory.
    Deviation: all have biases, as in the authors' release; the paper's formulas have none.

    Args:
        d_model: width of the model, D.
        num_heads: number of heads, H.
        d_k: width of a query and of a key in one head, K; by default D / H.
        d_v: width of a value in one head; by default D / H.
        dropout: rate on the attention weights (none in the paper).
        encoder_decoder: whether keys and values come from the encoder's output.
        score: how queries and keys are compared, see ``AttentionScore``.
        window: greatest distance of the positions that self-attention sees; 0 = unlimited.

    Raises:
        ValueError: D is not a multiple of H, and d_k or d_v is not given; or the window is
            negative.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        encoder_decoder: bool = False,
        score: str = "scaled_dot",
        window: int = 0,
    ) -> None:
        super().__init__()
        if d_model % num_heads and not (d_k and d_v):
            raise ValueError(
                f"d_model {d_model} is not divisible by num_heads {num_heads}: give d_k and d_v"
            )
        if window < 0:
            raise ValueError(f"window {window}: give the greatest distance, or 0 for no limit")
        self.num_heads = num_heads
        self.d_k, self.d_v = d_k or d_model // num_heads, d_v or d_model // num_heads
        self.dropout = dropout
        self.encoder_decoder = encoder_decoder
        if encoder_decoder:
            self.query = nn.Linear(d_model, num_heads * self.d_k)
            self.key_value = nn.Linear(d_model, num_heads * (self.d_k + self.d_v))
        else:
            self.query_key_value = nn.Linear(d_model, num_heads * (2 * self.d_k + self.d_v))
        self.output = nn.Linear(num_heads * self.d_v, d_model)
        self.score = AttentionScore(score, num_heads, self.d_k)
        self.window = 0 if encoder_decoder else window

    def forward(
        self,
        x: Tensor,
        key_values: KeyValues | None = None,
        need_weights: bool = False,
        *,
        memory: Tensor | None = None,
        padding_mask: Tensor | None = None,
        causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of ``x`` over ``key_values``; if they are None, over padded sentences.

        Args:
            x: ``[..., D]`` as ``key_values`` expects it; ``[B, L, D]`` if that is None.
            key_values: what is attended to: whole sentences, or the decoder's KV cache.
            need_weights: also return the weights, which is slower.
            memory: the encoder's output ``[B, S, D]`` (encoder-decoder attention only).
            padding_mask: of the keys, ``[B, S]``, True = padding; None = no padding.
            causal: position i sees the positions up to i (section 3.2.3).

        Returns:
            The shape of ``x``, and the weights ``[B, H, T, S]`` in float32 or wider, or None. With
            padding on the left, their rows and columns still begin with the real tokens.

        Raises:
            ValueError: ``memory`` is given to self-attention or with ``causal``, or is missing in
                encoder-decoder attention.
        """
        if memory is not None and not self.encoder_decoder:
            raise ValueError("self-attention has no memory: build it with encoder_decoder=True")
        if memory is not None and causal:
            raise ValueError("every position sees the whole memory: causal is for self-attention")
        if key_values is None:
            own_mask = padding_mask if memory is None else None
            rows, packing = remove_padding(x, own_mask)
            whole = WholeSentences(packing, causal)
            if memory is not None:
                whole.memory, whole.memory_packing = remove_padding(memory, padding_mask)
            y, weights = self(rows, whole, need_weights)
            return pad_like(y, packing, own_mask), weights
        if self.encoder_decoder:
            queries = linear(self.query, x)
            context, weights = key_values.encoder_attention(self, queries, need_weights)
        else:
            projected = linear(self.query_key_value, x)
            context, weights = key_values.self_attention(self, projected, need_weights)
        return linear(self.output, context), weights

    def project_memory(self, memory: Tensor) -> Tensor:
        """Keys and values of the encoder's output ``[..., D]``, ``[..., H * (K + d_v)]``."""
        return linear(self.key_value, memory)

    def heads(self, x: Tensor, width: int) -> Tensor:
        """``[B, L, H * width]`` to ``[B, H, L, width]``."""
        return x.view(*x.shape[:2], self.num_heads, width).transpose(1, 2)

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
        need_weights: bool = False,
        positions: Positions | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """``attention`` in all heads, concatenated.

        Args:
            q, k, v, allowed, need_weights: see ``attention``.
            positions: of queries and keys, in self-attention. Equation (1) ignores them; a subclass
                with relative or rotary positions overrides this method.

        Returns:
            ``[B, T, H * d_v]`` and the weights ``[B, H, T, S]`` in float32, or None.
        """
        rate = self.dropout if self.training else 0.0
        context, weights = attention(q, k, v, self.score, allowed, rate, need_weights)
        return context.transpose(1, 2).flatten(2), weights  # [B, H, T, d_v] -> [B, T, H * d_v]
