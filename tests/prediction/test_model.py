"""Trained trees: they learn what is there, and stored ones predict exactly the same."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import xarray as xr
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from gridsched.errors import GridschedError
from gridsched.prediction import Model, PredictorOptions, from_dataset, to_dataset, tree
from gridsched.prediction.features import JobTable
from gridsched.prediction.prequential import job_table
from gridsched.prediction.training import train, training_set
from tests.support.prediction import busy_log, regular_users, workload_of

Criterion = Literal["gini", "entropy"]


@pytest.fixture(scope="module")
def table() -> JobTable:
    return job_table(*busy_log(3000), None)[0]


def random_rows(columns: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Values that often meet thresholds, and some far away from all."""
    rng = np.random.default_rng(seed)
    near = rng.integers(-2, 40, (2000, columns)) / 2
    return np.where(rng.random(near.shape) < 0.1, rng.normal(0, 1e9, near.shape), near).astype(np.float32)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("leaf", [1, 7, 400])
def test_trees_of_arrays_predict_what_the_library_predicts(criterion: Criterion, leaf: int) -> None:
    rng = np.random.default_rng(leaf)
    matrix = random_rows(6, seed=1)
    classes = rng.integers(0, 5, len(matrix)) * 2
    classifier = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=leaf, random_state=0)
    classifier.fit(matrix, classes)
    regressor = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0)
    regressor.fit(matrix, matrix[:, 0] * rng.random(len(matrix)))
    for seed in (1, 2):
        rows = random_rows(6, seed)
        classified = tree.classification_tree(classifier).predict(rows)
        np.testing.assert_array_equal(classified, classifier.predict(rows))
        np.testing.assert_array_equal(tree.regression_tree(regressor).predict(rows), regressor.predict(rows))


def test_stored_model_predicts_the_same(table: JobTable, tmp_path: Path) -> None:
    model = train(table, np.arange(2000), PredictorOptions(min_samples_leaf=3))
    to_dataset(model).to_netcdf(tmp_path / "model.nc")
    with xr.open_dataset(tmp_path / "model.nc") as dataset:
        back = from_dataset(dataset)
    everything = slice(None)
    assert back.columns == model.columns
    assert len(back.tree) > 50
    assert set(back.categories) == {"user", "group", "executable", "queue", "partition"} & set(model.columns)
    np.testing.assert_array_equal(back.classify(table, everything), model.classify(table, everything))
    np.testing.assert_array_equal(back.intervals.upper, model.intervals.upper)
    np.testing.assert_array_equal(back.intervals.representative, model.intervals.representative)


def test_stored_model_without_categories(tmp_path: Path) -> None:
    workload, end = regular_users(1, 20)
    table, _ = job_table(workload, end, None)
    model = train(table, np.arange(20), PredictorOptions(features=("user", "hour")))
    to_dataset(model).to_netcdf(tmp_path / "model.nc")
    with xr.open_dataset(tmp_path / "model.nc") as dataset:
        back: Model = from_dataset(dataset)
    assert back.classify(table, slice(None)).tolist() == [0] * 20


def test_dataset_of_something_else_is_refused() -> None:
    with pytest.raises(GridschedError, match="node_left"):
        from_dataset(xr.Dataset({"x": 1}))


def test_what_is_the_same_for_all_jobs_is_left_out() -> None:
    workload = workload_of(
        np.arange(50) * 10, np.arange(50), queue=np.arange(50) % 2, requested_time=[60] * 50
    )
    table, _ = job_table(workload, workload.submit_time + workload.run_time, None)
    history = training_set(table, np.arange(50), PredictorOptions())
    assert history.columns == ("queue",)
    assert history.matrix.shape == (50, 1)


def test_a_history_of_equal_jobs_can_be_trained_on() -> None:
    workload = workload_of(np.arange(50), np.full(50, 5))
    table, _ = job_table(workload, workload.submit_time + 5, None)
    model = train(table, np.arange(50), PredictorOptions())
    assert model.classify(table, slice(None)).tolist() == [0] * 50
    assert model.intervals.representative.tolist() == [5]
