"""Jobs on a cluster of nodes, and their outcomes there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.policies.nodes import NodeWorkload, schedule_on_nodes
from gridsched.submission import Submission, labels_of
from gridsched.systems.job_outcomes import lifecycles_of
from gridsched.systems.node_records import (
    ASKED_NAMES,
    NodeUse,
    asked_for,
    count_reasons,
    events_of,
    executed,
    limits_of,
    nodes_of,
    partitions_of,
    reach_of,
    reasons_against,
    times_of,
    user_numbers,
    with_checkpoints,
)
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeRun(NodeUse):
    """Outcomes of the jobs of one cluster."""

    start_time: Integers
    end_time: Integers
    fate: Integers
    killed: Integers
    extra: Integers
    eligible: Integers
    predicted: Integers
    reasons: dict[str, int]
    corrections: int


def run_on_nodes(
    cluster: Cluster,
    policy: LocalPolicy,
    submission: Submission,
    own: Integers,
    index: int,
    seed: int,
) -> NodeRun:
    """Run some of the jobs of a submission on one cluster."""
    nodes, names, unit = nodes_of(cluster)
    part = _Part.of(submission, own)
    jobs = _jobs(part, cluster, nodes, unit)
    partition = partitions_of(part.workload, cluster)
    allowed, where = reach_of(cluster, nodes, names, partition)
    jobs["where"] = where
    requested = np.asarray(part.workload.requested_time, np.int64)
    against = reasons_against(jobs, part.workload, cluster, nodes, allowed, partition, requested)
    _take_for_run_times(jobs, policy, cluster)
    jobs["shape"] = np.unique(jobs[ASKED_NAMES], return_inverse=True)[1].reshape(-1)
    events, windows, outages = events_of(cluster, names)
    lives = lifecycles_of(replace(submission, workload=part.workload), against > 0)
    limits, limited = limits_of(part.workload, cluster.limits)
    priority = np.array([each.priority for each in cluster.partitions] or [0], np.int64)[partition]
    a = schedule_on_nodes(
        NodeWorkload(
            jobs=jobs,
            labels=labels_of(part.workload),
            nodes=nodes,
            allowed=allowed,
            priority=priority,
            events=events,
            windows=windows,
            lifecycles=lives,
            limits=limits,
            limited=limited,
        ),
        policy,
        submission.conventions,
        placement=cluster.placement,
        requeue=cluster.requeue,
        checkpoints=(cluster.checkpoint_interval, cluster.checkpoint_cost),
        seed=seed,
    )
    segments, pieces = executed(a.executions[: a.store["executions"][0]], index)
    start, end = times_of(segments, len(jobs))
    fate = lives.jobs["fate"].astype(np.int64)
    fate[(fate == int(Fate.COMPLETED)) & (jobs["done"] == 0)] = int(Fate.STARVED)
    left = np.isin(fate, [int(Fate.GAVE_UP)])
    lost = fate == int(Fate.LOST)
    return NodeRun(
        start_time=start,
        end_time=np.where(left, -1, end),
        fate=fate,
        killed=jobs["killed"].astype(np.int64),
        # work that a lost job never did, and work that was done twice
        extra=jobs["extra"] - np.where(lost | ((fate == int(Fate.STARVED)) & (start >= 0)), jobs["work"], 0),
        eligible=lives.jobs["eligible"].astype(np.int64),
        predicted=jobs["predicted"].astype(np.int64),
        segments=segments,
        pieces=pieces,
        nodes=nodes,
        node_names=names,
        outages=outages,
        asked={name: jobs[name].astype(np.int64) for name in ASKED_NAMES},
        limits=limits,
        limited=limited,
        priority=priority,
        reasons=count_reasons(against),
        corrections=int(a.state["corrections"][0]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """The jobs of one cluster."""

    workload: Workload
    run_time: Integers
    estimate: Integers

    @classmethod
    def of(cls, submission: Submission, own: Integers) -> _Part:
        workload = submission.workload.select(own)
        return cls(
            workload=workload,
            run_time=submission.run_time[own],
            estimate=submission.estimate[own],
        )


def _jobs(part: _Part, cluster: Cluster, nodes: RecordArray, unit: int) -> RecordArray:
    """Jobs as the engine wants them."""
    workload = part.workload
    jobs = asked_for(workload, cluster, nodes, unit)
    jobs["submit"] = workload.submit_time
    jobs["work"], jobs["guess"], jobs["given"] = part.run_time, part.estimate, part.estimate
    for length, work in (("run", "work"), ("estimate", "guess"), ("limit", "given")):
        jobs[length] = with_checkpoints(jobs[work], cluster)
    jobs["user"] = user_numbers(workload)
    for name in ("entry", "piece", "start", "end"):
        jobs[name] = -1
    jobs["plan"] = FOREVER
    return jobs


def _take_for_run_times(jobs: RecordArray, policy: LocalPolicy, cluster: Cluster) -> None:
    """Let jobs be as long as the policy takes them to be before it knows more."""
    if policy.prediction == "double":
        jobs["guess"] = 2 * jobs["given"]
    elif policy.prediction == "actual":
        jobs["guess"] = np.maximum(jobs["work"], 1)
    jobs["estimate"] = with_checkpoints(jobs["guess"], cluster)
    jobs["predicted"] = jobs["guess"]
