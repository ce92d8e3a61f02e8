"""A dynamic grid whose nodes fail, whose users give up, and whose jobs wait for other jobs.

The loop is that of `loop`, which says what happens in which order at one instant. Besides, in this order:

- after jobs have ended, nodes are back, take no more jobs, or go down and kill who is there;
- jobs enter when they are eligible, and users give up, instead of submissions
  (`gridsched.engine.job_lifecycle`). That is repeated at the end of an instant in which others
  became eligible by it.

The schedulers count processors. Where nodes fail, it is kept besides which ones everybody has. At the end of
an instant those who have gone have left theirs; then those who are new get the lowest ones that are free and
not *closed*, in order of job numbers. A closed processor is out of order, drained or in maintenance: nothing
starts on it, and it is not free. Who had it before keeps it.

What is closed and idle is among the runs of its cluster, so that local schedulers plan with it: until it is
known to be back, or forever.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import heap, line
from gridsched.engine.clusters import Order
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.job_lifecycle import (
    Fate,
    Lifecycles,
    let_enter,
    let_give_up,
    next_of_lifecycles,
    notify_end,
    notify_start,
)
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.jobs import (
    close_proxies,
    complete,
    drop_all,
    end_hold,
    end_spell,
    saved,
    suspend,
    with_checkpoints,
    write,
)
from gridsched.systems.dynamic_grid.kernels.local import enter, first_waiting, leave_queue, settle, unmark
from gridsched.systems.dynamic_grid.kernels.loop import (
    change_members,
    let_report,
    look_at_clocks,
    next_instant,
    note_departures,
    receive,
)
from gridsched.systems.dynamic_grid.kernels.queue import forget_refusals, scheduling_pass, set_most, take
from gridsched.systems.dynamic_grid.kernels.state import (
    AHEAD,
    GONE,
    GRID_QUEUE,
    LOCAL_QUEUE,
    LOCAL_RUN,
    NEW,
    NOBODY,
    REJECTED,
    DynamicGridArrays,
    DynamicGridOptions,
    expect,
    forget,
    has_room,
    mark_dirty,
    room,
    set_due,
)

_REJECTED = int(Fate.REJECTED)
_LOST = int(Fate.LOST)
_ENTRY = int(Order.FCFS)
_SHORTEST = int(Order.SHORTEST)
_SMALLEST = int(Order.SMALLEST)
_AREA = int(Order.SMALLEST_AREA)

OPEN, CLOSE, KILL = 0, 1, 2
"""What happens to the processors of an outage, in this order at one instant."""

PLACE, END, LOSE = 0, 1, 2
"""What becomes of a job that is killed: see `Cluster.requeue`."""

OUTAGE = np.dtype(
    [
        ("cluster", np.int64),
        ("first", np.int64),  # the lowest of its processors
        ("end", np.int64),  # the processor after the highest one
        ("known", np.int64),  # when it is known to be over, FOREVER if it is not
        ("fleeing", np.int64),  # whether grid tasks leave before
        ("going_on", np.int64),  # whether the processors are closed for it
    ]
)
"""A time in which neighbouring processors are closed."""

NODE_EVENT = np.dtype([("time", np.int64), ("kind", np.int64), ("outage", np.int64)])
"""Something that happens to the processors of an outage."""

GAP = np.dtype([("end", np.int64), ("processors", np.int64)])
"""Closed processors that nobody has, with the time when they are expected to be back."""

STATE = np.dtype(
    [
        ("node_event", np.int64),  # the next one
        ("happened", np.int64),  # whether one has at this instant
        ("entering", np.int64),  # jobs that enter at this instant
        ("entered", np.int64),  # those of them that have
        ("asked", np.int64),  # whether users are to be asked whether they give up
        ("entries", np.int64),  # jobs that have come to the ends of queues
    ]
)
"""Scalars of `FailureArrays`."""


class FailureArrays(NamedTuple):
    """What a grid needs besides: m clusters of up to p processors, n jobs, h holds."""

    fails: Any  # int64[m], whether nodes of the cluster fail
    requeue: Any  # int64[m]
    outages: Any  # OUTAGE[...]
    node_events: Any  # HAPPENING[...], by time and kind
    owner: Any  # int64[m, p], who has a processor: a job, n + a hold, or NOBODY
    closed: Any  # int64[m, p], outages for which it is closed
    back: Any  # int64[m, p], when it is expected to be back
    gaps: Any  # GAP[m, p], those that are among the runs
    gap_count: Any  # int64[m]
    holders: Any  # int64[p + 1], scratch: who has processors of a cluster
    fresh: Any  # int64[p + 1], scratch: who is new there
    keeps: Any  # int64[n + h], scratch: how many processors each keeps
    wants: Any  # int64[n + h], scratch: how many more each is to have
    entering: Any  # int64[n], scratch: jobs that enter, or leave
    work: Any  # int64[n], seconds that remain of a local job, without checkpoints
    guess: Any  # int64[n], seconds that are expected to
    killed: Any  # int64[n], how often each job was killed
    state: Any  # STATE[1]


def allocate(
    grid: DynamicGridArrays, fails: Any, requeue: Any, outages: Any, node_events: Any, work: Any, guess: Any
) -> FailureArrays:
    """Arrays for an idle grid; names are those of `FailureArrays`."""
    most = int((grid.clusters["processors"] * fails).max(initial=0)) + 1
    shape, jobs = (len(grid.clusters), most), len(grid.requests)
    return FailureArrays(
        fails=fails,
        requeue=requeue,
        outages=outages,
        node_events=node_events,
        owner=np.full(shape, NOBODY, np.int64),
        closed=np.zeros(shape, np.int64),
        back=np.zeros(shape, np.int64),
        gaps=np.empty(shape, GAP),
        gap_count=np.zeros(shape[0], np.int64),
        holders=np.empty(most, np.int64),
        fresh=np.empty(most, np.int64),
        keeps=np.zeros(jobs + len(grid.holds), np.int64),
        wants=np.zeros(jobs + len(grid.holds), np.int64),
        entering=np.empty(jobs, np.int64),
        work=work,
        guess=guess,
        killed=np.zeros(jobs, np.int64),
        state=np.zeros(1, STATE),
    )


# --- who has which processors ---------------------------------------------------------------------


@inline
def _take_over(g: DynamicGridArrays, f: FailureArrays, i: int) -> None:
    """Let tasks that have begun to move hold the processors that they had."""
    for entry in range(g.clock[0]["moving"]):
        k = g.moves[entry]["job"]
        if g.holds[k]["cluster"] == i and g.holds[k]["placed"] == 0:
            g.holds[k]["placed"] = 1
            for p in range(g.clusters[i]["processors"]):
                if f.owner[i, p] == g.holds[k]["job"]:
                    f.owner[i, p] = len(g.requests) + k


@noinline
def _list_holders(g: DynamicGridArrays, f: FailureArrays, i: int) -> int:
    """List who is to have processors of a cluster, how many, and how many of them as before."""
    count = 0
    for k in range(g.state[i, 0]["ending"]):
        j = g.local_ends[i, k]["job"]
        f.holders[count] = j
        f.keeps[j] = g.jobs[j]["processors"]
        f.wants[j] = g.jobs[j]["processors"]
        count += 1
    p = g.clusters[i]["part"]
    while p != NOBODY:
        j = g.parts[p]["job"]
        f.holders[count] = j
        f.keeps[j] = g.parts[p]["placed"]
        f.wants[j] = g.parts[p]["processors"]
        g.parts[p]["placed"] = g.parts[p]["processors"]
        count += 1
        p = g.parts[p]["next"]
    for entry in range(g.clock[0]["moving"]):
        k = g.moves[entry]["job"]
        if g.holds[k]["cluster"] == i:
            f.holders[count] = len(g.requests) + k
            f.keeps[len(g.requests) + k] = g.holds[k]["processors"]
            f.wants[len(g.requests) + k] = g.holds[k]["processors"]
            count += 1
    return count


@inline
def _release(g: DynamicGridArrays, f: FailureArrays, i: int) -> None:
    """Take processors from who has gone, of a job that has fewer now the highest ones."""
    for p in range(g.clusters[i]["processors"]):
        holder = f.owner[i, p]
        if holder == NOBODY:
            continue
        if f.keeps[holder] > 0:
            f.keeps[holder] -= 1
            f.wants[holder] -= 1
        else:
            f.owner[i, p] = NOBODY


@inline
def _give(f: FailureArrays, i: int, count: int) -> None:
    """Give the lowest processors to who is new among so many holders, in order of their numbers."""
    fresh = 0
    for k in range(count):
        holder = f.holders[k]
        f.keeps[holder] = 0
        if f.wants[holder] > 0:
            place = fresh
            while place > 0 and f.fresh[place - 1] > holder:
                f.fresh[place] = f.fresh[place - 1]
                place -= 1
            f.fresh[place] = holder
            fresh += 1
    p = 0
    for k in range(fresh):
        holder = f.fresh[k]
        while f.wants[holder] > 0:
            if f.owner[i, p] == NOBODY and f.closed[i, p] == 0:
                f.owner[i, p] = holder
                f.wants[holder] -= 1
            p += 1


@inline
def _add_to_gap(f: FailureArrays, i: int, p: int) -> None:
    """Count a closed processor that nobody has among those that are back at the same time."""
    count = f.gap_count[i]
    k = 0
    while k < count and f.gaps[i, k]["end"] != f.back[i, p]:
        k += 1
    if k == count:
        f.gaps[i, k]["end"] = f.back[i, p]
        f.gaps[i, k]["processors"] = 0
        f.gap_count[i] += 1
    f.gaps[i, k]["processors"] += 1


@noinline
def _set_gaps(g: DynamicGridArrays, f: FailureArrays, i: int) -> int:
    """Put what is closed and nobody's among the runs; count for each holder what it has of closed ones."""
    first = len(g.requests) + len(g.holds)
    for k in range(f.gap_count[i]):
        forget(g, i, first + k, int(f.gaps[i, k]["end"]), int(f.gaps[i, k]["processors"]))
    f.gap_count[i] = 0
    total = 0
    for p in range(g.clusters[i]["processors"]):
        if f.closed[i, p] > 0:
            if f.owner[i, p] == NOBODY:
                _add_to_gap(f, i, p)
                total += 1
            else:
                f.keeps[f.owner[i, p]] += 1
    for k in range(f.gap_count[i]):
        expect(g, i, first + k, int(f.gaps[i, k]["end"]), int(f.gaps[i, k]["processors"]))
    return total


