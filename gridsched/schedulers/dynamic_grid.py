"""Dynamic grids: clusters that share idle processors with their neighbours, join and leave.

Goldman and Queiroz, "A model for parallel job scheduling on dynamic computer grids". Clusters are the
vertices of a graph whose edges are fast links (`grid_graphs`). Each has users of its own, served first come,
first served; a grid scheduler has jobs that may run over any clusters that are neighbours of each other.
Local jobs go before grid jobs, which are stopped for them, moved to a neighbour, or given back to the grid
scheduler.

What the paper leaves open is decided here as follows. Where a name of an option of `DynamicGrid` is given,
the decision can be changed.

Local schedulers

* A local job that does not fit may wait for `delta_t` seconds since it was first found to be first and not to
  fit. It waits while enough running jobs are expected to end by then.
* The three possibilities are tried in the order of the paper, waiting first (`prefer`). With an infinite
  `delta_t` local jobs thus always wait, also for grid jobs; ``prefer="migrate"`` makes these leave instead.
* If the grid jobs of a cluster hold enough processors together, as few of them as possible are told to make
  place: the smallest that suffices, else the largest and so on (`victims`). That is not taken back, except
  if the local job can start before.
* A running job counts with its estimate, after that with the next expected end (`overrun`). What a grid job
  has done lowers its estimate. A multi-site overhead counts.
* A cluster offers nothing to the grid while a local job waits (`offers`).
* A local job that is larger than its cluster is a grid job from its submission. If the cluster is not in the
  grid then, or no clique is large enough, it is rejected.
* A cluster that is not in the grid serves its queue alone: local jobs always wait.

Grid jobs

* A job that has run on its clusters for a whole number of supersteps, at least one, can be stopped. So every
  time that it is sent somewhere it gets on; but a local job may have to wait for tasks that are on their way,
  and for a superstep. All clusters that want their processors back then get them at once.
* The tasks of one cluster move to one neighbour, which has to be adjacent to all others of the job; one where
  the job runs already comes first, then the one that fits most tightly (`placement`). If tasks of several
  clusters have to leave, neighbours are sought for one after the other. If one is not found, the whole job is
  suspended. Neighbours say truly what they offer.
* Moving takes `migration_cost` seconds a task, in which the job does not run, but holds its processors, and
  those to which it moves; those that it leaves are free at once (`release`). A suspended job whose work is
  kept takes `resume_cost` seconds for each of its tasks when it is sent to clusters again.
* The overhead of running over several clusters stretches what is left of a job by a constant factor.
* A job is stopped when it has run for `stop_factor` times its estimate; the overhead, pauses and
  what was lost do not count, since the job is not to blame for them. It is stopped nowhere by default.
* Tasks that move leave a proxy on their old cluster, which lives until the job ends or is suspended. Proxies
  need no processor, and forwarding costs no time.

Grid scheduler

* All clusters report at multiples of `status_period`, and when they join; with 0 every change is reported at
  once. In between the grid scheduler knows what it sent itself and what clusters answered.
* It acts when jobs come to its queues or reports come. It asks every chosen cluster before it sends a job. If
  one has fewer processors than was believed, nothing is sent, and it begins anew with what it was told.
* The first job of CJ is tried, then all jobs of NJ in order (`new_jobs`); NJ is looked at, too, if the first
  job of CJ has no place (`priority`).
* Jobs that the clusters in the grid could not hold even if they were idle are passed over, in both queues,
  until clusters join.
* A job goes to one cluster if one suffices, that which fits most tightly (`placement`). Else it goes to as
  few clusters of a clique as possible, those that offer most; cliques are in lexicographic order, ties go to
  the first. It never spans more than `most_sites` clusters.
* There may be exponentially many maximal cliques. If there are more than `most_cliques`, some are not known,
  see `grid_graphs.maximal_cliques`; the result says so.

Clusters that leave

* A cluster that leaves offers nothing, and tells all its grid jobs to move or to be suspended at the end of
  their supersteps. Its own jobs stay. Jobs that its users sent to the grid remain grid jobs.
* A lease that is not renewed ends like a leave. It makes no difference before, unless `heed_leases`: then a
  job is not sent to clusters whose leases end before it is expected to end.
* Jobs that are still with the grid scheduler when nothing happens any more, since the clusters that are left
  cannot hold them, are counted as stranded.

What happens in which order at one instant is said in `gridsched.engine.dynamic_grid`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import dynamic_grid as engine
from gridsched.engine import dynamic_state
from gridsched.engine.records import FOREVER, LARGEST, Overrun
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers.grid_graphs import MOST_CLIQUES, adjacency, maximal_cliques
from gridsched.schedulers.local import OverrunName
from gridsched.schedulers.membership import Membership, member_events, present
from gridsched.traces.cleaning import LONGEST_TIME

PreferName = Literal["wait", "migrate"]
VictimsName = Literal["fitting", "latest"]
PlacementName = Literal["tightest", "emptiest"]
NewJobsName = Literal["any", "first"]
PriorityName = Literal["blocked", "strict"]
OffersName = Literal["unclaimed", "all"]
ReleaseName = Literal["suspended", "moved"]
PolicyName = Literal["fcfs", "easy"]

_WORDS: dict[str, tuple[str, ...]] = {
    "prefer": get_args(PreferName),
    "victims": get_args(VictimsName),
    "placement": get_args(PlacementName),
    "new_jobs": get_args(NewJobsName),
    "priority": get_args(PriorityName),
    "offers": get_args(OffersName),
    "release": get_args(ReleaseName),
    "policy": get_args(PolicyName),
    "overrun": get_args(OverrunName),
}

GRID = -1
"""Home of a job that is submitted to the grid scheduler."""

_MOST_COST = 1e6
"""Largest overhead, and largest cost of a task in seconds, so that the engine's numbers cannot overflow."""


