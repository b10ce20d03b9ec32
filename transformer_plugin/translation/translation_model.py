"""A trained model for use in Python, on raw text: ``transformer_plugin.load("runs/toy")``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from omegaconf import OmegaConf
from torch import nn

from ..search_options import BEAM, LENPEN
from .alignment import word_links
from .attention_weights import AttentionWeights, model_attention
from .contrast import target_log_probs, token_pairs
from .loading import Loaded, arguments_of, load_models
from .translator import Translation, Translator, checked


@dataclass(frozen=True)
class TranslatedSentence:
    """A translation.

    Attributes:
        text: raw text.
        score: log-probability divided by the length penalty; of a very long sentence, which is
            translated in parts, the sum of theirs.
        alignment: numbers of aligned words, from 0, source before target, if they were asked for.
            Words are separated by spaces; with Moses BPE they are Moses tokens.
        alternatives: the next best translations, best first, if ``nbest`` is above 1.
    """

    text: str
    score: float
    alignment: list[tuple[int, int]] | None = None
    alternatives: list[TranslatedSentence] = field(default_factory=list)


@dataclass(frozen=True)
class SentenceAttention(AttentionWeights):
    """The attention weights of N layers with H heads, for S source and T target subwords.

    Attributes:
        source: subwords with end of sentence, S.
        target: subwords with end of sentence, T. Row t of the decoder's weights is the position
            that predicts subword t; its input is the subword before, or ``</s>`` for the first.
    """

    source: list[str]
    target: list[str]


class TranslationModel:
    """A trained model with its dictionaries and subwords. ``load`` makes it.

    Args:
        loaded: models and what belongs to them; several models form an ensemble.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._translator = functools.lru_cache(8)(self._build_translator)

    @property
    def models(self) -> list[nn.Module]:
        """The PyTorch modules: one, or those of an ensemble."""
        return list(self._loaded.models)

    @property
    def dictionaries(self) -> tuple[Dictionary, Dictionary]:
        """fairseq's dictionaries of source and target subwords."""
        task = self._loaded.task
        return task.source_dictionary, task.target_dictionary

    @property
    def source_language(self) -> str:
        """Such as ``en``."""
        return str(self._loaded.task.cfg.source_lang)

    @property
    def target_language(self) -> str:
        """Such as ``de``."""
        return str(self._loaded.task.cfg.target_lang)

    def translate(
        self,
        sentences: Sequence[str],
        beam: int = BEAM,
        nbest: int = 1,
        alignments: bool = False,
        alpha: float = LENPEN,
    ) -> list[TranslatedSentence]:
        """Translates sentences by beam search.

        Args:
            sentences: raw text, in batches of any number.
            beam: hypotheses that are kept at each step (section 6.1).
            nbest: translations of each sentence, at most ``beam``.
            alignments: also find the aligned words, by the last layer's encoder-decoder attention.
            alpha: alpha of the length penalty (section 6.1), from -8 to 8.

        Returns:
            A translation for each sentence; an empty sentence has an empty one.

        Raises:
            TypeError: ``sentences`` are not texts, or ``beam`` or ``nbest`` is not a whole number.
            ValueError: ``beam``, ``nbest`` or ``alpha`` is out of range.
        """
        beam, nbest = operator.index(beam), operator.index(nbest)
        if beam < 1 or not 1 <= nbest <= beam:
            raise ValueError(f"beam {beam}, nbest {nbest}: expected 1 <= nbest <= beam")
        if not abs(alpha) <= 8:  # as for --lenpen
            raise ValueError(f"alpha {alpha}: expected a finite number from -8 to 8")
        translator = self._translator(beam, nbest, alignments, float(alpha))  # may be NumPy's
        found = translator.n_best(sentences, nbest)
        return [self._with_alternatives(ranked, alignments) for ranked in found]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """log P(target | source) of each pair, with end of sentence, not divided by the length.

        Args:
            sources: raw sentences.
            targets: a raw translation of each.

        Raises:
            TypeError: ``sources`` or ``targets`` are not texts.
            ValueError: they have different lengths, or a sentence is too long for the model.
        """
        sources, targets = checked(sources), checked(targets)
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources, {len(targets)} targets: expected pairs")
        pairs = list(zip(sources, targets, strict=True))
        places = {pair: f"sentence {number}" for number, pair in enumerate(pairs)}
        found = target_log_probs(self._loaded, token_pairs(self._loaded, places))
        return [found[pair] for pair in pairs]

    def attention(self, source: str, target: str | None = None) -> SentenceAttention:
        """The attention weights of every layer and head for a sentence and its translation.

        Args:
            source: a raw sentence.
            target: its translation; None: the model's own, by beam search.

        Raises:
            TypeError: several sentences were given, or one is not text.
            ValueError: the sentence is empty or too long, a text cannot be encoded, or the model
                is an ensemble or not the plugin's.
        """
        if len(self.models) > 1:
            raise ValueError("an ensemble has no attention of its own: load one checkpoint")
        for text in (source,) if target is None else (source, target):
            if not isinstance(text, str):
                raise TypeError(f"expected one sentence, not {text!r}")
            checked([text])
        translator = self._translator(BEAM, 1, False, LENPEN)
        parts = translator.translate([source])[0].parts if target is None else []
        if target is not None:
            parts = [translator.forced(*read, target) for read in translator.read(source)]
        if len(parts) != 1:
            what = "is empty" if not parts else f"has more than {translator.part_length} subwords"
            raise ValueError(f"the sentence {what}: expected one that the model reads whole")
        (part,) = parts
        task = self._loaded.task
        weights = model_attention(self.models[0], part.source_tokens, part.target_tokens)
        return SentenceAttention(
            **vars(weights),
            source=[*part.source, task.source_dictionary.eos_word],
            target=[*part.target, task.target_dictionary.eos_word],
        )

    def _build_translator(
        self, beam: int, nbest: int, alignments: bool, alpha: float
    ) -> Translator:
        loaded = self._loaded
        search: dict[str, Any] = {"beam": beam, "nbest": nbest, "lenpen": alpha}
        if alignments:
            search["print_alignment"] = "hard"
        options = OmegaConf.merge(loaded.cfg.generation, search)
        generator = loaded.task.build_generator(loaded.models, options)
        return Translator(loaded.task, loaded.models, generator, loaded.source, loaded.target)

    def _with_alternatives(
        self, ranked: Sequence[Translation], alignments: bool
    ) -> TranslatedSentence:
        found = [
            TranslatedSentence(
                each.text,
                each.score,
                word_links(each, self._loaded.source, self._loaded.target) if alignments else None,
            )
            for each in ranked
        ]
        best = found[0]
        return TranslatedSentence(best.text, best.score, best.alignment, found[1:])