@inline
def _count(g: DynamicGridArrays, f: FailureArrays, i: int, idle: int) -> None:
    """Count what is free, and what parts and tasks on their way would leave, with so many closed and idle."""
    cluster = g.clusters[i]
    free = cluster["processors"] - idle
    for k in range(g.state[i, 0]["ending"]):
        free -= g.jobs[g.local_ends[i, k]["job"]]["processors"]
    cluster["grid"] = 0
    p = cluster["part"]
    while p != NOBODY:
        own = g.parts[p]
        free -= own["processors"]
        own["closed"] = f.keeps[own["job"]]
        cluster["grid"] += own["processors"] - own["closed"]
        p = own["next"]
    cluster["leaving"] = 0
    for entry in range(g.clock[0]["moving"]):
        k = g.moves[entry]["job"]
        hold = g.holds[k]
        if hold["cluster"] == i:
            free -= hold["processors"]
            hold["closed"] = f.keeps[len(g.requests) + k]
            cluster["leaving"] += hold["processors"] - hold["closed"]
    g.state[i, 0]["free"] = free
    cluster["loose"] = 0


@noinline
def _settle_owners(g: DynamicGridArrays, f: FailureArrays) -> None:
    """Find out who has which processors, where that may have changed, and what is free."""
    for i in range(len(g.clusters)):
        if f.fails[i] == 0 or g.clusters[i]["changed"] == 0:
            continue
        g.clusters[i]["changed"] = 0
        _take_over(g, f, i)
        count = _list_holders(g, f, i)
        _release(g, f, i)
        _give(f, i, count)
        _count(g, f, i, _set_gaps(g, f, i))
        for k in range(count):
            f.keeps[f.holders[k]] = 0