@dataclass(frozen=True, kw_only=True)
class DynamicGrid:
    """Parameters of a dynamic grid; see the module for what they mean.

    Parameters
    ----------
    overhead : float
        Factor by which running over several clusters stretches a job: a multiple of 0.001, 1 or more.
    delta_t : int, optional
        How long a local job may wait as the first of its queue, seconds; without limit if None.
    superstep : int
        Seconds between the times when a grid job can be stopped, 1 or more.
    migration_cost : float
        Seconds that it takes to move a task, a multiple of 0.001.
    resume_cost : float, optional
        The same for the tasks of a job that was suspended; as `migration_cost` if None.
    status_period : int
        Seconds between reports; 0 if every change is known at once.
    stop_factor : float, optional
        Jobs that run for longer than this times their estimate are stopped; none if None.
    migration : bool
        Whether tasks move to neighbours. If not, a job that has to leave is always suspended.
    checkpoint : bool
        Whether a suspended job keeps what it has done.
    prefer : {"wait", "migrate"}
        What is tried first for a local job that does not fit.
    victims : {"fitting", "latest"}
        Which grid jobs make place: as few as possible, or those that came last.
    placement : {"tightest", "emptiest"}
        Whether the cluster with the fewest processors that suffice is chosen, or that with the most.
    new_jobs : {"any", "first"}
        Whether any job of NJ is a candidate, or the first only.
    priority : {"blocked", "strict"}
        Whether NJ is looked at if the first job of CJ has no place, or only while CJ is empty.
    offers : {"unclaimed", "all"}
        Whether a cluster offers nothing while a local job waits, or all idle processors while it waits within
        delta_t. The latter can keep a local job from starting as long as delta_t allows.
    release : {"suspended", "moved"}
        Whether the processors that tasks leave are free when the tasks are suspended, or when they have
        moved.
    most_sites : int, optional
        Clusters over which a job can run; any number if None.
    heed_leases : bool
        Whether a job is sent only where leases last for its estimate.
    most_cliques : int
        Maximal cliques that are looked for.
    policy : {"fcfs", "easy"}
        Local policy. The paper has the first; EASY backfilling protects a local job that waits within
        delta_t.
    overrun : {"doubling", "increments"}
        Expected end of a job that has outrun its estimate.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    overhead: float = 1.25
    delta_t: int | None = 600
    superstep: int = 10
    migration_cost: float = 1.0
    resume_cost: float | None = None
    status_period: int = 60
    stop_factor: float | None = None
    migration: bool = True
    checkpoint: bool = True
    prefer: PreferName = "wait"
    victims: VictimsName = "fitting"
    placement: PlacementName = "tightest"
    new_jobs: NewJobsName = "any"
    priority: PriorityName = "blocked"
    offers: OffersName = "unclaimed"
    release: ReleaseName = "suspended"
    most_sites: int | None = None
    heed_leases: bool = False
    most_cliques: int = MOST_CLIQUES
    policy: PolicyName = "fcfs"
    overrun: OverrunName = "doubling"

    def __post_init__(self) -> None:
        for key, words in _WORDS.items():
            if getattr(self, key) not in words:
                raise ConfigurationError(f"{key} is {getattr(self, key)!r}; use one of {', '.join(words)}")
        for key, low in (("delta_t", 0), ("superstep", 1), ("status_period", 0)):
            _check_whole(key, getattr(self, key), low, LONGEST_TIME, optional=key == "delta_t")
        for key in ("most_sites", "most_cliques"):
            _check_whole(key, getattr(self, key), 1, LARGEST, optional=key == "most_sites")
        for key, low in (("overhead", 1), ("migration_cost", 0), ("resume_cost", 0)):
            _check_thousandths(key, getattr(self, key), low, optional=key == "resume_cost")
        factor = self.stop_factor
        if factor is not None and not (np.isfinite(factor) and factor >= 1):
            raise ConfigurationError(f"stop_factor is {factor}; use a number from 1 on, or None")

    def stopped_at(self, run_time: NDArray[Any], estimate: NDArray[Any]) -> NDArray[np.int64]:
        """Seconds that jobs run until they end or are stopped."""
        run = np.asarray(run_time, np.int64)
        if self.stop_factor is None:
            return run
        longest = np.floor(np.minimum(self.stop_factor * np.asarray(estimate, np.float64), 2.0**62))
        return np.minimum(run, np.maximum(longest.astype(np.int64), 1))


def _check_whole(key: str, value: Any, low: int, high: int, *, optional: bool) -> None:
    """Refuse what is no whole number in a range."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        none = " or None" if optional else ""
        raise ConfigurationError(f"{key} is {value!r}; use a whole number from {low} to {high}{none}")


