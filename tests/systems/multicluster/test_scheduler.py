"""Collection rounds, baselines and whole runs of a multicluster: against a plain walk over the seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from gridsched import results
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.experiments.kinds.multicluster.levels import calibrate_rate, mean_queues
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.summary import summarise
from gridsched.systems.multicluster.jobs import (
    MulticlusterModel,
    in_batches,
    synthesise_multicluster,
)
from gridsched.systems.multicluster.measures import (
    mean_performance,
    over_deadline,
    performance_balance,
    summarise_multicluster,
)
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.titan import Titan, Weights, resources_of, stream
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.bounded_pareto import BoundedPareto
from gridsched.workloads.deadlines import ServiceClass, draw_classes, draw_deadlines
from gridsched.workloads.estimates import with_prediction_errors
from tests.oracles import packing as naive_packing
from tests.oracles.local import Policy
from tests.oracles.multicluster import InterruptedJob, InterruptedMulticluster, Resize, Site
from tests.oracles.packing import NaiveCluster
from tests.support import strategies
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.systems.multicluster.test_muscle import pick

CLUSTERS = [
    Cluster(name="C1", processors=8),
    Cluster(name="C2", processors=5, speed=1.3),
    Cluster(name="C3", processors=4, speed=1.7),
]
NODES = [
    Cluster(name="N1", processors=8, processors_per_node=2, node_exclusive=True),
    Cluster(name="N2", processors=6, processors_per_node=3, node_exclusive=True, speed=1.3),
    CLUSTERS[0],
]
"""Clusters of which two give whole nodes to jobs."""
FAST = Titan(population=6, generations=5, window=2)
MODEL = MulticlusterModel(run_time=BoundedPareto(1.0, 5.0, 100.0), largest=8, unit=10)


def workload_of(jobs: list[tuple[int, int, int]], **columns: Any) -> Workload:
    """Jobs by submit time, run time and processors."""
    submit, run_time, processors = np.array(jobs, np.int64).reshape(-1, 3).T
    return Workload(
        name="w", submit_time=submit, run_time=run_time, requested_processors=processors, **columns
    )


def drawn(jobs: int = 70, rate: float = 0.25, seed: int = 1) -> Workload:
    workload = synthesise_multicluster(MODEL, jobs=jobs, rate=rate, seed=seed)
    return replace(workload, deadline=draw_deadlines(workload, [ServiceClass(name="all")], seed=seed))


def run_of(
    workload: Workload,
    clusters: Sequence[Cluster],
    scheduler: Multicluster,
    *,
    due: ArrayLike | None = None,
    changes: Sequence[ResourceChange] = (),
    seed: int = 0,
) -> xr.Dataset:
    """Run with run times as at speed 1, and with deadlines where they are given."""
    if due is not None:
        workload = replace(workload, deadline=np.asarray(due))
    return simulate(workload, Platform(clusters, changes=changes), scheduler, seed=seed, times="unit")


# --- whole runs -----------------------------------------------------------------------------------


def assert_resources_apart(run: xr.Dataset, units: Sequence[int] = (1, 1, 1)) -> None:
    """Each segment has as many resources as its job asks for, and no resource runs two jobs at once."""
    width = int(run["cluster_processors"].max())
    used = resources_of(run["segment_resources"].to_numpy(), width)
    unit = np.array(units)[run["segment_cluster"].to_numpy()]
    assert (used.sum(axis=1) * unit == run["segment_processors"]).all()
    asked = run["processors"].to_numpy()[run["segment_job"].to_numpy()]
    assert (used.sum(axis=1) == -(-asked // unit)).all()
    start, end = run["segment_start"].to_numpy(), run["segment_end"].to_numpy()
    for cluster, resource in product(range(run.sizes["cluster"]), range(width)):
        own = np.flatnonzero((run["segment_cluster"].to_numpy() == cluster) & used[:, resource])
        own = own[np.argsort(start[own])]
        assert (start[own][1:] >= end[own][:-1]).all()


CASES: list[dict[str, Any]] = [
    {"dispatcher": "muscle"},
    {"dispatcher": "muscle", "ends": "any"},
    {"dispatcher": "muscle", "ends": "any", "threshold": 300, "seeding": "last"},
    {"dispatcher": "muscle", "seeding": "none"},
    {"dispatcher": "muscle", "local": "seed", "ends": "any"},
    {"dispatcher": "muscle", "local": "easy", "ends": "any"},
    {"dispatcher": "muscle", "rounds": "arrival"},
    {"dispatcher": "dll"},
    {"dispatcher": "dll", "load": "unstarted", "rounds": "arrival", "seeding": "last"},
    {"dispatcher": "dll", "local": "seed", "seeding": "last", "threshold": 500},
    {"dispatcher": "wrand", "seeding": "none"},
    {"dispatcher": "wrand", "local": "easy", "rounds": "arrival"},
    {"dispatcher": "dll", "local": "conservative", "threshold": 300},
    {"dispatcher": "muscle", "local": "easy", "ends": "any", "epsilon": "unfinished", "due_from": "round"},
    {"dispatcher": "wrand", "local": "seed", "fit": "larger"},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_variant_makes_a_valid_schedule(case: dict[str, Any]) -> None:
    workload = drawn()
    wrong = with_prediction_errors(workload, 0.7, seed=3)
    changes = [
        ResourceChange(900, "C1", 3),
        ResourceChange(1200, "C2", 0),
        ResourceChange(1200, "C1", 9),
        ResourceChange(2000, "C2", 6),
    ]
    entry = np.arange(len(workload)) % 4 - 1
    policy = Multicluster(titan=FAST, **case)
    plain = run_of(workload, CLUSTERS, policy)
    patient = replace(policy, announcement_delay=40, threads=2)
    hard = run_of(replace(wrong, home=entry), CLUSTERS, patient, changes=changes)
    for run in (plain, hard):
        verify(run)
        assert_resources_apart(run)
        check_rounds(run)
    assert int(plain.attrs["jobs_rejected"]) == 0
    delay = np.where(entry >= 0, 40, 0)
    ran = hard["start_time"].to_numpy() >= 0
    # C1 has 3 of its processors for some time, and C2 with 5 is the largest then.
    assert (ran == (workload.processors <= 5)).all()
    assert (hard["start_time"].to_numpy() >= workload.submit_time + delay)[ran].all()
    hosts = np.full(len(workload), -1)
    hosts[hard["segment_job"].to_numpy()] = hard["segment_cluster"].to_numpy()
    assert hard.attrs["jobs_transferred"] == int(((entry >= 0) & (entry != hosts) & ran).sum())
    check_changes(hard)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_variant_gives_whole_nodes(case: dict[str, Any]) -> None:
    workload = drawn()
    wrong = with_prediction_errors(workload, 0.7, seed=3)
    changes = [ResourceChange(900, "N1", 2), ResourceChange(1200, "N1", 10), ResourceChange(1200, "N2", 0)]
    policy = Multicluster(titan=FAST, **case)
    for jobs, more in ((workload, []), (wrong, changes)):
        run = run_of(jobs, NODES, policy, changes=more)
        verify(run)
        assert_resources_apart(run, [cluster.unit for cluster in NODES])
        check_rounds(run)
        assert set(run["segment_cluster"].values.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.get("seeding") != "none"],
    ids=lambda case: "-".join(map(str, case.values())),
)
def test_nodes_are_as_their_processors_where_jobs_fill_them(case: dict[str, Any]) -> None:
    """Jobs that ask for what they take run as on a cluster of single processors, where nothing is drawn."""
    workload = drawn()
    full = replace(workload, requested_processors=-(-workload.processors // 2) * 2)
    clusters = [
        replace(each, processors=8, processors_per_node=2, node_exclusive=True)
        for each in (CLUSTERS[0], CLUSTERS[2])
    ]
    single = [replace(each, node_exclusive=False) for each in clusters]
    local = case.get("local", "titan")
    policy = Multicluster(**{**case, "local": "seed" if local == "titan" else local})
    runs = [run_of(jobs, place, policy) for jobs, place in ((workload, clusters), (full, single))]
    for name in ("start_time", "segment_cluster", "round_time", "comprehensive_performance"):
        assert runs[0][name].values.tolist() == runs[1][name].values.tolist()


def check_rounds(run: xr.Dataset) -> None:
    """MCP, PB and CP follow from what is recorded of each round."""
    weights = Weights()
    found = [run[f"round_{name}"].to_numpy() for name in ("makespan", "idle_time", "over_deadline")]
    cp = run["comprehensive_performance"].to_numpy()
    assert (cp == weights.performance(*found)).all()
    assert all((values >= 0).all() for values in found)
    jobs = run["round_jobs"].to_numpy()
    for k in range(run.sizes["round"]):
        if jobs[k].any():
            mean = sum(c * j for c, j in zip(cp[k], jobs[k], strict=True)) / jobs[k].sum()
            assert float(run["mcp"][k]) == pytest.approx(mean)
            apart = sum((c - mean) ** 2 for c in cp[k]) / (len(cp[k]) - 1)
            assert float(run["pb"][k]) == pytest.approx(apart**0.5)
    assert (np.diff(run["round_time"]) >= 0).all()
    assert int(run["round_collected"].sum()) >= int((run["start_time"] >= 0).sum())
    first = run["round_time"].to_numpy()[run["job_round"].to_numpy()]
    ran = run["start_time"].to_numpy() >= 0
    assert (run["start_time"].to_numpy() >= first)[ran].all()


def check_changes(run: xr.Dataset) -> None:
    """No job starts on a processor that its cluster does not have then."""
    width = int(run["cluster_processors"].max())
    used = resources_of(run["segment_resources"].to_numpy(), width)
    highest = np.where(used.any(axis=1), width - np.argmax(used[:, ::-1], axis=1), 0)
    present = {0: [(900, 3), (1200, 9)], 1: [(1200, 0), (2000, 6)], 2: []}
    first = {0: 8, 1: 5, 2: 4}
    for cluster, start, top in zip(
        run["segment_cluster"].values, run["segment_start"].values, highest, strict=True
    ):
        processors = first[int(cluster)]
        for time, count in present[int(cluster)]:
            if start > time:
                processors = count
        assert top <= max(processors, 0) or (start in (900, 1200, 2000))
    assert run["cluster_processors"].values.tolist() == [9, 6, 4]


def test_threads_change_nothing() -> None:
    workload, policy = drawn(), Multicluster(titan=FAST)
    alone = run_of(workload, CLUSTERS, policy, seed=5)
    beside = run_of(workload, CLUSTERS, replace(policy, threads=3), seed=5)
    assert (alone.attrs["parameter_threads"], beside.attrs["parameter_threads"]) == (1, 3)
    assert alone.identical(beside.assign_attrs(parameter_threads=1))
    other = run_of(workload, CLUSTERS, policy, seed=6)
    assert not alone["start_time"].equals(other["start_time"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_measuring_changes_nothing_else(case: dict[str, Any]) -> None:
    workload = drawn()
    policy = Multicluster(titan=FAST, **case)
    changes = [ResourceChange(900, "C1", 3), ResourceChange(1200, "C1", 9)]
    measured, bare = (
        run_of(workload, CLUSTERS, replace(policy, measure=measure), changes=changes)
        for measure in (True, False)
    )
    kept = [name for name in measured.data_vars if name in bare]
    assert (measured.attrs["parameter_measure"], bare.attrs["parameter_measure"]) == (1, 0)
    assert measured[kept].assign_attrs(parameter_measure=0).identical(bare)
    assert {"mcp", "pb", "comprehensive_performance"} <= set(measured.data_vars) - set(kept)
    with pytest.raises(ConfigurationError, match="no variable comprehensive_performance"):
        summarise_multicluster(bare)
    assert set(summarise(measured).data_vars) > {"mcp_mean", "wait_time_mean"}
    assert "mcp_mean" not in summarise(bare)


# --- the rounds against a walk over the seconds ---------------------------------------------------


def walk(
    jobs: list[tuple[int, int, int]],
    due: list[int],
    clusters: list[Cluster],
    threshold: int,
    ends: str,
    seed: int,
    epsilon: str = "unstarted",
) -> dict[int, tuple[int, int]]:
    """Cluster and start of each job under MUSCLE without TITAN, if all predictions are right."""
    durations = [[int(c.duration(np.array([run]))[0]) for _, run, _ in jobs] for c in clusters]
    plans: list[dict[int, tuple[int, list[int]]]] = [{} for _ in clusters]
    waiting, number, now = list(range(len(jobs))), 0, 0

    def end(i: int, job: int) -> int:
        return plans[i][job][0] + durations[i][job]

    def enough(i: int) -> bool:
        ahead = [end(i, job) for job, (start, _) in plans[i].items() if start > now]
        return not ahead or max(ahead) - now <= threshold

    while waiting:
        collected = [job for job in waiting if jobs[job][0] <= now]
        over = [enough(i) for i in range(len(clusters))]
        if not collected or not (any(over) if ends == "any" else all(over)):
            now += 1
            continue
        draw = partial(pick, stream(seed, number, len(clusters)))
        state = []
        for i, cluster in enumerate(clusters):
            free = [now] * (cluster.processors // cluster.unit)
            for job, (_, resources) in plans[i].items():
                for r in resources:
                    free[r] = max(free[r], end(i, job))
            left = [
                job
                for job, (start, _) in plans[i].items()
                if (end(i, job) if epsilon == "unfinished" else start) > now
            ]
            ahead = [load(job, cluster, durations[i], jobs, due) for job in left]
            state.append(NaiveCluster(free, ahead, cluster.unit))
        seeds = naive_packing.allocate(
            [jobs[job][2] for job in collected],
            [[row[job] for job in collected] for row in durations],
            [[due[job] - row[job] - jobs[job][0] for job in collected] for row in durations],
            state,
            draw,
        )
        for k, placed in seeds.items():
            plans[placed.cluster][collected[k]] = (placed.start, placed.resources)
        waiting = [job for job in waiting if job not in collected]
        number += 1
    return {job: (i, start) for i, plan in enumerate(plans) for job, (start, _) in plan.items()}


def load(
    job: int, cluster: Cluster, durations: list[int], jobs: list[tuple[int, int, int]], due: list[int]
) -> tuple[int, int, int]:
    slack = due[job] - durations[job] - jobs[job][0]
    return durations[job], ceil(jobs[job][2] / cluster.unit) * cluster.unit, max(slack, 1)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Jobs by submit time, run time and processors, and their deadlines."""
    jobs, due, submit = [], [], 0
    for _ in range(draw(st.integers(1, 16))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 7]))
        run_time = draw(st.integers(1, 9))
        jobs.append((submit, run_time, draw(st.integers(1, 8))))
        due.append(submit + draw(st.integers(0, 30)))
    return jobs, due


