"""Dynamic grids: clusters that share idle processors with their neighbours, join and leave.

Goldman and Queiroz, "A model for parallel job scheduling on dynamic computer grids". Clusters are the
vertices of a graph whose edges are fast links (`grid_graphs`). Each has users of its own, served by its local
policy, in the paper first come, first served; a grid scheduler has jobs that may run over any clusters that
are neighbours of each other. Local jobs go before grid jobs, which are stopped for them, moved to a
neighbour, or given back to the grid scheduler.

What the paper leaves open is decided here as follows. Where a name of an option of `DynamicGrid` is given,
the decision can be changed.

Local schedulers

* The first job is the first of the queue order. While it waits, others backfill as the local policy says;
  while grid jobs make place for it, none does.
* With conservative backfilling all jobs that wait have reservations, recomputed at each pass: grid jobs come
  and go beside the plan, so that it could not be kept.
* A local job that does not fit may wait for `delta_t` seconds since it was first found to be first and not to
  fit. It waits while enough running jobs are expected to end by then.
* The three possibilities are tried in the order of the paper, waiting first (`prefer`). With an infinite
  `delta_t` local jobs thus always wait, also for grid jobs; ``prefer="migrate"`` makes these leave instead.
* If the grid jobs of a cluster hold enough processors together, as few of them as possible are notified to
  leave: the smallest that suffices, else the largest and so on (`victims`). That is not taken back, except
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

Whole nodes and speeds, of which the paper has none

* A job asks for tasks, and takes a processor for each. Where a cluster gives whole nodes to jobs, it takes as
  many as make up whole nodes there, for each of its parts. What is idle, offered and freed are processors of
  whole nodes; what moves and costs are tasks.
* A local job runs at the speed of its cluster. A grid job runs at the speed of the slowest cluster where it
  has tasks, since the supersteps of all tasks end together. Where speeds differ its work is
  counted in whole seconds at speed 1, rounded up once; what remains is kept when it moves or is suspended;
  speeds count in thousandths for it. How long it is expected to run follows from that speed.
* Speeds do not matter for where a job is sent. With `heed_leases` a clique counts with the slowest of its
  clusters that are believed to have idle processors.

Grid scheduler

* All clusters report at multiples of `status_period`, and when they join; with 0 every change is reported at
  once. In between the grid scheduler knows what it sent itself and what clusters answered.
* It acts when jobs come to its queues or reports come. It asks every chosen cluster before it sends a job. If
  one has fewer processors than was believed, nothing is sent, and it starts again with the new information.
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

Nodes that fail, of which the paper has none (`kernels.outages`, `kernels.processors`)

* Schedulers count processors. Where nodes fail, it is known besides which ones a job has: those who start at
  an instant get the lowest ones that are free at its end, in order of job numbers, local jobs, parts of grid
  both jobs and tasks on their way. They keep them. A node that goes down kills whose tasks are on it.
* What is out of order or drained is neither offered nor reported, and grid jobs that the rest of the grid
  could not hold are passed over. Local schedulers plan as if a job had it, until nodes in an announced
  maintenance are back, or forever. They do not plan around maintenance that is still to come.
* A local job that is killed waits again (`requeue`), from its last checkpoint on; how long it may wait as the
  first of its queue counts again. ``requeue="end"`` matters where the queue is in order of entry. While it
  waits it may be sent to the grid scheduler as any other, with what it has saved if `checkpoint`.
* A grid job that loses a site is stopped at once, in a superstep or while tasks move, and goes to CJ, at the
  end; with ``requeue="lost"`` of the cluster that failed it is lost. With `checkpoint` it keeps what it had
  done when it was last sent or moved, since its state went with it, and of its spell what the last checkpoint
  has: it makes one as often as the cluster of its sites that does so most often, and that takes as long as
  where it takes longest. Without `checkpoint` it starts again.
* Before announced maintenance, nodes take nothing more from a superstep before on, and grid tasks there move
  or are suspended at the end of their superstep, as if their cluster left. Who is still there when it begins
  is killed: local jobs, and grid jobs that have not yet run for a superstep.

Users who give up, and jobs that wait for others

* A user gives up a job that has never started, in a local queue or in NJ. A job that is eligible comes to its
  local queue or to NJ as if it were submitted then, and is rejected by what belongs to the grid then.

What happens in which order at one instant is said in `kernels.loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError
from gridsched.policies.local import POLICIES, named_policy
from gridsched.results import Schedule
from gridsched.submission import Submission, labels_of
from gridsched.systems.base import Scheduler, check_choices, check_values, is_whole
from gridsched.systems.dynamic_grid.graphs import (
    MAX_CLIQUES,
    GraphName,
    grid_graph,
)
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.measures import dynamic_measures
from gridsched.systems.dynamic_grid.outcome import outcome
from gridsched.systems.dynamic_grid.planning import GRID, WORK, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.rules import dynamic_violations
from gridsched.systems.job_outcomes import lifecycles_of
from gridsched.workloads.columns import LONGEST_TIME

_MAX_COST = 1e6
"""Largest overhead, and largest cost of a task in seconds, so that the engine's numbers cannot overflow."""


