"""Which processors run what, and which are out: what calendars do not say, and have to be told.

A slot says how many nodes are free, not which. Where nodes fail, it is known besides which processors each
running job has. The calendar then keeps an exact account: in each slot are free all processors but those
that are out in it, those of the running jobs that hold it, and those that waiting jobs hold; a processor that
a running job has and that will be out counts once. So the waiting jobs whose slots are overdrawn are those
that have to give way, and then nothing is.

Nodes that are down or drained are out in all slots, since nobody knows for how long. An announced window
takes its processors out of the slots that it touches.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import heap
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import Fate, Lifecycles, notify_end
from gridsched.engine.nodes.records import Requeue
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    Status,
    end_wait,
    is_leaf,
    job_of_link,
    let_wait,
    link_of,
    nodes_on,
    row_offset,
    slot_end,
    tell_freed,
    tell_freed_by_old,
    tell_loose,
    withdraw,
)
from gridsched.systems.calendars.kernels.managers import reserve, stop
from gridsched.systems.calendars.kernels.placing import leave_without_place, place_anew

_WAITING = int(Status.WAITING)
_RUNNING = int(Status.RUNNING)
_GONE = int(Status.GONE)
_LOST = int(Fate.LOST)


class Step(IntEnum):
    """What happens to an outage, in this order at one instant."""

    ANNOUNCED = 0
    BEGINS = 1
    ENDS = 2


_END_OF_QUEUE = int(Requeue.END)
_LOSE = int(Requeue.LOST)
_ANNOUNCED = int(Step.ANNOUNCED)
_BEGINS = int(Step.BEGINS)

CLOSING = np.dtype(
    [
        ("cluster", np.int64),
        ("first", np.int64),  # the lowest of its processors that is out
        ("end", np.int64),  # the processor after the highest one
        ("start", np.int64),
        ("until", np.int64),  # FOREVER if it never ends
        ("window", np.int64),  # whether its end is known before
        ("drained", np.int64),  # whether jobs go on there to their end
    ]
)
"""An outage."""

EVENT = np.dtype([("time", np.int64), ("step", np.int64), ("closing", np.int64)])
"""Something that happens to an outage, value of `Step`."""

CAPACITY = np.dtype(
    [
        ("first", np.int64),  # where the processors of the cluster begin; NOWHERE if they never are out
        ("total", np.int64),
        ("requeue", np.int64),  # value of `Requeue`
        ("planned", np.int64),  # windows that are known, and drained ranges
        ("dirty", np.int64),  # whether its calendar has to be made up anew
    ]
)
"""The processors of a cluster."""

MISHAP = np.dtype(
    [
        ("killed", np.int64),  # how often failing nodes killed it
        ("again", np.int64),  # 1 or 2 at the instant at which it was killed: at its place, or at the end
        ("broken", np.int64),  # whether its reservation could not be kept
    ]
)
"""What failing nodes did to a job."""

STATE = np.dtype(
    [
        ("event", np.int64),  # next event
        ("known", np.int64),  # windows that are known
        ("turn", np.int64),  # requests so far
        ("happened", np.int64),  # whether something happened to outages at this instant
        ("displaced", np.int64),  # times that a waiting job lost its slots to an outage
    ]
)
"""Scalars."""


class Outages(NamedTuple):
    """Outages, processors, and the lifecycles of the jobs."""

    lifecycles: Lifecycles
    closings: Any  # CLOSING[...]
    events: Any  # EVENT[...], by time and step
    capacities: Any  # CAPACITY[clusters]
    owner: Any  # int64[processors]: the job that runs there; NOWHERE
    out: Any  # int64[processors]: how many times it is down or drained
    mark: Any  # int64[processors of the largest cluster], scratch
    known: Any  # int64[...]: windows that are announced and not over
    mishaps: Any  # MISHAP[n]
    entering: Any  # int64[n]: jobs that enter at this instant
    found: Any  # int64[n], scratch
    state: Any  # STATE[1]


def allocate(lifecycles: Lifecycles, closings: Any, events: Any, capacities: Any) -> Outages:
    """Outages before the first instant; `capacities` lacks the firsts."""
    capacities = capacities.copy()
    affected = np.isin(np.arange(len(capacities)), closings["cluster"])
    sizes = np.where(affected, capacities["total"], 0)
    capacities["first"] = np.where(affected, np.cumsum(sizes) - sizes, NOWHERE)
    number = len(lifecycles.jobs)
    return Outages(
        lifecycles=lifecycles,
        closings=closings,
        events=events,
        capacities=capacities,
        owner=np.full(sizes.sum(), NOWHERE, np.int64),
        out=np.zeros(sizes.sum(), np.int64),
        mark=np.empty(sizes.max(initial=0), np.int64),
        known=np.empty(len(closings), np.int64),
        mishaps=np.zeros(number, MISHAP),
        entering=np.empty(number, np.int64),
        found=np.empty(number, np.int64),
        state=np.zeros(1, STATE),
    )


# --- which processors are out in a slot -----------------------------------------------------------


@noinline
def _mark_out(o: Outages, k: int, begin: int, end: int) -> int:
    """Mark the processors of a cluster that are out in [begin, end), as far as is known; how many are not."""
    capacity = o.capacities[k]
    first = capacity["first"]
    for p in range(capacity["total"]):
        o.mark[p] = o.out[first + p] > 0
    for i in range(o.state[0]["known"]):
        window = o.closings[o.known[i]]
        if window["cluster"] == k and window["start"] < end and window["until"] > begin:
            for p in range(window["first"], window["end"]):
                o.mark[p] = 1
    up = 0
    for p in range(capacity["total"]):
        up += o.mark[p] == 0
    return up


@noinline
def _own_out(o: Outages, j: int, k: int, begin: int, end: int) -> int:
    """How many processors of a running job are out in [begin, end), as far as is known."""
    capacity = o.capacities[k]
    if capacity["planned"] == 0:
        return 0
    _mark_out(o, k, begin, end)
    count = 0
    for p in range(capacity["total"]):
        count += o.owner[capacity["first"] + p] == j and o.mark[p] != 0
    return count


@noinline
def _crosses(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> bool:
    """Whether processors of a running job are out in some slot that it holds."""
    if o.capacities[k]["planned"] == 0:
        return False
    return _own_out(o, j, k, now, slot_end(t, max(now, t.plans[j]["end"] - 1))) > 0


@inline
def _touches_window(o: Outages, k: int, begin: int, end: int) -> bool:
    """Whether a known window of a cluster touches [begin, end)."""
    for i in range(o.state[0]["known"]):
        window = o.closings[o.known[i]]
        if window["cluster"] == k and window["start"] < end and window["until"] > begin:
            return True
    return False


# --- the account ----------------------------------------------------------------------------------


@noinline
def _hold_again(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> None:
    """Take the slots of a job that begin now or later out of what is free."""
    c = t.calendars
    plan = t.plans[j]
    begin = max(plan["start"], calendar.boundary(c, now))
    nodes = nodes_on(t, j, k)
    if begin >= plan["end"]:
        return
    if plan["status"] != _RUNNING or not _crosses(t, o, j, k, now):
        calendar.change(c, k, begin, plan["end"], -nodes)
        return
    level, number = calendar.slot_at(c, begin)
    time = calendar.begins(c, level, number)
    while time < plan["end"]:
        following = calendar.begins(c, level, number + 1)
        c.free[k, calendar.place_of(c, level, number)] -= nodes - _own_out(o, j, k, time, following)
        level, number = calendar.slot_after(c, level, number)
        time = following


@noinline
def _make_up(t: ManagerTree, o: Outages, k: int, now: int) -> None:
    """Make up the calendar of a cluster anew, from the first slot on that begins now or later."""
    c = t.calendars
    level, number = calendar.slot_at(c, calendar.boundary(c, now))
    while not calendar.is_empty_from(c, level, number):
        begin = calendar.begins(c, level, number)
        end = calendar.begins(c, level, number + 1)
        up = int(c.rows[k]["nodes"])
        if _touches_window(o, k, begin, end):
            up = _mark_out(o, k, begin, end)
        c.free[k, calendar.place_of(c, level, number)] = up
        level, number = calendar.slot_after(c, level, number)
    link = t.clusters[k]["head"]
    while link >= 0:
        _hold_again(t, o, job_of_link(t, link), k, now)
        link = t.links[link]["after"]


@noinline
def settle(t: ManagerTree, o: Outages, now: int) -> None:
    """Make up the calendars that have to be made up anew; jobs may move forward there."""
    for k in range(len(t.clusters)):
        if o.capacities[k]["dirty"]:
            o.capacities[k]["dirty"] = False
            _make_up(t, o, k, now)
            tell_loose(t, k)


@inline
def settle_splits(t: ManagerTree, o: Outages, now: int) -> None:
    """Let windows, and jobs on nodes that will be out, give back the parts of split slots."""
    for k in range(len(t.clusters)):
        o.capacities[k]["dirty"] |= o.capacities[k]["planned"] > 0
    settle(t, o, now)


# --- processors of running jobs -------------------------------------------------------------------


@noinline
def take_processors(t: ManagerTree, o: Outages, j: int, now: int) -> None:
    """Give a job its processors: the lowest, first those that no window takes before its planned end."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    for k in range(holder["first"], holder["end"]):
        capacity = o.capacities[k]
        first = capacity["first"]
        missing = nodes_on(t, j, k) if first >= 0 else 0
        if missing == 0:
            continue
        for p in range(capacity["total"]):
            o.mark[p] = 2 if o.owner[first + p] >= 0 or o.out[first + p] > 0 else 0
        for i in range(o.state[0]["known"]):
            window = o.closings[o.known[i]]
            if window["cluster"] == k and window["start"] < plan["end"]:
                for p in range(window["first"], window["end"]):
                    o.mark[p] = 2 if window["start"] <= now else max(o.mark[p], 1)
        for choice in range(2):
            for p in range(capacity["total"]):
                if missing > 0 and o.mark[p] == choice:
                    o.owner[first + p] = j
                    missing -= 1
        capacity["dirty"] |= _crosses(t, o, j, k, now)


