"""A grid while it is simulated: its jobs, its clusters and their local schedulers, for every grid scheduler.

`Grid` is what grid schedulers use. There are two kinds: clusters that are numbers of processors
(`CountedGrid`), and clusters of nodes (`gridsched.systems.node_grids`, which also says when they are needed).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import clusters as engine
from gridsched.engine.clusters import GridArrays, StartPredictions
from gridsched.engine.records import LARGEST, Backfilling
from gridsched.errors import ConfigurationError
from gridsched.policies import scores
from gridsched.results import NO_TIME, Schedule, Variable, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.cluster_records import cluster_records

Integers = NDArray[np.int64]

FIRST_ROOM = 1024
"""Jobs that a local queue has space for at first; queues grow when they need to."""


class Grid(ABC):
    """The n jobs of a submission, and the m clusters of a grid that they are sent to.

    Parameters
    ----------
    submission : Submission
        The jobs and clusters.
    requests : int
        Jobs of the grid that are one job of its user; only one of them runs.

    Attributes
    ----------
    records : CLUSTER[m]
        The clusters as the engine wants them.
    score : compiled function
        Order of local queues that changes with time.
    state, local
        Arrays of the engine; `local` is replaced where more room is needed.
    """

    state: GridArrays
    local: Any

    def __init__(self, submission: Submission, requests: int = 1) -> None:
        self.submission, self.requests = submission, requests
        self.records, self._order = cluster_records(submission.clusters, submission.policies)
        self.score = scores.SCORE.compile(self._order)
        self._stretch = float(submission.given_speed.max(initial=0.0) / self.records["speed"].min())

    def check_estimates(self, jobs: NDArray[Any]) -> None:
        """Refuse estimates of jobs (JOB[...]) that the slowest cluster would stretch beyond what fits."""
        if len(jobs) and jobs["estimate"].max() * self._stretch > LARGEST:
            raise ConfigurationError(
                f"clusters: the slowest is {self._stretch:g} times slower than the fastest; an estimate of "
                f"{jobs['estimate'].max()} s would exceed {LARGEST} s there"
            )

    @abstractmethod
    def can_hold(self, m: int) -> NDArray[np.bool_]:
        """Whether a cluster can hold each job."""

    @abstractmethod
    def make_room(self) -> None:
        """Give local queues more room."""

    def run(self, kernel: Callable[[], bool]) -> None:
        """Run a kernel on the arrays to its end; it returns False while it needs more room.

        Raises
        ------
        ConfigurationError
            If a user's score was not a number for some job.
        """
        while not kernel():
            self.make_room()
        self.check_order()

    @abstractmethod
    def check_order(self) -> None:
        """Refuse a user's score that was not a number for some job."""

    @property
    @abstractmethod
    def submitted(self) -> int:
        """How many jobs have been submitted."""

    @abstractmethod
    def ends(self, jobs: Integers) -> Integers:
        """When jobs end that have started, by index [s]; -1 for the others. One that was killed has not."""

    @abstractmethod
    def is_gone(self, jobs: Integers) -> NDArray[np.bool_]:
        """Whether jobs, by index, have left without an end of their own: given up, never eligible, lost."""

    @abstractmethod
    def schedule(self, counters: Mapping[str, Any]) -> Schedule:
        """What has become of the jobs, by the arrays after a simulation, with counters beside the grid's."""

    def _estimate(self) -> Integers:
        """Estimates of the users' jobs, in the end."""
        return self.submission.seconds_at_home(self.state.requests["estimate"][:: self.requests])

    @property
    def queries(self) -> int:
        """How often a cluster was asked about a job."""
        return int(self.state.clock["queries"][0])


