"""What a dynamic grid makes of jobs: from jobs to what happened to each, segments and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.clusters import is_first_come
from gridsched.engine.job_lifecycle import Lifecycles
from gridsched.engine.records import FOREVER, JOB, LARGEST, Backfilling, Overrun, RecordArray, unlabelled
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import POLICIES, LocalPolicy, OverrunName
from gridsched.systems.cluster_records import cluster_records
from gridsched.systems.dynamic_grid.graphs import adjacency, maximal_cliques
from gridsched.systems.dynamic_grid.kernels import failures as failure_engine
from gridsched.systems.dynamic_grid.kernels import loop as engine
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Membership, member_events, present
from gridsched.systems.job_outcomes import outages_of

if TYPE_CHECKING:
    from gridsched.systems.dynamic_grid.scheduler import DynamicGrid

GRID = -1
"""Home of a job that is submitted to the grid scheduler."""


@dataclass(frozen=True)
class DynamicSchedule:
    """What a dynamic grid made of its jobs; records are those of `kernels.state`.

    Parameters
    ----------
    progress : PROGRESS[n]
        Outcome of each job.
    segments : SEGMENT[...]
        Processors that grid jobs had, in order of their ends.
    proxies : PROXY[...]
        Proxies, in order of their beginnings.
    clusters : CLUSTER[m]
        Counters of each cluster.
    events : EVENT[...]
        Joins, renewals and leaves, with the times when the last grid job was gone.
    adjacent : bool[m, m]
        The graph.
    largest_clique : int
        Processors of the largest clique.
    remaining : int
        Processors of the largest clique of the clusters that belong to the grid at the end.
    cliques : int
        Maximal cliques that were used.
    cut_off : bool
        Whether the graph has more.
    reports, corrections, dispatches : int
        Reports of clusters, exceeded estimates, parts of jobs sent to clusters.
    starts : int64[n]
        Last start of each local job, -1 if it does not run and has not.
    killed : int64[n]
        How often each job was killed.
    """

    progress: RecordArray
    segments: RecordArray
    proxies: RecordArray
    clusters: NDArray[Any]
    events: RecordArray
    adjacent: NDArray[np.bool_]
    largest_clique: int
    remaining: int
    cliques: int
    cut_off: bool
    reports: int
    corrections: int
    dispatches: int
    starts: NDArray[np.int64]
    killed: NDArray[np.int64]


def schedule_dynamic_grid(
    jobs: RecordArray,
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    graph: Any,
    options: DynamicGrid,
    membership: Membership | None = None,
    *,
    policies: Sequence[LocalPolicy] | None = None,
    labels: RecordArray | None = None,
    overrun: OverrunName = "doubling",
    lifecycles: Lifecycles | None = None,
) -> DynamicSchedule:
    """Run jobs through the local schedulers and the grid scheduler of a dynamic grid.

    Parameters
    ----------
    jobs : JOB[n]
        Jobs in order of submission (`gridsched.engine.records.JOB`, or wider), with run times and estimates
        as on the clusters; if their speeds differ, as at speed 1.
    home : int64[n]
        Index of the cluster to whose local scheduler each job is submitted, or `GRID`.
    clusters : sequence of Cluster
        The clusters.
    graph : networkx.Graph
        Which of them are neighbours; vertices are their names.
    options : DynamicGrid
        Parameters.
    membership : mapping of cluster name to stays, optional
        When clusters belong to the grid; all do from the beginning if not given.
    policies : sequence of LocalPolicy, optional
        Local policy of each cluster; first come, first served if not given.
    labels : LABELS[n], optional
        User, group and queue of each job, for scores that look at them.
    overrun : {"doubling", "increments"}
        Expected end of a job that has exceeded its estimate.
    lifecycles : Lifecycles, optional
        What the jobs live through besides, if anything, or if nodes fail; it receives their outcomes.

    Raises
    ------
    ConfigurationError
        If the clusters, the graph, the stays and the jobs do not go together.
    """
    names = [cluster.name for cluster in clusters]
    _check_clusters(clusters, names)
    if len(home) != len(jobs) or (len(home) and not GRID <= home.min() <= home.max() < len(clusters)):
        raise ConfigurationError(
            f"home: give an index of one of the {len(clusters)} clusters, or {GRID}, for each job"
        )
    adjacent = adjacency(graph, names)
    processors = np.array([cluster.processors for cluster in clusters], np.int64)
    cliques = maximal_cliques(adjacent, options.most_cliques)
    largest = _largest(cliques.each(), processors, options.most_sites)
    paces = paces_of([cluster.speed for cluster in clusters])
    requests = _requests(jobs, home, options)
    requests["reach"] = largest
    records, score = cluster_records(clusters, policies or [POLICIES["fcfs"]] * len(clusters))
    compiled = _engine_options(options, records, overrun, paces)
    _check_work(requests, compiled)
    events = member_events(names, membership)
    units = np.array([cluster.unit for cluster in clusters], np.int64)
    local_jobs = _local_jobs(jobs, home, clusters, options)
    work, guess = local_jobs["run"].copy(), local_jobs["estimate"].astype(np.int64)
    if lifecycles is not None:
        _add_checkpoints(local_jobs, home, clusters)
    grid = dynamic_state.allocate(
        requests,
        local_jobs,
        unlabelled(jobs) if labels is None else labels,
        _with_plans_anew(records, clusters),
        processors,
        units,
        np.ones_like(units) if paces is None else paces,
        adjacent,
        cliques.members,
        cliques.ends,
        events,
        compiled.work,
        lifecycles is not None,
    )
    asked = scores.SCORE.compile(score)
    if lifecycles is None:
        killed = np.zeros(len(jobs), np.int64)
        while not engine.simulate(grid, compiled, asked):
            grid = dynamic_state.with_room(grid)
    else:
        failing = _failing(grid, clusters, options, work, guess)
        killed = failing.killed
        while not failure_engine.simulate(grid, lifecycles, failing, compiled, asked):
            grid = dynamic_state.with_room(grid)
    scores.check_order(score, grid.state)
    corrections = int(grid.clock["corrections"][0] + grid.state["corrections"].sum())
    here = [clique[grid.clusters["member"][clique] != 0] for clique in cliques.each()]
    return DynamicSchedule(
        progress=grid.progress,
        segments=grid.segments[: int(grid.clock["segments"][0])],
        proxies=grid.proxies[: int(grid.clock["proxies"][0])],
        clusters=grid.clusters,
        events=grid.events,
        adjacent=adjacent,
        largest_clique=largest,
        remaining=_largest(here, processors, options.most_sites),
        cliques=len(cliques.ends) - 1,
        cut_off=cliques.cut_off,
        reports=_reports(grid, names, membership, options),
        corrections=corrections if compiled.looks else 0,
        dispatches=int(grid.clock["dispatches"][0]),
        starts=grid.starts,
        killed=killed,
    )


def paces_of(speeds: Sequence[float]) -> NDArray[np.int64] | None:
    """Speeds in thousandths, 1 at least, as grid jobs have them; None if all are the same."""
    if len(set(speeds)) == 1:
        return None
    return np.array([max(_thousandths(speed), 1) for speed in speeds], np.int64)


def as_local_jobs(
    seconds: NDArray[Any], home: NDArray[np.int64], clusters: Sequence[Cluster]
) -> NDArray[np.int64]:
    """Seconds that jobs take on their home clusters, of those without one as they are given.

    They are given as in `schedule_dynamic_grid`.
    """
    there = np.array(seconds, np.int64)
    if paces_of([cluster.speed for cluster in clusters]) is not None:
        for i, cluster in enumerate(clusters):
            there[home == i] = cluster.duration(there[home == i])
    return there


def _requests(jobs: RecordArray, home: NDArray[np.int64], options: DynamicGrid) -> RecordArray:
    """The jobs as grid jobs."""
    requests = np.zeros(len(jobs), dynamic_state.REQUEST)
    for name in ("submit", "estimate", "processors"):
        requests[name] = jobs[name]
    requests["run"] = options.stopped_at(jobs["run"], jobs["estimate"])
    requests["home"] = home
    return requests


def _local_jobs(
    jobs: RecordArray, home: NDArray[np.int64], clusters: Sequence[Cluster], options: DynamicGrid
) -> RecordArray:
    """The jobs as local jobs."""
    there: RecordArray = np.empty(len(jobs), JOB)
    estimate = as_local_jobs(jobs["estimate"], home, clusters)
    there["submit"], there["processors"] = jobs["submit"], jobs["processors"]
    there["run"] = options.stopped_at(as_local_jobs(jobs["run"], home, clusters), estimate)
    # what is longer is no local job
    there["estimate"] = np.minimum(estimate, LARGEST)
    for i, cluster in enumerate(clusters):
        there["processors"][home == i] = cluster.allocation(jobs["processors"][home == i])
    return there


def checkpoints_of(clusters: Sequence[Cluster]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Seconds between checkpoints (0 for none) and that each takes, of each cluster whose nodes fail."""
    given = [(each.checkpoint_interval, each.checkpoint_cost) for each in clusters]
    saves = np.array([bool(each.events) and each.checkpoint_interval > 0 for each in clusters])
    interval, pause = np.array(given, np.int64).T * saves
    return interval, pause


