"""Lists the settings of a run that differ from the paper, for its log.

Architectures of Tables 2 and 3 are compared with the same model of the paper, all others with the
base model.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any, cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .config import VaswaniConfig, completed, head_widths, is_plugin_model
from .paper_tables import BASE_RUN, RUNS
from .presets import BASE, PRESETS, ModelSettings

# Sections 5.1 to 5.4. fairseq's adam and label_smoothed_cross_entropy are equivalent.
_TRAINING = {
    "criterion._name": ("vaswani_cross_entropy", "label_smoothed_cross_entropy"),
    "optimizer._name": ("vaswani_adam", "adam"),
    "optimizer.adam_betas": ((0.9, 0.98),),
    "optimizer.adam_eps": (1e-9,),
    "optimizer.weight_decay": (0.0,),
    "lr_scheduler._name": ("noam",),
    "lr_scheduler.warmup_updates": (4000,),
    "optimization.lr": (1.0,),
    "optimization.clip_norm": (0.0,),
    "optimization.sentence_avg": (False,),
    "optimization.max_epoch": ("no limit", 0),
    "optimization.stop_time_hours": ("no limit", 0),
    "task.truncate_source": (False,),
    "common.fp16": (False,),
    "common.bf16": (False,),
    "common.amp": (False,),
}
# Settings of a model that are reported elsewhere, or that the paper does not mention.
_NOT_THE_MODEL = {
    *("_name", "fidelity", "label_smoothing", "max_source_positions", "max_target_positions"),
    "checkpoint_activations",  # the same numbers with less memory
}
# About 25,000 tokens in section 5.1. Deviation: fairseq's --max-tokens counts positions of the
# longer side with padding, like the authors' release, which has 8 x 4,096.
_BATCH = range(25_000, 33_000)


def is_paper_model(arch: str) -> bool:
    """Whether an architecture is one of Tables 2 and 3."""
    return arch in RUNS or arch.startswith("vaswani_table3_")


def _papers(arch: str) -> ModelSettings:
    return PRESETS[arch] if is_paper_model(arch) else BASE


def _deviation(name: str, value: Any, paper: Any) -> str:
    return f"{name} {value} (paper: {paper})"


def model_deviations(cfg: Any) -> list[str]:
    """The settings of a model that differ from the paper's, as ``name value (paper: value)``.

    Args:
        cfg: a ``VaswaniConfig``, or its settings in a configuration of fairseq.
    """
    found, default = (
        dict(cast("Mapping[str, Any]", completed(settings))) for settings in (cfg, VaswaniConfig())
    )
    paper = {**default, **_papers(str(found["_name"]))}
    for values in (found, paper):
        values["d_k"], values["d_v"] = head_widths(completed(values))
    return [
        _deviation(name, found[name], paper[name])
        for name in default
        if name not in _NOT_THE_MODEL and str(found[name]) != str(paper[name])
    ]


def training_deviations(cfg: Any) -> list[str]:
    """The settings of a training run that differ from the paper's, without those of its model.

    Args:
        cfg: the whole configuration of ``fairseq-train``.
    """
    arch = str(cfg.model._name)
    smoothing = _papers(arch).get("label_smoothing", VaswaniConfig.label_smoothing)
    expected = {
        **_TRAINING,
        "criterion.label_smoothing": (smoothing,),
        "optimization.max_update": (RUNS.get(arch, BASE_RUN).updates,),
        "lr_scheduler.noam_d_model": (completed(cfg.model).d_model,),
    }
    if cfg.lr_scheduler._name != "noam":
        del expected["optimization.lr"]  # a rate, not a factor on equation (3)
    deviations = []
    for place, allowed in expected.items():
        part, name = place.split(".")
        value = _plain(getattr(cfg[part], name, None))  # None: not an option of this part
        if value is not None and value not in allowed:
            deviations.append(_deviation(part if name == "_name" else name, value, allowed[0]))
    return deviations + _batch_deviations(cfg)


def run_deviations(settings: Mapping[str, Any]) -> list[str]:
    """The settings of a run and its model that differ from the paper's.

    Args:
        settings: from a log or checkpoint of fairseq-train, also of older versions of the plugin.

    Raises:
        ValueError: the model is not the plugin's, or a setting is missing.
    """
    if not is_plugin_model(settings.get("model")):
        raise ValueError("the model is not the plugin's")
    try:
        cfg = OmegaConf.create(dict(settings))
        return model_deviations(cfg.model) + training_deviations(cfg)
    except (KeyError, TypeError, OmegaConfBaseException) as error:
        raise ValueError(f"settings are missing: {error}") from None


def _batch_deviations(cfg: Any) -> list[str]:
    if cfg.dataset.batch_size:
        return [_deviation("batch", f"{cfg.dataset.batch_size} sentences", "about 25,000 tokens")]
    if cfg.dataset.max_tokens is None:  # a program may build a model without batches
        return []
    workers = cfg.distributed_training.distributed_world_size
    batch = cfg.dataset.max_tokens * cfg.optimization.update_freq[-1] * workers
    if batch in _BATCH:
        return []
    return [_deviation("max_tokens x update_freq x workers", f"{batch:,}", "about 25,000")]


def _plain(value: Any) -> Any:
    """The only element of a list, and the tuple that a text such as '(0.9, 0.98)' denotes."""
    if isinstance(value, str):
        try:
            return literal_eval(value)
        except (SyntaxError, ValueError):
            return value
    return value[0] if isinstance(value, Sequence) and len(value) == 1 else value


def decoding_deviations(choices: Mapping[str, Any], paper: Mapping[str, Any]) -> list[str]:
    """The ``choices`` that differ from those in ``paper``."""
    return [
        _deviation(name, choices[name], paper[name])
        for name in paper
        if choices[name] != paper[name]
    ]
