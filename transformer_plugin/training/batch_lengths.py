"""Everything that depends on the lengths of a batch's sentences is computed on the host, so that a
GPU's forward pass neither launches kernels for it nor makes the host wait for its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from ..criterion import VaswaniCrossEntropy, omits_targets
from ..model import VaswaniTransformer
from ..modules.packing import prepare_packing
from ..throughput import sentence_lengths


def prepare_lengths(
    model: nn.Module, criterion: nn.Module, moved: dict[str, Any], batch: dict[str, Any]
) -> None:
    """Prepares the packing of a batch on a GPU, and adds what the criterion asks about it: the
    ``vaswani_lengths`` by which it counts FLOPs, and whether it ``omits_targets``. Does nothing for
    models that are not the plugin's.

    Args:
        moved: fairseq's sample on the GPU.
        batch: the same sample on the host.
    """
    if isinstance(model, VaswaniTransformer):
        pad = model.decoder.padding_idx
        moved["vaswani_lengths"] = sentence_lengths(batch, pad)
        if isinstance(criterion, VaswaniCrossEntropy):  # another loss may have other targets
            moved["vaswani_omits_targets"] = omits_targets(batch, pad)
        for tokens, original in zip(_tokens(moved), _tokens(batch), strict=True):
            prepare_packing(tokens, original, pad)


def _tokens(sample: dict[str, Any]) -> Iterator[Tensor]:
    yield sample["net_input"]["src_tokens"]
    yield sample["net_input"]["prev_output_tokens"]
    yield sample["target"]
