"""What a workload looks like: arrivals by hour, weekday and week, sizes, run times, estimates, load."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.clock import wall_clock
from gridsched.workloads.table import Workload
from gridsched.workloads.variables import variable

QUANTILES = np.append(np.arange(1, 100) / 100, 0.999)
"""Quantiles of every distribution that is described by them."""

ACCURACY_BINS = np.arange(21) / 20
"""Left edges of the bins of run time / requested time; the last holds all jobs above 1."""

_QUARTER, _HOUR, _DAY = 900, 3600, 86400
_LONGEST_LOG = 100 * 365 * _DAY


def characterise(workload: Workload) -> xr.Dataset:
    """Describe a workload.

    Parameters
    ----------
    workload : Workload
        With at least one job.

    Returns
    -------
    xarray.Dataset
        Arrivals (`arrivals_hour`, jobs an hour by hour of the day; `arrivals_weekday`, jobs a day by weekday,
        Monday first; `jobs_per_week`, in calendar weeks, the first and the last may be incomplete;
        `interarrival_quantile`, s), sizes (`size_share` and `work_share` by powers of two), times
        (`run_time_quantile`, `requested_time_quantile`, s), estimates (`estimate_accuracy_share`, shares of
        the jobs that have both times) and `offered_load`. Values that are unknown in the log are left out
        and counted: `unknown_size`, `unknown_run_time`, `unknown_requested_time`, `unknown_accuracy`.

    Raises
    ------
    WorkloadError
        Where there are no jobs, or the time zone does not exist.

    Notes
    -----
    Means by hour and weekday are divided by the time of that hour or weekday between the first and the last
    submission, in quarters of an hour, so that days of 23 and 25 h and incomplete weeks do not distort them.
    They follow the log's time zone; where it is not known, UTC; where the start is not known either,
    submit time 0 counts as Monday, 0:00. The attribute `clock` says which.

    Examples
    --------
    >>> import gridsched as gs
    >>> described = gs.characterise(gs.synthesise("M3", jobs=1000, seed=1))
    >>> described.jobs_per_week.dims
    ('week',)
    """
    if not len(workload):
        raise WorkloadError(f"{workload.name}: there are no jobs to characterise")
    variables = (
        _arrivals(workload) | _sizes(workload) | _times(workload) | _accuracy(workload) | _load(workload)
    )
    dataset = xr.Dataset(variables, coords=_coordinates(variables))
    dataset.attrs = {
        "title": f"Characterisation of workload {workload.name}",
        "workload": workload.name,
        "jobs": len(workload),
        "clock": _clock(workload),
        "workload_checksum": workload.checksum,
    }
    return dataset


def _coordinates(variables: dict[str, xr.Variable]) -> dict[str, xr.Variable]:
    """Coordinates of all dimensions."""
    classes, weeks = variables["size_share"].size, variables["jobs_per_week"].size
    return {
        "hour_of_day": variable(("hour_of_day",), np.arange(24), "hour of the day", "h"),
        "weekday": variable(
            ("weekday",),
            ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
            "day of the week",
        ),
        "week": variable(("week",), np.arange(weeks), "calendar week, from the first submission"),
        "size_class": variable(("size_class",), [_size_label(k) for k in range(classes)], "processors"),
        "quantile": variable(("quantile",), QUANTILES, "quantile"),
        "accuracy_bin": variable(
            ("accuracy_bin",), ACCURACY_BINS, "run time / requested time, left edge; the last bin is above 1"
        ),
    }


def _size_label(k: int) -> str:
    """Label of the sizes above 2**(k - 1) and up to 2**k."""
    return str(2**k) if k < 2 else f"{2 ** (k - 1) + 1}-{2**k}"


def _clock(workload: Workload) -> str:
    """How submit times were turned into hours and weekdays."""
    if workload.unix_start_time is None:
        return "submit time 0 taken as Monday, 0:00, since the start of the workload is not known"
    return workload.time_zone or "UTC, since the time zone of the log is not known"


def _weekday(wall: NDArray[np.int64]) -> NDArray[np.int64]:
    """Weekday of local times, Monday is 0; Unix time begins on a Thursday."""
    return np.asarray((wall // _DAY + 3) % 7)


def _rate(
    arrivals: NDArray[np.int64], quarters: NDArray[np.int64], bins: int, unit: int
) -> NDArray[np.float64]:
    """Arrivals in each bin per `unit` seconds of the time that the bin was observed; NaN where it was not."""
    jobs = np.bincount(arrivals, minlength=bins)
    units = np.bincount(quarters, minlength=bins) * (_QUARTER / unit)
    rate = np.full(bins, np.nan)
    np.divide(jobs, units, out=rate, where=units > 0)
    return rate


def _arrivals(workload: Workload) -> dict[str, xr.Variable]:
    """When jobs arrive."""
    submit = np.sort(np.floor(workload.submit_time).astype(np.int64))
    start = workload.unix_start_time or 0
    # Offsets of time zones are multiples of a quarter of an hour, so quarters begin together everywhere.
    first, last = (int(second) + start for second in (submit[0], submit[-1]))
    if last - first > _LONGEST_LOG:
        raise WorkloadError(
            f"{workload.name}: submit times span {(last - first) // (365 * _DAY)} years; "
            "check the units of the log"
        )
    quarters = np.arange(first // _QUARTER, last // _QUARTER + 1) * _QUARTER - start
    wall, observed = wall_clock(workload, submit), wall_clock(workload, quarters)
    week = (wall // _DAY + 3) // 7
    return {
        "arrivals_hour": variable(
            ("hour_of_day",),
            _rate(wall // _HOUR % 24, observed // _HOUR % 24, 24, _HOUR),
            "mean number of jobs submitted in an hour",
            "h-1",
        ),
        "arrivals_weekday": variable(
            ("weekday",),
            _rate(_weekday(wall), _weekday(observed), 7, _DAY),
            "mean number of jobs submitted in a day",
            "d-1",
        ),
        "jobs_per_week": variable(
            ("week",), np.bincount(week - week.min()), "jobs submitted in the week, which begins on Monday"
        ),
        "interarrival_quantile": variable(
            ("quantile",), _quantiles(np.diff(submit)), "time between submissions", "s"
        ),
    }


def _quantiles(values: NDArray[Any]) -> NDArray[np.float64]:
    """Quantiles by linear interpolation; NaN where there are no values."""
    if not len(values):
        return np.full(len(QUANTILES), np.nan)
    return np.asarray(np.quantile(values, QUANTILES), np.float64)


def _sizes(workload: Workload) -> dict[str, xr.Variable]:
    """How wide jobs are, and where the work is."""
    known = workload.processors > 0
    processors = workload.processors[known]
    # A job without a known run time counts for no work.
    work = processors * np.maximum(workload.run_time[known], 0).astype(np.float64)
    size_class = np.searchsorted(2 ** np.arange(62), processors)
    classes = int(size_class.max(initial=0)) + 1
    return {
        "size_share": variable(
            ("size_class",), _shares(np.bincount(size_class, minlength=classes)), "share of the jobs"
        ),
        "work_share": variable(
            ("size_class",),
            _shares(np.bincount(size_class, weights=work, minlength=classes)),
            "share of the work, processors x run time",
        ),
        "unknown_size": variable((), int(np.count_nonzero(~known)), "jobs without a known size"),
    }


def _shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Counts divided by their sum; NaN where that is 0."""
    total = float(counts.sum())
    return np.asarray(counts / total if total else np.full(len(counts), np.nan), np.float64)


