"""Checks that a checkpoint holds only the kinds of data that fairseq saves.

torch's unpickler runs no code, but it creates objects that break later code, and allocates as much
memory as a pickle requests.
"""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq.logging.meters import Meter
from torch import Tensor

from .literals import shortened

_DEEPEST = 50
_SCALARS = (str, int, float, bytes, type(None), np.generic, np.ndarray)
_CONTAINERS = (dict, OrderedDict, defaultdict, list, tuple, deque, torch.Size)
_METERS = {kind.__name__ for kind in Meter.__subclasses__()}
_LAYOUT = {  # the parts of a checkpoint; each may be None
    **dict.fromkeys(("model", "cfg", "extra_state", "task_state", "criterion"), dict),
    **{"args": Namespace, "optimizer_history": list, "last_optimizer_state": dict},
}
# Sections of cfg that must be dictionaries.
_GROUPS = ("common", "distributed_training", "dataset", "optimization", "checkpoint")


class NotFinite(ValueError):
    """Weights are inf or nan."""


def check_contents(state: Any, size: int, check_weights: bool = True) -> None:
    """Checks everything except the settings (see ``settings_check``).

    Args:
        size: size of the file in bytes.
        check_weights: whether to check for inf and nan.

    Raises:
        ValueError: a check failed; the message names the value.
    """
    if not isinstance(state, dict):
        raise ValueError(f"it holds a {type(state).__name__}, not a checkpoint")
    storages: dict[int, int] = {}
    total = 0
    for place, tensor in _tensors(state):
        _check_tensor(place, tensor)
        storage = tensor.untyped_storage()
        total += storage.nbytes() - storages.get(storage.data_ptr(), 0)
        storages[storage.data_ptr()] = storage.nbytes()
        if total > size:
            raise ValueError(f"{place} and others hold more than the file's {size:,} bytes")
    _check_layout(state)
    if broken := not_finite((state.get("model") or {}) if check_weights else {}):
        raise NotFinite(
            f"{len(broken)} tensors hold inf or nan, the first is {broken[0]}: training diverged;"
            " use an earlier checkpoint, and continue with a lower --lr or more --warmup-updates"
        )


def _tensors(state: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor with its path in ``state``.

    Raises:
        ValueError: something is not data that fairseq saves.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, Any, int]] = [("", state, 0)]
    while waiting:
        place, value, depth = waiting.pop()
        if isinstance(value, Tensor):
            yield place, value
            continue
        if type(value) in (int, bool) and abs(value) >= 2**63:
            raise ValueError(f"{place} is a number of more than 63 bits")
        if isinstance(value, _SCALARS) or id(value) in seen:
            continue
        seen.add(id(value))
        if depth > _DEEPEST:
            raise ValueError(f"{place[:80]} is nested more than {_DEEPEST} deep")
        if type(value) is OrderedDict and vars(value):  # torch stores module versions there
            if vars(value).keys() != {"_metadata"}:
                raise ValueError(f"{place} is a dictionary with attributes")
            waiting.append((f"{place}._metadata", *vars(value).values(), depth + 1))
        if isinstance(value, Namespace | SimpleNamespace):
            value = vars(value)
            if not all(isinstance(name, str) for name in value):
                raise ValueError(f"{place} has a name that is not text")
        if type(value) not in _CONTAINERS:
            kind = value.__name__ if isinstance(value, type) else type(value).__name__
            raise ValueError(f"{place} is of type {kind}, which no checkpoint of fairseq holds")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in items:
            if not isinstance(key, str | int):
                raise ValueError(f"{place} has the key {shortened(key)}")
            waiting.append((f"{place}.{_key(key)}".lstrip("."), below, depth + 1))


def _key(key: object) -> str:
    return str(key)[:60].replace("\n", " ")


def _check_tensor(place: str, tensor: Tensor) -> None:
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        raise ValueError(f"{place} is a {type(tensor).__name__}, not a plain tensor")
    reach = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length > 1:
            if stride < reach:
                raise ValueError(f"{place} is an expanded tensor: its elements share memory")
            reach += stride * (length - 1)


def not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    """The names of the tensors that hold inf or nan."""
    return [name for name, w in weights.items() if isinstance(w, Tensor) and not _finite(w)]


def _finite(weight: Tensor) -> bool:
    try:
        return bool(weight.isfinite().all())
    except NotImplementedError:  # 8-bit types
        return bool(weight.float().isfinite().all())


def _check_layout(state: dict[str, Any]) -> None:
    """Checks the types that fairseq relies on without checking them."""
    for name, kind in _LAYOUT.items():
        _expect(name, state.get(name), kind)
    for name, weight in (state.get("model") or {}).items():
        _expect(f"model.{_key(name)}", weight, Tensor, needed=True)
    for entry in state.get("optimizer_history") or []:
        _expect("optimizer_history", entry, dict, needed=True)
        _expect("optimizer_history.num_updates", entry.get("num_updates"), int)
        _expect("optimizer_history.lr_scheduler_state", entry.get("lr_scheduler_state"), dict)
    extra = state.get("extra_state") or {}
    _expect("extra_state.train_iterator", extra.get("train_iterator"), dict)
    position = extra.get("train_iterator") or {}
    for name in ("epoch", "iterations_in_epoch"):
        _expect(f"extra_state.train_iterator.{name}", position.get(name), int)
    if (position.get("epoch") or 0) < 0:
        raise ValueError(f"extra_state.train_iterator.epoch = {position['epoch']} is negative")
    for name in ("metrics", "early_stopping"):
        _expect(f"extra_state.{name}", extra.get(name), dict)
    _expect("extra_state.averaged", extra.get("averaged"), list)
    _expect_number("extra_state.previous_training_time", extra.get("previous_training_time"))
    for group, meters in (extra.get("metrics") or {}).items():
        _check_meters(f"extra_state.metrics.{_key(group)}", meters)
    moments = (state.get("last_optimizer_state") or {}).get("state")
    for number, moment in moments.items() if isinstance(moments, dict) else ():
        step = moment.get("step") if isinstance(moment, dict) else None
        _expect_number(f"last_optimizer_state.state.{_key(number)}.step", step)
    cfg = state.get("cfg") or {}
    for name in _GROUPS:
        _expect(f"cfg.{name}", cfg.get(name), dict)
    _expect("cfg.checkpoint.save_dir", (cfg.get("checkpoint") or {}).get("save_dir"), str)
    dictionaries = (state.get("task_state") or {}).get("dictionaries")
    _expect("task_state.dictionaries", dictionaries, dict)
    for language, known in (dictionaries or {}).items():
        _expect(f"task_state.dictionaries.{_key(language)}", known, dict, needed=True)


def _check_meters(place: str, meters: Any) -> None:
    """Checks meters: fairseq calls the class named by their third entry."""
    _expect(place, meters, list, needed=True)
    for meter in meters:
        match meter:
            case (int(), str(), str(kind), dict()) if kind in _METERS:
                continue
        raise ValueError(f"{place}: {shortened(meter)} is not a meter of fairseq")


def _expect_number(place: str, value: Any) -> None:
    """A number; several processes save a tensor of one."""
    if not (isinstance(value, Tensor) and value.numel() == 1):
        _expect(place, value, Real)


def _expect(place: str, value: Any, kind: type, needed: bool = False) -> None:
    if isinstance(value, kind) or (value is None and not needed):
        return
    raise ValueError(
        f"{place} = {shortened(value)} is of type {type(value).__name__}, not {kind.__name__}"
    )