@noinline
def give_processors_back(o: Outages, j: int) -> None:
    """Let a job have no processors."""
    for p in range(len(o.owner)):
        if o.owner[p] == j:
            o.owner[p] = NOWHERE


@noinline
def take_off(t: ManagerTree, o: Outages, j: int, now: int) -> None:
    """Let a running job run no longer."""
    holder = t.managers[t.plans[j]["place"]]
    for k in range(holder["first"], holder["end"]):
        if nodes_on(t, j, k) > 0:
            o.capacities[k]["dirty"] |= _crosses(t, o, j, k, now)
    stop(t, j, now)
    give_processors_back(o, j)


@noinline
def set_aside(t: ManagerTree, o: Outages, j: int, now: int) -> None:
    """Say what an overrunner has of the slot that begins now though it is out for others."""
    holder = t.managers[t.plans[j]["place"]]
    for k in range(holder["first"], holder["end"]):
        if nodes_on(t, j, k) > 0:
            t.links[link_of(t, j, k)]["aside"] = _own_out(o, j, k, now, slot_end(t, now))


# --- what happens to nodes ------------------------------------------------------------------------


@noinline
def _forget_end(t: ManagerTree, j: int) -> None:
    """Take a job out of the heap of ends."""
    size = 0
    for position in range(t.counts[0]["ending"]):
        key = t.events[position]["key"]
        other = t.events[position]["job"]
        if other != j:
            size = heap.push(t.events, size, key, other)
    t.counts[0]["ending"] = size