@dataclass(frozen=True, kw_only=True)
class DynamicGrid(Scheduler):
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
    policy : str, optional
        Name of the local policy of all clusters; by default each has its own. The paper has ``fcfs``.
    graph : {"complete", "ring", "isolated"}
        Which clusters are neighbours, where the platform has no links.
    grid_share : float
        Share of the jobs of each cluster that users submit to the grid scheduler instead, drawn at random.
        The jobs drawn for a share are among those for a larger one.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    overhead: float = 1.25
    delta_t: int | None = 600
    superstep: int = 10
    migration_cost: float = 0.1
    resume_cost: float | None = None
    status_period: int = 60
    stop_factor: float | None = None
    migration: bool = True
    checkpoint: bool = True
    prefer: Literal["wait", "migrate"] = "wait"
    victims: Literal["fitting", "latest"] = "fitting"
    placement: Literal["tightest", "emptiest"] = "tightest"
    new_jobs: Literal["any", "first"] = "any"
    priority: Literal["blocked", "strict"] = "blocked"
    offers: Literal["unclaimed", "all"] = "unclaimed"
    release: Literal["suspended", "moved"] = "suspended"
    most_sites: int | None = None
    heed_leases: bool = False
    most_cliques: int = MAX_CLIQUES
    policy: str | None = None
    graph: GraphName = "complete"
    grid_share: float = 0.0

    system: ClassVar[str] = "dynamic_grid"
    knows: ClassVar[str] = "idle processors of all clusters by reports, and of neighbours by inquiry"
    cannot: ClassVar[Mapping[str, str]] = {
        "predictions": "a local job may go to the grid scheduler, with the estimate of its cluster",
        "arrays": "the grid scheduler starts jobs one by one",
        "nodes": "tasks run on any processors of a clique; its clusters are numbers of them",
        "passes": "the grid scheduler acts once for all events of an instant",
        "message delay": "reports are periodic; queries are answered immediately",
        "deadlines": "local jobs wait no longer than delta_t, which is no deadline",
        "reservations": "local jobs start as soon as they can",
        "changes": "clusters join and leave as a whole",
    }

    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {"migration delay": {"migration_cost": 1.0}}

    def __post_init__(self) -> None:
        check_choices(self)
        values = {key: value for key, value in vars(self).items() if not (value is None and key in _OPTIONAL)}
        rules = {
            key: (is_whole(values.get(key, low), low, high), f"a whole number from {low} to {high}")
            for key, (low, high) in _WHOLE.items()
        }
        for key, low in (("overhead", 1), ("migration_cost", 0), ("resume_cost", 0)):
            wanted = f"a multiple of 0.001 from {low} to {_MAX_COST:g}"
            rules[key] = _is_in_thousandths(values.get(key, low), low), wanted
        factor = 1 if self.stop_factor is None else self.stop_factor
        rules["stop_factor"] = np.isfinite(factor) and factor >= 1, "a number from 1 on, or None"
        rules["grid_share"] = 0 <= self.grid_share <= 1, "a share from 0 to 1"
        check_values(self, {key: (good, _or_none(key, wanted)) for key, (good, wanted) in rules.items()})
        if self.policy is not None and named_policy(self.policy).predicts:
            raise ConfigurationError(
                f"policy is {self.policy!r}, which predicts run times, but {self.cannot['predictions']}; "
                f"use one of {', '.join(POLICIES)}, easy(r)"
            )

    @property
    def draws(self) -> bool:
        """Which jobs are grid jobs."""
        return 0 < self.grid_share < 1

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs of the clusters and of the grid.

        Grid jobs have several segments: one for each cluster and each spell there, and those in which
        processors are only held (`segment_held`). `run_time` is that on one cluster; jobs are executed for
        `extra_work` more because of overhead, and because work was lost. Where speeds differ, `work_time` is
        the run time as at speed 1, and the `run_time` of a grid job is what it was executed for at the speeds
        that it had, without overhead. Where clusters give whole nodes, segments have `segment_tasks`. Also
        job variables say what happened to each job (see their long names); cluster variables `cluster_...`
        count events; `adjacent` (cluster, neighbour) is the graph; `event_...` are joins, renewals, leaves;
        `proxy_...` are proxies. Where nodes fail, users give up or jobs wait for others, there is also what
        `gridsched.systems.job_outcomes` says, `segment_killed`, and how clusters save work.
        """
        clusters, home = submission.clusters, submission.home
        drawn = np.random.default_rng(submission.seed).random(len(submission)) < self.grid_share
        entry = np.where(drawn, GRID, home)
        jobs = np.zeros(len(submission), WORK)
        jobs["submit"], jobs["processors"] = submission.workload.submit_time, submission.workload.processors
        common = clusters[0].speed if len({cluster.speed for cluster in clusters}) == 1 else 1.0
        for name, seconds in {"run": submission.run_time, "estimate": submission.estimate}.items():
            jobs[name] = submission.seconds_at(common, seconds)
            jobs[f"home_{name}"] = np.where(entry == GRID, jobs[name], submission.seconds_at_home(seconds))
        links = submission.platform.links
        if links is None:
            links = grid_graph(submission.platform.names, self.graph)
        done = schedule_dynamic_grid(
            jobs,
            entry,
            clusters,
            links,
            self,
            submission.platform.membership,
            policies=submission.policies
            if self.policy is None
            else [named_policy(self.policy)] * len(clusters),
            labels=labels_of(submission.workload),
            overrun=submission.conventions.overrun,
            lifecycles=lifecycles_of(submission, np.zeros(len(jobs), np.bool_)),
        )
        return outcome(submission, jobs, entry, self, done)

    @classmethod
    def rules(cls, run: xr.Dataset) -> list[str]:
        """What a schedule of a dynamic grid has to keep besides."""
        return dynamic_violations(run)

    @classmethod
    def measures(cls, run: xr.Dataset) -> xr.Dataset:
        """Means of users, work moved, jobs and tasks that make way, messages."""
        return dynamic_measures(run)

    def stopped_at(self, run_time: NDArray[Any], estimate: NDArray[Any]) -> NDArray[np.int64]:
        """Seconds that jobs run until they end or are stopped."""
        run = np.asarray(run_time, np.int64)
        if self.stop_factor is None:
            return run
        longest = np.floor(np.minimum(self.stop_factor * np.asarray(estimate, np.float64), 2.0**62))
        return np.minimum(run, np.maximum(longest.astype(np.int64), 1))


_WHOLE = {
    "delta_t": (0, LONGEST_TIME),
    "superstep": (1, LONGEST_TIME),
    "status_period": (0, LONGEST_TIME),
    "most_sites": (1, LARGEST),
    "most_cliques": (1, LARGEST),
}
"""Parameters that are whole numbers, and their ranges."""

_OPTIONAL = ("delta_t", "most_sites", "resume_cost")
"""Parameters that may be None."""


def _or_none(key: str, wanted: str) -> str:
    """What to use for a parameter."""
    return f"{wanted} or None" if key in _OPTIONAL else wanted


def _is_in_thousandths(value: float, low: int) -> bool:
    """Whether a cost is a multiple of 0.001 in its range."""
    apart = abs(value * dynamic_state.UNIT - round(value * dynamic_state.UNIT)) if value <= _MAX_COST else 0.0
    return low <= value <= _MAX_COST and apart <= 1e-6 * max(value, 1)


SCHEDULER = DynamicGrid

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"dynamic-grid": DynamicGrid}
"""The system by name."""
