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
from .fingerprint import Place, defined_in, is_plain, reached


class Names:
    """The names through which plain functions reach the functions, classes and constants of their
    ``closure``, and the objects that they refer to when this is created. A function or class that
    was replaced earlier is detected because it is defined elsewhere.

    Args:
        roots: plain functions and classes, or classes of torch.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        found = {(id(owner), name): (owner, place) for owner, name, place in _uses(roots)}
        self._owners = [owner for owner, _place in found.values()]
        self._spaces: list[Mapping[str, Any]] = [vars(owner) for owner in self._owners]
        self._names = [name for _owner, name in found]
        objects = map(getitem, self._spaces, self._names)
        places = [place for _owner, place in found.values()]
        self._objects = [
            each if _is_of(each, place) else None
            for each, place in zip(objects, places, strict=True)
        ]

    def are_kept(self) -> bool:
        """Whether they still refer to these objects."""
        try:
            return all(map(is_, map(getitem, self._spaces, self._names), self._objects))
        except KeyError:  # one is deleted
            return False

    def replaced(self) -> list[str]:
        """The names that refer to other objects now, as ``Owner.name``."""
        each = zip(self._owners, self._names, self._objects, strict=True)
        return sorted(
            f"{getattr(owner, '__qualname__', owner.__name__)}.{name}"
            for owner, name, before in each
            if vars(owner).get(name) is not before
        )


def _uses(roots: Sequence[Any]) -> Iterator[tuple[Any, str, Place | None]]:
    """Modules, classes and operations, each with a name in it, and where that is defined, if that
    is not outside the plain modules and the definition is not decorated."""
    for root in roots:
        if root.__module__.startswith("torch."):
            yield root, "forward", Place(root.__module__, f"{root.__qualname__}.forward")
    for place, source, origins, _digest in reached(roots):
        module = sys.modules[place.module]
        for name in origins.keys() & vars(module).keys():
            defined = origins[name]
            yield module, name, defined if defined and is_plain(defined.module) else None
        *outer, name = place.name.split(".")
        owner = functools.reduce(getattr, outer, module)
        if name not in vars(owner):
            continue
        yield owner, name, place
        value = vars(owner)[name]
        if isinstance(value, Operation):
            yield value, "plain", place
        elif isinstance(value, type):
            for part in (part for whole in source for part in whole.body):
                for name in defined_in(part) & vars(value).keys():
                    own = Place(place.module, f"{place.name}.{name}")
                    yield value, name, None if getattr(part, "decorator_list", None) else own


def _is_of(value: Any, place: Place | None) -> bool:
    """Whether a function or class is the one that is defined at ``place``; True for others."""
    if place is None or not isinstance(value, FunctionType | type):
        return True
    if isinstance(value, FunctionType):
        return (value.__globals__["__name__"], value.__code__.co_qualname) == place
    return (value.__module__, value.__qualname__) == place
