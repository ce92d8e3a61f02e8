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
4. at a multiple of its period a manager gets its shadow calendars anew;
5. if a slot was split, or something was released, waiting jobs move forward: managers above before those
   below, each with its own jobs in order of submission;
6. submissions, in order;
7. starts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gridsched.engine import heap
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    Route,
    Status,
    end_wait,
    install,
    is_leaf,
    job_of_link,
    length,
    let_wait,
    link_of,
    nodes_on,
    row_offset,
    take_from_cluster,
    tasks_on,
    tell_freed,
    tell_freed_by_old,
    tell_loose,
    tie,
    withdraw,
    work_within,
)
from gridsched.systems.calendars.kernels.placing import (
    begin_search,
    commit,
    first_fit,
    leave_without_place,
    next_holder,
    place_anew,
    place_earliest,
    search,
)

_WAITING = int(Status.WAITING)
_RUNNING = int(Status.RUNNING)
_DONE = int(Status.DONE)
_KILLED = int(Status.KILLED)
_REJECTED = int(Status.REJECTED)
_REFUSED = int(Status.REFUSED)
_STAYED = int(Route.STAYED)
_PROMOTED = int(Route.PROMOTED)
_FORWARDED = int(Route.FORWARDED)
_BUMPED = int(Route.BUMPED)
_RESERVED = int(Route.RESERVED)


class CalendarOptions(NamedTuple):
    """Conventions of a simulation."""

    suspend: bool  # an overrunner without a slot is suspended, not killed
    queue: bool  # a refused reservation becomes an ordinary job
    seed: int


# --- submissions ----------------------------------------------------------------------------------


@noinline
def _may_borrow(t: ManagerTree, j: int) -> bool:
    """Whether the home of a job consumes no more than its limit, net of what it supplies."""
    home = t.managers[t.jobs[j]["home"]]
    cluster = t.clusters[home["first"]]
    return home["borrow_limit"] < 0 or cluster["consumed"] - cluster["supplied"] <= home["borrow_limit"]


@noinline
def _is_promoted(t: ManagerTree, j: int, m: int) -> bool:
    """Whether the rule of a manager sends a job up."""
    nodes = t.managers[m]["promote_nodes"]
    duration = t.managers[m]["promote_duration"]
    return (nodes >= 0 and t.jobs[j]["nodes"] > nodes) or (
        duration >= 0 and t.jobs[j]["estimate"] >= duration
    )


@inline
def _is_too_far(t: ManagerTree, j: int, m: int, start: int, now: int) -> bool:
    """Whether a manager bumps a job up whose first fit starts then."""
    rules = t.managers[m]
    patience = max(rules["bump"], rules["bump_stretch"] * t.jobs[j]["estimate"])
    return rules["parent"] >= 0 and rules["bump"] >= 0 and start > now + patience


@noinline
def _responsible(t: ManagerTree, j: int) -> int:
    """The manager that a job is sent up to from its home."""
    home = t.jobs[j]["home"]
    may_borrow = _may_borrow(t, j)
    plan = t.plans[j]
    m = home
    going = True
    while going and t.managers[m]["parent"] >= 0:
        promoted = _is_promoted(t, j, m) and may_borrow
        forwarded = t.jobs[j]["nodes"] > t.managers[m]["nodes"]
        going = promoted or forwarded
        if going:
            m = t.managers[m]["parent"]
            t.counts[0]["messages"] += 1
            if plan["route"] == _STAYED:
                plan["route"] = _PROMOTED if promoted else _FORWARDED
    if not may_borrow:
        if m != home:
            t.counts[0]["over_limit"] += 1
        elif _is_promoted(t, j, home) and t.managers[home]["parent"] >= 0:
            t.counts[0]["kept_home"] += 1
    return m


@noinline
def _place_or_bump(t: ManagerTree, j: int, begin: int, now: int, seed: int) -> None:
    """Place an ordinary job; if its first fit is too far, see whether managers above have an earlier one."""
    owner = _responsible(t, j)
    if t.jobs[j]["nodes"] > t.managers[owner]["nodes"]:
        t.plans[j]["owner"] = owner
        leave_without_place(t, j)
        return
    begin_search(t, owner, begin)
    x, start = search(t, j, owner, FOREVER, NOWHERE, FOREVER, seed)
    m = owner
    while _is_too_far(t, j, m, start, now) and _may_borrow(t, j):
        m = t.managers[m]["parent"]
        t.counts[0]["messages"] += 1
        begin_search(t, m, begin)
        other, earlier = search(t, j, m, start, NOWHERE, FOREVER, seed)
        if other >= 0:
            owner = m
            x = other
            start = earlier
            t.plans[j]["route"] = _BUMPED
    if _is_too_far(t, j, m, start, now) and not _may_borrow(t, j):
        t.counts[0]["kept_home"] += 1
    placed = commit(t, j, owner, x, start, seed)
    if not placed:
        # What holders said is forgotten, since other managers have asked meanwhile, but not the refusal
        behind = t.floor[x]
        begin_search(t, owner, begin)
        t.floor[x] = behind
    while not placed:
        x, start = search(t, j, owner, FOREVER, NOWHERE, FOREVER, seed)
        placed = commit(t, j, owner, x, start, seed)


