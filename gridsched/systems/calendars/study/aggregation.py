"""The last stage of a study of imprecise calendars: all runs in one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
import yaml

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import collected, interval_variables
from gridsched.io import UniqueKeyLoader, resource
from gridsched.platform import Cluster
from gridsched.replication import times_interval
from gridsched.systems.calendars.measures import LENGTHS, length_class
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.study.config import CalendarStudy, longest_period
from gridsched.systems.calendars.study.stages import HORIZON, RUN
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

LoadedClusters = Sequence[tuple[Workload, Cluster]]

_HOUR = 3600.0


def aggregate_calendar_study(
    study: CalendarStudy,
    seed: int,
    runs: Sequence[str | Path],
    cases: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Put all runs into the dataset of the study.

    Parameters
    ----------
    study : CalendarStudy
        The study.
    seed : int
        Seed of the whole configuration.
    runs : sequence of paths
        Results of `simulate_run`.
    cases : mapping of case to path
        Results of `prepare_case`.
    target : path
        The dataset.
    """
    loaded = {
        name: next(iter(results.grids_from_dataset(results.read(path)).values()))
        for name, path in cases.items()
    }
    whole = xr.merge(
        [
            _runs(study, [results.read(path) for path in runs]),
            _submitted(study, loaded),
            _schedulers(study),
            _sources(loaded),
            _papers(study),
        ],
        join="outer",
        combine_attrs="drop_conflicts",
    )
    whole = whole.sel(cluster=_cluster_names(study)).merge(_ratios(study, whole))
    whole.attrs = study.attributes(seed=seed)
    files.write(whole, target)


def _cluster_names(study: CalendarStudy) -> list[str]:
    """Names of the clusters of all cases, in the order of the cases."""
    return list(dict.fromkeys(name for case in study.scenarios for name in case.cluster_names))


def _runs(study: CalendarStudy, runs: Sequence[xr.Dataset]) -> xr.Dataset:
    """Measures of all runs on the dimensions of `RUN`, NaN where there is no run."""
    estimates = dict.fromkeys(each for case in study.scenarios for each in study.estimates_in(case))
    labels = {
        "case": [case.name for case in study.scenarios],
        "scheduler": study.labels,
        "estimates": list(estimates),
    }
    whole = collected(runs, labels, {"cluster": _cluster_names(study)})
    return whole.assign_coords(block=np.arange(whole.sizes["block"]))


def _submitted(study: CalendarStudy, loaded: Mapping[str, LoadedClusters]) -> xr.Dataset:
    """What users submit in each case, cluster by cluster."""
    names = _cluster_names(study)
    described = {
        "processors": ("processors of the cluster", "1"),
        "submitted_jobs": ("jobs submitted to the cluster", "1"),
        "submitted_work": ("work submitted to the cluster", "h"),
        "mean_processors": ("mean processors of the jobs submitted to the cluster", "1"),
    }
    values = {name: np.full((len(loaded), len(names)), np.nan) for name in described}
    totals = np.full((2, len(loaded)), np.nan)
    lengths = np.zeros((len(loaded), len(LENGTHS)), np.int64)
    without = np.zeros(len(loaded), np.int64)
    for row, (case, pairs) in enumerate(loaded.items()):
        for name, (workload, cluster) in zip(study.scenario(case).cluster_names, pairs, strict=True):
            column = names.index(name)
            values["processors"][row, column] = cluster.processors
            values["submitted_jobs"][row, column] = len(workload)
            values["submitted_work"][row, column] = float(workload.processors @ workload.run_time) / _HOUR
            values["mean_processors"][row, column] = workload.processors.mean() if len(workload) else np.nan
            classes = np.bincount(length_class(workload.run_time), minlength=len(LENGTHS))
            lengths[row] += np.append(len(workload), classes[1:])
            without[row] += int((workload.requested_time <= 0).sum())
        sizes = np.concatenate([workload.processors for workload, _ in pairs])
        totals[:, row] = np.nansum(values["submitted_work"][row]), sizes.mean()
    one = {"units": "1"}
    whole = xr.Dataset(
        {
            name: (("case", "cluster"), values[name], {"long_name": long_name, "units": units})
            for name, (long_name, units) in described.items()
        },
        {"case": list(loaded), "cluster": names, "job_class": list(LENGTHS)},
    )
    for name, total, long_name, units in (
        ("submitted_work_total", totals[0], "work submitted to all clusters", "h"),
        ("mean_processors_total", totals[1], "mean processors of all jobs", "1"),
    ):
        whole[name] = ("case", total, {"long_name": long_name, "units": units})
    whole["submitted"] = (("case", "job_class"), lengths, {"long_name": "jobs submitted", **one})
    whole["jobs_without_requested_time"] = (
        "case",
        without,
        {"long_name": "jobs whose log has no requested time", **one},
    )
    return whole


