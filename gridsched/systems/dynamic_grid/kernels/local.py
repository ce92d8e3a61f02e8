"""Local schedulers of a dynamic grid: section 3, steps 2 and 3, of Goldman and Queiroz.

The passes are those of the engine, `first_come` and `passes`, where grid jobs are among the jobs that run.
The first job of the queue starts if its processors are free. If they are not, it waits, and others may
backfill; or grid jobs make place for it, or it is sent to the grid scheduler. Grid jobs that have been told
to make place do so at the end of their supersteps, unless the local job starts before.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import counted, first_come, line, passes, rings, running
from gridsched.engine.checkpoints import with_checkpoints
from gridsched.engine.clusters import SCORE, sort_key
from gridsched.engine.jit import as_int64, inline, noinline
from gridsched.engine.records import EASY, FOREVER, LARGEST, NO_BACKFILLING
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.jobs import (
    boundary,
    evict,
    is_wanted,
    left_by,
    let_wait,
    note_start,
)
from gridsched.systems.dynamic_grid.kernels.state import (
    LOCAL_QUEUE,
    LOCAL_RUN,
    NEW,
    NOBODY,
    DynamicGridArrays,
    DynamicGridOptions,
    expect,
    line_of,
    mark_dirty,
    queue_of,
    set_due,
)

_WAIT, _YIELD, _SEND = 0, 1, 2


@inline
def unmark(g: DynamicGridArrays, i: int) -> None:
    """Withdraw what grid jobs were told."""
    for p in rings.items(g.sites, i):
        g.parts[p]["marked"] = 0
    g.clusters[i]["yielding"] = 0


@inline
def _policy(g: DynamicGridArrays, i: int, backfilling: int, o: DynamicGridOptions) -> counted.CountedOptions:
    """Options of a pass of the local scheduler."""
    policy = g.policies[i]
    reservations = int(policy["reservations"]) if backfilling == EASY else 1
    changing = policy["order"] == SCORE
    as_queue = policy["queue_as_order"] != 0
    return counted.CountedOptions(backfilling, reservations, o.overrun, False, False, changing, as_queue)


@inline
def _note_started(g: DynamicGridArrays, i: int, now: int, tracked: bool) -> None:
    """Note which jobs the local scheduler has just started; their expected ends may not be `tracked` yet."""
    for k in range(g.state[i, 0]["ending"]):
        j = g.local_ends[i, k]["job"]
        if g.progress[j]["state"] == LOCAL_QUEUE:
            note_start(g, j, now, LOCAL_RUN)
            if not tracked:
                expect(g, i, j, now + g.jobs[j]["estimate"], as_int64(g.jobs[j]["processors"]))
    set_due(g, i)
    g.clusters[i]["changed"] = 1
    g.clock[0]["unreported"] = 1


@noinline
def _pass(
    g: DynamicGridArrays, i: int, now: int, backfilling: int, o: DynamicGridOptions, score: Any
) -> None:
    """Scheduling pass of the local scheduler with some kind of backfilling."""
    state = g.state[i, 0]
    waiting = state["waiting"]
    if g.policies[i]["first_come"]:
        # grid jobs that came and went may have changed what fits
        state["early"] = True
        first_come.scheduling_pass(by_reference(line_of(g, i)), now, backfilling)
    else:
        passes.queue_pass(by_reference(queue_of(g, i)), now, _policy(g, i, backfilling, o), score)
    if state["waiting"] < waiting:
        _note_started(g, i, now, g.policies[i]["first_come"] != 0 or backfilling == EASY)
        if g.clusters[i]["yielding"] != 0:
            unmark(g, i)


@noinline
def start_first(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Start local jobs in queue order up to the first that does not fit."""
    if g.state[i, 0]["waiting"] > 0:
        _pass(g, i, now, NO_BACKFILLING, o, score)


@noinline
def first_waiting(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions, score: Any) -> int:
    """First job of a local queue, which is not empty."""
    if g.policies[i]["first_come"]:
        queue = by_reference(line.row(g.queues, i))
        return int(queue.job[queue.span[0]["first"]])
    c = by_reference(queue_of(g, i))
    passes.list_candidates(c, c.state[0]["waiting"], now, _policy(g, i, NO_BACKFILLING, o), score)
    return int(c.candidates[0]["job"])


@noinline
def enter(g: DynamicGridArrays, i: int, j: int, last: bool) -> None:
    """Let a job wait in a local queue, behind all others where that is in order of entry, or where it was."""
    job, cluster, policy = g.progress[j], g.clusters[i], g.policies[i]
    job["state"] = LOCAL_QUEUE
    if last:
        g.clock[0]["entries"] += 1
        job["entry"] = g.clock[0]["entries"]
    g.jobs[j]["run"] = with_checkpoints(job["work"], cluster["interval"], cluster["pause"])
    estimate = with_checkpoints(job["guess"], cluster["interval"], cluster["pause"])
    g.jobs[j]["estimate"] = min(LARGEST, estimate)
    estimate, processors = as_int64(g.jobs[j]["estimate"]), as_int64(g.jobs[j]["processors"])
    g.queue_key[j] = sort_key(policy["order"], job["entry"], estimate, processors)
    g.order_key[j] = sort_key(policy["backfill_order"], job["entry"], estimate, processors)
    if g.policies[i]["first_come"]:
        first_come.enter(by_reference(line_of(g, i)), j)
    else:
        g.waiting[i, g.state[i, 0]["waiting"]] = j
        g.state[i, 0]["waiting"] += 1


@noinline
def leave_queue(g: DynamicGridArrays, i: int, j: int) -> None:
    """Let a job wait no longer in a local queue."""
    if g.policies[i]["first_come"]:
        first_come.withdraw(by_reference(line_of(g, i)), j)
    else:
        counted.withdraw(by_reference(queue_of(g, i)), j)


