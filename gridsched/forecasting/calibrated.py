"""Futures under a calibrated present policy: what keeps jobs from starting at the site that a log is of.

The layers that `gridsched.calibration` has fitted to the first half of a log go on from a queue. A future
is replayed with the jobs that run, from their recorded starts on; the jobs that wait, from now on; and those
that come. Outages to come are not in a future; the fit may have seen those before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.calibration.fitting import USUAL, Effort, fit
from gridsched.calibration.layers import Calibration, held_waits, layers_for, simulated_waits, used_until
from gridsched.calibration.site import LoggedSite, site_of
from gridsched.errors import WorkloadError
from gridsched.forecasting.on_nodes import for_futures
from gridsched.forecasting.snapshot import Snapshot, recorded_places
from gridsched.platform import Cluster
from gridsched.workloads.table import Workload

CALIBRATED = "calibrated"
"""Name of the policy."""


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
        return held_waits(self.site.history, self.calibration)

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
            Places in the past of the jobs of the future: all that run and wait, and those that come as others
            did.
        submit, run_time : int64[n]
            When they are submitted, and how long they run [s].

        Returns
        -------
        int64[n]
            When they start [s], -1 for those that never do.
        """
        past, site, number = snapshot.past, self.site, self.places[which]
        begun = np.where(submit <= snapshot.now, past["start"][which], -1)
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
            on_nodes=self._on_nodes(number, run_time),
        )
        wait = simulated_waits(
            future,
            self.calibration,
            history=site.history,
            held=self._held[number],
            begun=begun,
            used=self._used(snapshot),
            now=snapshot.now,
            most=len(which),
        )
        return np.where(wait >= 0, submit + wait, -1)

    def _on_nodes(
        self, number: NDArray[np.int64], run_time: NDArray[np.int64]
    ) -> tuple[Workload, Cluster] | None:
        """Jobs of a future, and the cluster on whose nodes they are replayed, if they are."""
        if self.site.on_nodes is None:
            return None
        workload, cluster = self.site.on_nodes
        return workload.select(number, run_time=run_time), cluster

    def _used(self, snapshot: Snapshot) -> NDArray[np.float64] | None:
        """Processor-seconds that users had until now, for the fair share."""
        places = np.flatnonzero(snapshot.past["start"] >= 0)
        had = snapshot.past[places]
        return used_until(
            self.calibration,
            snapshot.now,
            self.site.history.users,
            self.site.user[self.places[places]],
            had["processors"],
            had["start"],
            np.where(had["end"] >= 0, had["end"], snapshot.now),
        )


def calibrate(
    workload: Workload,
    processors: int | Cluster,
    *,
    now: int | None = None,
    effort: Effort = USUAL,
    seed: int = 0,
    report: Callable[[str], Any] = lambda _: None,
) -> CalibratedPolicy:
    """Fit a present policy to the first half of a log.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission, with recorded waits.
    processors : int or Cluster
        Of the cluster; or the cluster itself, if futures are to run on its nodes.
    now : int, optional
        Seconds: the log is taken up to this time, with what was known then; all of it if not given.
    effort : Effort
        How long the fit looks.
    seed : int
        Of what is drawn.
    report : callable
        Called with a description of the current step.

    Raises
    ------
    WorkloadError
        If the first half holds no queueing.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.calibration.fitting import Effort
    >>> jobs = gs.synthesise("M3", jobs=1500, seed=1, load_scale=1.3)
    >>> gs.write_swf(gs.simulate(jobs, scheduler="easy"), "log.swf")
    >>> log = gs.clean(gs.read_swf("log.swf"))
    >>> quick = Effort(drawn=2, kept=1, varied=1, rounds=1, layers=1)
    >>> policy = gs.forecasting.calibrate(log, 1152, effort=quick)
    >>> forecast = gs.forecast(log, int(log.submit_time[1200]), policy=policy, futures=5)
    """
    size = processors.processors if isinstance(processors, Cluster) else processors
    places = recorded_places(workload, size)
    if now is not None:
        known = np.asarray(workload.submit_time) <= now
        if not known.any():
            raise WorkloadError(f"{workload.name}: nothing is known before {now} s; give a later time")
        workload = workload.select(known)
        wait = np.asarray(workload.wait_time, np.int64)
        start = np.asarray(workload.submit_time) + wait
        started = start <= now
        # who has not ended may run as long as requested, and has run until now
        ran = np.where(started, now - start, 0) + 1
        known_run = np.where(
            start + workload.run_time <= now, workload.run_time, np.maximum(workload.requested_time, ran)
        )
        workload = replace(workload, wait_time=np.where(started, wait, -1), run_time=known_run)
    site = site_of(workload, processors, seen_outages=False)
    layers = [layer for layer in layers_for(site) if layer != "outages"]
    best = fit(site, layers, effort, seed=seed, report=report)[0]
    if isinstance(processors, Cluster):
        site = replace(site, on_nodes=for_futures(workload, processors))
    return CalibratedPolicy(site, best.calibration, places)
