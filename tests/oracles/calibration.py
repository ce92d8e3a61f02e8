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
    long: int = 0
    begun: int = -1


class Site(NamedTuple):
    """What jobs may have, by user, queue, and kind and hour; how many processors there are from when on."""

    user_jobs: list[int]
    user_processors: list[int]
    user_work: list[int]
    queue_processors: list[int]
    long_processors: list[int]
    closed: list[list[bool]]
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
    idle: int


class Queue:
    """Jobs that wait in the queue, since when, and those of each user that wait outside."""

    def __init__(self) -> None:
        self.entered: dict[int, int] = {}
        self.outside: dict[int, list[int]] = {}

    def arrive(self, jobs: list[Job], j: int, most: int, since: int) -> None:
        """A job comes, or comes in from outside."""
        if sum(jobs[k].user == jobs[j].user for k in self.entered) < most:
            self.entered[j] = since
        else:
            self.outside.setdefault(jobs[j].user, []).append(j)


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
    queue = Queue()
    now = min(jobs[j].eligible for j in coming)
    while True:
        while coming and jobs[coming[0]].eligible <= now:
            j = coming.pop(0)
            queue.arrive(jobs, j, policy.idle, jobs[j].submit)
        entered = True
        while entered:
            started = _once(jobs, site, policy, queue, starts, now)
            entered = False
            for j in started:
                del queue.entered[j]
            for j in started:
                others = queue.outside.get(jobs[j].user, [])
                if others:
                    queue.arrive(jobs, others.pop(0), policy.idle, now)
                    entered = True
        later = [jobs[j].eligible for j in coming]
        running = [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > now]
        later += [starts[j] + jobs[j].run for j in running]
        if queue.entered:
            later += [expected_end(starts[j], jobs[j].estimate, now) for j in running]
            later += [time for time, _ in site.capacity if time > now]
            hourly = [*site.long_processors, *site.user_work]
            if any(most < ANY for most in hourly) or any(any(row) for row in site.closed):
                later.append(((now + policy.week) // HOUR + 1) * HOUR - policy.week)
        later = [time for time in later if time > now]
        if not later or (not running and min(later) > max(job.eligible for job in jobs) + 10**7):
            return starts
        now = min(later)


def _once(
    jobs: list[Job], site: Site, policy: Policy, queue: Queue, starts: list[int], now: int
) -> list[int]:
    """Start jobs, and say which."""
    waiting = sorted(queue.entered, key=lambda j: (-_score(jobs[j], policy, queue.entered[j], now), j))
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
        theirs = [k for k in held if jobs[k].user == job.user]
        if len(theirs) >= site.user_jobs[job.user]:
            continue
        together = sum(jobs[k].processors for k in theirs)
        if theirs and together + job.processors > site.user_processors[job.user]:
            continue
        left = sum(
            jobs[k].processors * (expected_end(starts[k], jobs[k].estimate, now) - now) for k in theirs
        )
        if theirs and left + job.processors * job.estimate > site.user_work[job.user]:
            continue
        same = [jobs[k].processors for k in held if jobs[k].queue == job.queue]
        if same and sum(same) + job.processors > site.queue_processors[job.queue]:
            continue
        if site.closed[job.kind][hour]:
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
            waited = now - queue.entered[j]
            if policy.backfilling == "none" or (policy.drain is not None and waited >= policy.drain):
                return started
            if policy.backfilling == "easy" and waited >= policy.patience:
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


def _score(job: Job, policy: Policy, since: int, now: int) -> float:
    expansion = policy.expansion * (now - since) / job.estimate
    return job.score - policy.age * since / 3600.0 + expansion
