"""The stages of a study of local policies, from a log to its dataset: each task calls one of these functions.

Every stage reads files, calls the library and writes its result whole or not at all. Equal
configuration gives equal bits; what differs from one execution to the next (host, time, command) goes to a
sidecar beside the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.prepare import sources
from gridsched.experiments.schedulers import scheduler_made
from gridsched.metrics import jobs as metrics
from gridsched.nodes import draw_failures
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.local.study.config import RECORDED, FailuresConfig, LocalStudy
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.characterisation import characterise

# --- workloads ------------------------------------------------------------------------------------


def characterise_workload(workload: str | Path, target: str | Path) -> None:
    """Write what a prepared workload looks like."""
    made, _ = results.workload_from_dataset(results.read(workload))
    files.write(characterise(made), target)


# --- simulations ----------------------------------------------------------------------------------


def simulate_run(study: LocalStudy, workload: str | Path, target: str | Path) -> None:
    """Simulate the only run of a study, verify its schedule and write it."""
    jobs, cluster = results.workload_from_dataset(files.shared(workload))
    failures = study.scenarios[0].failures
    if failures is not None:
        cluster = with_failures(cluster, failures, jobs)
    run = simulate(
        jobs,
        cluster,
        scheduler_made(study.schedulers[0]),
        estimates=study.estimates[0],
        kill=study.kill,
        overrun=study.overrun,
        passes=study.passes,
    )
    verify(run)
    run.attrs.update(study=study.name, verified=1)
    files.write(run, target)


def with_failures(cluster: Cluster, failures: FailuresConfig, jobs: Workload) -> Cluster:
    """The cluster with failures during twice the time in which jobs are submitted."""
    span = int(jobs.submit_time[-1] - jobs.submit_time[0])
    events = draw_failures(
        cluster.node_names,
        until=int(jobs.submit_time[0]) + 2 * span,
        mean_time_between=failures.mean_time_between,
        mean_repair=failures.mean_repair,
        shape=failures.shape,
        rack=failures.rack,
        seed=failures.seed,
    )
    return replace(
        cluster,
        events=events,
        requeue=failures.requeue,
        checkpoint_interval=failures.checkpoint_interval,
        checkpoint_cost=failures.checkpoint_cost,
    )


# --- aggregation ----------------------------------------------------------------------------------


def summarise_workload(study: LocalStudy, runs: Sequence[str | Path], target: str | Path) -> None:
    """Condense all runs of one workload, in the order of the study, to one dataset."""
    summaries: dict[tuple[str, str], xr.Dataset] = {}
    for (estimate, label), path in zip(product(study.estimates, study.labels), runs, strict=True):
        run = results.read(path)
        summaries[estimate, label] = _summary(run, study)
        if (estimate, RECORDED) not in summaries:
            history = metrics.recorded(run)
            if history is not None:
                summaries[estimate, RECORDED] = _summary(history, study)
    schemes = [scheme for scheme in (*study.labels, RECORDED) if (study.estimates[0], scheme) in summaries]
    rows = [
        xr.concat(
            [summaries[estimate, scheme] for scheme in schemes],
            dim=pd.Index(schemes, name="scheme"),
            join="exact",
            combine_attrs="drop_conflicts",
        )
        for estimate in study.estimates
    ]
    whole = xr.concat(
        rows, dim=pd.Index(study.estimates, name="estimate"), join="exact", combine_attrs="drop_conflicts"
    )
    files.write(whole, target)


def _summary(run: xr.Dataset, study: LocalStudy) -> xr.Dataset:
    """Metrics of one run as the study wants them; counts of the run become variables."""
    settings = study.metrics
    summary = metrics.summarise(
        run,
        warm_up=settings.warm_up,
        cool_down=settings.cool_down,
        batches=settings.batches,
        bins=settings.bins,
        long_run_time=settings.classes.long,
        wide_processors=settings.classes.wide,
    )
    for name, long_name in (
        ("corrections", "estimates that were outrun"),
        ("jobs_killed", "jobs that ended at their requested time"),
    ):
        summary[name] = ((), run.attrs.get(name, 0), {"long_name": long_name, "units": "1"})
    return summary


def aggregate_study(
    study: LocalStudy,
    summaries: Mapping[str, str | Path],
    workloads: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Put the summaries of all workloads into the dataset of the study, with paired differences.

    Parameters
    ----------
    study : LocalStudy
        The study.
    summaries, workloads : mapping of workload name to path
        Results of `summarise_workload` and `prepare_workload`.
    target : path
        The dataset.
    """
    parts = [results.read(path) for path in summaries.values()]
    whole = xr.concat(
        parts, dim=pd.Index(list(summaries), name="workload"), join="outer", combine_attrs="drop_conflicts"
    )
    order = [scheme for scheme in (*study.labels, RECORDED) if scheme in whole["scheme"].values]
    whole = whole.sel(scheme=order)
    whole = whole.merge(metrics.difference(whole, whole.sel(scheme=study.reference_label, drop=True)))
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    whole = whole.merge(sources(logs, "workload"))
    whole.attrs = {
        **{key: value for key, value in whole.attrs.items() if key not in ("title", "workload")},
        **study.attributes(),
        "kill": int(study.kill),
        "passes": study.passes,
    }
    files.write(whole, target)


def means_table(study: xr.Dataset) -> pd.DataFrame:
    """One row for each workload, estimate, scheme and job class that has jobs, with means and intervals."""
    names = [
        f"{metric}_{part}"
        for metric in metrics.METRICS
        for part in ("mean", "mean_low", "mean_high", "difference", "difference_low", "difference_high")
    ]
    by_run = ["utilisation", "makespan", "queue_length_mean", "queue_length_max"]
    keys = ["workload", "estimate", "scheme", "job_class"]
    frame = study[[*names, *by_run, "jobs"]].to_dataframe(dim_order=keys).reset_index()
    frame = frame[frame["wait_time_mean"].notna()]
    return frame[[*keys, "jobs", *names, *by_run]]
