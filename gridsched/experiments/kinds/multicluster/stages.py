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
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, grouped, labelled, table_of_runs
from gridsched.experiments.comparing import given_parameters, under
from gridsched.experiments.kinds.multicluster.config import JobsConfig, PointConfig
from gridsched.experiments.kinds.multicluster.example import measures_of
from gridsched.experiments.kinds.multicluster.levels import calibrate_rates
from gridsched.experiments.machines import machines_of_stream
from gridsched.experiments.measuring import Measuring, measured
from gridsched.experiments.parts import ResamplingConfig, ShakingConfig, WorkloadConfig
from gridsched.experiments.prepare import derived_seed, make_workload
from gridsched.experiments.schedulers import AnyScheduler, scheduler_made
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.submission import EstimateName
from gridsched.systems.multicluster.jobs import in_batches, synthesise_multicluster
from gridsched.systems.multicluster.muscle import weights_of
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.deadlines import draw_classes, draw_deadlines
from gridsched.workloads.dependencies import DEPENDENCY

Integers = NDArray[np.int64]

CALIBRATED = 2
"""Replicates whose queues are averaged to meet a workload level."""

COLUMNS: dict[str, tuple[str, str]] = {
    "submit_time": ("submit time", "s"),
    "run_time": ("run time on a cluster of speed 1", "s"),
    "requested_time": ("predicted run time on a cluster of speed 1", "s"),
    "processors": ("processors", "1"),
    "deadline": ("deadline", "s"),
    "service_class": ("index of the service class", "1"),
    "entry": ("index of the cluster where the job enters, -1 for the grid scheduler", "1"),
}
"""Columns of the jobs of a point: long name and unit."""

# --- workload levels ------------------------------------------------------------------------------


