"""Calendars where nodes fail, users give up, or jobs wait for others: one clock with more on it.

At one instant happens, in this order:

1. fundamental slots that are over are dropped; completions;
2. slots are split;
3. overruns;
4. outages are announced, begin or end: jobs on nodes that go down are killed, and waiting jobs whose slots
   can no longer all be kept lose them;
5. jobs become eligible or are submitted, and users give up: slots of those who waited are released;
6. jobs without a place are placed anew, if something happened to outages;
7. managers get their shadow calendars anew, and waiting jobs move forward;
8. jobs that became eligible or were submitted make their requests;
9. starts.
"""

from __future__ import annotations

from gridsched.engine import heap
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.job_lifecycle import (
    Fate,
    let_enter,
    let_give_up,
    next_of_lifecycles,
    notify_end,
    notify_start,
)
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    Status,
    end_wait,
    is_leaf,
    length,
    tell_freed_by_old,
    withdraw,
)
from gridsched.systems.calendars.kernels.managers import (
    CalendarOptions,
    is_short,
    move_forward,
    next_event,
    overrun,
    refresh,
    request,
    split,
    start_planned,
)
from gridsched.systems.calendars.kernels.outages import (
    Outages,
    give_processors_back,
    place_again,
    process_events,
    set_aside,
    settle,
    settle_splits,
    take_off,
    take_processors,
)

_WAITING = int(Status.WAITING)
_RUNNING = int(Status.RUNNING)
_DONE = int(Status.DONE)
_KILLED = int(Status.KILLED)
_REFUSED = int(Status.REFUSED)
_GONE = int(Status.GONE)
_COMPLETED = int(Fate.COMPLETED)
_REJECTED = int(Fate.REJECTED)


@noinline
def _complete(t: ManagerTree, o: Outages, now: int) -> int:
    """Completions of this instant; how many jobs run on beyond their slots, which are put into `todo`."""
    overruns = 0
    while t.counts[0]["ending"] > 0 and t.events[0]["key"] == now:
        j = t.events[0]["job"]
        t.counts[0]["ending"] = heap.pop(t.events, t.counts[0]["ending"])
        plan = t.plans[j]
        if plan["start"] + length(t, j) > now:
            t.todo[overruns] = j
            overruns += 1
        else:
            plan["lost"] += length(t, j) - plan["left"]
            take_off(t, o, j, now)
            plan["status"] = _DONE
            t.counts[0]["present"] -= 1
            notify_end(o.lifecycles, j, now, True)
    settle(t, o, now)
    return overruns


@noinline
def _overrun(t: ManagerTree, o: Outages, options: CalendarOptions, now: int, overruns: int) -> None:
    """Let jobs go on after their slots are over, if there is room; one that is killed did not end well."""
    for position in range(overruns):
        set_aside(t, o, t.todo[position], now)
    overrun(t, options, now, overruns)
    for position in range(overruns):
        j = t.todo[position]
        if t.plans[j]["status"] != _RUNNING:
            give_processors_back(o, j)
        if t.plans[j]["status"] == _KILLED:
            o.lifecycles.jobs[j]["failed"] = True
            notify_end(o.lifecycles, j, now, True)


@noinline
def _leave(t: ManagerTree, j: int) -> None:
    """Let a waiting job go: its slots are released."""
    plan = t.plans[j]
    place = plan["place"]
    if place >= 0:
        withdraw(t, j)
        tell_freed_by_old(t, place)
        t.counts[0]["messages"] += not is_leaf(t, plan["owner"])
    end_wait(t, j)
    plan["status"] = _GONE
    t.counts[0]["present"] -= 1


@noinline
def _live(t: ManagerTree, o: Outages, now: int) -> int:
    """Let jobs enter, and users give up; how many are in `entering`, of which some may have left again."""
    count = 0
    while next_of_lifecycles(o.lifecycles) == now:
        found = let_enter(o.lifecycles, now, o.found)
        for position in range(found):
            o.entering[count] = o.found[position]
            count += 1
        found = let_give_up(o.lifecycles, now, o.found)
        for position in range(found):
            if t.plans[o.found[position]]["status"] == _WAITING:
                _leave(t, o.found[position])
    return count


