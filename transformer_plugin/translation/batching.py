"""Token ids of subwords, and batches of sentences of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor


def token_ids(pieces: Sequence[str], dictionary: Dictionary) -> Tensor:
    """Ids of subwords with end of sentence, ``[L]``.

    Text that is spelt like a special symbol, such as ``</s>``, becomes the unknown word.
    """
    ids = [dictionary.index(piece) for piece in pieces]
    ids = [i if i >= dictionary.nspecial else dictionary.unk() for i in ids]
    return torch.tensor([*ids, dictionary.eos()])


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
