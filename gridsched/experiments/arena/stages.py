"""The stages of a study of the arena: every scheduler on every scenario, and how sure the differences are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.arena.config import ArenaStudy, system_of
from gridsched.experiments.arena.grids import IDEAL_MACHINE, ArenaGrid, schedule
from gridsched.experiments.collection import attrs_of, interval_variables
from gridsched.experiments.machines import FATES, machines
from gridsched.experiments.parts import label_of
from gridsched.experiments.prepare import scheduler_seed, workload_facts
from gridsched.experiments.schedulers import policy_made, scheduler_made
from gridsched.experiments.study import families
from gridsched.metrics import jobs as metrics
from gridsched.metrics.grid import offered_loads
from gridsched.replication import holm, times_interval, times_significance

Floats = NDArray[np.float64]

MEASURES: dict[str, tuple[str, str]] = {
    "response_time": ("response time", "s"),
    "wait_time": ("time to the first start", "s"),
    "bounded_slowdown": ("bounded slowdown, relative to the run time at home", "1"),
}
"""Measures of a job that schedulers are compared by: long name and unit."""

CONFIDENCE = 0.95


# --- runs -----------------------------------------------------------------------------------------


def run_scheduler(
    study: ArenaStudy, scenario: str, label: str, grids: str | Path, seed: int, target: str | Path
) -> None:
    """Run one scheduler on a scenario: all replicates under all loads and estimates.

    Parameters
    ----------
    study : ArenaStudy
        The study.
    scenario, label : str
        Name of the scenario, label of the scheduler.
    grids : path
        Result of `gridsched.experiments.prepare.prepare_grids`.
    seed : int
        Seed of the whole configuration; what schedulers draw depends on the scenario and the replicate too,
        but not on the scheduler.
    target : path
        Dataset to write: on `load`, `estimate_error` and `job` (all replicates, one after the other)
        start_time, end_time and moved, see `grids.schedule`; messages for each run, and what became of its
        jobs where it says so. Without jobs, and with the attribute `unfit`, if the scheduler cannot schedule
        such a grid.
    """
    scheduler = scheduler_made(study.scheduler(label))
    attributes = {"study": study.name, "scenario": scenario, "scheduler": label, **results.provenance()}
    replicates = _grids(study, scenario, files.shared(grids), seed)
    unfit = scheduler.incompatibility(replicates[0].platform, workload=replicates[0].merged()[0])
    if unfit:
        files.write(xr.Dataset(attrs={**attributes, "unfit": unfit}), target)
        return
    rows = []
    for load in study.loads:
        row = []
        for error in study.estimate_errors:
            scheduled = [schedule(scheduler, grid.under(load, error)) for grid in replicates]
            whole = xr.concat(scheduled, dim="job", combine_attrs="drop")
            for name in ("messages", *(name for name in FATES if name in scheduled[0].attrs)):
                whole[name] = ("replicate", [each.attrs[name] for each in scheduled])
            row.append(whole)
        rows.append(xr.concat(row, dim=pd.Index(study.estimate_errors, name="estimate_error")))
    whole = xr.concat(rows, dim=pd.Index(study.loads, name="load"))
    whole["messages"].attrs = {"long_name": "messages that the system needs", "units": "1"}
    whole.attrs = {**attributes, "unfit": "", "verified": 1}
    files.write(whole, target)


def _grids(study: ArenaStudy, scenario: str, dataset: xr.Dataset, seed: int) -> list[ArenaGrid]:
    """The grid of each replicate, with nodes and failures."""
    conditions = study.scenario(scenario)
    return [
        ArenaGrid(
            workloads=[workload for workload, _ in pairs],
            clusters=machines(pairs, conditions.clusters, conditions.align, seed, replicate),
            align=conditions.align,
            policy=policy_made(study.policies[0]),
            seed=scheduler_seed(seed, scenario, replicate),
        )
        for replicate, pairs in results.grids_from_dataset(dataset).items()
    ]


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_arena_study(
    study: ArenaStudy,
    seed: int,
    runs: Mapping[str, Sequence[str | Path]],
    grids: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Put all schedulers on all scenarios into the dataset of the study.

    Measures are means over the jobs that all schedulers of a scenario brought to their end under all
    conditions; how many those are, and how many each scheduler did not run, is part of the dataset.

    Parameters
    ----------
    study : ArenaStudy
        The study.
    seed : int
        Seed of the whole configuration.
    runs : mapping of scenario to paths
        Results of `run_scheduler`, in the order of the schedulers.
    grids : mapping of scenario to path
        Results of `gridsched.experiments.prepare.prepare_grids`.
    target : path
        The dataset.
    """
    parts, effects = [], []
    outcomes = {name: [results.read(path) for path in paths] for name, paths in runs.items()}
    for name in runs:
        own = _grids(study, name, results.read(grids[name]), seed)
        parts.append(_scenario(study, name, outcomes[name], own))
        for base in (base for base, family in families(study.scenarios).items() if name in family[1:]):
            effects.append(_effects(study, name, outcomes[name], outcomes[base], own))
    whole = xr.concat(parts, dim=pd.Index(list(runs), name="scenario"), join="outer", fill_value=np.nan)
    whole = (
        whole.sel(scheduler=study.labels)
        .merge(_systems(study))
        .merge(workload_facts(list(grids), list(grids.values())))
    )
    whole = whole.merge(_against_reference(whole, study.reference_label))
    pairs = pair_table(whole)
    whole = whole.merge(_beaten(whole, pairs))
    if effects:
        whole = whole.merge(xr.concat(effects, dim="scenario").reindex(scenario=whole["scenario"]))
        against = [study.scenario(name).baseline or "" for name in runs]
        whole["baseline"] = ("scenario", against, {"long_name": "scenario that it is compared with"})
    whole.attrs = study.attributes(policy=label_of(study.policies[0]), seed=seed)
    files.write(whole, target)


