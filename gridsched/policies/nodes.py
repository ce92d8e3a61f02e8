"""Local policies on clusters of nodes: what `gridsched.policies.local.schedule` is for plain processors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Lifecycles, Requeue
from gridsched.engine.nodes import arrays, simulation
from gridsched.engine.nodes.records import TYPICAL, Placement
from gridsched.engine.records import JOB, Backfilling, Correction, Overrun, Prediction, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.policies import scores
from gridsched.policies.local import (
    AS_QUEUE,
    ORDERS,
    Conventions,
    LocalPolicy,
    order_score,
    sort_keys,
)

_BITS = 62
"""Kinds of GPU jobs that the placement "clustered" tells apart."""


_TYPICAL = 0.95
"""Share of jobs whose kinds are typical."""

_STEP = 2.0**42
"""By how much keys of jobs of two priorities differ at least where they follow predictions; more than any."""

_EXACT = 2.0**53
"""Whole numbers up to this are exact in float64."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeWorkload:
    """Jobs as they are on a cluster of nodes, and what happens there; see `gridsched.engine.nodes.records`.

    Parameters
    ----------
    jobs : JOB[n]
        In order of submission.
    labels : LABELS[n]
        User, group and queue, for scores; those of one user are predicted from one another.
    nodes : NODE[m]
        The nodes.
    allowed : int64[w, m]
        Nodes that jobs may use, by their `where`, see `gridsched.nodes.nodes_with`.
    numbers : int64[w, ...]
        How many units of a job have nodes of each bit there; 0 where bits are choices.
    priority : int64[n]
        Jobs of higher priority come first in the queue.
    events, windows
        What happens to nodes, by time.
    lifecycles : Lifecycles
        When jobs are submitted, who depends on whom, and when users give up.
    limits, limited
        Limits, and those that each job is subject to.
    """

    jobs: RecordArray
    labels: RecordArray
    nodes: RecordArray
    allowed: NDArray[np.int64]
    numbers: NDArray[np.int64]
    priority: NDArray[np.int64]
    events: RecordArray
    windows: RecordArray
    lifecycles: Lifecycles
    limits: RecordArray
    limited: NDArray[np.int64]


def schedule_on_nodes(
    work: NodeWorkload,
    policy: LocalPolicy,
    conventions: Conventions,
    *,
    placement: str = "first_fit",
    requeue: str = "place",
    checkpoints: tuple[int, int] = (0, 0),
    seed: int = 0,
    awaited: int = 0,
) -> arrays.NodeArrays:
    """Simulate a cluster of nodes under a local policy.

    Parameters
    ----------
    work : NodeWorkload
        Jobs and nodes.
    policy, conventions
        As for plain processors; passes are one an instant.
    placement, requeue, checkpoints
        As of `gridsched.platform.Cluster`.
    seed : int
        Of the placement "random".
    awaited : int
        The first jobs whose starts are wanted alone: the simulation ends with the last of these starts. 0 to
        go on to the last end.

    Returns
    -------
    NodeArrays
        `executions`, `jobs`, `lifecycles` and `state` are the result.

    Raises
    ------
    ConfigurationError
        If a user's score cannot be compiled, is not a number for some job, or changes with time beside
        partitions of different priority; if there are too many priorities for a policy that predicts.
    """
    order = order_score(policy.order, "order")
    changing = scores.changes_with_time(order)
    if changing and len(np.unique(work.priority)) > 1:
        raise ConfigurationError(
            f"policy {policy.name!r}: its order changes with time, and partitions have different priorities; "
            "use another order, or one priority"
        )
    backfilling = int(Backfilling[policy.backfilling.upper()])
    a = arrays.allocate(
        work.jobs,
        np.ascontiguousarray(work.labels),
        int(work.jobs["user"].max(initial=-1)) + 1,
        work.nodes,
        work.allowed,
        work.numbers,
        _keys(work, policy),
        work.events,
        work.windows,
        work.lifecycles,
        work.limits,
        work.limited,
        typical_jobs(work.jobs) if placement == "fragments" else np.empty(0, TYPICAL),
    )
    options = arrays.NodeOptions(
        backfilling=backfilling,
        reservations=policy.reservations,
        overrun=int(Overrun[conventions.overrun.upper()]),
        # other predictions are known before
        prediction=int(Prediction.RECENT if policy.prediction == "recent" else Prediction.ESTIMATE),
        correction=int(Correction[policy.correction.upper()]),
        changing=changing,
        queue_as_order=policy.backfill_order == AS_QUEUE,
        shortest_first=policy.backfill_order == "shortest",
        placement=int(Placement[placement.upper()]),
        track=backfilling >= int(Backfilling.EASY) or len(work.events) > 0 or placement == "clustered",
        requeue=int(Requeue[requeue.upper()]),
        interval=checkpoints[0],
        cost=checkpoints[1],
        seed=seed % 2**31,
        awaited=awaited,
    )
    score = scores.SCORE.compile(order if changing else scores.largest_expansion_factor)
    while not simulation.schedule(a, options, score):
        # twice as much, so that arrays are not copied time and again
        a = arrays.with_room(a, max(len(a.pieces), int(a.store["short"][0])))
    scores.check_order(order, a.state)
    return a