@pytest.mark.parametrize("ends", ["any", "all"])
@pytest.mark.parametrize("clusters", [CLUSTERS, NODES], ids=["processors", "nodes"])
@given(
    jobs=streams(),
    threshold=st.sampled_from([0, 3, 8]),
    epsilon=st.sampled_from(["unstarted", "unfinished"]),
    due_from=st.sampled_from(["submission", "round"]),
)
@settings(max_examples=60)
def test_rounds_equal_a_walk_over_the_seconds(
    clusters: list[Cluster],
    ends: Any,
    jobs: tuple[list[tuple[int, int, int]], list[int]],
    threshold: int,
    epsilon: Any,
    due_from: Any,
) -> None:
    rows, due = jobs
    policy = Multicluster(local="seed", ends=ends, threshold=threshold, epsilon=epsilon, due_from=due_from)
    run = run_of(workload_of(rows), clusters, policy, due=due, seed=3)
    # Slack is the same: a deadline that counts from the round has the round in place of the submission
    expected = walk(rows, due, clusters, threshold, ends, seed=3, epsilon=epsilon)
    promised = [last - submit for last, (submit, _, _) in zip(due, rows, strict=True)]
    since = run["round_time"].values[run["job_round"].values] if due_from == "round" else run["submit_time"]
    assert_fields(run, deadline=(np.asarray(since) + promised).tolist(), segment_job=list(range(len(rows))))
    found = zip(run["segment_cluster"].values.tolist(), run["start_time"].values.tolist(), strict=True)
    assert list(found) == [expected[job] for job in range(len(rows))]