# --- nodes ----------------------------------------------------------------------------------------


@inline
def _close(g: DynamicGridArrays, f: FailureArrays, row: int) -> None:
    """Close the processors of an outage; tell grid tasks there to leave before it begins, if it is known."""
    outage = f.outages[row]
    i = outage["cluster"]
    outage["going_on"] = 1
    for p in range(outage["first"], outage["end"]):
        g.clusters[i]["closed"] += int(f.closed[i, p] == 0)
        f.closed[i, p] += 1
        f.back[i, p] = max(f.back[i, p], outage["known"])
        if outage["fleeing"] != 0:
            own = g.clusters[i]["part"]
            while own != NOBODY:
                if g.parts[own]["job"] == f.owner[i, p]:
                    g.parts[own]["fleeing"] = 1
                own = g.parts[own]["next"]


@inline
def _open(g: DynamicGridArrays, f: FailureArrays, row: int) -> None:
    """Let an outage be over."""
    outage = f.outages[row]
    i = outage["cluster"]
    outage["going_on"] = 0
    for p in range(outage["first"], outage["end"]):
        f.closed[i, p] -= 1
        f.back[i, p] = 0
        if f.closed[i, p] == 0:
            g.clusters[i]["closed"] -= 1
            continue
        for k in range(len(f.outages)):
            other = f.outages[k]
            here = other["cluster"] == i and other["first"] <= p < other["end"]
            if here and other["going_on"] != 0:
                f.back[i, p] = max(f.back[i, p], other["known"])


