"""A slow, plain replay of a site, which shares no code with the package: the oracle of its kernel."""

from __future__ import annotations

from typing import NamedTuple

HOUR = 3600
ANY = 2**62
"""Where there is no rule."""


class Job(NamedTuple):
    """A job; seconds."""

    submit: int
    eligible: int
    run: int
    estimate: int
    processors: int
    user: int
    queue: int
    kind: int
    score: float


class Site(NamedTuple):
    """What jobs may have, by user, queue, and kind and hour; how many processors there are from when on."""

    user_jobs: list[int]
    user_processors: list[int]
    queue_processors: list[int]
    kind_processors: list[list[int]]
    capacity: list[tuple[int, int]]


class Policy(NamedTuple):
    """How the queue is served."""

    backfilling: str  # "none", "first fit", "easy"
    age: float
    expansion: float
    patience: int
    drain: int | None
    notice: int
    week: int


def expected_end(start: int, estimate: int, now: int) -> int:
    """When a job that runs now is expected to end: its estimate doubles until that is later."""
    length = estimate
    while start + length <= now:
        length *= 2
    return start + length


def replay(jobs: list[Job], site: Site, policy: Policy) -> list[int]:
    """Start of each job, given in order of eligible time; -1 for those that never start."""
    starts = [-1] * len(jobs)
    now = min(job.eligible for job in jobs)
    while True:
        _pass(jobs, site, policy, starts, now)
        later = [job.eligible for job in jobs if job.eligible > now]
        running = [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > now]
        later += [starts[j] + jobs[j].run for j in running]
        if any(starts[j] < 0 and jobs[j].eligible <= now for j in range(len(jobs))):
            later += [expected_end(starts[j], jobs[j].estimate, now) for j in running]
            later += [time for time, _ in site.capacity if time > now]
            if any(most < ANY for row in site.kind_processors for most in row):
                later.append(((now + policy.week) // HOUR + 1) * HOUR - policy.week)
        later = [time for time in later if time > now]
        if not later or (not running and min(later) > max(job.eligible for job in jobs) + 10**7):
            return starts
        now = min(later)


def _pass(jobs: list[Job], site: Site, policy: Policy, starts: list[int], now: int) -> None:
    """Start jobs; one of no length lets others start at the same instant."""
    while True:
        before = list(starts)
        _once(jobs, site, policy, starts, now)
        if not any(starts[j] == now and before[j] < 0 and jobs[j].run == 0 for j in range(len(jobs))):
            return


def _once(jobs: list[Job], site: Site, policy: Policy, starts: list[int], now: int) -> None:
    waiting = [j for j in range(len(jobs)) if starts[j] < 0 and jobs[j].eligible <= now]
    waiting.sort(key=lambda j: (-_score(jobs[j], policy, now), j))
    here = [size for time, size in site.capacity if time <= now][-1]
    coming = [(time, size) for time, size in site.capacity if time > now][:1]
    hour = ((now + policy.week) // HOUR) % 168
    reserved: tuple[int | None, int] | None = None

    def running() -> list[int]:
        return [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > now]

    zero = [j for j in range(len(jobs)) if starts[j] == now and jobs[j].run == 0]
    started: list[int] = []
    for j in waiting:
        job = jobs[j]
        # what started in this pass holds its processors until the pass is over, however short it is
        held = [*running(), *(k for k in started if jobs[k].run == 0 and k not in zero)]
        busy = sum(jobs[k].processors for k in held)
        free = here - busy
        if free <= 0:
            return
        theirs = [k for k in held if jobs[k].user == job.user]
        if len(theirs) >= site.user_jobs[job.user]:
            continue
        together = sum(jobs[k].processors for k in theirs)
        if theirs and together + job.processors > site.user_processors[job.user]:
            continue
        same = [jobs[k].processors for k in held if jobs[k].queue == job.queue]
        if same and sum(same) + job.processors > site.queue_processors[job.queue]:
            continue
        most = site.kind_processors[job.kind][hour]
        alike = [jobs[k].processors for k in held if jobs[k].kind == job.kind]
        if most == 0 or (alike and sum(alike) + job.processors > most):
            continue
        if coming and coming[0][0] <= now + policy.notice and coming[0][1] < here:
            beyond = [k for k in held if expected_end(starts[k], jobs[k].estimate, now) > coming[0][0]]
            left = coming[0][1] - sum(jobs[k].processors for k in beyond)
            if now + job.estimate > coming[0][0] and job.processors > left:
                continue
        if reserved is not None:
            shadow, extra = reserved
            inside = shadow is None or now + job.estimate <= shadow
            if job.processors > free or not (inside or job.processors <= extra):
                continue
            if not inside:
                reserved = (shadow, extra - job.processors)
        elif job.processors > free:
            waited = now - job.submit
            if policy.backfilling == "none" or (policy.drain is not None and waited >= policy.drain):
                return
            if policy.backfilling == "easy" and waited >= policy.patience:
                reserved = _reservation(jobs, starts, held, free, job.processors, now)
            continue
        starts[j] = now
        started.append(j)


def _reservation(
    jobs: list[Job], starts: list[int], held: list[int], free: int, wanted: int, now: int
) -> tuple[int | None, int]:
    """When so many processors are expected to be free, and how many are left then; never if out."""
    ends = sorted({expected_end(starts[k], jobs[k].estimate, now) for k in held})
    for end in ends:
        gone = [k for k in held if expected_end(starts[k], jobs[k].estimate, now) <= end]
        there = free + sum(jobs[k].processors for k in gone)
        if there >= wanted:
            return end, there - wanted
    return None, 0


def _score(job: Job, policy: Policy, now: int) -> float:
    expansion = policy.expansion * (now - job.submit) / job.estimate
    return job.score - policy.age * job.submit / 3600.0 + expansion
