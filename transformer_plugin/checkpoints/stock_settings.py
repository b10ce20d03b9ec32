"""Converts model settings between the plugin and stock fairseq's ``transformer``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor
from torch.nn.functional import pad

from ..architectures import built_class
from ..config import MAX_POSITIONS, VaswaniConfig, completed
from ..model import VaswaniTransformer
from ..modules.positional_encoding import positional_encoding, positional_encoding_halves

# The plugin's own options of attention, as other software has it: a head's width is d_model / h.
PLAIN_ATTENTION = {"d_k": 0, "d_v": 0, "attention_score": "scaled_dot", "attention_window": 0}
_EPSILONS = (1e-5, 1e-6)  # stock's; the paper's changes logits by 1e-5
# Option values with which stock fairseq's model and the plugin's compute the same.
_STOCK_NEEDS = {
    "activation_fn": "relu",
    "adaptive_softmax_cutoff": None,
    "adaptive_input": False,
    "layernorm_embedding": False,
    "no_scale_embedding": False,
    "no_decoder_final_norm": False,
    "merge_src_tgt_embed": False,
    "char_inputs": False,
    "encoder_xformers_att_config": None,
    "decoder_xformers_att_config": None,
    "no_token_positional_embeddings": False,
    "no_cross_attention": False,
    "cross_self_attention": False,
    "encoder_layerdrop": 0,
    "decoder_layerdrop": 0,
    "encoder_layers_to_keep": None,
    "decoder_layers_to_keep": None,
    "quant_noise_pq": 0,
    "quant_noise_scalar": 0,
    "base_layers": 0,
}
# Tensors that are not the plugin's. Without them stock fairseq drops the final norms.
STOCK_VERSION = dict.fromkeys(("encoder.version", "decoder.version"), torch.tensor([3.0]))
_BEFORE_THE_FIRST = 2  # unused first rows of fairseq's table of learned positions
_BOTH_SIDES = ("embed_dim", "ffn_embed_dim", "attention_heads", "normalize_before", "learned_pos")


class UnsupportedModel(ValueError):
    """The other software cannot represent the model. The message names the option."""


def completed_settings(model: dict[str, Any]) -> dict[str, Any]:
    """A plugin model's settings, with defaults for fields newer than its checkpoint."""
    return dict(cast("dict[str, Any]", completed(model)))


def unsupported(
    cfg: dict[str, Any], needs: Mapping[str, tuple[object, ...]]
) -> Iterator[tuple[str, object, tuple[object, ...]]]:
    """A plugin model's options that other software would ignore: name, value and allowed values.

    Args:
        needs: options besides ``PLAIN_ATTENTION``, with the values that the software allows.
    """
    width = cfg["d_model"] // cfg["num_heads"]
    found = {**cfg, "d_k": cfg["d_k"] or width, "d_v": cfg["d_v"] or width}
    plain = {**PLAIN_ATTENTION, "d_k": width, "d_v": width}
    for name, allowed in ({name: (value,) for name, value in plain.items()} | dict(needs)).items():
        if found[name] not in allowed:
            yield name, found[name], allowed


def to_stock(model: dict[str, Any]) -> Namespace:
    """The arguments of arch ``transformer`` for a plugin model's settings.

    Raises:
        UnsupportedModel: stock fairseq cannot represent the model.
    """
    cfg = completed_settings(model)
    for name, value, allowed in unsupported(cfg, {"layer_norm_eps": _EPSILONS}):
        refuse("stock fairseq", name, value, allowed)
    args = Namespace(arch="transformer")
    for side in ("encoder", "decoder"):
        values = (cfg["d_model"], cfg["d_ff"], cfg["num_heads"], cfg["pre_norm"])
        learned = cfg["positional_encoding"] != "fairseq"
        for name, value in zip(_BOTH_SIDES, (*values, learned), strict=True):
            setattr(args, f"{side}_{name}", value)
        setattr(args, f"{side}_layers", cfg[f"{side}_layers"])
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        setattr(args, name, cfg[name])
    args.max_source_positions = cfg["max_source_positions"]
    args.max_target_positions = cfg["max_target_positions"]
    args.share_all_embeddings = not (cfg["untie_embeddings"] or cfg["untie_source_embedding"])
    args.share_decoder_input_output_embed = not cfg["untie_embeddings"]
    base_architecture(args)
    return args


