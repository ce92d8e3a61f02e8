"""Every cluster on its own: jobs run where they are submitted, under the local policy of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from gridsched.engine.records import JOB
from gridsched.policies.callbacks import Kind
from gridsched.policies.local import POLICIES, LocalPolicy, named_policy, schedule
from gridsched.policies.scores import SCORE
from gridsched.results import NO_TIME, Schedule, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.base import Scheduler


@dataclass(frozen=True)
class Local(Scheduler):
    """Every cluster schedules the jobs that are submitted to it.

    Parameters
    ----------
    policy : str or LocalPolicy, optional
        Local policy of all clusters; by default each has its own.

    Raises
    ------
    ConfigurationError
        If the policy is unknown.
    """

    policy: str | LocalPolicy | None = None

    system: ClassVar[str] = "local"
    knows: ClassVar[str] = "its own cluster"
    opened: ClassVar[Mapping[str, type]] = {"policy": LocalPolicy}
    functions: ClassVar[Mapping[str, Kind]] = {"order": SCORE, "backfill_order": SCORE}
    cannot: ClassVar[Mapping[str, str]] = {
        "message delay": "no messages are sent",
        "migration delay": "jobs do not move",
        "deadlines": "local policies do not know deadlines",
        "reservations": "local policies start jobs as soon as they can",
        "membership": "a cluster on its own belongs to no grid",
        "changes": "the processors of a cluster stay the same under local policies",
    }

    def __post_init__(self) -> None:
        if self.policy is not None:
            object.__setattr__(self, "policy", named_policy(self.policy))

    @property
    def label(self) -> str:
        """Name in results."""
        return "local" if self.policy is None else named_policy(self.policy).name

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs of each cluster through its local policy."""
        clusters, workload = submission.clusters, submission.workload
        policies = submission.policies if self.policy is None else [named_policy(self.policy)] * len(clusters)
        submission = submission.at_home()
        home, run_time, estimate = submission.home, submission.run_time, submission.estimate
        labels = labels_of(workload)
        start_time = np.full(len(submission), NO_TIME, np.int64)
        allocated = np.asarray(workload.processors, np.int64).copy()
        corrections = 0
        for index, (cluster, policy) in enumerate(zip(clusters, policies, strict=True)):
            own = np.flatnonzero(home == index)
            allocated[own] = cluster.allocation(allocated[own])
            accepted = own[allocated[own] <= cluster.processors]
            jobs = np.empty(len(accepted), JOB)
            jobs["submit"] = workload.submit_time[accepted]
            jobs["run"] = run_time[accepted]
            jobs["estimate"] = estimate[accepted]
            jobs["processors"] = allocated[accepted]
            starts, corrected = schedule(
                jobs, cluster.processors, policy, submission.conventions, labels[accepted]
            )
            start_time[accepted] = starts
            corrections += corrected
        reach = np.array([cluster.processors for cluster in clusters], np.int64)[home]
        return Schedule(
            start_time=start_time,
            run_time=run_time,
            estimate=estimate,
            segments=in_one_piece(start_time, run_time, home, allocated),
            variables={"reach_processors": ("job", reach, "processors of the cluster of submission", "1")},
            counters={
                "corrections": corrections,
                "policies": ", ".join(policy.name for policy in policies),
            },
        )


SCHEDULER = Local

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "local": Local,
    **{name: partial(Local, policy) for name, policy in POLICIES.items()},
}
"""Local policies by name."""
