"""Grid schedulers on records of jobs, without a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.platform import Cluster, Platform
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler
from gridsched.workloads.table import Workload


def schedule_grid(
    jobs: NDArray[Any],
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    policies: Sequence[str | LocalPolicy],
    scheduler: Scheduler,
    overrun: OverrunName = "doubling",
) -> Schedule:
    """Schedule jobs (JOB[n] of `gridsched.engine.records`), each submitted at a cluster."""
    workload = Workload(
        name="jobs",
        submit_time=jobs["submit"],
        run_time=jobs["run"],
        requested_processors=jobs["processors"],
    )
    return scheduler.schedule(
        Submission(
            workload=workload,
            home=home,
            platform=Platform(list(clusters)).with_policy(list(policies)),
            estimates=jobs["estimate"],
            conventions=Conventions(overrun=overrun),
        )
    )


def places(schedule: Schedule) -> list[tuple[int, int]]:
    """Start time and cluster of each job, -1 without."""
    assert schedule.segments is not None
    cluster = np.full(len(schedule.start_time), -1, np.int64)
    cluster[schedule.segments["job"]] = schedule.segments["cluster"]
    return list(zip(schedule.start_time.tolist(), cluster.tolist(), strict=True))
