"""What a tree of managers makes of jobs: from jobs to starts, segments and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import bundles, rings
from gridsched.engine.job_lifecycle import Lifecycles, Requeue
from gridsched.engine.records import FOREVER, LARGEST, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster, seconds_at
from gridsched.systems.calendars.kernels import bookings, calendar, managers
from gridsched.systems.calendars.kernels.bookings import NODE, NOWHERE, ManagerTree, Route, Status
from gridsched.systems.calendars.kernels.processors import CAPACITY, CLOSING, Outages
from gridsched.systems.calendars.tree import Manager, flatten
from gridsched.systems.job_outcomes import outage_events, outcomes_of

if TYPE_CHECKING:
    from gridsched.systems.calendars.scheduler import Calendars

FIRST_ROOM = 2048
"""Slots of the open level that there is space for at first; a simulation that needs more is started again."""

_MAX_ROOM = 2**24

_SEED_BITS = 2**63 - 1
"""Larger seeds would be of another type, for which the kernels would be compiled once more."""


class Interruptions(NamedTuple):
    """What happens to jobs and nodes besides submissions and ends."""

    lifecycles: Callable[[], Lifecycles]
    """Makes the lifecycles of the jobs, before anything happened (`job_outcomes.lifecycles_of`)."""
    outages: RecordArray
    """Outages of the clusters (`job_outcomes.outages_of`)."""
    clusters: Sequence[Cluster]
    """The clusters, which with the treatment of killed jobs."""


class CalendarSchedule(NamedTuple):
    """What the managers decided."""

    jobs: dict[str, NDArray[Any]]
    """Columns of the jobs.

    start_time, end_time
        First start and last end, seconds; -1 for a job that did not run.
    run_time
        Seconds of execution; those of the home cluster for a job that did not run.
    planned_start
        Start that each job was given when it was submitted; -1 for a job that was not accepted.
    reserved, broken
        Whether its reservation was granted, and whether outages did not let it be kept.
    earliest_time
        Earliest start that a refused reservation could have had; -1 for other jobs.
    status, route
        `kernels.bookings.Status` and `Route`.
    fate, killed, extra_work, eligible_time
        As of `JobOutcome`, where nodes fail, users give up or jobs wait for others.
    """
    clusters: RecordArray
    """What clusters did for each other (`kernels.bookings.CLUSTER`)."""
    segments: RecordArray
    """Executions by job, start and cluster (`kernels.bookings.SEGMENT`)."""
    counts: dict[str, int]
    """What happened how often, see `COUNTS`, and `COUNTS_OF_OUTAGES` where nodes fail, users give up or jobs
    wait for others."""


def together(
    parts: Sequence[tuple[NDArray[np.int64], int, CalendarSchedule]], jobs: int, clusters: int
) -> CalendarSchedule:
    """Job outcomes on clusters each by itself.

    Parameters
    ----------
    parts : sequence of (int64[k], int, CalendarSchedule)
        Places of the jobs of a cluster among all, the index of the cluster, and what was decided there.
    jobs, clusters : int
        How many there are in all.
    """
    whole = CalendarSchedule({}, np.zeros(clusters, bookings.CLUSTER), np.empty(0, bookings.SEGMENT), {})
    segments: list[RecordArray] = []
    for own, cluster, part in parts:
        for name, values in part.jobs.items():
            whole.jobs.setdefault(name, np.zeros(jobs, values.dtype))[own] = values
        whole.clusters[cluster] = part.clusters[0]
        part.segments["job"], part.segments["cluster"] = own[part.segments["job"]], cluster
        segments.append(part.segments)
        for name, number in part.counts.items():
            before = whole.counts.get(name, 0)
            whole.counts[name] = max(before, number) if name == "slots_max" else before + number
    found = np.concatenate(segments)
    return whole._replace(segments=found[np.argsort(found["job"], kind="stable")])


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
        run times and estimates as at their speeds; `span` is not looked at.
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
        If the tree is none, or jobs ask for impossible reservations.
    """
    room, segments = FIRST_ROOM, 2 * len(jobs)
    while True:
        tree, outages = prepare(jobs, root, options, seed, refusals, room, segments, interruptions)
        managers.schedule(tree, outages, FOREVER)
        has_slots = not tree.calendars.tally["short"][0]
        has_segments = tree.counts["segments"][0] <= segments
        if has_slots and has_segments:
            return _result(tree, outages)
        room *= 1 if has_slots else 4
        segments *= 1 if has_segments else 2
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
) -> tuple[ManagerTree, Outages | None]:
    """What the engine simulates, before the first instant.

    Parameters are those of `schedule_calendars`, and for how many slots of the open level and for how many
    executions there is space.
    """
    nodes, order, clusters = _managers(root)
    _check_reservations(jobs, int(nodes["nodes"][0]), options)
    submit = int(jobs["submit"][0]) if len(jobs) else 0
    origin = submit // options.slots.fundamental * options.slots.fundamental
    nodes["refresh"] = np.where(nodes["shadow"] >= 0, origin, FOREVER)
    smallest = min(cluster.processors for cluster in clusters)
    outages = None
    if interruptions is not None:
        outages = _outages(interruptions, submit)
        # One that spans several clusters takes the checkpoints of the first
        for node in nodes:
            first = interruptions.clusters[node["first"]]
            node["interval"], node["cost"] = first.checkpoint_interval, first.checkpoint_cost
        # Where nodes fail, any job of several nodes may have to span clusters
        smallest = 1 if len(interruptions.outages) else smallest
    requests = jobs.copy()
    requests["home"] = np.flatnonzero(nodes["size"] == 1)[jobs["home"]]
    spans = (jobs["nodes"] > smallest) & (jobs["nodes"] <= nodes["nodes"][0])
    requests["span"] = np.where(spans, np.cumsum(spans) - 1, NOWHERE)
    tree = bookings.allocate(
        _calendars(nodes, clusters, options, origin, room),
        requests,
        nodes,
        segments,
        order=order,
        refusals=np.array(refusals, np.uint8).reshape(-1),
        seed=int(seed) & _SEED_BITS,
        suspend=options.overrun == "suspend",
        queue=options.refused == "queue",
    )
    return tree, outages


