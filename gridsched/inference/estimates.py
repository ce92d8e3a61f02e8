"""Means, differences and ratios of means, and shares, each with its interval."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError
from gridsched.inference.evidence import Evidence, of_mean, of_pair
from gridsched.inference.units import Floats, divide


class Estimate(NamedTuple):
    """Estimates with their intervals: arrays of one shape."""

    value: Floats
    """NaN where there is no unit, or a ratio has the divisor 0."""
    low: Floats
    """Lower bound; NaN where there is no valid interval."""
    high: Floats
    """Upper bound; NaN where there is no valid interval."""
    number: NDArray[np.int64]
    """Units that both sides have."""
    reason: NDArray[Any]
    """Empty where there is a valid interval, else why there is none; where the bounds are the value itself,
    "identical in all replicates" (or blocks), or "the same difference (or ratio) in all" of them."""


def mean(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    signed: bool = False,
    largest: float = np.inf,
    confidence: float = 0.95,
) -> Estimate:
    """Mean over units, with its interval.

    Parameters
    ----------
    values : array_like
        Units on the last axis, NaN where absent; any unit of measurement.
    weights : array_like, optional
        Number of jobs behind each unit; by default all units count alike.
    serial : bool
        Whether units are consecutive blocks of one log rather than replicates.
    relaxations : array_like, optional
        How many times the memory of the queue the log holds, see `relaxations`: of blocks there is no
        interval where they are too few.
    signed : bool
        Whether the quantity may be negative although none of these values is; else it has no bound below 0.
    largest : float
        Largest value that the quantity can have, such as 1 of a share: it has no bound above that.
    confidence : float
        Nominal coverage, between 0 and 1.

    Returns
    -------
    Estimate

    Raises
    ------
    ConfigurationError
        If there is no axis of units, a value is infinite, a weight negative, shapes do not fit, or the
        confidence is out of range.

    Examples
    --------
    >>> mean([3.0, 4.0, 5.0]).reason.item()
    '3 replicates; at least 5 are needed'
    """
    found = of_mean(values, weights, serial=serial, signed=signed, relaxations=relaxations)
    estimate = _estimate(found, confidence)
    return estimate._replace(high=np.minimum(estimate.high, largest))


def difference(
    values: ArrayLike,
    reference: ArrayLike,
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    reference_relaxations: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Mean of the values less that of the reference, paired.

    Parameters
    ----------
    values, reference : array_like
        Units on the last axis, NaN where absent; the other axes broadcast.
    weights, reference_weights : array_like, optional
        Number of jobs behind each unit; the reference has those of the values if it is given none.
    serial, confidence
        See `mean`.
    relaxations, reference_relaxations : array_like, optional
        How many times the memory of its queue the log holds, under the values and under the reference.

    Returns
    -------
    Estimate
        In the unit of the values.

    Raises
    ------
    ConfigurationError
        As `mean`.

    Examples
    --------
    >>> found = difference([3.0, 4.0, 5.0, 4.0, 3.5], [1.0, 2.1, 2.9, 2.0, 1.5])
    >>> round(float(found.value), 3), round(float(found.low), 2), round(float(found.high), 2)
    (2.0, 1.85, 2.08)
    """
    found = of_pair(
        "difference",
        values,
        reference,
        weights,
        reference_weights,
        serial=serial,
        relaxations=(relaxations, reference_relaxations),
    )
    return _estimate(found, confidence)


def ratio(
    values: ArrayLike,
    reference: ArrayLike,
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    relaxations: ArrayLike | None = None,
    reference_relaxations: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Mean of the values relative to that of the reference, paired.

    Parameters
    ----------
    values, reference, weights, reference_weights, serial, relaxations, reference_relaxations, confidence
        See `difference`.

    Returns
    -------
    Estimate
        The value is NaN where the mean of the reference is 0. There is no interval where a mean is not
        positive, or would not be without one of the units.

    Raises
    ------
    ConfigurationError
        As `mean`.
    """
    found = of_pair(
        "ratio",
        values,
        reference,
        weights,
        reference_weights,
        serial=serial,
        relaxations=(relaxations, reference_relaxations),
    )
    return _estimate(found, confidence)


def share(successes: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Share of independent trials that succeed, with the interval of Wilson.

    Wilson, "Probable inference, the law of succession, and statistical inference" (Journal of the American
    Statistical Association 22, 1927). It is conservative for stratified trials such as Latin hypercubes.

    Parameters
    ----------
    successes, trials : array_like
        Whole numbers, which broadcast.
    confidence : float
        Nominal coverage, between 0 and 1.

    Returns
    -------
    Estimate

    Raises
    ------
    ConfigurationError
        If there are more successes than trials.

    Examples
    --------
    >>> found = share(18, 20)
    >>> round(float(found.value), 2), round(float(found.low), 2), round(float(found.high), 2)
    (0.9, 0.7, 0.97)
    """
    from scipy.special import ndtri  # takes long to load, and simulations do without

    met, number = np.broadcast_arrays(np.asarray(successes, np.float64), np.asarray(trials, np.float64))
    if ((met < 0) | (met > number)).any():
        raise ConfigurationError("successes: give numbers from 0 to that of the trials")
    square = ndtri(0.5 + confidence / 2) ** 2
    value = divide(met, number)
    centre = (met + square / 2) / (number + square)
    half = np.sqrt(square * (met * (1 - value) + square / 4)) / (number + square)
    low = np.where(met == 0, value, centre - half)
    high = np.where(met == number, value, centre + half)
    reason = np.where(number > 0, "", np.asarray("no trials", object))
    return Estimate(value, low, high, number.astype(np.int64), reason)


def _estimate(evidence: Evidence, confidence: float) -> Estimate:
    return Estimate(evidence.value, *evidence.interval(confidence), evidence.number, evidence.reason)


def next_difference(
    values: ArrayLike, reference: ArrayLike, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Mean difference of two samples, and the interval of the difference of one further draw of each.

    Draws of a sample are independent, and the samples of each other (Hahn and Meeker, "Statistical
    intervals", 1991, section 4.8, with the smaller number of degrees of freedom).
    """
    from scipy.stats import t

    sides = [np.asarray(each, np.float64) for each in (values, reference)]
    count = min(map(len, sides))
    spread = np.sqrt(sum(each.var(ddof=1) * (1 + 1 / len(each)) for each in sides))
    half = float(t.ppf((1 + confidence) / 2, count - 1) * spread)
    value = float(sides[0].mean() - sides[1].mean())
    return value, value - half, value + half
