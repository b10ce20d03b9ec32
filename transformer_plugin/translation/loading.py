"""Loads models, dictionaries and subword models as the options of a command say."""

from __future__ import annotations

import argparse
import contextlib
import io
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import BaseFairseqModel

from .. import components  # noqa: F401  (registers the task)
from ..checkpoints.fairseq_loading import protect_loading
from ..checkpoints.sections import own_task, saved_options
from ..decode_precision import fastest_on_gpu, in_precision
from ..languages import check_languages
from ..model import VaswaniTransformer
from ..prepared_data import prepared_data
from ..search_options import check_options
from .arguments import add_model_arguments, add_n_best_arguments, add_search_arguments
from .subwords import Prepared, Subwords, load_subwords, target_folder
from .translator import Translator
from .unknown_words import read_replacements

# Options that the command itself uses, and what to do in Python.
_OF_THE_COMMAND = {
    "seed": "call torch.manual_seed",
    "prefix": "give prefixes to translate or n_best",
}
_GLOBAL_STATE = threading.Lock()  # standard error, and hydra's, which fairseq uses


@dataclass(frozen=True)
class Loaded:
    """Loaded models with all that is needed to use them.

    Attributes:
        cfg: the configuration of fairseq-interactive.
        source: the subword model for source sentences.
        target: the subword model for target sentences, to score them.
    """

    cfg: Any
    task: tasks.FairseqTask
    models: list[BaseFairseqModel]
    source: Subwords
    target: Subwords


def load_models(args: argparse.Namespace) -> Loaded:
    """Loads the models that the options of ``add_model_arguments`` name.

    Raises:
        FileNotFoundError: data, checkpoint or subword model is missing.
        ValueError: one of them is damaged or does not fit the others, or the device does not
            support the precision.
    """
    run, binarised = args.data, prepared_data(args.data) / "data-bin"
    if binarised.is_dir():
        args.data = binarised
    else:  # data-bin itself was named
        run = run.absolute().parent  # "." has none
    if args.path is None:
        if not args.data.is_dir():
            raise FileNotFoundError(f"{args.data}: no such folder; expected a run's, or data-bin")
        args.path = str(run / "checkpoints" / "averaged.pt")
    for path in map(Path, utils.split_paths(args.path)):
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such checkpoint; {_remedy(path)}")
    protect_loading()
    cfg = _configuration(args)
    task = tasks.setup_task(cfg.task)
    languages = task.cfg.source_lang, task.cfg.target_lang
    prepared = Prepared.beside(args.data)
    folder, lowercase = args.subwords or prepared.subwords, args.lowercase or prepared.lowercase
    one = task.source_dictionary == task.target_dictionary  # a joint model, whatever lies beside it
    folders = folder, folder if one else target_folder(folder)
    source, target = (
        load_subwords(*place, lowercase) for place in zip(folders, languages, strict=True)
    )
    models = [_load_model(path, task) for path in utils.split_paths(args.path)]
    precision = getattr(task.cfg, "decode_precision", None)
    given = getattr(args, "decode_precision", None)
    if given not in (None, "fp32") and not all(isinstance(m, VaswaniTransformer) for m in models):
        raise ValueError(
            f"{args.path}: --decode-precision is for models of the plugin: convert the checkpoint"
            " first (transformer-plugin convert --to plugin)"
        )
    for model in models:
        if torch.cuda.is_available() and not args.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
        if precision and isinstance(model, VaswaniTransformer):
            in_precision(model, precision)  # now, so that scores do not change with a search
    if precision:  # a second conversion would disturb threads that search
        task.cfg.decode_precision = None
    return Loaded(cfg, task, models, source, target)


def _remedy(missing: Path) -> str:
    """What to do about a checkpoint that is missing."""
    known = sorted(path.name for path in missing.parent.glob("*.pt"))
    if known:
        return f"the folder has {', '.join(known)}"
    return "train and average first (recipes/run.sh EXPERIMENT --to average), or name another"


