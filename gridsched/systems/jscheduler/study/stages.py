"""The stages of a study of self-scheduling up to its runs: each task calls one of these functions.

The *original scenario* is every log on its own centre, whose resources are one pool there. Its schedule under
requested times says what has finished when, from which run times are predicted; the fused stream of all logs
then runs again and again on the single resources. Runs are simulated, verified and measured at once: what is
kept are measures. Every schedule follows, bit for bit, from the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.collection import measured_run
from gridsched.experiments.machines import ended, fates_of
from gridsched.experiments.prepare import derived_seed
from gridsched.experiments.schedulers import scheduler_made
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.prediction import evaluate, predict_prequential, stack_workloads
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.prequential import streams
from gridsched.results import in_one_piece
from gridsched.simulation import simulate
from gridsched.systems.jscheduler.centres import Reading, offered_load
from gridsched.systems.jscheduler.measures import (
    VARIABLES,
    Cohort,
    Lessons,
    cohort,
    makespan,
    measure,
    unfinished,
)
from gridsched.systems.jscheduler.retraining import retrained_schedule, submitted_to
from gridsched.systems.jscheduler.scheduler import (
    SelfSchedule,
    Submissions,
    draw_samples,
    self_schedule,
)
from gridsched.systems.jscheduler.study.config import (
    RuntimeEstimate,
    SelfSchedulingStudy,
    Weights,
    parameters,
)
from gridsched.systems.jscheduler.study.failing import pool_of, resources_of
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

Integers = NDArray[np.int64]

ORIGINAL: tuple[RuntimeEstimate, ...] = ("predicted", "requested", "actual")
"""Estimates of the original scenario; what it is compared with are requested times."""

CUT = "requested time cut at what can be simulated"
"""Why a requested time was changed."""

PARAMETERS: tuple[str, ...] = ("factor", "mode", "estimates", "metric", "k")
"""What runs differ in."""

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
    study: SelfSchedulingStudy,
    factor: Reading,
    centre: str,
    workload: str | Path,
    target: str | Path,
    *,
    seed: int = 0,
) -> None:
    """Run the log of a centre there, under requested times, and predict run times from what ends when.

    Predictions and the run under them are left to `fuse_stream` where all logs share a history.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor.
    centre : str
        Name of the centre.
    workload : path
        Result of `gridsched.experiments.prepare.prepare_workload`.
    target : path
        Dataset to write.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    """
    jobs = _workload(study, factor, workload)
    pool, policy = pool_of(study, centre, factor, jobs, seed)
    runs = {name: _alone(study, jobs, pool, policy, name) for name in ("requested", "actual")}
    columns: dict[str, Integers] = {}
    if study.predictor.scope == "source":
        ends = _times(runs["requested"], "end")
        columns["predicted"] = predict_prequential(jobs, ends, study.predictor.made()).run_time
        runs["predicted"] = _alone(study, jobs, pool, policy, columns["predicted"])
    columns |= _original_times(study, runs)
    whole = xr.Dataset({name: ("job", column) for name, column in columns.items()})
    whole.attrs = {
        "title": f"original scenario of {centre}",
        "factor": factor,
        "workload_checksum": jobs.checksum,
        "verified": 1,
        **{f"corrections_{name}": run.attrs["corrections"] for name, run in runs.items()},
        **results.provenance(),
    }
    files.write(whole, target)


def _original_times(study: SelfSchedulingStudy, runs: Mapping[str, xr.Dataset]) -> dict[str, Integers]:
    """Start of each job under some estimates, and its end where that does not follow."""
    times = {f"start_{name}": _times(run, "start") for name, run in runs.items()}
    if study.scenarios[0].failures is not None:
        times |= {f"end_{name}": _times(run, "end") for name, run in runs.items()}
    return times


def _times(run: xr.Dataset, what: Literal["start", "end"]) -> Integers:
    """Start or end of each job of a run [s]; -1 where it did not come to its end."""
    times: Integers = np.where(ended(run), run[f"{what}_time"].values, results.NO_TIME)
    return times


def _workload(study: SelfSchedulingStudy, factor: Reading, path: str | Path) -> Workload:
    """Prepared log of a centre; longer requested times than the slowest resource allows are cut, and counted.

    Some users ask for decades; times a CPU factor that is more than the engine can hold.
    """
    jobs = results.workload_from_dataset(results.read(path))[0]
    slowest = min(resource.speed for resource in study.grid.resources(factor)[0])
    # One less, since the quotient by the speed is rounded
    longest = int(LARGEST * min(slowest, 1.0)) - 1
    cut = {CUT: int((jobs.requested_time > longest).sum())}
    return jobs.select(
        slice(None),
        requested_time=np.minimum(jobs.requested_time, longest),
        repaired=add_counts(jobs.repaired, cut),
    )


def _alone(
    study: SelfSchedulingStudy, jobs: Workload, pool: Cluster, policy: LocalPolicy, estimates: Any
) -> xr.Dataset:
    """Verified run of a log on its own centre."""
    run = simulate(jobs, pool, policy, estimates=estimates, overrun=study.overrun)
    verify(run)
    return run


def _ends(start_time: Integers, run_time: Integers) -> Integers:
    """End of each job [s]; -1 if it does not run."""
    return np.where(start_time >= 0, start_time + run_time, results.NO_TIME)


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
    def of(cls, logs: Mapping[str, Workload], align: Literal["start", "clock"]) -> _Merged:
        jobs, origin = merge_workloads(list(logs.values()), align=align)
        return cls(logs, jobs, origin, [np.flatnonzero(origin == log) for log in range(len(logs))])

    def gathered(self, columns: Sequence[Integers]) -> Integers:
        """Column of all jobs from one column a log."""
        gathered = np.empty(len(self.jobs), np.int64)
        for place, column in zip(self.places, columns, strict=True):
            gathered[place] = column
        return gathered

    def starts(self, columns: Sequence[Integers]) -> Integers:
        """Start times of all jobs, by the clock of the stream, from those of every log by its own clock."""
        firsts = [int(log.submit_time[0]) for log in self.logs.values()]
        shifts = [
            int(self.jobs.submit_time[place[0]]) - first
            for place, first in zip(self.places, firsts, strict=True)
        ]
        pairs = zip(columns, shifts, strict=True)
        return self.gathered([np.where(starts >= 0, starts + shift, starts) for starts, shift in pairs])


def fuse_stream(
    study: SelfSchedulingStudy,
    factor: Reading,
    workloads: Mapping[str, str | Path],
    originals: Mapping[str, str | Path],
    target: str | Path,
    *,
    original_factor: Reading | None = None,
    seed: int = 0,
) -> None:
    """Merge all logs into one stream of submissions, with what the original scenario made of each job.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor on the grid.
    workloads, originals : mapping of centre to path
        Results of `prepare_workload` and `simulate_original`.
    target : path
        Dataset to write.
    original_factor : {"multiply", "divide", "none"}, optional
        Reading of the CPU factor in the original scenario; that of the grid by default.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    """
    at_home = original_factor or factor
    logs = {name: _workload(study, factor, path) for name, path in workloads.items()}
    merged = _Merged.of(logs, study.align)
    pools = [pool_of(study, name, at_home, log, seed) for name, log in merged.logs.items()]
    parts = [results.read(originals[name]) for name in merged.logs]
    own = {str(name): [part[name].values for part in parts] for name in parts[0].data_vars}
    lengths = [
        pool.duration(log.run_time) for (pool, _), log in zip(pools, merged.logs.values(), strict=True)
    ]
    run_time = merged.gathered(lengths)
    ends = merged.starts(own["end_requested"]) if "end_requested" in own else None
    if ends is None:
        ends = _ends(merged.starts(own["start_requested"]), run_time)
    corrections = {f"corrections_{name}": 0 for name in ORIGINAL}
    if study.predictor.scope == "global":
        predicted = predict_prequential(merged.jobs, ends, study.predictor.made(), merged.origin).run_time
        own["predicted"] = [predicted[place] for place in merged.places]
        runs = [
            _alone(study, log, *pool, estimates)
            for log, pool, estimates in zip(merged.logs.values(), pools, own["predicted"], strict=True)
        ]
        parted = [_original_times(study, {"predicted": run}) for run in runs]
        own |= {name: [each[name] for each in parted] for name in parted[0]}
        corrections["corrections_predicted"] = sum(run.attrs["corrections"] for run in runs)
    for name in corrections:
        corrections[name] += sum(int(part.attrs.get(name, 0)) for part in parts)
    columns = {
        name: merged.starts(values) if name.startswith(("start_", "end_")) else merged.gathered(values)
        for name, values in own.items()
    }
    whole = xr.Dataset({name: ("job", column) for name, column in columns.items()})
    whole["original_run_time"] = ("job", run_time)
    whole = whole.assign(_submissions(merged)).assign(_centres(study, merged))
    held = _held(merged.jobs.processors, study.grid.resources(factor)[0])
    whole["held"] = ("job", held.astype(np.int8))
    everywhere = np.all([columns[name] >= 0 for name in columns if name.startswith("end_")], axis=0)
    whole["measured"] = ("job", (held & (ends >= 0) & everywhere).astype(np.int8))
    whole = whole.assign(_lessons(merged, ends, study.predictor.made()))
    whole.attrs = {
        "title": f"fused stream of {study.name}",
        "factor": at_home,
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


def _centres(study: SelfSchedulingStudy, merged: _Merged) -> dict[str, Any]:
    """What the centres are offered."""
    readings = get_args(Reading)
    loads = [
        [offered_load(log, study.grid.pool(name, reading)[0]) for name, log in merged.logs.items()]
        for reading in readings
    ]
    cut = [log.repaired.get(CUT, 0) for log in merged.logs.values()]
    without = [int((log.requested_time <= 0).sum()) for log in merged.logs.values()]
    return {
        "centre": ("centre", list(merged.logs)),
        "reading": ("reading", list(readings)),
        "offered_load": (("reading", "centre"), np.array(loads, np.float64)),
        "jobs_without_requested_time": ("centre", np.array(without, np.int64)),
        "requested_times_cut": ("centre", np.array(cut, np.int64)),
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


# --- runs -----------------------------------------------------------------------------------------


RUN_VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    **VARIABLES,
    "makespan": ((), "time from the first submission to the last end", "s"),
    "queries": ((), "resources that were asked", "1"),
    "corrections": ((), "times that a running job outran its expected end", "1"),
    "predictions_on_unfinished": (
        (),
        "share of the jobs whose prediction rests on a job that has not finished in the run",
        "1",
    ),
    "predictions_unfinished_share": (
        (),
        "mean share of the jobs not finished in the run among those that a prediction was learned from",
        "1",
    ),
}
"""Measures of a run: dimensions, long name and unit."""


def simulate_run(
    study: SelfSchedulingStudy,
    seed: int,
    stream: str | Path,
    target: str | Path,
    *,
    workloads: Sequence[str | Path] = (),
) -> None:
    """Simulate, verify and measure the only run of a study.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study. All jobs ask the same resources in all of its runs, the first k of one sample.
    seed : int
        Seed of the whole configuration.
    stream : path
        Result of `fuse_stream`.
    target : path
        Dataset to write.
    workloads : sequence of paths
        Results of `prepare_workload`, centre by centre, for a run whose predictors learn inside it.
    """
    (scenario,), (scheduler,), (estimates,) = study.scenarios, study.schedulers, study.estimates
    jscheduler: Any = scheduler_made(scheduler)
    merged = files.shared(stream)
    resources, policies = resources_of(study, scenario.factor, merged["submit_time"].values, seed)
    drawn = derived_seed(seed, study.name)
    home = _homes(study, merged, drawn) if jscheduler.sampling == "home" else None
    if estimates == "retrained":
        logs = [_workload(study, scenario.factor, path) for path in workloads]
        options = study.predictor.made()
        done = retrained_schedule(
            logs,
            resources,
            policies,
            jscheduler,
            options=options,
            samples=draw_samples(merged["processors"].values, resources, jscheduler, drawn, home),
            overrun=study.overrun,
            align=study.align,
        ).schedule
    else:
        done = self_schedule(
            _submitted(merged, estimates),
            resources,
            policies,
            jscheduler,
            seed=drawn,
            overrun=study.overrun,
            home=home,
            submission=None
            if scenario.failures is None
            else submitted_to(
                resources, _stream_workload(merged), estimates=merged[estimates].values, overrun=study.overrun
            ),
        )
    run = _schedule(merged, resources, done)
    verify(run)
    jobs = measured_jobs(study, merged)
    unfinished_jobs = int((~ended(run))[jobs.jobs].sum())
    if unfinished_jobs:
        raise ConfigurationError(
            f"{study.name}: {unfinished_jobs} jobs never end since nodes do not come back, and runs are "
            f"compared by jobs that end in all of them; let nodes come up again in {scenario.name!r}"
        )
    labels = {"factor": scenario.case, **parameters(scheduler), "estimates": estimates}
    measures = _measures(study, merged, jobs, estimates, done)
    own = {"centre": merged["centre"].values.tolist()}
    whole = measured_run(measures, RUN_VARIABLES, labels, own)
    files.write(whole.merge(fates_of(run), combine_attrs="override"), target)


def measured_jobs(study: SelfSchedulingStudy, merged: xr.Dataset) -> Cohort:
    """Jobs of a stream that run both in the original scenario and on the single resources, with weights."""
    measured = merged["measured"].values.astype(np.bool_)
    return cohort(
        merged["submit_time"].values,
        merged["centre_index"].values,
        measured,
        merged.sizes["centre"],
        _weight(study.weights, merged, measured),
    )


def _weight(weights: Weights, merged: xr.Dataset, measured: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Weight of each job of a stream in means over all of them; None where all are alike."""
    centre = merged["centre_index"].values.astype(np.int64)
    if weights == "centres":
        count = np.bincount(centre[measured], minlength=merged.sizes["centre"])
        weight: NDArray[np.float64] = 1.0 / np.maximum(count, 1)[centre]
        return weight
    if weights == "work":
        work: NDArray[np.float64] = merged["processors"].values * merged["run_time"].values.astype(np.float64)
        return work
    if weights == "light":
        load = merged["offered_load"].sel(reading=merged.attrs["factor"]).values
        return (load < 1).astype(np.float64)[centre]
    return None


