"""Calendars where nodes fail, users give up and jobs wait for others: against the oracle, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine import lives
from gridsched.engine.lives import LIFE, Dependency, Fate
from gridsched.engine.records import FOREVER
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.systems.calendars.kernels import bookings
from gridsched.systems.calendars.planning import CalendarSchedule, Happenings, schedule_calendars
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, clusters_of
from gridsched.systems.fates import dependents_of, outages_of
from gridsched.workloads.dependencies import DEPENDENCY
from tests.oracles.calendars import NONE, Job, Simulation
from tests.systems.calendars.test_managers import trees
from tests.systems.calendars.test_scheduler import COMPARED, calendar_options, records, streams

Problem = tuple[list[Job], Manager | Cluster, Calendars, list[bool], int]


def lives_of_jobs(jobs: list[Job], reach: int) -> lives.Lives:
    """Lives that have not begun."""
    table = np.array(
        [(j, on, int(kind), delay) for j, job in enumerate(jobs) for on, kind, delay in job.needs], DEPENDENCY
    )
    rows = np.zeros(len(jobs), LIFE)
    for row, job in zip(rows, jobs, strict=True):
        row["submit"], row["failed"], row["unmet"] = job.submit_time, job.failed, 1 + len(job.needs)
        row["gives_up"] = FOREVER if job.gives_up == NONE else job.gives_up
        row["fate"] = int(Fate.REJECTED if job.processors > reach else Fate.COMPLETED)
    return lives.allocate(rows, *dependents_of(table, len(rows)))


def run(jobs: list[Job], root: Manager | Cluster, options: Calendars, **more: Any) -> CalendarSchedule:
    """Schedule of jobs with lives on clusters with events."""
    clusters = clusters_of(root)
    happenings = Happenings(
        lives=lambda: lives_of_jobs(jobs, sum(cluster.processors for cluster in clusters)),
        outages=outages_of(clusters),
        clusters=clusters,
    )
    return schedule_calendars(records(jobs), root, options, happenings=happenings, **more)


def check_against_oracle(
    jobs: list[Job], root: Manager | Cluster, options: Calendars, refusals: list[bool], seed: int
) -> CalendarSchedule:
    """Starts, ends, promises, executions, fates and counts are those of the oracle."""
    done = run(jobs, root, options, seed=seed, refusals=refusals)
    oracle = Simulation(
        jobs, root, options, rank=lambda job, which: int(bookings.rank(seed, job, which)), refusals=refusals
    ).run()
    lived = done.lived
    assert lived is not None
    assert [Fate(fate) for fate in lived.fate.tolist()] == oracle.fate
    assert done.start_time.tolist() == oracle.start
    assert done.end_time.tolist() == oracle.end
    assert done.planned_start.tolist() == oracle.planned
    assert done.earliest_time.tolist() == oracle.earliest
    assert [tuple(segment.tolist()) for segment in done.segments] == oracle.segments
    assert lived.killed.tolist() == oracle.killed
    assert done.broken.tolist() == oracle.broken
    for j, fate in enumerate(oracle.fate):
        if fate == Fate.COMPLETED:
            assert done.run_time[j] == oracle.useful[j]
    names = (*COMPARED, "outage_displaced")
    assert {name: done.counts[name] for name in names} == {name: oracle.counts[name] for name in names}
    return done


# --- strategies -----------------------------------------------------------------------------------


def with_clusters(item: Manager | Cluster, clusters: list[Cluster]) -> Manager | Cluster:
    """A tree with other clusters, in the order of its leaves, which are taken off the list."""
    if isinstance(item, Cluster):
        return clusters.pop(0)
    return replace(item, children=[with_clusters(child, clusters) for child in item.children])


@st.composite
def events(draw: st.DrawFn, nodes: int, first: int) -> list[NodeEvent]:
    """Events of a cluster with so many nodes; many at few times."""
    times = st.integers(max(first - 10, 0), first + 70)
    found = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3, 6]))):
        node = f"node{draw(st.integers(0, nodes - 1))}" if draw(st.integers(0, 3)) else "*"
        kind: Any = draw(st.sampled_from(["down", "down", "maintenance", "maintenance", "drain"]))
        time, length = draw(times), draw(st.sampled_from([0, 1, 3, 8, 20, 60]))
        if kind == "maintenance":
            start = time + draw(st.sampled_from([0, 0, 1, 7, 30]))
            found.append(
                NodeEvent(time=time, node=node, kind="maintenance", start=start, end=start + length + 1)
            )
        else:
            end: Any = {"down": "up", "drain": "resume"}[kind]
            found.append(NodeEvent(time=time, node=node, kind=kind))
            if draw(st.integers(0, 5)):
                found.append(NodeEvent(time=time + length, node=node, kind=end))
    return found


@st.composite
def lived(draw: st.DrawFn, jobs: list[Job]) -> list[Job]:
    """The jobs with users who give up, and dependencies."""
    wants, needs = draw(st.booleans()), draw(st.booleans())
    found = []
    for j, job in enumerate(jobs):
        gives_up = NONE
        if wants and draw(st.booleans()):
            gives_up = job.submit_time + draw(st.sampled_from([0, 1, 5, 12, 30]))
        on: list[tuple[int, Dependency, int]] = []
        if needs and j and draw(st.integers(0, 2)) == 0:
            for _ in range(draw(st.integers(1, 2))):
                delay = draw(st.sampled_from([0, 0, 3]))
                on.append((draw(st.integers(0, j - 1)), draw(st.sampled_from(list(Dependency))), delay))
        failed = needs and draw(st.integers(0, 4)) == 0
        found.append(job._replace(gives_up=gives_up, needs=tuple(on), failed=failed))
    return found


@st.composite
def problems(draw: st.DrawFn, *, depth: int = 2, accurate: bool | None = None) -> Problem:
    """Jobs with lives on a tree of clusters with events."""
    options = draw(calendar_options())
    accurate = draw(st.booleans()) if accurate is None else accurate
    root = draw(trees(depth, [1.0] if accurate else [1.0, 1.0, 2.0, 0.7]))
    clusters = clusters_of(root)
    sizes = [cluster.processors for cluster in clusters]
    jobs = draw(lived(draw(streams(sizes, options.slots.fundamental, accurate=accurate))))
    first = jobs[0].submit_time if jobs else 0
    changed = []
    for cluster in clusters:
        interval, cost = draw(st.sampled_from([(0, 0), (0, 0), (3, 0), (5, 1), (10, 3)]))
        changed.append(
            replace(
                cluster,
                events=draw(events(cluster.processors // cluster.processors_per_node, first)),
                requeue=draw(st.sampled_from(["place", "place", "end", "lost"])),
                checkpoint_interval=interval,
                checkpoint_cost=cost,
            )
        )
    refusals = draw(st.lists(st.booleans(), max_size=4)) if draw(st.integers(0, 4)) == 0 else []
    return jobs, with_clusters(root, changed), options, refusals, draw(st.integers(0, 2**31))


# --- against the oracle ---------------------------------------------------------------------------


@given(problem=problems(depth=0))
@settings(max_examples=60)
def test_schedules_of_one_cluster_equal_the_oracle(problem: Problem) -> None:
    check_against_oracle(*problem)


@given(problem=problems(depth=2))
@settings(max_examples=60)
def test_schedules_of_trees_equal_the_oracle(problem: Problem) -> None:
    check_against_oracle(*problem)