# --- local policies against the oracle ------------------------------------------------------------


@st.composite
def handed_over(draw: st.DrawFn) -> tuple[list[InterruptedJob], list[Site], list[Resize]]:
    """Jobs for some clusters with local policies, and how these change; every job fits somewhere."""
    clusters = []
    # the clusters of a grid have at most one order that is a score
    score = draw(st.sampled_from(["lxf", "lxwf"]))
    for _ in range(draw(st.integers(1, 3))):
        own = draw(strategies.grid_clusters())
        order = score if own.order in ("lxf", "lxwf") else own.order
        policy = Policy(order, own.backfilling, own.reservations, own.backfill_order)
        clusters.append(Site(own.processors, policy=policy))
    widest = max(site.resources for site in clusters)
    jobs, submit = [], 0
    for _ in range(draw(st.integers(1, 16))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 7]))
        run, estimate = draw(strategies.run_and_estimate(2, accurate=False))
        width, due = draw(st.integers(1, widest)), submit + draw(st.integers(0, 30))
        jobs.append(InterruptedJob(submit, max(run, 1), estimate, width, due))
    changes = []
    if len(clusters) > 1:
        # the widest one stays as it is
        narrow = [m for m in range(len(clusters)) if m != [site.resources for site in clusters].index(widest)]
        for time in sorted(draw(st.lists(st.integers(0, 40), max_size=3))):
            changes.append(Resize(time, draw(st.sampled_from(narrow)), draw(st.integers(0, widest))))
    return jobs, clusters, changes


