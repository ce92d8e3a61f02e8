"""Forecasts of starts: what is drawn, what is told, how often it comes true, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridsched as gs
from gridsched.errors import ConfigurationError, TraceError
from gridsched.forecasting import (
    IssuedForecasts,
    Scenarios,
    follow,
    read_queue,
    timeline_of_run,
)
from gridsched.forecasting.adjustment import HIGH, LEVELS, LOW, censored_quantile
from gridsched.forecasting.history import probability_within, quantiles_of, waiting_instants
from gridsched.forecasting.predictors import fit_log_uniform, residual_waits, wait_bounds
from gridsched.policies.local import Conventions, named_policy
from gridsched.prediction.lifetimes import LEVELS as PARTS
from gridsched.prediction.lifetimes import Lifetimes, learn
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of

HOUR = 3600
EASY = named_policy("easy")


def busy_workload(jobs: int, seed: int, *, load: float = 1.0) -> gs.Workload:
    """Users with habits on a cluster of 32 processors, for weeks."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 12, jobs)
    requested = HOUR * 2 ** rng.integers(0, 4, jobs)
    run_time = np.maximum(1, requested * rng.beta(1 + user % 3, 2, jobs)).astype(np.int64)
    size = 2 ** rng.integers(0, 5, jobs)
    span = float((size * run_time).sum()) / (32 * load)
    return gs.Workload(
        name="drawn",
        submit_time=np.sort(rng.integers(0, int(span), jobs)),
        run_time=run_time,
        requested_time=requested,
        requested_processors=size,
        user=user,
        processors_available=32,
    )


@pytest.fixture(scope="module")
def run() -> Any:
    return gs.simulate(busy_workload(3000, 1, load=0.95), scheduler="easy")


# --- run times ------------------------------------------------------------------------------------


def naive_quantiles(jobs: list[tuple[int, int, int]], user: int, estimate: int, age: int) -> list[float]:
    """Quantiles of `Lifetimes`, from run time, estimate and user of jobs in order of their ends."""
    own = [(run, asked) for run, asked, whose in jobs if whose == user][-50:]
    equal = [run for run, asked in own if asked == estimate]
    first = len(equal) / (len(equal) + 4)
    second = (1 - first) * len(own) / (len(own) + 4)
    weighted = [(float(run), first / len(equal)) for run in equal]
    weighted += [(estimate * run / asked, second / len(own)) for run, asked in own]
    alike = [run / asked for run, asked, _ in jobs if asked.bit_length() == estimate.bit_length()][-2000:]
    shares = alike if len(alike) >= PARTS else [run / asked for run, asked, _ in jobs][-2000:]
    levels = (np.arange(PARTS) + 0.5) / PARTS
    weighted += [(estimate * share, (1 - first - second) / PARTS) for share in np.quantile(shares, levels)]
    alive = sorted(pair for pair in weighted if pair[0] > age)
    total = sum(weight for _, weight in alive)
    reached = np.cumsum([weight for _, weight in alive])
    return [alive[min(int(np.searchsorted(reached, total * p)), len(alive) - 1)][0] for p in levels]


def test_run_times_are_a_mixture_of_those_like_it() -> None:
    rng = np.random.default_rng(5)
    estimate = rng.choice([60, 100, 600, 3600], 400)
    run_time = np.maximum(1, estimate * rng.random(400)).astype(np.int64)
    user = rng.integers(0, 6, 400)
    jobs = list(zip(run_time.tolist(), estimate.tolist(), user.tolist(), strict=True))
    known = learn(run_time, estimate, user, np.arange(400))
    for whose, asked, age in [(0, 100, -1), (3, 3600, 50), (5, 600, 500), (99, 60, -1), (1, 5000, 100)]:
        found = known.quantiles(np.array([whose]), np.array([asked]), np.array([age]))[0]
        # Sums of weights differ by rounding, which may move a level by one value.
        assert np.isclose(found, np.array(naive_quantiles(jobs, whose, asked, age))).mean() > 0.95
        assert (found > age).all()
        assert (np.diff(found) >= 0).all()


def nothing_known() -> Lifetimes:
    none = np.empty(0, np.int64)
    return learn(none, none, none, none)


