"""The stages of a study of the JScheduler: each task calls one of these functions.

The *original scenario* is every log on its own centre, whose clusters are one pool there. Its schedule under
requested times says what has finished when, from which run times are predicted; the fused stream of all logs
then runs again and again on the single clusters. Runs are simulated, verified and measured at once: what is
kept are measures. Every schedule follows, bit for bit, from the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, labelled
from gridsched.experiments.kinds.jscheduler.machines import pool_of, resources_of
from gridsched.experiments.kinds.jscheduler.measuring import SlowdownOptions, Weights, measured_schedule
from gridsched.experiments.machines import ended, fates_of
from gridsched.experiments.parts import FailuresConfig
from gridsched.experiments.prepare import sources
from gridsched.experiments.schedulers import AnyScheduler, scheduler_made
from gridsched.metrics import jobs as metrics
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import LocalPolicy, OverrunName
from gridsched.prediction import evaluate, predict_prequential, stack_workloads
from gridsched.prediction.methods import REQUESTED
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.prequential import Stream, streams
from gridsched.simulation import simulate
from gridsched.systems.jscheduler.centres import CentrePlatform, Reading, offered_load
from gridsched.systems.jscheduler.measures import Lessons, unfinished
from gridsched.systems.jscheduler.retraining import retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, draw_samples
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

Integers = NDArray[np.int64]
Align = Literal["start", "clock"]

ORIGINAL_ESTIMATES = ("requested", "predicted", "actual")
"""Estimates of the original scenario."""

CUT = "requested time cut at what can be simulated"
"""Why a requested time was changed."""

LESSONS: dict[str, tuple[str, str]] = {
    "jobs": ("learner", "index of a job; those that share a history stand together"),
    "order": ("learned", "index of a job that ended in the original scenario, as that became known"),
    "first": ("training", "first of the learners that a training predicts"),
    "stop": ("training", "first of the learners after them"),
    "begin": ("training", "first of the jobs that a training learned from"),
    "end": ("training", "first of the learned jobs after them"),
}
"""Variables that say from which jobs predictions were learned: dimension and long name."""

# --- the original scenario ------------------------------------------------------------------------


def simulate_original(
    platform: CentrePlatform,
    factor: Reading,
    centre: str,
    workload: str | Path,
    predictor: PredictorOptions,
    overrun: OverrunName,
    failures: FailuresConfig | None,
    seed: int,
    target: str | Path,
) -> None:
    """Run the log of a centre there, under requested times, and predict run times from what ends when.

    Predictions and the run under them are left to `fuse_stream` where all logs share a history.

    Parameters
    ----------
    platform : CentrePlatform
        The centre alone.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor.
    centre : str
        Name of the centre.
    workload : path
        Result of `gridsched.experiments.prepare.prepare_workload`.
    predictor : PredictorOptions
        How run times are predicted.
    overrun : {"doubling", "increments"}
        Expected end of a job that outruns its estimate.
    failures : FailuresConfig, optional
        Failures of all nodes.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    target : path
        Dataset to write.
    """
    jobs = _workload(platform, factor, workload)
    pool, policy = pool_of(platform, centre, factor, jobs, failures, seed)
    whole = xr.Dataset({"original_run_time": ("job", pool.duration(jobs.run_time))})
    _run_alone(whole, "requested", jobs, pool, policy, overrun)
    _run_alone(whole, "actual", jobs, pool, policy, overrun)
    if predictor.scope == "source":
        ends = whole["end_requested"].values
        whole["predicted"] = ("job", predict_prequential(jobs, ends, predictor).run_time)
        _run_alone(whole, "predicted", jobs, pool, policy, overrun)
    whole.attrs |= {
        "title": f"original scenario of {centre}",
        "workload_checksum": jobs.checksum,
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def _run_alone(
    whole: xr.Dataset,
    estimates: str,
    jobs: Workload,
    pool: Cluster,
    policy: LocalPolicy,
    overrun: OverrunName,
) -> None:
    """Add start and end of each job of a log on its own centre [s]; -1 where it did not come to its end."""
    run = simulate(
        jobs,
        pool,
        policy,
        estimates=whole[estimates].values if estimates == "predicted" else cast(Any, estimates),
        overrun=overrun,
    )
    verify(run)
    for what, times in (("start", run["start_time"]), ("end", run["end_time"])):
        whole[f"{what}_{estimates}"] = ("job", np.where(ended(run), times.values, results.NO_TIME))
    whole.attrs[f"corrections_{estimates}"] = run.attrs["corrections"]


def _workload(platform: CentrePlatform, factor: Reading, path: str | Path) -> Workload:
    """Prepared log of a centre; longer requested times than the slowest cluster allows are cut, and counted.

    Some users ask for decades; times a CPU factor that is more than the engine can hold.
    """
    jobs = results.workload_from_dataset(results.read(path))[0]
    # One less, since the quotient by the speed is rounded
    longest = int(LARGEST * min(1.0, *(each.speed for each in platform.resources(factor)[0]))) - 1
    return jobs.select(
        slice(None),
        requested_time=np.minimum(jobs.requested_time, longest),
        repaired=add_counts(jobs.repaired, {CUT: int((jobs.requested_time > longest).sum())}),
    )


# --- the stream -----------------------------------------------------------------------------------


def fuse_stream(
    platform: CentrePlatform,
    factor: Reading,
    at_home: Reading,
    align: Align,
    workloads: Mapping[str, str | Path],
    originals: Mapping[str, str | Path],
    predictor: PredictorOptions,
    overrun: OverrunName,
    failures: FailuresConfig | None,
    seed: int,
    target: str | Path,
) -> None:
    """Merge all logs into one stream of submissions, with what the original scenario made of each job.

    Parameters
    ----------
    platform : CentrePlatform
        All centres.
    factor, at_home : {"multiply", "divide", "none"}
        Reading of the CPU factor on the grid, and in the original scenario.
    align : {"start", "clock"}
        How logs are merged.
    workloads, originals : mapping of centre to path
        Results of `prepare_workload` and `simulate_original`.
    predictor, overrun, failures, seed
        As for `simulate_original`.
    target : path
        Dataset to write.
    """
    logs = {name: _workload(platform, factor, path) for name, path in workloads.items()}
    jobs, origin = merge_workloads(list(logs.values()), align=align)
    parts = [results.read(originals[name]) for name in logs]
    if predictor.scope == "global":
        ends = _fused(parts, logs, jobs, origin)["end_requested"].values
        predicted = predict_prequential(jobs, ends, predictor, origin).run_time
        for index, (name, log) in enumerate(logs.items()):
            parts[index]["predicted"] = ("job", predicted[origin == index])
            _run_alone(
                parts[index],
                "predicted",
                log,
                *pool_of(platform, name, at_home, log, failures, seed),
                overrun,
            )
    whole = _fused(parts, logs, jobs, origin)

    largest = max(platform.resources(factor)[0], key=lambda each: each.processors)
    held = largest.allocation(jobs.processors) <= largest.processors
    everywhere = np.all([whole[f"end_{name}"] >= 0 for name in ORIGINAL_ESTIMATES], axis=0)
    names = [each.name for each in platform.centres]
    whole = whole.assign(
        {
            "submit_time": ("job", jobs.submit_time),
            "run_time": ("job", jobs.run_time),
            "processors": ("job", jobs.processors),
            "centre_index": ("job", origin.astype(np.int16)),
            # Estimates are those of a cluster of speed 1
            "requested": (
                "job",
                np.where(jobs.requested_time > 0, jobs.requested_time, np.maximum(jobs.run_time, 1)),
            ),
            "actual": ("job", np.maximum(jobs.run_time, 1)),
            "held": ("job", held.astype(np.int8)),
            "measured": ("job", (held & everywhere).astype(np.int8)),
            "place": ("centre", [names.index(name) for name in logs]),
            "offered_load": (
                "centre",
                [offered_load(log, platform.pool(name, at_home)[0]) for name, log in logs.items()],
            ),
            "requested_times_cut": ("centre", [log.repaired.get(CUT, 0) for log in logs.values()]),
            **_lessons(streams(jobs, whole["end_requested"].values, predictor, origin), predictor.window),
        }
    ).assign_coords(centre=list(logs))
    whole.attrs = {
        "title": "fused stream of all logs",
        "workload_checksum": jobs.checksum,
        **{
            f"corrections_{name}": sum(part.attrs[f"corrections_{name}"] for part in parts)
            for name in ORIGINAL_ESTIMATES
        },
        **results.provenance(),
    }
    files.write(whole, target)


def _fused(
    parts: Sequence[xr.Dataset], logs: Mapping[str, Workload], jobs: Workload, origin: Integers
) -> xr.Dataset:
    """What is known of the jobs of each log as columns of the stream, with times by its clock."""
    # Where the jobs of the stream are if one log follows the other
    place = np.argsort(np.argsort(origin, kind="stable"))
    shift = jobs.submit_time - np.concatenate([log.submit_time for log in logs.values()])[place]
    whole = xr.concat(parts, "job", combine_attrs="drop").isel(job=place)
    return whole.assign(
        {
            name: times.where(times < 0, times + shift)
            for name, times in whole.items()
            if str(name).startswith(("start_", "end_"))
        }
    )


def _lessons(learned: Sequence[Stream], window: int) -> dict[str, Any]:
    """From which jobs each prediction is learned, see `Lessons`; features have no part in this."""
    # Streams stand one after the other: where the jobs and the ends of each begin
    jobs = np.cumsum([0, *(len(stream.jobs) for stream in learned)])
    ends = np.cumsum([0, *(len(stream.order) for stream in learned)])
    trainings = [
        (job + each.first, job + each.stop, end + max(each.finished - window, 0), end + each.finished)
        for stream, job, end in zip(learned, jobs, ends, strict=False)
        for each in stream.periods
    ]
    columns = {
        "jobs": np.concatenate([stream.jobs for stream in learned]),
        "order": np.concatenate([stream.jobs[stream.order] for stream in learned]),
        **pd.DataFrame(trainings, columns=["first", "stop", "begin", "end"], dtype=np.int64),
    }
    return {
        f"lessons_{name}": (dimension, np.asarray(columns[name], np.int32), {"long_name": long_name})
        for name, (dimension, long_name) in LESSONS.items()
    }


# --- runs -----------------------------------------------------------------------------------------


def measure_original(
    stream: str | Path,
    platform: CentrePlatform,
    labels: Mapping[str, Any],
    weights: Weights,
    slowdowns: SlowdownOptions,
    target: str | Path,
) -> None:
    """Measure the original scenario under some estimates.

    Parameters
    ----------
    stream : path
        Result of `fuse_stream`.
    platform : CentrePlatform
        All centres.
    labels : mapping
        Scenario, scheduler and estimates, and what else `labelled` writes beside the measures.
    weights, slowdowns
        See `measuring.measured_schedule`.
    target : path
        Measures to write.
    """
    merged, estimates = files.shared(stream), labels["estimates"]
    start, end = (merged[f"{what}_{estimates}"].values for what in ("start", "end"))
    ran = np.flatnonzero(start >= 0)
    centre = merged["place"].values[merged["centre_index"].values[ran]]
    run = xr.Dataset(
        {
            "submit_time": merged["submit_time"],
            "start_time": ("job", start),
            "end_time": ("job", end),
            "run_time": merged["original_run_time"],
            "processors": merged["processors"],
            "segment_job": ("segment", ran),
            "segment_start": ("segment", start[ran]),
            "segment_end": ("segment", end[ran]),
            "segment_processors": ("segment", merged["processors"].values[ran]),
            "segment_cluster": ("segment", centre),
        },
        {"cluster": [each.name for each in platform.centres]},
        {"corrections": merged.attrs[f"corrections_{estimates}"]},
    )
    once = _known_once(merged, run, platform, centre, start >= 0)
    if estimates == ORIGINAL_ESTIMATES[0]:
        once = once.assign(
            # a log of one instant offers an infinite load
            offered_load_home=(
                "home",
                np.where(np.isinf(load := merged["offered_load"].values), np.nan, load),
            ),
            requested_times_cut_home=("home", merged["requested_times_cut"].values),
        )
    files.write(labelled(measured_schedule(merged, run, once, weights, slowdowns), **labels), target)


def simulate_run(
    stream: str | Path,
    platform: CentrePlatform,
    labels: Mapping[str, Any],
    weights: Weights,
    slowdowns: SlowdownOptions,
    factor: Reading,
    scheduler: AnyScheduler,
    drawn: int,
    overrun: OverrunName,
    failures: FailuresConfig | None,
    seed: int,
    predictor: PredictorOptions,
    align: Align,
    workloads: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Simulate, verify and measure a run.

    Parameters
    ----------
    stream, platform, labels, weights, slowdowns
        As for `measure_original`.
    factor, overrun, failures, seed
        As for `fuse_stream`.
    scheduler : SchedulerConfig
        The JScheduler.
    drawn : int
        Seed of what jobs draw: all ask the same clusters in all runs, the first k of one sample.
    predictor, align, workloads
        As for `fuse_stream`, for a run whose predictors learn inside it.
    target : path
        Measures to write.
    """
    merged, estimates = files.shared(stream), labels["estimates"]
    jscheduler = cast(JScheduler, scheduler_made(scheduler))
    resources, policies = resources_of(platform, factor, merged["submit_time"].values, failures, seed)
    homes = _homes(platform, merged, drawn) if jscheduler.sampling == "home" else None
    if estimates == "retrained":
        learned = retrained_schedule(
            [_workload(platform, factor, path) for path in workloads.values()],
            resources,
            policies,
            jscheduler,
            options=predictor,
            samples=draw_samples(merged["processors"].values, resources, jscheduler, drawn, homes),
            overrun=overrun,
            align=align,
        )
        seconds = cast(Integers, learned.estimate)
    else:
        seconds = merged[estimates].values
    jobs = Workload(
        name=merged.attrs["title"],
        submit_time=merged["submit_time"].values,
        run_time=merged["run_time"].values,
        requested_time=merged["requested"].values,
        requested_processors=merged["processors"].values,
        home=homes,
    )
    run = simulate(
        jobs,
        Platform(resources).with_policy(policies),
        jscheduler,
        estimates=seconds,
        seed=drawn,
        # Jobs are submitted at the grid, as on a cluster of speed 1
        times="unit",
        overrun=overrun,
    )
    verify(run)
    unfinished_jobs = int((~ended(run) & (merged["measured"].values > 0)).sum())
    if unfinished_jobs:
        raise ConfigurationError(
            f"{labels['scenario']}: {unfinished_jobs} jobs never end since nodes do not come back, and runs "
            f"are compared by jobs that end in all of them; let nodes come up again in {labels['scenario']!r}"
        )
    centre = platform.resources("none")[2][run["segment_cluster"].values]
    once = (
        _known_once(merged, run, platform, centre, merged["held"].values > 0)
        .assign(queries=float(run.attrs["queries"]))
        .merge(fates_of(run))
    )
    if estimates == "predicted":
        lessons = Lessons(**{name: merged[f"lessons_{name}"].values.astype(np.int64) for name in LESSONS})
        rests, share = unfinished(lessons, merged["submit_time"].values, run["end_time"].values)
        once = once.assign(predictions_on_unfinished=rests, predictions_unfinished_share=share)
    files.write(labelled(measured_schedule(merged, run, once, weights, slowdowns), **labels), target)