def local_policy(policy: Policy | None) -> LocalPolicy:
    """The policy of an oracle."""
    assert policy is not None
    return LocalPolicy(**policy._asdict())


@pytest.mark.parametrize("measure", [True, False])
@pytest.mark.parametrize("dispatcher", ["muscle", "dll"])
@given(
    case=handed_over(),
    overrun=st.sampled_from(["doubling", "increments"]),
)
@settings(max_examples=100)
def test_any_local_policy_equals_the_oracle(
    dispatcher: Any,
    measure: bool,
    case: tuple[list[InterruptedJob], list[Site], list[Resize]],
    overrun: Any,
) -> None:
    jobs, clusters, changes = case
    workload = workload_of(
        [(job.submit, job.run, job.processors) for job in jobs],
        requested_time=np.array([job.estimate for job in jobs]),
        deadline=np.array([job.due for job in jobs]),
    )
    place = Platform(
        [
            Cluster(name=f"c{m}", processors=site.resources, policy=local_policy(site.policy))
            for m, site in enumerate(clusters)
        ],
        changes=[ResourceChange(time, f"c{m}", processors) for time, m, processors in changes],
    )
    policy = Multicluster(dispatcher=dispatcher, local="policy", rounds="arrival", measure=measure)
    run = simulate(workload, place, policy, overrun=overrun, seed=3, times="unit")
    verify(run)
    random = {}

    def draw(number: int, equals: int) -> int:
        if number not in random:
            random[number] = stream(3, number, len(clusters))
        return pick(random[number], equals)

    naive = InterruptedMulticluster(
        jobs, clusters, changes=changes, overrun=overrun, dispatcher=dispatcher, rounds="arrival", draw=draw
    ).run()
    found = zip(run["segment_cluster"].values.tolist(), run["start_time"].values.tolist(), strict=True)
    assert list(found) == [(each.cluster, each.start) for each in sorted(naive.executions)]


