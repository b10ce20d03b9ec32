"""The encoder-decoder attention of a translation, and the word alignment computed from it."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from ..model import VaswaniTransformer
from .attention_weights import model_attention
from .subwords import Subwords
from .translator import Part, Translation


def mean_attention(model: nn.Module, part: Part) -> Tensor | None:
    """The attention weights of each layer, averaged over the heads, ``[N, T, S]``.

    T counts the subwords of the translation and its end of sentence; S those of the source.
    Returns None if the model is not the plugin's.
    """
    if not isinstance(model, VaswaniTransformer):
        return None
    weights = model_attention(model, part.source_tokens, part.target_tokens)
    return weights.encoder_decoder.mean(dim=1)


def word_links(
    translation: Translation, source_subwords: Subwords, target_subwords: Subwords
) -> list[tuple[int, int]]:
    """Numbers of aligned words, from 0, source before target: the pairs in which a subword of
    the target word attends most to a subword of the source word.

    Args:
        translation: by a translator with ``print_alignment``.
        source_subwords, target_subwords: the data's subword models. Words are what they split:
            between spaces, or Moses tokens.
    """
    links = set()
    # A word of the source may be cut between two parts.
    source = word_numbers(
        [piece for part in translation.parts for piece in part.source], source_subwords
    )
    before = first_target = 0  # source subwords and target words of the parts before
    for part in translation.parts:
        target = word_numbers(part.target, target_subwords)
        for link in part.links:
            links.add((source[before + link.source], first_target + target[link.target]))
        before += len(part.source)
        space = target_subwords.space_after(target_subwords.join(part.target))
        first_target += target[-1] + len(space)
    return sorted(links, key=lambda pair: pair[::-1])


def word_numbers(pieces: list[str], subwords: Subwords) -> list[int]:
    """The number of the word that each subword belongs to, from 0; ``[0]`` without subwords."""
    numbers = [0]
    text = False  # whether the word has any yet
    for before, piece in pairwise([*pieces, ""]):
        text = text or bool(subwords.join([before]))
        begins = text and piece != "" and subwords.begins_word(piece, before)
        numbers.append(numbers[-1] + begins)
        text = text and not begins
    last = max(0, numbers[-1] - (not text))  # a "▁" at the end begins no word
    return [min(number, last) for number in numbers[: max(1, len(pieces))]]