def _times(workload: Workload) -> dict[str, xr.Variable]:
    """How long jobs run, and how long their users say."""
    run_time = workload.run_time[workload.run_time >= 0]
    requested = workload.requested_time[workload.requested_time > 0]
    jobs = len(workload)
    return {
        "run_time_quantile": variable(("quantile",), _quantiles(run_time), "run time", "s"),
        "requested_time_quantile": variable(("quantile",), _quantiles(requested), "requested time", "s"),
        "unknown_run_time": variable((), jobs - len(run_time), "jobs without a known run time"),
        "unknown_requested_time": variable((), jobs - len(requested), "jobs without a requested time"),
    }


def _accuracy(workload: Workload) -> dict[str, xr.Variable]:
    """How much of the requested time jobs use."""
    known = (workload.run_time >= 0) & (workload.requested_time > 0)
    run_time, requested = workload.run_time[known], workload.requested_time[known]
    above = len(ACCURACY_BINS) - 1
    # In whole numbers, so that no ratio falls beside its bin by rounding.
    accuracy = np.minimum(above * run_time // requested, above - 1).astype(np.int64)
    accuracy[run_time > requested] = above
    return {
        "estimate_accuracy_share": variable(
            ("accuracy_bin",),
            _shares(np.bincount(accuracy, minlength=above + 1)),
            "share of the jobs with this ratio of run time to requested time",
        ),
        "unknown_accuracy": variable(
            (), int(np.count_nonzero(~known)), "jobs whose run time or requested time is not known"
        ),
    }


def _load(workload: Workload) -> dict[str, xr.Variable]:
    """Work that arrives in the time between the first and the last submission, per processor and second."""
    known = (workload.processors > 0) & (workload.run_time >= 0)
    work = float(workload.processors[known] @ workload.run_time[known].astype(np.float64))
    span = float(workload.submit_time.max() - workload.submit_time.min())
    capacity = (workload.processors_available or 0) * span
    load = work / capacity if capacity > 0 else np.nan
    return {"offered_load": variable((), load, "work submitted / (processors x time of submissions)")}
