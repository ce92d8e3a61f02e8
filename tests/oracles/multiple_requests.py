"""Multiple simultaneous requests, second by second, without shared code: every queue is a list.

Local policies are first come, first served without backfilling, first fit, and EASY, the same everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.oracles.local import Job


@dataclass
class _Cluster:
    processors: int
    speed: float
    queue: list[int]  # jobs in order of priority and entry
    running: dict[int, int]  # start of each running job


def simulate(
    jobs: list[Job],
    home: list[int],
    processors: list[int],
    speeds: list[float],
    k: int,
    policy: str,
    *,
    home_first: bool = False,
) -> list[tuple[int, int]]:
    """Start time and cluster of each job; (-1, -1) if it fits nowhere. Estimates are upper bounds."""
    clusters = [_Cluster(p, s, [], {}) for p, s in zip(processors, speeds, strict=True)]
    placed = [(-1, -1)] * len(jobs)

    def seconds(time: int, j: int, m: int) -> int:
        return time if m == home[j] else math.ceil(time * speeds[home[j]] / speeds[m])

    def expected(j: int, m: int) -> int:
        return max(1, seconds(jobs[j].estimate, j, m))

    def load(m: int, now: int) -> float:
        c = clusters[m]
        work = sum(jobs[j].processors * expected(j, m) for j in c.queue)
        work += sum(jobs[j].processors * (start + expected(j, m) - now) for j, start in c.running.items())
        return work / c.processors

    def free(m: int) -> int:
        return clusters[m].processors - sum(jobs[j].processors for j in clusters[m].running)

    def start(j: int, m: int, now: int) -> None:
        placed[j] = (now, m)
        clusters[m].running[j] = now
        clusters[m].queue.remove(j)

    def startable(m: int, now: int) -> int | None:
        """The next job that the policy starts now."""
        queue = clusters[m].queue
        if not queue:
            return None
        if jobs[queue[0]].processors <= free(m):
            return queue[0]
        if policy == "fcfs":
            return None
        shadow, extra = math.inf, 0
        if policy == "easy":
            available = free(m)
            ends = sorted((s + expected(j, m), jobs[j].processors) for j, s in clusters[m].running.items())
            for time in sorted({end for end, _ in ends}):
                available = free(m) + sum(p for end, p in ends if end <= time)
                if available >= jobs[queue[0]].processors:
                    shadow, extra = time, available - jobs[queue[0]].processors
                    break
        for j in queue[1:]:
            fits = jobs[j].processors <= free(m)
            if fits and (now + expected(j, m) <= shadow or jobs[j].processors <= extra):
                return j
        return None

    now = min((job.submit_time for job in jobs), default=0)
    arrived = 0
    while arrived < len(jobs) or any(c.queue or c.running for c in clusters):
        changed = True
        first = True
        while changed:
            changed = False
            for m, c in enumerate(clusters):
                for j, begin in list(c.running.items()):
                    if begin + seconds(jobs[j].run_time, j, m) == now:
                        del c.running[j]
                        changed = True
            while first and arrived < len(jobs) and jobs[arrived].submit_time == now:
                j = arrived
                arrived += 1
                able = [m for m, c in enumerate(clusters) if jobs[j].processors <= c.processors]
                loads = {m: load(m, now) for m in able}
                for m in sorted(able, key=lambda m: (loads[m], m != home[j], m))[:k]:
                    queue = clusters[m].queue
                    foreign = [i for i, other in enumerate(queue) if home[other] != m]
                    before = home_first and home[j] == m and bool(foreign)
                    queue.insert(foreign[0] if before else len(queue), j)
            first = False
            lost = True
            while lost:
                lost = False
                for m in range(len(clusters)):
                    while (j_next := startable(m, now)) is not None:
                        start(j_next, m, now)
                        changed = True
                        for other, c in enumerate(clusters):
                            if other != m and j_next in c.queue:
                                c.queue.remove(j_next)
                                lost = True
        now += 1
    return placed