def _scenario(
    study: ArenaStudy, name: str, outcomes: Sequence[xr.Dataset], grids: Sequence[ArenaGrid]
) -> xr.Dataset:
    """Measures of all schedulers on one scenario."""
    able = [outcome for outcome in outcomes if not outcome.attrs["unfit"]]
    jobs = _jobs(grids, study.scenario(name).block)
    common = np.logical_and.reduce([(outcome["start_time"].values >= 0).all(axis=(0, 1)) for outcome in able])
    measured = [_measured(study, outcome, jobs, common, grids) for outcome in outcomes]
    whole = xr.concat(measured, dim=pd.Index(study.labels, name="scheduler"))
    facts = {
        "jobs": (len(common), "jobs submitted, over all replicates"),
        "jobs_common": (int(common.sum()), "jobs that all schedulers brought to their end"),
        "replicates": (len(grids), "replicates"),
        "clusters": (len(grids[0].clusters), "clusters"),
        "processors": (sum(cluster.processors for cluster in grids[0].clusters), "processors"),
        "offered_load": (_offered(grids), "work submitted relative to the capacity of all clusters"),
    }
    for key, (value, long_name) in facts.items():
        whole[key] = ((), float(value), {"long_name": long_name, "units": "1"})
    counts = np.bincount(jobs["block"][common], minlength=int(jobs["block"].max()) + 1).astype(np.float64)
    whole["block_jobs"] = ("block", counts, {"long_name": "common jobs of each block", "units": "1"})
    return whole.assign_coords(block=np.arange(len(counts)))


def _jobs(grids: Sequence[ArenaGrid], length: int) -> dict[str, NDArray[Any]]:
    """What is known of all jobs of a scenario, replicate by replicate."""
    columns: dict[str, list[NDArray[Any]]] = {"run_time": [], "block": []}
    for replicate, grid in enumerate(grids):
        merged, _ = grid.merged()
        recorded, submit = merged.recorded_submit, merged.submit_time
        submit = submit if recorded is None else np.where(recorded < 0, submit, recorded)
        since = submit - submit.min(initial=2**62)
        block = np.full(len(merged), replicate) if len(grids) > 1 else since // length
        columns["run_time"].append(merged.run_time)
        columns["block"].append(block)
    return {name: np.concatenate(values) for name, values in columns.items()}