@inline
def _expected_start(g: DynamicGridArrays, i: int, needed: int) -> int:
    """When so many processors, more than are free, are expected to be free."""
    state = g.state[i, 0]
    if needed > g.clusters[i]["processors"] - g.clusters[i]["loose"]:
        return FOREVER
    time, _ = running.shadow(g.blocks[i], g.runs[i], state["blocks"], state["free"], needed)
    return time


@noinline
def _decide(g: DynamicGridArrays, i: int, j: int, o: DynamicGridOptions) -> int:
    """What happens to the first job of a queue, which does not fit."""
    cluster = g.clusters[i]
    needed = as_int64(g.jobs[j]["processors"])
    if cluster["member"] == 0:
        return _WAIT
    can_yield = g.state[i, 0]["free"] + cluster["leaving"] + cluster["grid"] >= needed
    if can_yield and (cluster["yielding"] != 0 or o.prefers_migration):
        return _YIELD
    in_time = o.delta_t == FOREVER
    if 0 < o.delta_t < FOREVER:
        in_time = _expected_start(g, i, needed) <= g.progress[j]["headed"] + o.delta_t
    if in_time:
        return _WAIT
    return _YIELD if can_yield else _SEND


@inline
def _victim(g: DynamicGridArrays, i: int, missing: int, o: DynamicGridOptions) -> int:
    """Part that is told next to make place.

    The one that came last; or the smallest that suffices, else the largest, of equal ones the last.
    """
    chosen = NOBODY
    best = 0
    for p in rings.items(g.sites, i):
        size = left_by(g.parts[p])
        suffices = size >= missing
        better = size <= best if suffices else size >= best
        better = better if suffices == (best >= missing) else suffices
        if g.parts[p]["marked"] == 0 and (chosen == NOBODY or o.latest_victim or better):
            chosen = p
            best = size
    return chosen


@noinline
def _ask_for_place(g: DynamicGridArrays, i: int, j: int, now: int, o: DynamicGridOptions) -> None:
    """Tell as many grid jobs to make place as a local job needs."""
    cluster = g.clusters[i]
    cluster["yielding"] = 1
    if g.progress[j]["yielded"] == NOBODY:
        g.progress[j]["yielded"] = now
    missing = as_int64(g.jobs[j]["processors"]) - g.state[i, 0]["free"] - cluster["leaving"]
    for p in rings.items(g.sites, i):
        if g.parts[p]["marked"] != 0:
            missing -= left_by(g.parts[p])
    while missing > 0:
        part = g.parts[_victim(g, i, missing, o)]
        part["marked"] = 1
        missing -= left_by(part)


@noinline
def _set_timer(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Find when the next superstep ends after which a part is to leave."""
    cluster = g.clusters[i]
    cluster["timer"] = FOREVER
    for p in rings.items(g.sites, i):
        if is_wanted(g, p):
            cluster["timer"] = min(cluster["timer"], boundary(g, g.parts[p]["job"], now, o.superstep))
    set_due(g, i)


@noinline
def enter_new(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Let a job wait in NJ."""
    request, job = g.requests[j], g.progress[j]
    job["sent"] = now
    if not o.keeps:
        job["kept"] = 0
    # of who was killed as a local job there may be little left
    estimate = request["estimate"] if job["start"] == NOBODY else 1
    let_wait(g, NEW, j, estimate)


@inline
def _backfill(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Let jobs behind the first one start, as far as the local policy has it."""
    waiting = g.state[i, 0]["waiting"]
    if g.policies[i]["backfilling"] != NO_BACKFILLING:
        _pass(g, i, now, g.policies[i]["backfilling"], o, score)
    if g.state[i, 0]["waiting"] < waiting:
        # some kinds of backfilling delay the first job
        mark_dirty(g, i)


@noinline
def look_after(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Pass of a local scheduler, without the evictions."""
    cluster, state = g.clusters[i], g.state[i, 0]
    cluster["in_time"] = 0
    decision = _SEND
    start_first(g, i, now, o, score)
    while decision == _SEND and state["waiting"] > 0:
        j = first_waiting(g, i, now, o, score)
        if g.progress[j]["headed"] == NOBODY:
            g.progress[j]["headed"] = now
        decision = _decide(g, i, j, o)
        if decision == _YIELD:
            _ask_for_place(g, i, j, now, o)
            continue
        unmark(g, i)
        if decision == _WAIT:
            cluster["in_time"] = 1
            _backfill(g, i, now, o, score)
        else:
            leave_queue(g, i, j)
            cluster["sent"] += 1
            enter_new(g, j, now, o)
            start_first(g, i, now, o, score)
    _set_timer(g, i, now, o)


@noinline
def make_place(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Evict what has to leave a cluster and is at the end of a superstep."""
    for p in rings.items(g.sites, i):
        j = g.parts[p]["job"]
        if is_wanted(g, p) and boundary(g, j, now, o.superstep) == now:
            evict(g, j, i, now, o)
    g.clusters[i]["timer"] = FOREVER


@noinline
def settle(g: DynamicGridArrays, now: int, o: DynamicGridOptions, score: Any) -> None:
    """Passes of all local schedulers where something changed, until nothing does."""
    clock = g.clock[0]
    while clock["dirty"] != 0:
        clock["dirty"] = 0
        for i in range(len(g.clusters)):
            if g.clusters[i]["dirty"] != 0:
                start_first(g, i, now, o, score)
        for i in range(len(g.clusters)):
            if g.clusters[i]["dirty"] != 0:
                g.clusters[i]["dirty"] = 0
                look_after(g, i, now, o, score)
        for i in range(len(g.clusters)):
            if g.clusters[i]["timer"] == now:
                make_place(g, i, now, o)
