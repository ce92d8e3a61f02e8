"""The engine against the naive oracle, over the whole policy space and both conventions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.engine.records import JOB, LABELS
from gridsched.errors import ConfigurationError
from gridsched.nodes import NodeType
from gridsched.policies import scores
from gridsched.policies.local import (
    ORDERS,
    POLICIES,
    BackfillingName,
    Conventions,
    LocalPolicy,
    OverrunName,
    PassName,
    PredictionName,
    named_policy,
    schedule,
)
from tests.oracles import local as naive
from tests.oracles.orders import Score
from tests.support import engine, strategies
from tests.support.errors import refused

PASSES: tuple[PassName, ...] = get_args(PassName)
STATIC_ORDERS = ("fcfs", "shortest", "smallest", "smallest_area")


def widest_first(processors: int) -> float:
    """A user's score that does not change with time."""
    return float(processors)


def area_over_wait(now: int, submit_time: int, estimate: int, processors: int) -> float:
    """A user's score that changes with time and may overtake either way."""
    return math.sqrt(now - submit_time + 1) / (estimate * processors)


NAIVE: dict[Any, Score] = {
    widest_first: lambda now, submit_time, estimate, processors: float(processors),
    area_over_wait: area_over_wait,
}
"""Scores of users for the oracle."""


@st.composite
def policies(draw: st.DrawFn) -> LocalPolicy:
    """Policies with a name, and any point of the policy space, with scores of users."""
    if draw(st.booleans()):
        return named_policy(draw(st.sampled_from([*POLICIES, "easy(2)", "easy(3)"])))
    backfilling: BackfillingName = draw(st.sampled_from(get_args(BackfillingName)))
    reserving, sorting = backfilling == "easy", backfilling in ("first_fit", "easy")
    return LocalPolicy(
        order=draw(st.sampled_from([*ORDERS, *NAIVE])),
        backfilling=backfilling,
        reservations=draw(st.integers(1, 4)) if reserving else 1,
        backfill_order=draw(st.sampled_from(["queue", *STATIC_ORDERS])) if sorting else "queue",
        prediction=draw(st.sampled_from(["estimate", "estimate", "double", "actual"])),
    )


@given(
    workload=strategies.workloads(max_jobs=20),
    policy=policies(),
    overrun=st.sampled_from(get_args(OverrunName)),
    passes=st.sampled_from(PASSES),
)
@settings(max_examples=3000)
def test_every_point_of_the_policy_space_equals_the_oracle(
    workload: tuple[list[naive.Job], int], policy: LocalPolicy, overrun: OverrunName, passes: PassName
) -> None:
    jobs, processors = workload
    point = naive.Policy(
        NAIVE.get(policy.order, policy.order),
        policy.backfilling,
        policy.reservations,
        str(policy.backfill_order),
    )
    options: dict[str, Any] = {"overrun": overrun, "passes": passes, "prediction": policy.prediction}
    expected = naive.CountedProcessors(jobs, processors, point, **options).simulate()
    assert engine.simulate(jobs, processors, policy, overrun, passes) == expected.first_start


