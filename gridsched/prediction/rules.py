"""Predictions that need no training, and what holds for all predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.prediction.features import JobTable
from gridsched.prediction.options import PredictorOptions

Jobs = NDArray[np.int64] | slice
"""Some jobs of a table."""

TREE, REQUESTED, MEAN, CONSTANT = range(4)
KINDS: tuple[str, ...] = ("tree", "requested time", "mean", "constant")
"""Where a prediction comes from: the tree, or, where there is none, the first of the others that is known."""


def fallback(
    table: JobTable, jobs: Jobs, options: PredictorOptions
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Run times where nothing better is known: requested time, else mean of finished jobs, else a constant.

    Returns
    -------
    seconds : float64[n]
    kind : int8[n]
        Index into `KINDS`.
    """
    requested = table.requested_time[jobs]
    means, known = mean_of_finished(table, jobs)
    kind = np.where(requested > 0, REQUESTED, np.where(known, MEAN, CONSTANT)).astype(np.int8)
    seconds = np.select([kind == REQUESTED, kind == MEAN], [requested, means], options.constant)
    return seconds.astype(np.float64), kind


def mean_of_finished(table: JobTable, jobs: Jobs) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Mean run time of all jobs that have finished, and whether there are any."""
    count = table.seen["all_finished"][jobs]
    return table.seen["all_run_time"][jobs] / np.maximum(count, 1), count > 0


def mean_of_last_two(table: JobTable, jobs: Jobs) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Mean of the last two finished jobs of the user, or the only one, and whether there are any.

    D. Tsafrir, Y. Etsion and D. G. Feitelson, "Backfilling using system-generated predictions rather than
    user runtime estimates", IEEE TPDS 18(6), 2007; quoted from memory. That one job counts alone where there
    is no second is a choice.
    """
    last, previous = table.seen["last_run_time"][jobs], table.seen["previous_run_time"][jobs]
    return (last + np.where(previous >= 0, previous, last)) / 2, last >= 0


def as_predictions(
    seconds: NDArray[np.float64], requested_time: NDArray[np.int64], options: PredictorOptions
) -> NDArray[np.int64]:
    """Whole seconds, at least 1, and not above the requested time if predictions are bounded by it."""
    whole = np.maximum(np.rint(seconds), 1).astype(np.int64)
    if not options.bounded_by_request:
        return whole
    return np.where(requested_time > 0, np.minimum(whole, requested_time), whole)
