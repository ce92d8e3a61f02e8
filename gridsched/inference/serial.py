"""Consecutive blocks of one log: how far they depend on each other, and what that does to an interval.

Blocks are merged into `BLOCKS` long ones. Their variance is multiplied by (1 + r) / (1 - r), with r their
correlation at lag 1 corrected for its bias, which is never taken as negative; the degrees of freedom shrink
by the same factor (Tafazzoli, Steiger and Wilson, "N-Skart: a nonsequential skewness- and
autoregression-adjusted batch-means procedure", IEEE Transactions on Automatic Control 56, 2011, whose
correction for autocorrelation this is). A log that is short against the memory of its queue has often not
seen the congestion that makes up much of the mean. So the variance grows further, by `SHORTAGE` for each
block of the given ones that is worth no independent one: this share was chosen by measurement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.inference.units import Floats, divide

BLOCKS = 16
"""Long blocks that a variance is estimated from."""

FEWEST_BLOCKS = 10
"""Blocks that an interval needs."""

SHORTAGE = 10.0
"""How the variance grows with the inverse of the number of independent blocks."""

FEWEST_INDEPENDENT = 2.5
"""Independent blocks, of those that were given, that an interval needs."""

TREND = 6.0
"""Slope in standard errors beyond which there is no steady state."""


def in_blocks(length: int) -> NDArray[np.int64]:
    """Where the long blocks begin among so many."""
    size = min(BLOCKS, max(length, 1))
    edges: NDArray[np.int64] = np.arange(size) * length // size
    return edges


def dependence(
    points: Floats, present: NDArray[np.bool_], fine: Floats, given: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[Any]]:
    """How dependence inflates the variance of the mean of long blocks, and whether there is an interval.

    Parameters
    ----------
    points, fine : float64[..., blocks]
        What long blocks, and the given ones, contribute to the estimate, less its mean; 0 where absent.
    present, given : bool[..., blocks]
        Which of them there are.

    Returns
    -------
    inflation, freedom : float arrays
    reason : str array
        Empty where there is a valid interval.
    """
    number = np.count_nonzero(present, axis=-1)
    factor = _factor(points, number)
    all_blocks = np.count_nonzero(given, axis=-1)
    independent = divide(all_blocks * np.ones(np.shape(number)), _factor(fine, all_blocks))
    shortage = SHORTAGE * np.maximum(
        divide(np.ones_like(independent), independent) - 1 / np.maximum(all_blocks, 1), 0
    )
    inflation = factor * (1 + np.nan_to_num(shortage))
    freedom = np.maximum((number - 1) / factor - 1, 2.0)
    reason = np.full(np.shape(number), "", object)
    short = (independent < FEWEST_INDEPENDENT) | (number < FEWEST_BLOCKS)
    reason = np.where(short, "the memory of the queue is longer than the log allows", reason)
    reason = np.where(_trend(points, present), "no steady state: it rises or falls along the log", reason)
    return inflation, freedom, reason


def _factor(points: Floats, number: NDArray[np.int64]) -> Floats:
    """(1 + r) / (1 - r) with r the correlation of neighbours, corrected for its bias, from 0 to 0.99."""
    squares = (points**2).sum(axis=-1)
    neighbours = divide((points[..., 1:] * points[..., :-1]).sum(axis=-1), squares)
    correlation = np.nan_to_num(neighbours)
    correlation = correlation + (1 + 4 * correlation) / np.maximum(number, 1)
    correlation = np.clip(correlation, 0.0, 0.99)
    factor: Floats = (1 + correlation) / (1 - correlation)
    return factor


def _trend(points: Floats, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a straight line through long blocks is steeper than their scatter about it explains."""
    number = np.maximum(np.count_nonzero(present, axis=-1), 3)
    time = np.where(present, np.arange(points.shape[-1], dtype=np.float64), 0.0)
    time = np.where(present, time - (time.sum(axis=-1) / number)[..., np.newaxis], 0.0)
    spread = (time**2).sum(axis=-1)
    slope = divide((time * points).sum(axis=-1), spread)
    rest = np.where(present, points - np.nan_to_num(slope)[..., np.newaxis] * time, 0.0)
    error = np.sqrt(divide(_factor(rest, number) * (rest**2).sum(axis=-1) / (number - 2), spread))
    steep: NDArray[np.bool_] = np.abs(slope) > TREND * error
    return steep
