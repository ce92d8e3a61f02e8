"""A slow, plain simulator of a cluster of nodes with several resources: the oracle of local schedulers.

What is free is added up anew for every question, from who runs and who is planned; the earliest place for a
job is found by trying every time at which something changes. It shares no code with the engine. A cluster
whose processors are counted is one node; see `tests.oracles.local`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from tests.oracles.orders import INCREMENTS, Score, corrected, lengthened, rank, saved
from tests.oracles.users import NEVER, Users


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


class Policy(NamedTuple):
    """How jobs are scheduled."""

    order: str | Score = "fcfs"
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
    passes: str = "instant"


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


Occupations = list[list[tuple[int, int, Part | None]]]
"""(begin, end, what) on each node; None closes it."""


class Cluster:
    """A cluster that is driven from outside, with the present time in `now`; its jobs are known beforehand.

    With `passes` other than `instant`, which is for counted processors, there is one pass an event; with
    `arrivals-first` jobs may have left their processors before their end is handled.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        policy: Policy,
        *,
        allowed: list[set[int]] | None = None,
        either: dict[int, list[set[int]]] | None = None,
        numbered: dict[int, list[tuple[set[int], int]]] | None = None,
        events: Sequence[Event] = (),
        limits: Sequence[Limit] = (),
        typical: Sequence[Typical] = (),
    ) -> None:
        self.nodes, self.jobs, self.policy = list(nodes), list(jobs), policy
        self.allowed = allowed or [set(range(len(nodes)))]
        self.either = either or {}  # of which a job has one
        self.numbered = numbered or {}  # so many units on these nodes; the others anywhere
        self.limits, self.typical = limits, typical
        self.now = 0
        self.pending_events = _spread(events)
        # whether the engine looks at expected ends
        self.track = policy.backfilling in ("easy", "conservative") or bool(events)
        self.track |= policy.placement == "clustered"
        self.arrivals_first = policy.passes == "arrivals-first"
        self.down: set[int] = set()
        self.drained: set[int] = set()
        self.windows: list[Event] = []
        self.work = [job.run for job in jobs]
        self.guess = [job.estimate for job in jobs]
        self.given = [job.estimate for job in jobs]
        self.predicted = [job.estimate for job in jobs]
        self.ran: dict[int, list[int]] = {}
        self.number: dict[int, int] = {}  # in order of first entry
        self.entry: dict[int, int] = {}
        self.entered = 0
        self.behind: set[int] = set()  # jobs that let all others go before them
        self.waiting: list[int] = []
        self.running: dict[int, list[Part]] = {}
        self.left: set[int] = set()
        self.planned: dict[int, tuple[int, list[Part]]] = {}
        self.turn: dict[int, tuple[int, int]] = {}  # for when and as which one a start was planned
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.first_start = [-1] * len(jobs)
        self.expected: dict[int, int] = {}
        self.kills = [0] * len(jobs)
        self.extra = [0] * len(jobs)
        self.placed: list[int] = []
        self.executions: list[Execution] = []
        self.changed = self.early = self.broken = False
        self.corrections = 0

    def as_expected(self) -> Self:
        """A copy in which all estimates are right, and nothing happens but what is announced."""
        ahead = copy(self)
        state = {name: value.copy() for name, value in vars(self).items() if isinstance(value, list | dict)}
        vars(ahead).update(state)
        ahead.end |= {j: self.expected[j] for j in self.running}
        known = [(window.node, window.start, window.end) for window in self.windows]
        ahead.pending_events = [
            event
            for event in self.pending_events
            if event.kind in ("close", "open") and (event.node, event.start, event.end) in known
        ]
        ahead.work = list(self.guess)
        return ahead

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
        return lengthened(work, self.policy.interval, self.policy.cost)

    def occupations(self, n: int) -> list[tuple[int, int, Part | None]]:
        """(begin, end, what) on a node; None closes it."""
        found: list[tuple[int, int, Part | None]] = []
        for j, parts in self.running.items():
            if j not in self.left:
                found += [(-1, self.expected[j], part) for part in parts if part.node == n]
        for j, (begin, parts) in self.planned.items():
            end = begin + self.length(self.guess[j])
            found += [(begin, end, part) for part in parts if part.node == n]
        found += [(w.start, w.end, None) for w in self.windows if w.node == n]
        if n in self.down or n in self.drained:
            found.append((-1, NEVER * 2, None))
        return found

    def least(
        self, n: int, start: int, end: int, known: Occupations | None = None
    ) -> tuple[bool, int, int, list[int]]:
        """Whether a node is closed for some of the time; cores, memory, GPUs that are free all the time."""
        node = self.nodes[n]
        there = known[n] if known else self.occupations(n)
        there = [each for each in there if each[0] < end and each[1] > start]
        closed, cores, memory, devices = False, node.cores, node.memory, [1000] * node.gpus
        # there is less only from where something begins
        for time in {max(begin, start) for begin, _, _ in there}:
            present = [what for begin, until, what in there if begin <= time < until]
            parts = [part for part in present if part is not None]
            closed |= len(parts) < len(present)
            cores = min(cores, node.cores - sum(part.cores for part in parts))
            memory = min(memory, node.memory - sum(part.memory for part in parts))
            for d in range(node.gpus):
                devices[d] = min(devices[d], 1000 - sum(part.devices.get(d, 0) for part in parts))
        return closed, cores, memory, devices

    def idle(self, n: int) -> tuple[int, list[int]]:
        """Cores and GPUs that nobody has who runs."""
        running = [parts for j, parts in self.running.items() if j not in self.left]
        there = [part for parts in running for part in parts if part.node == n]
        devices = [1000 - sum(p.devices.get(d, 0) for p in there) for d in range(self.nodes[n].gpus)]
        return self.nodes[n].cores - sum(part.cores for part in there), devices

    def free(self) -> int:
        """Cores that nobody has who runs."""
        return sum(self.idle(n)[0] for n in range(len(self.nodes)))

    def size(self, j: int) -> int:
        """Cores that a job asks for."""
        return self.jobs[j].units * self.jobs[j].cores

    def units_at(self, j: int, n: int, start: int, known: Occupations | None) -> int:
        job, node = self.jobs[j], self.nodes[n]
        if n not in self.allowed[job.where]:
            return 0
        closed, cores, memory, devices = self.least(n, start, start + self.length(self.guess[j]), known)
        if closed or (job.whole and (cores < node.cores or memory < node.memory)):
            return 0
        return self.units_in(j, cores, memory, devices)

    def fitting(self, j: int, start: int, known: Occupations | None = None) -> dict[int, int]:
        return self.chosen(j, {n: self.units_at(j, n, start, known) for n in range(len(self.nodes))})

    def chosen(self, j: int, units: dict[int, int]) -> dict[int, int]:
        """Units on the nodes of the first choice with enough of them; none if there is none."""
        where = self.jobs[j].where
        for nodes in self.either.get(where, [self.allowed[where]]):
            there = {n: fit for n, fit in units.items() if n in nodes and fit > 0}
            if sum(there.values()) >= self.jobs[j].units and self.seated(j, there) == self.jobs[j].units:
                return there
        return {}

    def seated(self, j: int, units: dict[int, int]) -> int:
        """How many units on these nodes find places that the job has there: by trying to move who sits."""
        where = self.jobs[j].where
        if where not in self.numbered:
            return self.jobs[j].units
        named = [nodes for nodes, number in self.numbered[where] for _ in range(number)]
        if len(named) > self.jobs[j].units:
            return 0
        places = named + [self.allowed[where]] * (self.jobs[j].units - len(named))
        sits: dict[int, int] = {}

        def seat(node: int, tried: set[int]) -> bool:
            for place, nodes in enumerate(places):
                if node in nodes and place not in tried:
                    tried.add(place)
                    if place not in sits or seat(sits[place], tried):
                        sits[place] = node
                        return True
            return False

        return sum(seat(node, set()) for node, number in units.items() for _ in range(number))

    def fits(self, j: int, start: int, known: Occupations | None = None) -> bool:
        return bool(self.fitting(j, start, known))

    def earliest(self, j: int) -> int | None:
        """The earliest time from now on at which a job fits: now, or where something ends."""
        known = [self.occupations(n) for n in range(len(self.nodes))]
        ends = {end for there in known for _, end, _ in there}
        times = sorted({self.now} | {end for end in ends if self.now < end < NEVER})
        return next((time for time in times if self.fits(j, time, known)), None)

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
                while job.where in self.numbered and more:
                    with_them = {**given, n: given[n] + more}
                    if self.seated(j, with_them) == sum(with_them.values()):
                        break
                    more -= 1
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
        """Whether the groups of a job allow it beside those who run."""

        def seconds(k: int) -> int:
            return self.size(k) * self.length(self.given[k])

        for group in self.jobs[j].groups:
            limit = self.limits[group]
            together = [j, *(k for k in self.running if group in self.jobs[k].groups)]
            if len(together) > limit.jobs or sum(map(self.size, together)) > limit.cores:
                return False
            if sum(map(seconds, together)) > limit.seconds:
                return False
        return True

    def holds(self, j: int) -> bool:
        """Whether the empty nodes have room for a job."""
        return bool(self.chosen(j, {n: self.units_empty(j, n) for n in range(len(self.nodes))}))

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

    def enter(self, j: int) -> None:
        """Put a job into the queue; killed jobs may keep their place."""
        self.number.setdefault(j, len(self.number))
        if j not in self.entry:
            self.entry[j] = self.entered
            self.entered += 1
        if any(k in self.placed for k in self.waiting if self.entry[k] > self.entry[j]):
            self.placed.append(j)
            self.broken = True
        self.waiting.append(j)
        self.waiting.sort(key=self.entry.__getitem__)
        self.changed = True

    def forget(self, j: int) -> None:
        """Let a job wait no longer."""
        self.waiting.remove(j)
        if j in self.placed:
            self.placed.remove(j)
        self.early |= self.planned.pop(j, None) is not None
        self.changed = True

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

    def stop(self, j: int) -> None:
        for part in self.running.pop(j):
            devices = tuple(sorted(part.devices.items()))
            self.executions.append(
                Execution(j, part.node, part.units, part.cores, part.memory, devices, self.start[j], self.now)
            )
        self.left.discard(j)
        self.early |= self.expected[j] > self.now or bool(self.jobs[j].groups) or self.arrivals_first
        self.changed = True

    def complete(self, j: int) -> None:
        self.extra[j] += self.length(self.work[j]) - self.work[j]
        # from the last checkpoint on
        self.ran[self.jobs[j].user] = [*self.ran.get(self.jobs[j].user, []), self.work[j]]
        self.stop(j)

    def ending(self) -> list[int]:
        """Jobs that end now, in job order or in that in which they were started."""
        ended = [j for j in self.running if self.end[j] == self.now]
        return ended if self.arrivals_first else sorted(ended, key=self.number.__getitem__)

    def finish(self) -> list[int]:
        """Ends of this instant."""
        ended = self.ending()
        for j in ended:
            self.complete(j)
        return ended

    def kill(self, j: int) -> bool:
        """Let a job be killed; whether it is lost."""
        elapsed = self.now - self.start[j]
        self.stop(j)
        self.kills[j] += 1
        kept = saved(elapsed, self.policy.interval, self.policy.cost)
        self.work[j] -= kept
        self.guess[j] = max(1, self.guess[j] - kept)
        self.given[j] = max(1, self.given[j] - kept)
        self.extra[j] += elapsed - kept
        if self.policy.requeue == "lost":
            return True
        if self.policy.requeue == "end":
            del self.entry[j]
        self.enter(j)
        return False

    def change_nodes(self) -> list[int]:
        """What happens to nodes now; the jobs that are lost."""
        lost = []
        while self.pending_events and self.pending_events[0].time == self.now:
            event = self.pending_events.pop(0)
            n = event.node
            if event.kind in ("down", "close"):
                there = [j for j, parts in self.running.items() if any(p.node == n for p in parts)]
                lost += [j for j in sorted(there, key=self.number.__getitem__) if self.kill(j)]
            if event.kind == "down":
                self.down.add(n)
            elif event.kind == "up":
                self.down.discard(n)
            elif event.kind == "drain":
                self.drained.add(n)
            elif event.kind == "resume":
                self.drained.discard(n)
            elif event.kind == "announce":
                self.windows.append(event)
            elif event.kind == "open":
                over = (n, event.start, event.end)
                self.windows = [w for w in self.windows if (w.node, w.start, w.end) != over]
            self.broken = self.changed = True
        return lost

    # passes

    def queue(self) -> list[int]:
        return self.ordered(self.policy.order, self.waiting)

    def ordered(self, order: str | Score, jobs: list[int]) -> list[int]:
        """Jobs in an order; ties by their entry."""

        def key(j: int) -> tuple[bool, float, int]:
            # orders that do not change are those at submission
            estimate = self.length(self.predicted[j] if order == "shortest" else self.guess[j])
            by = 0 if order == "fcfs" else rank(order, self.now, self.jobs[j].submit, estimate, self.size(j))
            return j in self.behind, by, self.entry[j]

        return sorted(jobs, key=key)

    def fits_now(self, j: int) -> bool:
        """Whether a job has a place now; it may be that of one that still has to end in this instant."""
        return self.fits(j, self.now) and (self.policy.passes == "instant" or self.size(j) <= self.free())

    def try_now(self, j: int) -> bool:
        is_able = self.fits_now(j)
        if is_able:
            self.begin(j, self.choose(j, self.now))
        return is_able

    def shares_nodes(self, j: int, k: int) -> bool:
        return bool(self.allowed[self.jobs[j].where] & self.allowed[self.jobs[k].where])

    def schedule(self) -> None:
        """A scheduling pass."""
        (self.conservative_pass if self.policy.backfilling == "conservative" else self.queue_pass)()
        self.changed = False

    def one_pass(self) -> list[int]:
        """A scheduling pass if something changed; who started."""
        before = list(self.waiting)
        if self.changed or any(time <= self.now for time, _ in self.planned.values()):
            self.schedule()
        return [j for j in before if j not in self.waiting]

    def queue_pass(self) -> None:
        later: list[int] = []
        held: list[int] = []
        for j in self.queue():
            if sum(self.shares_nodes(j, k) for k in held) >= self.policy.reservations:
                later.append(j)
            elif self.within_limits(j) and not self.try_now(j):
                held.append(j)
                if self.policy.backfilling == "easy":
                    self.plan(j)
        if self.policy.backfilling != "none":
            order = self.policy.backfill_order
            for j in later if order == "queue" else self.ordered(order, later):
                if self.within_limits(j):
                    self.try_now(j)
        self.planned = {}

    def plan(self, j: int) -> None:
        """Give a job its earliest place, if there is one; it keeps an old one at the same time."""
        old = self.planned.pop(j, None)
        time = self.earliest(j)
        if old is not None:
            assert time is not None
            assert time <= old[0]
        if time is not None:
            self.planned[j] = old if old and time == old[0] else (time, self.choose(j, time))
            if j not in self.turn or self.turn[j][0] != time:
                self.turn[j] = time, 1 + max((turn for _, turn in self.turn.values()), default=0)

    def conservative_pass(self) -> None:
        if self.broken:
            self.planned = {}
        again = self.ordered(self.policy.order, self.placed) if self.broken or self.early else []
        new = [j for j in self.waiting if j not in self.placed]
        for j in again + new:
            if j in self.planned or self.within_limits(j):
                self.plan(j)
        self.placed += new
        self.broken = self.early = False
        due = [j for j in self.waiting if j in self.planned and self.planned[j][0] <= self.now]
        for j in sorted(due, key=lambda j: self.turn[j][1]) if self.arrivals_first else due:
            if not self.within_limits(j):
                self.planned.pop(j)
                self.early = True
            elif self.policy.passes == "instant" or self.size(j) <= self.free():
                self.begin(j, self.planned[j][1])

    def outrun(self) -> list[int]:
        """Jobs that run on although they are expected to have ended."""
        return sorted(j for j in self.running if self.expected[j] <= self.now and self.end[j] > self.now)

    def correct(self, j: int) -> None:
        elapsed, length, overrun = self.now - self.start[j], self.length(self.guess[j]), self.policy.overrun
        if self.policy.prediction == "recent":
            length = self.corrected(length, elapsed, self.length(self.given[j]))
            overrun = "doubling" if self.policy.correction == "doubling" else overrun
        self.expected[j] = self.start[j] + corrected(length, elapsed, overrun)
        self.broken = True
        self.changed |= self.policy.backfilling in ("easy", "conservative")
        self.corrections += self.track

    def corrected(self, length: int, elapsed: int, limit: int) -> int:
        """A prediction that was outrun, corrected up to the estimate."""
        if elapsed < length or self.policy.correction == "doubling":
            return length
        steps = INCREMENTS if self.policy.correction == "increments" else ()
        later = [min(length + step, limit) for step in steps]
        return next((each for each in later if each > elapsed), limit)

    # instants

    def times(self) -> list[int]:
        """When something is known to happen."""
        times = [self.end[j] for j in self.running]
        times += [self.expected[j] for j in self.running if self.expected[j] > self.now]
        times += [event.time for event in self.pending_events]
        return times + [time for time, _ in self.planned.values()]

    # what may be asked

    def predicted_start(self, j: int) -> float:
        """When a job that entered now would start as far as is known; infinite if never as things are."""
        ahead = self.as_expected()
        ahead.predict(j)
        ahead.enter(j)
        while True:
            ahead.work = list(ahead.guess)
            ahead.changed = True
            ahead.one_pass()
            if j not in ahead.waiting:
                return ahead.now
            times = ahead.times()
            if not times:
                return math.inf
            ahead.now = min(times)
            ahead.finish()
            ahead.change_nodes()

    def planned_start(self, j: int) -> float:
        """Earliest place that a plan of all who wait leaves."""
        ahead = self.as_expected()
        ahead.predict(j)
        if not ahead.waiting and ahead.within_limits(j) and ahead.fits_now(j):
            return self.now
        ahead.planned = self.plan_of_queue()
        time = ahead.earliest(j)
        return math.inf if time is None else time

    def plan_of_queue(self) -> dict[int, tuple[int, list[Part]]]:
        """A place for each who waits, in the order of the queue."""
        ahead = self.as_expected()
        ahead.planned = {}
        for j in ahead.queue():
            ahead.plan(j)
        return ahead.planned

    def capacity(self) -> int:
        """Cores of open nodes, and those that jobs hold on others."""
        total = 0
        for n, node in enumerate(self.nodes):
            is_closed = self.least(n, self.now, self.now + 1)[0]
            total += node.cores - self.idle(n)[0] if is_closed else node.cores
        return total


