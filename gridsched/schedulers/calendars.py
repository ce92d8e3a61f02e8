"""Imprecise calendars under a tree of managers: when and where jobs run, and which reservations are granted.

Hollingsworth and Maneewongvatana, "Imprecise calendars: an approach to scheduling computational grids" (ICDCS
1999), section 2. Nodes are the processors of a cluster. Where the paper is silent or leaves a choice:

slots
    All calendars of a tree have the same slots, which begin at the same times (the paper shares the
    fundamental slot only), so that jobs which span clusters start together. The first slot begins at the last
    multiple of the fundamental slot that is not after the first submission. When a level is down to its
    low-water mark, the first slot of the level above is split. The last level is open: it grows at its far
    end as jobs need it.
requests
    A job takes whole slots: first fit is the earliest slot that begins now or later from which on enough
    slots for its estimate have its nodes free. Jobs start when a slot begins. In slots that are not
    fundamental the commitments together stay within the resource threshold, unless there is one job only.
moves
    When a slot is split, jobs keep the parts that they touch. After splits, early exits and displacements
    each waiting job, in order of submission, moves to its first fit if that is earlier, as in the
    conservative backfilling of Feitelson and Weil (1998). Managers above move their jobs before those below.
    An event in one cluster makes its own managers move their jobs only; a split, all.
reservations
    A job may ask for a start at a multiple of the fundamental slot. It gets it exactly, or not at all: then
    it is told the earliest later time that it could have had. The local manager is asked first, then its
    parent for all clusters below it, and so on. In a coarse slot it holds the whole slot, and starts at its
    time.
overruns
    A job that is not done when its slots are over takes one fundamental slot after the other. Where
    nodes are missing, waiting jobs without reservation that were to start then give way and are placed
    anew; where that is not enough, the job is killed, or suspended: its rest is a new request with the same
    estimate. With estimates that are upper bounds no planned start is ever put off.
managers
    A leaf manager has one cluster, where users submit jobs. A job goes up to the parent if the rule of its
    manager says so (`promote_processors`, `promote_duration`), if it needs more nodes than the manager has,
    or if its first fit is later than `bump` seconds from now and managers above have an earlier one. A
    manager above places a job at the sub-manager with the earliest first fit; if only some clusters together
    have the nodes, the job spans these, with parts as large as possible on one after the other.
shadow calendars
    With a period, a manager knows the calendars of the clusters below it as they were at the last
    multiple of the period, and what it reserved since. It asks the cluster that it chooses; if that
    declines, it says when it could, and the manager chooses again. To reserve, all parts must agree, else
    those that did are given back (two phases). A job stays with the manager that placed it.
balance of trade
    Node-seconds that a cluster consumed elsewhere less those that it supplied to others, counted as jobs
    end. Above `borrow_limit` jobs of that home are neither promoted nor bumped; what is larger than its home
    still goes up.
speed
    Run times and estimates are divided by the speed of the cluster (the slowest one of the manager whose
    clusters a job spans) and rounded up.

Counts: a message is a request sent up, an inquiry or its answer, a reserve request or its answer, a part that
is given back, a place that is given up in a move, or one shadow calendar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import bookings, calendar, managers
from gridsched.engine.bookings import NOWHERE, Route, Status
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster

OverrunName = Literal["kill", "suspend"]
RefusedName = Literal["reject", "queue"]
PlacementName = Literal["lowest", "unbiased"]

FIRST_ROOM = 2048
"""Slots of the open level that there is room for at first; a simulation that needs more is begun anew."""

_MOST_ROOM = 2**24
_MOST_LEVELS = 32

_SEED_BITS = 2**63 - 1
"""Larger seeds would be of another type, for which the kernels would be compiled once more."""


@dataclass(frozen=True, kw_only=True)
class SlotPlan:
    """How many slots of which duration a calendar has, from now on.

    Parameters
    ----------
    levels : sequence of (count, duration)
        From the finest to the coarsest slots, durations in seconds, each a multiple of the one before. The
        count of the last level is None: as many as needed.

    Raises
    ------
    ConfigurationError
        If a number is not positive, durations are not such multiples, or the last level is not open.
    """

    levels: Sequence[tuple[int | None, int]]

    def __post_init__(self) -> None:
        if not 1 <= len(self.levels) <= _MOST_LEVELS:
            raise ConfigurationError(f"slots: {len(self.levels)} levels; use 1 to {_MOST_LEVELS}")
        object.__setattr__(self, "levels", tuple(tuple(level) for level in self.levels))
        for position, level in enumerate(self.levels):
            if len(level) != 2:
                raise ConfigurationError(f"slots: level {position} is {level}; use (count, duration)")
            count, duration = level
            if not _is_whole(duration, 1):
                raise ConfigurationError(
                    f"slots: level {position} has slots of {duration!r} s; "
                    f"use whole seconds from 1 to {LARGEST}"
                )
            if position + 1 == len(self.levels):
                if count is not None:
                    raise ConfigurationError(
                        f"slots: the last level has {count!r} slots; use None, for as many as needed"
                    )
            elif not _is_whole(count, 1):
                raise ConfigurationError(f"slots: level {position} has {count!r} slots; use 1 or more")
        for (_, below), (_, above) in pairwise(self.levels):
            if above <= below or above % below:
                raise ConfigurationError(
                    f"slots: {above} s are no larger multiple of {below} s, so that slots cannot be split "
                    f"into those; use for instance {max(2, above // below) * below} s"
                )

    @classmethod
    def doubling(cls, first: int, k: int, levels: int) -> SlotPlan:
        """Slots whose duration doubles every 2k slots, with so many levels."""
        counts: list[int | None] = [2 * k] * (levels - 1)
        return cls(levels=tuple((count, first << i) for i, count in enumerate([*counts, None])))

    @property
    def fundamental(self) -> int:
        """Duration of the fundamental slot in seconds."""
        return self.levels[0][1]

    def slots_within(self, horizon: int) -> int:
        """Slots of a new calendar that covers so many seconds."""
        total = 0
        for count, duration in self.levels:
            needed = -(-max(0, horizon) // duration)
            taken = needed if count is None else min(count, needed)
            total += taken
            horizon -= taken * duration
        return total

    def __str__(self) -> str:
        return ", ".join(
            f"<{'*' if count is None else count}, {duration} s>" for count, duration in self.levels
        )


@dataclass(frozen=True, kw_only=True)
class CalendarOptions:
    """What holds for all calendars of a tree.

    Parameters
    ----------
    slots : SlotPlan
        The slots.
    low_water : float
        Share of the slots of a level at which one of the level above is split, from 0 to below 1; rounded
        down to whole slots.
    threshold : float
        Resource threshold: largest share of the nodes that jobs may take in advance in slots which are not
        fundamental, above 0, at most 1.
    overrun : {"suspend", "kill"}
        What happens to a job that is not done when its slots are over, and for which there is no room.
    refused : {"reject", "queue"}
        What happens to a job whose reservation is refused.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    slots: SlotPlan
    low_water: float = 0.5
    threshold: float = 1.0
    overrun: OverrunName = "suspend"
    refused: RefusedName = "reject"

    def __post_init__(self) -> None:
        if not 0 <= self.low_water < 1:
            raise ConfigurationError(f"low_water is {self.low_water}; use a share from 0 to below 1")
        if not 0 < self.threshold <= 1:
            raise ConfigurationError(f"threshold is {self.threshold}; use a share above 0, at most 1")
        for key, words in (("overrun", get_args(OverrunName)), ("refused", get_args(RefusedName))):
            if getattr(self, key) not in words:
                raise ConfigurationError(f"{key} is {getattr(self, key)!r}; use one of {', '.join(words)}")


