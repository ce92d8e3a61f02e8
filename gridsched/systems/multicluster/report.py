"""Studies of a multicluster as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.figures.style import duration, number
from gridsched.replication import Interval, mean_interval
from gridsched.report.parts import (
    as_text,
    counts,
    figures,
    heading,
    interval_text,
    labels,
)
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.study.config import (
    EXAMPLE_FIGURES,
    MulticlusterStudy,
    PointConfig,
)

COMPARED = ("mcp", "pb")
"""Measures with an advantage."""

SETTLED = 1.5
"""A queue that is so many times longer in the second half of the submissions is said to grow."""


@dataclass(frozen=True)
class PointSchemeRow:
    """One scheme at a point."""

    scheme: str
    compared: list[tuple[str, str]]
    late: str
    over_deadline: str
    queue: str
    queue_interval: str
    growth: str
    grows: str
    reference: bool


@dataclass(frozen=True)
class PointRow:
    """What a point is."""

    point: str
    clusters: str
    weights: str
    jobs: str
    deadlines: str
    level: str
    load: str
    left_out: list[tuple[str, str]]
    repaired: list[tuple[str, str]]
    checksum: str
    full_checksum: str


def multicluster_view(study: MulticlusterStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of a multicluster."""
    dataset = results.read(folder / "study.nc")
    return {
        **heading(study, dataset),
        "template": "multicluster.html.j2",
        "reference": study.reference_label,
        "conventions": _conventions(study),
        "tables": [
            {"point": point, "rows": _scheme_rows(dataset.sel(point=point), study)}
            for point in labels(dataset, "point")
        ],
        "classes": _class_rows(dataset),
        "points": [_point_row(dataset.sel(point=point.name), point, study) for point in study.scenarios],
        "example": _example(folder) if study.worked_example else None,
        "figures": figures(folder, study.study_figures),
    }


# --- results --------------------------------------------------------------------------------------


def _scheme_rows(part: xr.Dataset, study: MulticlusterStudy) -> list[PointSchemeRow]:
    return [
        _scheme_row(part.sel(scheme=scheme), scheme, study.reference_label)
        for scheme in study.labels_in(study.scenario(str(part["point"].values)))
    ]


def _scheme_row(run: xr.Dataset, scheme: str, reference: str) -> PointSchemeRow:
    growth = mean_interval(run["queue_growth"].values)
    return PointSchemeRow(
        scheme=scheme,
        compared=[
            part for measure in COMPARED for part in (_performance(run, measure), _advantage(run, measure))
        ],
        late=as_text(_mean(run, "late"), _percent),
        over_deadline=as_text(_mean(run, "over_deadline_mean"), duration),
        queue=as_text(_mean(run, "queue_mean"), number),
        queue_interval=interval_text(mean_interval(run["queue_mean"].values), number),
        growth=as_text(float(growth.mean), number),
        grows=_grows(growth),
        reference=scheme == reference,
    )


def _grows(growth: Interval) -> str:
    """Whether a queue grows as long as jobs arrive, in words; nothing if it does not."""
    if not growth.mean > SETTLED:
        return ""
    return "grows" if growth.low > SETTLED else "may grow"


def _mean(run: xr.Dataset, name: str) -> float:
    return float(mean_interval(run[name].values).mean)


def _performance(run: xr.Dataset, measure: str) -> tuple[str, str]:
    """MCP or PB with its interval."""
    interval = mean_interval(run[f"{measure}_mean"].values)
    return as_text(float(interval.mean), duration), interval_text(interval, duration)


def _advantage(run: xr.Dataset, measure: str) -> tuple[str, str]:
    """Advantage of the reference over a scheme with its interval."""
    mean, low, high = (float(run[f"{measure}_advantage{bound}"]) for bound in ("", "_low", "_high"))
    return as_text(mean, _percent), "" if np.isnan(low) else f"{_percent(low)} to {_percent(high)}"


def _class_rows(dataset: xr.Dataset) -> list[tuple[str, str, str, str, str]]:
    """Point, scheme, class, share of its jobs that are late, mean time over deadlines."""
    if "late_class" not in dataset:
        return []
    return [
        (
            point,
            scheme,
            name,
            _percent(_mean(part, "late_class")),
            duration(_mean(part, "over_deadline_mean_class")),
        )
        for point in labels(dataset, "point")
        for name in labels(dataset, "class_name")
        for scheme in labels(dataset, "scheme")
        if (part := dataset.sel(point=point, scheme=scheme, class_name=name))["late_class"].notnull().any()
    ]


# --- what was run ---------------------------------------------------------------------------------


