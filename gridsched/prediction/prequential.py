"""Prequential prediction: each job is predicted from what is known at its submission, then learned from.

The classification tree is trained anew on a schedule, from the jobs that are known to have finished at that
instant (see `gridsched.prediction.history`), with their features as of their own submissions. It then
predicts the jobs that are submitted from that instant on until before the next training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import to_int64
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.prediction.features import JobTable, submission_columns
from gridsched.prediction.history import known_at, replay
from gridsched.prediction.model import Model
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.rules import KINDS, TREE, as_predictions, fallback
from gridsched.prediction.training import train
from gridsched.workloads.table import UNKNOWN, Workload

Result = TypeVar("Result")


@dataclass(frozen=True)
class Period:
    """Jobs that are predicted by one training.

    Parameters
    ----------
    instant : int
        Time of the training [s].
    finished : int
        Number of jobs that are known to have finished then.
    first, stop : int
        The jobs are those from index `first` to before `stop` of the stream.
    """

    instant: int
    finished: int
    first: int
    stop: int

    @property
    def jobs(self) -> slice:
        """The jobs that are predicted."""
        return slice(self.first, self.stop)


@dataclass(frozen=True, eq=False)
class Stream:
    """Jobs that share a history.

    Parameters
    ----------
    jobs : int64[n]
        Indices of the jobs in the workload, in order of submission.
    table : JobTable
        What is known of each.
    order : int64[k]
        Indices in this stream of the jobs that finish, in the order in which they become known.
    periods : tuple of Period
        What is trained when; jobs before the first one cannot be predicted by a tree.
    """

    jobs: NDArray[np.int64]
    table: JobTable
    order: NDArray[np.int64]
    periods: tuple[Period, ...]

    def history(self, period: Period, window: int) -> NDArray[np.int64]:
        """The jobs that finished last before a training."""
        return self.order[max(0, period.finished - window) : period.finished]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted run times of the n jobs of a workload.

    Parameters
    ----------
    run_time : int64[n]
        Predicted run time [s], at least 1.
    interval : int64[n]
        Index of the interval that the tree names; -1 where there was no tree.
    lower, upper : int64[n]
        Shortest and longest run time of that interval [s]; -1 where there was no tree.
    kind : int8[n]
        Where the prediction comes from, an index into `gridsched.prediction.rules.KINDS`.
    trained_at : int64[n]
        Instant of the training of the tree [s]; -1 where there was no tree.
    retrainings : int
        Number of trainings whose tree predicted a job.
    counts : dict of str to int
        Predictions by kind, those cut at the requested time ("cut at the requested time"), and jobs that
        never end ("without an end").
    features_absent : tuple of str
        Features that the workload does not know for any job, or the same for all.
    """

    run_time: NDArray[np.int64]
    interval: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    kind: NDArray[np.int8]
    trained_at: NDArray[np.int64]
    retrainings: int
    counts: dict[str, int]
    features_absent: tuple[str, ...]


def recorded_end_time(workload: Workload) -> NDArray[np.int64]:
    """End of each job as the log recorded it: submit + wait + run time [s]; -1 where a part is not known."""
    wait, run = workload.wait_time, workload.run_time
    ends = workload.submit_time + wait + run
    return np.where((wait >= 0) & (run >= 0), ends, UNKNOWN).astype(np.int64)


