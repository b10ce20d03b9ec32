"""Floating-point operations of fairseq's own Transformer, ConvS2S and LSTM.

Matrix products alone are counted, as in ``flops.py``. Each token is multiplied by every weight of
its side once, with 2 operations for each element; looking up embeddings is free. A convolution's
products with the zeros beyond the ends of a sentence count. An attention layer multiplies each pair
of a source and a target token twice: for the score, and for the weighted sum.
"""

from __future__ import annotations

from fairseq.models.fconv import FConvModel
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from torch import nn

from .flops import Count, Dimensions, decoder_flops, encoder_flops, output_flops


def stock_transformer_flops(model: TransformerModelBase, source: Count, target: Count) -> Count:
    """Forward pass of fairseq's Transformer for a pair of sentences."""
    encoder, decoder = (
        Dimensions(side.layers, side.embed_dim, side.ffn_embed_dim, heads, width, width)
        for side in (model.cfg.encoder, model.cfg.decoder)
        for heads in [side.attention_heads]
        for width in [side.embed_dim // heads]
    )
    vocab, width = model.decoder.output_projection.weight.shape
    layers = encoder_flops(encoder, source) + decoder_flops(decoder, source, target)
    return layers + output_flops(width, vocab, target)


def convs2s_flops(model: FConvModel, source: Count, target: Count) -> Count:
    """Forward pass of ConvS2S (Gehring et al., 2017) for a pair of sentences."""
    layers = sum(attention is not None for attention in model.decoder.attention)
    attention = layers * 4 * source * target * model.encoder.fc2.out_features
    tokens = source * _elements(model.encoder) + target * _elements(model.decoder)
    return 2 * tokens + attention


def lstm_flops(model: LSTMModel, source: Count, target: Count) -> Count:
    """Forward pass of the LSTM with attention (Luong et al., 2015) for a pair of sentences. An
    adaptive softmax counts as if every token needed all of its classes."""
    encoder, decoder = model.encoder, model.decoder
    # The last states of a bidirectional encoder, projected once for each layer of the decoder.
    states = _elements(decoder.encoder_hidden_proj, decoder.encoder_cell_proj)
    tokens = source * _elements(encoder) + target * (_elements(decoder) - states)
    flops = 2 * tokens + 2 * decoder.num_layers * states
    if decoder.attention is not None:
        flops = flops + 4 * source * target * encoder.output_units
    if decoder.share_input_output_embed:
        vocab, width = decoder.embed_tokens.weight.shape
        flops = flops + output_flops(width, vocab, target)
    return flops


def _elements(*parts: nn.Module | None) -> int:
    """The elements of the weights, without embeddings and the gains of weight normalisation."""
    return sum(
        weight.numel()
        for part in parts
        if part is not None
        for module in part.modules()
        if not isinstance(module, nn.Embedding)
        for name, weight in module.named_parameters(recurse=False)
        if name.startswith("weight") and name != "weight_g"
    )
