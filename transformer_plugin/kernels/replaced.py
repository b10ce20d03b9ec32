"""Detects plain functions that a program has replaced while it runs, as by
``MultiHeadAttention.attend = mine``. ``fingerprint`` sees their source only."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from operator import getitem, is_
from types import FunctionType
from typing import Any

from ..modules.operation import Operation
from .fingerprint import defined_in, names_in, origin, reached


class Names:
    """The names through which plain functions reach the functions, classes and constants of their
    ``closure``, and the objects that they stand for at first. What a program has replaced before
    is seen if it is a function or class of its own.

    Args:
        roots: plain functions and classes, or classes of torch.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        found = {(id(owner), name): owner for owner, name in _uses(roots) if name in vars(owner)}
        self._owners = list(found.values())
        self._spaces: list[Mapping[str, Any]] = [vars(owner) for owner in self._owners]
        self._names = [name for _owner, name in found]
        objects = map(getitem, self._spaces, self._names)
        self._objects = [None if _is_foreign(each) else each for each in objects]

    def are_kept(self) -> bool:
        """Whether they still stand for these objects."""
        try:
            return all(map(is_, map(getitem, self._spaces, self._names), self._objects))
        except KeyError:  # one is deleted
            return False

    def replaced(self) -> list[str]:
        """Those that do not."""
        each = zip(self._owners, self._names, self._objects, strict=True)
        return sorted(
            f"{getattr(owner, '__qualname__', owner.__name__)}.{name}"
            for owner, name, before in each
            if vars(owner).get(name) is not before
        )


def _uses(roots: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """Modules, classes and operations, each with a name in it."""
    yield from ((root, "forward") for root in roots if root.__module__.startswith("torch."))
    for place, source in reached(roots):
        module = sys.modules[place.module]
        yield from ((module, name) for name in names_in(source) if origin(place.module, name))
        *outer, name = place.name.split(".")
        owner = functools.reduce(getattr, outer, module)
        yield owner, name
        value = getattr(owner, name)
        if isinstance(value, Operation):
            yield value, "plain"
        elif isinstance(value, type):
            body = [part for whole in source for part in whole.body]
            yield from ((value, name) for part in body for name in defined_in(part))


def _is_foreign(value: Any) -> bool:
    ours = (__name__.partition(".")[0] + ".", "torch.")
    return isinstance(value, FunctionType | type) and not value.__module__.startswith(ours)