def _managers(root: Manager | Cluster) -> tuple[RecordArray, NDArray[np.int64], list[Cluster]]:
    """The managers of a tree as the engine knows them, in which order they come, and its clusters."""
    flat = flatten(root)
    nodes: RecordArray = np.zeros(len(flat), NODE)
    nodes["parent"] = [each.parent for each in flat]
    nodes["unbiased"] = [each.rule("placement") == "unbiased" for each in flat]
    for name in ("promote_processors", "promote_duration", "bump", "bump_stretch", "period", "borrow_limit"):
        nodes[name] = [NOWHERE if each.rule(name) is None else each.rule(name) for each in flat]
    nodes["size"] = 1
    for m in range(len(flat) - 1, 0, -1):
        nodes["size"][flat[m].parent] += nodes["size"][m]
    clusters: list[Cluster] = []
    for m, node in enumerate(nodes):
        below = [each.cluster for each in flat[m : m + node["size"]] if each.cluster is not None]
        node["first"], node["end"] = len(clusters), len(clusters) + len(below)
        node["nodes"] = sum(cluster.processors for cluster in below)
        node["speed"] = min(cluster.speed for cluster in below)
        clusters += below if node["size"] == 1 else []
    np.maximum.at(nodes["widest"], nodes["parent"][1:], nodes["nodes"][1:])
    has_shadows = (nodes["size"] > 1) & (nodes["period"] > 0)
    rows = np.where(has_shadows, nodes["end"] - nodes["first"], 0)
    nodes["shadow"] = np.where(has_shadows, len(clusters) + np.cumsum(rows) - rows, NOWHERE)
    return nodes, np.argsort([each.depth for each in flat], kind="stable"), clusters


def _calendars(
    nodes: RecordArray, clusters: Sequence[Cluster], options: Calendars, origin: int, room: int
) -> calendar.CalendarArrays:
    """Empty calendars of the clusters, and shadows."""
    levels = [
        (count or 0, duration, int(options.low_water * (count or 0)))
        for count, duration in options.slots.levels
    ]
    rows = [
        (c.processors, c.processors - int(options.threshold * c.processors + 1e-9), c.unit) for c in clusters
    ]
    shadows = [rows[node["first"] : node["end"]] for node in nodes if node["shadow"] >= 0]
    return calendar.allocate(levels, origin, [*rows, *chain(*shadows)], room)


