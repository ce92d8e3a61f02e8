"""Means, differences and ratios of means, each with its interval and the test that belongs to it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError
from gridsched.inference.serial import merged
from gridsched.inference.units import Floats, Side, divide, logarithm, sides

Form = Literal["difference", "ratio"]

FEWEST = 5
"""Units that an interval needs."""

IDENTICAL = "identical in all"
"""How the reason begins where there is nothing to estimate: all units are identical."""

_NAMES = {False: "replicates", True: "blocks"}
_ROUNDING = 1e-12


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
    """Empty where there is a valid interval, else why there is none; "identical in all replicates" (or
    blocks) where the bounds are the value itself."""


class Test(NamedTuple):
    """What an interval and a probability are made from, on the scale of the test."""

    value: Floats
    """The estimate, on its own scale."""
    centre: Floats
    """The estimate on the scale of the test, which is logarithmic for ratios and positive means."""
    error: Floats
    """Its standard error there."""
    freedom: Floats
    """Degrees of freedom."""
    is_log: bool
    number: NDArray[np.int64]
    reason: NDArray[Any]
    identical: NDArray[np.bool_]
    """Where the estimate is the same without any unit."""
    copies: NDArray[np.bool_]
    """Where the units themselves are all the same, so that nothing is known of what would vary."""

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Bounds at a nominal coverage, on the scale of the estimate."""
        from scipy.special import stdtrit  # takes long to load, and simulations do without

        if not 0 < confidence < 1:
            raise ConfigurationError(f"confidence must lie between 0 and 1, found {confidence}")
        half = stdtrit(self.freedom, 0.5 + confidence / 2) * self.error
        low, high = self.centre - half, self.centre + half
        if self.is_log:
            low, high = np.exp(low), np.exp(high)
        valid = self.reason == ""
        return tuple(  # type: ignore[return-value]
            np.where(self.identical, self.value, np.where(valid, bound, np.nan)) for bound in (low, high)
        )

    def probability(self) -> Floats:
        """Two-sided probability of an estimate this far from no effect; NaN where it is not estimable."""
        from scipy.special import stdtr

        effect = 2 * stdtr(self.freedom, -np.abs(divide(self.centre, self.error)))
        exact = np.where(np.abs(self.centre) <= _ROUNDING, 1.0, np.where(self.copies, np.nan, 0.0))
        return np.where(self.identical, exact, np.where(self.reason == "", effect, np.nan))


