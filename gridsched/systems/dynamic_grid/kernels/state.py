"""What a dynamic grid consists of while it is simulated: clusters, jobs, the parts of grid jobs on clusters.

Work is counted in units, so that all arithmetic is in whole numbers: with a multi-site overhead of `scale` /
`UNIT`, a second on one cluster does `scale` x `pace` units and a second over several clusters `UNIT` x `pace`
of them. The pace of a cluster is its speed in 1 / UNIT, that of several is that of the slowest; where all
speeds are the same, it is 1 and run times are as there.

A job asks for tasks, and takes a processor for each, or whole nodes: a multiple of the `unit` of the cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, cluster_state, counted, first_come, line, rings, running
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import ENTRY, FOREVER, RUN, SCORED, STEP
from gridsched.engine.reference import by_reference

UNIT = 1000
"""Units of work that a job over several clusters does in a second; overhead and costs are in 1 / UNIT."""

NOBODY = -1
"""Instead of a job, cluster, part, proxy, event or time: there is none."""

# states of a job
AHEAD, LOCAL_QUEUE, LOCAL_RUN, GRID_QUEUE, GRID_RUN, FINISHED, REJECTED, GONE = range(8)

# kinds of platform events
JOIN, RENEW, LEAVE = range(3)

NEW, IN_PROGRESS = 0, 1
"""Rows of the queues of the grid scheduler: NJ and CJ."""

REQUEST = np.dtype(
    [
        ("run", np.int64),  # as a grid job at the speed of reference
        ("estimate", np.int64),
        ("processors", np.int64),  # as it asks for
        ("home", np.int64),  # cluster of submission; NOBODY for a job that is submitted to the grid scheduler
    ]
)
"""A job as it is submitted."""

PROGRESS = np.dtype(
    [
        ("state", np.int64),
        ("left", np.int64),  # units of work that remain
        ("work", np.int64),  # seconds that remain of it as a local job, without checkpoints
        ("guess", np.int64),  # seconds that are expected to
        ("entry", np.int64),  # its number in the order in which jobs come to the ends of local queues
        ("begin", np.int64),  # since when it holds the processors of this spell
        ("resume", np.int64),  # since when it runs there; tasks that were moved arrive then
        ("length", np.int64),  # expected seconds from `resume`
        ("expected", np.int64),  # expected end
        ("clusters", np.int64),
        ("proxy", np.int64),  # its latest proxy
        ("start", np.int64),  # first start
        ("finish", np.int64),
        ("headed", np.int64),  # when its local scheduler first found that it cannot start
        ("yielded", np.int64),  # when grid jobs were first told to make place for it
        ("sent", np.int64),  # when it came to the grid scheduler
        ("executed", np.int64),  # seconds that it has run
        ("multi", np.int64),  # of these, over several clusters
        ("kept", np.int64),  # of these, such that were not lost
        ("served", np.int64),  # scale x seconds on one cluster + UNIT x seconds over several, kept
        ("kept_from", np.int64),  # what it did before this time was lost
        ("suspensions", np.int64),
        ("migrations", np.int64),
        ("tasks_moved", np.int64),
        ("pace", np.int64),  # that of its slowest cluster in this spell
        ("interval", np.int64),  # seconds of work between checkpoints of this spell; 0 for none
        ("pause", np.int64),  # seconds that a checkpoint takes
    ]
)
"""What has become of a job."""

CLUSTER = np.dtype(
    [
        ("processors", np.int64),
        ("unit", np.int64),  # processors that jobs take at a time
        ("pace", np.int64),  # units of work in a second, by `scale` or UNIT
        ("fails", np.int64),  # whether its nodes fail
        ("requeue", np.int64),  # value of `Requeue`, what becomes of jobs that are killed
        ("interval", np.int64),  # seconds of work between checkpoints; 0 for none
        ("pause", np.int64),  # seconds that a checkpoint takes
        ("member", np.int64),  # whether it belongs to the grid
        ("lease", np.int64),  # end of its lease; FOREVER without one
        ("departure", np.int64),  # the platform event of leaving, while grid jobs are still there
        ("grid", np.int64),  # processors that grid jobs hold and would leave to others
        ("leaving", np.int64),  # the same of parts whose tasks are on their way to another cluster
        ("awaited", np.int64),  # how many these are
        ("yielding", np.int64),  # whether grid jobs are to make place for the first local job
        ("in_time", np.int64),  # whether the first local job waits within delta_t
        ("timer", np.int64),  # when a superstep ends after which a part is to leave
        ("due", np.int64),  # time of the next end of a local job, expected end or timer
        ("dirty", np.int64),  # whether something has changed since the last pass
        ("changed", np.int64),  # whether processors may have changed hands, see `processors`
        ("closed", np.int64),  # processors that nothing may start on: out of order, drained, in maintenance
        ("loose", np.int64),  # of these, those that were left in this instant and are not planned with yet
        # processors that the grid scheduler believes to be available; NOBODY: reports next
        ("view", np.int64),
        ("sent", np.int64),  # local jobs sent to the grid scheduler
        ("evictions", np.int64),  # parts of grid jobs that had to leave
        ("tasks_out", np.int64),
        ("tasks_in", np.int64),
        ("suspensions", np.int64),  # evictions that found no neighbour
        ("inquiries", np.int64),  # neighbours asked for processors
        ("asked", np.int64),  # confirmations that the grid scheduler asked for
        ("refused", np.int64),  # of these, refused
        ("changes", np.int64),  # times that a report told of another number of processors than was believed
    ]
)
"""A cluster."""

PART = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("processors", np.int64),  # taken
        ("tasks", np.int64),
        ("closed", np.int64),  # of these, closed ones: nobody gets them when it leaves
        ("placed", np.int64),  # of these, those of which it is known which they are
        ("marked", np.int64),  # whether it is to make place for a local job
        ("fleeing", np.int64),  # whether it is to leave because maintenance comes
        ("target", np.int64),  # where it moves, while that is being decided
        ("segment", np.int64),  # where it is written down that its tasks are on their way, if they are
    ]
)
"""What a grid job holds on one cluster, or still holds there while its tasks are on their way elsewhere."""

EVENT = np.dtype(
    [
        ("time", np.int64),
        ("cluster", np.int64),
        ("kind", np.int64),
        ("lease", np.int64),
        ("done", np.int64),  # when the last grid job was gone, of LEAVE
    ]
)
"""A cluster joins, renews its lease, or leaves."""

SEGMENT = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("processors", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("held", np.int64),  # whether nothing was executed: tasks were on their way
        ("tasks", np.int64),
        ("killed", np.int64),  # whether a failing node ended it
    ]
)
"""Processors that a job had for some time."""

PROXY = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("tasks", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
        ("before", np.int64),  # earlier proxy of the job
    ]
)
"""What stays of tasks that moved on: it tells where they are until the job ends or is suspended."""

CLOCK = np.dtype(
    [
        ("now", np.int64),
        ("stage", np.int64),  # what happens next, see `loop`
        ("reported", np.int64),  # whether the clusters have reported in this instant
        ("event", np.int64),  # next platform event
        ("node_event", np.int64),  # next event of nodes
        ("entering", np.int64),  # jobs that enter at this instant
        ("entered", np.int64),  # those of them that have
        ("asked", np.int64),  # whether users were asked since whether they give up
        ("entries", np.int64),  # jobs that have come to the ends of local queues
        ("ending", np.int64),  # entries of the heap of ends of grid jobs
        ("moving", np.int64),  # entries of the heap of moves
        ("present", np.int64),  # jobs that were submitted and have not finished
        ("parts", np.int64),  # parts in use
        ("segments", np.int64),
        ("proxies", np.int64),
        ("dirty", np.int64),  # whether any cluster is dirty
        ("unreported", np.int64),  # whether any cluster has changed since the last report
        ("capacity", np.int64),  # processors believed to be available in the best clique; NOBODY: not known
        ("most", np.int64),  # processors of the largest clique of the clusters in the grid
        ("retest", np.int64),  # whether the first job of CJ may have a place
        ("chosen", np.int64),  # clusters chosen for a candidate
        ("needed", np.int64),  # segments that may be written before room is made again
        ("corrections", np.int64),
        ("dispatches", np.int64),  # parts sent to clusters
    ]
)
"""Scalars of the grid."""


class DynamicGridOptions(NamedTuple):
    """What does not change during a simulation; see `scheduler.DynamicGrid`."""

    scale: int  # units of work that a second on one cluster does at a pace of 1: overhead x UNIT
    work: int  # the same at the speed of reference
    delta_t: int  # FOREVER: a local job always waits
    superstep: int
    migration_cost: int  # seconds a task, x UNIT
    resume_cost: int
    status_period: int  # 0: every change is reported
    overrun: int
    prefers_migration: bool
    latest_victim: bool
    emptiest: bool
    first_only: bool  # of NJ, only the first job is a candidate
    strict: bool  # NJ waits while CJ is not empty
    offers_all: bool  # a cluster whose first local job waits within delta_t offers its idle processors
    holds_source: bool  # processors that tasks leave are free when the tasks have arrived
    migrates: bool
    keeps: bool  # suspended jobs keep what they have done
    heeds: bool  # the grid scheduler sends no job where the lease is shorter than its estimate
    most_sites: int
    reach: int  # processors of the largest clique
    looks: bool  # local schedulers look at expected ends


class DynamicGridArrays(NamedTuple):
    """The state: m clusters, n jobs."""

    requests: Any  # REQUEST[n]
    jobs: Any  # JOB[n], as local jobs
    labels: Any  # LABELS[n]
    policies: Any  # clusters.CLUSTER[m], local policies
    adjacent: Any  # bool[m, m]
    cliques: Any  # int64[...], members of the maximal cliques, one after the other
    clique_ends: Any  # int64[cliques + 1]
    events: Any  # EVENT[...]
    blocks: Any  # BLOCK[m, ...]
    queues: line.Line  # local queues of clusters that `first_come` schedules
    grid_queues: line.Line  # NJ, CJ
    chains: Any  # rings.LINK[n + parts], parts of each job; behind the heads of jobs that of unused parts
    sites: Any  # rings.LINK[m + parts], parts on each cluster, the latest last
    lifecycles: Any  # job_lifecycle.Lifecycles of the jobs
    outages: Any  # processors.OutageArrays; None where no nodes fail
    progress: Any = column(PROGRESS, "jobs")
    clusters: Any = column(CLUSTER, "clusters")
    state: Any = column(cluster_state.STATE, "clusters", "one")  # of the local schedulers
    clock: Any = column(CLOCK, "one")
    queue_key: Any = column(np.float64, "jobs")  # smallest first, of jobs at home
    order_key: Any = column(np.float64, "jobs")  # likewise for the backfill order
    starts: Any = column(np.int64, "jobs", fill=NOBODY)  # of local jobs
    entering: Any = column(np.int64, "jobs")  # scratch: jobs that enter, or leave
    parts: Any = column(PART, "parts")  # the first is never used
    queued: Any = column(np.int64, "two")  # jobs in NJ and CJ
    ends: Any = column(ENTRY, "parts")  # heap of ends of grid jobs
    local_ends: Any = column(ENTRY, "clusters", "runs_of_cluster")  # heaps of the ends of local jobs
    moves: Any = column(ENTRY, "parts")  # heap of the times when tasks have left, with their parts
    runs: Any = column(RUN, "clusters", "run_entries")
    scratch: Any = column(np.int64, "four", "clusters")  # clusters, their shares, processors, order
    segments: Any = column(SEGMENT, "segments")
    proxies: Any = column(PROXY, "proxies")
    waiting: Any = column(np.int64, "clusters", "queue")  # jobs that wait where `first_come` is not used
    candidates: Any = column(SCORED, "candidates")  # for one pass at a time
    later: Any = column(np.int64, "candidates")  # likewise
    steps: Any = column(STEP, "steps")  # likewise


FIRST_ROOM = 1024
"""Jobs that a queue has room for at first, and segments and proxies."""


def with_room(g: DynamicGridArrays) -> DynamicGridArrays:
    """The same grid with room for what may be written next, and for one more job in every queue."""
    clock, queues, grid_queues = g.clock[0], g.queues, g.grid_queues
    sizes: dict[str, int] = {}
    for name in ("segments", "proxies"):
        used = int(clock[name] + clock["needed"])
        if used > len(getattr(g, name)):
            sizes[name] = 2 * used
    longest, present = int((g.state["waiting"] + g.state["ending"]).max()), int(clock["present"])
    if longest >= g.waiting.shape[1]:
        queues = line.with_room(queues, 2 * longest)
        # a profile has two steps for each job
        sizes |= {"queue": 2 * longest, "candidates": 2 * longest + 1, "steps": len(g.steps) + 4 * longest}
    if present >= grid_queues.job.shape[1] - line.CHUNK:
        grid_queues = line.with_room(grid_queues, 2 * present)
    return bundles.grow(g, sizes)._replace(queues=queues, grid_queues=grid_queues)


@noinline
def has_room(g: DynamicGridArrays) -> bool:
    """Whether the arrays that grow have room for what may be written before this is asked again.

    A part that leaves writes at most three segments (its wait for tasks, its run, its processors while it
    moves), what takes its place at the same instant at most as many; a job that is sent has a part on each
    cluster; and local jobs end.
    """
    clock = g.clock[0]
    clock["needed"] = 6 * (clock["parts"] + len(g.clusters)) + clock["present"]
    most = min(len(g.segments) - clock["segments"], len(g.proxies) - clock["proxies"])
    return bool(clock["needed"] <= most)


@inline
def has_place(g: DynamicGridArrays, j: int) -> bool:
    """Whether a job that enters finds room in whatever queue it comes to, also when it is killed later."""
    home = max(0, g.requests[j]["home"])
    longest = g.state[home, 0]["waiting"] + g.state[home, 0]["ending"]
    return longest < g.waiting.shape[1] and g.clock[0]["present"] < g.grid_queues.job.shape[1] - line.CHUNK


@inline
def mark_dirty(g: DynamicGridArrays, i: int) -> None:
    """Mark a cluster dirty: it is looked at again in this instant, and reports."""
    g.clusters[i]["dirty"] = 1
    g.clusters[i]["changed"] = 1
    g.clock[0]["dirty"] = 1
    g.clock[0]["unreported"] = 1


@inline
def time_of(events: Any, k: int) -> int:
    """Time of an event of a list; FOREVER behind the last one."""
    return events[k]["time"] if k < len(events) else FOREVER


@inline
def part_on(g: DynamicGridArrays, j: int, i: int) -> int:
    """The part of a grid job on a cluster; NOBODY if it has none there."""
    for p in rings.items(g.chains, j):
        if g.parts[p]["cluster"] == i:
            return p
    return NOBODY


@inline
def line_of(g: DynamicGridArrays, i: int) -> first_come.FirstComeArrays:
    """A cluster as `first_come` knows it."""
    return first_come.FirstComeArrays(
        g.jobs, g.local_ends[i], g.blocks[i], g.runs[i], g.starts, g.state[i], line.row(g.queues, i)
    )


@inline
def queue_of(g: DynamicGridArrays, i: int) -> counted.CountedArrays:
    """A cluster as `counted` knows it."""
    return counted.CountedArrays(
        g.jobs,
        g.labels,
        g.queue_key,
        g.order_key,
        g.local_ends[i],
        g.blocks[i],
        g.runs[i],
        g.starts,
        g.state[i],
        g.waiting[i],
        g.candidates,
        g.later,
        g.steps,
        g.starts,  # no plan is kept
    )


@noinline
def set_due(g: DynamicGridArrays, i: int) -> None:
    """Find the time of the next event on a cluster besides ends of grid jobs."""
    g.clusters[i]["due"] = min(
        int(g.clusters[i]["timer"]), cluster_state.next_local_event(by_reference(line_of(g, i)))
    )


@noinline
def expect(g: DynamicGridArrays, i: int, key: int, end: int, processors: int) -> None:
    """Expect processors of a cluster to be free at a time."""
    state = g.state[i, 0]
    state["blocks"] = running.insert(g.blocks[i], g.runs[i], state["blocks"], end, key, processors)
    set_due(g, i)


@noinline
def forget(g: DynamicGridArrays, i: int, key: int, end: int, processors: int) -> None:
    """No longer expect processors of a cluster to be free at a time."""
    state = g.state[i, 0]
    state["blocks"] = running.remove(g.blocks[i], g.runs[i], state["blocks"], end, key, processors)
    set_due(g, i)


@inline
def whole(g: DynamicGridArrays, i: int, tasks: int) -> int:
    """Processors of a cluster that so many tasks of a job take."""
    unit = g.clusters[i]["unit"]
    return -(-tasks // unit) * unit


@inline
def offered(g: DynamicGridArrays, i: int, o: DynamicGridOptions) -> int:
    """Processors that a cluster has for the grid: none while its own jobs need them."""
    cluster = g.clusters[i]
    claimed = g.state[i, 0]["waiting"] > 0 and not (o.offers_all and cluster["in_time"] != 0)
    if cluster["member"] == 0 or claimed:
        return 0
    return int(g.state[i, 0]["free"])
