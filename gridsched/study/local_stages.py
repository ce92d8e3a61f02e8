"""The stages of a study of local policies, from a log to its dataset: each rule calls one of these functions.

Every stage reads files, calls the library and writes its result whole or not at all. Equal
configuration gives equal bits; what differs from one execution to the next (host, time, command) goes to a
sidecar beside the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.metrics import jobs as metrics
from gridsched.simulation.clusters import simulate
from gridsched.study import files
from gridsched.study.config import RECORDED, LocalStudy
from gridsched.study.parts import WorkloadConfig, local_policy
from gridsched.study.prepare import derived_seed, make_workload
from gridsched.study.runs import Run, run_table
from gridsched.verification.runs import verify
from gridsched.workloads import Workload
from gridsched.workloads.characterisation import characterise

# --- workloads ------------------------------------------------------------------------------------


def prepare_workload(workload: WorkloadConfig, seed: int, log: str | Path | None, target: str | Path) -> None:
    """Make a workload and write it with the cluster that replays it.

    Parameters
    ----------
    workload : WorkloadConfig
        What the study says of it.
    seed : int
        Seed of the whole configuration.
    log : path, optional
        The SWF file of a log.
    target : path
        Dataset to write.
    """
    made, cluster = make_workload(workload, derived_seed(seed, workload.name), log)
    files.write(results.workload_dataset(made, cluster), target)


def characterise_workload(workload: str | Path, target: str | Path) -> None:
    """Write what a prepared workload looks like."""
    made, _ = results.workload_from_dataset(results.read(workload))
    files.write(characterise(made), target)


# --- simulations ----------------------------------------------------------------------------------


def simulate_chunk(study: LocalStudy, runs: Sequence[Run], workload: str | Path, target: str | Path) -> None:
    """Simulate runs of one workload, verify every schedule and write them in one dataset."""
    jobs, cluster = results.workload_from_dataset(results.read(workload))
    policies = dict(zip(study.schemes, study.policies, strict=True))
    datasets = []
    for run in runs:
        dataset = simulate(
            jobs,
            cluster,
            local_policy(policies[run.scheme]),
            estimates=run.estimate,
            kill=study.kill,
            overrun=study.overrun,
            passes=study.passes,
        )
        verify(dataset)
        datasets.append(dataset)
    stacked = results.stack_runs(datasets, [run.identifier for run in runs])
    stacked.attrs.update(study=study.name, configuration_hash=study.checksum(), verified=1)
    files.write(stacked, target)


# --- aggregation ----------------------------------------------------------------------------------


def summarise_workload(study: LocalStudy, chunks: Sequence[str | Path], target: str | Path) -> None:
    """Condense all runs of one workload to one dataset over estimates and schemes."""
    summaries: dict[tuple[str, str], xr.Dataset] = {}
    for path in chunks:
        stacked = results.read(path)
        for index in range(stacked.sizes["run"]):
            run = results.unstack_run(stacked, index)
            estimate = run.attrs["estimates"]
            summaries[estimate, run.attrs["scheme"]] = _summary(run, study)
            if (estimate, RECORDED) not in summaries:
                history = metrics.recorded(run)
                if history is not None:
                    summaries[estimate, RECORDED] = _summary(history, study)
    schemes = [scheme for scheme in (*study.schemes, RECORDED) if (study.estimates[0], scheme) in summaries]
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
    chunk_size: int,
    target: str | Path,
    *,
    means: str | Path,
    runs: str | Path,
) -> None:
    """Put the summaries of all workloads into the dataset of the study, with paired differences.

    Parameters
    ----------
    study : LocalStudy
        The study.
    summaries, workloads : mapping of workload name to path
        Results of `summarise_workload` and `prepare_workload`.
    chunk_size : int
        Runs of one workload in one dataset.
    target, means, runs : path
        The dataset; its means and intervals, and the table of runs, as CSV.
    """
    parts = [results.read(path) for path in summaries.values()]
    whole = xr.concat(
        parts, dim=pd.Index(list(summaries), name="workload"), join="outer", combine_attrs="drop_conflicts"
    )
    order = [scheme for scheme in (*study.schemes, RECORDED) if scheme in whole["scheme"].values]
    whole = whole.sel(scheme=order)
    whole = whole.merge(metrics.difference(whole, whole.sel(scheme=study.reference_scheme, drop=True)))
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    for kind in ("left_out", "repaired"):
        whole = whole.merge(counts_table(kind, logs, "workload"))
    whole["jobs_without_requested_time"] = (
        "workload",
        [int((log.requested_time <= 0).sum()) for log in logs.values()],
        {"long_name": "jobs whose log has no requested time", "units": "1"},
    )
    whole["acknowledgement"] = ("workload", [log.acknowledgement for log in logs.values()])
    whole["workload_checksum"] = ("workload", [log.checksum for log in logs.values()])
    whole.attrs = {
        **{key: value for key, value in whole.attrs.items() if key not in ("title", "workload")},
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "reference": study.reference_scheme,
        "configuration_hash": study.checksum(),
        "kill": int(study.kill),
        "overrun": study.overrun,
        "passes": study.passes,
        **results.provenance(),
    }
    files.write_table(means_table(whole), means)
    files.write_table(run_table(study, chunk_size), runs)
    files.write(whole, target)


def counts_table(kind: str, logs: Mapping[str, Workload], dimension: str) -> xr.Dataset:
    """Jobs left out or repaired (`kind`), by workload, on a dimension of this name, and reason."""
    reasons = sorted({reason for log in logs.values() for reason in getattr(log, kind)})
    values = [[getattr(log, kind).get(reason, 0) for reason in reasons] for log in logs.values()]
    variable = xr.Variable(
        (dimension, f"{kind}_reason"),
        np.array(values, np.int64).reshape(len(logs), len(reasons)),
        {"long_name": f"jobs {kind.replace('_', ' ')}", "units": "1"},
    )
    return xr.Dataset({kind: variable}, coords={f"{kind}_reason": np.array(reasons, dtype=object)})


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
