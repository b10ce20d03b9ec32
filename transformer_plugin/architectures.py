"""Registers each preset with fairseq: ``--arch NAME``, and ``model: {_name: NAME}`` in YAML."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import field, make_dataclass
from typing import Any

from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
    register_model,
)

from .combinations import check_names
from .config import MAX_POSITIONS
from .model import VaswaniTransformer  # noqa: F401  (registered as vaswani_transformer)
from .presets import PRESETS, ModelSettings
from .refusal import Refusal


def register_preset(name: str, settings: ModelSettings, model: str = "vaswani_transformer") -> None:
    """Makes ``--arch NAME`` mean the registered ``model`` with ``settings`` as its defaults.

    Raises:
        ValueError: the name is taken, there is no such model, it has no such field, or fairseq
            cannot read the types of its fields.
    """
    if name in MODEL_REGISTRY or name in ARCH_MODEL_REGISTRY:  # fairseq would keep the old one
        raise ValueError(f"{name}: an architecture of this name exists: choose another name")
    if model not in MODEL_DATACLASS_REGISTRY:
        raise ValueError(f"{name}: no model '{model}' is registered with a dataclass")
    parent: Any = MODEL_REGISTRY[model]
    config = MODEL_DATACLASS_REGISTRY[model]
    known = config.__dataclass_fields__
    if any(isinstance(each.type, str) for each in known.values()):
        raise ValueError(
            f"{config.__module__}: remove 'from __future__ import annotations': fairseq reads the"
            f" types of {config.__name__}"
        )
    if unknown := settings.keys() - known.keys():
        raise ValueError(f"{name}: {', '.join(sorted(unknown))}: no such field of {model}")
    changed = [
        (key, known[key].type, field(default=value, metadata=known[key].metadata))
        for key, value in settings.items()
    ]

    @register_model(name, dataclass=make_dataclass(name, changed, bases=(config,)))
    class Preset(parent):
        """The class that fairseq's registry needs for the preset; it builds the parent's model."""

        builds = parent

        @classmethod
        def build_model(cls, cfg: Any, task: Any) -> Any:
            return parent.build_model(cfg, task)

    ARCH_CONFIG_REGISTRY[name] = _complete


def built_class(name: str | None) -> type | None:
    """The class of the model that ``--arch NAME`` builds; None if there is no such name."""
    kind: Any = ARCH_MODEL_REGISTRY.get(name, MODEL_REGISTRY.get(name))
    while kind is not None and "builds" in vars(kind):  # a preset, perhaps of a preset
        kind = kind.builds
    return kind


def _complete(args: Namespace) -> None:
    """Completes the options of fairseq's command line, for any task.

    Raises:
        Refusal: a part of fairseq does not work with the plugin's model.
    """
    parts = ("task", "criterion", "optimizer", "lr_scheduler")
    check_names(args.arch, {name: getattr(args, name, None) for name in parts})
    if args.lr_scheduler == "polynomial_decay" and not args.total_num_update:
        raise Refusal("--lr-scheduler polynomial_decay needs --total-num-update")
    for name in ("max_source_positions", "max_target_positions"):
        if getattr(args, name, 0) is None:
            setattr(args, name, MAX_POSITIONS)  # tasks of language models have no limit


for _name, _settings in PRESETS.items():
    register_preset(_name, _settings)
