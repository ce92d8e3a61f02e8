"""How good predictions of run time are: the classification tree beside simpler and other learned methods.

In datasets the dimension of the methods is called `predictor`: `method` is a parameter of xarray's `sel`
already, which would take a label for it without a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.prediction.comparison import MethodPredictions, predict_all
from gridsched.prediction.methods import METHODS, REQUESTED
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.prequential import features_absent, streams
from gridsched.workloads.table import UNKNOWN, Workload
from gridsched.workloads.variables import variable

_METHOD = "predictor"
"""Dimension of the methods."""

_OPTION = "option_"
"""What the names of attributes begin with that hold options."""

WEEK = 7 * 86400
"""Seconds of a week, counted from the first submission."""

_MEASURES: dict[str, tuple[str, str]] = {
    "interval_accuracy": ("share of the jobs whose predicted and actual run time are in one interval", "1"),
    "mean_absolute_error": ("mean absolute error of the predicted run time", "s"),
    "median_absolute_error": ("median absolute error of the predicted run time", "s"),
    "correlation": ("Pearson correlation of predicted and actual run time", "1"),
    "accuracy": ("mean of the smaller of predicted and actual run time over the larger", "1"),
    "under_predicted": ("share of the jobs that run longer than predicted", "1"),
    "fallback": ("share of the jobs of which the method knows nothing and falls back", "1"),
}


def evaluate(
    workload: Workload,
    end_time: NDArray[np.int64],
    options: PredictorOptions | None = None,
    source: NDArray[np.int64] | None = None,
    *,
    threads: int = 1,
) -> xr.Dataset:
    """Compare methods of predicting run times on one workload.

    Parameters
    ----------
    workload, end_time, options, source, threads
        As in `gridsched.prediction.predict_prequential`.

    Returns
    -------
    xarray.Dataset
        By `predictor` (see `gridsched.prediction.METHODS`): `interval_accuracy`, `mean_absolute_error` (s),
        `median_absolute_error` (s), `correlation`, `accuracy`, `under_predicted`, `fallback`; NaN for
        "requested time" where no job has one. By predictor and `week` since the first submission:
        `weekly_mean_absolute_error` (s) and `weekly_interval_accuracy`; by week `weekly_jobs`. By predictor,
        `actual_interval` and `predicted_interval`: `confusion`, numbers of jobs. By actual interval:
        `interval_lower`, `interval_upper` (s), medians over its jobs of the bounds in force. Jobs submitted
        before the first training have no interval; they count in neither interval accuracy nor confusion
        (attribute `jobs_without_interval`).

    Raises
    ------
    WorkloadError, ConfigurationError
        As `gridsched.prediction.predict_prequential`.

    Notes
    -----
    Intervals are those in force at the submission of a job. The interval that the classification tree
    predicts is the one that it names, that of other methods is the one of the predicted time. `accuracy` is
    that of Tsafrir, Etsion and Feitelson (IEEE TPDS 18(6), 2007), with run times of at least 1 s.
    """
    options = options or PredictorOptions()
    trained = streams(workload, end_time, options, source)
    outcome = predict_all(workload, trained, options, threads)
    variables = (
        _measures(workload, outcome) | _weekly(workload, outcome) | _confusion(outcome, options.intervals)
    )
    dataset = xr.Dataset(variables, _coordinates(variables))
    if not (workload.requested_time > 0).any():
        for name, found in dataset.items():
            if _METHOD in found.dims:
                dataset[name] = found.where(dataset[_METHOD] != REQUESTED)
    dataset.attrs = {
        "title": f"Predictions of run time on {workload.name}",
        "workload": workload.name,
        "workload_checksum": workload.checksum,
        "jobs": len(workload),
        "jobs_without_end": int(np.count_nonzero(np.asarray(end_time) < 0)),
        "jobs_without_requested_time": int(np.count_nonzero(workload.requested_time <= 0)),
        "jobs_without_interval": int(np.count_nonzero(outcome.actual == UNKNOWN)),
        "retrainings": sum(len(stream.periods) for stream in trained),
        "features_absent": ", ".join(features_absent(trained, options)),
        **{f"{_OPTION}{name}": value for name, value in options.attributes().items()},
    }
    return dataset


def stack_workloads(evaluations: Sequence[xr.Dataset]) -> xr.Dataset:
    """Evaluations of several workloads as one dataset with the dimension `workload`.

    Parameters
    ----------
    evaluations : sequence of xarray.Dataset
        Of `evaluate`, with the same options.

    Returns
    -------
    xarray.Dataset
        Variables of `evaluate` by workload; weeks that a workload does not have are NaN. Counts of jobs and
        trainings and absent features are variables by workload.

    Raises
    ------
    ConfigurationError
        If there is none, two are of the same workload, or the options differ.
    """
    if not evaluations:
        raise ConfigurationError("no evaluations of predictions to put together; give at least one")
    _check_comparable(evaluations)
    names = [dataset.attrs["workload"] for dataset in evaluations]
    parts = [dataset.assign(_facts(dataset)) for dataset in evaluations]
    stacked = xr.concat(parts, xr.Variable("workload", names), join="outer", combine_attrs="drop")
    options = {key: value for key, value in evaluations[0].attrs.items() if key.startswith(_OPTION)}
    return stacked.assign_attrs(title="Predictions of run time", **options)


def _check_comparable(evaluations: Sequence[xr.Dataset]) -> None:
    """Refuse evaluations of the same workload, or with different options."""
    first = evaluations[0].attrs
    seen = set()
    for attributes in (dataset.attrs for dataset in evaluations):
        name = attributes["workload"]
        if name in seen:
            raise ConfigurationError(f"evaluations: workload {name} occurs twice; give each once")
        seen.add(name)
        for key, value in first.items():
            if key.startswith(_OPTION) and attributes[key] != value:
                raise ConfigurationError(
                    f"evaluations: {key.removeprefix(_OPTION)} is {value} for {first['workload']} and "
                    f"{attributes[key]} for {name}; evaluate with the same options"
                )


def _facts(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    """Attributes that differ between workloads, as variables."""
    counts = (
        "jobs",
        "jobs_without_end",
        "jobs_without_requested_time",
        "jobs_without_interval",
        "retrainings",
    )
    facts = {name: variable((), dataset.attrs[name], name.replace("_", " ")) for name in counts}
    absent = {"long_name": "features that the workload does not know"}
    return {**facts, "features_absent": xr.Variable((), dataset.attrs["features_absent"], absent)}


def _coordinates(variables: dict[str, xr.Variable]) -> dict[str, xr.Variable]:
    """Coordinates of all dimensions."""
    weeks, intervals = variables["weekly_jobs"].size, variables["interval_upper"].size
    return {
        _METHOD: xr.Variable((_METHOD,), list(METHODS), {"long_name": "method of prediction"}),
        "week": variable(("week",), np.arange(weeks), "week since the first submission"),
        "actual_interval": variable(
            ("actual_interval",), np.arange(intervals), "index of the actual interval"
        ),
        "predicted_interval": variable(
            ("predicted_interval",), np.arange(intervals), "index of the predicted interval"
        ),
    }


# --- measures -------------------------------------------------------------------------------------


def _measures(workload: Workload, outcome: MethodPredictions) -> dict[str, xr.Variable]:
    """Measures of `_MEASURES` by method."""
    times, run_time = outcome.times, np.asarray(workload.run_time, np.int64)
    error = np.abs(times - run_time)
    longer, shorter = np.maximum(times, run_time), np.minimum(times, np.maximum(run_time, 1))
    known, hits = _hits(outcome)
    values = {
        "interval_accuracy": hits.mean(axis=1) if known.any() else np.full(len(METHODS), np.nan),
        "mean_absolute_error": error.mean(axis=1),
        "median_absolute_error": np.median(error, axis=1),
        "correlation": _correlation(times, run_time),
        "accuracy": (shorter / longer).mean(axis=1),
        "under_predicted": (times < run_time).mean(axis=1),
        "fallback": outcome.falls_back.mean(axis=1),
    }
    return {name: variable((_METHOD,), each, *_MEASURES[name]) for name, each in values.items()}


def _hits(outcome: MethodPredictions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Jobs that have an interval, and, for these only by [method, job], whether the prediction is in it."""
    known = outcome.actual != UNKNOWN
    return known, (outcome.predicted == outcome.actual)[:, known]


