"""A naive scheduler that commits itself to a job: lists that are sorted, one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple


class Job(NamedTuple):
    submit: int
    run: int
    estimate: int
    processors: int


Key = Callable[[Job, int], float]
"""Smallest first, of a job and the present time."""


class Choice(NamedTuple):
    """What the scheduler knows when it chooses."""

    now: int
    queue: list[int]
    """Waiting jobs in order of submission."""
    free: int
    """Processors."""


def choices(jobs: list[Job], processors: int, *, backfills: bool) -> Generator[Choice, int, list[int]]:
    """Each choice, to be answered with a job of the queue, and at last the start of each job.

    Jobs are in order of submission.
    """
    start: dict[int, int] = {}
    coming, queue, running = list(range(len(jobs))), list[int](), list[int]()
    now = 0

    def ends(j: int) -> int:
        return start[j] + jobs[j].run

    def free() -> int:
        return processors - sum(jobs[j].processors for j in running)

    def next_event() -> None:
        nonlocal now
        # the sort keeps the order of the starts among those that end together
        first = sorted(running, key=ends)[0] if running else None
        if coming and (first is None or jobs[coming[0]].submit <= ends(first)):
            now = max(now, jobs[coming[0]].submit)
            queue.append(coming.pop(0))
        else:
            assert first is not None
            now = max(now, ends(first))
            running.remove(first)

    def begin(j: int) -> None:
        start[j] = now
        queue.remove(j)
        running.append(j)

    while coming or queue:
        if not queue:
            next_event()
            continue
        chosen = yield Choice(now, sorted(queue), free())
        shadow = now
        enough = free()
        for j in sorted(running, key=lambda j: start[j] + jobs[j].estimate):
            if enough >= jobs[chosen].processors:
                break
            shadow = start[j] + jobs[j].estimate
            enough += jobs[j].processors
        while jobs[chosen].processors > free():
            for j in sorted(queue):
                fits = jobs[j].processors <= free()
                if backfills and j != chosen and fits and now + jobs[j].estimate < shadow:
                    begin(j)
            next_event()
        begin(chosen)
    return [start[j] for j in range(len(jobs))]


def simulate(jobs: list[Job], processors: int, key: Key, *, backfills: bool, knows_time: bool) -> list[int]:
    """Start of each job when the one with the smallest key is chosen."""
    asked = choices(jobs, processors, backfills=backfills)
    try:
        choice = next(asked)
        while True:
            now = choice.now if knows_time else -1
            best = min(choice.queue, key=lambda j, now=now: key(jobs[j], now))  # type: ignore[misc]
            choice = asked.send(best)
    except StopIteration as done:
        starts: list[int] = done.value
        return starts
