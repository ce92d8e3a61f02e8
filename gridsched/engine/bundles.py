"""Bundles of arrays: each field says once what it holds and how long it is.

A bundle is a named tuple whose fields have a `column` as default. `allocate` makes all arrays that are not
given, `grow` makes them longer in one place; kernels know nothing of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Column:
    """What a field of a bundle holds: its dtype, the names of its dimensions, and what it is filled with."""

    dtype: np.dtype[Any]
    dimensions: tuple[str, ...]
    fill: Any


def column(dtype: Any, *dimensions: str, fill: Any = 0) -> Any:
    """Declare a field of a bundle."""
    return Column(np.dtype(dtype), dimensions, fill)


@cache
def _columns(kind: type[Bundle]) -> dict[str, Column]:
    """The declared fields of a bundle."""
    defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined] # of every named tuple
    return {name: each for name, each in defaults.items() if isinstance(each, Column)}


def _array(declared: Column, shape: tuple[int, ...]) -> Any:
    """A new array for a field."""
    if isinstance(declared.fill, int) and declared.fill == 0:
        return np.zeros(shape, declared.dtype)
    return np.full(shape, declared.fill, declared.dtype)


def allocate(kind: type[Bundle], sizes: dict[str, int], **given: Any) -> Bundle:
    """Make a bundle with dimensions of these sizes; fields that are given are taken as they are."""
    made = {
        name: _array(each, tuple(sizes[dimension] for dimension in each.dimensions))
        for name, each in _columns(kind).items()
        if name not in given
    }
    return kind(**given, **made)


def grow(bundle: Bundle, sizes: dict[str, int]) -> Bundle:
    """Make some dimensions longer, in every field that has them; new elements are filled as at first.

    Arrays that are long enough stay as they are. What is declared are the last dimensions of an array: a
    bundle may hold the rows of several ones.
    """
    longer = {}
    for name, declared in _columns(type(bundle)).items():
        old = getattr(bundle, name)
        rows = old.ndim - len(declared.dimensions)
        named = zip(declared.dimensions, old.shape[rows:], strict=True)
        shape = (*old.shape[:rows], *(max(length, sizes.get(each, 0)) for each, length in named))
        if shape != old.shape:
            longer[name] = _array(declared, shape)
            longer[name][tuple(slice(length) for length in old.shape)] = old
    grown: Bundle = bundle._replace(**longer)  # type: ignore[attr-defined] # of every named tuple
    return grown
