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

from gridsched.engine import cluster_state, counted, first_come, line, running
from gridsched.engine.jit import inline, noinline
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import ENTRY, FOREVER, RUN, SCORED, STEP
from gridsched.engine.reference import by_reference

UNIT = 1000
"""Units of work that a job over several clusters does in a second; overhead and costs are in 1 / UNIT."""

NOBODY = -1
"""Instead of a job, cluster, part, proxy, event or time: there is none."""

# states of a job
AHEAD, LOCAL_QUEUE, LOCAL_RUN, GRID_QUEUE, GRID_RUN, FINISHED, REJECTED, GONE = 0, 1, 2, 3, 4, 5, 6, 7

# kinds of platform events
JOIN, RENEW, LEAVE = 0, 1, 2

NEW, IN_PROGRESS = 0, 1
"""Rows of the queues of the grid scheduler: NJ and CJ."""

REQUEST = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),  # as a grid job at the speed of reference
        ("estimate", np.int64),
        ("processors", np.int64),  # as it asks for
        ("home", np.int64),  # cluster of submission; NOBODY for a job that is submitted to the grid scheduler
        ("reach", np.int64),  # processors of the largest clique
    ]
)
"""A job as it is submitted."""

PROGRESS = np.dtype(
    [
        ("state", np.int64),
        ("left", np.int64),  # units of work that remain
        ("begin", np.int64),  # since when it holds the processors of this spell
        ("resume", np.int64),  # since when it runs there; tasks that were moved arrive then
        ("end", np.int64),  # when it will have run, NOBODY while it does not hold processors
        ("length", np.int64),  # expected seconds from `resume`
        ("expected", np.int64),  # expected end
        ("clusters", np.int64),
        ("part", np.int64),  # its first part
        ("proxy", np.int64),  # its latest proxy
        ("start", np.int64),  # first start
        ("finish", np.int64),
        ("headed", np.int64),  # when its local scheduler first found that it cannot start
        ("yielded", np.int64),  # when grid jobs were first told to make place for it
        ("sent", np.int64),  # when it came to the grid scheduler
        ("single", np.int64),  # seconds that it has run on one cluster
        ("multi", np.int64),  # seconds that it has run over several
        ("served", np.int64),  # scale x seconds on one cluster + UNIT x seconds over several, kept
        ("kept_from", np.int64),  # what it did before this time was lost
        ("suspensions", np.int64),
        ("migrations", np.int64),
        ("tasks_moved", np.int64),
        ("interval", np.int64),  # seconds of work between checkpoints of this spell; 0 for none
        ("pause", np.int64),  # seconds that a checkpoint takes
        ("listed", np.int64),  # scratch
    ]
)
"""What has become of a job."""

CLUSTER = np.dtype(
    [
        ("processors", np.int64),
        ("unit", np.int64),  # processors that jobs take at a time
        ("pace", np.int64),  # units of work in a second, by `scale` or UNIT
        ("member", np.int64),  # whether it belongs to the grid
        ("lease", np.int64),  # end of its lease; FOREVER without one
        ("departure", np.int64),  # the platform event of leaving, while grid jobs are still there
        ("grid", np.int64),  # processors that parts of grid jobs hold and would leave to others
        ("leaving", np.int64),  # the same of tasks on their way to another cluster
        ("part", np.int64),  # first part of a grid job
        ("last_part", np.int64),
        ("yielding", np.int64),  # whether grid jobs are to make place for the first local job
        ("in_time", np.int64),  # whether the first local job waits within delta_t
        ("timer", np.int64),  # when a superstep ends after which a part is to leave
        ("due", np.int64),  # time of the next end of a local job, expected end or timer
        ("dirty", np.int64),  # whether something has changed since the last pass
        ("changed", np.int64),  # whether processors may have changed hands, see `failures`
        ("closed", np.int64),  # processors that nothing may start on: out of order, drained, in maintenance
        ("loose", np.int64),  # of these, those that were left in this instant and are not planned with yet
        ("interval", np.int64),  # seconds of work between checkpoints; 0 for none
        ("pause", np.int64),  # seconds that a checkpoint takes
        (
            "view",
            np.int64,
        ),  # processors that the grid scheduler believes to be available; NOBODY: reports next
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
        ("of_job", np.int64),  # next part of the job
        ("next", np.int64),  # next part on the cluster
        ("previous", np.int64),
    ]
)
"""What a grid job holds on one cluster."""

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
"""Processors that a grid job had for some time, or a local job that was killed."""

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

