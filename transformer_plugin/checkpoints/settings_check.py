"""Checks the settings in a checkpoint, ``cfg`` or ``args``, before anything is built from them.

Values must be plain (text, numbers, lists, dictionaries) and without interpolations. Options that
fairseq evaluates must be literals. Options of registered components must have the types that the
components declare. A model must not be larger than its tensors, which are real numbers unless its
class is the user's own.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from fairseq.registry import REGISTRIES

from .. import components  # noqa: F401  (registers the plugin's components with their options)
from ..architectures import built_class
from .declared_options import declared_options, is_builtin
from .evaluated_options import check_evaluated
from .literals import shortened

# A component: its kind, its path in the settings, its name and its options.
Chosen = tuple[str, str, Any, dict[str, Any]]
_MOST_VALUES = 100_000  # a checkpoint of fairseq-train has a few hundred
_DEEPEST = 20
_PLAIN = (str, int, float, type(None))
_NAMED_BY = {"model": ("_name", "arch"), "task": ("task", "_name")}  # fairseq's order
_NAME = re.compile(r"\w[\w-]*")
_LAYER_COUNT = re.compile(r"(\w+_)?layers")
_WIDTH = re.compile(r"(\w+_)?(dim|d_model|d_ff|d_k|d_v|num_heads|attention_heads|hidden_size)")
_WIDEST = 2**16  # always allowed, because a model may ignore the option


def check_settings(state: dict[str, Any]) -> None:
    """Checks both headers of a checkpoint.

    Raises:
        ValueError: a value is wrong; the message names it.
    """
    model = state.get("model") or {}
    for header, kinds in (("cfg", _sections), ("args", _flat)):
        settings = state.get(header)
        if settings is None:
            continue
        for count, (place, name, value) in enumerate(_values(header, settings, 0)):
            if count > _MOST_VALUES:
                raise ValueError(f"{header} holds more than {_MOST_VALUES} values")
            _check_value(place, name, value)
        for kind, place, chosen, options in kinds(settings):
            if chosen is not None and not (isinstance(chosen, str) and _NAME.fullmatch(chosen)):
                raise ValueError(f"{place}: {shortened(chosen)} names no {kind}")
            declared = declared_options(kind, chosen)
            for name, wrong in declared.wrong(options) if declared else ():
                raise ValueError(f"{place}.{name} = {shortened(options[name])}: {wrong}")
            if kind == "model" and declared:  # a name that is not registered builds nothing
                known = {n: value for n, value in options.items() if n not in declared.own}
                _check_sizes(place, known, model)
            if kind == "model" and is_builtin(built_class(chosen)):
                _check_real(model)


def check_registered(state: dict[str, Any]) -> None:
    """Checks that the model and its task are registered, so that fairseq can build them.

    Raises:
        ValueError: one is not registered; the message names it.
    """
    settings = state.get("args")
    kinds: Callable[[Any], Iterator[Chosen]] = _flat
    if settings is None:
        settings, kinds = state.get("cfg"), _sections
    for kind, place, chosen, _ in kinds(settings or {}):
        if kind in ("model", "task") and declared_options(kind, chosen) is None:
            raise ValueError(
                f"{place}: {shortened(chosen)} is not a registered {kind}: give fairseq the"
                " --user-dir that defines it, or import its package before you load it in Python"
                " (the plugin's other commands know only its own)"
            )


def largest_numbers(state: dict[str, Any]) -> str:
    """The four largest numbers in the model's settings, as ``PLACE.NAME = VALUE``."""
    settings: list[tuple[float, str]] = []
    for header, kinds in (("cfg", _sections), ("args", _flat)):
        for kind, place, chosen, options in kinds(state.get(header) or {}):
            if kind == "model":
                declared = declared_options(kind, chosen)
                for name in options.keys() & (declared.names if declared else options.keys()):
                    numbers = map(int, re.findall(r"\d+", str(options[name])))
                    text = f"{place}.{name} = {shortened(options[name])}"
                    settings.append((max(numbers, default=0), text))
    return ", ".join(text for _, text in sorted(settings, reverse=True)[:4])


def _values(place: str, value: Any, depth: int) -> Iterator[tuple[str, str, Any]]:
    """Every value inside ``value``, with its path and the name of its option."""
    if depth > _DEEPEST:
        raise ValueError(f"{place[:80]} is nested more than {_DEEPEST} deep")
    name = place.rpartition(".")[2]
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, dict):
        for key, below in value.items():
            yield f"{place}: a key", "", key
            yield from _values(f"{place}.{key}", below, depth + 1)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _values(place, below, depth + 1)
    else:
        yield place, name, value


def _check_value(place: str, name: str, value: Any) -> None:
    if not isinstance(value, _PLAIN):
        raise ValueError(f"{place} is of type {type(value).__name__}, which settings never are")
    if isinstance(value, str):
        if "${" in value:
            raise ValueError(f"{place} = {shortened(value)}: interpolations are refused")
        try:
            check_evaluated(name, value)
        except ValueError as error:
            raise ValueError(f"{place} = {shortened(value)}: {error}") from None


def _sections(cfg: Any) -> Iterator[Chosen]:
    """The components that ``cfg`` chooses."""
    for kind in ("model", "task", *REGISTRIES):
        options = cfg.get(kind)
        if isinstance(options, str):
            options = {"_name": options}
        if isinstance(options, Namespace):
            options = vars(options)
        if options is not None and not isinstance(options, dict):
            raise ValueError(f"cfg.{kind} = {shortened(options)} is not a group of settings")
        if options:
            names = (options.get(key) for key in _NAMED_BY.get(kind, ("_name", kind)))
            yield kind, f"cfg.{kind}", next((n for n in names if n is not None), None), options


def _flat(args: Any) -> Iterator[Chosen]:
    """The components that ``args`` chooses; all its options are on one level."""
    options = vars(args) if isinstance(args, Namespace) else args
    for kind in ("model", "task", *REGISTRIES):
        chosen = options.get("arch" if kind == "model" else kind)
        if chosen is not None:
            yield kind, "args", chosen, options


def _check_real(tensors: dict[str, Any]) -> None:
    """Checks that no tensor is complex, as in all models of fairseq and the plugin."""
    for name, tensor in tensors.items():
        if tensor.is_complex():
            raise ValueError(f"model: {shortened(name)} holds complex numbers")


def _check_sizes(place: str, options: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Checks that there are at least as many tensors as layers, and a tensor for each width, which
    is what the names mean to fairseq and the plugin."""
    widest = max((n for tensor in tensors.values() for n in tensor.shape), default=0)
    for name, value in options.items():
        if not isinstance(value, int) or not isinstance(name, str):
            continue
        if tensors and _LAYER_COUNT.fullmatch(name) and value > len(tensors):
            raise ValueError(
                f"{place}.{name} = {value}: the model has no more than {len(tensors)} tensors"
            )
        if _WIDTH.fullmatch(name) and value > max(widest, _WIDEST):
            raise ValueError(f"{place}.{name} = {value}: no tensor is wider than {widest}")
