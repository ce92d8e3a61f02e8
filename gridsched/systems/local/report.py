"""Studies of local policies as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments.study import families
from gridsched.figures.style import duration, number
from gridsched.metrics.users import USER_MEASURES
from gridsched.report.parts import (
    UNSTABLE,
    FigureView,
    counts,
    figure,
    figures,
    heading,
    known,
    labels,
    variations,
)
from gridsched.systems.local.study.config import RECORDED, LocalStudy


@dataclass(frozen=True)
class PolicyRow:
    """One line of a study's table of policies."""

    scheme: str
    wait: str
    wait_interval: str
    wait_median: str
    difference: str
    slowdown: str
    slowdown_interval: str
    utilisation: str
    longest_queue: str
    rejected: str
    corrections: str
    gave_up: str
    killed: str
    extra_work: str
    productivity: str
    jobs_per_session: str
    jobs_per_user_week: str
    reference: bool
    varied: Varied


@dataclass(frozen=True)
class Varied:
    """What the replicates of a log say of a policy."""

    wait: str = ""
    wait_interval: str = ""
    difference: str = ""
    slowdown: str = ""
    slowdown_interval: str = ""
    unstable: str = ""
    productivity: str = ""
    jobs_per_session: str = ""
    jobs_per_user_week: str = ""


