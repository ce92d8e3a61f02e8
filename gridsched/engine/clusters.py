"""Clusters of a grid: a local scheduler on each, the jobs sent to it, and when another one would start.

A local queue numbers its jobs by their entry, counted over all clusters, so that what is known of a job
stands in one array for all of them; ties go by this number. A cluster that serves its queue in order of entry
is scheduled by `first_come`, the others as a single cluster is, by `passes`: `_cluster` makes one row of
two-dimensional arrays look like it.

Grid schedulers ask when a job would start. In `exact` mode the answer is what the cluster would do if nothing
else came and all estimates were right: from a `start_prediction` where the queue is in order of entry,
from the kept plan under conservative backfilling, else by simulating a copy of the cluster. In `plan` mode it
is the place that a `conservative_plan` leaves.

Who decides where a job runs, and in which order things happen at one instant, is said in `superscheduling`
and `self_scheduling`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import (
    bundles,
    cluster_state,
    conservative_plan,
    counted,
    due_times,
    first_come,
    heap,
    line,
    passes,
    profile,
    running,
    start_prediction,
)
from gridsched.engine.bundles import column
from gridsched.engine.jit import as_int64, inline, noinline
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import (
    CONSERVATIVE,
    EASY,
    ENTRY,
    FOREVER,
    JOB,
    LABELS,
    RUN,
    SCORED,
    STEP,
)
from gridsched.engine.reference import by_reference


class StartPredictions(IntEnum):
    """Where predicted starts come from."""

    EXACT = 0
    PLAN = 1


EXACT, PLAN = map(int, StartPredictions)


class Order(IntEnum):
    """Orders of waiting jobs that a cluster of a grid knows; SCORE is the grid's score of the moment."""

    FCFS = 0
    SHORTEST = 1
    SMALLEST = 2
    SMALLEST_AREA = 3
    SCORE = 4


FCFS, SHORTEST, SMALLEST, SMALLEST_AREA, SCORE = map(int, Order)


CLUSTER = np.dtype(
    [
        ("processors", np.int64),
        ("processors_per_node", np.int64),
        ("node_exclusive", np.int64),
        ("speed", np.float64),
        ("order", np.int64),  # value of `Order`
        ("backfilling", np.int64),  # value of `Backfilling`
        ("reservations", np.int64),
        ("backfill_order", np.int64),  # value of `Order`, without SCORE
        ("queue_as_order", np.int64),  # the backfill order is the queue order
        ("first_come", np.int64),  # `first_come` schedules it; set by `allocate`
    ]
)
"""A cluster and its local policy."""

CLOCK = np.dtype(
    [
        ("arrival", np.int64),  # next job to be submitted
        ("queries", np.int64),  # how often a cluster was asked about a job
        ("entered", np.int64),  # jobs that have entered a local queue
        ("longest", np.int64),  # jobs in the longest local queue so far
    ]
)
"""Scalars of the grid."""

UNDECIDED, NOWHERE = -1, -2
"""Instead of the cluster of a job: not decided yet, fits nowhere."""


class GridOptions(NamedTuple):
    """What does not change during a simulation; grid schedulers may have more options."""

    overrun: int
    predictions: int


class GridArrays(NamedTuple):
    """Jobs and the clusters that they are sent to: m clusters, n jobs."""

    requests: Any  # JOB[n], in order of submission
    given_speed: Any  # float64[n], of the cluster as on which times of a request are
    home: Any  # int64[n], cluster where a job is submitted; negative for none
    clusters: Any  # CLUSTER[m]
    cluster: Any  # int64[n], where a job was or will be sent; negative see `UNDECIDED`
    entry: Any  # int64[n], its number in the order of entry
    dirty: Any  # bool[m], clusters that need a scheduling pass
    due: Any  # time of the next event of each cluster, now if a job enters it; see `due_times`
    clock: Any  # CLOCK[1]
    state: Any  # cluster_state.STATE[m + 1, 1], see `LocalArrays`


