"""A dynamic grid as its kernel has it: from jobs, clusters and options to what happened to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import bundles, job_lifecycle, line, rings, running
from gridsched.engine.clusters import is_first_come
from gridsched.engine.job_lifecycle import Lifecycles, Requeue
from gridsched.engine.records import FOREVER, JOB, LARGEST, Backfilling, Overrun, RecordArray, unlabelled
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import POLICIES, LocalPolicy, OverrunName
from gridsched.systems.cluster_records import cluster_records
from gridsched.systems.dynamic_grid.graphs import Cliques, adjacency, maximal_cliques
from gridsched.systems.dynamic_grid.kernels import loop, processors, state
from gridsched.systems.dynamic_grid.membership import Membership, member_events
from gridsched.systems.job_outcomes import outage_events, outages_of

if TYPE_CHECKING:
    from gridsched.systems.dynamic_grid.scheduler import DynamicGrid

GRID = -1
"""Home of a job that is submitted to the grid scheduler."""

WORK = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),  # as on the clusters; if their speeds differ, as at speed 1
        ("estimate", np.int64),  # likewise
        ("home_run", np.int64),  # as on its home; of one that has none like `run`
        ("home_estimate", np.int64),  # likewise
        ("processors", np.int64),
    ]
)
"""A job; its times may be longer than those of the engine's other jobs."""


class DynamicSchedule(NamedTuple):
    """A dynamic grid when its jobs have run: the arrays of `kernels.state`, options, maximal cliques."""

    grid: state.DynamicGridArrays
    options: state.DynamicGridOptions
    cliques: Cliques

    @property
    def remaining(self) -> int:
        """Processors of the largest clique of the clusters that belong to the grid at the end."""
        here = self.grid.clusters["processors"] * self.grid.clusters["member"]
        return self.cliques.largest(here, self.options.most_sites)


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
    jobs : WORK[n]
        Jobs in order of submission.
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
        When jobs are submitted and given up, and whom they wait for; it receives their outcomes. They are
        independent if not given.

    Raises
    ------
    ConfigurationError
        If the clusters, the graph, the stays and the jobs do not go together.
    """
    names = [cluster.name for cluster in clusters]
    records, score = cluster_records(clusters, policies or [POLICIES["fcfs"]] * len(clusters))
    if len(home) != len(jobs) or (len(home) and not GRID <= home.min() <= home.max() < len(clusters)):
        raise ConfigurationError(
            f"home: give an index of one of the {len(clusters)} clusters, or {GRID}, for each job"
        )
    adjacent = adjacency(graph, names)
    cliques = maximal_cliques(adjacent, options.most_cliques)
    compiled = _engine_options(options, records, overrun, cliques)
    grid = _idle_grid(
        jobs,
        home,
        clusters,
        options,
        compiled.work,
        labels=unlabelled(jobs) if labels is None else labels,
        policies=_with_plans_anew(records, clusters),
        adjacent=adjacent,
        cliques=cliques.members,
        clique_ends=cliques.ends,
        events=member_events(names, membership),
        lifecycles=job_lifecycle.independent(jobs["submit"]) if lifecycles is None else lifecycles,
        outages=_outages(clusters, options.superstep),
    )
    _check_work(grid.requests, compiled)
    asked = scores.SCORE.compile(score)
    while not loop.simulate(grid, compiled, asked):
        grid = state.with_room(grid)
    scores.check_order(score, grid.state)
    used = {name: getattr(grid, name)[: grid.clock[name][0]] for name in ("segments", "proxies")}
    return DynamicSchedule(grid._replace(**used), compiled, cliques)


def checkpoints_of(clusters: Sequence[Cluster]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Seconds between checkpoints (0 for none) and that each takes, of each cluster whose nodes fail."""
    given = [(each.checkpoint_interval, each.checkpoint_cost) for each in clusters]
    saves = np.array([bool(each.events) and each.checkpoint_interval > 0 for each in clusters])
    interval, pause = np.array(given, np.int64).T * saves
    return interval, pause


