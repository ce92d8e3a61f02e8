"""Studies of the arena as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments.arena.config import ArenaScenario, ArenaStudy
from gridsched.experiments.arena.figures import ranked
from gridsched.experiments.arena.grids import IDEAL_MACHINE
from gridsched.experiments.parts import label_of
from gridsched.experiments.schedulers import scheduler_made
from gridsched.figures.style import duration, number
from gridsched.report.parts import Form, as_text, counts, figures, heading, known, labels, mark, variations


@dataclass(frozen=True)
class ArenaRow:
    """One scheduler on one scenario."""

    scheduler: str
    system: str
    unfit: str
    response: str
    ratio: str
    interval: str
    wait: str
    slowdown: str
    beats: str
    beaten_by: str
    moved: str
    messages: str
    not_run: str
    killed: str
    extra_work: str
    gave_up: str
    productivity: str
    best: bool
    reference: bool


@dataclass(frozen=True)
class SchedulerVerdict:
    """Where a scheduler is among the best, and what it needs."""

    scheduler: str
    system: str
    best_on: str
    ratio: str
    scenarios: str
    moved: str
    messages: str
    information: str


@dataclass(frozen=True)
class Condition:
    """Who is best on a scenario under a load and with estimates of some quality."""

    scenario: str
    load: str
    estimates: str
    best: str
    ratio: str
    equals: str
    longest: str


def arena_view(study: ArenaStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of the arena."""
    dataset = results.read(folder / "study.nc")
    usual = dataset.sel(load=1.0, estimate_error=1.0)
    order = ranked(dataset)
    knows = {
        label: scheduler_made(written).information
        for label, written in zip(study.labels, study.schedulers, strict=True)
    }
    return {
        **heading(study, dataset),
        "template": "arena.html.j2",
        "reference": study.reference_label,
        "verdicts": [_verdict(usual.sel(scheduler=label), knows[label]) for label in order],
        "tables": [
            {
                "scenario": scenario,
                "facts": _scenario_facts(usual.sel(scenario=scenario)),
                "rows": _rows(usual.sel(scenario=scenario), study.reference_label, study.scenario(scenario)),
            }
            for scenario in labels(dataset, "scenario")
        ],
        "conditions": _conditions(dataset),
        "workloads": _workloads(dataset),
        "conventions": _conventions(study),
        "fates": study.tells_fates,
        "reacting": study.has_feedback,
        "columns": 10 + 3 * study.tells_fates + study.has_feedback,
        "fate_table": None,  # the tables above say it
        "figures": figures(folder, study.study_figures),
        "comparisons": f"{study.name}/tables/comparisons.csv",
    }


