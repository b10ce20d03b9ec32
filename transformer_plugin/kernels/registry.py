"""The registry of kernels. A kernel is registered for an operation and the plain functions that it
stands for; while one of these has been edited or replaced, the kernel is not used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..modules.operation import Implementation, Operation
from .fingerprint import changed_since, closure
from .replaced import Names

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
            ``fingerprint``), the kernel is not used; see ``warn_of_changes``. Nor is it used while
            a program has replaced one (see ``replaced``). It may be a class of torch.
    """

    def register(function: Function) -> Function:
        path = function.__module__.partition(".")[2].replace(".", "/") + ".py"
        roots = [operation, *stands_for]
        implementation = Implementation(_while_kept(path, roots, supports), function)
        REGISTRY.append(Registered(path, operation, implementation, roots))
        changed = changed_since(closure(roots))
        if changed:
            _off.setdefault(", ".join(changed), []).append(path)
        else:
            operation.implementations.append(implementation)
        return function

    return register


def _while_kept(
    path: str, roots: Sequence[Any], supports: Callable[..., bool]
) -> Callable[..., bool]:
    """``supports``, but False while a program has replaced something that the kernel stands for."""
    names = Names(roots)
    said: set[str] = set()

    def kept_and_supported(*args: Any, **kwargs: Any) -> bool:
        if names.are_kept():
            return supports(*args, **kwargs)
        replaced = ", ".join(names.replaced())
        if replaced not in said:
            said.add(replaced)
            logger.warning("a program has replaced %s; the kernel in %s is off", replaced, path)
        return False

    return kept_and_supported


def warn_of_changes() -> None:
    """Logs a warning for each change of plain functions, with the kernels that are off."""
    for changed, paths in _off.items():
        noun, verb = ("kernel", "is") if len(paths) == 1 else ("kernels", "are")
        logger.warning("%s has changed; its %s in %s %s off", changed, noun, ", ".join(paths), verb)
