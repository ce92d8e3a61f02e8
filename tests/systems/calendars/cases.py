"""Jobs under trees of managers, with and without failures, for the engine and for the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.platform import Cluster
from gridsched.systems.calendars.kernels import bookings
from gridsched.systems.calendars.kernels.bookings import REQUEST, ManagerTree
from gridsched.systems.calendars.planning import CalendarSchedule, Interruptions, schedule_calendars
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan, clusters_of
from gridsched.systems.job_outcomes import outages_of
from tests.oracles.calendars import NONE, Job, Simulation, submissions_of
from tests.oracles.users import NEVER
from tests.support.engine import lifecycles
from tests.support.fields import assert_fields
from tests.support.strategies import lives, node_events

TENS = Calendars(slots=SlotPlan(levels=[(None, 10)]))
"""Slots of 10 s only."""

COMPARED = (
    "slots_max",
    "splits",
    "moves",
    "early_exits",
    "displaced",
    "delayed",
    "killed",
    "suspended",
    "promoted",
    "forwarded",
    "bumped",
    "kept_home",
    "over_limit",
    "inquiries",
    "failed_inquiries",
    "aborts",
    "messages",
)
"""Counts that the oracle knows, too."""


class Problem(NamedTuple):
    """Jobs, their clusters and managers, the calendars, reserve requests that are refused, and a seed."""

    jobs: list[Job]
    root: Manager | Cluster
    options: Calendars
    refusals: list[bool]
    seed: int


def records(jobs: list[Job]) -> NDArray[Any]:
    """The jobs of the oracle as the engine takes them."""
    table = np.zeros(len(jobs), REQUEST)
    for record, job in zip(table, jobs, strict=True):
        record["submit"], record["run"], record["estimate"] = job.submit_time, job.run_time, job.estimate
        record["nodes"], record["home"], record["reserved"] = job.processors, job.home, job.reserved
        record["speed"] = job.speed
    return table


def interruptions_of(jobs: list[Job], root: Manager | Cluster) -> Interruptions | None:
    """Lifecycles of the jobs, and outages of the clusters, if there are any."""
    clusters = clusters_of(root)
    if not any(cluster.events or cluster.checkpoint_interval for cluster in clusters) and all(
        (job.gives_up, job.failed, job.needs) == (NEVER, False, ()) for job in jobs
    ):
        return None
    reach = sum(cluster.processors for cluster in clusters)
    large = [j for j, job in enumerate(jobs) if job.processors > reach]
    return Interruptions(
        lifecycles=lambda: lifecycles(submissions_of(jobs), large),
        outages=outages_of(clusters),
        clusters=clusters,
    )


def run(
    jobs: list[Job], root: Manager | Cluster | int, options: Calendars | SlotPlan = TENS, **more: Any
) -> CalendarSchedule:
    """Schedule of the jobs; a number is a cluster of so many nodes."""
    if isinstance(root, int):
        root = Cluster(processors=root)
    if isinstance(options, SlotPlan):
        options = Calendars(slots=options)
    interruptions = interruptions_of(jobs, root)
    return schedule_calendars(records(jobs), root, options, interruptions=interruptions, **more)


def check_against_oracle(problem: Problem) -> None:
    """Starts, ends, promises, executions, fates and counts are those of the oracle."""
    jobs, root, options, refusals, seed = problem
    done = run(jobs, root, options, seed=seed, refusals=refusals)
    oracle = Simulation(
        jobs, root, options, rank=lambda job, which: int(bookings.rank(seed, job, which)), refusals=refusals
    ).run()
    assert_fields(
        done.jobs,
        start_time=oracle.start,
        end_time=oracle.end,
        planned_start=oracle.planned,
        earliest_time=oracle.earliest,
    )
    assert [tuple(segment.tolist()) for segment in done.segments] == oracle.segments
    assert_fields(done.counts, **{name: oracle.counts[name] for name in COMPARED})
    if interruptions_of(jobs, root) is not None:
        assert [Fate(fate).name.lower().replace("_", " ") for fate in done.jobs["fate"]] == oracle.fate
        assert_fields(done.jobs, killed=oracle.killed, broken=oracle.broken)
        assert done.counts["outage_displaced"] == oracle.counts["outage_displaced"]
        completed = [j for j, fate in enumerate(oracle.fate) if fate == "completed"]
        assert done.jobs["run_time"][completed].tolist() == [oracle.useful[j] for j in completed]


def check_worked(done: CalendarSchedule, **expected: Any) -> None:
    """Columns of the jobs, counts of the run (`total_`), and facts of each execution.

    These are `clusters`, `shares` (job and nodes), and `spans` (job, nodes, start and end).
    """
    found: dict[str, Any] = {
        **done.jobs,
        **{f"total_{name}": value for name, value in done.counts.items()},
        "clusters": done.segments["cluster"].tolist(),
        "shares": done.segments[["job", "processors"]].tolist(),
        "spans": done.segments[["job", "processors", "start", "end"]].tolist(),
    }
    assert_fields(found, **expected)


def slots_of(tree: ManagerTree, row: int = 0) -> list[tuple[int, int, int]]:
    """Begin, end and free nodes of the slots of a calendar that were ever needed."""
    found = []
    for level, slot in enumerate(tree.calendars.levels):
        last = level + 1 == len(tree.calendars.levels)
        for number in range(slot["first"], tree.calendars.tally["grown"][0] if last else slot["end"]):
            begin = int(slot["origin"] + number * slot["duration"])
            free = int(tree.calendars.free[row, slot["base"] + (number & slot["mask"])])
            found.append((begin, begin + int(slot["duration"]), free))
    return found


# --- strategies -----------------------------------------------------------------------------------


@st.composite
def slot_plans(draw: st.DrawFn) -> SlotPlan:
    """One to four levels of short slots."""
    durations = [draw(st.sampled_from([1, 2, 5]))]
    for factor in draw(st.lists(st.sampled_from([2, 3, 4]), max_size=3)):
        durations.append(durations[-1] * factor)
    levels: list[tuple[int | None, int]] = [(draw(st.integers(1, 4)), each) for each in durations[:-1]]
    return SlotPlan(levels=[*levels, (None, durations[-1])])


@st.composite
def calendar_options(draw: st.DrawFn) -> Calendars:
    return Calendars(
        slots=draw(slot_plans()),
        low_water=draw(st.sampled_from([0.5, 0, 0.9])),
        threshold=draw(st.sampled_from([1, 1, 0.5, 0.75])),
        overrun=draw(st.sampled_from(["suspend", "kill"])),
        refused=draw(st.sampled_from(["reject", "queue"])),
    )


@st.composite
def streams(draw: st.DrawFn, nodes: list[int], unit: int, *, accurate: bool) -> list[Job]:
    """Jobs by submit time, some with reservations, a few too large; `accurate` estimates are upper bounds."""
    jobs: list[Job] = []
    submit = draw(st.sampled_from([0, 7, 100]))
    for _ in range(draw(st.integers(0, 14))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5, 20]))
        estimate = draw(st.integers(1, 30))
        kinds = [st.just(estimate), st.integers(0, estimate)]
        run_time = draw(st.one_of(kinds if accurate else [*kinds, st.integers(1, 60)]))
        home = draw(st.integers(0, len(nodes) - 1))
        size = draw(st.integers(1, nodes[home]) | st.integers(1, sum(nodes)))
        kind = draw(st.integers(0, 9))
        reserved = NONE
        if kind < 2:
            reserved = -(-(submit + draw(st.sampled_from([0, 3, 10, 30]))) // unit) * unit
        elif kind == 9:
            size = draw(st.sampled_from([size, sum(nodes) + 1]))
        jobs.append(Job(submit, run_time, estimate, size, home, reserved))
    return jobs


def whole_nodes() -> st.SearchStrategy[dict[str, Any]]:
    """Processors of a node, and whether jobs take whole ones; mostly not."""
    return st.sampled_from([(1, False), (1, False), (2, False), (2, True), (3, True)]).map(
        lambda drawn: {"processors_per_node": drawn[0], "node_exclusive": drawn[1]}
    )


@st.composite
def rules(draw: st.DrawFn, *, is_local: bool) -> dict[str, Any]:
    """Rules of a manager; most are absent most of the time."""
    chosen: dict[str, Any] = {
        "promote_processors": draw(st.none() | st.integers(1, 6)),
        "promote_duration": draw(st.none() | st.integers(1, 30)),
        "bump": draw(st.sampled_from([None, None, 0, 3, 10])),
    }
    if chosen["bump"] is not None:
        chosen["bump_stretch"] = draw(st.sampled_from([0, 0, 1, 3]))
    if is_local:
        chosen["borrow_limit"] = draw(st.sampled_from([None, None, 0, 20]))
    else:
        chosen["period"] = draw(st.sampled_from([0, 0, 1, 3, 7, 20]))
        chosen["placement"] = draw(st.sampled_from(["lowest", "lowest", "unbiased"]))
    return chosen


@st.composite
def trees(draw: st.DrawFn, depth: int, speeds: list[float], name: str = "n") -> Manager | Cluster:
    """A tree of managers of at most this depth."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        nodes = draw(st.sampled_from([1, 2, 3, 4, 6]))
        whole = draw(whole_nodes())
        nodes *= whole["processors_per_node"]
        cluster = Cluster(name=name, processors=nodes, speed=draw(st.sampled_from(speeds)), **whole)
        if draw(st.booleans()):
            return cluster
        return Manager(name=name, children=[cluster], **draw(rules(is_local=True)))
    children = [
        draw(trees(depth - 1, speeds, f"{name}{k}")) for k in range(draw(st.sampled_from([2, 2, 3, 1])))
    ]
    return Manager(name=name, children=children, **draw(rules(is_local=False)))