class LocalArrays(NamedTuple):
    """What the local schedulers and the predictions work on.

    Rows are clusters; `copy` is the row of one more, to which a cluster is copied to be simulated on. What is
    known of jobs, in order of entry, has two rows: as it is, and as it is expected in the copy.
    """

    labels_of_requests: Any  # LABELS[n], in order of submission
    blocks: Any  # BLOCK[m + 1, ...]
    state: Any  # cluster_state.STATE[m + 1, 1], that of `GridArrays`
    lines: line.Line  # used by `first_come`
    start_predictions: start_prediction.StartPrediction
    plans: conservative_plan.Plan
    labels: Any = column(LABELS, "entries")
    queue_key: Any = column(np.float64, "entries")
    order_key: Any = column(np.float64, "entries")
    # start in the conservative plan
    planned: Any = column(np.int64, "entries")
    # as on the cluster that a job was sent to
    jobs: Any = column(JOB, "two", "entries")
    # the result
    starts: Any = column(np.int64, "two", "entries", fill=-1)
    # planned starts under conservative backfilling
    plan: Any = column(np.int64, "two", "entries")
    # not used by `first_come`; the next two are for one pass at a time
    waiting: Any = column(np.int64, "rows", "room")
    candidates: Any = column(SCORED, "room")
    later: Any = column(np.int64, "room")
    events: Any = column(ENTRY, "rows", "ends")
    runs: Any = column(RUN, "rows", "runs")
    # not used by `first_come`
    steps: Any = column(STEP, "rows", "steps")


def allocate(
    requests: Any,
    request_labels: Any,
    given_speed: Any,
    home: Any,
    clusters: Any,
    room: int,
    predictions: int,
    *,
    keyed: bool = False,
) -> tuple[GridArrays, LocalArrays]:
    """Arrays of an idle grid, with room for so many jobs in each local queue.

    With `keyed` every queue is kept by keys, which a grid scheduler may change when a job enters.
    """
    number = len(requests)
    clusters = clusters.copy()
    clusters["first_come"] = is_first_come(clusters) & ~keyed
    state = np.zeros((len(clusters) + 1, 1), cluster_state.STATE)
    state["free"][:-1, 0] = clusters["processors"]
    state["planned"] = FOREVER
    state["high"] = 1
    g = GridArrays(
        requests=requests,
        given_speed=given_speed,
        home=home,
        clusters=clusters,
        cluster=np.full(number, UNDECIDED, np.int64),
        entry=np.full(number, -1, np.int64),
        dirty=np.zeros(len(clusters), np.bool_),
        due=due_times.allocate(np.full(len(clusters), FOREVER)),
        clock=np.zeros(1, CLOCK),
        state=state,
    )
    return g, _allocate_local(g, request_labels, room, predictions)


def is_first_come(clusters: Any) -> Any:
    """Clusters that `first_come` can schedule."""
    in_order = (clusters["queue_as_order"] != 0) | (clusters["backfill_order"] == FCFS)
    kept = (clusters["backfilling"] == CONSERVATIVE) | (clusters["reservations"] > 1)
    return (clusters["order"] == FCFS) & in_order & ~kept


def _most_running(g: GridArrays) -> int:
    """Jobs that can run at the same time on the largest cluster."""
    return int(min(len(g.requests), g.clusters["processors"].max()))


def _allocate_local(g: GridArrays, request_labels: Any, room: int, predictions: int) -> LocalArrays:
    """Arrays of idle local schedulers."""
    number, rows = len(g.requests), len(g.clusters) + 1
    most = _most_running(g)
    blocks, runs = running.allocate(most)
    unwatched = (g.clusters["first_come"] == 0) & (g.clusters["backfilling"] < EASY)
    local = bundles.allocate(
        LocalArrays,
        {"entries": number, "two": 2, "rows": rows, "ends": most + 1, "runs": len(runs)} | _room(g, room),
        labels_of_requests=request_labels,
        blocks=np.tile(blocks, (rows, 1)),
        state=g.state,
        lines=line.allocate(len(g.clusters), room),
        start_predictions=_allocate_start_predictions(g, room, predictions),
        plans=conservative_plan.allocate(
            g.clusters["processors"], unwatched, _planned_jobs(g, room, predictions)
        ),
    )
    local.steps["free"][:-1, 0] = g.clusters["processors"]
    return local


def _room(g: GridArrays, room: int) -> dict[str, int]:
    """Sizes of what so many jobs in each queue need; a prediction has one more, so does a heap."""
    return {"room": room + 1, "steps": profile.steps_for(_most_running(g) + room)}


def _allocate_start_predictions(
    g: GridArrays, room: int, predictions: int
) -> start_prediction.StartPrediction:
    """Void predictions; without room where none are made."""
    if predictions == PLAN:
        return start_prediction.allocate(len(g.clusters), 0, 0)
    return start_prediction.allocate(len(g.clusters), _most_running(g), room)


def _planned_jobs(g: GridArrays, room: int, predictions: int) -> int:
    """Jobs in a conservative plan, at most."""
    return _most_running(g) + room if predictions == PLAN else 0


def with_room(g: GridArrays, local: LocalArrays, room: int, predictions: int) -> LocalArrays:
    """The same local schedulers with room for more jobs in each queue."""
    return bundles.grow(local, _room(g, room))._replace(
        lines=line.with_room(local.lines, room),
        start_predictions=_allocate_start_predictions(g, room, predictions),
        plans=conservative_plan.with_room(local.plans, _planned_jobs(g, room, predictions)),
    )


