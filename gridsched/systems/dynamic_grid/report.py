"""Studies of dynamic grids as the page shows them: questions, each with a table of answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.figures.style import duration, number
from gridsched.report.parts import (
    Form,
    as_text,
    counts,
    figures,
    heading,
    labels,
)
from gridsched.systems.dynamic_grid.figures.numbers import (
    DEFAULT,
    NONE,
    counterpart,
    differing_in,
    group_name,
    groups,
    parameters,
    points,
    relative,
    sweeps_of,
)
from gridsched.systems.dynamic_grid.measures import GRID_USERS
from gridsched.systems.dynamic_grid.study.config import (
    ALL_USERS,
    CLUSTER_USERS,
    DYNAMIC,
    DynamicGridStudy,
)

Cell = tuple[str, str]
"""A value and, in small print, its interval or what else there is to say."""


@dataclass(frozen=True)
class Answer:
    """A question with a table: what was found, line by line, and a sentence that says it."""

    question: str
    caption: str
    header: list[str]
    rows: list[tuple[str, list[Cell]]]
    lead: list[str]


def dynamic_view(study: DynamicGridStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of dynamic grids."""
    dataset = results.read(folder / "study.nc")
    answers = [
        _gains(dataset),
        _presence(dataset),
        _locality(dataset),
        _break_even(dataset),
        _joining(dataset),
        _churn(dataset),
        _others(dataset),
    ]
    return {
        **heading(study, dataset),
        "template": "dynamic_grid.html.j2",
        "answers": [answer for answer in answers if answer.rows],
        "facts": _facts(study, dataset),
        "conventions": _conventions(study),
        "users": [_users_row(dataset.sel(users=name), name) for name in labels(dataset, "users")],
        "default": [(key, text) for key, text in parameters(dataset)[DEFAULT].items()],
        "figures": figures(folder, study.study_figures),
    }


# --- cells ----------------------------------------------------------------------------------------


def _signed(value: float) -> str:
    """A duration with its sign."""
    sign = "\N{MINUS SIGN}" if value < 0 else "+" if value > 0 else ""
    return sign + duration(abs(value))


def _cell(part: xr.Dataset, name: str, form: Form) -> Cell:
    """A value with its interval."""
    mean, low, high = (float(part[f"{name}{end}"]) for end in ("", "_low", "_high"))
    around = "" if np.isnan(low) or low == high else f"{form(low)} to {form(high)}"
    return as_text(mean, form), around


def _ratio_cell(dataset: xr.Dataset, case: str, against: str, group: str) -> Cell:
    """Ratio of mean response times of two cases with the same jobs."""
    table = relative(dataset, {case: against}, [group])
    if table.empty:
        return "", ""
    mean, low, high = table[["mean", "low", "high"]].to_numpy(float)[0].tolist()
    known = not np.isnan(low) and low != high
    return number(mean), f"{number(low)} to {number(high)}" if known else ""


def _case_name(dataset: xr.Dataset, case: str) -> str:
    """Name of a case in a table: graph and local policy of the default, else its label."""
    table = parameters(dataset)
    if case in differing_in(dataset, "graph", "policy"):
        return f"{table[case]['graph']}, {table[case]['policy']}"
    return case


def _main_cases(dataset: xr.Dataset) -> list[str]:
    """The default case under each local policy."""
    return differing_in(dataset, "policy")


# --- questions ------------------------------------------------------------------------------------