class Simulation(Cluster):
    """A cluster with its users: the simulation itself."""

    def __init__(self, nodes: Sequence[Node], jobs: Sequence[Job], policy: Policy, **more: Any) -> None:
        super().__init__(nodes, jobs, policy, **more)
        self.number = {j: j for j in range(len(jobs))}
        self.users = Users(jobs, [j for j in range(len(jobs)) if not self.holds(j)])

    @property
    def fate(self) -> list[str]:
        return [self.users.fate.get(j, "starved") for j in range(len(self.jobs))]

    def simulate(self) -> Self:
        """Run all jobs; the results stand in `first_start`, `fate`, `executions`."""
        while (times := self.users.times()) or self.waiting or self.running:
            times += self.times()
            if not times:
                break
            self.now = min(times)
            self.instant()
        return self

    def instant(self) -> None:
        for j in self.finish():
            self.users.leave(j, self.now, "completed")
        for j in self.outrun():
            self.correct(j)
        for j in self.change_nodes():
            self.users.leave(j, self.now, "lost")
        self.look()
        for j in self.one_pass():
            self.users.start(j, self.now)

    def look(self) -> None:
        """Let users submit jobs and give up."""
        entering, leaving = self.users.look(self.now)
        for j in leaving:
            if j in self.waiting:
                self.forget(j)
        for j in entering:
            self.predict(j)
            self.enter(j)


def _spread(events: Sequence[Event]) -> list[Event]:
    """Windows as what happens: announced, closed, opened; all by time, then by node."""
    found = []
    for event in events:
        if event.kind == "window":
            found.append(event._replace(kind="announce"))
            found.append(event._replace(kind="close", time=event.start))
            found.append(event._replace(kind="open", time=event.end))
        else:
            found.append(event)
    return sorted(found, key=lambda event: (event.time, event.node))
