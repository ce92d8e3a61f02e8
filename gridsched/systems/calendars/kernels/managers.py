"""Jobs in the calendars of a tree of managers: one clock, a calendar for each cluster.

Hollingsworth and Maneewongvatana, "Imprecise calendars: an approach to scheduling computational grids" (ICDCS
1999), sections 2.2 to 2.4. What the rules are is said in `scheduler`; here is how they
are kept.

At one instant happens, in this order:

1. fundamental slots that are over are dropped; completions, in order of job index: slots that a job
   held and that begin now or later are released;
2. slots are split, so that the fundamental ones stay above their low-water mark, then those of level 1, and
   so on; jobs give back the parts that they do not need;
3. overruns, in order of job index: a job whose slots are over, but which is not, takes the next slot;
4. outages are announced, begin or end: jobs on nodes that go down are killed, and waiting jobs whose slots
   can no longer all be kept lose them;
5. jobs become eligible or are submitted, and users give up: slots of those who waited are released;
6. jobs without a place are placed anew, if something happened to outages;
7. at a multiple of its period a manager gets its shadow calendars anew;
8. if a slot was split, or something was released, waiting jobs move forward: managers above before those
   below, each with its own jobs in order of requests;
9. jobs that became eligible or were submitted make their requests;
10. starts.

Where no nodes fail, no users give up and no jobs wait for others, `outages` are None, and nothing of what
they need is compiled.
"""

from __future__ import annotations

from gridsched.engine import heap, rings
from gridsched.engine.jit import jit, noinline
from gridsched.engine.job_lifecycle import next_of_lifecycles
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    Group,
    ManagerTree,
    Status,
    book,
    is_leaf,
    nodes_on,
    row_offset,
    tell_old_released,
    tell_released,
)
from gridsched.systems.calendars.kernels.executions import complete, overrun, start_planned
from gridsched.systems.calendars.kernels.outages import (
    drop_timers,
    live,
    next_event,
    place_again,
    process_events,
)
from gridsched.systems.calendars.kernels.placing import begin_search, commit, search
from gridsched.systems.calendars.kernels.processors import Outages, settle
from gridsched.systems.calendars.kernels.requests import request

# --- splits and moves -----------------------------------------------------------------------------


@noinline
def _trim(t: ManagerTree, k: int, begin: int, end: int) -> None:
    """Let the jobs in a slot that was split give back the parts that they do not need."""
    c = t.calendars
    level, number = calendar.slot_at(c, begin)
    used = c.rows[k]["nodes"] - c.free[k, calendar.place_of(c, level, number)]
    for j in rings.items(t.holds, k):
        if used <= 0:
            break
        plan = t.plans[j]
        if plan["start"] < end and plan["end"] > begin:
            nodes = nodes_on(t, j, k)
            used -= nodes
            first, _ = calendar.span_of(c, max(begin, plan["start"]))
            _, behind = calendar.span_of(c, min(end, plan["end"]) - 1)
            if begin < first:
                calendar.change(c, k, begin, first, nodes)
            if behind < end:
                calendar.change(c, k, behind, end, nodes)
            if begin < first or behind < end:
                tell_released(t, k, False)


@noinline
def _split(t: ManagerTree, o: Outages | None, now: int) -> bool:
    """Split slots until every level is above its low-water mark; whether there were any."""
    happened = False
    for level in range(len(t.calendars.levels) - 1):
        while calendar.is_low(t.calendars, level):
            begin, end = calendar.split(t.calendars, level)
            happened = True
            for k in range(len(t.clusters)):
                _trim(t, k, begin, end)
                # Nodes that were kept back in shared slots can be had in fundamental ones
                if level == 0 and t.calendars.rows[k]["slack"] > 0:
                    tell_released(t, k, False)
    if o is not None and happened:
        settle(t, o, now, True)
    return happened


@noinline
def _move(t: ManagerTree, j: int, m: int, begin: int) -> None:
    """Give a waiting job an earlier place if its owner finds one."""
    plan = t.plans[j]
    place = plan["place"]
    start = plan["start"]
    if start <= begin:
        return
    # One that spans clusters is taken out of its slots to look, another one has them as its own
    spanning = not is_leaf(t, place)
    if spanning:
        book(t, j, 1)
    begin_search(t, m, begin)
    while True:
        x, earlier = search(t, j, m, start, NOWHERE if spanning else place, start)
        if x < 0:
            break
        if not spanning:
            book(t, j, 1)
        if commit(t, j, m, x, earlier):
            t.counts[0]["moves"] += 1
            t.counts[0]["messages"] += not is_leaf(t, m)
            tell_old_released(t, place)
            return
        if not spanning:
            book(t, j, -1)
    if spanning:
        book(t, j, -1)