def test_without_history_every_run_time_is_as_likely() -> None:
    levels = (np.arange(PARTS) + 0.5) / PARTS
    found = nothing_known().quantiles(np.array([1, 1]), np.array([6400, 6400]), np.array([-1, 3200]))
    assert found[0] == pytest.approx(6400 * levels)
    assert found[1].min() > 3200
    assert found[1].max() < 6400


def test_a_job_that_outlives_all_others_ends_somewhere() -> None:
    known = learn(np.array([10]), np.array([100]), np.array([1]), np.array([10]))
    found = known.quantiles(np.array([1, 1]), np.array([100, 100]), np.array([60, 200]))
    assert found[0].min() > 60
    assert found[0].max() < 100
    assert found[1].min() > 200
    assert found[1].max() < 400


def test_log_uniform_law() -> None:
    law = fit_log_uniform((10 * 1000 ** ((np.arange(5000) + 0.5) / 5000)).astype(np.int64))
    assert_fields(law, shortest=pytest.approx(10, rel=0.1), longest=pytest.approx(10_000, rel=0.1))
    found = law.quantiles(np.array([0, 0]), np.array([1, 1]), np.array([100, 50_000]))
    assert np.median(found[0]) == pytest.approx(1000, rel=0.1)
    assert found[1].min() > 50_000
    assert found[1].max() < 100_000


# --- futures --------------------------------------------------------------------------------------


class _Known:
    """Run times of jobs whose users are their indices."""

    def __init__(self, run_time: Any) -> None:
        self.run_time = run_time

    def quantiles(self, user: Any, estimate: Any, age: Any) -> Any:
        return np.repeat(self.run_time[user][:, np.newaxis], PARTS, axis=1).astype(np.float64)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjbf", "lxf"])
def test_who_knows_all_tells_the_actual_starts(policy: str) -> None:
    """With actual run times and nobody to come, every future is what happens."""
    workload = busy_workload(300, 2, load=3.0)
    workload = workload.select(slice(None), user=np.arange(300))
    timeline = timeline_of_run(gs.simulate(workload, scheduler=policy))
    snapshot = timeline.at(int(workload.submit_time[-1]))
    assert len(snapshot.waiting) > 20
    known = _Known(np.asarray(workload.run_time))
    found = Scenarios(snapshot, named_policy(policy), Conventions(), known, arrivals=False).starts(3)
    assert (found == timeline.starts(snapshot)).all()


def test_estimates_alone_are_the_engine_with_estimates() -> None:
    run = gs.simulate(busy_workload(60, 3, load=3.0), estimates="clairvoyant", scheduler="easy")
    snapshot = timeline_of_run(run).at(int(run["submit_time"][-1]))
    issued = gs.forecast(run, int(run["submit_time"][-1]), adjust=0, futures=5)
    found = issued["expected_start"].to_numpy()
    running = snapshot.past[snapshot.running]
    left = running["start"] + running["estimate"] - snapshot.now
    again = gs.simulate(
        gs.Workload(
            name="again",
            submit_time=np.zeros(len(left) + len(found), np.int64),
            run_time=np.concatenate([left, issued["estimate"].to_numpy()]),
            requested_processors=np.concatenate([running["processors"], issued["processors"].to_numpy()]),
        ),
        32,
        "easy",
    )
    assert (again["start_time"].to_numpy()[len(left) :] + snapshot.now == found).all()


def test_nothing_is_known_of_what_comes(run: Any) -> None:
    """A log that is cut off now gives the same forecast."""
    now = int(run["submit_time"][2000])
    whole = busy_workload(3000, 1, load=0.95)
    issued = gs.forecast(run, now, adjust=10, futures=20)
    longer = np.where(run["end_time"].to_numpy() > now, 7, 1) * whole.run_time
    other = gs.simulate(whole.select(slice(0, 2001), run_time=longer[:2001]), scheduler="easy")
    assert issued.equals(gs.forecast(other, now, adjust=10, futures=20))
    assert issued.sizes["job"] > 3