def _offered(grids: Sequence[ArenaGrid]) -> float:
    """Offered load of all clusters together, the mean over replicates."""
    loads = []
    for grid in grids:
        capacity = np.array([cluster.processors * cluster.speed for cluster in grid.clusters])
        each = offered_loads(grid.workloads, grid.clusters, align=grid.align)["offered_load"].values
        loads.append(float((each * capacity).sum() / capacity.sum()))
    return float(np.mean(loads))


def _measured(
    study: ArenaStudy,
    outcome: xr.Dataset,
    jobs: Mapping[str, NDArray[Any]],
    common: NDArray[np.bool_],
    grids: Sequence[ArenaGrid],
) -> xr.Dataset:
    """Sums and means of one scheduler; NaN if it cannot schedule such a grid."""
    blocks = int(jobs["block"].max()) + 1
    shape = (len(study.loads), len(study.estimate_errors))
    number = common.sum()
    sums = {name: np.full((*shape, blocks), np.nan) for name in MEASURES}
    told = ("moved", "messages_per_job", "jobs_not_run", "productivity")
    single = {name: np.full(shape, np.nan) for name in told}
    if not outcome.attrs["unfit"]:
        for i, j in product(*map(range, shape)):
            part = outcome.isel(load=i, estimate_error=j)
            submit = _submissions(grids, study.loads[i])
            for name, values in _of_jobs(part, submit, jobs["run_time"]).items():
                sums[name][i, j] = np.bincount(jobs["block"][common], values[common], blocks)
            moved = part["moved"].values
            single["moved"][i, j] = moved[common].mean() if number and moved.min() >= 0 else np.nan
            single["messages_per_job"][i, j] = part["messages"].values.sum() / max(len(common), 1)
            single["jobs_not_run"][i, j] = (part["start_time"].values < 0).sum()
            single["productivity"][i, j] = _productivity(part["end_time"].values, grids, study.loads[i])
    dims = ("load", "estimate_error")
    variables: dict[str, Any] = {}
    for name, (long_name, units) in MEASURES.items():
        total = sums[name].sum(axis=-1) / number if number else np.full(shape, np.nan)
        variables[f"{name}_mean"] = (dims, total, {"long_name": f"mean {long_name}", "units": units})
        variables[f"{name}_by_block"] = (
            (*dims, "block"),
            sums[name],
            {"long_name": f"sum over the common jobs of a block of the {long_name}", "units": units},
        )
    for name, long_name in (
        ("moved", "share of the common jobs that ran elsewhere than where they were submitted"),
        ("messages_per_job", "messages a job"),
        ("jobs_not_run", "jobs that were not brought to their end"),
    ):
        variables[name] = (dims, single[name], {"long_name": long_name, "units": "1"})
    if study.has_feedback:
        text = "jobs a day that ended before the last submission, mean of replicates"
        variables["productivity"] = (dims, single["productivity"], attrs_of(text, "day-1"))
    variables["unfit"] = ((), outcome.attrs["unfit"], {"long_name": "why it cannot schedule such a grid"})
    if study.tells_fates:
        for name, long_name in FATES.items():
            known = outcome[name].mean("replicate") if name in outcome else np.full(shape, np.nan)
            variables[name] = (
                dims,
                np.asarray(known, np.float64),
                attrs_of(f"{long_name}, mean of replicates", "1"),
            )
    return xr.Dataset(variables, {"load": list(study.loads), "estimate_error": list(study.estimate_errors)})


def _submissions(grids: Sequence[ArenaGrid], load: float) -> NDArray[np.int64]:
    """Submit times of all jobs under a load, replicate by replicate."""
    return np.concatenate([grid.under(load).merged()[0].submit_time for grid in grids])


def _productivity(end: NDArray[np.int64], grids: Sequence[ArenaGrid], load: float) -> float:
    """Jobs a day that ended before the last submission of their replicate, the mean over replicates."""
    found, first = [], 0
    for grid in grids:
        submit = grid.under(load).merged()[0].submit_time
        own = end[first : first + len(submit)]
        first += len(submit)
        days = (submit.max(initial=0) - submit.min(initial=2**62)) / 86_400
        found.append(((own >= 0) & (own <= submit.max(initial=0))).sum() / days if days > 0 else np.nan)
    return float(np.mean(found))


