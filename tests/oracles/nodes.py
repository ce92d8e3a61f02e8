"""A slow, plain simulator of a cluster of nodes with several resources: the oracle of `engine.nodes`.

What is free is added up anew for every question, from who runs and who is planned; the earliest place for a
job is found by trying every time at which something changes. It shares no code with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = 10**12

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds that successive corrections add (Tsafrir, Etsion, Feitelson 2007)."""


class Node(NamedTuple):
    """What a node has."""

    cores: int
    memory: int = 0
    gpus: int = 0
    weight: float = 0.0


@dataclass
class Job:
    """What a job asks for: `units` equal parts, each on one node, `most` of them on the same."""

    submit: int
    run: int
    estimate: int
    units: int = 1
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    share: int = 0
    most: int = 10**6
    whole: bool = False
    where: int = 0
    kind: int = -1
    gives_up: int = NEVER
    failed: bool = False
    after: list[tuple[int, str, int]] = field(default_factory=list)  # (job, kind, delay)
    groups: list[int] = field(default_factory=list)
    user: int = -1


class Limit(NamedTuple):
    """What the jobs of a group may have at once."""

    jobs: int = NEVER
    cores: int = NEVER
    seconds: int = NEVER


class Event(NamedTuple):
    """Something that happens to a node; a window is announced at `time`."""

    time: int
    node: int
    kind: str
    start: int = 0
    end: int = 0


class Typical(NamedTuple):
    """A kind of job that is to be expected."""

    cores: int
    gpus: int
    share: int
    where: int
    frequency: float


@dataclass
class Part:
    """What a job has on a node."""

    node: int
    units: int
    cores: int
    memory: int
    devices: dict[int, int]


@dataclass
class Policy:
    """How jobs are scheduled."""

    order: str = "fcfs"
    backfilling: str = "easy"
    reservations: int = 1
    backfill_order: str = "queue"
    placement: str = "first_fit"
    overrun: str = "doubling"
    requeue: str = "place"
    interval: int = 0
    cost: int = 0
    prediction: str = "estimate"
    correction: str = "increments"


class Execution(NamedTuple):
    """A part that ran."""

    job: int
    node: int
    units: int
    cores: int
    memory: int
    devices: tuple[tuple[int, int], ...]
    start: int
    end: int


