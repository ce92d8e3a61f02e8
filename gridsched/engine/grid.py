"""Many clusters under a superscheduler: one clock, a local scheduler on each cluster, jobs that may move.

A local queue numbers its jobs by their entry, counted over all clusters, so that what is known of a job
stands in one array for all of them; ties go by this number. A cluster that serves its queue in order of entry
is scheduled by `first_come`, the others by the local schedulers of a single cluster, `reserving` and
`conservative`: `_cluster` makes one row of two-dimensional arrays look like theirs.

Jobs ask when they would start. In `exact` mode the answer is what the cluster would do if nothing else came
and all estimates were right: from a `forecast` where the queue is in order of entry, from the kept plan under
conservative backfilling, else by simulating a copy of the cluster. In `plan` mode it is the place that
a `standing` plan leaves.

At one instant happens, in this order:

1. completions, then corrections of outrun estimates, on all clusters;
2. landings, in order of job index: the answers to a request are there, so that the grid scheduler of the
   job's home is free again and the decision made from them takes effect; and transits end, so that the job
   enters the local queue of its cluster;
3. at a multiple of sigma the check: clusters volunteer anew, and all jobs in grid queues are marked, that is,
   they want to be decided;
4. decisions on jobs that have waited in grid queues: first those that found no better volunteer and go on to
   ask all their partners, in order of job index; then home by home, in order of submission;
5. submissions, each decided in turn;
6. one scheduling pass on every cluster where something changed.

Whoever decides thus sees all jobs that have entered a local queue by then, and a job that is decided without
messages is seen by the decisions after it. Every job passes through the grid queue of its home, and stays
there while its grid scheduler waits for answers. A decision is made from how the clusters are when they
are asked; it only takes effect later.

The semantics are those of Shan, Oliker and Biswas, "Job superscheduler architecture and performance in
computational grid environments" (SC 2003), section 2; `gridsched.schedulers.superscheduler` says what was
decided where the paper is silent.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import (
    conservative,
    first_come,
    forecast,
    heap,
    line,
    machine,
    profile,
    reserving,
    running,
    standing,
)
from gridsched.engine.jit import jit, leaf, part
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import (
    ENTRY,
    FOREVER,
    JOB,
    LABELS,
    RUN,
    SCORED,
    STEP,
    Backfilling,
)

_NONE = int(Backfilling.NONE)
_EASY = int(Backfilling.EASY)
_CONSERVATIVE = int(Backfilling.CONSERVATIVE)


class Scheme(IntEnum):
    """Who decides where a job runs."""

    LOCAL = 0
    CENTRAL = 1
    SENDER_INITIATED = 2
    RECEIVER_INITIATED = 3
    SYMMETRICALLY_INITIATED = 4
    SAMPLED = 5


class Predictions(IntEnum):
    """Where predicted starts come from."""

    EXACT = 0
    PLAN = 1


class Order(IntEnum):
    """Orders of waiting jobs that a cluster of a grid knows; SCORE is the grid's score of the moment."""

    FCFS = 0
    SHORTEST = 1
    SMALLEST = 2
    SMALLEST_AREA = 3
    SCORE = 4


_LOCAL = int(Scheme.LOCAL)
_CENTRAL = int(Scheme.CENTRAL)
_SENDER = int(Scheme.SENDER_INITIATED)
_RECEIVER = int(Scheme.RECEIVER_INITIATED)
_SYMMETRIC = int(Scheme.SYMMETRICALLY_INITIATED)
_SAMPLED = int(Scheme.SAMPLED)
_PLAN = int(Predictions.PLAN)
_FCFS = int(Order.FCFS)
_SHORTEST = int(Order.SHORTEST)
_SMALLEST = int(Order.SMALLEST)
_AREA = int(Order.SMALLEST_AREA)
_SCORE = int(Order.SCORE)

SITE = np.dtype(
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
        ("queued", np.int64),  # jobs in the grid queues
        ("check", np.int64),  # time of the next check of all clusters
        ("queries", np.int64),  # predicted starts that were asked for
        ("entered", np.int64),  # jobs that have entered a local queue
        ("longest", np.int64),  # jobs in the longest local queue so far
        ("timers", np.int64),  # entries of the heap of landings
        ("measured", np.int64),  # time up to which the use of the clusters is added up
    ]
)
"""Scalars of the grid."""

_NOBODY, _VOLUNTEER, _ACCEPTED = 0, 1, 2

# instead of the cluster of a job: not decided yet, fits nowhere, asks all partners next
_UNDECIDED, _NOWHERE, _ASKS_ALL = -1, -2, -3


class Options(NamedTuple):
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
    at_check: bool  # only jobs decided at the check itself know of volunteers


class Grid(NamedTuple):
    """What the superscheduler looks at: m clusters, n jobs."""

    requests: Any  # JOB[n], in order of submission, as on the home cluster
    home: Any  # int64[n], cluster where a job is submitted
    sites: Any  # SITE[m]
    partners: Any  # bool[m, m], whose jobs may go where
    sample: Any  # int64[n, k], clusters that a job asks in the scheme `sampled`; -1 where there are fewer
    cluster: Any  # int64[n], where a job was or will be sent; negative see `_UNDECIDED`
    entry: Any  # int64[n], its number in the order of entry
    waiting_grid: Any  # int64[n], jobs in the grid queues, in order of submission
    marked: Any  # bool[n], jobs that want to be decided once the grid scheduler of their home is free
    asking: Any  # int64[m], job for which a grid scheduler waits for answers; -1 if it is free
    timers: Any  # ENTRY[n + 1], heap of the times when answers are there or a transit ends
    volunteer: Any  # int64[m]
    used: Any  # int64[m], processor-seconds held since the last multiple of sigma
    silence: Any  # int64[m, ...], when a grid scheduler falls silent, answers again, and so on; FOREVER last
    silence_passed: Any  # int64[m], how many of these times have passed
    touched: Any  # bool[m], clusters that need a scheduling pass
    due: Any  # int64[m], time of the next event of each cluster; now if a job enters it
    clock: Any  # CLOCK[1]
    state: Any  # machine.STATE[m + 1, 1], see `Local`