class CountedGrid(Grid):
    """A grid of clusters that are numbers of processors.

    Parameters
    ----------
    submission, requests
        As of `Grid`.
    predictions : StartPredictions
        Where predicted starts come from.
    reach : bool[homes, m], optional
        Clusters that jobs of each home may use; all without, and runs do not say so.
    keyed : bool
        Whether every queue is kept by keys, see `gridsched.engine.clusters.allocate`.
    """

    def __init__(
        self,
        submission: Submission,
        predictions: StartPredictions,
        *,
        reach: NDArray[np.bool_] | None = None,
        requests: int = 1,
        keyed: bool = False,
    ) -> None:
        super().__init__(submission, requests)
        self._predictions, self._reach, self._room = int(predictions), reach, FIRST_ROOM
        self.state, self.local = engine.allocate(
            np.repeat(submission.records(), requests),
            np.repeat(labels_of(submission.workload), requests),
            np.repeat(submission.given_speed, requests),
            np.repeat(submission.home, requests),
            self.records,
            self._room,
            self._predictions,
            keyed=keyed,
        )

    def can_hold(self, m: int) -> NDArray[np.bool_]:
        """Whether a cluster can hold each job."""
        cluster = self.submission.clusters[m]
        return np.asarray(cluster.allocation(self.submission.workload.processors) <= cluster.processors)

    def make_room(self) -> None:
        """Give local queues more room."""
        self._room *= 2
        self.local = engine.with_room(self.state, self.local, self._room, self._predictions)

    def check_order(self) -> None:
        """Refuse a user's score that was not a number for some job."""
        scores.check_order(self._order, self.state.state)

    @property
    def submitted(self) -> int:
        """How many jobs have been submitted."""
        return int(self.state.clock["arrival"][0])

    def ends(self, jobs: Integers) -> Integers:
        """When jobs end that have started, by index [s]; -1 for the others."""
        starts, entry = self._starts(jobs)
        return np.where(starts >= 0, starts + self.local.jobs[0]["run"][entry], NO_TIME)

    def is_gone(self, jobs: Integers) -> NDArray[np.bool_]:
        """Nobody leaves without an end."""
        return np.zeros(len(jobs), np.bool_)

    def _starts(self, jobs: Integers) -> tuple[Integers, Integers]:
        """Start of each job of the grid, -1 without; and its entry into a queue, if it has one."""
        entry = self.state.entry[jobs]
        return np.where(entry >= 0, self.local.starts[0, entry], NO_TIME), entry

    def schedule(self, counters: Mapping[str, Any]) -> Schedule:
        """What has become of the jobs."""
        number, k = len(self.submission), self.requests
        starts, entry = self._starts(np.arange(number * k))
        # of the requests of a job, the one that ran
        chosen = np.arange(number) * k + np.argmax(starts.reshape(number, k) >= 0, axis=1)
        start_time, entry = starts[chosen], entry[chosen]
        ran = start_time >= 0
        # column by column: to choose among whole records takes five times as long
        asked = {
            "run": self.submission.seconds_at_home(self.submission.run_time),
            "processors": self.state.requests["processors"][chosen],
        }
        run_time, processors = (
            np.where(ran, self.local.jobs[0][name][entry], values) for name, values in asked.items()
        )
        cluster = np.where(ran, self.state.cluster[chosen], -1)
        return Schedule(
            start_time=start_time,
            run_time=run_time,
            estimate=self._estimate(),
            segments=in_one_piece(start_time, run_time, cluster, processors),
            variables=self._reach_of_jobs(),
            counters={**counters, "corrections": self._corrections()},
            messages=float(self.queries),
        )

    def _corrections(self) -> int:
        """How often estimates were exceeded where the local policy looks at them."""
        looks = self.records["backfilling"] >= Backfilling.EASY
        return int(self.state.state["corrections"][:-1, 0][looks].sum())

    def _reach_of_jobs(self) -> dict[str, Variable]:
        """Processors of the largest cluster that each job may use, where jobs may not use all."""
        if self._reach is None:
            return {}
        largest = np.where(self._reach, self.records["processors"], 0).max(axis=1)[self.submission.home]
        text = "processors of the largest cluster that the job may use"
        return {"reach_processors": ("job", largest, text, "1")}
