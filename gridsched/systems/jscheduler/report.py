"""Studies of self-scheduling as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.figures.style import duration, number
from gridsched.prediction.methods import CLASSIFICATION
from gridsched.prediction.methods import REQUESTED as REQUESTED_TIME
from gridsched.report.parts import (
    FigureView,
    Form,
    as_text,
    counts,
    figures,
    heading,
    labels,
)
from gridsched.systems.jscheduler.figures import (
    METRIC_NAMES,
    PLAN,
    PREDICTED,
    REQUESTED,
    factor_name,
    preferred,
)
from gridsched.systems.jscheduler.study.config import PREDICTION_FIGURES, SelfSchedulingStudy

SHOWN_K = (1, 2, 3, 4, 8, 10, 16, 55)
"""Numbers of clusters in the table of improvements, as far as they were run."""

_IMPROVEMENTS = {"wait_time": "wait", "bounded_slowdown": "bounded slowdown"}
_COMPARED: dict[str, Form] = {
    "wait_time_mean": duration,
    "wait_time_p95": duration,
    "slowdown_mean": number,
    "slowdown_p95": number,
}
"""Columns of the paper's Table 2."""


@dataclass(frozen=True)
class CentreRow:
    """One centre on its own: the paper's numbers and ours."""

    centre: str
    load: str
    overloaded: bool
    compared: list[tuple[str, str, str]]


@dataclass(frozen=True)
class ImprovementRow:
    """Improvements with so many clusters asked: value, interval, value without overloaded centres."""

    k: int
    cells: list[tuple[str, str, str]]


@dataclass(frozen=True)
class LogRow:
    """One log that was used, and what became of its jobs."""

    centre: str
    log: str
    processors: str
    factor: str
    policy: str
    jobs: str
    rejected: str
    rejected_original: str
    without_requested_time: str
    left_out: list[tuple[str, str]]
    repaired: list[tuple[str, str]]
    checksum: str


@dataclass(frozen=True)
class QualityRow:
    """How well the run times of one log are predicted."""

    log: str
    jobs: str
    error: str
    ratio: str
    correlation: str
    correlation_requested: str
    under_predicted: str
    interval_accuracy: str
    best: str