class Local(NamedTuple):
    """What the local schedulers and the predictions work on.

    Rows are clusters; `copy` is the row of one more, to which a cluster is copied to be simulated on. What is
    known of jobs, in order of entry, has two rows: as it is, and as it is expected in the copy.
    """

    labels_of_requests: Any  # LABELS[n], in order of submission
    labels: Any  # LABELS[n], in order of entry
    queue_key: Any  # float64[n]
    order_key: Any  # float64[n]
    planned: Any  # int64[n], start in the standing plan
    jobs: Any  # JOB[2, n], as on the cluster that a job was sent to
    starts: Any  # int64[2, n], the result
    plan: Any  # int64[2, n], planned starts of `conservative`
    waiting: Any  # int64[m + 1, room], not used by `first_come`
    candidates: Any  # SCORED[room + 1], for one pass at a time
    events: Any  # ENTRY[m + 1, ...]
    blocks: Any  # BLOCK[m + 1, ...]
    runs: Any  # RUN[m + 1, ...]
    steps: Any  # STEP[m + 1, ...], not used by `first_come`
    state: Any  # machine.STATE[m + 1, 1], that of `Grid`
    lines: line.Line  # used by `first_come`
    forecasts: forecast.Forecast
    plans: standing.Plan


def allocate(
    requests: Any,
    request_labels: Any,
    home: Any,
    sites: Any,
    partners: Any,
    silence: Any,
    sigma: int,
    room: int,
    sample: Any,
    predictions: int,
) -> tuple[Grid, Local]:
    """Arrays of an idle grid, with room for so many jobs in each local queue."""
    number = len(requests)
    sites = sites.copy()
    sites["first_come"] = _is_first_come(sites)
    state = np.zeros((len(sites) + 1, 1), machine.STATE)
    state["free"][:-1, 0] = sites["processors"]
    state["planned"] = FOREVER
    state["high"] = 1
    clock = np.zeros(1, CLOCK)
    clock["check"] = sigma
    g = Grid(
        requests=requests,
        home=home,
        sites=sites,
        partners=partners,
        sample=sample,
        cluster=np.full(number, _UNDECIDED, np.int64),
        entry=np.full(number, -1, np.int64),
        waiting_grid=np.empty(number, np.int64),
        marked=np.zeros(number, np.bool_),
        asking=np.full(len(sites), -1, np.int64),
        timers=np.empty(number + 1, ENTRY),
        volunteer=np.full(len(sites), _NOBODY, np.int64),
        used=np.zeros(len(sites), np.int64),
        silence=silence,
        silence_passed=np.zeros(len(sites), np.int64),
        touched=np.zeros(len(sites), np.bool_),
        due=np.full(len(sites), FOREVER, np.int64),
        clock=clock,
        state=state,
    )
    return g, _allocate_local(g, request_labels, room, predictions)


def _is_first_come(sites: Any) -> Any:
    """Clusters that `first_come` can schedule."""
    in_order = (sites["queue_as_order"] != 0) | (sites["backfill_order"] == _FCFS)
    kept = (sites["backfilling"] == _CONSERVATIVE) | (sites["reservations"] > 1)
    return (sites["order"] == _FCFS) & in_order & ~kept


def _most_running(g: Grid) -> int:
    """Jobs that can run at the same time on the largest cluster."""
    return int(min(len(g.requests), g.sites["processors"].max()))


def _steps(jobs: int) -> int:
    """Steps for so many jobs: two each, twice so that the profile can wander through the array."""
    return 4 * jobs + 16


def _allocate_local(g: Grid, request_labels: Any, room: int, predictions: int) -> Local:
    """Arrays of idle local schedulers."""
    number, rows = len(g.requests), len(g.sites) + 1
    most = _most_running(g)
    blocks, runs = running.allocate(most)
    steps = np.empty((rows, _steps(most + room)), STEP)
    steps["time"][:, 0] = 0
    steps["free"][:-1, 0] = g.sites["processors"]
    unwatched = (g.sites["first_come"] == 0) & (g.sites["backfilling"] < _EASY)
    return Local(
        labels_of_requests=request_labels,
        labels=np.empty(number, LABELS),
        queue_key=np.empty(number),
        order_key=np.empty(number),
        planned=np.empty(number, np.int64),
        jobs=np.empty((2, number), JOB),
        starts=np.full((2, number), -1, np.int64),
        plan=np.empty((2, number), np.int64),
        waiting=np.empty((rows, room), np.int64),
        candidates=np.empty(room + 1, SCORED),
        events=np.empty((rows, most + 1), ENTRY),
        blocks=np.tile(blocks, (rows, 1)),
        runs=np.empty((rows, len(runs)), RUN),
        steps=steps,
        state=g.state,
        lines=line.allocate(len(g.sites), room),
        forecasts=_allocate_forecasts(g, room, predictions),
        plans=standing.allocate(g.sites["processors"], unwatched, _planned_jobs(g, room, predictions)),
    )


def _allocate_forecasts(g: Grid, room: int, predictions: int) -> forecast.Forecast:
    """Void forecasts; without room where none are made."""
    if predictions == _PLAN:
        return forecast.allocate(len(g.sites), 0, 0)
    return forecast.allocate(len(g.sites), _most_running(g), room)


def _planned_jobs(g: Grid, room: int, predictions: int) -> int:
    """Jobs in a standing plan, at most."""
    return _most_running(g) + room if predictions == _PLAN else 0