# --- baselines ------------------------------------------------------------------------------------


WIDE, DOUBLE = Cluster(name="wide", processors=8), Cluster(name="fast", processors=4, speed=2.0)
LEAST_LOAD = Multicluster(dispatcher="dll", local="seed", rounds="arrival")


@pytest.mark.parametrize(
    ("load", "jobs", "places"),
    [
        # Loads after the first two: 10 x 4 / 8 = 5 and 5 x 4 / 4 = 5; so wide, the first; then exactly 8
        (
            LEAST_LOAD.load,
            [(0, 10, 4), (0, 10, 4), (1, 8, 4), (2, 4, 8), (2, 4, 1), (40, 6, 4), (40, 6, 4)],
            [0, 1, 0, 0, 1, 0, 1],
        ),
        # What has started is no load any more
        ("unstarted", [(0, 10, 4), (5, 10, 4)], [0, 0]),
    ],
)
def test_least_load_follows_equation_six(
    load: Any, jobs: list[tuple[int, int, int]], places: list[int]
) -> None:
    policy = replace(LEAST_LOAD, load=load)
    run = run_of(workload_of(jobs), [WIDE, DOUBLE], policy, due=[99] * len(jobs))
    assert_fields(run, segment_cluster=places)


@pytest.mark.parametrize("dispatcher", ["dll", "wrand"])
def test_rivals_may_pass_by_clusters_that_are_only_as_wide_as_a_job(dispatcher: Any) -> None:
    sizes = np.tile(np.arange(1, 9), 40)
    jobs = workload_of([(50 * k, 9, int(size)) for k, size in enumerate(sizes)])
    policy = replace(LEAST_LOAD, dispatcher=dispatcher)
    exact, larger = (
        run_of(jobs, CLUSTERS, replace(policy, fit=fit), due=[10**6] * 320)["segment_cluster"].values
        for fit in ("exact", "larger")
    )
    width = np.array([cluster.processors for cluster in CLUSTERS])
    assert set(larger[sizes == 8]) == {0}, "no cluster is larger"
    assert (width[larger] > sizes)[sizes < 8].all()
    assert (width[exact] == sizes)[sizes < 8].any() == (dispatcher == "wrand")
    # where each is larger, both draw and weigh alike
    assert dispatcher == "dll" or (exact == larger)[sizes < 4].all()


def test_deadlines_from_the_round_count_for_the_local_scheduler_and_the_measures() -> None:
    workload = drawn()
    assert workload.deadline is not None
    policies = [Multicluster(titan=FAST, due_from=due_from) for due_from in ("submission", "round")]
    submission, round_ = (run_of(workload, CLUSTERS, policy) for policy in policies)
    first = round_["round_time"].to_numpy()[round_["job_round"].to_numpy()]
    assert_fields(submission, deadline=workload.deadline)
    assert_fields(round_, deadline=workload.deadline - workload.submit_time + first)
    late = [float(summarise_multicluster(run)["over_deadline"]) for run in (submission, round_)]
    assert late[1] < late[0]
    verify(submission)
    verify(round_)


def test_weighted_random_follows_capacities() -> None:
    clusters = [Cluster(name="a", processors=6), Cluster(name="b", processors=3, speed=2.0), CLUSTERS[2]]
    jobs = workload_of([(k, 1, 1 + k % 6) for k in range(3000)])
    policy = replace(LEAST_LOAD, dispatcher="wrand")
    chosen = run_of(jobs, clusters, policy, due=[9999] * 3000, seed=2)["segment_cluster"].values
    small = np.bincount(chosen[np.arange(3000) % 6 < 3], minlength=3) / 1500
    assert np.allclose(small, np.array([6, 6, 6.8]) / 18.8, atol=0.04)
    assert set(chosen[3::6]) == {0, 2}
    assert {*chosen[4::6], *chosen[5::6]} == {0}


# --- metrics --------------------------------------------------------------------------------------


