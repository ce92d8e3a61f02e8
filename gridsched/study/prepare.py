"""Workloads of a study: logs cut and cleaned, synthetic ones drawn, written-out ones read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.simulation.clusters import machine_of
from gridsched.study import parts
from gridsched.study.parts import WorkloadConfig
from gridsched.traces import clean, read_swf, select_window
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
from gridsched.workloads.estimates import EstimateModel
from gridsched.workloads.table import add_counts


def make_workload(
    workload: WorkloadConfig, seed: int, log: str | Path | None, *, in_grid: bool = False
) -> tuple[Workload, Cluster]:
    """Workload and the cluster that replays it.

    Parameters
    ----------
    workload : WorkloadConfig
        What the study says of it.
    seed : int
        Seed of a synthetic workload.
    log : path, optional
        The SWF file of a log.
    in_grid : bool
        Whether the cluster is one of several, whose speeds are compared: the speed of a synthetic machine is
        then its clock speed in MHz, else 1.
    """
    if workload.jobs is not None:
        return _written_out(workload)
    if workload.synthetic is not None:
        return _synthetic(workload, seed, in_grid)
    if log is not None:
        return _from_log(workload, Path(log))
    raise ConfigurationError(f"workload {workload.name}: no log to read")


def _from_log(workload: WorkloadConfig, log: Path) -> tuple[Workload, Cluster]:
    """Window of a log, cleaned for the cluster that replays it."""
    made = selected_jobs(workload, log)
    if workload.cluster.processors is None:
        default = machine_of(made)
    else:
        default = Cluster(processors=workload.cluster.processors, name=workload.name)
    cluster = workload.cluster.cluster(default)
    made = clean(made, processors=cluster.processors, statuses=frozenset(workload.leave_out_status))
    return made, cluster


def selected_jobs(workload: WorkloadConfig, log: str | Path) -> Workload:
    """Window of a log without some queues; jobs that cannot be replayed are still in it."""
    made = read_swf(log, name=workload.name)
    if workload.window is not None:
        made = select_window(made, **workload.window.model_dump())
    return _without_queues(made, workload.leave_out_queue)


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


def _synthetic(workload: WorkloadConfig, seed: int, in_grid: bool) -> tuple[Workload, Cluster]:
    """Workload drawn for a machine of the superscheduler paper, whose nodes run one job each."""
    model = workload.synthetic
    assert model is not None
    machine = load_machines()[model.machine]
    drawn = synthesise(
        machine,
        seed=seed,
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
            speed=machine.mhz if in_grid else 1.0,
            name=workload.name,
        )
    )
    named = drawn.select(slice(None), name=workload.name)
    return clean(named, processors=cluster.processors), cluster


def _size_model(sizes: parts.Sizes, machine: Machine) -> SizeModel:
    if sizes.exponent is not None:
        return SizeModel(weighting=sizes.weighting, exponent=sizes.exponent, fill=sizes.fill)
    target = machine.utilisation if sizes.utilisation is None else sizes.utilisation
    if sizes.weighting != "power-law" or target is None:
        return SizeModel(weighting=sizes.weighting, fill=sizes.fill)
    return SizeModel(exponent=calibrate_exponent(machine, target, fill=sizes.fill), fill=sizes.fill)


def _estimate_model(estimates: parts.Estimates) -> EstimateModel:
    if estimates.model == "f-model":
        return FModel(estimates.f)
    if estimates.model == "multiple":
        return Multiple(estimates.f)
    return Modal(max_estimate=estimates.max_estimate, longer=estimates.longer)


def derived_seed(seed: int, name: str) -> int:
    """Seed of what has a name, the same in every study that draws it."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8])