@noinline
def _request_all(t: ManagerTree, o: Outages, options: CalendarOptions, entered: int, now: int) -> None:
    """Let the jobs that entered ask for places."""
    for position in range(entered):
        j = o.entering[position]
        if o.lifecycles.jobs[j]["fate"] == _COMPLETED:
            t.plans[j]["turn"] = o.state[0]["turn"]
            o.state[0]["turn"] += 1
            request(t, options, j, now)
            if t.plans[j]["status"] == _REFUSED:
                o.lifecycles.jobs[j]["fate"] = _REJECTED
                notify_end(o.lifecycles, j, now, False)


@noinline
def _start(t: ManagerTree, o: Outages, now: int) -> None:
    """Start the jobs whose time has come."""
    for position in range(start_planned(t, now)):
        j = t.todo[position]
        take_processors(t, o, j, now)
        if o.lifecycles.jobs[j]["started"] == 0:
            o.lifecycles.jobs[j]["started"] = 1
            notify_start(o.lifecycles, j, now)
    settle(t, o, now)


@noinline
def _drop_timers(o: Outages) -> None:
    """Drop the next timers if they are of jobs to which nothing can happen any more."""
    a = o.lifecycles
    n = len(a.jobs)
    is_void = True
    while is_void and a.state[0]["timers"] > 0:
        item = a.timers[0]["job"]
        job = a.jobs[item % n]
        is_void = job["fate"] != _COMPLETED or (item >= n and job["started"] != 0)
        if is_void:
            a.state[0]["timers"] = heap.pop(a.timers, a.state[0]["timers"])


@noinline
def _has_places(t: ManagerTree) -> bool:
    """Whether some waiting job has a place."""
    for m in range(len(t.managers)):
        j = t.managers[m]["head"]
        while j >= 0:
            if t.plans[j]["place"] >= 0:
                return True
            j = t.plans[j]["after"]
    return False


@noinline
def _is_over(t: ManagerTree, o: Outages) -> bool:
    """Whether all is done, or those who wait will never have a place."""
    _drop_timers(o)
    if next_of_lifecycles(o.lifecycles) < FOREVER or t.counts[0]["ending"] > 0:
        return False
    if t.counts[0]["present"] == 0:
        return True
    return o.state[0]["event"] == len(o.events) and not _has_places(t)


@inline
def _next(t: ManagerTree, o: Outages) -> int:
    """Time of the next instant."""
    now = min(next_event(t), next_of_lifecycles(o.lifecycles))
    if o.state[0]["event"] < len(o.events):
        now = min(now, o.events[o.state[0]["event"]]["time"])
    return now


@noinline
def _instant(t: ManagerTree, o: Outages, options: CalendarOptions, now: int) -> None:
    """All that happens at one instant; see the module."""
    calendar.consume(t.calendars, now)
    overruns = _complete(t, o, now)
    has_split = split(t)
    if has_split:
        settle_splits(t, o, now)
    _overrun(t, o, options, now, overruns)
    process_events(t, o, now)
    entered = _live(t, o, now)
    if o.state[0]["happened"]:
        place_again(t, o, now, options.seed)
    refresh(t, now)
    move_forward(t, options, now, has_split)
    _request_all(t, o, options, entered, now)
    _start(t, o, now)


@jit
def schedule(t: ManagerTree, o: Outages, options: CalendarOptions, instants: int) -> int:
    """`managers.schedule` where nodes fail, users give up, or jobs wait for others."""
    t, o, options = by_reference(t), by_reference(o), by_reference(options)
    now = NOWHERE
    while instants > 0 and not _is_over(t, o) and not is_short(t):
        now = _next(t, o)
        _instant(t, o, options, now)
        instants -= 1
    return now