def test_mcp_and_pb_by_hand() -> None:
    cp, jobs = [[10.0, 20.0, 60.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]], [[1, 2, 1], [3, 0, 1], [0, 0, 0]]
    assert mean_performance(cp[:2], jobs[:2]).tolist() == [27.5, 5.0]
    # (17.5^2 + 7.5^2 + 32.5^2) / 2
    assert performance_balance(cp[:2], jobs[:2]).tolist() == pytest.approx([709.375**0.5, 0.0])
    assert np.isnan(mean_performance(cp, jobs)[2])
    assert np.isnan(performance_balance([[3.0]], [[1]])).all()
    assert over_deadline([5, 9], [7, 4]).tolist() == [0, 5]


def test_a_summary_by_hand(tmp_path: Path) -> None:
    # One cluster of 2: job 1 runs 0-4 on one, 2 waits until 4 and runs to 6 on two, job 3 is too large.
    workload = workload_of([(0, 4, 1), (1, 2, 2), (1, 5, 3)])
    policy = Multicluster(local="seed", weights=Weights(over_deadline=1, makespan=2, idle=1))
    run = run_of(workload, [Cluster(name="one", processors=2)], policy, due=[3, 9, 9])
    verify(run)
    run["service_class"] = ("job", [0, 1, 1])
    run.attrs["service_classes"] = "gold, silver"
    # At 0: makespan 4, nothing idle, 1 late. At 1: makespan 5, one resource idle from 1 to 4, nothing late.
    performance = [[9 / 4], [13 / 4]]
    assert_fields(run, start_time=[0, 4, -1], round_time=[0, 1], comprehensive_performance=performance)
    summary = summarise_multicluster(run)
    assert_fields(summary, jobs=2, rejected=1, rounds=2, mcp_mean=11 / 4, queue_mean=0, waiting_mean=0)
    assert_fields(summary, over_deadline=1, late=0.5, makespan=6, idle_time=4, wait_time_mean=1.5)
    assert_fields(summary, over_deadline_mean_class=[1, 0], class_name=["gold", "silver"])
    results.write(run, tmp_path / "run.nc")
    assert results.read(tmp_path / "run.nc")["segment_resources"].equals(run["segment_resources"])


def test_queues_are_averaged_over_arrivals() -> None:
    # One processor: job 2 is collected from 1 to 4, when no job waits any more, job 3 from 2 to 4 too.
    workload = workload_of([(0, 4, 1), (0, 3, 1), (1, 1, 1), (2, 1, 1), (12, 1, 1)])
    run = run_of(workload, [Cluster(processors=1)], Multicluster(local="seed"), due=[99] * 5)
    assert_fields(run, round_time=[0, 4, 12], start_time=[0, 4, 7, 8, 12])
    assert_fields(run, queue_mean=pytest.approx((3 + 2) / 12), waiting_mean=pytest.approx((4 + 6 + 6) / 12))
    collected, waiting = float(run["queue_mean"]), float(run["waiting_mean"])
    queues = {"collected": collected, "waiting": waiting, "handed over": (2 + 2 + 1) / 3}
    assert mean_queues(run) == pytest.approx(queues)


# --- workloads ------------------------------------------------------------------------------------


def test_rates_stretch_arrivals_only() -> None:
    slow = synthesise_multicluster(MODEL, jobs=300, rate=0.1, seed=2)
    quick = synthesise_multicluster(MODEL, jobs=400, rate=0.2, seed=2)
    assert (slow.run_time == quick.run_time[:300]).all()
    assert (slow.processors == quick.processors[:300]).all()
    assert np.abs(slow.submit_time - 2 * quick.submit_time[:300]).max() <= 2
    assert slow.checksum != quick.checksum
    assert slow.equals(synthesise_multicluster(MODEL, jobs=300, rate=0.1, seed=2))
    assert slow.run_time.min() >= 50
    assert slow.run_time.max() <= 1000


@pytest.mark.parametrize("sizes", ["uniform", "normal", "log"])
def test_sizes_follow_their_distribution(sizes: Any) -> None:
    model = MulticlusterModel(sizes=sizes, smallest=1, largest=20)
    share = model.size_distribution
    assert share.sum() == pytest.approx(1)
    if sizes == "log":
        # Fewer than n processors with a probability in proportion to log n
        assert np.allclose(np.cumsum(share), np.log(np.arange(2, 22)) / np.log(21))
    elif sizes == "normal":
        assert np.allclose(share, share[::-1])
        assert share.argmax() in (9, 10)
    workload = synthesise_multicluster(model, jobs=20_000, rate=1.0, seed=1)
    drawn_share = np.bincount(workload.processors, minlength=21)[1:] / 20_000
    assert np.allclose(drawn_share, share, atol=0.015)
    work = (workload.run_time * workload.processors).mean() / model.unit
    assert work == pytest.approx(model.mean_work, rel=0.05)
    assert workload.submit_time[-1] / model.unit == pytest.approx(20_000, rel=0.05)