@dataclass(frozen=True, kw_only=True)
class Manager:
    """A manager of clusters. One whose only child is a cluster is the local manager of that cluster.

    A cluster among several children has a local manager without rules of its own.

    Parameters
    ----------
    name : str
        Name in messages; no other manager or cluster has it, but a local manager may be called like its
        cluster.
    children : sequence of Manager or Cluster
        What it manages.
    promote_processors : int, optional
        Jobs that ask for more go up to the parent.
    promote_duration : int, optional
        Jobs with an estimate of so many seconds or more go up to the parent.
    bump : int, optional
        Jobs whose first fit is later than so many seconds from now are bumped up to the parent.
    period : int
        Seconds between updates of its shadow calendars; 0: they are always fresh. Not used by local managers.
    placement : {"lowest", "unbiased"}
        Which of several sub-managers with equally early places gets a job: the first, as in the paper, or
        the first of a random permutation for each job. Likewise the order of parts.
    borrow_limit : int, optional
        Of a local manager: net node-seconds consumed elsewhere above which jobs are not promoted or bumped.

    Raises
    ------
    ConfigurationError
        If there are no children, or a value is out of range.
    """

    name: str
    children: Sequence[Manager | Cluster]
    promote_processors: int | None = None
    promote_duration: int | None = None
    bump: int | None = None
    period: int = 0
    placement: PlacementName = "lowest"
    borrow_limit: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(self.children))
        if not self.children:
            raise ConfigurationError(f"manager {self.name}: no children; give it clusters or managers")
        for key in ("promote_processors", "promote_duration", "bump", "borrow_limit"):
            value = getattr(self, key)
            if value is not None and not (isinstance(value, Integral) and 0 <= int(value) < 2**62):
                raise ConfigurationError(
                    f"manager {self.name}: {key} is {value!r}; use a whole number from 0 on, or None"
                )
        if not _is_whole(self.period, 0):
            raise ConfigurationError(
                f"manager {self.name}: period is {self.period!r}; use whole seconds from 0 to {LARGEST}"
            )
        if self.placement not in get_args(PlacementName):
            raise ConfigurationError(
                f"manager {self.name}: placement is {self.placement!r}; "
                f"use one of {', '.join(get_args(PlacementName))}"
            )


