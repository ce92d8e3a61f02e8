"""The null model: waits drawn from the history of like jobs, without any simulation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.calibration.site import KINDS, LoggedSite, doublings, kinds

RECENT = 20
"""A wait is drawn from those of so many like jobs that started last ..."""

FEWEST = 5
"""... of which there have to be so many; else jobs that are less alike count."""


def null_waits(site: LoggedSite, *, seed: int = 0) -> NDArray[np.float64]:
    """Wait of each job [s], drawn from those of the last like jobs that had started when it was submitted.

    Like jobs share queue, doubling of size and class of requested time; else queue and size; else the queue;
    else they are all jobs. This model uses every recorded wait up to each submission, also in the second
    half, of which a simulation uses none; 0 where nobody started before.
    """
    rng = np.random.default_rng(seed)
    size, time = doublings(site.processors), kinds(site.estimate)
    whole = np.zeros(len(site), np.int64)
    keys = [(site.queue * 64 + size) * KINDS + time, site.queue * 64 + size, site.queue, whole]
    waits = np.full(len(site), -1.0)
    for key in keys:
        missing = np.flatnonzero(waits < 0).astype(np.int64)
        waits[missing] = _drawn(site, key, missing, rng)
    return np.asarray(np.maximum(waits, 0))


def _drawn(
    site: LoggedSite, key: NDArray[np.int64], wanted: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Waits for the wanted jobs from the history of jobs of the same key; -1 where it is too short."""
    known = np.flatnonzero(site.known)
    start = (site.submit + site.recorded)[known]
    order = np.lexsort((start, key[known]))
    known, start, owner = known[order], start[order], key[known][order]
    found = np.full(len(wanted), -1.0)
    groups, first, count = np.unique(owner, return_index=True, return_counts=True)
    for group, begin, length in zip(groups, first, count, strict=True):
        mine = np.flatnonzero(key[wanted] == group)
        there = np.searchsorted(start[begin : begin + length], site.submit[wanted[mine]], side="right")
        enough = there >= FEWEST
        mine, there = mine[enough], there[enough]
        back = rng.integers(np.minimum(there, RECENT)) if len(mine) else there
        found[mine] = site.recorded[known[begin + there - 1 - back]]
    return found
