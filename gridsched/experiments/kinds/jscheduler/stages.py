"""The stages of a study of the JScheduler: each task calls one of these functions.

The *original scenario* is every log on its own centre, whose clusters are one pool there. Its schedule under
requested times says what has finished when, from which run times are predicted; the fused stream of all logs
then runs again and again on the single clusters. Runs are simulated, verified and measured at once: what is
kept are measures. Every schedule follows, bit for bit, from the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, labelled, table_of_runs
from gridsched.experiments.kinds.jscheduler.machines import platform_of, pool_of, resources_of
from gridsched.experiments.kinds.jscheduler.measuring import (
    SlowdownOptions,
    Weights,
    measured_schedule,
    utilisation,
)
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
from gridsched.prediction.prequential import streams
from gridsched.simulation import simulate
from gridsched.systems.jscheduler.centres import Centre, CentrePlatform, Reading, offered_load
from gridsched.systems.jscheduler.measures import Lessons, unfinished
from gridsched.systems.jscheduler.retraining import retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, draw_samples
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

Integers = NDArray[np.int64]
Align = Literal["start", "clock"]
Centres = Sequence[Mapping[str, Any]]

ORIGINAL = "original"
"""Label of the original scenario among the schedulers."""

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
    centres: Centres,
    factor: Reading,
    centre: str,
    workload: str | Path,
    predictor: PredictorOptions,
    overrun: OverrunName,
    target: str | Path,
    *,
    failures: FailuresConfig | None = None,
    seed: int = 0,
) -> None:
    """Run the log of a centre there, under requested times, and predict run times from what ends when.

    Predictions and the run under them are left to `fuse_stream` where all logs share a history.

    Parameters
    ----------
    centres : sequence of mapping
        The centre alone, see `machines.platform_of`.
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
    target : path
        Dataset to write.
    failures : FailuresConfig, optional
        Failures of all nodes.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    """
    platform = platform_of(centres)
    jobs = _workload(platform, factor, workload)
    pool, policy = pool_of(platform, centre, factor, jobs, failures, seed)
    runs = {name: _alone(jobs, pool, policy, name, overrun) for name in ("requested", "actual")}
    columns: dict[str, Integers] = {}
    if predictor.scope == "source":
        columns["predicted"] = predict_prequential(jobs, _times(runs["requested"], "end"), predictor).run_time
        runs["predicted"] = _alone(jobs, pool, policy, columns["predicted"], overrun)
    columns |= _original_times(runs)
    whole = xr.Dataset({name: ("job", column) for name, column in columns.items()})
    whole.attrs = {
        "title": f"original scenario of {centre}",
        "workload_checksum": jobs.checksum,
        "verified": 1,
        **{f"corrections_{name}": run.attrs["corrections"] for name, run in runs.items()},
        **results.provenance(),
    }
    files.write(whole, target)


def _original_times(runs: Mapping[str, xr.Dataset]) -> dict[str, Integers]:
    """Start and end of each job under some estimates."""
    whats: tuple[Literal["start", "end"], ...] = ("start", "end")
    return {f"{what}_{name}": _times(run, what) for name, run in runs.items() for what in whats}


def _times(run: xr.Dataset, what: Literal["start", "end"]) -> Integers:
    """Start or end of each job of a run [s]; -1 where it did not come to its end."""
    times: Integers = np.where(ended(run), run[f"{what}_time"].values, results.NO_TIME)
    return times


def _workload(platform: CentrePlatform, factor: Reading, path: str | Path) -> Workload:
    """Prepared log of a centre; longer requested times than the slowest cluster allows are cut, and counted.

    Some users ask for decades; times a CPU factor that is more than the engine can hold.
    """
    jobs = results.workload_from_dataset(results.read(path))[0]
    slowest = min(cluster.speed for cluster in platform.resources(factor)[0])
    # One less, since the quotient by the speed is rounded
    longest = int(LARGEST * min(slowest, 1.0)) - 1
    cut = {CUT: int((jobs.requested_time > longest).sum())}
    return jobs.select(
        slice(None),
        requested_time=np.minimum(jobs.requested_time, longest),
        repaired=add_counts(jobs.repaired, cut),
    )


def _alone(
    jobs: Workload, pool: Cluster, policy: LocalPolicy, estimates: Any, overrun: OverrunName
) -> xr.Dataset:
    """Verified run of a log on its own centre."""
    run = simulate(jobs, pool, policy, estimates=estimates, overrun=overrun)
    verify(run)
    return run


# --- the stream -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Merged:
    """Several logs as one stream.

    Parameters
    ----------
    logs : mapping of str to Workload
        By name of the centre.
    jobs : Workload
        All jobs in order of submission, the first of every log at 0, or when its clock says.
    origin : int64[n]
        Index of the log of each job.
    places : list of int64[...]
        Where the jobs of each log are among all.
    """

    logs: Mapping[str, Workload]
    jobs: Workload
    origin: Integers
    places: list[Integers]

    @classmethod
    def of(cls, logs: Mapping[str, Workload], align: Align) -> _Merged:
        jobs, origin = merge_workloads(list(logs.values()), align=align)
        return cls(logs, jobs, origin, [np.flatnonzero(origin == log) for log in range(len(logs))])

    def gathered(self, columns: Sequence[Integers]) -> Integers:
        """Column of all jobs from one column a log."""
        gathered = np.empty(len(self.jobs), np.int64)
        for place, column in zip(self.places, columns, strict=True):
            gathered[place] = column
        return gathered

    def times(self, columns: Sequence[Integers]) -> Integers:
        """Times of all jobs, by the clock of the stream, from those of every log by its own clock."""
        firsts = [int(log.submit_time[0]) for log in self.logs.values()]
        shifts = [
            int(self.jobs.submit_time[place[0]]) - first
            for place, first in zip(self.places, firsts, strict=True)
        ]
        pairs = zip(columns, shifts, strict=True)
        return self.gathered([np.where(times >= 0, times + shift, times) for times, shift in pairs])


def fuse_stream(
    centres: Centres,
    factor: Reading,
    at_home: Reading,
    align: Align,
    workloads: Mapping[str, str | Path],
    originals: Mapping[str, str | Path],
    predictor: PredictorOptions,
    overrun: OverrunName,
    target: str | Path,
    *,
    failures: FailuresConfig | None = None,
    seed: int = 0,
) -> None:
    """Merge all logs into one stream of submissions, with what the original scenario made of each job.

    Parameters
    ----------
    centres, predictor, overrun, failures, seed
        As for `simulate_original`, of the whole platform.
    factor, at_home : {"multiply", "divide", "none"}
        Reading of the CPU factor on the grid, and in the original scenario.
    align : {"start", "clock"}
        How logs are merged.
    workloads, originals : mapping of centre to path
        Results of `prepare_workload` and `simulate_original`.
    target : path
        Dataset to write.
    """
    platform = platform_of(centres)
    merged = _Merged.of({name: _workload(platform, factor, path) for name, path in workloads.items()}, align)
    pools = {name: pool_of(platform, name, at_home, log, failures, seed) for name, log in merged.logs.items()}
    parts = [results.read(originals[name]) for name in merged.logs]
    own = {str(name): [part[name].values for part in parts] for name in parts[0].data_vars}
    corrections = {
        f"corrections_{name}": sum(int(part.attrs.get(f"corrections_{name}", 0)) for part in parts)
        for name in ORIGINAL_ESTIMATES
    }
    ends = merged.times(own["end_requested"])
    if predictor.scope == "global":
        predicted = predict_prequential(merged.jobs, ends, predictor, merged.origin).run_time
        own["predicted"] = [predicted[place] for place in merged.places]
        runs = [
            _alone(log, *pools[name], estimates, overrun)
            for (name, log), estimates in zip(merged.logs.items(), own["predicted"], strict=True)
        ]
        parted = [_original_times({"predicted": run}) for run in runs]
        own |= {name: [each[name] for each in parted] for name in parted[0]}
        corrections["corrections_predicted"] = sum(run.attrs["corrections"] for run in runs)
    columns = {
        name: merged.gathered(values) if name == "predicted" else merged.times(values)
        for name, values in own.items()
    }
    whole = xr.Dataset({name: ("job", column) for name, column in columns.items()})
    lengths = [pools[name][0].duration(log.run_time) for name, log in merged.logs.items()]
    whole["original_run_time"] = ("job", merged.gathered(lengths))
    whole = whole.assign(_submissions(merged))
    logs = merged.logs.items()
    whole = whole.assign_coords(centre=list(merged.logs))
    whole["offered_load"] = (
        "centre",
        [offered_load(log, platform.pool(name, at_home)[0]) for name, log in logs],
    )
    whole["requested_times_cut"] = ("centre", [log.repaired.get(CUT, 0) for _, log in logs])
    held = _held(merged.jobs.processors, platform.resources(factor)[0])
    whole["held"] = ("job", held.astype(np.int8))
    everywhere = np.all([columns[f"end_{name}"] >= 0 for name in ORIGINAL_ESTIMATES], axis=0)
    whole["measured"] = ("job", (held & everywhere).astype(np.int8))
    whole = whole.assign(_lessons(merged, ends, predictor))
    whole.attrs = {
        "title": "fused stream of all logs",
        "workload_checksum": merged.jobs.checksum,
        **corrections,
        **results.provenance(),
    }
    files.write(whole, target)


def _submissions(merged: _Merged) -> dict[str, Any]:
    """What users submit; the estimates are those of a cluster of speed 1."""
    jobs = merged.jobs
    run_time = np.asarray(jobs.run_time, np.int64)
    requested = np.where(jobs.requested_time > 0, jobs.requested_time, run_time)
    return {
        "submit_time": ("job", jobs.submit_time),
        "run_time": ("job", run_time),
        "processors": ("job", jobs.processors),
        "centre_index": ("job", merged.origin.astype(np.int16)),
        "requested": ("job", np.maximum(requested, 1).astype(np.int64)),
        "actual": ("job", np.maximum(run_time, 1)),
    }


def _held(processors: Integers, resources: Sequence[Cluster]) -> NDArray[np.bool_]:
    """Whether some resource can hold each job."""
    held = np.zeros(len(processors), np.bool_)
    for resource in {each.processors: each for each in resources}.values():
        held |= resource.allocation(processors) <= resource.processors
    return held


def _lessons(merged: _Merged, ends: Integers, options: PredictorOptions) -> dict[str, Any]:
    """From which jobs each prediction is learned, see `Lessons`; features have no part in this."""
    parts: dict[str, list[Integers]] = {name: [np.empty(0, np.int64)] for name in LESSONS}
    jobs = learned = 0
    for stream in streams(merged.jobs, ends, options, merged.origin):
        first, stop, end = (
            np.array([getattr(period, name) for period in stream.periods], np.int64)
            for name in ("first", "stop", "finished")
        )
        own = {
            "jobs": stream.jobs,
            "order": stream.jobs[stream.order],
            "first": jobs + first,
            "stop": jobs + stop,
            "begin": learned + np.maximum(end - options.window, 0),
            "end": learned + end,
        }
        for name, values in own.items():
            parts[name].append(values)
        jobs, learned = jobs + len(stream.jobs), learned + len(stream.order)
    return {
        f"lessons_{name}": (dimension, np.concatenate(parts[name]).astype(np.int32), {"long_name": long_name})
        for name, (dimension, long_name) in LESSONS.items()
    }


# --- measures -------------------------------------------------------------------------------------


def measure_original(
    stream: str | Path,
    centres: Centres,
    labels: Mapping[str, str],
    parameters: Mapping[str, Any],
    weights: Weights,
    slowdowns: SlowdownOptions,
    target: str | Path,
) -> None:
    """Measure the original scenario under some estimates.

    Parameters
    ----------
    stream : path
        Result of `fuse_stream`.
    centres : sequence of mapping
        The platform, see `machines.platform_of`.
    labels, parameters : mapping
        Scenario, scheduler and estimates, and parameters of the scenario.
    weights, slowdowns
        See `measuring.measured_schedule`.
    target : path
        Measures to write.
    """
    merged, name = files.shared(stream), labels["estimates"]
    starts, ends = merged[f"start_{name}"].values, merged[f"end_{name}"].values
    platform = platform_of(centres)
    ran = np.flatnonzero(starts >= 0)
    names = [centre.name for centre in platform.centres]
    place = np.array([names.index(each) for each in merged["centre"].values], np.int64)
    processors = merged["processors"].values[ran]
    owner = place[merged["centre_index"].values[ran]]
    once = {
        "makespan": {ALL: _makespan(merged, starts, ends)},
        "corrections": {ALL: float(merged.attrs[f"corrections_{name}"])},
        "utilisation": utilisation(
            _window(merged), starts[ran], ends[ran], processors, owner, _capacity(platform)
        ),
        "rejected": _rejected(merged, starts >= 0),
        "relaxations": {
            ALL: metrics.relaxations_of_queues(
                owner,
                merged["submit_time"].values[ran],
                starts[ran],
                processors * merged["original_run_time"].values[ran].astype(np.float64),
                (float(merged["submit_time"].values[ran].min()), float(ends[ran].max())),
            )
        },
    }
    if name == ORIGINAL_ESTIMATES[0]:
        once |= {
            measure: _of_users(merged, merged[measure].values)
            for measure in ("offered_load", "requested_times_cut")
        }
    whole = measured_schedule(
        merged, starts, merged["original_run_time"].values, ends, weights, slowdowns, once
    )
    _write(whole, labels, parameters, {"system": "local", "variant": ORIGINAL}, target)


def _write(
    whole: xr.Dataset,
    labels: Mapping[str, str],
    parameters: Mapping[str, Any],
    of_scheduler: Mapping[str, Any],
    target: str | Path,
) -> None:
    done = labelled(
        whole,
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=labels["estimates"],
        scenario_parameters=parameters,
        scheduler_parameters=of_scheduler,
        replicates_are="blocks",
    )
    files.write(done, target)


def _of_users(merged: xr.Dataset, values: NDArray[Any]) -> dict[str, float]:
    return {
        f"users of {name}": float(each) for name, each in zip(merged["centre"].values, values, strict=True)
    }


def _rejected(merged: xr.Dataset, fits: NDArray[np.bool_]) -> dict[str, float]:
    """Jobs that do not run, of all and of the users of each centre."""
    counts = np.bincount(merged["centre_index"].values[~fits], minlength=merged.sizes["centre"])
    return {ALL: float(counts.sum()), **_of_users(merged, counts)}


def _window(merged: xr.Dataset) -> tuple[float, float]:
    """First and last submission, between which utilisation is measured."""
    submit = merged["submit_time"].values
    return float(submit[0]), float(submit[-1])


def _makespan(merged: xr.Dataset, start_time: Integers, end_time: Integers) -> float:
    """Seconds from the first submission to the last end of the jobs that ran; NaN if none did."""
    ran = start_time != metrics.NOT_STARTED
    return float(end_time[ran].max() - merged["submit_time"].values[ran].min()) if ran.any() else np.nan


def _capacity(platform: CentrePlatform) -> dict[str, int]:
    return {centre.name: processors(centre) for centre in platform.centres}


def processors(centre: Centre) -> int:
    """Processors of all clusters of a centre."""
    return sum(number * size for number, size in centre.resources)


# --- runs -----------------------------------------------------------------------------------------


def simulate_run(
    stream: str | Path,
    centres: Centres,
    factor: Reading,
    scheduler: AnyScheduler,
    labels: Mapping[str, str],
    parameters: Mapping[str, Any],
    drawn: int,
    weights: Weights,
    slowdowns: SlowdownOptions,
    overrun: OverrunName,
    target: str | Path,
    *,
    failures: FailuresConfig | None = None,
    seed: int = 0,
    predictor: PredictorOptions | None = None,
    align: Align = "start",
    workloads: Sequence[str | Path] = (),
) -> None:
    """Simulate, verify and measure a run.

    Parameters
    ----------
    stream : path
        Result of `fuse_stream`.
    centres, factor, overrun, failures, seed
        As for `fuse_stream`.
    scheduler : SchedulerConfig
        The JScheduler.
    labels, parameters, weights, slowdowns
        As for `measure_original`.
    drawn : int
        Seed of what jobs draw: all ask the same clusters in all runs, the first k of one sample.
    target : path
        Measures to write.
    predictor, align, workloads
        How run times are predicted, how logs are merged, and results of `prepare_workload`, centre by
        centre, for a run whose predictors learn inside it.
    """
    jscheduler: Any = scheduler_made(scheduler)
    merged, platform, estimates = files.shared(stream), platform_of(centres), labels["estimates"]
    resources, policies = resources_of(platform, factor, merged["submit_time"].values, failures, seed)
    homes = _homes(platform, merged, drawn) if jscheduler.sampling == "home" else None
    if estimates == "retrained":
        logs = [_workload(platform, factor, path) for path in workloads]
        seconds = retrained_schedule(
            logs,
            resources,
            policies,
            jscheduler,
            options=predictor,
            samples=draw_samples(merged["processors"].values, resources, jscheduler, drawn, homes),
            overrun=overrun,
            align=align,
        ).estimate
    else:
        seconds = merged[estimates].values
    run = simulate(
        _stream_workload(merged, homes),
        Platform(resources).with_policy(policies),
        jscheduler,
        estimates=seconds,
        seed=drawn,
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
    whole = measured_schedule(
        merged,
        run["start_time"].values,
        run["run_time"].values,
        run["end_time"].values,
        weights,
        slowdowns,
        _once(merged, run, platform, estimates),
    )
    _write(whole, labels, parameters, of_jscheduler(jscheduler, labels["scheduler"]), target)


def of_jscheduler(jscheduler: JScheduler, label: str) -> dict[str, Any]:
    """Parameters of a scheduler in the dataset."""
    metric = jscheduler.metric if isinstance(jscheduler.metric, str) else label
    return {
        "system": jscheduler.system,
        "predictions": jscheduler.predictions,
        "metric": metric,
        "k": int(jscheduler.k),
        "variant": metric if jscheduler.predictions == "plan" else f"{metric}, {jscheduler.predictions}",
    }


def _once(
    merged: xr.Dataset, run: xr.Dataset, platform: CentrePlatform, estimates: str
) -> dict[str, dict[str, float]]:
    """What is known of a whole run."""
    submit, ends = merged["submit_time"].values, run["end_time"].values
    owner = platform.resources("none")[2]
    segment = {name: run[f"segment_{name}"].values for name in ("start", "end", "processors", "cluster")}
    found = {
        "makespan": {ALL: _makespan(merged, run["start_time"].values, ends)},
        "queries": {ALL: float(run.attrs["queries"])},
        "relaxations": {ALL: metrics.relaxations(run)},
        "corrections": {ALL: float(run.attrs["corrections"])},
        "utilisation": utilisation(
            _window(merged),
            segment["start"],
            segment["end"],
            segment["processors"],
            owner[segment["cluster"]],
            _capacity(platform),
        ),
        "rejected": _rejected(merged, merged["held"].values > 0),
        **{str(name): {ALL: float(value)} for name, value in fates_of(run).items()},
    }
    if estimates == "predicted":
        lessons = Lessons(**{name: merged[f"lessons_{name}"].values.astype(np.int64) for name in LESSONS})
        rests, share = unfinished(lessons, submit, ends)
        found["predictions_on_unfinished"] = {ALL: rests}
        found["predictions_unfinished_share"] = {ALL: share}
    return found


def _homes(platform: CentrePlatform, merged: xr.Dataset, seed: int) -> Integers:
    """Cluster of each job's own centre, drawn where it has several."""
    names = [centre.name for centre in platform.centres]
    owner = platform.resources("none")[2]
    random = np.random.default_rng((seed, 1))
    homes = np.empty(merged.sizes["job"], np.int64)
    for index, name in enumerate(merged["centre"].values.tolist()):
        own = np.flatnonzero(merged["centre_index"].values == index)
        homes[own] = random.choice(np.flatnonzero(owner == names.index(name)), len(own))
    return homes


