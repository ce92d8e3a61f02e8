"""MUSCLE: the paper's worked example, algorithms 1 to 4 against plain forms, and the live use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.experiments.kinds.multicluster.drawing import schedule_gantt
from gridsched.platform import Cluster
from gridsched.systems.multicluster.kernels import genetic
from gridsched.systems.multicluster.muscle import Backlog, allocate, composition_table, schedule_queue
from gridsched.systems.multicluster.titan import Coding, Titan, Weights, starts, stream
from tests.oracles import packing as naive_packing
from tests.oracles.packing import NaiveCluster, NaiveSeed
from tests.support.errors import refused
from tests.support.fields import assert_fields

SIZES = [2, 1, 4, 3, 1, 2]
RUN_TIMES = [2, 4, 4, 6, 2, 4]
SLACKS = [6, 8, 14, 12, 4, 8]
PAPER = [Cluster(name="C1", processors=4), Cluster(name="C2", processors=6)]
"""Table 1 of the paper."""


def test_the_composition_table_of_the_paper() -> None:
    """Table 2."""
    table = [[" ".join(f"J{job + 1}" for job in jobs) for jobs in row] for row in composition_table(SIZES, 6)]
    assert table == [
        ["J2", "J5"],
        ["J1", "J5 J2", "J6"],
        ["J2 J1", "J4", "J6 J5"],
        ["J3", "J4 J2", "J6 J1"],
        ["J3 J2", "J4 J1"],
        ["J3 J1", "J6 J4 J2"],
    ]


def test_the_seed_schedules_of_the_paper() -> None:
    """Figure 3 b and d: both clusters are packed without a hole up to time 6."""
    done = allocate(
        np.array(SIZES),
        np.array([RUN_TIMES] * 2),
        np.array([SLACKS] * 2),
        [Backlog(np.zeros(cluster.processors, np.int64)) for cluster in PAPER],
        stream(0),
    )
    order = [2, 0, 3, 1, 5, 4]
    assert_fields(done, sequence=order, cluster=[1, 0, 1, 0, 0, 1], start=[0, 0, 0, 0, 4, 2])
    resources = [np.flatnonzero(row).tolist() for row in Coding(done.sequence, done.masks).resources(6)]
    assert resources == [[4, 5], [3], [0, 1, 2, 3], [0, 1, 2], [3], [4, 5]]


# --- algorithm 1 ----------------------------------------------------------------------------------

small_sizes = st.lists(st.integers(1, 9), max_size=9)


@given(small_sizes, st.integers(1, 12))
@settings(max_examples=200)
def test_the_table_equals_the_oracle_and_is_sound(sizes: list[int], rows: int) -> None:
    table = composition_table(sizes, rows)
    expected = naive_packing.composition_table(sizes, rows)[1:]
    assert table == [[tuple(jobs) for jobs in row] for row in expected]
    for row, compositions in enumerate(table, start=1):
        members = [job for jobs in compositions for job in jobs]
        assert len(members) == len(set(members))
        assert all(sum(sizes[job] for job in jobs) == row for jobs in compositions)
    # A row is empty only if no set of jobs fills it.
    assert {row for row, jobs in enumerate(table, start=1) if jobs} == naive_packing.reachable(sizes, rows)


def test_jobs_larger_than_the_table_are_in_no_row() -> None:
    assert composition_table([5, 2], 3) == [[], [(1,)], []]
    assert composition_table([], 2) == [[], []]


# --- algorithms 2 to 4 ----------------------------------------------------------------------------


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[int], list[list[int]], list[list[int]], list[NaiveCluster]]:
    """Processors, run times and slacks of jobs, and clusters with a workload; some give whole nodes."""
    widths = draw(st.lists(st.sampled_from([1, 2, 4, 4, 6, 9, 70]), min_size=1, max_size=4))
    resources, nodes = widths, draw(st.sampled_from([[1], [1, 2, 3]]))
    units = [draw(st.sampled_from(nodes)) for _ in widths]
    widths = [width * unit for width, unit in zip(widths, units, strict=True)]
    count = draw(st.integers(0, 14))
    largest = st.sampled_from([max(widths), 3])
    sizes = [draw(st.integers(1, min(draw(largest), max(widths)))) for _ in range(count)]
    durations = [[draw(st.integers(1, 9)) for _ in range(count)] for _ in widths]
    slacks = [[draw(st.integers(-5, 20)) for _ in range(count)] for _ in widths]
    clusters = [
        NaiveCluster(
            [draw(st.sampled_from([0, 0, 2, 5])) for _ in range(count_of)],
            [(3, unit, 4)] * draw(st.integers(0, 2)),
            unit,
        )
        for count_of, unit in zip(resources, units, strict=True)
    ]
    return sizes, durations, slacks, clusters


def backlog_of(cluster: NaiveCluster) -> Backlog:
    run_time, size, slack = np.sum(cluster.workload, axis=0) if cluster.workload else (0, 0, 0)
    free, jobs = np.array(cluster.free), len(cluster.workload)
    return Backlog(free, jobs, int(run_time), int(size), int(slack), cluster.unit)


def oracle(
    queue: tuple[list[int], list[list[int]], list[list[int]], list[NaiveCluster]],
) -> dict[int, NaiveSeed]:
    """Seeds of the plain form."""
    sizes, durations, slacks, clusters = queue
    copies = [
        replace(cluster, free=list(cluster.free), workload=list(cluster.workload)) for cluster in clusters
    ]
    return naive_packing.allocate(sizes, durations, slacks, copies, partial(pick, stream(1)))


def pick(random: NDArray[np.uint64], equals: int) -> int:
    """One of equal clusters, drawn as the engine does."""
    return int(genetic.below(random, equals)) if equals > 1 else 0


@given(queues())
@settings(max_examples=300)
def test_the_allocation_equals_the_oracle(
    queue: tuple[list[int], list[list[int]], list[list[int]], list[NaiveCluster]],
) -> None:
    sizes, durations, slacks, clusters = queue
    done = allocate(
        np.array(sizes, np.int64),
        np.array(durations, np.int64).reshape(len(clusters), -1),
        np.array(slacks, np.int64).reshape(len(clusters), -1),
        [backlog_of(cluster) for cluster in clusters],
        stream(1),
    )
    expected = oracle(queue)
    assert done.sequence.tolist() == list(expected)
    widest = max(len(cluster.free) for cluster in clusters)
    own = Coding(done.sequence, done.masks).resources(widest)
    for job, seed in expected.items():
        assert (int(done.cluster[job]), int(done.start[job])) == (seed.cluster, seed.start)
        assert np.flatnonzero(own[job]).tolist() == seed.resources
    # TITAN reads the same starts from the seed schedules.
    for i, cluster in enumerate(clusters):
        jobs = done.of(i)
        coding = Coding(np.arange(len(jobs), dtype=np.int32), done.masks[jobs])
        begin, _ = starts(coding, np.array(durations[i], np.int64)[jobs], np.array(cluster.free), 0)
        assert begin.tolist() == done.start[jobs].tolist()


def test_equal_clusters_are_chosen_at_random() -> None:
    chosen = {
        int(
            allocate(
                np.array([1]),
                np.ones((3, 1), np.int64),
                np.ones((3, 1), np.int64),
                [Backlog(np.zeros(2, np.int64))] * 3,
                stream(seed),
            ).cluster[0]
        )
        for seed in range(30)
    }
    assert chosen == {0, 1, 2}


# --- live use -------------------------------------------------------------------------------------


def queue_of(count: int, largest: int, seed: int = 3) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    run_time = generator.integers(10, 500, count)
    return pd.DataFrame(
        {
            "job_number": 100 + np.arange(count),
            "submit_time": generator.integers(0, 50, count),
            "processors": generator.integers(1, largest + 1, count),
            "run_time": run_time,
            "deadline": 50 + (run_time * generator.uniform(1, 6, count)).astype(np.int64),
        }
    )


CLUSTERS = [Cluster(name="west", processors=20), Cluster(name="east", processors=70, speed=1.4)]


def test_a_queue_becomes_schedules() -> None:
    jobs = queue_of(40, 24)
    free = {"west": np.arange(20) * 10}
    weights = [Weights(), Weights(over_deadline=12)]
    done = schedule_queue(jobs, CLUSTERS, now=60, free=free, weights=weights, seed=4)
    assert (done["start_time"] >= 60).all()
    assert (done["end_time"] - done["start_time"] == done["run_time"]).all()
    resources = done["resources"].to_numpy()
    assert resources.sum(axis=1).tolist() == jobs["processors"].tolist()
    for i, cluster in enumerate(CLUSTERS):
        own = np.flatnonzero(done["cluster_index"].to_numpy() == i)
        assert (done["run_time"].to_numpy()[own] == cluster.duration(jobs["run_time"].to_numpy()[own])).all()
        assert int(done["jobs"][i]) == len(own)
        assert not resources[own, cluster.processors :].any()
        assert sorted(done["order"].to_numpy()[own].tolist()) == list(range(len(own)))
        assert_apart(done, own)
        check_performance(done, own, i, weights[i])
    assert (done["comprehensive_performance"] <= done["seed_comprehensive_performance"]).all()
    assert done.identical(schedule_queue(jobs, CLUSTERS, now=60, free=free, weights=weights, seed=4))


def test_a_queue_on_whole_nodes() -> None:
    """Nodes of 2, and single processors."""
    nodes = Cluster(name="nodes", processors=40, processors_per_node=2, node_exclusive=True)
    jobs = queue_of(40, 24)
    done = schedule_queue(jobs, [nodes, CLUSTERS[1]], now=60, free={"nodes": np.arange(20) * 10}, seed=4)
    assert done["resource_processors"].values.tolist() == [2, 1]
    assert (done["available"][0].to_numpy() >= 0).sum() == 20
    own = [np.flatnonzero(done["cluster_index"].to_numpy() == i) for i in range(2)]
    asked = jobs["processors"].to_numpy()
    used = done["resources"].to_numpy().sum(axis=1)
    assert min(len(each) for each in own) > 0
    assert (used[own[0]] == (asked[own[0]] + 1) // 2).all()
    assert (used[own[1]] == asked[own[1]]).all()
    for each in own:
        assert_apart(done, each)
    schedule_gantt(done)
    assert "resource_processors" not in schedule_queue(jobs, CLUSTERS)


@pytest.mark.parametrize("idle_time", ["holes", "makespan"])
def test_nodes_are_as_good_as_their_processors(idle_time: Any) -> None:
    """On one cluster, what MUSCLE hands over has the same CP whether or not jobs ask for what they take."""
    jobs = queue_of(20, 12)
    full = jobs.assign(processors=-(-jobs["processors"] // 3) * 3)
    nodes = Cluster(name="nodes", processors=12, processors_per_node=3, node_exclusive=True)
    weights, none = Weights(idle_time=idle_time), Titan(generations=0, population=2)
    one = schedule_queue(jobs, [nodes], now=60, weights=weights, titan=none)
    other = schedule_queue(full, [replace(nodes, node_exclusive=False)], now=60, weights=weights, titan=none)
    for name in ("seed_start_time", "seed_comprehensive_performance"):
        assert one[name].values.tolist() == other[name].values.tolist()


def assert_apart(done: Any, own: Any) -> None:
    """No resource runs two jobs at once, or one before it is available."""
    start, end = done["start_time"].to_numpy(), done["end_time"].to_numpy()
    for resource in range(done.sizes["resource"]):
        users = own[done["resources"].to_numpy()[own, resource] > 0]
        users = users[np.argsort(start[users])]
        assert (start[users][1:] >= end[users][:-1]).all()
        for i in set(done["cluster_index"].to_numpy()[users].tolist()):
            assert (start[users] >= int(done["available"][i, resource])).all()


def check_performance(done: Any, own: Any, i: int, weights: Weights) -> None:
    jobs = [
        naive_packing.PackedJob(*row)
        for row in zip(
            *(done[name].to_numpy()[own].tolist() for name in ("run_time", "deadline", "processors")),
            strict=True,
        )
    ]
    resources = [set(np.flatnonzero(row).tolist()) for row in done["resources"].to_numpy()[own]]
    base = [int(time) for time in done["available"][i] if time >= 0]
    found = naive_packing.metrics(
        done["start_time"].to_numpy()[own].tolist(), resources, jobs, base, done.attrs["now"], "holes"
    )
    assert found == tuple(int(done[name][i]) for name in ("makespan", "idle_time", "over_deadline"))
    assert float(done["comprehensive_performance"][i]) == weights.performance(*found)


def test_the_example_of_the_paper_live() -> None:
    due = [run + slack for run, slack in zip(RUN_TIMES, SLACKS, strict=True)]
    done = schedule_queue({"processors": SIZES, "run_time": RUN_TIMES, "deadline": due}, PAPER)
    # Nothing is left to improve: no hole, nothing late, and no shorter makespan.
    assert_fields(done, seed_start_time=[0, 0, 0, 0, 4, 2], makespan=[6, 6])
    assert_fields(done, idle_time=[0, 0], over_deadline=[0, 0])


def test_jobs_that_fit_nowhere_and_empty_queues() -> None:
    jobs = {"processors": [71, 70], "run_time": [5, 0], "deadline": [9, 9]}
    done = schedule_queue(jobs, CLUSTERS, now=7)
    # A job takes at least a second.
    assert_fields(done, cluster_index=[-1, 1], start_time=[-1, 7], end_time=[-1, 8], jobs_rejected=1)
    empty = schedule_queue({name: [] for name in jobs}, CLUSTERS)
    assert_fields(empty, start_time=[], comprehensive_performance=[0, 0])


def test_schedules_are_drawn() -> None:
    done = schedule_queue(queue_of(14, 20), [Cluster(name="$west", processors=20), *CLUSTERS[1:]])
    figure, numbers = schedule_gantt(done)
    assert len(figure.axes) == 2
    # Neighbouring resources of a job are one rectangle.
    area = (numbers["processors"] * (numbers["end_time"] - numbers["start_time"])).sum()
    assert area == int((done["processors"] * done["run_time"]).sum())
    assert set(numbers["job_number"]) == set(done["job_number"].values)
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert texts & {str(number) for number in done["job_number"].values}
    with refused("at most 120 jobs, this one has 121"):
        schedule_gantt(schedule_queue(queue_of(121, 5), CLUSTERS, titan=Titan(generations=0)))
    schedule_gantt(schedule_queue({"processors": [], "run_time": [], "deadline": []}, CLUSTERS))


TWO = {"processors": [1, 2], "run_time": [5, 5], "deadline": [9, 9]}


def of_queue(
    clusters: Sequence[Cluster] = CLUSTERS, change: dict[str, Any] | None = None, **more: Any
) -> object:
    return schedule_queue({**TWO, **(change or {})}, clusters, **more)


def too_wide() -> object:
    ones = np.ones((1, 2), np.int64)
    return allocate(np.array([1, 3]), ones, ones, [Backlog(np.zeros(2, np.int64))], stream(0))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: of_queue(change={"processors": [1, 0]}), WorkloadError, "job 2 uses no processor"),
        (lambda: of_queue(change={"run_time": [-1, 5]}), WorkloadError, "job 1 has a negative run time"),
        (
            lambda: of_queue(change={"submit_time": [3, 10]}),
            WorkloadError,
            "job 2 has a deadline before its submission",
        ),
        (
            lambda: of_queue(change={"run_time": [5]}),
            WorkloadError,
            "column run_time has shape (1,); give 2 values",
        ),
        (
            lambda: of_queue(change={"deadline": [9.5, 9]}),
            WorkloadError,
            "column deadline is not made of whole numbers",
        ),
        (
            lambda: schedule_queue({"processors": [1], "run_time": [1]}, CLUSTERS),
            WorkloadError,
            "queue: no column deadline",
        ),
        (lambda: of_queue([]), ConfigurationError, "there is none; give at least one"),
        (lambda: of_queue(CLUSTERS[:1] * 2), ConfigurationError, "called west, west; give each a name"),
        (
            lambda: of_queue(free={"north": [0]}),
            ConfigurationError,
            "unknown cluster 'north'; there are west, east",
        ),
        (
            lambda: of_queue(free={"west": [0]}),
            ConfigurationError,
            "for each of the 20 resources of cluster west",
        ),
        (lambda: of_queue(weights=[Weights()]), ConfigurationError, "1 weights for 2 clusters"),
        (
            too_wide,
            WorkloadError,
            "the job at index 1 uses 3 resources, but the largest cluster has 2",
        ),
        (lambda: composition_table([1], 0), ConfigurationError, "composition table: 0 rows"),
        (lambda: composition_table([0], 2), WorkloadError, "a job uses 0 resources"),
    ],
)
def test_mistakes_are_named(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with refused(message, error=error):
        wrong()