@noinline
def _next_to_ask(t: ManagerTree, j: int, m: int, seed: int) -> int:
    """Holder that has not been asked for a reservation, by the time that is expected of it; NOWHERE."""
    nodes = t.jobs[j]["nodes"]
    offset = row_offset(t, m)
    behind = m + t.managers[m]["size"]
    chosen = NOWHERE
    best = FOREVER
    best_rank = 0
    x = next_holder(t, m, m, nodes)
    while x < behind:
        if not t.told[x]:
            time = first_fit(t, j, offset, x, t.jobs[j]["reserved"], FOREVER, FOREVER)
            equal = tie(t, m, j, x, seed)
            if time < best or (time == best and equal < best_rank):
                chosen = x
                best = time
                best_rank = equal
        x = next_holder(t, m, x + t.managers[x]["size"], nodes)
    return chosen


@noinline
def reserve(t: ManagerTree, j: int, seed: int) -> bool:
    """Let a job have its reservation: at home, or at the lowest manager above that can give it.

    Every holder is asked before it is refused; `earliest` becomes the earliest time that any could offer.
    """
    start = t.jobs[j]["reserved"]
    plan = t.plans[j]
    earliest = FOREVER
    for x in range(len(t.managers)):
        t.told[x] = False
    m = t.jobs[j]["home"]
    while m >= 0:
        x = _next_to_ask(t, j, m, seed)
        while x >= 0:
            could = first_fit(t, j, 0, x, start, FOREVER, FOREVER)
            if not is_leaf(t, m):
                clusters = t.managers[x]["end"] - t.managers[x]["first"]
                t.counts[0]["inquiries"] += clusters
                t.counts[0]["messages"] += 2 * clusters
                t.counts[0]["failed_inquiries"] += could != start
            if could == start:
                if commit(t, j, m, x, start, seed):
                    plan["route"] = _STAYED if m == t.jobs[j]["home"] else _RESERVED
                    return True
                could = first_fit(t, j, 0, x, t.floor[x], FOREVER, FOREVER)
            t.told[x] = True
            earliest = min(earliest, could)
            x = _next_to_ask(t, j, m, seed)
        m = t.managers[m]["parent"]
        t.counts[0]["messages"] += m >= 0
    plan["earliest"] = earliest
    return False


@noinline
def request(t: ManagerTree, options: CalendarOptions, j: int, now: int) -> None:
    """Let a job that some clusters together can run ask for a place."""
    plan = t.plans[j]
    begin = calendar.boundary(t.calendars, now)
    if t.jobs[j]["reserved"] >= 0:
        plan["earliest"] = FOREVER
        # The start of a job that waited for others may be over
        if t.jobs[j]["reserved"] >= begin and reserve(t, j, options.seed):
            plan["fixed"] = True
            plan["earliest"] = NOWHERE
        elif not options.queue:
            plan["status"] = _REFUSED
            return
    if not plan["fixed"]:
        _place_or_bump(t, j, begin, now, options.seed)
    if plan["start"] < FOREVER:
        plan["promise"] = plan["start"]
    t.counts[0]["present"] += 1
    let_wait(t, j, plan["owner"])


@noinline
def _submit(t: ManagerTree, options: CalendarOptions, now: int) -> None:
    """Let the next job be submitted."""
    j = t.counts[0]["arrival"]
    t.counts[0]["arrival"] += 1
    if t.jobs[j]["nodes"] > t.managers[0]["nodes"]:
        t.plans[j]["status"] = _REJECTED
    else:
        request(t, options, j, now)


# --- starts and ends ------------------------------------------------------------------------------


