"""Jobs on a cluster of nodes, and their outcomes there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.policies.nodes import NodeWorkload, schedule_on_nodes
from gridsched.submission import Submission, labels_of
from gridsched.systems.job_outcomes import JobOutcome, lifecycles_of, outcomes_on_nodes
from gridsched.systems.node_records import (
    ASKED_NAMES,
    NodeUse,
    asked_for,
    executed,
    limits_of,
    nodes_for,
    priorities_of,
    reasons_against,
    times_of,
    user_numbers,
    with_checkpoints,
)

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeRun(NodeUse):
    """Outcomes of the jobs of one cluster."""

    start_time: Integers
    end_time: Integers
    predicted: Integers
    against: NDArray[np.int8]
    corrections: int
    outcomes: JobOutcome


def run_on_nodes(
    cluster: Cluster, policy: LocalPolicy, submission: Submission, own: Integers, index: int
) -> NodeRun:
    """Run some of the jobs of a submission on one cluster."""
    workload = submission.workload.select(own)
    site, where = nodes_for(cluster, workload)
    jobs = asked_for(workload, cluster, site, where)
    jobs["submit"], jobs["user"] = workload.submit_time, user_numbers(workload)
    jobs["work"], jobs["given"] = submission.run_time[own], submission.estimate[own]
    jobs["run"], jobs["limit"] = (with_checkpoints(jobs[name], cluster) for name in ("work", "given"))
    jobs["estimate"] = jobs["limit"]
    requested = np.asarray(workload.requested_time, np.int64)
    against = reasons_against(jobs, workload, cluster, site, requested)
    jobs["guess"] = _taken_for(policy, jobs)
    jobs["predicted"], jobs["estimate"] = jobs["guess"], with_checkpoints(jobs["guess"], cluster)
    jobs["shape"] = np.unique(jobs[ASKED_NAMES], return_inverse=True)[1].reshape(-1)
    lives = lifecycles_of(replace(submission, workload=workload), against > 0)
    limits, limited = limits_of(workload, cluster.limits)
    priority = priorities_of(workload, cluster)
    a = schedule_on_nodes(
        NodeWorkload(
            jobs=jobs,
            labels=labels_of(workload),
            nodes=site.nodes,
            allowed=site.allowed,
            numbers=site.numbers,
            priority=priority,
            events=site.events,
            windows=site.windows,
            lifecycles=lives,
            limits=limits,
            limited=limited,
        ),
        policy,
        submission.conventions,
        placement=cluster.placement,
        requeue=cluster.requeue,
        checkpoints=(cluster.checkpoint_interval, cluster.checkpoint_cost),
        seed=submission.seed,
        awaited=submission.awaited,
    )
    segments, pieces = executed(a.executions[: a.store["executions"][0]], index)
    start, end = times_of(segments, len(jobs))
    segments["job"] = own[segments["job"]]
    return NodeRun(
        start_time=start,
        end_time=end,
        outcomes=outcomes_on_nodes(lives.jobs, jobs, np.asarray(workload.processors, np.int64)),
        predicted=jobs["predicted"].astype(np.int64),
        segments=segments,
        pieces=pieces,
        site=site,
        asked={name: jobs[name].astype(np.int64) for name in ASKED_NAMES},
        limits=limits,
        limited=limited,
        priority=priority,
        against=against,
        corrections=int(a.state["corrections"][0]),
    )


def _taken_for(policy: LocalPolicy, jobs: RecordArray) -> Integers:
    """What the policy takes for run times before it knows more."""
    taken: dict[str, Integers] = {"double": 2 * jobs["given"], "actual": np.maximum(jobs["work"], 1)}
    return np.asarray(taken.get(policy.prediction, jobs["given"]))
