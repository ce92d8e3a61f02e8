"""Workloads of a study: logs cut and cleaned, synthetic ones drawn, written-out ones read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Literal

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments import files, parts
from gridsched.experiments.parts import ResamplingConfig, ShakingConfig, WorkloadConfig
from gridsched.platform import Cluster
from gridsched.submission import cluster_of
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
from gridsched.workloads.dependencies import with_preceding_jobs
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
    if workload.processors is None:
        default = cluster_of(made)
    else:
        default = Cluster(processors=workload.processors, name=workload.name)
    cluster = workload.cluster(default)
    made = clean(
        made,
        processors=cluster.processors,
        statuses=frozenset(workload.leave_out_status),
        cancelled=workload.cancelled,
    )
    made = with_preceding_jobs(made) if workload.preceding else made
    return made if workload.feedback is None else workload.feedback.made(made), cluster


def selected_jobs(workload: WorkloadConfig, log: str | Path) -> Workload:
    """Window of a log without the jobs that the study leaves out; others may not be fit to be replayed."""
    made = read_swf(log, name=workload.name)
    if workload.window is not None:
        made = select_window(made, **workload.window.model_dump())
    made = without(made, "queue", workload.leave_out_queue)
    return _without_incomplete(made) if workload.leave_out_incomplete else made


def _without_incomplete(workload: Workload) -> Workload:
    """Leave out the jobs without a length or a requested time, counted."""
    instant, unasked = workload.run_time == 0, workload.requested_time <= 0
    counts = {"run time 0": int(instant.sum()), "no requested time": int((unasked & ~instant).sum())}
    return workload.select(~(instant | unasked), left_out=add_counts(workload.left_out, counts))


def without(workload: Workload, column: Literal["queue", "status"], codes: Sequence[int]) -> Workload:
    """Leave out the jobs of some queues or statuses, counted."""
    values = getattr(workload, column)
    counts = {f"{column} {code}": int((values == code).sum()) for code in codes}
    return workload.select(~np.isin(values, codes), left_out=add_counts(workload.left_out, counts))


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
    cluster = workload.cluster(Cluster(processors=workload.processors or 1, name=workload.name))
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
        estimates=_estimate_model(model.requested_times),
        load_scale=model.load_scale,
    )
    cluster = workload.cluster(
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


def _estimate_model(estimates: parts.EstimatesConfig) -> EstimateModel:
    if estimates.model == "f-model":
        return FModel(estimates.f)
    if estimates.model == "multiple":
        return Multiple(estimates.f)
    return Modal(max_estimate=estimates.max_estimate, longer=estimates.longer)


def derived_seed(seed: int, name: str) -> int:
    """Seed of what has a name, the same in every study that draws it."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8])


def scheduler_seed(seed: int, scenario: str, replicate: int) -> int:
    """Seed of what schedulers draw in a replicate of a scenario, the same for all schedulers."""
    return derived_seed(seed, f"{scenario}\n{replicate}") % 2**31


# --- tasks ----------------------------------------------------------------------------------------


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


def prepare_grids(
    scenario: str,
    clusters: Sequence[WorkloadConfig],
    replicates: Sequence[int],
    seed: int,
    logs: Mapping[str, str | Path],
    target: str | Path,
    *,
    resampling: ResamplingConfig | None = None,
    shaking: ShakingConfig | None = None,
) -> None:
    """Make the workloads of all clusters for some replicates and write them with the clusters.

    A synthetic workload depends on the seed, the name of its cluster and the replicate, not on the scenario:
    the same cluster in two scenarios has the same draws, so that scenarios can be compared.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    clusters : sequence of WorkloadConfig
        The clusters.
    replicates : sequence of int
        Numbers of the replicates, from 0.
    seed : int
        Seed of the whole configuration.
    logs : mapping of cluster name to path
        SWF files of the clusters that replay a log.
    target : path
        Dataset to write.
    resampling, shaking : ResamplingConfig, ShakingConfig, optional
        How the replicates of logs differ; without these all are the log as it is.
    """
    variation = resampling or shaking
    grids = {replicate: _grid(clusters, replicate, seed, logs, variation) for replicate in replicates}
    whole = results.grids_dataset(grids)
    whole.attrs["scenario"] = scenario
    files.write(whole, target)


