"""The stages of a study, from a log to its dataset: each workflow rule calls one of these functions.

Every stage reads files, calls the library and writes its result whole or not at all. Equal
configuration gives equal bits; what differs from one execution to the next (host, time, command) goes to a
sidecar beside the dataset.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import metrics, results
from gridsched.errors import ConfigurationError
from gridsched.io import atomic_write
from gridsched.platforms import Cluster
from gridsched.simulation import machine_of, simulate
from gridsched.study import config as configuration
from gridsched.study.config import RECORDED, StudyConfig, WorkloadConfig
from gridsched.study.runs import Run, run_table
from gridsched.traces import clean, read_swf, select_window
from gridsched.verifier import verify
from gridsched.workloads import (
    FModel,
    Machine,
    Modal,
    Multiple,
    SizeModel,
    Workload,
    calibrate_exponent,
    load_machines,
    synthesise,
)
from gridsched.workloads.characterisation import characterise
from gridsched.workloads.estimates import EstimateModel
from gridsched.workloads.table import add_counts

# --- workloads ------------------------------------------------------------------------------------


def prepare_workload(workload: WorkloadConfig, seed: int, log: str | Path | None, target: str | Path) -> None:
    """Read, cut and clean a log, or draw a synthetic workload, and write it with the cluster that replays it.

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
    if workload.jobs is not None:
        made, cluster = _written_out(workload)
    elif workload.synthetic is not None:
        made, cluster = _synthetic(workload, seed)
    elif log is not None:
        made, cluster = _from_log(workload, Path(log))
    else:
        raise ConfigurationError(f"workload {workload.name}: no log to read")
    _write(results.workload_dataset(made, cluster), target)


def _from_log(workload: WorkloadConfig, log: Path) -> tuple[Workload, Cluster]:
    """Window of a log, cleaned for the cluster that replays it."""
    made = read_swf(log, name=workload.name)
    if workload.cluster.processors is None:
        default = machine_of(made)
    else:
        default = Cluster(processors=workload.cluster.processors, name=workload.name)
    cluster = workload.cluster.cluster(default)
    if workload.window is not None:
        made = select_window(made, **workload.window.model_dump())
    made = _without_queues(made, workload.leave_out_queue)
    made = clean(made, processors=cluster.processors, statuses=frozenset(workload.leave_out_status))
    return made, cluster


def _without_queues(workload: Workload, queues: Sequence[int]) -> Workload:
    """Leave out the jobs of some queues, counted."""
    counts = {f"queue {queue}": int((workload.queue == queue).sum()) for queue in queues}
    kept = ~np.isin(workload.queue, queues)
    return workload.select(kept, left_out=add_counts(workload.left_out, counts))


def _written_out(workload: WorkloadConfig) -> tuple[Workload, Cluster]:
    """Workload whose jobs the configuration lists."""
    submit_time, run_time, requested_time, processors = np.array(workload.jobs, np.int64).T
    made = Workload(
        name=workload.name,
        submit_time=submit_time,
        run_time=run_time,
        requested_time=requested_time,
        requested_processors=processors,
        checksum=hashlib.sha256(json.dumps(workload.jobs).encode()).hexdigest(),
    )
    cluster = workload.cluster.cluster(
        Cluster(processors=workload.cluster.processors or 1, name=workload.name)
    )
    return clean(made, processors=cluster.processors), cluster


def _synthetic(workload: WorkloadConfig, seed: int) -> tuple[Workload, Cluster]:
    """Workload drawn for a machine of the superscheduler paper, whose nodes run one job each."""
    model = workload.synthetic
    assert model is not None
    machines = load_machines()
    if model.machine not in machines:
        raise ConfigurationError(
            f"workload {workload.name}: unknown machine {model.machine!r}; use one of {', '.join(machines)}"
        )
    machine = machines[model.machine]
    drawn = synthesise(
        machine,
        seed=_derived_seed(seed, workload.name),
        jobs=model.jobs,
        duration=model.duration,
        sizes=_size_model(model.sizes, machine),
        estimates=_estimate_model(model.estimates),
        load_scale=model.load_scale,
    )
    cluster = workload.cluster.cluster(
        Cluster(
            processors=machine.processors,
            processors_per_node=machine.processors_per_node,
            node_exclusive=True,
            name=workload.name,
        )
    )
    named = drawn.select(slice(None), name=workload.name)
    return clean(named, processors=cluster.processors), cluster


