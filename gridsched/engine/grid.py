"""Many clusters under a superscheduler: one clock, a local scheduler on each cluster, jobs that may move.

A cluster is a row of two-dimensional arrays; `_row` makes it look like a `reserving.Cluster`, so that
the local schedulers are those of a single cluster. Jobs of a row are numbered by their entry into its
local queue, which is its order of submission. The last row is scratch: a cluster is copied there to see
when a job would start on it.

The semantics are those of Shan, Oliker and Biswas, "Job superscheduler architecture and performance in
computational grid environments" (SC 2003), section 2; `gridsched.schedulers.superscheduler` says what was
decided where the paper is silent.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import conservative, heap, machine, reserving, running
from gridsched.engine.jit import jit, leaf, part
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import (
    BLOCK,
    ENTRY,
    FOREVER,
    JOB,
    LABELS,
    RUN,
    SCORED,
    STEP,
    Backfilling,
)

_EASY = int(Backfilling.EASY)
_CONSERVATIVE = int(Backfilling.CONSERVATIVE)


class Scheme(IntEnum):
    """Who decides where a job runs."""

    LOCAL = 0
    CENTRAL = 1
    SENDER_INITIATED = 2
    RECEIVER_INITIATED = 3
    SYMMETRICALLY_INITIATED = 4


class Order(IntEnum):
    """Orders of waiting jobs that a cluster of a grid knows; SCORE is the grid's score of the moment."""

    FCFS = 0
    SHORTEST = 1
    SMALLEST = 2
    SMALLEST_AREA = 3
    SCORE = 4


_LOCAL = int(Scheme.LOCAL)
_CENTRAL = int(Scheme.CENTRAL)
_SENDER = int(Scheme.SENDER_INITIATED)
_SYMMETRIC = int(Scheme.SYMMETRICALLY_INITIATED)
_SHORTEST = int(Order.SHORTEST)
_SMALLEST = int(Order.SMALLEST)
_AREA = int(Order.SMALLEST_AREA)
_SCORE = int(Order.SCORE)

SITE = np.dtype(
    [
        ("processors", np.int64),
        ("processors_per_node", np.int64),
        ("node_exclusive", np.int64),
        ("speed", np.float64),
        ("order", np.int64),  # value of `Order`
        ("backfilling", np.int64),  # value of `Backfilling`
        ("reservations", np.int64),
        ("backfill_order", np.int64),  # value of `Order`, without SCORE
        ("queue_as_order", np.int64),  # the backfill order is the queue order
    ]
)
"""A cluster and its local policy."""

CLOCK = np.dtype(
    [
        ("arrival", np.int64),  # next job to be submitted
        ("queued", np.int64),  # jobs in the grid queues
        ("check", np.int64),  # time of the next check of all clusters
        ("queries", np.int64),  # predicted starts that were asked for
    ]
)
"""Scalars of the grid."""

_NOBODY, _VOLUNTEER, _ACCEPTED = 0, 1, 2


class Options(NamedTuple):
    """What does not change during a simulation."""

    scheme: int
    phi: int  # a job that would wait less than this, seconds, stays
    sigma: int  # seconds between checks
    delta: float  # a cluster that is less busy than this share volunteers
    epsilon: float  # seconds by which turnaround times may differ and count as equal
    overrun: int


