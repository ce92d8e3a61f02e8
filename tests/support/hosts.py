"""A naive host of schedulers that decide while jobs run: it knows all jobs, and tells what happens."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import gridsched as gs
from gridsched.engine.records import FOREVER
from gridsched.policies.online import Decided, NewJob, Online


def estimates_of(jobs: gs.Workload) -> list[int]:
    """Requested times, run times where there are none."""
    wanted = np.where(jobs.requested_time > 0, jobs.requested_time, jobs.run_time)
    return [max(int(each), 1) for each in wanted]


def starts_under(
    online: Online, jobs: gs.Workload, seen: Callable[[int, Decided], None] = lambda now, decided: None
) -> NDArray[np.int64]:
    """Start times of the jobs; -1 of those that never run."""
    submits, runs = jobs.submit_time.tolist(), jobs.run_time.tolist()
    more = [jobs.user, jobs.group, jobs.queue, jobs.run_time]
    columns = [submits, estimates_of(jobs), *(each.tolist() for each in (jobs.processors, *more))]
    told = [NewJob(*each) for each in zip(*columns, strict=True)]
    starts = np.full(len(jobs), -1, np.int64)
    ends: list[tuple[int, int]] = []
    calls: list[int] = []
    arrived = 0
    while arrived < len(told) or ends:
        times = [submits[arrived]] if arrived < len(told) else []
        now = min([*times, *(each[0][0] for each in (ends,) if each), *calls[:1]])
        while calls and calls[0] <= now:
            heapq.heappop(calls)
        ended: list[int] = []
        while ends and ends[0][0] <= now:
            ended.append(heapq.heappop(ends)[1])
        before = arrived
        while arrived < len(told) and submits[arrived] <= now:
            arrived += 1
        decided = online.decide(now, told[before:arrived], ended)
        seen(now, decided)
        for job in decided.started:
            starts[job] = now
            heapq.heappush(ends, (now + runs[job], job))
        _kill(decided.killed, ends, now)
        if decided.ask_again < FOREVER:
            heapq.heappush(calls, decided.ask_again)
    return starts


def _kill(killed: Sequence[int], ends: list[tuple[int, int]], now: int) -> None:
    """Let running jobs end a second from now."""
    ends[:] = [(now + 1 if job in killed else end, job) for end, job in ends]
    heapq.heapify(ends)