def _schedulers(study: CalendarStudy) -> xr.Dataset:
    """What the schedulers are, so that figures can tell by what they differ; local policies have no slots."""
    rows = list(study.made.items())
    policies = ["" if isinstance(made, Calendars) else made.label for _, made in rows]
    calendars = [made if isinstance(made, Calendars) else None for _, made in rows]
    default = Calendars()
    described: dict[str, tuple[list[Any], str, str]] = {
        "policy": (policies, "local policy, empty for calendars", ""),
        "slots": (
            ["" if each is None else str(each.slots) for each in calendars],
            "slots of the calendars",
            "",
        ),
        "slots_horizon": (
            [np.nan if each is None else each.slots.slots_within(HORIZON) for each in calendars],
            f"slots of a calendar that covers {HORIZON} s",
            "1",
        ),
        "manager_levels": ([_levels(each) for each in calendars], "levels of managers", "1"),
        "low_water": ([(each or default).low_water for each in calendars], "low-water mark", "1"),
        "threshold": ([(each or default).threshold for each in calendars], "resource threshold", "1"),
        "period": (
            [0 if each is None else longest_period(each) for each in calendars],
            "longest time between updates of shadow calendars",
            "s",
        ),
        "reserved_share": (
            [study.share(label) for label, _ in rows],
            "share of the jobs that ask for a reservation",
            "1",
        ),
    }
    whole = xr.Dataset(coords={"scheduler": study.labels})
    for name, (values, long_name, units) in described.items():
        content = (
            np.array(values, dtype=object) if isinstance(values[0], str) else np.array(values, np.float64)
        )
        whole[name] = ("scheduler", content, {"long_name": long_name, **({"units": units} if units else {})})
    return whole


def _levels(calendars: Calendars | None) -> int:
    """Levels of managers; without levels of its own a scheduler of calendars has two."""
    if calendars is None:
        return 1
    return 2 if calendars.levels is None else max(1, len(calendars.levels))


def _sources(loaded: Mapping[str, LoadedClusters]) -> xr.Dataset:
    """Where the jobs come from, and what became of those that are not simulated, case by case."""
    whole = xr.Dataset(coords={"case": list(loaded)})
    for kind in ("left_out", "repaired"):
        totals = []
        for pairs in loaded.values():
            total: dict[str, int] = {}
            for workload, _ in pairs:
                total = add_counts(total, getattr(workload, kind))
            totals.append(total)
        reasons = sorted({reason for total in totals for reason in total})
        values = np.array([[total.get(reason, 0) for reason in reasons] for total in totals], np.int64)
        whole[kind] = (
            ("case", f"{kind}_reason"),
            values.reshape(len(totals), len(reasons)),
            {"long_name": f"jobs {kind.replace('_', ' ')}", "units": "1"},
        )
        whole = whole.assign_coords({f"{kind}_reason": np.array(reasons, dtype=object)})
    for name, attribute in (("acknowledgement", "acknowledgement"), ("workload_checksum", "checksum")):
        texts = [
            "; ".join(dict.fromkeys(text for w, _ in pairs if (text := getattr(w, attribute))))
            for pairs in loaded.values()
        ]
        whole[name] = ("case", np.array(texts, dtype=object))
    return whole


PAPER_COLUMNS: dict[str, tuple[str, str]] = {
    "submitted_jobs": ("jobs submitted to the cluster", "1"),
    "mean_processors": ("mean processors of the jobs submitted to the cluster", "1"),
    "utilisation_alone": ("utilisation of the cluster by itself", "1"),
    "utilisation_together": ("utilisation of the cluster under managers", "1"),
    "supplied": ("work done for jobs of other clusters", "h"),
    "consumed": ("work of own jobs done on other clusters", "h"),
    "balance": ("consumed less supplied work", "h"),
    "local_work": ("work of own jobs done at home", "h"),
}
"""Columns of the paper's tables of clusters: long name and unit."""