def self_scheduling_view(study: SelfSchedulingStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of self-scheduling."""
    dataset = results.read(folder / "study.nc")
    factors = labels(dataset, "factor")
    return {
        **heading(study, dataset),
        "template": "self_scheduling.html.j2",
        "facts": _facts(study, dataset),
        "conventions": _conventions(study, dataset),
        "statistics": ["mean wait", "95th percentile", "mean slowdown", "95th percentile"],
        "published": any(bool(dataset[f"paper_{column}"].notnull().any()) for column in _COMPARED),
        "centres": [
            {"factor": factor_name(factor), "rows": _centre_rows(dataset.sel(factor=factor))}
            for factor in factors
        ],
        "improvements": [table for factor in factors if (table := _improvements(dataset, factor))["rows"]],
        "logs": [_log_row(dataset.isel(factor=0).sel(centre=name)) for name in labels(dataset, "centre")],
        "absent": _absent(dataset),
        "quality": _quality_rows(folder) if study.evaluate else [],
        "figures": _figures(study, folder),
    }


# --- what was run ---------------------------------------------------------------------------------


def _facts(study: SelfSchedulingStudy, dataset: xr.Dataset) -> list[tuple[str, str]]:
    """What the study consists of, in numbers."""
    first = dataset.isel(factor=0)
    processors = sum(count * size for centre in study.grid.centres for count, size in centre.resources)
    runs = int(dataset["wait_time_mean"].notnull().sum())
    return [
        ("clusters", f"{study.resource_count:,} in {len(study.grid.centres)} centres"),
        ("processors", f"{processors:,}"),
        ("logs", f"{first.sizes['centre']}"),
        ("jobs measured", _whole(first["jobs"].sum())),
        ("jobs that no single cluster can hold", _whole(first["jobs_rejected"].sum())),
        ("jobs that their own centre cannot hold", _whole(first["jobs_rejected_original"].sum())),
        (
            "requested times cut at what the slowest cluster allows",
            _whole(dataset["requested_times_cut"].max("factor").sum()),
        ),
        ("runs", f"{runs:,}"),
    ]


def _conventions(study: SelfSchedulingStudy, dataset: xr.Dataset) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    months = None if study.window is None else study.window.first_months
    part = {None: "a part of each log", 1: "the first month of each log"}.get(
        months, f"the first {months} months of each log"
    )
    part = "whole logs" if study.window is None else part
    history = "each log" if study.predictor.scope == "source" else "all logs"
    readings = ", ".join(factor_name(case) for case in labels(dataset, "factor"))
    failing = any(scenario.failures is not None for scenario in study.scenarios)
    return [
        f"The jobs are {part}, merged into one stream in which the first job of every log is submitted at "
        "the same time.",
        "In the original scenario every log runs on its own centre, all clusters of which are one pool "
        "there; in the grid every cluster is by itself.",
        "A job asks K distinct clusters, drawn at random among those that can hold it; the draw for K + 1 "
        "contains that for K and is the same in all runs.",
        "Means are over the same jobs in all runs: those that run in the original scenario and in the grid.",
        "The improvement is the mean of the original scenario, with requested times, over that of the run. "
        "Its 95 % interval comes from leaving out one week of submissions at a time; it is symmetric in the "
        "logarithm, since improvements are of many times.",
        f"Run times are predicted by classification trees with {study.predictor.intervals} intervals, one "
        f"history for {history}, that learn from what finishes in the original scenario; estimates called "
        "retrained learn from what finishes in the run itself.",
        "Starts are predicted from a conservative plan (plan), or by simulating the local policy on (exact).",
        "Jobs are never killed for their length; the expected end of a job that outran its estimate "
        + ("doubles its estimate." if study.overrun == "doubling" else "grows by fixed increments."),
        "Slowdown divides by the run time on the cluster that ran the job, of at least 1 s; bounded "
        "slowdown by at least 10 s.",
        f"The readings of the CPU factor that were run: {readings}.",
        *([_FAILING] if failing else ()),
        _overloads(dataset),
    ]


_FAILING = (
    "Where nodes fail, each processor is one, and the same ones fail at the same times in the original "
    "scenario, with which improvements compare. The time of a job counts from its submission until it ends "
    "at last."
)


def _overloads(dataset: xr.Dataset) -> str:
    """How many centres each reading of the CPU factor overloads."""
    loads = dataset["offered_load_by_reading"]
    counted = [
        f"{int((loads.sel(reading=reading) >= 1).sum())} ({factor_name(reading)})"
        for reading in labels(dataset, "reading")
    ]
    return (
        f"Of the {dataset.sizes['centre']} centres with a log, an offered load of 1 or more has "
        f"{', '.join(counted)}: their waits grow with the length of the log."
    )


def _log_row(part: xr.Dataset) -> LogRow:
    return LogRow(
        centre=str(part["centre"].values),
        log=str(part["log"].values),
        processors=_whole(part["processors"]),
        factor=f"{float(part['cpu_factor']):g}",
        policy=str(part["local_policy"].values),
        jobs=_whole(part["jobs"]),
        rejected=_whole(part["jobs_rejected"]),
        rejected_original=_whole(part["jobs_rejected_original"]),
        without_requested_time=_whole(part["jobs_without_requested_time"]),
        left_out=counts(part, "left_out"),
        repaired=counts(part, "repaired"),
        checksum=str(part["workload_checksum"].values),
    )


def _absent(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Centres without jobs of their own, and why."""
    reasons = dataset["absent"].values
    named = zip(labels(dataset, "resource_centre"), reasons, strict=True)
    return [(centre, str(reason)) for centre, reason in named if reason]


# --- results --------------------------------------------------------------------------------------


def _centre_rows(part: xr.Dataset) -> list[CentreRow]:
    """Centres of the original scenario with requested times, beside the paper's Table 2."""
    original = part.sel(estimates=preferred(part, "estimates", REQUESTED))
    return [_centre_row(original.sel(centre=centre), centre) for centre in labels(part, "centre")]


def _centre_row(centre: xr.Dataset, name: str) -> CentreRow:
    load = float(centre["offered_load"])
    return CentreRow(
        centre=name,
        load=as_text(load, "{:.2f}".format),
        overloaded=load >= 1,
        compared=[
            _compared(float(centre[f"paper_{column}"]), float(centre[f"original_{column}_by_centre"]), form)
            for column, form in _COMPARED.items()
        ],
    )


def _compared(paper: float, ours: float, form: Form) -> tuple[str, str, str]:
    """The paper's number, ours, and the difference of the two."""
    difference = ours - paper
    sign = "\N{MINUS SIGN}" if difference < 0 else "+"
    return (
        as_text(paper, form),
        as_text(ours, form),
        as_text(abs(difference), lambda value: sign + form(value)),
    )


def _improvements(dataset: xr.Dataset, factor: str) -> dict[str, Any]:
    """Table of improvements under one reading: a row for each number of clusters, two columns a metric."""
    mode, estimates = preferred(dataset, "mode", PLAN), preferred(dataset, "estimates", PREDICTED)
    runs = dataset.sel(factor=factor, mode=mode, estimates=estimates)
    known = runs["wait_time_improvement"].notnull()
    metrics = [name for name in labels(dataset, "metric") if bool(known.sel(metric=name).any())]
    asked = [int(k) for k in dataset["k"].values if int(k) in SHOWN_K and bool(known.sel(k=k).any())]
    columns = [(metric, measure) for metric in metrics for measure in _IMPROVEMENTS]
    return {
        "caption": f"{factor_name(factor)}, estimates: {estimates}, starts: {mode}",
        "header": [f"{METRIC_NAMES[metric]}: {_IMPROVEMENTS[measure]}" for metric, measure in columns],
        "rows": [
            ImprovementRow(k, [_improvement(runs.sel(k=k, metric=metric), name) for metric, name in columns])
            for k in asked
        ],
    }


def _improvement(run: xr.Dataset, measure: str) -> tuple[str, str, str]:
    """Improvement; its interval, and what it is without the jobs of overloaded centres."""
    mean, low, high = (float(run[f"{measure}_improvement{side}"]) for side in ("", "_low", "_high"))
    interval = "" if np.isnan(low) else f"{number(max(low, 0.0))} to {number(high)}"
    light = float(run[f"{measure}_improvement_light"])
    differs = not np.isnan(light) and not np.isclose(light, mean)
    return as_text(mean, number), interval, f"({number(light)})" if differs else ""


def _quality_rows(folder: Path) -> list[QualityRow]:
    """How well run times are predicted, log by log."""
    dataset = results.read(folder / "prediction.nc")
    return [_quality_row(dataset.sel(workload=name), name) for name in labels(dataset, "workload")]


def _quality_row(part: xr.Dataset, name: str) -> QualityRow:
    def of(measure: str, method: str) -> float:
        return float(part[measure].sel(predictor=method))

    errors = part["mean_absolute_error"]
    tree, requested = of("mean_absolute_error", CLASSIFICATION), of("mean_absolute_error", REQUESTED_TIME)
    return QualityRow(
        log=name,
        jobs=_whole(part["jobs"]),
        error=as_text(tree, duration),
        ratio=as_text(tree / requested if requested else np.nan, number),
        correlation=as_text(of("correlation", CLASSIFICATION), "{:.2f}".format),
        correlation_requested=as_text(of("correlation", REQUESTED_TIME), "{:.2f}".format),
        under_predicted=as_text(of("under_predicted", CLASSIFICATION), "{:.1%}".format),
        interval_accuracy=as_text(of("interval_accuracy", CLASSIFICATION), "{:.1%}".format),
        best=str(errors["predictor"].values[np.nanargmin(errors.values)]),
    )


# --- texts ----------------------------------------------------------------------------------------


def _whole(value: xr.DataArray) -> str:
    return as_text(float(value), "{:,.0f}".format)


def _figures(study: SelfSchedulingStudy, folder: Path) -> list[FigureView]:
    """Figures of a study in the order of the page."""
    names = [*study.study_figures, *(PREDICTION_FIGURES if study.evaluate else ())]
    return figures(folder, names)
