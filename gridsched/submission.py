"""What a scheduler is given: all jobs in order of submission, where they come from, and their estimates.

Run times and requested times of a job that is submitted at a cluster are those on that cluster. Those of a
job that comes from nowhere in particular are as on a cluster of speed 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import JOB, LABELS, LARGEST
from gridsched.errors import ConfigurationError, WorkloadError, check_choice
from gridsched.platform import Cluster, Platform, seconds_at
from gridsched.policies.local import Conventions, LocalPolicy
from gridsched.traces.merging import merge_workloads
from gridsched.workloads.columns import LONGEST_TIME
from gridsched.workloads.table import UNKNOWN, Workload

EstimateName = Literal["requested", "actual", "clairvoyant"]
Estimates = EstimateName | NDArray[Any]
AlignName = Literal["start", "clock", "none"]
TimesName = Literal["home", "unit"]

Integers = NDArray[np.int64]

NOWHERE = -1
"""Home of a job that is submitted at no cluster."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Submission:
    """Jobs, the platform that they are submitted to, and the conventions of a simulation.

    Parameters
    ----------
    workload : Workload
        All jobs in order of submission; run times as the module says.
    home : int64[n]
        Index of the cluster where each job is submitted, -1 for none.
    platform : Platform
        The clusters.
    estimates : {"requested", "actual", "clairvoyant"} or array of seconds
        Runtime estimates, see `gridsched.simulate`.
    conventions : Conventions
        What happens to estimates that are exceeded, and when scheduling passes take place.
    seed : int
        Of everything that the scheduler draws.
    times : {"home", "unit"}
        Whether run times and estimates are those on the cluster of submission, or as at speed 1.
    killed : bool[n], optional
        Jobs whose run times were cut to their requested times; None where jobs run as long as they want.
    awaited : int
        The first jobs whose starts are wanted alone: a cluster of nodes may stop when these have started. 0
        where all outcomes are wanted.
    """

    workload: Workload
    home: Integers
    platform: Platform
    estimates: Estimates = "requested"
    conventions: Conventions = field(default_factory=Conventions)
    seed: int = 0
    times: TimesName = "home"
    killed: NDArray[np.bool_] | None = None
    awaited: int = 0

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def clusters(self) -> Sequence[Cluster]:
        """Clusters of the platform."""
        return self.platform.clusters

    @property
    def policies(self) -> list[LocalPolicy]:
        """Local policy of each cluster."""
        return self.platform.policies

    @property
    def run_time(self) -> Integers:
        """Seconds that each job runs."""
        return np.asarray(self.workload.run_time, np.int64)

    @property
    def estimate(self) -> Integers:
        """Runtime estimate of each job [s], at least 1."""
        return runtime_estimates(
            self.run_time, np.asarray(self.workload.requested_time, np.int64), self.estimates
        )

    @property
    def speeds(self) -> NDArray[np.float64]:
        """Speed of each cluster."""
        return np.array([cluster.speed for cluster in self.clusters])

    def records(self) -> NDArray[Any]:
        """The jobs as kernels want them: JOB[n] of `gridsched.engine.records`."""
        jobs = np.empty(len(self), JOB)
        jobs["submit"] = self.workload.submit_time
        jobs["run"] = self.run_time
        jobs["estimate"] = self.estimate
        jobs["processors"] = self.workload.processors
        return jobs

    @property
    def given_speed(self) -> NDArray[np.float64]:
        """Speed of the cluster as on which run time, requested time and estimate of each job are."""
        return np.where(self._is_foreign(), 1.0, self.speeds[self.home])

    def seconds_at(self, speed: float | NDArray[np.float64], seconds: NDArray[Any]) -> Integers:
        """Whole seconds that times of the jobs take at a speed, or each at its own; unknown ones stay so."""
        return seconds_at(speed, seconds, self.given_speed)

    def seconds_at_home(self, seconds: NDArray[Any]) -> Integers:
        """Whole seconds that times of the jobs take at home; as they are if that is no cluster."""
        return self.seconds_at(np.where(self.home < 0, 1.0, self.speeds[self.home]), seconds)

    def _is_foreign(self) -> NDArray[np.bool_]:
        """Whether run time and estimate of each job are as at speed 1."""
        return (self.home < 0) | (self.times == "unit")

    def homes(self) -> Integers:
        """Cluster where each job is submitted; the only one, if there is one only.

        Raises
        ------
        ConfigurationError
            If a job is submitted at no cluster, and there are several.
        """
        homeless = self.home < 0
        if len(self.clusters) == 1:
            return np.zeros(len(self), np.int64)
        if homeless.any():
            raise ConfigurationError(
                f"{self.workload.name}: {int(homeless.sum())} jobs are submitted at no cluster; give a "
                "workload for each cluster, or a workload with a column `home`"
            )
        return self.home

    def at_home(self) -> Submission:
        """The same jobs, each submitted at a cluster, with run times and estimates as there.

        Raises
        ------
        ConfigurationError
            If a job is submitted at no cluster, and there are several.
        """
        home = self.homes()
        if not self._is_foreign().any():
            return self
        run_time, requested_time, estimates = (
            self.seconds_at(self.speeds[home], seconds)
            for seconds in (self.run_time, self.workload.requested_time, self.estimate)
        )
        changed = replace(self.workload, run_time=run_time, requested_time=requested_time)
        return replace(self, workload=changed, home=home, estimates=estimates, times="home")

    def with_homes(self) -> Submission:
        """The same jobs, each submitted at a cluster.

        Raises
        ------
        ConfigurationError
            If a job is submitted at no cluster, and there are several.
        """
        return self.at_home() if len(self.clusters) == 1 else replace(self, home=self.homes())

    def check_limits(self) -> None:
        """Refuse numbers that the engine cannot hold on the slowest cluster, or whose sums could overflow."""
        with np.errstate(over="ignore"):
            stretch = float(np.clip(self.given_speed.max() / self.speeds.min(), 1.0, 2.0**62))
        for cluster in self.clusters:
            check_size(cluster)
        check_limits(self.workload, np.ceil(self.run_time * stretch), np.ceil(self.estimate * stretch))


