"""Evaluates options as literals, in place of ``eval``.

fairseq calls ``eval`` on two dozen options of its models, tasks and optimizers, such as
``--encoder-layers "[(512, 3)] * 9 + [(1024, 3)] * 4"`` of ``fconv``. Checkpoints hold their text.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable
from typing import Any

_LONGEST_TEXT = 10_000  # characters
_LONGEST_SEQUENCE = 10_000
_LARGEST_NUMBER = 2**63

_BINARY: dict[type, Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Mult: operator.mul}
_UNARY: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def literal(text: str, *_namespaces: Any) -> Any:
    """The value of an expression of constants, tuples, lists, dictionaries, ``+``, ``-`` and ``*``.

    Raises:
        TypeError: ``text`` is not a string, as for ``eval``; fairseq relies on it.
        ValueError: it is another expression, or its value is too large.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text, found {type(text).__name__}")
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"text of {len(text)} characters is too long for an option of fairseq")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, MemoryError, RecursionError, TypeError):
        raise ValueError(f"{shortened(text)} is not a literal") from None


def evaluate_literals_only() -> None:
    """Replaces ``eval`` by ``literal`` in every loaded module of fairseq."""
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.") and module is not None:
            module.eval = literal  # type: ignore[attr-defined]


def shortened(value: object) -> str:
    """``repr`` on one line, cut to about 100 characters."""
    text = repr(value[:200] if isinstance(value, str) else value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | None as value):
            return value
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(k): _value(v) for k, v in zip(keys, values, strict=True) if k}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(type(op), _value(left), _value(right))
    raise ValueError(f"{shortened(ast.unparse(node))} is not a literal")


def _bounded(op: type, left: Any, right: Any) -> Any:
    """The sum or product, if it is not too large for an option."""
    numbers = [n for n in (left, right) if isinstance(n, int | float)]
    lengths = [len(s) for s in (left, right) if isinstance(s, str | tuple | list)]
    if any(abs(n) > _LARGEST_NUMBER for n in numbers):
        raise ValueError("the number is too large")
    if lengths:
        length = sum(lengths) if op is ast.Add else lengths[0] * max([1, *map(int, numbers)])
        if length > _LONGEST_SEQUENCE:
            raise ValueError(f"a sequence of {length} elements is too long for an option")
    return _BINARY[op](left, right)
