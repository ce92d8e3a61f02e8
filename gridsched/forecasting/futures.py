"""Simulated futures of a queue: run times and arrivals are drawn from what is known, the policy does the
rest.

A future draws a run time for each job that runs or waits from its distribution
(`gridsched.prediction.lifetimes`), and the jobs to come from the past: each day to come is one of the last
eight weeks, at the same hour of the week. Then it is simulated until all jobs have started that wait now
(`gridsched.engine.snapshot`).

Jobs of one user with the same estimate run alike. Their draws are tied by a Gaussian copula with correlation
`TIE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER, JOB, LABELS
from gridsched.engine.snapshot import Beginning
from gridsched.explanation import expected_end
from gridsched.forecasting.snapshot import Snapshot
from gridsched.policies.local import Conventions, LocalPolicy, schedule_from
from gridsched.prediction.lifetimes import LEVELS, learn

DAY = 86400
WEEK = 7 * DAY

WEEKS = 8
"""How many weeks back the jobs to come are drawn from."""

TIE = 0.5
"""Correlation of the normal scores of run times of jobs of one user with the same estimate, in one future."""

_MARGIN = 3600
_MOST_DOUBLINGS = 6


class RunTimes(Protocol):
    """What run times are drawn from."""

    def quantiles(
        self, user: NDArray[np.int64], estimate: NDArray[np.int64], age: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Quantiles of the run times of jobs [s], at levels (i + 1/2) / 64, all above the age [s] or -1."""
        ...