def crowd(number: int, processors: int, seed: int) -> list[naive.Job]:
    """Jobs enough to fill several blocks of running jobs and deep queues, with many equal expected ends."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 4 * number, number))
    run = rng.integers(0, 900, number)
    estimate = rng.choice([60, 300, 600, 900], number)
    size = np.minimum(rng.geometric(0.5, number), processors)
    return [naive.Job(*map(int, job)) for job in zip(submit, run, estimate, size, strict=True)]


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("policy", [*POLICIES, "easy(2)"])
def test_crowded_machine_equals_the_oracle(policy: str, passes: PassName) -> None:
    jobs = crowd(500, 300, seed=5)
    point = POLICIES.get(policy) or named_policy(policy)
    assert engine.simulate(jobs, 300, point, passes=passes) == naive.simulate_policy(
        jobs, 300, policy, passes=passes
    )


def test_scores_see_user_group_and_queue() -> None:
    jobs = np.array([(0, 10, 10, 1), (1, 10, 10, 1), (2, 10, 10, 1)], JOB)
    labels = np.array([(1, 1, 1, 1, 1), (5, 1, 2, 1, 2), (5, 3, 7, 1, 3)], LABELS)

    def by_user_then_queue(user: int, queue: int) -> float:
        return 100.0 * user + queue

    def by_group_now(now: int, group: int) -> float:
        return float(group) + 0 * now

    for score in (by_user_then_queue, by_group_now):
        starts, _ = schedule(jobs, 1, LocalPolicy(name="own", order=score), labels=labels)
        assert starts.tolist() == [0, 20, 10]


def test_corrections_are_counted() -> None:
    jobs = np.array([(0, 100, 10, 1), (1, 5, 5, 1)], JOB)
    # expected ends 10, 20, 40, 80, 160: four have passed at 100
    assert schedule(jobs, 1, POLICIES["easy"])[1] == 4
    assert schedule(jobs, 1, POLICIES["fcfs"])[1] == 0


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"order": "longest"}, "order is 'longest'"),
        ({"backfilling": "greedy"}, "backfilling is 'greedy'"),
        ({"reservations": 0, "backfilling": "easy"}, "reservations is 0"),
        ({"reservations": 2}, "only backfilling 'easy'"),
        ({"backfill_order": "shortest"}, "none has none"),
        ({"backfill_order": "lxf", "backfilling": "easy"}, "must not change with time"),
        ({"order": lambda runtime: runtime}, "unknown parameter 'runtime'"),
        ({"prediction": "last"}, "prediction is 'last'"),
        ({"prediction": "recent"}, "backfilling 'easy'"),
        ({"prediction": "recent", "backfilling": "easy", "backfill_order": "smallest"}, "'shortest' or"),
        ({"prediction": "double", "correction": "doubling"}, "only prediction 'recent'"),
    ],
)
def test_impossible_policies_are_refused(parts: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        LocalPolicy(name="odd", **parts)  # type: ignore[arg-type]


def test_policies_say_what_they_predict_and_the_others_do_not() -> None:
    assert "prediction" not in repr(named_policy("easy"))
    assert repr(named_policy("easy++")).endswith("prediction='recent', correction='increments')")
    assert LocalPolicy(backfilling="easy", backfill_order="shortest", prediction="recent").name == "easy++"
    names = {LocalPolicy(backfilling="easy", prediction=each).name for each in get_args(PredictionName)}
    assert len(names) == 4


@pytest.mark.parametrize("name", ["eazy", "easy(0)", "easy(-1)", "easy(x)", ""])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        named_policy(name)


def test_scores_are_loaded_from_files(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text("def wide(processors):\n    return processors\n\ndef odd(colour):\n    return 1\n")
    assert scores.SCORE.load(f"{source}:wide")(processors=3) == 3
    for location, complaint in (
        (f"{source}:narrow", "has no function narrow"),
        (f"{source}:odd", "unknown parameter 'colour'"),
        (f"{tmp_path / 'none.py'}:wide", "there is no file"),
        ("wide", "write it as"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            scores.SCORE.load(location)
    source.write_text("raise ValueError('oops')\n")
    with pytest.raises(ConfigurationError, match="fails to load: ValueError"):
        scores.SCORE.load(f"{source}:wide")


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("return missing * 2", "name 'missing' is not defined"),
        ("return math.missing(estimate)", "no attribute 'missing'"),
        ("return helper(estimate)", "'helper'"),
        ("return open('x').read()", "'open'"),
    ],
)
@pytest.mark.parametrize("parameters", ["estimate", "now, estimate"])
def test_what_cannot_be_compiled_is_shown_with_its_line(
    parameters: str, line: str, cause: str, tmp_path: Path
) -> None:
    source = tmp_path / "mine.py"
    helper = "import math\n\ndef helper(x):\n    return x\n\n"
    source.write_text(f"{helper}def own({parameters}):\n    y = estimate\n    {line}\n")
    policy = LocalPolicy(name="own", order=scores.SCORE.load(f"{source}:own"))
    with pytest.raises(ConfigurationError, match=f"score own: .*{source}:8: .*{cause}"):
        schedule(np.array([(0, 10, 10, 1)], JOB), 1, policy)


def not_always_a_number(now: int, estimate: int) -> float:
    return (now - now) / (estimate - estimate)


def never_a_number(estimate: int) -> float:
    return math.nan * estimate


def infinite(estimate: int) -> float:
    return -math.inf * estimate


def failing(estimate: int) -> float:
    if estimate > 0:
        raise ValueError("no")
    return 0.0


def failing_now(now: int) -> float:
    if now >= 0:
        raise ValueError("no")
    return 0.0


def by_name(user: int) -> float:
    return {1: "a"}[user]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ({"order": not_always_a_number}, "not_always_a_number: not a finite number for job 1 at 0 s"),
        ({"order": failing_now}, "failing_now: not a finite number for job 1 at 0 s"),
        ({"order": never_a_number}, "not a finite number for job 1 (estimate=1073741824)"),
        ({"order": infinite}, "not a finite number for job 1 (estimate=1073741824)"),
        ({"order": failing}, "fails with ValueError"),
        ({"order": by_name}, "Numba cannot compile"),
        ({"order": abs}, "give a plain Python function"),
        ({"order": float}, "give a plain Python function"),
        ({"prediction": "double"}, "2147483648 s"),
    ],
)
def test_scores_that_do_not_order_and_long_predictions_are_refused(
    policy: dict[str, Any], complaint: str
) -> None:
    jobs = np.array([(0, 10, 2**30, 1)] * 2, JOB)
    with refused(complaint):
        schedule(jobs, 1, LocalPolicy(name="own", **policy))


GRIDS = ["local", "r-i", "s-i", "jscheduler", "multiple-requests", "dynamic-grid"]
"""Systems whose clusters have local policies."""

ON_NODES = GRIDS[:5]


def small_grid(scheduler: Any, order: scores.Score, **cluster: Any) -> xr.Dataset:
    """A first job on all of a cluster, then two that ask for less; the other cluster is busy."""
    jobs = gs.Workload(
        name="jobs",
        submit_time=np.array([0, 0, 1, 1]),
        run_time=np.array([10, 500, 10, 10]),
        requested_processors=np.array([8, 8, 2, 5]),
        home=np.array([0, 1, 0, 0]),
        job_number=np.array([11, 12, 13, 14]),
    )
    own = LocalPolicy(name="own", order=order)
    clusters = [gs.Cluster(name=name, policy=own, **cluster) for name in ("one", "other")]
    return gs.simulate(jobs, gs.Platform(clusters), scheduler)


def by_size(processors: int) -> float:
    return 1.0 * processors


def by_size_now(now: int, processors: int) -> float:
    return processors + 0.0 * now


WHOLE_NODES: dict[str, Any] = {"processors": 8, "processors_per_node": 8, "node_exclusive": True}


@pytest.mark.parametrize("scheduler", GRIDS)
@pytest.mark.parametrize("order", [by_size, by_size_now])
def test_scores_see_the_processors_that_jobs_ask_for(scheduler: str, order: scores.Score) -> None:
    """Both waiting jobs take the whole node."""
    run = small_grid(scheduler, order, **WHOLE_NODES)
    first, second = run["start_time"].values[[3, 2]]
    assert first < second


@pytest.mark.parametrize(
    ("scheduler", "cluster"),
    [
        *((each, {"processors": 8}) for each in (*GRIDS, gs.Multicluster(local="policy"))),
        *((each, {"nodes": [NodeType(cores=8)]}) for each in ON_NODES),
    ],
    ids=str,
)
def test_infinite_scores_are_refused_with_job_and_time(scheduler: Any, cluster: dict[str, Any]) -> None:
    def late(now: int, submit_time: int) -> float:
        return 1 / (now - submit_time - 9)

    with pytest.raises(ConfigurationError, match=r"score late: not a finite number for job 1[34] at 10 s"):
        small_grid(scheduler, late, **cluster)


def test_far_outrun_estimates_do_not_take_forever() -> None:
    jobs = np.array([(0, 2**40, 1, 1), (5, 1, 1, 1)], JOB)
    starts, _ = schedule(jobs, 1, POLICIES["easy"], Conventions("increments"))
    assert starts.tolist() == [0, 2**40]
