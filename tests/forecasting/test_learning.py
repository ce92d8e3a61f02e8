"""What forecasts learn from earlier ones: features, forests, and that nothing later is known to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.forecasting import judge, make_forecasts, timeline_of_run
from gridsched.forecasting.adjustment import FARTHEST, HIGH, LEVELS, MEDIAN
from gridsched.forecasting.features import features
from gridsched.forecasting.learning import ROUNDS, fit, followed, walk, weight_of_forests
from gridsched.forecasting.snapshot import RECORD, Snapshot
from gridsched.policies.local import Conventions
from tests.forecasting.test_forecast import EASY, busy_workload, held
from tests.oracles.forecast_features import naive_features

DAY = 86400


def drawn_snapshot(seed: int) -> Snapshot:
    """Jobs of which some wait and some run, in no order that a policy would make."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 80))
    past = np.zeros(count, RECORD)
    now = int(rng.integers(10**5, 10**6))
    past["submit"] = np.sort(rng.integers(0, now + 1, count))
    past["start"] = np.where(rng.random(count) < 0.6, rng.integers(past["submit"], now + 1), -1)
    past["end"] = np.where(
        (past["start"] >= 0) & (rng.random(count) < 0.7), rng.integers(past["start"], now + 1), -1
    )
    past["start"][-1] = past["end"][-1] = -1
    past["estimate"] = rng.integers(1, 10**5, count)
    past["processors"] = past["requested"] = rng.integers(1, 20, count)
    past["user"], past["queue"] = rng.integers(0, 4, count), rng.integers(0, 3, count)
    running = (past["start"] >= 0) & (past["end"] < 0)
    return Snapshot(now, int(past["processors"][running].sum() + rng.integers(20, 50)), past)


@pytest.mark.random_cases(30)
def test_features_are_those_of_a_naive_computation(seed: int) -> None:
    snapshot = drawn_snapshot(seed)
    rng = np.random.default_rng(seed)
    waiting = len(snapshot.waiting)
    chosen = np.sort(rng.choice(waiting, min(waiting, 5), replace=False))
    futures = np.sort(rng.exponential(10**4, (len(chosen), len(LEVELS))), axis=1)
    futures[0, HIGH:] = np.inf
    expected = snapshot.now + rng.integers(0, 10**5, len(chosen))
    found = features(snapshot, chosen, futures, expected)
    past = [{name: int(job[name]) for name in RECORD.names or ()} for job in snapshot.past]
    for row, place in enumerate(chosen.tolist()):
        wanted = naive_features(
            past, snapshot.now, snapshot.processors, place, futures[row].tolist(), int(expected[row])
        )
        assert {name: float(value[row]) for name, value in found.items()} == pytest.approx(wanted)


