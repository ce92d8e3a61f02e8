"""Many clusters under a superscheduler: one clock, jobs that may move between submission and start.

At one instant happens, in this order:

1. completions, then corrections of outrun estimates, then events of nodes, on all clusters; jobs become
   eligible, and users give up;
2. landings, in order of job index: the answers to a request are there, so that the grid scheduler of the
   job's home is free again and the decision made from them takes effect; and transits end, so that the job
   enters the local queue of its cluster;
3. at a multiple of sigma the check: clusters volunteer anew, and all jobs in grid queues are marked, that is,
   they want to be decided;
4. decisions on jobs that have waited in grid queues: first those that found no better volunteer and go on to
   ask all their partners, in order of job index; then home by home, in order of submission;
5. submissions, of jobs that become eligible too, each decided in turn;
6. one scheduling pass on every cluster where something changed.

Whoever decides thus sees all jobs that have entered a local queue by then, and a job that is decided without
messages is seen by the decisions after it. Every job passes through the grid queue of its home, and stays
there while its grid scheduler waits for answers. A decision is made from how the clusters are when they
are asked; it only takes effect later.

On clusters of nodes a job may be one that no cluster can start as things are: it waits in its grid queue, and
is decided anew at checks, under `CENTRAL` too. When nothing else has happened for so long that checks change
nothing any more, the simulation is over.

The semantics are those of Shan, Oliker and Biswas, "Job superscheduler architecture and performance in
computational grid environments" (SC 2003), section 2; `scheduler` says what was
decided where the paper is silent. Clusters and predicted starts are those of `grid`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, grid, heap
from gridsched.engine.bundles import column
from gridsched.engine.clusters import NOWHERE, UNDECIDED, GridArrays
from gridsched.engine.grid import Local
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import ENTRY, FOREVER
from gridsched.engine.reference import by_reference


class Scheme(IntEnum):
    """Who decides where a job runs."""

    LOCAL = 0
    CENTRAL = 1
    SENDER_INITIATED = 2
    RECEIVER_INITIATED = 3
    SYMMETRICALLY_INITIATED = 4


_LOCAL, _CENTRAL, _SENDER, _RECEIVER, _SYMMETRIC = map(int, Scheme)

CLOCK = np.dtype(
    [
        ("queued", np.int64),  # jobs in the grid queues
        ("check", np.int64),  # time of the next check of all clusters
        ("timers", np.int64),  # entries of the heap of landings
        ("measured", np.int64),  # time up to which the use of the clusters is added up
        ("moved", np.int64),  # when anything but checks and landings happened last
    ]
)
"""Scalars of the superschedulers."""

_NOBODY, _VOLUNTEER, _ACCEPTED = 0, 1, 2

# one more value instead of the cluster of a job, besides those of `grid`: it asks all partners next
_ASKS_ALL = -3


class SuperschedulerOptions(NamedTuple):
    """What does not change during a simulation."""

    scheme: int
    phi: int  # a job that would wait less than this, seconds, stays
    sigma: int  # seconds between checks
    delta: float  # a cluster that is less busy than this share volunteers
    epsilon: float  # seconds by which turnaround times may differ and count as equal
    overrun: int
    predictions: int
    message_delay: int  # seconds until the answers to a request are there
    migration_delay: int  # seconds that a job is in transit to another cluster than its home
    takes_all: bool  # a volunteer takes any number of jobs until the next check, else one
    goes_on: bool  # a job of SYMMETRICALLY_INITIATED that no volunteer helps asks all partners, else waits
    average: bool  # clusters are as busy as on average since the last multiple of sigma, else as now
    at_check: bool  # only jobs decided at the check itself have information about volunteers


class Superschedulers(NamedTuple):
    """What the grid schedulers of all homes know: m clusters, n jobs."""

    partners: Any  # bool[m, m], whose jobs may go where
    silence: Any  # int64[m, ...], when a grid scheduler falls silent, answers again, and so on; FOREVER last
    waiting: Any = column(np.int64, "n")  # jobs in the grid queues, in order of submission
    # jobs that want to be decided once the grid scheduler of their home is free
    marked: Any = column(np.bool_, "n")
    asking: Any = column(np.int64, "m", fill=-1)  # job for which a grid scheduler waits for answers; -1
    timers: Any = column(ENTRY, "n + 1")  # heap of the times when answers are there or a transit ends
    volunteer: Any = column(np.int64, "m")
    used: Any = column(np.int64, "m")  # processor-seconds held since the last multiple of sigma
    offered: Any = column(np.int64, "m")  # processor-seconds that there were
    silence_passed: Any = column(np.int64, "m")  # how many of the times of silence have passed
    clock: Any = column(CLOCK, "one")


def allocate(jobs: int, clusters: int, partners: Any, silence: Any, sigma: int) -> Superschedulers:
    """Superschedulers without jobs."""
    sizes = {"n": jobs, "n + 1": jobs + 1, "m": clusters, "one": 1}
    s = bundles.allocate(Superschedulers, sizes, partners=partners, silence=silence)
    s.clock["check"] = sigma
    return s


@inline
def _dearest(best: int, epsilon: float) -> int:
    """Largest turnaround time that counts as equal to the best one."""
    limit = best + epsilon
    return FOREVER if limit >= FOREVER else math.floor(limit)


# --- how busy a cluster is, and whether it answers ------------------------------------------------


@inline
def _last_multiple(now: int, sigma: int) -> int:
    """Last multiple of sigma before now."""
    return (now - 1) // sigma * sigma


@inline
def _measure(g: GridArrays, s: Superschedulers, local: Local, now: int, sigma: int) -> None:
    """Add up what jobs have held of each cluster until now."""
    clock = s.clock[0]
    begin = _last_multiple(now, sigma)
    for m in range(len(g.clusters)):
        if begin >= clock["measured"]:
            s.used[m] = 0
            s.offered[m] = 0
        seconds = now - max(begin, clock["measured"])
        s.used[m] += grid.held(g, local, m) * seconds
        s.offered[m] += grid.capacity(g, local, m) * seconds
    clock["measured"] = now


@inline
def _utilisation(
    g: GridArrays, s: Superschedulers, local: Local, m: int, options: SuperschedulerOptions
) -> float:
    """Resource utilisation status: share of processors held, now or since the last multiple of sigma."""
    if not options.average:
        return grid.held(g, local, m) / grid.capacity(g, local, m)
    return s.used[m] / s.offered[m] if s.offered[m] > 0 else 0.0


@inline
def _is_silent(s: Superschedulers, m: int, now: int) -> bool:
    """Whether the grid scheduler of a cluster neither answers nor volunteers."""
    while s.silence[m, s.silence_passed[m]] <= now:
        s.silence_passed[m] += 1
    return s.silence_passed[m] % 2 == 1


# --- where a job goes -----------------------------------------------------------------------------

_FIRST_HORIZON = 900
"""Seconds up to which starts are looked for when there is none now; 300 to 3,600 measure alike."""

_RECESSION = 4
"""Factor by which the horizon recedes while no start is found; 2 to 8 measure alike."""

_HOME, _ALL, _HOME_AND_PARTNERS, _VOLUNTEERS = 0, 1, 2, 3

_CONTENT, _OCCUPIED, _ANSWERED = 0, 1, 2


@inline
def _has_volunteers(g: GridArrays, s: Superschedulers, h: int, willing: bool) -> bool:
    """Whether any partner of a cluster has volunteered; where `willing`, and may take a job still."""
    found = False
    for m in range(len(g.clusters)):
        stands = s.volunteer[m] == _VOLUNTEER or (s.volunteer[m] == _ACCEPTED and not willing)
        found |= s.partners[h, m] and stands
    return found


@inline
def _asked(g: GridArrays, s: Superschedulers, j: int, options: SuperschedulerOptions) -> int:
    """Whom a job asks that would wait long at its home."""
    if options.scheme == _LOCAL:
        return _HOME
    if options.scheme == _CENTRAL:
        return _ALL
    if options.scheme == _SENDER or g.cluster[j] == _ASKS_ALL:
        return _HOME_AND_PARTNERS
    if options.scheme == _SYMMETRIC and not _has_volunteers(g, s, g.home[j], options.goes_on):
        return _HOME_AND_PARTNERS
    return _VOLUNTEERS


@inline
def _is_asked(g: GridArrays, s: Superschedulers, h: int, m: int, among: int) -> bool:
    """Whether a cluster belongs to those that are asked."""
    if among == _ALL:
        return True
    if among == _HOME_AND_PARTNERS:
        return m == h or s.partners[h, m]
    return among == _VOLUNTEERS and s.partners[h, m] and s.volunteer[m] == _VOLUNTEER


@inline
def _candidate(g: GridArrays, s: Superschedulers, j: int, step: int, among: int) -> int:
    """Cluster that a job asks at a step, first its home if that matters; -1 if none."""
    h = g.home[j]
    if step == 0:
        return h
    m = step - 1
    return m if m != h and _is_asked(g, s, h, m, among) else -1


@inline
def _needs_messages(g: GridArrays, s: Superschedulers, h: int, among: int) -> bool:
    """Whether a grid scheduler has to ask another one; where all are known it need not."""
    if among == _ALL:
        return False
    found = False
    for m in range(len(g.clusters)):
        found |= m != h and _is_asked(g, s, h, m, among)
    return found


@inline
def _ask(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    j: int,
    among: int,
    occupied: bool,
    now: int,
    options: SuperschedulerOptions,
    score: Any,
    costs: Any,
) -> int:
    """Turnaround time of a job on its home and on all clusters that answer; FOREVER on the others.

    It is FOREVER, too, where it is too long for the cluster to be among the cheapest of those that are asked.
    Returns without asking the others if the job would wait so little at home that it stays (_CONTENT), or
    if its grid scheduler is occupied with another request (_OCCUPIED).

    Starts are looked for up to a horizon, at first now, which recedes while some cluster could still be among
    the cheapest; so none is simulated much further than to the best start.
    """
    h = g.home[j]
    may_stay = among in (_HOME_AND_PARTNERS, _VOLUNTEERS)
    for m in range(len(g.clusters)):
        costs[m] = FOREVER
    dearest = FOREVER
    seen = -1
    horizon = 0
    while seen < horizon:
        undecided = False
        for step in range(len(g.clusters) + 1):
            m = _candidate(g, s, j, step, among)
            if m < 0 or costs[m] < FOREVER or (may_stay and m != h and _is_silent(s, m, now)):
                continue
            g.clock[0]["queries"] += int(seen < 0)
            estimate = grid.estimate_on(g, local, j, m)
            useful = dearest - estimate
            asks_home = may_stay and step == 0
            if useful > seen and grid.fits(g, local, j, m):
                longest = useful if asks_home else min(useful, horizon)
                start = grid.predicted_start(g, local, j, m, now, now + longest, options, score)
                if start < FOREVER:
                    costs[m] = start - now + estimate
                    if costs[m] < dearest and _is_asked(g, s, h, m, among):
                        dearest = min(dearest, _dearest(costs[m], options.epsilon))
                if asks_home and start < FOREVER and start - now < options.phi:
                    return _CONTENT
                undecided |= start == FOREVER and useful > horizon
            if asks_home and occupied:
                return _OCCUPIED
        seen = horizon
        if undecided:
            horizon = max(_FIRST_HORIZON, _RECESSION * horizon)
    return _ANSWERED


@inline
def _cheapest(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    h: int,
    among: int,
    options: SuperschedulerOptions,
    costs: Any,
) -> int:
    """Cluster with the smallest turnaround time, among nearly equal ones the least busy; -1 if none can."""
    best = FOREVER
    for m in range(len(g.clusters)):
        if _is_asked(g, s, h, m, among):
            best = min(best, costs[m])
    chosen = UNDECIDED
    least = 2.0
    for m in range(len(g.clusters)):
        if _is_asked(g, s, h, m, among) and costs[m] < FOREVER and costs[m] <= best + options.epsilon:
            busy = _utilisation(g, s, local, m, options)
            if busy < least:
                least = busy
                chosen = m
    return chosen


@inline
def _is_better(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    m: int,
    h: int,
    options: SuperschedulerOptions,
    costs: Any,
) -> bool:
    """Whether a volunteer runs a job at less cost than its home."""
    there = costs[m]
    here = costs[h]
    if there < here - options.epsilon:
        return True
    near = here < FOREVER and abs(there - here) <= options.epsilon
    return near and _utilisation(g, s, local, m, options) < _utilisation(g, s, local, h, options)


@inline
def _choice(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    j: int,
    among: int,
    options: SuperschedulerOptions,
    costs: Any,
) -> int:
    """Cluster that a job goes to by the answers; UNDECIDED if it waits, _ASKS_ALL if it asks again."""
    h = g.home[j]
    m = _cheapest(g, s, local, h, among, options, costs)
    if among != _VOLUNTEERS:
        return m
    if m >= 0 and _is_better(g, s, local, m, h, options, costs):
        if not options.takes_all:
            s.volunteer[m] = _ACCEPTED
        return m
    return _ASKS_ALL if options.scheme == _SYMMETRIC and options.goes_on else UNDECIDED


@inline
def _set_timer(s: Superschedulers, j: int, time: int) -> None:
    """Let something happen to a job later: its answers come, or it arrives on its cluster."""
    clock = s.clock[0]
    clock["timers"] = heap.push(s.timers, clock["timers"], time, j)


@noinline
def _send(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    j: int,
    now: int,
    delay: int,
    options: SuperschedulerOptions,
    score: Any,
) -> None:
    """Let a job enter the local queue of its cluster, after a delay unless that is its home."""
    m = g.cluster[j]
    if delay > 0 and m != g.home[j]:
        _set_timer(s, j, now + delay)
    else:
        grid.enter(g, local, j, m, now, options, score)


@noinline
def _decide(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    j: int,
    now: int,
    options: SuperschedulerOptions,
    score: Any,
    costs: Any,
) -> bool:
    """Decide on a job of a grid queue; return whether it goes on to ask all its partners at once.

    It is sent to a cluster, or its grid scheduler waits for answers, or it waits in the grid queue.
    """
    h = g.home[j]
    among = _asked(g, s, j, options)
    messages = options.message_delay > 0 and _needs_messages(g, s, h, among)
    answer = _CONTENT
    if among != _HOME:
        answer = _ask(g, s, local, j, among, messages and s.asking[h] >= 0, now, options, score, costs)
    s.marked[j] = answer == _OCCUPIED
    if answer == _OCCUPIED:
        return False
    g.cluster[j] = h if answer == _CONTENT else _choice(g, s, local, j, among, options, costs)
    if messages and answer == _ANSWERED:
        s.asking[h] = j
        _set_timer(s, j, now + options.message_delay)
        return False
    if g.cluster[j] >= 0:
        _send(g, s, local, j, now, options.migration_delay, options, score)
    return g.cluster[j] == _ASKS_ALL


# --- grid queues ----------------------------------------------------------------------------------


@inline
def _within_reach(g: GridArrays, s: Superschedulers, local: Local, j: int, scheme: int) -> bool:
    """Whether any cluster that the scheme could choose can hold a job."""
    h = g.home[j]
    fits = False
    for m in range(len(g.clusters)):
        reached = m == h or scheme == _CENTRAL or (scheme != _LOCAL and s.partners[h, m])
        fits |= reached and grid.fits(g, local, j, m)
    return fits


@inline
def _receive(g: GridArrays, s: Superschedulers, local: Local, now: int, scheme: int, todo: Any) -> int:
    """Put the jobs that are submitted now and fit somewhere into the grid queues; list them."""
    count = 0
    j = grid.next_entering(g, local, now, 1)
    while j >= 0:
        if _within_reach(g, s, local, j, scheme):
            s.waiting[s.clock[0]["queued"]] = j
            s.clock[0]["queued"] += 1
            s.marked[j] = True
            todo[count] = j
            count += 1
        else:
            g.cluster[j] = NOWHERE
        j = grid.next_entering(g, local, now, 1)
    return count


@inline
def _is_out(g: GridArrays, s: Superschedulers, j: int) -> bool:
    """Whether the grid scheduler of a job's home waits for answers about it."""
    return s.asking[g.home[j]] == j


