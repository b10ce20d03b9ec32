"""A plugin checkpoint as fairseq's own Transformer, also where ``convert`` has no form for it."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.transformer import TransformerModel
from fairseq.tasks import FairseqTask
from torch import nn

from transformer_plugin.checkpoints.conversion import convert
from transformer_plugin.checkpoints.stock_settings import completed_settings
from transformer_plugin.modules.positional_encoding import (
    positional_encoding,
    positional_encoding_halves,
)

ENCODINGS = {"paper": positional_encoding, "t2t": positional_encoding_halves}
POSITIONS = 1024
BEFORE_THE_FIRST = 2  # rows that fairseq's table of learned positions never uses


def stock_model(state: dict[str, Any], task: FairseqTask) -> nn.Module:
    """fairseq's model, which computes what the plugin's does."""
    converted = stock_checkpoint(state)
    model = TransformerModel.build_model(converted["cfg"]["model"], task)
    model.load_state_dict(converted["model"])
    epsilon = completed_settings(state["cfg"]["model"])["layer_norm_eps"]
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = epsilon
    return model


def stock_checkpoint(state: dict[str, Any]) -> dict[str, Any]:
    """It differs from the plugin's in nothing but the norm's epsilon, which fairseq has fixed: the
    paper's encoding goes in as a learned table."""
    settings = completed_settings(state["cfg"]["model"])
    tensors = dict(state["model"])
    settings["layer_norm_eps"] = 1e-5
    encoding = ENCODINGS.get(settings["positional_encoding"])
    if encoding:
        width = settings["d_model"]
        table = torch.cat([torch.zeros(BEFORE_THE_FIRST, width), encoding(POSITIONS, width)])
        tensors |= {f"{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
        settings["positional_encoding"] = "learned"
        settings["max_source_positions"] = settings["max_target_positions"] = POSITIONS
    return convert(
        {
            **state,
            "cfg": {**state["cfg"], "model": settings},
            "model": tensors,
            "last_optimizer_state": None,
        },
        "stock",
    )