def _grid(
    clusters: Sequence[WorkloadConfig],
    replicate: int,
    seed: int,
    logs: Mapping[str, str | Path],
    variation: ResamplingConfig | ShakingConfig | None,
) -> Sequence[tuple[Workload, Cluster]]:
    pairs = []
    for config in clusters:
        own = derived_seed(seed, f"{config.name}\n{replicate}")
        workload, cluster = make_workload(config, own, logs.get(config.name), in_grid=len(clusters) > 1)
        if variation is not None and config.is_log:
            workload = variation.made(workload, own)
        pairs.append((workload, cluster))
    return pairs


# --- what is known of workloads -------------------------------------------------------------------


def _by_reason(
    counts: Sequence[Mapping[str, int]], kind: str, dims: Sequence[str], shape: Sequence[int], words: str
) -> xr.Dataset:
    """Jobs left out or repaired (`kind`) on some dimensions, and reason."""
    reasons = sorted({reason for found in counts for reason in found})
    values = np.array([[found.get(reason, 0) for reason in reasons] for found in counts], np.int64)
    attributes = {"long_name": f"jobs {kind.replace('_', ' ')}{words}", "units": "1"}
    return xr.Dataset(
        {kind: ((*dims, f"{kind}_reason"), values.reshape(*shape, len(reasons)), attributes)},
        {f"{kind}_reason": np.array(reasons, dtype=object)},
    )


def sources(logs: Mapping[str, Workload], dimension: str) -> xr.Dataset:
    """Where jobs come from, and how many were left out or repaired, by workload on a dimension."""
    own = list(logs.values())
    counts = {"left_out": [log.left_out for log in own], "repaired": [log.repaired for log in own]}
    whole = xr.merge(_by_reason(each, kind, [dimension], [len(own)], "") for kind, each in counts.items())
    whole["jobs_without_requested_time"] = (
        dimension,
        [int((log.requested_time <= 0).sum()) for log in own],
        {"long_name": "jobs whose log has no requested time", "units": "1"},
    )
    whole["acknowledgement"] = (dimension, [log.acknowledgement for log in own])
    whole["workload_checksum"] = (dimension, [log.checksum for log in own])
    return whole.assign_coords({dimension: list(logs)})


def workload_facts(grids: Sequence[str | Path]) -> xr.Dataset:
    """What was left out or repaired by scenario and cluster, over replicates, and where jobs come from."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    counts: dict[str, dict[tuple[str, str], Counter[str]]] = {"left_out": {}, "repaired": {}}
    for chunk in map(results.read, grids):
        for log, cluster in chain.from_iterable(results.grids_from_dataset(chunk).values()):
            place = chunk.attrs["scenario"], cluster.name
            found.setdefault(place, []).append((log.checksum, log.acknowledgement))
            for kind, tables in counts.items():
                tables.setdefault(place, Counter()).update(getattr(log, kind))
    scenarios, names = (list(dict.fromkeys(labels)) for labels in zip(*found, strict=True))
    places = list(product(scenarios, names))
    dims, shape = ("scenario", "home"), (len(scenarios), len(names))
    checksums = [
        " ".join(dict.fromkeys(checksum for checksum, _ in found.get(place, []))) for place in places
    ]
    acknowledgements = [found[place][-1][1] if place in found else "" for place in places]
    facts = xr.Dataset(
        {
            "workload_checksum": (
                dims,
                np.reshape(checksums, shape),
                {"long_name": "SHA-256 of the workloads of all replicates, in their order"},
            ),
            "acknowledgement": (dims, np.reshape(acknowledgements, shape)),
        },
        {"scenario": scenarios, "home": names},
    )
    for kind, tables in counts.items():
        of_places = [tables.get(place, Counter()) for place in places]
        facts = facts.merge(_by_reason(of_places, kind, dims, shape, ", over all replicates"))
    return facts
