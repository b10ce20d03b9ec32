"""Converts the names of tensors between the plugin's modules and fairseq's checkpoints.

Plugin checkpoints have the names of fairseq's TransformerModel, so that they can be exchanged
without renaming. The plugin's modules have the paper's names, and fuse projections that fairseq
keeps separate.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .modules.multi_head_attention import MultiHeadAttention

_RENAMED = {  # ours: fairseq's
    "self_attention.output": "self_attn.out_proj",
    "encoder_attention.output": "encoder_attn.out_proj",
    "encoder_attention.query": "encoder_attn.q_proj",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "encoder_attention_residual.norm": "encoder_attn_layer_norm",
    "feed_forward_residual.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
_FUSED = {  # ours: fairseq's in the order of the rows
    "self_attention.query_key_value": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "encoder_attention.key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
}
_TO_OURS = {theirs: ours for ours, theirs in _RENAMED.items()}
_FUSED_IN = {part: ours for ours, parts in _FUSED.items() for part in parts}
_STACK = r"(?:.*\b(?:encoder|decoder)\.)?"  # within a model, or by itself
# In the outermost stack: the tensors of a module that a user has added to a layer keep their names.
# torch.compile adds _orig_mod to the names.
_LAYER = r"layers\.\d+\."
_IN_A_LAYER = re.compile(
    rf"^((?:(?!\b{_LAYER}).)*{_LAYER}(?:_orig_mod\.)?)(\w+(?:\.\w+)?)\.(weight|bias)$"
)
_FINAL_NORM = re.compile(rf"^({_STACK})(?:norm|layer_norm)\.(weight|bias)$")
_DROPPED = re.compile(rf"^({_STACK})(?:version|embed_positions\.(?:_float_tensor|weights))$")


def is_dropped(name: str) -> bool:
    """Whether a tensor of this name is stored by fairseq and not part of the plugin's model."""
    return _DROPPED.search(name) is not None


def check_kinds(stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Checks that stored weights are floating-point numbers; torch would convert others.

    Raises:
        TypeError: one is not; the message names it.
    """
    for name in stored.keys() & expected.keys():
        if expected[name].is_floating_point() and not stored[name].is_floating_point():
            raise TypeError(
                f"{name}: expected floating-point numbers, found {stored[name].dtype}: the"
                " checkpoint is not of a trained model"
            )


def to_fairseq_names(state: Mapping[str, Tensor], width_k: int, width_v: int) -> dict[str, Tensor]:
    """Converts to fairseq's names; fused projections are split into views. Those with another
    number of rows, as of multi-query attention, keep their names.

    Args:
        width_k: rows of the query and of the key projection, H * K.
        width_v: rows of the value projection, H * d_v.
    """
    widths = {"q_proj": width_k, "k_proj": width_k, "v_proj": width_v}
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        layer, module, kind = _parts_of(name)
        parts = _FUSED.get(module, ())
        rows = [widths[part.rsplit(".", 1)[1]] for part in parts]
        if parts and len(tensor) == sum(rows):
            names = (f"{layer}{part}.{kind}" for part in parts)
            renamed.update(zip(names, tensor.split(rows), strict=True))
        elif module in _RENAMED:
            renamed[f"{layer}{_RENAMED[module]}.{kind}"] = tensor
        else:
            renamed[_FINAL_NORM.sub(r"\1layer_norm.\2", name)] = tensor
    return renamed


def to_our_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Converts to the plugin's names. Names that are already the plugin's, and incomplete
    projections, do not change."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if is_dropped(name):
            continue
        layer, module, kind = _parts_of(name)
        if module in _FUSED_IN:
            ours = _FUSED_IN[module]
            names = [f"{layer}{part}.{kind}" for part in _FUSED[ours]]
            if not state.keys() >= set(names):
                renamed[name] = tensor
            elif name == names[0]:
                renamed[f"{layer}{ours}.{kind}"] = torch.cat([state[each] for each in names])
        elif module in _TO_OURS:
            renamed[f"{layer}{_TO_OURS[module]}.{kind}"] = tensor
        else:
            renamed[_FINAL_NORM.sub(r"\1norm.\2", name)] = tensor
    return renamed


def _parts_of(name: str) -> tuple[str, str, str]:
    """The prefix of a layer, the name of a module in it, and ``weight`` or ``bias``; empty if it is
    the name of something else."""
    match = _IN_A_LAYER.match(name)
    return (match[1], match[2], match[3]) if match else ("", "", "")


def keep_fairseq_names(stack: nn.Module, width_k: int, width_v: int) -> None:
    """Lets an encoder or decoder save and load its tensors under fairseq's names, except names that
    modules of the user's own have.

    Args:
        width_k, width_v: see ``to_fairseq_names``, for attention of a class of the user's own.
    """
    saved = functools.partial(_saved, width_k, width_v)
    if hasattr(stack, "register_state_dict_post_hook"):
        stack.register_state_dict_post_hook(saved)
    else:  # torch 2.4
        stack._register_state_dict_hook(saved)
    before_loading(stack, _to_load)


def before_loading(module: nn.Module, hook: Callable[..., None]) -> None:
    """Makes ``module`` call ``hook(module, state, ...)`` before it loads tensors."""
    if hasattr(module, "register_load_state_dict_pre_hook"):
        module.register_load_state_dict_pre_hook(hook)
    else:  # torch 2.4
        module._register_load_state_dict_pre_hook(hook, with_module=True)


def _saved(
    width_k: int, width_v: int, stack: nn.Module, state: Any, prefix: str, _metadata: Any
) -> None:
    names = [name for name in state if name.startswith(prefix)]
    own = {name.removeprefix(prefix): state.pop(name) for name in names}
    for name, tensor in own.items():
        layer, module, _kind = _parts_of(name)
        widths = width_k, width_v
        if module in _FUSED:
            owner = stack.get_submodule(f"{layer}{module}".rpartition(".")[0])
            if isinstance(owner, MultiHeadAttention):  # a user may have given it other widths
                widths = owner.num_heads * owner.d_k, owner.num_heads * owner.d_v
        renamed = to_fairseq_names({name: tensor}, *widths)
        if not renamed.keys().isdisjoint(own):  # another module has the name
            renamed = {name: tensor}
        state.update({prefix + each: rows for each, rows in renamed.items()})


def _to_load(stack: nn.Module, state: Any, prefix: str, *_: Any) -> None:
    kinds = stack.named_parameters, stack.named_buffers
    own = {name for named in kinds for name, _ in named(prefix[:-1], remove_duplicate=False)}
    others = [name for name in state if name not in own]
    renamed = to_our_names({name.removeprefix(prefix): state.pop(name) for name in others})
    state.update({prefix + name: tensor for name, tensor in renamed.items()})
