"""A slow, plain simulator of imprecise calendars under a tree of managers: the oracle of the engine.

The calendar of a cluster is a grid of fundamental slots x nodes: each cell holds a job or nothing, and a job
that takes a coarse slot fills its nodes in all fundamental slots of it. Slots are a list.
The clock visits every second. Nothing is skipped: after every split all managers try to move all their jobs,
each of which is taken out of the grid and put back. Where nodes fail, it is known of each processor who runs
there and whether it is out, and what is free in a slot is counted processor by processor. The rules are those
of `gridsched.systems.calendars.scheduler`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gridsched.platform import Cluster
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager
from gridsched.systems.job_outcomes import outages_of
from tests.oracles.orders import lengthened, saved, worked
from tests.oracles.users import NEVER, Submission, Users

FOREVER = 10**15
NONE = -1


class Job(NamedTuple):
    """A job; times in seconds at `speed`, `home` the index of a cluster, `reserved` a start or -1."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int
    home: int = 0
    reserved: int = NONE
    gives_up: int = NEVER
    failed: bool = False
    needs: tuple[tuple[int, str, int], ...] = ()  # (job, kind, delay)
    speed: float = 1.0


def at_speed(speed: float, seconds: int, given: float) -> int:
    """Whole seconds at a speed, of seconds at another."""
    return seconds if speed == given else math.ceil(seconds * given / speed)


def submissions_of(jobs: Sequence[Job]) -> list[Submission]:
    """What of the jobs is for their users to decide."""
    return [Submission(job.submit_time, job.gives_up, job.failed, job.needs) for job in jobs]


class Closing(NamedTuple):
    """Processors of a cluster that are out; FOREVER if they never come back."""

    cluster: int
    processors: frozenset[int]
    start: int
    until: int
    announced: int
    drained: bool
    window: bool


class Slot(NamedTuple):
    """A slot of the calendars, in units of the fundamental slot from the origin."""

    begin: int
    end: int
    level: int


class Place(NamedTuple):
    """Nodes that a job asks for on each of some clusters, from a start [s] for a duration [s]."""

    holder: Node
    start: int
    duration: int
    parts: dict[int, int]


@dataclass(eq=False)
class Node:
    """A manager."""

    parent: Node | None
    rules: Manager | None
    number: int
    children: list[Node] = field(default_factory=list)
    clusters: list[int] = field(default_factory=list)
    processors: int = 0
    speed: float = math.inf
    shadow: dict[int, Counter[int]] | None = None  # cluster -> fundamental slot -> nodes in use
    freed: bool = False

    def rule(self, name: str) -> int | None:
        value: int | None = getattr(self.rules, name, None)
        return value

    def above(self) -> Iterator[Node]:
        node: Node | None = self
        while node:
            yield node
            node = node.parent


class Outcome(NamedTuple):
    """What became of the jobs."""

    start: list[int]
    end: list[int]
    planned: list[int]
    earliest: list[int]
    segments: list[tuple[int, int, int, int, int, int]]  # job, cluster, nodes, start, end, nodes asked for
    counts: dict[str, int]
    fate: list[str]
    killed: list[int]
    useful: list[int]  # seconds that were neither lost nor spent on checkpoints
    broken: list[bool]


