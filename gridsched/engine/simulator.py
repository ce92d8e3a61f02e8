"""A simulation that stops wherever a scheduler may decide, and does what it says.

A job that may start waits in the queue until a scheduler starts it on a cluster, sends it to the local queue
of a cluster, or rejects it. A job that was started from the queue and is killed comes back to it; one that
was sent goes back to the local queue of its cluster. What happens besides (ends, failures of nodes,
dependencies, users who give up, local policies) is that of any grid, see `node_clusters`.

Kernels take `sends`: None as long as no job has been sent, so that local policies need not be compiled.

At one instant: ends, outrun estimates, events of nodes, jobs that become eligible, users who give up, the
decisions of the scheduler, then passes of the local policies. If these start jobs of no length, the instant
has another round.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import due_times, heap, job_lifecycle
from gridsched.engine import node_clusters as grid
from gridsched.engine.bundles import column
from gridsched.engine.clusters import GridArrays, GridOptions, allocation
from gridsched.engine.jit import inline, jit, noinline, shift
from gridsched.engine.job_lifecycle import COMPLETED, REFUSED, REQUEUE_AT_END, REQUEUE_NEVER
from gridsched.engine.node_clusters import NodeClusters
from gridsched.engine.nodes import queue as local_queue
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.events import kill
from gridsched.engine.nodes.placement import choose, fits_now
from gridsched.engine.nodes.records import FIRST_FIT
from gridsched.engine.nodes.resources import bits_of, parts_fit, units_beside_plans
from gridsched.engine.records import ENTRY, FOREVER
from gridsched.engine.reference import by_reference

QUEUED = np.dtype(
    [
        ("job", np.int64),  # its place in the workload
        ("submit_time", np.int64),
        ("estimate", np.int64),  # on the cluster of its submission
        ("processors", np.int64),  # that it takes there, on whole nodes all of them
        ("requested_processors", np.int64),
        ("user", np.int64),
        ("group", np.int64),
        ("queue", np.int64),
        ("home", np.int64),  # index of the cluster of submission
    ]
)
"""A job that waits for a decision."""

RUNNING = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("processors", np.int64),  # that it has
        ("start_time", np.int64),
        ("expected_end", np.int64),
    ]
)
"""A job that runs."""

ACTION = np.dtype([("kind", np.int64), ("job", np.int64), ("cluster", np.int64), ("time", np.int64)])
"""What a scheduler decides: a value of `Action`, of which job, on which cluster, for when."""

STATE = np.dtype(
    [
        ("now", np.int64),
        ("first", np.int64),  # where the queue begins in its array
        ("queued", np.int64),  # jobs in the queue
        ("running", np.int64),
        ("entered", np.int64),  # entries into the queue so far
        ("calls", np.int64),  # times at which the scheduler wants to be asked
        ("seen", np.int64),  # executions that `running` knows
        ("open", np.int64),  # whether local policies have their passes at this instant still
        ("decisions", np.int64),
        ("actions", np.int64),  # actions that were decided ...
        ("acted", np.int64),  # ... and taken so far
        ("refused", np.int64),  # jobs that the scheduler rejected
    ]
)
"""Scalars of a simulation."""


class Action(IntEnum):
    """What a scheduler can do."""

    START = 0
    SEND = 1
    WITHDRAW = 2
    REJECT = 3
    KILL = 4
    REQUEUE = 5
    CALL = 6


class Reply(IntEnum):
    """What came of an action, or of going on."""

    DONE = 0
    DECIDE = 1
    ROOM = 2
    NOT_QUEUED = 3
    NOT_RUNNING = 4
    NOT_SENT = 5
    NO_CLUSTER = 6
    TOO_LARGE = 7
    OVER_LIMIT = 8
    NOT_FREE = 9
    BOUND = 10
    PAST = 11
    UNKNOWN = 12
    SENDS = 13
    TOO_MANY = 14


_START, _SEND, _WITHDRAW, _REJECT, _KILL, _REQUEUE, _CALL = map(int, Action)
(
    _DONE,
    _DECIDE,
    _ROOM,
    _NOT_QUEUED,
    _NOT_RUNNING,
    _NOT_SENT,
    _NO_CLUSTER,
    _TOO_LARGE,
    _OVER_LIMIT,
    _NOT_FREE,
    _BOUND,
    _PAST,
    _UNKNOWN,
    _SENDS,
    _TOO_MANY,
) = map(int, Reply)


class Simulated(NamedTuple):
    """The grid, and what a scheduler sees of it."""

    g: GridArrays
    local: NodeClusters
    queue: Any = column(QUEUED, "room")  # in order of entry; the queue wanders through the array
    running: Any = column(RUNNING, "alive")  # in order of start
    free: Any = column(np.int64, "clusters")  # idle processors of the nodes that take jobs
    freed: Any = column(np.int64, "clusters")  # how often something had become free there
    calls: Any = column(ENTRY, "calls")  # heap of times
    entry: Any = column(np.int64, "jobs", fill=-1)  # number in the order of entry into the queue
    direct: Any = column(np.bool_, "jobs")  # whether it was started from the queue
    state: Any = column(STATE, "one")


# --- the queue ------------------------------------------------------------------------------------


@noinline
def _place_of(a: Simulated, j: int) -> int:
    """Where in its array the queue, which is in order of entry, has a job; -1 if it does not wait there."""
    if j < 0 or j >= len(a.entry) or a.entry[j] < 0:
        return -1
    state = a.state[0]
    low, end = state["first"], state["first"] + state["queued"]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if a.entry[a.queue[middle]["job"]] < a.entry[j]:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < end and a.queue[low]["job"] == j else -1


@noinline
def _put(a: Simulated, j: int, anew: bool) -> None:
    """Put a job into the queue: at its place, or `anew` behind all others."""
    state, labels, request = a.state[0], a.local.labels_of_requests[j], a.g.requests[j]
    if anew or a.entry[j] < 0:
        a.entry[j] = state["entered"]
        state["entered"] += 1
    if state["first"] + state["queued"] == len(a.queue):
        shift(a.queue, 0, state["first"], state["queued"])
        state["first"] = 0
    end = state["first"] + state["queued"]
    place = end
    while place > state["first"] and a.entry[a.queue[place - 1]["job"]] > a.entry[j]:
        place -= 1
    shift(a.queue, place + 1, place, end - place)
    job = a.queue[place]
    job["job"] = j
    job["submit_time"] = request["submit"]
    job["estimate"] = request["estimate"]
    home = a.g.home[j]
    job["processors"] = allocation(a.g, j, home) if home >= 0 else request["processors"]
    job["requested_processors"] = request["processors"]
    job["user"] = labels["user"]
    job["group"] = labels["group"]
    job["queue"] = labels["queue"]
    job["home"] = home
    state["queued"] += 1


@noinline
def _take_out(a: Simulated, place: int) -> None:
    """Take the job of a place out of the queue; the shorter part of the others moves."""
    state = a.state[0]
    before = place - state["first"]
    behind = state["queued"] - before - 1
    if before < behind:
        shift(a.queue, state["first"] + 1, state["first"], before)
        state["first"] += 1
    else:
        shift(a.queue, place, place + 1, behind)
    state["queued"] -= 1


# --- what a scheduler sees ------------------------------------------------------------------------


@noinline
def _see_starts(a: Simulated) -> None:
    """List the jobs that have started; pieces of one stand one after the other."""
    state, executed = a.state[0], a.local.real.store[0]["executions"]
    while state["seen"] < executed:
        piece = a.local.real.executions[state["seen"]]
        j, last = piece["job"], state["running"] - 1
        m = a.g.cluster[j]
        if last < 0 or a.running[last]["job"] != j:
            last += 1
            state["running"] += 1
            a.running[last]["job"] = j
            a.running[last]["cluster"] = m
            a.running[last]["processors"] = 0
            a.running[last]["start_time"] = piece["start"]
            a.running[last]["expected_end"] = a.local.real.jobs[j]["expected"]
        a.running[last]["processors"] += piece["cores"]
        a.free[m] -= piece["cores"]
        state["seen"] += 1


@noinline
def _see_ends(a: Simulated) -> None:
    """Forget jobs that run no longer, and see what is free then and when the others are expected to end."""
    state = a.state[0]
    kept = 0
    for k in range(state["running"]):
        j, started = a.running[k]["job"], a.running[k]["start_time"]
        if a.local.real.jobs[j]["start"] == started:
            a.running[kept] = a.running[k]
            a.running[kept]["expected_end"] = a.local.real.jobs[j]["expected"]
            kept += 1
    state["running"] = kept
    for m in range(len(a.free)):
        freed = a.local.real.state[m, 0]["freed"]
        if a.freed[m] != freed:
            a.freed[m] = freed
            a.free[m] = grid.idle(a.g, a.local, m)


@noinline
def _take_back(a: Simulated) -> None:
    """Let jobs that were started from the queue and have been killed wait there again."""
    for m in range(len(a.g.clusters)):
        k = a.local.real.state[m, 0]["waiting"] - 1
        while k >= 0:
            j = a.local.real.waiting[m, k]
            if a.direct[j]:
                local_queue.leave(by_reference(grid.cluster_of(a.local, m, 0)), j)
                _put(a, j, a.local.sites[m]["requeue"] == REQUEUE_AT_END)
            k -= 1


# --- going on -------------------------------------------------------------------------------------


@inline
def _let_leave(a: Simulated, now: int) -> None:
    """Let those whose users give up now wait no longer."""
    for k in range(grid.let_leave(a.g, a.local, now)):
        place = _place_of(a, a.local.leaving[k])
        if place >= 0:
            _take_out(a, place)


@inline
def _let_enter(a: Simulated, now: int) -> None:
    """Let the jobs wait that may start from now on."""
    j = grid.next_entering(a.g, a.local, now, 1)
    while j >= 0:
        _put(a, j, True)
        j = grid.next_entering(a.g, a.local, now, 1)


@inline
def _next_instant(a: Simulated) -> int:
    """When something happens next; FOREVER if nothing can happen to jobs any more."""
    if not grid.more_arrive(a.g, a.local):
        return FOREVER
    now = min(grid.next_arrival(a.g, a.local), grid.first_due(a.g, a.local))
    return min(now, a.calls[0]["key"]) if a.state[0]["calls"] > 0 else now


@inline
def _let_all_rest(a: Simulated, now: int) -> None:
    """What passes of the local policies are where no job has been sent."""
    for m in range(len(a.g.clusters)):
        if due_times.of(a.g.due, m) <= now:
            grid.let_rest(a.g, a.local, m)


@noinline
def _go_on(a: Simulated, options: GridOptions, score: Any, sends: Any) -> int:
    """Go on to the next instant at which a scheduler may decide: DECIDE, DONE, or ROOM if that is short."""
    state = a.state[0]
    if state["open"]:
        if not grid.has_room(a.g, a.local, 0, state["now"]):
            return _ROOM
        if sends is None:
            _let_all_rest(a, state["now"])
        else:
            grid.pass_where_due(a.g, a.local, state["now"], options, score)
        _see_starts(a)
        state["open"] = False
    now = _next_instant(a)
    if now == FOREVER:
        return _DONE
    if not grid.has_room(a.g, a.local, 0, now):
        return _ROOM
    state["now"] = now
    while state["calls"] > 0 and a.calls[0]["key"] <= now:
        state["calls"] = heap.pop(a.calls, state["calls"])
    grid.finish_due(a.g, a.local, now, options)
    _take_back(a)
    grid.live(a.g, a.local, now)
    _let_leave(a, now)
    _let_enter(a, now)
    _see_ends(a)
    state["open"] = True
    state["decisions"] += 1
    return _DECIDE


# --- decisions ------------------------------------------------------------------------------------


@inline
def _with(rules: NodeOptions, placement: int, requeue: int) -> NodeOptions:
    """The same rules with another placement and another treatment of killed jobs."""
    return NodeOptions(
        rules.backfilling,
        rules.reservations,
        rules.overrun,
        rules.prediction,
        rules.correction,
        rules.changing,
        rules.queue_as_order,
        rules.shortest_first,
        placement,
        rules.track,
        requeue,
        rules.interval,
        rules.cost,
        rules.seed,
        rules.requests,
    )


@inline
def _fits_on(c: NodeArrays, j: int, now: int, nodes: Any) -> bool:
    """Whether a job fits on certain nodes now; `fitting` says how many units fit where."""
    job = c.jobs[j]
    c.state[0]["looked"] = len(c.nodes)
    for choice in range(job["choices"]):
        bits = bits_of(c, j, choice)
        c.fitting[:], fitting = 0, 0
        for k in range(len(nodes)):
            if 0 <= nodes[k] < len(c.nodes) and c.allowed[job["where"], nodes[k]] & bits != 0:
                c.fitting[nodes[k]] = units_beside_plans(c, j, nodes[k], now)
        for n in range(len(c.nodes)):
            fitting += c.fitting[n]
        if fitting >= job["units"] and (job["parts"] == 0 or parts_fit(c, j)):
            return True
    return False


@noinline
def _obstacle(a: Simulated, j: int, m: int) -> int:
    """Why a job of the queue cannot go to a cluster at all; 0 if it can."""
    if m < 0 or m >= len(a.g.clusters):
        return _NO_CLUSTER
    if a.local.real.jobs[j]["killed"] > 0 and a.g.cluster[j] != m:
        return _BOUND
    return 0 if grid.fits(a.g, a.local, j, m) else _TOO_LARGE


@noinline
def _start(a: Simulated, j: int, m: int, nodes: Any, options: GridOptions) -> int:
    """Start a job of the queue on a cluster, on given nodes if there are any."""
    place = _place_of(a, j)
    if place < 0:
        return _NOT_QUEUED
    obstacle = _obstacle(a, j, m)
    if obstacle != 0:
        return obstacle
    now = a.state[0]["now"]
    if a.local.real.jobs[j]["killed"] == 0:
        grid.describe(a.g, a.local, j, m, 0)
    c = by_reference(grid.cluster_of(a.local, m, 0))
    rules = grid.rules_of(a.g, a.local, m, options.overrun, 0)
    if len(nodes) > 0:
        rules = _with(rules, FIRST_FIT, rules.requeue)
    if not local_queue.within_limits(c, j):
        return _OVER_LIMIT
    if not (_fits_on(c, j, now, nodes) if len(nodes) > 0 else fits_now(c, j, now, rules)):
        return _NOT_FREE
    if not choose(c, j, now, rules):
        return _ROOM
    a.g.cluster[j] = m
    a.g.entry[j] = j
    a.g.clock[0]["entered"] += 1
    a.direct[j] = True
    local_queue.start(c, j, now, rules)
    job_lifecycle.note_start(a.local.lifecycles, j, now)
    _take_out(a, place)
    _see_starts(a)
    return _DONE


@noinline
def _send(a: Simulated, j: int, m: int, options: GridOptions, score: Any) -> int:
    """Send a job of the queue to the local queue of a cluster."""
    place = _place_of(a, j)
    if place < 0:
        return _NOT_QUEUED
    obstacle = _BOUND if a.local.real.jobs[j]["killed"] > 0 else _obstacle(a, j, m)
    if obstacle != 0:
        return obstacle
    _take_out(a, place)
    a.g.cluster[j] = m
    grid.enter(a.g, a.local, j, m, a.state[0]["now"], options, score)
    return _DONE


@noinline
def _withdraw(a: Simulated, j: int) -> int:
    """Take a job that was sent and has never started back into the queue."""
    known = 0 <= j < len(a.entry) and a.g.entry[j] >= 0 and not a.direct[j] and _place_of(a, j) < 0
    known = known and a.local.lifecycles.jobs[j]["fate"] == COMPLETED  # whose user did not give up
    if not known or a.local.real.jobs[j]["start"] >= 0 or a.local.real.jobs[j]["done"]:
        return _NOT_SENT
    if a.local.real.jobs[j]["killed"] > 0:
        return _BOUND
    grid.withdraw(a.g, a.local, j, a.g.cluster[j], a.state[0]["now"])
    a.g.entry[j] = -1
    _put(a, j, False)
    return _DONE


@noinline
def _reject(a: Simulated, j: int) -> int:
    """Let a job of the queue never run."""
    place = _place_of(a, j)
    if place < 0:
        return _NOT_QUEUED
    if a.local.real.jobs[j]["killed"] > 0:
        return _BOUND
    _take_out(a, place)
    a.local.lifecycles.jobs[j]["fate"] = REFUSED
    a.state[0]["refused"] += 1
    job_lifecycle.notify_end(a.local.lifecycles, j, a.state[0]["now"], False)
    return _DONE


@noinline
def _kill(a: Simulated, j: int, again: bool, options: GridOptions) -> int:
    """Kill a running job; it waits `again`, or is lost."""
    if j < 0 or j >= len(a.entry) or a.local.real.jobs[j]["start"] < 0:
        return _NOT_RUNNING
    now, m = a.state[0]["now"], a.g.cluster[j]
    rules = grid.rules_of(a.g, a.local, m, options.overrun, 0)
    treatment = rules.requeue if rules.requeue != REQUEUE_NEVER else REQUEUE_AT_END
    kill(
        by_reference(grid.cluster_of(a.local, m, 0)),
        j,
        now,
        _with(rules, 0, treatment if again else REQUEUE_NEVER),
    )
    grid.note_change(a.g, a.local, m, now)
    _take_back(a)
    _see_ends(a)
    return _DONE


@inline
def _call(a: Simulated, time: int) -> int:
    """Let the scheduler be asked again at a time."""
    state = a.state[0]
    if time <= state["now"]:
        return _PAST
    if state["calls"] == len(a.calls):
        return _ROOM
    state["calls"] = heap.push(a.calls, state["calls"], time, 0)
    return _DONE


@noinline
def _act(a: Simulated, action: Any, nodes: Any, options: GridOptions, score: Any, sends: Any) -> int:
    """Do what a scheduler decided: DONE, ROOM or SENDS if that is missing, or why it is not possible."""
    kind, j, m = action["kind"], action["job"], action["cluster"]
    if kind == _START:
        return _start(a, j, m, nodes, options)
    if kind == _SEND:
        if sends is None:
            return _SENDS
        return _send(a, j, m, options, score)
    if kind == _WITHDRAW:
        return _withdraw(a, j)
    if kind == _REJECT:
        return _reject(a, j)
    if kind in (_KILL, _REQUEUE):
        return _kill(a, j, kind == _REQUEUE, options)
    return _call(a, action["time"]) if kind == _CALL else _UNKNOWN


# --- for Python -----------------------------------------------------------------------------------


@jit
def go_on(a: Simulated, overrun: int, predictions: int, score: Any, sends: Any) -> int:
    """Go on to the next instant at which a scheduler may decide, see `Reply`."""
    return _go_on(by_reference(a), GridOptions(overrun, predictions), score, sends)


@jit
def act(
    a: Simulated, actions: Any, nodes: Any, overrun: int, predictions: int, score: Any, sends: Any
) -> int:
    """Take the first of some actions, see `_act`."""
    return _act(by_reference(a), actions[0], nodes, GridOptions(overrun, predictions), score, sends)


@jit
def predicted_start(a: Simulated, j: int, m: int, options: GridOptions, score: Any) -> int:
    """When a job of the queue would start if it were sent to a cluster now; -1 if it is not known."""
    a = by_reference(a)
    if _place_of(a, j) < 0 or a.local.real.jobs[j]["killed"] > 0 or _obstacle(a, j, m) != 0:
        return -1
    start = grid.predicted_start(a.g, a.local, j, m, a.state[0]["now"], FOREVER, options, score)
    return int(start) if start < FOREVER else -1


@jit
def run(
    a: Simulated,
    decide: Any,
    parameters: Any,
    actions: Any,
    nodes: Any,
    overrun: int,
    predictions: int,
    score: Any,
    sends: Any,
) -> int:
    """Simulate to the end under a compiled scheduler: DONE, ROOM, SENDS, or why an action is not possible.

    `decide` writes `actions` and returns how many they are.
    """
    a, options = by_reference(a), GridOptions(overrun, predictions)
    state = a.state[0]
    while True:
        while state["acted"] < state["actions"]:
            outcome = _act(a, actions[state["acted"]], nodes, options, score, sends)
            if outcome != _DONE:
                return outcome
            state["acted"] += 1
        outcome = _go_on(a, options, score, sends)
        if outcome != _DECIDE:
            return outcome
        state["acted"] = 0
        state["actions"] = decide(
            state["now"],
            a.queue[state["first"] :].ctypes,
            state["queued"],
            a.running.ctypes,
            state["running"],
            a.free.ctypes,
            len(a.free),
            parameters.ctypes,
            len(parameters),
            actions.ctypes,
            len(actions),
        )
        if not 0 <= state["actions"] <= len(actions):
            return _TOO_MANY
