"""Predictions of all methods beside those of the classification tree.

All methods are prequential: they know what the tree knows, and those that are trained are trained at the
same instants from the same jobs. Where a method knows nothing, it falls back as the tree does (requested
time, mean of finished jobs, constant). Predictions are bounded by the requested time for all or for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.prediction import rules, training
from gridsched.prediction.intervals import Intervals
from gridsched.prediction.methods import METHODS, TRAINED
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.prequential import Period, Stream, for_each_period, streams
from gridsched.workloads.table import UNKNOWN, Workload


@dataclass(frozen=True, eq=False)
class MethodPredictions:
    """Predictions of all methods.

    `times` (s) and `falls_back` by [method, job]; `predicted`, index of the interval by [method, job], and
    `actual`, `lower` and `upper` (s) of the actual interval by [job], all -1 before the first training.
    """

    times: NDArray[np.int64]
    falls_back: NDArray[np.bool_]
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


def predict_by_method(
    workload: Workload,
    end_time: NDArray[np.int64],
    options: PredictorOptions | None = None,
    source: NDArray[np.int64] | None = None,
    *,
    threads: int = 1,
) -> dict[str, NDArray[np.int64]]:
    """Run times [s] of all jobs by each method, as estimates of a simulation for instance.

    Parameters, errors: as `gridsched.prediction.predict_prequential`, which predicts the same as the method
    "classification tree".

    Returns
    -------
    dict of str to int64[n]
        By name of the method, see `gridsched.prediction.METHODS`.
    """
    options = options or PredictorOptions()
    trained = streams(workload, end_time, options, source)
    return dict(zip(METHODS, predict_all(workload, trained, options, threads).times, strict=True))


@dataclass(frozen=True, eq=False)
class _Lesson:
    """What one training says of the jobs of its period.

    Intervals, the one that the classification tree names for each job, and run times [s] by [method, job].
    """

    intervals: Intervals
    named: NDArray[np.int64]
    seconds: NDArray[np.float64]


def predict_all(
    workload: Workload, trained: Sequence[Stream], options: PredictorOptions, threads: int
) -> MethodPredictions:
    """Predictions of all methods for all jobs."""
    jobs = len(workload)
    seconds = np.empty((len(METHODS), jobs))
    falls_back = np.ones((len(METHODS), jobs), np.bool_)
    lessons: list[tuple[NDArray[np.int64], _Lesson]] = []
    for stream in trained:
        seconds[:, stream.jobs], falls_back[TRAINED:, stream.jobs] = _untrained(stream, options)
        learned = for_each_period(stream, lambda s, p: _learn(s, p, options), threads)
        lessons += [
            (stream.jobs[period.jobs], lesson) for period, lesson in zip(stream.periods, learned, strict=True)
        ]
    for own, lesson in lessons:
        seconds[:TRAINED, own] = lesson.seconds
        falls_back[:TRAINED, own] = False
    times = rules.as_predictions(seconds, workload.requested_time, options)
    predicted = np.full((len(METHODS), jobs), UNKNOWN, np.int64)
    actual, lower, upper = (np.full(jobs, UNKNOWN, np.int64) for _ in range(3))
    for own, lesson in lessons:
        predicted[:, own] = lesson.intervals.index_of(times[:, own])
        predicted[0, own] = lesson.named
        actual[own] = lesson.intervals.index_of(workload.run_time[own])
        lower[own], upper[own] = lesson.intervals.lower[actual[own]], lesson.intervals.upper[actual[own]]
    return MethodPredictions(times, falls_back, predicted, actual, lower, upper)


def _untrained(stream: Stream, options: PredictorOptions) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Run times by the methods without training, and by the fallback for the others; who falls back."""
    everyone = slice(None)
    base, kind = rules.fallback(stream.table, everyone, options)
    last_two, has_two = rules.mean_of_last_two(stream.table, everyone)
    mean, has_mean = rules.mean_of_finished(stream.table, everyone)
    seconds = [*[base] * TRAINED, base, np.where(has_two, last_two, base), np.where(has_mean, mean, base)]
    return np.stack(seconds), ~np.stack([kind == rules.REQUESTED, has_two, has_mean])


def _learn(stream: Stream, period: Period, options: PredictorOptions) -> _Lesson:
    """Train all methods that are trained, and predict the jobs of the period."""
    history = training.training_set(stream.table, stream.history(period, options.window), options)
    model = training.train_classifier(history, options)
    matrix = stream.table.matrix(period.jobs, history.columns, history.categories, history.intervals)
    named = model.tree.predict(matrix, check_input=False).astype(np.int64)
    seconds = [
        history.intervals.representative[named],
        training.regression_tree(history, matrix, options),
        training.gradient_boosting(history, matrix, options),
    ]
    return _Lesson(history.intervals, named, np.stack(seconds))
