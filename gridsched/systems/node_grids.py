"""Grids whose clusters have nodes that matter or predict run times, or whose jobs give up or wait for others.

A grid of which one cluster needs it, or whose jobs do, is simulated node by node as a whole; clusters without
nodes of their own are what they are to local policies (`node_records.nodes_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import node_clusters
from gridsched.engine.clusters import Order, StartPredictions
from gridsched.engine.job_lifecycle import Fate, Requeue
from gridsched.engine.node_clusters import RULE, SITE
from gridsched.engine.nodes.records import LIMIT, TYPICAL, EventKind, Placement
from gridsched.engine.records import Backfilling, Correction, Prediction, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.policies.nodes import typical_jobs
from gridsched.policies.scores import check_order
from gridsched.results import Schedule
from gridsched.submission import Submission, labels_of
from gridsched.systems import grids
from gridsched.systems.grids import CountedGrid, Grid
from gridsched.systems.job_outcomes import lifecycles_of, outcomes_on_nodes
from gridsched.systems.node_records import (
    ASKED_NAMES,
    REASONS,
    TOO_LARGE,
    ClusterNodes,
    NodeUse,
    asked_for,
    asking_columns,
    executed,
    groups_of,
    limit_values,
    limits_of,
    needs_nodes,
    node_results,
    nodes_for,
    predicted_variable,
    priorities_of,
    reasons_against,
    times_of,
    user_numbers,
    with_checkpoints,
)
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

_STEP = 2.0**42
"""By how much the keys of jobs of two priorities differ at least; more than any estimate or size."""

_EXACT = 2.0**53
"""Whole numbers up to this are exact in float64."""


class NodeGrid(Grid):
    """A grid of clusters of nodes.

    Parameters
    ----------
    submission, requests
        As of `gridsched.systems.grids.Grid`.
    reach : bool[homes, m], optional
        Clusters that jobs of each home may use; all without.

    Raises
    ------
    ConfigurationError
        If partitions have different priorities where the order of a queue is a score, or too large keys.
    """

    def __init__(
        self,
        submission: Submission,
        *,
        reach: NDArray[np.bool_] | None = None,
        requests: int = 1,
    ) -> None:
        super().__init__(submission, requests)
        self._tables = _Tables(self)
        known, of_sites = self._tables.known(), self._tables.of_sites()
        clusters = len(submission.clusters)
        reached = np.ones((clusters, clusters), np.bool_) if reach is None else reach
        self.against = _reasons_against(reached[submission.home], known["fits"][known["sites"]["kind"]])
        self.local = node_clusters.allocate(
            known,
            of_sites,
            np.repeat(labels_of(submission.workload), requests),
            lifecycles_of(submission, self.against > 0),
            requests,
            grids.FIRST_ROOM,
        )
        jobs = np.repeat(submission.records(), requests)
        given, home = np.repeat(submission.given_speed, requests), np.repeat(submission.home, requests)
        self.state = node_clusters.grid_of(self.local, jobs, given, home, self.records)

    def can_hold(self, m: int) -> NDArray[np.bool_]:
        """Whether a cluster can hold each job."""
        return np.asarray(self.local.fits[self.local.sites["kind"][m]] == 0)

    def make_room(self) -> None:
        """Give the clusters the room that they asked for."""
        self.local = node_clusters.with_room(self.local)

    def check_order(self) -> None:
        """Refuse a user's score that was not a number for some job."""
        check_order(self._order, self.local.real.state)

    @property
    def submitted(self) -> int:
        """How many jobs have been submitted."""
        return int(self.local.lifecycles.state["arrival"][0])

    def ends(self, jobs: Integers) -> Integers:
        """When jobs end that have started, by index [s]; -1 for the others. One that was killed has not."""
        known = self.local.real.jobs[jobs]
        return np.where((known["start"] >= 0) | (known["done"] != 0), known["end"], -1)

    def is_gone(self, jobs: Integers) -> NDArray[np.bool_]:
        """Whether jobs, by index, have left without an end of their own: given up, never eligible, lost."""
        return np.asarray(self.local.lifecycles.jobs["fate"][jobs] != int(Fate.COMPLETED))

    def schedule(self, counters: Mapping[str, Any]) -> Schedule:
        """What has become of the jobs."""
        workload, clusters, local = self.submission.workload, self.submission.clusters, self.local
        number, k = len(workload), self.requests
        log = local.real.executions[: local.real.store["executions"][0]].copy()
        request, where = log["job"].copy(), self.state.cluster[log["job"]]
        log["job"] //= k
        ran = np.full(number, -1, np.int64)
        ran[log["job"]] = where
        shown = np.where(ran >= 0, ran, np.maximum(self.submission.home, 0))
        uses = [
            (m, cluster, own, self._use(m, own, log[where == m]))
            for m, cluster in enumerate(clusters)
            for own in [np.flatnonzero(shown == m)]
        ]
        size = np.asarray(workload.processors, np.int64)
        outcomes = outcomes_on_nodes(local.lifecycles.jobs, local.real.jobs, size, k)
        segments, variables, counted = node_results(workload, clusters, uses, outcomes, self.against)
        estimate = self._estimate()
        if any(policy.predicts for policy in self.submission.policies):
            # of the requests of a job, the one that ran
            chosen = np.arange(number) * k
            chosen[log["job"]] = request
            known = local.real.jobs["predicted"][chosen]
            variables["predicted_run_time"] = predicted_variable(
                np.where(ran >= 0, known, self.submission.estimate).astype(np.int64)
            )
        start, end = times_of(segments, number)
        watched = local.sites["watched"] == 1
        corrections = int(local.real.state["corrections"][:-1, 0][watched].sum())
        return Schedule(
            start_time=start,
            end_time=end,
            run_time=self._run_time_on(ran),
            estimate=estimate,
            segments=segments,
            variables=variables,
            counters={**counters, "corrections": corrections, **counted},
            messages=float(self.queries),
        )

    def _use(self, m: int, own: Integers, log: RecordArray) -> NodeUse:
        """What some jobs had on a cluster, by its executions."""
        cluster, workload = self.submission.clusters[m], self.submission.workload
        asked = self.local.asked[self.local.sites["kind"][m], self.local.request_of[own]]
        segments, pieces = executed(log, m)
        limits, limited = limits_of(workload, cluster.limits)
        return NodeUse(
            site=self._tables.clusters[m],
            segments=segments,
            pieces=pieces,
            asked={name: asked[name].astype(np.int64) for name in ASKED_NAMES},
            limits=limits,
            limited=limited[own],
            priority=priorities_of(workload, cluster)[own],
        )

    def _run_time_on(self, cluster: Integers) -> Integers:
        """Run time of each job on a cluster [s]; as at home where that is -1."""
        submission = self.submission
        there = submission.seconds_at(submission.speeds[cluster], submission.run_time)
        return np.where(cluster < 0, submission.seconds_at_home(submission.run_time), there)


