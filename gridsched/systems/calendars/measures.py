"""Measures of calendars: normalised queuing delays, trade between clusters, reservations, cost.

The normalised queuing delay of a job is the time from its submission to its completion over its execution
time, both of at least one second. Hollingsworth and Maneewongvatana (1999) print a weighted mean of it
without the weights, so there are four averages, `DELAYS`. Each is also split into values of blocks of jobs,
whose mean with the weights of the measure is the average over all jobs (of the geometric mean: to first
order, so that a block may have a value below 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.metrics.measure import Measure
from gridsched.systems.calendars.planning import COUNTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HOUR = 3600.0

_PAPER = "Hollingsworth and Maneewongvatana, ICDCS 1999, section 3"

DELAYS: dict[str, Measure] = {
    each.name: each
    for each in (
        Measure("delay_mean", "mean normalised delay", "1", "lower", "jobs", source=_PAPER),
        Measure("delay_work_weighted", "work-weighted delay", "1", "lower", "jobs", "work_measured"),
        Measure(
            "delay_ratio_of_means",
            "ratio of mean times",
            "1",
            "lower",
            "jobs",
            "run_time_measured",
        ),
        Measure("delay_geometric_mean", "geometric mean delay", "1", "lower", "jobs"),
    )
}
"""Averages of the normalised queuing delay."""

SPREADS: dict[str, Measure] = {
    f"{name}_spread": Measure(f"{name}_spread", f"spread of the {delay.words} over clusters", "1", "lower")
    for name, delay in DELAYS.items()
}
"""Standard deviation of the delays of the users of all clusters, relative to the mean of these."""

MEASURES: tuple[Measure, ...] = (
    *DELAYS.values(),
    *SPREADS.values(),
    Measure("work_measured", "work of the jobs behind a mean", "h"),
    Measure("run_time_measured", "run time of the jobs behind a mean", "h"),
    Measure("processors_mean", "mean processors of submitted jobs"),
    Measure("work_submitted", "work submitted", "h"),
    Measure("supplied", "work for users of other clusters", "h"),
    Measure("consumed", "work on other clusters", "h"),
    Measure("balance", "balance of trade", "h"),
    Measure("local_work", "work for own users", "h"),
    Measure("clusters_supplying", "clusters that work more for others than for own users"),
    Measure("clusters_lending", "clusters that supply more than they consume"),
    Measure("acceptance", "share of reservations granted", "1", "higher", share=True),
    Measure("postponement_mean", "mean delay of refused reservations", "s", "lower"),
    Measure("failed_share", "share of inquiries declined", "1", "lower", share=True),
    Measure("touched_per_operation", "slots touched per operation", "1", "lower"),
    Measure("operations_per_job", "calendar operations per job", "1", "lower"),
    *(Measure(name, words) for name, words in COUNTS.items() if name != "messages"),
)
"""Measures of calendars, and of schedulers that are compared with them."""


# --- delays ---------------------------------------------------------------------------------------


def contributions(
    response_time: NDArray[Any], run_time: NDArray[Any], processors: Integers
) -> tuple[Floats, Floats]:
    """What each job contributes to each of `DELAYS`, and its weight there; both add up to the average and 1.

    Parameters
    ----------
    response_time, run_time : [n]
        Seconds from submission to completion, and of execution.
    processors : int64[n]

    Returns
    -------
    float64[4, n], float64[4, n]
    """
    jobs = len(run_time)
    if not jobs:
        return np.empty((len(DELAYS), 0)), np.empty((len(DELAYS), 0))
    run = np.maximum(run_time, 1).astype(np.float64)
    delay = np.maximum(response_time, 1) / run
    work, equal = run * processors, np.full(jobs, 1 / jobs)
    logarithm = np.log(delay)
    mean = logarithm.mean()
    weights = np.stack([equal, work / work.sum(), run / run.sum(), equal])
    geometric = np.exp(mean) * (1 + logarithm - mean)
    return np.stack([delay, delay, delay, geometric]) * weights, weights


def delays_of_groups(
    run: xr.Dataset,
    values: Mapping[str, Floats],
    members: Mapping[str, Integers],
    block: Integers | None = None,
) -> xr.Dataset:
    """`DELAYS` of groups of jobs with their weights; with blocks on `replicate`, see `Measuring.further`."""
    response, run_time = values["response_time"], run["run_time"].to_numpy()
    processors = run["processors"].to_numpy()
    place = np.zeros(len(response), np.int64) if block is None else block
    size = int(place.max(initial=0)) + 1
    found = np.full((len(DELAYS) + 2, len(members), size), np.nan)
    for row, jobs in enumerate(members.values()):
        own = jobs[~np.isnan(response[jobs])]
        parts, weights = contributions(response[own], run_time[own], processors[own])
        seconds = np.maximum(run_time[own], 1)
        sums = [[np.bincount(place[own], each, size) for each in rows] for rows in (parts, weights)]
        with np.errstate(invalid="ignore"):
            found[:-2, row] = np.divide(sums[0], sums[1])
        for column, amount in ((-2, seconds * processors[own]), (-1, seconds)):
            found[column, row] = np.bincount(place[own], amount, size) / HOUR
    names = [*DELAYS, "work_measured", "run_time_measured"]
    whole = xr.Dataset(
        {name: (("group", "replicate"), each) for name, each in zip(names, found, strict=True)},
        {"group": list(members), "replicate": np.arange(size)},
    )
    return whole if block is not None else whole.isel(replicate=0, drop=True)


def spread(values: Floats) -> float:
    """Standard deviation relative to the mean; NaN where a value is unknown."""
    return float(values.std() / values.mean())


# --- calendars ------------------------------------------------------------------------------------


def calendar_measures(run: xr.Dataset) -> xr.Dataset:
    """Trade between clusters, reservations and counts of a run of calendars, as a summary."""
    counts = {name: float(run.attrs[name]) for name in COUNTS}
    asked = counts["reservations_granted"] + counts["reservations_refused"]
    earliest = run["earliest_time"].to_numpy()
    refused = earliest >= 0
    later = (earliest - run["reservation_time"].to_numpy())[refused]
    jobs = int((run["start_time"].to_numpy() >= 0).sum())
    found: dict[str, object] = {
        **{name: value for name, value in counts.items() if name != "messages"},
        "acceptance": _share(counts["reservations_granted"], asked),
        "postponement_mean": float(later.mean()) if len(later) else np.nan,
        "failed_share": _share(counts["failed_inquiries"], counts["inquiries"]),
        "touched_per_operation": _share(counts["slots_touched"], counts["operations"]),
        "operations_per_job": _share(counts["operations"], jobs),
    }
    whole = xr.Dataset(found)
    return whole.merge(_trade(run)) if run.sizes["cluster"] > 1 else whole


def _trade(run: xr.Dataset) -> xr.Dataset:
    """Work of clusters for each other, and which jobs moved."""
    supplied, consumed, local = (
        run[name].to_numpy() / HOUR for name in ("supplied", "consumed", "local_work")
    )
    home, job = run["home_cluster"].to_numpy(), run["segment_job"].to_numpy()
    moved = np.unique(job[run["segment_cluster"].to_numpy() != home[job]])
    ran = np.bincount(home[run["start_time"].to_numpy() >= 0], minlength=len(supplied))
    share = np.bincount(home[moved], minlength=len(supplied)) / np.where(ran > 0, ran, np.nan)
    names = run["cluster"].to_numpy()
    return xr.Dataset(
        {
            "supplied_cluster": ("cluster", supplied),
            "consumed_cluster": ("cluster", consumed),
            "balance_cluster": ("cluster", consumed - supplied),
            "local_work_cluster": ("cluster", local),
            "transferred_home": ("home", share),
            "supplied": supplied.sum(),
            "local_work": local.sum(),
            "clusters_supplying": float((supplied > local).sum()),
            "clusters_lending": float((supplied > consumed).sum()),
        },
        {"cluster": names, "home": names},
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else np.nan