def _conventions(study: MulticlusterStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    endings = {
        "all": "A round hands collected jobs over once no cluster has jobs that wait",
        "any": "A round hands collected jobs over once some cluster has no jobs that wait",
    }
    reference = study.reference_label
    used = list(dict.fromkeys(study.made(point, reference).ends for point in study.scenarios))
    units = dict.fromkeys(point.jobs.unit for point in study.scenarios if point.stream is None)
    titan = study.made(study.scenarios[0], reference).titan
    stop = (
        "always makes them all"
        if titan.threshold is None
        else f"stops once {titan.window} of them improve the best schedule by less than {titan.threshold:.1%}"
    )
    return [
        *(f"{endings[each]}." for each in used),
        "Jobs that have not started at a round are planned anew together with the new ones; jobs that "
        "run never move.",
        "MCP and PB are means over rounds of what the clusters plan then, over the jobs that have not "
        "started; a cluster without such jobs has a comprehensive performance of 0.",
        f"TITAN has {titan.population} schedules and at most {titan.generations} generations, and {stop}, "
        "unless a scheme says otherwise.",
        *_levels(study),
        f"Intervals are 95 % intervals over {study.replicates} replicates; advantages are paired, replicate "
        "by replicate."
        if study.replicates > 1
        else "There is one replicate, so there are no intervals.",
        "A queue is said to grow if it is more than "
        f"{SETTLED:g} times as long in the second half of the submissions as in the first: such means "
        "depend on the number of jobs.",
        *([f"A unit of time of the paper is {', '.join(f'{unit:,}' for unit in units)} s."] if units else []),
    ]


_WHOSE = {"muscle": "MUSCLE", "dll": "DLL", "wrand": "WRAND", "each": "each scheme"}

_QUEUES = {
    "collected": "collects as many jobs on average over time",
    "handed over": "hands over as many jobs in a round on average",
    "waiting": "lets as many jobs wait on average over time, collected or at a cluster",
}


def _levels(study: MulticlusterStudy) -> list[str]:
    """How rates of arrivals were set, if any were: a sentence for each kind of queue."""
    jobs = [point.jobs for point in study.scenarios if point.jobs.level is not None]
    lines = []
    if any(each.batch is not None for each in jobs):
        lines.append(
            "In a batch as many jobs as the workload level says are submitted together, the next ones when "
            "all of these have ended, so that every round begins on idle clusters."
        )
    for counted in dict.fromkeys(each.level_counts for each in jobs if each.batch is None):
        whose = dict.fromkeys(_WHOSE[each.level_of] for each in jobs if each.level_counts == counted)
        rate = "all schemes replay the same jobs, and the queue of each is what it gets"
        if _WHOSE["each"] in whose:
            rate = (
                "the jobs are the same for all schemes, at a rate for each; facts are those of the reference"
            )
        lines.append(
            "At a workload level the rate of arrivals is set once, with the default weights and deadlines, "
            f"so that {' or '.join(whose)} {_QUEUES[counted]}; {rate}."
        )
    return lines


def _point_row(part: xr.Dataset, point: PointConfig, study: MulticlusterStudy) -> PointRow:
    wanted = list(dict.fromkeys(_weights(weights) for weights in study.weights(point)))
    checksums = [str(each) for each in part["workload_checksum"].values]
    return PointRow(
        point=point.name,
        clusters=", ".join(
            f"{member.processors}"
            + (f" \N{MULTIPLICATION SIGN} {member.speed:g}" if member.speed != 1 else "")
            for member in point.platform
        ),
        weights="; ".join(wanted),
        jobs=_jobs(point, float(part["jobs"].max())),
        deadlines="; ".join(
            f"{each.name} {each.low:g} to {each.high:g}"
            if len(point.classes) > 1
            else f"{each.low:g} to {each.high:g}"
            for each in point.classes
        ),
        level=as_text(float(part["level"]), number),
        load=as_text(_mean(part, "offered_load"), "{:.3f}".format),
        left_out=counts(part, "left_out"),
        repaired=counts(part, "repaired"),
        checksum=checksums[0][:12],
        full_checksum=" ".join(dict.fromkeys(checksums)),
    )


def _weights(weights: Any) -> str:
    return f"{weights.over_deadline:g}, {weights.makespan:g}, {weights.idle:g}"


def _jobs(point: PointConfig, count: float) -> str:
    """What is submitted, in a few words."""
    jobs = point.jobs
    if point.stream is not None:
        text = f"{count:,.0f} of {point.stream.name}, {jobs.speed_up:g} times as fast"
    else:
        text = (
            f"{count:,.0f}, sizes {jobs.sizes} {jobs.smallest} to {jobs.largest}, run times "
            f"{jobs.run_time.low:g} to {jobs.run_time.high:g} with "
            f"\N{GREEK SMALL LETTER ALPHA} {jobs.run_time.shape:g}"
        )
    if jobs.prediction_error:
        text += f", predicted with an error of {jobs.prediction_error:g}"
    if jobs.at_clusters:
        delay = int(point.parameters.get("announcement_delay", Multicluster.announcement_delay))
        text += f", {jobs.at_clusters:.0%} at clusters and known {duration(delay)} later"
    if point.changes:
        changes = ", ".join(
            f"{cluster} {processors} from {duration(time)}" for time, cluster, processors in point.changes
        )
        text += f"; processors change: {changes}"
    return text


# --- the worked example ---------------------------------------------------------------------------


def _example(folder: Path) -> dict[str, Any]:
    """Tables 1 and 2 and the schedules of the worked example."""
    example = results.read(folder / "example.nc")
    names = [f"J{job}" for job in example["job_number"].values]
    sizes = zip(labels(example, "cluster"), example["cluster_processors"].values, strict=True)
    rows = {"size": "processors", "execution time": "run_time", "slack": "slack", "start": "seed_start_time"}
    clusters = labels(example, "cluster")
    return {
        "clusters": ", ".join(f"{name} of {int(size)} processors" for name, size in sizes),
        "jobs": names,
        "rows": [
            *((text, [int(value) for value in example[name].values]) for text, name in rows.items()),
            ("cluster", [clusters[int(index)] for index in example["cluster_index"].values]),
        ],
        "compositions": [
            (int(row), str(text).split("; "))
            for row, text in zip(example["row"].values, example["compositions"].values, strict=True)
        ],
        "figures": figures(folder, EXAMPLE_FIGURES),
    }


# --- texts ----------------------------------------------------------------------------------------


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %".replace("-", "\N{MINUS SIGN}")
