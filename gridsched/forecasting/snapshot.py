"""What is known of a cluster at an instant: who runs and since when, who waits, and what has been before.

A `Timeline` knows everything that happened, a `Snapshot` only what was known at its time: ends that are still
to come, and starts of jobs that wait, are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.results import NO_TIME
from gridsched.submission import check_clean, cluster_of
from gridsched.traces.cleaning import NEVER_RAN, never_ran
from gridsched.workloads.table import Workload

RECORD = np.dtype(
    [
        ("number", np.int64),
        ("submit", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("estimate", np.int64),
        ("processors", np.int64),
        ("requested", np.int64),
        ("user", np.int64),
        ("group", np.int64),
        ("queue", np.int64),
    ]
)
"""A job: number, times in seconds (-1 where not known), what it takes and asks for, whose it is."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A cluster at an instant, after everything that happens then.

    Parameters
    ----------
    now : int
        The instant, seconds.
    processors : int
        Processors of the cluster.
    past : RECORD[n]
        The jobs that have been submitted, in order of submission. Jobs without start wait; those with a start
        but no end run; the others have finished.
    policy: str
        Name of the policy that made the queue; empty where that is not known.
    left_out, repaired : mapping of str to int
        Jobs of a table that are not in the queue, or were changed, by reason.
    """

    now: int
    processors: int
    past: NDArray[np.void]
    policy: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def waiting(self) -> NDArray[np.int64]:
        """Places of the waiting jobs in `past`, in order of submission."""
        return np.flatnonzero(self.past["start"] < 0)

    @cached_property
    def running(self) -> NDArray[np.int64]:
        """Places of the running jobs in `past`, in order of their starts."""
        places = np.flatnonzero((self.past["start"] >= 0) & (self.past["end"] < 0))
        return places[np.argsort(self.past["start"][places], kind="stable")]

    @cached_property
    def finished(self) -> NDArray[np.int64]:
        """Places of the finished jobs in `past`."""
        return np.flatnonzero(self.past["end"] >= 0)

    @property
    def free(self) -> int:
        """Idle processors."""
        return self.processors - int(self.past["processors"][self.running].sum())


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened on a cluster, from its beginning to its end.

    Parameters
    ----------
    name : str
        Name of the workload.
    processors : int
        Processors of the cluster.
    jobs : RECORD[n]
        The jobs that started, in order of submission.
    left_out : mapping of str to int
        Jobs that are not among them, by reason.
    policy : str
        Name of the policy that made it; empty where that is not known.
    """

    name: str
    processors: int
    jobs: NDArray[np.void]
    left_out: dict[str, int] = field(default_factory=dict)
    policy: str = ""

    @property
    def last_end(self) -> int:
        """When the last job ended [s]."""
        return int(self.jobs["end"].max())

    def has_waited(self, before: int) -> bool:
        """Whether any job has waited before a time [s]."""
        submit = self.jobs["submit"]
        return bool(((submit < before) & (self.jobs["start"] > submit)).any())

    def at(self, now: int) -> Snapshot:
        """What was known at a time.

        Raises
        ------
        ConfigurationError
            If no job had been submitted then.
        """
        count = int(np.searchsorted(self.jobs["submit"], now, "right"))
        if not count:
            first = f"the first job is submitted at {self.jobs['submit'][0]} s"
            raise ConfigurationError(f"{self.name}: no job has been submitted at {now} s; {first}")
        past = self.jobs[:count].copy()
        past["end"][past["end"] > now] = NO_TIME
        past["start"][past["start"] > now] = NO_TIME
        running = (past["start"] >= 0) & (past["end"] < 0)
        # Logs may show more processors in use than they say the cluster has.
        processors = max(self.processors, int(past["processors"][running].sum()))
        return Snapshot(now, processors, past, self.policy)

    def starts(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """When the jobs that wait in a snapshot of this did start."""
        return np.asarray(self.jobs["start"][snapshot.waiting])


def timeline_of_run(run: xr.Dataset) -> Timeline:
    """What happened in a run of one cluster on which processors are only counted.

    Raises
    ------
    ConfigurationError
        If it is another run.
    """
    name = str(run.attrs.get("workload", "run"))
    if run.sizes["cluster"] != 1:
        raise ConfigurationError(
            f"{name}: the run has {run.sizes['cluster']} clusters; forecasts are of one cluster"
        )
    if "piece_segment" in run or "fate" in run:
        raise ConfigurationError(
            f"{name}: forecasts are of clusters whose processors are counted; simulate without nodes, "
            "limits, dependencies, cancellations and failures"
        )
    if run.sizes.get("segment", 0) != int((run["start_time"] >= 0).sum()) or "estimate" not in run:
        raise ConfigurationError(f"{name}: forecasts are of local policies, which run each job in one piece")
    if run.attrs["passes"] != "instant":
        raise ConfigurationError(
            f"{name}: the run has passes {run.attrs['passes']!r}; forecasts have one an instant, simulate so"
        )
    place = run["segment_job"].to_numpy()
    jobs = np.empty(len(place), RECORD)
    jobs["number"] = run["job_number"].to_numpy()[place]
    jobs["submit"] = run["submit_time"].to_numpy()[place]
    jobs["start"] = run["segment_start"].to_numpy()
    jobs["end"] = run["segment_end"].to_numpy()
    jobs["estimate"] = run["estimate"].to_numpy()[place]
    jobs["processors"] = run["segment_processors"].to_numpy()
    jobs["requested"] = run["processors"].to_numpy()[place]
    for label in ("user", "group", "queue"):
        jobs[label] = run[label].to_numpy()[place]
    rejected = run.sizes["job"] - len(place)
    processors = int(run["cluster_processors"].to_numpy()[0])
    left_out = {"larger than the cluster": rejected} if rejected else {}
    return Timeline(name, processors, jobs, left_out, policy_of_run(run))


def policy_of_run(run: xr.Dataset) -> str:
    """Name of the local policy of a run of one cluster."""
    return str(run.attrs["policies" if run.attrs["scheme"] == "local" else "scheme"])


def recorded_timeline(workload: Workload, processors: int | None = None) -> Timeline:
    """What happened according to a log: starts are submit times plus recorded waits.

    A job without a requested time has the longest one of the log as its estimate, since nobody knew its run
    time; if the log has none at all, the longest run time.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    processors : int, optional
        Of the cluster; by default as many as the log says.

    Raises
    ------
    WorkloadError
        If the workload is not clean, does not say how large its cluster is, or has no recorded waits.
    """
    check_clean(workload)
    if processors is None:
        processors = cluster_of(workload).processors
    wait = np.asarray(workload.wait_time, np.int64)
    never = never_ran(workload)
    known = (wait >= 0) & ~never
    fits = workload.processors <= processors
    if not known.any():
        raise WorkloadError(
            f"{workload.name}: the log has no recorded waits, so that nobody knows who waited; "
            "simulate it and forecast the run"
        )
    kept = recorded_places(workload, processors)
    run_time = np.asarray(workload.run_time, np.int64)
    jobs = np.empty(len(kept), RECORD)
    jobs["number"] = workload.job_number[kept]
    jobs["submit"] = workload.submit_time[kept]
    jobs["start"] = workload.submit_time[kept] + wait[kept]
    jobs["end"] = jobs["start"] + run_time[kept]
    requested = np.asarray(workload.requested_time, np.int64)
    longest = int(requested.max()) if (requested > 0).any() else int(run_time.max())
    jobs["estimate"] = np.where(requested > 0, requested, max(longest, 1))[kept]
    jobs["processors"] = jobs["requested"] = workload.processors[kept]
    for label in ("user", "group", "queue"):
        jobs[label] = getattr(workload, label)[kept]
    reasons = {
        "without recorded wait": int((~known & ~never).sum()),
        NEVER_RAN: int(never.sum()),
        "larger than the cluster": int((known & ~fits).sum()),
    }
    return Timeline(workload.name, processors, jobs, {why: count for why, count in reasons.items() if count})


def recorded_places(workload: Workload, processors: int) -> NDArray[np.int64]:
    """Numbers in a log of the jobs of its timeline: those that started after a recorded wait, and fit."""
    started = (workload.wait_time >= 0) & ~never_ran(workload)
    return np.flatnonzero(started & (workload.processors <= processors))