def _stream_workload(merged: xr.Dataset, homes: Integers | None) -> Workload:
    """Jobs of a stream, submitted at the grid as on a cluster of speed 1."""
    workload = Workload(
        name=merged.attrs["title"],
        submit_time=merged["submit_time"].values,
        run_time=merged["run_time"].values,
        requested_time=merged["requested"].values,
        requested_processors=merged["processors"].values,
    )
    return workload if homes is None else replace(workload, home=homes)


# --- predictions ----------------------------------------------------------------------------------


def evaluate_prediction(
    centres: Centres,
    factor: Reading,
    workload: str | Path,
    original: str | Path,
    predictor: PredictorOptions,
    target: str | Path,
) -> None:
    """Compare predictions of the run times of one log with those of other methods.

    Parameters
    ----------
    centres, factor, predictor
        As for `simulate_original`.
    workload, original : path
        Results of `prepare_workload` and `simulate_original`.
    target : path
        Dataset to write.
    """
    jobs = _workload(platform_of(centres), factor, workload)
    whole = evaluate(jobs, results.read(original)["end_requested"].values, predictor)
    whole.attrs.update(results.provenance())
    files.write(whole, target)


def stack_predictions(predictions: Sequence[str | Path], target: str | Path) -> None:
    """Put the evaluations of predictions of all logs into one dataset."""
    whole = stack_workloads([results.read(path) for path in predictions])
    error = whole["mean_absolute_error"]
    base = error.sel(predictor=REQUESTED, drop=True)
    whole["relative_error"] = error / base.where(base > 0)
    for name in ("relative_error", "correlation", "under_predicted"):
        # each log is a replicate
        whole[name] = (("predictor", "replicate"), whole[name].transpose("predictor", "workload").values)
    whole.attrs.update(results.provenance())
    files.write(whole, target)