@dataclass(frozen=True, eq=False)
class Futures:
    """Futures of a snapshot under a policy.

    Parameters
    ----------
    snapshot : Snapshot
        The queue, and what has been before.
    policy : LocalPolicy
        The policy that goes on from there.
    conventions : Conventions
        Of the simulation.
    run_times : RunTimes, optional
        What run times are drawn from; by default the history of the snapshot.
    arrivals : bool
        Whether jobs come later.
    """

    snapshot: Snapshot
    policy: LocalPolicy
    conventions: Conventions
    run_times: RunTimes | None = None
    arrivals: bool = True

    def starts(self, count: int, seed: int = 0) -> NDArray[np.float64]:
        """Starts of the waiting jobs in several futures.

        Parameters
        ----------
        count : int
            Number of futures.
        seed : int
            Of everything that is drawn.

        Returns
        -------
        float64[count, w]
            Seconds, infinite for a job that does not start up to the horizon of a future.
        """
        past = self.snapshot.past
        running, waiting = self.snapshot.running, self.snapshot.waiting
        present = np.concatenate([running, waiting])
        if not len(waiting):
            return np.empty((count, 0))
        rng = np.random.default_rng(seed)
        drawn = self._run_times(present, len(running), count, rng)
        expected = self.expected
        source = _Source(self.snapshot) if self.arrivals else None
        made = np.empty((count, len(waiting)))
        span = int(expected.max()) - self.snapshot.now + _MARGIN
        longest = 0
        run_time = past["end"] - past["start"]
        for future in range(count):
            run_time[present] = drawn[future]
            key = int(rng.integers(2**63))
            for _ in range(_MOST_DOUBLINGS):
                later = _NOBODY if source is None else source.draw(span, np.random.default_rng(key))
                starts, complete = self._simulated(present, len(running), later, run_time, span)
                if complete:
                    break
                span *= 2
            made[future] = np.where(starts >= 0, starts, np.inf)
            if complete:
                longest = max(longest, int(starts.max()) - self.snapshot.now)
                # Estimates are mostly far too long: what was needed so far is a better guess.
                span = longest + longest // 4 + _MARGIN
        return made

    @cached_property
    def known(self) -> RunTimes:
        """What run times are drawn from."""
        if self.run_times is not None:
            return self.run_times
        finished = self.snapshot.past[self.snapshot.finished]
        return learn(
            finished["end"] - finished["start"], finished["estimate"], finished["user"], finished["end"]
        )

    @cached_property
    def expected(self) -> NDArray[np.int64]:
        """Starts of the waiting jobs if all estimates are right and nobody comes, as ``squeue --start``."""
        return self.starts_with(self.snapshot.past["estimate"][self.snapshot.waiting])

    def starts_with(
        self, waiting_run_time: NDArray[np.int64], running_run_time: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Starts of the waiting jobs with given run times, if nobody comes.

        Parameters
        ----------
        waiting_run_time, running_run_time : int64
            Run times [s] of the jobs that wait and run, in the order of the snapshot. Jobs that run are
            expected to end at their estimates by default; at the next correction if they have outrun them.
        """
        past, now = self.snapshot.past, self.snapshot.now
        running, waiting = self.snapshot.running, self.snapshot.waiting
        if running_run_time is None:
            begun, estimate = past["start"][running].tolist(), past["estimate"][running].tolist()
            ends = [
                expected_end(start, length, now, self.conventions.overrun)
                for start, length in zip(begun, estimate, strict=True)
            ]
            running_run_time = np.array(ends, np.int64) - past["start"][running]
        run_time = np.zeros(len(past), np.int64)
        run_time[running], run_time[waiting] = running_run_time, waiting_run_time
        present = np.concatenate([running, waiting])
        return self._simulated(present, len(running), _NOBODY, run_time, None)[0]

    @cached_property
    def _columns(self) -> _Columns:
        """The past as kernels want it, without run times."""
        past = self.snapshot.past
        jobs = np.zeros(len(past), JOB)
        for name in ("submit", "estimate", "processors"):
            jobs[name] = past[name]
        if all(isinstance(each, str) for each in (self.policy.order, self.policy.backfill_order)):
            return _Columns(jobs, None)  # no named order looks at labels
        labels = np.empty(len(past), LABELS)
        for name in LABELS.names or ():
            labels[name] = past[name]
        return _Columns(jobs, labels)

    def _run_times(
        self, present: NDArray[np.int64], running: int, count: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Run times of the present jobs in each future."""
        from scipy.special import ndtr  # takes longer to load than a small simulation

        past, now = self.snapshot.past, self.snapshot.now
        known = self.known
        user, estimate = past["user"][present], past["estimate"][present]
        age = np.full(len(present), -1, np.int64)
        age[:running] = now - past["start"][present[:running]]
        # Waiting jobs that ask alike have one distribution.
        kinds, kind = np.unique(np.stack([user, estimate, age], axis=1), axis=0, return_inverse=True)
        quantiles = np.ceil(known.quantiles(kinds[:, 0], kinds[:, 1], kinds[:, 2])).astype(np.int64)
        alike = np.unique(np.stack([user, estimate], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        shared = rng.standard_normal((count, int(alike.max()) + 1))[:, alike]
        own = rng.standard_normal((count, len(present)))
        level = ndtr(np.sqrt(TIE) * shared + np.sqrt(1 - TIE) * own)
        place = np.minimum((level * LEVELS).astype(np.int64), LEVELS - 1)
        return np.asarray(np.maximum(quantiles[kind.reshape(-1)[np.newaxis], place], age + 1))

    def _simulated(
        self,
        present: NDArray[np.int64],
        running: int,
        later: tuple[NDArray[np.int64], NDArray[np.int64]],
        run_time: NDArray[np.int64],
        span: int | None,
    ) -> tuple[NDArray[np.int64], bool]:
        """Starts of the waiting jobs in one future, and whether all of them started."""
        past, now = self.snapshot.past, self.snapshot.now
        which = np.concatenate([present, later[0]])
        columns = self._columns
        jobs = columns.jobs[which]
        jobs["submit"][len(present) :] = later[1]
        jobs["run"] = run_time[which]
        horizon = FOREVER - 1 if span is None else now + span
        # Under another policy than the one that made the queue, jobs may start at once.
        settled = self.snapshot.policy == self.policy.name
        begin = Beginning(now, running, len(present) - running, horizon, settled)
        starts, complete = schedule_from(
            jobs,
            past["start"][present[:running]],
            self.snapshot.processors,
            self.policy,
            begin,
            self.conventions,
            None if columns.labels is None else columns.labels[which],
        )
        return starts[running : len(present)], complete


class _Columns(NamedTuple):
    """JOB[n], and LABELS[n] if they are needed."""

    jobs: NDArray[Any]
    labels: NDArray[Any] | None


_NOBODY = (np.empty(0, np.int64), np.empty(0, np.int64))


class _Source:
    """Where the jobs to come are drawn from."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._now = snapshot.now
        self._submit = np.ascontiguousarray(snapshot.past["submit"])
        self._age = snapshot.now - int(self._submit[0])

    def draw(self, span: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places in the past of the jobs that come within a time [s], and when they come."""
        places, times = [], []
        for begin in range(0, span, DAY):
            length = min(DAY, span - begin)
            back = self._back(begin + DAY, rng)
            if not back:
                continue
            first = self._now + begin - back
            # Jobs of this very second are here already.
            low, high = np.searchsorted(self._submit, [first, first + length], "right")
            places.append(np.arange(low, high))
            times.append(self._submit[low:high] + back)
        if not places:
            return _NOBODY
        return np.concatenate(places), np.concatenate(times)

    def _back(self, end: int, rng: np.random.Generator) -> int:
        """How far back [s] the day is that a day that ends then repeats; 0 if there is none."""
        for unit in (WEEK, DAY):
            least = -(-end // unit)
            most = (self._age + end - DAY) // unit
            if most >= least:
                most = min(most, max(WEEKS * WEEK // unit, least))
                return unit * int(rng.integers(least, most + 1))
        return 0
