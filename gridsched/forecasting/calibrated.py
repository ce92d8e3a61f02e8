"""Futures under a calibrated present policy: what keeps jobs from starting at the site that a log is of.

The layers that `gridsched.calibration` has fitted to the first half of a log go on from a queue. A future
is replayed with the jobs that run, from their recorded starts on; the jobs that wait, from now on; and those
that come. Three things are not known, or not as they were fitted:

* Outages to come are not in a future; the fit may have seen those before.
* A running job that the fitted layers would not have started when it did, starts as soon as they let it.
* Where fair share counts, what users had is that of jobs of the last three half-lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.calibration.fitting import RUNGS, Rung, fit
from gridsched.calibration.layers import LAYERS, Calibration, simulated_waits
from gridsched.calibration.site import History, LoggedSite, site_of
from gridsched.errors import WorkloadError
from gridsched.forecasting.snapshot import Snapshot, recorded_places
from gridsched.workloads.table import Workload

CALIBRATED = "calibrated"
"""Name of the policy."""

_DAY = 86400
_HALF_LIVES = 3
_AS_GIVEN = {"held": 0.5}
"""Lets a replay ask its history when jobs are eligible; the quantile does not matter."""


@dataclass(frozen=True, eq=False)
class CalibratedPolicy:
    """A calibration that goes on from queues of the log that it was fitted to.

    Parameters
    ----------
    site : LoggedSite
        The log.
    calibration : mapping
        Parameters by name, see `gridsched.calibration.layers`; outages are left out.
    places : int64[n]
        Number in the log of each job of its timeline.
    """

    site: LoggedSite
    calibration: Calibration
    places: NDArray[np.int64]

    @property
    def name(self) -> str:
        """Name of the policy."""
        return CALIBRATED

    @cached_property
    def _held(self) -> NDArray[np.int64]:
        """Seconds that each job of the log waits in any case."""
        if "held" not in self.calibration:
            return np.zeros(len(self.site), np.int64)
        return self.site.history.short_waits(self.calibration["held"])

    def before(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Places of the finished jobs that still count."""
        if "fair" not in self.calibration:
            return np.empty(0, np.int64)
        since = snapshot.now - _HALF_LIVES * _DAY * self.calibration.get("half_life", 7.0)
        return snapshot.finished[snapshot.past["start"][snapshot.finished] >= since]

    def starts(
        self,
        snapshot: Snapshot,
        which: NDArray[np.int64],
        submit: NDArray[np.int64],
        run_time: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Replay a future.

        Parameters
        ----------
        snapshot : Snapshot
            The queue.
        which : int64[n]
            Places in the past of the jobs of the future: some that have finished, all that run and wait, and
            those that come as others did.
        submit, run_time : int64[n]
            When they are submitted, and how long they run [s].

        Returns
        -------
        int64[n]
            When they start [s], -1 for those that never do.
        """
        past, site, number = snapshot.past, self.site, self.places[which]
        eligible = submit + self._held[number]
        here = submit <= snapshot.now
        begun = past["start"][which]
        eligible[here] = np.maximum(eligible, snapshot.now)[here]
        started = here & (begun >= 0)
        eligible[started] = begun[started]
        future = replace(
            site,
            submit=submit,
            run=run_time,
            estimate=past["estimate"][which],
            processors=past["processors"][which],
            user=site.user[number],
            queue=site.queue[number],
            recorded=np.full(len(which), -1, np.int64),
            outages=site.outages[:0],
        )
        vars(future)["history"] = _Seen(site.history, eligible - submit)
        wait = simulated_waits(future, {**self.calibration, **_AS_GIVEN})
        return np.where(wait >= 0, submit + wait, -1)


class _Seen:
    """What the first half of the log shows, for a future: who is eligible when is given."""

    def __init__(self, history: History, delay: NDArray[np.int64]) -> None:
        self._history = history
        self._delay = delay

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def short_waits(self, quantile: float) -> NDArray[np.int64]:
        """Seconds from submission until a job is eligible."""
        return self._delay


def calibrate(
    workload: Workload,
    processors: int,
    *,
    now: int | None = None,
    rungs: Sequence[Rung] = RUNGS,
    seed: int = 0,
    report: Callable[[str], Any] = lambda _: None,
) -> CalibratedPolicy:
    """Fit a present policy to the first half of a log.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission, with recorded waits.
    processors : int
        Of the cluster.
    now : int, optional
        Seconds: the log is taken up to this time, with what was known then; all of it if not given.
    rungs : sequence of Rung
        Steps of the fit.
    seed : int
        Of what is drawn.
    report : callable
        Is told what is being done.

    Raises
    ------
    WorkloadError
        If the first half holds no queueing.
    """
    places = recorded_places(workload, processors)
    if now is not None:
        known = np.asarray(workload.submit_time) <= now
        if not known.any():
            raise WorkloadError(f"{workload.name}: nothing is known before {now} s; give a later time")
        workload = workload.select(known)
        wait = np.asarray(workload.wait_time, np.int64)
        started = np.asarray(workload.submit_time) + wait <= now
        workload = replace(workload, wait_time=np.where(started, wait, -1))
    site = site_of(workload, processors, seen_outages=False)
    layers = [layer for layer in LAYERS if layer != "outages"]
    best = fit(site, layers, rungs, seed=seed, report=report)[0]
    return CalibratedPolicy(site, best.calibration, places)
