"""Converts the settings of loss, optimizer and schedule between the plugin and stock fairseq."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.models.transformer.transformer_legacy import base_architecture

from ...config import MAX_POSITIONS
from ...fidelity import FIDELITIES
from ..declared_options import declared_options
from ..sections import section
from ..stock_settings import completed_settings

Section = dict[str, Any]

_LOSSES = {"label_smoothed_cross_entropy", "cross_entropy"}
_CLASSES = {  # in optimizer_history: from stock to the plugin
    "LabelSmoothedCrossEntropyCriterion": "VaswaniCrossEntropy",
    "CrossEntropyCriterion": "VaswaniCrossEntropy",
    "FairseqAdam": "VaswaniAdam",
}
_STOCK_CLASSES = {  # from the plugin to stock
    "VaswaniCrossEntropy": "LabelSmoothedCrossEntropyCriterion",
    "VaswaniAdam": "FairseqAdam",
}
_PRECISIONS = ("fp16", "bf16", "amp", "memory_efficient_fp16", "memory_efficient_bf16")
_NAMES = ("criterion_name", "optimizer_name")
_AS_TUPLE = str.maketrans("[]", "()")
_SECTIONS = ("criterion", "optimizer", "lr_scheduler")
_ELSEWHERE = {"lr", "d_model"}  # options of these sections that have another place in the command
_COMMON = {"label_smoothing", "adam_betas", "adam_eps", "weight_decay", "warmup_updates"}


def training_sections(cfg: dict[str, Any], to: str) -> dict[str, Section]:
    """The sections of ``cfg`` that differ on the other side.

    fairseq-validate builds the loss from them, and ``resume_flags`` the flags that resume training.
    """
    old = {name: section(cfg, name) for name in _SECTIONS}
    sections = {}
    if to == "stock":
        if old["criterion"].get("_name") == "vaswani_cross_entropy":
            unknown = {"report_accuracy": False, "ignore_prefix_size": 0}
            kept = _only(old["criterion"], "label_smoothing", "sentence_avg")
            sections["criterion"] = {**unknown, **kept, "_name": "label_smoothed_cross_entropy"}
        if old["optimizer"].get("_name") == "vaswani_adam":
            adam = {"fp16_adam_stats": False, "use_old_adam": False, "tpu": False}
            kept = _only(old["optimizer"], "adam_betas", "adam_eps", "weight_decay", "lr")
            kept["adam_eps"] = kept.get("adam_eps") or 1e-9
            sections["optimizer"] = {**adam, **kept, "_name": "adam"}
        if old["lr_scheduler"].get("_name") == "noam":
            sections["lr_scheduler"] = _inverse_sqrt(old["lr_scheduler"])
    else:
        if old["criterion"].get("_name") in _LOSSES:
            loss = {"label_smoothing": 0.0, **_only(old["criterion"], "label_smoothing")}
            kept = _only(old["criterion"], "sentence_avg")
            sections["criterion"] = {**loss, **kept, "_name": "vaswani_cross_entropy"}
        if old["optimizer"].get("_name") == "adam":
            kept = _only(old["optimizer"], "adam_betas", "adam_eps", "weight_decay", "lr")
            if "adam_betas" in kept:  # a list where the run had stock's default
                kept["adam_betas"] = str(kept["adam_betas"]).translate(_AS_TUPLE)
            sections["optimizer"] = {**kept, "_name": "vaswani_adam"}
    return sections


def renamed_history(history: list[Section] | None, to: str) -> list[Section]:
    """The optimizer history with the other side's class names. fairseq-train loads an optimizer's
    state only if they match."""
    names = _STOCK_CLASSES if to == "stock" else _CLASSES
    return [
        entry | {key: names.get(entry[key], entry[key]) for key in _NAMES if key in entry}
        for entry in history or []
    ]


def resume_flags(cfg: dict[str, Any], to: str) -> list[str]:
    """The flags with which fairseq-train resumes from a converted checkpoint."""
    flags = _model_flags(cfg["model"], to)
    for name in _PRECISIONS:
        flags += _flag(name, section(cfg, "common").get(name))
    if to == "plugin":
        flags += ["--task", section(cfg, "task").get("_name", "vaswani_translation")]
    for kind in _SECTIONS:
        chosen = section(cfg, kind)
        if "_name" not in chosen:
            continue
        flags += _flag(kind, chosen["_name"])
        declared = declared_options(kind, chosen["_name"])  # None of another --user-dir's
        for name in sorted(declared.names - _ELSEWHERE if declared else _COMMON):
            flags += _flag(name, chosen.get(name))
        if kind == "lr_scheduler":
            rates = chosen.get("lr") or []  # one, or one for each epoch
            flags += ["--lr", ",".join(map(str, rates))] if rates else []
    return flags


def _model_flags(model: Any, to: str) -> list[str]:
    """The architecture, and each setting that differs from its default."""
    if to == "stock":
        widths = _only(vars(model), "encoder_embed_dim", "encoder_ffn_embed_dim")
        defaults = Namespace(**widths)
        base_architecture(defaults)
        usual: Section = vars(defaults) | {"encoder_embed_dim": 512, "encoder_ffn_embed_dim": 2048}
        flags, given = ["--arch", "transformer"], vars(model)
        usual |= dict.fromkeys(("max_source_positions", "max_target_positions"), MAX_POSITIONS)
        hidden = {"arch", "_name"}
    else:
        flags = ["--arch", "vaswani_base", "--fidelity", "fairseq"]
        usual, given = completed_settings(FIDELITIES["fairseq"]), model
        hidden = {"_name", "fidelity", "label_smoothing"}  # the last is an option of the loss too
    for name, value in given.items():
        if name not in hidden and value != usual.get(name):
            flags += _flag(name, value)
    return flags


def _flag(name: str, value: object) -> list[str]:
    if value is None or value is False:
        return []
    option = f"--{name.replace('_', '-')}"
    return [option] if value is True else [option, str(value)]


def _inverse_sqrt(noam: Section) -> Section:
    """fairseq's schedule with the peak of noam. It lags one update behind noam."""
    width = noam.get("noam_d_model") or noam["d_model"]
    peak = noam["lr"][0] * width**-0.5 * noam["warmup_updates"] ** -0.5
    kept = _only(noam, "warmup_updates")
    return {**kept, "_name": "inverse_sqrt", "warmup_init_lr": -1.0, "lr": [peak]}


def _only(section: Section, *names: str) -> Section:
    return {name: section[name] for name in names if name in section}
