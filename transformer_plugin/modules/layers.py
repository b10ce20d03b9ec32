"""One layer of the encoder and of the decoder, section 3.1 of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from .feed_forward import PositionwiseFeedForward
from .key_values import KeyValues, WholeSentences
from .multi_head_attention import MultiHeadAttention
from .packing import pad_like, remove_padding
from .residual import Residual


@dataclass(frozen=True)
class LayerShape:
    """The hyperparameters of a layer, named as in the paper.

    ``d_k`` and ``d_v`` are d_model / num_heads by default. With ``checkpoint_activations``, a
    stack recomputes the activations of its layers in backward instead of storing them.
    """

    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int | None = None
    d_v: int | None = None
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
        """The residual connection around a sub-layer of this shape."""
        return Residual(self.d_model, self.dropout, self.pre_norm, self.layer_norm_eps)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with its residual connection."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = shape.attention()
        self.self_attention_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    def forward(
        self,
        x: Tensor,
        key_values: KeyValues | None = None,
        need_weights: bool = False,
        *,
        padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """One layer over packed rows, or over padded sentences.

        Args:
            x: ``[N, D]``; ``[B, S, D]`` if ``key_values`` is None.
            key_values: the sentences of a packed batch.
            padding_mask: ``[B, S]``, True = padding.

        Returns:
            The shape of ``x``, and the attention weights ``[B, H, S, S]`` if ``need_weights``.
        """
        if key_values is None:
            rows, packing = remove_padding(x, padding_mask)
            y, found = self(rows, WholeSentences(packing), need_weights)
            return pad_like(y, packing, padding_mask), found
        weights: Tensor | None = None

        def self_attention(x: Tensor) -> Tensor:
            nonlocal weights
            x, weights = self.self_attention(x, key_values, need_weights)
            return x

        x = self.self_attention_residual(x, self_attention)
        return self.feed_forward_residual(x, self.feed_forward), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, encoder-decoder attention, then the feed-forward network."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = shape.attention()
        self.self_attention_residual = shape.residual()
        self.encoder_attention = shape.attention(encoder_decoder=True)
        self.encoder_attention_residual = shape.residual()
        self.feed_forward = shape.feed_forward()
        self.feed_forward_residual = shape.residual()

    def forward(
        self,
        x: Tensor,
        key_values: KeyValues | None = None,
        need_weights: bool = False,
        *,
        memory: Tensor | None = None,
        padding_mask: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """One layer over packed rows, one decoding step, or padded sentences.

        Args:
            x: ``[N, D]`` for whole sentences, ``[B, k, D]`` for one position of k hypotheses;
                ``[B, T, D]`` if ``key_values`` is None.
            key_values: whole sentences with the encoder's output, or the layer's KV cache.
            memory: the encoder's output ``[B, S, D]``, required if ``key_values`` is None.
            padding_mask: of ``x``, ``[B, T]``, True = padding.
            memory_padding_mask: of ``memory``, ``[B, S]``.

        Returns:
            The shape of ``x``; if ``need_weights``, the weights of self-attention ``[B, H, T, T]``
            (None with a cache) and of encoder-decoder attention ``[B, H, T, S]``.

        Raises:
            ValueError: neither ``key_values`` nor ``memory`` is given.
        """
        if key_values is None:
            if memory is None:
                raise ValueError("a decoder layer needs key_values or memory")
            rows, packing = remove_padding(x, padding_mask)
            memory_rows, memory_packing = remove_padding(memory, memory_padding_mask)
            whole = WholeSentences(packing, True, memory_rows, memory_packing)
            y, *both_weights = self(rows, whole, need_weights)
            return pad_like(y, packing, padding_mask), *both_weights
        self_weights: Tensor | None = None
        encoder_weights: Tensor | None = None

        def self_attention(x: Tensor) -> Tensor:
            nonlocal self_weights
            x, self_weights = self.self_attention(x, key_values, need_weights)
            return x

        def encoder_attention(x: Tensor) -> Tensor:
            nonlocal encoder_weights
            x, encoder_weights = self.encoder_attention(x, key_values, need_weights)
            return x

        x = self.self_attention_residual(x, self_attention)
        x = self.encoder_attention_residual(x, encoder_attention)
        return self.feed_forward_residual(x, self.feed_forward), self_weights, encoder_weights
