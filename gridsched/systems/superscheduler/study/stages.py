"""The stages of a study of grids, from clusters to its dataset: each task calls one of these functions.

Runs are simulated and measured at once: what is kept are measures of every run, and start times and clusters
of all jobs of the replicates that the study names. Every other schedule follows, bit for bit, from the
workloads, which are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, collected
from gridsched.experiments.machines import FATES, fates_of, machines
from gridsched.experiments.parts import label_of
from gridsched.experiments.prepare import scheduler_seed, workload_facts
from gridsched.experiments.schedulers import policy_made, scheduler_made
from gridsched.metrics.grid import offered_loads, summarise_grid, summarise_ideal
from gridsched.platform import Platform
from gridsched.replication import difference_interval, mean_interval, ratio_interval
from gridsched.simulation import simulate
from gridsched.systems.superscheduler.study.config import GridStudy
from gridsched.verification import verify

_SUBMITTED = ["offered_load", "jobs_submitted"]
"""What is submitted to a cluster, in a scenario and a replicate, whoever schedules."""

_FIXED = ["cluster_processors", "cluster_speed"]
"""Variables that a cluster has in every scenario."""

# --- simulations ----------------------------------------------------------------------------------


def simulate_run(
    study: GridStudy,
    grid: str | Path,
    target: str | Path,
    *,
    schedule: str | Path | None = None,
    seed: int = 0,
) -> None:
    """Simulate, verify and measure the only scheduler of a study under its only policy on a replicate.

    Parameters
    ----------
    study : GridStudy
        The study.
    grid : path
        Result of `prepare_grids` for one replicate.
    target, schedule : path
        Measures of the run; start time and cluster of each job, if they are kept.
    seed : int
        Seed of the whole configuration, where failures are drawn or the scheduler draws.
    """
    ((replicate, pairs),) = results.grids_from_dataset(files.shared(grid)).items()
    (scenario,), (written,), (policy,), (estimates,) = (
        study.scenarios,
        study.schedulers,
        study.policies,
        study.estimates,
    )
    scheduler = scheduler_made(written)
    clusters = machines(pairs, scenario.clusters, scenario.align, seed, replicate)
    run = simulate(
        [workload for workload, _ in pairs],
        Platform(clusters).with_policy(policy_made(policy)),
        scheduler,
        estimates=estimates,
        align=scenario.align,
        overrun="doubling" if "overrun" in scheduler.cannot else study.overrun,
        seed=scheduler_seed(seed, scenario.name, replicate),
    )
    verify(run)
    if "segment_job" in run:
        measures = summarise_grid(_in_one_piece(run), warm_up=study.warm_up)
    else:
        measures = summarise_ideal(run, warm_up=study.warm_up)
    whole = measures.merge(offered_loads(*zip(*pairs, strict=True), align=scenario.align))
    whole = whole.merge(fates_of(run))
    facts = {
        "cluster_processors": ([float(each.processors) for each in clusters], "processors of the cluster"),
        "cluster_speed": (
            [each.speed for each in clusters],
            "speed of the cluster, in a unit that all share",
        ),
    }
    for name, (values, long_name) in facts.items():
        whole[name] = ("cluster", values, attrs_of(long_name, "1"))
    labels = {
        "scenario": scenario.name,
        "policy": label_of(policy),
        "scheme": label_of(written),
        "replicate": replicate,
    }
    whole = whole.assign_coords(labels)
    whole.attrs = {"study": study.name, "verified": 1, **results.provenance()}
    if schedule is not None:
        files.write(_schedule(run).assign_attrs({**labels, **results.provenance()}), schedule)
    files.write(whole, target)


def _in_one_piece(run: xr.Dataset) -> xr.Dataset:
    """A run with one segment a job, at its end and as long as all of them together.

    A job that is killed waits again at the cluster that it was sent to, so that flows and work stay the same.
    """
    if "fate" not in run:
        return run
    job, end = run["segment_job"].values, run["segment_end"].values
    seconds = np.bincount(job, end - run["segment_start"].values, run.sizes["job"]).astype(np.int64)
    last = np.full(run.sizes["job"], -1)
    last[job[np.argsort(end, kind="stable")]] = np.argsort(end, kind="stable")
    whole = run.isel(segment=last[last >= 0])
    starts = whole["segment_end"].values - seconds[whole["segment_job"].values]
    return whole.assign(segment_start=("segment", starts, run["segment_start"].attrs))


def _schedule(run: xr.Dataset) -> xr.Dataset:
    """Start time and cluster of each job of a run."""
    cluster = np.full(run.sizes["job"], -1, np.int16)
    if "segment_job" in run:
        cluster[run["segment_job"].values] = run["segment_cluster"].values
    columns: dict[str, tuple[Any, str]] = {
        "home": (run["home_cluster"].values.astype(np.int16), "index of the cluster of submission"),
        "job_number": (run["job_number"].values, "number of the job in its workload"),
        "submit_time": (run["submit_time"].values, "submit time, s"),
        "start_time": (run["start_time"].values.astype(np.float64), "start time, s, -1 for a rejected job"),
        "end_time": (run["end_time"].values.astype(np.float64), "end time, s, -1 for a rejected job"),
        "cluster": (cluster, "index of the cluster that ran the job, -1 for none or an ideal one"),
    }
    return xr.Dataset(
        {name: ("job", values, {"long_name": long_name}) for name, (values, long_name) in columns.items()}
    )


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_grid_study(
    study: GridStudy, runs: Sequence[str | Path], grids: Sequence[str | Path], target: str | Path
) -> None:
    """Put all scenarios and replicates into the dataset of the study.

    Parameters
    ----------
    study : GridStudy
        The study.
    runs, grids : sequence of paths
        Results of `simulate_run` and `prepare_grids`.
    target : path
        The dataset.
    """
    measured = [results.read(path) for path in runs]
    scenarios = [scenario.name for scenario in study.scenarios]
    labels: dict[str, list[Any]] = {
        "scenario": scenarios,
        "policy": study.policy_labels,
        "scheme": study.labels,
        "replicate": list(range(study.most_replicates)),
    }
    by_replicate = {name: labels[name] for name in ("scenario", "replicate")}
    whole = xr.merge(
        [
            collected([run.drop_vars([*_SUBMITTED, *_FIXED]) for run in measured], labels),
            collected([run[_SUBMITTED] for run in measured], by_replicate),
            *(run[_FIXED].reset_coords(drop=True) for run in measured),
        ],
        join="outer",
        compat="no_conflicts",
        combine_attrs="drop_conflicts",
    )
    # Joining sorts labels; the study has an order of its own
    clusters = dict.fromkeys(cluster.name for scenario in study.scenarios for cluster in scenario.clusters)
    whole = whole.sel(cluster=list(clusters))
    whole = whole.merge(workload_facts(scenarios, grids))
    whole.attrs = study.attributes()
    files.write(whole, target)


COMPARED = ("wait_time_mean", "response_time_mean", "wait_time_deviation", "bounded_slowdown_mean")
"""Measures that are set against the reference."""

MEASURED = (
    *COMPARED,
    "wait_time_std",
    "grid_efficiency",
    "transferred",
    "makespan",
    "jobs",
    "rejected",
    "queries",
)
"""Measures of a run in the table of means."""


def means_table(study: xr.Dataset) -> pd.DataFrame:
    """One row for each scenario, policy, scheme and measure that has values, with intervals over replicates.

    Measures of `COMPARED` have the ratio to the reference scheme and the paired difference from it besides.
    """
    rows = []
    reference = study.sel(scheme=study.attrs["reference"])
    for scenario in study["scenario"].values:
        for policy in study["policy"].values:
            for scheme in study["scheme"].values:
                place = {"scenario": scenario, "policy": policy}
                for name in (*MEASURED, *(name for name in FATES if name in study)):
                    values = study[name].sel(place | {"scheme": scheme}).values
                    if np.isnan(values).all():
                        continue
                    row = {**place, "scheme": scheme, "measure": name, "unit": study[name].attrs["units"]}
                    row |= {"replicates": int((~np.isnan(values)).sum())}
                    row |= _columns("", mean_interval(values))
                    if name in COMPARED:
                        other = reference[name].sel(place).values
                        row |= _columns("ratio_", ratio_interval(values, other))
                        row |= _columns("difference_", difference_interval(values, other))
                    rows.append(row)
    return pd.DataFrame(rows)


def _columns(prefix: str, interval: Any) -> dict[str, float]:
    return {
        f"{prefix}{name}": float(value) for name, value in zip(("mean", "low", "high"), interval, strict=True)
    }
