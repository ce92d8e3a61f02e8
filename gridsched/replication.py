"""What replicates say together: means, differences and ratios of means, with confidence intervals.

A replicate is one draw of the workload; replicate k of two schemes has the same jobs. All functions take
arrays with the replicates on the last axis, NaN where a replicate is absent, and give arrays without that
axis. Comparisons are paired: they use only the replicates that both sides have, and what a workload does to
both sides cancels.

Intervals have low = high = mean where all replicates are exactly equal, as on the cluster of a real log that
no other cluster disturbs. Bounds are NaN where there are fewer than two replicates.

What cannot be negative, such as a wait, has no interval below 0: where a symmetric one would reach there, it
is symmetric in the logarithm (see `times_interval`), and has no bounds where too few replicates are above 0.
Quantities that may have either sign, such as differences, are said to be `signed`.

>>> import numpy as np
>>> wait = np.array([[100.0, 140.0, 120.0], [50.0, 60.0, 70.0]])
>>> ratio_interval(wait, wait[0]).mean.tolist()
[1.0, 0.5]

On xarray: ``xr.apply_ufunc(mean_interval, study["wait_time_mean"], input_core_dims=[["replicate"]],
output_core_dims=[[], [], []])``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Estimates with their confidence intervals: arrays of one shape, NaN where replicates are too few."""

    mean: Floats
    low: Floats
    high: Floats


def mean_interval(values: ArrayLike, confidence: float = 0.95, *, signed: bool = False) -> Interval:
    """Mean over replicates with its Student t interval.

    The half width is t(n - 1) s / sqrt(n), with s the standard deviation of the n replicates that are there
    (Law and Kelton, "Simulation modeling and analysis", chapter 9).

    Parameters
    ----------
    values : array_like
        Replicates on the last axis, NaN where absent; any unit.
    confidence : float
        Nominal coverage, between 0 and 1.
    signed : bool
        Whether the mean may be negative although none of these values is.

    Raises
    ------
    ConfigurationError
        If there is no axis of replicates, a value is infinite, or the confidence is out of range.
    """
    data = _replicates("values", values)
    count = _count(data)
    centre = _mean(data)
    divisor = np.maximum(count, 2)
    error = np.sqrt(_squares(data) / (divisor - 1) / divisor)
    interval = _interval(centre, error, count, confidence)
    return interval if signed else not_negative(interval, data, confidence)


