"""Sentences to translations, with models that stay loaded."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch import Tensor, nn

from ..checkpoints.languages import check_languages
from ..decode_precision import PRECISIONS
from ..generator import CALL_TOKENS
from .subwords import Prepared, Subwords, load_subwords

_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


@dataclass(frozen=True)
class Part:
    """What was translated at once: a sentence, or a part of a very long one.

    Attributes:
        source: its subwords; ``target``: those of the translation.
        source_tokens: ids with end of sentence, ``[S]``; ``target_tokens``: ``[T]``.
        score: log-probability over the length penalty.
    """

    source: list[str]
    target: list[str]
    source_tokens: Tensor
    target_tokens: Tensor
    score: float


@dataclass(frozen=True)
class Translation:
    """Of one sentence: an empty one has no parts, one of ordinary length has one."""

    text: str
    parts: list[Part]


class Translator:
    """Translates raw sentences.

    Args:
        task: fairseq's, with dictionaries.
        models: more than one form an ensemble.
        generator: beam search, as ``task.build_generator`` makes it.
        subwords: as the training text was prepared.
        part_length: subwords; a longer sentence is translated in parts.
    """

    def __init__(
        self,
        task: tasks.FairseqTask,
        models: Sequence[nn.Module],
        generator: nn.Module,
        subwords: Subwords,
        part_length: int = 500,
    ) -> None:
        self.task, self.models, self.generator, self.subwords = task, models, generator, subwords
        limits = [utils.resolve_max_positions(model.max_positions()) for model in models]
        longest = min(utils.resolve_max_positions(*limits)[0] - 1, part_length)
        if longest < 1:
            raise ValueError("--part-length is at least 1")
        self.part_length = longest
        self.device = next(models[0].parameters()).device

    def translate(self, sentences: Sequence[str]) -> list[Translation]:
        """Each sentence's best translation."""
        read = [self.read(sentence) for sentence in sentences]
        flat = [part for parts in read for part in parts]
        beams = self.search([tokens for _, tokens in flat])
        found = iter(
            self.part(pieces, tokens, hypotheses[0])
            for (pieces, tokens), hypotheses in zip(flat, beams, strict=True)
        )
        translations = []
        for parts in read:
            done = [next(found) for _ in parts]
            text = " ".join(self.subwords.join(part.target) for part in done)
            translations.append(Translation(text, done))
        return translations

    def read(self, sentence: str) -> list[tuple[list[str], Tensor]]:
        """Pieces and ids ``[S]`` of a sentence, or of each part of a very long one."""
        return [(part, self._tokens(part)) for part in self._parts(self.subwords.split(sentence))]

    def search(self, sentences: Sequence[Tensor]) -> list[list[dict[str, Tensor]]]:
        """The hypotheses of token sequences ``[S]``, in fairseq's form, best first."""
        results: list[list[dict[str, Tensor]]] = [[] for _ in sentences]
        for numbers in _batches([len(s) for s in sentences]):
            batch = [sentences[i] for i in numbers]
            source = data_utils.collate_tokens(
                batch,
                self.task.source_dictionary.pad(),
                left_pad=self.task.cfg.left_pad_source,
            )
            lengths = torch.tensor([len(s) for s in batch])
            sample = {
                "net_input": {
                    "src_tokens": source.to(self.device),
                    "src_lengths": lengths.to(self.device),
                }
            }
            found = self.task.inference_step(self.generator, self.models, sample)
            for i, hypotheses in zip(numbers, found, strict=True):
                results[i] = hypotheses
        return results

    def _tokens(self, pieces: list[str]) -> Tensor:
        """Ids ``[S]``; a piece that reads like a special symbol is unknown text."""
        dictionary: Dictionary = self.task.source_dictionary
        ids = [dictionary.index(piece) for piece in pieces]
        ids = [i if i >= dictionary.nspecial else dictionary.unk() for i in ids]
        return torch.tensor([*ids, dictionary.eos()])

    def part(self, source: list[str], tokens: Tensor, hypothesis: dict[str, Tensor]) -> Part:
        """What ``search`` found for ``tokens``, the ids of the pieces ``source``."""
        dictionary: Dictionary = self.task.target_dictionary
        target = hypothesis["tokens"].cpu()
        pieces = [dictionary[i] for i in target.tolist() if i != dictionary.eos()]
        return Part(source, pieces, tokens, target, float(hypothesis["score"]))

    def _parts(self, pieces: list[str]) -> Iterator[list[str]]:
        """Pieces in parts of at most ``part_length``, cut behind a sentence or else a word."""
        while len(pieces) > self.part_length:
            end = self._cut(pieces)
            yield pieces[:end]
            pieces = pieces[end:]
        if pieces:
            yield pieces

    def _cut(self, pieces: list[str]) -> int:
        words = [
            i
            for i in range(1, self.part_length + 1)
            if self.subwords.begins_word(pieces[i], pieces[i - 1])
        ]
        ends = [i for i in words if pieces[i - 1].endswith(_SENTENCE_ENDS)]
        return (ends or words or [self.part_length])[-1]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of sentences of like length; a batch, padded, has at most ``CALL_TOKENS``."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True):
        if batch and lengths[batch[0]] * (len(batch) + 1) > CALL_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def add_model_arguments(parser: argparse.ArgumentParser, data: str = "data") -> None:
    """Options that say what translates; ``data`` may be an option, ``--data``, too."""
    required = {"required": True} if data.startswith("--") else {}
    parser.add_argument(data, type=Path, help="binarised data with its dictionaries", **required)
    parser.add_argument("--path", required=True, help="checkpoint; several, A.pt:B.pt: an ensemble")
    parser.add_argument("-s", "--source-lang", help="default: that of the data")
    parser.add_argument("-t", "--target-lang", help="default: that of the data")
    parser.add_argument("--subwords", type=Path, help="folder of the subword model; default:"
                        " subwords/ beside the data, where recipes/prepare.sh puts it")
    parser.add_argument("--lowercase", action="store_true", help="make the text lower case first;"
                        " default: as the data was prepared, by clean/report.json beside it")
    parser.add_argument("--beam", type=int, default=4, help="section 6.1 (default %(default)s)")
    parser.add_argument("--lenpen", type=float, default=0.6,
                        help="length penalty alpha, section 6.1 (default %(default)s)")
    parser.add_argument("--decode-precision", choices=PRECISIONS, help="default: the checkpoint's")
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    parser.add_argument("--part-length", type=int, default=500, metavar="SUBWORDS",
                        help="a longer line is translated in parts (default %(default)s)")


