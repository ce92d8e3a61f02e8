"""Predicted starts, exact and planned, against the naive oracle of a grid."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies.local import OverrunName, named_policy
from gridsched.simulation import simulate
from gridsched.systems import grids
from gridsched.systems.jscheduler import scheduler as jscheduler
from gridsched.systems.superscheduler import scheduler as grid
from gridsched.verification import verify
from gridsched.workloads import load_machines, synthesise
from tests.oracles import grid as naive_grid
from tests.oracles.grid import GridCluster, GridJob
from tests.oracles.local import Job
from tests.support import engine, strategies
from tests.support.grids import places, schedule_grid
from tests.support.jscheduler import Submissions, in_short, simulation_of
from tests.systems.superscheduler.test_scheduler import platform, with_one_score

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
    return places(
        schedule_grid(records(jobs), home, *platform(clusters), superscheduler, cast(OverrunName, overrun))
    )


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
    )


@st.composite
def superschedulers(draw: st.DrawFn, /, **given: Any) -> grid.Superscheduler:
    parameters: dict[str, Any] = dict(draw(strategies.grid_parameters()))
    parameters["delta"] = min(parameters["delta"], 1.0)
    return grid.Superscheduler(**{**parameters, **given})


@pytest.mark.parametrize("predictions", MODES)
@pytest.mark.parametrize("scheme", ["central", "s-i", "r-i", "sy-i"])
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
@given(case=strategies.crowds(), scheme=st.sampled_from(["central", "s-i", "sy-i"]), data=st.data())
@settings(max_examples=100, deadline=None)
def test_crowds_equal_the_oracle(predictions: str, case: Grid, scheme: str, data: st.DataObject) -> None:
    superscheduler = data.draw(superschedulers(scheme=scheme, predictions=predictions))
    assert run(*case, superscheduler) == expected(*case, superscheduler)


@pytest.mark.parametrize("predictions", MODES)
@given(case=strategies.crowds(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_room_makes_no_difference(predictions: str, case: Grid, data: st.DataObject) -> None:
    superscheduler = data.draw(superschedulers(scheme="central", predictions=predictions))
    wide = run(*case, superscheduler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "FIRST_ROOM", 1)
        assert run(*case, superscheduler) == wide


# What is worked out by hand: clusters, jobs, and which start of which job both modes give, or each of them.
WORKED: dict[str, tuple[list[GridCluster], list[GridJob], int, dict[str, tuple[int, int]]]] = {
    # Cluster 0 has two processors: job 0 holds one of them until 100, job 1 needs both. Without backfilling
    # job 2 would start at 150; a plan has a hole for it now. Cluster 1 would run it within 35 s.
    "exact follows the policy and a plan does not": (
        [GridCluster(2, backfilling="none"), GridCluster(1, speed=30 / 35)],
        [GridJob(0, 100, 100, 1, 0), GridJob(0, 50, 50, 2, 0), GridJob(1, 30, 30, 1, 0)],
        2,
        {"exact": (1, 1), "plan": (150, 0)},
    ),
    # Shortest first. At 2 job 3 (5 s) would start at 10, ahead of job 2; the plan has it behind: at 60.
    # Cluster 1 is busy until 40: exact prefers cluster 0 (10 + 5), the plan cluster 1.
    "a plan places a job that enters behind all others until it is made anew": (
        [GridCluster(1, order="shortest", backfilling="none"), GridCluster(1)],
        [
            GridJob(0, 10, 10, 1, 0),
            GridJob(0, 40, 40, 1, 1),
            GridJob(1, 50, 50, 1, 0),
            GridJob(2, 5, 5, 1, 0),
        ],
        3,
        {"exact": (10, 0), "plan": (40, 1)},
    ),
    # Job 2 could start beside job 0, but not ahead of job 1. The plan that job 3 has made at 5 lets it run
    # from 5 to 15; at 6 it has not started: made anew, the plan offers job 4 a start at 16 and an end at 26,
    # as does cluster 1, which is idle.
    "a planned start that the policy does not make outdates the plan": (
        [GridCluster(2, backfilling="none"), GridCluster(1, speed=0.5)],
        [
            GridJob(0, 100, 100, 1, 0),
            GridJob(0, 50, 50, 2, 0),
            GridJob(1, 10, 10, 1, 0),
            GridJob(5, 0, 1, 1, 0),
            GridJob(6, 10, 10, 1, 0),
        ],
        4,
        {"plan": (6, 1)},
    ),
    # Job 0 is expected to end at 10, later at 20, 40, 80. At 39 job 2 makes a plan and waits for 40; at 41
    # job 3 would wait until 81 there, on cluster 1 until 60.
    **{
        f"outrun estimates outdate the plan, {order}, {backfilling}": (
            [GridCluster(1, order=order, backfilling=backfilling), GridCluster(1)],
            [
                GridJob(0, 1000, 10, 1, 0),
                GridJob(0, 60, 60, 1, 1),
                GridJob(39, 0, 1, 1, 0),
                GridJob(41, 5, 5, 1, 0),
            ],
            3,
            dict.fromkeys(MODES, (60, 1)),
        )
        for order in ("fcfs", "shortest")
        for backfilling in ("none", "easy")
    },
    # Cluster 0 is expected to be busy until 1000, cluster 1 until 30; the first ends at 5 already.
    "early ends are seen by both": (
        [GridCluster(1), GridCluster(1)],
        [
            GridJob(0, 5, 1000, 1, 0),
            GridJob(0, 30, 30, 1, 1),
            GridJob(4, 9, 9, 1, 0),
            GridJob(6, 9, 9, 1, 1),
        ],
        3,
        dict.fromkeys(MODES, (6, 0)),
    ),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_examples(name: str) -> None:
    clusters, jobs, last, places = WORKED[name]
    for predictions, place in places.items():
        mode = cast(grid.PredictionsName, predictions)
        superscheduler = grid.Superscheduler(scheme="central", predictions=mode)
        found = run(jobs, clusters, superscheduler)
        assert found[last] == place
        assert found == expected(jobs, clusters, superscheduler)


def test_a_prediction_that_holds_for_long_drops_the_passes_that_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A job of 10 s comes every 5 s. The two processors fall free in turn, 3 s after such a time: a job waits
    # for 8 s, behind nobody, and all goes as expected.
    monkeypatch.setattr(grids, "FIRST_ROOM", 4)
    number = 60
    submit = 5 * np.arange(number) - 5
    submit[0] = 0
    run_time = np.full(number, 10)
    run_time[:2] = (13, 18)
    simulation = simulation_of(
        Submissions(submit, run_time, run_time, np.ones_like(submit)),
        [Cluster(name=name, processors=1) for name in ("a", "b")],
        ["ff", "ff"],
        jscheduler.JScheduler(k=2),
    )
    simulation.run(int(submit[-1]) + 1)
    # A prediction begins at the submission that asks for it, a multiple of 5. All the passes that are kept
    # are at ends: it was never made anew, and has lost those at its front.
    predictions = simulation._grid.local.start_predictions
    assert predictions.passes.shape[1] < number // 4
    assert predictions.state["valid"].all()
    for kept, state in zip(predictions.passes, predictions.state[:, 0], strict=True):
        times = kept["time"][: state["passes"]]
        assert (times % 5 == 3).all()
        assert times[0] > submit[number // 2]
        assert (np.diff(times) == 10).all()
    simulation.run()
    done = in_short(simulation.result())
    assert done.start_time.tolist() == [0, 0, *(submit[2:] + 8)]
    assert (done.resource[2:] != done.resource[1:-1]).all()


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
    done = schedule_grid(
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
        superscheduler = grid.Superscheduler(scheme="s-i", predictions=predictions)
        done = simulate(workloads, clusters, superscheduler)
        verify(done)
        assert done.attrs["parameter_predictions"] == predictions


def test_impossible_predictions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="predictions is 'guess'; use one of exact, plan"):
        grid.Superscheduler(scheme="s-i", predictions=cast(grid.PredictionsName, "guess"))