def test_what_a_forecast_says(run: Any) -> None:
    now = int(run["submit_time"][1500])
    issued = gs.forecast(run, now, quantiles=(0.9, 0.1), within=600, adjust=0, futures=50, seed=3)
    waits = (run["submit_time"] <= now) & (run["start_time"] > now)
    assert issued["job_number"].to_numpy().tolist() == run["job_number"][waits].to_numpy().tolist()
    assert issued["quantile"].to_numpy().tolist() == [0.1, 0.9]
    assert (issued["start"].isel(quantile=0) >= now).all()
    assert (issued["start"].isel(quantile=0) <= issued["start"].isel(quantile=1)).all()
    assert (issued["probability"][(issued["start"].isel(quantile=0) > now + 600)] <= 0.12).all()
    assert issued.attrs["policies"] == "easy"
    assert issued.equals(
        gs.forecast(run, now, quantiles=(0.9, 0.1), within=600, adjust=0, futures=50, seed=3)
    )
    assert not issued.equals(gs.forecast(run, now, policy="fcfs", quantiles=(0.1, 0.9), adjust=0, futures=50))


def test_nobody_waits(run: Any) -> None:
    assert gs.forecast(run, int(run["end_time"].max()), adjust=0).sizes["job"] == 0


def test_quantiles_of_draws() -> None:
    draws = np.array([[1.0, 2, 3, 4], [1, 2, 3, np.inf]])
    found = quantiles_of(draws, np.array([0.1, 0.5, 0.7, 0.8]))
    assert found.tolist() == [[1, 2.5, 3.5, 4], [1, 2.5, np.inf, np.inf]]


def test_probabilities_by_quantiles() -> None:
    """Quantiles at 20, 40, 60 and 80 %."""
    draws = np.array([[1.0, 2, 3, 4], [1, 2, 3, np.inf], [5, 5, 5, 9]])
    assert probability_within(draws, 0).tolist() == pytest.approx([0.1, 0.1, 0.1])
    assert probability_within(draws, 2.5).tolist() == pytest.approx([0.5, 0.5, 0.1])
    assert probability_within(draws, 5).tolist() == pytest.approx([0.9, 0.7, 0.6])


def queue_of(rows: list[tuple[Any, ...]], *more: str) -> Any:
    """The queue of a table with 64 processors."""
    columns = ["job", "state", "elapsed", "processors", "time_limit", *more]
    return read_queue(pd.DataFrame(rows, columns=columns), 64)


def test_nobody_comes_to_a_queue_without_a_history() -> None:
    """Jobs that run for days are no arrivals of the days to come."""
    running = [(k, "R", 86_400 * 3, 1, 86_400 * 6) for k in range(1, 61)]
    queue = queue_of([*running, (100, "PD", 0, 60, 3600), (101, "PD", 0, 4, 86_400 * 6)])
    policy = named_policy("ff")
    alone = Scenarios(queue, policy, Conventions(), arrivals=False).starts(50)
    assert np.array_equal(Scenarios(queue, policy, Conventions()).starts(50), alone)


def test_jobs_of_unknown_users_are_not_alike() -> None:
    """Half of 32 running jobs have to end; they do not end at similar times because nobody is named."""
    rows = [(k, "R", 0, 2, 36_000) for k in range(1, 33)] + [(100, "PD", 0, 32, 3600)]
    unknown = gs.forecast(queue_of(rows), futures=200)
    named = gs.forecast(queue_of([(*row, f"u{k}") for k, row in enumerate(rows)], "user"), futures=200)
    xr.testing.assert_allclose(unknown["start"], named["start"], rtol=0.1)
    one = gs.forecast(queue_of([(*row, "ada") for row in rows], "user"), futures=200)
    width = [float(np.ptp(issued["start"].values)) for issued in (unknown, one)]
    assert width[0] < 0.6 * width[1]


def test_dates_of_a_queue_need_no_history() -> None:
    """Without a clock the last submission is now."""
    rows = [(1, "R", 7200, 64, 36_000, "2024-10-20T08:00:00"), (2, "PD", 0, 1, 60, "2024-10-20T10:00:00")]
    queue = queue_of([*rows, (3, "PD", 0, 1, 60, "2024-10-20T09:59:00")], "submit_time")
    assert (queue.now - queue.past["submit"]).tolist() == [7200, 60, 0]
    assert queue.past["number"].tolist() == [1, 3, 2]
    with refused("row 2, column submit_time", one_line=True):
        queue_of([rows[0], (2, "PD", 0, 1, 60, "yesterday")], "submit_time")


