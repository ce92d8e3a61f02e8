"""Simulate a workload on a cluster: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.records import JOB, LABELS, LARGEST
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platforms import Cluster
from gridsched.schedulers.local import Conventions, LocalPolicy, OverrunName, PassName, named_policy, schedule
from gridsched.schedulers.superscheduler import SchemeName, Superscheduler, schedule_grid
from gridsched.traces.cleaning import LONGEST_TIME
from gridsched.traces.fusing import fuse
from gridsched.workloads.table import Workload

EstimateName = Literal["requested", "actual", "clairvoyant"]

_OF_SUPERSCHEDULER = (
    "phi",
    "sigma",
    "delta",
    "epsilon",
    "predictions",
    "message_delay",
    "migration_delay",
    "transfers",
    "no_gain",
    "busy",
    "standing",
)
"""Parameters of a superscheduler that a run's attributes hold as they are."""


def simulate(
    workload: Workload,
    cluster: Cluster | None = None,
    policy: str | LocalPolicy = "easy",
    *,
    estimates: EstimateName | NDArray[Any] = "requested",
    kill: bool = False,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
) -> xr.Dataset:
    """Run a workload through the local scheduler of one cluster.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission (see `gridsched.traces.clean`).
    cluster : Cluster, optional
        The machine; by default one of the workload's processors.
    policy : str or LocalPolicy
        A name of `gridsched.schedulers.local.POLICIES`, ``easy(r)``, or a policy.
    estimates : {"requested", "actual", "clairvoyant"} or array of seconds
        What the scheduler believes of run times: the requested time (the actual run time where the log
        has none, counted in the attributes), the actual run time, the larger of both, or the given values.
        Never less than one second.
    kill : bool
        Whether jobs end at their requested time.
    overrun, passes
        Conventions, see `gridsched.schedulers.local.Conventions`.

    Returns
    -------
    xarray.Dataset
        A run dataset, see `gridsched.results.run_dataset`.

    Raises
    ------
    WorkloadError
        If the workload is not clean, or does not say how large its machine is.
    ConfigurationError
        If an option is unknown.
    """
    policy = named_policy(policy)
    cluster = cluster or machine_of(workload)
    conventions = Conventions(overrun, passes)
    check_clean(workload)
    requested = np.asarray(workload.requested_time, np.int64)
    run = np.asarray(workload.run_time, np.int64)
    if kill:
        run = np.where(requested > 0, np.minimum(run, requested), run)
    run_time = cluster.duration(run)
    estimate = cluster.duration(believed(run, requested, estimates))
    allocated = cluster.allocation(workload.processors)
    accepted = allocated <= cluster.processors
    check_limits(workload, cluster, run_time, estimate)

    jobs = np.empty(int(accepted.sum()), JOB)
    jobs["submit"] = workload.submit_time[accepted]
    jobs["run"] = run_time[accepted]
    jobs["estimate"] = estimate[accepted]
    jobs["processors"] = allocated[accepted]
    labels = labels_of(workload)[accepted]
    starts, corrections = schedule(jobs, cluster.processors, policy, conventions, labels)

    start_time = np.full(len(workload), -1, np.int64)
    start_time[accepted] = starts
    return results.run_dataset(
        workload,
        [cluster],
        cluster=np.zeros(len(workload), np.int64),
        start_time=start_time,
        run_time=run_time,
        estimate=estimate,
        allocated=allocated,
        attributes={
            "scheme": policy.name,
            "estimates": estimates if isinstance(estimates, str) else "given",
            "kill": int(kill),
            "jobs_without_requested_time": int((requested <= 0).sum()),
            "jobs_killed": int((run < workload.run_time).sum()),
            "corrections": corrections,
            **asdict(conventions),
        },
    )


def machine_of(workload: Workload) -> Cluster:
    """Cluster of the size that the workload's log states.

    Raises
    ------
    WorkloadError
        If it states none.
    """
    if workload.processors_available is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its machine has (MaxProcs); "
            "give a cluster"
        )
    return Cluster(processors=workload.processors_available, name=workload.name)


def check_clean(workload: Workload) -> None:
    """Refuse jobs that cannot be simulated, rather than leave them out silently."""
    if len(workload) == 0:
        raise WorkloadError(f"{workload.name}: no jobs to simulate")
    broken = {
        "submit time": workload.submit_time < 0,
        "run time": workload.run_time < 0,
        "processors": workload.processors <= 0,
    }
    for what, jobs in broken.items():
        if jobs.any():
            number = int(workload.job_number[np.argmax(jobs)])
            raise WorkloadError(
                f"{workload.name}: {int(jobs.sum())} jobs have no {what} (first: job {number}); "
                "clean the workload first"
            )
    if (np.diff(workload.submit_time) < 0).any():
        raise WorkloadError(f"{workload.name}: jobs are not in order of submission; clean the workload first")
    for name in ("submit_time", "run_time", "requested_time"):
        if getattr(workload, name).dtype != np.int64:
            raise WorkloadError(f"{workload.name}: {name} has fractions of seconds; clean the workload first")


