"""The last stage of a study of dynamic grids: all cases against every cluster on its own, in one dataset.

Intervals are over weeks of submission and paired: a week in which both sides have the same jobs is what a
replicate is elsewhere. Sums of cases with chance are means over their replicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import BOUNDS, attrs_of, collected, interval_variables
from gridsched.experiments.machines import FATES
from gridsched.experiments.prepare import sources
from gridsched.metrics import jobs as metrics
from gridsched.replication import Interval, ratio_interval, times_interval
from gridsched.systems.dynamic_grid.measures import GRID_USERS, TIMES
from gridsched.systems.dynamic_grid.study.config import (
    ALL_USERS,
    CASE_KEYS,
    CLUSTER_USERS,
    DynamicGridStudy,
    shown_value,
)
from gridsched.systems.dynamic_grid.study.stages import RUN_VARIABLES, WEEKLY, DynamicPlatform
from gridsched.workloads import Workload

Floats = NDArray[np.float64]

WORST = ("yield_wait_share", "leave_time_share", "stranded_or_rejected", "cliques_cut_off")
"""Measures of which the largest of all replicates is kept, not the mean."""


def aggregate_dynamic_study(
    study: DynamicGridStudy,
    seed: int,
    runs: Sequence[str | Path],
    alone: Mapping[str, str | Path],
    workloads: Mapping[str, str | Path],
    departure: str | Path | None,
    target: str | Path,
) -> None:
    """Put all runs into the dataset of the study, beside every cluster on its own.

    Parameters
    ----------
    study : DynamicGridStudy
        The study.
    seed : int
        Seed of the whole configuration.
    runs : sequence of paths
        Results of `simulate_run`.
    alone : mapping of policy to path
        Results of `simulate_alone`.
    workloads : mapping of name to path
        Results of `prepare_workload`.
    departure : path, optional
        Result of `simulate_departure`.
    target : path
        The dataset.
    """
    made = [results.read(path) for path in runs]
    platform = DynamicPlatform.of(study, workloads, seed)
    whole = xr.merge(
        [
            *_runs(study, made),
            _alone(alone, made[0]["group"].values.tolist()),
            _sources(study, platform),
            _parameters(study),
            *([results.read(departure).drop_attrs(deep=False)] if departure is not None else []),
        ],
        join="outer",
        combine_attrs="drop_conflicts",
    )
    # joining sorts labels; the study has an order of its own
    whole = whole.sel(case=list(study.cases), cluster=study.cluster_names)
    whole = whole.merge(_gains(whole)).merge(_sweeps(study, whole), combine_attrs="override")
    whole = whole.merge(_joining(study, whole))
    whole.attrs = study.attributes(
        seed=seed,
        stream=study.grid.stream.name if study.grid.stream is not None else "",
        replicates=study.replicates,
        policy=next(iter(study.cases.values())).local,
        **_departure_attributes(study),
    )
    files.write(whole, target)


def _departure_attributes(study: DynamicGridStudy) -> dict[str, Any]:
    if study.departure is None:
        return {}
    return {f"departure_{key}": value for key, value in study.departure.model_dump().items()}


# --- runs -----------------------------------------------------------------------------------------


def _runs(study: DynamicGridStudy, runs: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Measures by case, and by replicate where they are no single numbers; weekly sums by case."""
    whole = collected(runs, {"case": list(study.cases), "replicate": list(range(study.replicates))})
    variables: dict[str, xr.Variable] = {}
    for name, (dims, long_name, units) in RUN_VARIABLES.items():
        values = whole[name].values
        if dims:
            variables[name] = whole[name].variable
        else:
            condensed = _largest(values) if name in WORST else _mean(values)
            variables[name] = xr.Variable(("case",), condensed, attrs_of(long_name, units))
    for name, long_name in FATES.items():
        if name in whole:
            variables[name] = xr.Variable(("case",), _mean(whole[name].values), attrs_of(long_name, "1"))
    replicates = Counter(run.case for run in study.runs)
    made = [replicates[label] for label in study.cases]
    weekly = {
        name: xr.Variable(
            ("case", "group", "week"),
            np.stack(
                [
                    of_case[:count].mean(axis=0)
                    for of_case, count in zip(whole[name].values, made, strict=True)
                ]
            ),
            attrs_of(*text),
        )
        for name, text in WEEKLY.items()
    }
    labels = {"case": whole["case"].values, "group": whole["group"].values}
    own = {name: whole[name].values for name in ("users", "cluster", "neighbour")}
    return [
        xr.Dataset(variables, {"case": labels["case"], **own}),
        xr.Dataset(weekly, {**labels, "week": np.arange(whole.sizes["week"])}),
    ]


