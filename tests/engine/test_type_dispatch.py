"""Helpers that exist twice: a kernel calls the one for what it is given, and knows nothing of the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.reference import by_reference
from gridsched.engine.type_dispatch import TypeDispatch


class Plain(NamedTuple):
    numbers: Any


class Other(NamedTuple):
    numbers: Any
    factors: Any


@inline
def _plainly(bundle: Plain, k: int) -> int:
    return int(bundle.numbers[k])


@noinline
def _otherwise(bundle: Other, k: int) -> int:
    return int(bundle.numbers[k] * bundle.factors[k])


value = TypeDispatch(_plainly, _otherwise, Other)


@inline
def _twice(bundle: Any, k: int) -> int:
    return 2 * int(value(bundle, k))


@jit
def kernel(bundle: Any, k: int) -> int:
    """Call the helper that there is for a bundle."""
    return int(_twice(by_reference(bundle), k))


def test_the_one_for_what_is_given() -> None:
    numbers = np.array([3, 5])
    assert kernel(Plain(numbers), 1) == 10
    if not numba.config.DISABLE_JIT:
        compiled: Any = _otherwise
        assert not compiled.overloads
    assert kernel(Other(numbers, np.array([1, 7])), 1) == 70
    assert value(Plain(numbers), 0) == 3
    assert value(Other(numbers, np.array([2, 7])), 0) == 6
