"""The predictor inside a simulation, which tells it what finishes and asks it about what is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import to_int64
from gridsched.errors import GridschedError
from gridsched.prediction.features import JobTable, submission_columns
from gridsched.prediction.history import SEEN, finish_jobs, known_at, new_users, see_jobs
from gridsched.prediction.model import Model
from gridsched.prediction.options import PredictorOptions
from gridsched.prediction.prequential import parts
from gridsched.prediction.rules import as_predictions, fallback
from gridsched.prediction.training import train
from gridsched.workloads.table import UNKNOWN, Workload


class Predictor:
    """Predicts run times while a simulation runs.

    Driven by the same ends and trained at the same instants, it predicts exactly what
    `gridsched.prediction.predict_prequential` does. Jobs are indices into the workload, times are whole
    seconds that never go back. At one instant the order is as in simulations: what ends of the jobs that were
    submitted before, then a training, then questions about jobs that are submitted, in their order.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission. Run times are looked at only once jobs have finished.
    options : PredictorOptions, optional
        Those on the schedule of trainings are for the caller to keep.
    source : int64[n], optional
        Log that each job comes from.

    Raises
    ------
    WorkloadError
        If the workload is not clean.
    ConfigurationError
        If `source` does not belong to the jobs.
    """

    def __init__(
        self,
        workload: Workload,
        options: PredictorOptions | None = None,
        source: NDArray[np.int64] | None = None,
    ) -> None:
        self._options = options or PredictorOptions()
        self._now = -1
        self._memories: list[_Memory] = []
        self._memory_of = np.empty(len(workload), np.int64)
        self._place = np.empty(len(workload), np.int64)
        for own, jobs, own_source in parts(workload, self._options, source):
            self._memory_of[jobs] = len(self._memories)
            self._place[jobs] = np.arange(len(jobs))
            self._memories.append(_new_memory(own, own_source))

    @property
    def models(self) -> tuple[Model | None, ...]:
        """The trees in force, one for each history; None before its first training."""
        return tuple(memory.model for memory in self._memories)

    def predict(self, jobs: NDArray[np.int64], now: int) -> NDArray[np.int64]:
        """Predicted run times [s] of jobs, at least 1.

        A job is submitted when it is asked about for the first time. Asked about again, its prediction is by
        the tree then in force, but still from what was known at its submission.
        """
        self._advance(now)
        jobs = to_int64(jobs)
        seconds = np.empty(len(jobs), np.int64)
        for memory, asked in self._split(jobs):
            seconds[asked] = memory.predict(self._place[jobs[asked]], now, self._options)
        return seconds

    def finish(self, jobs: NDArray[np.int64], now: int | NDArray[np.int64]) -> None:
        """Tell that jobs have ended now, or each at a time of its own, in any order.

        Raises
        ------
        GridschedError
            If one of them was never submitted, or has ended before.
        """
        jobs = to_int64(jobs)
        ends = np.broadcast_to(np.asarray(now, np.int64), jobs.shape)
        self._advance(int(np.min(now)))
        self._advance(int(np.max(now)))
        for memory, ended in self._split(jobs):
            memory.finish(self._place[jobs[ended]], ends[ended])

    def drop(self, jobs: NDArray[np.int64]) -> None:
        """Tell that submitted jobs leave the system without ever ending, as rejected ones do.

        Raises
        ------
        GridschedError
            If one of them was never submitted, or has ended before.
        """
        jobs = to_int64(jobs)
        for memory, dropped in self._split(jobs):
            memory.drop(self._place[jobs[dropped]])

    def retrain(self, now: int) -> None:
        """Train anew from the jobs that finished last; without effect while there are too few."""
        self._advance(now)
        for memory in self._memories:
            memory.retrain(now, self._options)

    def _advance(self, now: int) -> None:
        if now < self._now:
            raise GridschedError(f"predictor: time goes back from {self._now} s to {now} s; call it in order")
        self._now = now

    def _split(self, jobs: NDArray[np.int64]) -> Iterator[tuple[_Memory, NDArray[np.int64]]]:
        """Histories that jobs belong to, with the positions of these jobs."""
        if len(self._memories) == 1:
            yield self._memories[0], np.arange(len(jobs))
            return
        memory_of = self._memory_of[jobs]
        for index in np.unique(memory_of).tolist():
            yield self._memories[index], np.flatnonzero(memory_of == index)


_NEW, _IN_SYSTEM, _GONE = range(3)


@dataclass(eq=False)
class _Memory:
    """One history: jobs by their place in it, and what has become of them.

    `order` holds the `known` jobs that are known to have finished, in that order; `pending` those that have
    ended but are not known yet.
    """

    table: JobTable
    status: NDArray[np.int8]
    users: NDArray[np.void]
    everyone: NDArray[np.void]
    order: NDArray[np.int64]
    known: int = 0
    pending: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    model: Model | None = None

    def predict(self, places: NDArray[np.int64], now: int, options: PredictorOptions) -> NDArray[np.int64]:
        self._settle(now)
        submitted = np.unique(places[self.status[places] == _NEW])
        see_jobs(submitted, now, self.table.user, self.users, self.everyone, self.table.seen)
        self.status[submitted] = _IN_SYSTEM
        if self.model is None:
            seconds = fallback(self.table, places, options)[0]
        else:
            chosen = self.model.classify(self.table, places)
            seconds = self.model.intervals.representative[chosen].astype(np.float64)
        return as_predictions(seconds, self.table.requested_time[places], options)

    def finish(self, places: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self._leave(places)
        self.table.end_time[places] = ends
        self.pending = np.concatenate([self.pending, places])

    def drop(self, places: NDArray[np.int64]) -> None:
        self._leave(places)
        user = self.table.user[places]
        np.subtract.at(self.users["in_system"], user[user >= 0], 1)

    def retrain(self, now: int, options: PredictorOptions) -> None:
        self._settle(now)
        if self.known >= options.minimum_history:
            latest = self.order[max(0, self.known - options.window) : self.known]
            self.model = train(self.table, latest, options)

    def _leave(self, places: NDArray[np.int64]) -> None:
        repeated = np.delete(places, np.unique(places, return_index=True)[1])
        wrong = np.concatenate([places[self.status[places] != _IN_SYSTEM], repeated])
        if len(wrong):
            raise GridschedError(
                f"predictor: the job submitted at {self.table.submit_time[wrong[0]]} s is not in the system; "
                "ask for its prediction before it ends, and let it end once"
            )
        self.status[places] = _GONE

    def _settle(self, now: int) -> None:
        """Add to the history what is known by now."""
        if not len(self.pending):
            return
        end = self.table.end_time[self.pending]
        since = known_at(self.table.submit_time[self.pending], end)
        in_order = np.lexsort((self.pending, end, since))
        ripe = in_order[since[in_order] <= now]
        jobs = self.pending[ripe]
        finish_jobs(
            jobs, self.table.run_time, self.table.end_time, self.table.user, self.users, self.everyone
        )
        self.order[self.known : self.known + len(jobs)] = jobs
        self.known += len(jobs)
        self.pending = np.delete(self.pending, ripe)


def _new_memory(workload: Workload, source: NDArray[np.int64] | None) -> _Memory:
    categories, numbers, user = submission_columns(workload, source)
    jobs = len(workload)
    table = JobTable(
        submit_time=to_int64(workload.submit_time),
        run_time=to_int64(workload.run_time),
        end_time=np.full(jobs, UNKNOWN, np.int64),
        requested_time=numbers["requested_time"],
        user=user,
        categories=categories,
        numbers=numbers,
        seen=np.zeros(jobs, SEEN),
    )
    return _Memory(
        table=table,
        status=np.full(jobs, _NEW, np.int8),
        users=new_users(int(user.max(initial=-1)) + 1),
        everyone=new_users(1),
        order=np.empty(jobs, np.int64),
    )
