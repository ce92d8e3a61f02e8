"""The last stage of a study of self-scheduling: all runs against the original scenario, in one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, collected, interval_variables
from gridsched.experiments.machines import FATES
from gridsched.experiments.prepare import sources
from gridsched.replication import times_interval
from gridsched.systems.jscheduler.centres import Centre
from gridsched.systems.jscheduler.measures import METRICS, VARIABLES, makespan, measure
from gridsched.systems.jscheduler.scheduler import MetricName
from gridsched.systems.jscheduler.study.config import RuntimeEstimate, SelfSchedulingStudy, parameters
from gridsched.systems.jscheduler.study.stages import ORIGINAL, PARAMETERS, RUN_VARIABLES, measured_jobs

MODES: tuple[str, ...] = ("plan", "exact")

REFERENCE = "requested"
"""Estimates of the original scenario that runs are compared with."""

PAPER: dict[str, tuple[str, str]] = {
    "wait_time_mean": ("mean wait time", "s"),
    "wait_time_p95": ("95th percentile of the wait time", "s"),
    "slowdown_mean": ("mean slowdown", "1"),
    "slowdown_p95": ("95th percentile of the slowdown", "1"),
}
"""Columns of Table 2 of the paper: long name and unit."""


def aggregate_self_scheduling_study(
    study: SelfSchedulingStudy,
    seed: int,
    runs: Sequence[str | Path],
    streams: Mapping[str, str | Path],
    workloads: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Put all runs into the dataset of the study, beside the original scenario.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    seed : int
        Seed of the whole configuration.
    runs : sequence of paths
        Results of `simulate_run`.
    streams : mapping of reading of the CPU factor to path
        Results of `fuse_stream`.
    workloads : mapping of centre to path
        Results of `prepare_workload`.
    target : path
        The dataset.
    """
    merged = {factor: results.read(path) for factor, path in streams.items()}
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    whole = xr.merge(
        [
            _runs(study, [results.read(path) for path in runs]),
            _originals(study, merged),
            _jobs(study, merged),
            _machines(study),
            _papers(study),
            sources(logs, "centre"),
        ],
        join="exact",
        combine_attrs="drop_conflicts",
    )
    whole = whole.merge(_improvements(whole))
    whole = whole.merge(_first_better(whole))
    months = None if study.window is None else study.window.first_months
    whole.attrs = study.attributes(seed=seed, months=months or "all")
    files.write(whole, target)


# --- runs and original scenario -------------------------------------------------------------------


def _labels(study: SelfSchedulingStudy) -> dict[str, list[Any]]:
    """What runs differ in; those of the original scenario come first among the estimates."""
    used = [parameters(scheduler) for scheduler in study.schedulers]
    known = {"mode": MODES, "estimates": get_args(RuntimeEstimate), "metric": get_args(MetricName)}
    found: dict[str, set[Any]] = {name: {each[name] for each in used} for name in ("mode", "metric", "k")}
    found["estimates"] = {run.estimates for run in study.runs}.union(ORIGINAL)
    labels: dict[str, list[Any]] = {"factor": list(study.cases)}
    for name, order in known.items():
        own = sorted(found[name].difference(order))
        labels[name] = [*(label for label in order if label in found[name]), *own]
    return {**labels, "k": sorted(found["k"])}


def _runs(study: SelfSchedulingStudy, runs: Sequence[xr.Dataset]) -> xr.Dataset:
    """Measures of all runs on the dimensions of `PARAMETERS`, NaN where there is no run."""
    labels = _labels(study)
    whole = collected(runs, {name: labels[name] for name in PARAMETERS})
    return whole.assign_coords(week=np.arange(whole.sizes["week"]))


