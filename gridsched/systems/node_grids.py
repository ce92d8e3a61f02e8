"""Grids whose clusters have nodes that matter or predict run times, or whose jobs give up or wait for others.

A grid of which one cluster needs it, or whose jobs do, is simulated node by node as a whole; clusters without
nodes of their own are what they are to local policies (`node_records.nodes_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import node_clusters
from gridsched.engine.clusters import GridArrays, Order
from gridsched.engine.node_clusters import RULE, SITE, NodeClusters, Sites
from gridsched.engine.nodes.records import LIMIT, TYPICAL, EventKind, Placement, Requeue
from gridsched.engine.records import Backfilling, Correction, Prediction, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.policies.nodes import typical_jobs
from gridsched.policies.scores import Score, check_order
from gridsched.results import Variable
from gridsched.submission import Submission, labels_of
from gridsched.systems.cluster_records import FIRST_ROOM
from gridsched.systems.job_outcomes import lifecycles_of, outcomes_on_nodes
from gridsched.systems.node_records import (
    ASKED_NAMES,
    REASONS,
    TOO_LARGE,
    NodeUse,
    asked_for,
    events_of,
    executed,
    groups_of,
    limit_values,
    limits_of,
    needs_nodes,
    node_results,
    nodes_of,
    partitions_of,
    predicted_variable,
    priorities_of,
    reach_of,
    reasons_against,
    times_of,
    user_numbers,
    with_checkpoints,
)
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

_COLUMNS = ("requested_nodes", "requested_gpus", "gpu_share", "requested_memory", "partition", "queue")
"""What jobs of one request have in common, beside processors."""

_STEP = 2.0**42
"""By how much the keys of jobs of two priorities differ at least; more than any estimate or size."""

_EXACT = 2.0**53
"""Whole numbers up to this are exact in float64."""


def is_node_grid(
    clusters: Sequence[Cluster], workload: Workload, policies: Sequence[str | LocalPolicy]
) -> bool:
    """Whether a grid has to be simulated node by node, which local policies that predict need, too."""
    predicts = any(named_policy(policy).predicts for policy in policies)
    return predicts or any(needs_nodes(cluster, workload) for cluster in clusters)


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeGrid:
    """Jobs of a grid and its clusters of nodes.

    Parameters
    ----------
    submission : Submission
        The jobs and clusters.
    home : int64[n]
        Index of the cluster where each job is submitted, or from which its times are; the number of clusters
        for a cluster of speed 1 outside of the grid.
    estimate : int64[n]
        Estimated run time at its home [s].
    sites : Sites
        The clusters as the engine wants them.
    names, outages
        Of each cluster: names of its nodes, and (node, start, end) of its outages.
    nodes
        Of each cluster: what its nodes have.
    predicts : bool
        Whether some local policy predicts run times.
    """

    submission: Submission
    home: Integers
    sites: Sites
    names: list[list[str]]
    outages: list[Integers]
    nodes: list[RecordArray]
    predicts: bool

    @property
    def clusters(self) -> Sequence[Cluster]:
        """The clusters."""
        return self.submission.clusters

    def can_hold(self, m: int) -> NDArray[np.bool_]:
        """Whether a cluster can hold each job."""
        held: NDArray[np.bool_] = self.sites.fits[self.sites.sites["kind"][m]] == 0
        return held

    def against(self, reach: NDArray[np.bool_]) -> NDArray[np.int8]:
        """Why no cluster can hold each job, of those that jobs of its home reach (bool[homes, m]); else 0.

        Limits come first, so that it is known of which jobs the nodes could hold.
        """
        found = np.zeros(len(self.home), np.int8)
        held = np.zeros(len(self.home), np.bool_)
        too_large = REASONS.index(TOO_LARGE) + 1
        for m, site in enumerate(self.sites.sites):
            reached = reach[:, m][self.home]
            codes = self.sites.fits[site["kind"]]
            held |= reached & (codes == 0)
            better = reached & (codes > 0) & ((found == 0) | (found == too_large))
            found = np.where(better, codes, found)
        return np.where(held, 0, found).astype(np.int8)

    def allocate(
        self, records: RecordArray, jobs: RecordArray, rejected: NDArray[np.bool_], requests: int = 1
    ) -> tuple[GridArrays, NodeClusters]:
        """Idle clusters and the jobs (JOB[...]) of a grid, in which a job of a user is so many jobs."""
        local = node_clusters.allocate(
            self.sites,
            np.repeat(labels_of(self.submission.workload), requests),
            lifecycles_of(self.submission, rejected),
            requests,
            FIRST_ROOM,
        )
        home = np.repeat(self.home, requests)
        return node_clusters.grid_of(local, jobs, home, records), local

    def run_time_on(self, cluster: Integers) -> Integers:
        """Run time of each job on a cluster [s]; as at home where that is -1."""
        run_time, speeds = self.submission.run_time, np.append(self.submission.speeds, 1.0)
        moved = np.ceil(run_time * speeds[self.home] / speeds[cluster]).astype(np.int64)
        return np.where((cluster == self.home) | (cluster < 0), run_time, moved)


def node_grid(
    submission: Submission, home: Integers, records: RecordArray, policies: Sequence[LocalPolicy]
) -> NodeGrid:
    """The clusters of a grid as clusters of nodes, for jobs with these homes.

    Parameters
    ----------
    submission : Submission
        The jobs, with times as at `home`.
    home : int64[n]
        As of `NodeGrid`.
    records : CLUSTER[m]
        The clusters, see `cluster_records`.
    policies : sequence of LocalPolicy
        Their local policies.

    Raises
    ------
    ConfigurationError
        If partitions have different priorities where the order of a queue is a score, or too large keys.
    """
    workload, clusters = submission.workload, submission.clusters
    request_of, first = _requests(workload, clusters)
    speeds = np.append(submission.speeds, 1.0)
    one_each = workload.select(first)
    tables = _Tables()
    kinds: dict[Any, int] = {}
    for m, (cluster, record, policy) in enumerate(zip(clusters, records, policies, strict=True)):
        nodes, names, unit = nodes_of(cluster)
        partition = partitions_of(workload, cluster)
        allowed, where = reach_of(cluster, nodes, names, partition)
        site = tables.add_cluster(cluster, nodes, names, allowed, submission.seed)
        kind = _kind(cluster, m)
        site["kind"] = kinds.setdefault(kind, len(kinds))
        if site["kind"] == len(tables.asked):
            asked = asked_for(one_each, cluster, nodes, unit)
            asked["where"] = where[first]
            jobs = asked[request_of]
            requested, estimate = (
                _times_on(np.asarray(values, np.int64), home, m, speeds)
                for values in (workload.requested_time, submission.estimate)
            )
            jobs["estimate"] = with_checkpoints(np.maximum(estimate, 1), cluster)
            codes = reasons_against(jobs, workload, cluster, nodes, allowed, partition, requested)
            tables.add_kind(asked, codes, _priorities(cluster, record, policy, asked, jobs["estimate"]))
        tables.add_limits(cluster, workload)
        if cluster.placement == "fragments":
            jobs = tables.asked[site["kind"]][request_of]
            tables.add_typical(typical_jobs(jobs[tables.codes[site["kind"]] == 0]))
        site["prediction"] = Prediction[policy.prediction.upper()]
        site["correction"] = Correction[policy.correction.upper()]
        site["watched"] = record["backfilling"] >= Backfilling.EASY or bool(cluster.events)
    return NodeGrid(
        submission=submission,
        home=home,
        sites=tables.sites_for(request_of, user_numbers(workload)),
        names=tables.names,
        outages=tables.outages,
        nodes=tables.nodes,
        predicts=any(policy.predicts for policy in policies),
    )


def _requests(workload: Workload, clusters: Sequence[Cluster]) -> tuple[Integers, Integers]:
    """Request of each job, and a job of each request."""
    columns = [np.asarray(workload.processors, np.int64)]
    for name in _COLUMNS:
        matters = name not in ("partition", "queue") or any(
            cluster.partitions and cluster.partition_of == name for cluster in clusters
        )
        column = getattr(workload, name)
        if column is not None and matters:
            columns.append(np.asarray(column, np.int64))
    _, first, request_of = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    return request_of.reshape(-1).astype(np.int64), first.astype(np.int64)


def _times_on(seconds: Integers, home: Integers, m: int, speeds: NDArray[np.float64]) -> Integers:
    """Times on a cluster, of times at home; unknown ones stay unknown."""
    moved = np.ceil(seconds * speeds[home] / speeds[m]).astype(np.int64)
    return np.where((home == m) | (seconds <= 0), seconds, moved)


def _kind(cluster: Cluster, m: int) -> Any:
    """What clusters have in common that can hold the same jobs."""
    timed = bool(cluster.limits) or any(each.time_limit is not None for each in cluster.partitions)
    shape = (cluster.processors, cluster.unit, cluster.processors_per_node, cluster.node_exclusive)
    partitions = (cluster.partitions, cluster.partition_of)
    return (*shape, cluster.has_nodes, cluster.nodes, *partitions, m if timed else -1)


def _priorities(
    cluster: Cluster, record: Any, policy: LocalPolicy, asked: RecordArray, estimate: Integers
) -> NDArray[np.float64]:
    """What is added to the keys of each request: less for partitions of higher priority."""
    ranks = np.unique(-priorities_of(cluster), return_inverse=True)[1].reshape(-1)
    if ranks.max() == 0:
        return np.zeros(len(asked))
    if record["order"] == Order.SCORE:
        raise ConfigurationError(
            f"cluster {cluster.name}: the order of policy {policy.name!r} is a score, and partitions have "
            "different priorities; use another order, or one priority"
        )
    largest = float(estimate.max(initial=0)) * float((asked["units"] * asked["cores"]).max(initial=0))
    step = _STEP
    if Order.SMALLEST_AREA in (record["order"], record["backfill_order"]):
        step = max(step, 2.0 ** np.ceil(np.log2(largest + 1)))
    if (ranks.max() + 1) * step > _EXACT:
        raise ConfigurationError(
            f"cluster {cluster.name}: {ranks.max() + 1} priorities of partitions are too many for the order "
            f"of policy {policy.name!r}; use fewer"
        )
    keys: NDArray[np.float64] = (ranks * step)[asked["where"]]
    return keys


class _Tables:
    """The parts of `Sites` while clusters are added."""

    def __init__(self) -> None:
        self.sites: list[RecordArray] = []
        self.nodes: list[RecordArray] = []
        self.names: list[list[str]] = []
        self.outages: list[Integers] = []
        self.allowed: list[NDArray[np.bool_]] = []
        self.events: list[RecordArray] = []
        self.closings: list[RecordArray] = []
        self.windows: list[RecordArray] = []
        self.limits: list[tuple[int, ...]] = []
        self.rules: list[tuple[int, int]] = []
        self.groups: dict[Any, tuple[int, Integers]] = {}
        self.typical: list[RecordArray] = []
        self.asked: list[RecordArray] = []
        self.codes: list[NDArray[np.int8]] = []

    def add_cluster(
        self, cluster: Cluster, nodes: RecordArray, names: list[str], allowed: NDArray[Any], seed: int
    ) -> Any:
        """Add nodes and what happens to them; return the record of the cluster."""
        events, windows, outages = events_of(cluster, names)
        closings = events[np.isin(events["kind"], (int(EventKind.CLOSE), int(EventKind.OPEN)))]
        nodes = nodes.copy()
        nodes["device"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
        site: Any = np.zeros(1, SITE)[0]
        for name, list_, added in (
            ("node", self.nodes, nodes),
            ("row", self.allowed, allowed),
            ("event", self.events, events),
            ("closing", self.closings, closings),
            ("window", self.windows, windows),
        ):
            site[name], site[f"{name}s"] = sum(len(each) for each in list_), len(added)
            list_.append(added)
        site["device"] = sum(int(each["gpus"].sum()) for each in self.nodes[:-1])
        site["devices"] = nodes["gpus"].sum()
        site["placement"] = Placement[cluster.placement.upper()]
        site["requeue"] = Requeue[cluster.requeue.upper()]
        site["interval"], site["cost"] = cluster.checkpoint_interval, cluster.checkpoint_cost
        site["seed"] = seed % 2**31
        site["limit"], site["rule"] = len(self.limits), len(self.rules)
        site["typical"] = sum(len(each) for each in self.typical)
        self.sites.append(site)
        self.names.append(names)
        self.outages.append(outages)
        return site

    def add_kind(self, asked: RecordArray, codes: NDArray[np.int8], priority: NDArray[Any]) -> None:
        """Add what requests are on clusters of a kind."""
        asked["priority"], asked["shape"] = priority, np.arange(len(asked))
        self.asked.append(asked)
        self.codes.append(codes)

    def add_limits(self, cluster: Cluster, workload: Workload) -> None:
        """Add the limits of the last cluster."""
        site = self.sites[-1]
        for limit in cluster.limits:
            key = (limit.by, limit.of)
            if key not in self.groups:
                self.groups[key] = len(self.groups), groups_of(workload, limit)
            row, groups = self.groups[key]
            self.rules.append((row, len(self.limits) - int(site["limit"])))
            self.limits += [(*limit_values(limit), 0, 0, 0)] * int(groups.max(initial=-1) + 1)
        site["limits"], site["rules"] = len(self.limits) - site["limit"], len(cluster.limits)

    def add_typical(self, typical: RecordArray) -> None:
        """Add the typical jobs of the last cluster."""
        self.sites[-1]["typicals"] = len(typical)
        self.typical.append(typical)

    def sites_for(self, request_of: Integers, users: Integers) -> Sites:
        """All that was added."""
        columns = max(allowed.shape[1] for allowed in self.allowed)
        rows = max(len(allowed) for allowed in self.allowed)
        overlaps = [(each.astype(np.int64) @ each.astype(np.int64).T) > 0 for each in self.allowed]
        groups = [row for _, row in self.groups.values()]
        return Sites(
            sites=np.array(self.sites, SITE),
            users=users,
            request_of=request_of,
            fits=np.stack(self.codes),
            asked=np.stack(self.asked),
            group_of=np.stack(groups) if groups else np.empty((0, 0), np.int64),
            rules=np.array(self.rules, RULE),
            nodes=np.concatenate(self.nodes),
            limits=np.array(self.limits, LIMIT),
            allowed=np.concatenate([_wider(each, columns) for each in self.allowed]),
            overlap=np.concatenate([_wider(each, rows) for each in overlaps]),
            events=np.concatenate(self.events),
            closings=np.concatenate(self.closings),
            windows=np.concatenate(self.windows),
            typical=np.concatenate([*self.typical, np.empty(0, TYPICAL)]),
        )


def _wider(rows: NDArray[np.bool_], columns: int) -> NDArray[np.bool_]:
    """Rows with so many columns."""
    wider = np.zeros((len(rows), columns), np.bool_)
    wider[:, : rows.shape[1]] = rows
    return wider


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeGridRun:
    """Outcomes of the jobs of a grid.

    Parameters
    ----------
    cluster : int64[n]
        Where each job ran; -1 where it did not.
    start_time, end_time : int64[n]
        First start and last end [s], -1 likewise.
    fate : int64[n]
        Values of `gridsched.engine.job_lifecycle.Fate`.
    segments : SEGMENT[...]
        Executions.
    variables, counters
        What else a run says of nodes and fates.
    """

    cluster: Integers
    start_time: Integers
    end_time: Integers
    fate: Integers
    segments: RecordArray
    variables: dict[str, Variable]
    counters: dict[str, Any]


def node_grid_run(
    grid: NodeGrid, state: GridArrays, local: NodeClusters, against: NDArray[np.int8], score: Score
) -> NodeGridRun:
    """Outcomes of the jobs, by the arrays after the simulation.

    Raises
    ------
    ConfigurationError
        If a user's score was not a number for some job.
    """
    workload, clusters = grid.submission.workload, grid.clusters
    number, requests = len(workload), int(local.clock["requests"][0])
    check_order(score, local.real.state)
    log = local.real.executions[: local.real.store["executions"][0]].copy()
    request, where = log["job"].copy(), state.cluster[log["job"]]
    log["job"] //= requests
    ran = np.full(number, -1, np.int64)
    ran[log["job"]] = where
    shown = np.where(ran >= 0, ran, np.where(grid.home < len(clusters), grid.home, 0))
    uses: list[tuple[int, Cluster, Integers, NodeUse]] = []
    for m, cluster in enumerate(clusters):
        own = np.flatnonzero(shown == m)
        asked = local.asked[local.sites["kind"][m], local.request_of[own]]
        segments, pieces = executed(log[where == m], m)
        limits, limited = limits_of(workload, cluster.limits)
        use = NodeUse(
            segments=segments,
            pieces=pieces,
            nodes=grid.nodes[m],
            node_names=grid.names[m],
            outages=grid.outages[m],
            asked={name: asked[name].astype(np.int64) for name in ASKED_NAMES},
            limits=limits,
            limited=limited[own],
            priority=priorities_of(cluster)[asked["where"]],
        )
        uses.append((m, cluster, own, use))
    size = np.asarray(workload.processors, np.int64)
    outcomes = outcomes_on_nodes(local.lifecycles.jobs, local.real.jobs, size, requests)
    segments, variables, counters = node_results(workload, clusters, uses, outcomes, against)
    if grid.predicts:
        # of the requests of a job, the one that ran
        chosen = np.arange(number) * requests
        chosen[log["job"]] = request
        known = local.real.jobs["predicted"][chosen]
        variables["predicted_run_time"] = predicted_variable(
            np.where(ran >= 0, known, grid.submission.estimate).astype(np.int64)
        )
    start, end = times_of(segments, number)
    return NodeGridRun(
        cluster=ran,
        start_time=start,
        end_time=end,
        fate=outcomes.fate,
        segments=segments,
        variables=variables,
        counters=counters,
    )


def node_corrections(local: NodeClusters) -> int:
    """How often estimates were exceeded, where that matters to someone."""
    return int(local.real.state["corrections"][:-1, 0][local.sites["watched"] == 1].sum())
