"""What recorded waits consist of, as far as a log shows it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.calibration.site import QUEUED, History, LoggedSite

PROMPT = 60
"""Seconds of wait up to which a job counts as started at once."""

AFTER = 300
"""Seconds after the end of another job up to which a start may be due to it."""


class Composition(NamedTuple):
    """Shares, of the jobs of a half whose waits are known.

    Parameters
    ----------
    prompt : float
        Of the jobs, those that waited a minute at most.
    idle : float
        Of the waited seconds, those in which at least the processors of the job were free.
    user : float
        Of the waited seconds, those of the user who waited most.
    own : float
        Of the jobs that waited more than ten minutes, those that started within five minutes after a job of
        their user ended.
    any : float
        The same of the end of a job of anybody.
    """

    prompt: float
    idle: float
    user: float
    own: float
    any: float


def composition(site: LoggedSite, half: str) -> Composition:
    """What the recorded waits of a half ("first" or "second") consist of; all NaN if nobody waited."""
    mine = site.known & (site.second if half == "second" else ~site.second)
    waits = site.recorded[mine].astype(np.float64)
    if waits.sum() == 0:
        return Composition(*(np.nan,) * len(Composition._fields))
    whole = History(site, np.ones(len(site), np.bool_))
    start = site.submit + site.recorded
    queued = np.flatnonzero(mine & (site.recorded > QUEUED))
    one = np.zeros(len(site), np.int64)
    return Composition(
        prompt=float((waits <= PROMPT).mean()),
        idle=float(whole.idle[mine].sum() / waits.sum()),
        user=float(np.bincount(site.user[mine], waits).max() / waits.sum()),
        own=_after_ends(start, start + site.run, site.user, site.known, queued),
        any=_after_ends(start, start + site.run, one, site.known, queued),
    )


def _after_ends(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    group: NDArray[np.int64],
    known: NDArray[np.bool_],
    jobs: NDArray[np.int64],
) -> float:
    """Share of some jobs that started within five minutes after one of their group ended."""
    if not len(jobs):
        return np.nan
    # times of each group on a stretch of its own, so that one sorted array has all of them
    first = min(int(start.min()), int(end.min()))
    stretch = int(end.max()) - first + AFTER + 2
    ends = np.sort(group[known] * stretch + end[known] - first)
    asked = group[jobs] * stretch + start[jobs] - first
    before = np.searchsorted(ends, asked, side="right") - 1
    return float(((before >= 0) & (asked - ends[np.maximum(before, 0)] <= AFTER)).mean())
