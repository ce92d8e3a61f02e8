"""Figures of run time prediction: they show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.experiments.kinds.jscheduler.drawing import interval_finding, prediction_intervals
from gridsched.experiments.specification import Specification
from gridsched.figures import style
from gridsched.prediction import METHODS, PredictorOptions, evaluate, stack_workloads
from tests.support.errors import each_refused
from tests.support.fields import assert_fields
from tests.support.prediction import busy_log, workload_of

OPTIONS = PredictorOptions(minimum_history=50, min_samples_leaf=5, retrain_seconds=10**6, intervals=6)


@pytest.fixture(scope="module")
def stacked() -> xr.Dataset:
    workload, end = busy_log(5000)
    named = replace(workload_of(np.arange(20), np.arange(20)), name="$bare_log$ <b>")
    return stack_workloads([evaluate(workload, end, OPTIONS), evaluate(named, np.arange(20) * 2, OPTIONS)])


def test_intervals_show_the_numbers_of_the_dataset(stacked: xr.Dataset) -> None:
    _, numbers = prediction_intervals(stacked, methods=METHODS[:3])
    for row in numbers.to_dict("records"):
        confusion = stacked["confusion"].sel(predictor=row["predictor"], workload="made up")
        own = confusion.sel(actual_interval=row["actual_interval"])
        assert_fields(
            row,
            jobs=own.sel(predicted_interval=row["predicted_interval"]),
            share=row["jobs"] / float(own.sum()),
        )
    assert (numbers.groupby(["predictor", "actual_interval"])["share"].sum().round(9) == 1).all()
    assert (numbers["lower"] <= numbers["upper"]).all()


def test_workloads_without_intervals_can_be_drawn(stacked: xr.Dataset) -> None:
    figure, numbers = prediction_intervals(stacked, workload="$bare_log$ <b>")
    assert numbers.empty
    assert sum("no data" in [text.get_text() for text in axes.texts] for axes in figure.axes) == 2


def test_single_evaluations_can_be_drawn(stacked: xr.Dataset) -> None:
    single = stacked.isel(workload=0, drop=True).assign_attrs(workload="made up")
    _, numbers = prediction_intervals(single)
    assert len(numbers)


def test_finding_says_how_many_intervals_are_right() -> None:
    columns = ["predictor", "actual_interval", "predicted_interval", "jobs"]
    table = pd.DataFrame([("tree", 0, 0, 3), ("tree", 0, 1, 1)], columns=columns)
    own = Specification(name="intervals", form="map", title="Intervals")
    assert interval_finding(table, own, {}) == ["Tree: right interval for 75% of the jobs, too long for 25%."]
    assert interval_finding(table[:0], own, {}) == ["No job has an interval."]


def test_what_the_dataset_does_not_have(stacked: xr.Dataset) -> None:
    each_refused(
        (ConfigurationError, "workload: found 'x'", lambda: prediction_intervals(stacked, workload="x")),
        (ConfigurationError, "predictor: found 'y'", lambda: prediction_intervals(stacked, methods=["y"])),
        (ConfigurationError, "at least one", lambda: prediction_intervals(stacked, methods=[])),
    )


def test_drawing_again_gives_the_same_bytes(stacked: xr.Dataset, tmp_path: Path) -> None:
    first, second = (
        [path.read_bytes() for path in style.save(*prediction_intervals(stacked), tmp_path / k)] for k in "ab"
    )
    assert first == second