def _idle_grid(
    jobs: RecordArray,
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    options: DynamicGrid,
    work: int,
    **given: Any,
) -> state.DynamicGridArrays:
    """An idle grid to which no cluster belongs; `given` are fields of its arrays."""
    number, places = len(jobs), len(clusters)
    speeds = [cluster.speed for cluster in clusters]
    sizes = [each.processors for each in clusters]
    described: dict[str, Any] = {
        "processors": sizes,
        "unit": [each.unit for each in clusters],
        "pace": [1 if len(set(speeds)) == 1 else max(thousandths(speed), 1) for speed in speeds],
        "fails": [bool(each.events) for each in clusters],
        "requeue": [Requeue[each.requeue.upper()] for each in clusters],
        **dict(zip(("interval", "pause"), checkpoints_of(clusters), strict=True)),
        **dict.fromkeys(("timer", "due", "lease"), FOREVER),
    }
    total, largest = sum(sizes), max(sizes)
    # what is closed is among what runs
    most = largest if given["outages"] is not None else min(2 * number + 1, largest)
    blocks, runs = running.allocate(most)
    parts = min(total, 2 * places * number) + places + 2
    requests = np.zeros(number, state.REQUEST)
    requests[["estimate", "processors"]], requests["home"] = jobs[["estimate", "processors"]], home
    requests["run"] = options.stopped_at(jobs["run"], jobs["estimate"])
    local = np.zeros(number, JOB)
    grid = bundles.allocate(
        state.DynamicGridArrays,
        {
            "one": 1,
            "four": 4,
            "jobs": number,
            "clusters": places,
            "two": 2,
            "parts": parts,
            "runs_of_cluster": min(number, largest) + 1,
            "run_entries": len(runs),
            "segments": state.FIRST_ROOM,
            "proxies": state.FIRST_ROOM,
            "queue": state.FIRST_ROOM,
            "candidates": state.FIRST_ROOM + 1,
            # a profile has two steps for each job
            "steps": 2 * (most + state.FIRST_ROOM) + 16,
        },
        requests=requests,
        jobs=local,
        blocks=np.tile(blocks, (places, 1)),
        queues=line.allocate(places, state.FIRST_ROOM),
        grid_queues=line.allocate(2, state.FIRST_ROOM),
        chains=rings.allocate(number, np.arange(parts)),
        sites=rings.allocate(places, np.arange(parts)),
        **given,
    )
    for name, values in described.items():
        grid.clusters[name] = values
    grid.clusters[["departure", "view"]] = grid.clock["capacity"] = state.NOBODY
    grid.progress[["proxy", "start", "finish", "headed", "yielded", "sent", "kept_from"]] = state.NOBODY
    grid.state["free"][:, 0], grid.state["planned"] = described["processors"], FOREVER
    local["processors"] = -(-jobs["processors"] // grid.clusters["unit"][home]) * grid.clusters["unit"][home]
    grid.progress["left"] = requests["run"] * work
    grid.progress["work"] = options.stopped_at(jobs["home_run"], jobs["home_estimate"])
    # what is longer is no local job
    grid.progress["guess"] = np.minimum(jobs["home_estimate"], LARGEST)
    # the link of the first part is the head of the list of unused ones
    unused = np.arange(number, len(grid.chains))
    grid.chains["before"][unused], grid.chains["after"][unused] = np.roll(unused, 1), np.roll(unused, -1)
    return grid


def _outages(clusters: Sequence[Cluster], superstep: int) -> processors.OutageArrays | None:
    """When which processors are out; None where no nodes fail."""
    if not any(each.events for each in clusters):
        return None
    given = outages_of(tuple(clusters))
    rows = np.zeros(len(given), processors.OUTAGE)
    for name in ("cluster", "first", "end"):
        rows[name] = given[name]
    known = (given["announced"] < given["start"]) & (given["drained"] == 0)
    rows["known"], rows["fleeing"] = np.where(known, given["until"], FOREVER), known
    closes = np.where(known, np.maximum(given["announced"], given["start"] - superstep), given["start"])
    lasts = given["until"] > given["start"]
    opens = np.where(lasts, given["until"], FOREVER)
    kills = np.where(given["drained"] == 0, given["start"], FOREVER)
    events = outage_events(opens, np.where(lasts, closes, FOREVER), kills)
    most = max(each.processors for each in clusters if each.events)
    sizes = {"clusters": len(clusters), "processors": most + 1}
    return bundles.allocate(processors.OutageArrays, sizes, outages=rows, events=events)


def _with_plans_anew(records: RecordArray, clusters: Sequence[Cluster]) -> RecordArray:
    """Local policies as kernels want them: conservative backfilling is EASY with a reservation for all.

    Where nodes fail, jobs come back to their places, which `first_come` has not.
    """
    records["first_come"] = is_first_come(records) & np.array([not each.events for each in clusters])
    conservative = records["backfilling"] == Backfilling.CONSERVATIVE
    records["reservations"][conservative] = LARGEST
    records["backfilling"][conservative] = Backfilling.EASY
    return records


def _check_work(requests: RecordArray, options: state.DynamicGridOptions) -> None:
    """Refuse work that the engine cannot count."""
    longest = int(max(requests["run"].max(initial=0), requests["estimate"].max(initial=0)))
    # An estimate that is outrun may double
    if 2 * longest * options.work > FOREVER:
        overhead = options.scale / state.UNIT
        raise ConfigurationError(
            f"a job of {longest} s at speed 1 is too long for an overhead of {overhead:g} on clusters of "
            "different speed; use smaller speeds"
        )


def _engine_options(
    options: DynamicGrid, records: RecordArray, overrun: OverrunName, cliques: Cliques
) -> state.DynamicGridOptions:
    """Options as the engine takes them."""
    scale = thousandths(options.overhead)
    resume = options.migration_cost if options.resume_cost is None else options.resume_cost
    finite = options.delta_t is not None and options.delta_t > 0
    most_sites = LARGEST if options.most_sites is None else int(options.most_sites)
    return state.DynamicGridOptions(
        scale=scale,
        work=scale if len(set(records["speed"])) == 1 else scale * state.UNIT,
        delta_t=FOREVER if options.delta_t is None else int(options.delta_t),
        superstep=int(options.superstep),
        migration_cost=thousandths(options.migration_cost),
        resume_cost=thousandths(resume),
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
        most_sites=most_sites,
        reach=cliques.largest(records["processors"], most_sites),
        looks=finite or bool((records["backfilling"] >= Backfilling.EASY).any()),
    )


def thousandths(value: float) -> int:
    """A number in 1 / UNIT."""
    return round(value * state.UNIT)
