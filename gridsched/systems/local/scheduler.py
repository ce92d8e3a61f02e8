"""Every cluster on its own: jobs run where they are submitted, under the local policy of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from gridsched.engine.records import JOB, RecordArray
from gridsched.platform import Platform
from gridsched.policies.callbacks import Kind
from gridsched.policies.local import (
    POLICIES,
    PREDICTING,
    Conventions,
    LocalPolicy,
    named_policy,
    schedule,
    schedule_with_predictions,
)
from gridsched.policies.online import Online, OnlinePolicy
from gridsched.policies.scores import SCORE
from gridsched.results import NO_TIME, Schedule, Variable, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.base import Scheduler
from gridsched.systems.job_outcomes import JobOutcome
from gridsched.systems.local.nodes import run_on_nodes
from gridsched.systems.node_records import needs_nodes, node_results, predicted_variable
from gridsched.workloads.table import Workload


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
        "deadlines": "local policies do not use deadlines",
        "reservations": "local policies start jobs as soon as they can",
        "membership": "a cluster on its own belongs to no grid",
        "changes": "the processors of a cluster stay the same under local policies",
        "preemption": "a job that has started runs to its end",
    }

    def __post_init__(self) -> None:
        if self.policy is not None:
            object.__setattr__(self, "policy", named_policy(self.policy))

    @property
    def label(self) -> str:
        """Name in results."""
        return "local" if self.policy is None else named_policy(self.policy).name

    def incompatibility(
        self,
        platform: Platform,
        conventions: Conventions | None = None,
        workload: Workload | None = None,
    ) -> str:
        """Why it cannot schedule such jobs on such a platform under such conventions; empty if it can."""
        reason = super().incompatibility(platform, conventions, workload)
        if reason or conventions is None or workload is None:
            return reason
        if not any(needs_nodes(cluster, workload) for cluster in platform.clusters):
            return ""
        if conventions.passes != "instant":
            return "scheduling passes: where nodes matter or jobs leave the queue there is one an instant"
        return ""

    def _policies_on(self, platform: Platform) -> list[LocalPolicy]:
        """Local policy of each cluster."""
        return platform.policies if self.policy is None else [named_policy(self.policy)] * len(platform)

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs of each cluster through its local policy."""
        clusters, workload = submission.clusters, submission.workload
        policies = self._policies_on(submission.platform)
        submission = submission.at_home()
        home, run_time, estimate = submission.home, submission.run_time, submission.estimate
        labels = labels_of(workload)
        if any(needs_nodes(cluster, workload) for cluster in clusters):
            return self._schedule_nodes(submission, policies)
        start_time = np.full(len(submission), NO_TIME, np.int64)
        predicted = estimate.copy()
        allocated = np.asarray(workload.processors, np.int64).copy()
        corrections = 0
        for index, (cluster, policy) in enumerate(zip(clusters, policies, strict=True)):
            own = np.flatnonzero(home == index)
            allocated[own] = cluster.allocation(allocated[own])
            accepted = own[allocated[own] <= cluster.processors]
            jobs: RecordArray = np.empty(len(accepted), JOB)
            jobs["submit"] = workload.submit_time[accepted]
            jobs["run"] = run_time[accepted]
            jobs["estimate"] = estimate[accepted]
            jobs["processors"] = allocated[accepted]
            given = jobs, cluster.processors, policy, submission.conventions, labels[accepted]
            if policy.predicts:
                starts, corrected, predicted[accepted] = schedule_with_predictions(*given)
            else:
                starts, corrected = schedule(*given)
            start_time[accepted] = starts
            corrections += corrected
        reach = np.array([cluster.processors for cluster in clusters], np.int64)[home]
        variables: dict[str, Variable] = {
            "reach_processors": ("job", reach, "processors of the cluster of submission", "1")
        }
        if any(policy.predicts for policy in policies):
            variables["predicted_run_time"] = predicted_variable(predicted)
        return Schedule(
            start_time=start_time,
            run_time=run_time,
            estimate=estimate,
            segments=in_one_piece(start_time, run_time, home, allocated),
            variables=variables,
            counters={
                "corrections": corrections,
                "policies": ", ".join(policy.name for policy in policies),
            },
        )

    def online(self, processors: int, conventions: Conventions | None = None) -> Online:
        """The policy, for a cluster of another simulator."""
        return OnlinePolicy(named_policy(self.policy or "easy"), processors, conventions)

    def _schedule_nodes(self, submission: Submission, policies: list[LocalPolicy]) -> Schedule:
        """Run the jobs of each cluster node by node."""
        workload, clusters, jobs = submission.workload, submission.clusters, len(submission)
        runs = []
        for index, (cluster, policy) in enumerate(zip(clusters, policies, strict=True)):
            own = np.flatnonzero(submission.home == index)
            if len(own):
                runs.append((index, cluster, own, run_on_nodes(cluster, policy, submission, own, index)))
        names = ("start_time", "end_time", "predicted", "against")
        columns = {name: np.zeros(jobs, np.int64) for name in (*names, *JobOutcome.__dataclass_fields__)}
        for _, _, own, run in runs:
            for name, values in columns.items():
                values[own] = (vars(run) | vars(run.outcomes))[name]
        start_time, end_time, predicted, against = (columns.pop(name) for name in names)
        segments, variables, counters = node_results(workload, clusters, runs, JobOutcome(**columns), against)
        if any(policy.predicts for policy in policies):
            variables["predicted_run_time"] = predicted_variable(predicted)
        return Schedule(
            start_time=start_time,
            end_time=end_time,
            run_time=submission.run_time,
            estimate=submission.estimate,
            segments=segments,
            variables=variables,
            counters={
                "corrections": sum(run.corrections for *_, run in runs),
                "policies": ", ".join(policy.name for policy in policies),
                **counters,
            },
        )


SCHEDULER = Local

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "local": Local,
    **{name: partial(Local, policy) for name, policy in {**POLICIES, **PREDICTING}.items()},
}
"""Local policies by name."""
