"""Writes a plugin model as a CTranslate2 model directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ...modules.positional_encoding import positional_encoding, positional_encoding_halves
from ..dictionaries import dictionary_symbols
from ..stock_settings import completed_settings, refuse, unsupported

QUANTIZATIONS = (
    *("int8", "int8_float32", "int8_float16", "int8_bfloat16"),
    *("int16", "float16", "bfloat16", "float32"),
)
# Table length for encodings without a maximum: four times CTranslate2's default limit of tokens per
# sentence. Its error message for longer sentences gives the limit.
_LONGEST = 4096


def build_spec(state: dict[str, Any], data: str | Path) -> Any:
    """A ``ctranslate2.specs.TransformerSpec`` with the tensors of a plugin checkpoint.

    Args:
        data: a folder with ``dict.SOURCE.txt`` and ``dict.TARGET.txt``.

    Raises:
        UnsupportedModel: CTranslate2 cannot represent the model.
        CheckpointError: the dictionaries are not the model's.
    """
    from ctranslate2 import specs

    cfg = completed_settings(state["cfg"]["model"])
    for name, value, allowed in unsupported(cfg, {}):
        refuse("CTranslate2", name, value, allowed, "exported")
    spec = specs.TransformerSpec.from_config(
        (cfg["encoder_layers"], cfg["decoder_layers"]), cfg["num_heads"], pre_norm=cfg["pre_norm"]
    )
    model = state["model"]
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embedding = part.embeddings[0] if side == "encoder" else part.embeddings
        embedding.weight = _array(model[f"{side}.embed_tokens.weight"])
        part.scale_embeddings = True
        part.position_encodings.encodings = _array(_positions(cfg, model, side))
        if cfg["pre_norm"]:
            _norm(part.layer_norm, model, f"{side}.layer_norm")
        for i, layer in enumerate(part.layer):
            _fill_layer(layer, model, f"{side}.layers.{i}", with_memory=side == "decoder")
    spec.decoder.projection.weight = _array(model["decoder.output_projection.weight"])
    symbols = dictionary_symbols(state, data)
    spec.register_source_vocabulary(symbols["encoder"])
    spec.register_target_vocabulary(symbols["decoder"])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.config.decoder_start_token = "</s>"
    spec.config.add_source_bos = False
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = cfg["layer_norm_eps"]
    return spec


def _positions(cfg: dict[str, Any], model: dict[str, Tensor], side: str) -> Tensor:
    """The encodings of a sentence's positions, starting with its first token."""
    kind, after_padding = cfg["positional_encoding"], 2  # fairseq's padding is symbol 1
    if kind == "learned":
        return model[f"{side}.embed_positions.weight"][after_padding:]
    if kind == "paper":
        return positional_encoding(_LONGEST, cfg["d_model"])
    first = after_padding if kind == "fairseq" else 0
    return positional_encoding_halves(first + _LONGEST, cfg["d_model"])[first:]


def _fill_layer(layer: Any, model: dict[str, Tensor], name: str, with_memory: bool) -> None:
    attention = layer.self_attention
    _linear(attention.linear[0], model, *(f"{name}.self_attn.{x}_proj" for x in "qkv"))
    _linear(attention.linear[1], model, f"{name}.self_attn.out_proj")
    _norm(attention.layer_norm, model, f"{name}.self_attn_layer_norm")
    if with_memory:
        attention = layer.attention
        _linear(attention.linear[0], model, f"{name}.encoder_attn.q_proj")
        _linear(attention.linear[1], model, *(f"{name}.encoder_attn.{x}_proj" for x in "kv"))
        _linear(attention.linear[2], model, f"{name}.encoder_attn.out_proj")
        _norm(attention.layer_norm, model, f"{name}.encoder_attn_layer_norm")
    _linear(layer.ffn.linear_0, model, f"{name}.fc1")
    _linear(layer.ffn.linear_1, model, f"{name}.fc2")
    _norm(layer.ffn.layer_norm, model, f"{name}.final_layer_norm")


def _linear(spec: Any, model: dict[str, Tensor], *names: str) -> None:
    spec.weight = np.concatenate([_array(model[f"{name}.weight"]) for name in names])
    spec.bias = np.concatenate([_array(model[f"{name}.bias"]) for name in names])


def _norm(spec: Any, model: dict[str, Tensor], name: str) -> None:
    spec.gamma, spec.beta = _array(model[f"{name}.weight"]), _array(model[f"{name}.bias"])


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().contiguous().numpy()


def write(state: dict[str, Any], folder: Path, data: str | Path, quantization: str | None) -> str:
    """Writes the model's files into an empty folder.

    Returns:
        A note for the user.
    """
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        raise ValueError("CTranslate2 is not installed: pip install ctranslate2") from None
    spec = build_spec(state, data)
    longest = len(spec.encoder.position_encodings.encodings)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    return (
        "the GNMT length penalty is not exported: CTranslate2 has only len^alpha. With"
        " length_penalty=alpha, patience=1 it searches like --length-penalty fairseq --stop-rule"
        " first-finished. It truncates sources to max_input_length tokens (default 1024), and"
        f" refuses sources of more than {longest}"
    )