def _size_model(sizes: configuration.Sizes, machine: Machine) -> SizeModel:
    exponent = sizes.exponent
    if exponent is None and sizes.weighting == "power-law" and machine.utilisation is not None:
        exponent = calibrate_exponent(machine, machine.utilisation, fill=sizes.fill)
    if exponent is None:
        return SizeModel(weighting=sizes.weighting, fill=sizes.fill)
    return SizeModel(weighting=sizes.weighting, exponent=exponent, fill=sizes.fill)


def _estimate_model(estimates: configuration.Estimates) -> EstimateModel:
    if estimates.model == "f-model":
        return FModel(estimates.f)
    if estimates.model == "multiple":
        return Multiple(estimates.f)
    return Modal(max_estimate=estimates.max_estimate, longer=estimates.longer)


def _derived_seed(seed: int, name: str) -> int:
    """Seed of one workload, the same in every study that draws it."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8])


def characterise_workload(workload: str | Path, target: str | Path) -> None:
    """Write what a prepared workload looks like."""
    made, _ = results.workload_from_dataset(results.read(workload))
    _write(characterise(made), target)


# --- simulations ----------------------------------------------------------------------------------


def simulate_chunk(study: StudyConfig, runs: Sequence[Run], workload: str | Path, target: str | Path) -> None:
    """Simulate runs of one workload, verify every schedule and write them in one dataset."""
    jobs, cluster = results.workload_from_dataset(results.read(workload))
    policies = dict(zip(study.schemes, study.policies, strict=True))
    datasets = []
    for run in runs:
        dataset = simulate(
            jobs,
            cluster,
            configuration.local_policy(policies[run.scheme]),
            estimates=run.estimate,
            kill=study.kill,
            overrun=study.overrun,
            passes=study.passes,
        )
        verify(dataset)
        datasets.append(dataset)
    stacked = results.stack_runs(datasets, [run.identifier for run in runs])
    stacked.attrs.update(study=study.name, configuration_hash=study.checksum(), verified=1)
    _write(stacked, target)


# --- aggregation ----------------------------------------------------------------------------------


def summarise_workload(study: StudyConfig, chunks: Sequence[str | Path], target: str | Path) -> None:
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
    _write(whole, target)


def _summary(run: xr.Dataset, study: StudyConfig) -> xr.Dataset:
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
    study: StudyConfig,
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
    study : StudyConfig
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
        whole = whole.merge(_counts(kind, logs))
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
    for table, path in ((means_table(whole), means), (run_table(study, chunk_size), runs)):
        with atomic_write(path) as temporary:
            table.to_csv(temporary, index=False)
    _write(whole, target)


def _counts(kind: str, logs: Mapping[str, Workload]) -> xr.Dataset:
    """Jobs left out or repaired, by workload and reason."""
    reasons = sorted({reason for log in logs.values() for reason in getattr(log, kind)})
    values = [[getattr(log, kind).get(reason, 0) for reason in reasons] for log in logs.values()]
    variable = xr.Variable(
        ("workload", f"{kind}_reason"),
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


# --- files ----------------------------------------------------------------------------------------


def _write(dataset: xr.Dataset, target: str | Path) -> None:
    """Write a dataset and, before it, its sidecar: the dataset is what says that a stage is done."""
    with atomic_write(sidecar(target)) as temporary:
        temporary.write_text(json.dumps(_circumstances(), indent=1) + "\n", encoding="utf-8")
    results.write(dataset, target)


def sidecar(target: str | Path) -> Path:
    """File beside a dataset that says how this copy was made."""
    return Path(target).with_suffix(".made.json")


def _circumstances() -> dict[str, str]:
    """What may differ between two executions of the same stage."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "command": " ".join(sys.argv),
        "commit": _commit(),
    }


def _commit() -> str:
    """Commit of the checkout that gridsched runs from, if it is one."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()
