"""Consecutive blocks of one log: how long they have to be to be independent of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.inference.units import Floats, Side

BATCHES = (30, 24, 20, 16, 12, 10)
"""Numbers of longer blocks that are tried, in this order."""

CORRELATED = 1.645
"""Lag-1 correlation times the root of the number of blocks, above which they are not independent."""


def merged(
    pseudo: Callable[..., Floats], parts: tuple[Side, ...], same: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Standard error and degrees of freedom from the shortest blocks that are independent, or why not.

    Parameters
    ----------
    pseudo : callable
        Pseudo-values of such sides.
    parts : tuple of Side
        The sides, whose units are consecutive blocks.
    same : bool array
        Where nothing varies.

    Returns
    -------
    error, freedom : float arrays
    reason : str array
        Empty where there are enough independent blocks.
    """
    shape, length = parts[0].sums.shape[:-1], parts[0].sums.shape[-1]
    error, freedom = np.full(shape, np.nan), np.ones(shape)
    reason = np.full(shape, "memory longer than the data allow", object)
    sizes = [size for size in BATCHES if size <= length] or [length] * bool(length)
    for size in reversed(sizes):
        edges = np.arange(size) * length // size
        points = pseudo(*(part.merged(edges) for part in parts))
        known = ~np.isnan(points)
        count = known.sum(axis=-1)
        centre = np.where(known, points, 0.0).sum(axis=-1) / np.maximum(count, 1)
        apart = np.where(known, points - centre[..., np.newaxis], 0.0)
        squares = (apart**2).sum(axis=-1)
        lag = (apart[..., 1:] * apart[..., :-1]).sum(axis=-1)
        independent = (count >= min(size, BATCHES[-1])) & (
            lag * np.sqrt(np.maximum(count, 1)) <= CORRELATED * squares
        )
        error = np.where(
            independent, np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1)), error
        )
        freedom = np.where(independent, np.maximum(count - 1, 1), freedom)
        reason = np.where(independent | same, "", reason)
    return error, freedom, reason
