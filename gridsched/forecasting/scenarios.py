"""Simulated scenarios of a queue: run times and arrivals are drawn from what is known, the policy does the
rest.

A scenario draws a run time for each job that runs or waits from its distribution
(`gridsched.prediction.lifetimes`), and the jobs to come from the past: each day to come is one of the last
eight weeks, at the same hour of the week. Then it is simulated until all jobs have started that wait now
(`gridsched.engine.snapshot`).

Jobs of one user with the same estimate have similar run times. Their draws are tied by a Gaussian copula
with correlation `TIE`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import scenarios
from gridsched.engine.records import FOREVER, JOB, LABELS
from gridsched.engine.scenarios import DAY, MARGIN
from gridsched.engine.snapshot import Beginning
from gridsched.explanation import expected_end
from gridsched.forecasting.calibrated import CalibratedPolicy
from gridsched.forecasting.on_nodes import PolicyOnNodes
from gridsched.forecasting.snapshot import Snapshot
from gridsched.policies.local import (
    Conventions,
    LocalPolicy,
    first_come_options,
    is_first_come,
    schedule_from,
)
from gridsched.prediction.lifetimes import HISTORY, LEVELS, learn
from gridsched.workloads.table import UNKNOWN

WEEK = 7 * DAY

WEEKS = 8
"""How many weeks back the jobs to come are drawn from."""

TIE = 0.5
"""Correlation of the normal scores of run times of jobs of one user with the same estimate."""

_LONGEST = 16
"""A scenario ends when so many times the time has passed that it takes if all estimates are right."""

_PARTS = 4
"""Parts of the scenarios for each thread: the threads are seldom done at once."""


Replayed = CalibratedPolicy | PolicyOnNodes
"""Policies of which each future is a replay."""


class RunTimes(Protocol):
    """What run times are drawn from."""

    def quantiles(
        self, user: NDArray[np.int64], estimate: NDArray[np.int64], age: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Quantiles of the run times of jobs [s], at levels (i + 1/2) / 64, all above the age [s] or -1."""
        ...


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Scenarios of a snapshot under a policy.

    Parameters
    ----------
    snapshot : Snapshot
        The queue, and what has been before.
    policy : LocalPolicy, CalibratedPolicy or PolicyOnNodes
        The policy that goes on from there.
    conventions : Conventions
        Of the simulation under a local policy.
    run_times : RunTimes, optional
        What run times are drawn from; by default the history of the snapshot.
    arrivals : bool
        Whether jobs come later.
    """

    snapshot: Snapshot
    policy: LocalPolicy | Replayed
    conventions: Conventions
    run_times: RunTimes | None = None
    arrivals: bool = True

    def starts(
        self, count: int, seed: int = 0, *, asked: NDArray[np.int64] | None = None, threads: int = 1
    ) -> NDArray[np.float64]:
        """Starts of the waiting jobs in several scenarios.

        Parameters
        ----------
        count : int
            Number of scenarios.
        seed : int
            Of everything that is drawn.
        asked : int64[a], optional
            Which of the waiting jobs, increasing; all of them if not given. A scenario ends when these have
            started.
        threads : int
            Threads that simulate. The starts do not depend on it.

        Returns
        -------
        float64[count, a]
            Seconds, infinite for a job that does not start up to the horizon of a scenario.
        """
        waiting = self.snapshot.waiting
        asked = np.arange(len(waiting)) if asked is None else np.asarray(asked, np.int64)
        if not len(asked):
            return np.empty((count, 0))
        rng = np.random.default_rng(seed)
        run_time = self._run_times(count, rng)
        span = int(self.expected.max()) - self.snapshot.now + MARGIN
        # With first come, first served alone nobody who comes later is in anybody's way.
        alone = (
            isinstance(self.policy, LocalPolicy)
            and is_first_come(self.policy)
            and self.policy.backfilling == "none"
        )
        # A queue without a history has no past to repeat: who is in it came before, and will not come again.
        come = self.arrivals and not alone and len(self.snapshot.finished) > 0
        days = -(-_LONGEST * span // DAY) if come else 0
        back = _days_back(self.snapshot, days, count, rng)
        made = self._simulated(run_time, back, asked, span, threads)
        return np.where(made >= 0, made.astype(np.float64), np.inf)

    @cached_property
    def known(self) -> RunTimes:
        """What run times are drawn from."""
        if self.run_times is not None:
            return self.run_times
        past, places = self.snapshot.past, self.snapshot.finished
        end = past["end"][places]
        if len(places) > HISTORY:
            # learn looks at the last ones alone; to sort all of a long log takes longer than the scenarios
            places = places[end >= np.partition(end, len(end) - HISTORY)[len(end) - HISTORY]]
        finished = past[places]
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
            expected to end at their estimates by default; at the next correction if they have exceeded them.
        """
        past, now = self.snapshot.past, self.snapshot.now
        running = self.snapshot.running
        if running_run_time is None:
            begun, estimate = past["start"][running].tolist(), past["estimate"][running].tolist()
            ends = [
                expected_end(start, length, now, self.conventions.overrun)
                for start, length in zip(begun, estimate, strict=True)
            ]
            running_run_time = np.array(ends, np.int64) - past["start"][running]
        run_time = np.concatenate([running_run_time, waiting_run_time])[np.newaxis]
        nobody = np.empty((1, 0), np.int64)
        everyone = np.arange(len(self.snapshot.waiting))
        return np.asarray(self._simulated(run_time, nobody, everyone, MARGIN, 1)[0])

    @cached_property
    def _jobs(self) -> NDArray[Any]:
        """The past as kernels want it: JOB[n], the run time of the present job k being -1 - k."""
        past = self.snapshot.past
        jobs = np.empty(len(past), JOB)
        for name in ("submit", "estimate", "processors"):
            jobs[name] = past[name]
        jobs["run"] = past["end"] - past["start"]
        jobs["run"][self._present] = -1 - np.arange(len(self._present))
        return jobs

    @cached_property
    def _present(self) -> NDArray[np.int64]:
        """Places of the running jobs and of the waiting ones in the past."""
        return np.concatenate([self.snapshot.running, self.snapshot.waiting])

    def _labels(self, policy: LocalPolicy, which: NDArray[np.int64]) -> NDArray[Any] | None:
        """LABELS of some jobs of the past, if the policy looks at any."""
        if all(isinstance(each, str) for each in (policy.order, policy.backfill_order)):
            return None  # no named order looks at labels
        past = self.snapshot.past[which]
        labels = np.empty(len(past), LABELS)
        for name in ("user", "group", "queue", "number"):
            labels[name] = past[name]
        labels["processors"] = past["requested"]
        return labels

    def _run_times(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Run times of the present jobs in each scenario."""
        from scipy.special import ndtr  # takes longer to load than a small simulation

        past, now = self.snapshot.past, self.snapshot.now
        present, running = self._present, len(self.snapshot.running)
        known = self.known
        user, estimate = past["user"][present], past["estimate"][present]
        age = np.full(len(present), -1, np.int64)
        age[:running] = now - past["start"][present[:running]]
        # Waiting jobs that ask alike have one distribution.
        kinds, kind = np.unique(np.stack([user, estimate, age], axis=1), axis=0, return_inverse=True)
        quantiles = np.ceil(known.quantiles(kinds[:, 0], kinds[:, 1], kinds[:, 2])).astype(np.int64)
        # who submitted a job of an unknown user is somebody else than who submitted the next one
        unknown = np.where(user == UNKNOWN, np.arange(len(user)), -1)
        same = np.stack([user, estimate, unknown], axis=1)
        alike = np.unique(same, axis=0, return_inverse=True)[1].reshape(-1)
        shared = rng.standard_normal((count, int(alike.max()) + 1))[:, alike]
        own = rng.standard_normal((count, len(present)))
        level = ndtr(np.sqrt(TIE) * shared + np.sqrt(1 - TIE) * own)
        place = np.minimum((level * LEVELS).astype(np.int64), LEVELS - 1)
        return np.asarray(np.maximum(quantiles[kind.reshape(-1)[np.newaxis], place], age + 1))

    def _simulated(
        self,
        run_time: NDArray[np.int64],
        back: NDArray[np.int64],
        asked: NDArray[np.int64],
        span: int,
        threads: int,
    ) -> NDArray[np.int64]:
        """Starts of some waiting jobs in each scenario, -1 where there is none.

        Parameters
        ----------
        run_time : int64[f, p]
            Of the running and waiting jobs [s].
        back : int64[f, d]
            See `gridsched.engine.scenarios.simulate`.
        asked : int64[a]
            Places among the waiting jobs.
        span : int
            Seconds that a scenario is thought to take at first.
        threads : int
            Threads.
        """
        snapshot, policy = self.snapshot, self.policy
        running = snapshot.running
        made = np.empty((len(run_time), len(asked)), np.int64)
        if isinstance(policy, LocalPolicy) and is_first_come(policy):
            present = scenarios.Present(
                past=self._jobs,
                places=self._present,
                begun=np.ascontiguousarray(snapshot.past["start"][running]),
                asked=len(running) + asked,
                now=snapshot.now,
                processors=snapshot.processors,
                span=span,
            )
            options = first_come_options(policy, self.conventions)
            simulate = partial(scenarios.simulate, present, options, run_time, back)
        else:
            simulate = partial(self._one_by_one, run_time, back, asked, span)
        threads = min(threads, len(run_time))
        if threads < 2:
            simulate(0, len(run_time), made)
            return made
        bounds = np.linspace(0, len(run_time), _PARTS * threads + 1).astype(np.int64).tolist()
        with ThreadPoolExecutor(threads) as pool:
            parts = [pool.submit(simulate, first, last, made) for first, last in pairwise(bounds)]
            for part in parts:
                part.result()
        return made

    def _one_by_one(
        self,
        run_time: NDArray[np.int64],
        back: NDArray[np.int64],
        asked: NDArray[np.int64],
        span: int,
        first: int,
        last: int,
        made: NDArray[np.int64],
    ) -> None:
        """Simulate scenarios of policies that have no kernel for all of them, from one on up to another."""
        snapshot, present = self.snapshot, self._present
        running = len(snapshot.running)
        most, longest = back.shape[1] * DAY, 0
        for scenario in range(first, last):
            while True:
                span = min(span, most)
                places, times = _coming(snapshot, back[scenario], span)
                which = np.concatenate([present, places])
                jobs = self._jobs[which]
                jobs["submit"][len(present) :] = times
                jobs["run"][: len(present)] = run_time[scenario]
                drawn = jobs["run"] < 0
                jobs["run"][drawn] = run_time[scenario][-1 - jobs["run"][drawn]]
                horizon = snapshot.now + span if most else FOREVER - 1
                if isinstance(self.policy, LocalPolicy):
                    starts = self._scheduled(self.policy, which, jobs, horizon)
                else:
                    starts = self._replayed(self.policy, which, jobs, horizon)
                complete = bool((starts[running:] >= 0).all())
                if complete or span >= most:
                    break
                span *= 2
            made[scenario] = starts[running + asked]
            if complete:
                longest = max(longest, int(starts[running:].max()) - snapshot.now)
                # Estimates are mostly far too long: what was needed so far is a better guess.
                span = longest + longest // 4 + MARGIN

    def _scheduled(
        self, policy: LocalPolicy, which: NDArray[np.int64], jobs: NDArray[Any], horizon: int
    ) -> NDArray[np.int64]:
        """Starts of the present jobs, with jobs that come, under a local policy; -1 beyond the horizon."""
        snapshot = self.snapshot
        running, waiting = len(snapshot.running), len(snapshot.waiting)
        # Under another policy than the one that made the queue, jobs may start at once.
        settled = snapshot.policy == policy.name
        starts, _ = schedule_from(
            jobs,
            snapshot.past["start"][snapshot.running],
            snapshot.processors,
            policy,
            Beginning(snapshot.now, running, waiting, horizon, settled),
            self.conventions,
            self._labels(policy, which),
        )
        return starts[: running + waiting]

    def _replayed(
        self, policy: Replayed, which: NDArray[np.int64], jobs: NDArray[Any], horizon: int
    ) -> NDArray[np.int64]:
        """The same under a policy that replays."""
        starts = policy.starts(self.snapshot, which, jobs["submit"], jobs["run"])[: len(self._present)]
        return np.where(starts <= horizon, starts, -1)


def _days_back(snapshot: Snapshot, days: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How far back [s] the day of the past is that each day to come repeats in each scenario; 0 for none."""
    begin = np.arange(days) * DAY
    age = snapshot.now - int(snapshot.past["submit"][0])
    back = np.zeros((days, count), np.int64)
    # By day, such that the first days do not depend on how many there are.
    drawn = rng.random((days, count))
    for unit in (WEEK, DAY):
        least = -(-(begin + DAY) // unit)
        most = np.minimum((age + begin) // unit, np.maximum(WEEKS * WEEK // unit, least))
        choice = (drawn * (most - least + 1)[:, np.newaxis]).astype(np.int64)
        chosen = unit * (least[:, np.newaxis] + choice)
        back = np.where((back == 0) & (most >= least)[:, np.newaxis], chosen, back)
    return np.ascontiguousarray(back.T)


def _coming(
    snapshot: Snapshot, back: NDArray[np.int64], span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in the past of the jobs that come within a time [s], and when they come."""
    submit = snapshot.past["submit"]
    places, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for day, begin in enumerate(range(0, min(span, len(back) * DAY), DAY)):
        if back[day]:
            first = snapshot.now + begin - int(back[day])
            # Jobs of this very second are here already.
            low, high = np.searchsorted(submit, [first, first + min(DAY, span - begin)], "right")
            places.append(np.arange(low, high))
            times.append(submit[low:high] + back[day])
    return np.concatenate(places), np.concatenate(times)
