"""Bundles handed on by reference: the same values and the same changes as those handed on as they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.reference import by_reference


class Inner(NamedTuple):
    """A bundle within a bundle."""

    places: Any  # int64[n]
    factor: float


class Outer(NamedTuple):
    """A bundle of different things."""

    rows: Any  # float64[m, n]
    inner: Inner
    number: int
    wanted: bool


@inline
def _row(b: Outer, m: int) -> Outer:
    """One row, as a bundle of its own."""
    return Outer(b.rows[m : m + 1], b.inner, b.number + m, not b.wanted)


@inline
def _multiply(b: Outer) -> None:
    """Multiply what stands at the places of the inner bundle."""
    for place in b.inner.places:
        b.rows[0, place] *= b.inner.factor


@noinline
def _handle(b: Outer, m: int) -> float:
    """Work on a row that lives as long as this call."""
    row = by_reference(_row(b, m))
    if row.wanted:
        _multiply(row)
    return float(row.rows[0].sum() + row.number)


@jit
def work(b: Outer) -> float:
    """Work on all rows by reference."""
    b = by_reference(b)
    again = by_reference(b)
    total = 0.0
    for m in range(len(again.rows)):
        total += _handle(again, m)
    return total


def test_a_reference_reads_and_changes_what_the_bundle_holds() -> None:
    rows = np.arange(6.0).reshape(2, 3)
    bundle = Outer(rows, Inner(np.array([0, 2]), 10.0), number=5, wanted=False)
    total = work(bundle)
    assert rows.tolist() == [[0, 1, 20], [30, 4, 50]]
    assert total == (21 + 5) + (84 + 6)


def test_a_helper_that_python_calls_takes_the_bundle_itself() -> None:
    rows = np.ones((2, 1))
    bundle = Outer(rows, Inner(np.array([0]), 3.0), number=0, wanted=False)
    assert _handle(bundle, 1) == 3 + 1
    assert rows.tolist() == [[1], [3]]
