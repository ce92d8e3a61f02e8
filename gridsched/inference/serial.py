"""Consecutive blocks of one log: how far they depend on each other, and what that does to an interval.

Blocks are merged into 8 and into 16 long ones, and the wider of both intervals is used. The variance of long
blocks is multiplied by (1 + r) / (1 - r), with r their correlation at lag 1, corrected for its bias and never
taken as negative (as in Tafazzoli, Steiger and Wilson, "N-Skart: a nonsequential skewness- and
autoregression-adjusted batch-means procedure", IEEE Transactions on Automatic Control 56, 2011). A log that
is short against the memory of its queue has often not seen the congestion that makes up much of the mean.
Therefore the variance also grows by `SHORTAGE` times the inverse of the number of independent blocks, as
measured on the given ones, and that of a comparison, where one side saw less of its congestion than the
other, by `UNLIKE` times the difference of the inverse numbers of relaxation times. These numbers were chosen
by measurement, see ``docs/statistics.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.inference.units import Floats, divide

BLOCKS = (8, 16)
"""Numbers of long blocks that a variance is estimated from."""

FEWEST_BLOCKS = 16
"""Given blocks that an interval needs; about a hundred are of use."""

SHORTAGE = 5.0
"""How the variance grows with the inverse of the number of independent blocks."""

FEWEST_INDEPENDENT = 2.5
"""Independent blocks, of those that were given, that an interval needs."""

FEWEST_RELAXATIONS = 20.0
"""Relaxation times of the queue, see `relaxations`, that a log has to hold."""

UNLIKE = 100.0
"""How the variance of a comparison grows with the difference of the inverse relaxation times of its sides."""

TREND = 6.0
"""Slope in standard errors beyond which there is no steady state."""


def relaxations(jobs: ArrayLike, busy: ArrayLike, variability: ArrayLike) -> Floats:
    """How many times the memory of a queue a log holds: jobs x (1 - busy)**2 / variability.

    The run length that an estimate of a given precision needs grows like variability / (1 - load)**2 (Whitt,
    "Planning queueing simulations", Management Science 35, 1989). Unlike the correlation of waits it does
    not come out as short in just those logs that happened to see no congestion.

    Parameters
    ----------
    jobs : array_like
        Number of jobs.
    busy : array_like
        Share of the time in which some job waits: the load as this scheduler makes it.
    variability : array_like
        Squared coefficients of variation of the work of jobs, and of the times between them, in sum.

    Examples
    --------
    >>> relaxations(10_000, 0.5, 25.0).item()
    100.0
    """
    return divide(
        np.asarray(jobs, np.float64) * (1.0 - np.asarray(busy, np.float64)) ** 2,
        np.asarray(variability, np.float64),
    )


def in_blocks(length: int, size: int) -> NDArray[np.int64]:
    """Where long blocks begin among so many given ones."""
    size = min(size, max(length, 1))
    return np.asarray(np.arange(size) * length // size)


def dependence(points: Floats, present: NDArray[np.bool_]) -> Floats:
    """Factor (1 + r) / (1 - r) by which blocks are worth fewer independent ones.

    Parameters
    ----------
    points : float64[..., blocks]
        What each block contributes to the estimate, less the mean of that; 0 where it is absent.
    present : bool[..., blocks]
        Which blocks there are.
    """
    number = np.count_nonzero(present, axis=-1)
    lagged = (points[..., 1:] * points[..., :-1]).sum(axis=-1)
    correlation = np.nan_to_num(divide(lagged, (points**2).sum(axis=-1)))
    correlation = np.clip(correlation + (1 + 4 * correlation) / np.maximum(number, 1), 0.0, 0.99)
    return np.asarray((1 + correlation) / (1 - correlation))


def corrected(
    points: Floats,
    present: NDArray[np.bool_],
    fine: Floats,
    given: NDArray[np.int64],
    relaxations: tuple[ArrayLike | None, ArrayLike | None],
) -> tuple[Floats, NDArray[Any]]:
    """How the variance of the mean of long blocks grows, and why there is no interval.

    Parameters
    ----------
    points, present
        Of long blocks, see `dependence`.
    fine : float array
        Dependence of the given blocks.
    given : int array
        How many of them there are.
    relaxations : pair of array_like or None
        How many times the memory of its queue the log holds, on both sides; None where it is not known, or
        there is no other side.

    Returns
    -------
    inflation : float array
    reason : str array
        Empty where there is a valid interval.
    """
    one, other = (np.asarray(np.nan if each is None else each, np.float64) for each in relaxations)
    apart = np.abs(divide(np.ones(one.shape), one) - divide(np.ones(other.shape), other))
    shortage = SHORTAGE * np.maximum(divide(fine - 1.0, given * np.ones_like(fine)), 0.0)
    inflation = dependence(points, present) * (1.0 + np.nan_to_num(shortage))
    short = (given / fine < FEWEST_INDEPENDENT) | (np.fmin(one, other) < FEWEST_RELAXATIONS)
    memory = "the memory of the queue is longer than the log allows"
    reason = np.where(short, memory, np.asarray("", object))
    reason = np.where(_trend(points, present), "no steady state: it rises or falls along the log", reason)
    return inflation * (1.0 + UNLIKE * np.nan_to_num(apart)), reason


def _trend(points: Floats, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a straight line through long blocks is steeper than their scatter about it explains."""
    number = np.maximum(np.count_nonzero(present, axis=-1), 3)
    time = np.where(present, np.arange(points.shape[-1], dtype=np.float64), 0.0)
    time = np.where(present, time - (time.sum(axis=-1) / number)[..., np.newaxis], 0.0)
    spread = (time**2).sum(axis=-1)
    slope = np.nan_to_num(divide((time * points).sum(axis=-1), spread))
    rest = np.where(present, points - slope[..., np.newaxis] * time, 0.0)
    variance = dependence(rest, present) * (rest**2).sum(axis=-1) / (number - 2)
    error = np.sqrt(divide(variance, spread))
    return np.asarray(np.abs(slope) > TREND * error)


def moving_block_error(values: ArrayLike, length: int) -> float:
    """Standard error of the mean of a series, from its moving blocks of consecutive values.

    It is the limit of resampling such blocks many times (Kuensch, "The jackknife and the bootstrap for
    general stationary observations", Annals of Statistics 17, 1989).

    Parameters
    ----------
    values : array_like
        At least `length` + 1 values in order.
    length : int
        Values in a block.
    """
    data = np.asarray(values, np.float64)
    blocks = np.convolve(data, np.full(length, 1 / length), "valid")
    return float(np.sqrt(length / len(data)) * blocks.std())
