"""Local scheduler of a cluster in a grid that serves its queue in order of entry.

No backfilling, first fit, or EASY with one reservation whose backfill order is the queue order. As in
`static_order`, jobs that were refused in the last pass are refused again while no processor was freed and
no expected end was corrected, so that a pass tests only the jobs that entered since. Jobs come from a
superscheduler and are not known before, hence a `line` instead of the search tree of all jobs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gridsched.engine import cluster_state, line, running
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import EASY, FOREVER, NO_BACKFILLING


class FirstComeArrays(NamedTuple):
    """Arrays of one cluster; its expected ends are tracked under every policy."""

    jobs: Any  # JOB[n]
    events: Any  # ENTRY[...], heap of the ends of running jobs
    blocks: Any  # BLOCK[...], see `running`
    runs: Any  # RUN[...], see `running`
    starts: Any  # int64[n], the result
    state: Any  # cluster_state.STATE[1]
    line: line.Line


@inline
def enter(c: FirstComeArrays, j: int) -> None:
    """Let a job wait."""
    line.append(c.line, j, c.jobs[j]["processors"], c.jobs[j]["estimate"])
    c.state[0]["waiting"] += 1


@noinline
def withdraw(c: FirstComeArrays, j: int) -> None:
    """Let a waiting job wait no longer."""
    place = c.line.span[0]["first"]
    while c.line.job[place] != j:
        place += 1
    line.leave(c.line, place)
    line.skip_gaps(c.line)
    c.state[0]["waiting"] -= 1
    c.state[0]["early"] = True


@inline
def complete(c: FirstComeArrays, now: int, overrun: int) -> int:
    """Take the first running job that ends now off its processors; return its expected end."""
    c.state[0]["early"] = True
    return cluster_state.complete(c, now, overrun, True)


@inline
def correct(c: FirstComeArrays, now: int, overrun: int) -> None:
    """Expect the first running job that should have ended now to end later."""
    c.state[0]["early"] = True
    cluster_state.correct(c, now, overrun)


@inline
def _start(c: FirstComeArrays, place: int, now: int) -> None:
    """Start the job at a place of the line."""
    cluster_state.start(c, c.line.job[place], now, True)
    line.leave(c.line, place)
    c.state[0]["waiting"] -= 1


@inline
def _start_in_order(c: FirstComeArrays, now: int) -> None:
    """Start waiting jobs in order up to the first that does not fit."""
    span = c.line.span[0]
    line.skip_gaps(c.line)
    while span["first"] < span["end"] and c.line.processors[span["first"]] <= c.state[0]["free"]:
        _start(c, span["first"], now)
        line.skip_gaps(c.line)


@inline
def _reserve_for_head(c: FirstComeArrays, backfilling: int) -> None:
    """Find the shadow time and the extra processors of the first waiting job."""
    state = c.state[0]
    state["shadow"] = FOREVER
    if backfilling == EASY:
        needed = int(c.line.processors[c.line.span[0]["first"]])
        state["shadow"], available = running.shadow(c.blocks, c.runs, state["blocks"], state["free"], needed)
        state["extra"] = available - needed


@inline
def _backfill(c: FirstComeArrays, place: int, now: int) -> None:
    """Start every job from a place of the line on that fits beside the first one."""
    state = c.state[0]
    window = state["shadow"] - now
    while state["free"] > 0:
        narrow = line.as_column(min(state["extra"], state["free"]))
        wide = line.as_column(state["free"])
        place = line.next_fit(c.line, place, narrow, wide, line.as_column(window))
        if place == c.line.span[0]["end"]:
            return
        if c.line.estimate[place] > window:
            state["extra"] -= c.line.processors[place]
        _start(c, place, now)


@noinline
def scheduling_pass(c: FirstComeArrays, now: int, backfilling: int) -> None:
    """Start what the policy starts now."""
    state = c.state[0]
    span = c.line.span[0]
    place = span["tested"]
    if state["early"] or place <= span["first"]:
        _start_in_order(c, now)
        if state["waiting"] > 0:
            _reserve_for_head(c, backfilling)
        place = span["first"] + 1
    if state["waiting"] > 0 and backfilling != NO_BACKFILLING:
        _backfill(c, place, now)
    line.tidy(c.line, state["waiting"])
    span["tested"] = span["end"]
    state["early"] = False