def predict_prequential(
    workload: Workload,
    end_time: NDArray[np.int64],
    options: PredictorOptions | None = None,
    source: NDArray[np.int64] | None = None,
    *,
    threads: int = 1,
) -> Predictions:
    """Predict the run time of every job from the jobs that have finished before its submission.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    end_time : int64[n]
        When each job ends [s], recorded or simulated; -1 for jobs that never end, which are in no history.
    options : PredictorOptions, optional
    source : int64[n], optional
        Log that each job comes from, as `gridsched.traces.merge_workloads` gives it; users of different logs
        are different users.
    threads : int
        Trainings at the same time; predictions do not depend on it.

    Returns
    -------
    Predictions

    Raises
    ------
    WorkloadError
        If the workload is not clean, or ends do not belong to its jobs.
    ConfigurationError
        If `source` does not belong to the jobs.
    """
    options = options or PredictorOptions()
    trained = streams(workload, end_time, options, source)
    jobs = len(workload)
    seconds = np.empty(jobs)
    columns: dict[str, Any] = {
        name: np.full(jobs, UNKNOWN, np.int64) for name in ("interval", "lower", "upper", "trained_at")
    }
    columns["kind"] = np.empty(jobs, np.int8)
    for stream in trained:
        seconds[stream.jobs], columns["kind"][stream.jobs] = fallback(stream.table, slice(None), options)
        _predict_by_trees(stream, options, threads, seconds, columns)
    run_time = as_predictions(seconds, workload.requested_time, options)
    counts = {name: int(np.count_nonzero(columns["kind"] == k)) for k, name in enumerate(KINDS)}
    counts["cut at the requested time"] = int(np.count_nonzero(run_time < np.rint(seconds)))
    counts["without an end"] = int(np.count_nonzero(np.asarray(end_time) < 0))
    return Predictions(
        run_time=run_time,
        **columns,
        retrainings=sum(len(stream.periods) for stream in trained),
        counts=counts,
        features_absent=features_absent(trained, options),
    )


def _predict_by_trees(
    stream: Stream,
    options: PredictorOptions,
    threads: int,
    seconds: NDArray[np.float64],
    columns: dict[str, Any],
) -> None:
    """Write the predictions of all trees of a stream: run times [s] and the columns of `Predictions`."""

    def trained(stream: Stream, period: Period) -> Model:
        return train(stream.table, stream.history(period, options.window), options)

    for period, model in zip(stream.periods, for_each_period(stream, trained, threads), strict=True):
        own = stream.jobs[period.jobs]
        chosen = model.classify(stream.table, period.jobs)
        seconds[own] = model.intervals.representative[chosen]
        columns["kind"][own] = TREE
        columns["interval"][own] = chosen
        columns["lower"][own] = model.intervals.lower[chosen]
        columns["upper"][own] = model.intervals.upper[chosen]
        columns["trained_at"][own] = period.instant


def streams(
    workload: Workload,
    end_time: NDArray[np.int64],
    options: PredictorOptions,
    source: NDArray[np.int64] | None = None,
) -> list[Stream]:
    """The jobs of a workload by the history that they share, see `predict_prequential`."""
    end_time = np.asarray(end_time)
    _check_ends(workload, end_time)
    return [
        _stream(part, jobs, end_time[jobs], part_source, options)
        for part, jobs, part_source in parts(workload, options, source)
    ]


def parts(
    workload: Workload, options: PredictorOptions, source: NDArray[np.int64] | None
) -> list[tuple[Workload, NDArray[np.int64], NDArray[np.int64] | None]]:
    """Jobs that share a history, their indices, and the logs that they come from if these are several.

    Raises
    ------
    WorkloadError
        If the workload is not clean.
    ConfigurationError
        If `source` does not belong to the jobs.
    """
    _check_jobs(workload)
    if source is None:
        return [(workload, np.arange(len(workload)), None)]
    source = to_int64(source)
    if source.shape != (len(workload),):
        raise ConfigurationError(
            f"{workload.name}: source has shape {source.shape} for {len(workload)} jobs; give one for each"
        )
    if options.scope == "global":
        return [(workload, np.arange(len(workload)), source)]
    groups = [np.flatnonzero(source == log) for log in np.unique(source)]
    return [(workload.select(jobs), jobs, None) for jobs in groups]


def for_each_period(
    stream: Stream, work: Callable[[Stream, Period], Result], threads: int
) -> Iterator[Result]:
    """Results of `work` for all periods of a stream, in order; several at the same time."""
    if threads <= 1:
        return (work(stream, period) for period in stream.periods)
    with ThreadPoolExecutor(threads) as pool:
        return pool.map(lambda period: work(stream, period), stream.periods)


def features_absent(trained: Sequence[Stream], options: PredictorOptions) -> tuple[str, ...]:
    """Features that no training could use: the workload does not know them, or one value only."""
    columns = {name: [stream.table.column(name) for stream in trained] for name in options.features}
    return tuple(name for name, parts in columns.items() if all((part == part[0]).all() for part in parts))


