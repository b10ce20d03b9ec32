"""The defaults of ``--fidelity`` that differ from the paper's.

The paper's values are stated where each option is declared. An explicit option overrides
``--fidelity``, on the command line and in YAML.
"""

from __future__ import annotations

from typing import Any

from omegaconf import II, DictConfig, OmegaConf

FIDELITIES: dict[str, dict[str, Any]] = {
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


def by_fidelity(name: str, paper: float | str) -> Any:
    """The default of a field whose value depends on ``--fidelity``.

    Args:
        name: the name of the field.
        paper: the paper's value.
    """
    return II(f"by_fidelity:{name},{paper}")


def _chosen(name: str, paper: Any, *, _parent_: DictConfig, _root_: DictConfig) -> Any:
    """The default of a field, by ``fidelity`` in the same section, or else the model's or, if the
    model is not the plugin's, the task's."""
    fidelity = (
        _parent_.get("fidelity")
        or OmegaConf.select(_root_, "model.fidelity")
        or OmegaConf.select(_root_, "task.fidelity")
    )
    return FIDELITIES[str(fidelity or "paper")].get(name, paper)


OmegaConf.register_new_resolver("by_fidelity", _chosen)