def _check_thousandths(key: str, value: Any, low: int, *, optional: bool) -> None:
    """Refuse what is no multiple of 0.001 in a range."""
    if value is None and optional:
        return
    if not low <= value <= _MOST_COST:
        raise ConfigurationError(f"{key} is {value}; use a number from {low} to {_MOST_COST:g}")
    if abs(value * dynamic_state.UNIT - round(value * dynamic_state.UNIT)) > 1e-6 * max(value, 1):
        raise ConfigurationError(f"{key} is {value}; use a multiple of 0.001")


def _thousandths(value: float) -> int:
    return round(value * dynamic_state.UNIT)


@dataclass(frozen=True)
class DynamicSchedule:
    """What a dynamic grid made of its jobs; records are those of `gridsched.engine.dynamic_state`.

    Parameters
    ----------
    progress : PROGRESS[n]
        What became of each job.
    segments : SEGMENT[...]
        Processors that grid jobs had, in order of their ends.
    proxies : PROXY[...]
        Proxies, in order of their beginnings.
    sites : SITE[m]
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
        Reports of clusters, outrun estimates, parts of jobs sent to clusters.
    """

    progress: NDArray[Any]
    segments: NDArray[Any]
    proxies: NDArray[Any]
    sites: NDArray[Any]
    events: NDArray[Any]
    adjacent: NDArray[np.bool_]
    largest_clique: int
    remaining: int
    cliques: int
    cut_off: bool
    reports: int
    corrections: int
    dispatches: int


