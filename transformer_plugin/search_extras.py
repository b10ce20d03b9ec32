"""Optional features of a search: alignments, shallow fusion, and trees as the only results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.models import FairseqLanguageModel
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig
from torch import nn

from .language_model import check_dictionary, load_language_model
from .refusal import Refusal
from .search.tree_scorer import TreeTokens
from .word_alignment import check_replacement


@dataclass(frozen=True)
class Extras:
    """Optional features of a search.

    Attributes:
        alignment: ``hard``: each target token's source token; ``soft``: its weights.
        num_aligned: number of best hypotheses of each sentence that get an alignment.
        replace_unk: whether the command replaces unknown words by those they are aligned to.
        language_model: a model of fairseq, for shallow fusion.
        lm_weight: its weight.
        tree_tokens: see ``TreeScorer``; None = any tokens may follow each other.
    """

    alignment: str | None = None
    num_aligned: int = 1
    replace_unk: bool = False
    language_model: FairseqLanguageModel | None = None
    lm_weight: float = 1.0
    tree_tokens: TreeTokens | None = None


def check_before_loading(generation: Mapping[str, Any], data: str, target: str) -> None:
    """Checks files that fairseq-generate loads before it builds a search.

    Args:
        generation: its options.
        data: the folder of the binarised data.
        target: target language.

    Raises:
        Refusal: fairseq would not find a file.
    """
    words = Path(utils.split_paths(data)[0])
    if generation.get("lm_path") and not (words / "dict.txt").exists():
        raise Refusal(
            f"--lm-path: fairseq-generate looks for the language model's words in {words}/dict.txt:"
            f" cp {words}/dict.{target}.txt {words}/dict.txt (in a copy of the folder, if"
            " recipes/prepare.sh made it: that step refuses a folder with other files)"
        )
    _check_replacement_file(generation)


def _check_replacement_file(generation: Mapping[str, Any]) -> None:
    if generation.get("replace_unk") == "@@ ":  # fairseq's default if it has no value
        raise Refusal("--replace-unk needs a file of words and their translations, or '' for none")


def with_language_model(
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    task: TranslationTask,
    model: nn.Module,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options and the arguments ``given`` of a generator, both with the language model if there
    is one: given by a program, or by ``--lm-path``, which fairseq-interactive does not load.

    Args:
        options: fairseq's generation options.
        model: a translation model.

    Raises:
        Refusal: the language model has another dictionary.
    """
    language_model, path = given.get("lm_model"), options.get("lm_path")
    if language_model is not None:
        check_dictionary(language_model, task.target_dictionary)
        weight = given.get("lm_weight", 1.0)  # fairseq's default
    elif path is not None:
        language_model = load_language_model(path, task.target_dictionary)
        language_model.to(next(model.parameters()).device)
        weight = options.get("lm_weight", 0.0)
    else:
        return dict(options), dict(given)
    options = {**options, "lm_path": path or "a program's model", "lm_weight": weight}
    return options, {**given, "lm_model": language_model, "lm_weight": weight}


def check_stock(options: Mapping[str, Any], only_trees: bool, reason: str) -> None:
    """Checks that fairseq's search, which ``reason`` needs, can do what the options ask for.

    Raises:
        Refusal: it cannot; it would fail in the middle of its output.
    """
    search = f"fairseq's search, needed for {reason},"
    if only_trees:
        raise Refusal(f"--only-trees: {search} has no trees")
    if options.get("replace_unk") is not None:
        raise Refusal(
            f"--replace-unk: {search} does not align unknown words: omit one of them, or use"
            " transformer-plugin translate --replace-unk"
        )
    if options.get("constraints") and options.get("print_alignment"):
        raise Refusal(
            f"--print-alignment: {search} cannot align a sentence with fewer hypotheses than"
            " --beam: omit one of them"
        )


def extras_of(
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    task: TranslationTask,
) -> Extras:
    """The features that the options of a command select.

    Args:
        options: fairseq's generation options.
        given: what ``with_language_model`` returns.

    Raises:
        Refusal: ``--replace-unk`` cannot work, or ``--only-trees`` is given for a target without
            trees.
    """
    alignment = options.get("print_alignment")
    cfg: Any = task.cfg._get_root() if isinstance(task.cfg, DictConfig) else {}
    if options.get("replace_unk") is not None:
        _check_replacement_file(options)
        check_replacement(task.datasets.values(), cfg)
        alignment = alignment or "hard"
    return Extras(
        alignment,
        options.get("nbest", 1),
        options.get("replace_unk") is not None,
        given.get("lm_model"),
        given.get("lm_weight", 0.0),
        _tree_tokens(task) if task.cfg.only_trees else None,
    )


def _tree_tokens(task: TranslationTask) -> TreeTokens:
    source, target = task.source_dictionary, task.target_dictionary
    try:
        return TreeTokens.of(
            source.symbols, target.symbols, target.count, target.nspecial, target.eos()
        )
    except ValueError as error:
        raise Refusal(f"--only-trees: {error}") from None


def by_rows(generator: Any) -> Any:
    """Makes fairseq's diverse beams right in a batch: fairseq stores what the groups of a sentence
    have in common by its row, but looks it up by its number in the data set."""
    generate = generator.generate

    def without_numbers(models: Any, sample: Mapping[str, Any], *rest: Any, **named: Any) -> Any:
        rows = {name: value for name, value in sample.items() if name != "id"}
        return generate(models, rows, *rest, **named)

    generator.generate = without_numbers
    return generator
