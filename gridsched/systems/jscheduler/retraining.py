"""Self-scheduling with run times that are predicted in the run, from the jobs that have finished in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.predictor import Predictor
from gridsched.results import Schedule
from gridsched.submission import NOWHERE, Submission
from gridsched.systems.jscheduler.scheduler import JScheduler, Simulation
from gridsched.traces.merging import merge_workloads
from gridsched.workloads.table import Workload

REFRESH = 3600
"""Seconds between two looks of the predictor at what has finished, by default."""


def retrained_schedule(
    workloads: Sequence[Workload],
    resources: Sequence[Cluster],
    policies: Sequence[str | LocalPolicy],
    jscheduler: JScheduler,
    *,
    options: PredictorOptions | None = None,
    refresh: int = REFRESH,
    samples: NDArray[np.int16] | None = None,
    overrun: OverrunName = "doubling",
    align: Literal["start", "clock"] = "start",
) -> Schedule:
    """Let jobs choose among clusters by predictions from the jobs that have finished in this very run.

    A predictor looks at multiples of `refresh` after the first submission at what has finished, and predicts
    the jobs that are submitted until the next look from what is known then. At a look it is retrained if a
    multiple of `retrain_seconds` or `retrain_jobs` has been reached since the last one, under the conditions
    of `PredictorOptions`. It learns from jobs that ended by themselves: one that was killed and runs again is
    known when it ends, one that was given up or lost never.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs of each log, in order of submission; run times as on a cluster of speed 1.
    resources, policies, jscheduler, samples, overrun
        As for `scheduler.Simulation`, for the merged jobs.
    options : PredictorOptions, optional
        How run times are predicted.
    align : {"start", "clock"}
        How the logs are merged, see `gridsched.traces.merge_workloads`.
    refresh : int
        Seconds between looks. 0: one at every submission, and at every multiple of `retrain_seconds`.

    Returns
    -------
    Schedule
        In the order of the merged jobs: the estimates are what was predicted, the counter `trainings` says
        how often a tree was trained.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If `refresh` is negative, or clusters, policies and samples do not go together.
    """
    if refresh < 0:
        raise ConfigurationError(f"refresh is {refresh}; use 0 or more seconds")
    options = options or PredictorOptions()
    workload, source = merge_workloads(workloads, align=align)
    if len(workload) == 0:
        raise WorkloadError(f"{workload.name}: no jobs to simulate")
    submission = Submission(
        workload=workload,
        home=np.full(len(workload), NOWHERE, np.int64),
        platform=Platform(list(resources)).with_policy(list(policies)),
        conventions=Conventions(overrun=overrun),
        times="unit",
    )
    simulation = Simulation(submission, jscheduler, samples=samples, estimates_follow=True)
    histories = _histories(workloads, workload, source, options)
    submit = workload.submit_time
    looks = _looks(submit, refresh, options.retrain_seconds)
    for look, after in zip(looks.tolist(), [*looks[1:].tolist(), int(submit[-1]) + 1], strict=True):
        simulation.run(look)
        for history in histories:
            history.learn(simulation, look)
            simulation.estimate(*history.predict(look, after, simulation))
    simulation.run()
    done = simulation.result()
    trainings = sum(history.trainings for history in histories)
    return replace(done, counters={**done.counters, "trainings": trainings})


def _looks(submit: NDArray[np.int64], refresh: int, retrain: int | None) -> NDArray[np.int64]:
    """When predictors look at what has finished [s], increasing, the first submission first."""
    if refresh:
        return np.arange(submit[0], submit[-1] + 1, refresh)
    trainings = np.arange(submit[0], submit[-1] + 1, retrain) if retrain else submit[:1]
    return np.unique(np.concatenate([submit, trainings]))


@dataclass(eq=False)
class _History:
    """A predictor in a run, with the jobs that it knows: `jobs` are their indices in the merged stream.

    `offset` is what its own clock shows when the run begins.
    """

    predictor: Predictor
    jobs: NDArray[np.int64]
    submit_time: NDArray[np.int64]
    offset: int
    options: PredictorOptions
    predicted: int = 0
    finished: int = 0
    trained: int = 0
    trainings: int = 0
    looked: int | None = None
    active: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def learn(self, simulation: Simulation, now: int) -> None:
        """Tell the predictor what has finished by now, and train it if that is due."""
        if not len(self.jobs):
            return
        before = self.finished
        ends = simulation.ends(self.jobs[self.active])
        over = (ends >= 0) & (ends <= now)
        gone = simulation.is_gone(self.jobs[self.active])
        if gone.any():
            self.predictor.drop(self.active[gone])
        if over.any():
            self.predictor.finish(self.active[over], ends[over] + self.offset)
            self.finished += int(over.sum())
        self.active = self.active[~(over | gone)]
        if self._is_due(before, now) and self._is_worth_it():
            self.predictor.retrain(now + self.offset)
            self.trained = self.finished
            self.trainings += 1
        self.looked = now

    def predict(
        self, now: int, until: int, simulation: Simulation
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Jobs submitted from now to before `until`, as indices in the stream, with their run times [s]."""
        stop = int(np.searchsorted(self.submit_time, until, side="left"))
        own = np.arange(self.predicted, stop)
        self.predicted = stop
        if not len(own):
            return own, own
        rejected = simulation.is_rejected(self.jobs[own])
        seconds = np.empty(len(own), np.int64)
        # A rejected job is in no system, so it leaves before the next one is asked about.
        for part in np.split(np.arange(len(own)), np.flatnonzero(rejected) + 1):
            seconds[part] = self.predictor.predict(own[part], now + self.offset)
            self.predictor.drop(own[part[rejected[part]]])
        self.active = np.concatenate([self.active, own[~rejected]])
        return self.jobs[own], seconds

    def _is_due(self, before: int, now: int) -> bool:
        """Whether a multiple of the times or numbers of trainings has been reached since the last look."""
        by_time = by_jobs = False
        if self.options.retrain_seconds is not None and self.looked is not None:
            step, start = self.options.retrain_seconds, int(self.submit_time[0])
            by_time = (now - start) // step > max(0, (self.looked - start) // step)
        if self.options.retrain_jobs is not None:
            by_jobs = self.finished // self.options.retrain_jobs > before // self.options.retrain_jobs
        return by_time or by_jobs

    def _is_worth_it(self) -> bool:
        """Whether enough jobs have finished, in all and since the last training."""
        new = self.finished - self.trained
        enough = self.options.retrain_growth * min(self.trained, self.options.window)
        return new > 0 and self.finished >= self.options.minimum_history and new >= enough


def _histories(
    workloads: Sequence[Workload], merged: Workload, source: NDArray[np.int64], options: PredictorOptions
) -> list[_History]:
    """A predictor for each log, by its own clock; one for all where they share a history."""
    if options.scope == "global":
        everyone = np.arange(len(merged))
        return [_History(Predictor(merged, options, source), everyone, merged.submit_time, 0, options)]
    return [
        _History(
            Predictor(workload, options),
            np.flatnonzero(source == index),
            workload.submit_time - workload.submit_time[0],
            int(workload.submit_time[0]),
            options,
        )
        for index, workload in enumerate(workloads)
        if len(workload)
    ]