def _gains(dataset: xr.Dataset) -> Answer:
    """What users gain against every cluster on its own."""
    cases = _main_cases(dataset)
    table = parameters(dataset)
    header, rows = [], []
    for case in cases:
        policy = table[case]["policy"]
        header += [f"response alone, {policy}", "in the grid", "gain of a job", "alone / grid"]
    for group in labels(dataset, "group"):
        cells: list[Cell] = []
        for case in cases:
            part = dataset.sel(case=case, group=group)
            alone = dataset["alone_response_time_mean"].sel(policy=table[case]["policy"], group=group)
            cells += [
                (as_text(float(alone), duration), ""),
                (as_text(float(part["group_response_time_mean"]), duration), ""),
                _cell(part, "response_time_gain", _signed),
                _cell(part, "response_time_factor", number),
            ]
        if any(text for text, _ in cells):
            rows.append((group_name(group), cells))
    return Answer(
        "What do local users lose, and what do grid users gain?",
        "Mean response times in the default case, against every cluster on its own and the grid's users on "
        "their own cluster",
        header,
        rows,
        [_waits(dataset, case) for case in cases],
    )


def _waits(dataset: xr.Dataset, case: str) -> str:
    """How local jobs wait for grid jobs that make place."""
    part = dataset.sel(case=case)
    policy = parameters(dataset)[case]["policy"]
    jobs = part["jobs_yielded_to"].mean("replicate").sum()
    local = part["jobs"].mean("replicate").sum()
    longest = float(part["yield_wait_max"].max())
    if np.isnan(longest):
        return f"Under {policy} no local job had to wait for grid jobs to make place."
    return (
        f"Under {policy} grid jobs made place for {float(jobs):,.0f} local jobs ({float(jobs / local):.1%} "
        "of all jobs), which "
        f"waited {duration(float(part['yield_wait_all']))} for it on average and {duration(longest)} at "
        "most; the "
        f"model allows {duration(float(part['yield_wait_limit']))}. "
        f"Local schedulers sent {float(part['jobs_sent'].mean('replicate').sum()):,.0f} jobs to the grid."
    )


def _presence(dataset: xr.Dataset) -> Answer:
    """What the grid's own users cost the users of the clusters."""
    rows = []
    for sweep, factor in sweeps_of(dataset).items():
        if factor != "stream":
            continue
        table = points(dataset, sweep)
        for line, own in table.groupby("line", sort=False):
            by_text = dict(zip(own["text"], own["case"], strict=True))
            if not {"yes", "no"} <= set(by_text):
                continue
            cells = [
                _ratio_cell(dataset, by_text["yes"], by_text["no"], group)
                for group in [*labels(dataset, "cluster"), CLUSTER_USERS]
            ]
            rows.append((str(line) or "default", cells))
    return Answer(
        "What do the grid's own users cost the users of the clusters?",
        "Mean response with the grid's users over that without them, 95 % intervals",
        [*labels(dataset, "cluster"), group_name(CLUSTER_USERS)],
        rows,
        [],
    )


def _locality(dataset: xr.Dataset) -> Answer:
    """What each graph is worth."""
    table = parameters(dataset)
    rows = []
    cases = differing_in(dataset, "graph", "policy")
    if len({table[case]["graph"] for case in cases}) < 2:
        cases = []
    for case in cases:
        base = next(c for c in _main_cases(dataset) if table[c]["policy"] == table[case]["policy"])
        part = dataset.sel(case=case)
        cells: list[Cell] = []
        for group in [*groups(dataset), ALL_USERS]:
            mean = as_text(float(part["group_response_time_mean"].sel(group=group)), duration)
            ratio, around = _ratio_cell(dataset, case, base, group)
            cells.append((mean, f"{ratio} ({around})" if around else ""))
        multi = float(part["multi_site_jobs"].mean("replicate").sum())
        cells += [
            (f"{multi:,.0f}", ""),
            (f"{float(part['grid_migrations']):,.0f}", ""),
            (f"{float(part['grid_suspensions']):,.0f}", ""),
            (as_text(float(part["utilisation_all"]), "{:.1%}".format), ""),
        ]
        rows.append((_case_name(dataset, case), cells))
    names = [group_name(group) for group in [*groups(dataset), ALL_USERS]]
    return Answer(
        "What is each graph worth?",
        "Mean response times; below, relative to the default graph under the same local policy, with 95 % "
        "intervals",
        [*names, "jobs on several clusters", "migrations", "suspensions", "utilisation"],
        rows,
        [],
    )