@noinline
def _start(t: ManagerTree, j: int) -> None:
    """Start a waiting job; an event follows when it ends, or when its slots do."""
    end_wait(t, j)
    plan = t.plans[j]
    start = plan["start"]
    plan["status"] = _RUNNING
    if plan["first"] < 0:
        plan["first"] = start
    speed = t.managers[plan["place"]]["speed"]
    if speed != plan["speed"]:
        plan["left"] = math.ceil(plan["left"] * plan["speed"] / speed)
        plan["speed"] = speed
    time = min(start + length(t, j), calendar.boundary(t.calendars, plan["end"]))
    t.counts[0]["ending"] = heap.push(t.events, t.counts[0]["ending"], time, j)


@noinline
def start_planned(t: ManagerTree, now: int) -> int:
    """Start the jobs whose time has come and put them into `todo`; how many. Find the next planned start."""
    if t.counts[0]["planned"] > now:
        return 0
    started = 0
    planned = FOREVER
    for m in range(len(t.managers)):
        j = t.managers[m]["head"]
        while j >= 0:
            following = t.plans[j]["after"]
            if t.plans[j]["start"] == now:
                _start(t, j)
                t.todo[started] = j
                started += 1
            else:
                planned = min(planned, t.plans[j]["start"])
            j = following
    t.counts[0]["planned"] = planned
    return started


@noinline
def stop(t: ManagerTree, j: int, now: int) -> None:
    """Let a job run no longer: its slots from now on are free, what it did is added up."""
    plan = t.plans[j]
    start = plan["start"]
    holder = t.managers[plan["place"]]
    home = t.managers[t.jobs[j]["home"]]["first"]
    begin = calendar.boundary(t.calendars, now)
    is_early = begin < plan["end"]
    t.counts[0]["early_exits"] += is_early
    plan["done"] += now - start
    for k in range(holder["first"], holder["end"]):
        nodes = nodes_on(t, j, k)
        if nodes > 0:
            if is_early:
                calendar.change(t.calendars, k, begin, plan["end"], nodes)
                tell_freed(t, k)
            take_from_cluster(t, j, k)
            if k != home:
                t.clusters[k]["supplied"] += nodes * (now - start)
                t.clusters[home]["consumed"] += nodes * (now - start)
            _record(t, j, k, nodes, now)


@noinline
def _record(t: ManagerTree, j: int, k: int, nodes: int, now: int) -> None:
    """Note an execution that ends now."""
    number = t.counts[0]["segments"]
    if number == len(t.segments):
        t.counts[0]["short"] = True
        return
    segment = t.segments[number]
    segment["job"] = j
    segment["cluster"] = k
    segment["nodes"] = nodes
    segment["tasks"] = tasks_on(t, j, k)
    segment["start"] = t.plans[j]["start"]
    segment["end"] = now
    t.counts[0]["segments"] = number + 1


@noinline
def _complete(t: ManagerTree, now: int) -> int:
    """Completions of this instant; how many jobs run on beyond their slots, which are put into `todo`."""
    overruns = 0
    while t.counts[0]["ending"] > 0 and t.events[0]["key"] == now:
        j = t.events[0]["job"]
        t.counts[0]["ending"] = heap.pop(t.events, t.counts[0]["ending"])
        if t.plans[j]["start"] + length(t, j) > now:
            t.todo[overruns] = j
            overruns += 1
        else:
            stop(t, j, now)
            t.plans[j]["status"] = _DONE
            t.counts[0]["present"] -= 1
    return overruns


# --- overruns -------------------------------------------------------------------------------------


@inline
def _can_be_displaced(t: ManagerTree, j: int, now: int) -> bool:
    """Whether a job waits for a slot that begins now, without a reservation."""
    plan = t.plans[j]
    return plan["status"] == _WAITING and plan["start"] == now and not plan["fixed"]


@inline
def _lacking(t: ManagerTree, j: int, k: int) -> int:
    """Nodes that a running job needs on a cluster to go on in the slot that begins now."""
    return nodes_on(t, j, k) - t.links[link_of(t, j, k)]["aside"]


@noinline
def _lacks(t: ManagerTree, j: int, now: int, with_displaced: bool) -> bool:
    """Whether a cluster has too few nodes in the slot that begins now for a job to go on."""
    holder = t.managers[t.plans[j]["place"]]
    lacks = False
    for k in range(holder["first"], holder["end"]):
        nodes = calendar.available_at(t.calendars, k, now)
        link = t.clusters[k]["head"]
        while link >= 0 and with_displaced:
            other = job_of_link(t, link)
            if _can_be_displaced(t, other, now):
                nodes += nodes_on(t, other, k)
            link = t.links[link]["after"]
        lacks = lacks or (nodes_on(t, j, k) > 0 and nodes < _lacking(t, j, k))
    return lacks