def test_deadlines_follow_equation_five() -> None:
    workload = drawn(500)
    classes = [
        ServiceClass(name="gold", low=0, high=1, share=1),
        ServiceClass(name="silver", low=2, high=5, share=3),
    ]
    chosen = draw_classes(500, classes, seed=4)
    assert 80 < (chosen == 0).sum() < 170
    due = draw_deadlines(workload, classes, seed=4, slowest=0.5, service_class=chosen)
    longest = 2 * workload.run_time
    ratio = (due - workload.submit_time) / longest - 1
    for index, (low, high) in enumerate([(0, 1), (2, 5)]):
        own = ratio[chosen == index]
        assert own.min() >= low
        assert own.max() <= high + 0.02
        assert own.mean() == pytest.approx((low + high) / 2, rel=0.1)


def test_deadlines_are_drawn_where_there_are_none() -> None:
    workload = replace(drawn(), deadline=None)
    tight = ServiceClass(name="tight", low=1, high=2)
    slow = [replace(CLUSTERS[0], speed=0.8), *CLUSTERS[1:]]
    run = run_of(workload, slow, Multicluster(local="seed", deadlines=tight), seed=4)
    due = draw_deadlines(workload, [tight], seed=4, slowest=0.8)
    assert run["deadline"].values.tolist() == due.tolist()
    given_ = run_of(workload, slow, Multicluster(local="seed"), due=due, seed=4)
    assert run["start_time"].equals(given_["start_time"])


def test_prediction_errors() -> None:
    workload = drawn(2000)
    assert (with_prediction_errors(workload, 0, seed=1).requested_time == workload.run_time).all()
    wrong = with_prediction_errors(workload, 0.5, seed=1)
    factor = np.log(wrong.requested_time / workload.run_time)
    assert factor.std() == pytest.approx(0.5, rel=0.1)
    assert abs(np.median(factor)) < 0.05
    assert (wrong.run_time == workload.run_time).all()


def test_batches_come_to_idle_clusters() -> None:
    workload = in_batches(drawn(50), 8, slowest=1.0)
    assert workload.submit_time[0] == 0
    assert list(np.unique(workload.submit_time, return_counts=True)[1]) == [8] * 6 + [2]
    for dispatcher in ("muscle", "dll", "wrand"):
        run = run_of(workload, CLUSTERS, Multicluster(dispatcher=dispatcher, titan=FAST))
        given = run["round_collected"].values
        assert list(given[given > 0]) == [8] * 6 + [2]
        ends = run["end_time"].values
        for first in range(8, 50, 8):
            assert ends[:first].max() <= workload.submit_time[first]
    slow = in_batches(drawn(50), 8, slowest=0.5)
    assert slow.submit_time[-1] > 1.9 * workload.submit_time[-1]
    assert slow.checksum != workload.checksum
    assert (in_batches(drawn(5), 9).submit_time == 0).all()


def test_levels_are_met() -> None:
    policy = Multicluster(titan=FAST, local="seed")
    arguments: dict[str, Any] = {"jobs": 600, "seeds": [1, 2], "scheduler": policy}
    found = [calibrate_rate(level, MODEL, CLUSTERS, **arguments) for level in (6, 15)]
    rates, met = zip(*found, strict=True)
    assert met == pytest.approx((6, 15), rel=0.2)
    assert rates[0] < rates[1]
    assert found == [calibrate_rate(level, MODEL, CLUSTERS, **arguments) for level in (6, 15)]
    queues = []
    for seed in (1, 2):
        workload = synthesise_multicluster(MODEL, jobs=600, rate=rates[0], seed=seed)
        due = draw_deadlines(workload, [ServiceClass(name="all")], seed=seed)
        queues.append(float(run_of(workload, CLUSTERS, policy, due=due)["queue_mean"]))
    assert np.mean(queues) == met[0]
    for counts in ("handed over", "waiting"):
        rate, queue = calibrate_rate(15, MODEL, CLUSTERS, counts=counts, **arguments)
        assert queue == pytest.approx(15, rel=0.2)
        assert rate != rates[1]
    with refused("lets 900 of 600 jobs be in the queue", error=WorkloadError):
        calibrate_rate(900, MODEL, CLUSTERS, **arguments)


# --- mistakes -------------------------------------------------------------------------------------


TWO = workload_of([(0, 4, 1), (5, 2, 2)], deadline=np.array([3, 9]))
GOLD, SILVER = ServiceClass(name="gold", low=0, high=1), ServiceClass(name="silver", low=2, high=5, share=3)


def with_options(**options: Any) -> object:
    return Multicluster(**options)