class Grid(NamedTuple):
    """Arrays of a simulated grid of m clusters and n jobs; rows have room for some number of entries."""

    requests: Any  # JOB[n], in order of submission, as on the home cluster
    request_labels: Any  # LABELS[n]
    home: Any  # int64[n], cluster where a job is submitted
    sites: Any  # SITE[m]
    partners: Any  # bool[m, m], whose jobs may go where
    cluster: Any  # int64[n], where a job was sent; -1 not yet, -2 fits nowhere
    entry: Any  # int64[n], its number there
    waiting_grid: Any  # int64[n], jobs in the grid queues, in order of submission
    volunteer: Any  # int64[m]
    touched: Any  # bool[m], clusters that need a scheduling pass
    clock: Any  # CLOCK[1]
    jobs: Any  # JOB[m + 1, room]
    labels: Any  # LABELS[m + 1, room]
    queue_key: Any  # float64[m + 1, room]
    order_key: Any  # float64[m + 1, room]
    waiting: Any  # int64[m + 1, room]
    candidates: Any  # SCORED[m + 1, room + 1]
    events: Any  # ENTRY[m + 1, ...]
    blocks: Any  # BLOCK[m + 1, ...]
    runs: Any  # RUN[m + 1, ...]
    steps: Any  # STEP[m + 1, 4 * room + 16]
    starts: Any  # int64[m + 1, room]
    plan: Any  # int64[m + 1, room]
    state: Any  # machine.STATE[m + 1, 1]


def allocate(
    requests: Any, request_labels: Any, home: Any, sites: Any, partners: Any, sigma: int, room: int
) -> Grid:
    """Arrays of an idle grid."""
    rows = len(sites) + 1
    most = int(min(len(requests), sites["processors"].max()))
    blocks, runs = running.allocate(most)
    steps = np.empty((rows, 4 * room + 16), STEP)
    state = np.zeros((rows, 1), machine.STATE)
    state["free"][:-1, 0] = sites["processors"]
    state["planned"] = FOREVER
    state["high"] = 1
    steps["time"][:, 0] = 0
    steps["free"][:-1, 0] = sites["processors"]
    clock = np.zeros(1, CLOCK)
    clock["check"] = sigma
    return Grid(
        requests=requests,
        request_labels=request_labels,
        home=home,
        sites=sites,
        partners=partners,
        cluster=np.full(len(requests), -1, np.int64),
        entry=np.full(len(requests), -1, np.int64),
        waiting_grid=np.empty(len(requests), np.int64),
        volunteer=np.full(len(sites), _NOBODY, np.int64),
        touched=np.zeros(len(sites), np.bool_),
        clock=clock,
        jobs=np.empty((rows, room), JOB),
        labels=np.empty((rows, room), LABELS),
        queue_key=np.empty((rows, room)),
        order_key=np.empty((rows, room)),
        waiting=np.empty((rows, room), np.int64),
        candidates=np.empty((rows, room + 1), SCORED),
        events=np.empty((rows, most + 1), ENTRY),
        blocks=np.broadcast_to(blocks, (rows, len(blocks))).astype(BLOCK),
        runs=np.empty((rows, len(runs)), RUN),
        steps=steps,
        starts=np.empty((rows, room), np.int64),
        plan=np.empty((rows, room), np.int64),
        state=state,
    )


def with_room(g: Grid, room: int) -> Grid:
    """The same grid with room for more entries in each row."""
    wider = {}
    for name, width in (
        ("jobs", room),
        ("labels", room),
        ("queue_key", room),
        ("order_key", room),
        ("waiting", room),
        ("candidates", room + 1),
        ("steps", 4 * room + 16),
        ("starts", room),
        ("plan", room),
    ):
        old = getattr(g, name)
        new = np.empty((len(old), width), old.dtype)
        new[:, : old.shape[1]] = old
        wider[name] = new
    return g._replace(**wider)


@leaf
def _row(g: Grid, row: int) -> reserving.Cluster:
    """A row as the cluster that the local schedulers know."""
    return reserving.Cluster(
        g.jobs[row],
        g.labels[row],
        g.queue_key[row],
        g.order_key[row],
        g.waiting[row],
        g.candidates[row],
        g.events[row],
        g.blocks[row],
        g.runs[row],
        g.steps[row],
        g.starts[row],
        g.plan[row],
        g.state[row],
    )


