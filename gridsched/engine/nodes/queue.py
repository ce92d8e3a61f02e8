"""Who waits, who may start by the limits, and how jobs start and end."""

from __future__ import annotations

from typing import Any

from gridsched.engine import heap
from gridsched.engine.checkpoints import saved_work, with_checkpoints
from gridsched.engine.jit import inline, noinline
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.plans import (
    expect_end,
    forget_begin,
    forget_end,
    forget_plan,
    free_pieces_of,
)
from gridsched.engine.nodes.resources import give_back, take
from gridsched.engine.nodes.runtime_prediction import end_not_before
from gridsched.engine.records import EASY, FOREVER


@inline
def enter(a: NodeArrays, j: int) -> None:
    """Put a job at its place in the queue, which is kept in order of entry."""
    state = a.state[0]
    if a.jobs[j]["entry"] < 0:
        a.jobs[j]["entry"] = state["entered"]
        state["entered"] += 1
    k = state["waiting"]
    while k > 0 and a.jobs[a.waiting[k - 1]]["entry"] > a.jobs[j]["entry"]:
        a.waiting[k] = a.waiting[k - 1]
        k -= 1
    a.waiting[k] = j
    state["waiting"] += 1
    if k < state["placed"]:
        # it comes back to its place between others, who have to be planned anew
        state["placed"] += 1
        state["broken"] = True
    state["changed"] = True


@inline
def leave(a: NodeArrays, j: int) -> None:
    """Let a waiting job wait no longer, and give up what it has planned."""
    state = a.state[0]
    k = 0
    while a.waiting[k] != j:
        k += 1
    if k < state["placed"]:
        state["placed"] -= 1
    for following in range(k + 1, state["waiting"]):
        a.waiting[following - 1] = a.waiting[following]
    state["waiting"] -= 1
    if a.jobs[j]["plan"] < FOREVER:
        forget_plan(a, j)
        free_pieces_of(a, j)
        state["early"] = True
    note_freed(a)


@inline
def note_freed(a: NodeArrays) -> None:
    """Let all who did not fit be tried again."""
    a.state[0]["freed"] += 1
    a.state[0]["changed"] = True


# --- limits ---------------------------------------------------------------------------------------


@inline
def cores_of(a: NodeArrays, j: int) -> int:
    """Cores that a job asks for; of whole nodes those that it fills."""
    return a.jobs[j]["units"] * a.jobs[j]["cores"]


@inline
def within_limits(a: NodeArrays, j: int) -> bool:
    """Whether a job may run beside those that run, by the limits of its groups."""
    for k in range(a.limited.shape[1]):
        group = a.limited[j, k]
        if group >= 0:
            limit = a.limits[group]
            cores = cores_of(a, j)
            if limit["used_jobs"] + 1 > limit["jobs"] or limit["used_cores"] + cores > limit["cores"]:
                return False
            if limit["used_seconds"] + cores * a.jobs[j]["limit"] > limit["seconds"]:
                return False
    return True


@inline
def _count(a: NodeArrays, j: int, sign: int) -> None:
    """Count a job in or out of its groups."""
    for k in range(a.limited.shape[1]):
        group = a.limited[j, k]
        if group >= 0:
            limit = a.limits[group]
            limit["used_jobs"] += sign
            limit["used_cores"] += sign * cores_of(a, j)
            limit["used_seconds"] += sign * cores_of(a, j) * a.jobs[j]["limit"]
            # who had no plan because of a limit may be planned
            a.state[0]["early"] |= sign < 0


# --- executions -----------------------------------------------------------------------------------


@inline
def set_lengths(job: Any, interval: int, cost: int) -> None:
    """Say how long the next execution of a job takes."""
    job["run"] = with_checkpoints(job["work"], interval, cost)
    job["estimate"] = with_checkpoints(job["guess"], interval, cost)
    job["limit"] = with_checkpoints(job["given"], interval, cost)


@inline
def lose_progress(a: NodeArrays, j: int, elapsed: int, options: NodeOptions) -> None:
    """Take away the work of a killed execution but for what its last checkpoint has; count what is lost."""
    job = a.jobs[j]
    saved = saved_work(elapsed, options.interval, options.cost)
    job["work"] -= saved
    job["guess"] = max(1, job["guess"] - saved)
    job["given"] = max(1, job["given"] - saved)
    job["extra"] += elapsed - saved
    set_lengths(job, options.interval, options.cost)


@inline
def _execute(a: NodeArrays, p: int, now: int) -> None:
    """Note that a piece is executed from now on."""
    store, piece = a.store[0], a.pieces[p]
    piece["start"] = now
    piece["execution"] = store["executions"]
    a.executions[store["executions"]] = piece
    store["executions"] += 1


@noinline
def start(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Let a job run from now on, on the pieces that it has, planned or not."""
    store, job = a.store[0], a.jobs[j]
    planned = job["plan"] < FOREVER
    job["start"] = now
    job["end"] = now + job["run"]
    job["expected"] = now + job["estimate"]
    job["plan"] = FOREVER
    p = job["piece"]
    while p >= 0:
        if planned:
            forget_begin(a, p)
            forget_end(a, p)
        take(a, p)
        if options.track:
            expect_end(a, p, job["expected"])
        _execute(a, p, now)
        p = a.pieces[p]["next"]
    _count(a, j, 1)
    store["ending"] = heap.push(a.ending, store["ending"], job["end"], j)
    if options.track:
        store["expecting"] = heap.push(a.expecting, store["expecting"], job["expected"], j)


@noinline
def stop(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Let a running job have nothing any more."""
    job = a.jobs[j]
    p = job["piece"]
    while p >= 0:
        give_back(a, p)
        if options.track:
            forget_end(a, p)
        a.executions[a.pieces[p]["execution"]]["end"] = now
        p = a.pieces[p]["next"]
    free_pieces_of(a, j)
    _count(a, j, -1)
    a.state[0]["early"] |= job["expected"] > now
    job["start"] = -1
    note_freed(a)


@inline
def correct(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Expect a job that should have ended now to end later."""
    state, store, job = a.state[0], a.store[0], a.jobs[j]
    job["expected"] = end_not_before(job, options.prediction, options.correction, options.overrun, now + 1)
    p = job["piece"]
    while p >= 0:
        forget_end(a, p)
        expect_end(a, p, job["expected"])
        p = a.pieces[p]["next"]
    store["expecting"] = heap.push(a.expecting, store["expecting"], job["expected"], j)
    state["corrections"] += 1
    state["broken"] = True
    state["changed"] |= options.backfilling >= EASY


@inline
def _drop_void(a: NodeArrays, entries: Any, size: int, times: Any) -> int:
    """Drop the first entries of a heap while they are of jobs that were killed or corrected; what is left."""
    while size > 0:
        j = entries[0]["job"]
        if a.jobs[j]["start"] >= 0 and times[j] == entries[0]["key"]:
            return size
        size = heap.pop(entries, size)
    return 0


@inline
def next_end(a: NodeArrays) -> int:
    """Time of the next end of a running job."""
    store = a.store[0]
    store["ending"] = _drop_void(a, a.ending, store["ending"], a.jobs["end"])
    return a.ending[0]["key"] if store["ending"] > 0 else FOREVER


@inline
def next_expected_end(a: NodeArrays) -> int:
    """Time of the next expected end of a running job."""
    store = a.store[0]
    store["expecting"] = _drop_void(a, a.expecting, store["expecting"], a.jobs["expected"])
    return a.expecting[0]["key"] if store["expecting"] > 0 else FOREVER
