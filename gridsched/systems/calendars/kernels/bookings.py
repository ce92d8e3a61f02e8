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
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import inline, noinline
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


_WAITING = int(Status.WAITING)

NOWHERE = -1
"""No manager, no job, no limit, no time."""

REQUEST = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),  # seconds at speed 1
        ("estimate", np.int64),  # likewise, at least 1
        ("nodes", np.int64),
        ("home", np.int64),  # manager where it is submitted, a leaf
        ("reserved", np.int64),  # when it asks to start; NOWHERE for an ordinary job
        ("span", np.int64),  # row of `parts` if it may span clusters, else NOWHERE
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
        ("done", np.int64),  # seconds executed before the last start
        ("left", np.int64),  # seconds to execute ...
        ("speed", np.float64),  # ... at this speed
        ("owner", np.int64),  # manager that placed it
        ("place", np.int64),  # holder
        ("fixed", np.int64),  # whether its start is reserved
        ("earliest", np.int64),  # start that a refused reservation could have had; NOWHERE
        ("route", np.int64),  # value of `Route`
        ("before", np.int64),  # neighbours among the owner's waiting jobs; NOWHERE
        ("after", np.int64),
        ("turn", np.int64),  # order among those who wait: that of their requests
        ("lost", np.int64),  # seconds executed that were lost, or spent on checkpoints
    ]
)
"""Outcome of a job. Without a place, start and end are FOREVER and the place is NOWHERE."""


class Route(IntEnum):
    """Why a job left its home."""

    STAYED = 0
    PROMOTED = 1
    FORWARDED = 2
    BUMPED = 3
    RESERVED = 4


NODE = np.dtype(
    [
        ("parent", np.int64),  # NOWHERE at the root
        ("size", np.int64),  # managers from this one down
        ("nodes", np.int64),  # without those that are out for a time that nobody knows; likewise below
        ("widest", np.int64),  # nodes of the largest sub-manager; 0 at a leaf
        ("first", np.int64),  # first cluster
        ("end", np.int64),  # behind the last cluster
        ("speed", np.float64),  # of the slowest cluster
        ("promote_nodes", np.int64),  # jobs with more go up; NOWHERE
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
        ("head", np.int64),  # first and last waiting job of its own, in order of requests; NOWHERE
        ("tail", np.int64),
        ("freed", np.int64),  # whether something was released below at this instant
        ("loose", np.int64),  # whether something was released below since its jobs moved last
    ]
)
"""A manager."""

CLUSTER = np.dtype(
    [
        ("manager", np.int64),
        ("head", np.int64),  # first link of the jobs that hold slots; NOWHERE
        ("supplied", np.int64),  # node-seconds of jobs from elsewhere
        ("consumed", np.int64),  # node-seconds of jobs from here elsewhere
    ]
)
"""A cluster."""

LINK = np.dtype(
    [
        ("before", np.int64),
        ("after", np.int64),
        ("aside", np.int64),  # nodes of an overrunner that are out for others in the slot that begins now
    ]
)
"""Neighbours of a job on a cluster in the list of those that hold slots there."""

SEGMENT = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("nodes", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("tasks", np.int64),  # nodes that the job asked for among those taken
    ]
)
"""An execution."""

COUNTS = np.dtype(
    [
        ("arrival", np.int64),  # next job to be submitted
        ("present", np.int64),  # jobs that wait or run
        ("ending", np.int64),  # entries of the heap of ends
        ("planned", np.int64),  # no planned start is earlier
        ("segments", np.int64),
        ("short", np.int64),  # whether there was no room for a segment
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
    ]
)
"""Scalars of a simulation."""


class ManagerTree(NamedTuple):
    """Managers, clusters, and jobs."""

    calendars: CalendarArrays
    jobs: Any  # REQUEST[n], by submit time
    plans: Any  # PLAN[n]
    managers: Any  # NODE[managers], in preorder
    order: Any  # int64[managers]: those above before those below
    clusters: Any  # CLUSTER[clusters]
    links: Any  # LINK[n + rows of parts x clusters]
    parts: Any  # int64[jobs that may span clusters, clusters]: nodes asked for on each
    spanning: Any  # int64[rows of parts]: their jobs
    events: Any  # ENTRY[n + 1]: ends of jobs, and of the slots of overrunners
    segments: Any  # SEGMENT[room]
    refusals: Any  # uint8[any]: reserve requests that are refused, by their number
    floor: Any  # int64[managers]: when a request may be possible at a holder
    told: Any  # uint8[managers]: whether the holder said so
    least: Any  # int64[clusters]: nodes that a spanning job could have on each
    take: Any  # int64[clusters]: its parts, as it asks for them
    old: Any  # int64[clusters]: the parts it had
    todo: Any  # int64[2n]: some jobs
    counts: Any  # COUNTS[1]


