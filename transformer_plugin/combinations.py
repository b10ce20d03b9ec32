"""Refuses parts of fairseq, and subclasses, that do not work with the plugin's model."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fairseq.criterions import CRITERION_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.optim.lr_scheduler import LR_SCHEDULER_REGISTRY
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig, OmegaConf

from .refusal import Refusal

NO_TRANSLATION = (
    "the plugin's model translates, but the task gives it no target sentences: use a translation"
    " task, or for a language model --arch transformer_lm"
)
# fairseq's parts that work with the plugin's model. The others are for other kinds of models.
WORKING: dict[str, tuple[str, ...]] = {
    "task": (
        "translation",
        "translation_multi_simple_epoch",
        "online_backtranslation",
        "denoising",
        "multilingual_denoising",
    ),
    "criterion": (
        "cross_entropy",
        "label_smoothed_cross_entropy",
        "label_smoothed_cross_entropy_with_rdrop",
    ),
    "optimizer": (
        *("adadelta", "adafactor", "adagrad", "adam", "adamax", "cpu_adam", "lamb"),
        *("nag", "sgd"),
    ),
    "lr_scheduler": (
        *("cosine", "fixed", "inverse_sqrt", "manual", "polynomial_decay"),
        *("reduce_lr_on_plateau", "step", "tri_stage", "triangular"),
    ),
}
_REGISTRIES = {
    "task": TASK_REGISTRY,
    "criterion": CRITERION_REGISTRY,
    "optimizer": OPTIMIZER_REGISTRY,
    "lr_scheduler": LR_SCHEDULER_REGISTRY,
}
_ONE_MODEL_A_PAIR = (
    "it trains one model per language pair, like --arch multilingual_transformer: for one model"
    " of several languages use translation_multi_simple_epoch"
)
_INSTEAD = {
    "language_modeling": NO_TRANSLATION,
    "masked_lm": NO_TRANSLATION,
    "multilingual_translation": _ONE_MODEL_A_PAIR,
    "semisupervised_translation": _ONE_MODEL_A_PAIR,
    "label_smoothed_cross_entropy_with_alignment": "it trains the attention of one architecture,"
    " --arch transformer_align: use vaswani_cross_entropy; its model gives alignments from its last"
    " layer's attention",
    "translation_from_pretrained_bart": "it does not run in this release of fairseq: use"
    " translation with --finetune-from-model",
    "translation_from_pretrained_xlm": "it does not run in this release of fairseq: use"
    " translation with --finetune-from-model",
}
_OWN = {
    "task": "vaswani_translation",
    "criterion": "vaswani_cross_entropy",
    "optimizer": "vaswani_adam",
    "lr_scheduler": "noam",
}
_PACKAGES = {"cpu_adam": "deepspeed", "lamb": "apex"}


def check_combination(cfg: Any, task: FairseqTask) -> None:
    """Checks the task, and the configuration that contains ``cfg``, the model's settings.

    Raises:
        Refusal: a part of it does not work with the model.
    """
    if isinstance(task, LanguageModelingTask | MaskedLMTask):
        raise Refusal(NO_TRANSLATION)
    if not isinstance(cfg, DictConfig):
        return
    whole = cast("DictConfig", cfg._get_root())
    names = {kind: OmegaConf.select(whole, f"{kind}._name") for kind in _REGISTRIES}
    check_names(cfg.get("_name") or "vaswani_transformer", names)
    if names["task"] == "vaswani_translation" and type(task) is TranslationTask:
        raise Refusal(
            "the checkpoint was trained with --task vaswani_translation: add this to the command."
            " With --task translation, the default, fairseq's own search would translate, and skip"
            " the last sentences if their number is not a multiple of 8"
        )


def check_overrides(kind: type, base: Any, not_called: Sequence[str], method: str) -> None:
    """Checks that a subclass of ``base``, the encoder or decoder, overrides none of the methods
    ``not_called`` without ``method``, which training and search both call.

    Raises:
        TypeError: it does.
    """
    own: Any = kind
    if getattr(own, method) is not getattr(base, method):
        return
    for name in not_called:
        if getattr(own, name) is not getattr(base, name):
            raise TypeError(
                f"{kind.__name__} overrides {name}, which training and search do not both call:"
                f" override {method}, which {name} calls too"
            )


def check_names(arch: str, chosen: Mapping[str, str | None]) -> None:
    """Checks that fairseq's parts work with an architecture of the plugin.

    Args:
        chosen: the names of the task, the criterion and so on. Only fairseq's own parts are
            checked.

    Raises:
        Refusal: one of them does not work with it.
    """
    for kind, name in chosen.items():
        part = _REGISTRIES[kind].get(name or "")
        if name is None or part is None or not part.__module__.startswith("fairseq."):
            continue
        option = f"--{kind.replace('_', '-')} {name}"
        if name not in WORKING[kind]:
            known = f"it is for other models: use {_OWN[kind]}, or {', '.join(WORKING[kind])}"
            raise Refusal(f"{option} does not work with {arch}: {_INSTEAD.get(name, known)}")
        package = _PACKAGES.get(name)
        if package and not importlib.util.find_spec(package):
            raise Refusal(f"{option} needs {package}, which is not installed: use {_OWN[kind]}")