def _break_even(dataset: xr.Dataset) -> Answer:
    """When a grid with all links, but slower ones, is no better than one with few that are fast."""
    table = parameters(dataset)
    own = table[DEFAULT]["graph"]
    rows: list[tuple[str, list[Cell]]] = []
    lead = []
    for policy in dict.fromkeys(values["policy"] for values in table.values()):
        found = [
            case
            for case in differing_in(dataset, "graph", "policy", "overhead")
            if table[case]["graph"] == "complete" and table[case]["policy"] == policy
        ]
        found.sort(key=lambda case: float(table[case]["overhead"]))
        base = next((c for c in _main_cases(dataset) if table[c]["policy"] == policy), DEFAULT)
        if len(found) < 2 or own == "complete":
            continue
        ratios: list[tuple[float, ...]] = []
        for case in found:
            cells = [_ratio_cell(dataset, case, base, group) for group in [*groups(dataset), ALL_USERS]]
            rows.append((f"complete, overhead {table[case]['overhead']}, {policy}", cells))
            (ratio,) = relative(dataset, {case: base}, [ALL_USERS])[["mean", "low", "high"]].to_numpy(float)
            ratios.append((float(table[case]["overhead"]), *ratio.tolist()))
        lead.append(_crossing(ratios, policy, own, float(table[DEFAULT]["overhead"])))
    return Answer(
        "When does locality cost more than it brings?",
        f"Mean response of a complete graph at some overhead over that of the default ({own}, overhead "
        f"{table[DEFAULT]['overhead']}), 95 % intervals",
        [group_name(group) for group in [*groups(dataset), ALL_USERS]],
        rows,
        lead,
    )


def _crossing(ratios: list[tuple[float, ...]], policy: str, graph: str, overhead: float) -> str:
    """From which overhead on a complete graph is worse than the default graph."""
    at = float(np.interp(1.0, [r[1] for r in ratios], [r[0] for r in ratios], left=np.nan, right=np.nan))
    worse = [f"surely worse from {r[0]:g} on" for r in ratios if r[2] > 1][:1]
    better = [f"surely better up to {r[0]:g}" for r in ratios if r[3] < 1][-1:]
    start = f"Under {policy}, against the {graph} with links of overhead {overhead:g}, the complete graph"
    sure = ", ".join(better + worse) or "surely better or worse at none of the overheads"
    if np.isnan(at):
        side = "shorter" if ratios[-1][1] < 1 else "longer"
        return f"{start} has {side} responses at all overheads that were run ({sure})."
    return (
        f"{start} has equal responses where its overhead is about {at:.2f} ({sure}). Up to there locality "
        "costs more than it brings; beyond, it pays to keep jobs to fast links."
    )


def _joining(dataset: xr.Dataset) -> Answer:
    """What each cluster gains or loses by joining."""
    table = parameters(dataset)
    left_out = [case for case in labels(dataset, "case") if table[case]["without"] != NONE]
    policies = list(dict.fromkeys(table[case]["policy"] for case in left_out))
    rows = []
    for cluster in labels(dataset, "cluster"):
        cells: list[Cell] = []
        for policy in policies:
            case = [c for c in left_out if table[c]["without"] == cluster and table[c]["policy"] == policy]
            for party in ("own", "others"):
                part = dataset.sel(case=case[0], party=party) if case else None
                cells.append(("", "") if part is None else _cell(part, "response_time_joining_gain", _signed))
        default = dataset.sel(case=DEFAULT, cluster=cluster).mean("replicate")
        capacity = float(dataset["machine_processors"].sel(users=cluster)) * float(default["makespan"])
        for name in ("work_given", "work_received"):
            cells.append((f"{float(default[name]) / capacity:.1%}", ""))
        if any(text for text, _ in cells[:-2]):
            rows.append((cluster, cells))
    header = [f"{who}, {policy}" for policy in policies for who in ("its own users", "all others")]
    return Answer(
        "What does each cluster gain or lose by joining?",
        "Mean gain of a job in response time: the grid without the cluster minus the grid with it, 95 % "
        "intervals; work given and "
        "received in the default case, as shares of the cluster's capacity",
        [*header, "work given", "work received"],
        rows,
        [],
    )


