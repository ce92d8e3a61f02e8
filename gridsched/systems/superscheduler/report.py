"""Studies of grids as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments.parts import GridConfig, label_of
from gridsched.experiments.schedulers import scheduler_made
from gridsched.figures.style import duration, number
from gridsched.replication import Interval, mean_interval, ratio_interval
from gridsched.report.parts import (
    FigureView,
    Form,
    as_text,
    counts,
    figure,
    figures,
    heading,
    interval_text,
    labels,
    mark,
    variations,
)
from gridsched.systems.superscheduler.study.config import GridStudy


@dataclass(frozen=True)
class SchemeRow:
    """One line of the table of schemes."""

    scheme: str
    wait: str
    wait_interval: str
    wait_ratio: str
    response: str
    response_ratio: str
    deviation: str
    slowdown: str
    efficiency: str
    transferred: str
    rejected: str
    reference: bool


@dataclass(frozen=True)
class ClusterRow:
    """One cluster of a scenario, running its own jobs alone."""

    cluster: str
    processors: str
    jobs: str
    load: str
    utilisation: str
    wait: str
    response: str
    checksum: str
    full_checksum: str
    left_out: list[tuple[str, str]]
    repaired: list[tuple[str, str]]


def grid_view(study: GridStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of grids."""
    dataset = results.read(folder / "study.nc")
    return {
        **heading(study, dataset),
        "template": "grid.html.j2",
        "reference": study.reference_label,
        "conventions": _conventions(study),
        "tables": [
            {
                "scenario": scenario,
                "policy": policy,
                "rows": _scheme_rows(dataset, study.scenario(scenario), policy),
            }
            for scenario in labels(dataset, "scenario")
            for policy in labels(dataset, "policy")
        ],
        "clusters": [
            {"scenario": scenario, "rows": _cluster_rows(dataset, study, scenario)}
            for scenario in labels(dataset, "scenario")
        ],
        "figures": _figures(study, folder),
    }


def _conventions(study: GridStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    several = study.most_replicates > 1
    return [
        f"Intervals are 95 % intervals over {study.most_replicates} replicates; comparisons are paired, "
        "replicate by replicate."
        if several
        else "There is one replicate, so there are no intervals.",
        *variations(study.scenarios),
        "Synthetic workloads are drawn anew in each replicate; a log is the same in all of them, unless it "
        "is said to be resampled or shaken.",
        "The same cluster has the same draws in every scenario and under every scheme.",
        "Jobs are never killed for their length; the expected end of a job that outran its estimate "
        + ("doubles its estimate." if study.overrun == "doubling" else "grows by fixed increments."),
        _estimates(study),
        _predictions(study),
        "All jobs count, also the first ones, which find empty clusters, and the last ones.",
        f"The reference is {study.reference_label}.",
    ]


def _estimates(study: GridStudy) -> str:
    """Runtime estimates of the schedulers, by scenario."""
    estimates = [f"{study.estimates_in(each)[0]} in {each.name}" for each in study.scenarios]
    return f"The run times that schedulers expect: {', '.join(estimates)}."


def _predictions(study: GridStudy) -> str:
    """How waits are predicted."""
    planned = [
        label_of(written)
        for written in study.schedulers
        if getattr(scheduler_made(written), "predictions", "exact") == "plan"
    ]
    text = "Waits are predicted by simulating the local policy on, without further submissions"
    return f"{text}; from a conservative plan in {', '.join(planned)}." if planned else f"{text}."


def _scheme_rows(dataset: xr.Dataset, scenario: GridConfig, policy: str) -> list[SchemeRow]:
    part = dataset.sel(scenario=scenario.name, policy=policy)
    reference = part.sel(scheme=dataset.attrs["reference"])
    return [
        _scheme_row(part.sel(scheme=scheme), reference, scheme, scenario)
        for scheme in labels(part, "scheme")
        if not np.isnan(part["wait_time_mean"].sel(scheme=scheme)).all()
    ]


def _scheme_row(run: xr.Dataset, reference: xr.Dataset, scheme: str, scenario: GridConfig) -> SchemeRow:
    def marked(name: str, form: Form) -> str:
        return as_text(mean(name).mean, form) + mark(run[name].values, scenario)

    def mean(name: str) -> Interval:
        return mean_interval(run[name].values)

    def ratio(name: str) -> str:
        return _with_interval(ratio_interval(run[name].values, reference[name].values), number)

    is_reference = scheme == str(reference["scheme"].values)
    return SchemeRow(
        scheme=scheme,
        wait=marked("wait_time_mean", duration),
        wait_interval=interval_text(mean("wait_time_mean"), duration),
        wait_ratio="" if is_reference else ratio("wait_time_mean"),
        response=marked("response_time_mean", duration),
        response_ratio="" if is_reference else ratio("response_time_mean"),
        deviation=as_text(mean("wait_time_deviation").mean, duration),
        slowdown=marked("bounded_slowdown_mean", number),
        efficiency=as_text(mean("grid_efficiency").mean, _percent),
        transferred=as_text(mean("transferred").mean, _percent),
        rejected=as_text(mean("rejected").mean, number),
        reference=is_reference,
    )


def _cluster_rows(dataset: xr.Dataset, study: GridStudy, scenario: str) -> list[ClusterRow]:
    """The clusters of a scenario with what their own jobs see under the reference and the first policy."""
    part = dataset.sel(scenario=scenario, scheme=study.reference_label, policy=study.policy_labels[0])
    return [
        _cluster_row(part.sel(home=cluster.name, cluster=cluster.name), cluster.name)
        for cluster in study.scenario(scenario).clusters
    ]


def _cluster_row(part: xr.Dataset, cluster: str) -> ClusterRow:
    def mean(name: str, form: Form) -> str:
        return as_text(mean_interval(part[name].values).mean, form)

    checksum = str(part["workload_checksum"].values)
    return ClusterRow(
        cluster=cluster,
        processors=f"{int(part['cluster_processors']):,}",
        jobs=mean("jobs_submitted", "{:,.0f}".format),
        load=mean("offered_load", "{:.2f}".format),
        utilisation=mean("utilisation_own", _percent),
        wait=mean("wait_time_mean_home", duration),
        response=mean("response_time_mean_home", duration),
        checksum=checksum[:12],
        full_checksum=checksum,
        left_out=counts(part, "left_out"),
        repaired=counts(part, "repaired"),
    )


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _with_interval(interval: Interval, form: Form) -> str:
    around = interval_text(interval, form)
    return as_text(interval.mean, form) + (f" ({around})" if around else "")


def _figures(study: GridStudy, folder: Path) -> list[FigureView]:
    """Figures of a study in the order of the page."""
    views = figures(folder, study.study_figures)
    for scenario in study.scenarios:
        views += [
            figure(folder, f"{kind}-{scenario.name}", kind, scenario.name) for kind in study.scenario_figures
        ]
    return views
