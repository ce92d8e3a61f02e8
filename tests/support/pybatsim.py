"""Rules of schedulers of pybatsim, written anew: their schedules are those of the schedulers themselves.

Both act on one event of a message after the other: ends in the order of starts, then submissions.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gridsched as gs


@dataclass(eq=False)
class Space:
    """Free hosts that are neighbours, how long a job may have them [s], and from which side it gets them."""

    first: int
    last: int
    limit: float = math.inf
    from_first: bool = True
    twin: Space | None = None
    """The same hosts, but wider and shorter or the other way round."""

    @property
    def width(self) -> int:
        """How many hosts there are."""
        return self.last - self.first + 1


def release(spaces: list[Space], first: int, last: int) -> Space:
    """Give back hosts, and the space that they are in then."""
    at = next((k for k, space in enumerate(spaces) if space.first > first), len(spaces))
    before = spaces[at - 1] if at and spaces[at - 1].last + 1 == first else None
    after = spaces[at] if at < len(spaces) and spaces[at].first - 1 == last else None
    if before and after:
        before.last = after.last
        del spaces[at]
    elif before:
        before.last, before.from_first = last, False
    elif after:
        after.first, after.from_first = first, True
    else:
        spaces.insert(at, Space(first, last))
    return before or after or spaces[at]


def take(spaces: list[Space], space: Space, size: int) -> tuple[int, int]:
    """Hosts of a job from a space."""
    if space.from_first:
        first, last = space.first, space.first + size - 1
        space.first = last + 1
        if space.twin:
            space.twin.first = max(space.twin.first, last + 1)
    else:
        first, last = space.last - size + 1, space.last
        space.last = first - 1
        if space.twin:
            space.twin.last = min(space.twin.last, first - 1)
    for each in (space, space.twin):
        if each in spaces and each.width <= 0:
            spaces.remove(each)
    return first, last


@dataclass
class NeighbouringHosts:
    """Queue and hosts of `easyBackfill`: EASY backfilling in which the hosts of a job are neighbours.

    easyBackfill.py of 3.2.1: `allocJobFCFS` (line 293), `findAllocFuture` (323), `allocFutureJob` (339),
    `findBackfilledAllocs` (413), `unassignJob` (154).
    """

    spaces: list[Space]
    waiting: list[tuple[int, int, int]] = field(default_factory=list)
    running: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """Expected end, number of the start, job, first and last host."""
    starts: int = 0

    def ended(self, job: int) -> None:
        """Let a job have ended."""
        at = next(k for k, known in enumerate(self.running) if known[2] == job)
        release(self.spaces, *self.running.pop(at)[3:])

    def start(self, now: int, limited: bool, job: int, size: int, walltime: int) -> bool:
        """Start a job in the first space that has room for it, if there is one."""
        for space in self.spaces:
            if size <= space.width and (not limited or walltime <= space.limit):
                self.starts += 1
                hosts = take(self.spaces, space, size)
                insort(self.running, (now + walltime, self.starts, job, *hosts))
                return True
        return False

    def decide(self, now: int) -> list[int]:
        """Jobs that start now."""
        started = []
        while self.waiting and self.start(now, False, *self.waiting[0]):
            started.append(self.waiting.pop(0)[0])
        if len(self.waiting) > 1:
            shortened, added = self.reserve(now)
            for job in [job for job in self.waiting[1:] if self.start(now, True, *job)]:
                self.waiting.remove(job)
                started.append(job[0])
            self.spaces[:] = [space for space in self.spaces if space not in added]
            for space in shortened:
                space.limit, space.from_first, space.twin = math.inf, True, None
        return started

    def reserve(self, now: int) -> tuple[list[Space], list[Space]]:
        """Keep the hosts of the first job free from when it can start on; which spaces are made for that.

        It gets them when the running jobs have ended, in the order of their expected ends, up to the one that
        makes a space wide enough. Only the spaces with the first and the last of them are kept for it, not
        those between. What is free beside them has no limit, but is a space of its own.
        """
        spaces = [replace(space, twin=None) for space in self.spaces]
        ends = ((release(spaces, *running[3:]), running[0]) for running in self.running)
        size = self.waiting[0][1]
        wide, end = next((space, end) for space, end in ends if size <= space.width)
        first, last = take(spaces, wide, size)
        shortened, added = [], []
        for space in list(self.spaces):
            for edge, beside in (
                (first, Space(space.first, first - 1)),
                (last, Space(last + 1, space.last, from_first=False)),
            ):
                if space.first <= edge <= space.last:
                    space.limit = end - now
                    shortened.append(space)
                    if beside.width > 0:
                        beside.twin, space.twin, space.from_first = space, beside, not beside.from_first
                        self.spaces.insert(self.spaces.index(space) + 1, beside)
                        added.append(beside)
        return shortened, added


def happened(sim: gs.Simulator) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Jobs that have ended since the last call, in the order of their starts, and those submitted since."""
    memory = sim.memory
    left = set(sim.running["job"].tolist())
    ended = [job for job in memory.setdefault("started", []) if job not in left]
    memory["started"] = [job for job in memory["started"] if job in left]
    new = sim.entered - memory.get("entered", 0)
    memory["entered"] = sim.entered
    submitted = sim.queue[len(sim.queue) - new :]
    return ended, submitted[["job", "processors", "estimate"]].tolist()