def _known_once(
    merged: xr.Dataset, run: xr.Dataset, platform: CentrePlatform, centre: Integers, fits: NDArray[np.bool_]
) -> xr.Dataset:
    """What is known of a whole run: `centre` has the index of the centre of each segment.

    Utilisation is measured between the first and the last submission; jobs that do not fit are rejected.
    """
    begin, end = merged["submit_time"].values[[0, -1]].astype(np.float64)
    seconds = (end - begin) or np.nan
    capacity = np.array([each.processors for each in platform.centres])
    within = metrics.seconds_within(run, (begin, end))
    work = np.bincount(centre, within * run["segment_processors"].values, len(capacity))
    rejected = np.bincount(merged["centre_index"].values[~fits], minlength=merged.sizes["centre"])
    return xr.Dataset(
        {
            "makespan": metrics.makespan(run),
            "corrections": float(run.attrs["corrections"]),
            "utilisation": work.sum() / (capacity.sum() * seconds),
            "utilisation_by_cluster": ("cluster", work / (capacity * seconds)),
            "rejected": float(rejected.sum()),
            "rejected_home": ("home", rejected.astype(np.float64)),
            "relaxations": metrics.relaxations(run),
        },
        {"cluster": [each.name for each in platform.centres], "home": merged["centre"].values},
    )