def with_clusters(item: Manager | Cluster, clusters: list[Cluster]) -> Manager | Cluster:
    """A tree with other clusters, in the order of its leaves, which are taken off the list."""
    if isinstance(item, Cluster):
        return clusters.pop(0)
    return replace(item, children=[with_clusters(child, clusters) for child in item.children])


@st.composite
def problems(draw: st.DrawFn, *, depth: int = 2, accurate: bool = False, failing: bool = False) -> Problem:
    """Jobs on a tree of clusters; where it is `failing` they have lifecycles, and clusters have events."""
    options = draw(calendar_options())
    root = draw(trees(depth, [1.0] if accurate else [1.0, 1.0, 2.0, 0.7]))
    clusters = clusters_of(root)
    jobs = draw(streams([each.processors for each in clusters], options.slots.fundamental, accurate=accurate))
    if draw(st.booleans()):
        jobs = [job._replace(speed=clusters[job.home].speed) for job in jobs]
    refusals = draw(st.lists(st.booleans(), max_size=8)) if draw(st.integers(0, 3)) == 0 else []
    if failing:
        told = draw(lives([job.submit_time for job in jobs]))
        jobs = [
            job._replace(gives_up=life.gives_up, failed=life.failed, needs=life.after)
            for job, life in zip(jobs, told, strict=True)
        ]
        first = jobs[0].submit_time if jobs else 0
        root = with_clusters(root, [draw(with_events(cluster, first)) for cluster in clusters])
    return Problem(jobs, root, options, refusals, draw(st.integers(0, 2**31)))


@st.composite
def with_events(draw: st.DrawFn, cluster: Cluster, first: int) -> Cluster:
    """A cluster whose nodes fail."""
    interval, cost = draw(st.sampled_from([(0, 0), (0, 0), (3, 0), (5, 1), (10, 3)]))
    return replace(
        cluster,
        events=draw(node_events(cluster.processors // cluster.processors_per_node, first)),
        requeue=draw(st.sampled_from(["place", "place", "end", "lost"])),
        checkpoint_interval=interval,
        checkpoint_cost=cost,
    )