@noinline
def _kill(t: ManagerTree, o: Outages, j: int, k: int, now: int) -> bool:
    """Kill a job on a cluster whose nodes are out; whether it is to be placed anew."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    elapsed = now - plan["start"]
    saved = 0
    if holder["interval"] > 0:
        saved = holder["interval"] * (elapsed // (holder["interval"] + holder["cost"]))
    take_off(t, o, j, now)
    _forget_end(t, j)
    plan["lost"] += elapsed - saved
    plan["left"] -= saved
    t.jobs[j]["estimate"] = max(1, t.jobs[j]["estimate"] - int(saved * plan["speed"]))
    o.mishaps[j]["killed"] += 1
    if o.capacities[k]["requeue"] == _LOSE:
        plan["status"] = _GONE
        t.counts[0]["present"] -= 1
        o.lifecycles.jobs[j]["fate"] = _LOST
        notify_end(o.lifecycles, j, now, True)
        return False
    plan["fixed"] = False
    o.mishaps[j]["again"] = 2 if o.capacities[k]["requeue"] == _END_OF_QUEUE else 1
    leave_without_place(t, j)
    return True


@noinline
def _clear(t: ManagerTree, o: Outages, e: int, now: int, killed: int) -> int:
    """Kill all jobs on processors that go down; those to be placed anew are put into `todo`, how many."""
    closing = o.closings[e]
    k = closing["cluster"]
    first = o.capacities[k]["first"]
    for p in range(closing["first"], closing["end"]):
        j = o.owner[first + p]
        if j >= 0 and _kill(t, o, j, k, now):
            t.todo[killed] = j
            killed += 1
    return killed


@noinline
def _sort_by_turn(t: ManagerTree, number: int) -> None:
    """Sort the first jobs of `todo` by their turns; they are nearly so."""
    for position in range(1, number):
        j = t.todo[position]
        place = position
        while place > 0 and t.plans[t.todo[place - 1]]["turn"] > t.plans[j]["turn"]:
            t.todo[place] = t.todo[place - 1]
            place -= 1
        t.todo[place] = j


@noinline
def _let_wait_again(t: ManagerTree, o: Outages, killed: int) -> None:
    """Put the killed jobs, the first of `todo`, among the waiting ones of their owners."""
    _sort_by_turn(t, killed)
    for position in range(killed):
        j = t.todo[position]
        if o.mishaps[j]["again"] == 2:
            t.plans[j]["turn"] = o.state[0]["turn"]
            o.state[0]["turn"] += 1
        let_wait(t, j, t.plans[j]["owner"])


@noinline
def _tell_nodes(t: ManagerTree, row: int, up: int) -> None:
    """Let a shadow calendar have so many nodes; what is in use in its slots it says as before."""
    c = t.calendars
    more = up - c.rows[row]["nodes"]
    c.rows[row]["nodes"] = up
    for level in range(len(c.levels)):
        end = c.tally[0]["grown"] if level == calendar.top(c) else c.levels[level]["end"]
        for number in range(c.levels[level]["first"], end):
            c.free[row, calendar.place_of(c, level, number)] += more


@noinline
def _count_nodes(t: ManagerTree, o: Outages) -> None:
    """Count the nodes that are neither down nor drained, for rows and managers."""
    for k in range(len(t.clusters)):
        capacity = o.capacities[k]
        if capacity["first"] >= 0:
            up = 0
            for p in range(capacity["total"]):
                up += o.out[capacity["first"] + p] == 0
            t.calendars.rows[k]["nodes"] = up
    for m in range(len(t.managers) - 1, -1, -1):
        manager = t.managers[m]
        if manager["shadow"] >= 0:
            for k in range(manager["first"], manager["end"]):
                _tell_nodes(t, row_offset(t, m) + k, t.calendars.rows[k]["nodes"])
        manager["nodes"] = 0
        manager["widest"] = 0
        if is_leaf(t, m):
            manager["nodes"] = t.calendars.rows[manager["first"]]["nodes"]
        x = m + 1
        while x < m + manager["size"]:
            manager["nodes"] += t.managers[x]["nodes"]
            manager["widest"] = max(manager["widest"], t.managers[x]["nodes"])
            x += t.managers[x]["size"]


@noinline
def _is_overdrawn(t: ManagerTree, j: int, k: int) -> bool:
    """Whether a waiting job holds a slot of a cluster that has fewer nodes than jobs hold."""
    c = t.calendars
    plan = t.plans[j]
    level, number = calendar.slot_at(c, plan["start"])
    time = plan["start"]
    while time < plan["end"]:
        if c.free[k, calendar.place_of(c, level, number)] < 0:
            return True
        level, number = calendar.slot_after(c, level, number)
        time = calendar.begins(c, level, number)
    return False


@noinline
def _displace(t: ManagerTree, o: Outages, k: int) -> None:
    """Take the waiting jobs of a cluster out of their slots of which one is overdrawn."""
    number = 0
    link = t.clusters[k]["head"]
    while link >= 0:
        j = job_of_link(t, link)
        if t.plans[j]["status"] == _WAITING and _is_overdrawn(t, j, k):
            t.todo[number] = j
            number += 1
        link = t.links[link]["after"]
    for position in range(number):
        j = t.todo[position]
        place = t.plans[j]["place"]
        withdraw(t, j)
        tell_freed_by_old(t, place)
        leave_without_place(t, j)
    o.state[0]["displaced"] += number


@noinline
def process_events(t: ManagerTree, o: Outages, now: int) -> None:
    """All that happens to outages at this instant."""
    state = o.state[0]
    state["happened"] = False
    killed = 0
    while state["event"] < len(o.events) and o.events[state["event"]]["time"] == now:
        event = o.events[state["event"]]
        state["event"] += 1
        state["happened"] = True
        e = event["closing"]
        closing = o.closings[e]
        k = closing["cluster"]
        capacity = o.capacities[k]
        first = capacity["first"]
        if event["step"] == _ANNOUNCED:
            o.known[state["known"]] = e
            state["known"] += 1
            capacity["planned"] += 1
            # Let the calendar reach as far as the window
            begin = max(closing["start"], calendar.boundary(t.calendars, now))
            calendar.change(t.calendars, k, begin, closing["until"], 0)
        elif event["step"] == _BEGINS:
            if not closing["drained"]:
                killed = _clear(t, o, e, now, killed)
            if not closing["window"]:
                for p in range(closing["first"], closing["end"]):
                    o.out[first + p] += 1
            capacity["planned"] += closing["drained"]
        elif closing["window"]:
            i = 0
            while o.known[i] != e:
                i += 1
            state["known"] -= 1
            o.known[i] = o.known[state["known"]]
            capacity["planned"] -= 1
        else:
            for p in range(closing["first"], closing["end"]):
                o.out[first + p] -= 1
            capacity["planned"] -= closing["drained"]
        capacity["dirty"] = True
        tell_freed(t, k)
    if not state["happened"]:
        return
    _let_wait_again(t, o, killed)
    _count_nodes(t, o)
    settle(t, o, now)
    for k in range(len(t.clusters)):
        _displace(t, o, k)


# --- requests made anew ---------------------------------------------------------------------------


@inline
def _rank(t: ManagerTree, o: Outages, j: int) -> int:
    """Who is placed anew first: killed jobs at their place, reservations, others, killed ones at the end."""
    again = o.mishaps[j]["again"]
    if again > 0:
        return 0 if again == 1 else 3
    return 1 if t.plans[j]["fixed"] else 2


@noinline
def place_again(t: ManagerTree, o: Outages, now: int, seed: int) -> None:
    """Place the jobs anew that have no place, in four groups, each in order of requests."""
    begin = calendar.boundary(t.calendars, now)
    for rank in range(4):
        number = 0
        for m in range(len(t.managers)):
            j = t.managers[m]["head"]
            while j >= 0:
                if t.plans[j]["place"] < 0 and _rank(t, o, j) == rank:
                    t.todo[number] = j
                    number += 1
                j = t.plans[j]["after"]
        _sort_by_turn(t, number)
        for position in range(number):
            j = t.todo[position]
            plan = t.plans[j]
            end_wait(t, j)
            if plan["fixed"] and not reserve(t, j, seed):
                plan["fixed"] = False
                plan["earliest"] = NOWHERE
                o.mishaps[j]["broken"] = True
            if not plan["fixed"]:
                place_anew(t, j, begin, seed)
            let_wait(t, j, plan["owner"])
            o.mishaps[j]["again"] = 0