def _churn(dataset: xr.Dataset) -> Answer:
    """How the grid degrades under churn."""
    rows = []
    for sweep, factor in sweeps_of(dataset).items():
        if factor not in ("mean_stay", "lease"):
            continue
        for record in points(dataset, sweep).to_dict("records"):
            part = dataset.sel(case=record["case"])
            cells = [_ratio_cell(dataset, record["case"], DEFAULT, group) for group in groups(dataset)]
            # The longest of all replicates
            took = float(part["leave_time_max"].max())
            cells += [
                (f"{float(part['leaves'].mean('replicate').sum()):,.0f}", ""),
                (as_text(took, duration), ""),
                (f"{float(part['grid_migrations']):,.0f}", ""),
                (f"{float(part['grid_suspensions']):,.0f}", ""),
                (f"{float(part['lost_work'].mean('replicate').sum()) / 3600:,.0f} h", ""),
                (f"{float(part['stranded_or_rejected']):,.0f}", ""),
            ]
            value = record["text"] if np.isnan(record["value"]) else duration(record["value"])
            line = f", {record['line']}" if record["line"] else ""
            rows.append((f"{factor.replace('_', ' ')} {value}{line}", cells))
    return Answer(
        "How does the grid degrade under churn?",
        "Mean response relative to the default case, which nobody leaves, with 95 % intervals; and what "
        "leaving takes",
        [
            *(group_name(group) for group in groups(dataset)),
            "leaves",
            "longest leave",
            "migrations",
            "suspensions",
            "processor time lost",
            "jobs not ended",
        ],
        rows,
        [],
    )


def _others(dataset: xr.Dataset) -> Answer:
    """Against no migration, no checkpoints and a superscheduler."""
    table = parameters(dataset)
    rows = []
    keys = ("policy", "graph", "scheduler", "migration", "checkpoint")
    for case in differing_in(dataset, *keys):
        row = table[case]
        changed = row["scheduler"] != DYNAMIC or "no" in (row["migration"], row["checkpoint"])
        if not changed:
            continue
        base = counterpart(dataset, case, ("policy", "graph"))
        cells = [_ratio_cell(dataset, case, base, group) for group in [*groups(dataset), ALL_USERS]]
        part = dataset.sel(case=case)
        lost = float(part["lost_work"].mean("replicate").sum()) / 3600
        cells += [
            (f"{float(part['grid_suspensions']):,.0f}", ""),
            (f"{lost:,.0f} h", ""),
            (as_text(float(part["utilisation_all"]), "{:.1%}".format), ""),
        ]
        rows.append((_other_name(row), cells))
    names = [group_name(group) for group in [*groups(dataset), ALL_USERS]]
    return Answer(
        "What are migration and checkpoints worth, and how does a superscheduler do?",
        "Mean response over that of the model in full on the same graph under the same local policy, 95 % "
        "intervals",
        [*names, "suspensions", "processor time lost", "utilisation"],
        rows,
        [],
    )


def _other_name(row: Any) -> str:
    if row["scheduler"] != DYNAMIC:
        what = f"superscheduler {row['scheduler']}"
    elif row["migration"] == "no" and row["checkpoint"] == "no":
        what = "kill and restart"
    else:
        what = "no migration" if row["migration"] == "no" else "no checkpoints"
    return f"{what}: {row['graph']}, {row['policy']}"


# --- what was run ---------------------------------------------------------------------------------


