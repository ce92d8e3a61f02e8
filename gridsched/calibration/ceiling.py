"""How far recorded waits can be explained: a policy beside itself, and beside a state that is put right.

`shaken` replays a log whose input is moved a little, and measures how well the waits agree with those of the
unmoved replay. A policy that is right, replayed on a log that is not exact, agrees with the recorded waits no
better than that. `restarted_waits` sets the state of the cluster to the recorded one again and again: what is
left is the error of the policy for so long, without the error that has piled up before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridsched.calibration.layers import Calibration, judged, simulated_waits, used_until
from gridsched.calibration.measures import Explained
from gridsched.calibration.site import History, LoggedSite

Integers = NDArray[np.int64]

DAY = 86400
WEEK = 7 * DAY

RUN_TIMES = 0.05
"""Standard deviation of the logarithm by which run times are shaken."""

REPLAYS = 8
"""Shaken replays of which the mean is taken."""


def _shaken_runs(site: LoggedSite, seed: int) -> tuple[LoggedSite, Integers]:
    factor = np.exp(RUN_TIMES * np.random.default_rng(seed).normal(size=len(site)))
    return replace(site, run=np.rint(site.run * factor).astype(np.int64)), np.arange(len(site))


def _later_begin(site: LoggedSite, seed: int) -> tuple[LoggedSite, Integers]:
    return site, np.flatnonzero(site.submit >= site.submit[0] + DAY)


SHAKES: Mapping[str, Callable[[LoggedSite, int], tuple[LoggedSite, Integers]]] = {
    "run times": _shaken_runs,
    "first day": _later_begin,
}
"""What is shaken: run times by 5 %, or the first day of submissions left out; site and jobs to replay."""


def shaken(site: LoggedSite, calibration: Calibration, shake: str, half: str, *, seed: int = 0) -> Explained:
    """Agreement of a policy with itself where its input is shaken, over the jobs of a half.

    Parameters
    ----------
    site : LoggedSite
        The log.
    calibration : mapping
        The policy.
    shake : str
        Key of `SHAKES`.
    half : {"first", "second"}
        Half that is judged.
    seed : int
        Of the shaken run times.
    """
    usual = simulated_waits(site, calibration)
    moved, jobs = SHAKES[shake](site, seed)
    waits = simulated_waits(moved, calibration, jobs=jobs, history=site.history, most=len(site))
    asked = np.full(len(site), -1, np.int64)
    asked[jobs] = usual[jobs]
    return judged(replace(site, recorded=asked), waits, half)


def mean_of_shaken(
    site: LoggedSite, calibration: Calibration, *, history: History | None = None, seed: int = 0
) -> NDArray[np.float64]:
    """Mean wait of each job [s] over replays with shaken run times; -1 where one of them leaves it waiting.

    On a busy cluster the wait of a single job in a replay depends on chance; the mean over replays is that
    of the policy.
    """
    waits = np.array(
        [
            simulated_waits(
                _shaken_runs(site, seed + number)[0], calibration, history=history or site.history
            )
            for number in range(REPLAYS)
        ]
    )
    return np.where((waits >= 0).all(axis=0), waits.mean(axis=0), -1.0)


def granular(site: LoggedSite, half: str) -> Explained:
    """Recorded waits beside themselves, those of at most a minute being made equal.

    No scheduler decides these seconds of overhead: a replay that is right but for them has this correlation.
    """
    return judged(site, np.where(site.known, np.maximum(site.recorded, 60), -1), half)


def restarted_waits(
    site: LoggedSite, calibration: Calibration, period: int, half: str = "second", *, horizon: int = 2 * DAY
) -> Integers:
    """Wait of each job of a half where each period begins with the recorded state.

    Who runs and who waits, and what users had, is taken from the log at the begin of the period; from then on
    the policy decides. Jobs submitted in the `horizon` after the period take part too: they may overtake.

    Parameters
    ----------
    site : LoggedSite
        The log.
    calibration : mapping
        The policy.
    period : int
        Length of a period [s].
    half : {"first", "second"}
        Half whose jobs are asked for.
    horizon : int
        Seconds.

    Returns
    -------
    int64[n]
        Wait [s], -1 for other jobs and those that never start.
    """
    mine = site.second if half == "second" else ~site.second
    waits = np.full(len(site), -1, np.int64)
    start = np.where(site.known, site.submit + site.recorded, site.submit)
    end = start + site.run
    first, last = site.submit[mine].min(), site.submit[mine].max()
    for now in range(int(first), int(last) + 1, period):
        running = (start <= now) & (end > now)
        waiting = (site.submit <= now) & (start > now)
        coming = (site.submit > now) & (site.submit <= now + period + horizon)
        jobs = np.flatnonzero(running | waiting | coming)
        asked = mine & (site.submit > now - (now == first)) & (site.submit <= now + period)
        if not asked.any():
            continue
        found = simulated_waits(
            site,
            calibration,
            jobs=jobs,
            begun=np.where(running, start, -1),
            used=used_until(calibration, now, site.history.users, site.user, site.processors, start, end),
            now=now,
            most=len(site),
        )
        waits[asked] = found[asked]
    return waits