def drawn_waits(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Times, features and waits: the first feature moves the logarithm of a wait, the second says nothing."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((count, 2))
    truth = np.exp(6 + 4 * matrix[:, 0] + rng.normal(0, 0.5, count))
    return np.sort(rng.integers(0, 30 * DAY, count)), matrix, truth


def test_forests_find_conditional_quantiles() -> None:
    _, matrix, truth = drawn_waits(6000, 1)
    forest = fit(matrix[:3000], truth[:3000], np.full(3000, np.inf))
    assert forest is not None
    made = forest.quantiles(matrix[3000:])
    assert 0.75 < held(made, truth[3000:]) < 0.85
    inner = (matrix[3000:, 0] > 0.1) & (matrix[3000:, 0] < 0.9)
    error = np.log(made[inner, MEDIAN] + 60) - np.log(np.exp(6 + 4 * matrix[3000:, 0][inner]) + 60)
    assert abs(error).mean() < 0.2
    assert (np.diff(made, axis=1) >= 0).all()
    assert fit(matrix[:50], truth[:50], np.full(50, np.inf)) is None


def test_jobs_that_still_wait_do_not_make_learned_waits_short() -> None:
    """Half of the longest waits are not known yet; leaving them out alone would bias the high end."""
    rng = np.random.default_rng(3)
    truth = rng.exponential(10_000, 8000)
    age = rng.uniform(0, 40_000, 8000)
    known = truth <= age
    forest = fit(rng.random((8000, 1)), truth, age)
    assert forest is not None
    made = forest.quantiles(rng.random((200, 1))).mean(axis=0)
    wanted = np.quantile(truth, LEVELS[HIGH])
    assert made[HIGH] == pytest.approx(wanted, rel=0.1)
    assert np.quantile(truth[known], LEVELS[HIGH]) < 0.85 * wanted


def test_walks_hold_what_they_say_and_know_nothing_later() -> None:
    now, matrix, truth = drawn_waits(4000, 2)
    truth *= np.exp(now / (20 * DAY))  # waits become longer
    beyond = np.full((4000, len(LEVELS)), np.inf)
    made, last = followed(now, walk(now, matrix, beyond, truth)[0], truth, 31 * DAY)
    later = now > 15 * DAY
    assert 0.77 < held(made[later], truth[later]) < 0.83
    assert 0 < max(last.followed) <= FARTHEST
    middle = 20 * DAY
    other = np.where(now + truth > middle, truth * 3 + 10**6, truth)
    again, _ = followed(now, walk(now, matrix, beyond, other)[0], other, 31 * DAY)
    np.testing.assert_array_equal(made[now <= middle], again[now <= middle])
    assert (made != again)[now > middle].any()


def test_futures_count_from_when_on_their_intervals_have_been_better() -> None:
    """They are wrong at first, and then know nearly everything; nothing later is looked at."""
    now, matrix, truth = drawn_waits(6000, 5)
    wrong = np.where(now < 8 * DAY, 1.5, 1.0)[:, np.newaxis]
    futures = truth[:, np.newaxis] * np.linspace(0.98, 1.02, len(LEVELS)) * wrong
    made, of_forests = walk(now, matrix, futures, truth)
    parts = np.array_split(np.unique(now), ROUNDS)[1:]
    weights = []
    for part in parts:
        before, rows = now < part[0], (now >= part[0]) & (now <= part[-1])
        age = part[0] - now[before]
        weights.append(weight_of_forests(of_forests[before], futures[before], truth[before], age))
        between = weights[-1] * np.log(of_forests[rows] + 60) + (1 - weights[-1]) * np.log(futures[rows] + 60)
        np.testing.assert_allclose(made[rows], np.exp(between) - 60, rtol=1e-9, atol=1e-6)
    assert weights[0] == 1.0  # too few outcomes
    assert weights[-1] < weights[1]


@pytest.fixture(scope="module")
def run() -> Any:
    return gs.simulate(busy_workload(3000, 1, load=0.95), scheduler="easy")


def test_a_forecast_that_has_learned_knows_nothing_of_what_comes(run: Any) -> None:
    """A log that is cut off now, with other run times of the jobs that run, gives the same forecast."""
    now = int(run["submit_time"][2000])
    whole = busy_workload(3000, 1, load=0.95)
    longer = np.where(run["end_time"].to_numpy() > now, 7, 1) * whole.run_time
    other = gs.simulate(whole.select(slice(0, 2001), run_time=longer[:2001]), scheduler="easy")
    issued, again = (gs.forecast(each, now, adjust=60, futures=20) for each in (run, other))
    assert issued.equals(again)
    assert issued.attrs == again.attrs
    assert issued.attrs["learned_from"] > 100
    assert 0.6 < issued.attrs["held"] < 0.95
    plain = gs.forecast(run, now, adjust=0, futures=20)["start"]
    assert not issued["start"].equals(plain)
    # the futures follow the policy of the run, so that they are taken as they are but for the ends
    assert issued.attrs["weight"] == 0
    assert issued["start"].sel(quantile=0.5).equals(plain.sel(quantile=0.5))


def test_learned_forecasts_are_judged(run: Any) -> None:
    """They hold what they say, and are better than the null model, on a log whose policy is known."""
    made = make_forecasts(
        timeline_of_run(run),
        EASY,
        Conventions(),
        instants=150,
        jobs=6,
        futures=20,
        seed=4,
        methods=("learned", "null model"),
    )
    table = judge(made)
    assert set(zip(table["predictor"], table["correction"], strict=True)) == {
        *(("learned", each) for each in ("raw", "as it goes")),
        *(("null model", each) for each in ("raw", "first half", "as it goes")),
    }
    worth = table[(table["range"] == "all") & (table["correction"] == "as it goes")]
    by_name = worth.set_index("predictor").to_dict("index")
    learned, null = by_name["learned"], by_name["null model"]
    assert 0.72 < learned["coverage"] < 0.88
    assert learned["score"] < 0.8 * null["score"]
    assert learned["error"] < 0.8 * null["error"]


def test_too_little_is_said_to_be_too_little(run: Any) -> None:
    """Nothing is learned from a few forecasts; those of the futures stand, and what theirs held."""
    now = int(run["submit_time"][2000])
    few, none = (gs.forecast(run, now, adjust=count, futures=20) for count in (2, 0))
    assert few["start"].equals(none["start"])
    assert few.attrs["learned_from"] == none.attrs["learned_from"] == 0
    assert 0 < few.attrs["checked"] < none.attrs["checked"]
    first = int(run["submit_time"][run["start_time"] > run["submit_time"]].min())
    alone = gs.forecast(run, first, futures=9)
    assert alone.sizes["job"] > 0
    assert (alone.attrs["learned_from"], alone.attrs["checked"]) == (0, 0)
