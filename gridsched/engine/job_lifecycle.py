"""The lifecycle of jobs besides waiting and running: jobs that wait for others, are killed, or given up.

A job *enters* when it is submitted and all its dependencies are met: whoever schedules it treats that time as
its submission. Until it starts for the first time its user may give up.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, heap
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import ENTRY, FOREVER
from gridsched.engine.reference import by_reference


class Dependency(IntEnum):
    """What a job waits for."""

    AFTER = 0
    AFTER_ANY = 1
    AFTER_OK = 2
    AFTER_NOT_OK = 3


AFTER, AFTER_ANY, AFTER_OK, AFTER_NOT_OK = map(int, Dependency)


class Fate(IntEnum):
    """Outcome of a job."""

    COMPLETED = 0
    REJECTED = 1
    GAVE_UP = 2
    NEVER_ELIGIBLE = 3
    LOST = 4
    STARVED = 5
    REFUSED = 6


COMPLETED, REJECTED, GAVE_UP, NEVER_ELIGIBLE, LOST, STARVED, REFUSED = map(int, Fate)


class Requeue(IntEnum):
    """What happens to a job that is killed."""

    PLACE = 0
    END = 1
    LOST = 2


REQUEUE_AT_PLACE, REQUEUE_AT_END, REQUEUE_NEVER = map(int, Requeue)


DAY = 86_400

DEPENDENT = np.dtype(
    [
        ("job", np.int64),
        ("kind", np.int64),
        ("delay", np.int64),
        ("limit", np.int64),  # response of the other one from which on its end is noticed late
        ("returns", np.int64),  # an instant at the time of the day at which it is noticed then
        ("away", np.int64),  # full days that pass before
    ]
)
"""A job that depends on another one, how long after that it may start, and when its user notices."""

LIFE = np.dtype(
    [
        ("submit", np.int64),
        ("gives_up", np.int64),  # when its user gives up if it has not started; FOREVER for never
        ("unmet", np.int64),  # dependencies that are not met yet, and 1 until it is submitted
        ("eligible", np.int64),  # when it could start first by its submission and its dependencies
        ("failed", np.int64),  # whether it fails at its end
        ("fate", np.int64),  # value of `Fate`; COMPLETED until something else is known
        ("started", np.int64),  # whether it has ever started
        ("killed", np.int64),  # how often it was killed
        ("weight", np.int64),  # what it needs while it is alive, for those who make room
    ]
)
"""What is to happen to a job, and its outcome."""

STATE = np.dtype(
    [
        ("arrival", np.int64),  # next job to be submitted
        ("timers", np.int64),  # entries of the heap of timers
        ("alive", np.int64),  # jobs that are submitted and not done with, or never eligible
        ("weight", np.int64),  # of these together
    ]
)
"""Scalars of `Lifecycles`."""


class Lifecycles(NamedTuple):
    """The lifecycles of n jobs, in order of submission."""

    jobs: Any  # LIFE[n]
    dependents: Any  # DEPENDENT[...], of each job one after the other
    first_dependent: Any  # int64[n + 1], where those of a job begin
    # a heap of times when jobs become eligible (job) or give up (n + job)
    timers: Any = column(ENTRY, "timers")
    # scratch: jobs whose dependents are to be told
    stack: Any = column(np.int64, "jobs")
    state: Any = column(STATE, "one")


def allocate(jobs: Any, dependents: Any, first_dependent: Any) -> Lifecycles:
    """Lifecycles that have not begun."""
    sizes = {"jobs": len(jobs), "timers": 2 * len(jobs), "one": 1}
    return bundles.allocate(
        Lifecycles, sizes, jobs=jobs, dependents=dependents, first_dependent=first_dependent
    )


def independent(submit: Any) -> Lifecycles:
    """Lifecycles of jobs that wait for nobody and are never given up."""
    jobs = np.zeros(len(submit), LIFE)
    jobs["submit"], jobs["gives_up"], jobs["unmet"] = submit, FOREVER, 1
    return allocate(jobs, np.empty(0, DEPENDENT), np.zeros(len(jobs) + 1, np.int64))


# --- dependencies ---------------------------------------------------------------------------------


@inline
def set_timer(a: Any, time: int, item: int) -> None:
    """Come back to a job at a time: to let it enter (job), or to see whether its user gives up (n + job)."""
    a.state[0]["timers"] = heap.push(a.timers, a.state[0]["timers"], time, item)


@inline
def _meet(a: Any, j: int, time: int) -> None:
    """Let a dependency of a job be met, such that it may start from a time on."""
    job = a.jobs[j]
    job["unmet"] -= 1
    job["eligible"] = max(job["eligible"], time)
    if job["unmet"] == 0 and job["fate"] == COMPLETED:
        set_timer(a, job["eligible"], j)


@inline
def _is_never_met(kind: int, is_ok: bool) -> bool:
    """Whether an end of this kind means that a dependency is never met."""
    return (kind == AFTER_OK and not is_ok) or (kind == AFTER_NOT_OK and is_ok)


@inline
def notify_start(a: Any, j: int, now: int) -> None:
    """Tell those who wait for the first start of a job."""
    for k in range(a.first_dependent[j], a.first_dependent[j + 1]):
        if a.dependents[k]["kind"] == AFTER:
            _meet(a, a.dependents[k]["job"], now + a.dependents[k]["delay"])


@inline
def note_start(a: Any, j: int, now: int) -> None:
    """Let a job run; if it has never before, those who wait for that are told."""
    if a.jobs[j]["started"] == 0:
        a.jobs[j]["started"] = 1
        notify_start(a, j, now)


@inline
def _noticed(dependent: Any, now: int, response: int) -> int:
    """When the user of a dependent notices the end of a job: now, or on coming back after a long response."""
    if response < dependent["limit"]:
        return now
    return now + (dependent["returns"] - now) % DAY + dependent["away"] * DAY


@noinline
def notify_end(a: Any, first: int, now: int, ran: bool) -> None:
    """Tell those who depend on a job that is done with, and those who depend on who never runs for that.

    Its `fate` has to be its outcome, and `ran` whether it ever started: nobody comes back late to a
    job that did not.
    """
    size = 1
    response = now - a.jobs[first]["eligible"] if ran else -1
    a.stack[0] = first
    if a.jobs[first]["fate"] != REJECTED:
        a.state[0]["alive"] -= 1
        a.state[0]["weight"] -= a.jobs[first]["weight"]
    while size > 0:
        size -= 1
        j = a.stack[size]
        fate = a.jobs[j]["fate"]
        is_ok = fate == COMPLETED and not a.jobs[j]["failed"]
        for k in range(a.first_dependent[j], a.first_dependent[j + 1]):
            dependent = a.dependents[k]
            other = a.jobs[dependent["job"]]
            if other["fate"] != COMPLETED or (dependent["kind"] == AFTER and ran and j == first):
                continue
            if fate == NEVER_ELIGIBLE or _is_never_met(dependent["kind"], is_ok):
                other["fate"] = NEVER_ELIGIBLE
                a.stack[size] = dependent["job"]
                size += 1
            else:
                _meet(a, dependent["job"], _noticed(dependent, now, response) + dependent["delay"])


@inline
def note_end(a: Any, j: int, now: int, fate: int) -> None:
    """Let a job that has started be done with."""
    a.jobs[j]["fate"] = fate
    notify_end(a, j, now, True)


@inline
def note_kill(a: Any, j: int, requeue: int, now: int) -> bool:
    """Let a job that ran be killed; whether it waits again, else it is lost."""
    a.jobs[j]["killed"] += 1
    if requeue == REQUEUE_NEVER:
        note_end(a, j, now, LOST)
    return requeue != REQUEUE_NEVER


# --- whose time has come --------------------------------------------------------------------------


@inline
def next_of_lifecycles(a: Lifecycles) -> int:
    """When something happens to a job next that does not run; FOREVER if never."""
    arrival = a.state[0]["arrival"]
    due = a.jobs[arrival]["submit"] if arrival < len(a.jobs) else FOREVER
    return min(due, a.timers[0]["key"]) if a.state[0]["timers"] > 0 else due


@inline
def _submit_next(a: Lifecycles, now: int) -> bool:
    """Submit the next job; return whether it enters at once."""
    state = a.state[0]
    j = state["arrival"]
    state["arrival"] += 1
    job = a.jobs[j]
    if job["fate"] == NEVER_ELIGIBLE:
        return False
    if job["fate"] == REJECTED:
        notify_end(a, j, now, False)
        return False
    state["alive"] += 1
    state["weight"] += job["weight"]
    if job["gives_up"] < FOREVER:
        set_timer(a, max(now, job["gives_up"]), len(a.jobs) + j)
    job["unmet"] -= 1
    job["eligible"] = max(job["eligible"], now)
    if job["unmet"] > 0:
        return False
    if job["eligible"] > now:
        set_timer(a, job["eligible"], j)
        return False
    return True


@inline
def _next_eligible(a: Lifecycles, now: int) -> int:
    """Take the next job off the timers that becomes eligible now; -1 if there is none."""
    state = a.state[0]
    # those who give up have the larger numbers, so they come after those who enter
    while state["timers"] > 0 and a.timers[0]["key"] == now and a.timers[0]["job"] < len(a.jobs):
        j = a.timers[0]["job"]
        state["timers"] = heap.pop(a.timers, state["timers"])
        if a.jobs[j]["fate"] == COMPLETED:
            return j
    return -1


@noinline
def let_enter(a: Lifecycles, now: int, entering: Any) -> int:
    """List the jobs that enter now, those that waited for others first; return how many they are.

    A rejected job (`fate`) does not enter, but who waits for it is told. Ends have to be told before.
    """
    count = 0
    j = _next_eligible(a, now)
    while j >= 0:
        entering[count] = j
        count += 1
        j = _next_eligible(a, now)
    arrival = a.state[0]["arrival"]
    while arrival < len(a.jobs) and a.jobs[arrival]["submit"] == now:
        if _submit_next(a, now):
            entering[count] = arrival
            count += 1
        arrival = a.state[0]["arrival"]
    return count


@noinline
def let_give_up(a: Lifecycles, now: int, leaving: Any) -> int:
    """List the jobs whose users give up now, whether they wait or are not even eligible; return how many.

    To be called after `let_enter`, and both again while `next_of_lifecycles` is now: a job that waits for the
    end of one that gives up may enter at this instant.
    """
    state = a.state[0]
    count = 0
    while state["timers"] > 0 and a.timers[0]["key"] == now and a.timers[0]["job"] >= len(a.jobs):
        j = a.timers[0]["job"] - len(a.jobs)
        state["timers"] = heap.pop(a.timers, state["timers"])
        if a.jobs[j]["started"] == 0 and a.jobs[j]["fate"] == COMPLETED:
            a.jobs[j]["fate"] = GAVE_UP
            leaving[count] = j
            count += 1
            notify_end(a, j, now, False)
    return count


# --- for Python -----------------------------------------------------------------------------------


@jit
def next_time(bundle: Lifecycles) -> int:
    """`next_of_lifecycles` for callers that are not compiled."""
    return next_of_lifecycles(by_reference(bundle))


@jit
def enter(bundle: Lifecycles, now: int, entering: Any) -> int:
    """`let_enter` for callers that are not compiled."""
    return let_enter(by_reference(bundle), now, entering)


@jit
def give_up(bundle: Lifecycles, now: int, leaving: Any) -> int:
    """`let_give_up` for callers that are not compiled."""
    return let_give_up(by_reference(bundle), now, leaving)


@jit
def start(bundle: Lifecycles, j: int, now: int) -> None:
    """`note_start` for callers that are not compiled."""
    note_start(by_reference(bundle), j, now)


@jit
def end(bundle: Lifecycles, j: int, now: int, fate: int) -> None:
    """`note_end` for callers that are not compiled."""
    note_end(by_reference(bundle), j, now, fate)


@jit
def take_back(bundle: Lifecycles, j: int, requeue: int, now: int) -> bool:
    """`note_kill` for callers that are not compiled."""
    return note_kill(by_reference(bundle), j, requeue, now)
