"""What managers, clusters and jobs are in imprecise calendars, and which slots the jobs hold.

See `kernels.managers`. Managers are numbered in preorder, so that what is below manager m has the
numbers from m + 1 to before m + its `size`, and clusters in the order of the leaves. Every leaf manager has
one cluster, with its calendar in the row of the cluster's number. Shadow calendars come behind these rows.

A manager places a job at a *holder*: a manager below it (or itself) that has the nodes, while none of its
own sub-managers has them. So a holder is one cluster, or a job at it spans several; no two holders share a
cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, heap, rings
from gridsched.engine.bundles import column
from gridsched.engine.checkpoints import with_checkpoints
from gridsched.engine.jit import as_int64, inline, noinline
from gridsched.engine.records import ENTRY, FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.calendar import CalendarArrays


class Status(IntEnum):
    """How far a job is."""

    ABSENT = 0
    WAITING = 1
    RUNNING = 2
    DONE = 3
    KILLED = 4
    REJECTED = 5
    REFUSED = 6
    GONE = 7


class Group(IntEnum):
    """Who is placed again before whom; within each group it is in order of requests."""

    KILLED = -2
    RESERVED = -1
    ORDINARY = 0
    KILLED_LAST = 1


class Route(IntEnum):
    """Why a job left its home."""

    STAYED = 0
    PROMOTED = 1
    FORWARDED = 2
    BUMPED = 3
    RESERVED = 4


NOWHERE = -1
"""No manager, no job, no limit, no time."""

REQUEST = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),  # seconds ...
        ("estimate", np.int64),  # ... at least 1 ...
        ("speed", np.float64),  # ... at this speed
        ("nodes", np.int64),
        ("home", np.int64),  # manager where it is submitted, a leaf
        ("reserved", np.int64),  # when it asks to start; NOWHERE for an ordinary job
        ("span", np.int64),  # number among the jobs that may span clusters, else NOWHERE
    ]
)
"""What a job asks for."""

PLAN = np.dtype(
    [
        ("status", np.int64),  # value of `Status`
        ("start", np.int64),  # planned start, or last start
        ("end", np.int64),  # planned end; whole slots are held
        ("promise", np.int64),  # start that was planned first
        ("first", np.int64),  # first start; NOWHERE
        ("ended", np.int64),  # last end; NOWHERE
        ("done", np.int64),  # seconds executed before the last start ...
        ("useful", np.int64),  # ... without those that were lost, or spent on checkpoints
        ("left", np.int64),  # seconds to execute ...
        ("speed", np.float64),  # ... at this speed
        ("owner", np.int64),  # manager that placed it
        ("place", np.int64),  # holder
        ("group", np.int64),  # value of `Group`: whether its start is reserved, or a failing node killed it
        ("earliest", np.int64),  # start that a refused reservation could have had; NOWHERE
        ("route", np.int64),  # value of `Route`
        ("turn", np.int64),  # order among those who wait: that of their requests
        ("broken", np.int64),  # whether outages did not let its reservation be kept
    ]
)
"""Outcome of a job. Without a place, start and end are FOREVER and the place is NOWHERE."""

NODE = np.dtype(
    [
        ("parent", np.int64),  # NOWHERE at the root
        ("size", np.int64),  # managers from this one down
        ("nodes", np.int64),  # without those that are out for a time that nobody knows; likewise below
        ("widest", np.int64),  # nodes of the largest sub-manager; 0 at a leaf
        ("first", np.int64),  # first cluster
        ("end", np.int64),  # behind the last cluster
        ("speed", np.float64),  # of the slowest cluster
        ("promote_processors", np.int64),  # jobs with more go up; NOWHERE
        ("promote_duration", np.int64),  # jobs with an estimate of so much or more go up; NOWHERE
        ("bump", np.int64),  # jobs that would wait longer are bumped up; NOWHERE
        ("bump_stretch", np.int64),  # ... and longer than so many times their estimate
        ("period", np.int64),  # time between updates of its shadow calendars; 0: they are always fresh
        ("refresh", np.int64),  # time of the next update
        ("shadow", np.int64),  # row of the first shadow calendar; NOWHERE
        ("unbiased", np.int64),
        ("borrow_limit", np.int64),  # node-seconds; NOWHERE
        ("interval", np.int64),  # seconds of work between checkpoints; 0 for none
        ("cost", np.int64),  # seconds that a checkpoint takes
        ("freed", np.int64),  # whether something was released below at this instant
        ("loose", np.int64),  # whether something was released below since its jobs moved last
    ]
)
"""A manager."""

CLUSTER = np.dtype(
    [
        ("manager", np.int64),
        ("supplied", np.int64),  # node-seconds of jobs from elsewhere
        ("consumed", np.int64),  # node-seconds of jobs from here elsewhere
        ("local_work", np.int64),  # node-seconds of jobs from here
    ]
)
"""A cluster."""

HOLD = np.dtype(
    [
        *rings.LINK.descr,
        ("nodes", np.int64),  # that the job takes on the cluster whose list this is
        ("tasks", np.int64),  # nodes that it asked for among these
    ]
)
"""A job on the list of those that hold slots of a cluster."""

SEGMENT = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("processors", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("tasks", np.int64),  # processors that the job asked for among those taken
    ]
)
"""An execution."""

COUNTS = np.dtype(
    [
        ("arrival", np.int64),  # next job to be submitted, where `job_lifecycle` does not say so
        ("turn", np.int64),  # requests so far
        ("ending", np.int64),  # entries of the heap of ends
        ("planned", np.int64),  # no planned start is earlier
        ("segments", np.int64),  # those for which there is no room, too
        ("reserves", np.int64),  # reserve requests so far
        ("inquiries", np.int64),
        ("failed_inquiries", np.int64),
        ("aborts", np.int64),
        ("messages", np.int64),
        ("moves", np.int64),  # waiting jobs that got an earlier start
        ("early_exits", np.int64),  # completions that released slots
        ("displaced", np.int64),  # waiting jobs whose slot an overrunner took ...
        ("delayed", np.int64),  # ... and that start later for it
        ("killed", np.int64),
        ("suspended", np.int64),
        ("kept_home", np.int64),  # promotions and bumps that the limit of borrowing forbade
        ("over_limit", np.int64),  # jobs over the limit that went up because they cannot fit at home
        ("event", np.int64),  # next event of outages
        ("happened", np.int64),  # whether something happened to outages at this instant
        ("outage_displaced", np.int64),  # times that a waiting job lost its slots to an outage
    ]
)
"""Scalars of a simulation."""


class ManagerTree(NamedTuple):
    """Managers, clusters, and jobs."""

    calendars: CalendarArrays  # a row a cluster, then the shadow calendars
    jobs: Any  # REQUEST[n], by submit time
    managers: Any  # NODE[managers], in preorder
    order: Any  # int64[managers]: those above before those below
    queues: Any  # rings.LINK[managers + n]: waiting jobs of each manager, in order of requests
    holds: Any  # HOLD[...]: jobs that hold slots of each cluster, see `hold_of`
    refusals: Any  # uint8[any]: reserve requests that are refused, by their number
    seed: int
    suspend: bool  # an overrunner without a slot is suspended, not killed
    queue: bool  # a refused reservation becomes an ordinary job
    clusters: Any = column(CLUSTER, "clusters")
    plans: Any = column(PLAN, "jobs")
    events: Any = column(ENTRY, "jobs")  # ends of jobs, and of the slots of overrunners
    segments: Any = column(SEGMENT, "segments")
    floor: Any = column(np.int64, "managers")  # when a request may be possible at a holder
    told: Any = column(np.uint8, "managers")  # whether the holder said so
    least: Any = column(np.int64, "clusters")  # nodes that a spanning job could have on each
    take: Any = column(np.int64, "clusters")  # the parts of a job, as it asks for them
    old: Any = column(np.int64, "clusters")  # the parts that one had
    todo: Any = column(np.int64, "jobs")  # some jobs
    again: Any = column(ENTRY, "jobs")  # jobs that are placed again at this instant, by `push_again`
    entering: Any = column(np.int64, "jobs")  # jobs that make their requests at this instant
    counts: Any = column(COUNTS, "one")


def allocate(calendars: CalendarArrays, jobs: Any, managers: Any, segments: int, **given: Any) -> ManagerTree:
    """Everything before the first submission.

    Parameters
    ----------
    calendars : CalendarArrays
        One row a cluster, then the shadow calendars.
    jobs : REQUEST[n]
        By submit time.
    managers : NODE[m]
        In preorder.
    segments : int
        Executions that there is room for.
    **given
        The order of managers, refusals and conventions, see `ManagerTree`.
    """
    number = len(jobs)
    leaves = np.flatnonzero(managers["size"] == 1)
    parts = np.repeat(np.flatnonzero(jobs["span"] >= 0), len(leaves))
    sizes = {"managers": len(managers), "clusters": len(leaves), "jobs": number, "segments": segments}
    tree: ManagerTree = bundles.allocate(
        ManagerTree,
        {**sizes, "one": 1},
        calendars=calendars,
        jobs=jobs,
        managers=managers,
        queues=rings.allocate(len(managers), np.arange(number)),
        holds=rings.allocate(len(leaves), np.concatenate([np.arange(number), parts]), HOLD),
        **given,
    )
    tree.clusters["manager"] = leaves
    tree.counts["planned"] = FOREVER
    tree.plans[["promise", "first", "ended", "earliest"]] = NOWHERE
    tree.plans["status"][jobs["nodes"] > managers["nodes"][0]] = Status.REJECTED
    tree.plans["left"], tree.plans["speed"] = jobs["run"], jobs["speed"]
    return tree


# --- small things ---------------------------------------------------------------------------------


@inline
def is_leaf(t: ManagerTree, m: int) -> bool:
    """Whether a manager has a cluster of its own."""
    return t.managers[m]["size"] == 1


@inline
def estimate_on(t: ManagerTree, j: int, x: int) -> int:
    """Estimate of a job on the slowest cluster of a manager."""
    request, speed = t.jobs[j], t.managers[x]["speed"]
    seconds = as_int64(request["estimate"])
    return seconds if request["speed"] == speed else math.ceil(seconds * request["speed"] / speed)


@inline
def duration(t: ManagerTree, j: int, x: int) -> int:
    """Estimate of a job on the slowest cluster of a holder, with checkpoints."""
    holder = t.managers[x]
    return with_checkpoints(estimate_on(t, j, x), holder["interval"], holder["cost"])


@inline
def length(t: ManagerTree, j: int) -> int:
    """Seconds that a job takes from its last start to its end, if nothing comes between."""
    holder = t.managers[t.plans[j]["place"]]
    return with_checkpoints(t.plans[j]["left"], holder["interval"], holder["cost"])


@inline
def row_offset(t: ManagerTree, m: int) -> int:
    """What leads from a cluster to the row that a manager knows it by; 0 if that is the calendar itself."""
    shadow = t.managers[m]["shadow"]
    return shadow - t.managers[m]["first"] if shadow >= 0 else 0


@noinline
def rank(seed: int, job: int, which: int) -> int:
    """A random number of a job and a manager or cluster, for choices that are to be unbiased.

    The products stay below 2 ** 62.
    """
    modulus = 2147483647
    value = seed % modulus + 1
    for item in (job, which):
        value = (value * 48271 + item % modulus + 1) % modulus
        value = (value ^ (value >> 13)) * 69621 % modulus
        value = (value ^ (value >> 16)) * 16807 % modulus
    return value


@inline
def tie(t: ManagerTree, m: int, j: int, which: int) -> int:
    """What decides between equals: the lower number, or a random one."""
    return rank(t.seed, j, which) if t.managers[m]["unbiased"] else 0


# --- what jobs hold -------------------------------------------------------------------------------


@inline
def whole(t: ManagerTree, k: int, nodes: int) -> int:
    """What a cluster loses to so many nodes: jobs take a unit of them at a time."""
    unit = t.calendars.rows[k]["unit"]
    return -(-nodes // unit) * unit


@inline
def hold_of(t: ManagerTree, j: int, k: int) -> int:
    """The link of a placed job in the list of a cluster: its only one, or that of its part there."""
    clusters = len(t.clusters)
    if is_leaf(t, t.plans[j]["place"]):
        return clusters + j
    return clusters + len(t.jobs) + t.jobs[j]["span"] * clusters + k


@inline
def nodes_on(t: ManagerTree, j: int, k: int) -> int:
    """Nodes that a placed job takes on a cluster of its holder."""
    return t.holds[hold_of(t, j, k)]["nodes"]


@inline
def parts_of(t: ManagerTree, j: int) -> Iterator[int]:
    """The clusters on which a placed job takes nodes."""
    holder = t.managers[t.plans[j]["place"]]
    for k in range(holder["first"], holder["end"]):
        if nodes_on(t, j, k) > 0:
            yield k


@noinline
def tell_released(t: ManagerTree, k: int, now: bool) -> None:
    """Tell all managers of a cluster that something was released there; `now` if not by a split alone."""
    m = t.clusters[k]["manager"]
    while m >= 0:
        t.managers[m]["freed"] |= now
        t.managers[m]["loose"] = True
        m = t.managers[m]["parent"]


@noinline
def book(t: ManagerTree, j: int, sign: int) -> None:
    """Let a job hold the slots that its plan says (-1), or no longer (1); what it held is noted in `old`.

    Its owner knows at once, also in its shadow calendars.
    """
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    offset = row_offset(t, plan["owner"])
    for k in range(holder["first"], holder["end"]):
        hold = hold_of(t, j, k)
        nodes = t.holds[hold]["nodes"]
        if sign > 0:
            t.old[k] = nodes
        if nodes > 0:
            calendar.change(t.calendars, k, plan["start"], plan["end"], sign * nodes)
            if offset != 0:
                calendar.change(t.calendars, offset + k, plan["start"], plan["end"], sign * nodes)
            if sign > 0:
                rings.remove(t.holds, hold)
            else:
                rings.insert(t.holds, hold, t.holds[k]["after"])
    t.counts[0]["planned"] = min(t.counts[0]["planned"], plan["start"])


@noinline
def tell_old_released(t: ManagerTree, x: int) -> None:
    """Tell managers what the job that was taken out of its slots last had held at a holder."""
    for k in range(t.managers[x]["first"], t.managers[x]["end"]):
        if t.old[k] > 0:
            tell_released(t, k, True)


@noinline
def release(t: ManagerTree, j: int) -> None:
    """Let a waiting job hold its slots no longer."""
    book(t, j, 1)
    tell_old_released(t, t.plans[j]["place"])


@inline
def take_turn(t: ManagerTree, j: int) -> None:
    """Let a job come after all that have made their requests."""
    t.plans[j]["turn"] = t.counts[0]["turn"]
    t.counts[0]["turn"] += 1


@inline
def push_again(t: ManagerTree, size: int, j: int) -> int:
    """Put a job among those that are placed again, by groups and in order of requests; how many they are."""
    return heap.push(t.again, size, t.plans[j]["group"] * 2**40 + t.plans[j]["turn"], j)


@noinline
def let_wait(t: ManagerTree, j: int) -> None:
    """Put a job among the waiting ones of its owner, in order of requests."""
    plan = t.plans[j]
    plan["status"] = Status.WAITING
    after = plan["owner"]
    before = t.queues[after]["before"]
    while before >= len(t.managers) and t.plans[t.queues[before]["item"]]["turn"] > plan["turn"]:
        after = before
        before = t.queues[after]["before"]
    rings.insert(t.queues, len(t.managers) + j, after)


@inline
def end_wait(t: ManagerTree, j: int) -> None:
    """Take a job out of the waiting ones of its owner."""
    rings.remove(t.queues, len(t.managers) + j)