def _is_whole(value: Any, low: int) -> bool:
    return isinstance(value, Integral) and low <= int(value) <= LARGEST


@dataclass(frozen=True, kw_only=True)
class CalendarSchedule:
    """What the managers decided.

    Parameters
    ----------
    start_time, end_time : int64[n]
        First start and last end, seconds; -1 for a job that did not run.
    run_time : int64[n]
        Seconds of execution; those of the home cluster for a job that did not run.
    planned_start : int64[n]
        Start that each job was given when it was submitted; -1 for a job that was not accepted.
    reserved : bool[n]
        Whether its reservation was granted.
    earliest_time : int64[n]
        Earliest start that a refused reservation could have had; -1 for other jobs.
    status, route : int64[n]
        `gridsched.engine.bookings.Status` and `Route`.
    segments : SEGMENT[k]
        Executions by job, start and cluster (`gridsched.engine.bookings.SEGMENT`).
    counts : mapping of str to int
        What happened how often, see `COUNTS`.
    """

    start_time: NDArray[np.int64]
    end_time: NDArray[np.int64]
    run_time: NDArray[np.int64]
    planned_start: NDArray[np.int64]
    reserved: NDArray[np.bool_]
    earliest_time: NDArray[np.int64]
    status: NDArray[np.int64]
    route: NDArray[np.int64]
    segments: NDArray[Any]
    counts: dict[str, int]


COUNTS: dict[str, str] = {
    "slots_max": "largest number of slots of a calendar",
    "splits": "slots that were split, in all calendars",
    "operations": "searches, changes and splits of calendars",
    "slots_touched": "slots that these looked at or changed",
    "moves": "times that a waiting job moved forward",
    "early_exits": "jobs that ended before their slots did",
    "displaced": "times that a waiting job gave way to an overrun",
    "delayed": "times that it started later for it",
    "killed": "jobs killed at the end of their slots",
    "suspended": "times that a job was suspended at the end of its slots",
    "promoted": "jobs sent up by the rule of their local manager",
    "forwarded": "jobs sent up because they are larger than their home",
    "bumped": "jobs with an earlier place at a manager above",
    "kept_home": "promotions and bumps that the limit of borrowing forbade",
    "over_limit": "jobs sent up over that limit because they are larger than their home",
    "spanning": "jobs that ran on several clusters at once",
    "inquiries": "inquiries of managers at clusters",
    "failed_inquiries": "requests that were declined at the time asked for",
    "aborts": "reserve requests that were refused",
    "messages": "messages between managers",
    "reservations_granted": "reservations granted",
    "reservations_refused": "reservations refused",
}
"""What is counted in a simulation."""

_OF_ENGINE = (
    "moves",
    "early_exits",
    "displaced",
    "delayed",
    "killed",
    "suspended",
    "kept_home",
    "over_limit",
    "inquiries",
    "failed_inquiries",
    "aborts",
    "messages",
)


def clusters_of(root: Manager | Cluster) -> list[Cluster]:
    """The clusters of a tree, in the order of its leaves.

    Raises
    ------
    ConfigurationError
        If two managers or clusters have the same name, the tree has a cycle, or a cluster gives whole
        nodes only to jobs.
    """
    return [leaf.cluster for leaf in _flatten(root) if leaf.cluster is not None]


