"""Counts the parameters of a Transformer from its dimensions."""

from __future__ import annotations

from ..flops import Dimensions


def attention_parameters(d_model: int, heads: int, d_k: int, d_v: int) -> int:
    """W^Q, W^K, W^V and W^O of all heads (section 3.2.2), with biases as in the authors'
    release."""
    projected = heads * (2 * d_k + d_v)
    return (d_model + 1) * projected + (heads * d_v + 1) * d_model


def score_parameters(score: str, heads: int, d_k: int) -> int:
    """Those of ``modules.attention.AttentionScore``."""
    of_a_head = {"general": d_k * d_k, "additive": (2 * d_k + 1) * d_k}
    return heads * of_a_head.get(score, 0)


def feed_forward_parameters(d_model: int, d_ff: int) -> int:
    """W_1, b_1, W_2, b_2 of equation (2)."""
    return (d_model + 1) * d_ff + (d_ff + 1) * d_model


def norm_parameters(d_model: int) -> int:
    """Gain and bias of a layer normalisation (section 3.1)."""
    return 2 * d_model


def transformer_parameters(
    n: Dimensions,
    vocab: int,
    embeddings: int = 1,
    learned_positions: int = 0,
    pre_norm: bool = False,
    decoder_layers: int | None = None,
    score: str = "scaled_dot",
) -> int:
    """All parameters of the model in Figure 1.

    Args:
        vocab: symbols of the vocabulary, V.
        embeddings: separate V x d_model matrices among source embedding, target embedding and
            output projection; 1 = all tied (section 3.4).
        learned_positions: learned position vectors, both sides together (Table 3, row E).
        pre_norm: each stack has one more normalisation at its end.
        decoder_layers: if the number differs from the encoder's.
        score: one of ``ATTENTION_SCORES``.
    """
    attention = attention_parameters(n.d_model, n.heads, n.d_k, n.d_v)
    attention += score_parameters(score, n.heads, n.d_k)
    feed_forward = feed_forward_parameters(n.d_model, n.d_ff)
    norm = norm_parameters(n.d_model)
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    vectors = embeddings * vocab + learned_positions
    layers = n.n_layers * encoder_layer + (decoder_layers or n.n_layers) * decoder_layer
    return layers + vectors * n.d_model + 2 * norm * pre_norm