@inline
def _victim(g: DynamicGridArrays, f: FailureArrays, row: int) -> int:
    """First job, by number, that has processors of an outage; NOBODY if there is none."""
    outage = f.outages[row]
    first = NOBODY
    for p in range(outage["first"], outage["end"]):
        j = f.owner[outage["cluster"], p]
        if j >= len(g.requests):
            j = g.holds[j - len(g.requests)]["job"]
        if j != NOBODY and (first == NOBODY or j < first):
            first = j
    return first


@inline
def _disown(g: DynamicGridArrays, f: FailureArrays, i: int, holder: int) -> None:
    """Let somebody have no processors of a cluster."""
    if f.fails[i] != 0:
        for p in range(g.clusters[i]["processors"]):
            if f.owner[i, p] == holder:
                f.owner[i, p] = NOBODY


@inline
def _lose(g: DynamicGridArrays, a: Lifecycles, j: int, now: int) -> None:
    """Let a job be lost."""
    g.progress[j]["state"] = GONE
    g.progress[j]["finish"] = now
    g.clock[0]["present"] -= 1
    a.jobs[j]["fate"] = _LOST
    notify_end(a, j, now, True)


@inline
def _set_keys(g: DynamicGridArrays, f: FailureArrays, j: int, enters: bool) -> None:
    """Say where a job stands in the queues of its home; a job that `enters` comes last of its equals."""
    home = g.requests[j]["home"]
    if home == NOBODY:
        return
    f.state[0]["entries"] += int(enters)
    estimate = float(g.jobs[j]["estimate"])
    processors = float(g.jobs[j]["processors"])
    for backfills in range(2):
        order = g.policies[home]["backfill_order"] if backfills else g.policies[home]["order"]
        key = g.order_key[j] if backfills else g.queue_key[j]
        if order == _SHORTEST:
            key = estimate
        elif order == _SMALLEST:
            key = processors
        elif order == _AREA:
            key = estimate * processors
        elif order == _ENTRY and enters:
            key = float(f.state[0]["entries"])
        if backfills:
            g.order_key[j] = key
        else:
            g.queue_key[j] = key