@inline
def _drop_sent(g: GridArrays, s: Superschedulers) -> None:
    """Keep in the grid queues the jobs that were not sent to a cluster."""
    clock = s.clock[0]
    kept = 0
    for k in range(clock["queued"]):
        j = s.waiting[k]
        s.waiting[kept] = j
        if g.cluster[j] < 0 or _is_out(g, s, j):
            kept += 1
    clock["queued"] = kept


@inline
def _mark_all(s: Superschedulers) -> None:
    """Let every job in a grid queue want to be decided."""
    for k in range(s.clock[0]["queued"]):
        s.marked[s.waiting[k]] = True


@inline
def _has_turn(g: GridArrays, s: Superschedulers, j: int, even_if_occupied: bool) -> bool:
    """Whether a job wants to be decided, and its grid scheduler is free or need only look at home."""
    return s.marked[j] and not _is_out(g, s, j) and (even_if_occupied or s.asking[g.home[j]] < 0)


@inline
def _reconsider(g: GridArrays, s: Superschedulers, even_if_occupied: bool, todo: Any) -> int:
    """List the jobs that have waited and are to be decided: those that go on asking, then home by home."""
    queued = s.clock[0]["queued"]
    count = 0
    for k in range(queued):
        j = s.waiting[k]
        if g.cluster[j] == _ASKS_ALL and not _is_out(g, s, j):
            s.marked[j] = True
            todo[count] = j
            count += 1
    for h in range(len(g.clusters)):
        for k in range(queued):
            j = s.waiting[k]
            listed = g.cluster[j] == _ASKS_ALL
            if g.home[j] == h and not listed and _has_turn(g, s, j, even_if_occupied):
                todo[count] = j
                count += 1
    return count


