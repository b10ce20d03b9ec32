"""Token ids of subwords, and batches of sentences of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from fairseq import tasks
from fairseq.data import Dictionary, data_utils
from torch import Tensor


def token_ids(pieces: Sequence[str], dictionary: Dictionary) -> Tensor:
    """Ids of subwords with end of sentence, ``[L]``.

    Text that is spelt like a special symbol, such as ``</s>``, becomes the unknown word.
    """
    ids = [dictionary.index(piece) for piece in pieces]
    ids = [i if i >= dictionary.nspecial else dictionary.unk() for i in ids]
    return torch.tensor([*ids, dictionary.eos()])


def source_batch(
    task: tasks.FairseqTask, sentences: Sequence[Tensor], device: torch.device
) -> dict[str, Tensor]:
    """Source sentences ``[S]`` as the input of fairseq's models, on ``device``."""
    tokens = data_utils.collate_tokens(
        sentences, task.source_dictionary.pad(), left_pad=task.cfg.left_pad_source
    )
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return {"src_tokens": tokens.to(device), "src_lengths": lengths.to(device)}


def batches_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices of sentences of similar length; a padded batch has at most ``max_tokens`` tokens, or
    one sentence."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True):
        if batch and lengths[batch[0]] * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