@noinline
def _kill_local(
    g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, j: int, now: int, o: DynamicGridOptions
) -> None:
    """Take a local job off its processors; it waits again, or is lost."""
    i = g.requests[j]["home"]
    start, processors = int(g.starts[j]), int(g.jobs[j]["processors"])
    kept = 0
    for k in range(g.state[i, 0]["ending"]):
        if g.local_ends[i, k]["job"] != j:
            # what is kept is a heap in front of this entry
            kept = heap.push(g.local_ends[i], kept, g.local_ends[i, k]["key"], g.local_ends[i, k]["job"])
    g.state[i, 0]["ending"] = kept
    forget(g, i, j, expected_end(start, int(g.jobs[j]["estimate"]), o.overrun, now), processors)
    _disown(g, f, i, j)
    write(g, j, i, processors, int(g.requests[j]["processors"]), start, now, False, True)
    interval, pause = g.clusters[i]["interval"], g.clusters[i]["pause"]
    done = saved(now - start, interval, pause)
    f.work[j] -= done
    f.guess[j] = max(1, f.guess[j] - done)
    g.jobs[j]["run"] = with_checkpoints(f.work[j], interval, pause)
    g.jobs[j]["estimate"] = min(LARGEST, with_checkpoints(f.guess[j], interval, pause))
    if o.keeps:
        # should it be sent to the grid scheduler
        g.progress[j]["left"] = max(0, g.progress[j]["left"] - done * o.scale * g.clusters[i]["pace"])
        g.progress[j]["served"] += done * o.scale
    g.starts[j] = NOBODY
    if f.requeue[i] == LOSE:
        _lose(g, a, j, now)
        return
    g.progress[j]["headed"] = NOBODY
    _set_keys(g, f, j, f.requeue[i] == END)
    enter(g, i, j)


@noinline
def _kill_grid(
    g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, j: int, i: int, now: int, o: DynamicGridOptions
) -> None:
    """Stop a grid job, a site of which has failed; it goes to CJ, or is lost."""
    clock = g.clock[0]
    kept = 0
    for entry in range(clock["moving"]):
        until, k = g.moves[entry]["key"], g.moves[entry]["job"]
        if g.holds[k]["job"] != j:
            kept = heap.push(g.moves, kept, until, k)
            continue
        there = g.holds[k]["cluster"]
        g.segments[g.holds[k]["segment"]]["end"] = now
        end_hold(g, k, until)
        _disown(g, f, there, len(g.requests) + k)
        mark_dirty(g, there)
    clock["moving"] = kept
    p = g.progress[j]["part"]
    while p != NOBODY:
        _disown(g, f, g.parts[p]["cluster"], j)
        p = g.parts[p]["of_job"]
    end_spell(g, j, now, True, o)
    if f.requeue[i] == LOSE:
        drop_all(g, j)
        close_proxies(g, j, now)
        _lose(g, a, j, now)
    else:
        suspend(g, j, now, o)


@noinline
def _let_nodes_change(
    g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, now: int, o: DynamicGridOptions
) -> bool:
    """Let happen to nodes what does now; return whether there was room for it, and is for what follows."""
    state = f.state[0]
    while state["node_event"] < len(f.node_events) and f.node_events[state["node_event"]]["time"] == now:
        row = f.node_events[state["node_event"]]["outage"]
        kind = f.node_events[state["node_event"]]["kind"]
        i = f.outages[row]["cluster"]
        j = _victim(g, f, row) if kind == KILL else NOBODY
        while j != NOBODY:
            if not has_room(g):
                return False
            f.killed[j] += 1
            if g.progress[j]["state"] == LOCAL_RUN:
                _kill_local(g, a, f, j, now, o)
            else:
                _kill_grid(g, a, f, j, i, now, o)
            j = _victim(g, f, row)
        if kind == CLOSE:
            _close(g, f, row)
        elif kind == OPEN:
            _open(g, f, row)
        state["node_event"] += 1
        state["happened"] = 1
        mark_dirty(g, i)
    return has_room(g)


@inline
def _after_nodes(g: DynamicGridArrays, f: FailureArrays, now: int, o: DynamicGridOptions) -> None:
    """What happens between the nodes and the submissions of an instant."""
    if f.state[0]["happened"] != 0:
        f.state[0]["happened"] = 0
        _settle_owners(g, f)
        for i in range(len(g.clusters)):
            set_due(g, i)
        forget_refusals(g)
        g.clock[0]["capacity"] = NOBODY
        set_most(g, o)
    look_at_clocks(g, now, o)
    change_members(g, now, o)


# --- jobs that enter and leave --------------------------------------------------------------------


@inline
def _tell_news(g: DynamicGridArrays, a: Lifecycles, now: int) -> None:
    """Tell those who wait for others which have started and ended."""
    for k in range(g.clock[0]["news"]):
        j = g.news[k]
        if j < len(g.requests):
            a.jobs[j]["started"] = 1
            notify_start(a, j, now)
        else:
            notify_end(a, j - len(g.requests), now, True)
    g.clock[0]["news"] = 0


