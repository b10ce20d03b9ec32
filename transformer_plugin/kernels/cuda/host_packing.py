"""Packing of token ids before they are on the GPU. The size of the result depends on the ids, so
the GPU would have to finish all earlier work first and tell the host."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ...modules.packing import Packing, pack_tokens, prepare_packing
from ..registry import kernel

# For each tensor of token ids: its version and padding, and what ``pack_tokens`` returns for these.
_prepared: Any = WeakTensorKeyDictionary()


def _is_copied_from_host(tokens: Tensor, original: Tensor, padding_idx: int) -> bool:
    return original.device.type == "cpu" and tokens.device.type != "cpu"


@kernel(prepare_packing, _is_copied_from_host)
def pack_on_host(tokens: Tensor, original: Tensor, padding_idx: int) -> None:
    """Packs the original, and copies the result to the device without waiting for it."""
    rows, packing = pack_tokens.plain(original, padding_idx)
    moved = copy.copy(packing)
    entries = {"offsets": packing.offsets, **vars(packing)}  # offsets are computed on first use
    vars(moved).update({name: _moved(each, tokens.device) for name, each in entries.items()})
    result = _moved(rows, tokens.device), moved
    _prepared[tokens] = (tokens._version, padding_idx), result


def _moved(value: Any, device: torch.device) -> Any:
    if not isinstance(value, Tensor):
        return value
    if device.type == "cuda":
        value = value.pin_memory()  # else the copy may wait for the device
    return value.to(device, non_blocking=True)


def _supports(tokens: Tensor, padding_idx: int, multiple: int = 1) -> bool:
    found = None if multiple > 1 else _prepared.get(tokens)
    return found is not None and found[0] == (tokens._version, padding_idx)


@kernel(pack_tokens, _supports)
def packed_on_host(tokens: Tensor, padding_idx: int, multiple: int = 1) -> tuple[Tensor, Packing]:
    """See ``pack_tokens``; what ``pack_on_host`` has prepared for these unchanged ids."""
    return _prepared[tokens][1]