def allocate(
    calendars: CalendarArrays, jobs: Any, managers: Any, spanning: Any, refusals: Any, segments: int
) -> ManagerTree:
    """Everything before the first submission.

    Parameters
    ----------
    calendars : CalendarArrays
        One row a cluster, then the shadow calendars.
    jobs : REQUEST[n]
        By submit time.
    managers : NODE[m]
        In preorder.
    spanning : int64[k]
        Jobs whose `span` is 0, 1, 2, ...
    refusals : uint8[any]
        Reserve requests to be refused, by their number; those behind its end are not.
    segments : int
        Executions that there is room for.
    """
    n = len(jobs)
    leaves = np.flatnonzero(managers["size"] == 1)
    clusters = np.zeros(len(leaves), CLUSTER)
    clusters["manager"] = leaves
    clusters["head"] = NOWHERE
    plans = np.zeros(n, PLAN)
    for name in ("first", "earliest", "before", "after", "owner", "place", "start", "end", "promise"):
        plans[name] = NOWHERE
    plans["turn"] = np.arange(n)
    plans["left"] = jobs["run"]
    plans["speed"] = 1.0
    depth = np.zeros(len(managers), np.int64)
    for m in range(1, len(managers)):
        depth[m] = depth[managers["parent"][m]] + 1
    counts = np.zeros(1, COUNTS)
    counts["planned"] = FOREVER
    links = np.full(n + len(spanning) * len(clusters), NOWHERE, LINK)
    links["aside"] = 0
    managers = managers.copy()
    managers["head"] = NOWHERE
    managers["tail"] = NOWHERE
    managers["refresh"] = np.where(managers["shadow"] < 0, FOREVER, calendars.tally["origin"][0])
    return ManagerTree(
        calendars=calendars,
        jobs=jobs,
        plans=plans,
        managers=managers,
        order=np.argsort(depth, kind="stable"),
        clusters=clusters,
        links=links,
        parts=np.zeros((len(spanning), len(clusters)), np.int64),
        spanning=spanning,
        events=np.empty(n + 1, ENTRY),
        segments=np.empty(segments, SEGMENT),
        refusals=refusals,
        floor=np.empty(len(managers), np.int64),
        told=np.empty(len(managers), np.uint8),
        least=np.empty(len(clusters), np.int64),
        take=np.empty(len(clusters), np.int64),
        old=np.empty(len(clusters), np.int64),
        todo=np.empty(2 * n, np.int64),
        counts=counts,
    )


# --- small things ---------------------------------------------------------------------------------


@inline
def is_leaf(t: ManagerTree, m: int) -> bool:
    """Whether a manager has a cluster of its own."""
    return t.managers[m]["size"] == 1


@inline
def _scaled(seconds: int, speed: float) -> int:
    """Whole seconds that work of so many seconds takes at a speed."""
    return seconds if speed == 1.0 else math.ceil(seconds / speed)