@inline
def _land(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    now: int,
    options: SuperschedulerOptions,
    score: Any,
) -> bool:
    """Let answers come in and transits end; return whether any grid scheduler is free again."""
    clock = s.clock[0]
    freed = False
    while clock["timers"] > 0 and s.timers[0]["key"] == now:
        j = s.timers[0]["job"]
        clock["timers"] = heap.pop(s.timers, clock["timers"])
        answered = _is_out(g, s, j)
        freed |= answered
        if answered:
            s.asking[g.home[j]] = -1
        if g.cluster[j] >= 0:
            _send(g, s, local, j, now, options.migration_delay if answered else 0, options, score)
    if freed:
        _drop_sent(g, s)
    return freed


@inline
def _renew_volunteers(
    g: GridArrays, s: Superschedulers, local: Local, now: int, options: SuperschedulerOptions
) -> None:
    """Forget the volunteers of the last check; every cluster that is not busy volunteers."""
    for m in range(len(g.clusters)):
        volunteers = _utilisation(g, s, local, m, options) < options.delta and not _is_silent(s, m, now)
        s.volunteer[m] = _VOLUNTEER if volunteers else _NOBODY


@inline
def _forget_volunteers(s: Superschedulers) -> None:
    """Let no cluster be a volunteer."""
    for m in range(len(s.volunteer)):
        s.volunteer[m] = _NOBODY