HOLD = np.dtype(
    [
        ("cluster", np.int64),
        ("processors", np.int64),
        ("closed", np.int64),  # of these, closed ones
        ("placed", np.int64),  # whether it is known which they are
        ("job", np.int64),
        ("segment", np.int64),  # where it is written down
        ("next", np.int64),
    ]
)
"""Processors of tasks on their way, at the cluster that they leave; or the next unused entry."""

CLOCK = np.dtype(
    [
        ("now", np.int64),
        ("within", np.int64),  # how far the instant `now` is; 0 if it is finished
        ("reported", np.int64),  # whether the clusters have reported in this instant
        ("arrival", np.int64),  # next job to be submitted
        ("event", np.int64),  # next platform event
        ("ending", np.int64),  # entries of the heap of ends of grid jobs
        ("moving", np.int64),  # entries of the heap of moves
        ("hold", np.int64),  # first unused hold
        ("present", np.int64),  # jobs that were submitted and have not finished
        ("news", np.int64),  # entries of `news`
        ("parts", np.int64),  # parts in use
        ("spare", np.int64),  # first unused part
        ("segments", np.int64),
        ("proxies", np.int64),
        ("new", np.int64),  # jobs in NJ
        ("in_progress", np.int64),  # jobs in CJ
        ("dirty", np.int64),  # whether any cluster is dirty
        ("unreported", np.int64),  # whether any cluster has changed since the last report
        ("capacity", np.int64),  # processors believed to be available in the best clique; NOBODY: not known
        ("most", np.int64),  # processors of the largest clique of the clusters in the grid
        ("retest", np.int64),  # whether the first job of CJ may have a place
        ("departing", np.int64),  # clusters that have left and still run grid jobs
        ("chosen", np.int64),  # clusters chosen for a candidate
        ("full", np.int64),  # whether an array has to grow before anything else happens
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
    looks: bool  # local schedulers look at expected ends


class DynamicGridArrays(NamedTuple):
    """The state: m clusters, n jobs."""

    requests: Any  # REQUEST[n]
    jobs: Any  # JOB[n], as local jobs
    labels: Any  # LABELS[n]
    queue_key: Any  # float64[n], smallest first, of jobs at home
    order_key: Any  # float64[n], likewise for the backfill order
    starts: Any  # int64[n], of local jobs
    progress: Any  # PROGRESS[n]
    clusters: Any  # CLUSTER[m]
    policies: Any  # clusters.CLUSTER[m], local policies
    state: Any  # cluster_state.STATE[m, 1], of the local schedulers
    adjacent: Any  # bool[m, m]
    cliques: Any  # int64[...], members of the maximal cliques, one after the other
    clique_ends: Any  # int64[cliques + 1]
    events: Any  # EVENT[...]
    clock: Any  # CLOCK[1]
    parts: Any  # PART[...]
    ends: Any  # ENTRY[...], heap of ends of grid jobs; those of spells that were cut short are passed over
    local_ends: Any  # ENTRY[m, ...], heaps of the ends of local jobs
    moves: Any  # ENTRY[...], heap of the times when tasks have left
    holds: Any  # HOLD[...]
    blocks: Any  # BLOCK[m, ...]
    runs: Any  # RUN[m, ...]
    scratch: Any  # int64[4, m]: chosen clusters, their shares, processors promised, order
    segments: Any  # SEGMENT[...]
    proxies: Any  # PROXY[...]
    queues: line.Line  # local queues of clusters that `first_come` schedules
    waiting: Any  # int64[m, room], jobs that wait on the other ones
    candidates: Any  # SCORED[room + 1], for one pass at a time
    later: Any  # int64[room + 1], likewise
    steps: Any  # STEP[...], likewise
    grid_queues: line.Line  # NJ, CJ
    news: (
        Any  # int64[2n], jobs that have started for the first time, and n + those that have ended; or nothing
    )


FIRST_ROOM = 1024
"""Jobs that a queue has room for at first, and segments and proxies."""


def allocate(
    requests: Any,
    jobs: Any,
    labels: Any,
    policies: Any,
    processors: Any,
    units: Any,
    paces: Any,
    adjacent: Any,
    cliques: Any,
    clique_ends: Any,
    events: Any,
    work: int,
    failure_aware: bool,
) -> DynamicGridArrays:
    """Arrays of an idle grid to which no cluster belongs.

    `work` is as in `DynamicGridOptions`, `failure_aware` says whether `failures.simulate` is to simulate it,
    the other names are those of `DynamicGridArrays`.
    """
    number, total, largest = len(requests), int(processors.sum()), int(processors.max())
    progress = np.zeros(number, PROGRESS)
    for name in ("end", "part", "proxy", "start", "finish", "headed", "yielded", "sent", "kept_from"):
        progress[name] = NOBODY
    progress["left"] = requests["run"] * work
    clusters = np.zeros(len(processors), CLUSTER)
    for name in ("part", "last_part", "departure", "view"):
        clusters[name] = NOBODY
    clusters["processors"] = processors
    local = np.zeros((len(clusters), 1), cluster_state.STATE)
    local["free"][:, 0] = processors
    local["planned"] = FOREVER
    clusters["unit"], clusters["pace"] = units, paces
    clusters["timer"] = clusters["due"] = clusters["lease"] = FOREVER
    most = min(total, len(processors) * max(number, 1)) + len(processors) + 1
    parts = np.zeros(most, PART)
    parts["next"] = np.arange(1, most + 1)
    clock = np.zeros(1, CLOCK)
    clock["capacity"] = NOBODY
    # jobs of a failure-aware grid enter when they are eligible
    clock["arrival"] = number if failure_aware else 0
    holds = np.zeros(total + 1, HOLD)
    holds["next"] = np.arange(1, total + 2)
    # what is closed is among what runs
    running_most = largest if failure_aware else min(2 * number + 1, largest)
    blocks, runs = running.allocate(running_most)
    queue_key, order_key = _keys(jobs, requests["home"], policies)
    return DynamicGridArrays(
        requests=requests,
        jobs=jobs,
        labels=labels,
        queue_key=queue_key,
        order_key=order_key,
        starts=np.full(number, NOBODY, np.int64),
        progress=progress,
        clusters=clusters,
        policies=policies,
        state=local,
        adjacent=adjacent,
        cliques=cliques,
        clique_ends=clique_ends,
        events=events,
        clock=clock,
        parts=parts,
        ends=np.empty(2 * min(total, number) + 16, ENTRY),
        local_ends=np.empty((len(clusters), min(number, largest) + 1), ENTRY),
        moves=np.empty(total + 1, ENTRY),
        holds=holds,
        blocks=np.tile(blocks, (len(clusters), 1)),
        runs=np.empty((len(clusters), len(runs)), RUN),
        scratch=np.zeros((4, len(clusters)), np.int64),
        segments=np.empty(FIRST_ROOM, SEGMENT),
        proxies=np.empty(FIRST_ROOM, PROXY),
        queues=line.allocate(len(clusters), FIRST_ROOM),
        waiting=np.empty((len(clusters), FIRST_ROOM), np.int64),
        candidates=np.empty(FIRST_ROOM + 1, SCORED),
        later=np.empty(FIRST_ROOM + 1, np.int64),
        steps=np.empty(_steps(running_most + FIRST_ROOM), STEP),
        grid_queues=line.allocate(2, FIRST_ROOM),
        news=np.empty(2 * number if failure_aware else 0, np.int64),
    )


def _steps(jobs: int) -> int:
    """Steps of a profile of so many jobs: two each."""
    return 2 * jobs + 16


def _keys(jobs: Any, home: Any, policies: Any) -> tuple[Any, Any]:
    """Sort keys of jobs in the queue order and in the backfill order of their home, where they have one."""
    entry = np.arange(len(jobs), dtype=np.float64)
    estimate, processors = jobs["estimate"].astype(np.float64), jobs["processors"].astype(np.float64)
    by_order = np.stack([entry, estimate, processors, estimate * processors, entry])
    queue_key, order_key = (
        by_order[policies[name][home], np.arange(len(jobs))] for name in ("order", "backfill_order")
    )
    return queue_key, order_key


def with_room(g: DynamicGridArrays) -> DynamicGridArrays:
    """The same grid with room for what may be written next."""
    clock = g.clock[0]
    coming = int(clock["present"]) + int((g.requests["submit"] == _next_submission(g)).sum()) + 1
    queues, grid_queues = g.queues, g.grid_queues
    waiting, candidates, steps = g.waiting, g.candidates, g.steps
    if _longest(g, coming) > room(queues):
        more = 2 * _longest(g, coming)
        queues = line.with_room(queues, more)
        waiting = np.empty((len(g.clusters), more), np.int64)
        waiting[:, : g.waiting.shape[1]] = g.waiting
        candidates = np.empty(more + 1, SCORED)
        steps = np.empty(len(g.steps) + _steps(more), STEP)
    if coming > room(grid_queues):
        grid_queues = line.with_room(grid_queues, 2 * coming)
    return g._replace(
        segments=_grown(g.segments, int(clock["segments"]), needed(g)),
        proxies=_grown(g.proxies, int(clock["proxies"]), needed(g)),
        queues=queues,
        waiting=waiting,
        candidates=candidates,
        later=np.empty(len(candidates), np.int64),
        steps=steps,
        grid_queues=grid_queues,
    )


def _next_submission(g: DynamicGridArrays) -> int:
    """Time of the next submission; NOBODY if there is none."""
    arrival = int(g.clock[0]["arrival"])
    return int(g.requests["submit"][arrival]) if arrival < len(g.requests) else NOBODY


def _longest(g: DynamicGridArrays, coming: int) -> int:
    """Jobs that may be in a local queue after the next submissions; those that run may come back."""
    return int((g.state["waiting"] + g.state["ending"]).max()) + coming - int(g.clock[0]["present"])


def _grown(array: Any, used: int, more: int) -> Any:
    """An array with room for more entries behind those used, and for growth."""
    if used + more <= len(array):
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


@inline
def room(lines: line.Line) -> int:
    """Jobs that may wait in each of some lines."""
    return lines.job.shape[1] - line.CHUNK


@inline
def needed(g: DynamicGridArrays) -> int:
    """Segments that may be written before this is asked again.

    A part that leaves writes at most three (its wait for tasks, its run, its processors while it moves), what
    takes its place at the same instant at most as many; and a job that is sent has a part on each cluster.
    """
    return 6 * (int(g.clock[0]["parts"]) + len(g.clusters))


@inline
def has_room(g: DynamicGridArrays) -> bool:
    """Whether the arrays that grow have room for what may be written before this is asked again."""
    clock = g.clock[0]
    more = needed(g)
    return clock["segments"] + more <= len(g.segments) and clock["proxies"] + more <= len(g.proxies)


@inline
def mark_dirty(g: DynamicGridArrays, i: int) -> None:
    """Mark a cluster dirty: it is looked at again in this instant, and reports."""
    g.clusters[i]["dirty"] = 1
    g.clusters[i]["changed"] = 1
    g.clock[0]["dirty"] = 1
    g.clock[0]["unreported"] = 1


@inline
def tell(g: DynamicGridArrays, item: int) -> None:
    """Tell whom it may concern of the first start of a job, or of its end."""
    if len(g.news) > 0:
        g.news[g.clock[0]["news"]] = item
        g.clock[0]["news"] += 1


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


@inline
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


@inline
def corrected(g: DynamicGridArrays, j: int, overrun: int, now: int) -> int:
    """Expected end after now of a grid job that runs on."""
    return expected_end(g.progress[j]["resume"], int(g.progress[j]["length"]), overrun, now + 1)