def check_limits(
    workload: Workload, cluster: Cluster, run_time: NDArray[Any], estimate: NDArray[Any]
) -> None:
    """Refuse numbers that the engine cannot hold, or whose sums could overflow in it."""
    if cluster.processors > LARGEST:
        raise ConfigurationError(
            f"cluster {cluster.name}: {cluster.processors} processors; at most {LARGEST} can be simulated"
        )
    for what, seconds, most in (
        ("is submitted at", workload.submit_time, LONGEST_TIME),
        ("runs for", run_time, LONGEST_TIME),
        ("is estimated at", estimate, LARGEST),
    ):
        if seconds.max() > most:
            job = int(np.argmax(seconds))
            raise WorkloadError(
                f"{workload.name}: job {workload.job_number[job]} {what} {seconds[job]} s; "
                f"at most {most} s can be simulated"
            )


def believed(
    run: NDArray[np.int64], requested: NDArray[np.int64], estimates: str | NDArray[Any]
) -> NDArray[np.int64]:
    """Estimated run time of each job, at least one second."""
    if not isinstance(estimates, str):
        return _given(np.asarray(estimates, np.float64), len(run))
    if estimates == "requested":
        believed = np.where(requested > 0, requested, run)
    elif estimates == "actual":
        believed = run
    elif estimates == "clairvoyant":
        believed = np.maximum(requested, run)
    else:
        raise ConfigurationError(
            f"estimates is {estimates!r}; use requested, actual, clairvoyant or an array"
        )
    return np.maximum(believed, 1)


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


def simulate_grid(
    workloads: Sequence[Workload],
    clusters: Sequence[Cluster],
    superscheduler: SchemeName | Superscheduler = "s-i",
    policy: str | LocalPolicy | Sequence[str | LocalPolicy] = "easy",
    *,
    estimates: EstimateName = "requested",
    align: Literal["start", "clock", "none"] = "start",
    overrun: OverrunName = "doubling",
) -> xr.Dataset:
    """Run the workloads of several clusters through a superscheduler.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs that users submit to each cluster.
    clusters : sequence of Cluster
        The clusters, one for each workload. A job that moves takes run time x home speed / speed there.
    superscheduler : str or Superscheduler
        A scheme of `gridsched.schedulers.superscheduler` with its default parameters, or with others.
    policy : str, LocalPolicy, or a sequence of them
        Local policy of all clusters, or of each.
    estimates : {"requested", "actual", "clairvoyant"}
        What the schedulers believe of run times, see `simulate`.
    align : {"start", "clock", "none"}
        How submit times of the workloads go together, see `gridsched.traces.fuse`.
    overrun : {"doubling", "increments"}
        Convention, see `gridsched.schedulers.local.Conventions`.

    Returns
    -------
    xarray.Dataset
        A run dataset, see `gridsched.results.run_dataset`, with the job variables home_cluster (index) and
        reach_processors (of the largest cluster that the job may use) besides.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If clusters, workloads and policies do not go together, or an option is unknown.
    """
    if len(workloads) != len(clusters):
        raise ConfigurationError(
            f"{len(workloads)} workloads for {len(clusters)} clusters; give one for each"
        )
    if isinstance(superscheduler, str):
        superscheduler = Superscheduler(scheme=superscheduler)
    given = [policy] * len(clusters) if isinstance(policy, str | LocalPolicy) else policy
    policies = [named_policy(each) for each in given]
    for workload in workloads:
        check_clean(workload)
    merged, home = fuse(workloads, align=align)
    requested = np.asarray(merged.requested_time, np.int64)
    estimate = believed(merged.run_time, requested, estimates)
    speed = np.array([cluster.speed for cluster in clusters])
    slowest = speed.max() / speed.min()
    for cluster in clusters:
        check_limits(merged, cluster, np.ceil(merged.run_time * slowest), np.ceil(estimate * slowest))
    jobs = np.empty(len(merged), JOB)
    jobs["submit"] = merged.submit_time
    jobs["run"] = merged.run_time
    jobs["estimate"] = estimate
    jobs["processors"] = merged.processors
    done = schedule_grid(
        jobs, home, clusters, policies, superscheduler, overrun=overrun, labels=labels_of(merged)
    )
    moved = np.ceil(merged.run_time * speed[home] / speed[done.cluster]).astype(np.int64)
    run_time = np.where((done.cluster == home) | (done.cluster < 0), merged.run_time, moved)
    allocations = np.stack([cluster.allocation(merged.processors) for cluster in clusters])
    dataset = results.run_dataset(
        merged,
        clusters,
        cluster=done.cluster,
        start_time=done.start_time,
        run_time=run_time,
        estimate=estimate,
        allocated=allocations[done.cluster, np.arange(len(merged))],
        attributes={
            "scheme": superscheduler.scheme,
            "policies": ", ".join(each.name for each in policies),
            "estimates": estimates,
            "overrun": overrun,
            **{key: getattr(superscheduler, key) for key in _OF_SUPERSCHEDULER},
            "silent": superscheduler.silence_as_text(),
            "jobs_without_requested_time": int((requested <= 0).sum()),
            "jobs_transferred": int(((done.cluster != home) & (done.cluster >= 0)).sum()),
            "corrections": done.corrections,
            "queries": done.queries,
        },
    )
    dataset["home_cluster"] = ("job", home, {"long_name": "index of the cluster of submission", "units": "1"})
    dataset["reach_processors"] = (
        "job",
        superscheduler.reach(clusters)[home],
        {"long_name": "processors of the largest cluster that the job may use", "units": "1"},
    )
    return dataset


def labels_of(workload: Workload) -> NDArray[Any]:
    """User, group and queue of each job, for scores."""
    labels = np.empty(len(workload), LABELS)
    for name in ("user", "group", "queue"):
        labels[name] = getattr(workload, name)
    return labels