def _homes(platform: CentrePlatform, merged: xr.Dataset, seed: int) -> Integers:
    """Cluster of each job's own centre, drawn where it has several."""
    owner = platform.resources("none")[2]
    random = np.random.default_rng((seed, 1))
    homes = np.empty(merged.sizes["job"], np.int64)
    for index, place in enumerate(merged["place"].values):
        own = np.flatnonzero(merged["centre_index"].values == index)
        homes[own] = random.choice(np.flatnonzero(owner == place), len(own))
    return homes


# --- predictions ----------------------------------------------------------------------------------


def evaluate_prediction(
    platform: CentrePlatform,
    factor: Reading,
    workload: str | Path,
    original: str | Path,
    predictor: PredictorOptions,
    target: str | Path,
) -> None:
    """Compare predictions of the run times of one log with those of other methods.

    Parameters
    ----------
    platform, factor, predictor
        As for `simulate_original`.
    workload, original : path
        Results of `prepare_workload` and `simulate_original`.
    target : path
        Dataset to write.
    """
    jobs = _workload(platform, factor, workload)
    whole = evaluate(jobs, results.read(original)["end_requested"].values, predictor)
    files.write(whole.assign_attrs(results.provenance()), target)


def stack_predictions(predictions: Sequence[str | Path], target: str | Path) -> None:
    """Put the evaluations of predictions of all logs into one dataset."""
    whole = stack_workloads([results.read(path) for path in predictions])
    error = whole["mean_absolute_error"]
    of_requests = error.sel(predictor=REQUESTED, drop=True)
    whole["relative_error"] = error / of_requests.where(of_requests > 0)
    for name in ("relative_error", "correlation", "under_predicted"):
        # each log is a replicate
        whole[name] = (("predictor", "replicate"), whole[name].transpose("predictor", "workload").values)
    files.write(whole.assign_attrs(results.provenance()), target)


# --- the study ------------------------------------------------------------------------------------


def describe_centres(
    platform: CentrePlatform, workloads: Mapping[str, str | Path], target: str | Path
) -> None:
    """Write what is known of the centres and their logs.

    Parameters
    ----------
    platform : CentrePlatform
        All centres.
    workloads : mapping of centre to path
        Results of `prepare_workload`.
    target : path
        Dataset to write.
    """
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    own = [platform.centre(name) for name in logs]
    facts = sources(logs, "centre").assign(
        cpu_factor=("centre", [each.factor for each in own], attrs_of("CPU factor", "1")),
        processors=(
            "centre",
            [float(each.processors) for each in own],
            attrs_of("processors of the centre", "1"),
        ),
        local_policy=("centre", [each.policy for each in own], attrs_of("local policy", "1")),
    )
    files.write(facts, target)