def with_learned_positions(cfg: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A plugin model's settings with an encoding that stock fairseq has, and the tensors that this
    adds: sinusoids that stock does not compute become a table of learned positions."""
    rows = {"paper": positional_encoding, "t2t": positional_encoding_halves}
    if cfg["positional_encoding"] not in rows:
        return cfg, {}
    tables = {}
    for side, length in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        table = rows[cfg["positional_encoding"]](cfg[length], cfg["d_model"])
        tables[f"{side}.embed_positions.weight"] = pad(table, (0, 0, _BEFORE_THE_FIRST, 0))
    return {**cfg, "positional_encoding": "learned"}, tables


def check_is_ours(settings: dict[str, Any]) -> None:
    """Refuses a registered subclass of the plugin's model, which may compute something else.

    Raises:
        UnsupportedModel: the architecture is not one of the plugin's model.
    """
    kind = built_class(settings.get("_name"))
    if kind not in (None, VaswaniTransformer):
        raise UnsupportedModel(
            f"{settings['_name']} builds class {kind.__name__}, which may compute something else"
            " than the plugin's model: only the latter can be converted"
        )


def is_transformer(args: Namespace) -> bool:
    """Whether a stock checkpoint's arguments are those of fairseq's Transformer."""
    return ARCH_MODEL_REGISTRY.get(_arch(args)) is TransformerModel


def check_is_transformer(args: Namespace) -> None:
    """Refuses other models, even if their options have the same names.

    Raises:
        UnsupportedModel: the architecture is not a Transformer of stock fairseq.
    """
    if not is_transformer(args):
        raise UnsupportedModel(
            f"the plugin does not support --arch {_arch(args)}: only fairseq's transformer and the"
            " architectures derived from it can be converted"
        )


def _arch(args: Namespace) -> str:
    return str(getattr(args, "arch", None) or getattr(args, "_name", "transformer"))


def to_plugin(args: Namespace) -> dict[str, Any]:
    """A plugin model's settings for the arguments of a stock Transformer.

    Raises:
        UnsupportedModel: the plugin cannot represent the model.
    """
    args = Namespace(**vars(args))
    base_architecture(args)
    for name, needed in _STOCK_NEEDS.items():
        value = getattr(args, name, needed)
        if value != needed and not (not value and not needed):
            refuse("the plugin", name, value, (needed,))
    for name in _BOTH_SIDES:
        one, other = (getattr(args, f"{side}_{name}") for side in ("encoder", "decoder"))
        if one != other:
            refuse("the plugin", f"decoder_{name}", other, (one,))
    for name in ("decoder_input_dim", "decoder_output_dim"):
        if getattr(args, name) != args.decoder_embed_dim:
            refuse("the plugin", name, getattr(args, name), (args.decoder_embed_dim,))
    tied = args.share_all_embeddings
    half_tied = args.share_decoder_input_output_embed
    return {
        "_name": "vaswani_transformer",
        "encoder_layers": args.encoder_layers,
        "decoder_layers": args.decoder_layers,
        "d_model": args.encoder_embed_dim,
        "d_ff": args.encoder_ffn_embed_dim,
        "num_heads": args.encoder_attention_heads,
        "d_k": 0,
        "d_v": 0,
        "dropout": args.dropout,
        "label_smoothing": getattr(args, "label_smoothing", VaswaniConfig.label_smoothing),
        "attention_dropout": args.attention_dropout,
        "activation_dropout": args.activation_dropout or getattr(args, "relu_dropout", 0.0),
        "attention_score": "scaled_dot",
        "attention_window": 0,
        "pre_norm": args.encoder_normalize_before,
        "layer_norm_eps": 1e-5,
        "positional_encoding": "learned" if args.encoder_learned_pos else "fairseq",
        "initialisation": "fairseq",
        "untie_embeddings": not tied and not half_tied,
        "untie_source_embedding": not tied and half_tied,
        "checkpoint_activations": bool(getattr(args, "checkpoint_activations", False)),
        "fidelity": "fairseq",
        "max_source_positions": getattr(args, "max_source_positions", None) or MAX_POSITIONS,
        "max_target_positions": getattr(args, "max_target_positions", None) or MAX_POSITIONS,
    }


def refuse(
    side: str, name: str, value: object, allowed: tuple[object, ...], verb: str = "converted"
) -> NoReturn:
    """Raises UnsupportedModel: ``side`` does not support this value of an option."""
    raise UnsupportedModel(
        f"{side} does not support --{name.replace('_', '-')} {value}: only a model with"
        f" {' or '.join(map(str, allowed))} can be {verb}"
    )