def submit(
    workload: Workload | Sequence[Workload | None],
    platform: Platform,
    *,
    estimates: Estimates = "requested",
    conventions: Conventions | None = None,
    align: AlignName = "start",
    seed: int = 0,
    times: TimesName = "home",
    kill: bool = False,
) -> Submission:
    """Jobs of one or several workloads as they are submitted to a platform.

    Parameters
    ----------
    workload : Workload or a sequence of them
        One workload; its jobs are submitted where its column `home` says, else at no cluster in particular.
        Or one for each cluster, None for a cluster without users of its own; one more is submitted at none.
    platform : Platform
        The clusters.
    estimates, conventions, align, seed, times, kill
        See `gridsched.simulate`.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If workloads and clusters do not go together, or an option is unknown.
    """
    check_choice("align", align, get_args(AlignName))
    check_choice("times", times, get_args(TimesName))
    if not isinstance(seed, Integral) or int(seed) < 0:
        raise ConfigurationError(f"seed is {seed!r}; use a whole number from 0 on")
    if isinstance(workload, Workload):
        check_clean(workload)
        merged, home = workload, _own_home(workload, len(platform))
    else:
        merged, home = _merged(workload, len(platform), align)
    killed = None
    if kill:
        run, requested = np.asarray(merged.run_time, np.int64), np.asarray(merged.requested_time, np.int64)
        cut = np.where(requested > 0, np.minimum(run, requested), run)
        killed = cut < run
        merged = replace(merged, run_time=cut)
    return Submission(
        workload=merged,
        home=home,
        platform=platform,
        estimates=estimates,
        conventions=conventions or Conventions(),
        seed=seed,
        times=times,
        killed=killed,
    )


def _own_home(workload: Workload, clusters: int) -> Integers:
    """Where the jobs of a single workload are submitted."""
    if workload.home is None:
        return np.full(len(workload), NOWHERE, np.int64)
    home = np.asarray(workload.home, np.int64)
    if len(home) and not -1 <= home.min() <= home.max() < clusters:
        raise ConfigurationError(
            f"{workload.name}: column home has values from {home.min()} to {home.max()}; "
            f"give -1 or the index of one of the {clusters} clusters"
        )
    return home


def _merged(
    workloads: Sequence[Workload | None], clusters: int, align: AlignName
) -> tuple[Workload, Integers]:
    """All jobs in order of submission with the cluster of each."""
    if not clusters <= len(workloads) <= clusters + 1:
        raise ConfigurationError(
            f"{len(workloads)} workloads for {clusters} clusters; give one (or None) for each, "
            "and at most one that is submitted at none"
        )
    given = [(index, workload) for index, workload in enumerate(workloads) if workload is not None]
    if not given:
        raise ConfigurationError("no workloads; give one for a cluster")
    for _, workload in given:
        check_clean(workload)
    merged, origin = merge_workloads([workload for _, workload in given], align=align)
    home = np.array([index for index, _ in given], np.int64)[origin]
    return merged, np.where(home == clusters, NOWHERE, home)


