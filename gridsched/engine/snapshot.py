"""Simulations that begin with a queue: jobs that run already, jobs that wait, and jobs that come later.

The jobs of a cluster stand in this order: those that run, in order of their starts; those that wait, in order
of submission; those that are submitted later. A simulation ends when all jobs have started that wait at its
beginning, or at its horizon.

Where the policy itself has made the queue, the state is that after the pass of an instant. A pass more
changes nothing as long as the queue order does not change with time.

There is one scheduling pass an instant. Under conservative backfilling the reservations of the waiting jobs
are not part of the state: all are placed anew, in queue order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import cluster_state, counted, local_scheduler, passes, running, static_order
from gridsched.engine.counted import CountedArrays, CountedOptions
from gridsched.engine.jit import as_int64, inline, jit, unchecked
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import EASY
from gridsched.engine.static_order import StaticOrderArrays, StaticOrderOptions


class Beginning(NamedTuple):
    """How a simulation begins, and when it ends at the latest."""

    now: int  # seconds
    running: int  # jobs that run; `starts` says since when
    waiting: int  # jobs that wait
    horizon: int  # seconds: no event after it is simulated
    settled: bool  # whether the scheduling pass of now is over: a queue order may have changed since


@inline
def _let_run(c: Any, begin: Beginning, overrun: int, track: bool) -> None:
    """Put the running jobs on their processors; `track` their expected ends if the policy looks at them."""
    state = c.state[0]
    for j in range(begin.running):
        begun = c.starts[unchecked(j)]
        cluster_state.start(c, j, begun, False)
        if track:
            end = expected_end(begun, int(c.jobs[unchecked(j)]["estimate"]), overrun, begin.now + 1)
            processors = as_int64(c.jobs[unchecked(j)]["processors"])
            state["blocks"] = running.insert(c.blocks, c.runs, state["blocks"], end, j, processors)
    state["arrival"] = begin.running


@inline
def _first_unstarted(c: Any, j: int, end: int) -> int:
    """First job at or after `j` that has not started, `end` if there is none before it."""
    while j < end and c.starts[unchecked(j)] >= 0:
        j += 1
    return j


@inline
def _started_of(c: Any, asked: Any, first: int) -> int:
    """Place of the first job that has not started among those that are asked for, from `first` on."""
    while first < len(asked) and c.starts[unchecked(asked[first])] >= 0:
        first += 1
    return first


@inline
def run_on(c: StaticOrderArrays, options: StaticOrderOptions, begin: Beginning, asked: Any) -> bool:
    """Simulate a cluster on from a queue until the jobs that are asked for have started; whether they did."""
    state = c.state[0]
    easy = options.backfilling == EASY
    _let_run(c, begin, options.overrun, easy)
    end = begin.running + begin.waiting
    for j in range(begin.running, end):
        static_order.enqueue(c, j, options)
    state["arrival"] = end
    static_order.scheduling_pass(c, begin.now, options)
    first = _started_of(c, asked, 0)
    while first < len(asked) and static_order.next_event(c, easy) <= begin.horizon:
        static_order.advance(c, options)
        first = _started_of(c, asked, first)
    return first == len(asked)


@jit
def resume_static_order(c: StaticOrderArrays, options: StaticOrderOptions, begin: Beginning) -> bool:
    """Simulate a cluster on from a queue, as `static_order.schedule`; whether all waiting jobs started."""
    return run_on(c, options, begin, np.arange(begin.running, begin.running + begin.waiting))


@jit
def resume_reserving(c: CountedArrays, options: CountedOptions, score: Any, begin: Beginning) -> bool:
    """Simulate a cluster on from a queue, as `local_scheduler.schedule`; whether all waiting jobs started."""
    _let_run(c, begin, options.overrun, options.backfilling == EASY)
    end = begin.running + begin.waiting
    for _ in range(begin.waiting):
        counted.submit(c)
    if not begin.settled:
        passes.queue_pass(c, begin.now, options, score)
    first = _first_unstarted(c, begin.running, end)
    while first < end and cluster_state.next_event(c) <= begin.horizon:
        local_scheduler.advance(c, options, score)
        first = _first_unstarted(c, first, end)
    return first == end


@jit
def resume_conservative(c: CountedArrays, options: CountedOptions, score: Any, begin: Beginning) -> bool:
    """Simulate a cluster on from a queue, as `schedule_with_plans`; whether all waiting jobs started."""
    state = c.state[0]
    _let_run(c, begin, options.overrun, True)
    end = begin.running + begin.waiting
    for _ in range(begin.waiting):
        counted.submit(c)
    state["placed"] = state["waiting"]
    state["broken"] = True  # makes the plan anew
    passes.conservative_pass(c, begin.now, options, score)
    first = _first_unstarted(c, begin.running, end)
    while first < end and cluster_state.next_event(c) <= begin.horizon:
        local_scheduler.advance_with_plans(c, options, score)
        first = _first_unstarted(c, first, end)
    return first == end
