"""Jobs that schedule themselves, without platforms and datasets: submissions from columns, runs in short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.platform import Cluster, Platform
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.jscheduler.scheduler import JScheduler, Simulation
from gridsched.workloads.table import UNKNOWN, Workload


class Submissions(NamedTuple):
    """Jobs in order of submission, as on a cluster of speed 1."""

    submit_time: NDArray[np.int64]
    run_time: NDArray[np.int64]
    estimate: NDArray[np.int64]
    processors: NDArray[np.int64]


class SelfSchedule(NamedTuple):
    """What was decided: -1 for a job that no cluster can hold."""

    start_time: NDArray[np.int64]
    resource: NDArray[np.int64]
    run_time: NDArray[np.int64]
    queries: int
    corrections: int


def simulation_of(
    jobs: Submissions,
    resources: Sequence[Cluster],
    policies: Sequence[str | LocalPolicy],
    jscheduler: JScheduler,
    *,
    samples: NDArray[np.int16] | None = None,
    seed: int = 0,
    overrun: OverrunName = "doubling",
    user: NDArray[Any] | None = None,
    home: NDArray[Any] | None = None,
) -> Simulation:
    """A simulation of jobs on clusters."""
    workload = Workload(
        name="jobs",
        submit_time=jobs.submit_time,
        run_time=jobs.run_time,
        requested_processors=jobs.processors,
        user=np.full(len(jobs.processors), UNKNOWN) if user is None else user,
    )
    submission = Submission(
        workload=workload,
        home=np.full(len(workload), -1, np.int64) if home is None else home,
        platform=Platform(list(resources)).with_policy(list(policies)),
        estimates=jobs.estimate,
        conventions=Conventions(overrun=overrun),
        seed=seed,
        times="unit",
    )
    return Simulation(submission, jscheduler, samples=samples)


def in_short(schedule: Schedule) -> SelfSchedule:
    """What a schedule of jobs that ran says."""
    resource = np.full(len(schedule.start_time), -1, np.int64)
    assert schedule.segments is not None
    resource[schedule.segments["job"]] = schedule.segments["cluster"]
    counters = schedule.counters
    return SelfSchedule(
        schedule.start_time, resource, schedule.run_time, counters["queries"], counters["corrections"]
    )


def self_schedule(*jobs_and_grid: Any, **options: Any) -> SelfSchedule:
    """Run jobs; parameters are those of `simulation_of`."""
    simulation = simulation_of(*jobs_and_grid, **options)
    simulation.run()
    return in_short(simulation.result())
