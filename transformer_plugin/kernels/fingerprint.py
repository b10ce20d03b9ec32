"""Whether plain functions are as they were when the kernels were written for them.

``fingerprints.json`` holds a hash of the source of each. If you change an equation and its kernels,
so that ``tests/kernels`` pass again, run ``python -m transformer_plugin.kernels`` to record it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import json
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from ..modules.operation import Operation

FILE = Path(__file__).with_name("fingerprints.json")
_PACKAGE = Operation.__module__.partition(".")[0]
_PLAIN = (f"{_PACKAGE}.modules.", f"{_PACKAGE}.search.")
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
_STATEMENT_ENDS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def closure(roots: Iterable[Any]) -> dict[str, str]:
    """What these plain functions and classes are, with all of this package's functions, classes and
    constants that they name: a hash of the source of each, by ``file:name``."""
    found: dict[str, str] = {}
    waiting = [root.plain if isinstance(root, Operation) else root for root in roots]
    while waiting:
        each = waiting.pop()
        name = f"{_file(each.__module__)}: {each.__qualname__}"
        if name in found:
            continue
        found[name] = _of_source(each)
        names = sys.modules[each.__module__].__dict__
        for used in sorted(name for name in _names(each) & names.keys() if name[:2] != "__"):
            value = names[used]
            value = value.plain if isinstance(value, Operation) else value
            if isinstance(value, bool | int | float | str | tuple):
                found[f"{_file(each.__module__)}: {used}"] = _hash([repr(value)])
            elif isinstance(value, FunctionType | type) and value.__module__.startswith(_PLAIN):
                waiting.append(value)
    return found


def changed_since(current: dict[str, str]) -> list[str]:
    """Those whose hash is not the recorded one."""
    recorded = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return sorted(name for name, value in current.items() if recorded.get(name) != value)


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
    """The names that its code reads."""
    found: set[str] = set()
    waiting: list[Any] = [each]
    while waiting:
        value = waiting.pop()
        if isinstance(value, type):
            waiting += vars(value).values()
            found |= {base.__name__ for base in value.__mro__[1:]}
        elif isinstance(value, FunctionType):
            wrapped = inspect.unwrap(value)
            waiting.append(wrapped.__code__)
        elif isinstance(value, property):
            waiting.append(value.fget)
        elif isinstance(value, classmethod | staticmethod):
            waiting.append(value.__func__)
        elif isinstance(value, CodeType):
            found |= set(value.co_names)
            waiting += value.co_consts
    return found


def _file(module: str) -> str:
    return module.partition(".")[2].replace(".", "/") + ".py"


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def record(current: dict[str, str]) -> None:
    """Takes these for what the kernels were written for."""
    FILE.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n", encoding="utf-8")
