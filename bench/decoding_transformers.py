"""Hugging Face's transformers as a decoding peer: FSMT, which is fairseq's Transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from fairseq.tasks import FairseqTask
from torch import Tensor

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def build_transformers(
    folder: Path, task: FairseqTask, subset: str, precision: str, device: str, alpha: float
) -> Callable[[int, int, Sequence[int]], list[Tensor]]:
    """Translates some sentences with a beam, in batches of similar length, and returns the tokens
    of each, in order; with fairseq's rules, which are in the folder's configuration."""
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=TYPES[precision]).eval().to(device)
    data_set = task.dataset(subset)
    sources = [data_set[i]["source"] for i in range(len(data_set))]
    pad, eos = task.source_dictionary.pad(), task.target_dictionary.eos()

    @torch.inference_mode()
    def translate(beam: int, size: int, sentences: Sequence[int]) -> list[Tensor]:
        found = {}
        by_length = sorted(sentences, key=lambda i: len(sources[i]), reverse=True)
        for start in range(0, len(by_length), size):
            numbers = by_length[start : start + size]
            inputs = torch.nn.utils.rnn.pad_sequence(
                [sources[i] for i in numbers], batch_first=True, padding_value=pad
            ).to(device)
            rows = model.generate(
                input_ids=inputs,
                attention_mask=inputs.ne(pad),
                num_beams=beam,
                **({"length_penalty": alpha} if beam > 1 else {}),
            )
            for i, row in zip(numbers, rows.cpu(), strict=True):
                tokens = row[1:]  # the first is the decoder's start token
                ends = tokens.eq(eos).nonzero()
                found[i] = tokens[: int(ends[0])] if len(ends) else tokens
        return [found[i] for i in sentences]

    return translate
