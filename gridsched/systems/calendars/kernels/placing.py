"""Where a manager places a job in imprecise calendars: hints, inquiries, and reservations in two phases.

See `kernels.managers`, and `kernels.bookings` for what a holder is.
"""

from __future__ import annotations

from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    ManagerTree,
    duration,
    install,
    is_leaf,
    row_offset,
    slot_end,
    tie,
    whole,
)


@noinline
def next_holder(t: ManagerTree, m: int, x: int, nodes: int) -> int:
    """First holder for so many nodes among the managers below `m` from `x` on; else the end of these."""
    behind = m + t.managers[m]["size"]
    while x < behind:
        if t.managers[x]["nodes"] < nodes:
            x += t.managers[x]["size"]
        elif t.managers[x]["widest"] < nodes:
            return x
        else:
            x += 1
    return behind


@noinline
def begin_search(t: ManagerTree, m: int, begin: int) -> None:
    """Forget what holders said about earlier requests; nothing is wanted before `begin`."""
    for x in range(m, m + t.managers[m]["size"]):
        t.floor[x] = begin
        t.told[x] = False


@noinline
def first_fit(t: ManagerTree, j: int, offset: int, x: int, begin: int, limit: int, own: int) -> int:
    """First fit of a job at a holder in the calendars with an offset, see `calendar.earliest_fit`."""
    holder = t.managers[x]
    nodes = t.jobs[j]["nodes"]
    length = duration(t, j, x)
    if is_leaf(t, x):
        row = offset + holder["first"]
        taken = whole(t, holder["first"], nodes)
        return calendar.earliest_fit(t.calendars, row, begin, taken, length, limit, own)
    return calendar.earliest_span(
        t.calendars, offset, holder["first"], holder["end"], begin, nodes, length, limit, t.least
    )


@noinline
def _accepts(t: ManagerTree, j: int, offset: int, x: int, start: int, own: int) -> bool:
    """Inquire at each cluster of a holder whether a job can start then. What is fresh holds.

    A holder that declines says when it could, which is noted.
    """
    clusters = t.managers[x]["end"] - t.managers[x]["first"]
    t.counts[0]["inquiries"] += clusters
    t.counts[0]["messages"] += 2 * clusters
    if offset == 0 or t.told[x]:
        return True
    could = first_fit(t, j, 0, x, start, FOREVER, own)
    if could == start:
        return True
    t.counts[0]["failed_inquiries"] += 1
    t.floor[x] = could
    t.told[x] = True
    return False


@noinline
def search(t: ManagerTree, j: int, m: int, limit: int, place: int, own: int, seed: int) -> tuple[int, int]:
    """Holder below a manager with the earliest first fit before `limit`, and when; NOWHERE if there is none.

    By what the manager knows; whom it chooses is asked, and if it declines, the choice is made anew. At
    `place` the slots from `own` on count as available, see `calendar.earliest_fit`.
    """
    nodes = t.jobs[j]["nodes"]
    behind = m + t.managers[m]["size"]
    offset = row_offset(t, m)
    chosen = NOWHERE
    best = limit
    searching = True
    while searching:
        chosen = NOWHERE
        best = limit
        best_rank = 0
        x = next_holder(t, m, m, nodes)
        while x < behind:
            time = t.floor[x]
            if not t.told[x]:
                time = first_fit(t, j, offset, x, time, min(limit, best + 1), own if x == place else FOREVER)
            if time < limit and time <= best:
                equal = tie(t, m, j, x, seed)
                if time < best or equal < best_rank:
                    chosen = x
                    best = time
                    best_rank = equal
            x = next_holder(t, m, x + t.managers[x]["size"], nodes)
        searching = (
            chosen >= 0
            and not is_leaf(t, m)
            and not _accepts(t, j, offset, chosen, best, own if chosen == place else FOREVER)
        )
    return chosen, best


@inline
def _is_refused(t: ManagerTree) -> bool:
    """Whether the next reserve request is one of those to be refused."""
    number = t.counts[0]["reserves"]
    t.counts[0]["reserves"] += 1
    t.counts[0]["messages"] += 2
    return number < len(t.refusals) and t.refusals[number] != 0