def mean(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    signed: bool = False,
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
    signed : bool
        Whether the quantity may be negative although none of these values is; else it has no bound below 0.
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
    left, _, _ = sides(values, None, weights)
    return _estimate(test_mean(left, serial=serial, signed=signed), confidence)


def difference(
    values: ArrayLike,
    reference: ArrayLike,
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
    *,
    serial: bool = False,
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
    (2.0, 1.91, 2.09)
    """
    left, right, _ = sides(values, reference, weights, reference_weights)
    assert right is not None
    return _estimate(test_of("difference", left, right, serial=serial), confidence)


def ratio(
    values: ArrayLike,
    reference: ArrayLike,
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
    *,
    serial: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """Mean of the values relative to that of the reference, paired.

    Parameters
    ----------
    values, reference, weights, reference_weights, serial, confidence
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
    left, right, _ = sides(values, reference, weights, reference_weights)
    assert right is not None
    return _estimate(test_of("ratio", left, right, serial=serial), confidence)


def _estimate(test: Test, confidence: float) -> Estimate:
    return Estimate(test.value, *test.interval(confidence), test.number, test.reason)


# --- tests ----------------------------------------------------------------------------------------


def test_mean(left: Side, *, serial: bool, signed: bool) -> Test:
    """The test behind the interval of a mean."""
    is_signed = signed or bool((left.sums < 0).any())
    value = left.value

    def pseudo(part: Side) -> Floats:
        scale = (lambda x: x) if is_signed else logarithm
        return _pseudo_values(scale(part.value), scale(part.without), part.weights > 0)

    return _test(value, pseudo, (left,), is_log=not is_signed, serial=serial)


def test_of(form: Form, left: Side, right: Side, *, serial: bool) -> Test:
    """The test behind the interval of a paired difference or ratio."""
    if form not in ("difference", "ratio"):
        raise ConfigurationError(f"form is {form!r}; use difference or ratio")
    is_log = form == "ratio"
    value = divide(left.value, right.value) if is_log else left.value - right.value

    def pseudo(one: Side, other: Side) -> Floats:
        if is_log:
            centre = logarithm(one.value) - logarithm(other.value)
            without = logarithm(one.without) - logarithm(other.without)
        else:
            centre, without = one.value - other.value, one.without - other.without
        return _pseudo_values(centre, without, one.weights > 0)

    return _test(value, pseudo, (left, right), is_log=is_log, serial=serial)


def _test(
    value: Floats,
    pseudo: Any,
    parts: tuple[Side, ...],
    *,
    is_log: bool,
    serial: bool,
) -> Test:
    present = parts[0].weights > 0
    number = np.count_nonzero(present, axis=-1)
    name = _NAMES[serial]
    reason = np.full(np.shape(value), "", object)
    points = pseudo(*parts)
    freedom = np.maximum(number - 1, 1).astype(np.float64)
    undefined = (np.isnan(points) & present).any(axis=-1)
    error = _standard_error(points, number)
    centre = logarithm(value) if is_log else value
    copies = np.ones(np.shape(value), np.bool_)
    size = np.zeros(np.shape(value))
    for part in parts:
        copies &= _extent(divide(part.sums, part.weights)) <= _ROUNDING * np.abs(part.value)
        size = np.maximum(size, np.abs(part.value))
    same = (number > 1) & (copies | (error <= _ROUNDING * (1.0 if is_log else size)))
    if serial:
        error, freedom, reason = merged(pseudo, parts, same)
    reason = np.where(undefined & (reason == ""), f"too few {name} above 0", reason)
    for count in range(1, FEWEST):
        reason = np.where(number == count, f"{count} {name}; at least {FEWEST} are needed", reason)
    reason = np.where(same, f"{IDENTICAL} {name}", reason)
    reason = np.where(np.isnan(value) & (number > 0), "the reference is 0", reason)
    reason = np.where(number == 0, f"no {name}", reason)
    same = same & ~np.isnan(value)
    counted, reasons = np.asarray(number), np.asarray(reason, object)
    return Test(value, centre, error, freedom, is_log, counted, reasons, same, copies)


def _pseudo_values(centre: Floats, without: Floats, present: NDArray[np.bool_]) -> Floats:
    """Pseudo-values of the jackknife, NaN where a unit is absent or the estimate without it is undefined."""
    number = np.count_nonzero(present, axis=-1, keepdims=True)
    points = number * centre[..., np.newaxis] - (number - 1) * without
    return np.where(present, points, np.nan)


def _standard_error(points: Floats, number: NDArray[np.int64]) -> Floats:
    """Standard error of the mean of pseudo-values; those that are absent or undefined do not count."""
    known = ~np.isnan(points)
    divisor = np.maximum(number, 2)
    centre = np.where(known, points, 0.0).sum(axis=-1) / np.maximum(known.sum(axis=-1), 1)
    squares = np.where(known, (points - centre[..., np.newaxis]) ** 2, 0.0).sum(axis=-1)
    error: Floats = np.sqrt(squares / (divisor - 1) / divisor)
    return error


def _extent(units: Floats) -> Floats:
    """Largest less smallest of what is known; infinite without anything."""
    known = ~np.isnan(units)
    high = np.where(known, units, -np.inf).max(axis=-1, initial=-np.inf)
    low = np.where(known, units, np.inf).min(axis=-1, initial=np.inf)
    return np.where(known.any(axis=-1), high - np.where(known.any(axis=-1), low, 0.0), np.inf)