def difference_interval(values: ArrayLike, reference: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of values - reference over replicates, paired, with its Student t interval.

    Parameters
    ----------
    values, reference : array_like
        Replicates on the last axis, NaN where absent; the other axes broadcast.
    confidence : float
        Nominal coverage, between 0 and 1.

    Raises
    ------
    ConfigurationError
        As `mean_interval`, or if the two do not have the same replicates or shapes that broadcast.
    """
    left, right = _pairs(values, reference)
    return mean_interval(left - right, confidence, signed=True)


def ratio_interval(
    values: ArrayLike, reference: ArrayLike, confidence: float = 0.95, *, signed: bool = False
) -> Interval:
    """Mean of values / mean of reference, paired, with a jackknife t interval.

    With r_i the ratio without replicate i, the squared standard error is (n - 1) / n times the sum of the
    squared deviations of the r_i from their mean, and the half width t(n - 1) times the error (Miller, "The
    jackknife - a review", Biometrika 61, 1974). The centre is the plain ratio, which readers can check from
    the two means, not the estimate that the jackknife corrects for bias.

    The factor by which values are better than the reference, where less is better, is
    ``ratio_interval(reference, values)``.

    Parameters
    ----------
    values, reference : array_like
        Replicates on the last axis, NaN where absent; the other axes broadcast.
    confidence : float
        Nominal coverage, between 0 and 1.
    signed : bool
        Whether the ratio may be negative although none of these values is.

    Returns
    -------
    Interval
        All NaN where the mean of the reference is 0; bounds NaN where it is 0 without some replicate.

    Raises
    ------
    ConfigurationError
        As `difference_interval`.
    """
    left, right = _pairs(values, reference)
    error = _jackknife_error(_divide(_others(left), _others(right)), left)
    interval = _interval(_divide(_mean(left), _mean(right)), error, _count(left), confidence)
    return interval if signed else not_negative(interval, left, confidence, right)


def not_negative(
    interval: Interval, values: Floats, confidence: float = 0.95, reference: ArrayLike = 1.0
) -> Interval:
    """Interval with bounds that something which cannot be negative may have.

    Parameters
    ----------
    interval : Interval
        Symmetric interval of a mean, or of a ratio of means.
    values : float64[..., replicates]
        What it is the mean of, NaN where absent.
    confidence : float
        Nominal coverage, between 0 and 1.
    reference : array_like
        Replicates of the other side of a ratio, in the same shape.

    Returns
    -------
    Interval
        The same where the lower bound is not negative, or some value is; else the bounds are symmetric in the
        logarithm, NaN where a mean without some replicate is 0.
    """
    reference = np.where(np.isnan(values), np.nan, reference)
    impossible = (interval.low < 0) & ~((values < 0) | (reference < 0)).any(axis=-1)
    factor = _interval(
        np.zeros_like(interval.mean), _times_error(values, reference), _count(values), confidence
    )
    return Interval(
        interval.mean,
        np.where(impossible, interval.mean * np.exp(factor.low), interval.low),
        np.where(impossible, interval.mean * np.exp(factor.high), interval.high),
    )


def times_interval(values: ArrayLike, reference: ArrayLike, confidence: float = 0.95) -> Interval:
    """As `ratio_interval`, but with an interval that is symmetric in the logarithm of the ratio.

    For ratios of many times, where a symmetric interval would reach below 0: "between 3 and 12 times" rather
    than "6 times, more or less 7". The jackknife is that of `ratio_interval` on the logarithms of the
    ratios without one replicate; the bounds are the ratio divided and multiplied by exp(t(n - 1) times the
    error).

    Parameters
    ----------
    values, reference : array_like
        Replicates on the last axis, NaN where absent; the other axes broadcast.
    confidence : float
        Nominal coverage, between 0 and 1.

    Returns
    -------
    Interval
        All NaN where the mean of the reference is 0; bounds NaN where a ratio without some replicate is not
        positive.

    Raises
    ------
    ConfigurationError
        As `difference_interval`.
    """
    left, right = _pairs(values, reference)
    ratio = _divide(_mean(left), _mean(right))
    around = _interval(np.zeros_like(ratio), _times_error(left, right), _count(left), confidence)
    return Interval(ratio, ratio * np.exp(around.low), ratio * np.exp(around.high))


def times_significance(values: ArrayLike, reference: ArrayLike) -> Floats:
    """Probability of a ratio at least as far from 1, if there were no difference (two-sided).

    The test that belongs to `times_interval`: an interval at confidence 1 - p just touches 1.

    Parameters
    ----------
    values, reference : array_like
        Replicates on the last axis, NaN where absent; the other axes broadcast.

    Returns
    -------
    float array
        1 where both sides are exactly equal; NaN where `times_interval` has no bounds.

    Raises
    ------
    ConfigurationError
        As `difference_interval`.
    """
    from scipy.special import stdtr  # takes long to load, and simulations do without

    left, right = _pairs(values, reference)
    ratio = _divide(_mean(left), _mean(right))
    count, error = _count(left), _times_error(left, right)
    distance = np.abs(np.log(np.where(ratio > 0, ratio, np.nan)))
    with np.errstate(divide="ignore", invalid="ignore"):
        probability = 2 * stdtr(np.maximum(count - 1, 1), -distance / error)
    probability = np.where((error == 0) & (distance == 0), 1.0, probability)
    return np.where(count >= 2, probability, np.nan)


def holm(probabilities: ArrayLike) -> Floats:
    """Probabilities of several tests, corrected so that any false finding among them is as improbable.

    Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of Statistics 6,
    1979): the i-th smallest of n is multiplied by n - i + 1, no corrected one is smaller than one before it,
    and none exceeds 1.

    Parameters
    ----------
    probabilities : array_like
        Of each test, in any shape; NaN for tests that could not be made, which do not count.
    """
    found = np.asarray(probabilities, np.float64)
    known = np.flatnonzero(~np.isnan(found))
    order = known[np.argsort(found.ravel()[known], kind="stable")]
    factor = np.arange(len(order), 0, -1)
    corrected = np.full(found.size, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(found.ravel()[order] * factor), 1.0)
    return corrected.reshape(found.shape)


def sign(interval: Interval, against: float = 0.0) -> NDArray[np.int64]:
    """Whether intervals lie on one side of a number: -1 below it, +1 above it, 0 if neither is significant.

    Parameters
    ----------
    interval : Interval
        What to look at; unknown bounds give 0.
    against : float
        The number: 0 for differences, 1 for ratios.
    """
    above, below = np.greater(interval.low, against), np.less(interval.high, against)
    return above.astype(np.int64) - below.astype(np.int64)


def _replicates(name: str, values: ArrayLike) -> Floats:
    data = np.asarray(values, np.float64)
    if not data.ndim:
        raise ConfigurationError(f"{name}: a single number; give an array with replicates on the last axis")
    if np.isinf(data).any():
        raise ConfigurationError(
            f"{name}: {int(np.isinf(data).sum())} infinite replicates; give numbers or NaN"
        )
    return data


def _pairs(values: ArrayLike, reference: ArrayLike) -> tuple[Floats, Floats]:
    """Both sides in one shape, NaN in each where one of them has no replicate."""
    left, right = _replicates("values", values), _replicates("reference", reference)
    if left.shape[-1] != right.shape[-1]:
        raise ConfigurationError(
            f"paired replicates: {left.shape[-1]} of the values and {right.shape[-1]} of the reference; "
            "give the same replicates of both"
        )
    try:
        left, right = np.broadcast_arrays(left, right)
    except ValueError:
        raise ConfigurationError(
            f"values of shape {left.shape} and a reference of shape {right.shape} do not broadcast"
        ) from None
    absent = np.isnan(left) | np.isnan(right)
    return np.where(absent, np.nan, left), np.where(absent, np.nan, right)


def _count(data: Floats) -> NDArray[np.int64]:
    count: NDArray[np.int64] = np.sum(~np.isnan(data), axis=-1, dtype=np.int64)
    return count


def _mean(data: Floats) -> Floats:
    """Mean of what is known; NaN if nothing is. The mean of equal values is exactly that value."""
    first = _first(data)
    apart = np.nan_to_num(data - first[..., np.newaxis])
    mean: Floats = first + apart.sum(axis=-1) / np.maximum(_count(data), 1)
    return mean


def _squares(data: Floats) -> Floats:
    """Sum of squared deviations from the mean of what is known; exactly 0 for equal values."""
    apart = np.nan_to_num(data - _mean(data)[..., np.newaxis])
    squares: Floats = (apart**2).sum(axis=-1)
    return squares


def _first(data: Floats) -> Floats:
    """First known value; NaN if there is none."""
    if not data.shape[-1]:
        return np.full(data.shape[:-1], np.nan)
    position = np.argmin(np.isnan(data), axis=-1)[..., np.newaxis]
    return np.take_along_axis(data, position, axis=-1)[..., 0]


def _others(data: Floats) -> Floats:
    """Sum of the other known replicates, for each that is known; their number cancels in a ratio."""
    others: Floats = np.nansum(data, axis=-1, keepdims=True) - data
    return others


def _jackknife_error(without: Floats, data: Floats) -> Floats:
    """Standard error from an estimate without each replicate; NaN where one of these is not defined."""
    count = _count(data)
    undefined = (np.isnan(without) & ~np.isnan(data)).any(axis=-1)
    error = np.sqrt((count - 1).clip(0) / np.maximum(count, 1) * _squares(without))
    return np.where(undefined, np.nan, error)


def _times_error(left: Floats, right: Floats) -> Floats:
    """Jackknife error of the logarithm of the ratio of means; NaN where a ratio is not positive."""
    without = _divide(_others(left), _others(right))
    positive = without > 0
    return _jackknife_error(np.where(positive, np.log(np.where(positive, without, 1.0)), np.nan), left)


def _divide(left: Floats, right: Floats) -> Floats:
    """Quotients, NaN where the divisor is 0."""
    usable = right != 0
    return np.where(usable, left / np.where(usable, right, 1.0), np.nan)


def _interval(centre: Floats, error: Floats, count: NDArray[np.int64], confidence: float) -> Interval:
    """Student t intervals with count - 1 degrees of freedom."""
    from scipy.special import stdtrit  # takes long to load, and simulations do without

    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence must lie between 0 and 1, found {confidence}")
    half = stdtrit(np.maximum(count - 1, 1), 0.5 + confidence / 2) * error
    half = np.where(count >= 2, half, np.nan)
    return Interval(np.asarray(centre), np.asarray(centre - half), np.asarray(centre + half))