def with_room(g: Grid, local: Local, room: int, predictions: int) -> Local:
    """The same local schedulers with room for more jobs in each queue."""
    waiting = np.empty((len(local.waiting), room), np.int64)
    steps = np.empty((len(local.steps), _steps(_most_running(g) + room)), STEP)
    for m, state in enumerate(g.state[:, 0]):
        waiting[m, : state["waiting"]] = local.waiting[m, : state["waiting"]]
        steps[m, : state["high"]] = local.steps[m, : state["high"]]
    return local._replace(
        waiting=waiting,
        candidates=np.empty(room + 1, SCORED),
        steps=steps,
        lines=line.with_room(local.lines, room),
        forecasts=_allocate_forecasts(g, room, predictions),
        plans=standing.with_room(local.plans, _planned_jobs(g, room, predictions)),
    )


@leaf
def _cluster(local: Local, row: int) -> reserving.Cluster:
    """A cluster, or the copy of one, as `reserving` and `conservative` know it."""
    copied = int(row == len(local.state) - 1)
    return reserving.Cluster(
        local.jobs[copied],
        local.labels,
        local.queue_key,
        local.order_key,
        local.waiting[row],
        local.candidates,
        local.events[row],
        local.blocks[row],
        local.runs[row],
        local.steps[row],
        local.starts[copied],
        local.plan[copied],
        local.state[row],
    )


@leaf
def _first_come(local: Local, m: int) -> first_come.Cluster:
    """A cluster as `first_come` knows it."""
    return first_come.Cluster(
        local.jobs[0],
        local.events[m],
        local.blocks[m],
        local.runs[m],
        local.starts[0],
        local.state[m],
        line.row(local.lines, m),
    )


@leaf
def _policy(site: Any, overrun: int) -> reserving.Options:
    """Options of the local scheduler of a cluster."""
    return reserving.Options(
        site["backfilling"],
        site["reservations"],
        overrun,
        False,
        site["order"] == _SCORE,
        site["queue_as_order"] != 0,
    )


@leaf
def _set_timer(g: Grid, j: int, time: int) -> None:
    """Let something happen to a job later: its answers come, or it arrives on its cluster."""
    clock = g.clock[0]
    clock["timers"] = heap.push(g.timers, clock["timers"], time, j)


# --- a job on a cluster ---------------------------------------------------------------------------