def _add_checkpoints(local_jobs: RecordArray, home: NDArray[np.int64], clusters: Sequence[Cluster]) -> None:
    """Let local jobs run for as long as they do with their checkpoints."""
    for i, (interval, pause) in enumerate(zip(*checkpoints_of(clusters), strict=True)):
        if interval > 0:
            own = home == i
            for name in ("run", "estimate"):
                work = local_jobs[name][own].astype(np.int64)
                longer = work + pause * np.maximum((work - 1) // interval, 0)
                local_jobs[name][own] = longer if name == "run" else np.minimum(longer, LARGEST)


def _failing(
    grid: dynamic_state.DynamicGridArrays,
    clusters: Sequence[Cluster],
    options: DynamicGrid,
    work: NDArray[np.int64],
    guess: NDArray[np.int64],
) -> failure_engine.FailureArrays:
    """What happens to the nodes of a grid; clusters receive how jobs there save their work."""
    grid.clusters["interval"], grid.clusters["pause"] = checkpoints_of(clusters)
    given = outages_of(tuple(clusters))
    rows = np.zeros(len(given), failure_engine.OUTAGE)
    for name in ("cluster", "first", "end"):
        rows[name] = given[name]
    known = (given["announced"] < given["start"]) & (given["drained"] == 0)
    rows["known"] = np.where(known, given["until"], FOREVER)
    rows["fleeing"] = known
    before = np.maximum(given["announced"], given["start"] - options.superstep)
    lasts = given["until"] > given["start"]
    times = {
        failure_engine.OPEN: np.where(lasts, given["until"], FOREVER),
        failure_engine.CLOSE: np.where(lasts, np.where(known, before, given["start"]), FOREVER),
        failure_engine.KILL: np.where(given["drained"] == 0, given["start"], FOREVER),
    }
    node_events = np.zeros(len(times) * len(rows), failure_engine.NODE_EVENT)
    for kind, time in times.items():
        part = node_events[kind * len(rows) : (kind + 1) * len(rows)]
        part["time"], part["kind"], part["outage"] = time, kind, np.arange(len(rows))
    node_events = node_events[node_events["time"] < FOREVER]
    node_events = node_events[np.lexsort((node_events["outage"], node_events["kind"], node_events["time"]))]
    words = {"place": failure_engine.PLACE, "end": failure_engine.END, "lost": failure_engine.LOSE}
    return failure_engine.allocate(
        grid,
        np.array([bool(each.events) for each in clusters], np.int64),
        np.array([words[each.requeue] for each in clusters], np.int64),
        rows,
        node_events,
        work,
        guess,
    )


def _with_plans_anew(records: RecordArray, clusters: Sequence[Cluster]) -> RecordArray:
    """Local policies as kernels want them: conservative backfilling is EASY with a reservation for all.

    Where nodes fail, jobs come back to their places, which `first_come` has not.
    """
    records = records.copy()
    records["first_come"] = is_first_come(records) & np.array([not each.events for each in clusters])
    conservative = records["backfilling"] == Backfilling.CONSERVATIVE
    records["reservations"][conservative] = LARGEST
    records["backfilling"][conservative] = Backfilling.EASY
    return records


def _check_work(requests: RecordArray, options: dynamic_state.DynamicGridOptions) -> None:
    """Refuse work that the engine cannot count."""
    longest = int(max(requests["run"].max(initial=0), requests["estimate"].max(initial=0)))
    # An estimate that is outrun may double
    if 2 * longest * options.work > FOREVER:
        overhead = options.scale / dynamic_state.UNIT
        raise ConfigurationError(
            f"a job of {longest} s at speed 1 is too long for an overhead of {overhead:g} on clusters of "
            "different speed; use smaller speeds"
        )


def _check_clusters(clusters: Sequence[Cluster], names: Sequence[str]) -> None:
    """Refuse clusters that have the same name."""
    if not clusters:
        raise ConfigurationError("no clusters; give at least one")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")


def _largest(cliques: Sequence[NDArray[np.int64]], processors: NDArray[np.int64], most: int | None) -> int:
    """Most processors of up to so many clusters of a clique."""
    return max((int(np.sort(processors[clique])[::-1][:most].sum()) for clique in cliques), default=0)


def _engine_options(
    options: DynamicGrid, records: RecordArray, overrun: OverrunName, paces: NDArray[np.int64] | None
) -> dynamic_state.DynamicGridOptions:
    """Options as the engine takes them."""
    scale = _thousandths(options.overhead)
    resume = options.migration_cost if options.resume_cost is None else options.resume_cost
    finite = options.delta_t is not None and options.delta_t > 0
    return dynamic_state.DynamicGridOptions(
        scale=scale,
        work=scale if paces is None else scale * dynamic_state.UNIT,
        delta_t=FOREVER if options.delta_t is None else int(options.delta_t),
        superstep=int(options.superstep),
        migration_cost=_thousandths(options.migration_cost),
        resume_cost=_thousandths(resume),
        status_period=int(options.status_period),
        overrun=int(Overrun[overrun.upper()]),
        prefers_migration=options.prefer == "migrate",
        latest_victim=options.victims == "latest",
        emptiest=options.placement == "emptiest",
        first_only=options.new_jobs == "first",
        strict=options.priority == "strict",
        offers_all=options.offers == "all",
        holds_source=options.release == "moved",
        migrates=options.migration,
        keeps=options.checkpoint,
        heeds=options.heed_leases,
        most_sites=LARGEST if options.most_sites is None else int(options.most_sites),
        looks=finite or bool((records["backfilling"] >= Backfilling.EASY).any()),
    )


def _thousandths(value: float) -> int:
    return round(value * dynamic_state.UNIT)


def _reports(
    grid: dynamic_state.DynamicGridArrays,
    names: Sequence[str],
    membership: Membership | None,
    options: DynamicGrid,
) -> int:
    """Reports that clusters sent until the last job ended, whether or not they contained anything new."""
    period = options.status_period
    if period == 0:
        return int(grid.clusters["changes"].sum())
    last = int(grid.progress["finish"].max(initial=-1)) + 1
    times = [time for stays in present(names, membership, last) for time in stays]
    return sum(-(-end // period) - -(-begin // period) + int(begin % period != 0) for begin, end in times)