def _stream(
    workload: Workload,
    jobs: NDArray[np.int64],
    end_time: NDArray[np.int64],
    source: NDArray[np.int64] | None,
    options: PredictorOptions,
) -> Stream:
    table, order = job_table(workload, end_time, source)
    return Stream(jobs, table, order, tuple(_periods(table, order, options)))


def job_table(
    workload: Workload, end_time: NDArray[np.int64], source: NDArray[np.int64] | None
) -> tuple[JobTable, NDArray[np.int64]]:
    """Table of the jobs with what each sees of the history, and the order in which they become known."""
    submit, run, end = (to_int64(each) for each in (workload.submit_time, workload.run_time, end_time))
    categories, numbers, user = submission_columns(workload, source)
    seen, order = replay(submit, run, end, user)
    table = JobTable(submit, run, end, numbers["requested_time"], user, categories, numbers, seen)
    return table, order


def _periods(table: JobTable, order: NDArray[np.int64], options: PredictorOptions) -> Iterator[Period]:
    """Trainings on schedule that have enough new history and jobs to predict."""
    known = known_at(table.submit_time[order], table.end_time[order])
    instants = _schedule(table.submit_time, known, options)
    finished = np.searchsorted(known, instants, side="right")
    worth = _worth_training(finished, options)
    instants, finished = instants[worth], finished[worth]
    first = np.searchsorted(table.submit_time, instants, side="left")
    stop = np.append(first, len(table))[1:]
    for values in zip(*(each.tolist() for each in (instants, finished, first, stop)), strict=True):
        period = Period(*values)
        if period.first < period.stop:
            yield period


def _schedule(
    submit_time: NDArray[np.int64], known: NDArray[np.int64], options: PredictorOptions
) -> NDArray[np.int64]:
    """Instants of trainings, increasing; `known` is when finished jobs become known, in order."""
    instants = [np.empty(0, np.int64)]
    if options.retrain_seconds is not None:
        step = options.retrain_seconds
        instants.append(np.arange(submit_time[0] + step, submit_time[-1] + 1, step))
    if options.retrain_jobs is not None:
        instants.append(known[options.retrain_jobs - 1 :: options.retrain_jobs])
    return np.unique(np.concatenate(instants))


def _worth_training(finished: NDArray[np.int64], options: PredictorOptions) -> NDArray[np.int64]:
    """Indices of the scheduled trainings before which enough jobs have finished."""
    changed = np.flatnonzero(np.diff(finished, prepend=0))
    chosen, last = [], 0
    for index in changed[finished[changed] >= options.minimum_history].tolist():
        now = int(finished[index])
        if now - last >= options.retrain_growth * min(last, options.window):
            chosen.append(index)
            last = now
    return np.array(chosen, np.int64)


def _check_jobs(workload: Workload) -> None:
    """Refuse jobs that cannot be replayed."""
    name = workload.name
    if not len(workload):
        raise WorkloadError(f"{name}: no jobs to predict")
    if (workload.submit_time < 0).any() or (workload.run_time < 0).any():
        raise WorkloadError(f"{name}: jobs without submit time or run time; clean the workload first")
    if (np.diff(workload.submit_time) < 0).any():
        raise WorkloadError(f"{name}: jobs are not in order of submission; clean the workload first")


def _check_ends(workload: Workload, end_time: NDArray[np.int64]) -> None:
    """Refuse ends that are not those of the jobs."""
    name, jobs = workload.name, len(workload)
    if end_time.shape != (jobs,):
        raise WorkloadError(f"{name}: end times of shape {end_time.shape} for {jobs} jobs; give one for each")
    if end_time.dtype.kind not in "iu":
        raise WorkloadError(f"{name}: end times are {end_time.dtype}; give whole seconds, -1 for none")
    early = (end_time >= 0) & (end_time < workload.submit_time)
    if early.any():
        job = int(np.argmax(early))
        raise WorkloadError(
            f"{name}: job {workload.job_number[job]} ends at {end_time[job]} s, before its submission at "
            f"{workload.submit_time[job]} s; give the ends of these jobs"
        )