def schedule_calendars(
    jobs: NDArray[Any],
    root: Manager | Cluster,
    options: CalendarOptions,
    *,
    seed: int = 0,
    refusals: Sequence[bool] = (),
) -> CalendarSchedule:
    """Run jobs through the calendars of a tree of managers.

    Parameters
    ----------
    jobs : REQUEST[n]
        Jobs in order of submission (`gridsched.engine.bookings.REQUEST`), `home` the index of a cluster, with
        run times and estimates as at speed 1; `span` is not looked at.
    root : Manager or Cluster
        The tree.
    options : CalendarOptions
        The calendars.
    seed : int
        Seed of the random choices of `unbiased` managers.
    refusals : sequence of bool
        Which of the reserve requests between managers, in their order, are refused whatever the calendar
        says: a test of the two phases.

    Raises
    ------
    ConfigurationError
        If the tree is none, or jobs are not in order, have no home, or ask for impossible reservations.
    """
    room, segments = FIRST_ROOM, 2 * len(jobs)
    while True:
        tree, conventions = prepare(jobs, root, options, seed, refusals, room, segments)
        managers.schedule(tree, conventions, FOREVER)
        if not managers.is_short(tree):
            return _result(tree)
        room *= 4 if tree.calendars.tally["short"][0] else 1
        segments *= 2 if tree.counts["short"][0] else 1
        if room > _MOST_ROOM:
            raise ConfigurationError(
                f"slots: a calendar of {options.slots} needs more than {_MOST_ROOM} slots of the last level; "
                "give it longer ones"
            )


def prepare(
    jobs: NDArray[Any],
    root: Manager | Cluster,
    options: CalendarOptions,
    seed: int = 0,
    refusals: Sequence[bool] = (),
    room: int = FIRST_ROOM,
    segments: int = FIRST_ROOM,
) -> tuple[bookings.Tree, managers.Options]:
    """What the engine simulates, before the first instant.

    Parameters are those of `schedule_calendars`, and for how many slots of the open level and for how many
    executions there is room.
    """
    built = _Built.of(root)
    requests = built.requests(jobs, options)
    conventions = managers.Options(
        suspend=options.overrun == "suspend", queue=options.refused == "queue", seed=int(seed) & _SEED_BITS
    )
    tree = bookings.allocate(
        built.calendars(options, int(jobs["submit"][0]) if len(jobs) else 0, room),
        requests,
        built.nodes,
        np.flatnonzero(requests["span"] >= 0),
        np.array(refusals, np.uint8).reshape(-1),
        segments,
    )
    return tree, conventions


@dataclass(frozen=True)
class _Flat:
    """A manager of a tree in preorder."""

    name: str
    parent: int
    rules: Manager | None
    cluster: Cluster | None


def _flatten(root: Manager | Cluster) -> list[_Flat]:
    """The managers of a tree in preorder; refuses what is no tree."""
    flat: list[_Flat] = []
    names: set[str] = set()

    def add(item: Manager | Cluster, parent: int, above: tuple[int, ...]) -> None:
        if id(item) in above:
            raise ConfigurationError(f"manager {item.name}: it is among its own children; mend the tree")
        if isinstance(item, Cluster):
            flat.append(_Flat(item.name, parent, None, _checked(item)))
        elif len(item.children) == 1 and isinstance(item.children[0], Cluster):
            cluster = _checked(item.children[0])
            flat.append(_Flat(item.name, parent, item, cluster))
            if cluster.name != item.name:
                take(cluster.name)
        else:
            number = len(flat)
            flat.append(_Flat(item.name, parent, item, None))
            take(item.name)
            for child in item.children:
                add(child, number, (*above, id(item)))
            return
        take(item.name)

    def take(name: str) -> None:
        if name in names:
            raise ConfigurationError(f"{name}: two managers or clusters have this name; give each its own")
        names.add(name)

    add(root, NOWHERE, ())
    return flat


def _checked(cluster: Cluster) -> Cluster:
    """A cluster that calendars can manage."""
    if cluster.node_exclusive and cluster.processors_per_node > 1:
        raise ConfigurationError(
            f"cluster {cluster.name}: calendars count processors one by one; "
            "give processors and jobs in nodes instead of node_exclusive"
        )
    if cluster.processors > LARGEST:
        raise ConfigurationError(
            f"cluster {cluster.name}: {cluster.processors} processors; at most {LARGEST} can be simulated"
        )
    return cluster


