"""What a tree of managers makes of jobs: from jobs to starts, segments and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate, Lifecycles
from gridsched.engine.nodes.records import Requeue
from gridsched.engine.records import FOREVER, LARGEST, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.systems.calendars.kernels import bookings, calendar, failures, managers, outages
from gridsched.systems.calendars.kernels.bookings import NOWHERE, Route, Status
from gridsched.systems.calendars.kernels.outages import CAPACITY, CLOSING, EVENT, Step
from gridsched.systems.calendars.tree import Flat, Manager, flatten
from gridsched.systems.job_outcomes import JobOutcome

if TYPE_CHECKING:
    from gridsched.systems.calendars.scheduler import Calendars

FIRST_ROOM = 2048
"""Slots of the open level that there is space for at first; a simulation that needs more is started again."""

_MAX_ROOM = 2**24

_SEED_BITS = 2**63 - 1
"""Larger seeds would be of another type, for which the kernels would be compiled once more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Interruptions:
    """What happens to jobs and nodes besides submissions and ends.

    Parameters
    ----------
    lifecycles : callable
        Makes the lifecycles of the jobs, before anything happened (`job_outcomes.lifecycles_of`).
    outages : OUTAGE[k]
        Outages of the clusters (`job_outcomes.outages_of`).
    clusters : sequence of Cluster
        The clusters, which with the treatment of killed jobs.
    """

    lifecycles: Callable[[], Lifecycles]
    outages: RecordArray
    clusters: Sequence[Cluster]


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
        `kernels.bookings.Status` and `Route`.
    segments : SEGMENT[k]
        Executions by job, start and cluster (`kernels.bookings.SEGMENT`).
    counts : mapping of str to int
        What happened how often, see `COUNTS`, and `COUNTS_OF_OUTAGES` where nodes fail, users give up or jobs
        wait for others.
    broken : bool[n]
        Whether outages did not let its reservation be kept.
    outcomes : JobOutcome, optional
        Outcomes of the jobs where nodes fail, users give up or jobs wait for others.
    """

    start_time: NDArray[np.int64]
    end_time: NDArray[np.int64]
    run_time: NDArray[np.int64]
    planned_start: NDArray[np.int64]
    reserved: NDArray[np.bool_]
    earliest_time: NDArray[np.int64]
    status: NDArray[np.int64]
    route: NDArray[np.int64]
    segments: RecordArray
    counts: dict[str, int]
    broken: NDArray[np.bool_]
    outcomes: JobOutcome | None = None


def together(parts: Sequence[tuple[NDArray[np.int64], int, CalendarSchedule]], jobs: int) -> CalendarSchedule:
    """Job outcomes on clusters each by itself.

    Parameters
    ----------
    parts : sequence of (int64[k], int, CalendarSchedule)
        Places of the jobs of a cluster among all, the index of the cluster, and what was decided there.
    jobs : int
        How many jobs there are in all.
    """
    columns: dict[str, NDArray[Any]] = {}
    outcomes: dict[str, NDArray[np.int64]] = {}
    segments: list[RecordArray] = []
    counts: dict[str, int] = {}
    for own, cluster, part in parts:
        for name in _OF_JOBS:
            values = getattr(part, name)
            columns.setdefault(name, np.zeros(jobs, values.dtype))[own] = values
        for name, values in {} if part.outcomes is None else vars(part.outcomes).items():
            outcomes.setdefault(name, np.zeros(jobs, np.int64))[own] = values
        segments.append(part.segments.copy())
        segments[-1]["job"], segments[-1]["cluster"] = own[part.segments["job"]], cluster
        for name, number in part.counts.items():
            before = counts.get(name, 0)
            counts[name] = max(before, number) if name == "slots_max" else before + number
    whole = np.concatenate(segments)
    order = np.argsort(whole["job"], kind="stable")
    return CalendarSchedule(
        **columns, segments=whole[order], counts=counts, outcomes=JobOutcome(**outcomes) if outcomes else None
    )


_OF_JOBS = (
    "start_time",
    "end_time",
    "run_time",
    "planned_start",
    "reserved",
    "earliest_time",
    "status",
    "route",
    "broken",
)
"""Arrays of jobs of a `CalendarSchedule`."""

COUNTS: dict[str, str] = {
    "slots_max": "slots of the largest calendar",
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

COUNTS_OF_OUTAGES: dict[str, str] = {
    "outage_displaced": "times that a waiting job lost its slots to an outage",
    "reservations_broken": "reservations that could not be kept because of outages",
}
"""What is counted besides where nodes fail, users give up or jobs wait for others."""

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


def schedule_calendars(
    jobs: RecordArray,
    root: Manager | Cluster,
    options: Calendars,
    *,
    seed: int = 0,
    refusals: Sequence[bool] = (),
    interruptions: Interruptions | None = None,
) -> CalendarSchedule:
    """Run jobs through the calendars of a tree of managers.

    Parameters
    ----------
    jobs : REQUEST[n]
        Jobs in order of submission (`kernels.bookings.REQUEST`), `home` the index of a cluster, with
        run times and estimates as at speed 1; `span` is not looked at.
    root : Manager or Cluster
        The tree.
    options : Calendars
        The calendars.
    seed : int
        Seed of the random choices of `unbiased` managers.
    refusals : sequence of bool
        Which of the reserve requests between managers, in their order, are refused whatever the calendar
        says: a test of the two phases.
    interruptions : Interruptions, optional
        What happens to jobs and nodes besides submissions and ends.

    Raises
    ------
    ConfigurationError
        If the tree is none, or jobs are not in order, have no home, or ask for impossible reservations.
    """
    room, segments = FIRST_ROOM, 2 * len(jobs)
    while True:
        tree, conventions = prepare(jobs, root, options, seed, refusals, room, segments, interruptions)
        out = None
        if interruptions is None:
            managers.schedule(tree, conventions, FOREVER)
        else:
            out = prepare_outages(interruptions)
            failures.schedule(tree, out, conventions, FOREVER)
        if not managers.is_short(tree):
            return _result(tree, out)
        room *= 4 if tree.calendars.tally["short"][0] else 1
        segments *= 2 if tree.counts["short"][0] else 1
        if room > _MAX_ROOM:
            raise ConfigurationError(
                f"slots: a calendar of {options.slots} needs more than {_MAX_ROOM} slots of the last level; "
                "give it longer ones"
            )


def prepare(
    jobs: RecordArray,
    root: Manager | Cluster,
    options: Calendars,
    seed: int = 0,
    refusals: Sequence[bool] = (),
    room: int = FIRST_ROOM,
    segments: int = FIRST_ROOM,
    interruptions: Interruptions | None = None,
) -> tuple[bookings.ManagerTree, managers.CalendarOptions]:
    """What the engine simulates, before the first instant.

    Parameters are those of `schedule_calendars`, and for how many slots of the open level and for how many
    executions there is space.
    """
    built = _Built.of(root)
    requests = built.requests(jobs, options, interruptions is not None and len(interruptions.outages) > 0)
    if interruptions is not None:
        built.let_save(interruptions.clusters)
    conventions = managers.CalendarOptions(
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
    if interruptions is not None:
        # `lifecycles` says who enters
        tree.counts["arrival"] = len(jobs)
    return tree, conventions


class _Closing(NamedTuple):
    """A row of `CLOSING`."""

    cluster: int
    first: int
    end: int
    start: int
    until: int
    window: int
    drained: int


def _closings(interruptions: Interruptions, begin: int) -> list[tuple[_Closing, int]]:
    """Outages from a time on, neighbours together, and when each is announced."""
    windows = {
        (k, event.start, event.end, event.time)
        for k, cluster in enumerate(interruptions.clusters)
        for event in cluster.events
        if event.kind == "maintenance"
    }
    found: list[tuple[_Closing, int]] = []
    for cluster, first, end, start, until, announced, drained in interruptions.outages.tolist():
        if until <= begin:
            continue
        window = (cluster, start, until, announced) in windows
        closing = _Closing(cluster, first, end, max(start, begin), until, int(window), drained)
        announced = max(announced, begin)
        if found and found[-1] == (closing._replace(first=found[-1][0].first, end=first), announced):
            closing = closing._replace(first=found.pop()[0].first)
        found.append((closing, announced))
    return found


def prepare_outages(interruptions: Interruptions) -> outages.Outages:
    """Outages and lifecycles, before the first instant."""
    lifecycles = interruptions.lifecycles()
    first = int(lifecycles.jobs["submit"][0]) if len(lifecycles.jobs) else 0
    closings = _closings(interruptions, first)
    events: list[tuple[int, int, int]] = []
    for e, (closing, announced) in enumerate(closings):
        if closing.window:
            events.append((announced, Step.ANNOUNCED, e))
        events.append((closing.start, Step.BEGINS, e))
        if closing.until < FOREVER:
            events.append((closing.until, Step.ENDS, e))
    capacities: RecordArray = np.zeros(len(interruptions.clusters), CAPACITY)
    capacities["total"] = [cluster.processors for cluster in interruptions.clusters]
    capacities["requeue"] = [Requeue[cluster.requeue.upper()] for cluster in interruptions.clusters]
    table = np.array([tuple(closing) for closing, _ in closings], CLOSING)
    return outages.allocate(lifecycles, table, np.array(sorted(events), EVENT), capacities)


@dataclass(frozen=True)
class _Built:
    """A tree as the engine wants it."""

    nodes: RecordArray
    clusters: list[Cluster]

    @classmethod
    def of(cls, root: Manager | Cluster) -> _Built:
        flat = flatten(root)
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

    def calendars(self, options: Calendars, submit: int, room: int) -> calendar.CalendarArrays:
        """Empty calendars of the clusters, and shadows."""
        step = options.slots.fundamental
        levels = [
            (count or 0, duration, int(options.low_water * (count or 0)))
            for count, duration in options.slots.levels
        ]
        limits = [
            (c.processors, c.processors - int(options.threshold * c.processors + 1e-9), c.unit)
            for c in self.clusters
        ]
        rows = list(limits)
        for node in self.nodes[self.nodes["shadow"] >= 0]:
            rows += limits[node["first"] : node["end"]]
        return calendar.allocate(levels, submit // step * step, rows, room)

    def let_save(self, clusters: Sequence[Cluster]) -> None:
        """Let jobs take the checkpoints of their clusters; one that spans several, those of the first."""
        first = [clusters[k] for k in self.nodes["first"]]
        self.nodes["interval"] = [cluster.checkpoint_interval for cluster in first]
        self.nodes["cost"] = [cluster.checkpoint_cost for cluster in first]

    def requests(self, jobs: RecordArray, options: Calendars, fails: bool) -> RecordArray:
        """The jobs with managers as homes, and rows for those that may span clusters."""
        _check_jobs(jobs, len(self.clusters), int(self.nodes["nodes"][0]), options)
        requests = jobs.copy()
        leaves = np.flatnonzero(self.nodes["size"] == 1)
        requests["home"] = leaves[jobs["home"]]
        # Where nodes fail, any job of several nodes may have to span clusters
        smallest = 1 if fails else min(cluster.processors for cluster in self.clusters)
        fits = (requests["nodes"] > smallest) & (requests["nodes"] <= self.nodes["nodes"][0])
        requests["span"] = np.where(fits, np.cumsum(fits) - 1, NOWHERE)
        slowest = min(cluster.speed for cluster in self.clusters)
        if len(jobs) and max(jobs["estimate"].max(), jobs["run"].max()) / slowest > 2**40:
            raise ConfigurationError(f"clusters: with a speed of {slowest:g} jobs would take too long")
        return requests


def _set_rules(node: Any, flat: Flat) -> None:
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
    node["bump_stretch"] = rules.bump_stretch
    node["unbiased"] = rules.placement == "unbiased"


def _add_to_parent(parent: Any, child: Any) -> None:
    """Count what a sub-manager has, for its parent; children come last first."""
    slowest = child["speed"] if parent["speed"] == 0 else min(parent["speed"], child["speed"])
    parent["speed"] = slowest
    parent["size"] += child["size"]
    parent["nodes"] += child["nodes"]
    parent["widest"] = max(parent["widest"], child["nodes"])
    parent["end"] = max(parent["end"], child["end"])


def _check_jobs(jobs: RecordArray, clusters: int, nodes: int, options: Calendars) -> None:
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


def _result(tree: bookings.ManagerTree, out: outages.Outages | None) -> CalendarSchedule:
    """What a simulation left behind."""
    plans, segments = tree.plans, tree.segments[: int(tree.counts["segments"][0])]
    segments = segments[np.lexsort((segments["cluster"], segments["start"], segments["job"]))]
    done = (plans["status"] == Status.DONE) | (plans["status"] == Status.KILLED)
    end_time = np.full(len(plans), -1, np.int64)
    np.maximum.at(end_time, segments["job"], segments["end"])
    home = tree.managers["speed"][tree.jobs["home"]]
    run_time = np.where(
        done, plans["done"] - plans["lost"], np.ceil(tree.jobs["run"] / home).astype(np.int64)
    )
    # One that gave up, or that was never eligible, did not come to ask
    answered = (plans["promise"] != NOWHERE) | (plans["earliest"] != NOWHERE)
    asked = (tree.jobs["reserved"] != NOWHERE) & answered
    granted = asked & (plans["earliest"] == NOWHERE)
    counts = _counts(tree, granted, asked, segments)
    outcomes, broken = None, np.zeros(len(plans), np.bool_)
    if out is not None:
        outcomes = _outcomes(plans, out, run_time, tree.jobs["nodes"])
        broken = out.mishaps["broken"].astype(np.bool_)
        counts |= {
            "outage_displaced": int(out.state["displaced"][0]),
            "reservations_broken": int(broken.sum()),
        }
    return CalendarSchedule(
        start_time=plans["first"].copy(),
        end_time=end_time,
        run_time=run_time,
        planned_start=plans["promise"].copy(),
        reserved=granted,
        earliest_time=np.where(plans["earliest"] == FOREVER, NOWHERE, plans["earliest"]),
        status=plans["status"].copy(),
        route=plans["route"].copy(),
        segments=segments,
        counts=counts,
        broken=broken,
        outcomes=outcomes,
    )


def _outcomes(
    plans: RecordArray, out: outages.Outages, run_time: NDArray[np.int64], nodes: NDArray[np.int64]
) -> JobOutcome:
    """Outcomes of the jobs."""
    fate = out.lifecycles.jobs["fate"].astype(np.int64)
    done = (plans["status"] == Status.DONE) | (plans["status"] == Status.KILLED)
    fate[(fate == int(Fate.COMPLETED)) & ~done] = int(Fate.STARVED)
    return JobOutcome(
        fate=fate,
        killed=out.mishaps["killed"].copy(),
        extra_work=np.where(plans["first"] >= 0, (plans["done"] - run_time) * nodes, 0),
        eligible_time=out.lifecycles.jobs["eligible"].copy(),
    )


def _counts(
    tree: bookings.ManagerTree, granted: NDArray[np.bool_], asked: NDArray[np.bool_], segments: RecordArray
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
