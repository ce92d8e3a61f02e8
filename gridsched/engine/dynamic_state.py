"""What a dynamic grid consists of while it is simulated: clusters, jobs, the parts of grid jobs on clusters.

Work is counted in units, so that all arithmetic is in whole numbers: with a multi-site overhead of `scale` /
`UNIT`, a second on one cluster does `scale` units and a second over several clusters `UNIT` of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import line, running
from gridsched.engine.jit import leaf, part
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import ENTRY, FOREVER, RUN

UNIT = 1000
"""Units of work that a job over several clusters does in a second; overhead and costs are in 1 / UNIT."""

NOBODY = -1
"""Instead of a job, cluster, part, proxy, event or time: there is none."""

# states of a job
AHEAD, LOCAL_QUEUE, LOCAL_RUN, GRID_QUEUE, GRID_RUN, FINISHED, REJECTED = 0, 1, 2, 3, 4, 5, 6

# kinds of platform events
JOIN, RENEW, LEAVE = 0, 1, 2

NEW, IN_PROGRESS = 0, 1
"""Rows of the queues of the grid scheduler: NJ and CJ."""

REQUEST = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),
        ("estimate", np.int64),
        ("processors", np.int64),
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
        ("sites", np.int64),
        ("part", np.int64),  # its first part
        ("proxy", np.int64),  # its latest proxy
        ("start", np.int64),  # first start
        ("finish", np.int64),
        ("headed", np.int64),  # when its local scheduler first found that it cannot start
        ("yielded", np.int64),  # when grid jobs were first told to make place for it
        ("sent", np.int64),  # when it came to the grid scheduler
        ("single", np.int64),  # seconds that it has run on one cluster
        ("multi", np.int64),  # seconds that it has run over several
        ("kept_from", np.int64),  # what it did before this time was lost
        ("suspensions", np.int64),
        ("migrations", np.int64),
        ("tasks_moved", np.int64),
        ("listed", np.int64),  # scratch
    ]
)
"""What has become of a job."""

SITE = np.dtype(
    [
        ("processors", np.int64),
        ("free", np.int64),
        ("member", np.int64),  # whether it belongs to the grid
        ("lease", np.int64),  # end of its lease; FOREVER without one
        ("departure", np.int64),  # the platform event of leaving, while grid jobs are still there
        ("waiting", np.int64),  # jobs in the local queue
        ("blocks", np.int64),  # blocks of running jobs, see `running`
        ("grid", np.int64),  # processors that parts of grid jobs hold
        ("leaving", np.int64),  # processors held by tasks on their way to another cluster
        ("part", np.int64),  # first part of a grid job
        ("last_part", np.int64),
        ("yielding", np.int64),  # whether grid jobs are to make place for the first local job
        ("in_time", np.int64),  # whether the first local job waits within delta_t
        ("timer", np.int64),  # when a superstep ends after which a part is to leave
        ("due", np.int64),  # time of the next expected end or timer
        ("touched", np.int64),  # whether something has changed since the last pass
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
        ("processors", np.int64),
        ("marked", np.int64),  # whether it is to make place for a local job
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
    ]
)
"""Processors that a grid job had for some time."""

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

HOLD = np.dtype([("cluster", np.int64), ("processors", np.int64), ("next", np.int64)])
"""Processors of tasks on their way, at the cluster that they leave; or the next unused entry."""

CLOCK = np.dtype(
    [
        ("now", np.int64),
        ("within", np.int64),  # whether the instant `now` is not finished
        ("reported", np.int64),  # whether the clusters have reported in this instant
        ("arrival", np.int64),  # next job to be submitted
        ("event", np.int64),  # next platform event
        ("ending", np.int64),  # entries of the heap of ends
        ("moving", np.int64),  # entries of the heap of moves
        ("hold", np.int64),  # first unused hold
        ("present", np.int64),  # jobs that were submitted and have not finished
        ("parts", np.int64),  # parts in use
        ("spare", np.int64),  # first unused part
        ("segments", np.int64),
        ("proxies", np.int64),
        ("new", np.int64),  # jobs in NJ
        ("in_progress", np.int64),  # jobs in CJ
        ("touched", np.int64),  # whether any cluster is
        ("dirty", np.int64),  # whether any cluster has changed since the last report
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


class Options(NamedTuple):
    """What does not change during a simulation; see `gridsched.schedulers.dynamic_grid.DynamicGrid`."""

    scale: int  # units of work that a second on one cluster does: overhead x UNIT
    delta_t: int  # FOREVER: a local job always waits
    superstep: int
    migration_cost: int  # seconds a task, x UNIT
    resume_cost: int
    status_period: int  # 0: every change is reported
    overrun: int
    easy: bool  # local schedulers backfill
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
    track: bool  # expected ends are looked at


class Grid(NamedTuple):
    """The state: m clusters, n jobs."""

    requests: Any  # REQUEST[n]
    progress: Any  # PROGRESS[n]
    sites: Any  # SITE[m]
    adjacent: Any  # bool[m, m]
    cliques: Any  # int64[...], members of the maximal cliques, one after the other
    clique_ends: Any  # int64[cliques + 1]
    events: Any  # EVENT[...]
    clock: Any  # CLOCK[1]
    parts: Any  # PART[...]
    ends: Any  # ENTRY[...], heap of ends; those of spells that were cut short are passed over
    moves: Any  # ENTRY[...], heap of the times when tasks have left
    holds: Any  # HOLD[...]
    blocks: Any  # BLOCK[m, ...]
    runs: Any  # RUN[m, ...]
    scratch: Any  # int64[4, m]: chosen clusters, their shares, processors promised, order
    segments: Any  # SEGMENT[...]
    proxies: Any  # PROXY[...]
    queues: line.Line  # local queues
    grid_queues: line.Line  # NJ, CJ


FIRST_ROOM = 1024
"""Jobs that a queue has room for at first, and segments and proxies."""


def allocate(
    requests: Any, processors: Any, adjacent: Any, cliques: Any, clique_ends: Any, events: Any, scale: int
) -> Grid:
    """Arrays of an idle grid to which no cluster belongs."""
    number, total, largest = len(requests), int(processors.sum()), int(processors.max())
    progress = np.zeros(number, PROGRESS)
    for name in ("end", "part", "proxy", "start", "finish", "headed", "yielded", "sent", "kept_from"):
        progress[name] = NOBODY
    progress["left"] = requests["run"] * scale
    sites = np.zeros(len(processors), SITE)
    for name in ("part", "last_part", "departure", "view"):
        sites[name] = NOBODY
    sites["processors"] = sites["free"] = processors
    sites["timer"] = sites["due"] = sites["lease"] = FOREVER
    most = min(total, len(processors) * max(number, 1)) + len(processors) + 1
    parts = np.zeros(most, PART)
    parts["next"] = np.arange(1, most + 1)
    clock = np.zeros(1, CLOCK)
    clock["capacity"] = NOBODY
    holds = np.zeros(total + 1, HOLD)
    holds["next"] = np.arange(1, total + 2)
    blocks, runs = running.allocate(min(2 * number + 1, largest))
    return Grid(
        requests=requests,
        progress=progress,
        sites=sites,
        adjacent=adjacent,
        cliques=cliques,
        clique_ends=clique_ends,
        events=events,
        clock=clock,
        parts=parts,
        ends=np.empty(2 * min(total, number) + 16, ENTRY),
        moves=np.empty(total + 1, ENTRY),
        holds=holds,
        blocks=np.tile(blocks, (len(sites), 1)),
        runs=np.empty((len(sites), len(runs)), RUN),
        scratch=np.zeros((4, len(sites)), np.int64),
        segments=np.empty(FIRST_ROOM, SEGMENT),
        proxies=np.empty(FIRST_ROOM, PROXY),
        queues=line.allocate(len(sites), FIRST_ROOM),
        grid_queues=line.allocate(2, FIRST_ROOM),
    )


def with_room(g: Grid) -> Grid:
    """The same grid with room for what may be written next."""
    clock = g.clock[0]
    coming = int(clock["present"]) + int((g.requests["submit"] == _next_submission(g)).sum()) + 1
    queues, grid_queues = g.queues, g.grid_queues
    if _longest(g, coming) > room(queues):
        queues = line.with_room(queues, 2 * _longest(g, coming))
    if coming > room(grid_queues):
        grid_queues = line.with_room(grid_queues, 2 * coming)
    return g._replace(
        segments=_grown(g.segments, int(clock["segments"]), needed(g)),
        proxies=_grown(g.proxies, int(clock["proxies"]), needed(g)),
        queues=queues,
        grid_queues=grid_queues,
    )


def _next_submission(g: Grid) -> int:
    """Time of the next submission; NOBODY if there is none."""
    arrival = int(g.clock[0]["arrival"])
    return int(g.requests["submit"][arrival]) if arrival < len(g.requests) else NOBODY


def _longest(g: Grid, coming: int) -> int:
    """Jobs that may be in a local queue after the next submissions."""
    return int(g.sites["waiting"].max()) + coming - int(g.clock[0]["present"])


def _grown(array: Any, used: int, more: int) -> Any:
    """An array with room for more entries behind those used, and for growth."""
    if used + more <= len(array):
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


@leaf
def room(lines: line.Line) -> int:
    """Jobs that may wait in each of some lines."""
    return lines.job.shape[1] - line.CHUNK


@leaf
def needed(g: Grid) -> int:
    """Segments that may be written before this is asked again.

    A part that leaves writes at most three (its wait for tasks, its run, its processors while it moves), what
    takes its place at the same instant at most as many; and a job that is sent has a part on each cluster.
    """
    return 6 * (int(g.clock[0]["parts"]) + len(g.sites))


@leaf
def has_room(g: Grid) -> bool:
    """Whether the arrays that grow have room for what may be written before this is asked again."""
    clock = g.clock[0]
    more = needed(g)
    return clock["segments"] + more <= len(g.segments) and clock["proxies"] + more <= len(g.proxies)


@leaf
def touch(g: Grid, i: int) -> None:
    """Let a cluster be looked at in this instant."""
    g.sites[i]["touched"] = 1
    g.clock[0]["touched"] = 1
    g.clock[0]["dirty"] = 1


@leaf
def set_due(g: Grid, i: int) -> None:
    """Find the time of the next event on a cluster besides ends."""
    due = g.sites[i]["timer"]
    if g.sites[i]["blocks"] > 0:
        due = min(due, g.runs[i, g.blocks[i, 0]["slot"] * running.SIZE]["end"])
    g.sites[i]["due"] = due


@part
def expect(g: Grid, i: int, key: int, end: int, processors: int) -> None:
    """Expect processors of a cluster to be free at a time."""
    g.sites[i]["blocks"] = running.insert(g.blocks[i], g.runs[i], g.sites[i]["blocks"], end, key, processors)
    set_due(g, i)


@part
def forget(g: Grid, i: int, key: int, end: int, processors: int) -> None:
    """No longer expect processors of a cluster to be free at a time."""
    g.sites[i]["blocks"] = running.remove(g.blocks[i], g.runs[i], g.sites[i]["blocks"], end, key, processors)
    set_due(g, i)


@leaf
def offered(g: Grid, i: int, o: Options) -> int:
    """Processors that a cluster has for the grid: none while its own jobs need them."""
    site = g.sites[i]
    claimed = site["waiting"] > 0 and not (o.offers_all and site["in_time"] != 0)
    if site["member"] == 0 or claimed:
        return 0
    return int(site["free"])


@leaf
def corrected(g: Grid, j: int, overrun: int, now: int) -> int:
    """Expected end after now of a job that runs on."""
    return expected_end(g.progress[j]["resume"], int(g.progress[j]["length"]), overrun, now + 1)
