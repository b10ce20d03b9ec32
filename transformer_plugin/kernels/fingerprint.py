"""Whether plain functions are as they were when the kernels were written for them.

``fingerprints.json`` holds a hash of the source of each. If you change an equation and its kernels,
so that ``tests/kernels`` pass again, run ``python -m transformer_plugin.kernels`` to record it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import io
import json
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from types import FunctionType
from typing import Any

from ..modules.operation import Operation

FILE = Path(__file__).with_name("fingerprints.json")
_SEAM = Operation.__module__
_PACKAGE = _SEAM.partition(".")[0]
_PLAIN = (f"{_PACKAGE}.modules.", f"{_PACKAGE}.search.")
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
_STATEMENT_ENDS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


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


def tokens(source: str) -> Iterator[str]:
    """The tokens of some source without comments, docstrings and line breaks: the same for
    reformatted code, and in every version of Python."""
    text = textwrap.dedent(source)
    lines = text.splitlines(keepends=True)
    before, opened = tokenize.NEWLINE, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # from Python 3.12 on the parts of an f-string are tokens
            opened.append(token.start)
        elif kind == "FSTRING_END":
            start = opened.pop()
            if not opened:
                yield _between(lines, start, token.end)
        elif opened or token.type in _LAYOUT:
            continue
        elif token.type in _STATEMENT_ENDS:
            yield kind
        elif token.type != tokenize.STRING or before not in _STATEMENT_ENDS:
            yield token.string
        if token.type not in _LAYOUT:
            before = token.type


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text from a place, its row from 1 and its column, to another."""
    (first, left), (last, right) = start, end
    if first == last:
        return lines[first - 1][left:right]
    return lines[first - 1][left:] + "".join(lines[first : last - 1]) + lines[last - 1][:right]


@functools.cache
def _of_source(each: Any) -> str:
    return _hash(tokens(inspect.getsource(each)))


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