class Cluster:
    """A cluster of nodes with its whole workload."""

    def __init__(
        self,
        nodes: list[Node],
        jobs: list[Job],
        policy: Policy,
        *,
        allowed: list[set[int]] | None = None,
        events: list[Event] | None = None,
        limits: list[Limit] | None = None,
        typical: list[Typical] | None = None,
    ) -> None:
        self.nodes, self.jobs, self.policy = nodes, jobs, policy
        self.allowed = allowed or [set(range(len(nodes)))]
        self.limits = limits or []
        self.typical = typical or []
        self.now = 0
        self.pending_events = _spread(events or [])
        self.track = policy.backfilling in ("easy", "conservative") or bool(events)
        self.track |= policy.placement == "clustered"
        self.down: set[int] = set()
        self.drained: set[int] = set()
        self.windows: list[Event] = []
        count = len(jobs)
        self.work = [job.run for job in jobs]
        self.guess = [job.estimate for job in jobs]
        self.given = [job.estimate for job in jobs]
        self.predicted = [job.estimate for job in jobs]
        self.ran: dict[int, list[int]] = {}
        self.fate = ["completed"] * count
        self.entry = [-1] * count
        self.entered = 0
        self.waiting: list[int] = []
        self.running: dict[int, list[Part]] = {}
        self.planned: dict[int, tuple[int, list[Part]]] = {}
        self.start = [-1] * count
        self.first_start = [-1] * count
        self.end = [-1] * count
        self.expected: dict[int, int] = {}
        self.kills = [0] * count
        self.extra = [0] * count
        self.unmet = [1 + len(job.after) for job in jobs]
        self.eligible = [0] * count
        self.timers: list[tuple[int, int, int]] = []
        self.coming = list(range(count))
        self.placed: list[int] = []
        self.executions: list[Execution] = []
        self.changed = self.early = self.broken = False
        self.corrections = 0
        for j in range(count):
            if sum(self.units_empty(j, n) for n in range(len(nodes))) < jobs[j].units:
                self.fate[j] = "rejected"

    # what is free

    def units_empty(self, j: int, n: int) -> int:
        node = self.nodes[n]
        if n not in self.allowed[self.jobs[j].where]:
            return 0
        return self.units_in(j, node.cores, node.memory, [1000] * node.gpus)

    def units_in(self, j: int, cores: int, memory: int, devices: list[int]) -> int:
        job = self.jobs[j]
        fit = 0
        idle = sum(free == 1000 for free in devices)
        if job.share and max(devices, default=0) < job.share:
            return 0
        while (
            fit < job.most
            and (fit + 1) * job.cores <= cores
            and (fit + 1) * job.memory <= memory
            and (fit + 1) * job.gpus <= idle
        ):
            fit += 1
            if job.cores == job.memory == job.gpus == 0:
                return job.most
        return fit

    def length(self, work: int) -> int:
        if self.policy.interval <= 0 or work <= 0:
            return work
        return work + self.policy.cost * ((work - 1) // self.policy.interval)

    def occupations(self, n: int) -> list[tuple[int, int, Part | None]]:
        """(begin, end, what) on a node; None closes it."""
        found: list[tuple[int, int, Part | None]] = []
        for j, parts in self.running.items():
            end = self.expected[j] if self.track else NEVER
            found += [(-1, end, part) for part in parts if part.node == n]
        for j, (begin, parts) in self.planned.items():
            end = begin + self.length(self.guess[j])
            found += [(begin, end, part) for part in parts if part.node == n]
        found += [(w.start, w.end, None) for w in self.windows if w.node == n]
        if n in self.down or n in self.drained:
            found.append((-1, NEVER * 2, None))
        return found

    def free_at(self, n: int, time: int) -> tuple[bool, int, int, list[int]]:
        node = self.nodes[n]
        cores, memory, devices, closed = node.cores, node.memory, [1000] * node.gpus, False
        for begin, end, part in self.occupations(n):
            if begin <= time < end:
                if part is None:
                    closed = True
                else:
                    cores -= part.cores
                    memory -= part.memory
                    for device, share in part.devices.items():
                        devices[device] -= share
        return closed, cores, memory, devices

    def idle(self, n: int) -> tuple[int, list[int]]:
        """Cores and GPUs that nobody has who runs."""
        parts = [part for parts in self.running.values() for part in parts if part.node == n]
        devices = [1000 - sum(p.devices.get(d, 0) for p in parts) for d in range(self.nodes[n].gpus)]
        return self.nodes[n].cores - sum(part.cores for part in parts), devices

    def least(self, n: int, start: int, end: int) -> tuple[bool, int, int, list[int]]:
        times = {start} | {t for o in self.occupations(n) for t in o[:2] if start < t < end}
        levels = [self.free_at(n, time) for time in sorted(times)]
        devices = [min(level[3][d] for level in levels) for d in range(self.nodes[n].gpus)]
        return (
            any(level[0] for level in levels),
            min(level[1] for level in levels),
            min(level[2] for level in levels),
            devices,
        )

    def units_at(self, j: int, n: int, start: int) -> int:
        job, node = self.jobs[j], self.nodes[n]
        if n not in self.allowed[job.where]:
            return 0
        closed, cores, memory, devices = self.least(n, start, start + self.length(self.guess[j]))
        if closed or (job.whole and (cores < node.cores or memory < node.memory)):
            return 0
        return self.units_in(j, cores, memory, devices)

    def fitting(self, j: int, start: int) -> dict[int, int]:
        units = {n: self.units_at(j, n, start) for n in range(len(self.nodes))}
        return {n: fit for n, fit in units.items() if fit > 0}

    def fits(self, j: int, start: int) -> bool:
        return sum(self.fitting(j, start).values()) >= self.jobs[j].units

    def earliest(self, j: int) -> int | None:
        times = {self.now}
        for n in range(len(self.nodes)):
            times |= {t for o in self.occupations(n) for t in o[:2] if self.now < t < NEVER}
        return next((time for time in sorted(times) if self.fits(j, time)), None)

    # placement

    def score(self, j: int, n: int) -> float:
        job, node = self.jobs[j], self.nodes[n]
        cores, devices = self.idle(n)
        most_cores = max(each.cores for each in self.nodes)
        most_share = 1000 * max(each.gpus for each in self.nodes)
        wanted = 1000 * job.gpus + job.share
        left = (cores - job.cores) / most_cores
        dot = (cores / most_cores) * (job.cores / most_cores)
        if most_share:
            left += (sum(devices) - wanted) / most_share
            dot += (sum(devices) / most_share) * (wanted / most_share)
        here = [k for k, parts in self.running.items() if any(part.node == n for part in parts)]
        kinds = {self.jobs[k].kind for k in here} - {-1}
        group = 3 if kinds else 2
        if job.kind in kinds:
            group = 0 if len(kinds) == 1 else 1
        wants = job.gpus > 0 or job.share > 0
        scores: dict[str, Callable[[], float]] = {
            "first_fit": lambda: n,
            "best_fit": lambda: -int(100 * (1 - left / 2)),
            "worst_fit": lambda: -left,
            "spread": lambda: -left,
            "weight": lambda: node.weight,
            "dot_product": lambda: -int(100 * (1 - dot / 2)),
            "packed": lambda: -self.packing(j, devices) if wants else 0,
            "clustered": lambda: (
                -(25 * (most_share - sum(devices)) // most_share + 25 * (3 - group)) if wants else 0
            ),
            "fragments": lambda: -int(100 / (1 + math.exp(self.growth(j, n, cores, devices)[0] / 1000))),
        }
        return scores[self.policy.placement]()

    def packing(self, j: int, devices: list[int]) -> int:
        job = self.jobs[j]
        if all(free == 1000 for free in devices):
            return max(33 - len(devices), len(devices))
        if job.gpus:
            return max(50 - job.gpus, 33)
        shared = [free for free in devices if job.share <= free < 1000]
        return max(100 - min(shared) // 10 // 10, 50) if shared else 49

    def fragments(self, n: int, cores: int, devices: list[int]) -> float:
        total = 0.0
        for kind in self.typical:
            hosts = sum(free >= kind.share for free in devices) >= kind.gpus
            if kind.gpus and hosts and cores >= kind.cores and n in self.allowed[kind.where]:
                total += kind.frequency * sum(free for free in devices if free < kind.share)
            else:
                total += kind.frequency * sum(devices)
        return total

    def growth(self, j: int, n: int, cores: int, devices: list[int]) -> tuple[float, int]:
        """By how much fragments grow with a unit, and the GPU that it shares."""
        job = self.jobs[j]
        before = self.fragments(n, cores, devices)
        if job.share:
            options = []
            for d, free in enumerate(devices):
                if free >= job.share:
                    left = [*devices[:d], free - job.share, *devices[d + 1 :]]
                    options.append((self.fragments(n, cores - job.cores, left), d))
            fewest, device = min(options, default=(self.fragments(n, cores - job.cores, devices), -1))
            return fewest - before, device
        left, wanted = list(devices), job.gpus
        for d, free in enumerate(devices):
            if wanted and free == 1000:
                left[d] = 0
                wanted -= 1
        return self.fragments(n, cores - job.cores, left) - before, -1

    def devices_for(self, j: int, n: int, units: int, start: int) -> dict[int, int]:
        job = self.jobs[j]
        _, _, _, devices = self.least(n, start, start + self.length(self.guess[j]))
        if job.share:
            free = [d for d, share in enumerate(devices) if share >= job.share]
            if self.policy.placement == "fragments":
                cores, present = self.idle(n)
                options = []
                for d in free:
                    left = [*present[:d], present[d] - job.share, *present[d + 1 :]]
                    options.append((self.fragments(n, cores - job.cores, left), d))
                return {min(options)[1]: job.share}
            return {min(free, key=lambda d: (devices[d], d)): job.share}
        idle = [d for d, share in enumerate(devices) if share == 1000]
        return dict.fromkeys(idle[: job.gpus * units], 1000)

    def choose(self, j: int, start: int) -> list[Part]:
        job, fitting = self.jobs[j], self.fitting(j, start)
        ranked = sorted(fitting, key=lambda n: (self.score(j, n), n))
        given = dict.fromkeys(ranked, 0)
        wanted = job.units
        while wanted:
            for n in ranked:
                more = min(fitting[n] - given[n], wanted)
                if self.policy.placement == "spread":
                    more = min(more, 1)
                given[n] += more
                wanted -= more
        parts = []
        for n, units in given.items():
            node = self.nodes[n]
            if units and job.whole:
                parts.append(Part(n, units, node.cores, node.memory, dict.fromkeys(range(node.gpus), 1000)))
            elif units:
                devices = self.devices_for(j, n, units, start)
                parts.append(Part(n, units, units * job.cores, units * job.memory, devices))
        return parts

    # jobs

    def within_limits(self, j: int) -> bool:
        size = self.jobs[j].units * self.jobs[j].cores
        for group in self.jobs[j].groups:
            limit = self.limits[group]
            others = [k for k in self.running if group in self.jobs[k].groups]
            cores = [self.jobs[k].units * self.jobs[k].cores for k in others]
            seconds = [c * self.length(self.given[k]) for c, k in zip(cores, others, strict=True)]
            if len(others) + 1 > limit.jobs or sum(cores) + size > limit.cores:
                return False
            if sum(seconds) + size * self.length(self.given[j]) > limit.seconds:
                return False
        return True

    def begin(self, j: int, parts: list[Part]) -> None:
        self.planned.pop(j, None)
        self.waiting.remove(j)
        if j in self.placed:
            self.placed.remove(j)
        self.running[j] = parts
        self.start[j] = self.now
        if self.first_start[j] < 0:
            self.first_start[j] = self.now
        self.end[j] = self.now + self.length(self.work[j])
        self.expected[j] = self.now + self.length(self.guess[j])
        if self.kills[j] == 0:
            for other, job in enumerate(self.jobs):
                for on, kind, delay in job.after:
                    if on == j and kind == "after":
                        self.meet(other, self.now + delay)

    def stop(self, j: int) -> None:
        for part in self.running.pop(j):
            devices = tuple(sorted(part.devices.items()))
            self.executions.append(
                Execution(j, part.node, part.units, part.cores, part.memory, devices, self.start[j], self.now)
            )
        self.early |= self.expected[j] > self.now or bool(self.jobs[j].groups)
        self.changed = True

    def meet(self, j: int, time: int) -> None:
        self.unmet[j] -= 1
        self.eligible[j] = max(self.eligible[j], time)
        if self.unmet[j] == 0 and self.fate[j] == "completed":
            self.timers.append((self.eligible[j], 0, j))

    def notify_end(self, first: int, ran: bool) -> None:
        todo = [first]
        while todo:
            j = todo.pop()
            ok = self.fate[j] == "completed" and not self.jobs[j].failed
            for other, job in enumerate(self.jobs):
                for on, kind, delay in job.after:
                    if on != j or self.fate[other] != "completed" or (kind == "after" and ran and j == first):
                        continue
                    never = (kind == "afterok" and not ok) or (kind == "afternotok" and ok)
                    if never or self.fate[j] == "never eligible":
                        self.fate[other] = "never eligible"
                        todo.append(other)
                    else:
                        self.meet(other, self.now + delay)

    def enter(self, j: int) -> None:
        if self.entry[j] < 0:
            self.entry[j] = self.entered
            self.entered += 1
        later = [k for k in self.waiting if self.entry[k] > self.entry[j]]
        if any(k in self.placed for k in later):
            self.placed.append(j)
            self.broken = True
        self.waiting = sorted([*self.waiting, j], key=lambda k: self.entry[k])
        self.changed = True

    def submit(self, j: int) -> None:
        if self.fate[j] == "never eligible":
            return
        if self.fate[j] == "rejected":
            self.notify_end(j, False)
            return
        if self.jobs[j].gives_up < NEVER:
            self.timers.append((max(self.now, self.jobs[j].gives_up), 1, j))
        self.unmet[j] -= 1
        self.eligible[j] = max(self.eligible[j], self.now)
        if self.unmet[j] == 0:
            self.let_enter(j)

    def let_enter(self, j: int) -> None:
        if self.eligible[j] > self.now:
            self.timers.append((self.eligible[j], 0, j))
        else:
            self.predict(j)
            self.enter(j)

    def predict(self, j: int) -> None:
        """Say how long a job is taken to run that enters the queue first."""
        job, known = self.jobs[j], self.ran.get(self.jobs[j].user, [])
        if self.policy.prediction == "double":
            self.guess[j] = 2 * job.estimate
        elif self.policy.prediction == "actual":
            self.guess[j] = max(1, job.run)
        elif self.policy.prediction == "recent" and job.user >= 0 and len(known) > 1:
            self.guess[j] = max(1, min((known[-1] + known[-2]) // 2, job.estimate))
        self.predicted[j] = self.guess[j]

    def learn(self, j: int) -> None:
        """Remember how long a job ran from its last checkpoint on."""
        self.ran.setdefault(self.jobs[j].user, []).append(self.work[j])

    def give_up(self, j: int) -> None:
        started = j in self.running or self.end[j] >= 0 or self.kills[j]
        if started or self.fate[j] != "completed":
            return
        if j in self.waiting:
            self.waiting.remove(j)
            if j in self.placed:
                self.placed.remove(j)
            if self.planned.pop(j, None):
                self.early = True
            self.changed = True
        self.fate[j] = "gave up"
        self.end[j] = self.now
        self.notify_end(j, False)

    def kill(self, j: int) -> None:
        elapsed = self.now - self.start[j]
        self.stop(j)
        self.kills[j] += 1
        interval, cost = self.policy.interval, self.policy.cost
        saved = interval * (elapsed // (interval + cost)) if interval else 0
        self.work[j] -= saved
        self.guess[j] = max(1, self.guess[j] - saved)
        self.given[j] = max(1, self.given[j] - saved)
        self.extra[j] += elapsed - saved
        if self.policy.requeue == "lost":
            self.fate[j] = "lost"
            self.end[j] = self.now
            self.notify_end(j, True)
            return
        if self.policy.requeue == "end":
            self.entry[j] = -1
        self.enter(j)

    def process_event(self, event: Event) -> None:
        n = event.node
        if event.kind in ("down", "close"):
            if event.kind == "down":
                self.down.add(n)
            for j in sorted(j for j, parts in self.running.items() if any(p.node == n for p in parts)):
                self.kill(j)
        elif event.kind == "up":
            self.down.discard(n)
        elif event.kind == "drain":
            self.drained.add(n)
        elif event.kind == "resume":
            self.drained.discard(n)
        elif event.kind == "announce":
            self.windows.append(event)
        else:
            self.windows = [
                w for w in self.windows if (w.node, w.start, w.end) != (n, event.start, event.end)
            ]
        self.broken = self.changed = True

    # passes

    def queue(self, jobs: list[int]) -> list[int]:
        return self.ordered(self.policy.order, jobs)

    def ordered(self, order: str, jobs: list[int]) -> list[int]:
        def rank(j: int) -> float:
            job = self.jobs[j]
            size, estimate = job.units * job.cores, self.length(self.guess[j])
            wait = self.now - job.submit
            # orders that do not change are those at submission
            ranks: dict[str, float] = {
                "fcfs": self.entry[j],
                "shortest": self.length(self.predicted[j]),
                "smallest": size,
                "lxf": -(wait + estimate) / estimate,
            }
            return ranks[order]

        return sorted(jobs, key=lambda j: (rank(j), self.entry[j]))

    def try_now(self, j: int) -> bool:
        if not self.fits(j, self.now):
            return False
        self.begin(j, self.choose(j, self.now))
        return True

    def shares_nodes(self, j: int, k: int) -> bool:
        return bool(self.allowed[self.jobs[j].where] & self.allowed[self.jobs[k].where])

    def queue_pass(self) -> None:
        later: list[int] = []
        held: list[int] = []
        for j in self.queue(self.waiting):
            if sum(self.shares_nodes(j, k) for k in held) >= self.policy.reservations:
                later.append(j)
            elif self.within_limits(j) and not self.try_now(j):
                held.append(j)
                if self.policy.backfilling == "easy":
                    time = self.earliest(j)
                    if time is not None:
                        self.planned[j] = (time, self.choose(j, time))
        if self.policy.backfilling != "none":
            order = self.policy.backfill_order
            for j in later if order == "queue" else self.ordered(order, later):
                if self.within_limits(j):
                    self.try_now(j)
        self.planned = {}

    def plan(self, j: int) -> None:
        time = self.earliest(j)
        if time is not None:
            self.planned[j] = (time, self.choose(j, time))

    def conservative_pass(self) -> None:
        if self.broken or self.early:
            if self.broken:
                self.planned = {}
            for j in self.queue(self.placed):
                if j in self.planned:
                    old = self.planned.pop(j)
                    time = self.earliest(j)
                    assert time is not None
                    assert time <= old[0]
                    self.planned[j] = old if time == old[0] else (time, self.choose(j, time))
                elif self.within_limits(j):
                    self.plan(j)
        for j in [j for j in self.waiting if j not in self.placed]:
            if self.within_limits(j):
                self.plan(j)
            self.placed.append(j)
        self.broken = self.early = False
        for j in list(self.waiting):
            if j in self.planned and self.planned[j][0] <= self.now:
                if self.within_limits(j):
                    self.begin(j, self.planned[j][1])
                else:
                    self.planned.pop(j)
                    self.early = True

    def correct(self, j: int) -> None:
        length = self.length(self.guess[j])
        if self.policy.prediction == "recent":
            length = self.corrected(length, self.now - self.start[j], self.length(self.given[j]))
        doubling = self.policy.overrun == "doubling"
        if self.policy.prediction == "recent" and self.policy.correction == "doubling":
            doubling = True
        if doubling:
            while self.start[j] + length <= self.now:
                length *= 2
        else:
            steps = iter(INCREMENTS)
            step = INCREMENTS[-1]
            while self.start[j] + length <= self.now:
                step = next(steps, step)
                length += step
        self.expected[j] = self.start[j] + length
        self.broken = True
        if self.policy.backfilling in ("easy", "conservative"):
            self.changed = True
        self.corrections += 1

    def corrected(self, length: int, elapsed: int, limit: int) -> int:
        """A prediction that was outrun, corrected up to the estimate."""
        if elapsed < length or self.policy.correction == "doubling":
            return length
        if self.policy.correction == "increments":
            for increment in INCREMENTS:
                if min(length + increment, limit) > elapsed:
                    return min(length + increment, limit)
        return limit

    # instants

    def next_instant(self) -> int:
        times = [self.end[j] for j in self.running] + [time for time, _, _ in self.timers]
        if self.track:
            times += [self.expected[j] for j in self.running]
        times += [event.time for event in self.pending_events]
        times += [self.jobs[j].submit for j in self.coming[:1]]
        if self.policy.backfilling == "conservative":
            times += [time for time, _ in self.planned.values()]
        return min(times, default=NEVER)

    def is_done(self) -> bool:
        return not (self.coming or self.timers or self.waiting or self.running)

    def due_timers(self, kinds: tuple[int, ...]) -> bool:
        due = sorted(t for t in self.timers if t[0] == self.now and t[1] in kinds)
        if due:
            self.timers.remove(due[0])
            _, kind, j = due[0]
            if kind == 1:
                self.give_up(j)
            elif self.fate[j] == "completed":
                self.let_enter(j)
        return bool(due)

    def instant(self) -> None:
        for j in sorted(j for j in self.running if self.end[j] == self.now):
            self.extra[j] += self.length(self.work[j]) - self.work[j]
            self.learn(j)
            self.stop(j)
            self.notify_end(j, True)
        if self.track:
            for j in sorted(j for j in self.running if self.expected[j] == self.now):
                self.correct(j)
        while self.pending_events and self.pending_events[0].time == self.now:
            self.process_event(self.pending_events.pop(0))
        while self.due_timers((0,)):
            pass
        while self.coming and self.jobs[self.coming[0]].submit == self.now:
            self.submit(self.coming.pop(0))
        while self.due_timers((0, 1)):
            pass
        self.changed |= any(time <= self.now for time, _ in self.planned.values())
        if self.changed:
            if self.policy.backfilling == "conservative":
                self.conservative_pass()
            else:
                self.queue_pass()
        self.changed = False

    def simulate(self) -> Cluster:
        """Run all jobs; the results stand in `first_start`, `end`, `fate`, `executions`."""
        while (time := self.next_instant()) < NEVER and not self.is_done():
            self.now = time
            self.instant()
        for j in self.waiting:
            self.fate[j] = "starved"
        return self


def _spread(events: list[Event]) -> list[Event]:
    """Windows as what happens: announced, closed, opened; all by time."""
    found = []
    for event in events:
        if event.kind == "window":
            found.append(event._replace(kind="announce"))
            found.append(event._replace(kind="close", time=event.start))
            found.append(event._replace(kind="open", time=event.end))
        else:
            found.append(event)
    return sorted(found, key=lambda event: event.time)