def _correlation(times: NDArray[np.int64], run_time: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pearson correlation by method, NaN where all are the same.

    Sums of products rather than a matrix product, whose bits depend on the number of threads.
    """
    left, right = times - times.mean(axis=1, keepdims=True), run_time - run_time.mean()
    scale = np.sqrt((left * left).sum(axis=1) * (right * right).sum())
    result = np.full(len(times), np.nan)
    np.divide((left * right).sum(axis=1), scale, out=result, where=scale > 0)
    return result


def _weekly(workload: Workload, outcome: MethodPredictions) -> dict[str, xr.Variable]:
    """Measures by method and week since the first submission, and the jobs of each week."""
    week = ((workload.submit_time - workload.submit_time[0]) // WEEK).astype(np.int64)
    weeks = int(week[-1]) + 1
    errors = np.abs(outcome.times - workload.run_time)
    known, hits = _hits(outcome)
    values = {
        "mean_absolute_error": np.stack([_means(week, each, weeks) for each in errors]),
        "interval_accuracy": np.stack([_means(week[known], each, weeks) for each in hits]),
    }
    variables = {}
    for name, each in values.items():
        long_name, units = _MEASURES[name]
        variables[f"weekly_{name}"] = variable(
            (_METHOD, "week"), each, f"{long_name}, by week of submission", units
        )
    jobs = np.bincount(week).astype(np.float64)
    return {**variables, "weekly_jobs": variable(("week",), jobs, "jobs submitted in the week")}


def _means(group: NDArray[np.int64], values: NDArray[np.generic], groups: int) -> NDArray[np.float64]:
    """Mean of the values of each group; NaN for groups without values."""
    counts = np.bincount(group, minlength=groups)
    sums = np.bincount(group, values.astype(np.float64), minlength=groups)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _confusion(outcome: MethodPredictions, intervals: int) -> dict[str, xr.Variable]:
    """Jobs by actual and predicted interval, and the usual bounds of the actual one."""
    known = outcome.actual != UNKNOWN
    actual = outcome.actual[known]
    cells = actual * intervals + outcome.predicted[:, known]
    counts = np.stack([np.bincount(each, minlength=intervals**2) for each in cells])
    shape = (len(METHODS), intervals, intervals)
    return {
        "confusion": variable(
            (_METHOD, "actual_interval", "predicted_interval"),
            counts.reshape(shape).astype(np.float64),
            "jobs by actual and predicted interval of run time",
        ),
        "interval_lower": variable(
            ("actual_interval",),
            _medians(actual, outcome.lower[known], intervals),
            "shortest run time of the interval, median over its jobs",
            "s",
        ),
        "interval_upper": variable(
            ("actual_interval",),
            _medians(actual, outcome.upper[known], intervals),
            "longest run time of the interval, median over its jobs",
            "s",
        ),
    }


def _medians(group: NDArray[np.int64], values: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Median of the values of each group; NaN for groups without values."""
    members = [values[group == k] for k in range(groups)]
    return np.array([np.median(each) if len(each) else np.nan for each in members], np.float64)
