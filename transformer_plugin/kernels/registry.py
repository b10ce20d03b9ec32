"""Kernels register themselves here, each for an operation and for the plain functions that it
knows by heart; where one of those has been edited, the kernel is off."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..modules.operation import Kernel, Operation
from .fingerprint import changed_since, closure

logger = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


class Registered(NamedTuple):
    """A kernel, whether it is in use or not.

    Attributes:
        name: its file below the package, and its function.
        operation: which it replaces.
        stands_for: the plain functions, classes and constants whose results it gives.
    """

    name: str
    operation: Operation[Any, Any]
    kernel: Kernel
    stands_for: Sequence[Any]


REGISTRY: list[Registered] = []


def kernel(
    operation: Operation[Any, Any], supports: Callable[..., bool], stands_for: Sequence[Any] = ()
) -> Callable[[Function], Function]:
    """Registers the decorated function for ``operation``.

    Args:
        supports: see ``Kernel``.
        stands_for: plain functions and classes beside the operation that it stands for; those that
            they call count too. If one is not as it was when the kernel was written (see
            ``fingerprint``), the kernel is not used, and the log says so.
    """

    def register(function: Function) -> Function:
        path = function.__module__.partition(".")[2].replace(".", "/") + ".py"
        found = Registered(path, operation, Kernel(supports, function), [operation, *stands_for])
        REGISTRY.append(found)
        changed = changed_since(closure(found.stands_for))
        if changed:
            logger.warning("%s has changed; its kernel in %s is off", ", ".join(changed), path)
        else:
            operation.kernels.append(found.kernel)
        return function

    return register
