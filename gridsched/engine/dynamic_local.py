"""Local schedulers of a dynamic grid: section 3, steps 2 and 3, of Goldman and Queiroz.

The first job of the queue starts if its processors are free. If they are not, it waits, grid jobs make place
for it, or it is sent to the grid scheduler. Grid jobs that have been told to make place do so at the end of
their supersteps, unless the local job starts before.
"""

from __future__ import annotations

from gridsched.engine import line, running
from gridsched.engine.dynamic_jobs import boundary, evict, is_wanted, start_local, tidy
from gridsched.engine.dynamic_state import (
    GRID_QUEUE,
    NEW,
    NOBODY,
    Grid,
    Options,
    set_due,
)
from gridsched.engine.jit import leaf, part
from gridsched.engine.records import FOREVER, LARGEST

_WAIT, _YIELD, _SEND = 0, 1, 2


@leaf
def _first(g: Grid, i: int) -> int:
    """First job of a local queue, which is not empty."""
    queue = line.row(g.queues, i)
    return int(queue.job[queue.span[0]["first"]])


@part
def _leave_queue(g: Grid, i: int, place: int) -> None:
    """Let the job of a place wait no longer in a local queue."""
    queue = line.row(g.queues, i)
    line.leave(queue, place)
    g.sites[i]["waiting"] -= 1
    tidy(queue, g.sites[i]["waiting"])


@leaf
def _unmark(g: Grid, i: int) -> None:
    """Withdraw what grid jobs were told."""
    p = g.sites[i]["part"]
    while p != NOBODY:
        g.parts[p]["marked"] = 0
        p = g.parts[p]["next"]
    g.sites[i]["yielding"] = 0


@part
def start_first(g: Grid, i: int, now: int, o: Options) -> None:
    """Start local jobs in order up to the first that does not fit."""
    queue = line.row(g.queues, i)
    while g.sites[i]["waiting"] > 0:
        j = _first(g, i)
        if g.requests[j]["processors"] > g.sites[i]["free"]:
            return
        start_local(g, i, j, now, o)
        _leave_queue(g, i, queue.span[0]["first"])
        if g.sites[i]["yielding"] != 0:
            _unmark(g, i)


@leaf
def _expected_start(g: Grid, i: int, needed: int) -> int:
    """When so many processors, more than are free, are expected to be free."""
    site = g.sites[i]
    time, _ = running.shadow(g.blocks[i], g.runs[i], site["blocks"], site["free"], needed)
    return time


@part
def _decide(g: Grid, i: int, j: int, o: Options) -> int:
    """What happens to the first job of a queue, which does not fit."""
    site = g.sites[i]
    needed = g.requests[j]["processors"]
    if site["member"] == 0:
        return _WAIT
    can_yield = site["free"] + site["leaving"] + site["grid"] >= needed
    if can_yield and (site["yielding"] != 0 or o.prefers_migration):
        return _YIELD
    in_time = o.delta_t == FOREVER
    if 0 < o.delta_t < FOREVER:
        in_time = _expected_start(g, i, needed) <= g.progress[j]["headed"] + o.delta_t
    if in_time:
        return _WAIT
    return _YIELD if can_yield else _SEND


@leaf
def _victim(g: Grid, i: int, missing: int, o: Options) -> int:
    """Part that is told next to make place.

    The one that came last; or the smallest that suffices, else the largest, of equal ones the last.
    """
    p = g.sites[i]["last_part"]
    chosen = NOBODY
    best = 0
    while p != NOBODY:
        size = g.parts[p]["processors"]
        if g.parts[p]["marked"] == 0:
            if o.latest_victim:
                return p
            if size >= missing:
                better = chosen == NOBODY or best < missing or size < best
            else:
                better = chosen == NOBODY or (best < missing and size > best)
            if better:
                chosen = p
                best = size
        p = g.parts[p]["previous"]
    return chosen


@part
def _mark(g: Grid, i: int, j: int, o: Options) -> None:
    """Tell as many grid jobs to make place as a local job needs."""
    site = g.sites[i]
    missing = g.requests[j]["processors"] - site["free"] - site["leaving"]
    p = site["part"]
    while p != NOBODY:
        if g.parts[p]["marked"] != 0:
            missing -= g.parts[p]["processors"]
        p = g.parts[p]["next"]
    while missing > 0:
        p = _victim(g, i, missing, o)
        g.parts[p]["marked"] = 1
        missing -= g.parts[p]["processors"]


