"""What --fidelity sets at once: each way's choices where they are not the defaults.

The defaults, stated where each option is declared, are the paper's. An option of its own
overrides what ``--fidelity`` says.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from .config import VaswaniConfig

FIDELITIES = {
    "paper": {},
    "t2t": {"positional_encoding": "t2t"},  # the authors' first release
    "fairseq": {
        "positional_encoding": "fairseq",
        "initialisation": "fairseq",
        "layer_norm_eps": 1e-5,
        "adam_eps": 1e-8,
        "length_penalty": "fairseq",
        "stop_rule": "first-finished",
        "max_len_a": 0.0,
    },
}

_CHOICES = (
    *("positional_encoding", "initialisation", "layer_norm_eps", "pre_norm"),
    *("attention_dropout", "activation_dropout", "attention_score", "attention_window"),
    *("untie_embeddings", "untie_source_embedding"),
)


def departures(cfg: Any) -> list[str]:
    """Each choice of a model that is not the paper's, as ``name value (paper: value)``."""
    defaults = {f.name: f.default for f in fields(VaswaniConfig) if f.default is not MISSING}
    return [
        f"{name} {getattr(cfg, name)} (paper: {defaults[name]})"
        for name in _CHOICES
        if str(getattr(cfg, name)) != str(defaults[name])
    ]
