"""Stock fairseq's small models of these tests: their options and their settings."""

from __future__ import annotations

from argparse import Namespace

POSITIONS = {"max_source_positions": 64, "max_target_positions": 64}
UNTIED = {"share_all_embeddings": False}
HALF = UNTIED | {"share_decoder_input_output_embed": True}


def stock_settings(given):
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_embed_dim": 32}
    sizes |= {"encoder_ffn_embed_dim": 64, "encoder_attention_heads": 4}
    sizes |= {"decoder_attention_heads": 4, "share_all_embeddings": True, "dropout": 0.0}
    return Namespace(**(sizes | POSITIONS | given))