@inline
def _has_place(g: DynamicGridArrays) -> bool:
    """Whether the queues have room for one more job."""
    longest = 0
    for i in range(len(g.clusters)):
        # those that run may come back
        longest = max(longest, g.state[i, 0]["waiting"] + g.state[i, 0]["ending"])
    return longest < room(g.queues) and g.clock[0]["present"] < room(g.grid_queues)


@inline
def _give_up(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Let a job leave wherever it waits."""
    waits = g.progress[j]["state"]
    if waits == LOCAL_QUEUE:
        home = g.requests[j]["home"]
        if g.clusters[home]["yielding"] != 0 and first_waiting(g, home, now, o, score) == j:
            unmark(g, home)
        leave_queue(g, home, j)
        mark_dirty(g, home)
    elif waits == GRID_QUEUE:
        queue = line.row(g.grid_queues, NEW)
        place = queue.span[0]["first"]
        while queue.job[place] != j:
            place += 1
        take(g, NEW, place)
    if waits != AHEAD:
        g.clock[0]["present"] -= 1
    g.progress[j]["state"] = GONE


@noinline
def _let_in_and_out(
    g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, now: int, o: DynamicGridOptions, score: Any
) -> bool:
    """Let jobs enter and users give up; return whether there was room."""
    state = f.state[0]
    while True:
        while state["entered"] < state["entering"]:
            if not _has_place(g):
                return False
            j = f.entering[state["entered"]]
            state["entered"] += 1
            g.jobs[j]["submit"] = now
            _set_keys(g, f, j, True)
            receive(g, j, now)
            if g.progress[j]["state"] == REJECTED:
                a.jobs[j]["fate"] = _REJECTED
                notify_end(a, j, now, False)
        if state["asked"] == 0:
            for k in range(let_give_up(a, now, f.entering)):
                _give_up(g, f.entering[k], now, o, score)
            state["asked"] = 1
        if next_of_lifecycles(a) != now:
            return True
        state["entering"] = let_enter(a, now, f.entering)
        state["entered"] = 0
        state["asked"] = 0


# --- the loop -------------------------------------------------------------------------------------


@noinline
def _next_instant(g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, o: DynamicGridOptions) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    now = min(next_instant(g, o), next_of_lifecycles(a))
    node_event = f.state[0]["node_event"]
    return min(now, f.node_events[node_event]["time"]) if node_event < len(f.node_events) else now


_NODES, _JOBS, _ROUNDS = 1, 2, 3
"""How far an instant is: what happens next."""


@jit
def simulate(
    g: DynamicGridArrays, a: Lifecycles, f: FailureArrays, o: DynamicGridOptions, score: Any
) -> bool:
    """Simulate the grid as `loop.simulate` does, with the lifecycles of jobs and the events of nodes."""
    g, a, f, o = by_reference(g), by_reference(a), by_reference(f), by_reference(o)
    clock = g.clock[0]
    while True:
        if clock["within"] == 0:
            now = _next_instant(g, a, f, o)
            if now == FOREVER:
                return True
            if not has_room(g):
                return False
            clock["now"] = now
            clock["within"] = _NODES
            clock["reported"] = 0
            complete(g, now, o)
            _tell_news(g, a, now)
            _settle_owners(g, f)
        if clock["within"] == _NODES:
            if not _let_nodes_change(g, a, f, clock["now"], o):
                return False
            _after_nodes(g, f, clock["now"], o)
            clock["within"] = _JOBS
        while clock["within"] != 0:
            if clock["within"] == _JOBS:
                if not _let_in_and_out(g, a, f, clock["now"], o, score):
                    return False
                clock["within"] = _ROUNDS
            settle(g, clock["now"], o, score)
            let_report(g, clock["now"], o)
            scheduling_pass(g, clock["now"], o)
            if clock["full"] != 0:
                clock["full"] = 0
                return False
            complete(g, clock["now"], o)
            _tell_news(g, a, clock["now"])
            if clock["departing"] > 0:
                note_departures(g, clock["now"])
            if clock["dirty"] == 0:
                clock["within"] = _JOBS if next_of_lifecycles(a) == clock["now"] else 0
        _settle_owners(g, f)