@leaf
def _allocation(g: Grid, j: int, m: int) -> int:
    """Processors that a cluster would lose to a job."""
    site = g.sites[m]
    processors = int(g.requests[j]["processors"])
    if site["node_exclusive"] == 0:
        return processors
    return -(-processors // site["processors_per_node"]) * site["processors_per_node"]


@leaf
def _fits(g: Grid, j: int, m: int) -> bool:
    """Whether a cluster is large enough for a job."""
    return _allocation(g, j, m) <= g.sites[m]["processors"]


@leaf
def _seconds(g: Grid, seconds: int, j: int, m: int) -> int:
    """Whole seconds that a time on the job's home cluster takes on another one."""
    h = g.home[j]
    if m == h:
        return seconds
    return math.ceil(seconds * g.sites[h]["speed"] / g.sites[m]["speed"])


@leaf
def _estimate(g: Grid, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster."""
    return max(1, _seconds(g, int(g.requests[j]["estimate"]), j, m))


@leaf
def _key(order: int, entry: int, estimate: int, processors: int) -> float:
    """Sort key of a job in an order that does not change; ties go by entry."""
    if order == _SHORTEST:
        return float(estimate)
    if order == _SMALLEST:
        return float(processors)
    if order == _AREA:
        return float(estimate) * float(processors)
    return float(entry)


@leaf
def _describe(g: Grid, jobs: Any, e: int, j: int, m: int) -> None:
    """Write down a job as it is on a cluster."""
    jobs[e]["submit"] = g.requests[j]["submit"]
    jobs[e]["run"] = _seconds(g, g.requests[j]["run"], j, m)
    jobs[e]["estimate"] = _estimate(g, j, m)
    jobs[e]["processors"] = _allocation(g, j, m)


@leaf
def _append(c: reserving.Cluster, site: Any, labels: Any, e: int) -> None:
    """Put a job that is described at the end of a local queue."""
    estimate = int(c.jobs[e]["estimate"])
    processors = int(c.jobs[e]["processors"])
    c.labels[e]["user"] = labels["user"]
    c.labels[e]["group"] = labels["group"]
    c.labels[e]["queue"] = labels["queue"]
    c.queue_key[e] = _key(site["order"], e, estimate, processors)
    c.order_key[e] = _key(site["backfill_order"], e, estimate, processors)
    c.starts[e] = -1
    c.plan[e] = FOREVER
    c.waiting[c.state[0]["waiting"]] = e
    c.state[0]["waiting"] += 1


@leaf
def _enter(g: Grid, local: Local, j: int, m: int, now: int, options: Options, score: Any) -> None:
    """Send a job to the local queue of a cluster."""
    clock = g.clock[0]
    e = clock["entered"]
    clock["entered"] += 1
    g.entry[j] = e
    g.touched[m] = True
    g.due[m] = now
    _describe(g, local.jobs[0], e, j, m)
    if options.predictions == _PLAN:
        _plan_entry(g, local, e, m, now, options, score)
    if g.sites[m]["first_come"]:
        if local.forecasts.state[m, 0]["valid"]:
            job = local.jobs[0, e]
            f = forecast.row(local.forecasts, m)
            forecast.enter(f, now, int(job["processors"]), int(job["estimate"]), e)
        first_come.enter(_first_come(local, m), e)
    else:
        _append(_cluster(local, m), g.sites[m], local.labels_of_requests[j], e)
    clock["longest"] = max(clock["longest"], g.state[m, 0]["waiting"])


@part
def _send(g: Grid, local: Local, j: int, now: int, delay: int, options: Options, score: Any) -> None:
    """Let a job enter the local queue of its cluster, after a delay unless that is its home."""
    m = g.cluster[j]
    if delay > 0 and m != g.home[j]:
        _set_timer(g, j, now + delay)
    else:
        _enter(g, local, j, m, now, options, score)


# --- what happens on a cluster --------------------------------------------------------------------


@leaf
def _complete(c: reserving.Cluster, backfilling: int, now: int, overrun: int) -> None:
    """Take the first running job that ends now off its processors."""
    if backfilling == _CONSERVATIVE:
        conservative.complete(c, now, overrun)
    else:
        machine.complete(c, now, overrun, backfilling == _EASY)


@part
def _pass_generally(c: reserving.Cluster, now: int, policy: reserving.Options, score: Any) -> None:
    """Scheduling pass of a cluster that `first_come` does not know."""
    if policy.backfilling == _CONSERVATIVE:
        conservative.scheduling_pass(c, now, policy, score)
    else:
        reserving.scheduling_pass(c, now, policy, score)


@leaf
def _finish_first_come(g: Grid, local: Local, m: int, now: int, options: Options) -> None:
    """Completions and corrections of a `first_come` cluster that are due."""
    c = _first_come(local, m)
    while machine.ends(c, now):
        if options.predictions == _PLAN:
            standing.complete(standing.row(local.plans, m), c, now, options.overrun)
        if first_come.complete(c, now, options.overrun) > now:
            local.forecasts.state[m, 0]["valid"] = False
        g.touched[m] = True
    while machine.first_expected_end(c) == now:
        first_come.correct(c, now, options.overrun)
        _outrun(local, m)
        g.touched[m] |= g.sites[m]["backfilling"] == _EASY


@leaf
def _outrun(local: Local, m: int) -> None:
    """Let predictions that rest on an outrun estimate be made anew."""
    local.forecasts.state[m, 0]["valid"] = False
    local.plans.state[m, 0]["valid"] = False


@leaf
def _finish_generally(g: Grid, local: Local, m: int, now: int, options: Options) -> None:
    """Completions and corrections of any other cluster that are due."""
    c = _cluster(local, m)
    backfilling = g.sites[m]["backfilling"]
    while machine.ends(c, now):
        if options.predictions == _PLAN:
            standing.complete(standing.row(local.plans, m), c, now, options.overrun)
        _complete(c, backfilling, now, options.overrun)
        g.touched[m] = True
    while machine.first_expected_end(c) == now:
        if backfilling == _CONSERVATIVE:
            conservative.correct(c, now, options.overrun)
        else:
            machine.correct(c, now, options.overrun)
        _outrun(local, m)
        g.touched[m] = True
    if c.state[0]["planned"] <= now:
        g.touched[m] = True


@leaf
def _finish_events(g: Grid, local: Local, m: int, now: int, options: Options) -> None:
    """Completions and corrections of a cluster that are due."""
    if g.sites[m]["first_come"]:
        _finish_first_come(g, local, m, now, options)
    else:
        _finish_generally(g, local, m, now, options)


@leaf
def _pass(g: Grid, local: Local, m: int, now: int, options: Options, score: Any) -> None:
    """Scheduling pass of a cluster."""
    expected = _planned_now(g, local, m, now) if options.predictions == _PLAN else 0
    waiting = g.state[m, 0]["waiting"]
    if g.sites[m]["first_come"]:
        first_come.scheduling_pass(_first_come(local, m), now, g.sites[m]["backfilling"])
    else:
        _pass_generally(_cluster(local, m), now, _policy(g.sites[m], options.overrun), score)
    if options.predictions == _PLAN:
        started = waiting - g.state[m, 0]["waiting"]
        if started > 0:
            standing.start(standing.row(local.plans, m), now)
        if started != expected or _planned_now(g, local, m, now) > 0:
            local.plans.state[m, 0]["valid"] = False


# --- predicted starts: standing plan --------------------------------------------------------------


@leaf
def _count_planned(planned: Any, jobs: Any, first: int, end: int, now: int) -> int:
    """How many of some jobs are planned to start now; -1 is no job."""
    count = 0
    for k in range(first, end):
        count += int(jobs[k] >= 0 and planned[jobs[k]] == now)
    return count


@leaf
def _planned_now(g: Grid, local: Local, m: int, now: int) -> int:
    """How many waiting jobs are planned to start now; 0 if the plan is out of date."""
    if not local.plans.state[m, 0]["valid"]:
        return 0
    if g.sites[m]["first_come"]:
        span = local.lines.span[m, 0]
        return _count_planned(local.planned, local.lines.job[m], span["first"], span["end"], now)
    return _count_planned(local.planned, local.waiting[m], 0, g.state[m, 0]["waiting"], now)


@leaf
def _soonest(planned: Any, jobs: Any, first: int, end: int) -> int:
    """Earliest planned start of some jobs; -1 is no job."""
    soonest = FOREVER
    for k in range(first, end):
        if jobs[k] >= 0:
            soonest = min(soonest, planned[jobs[k]])
    return soonest


@leaf
def _is_up_to_date(g: Grid, local: Local, m: int, now: int, overrun: int) -> bool:
    """Whether a plan is up to date: here it is seen if a job should have started or ended before."""
    p = standing.row(local.plans, m)
    state = p.state[0]
    if state["valid"] and state["soonest"] < now:
        span = local.lines.span[m, 0]
        if g.sites[m]["first_come"]:
            state["soonest"] = _soonest(local.planned, local.lines.job[m], span["first"], span["end"])
        else:
            state["soonest"] = _soonest(local.planned, local.waiting[m], 0, g.state[m, 0]["waiting"])
        state["valid"] = state["soonest"] >= now
    standing.look_for_outrun(p, _first_come(local, m), now, overrun)
    return state["valid"] != 0


@leaf
def _write_plan(g: Grid, local: Local, m: int, now: int, overrun: int, score: Any) -> None:
    """Write the profile of a plan: as it is if it is up to date, else with the waiting jobs placed anew."""
    p = standing.row(local.plans, m)
    c = _cluster(local, m)
    standing.write_running(p, c, now, overrun)
    in_order_of_entry = g.sites[m]["first_come"]
    span = local.lines.span[m, 0]
    count = span["end"] - span["first"]
    size = 0
    if not in_order_of_entry:
        count = c.state[0]["waiting"]
        size = reserving.queue_candidates(c, count, now, _policy(g.sites[m], overrun), score)
    for k in range(count):
        if in_order_of_entry:
            e = local.lines.job[m, span["first"] + k]
        else:
            e = c.candidates[0]["job"]
            size = heap.pop(c.candidates, size)
        if e >= 0:
            processors = int(c.jobs[e]["processors"])
            estimate = int(c.jobs[e]["estimate"])
            if not p.state[0]["valid"]:
                local.planned[e] = standing.earliest(p, now, processors, estimate, FOREVER)
            standing.reserve(p, now, local.planned[e], processors, estimate)
            standing.note_start(p, local.planned[e])
    p.state[0]["valid"] = True


@part
def _planned_start(
    g: Grid,
    local: Local,
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

    A job that `enters` does not make the plan anew: if it is out of date, this is `now`.
    """
    p = standing.row(local.plans, m)
    up_to_date = _is_up_to_date(g, local, m, now, overrun)
    if enters and not up_to_date:
        return now
    if up_to_date and now >= latest and processors > g.state[m, 0]["free"]:
        return FOREVER
    if not up_to_date or not p.state[0]["written"]:
        _write_plan(g, local, m, now, overrun, score)
    start = standing.earliest(p, now, processors, estimate, latest)
    if enters:
        standing.reserve(p, now, start, processors, estimate)
    return start


@leaf
def _plan_entry(g: Grid, local: Local, e: int, m: int, now: int, options: Options, score: Any) -> None:
    """Plan a job that is about to enter a local queue, if the plan is up to date."""
    p = standing.row(local.plans, m)
    state = g.state[m, 0]
    processors = int(local.jobs[0, e]["processors"])
    estimate = int(local.jobs[0, e]["estimate"])
    start = now
    if state["waiting"] == 0 and processors <= state["free"]:
        p.state[0]["written"] = False
    else:
        start = _planned_start(g, local, m, now, processors, estimate, FOREVER, True, options.overrun, score)
    local.planned[e] = start
    standing.note_start(p, start)


# --- predicted starts: exact ----------------------------------------------------------------------


@leaf
def _copy_cluster(c: reserving.Cluster, s: reserving.Cluster, overrun: int, now: int) -> None:
    """Copy a cluster, with every job as long as it is expected to be."""
    state = c.state[0]
    s.state[0] = state
    for k in range(state["waiting"]):
        e = c.waiting[k]
        s.waiting[k] = e
        s.jobs[e] = c.jobs[e]
        s.jobs[e]["run"] = c.jobs[e]["estimate"]
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
        end = expected_end(c.starts[e], int(c.jobs[e]["estimate"]), overrun, now + 1)
        ending = heap.push(s.events, ending, end, e)
    s.state[0]["ending"] = ending


@part
def _simulated_start(
    g: Grid, local: Local, j: int, m: int, now: int, latest: int, overrun: int, score: Any
) -> int:
    """When a job would start if it entered now, by simulating a copy of the cluster until then."""
    s = _cluster(local, len(g.sites))
    _copy_cluster(_cluster(local, m), s, overrun, now)
    e = g.clock[0]["entered"]
    _describe(g, s.jobs, e, j, m)
    s.jobs[e]["run"] = s.jobs[e]["estimate"]
    _append(s, g.sites[m], local.labels_of_requests[j], e)
    while now <= latest:
        _pass_generally(s, now, _policy(g.sites[m], overrun), score)
        if s.starts[e] >= 0:
            return s.starts[e]
        now = s.state[0]["planned"]
        if s.state[0]["ending"] > 0:
            now = min(now, s.events[0]["key"])
        while machine.ends(s, now):
            _complete(s, g.sites[m]["backfilling"], now, overrun)
    return FOREVER


@leaf
def _is_settled(c: reserving.Cluster) -> bool:
    """Whether the plan of a conservative cluster needs no mending and has all waiting jobs."""
    state = c.state[0]
    return state["placed"] == state["waiting"] and not state["early"] and not state["outrun"]


@leaf
def _exact_start(
    g: Grid,
    local: Local,
    j: int,
    m: int,
    now: int,
    processors: int,
    latest: int,
    options: Options,
    score: Any,
) -> int:
    """What `predicted_start` is by simulation, where that is needed at all."""
    if now > latest or (now == latest and processors > g.state[m, 0]["free"]):
        return FOREVER
    estimate = _estimate(g, j, m)
    backfilling = g.sites[m]["backfilling"]
    if g.sites[m]["first_come"]:
        f = forecast.row(local.forecasts, m)
        return forecast.start(f, _first_come(local, m), backfilling, now, processors, estimate, latest)
    c = _cluster(local, m)
    if backfilling == _CONSERVATIVE and _is_settled(c):
        state = c.state[0]
        low = profile.find(c.steps, state["low"], state["high"], now)
        return profile.earliest_fit(c.steps, low, state["high"], now, processors, estimate, FOREVER)
    return _simulated_start(g, local, j, m, now, latest, options.overrun, score)


# --- predicted starts -----------------------------------------------------------------------------


@leaf
def _starts_at_once(g: Grid, j: int, m: int) -> bool:
    """Whether a job finds an empty queue and enough idle processors."""
    state = g.state[m, 0]
    return state["waiting"] == 0 and _allocation(g, j, m) <= state["free"]


@leaf
def predicted_start(
    g: Grid, local: Local, j: int, m: int, now: int, latest: int, options: Options, score: Any
) -> int:
    """When a job would start if it entered the local queue of a cluster now, as far as it is known there.

    FOREVER if it is known to be after `latest`. The job must fit on the cluster.
    """
    if _starts_at_once(g, j, m):
        return now
    processors = _allocation(g, j, m)
    if options.predictions == _PLAN:
        return _planned_start(
            g, local, m, now, processors, _estimate(g, j, m), latest, False, options.overrun, score
        )
    return _exact_start(g, local, j, m, now, processors, latest, options, score)


@leaf
def _busy_share(g: Grid, m: int) -> float:
    """Resource utilisation status: share of processors that running jobs hold now."""
    return (g.sites[m]["processors"] - g.state[m, 0]["free"]) / g.sites[m]["processors"]


@leaf
def _dearest(best: int, epsilon: float) -> int:
    """Largest turnaround time that counts as equal to the best one."""
    limit = best + epsilon
    return FOREVER if limit >= FOREVER else math.floor(limit)


# --- how busy a cluster is, and whether it answers ------------------------------------------------


@leaf
def _last_multiple(now: int, sigma: int) -> int:
    """Last multiple of sigma before now."""
    return (now - 1) // sigma * sigma


@leaf
def _measure(g: Grid, now: int, sigma: int) -> None:
    """Add up what jobs have held of each cluster until now."""
    clock = g.clock[0]
    begin = _last_multiple(now, sigma)
    for m in range(len(g.sites)):
        if begin >= clock["measured"]:
            g.used[m] = 0
        held = g.sites[m]["processors"] - g.state[m, 0]["free"]
        g.used[m] += held * (now - max(begin, clock["measured"]))
    clock["measured"] = now


@leaf
def _utilisation(g: Grid, m: int, now: int, options: Options) -> float:
    """Resource utilisation status of a cluster, now or on average since the last multiple of sigma."""
    if not options.average:
        return _busy_share(g, m)
    return g.used[m] / (g.sites[m]["processors"] * (now - _last_multiple(now, options.sigma)))


@leaf
def _is_silent(g: Grid, m: int, now: int) -> bool:
    """Whether the grid scheduler of a cluster neither answers nor volunteers."""
    while g.silence[m, g.silence_passed[m]] <= now:
        g.silence_passed[m] += 1
    return g.silence_passed[m] % 2 == 1


# --- where a job goes -----------------------------------------------------------------------------

_FIRST_HORIZON = 900
"""Seconds up to which starts are looked for when there is none now; 300 to 3,600 measure alike."""

_RECESSION = 4
"""Factor by which the horizon recedes while no start is found; 2 to 8 measure alike."""

_HOME, _ALL, _HOME_AND_PARTNERS, _VOLUNTEERS, _SAMPLE = 0, 1, 2, 3, 4

_CONTENT, _OCCUPIED, _ANSWERED = 0, 1, 2


@leaf
def _has_volunteers(g: Grid, h: int, willing: bool) -> bool:
    """Whether any partner of a cluster has volunteered; where `willing`, and may take a job still."""
    found = False
    for m in range(len(g.sites)):
        stands = g.volunteer[m] == _VOLUNTEER or (g.volunteer[m] == _ACCEPTED and not willing)
        found |= g.partners[h, m] and stands
    return found


@leaf
def _asked(g: Grid, j: int, options: Options) -> int:
    """Whom a job asks that would wait long at its home."""
    if options.scheme == _LOCAL:
        return _HOME
    if options.scheme == _CENTRAL:
        return _ALL
    if options.scheme == _SAMPLED:
        return _SAMPLE
    if options.scheme == _SENDER or g.cluster[j] == _ASKS_ALL:
        return _HOME_AND_PARTNERS
    if options.scheme == _SYMMETRIC and not _has_volunteers(g, g.home[j], options.goes_on):
        return _HOME_AND_PARTNERS
    return _VOLUNTEERS


@leaf
def _is_asked(g: Grid, h: int, m: int, among: int) -> bool:
    """Whether a cluster belongs to those that are asked; those of a sample do."""
    if among in (_ALL, _SAMPLE):
        return True
    if among == _HOME_AND_PARTNERS:
        return m == h or g.partners[h, m]
    return among == _VOLUNTEERS and g.partners[h, m] and g.volunteer[m] == _VOLUNTEER


@leaf
def _is_alone(sample: Any) -> bool:
    """Whether a sample is of one cluster, which need not be asked."""
    return len(sample) == 1 or sample[1] < 0


@leaf
def _candidate(g: Grid, j: int, step: int, among: int) -> int:
    """Cluster that a job asks at a step, first its home if that matters; -1 if none."""
    if among == _SAMPLE:
        return g.sample[j, step]
    h = g.home[j]
    if step == 0:
        return h
    m = step - 1
    return m if m != h and _is_asked(g, h, m, among) else -1


@leaf
def _needs_messages(g: Grid, h: int, among: int) -> bool:
    """Whether a grid scheduler has to ask another one; where all are known it need not."""
    if among in (_ALL, _SAMPLE):
        return False
    found = False
    for m in range(len(g.sites)):
        found |= m != h and _is_asked(g, h, m, among)
    return found


@leaf
def _ask(
    g: Grid,
    local: Local,
    j: int,
    among: int,
    occupied: bool,
    now: int,
    options: Options,
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
    steps = g.sample.shape[1] if among == _SAMPLE else len(g.sites) + 1
    for m in range(len(g.sites)):
        costs[m] = FOREVER
    dearest = FOREVER
    seen = -1
    horizon = 0
    while seen < horizon:
        undecided = False
        for step in range(steps):
            m = _candidate(g, j, step, among)
            if m < 0 or costs[m] < FOREVER or (may_stay and m != h and _is_silent(g, m, now)):
                continue
            g.clock[0]["queries"] += int(seen < 0)
            estimate = _estimate(g, j, m)
            useful = dearest - estimate
            asks_home = may_stay and step == 0
            if useful > seen and _fits(g, j, m):
                longest = useful if asks_home else min(useful, horizon)
                start = predicted_start(g, local, j, m, now, now + longest, options, score)
                if start < FOREVER:
                    costs[m] = start - now + estimate
                    if costs[m] < dearest and _is_asked(g, h, m, among):
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


@leaf
def _cheapest_of_sample(g: Grid, j: int, now: int, options: Options, costs: Any) -> int:
    """Cluster of a job's sample with the smallest turnaround time; ties as in `_cheapest`."""
    sample = g.sample[j]
    best = FOREVER
    for k in range(len(sample)):
        if sample[k] >= 0:
            best = min(best, costs[sample[k]])
    chosen = _UNDECIDED
    least = 2.0
    for k in range(len(sample)):
        m = sample[k]
        if m >= 0 and costs[m] < FOREVER and costs[m] <= best + options.epsilon:
            busy = _utilisation(g, m, now, options)
            if busy < least or (busy == least and m < chosen):
                least = busy
                chosen = m
    return chosen


@leaf
def _cheapest(g: Grid, h: int, among: int, now: int, options: Options, costs: Any) -> int:
    """Cluster with the smallest turnaround time, among nearly equal ones the least busy; -1 if none can."""
    best = FOREVER
    for m in range(len(g.sites)):
        if _is_asked(g, h, m, among):
            best = min(best, costs[m])
    chosen = _UNDECIDED
    least = 2.0
    for m in range(len(g.sites)):
        if _is_asked(g, h, m, among) and costs[m] < FOREVER and costs[m] <= best + options.epsilon:
            busy = _utilisation(g, m, now, options)
            if busy < least:
                least = busy
                chosen = m
    return chosen


@leaf
def _is_better(g: Grid, m: int, h: int, now: int, options: Options, costs: Any) -> bool:
    """Whether a volunteer runs a job at less cost than its home."""
    there = costs[m]
    here = costs[h]
    if there < here - options.epsilon:
        return True
    near = here < FOREVER and abs(there - here) <= options.epsilon
    return near and _utilisation(g, m, now, options) < _utilisation(g, h, now, options)


@leaf
def _choice(g: Grid, j: int, among: int, now: int, options: Options, costs: Any) -> int:
    """Cluster that a job goes to by the answers; _UNDECIDED if it waits, _ASKS_ALL if it asks again."""
    if among == _SAMPLE:
        return _cheapest_of_sample(g, j, now, options, costs)
    h = g.home[j]
    m = _cheapest(g, h, among, now, options, costs)
    if among != _VOLUNTEERS:
        return m
    if m >= 0 and _is_better(g, m, h, now, options, costs):
        if not options.takes_all:
            g.volunteer[m] = _ACCEPTED
        return m
    return _ASKS_ALL if options.scheme == _SYMMETRIC and options.goes_on else _UNDECIDED


@part
def _decide(g: Grid, local: Local, j: int, now: int, options: Options, score: Any, costs: Any) -> bool:
    """Decide on a job of a grid queue; return whether it goes on to ask all its partners at once.

    It is sent to a cluster, or its grid scheduler waits for answers, or it waits in the grid queue.
    """
    h = g.home[j]
    among = _asked(g, j, options)
    messages = options.message_delay > 0 and _needs_messages(g, h, among)
    answer = _CONTENT
    alone = among == _SAMPLE and _is_alone(g.sample[j])
    if among != _HOME and not alone:
        answer = _ask(g, local, j, among, messages and g.asking[h] >= 0, now, options, score, costs)
    g.marked[j] = answer == _OCCUPIED
    if answer == _OCCUPIED:
        return False
    if alone:
        g.cluster[j] = g.sample[j, 0]
    else:
        g.cluster[j] = h if answer == _CONTENT else _choice(g, j, among, now, options, costs)
    if messages and answer == _ANSWERED:
        g.asking[h] = j
        _set_timer(g, j, now + options.message_delay)
        return False
    if g.cluster[j] >= 0:
        _send(g, local, j, now, options.migration_delay, options, score)
    return g.cluster[j] == _ASKS_ALL


# --- grid queues ----------------------------------------------------------------------------------


@leaf
def _within_reach(g: Grid, j: int, scheme: int) -> bool:
    """Whether any cluster that the scheme could choose can hold a job."""
    h = g.home[j]
    fits = False
    if scheme == _SAMPLED:
        step = 0
        while step < g.sample.shape[1] and not fits:
            fits = g.sample[j, step] >= 0 and _fits(g, j, g.sample[j, step])
            step += 1
        return fits
    for m in range(len(g.sites)):
        reached = m == h or scheme == _CENTRAL or (scheme != _LOCAL and g.partners[h, m])
        fits |= reached and _fits(g, j, m)
    return fits


@leaf
def _receive(g: Grid, now: int, scheme: int, todo: Any) -> int:
    """Put the jobs that are submitted now and fit somewhere into the grid queues; list them."""
    clock = g.clock[0]
    count = 0
    while clock["arrival"] < len(g.requests) and g.requests[clock["arrival"]]["submit"] == now:
        j = clock["arrival"]
        clock["arrival"] += 1
        if _within_reach(g, j, scheme):
            g.waiting_grid[clock["queued"]] = j
            clock["queued"] += 1
            g.marked[j] = True
            todo[count] = j
            count += 1
        else:
            g.cluster[j] = _NOWHERE
    return count


@leaf
def _is_out(g: Grid, j: int) -> bool:
    """Whether the grid scheduler of a job's home waits for answers about it."""
    return g.asking[g.home[j]] == j


@leaf
def _drop_sent(g: Grid) -> None:
    """Keep in the grid queues the jobs that were not sent to a cluster."""
    clock = g.clock[0]
    kept = 0
    for k in range(clock["queued"]):
        j = g.waiting_grid[k]
        g.waiting_grid[kept] = j
        if g.cluster[j] < 0 or _is_out(g, j):
            kept += 1
    clock["queued"] = kept


@leaf
def _mark_all(g: Grid) -> None:
    """Let every job in a grid queue want to be decided."""
    for k in range(g.clock[0]["queued"]):
        g.marked[g.waiting_grid[k]] = True


@leaf
def _has_turn(g: Grid, j: int, even_if_occupied: bool) -> bool:
    """Whether a job wants to be decided, and its grid scheduler is free or need only look at home."""
    return g.marked[j] and not _is_out(g, j) and (even_if_occupied or g.asking[g.home[j]] < 0)


@leaf
def _reconsider(g: Grid, even_if_occupied: bool, todo: Any) -> int:
    """List the jobs that have waited and are to be decided: those that go on asking, then home by home."""
    queued = g.clock[0]["queued"]
    count = 0
    for k in range(queued):
        j = g.waiting_grid[k]
        if g.cluster[j] == _ASKS_ALL and not _is_out(g, j):
            g.marked[j] = True
            todo[count] = j
            count += 1
    for h in range(len(g.sites)):
        for k in range(queued):
            j = g.waiting_grid[k]
            listed = g.cluster[j] == _ASKS_ALL
            if g.home[j] == h and not listed and _has_turn(g, j, even_if_occupied):
                todo[count] = j
                count += 1
    return count


@leaf
def _land(g: Grid, local: Local, now: int, options: Options, score: Any) -> bool:
    """Let answers come in and transits end; return whether any grid scheduler is free again."""
    clock = g.clock[0]
    freed = False
    while clock["timers"] > 0 and g.timers[0]["key"] == now:
        j = g.timers[0]["job"]
        clock["timers"] = heap.pop(g.timers, clock["timers"])
        answered = _is_out(g, j)
        freed |= answered
        if answered:
            g.asking[g.home[j]] = -1
        if g.cluster[j] >= 0:
            _send(g, local, j, now, options.migration_delay if answered else 0, options, score)
    if freed:
        _drop_sent(g)
    return freed


@leaf
def _renew_volunteers(g: Grid, now: int, options: Options) -> None:
    """Forget the volunteers of the last check; every cluster that is not busy volunteers."""
    for m in range(len(g.sites)):
        volunteers = _utilisation(g, m, now, options) < options.delta and not _is_silent(g, m, now)
        g.volunteer[m] = _VOLUNTEER if volunteers else _NOBODY


@leaf
def _forget_volunteers(g: Grid) -> None:
    """Let no cluster be a volunteer."""
    for m in range(len(g.sites)):
        g.volunteer[m] = _NOBODY


# --- the clock ------------------------------------------------------------------------------------


@leaf
def _next_event(local: Local, m: int) -> int:
    """Time of the next event on a cluster."""
    return machine.next_local_event(_cluster(local, m))


@leaf
def _next_due(g: Grid, m: int, now: int) -> int:
    """First cluster from m on that has an event now; the number of clusters if there is none.

    The loops over clusters are kept out of the loop over instants because what they seldom do is long.
    """
    while m < len(g.sites) and g.due[m] != now:
        m += 1
    return m


@leaf
def _next_instant(g: Grid, scheme: int) -> int:
    """Time of the next event anywhere; FOREVER if nothing will happen."""
    clock = g.clock[0]
    now = FOREVER
    if clock["arrival"] < len(g.requests):
        now = g.requests[clock["arrival"]]["submit"]
    volunteering = scheme in (_RECEIVER, _SYMMETRIC)
    if clock["queued"] > 0 or (volunteering and clock["arrival"] < len(g.requests)):
        now = min(now, clock["check"])
    if clock["timers"] > 0:
        now = min(now, g.timers[0]["key"])
    for m in range(len(g.sites)):
        now = min(now, g.due[m])
    return now


@leaf
def _is_check(g: Grid, now: int, options: Options) -> bool:
    """Whether the jobs in grid queues are to be decided anew now; set the time of the next check."""
    clock = g.clock[0]
    if now < clock["check"]:
        return False
    due = clock["check"] == now
    clock["check"] = (now // options.sigma + 1) * options.sigma
    return due and _SENDER <= options.scheme <= _SYMMETRIC


@leaf
def _has_room(g: Grid, room: int, now: int) -> bool:
    """Whether every local queue has room for all jobs that could enter it at this instant."""
    clock = g.clock[0]
    coming = clock["queued"] + clock["timers"]
    j = clock["arrival"]
    while j < len(g.requests) and g.requests[j]["submit"] == now:
        coming += 1
        j += 1
    # one more, since a prediction appends a job to the copy
    return clock["longest"] + coming + 1 <= room


@jit
def schedule(g: Grid, local: Local, options: Options, score: Any, todo: Any, costs: Any) -> bool:
    """Simulate the grid; return False if it stopped because a queue needs more room, else True at the end.

    It can be called again after `with_room`, and goes on where it stopped. `todo` (int64[n]) and `costs`
    (int64[m]) are scratch.
    """
    while True:
        now = _next_instant(g, options.scheme)
        if now == FOREVER:
            return True
        if not _has_room(g, len(local.candidates) - 1, now):
            return False
        if options.average:
            _measure(g, now, options.sigma)
        m = _next_due(g, 0, now)
        while m < len(g.sites):
            _finish_events(g, local, m, now, options)
            m = _next_due(g, m + 1, now)
        changed = _land(g, local, now, options, score)
        check = _is_check(g, now, options)
        if check:
            _renew_volunteers(g, now, options)
            _mark_all(g)
            changed = True
        for submitted in (False, True):
            # new jobs, and at a check all that wait for it, compare their wait at home with phi in any case
            even_if_occupied = submitted or (check and options.scheme != _SENDER)
            count = 0
            if submitted and options.at_check:
                _forget_volunteers(g)
            if submitted:
                count = _receive(g, now, options.scheme, todo)
                changed |= count > 0
            elif changed:
                count = _reconsider(g, even_if_occupied, todo)
            for k in range(count):
                more = _has_turn(g, todo[k], even_if_occupied)
                while more:
                    more = _decide(g, local, todo[k], now, options, score, costs)
        if changed:
            _drop_sent(g)
        m = _next_due(g, 0, now)
        while m < len(g.sites):
            if g.touched[m]:
                g.touched[m] = False
                _pass(g, local, m, now, options, score)
            g.due[m] = _next_event(local, m)
            m = _next_due(g, m + 1, now)