def load(
    run: str | Path,
    checkpoint: str | Path | None = None,
    data: str | Path | None = None,
    precision: str | None = None,
    cpu: bool = False,
) -> TranslationModel:
    """Loads a trained model, to the GPU if there is one.

    Nothing in the checkpoint is run: it is read as data alone.

    Args:
        run: folder of an experiment, such as ``runs/toy``.
        checkpoint: default: ``checkpoints/averaged.pt`` of the run; several, such as
            ``a.pt:b.pt``, form an ensemble.
        data: binarised data with its dictionaries; default: that which the run was trained on.
        precision: decoding in ``fp32``, ``bf16``, ``fp16`` (GPUs) or ``int8`` (CPUs); default:
            fp32 on a CPU, on a GPU bf16, or fp16 before Ampere.
        cpu: do not use a GPU.

    Raises:
        FileNotFoundError: the run, the checkpoint or the data is missing.
        ValueError: a file is damaged, holds code, or does not fit the others.
    """
    run = Path(run)
    if not run.is_dir():
        raise FileNotFoundError(
            f"{run}: no such folder; expected one that recipes/run.sh has written, such as runs/toy"
        )
    path = checkpoint or run / "checkpoints" / "averaged.pt"
    args = arguments_of(data or run, path, cpu=cpu, decode_precision=precision)
    return TranslationModel(load_models(args))
