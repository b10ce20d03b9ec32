"""Detects plain functions that have changed since their kernels were written.

``fingerprints.json`` holds a hash of the source of each. After changing an equation and its kernels
so that ``tests/kernels`` pass again, run ``python -m transformer_plugin.kernels`` to update it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from ..modules.operation import Operation

FILE = Path(__file__).with_name("fingerprints.json")
_SEAM = Operation.__module__
_PACKAGE = _SEAM.partition(".")[0]
_TOP_LEVEL = "top-level code"
_PLAIN = (f"{_PACKAGE}.modules.", f"{_PACKAGE}.search.")


class Place(NamedTuple):
    """Where a function, class or constant is defined."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module.partition('.')[2].replace('.', '/')}.py: {self.name}"


class Definition(NamedTuple):
    """What defines a function, class or constant of a plain module.

    Attributes:
        source: its statements.
        origins: where the names that these read are defined (see ``origin``).
        digest: a hash of the statements, and of where names from elsewhere are imported from.
    """

    place: Place
    source: list[Any]
    origins: dict[str, Place | None]
    digest: str


def closure(roots: Iterable[Any]) -> dict[str, str]:
    """Hashes of the source of these plain functions and classes, and of all functions, classes and
    constants of ``modules`` and ``search`` that they use, directly or not, by ``file: name``.
    Statements that are not definitions, such as a condition around a function, count as the
    top-level code of their file."""
    return {str(each.place): each.digest for each in reached(roots)}


def reached(roots: Iterable[Any]) -> Iterator[Definition]:
    """The definitions of ``closure``. Classes of torch are left out."""
    found: set[Place] = set()
    waiting = [Place(root.__module__, root.__qualname__) for root in roots]
    while waiting:
        place = waiting.pop()
        if place in found or place.module.startswith("torch."):
            continue
        found.add(place)
        definition = _definition_of(place)
        waiting += (each for each in definition.origins.values() if each and is_plain(each.module))
        if _TOP_LEVEL in _definitions(place.module):
            waiting.append(Place(place.module, _TOP_LEVEL))
        yield definition


@functools.cache
def _definition_of(place: Place) -> Definition:
    source = _source(place)
    origins = {name: origin(place.module, name) for name in names_in(source)}
    imported = [
        f"{name} from {each.module.removeprefix(_PACKAGE)} {each.name}"
        for name, each in origins.items()
        if each and not is_plain(each.module)
    ]
    known = repr([structure(source), sorted(imported)])
    return Definition(place, source, origins, hashlib.sha256(known.encode()).hexdigest()[:16])


def _source(place: Place) -> list[Any]:
    """The statements that define ``place``; none if it is not where it was."""
    name, *parts = place.name.split(".")
    found: Any = _definitions(place.module).get(name, [])
    for part in parts:
        found = [each for whole in found for each in whole.body if part in defined_in(each)]
    return found


def origin(module: str, name: str) -> Place | None:
    """Where the object that a plain module calls ``name`` is defined, or imported from where that
    is not in a plain module; None for other names, such as local ones."""
    definition = _definitions(module).get(name)
    if isinstance(definition, Place):
        return origin(*definition) or definition
    return Place(module, name) if definition else None


@functools.cache
def _definitions(module: str) -> dict[str, list[ast.stmt] | Place]:
    """The statements that define each name of a plain module, or where it is imported from."""
    if not is_plain(module):
        return {}
    loaded = sys.modules[module]
    found: dict[str, Any] = {}
    for statement in ast.parse(Path(str(loaded.__file__)).read_bytes()).body:
        if isinstance(statement, ast.ImportFrom):
            path = "." * statement.level + (statement.module or "")
            source = resolve_name(path, loaded.__package__)
            found |= {a.asname or a.name: Place(source, a.name) for a in statement.names}
        elif isinstance(statement, ast.Import):
            found |= {a.asname or a.name.split(".")[0]: Place(a.name, "") for a in statement.names}
        elif not _is_docstring(statement):
            for name in defined_in(statement) or {_TOP_LEVEL}:
                earlier = found.get(name, [])
                is_imported = isinstance(earlier, Place)  # this statement hides the import
                found[name] = [statement] if is_imported else [*earlier, statement]
    return found


def is_plain(module: str) -> bool:
    """Whether equations are expected there."""
    return module.startswith(_PLAIN) and module != _SEAM


def defined_in(statement: ast.stmt) -> set[str]:
    """The names that a definition or an assignment defines; none for other statements."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {each.id for each in targets if isinstance(each, ast.Name)}


def names_in(node: Any) -> set[str]:
    """The names that the code reads, also in decorators and default arguments; not in annotations,
    which are never evaluated."""
    if isinstance(node, list):
        return set().union(*map(names_in, node))
    if not isinstance(node, ast.AST):
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set()
    parts = (v for field, v in ast.iter_fields(node) if field not in ("annotation", "returns"))
    return own.union(*map(names_in, parts))


def structure(node: Any) -> Any:
    """A syntax tree as nested lists, without comments, docstrings and layout. Unlike ``ast.dump``,
    it is the same in every version of Python."""
    if isinstance(node, ast.JoinedStr):  # Python 3.12 puts empty constants between its parts
        node = [part for part in node.values if getattr(part, "value", None) != ""]
    if isinstance(node, ast.AST):
        fields = [(name, structure(value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, *(each for each in fields if each[1] not in ("None", []))]
    if isinstance(node, list):
        return [structure(each) for each in node if not _is_docstring(each)]
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def changed_since(current: dict[str, str]) -> list[str]:
    """The names whose hash differs from the recorded one."""
    recorded = _recorded()
    return sorted(name for name, value in current.items() if recorded.get(name) != value)


@functools.cache
def _recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return found


def record(current: dict[str, str]) -> None:
    """Writes these hashes to ``fingerprints.json``."""
    FILE.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n", encoding="utf-8")