def _homes(study: SelfSchedulingStudy, merged: xr.Dataset, seed: int) -> Integers:
    """Cluster of each job's own centre, drawn where it has several."""
    names = [centre.name for centre in study.grid.centres]
    owner = study.grid.resources("none")[2]
    random = np.random.default_rng((seed, 1))
    homes = np.empty(merged.sizes["job"], np.int64)
    for index, name in enumerate(merged["centre"].values.tolist()):
        own = np.flatnonzero(merged["centre_index"].values == index)
        homes[own] = random.choice(np.flatnonzero(owner == names.index(name)), len(own))
    return homes


def _submitted(merged: xr.Dataset, estimates: RuntimeEstimate) -> Submissions:
    """Jobs of a stream with their runtime estimates."""
    return Submissions(
        submit_time=merged["submit_time"].values,
        run_time=merged["run_time"].values,
        estimate=merged[estimates].values,
        processors=merged["processors"].values,
    )


def _stream_workload(merged: xr.Dataset) -> Workload:
    """Jobs of a stream as a workload."""
    return Workload(
        name=merged.attrs["title"],
        submit_time=merged["submit_time"].values,
        run_time=merged["run_time"].values,
        requested_time=merged["requested"].values,
        requested_processors=merged["processors"].values,
    )


def _schedule(merged: xr.Dataset, resources: Sequence[Cluster], done: SelfSchedule) -> xr.Dataset:
    """As much of a run dataset as the verifier looks at."""
    on_nodes, ends = done.on_nodes, _end_times(done)
    segments = (
        in_one_piece(done.start_time, done.run_time, done.resource, merged["processors"].values)
        if on_nodes is None
        else on_nodes.segments
    )
    more = {} if on_nodes is None else on_nodes.variables
    return xr.Dataset(
        {
            "job_number": ("job", np.arange(1, len(ends) + 1)),
            "submit_time": merged["submit_time"],
            "run_time": ("job", done.run_time),
            "processors": merged["processors"],
            "start_time": ("job", done.start_time),
            "end_time": ("job", ends),
            **{f"segment_{name}": ("segment", segments[name]) for name in segments.dtype.names or ()},
            "cluster_processors": ("cluster", np.array([resource.processors for resource in resources])),
            **{name: (dimensions, values) for name, (dimensions, values, *_) in more.items()},
        },
        {"cluster": [resource.name for resource in resources]},
        {"workload": merged.attrs["title"]},
    )