def local_view(study: LocalStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of one study."""
    dataset = results.read(folder / "study.nc")
    return {
        **heading(study, dataset),
        "template": "local.html.j2",
        "reference": study.reference_label,
        "estimates": study.estimates,
        "conventions": _conventions(study),
        "tables": [
            {
                "workload": workload,
                "estimate": estimate,
                "rows": rows,
                "reacting": any(row.productivity for row in rows),
                "variation": _VARIED[str(dataset["variation"].sel(workload=workload).values)]
                if "variation" in dataset
                else "",
            }
            for workload in labels(dataset, "workload")
            for estimate in labels(dataset, "estimate")
            if (rows := _policy_rows(dataset.sel(workload=workload, estimate=estimate)))
        ],
        "workloads": [_workload_view(dataset.sel(workload=name)) for name in labels(dataset, "workload")],
        "fates": "jobs_gave_up" in dataset,
        "fate_table": None,  # the tables above say it
        "figures": _figures(study, folder),
    }


_VARIED = {"": "", "resampling": "resampled", "shaking": "shaken"}
"""What replicates of a log are, in a table, by the value of the variable `variation`."""


_AGAIN = (
    "Conditions are compared by the jobs that have one number and run time in all scenarios of a block, end "
    "in all runs, and whose users never give up; intervals of ratios come from leaving out one batch of "
    "these jobs at a time.",
)

_PASSES = {
    "instant": "A scheduling pass follows all events of an instant.",
    "event": "A scheduling pass follows each single event.",
    "arrivals-first": "A scheduling pass follows each single event; at one instant submissions come "
    "before ends, and jobs that end as expected have left already.",
}


def _conventions(study: LocalStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    metrics = study.metrics
    trimmed = f"the first {metrics.warm_up:.0%} and the last {metrics.cool_down:.0%} of the jobs are left out"
    return [
        _PASSES[study.passes],
        "Jobs end at their requested time."
        if study.kill
        else "Jobs are never killed for their length; one that outruns its estimate keeps running.",
        "The expected end of a job that outran its estimate "
        + ("doubles its estimate." if study.overrun == "doubling" else "grows by fixed increments."),
        f"Intervals are 95 % intervals from the means of {metrics.batches} batches of consecutive jobs "
        "(none where a batch has fewer than two jobs); "
        + (trimmed if metrics.warm_up or metrics.cool_down else "all jobs count")
        + ".",
        *(_AGAIN if families(study.scenarios) else ()),
        *variations(study.scenarios),
        f"Long jobs run more than {metrics.classes.long} s, wide jobs use more than "
        f"{metrics.classes.wide} processors. Bounded slowdown has a threshold of 10 s.",
    ]


def _policy_rows(dataset: xr.Dataset) -> list[PolicyRow]:
    """Rows of one workload and estimate; schemes without a result are left out."""
    rows = []
    for scheme in labels(dataset, "scheme"):
        row = dataset.sel(scheme=scheme, job_class="all")
        if np.isnan(float(row["wait_time_mean"])):
            continue
        rows.append(
            PolicyRow(
                scheme=scheme,
                wait=duration(float(row["wait_time_mean"])),
                wait_interval=_interval(row, "wait_time_mean", duration),
                wait_median=duration(float(row["wait_time_quantile"].sel(quantile=0.5, method="nearest"))),
                difference=_difference(row),
                slowdown=number(float(row["bounded_slowdown_mean"])),
                slowdown_interval=_interval(row, "bounded_slowdown_mean", number),
                utilisation=known(row["utilisation"], "{:.1%}"),
                longest_queue=known(row["queue_length_max"], "{:,.0f}"),
                rejected=known(row["rejected"], "{:,.0f}"),
                corrections=known(row["corrections"], "{:,.0f}"),
                gave_up=_fate(row, "jobs_gave_up", "{:,.0f}"),
                killed=_fate(row, "executions_killed", "{:,.0f}"),
                extra_work=_fate(row, "extra_work_share", "{:.1%}"),
                productivity=_fate(row, "productivity", "{:,.1f}"),
                jobs_per_session=_fate(row, "jobs_per_session", "{:,.2f}"),
                jobs_per_user_week=_fate(row, "jobs_per_user_week", "{:,.2f}"),
                reference=scheme == dataset.attrs["reference"],
                varied=_varied(row),
            )
        )
    return rows


def _varied(row: xr.Dataset) -> Varied:
    """What replicates say; nothing for a workload or scheme without."""
    if "variation" not in row or np.isnan(float(row["wait_time_varied"])):
        return Varied()
    shaken = str(row["variation"].values) == "shaking"
    far = [
        text
        for metric, text in (("wait_time", "mean wait"), ("bounded_slowdown", "mean bounded slowdown"))
        if float(row[f"{metric}_spread"]) > UNSTABLE
    ]
    return Varied(
        wait=duration(float(row["wait_time_varied"])),
        wait_interval=_interval(row, "wait_time_varied", duration),
        difference=_difference(row, "wait_time_varied_difference"),
        slowdown=number(float(row["bounded_slowdown_varied"])),
        slowdown_interval=_interval(row, "bounded_slowdown_varied", number),
        unstable=" and ".join(far) if shaken else "",
        **{name: _times(row, f"{name}_varied_ratio") for name in USER_MEASURES},
    )


def _times(row: xr.Dataset, name: str) -> str:
    """A ratio to the reference with its interval; nothing for the reference, or where it is not known."""
    if name not in row:
        return ""
    ratio, low, high = (float(row[f"{name}{side}"]) for side in ("", "_low", "_high"))
    if np.isnan(low) or low == high:
        return ""
    return f"{ratio:.3f} ({low:.3f} to {high:.3f})"


def _fate(row: xr.Dataset, variable: str, form: str) -> str:
    """What became of jobs, where a run says so; a log does not."""
    is_log = str(row["scheme"].values) == RECORDED
    return known(row[variable], form) if variable in row and not is_log else ""


def _interval(row: xr.Dataset, name: str, form: Any) -> str:
    low, high = (float(row[f"{name}_{side}"]) for side in ("low", "high"))
    return "" if np.isnan(low) else f"{form(max(low, 0.0))} to {form(high)}"


def _difference(row: xr.Dataset, name: str = "wait_time_difference") -> str:
    """Paired difference of the mean wait from the reference, and whether its interval excludes zero."""
    mean, low, high = (float(row[f"{name}{side}"]) for side in ("", "_low", "_high"))
    if np.isnan(mean) or mean == 0.0:
        return ""
    sign = "+" if mean > 0 else "\N{MINUS SIGN}"
    sure = "" if low > 0 or high < 0 or np.isnan(low) else " (not sure)"
    return f"{sign}{duration(abs(mean))}{sure}"


def _workload_view(dataset: xr.Dataset) -> dict[str, Any]:
    """What was left out of a workload, repaired or assumed."""
    return {
        "name": str(dataset["workload"].values),
        "jobs": f"{int(dataset['jobs'].sel(job_class='all').max()):,}",
        "left_out": counts(dataset, "left_out"),
        "repaired": counts(dataset, "repaired"),
        "without_requested_time": f"{int(dataset['jobs_without_requested_time']):,}",
        "checksum": str(dataset["workload_checksum"].values),
    }


def _figures(study: LocalStudy, folder: Path) -> list[FigureView]:
    """Figures of a study in the order of the page."""
    views = figures(folder, study.study_figures)
    for run in study.gantt_runs:
        views.append(figure(folder, run.gantt, "gantt", run.title))
    for kind in ("load", "workload"):
        views += [figure(folder, f"{kind}-{name}", kind, name) for name in study.shown_workloads]
    return views
