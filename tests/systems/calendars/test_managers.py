"""Trees of managers: against the oracle, worked out by hand, and what two phases guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.kernels import bookings
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan, clusters_of
from gridsched.traces import clean, read_swf, select_window
from gridsched.verification import verify
from gridsched.workloads import Workload
from tests.oracles.calendars import Job
from tests.support.fields import assert_fields
from tests.systems.calendars.test_scheduler import (
    calendar_options,
    check_against_oracle,
    check_every_instant,
    run,
    streams,
    whole_nodes,
    workload,
)

Problem = tuple[list[Job], Manager | Cluster, Calendars, list[bool], int]

TENS = Calendars(slots=SlotPlan(levels=[(None, 10)]))
"""Slots of 10 s only."""


def local(name: str, nodes: int, **rules: Any) -> Manager:
    """A local manager with its cluster."""
    return Manager(name=name, children=[Cluster(name=name, processors=nodes)], **rules)


# --- strategies -----------------------------------------------------------------------------------


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


@st.composite
def problems(draw: st.DrawFn, *, accurate: bool, refusals: bool) -> Problem:
    """A stream, a tree and its calendars, reserve requests that are refused, and a seed."""
    options = draw(calendar_options())
    root = draw(trees(2, [1.0] if accurate else [1.0, 1.0, 2.0, 0.7]))
    nodes = [cluster.processors for cluster in clusters_of(root)]
    jobs = draw(streams(nodes, options.slots.fundamental, accurate=accurate))
    refused = draw(st.lists(st.booleans(), max_size=8)) if refusals else []
    return jobs, root, options, refused, draw(st.integers(0, 2**31))


# --- against the oracle ---------------------------------------------------------------------------


@given(problem=problems(accurate=True, refusals=False))
@settings(max_examples=60)
def test_schedules_equal_the_oracle(problem: Problem) -> None:
    check_against_oracle(*problem)


@given(problem=problems(accurate=False, refusals=False))
@settings(max_examples=50)
def test_schedules_with_overruns_equal_the_oracle(problem: Problem) -> None:
    check_against_oracle(*problem)


@given(problem=problems(accurate=True, refusals=True))
@settings(max_examples=60)
def test_schedules_with_refusals_equal_the_oracle(problem: Problem) -> None:
    check_against_oracle(*problem)


@given(problem=problems(accurate=True, refusals=True))
@settings(max_examples=60)
def test_refusals_leave_nothing_half_reserved(problem: Problem) -> None:
    jobs, root, options, refusals, _ = problem
    check_every_instant(jobs, root, options, refusals)


@given(problem=problems(accurate=False, refusals=False))
@settings(max_examples=40)
def test_bookings_are_sound_under_overruns(problem: Problem) -> None:
    jobs, root, options, _, _ = problem
    check_every_instant(jobs, root, options)


# --- where jobs go --------------------------------------------------------------------------------


def test_promotion_by_size_and_duration() -> None:
    """The first job fills the cluster of the others; who may, leaves it."""
    home = local("a", 4, promote_processors=2, promote_duration=100)
    root = Manager(name="root", children=[home, Cluster(name="b", processors=4)])
    jobs = [Job(0, 50, 50, 2), Job(0, 50, 50, 2), Job(0, 20, 20, 2), Job(0, 20, 20, 3), Job(0, 100, 100, 1)]
    done = run(jobs, root, TENS)
    assert done.segments["cluster"].tolist() == [0, 0, 0, 1, 1]
    assert done.jobs["start_time"].tolist() == [0, 0, 50, 0, 0]
    assert done.counts["promoted"] == 2
    # One step up, an inquiry with its answer, and a reservation with its answer, each
    assert (done.counts["inquiries"], done.counts["messages"]) == (2, 10)


def test_rules_hold_at_every_level() -> None:
    inner = Manager(
        name="inner",
        children=[local("a", 2, promote_processors=0), Cluster(name="b", processors=2)],
        promote_duration=50,
    )
    root = Manager(name="root", children=[Cluster(name="c", processors=2), inner])
    assert [cluster.name for cluster in clusters_of(root)] == ["c", "a", "b"]
    jobs = [Job(0, 40, 40, 1, home=1), Job(0, 50, 50, 1, home=1)]
    done = run(jobs, root, TENS)
    assert done.segments["cluster"].tolist() == [1, 0]


def test_large_jobs_are_forwarded_to_who_has_the_nodes() -> None:
    inner = Manager(name="inner", children=[Cluster(name="a", processors=2), Cluster(name="b", processors=3)])
    root = Manager(name="root", children=[inner, Cluster(name="c", processors=8)])
    jobs = [Job(0, 10, 10, size) for size in (2, 3, 5, 8, 13, 14)]
    done = run(jobs, root, TENS)
    # The job of 5 spans the first two clusters, although the third could hold it; that of 13 spans all.
    spans: dict[int, list[tuple[int, int]]] = {j: [] for j in range(6)}
    for job, cluster, nodes, _, _, _ in done.segments.tolist():
        spans[job].append((cluster, nodes))
    assert spans == {
        0: [(0, 2)],
        1: [(1, 3)],
        2: [(0, 2), (1, 3)],
        3: [(2, 8)],
        4: [(0, 2), (1, 3), (2, 8)],
        5: [],
    }
    assert done.counts["forwarded"] == 4
    assert done.counts["spanning"] == 2
    assert done.jobs["start_time"].tolist() == [0, 0, 10, 0, 20, -1]


def test_jobs_are_bumped_up_if_they_would_wait_too_long() -> None:
    root = Manager(name="root", children=[local("a", 1, bump=30), Cluster(name="b", processors=1)])
    jobs = [Job(0, 30, 30, 1), Job(0, 30, 30, 1), Job(0, 30, 30, 1), Job(0, 90, 90, 1)]
    done = run(jobs, root, TENS)
    # 30 s are not too long; the third would start at 60 s at home, the fourth at 30 s over there.
    assert done.jobs["start_time"].tolist() == [0, 30, 0, 30]
    assert done.segments["cluster"].tolist() == [0, 0, 1, 1]
    assert done.counts["bumped"] == 2


def test_a_bump_that_gains_nothing_stays() -> None:
    root = Manager(name="root", children=[local("a", 1, bump=0), Cluster(name="b", processors=1)])
    jobs = [Job(0, 50, 50, 1, home=1), Job(0, 10, 10, 1), Job(0, 10, 10, 1)]
    done = run(jobs, root, TENS)
    assert done.segments["cluster"].tolist() == [1, 0, 0]
    assert done.counts["bumped"] == 0


def test_the_limit_of_borrowing() -> None:
    def with_limit(limit: int | None) -> Any:
        home = local("a", 1, promote_duration=50, borrow_limit=limit)
        root = Manager(name="root", children=[home, Cluster(name="b", processors=2)])
        later = [Job(100, 40, 40, 1), Job(100, 90, 90, 1), Job(100, 10, 10, 2)]
        return run([Job(0, 90, 90, 1), Job(0, 90, 90, 1), *later], root, TENS)

    for free in (with_limit(None), with_limit(90)):
        assert free.segments["cluster"].tolist() == [0, 1, 0, 1, 1]
        assert free.jobs["start_time"].tolist() == [0, 0, 100, 100, 190]
        assert (free.counts["kept_home"], free.counts["over_limit"]) == (0, 0)
    limited = with_limit(89)
    # The 90 node-seconds of the second job were too much for the fourth; the last has no place at home.
    assert limited.segments["cluster"].tolist() == [0, 1, 0, 0, 1]
    assert limited.jobs["start_time"].tolist() == [0, 0, 100, 140, 100]
    assert (limited.counts["kept_home"], limited.counts["over_limit"]) == (1, 1)


def test_ties_go_to_the_lowest_or_to_anyone() -> None:
    """The footnote of the paper: first fit favours clusters with low numbers."""

    def supplied(placement: Any, seed: int = 0) -> list[int]:
        children = [local(f"c{k}", 40, promote_duration=0) for k in range(4)]
        root = Manager(name="root", children=children, placement=placement)
        done = run([Job(0, 10, 10, 1) for _ in range(40)], root, TENS, seed=seed)
        counts = Counter(done.segments["cluster"].tolist())
        return [counts[k] for k in range(4)]

    assert supplied("lowest") == [40, 0, 0, 0]
    shares = np.mean([supplied("unbiased", seed) for seed in range(50)], axis=0)
    assert shares == pytest.approx([10] * 4, abs=1)
    assert supplied("unbiased", 1) == supplied("unbiased", 1) != supplied("unbiased", 2)


def test_ranks_are_spread_evenly() -> None:
    ranks = np.array([[bookings.rank(7, job, which) for which in range(5)] for job in range(2000)])
    assert ranks.min() >= 0
    firsts = np.bincount(ranks.argmin(axis=1), minlength=5) / 2000
    assert firsts == pytest.approx([0.2] * 5, abs=0.04)


# --- shadow calendars -----------------------------------------------------------------------------


def test_stale_hints_are_declined_and_corrected() -> None:
    """The manager last looked at 0 s: it does not know what the first cluster has taken at 5 s."""
    plain = [Cluster(name=name, processors=1) for name in "ab"]
    promoting: list[Manager | Cluster] = [*plain, local("c", 1, promote_duration=0)]
    stale = Manager(name="root", children=promoting, period=100)
    jobs = [Job(5, 40, 40, 1), Job(6, 20, 20, 1, home=2)]
    done = run(jobs, stale, TENS)
    # Declined by the first cluster, which could at 50 s; then the second is as early as hoped.
    assert done.segments["cluster"].tolist() == [0, 1]
    assert (done.counts["inquiries"], done.counts["failed_inquiries"]) == (2, 1)
    fresh = run(jobs, Manager(name="root", children=promoting), TENS)
    assert (fresh.counts["inquiries"], fresh.counts["failed_inquiries"]) == (1, 0)
    assert fresh.jobs["start_time"].tolist() == done.jobs["start_time"].tolist()


def test_answers_say_how_large_a_part_can_be() -> None:
    """By the hints the job could have nodes of all clusters; it takes them from those that have any."""
    stale = Manager(name="root", children=[Cluster(name=n, processors=1) for n in "abc"], period=100)
    done = run([Job(5, 40, 40, 1), Job(6, 10, 10, 2, home=2)], stale, TENS)
    assert done.segments["cluster"].tolist() == [0, 1, 2]
    assert done.jobs["start_time"].tolist() == [10, 10]
    assert (done.counts["inquiries"], done.counts["failed_inquiries"]) == (3, 0)


def test_managers_remember_what_they_reserved() -> None:
    children: list[Manager | Cluster] = [local("a", 1, promote_duration=0), Cluster(name="b", processors=1)]
    stale = Manager(name="root", children=children, period=1000)
    done = run([Job(0, 30, 30, 1), Job(1, 30, 30, 1), Job(2, 30, 30, 1)], stale, TENS)
    assert done.segments["cluster"].tolist() == [0, 1, 0]
    assert done.counts["failed_inquiries"] == 0


# --- reservations and two phases ------------------------------------------------------------------


def test_reservations_go_up_the_tree() -> None:
    root = Manager(name="root", children=[Cluster(name="a", processors=2), Cluster(name="b", processors=4)])
    at = [Job(0, 50, 50, 2, reserved=20), Job(0, 50, 50, 2, reserved=20), Job(0, 50, 50, 4, reserved=40)]
    done = run([*at, Job(0, 50, 50, 6, reserved=70), Job(0, 10, 10, 6, reserved=60)], root, TENS)
    assert done.jobs["start_time"].tolist() == [20, 20, -1, 70, -1]
    # Four nodes of one cluster are free again at 70 s, but by then reserved when the last job asks.
    assert done.jobs["earliest_time"].tolist() == [-1, -1, 70, -1, 120]
    spanning = done.segments[done.segments["job"] == 3]
    assert spanning["processors"].tolist() == [2, 4]
    assert set(spanning["start"].tolist()) == {70}


def test_a_refused_part_aborts_the_others() -> None:
    root = Manager(name="root", children=[Cluster(name=name, processors=2) for name in "abc"])
    jobs = [Job(0, 10, 10, 6), Job(0, 10, 10, 2, home=2)]
    done = run(jobs, root, TENS, refusals=[False, False, True])
    # The whole job comes a slot later, and the second job finds its node free.
    assert done.jobs["start_time"].tolist() == [10, 0]
    assert done.counts["aborts"] == 1
    assert done.counts["messages"] == 1 + 6 + 6 + 2 + 6 + 6


# --- whole nodes ----------------------------------------------------------------------------------


def test_jobs_that_span_clusters_take_whole_nodes_of_each() -> None:
    """Of nodes of 4 and of 3 processors; a job of one task waits for a node though processors are idle."""
    clusters = [
        Cluster(name="a", processors=8, processors_per_node=4, node_exclusive=True),
        Cluster(name="b", processors=6, processors_per_node=3, node_exclusive=True),
    ]
    calendars = Calendars(
        slots=SlotPlan(levels=[(None, 10)]), managers=Manager(name="root", children=clusters)
    )
    jobs = [workload("a", (0, 20, 20, 9), (0, 10, 10, 1)), workload("b", (0, 10, 10, 4), (1, 5, 5, 5))]
    done = simulate(jobs, clusters, calendars)
    verify(done)
    names = ("job", "cluster", "processors", "tasks", "start", "end")
    found = zip(*(done[f"segment_{name}"].values.tolist() for name in names), strict=True)
    assert list(found) == [
        (0, 0, 8, 8, 0, 20),
        (0, 1, 3, 1, 0, 20),
        (1, 0, 4, 1, 20, 30),
        (2, 1, 6, 4, 20, 30),
        (3, 1, 6, 5, 30, 35),
    ]
    assert_fields(done, supplied=[0, 60], local_work=[200, 90])


def test_nodes_of_one_processor_change_nothing() -> None:
    clusters = [Cluster(name=name, processors=4) for name in "ab"]
    jobs = [workload("a", (0, 20, 20, 6), (0, 10, 10, 1)), workload("b", (0, 10, 10, 3))]
    plain = simulate(jobs, clusters, Calendars())
    whole = simulate(jobs, [replace(each, node_exclusive=True) for each in clusters], Calendars())
    assert plain.equals(whole)


# --- what is no tree ------------------------------------------------------------------------------


def test_trees_that_make_no_sense() -> None:
    one = Cluster(name="a", processors=1)
    with pytest.raises(ConfigurationError, match="manager empty: no children"):
        Manager(name="empty", children=[])
    with pytest.raises(ConfigurationError, match="a: two managers or clusters have this name"):
        clusters_of(Manager(name="root", children=[one, local("a", 2)]))
    with pytest.raises(ConfigurationError, match="root: two managers or clusters have this name"):
        clusters_of(Manager(name="root", children=[one, Cluster(name="root", processors=1)]))
    cycle = Manager(name="root", children=[one, local("b", 1)])
    object.__setattr__(cycle, "children", (one, cycle))
    with pytest.raises(ConfigurationError, match="manager root: it is among its own children"):
        clusters_of(cycle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"promote_processors": -1}, "promote_processors is -1"),
        ({"promote_duration": 1.5}, "promote_duration is 1.5"),
        ({"bump": -1}, "bump is -1"),
        ({"period": -5}, "period is -5"),
        ({"placement": "best"}, "placement is 'best'; use one of lowest, unbiased"),
        ({"borrow_limit": -1}, "borrow_limit is -1"),
    ],
)
def test_rules_that_make_no_sense(change: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        local("a", 1, **change)


# --- from workloads to datasets -------------------------------------------------------------------


def run_under(
    root: Manager | Cluster, workloads: Sequence[Workload], options: Calendars, **more: Any
) -> xr.Dataset:
    """Run of the workloads on the clusters of a tree, as at speed 1."""
    return simulate(workloads, clusters_of(root), replace(options, managers=root), times="unit", **more)


def test_workloads_become_a_dataset() -> None:
    a = workload("a", (0, 50, 50, 2), (0, 20, 20, 3), (1, 10, 10, 6))
    b = workload("b", (0, 20, 20, 2))
    root = Manager(name="root", children=[local("a", 2), local("b", 4)])
    done = run_under(root, [a, b], TENS, estimates="actual")
    verify(done)
    # Submitted at 0 (twice at a, once at b) and 1 s.
    assert_fields(
        done,
        home_cluster=[0, 0, 1, 0],
        start_time=[0, 0, 20, 50],
        segment_job=[0, 1, 2, 3, 3],
        segment_cluster=[0, 1, 1, 0, 1],
        segment_processors=[2, 3, 2, 2, 4],
        supplied=[0, 20 * 3 + 10 * 4],
        consumed=[100, 0],
        local_work=[50 * 2 + 10 * 2, 20 * 2],
        jobs_transferred=2,
        managers="root: placement lowest; a (2 processors): placement lowest; "
        + ("b (4 processors): placement lowest"),
    )
    assert (done["reach_processors"] == 6).all()


@given(problem=problems(accurate=False, refusals=False))
@settings(max_examples=30)
def test_every_schedule_passes_the_verifier(problem: Problem) -> None:
    jobs, root, options, _, seed = problem
    count = len(clusters_of(root))
    lists = [[job for job in jobs if job.home == k] for k in range(count)]
    if not all(lists):
        return
    workloads = [
        workload(f"w{k}", *[(job.submit_time, job.run_time, job.estimate, job.processors) for job in own])
        for k, own in enumerate(lists)
    ]
    run = run_under(root, workloads, options, align="none", seed=seed)
    verify(run)
    assert run["supplied"].sum() == run["consumed"].sum()


WINDOWS = (939, 2267, 1597, 1594, 2549, 1759, 1700, 2119, 1630, 1483)
"""Jobs of the ten clusters in Figure 9 of the paper."""

DAY = 86400


@pytest.fixture(scope="module")
def ten_clusters(archive_mirror: Path) -> list[Workload]:
    """The first 8 days of ten successive intervals of 31 days from the start of the log."""
    log = clean(read_swf(archive_mirror / "CTC-SP2-1996-3.1-cln.swf.gz"))
    return [select_window(log, interval=(31 * DAY * k, (31 * k + 8) * DAY)) for k in range(10)]


def test_the_ten_clusters_of_the_paper(ten_clusters: list[Workload]) -> None:
    assert [len(window) for window in ten_clusters] == list(WINDOWS)
    options = Calendars(slots=SlotPlan(levels=[(32, 10), (8, 320), (None, 2560)]))
    rule = {"promote_processors": 112, "promote_duration": 12 * 3600}
    root = Manager(name="grid", children=[local(f"c{k}", 336, **rule) for k in range(10)])
    run = run_under(root, ten_clusters, options, estimates="actual")
    verify(run)
    # "Just over 2,000" may leave their home.
    assert run.attrs["promoted"] == 2070
    assert (run["start_time"] <= run["planned_start"]).all()
    assert int(run["supplied"].sum()) == int(run["consumed"].sum()) > 0


def test_clusters_without_rules_are_as_good_as_alone(ten_clusters: list[Workload]) -> None:
    """What happens in one cluster is of no concern to the others."""
    options = Calendars(slots=SlotPlan(levels=[(64, 40), (None, 2560)]))
    few = ten_clusters[:3]
    root = Manager(name="grid", children=[local(f"c{k}", 336) for k in range(3)])
    together = run_under(root, few, options, estimates="actual")
    for k, window in enumerate(few):
        alone = simulate([window], Cluster(processors=336), options, estimates="actual")
        own = together["home_cluster"].values == k
        assert alone["start_time"].values.tolist() == together["start_time"].values[own].tolist()
