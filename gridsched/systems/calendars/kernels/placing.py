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
    book,
    duration,
    hold_of,
    is_leaf,
    row_offset,
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
        taken = whole(t, holder["first"], nodes)
        return calendar.earliest_fit(t.calendars, offset + holder["first"], begin, taken, length, limit, own)
    return calendar.earliest_span(
        t.calendars, offset, holder["first"], holder["end"], begin, nodes, length, limit, t.least
    )


@noinline
def choose(
    t: ManagerTree, j: int, m: int, limit: int, place: int, own: int, is_reservation: bool
) -> tuple[int, int]:
    """Holder below a manager with the earliest first fit before `limit`, and when; NOWHERE if there is none.

    By what the manager knows. At `place` the slots from `own` on count as available, see
    `calendar.earliest_fit`. For a reservation each holder is looked at to its first fit, since all of
    them may have to be asked; else no further than to the best one so far.
    """
    nodes = t.jobs[j]["nodes"]
    offset = row_offset(t, m)
    chosen, best, best_rank = NOWHERE, limit, 0
    x = next_holder(t, m, m, nodes)
    while x < m + t.managers[m]["size"]:
        time = t.floor[x]
        if not t.told[x]:
            bound = limit if is_reservation else min(limit, best + 1)
            time = first_fit(t, j, offset, x, time, bound, own if x == place else FOREVER)
        if time < limit and time <= best:
            equal = tie(t, m, j, x)
            if time < best or equal < best_rank:
                chosen, best, best_rank = x, time, equal
        x = next_holder(t, m, x + t.managers[x]["size"], nodes)
    return chosen, best


@noinline
def inquire(t: ManagerTree, x: int) -> None:
    """Count inquiries at all clusters of a holder, and their answers."""
    clusters = t.managers[x]["end"] - t.managers[x]["first"]
    t.counts[0]["inquiries"] += clusters
    t.counts[0]["messages"] += 2 * clusters


@noinline
def _accepts(t: ManagerTree, j: int, offset: int, x: int, start: int, own: int) -> bool:
    """Inquire at each cluster of a holder whether a job can start then. What is fresh holds.

    A holder that declines says when it could, which is noted.
    """
    inquire(t, x)
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
def search(t: ManagerTree, j: int, m: int, limit: int, place: int, own: int) -> tuple[int, int]:
    """What `choose` finds, after inquiries: if whom the manager chose declines, the choice is made anew."""
    offset = row_offset(t, m)
    while True:
        x, start = choose(t, j, m, limit, place, own, False)
        if x < 0 or is_leaf(t, m) or _accepts(t, j, offset, x, start, own if x == place else FOREVER):
            return x, start


@inline
def _is_refused(t: ManagerTree) -> bool:
    """Whether the next reserve request is one of those to be refused."""
    number = t.counts[0]["reserves"]
    t.counts[0]["reserves"] += 1
    t.counts[0]["messages"] += 2
    return number < len(t.refusals) and t.refusals[number] != 0


@noinline
def _cut(t: ManagerTree, j: int, m: int, x: int, start: int) -> None:
    """Cut a job into parts on the clusters of a holder: as much as there is, cluster after cluster."""
    holder = t.managers[x]
    remaining = t.jobs[j]["nodes"]
    length = duration(t, j, x)
    calendar.spans(t.calendars, 0, holder["first"], holder["end"], start, remaining, length, t.least)
    for k in range(holder["first"], holder["end"]):
        t.take[k] = 0
    while remaining > 0:
        chosen, best_rank = NOWHERE, 0
        for k in range(holder["first"], holder["end"]):
            equal = tie(t, m, j, t.clusters[k]["manager"])
            if t.least[k] > 0 and (chosen < 0 or equal < best_rank):
                chosen, best_rank = k, equal
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
        k += not refused
    for agreed in range(holder["first"], k):
        if t.take[agreed] > 0:
            # Where all agree, the slots are taken for good by what follows
            calendar.change(t.calendars, agreed, start, end, whole(t, agreed, t.take[agreed]))
            t.counts[0]["messages"] += refused
    t.counts[0]["aborts"] += refused
    return not refused


@noinline
def commit(t: ManagerTree, j: int, m: int, x: int, start: int) -> bool:
    """Let a manager reserve the place that a search found; all of it, or nothing where a cluster refuses.

    After a refusal the search may go on behind that slot. The job must hold nothing.
    """
    holder = t.managers[x]
    if is_leaf(t, x):
        t.take[holder["first"]] = t.jobs[j]["nodes"]
        done = is_leaf(t, m) or not _is_refused(t)
    else:
        _cut(t, j, m, x, start)
        done = _reserve_parts(t, j, x, start)
    if not done:
        _, t.floor[x] = calendar.span_of(t.calendars, start)
        t.told[x] = False
        # The job may move to that slot later, though nothing is released
        t.managers[m]["loose"] = True
        return False
    plan = t.plans[j]
    plan["place"] = x
    plan["owner"] = m
    plan["start"] = start
    plan["end"] = start + duration(t, j, x)
    for k in range(holder["first"], holder["end"]):
        hold = t.holds[hold_of(t, j, k)]
        hold["tasks"] = t.take[k]
        hold["nodes"] = whole(t, k, t.take[k])
    book(t, j, -1)
    return True


@noinline
def place_earliest(t: ManagerTree, j: int, m: int, begin: int, refused: int, behind: int) -> None:
    """Let a manager give a job its first fit from `begin` on, at `refused` from `behind` on."""
    begin_search(t, m, begin)
    if refused >= 0:
        t.floor[refused] = behind
    placed = False
    while not placed:
        x, start = search(t, j, m, FOREVER, NOWHERE, FOREVER)
        placed = commit(t, j, m, x, start)


@noinline
def leave_without_place(t: ManagerTree, j: int) -> None:
    """Let a job wait without a place: too few nodes are up, and nobody knows for how long."""
    plan = t.plans[j]
    plan["place"] = NOWHERE
    plan["start"] = plan["end"] = FOREVER


@noinline
def place_anew(t: ManagerTree, j: int, begin: int) -> None:
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
        place_earliest(t, j, m, begin, NOWHERE, begin)