def calibrate_level(calibration: Mapping[str, Any], seed: int, target: str | Path) -> None:
    """Look for the rate of arrivals at which a scheme meets a workload level.

    Parameters
    ----------
    calibration : mapping
        See `study.config.PointConfig.calibration`.
    seed : int
        Seed of the whole configuration.
    target : path
        Dataset to write.
    """
    jobs = JobsConfig(**calibration["jobs"])
    clusters = [
        Cluster(name=f"C{number}", processors=processors, speed=speed)
        for number, (processors, speed) in enumerate(calibration["clusters"], start=1)
    ]
    scheduler: Any = scheduler_made(jobs.level_of, **calibration["parameters"])
    seeds = [_seed_of_jobs(seed, replicate) for replicate in range(CALIBRATED)]
    (found,) = calibrate_rates(
        [jobs.level],
        jobs.made(),
        clusters,
        jobs=jobs.count,
        seeds=seeds,
        scheduler=scheduler,
        counts=jobs.level_counts,
    )
    whole = xr.Dataset(
        {
            "rate": ((), found.rate, {"long_name": "arrivals in a unit of time", "units": "1"}),
            "queue": ((), found.queue, {"long_name": "mean number of jobs in the queue", "units": "1"}),
        },
        attrs={
            "title": f"rate of arrivals at level {jobs.level:g}",
            "calibration": json.dumps(dict(calibration), sort_keys=True),
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
    arrivals, queue = _rate(point, rate)
    variation = resampling or shaking
    own = derived_seed(seed, f"{point.name}\n{replicate}")
    read = None if point.stream is None else _from_log(point, log, variation, own)
    workload, columns = _jobs(point, _seed_of_jobs(seed, replicate), arrivals, read, errors or {})
    whole = xr.Dataset(
        {
            name: ("job", columns[name], {"long_name": long_name, "units": units})
            for name, (long_name, units) in COLUMNS.items()
        },
        {"replicate": replicate},
    )
    if workload.gives_up_time is not None:
        attributes = {"long_name": "time at which the user gives up, -1 for never", "units": "s"}
        whole["gives_up_time"] = ("job", workload.gives_up_time, attributes)
    if workload.dependencies is not None:
        for name in DEPENDENCY.names or ():
            whole[f"dependency_{name}"] = ("dependency", workload.dependencies[name].copy())
    whole["policy_seed"] = derived_seed(seed, f"multicluster policy\n{replicate}") % 2**31
    whole["offered_load"] = (
        (),
        _offered_load(workload, point.capacity),
        {"long_name": "work that arrives relative to what the clusters can do", "units": "1"},
    )
    whole["workload_checksum"] = workload.checksum
    whole.attrs = {
        "title": f"jobs of {point.name}",
        "point": point.name,
        "rate": np.nan if arrivals is None else arrivals,
        "calibrated_queue": queue,
        "left_out": json.dumps(workload.left_out, sort_keys=True),
        "repaired": json.dumps(workload.repaired, sort_keys=True),
        "acknowledgement": workload.acknowledgement,
        **results.provenance(),
    }
    files.write(whole, target)


def _rate(point: PointConfig, rate: str | Path | None) -> tuple[float | None, float]:
    """Arrivals in a unit of time, none for a log or batches; the queue for which they were set, or NaN."""
    if point.jobs.load is not None:
        return point.jobs.load * point.capacity / point.jobs.made().mean_work, np.nan
    if rate is None:
        return None, np.nan
    found = results.read(rate)
    return float(found["rate"]), float(found["queue"])


def _from_log(
    point: PointConfig,
    log: str | Path | None,
    variation: ResamplingConfig | ShakingConfig | None,
    seed: int,
) -> Workload:
    """Jobs of a log, whose first one is submitted at 0, with shorter times between them if wished."""
    config = point.stream
    assert isinstance(config, WorkloadConfig)
    if config.processors is None:
        most = max(cluster.processors for cluster in point.platform)
        config = config.model_copy(update={"processors": most})
    workload, _ = make_workload(config, 0, log)
    workload = workload if variation is None else variation.made(workload, seed)
    elapsed = workload.submit_time - workload.submit_time[0]
    submit = np.floor(elapsed / point.jobs.speed_up).astype(np.int64)
    changed = workload.moved_times(submit - workload.submit_time)
    return workload.select(slice(None), submit_time=submit, **changed)


def _jobs(
    point: PointConfig, seed: int, rate: float | None, read: Workload | None, errors: Mapping[str, float]
) -> tuple[Workload, dict[str, Integers]]:
    """Jobs of a replicate, and the columns of them that are kept."""
    config, classes = point.jobs, point.service_classes
    slowest = min(cluster.speed for cluster in point.platform)
    if read is None:
        rate = 1.0 if config.batch is not None else rate  # submit times of batches do not depend on it
        assert rate is not None
        workload = synthesise_multicluster(
            config.made(), jobs=config.count, rate=rate, seed=seed, name=point.name
        )
        if config.batch is not None:
            workload = in_batches(workload, config.batch, slowest=slowest)
    else:
        workload = read
    workload = under(workload, **errors, seed=seed)
    service_class = draw_classes(len(workload), classes, seed=seed)
    columns = {
        "submit_time": workload.submit_time,
        "run_time": workload.run_time,
        "requested_time": workload.requested_time,
        "processors": workload.processors,
        "deadline": draw_deadlines(
            workload, classes, seed=seed, slowest=slowest, service_class=service_class
        ),
        "service_class": service_class,
        "entry": _entries(point, len(workload), seed),
    }
    return workload, {name: np.asarray(values, np.int64) for name, values in columns.items()}


def _entries(point: PointConfig, jobs: int, seed: int) -> Integers:
    """Cluster where each job enters."""
    generator = np.random.default_rng(derived_seed(seed, "entry"))
    at_cluster = generator.random(jobs) < point.jobs.at_clusters
    return np.where(at_cluster, generator.integers(0, len(point.clusters), jobs), -1)


def _offered_load(workload: Workload, capacity: float) -> float:
    elapsed = int(workload.submit_time[-1] - workload.submit_time[0])
    work = float((workload.run_time * workload.processors).sum())
    return work / (elapsed * capacity) if elapsed else np.nan


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
    """
    drawn, replicate = files.shared(jobs), int(labels["replicate"])
    workload = Workload(
        name=point.name,
        submit_time=drawn["submit_time"].values,
        run_time=drawn["run_time"].values,
        requested_time=drawn["requested_time"].values,
        requested_processors=drawn["processors"].values,
        checksum=str(drawn["workload_checksum"].values),
        home=drawn["entry"].values,
        deadline=drawn["deadline"].values,
        gives_up_time=drawn["gives_up_time"].values if "gives_up_time" in drawn else None,
        dependencies=_dependencies(drawn),
    )
    made: Any = scheduler_made(scheduler)
    clusters = machines_of_stream(workload.submit_time, point.platform, point.clusters, seed, replicate)
    platform = Platform(clusters, changes=point.resource_changes)
    # Errors are in the requested times
    name: Any = estimates if estimates in get_args(EstimateName) else "requested"
    run = simulate(
        workload,
        platform,
        made,
        estimates=name,
        seed=int(drawn["policy_seed"]),
        times="unit",
    )
    verify(run)
    if len(point.classes) > 1:
        attributes = {"long_name": "index of the service class", "units": "1"}
        run["service_class"] = ("job", drawn["service_class"].values, attributes)
        run.attrs["service_classes"] = ", ".join(each.name for each in point.classes)
    whole = measured(run, Measuring(quantiles=False)).combine_first(grouped(_facts(point, made, drawn)))
    whole["queue_growth"] = (
        whole["jobs"].where(whole["group"] != ALL, queue_growth(run)).where(whole["group"] == ALL)
    )
    done = labelled(
        whole,
        scenario=str(labels["scenario"]),
        scheduler=str(labels["scheduler"]),
        estimates=estimates,
        replicate=replicate,
        scenario_parameters=parameters,
        scheduler_parameters={"system": made.system, **given_parameters(scheduler)},
        replicates_are="draws" if point.stream is None else "resampled logs",
    )
    files.write(done, target)


def _facts(point: PointConfig, made: Any, drawn: xr.Dataset) -> xr.Dataset:
    """What is known of the jobs of a replicate and of the clusters."""
    weights = weights_of(made.weights, point.platform)
    columns = {f"weight_{key}": [getattr(each, key) for each in weights] for key in WEIGHTS}
    columns |= {
        "cluster_processors": [float(each.processors) for each in point.platform],
        "cluster_speed": [each.speed for each in point.platform],
    }
    whole = xr.Dataset(
        {name: ("cluster", values) for name, values in columns.items()},
        {"cluster": [each.name for each in point.platform]},
    )
    whole["offered_load"] = ((), float(drawn["offered_load"]))
    for name in ("rate", "calibrated_queue"):
        whole[name] = ((), float(drawn.attrs[name]))
    return whole


WEIGHTS = ("over_deadline", "makespan", "idle")
"""Weights of equation (1)."""


def _dependencies(drawn: xr.Dataset) -> NDArray[Any] | None:
    """Which jobs of a point wait for which, if any do."""
    if "dependency_job" not in drawn:
        return None
    table = np.empty(drawn.sizes["dependency"], DEPENDENCY)
    for name in DEPENDENCY.names or ():
        table[name] = drawn[f"dependency_{name}"].values
    return table


def queue_growth(run: xr.Dataset) -> float:
    """Mean number of collected jobs in the second half of the time in which jobs arrive, over the first.

    About 1 for a queue that has settled, more for one that grows. NaN where no job is collected in the first.
    """
    ran = run["job_round"].values >= 0
    submit = run["submit_time"].values[ran]
    handed_over = run["round_time"].values[run["job_round"].values[ran]]
    first, last = int(submit.min(initial=0)), int(submit.max(initial=0))
    middle = (first + last) // 2

    def collected(begin: int, end: int) -> float:
        inside = np.minimum(handed_over, end) - np.maximum(submit, begin)
        return float(np.maximum(inside, 0).sum() / max(end - begin, 1))

    before = collected(first, middle)
    return collected(middle, last) / before if before else np.nan


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
    drawn = {name: [results.read(path) for path in paths] for name, paths in jobs.items()}
    first = [own[0].attrs for own in drawn.values()]
    facts: dict[str, Any] = {
        "workload_checksum": [
            " ".join(dict.fromkeys(str(each["workload_checksum"].values) for each in own))
            for own in drawn.values()
        ],
        "acknowledgement": [str(each["acknowledgement"]) for each in first],
    }
    whole = whole.assign_coords(prepared=list(drawn))
    whole = whole.assign({name: ("prepared", values) for name, values in facts.items()})
    for kind in ("left_out", "repaired"):
        counts = [json.loads(each[kind]) for each in first]
        reasons = sorted({reason for found in counts for reason in found})
        table = np.array([[found.get(reason, 0) for reason in reasons] for found in counts], np.int64)
        words = {"long_name": f"jobs {kind.replace('_', ' ')}", "units": "1"}
        whole[kind] = (("prepared", f"{kind}_reason"), table.reshape(len(counts), len(reasons)), words)
        whole = whole.assign_coords({f"{kind}_reason": np.array(reasons, dtype=object)})
    if example is not None:
        whole = whole.merge(measures_of(results.read(example)), combine_attrs="override")
    whole.attrs = {**attributes, "verified": 1, **results.provenance()}
    files.write(whole, target)
