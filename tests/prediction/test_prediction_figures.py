"""Figures of run time prediction: they show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.figures import style
from gridsched.figures.prediction import PREDICTION_FIGURES, prediction_intervals, prediction_quality
from gridsched.prediction import METHODS, PredictorOptions, evaluate, stack_workloads
from tests.support.prediction import busy_log, workload_of

OPTIONS = PredictorOptions(minimum_history=50, min_samples_leaf=5, retrain_seconds=10**6, intervals=6)


@pytest.fixture(scope="module")
def stacked() -> xr.Dataset:
    workload, end = busy_log(5000)
    bare = workload_of(np.arange(20), np.arange(20))
    named = replace(bare, name="$bare_log$ <b>")
    return stack_workloads([evaluate(workload, end, OPTIONS), evaluate(named, np.arange(20) * 2, OPTIONS)])


def test_quality_shows_the_numbers_of_the_dataset(stacked: xr.Dataset) -> None:
    figure, numbers = prediction_quality(stacked)
    measured = numbers.set_index(["measure", "workload", "predictor"])["value"]
    for method in METHODS:
        for name in ("correlation", "under_predicted"):
            value = stacked[name].sel(predictor=method, workload="made up")
            assert measured[name, "made up", method] == value
        error = stacked["mean_absolute_error"].sel(workload="made up")
        ratio = float(error.sel(predictor=method) / error.sel(predictor="requested time"))
        assert measured["relative_mean_absolute_error", "made up", method] == ratio
    assert "$bare_log$ <b>" not in set(measured["relative_mean_absolute_error"].index.get_level_values(0))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["no requested times"]


def test_intervals_show_the_numbers_of_the_dataset(stacked: xr.Dataset) -> None:
    _, numbers = prediction_intervals(stacked, methods=METHODS[:3])
    for row in numbers.to_dict("records"):
        confusion = stacked["confusion"].sel(predictor=row["predictor"], workload="made up")
        own = confusion.sel(actual_interval=row["actual_interval"])
        assert row["jobs"] == own.sel(predicted_interval=row["predicted_interval"])
        assert row["share"] == row["jobs"] / float(own.sum())
    assert (numbers.groupby(["predictor", "actual_interval"])["share"].sum().round(9) == 1).all()
    assert (numbers["lower"] <= numbers["upper"]).all()


def test_workloads_without_intervals_can_be_drawn(stacked: xr.Dataset) -> None:
    figure, numbers = prediction_intervals(stacked, workload="$bare_log$ <b>")
    assert numbers.empty
    assert sum("no data" in [text.get_text() for text in axes.texts] for axes in figure.axes) == 2


def test_single_evaluations_can_be_drawn(stacked: xr.Dataset) -> None:
    single = stacked.isel(workload=0, drop=True).assign_attrs(workload="made up")
    for draw in PREDICTION_FIGURES.values():
        _, numbers = draw(single)
        assert len(numbers)


def test_what_the_dataset_does_not_have(stacked: xr.Dataset) -> None:
    with pytest.raises(ConfigurationError, match="no workload 'x'"):
        prediction_intervals(stacked, workload="x")
    with pytest.raises(ConfigurationError, match="no predictor 'y'"):
        prediction_intervals(stacked, methods=["y"])
    with pytest.raises(ConfigurationError, match="at least one"):
        prediction_intervals(stacked, methods=[])


@pytest.mark.parametrize("name", PREDICTION_FIGURES)
def test_drawing_again_gives_the_same_bytes(name: str, stacked: xr.Dataset, tmp_path: Path) -> None:
    draw = PREDICTION_FIGURES[name]
    first, second = ([path.read_bytes() for path in style.save(*draw(stacked), tmp_path / k)] for k in "ab")
    assert first == second