@noinline
def _displace(t: ManagerTree, j: int, now: int, first: int) -> int:
    """Take out all jobs that can be displaced where a job lacks nodes; returns where they end in `todo`.

    They are there from `first` on, in order, and stay among the waiting ones of their owners.
    """
    holder = t.managers[t.plans[j]["place"]]
    end = first
    for k in range(holder["first"], holder["end"]):
        if nodes_on(t, j, k) > 0 and calendar.available_at(t.calendars, k, now) < _lacking(t, j, k):
            link = t.clusters[k]["head"]
            while link >= 0:
                other = job_of_link(t, link)
                link = t.links[link]["after"]
                if _can_be_displaced(t, other, now):
                    place = end
                    turn = t.plans[other]["turn"]
                    while place > first and t.plans[t.todo[place - 1]]["turn"] > turn:
                        t.todo[place] = t.todo[place - 1]
                        place -= 1
                    t.todo[place] = other
                    end += 1
                    withdraw(t, other)
                    tell_freed_by_old(t, t.plans[other]["place"])
    return end


@noinline
def _run_on(t: ManagerTree, j: int, now: int) -> None:
    """Let a job hold the slot that begins now, too."""
    plan = t.plans[j]
    holder = t.managers[plan["place"]]
    plan["end"] = now + t.calendars.levels[0]["duration"]
    for k in range(holder["first"], holder["end"]):
        if nodes_on(t, j, k) > 0:
            calendar.change(t.calendars, k, now, plan["end"], -_lacking(t, j, k))
    time = min(plan["start"] + length(t, j), plan["end"])
    t.counts[0]["ending"] = heap.push(t.events, t.counts[0]["ending"], time, j)


@noinline
def _break_off(t: ManagerTree, options: CalendarOptions, j: int, now: int) -> None:
    """Kill a job, or suspend it: what is left of it is a new request, with the same estimate."""
    plan = t.plans[j]
    stop(t, j, now)
    elapsed = now - plan["start"]
    work = work_within(t, j, elapsed)
    plan["left"] -= work
    plan["lost"] += elapsed - work
    if not options.suspend:
        plan["status"] = _KILLED
        t.counts[0]["killed"] += 1
        t.counts[0]["present"] -= 1
        return
    plan["fixed"] = False
    t.counts[0]["suspended"] += 1
    place_anew(t, j, now, options.seed)
    let_wait(t, j, plan["owner"])


@noinline
def overrun(t: ManagerTree, options: CalendarOptions, now: int, overruns: int) -> None:
    """Let the first jobs of `todo` go on after their slots are over, in order, if others can make room."""
    for position in range(overruns):
        j = t.todo[position]
        if _lacks(t, j, now, True):
            _break_off(t, options, j, now)
        else:
            end = overruns
            if _lacks(t, j, now, False):
                end = _displace(t, j, now, overruns)
            _run_on(t, j, now)
            for k in range(overruns, end):
                other = t.todo[k]
                place_earliest(t, other, t.plans[other]["owner"], now, options.seed)
                t.counts[0]["displaced"] += 1
                t.counts[0]["delayed"] += t.plans[other]["start"] > now


# --- splits and moves -----------------------------------------------------------------------------


@noinline
def _trim(t: ManagerTree, k: int, begin: int, end: int) -> None:
    """Let the jobs in a slot that was split give back the parts that they do not need."""
    level, number = calendar.slot_at(t.calendars, begin)
    used = t.calendars.rows[k]["nodes"] - t.calendars.free[k, calendar.place_of(t.calendars, level, number)]
    link = t.clusters[k]["head"]
    while used > 0 and link >= 0:
        j = job_of_link(t, link)
        link = t.links[link]["after"]
        plan = t.plans[j]
        if plan["start"] < end and plan["end"] > begin:
            nodes = nodes_on(t, j, k)
            used -= nodes
            released = False
            level, number = calendar.slot_at(t.calendars, max(begin, plan["start"]))
            first = calendar.begins(t.calendars, level, number)
            if begin < first:
                calendar.change(t.calendars, k, begin, first, nodes)
                released = True
            level, number = calendar.slot_at(t.calendars, min(end, plan["end"]) - 1)
            behind = calendar.begins(t.calendars, level, number + 1)
            if behind < end:
                calendar.change(t.calendars, k, behind, end, nodes)
                released = True
            if released:
                tell_loose(t, k)


@noinline
def split(t: ManagerTree) -> bool:
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
                    tell_loose(t, k)
    return happened


