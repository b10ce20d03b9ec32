"""The registry of kernels. A kernel is registered for an operation and the plain functions that it
replaces; if one of these has been edited, the kernel is not used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..modules.operation import Implementation, Operation
from .fingerprint import changed_since, closure

logger = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


class Registered(NamedTuple):
    """A kernel, whether in use or not.

    Attributes:
        name: its file, relative to the package.
        operation: the operation that it implements.
        stands_for: the plain functions, classes and constants that it replaces.
    """

    name: str
    operation: Operation[Any, Any]
    kernel: Implementation
    stands_for: Sequence[Any]


REGISTRY: list[Registered] = []
_off: dict[str, list[str]] = {}  # what has changed, and the files of the kernels that are off


def kernel(
    operation: Operation[Any, Any], supports: Callable[..., bool], stands_for: Sequence[Any] = ()
) -> Callable[[Function], Function]:
    """Registers the decorated function for ``operation``.

    Args:
        supports: see ``Implementation``.
        stands_for: plain functions and classes that it replaces besides the operation, including
            those that they call. If one has changed since the kernel was written (see
            ``fingerprint``), the kernel is not used; see ``warn_of_changes``.
    """

    def register(function: Function) -> Function:
        path = function.__module__.partition(".")[2].replace(".", "/") + ".py"
        found = Registered(
            path, operation, Implementation(supports, function), [operation, *stands_for]
        )
        REGISTRY.append(found)
        changed = changed_since(closure(found.stands_for))
        if changed:
            _off.setdefault(", ".join(changed), []).append(path)
        else:
            operation.implementations.append(found.kernel)
        return function

    return register


def warn_of_changes() -> None:
    """Logs a warning for each change of plain functions, with the kernels that are off."""
    for changed, paths in _off.items():
        kernels = "kernel" if len(paths) == 1 else "kernels"
        verb = "is" if len(paths) == 1 else "are"
        found = (changed, kernels, ", ".join(paths), verb)
        logger.warning("%s has changed; its %s in %s %s off", *found)