def start(sim: gs.Simulator, jobs: list[int]) -> None:
    """Start jobs."""
    for job in jobs:
        sim.start(job)
    sim.memory["started"] += jobs


class EasyBackfill(gs.CustomScheduler):
    """`easyBackfill` of pybatsim 3.2.1, `backfill-easy` of 4.0.0a0."""

    def decide(self, sim: gs.Simulator) -> None:
        """Start what the rule starts."""
        ended, submitted = happened(sim)
        if "queue" not in sim.memory:
            sim.memory["queue"] = NeighbouringHosts([Space(0, int(sim.free[0]) - 1)])
        queue: NeighbouringHosts = sim.memory["queue"]
        for job in ended:
            queue.ended(job)
            start(sim, queue.decide(sim.now))
        for submission in submitted:
            queue.waiting.append(submission)
            start(sim, queue.decide(sim.now))


@dataclass(frozen=True)
class Filler(gs.CustomScheduler):
    """`fillerSched` of pybatsim 3.2.1, `filler` of 4.0.0a0: first fit, in which each decision takes 5 ms.

    Waiting jobs are tried in the order of a set, which depends on where its process keeps them in memory.
    Each gets the first free hosts, so that the hosts of a run show which was next, where several started in
    one second; the rule says whether any is.

    fillerSched.py of 3.2.1: `sched_delay` (lines 17 and 44), the set (line 30), the hosts (line 35).
    """

    starts: Sequence[int] = ()
    hosts: Sequence[Sequence[int]] = ()

    def decide(self, sim: gs.Simulator) -> None:
        """Carry out what was decided until now, and decide again if the last decisions are taken."""
        memory = sim.memory
        if "free" not in memory:
            decided = zip(self.starts, (hosts[0] for hosts in self.hosts), strict=True)
            memory["next"] = {start: job for job, start in enumerate(decided)}
            memory |= {"free": set(range(int(sim.free[0]))), "has": {}}
            memory |= {"waiting": {}, "events": [], "due": {}, "ready": 0}
        ended, submitted = happened(sim)
        memory["events"] += [(job, 0) for job in ended] + [(job, size) for job, size, _ in submitted]
        start(sim, memory["due"].pop(sim.now, []))
        if memory["ready"] > sim.now:
            sim.call_at(memory["ready"])
            return
        clock = float(sim.now)
        for job, size in memory["events"]:
            if size:
                memory["waiting"][job] = size
            else:
                memory["free"] |= memory["has"].pop(job)
            clock += 0.005
            due = math.ceil(clock)
            if jobs := self.chosen(memory, due):
                memory["due"].setdefault(due, []).extend(jobs)
                sim.call_at(due)
        memory["events"], memory["ready"] = [], math.ceil(clock)

    def chosen(self, memory: dict[str, Any], due: int) -> list[int]:
        """Which jobs start: while any fits, the one that the run has next, else the first."""
        free, waiting, jobs = memory["free"], memory["waiting"], []
        while min(waiting.values(), default=math.inf) <= len(free):
            first = sorted(free)
            job = memory["next"].get((due, first[0]), -1)
            if self.hosts[job] != first[: waiting.get(job, 0)]:
                job = next(job for job, size in waiting.items() if size <= len(free))
            memory["has"][job] = set(first[: waiting.pop(job)])
            free -= memory["has"][job]
            jobs.append(job)
        return jobs
