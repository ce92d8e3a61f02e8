"""How long users wait before they give up: the estimators against naive ones, and what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize

import gridsched as gs
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.workloads.patience import KaplanMeier, Weibull, fit_patience, patience_sample, with_patience
from tests.support.errors import each_refused
from tests.support.fields import assert_fields


def jobs(waits: Any, gave_up: Any, submit: Any = None) -> gs.Workload:
    """Jobs that waited for so long, and started or were given up then."""
    waits, gave_up = np.asarray(waits), np.asarray(gave_up, np.bool_)
    submit = np.arange(len(waits)) if submit is None else submit
    return gs.Workload(
        name="x",
        submit_time=submit,
        run_time=np.full(len(waits), 10),
        requested_processors=np.ones(len(waits), np.int64),
        wait_time=np.where(gave_up, -1, waits),
        gives_up_time=np.where(gave_up, submit + waits, -1),
        status=np.where(gave_up, 5, 1),
    )


def naive_survival(waits: NDArray[Any], gave_up: NDArray[Any], at: float) -> float:
    """Kaplan and Meier's product, one time after the other."""
    share = 1.0
    for time in sorted(set(waits[gave_up].tolist())):
        if time <= at:
            share *= 1 - np.sum(gave_up & (waits == time)) / np.sum(waits >= time)
    return float(share)


def test_kaplan_meier_is_the_product_of_the_textbook() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(1, 12))
        waits, gave_up = rng.integers(0, 8, count), rng.random(count) < 0.6
        if not gave_up.any():
            continue
        model = fit_patience(jobs(waits, gave_up))
        for wait in range(10):
            assert float(model.still_patient(wait)) == pytest.approx(naive_survival(waits, gave_up, wait))
        for share in (1.0, 0.7, 0.31, 0.0):
            times = [
                t
                for t in range(9)
                if naive_survival(waits, gave_up, t) <= share + 1e-12 and t in waits[gave_up]
            ]
            assert float(model.inverse(share + 1e-12)) == (min(times) if times else np.inf)


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0])
def test_a_weibull_distribution_is_found_again_behind_censoring(shape: float) -> None:
    rng = np.random.default_rng(3)
    patience = 5000 * rng.weibull(shape, 20_000)
    started = rng.exponential(4000, 20_000)
    workload = jobs(np.ceil(np.minimum(patience, started)).astype(int), patience < started)
    model = fit_patience(workload, "weibull")
    assert isinstance(model, Weibull)
    assert_fields(model, shape=pytest.approx(shape, rel=0.05), scale=pytest.approx(5000, rel=0.06))
    # without the censored ones patience would look much shorter
    free = fit_patience(workload)
    assert float(free.still_patient(3000)) == pytest.approx(np.exp(-((3000 / 5000) ** shape)), abs=0.02)


def test_the_likelihood_has_its_largest_value_there() -> None:
    rng = np.random.default_rng(5)
    waits, gave_up = rng.integers(1, 1000, 60), rng.random(60) < 0.4

    def loss(logs: NDArray[Any]) -> float:
        scale, shape = np.exp(logs)
        hazard = np.log(shape / scale) + (shape - 1) * np.log(waits / scale)
        return float(((waits / scale) ** shape).sum() - hazard[gave_up].sum())

    best = np.exp(minimize(loss, np.log([500.0, 1.0]), method="Nelder-Mead", tol=1e-10).x)
    model = fit_patience(jobs(waits, gave_up), "weibull")
    assert isinstance(model, Weibull)
    assert_allclose([model.scale, model.shape], best, rtol=1e-3)
    exponential = fit_patience(jobs(waits, gave_up), "exponential")
    assert isinstance(exponential, Weibull)
    assert_allclose([exponential.scale, exponential.shape], [waits.sum() / gave_up.sum(), 1.0])


def test_users_of_jobs_that_started_give_up_later_than_that() -> None:
    rng = np.random.default_rng(7)
    waits, gave_up = rng.integers(0, 5000, 3000), rng.random(3000) < 0.3
    workload = jobs(waits, gave_up)
    for model in (None, Weibull(scale=3000.0)):
        drawn = with_patience(workload, model, seed=2)
        assert drawn.gives_up_time is not None
        assert workload.gives_up_time is not None
        assert (drawn.gives_up_time[gave_up] == workload.gives_up_time[gave_up]).all()
        finite = ~gave_up & (drawn.gives_up_time >= 0)
        assert finite.any()
        assert (drawn.gives_up_time - drawn.submit_time > waits)[finite].all()
        assert drawn.repaired == {"time at which the user gives up, drawn": int(finite.sum())}


def test_patience_of_jobs_without_waits_follows_the_model() -> None:
    count = 20_000
    workload = gs.Workload(
        name="x",
        submit_time=np.arange(count),
        run_time=np.ones(count, np.int64),
        requested_processors=np.ones(count, np.int64),
    )
    drawn = with_patience(workload, Weibull(scale=1000.0, shape=0.7), seed=1)
    assert drawn.gives_up_time is not None
    patience = drawn.gives_up_time - drawn.submit_time
    for wait in (100, 1000, 4000):
        assert (patience > wait).mean() == pytest.approx(np.exp(-((wait / 1000) ** 0.7)), abs=0.015)
    assert drawn.equals(with_patience(workload, Weibull(scale=1000.0, shape=0.7), seed=1))
    assert not drawn.equals(with_patience(workload, Weibull(scale=1000.0, shape=0.7), seed=2))


def test_who_is_still_patient_in_the_end_never_gives_up() -> None:
    model = KaplanMeier(np.array([10.0]), np.array([0.25]))
    drawn = with_patience(jobs([0] * 4000, [False] * 4000), model)
    assert drawn.gives_up_time is not None
    assert set((drawn.gives_up_time - drawn.submit_time)[drawn.gives_up_time >= 0].tolist()) == {10}
    assert (drawn.gives_up_time < 0).mean() == pytest.approx(0.25, abs=0.03)


def test_what_tells_of_patience() -> None:
    waits, gave_up = patience_sample(jobs([5, 7, 9], [True, False, True]))
    assert waits.tolist() == [5, 7, 9]
    assert gave_up.tolist() == [True, False, True]


def test_a_schedule_with_drawn_patience_keeps_its_rules() -> None:
    rng = np.random.default_rng(9)
    workload = jobs(rng.integers(0, 200, 300), rng.random(300) < 0.3, np.sort(rng.integers(0, 900, 300)))
    run = gs.simulate(with_patience(workload, seed=4), gs.Cluster(processors=2), "easy")
    gs.verify(run)
    assert run.attrs["jobs_gave_up"] > 0


def test_mistakes() -> None:
    each_refused(
        (
            WorkloadError,
            "no job waited until it was cancelled",
            lambda: fit_patience(jobs([1, 2], [False, False])),
        ),
        (
            ConfigurationError,
            "use one of kaplan-meier, weibull, exponential",
            lambda: fit_patience(jobs([1], [True]), "cox"),  # type: ignore[arg-type]
        ),
        (ConfigurationError, "shape is 0", lambda: Weibull(scale=1.0, shape=0.0)),
    )