def with_entries(local: LocalArrays, entries: int) -> LocalArrays:
    """The same local schedulers for more entries into local queues, where jobs may enter more than once."""
    return bundles.grow(local, {"entries": entries})


@inline
def _cluster(local: LocalArrays, row: int) -> counted.CountedArrays:
    """A cluster, or the copy of one, as a single one."""
    copied = int(row == len(local.state) - 1)
    return counted.CountedArrays(
        local.jobs[copied],
        local.labels,
        local.queue_key,
        local.order_key,
        local.events[row],
        local.blocks[row],
        local.runs[row],
        local.starts[copied],
        local.state[row],
        local.waiting[row],
        local.candidates,
        local.later,
        local.steps[row],
        local.plan[copied],
    )


@inline
def _first_come(local: LocalArrays, m: int) -> first_come.FirstComeArrays:
    """A cluster as `first_come` knows it."""
    return first_come.FirstComeArrays(
        local.jobs[0],
        local.events[m],
        local.blocks[m],
        local.runs[m],
        local.starts[0],
        local.state[m],
        line.row(local.lines, m),
    )


@inline
def _policy(cluster: Any, overrun: int) -> counted.CountedOptions:
    """Options of the local scheduler of a cluster."""
    return counted.CountedOptions(
        cluster["backfilling"],
        cluster["reservations"],
        overrun,
        False,
        False,
        cluster["order"] == SCORE,
        cluster["queue_as_order"] != 0,
    )


# --- a job on a cluster ---------------------------------------------------------------------------