class Simulation:
    """A tree of managers, second by second."""

    def __init__(
        self,
        jobs: list[Job],
        root: Manager | Cluster,
        options: Calendars,
        *,
        rank: Callable[[int, int], int] = lambda job, which: 0,
        refusals: Sequence[bool] = (),
    ) -> None:
        self.jobs = jobs
        self.first = min((job.submit_time for job in jobs), default=0)
        self.options = options
        self.levels = options.slots.levels
        self.unit = self.levels[0][1]
        self.origin = self.first // self.unit * self.unit
        self.rank = rank
        self.refusals = refusals
        self.reserve_requests = 0
        self.machines: list[Cluster] = []
        self.nodes: list[Node] = []
        self.leaves: list[Node] = []
        self.root = self.build(root, None)
        # job -> cells, by cluster and fundamental slot
        self.grid: list[dict[int, list[int | None]]] = [{} for _ in self.machines]
        self.slots: list[Slot] = []
        for level, (count, duration) in enumerate(self.levels[:-1]):
            for _ in range(count or 0):
                begin = self.slots[-1].end if self.slots else 0
                self.slots.append(Slot(begin, begin + duration // self.unit, level))
        self.horizon = self.slots[-1].end if self.slots else 0
        self.counts: Counter[str] = Counter(slots_max=len(self.slots))
        self.place: dict[int, Place] = {}
        self.owner: dict[int, Node] = {}
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.fixed: set[int] = set()
        self.left = {j: (job.run_time, job.speed) for j, job in enumerate(jobs)}
        self.route: dict[int, str] = {}
        count = len(jobs)
        self.outcome = Outcome(
            start=[NONE] * count,
            end=[NONE] * count,
            planned=[NONE] * count,
            earliest=[NONE] * count,
            segments=[],
            counts=self.counts,
            fate=[],
            killed=[0] * count,
            useful=[0] * count,
            broken=[False] * count,
        )
        self.estimate = [job.estimate for job in jobs]
        self.turn: dict[int, int] = {}
        self.turns = 0
        self.users = Users(
            submissions_of(jobs),
            [j for j, job in enumerate(jobs) if job.processors > self.root.processors],
        )
        self.closings = self.all_closings()
        self.out: list[list[Closing]] = [[] for _ in self.machines]  # known, of cluster
        self.windows: list[list[Closing]] = [[] for _ in self.machines]
        self.has: dict[int, dict[int, set[int]]] = {}  # running job -> cluster -> processors
        self.again: dict[int, str] = {}
        self.trade = [0] * len(self.machines)
        self.now = self.origin

    def build(self, item: Manager | Cluster, parent: Node | None) -> Node:
        rules = item if isinstance(item, Manager) else None
        node = Node(parent, rules, len(self.nodes))
        self.nodes.append(node)
        if isinstance(item, Manager) and len(item.children) == 1 and isinstance(item.children[0], Cluster):
            item = item.children[0]
        if isinstance(item, Cluster):
            for each in node.above():
                each.clusters.append(len(self.machines))
                each.processors += item.processors
                each.speed = min(each.speed, item.speed)
            self.machines.append(item)
            self.leaves.append(node)
        else:
            node.children = [self.build(child, node) for child in item.children]
            if node.rule("period"):
                node.shadow = {k: Counter() for k in node.clusters}
        return node

    def all_closings(self) -> list[Closing]:
        maintained = {
            (k, event.start, event.end, event.time)
            for k, machine in enumerate(self.machines)
            for event in machine.events
            if event.kind == "maintenance"
        }
        found = []
        for k, low, high, start, until, announced, drained in outages_of(self.machines).tolist():
            if until > self.first:
                window = (k, start, until, announced) in maintained
                times = max(start, self.first), min(until, FOREVER), max(announced, self.first)
                found.append(Closing(k, frozenset(range(low, high)), *times, bool(drained), window))
        return found

    # Processors

    def away(self, k: int) -> set[int]:
        """Processors that are down or drained now."""
        return {p for closing in self.out[k] for p in closing.processors}

    def closed(self, k: int, slot: Slot) -> set[int]:
        """Processors that are out in a slot, as far as is known."""
        begin, end = self.seconds(slot.begin), self.seconds(slot.end)
        windows = [w for w in self.windows[k] if w.start < end and w.until > begin]
        return self.away(k) | {p for window in windows for p in window.processors}

    def nodes_of(self, k: int) -> int:
        return self.machines[k].processors - len(self.away(k))

    def up(self, node: Node) -> int:
        return sum(self.nodes_of(k) for k in node.clusters)

    # Slots

    def all_slots(self) -> Iterator[Slot]:
        """The slots, and then those that the calendar could grow by."""
        yield from list(self.slots)
        length, begin = self.levels[-1][1] // self.unit, self.horizon
        if len(self.levels) == 1:
            begin = max(begin, (self.now - self.origin) // self.unit)
        while True:
            yield Slot(begin, begin + length, len(self.levels) - 1)
            begin += length

    def seconds(self, fundamental: int) -> int:
        return self.origin + fundamental * self.unit

    def touched(self, start: int, duration: int) -> list[Slot]:
        """Slots that [start, start + duration) touches."""
        found: list[Slot] = []
        for slot in self.all_slots():
            if self.seconds(slot.begin) >= start + duration:
                return found
            if self.seconds(slot.end) > start:
                found.append(slot)
        raise AssertionError

    def boundary(self) -> int:
        return self.origin + math.ceil((self.now - self.origin) / self.unit) * self.unit

    def taken(self, k: int, nodes: int) -> int:
        """Nodes that are lost to so many that are asked for: whole ones of the cluster, one by one."""
        machine, taken = self.machines[k], nodes
        while machine.node_exclusive and taken % machine.processors_per_node:
            taken += 1
        return taken

    def used(self, k: int, slot: Slot, shadow: dict[int, Counter[int]] | None) -> int:
        """Nodes in use in a slot; they are the same in all of its fundamental slots."""
        cells = range(slot.begin, slot.end)
        if shadow is not None:
            return max(shadow[k][cell] for cell in cells)
        occupied = {sum(held is not None for held in self.grid[k].get(cell, [])) for cell in cells}
        assert len(occupied) == 1
        closed = self.closed(k, slot)
        holding = set(self.grid[k].get(slot.begin, [])) - {None}
        twice = sum(len(closed & self.has[j][k]) for j in holding if j is not None and j in self.has)
        return occupied.pop() + len(closed - self.away(k)) - twice

    def room(self, k: int, slot: Slot, shadow: dict[int, Counter[int]] | None) -> int:
        """Nodes that one more job can have in a slot; how many are up is known at once."""
        nodes, used, total = self.nodes_of(k), self.used(k, slot, shadow), self.machines[k].processors
        if slot.level == 0 or used <= 0:
            return nodes - used
        return nodes - used - (total - int(self.options.threshold * total + 1e-9))

    def fill(self, j: int, k: int, slot: Slot, nodes: int) -> None:
        self.grow(slot)
        for cell in range(slot.begin, slot.end):
            column = self.grid[k].setdefault(cell, [None] * self.machines[k].processors)
            for _ in range(nodes):
                column[column.index(None)] = j

    def clear(self, j: int, k: int, slot: Slot) -> bool:
        """Take a job out of a slot; whether it was there."""
        found = False
        for cell in range(slot.begin, slot.end):
            column = self.grid[k].get(cell, [])
            found = found or j in column
            column[:] = [None if held == j else held for held in column]
        return found

    def grow(self, slot: Slot) -> None:
        """Let the calendar reach up to a slot."""
        while slot not in self.slots:
            self.slots.append(next(s for s in self.all_slots() if s not in self.slots))
            self.horizon = self.slots[-1].end
            self.measure()

    def measure(self) -> None:
        self.counts["slots_max"] = max(self.counts["slots_max"], len(self.slots))

    def split_slots(self) -> bool:
        happened = False
        for level in range(len(self.levels) - 1):
            count, duration = self.levels[level]
            low = int(self.options.low_water * (count or 0))
            while sum(slot.level == level for slot in self.slots) <= low:
                self.split(level, duration // self.unit)
                happened = True
        return happened

    def split(self, level: int, length: int) -> None:
        whole = next(slot for slot in self.all_slots() if slot.level == level + 1)
        self.grow(whole)
        at = self.slots.index(whole)
        parts = [Slot(cell, cell + length, level) for cell in range(whole.begin, whole.end, length)]
        self.slots[at : at + 1] = parts
        self.measure()
        self.counts["splits"] += len(self.machines)
        for j in {*self.waiting, *self.running} & self.place.keys():
            start, duration = self.place[j].start, self.place[j].duration
            for k in self.place[j].parts:
                for slot in set(parts) - set(self.touched(start, duration)):
                    self.clear(j, k, slot)

    # What jobs hold

    def hold(self, j: int, place: Place) -> None:
        self.place[j] = place
        self.occupy(j)
        self.book(j, 1)

    def occupy(self, j: int) -> None:
        """Fill the slots of a job; only the grid, without the owner's shadow calendars."""
        place = self.place[j]
        for k, nodes in place.parts.items():
            for slot in self.touched(place.start, place.duration):
                self.fill(j, k, slot, self.taken(k, nodes))

    def give_back(self, j: int) -> None:
        self.book(j, -1)
        self.vacate(j)

    def vacate(self, j: int) -> None:
        """Clear the slots of a job; only the grid, without the owner's shadow calendars."""
        for k in self.place[j].parts:
            for slot in self.touched(self.place[j].start, self.place[j].duration):
                assert self.clear(j, k, slot)

    def book(self, j: int, sign: int) -> None:
        """Let the owner's shadow calendars know."""
        shadow, place = self.owner[j].shadow, self.place[j]
        if shadow is not None:
            for k, nodes in place.parts.items():
                for slot in self.touched(place.start, place.duration):
                    for cell in range(slot.begin, slot.end):
                        shadow[k][cell] += sign * self.taken(k, nodes)

    def free(self, clusters: Sequence[int] | dict[int, int]) -> None:
        for k in clusters:
            for node in self.leaves[k].above():
                node.freed = True

    # Where a job goes

    def holders(self, node: Node, nodes: int) -> list[Node]:
        """Managers that have the nodes, while none of their sub-managers has them."""
        if self.up(node) < nodes:
            return []
        below = [holder for child in node.children for holder in self.holders(child, nodes)]
        return below or [node]

    def saving(self, holder: Node) -> tuple[int, int]:
        """Interval and cost of checkpoints."""
        machine = self.machines[holder.clusters[0]]
        return machine.checkpoint_interval, machine.checkpoint_cost

    def length(self, work: int, holder: Node) -> int:
        """Seconds that work takes with its checkpoints, of which there is none at its end."""
        return lengthened(work, *self.saving(holder))

    def duration(self, j: int, holder: Node) -> int:
        return self.length(self.estimate_on(j, holder), holder)

    def estimate_on(self, j: int, m: Node) -> int:
        return at_speed(m.speed, self.estimate[j], self.jobs[j].speed)

    def rooms(self, j: int, x: Node, start: int, shadow: dict[int, Counter[int]] | None) -> dict[int, int]:
        """How many nodes of a job each cluster could take in all its slots."""
        slots = self.touched(start, self.duration(j, x))
        rooms = {k: min(self.room(k, slot, shadow) for slot in slots) for k in x.clusters}
        return {
            k: max(nodes for nodes in range(max(room, 0) + 1) if not nodes or self.taken(k, nodes) <= room)
            for k, room in rooms.items()
        }

    def earliest(
        self, j: int, x: Node, begin: int, shadow: dict[int, Counter[int]] | None, own: int = FOREVER
    ) -> int:
        """First fit at or after `begin`; slots from `own` on are those of the job."""
        starts = (self.seconds(slot.begin) for slot in self.all_slots() if self.seconds(slot.begin) > begin)
        start = begin
        while not self.fits(j, x, start, shadow, own):
            start = next(starts)
        return start

    def fits(
        self, j: int, x: Node, start: int, shadow: dict[int, Counter[int]] | None, own: int = FOREVER
    ) -> bool:
        if own == FOREVER:
            return sum(self.rooms(j, x, start, shadow).values()) >= self.jobs[j].processors
        (k,) = x.clusters
        slots = self.touched(start, self.duration(j, x))
        return all(
            self.seconds(slot.begin) >= own
            or self.room(k, slot, shadow) >= self.taken(k, self.jobs[j].processors)
            for slot in slots
        )

    def tie(self, m: Node, j: int, number: int) -> int:
        unbiased = m.rules is not None and m.rules.placement == "unbiased"
        return self.rank(j, number) if unbiased else 0

    def search(
        self, j: int, m: Node, known: dict[Node, tuple[int, bool]], limit: int, own: tuple[Node, int] | None
    ) -> tuple[Node, int] | None:
        """Holder and start; `known` holds for each holder a time, and whether the holder itself said so."""
        while True:
            times, mine = {}, {}
            for x, (time, told) in known.items():
                mine[x] = own[1] if own and own[0] is x else FOREVER
                times[x] = time if told else self.earliest(j, x, time, m.shadow, mine[x])
            x = min(known, key=lambda x: (times[x], self.tie(m, j, x.number), x.number))
            if times[x] >= limit:
                return None
            if not m.children:
                return x, times[x]
            self.counts["inquiries"] += len(x.clusters)
            self.counts["messages"] += 2 * len(x.clusters)
            could = self.earliest(j, x, times[x], None, mine[x])
            if could == times[x]:
                return x, could
            assert m.shadow is not None
            self.counts["failed_inquiries"] += 1
            known[x] = (could, True)

    def refused(self) -> bool:
        self.reserve_requests += 1
        self.counts["messages"] += 2
        return self.reserve_requests <= len(self.refusals) and bool(self.refusals[self.reserve_requests - 1])

    def commit(self, j: int, m: Node, x: Node, start: int) -> bool:
        """Ask all parts, then hold them all or none."""
        parts = {x.clusters[0]: self.jobs[j].processors}
        if x.children:
            parts = self.cut(j, m, x, start)
        for agreed, _ in enumerate(parts if m.children else ()):
            if self.refused():
                if x.children:
                    self.counts["aborts"] += 1
                    self.counts["messages"] += agreed
                    # For a moment the parts that agreed were reserved
                    for slot in self.touched(start, self.duration(j, x)) if agreed else ():
                        self.grow(slot)
                return False
        self.owner[j] = m
        self.hold(j, Place(x, start, self.duration(j, x), parts))
        return True

    def cut(self, j: int, m: Node, x: Node, start: int) -> dict[int, int]:
        rooms = self.rooms(j, x, start, None)
        remaining, parts = self.jobs[j].processors, {}
        for k in sorted(x.clusters, key=lambda k: (self.tie(m, j, self.leaves[k].number), k)):
            if remaining and rooms[k]:
                parts[k] = min(remaining, rooms[k])
                remaining -= parts[k]
        return dict(sorted(parts.items()))

    def behind(self, start: int) -> int:
        """End of the slot that holds a start."""
        return self.seconds(self.touched(start, 1)[0].end)

    def offers(self, j: int, m: Node, begin: int) -> dict[Node, tuple[int, bool]]:
        """Who could hold a job of a manager, and from when on each is to be asked."""
        return dict.fromkeys(self.holders(m, self.jobs[j].processors), (begin, False))

    def secure(
        self, j: int, m: Node, known: dict[Node, tuple[int, bool]], found: tuple[Node, int] | None
    ) -> bool:
        """Let a manager give a job what it found, or what it finds next if that is refused."""
        while found is not None and not self.commit(j, m, *found):
            known[found[0]] = (self.behind(found[1]), False)
            found = self.search(j, m, known, FOREVER, None)
        return found is not None

    def put(self, j: int, m: Node, begin: int) -> bool:
        """Let a manager give a job its first fit."""
        known = self.offers(j, m, begin)
        return self.secure(j, m, known, self.search(j, m, known, FOREVER, None))

    # Events

    def submit(self, j: int) -> None:
        job = self.jobs[j]
        self.turn[j] = self.turns
        self.turns += 1
        if job.reserved != NONE:
            if job.reserved >= self.boundary() and self.reserve(j):
                self.fixed.add(j)
            elif self.options.refused == "reject":
                self.users.leave(j, self.now, "rejected")
                return
        if j not in self.fixed:
            self.submit_ordinary(j)
        if j in self.place:
            self.outcome.planned[j] = self.place[j].start
        self.waiting.append(j)

    def may_borrow(self, j: int) -> bool:
        limit = self.leaves[self.jobs[j].home].rule("borrow_limit")
        return limit is None or self.trade[self.jobs[j].home] <= limit

    def is_promoted(self, j: int, m: Node) -> bool:
        nodes, duration = m.rule("promote_processors"), m.rule("promote_duration")
        return (nodes is not None and self.jobs[j].processors > nodes) or (
            duration is not None and self.estimate_on(j, m) >= duration
        )

    def submit_ordinary(self, j: int) -> None:
        home = m = self.leaves[self.jobs[j].home]
        free_to_go = self.may_borrow(j)
        while m.parent:
            promoted = free_to_go and self.is_promoted(j, m)
            if not promoted and self.jobs[j].processors <= self.up(m):
                break
            self.route.setdefault(j, "promoted" if promoted else "forwarded")
            m = m.parent
            self.counts["messages"] += 1
        if not free_to_go:
            self.counts["over_limit"] += m is not home
            self.counts["kept_home"] += m is home and m.parent is not None and self.is_promoted(j, home)
        self.owner[j] = m
        if self.jobs[j].processors > self.up(m):
            return
        begin = self.boundary()
        found = self.search(j, m, self.offers(j, m, begin), FOREVER, None)
        assert found
        owner = m
        while m.parent and m.rule("bump") is not None and found[1] > self.now + self.patience(j, m):
            if not free_to_go:
                self.counts["kept_home"] += 1
                break
            m = m.parent
            self.counts["messages"] += 1
            better = self.search(j, m, self.offers(j, m, begin), found[1], None)
            if better:
                owner, found = m, better
                self.route[j] = "bumped"
        assert self.secure(j, owner, self.offers(j, owner, begin), found)

    def patience(self, j: int, m: Node) -> int:
        """How late the first fit of a job may be before a manager bumps it up."""
        return max(m.rule("bump") or 0, (m.rule("bump_stretch") or 0) * self.estimate_on(j, m))

    def reserve(self, j: int) -> bool:
        start = self.jobs[j].reserved
        asked: dict[Node, int] = {}
        for m in self.leaves[self.jobs[j].home].above():
            self.counts["messages"] += bool(asked) or m is not self.leaves[self.jobs[j].home]
            holders = [x for x in self.holders(m, self.jobs[j].processors) if x not in asked]
            while holders:
                x = min(
                    holders,
                    key=lambda x: (self.earliest(j, x, start, m.shadow), self.tie(m, j, x.number), x.number),
                )
                holders.remove(x)
                could = self.earliest(j, x, start, None)
                if m.children:
                    self.counts["inquiries"] += len(x.clusters)
                    self.counts["messages"] += 2 * len(x.clusters)
                    self.counts["failed_inquiries"] += could != start
                if could == start:
                    if self.commit(j, m, x, start):
                        return True
                    could = self.earliest(j, x, self.behind(start), None)
                asked[x] = could
        self.outcome.earliest[j] = min(asked.values(), default=NONE)
        return False

    def start(self, j: int) -> None:
        self.waiting.remove(j)
        self.running.append(j)
        place = self.place[j]
        if self.outcome.start[j] == NONE:
            self.outcome.start[j] = place.start
            self.users.start(j, place.start)
        self.left[j] = at_speed(place.holder.speed, *self.left[j]), place.holder.speed
        self.has[j] = {k: self.choose(j, k, self.taken(k, nodes)) for k, nodes in place.parts.items()}

    def choose(self, j: int, k: int, nodes: int) -> set[int]:
        """Processors for a job: the lowest, first those that stay up as long as it is planned to run."""
        taken = {p for has in self.has.values() for p in has.get(k, ())}
        end = self.place[j].start + self.place[j].duration
        later = {p for w in self.windows[k] if w.start < end for p in w.processors}
        closed = self.away(k) | {p for w in self.windows[k] if w.start <= self.now for p in w.processors}
        free = [p for p in range(self.machines[k].processors) if p not in taken | closed]
        assert len(free) >= nodes
        return set(sorted(free, key=lambda p: (p in later, p))[:nodes])

    def real_end(self, j: int) -> int:
        return self.place[j].start + self.length(self.left[j][0], self.place[j].holder)

    def stop(self, j: int) -> None:
        self.running.remove(j)
        place = self.place[j]
        is_early = False
        for k, nodes in place.parts.items():
            for slot in self.touched(place.start, place.duration):
                if self.seconds(slot.begin) >= self.now:
                    assert self.clear(j, k, slot)
                    is_early = True
                    self.free([k])
            work = self.taken(k, nodes) * (self.now - place.start)
            home = self.jobs[j].home
            if k != home:
                self.trade[k] -= work
                self.trade[home] += work
            self.outcome.segments.append((j, k, self.taken(k, nodes), place.start, self.now, nodes))
        self.counts["early_exits"] += is_early
        self.outcome.end[j] = self.now
        self.has.pop(j)

    def end(self, j: int) -> None:
        self.stop(j)
        self.outcome.useful[j] += self.left[j][0]
        self.users.leave(j, self.now, "completed")

    def slot_now(self) -> Slot:
        return next(self.all_slots())

    def overrun(self, j: int) -> None:
        place, slot = self.place[j], self.slot_now()
        # What it has of processors that will be out is its own until then
        needs = {k: len(has - self.closed(k, slot)) for k, has in self.has[j].items()}
        lacking = [k for k in place.parts if self.room(k, slot, None) < needs[k]]
        movable = {
            k: [
                i
                for i in self.waiting
                if i in self.place
                and self.place[i].start == self.now
                and k in self.place[i].parts
                and i not in self.fixed
            ]
            for k in place.parts
        }
        for k in lacking:
            could = self.room(k, slot, None)
            could += sum(self.taken(k, self.place[i].parts[k]) for i in movable[k])
            if could < needs[k]:
                self.break_off(j)
                return
        displaced: list[int] = []
        for k in lacking:
            if self.room(k, slot, None) < needs[k]:
                for i in movable[k]:
                    if i not in displaced:
                        self.give_back(i)
                        self.free(self.place[i].parts)
                        displaced.append(i)
        for k, nodes in place.parts.items():
            self.fill(j, k, slot, self.taken(k, nodes))
        self.place[j] = place._replace(duration=self.now + self.unit - place.start)
        for i in sorted(displaced, key=self.turn.__getitem__):
            self.put(i, self.owner[i], self.now)
            self.counts["displaced"] += 1
            self.counts["delayed"] += self.place[i].start > self.now

    def break_off(self, j: int) -> None:
        self.stop(j)
        left, speed = self.left[j]
        work = worked(self.now - self.place[j].start, *self.saving(self.place[j].holder))
        self.outcome.useful[j] += work
        self.left[j] = left - work, speed
        if self.options.overrun == "kill":
            self.counts["killed"] += 1
            self.users.leave(j, self.now, "killed")
            return
        self.counts["suspended"] += 1
        self.fixed.discard(j)
        self.put_anew(j, self.now)
        self.waiting.append(j)

    def put_anew(self, j: int, begin: int) -> None:
        """Place a job at its manager, or at one above as long as too few nodes are up; or nowhere."""
        m = self.owner[j]
        while self.up(m) < self.jobs[j].processors and m.parent:
            m = m.parent
            self.counts["messages"] += 1
        self.owner[j] = m
        self.place.pop(j, None)
        if self.up(m) >= self.jobs[j].processors:
            assert self.put(j, m, begin)

    # Outages

    def process_events(self) -> None:
        """All that happens to nodes now."""
        self.happened = False
        if self.visited == self.now or self.now < self.first:
            return
        for closing in self.closings:
            if closing.window and closing.announced == self.now:
                self.touch(closing)
                self.windows[closing.cluster].append(closing)
                begin = max(closing.start, self.boundary())
                for slot in self.touched(begin, closing.until - begin) if closing.until > begin else ():
                    self.grow(slot)
        for closing in self.closings:
            if closing.start == self.now:
                self.touch(closing)
                if not closing.drained:
                    for j in sorted(self.running):
                        if self.has[j].get(closing.cluster, set()) & closing.processors:
                            self.kill(j, self.machines[closing.cluster].requeue)
                if not closing.window:
                    self.out[closing.cluster].append(closing)
        for closing in self.closings:
            if closing.until == self.now:
                self.touch(closing)
                known = self.windows if closing.window else self.out
                known[closing.cluster].remove(closing)
        for j in sorted(self.again, key=self.turn.__getitem__):
            if self.again[j] == "end":
                self.turn[j] = self.turns
                self.turns += 1
        for k in range(len(self.machines) if self.happened else 0):
            self.displace(k)

    def touch(self, closing: Closing) -> None:
        self.happened = True
        self.free([closing.cluster])

    def kill(self, j: int, requeue: str) -> None:
        place = self.place[j]
        elapsed = self.now - place.start
        kept = saved(elapsed, *self.saving(place.holder))
        self.stop(j)
        left, speed = self.left[j]
        self.left[j] = left - kept, speed
        self.outcome.useful[j] += kept
        done = kept if speed == self.jobs[j].speed else int(kept * speed / self.jobs[j].speed)
        self.estimate[j] = max(1, self.estimate[j] - done)
        self.outcome.killed[j] += 1
        if requeue == "lost":
            self.users.leave(j, self.now, "lost")
            return
        self.fixed.discard(j)
        self.again[j] = requeue
        del self.place[j]
        self.waiting.append(j)

    def displace(self, k: int) -> None:
        """Take out the waiting jobs that hold slots with fewer nodes than are held."""
        overdrawn = [
            j
            for j in self.waiting
            if j in self.place
            and k in self.place[j].parts
            and any(
                self.nodes_of(k) < self.used(k, slot, None)
                for slot in self.touched(self.place[j].start, self.place[j].duration)
            )
        ]
        for j in overdrawn:
            self.give_back(j)
            self.free(self.place[j].parts)
            del self.place[j]
            self.counts["outage_displaced"] += 1

    def place_again(self) -> None:
        """Place those anew that have no place."""

        def group(j: int) -> int:
            return {"place": 0, "end": 3}.get(self.again.get(j, ""), 1 if j in self.fixed else 2)

        homeless = [j for j in self.waiting if j not in self.place]
        for j in sorted(homeless, key=lambda j: (group(j), self.turn[j])):
            if j in self.fixed:
                earliest = self.outcome.earliest[j]
                if self.reserve(j):
                    continue
                self.outcome.earliest[j] = earliest
                self.fixed.discard(j)
                self.outcome.broken[j] = True
            self.put_anew(j, self.boundary())
        self.again.clear()

    # Lives

    def live(self) -> list[int]:
        """Who enters now, in order; users give up."""
        entering, leaving = self.users.look(self.now)
        for j in leaving:
            self.leave(j)
        return entering

    def leave(self, j: int) -> None:
        if j in self.waiting:
            self.waiting.remove(j)
            if j in self.place:
                self.give_back(j)
                self.free(self.place[j].parts)
                self.counts["messages"] += bool(self.owner[j].children)

    def move(self, j: int, m: Node) -> None:
        old, begin = self.place[j], self.boundary()
        if old.start <= begin:
            return
        single = not old.holder.children
        if single:
            # To the owner's shadow calendars the job does not move before it has a new place.
            self.vacate(j)
        else:
            self.give_back(j)
        known = self.offers(j, m, begin)
        while True:
            found = self.search(j, m, known, old.start, (old.holder, old.start) if single else None)
            if found is None:
                break
            if single:
                self.book(j, -1)
            if self.commit(j, m, *found):
                self.counts["moves"] += 1
                self.counts["messages"] += bool(m.children)
                self.free(old.parts)
                return
            if single:
                self.book(j, 1)
            known[found[0]] = (self.behind(found[1]), False)
        self.occupy(j)
        if not single:
            self.book(j, 1)

    def instant(self) -> None:
        """All that happens at one instant."""
        cell = (self.now - self.origin) // self.unit
        self.slots = [slot for slot in self.slots if slot.end > cell]
        for j in sorted(self.running):
            if self.real_end(j) == self.now:
                self.end(j)
        has_split = self.split_slots()
        for j in sorted(self.running):
            place = self.place[j]
            ends = self.seconds(math.ceil((place.start + place.duration - self.origin) / self.unit))
            if ends == self.now:
                self.overrun(j)
        self.process_events()
        entering = self.live()
        if self.happened:
            self.place_again()
        for m in self.nodes:
            if m.shadow is not None and self.is_update(m):
                self.counts["messages"] += len(m.clusters)
                m.shadow = {k: self.picture(k) for k in m.clusters}
        for m in sorted(self.nodes, key=lambda m: len(list(m.above()))):
            if has_split or m.freed:
                for j in sorted(self.waiting, key=self.turn.__getitem__):
                    if self.owner[j] is m and j not in self.fixed and j in self.place:
                        self.move(j, m)
        for m in self.nodes:
            m.freed = False
        for j in entering:
            self.submit(j)
        for j in sorted(self.waiting, key=lambda j: (self.owner[j].number, self.turn[j])):
            if j in self.place and self.place[j].start == self.now:
                self.start(j)
        self.visited = self.now

    visited = NONE
    happened = False

    def is_update(self, m: Node) -> bool:
        """Whether a manager gets its shadow calendars now; only once where a second is visited twice."""
        return self.visited != self.now and (self.now - self.origin) % (m.rule("period") or 1) == 0

    def picture(self, k: int) -> Counter[int]:
        return Counter(
            {cell: self.used(k, slot, None) for slot in self.slots for cell in range(slot.begin, slot.end)}
        )

    def is_over(self) -> bool:
        """Whether all is done, or those who wait will never have a place."""
        if self.users.times() or self.running or any(job.submit_time >= self.now for job in self.jobs):
            return False
        if any(j in self.place for j in self.waiting):
            return False
        times = {time for c in self.closings for time in (c.start, c.until) if time < FOREVER}
        return not self.waiting or max(times, default=NONE) < self.now

    def run(self) -> Outcome:
        while not self.is_over():
            self.instant()
            while any(self.real_end(j) == self.now for j in self.running) or self.users.is_due(self.now):
                self.instant()
            self.now += 1
        fates = [self.users.fate.get(j, "starved") for j in range(len(self.jobs))]
        self.outcome.fate.extend("completed" if fate == "killed" else fate for fate in fates)
        routes = Counter(self.route.values())
        for name in ("promoted", "forwarded", "bumped"):
            self.counts[name] = routes[name]
        self.outcome.segments.sort(key=lambda segment: (segment[0], segment[3], segment[1]))
        return self.outcome
