"""Predicted starts, exact and planned, and sampled clusters, against the naive oracle of a grid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers import superscheduler as grid
from gridsched.schedulers.local import OverrunName, named_policy
from gridsched.simulation import simulate_grid
from gridsched.verifier import verify
from gridsched.workloads import load_machines, synthesise
from tests import engine, naive_grid, strategies
from tests.naive import Job
from tests.naive_grid import GridCluster, GridJob
from tests.test_superscheduler import platform, with_one_score

Grid = tuple[list[GridJob], list[GridCluster]]
MODES: tuple[grid.PredictionsName, ...] = ("exact", "plan")


def records(jobs: list[GridJob]) -> np.ndarray:
    return np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], JOB)


def run(
    jobs: list[GridJob],
    clusters: list[GridCluster],
    superscheduler: grid.Superscheduler,
    overrun: str = "doubling",
) -> list[tuple[int, int]]:
    """Start time and cluster of each job."""
    home = np.array([j.home for j in jobs], np.int64)
    done = grid.schedule_grid(
        records(jobs), home, *platform(clusters), superscheduler, overrun=cast(OverrunName, overrun)
    )
    return [(int(s), int(c)) for s, c in zip(done.start_time, done.cluster, strict=True)]


def samples(
    jobs: list[GridJob], clusters: list[GridCluster], superscheduler: grid.Superscheduler
) -> list[list[int]]:
    """The clusters that each job asks."""
    drawn = grid.draw_samples(superscheduler, records(jobs)["processors"], platform(clusters)[0])
    return [[int(m) for m in sample if m >= 0] for sample in drawn]


def expected(
    jobs: list[GridJob],
    clusters: list[GridCluster],
    superscheduler: grid.Superscheduler,
    overrun: str = "doubling",
) -> list[tuple[int, int]]:
    """What the oracle says."""
    return naive_grid.simulate_grid(
        jobs,
        clusters,
        scheme=superscheduler.scheme,
        phi=superscheduler.phi,
        sigma=superscheduler.sigma,
        delta=superscheduler.delta,
        epsilon=superscheduler.epsilon,
        overrun=overrun,
        predictions=superscheduler.predictions,
        samples=samples(jobs, clusters, superscheduler) if superscheduler.scheme == "sampled" else None,
    )


@st.composite
def superschedulers(draw: st.DrawFn, /, **given: Any) -> grid.Superscheduler:
    parameters: dict[str, Any] = dict(draw(strategies.grid_parameters()))
    parameters["delta"] = min(parameters["delta"], 1.0)
    parameters["k"] = draw(st.integers(1, 4))
    parameters["seed"] = draw(st.integers(0, 9))
    return grid.Superscheduler(**{**parameters, **given})


@st.composite
def crowds(draw: st.DrawFn) -> Grid:
    """Many jobs on few processors, mostly served in order of entry; estimates may all be right.

    Queues are long, jobs enter while forecasts hold, and ends coincide.
    """
    processors = draw(st.sampled_from([2, 5, 8]))
    backfilling = draw(st.sampled_from(["none", "first_fit", "easy", "easy", "conservative"]))
    clusters = [
        GridCluster(processors, backfilling=backfilling),
        GridCluster(processors + draw(st.integers(0, 2)), speed=draw(st.sampled_from([1.0, 2.0]))),
    ]
    accurate = draw(st.booleans())
    unit = draw(st.sampled_from([1, 3, 10]))
    gap = st.sampled_from([0, 0, 1, unit])
    jobs = []
    submit_time = 0
    for _ in range(draw(st.integers(15, 40))):
        submit_time += draw(gap)
        run_time, estimate = draw(strategies.run_and_estimate(unit, accurate=accurate))
        jobs.append(GridJob(submit_time, run_time, estimate, draw(strategies.sizes(processors)), 0))
    return jobs, clusters


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize("scheme", ["central", "s-i", "r-i", "sy-i", "sampled"])
@given(
    case=strategies.grids(max_jobs=16), overrun=st.sampled_from(["doubling", "increments"]), data=st.data()
)
@settings(max_examples=100, deadline=None)
def test_schemes_equal_the_oracle(
    predictions: str, scheme: str, case: Grid, overrun: str, data: st.DataObject
) -> None:
    jobs, clusters = case[0], with_one_score(case[1])
    superscheduler = data.draw(superschedulers(scheme=scheme, predictions=predictions))
    assert run(jobs, clusters, superscheduler, overrun) == expected(jobs, clusters, superscheduler, overrun)


@pytest.mark.parametrize("predictions", MODES)
@given(case=crowds(), scheme=st.sampled_from(["central", "s-i", "sy-i", "sampled"]), data=st.data())
@settings(max_examples=100, deadline=None)
def test_crowds_equal_the_oracle(predictions: str, case: Grid, scheme: str, data: st.DataObject) -> None:
    superscheduler = data.draw(superschedulers(scheme=scheme, predictions=predictions))
    assert run(*case, superscheduler) == expected(*case, superscheduler)


@pytest.mark.parametrize("predictions", MODES)
@given(case=crowds(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_room_makes_no_difference(predictions: str, case: Grid, data: st.DataObject) -> None:
    superscheduler = data.draw(superschedulers(scheme="central", predictions=predictions))
    wide = run(*case, superscheduler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "FIRST_ROOM", 1)
        assert run(*case, superscheduler) == wide


def test_exact_follows_the_policy_and_a_plan_does_not() -> None:
    # Cluster 0 has two processors: job 0 holds one of them until 100, job 1 needs both. Without backfilling
    # job 2 would start at 150; a plan has a hole for it now. Cluster 1 would run it within 35 s.
    jobs = [GridJob(0, 100, 100, 1, 0), GridJob(0, 50, 50, 2, 0), GridJob(1, 30, 30, 1, 0)]
    clusters = [GridCluster(2, backfilling="none"), GridCluster(1, speed=30 / 35)]
    for predictions, last in (("exact", (1, 1)), ("plan", (150, 0))):
        mode = cast(grid.PredictionsName, predictions)
        superscheduler = grid.Superscheduler(scheme="central", predictions=mode)
        assert run(jobs, clusters, superscheduler) == [(0, 0), (100, 0), last]


def test_plan_places_a_job_that_enters_behind_all_others_until_it_is_made_anew() -> None:
    # Shortest first. At 2 job 2 (5 s) would start at 10, ahead of job 1; the plan has it behind: at 60.
    # Cluster 1 is busy until 40: exact prefers cluster 0 (10 + 5), the plan cluster 1.
    jobs = [
        GridJob(0, 10, 10, 1, 0),
        GridJob(0, 40, 40, 1, 1),
        GridJob(1, 50, 50, 1, 0),
        GridJob(2, 5, 5, 1, 0),
    ]
    clusters = [GridCluster(1, order="shortest", backfilling="none"), GridCluster(1)]
    sent = {
        predictions: run(jobs, clusters, grid.Superscheduler(scheme="central", predictions=predictions))[3]
        for predictions in MODES
    }
    assert sent == {"exact": (10, 0), "plan": (40, 1)}


def test_a_planned_start_that_the_policy_does_not_make_outdates_the_plan() -> None:
    # Job 2 could start beside job 0, but not ahead of job 1. The plan that job 3 has made at 5 lets it run
    # from 5 to 15; at 6 it has not started: made anew, the plan offers job 4 a start at 16 and an end at 26,
    # as does cluster 1, which is idle.
    jobs = [
        GridJob(0, 100, 100, 1, 0),
        GridJob(0, 50, 50, 2, 0),
        GridJob(1, 10, 10, 1, 0),
        GridJob(5, 0, 1, 1, 0),
        GridJob(6, 10, 10, 1, 0),
    ]
    clusters = [GridCluster(2, backfilling="none"), GridCluster(1, speed=0.5)]
    superscheduler = grid.Superscheduler(scheme="central", predictions="plan")
    assert run(jobs, clusters, superscheduler) == [(0, 0), (100, 0), (150, 0), (5, 1), (6, 1)]


def test_outrun_estimates_outdate_the_plan_under_every_policy() -> None:
    # Job 0 is expected to end at 10, later at 20, 40, 80. At 39 job 2 makes a plan and waits for 40; at 41
    # job 3 would wait until 81 there, on cluster 1 until 60.
    for order, backfilling in (
        ("fcfs", "none"),
        ("shortest", "none"),
        ("shortest", "easy"),
        ("fcfs", "easy"),
    ):
        clusters = [GridCluster(1, order=order, backfilling=backfilling), GridCluster(1)]
        jobs = [
            GridJob(0, 1000, 10, 1, 0),
            GridJob(0, 60, 60, 1, 1),
            GridJob(39, 0, 1, 1, 0),
            GridJob(41, 5, 5, 1, 0),
        ]
        for predictions in MODES:
            superscheduler = grid.Superscheduler(scheme="central", predictions=predictions)
            assert run(jobs, clusters, superscheduler)[3] == (60, 1)


def test_early_ends_are_seen_by_both() -> None:
    # Cluster 0 is expected to be busy until 1000, cluster 1 until 30; the first ends at 5 already.
    jobs = [
        GridJob(0, 5, 1000, 1, 0),
        GridJob(0, 30, 30, 1, 1),
        GridJob(4, 9, 9, 1, 0),
        GridJob(6, 9, 9, 1, 1),
    ]
    clusters = [GridCluster(1), GridCluster(1)]
    for predictions in MODES:
        superscheduler = grid.Superscheduler(scheme="central", predictions=predictions)
        assert run(jobs, clusters, superscheduler) == [(0, 0), (0, 1), (30, 1), (6, 0)]


@pytest.mark.parametrize("policy", ["easy", "fcfs", "ff", "sjf", "conservative"])
def test_hundreds_of_running_jobs(policy: str) -> None:
    # More than one block of running jobs; two clusters that differ in name only, of which one gets them all.
    random = np.random.default_rng(3)
    number, processors = 600, 300
    jobs = np.empty(number, JOB)
    jobs["submit"] = np.sort(random.integers(0, 2000, number))
    jobs["run"] = random.integers(0, 1500, number)
    jobs["estimate"] = np.maximum(jobs["run"] // random.integers(1, 3, number), 1)
    jobs["processors"] = random.integers(1, 3, number)
    clusters = [Cluster(name=name, processors=processors) for name in ("a", "b")]
    done = grid.schedule_grid(
        jobs,
        np.zeros(number, np.int64),
        clusters,
        [named_policy(policy)] * 2,
        grid.Superscheduler(scheme="s-i", phi=10**9),
    )
    alone = [Job(*(int(value) for value in job)) for job in jobs.tolist()]
    assert done.start_time.tolist() == engine.simulate(alone, processors, named_policy(policy))


def test_simulated_runs_are_verified() -> None:
    machine = load_machines()["M3"]
    workloads = [synthesise(machine, jobs=300, seed=k, load_scale=2.0) for k in range(2)]
    clusters = [
        Cluster(name=name, processors=1152, processors_per_node=8, node_exclusive=True)
        for name in ("north", "south")
    ]
    for predictions in MODES:
        for scheme in ("s-i", "sampled"):
            superscheduler = grid.Superscheduler(scheme=scheme, predictions=predictions, k=2, seed=1)
            done = simulate_grid(workloads, clusters, superscheduler)
            verify(done)
            assert done.attrs["predictions"] == predictions
            assert ("k" in done.attrs) == (scheme == "sampled")


# Samples


def platform_of(*sizes: int) -> list[Cluster]:
    return [Cluster(name=f"c{m}", processors=size) for m, size in enumerate(sizes)]


def test_a_sample_begins_that_for_more() -> None:
    clusters = platform_of(*range(1, 13))
    processors = np.random.default_rng(0).integers(1, 14, 5000)
    drawn = {
        k: grid.draw_samples(grid.Superscheduler(scheme="sampled", k=k, seed=5), processors, clusters)
        for k in (1, 3, 12, 40)
    }
    for few, more in pairwise(drawn.values()):
        assert np.array_equal(few, more[:, : few.shape[1]])
    assert drawn[40].shape == (5000, 12)
    for job, sample in zip(processors, drawn[40], strict=True):
        fitting = [m for m in range(12) if m + 1 >= job]
        assert sorted(sample[: len(fitting)]) == fitting
        assert (sample[len(fitting) :] == -1).all()


def test_samples_are_uniform_and_depend_on_the_seed() -> None:
    clusters = platform_of(4, 4, 1, 4)
    one, other = (
        grid.draw_samples(grid.Superscheduler(scheme="sampled", k=2, seed=seed), np.full(60_000, 2), clusters)
        for seed in (0, 1)
    )
    pairs = np.unique(one, axis=0, return_counts=True)
    assert pairs[0].tolist() == [[0, 1], [0, 3], [1, 0], [1, 3], [3, 0], [3, 1]]
    assert np.abs(pairs[1] - 10_000).max() < 500
    assert (one != other).any()


def test_a_sample_of_one_is_not_asked() -> None:
    jobs = records([GridJob(0, 10, 10, 1, 0)] * 50)
    home = np.zeros(50, np.int64)
    clusters = platform_of(1, 1)
    policies = [named_policy("easy")] * 2
    for k, queries in ((1, 0), (2, 100)):
        superscheduler = grid.Superscheduler(scheme="sampled", k=k)
        done = grid.schedule_grid(jobs, home, clusters, policies, superscheduler)
        assert done.queries == queries
        assert set(done.cluster) == {0, 1}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"predictions": "guess"}, "predictions is 'guess'; use one of exact, plan"),
        ({"k": 0}, "k is 0; use 1 or more"),
        ({"seed": -1}, "seed is -1; use 0 or more"),
    ],
)
def test_impossible_predictions_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        grid.Superscheduler(scheme="sampled", **change)