@part
def _set_timer(g: Grid, i: int, now: int, o: Options) -> None:
    """Find when the next superstep ends after which a part is to leave."""
    site = g.sites[i]
    time = FOREVER
    p = site["part"]
    while p != NOBODY:
        if is_wanted(g, p):
            time = min(time, boundary(g, g.parts[p]["job"], now, o.superstep))
        p = g.parts[p]["next"]
    site["timer"] = time
    set_due(g, i)


@part
def enter_new(g: Grid, j: int, now: int) -> None:
    """Let a job wait in NJ."""
    queue = line.row(g.grid_queues, NEW)
    request = g.requests[j]
    g.progress[j]["state"] = GRID_QUEUE
    g.progress[j]["sent"] = now
    line.append(queue, j, request["processors"], line.as_column(min(request["estimate"], LARGEST)))
    g.clock[0]["new"] += 1


@part
def _backfill(g: Grid, i: int, now: int, o: Options) -> None:
    """Start later local jobs that do not delay the first one, as far as it is known."""
    site = g.sites[i]
    queue = line.row(g.queues, i)
    needed = int(g.requests[_first(g, i)]["processors"])
    shadow, available = running.shadow(g.blocks[i], g.runs[i], site["blocks"], site["free"], needed)
    extra = available - needed
    place = queue.span[0]["first"] + 1
    while site["free"] > 0:
        narrow = line.as_column(min(extra, site["free"]))
        wide = line.as_column(site["free"])
        place = line.next_fit(queue, place, narrow, wide, line.as_column(shadow - now))
        if place == queue.span[0]["end"]:
            return
        j = int(queue.job[place])
        if g.requests[j]["estimate"] > shadow - now:
            extra -= g.requests[j]["processors"]
        start_local(g, i, j, now, o)
        line.leave(queue, place)
        site["waiting"] -= 1


@part
def look_after(g: Grid, i: int, now: int, o: Options) -> None:
    """Pass of a local scheduler, without the evictions."""
    site = g.sites[i]
    start_first(g, i, now, o)
    site["in_time"] = 0
    going_on = site["waiting"] > 0
    while going_on:
        j = _first(g, i)
        if g.progress[j]["headed"] == NOBODY:
            g.progress[j]["headed"] = now
        decision = _decide(g, i, j, o)
        going_on = decision == _SEND
        if decision == _YIELD:
            site["yielding"] = 1
            if g.progress[j]["yielded"] == NOBODY:
                g.progress[j]["yielded"] = now
            _mark(g, i, j, o)
        elif decision == _WAIT:
            _unmark(g, i)
            site["in_time"] = 1
            if o.easy:
                _backfill(g, i, now, o)
                tidy(line.row(g.queues, i), site["waiting"])
        else:
            _unmark(g, i)
            _leave_queue(g, i, line.row(g.queues, i).span[0]["first"])
            site["sent"] += 1
            enter_new(g, j, now)
            start_first(g, i, now, o)
            going_on = site["waiting"] > 0
    _set_timer(g, i, now, o)


@part
def make_place(g: Grid, i: int, now: int, o: Options) -> None:
    """Evict what has to leave a cluster and is at the end of a superstep."""
    p = g.sites[i]["part"]
    while p != NOBODY:
        j = g.parts[p]["job"]
        if is_wanted(g, p) and boundary(g, j, now, o.superstep) == now:
            evict(g, j, i, now, o)
            p = g.sites[i]["part"]
        else:
            p = g.parts[p]["next"]
    g.sites[i]["timer"] = FOREVER


@part
def settle(g: Grid, now: int, o: Options) -> None:
    """Passes of all local schedulers where something changed, until nothing does."""
    clock = g.clock[0]
    while clock["touched"] != 0:
        clock["touched"] = 0
        for i in range(len(g.sites)):
            if g.sites[i]["touched"] != 0:
                start_first(g, i, now, o)
        for i in range(len(g.sites)):
            if g.sites[i]["touched"] != 0:
                g.sites[i]["touched"] = 0
                look_after(g, i, now, o)
        for i in range(len(g.sites)):
            if g.sites[i]["timer"] == now:
                make_place(g, i, now, o)