@inline
def _with_checkpoints(t: ManagerTree, work: int, holder: int) -> int:
    """Seconds that so much work takes at a holder; there is no checkpoint at its end."""
    interval = t.managers[holder]["interval"]
    if interval <= 0 or work <= 0:
        return work
    return work + t.managers[holder]["cost"] * ((work - 1) // interval)


@inline
def duration(t: ManagerTree, j: int, holder: int) -> int:
    """Estimate of a job on the slowest cluster of a holder."""
    seconds = _scaled(t.jobs[j]["estimate"], t.managers[holder]["speed"])
    return _with_checkpoints(t, seconds, holder)


@inline
def length(t: ManagerTree, j: int) -> int:
    """Seconds that a job takes from its last start to its end, if nothing comes between."""
    return _with_checkpoints(t, t.plans[j]["left"], t.plans[j]["place"])


@inline
def work_within(t: ManagerTree, j: int, elapsed: int) -> int:
    """Seconds of work that a job did in so many seconds since its last start; the others were checkpoints."""
    holder = t.managers[t.plans[j]["place"]]
    interval = holder["interval"]
    if interval <= 0:
        return elapsed
    cycle = interval + holder["cost"]
    return interval * (elapsed // cycle) + min(elapsed % cycle, interval)


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
def tie(t: ManagerTree, m: int, j: int, which: int, seed: int) -> int:
    """What decides between equals: the lower number, or a random one."""
    return rank(seed, j, which) if t.managers[m]["unbiased"] else 0


@noinline
def slot_end(t: ManagerTree, time: int) -> int:
    """End of the slot that holds `time`."""
    level, number = calendar.slot_at(t.calendars, time)
    return calendar.begins(t.calendars, level, number + 1)


# --- what jobs hold -------------------------------------------------------------------------------


@inline
def whole(t: ManagerTree, k: int, nodes: int) -> int:
    """What a cluster loses to so many nodes: jobs take a unit of them at a time."""
    unit = t.calendars.rows[k]["unit"]
    return -(-nodes // unit) * unit


@inline
def tasks_on(t: ManagerTree, j: int, k: int) -> int:
    """Nodes that a placed job asks for on a cluster of its holder."""
    if is_leaf(t, t.plans[j]["place"]):
        return t.jobs[j]["nodes"]
    return t.parts[t.jobs[j]["span"], k]


@inline
def nodes_on(t: ManagerTree, j: int, k: int) -> int:
    """Nodes that a placed job takes on a cluster of its holder."""
    return whole(t, k, tasks_on(t, j, k))


@inline
def link_of(t: ManagerTree, j: int, k: int) -> int:
    """The link of a placed job on a cluster."""
    if is_leaf(t, t.plans[j]["place"]):
        return j
    return len(t.jobs) + t.jobs[j]["span"] * len(t.clusters) + k


@inline
def job_of_link(t: ManagerTree, link: int) -> int:
    """The job that a link belongs to."""
    n = len(t.jobs)
    return link if link < n else t.spanning[(link - n) // len(t.clusters)]


@noinline
def add_to_cluster(t: ManagerTree, j: int, k: int) -> None:
    """Put a job on the list of those that hold slots of a cluster."""
    link = link_of(t, j, k)
    head = t.clusters[k]["head"]
    t.links[link]["before"] = NOWHERE
    t.links[link]["after"] = head
    if head >= 0:
        t.links[head]["before"] = link
    t.clusters[k]["head"] = link


@noinline
def take_from_cluster(t: ManagerTree, j: int, k: int) -> None:
    """Take a job off that list."""
    link = link_of(t, j, k)
    before = t.links[link]["before"]
    after = t.links[link]["after"]
    if before >= 0:
        t.links[before]["after"] = after
    else:
        t.clusters[k]["head"] = after
    if after >= 0:
        t.links[after]["before"] = before


@noinline
def tell_freed(t: ManagerTree, k: int) -> None:
    """Tell all managers of a cluster that something was released there."""
    m = t.clusters[k]["manager"]
    while m >= 0:
        t.managers[m]["freed"] = True
        t.managers[m]["loose"] = True
        m = t.managers[m]["parent"]


@noinline
def tell_loose(t: ManagerTree, k: int) -> None:
    """Tell all managers of a cluster that a split released something there."""
    m = t.clusters[k]["manager"]
    while m >= 0:
        t.managers[m]["loose"] = True
        m = t.managers[m]["parent"]


@noinline
def _book_shadow(t: ManagerTree, j: int, sign: int) -> None:
    """Let the owner of a job know in its shadow calendars what it reserves (-1) or gives back (1)."""
    plan = t.plans[j]
    offset = row_offset(t, plan["owner"])
    if offset != 0:
        holder = t.managers[plan["place"]]
        for k in range(holder["first"], holder["end"]):
            if nodes_on(t, j, k) > 0:
                calendar.change(t.calendars, offset + k, plan["start"], plan["end"], sign * nodes_on(t, j, k))


@noinline
def install(t: ManagerTree, j: int) -> None:
    """Let a job hold the slots that its plan says, and remember what it holds."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    for k in range(holder["first"], holder["end"]):
        nodes = nodes_on(t, j, k)
        if nodes > 0:
            calendar.change(t.calendars, k, plan["start"], plan["end"], -nodes)
            add_to_cluster(t, j, k)
    _book_shadow(t, j, -1)
    t.counts[0]["planned"] = min(t.counts[0]["planned"], plan["start"])


@noinline
def withdraw(t: ManagerTree, j: int) -> None:
    """Take a waiting job out of its slots; where it was is noted in `old`."""
    plan = t.plans[j]
    _book_shadow(t, j, 1)
    holder = t.managers[plan["place"]]
    for k in range(holder["first"], holder["end"]):
        nodes = nodes_on(t, j, k)
        t.old[k] = nodes
        if nodes > 0:
            calendar.change(t.calendars, k, plan["start"], plan["end"], nodes)
            take_from_cluster(t, j, k)


@noinline
def tell_freed_by_old(t: ManagerTree, place: int) -> None:
    """Tell managers where the job that was withdrawn last had been."""
    for k in range(t.managers[place]["first"], t.managers[place]["end"]):
        if t.old[k] > 0:
            tell_freed(t, k)


@noinline
def let_wait(t: ManagerTree, j: int, owner: int) -> None:
    """Put a job among the waiting ones of its owner, in order of requests."""
    plan = t.plans[j]
    plan["status"] = _WAITING
    plan["owner"] = owner
    before = t.managers[owner]["tail"]
    after = NOWHERE
    while before >= 0 and t.plans[before]["turn"] > plan["turn"]:
        after = before
        before = t.plans[before]["before"]
    plan["before"] = before
    plan["after"] = after
    if before >= 0:
        t.plans[before]["after"] = j
    else:
        t.managers[owner]["head"] = j
    if after >= 0:
        t.plans[after]["before"] = j
    else:
        t.managers[owner]["tail"] = j


@noinline
def end_wait(t: ManagerTree, j: int) -> None:
    """Take a job out of the waiting ones of its owner."""
    plan = t.plans[j]
    owner = t.managers[plan["owner"]]
    if plan["before"] >= 0:
        t.plans[plan["before"]]["after"] = plan["after"]
    else:
        owner["head"] = plan["after"]
    if plan["after"] >= 0:
        t.plans[plan["after"]]["before"] = plan["before"]
    else:
        owner["tail"] = plan["before"]
