"""Activations that are not kept for backward, as one pass over others that are makes them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Recipe(NamedTuple):
    """How to make a tensor: ``make(*sources)``."""

    make: Callable[..., Tensor]
    sources: tuple[Tensor, ...]


def can_be_remade(x: Tensor, make: Callable[..., Tensor], *sources: Tensor) -> Tensor:
    """``x``, of which is known now how to make it again, to the same bits.

    Args:
        sources: what backward keeps in any case.
    """
    x.recipe = Recipe(make, sources)  # type: ignore[attr-defined]
    return x


def keep_itself(x: Tensor) -> None:
    """Forgets how to make ``x``, and with it the sources, where ``x`` is kept in any case."""
    vars(x).pop("recipe", None)


def recipe_of(x: Tensor) -> Recipe:
    """How to have ``x`` when backward asks for it: keeping it, unless it can be made again."""
    recipe: Recipe = getattr(x, "recipe", Recipe(_itself, (x,)))
    return recipe


def _itself(x: Tensor) -> Tensor:
    return x
