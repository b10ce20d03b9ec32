"""Stock fairseq's small models of these tests: their options and their settings."""

from __future__ import annotations

from argparse import Namespace

POSITIONS = {"max_source_positions": 64, "max_target_positions": 64}
UNTIED = {"share_all_embeddings": False}
HALF = UNTIED | {"share_decoder_input_output_embed": True}
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}


def stock_settings(given):
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_embed_dim": 32}
    sizes |= {"encoder_ffn_embed_dim": 64, "encoder_attention_heads": 4}
    sizes |= {"decoder_attention_heads": 4, "share_all_embeddings": True, "dropout": 0.0}
    return Namespace(**(sizes | POSITIONS | given))


def trained(model, optimizer_class, sample):
    """The optimizer of ``model`` after an update."""
    optimizer = optimizer_class(model.parameters(), lr=1e-3)
    model(**sample["net_input"])[0].square().mean().backward()
    optimizer.step()
    return optimizer


def header(model, args, optimizer) -> dict:
    return {
        "args": None,
        "cfg": {"model": args, "task": {"_name": "translation", "source_lang": "en"}},
        "model": model.state_dict(),
        "last_optimizer_state": optimizer.state_dict(),
        "optimizer_history": [{"criterion_name": "LabelSmoothedCrossEntropyCriterion"}],
    }