def test_instants_at_which_somebody_waits(run: Any) -> None:
    timeline = timeline_of_run(run)
    found = waiting_instants(timeline, 0, 10**7, 300, np.random.default_rng(1))
    assert len(found) > 250
    for now in found.tolist():
        assert len(timeline.at(now).waiting)
    idle = gs.simulate(busy_workload(5, 1, load=0.01), scheduler="easy")
    assert not len(waiting_instants(timeline_of_run(idle), 0, 10**7, 9, np.random.default_rng(1)))


# --- how good they are ----------------------------------------------------------------------------


def wrong_forecasts(count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Forecasts that are far too early and too narrow, and what came true."""
    truth = rng.lognormal(8, 1.5, count)
    guess = truth * rng.lognormal(0, 0.5, count)
    return 0.1 * guess[:, np.newaxis] ** 0.9 * np.linspace(0.95, 1.05, len(LEVELS)), truth


def held(quantiles: Any, truth: Any) -> float:
    return float(((truth >= quantiles[:, LOW]) & (truth <= quantiles[:, HIGH])).mean())


def test_wrong_forecasts_are_corrected() -> None:
    """They cover what they say once earlier ones are known."""
    rng = np.random.default_rng(2)
    wrong, truth = wrong_forecasts(4000, rng)
    now = np.arange(4000)
    fitted = IssuedForecasts(now[:2000], wrong[:2000], truth[:2000]).fit(10**9, 2000)
    assert 0.77 < held(fitted.apply(wrong[2000:]), truth[2000:]) < 0.83
    few = IssuedForecasts(now[:20], wrong[:20], truth[:20]).fit(10**9)
    assert few.apply(wrong) == pytest.approx(wrong)
    # A useless forecast beside a good one has no weight, and the other way round.
    useless = rng.lognormal(8, 1.5, (4000, 1)) * np.linspace(0.5, 2, len(LEVELS))
    assert IssuedForecasts(now, wrong, truth, useless).fit(10**9).weight == 1.0
    assert IssuedForecasts(now, useless, truth, wrong).fit(10**9).weight == 0.0


def test_jobs_that_still_wait_do_not_make_long_waits_rare() -> None:
    """Where many outcomes are not known yet, the correction is about what it is with all of them."""
    rng = np.random.default_rng(4)
    wrong, truth = wrong_forecasts(8000, rng)
    truth *= 8
    now = np.sort(rng.integers(0, 2 * 86400, 8000))
    known = now + truth < 2 * 86400
    assert known.mean() < 0.75
    early = IssuedForecasts(now, wrong, truth).fit(2 * 86400, 8000)
    assert 0.76 < held(early.apply(wrong), truth) < 0.84
    without = IssuedForecasts(now[known], wrong[known], truth[known]).fit(2 * 86400, 8000)
    assert held(without.apply(wrong), truth) < 0.75


def naive_quantile(values: list[float], censored: list[bool], level: float) -> float:
    """Quantile by the product of Kaplan and Meier, one value after the other."""
    left, beyond = len(values), 1.0
    for value, hidden in sorted(zip(values, censored, strict=True)):
        if not hidden:
            beyond *= (left - 1) / left
            if 1 - beyond >= level - 1e-9:
                return value
        left -= 1
    return max(values)


def test_quantiles_of_what_is_partly_known() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        values = rng.integers(0, 10, (3, int(rng.integers(1, 30)))).astype(float)
        censored = rng.random(values.shape) < rng.random()
        level = float(rng.integers(1, 20)) / 20
        expected = [
            naive_quantile(*row, level) for row in zip(values.tolist(), censored.tolist(), strict=True)
        ]
        assert censored_quantile(values, censored, level).tolist() == expected


def test_forecasts_that_err_more_and_more_are_followed() -> None:
    """Where a site changes, corrections by the past alone fall short; ends that are followed do not."""
    rng = np.random.default_rng(8)
    wrong, truth = wrong_forecasts(3000, rng)
    now = np.repeat(np.arange(1000) * 20_000, 3)
    truth *= np.exp(rng.normal(0, now / 1e7))
    issued = IssuedForecasts(now, wrong, truth)
    made, last = follow(issued, int(now[-1]) + 1, renewals=100)
    later = slice(1500, None)
    assert 0.77 < held(made[later], truth[later]) < 0.83
    assert held(issued.fit(int(now[1500])).apply(wrong[later]), truth[later]) < 0.7
    assert last.followed[1] > 0.2


def test_nothing_is_followed_before_it_is_known() -> None:
    wrong, truth = wrong_forecasts(900, np.random.default_rng(9))
    truth *= 30
    now = np.repeat(np.arange(150) * 3600, 6)
    moment = 100 * 3600
    unknown = now + truth >= moment
    other = np.where(unknown, truth * 7 + 10**6, truth)
    found, again = (
        follow(IssuedForecasts(now, wrong, each), 10**7, renewals=50)[0] for each in (truth, other)
    )
    np.testing.assert_array_equal(found[now < moment], again[now < moment])
    assert (found != again).any()
    assert 100 < unknown[now < moment].sum() < 500


def test_residual_waits_are_of_jobs_that_waited_as_long(run: Any) -> None:
    snapshot = timeline_of_run(run).at(int(run["submit_time"][2500]))
    found = residual_waits(snapshot, snapshot.waiting)
    past = snapshot.past
    started = past[past["start"] >= 0]
    for row, job in zip(found, past[snapshot.waiting], strict=True):
        elapsed = snapshot.now - job["submit"]
        alike = started[
            (started["start"] - started["submit"] > elapsed)
            & (np.floor(np.log2(started["processors"])) == np.floor(np.log2(job["processors"])))
        ]
        both = alike[alike["estimate"] == job["estimate"]]  # estimates are powers of 2 times an hour
        chosen = both if len(both) >= 30 else alike
        if len(chosen) >= 30:
            assert row == pytest.approx(np.quantile(chosen["start"] - chosen["submit"] - elapsed, LEVELS))


def test_bounds_of_waits_hold_and_forget() -> None:
    """They cover at least what they say, and adapt when waits become ten times as long."""
    rng = np.random.default_rng(7)
    waits = (rng.exponential(600, 1200) * np.where(np.arange(1200) < 600, 1, 10)).astype(np.int64)
    columns: dict[str, Any] = {
        "submit_time": np.arange(1200) * 60_000,
        "run_time": np.ones(1200, np.int64),
        "requested_processors": np.ones(1200, np.int64),
        "wait_time": waits,
        "processors_available": 100,
    }
    timeline = gs.forecasting.recorded_timeline(gs.Workload(name="waits", **columns))
    bounds = wait_bounds(timeline, np.ones(1200, bool))
    for part in (slice(200, 600), slice(800, 1200)):
        assert 0.88 < (waits[part] <= bounds[part, HIGH]).mean() <= 0.99
        assert (waits[part] >= bounds[part, LOW]).mean() > 0.88
    assert bounds[0].tolist() == [0] * len(LEVELS)


# --- queues from tables ---------------------------------------------------------------------------

SQUEUE = """JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER
11|RUNNING|30:00|6|1:00:00|ada
12|R|1-00:00:00|2|2-00:00:00|bob
13|PENDING|0:00|8|10:00|ada
14_[1-3]|PD|0:00|2|20:00|eve
"""


def test_a_queue_as_squeue_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(SQUEUE, encoding="utf-8")
    queue = read_queue(path, 8)
    assert queue.past["number"].tolist() == [12, 11, 13, 14, 14, 14]
    assert (queue.now, queue.free, len(queue.waiting)) == (86_400, 0, 4)
    assert_fields(queue, left_out={}, repaired={"array tasks in one row of the queue": 3})
    issued = gs.forecast(queue, futures=30)
    assert (issued["expected_start"] - queue.now).to_numpy().tolist() == [86_400, 1800, 1800, 1800]
    assert issued["start"].sel(quantile=0.9)[0] <= queue.now + 86_400
    frame = pd.DataFrame(
        {
            "job": [11, 12, 13, "14_1", "14_2", "14_3"],
            "state": ["running", "running", *["pending"] * 4],
            "elapsed": [1800, 86_400, 0, 0, 0, 0],
            "processors": [6, 2, 8, 2, 2, 2],
            "time_limit": [3600, 172_800, 600, 1200, 1200, 1200],
            "user": ["ada", "bob", "ada", *["eve"] * 3],
        }
    )
    assert (read_queue(frame, 8).past == queue.past).all()


@pytest.mark.parametrize(
    ("rows", "waiting", "left_out", "repaired"),
    [
        (["2 PD 1:00 a JobHeldUser 9", "3 PD 1:00 a (JobHeldAdmin) 9"], [], {"held in the queue": 2}, {}),
        (["2 PD 1:00 a Priority 0", "3 PD 1:00 a Priority 0.01"], [3], {"held in the queue": 1}, {}),
        (
            ["2 PD 1:00 a Dependency 9", "3 PD 1:00 a BeginTime 9", "4 PD 1:00 a QOSMaxCpuPerUserLimit 9"],
            [4],
            {"waiting for other jobs in the queue": 1, "to begin later in the queue": 1},
            {},
        ),
        (
            ["2 S 1:00 a None 9", "3 SUSPENDED 1:00 a None 9", "4 PD 1:00 a PartitionNodeLimit 9"],
            [],
            {
                "neither running nor pending (S)": 1,
                "neither running nor pending (SUSPENDED)": 1,
                "refused by its partition or account, says the queue": 1,
            },
            {},
        ),
        (["2 PD 1:00 a None 9", "2 PD 1:00 a None 9"], [2], {"listed twice in the queue": 1}, {}),
        (["1 PD 1:00 a None 9"], [], {"listed twice in the queue": 1}, {}),
        (
            ["9_[1-10%2] PD 1:00 a None 9"],
            [9, 9],
            {"array tasks beyond the limit of their array": 8},
            {"array tasks in one row of the queue": 2},
        ),
        (
            ["9_[1-10%2] PD 1:00 a None 9", "9_0 R 1:00 a None 9"],
            [9],
            {"array tasks beyond the limit of their array": 9},
            {"array tasks in one row of the queue": 1},
        ),
        (["9_3 PD 1:00 a JobArrayTaskLimit 9"], [], {"array tasks beyond the limit of their array": 1}, {}),
        (["9_[1-7:3,12] PD 1:00 a None 9"], [9] * 4, {}, {"array tasks in one row of the queue": 4}),
        (
            ["9_[1,3,...] PD 1:00 a None 9"],
            [9, 9],
            {},
            {
                "lists of array tasks cut short, set SLURM_BITSTR_LEN=0": 1,
                "array tasks in one row of the queue": 2,
            },
        ),
        (
            ["2 PD 1:00 a,b None 9"],
            [2],
            {},
            {
                "may start in several partitions, taken as of the first one": 1,
                "in 2 partitions of the queue, taken as one pool": 2,
            },
        ),
        (["2 PD UNLIMITED a None 9"], [2], {}, {"no time limit in the queue, taken as 600 s": 1}),
        (["2 PD 2147483647 a None 9"], [2], {}, {"no time limit in the queue, taken as 600 s": 1}),
    ],
)
def test_rows_that_are_no_plain_jobs(
    rows: list[str], waiting: list[int], left_out: dict[str, int], repaired: dict[str, int]
) -> None:
    cells = [row.split() for row in ["1 R 10:00 a None 9", *rows]]
    names = ["job", "state", "time_limit", "partition", "reason", "priority"]
    frame = pd.DataFrame(cells, columns=names).assign(elapsed=0, processors=1)
    queue = read_queue(frame, 8)
    assert queue.past["number"][queue.waiting].tolist() == waiting
    assert_fields(queue, left_out=left_out, repaired=repaired)


def test_a_queue_of_some_partitions_of_which_one_has_no_time_limit() -> None:
    """The longest limit of the history is that of the job without one; counts go with those of the log."""
    rows = [("1", "R", "UNLIMITED", "a"), ("2", "PD", "10:00", "b,a"), ("3", "PD", "10:00", "b")]
    frame = pd.DataFrame(rows, columns=["job", "state", "time_limit", "partition"])
    frame = frame.assign(elapsed=0, processors=1)
    queue = read_queue(frame, 8, partitions=["a"])
    assert queue.past["number"].tolist() == [1, 2]
    history = jobs_of(
        name="history",
        submit_time=[0, 0],
        wait_time=[0, 0],
        run_time=[9, 9],
        requested_time=[900, 2**31 - 1],
        requested_processors=[1, 1],
        left_out={"no run time": 5},
    )
    longer = read_queue(frame, 8, history=history, partitions=["a"])
    assert longer.past["estimate"][longer.running].tolist() == [900]
    assert_fields(
        longer,
        left_out={"no run time": 5, "in another partition of the queue": 1},
        repaired={
            "no time limit in the queue, taken as 900 s": 1,
            "may start in a partition that is not forecast here too": 1,
        },
    )
    with refused("no column partition", one_line=True):
        read_queue(frame.drop(columns="partition"), 8, partitions=["a"])


def test_a_queue_with_the_history_of_its_users() -> None:
    history = gs.Workload(
        name="history",
        submit_time=np.arange(200) * 1000,
        wait_time=np.zeros(200, np.int64),
        run_time=np.full(200, 60),
        requested_time=np.full(200, 3600),
        requested_processors=np.ones(200, np.int64),
        user=np.zeros(200, np.int64),
    )
    frame = pd.DataFrame(
        [("1", "R", 10, 8, "1:00:00", "ada"), ("2", "PD", 0, 8, "1:00:00", "ada")],
        columns=["jobid", "st", "time", "cpus", "timelimit", "user"],
    )
    queue = read_queue(frame, 8, history=history, names={"user": ["ada"]})
    assert queue.now == 199_060
    issued = gs.forecast(queue, futures=40)
    assert issued["start"].sel(quantile=0.5)[0] == queue.now + 50, "her jobs run for a minute"
    assert issued.attrs["jobs_finished"] == 200


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|CPUS", "|CORES", "no column processors"),
        (SQUEUE.splitlines()[0], "", "the first row is a job"),
        ("14_[1-3]", "14_[1-3000000]", "row 4, column JOBID"),
        ("PENDING", "SLEEPING", "row 3, column STATE"),
        ("30:00|6", "soon|6", "row 1, column TIME"),
        ("|8|", "|0|", "row 3, column CPUS"),
        ("30:00|6", "30:00|7", "9 processors are in use"),
        ("|8|10:00", "|10:00", "row 4 has 5 fields"),
        (SQUEUE, "\n", "is empty"),
    ],
)
def test_bad_queues(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(SQUEUE.replace(old, new), encoding="utf-8")
    with refused(message, one_line=True):
        read_queue(path, 8)


def test_a_job_larger_than_the_cluster_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(SQUEUE.replace("|8|", "|9|"), encoding="utf-8")
    whole, found = (read_queue(path, size) for size in (9, 8))
    assert set(whole.past["number"]) - set(found.past["number"]) == {13}
    assert found.left_out == {**whole.left_out, "larger than the 8 processors there are": 1}


def test_mistakes(run: Any, tmp_path: Path) -> None:
    now = int(run["submit_time"][1000])
    queue = timeline_of_run(run).at(now)
    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (run, None, {}, "now"),
        (run, now, {"quantiles": (0.5, 1.0)}, "quantiles"),
        (run, now, {"quantiles": (0.01, 0.5)}, "forecasts that learn"),
        (run, now, {"futures": 0}, "futures"),
        (run, now, {"futures": 2.5}, "futures is 2.5; it must be a whole number"),
        (run, now, {"adjust": -1}, "adjust"),
        (run, now, {"seed": -1}, "seed is -1"),
        (run, now, {"threads": 0}, "threads"),
        (run, now, {"policy": "fastest"}, "unknown policy"),
        (run, int(run["submit_time"][0]) - 1, {}, "no job has been submitted"),
        (queue, now + 1, {}, "leave it out"),
        (queue, None, {"adjust": 5}, "adjust"),
    ]
    for given, when, options, message in wrong:
        with pytest.raises(ConfigurationError, match=message):
            gs.forecast(given, when, **options)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="is no text"):
        read_queue(tmp_path / "binary", 8)


def test_a_start_beyond_all_futures_is_no_date() -> None:
    """Uncorrected it stays beyond; corrected it is twice the longest outcome, as for all that is so far."""
    now = np.arange(300) * 100_000
    remaining = np.full((300, len(LEVELS)), 1000.0)
    remaining[:, 12:] = np.inf
    fitted = IssuedForecasts(now, remaining, np.linspace(10, 5000, 300)).fit(int(now[-1]) + 200_000)
    corrected = fitted.apply(remaining[:1])
    assert np.isfinite(corrected).all()
    assert corrected.max() <= 2 * 5000
    none = IssuedForecasts(now[:5], remaining[:5], np.ones(5)).fit(10**9)
    assert np.isinf(none.apply(remaining[:1])[0, 12:]).all()
    np.testing.assert_allclose(none.apply(remaining[:1])[0, :12], 1000)
