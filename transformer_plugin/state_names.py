"""A model's tensors under fairseq's names: how our modules are called in a checkpoint.

A plugin checkpoint names its tensors as fairseq's TransformerModel does, so that exchanging one
with stock fairseq needs no renaming. Our modules have the paper's words, and fuse projections
that fairseq keeps apart.
"""

from __future__ import annotations

import re
from collections import OrderedDict

import torch
from torch import Tensor

_RENAMED = (  # ours, fairseq's
    ("self_attention.output", "self_attn.out_proj"),
    ("encoder_attention.output", "encoder_attn.out_proj"),
    ("encoder_attention.query", "encoder_attn.q_proj"),
    ("self_attention_residual.norm", "self_attn_layer_norm"),
    ("encoder_attention_residual.norm", "encoder_attn_layer_norm"),
    ("feed_forward_residual.norm", "final_layer_norm"),
    ("feed_forward.inner", "fc1"),
    ("feed_forward.outer", "fc2"),
)
_FUSED = (  # ours, fairseq's in the order of the rows
    (
        "self_attention.query_key_value",
        ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ),
    ("encoder_attention.key_value", ("encoder_attn.k_proj", "encoder_attn.v_proj")),
)
_FINAL_NORM = re.compile(r"^(.*\b(?:encoder|decoder))\.(norm|layer_norm)\.(weight|bias)$")
_DROPPED = re.compile(
    r"\b(?:encoder|decoder)\.(?:version|embed_positions\.(?:_float_tensor|weights))$"
)


def to_fairseq_names(
    state: OrderedDict[str, Tensor], width_k: int, width_v: int
) -> OrderedDict[str, Tensor]:
    """Our names to fairseq's; fused projections come apart as views.

    Args:
        width_k: rows of the query and of the key projection, H * K.
        width_v: rows of the value projection, H * d_v.
    """
    widths = {"q_proj": width_k, "k_proj": width_k, "v_proj": width_v}
    renamed: OrderedDict[str, Tensor] = OrderedDict()
    for name, tensor in state.items():
        for ours, parts in _FUSED:
            if f".{ours}." in name:
                rows = tensor.split([widths[part.rsplit(".", 1)[1]] for part in parts])
                renamed.update(
                    (name.replace(ours, part), row) for part, row in zip(parts, rows, strict=True)
                )
                break
        else:
            for ours, theirs in _RENAMED:
                name = name.replace(f".{ours}.", f".{theirs}.")
            renamed[_FINAL_NORM.sub(r"\1.layer_norm.\3", name)] = tensor
    return renamed


def to_our_names(state: OrderedDict[str, Tensor]) -> OrderedDict[str, Tensor]:
    """fairseq's names to ours; names that are ours already stay."""
    renamed: OrderedDict[str, Tensor] = OrderedDict()
    for name, tensor in state.items():
        if _DROPPED.search(name):
            continue
        for ours, parts in _FUSED:
            if f".{parts[0]}." in name:
                rows = [state[name.replace(parts[0], part)] for part in parts]
                renamed[name.replace(parts[0], ours)] = torch.cat(rows)
                break
            if any(f".{part}." in name for part in parts[1:]):
                break
        else:
            for ours, theirs in _RENAMED:
                name = name.replace(f".{theirs}.", f".{ours}.")
            renamed[_FINAL_NORM.sub(r"\1.norm.\3", name)] = tensor
    return renamed
