"""The engine in the form of the naive oracle, so that both answer the same questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import DEPENDENT, LIFE, Dependency, Fate
from gridsched.engine.records import FOREVER, JOB
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName, PassName, named_policy, schedule
from tests.oracles.local import Job
from tests.oracles.users import NEVER, Life

KINDS = dict(zip(("after", "afterany", "afterok", "afternotok"), Dependency, strict=True))


def simulate(
    jobs: list[Job],
    processors: int,
    policy: LocalPolicy,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
) -> list[int]:
    """Start times [s] of the jobs under a policy."""
    records = np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], JOB)
    starts, _ = schedule(records, processors, policy, Conventions(overrun, passes))
    return [int(start) for start in starts]


def simulate_policy(
    jobs: list[Job], processors: int, policy: str, overrun: str = "doubling", passes: str = "instant"
) -> list[int]:
    """Start times [s] of the jobs under a named policy."""
    return simulate(
        jobs, processors, named_policy(policy), cast(OverrunName, overrun), cast(PassName, passes)
    )


def lifecycles(jobs: Sequence[Life], rejected: Collection[int]) -> job_lifecycle.Lifecycles:
    """Lifecycles of the jobs of the naive users, who notice at once when a job ends."""
    records = np.zeros(len(jobs), LIFE)
    records["submit"] = [job.submit for job in jobs]
    records["gives_up"] = [FOREVER if job.gives_up == NEVER else job.gives_up for job in jobs]
    records["failed"] = [job.failed for job in jobs]
    records["unmet"] = [1 + len(job.after) for job in jobs]
    records["fate"] = [int(Fate.REJECTED if j in rejected else Fate.COMPLETED) for j in range(len(jobs))]
    needs = [(on, j, int(KINDS[kind]), delay) for j, job in enumerate(jobs) for on, kind, delay in job.after]
    needs.sort(key=lambda need: need[0])
    dependents = np.array([(*need, FOREVER, 0, 0) for _, *need in needs], DEPENDENT)
    first = np.searchsorted([on for on, *_ in needs], range(len(jobs) + 1)).astype(np.int64)
    return job_lifecycle.allocate(records, dependents, first)