def _of_jobs(part: xr.Dataset, submit: NDArray[np.int64], run_time: NDArray[np.int64]) -> dict[str, Floats]:
    """Measures of each job; meaningless for those that did not run."""
    since = (part["eligible_time"].values if "eligible_time" in part else submit).astype(np.float64)
    response = part["end_time"].values - since
    return {
        "response_time": response,
        "wait_time": part["start_time"].values - since,
        "bounded_slowdown": metrics.bounded_slowdown(response, run_time),
    }


def _systems(study: ArenaStudy) -> xr.Dataset:
    """What is known of the schedulers."""
    systems = [system_of(each) for each in study.schedulers]
    return xr.Dataset(
        {"system": ("scheduler", systems, {"long_name": "system of the scheduler"})},
        {"scheduler": study.labels},
    )


# --- comparisons ----------------------------------------------------------------------------------


def _effects(
    study: ArenaStudy,
    name: str,
    outcomes: Sequence[xr.Dataset],
    before: Sequence[xr.Dataset],
    grids: Sequence[ArenaGrid],
) -> xr.Dataset:
    """How much longer jobs take in a scenario than in its baseline, with simultaneous intervals over blocks.

    Counted are the jobs that all schedulers which can schedule both brought to their end in both.
    """
    jobs = _jobs(grids, study.scenario(name).block)
    blocks = int(jobs["block"].max()) + 1
    pairs = list(zip(outcomes, before, strict=True))
    able = [pair for pair in pairs if not any(each.attrs["unfit"] for each in pair)]
    ended = [(each["start_time"].values >= 0).all(axis=(0, 1)) for pair in able for each in pair]
    common = np.logical_and.reduce([np.ones(len(jobs["block"]), np.bool_), *ended])
    shape = (len(study.loads), len(study.estimate_errors))
    sums = {key: np.full((2, *shape, len(pairs), blocks), np.nan) for key in MEASURES}
    for k, pair in enumerate(pairs):
        if any(each.attrs["unfit"] for each in pair):
            continue
        for side, (i, j) in product(range(2), product(*map(range, shape))):
            part = pair[side].isel(load=i, estimate_error=j)
            values = _of_jobs(part, _submissions(grids, study.loads[i]), jobs["run_time"])
            for key in MEASURES:
                sums[key][side, i, j, k] = np.bincount(jobs["block"][common], values[key][common], blocks)
    variables: dict[str, Any] = {}
    for key, (long_name, _) in MEASURES.items():
        text = f"mean {long_name} relative to that in the baseline"
        found = times_interval(sums[key][0], sums[key][1], 1 - (1 - CONFIDENCE) / max(len(able), 1))
        variables |= interval_variables(
            f"{key}_effect", ("load", "estimate_error", "scheduler"), found, text, "1"
        )
    labels = {"load": list(study.loads), "estimate_error": list(study.estimate_errors)}
    return xr.Dataset(variables, {**labels, "scheduler": study.labels}).expand_dims(scenario=[name])


def _against_reference(whole: xr.Dataset, reference: str) -> xr.Dataset:
    """Ratios of means to those of the reference, with simultaneous intervals over all schedulers.

    Bonferroni: each of n schedulers has an interval of confidence 1 - 0.05 / n, so that all of a scenario,
    condition and measure hold together with 95 %.
    """
    others = whole.sizes["scheduler"] - 1
    variables: dict[str, Any] = {}
    for name, (long_name, _) in MEASURES.items():
        sums = whole[f"{name}_by_block"].transpose("scenario", "load", "estimate_error", "scheduler", "block")
        values = sums.values
        base = sums.sel(scheduler=reference).values[..., None, :]
        found = times_interval(values, base, 1 - (1 - CONFIDENCE) / others)
        dims = ("scenario", "load", "estimate_error", "scheduler")
        text = f"mean {long_name} relative to that of {reference}"
        for suffix, data, what in (
            ("", found.mean, text),
            ("_low", found.low, f"{text}: lower bound of the simultaneous 95 % interval"),
            ("_high", found.high, f"{text}: upper bound of the simultaneous 95 % interval"),
        ):
            variables[f"{name}_ratio{suffix}"] = (dims, data, {"long_name": what, "units": "1"})
    return xr.Dataset(variables)