# --- jobs that nobody can start, and users who give up --------------------------------------------


@inline
def _something_may_change(s: Superschedulers, options: SuperschedulerOptions) -> bool:
    """Whether checks and answers may still find what was not known when anything else happened last.

    Shares of processors are averages over less than two sigma; each job may ask once; partners may answer
    again.
    """
    clock = s.clock[0]
    last = clock["moved"]
    for m in range(len(s.silence)):
        for time in s.silence[m]:
            if time < FOREVER:
                last = max(last, time)
    asking = (clock["queued"] + 2) * options.message_delay
    return clock["check"] <= last + 2 * options.sigma + asking + options.migration_delay


@noinline
def _forget_who_left(g: GridArrays, s: Superschedulers) -> None:
    """Let jobs whose users gave up wait in no grid queue any more."""
    kept = 0
    for place in range(s.clock[0]["queued"]):
        j = s.waiting[place]
        s.waiting[kept] = j
        kept += int(g.cluster[j] != NOWHERE)
        s.marked[j] &= g.cluster[j] != NOWHERE
    s.clock[0]["queued"] = kept


# --- the clock ------------------------------------------------------------------------------------


@inline
def _next_instant(g: GridArrays, s: Superschedulers, local: Local, options: SuperschedulerOptions) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    clock = s.clock[0]
    now = min(grid.next_arrival(g, local), grid.first_due(g, local))
    moves = now
    volunteering = options.scheme in (_RECEIVER, _SYMMETRIC)
    if clock["queued"] > 0 or (volunteering and grid.more_arrive(g, local)):
        now = min(now, clock["check"])
    now = min(now, heap.first_time(s.timers, clock["timers"]))
    if now == moves and now < FOREVER:
        clock["moved"] = now
    if moves == FOREVER and grid.is_changing(local) and not _something_may_change(s, options):
        return FOREVER
    return now


