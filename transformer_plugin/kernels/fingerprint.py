"""Whether plain functions are as they were when the kernels were written for them.

``fingerprints.json`` holds a hash of the source of each. If you change an equation and its kernels,
so that ``tests/kernels`` pass again, run ``python -m transformer_plugin.kernels`` to record it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from types import FunctionType
from typing import Any

from ..modules.operation import Operation

FILE = Path(__file__).with_name("fingerprints.json")
_SEAM = Operation.__module__
_PACKAGE = _SEAM.partition(".")[0]
_PLAIN = (f"{_PACKAGE}.modules.", f"{_PACKAGE}.search.")


def closure(roots: Iterable[Any]) -> dict[str, str]:
    """What these plain functions and classes are, with all of this package's functions, classes and
    constants that they name: a hash of the source of each, by ``file:name``."""
    found: dict[str, str] = {}
    waiting = [_plain(root) for root in roots]
    while waiting:
        each = waiting.pop()
        name = f"{_file(each.__module__)}: {each.__qualname__}"
        if name in found:
            continue
        found[name] = _of_source(each)
        names = vars(sys.modules[each.__module__])
        for used in sorted(_names(each) & names.keys()):
            value = _plain(names[used])
            if isinstance(value, FunctionType | type):
                waiting += _of_package([value])
            elif isinstance(value, bool | int | float | str | tuple | list | dict | Set):
                found[f"{_file(each.__module__)}: {used}"] = _hash([_text(value)])
                waiting += _of_package(_leaves(value))
    return found


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, Operation) else value


def _of_package(values: Iterable[Any]) -> list[Any]:
    found = [v for v in values if isinstance(v, FunctionType | type)]
    return [v for v in found if v.__module__.startswith(_PLAIN) and v.__module__ != _SEAM]


def _leaves(value: Any) -> Iterator[Any]:
    """What a container holds, and what the containers in it hold."""
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | Set):
        for each in value:
            yield from _leaves(each)
    else:
        yield _plain(value)


def _text(value: Any) -> str:
    """The same in each process, other than ``repr``, which gives addresses and orders sets."""
    if isinstance(value, dict):
        return _text([*value.items()])
    if isinstance(value, Set):
        return _text(sorted(map(_text, value)))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    value = _plain(value)
    if isinstance(value, FunctionType | type):
        return f"{_file(value.__module__)}: {value.__qualname__}"
    return repr(value) if isinstance(value, bool | int | float | str) else type(value).__name__


def changed_since(current: dict[str, str]) -> list[str]:
    """Those whose hash is not the recorded one."""
    recorded = _recorded()
    return sorted(name for name, value in current.items() if recorded.get(name) != value)


@functools.cache
def _recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return found


def structure(source: str) -> Any:
    """What some source says, as nested lists: without comments, docstrings and layout, and the same
    in every version of Python, other than ``ast.dump``."""
    return _structure(ast.parse(textwrap.dedent(source)))


def _structure(node: Any) -> Any:
    if isinstance(node, ast.JoinedStr):  # Python 3.12 puts empty constants between its parts
        node = [part for part in node.values if getattr(part, "value", None) != ""]
    if isinstance(node, ast.AST):
        fields = [(name, _structure(value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, *(each for each in fields if each[1] not in ("None", []))]
    if isinstance(node, list):
        return [_structure(each) for each in node if not _is_text_alone(each)]
    return repr(node)


def _is_text_alone(node: Any) -> bool:
    """Whether a statement is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@functools.cache
def _of_source(each: Any) -> str:
    return _hash([repr(structure(inspect.getsource(each)))])


@functools.cache
def _names(each: Any) -> set[str]:
    """The names that its source reads, decorators and default arguments too; not annotations,
    which nothing evaluates."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(textwrap.dedent(inspect.getsource(each)))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                waiting += [child for child in children if isinstance(child, ast.AST)]
    return found


def _file(module: str) -> str:
    return module.partition(".")[2].replace(".", "/") + ".py"


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def record(current: dict[str, str]) -> None:
    """Takes these for what the kernels were written for."""
    FILE.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n", encoding="utf-8")
