"""What managers do with requests: which go up, which are bumped up, which reservations they grant.

See `kernels.managers`.
"""

from __future__ import annotations

from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import Fate, notify_end
from gridsched.engine.records import FOREVER
from gridsched.systems.calendars.kernels import calendar
from gridsched.systems.calendars.kernels.bookings import (
    NOWHERE,
    Group,
    ManagerTree,
    Route,
    Status,
    estimate_on,
    is_leaf,
    let_wait,
    take_turn,
)
from gridsched.systems.calendars.kernels.placing import (
    begin_search,
    choose,
    commit,
    first_fit,
    inquire,
    leave_without_place,
    place_earliest,
    search,
)
from gridsched.systems.calendars.kernels.processors import Outages


@noinline
def _may_borrow(t: ManagerTree, j: int) -> bool:
    """Whether the home of a job consumes no more than its limit, net of what it supplies."""
    home = t.managers[t.jobs[j]["home"]]
    cluster = t.clusters[home["first"]]
    return home["borrow_limit"] < 0 or cluster["consumed"] - cluster["supplied"] <= home["borrow_limit"]


@noinline
def _is_promoted(t: ManagerTree, j: int, m: int) -> bool:
    """Whether the rule of a manager sends a job up."""
    rules = t.managers[m]
    return (rules["promote_processors"] >= 0 and t.jobs[j]["nodes"] > rules["promote_processors"]) or (
        rules["promote_duration"] >= 0 and estimate_on(t, j, m) >= rules["promote_duration"]
    )


@inline
def _is_too_far(t: ManagerTree, j: int, m: int, start: int, now: int) -> bool:
    """Whether a manager bumps a job up whose first fit starts then."""
    rules = t.managers[m]
    patience = max(rules["bump"], rules["bump_stretch"] * estimate_on(t, j, m))
    return rules["parent"] >= 0 and rules["bump"] >= 0 and start > now + patience


@noinline
def _responsible(t: ManagerTree, j: int) -> int:
    """The manager that a job is sent up to from its home."""
    home = t.jobs[j]["home"]
    may_borrow = _may_borrow(t, j)
    plan = t.plans[j]
    m = home
    while t.managers[m]["parent"] >= 0:
        promoted = _is_promoted(t, j, m) and may_borrow
        if not promoted and t.jobs[j]["nodes"] <= t.managers[m]["nodes"]:
            break
        m = t.managers[m]["parent"]
        t.counts[0]["messages"] += 1
        if plan["route"] == Route.STAYED:
            plan["route"] = Route.PROMOTED if promoted else Route.FORWARDED
    if not may_borrow and m != home:
        t.counts[0]["over_limit"] += 1
    elif not may_borrow and _is_promoted(t, j, home) and t.managers[home]["parent"] >= 0:
        t.counts[0]["kept_home"] += 1
    return m


@noinline
def _place_or_bump(t: ManagerTree, j: int, begin: int, now: int) -> None:
    """Place an ordinary job; if its first fit is too far, see whether managers above have an earlier one."""
    owner = _responsible(t, j)
    if t.jobs[j]["nodes"] > t.managers[owner]["nodes"]:
        t.plans[j]["owner"] = owner
        leave_without_place(t, j)
        return
    begin_search(t, owner, begin)
    x, start = search(t, j, owner, FOREVER, NOWHERE, FOREVER)
    m = owner
    while _is_too_far(t, j, m, start, now):
        if not _may_borrow(t, j):
            t.counts[0]["kept_home"] += 1
            break
        m = t.managers[m]["parent"]
        t.counts[0]["messages"] += 1
        begin_search(t, m, begin)
        other, earlier = search(t, j, m, start, NOWHERE, FOREVER)
        if other >= 0:
            owner, x, start = m, other, earlier
            t.plans[j]["route"] = Route.BUMPED
    if not commit(t, j, owner, x, start):
        # What holders said is forgotten, since other managers have asked meanwhile, but not the refusal
        place_earliest(t, j, owner, begin, x, t.floor[x])


@noinline
def reserve(t: ManagerTree, j: int) -> bool:
    """Let a job have its reservation: at home, or at the lowest manager above that can give it.

    Every holder is asked before it is refused; `earliest` becomes the earliest time that any could offer.
    """
    start = t.jobs[j]["reserved"]
    plan = t.plans[j]
    earliest = FOREVER
    begin_search(t, 0, start)
    m = t.jobs[j]["home"]
    while m >= 0:
        x, _ = choose(t, j, m, FOREVER, NOWHERE, FOREVER, True)
        if x < 0:
            m = t.managers[m]["parent"]
            t.counts[0]["messages"] += m >= 0
            continue
        could = first_fit(t, j, 0, x, start, FOREVER, FOREVER)
        if not is_leaf(t, m):
            inquire(t, x)
            t.counts[0]["failed_inquiries"] += could != start
        if could == start:
            if commit(t, j, m, x, start):
                plan["route"] = Route.STAYED if m == t.jobs[j]["home"] else Route.RESERVED
                return True
            could = first_fit(t, j, 0, x, t.floor[x], FOREVER, FOREVER)
        # It is not asked again
        t.told[x] = True
        t.floor[x] = FOREVER
        earliest = min(earliest, could)
    plan["earliest"] = earliest
    return False


@noinline
def request(t: ManagerTree, o: Outages | None, j: int, now: int) -> None:
    """Let a job that some clusters together can run ask for a place."""
    plan = t.plans[j]
    take_turn(t, j)
    begin = calendar.boundary(t.calendars, now)
    if t.jobs[j]["reserved"] >= 0:
        plan["earliest"] = FOREVER
        # The start of a job that waited for others may be over
        if t.jobs[j]["reserved"] >= begin and reserve(t, j):
            plan["group"] = Group.RESERVED
            plan["earliest"] = NOWHERE
        elif not t.queue:
            plan["status"] = Status.REFUSED
            if o is not None:
                o.lifecycles.jobs[j]["fate"] = Fate.REJECTED
                notify_end(o.lifecycles, j, now, False)
            return
    if plan["group"] == Group.ORDINARY:
        _place_or_bump(t, j, begin, now)
    if plan["start"] < FOREVER:
        plan["promise"] = plan["start"]
    let_wait(t, j)