def _outages(interruptions: Interruptions, begin: int) -> Outages:
    """Outages from a time on, neighbours together, and lifecycles, before the first instant."""
    clusters = interruptions.clusters
    affected = set(interruptions.outages["cluster"].tolist())
    sizes = [cluster.processors if k in affected else 0 for k, cluster in enumerate(clusters)]
    capacities: RecordArray = np.zeros(len(clusters), CAPACITY)
    capacities["end"] = np.cumsum(sizes)
    capacities["first"] = capacities["end"] - sizes
    capacities["requeue"] = [Requeue[cluster.requeue.upper()] for cluster in clusters]
    windows = {
        (k, event.start, event.end, event.time)
        for k, cluster in enumerate(clusters)
        for event in cluster.events
        if event.kind == "maintenance"
    }
    found: list[list[int]] = []
    for k, first, end, start, until, announced, drained in interruptions.outages.tolist():
        window = (k, start, until, announced) in windows
        of_cluster = int(capacities["first"][k])
        row = [of_cluster + end, k, max(announced, begin), max(start, begin), until, window, drained]
        if until > begin and found and found[-1][1:] == [of_cluster + first, *row[1:]]:
            found[-1][1] = row[0]
        elif until > begin:
            found.append([of_cluster + first, *row])
    closings = np.array([tuple(row) for row in found], CLOSING)
    return bundles.allocate(
        Outages,
        {"processors": sum(sizes)},
        lifecycles=interruptions.lifecycles(),
        closings=closings,
        events=outage_events(closings["announced"], closings["start"], closings["until"]),
        capacities=capacities,
        known=rings.allocate(1, np.arange(len(closings))),
    )


def _check_reservations(jobs: RecordArray, nodes: int, options: Calendars) -> None:
    """Refuse reservations that nobody could grant."""
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


def _result(tree: ManagerTree, outages: Outages | None) -> CalendarSchedule:
    """What a simulation left behind."""
    plans, requests, segments = tree.plans, tree.jobs, tree.segments[: int(tree.counts["segments"][0])]
    done = np.isin(plans["status"], (Status.DONE, Status.KILLED))
    at_home = seconds_at(tree.managers["speed"][requests["home"]], requests["run"], requests["speed"])
    # One that gave up, or that was never eligible, did not come to ask
    answered = (plans["promise"] != NOWHERE) | (plans["earliest"] != NOWHERE)
    asked = (requests["reserved"] != NOWHERE) & answered
    jobs = {
        "start_time": plans["first"],
        "end_time": plans["ended"],
        "run_time": np.where(done, plans["useful"], at_home),
        "planned_start": plans["promise"],
        "reserved": asked & (plans["earliest"] == NOWHERE),
        "earliest_time": np.where(plans["earliest"] == FOREVER, NOWHERE, plans["earliest"]),
        "status": plans["status"],
        "route": plans["route"],
        "broken": plans["broken"] != 0,
    }
    segments = segments[np.lexsort((segments["cluster"], segments["start"], segments["job"]))]
    counts = _counts(tree, jobs["reserved"], asked, segments)
    if outages is not None:
        lost = np.where(plans["first"] >= 0, (plans["done"] - jobs["run_time"]) * requests["nodes"], 0)
        jobs |= vars(outcomes_of(outages.lifecycles.jobs, done, lost))
        counts |= {
            "outage_displaced": int(tree.counts["outage_displaced"][0]),
            "reservations_broken": int(plans["broken"].sum()),
        }
    columns = {name: np.ascontiguousarray(values) for name, values in jobs.items()}
    return CalendarSchedule(columns, tree.clusters, segments, counts)


def _counts(
    tree: ManagerTree, granted: NDArray[np.bool_], asked: NDArray[np.bool_], segments: RecordArray
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
    }
    return {name: int(found[name] if name in found else counts[name]) for name in COUNTS}
