"""Scheduling passes: which waiting jobs start now, under every kind of backfilling.

The rules are those of `gridsched.engine.reserving` and `gridsched.engine.conservative`, on nodes. Where jobs
may use certain nodes only, a job that does not fit holds up those that share nodes with it, and each set of
nodes has as many reservations as the policy makes. A job over a limit of its groups holds up nobody.

A pass may end early because there is no room to write down pieces. What it did stays: the next one, at the
same instant and with more room, comes to what a single one would have come to.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import heap
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import note_start
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.placement import choose, could_fit, fits_now, free_pieces_of, is_refused
from gridsched.engine.nodes.plans import earliest, forget_plan, note_plan
from gridsched.engine.nodes.queue import drop_started, list_candidates, start, within_limits
from gridsched.engine.records import FOREVER, Backfilling

_NONE = int(Backfilling.NONE)
_EASY = int(Backfilling.EASY)
_CONSERVATIVE = int(Backfilling.CONSERVATIVE)


@inline
def _start(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Start a job on the pieces that it has."""
    start(a, j, now, options)
    if options.requests > 0:
        note_start(a.lifecycles, j // options.requests, now)


@inline
def _start_if_it_fits(a: NodeArrays, j: int, now: int, options: NodeOptions) -> bool:
    """Start a job if it fits now beside all that is planned."""
    if is_refused(a, j) or not fits_now(a, j, now, options) or not choose(a, j, now, options):
        return False
    _start(a, j, now, options)
    return True


@inline
def reserve(a: NodeArrays, j: int, now: int, latest: int, options: NodeOptions) -> bool:
    """Plan a job at the earliest time, up to `latest`, if there is one; return whether it was planned."""
    time = now
    if is_refused(a, j) or not fits_now(a, j, now, options):
        time = earliest(a, j, now, latest)
    if time == FOREVER or not choose(a, j, time, options):
        return False
    note_plan(a, j, time)
    return True


@inline
def _hold(a: NodeArrays, where: int, reservations: int) -> int:
    """Count a held job for all who share nodes with it; return for how many rows there are enough now."""
    full = 0
    for w in range(len(a.held)):
        a.held[w] += int(a.overlap[where, w])
        full += int(a.held[w] >= reservations)
    return full


@inline
def _forget_reservations(a: NodeArrays) -> None:
    """Drop the reservations that were made for this pass alone."""
    for k in range(a.state[0]["waiting"]):
        j = a.waiting[k]
        if a.jobs[j]["plan"] < FOREVER:
            forget_plan(a, j)
            free_pieces_of(a, j)


@inline
def _count_fresh(a: NodeArrays) -> int:
    """Waiting jobs for which enough is free now; the others cannot start."""
    fresh = 0
    for k in range(a.state[0]["waiting"]):
        j = a.waiting[k]
        fresh += int(not is_refused(a, j) and could_fit(a, j))
    return fresh


@inline
def _try_in_queue_order(a: NodeArrays, size: int, now: int, options: NodeOptions) -> int:
    """Start jobs in queue order until enough are held; list those to be tried later, return how many."""
    store = a.store[0]
    for w in range(len(a.held)):
        a.held[w] = 0
    full, later = 0, 0
    fresh = _count_fresh(a)
    if fresh == 0:
        return 0
    while size > 0 and (full < len(a.held) or options.backfilling != _NONE) and store["short"] == 0:
        j = a.waiting[a.candidates[0]["job"]]
        where = a.jobs[j]["where"]
        fresh -= int(not is_refused(a, j))
        if a.held[where] >= options.reservations:
            a.later[later] = a.candidates[0]["job"]
            later += 1
        elif within_limits(a, j) and not _start_if_it_fits(a, j, now, options) and store["short"] == 0:
            full = _hold(a, where, options.reservations)
            if options.backfilling == _EASY and fresh > 0:
                reserve(a, j, now, FOREVER, options)
        size = heap.pop(a.candidates, size)
    return later


@inline
def _try_later(a: NodeArrays, later: int, now: int, options: NodeOptions) -> None:
    """Start jobs in backfill order that fit beside what is planned."""
    store = a.store[0]
    size = 0
    for k in range(later):
        key = float(k) if options.queue_as_order else a.order_key[a.waiting[a.later[k]]]
        size = heap.push(a.candidates, size, key, a.later[k])
    while size > 0 and store["short"] == 0:
        j = a.waiting[a.candidates[0]["job"]]
        size = heap.pop(a.candidates, size)
        if within_limits(a, j):
            _start_if_it_fits(a, j, now, options)


@noinline
def _queue_pass(a: NodeArrays, now: int, options: NodeOptions, score: Any) -> None:
    """Pass without backfilling, with first fit, or with EASY."""
    size = list_candidates(a, 0, a.state[0]["waiting"], now, options, score)
    later = _try_in_queue_order(a, size, now, options)
    if options.backfilling != _NONE:
        _try_later(a, later, now, options)
    if options.backfilling == _EASY:
        _forget_reservations(a)
    drop_started(a)


# --- conservative backfilling ---------------------------------------------------------------------


@inline
def _has_room(a: NodeArrays) -> bool:
    """Whether there is room to plan and start whoever waits; says in `short` how much there has to be."""
    state, store = a.state[0], a.store[0]
    most = len(a.nodes)
    for k in range(state["waiting"]):
        most += min(a.jobs[a.waiting[k]]["units"], len(a.nodes))
    if store["free_pieces"] >= most and store["executions"] + most <= len(a.executions):
        return True
    store["short"] = most
    return False


@inline
def _move_forward(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Give a planned job an earlier place if there is one."""
    old = a.jobs[j]["plan"]
    forget_plan(a, j)
    time = earliest(a, j, now, old - 1)
    if time < old:
        free_pieces_of(a, j)
        choose(a, j, time, options)
        old = time
    note_plan(a, j, old)


@inline
def _plan_again(a: NodeArrays, now: int, options: NodeOptions, score: Any) -> None:
    """Place the planned jobs again, in queue order: anew if plans are broken, else not later than before."""
    state = a.state[0]
    size = list_candidates(a, 0, state["placed"], now, options, score)
    if state["broken"]:
        _forget_reservations(a)
    while size > 0:
        j = a.waiting[a.candidates[0]["job"]]
        size = heap.pop(a.candidates, size)
        if a.jobs[j]["plan"] < FOREVER:
            _move_forward(a, j, now, options)
        elif within_limits(a, j):
            reserve(a, j, now, FOREVER, options)


@inline
def _start_planned(a: NodeArrays, now: int, options: NodeOptions) -> None:
    """Start the jobs whose time has come; find the next planned start."""
    state = a.state[0]
    state["planned"] = FOREVER
    for k in range(state["waiting"]):
        j = a.waiting[k]
        if a.jobs[j]["plan"] > now:
            state["planned"] = min(state["planned"], a.jobs[j]["plan"])
        elif within_limits(a, j):
            _start(a, j, now, options)
        else:
            # others of its group started first: it is planned again when one of them ends
            forget_plan(a, j)
            free_pieces_of(a, j)
            state["early"] = True
    drop_started(a)


@noinline
def _conservative_pass(a: NodeArrays, now: int, options: NodeOptions, score: Any) -> None:
    """Repair the plan after what happened since the last pass, place new jobs, start those that are due."""
    state = a.state[0]
    if not _has_room(a):
        return
    if state["broken"] or state["early"]:
        _plan_again(a, now, options, score)
    for k in range(state["placed"], state["waiting"]):
        if within_limits(a, a.waiting[k]):
            reserve(a, a.waiting[k], now, FOREVER, options)
    state["placed"] = state["waiting"]
    state["broken"] = False
    state["early"] = False
    _start_planned(a, now, options)


@noinline
def scheduling_pass(a: NodeArrays, now: int, options: NodeOptions, score: Any) -> None:
    """Start what the policy starts now."""
    if a.state[0]["waiting"] == 0:
        a.state[0]["planned"] = FOREVER
        return
    if options.backfilling == _CONSERVATIVE:
        _conservative_pass(a, now, options, score)
    else:
        _queue_pass(a, now, options, score)
