"""The stages of a study of a multicluster up to its runs: each task calls one of these functions.

The rate of arrivals at a workload level is looked for once, with MUSCLE; points of any study that need the
same rate share it. The jobs of a point are then drawn, with their deadlines, for all replicates; every scheme
replays them. Runs are simulated, verified and measured at once: what is kept are measures. Every schedule
follows, bit for bit, from the jobs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, grouped, labelled, table_of_runs
from gridsched.experiments.comparing import given_parameters, under
from gridsched.experiments.inputs import plain
from gridsched.experiments.kinds.multicluster.config import PointConfig
from gridsched.experiments.kinds.multicluster.example import measures_of
from gridsched.experiments.kinds.multicluster.levels import calibrate_rate
from gridsched.experiments.machines import machines_of_stream
from gridsched.experiments.measuring import Measuring, measured
from gridsched.experiments.parts import ResamplingConfig, ShakingConfig
from gridsched.experiments.prepare import derived_seed, make_workload, sources
from gridsched.experiments.schedulers import AnyScheduler, scheduler_made
from gridsched.platform import Platform, ResourceChange
from gridsched.simulation import simulate
from gridsched.submission import EstimateName
from gridsched.systems.multicluster.jobs import in_batches, synthesise_multicluster
from gridsched.systems.multicluster.muscle import weights_of
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.deadlines import draw_classes, draw_deadlines

CALIBRATED = 2
"""Replicates whose queues are averaged to meet a workload level."""

# --- workload levels ------------------------------------------------------------------------------


def calibrate_level(point: PointConfig, seed: int, target: str | Path) -> None:
    """Look for the rate of arrivals at which a scheme meets a workload level.

    Parameters
    ----------
    point : PointConfig
        See `PointConfig.calibration`.
    seed : int
        Seed of the whole configuration.
    target : path
        Dataset to write.
    """
    jobs: Any = point.jobs
    scheduler: Any = scheduler_made(point.scheduler(jobs.level_of))
    rate, queue = calibrate_rate(
        jobs.level,
        jobs.made(),
        point.platform,
        jobs=jobs.count,
        seeds=[_seed_of_jobs(seed, replicate) for replicate in range(CALIBRATED)],
        scheduler=scheduler,
        counts=jobs.level_counts,
    )
    whole = xr.Dataset(
        {
            "rate": ((), rate, attrs_of("arrivals in a unit of time", "1")),
            "queue": ((), queue, attrs_of("mean number of jobs in the queue", "1")),
        },
        attrs={
            "title": f"rate of arrivals at level {jobs.level:g}",
            "calibration": json.dumps(plain(point), sort_keys=True),
            **results.provenance(),
        },
    )
    files.write(whole, target)


def _seed_of_jobs(seed: int, replicate: int) -> int:
    """Seed of the jobs of a replicate, the same at every point of every study."""
    return derived_seed(seed, f"multicluster\n{replicate}")


# --- jobs -----------------------------------------------------------------------------------------


def prepare_point(
    point: PointConfig,
    replicate: int,
    seed: int,
    target: str | Path,
    *,
    rate: str | Path | None = None,
    log: str | Path | None = None,
    errors: Mapping[str, float] | None = None,
    resampling: ResamplingConfig | None = None,
    shaking: ShakingConfig | None = None,
) -> None:
    """Draw the jobs of a point and their deadlines, or read them from a log, for a replicate.

    The same jobs are drawn at every point of every study, as far as its distributions are the same; the rate
    of arrivals alone stretches them.

    Parameters
    ----------
    point : PointConfig
        The point.
    replicate : int
        Number of the replicate, from 0.
    seed : int
        Seed of the whole configuration.
    target : path
        Dataset to write.
    rate : path, optional
        Result of `calibrate_level`, for a point with a workload level.
    log : path, optional
        SWF file, for a point with a log.
    errors : mapping, optional
        Errors of runtime estimates, see `gridsched.experiments.comparing.under`.
    resampling, shaking : ResamplingConfig, ShakingConfig, optional
        How the log differs from replicate to replicate; without these it does not.
    """
    seed_of_jobs = _seed_of_jobs(seed, replicate)
    arrivals = queue = np.nan
    if rate is not None:
        arrivals, queue = (float(results.read(rate)[name]) for name in ("rate", "queue"))
    elif point.jobs.load is not None:
        arrivals = point.jobs.load * point.capacity / point.jobs.made().mean_work
    if log is None:
        workload = _drawn(point, seed_of_jobs, arrivals)
    else:
        own = derived_seed(seed, f"{point.name}\n{replicate}")
        workload = _from_log(point, log, resampling or shaking, own)
    workload = under(workload, **(errors or {}), seed=seed_of_jobs)
    jobs, classes = len(workload), [each.made() for each in point.classes]
    service_class = draw_classes(jobs, classes, seed=seed_of_jobs)
    generator = np.random.default_rng(derived_seed(seed_of_jobs, "entry"))
    at_cluster = generator.random(jobs) < point.jobs.at_clusters
    made = Workload(
        name=point.name,
        submit_time=workload.submit_time,
        run_time=workload.run_time,
        requested_time=workload.requested_time,
        requested_processors=workload.processors,
        acknowledgement=workload.acknowledgement,
        checksum=workload.checksum,
        left_out=workload.left_out,
        repaired=workload.repaired,
        home=np.where(at_cluster, generator.integers(0, len(point.clusters), jobs), -1),
        deadline=draw_deadlines(
            workload, classes, seed=seed_of_jobs, slowest=point.slowest, service_class=service_class
        ),
        gives_up_time=workload.gives_up_time,
        dependencies=workload.dependencies,
    )
    elapsed = int(workload.submit_time[-1] - workload.submit_time[0])
    work = float((workload.run_time * workload.processors).sum())
    further = {
        "service_class": ("job", service_class),
        "policy_seed": derived_seed(seed, f"multicluster policy\n{replicate}") % 2**31,
        "rate": arrivals,
        "calibrated_queue": queue,
        "offered_load": work / (elapsed * point.capacity) if elapsed else np.nan,
    }
    files.write(results.workload_dataset(made, point.largest).assign(further), target)


def _drawn(point: PointConfig, seed: int, rate: float) -> Workload:
    """Jobs that are drawn, at a rate or in batches."""
    jobs, batch = point.jobs, point.jobs.batch
    # Submit times of batches do not depend on the rate
    rate = rate if batch is None else 1.0
    workload = synthesise_multicluster(jobs.made(), jobs=jobs.count, rate=rate, seed=seed, name=point.name)
    return workload if batch is None else in_batches(workload, batch, slowest=point.slowest)


def _from_log(
    point: PointConfig, log: str | Path, variation: ResamplingConfig | ShakingConfig | None, seed: int
) -> Workload:
    """Jobs of a log, whose first one is submitted at 0, with shorter times between them if wished."""
    assert point.stream is not None
    processors = point.stream.processors or point.largest.processors
    workload, _ = make_workload(point.stream.model_copy(update={"processors": processors}), 0, log)
    workload = workload if variation is None else variation.made(workload, seed)
    elapsed = workload.submit_time - workload.submit_time[0]
    submit = np.floor(elapsed / point.jobs.speed_up).astype(np.int64)
    changed = workload.moved_times(submit - workload.submit_time)
    return workload.select(slice(None), submit_time=submit, **changed)


# --- runs -----------------------------------------------------------------------------------------


def simulate_run(
    point: PointConfig,
    scheduler: AnyScheduler,
    labels: Mapping[str, Any],
    estimates: str,
    jobs: str | Path,
    parameters: Mapping[str, Any],
    target: str | Path,
    *,
    seed: int = 0,
    replicates_are: str = "draws",
) -> None:
    """Simulate, verify and measure a scheduler at a point in a replicate.

    Parameters
    ----------
    point : PointConfig
        The point.
    scheduler : str or SchedulerConfig
        The scheduler.
    labels : mapping
        Scenario, scheduler and replicate.
    estimates : str
        What the study calls its estimates.
    jobs : path
        Result of `prepare_point`.
    parameters : mapping
        Of the scenario.
    target : path
        Measures to write.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    replicates_are : str
        What the replicates are.
    """
    prepared = files.shared(jobs)
    workload, _ = results.workload_from_dataset(prepared)
    made: Any = scheduler_made(scheduler)
    clusters = machines_of_stream(
        workload.submit_time, point.platform, point.clusters, seed, int(labels["replicate"])
    )
    # Errors are in the requested times
    name: Any = estimates if estimates in get_args(EstimateName) else "requested"
    run = simulate(
        workload,
        Platform(clusters, changes=[ResourceChange(*change) for change in point.changes]),
        made,
        estimates=name,
        seed=int(prepared["policy_seed"]),
        times="unit",
    )
    verify(run)
    if len(point.classes) > 1:
        run["service_class"] = prepared["service_class"]
        run.attrs["service_classes"] = ", ".join(each.name for each in point.classes)
    weights = weights_of(made.weights, point.platform)
    known = xr.Dataset(
        {
            "weight_over_deadline": ("cluster", [each.over_deadline for each in weights]),
            "weight_makespan": ("cluster", [each.makespan for each in weights]),
            "weight_idle": ("cluster", [each.idle for each in weights]),
            "cluster_processors": ("cluster", [float(each.processors) for each in point.platform]),
            "cluster_speed": ("cluster", [each.speed for each in point.platform]),
            **{name: prepared[name].variable for name in ("offered_load", "rate", "calibrated_queue")},
            "queue_growth": queue_growth(run),
        },
        {"cluster": [each.name for each in point.platform]},
    )
    done = labelled(
        measured(run, Measuring(quantiles=False)).combine_first(grouped(known)),
        **labels,
        estimates=estimates,
        scenario_parameters=parameters,
        scheduler_parameters={"system": made.system, **given_parameters(scheduler)},
        replicates_are=replicates_are,
    )
    files.write(done, target)


def queue_growth(run: xr.Dataset) -> float:
    """Mean number of collected jobs in the second half of the time in which jobs arrive, over the first.

    About 1 for a queue that has settled, more for one that grows. NaN where no job is collected in the first.
    """
    ran = run["job_round"].values >= 0
    submit = run["submit_time"].values[ran]
    handed_over = run["round_time"].values[run["job_round"].values[ran]]
    first, last = int(submit.min(initial=0)), int(submit.max(initial=0))
    edges = np.array([[first], [(first + last) // 2], [last]])
    inside = np.minimum(handed_over, edges[1:]) - np.maximum(submit, edges[:-1])
    before, after = np.maximum(inside, 0).sum(axis=1) / np.maximum(np.diff(edges[:, 0]), 1)
    return float(after / before) if before else np.nan


# --- the study ------------------------------------------------------------------------------------


def collect(
    runs: Sequence[str | Path],
    labels: Mapping[str, Sequence[Any]],
    attributes: Mapping[str, Any],
    jobs: Mapping[str, Sequence[str | Path]],
    target: str | Path,
    *,
    example: str | Path | None = None,
) -> None:
    """Put all runs, what is known of their jobs, and the worked example into the dataset of the study.

    Parameters
    ----------
    runs : sequence of paths
        Results of `simulate_run`.
    labels : mapping
        Labels of scenarios, schedulers and estimates, in the order of the study.
    attributes : mapping
        Of the dataset.
    jobs : mapping of scenario to paths
        Results of `prepare_point`, in the order of the replicates.
    target : path
        The dataset.
    example : path, optional
        Result of `example.write_example`.
    """
    whole = table_of_runs([results.read(path) for path in runs], labels)
    drawn = {
        name: [results.workload_from_dataset(results.read(path))[0] for path in paths]
        for name, paths in jobs.items()
    }
    facts = sources({name: workloads[0] for name, workloads in drawn.items()}, "prepared")
    facts["workload_checksum"] = (
        "prepared",
        [" ".join(dict.fromkeys(each.checksum for each in workloads)) for workloads in drawn.values()],
    )
    whole = whole.merge(facts.drop_vars("jobs_without_requested_time"))
    if example is not None:
        whole = whole.merge(measures_of(results.read(example)), combine_attrs="override")
    whole.attrs = {**attributes, "verified": 1, **results.provenance()}
    files.write(whole, target)
