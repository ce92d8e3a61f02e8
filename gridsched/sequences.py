"""Sequences of consecutive jobs on an idle cluster that commits itself to a job: where policies are learned.

The conventions are those of Zhang et al., "RLScheduler: an automated HPC batch job scheduler using
reinforcement learning", SC 2020; the engine is `gridsched.engine.committed`. Studies of sequences and the
environment `gridsched.rl` simulate and measure them with what is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from gridsched.engine import committed
from gridsched.engine.committed import CommittedArrays
from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.metrics import jobs as metrics
from gridsched.platform import Cluster
from gridsched.submission import check_clean, check_limits, check_size, labels_of, runtime_estimates
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

SequenceBackfilling = Literal["none", "shadow"]
"""Whether other jobs start in the shadow of the chosen one."""

WaitName = Literal["unset", "true"]
"""Waits that scores have: the true one, or one that is counted to a start of -1, which the published
simulator has set nowhere when it asks."""

_UNKNOWN_RUN_TIME = 10
"""Seconds that jobs run whose log does not say how long."""


def published_jobs(read: Workload) -> Workload:
    """Jobs of a log as the published simulator reads them.

    Processors are the larger of the requested and the allocated ones; a job without requested time asks for
    its run time; jobs without run time are left out, those whose run time is unknown run for 10 s.

    Examples
    --------
    >>> import gridsched as gs, numpy as np
    >>> from gridsched.sequences import published_jobs
    >>> read = gs.Workload(
    ...     name="log",
    ...     submit_time=np.array([0, 4, 9]),
    ...     run_time=np.array([60, 0, -1]),
    ...     requested_processors=np.array([2, 1, 4]),
    ... )
    >>> published_jobs(read).run_time
    array([60, 10])
    """
    size = np.maximum(read.requested_processors, read.allocated_processors).astype(np.int64)
    recorded, requested = (np.asarray(each, np.int64) for each in (read.run_time, read.requested_time))
    unknown, none = recorded < 0, requested < 0
    run_time = np.where(unknown, _UNKNOWN_RUN_TIME, recorded)
    kept = np.flatnonzero((run_time > 0) & (size > 0))
    kept = kept[np.argsort(read.submit_time[kept], kind="stable")]
    return Workload(
        name=read.name,
        job_number=read.job_number[kept],
        submit_time=read.submit_time[kept],
        run_time=run_time[kept],
        requested_time=np.where(none, recorded, requested)[kept],
        requested_processors=size[kept],
        user=read.user[kept],
        group=read.group[kept],
        queue=read.queue[kept],
        acknowledgement=read.acknowledgement,
        checksum=read.checksum,
        left_out=add_counts(read.left_out, {"without run time or size": len(size) - len(kept)}),
        repaired=add_counts(
            read.repaired,
            {"unknown run time": int(unknown[kept].sum()), "no requested time": int(none[kept].sum())},
        ),
    )


def given_jobs(workload: Workload) -> Workload:
    """Jobs of a clean workload, as all simulations take them: who requests no time requests the run time.

    Raises
    ------
    WorkloadError
        If the workload is not clean.
    """
    check_clean(workload)
    run_time = np.asarray(workload.run_time, np.int64)
    requested = runtime_estimates(run_time, np.asarray(workload.requested_time, np.int64), "requested")
    return replace(workload, requested_time=requested)


def idle_clusters(jobs: Workload, cluster: Cluster, starts: Sequence[int], length: int) -> CommittedArrays:
    """Idle copies of a cluster, for a sequence of so many jobs from each of these places in the log on.

    Raises
    ------
    ConfigurationError
        If a sequence goes beyond the log, or a job of a sequence is larger than the cluster.
    GridschedError
        If the jobs or the cluster have numbers that the engine cannot hold.
    """
    for start in starts:
        check_sequence(jobs, cluster, start, length)
    check_size(cluster)
    check_limits(jobs, jobs.run_time, jobs.requested_time)
    records = np.empty(len(jobs), JOB)
    records["submit"], records["run"] = jobs.submit_time, jobs.run_time
    records["estimate"], records["processors"] = jobs.requested_time, jobs.processors
    return committed.allocate(records, labels_of(jobs), cluster.processors, starts, length)


def check_sequence(jobs: Workload, cluster: Cluster, start: int, length: int) -> None:
    """Refuse a sequence that is not within the log, or has jobs that are larger than the cluster."""
    if not 0 <= start <= len(jobs) - length:
        raise ConfigurationError(
            f"{jobs.name}: a sequence from {start} on needs {start + length} jobs, the log has {len(jobs)}"
        )
    largest = jobs.processors[start : start + length].max()
    if largest > cluster.processors:
        raise ConfigurationError(
            f"{jobs.name}: a job asks for {largest} of {cluster.processors} processors; give processors"
        )


def measures_of(state: CommittedArrays, clusters: Sequence[int] | None = None) -> list[dict[str, float]]:
    """Measures of the sequences of some clusters, of all by default, once all their jobs have started."""
    return [_measures(state, c) for c in (range(len(state.state)) if clusters is None else clusters)]


def _measures(state: CommittedArrays, c: int) -> dict[str, float]:
    """Measures of a sequence."""
    start = state.starts[c]
    first, processors = (int(state.state[c][name]) for name in ("first", "processors"))
    jobs = state.jobs[first : first + len(start)]
    submit, run_time = jobs["submit"], jobs["run"]
    end = start + run_time
    response = metrics.response_time(submit, end)
    begin, work = int(submit.min()), int((run_time * jobs["processors"]).sum())

    def utilisation(until: int) -> float:
        # in no time nothing is used: a reward has to be a number
        return work / (processors * (until - begin)) if until > begin else 0.0

    return {
        "jobs": float(len(start)),
        "wait_time_mean": float(metrics.wait_time(submit, start).mean()),
        "response_time_mean": float(response.mean()),
        "slowdown_mean": float(metrics.slowdown(response, run_time).mean()),
        "bounded_slowdown_mean": float(metrics.bounded_slowdown(response, run_time).mean()),
        "utilisation_makespan": utilisation(int(end.max())),
        "utilisation_to_last_start": utilisation(int(start.max())),
    }
