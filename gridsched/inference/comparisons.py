"""Comparisons of several with one, and of all pairs, corrected for their number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.inference.evidence import Form, of_pair
from gridsched.inference.units import Floats, divide, sides


class Comparison(NamedTuple):
    """Estimates against a reference, with simultaneous intervals: arrays of one shape."""

    value: Floats
    """Ratio to the reference or difference from it, see `compare`."""
    low: Floats
    """Lower bound; NaN where there is no valid interval."""
    high: Floats
    """Upper bound; NaN where there is no valid interval."""
    number: NDArray[np.int64]
    """Units that both sides have."""
    reason: NDArray[Any]
    """Empty where there is a valid interval, else why there is none."""
    probability: Floats
    """Two-sided probability of so large an effect if there were none, corrected for the number of
    comparisons; NaN where it is not estimable, 1 where both sides are equal."""
    significant: NDArray[np.int64]
    """-1 where the values are significantly below the reference, +1 where above it, else 0. Exactly where
    the interval excludes no effect."""


class Pairs(NamedTuple):
    """Comparisons of all pairs: square matrices whose entry [i, j] is about i against j."""

    significant: NDArray[np.int64]
    """-1 where i is significantly below j, +1 where above it, else 0."""
    probability: Floats
    """Two-sided, corrected for all pairs; NaN where it is not estimable and on the diagonal."""
    value: Floats
    """Ratio of i to j, or difference between them."""
    reason: NDArray[Any]
    """Empty where the pair could be tested."""


def compare(
    values: ArrayLike,
    reference: ArrayLike,
    form: Form = "ratio",
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    reference_relaxations: ArrayLike | None = None,
    confidence: float = 0.95,
    comparisons: int | None = None,
) -> Comparison:
    """Compare several with a reference, such that all statements hold together.

    Each interval and its significance come from the same test, whose level is divided by the number of
    comparisons (Bonferroni). Comparisons that cannot be made, and those of identical values, do not count.

    Parameters
    ----------
    values : array_like, [..., compared, units]
        What to compare; NaN where a unit is absent.
    reference : array_like, [..., units]
        With what; broadcasts against the values, so that one reference may be [units].
    form : {"ratio", "difference"}
        What is estimated, see `ratio` and `difference`.
    weights, reference_weights, serial, relaxations, reference_relaxations
        See `difference`.
    confidence : float
        Nominal coverage of all intervals together.
    comparisons : int, optional
        Number of comparisons that are shown together, if there are others beside these.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigurationError
        As `mean`, or if the form is unknown.

    Examples
    --------
    >>> base = np.array([10.0, 12.0, 11.0, 14.0, 12.5, 9.0])
    >>> noise = np.array([0.2, -0.3, 0.1, 0.3, -0.2, -0.1])
    >>> compare([base / 2 + noise, base + noise], base).significant.tolist()
    [-1, 0]
    """
    memories = (relaxations, reference_relaxations)
    test = of_pair(form, values, reference, weights, reference_weights, serial=serial, relaxations=memories)
    count = max(int(np.count_nonzero(test.reason == "")) if comparisons is None else comparisons, 1)
    corrected = test.probability() * count
    low, high = test.interval(1 - (1 - confidence) / count)
    significant = _sign(test.value, corrected < 1 - confidence, form)
    probability = np.minimum(corrected, 1.0)
    return Comparison(test.value, low, high, test.number, test.reason, probability, significant)


def compare_pairs(
    values: ArrayLike,
    form: Form = "ratio",
    weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Pairs:
    """Compare all pairs, such that any false statement among them is as improbable as one comparison's.

    A statement about a pair comes from the test of this very pair, corrected by `holm`.

    Parameters
    ----------
    values : array_like, [compared, units]
        What to compare; NaN where a unit is absent.
    form, weights, serial, relaxations, confidence
        See `compare`; weights are those of the values, relaxations are [compared].

    Returns
    -------
    Pairs

    Raises
    ------
    ConfigurationError
        As `compare`.
    """
    data = np.asarray(values, np.float64)
    size = len(data)
    first, second = np.triu_indices(size, 1)

    counted = np.broadcast_to(np.asarray(1.0 if weights is None else weights, np.float64), data.shape)
    memory = np.broadcast_to(np.asarray(np.nan if relaxations is None else relaxations, np.float64), size)
    test = of_pair(
        form,
        data[first],
        data[second],
        counted[first],
        counted[second],
        serial=serial,
        relaxations=(memory[first], memory[second]),
    )
    corrected = holm(test.probability())
    sign = _sign(test.value, corrected < 1 - confidence, form)
    inverse = divide(np.ones(len(first)), test.value) if form == "ratio" else -test.value
    found = Pairs(
        np.zeros((size, size), np.int64),
        np.full((size, size), np.nan),
        np.full((size, size), 1.0 if form == "ratio" else 0.0),
        np.full((size, size), "", object),
    )
    sides_of_pairs = (sign, corrected, test.value, test.reason), (-sign, corrected, inverse, test.reason)
    for matrix, one, other in zip(found, *sides_of_pairs, strict=True):
        matrix[first, second], matrix[second, first] = one, other
    return found


def best(
    values: ArrayLike,
    form: Form = "ratio",
    weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    confidence: float = 0.95,
) -> NDArray[np.int64]:
    """Which do not differ significantly from the lowest, lowest first.

    Parameters
    ----------
    values, form, weights, serial, relaxations, confidence
        See `compare_pairs`.

    Returns
    -------
    int array
        Positions; those without a value are left out. Empty without any value.

    Raises
    ------
    ConfigurationError
        As `compare`.
    """
    pairs = compare_pairs(
        values, form, weights, serial=serial, relaxations=relaxations, confidence=confidence
    )
    means = sides(values, None, weights)[0].value
    order = np.argsort(means, kind="stable")[: np.count_nonzero(~np.isnan(means))]
    return np.asarray(order[pairs.significant[order[:1], order] == 0])


def holm(probabilities: ArrayLike) -> Floats:
    """Probabilities of several tests, corrected so that any false finding among them is as improbable.

    Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of Statistics 6,
    1979): the i-th smallest of n is multiplied by n - i + 1, no corrected one is smaller than one before it,
    and none exceeds 1.

    Parameters
    ----------
    probabilities : array_like
        Of each test, in any shape; NaN for tests that could not be made, which do not count.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    found = np.asarray(probabilities, np.float64)
    known = np.flatnonzero(~np.isnan(found))
    order = known[np.argsort(found.ravel()[known], kind="stable")]
    factor = np.arange(len(order), 0, -1)
    corrected = np.full(found.size, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(found.ravel()[order] * factor), 1.0)
    return corrected.reshape(found.shape)


def _sign(value: Floats, significant: NDArray[np.bool_], form: Form) -> NDArray[np.int64]:
    neutral = 1.0 if form == "ratio" else 0.0
    side = (value > neutral).astype(np.int64) - (value < neutral)
    return np.where(significant, side, 0)
