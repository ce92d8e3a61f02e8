"""What scheduling passes do with nodes: the `resources` of `gridsched.engine.passes` for such clusters."""

from __future__ import annotations

from gridsched.engine.jit import inline
from gridsched.engine.job_lifecycle import note_start
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.placement import choose, could_fit, fits_now, is_refused
from gridsched.engine.nodes.plans import earliest, forget_plan, free_pieces_of, note_plan
from gridsched.engine.nodes.queue import start, within_limits
from gridsched.engine.records import EASY, FOREVER

__all__ = ["could_fit", "is_refused", "within_limits"]


@inline
def item(a: NodeArrays, k: int) -> int:
    """What stands for the waiting job at a place among those to be tried: ties go by it."""
    return k


@inline
def job_of(a: NodeArrays, item: int) -> int:
    """The job of an `item`."""
    return a.waiting[item]


@inline
def has_started(a: NodeArrays, j: int) -> bool:
    """Whether a job runs."""
    return a.jobs[j]["start"] >= 0


@inline
def is_over(a: NodeArrays) -> bool:
    """Whether the pass has to end since there is no room to write pieces down."""
    return a.store[0]["short"] > 0


@inline
def is_held(a: NodeArrays, j: int, reservations: int) -> bool:
    """Whether so many jobs hold up a job that it is tried later."""
    return a.held[a.jobs[j]["where"]] >= reservations


@inline
def hold(a: NodeArrays, j: int, reservations: int) -> bool:
    """Let a job hold up all who share nodes with it; return whether all are held up enough now."""
    full = 0
    for w in range(len(a.held)):
        a.held[w] += int(a.overlap[a.jobs[j]["where"], w])
        full += int(a.held[w] >= reservations)
    return full == len(a.held)


@inline
def begin_pass(a: NodeArrays, now: int, options: NodeOptions) -> None:
    """Let nobody be held."""
    for w in range(len(a.held)):
        a.held[w] = 0


@inline
def end_pass(a: NodeArrays, options: NodeOptions) -> None:
    """Drop the reservations that were made for this pass alone."""
    if options.backfilling == EASY:
        forget_plans(a, 0)


@inline
def forget_plans(a: NodeArrays, now: int) -> None:
    """Let no waiting job have a reservation."""
    for k in range(a.state[0]["waiting"]):
        _give_up_plan(a, a.waiting[k])


@inline
def _give_up_plan(a: NodeArrays, j: int) -> None:
    """Let a job have no reservation, if it has one."""
    if a.jobs[j]["plan"] < FOREVER:
        forget_plan(a, j)
        free_pieces_of(a, j)


@inline
def _start(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Start a job on the pieces that it has."""
    start(a, j, now, options)
    if options.requests > 0:
        note_start(a.lifecycles, j // options.requests, now)


@inline
def start_if_it_fits(a: NodeArrays, j: int, now: int, options: NodeOptions) -> bool:
    """Start a job if it fits now beside all that is planned."""
    if is_refused(a, j) or not fits_now(a, j, now, options) or not choose(a, j, now, options):
        return False
    _start(a, j, now, options)
    return True


@inline
def reserve(a: NodeArrays, j: int, now: int, latest: int, options: NodeOptions) -> None:
    """Plan a job at the earliest time, up to `latest`, if there is one."""
    time = now
    if is_refused(a, j) or not fits_now(a, j, now, options):
        time = earliest(a, j, now, latest)
    if time < FOREVER and choose(a, j, time, options):
        note_plan(a, j, time)


@inline
def begin_plans(a: NodeArrays, now: int) -> bool:
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
def is_planned(a: NodeArrays, j: int) -> bool:
    """Whether a job has a reservation; those over a limit have none."""
    return a.jobs[j]["plan"] < FOREVER


@inline
def move_forward(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
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
def planned_start(a: NodeArrays, j: int) -> int:
    """When a waiting job is planned to start."""
    return a.jobs[j]["plan"]


@inline
def turn_of(a: NodeArrays, j: int) -> float:
    """Place of a job among those that start at an instant: all in order of entry."""
    return 0.0


@inline
def start_as_planned(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Start a job whose time has come, unless others of its group have started before it.

    It is planned again then when one of them ends.
    """
    if within_limits(a, j):
        _start(a, j, now, options)
    else:
        _give_up_plan(a, j)
        a.state[0]["early"] = True
