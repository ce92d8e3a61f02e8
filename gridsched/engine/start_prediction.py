"""When a job would start on a cluster that serves its queue in order of entry, by simulating it once for all.

A prediction is what a cluster will do if nothing else arrives and all estimates are right. For first come,
first served without backfilling, with first fit or with EASY (one reservation, backfill order = queue order),
one prediction *without* the job that is asked for answers every question:

A job that enters now is the last in the queue. A pass tries jobs in queue order, so all others are tried
before it, and what is decided of them depends only on the running jobs and on jobs that are tried earlier.
The job holds no processors before it starts, and its reservation, if it is ever the first in the queue, is
made when nobody is behind it. Hence until it starts every other job does exactly what it would do without it,
and it starts in the first pass, the one of this instant included, after whose other starts its processors
are free and

* nobody waits any more, or
* it would end by the shadow time, or
* it fits in the extra processors.

Passes happen now and whenever a job is expected to end. For each a prediction keeps what the three conditions
need: its time, the free processors, the shadow time and the extra processors.

A prediction is made on demand and simulated only as far as some question needs. It stays valid while reality
follows it: while jobs end exactly when expected (their successors then start as foreseen). An early end or
an outrun estimate makes it void, and so does a job that enters and starts before the last pass that was
simulated. A job that starts in that pass or later is taken into the prediction.

With everything as expected, the shadow time and the extra processors of the first waiting job do not change
until it starts: a job that ends by the shadow time has been counted as ended there, one that is backfilled
gives its processors back by then or is taken from the extra ones. They are worked out once for each such job.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, first_come, line, running
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, noinline, shift
from gridsched.engine.records import EASY, FIRST_FIT_BACKFILLING, FOREVER, LARGEST, NO_BACKFILLING

END = np.dtype([("time", np.int64), ("processors", np.int64)])
"""Expected end of a running job."""

PASS = np.dtype(
    [
        ("time", np.int64),
        ("shadow", np.int64),  # shadow time
        ("free", np.int64),  # idle processors after the pass
        ("narrow", np.int64),  # how many of them a job may hold beyond the shadow time
    ]
)
"""What is kept of a simulated pass."""

STATE = np.dtype(
    [
        ("valid", np.int64),  # whether reality has followed the prediction
        ("backfilling", np.int64),
        ("now", np.int64),  # index of the last pass that is not in the future
        ("passes", np.int64),  # that were simulated
        ("free", np.int64),  # idle processors after the last of them
        ("low", np.int64),  # first expected end after it
        ("high", np.int64),  # end of the expected ends
        ("head", np.int64),  # place of the job that the next two belong to
        ("shadow", np.int64),
        ("extra", np.int64),
    ]
)
"""Scalars of a prediction."""


class StartPrediction(NamedTuple):
    """State after the last simulated pass, and what is kept of all; with one more dimension, one a row."""

    line: line.Line  # jobs that still wait
    ends: Any = column(END, "rows", "ends")  # in order of time between `low` and `high`
    passes: Any = column(PASS, "rows", "passes")
    state: Any = column(STATE, "rows", "one")


def allocate(rows: int, running_jobs: int, room: int) -> StartPrediction:
    """Void predictions for clusters of so many running and waiting jobs."""
    # twice, so that the ends can wander through the array
    sizes = {"rows": rows, "ends": 2 * running_jobs + 2, "passes": running_jobs + room + 2, "one": 1}
    return bundles.allocate(StartPrediction, sizes, line=line.allocate(rows, room))


@inline
def row(f: StartPrediction, index: int) -> StartPrediction:
    """One of several predictions."""
    return StartPrediction(
        line.row(f.line, index),
        f.ends[index],
        f.passes[index],
        f.state[index],
    )


# --- the simulation -------------------------------------------------------------------------------


@inline
def _insert_end(f: StartPrediction, time: int, processors: int) -> None:
    """Add an expected end."""
    state = f.state[0]
    if state["high"] == len(f.ends):
        shift(f.ends, 0, state["low"], state["high"] - state["low"])
        state["high"] -= state["low"]
        state["low"] = 0
    low = state["low"]
    high = state["high"]
    while low < high:
        middle = (low + high) >> 1
        if f.ends[middle]["time"] <= time:
            low = middle + 1
        else:
            high = middle
    shift(f.ends, low + 1, low, state["high"] - low)
    f.ends[low]["time"] = time
    f.ends[low]["processors"] = processors
    state["high"] += 1


@inline
def _start(f: StartPrediction, processors: int, estimate: int, time: int) -> None:
    """Let a job run from `time` on, on extra processors if it ends after the shadow time."""
    state = f.state[0]
    state["free"] -= processors
    if time + estimate > state["shadow"]:
        state["extra"] -= processors
    _insert_end(f, time + estimate, processors)


@inline
def _start_waiting(f: StartPrediction, place: int, time: int) -> None:
    """Start the job at a place of the line."""
    _start(f, int(f.line.processors[place]), int(f.line.estimate[place]), time)
    line.leave(f.line, place)


@inline
def _start_in_order(f: StartPrediction, time: int) -> None:
    """Start waiting jobs in order up to the first that does not fit."""
    span = f.line.span[0]
    state = f.state[0]
    line.skip_gaps(f.line)
    while span["first"] < span["end"] and f.line.processors[span["first"]] <= state["free"]:
        state["shadow"] = FOREVER
        _start_waiting(f, span["first"], time)
        line.skip_gaps(f.line)


@inline
def _shadow(f: StartPrediction, needed: int) -> tuple[int, int]:
    """Time at which `needed` processors are expected to be free, and how many are free then."""
    state = f.state[0]
    available = state["free"]
    entry = state["low"]
    while available < needed:
        available += f.ends[entry]["processors"]
        entry += 1
    time = f.ends[entry - 1]["time"]
    while entry < state["high"] and f.ends[entry]["time"] == time:
        available += f.ends[entry]["processors"]
        entry += 1
    return time, available


@inline
def _reserve_for_head(f: StartPrediction) -> None:
    """Find out what jobs may do beside the first waiting one, if there is one."""
    state = f.state[0]
    span = f.line.span[0]
    state["head"] = span["first"]
    if span["first"] == span["end"]:
        state["shadow"] = FOREVER
        state["extra"] = LARGEST
    elif state["backfilling"] == EASY:
        needed = int(f.line.processors[span["first"]])
        state["shadow"], available = _shadow(f, needed)
        state["extra"] = available - needed
    elif state["backfilling"] == NO_BACKFILLING:
        state["shadow"] = -1
        state["extra"] = -1
    else:
        state["shadow"] = FOREVER
        state["extra"] = LARGEST


@inline
def _backfill(f: StartPrediction, time: int) -> None:
    """Start every job behind the first one that fits beside it."""
    state = f.state[0]
    place = f.line.span[0]["first"] + 1
    window = line.as_column(state["shadow"] - time)
    while state["free"] > 0:
        narrow = line.as_column(min(state["extra"], state["free"]))
        place = line.next_fit(f.line, place, narrow, line.as_column(state["free"]), window)
        if place == f.line.span[0]["end"]:
            return
        _start_waiting(f, place, time)


@inline
def _keep(f: StartPrediction, index: int) -> None:
    """Keep what there is after the last pass."""
    state = f.state[0]
    f.passes[index]["shadow"] = state["shadow"]
    f.passes[index]["free"] = state["free"]
    f.passes[index]["narrow"] = min(state["extra"], state["free"])


@inline
def _forget_past(f: StartPrediction) -> None:
    """Move the passes that are not over to the front of their array."""
    state = f.state[0]
    past = state["now"]
    shift(f.passes, 0, past, state["passes"] - past)
    state["now"] = 0
    state["passes"] -= past


@inline
def _pass(f: StartPrediction, time: int) -> None:
    """Scheduling pass of the prediction."""
    state = f.state[0]
    span = f.line.span[0]
    _start_in_order(f, time)
    if state["head"] != span["first"]:
        _reserve_for_head(f)
    if span["end"] - span["first"] > 1 and state["backfilling"] != NO_BACKFILLING:
        _backfill(f, time)


@inline
def _simulate_on(f: StartPrediction, now: int) -> None:
    """One more pass: the first one now, each other one when the next job is expected to end."""
    state = f.state[0]
    if state["passes"] == len(f.passes):
        _forget_past(f)
    time = now if state["passes"] == 0 else f.ends[state["low"]]["time"]
    while state["low"] < state["high"] and f.ends[state["low"]]["time"] <= time:
        state["free"] += f.ends[state["low"]]["processors"]
        state["low"] += 1
    _pass(f, time)
    f.passes[state["passes"]]["time"] = time
    _keep(f, state["passes"])
    state["passes"] += 1


@inline
def _begin(f: StartPrediction, c: first_come.FirstComeArrays, backfilling: int) -> None:
    """Take over the state of a cluster; nothing is simulated yet."""
    state = f.state[0]
    high = 0
    for block in range(c.state[0]["blocks"]):
        base = c.blocks[block]["slot"] * running.SIZE
        for k in range(base, base + c.blocks[block]["count"]):
            f.ends[high]["time"] = c.runs[k]["end"]
            f.ends[high]["processors"] = c.runs[k]["processors"]
            high += 1
    line.copy(c.line, f.line)
    state["valid"] = True
    state["backfilling"] = backfilling
    state["now"] = 0
    state["passes"] = 0
    state["free"] = c.state[0]["free"]
    state["low"] = 0
    state["high"] = high
    state["head"] = -1
    state["shadow"] = FOREVER
    state["extra"] = LARGEST


# --- what it is asked -----------------------------------------------------------------------------


@inline
def make_void(f: StartPrediction) -> None:
    """Let the next question make the prediction anew."""
    f.state[0]["valid"] = False


@inline
def _catch_up(f: StartPrediction, now: int) -> None:
    """Find the last pass that is not in the future; a prediction that ends before it is void."""
    state = f.state[0]
    while state["now"] + 1 < state["passes"] and f.passes[state["now"] + 1]["time"] <= now:
        state["now"] += 1
    is_last = state["now"] + 1 == state["passes"]
    if is_last and state["low"] < state["high"] and f.ends[state["low"]]["time"] <= now:
        make_void(f)


@inline
def _starts(f: StartPrediction, index: int, now: int, processors: int, estimate: int) -> bool:
    """Whether a job that enters now, last in the queue, can start after the other starts of a pass."""
    this = f.passes[index]
    return processors <= this["free"] and (
        processors <= this["narrow"] or max(now, this["time"]) + estimate <= this["shadow"]
    )


@inline
def _search(f: StartPrediction, now: int, processors: int, estimate: int) -> int:
    """Index of the first pass of those simulated in which a job starts; their number if in none."""
    state = f.state[0]
    index = state["now"]
    while index < state["passes"] and not _starts(f, index, now, processors, estimate):
        index += 1
    return index


@inline
def _could_be_first(f: StartPrediction, last: int) -> bool:
    """Whether a job that enters now would be first in the queue before the last simulated pass, to effect."""
    state = f.state[0]
    matters = state["backfilling"] != FIRST_FIT_BACKFILLING
    return matters and last > state["now"] and f.passes[last - 1]["shadow"] == FOREVER


@noinline
def start(
    f: StartPrediction,
    c: first_come.FirstComeArrays,
    backfilling: int,
    now: int,
    processors: int,
    estimate: int,
    latest: int,
) -> int:
    """When a job starts that enters now; FOREVER if it is after `latest`, unless that is known already."""
    state = f.state[0]
    if state["valid"]:
        _catch_up(f, now)
    if not state["valid"]:
        _begin(f, c, backfilling)
    index = _search(f, now, processors, estimate)
    while index == state["passes"]:
        if index > 0 and f.ends[state["low"]]["time"] > latest:
            return FOREVER
        _simulate_on(f, now)
        index = state["passes"] - 1
        if not _starts(f, index, now, processors, estimate):
            index += 1
    return max(now, f.passes[index]["time"])


@noinline
def enter(f: StartPrediction, now: int, processors: int, estimate: int, j: int) -> None:
    """Take a job that enters now into the prediction; it is void if that changes passes before the last.

    It changes them from its start on, or from when it is the first in the queue and has a reservation.
    """
    state = f.state[0]
    if state["valid"]:
        _catch_up(f, now)
    if not state["valid"]:
        return
    index = _search(f, now, processors, estimate)
    last = state["passes"] - 1
    span = f.line.span[0]
    if index < last or _could_be_first(f, last):
        make_void(f)
        return
    if index == last:
        _start(f, processors, estimate, max(now, f.passes[last]["time"]))
    else:
        line.append(f.line, j, processors, estimate)
        if span["end"] - span["first"] == 1:
            _reserve_for_head(f)
    _keep(f, last)