def _originals(study: SelfSchedulingStudy, merged: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Measures of the original scenario by reading of the CPU factor and estimates."""
    rows = [[_original(study, stream, name) for name in ORIGINAL] for stream in merged.values()]
    described = {
        **VARIABLES,
        **{name: RUN_VARIABLES[name] for name in ("makespan", "corrections")},
    }
    variables = {
        f"original_{name}": (
            ("factor", "estimates", *dims),
            np.array([[values[name] for values in row] for row in rows], np.float64),
            attrs_of(f"{long_name}, original scenario", units),
        )
        for name, (dims, long_name, units) in described.items()
    }
    whole = xr.Dataset(variables, {"factor": list(merged), "estimates": list(ORIGINAL)})
    return whole.reindex(estimates=_labels(study)["estimates"])


def _original(study: SelfSchedulingStudy, stream: xr.Dataset, estimates: str) -> dict[str, Any]:
    """Measures of the original scenario under some estimates."""
    starts, lengths = stream[f"start_{estimates}"].values, stream["original_run_time"].values
    ends = stream[f"end_{estimates}"].values if f"end_{estimates}" in stream else starts + lengths
    return {
        **measure(
            measured_jobs(study, stream),
            starts,
            lengths,
            ends,
            study.slowdowns.made(),
            stream["run_time"].values,
        ),
        "makespan": makespan(stream["submit_time"].values, starts, ends),
        "corrections": stream.attrs[f"corrections_{estimates}"],
    }


# --- comparison -----------------------------------------------------------------------------------


def _improvements(whole: xr.Dataset) -> xr.Dataset:
    """How many times better runs are than the original scenario under requested times.

    The ratio of the means over jobs has its interval over weeks, paired; beside it stand the ratio of the
    means over centres of the centres' means, and that of the means over the jobs of centres that are not
    overloaded. NaN where nobody waits in a run.
    """
    original = whole.sel(estimates=REFERENCE, drop=True)
    variables: dict[str, Any] = {}
    for metric in METRICS:
        weekly = whole[f"{metric}_by_week"].where(whole["jobs_by_week"] > 0)
        weekly = weekly.transpose(*PARAMETERS, "week")
        before = original[f"original_{metric}_by_week"].broadcast_like(weekly).transpose(*weekly.dims)
        parts = times_interval(before.values, weekly.values)
        label = VARIABLES[f"{metric}_mean"][1]
        long_name = f"{label} of the original scenario relative to that of the run"
        variables |= interval_variables(f"{metric}_improvement", PARAMETERS, parts, long_name, "1")
        own = whole[f"{metric}_mean_by_centre"].mean("centre")
        ratio = original[f"original_{metric}_mean_by_centre"].mean("centre") / own.where(own > 0)
        variables[f"{metric}_improvement_centres"] = ratio.transpose(*PARAMETERS).assign_attrs(
            attrs_of(f"{long_name}, means over centres of the centres' means", "1")
        )
        light = _mean_of_light(whole, f"{metric}_mean_by_centre")
        before_light = _mean_of_light(original.merge(whole[_LOADS]), f"original_{metric}_mean_by_centre")
        ratio = before_light / light.where(light > 0)
        variables[f"{metric}_improvement_light"] = ratio.transpose(*PARAMETERS).assign_attrs(
            attrs_of(f"{long_name}, jobs of centres that are not overloaded alone", "1")
        )
    return xr.Dataset(variables)


_LOADS = ["offered_load", "jobs"]
"""Variables that say which centres are overloaded, and how many jobs each has."""


def _mean_of_light(whole: xr.Dataset, by_centre: str) -> xr.DataArray:
    """Mean over the jobs of the centres whose offered load is below 1, from the centres' means."""
    jobs = whole["jobs"].where(whole["offered_load"] < 1, 0)
    total = jobs.sum("centre")
    return (whole[by_centre] * jobs).sum("centre", skipna=False) / total.where(total > 0)


def _first_better(whole: xr.Dataset) -> xr.Dataset:
    """Smallest K from which on all runs are better than the original scenario; NaN if there is none."""
    variables = {}
    original = whole.sel(estimates=REFERENCE, drop=True)
    for metric in METRICS:
        gain = original[f"original_{metric}_mean"] - whole[f"{metric}_mean"]
        label = VARIABLES[f"{metric}_mean"][1]
        variables[f"{metric}_first_k"] = xr.apply_ufunc(
            first_better, gain.transpose(*PARAMETERS), whole["k"], input_core_dims=[["k"], ["k"]]
        ).assign_attrs(
            attrs_of(
                f"smallest K from which on the {label} is better than in the original scenario, 0 if none",
                "1",
            )
        )
    return xr.Dataset(variables)


def first_better(gain: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Smallest k from which on every known gain on the last axis is positive; 0 if none, NaN if not known."""
    known = ~np.isnan(gain)
    holds = ~known | (gain > 0)
    lasting = known & np.flip(np.logical_and.accumulate(np.flip(holds, -1), axis=-1), -1)
    first = np.where(lasting, k, np.inf).min(axis=-1)
    return np.where(known.any(axis=-1), np.where(np.isinf(first), 0, first), np.nan)


# --- jobs and centres -----------------------------------------------------------------------------


def _jobs(study: SelfSchedulingStudy, merged: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """How many jobs are measured, how many fit nowhere, and what load they offer to the centres."""
    described: dict[str, tuple[str, str]] = {
        "jobs": ("centre", "jobs of the log that run in all schedules, which are measured"),
        "jobs_rejected_original": ("centre", "jobs of the log that its own centre cannot hold"),
        "jobs_rejected": ("centre", "jobs of the log that no single resource can hold"),
        "requested_times_cut": ("centre", "requested times cut at what the slowest resource allows"),
        "offered_load": ("centre", "work of the jobs that the centre can hold, relative to its capacity"),
        "jobs_by_week": ("week", "jobs submitted in the week that are measured"),
    }
    rows = [_jobs_of(study, stream) for stream in merged.values()]
    variables = {
        name: (("factor", dimension), np.stack([row[name] for row in rows]), attrs_of(long_name, "1"))
        for name, (dimension, long_name) in described.items()
    }
    first = next(iter(merged.values()))
    variables["offered_load_by_reading"] = (
        ("reading", "centre"),
        first["offered_load"].values,
        attrs_of("offered load of the centre under each reading of the CPU factor, run or not", "1"),
    )
    return xr.Dataset(
        variables,
        {"factor": list(merged), "centre": rows[0]["centre"], "reading": first["reading"].values},
    )


def _jobs_of(study: SelfSchedulingStudy, stream: xr.Dataset) -> dict[str, NDArray[Any]]:
    jobs = measured_jobs(study, stream)
    centre, centres = stream["centre_index"].values, stream.sizes["centre"]

    def rejected(fits: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(centre[~fits], minlength=centres)

    return {
        "centre": stream["centre"].values,
        "jobs": jobs.jobs_by_centre(),
        "jobs_rejected_original": rejected(stream["start_requested"].values >= 0),
        "jobs_rejected": rejected(stream["held"].values > 0),
        "requested_times_cut": stream["requested_times_cut"].values,
        "offered_load": stream["offered_load"].sel(reading=stream.attrs["factor"]).values,
        "jobs_by_week": jobs.jobs_by_week(),
    }


def _machines(study: SelfSchedulingStudy) -> xr.Dataset:
    """The centres whose logs are used, and all of the platform."""
    centres, everywhere = study.centres, study.grid.centres
    whole = xr.Dataset(
        coords={
            "centre": [centre.name for centre in centres],
            "resource_centre": [centre.name for centre in everywhere],
        }
    )
    of_centre: dict[str, tuple[list[Any], str]] = {
        "processors": ([_processors(centre) for centre in centres], "processors of the centre"),
        "cpu_factor": ([float(centre.factor) for centre in centres], "CPU factor of the paper"),
        "local_policy": ([centre.policy for centre in centres], "local policy"),
        "log": ([centre.log or centre.file or "" for centre in centres], "log of the centre"),
    }
    of_all: dict[str, tuple[list[Any], str]] = {
        "absent": ([centre.absent for centre in everywhere], "why the centre's log is not used"),
        "resources": (
            [sum(number for number, _ in centre.resources) for centre in everywhere],
            "resources of the centre that jobs choose among",
        ),
        "resource_processors": ([_processors(centre) for centre in everywhere], "processors of all of them"),
    }
    for dimension, described in (("centre", of_centre), ("resource_centre", of_all)):
        for name, (values, long_name) in described.items():
            units = {} if isinstance(values[0], str) else {"units": "1"}
            whole[name] = (dimension, values, {"long_name": long_name, **units})
    return whole


def _processors(centre: Centre) -> int:
    return sum(number * processors for number, processors in centre.resources)


def _papers(study: SelfSchedulingStudy) -> xr.Dataset:
    """Table 2 of the paper; NaN where it has no row."""
    rows = [centre.paper or {} for centre in study.centres]
    return xr.Dataset(
        {
            f"paper_{name}": (
                "centre",
                np.array([row.get(name.replace("_time", ""), np.nan) for row in rows], np.float64),
                attrs_of(f"{long_name} in the paper", units),
            )
            for name, (long_name, units) in PAPER.items()
        },
        {"centre": [centre.name for centre in study.centres]},
    )


# --- tables ---------------------------------------------------------------------------------------


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each run and measure, and for the original scenario, whose mode is called so.

    Metrics of jobs have their improvement over the original scenario, with its interval.
    """
    means = [f"{metric}_mean" for metric in METRICS]
    others = [name for name, (dims, *_) in RUN_VARIABLES.items() if not dims and name not in means]
    others += [name for name in FATES if name in whole]
    keys = list(PARAMETERS)
    frames = [
        whole[f"original_{name}"]
        .to_dataframe(name="value")
        .reset_index()
        .assign(mode="original", measure=name, unit=whole[f"original_{name}"].attrs["units"])
        for name in (*means, "makespan", "corrections")
    ]
    for name in (*means, *others):
        columns = {"value": whole[name]}
        if name in means:
            improvement = f"{name.removesuffix('_mean')}_improvement"
            columns |= {"improvement": whole[improvement]}
            columns |= {bound: whole[f"{improvement}_{bound}"] for bound in ("low", "high")}
        frame = xr.Dataset(columns).to_dataframe(dim_order=keys).reset_index()
        frames.append(frame.assign(measure=name, unit=whole[name].attrs["units"]))
    table = pd.concat([frame[frame["value"].notna()] for frame in frames])
    table["k"] = table["k"].astype("Int64")
    return table[[*keys, "measure", "unit", "value", "improvement", "low", "high"]]


def table_two_of(whole: xr.Dataset) -> pd.DataFrame:
    """The original scenario under requested times beside Table 2 of the paper, centre by centre."""
    original = whole.sel(estimates=REFERENCE)
    columns: dict[str, xr.DataArray] = {"offered_load": whole["offered_load"]}
    for reading in whole["reading"].values:
        load = whole["offered_load_by_reading"].sel(reading=reading, drop=True)
        columns[f"offered_load_{reading}"] = load
    for name in PAPER:
        paper, here = whole[f"paper_{name}"], original[f"original_{name}_by_centre"]
        columns |= {f"paper_{name}": paper, f"original_{name}": here, f"difference_{name}": here - paper}
    table = xr.Dataset(
        {name: column.drop_vars("estimates", errors="ignore") for name, column in columns.items()}
    )
    return table.to_dataframe(dim_order=["factor", "centre"]).reset_index()