def load_translator(args: argparse.Namespace) -> Translator:
    """The translator for the options of ``add_model_arguments`` and ``add_search_arguments``, and
    of ``add_n_best_arguments`` where they are given.

    Raises:
        FileNotFoundError: see ``load_models``.
        ValueError: see ``load_models``, or an option has an invalid value.
    """
    number = 1 if getattr(args, "nbest", None) is None else args.nbest
    if getattr(args, "sampling", False):
        args.beam = number
    check_options(vars(args) | {"nbest": number}, None)
    if number > args.beam:
        raise ValueError(f"--nbest must be at most --beam, {args.beam}")
    replacements = read_replacements(getattr(args, "replace_unk", None))
    loaded = load_models(args)
    generator = loaded.task.build_generator(loaded.models, loaded.cfg.generation)
    return Translator(
        *(loaded.task, loaded.models, generator, loaded.source, loaded.target),
        part_length=args.part_length,
        replacements=replacements,
    )


def build_translator(data: Path | str, path: Path | str, **options: Any) -> Translator:
    """A translator, for use in Python.

    Args:
        data: binarised data with its dictionaries.
        path: checkpoint; several, A.pt:B.pt: an ensemble.
        options: those of ``transformer-plugin translate``, such as ``beam=8`` or
            ``print_alignment=True``.

    Raises:
        FileNotFoundError: see ``load_models``.
        ValueError: see ``load_translator``, or there is no such option.
    """
    return load_translator(arguments_of(data, path, **options))


def arguments_of(data: Path | str, path: Path | str, **options: Any) -> argparse.Namespace:
    """The arguments of ``transformer-plugin translate``; see ``build_translator``."""
    parser = argparse.ArgumentParser()
    for add in (add_model_arguments, add_search_arguments, add_n_best_arguments):
        add(parser)
    args = parser.parse_args([str(data), "--path", str(path)])
    types: dict[str, Any] = {
        action.dest: action.type or str for action in parser._actions if action.nargs != 0
    }
    flags = {action.dest: action.const for action in parser._actions if action.nargs == "?"}
    for name, remedy in _OF_THE_COMMAND.items():
        if name in options:
            raise ValueError(f"'{name}' is an option of the command only: {remedy}")
    for name, value in options.items():
        if not hasattr(args, name):
            known = ", ".join(vars(args))
            raise ValueError(f"there is no option '{name}': expected one of {known}")
        if name in flags and isinstance(value, bool):
            value = flags[name] if value else None  # the option without a value, or none
        setattr(args, name, types[name](value) if isinstance(value, str) else value)
    return args


def _load_model(path: str, task: tasks.FairseqTask) -> BaseFairseqModel:
    with _GLOBAL_STATE:
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    if name := own_task(state):
        raise ValueError(
            f"{path}: trained with --task {name}, a task of your own, which may change sentences or"
            " model: use fairseq-generate or fairseq-interactive with its --user-dir"
        )
    trained = saved_options(state, "task")
    check_languages(path, trained, task.cfg.source_lang, task.cfg.target_lang)
    (model,), _ = checkpoint_utils.load_model_ensemble([path], task=task, state=state)
    return model


def _configuration(args: argparse.Namespace) -> Any:
    """The configuration of fairseq-interactive."""
    words = [str(args.data), "--task", "vaswani_translation", "--path", args.path]
    is_open = getattr(args, "decode_precision", "") is None  # an option of commands that search
    if is_open and torch.cuda.is_available() and not args.cpu:
        words.append(f"--decode-precision={fastest_on_gpu()}")
    names = (
        "beam",
        "lenpen",
        "max_len_own",
        "source_lang",
        "target_lang",
        "decode_precision",
        "nbest",
        "sampling_topk",
        "sampling_topp",
        "temperature",
        "lm_path",
        "lm_weight",
    )
    for name in names:
        if (value := getattr(args, name, None)) is not None:
            words += [f"--{name.replace('_', '-')}={value}"]
    words += [
        f"--{name}"
        for name in ("cpu", "sampling", "only-trees")
        if getattr(args, name.replace("-", "_"), False)
    ]
    if getattr(args, "print_alignment", False) or getattr(args, "replace_unk", None) is not None:
        words.append("--print-alignment")
    parser = options.get_interactive_generation_parser()
    said = io.StringIO()
    try:
        with _GLOBAL_STATE, contextlib.redirect_stderr(said):
            given = options.parse_args_and_arch(parser, words)
    except SystemExit:  # argparse has printed its usage and then one line
        raise ValueError(said.getvalue().strip().rpartition(" error: ")[2]) from None
    with _GLOBAL_STATE, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from fairseq's use of hydra
        return convert_namespace_to_omegaconf(given)