@noinline
def _move_forward(t: ManagerTree, now: int, has_split: bool) -> None:
    """Let waiting jobs without reservation move forward where slots were split or something was released.

    Where nothing was released since the jobs of a manager moved last, none of them can move: this is
    looked at only to save time. Shadow calendars may tell of what was released long ago.
    """
    begin = calendar.boundary(t.calendars, now)
    for m in t.order:
        manager = t.managers[m]
        if (has_split or manager["freed"]) and (manager["loose"] or manager["shadow"] >= 0):
            manager["loose"] = False
            for j in rings.items(t.queues, m):
                if t.plans[j]["group"] == Group.ORDINARY and t.plans[j]["start"] < FOREVER:
                    _move(t, j, m, begin)
    for m in t.order:
        t.managers[m]["freed"] = False


@noinline
def _refresh(t: ManagerTree, now: int) -> None:
    """Let managers get their shadow calendars anew when it is time."""
    for m in t.order:
        manager = t.managers[m]
        if manager["refresh"] <= now:
            for k in range(manager["first"], manager["end"]):
                calendar.copy_row(t.calendars, k, row_offset(t, m) + k)
            t.counts[0]["messages"] += manager["end"] - manager["first"]
            while manager["refresh"] <= now:
                manager["refresh"] += manager["period"]


# --- submissions ----------------------------------------------------------------------------------


@noinline
def _next_entry(t: ManagerTree, o: Outages | None) -> int:
    """When a job is submitted or becomes eligible next, or its user gives up; FOREVER if never."""
    if o is not None:
        drop_timers(o)
        return next_of_lifecycles(o.lifecycles)
    arrival = t.counts[0]["arrival"]
    return t.jobs[arrival]["submit"] if arrival < len(t.jobs) else FOREVER


@noinline
def _enter(t: ManagerTree, o: Outages | None, now: int) -> int:
    """List the jobs that make their requests now in `entering`; return how many they are."""
    if o is not None:
        return live(t, o, now)
    count = 0
    while _next_entry(t, o) == now:
        t.entering[count] = t.counts[0]["arrival"]
        t.counts[0]["arrival"] += 1
        count += 1
    return count


# --- the clock ------------------------------------------------------------------------------------


@noinline
def _is_over(t: ManagerTree, o: Outages | None) -> bool:
    """Whether all is done, or those who wait will never have a place."""
    if _next_entry(t, o) < FOREVER or t.counts[0]["ending"] > 0:
        return False
    for m in range(len(t.managers)):
        for j in rings.items(t.queues, m):
            if next_event(t, o) < FOREVER or t.plans[j]["place"] >= 0:
                return False
    return True


@noinline
def _next(t: ManagerTree, o: Outages | None) -> int:
    """Time of the next entry, end, planned start, split, update of shadow calendars, or event of outages."""
    now = min(_next_entry(t, o), t.counts[0]["planned"], calendar.next_split(t.calendars), next_event(t, o))
    now = min(now, heap.first_time(t.events, t.counts[0]["ending"]))
    for m in t.order:
        now = min(now, t.managers[m]["refresh"])
    return now


@noinline
def _instant(t: ManagerTree, o: Outages | None, now: int) -> None:
    """All that happens at one instant; see the module."""
    calendar.consume(t.calendars, now)
    overruns = complete(t, o, now)
    has_split = _split(t, o, now)
    overrun(t, o, now, overruns)
    if o is not None:
        process_events(t, o, now)
    entered = _enter(t, o, now)
    if o is not None:
        place_again(t, now)
    _refresh(t, now)
    _move_forward(t, now, has_split)
    for position in range(entered):
        # Some may be too large for all clusters together, or have left again
        if t.plans[t.entering[position]]["status"] == Status.ABSENT:
            request(t, o, t.entering[position], now)
    start_planned(t, o, now)


@noinline
def _simulate(t: ManagerTree, o: Outages | None, instants: int) -> int:
    """Simulate so many instants; the last one."""
    now = NOWHERE
    for _ in range(instants):
        if _is_over(t, o) or t.calendars.tally[0]["short"] or t.counts[0]["segments"] > len(t.segments):
            break
        now = _next(t, o)
        _instant(t, o, now)
    return now


@jit
def schedule(tree: ManagerTree, outages: Outages | None, instants: int) -> int:
    """Simulate so many instants, to the end of the last job or until there is no room; the last instant.

    Where there was no room for slots (`short`) or segments, what was simulated is wrong.
    """
    t = by_reference(tree)
    if outages is None:
        return _simulate(t, None, instants)
    return _simulate(t, by_reference(outages), instants)
