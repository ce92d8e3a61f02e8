"""The stages of a study of sequences: all sequences of a log under one scheduler, and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.engine import committed
from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.sequences.config import SequenceBackfilling, SequenceStudy, WaitName
from gridsched.metrics.jobs import bounded_slowdown
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import ORDERS, OrderName
from gridsched.replication import mean_interval
from gridsched.results import Schedule, in_one_piece, run_dataset
from gridsched.submission import cluster_of, labels_of
from gridsched.traces import read_swf
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

_UNKNOWN_RUN_TIME = 10
"""Seconds that jobs run whose log does not say how long."""


def run_sequences(
    workload: str,
    processors: int | None,
    starts: Sequence[int],
    length: int,
    order: OrderName,
    backfilling: SequenceBackfilling,
    waits: WaitName,
    log: str | Path,
    target: str | Path,
) -> None:
    """Run all sequences of a log under one scheduler.

    Parameters
    ----------
    workload : str
        Name in messages.
    processors : int, optional
        Of the cluster; by default as many as the log says.
    starts : sequence of int
        Places of the jobs at which sequences begin.
    length : int
        Jobs of a sequence.
    order : str
        Key of `gridsched.policies.local.ORDERS`.
    backfilling : {"none", "shadow"}
        Whether other jobs start in the shadow of the chosen one.
    waits : {"unset", "true"}
        What scores know of waits.
    log : path
        The log, in the Standard Workload Format.
    target : path
        Dataset to write: bounded_slowdown, utilisation, utilisation_to_last_start and first_job
        on `replicate`: a sequence each.

    Raises
    ------
    ConfigurationError
        If a sequence goes beyond the log, or a job is larger than the cluster.
    """
    read = read_swf(log, name=workload)
    cluster = Cluster(processors=processors or cluster_of(read).processors, name=workload)
    jobs = published_jobs(read)
    rows = []
    for start in starts:
        if start + length > len(jobs):
            raise ConfigurationError(
                f"{workload}: a sequence from {start} on needs {start + length} jobs, the log has {len(jobs)}"
            )
        part = jobs.select(np.arange(start, start + length))
        rows.append(_measured(_simulated(part, cluster, order, backfilling, waits)))
    columns = {
        name: ("replicate", np.array([row[name] for row in rows]), {"long_name": text, "units": "1"})
        for name, text in _MEASURES.items()
    }
    columns["first_job"] = (
        "replicate",
        np.array(starts, np.int64),
        {"long_name": "place of the first job of the sequence in the log", "units": "1"},
    )
    whole = xr.Dataset(columns)
    whole.attrs = {
        **{f"left_out: {reason}": count for reason, count in jobs.left_out.items()},
        **{f"repaired: {reason}": count for reason, count in jobs.repaired.items()},
        **results.provenance(),
    }
    files.write(whole, target)


_MEASURES = {
    "bounded_slowdown": "mean bounded slowdown of the jobs, threshold 10 s",
    "utilisation": "work over what the cluster can do until the last end",
    "utilisation_to_last_start": "work over what the cluster can do until the last start",
}


def published_jobs(read: Workload) -> Workload:
    """Jobs of a log as the published simulator reads them.

    Processors are the larger of the requested and the allocated ones; a job without requested time asks for
    its run time; jobs without run time are left out, those whose run time is unknown run for 10 s.
    """
    size = np.maximum(
        np.asarray(read.requested_processors, np.int64), np.asarray(read.allocated_processors, np.int64)
    )
    run = np.asarray(read.run_time, np.int64)
    requested = np.asarray(read.requested_time, np.int64)
    unknown, none = run < 0, requested < 0
    run = np.where(unknown, _UNKNOWN_RUN_TIME, run)
    kept = np.flatnonzero((run > 0) & (size > 0))
    made = Workload(
        name=read.name,
        job_number=read.job_number[kept],
        submit_time=read.submit_time[kept],
        run_time=run[kept],
        requested_time=np.where(none, np.asarray(read.run_time, np.int64), requested)[kept],
        requested_processors=size[kept],
        acknowledgement=read.acknowledgement,
        checksum=read.checksum,
        left_out=add_counts(read.left_out, {"without run time or size": len(run) - len(kept)}),
        repaired=add_counts(
            read.repaired,
            {"unknown run time": int(unknown[kept].sum()), "no requested time": int(none[kept].sum())},
        ),
    )
    return made.select(np.argsort(made.submit_time, kind="stable"))


def _simulated(
    jobs: Workload, cluster: Cluster, order: OrderName, backfilling: SequenceBackfilling, waits: WaitName
) -> xr.Dataset:
    """A verified run of one sequence."""
    size = np.asarray(jobs.processors, np.int64)
    if size.max() > cluster.processors:
        raise ConfigurationError(
            f"{jobs.name}: a job asks for {size.max()} of {cluster.processors} processors; give processors"
        )
    records = np.empty(len(jobs), JOB)
    records["submit"], records["run"] = jobs.submit_time, jobs.run_time
    records["estimate"], records["processors"] = jobs.requested_time, size
    state = committed.allocate(records, labels_of(jobs), cluster.processors)
    score = scores.SCORE.compile(ORDERS[order])
    committed.schedule(state, backfilling == "shadow", waits == "true", score)
    run_time = np.asarray(jobs.run_time, np.int64)
    home = np.zeros(len(jobs), np.int64)
    schedule = Schedule(
        start_time=state.starts,
        run_time=run_time,
        segments=in_one_piece(state.starts, run_time, home, size),
    )
    run = run_dataset(jobs, home, [cluster], schedule, {"scheme": f"committed {order}"})
    verify(run)
    return run


def _measured(run: xr.Dataset) -> dict[str, float]:
    """Measures of one sequence."""
    start, end = run["start_time"].to_numpy(), run["end_time"].to_numpy()
    first = int(run["submit_time"].min())
    work = float((run["processors"] * run["run_time"]).sum())
    processors = int(run["cluster_processors"].sum())
    return {
        "bounded_slowdown": float(
            bounded_slowdown(end - run["submit_time"].to_numpy(), run["run_time"].to_numpy()).mean()
        ),
        "utilisation": work / (processors * float(end.max() - first)),
        "utilisation_to_last_start": work / (processors * float(start.max() - first)),
    }


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_sequence_study(
    study: SequenceStudy,
    runs: Mapping[str, Mapping[str, Mapping[str, Sequence[str | Path]]]],
    target: str | Path,
) -> None:
    """Put all runs into the dataset of the study.

    Parameters
    ----------
    study : SequenceStudy
        The study.
    runs : mapping of workload to mapping of backfilling to mapping of waits to paths
        Results of `run_sequences`, in the order of the queue orders.
    target : path
        The dataset: variables of the runs on `workload`, `backfilling`, `waits`, `order` and `replicate`.
    """
    by_workload = []
    for each in runs.values():
        by_backfilling = []
        for by_waits in each.values():
            parts = [
                _together([results.read(path) for path in paths], "order", study.orders)
                for paths in by_waits.values()
            ]
            by_backfilling.append(_together(parts, "waits", study.waits))
        by_workload.append(_together(by_backfilling, "backfilling", study.backfilling))
    whole = _together(by_workload, "workload", [workload.name for workload in study.workloads])
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "configuration_hash": study.checksum(),
        "length": study.length,
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def _together(parts: Sequence[xr.Dataset], dimension: str, labels: Sequence[str]) -> xr.Dataset:
    """Parts along a new dimension."""
    return xr.concat(parts, dim=pd.Index(list(labels), name=dimension), combine_attrs="drop_conflicts")


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each log, backfilling, order and kind of waits: means over sequences with intervals."""
    rows: list[dict[str, Any]] = []
    names = ("workload", "backfilling", "order", "waits")
    for place in np.ndindex(*(whole.sizes[name] for name in names)):
        part = whole.isel(dict(zip(names, place, strict=True)))
        interval = mean_interval(part["bounded_slowdown"].to_numpy())
        rows.append(
            {
                **{name: str(part[name].values) for name in names},
                "bounded_slowdown": float(interval.mean),
                "low": float(interval.low),
                "high": float(interval.high),
                "utilisation": float(part["utilisation"].mean()),
                "utilisation_to_last_start": float(part["utilisation_to_last_start"].mean()),
            }
        )
    return pd.DataFrame(rows)
