"""Writes a plugin model for Hugging Face's transformers.

Its classes FSMT and M2M100 are fairseq's Transformer with post-norm and pre-norm, with fairseq's
tensor names. They compute their positional encodings, and the epsilon of their norms is fixed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from ..dictionaries import dictionary_symbols, languages
from ..stock_settings import UnsupportedModel, completed_settings, unsupported

_SYMBOLS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
# fairseq's rules: stop after as many hypotheses as the beam size; at least one word; no padding.
_SEARCH = {"early_stopping": True, "min_new_tokens": 1, "suppress_tokens": [1], "max_length": 200}
_NEEDS = {"positional_encoding": ("fairseq",), "layer_norm_eps": (1e-5,)}
_REASONS = {
    "positional_encoding": "their encodings are fairseq's: in halves, from position 2",
    "layer_norm_eps": "the epsilon of their norms is always 1e-5",
    "attention_score": "their attention is the scaled dot product",
    "attention_window": "their attention has no window",
    "d_k": "the width of a head is d_model / h there",
    "d_v": "the width of a head is d_model / h there",
}


def write(state: dict[str, Any], folder: Path, data: str | Path) -> str:
    """Writes weights, configuration and vocabularies into an empty folder.

    Returns:
        A note for the user.

    Raises:
        UnsupportedModel: neither class can represent the model.
    """
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise ValueError("safetensors is not installed: pip install safetensors") from None
    cfg = completed_settings(state["cfg"]["model"])
    _check(cfg)
    for side, symbols in dictionary_symbols(state, data).items():
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        name = {"encoder": "vocab-src.json", "decoder": "vocab-tgt.json"}[side]
        (folder / name).write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    tensors = _tensors(state["model"], pre_norm=cfg["pre_norm"])
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    for name, values in (
        ("config.json", _configuration(cfg, state["model"], languages(state, data))),
        ("generation_config.json", {**_SYMBOLS, **_SEARCH}),
    ):
        (folder / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    return (
        "there is no tokenizer: split text with the run's subword model, append </s>, and look up"
        " the subwords in vocab-src.json. The GNMT length penalty is not exported"
    )


def _check(cfg: dict[str, Any]) -> None:
    reasons = [
        f"--{name.replace('_', '-')} {value} ({_REASONS[name]})"
        for name, value, _ in unsupported(cfg, _NEEDS)
    ]
    if cfg["pre_norm"] and (cfg["untie_embeddings"] or cfg["untie_source_embedding"]):
        reasons.append("separate embeddings (M2M100, the pre-norm class, shares one)")
    if reasons:
        raise UnsupportedModel(
            "no class of transformers represents the model exactly; FSMT and M2M100 are closest,"
            f" except for {'; '.join(reasons)}. Use --to ctranslate2"
        )


def _configuration(
    cfg: dict[str, Any], model: dict[str, Tensor], source_and_target: tuple[str, str]
) -> dict[str, Any]:
    sizes = [model[f"{side}.embed_tokens.weight"].size(0) for side in ("encoder", "decoder")]
    if cfg["pre_norm"]:
        kind: dict[str, Any] = {"model_type": "m2m_100", "vocab_size": sizes[0]}
        kind |= {"architectures": ["M2M100ForConditionalGeneration"], "tie_word_embeddings": True}
    else:
        kind = {"model_type": "fsmt", "src_vocab_size": sizes[0], "tgt_vocab_size": sizes[1]}
        kind |= {"architectures": ["FSMTForConditionalGeneration"], "tie_word_embeddings": False}
        kind |= {"langs": list(source_and_target)}
    for side in ("encoder", "decoder"):
        kind[f"{side}_layers"] = cfg[f"{side}_layers"]
        kind[f"{side}_ffn_dim"] = cfg["d_ff"]
        kind[f"{side}_attention_heads"] = cfg["num_heads"]
        kind[f"{side}_layerdrop"] = 0.0
    for name in ("d_model", "dropout", "attention_dropout", "activation_dropout"):
        kind[name] = cfg[name]
    places = max(cfg["max_source_positions"], cfg["max_target_positions"])
    rest = {"activation_function": "relu", "scale_embedding": True, "is_encoder_decoder": True}
    return {**kind, **rest, **_SYMBOLS, "max_position_embeddings": places}


def _tensors(model: dict[str, Tensor], pre_norm: bool) -> dict[str, Tensor]:
    named = {f"model.{name}": tensor for name, tensor in model.items()}
    if pre_norm:  # M2M100 stores its shared embedding once
        named["model.shared.weight"] = named.pop("model.encoder.embed_tokens.weight")
        del named["model.decoder.embed_tokens.weight"]
        del named["model.decoder.output_projection.weight"]
    return {name: tensor.detach().clone().contiguous() for name, tensor in named.items()}