@leaf
def _policy(g: Grid, m: int, overrun: int) -> reserving.Options:
    """Options of the local scheduler of a cluster."""
    site = g.sites[m]
    return reserving.Options(
        site["backfilling"],
        site["reservations"],
        overrun,
        False,
        site["order"] == _SCORE,
        site["queue_as_order"] != 0,
    )


@leaf
def _tracks(g: Grid, m: int) -> bool:
    """Whether the local scheduler looks at expected ends."""
    return g.sites[m]["backfilling"] >= _EASY


# --- a job on a cluster ---------------------------------------------------------------------------


@leaf
def _allocation(g: Grid, j: int, m: int) -> int:
    """Processors that a cluster would lose to a job."""
    site = g.sites[m]
    processors = int(g.requests[j]["processors"])
    if site["node_exclusive"] == 0:
        return processors
    return -(-processors // site["processors_per_node"]) * site["processors_per_node"]


@leaf
def _fits(g: Grid, j: int, m: int) -> bool:
    """Whether a cluster is large enough for a job."""
    return _allocation(g, j, m) <= g.sites[m]["processors"]


@leaf
def _seconds(g: Grid, seconds: int, j: int, m: int) -> int:
    """Whole seconds that a time on the job's home cluster takes on another one."""
    h = g.home[j]
    if m == h:
        return seconds
    return math.ceil(seconds * g.sites[h]["speed"] / g.sites[m]["speed"])


@leaf
def _estimate(g: Grid, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster."""
    return max(1, _seconds(g, int(g.requests[j]["estimate"]), j, m))


@leaf
def _key(order: int, entry: int, estimate: int, processors: int) -> float:
    """Sort key of a job in an order that does not change; ties go by entry."""
    if order == _SHORTEST:
        return float(estimate)
    if order == _SMALLEST:
        return float(processors)
    if order == _AREA:
        return float(estimate) * float(processors)
    return float(entry)


@part
def _append(g: Grid, row: int, j: int, m: int) -> int:
    """Put a job at the end of the local queue in a row, as it is on cluster m; return its entry."""
    c = _row(g, row)
    e = c.state[0]["arrival"]
    processors = _allocation(g, j, m)
    estimate = _estimate(g, j, m)
    c.jobs[e]["submit"] = g.requests[j]["submit"]
    c.jobs[e]["run"] = _seconds(g, g.requests[j]["run"], j, m)
    c.jobs[e]["estimate"] = estimate
    c.jobs[e]["processors"] = processors
    c.labels[e]["user"] = g.request_labels[j]["user"]
    c.labels[e]["group"] = g.request_labels[j]["group"]
    c.labels[e]["queue"] = g.request_labels[j]["queue"]
    c.queue_key[e] = _key(g.sites[m]["order"], e, estimate, processors)
    c.order_key[e] = _key(g.sites[m]["backfill_order"], e, estimate, processors)
    c.starts[e] = -1
    c.plan[e] = FOREVER
    reserving.submit(c)
    return e


@leaf
def _enter(g: Grid, j: int, m: int) -> None:
    """Send a job to the local queue of a cluster."""
    g.entry[j] = _append(g, m, j, m)
    g.cluster[j] = m
    g.touched[m] = True


# --- what happens on a cluster --------------------------------------------------------------------


@leaf
def _complete(g: Grid, row: int, m: int, now: int, overrun: int) -> None:
    """Take the first running job of a row that ends now off its processors."""
    c = _row(g, row)
    if g.sites[m]["backfilling"] == _CONSERVATIVE:
        conservative.complete(c, now, overrun)
    else:
        machine.complete(c, now, overrun, _tracks(g, m))


@part
def _pass(g: Grid, row: int, m: int, now: int, overrun: int, score: Any) -> None:
    """Scheduling pass in a row under the policy of cluster m."""
    c = _row(g, row)
    if g.sites[m]["backfilling"] == _CONSERVATIVE:
        conservative.scheduling_pass(c, now, _policy(g, m, overrun), score)
    else:
        reserving.scheduling_pass(c, now, _policy(g, m, overrun), score)


@part
def _finish_events(g: Grid, m: int, now: int, overrun: int) -> None:
    """Completions and corrections of a cluster that are due."""
    c = _row(g, m)
    while machine.ends(c, now):
        _complete(g, m, m, now, overrun)
        g.touched[m] = True
    while machine.first_expected_end(c) == now:
        if g.sites[m]["backfilling"] == _CONSERVATIVE:
            conservative.correct(c, now, overrun)
        else:
            machine.correct(c, now, overrun)
        g.touched[m] = True
    if c.state[0]["planned"] <= now:
        g.touched[m] = True


# --- predicted starts -----------------------------------------------------------------------------


@part
def _copy_cluster(g: Grid, m: int, overrun: int, now: int) -> None:
    """Copy a cluster to the scratch row, with every job as long as it is expected to be."""
    c = _row(g, m)
    s = _row(g, len(g.sites))
    state = c.state[0]
    s.state[0] = state
    for k in range(state["waiting"]):
        e = c.waiting[k]
        s.waiting[k] = e
        s.jobs[e] = c.jobs[e]
        s.jobs[e]["run"] = c.jobs[e]["estimate"]
        s.labels[e] = c.labels[e]
        s.queue_key[e] = c.queue_key[e]
        s.order_key[e] = c.order_key[e]
        s.starts[e] = -1
        s.plan[e] = c.plan[e]
    for block in range(state["blocks"]):
        s.blocks[block] = c.blocks[block]
        base = c.blocks[block]["slot"] * running.SIZE
        for k in range(base, base + c.blocks[block]["count"]):
            s.runs[k] = c.runs[k]
    # free slots of blocks differ from those of the last copy
    for block in range(state["blocks"], len(c.blocks)):
        s.blocks[block]["slot"] = c.blocks[block]["slot"]
    for k in range(state["low"], state["high"]):
        s.steps[k] = c.steps[k]
    ending = 0
    for k in range(state["ending"]):
        e = c.events[k]["job"]
        s.jobs[e] = c.jobs[e]
        s.starts[e] = c.starts[e]
        end = expected_end(c.starts[e], int(c.jobs[e]["estimate"]), overrun, now + 1)
        ending = heap.push(s.events, ending, end, e)
    s.state[0]["ending"] = ending


@part
def predicted_start(g: Grid, j: int, m: int, now: int, overrun: int, score: Any) -> int:
    """When a job would start if it entered the local queue of a cluster now; FOREVER if it does not fit.

    Found by simulating the cluster on, without further submissions, every job being as long as it is
    expected to be.
    """
    g.clock[0]["queries"] += 1
    if not _fits(g, j, m):
        return FOREVER
    state = g.state[m, 0]
    if state["waiting"] == 0 and _allocation(g, j, m) <= state["free"]:
        return now
    scratch = len(g.sites)
    _copy_cluster(g, m, overrun, now)
    e = _append(g, scratch, j, m)
    s = _row(g, scratch)
    s.jobs[e]["run"] = s.jobs[e]["estimate"]
    while True:
        _pass(g, scratch, m, now, overrun, score)
        if s.starts[e] >= 0:
            break
        now = s.state[0]["planned"]
        if s.state[0]["ending"] > 0:
            now = min(now, s.events[0]["key"])
        while machine.ends(s, now):
            _complete(g, scratch, m, now, overrun)
    return s.starts[e]


@leaf
def _busy_share(g: Grid, m: int) -> float:
    """Resource utilisation status: share of processors that running jobs hold now."""
    return (g.sites[m]["processors"] - g.state[m, 0]["free"]) / g.sites[m]["processors"]


# --- where a job goes -----------------------------------------------------------------------------

_HOME, _ALL, _HOME_AND_PARTNERS, _VOLUNTEERS = 0, 1, 2, 3


@leaf
def _has_volunteers(g: Grid, h: int) -> bool:
    """Whether any partner of a cluster has volunteered since the last check, even one that took a job."""
    found = False
    for m in range(len(g.sites)):
        found |= g.partners[h, m] and g.volunteer[m] != _NOBODY
    return found


@leaf
def _asked(g: Grid, h: int, scheme: int) -> int:
    """Whom a job asks that would wait long at its home."""
    if scheme == _LOCAL:
        return _HOME
    if scheme == _CENTRAL:
        return _ALL
    if scheme == _SENDER or (scheme == _SYMMETRIC and not _has_volunteers(g, h)):
        return _HOME_AND_PARTNERS
    return _VOLUNTEERS


@leaf
def _is_asked(g: Grid, h: int, m: int, among: int) -> bool:
    """Whether a cluster belongs to those that are asked."""
    if among == _ALL:
        return True
    if among == _HOME_AND_PARTNERS:
        return m == h or g.partners[h, m]
    return among == _VOLUNTEERS and g.partners[h, m] and g.volunteer[m] == _VOLUNTEER


@leaf
def _ask(g: Grid, j: int, among: int, now: int, options: Options, score: Any, costs: Any) -> bool:
    """Turnaround time of a job on its home and on all clusters that are asked; FOREVER on the others.

    Returns True, without asking the others, if the job would wait so little at home that it stays.
    """
    h = g.home[j]
    for m in range(len(g.sites)):
        costs[m] = FOREVER
    for step in range(len(g.sites) + 1):
        m = h if step == 0 else step - 1
        if step == 0 or (m != h and _is_asked(g, h, m, among)):
            start = predicted_start(g, j, m, now, options.overrun, score)
            if start < FOREVER:
                costs[m] = start - now + _estimate(g, j, m)
            if step == 0 and among != _ALL and start < FOREVER and start - now < options.phi:
                return True
    return False


@leaf
def _cheapest(g: Grid, h: int, among: int, epsilon: float, costs: Any) -> int:
    """Cluster with the smallest turnaround time, among nearly equal ones the least busy; -1 if none can."""
    best = FOREVER
    for m in range(len(g.sites)):
        if _is_asked(g, h, m, among):
            best = min(best, costs[m])
    chosen = -1
    least = 2.0
    for m in range(len(g.sites)):
        if _is_asked(g, h, m, among) and costs[m] < FOREVER and costs[m] <= best + epsilon:
            busy = _busy_share(g, m)
            if busy < least:
                least = busy
                chosen = m
    return chosen


@leaf
def _is_better(g: Grid, m: int, h: int, epsilon: float, costs: Any) -> bool:
    """Whether a volunteer runs a job at less cost than its home."""
    there = costs[m]
    here = costs[h]
    if there < here - epsilon:
        return True
    return here < FOREVER and abs(there - here) <= epsilon and _busy_share(g, m) < _busy_share(g, h)


@part
def _destination(g: Grid, j: int, now: int, options: Options, score: Any, costs: Any) -> int:
    """Cluster whose local queue a job enters now; -1 if it waits in the grid queue."""
    h = g.home[j]
    among = _asked(g, h, options.scheme)
    if among == _HOME or _ask(g, j, among, now, options, score, costs):
        return h
    m = _cheapest(g, h, among, options.epsilon, costs)
    if among != _VOLUNTEERS:
        return m
    if m < 0 or not _is_better(g, m, h, options.epsilon, costs):
        return -1
    g.volunteer[m] = _ACCEPTED
    return m


@leaf
def _within_reach(g: Grid, j: int, scheme: int) -> bool:
    """Whether any cluster that the scheme could choose can hold a job."""
    h = g.home[j]
    fits = False
    for m in range(len(g.sites)):
        reached = m == h or scheme == _CENTRAL or (scheme != _LOCAL and g.partners[h, m])
        fits |= reached and _fits(g, j, m)
    return fits


@leaf
def _renew_volunteers(g: Grid, delta: float) -> None:
    """Forget the volunteers of the last check; every cluster that is not busy volunteers."""
    for m in range(len(g.sites)):
        g.volunteer[m] = _VOLUNTEER if _busy_share(g, m) < delta else _NOBODY


@leaf
def _reconsider(g: Grid, todo: Any) -> int:
    """Empty the grid queues into the list of jobs to decide, home by home; return how many."""
    clock = g.clock[0]
    count = 0
    for h in range(len(g.sites)):
        for k in range(clock["queued"]):
            if g.home[g.waiting_grid[k]] == h:
                todo[count] = g.waiting_grid[k]
                count += 1
    clock["queued"] = 0
    return count


@leaf
def _receive(g: Grid, now: int, scheme: int, todo: Any, count: int) -> int:
    """Add the jobs that are submitted now and fit somewhere to the list of jobs to decide."""
    clock = g.clock[0]
    while clock["arrival"] < len(g.requests) and g.requests[clock["arrival"]]["submit"] == now:
        j = clock["arrival"]
        clock["arrival"] += 1
        if _within_reach(g, j, scheme):
            todo[count] = j
            count += 1
        else:
            g.cluster[j] = -2
    return count


@leaf
def _wait_in_grid(g: Grid, j: int) -> None:
    """Put a job into the grid queues, which are kept in order of submission."""
    clock = g.clock[0]
    place = clock["queued"]
    while place > 0 and g.waiting_grid[place - 1] > j:
        g.waiting_grid[place] = g.waiting_grid[place - 1]
        place -= 1
    g.waiting_grid[place] = j
    clock["queued"] += 1


# --- the clock ------------------------------------------------------------------------------------


@leaf
def _next_instant(g: Grid, checks: bool) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    clock = g.clock[0]
    now = FOREVER
    if clock["arrival"] < len(g.requests):
        now = g.requests[clock["arrival"]]["submit"]
    if checks and (clock["arrival"] < len(g.requests) or clock["queued"] > 0):
        now = min(now, clock["check"])
    for m in range(len(g.sites)):
        now = min(now, machine.next_local_event(_row(g, m)))
    return now


@leaf
def _has_room(g: Grid, now: int) -> bool:
    """Whether every row has room for all jobs that could enter it at this instant."""
    clock = g.clock[0]
    coming = clock["queued"]
    j = clock["arrival"]
    while j < len(g.requests) and g.requests[j]["submit"] == now:
        coming += 1
        j += 1
    longest = 0
    for m in range(len(g.sites)):
        longest = max(longest, g.state[m, 0]["arrival"])
    # one more, since a prediction appends a job to the copy
    return longest + coming + 1 <= g.starts.shape[1]


@jit
def schedule(g: Grid, options: Options, score: Any, todo: Any, costs: Any) -> bool:
    """Simulate the grid; return False if it stopped because a row needs more room, else True at the end.

    It can be called again after `with_room`, and goes on where it stopped. `todo` (int64[n]) and `costs`
    (int64[m]) are scratch.
    """
    clock = g.clock[0]
    checks = options.scheme > _SENDER
    while True:
        now = _next_instant(g, checks)
        if now == FOREVER:
            return True
        if not _has_room(g, now):
            return False
        for m in range(len(g.sites)):
            _finish_events(g, m, now, options.overrun)
        count = 0
        if checks and clock["check"] == now:
            clock["check"] += options.sigma
            _renew_volunteers(g, options.delta)
            count = _reconsider(g, todo)
        count = _receive(g, now, options.scheme, todo, count)
        for k in range(count):
            m = _destination(g, todo[k], now, options, score, costs)
            if m >= 0:
                _enter(g, todo[k], m)
            else:
                _wait_in_grid(g, todo[k])
        for m in range(len(g.sites)):
            if g.touched[m]:
                g.touched[m] = False
                _pass(g, m, m, now, options.overrun, score)
