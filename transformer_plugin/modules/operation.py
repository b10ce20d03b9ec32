"""The seam between the paper and its fast implementations.

An operation is a plain function that may be replaced. Code outside this package adds faster
implementations. Each handles the calls whose arguments it supports and returns the same result as
the plain function. Without implementations, an operation runs its plain function, which is also
what ``torch.compile`` and ``torch.func`` see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active as _is_transforming
from torch.nn.modules import module as torch_module

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Implementation(NamedTuple):
    """A faster function with the signature of the plain one.

    Attributes:
        supports: called with the same arguments; whether ``run`` can handle them.
        run: the function.
    """

    supports: Callable[..., bool]
    run: Callable[..., object]


class Operation(Generic[Arguments, Result]):
    """A plain function, or the first of its implementations that supports the arguments.

    Attributes:
        plain: the function as it is written.
        implementations: faster functions, in the order in which they are tried.
    """

    def __init__(self, plain: Callable[Arguments, Result]) -> None:
        functools.update_wrapper(self, plain)
        self.plain = plain
        self.implementations: list[Implementation] = []

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if torch.compiler.is_compiling() or _is_transforming():
            return self.plain(*args, **kwargs)
        for each in self.implementations:
            if each.supports(*args, **kwargs):
                return each.run(*args, **kwargs)  # type: ignore[return-value]
        return self.plain(*args, **kwargs)


def operation(plain: Callable[Arguments, Result]) -> Operation[Arguments, Result]:
    """Marks a plain function as one that faster implementations may replace."""
    return Operation(plain)


def is_exactly(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether ``module`` computes what the class ``kind`` defines and nothing else: it is not of a
    subclass (parametrisations create one), has no methods or tensor types of its own, has no hooks,
    and is called as torch calls modules."""
    return (
        type(module) is kind
        and kind.__call__ is _CALL
        and _PARAMETERS.issuperset(map(type, module._parameters.values()))
        and _methods(kind).isdisjoint(vars(module))  # type: ignore[arg-type]
        and not any(map(vars(module).get, _HOOKS))
        and not any(map(vars(torch_module).get, _GLOBAL_HOOKS))
    )


def is_exactly_of(module: nn.Module, *packages: str) -> bool:
    """Whether ``module`` is exactly an instance of a class of these packages."""
    package = type(module).__module__.partition(".")[0]
    return package in packages and is_exactly(module, type(module))


def is_unmodified(part: nn.Module) -> bool:
    """Whether ``part`` consists of torch's and the plugin's own modules, unchanged and without
    hooks: others may depend on all rows of a batch, or store something on ``self``. False with
    batch normalisation, whose statistics would count idle rows, and with ``max_norm`` of an
    embedding, which would also change the vector of an idle row's token."""
    return all(
        is_exactly_of(module, "torch", "transformer_plugin")
        and not isinstance(module, nn.BatchNorm1d)
        and getattr(module, "max_norm", None) is None
        for module in part.modules()
    )


_CALL = nn.Module.__call__
_PARAMETERS = frozenset([nn.Parameter, Tensor, type(None)])
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{hooks}" for hooks in _HOOKS)


@functools.cache
def _methods(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name, None)))