def schedule_dynamic_grid(
    jobs: NDArray[Any],
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    graph: Any,
    options: DynamicGrid | None = None,
    membership: Membership | None = None,
) -> DynamicSchedule:
    """Run jobs through the local schedulers and the grid scheduler of a dynamic grid.

    Parameters
    ----------
    jobs : JOB[n]
        Jobs in order of submission (`gridsched.engine.records.JOB`).
    home : int64[n]
        Index of the cluster to whose local scheduler each job is submitted, or `GRID`.
    clusters : sequence of Cluster
        The clusters, all of the same speed.
    graph : networkx.Graph
        Which of them are neighbours; vertices are their names.
    options : DynamicGrid, optional
        The defaults if not given.
    membership : mapping of cluster name to stays, optional
        When clusters belong to the grid; all do from the beginning if not given.

    Raises
    ------
    ConfigurationError
        If the clusters, the graph, the stays and the jobs do not go together.
    """
    options = options or DynamicGrid()
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
    requests = np.zeros(len(jobs), dynamic_state.REQUEST)
    for name in ("submit", "estimate", "processors"):
        requests[name] = jobs[name]
    requests["run"] = options.stopped_at(jobs["run"], jobs["estimate"])
    requests["home"] = home
    requests["reach"] = largest
    compiled = _engine_options(options)
    events = member_events(names, membership)
    grid = dynamic_state.allocate(
        requests, processors, adjacent, cliques.members, cliques.ends, events, compiled.scale
    )
    while not engine.simulate(grid, compiled):
        grid = dynamic_state.with_room(grid)
    here = [clique[grid.sites["member"][clique] != 0] for clique in cliques.each()]
    return DynamicSchedule(
        progress=grid.progress,
        segments=grid.segments[: int(grid.clock["segments"][0])],
        proxies=grid.proxies[: int(grid.clock["proxies"][0])],
        sites=grid.sites,
        events=grid.events,
        adjacent=adjacent,
        largest_clique=largest,
        remaining=_largest(here, processors, options.most_sites),
        cliques=len(cliques.ends) - 1,
        cut_off=cliques.cut_off,
        reports=_reports(grid, names, membership, options),
        corrections=int(grid.clock["corrections"][0]),
        dispatches=int(grid.clock["dispatches"][0]),
    )


def _check_clusters(clusters: Sequence[Cluster], names: Sequence[str]) -> None:
    """Refuse clusters that are not alike: the model has one kind of processor."""
    if not clusters:
        raise ConfigurationError("no clusters; give at least one")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")
    for cluster in clusters:
        if cluster.speed != clusters[0].speed:
            raise ConfigurationError(
                f"cluster {cluster.name}: speed is {cluster.speed}, that of {clusters[0].name} "
                f"{clusters[0].speed}; in a dynamic grid all processors are equal"
            )
        if cluster.node_exclusive:
            raise ConfigurationError(
                f"cluster {cluster.name}: node_exclusive is True; in a dynamic grid jobs share nodes"
            )


def _largest(cliques: Sequence[NDArray[np.int64]], processors: NDArray[np.int64], most: int | None) -> int:
    """Most processors of up to so many clusters of a clique."""
    return max((int(np.sort(processors[clique])[::-1][:most].sum()) for clique in cliques), default=0)


def _engine_options(options: DynamicGrid) -> dynamic_state.Options:
    """Options as the engine takes them."""
    resume = options.migration_cost if options.resume_cost is None else options.resume_cost
    finite = options.delta_t is not None and options.delta_t > 0
    return dynamic_state.Options(
        scale=_thousandths(options.overhead),
        delta_t=FOREVER if options.delta_t is None else int(options.delta_t),
        superstep=int(options.superstep),
        migration_cost=_thousandths(options.migration_cost),
        resume_cost=_thousandths(resume),
        status_period=int(options.status_period),
        overrun=int(Overrun[options.overrun.upper()]),
        easy=options.policy == "easy",
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
        # Other schedulers never look at expected ends
        track=finite or options.policy == "easy",
    )


def _reports(
    grid: dynamic_state.Grid, names: Sequence[str], membership: Membership | None, options: DynamicGrid
) -> int:
    """Reports that clusters sent until the last job ended, whether or not they told anything new."""
    period = options.status_period
    if period == 0:
        return int(grid.sites["changes"].sum())
    last = int(grid.progress["finish"].max(initial=-1)) + 1
    times = [time for stays in present(names, membership, last) for time in stays]
    return sum(-(-end // period) - -(-begin // period) + int(begin % period != 0) for begin, end in times)
