"""Calendars where nodes fail, users give up and jobs wait for others: against the oracle, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import LIFE, Dependency, Fate
from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.kernels import bookings, managers
from gridsched.systems.calendars.planning import (
    CalendarSchedule,
    Interruptions,
    prepare,
    schedule_calendars,
)
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan, clusters_of
from gridsched.systems.job_outcomes import dependents_of, outages_of
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import DEPENDENCY, dependency_table
from tests.oracles.calendars import NONE, Job, Simulation
from tests.support.fields import assert_fields
from tests.systems.calendars.test_managers import TENS, local, trees
from tests.systems.calendars.test_scheduler import COMPARED, calendar_options, records, slots_of, streams

Problem = tuple[list[Job], Manager | Cluster, Calendars, list[bool], int]


def lifecycles_of_jobs(jobs: list[Job], reach: int) -> job_lifecycle.Lifecycles:
    """Lifecycles that have not begun."""
    table = np.array(
        [(j, on, int(kind), delay) for j, job in enumerate(jobs) for on, kind, delay in job.needs], DEPENDENCY
    )
    rows = np.zeros(len(jobs), LIFE)
    for row, job in zip(rows, jobs, strict=True):
        row["submit"], row["failed"], row["unmet"] = job.submit_time, job.failed, 1 + len(job.needs)
        row["gives_up"] = FOREVER if job.gives_up == NONE else job.gives_up
        row["fate"] = int(Fate.REJECTED if job.processors > reach else Fate.COMPLETED)
    return job_lifecycle.allocate(rows, *dependents_of(table, len(rows)))


def interruptions_of(jobs: list[Job], root: Manager | Cluster) -> Interruptions:
    """Lifecycles of the jobs, and outages of the clusters."""
    clusters = clusters_of(root)
    return Interruptions(
        lifecycles=lambda: lifecycles_of_jobs(jobs, sum(cluster.processors for cluster in clusters)),
        outages=outages_of(clusters),
        clusters=clusters,
    )


def run(jobs: list[Job], root: Manager | Cluster, options: Calendars = TENS, **more: Any) -> CalendarSchedule:
    """Schedule of jobs with lifecycles on clusters with events."""
    interruptions = interruptions_of(jobs, root)
    return schedule_calendars(records(jobs), root, options, interruptions=interruptions, **more)


def check_against_oracle(
    jobs: list[Job], root: Manager | Cluster, options: Calendars, refusals: list[bool], seed: int
) -> CalendarSchedule:
    """Starts, ends, promises, executions, fates and counts are those of the oracle."""
    done = run(jobs, root, options, seed=seed, refusals=refusals)
    oracle = Simulation(
        jobs, root, options, rank=lambda job, which: int(bookings.rank(seed, job, which)), refusals=refusals
    ).run()
    assert [Fate(fate) for fate in done.jobs["fate"].tolist()] == oracle.fate
    assert done.jobs["start_time"].tolist() == oracle.start
    assert done.jobs["end_time"].tolist() == oracle.end
    assert done.jobs["planned_start"].tolist() == oracle.planned
    assert done.jobs["earliest_time"].tolist() == oracle.earliest
    assert [tuple(segment.tolist()) for segment in done.segments] == oracle.segments
    assert done.jobs["killed"].tolist() == oracle.killed
    assert done.jobs["broken"].tolist() == oracle.broken
    for j, fate in enumerate(oracle.fate):
        if fate == Fate.COMPLETED:
            assert done.jobs["run_time"][j] == oracle.useful[j]
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
def with_lifecycles(draw: st.DrawFn, jobs: list[Job]) -> list[Job]:
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
    """Jobs with lifecycles on a tree of clusters with events."""
    options = draw(calendar_options())
    accurate = draw(st.booleans()) if accurate is None else accurate
    root = draw(trees(depth, [1.0] if accurate else [1.0, 1.0, 2.0, 0.7]))
    clusters = clusters_of(root)
    sizes = [cluster.processors for cluster in clusters]
    jobs = draw(with_lifecycles(draw(streams(sizes, options.slots.fundamental, accurate=accurate))))
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


@given(problem=problems(depth=2))
@settings(max_examples=60)
def test_no_slot_is_overdrawn_at_any_instant(problem: Problem) -> None:
    """Nor does any processor run a job while it is out for a time that nobody knows, unless it is drained."""
    jobs, root, options, refusals, _ = problem
    interruptions = interruptions_of(jobs, root)
    tree, outages = prepare(records(jobs), root, options, refusals=refusals, interruptions=interruptions)
    assert outages is not None
    while (now := managers.schedule(tree, outages, 1)) >= 0:
        for k in range(len(tree.clusters)):
            assert all(free >= 0 for begin, _, free in slots_of(tree, k) if begin >= now)
        running = np.flatnonzero(tree.plans["status"] == bookings.Status.RUNNING)
        assert set(outages.owner[outages.owner >= 0].tolist()) <= set(running.tolist())


@given(problem=problems(depth=1))
@settings(max_examples=60)
def test_every_run_passes_the_verifier(problem: Problem) -> None:
    jobs, root, options, _, seed = problem
    table = [
        (j, on, kind.name.lower().replace("_", ""), delay)
        for j, job in enumerate(jobs)
        for on, kind, delay in job.needs
    ]
    if not jobs:
        return
    asked = [
        job.reserved if job.processors <= sum(c.processors for c in clusters_of(root)) else -1 for job in jobs
    ]
    workload = Workload(
        name="random",
        submit_time=np.array([job.submit_time for job in jobs]),
        run_time=np.array([job.run_time for job in jobs]),
        requested_time=np.array([job.estimate for job in jobs]),
        requested_processors=np.array([job.processors for job in jobs]),
        status=np.array([0 if job.failed else 1 for job in jobs]),
        home=np.array([job.home for job in jobs]),
        reserved_start=np.array(asked),
        gives_up_time=np.array([job.gives_up for job in jobs]),
        dependencies=dependency_table(table),
    )
    done = simulate(workload, clusters_of(root), replace(options, managers=root), times="unit", seed=seed)
    verify(done)
    assert done["supplied"].sum() == done["consumed"].sum()


# --- worked examples ------------------------------------------------------------------------------

FOUR = Cluster(name="a", processors=4, processors_per_node=2)
"""Two nodes of two processors."""


def event(time: int, kind: Any, node: str = "node0", **window: int) -> NodeEvent:
    return NodeEvent(time=time, kind=kind, node=node, **window)


def fails(*events: NodeEvent, **more: Any) -> Cluster:
    """The cluster of two nodes with events."""
    return replace(FOUR, events=events, **more)


def fates(done: CalendarSchedule) -> list[Fate]:
    return [Fate(fate) for fate in done.jobs["fate"].tolist()]


def spans(done: CalendarSchedule) -> list[tuple[int, int, int, int]]:
    """Job, nodes, start and end of each execution."""
    return [(int(s["job"]), int(s["processors"]), int(s["start"]), int(s["end"])) for s in done.segments]


def test_a_failing_node_kills_its_jobs_and_takes_its_processors_with_it() -> None:
    """The first job has the lowest processors; the third needs all, and waits for the repair."""
    cluster = fails(event(15, "down"), event(52, "up"))
    jobs = [Job(0, 40, 40, 2), Job(0, 40, 40, 2), Job(1, 10, 10, 4)]
    done = run(jobs, cluster)
    assert done.jobs["planned_start"].tolist() == [0, 0, 40]
    # Killed at 15 s; there is room once the other is done. Whoever needs all nodes waits for all.
    assert spans(done) == [(0, 2, 0, 15), (0, 2, 40, 80), (1, 2, 0, 40), (2, 4, 80, 90)]
    assert done.counts["outage_displaced"] == 1
    assert done.jobs["killed"].tolist() == [1, 0, 0]
    assert done.jobs["extra_work"].tolist() == [2 * 15, 0, 0]


def test_the_rest_is_requested_from_the_last_checkpoint() -> None:
    cluster = fails(event(25, "down"), checkpoint_interval=10, checkpoint_cost=1)
    done = run([Job(0, 40, 40, 2)], cluster)
    # Two checkpoints by 22 s; then 20 s are left, with one more between them
    assert spans(done) == [(0, 2, 0, 25), (0, 2, 30, 51)]
    assert done.jobs["run_time"].tolist() == [40]
    assert done.jobs["extra_work"].tolist() == [2 * (25 - 20 + 1)]


@pytest.mark.parametrize(("requeue", "starts"), [("place", [20, 60, 100]), ("end", [100, 20, 60])])
def test_who_comes_first_when_all_are_placed_anew(requeue: Any, starts: list[int]) -> None:
    """With one node for three jobs, the slots of those who wait are overdrawn from 40 s on."""
    cluster = replace(fails(event(15, "down"), requeue=requeue), processors=2, processors_per_node=1)
    jobs = [Job(0, 40, 40, 1), Job(0, 20, 20, 1), Job(0, 40, 40, 1), Job(0, 40, 40, 1)]
    done = run(jobs, cluster)
    assert done.jobs["planned_start"].tolist() == [0, 0, 20, 40]
    last = {job: start for job, _, start, _ in spans(done)}
    assert [last[0], last[2], last[3]] == starts


def test_a_lost_job_leaves_its_slots() -> None:
    cluster = fails(event(15, "down"), event(17, "up"), requeue="lost")
    done = run([Job(0, 40, 40, 4), Job(0, 10, 10, 4)], cluster)
    assert fates(done) == [Fate.LOST, Fate.COMPLETED]
    assert spans(done) == [(0, 4, 0, 15), (1, 4, 20, 30)]


def test_announced_windows_are_planned_around() -> None:
    """The third job would not be done before; at 20 s it is known that there is no room beside the window."""
    cluster = fails(event(5, "maintenance", "*", start=52, end=71))
    jobs = [Job(0, 30, 30, 4), Job(1, 20, 20, 4), Job(2, 10, 10, 4), Job(6, 20, 20, 4)]
    done = run(jobs, cluster)
    # It takes the slots from 50 to 80 s
    assert done.jobs["planned_start"].tolist() == [0, 30, 50, 90]
    assert done.jobs["start_time"].tolist() == [0, 30, 80, 90]
    assert done.jobs["killed"].sum() == 0


def test_jobs_start_where_no_window_comes() -> None:
    """The lowest processors would be taken away from a job that is planned beyond the start of the window."""
    cluster = fails(event(0, "maintenance", start=20, end=40))
    done = run([Job(0, 30, 30, 2), Job(0, 20, 20, 2)], cluster)
    assert spans(done) == [(0, 2, 0, 30), (1, 2, 0, 20)]


def test_what_a_running_job_has_of_a_window_counts_once() -> None:
    """The first job will be killed when the window begins; that is no reason to put off the third."""
    cluster = fails(event(5, "maintenance", start=40, end=60))
    done = run([Job(0, 60, 60, 2), Job(0, 30, 30, 2), Job(1, 30, 30, 2)], cluster)
    assert spans(done) == [(0, 2, 0, 40), (0, 2, 60, 120), (1, 2, 0, 30), (2, 2, 30, 60)]
    assert done.counts["outage_displaced"] == 0


def test_who_still_runs_when_a_window_begins_is_killed() -> None:
    cluster = fails(event(5, "maintenance", "*", start=20, end=40))
    done = run([Job(0, 30, 30, 4)], cluster)
    assert spans(done) == [(0, 4, 0, 20), (0, 4, 40, 70)]


def test_drained_nodes_take_no_more_jobs() -> None:
    """The job on the drained node goes on, beyond its estimate even, and counts once."""
    cluster = fails(event(5, "drain"), event(55, "resume"))
    done = run([Job(0, 35, 10, 2), Job(6, 10, 10, 2), Job(6, 10, 10, 2), Job(6, 10, 10, 4)], cluster)
    assert done.jobs["start_time"].tolist() == [0, 10, 20, 60]
    assert done.jobs["end_time"].tolist() == [35, 20, 30, 70]
    assert done.counts["delayed"] == 0


def test_what_is_too_large_for_the_nodes_that_are_up_goes_up() -> None:
    """The first job waits at home no longer than its node is up; the third spans what is left."""
    home = Manager(name="home", children=[fails(event(5, "down"))])
    root = Manager(name="root", children=[home, replace(FOUR, name="b")])
    done = run([Job(6, 10, 10, 4), Job(7, 10, 10, 2), Job(8, 10, 10, 6)], root)
    clusters = [
        tuple(segment.tolist())[:4] for segment in done.segments[["job", "cluster", "processors", "start"]]
    ]
    assert clusters == [(0, 1, 4, 10), (1, 0, 2, 10), (2, 0, 2, 20), (2, 1, 4, 20)]
    assert done.counts["forwarded"] == 2


def test_who_needs_nodes_that_never_come_back_starves() -> None:
    done = run([Job(6, 10, 10, 4), Job(6, 10, 10, 2), Job(6, 10, 10, 5)], fails(event(5, "down")))
    assert fates(done) == [Fate.STARVED, Fate.COMPLETED, Fate.REJECTED]
    assert done.jobs["planned_start"].tolist() == [-1, 10, -1]


def test_reservations_are_kept_where_others_can_give_way() -> None:
    jobs = [Job(0, 30, 30, 2), Job(1, 10, 10, 2, reserved=30), Job(1, 10, 10, 4, reserved=70)]
    jobs.insert(1, Job(1, 30, 30, 2))
    done = run(jobs, fails(event(25, "down", "node1")))
    assert done.jobs["planned_start"].tolist() == [0, 10, 30, 70]
    assert spans(done) == [(0, 2, 0, 30), (1, 2, 10, 25), (1, 2, 40, 70), (2, 2, 30, 40)]
    assert done.jobs["broken"].tolist() == [False, False, False, True]
    assert done.counts["reservations_broken"] == 1
    assert fates(done)[3] == Fate.STARVED


def test_broken_reservations_are_told() -> None:
    cluster = fails(event(5, "down"), event(90, "up"))
    jobs = Workload(
        name="asked",
        submit_time=np.array([0, 1]),
        run_time=np.array([10, 10]),
        requested_time=np.array([10, 10]),
        requested_processors=np.array([2, 4]),
        reserved_start=np.array([30, 60]),
    )
    done = simulate(jobs, cluster, TENS)
    verify(done)
    assert_fields(
        done,
        start_time=[30, 90],
        reserved=[1, 1],
        reservation_broken=[0, 1],
        reserved_start=[30, -1],
        reservations_broken=1,
    )


def test_slots_of_who_gives_up_are_there_for_others() -> None:
    jobs = [
        Job(0, 30, 30, 4),
        Job(1, 50, 50, 4, gives_up=25),
        Job(2, 10, 10, 4),
        Job(3, 10, 10, 4, gives_up=30),
    ]
    done = run(jobs, FOUR)
    assert done.jobs["planned_start"].tolist() == [0, 30, 80, 90]
    assert fates(done) == [Fate.COMPLETED, Fate.GAVE_UP, Fate.COMPLETED, Fate.GAVE_UP]
    # The last one would have started at 40 s
    assert done.jobs["start_time"].tolist() == [0, -1, 30, -1]


def test_jobs_make_their_requests_when_they_are_eligible() -> None:
    after = ((0, Dependency.AFTER_OK, 5),)
    jobs = [
        Job(0, 12, 30, 4),
        Job(1, 10, 10, 4, needs=after),
        Job(14, 10, 10, 4),
        Job(15, 10, 10, 4, needs=((0, Dependency.AFTER_NOT_OK, 0),)),
        Job(15, 10, 10, 1, reserved=20, needs=((1, Dependency.AFTER_ANY, 0),)),
    ]
    done = run(jobs, FOUR)
    # Eligible at 17 s, after the third had asked; what the last one reserves is over by then
    assert done.jobs["start_time"].tolist() == [0, 30, 20, -1, -1]
    assert fates(done)[3:] == [Fate.NEVER_ELIGIBLE, Fate.REJECTED]
    assert done.jobs["eligible_time"].tolist()[1] == 17


def test_a_job_that_is_killed_at_the_end_of_its_slots_did_not_end_well() -> None:
    options = replace(TENS, overrun="kill")
    needs = [((0, kind, 0),) for kind in (Dependency.AFTER_OK, Dependency.AFTER_NOT_OK)]
    jobs = [
        Job(0, 35, 10, 4),
        Job(0, 10, 10, 4, reserved=10),
        *(Job(0, 5, 5, 1, needs=each) for each in needs),
    ]
    done = run(jobs, FOUR, options)
    assert fates(done) == [Fate.COMPLETED, Fate.COMPLETED, Fate.NEVER_ELIGIBLE, Fate.COMPLETED]
    assert done.jobs["end_time"].tolist() == [10, 20, -1, 25]


def test_stale_managers_know_who_is_up() -> None:
    """They learn by the period what is booked, but at once which nodes are gone."""
    children = [replace(FOUR, name="a", events=[event(5, "down", "*")]), replace(FOUR, name="b")]
    home = local("c", 1, promote_duration=0)
    root = Manager(name="root", children=[*children, home], period=1000)
    done = run([Job(6, 10, 10, 2, home=2), Job(6, 10, 10, 4, home=2)], root)
    assert [(int(s["cluster"]), int(s["start"])) for s in done.segments] == [(1, 10), (1, 20)]
    assert done.counts["failed_inquiries"] == 0


def test_the_clusters_of_a_tree_have_to_be_those_of_the_platform() -> None:
    jobs = Workload(
        name="a",
        submit_time=np.array([0]),
        run_time=np.array([10]),
        requested_time=np.array([10]),
        requested_processors=np.array([2]),
    )
    options = replace(TENS, managers=replace(FOUR, processors=8))
    with pytest.raises(ConfigurationError, match="a has 8 processors there and 4 on the platform"):
        simulate(jobs, fails(event(5, "down")), options)


def test_outages_of_coarse_slots_give_back_what_they_do_not_need() -> None:
    """The window takes a slot of 40 s at first, and only its own 10 s when that is split."""
    plan = SlotPlan(levels=[(1, 10), (None, 40)])
    cluster = fails(event(0, "maintenance", "*", start=20, end=30))
    done = run([Job(1, 10, 10, 4)], cluster, Calendars(slots=plan, low_water=0))
    assert done.jobs["planned_start"].tolist() == [50]
    assert done.jobs["start_time"].tolist() == [10]