def pair_table(whole: xr.Dataset) -> pd.DataFrame:
    """All pairs of schedulers: ratio of their means, and its significance after Holm's correction.

    One row for each scenario, load, error of estimates, measure and pair, the better one first. Corrected are
    all pairs of a scenario, condition and measure together.
    """
    rows: list[dict[str, Any]] = []
    places = product(whole["scenario"].values, whole["load"].values, whole["estimate_error"].values, MEASURES)
    for scenario, load, error, name in places:
        part = whole[f"{name}_by_block"].sel(scenario=scenario, load=load, estimate_error=error)
        sums = part.transpose("scheduler", "block").values
        able = [i for i in range(len(sums)) if not np.isnan(sums[i]).all()]
        pairs = [sorted(pair, key=lambda i: np.nansum(sums[i])) for pair in combinations(able, 2)]
        if not pairs:
            continue
        better, worse = np.array(pairs).T
        probability = times_significance(sums[better], sums[worse])
        ratio = times_interval(sums[better], sums[worse]).mean
        labels = part["scheduler"].values
        place = {"scenario": scenario, "load": load, "estimate_error": error, "measure": name}
        for row in zip(labels[better], labels[worse], ratio, probability, holm(probability), strict=True):
            rows.append({**place, **dict(zip(_PAIR, row, strict=True))})
    return pd.DataFrame(rows, columns=["scenario", "load", "estimate_error", "measure", *_PAIR])


_PAIR = ("better", "worse", "ratio", "probability", "corrected")


def _beaten(whole: xr.Dataset, pairs: pd.DataFrame) -> xr.Dataset:
    """How many schedulers each scheduler beats, and is beaten by, for sure.

    Ideal machines do not count: they know no borders between clusters, so nobody has to be as good.
    """
    dims = ("scenario", "load", "estimate_error", "scheduler")
    sure = pairs[pairs["corrected"] < 1 - CONFIDENCE]
    ideal = whole["scheduler"].values[whole["system"].values == IDEAL_MACHINE]
    variables: dict[str, Any] = {}
    for name in MEASURES:
        for side, key, what in (
            ("better", "beats", "schedulers that are worse"),
            ("worse", "beaten_by", "schedulers that are better"),
        ):
            other = "worse" if side == "better" else "better"
            own = sure[(sure["measure"] == name) & ~sure[other].isin(ideal)]
            counts = own.groupby(["scenario", "load", "estimate_error", side]).size()
            index = pd.MultiIndex.from_product([whole[dim].values for dim in dims])
            counts.index.names = list(dims) if len(counts) else counts.index.names
            values = counts.reindex(index, fill_value=0).to_numpy(np.float64)
            values = values.reshape([whole.sizes[dim] for dim in dims])
            absent = whole[f"{name}_mean"].transpose(*dims).isnull().values
            variables[f"{name}_{key}"] = (
                dims,
                np.where(absent, np.nan, values),
                {"long_name": f"{what} by the {MEASURES[name][0]}, for sure after correction", "units": "1"},
            )
    return xr.Dataset(variables)


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each scenario, condition, scheduler and measure, with the ratio to the reference."""
    rows = []
    dims = ("scenario", "load", "estimate_error", "scheduler")
    for place in product(*(whole[dim].values for dim in dims)):
        part = whole.sel(dict(zip(dims, place, strict=True)))
        for name, (_, units) in MEASURES.items():
            if np.isnan(part[f"{name}_mean"]):
                continue
            rows.append(
                {
                    **dict(zip(dims, place, strict=True)),
                    "measure": name,
                    "unit": units,
                    "mean": float(part[f"{name}_mean"]),
                    "ratio": float(part[f"{name}_ratio"]),
                    "ratio_low": float(part[f"{name}_ratio_low"]),
                    "ratio_high": float(part[f"{name}_ratio_high"]),
                    "beats": int(part[f"{name}_beats"]),
                    "beaten_by": int(part[f"{name}_beaten_by"]),
                    "moved": float(part["moved"]),
                    "messages_per_job": float(part["messages_per_job"]),
                    "jobs_not_run": int(part["jobs_not_run"]),
                }
            )
    return pd.DataFrame(rows)
