"""Alignments of source and target tokens, from the attention of the last decoder layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from fairseq import utils
from fairseq.data import data_utils
from torch import Tensor

from .encoder_input import EncoderInput
from .model import VaswaniTransformer
from .refusal import Refusal


class Link(NamedTuple):
    """A pair of aligned tokens, counted from 0.

    As an index it is its source, with which fairseq's ``--replace-unk`` finds the source word.
    """

    source: int
    target: int

    def __index__(self) -> int:
        return self.source


def add_alignments(
    models: Sequence[VaswaniTransformer],
    kind: str,
    source: EncoderInput,
    hypotheses: Sequence[dict[str, Any]],
    pad: int,
    eos: int,
) -> None:
    """Adds ``attention``, ``[S, T]``, and ``alignment`` to hypotheses in fairseq's form.

    Args:
        models: the models that translated.
        kind: ``hard``: a ``Link`` for each target token; ``soft``: weights as fairseq prints them.
        source: their sentences.
        hypotheses: one translation for each source.
    """
    extract = {"hard": utils.extract_hard_alignment, "soft": utils.extract_soft_alignment}[kind]
    targets = [hypothesis["tokens"] for hypothesis in hypotheses]
    weights = _source_attention(models, source, targets, pad)
    for row, each, attention in zip(source.tokens.cpu(), hypotheses, weights, strict=True):
        found = extract(attention, row[row.ne(pad)], each["tokens"], pad, eos)
        each["attention"] = attention.t()
        each["alignment"] = [Link(*pair) for pair in found] if kind == "hard" else found


@torch.no_grad()
def _source_attention(
    models: Sequence[VaswaniTransformer], source: EncoderInput, targets: Sequence[Tensor], pad: int
) -> list[Tensor]:
    """Encoder-decoder weights of the last layer, ``[T, S]`` for each translation, averaged over the
    heads and the models; on the CPU."""
    shifted = data_utils.collate_tokens([each.roll(1) for each in targets], pad)
    shifted = shifted.to(source.tokens.device)
    mean = torch.zeros(())
    for model in models:
        last = {len(model.decoder.layers) - 1}
        _, _, ((_, heads),) = model.decoder.decode(shifted, *source.encode(model), last)
        assert heads is not None
        mean = mean + heads.float().mean(dim=1).cpu() / len(models)
    lengths = source.tokens.ne(pad).sum(dim=1).tolist()
    return [
        mean[i, : len(target), :length].clone()
        for i, (target, length) in enumerate(zip(targets, lengths, strict=True))
    ]


def check_replacement(datasets: Iterable[Any], cfg: Mapping[str, Any]) -> None:
    """Checks that fairseq's ``--replace-unk`` can find the source words of unknown target words.

    Raises:
        Refusal: it cannot, nor could stock fairseq: subwords are joined first, or the data has
            no text.
    """
    instead = "use transformer-plugin translate --replace-unk, which takes raw text"
    if cfg.get("common_eval", {}).get("post_process"):
        raise Refusal(f"--replace-unk counts tokens, and --remove-bpe joins them: {instead}")
    if any(not hasattr(each.src, "get_original_text") for each in datasets):
        raise Refusal(
            f"--replace-unk needs text (--dataset-impl raw), not binarised data: {instead}"
        )


def check_unknown_words(hypotheses: Iterable[Mapping[str, Any]], unk: int) -> None:
    """Checks that the unknown words of translations are aligned to source words.

    Raises:
        Refusal: the source sentence is empty.
    """
    for each in hypotheses:
        if not each["alignment"] and each["tokens"].eq(unk).any():
            raise Refusal(
                "--replace-unk: the translation of an empty line has unknown words, and no source"
                " words to replace them: omit empty lines"
            )