def _papers(study: CalendarStudy) -> xr.Dataset:
    """Tables of the paper, NaN where it has none for a case."""
    tables = yaml.load(resource("resources", "calendars.yaml").read_text(encoding="utf-8"), UniqueKeyLoader)
    names = _cluster_names(study)
    shape = (len(study.scenarios), len(names))
    values = {column: np.full(shape, np.nan) for column in PAPER_COLUMNS}
    jobs = np.full((len(study.scenarios), len(LENGTHS)), np.nan)
    for row, case in enumerate(study.scenarios):
        table = tables[case.paper.table] if case.paper else {}
        if "jobs" in table:
            jobs[row] = [table["jobs"][label] for label in LENGTHS]
        # The table of a paper may have more clusters than a case of some of them
        for name, numbers in zip(case.cluster_names, table.get("clusters", []), strict=False):
            for column, number in zip(table["columns"], numbers, strict=True):
                values[column][row, names.index(name)] = number
    whole = xr.Dataset(
        {
            f"paper_{column}": (
                ("case", "cluster"),
                values[column],
                {"long_name": f"{long_name} in the paper", "units": units},
            )
            for column, (long_name, units) in PAPER_COLUMNS.items()
        },
        {"case": [case.name for case in study.scenarios], "cluster": names, "job_class": list(LENGTHS)},
    )
    whole["paper_submitted"] = (
        ("case", "job_class"),
        jobs,
        {"long_name": "jobs submitted in the paper", "units": "1"},
    )
    for role in ("alone", "together"):
        labels = [(getattr(case.paper, role) or "") if case.paper else "" for case in study.scenarios]
        whole[f"paper_{role}"] = ("case", np.array(labels, dtype=object))
    return whole


def _ratios(study: CalendarStudy, whole: xr.Dataset) -> xr.Dataset:
    """Delays relative to those of the reference, with 95 % intervals from leaving out one block at a time."""
    variables: dict[str, Any] = {}
    for name in ("delay", "delay_others"):
        parts = whole[f"{name}_by_block"]
        against = parts.sel(scheduler=study.reference_label, drop=True).broadcast_like(parts)
        dims = tuple(map(str, parts.dims[:-1]))
        interval = times_interval(parts.values, against.transpose(*parts.dims).values)
        long_name = f"{whole[name].attrs['long_name']} relative to the reference"
        variables |= interval_variables(f"{name}_ratio", dims, interval, long_name, "1")
    by_cluster = whole["delay_by_cluster"].sel(job_class=LENGTHS[0], drop=True)
    better = by_cluster < by_cluster.sel(scheduler=study.reference_label, drop=True)
    known = by_cluster.notnull().any("cluster")
    counted = better.sum("cluster").where(known).transpose(*RUN, "aggregate")
    variables["clusters_better"] = xr.Variable(
        counted.dims,
        counted.values,
        {"long_name": "clusters whose jobs have a smaller delay than under the reference", "units": "1"},
    )
    return xr.Dataset(variables, {name: whole[name] for name in (*RUN, "aggregate", "job_class")})


# --- tables ---------------------------------------------------------------------------------------


def delays_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each run, aggregate and class of jobs, with the ratio to the reference and its interval."""
    keys = [*RUN, "aggregate", "job_class"]
    names = ["delay", "delay_ratio", "delay_ratio_low", "delay_ratio_high"]
    frame = whole[[*names, "jobs", "wait_time_mean"]].to_dataframe(dim_order=keys).reset_index()
    frame = frame[frame["delay"].notna()]
    return frame[[*keys, "jobs", *names, "wait_time_mean"]]


def clusters_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each run and cluster: jobs, utilisation and trade in hours of one processor."""
    keys = [*RUN, "cluster"]
    names = ["jobs_by_cluster", "utilisation", "supplied", "consumed", "balance", "local_work"]
    submitted = ["processors", "submitted_jobs", "submitted_work", "mean_processors"]
    frame = whole[[*names, *submitted, "transferred_by_cluster"]].to_dataframe(dim_order=keys).reset_index()
    frame = frame[frame["utilisation"].notna()]
    return frame[[*keys, *submitted, *names, "transferred_by_cluster"]]