@noinline
def _move(t: ManagerTree, j: int, m: int, begin: int, seed: int) -> None:
    """Give a waiting job an earlier place if its owner finds one."""
    plan = t.plans[j]
    place = plan["place"]
    start = plan["start"]
    end = plan["end"]
    if start <= begin:
        return
    if is_leaf(t, m):
        earlier = first_fit(t, j, 0, m, begin, start, start)
        if earlier < start:
            withdraw(t, j)
            plan["start"] = earlier
            plan["end"] = earlier + end - start
            install(t, j)
            t.counts[0]["moves"] += 1
            tell_freed(t, t.managers[m]["first"])
        return
    spanning = not is_leaf(t, place)
    if spanning:
        withdraw(t, j)
    begin_search(t, m, begin)
    moved = False
    searching = True
    while searching:
        x, earlier = search(t, j, m, start, NOWHERE if spanning else place, start, seed)
        if x >= 0:
            if not spanning:
                withdraw(t, j)
            moved = commit(t, j, m, x, earlier, seed)
            if not moved and not spanning:
                install(t, j)
        searching = x >= 0 and not moved
    if moved:
        t.counts[0]["moves"] += 1
        t.counts[0]["messages"] += 1
        tell_freed_by_old(t, place)
    elif spanning:
        install(t, j)


@noinline
def move_forward(t: ManagerTree, options: CalendarOptions, now: int, has_split: bool) -> None:
    """Let waiting jobs without reservation move forward where slots were split or something was released.

    Where nothing was released since the jobs of a manager moved last, none of them can move: this is
    looked at only to save time. Shadow calendars may tell of what was released long ago.
    """
    begin = calendar.boundary(t.calendars, now)
    for m in t.order:
        manager = t.managers[m]
        if (has_split or manager["freed"]) and (manager["loose"] or manager["shadow"] >= 0):
            manager["loose"] = False
            j = manager["head"]
            while j >= 0:
                if not t.plans[j]["fixed"] and t.plans[j]["start"] < FOREVER:
                    _move(t, j, m, begin, options.seed)
                j = t.plans[j]["after"]
    for m in t.order:
        t.managers[m]["freed"] = False


@noinline
def refresh(t: ManagerTree, now: int) -> None:
    """Let managers get their shadow calendars anew when it is time."""
    for m in t.order:
        manager = t.managers[m]
        if manager["refresh"] <= now:
            for k in range(manager["first"], manager["end"]):
                calendar.copy_row(t.calendars, k, row_offset(t, m) + k)
            t.counts[0]["messages"] += manager["end"] - manager["first"]
            while manager["refresh"] <= now:
                manager["refresh"] += manager["period"]


# --- the clock ------------------------------------------------------------------------------------


@inline
def is_over(t: ManagerTree) -> bool:
    """Whether all jobs were submitted and none waits or runs."""
    return t.counts[0]["arrival"] == len(t.jobs) and t.counts[0]["present"] == 0


@noinline
def next_event(t: ManagerTree) -> int:
    """Time of the next submission, end, planned start, split, or update of shadow calendars."""
    now = min(t.counts[0]["planned"], calendar.next_split(t.calendars))
    if t.counts[0]["ending"] > 0:
        now = min(now, t.events[0]["key"])
    if t.counts[0]["arrival"] < len(t.jobs):
        now = min(now, t.jobs[t.counts[0]["arrival"]]["submit"])
    for m in t.order:
        now = min(now, t.managers[m]["refresh"])
    return now


@noinline
def instant(t: ManagerTree, options: CalendarOptions, now: int) -> None:
    """All that happens at one instant; see the module."""
    calendar.consume(t.calendars, now)
    overruns = _complete(t, now)
    has_split = split(t)
    overrun(t, options, now, overruns)
    refresh(t, now)
    move_forward(t, options, now, has_split)
    while t.counts[0]["arrival"] < len(t.jobs) and t.jobs[t.counts[0]["arrival"]]["submit"] == now:
        _submit(t, options, now)
    start_planned(t, now)


@inline
def is_short(t: ManagerTree) -> bool:
    """Whether there was no room for slots or segments, so that what was simulated is wrong."""
    return t.calendars.tally[0]["short"] != 0 or t.counts[0]["short"] != 0


@jit
def schedule(t: ManagerTree, options: CalendarOptions, instants: int) -> int:
    """Simulate so many instants, to the end of the last job or until there is no room; the last instant."""
    t, options = by_reference(t), by_reference(options)
    now = NOWHERE
    while instants > 0 and not is_over(t) and not is_short(t):
        now = next_event(t)
        instant(t, options, now)
        instants -= 1
    return now
