"""Translates sentences and computes the attention weights for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from ...translation.alignment import word_numbers
from ...translation.attention_weights import AttentionWeights, model_attention
from ...translation.subwords import Subwords
from ...translation.translator import Part, Translator


@dataclass(frozen=True)
class InputSentence:
    """A sentence to translate and show.

    Attributes:
        name: for the reader, such as ``test 17``.
        text: raw text.
        pieces: subwords, without end of sentence.
        tokens: ids, with end of sentence, ``[S]``.
        reference: human translation, if there is one.
    """

    name: str
    text: str
    pieces: list[str]
    tokens: Tensor
    reference: str | None = None


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of the beam: ``score`` is ``log_prob``, of all tokens, over length penalty."""

    text: str
    score: float
    log_prob: float
    length: int


@dataclass(frozen=True)
class Explained:
    """A sentence, its best translation and the attention weights of both.

    Attributes:
        source: the sentence's S subwords, with end of sentence.
        target: the translation's T subwords, with end of sentence.
        source_words: the number of the word that each subword of the source belongs to.
        target_words: likewise for the translation.
        log_probs: log-probability of each subword of the translation, ``[T]``.
        hypotheses: those of the beam, best first.
        weights: None if the sentence is too long to show.
    """

    input: InputSentence
    source: list[str]
    target: list[str]
    source_words: list[int]
    target_words: list[int]
    log_probs: list[float]
    hypotheses: list[Hypothesis]
    weights: AttentionWeights | None

    @property
    def read(self) -> list[str]:
        """The decoder's input at each position, ``[T]``: the keys of its self-attention."""
        return [self.target[-1], *self.target[:-1]]

    def axes(self, kind: str) -> tuple[list[str], list[str]]:
        """The subwords of the queries and of the keys of one kind of attention."""
        queries = self.source if kind == "encoder" else self.target
        return queries, self.read if kind == "decoder" else self.source


def from_texts(translator: Translator, texts: Sequence[str], name: str) -> Iterator[InputSentence]:
    """Raw sentences. Empty ones are skipped, and very long ones are split into parts."""
    for number, text in enumerate(texts, start=1):
        parts = translator.read(text)
        for i, (pieces, tokens) in enumerate(parts, start=1):
            if len(parts) == 1:
                yield InputSentence(f"{name} {number}", text.strip(), pieces, tokens)
            else:
                shown = translator.subwords.join(pieces)
                yield InputSentence(f"{name} {number}, part {i}", shown, pieces, tokens)


def from_data(
    translator: Translator, split: str, numbers: Sequence[int] | int
) -> list[InputSentence]:
    """Sentences of a split of the binarised data.

    Args:
        numbers: sentence numbers, from 0, as fairseq-generate prints them; or how many of the first
            sentences to use.

    Raises:
        ValueError: there is no such split or number.
    """
    task = translator.task
    try:
        data = task.load_dataset(split) or task.dataset(split)
    except FileNotFoundError:
        raise ValueError(f"{task.cfg.data}: no split '{split}'; choose one with --split") from None
    chosen = range(min(numbers, len(data))) if isinstance(numbers, int) else numbers
    if wrong := [n for n in chosen if not 0 <= n < len(data)]:
        raise ValueError(f"{split} has the sentences 0 to {len(data) - 1}, not {wrong[0]}")
    return [_of_data(translator, data[n], f"{split} {n}") for n in chosen]


def _of_data(translator: Translator, pair: dict[str, Tensor], name: str) -> InputSentence:
    source, target = translator.task.source_dictionary, translator.task.target_dictionary
    pieces = [source[i] for i in pair["source"].tolist()[:-1]]
    reference = None
    if pair["target"] is not None:
        written = [target[i] for i in pair["target"].tolist()[:-1]]
        reference = translator.target_subwords.join(written)
    return InputSentence(name, translator.subwords.join(pieces), pieces, pair["source"], reference)


def explain(
    translator: Translator, inputs: Sequence[InputSentence], longest: int
) -> Iterator[Explained]:
    """Translates the sentences, and computes the weights one sentence at a time.

    Args:
        longest: no weights are computed for sentences with more subwords on either side.

    Raises:
        ValueError: the model is not the plugin's, or there are several.
    """
    if len(translator.models) > 1:
        raise ValueError("--path is an ensemble: give one model, since each has its own attention")
    beams = translator.search([sentence.tokens for sentence in inputs])
    for sentence, beam in zip(inputs, beams, strict=True):
        yield _explained(translator, sentence, beam, longest)


def _explained(
    translator: Translator,
    sentence: InputSentence,
    beam: Sequence[dict[str, Tensor]],
    longest: int,
) -> Explained:
    best, *_ = parts = [translator.part(sentence.pieces, sentence.tokens, found) for found in beam]
    length = max(len(best.source_tokens), len(best.target_tokens))
    weights = None
    if length <= longest:
        weights = model_attention(translator.models[0], best.source_tokens, best.target_tokens)
    eos = translator.task.target_dictionary.eos_word
    return Explained(
        sentence,
        [*sentence.pieces, translator.task.source_dictionary.eos_word],
        [*best.target, eos],
        _words(sentence.pieces, translator.subwords),
        _words(best.target, translator.target_subwords),
        beam[0]["positional_scores"].tolist(),
        list(_hypotheses(translator, parts)),
        weights,
    )


def _words(pieces: list[str], subwords: Subwords) -> list[int]:
    """The number of each subword's word; the end of sentence is a word of its own."""
    numbers = word_numbers(pieces, subwords)[: len(pieces)]
    return [*numbers, numbers[-1] + 1 if numbers else 0]


def _hypotheses(translator: Translator, parts: Iterable[Part]) -> Iterator[Hypothesis]:
    for part in parts:
        text = translator.target_subwords.join(part.target)
        yield Hypothesis(text, part.score, part.log_prob, len(part.target_tokens))
