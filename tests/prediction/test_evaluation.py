"""Evaluation of predictions: measures by definition, logs that lack something, several logs."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.prediction import (
    METHODS,
    PredictorOptions,
    evaluate,
    predict_by_method,
    predict_prequential,
    stack_workloads,
)
from gridsched.workloads.table import Workload
from tests.support.errors import each_refused
from tests.support.prediction import Ends, busy_log, naive_knowledge, workload_of

OPTIONS = PredictorOptions(minimum_history=50, min_samples_leaf=5, retrain_seconds=86_400, intervals=6)


@pytest.fixture(scope="module")
def log() -> tuple[Workload, Ends]:
    return busy_log(900)


@pytest.fixture(scope="module")
def dataset(log: tuple[Workload, Ends]) -> xr.Dataset:
    return evaluate(*log, OPTIONS)


@pytest.fixture(scope="module")
def times(log: tuple[Workload, Ends]) -> dict[str, list[int]]:
    return {name: values.tolist() for name, values in predict_by_method(*log, OPTIONS).items()}


def test_simple_methods_by_definition(log: tuple[Workload, Ends], times: dict[str, list[int]]) -> None:
    workload, end = log
    run, requested = workload.run_time.tolist(), workload.requested_time.tolist()
    assert times["requested time"] == requested
    for job in range(0, len(workload), 7):
        known = naive_knowledge(workload, end, job)
        own = [run[other] for other in known if workload.user[other] == workload.user[job]][-2:]
        expected = min(round(statistics.mean(own)), requested[job]) if own else requested[job]
        assert times["last two jobs"][job] == expected
        average = round(statistics.fmean(run[other] for other in known)) if known else requested[job]
        assert times["mean of finished jobs"][job] == min(max(average, 1), requested[job])


def test_the_tree_is_the_prequential_one(log: tuple[Workload, Ends], times: dict[str, list[int]]) -> None:
    assert times["classification tree"] == predict_prequential(*log, OPTIONS).run_time.tolist()


def test_measures_by_definition(
    log: tuple[Workload, Ends], dataset: xr.Dataset, times: dict[str, list[int]]
) -> None:
    actual = log[0].run_time.tolist()
    for method in METHODS:
        pairs = list(zip(times[method], actual, strict=True))
        errors = [abs(predicted - run) for predicted, run in pairs]
        expected = {
            "mean_absolute_error": statistics.fmean(errors),
            "median_absolute_error": statistics.median(errors),
            "correlation": statistics.correlation(times[method], actual),
            "accuracy": statistics.fmean(min(pair) / max(pair) for pair in pairs),
            "under_predicted": statistics.fmean(predicted < run for predicted, run in pairs),
        }
        for name, value in expected.items():
            assert float(dataset[name].sel(predictor=method)) == pytest.approx(value, rel=1e-9), name


def test_intervals_are_those_in_force(log: tuple[Workload, Ends], dataset: xr.Dataset) -> None:
    workload, _ = log
    predictions = predict_prequential(*log, OPTIONS)
    known = predictions.interval >= 0
    run = workload.run_time
    below = run < predictions.lower
    # the last interval has no upper bound
    last = predictions.interval == np.array(
        [predictions.interval[predictions.trained_at == instant].max() for instant in predictions.trained_at]
    )
    right = known & ~below & ((run <= predictions.upper) | last)
    accuracy = dataset["interval_accuracy"].sel(predictor="classification tree")
    assert float(accuracy) == pytest.approx(right[known].mean(), abs=0.02)
    confusion = dataset["confusion"].sel(predictor="classification tree").to_numpy()
    assert confusion.sum() == known.sum() == len(run) - dataset.attrs["jobs_without_interval"]
    assert np.trace(confusion) / confusion.sum() == pytest.approx(float(accuracy))
    predicted = np.bincount(predictions.interval[known], minlength=OPTIONS.intervals)
    np.testing.assert_array_equal(confusion.sum(axis=0), predicted)
    fallback = dataset["fallback"]
    assert float(fallback.sel(predictor="classification tree")) == pytest.approx((~known).mean())
    assert float(fallback.sel(predictor="requested time")) == 0


def test_weeks_add_up(log: tuple[Workload, Ends], dataset: xr.Dataset, times: dict[str, list[int]]) -> None:
    workload, _ = log
    week = (workload.submit_time - workload.submit_time[0]) // (7 * 86400)
    jobs = dataset["weekly_jobs"].to_numpy()
    np.testing.assert_array_equal(jobs, np.bincount(week))
    weekly = dataset["weekly_mean_absolute_error"].to_numpy()
    np.testing.assert_allclose((weekly * jobs).sum(axis=1) / jobs.sum(), dataset["mean_absolute_error"])


def test_threads_and_files_change_nothing(
    log: tuple[Workload, Ends], dataset: xr.Dataset, tmp_path: Path
) -> None:
    xr.testing.assert_identical(evaluate(*log, OPTIONS, threads=2), dataset)
    dataset.to_netcdf(tmp_path / "evaluation.nc")
    with xr.open_dataset(tmp_path / "evaluation.nc") as back:
        xr.testing.assert_equal(back, dataset)
    for variable in dataset.variables.values():
        assert "long_name" in variable.attrs


def test_log_without_requested_times_users_and_trainings() -> None:
    workload = workload_of([0, 10, 20, 30], [5, 5, 5, 0])
    dataset = evaluate(workload, workload.submit_time + workload.run_time, OPTIONS)
    error = dataset["mean_absolute_error"].to_series()
    assert np.isnan(error["requested time"])
    assert error["mean of finished jobs"] == pytest.approx((3595 + 0 + 0 + 5) / 4)
    assert dataset["interval_accuracy"].isnull().all()
    assert dataset["fallback"].sel(predictor="last two jobs") == 1
    assert dataset["confusion"].sel(predictor="classification tree").sum() == 0
    assert dataset.attrs["retrainings"] == 0
    assert "user" in dataset.attrs["features_absent"].split(", ")


def test_several_workloads_together(log: tuple[Workload, Ends], dataset: xr.Dataset) -> None:
    workload, end = log
    short = replace(workload.select(slice(200)), name="short")
    other = evaluate(short, end[:200], OPTIONS)
    stacked = stack_workloads([dataset, other])
    assert stacked["workload"].values.tolist() == ["made up", "short"]
    for name, part in (("made up", dataset), ("short", other)):
        own = stacked.sel(workload=name)
        np.testing.assert_array_equal(own["mean_absolute_error"], part["mean_absolute_error"])
        np.testing.assert_array_equal(own["confusion"], part["confusion"])
        weeks = part.sizes["week"]
        np.testing.assert_array_equal(own["weekly_jobs"][:weeks], part["weekly_jobs"])
        assert own["weekly_jobs"][weeks:].isnull().all()
        assert own["retrainings"] == part.attrs["retrainings"]
    assert stacked.attrs["option_intervals"] == 6
    each_refused(
        (ConfigurationError, "occurs twice", lambda: stack_workloads([dataset, dataset])),
        (ConfigurationError, "at least one", lambda: stack_workloads([])),
    )
    finer = evaluate(short, end[:200], replace(OPTIONS, intervals=7))
    with pytest.raises(ConfigurationError, match="intervals is 6 for made up and 7 for short"):
        stack_workloads([dataset, finer])
