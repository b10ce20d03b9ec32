"""One layer of the encoder and of the decoder, section 3.1 of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from .attention import MultiHeadAttention
from .cache import LayerCache
from .feed_forward import PositionwiseFeedForward
from .linear import linear
from .packing import Packing
from .recompute import may_recompute
from .residual import Residual


@dataclass(frozen=True)
class LayerShape:
    """The numbers that make a layer; each is named as in the paper.

    ``checkpoint_activations`` makes it compute its activations twice instead of keeping them.
    """

    d_model: int
    d_ff: int
    num_heads: int
    d_k: int
    d_v: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pre_norm: bool = False
    layer_norm_eps: float = 1e-6
    attention_score: str = "scaled_dot"
    attention_window: int = 0
    checkpoint_activations: bool = False

    def attention(self, encoder_decoder: bool = False) -> MultiHeadAttention:
        """An attention sub-layer of this shape."""
        return MultiHeadAttention(
            self.d_model,
            self.num_heads,
            self.d_k,
            self.d_v,
            self.attention_dropout,
            encoder_decoder,
            self.attention_score,
            self.attention_window,
        )

    def feed_forward(self) -> PositionwiseFeedForward:
        """A feed-forward sub-layer of this shape."""
        return PositionwiseFeedForward(self.d_model, self.d_ff, self.activation_dropout)

    def residual(self) -> Residual:
        """The connection around a sub-layer of this shape."""
        return Residual(self.d_model, self.dropout, self.pre_norm, self.layer_norm_eps)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with its residual connection."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.checkpoint_activations = shape.checkpoint_activations
        self.self_attention = shape.attention()
        self.self_attention_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    @may_recompute
    def forward(
        self, x: Tensor, packing: Packing, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """``[N, D]`` to ``[N, D]``, and the attention weights ``[B, H, S, S]`` when asked."""
        weights: Tensor | None = None

        def self_attention(x: Tensor) -> Tensor:
            nonlocal weights
            x, weights = self.self_attention(x, packing, need_weights=need_weights)
            return x

        x = self.self_attention_residual(x, self_attention)
        return self.feed_forward_residual(x, self.feed_forward), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, encoder-decoder attention, then the feed-forward network."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.checkpoint_activations = shape.checkpoint_activations
        self.self_attention = shape.attention()
        self.self_attention_residual = shape.residual()
        self.encoder_attention = shape.attention(encoder_decoder=True)
        self.encoder_attention_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    @may_recompute
    def forward(
        self,
        x: Tensor,
        packing: Packing,
        memory: Tensor,
        memory_packing: Packing,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """All target positions at once.

        Args:
            x: ``[N, D]``.
            memory: the encoder's output, ``[N_s, D]``.

        Returns:
            ``[N, D]``; when asked, the weights of self-attention ``[B, H, T, T]`` and of
            encoder-decoder attention ``[B, H, T, S]``.
        """
        self_weights: Tensor | None = None
        encoder_weights: Tensor | None = None

        def self_attention(x: Tensor) -> Tensor:
            nonlocal self_weights
            x, self_weights = self.self_attention(
                x, packing, causal=True, need_weights=need_weights
            )
            return x

        def encoder_attention(x: Tensor) -> Tensor:
            nonlocal encoder_weights
            x, encoder_weights = self.encoder_attention(
                x, packing, memory, memory_packing, need_weights=need_weights
            )
            return x

        x = self.self_attention_residual(x, self_attention)
        x = self.encoder_attention_residual(x, encoder_attention)
        return self.feed_forward_residual(x, self.feed_forward), self_weights, encoder_weights

    def step(
        self,
        x: Tensor,
        cache: LayerCache,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """One target position, the ones before it being in ``cache``, which takes it up.

        Args:
            x: k hypotheses of each sentence, ``[B, k, D]``.

        Returns:
            ``[B, k, D]``, and the encoder-decoder weights ``[B, H, k, S]`` when asked.
        """
        encoder_weights: Tensor | None = None

        def self_attention(x: Tensor) -> Tensor:
            attention = self.self_attention
            projected = linear(attention.query_key_value, x)
            return linear(attention.output, cache.self_attention(attention, projected))

        def encoder_attention(x: Tensor) -> Tensor:
            nonlocal encoder_weights
            attention = self.encoder_attention
            context, encoder_weights = cache.encoder_attention(
                attention, linear(attention.query, x), need_weights
            )
            return linear(attention.output, context)

        x = self.self_attention_residual(x, self_attention)
        x = self.encoder_attention_residual(x, encoder_attention)
        return self.feed_forward_residual(x, self.feed_forward), encoder_weights