@inline
def _is_check(
    g: GridArrays, s: Superschedulers, local: Local, now: int, options: SuperschedulerOptions
) -> bool:
    """Whether the jobs in grid queues are to be decided anew now; set the time of the next check."""
    clock = s.clock[0]
    if now < clock["check"]:
        return False
    due = clock["check"] == now
    clock["check"] = (now // options.sigma + 1) * options.sigma
    if options.scheme == _CENTRAL:
        return due and grid.is_changing(local)
    return due and _SENDER <= options.scheme <= _SYMMETRIC


@jit
def schedule(
    g: GridArrays,
    s: Superschedulers,
    local: Local,
    options: SuperschedulerOptions,
    score: Any,
    todo: Any,
    costs: Any,
) -> bool:
    """Simulate the grid; return False if it stopped because a queue needs more room, else True at the end.

    It can be called again after `grid.with_room`, and goes on where it stopped. `todo` (int64[n]) and `costs`
    (int64[m]) are scratch.
    """
    g, s, local = by_reference(g), by_reference(s), by_reference(local)
    options = by_reference(options)
    while True:
        now = _next_instant(g, s, local, options)
        if now == FOREVER:
            return True
        clock = s.clock[0]
        if not grid.has_room(g, local, clock["queued"] + clock["timers"], now):
            return False
        if options.average:
            _measure(g, s, local, now, options.sigma)
        grid.finish_due(g, local, now, options)
        grid.live(g, local, now)
        if grid.let_leave(g, local, now) > 0:
            _forget_who_left(g, s)
        changed = _land(g, s, local, now, options, score)
        check = _is_check(g, s, local, now, options)
        if check:
            _renew_volunteers(g, s, local, now, options)
            _mark_all(s)
            changed = True
        for submitted in (False, True):
            # new jobs, and at a check all that wait for it, compare their wait at home with phi in any case
            even_if_occupied = submitted or (check and options.scheme != _SENDER)
            count = 0
            if submitted and options.at_check:
                _forget_volunteers(s)
            if submitted:
                count = _receive(g, s, local, now, options.scheme, todo)
                changed |= count > 0
            elif changed:
                count = _reconsider(g, s, even_if_occupied, todo)
            for k in range(count):
                more = _has_turn(g, s, todo[k], even_if_occupied)
                while more:
                    more = _decide(g, s, local, todo[k], now, options, score, costs)
        if changed:
            _drop_sent(g, s)
        grid.pass_where_due(g, local, now, options, score)