def _mean(values: Floats) -> Floats:
    """Mean of what is known on the last axis."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=-1)
    mean: Floats = np.where(known.any(axis=-1), total / np.maximum(known.sum(axis=-1), 1), np.nan)
    return mean


def _largest(values: Floats) -> Floats:
    """Largest of what is known on the last axis."""
    largest = np.where(np.isfinite(values), values, -np.inf).max(axis=-1)
    return np.where(np.isfinite(largest), largest, np.nan)


def _alone(alone: Mapping[str, str | Path], groups: Sequence[str]) -> xr.Dataset:
    """Means of every cluster on its own, by local policy."""
    values: dict[str, list[list[float]]] = {name: [] for name in TIMES}
    for path in alone.values():
        run = results.read(path)
        home, times = run["home_cluster"].values, metrics.job_metrics(run)
        chosen = {
            **{name: home == i for i, name in enumerate(groups[:-3])},
            GRID_USERS: home < 0,
            CLUSTER_USERS: home >= 0,
            ALL_USERS: home >= -1,
        }
        for name in TIMES:
            ended = np.isfinite(times[name])
            rows = [times[name][chosen[group] & ended] for group in groups]
            values[name].append([float(row.mean()) if len(row) else np.nan for row in rows])
    variables = {
        f"alone_{name}_mean": (
            ("policy", "group"),
            np.array(rows, np.float64),
            attrs_of(f"mean {TIMES[name][0]}, every site on its own", TIMES[name][1]),
        )
        for name, rows in values.items()
    }
    return xr.Dataset(variables, {"policy": list(alone), "group": list(groups)})


# --- comparisons ----------------------------------------------------------------------------------


def _gains(whole: xr.Dataset) -> xr.Dataset:
    """What each group of users gains against every cluster on its own."""
    jobs = whole["jobs_by_week"].values
    known = np.where(jobs > 0, 1.0, np.nan)
    variables: dict[str, Any] = {}
    dims = ("case", "group")
    for name, (long_name, units) in TIMES.items():
        ours, alone = (whole[f"{prefix}{name}_by_week"].values for prefix in ("", "alone_"))
        total = jobs.sum(axis=-1)
        mean = np.divide(ours.sum(axis=-1), total, out=np.full(total.shape, np.nan), where=total > 0)
        variables[f"group_{name}_mean"] = (dims, mean, attrs_of(f"mean {long_name}", units))
        gain = ratio_interval((alone - ours) * known, jobs * known, signed=True)
        text = f"mean gain of a job in {long_name} against every site on its own"
        variables |= interval_variables(f"{name}_gain", dims, gain, text, units)
        variables[f"{name}_difference_to_alone"] = (
            dims,
            -gain.mean,
            attrs_of(f"mean {long_name} minus that of every site on its own", units),
        )
        factor = times_interval(alone * known, ours * known)
        text = f"mean {long_name} of every site on its own relative to that of the case"
        variables |= interval_variables(f"{name}_factor", dims, factor, text, "1")
    response = variables["group_response_time_mean"][1]
    clusters = whole["group"].values.tolist().index(CLUSTER_USERS)
    variables["yield_wait_of_response"] = (
        "case",
        whole["yield_wait_all"].values / response[:, clusters],
        attrs_of("mean wait for grid jobs to make place over the mean response of the sites' users", "1"),
    )
    return xr.Dataset(variables, {"case": whole["case"], "group": whole["group"]})


def _sweeps(study: DynamicGridStudy, whole: xr.Dataset) -> xr.Dataset:
    """Cases of each sweep against the one in which its factor has the value of the default.

    NaN where a case is not of the sweep, or where the two do not have the same jobs.
    """
    names, labels = [sweep.name for sweep in study.sweeps], list(study.cases)
    place = {label: i for i, label in enumerate(labels)}
    base = np.full((len(names), len(labels)), -1, np.int64)
    number = np.full(base.shape, np.nan)
    texts = np.full((2, *base.shape), "", dtype=object)
    for row, sweep in enumerate(study.sweeps):
        for others, case in study.points_of(sweep):
            of_base = study.changed_case("", **others)
            i = place[study.label_of(case)]
            value = getattr(case, sweep.factor)
            base[row, i] = place[study.label_of(of_base)]
            if isinstance(value, int | float) and not isinstance(value, bool):
                number[row, i] = value
            texts[0, row, i] = shown_value(value)
            texts[1, row, i] = ", ".join(f"{key} {shown_value(other)}" for key, other in others.items())
    dims = ("sweep", "case")
    variables: dict[str, Any] = {
        "in_sweep": (dims, (base >= 0).astype(np.int8), attrs_of("whether a case is of a sweep", "1")),
        "sweep_value": (dims, number, attrs_of("value of the factor, where it is a number", "1")),
        "sweep_text": (dims, texts[0], {"long_name": "value of the factor"}),
        "sweep_line": (dims, texts[1], {"long_name": "values of the other factors of the sweep"}),
        "sweep_factor": (("sweep",), [s.factor for s in study.sweeps], {"long_name": "factor of the sweep"}),
        "sweep_base": (dims, base, attrs_of("index of the case with the default value of the factor", "1")),
    }
    if names:
        variables |= _changes(whole, base)
    return xr.Dataset(
        variables, {"sweep": np.array(names, dtype=object), "case": labels, "group": whole["group"]}
    )


def _changes(whole: xr.Dataset, base: NDArray[np.int64]) -> dict[str, Any]:
    """Ratio and difference of means against the base, by sweep, case and group."""
    jobs = whole["jobs_by_week"].values
    known = np.where(jobs > 0, 1.0, np.nan)
    variables: dict[str, Any] = {}
    for name, (long_name, units) in TIMES.items():
        values = whole[f"{name}_by_week"].values
        ratios, differences = [], []
        for row in base:
            same = (jobs == jobs[row]).all(axis=-1) & (row >= 0)[:, None]
            used = np.where(same[..., None], known, np.nan)
            ratios.append(times_interval(values * used, values[row] * used))
            differences.append(ratio_interval((values - values[row]) * used, jobs * used, signed=True))
        dims = ("sweep", "case", "group")
        for ending, text, intervals, unit in (
            ("change", f"mean {long_name} relative to that with the default value", ratios, "1"),
            ("difference", f"mean {long_name} minus that with the default value", differences, units),
        ):
            stacked = Interval(*(np.stack(parts) for parts in zip(*intervals, strict=True)))
            variables |= interval_variables(f"{name}_{ending}", dims, stacked, text, unit)
    return variables


PARTIES = ("own", "others")
"""Users of a cluster that joins, and all others."""


def _joining(study: DynamicGridStudy, whole: xr.Dataset) -> xr.Dataset:
    """What a cluster's joining brings to its users and to all others.

    Every case without a cluster is set against that with it: mean without over mean with, and their
    difference.
    """
    labels = list(study.cases)
    rows: list[tuple[str, str, str]] = []
    for sweep in study.sweeps:
        for others, case in study.points_of(sweep):
            if case.without is not None and sweep.factor == "without":
                base = study.label_of(study.changed_case("", **others))
                rows.append((study.label_of(case), base, case.without))
    groups = whole["group"].values.tolist()
    variables: dict[str, Any] = {}
    dims = ("case", "party")
    for name, (long_name, units) in TIMES.items():
        factors = [np.full((len(labels), len(PARTIES)), np.nan) for _ in BOUNDS]
        differences = [values.copy() for values in factors]
        for label, base, cluster in rows:
            without, joined, jobs = (
                whole[variable].sel(case=case).values
                for variable, case in (
                    (f"{name}_by_week", label),
                    (f"{name}_by_week", base),
                    ("jobs_by_week", base),
                )
            )
            own, everybody = groups.index(cluster), groups.index(ALL_USERS)
            place = labels.index(label)
            for party in range(len(PARTIES)):
                of_party = [
                    part[own] if party == 0 else part[everybody] - part[own]
                    for part in (without, joined, jobs)
                ]
                used = np.where(of_party[2] > 0, 1.0, np.nan)
                factor = times_interval(of_party[0] * used, of_party[1] * used)
                gain = ratio_interval((of_party[0] - of_party[1]) * used, of_party[2] * used, signed=True)
                for target, interval in ((factors, factor), (differences, gain)):
                    for values, bound in zip(target, interval, strict=True):
                        values[place, party] = bound
        text = f"mean {long_name} without the site relative to that with it"
        variables |= interval_variables(f"{name}_joining_factor", dims, Interval(*factors), text, "1")
        text = f"mean {long_name} without the site minus that with it"
        variables |= interval_variables(f"{name}_joining_gain", dims, Interval(*differences), text, units)
    return xr.Dataset(variables, {"case": labels, "party": list(PARTIES)})


# --- what was run ---------------------------------------------------------------------------------


def _parameters(study: DynamicGridStudy) -> xr.Dataset:
    """Parameters of every case, as labels show them."""
    rows = [[shown_value(getattr(case, key)) for key in CASE_KEYS] for case in study.cases.values()]
    return xr.Dataset(
        {"parameters": (("case", "parameter"), np.array(rows, dtype=object), {"long_name": "value"})},
        {"case": list(study.cases), "parameter": list(CASE_KEYS)},
    )


def _sources(study: DynamicGridStudy, platform: DynamicPlatform) -> xr.Dataset:
    """The clusters, where their jobs come from, and what became of those that are not simulated."""
    logs: dict[str, Workload] = dict(zip(study.cluster_names, platform.workloads, strict=True))
    processors = [cluster.processors for cluster in platform.clusters]
    if platform.stream is not None and platform.stream_cluster is not None:
        logs[GRID_USERS] = platform.stream
        processors.append(platform.stream_cluster.processors)
    whole = sources(logs, "users").rename(acknowledgement="workload_acknowledgement")
    span = float(platform.jobs.submit_time.max() - platform.jobs.submit_time.min())
    work = [float((log.processors * log.run_time).sum()) for log in logs.values()]
    columns: dict[str, tuple[list[Any], str]] = {
        "machine_processors": (processors, "processors of the machine of these users"),
        "jobs_submitted": ([len(log) for log in logs.values()], "jobs submitted"),
        "offered_load": (
            [total / (size * max(span, 1.0)) for total, size in zip(work, processors, strict=True)],
            "work of these users, over what their machine can do from the first to the last submission of "
            "all",
        ),
        "jobs_without_requested_time": (
            [int((log.requested_time <= 0).sum()) for log in logs.values()],
            "jobs whose log has no requested time",
        ),
    }
    for name, (values, long_name) in columns.items():
        whole[name] = ("users", np.array(values, np.float64), attrs_of(long_name, "1"))
    whole["workload_name"] = ("users", [log.name for log in logs.values()])
    if GRID_USERS not in logs:
        whole = whole.reindex(
            users=[*logs, GRID_USERS],
            fill_value={name: "" if whole[name].dtype.kind in "OU" else 0 for name in whole.data_vars},
        )
    return whole


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each case, group of users and metric, with the gain against every cluster on its own."""
    frames = []
    for name, (_, units) in TIMES.items():
        columns = {"mean": whole[f"group_{name}_mean"]}
        for part in ("gain", "factor"):
            columns |= {f"{part}{ending}": whole[f"{name}_{part}{ending}"] for ending in BOUNDS}
        frame = xr.Dataset(columns).to_dataframe(dim_order=["case", "group"]).reset_index()
        frames.append(frame[frame["mean"].notna()].assign(measure=name, unit=units))
    table = pd.concat(frames, ignore_index=True)
    leading = ["case", "group", "measure", "unit", "mean"]
    return table[[*leading, *(name for name in table if name not in leading)]]