def cluster_of(workload: Workload) -> Cluster:
    """Cluster of the size that the workload's log states.

    Raises
    ------
    WorkloadError
        If it states none.
    """
    if workload.processors_available is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its cluster has (MaxProcs); "
            "give a cluster"
        )
    return Cluster(processors=workload.processors_available, name=workload.name)


def check_clean(workload: Workload) -> None:
    """Refuse jobs that cannot be simulated, rather than leave them out silently."""
    if len(workload) == 0:
        raise WorkloadError(f"{workload.name}: no jobs to simulate")
    broken = {
        "no submit time": workload.submit_time == UNKNOWN,
        "no run time": workload.run_time == UNKNOWN,
        "no processors": workload.processors <= 0,
        "a negative submit time": workload.submit_time < 0,
        "a negative run time": workload.run_time < 0,
    }
    for what, jobs in broken.items():
        if jobs.any():
            number = int(workload.job_number[np.argmax(jobs)])
            raise WorkloadError(
                f"{workload.name}: {int(jobs.sum())} jobs have {what} (first: job {number}); "
                "clean the workload first"
            )
    if (np.diff(workload.submit_time) < 0).any():
        raise WorkloadError(f"{workload.name}: jobs are not in order of submission; clean the workload first")
    for name in ("submit_time", "run_time", "requested_time"):
        if getattr(workload, name).dtype != np.int64:
            raise WorkloadError(f"{workload.name}: {name} has fractions of seconds; clean the workload first")
    for name in ("user", "group", "queue"):
        label = getattr(workload, name)
        broken_labels = label != np.floor(label)
        if broken_labels.any():
            job = int(np.argmax(broken_labels))
            raise WorkloadError(
                f"{workload.name}: {name} of job {int(workload.job_number[job])} is {label[job]}; "
                "give whole numbers"
            )


def check_size(cluster: Cluster) -> None:
    """Refuse a cluster of more processors than the engine can hold."""
    if cluster.processors > LARGEST:
        raise ConfigurationError(
            f"cluster {cluster.name}: {cluster.processors} processors; at most {LARGEST} can be simulated"
        )


def check_limits(workload: Workload, run_time: NDArray[Any], estimate: NDArray[Any]) -> None:
    """Refuse numbers that the engine cannot hold, or whose sums could overflow in it."""
    for what, seconds, most in (
        ("is submitted at", workload.submit_time, LONGEST_TIME),
        ("runs for", run_time, LONGEST_TIME),
        ("is estimated at", estimate, LARGEST),
    ):
        if seconds.max() > most:
            job = int(np.argmax(seconds))
            raise WorkloadError(
                f"{workload.name}: job {workload.job_number[job]} {what} {seconds[job]:.0f} s; "
                f"at most {most} s can be simulated"
            )


def runtime_estimates(
    run: NDArray[np.int64], requested: NDArray[np.int64], estimates: str | NDArray[Any]
) -> NDArray[np.int64]:
    """Estimated run time of each job, at least one second."""
    if not isinstance(estimates, str):
        return _given(np.asarray(estimates, np.float64), len(run))
    if estimates == "requested":
        estimate = np.where(requested > 0, requested, run)
    elif estimates == "actual":
        estimate = run
    elif estimates == "clairvoyant":
        estimate = np.maximum(requested, run)
    else:
        raise ConfigurationError(
            f"estimates is {estimates!r}; use requested, actual, clairvoyant or an array"
        )
    return np.maximum(estimate, 1)


def _given(estimates: NDArray[np.float64], jobs: int) -> NDArray[np.int64]:
    """Estimates that are given as numbers, in whole seconds."""
    if estimates.shape != (jobs,):
        raise ConfigurationError(
            f"estimates: {estimates.shape} values for {jobs} jobs; give one for each job"
        )
    unusable = ~np.isfinite(estimates)
    if unusable.any():
        job = int(np.argmax(unusable))
        raise ConfigurationError(
            f"estimates: {estimates[job]} for the job at index {job}; give a finite number"
        )
    return np.ceil(np.clip(estimates, 1, 2.0**62)).astype(np.int64)


def labels_of(workload: Workload) -> NDArray[Any]:
    """What scores may look at, and the number of each job."""
    labels = np.empty(len(workload), LABELS)
    for name in ("user", "group", "queue", "processors"):
        labels[name] = getattr(workload, name)
    labels["number"] = workload.job_number
    return labels
