"""The options that fairseq passes to ``eval``, and the types that their values must have.

``tests/checkpoints/test_hostile_files.py`` compares the list with fairseq's source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .literals import literal, shortened


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _numbers(value: Any) -> bool:
    return _number(value) or (isinstance(value, tuple | list) and all(map(_number, value)))


def _switches(value: Any) -> bool:
    return value is None or _numbers(value)


def _layers(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(
        isinstance(layer, tuple | list) and _numbers(layer) for layer in value
    )


def _words(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(x, str | int | float) for x in value)


def _table(value: Any) -> bool:
    return value is None or isinstance(value, dict)


_KINDS: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "numbers": (
        _numbers,
        (
            *("adam_betas", "adamax_betas", "lamb_betas", "adafactor_eps", "latent_temp"),
            *("adaptive_softmax_cutoff", "adaptive_input_cutoff"),
            *("encoder_kernel_size_list", "decoder_kernel_size_list"),
            *("pipeline_balance", "pipeline_encoder_balance", "pipeline_decoder_balance"),
            *("pipeline_devices", "pipeline_encoder_devices", "pipeline_decoder_devices"),
            "input_layers",
        ),
    ),
    "True, False or a list of them": (
        _switches,
        (
            *("left_pad_source", "left_pad_target", "encoder_glu", "decoder_glu"),
            *("weight_softmax", "encoder_attention", "decoder_attention", "self_attention"),
            *("project_input", "gated_attention", "downsample", "pretrained"),
        ),
    ),
    "a list of tuples of numbers": (
        _layers,
        (
            *("encoder_layers", "decoder_layers", "conv_layers", "character_filters"),
            *("conv_feature_layers", "conv_aggregator_layers"),
        ),
    ),
    "a dictionary": (
        _table,
        (
            *("encoder_xformers_att_config", "decoder_xformers_att_config"),
            *("epoch2lr", "update2lr"),
        ),
    ),
    "a tuple of words": (_words, ("wer_args",)),
}
EVALUATED = {name: (kind, check) for kind, (check, names) in _KINDS.items() for name in names}


def check_evaluated(name: str, text: str) -> None:
    """Checks the text of the option ``name``.

    Raises:
        ValueError: fairseq evaluates this option, and the text is not a literal of the right type.
    """
    if name not in EVALUATED:
        return
    kind, is_right = EVALUATED[name]
    if not is_right(literal(text)):
        raise ValueError(f"{shortened(text)} is not {kind}")