def _facts(study: DynamicGridStudy, dataset: xr.Dataset) -> list[tuple[str, str]]:
    """What the study consists of, in numbers."""
    submitted = dataset["jobs_submitted"]
    stream = float(submitted.sel(users=GRID_USERS))
    clusters = dataset["machine_processors"].sel(users=labels(dataset, "cluster"))
    runs = int(dataset["makespan"].notnull().sum())
    known = int(np.isfinite(dataset["jobs"].isel(users=0)).sum())
    return [
        ("clusters", f"{dataset.sizes['cluster']}"),
        ("processors of the clusters", f"{float(clusters.sum()):,.0f}"),
        ("jobs", f"{float(submitted.sum()):,.0f}"),
        (
            f"of which submitted to the grid ({study.grid.stream.name if study.grid.stream else 'none'})",
            f"{stream:,.0f}",
        ),
        ("cases", f"{runs:,}"),
        ("runs", f"{known:,}"),
        ("weeks of submissions", f"{dataset.sizes['week']}"),
        ("jobs that did not end, in the worst run", f"{float(dataset['stranded_or_rejected'].max()):,.0f}"),
        ("cases whose search for cliques was cut off", f"{int((dataset['cliques_cut_off'] > 0).sum()):,}"),
    ]


def _conventions(study: DynamicGridStudy) -> list[str]:
    """What the reader has to know about how the study was simulated and measured."""
    together = {
        "start": "the first job of every log is submitted at the same time",
        "clock": "submit times follow the clocks of the logs",
        "none": "submit times are those of the logs",
    }[study.grid.align]
    return [
        f"All jobs are there in every run, except where the grid's users are left out; {together}.",
        "On its own a cluster serves its own users only; the grid's users then have the cluster that their "
        "log comes from. In "
        "the grid that cluster is not there.",
        "Response time is from submission to the end; grid jobs may start at once and be preempted, so "
        "that waits until the "
        "first start say little about them. A job that its local scheduler sent to the grid counts for the "
        "users of its cluster.",
        "Means are over the same jobs on both sides. Their 95 % intervals come from leaving out one week "
        "of submissions "
        "at a time, paired; those of ratios are symmetric in the logarithm. Weeks are not independent "
        "where queues last longer, "
        "as under first come, first served on a cluster alone: there the intervals are too narrow.",
        "Cases with chance in them (random graphs, shares, churn, homes under the superscheduler) are "
        "means of "
        f"{study.replicates} draw{'s' if study.replicates > 1 else ''}, the same for all cases.",
        "The superscheduler moves jobs only between neighbours and only before they "
        "start; jobs of the grid's users are "
        "submitted to clusters drawn at random, in proportion to processors.",
        "A cluster that is left out serves its own users alone, and is nobody's neighbour.",
        "Every schedule was verified: local jobs are never preempted or moved, grid jobs run on "
        "neighbouring clusters only, "
        "and only on clusters that are in the grid, all work is done, and jobs are stopped only after "
        "whole supersteps.",
        f"The runtime estimates are the {study.estimates[0]} run times"
        + (", or actual ones where a log has none." if study.estimates[0] == "requested" else "."),
    ]


@dataclass(frozen=True)
class UsersRow:
    """Users of one cluster, or of the grid, and what became of their jobs."""

    users: str
    log: str
    processors: str
    jobs: str
    load: str
    without_requested_time: str
    left_out: list[tuple[str, str]]
    repaired: list[tuple[str, str]]
    checksum: str


def _users_row(part: xr.Dataset, name: str) -> UsersRow:
    return UsersRow(
        users=group_name(name),
        log=str(part["workload_name"].values),
        processors=f"{float(part['machine_processors']):,.0f}",
        jobs=f"{float(part['jobs_submitted']):,.0f}",
        load=f"{float(part['offered_load']):.2f}",
        without_requested_time=f"{float(part['jobs_without_requested_time']):,.0f}",
        left_out=counts(part, "left_out"),
        repaired=counts(part, "repaired"),
        checksum=str(part["workload_checksum"].values),
    )