# --- the study ------------------------------------------------------------------------------------


def collect(
    runs: Sequence[str | Path],
    labels: Mapping[str, Sequence[str]],
    attributes: Mapping[str, Any],
    workloads: Mapping[str, str | Path],
    centres: Centres,
    target: str | Path,
) -> None:
    """Put all runs and what is known of the centres into the dataset of the study.

    Parameters
    ----------
    runs : sequence of paths
        Results of `measure_original` and `simulate_run`.
    labels : mapping
        Labels of scenarios, schedulers and estimates, in the order of the study.
    attributes : mapping
        Of the dataset.
    workloads : mapping of centre to path
        Results of `prepare_workload`.
    centres : sequence of mapping
        The platform, see `machines.platform_of`.
    target : path
        The dataset.
    """
    whole = table_of_runs([results.read(path) for path in runs], labels)
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    platform = platform_of(centres)
    facts = sources(logs, "centre")
    own = [platform.centre(name) for name in logs]
    for name, values, words in (
        ("cpu_factor", [float(each.factor) for each in own], "CPU factor"),
        ("processors", [float(processors(each)) for each in own], "processors of the centre"),
        ("local_policy", [each.policy for each in own], "local policy"),
    ):
        facts[name] = ("centre", values, {"long_name": words, "units": "1"})
    whole = whole.merge(facts)
    whole.attrs = {**attributes, "verified": 1, **results.provenance()}
    files.write(whole, target)