def with_model(**options: Any) -> object:
    return MulticlusterModel(**options)


def of_two(
    clusters: Sequence[Cluster] = CLUSTERS, *, home: ArrayLike | None = None, **options: Any
) -> object:
    workload = TWO if home is None else replace(TWO, home=np.asarray(home))
    return run_of(workload, clusters, Multicluster(), **options)


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (lambda: with_options(dispatcher="best"), ["dispatcher is 'best'; use one of muscle, dll, wrand"]),
        (lambda: with_options(threshold=-1), ["threshold is -1"]),
        (lambda: with_options(announcement_delay=-1), ["announcement_delay is -1"]),
        (lambda: with_options(threads=0), ["threads is 0"]),
        (
            lambda: with_options(dispatcher="dll", seeding="muscle"),
            ["seeding is 'muscle', but dispatcher is 'dll'"],
        ),
        (lambda: with_options(local="seed", seeding="none"), ["local is 'seed'"]),
        (
            lambda: with_options(local="esay"),
            ["local is 'esay'; use one of titan, seed, policy, fcfs, ", "easy(r)"],
        ),
        (lambda: with_options(ends="some"), ["use one of any, all"]),
        (lambda: with_options(fit="tight"), ["use one of exact, larger"]),
        (lambda: with_options(epsilon="all"), ["use one of unfinished, unstarted"]),
        (lambda: with_options(due_from="start"), ["use one of submission, round"]),
        (
            lambda: run_of(replace(TWO, home=np.array([0, 3])), CLUSTERS, Multicluster()),
            ["home", "index of one of the 3 clusters"],
        ),
        (
            lambda: run_of(TWO, CLUSTERS, Multicluster(weights=[Weights()])),
            ["1 weights for 3 clusters"],
        ),
        (lambda: of_two(changes=[ResourceChange(1, "C9", 1)]), ["unknown cluster 'C9'"]),
        (lambda: of_two(changes=[ResourceChange(1, "C1", -1)]), ["C1 has -1 processors from 1 s on"]),
        (
            lambda: of_two(changes=[ResourceChange(1, each.name, 0) for each in CLUSTERS]),
            ["no cluster has processors"],
        ),
        (
            lambda: of_two(NODES, changes=[ResourceChange(900, "N1", 3)]),
            ["N1 has 3 processors from 900 s on", "whole nodes of 2"],
        ),
        (
            lambda: summarise_multicluster(
                run_of(TWO, CLUSTERS, Multicluster()).drop_vars("comprehensive_performance")
            ),
            ["no variable comprehensive_performance"],
        ),
    ],
)
def test_mistakes_in_policies_are_named(wrong: Callable[[], object], parts: list[str]) -> None:
    with refused(*parts):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (lambda: of_two(due=[3, 4]), ["job 2 has its deadline at 4 s, before its submission at 5 s"]),
        (lambda: of_two(due=[3.0, 4.0]), ["column deadline", "whole numbers for each of the 2 jobs"]),
        (lambda: of_two(due=[3]), ["column deadline", "whole numbers for each of the 2 jobs"]),
        (lambda: run_of(workload_of([]), CLUSTERS, Multicluster()), ["no jobs to simulate"]),
        (lambda: with_model(sizes="odd"), ["sizes is 'odd'"]),
        (lambda: with_model(smallest=0), ["sizes from 0 to 10"]),
        (lambda: with_model(unit=0), ["unit is 0"]),
        (lambda: synthesise_multicluster(MODEL, jobs=0, rate=1, seed=1), ["jobs is 0"]),
        (lambda: synthesise_multicluster(MODEL, jobs=1, rate=0, seed=1), ["rate is 0"]),
        (lambda: with_prediction_errors(TWO, -1, seed=1), ["deviation is -1"]),
        (lambda: in_batches(TWO, 0), ["batches: size is 0"]),
        (lambda: ServiceClass(name="x", low=-1), ["service class x"]),
        (lambda: ServiceClass(name="x", low=2, high=1), ["service class x"]),
        (lambda: ServiceClass(name="x", share=-1), ["service class x"]),
        (lambda: draw_deadlines(TWO, [], seed=1), ["no service class"]),
        (
            lambda: draw_deadlines(TWO, [GOLD], seed=1, service_class=np.array([0, 1])),
            ["one of the 1 classes for each of the 2 jobs"],
        ),
        (lambda: draw_deadlines(TWO, [GOLD, SILVER], seed=1, slowest=0), ["slowest speed is 0"]),
        (lambda: draw_classes(3, [replace(GOLD, share=0)], seed=1), ["no class has a share"]),
    ],
)
def test_mistakes_in_workloads_are_named(wrong: Callable[[], object], parts: list[str]) -> None:
    with refused(*parts, error=WorkloadError):
        wrong()
