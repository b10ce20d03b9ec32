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


def kernel(
    operation: Operation[Any, Any], supports: Callable[..., bool], stands_for: Sequence[Any] = ()
) -> Callable[[Function], Function]:
    """Registers the decorated function for ``operation``.

    Args:
        supports: see ``Implementation``.
        stands_for: plain functions and classes that it replaces besides the operation, including
            those that they call. If one has changed since the kernel was written (see
            ``fingerprint``), the kernel is not used, and a warning is logged.
    """

    def register(function: Function) -> Function:
        path = function.__module__.partition(".")[2].replace(".", "/") + ".py"
        found = Registered(
            path, operation, Implementation(supports, function), [operation, *stands_for]
        )
        REGISTRY.append(found)
        changed = changed_since(closure(found.stands_for))
        if changed:
            logger.warning("%s has changed; its kernel in %s is off", ", ".join(changed), path)
        else:
            operation.implementations.append(found.kernel)
        return function

    return register