def _end_times(done: SelfSchedule) -> Integers:
    """End of each job of a run [s]; -1 if it does not run."""
    return _ends(done.start_time, done.run_time) if done.on_nodes is None else done.on_nodes.end_time


def _measures(
    study: SelfSchedulingStudy,
    merged: xr.Dataset,
    jobs: Cohort,
    estimates: RuntimeEstimate,
    done: SelfSchedule,
) -> dict[str, Any]:
    """Values of `RUN_VARIABLES`."""
    submit, ends = merged["submit_time"].values, _end_times(done)
    rests, share = np.nan, np.nan
    if estimates == "predicted":
        lessons = Lessons(**{name: merged[f"lessons_{name}"].values.astype(np.int64) for name in LESSONS})
        rests, share = unfinished(lessons, submit, ends)
    return {
        **measure(
            jobs, done.start_time, done.run_time, ends, study.slowdowns.made(), merged["run_time"].values
        ),
        "makespan": makespan(submit, done.start_time, ends),
        "queries": done.queries,
        "corrections": done.corrections,
        "predictions_on_unfinished": rests,
        "predictions_unfinished_share": share,
    }


# --- predictions ----------------------------------------------------------------------------------


def evaluate_prediction(
    study: SelfSchedulingStudy,
    centre: str,
    workload: str | Path,
    original: str | Path,
    target: str | Path,
) -> None:
    """Compare predictions of the run times of one log with those of other methods.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    centre : str
        Name of the centre.
    workload, original : path
        Results of `prepare_workload` and `simulate_original`.
    target : path
        Dataset to write.
    """
    made = results.read(original)
    factor: Any = made.attrs["factor"]
    jobs = _workload(study, factor, workload)
    pool, _ = study.grid.pool(centre, factor)
    ends = (
        made["end_requested"].values
        if "end_requested" in made
        else _ends(made["start_requested"].values, pool.duration(jobs.run_time))
    )
    whole = evaluate(jobs, ends, study.predictor.made())
    whole.attrs.update(results.provenance())
    files.write(whole, target)


def stack_predictions(predictions: Sequence[str | Path], target: str | Path) -> None:
    """Put the evaluations of predictions of all logs into one dataset."""
    whole = stack_workloads([results.read(path) for path in predictions])
    whole.attrs.update(results.provenance())
    files.write(whole, target)
