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
    score: float
    long: int = 0
    begun: int = -1


class Site(NamedTuple):
    """What jobs may have, by queue, and by hour; how many processors there are from when on."""

    queue_processors: list[int]
    long_processors: list[int]
    capacity: list[tuple[int, int]]


class Policy(NamedTuple):
    """How the queue is served."""

    backfilling: str  # "none", "first fit", "easy"
    age: float
    expansion: float
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
    starts = [job.begun for job in jobs]
    coming = [j for j, job in enumerate(jobs) if job.begun < 0]
    queue: list[int] = []
    now = min(jobs[j].eligible for j in coming)
    while True:
        while coming and jobs[coming[0]].eligible <= now:
            queue.append(coming.pop(0))
        for j in _once(jobs, site, policy, queue, starts, now):
            queue.remove(j)
        later = [jobs[j].eligible for j in coming]
        running = [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > now]
        later += [starts[j] + jobs[j].run for j in running]
        if queue:
            later += [expected_end(starts[j], jobs[j].estimate, now) for j in running]
            later += [time for time, _ in site.capacity if time > now]
            if any(most < ANY for most in site.long_processors):
                later.append(((now + policy.week) // HOUR + 1) * HOUR - policy.week)
        later = [time for time in later if time > now]
        if not later or (not running and min(later) > max(job.eligible for job in jobs) + 10**7):
            return starts
        now = min(later)


def _once(
    jobs: list[Job], site: Site, policy: Policy, queue: list[int], starts: list[int], now: int
) -> list[int]:
    """Start jobs, and say which."""
    waiting = sorted(queue, key=lambda j: (-_score(jobs[j], policy, now), j))
    here = [size for time, size in site.capacity if time <= now][-1]
    coming = [(time, size) for time, size in site.capacity if time > now][:1]
    hour = ((now + policy.week) // HOUR) % 168
    reserved: tuple[int | None, int] | None = None

    started: list[int] = []
    for j in waiting:
        job = jobs[j]
        held = [k for k in range(len(jobs)) if starts[k] >= 0 and starts[k] + jobs[k].run > now]
        busy = sum(jobs[k].processors for k in held)
        free = here - busy
        if free <= 0:
            return started
        same = [jobs[k].processors for k in held if jobs[k].queue == job.queue]
        if same and sum(same) + job.processors > site.queue_processors[job.queue]:
            continue
        long = [jobs[k].processors for k in held if jobs[k].long]
        if job.long and long and sum(long) + job.processors > site.long_processors[hour]:
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
            if policy.backfilling == "none":
                return started
            if policy.backfilling == "easy":
                reserved = _reservation(jobs, starts, held, free, job.processors, now)
            continue
        starts[j] = now
        started.append(j)
    return started


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
