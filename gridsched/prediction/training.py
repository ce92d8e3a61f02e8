"""Training on the jobs that finished last: the classification tree, and the models it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import ThreadpoolController

from gridsched.prediction.categories import Categories, learn_categories
from gridsched.prediction.features import SOURCE, JobTable
from gridsched.prediction.intervals import Intervals, discretise
from gridsched.prediction.model import Model
from gridsched.prediction.options import CATEGORIES, PredictorOptions

BOOSTING_ROUNDS, BOOSTING_RATE = 20, 0.2
"""Trees of gradient boosting and learning rate; few trees, since they are trained as often as the others."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Finished jobs as trees take them.

    Parameters
    ----------
    matrix : float32[n, m]
        Features of the jobs as of their submissions.
    run_time : int64[n]
        Seconds.
    columns : tuple of str
        Names of the features; those that are the same for all jobs are left out.
    categories : mapping of str to Categories
        Numbers of the categories among them.
    intervals : Intervals
        Intervals of the run times.
    """

    matrix: NDArray[np.float32]
    run_time: NDArray[np.int64]
    columns: tuple[str, ...]
    categories: Mapping[str, Categories]
    intervals: Intervals


def training_set(table: JobTable, jobs: NDArray[np.int64], options: PredictorOptions) -> TrainingSet:
    """Learn intervals and categories from finished jobs, and put the jobs into a matrix.

    Parameters
    ----------
    table : JobTable
        All jobs.
    jobs : int64[n]
        The finished jobs of the history, at least one.
    options : PredictorOptions

    Returns
    -------
    TrainingSet
    """
    run_time = table.run_time[jobs]
    label = table.categories[options.mdl_label][jobs] if options.discretisation == "mdl" else None
    # Classes of less than two jobs each would be noise.
    wanted = max(1, min(options.intervals, len(jobs) // 2))
    intervals = discretise(run_time, options.discretisation, wanted, options.representative, label)
    names = [*options.features, *([SOURCE] if SOURCE in table.categories else [])]
    categories = {
        name: learn_categories(table.categories[name][jobs], run_time, options.encoding, options.rare)
        for name in names
        if name in (*CATEGORIES, SOURCE)
    }
    matrix = table.matrix(jobs, names, categories, intervals)
    varying = (matrix != matrix[0]).any(axis=0)
    if not varying.any():
        # A matrix without columns cannot be trained on; on a constant one a tree is a single leaf.
        varying[0] = True
    columns = tuple(name for name, varies in zip(names, varying, strict=True) if varies)
    return TrainingSet(
        np.ascontiguousarray(matrix[:, varying]),
        run_time,
        columns,
        {name: categories[name] for name in columns if name in categories},
        intervals,
    )


def train_classifier(history: TrainingSet, options: PredictorOptions) -> Model:
    """Classification tree over the intervals of run time."""
    estimator = DecisionTreeClassifier(
        criterion=options.criterion,
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        random_state=options.random_state,
    )
    estimator.fit(history.matrix, history.intervals.index_of(history.run_time))
    return Model(history.columns, history.categories, history.intervals, estimator)


def train(table: JobTable, jobs: NDArray[np.int64], options: PredictorOptions) -> Model:
    """Classification tree from finished jobs, see `training_set` and `train_classifier`."""
    return train_classifier(training_set(table, jobs, options), options)


def regression_tree(
    history: TrainingSet, matrix: NDArray[np.float32], options: PredictorOptions
) -> NDArray[np.float64]:
    """Run times [s] by a regression tree (least squares), for other jobs with the same features."""
    estimator = DecisionTreeRegressor(
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        random_state=options.random_state,
    )
    estimator.fit(history.matrix, history.run_time)
    return np.asarray(estimator.predict(matrix, check_input=False), np.float64)


def gradient_boosting(
    history: TrainingSet, matrix: NDArray[np.float32], options: PredictorOptions
) -> NDArray[np.float64]:
    """Run times [s] by gradient boosting (least absolute error), for other jobs with the same features.

    One thread, so that sums of floating point numbers do not depend on the number of cores.
    """
    estimator = HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=BOOSTING_ROUNDS,
        learning_rate=BOOSTING_RATE,
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        early_stopping=False,
        random_state=options.random_state,
    )
    with _thread_pools().limit(limits=1, user_api="openmp"):
        estimator.fit(history.matrix, history.run_time)
        return np.asarray(estimator.predict(matrix), np.float64)


@cache
def _thread_pools() -> ThreadpoolController:
    """Thread pools of the libraries that are loaded; looking for them takes milliseconds."""
    return ThreadpoolController()
