"""A plugin checkpoint as fairseq's own Transformer, with the plugin's epsilon in the norms."""

from __future__ import annotations

from typing import Any

from fairseq.models.transformer import TransformerModel
from fairseq.tasks import FairseqTask
from torch import nn

from transformer_plugin.checkpoints.exchange.conversion import convert
from transformer_plugin.checkpoints.stock_settings import completed_settings


def stock_model(state: dict[str, Any], task: FairseqTask) -> nn.Module:
    """fairseq's model, which computes the same as the plugin's."""
    converted = convert(state, "stock")
    model = TransformerModel.build_model(converted["cfg"]["model"], task)
    model.load_state_dict(converted["model"])
    epsilon = completed_settings(state["cfg"]["model"])["layer_norm_eps"]
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = epsilon
    return model