def load_translator(args: argparse.Namespace) -> Translator:
    """The translator that the options of ``add_model_arguments`` describe.

    Raises:
        FileNotFoundError: data, checkpoint or subword model is missing.
        ValueError: one of them is damaged, or does not belong to the others, or an option means
            nothing.
    """
    if args.beam < 1 or not math.isfinite(args.lenpen):
        raise ValueError("--beam is at least 1, and --lenpen a finite number")
    for path in utils.split_paths(args.path):
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"{path}: no such checkpoint; train and average first"
                " (recipes/run.sh EXPERIMENT --to average)"
            )
    cfg = _configuration(args)
    try:
        task = tasks.setup_task(cfg.task)
    except SystemExit as error:  # as fairseq's commands show it
        raise ValueError(str(error)) from None
    source, target = task.cfg.source_lang, task.cfg.target_lang
    prepared = Prepared.beside(args.data)
    subwords = load_subwords(
        args.subwords or prepared.subwords, source, target, args.lowercase or prepared.lowercase
    )
    models = [_load_model(path, task) for path in utils.split_paths(args.path)]
    for model in models:
        if torch.cuda.is_available() and not args.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
    generator = task.build_generator(models, cfg.generation)
    return Translator(task, models, generator, subwords, args.part_length)


def _load_model(path: str, task: tasks.FairseqTask) -> nn.Module:
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    check_languages(path, state, task.cfg.source_lang, task.cfg.target_lang)
    (model,), _ = checkpoint_utils.load_model_ensemble([path], task=task, state=state)
    return model


def _configuration(args: argparse.Namespace) -> Any:
    """fairseq-interactive's."""
    words = [str(args.data), "--task", "vaswani_translation", "--path", args.path]
    words += ["--beam", str(args.beam), "--lenpen", str(args.lenpen)]
    for name in ("source_lang", "target_lang", "decode_precision"):
        if value := getattr(args, name):
            words += [f"--{name.replace('_', '-')}", value]
    words += ["--cpu"] if args.cpu else []
    parser = options.get_interactive_generation_parser()
    given = options.parse_args_and_arch(parser, words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fairseq's use of hydra
        return convert_namespace_to_omegaconf(given)