def _conventions(study: ArenaStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    policy = label_of(study.policies[0])
    made = [scheduler_made(written) for written in study.schedulers]
    ideal = ["Ideal machines do not count as better: they know no borders between clusters."]
    deadlines = [
        "Some schedulers look at deadlines, which are drawn; they are judged here by response times, "
        "which are not their own goal."
    ]
    return [
        "All schedulers schedule the same jobs with the same estimates: users' requested times, unless "
        "stated otherwise.",
        "Means are over the jobs that all schedulers of a scenario brought to their end.",
        "A difference is sure if its probability is below 5 % after Holm's correction for all pairs of "
        "schedulers of a scenario. Intervals are simultaneous for all schedulers (Bonferroni). Both come "
        "from a jackknife over blocks of jobs: replicates, or all jobs submitted within some days, which are "
        "nearly independent only if queues empty in between.",
        *variations(study.scenarios),
        *(ideal if not all(scheduler.names_clusters for scheduler in made) else ()),
        *(deadlines if any("deadlines" not in scheduler.cannot for scheduler in made) else ()),
        "Response counts from submission to the end of the last part of a job, with all that multi-site "
        "overhead, migration and preemption add.",
        f"Local policy where a system leaves it open: {policy}. Jobs are never killed for their length.",
        *(_FATES if study.tells_fates else ()),
        "A message is a question with its answer, or a piece of information sent. They are counted as each "
        "system needs them; their sizes differ.",
    ]


_FATES = (
    "A job on a node that fails is killed and waits again; its response counts until it ends at last. Jobs "
    "whose users give up, or that never become eligible, are not compared. Times count from when a job is "
    "eligible.",
)


def _scenario_facts(part: xr.Dataset) -> str:
    blocks = int((part["block_jobs"] > 0).sum())
    sure = bool(part["response_time_ratio_low"].notnull().any())
    return (
        f"{int(part['clusters'])} clusters with {int(part['processors']):,} processors, "
        f"{int(part['jobs']):,} jobs, of which {int(part['jobs_common']):,} are compared, in {blocks} "
        f"block{'' if blocks == 1 else 's'}{'' if sure else ', too few to be sure of anything'}; "
        f"offered load {float(part['offered_load']):.2f}"
    )


def _rows(part: xr.Dataset, reference: str, scenario: ArenaScenario) -> list[ArenaRow]:
    means = part["response_time_mean"].values
    order = np.argsort(np.where(np.isnan(means), np.inf, means), kind="stable")
    return [_row(part.isel(scheduler=int(i)), reference, scenario) for i in order]


def _row(run: xr.Dataset, reference: str, scenario: ArenaScenario) -> ArenaRow:
    def marked(name: str, form: Form) -> str:
        # replicates are the blocks of scenarios that have some
        with np.errstate(invalid="ignore"):
            means = run[f"{name}_by_block"].values / run["block_jobs"].values
        return as_text(run[f"{name}_mean"], form) + mark(means, scenario)

    label = str(run["scheduler"].values)
    ratio, low, high = (float(run[f"response_time_ratio{suffix}"]) for suffix in ("", "_low", "_high"))
    is_reference = label == reference
    return ArenaRow(
        scheduler=label,
        system=str(run["system"].values),
        unfit=str(run["unfit"].values),
        response=marked("response_time", duration),
        ratio="" if np.isnan(ratio) or is_reference else number(ratio),
        interval="" if np.isnan(low) or is_reference else f"{number(low)} to {number(high)}",
        wait=marked("wait_time", duration),
        slowdown=marked("bounded_slowdown", number),
        beats=known(run["response_time_beats"], "{:.0f}"),
        beaten_by=known(run["response_time_beaten_by"], "{:.0f}"),
        moved=known(run["moved"], "{:.0%}"),
        messages=as_text(run["messages_per_job"], number),
        not_run=known(run["jobs_not_run"], "{:,.0f}"),
        killed=_fate(run, "executions_killed", "{:,.0f}"),
        extra_work=_fate(run, "extra_work_share", "{:.1%}"),
        gave_up=_fate(run, "jobs_gave_up", "{:,.0f}"),
        productivity=_fate(run, "productivity", "{:,.1f}"),
        best=bool(run["response_time_beaten_by"] == 0),
        reference=is_reference,
    )


def _fate(run: xr.Dataset, variable: str, form: str) -> str:
    """What became of jobs, where the study knows it."""
    return known(run[variable], form) if variable in run else ""


def _verdict(part: xr.Dataset, knows: str) -> SchedulerVerdict:
    """What holds over all scenarios."""
    ratio = part["response_time_ratio"].values
    fits = ~np.isnan(ratio)
    best = part["scenario"].values[part["response_time_beaten_by"].values == 0]
    system = str(part["system"].values)
    return SchedulerVerdict(
        scheduler=str(part["scheduler"].values),
        system=system,
        best_on=", ".join(map(str, best)) or "nowhere",
        ratio=number(float(np.exp(np.log(ratio[fits]).mean()))) if fits.any() else "",
        scenarios=f"{int(fits.sum())} of {len(fits)}",
        moved=_range(part["moved"].values, "{:.0%}".format),
        messages=_range(part["messages_per_job"].values, number),
        information=knows,
    )


def _conditions(dataset: xr.Dataset) -> list[Condition]:
    """The best scheduler under every load and with all estimates; nothing where neither was varied."""
    schedulers = dataset.isel(scheduler=dataset["system"].values != IDEAL_MACHINE)
    places = list(
        product(labels(dataset, "scenario"), dataset["load"].values, dataset["estimate_error"].values)
    )
    if len(places) == dataset.sizes["scenario"]:
        return []
    found = []
    for scenario, load, error in places:
        part = schedulers.sel(scenario=scenario, load=load, estimate_error=error)
        part = part.isel(scheduler=part["response_time_mean"].notnull().values).sortby("response_time_mean")
        if not part.sizes["scheduler"]:
            continue
        names = labels(part, "scheduler")
        # Holm's correction can leave even the longest mean unsure
        unsure = part["response_time_beaten_by"].values == 0
        between = list(zip(names, unsure, strict=True))[1:-1]
        found.append(
            Condition(
                scenario=scenario,
                load=f"{load:g}",
                estimates=_estimates(float(error)),
                best=names[0],
                ratio=number(float(part["response_time_ratio"][0])),
                equals="; ".join(name for name, is_equal in between if is_equal),
                longest=names[-1] + (", not surely worse" if unsure[-1] and len(names) > 1 else ""),
            )
        )
    return found


def _estimates(error: float) -> str:
    return {0.0: "perfect", 1.0: "users'"}.get(error, f"{error:g} of the users' error")


def _range(values: Any, form: Any) -> str:
    """Smallest to largest known value."""
    found = values[~np.isnan(values)]
    if not len(found):
        return ""
    low, high = form(float(found.min())), form(float(found.max()))
    return low if low == high else f"{low} to {high}"


def _workloads(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Workloads of all scenarios: what was left out or repaired, and their checksums."""
    rows = []
    for scenario in labels(dataset, "scenario"):
        for home in labels(dataset, "home"):
            part = dataset.sel(scenario=scenario, home=home)
            checksum = str(part["workload_checksum"].values)
            if checksum:
                rows.append(
                    {
                        "scenario": scenario,
                        "cluster": home,
                        "left_out": counts(part, "left_out"),
                        "repaired": counts(part, "repaired"),
                        "checksum": checksum[:12],
                        "full_checksum": checksum,
                    }
                )
    return rows
