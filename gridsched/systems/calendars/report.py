"""Studies of imprecise calendars as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.figures.style import duration, number
from gridsched.report.parts import (
    FigureView,
    Form,
    as_text,
    counts,
    figure,
    figures,
    heading,
    labels,
)
from gridsched.systems.calendars.figures import AGGREGATE_NAMES
from gridsched.systems.calendars.measures import LENGTHS
from gridsched.systems.calendars.study.config import CalendarStudy


def _whole(value: float) -> str:
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")


def _per_cent(value: float) -> str:
    return f"{value:.1%}"


_COUNTS: dict[str, tuple[str, Form]] = {
    "slots_max": ("slots of a calendar", _whole),
    "operations": ("operations", _whole),
    "touched_per_operation": ("slots per operation", number),
    "splits": ("splits", _whole),
    "moves": ("moves forward", _whole),
    "suspended": ("suspended", _whole),
    "promoted": ("promoted", _whole),
    "bumped": ("bumped up", _whole),
    "messages": ("messages", _whole),
    "failed_share": ("inquiries declined", _per_cent),
    "acceptance": ("reservations granted", _per_cent),
}
"""Columns of the table of counts; those without any number are left out."""

_ALONE = {"utilisation": "utilisation_alone"}
_TOGETHER = {
    "utilisation": "utilisation_together",
    "supplied": "supplied",
    "consumed": "consumed",
    "balance": "balance",
    "local_work": "local_work",
}
"""Variables that stand beside a column of the paper, for clusters by themselves and under managers."""

_CLUSTER_TEXTS = {
    "submitted_jobs": "jobs",
    "mean_processors": "mean nodes",
    "utilisation": "utilisation",
    "supplied": "supply [processor-hours]",
    "consumed": "consume [processor-hours]",
    "balance": "balance [processor-hours]",
    "local_work": "local [processor-hours]",
}


@dataclass(frozen=True)
class CalendarRow:
    """One scheduler on one case: delays with their ratios to the reference, and the system."""

    scheduler: str
    is_reference: bool
    delays: list[tuple[str, str, str]]
    others: list[str]


@dataclass(frozen=True)
class TableView:
    """A table: caption, header and rows of text, each with a name."""

    caption: str
    header: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class ComparedTable:
    """A table of the paper beside ours: each cell is the paper's number and ours."""

    caption: str
    header: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]


