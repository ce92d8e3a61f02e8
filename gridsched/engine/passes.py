"""Scheduling passes: which waiting jobs start now, under every kind of backfilling; written once for all.

What a cluster has is a matter of `resources`: a number of processors (`counted`) or nodes (`nodes`). The
queue is put in order at each pass, by keys or by the score of the moment.

EASY makes reservations for the first jobs that do not fit, and forgets them at the end of the pass. Where
jobs may use certain nodes only, a job that does not fit holds up those that share nodes with it, and each
set of nodes has as many reservations as the policy makes. A job over a limit of its groups holds up nobody.

Under conservative backfilling every waiting job has a reservation, which no later job can delay (Feitelson
and Weil, "Utilization and predictability in scheduling the IBM SP2 with backfilling", IPPS 1998). The plan is
kept between passes. When something becomes free before it was expected, each waiting job in queue order gives
up its reservation for the earliest place, never a later one. When a job outruns its estimate, or a node
fails, the plan is made anew, since some reservations can no longer be kept.

A pass on nodes may end early because there is no room to write down what jobs have. What it did stays: the
next one, at the same instant and with more room, comes to what a single one would have come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine import heap
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import CONSERVATIVE, EASY, FOREVER, NO_BACKFILLING
from gridsched.engine.resources import resources

# --- order ----------------------------------------------------------------------------------------


@inline
def _queue_key(a: Any, j: int, now: int, options: Any, score: Any) -> float:
    """Place of a waiting job in the queue: smallest first."""
    if not options.changing:
        return a.queue_key[j]
    labels = a.labels[j]
    value = score(
        now,
        a.jobs[j]["submit"],
        int(a.jobs[j]["estimate"]),
        labels["processors"],
        labels["user"],
        labels["group"],
        labels["queue"],
    )
    if not np.isfinite(value) and a.state[0]["unordered"] == 0:
        a.state[0]["unordered"] = labels["number"] + 1
        a.state[0]["unordered_at"] = now
    return -value


@inline
def list_candidates(a: Any, count: int, now: int, options: Any, score: Any) -> int:
    """Heap of the first `count` waiting jobs in queue order, see `resources.item`; return its size."""
    size = 0
    for k in range(count):
        key = _queue_key(a, a.waiting[k], now, options, score)
        size = heap.push(a.candidates, size, key, resources.item(a, k))
    return size


@inline
def drop_started(a: Any) -> None:
    """Keep only the jobs that still wait, in their order."""
    state = a.state[0]
    kept, placed = 0, 0
    for k in range(state["waiting"]):
        j = a.waiting[k]
        a.waiting[kept] = j
        if not resources.has_started(a, j):
            kept += 1
            placed += int(k < state["placed"])
    state["waiting"] = kept
    state["placed"] = placed


# --- without plans, and with those of EASY --------------------------------------------------------


@inline
def _count_fresh(a: Any) -> int:
    """Waiting jobs for which enough is free now; the others cannot start."""
    fresh = 0
    for k in range(a.state[0]["waiting"]):
        fresh += int(resources.could_fit(a, a.waiting[k]))
    return fresh


@inline
def _keeps_waiting(a: Any, j: int, now: int, options: Any) -> bool:
    """Start a job if it may and fits; return whether it is one that others have to respect."""
    if not resources.within_limits(a, j) or resources.start_if_it_fits(a, j, now, options):
        return False
    return not resources.is_over(a)


@inline
def _try_in_queue_order(a: Any, size: int, now: int, options: Any) -> tuple[int, int]:
    """Start jobs in queue order until all are held up; return how many are left, and how many come later.

    Those that are held up before, since they share no nodes with others, are listed in `later`.
    """
    later = 0
    all_held = False
    fresh = _count_fresh(a)
    if fresh == 0:
        return 0, 0
    while size > 0 and not (all_held or resources.is_over(a)):
        item = a.candidates[0]["job"]
        j = resources.job_of(a, item)
        fresh -= int(not resources.is_refused(a, j))
        if resources.is_held(a, j, options.reservations):
            a.later[later] = item
            later += 1
        elif _keeps_waiting(a, j, now, options):
            all_held = resources.hold(a, j, options.reservations)
            if options.backfilling == EASY and fresh > 0:
                resources.reserve(a, j, now, FOREVER, options)
        size = heap.pop(a.candidates, size)
    return size, later


@inline
def _put_off(a: Any, size: int, later: int) -> int:
    """List the jobs that are left in `later`, too, in queue order; return how many these are then."""
    while size > 0:
        a.later[later] = a.candidates[0]["job"]
        later += 1
        size = heap.pop(a.candidates, size)
    return later


@inline
def _in_backfill_order(a: Any, size: int, later: int, options: Any) -> int:
    """Heap of the jobs that are left and could fit, in backfill order; return its size."""
    if later > 0:
        later = _put_off(a, size, later)
        size = later
    kept = 0
    for k in range(size):
        item, key = a.candidates[k]["job"], a.candidates[k]["key"]
        if later > 0:
            item, key = a.later[k], float(k)
        j = resources.job_of(a, item)
        if not resources.is_refused(a, j):
            kept = heap.push(a.candidates, kept, key if options.queue_as_order else a.order_key[j], item)
    return kept


@inline
def _backfill(a: Any, size: int, now: int, options: Any) -> None:
    """Start jobs in backfill order that fit beside what is planned."""
    while size > 0 and not resources.is_over(a):
        j = resources.job_of(a, a.candidates[0]["job"])
        size = heap.pop(a.candidates, size)
        if resources.within_limits(a, j):
            resources.start_if_it_fits(a, j, now, options)


@inline
def queue_pass(a: Any, now: int, options: Any, score: Any) -> None:
    """Pass without backfilling, with first fit, or with EASY."""
    if a.state[0]["waiting"] == 0 or resources.is_over(a):
        return
    resources.begin_pass(a, now, options)
    size = list_candidates(a, a.state[0]["waiting"], now, options, score)
    size, later = _try_in_queue_order(a, size, now, options)
    if options.backfilling != NO_BACKFILLING:
        _backfill(a, _in_backfill_order(a, size, later, options), now, options)
    resources.end_pass(a, options)
    drop_started(a)


# --- conservative backfilling ---------------------------------------------------------------------


@inline
def _plan_again(a: Any, now: int, options: Any, score: Any) -> None:
    """Place the planned jobs again, in queue order: anew if plans are broken, else not later than before."""
    state = a.state[0]
    size = list_candidates(a, state["placed"], now, options, score)
    if state["broken"]:
        resources.forget_plans(a, now)
    in_order = heap.is_sorted(a.candidates, size)
    for k in range(size):
        j = resources.job_of(a, a.candidates[k if in_order else 0]["job"])
        if not in_order:
            heap.pop(a.candidates, size - k)
        if not state["broken"] and resources.is_planned(a, j):
            resources.move_forward(a, j, now, options)
        elif resources.within_limits(a, j):
            resources.reserve(a, j, now, FOREVER, options)


@inline
def _start_planned(a: Any, now: int, options: Any) -> None:
    """Start the jobs whose time has come; find the next planned start."""
    state = a.state[0]
    state["planned"] = FOREVER
    size = 0
    for k in range(state["waiting"]):
        start = resources.planned_start(a, a.waiting[k])
        if start <= now:
            size = heap.push(a.candidates, size, resources.turn_of(a, a.waiting[k]), resources.item(a, k))
        else:
            state["planned"] = min(state["planned"], start)
    while size > 0:
        j = resources.job_of(a, a.candidates[0]["job"])
        size = heap.pop(a.candidates, size)
        resources.start_as_planned(a, j, now, options)
    drop_started(a)


@inline
def conservative_pass(a: Any, now: int, options: Any, score: Any) -> None:
    """Repair the plan after what happened since the last pass, place new jobs, start those that are due."""
    state = a.state[0]
    if not resources.begin_plans(a, now):
        return
    if state["broken"] or state["early"]:
        _plan_again(a, now, options, score)
    for k in range(state["placed"], state["waiting"]):
        if resources.within_limits(a, a.waiting[k]):
            resources.reserve(a, a.waiting[k], now, FOREVER, options)
    state["placed"] = state["waiting"]
    state["broken"] = False
    state["early"] = False
    _start_planned(a, now, options)


@noinline
def scheduling_pass(a: Any, now: int, options: Any, score: Any) -> None:
    """Start what the policy starts now."""
    if options.backfilling == CONSERVATIVE:
        conservative_pass(a, now, options, score)
    else:
        queue_pass(a, now, options, score)