def grid_for(
    submission: Submission,
    predictions: StartPredictions = StartPredictions.EXACT,
    *,
    reach: NDArray[np.bool_] | None = None,
    requests: int = 1,
    keyed: bool = False,
) -> Grid:
    """The jobs and clusters of a grid; parameters are those of `CountedGrid`.

    It is simulated node by node if one cluster or the jobs need it, or if a local policy predicts run times.
    """
    workload = submission.workload
    predicts = any(policy.predicts for policy in submission.policies)
    if predicts or any(needs_nodes(cluster, workload) for cluster in submission.clusters):
        return NodeGrid(submission, reach=reach, requests=requests)
    return CountedGrid(submission, predictions, reach=reach, requests=requests, keyed=keyed)


def _reasons_against(reached: NDArray[np.bool_], codes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Why no cluster can hold each job, of those that it reaches (bool[n, m]); else 0. `codes` are of each.

    Limits come first, so that it is known of which jobs the nodes could hold.
    """
    found = np.zeros(len(reached), np.int8)
    too_large = REASONS.index(TOO_LARGE) + 1
    for there, code in zip(reached.T, codes, strict=True):
        better = there & (code > 0) & ((found == 0) | (found == too_large))
        found = np.where(better, code, found)
    held = (reached.T & (codes == 0)).any(axis=0)
    return np.where(held, 0, found).astype(np.int8)


def _requests(workload: Workload, clusters: Sequence[Cluster]) -> tuple[Integers, Integers]:
    """Request of each job, and a job of each request: jobs of one request ask for the same everywhere."""
    columns = np.stack(asking_columns(workload, clusters))
    _, first, request_of = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    return request_of.reshape(-1).astype(np.int64), first.astype(np.int64)


def _kind(cluster: Cluster, m: int) -> Any:
    """What clusters have in common that can hold the same jobs."""
    timed = bool(cluster.limits) or any(each.time_limit is not None for each in cluster.partitions)
    shape = (cluster.processors, cluster.unit, cluster.processors_per_node, cluster.node_exclusive)
    partitions = (cluster.partitions, cluster.partition_of)
    features = tuple(cluster.constraints.items())
    return (*shape, cluster.has_nodes, cluster.nodes, *partitions, features, m if timed else -1)


def _priorities(
    one_each: Workload,
    cluster: Cluster,
    record: Any,
    policy: LocalPolicy,
    asked: RecordArray,
    estimate: Integers,
) -> NDArray[np.float64]:
    """What is added to the keys of each request: less for partitions of higher priority."""
    levels = np.unique([-each.priority for each in cluster.partitions])
    if len(levels) < 2:
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
    if len(levels) * step > _EXACT:
        raise ConfigurationError(
            f"cluster {cluster.name}: {len(levels)} priorities of partitions are too many for the order "
            f"of policy {policy.name!r}; use fewer"
        )
    return np.searchsorted(levels, -priorities_of(one_each, cluster)).astype(np.float64) * step


class _Tables:
    """What clusters have, of one after the other.

    `clusters` has the nodes of each, `rows` what clusters have in one array after another, by its name in
    `SITE`; `asked` and `fits` are of clusters of one kind, `_numbers` as many rows as `rows["row"]`.
    """

    def __init__(self, grid: Grid) -> None:
        self.clusters: list[ClusterNodes] = []
        self.rows: dict[str, list[Any]] = {}
        self._numbers: list[Integers] = []
        self.asked: list[RecordArray] = []
        self.fits: list[NDArray[np.int8]] = []
        self._grid, self._workload = grid, grid.submission.workload
        self._request_of, self._first = _requests(self._workload, grid.submission.clusters)
        self._groups: dict[Any, tuple[int, Integers]] = {}
        self._sites: RecordArray = np.zeros(len(grid.submission.clusters), SITE)
        kinds: dict[Any, int] = {}
        for m, (cluster, policy) in enumerate(
            zip(grid.submission.clusters, grid.submission.policies, strict=True)
        ):
            nodes, where = nodes_for(cluster, self._workload)
            self.clusters.append(nodes)
            self._sites[m]["kind"] = kinds.setdefault(_kind(cluster, m), len(kinds))
            if len(kinds) > len(self.asked):
                self._add_kind(m, cluster, policy, where)
            self._add_nodes(m, nodes)
            self._add_limits(m, cluster)
            self._add_rules(m, cluster, policy)

    def _append(self, m: int, name: str, rows: Any) -> None:
        """Append what a cluster has of something."""
        before = self.rows.setdefault(name, [])
        self._sites[m][name], self._sites[m][f"{name}s"] = sum(len(each) for each in before), len(rows)
        before.append(rows)

    def _add_kind(self, m: int, cluster: Cluster, policy: LocalPolicy, where: Integers) -> None:
        """Say what requests are on clusters of the kind of this one, and which jobs fit there."""
        submission, record = self._grid.submission, self._grid.records[m]
        one_each = self._workload.select(self._first)
        asked = asked_for(one_each, cluster, self.clusters[m], where[self._first])
        jobs = asked[self._request_of]
        requested, estimate = (
            submission.seconds_at(cluster.speed, values)
            for values in (self._workload.requested_time, submission.estimate)
        )
        jobs["estimate"] = with_checkpoints(np.maximum(estimate, 1), cluster)
        self.fits.append(reasons_against(jobs, self._workload, cluster, self.clusters[m], requested))
        asked["priority"] = _priorities(one_each, cluster, record, policy, asked, jobs["estimate"])
        asked["shape"] = np.arange(len(asked))
        self.asked.append(asked)

    def _add_nodes(self, m: int, site: ClusterNodes) -> None:
        """Add nodes and what happens to them."""
        nodes = site.nodes.copy()
        nodes["device"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
        closings = site.events[np.isin(site.events["kind"], (int(EventKind.CLOSE), int(EventKind.OPEN)))]
        self._append(m, "node", nodes)
        self._append(m, "device", range(int(nodes["gpus"].sum())))
        self._append(m, "row", site.allowed)
        self._numbers.append(site.numbers)
        self._append(m, "event", site.events)
        self._append(m, "closing", closings)
        self._append(m, "window", site.windows)

    def _add_limits(self, m: int, cluster: Cluster) -> None:
        """Add limits, one for each group of jobs."""
        rules: list[tuple[int, int]] = []
        limits: list[tuple[int, ...]] = []
        for limit in cluster.limits:
            key = (limit.by, limit.of)
            if key not in self._groups:
                self._groups[key] = len(self._groups), groups_of(self._workload, limit)
            row, groups = self._groups[key]
            rules.append((row, len(limits)))
            limits += [(*limit_values(limit), 0, 0, 0)] * int(groups.max(initial=-1) + 1)
        self._append(m, "rule", np.array(rules, RULE))
        self._append(m, "limit", np.array(limits, LIMIT))

    def _add_rules(self, m: int, cluster: Cluster, policy: LocalPolicy) -> None:
        """Say how jobs are placed on a cluster, what happens to killed ones, and what is predicted."""
        site, kind = self._sites[m], int(self._sites[m]["kind"])
        typical: RecordArray = np.empty(0, TYPICAL)
        if cluster.placement == "fragments":
            typical = typical_jobs(self.asked[kind][self._request_of][self.fits[kind] == 0])
        self._append(m, "typical", typical)
        site["placement"] = Placement[cluster.placement.upper()]
        site["requeue"] = Requeue[cluster.requeue.upper()]
        site["interval"], site["cost"] = cluster.checkpoint_interval, cluster.checkpoint_cost
        site["seed"] = self._grid.submission.seed % 2**31
        site["prediction"] = Prediction[policy.prediction.upper()]
        site["correction"] = Correction[policy.correction.upper()]
        looks = self._grid.records[m]["backfilling"] >= Backfilling.EASY
        site["watched"] = looks or bool(cluster.events)

    def known(self) -> dict[str, Any]:
        """Fields of `NodeClusters`."""
        groups = [row for _, row in self._groups.values()]
        return {
            "sites": self._sites.copy(),
            "users": user_numbers(self._workload),
            "request_of": self._request_of,
            "fits": np.stack(self.fits),
            "asked": np.stack(self.asked),
            "group_of": np.stack(groups) if groups else np.empty((0, 0), np.int64),
            "rules": np.concatenate(self.rows["rule"]),
            "closings": np.concatenate(self.rows["closing"]),
        }

    def of_sites(self) -> dict[str, Any]:
        """Fields of `NodeArrays` with a part for each cluster."""
        sets = self.rows["row"]
        reach = [(each != 0).astype(np.int64) for each in sets]
        overlaps = [(each @ each.T) > 0 for each in reach]
        names = {"nodes": "node", "limits": "limit", "events": "event", "windows": "window"}
        names["typical"] = "typical"
        together = {name: np.concatenate(self.rows[own]) for name, own in names.items()}
        return together | {
            "allowed": _one_below_the_other(sets),
            "numbers": np.concatenate(self._numbers),
            "overlap": _one_below_the_other(overlaps),
        }


def _one_below_the_other(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows of all tables, the shorter ones filled up."""
    columns = max(table.shape[1] for table in tables)
    return np.concatenate([np.pad(table, ((0, 0), (0, columns - table.shape[1]))) for table in tables])
