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

    backfilling: str  # "none", "first fit", "easy", "shortest first", "conservative"
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
    plans = Plans()
    once = plans.once if policy.backfilling == "conservative" else _once
    now = min(jobs[j].eligible for j in coming)
    while True:
        while coming and jobs[coming[0]].eligible <= now:
            queue.append(coming.pop(0))
        for j in once(jobs, site, policy, queue, starts, now):
            queue.remove(j)
        later = [jobs[j].eligible for j in coming]
        running = [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > now]
        later += [starts[j] + jobs[j].run for j in running]
        if queue:
            later += plans.start.values()
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
    while waiting:
        if policy.backfilling == "shortest first" and reserved is not None:
            waiting.sort(key=lambda j: jobs[j].estimate)
        j = waiting.pop(0)
        job = jobs[j]
        held = [k for k in range(len(jobs)) if starts[k] >= 0 and starts[k] + jobs[k].run > now]
        busy = sum(jobs[k].processors for k in held)
        free = here - busy
        if free <= 0:
            return started
        if _is_over(jobs, site, held, job, hour):
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
            if policy.backfilling in ("easy", "shortest first"):
                reserved = _reservation(jobs, starts, held, free, job.processors, now)
            continue
        starts[j] = now
        started.append(j)
    return started


def _is_over(jobs: list[Job], site: Site, held: list[int], job: Job, hour: int) -> bool:
    """Whether a share keeps a job from starting."""
    same = [jobs[k].processors for k in held if jobs[k].queue == job.queue]
    long = [jobs[k].processors for k in held if jobs[k].long]
    return bool(same and sum(same) + job.processors > site.queue_processors[job.queue]) or bool(
        job.long and long and sum(long) + job.processors > site.long_processors[hour]
    )


class Plans:
    """Conservative backfilling: planned starts that stay, or become earlier."""

    def __init__(self) -> None:
        self.start: dict[int, int] = {}
        self.last = -1
        self.known: object = None

    def once(
        self, jobs: list[Job], site: Site, policy: Policy, queue: list[int], starts: list[int], now: int
    ) -> list[int]:
        """Start jobs, and say which."""
        before = [(time, size) for time, size in site.capacity if time <= now]
        coming = [(time, size) for time, size in site.capacity if time > now]
        here, hour = before[-1][1], ((now + policy.week) // HOUR) % 168
        begin = end = now
        lost = 0
        if coming and coming[0][0] <= now + policy.notice and coming[0][1] < here:
            begin, lost = coming[0][0], here - coming[0][1]
            end = coming[1][0] if len(coming) > 1 else ANY
        ran = [j for j in range(len(jobs)) if starts[j] >= 0 and starts[j] + jobs[j].run > self.last]
        due = {j: expected_end(starts[j], jobs[j].estimate, max(self.last, starts[j])) for j in ran}
        gone = [j for j in ran if starts[j] + jobs[j].run <= now]
        outran = any(due[j] < starts[j] + jobs[j].run for j in ran if due[j] <= now)
        early = any(due[j] > starts[j] + jobs[j].run for j in gone)
        held = [j for j in ran if j not in gone]
        if outran or (len(before), lost) != self.known:
            self.start.clear()
        self.known, self.last = (len(before), lost), now

        def free(time: int) -> int:
            running = [k for k in held if expected_end(starts[k], jobs[k].estimate, now) > time]
            planned = [k for k, at in self.start.items() if at <= time < at + jobs[k].estimate]
            used = sum(jobs[k].processors for k in running + planned)
            return here - (lost if begin <= time < end else 0) - used

        def place(j: int, limit: int) -> None:
            ends = [expected_end(starts[k], jobs[k].estimate, now) for k in held]
            ends += [time for k, at in self.start.items() for time in (at, at + jobs[k].estimate)]
            times = sorted({now, *(time for time in (*ends, begin, end) if now < time < limit)})
            for time in times:
                until = min(time + jobs[j].estimate, limit)
                if all(free(each) >= jobs[j].processors for each in times if time <= each < until):
                    self.start[j] = time
                    return

        waiting = sorted(queue, key=lambda j: (-_score(jobs[j], policy, now), j))
        for j in waiting:
            if _is_over(jobs, site, held, jobs[j], hour):
                self.start.pop(j, None)
        planned = [j for j in waiting if j in self.start and early]
        for j in planned:
            place(j, self.start[j])
        for j in waiting:
            if j not in self.start and not _is_over(jobs, site, held, jobs[j], hour):
                place(j, ANY)
        started: list[int] = []
        for j in waiting:
            if self.start.get(j, ANY) <= now:
                del self.start[j]
                if not _is_over(jobs, site, held + started, jobs[j], hour):
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
