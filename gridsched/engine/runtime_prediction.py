"""Local scheduler that predicts run times while it runs: EASY, first come, first served.

A job is predicted when it is submitted, from the two jobs of its user that ended last by then: the mean of
their run times, rounded down to whole seconds, never more than its estimate (Tsafrir, Etsion and Feitelson,
"Backfilling using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007).
Which jobs have ended by then depends on the schedule, so that predictions cannot be made beforehand. A
prediction stays what it is while its job waits; one that a job outruns is corrected (see `corrected_end`).

With arrivals first this does what pyss does with predictions (the simulator of Gaussier, Glesser, Reis and
Trystram, "Improving backfilling by using machine learning to predict running times", SC 2015): no pass
follows a correction, and where later jobs are tried in the order of the queue, none follows the submission of
a job that does not fit. Other modes have a pass after these, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import cluster_state, heap, running
from gridsched.engine.jit import inline, jit, shift, unchecked
from gridsched.engine.overrun import INCREMENTS, expected_end
from gridsched.engine.records import CORRECTION_DOUBLES, CORRECTION_INCREMENTS, LARGEST, OVERRUN_DOUBLES

_NONE = -1
"""Stands for a run time that is not known, and for the expected end of a job that is not running."""


class PredictionOptions(NamedTuple):
    """What does not change during a simulation."""

    correction: int
    overrun: int  # what is expected of jobs that outrun their estimates, too
    pass_per_event: bool
    arrivals_first: bool  # submissions of an instant come before its ends, and corrections make no pass
    shortest_first: bool  # backfill order: the shortest prediction first, else the order of submission


class PredictionArrays(NamedTuple):
    """Arrays of one simulated cluster."""

    jobs: Any  # JOB[n], in order of submission; the estimate becomes the prediction at submission
    limits: Any  # int64[n], estimates as they were given
    users: Any  # int64[n], number of the user of each job, -1 if not known
    recent: Any  # int64[users, 2], run times of the last job of each user that ended, and of the one before
    waiting: Any  # int64[n + 1], waiting jobs in backfill order
    ends: Any  # int64[n], expected ends of running jobs that hold their processors
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    starts: Any  # int64[n], the result
    state: Any  # STATE[1]


def allocate(jobs: Any, processors: int, users: Any) -> PredictionArrays:
    """Arrays of an empty cluster of so many processors, for these jobs of users numbered from 0."""
    return PredictionArrays(
        limits=jobs["estimate"].astype(np.int64),
        users=users,
        recent=np.full((users.max(initial=0) + 1, 2), _NONE, np.int64),
        waiting=np.empty(len(jobs) + 1, np.int64),
        ends=np.full(len(jobs), _NONE, np.int64),
        **cluster_state.allocate(jobs.copy(), processors),
    )


@inline
def corrected_end(
    start: int, prediction: int, limit: int, correction: int, overrun: int, not_before: int
) -> int:
    """First expected end at or after `not_before` of a job that started at `start`.

    A prediction that was too short is doubled again and again, or becomes the estimate (`limit`), or is
    lengthened by one of `INCREMENTS` after the other: each counts from the prediction, not from the one
    before, and none leads beyond the estimate. What is expected of a job that outruns its estimate, too, is
    a matter of `overrun`, except that who doubles predictions goes on doubling them.
    """
    end = start + prediction
    if end >= not_before:
        return end
    if correction == CORRECTION_DOUBLES:
        return expected_end(start, prediction, OVERRUN_DOUBLES, not_before)
    if correction == CORRECTION_INCREMENTS:
        for increment in INCREMENTS:
            end = start + min(prediction + increment, limit)
            if end >= not_before:
                return end
    return expected_end(start, limit, overrun, not_before)


@inline
def _predict(c: PredictionArrays, j: int) -> None:
    """Predict the run time of a job that is submitted now."""
    user = c.users[j]
    if user >= 0 and c.recent[user, 1] >= 0:
        mean = (c.recent[user, 0] + c.recent[user, 1]) // 2
        c.jobs[j]["estimate"] = max(1, min(mean, c.limits[j]))


@inline
def _learn(c: PredictionArrays, j: int) -> None:
    """Remember how long a job that ends now has run."""
    user = c.users[j]
    if user >= 0:
        c.recent[user, 1] = c.recent[user, 0]
        c.recent[user, 0] = c.jobs[j]["run"]


@inline
def _enqueue(c: PredictionArrays, j: int, shortest_first: bool) -> None:
    """Let a job wait, at its place in the backfill order."""
    state = c.state[0]
    place = state["waiting"]
    if shortest_first:
        low = 0
        while low < place:
            middle = (low + place) >> 1
            if c.jobs[c.waiting[middle]]["estimate"] <= c.jobs[j]["estimate"]:
                low = middle + 1
            else:
                place = middle
        shift(c.waiting, place + 1, place, state["waiting"] - place)
    c.waiting[place] = j
    state["waiting"] += 1


@inline
def submit(c: PredictionArrays, options: PredictionOptions) -> None:
    """Predict the next job, and let it wait."""
    j = c.state[0]["arrival"]
    c.state[0]["arrival"] += 1
    _predict(c, j)
    _enqueue(c, j, options.shortest_first)


@inline
def _start(c: PredictionArrays, j: int, now: int) -> None:
    """Let a job run from now on."""
    cluster_state.start(c, j, now, True)
    c.ends[j] = now + int(c.jobs[j]["estimate"])


@inline
def _leave(c: PredictionArrays, j: int) -> None:
    """Take a running job off its processors, unless it has left them."""
    state = c.state[0]
    if c.ends[j] != _NONE:
        processors = c.jobs[j]["processors"]
        state["free"] += processors
        state["blocks"] = running.remove(c.blocks, c.runs, state["blocks"], c.ends[j], j, processors)
        c.ends[j] = _NONE


@inline
def complete(c: PredictionArrays) -> None:
    """Let the first running job end."""
    j = c.events[0]["job"] & LARGEST
    c.state[0]["ending"] = heap.pop(c.events, c.state[0]["ending"])
    _leave(c, j)
    _learn(c, j)


@inline
def correct(c: PredictionArrays, now: int, options: PredictionOptions) -> None:
    """Expect the first running job that should have ended now to end later."""
    state = c.state[0]
    j = int(c.runs[c.blocks[0]["slot"] * running.SIZE]["job"])
    processors = c.jobs[j]["processors"]
    prediction = int(c.jobs[j]["estimate"])
    end = corrected_end(c.starts[j], prediction, c.limits[j], options.correction, options.overrun, now + 1)
    state["blocks"] = running.remove(c.blocks, c.runs, state["blocks"], now, j, processors)
    state["blocks"] = running.insert(c.blocks, c.runs, state["blocks"], end, j, processors)
    state["corrections"] += 1
    c.ends[j] = end


@inline
def _ends_wait(c: PredictionArrays, now: int) -> bool:
    """Whether ends of this instant have to wait for its submissions and corrections; see `Conventions`.

    Jobs that end as expected leave their processors before anything else happens.
    """
    state = c.state[0]
    if not cluster_state.ends(c, now):
        return False
    if state["freed"] != now:
        state["freed"] = now
        for k in range(state["ending"]):
            j = c.events[k]["job"] & LARGEST
            if c.events[k]["key"] == now and c.ends[j] == now:
                _leave(c, j)
    return cluster_state.arrives(c, now) or cluster_state.first_expected_end(c) == now


@inline
def _fits(c: PredictionArrays, j: int) -> bool:
    """Whether there are processors enough for a job."""
    return c.jobs[j]["processors"] <= c.state[0]["free"]


@inline
def _first_in_queue(c: PredictionArrays) -> int:
    """The first waiting job; there must be one."""
    j = c.state[0]["head"]
    while c.starts[unchecked(j)] >= 0:
        j += 1
    c.state[0]["head"] = j
    return j


@inline
def _backfill(c: PredictionArrays, head: int, now: int) -> None:
    """Start every waiting job, in backfill order, that does not delay the first."""
    state = c.state[0]
    needed = c.jobs[head]["processors"]
    shadow, extra = running.shadow(c.blocks, c.runs, state["blocks"], state["free"], needed)
    extra -= needed
    for k in range(state["waiting"]):
        j = c.waiting[unchecked(k)]
        processors = c.jobs[unchecked(j)]["processors"]
        if processors > state["free"] or j == head or c.starts[unchecked(j)] >= 0:
            continue
        if now + c.jobs[unchecked(j)]["estimate"] <= shadow:
            _start(c, j, now)
        elif processors <= extra:
            extra -= processors
            _start(c, j, now)


@inline
def scheduling_pass(c: PredictionArrays, now: int) -> None:
    """Start what starts now."""
    state = c.state[0]
    left = state["waiting"]
    head = _NONE
    while left > 0 and head == _NONE:
        j = _first_in_queue(c)
        if _fits(c, j):
            _start(c, j, now)
            left -= 1
        else:
            head = j
    if left > 1 and state["free"] > 0:
        _backfill(c, head, now)
    kept = 0
    for k in range(state["waiting"]):
        j = c.waiting[unchecked(k)]
        c.waiting[unchecked(kept)] = j
        if c.starts[unchecked(j)] < 0:
            kept += 1
    state["waiting"] = kept


@jit
def schedule(c: PredictionArrays, options: PredictionOptions) -> None:
    """Simulate the cluster to the end of its last job; `c.starts` is the result."""
    state = c.state[0]
    if options.arrivals_first:
        cluster_state.order_ends_by_start(c)
    while state["arrival"] < len(c.jobs) or state["ending"] > 0:
        now = cluster_state.next_event(c)
        more = True
        changed = False
        ends_wait = options.arrivals_first and _ends_wait(c, now)
        while more and not ends_wait and cluster_state.ends(c, now):
            complete(c)
            changed = True
            more = not options.pass_per_event
        while more and cluster_state.first_expected_end(c) == now:
            correct(c, now, options)
            changed = changed or not options.arrivals_first
            more = not options.pass_per_event
        while more and cluster_state.arrives(c, now):
            j = state["arrival"]
            submit(c, options)
            changed = changed or options.shortest_first or not options.arrivals_first or _fits(c, j)
            more = not options.pass_per_event
        if changed:
            scheduling_pass(c, now)
