"""Loads models, dictionaries and subword models as the options of a command say."""

from __future__ import annotations

import argparse
import math
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
from ..decode_precision import PRECISIONS
from ..languages import check_languages
from .subwords import Prepared, Subwords, load_subwords
from .translator import Translator
from .unknown_words import read_replacements


def add_model_arguments(parser: argparse.ArgumentParser, data: str = "data") -> None:
    """Adds the options for models and data; ``data`` is an argument or an option, ``--data``."""
    required: dict[str, Any] = {"required": True} if data.startswith("--") else {}
    parser.add_argument(data, type=Path, help="binarised data with its dictionaries", **required)
    parser.add_argument("--path", required=True, help="checkpoint; several, A.pt:B.pt: an ensemble")
    parser.add_argument("-s", "--source-lang", help="default: that of the data")
    parser.add_argument("-t", "--target-lang", help="default: that of the data")
    parser.add_argument(
        "--subwords",
        type=Path,
        help="folder of the subword model; default:"
        " subwords/ beside the data, where recipes/prepare.sh puts it",
    )
    parser.add_argument(
        "--lowercase",
        action="store_true",
        help="convert the text to lower case; default: as in clean/report.json beside the data",
    )
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the search."""
    parser.add_argument("--beam", type=int, default=4, help="section 6.1 (default %(default)s)")
    parser.add_argument(
        "--lenpen",
        type=float,
        default=0.6,
        help="length penalty alpha, section 6.1 (default %(default)s)",
    )
    parser.add_argument("--decode-precision", choices=PRECISIONS, help="default: the checkpoint's")
    parser.add_argument(
        "--part-length",
        type=int,
        default=500,
        metavar="SUBWORDS",
        help="a longer line is translated in parts (default %(default)s)",
    )


def add_n_best_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for several translations of a sentence, alignments and language models."""
    parser.add_argument(
        "--nbest",
        type=int,
        metavar="N",
        help="print the N best translations of"
        " each line, as LINE ||| text ||| score; at most --beam",
    )
    parser.add_argument(
        "--sampling",
        action="store_true",
        help="draw translations at random"
        " instead of searching for the best, --nbest of them (default 1)",
    )
    parser.add_argument(
        "--sampling-topk",
        type=int,
        metavar="K",
        default=-1,
        help="draw from the K likeliest tokens",
    )
    parser.add_argument(
        "--sampling-topp",
        type=float,
        metavar="P",
        default=-1.0,
        help="draw from the fewest tokens whose probabilities sum up to P",
    )
    parser.add_argument(
        "--temperature", type=float, default=1.0, help="divides the logits (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of --sampling (default %(default)s)")
    parser.add_argument(
        "--prefix",
        action="store_true",
        help="lines are a sentence, a tab and the words that its translation must begin with",
    )
    parser.add_argument(
        "--print-alignment",
        action="store_true",
        help="add aligned words, as ||| 0-0 1-2: numbers of a source and a target word, from 0",
    )
    parser.add_argument(
        "--replace-unk",
        nargs="?",
        const="",
        metavar="FILE",
        help="replace unknown"
        " words by the source words that they are aligned to, or by the"
        " translations in FILE, lines of a source word and its translation",
    )
    parser.add_argument(
        "--lm-path",
        help="language model of the target language, of fairseq's task"
        " language_modeling; its log-probabilities are added (shallow fusion)",
    )
    parser.add_argument(
        "--lm-weight",
        type=float,
        default=0.1,
        help="factor of the language model (default %(default)s)",
    )


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
        ValueError: one of them is damaged or does not fit the others.
    """
    for path in utils.split_paths(args.path):
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"{path}: no such checkpoint; train and average first"
                " (recipes/run.sh EXPERIMENT --to average)"
            )
    protect_loading()
    cfg = _configuration(args)
    try:
        task = tasks.setup_task(cfg.task)
    except SystemExit as error:  # of the plugin's task, for fairseq's commands
        raise ValueError(str(error)) from None
    languages = task.cfg.source_lang, task.cfg.target_lang
    prepared = Prepared.beside(args.data)
    folder, lowercase = args.subwords or prepared.subwords, args.lowercase or prepared.lowercase
    source, target = (load_subwords(folder, of, languages[1], lowercase) for of in languages)
    models = [_load_model(path, task) for path in utils.split_paths(args.path)]
    for model in models:
        if torch.cuda.is_available() and not args.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
    return Loaded(cfg, task, models, source, target)


def load_translator(args: argparse.Namespace) -> Translator:
    """The translator for the options of ``add_model_arguments`` and ``add_search_arguments``, and
    of ``add_n_best_arguments`` where they are given.

    Raises:
        FileNotFoundError: see ``load_models``.
        ValueError: see ``load_models``, or an option has an invalid value.
    """
    number = getattr(args, "nbest", None) or 1
    if getattr(args, "sampling", False):
        args.beam = number
    _check_search(args, number)
    replacements = read_replacements(getattr(args, "replace_unk", None))
    loaded = load_models(args)
    generator = loaded.task.build_generator(loaded.models, loaded.cfg.generation)
    return Translator(
        *(loaded.task, loaded.models, generator, loaded.source, args.part_length),
        target_subwords=loaded.target,
        replacements=replacements,
    )


def load(data: Path | str, path: Path | str, **options: Any) -> Translator:
    """A translator, for use in Python.

    Args:
        data: binarised data with its dictionaries.
        path: checkpoint; several, A.pt:B.pt: an ensemble.
        options: those of ``transformer-plugin translate``, as ``beam=8`` or
            ``print_alignment=True``.

    Raises:
        FileNotFoundError: see ``load_models``.
        ValueError: see ``load_translator``, or there is no such option.
    """
    parser = argparse.ArgumentParser()
    for add in (add_model_arguments, add_search_arguments, add_n_best_arguments):
        add(parser)
    args = parser.parse_args([str(data), "--path", str(path)])
    for name, value in options.items():
        if not hasattr(args, name):
            known = ", ".join(vars(args))
            raise ValueError(f"there is no option '{name}': expected one of {known}")
        setattr(args, name, value)
    return load_translator(args)


def _check_search(args: argparse.Namespace, number: int) -> None:
    if args.beam < 1 or not math.isfinite(args.lenpen):
        raise ValueError("--beam must be at least 1, and --lenpen a finite number")
    if number < 1 or number > args.beam:
        raise ValueError(f"--nbest must be from 1 to --beam, {args.beam}")
    if not 0 < getattr(args, "temperature", 1.0) < math.inf:
        raise ValueError("--temperature must be positive")


def _load_model(path: str, task: tasks.FairseqTask) -> BaseFairseqModel:
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    check_languages(path, state, task.cfg.source_lang, task.cfg.target_lang)
    (model,), _ = checkpoint_utils.load_model_ensemble([path], task=task, state=state)
    return model


def _configuration(args: argparse.Namespace) -> Any:
    """The configuration of fairseq-interactive."""
    words = [str(args.data), "--task", "vaswani_translation", "--path", args.path]
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
    words += [f"--{name}" for name in ("cpu", "sampling") if getattr(args, name, False)]
    if getattr(args, "print_alignment", False) or getattr(args, "replace_unk", None) is not None:
        words.append("--print-alignment")
    parser = options.get_interactive_generation_parser()
    given = options.parse_args_and_arch(parser, words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fairseq's use of hydra
        return convert_namespace_to_omegaconf(given)
