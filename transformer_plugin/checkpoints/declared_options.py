"""The options that a registered component of fairseq declares, and their types."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException


@dataclass(frozen=True)
class DeclaredOptions:
    """The options of a component.

    Attributes:
        names: the names of all options.
        own: those of them that neither fairseq nor the plugin declares, but the user.
        wrong: takes options; yields the name of each wrong one and the reason.
    """

    names: set[str]
    own: set[str]
    wrong: Callable[[dict[str, Any]], Iterator[tuple[str, str]]]


def declared_options(kind: str, name: str | None) -> DeclaredOptions | None:
    """The options that a component declares; None if no such component is registered."""
    if kind == "model":
        classes, dataclasses = MODEL_REGISTRY | ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
    elif kind == "task":
        classes, dataclasses = TASK_REGISTRY, TASK_DATACLASS_REGISTRY
    else:
        registry = REGISTRIES.get(kind, {"registry": {}, "dataclass_registry": {}})
        classes, dataclasses = registry["registry"], registry["dataclass_registry"]
    if name not in classes:
        return None
    if name in dataclasses:
        return _of_dataclass(dataclasses[name])
    return _of_arguments(classes[name])


@functools.cache
def _of_dataclass(dataclass: type) -> DeclaredOptions:
    """The fields of a dataclass, with OmegaConf's type check, as in fairseq."""
    declared = OmegaConf.structured(dataclass)
    names = {str(name) for name in declared} - {"_name"}
    known = {n for base in dataclass.__mro__ if is_builtin(base) for n in _fields(base)}

    def problem(options: dict[str, Any]) -> str | None:
        try:
            OmegaConf.merge(declared, options)
        except (OmegaConfBaseException, AssertionError) as error:
            return next(iter(str(error).splitlines()), "of another type")
        return None

    def wrong(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
        given = {n: options[n] for n in names & options.keys() if options[n] is not None}
        if problem(given):
            for name, value in given.items():
                if why := problem({name: value}):
                    yield name, why

    return DeclaredOptions(names, names - known, wrong)


@functools.cache
def _of_arguments(component: type) -> DeclaredOptions:
    """The options that a component without a dataclass adds to the command line."""
    actions = _actions(component)
    known = {n for base in component.__mro__ if is_builtin(base) for n in _actions(base)}

    def problem(action: argparse.Action, value: Any) -> str | None:
        if action.nargs == 0:  # a switch
            return None if isinstance(value, bool) else "expected True or False"
        if action.choices is not None and value not in action.choices:
            return f"expected one of {', '.join(map(str, action.choices))}"
        # fairseq's tasks store True where the command line has the text "True".
        types: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), str: (bool, str)}
        expected = types.get(action.type)
        if action.nargs is not None:
            expected = None
        if expected and not isinstance(value, (*expected, type(action.default))):
            return f"expected {expected[-1].__name__}, found {type(value).__name__}"
        return None

    def wrong(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for name, action in actions.items():
            value = options.get(name)
            if value is not None and (why := problem(action, value)):
                yield name, why

    return DeclaredOptions(set(actions), actions.keys() - known, wrong)


def _actions(component: type) -> dict[str, argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    getattr(component, "add_args", lambda parser: None)(parser)
    return {action.dest: action for action in parser._actions}


def _fields(kind: type) -> Iterable[str]:
    return getattr(kind, "__dataclass_fields__", ())


def is_builtin(kind: object) -> bool:
    """Whether a class is fairseq's or the plugin's, and not the user's own."""
    return getattr(kind, "__module__", "").startswith(("fairseq.", "transformer_plugin."))
