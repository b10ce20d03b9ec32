"""How many parameters a Transformer has, from its numbers alone."""

from __future__ import annotations


def attention_parameters(d_model: int, heads: int, d_k: int, d_v: int) -> int:
    """W^Q, W^K, W^V and W^O of all heads (section 3.2.2), with biases as in the authors'
    release."""
    projected = heads * (2 * d_k + d_v)
    return (d_model + 1) * projected + (heads * d_v + 1) * d_model


def feed_forward_parameters(d_model: int, d_ff: int) -> int:
    """W_1, b_1, W_2, b_2 of equation (2)."""
    return (d_model + 1) * d_ff + (d_ff + 1) * d_model


def norm_parameters(d_model: int) -> int:
    """Gain and bias of a layer normalisation (section 3.1)."""
    return 2 * d_model


def transformer_parameters(
    n_layers: int,
    d_model: int,
    d_ff: int,
    heads: int,
    d_k: int,
    d_v: int,
    vocab: int,
    embeddings: int = 1,
    learned_positions: int = 0,
    pre_norm: bool = False,
) -> int:
    """All parameters of Figure 1 with ``n_layers`` layers in each stack.

    Args:
        vocab: symbols of the vocabulary, V.
        embeddings: separate V x d_model matrices among source embedding, target embedding and
            output projection; 1 = all tied (section 3.4).
        learned_positions: learned position vectors, both sides together (Table 3, row E).
        pre_norm: each stack ends in one more normalisation.
    """
    attention = attention_parameters(d_model, heads, d_k, d_v)
    feed_forward = feed_forward_parameters(d_model, d_ff)
    norm = norm_parameters(d_model)
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    vectors = embeddings * vocab + learned_positions
    return n_layers * (encoder_layer + decoder_layer) + vectors * d_model + 2 * norm * pre_norm
