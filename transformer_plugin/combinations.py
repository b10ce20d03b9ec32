"""Refuses parts of fairseq that do not work with the plugin's model."""

from __future__ import annotations

from typing import Any, cast

from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig, OmegaConf

from .refusal import Refusal

NO_TRANSLATION = (
    "the plugin's model translates, and the task gives it no target sentences: use a task of"
    " translation, or for a language model --arch transformer_lm"
)
_ONE_MODEL_A_PAIR = ("multilingual_translation", "semisupervised_translation")


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
    if OmegaConf.select(whole, "criterion._name") == "label_smoothed_cross_entropy_with_alignment":
        raise Refusal(
            "--criterion label_smoothed_cross_entropy_with_alignment trains the attention of one"
            " architecture, fairseq's --arch transformer_align: use --criterion"
            " vaswani_cross_entropy, whose model gives alignments by its last layer's attention"
        )
    trained = OmegaConf.select(whole, "task._name")
    if trained == "vaswani_translation" and type(task) is TranslationTask:
        raise Refusal(
            "the checkpoint was trained with --task vaswani_translation: add this to the command."
            " By --task translation, which is fairseq's default, its own search would translate,"
            " and leave out the last sentences where their number is no multiple of 8"
        )


def check_task_name(task: str, arch: str) -> None:
    """Checks that the task can build a model that has a dataclass as its configuration.

    Raises:
        Refusal: it cannot.
    """
    if task in _ONE_MODEL_A_PAIR:
        raise Refusal(
            f"--task {task} trains a model a language pair, as fairseq's --arch"
            f" multilingual_transformer: for one --arch {arch} of several languages use --task"
            " translation_multi_simple_epoch"
        )