@noinline
def _cut(t: ManagerTree, j: int, m: int, x: int, start: int, seed: int) -> None:
    """Cut a job into parts on the clusters of a holder: as much as there is, cluster after cluster."""
    holder = t.managers[x]
    remaining = t.jobs[j]["nodes"]
    length = duration(t, j, x)
    calendar.spans(t.calendars, 0, holder["first"], holder["end"], start, remaining, length, t.least)
    for k in range(holder["first"], holder["end"]):
        t.take[k] = 0
    while remaining > 0:
        chosen = NOWHERE
        best_rank = 0
        for k in range(holder["first"], holder["end"]):
            equal = tie(t, m, j, t.clusters[k]["manager"], seed)
            if t.least[k] > 0 and (chosen < 0 or equal < best_rank):
                chosen = k
                best_rank = equal
        t.take[chosen] = min(remaining, t.least[chosen])
        remaining -= t.take[chosen]
        t.least[chosen] = 0


@noinline
def _reserve_parts(t: ManagerTree, j: int, x: int, start: int) -> bool:
    """Reserve all parts of a spanning job one by one, or none: the first refusal aborts those before it."""
    holder = t.managers[x]
    end = start + duration(t, j, x)
    k = int(holder["first"])
    refused = False
    while k < holder["end"] and not refused:
        if t.take[k] > 0:
            refused = _is_refused(t)
            if not refused:
                calendar.change(t.calendars, k, start, end, -whole(t, k, t.take[k]))
        if not refused:
            k += 1
    last = k
    for k in range(holder["first"], last):
        if t.take[k] > 0:
            # Where all agree, the slots are taken for good by what follows
            calendar.change(t.calendars, k, start, end, whole(t, k, t.take[k]))
            if refused:
                t.counts[0]["messages"] += 1
    if refused:
        t.counts[0]["aborts"] += 1
    return not refused


@noinline
def commit(t: ManagerTree, j: int, m: int, x: int, start: int, seed: int) -> bool:
    """Let a manager reserve the place that a search found; all of it, or nothing where a cluster refuses.

    After a refusal the search may go on behind that slot. The job must hold nothing.
    """
    if is_leaf(t, x):
        done = is_leaf(t, m) or not _is_refused(t)
    else:
        _cut(t, j, m, x, start, seed)
        done = _reserve_parts(t, j, x, start)
    if not done:
        t.floor[x] = slot_end(t, start)
        t.told[x] = False
        # The job may move to that slot later, though nothing is released
        t.managers[m]["loose"] = True
        return False
    plan = t.plans[j]
    plan["place"] = x
    plan["owner"] = m
    plan["start"] = start
    plan["end"] = start + duration(t, j, x)
    if not is_leaf(t, x):
        for k in range(t.managers[x]["first"], t.managers[x]["end"]):
            t.parts[t.jobs[j]["span"], k] = t.take[k]
    install(t, j)
    return True


@noinline
def place_earliest(t: ManagerTree, j: int, m: int, begin: int, seed: int) -> None:
    """Let a manager give a job its first fit from `begin` on."""
    begin_search(t, m, begin)
    placed = False
    while not placed:
        x, start = search(t, j, m, FOREVER, NOWHERE, FOREVER, seed)
        placed = commit(t, j, m, x, start, seed)


# --- requests that are made anew ------------------------------------------------------------------


@noinline
def leave_without_place(t: ManagerTree, j: int) -> None:
    """Let a job wait without a place: too few nodes are up, and nobody knows for how long."""
    plan = t.plans[j]
    plan["place"] = NOWHERE
    plan["start"] = FOREVER
    plan["end"] = FOREVER


@noinline
def place_anew(t: ManagerTree, j: int, begin: int, seed: int) -> None:
    """Request a place at the owner of a job; while too few of its nodes are up the request goes up."""
    plan = t.plans[j]
    m = plan["owner"]
    while t.jobs[j]["nodes"] > t.managers[m]["nodes"] and t.managers[m]["parent"] >= 0:
        m = t.managers[m]["parent"]
        t.counts[0]["messages"] += 1
    plan["owner"] = m
    if t.jobs[j]["nodes"] > t.managers[m]["nodes"]:
        leave_without_place(t, j)
    else:
        place_earliest(t, j, m, begin, seed)