@inline
def allocation(g: GridArrays, j: int, m: int) -> int:
    """Processors that a cluster would lose to a job."""
    cluster = g.clusters[m]
    processors = int(g.requests[j]["processors"])
    if cluster["node_exclusive"] == 0:
        return processors
    return -(-processors // cluster["processors_per_node"]) * cluster["processors_per_node"]


@inline
def fits(g: GridArrays, local: LocalArrays, j: int, m: int) -> bool:
    """Whether a cluster is large enough for a job."""
    return allocation(g, j, m) <= g.clusters[m]["processors"]


@inline
def seconds_on(g: GridArrays, seconds: int, j: int, m: int) -> int:
    """Whole seconds that a time of a job, as it is given, takes on a cluster."""
    given, speed = g.given_speed[j], g.clusters[m]["speed"]
    return seconds if given == speed else math.ceil(seconds * given / speed)


@inline
def guess_on(g: GridArrays, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster, whatever else happens there."""
    return max(1, seconds_on(g, int(g.requests[j]["estimate"]), j, m))


@inline
def estimate_on(g: GridArrays, local: LocalArrays, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster."""
    return guess_on(g, j, m)


@inline
def sort_key(order: int, entry: int, estimate: int, processors: int) -> float:
    """Sort key of a job in an order that does not change; ties go by entry."""
    if order == SHORTEST:
        return float(estimate)
    if order == SMALLEST:
        return float(processors)
    if order == SMALLEST_AREA:
        return float(estimate) * float(processors)
    return float(entry)


@inline
def _describe(g: GridArrays, jobs: Any, e: int, j: int, m: int) -> None:
    """Write down a job as it is on a cluster."""
    jobs[e]["submit"] = g.requests[j]["submit"]
    jobs[e]["run"] = seconds_on(g, g.requests[j]["run"], j, m)
    jobs[e]["estimate"] = guess_on(g, j, m)
    jobs[e]["processors"] = allocation(g, j, m)


@inline
def _append(c: counted.CountedArrays, cluster: Any, labels: Any, e: int) -> None:
    """Put a job that is described at the end of a local queue."""
    estimate = int(c.jobs[e]["estimate"])
    processors = int(c.jobs[e]["processors"])
    c.labels[e] = labels
    c.queue_key[e] = sort_key(cluster["order"], e, estimate, processors)
    c.order_key[e] = sort_key(cluster["backfill_order"], e, estimate, processors)
    c.starts[e] = -1
    c.plan[e] = FOREVER
    c.waiting[c.state[0]["waiting"]] = e
    c.state[0]["waiting"] += 1


@inline
def enter(g: GridArrays, local: LocalArrays, j: int, m: int, now: int, options: Any, score: Any) -> None:
    """Send a job to the local queue of a cluster."""
    clock = g.clock[0]
    e = clock["entered"]
    clock["entered"] += 1
    g.entry[j] = e
    g.dirty[m] = True
    due_times.put(g.due, m, now)
    _describe(g, local.jobs[0], e, j, m)
    if options.predictions == PLAN:
        _plan_entry(g, local, e, m, now, options, score)
    if g.clusters[m]["first_come"]:
        if local.start_predictions.state[m, 0]["valid"]:
            job = local.jobs[0, e]
            f = by_reference(start_prediction.row(local.start_predictions, m))
            start_prediction.enter(f, now, as_int64(job["processors"]), as_int64(job["estimate"]), e)
        first_come.enter(by_reference(_first_come(local, m)), e)
    else:
        _append(by_reference(_cluster(local, m)), g.clusters[m], local.labels_of_requests[j], e)
    clock["longest"] = max(clock["longest"], g.state[m, 0]["waiting"])


@inline
def _forget_predictions(local: LocalArrays, m: int) -> None:
    """Let predictions be made anew that rest on what holds no longer."""
    local.start_predictions.state[m, 0]["valid"] = False
    local.plans.state[m, 0]["valid"] = False


@noinline
def withdraw(g: GridArrays, local: LocalArrays, j: int, m: int, now: int) -> None:
    """Take a waiting job out of the local queue of a cluster, which has a scheduling pass then."""
    e = g.entry[j]
    _forget_predictions(local, m)
    g.dirty[m] = True
    due_times.put(g.due, m, now)
    if g.clusters[m]["first_come"]:
        first_come.withdraw(by_reference(_first_come(local, m)), e)
    else:
        counted.withdraw(by_reference(_cluster(local, m)), e)


@noinline
def resize(g: GridArrays, local: LocalArrays, m: int, processors: int, held: Any, now: int) -> None:
    """Let a cluster have so many processors, of which each running job holds `held`, by entry.

    A job may hold fewer than it was given, where those that it runs on are among the removed ones. Jobs that
    are larger than the cluster must not wait there. It has a scheduling pass then.
    """
    c = by_reference(_cluster(local, m))
    state = c.state[0]
    state["free"] = processors
    for k in range(state["ending"]):
        e = c.events[k]["job"]
        c.jobs[e]["processors"] = held[e]
        state["free"] -= held[e]
    for block in range(state["blocks"]):
        c.blocks[block]["processors"] = 0
        base = c.blocks[block]["slot"] * running.SIZE
        for k in range(base, base + c.blocks[block]["count"]):
            c.runs[k]["processors"] = held[c.runs[k]["job"]]
            c.blocks[block]["processors"] += c.runs[k]["processors"]
    # every plan is made anew, and who was refused is tried again
    state["early"] = True
    state["broken"] = True
    _forget_predictions(local, m)
    local.plans.state[m, 0]["processors"] = processors
    g.clusters[m]["processors"] = processors
    g.dirty[m] = True
    due_times.put(g.due, m, now)


# --- what happens on a cluster --------------------------------------------------------------------


@inline
def _finish_first_come(g: GridArrays, local: LocalArrays, m: int, now: int, options: Any) -> None:
    """Completions and corrections of a `first_come` cluster that are due."""
    c = by_reference(_first_come(local, m))
    while cluster_state.ends(c, now):
        if options.predictions == PLAN:
            conservative_plan.complete(
                by_reference(conservative_plan.row(local.plans, m)), c, now, options.overrun
            )
        if first_come.complete(c, now, options.overrun) > now:
            local.start_predictions.state[m, 0]["valid"] = False
        g.dirty[m] = True
    while cluster_state.first_expected_end(c) == now:
        first_come.correct(c, now, options.overrun)
        _forget_predictions(local, m)
        g.dirty[m] |= g.clusters[m]["backfilling"] == EASY


@inline
def _finish_generally(g: GridArrays, local: LocalArrays, m: int, now: int, options: Any) -> None:
    """Completions and corrections of any other cluster that are due."""
    c, policy = by_reference(_cluster(local, m)), _policy(g.clusters[m], options.overrun)
    while cluster_state.ends(c, now):
        if options.predictions == PLAN:
            conservative_plan.complete(
                by_reference(conservative_plan.row(local.plans, m)), c, now, options.overrun
            )
        counted.complete(c, now, policy)
        g.dirty[m] = True
    while cluster_state.first_expected_end(c) == now:
        counted.correct(c, now, policy)
        _forget_predictions(local, m)
        g.dirty[m] = True
    if c.state[0]["planned"] <= now:
        g.dirty[m] = True


@inline
def _finish_events(g: GridArrays, local: LocalArrays, m: int, now: int, options: Any) -> None:
    """Completions and corrections of a cluster that are due."""
    if g.clusters[m]["first_come"]:
        _finish_first_come(g, local, m, now, options)
    else:
        _finish_generally(g, local, m, now, options)


@inline
def _pass(g: GridArrays, local: LocalArrays, m: int, now: int, options: Any, score: Any) -> None:
    """Scheduling pass of a cluster."""
    expected = _planned_now(g, local, m, now) if options.predictions == PLAN else 0
    waiting = g.state[m, 0]["waiting"]
    if g.clusters[m]["first_come"]:
        first_come.scheduling_pass(by_reference(_first_come(local, m)), now, g.clusters[m]["backfilling"])
    else:
        c = by_reference(_cluster(local, m))
        passes.scheduling_pass(c, now, _policy(g.clusters[m], options.overrun), score)
    if options.predictions == PLAN:
        started = waiting - g.state[m, 0]["waiting"]
        if started > 0:
            conservative_plan.start(by_reference(conservative_plan.row(local.plans, m)), now)
        if started != expected or _planned_now(g, local, m, now) > 0:
            local.plans.state[m, 0]["valid"] = False


# --- predicted starts: conservative plan ----------------------------------------------------------


@inline
def _places(g: GridArrays, local: LocalArrays, m: int) -> tuple[int, int]:
    """Places of those who wait on a cluster, in order of entry: the first, and the one behind the last."""
    if g.clusters[m]["first_come"]:
        span = local.lines.span[m, 0]
        return span["first"], span["end"]
    return 0, g.state[m, 0]["waiting"]


@inline
def _at(g: GridArrays, local: LocalArrays, m: int, place: int) -> int:
    """Who waits at a place of a cluster; -1 for nobody."""
    return local.lines.job[m, place] if g.clusters[m]["first_come"] else local.waiting[m, place]


@inline
def _soonest(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Earliest planned start of the waiting jobs that have a place."""
    soonest = FOREVER
    k, end = _places(g, local, m)
    while k < end and _at(g, local, m, k) < local.plans.state[m, 0]["unplaced"]:
        if _at(g, local, m, k) >= 0:
            soonest = min(soonest, local.planned[_at(g, local, m, k)])
        k += 1
    return soonest


@inline
def _planned_now(g: GridArrays, local: LocalArrays, m: int, now: int) -> int:
    """How many waiting jobs are planned to start now; 0 if the plan is out of date.

    Passes are many, so that the jobs are only counted if some may be.
    """
    state = local.plans.state[m, 0]
    if not state["valid"]:
        return 0
    if state["soonest"] < now:
        state["soonest"] = _soonest(g, local, m)
    if state["soonest"] > now:
        return 0
    count = 0
    k, end = _places(g, local, m)
    while k < end and _at(g, local, m, k) < state["unplaced"]:
        e = _at(g, local, m, k)
        count += int(e >= 0 and local.planned[e] == now)
        k += 1
    return count


@inline
def _is_up_to_date(g: GridArrays, local: LocalArrays, m: int, now: int, overrun: int) -> bool:
    """Whether a plan is up to date: here it is seen if a job should have started or ended before."""
    p = by_reference(conservative_plan.row(local.plans, m))
    state = p.state[0]
    if state["valid"] and state["soonest"] < now:
        state["soonest"] = _soonest(g, local, m)
        state["valid"] = state["soonest"] >= now
    conservative_plan.look_for_outrun(p, by_reference(_first_come(local, m)), now, overrun)
    return state["valid"] != 0


@noinline
def _place(local: LocalArrays, m: int, e: int, now: int, is_planned: bool) -> None:
    """Reserve the earliest place for a waiting job, or the one that it has already."""
    p = by_reference(conservative_plan.row(local.plans, m))
    processors = as_int64(local.jobs[0, e]["processors"])
    estimate = as_int64(local.jobs[0, e]["estimate"])
    if not is_planned:
        local.planned[e] = conservative_plan.earliest(p, now, processors, estimate, FOREVER)
    conservative_plan.reserve(p, now, local.planned[e], processors, estimate)
    conservative_plan.note_start(p, local.planned[e])


@inline
def _place_more(g: GridArrays, local: LocalArrays, m: int, now: int, most: int) -> None:
    """Reserve places for the next waiting jobs of a queue in order of entry, at most so many."""
    state = local.plans.state[m, 0]
    k, end = _places(g, local, m)
    while k < end and _at(g, local, m, k) < state["unplaced"]:
        k += 1
    while k < end and most > 0:
        e = _at(g, local, m, k)
        if e >= 0:
            _place(local, m, e, now, False)
            state["unplaced"] = e + 1
            most -= 1
        k += 1
    if k == end:
        state["unplaced"] = FOREVER


@inline
def _place_all(g: GridArrays, local: LocalArrays, m: int, now: int, overrun: int, score: Any) -> None:
    """Reserve places for all waiting jobs: those that they have in a plan that is up to date, else anew."""
    c = by_reference(_cluster(local, m))
    state = local.plans.state[m, 0]
    size = passes.list_candidates(c, c.state[0]["waiting"], now, _policy(g.clusters[m], overrun), score)
    while size > 0:
        e = c.candidates[0]["job"]
        size = heap.pop(c.candidates, size)
        _place(local, m, e, now, state["valid"] != 0)


_FEW = 2
"""Waiting jobs that get places before it is asked again whether that was enough; then twice as many."""


@noinline
def _planned_start(
    g: GridArrays,
    local: LocalArrays,
    m: int,
    now: int,
    processors: int,
    estimate: int,
    latest: int,
    enters: bool,
    overrun: int,
    score: Any,
) -> int:
    """Earliest place that the plan of a cluster leaves, as in `predicted_start`.

    A job that `enters` does not make the plan anew: if it is out of date, this is `now`. Nor does it need a
    place where others before it have none yet.
    """
    p = by_reference(conservative_plan.row(local.plans, m))
    state = p.state[0]
    up_to_date = _is_up_to_date(g, local, m, now, overrun)
    if enters and not (up_to_date and state["unplaced"] == FOREVER):
        return now
    # what a plan by another order is depends on when it is made
    by_entry = g.clusters[m]["order"] == FCFS
    if (up_to_date or by_entry) and now >= latest and processors > g.state[m, 0]["free"]:
        return FOREVER
    if not up_to_date or not state["written"]:
        conservative_plan.write_running(p, by_reference(_cluster(local, m)), now, overrun)
        if by_entry:
            state["unplaced"] = 0
        else:
            _place_all(g, local, m, now, overrun, score)
        state["valid"] = True
    most = _FEW
    start = conservative_plan.earliest(p, now, processors, estimate, latest)
    while start < FOREVER and state["unplaced"] < FOREVER:
        _place_more(g, local, m, now, most)
        most *= 2
        start = conservative_plan.earliest(p, now, processors, estimate, latest)
    if enters:
        conservative_plan.reserve(p, now, start, processors, estimate)
    return start


@inline
def _plan_entry(
    g: GridArrays, local: LocalArrays, e: int, m: int, now: int, options: Any, score: Any
) -> None:
    """Plan a job that is about to enter a local queue, if the plan is up to date."""
    p = by_reference(conservative_plan.row(local.plans, m))
    state = g.state[m, 0]
    processors = as_int64(local.jobs[0, e]["processors"])
    estimate = as_int64(local.jobs[0, e]["estimate"])
    start = now
    if state["waiting"] == 0 and processors <= state["free"]:
        p.state[0]["written"] = False
    else:
        start = _planned_start(g, local, m, now, processors, estimate, FOREVER, True, options.overrun, score)
    local.planned[e] = start
    conservative_plan.note_start(p, start)


# --- predicted starts: exact ----------------------------------------------------------------------


@inline
def _copy_cluster(
    c: counted.CountedArrays, s: counted.CountedArrays, overrun: int, now: int, in_fact: bool
) -> None:
    """Copy a cluster, with every job as long as it is expected to be, or `in_fact` as long as it is."""
    state = c.state[0]
    s.state[0] = state
    for k in range(state["waiting"]):
        e = c.waiting[k]
        s.waiting[k] = e
        s.jobs[e] = c.jobs[e]
        s.jobs[e]["run"] = c.jobs[e]["run"] if in_fact else int(c.jobs[e]["estimate"])
        s.starts[e] = -1
        s.plan[e] = c.plan[e]
    for block in range(state["blocks"]):
        s.blocks[block] = c.blocks[block]
        base = c.blocks[block]["slot"] * running.SIZE
        for k in range(base, base + c.blocks[block]["count"]):
            s.runs[k] = c.runs[k]
    # free slots of blocks differ from those of the last copy
    for block in range(state["blocks"], len(c.blocks)):
        s.blocks[block]["slot"] = c.blocks[block]["slot"]
    for k in range(state["low"], state["high"]):
        s.steps[k] = c.steps[k]
    ending = 0
    for k in range(state["ending"]):
        e = c.events[k]["job"]
        s.jobs[e] = c.jobs[e]
        s.starts[e] = c.starts[e]
        end = c.events[k]["key"]
        if not in_fact:
            end = expected_end(c.starts[e], int(c.jobs[e]["estimate"]), overrun, now + 1)
        ending = heap.push(s.events, ending, end, e)
    s.state[0]["ending"] = ending


@noinline
def _simulated_start(
    g: GridArrays, local: LocalArrays, j: int, m: int, now: int, latest: int, overrun: int, score: Any
) -> int:
    """When a job would start if it entered now, by simulating a copy of the cluster until then."""
    s, policy = by_reference(_cluster(local, len(g.clusters))), _policy(g.clusters[m], overrun)
    _copy_cluster(by_reference(_cluster(local, m)), s, overrun, now, False)
    e = g.clock[0]["entered"]
    _describe(g, s.jobs, e, j, m)
    s.jobs[e]["run"] = s.jobs[e]["estimate"]
    _append(s, g.clusters[m], local.labels_of_requests[j], e)
    while now <= latest:
        passes.scheduling_pass(s, now, policy, score)
        if s.starts[e] >= 0:
            return s.starts[e]
        now = min(s.state[0]["planned"], heap.first_time(s.events, s.state[0]["ending"]))
        while cluster_state.ends(s, now):
            counted.complete(s, now, policy)
    return FOREVER


@noinline
def foresee(
    g: GridArrays, local: LocalArrays, m: int, now: int, in_fact: bool, overrun: int, score: Any
) -> None:
    """Write into `starts[1]` when the jobs that wait on a cluster start if no other enters.

    Every job is as long as it is expected to be, or `in_fact` as long as it is. What happens now has to have
    happened.
    """
    policy = _policy(g.clusters[m], overrun)
    if g.clusters[m]["first_come"]:
        # as `passes` wants them, to copy the cluster
        count = 0
        first, behind = _places(g, local, m)
        for place in range(first, behind):
            e = _at(g, local, m, place)
            if e >= 0:
                local.waiting[m, count] = e
                local.queue_key[e] = local.order_key[e] = float(e)
                count += 1
    s = by_reference(_cluster(local, len(g.clusters)))
    _copy_cluster(by_reference(_cluster(local, m)), s, overrun, now, in_fact)
    if policy.backfilling < EASY:
        # `first_come` tracks expected ends under every policy, `counted` does not
        s.state[0]["blocks"] = 0
    while s.state[0]["waiting"] > 0:
        now = cluster_state.next_local_event(s)
        while cluster_state.ends(s, now):
            counted.complete(s, now, policy)
        while cluster_state.first_expected_end(s) == now:
            counted.correct(s, now, policy)
        passes.scheduling_pass(s, now, policy, score)


@inline
def _is_settled(c: counted.CountedArrays) -> bool:
    """Whether the plan of a conservative cluster is up to date and has all waiting jobs."""
    state = c.state[0]
    return state["placed"] == state["waiting"] and not state["early"] and not state["broken"]


@inline
def _exact_start(
    g: GridArrays,
    local: LocalArrays,
    j: int,
    m: int,
    now: int,
    processors: int,
    latest: int,
    options: Any,
    score: Any,
) -> int:
    """What `predicted_start` is by simulation, where that is needed at all."""
    if now > latest or (now == latest and processors > g.state[m, 0]["free"]):
        return FOREVER
    estimate = guess_on(g, j, m)
    backfilling = g.clusters[m]["backfilling"]
    if g.clusters[m]["first_come"]:
        f = by_reference(start_prediction.row(local.start_predictions, m))
        return start_prediction.start(
            f, by_reference(_first_come(local, m)), backfilling, now, processors, estimate, latest
        )
    c = by_reference(_cluster(local, m))
    if backfilling == CONSERVATIVE and _is_settled(c):
        state = c.state[0]
        low = profile.find(c.steps, state["low"], state["high"], now)
        return profile.earliest_fit(c.steps, low, state["high"], now, processors, estimate, FOREVER)
    return _simulated_start(g, local, j, m, now, latest, options.overrun, score)


# --- predicted starts -----------------------------------------------------------------------------


@inline
def _starts_at_once(g: GridArrays, j: int, m: int) -> bool:
    """Whether a job finds an empty queue and enough idle processors."""
    state = g.state[m, 0]
    return state["waiting"] == 0 and allocation(g, j, m) <= state["free"]


@inline
def predicted_start(
    g: GridArrays, local: LocalArrays, j: int, m: int, now: int, latest: int, options: Any, score: Any
) -> int:
    """When a job would start if it entered the local queue of a cluster now, as far as it is known there.

    FOREVER if it is known to be after `latest`. The job must fit on the cluster.
    """
    if _starts_at_once(g, j, m):
        return now
    processors = allocation(g, j, m)
    if options.predictions == PLAN:
        return _planned_start(
            g, local, m, now, processors, guess_on(g, j, m), latest, False, options.overrun, score
        )
    return _exact_start(g, local, j, m, now, processors, latest, options, score)


# --- how much there is on a cluster ---------------------------------------------------------------


@inline
def waiting(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Waiting jobs of a cluster."""
    return int(g.state[m, 0]["waiting"])


@inline
def idle(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Idle processors."""
    return int(g.state[m, 0]["free"])


@inline
def held(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Processors that jobs hold."""
    return int(g.clusters[m]["processors"] - g.state[m, 0]["free"])


@inline
def capacity(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Processors of a cluster."""
    return int(g.clusters[m]["processors"])


@inline
def work_left(g: GridArrays, local: LocalArrays, m: int, now: int, overrun: int) -> int:
    """Processor-seconds that the jobs on a cluster, running and waiting, are expected to take still."""
    c = by_reference(_cluster(local, m))
    work = 0
    for entry in range(c.state[0]["ending"]):
        e = c.events[entry]["job"]
        end = expected_end(c.starts[e], int(c.jobs[e]["estimate"]), overrun, now + 1)
        work += int(c.jobs[e]["processors"]) * (end - now)
    first, behind = _places(g, local, m)
    for place in range(first, behind):
        e = _at(g, local, m, place)
        if e >= 0:
            work += int(c.jobs[e]["processors"]) * int(c.jobs[e]["estimate"])
    return work


@inline
def load(g: GridArrays, local: LocalArrays, m: int, now: int, overrun: int) -> float:
    """Seconds that the work on a cluster keeps its processors busy."""
    return work_left(g, local, m, now, overrun) / g.clusters[m]["processors"]


# --- events ---------------------------------------------------------------------------------------


@noinline
def finish_due(g: GridArrays, local: LocalArrays, now: int, options: Any) -> None:
    """Completions and corrections that are due on any cluster."""
    m = due_times.next_at(g.due, 0, now)
    while m < len(g.clusters):
        _finish_events(g, local, m, now, options)
        m = due_times.next_at(g.due, m + 1, now)


@noinline
def pass_on(g: GridArrays, local: LocalArrays, m: int, now: int, options: Any, score: Any) -> None:
    """Scheduling pass of a cluster, if something changed there."""
    if g.dirty[m]:
        g.dirty[m] = False
        _pass(g, local, m, now, options, score)
    due_times.put(g.due, m, cluster_state.next_local_event(by_reference(_cluster(local, m))))


@noinline
def pass_where_due(g: GridArrays, local: LocalArrays, now: int, options: Any, score: Any) -> None:
    """Scheduling passes of the clusters where something changed."""
    m = due_times.next_at(g.due, 0, now)
    while m < len(g.clusters):
        pass_on(g, local, m, now, options, score)
        m = due_times.next_at(g.due, m + 1, now)


@inline
def starts_to_see(g: GridArrays, local: LocalArrays, m: int) -> int:
    """Entries to look through for jobs that started in the last pass, see `start_seen`."""
    return int(g.state[m, 0]["ending"])


@inline
def start_seen(g: GridArrays, local: LocalArrays, m: int, k: int, now: int) -> int:
    """Number in the order of entry of a job that has just started; -1 if it has not."""
    e = int(local.events[m, k]["job"])
    return e if local.starts[0, e] == now else -1


@inline
def first_due(g: GridArrays, local: Any = None) -> int:
    """Time of the next event on any cluster."""
    return due_times.first(g.due)


# --- who enters -----------------------------------------------------------------------------------


@inline
def next_arrival(g: GridArrays, local: LocalArrays) -> int:
    """When a job is submitted next."""
    arrival = g.clock[0]["arrival"]
    return int(g.requests[arrival]["submit"]) if arrival < len(g.requests) else FOREVER


@inline
def more_arrive(g: GridArrays, local: LocalArrays) -> bool:
    """Whether more jobs may enter."""
    return g.clock[0]["arrival"] < len(g.requests)


@inline
def live(g: GridArrays, local: LocalArrays, now: int) -> None:
    """Nothing happens to jobs that wait."""


@inline
def let_leave(g: GridArrays, local: LocalArrays, now: int) -> int:
    """Nobody gives up."""
    return 0


@inline
def is_changing(local: LocalArrays) -> bool:
    """Whether anything happens to clusters besides jobs."""
    return False


@inline
def next_entering(g: GridArrays, local: LocalArrays, now: int, requests: int) -> int:
    """The next job that enters now, the first one of those of its user's; -1 if there is none."""
    clock = g.clock[0]
    j = clock["arrival"]
    if j == len(g.requests) or g.requests[j]["submit"] != now:
        return -1
    clock["arrival"] += requests
    return int(j)


@inline
def has_room(g: GridArrays, local: LocalArrays, jobs: int, now: int) -> bool:
    """Whether every local queue has room for so many more jobs, and those that are submitted now."""
    j = g.clock[0]["arrival"]
    while j < len(g.requests) and g.requests[j]["submit"] == now:
        j += 1
        jobs += 1
    # one more, since a prediction appends a job to the copy
    return g.clock[0]["longest"] + jobs + 1 <= len(local.candidates) - 1
