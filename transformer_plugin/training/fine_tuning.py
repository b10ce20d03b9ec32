"""Checks before a model is fine-tuned: ``--finetune-from-model``."""

from __future__ import annotations

import functools
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer

from ..checkpoint_error import CheckpointError
from ..checkpoints.safe_loading import load
from ..checkpoints.sections import saved_options
from ..checkpoints.stock_settings import is_transformer, to_plugin
from ..config import CHANGEABLE_FIELDS, is_plugin_model
from ..dictionary_file import load_dictionary
from .last_good import saved_after
from .same_run import resumes

_REMEDY = (
    "prepare the data with the base model's dictionaries: BASE=CHECKPOINT recipes/prepare.sh, or"
    " fairseq-preprocess --srcdict --tgtdict"
)


def check_bases_of_all_tasks() -> None:
    """Makes fairseq's own trainer call ``check_base`` too, for the plugin's models."""
    load_checkpoint = Trainer.load_checkpoint

    @functools.wraps(load_checkpoint)
    def checking(self: Trainer, filename: str, *rest: Any, **options: Any) -> Any:
        if (
            type(self) is Trainer
            and self.data_parallel_rank == 0
            and is_plugin_model(self.cfg.model)
        ):
            check_base(filename, self.cfg, self.task)
        return load_checkpoint(self, filename, *rest, **options)

    Trainer.load_checkpoint = checking


def check_base(path: str, cfg: Any, task: FairseqTask) -> None:
    """Checks a checkpoint that is about to be loaded, if the run fine-tunes another model.

    Args:
        path: the base model's checkpoint, or the run's own, to resume.
        cfg: the settings of the command.

    Raises:
        CheckpointError: the file has no model, or see the functions below.
    """
    base = cfg.checkpoint.finetune_from_model
    if base is None or not Path(path).is_file():
        return
    state = load(path, mmap=True)  # only names, shapes and settings are read
    if not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path}: no model in it: give a checkpoint of fairseq-train")
    if path == base:
        check_none_was_saved(cfg.checkpoint)
        check_model(path, state, cfg.model)
        check_words(path, state, task)
    else:
        check_origin(path, state, base)


def check_none_was_saved(settings: Any) -> None:
    """Checks that the run has no checkpoint yet; without ``checkpoint_last.pt``, fairseq would
    start from the base model again.

    Args:
        settings: the section ``checkpoint`` of the command's settings.

    Raises:
        CheckpointError: it has one.
    """
    last = Path(settings.save_dir) / "checkpoint_last.pt"
    if resumes(settings) and (saved := saved_after(last)):
        raise CheckpointError(
            f"{last}: missing, but the run has saved {saved[1].name}: copy it to {last.name} to"
            " resume, or remove it to start anew"
        )


def check_model(path: str, state: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Checks that a checkpoint's model has the same settings, including those that do not show in
    the shapes of its tensors, such as the number of heads.

    Args:
        path: the checkpoint's path.
        state: its contents, of the plugin's model or of a stock Transformer.
        own: settings of the model to train.

    Raises:
        CheckpointError: a setting differs, or the plugin cannot represent the stock model.
    """
    base = saved_options(state, "model")
    if not base or not is_plugin_model(own):
        return
    remedy = "give the same --arch (ARCH of a recipe) and flags"
    if not is_plugin_model(base):
        args = Namespace(**base)
        if not is_transformer(args):
            return  # the names of its tensors differ
        try:
            base = to_plugin(args)
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None
        remedy = (
            f"give --fidelity fairseq and the flags that transformer-plugin convert {path} OUT.pt"
            " --to plugin prints"
        )
    names = (base.keys() & own.keys()) - CHANGEABLE_FIELDS - {"_name"}
    differ = sorted(name for name in names if str(base[name]) != str(own[name]))
    if differ:
        theirs = ", ".join(f"{name} {base[name]}" for name in differ)
        ours = ", ".join(f"{name} {own[name]}" for name in differ)
        raise CheckpointError(
            f"{path}: its model has {theirs}, not {ours}: {remedy}, or start a new run in another"
            " --save-dir (RUNS of a recipe)"
        )


def check_words(path: str, state: Mapping[str, Any], task: FairseqTask) -> None:
    """Checks that the data and the base model have the same vocabulary: always its size, and each
    word if the base model's data still exists.

    Args:
        path: the base model's checkpoint.
        state: its contents.

    Raises:
        CheckpointError: the vocabularies differ.
    """
    if not isinstance(task, TranslationTask):
        return
    base = saved_options(state, "task")
    for side, language in (("encoder", "source_lang"), ("decoder", "target_lang")):
        words = state["model"].get(f"{side}.embed_tokens.weight")
        dictionary = task.source_dictionary if side == "encoder" else task.target_dictionary
        if words is None:
            continue
        if len(words) != len(dictionary):
            raise CheckpointError(
                f"{path}: its {side} has {len(words):,} words, the data has {len(dictionary):,}:"
                f" {_REMEDY}"
            )
        folder = (utils.split_paths(base.get("data") or "") or [""])[0]
        file = Path(folder) / f"dict.{base.get(language)}.txt"
        if file.is_file():
            _check_each(file, load_dictionary(file), dictionary)


def _check_each(file: Path, base: Dictionary, own: Dictionary) -> None:
    for number, (theirs, ours) in enumerate(zip(base.symbols, own.symbols, strict=False)):
        if theirs != ours:
            raise CheckpointError(
                f"word {number:,} of the base model is '{theirs}' ({file}), that of the data"
                f" '{ours}': {_REMEDY}"
            )


def check_origin(path: str, state: Mapping[str, Any], base: str) -> None:
    """Checks that the run to resume is a fine-tuning run.

    Args:
        path: its last checkpoint.
        state: the contents of that checkpoint.
        base: the checkpoint to fine-tune.

    Raises:
        CheckpointError: the run did not start from another model.
    """
    settings = (state.get("cfg") or {}).get("checkpoint") or {}
    if settings.get("finetune_from_model") is None:
        raise CheckpointError(
            f"{path}: this run would be resumed, but it did not start from {base}: give another"
            " --save-dir (RUNS of a recipe)"
        )
