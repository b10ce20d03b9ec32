"""Kernels register themselves here, each for an operation and for the plain functions whose results
it gives. If one of those has been edited, the kernel is not used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..modules.operation import Implementation, Operation
from .fingerprint import changed_since, closure

logger = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


class Registered(NamedTuple):
    """A kernel, whether it is in use or not.

    Attributes:
        name: its file below the package.
        operation: the one that it implements.
        stands_for: the plain functions, classes and constants whose results it gives.
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
        stands_for: plain functions and classes beside the operation that it stands for; those that
            they call count too. If one has changed since the kernel was written (see
            ``fingerprint``), the kernel is not used, and the log says so.
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
