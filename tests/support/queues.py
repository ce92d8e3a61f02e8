"""A queue of one server whose mean wait is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean_wait(load: float) -> float:
    """Mean wait in an M/M/1 queue with one arrival a unit of time and a mean service of `load`."""
    return load**2 / (1 - load)


def waits(gaps: Floats, services: Floats, load: float, uniform: Floats) -> Floats:
    """Waits of successive jobs of M/M/1 queues, a row each, by Lindley's recursion.

    Parameters
    ----------
    gaps, services : float64[queues, jobs]
        Time from each job to the next one, and service times.
    load : float
        Mean service time; the mean gap is 1.
    uniform : float64[2, queues]
        Of these the waits of the first jobs are drawn, so that the queues are stationary.
    """
    rate = 1 / load - 1
    wait = np.where(uniform[0] < load, -np.log(1 - uniform[1]) / rate, 0.0)
    found = np.empty_like(gaps)
    for job in range(gaps.shape[1]):
        found[:, job] = wait
        wait = np.maximum(0.0, wait + services[:, job] - gaps[:, job])
    return found