def calendar_view(study: CalendarStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of imprecise calendars."""
    dataset = results.read(folder / "study.nc")
    cases = labels(dataset, "case")
    return {
        **heading(study, dataset),
        "template": "calendars.html.j2",
        "facts": _facts(study, dataset),
        "conventions": _conventions(study),
        "aggregates": list(AGGREGATE_NAMES.values()),
        "results": [
            {"caption": f"{case}, {estimates} run times", "rows": rows}
            for case in cases
            for estimates in study.estimates
            if (rows := _scheduler_rows(study, dataset.sel(case=case, estimates=estimates)))
        ],
        "compared": [table for case in cases for table in _compared(dataset.sel(case=case), case)],
        "counts": [table for case in cases if (table := _counts(dataset.sel(case=case), case)).rows],
        "slots": _slots(study),
        "logs": [_log_row(dataset.sel(case=case), case) for case in cases],
        "figures": _figures(study, folder),
        "clusters": f"{study.name}/tables/clusters.csv",
    }


def _slots(study: CalendarStudy) -> list[tuple[str, str]]:
    """The slots of the study, each with the schedulers that have them."""
    users: dict[str, list[str]] = {}
    for label, calendars in study.calendars.items():
        users.setdefault(str(calendars.slots), []).append(label)
    return [("; ".join(labels), slots) for slots, labels in users.items()]


# --- what was run ---------------------------------------------------------------------------------


def _facts(study: CalendarStudy, dataset: xr.Dataset) -> list[tuple[str, str]]:
    """What the study consists of, in numbers."""
    runs = int(dataset["makespan"].notnull().sum())
    return [
        ("cases", ", ".join(case.name for case in study.scenarios)),
        ("schedulers", f"{len(study.schedulers)}"),
        ("runs", f"{runs:,}"),
        ("jobs submitted, all cases", _whole(float(dataset["submitted"].sel(job_class=LENGTHS[0]).sum()))),
    ]


def _conventions(study: CalendarStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    lines = [
        "The normalised queuing delay of a job is the time from its submission to its completion over its "
        "execution time, both of at least 1 s. The paper weights it without saying how, so there are always "
        "four aggregates: the mean over jobs, the mean weighted by processors \N{MULTIPLICATION SIGN} "
        "execution time, the ratio of the mean times, and the geometric mean.",
        f"Ratios are to the scheduler {study.reference_label}; their 95 % intervals come from leaving "
        "out one block of submissions at a time, paired.",
        "A job takes whole slots; the first slots are split when they are down to the low-water mark, and "
        "waiting jobs then move forward, as after an early exit.",
        "Local policies, and calendars without managers, run every cluster by itself. "
        "Utilisation divides by the makespan of all clusters of a case together.",
        "Supplied is work for jobs submitted elsewhere, consumed is work of own jobs elsewhere; the balance "
        "is consumed less supplied: a negative one belongs to a cluster that gives more than it takes.",
        "Jobs larger than their cluster are left out and counted.",
    ]
    if study.largest_share:
        lines.append(
            "Jobs that ask for a reservation are drawn at random, the same ones and more with a larger "
            "share. What reservations cost is measured on the jobs that ask for none in any run; delays of "
            "all jobs contain the time until a reserved start, and grow with it."
        )
    if "requested" in study.estimates:
        lines.append(
            "With requested run times a job whose slots are over and who is not done goes on where there is "
            "room, and is suspended where there is none."
        )
    return lines


@dataclass(frozen=True)
class CaseJobsRow:
    """What became of the jobs of a case that are not simulated as they are."""

    case: str
    clusters: str
    jobs: str
    without_requested_time: str
    left_out: list[tuple[str, str]]
    repaired: list[tuple[str, str]]


def _log_row(part: xr.Dataset, case: str) -> CaseJobsRow:
    return CaseJobsRow(
        case=case,
        clusters=_whole(float(part["processors"].notnull().sum())),
        jobs=_whole(float(part["submitted"].sel(job_class=LENGTHS[0]))),
        without_requested_time=_whole(float(part["jobs_without_requested_time"])),
        left_out=counts(part, "left_out"),
        repaired=counts(part, "repaired"),
    )


# --- results --------------------------------------------------------------------------------------


def _scheduler_rows(study: CalendarStudy, part: xr.Dataset) -> list[CalendarRow]:
    """Schedulers that have run in a case under one kind of estimates."""
    return [
        _scheduler_row(part.sel(scheduler=name), name, name == study.reference_label)
        for name in labels(part, "scheduler")
        if not np.isnan(float(part["makespan"].sel(scheduler=name)))
    ]


def _scheduler_row(run: xr.Dataset, name: str, is_reference: bool) -> CalendarRow:
    whole = run.sel(job_class=LENGTHS[0])
    return CalendarRow(
        scheduler=name,
        is_reference=is_reference,
        delays=[_delay(whole.sel(aggregate=aggregate), is_reference) for aggregate in AGGREGATE_NAMES],
        others=[
            as_text(float(whole["wait_time_mean"]), duration),
            as_text(float(run["utilisation_total"]), _per_cent),
            as_text(float(run["makespan"]) / 3600, "{:,.1f} h".format),
            as_text(float(run["transferred"]), _whole),
        ],
    )


def _delay(run: xr.Dataset, is_reference: bool) -> tuple[str, str, str]:
    """Delay; its ratio to the reference; the interval of the ratio."""
    delay, ratio, low, high = (
        as_text(float(run[name]), _three_digits)
        for name in ("delay", "delay_ratio", "delay_ratio_low", "delay_ratio_high")
    )
    if is_reference or not ratio:
        return delay, "", ""
    return delay, f"\N{MULTIPLICATION SIGN} {ratio}", f"{low} to {high}" if low else ""


def _three_digits(value: float) -> str:
    return number(value, zeros=True)


def _compared(part: xr.Dataset, case: str) -> list[ComparedTable]:
    """Tables of the paper beside ours."""
    tables = []
    if bool(part["paper_submitted"].notnull().any()):
        rows = [
            (name, [_pair(part["paper_submitted"], part["submitted"], _whole, job_class=name)])
            for name in LENGTHS
        ]
        tables.append(ComparedTable(f"Jobs by execution time, {case} (Figure 3)", ["jobs"], rows))
    if bool(part["paper_balance"].notnull().any()):
        tables.append(_compared_clusters(part.isel(estimates=0), case))
    return tables


def _compared_clusters(part: xr.Dataset, case: str) -> ComparedTable:
    """Table of the paper with a row a cluster."""
    columns: list[tuple[str, xr.DataArray, xr.DataArray]] = [
        (_CLUSTER_TEXTS[name], part[f"paper_{name}"], part[name])
        for name in ("submitted_jobs", "mean_processors")
    ]
    for role, shown in (("alone", _ALONE), ("together", _TOGETHER)):
        scheduler = str(part[f"paper_{role}"].values)
        if scheduler in labels(part, "scheduler"):
            run = part.sel(scheduler=scheduler)
            columns += [
                (f"{_CLUSTER_TEXTS[ours]}, {scheduler}", run[f"paper_{paper}"], run[ours])
                for ours, paper in shown.items()
            ]
    columns = [column for column in columns if bool(column[1].notnull().any())]
    names = [
        name for name in labels(part, "cluster") if not np.isnan(float(part["processors"].sel(cluster=name)))
    ]
    rows = [
        (name, [_pair(paper, ours, _form_of(text), cluster=name) for text, paper, ours in columns])
        for name in names
    ]
    table = "Figure 7" if len(names) < 10 else "Figure 9"
    return ComparedTable(f"{case}, beside the paper's {table}", [text for text, _, _ in columns], rows)


def _form_of(text: str) -> Form:
    if text.startswith("utilisation"):
        return _per_cent
    return "{:.1f}".format if text.startswith("mean") else _whole


def _pair(paper: xr.DataArray, ours: xr.DataArray, form: Form, **place: str) -> tuple[str, str]:
    return as_text(float(paper.sel(place)), form), as_text(float(ours.sel(place)), form)


def _counts(part: xr.Dataset, case: str) -> TableView:
    """Counts of the calendars of a case, under the first kind of estimates."""
    part = part.isel(estimates=0)
    shown = {name: text for name, text in _COUNTS.items() if bool((part[name].fillna(0) > 0).any())}
    rows = [
        (name, [as_text(float(part[count].sel(scheduler=name)), form) for count, (_, form) in shown.items()])
        for name in labels(part, "scheduler")
        if not np.isnan(float(part["operations"].sel(scheduler=name)))
    ]
    return TableView(f"Counts, {case}", [text for text, _ in shown.values()], rows)


# --- figures --------------------------------------------------------------------------------------


def _figures(study: CalendarStudy, folder: Path) -> list[FigureView]:
    """Figures of a study in the order of the page."""
    whole = figures(folder, study.study_figures)
    return whole + [figure(folder, f"{kind}-{case}", kind, case) for kind, case in study.case_figures]