def _keys(work: NodeWorkload, policy: LocalPolicy) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Keys of queue order and backfill order, smallest first; ties go by entry into the queue."""
    plain: RecordArray = np.empty(len(work.jobs), JOB)
    for name in ("submit", "run", "estimate"):
        plain[name] = work.jobs[name]
    plain["processors"] = work.jobs["units"] * work.jobs["cores"]

    def keys(order: Any) -> NDArray[np.float64]:
        score = order_score(order, "order")
        if score is ORDERS["fcfs"] or scores.changes_with_time(score):
            values = np.zeros(len(plain))
        else:
            values = sort_keys(score, plain, work.labels)
        if len(np.unique(work.priority)) == 1:
            return values
        if policy.prediction == "recent":
            ranks = np.unique(-work.priority, return_inverse=True)[1].reshape(-1)
            if (ranks.max() + 1) * _STEP > _EXACT:
                raise ConfigurationError(
                    f"policy {policy.name!r}: {ranks.max() + 1} priorities of partitions are too many; use "
                    f"{int(_EXACT / _STEP)} or fewer"
                )
            return ranks * _STEP + values
        pairs = np.stack([-work.priority.astype(np.float64), values], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)

    queue = keys(policy.order)
    return queue, queue if policy.backfill_order == AS_QUEUE else keys(policy.backfill_order)


def typical_jobs(jobs: RecordArray) -> RecordArray:
    """Kinds of jobs with their frequencies: the most frequent ones, which make up 95 % of all jobs.

    Largest number of typical kinds in the experiments of Weng et al. 2023.
    """
    asked: RecordArray = np.empty(len(jobs), TYPICAL)
    asked["cores"] = jobs["units"] * jobs["cores"]
    asked["gpus"] = jobs["units"] * jobs["gpus"] + (jobs["share"] > 0)
    asked["share"] = np.where(jobs["share"] > 0, jobs["share"], 1000 * (jobs["gpus"] > 0))
    asked["where"], asked["frequency"] = jobs["where"], 0.0
    kinds, counts = np.unique(asked, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    chosen = order[: int(np.searchsorted(np.cumsum(counts[order]), _TYPICAL * len(jobs))) + 1]
    typical: RecordArray = kinds[chosen]
    typical["frequency"] = counts[chosen] / counts[chosen].sum()
    return typical


def affinities(jobs: RecordArray) -> NDArray[np.int64]:
    """Kind of GPU job of each: those that share a GPU, those with one whole GPU, two ...; else -1."""
    gpus = jobs["units"] * jobs["gpus"]
    kind = np.where(jobs["share"] > 0, 0, np.minimum(gpus, _BITS - 1))
    return np.where((gpus > 0) | (jobs["share"] > 0), kind, -1)