@dataclass(frozen=True)
class _Built:
    """A tree as the engine wants it."""

    nodes: NDArray[Any]
    clusters: list[Cluster]

    @classmethod
    def of(cls, root: Manager | Cluster) -> _Built:
        flat = _flatten(root)
        nodes = np.zeros(len(flat), bookings.NODE)
        clusters: list[Cluster] = []
        for node, each in zip(nodes, flat, strict=True):
            node["parent"], node["size"] = each.parent, 1
            node["first"] = len(clusters)
            if each.cluster is not None:
                clusters.append(each.cluster)
                node["nodes"], node["speed"] = each.cluster.processors, each.cluster.speed
            node["end"] = len(clusters)
            _set_rules(node, each)
        rows = len(clusters)
        for m in range(len(flat) - 1, -1, -1):
            if flat[m].parent >= 0:
                _add_to_parent(nodes[flat[m].parent], nodes[m])
        for node in nodes:
            if node["size"] > 1 and node["period"] > 0:
                node["shadow"] = rows
                rows += node["end"] - node["first"]
        return cls(nodes, clusters)

    def calendars(self, options: CalendarOptions, submit: int, room: int) -> calendar.Calendars:
        """Empty calendars of the clusters, and shadows."""
        step = options.slots.fundamental
        levels = [
            (count or 0, duration, int(options.low_water * (count or 0)))
            for count, duration in options.slots.levels
        ]
        limits = [
            (c.processors, c.processors - int(options.threshold * c.processors + 1e-9)) for c in self.clusters
        ]
        rows = list(limits)
        for node in self.nodes[self.nodes["shadow"] >= 0]:
            rows += limits[node["first"] : node["end"]]
        return calendar.allocate(levels, submit // step * step, rows, room)

    def requests(self, jobs: NDArray[Any], options: CalendarOptions) -> NDArray[Any]:
        """The jobs with managers as homes, and rows for those that may span clusters."""
        _check_jobs(jobs, len(self.clusters), int(self.nodes["nodes"][0]), options)
        requests = jobs.copy()
        leaves = np.flatnonzero(self.nodes["size"] == 1)
        requests["home"] = leaves[jobs["home"]]
        smallest = min(cluster.processors for cluster in self.clusters)
        fits = (requests["nodes"] > smallest) & (requests["nodes"] <= self.nodes["nodes"][0])
        requests["span"] = np.where(fits, np.cumsum(fits) - 1, NOWHERE)
        slowest = min(cluster.speed for cluster in self.clusters)
        if len(jobs) and max(jobs["estimate"].max(), jobs["run"].max()) / slowest > 2**40:
            raise ConfigurationError(f"clusters: with a speed of {slowest:g} jobs would take too long")
        return requests


def _set_rules(node: Any, flat: _Flat) -> None:
    """Rules of a manager as the engine knows them."""
    for name in ("promote_nodes", "promote_duration", "bump", "borrow_limit", "shadow"):
        node[name] = NOWHERE
    rules = flat.rules
    if rules is None:
        return
    given = {
        "promote_nodes": rules.promote_processors,
        "promote_duration": rules.promote_duration,
        "bump": rules.bump,
        "borrow_limit": rules.borrow_limit,
    }
    for name, value in given.items():
        node[name] = NOWHERE if value is None else value
    node["period"] = rules.period
    node["unbiased"] = rules.placement == "unbiased"


def _add_to_parent(parent: Any, child: Any) -> None:
    """Count what a sub-manager has, for its parent; children come last first."""
    slowest = child["speed"] if parent["speed"] == 0 else min(parent["speed"], child["speed"])
    parent["speed"] = slowest
    parent["size"] += child["size"]
    parent["nodes"] += child["nodes"]
    parent["widest"] = max(parent["widest"], child["nodes"])
    parent["end"] = max(parent["end"], child["end"])


def _check_jobs(jobs: NDArray[Any], clusters: int, nodes: int, options: CalendarOptions) -> None:
    """Refuse jobs out of order, homes that do not exist, and reservations that nobody could grant."""
    if (np.diff(jobs["submit"]) < 0).any():
        raise ConfigurationError("jobs: not in order of submission; sort them")
    if len(jobs) and not 0 <= jobs["home"].min() <= jobs["home"].max() < clusters:
        raise ConfigurationError(f"home: give an index of one of the {clusters} clusters for each job")
    if len(jobs) and (jobs["nodes"].min() < 1 or jobs["estimate"].min() < 1 or jobs["run"].min() < 0):
        raise ConfigurationError(
            "jobs: each needs a node or more, an estimate of 1 s or more, and a run time"
        )
    step = options.slots.fundamental
    for j in np.flatnonzero(jobs["reserved"] != NOWHERE):
        job = jobs[j]
        if job["reserved"] < job["submit"]:
            raise ConfigurationError(
                f"reservations: the job at index {j} is to start at {job['reserved']} s, "
                f"before it is submitted at {job['submit']} s; use a later start"
            )
        if job["reserved"] % step or job["reserved"] > LARGEST:
            raise ConfigurationError(
                f"reservations: the job at index {j} is to start at {job['reserved']} s; "
                f"use a multiple of the fundamental slot of {step} s, at most {LARGEST}"
            )
        if job["nodes"] > nodes:
            raise ConfigurationError(
                f"reservations: the job at index {j} asks for {job['nodes']} nodes, and there are {nodes}; "
                "leave it out"
            )


def _result(tree: bookings.Tree) -> CalendarSchedule:
    """What a simulation left behind."""
    plans, segments = tree.plans, tree.segments[: int(tree.counts["segments"][0])]
    segments = segments[np.lexsort((segments["cluster"], segments["start"], segments["job"]))]
    ran = (plans["status"] == Status.DONE) | (plans["status"] == Status.KILLED)
    end_time = np.full(len(plans), -1, np.int64)
    np.maximum.at(end_time, segments["job"], segments["end"])
    home = tree.managers["speed"][tree.jobs["home"]]
    alone = np.ceil(tree.jobs["run"] / home).astype(np.int64)
    asked = tree.jobs["reserved"] != NOWHERE
    granted = asked & (plans["earliest"] == NOWHERE)
    return CalendarSchedule(
        start_time=np.where(ran, plans["first"], -1),
        end_time=end_time,
        run_time=np.where(ran, plans["done"], alone),
        planned_start=plans["promise"].copy(),
        reserved=granted,
        earliest_time=plans["earliest"].copy(),
        status=plans["status"].copy(),
        route=plans["route"].copy(),
        segments=segments,
        counts=_counts(tree, granted, asked, segments),
    )


def _counts(
    tree: bookings.Tree, granted: NDArray[np.bool_], asked: NDArray[np.bool_], segments: NDArray[Any]
) -> dict[str, int]:
    """The counts of a simulation, in the order of `COUNTS`."""
    tally, counts, route = tree.calendars.tally[0], tree.counts[0], tree.plans["route"]
    together = (np.diff(segments["job"]) == 0) & (np.diff(segments["start"]) == 0)
    found = {
        "slots_max": tally["most"],
        "splits": tally["splits"] * len(tree.clusters),
        "operations": tally["operations"],
        "slots_touched": tally["touched"],
        "promoted": (route == Route.PROMOTED).sum(),
        "forwarded": (route == Route.FORWARDED).sum(),
        "bumped": (route == Route.BUMPED).sum(),
        "spanning": len(np.unique(segments["job"][1:][together])),
        "reservations_granted": granted.sum(),
        "reservations_refused": (asked & ~granted).sum(),
        **{name: counts[name] for name in _OF_ENGINE},
    }
    return {name: int(found[name]) for name in COUNTS}


def reach(root: Manager | Cluster) -> int:
    """Processors of the largest job that a tree can run."""
    return sum(cluster.processors for cluster in clusters_of(root))


def describe(root: Manager | Cluster) -> Iterator[str]:
    """One line a manager, for the attributes of a run."""
    for flat in _flatten(root):
        rules = flat.rules
        limits = [
            f"{key} {getattr(rules, key)}"
            for key in (
                "promote_processors",
                "promote_duration",
                "bump",
                "period",
                "placement",
                "borrow_limit",
            )
            if rules is not None and getattr(rules, key) not in (None, 0)
        ]
        nodes = "" if flat.cluster is None else f" ({flat.cluster.processors} processors)"
        yield f"{flat.name}{nodes}: {', '.join(limits) or 'no rules'}"
