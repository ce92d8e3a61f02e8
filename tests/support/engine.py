"""The engine in the form of the naive oracle, so that both answer the same questions."""

from __future__ import annotations

from typing import cast

import numpy as np

from gridsched.engine.records import JOB
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName, PassName, named_policy, schedule
from tests.oracles.local import Job


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
