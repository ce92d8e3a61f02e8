"""Slurm's decisions while jobs run: its past is simulated again at each question.

The controller decides at times of its own, from a state that only a simulation has: so all that is known is
simulated from the beginning, with jobs that still run as long as they may. Nothing that it decided before can
come out differently, since it knew no more than that. The cost of a question grows with the number of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER
from gridsched.errors import ScheduleError
from gridsched.platform import Cluster, Platform
from gridsched.policies.online import Decided, NewJob, Online
from gridsched.submission import submit
from gridsched.workloads.table import Workload

if TYPE_CHECKING:
    from gridsched.systems.slurm.scheduler import Slurm


Integers = NDArray[np.int64]

_WAITS, _REFUSED = -1, -2
"""Instead of the start of a job that waits, or never runs."""


class OnlineSlurm(Online):
    """Slurm that decides for another simulator."""

    def __init__(self, scheduler: Slurm, processors: int) -> None:
        self._scheduler = scheduler
        self._platform = Platform([Cluster(processors=processors, name="hosts")])
        self._jobs: list[NewJob] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        self._jobs += submitted
        self._starts += [_WAITS] * len(submitted)
        self._ends += [-1] * len(submitted)
        for job in ended:
            self._ends[job] = now
        if not self._jobs:
            return Decided()
        found, before = self._simulated(now), np.array(self._starts)
        new = np.flatnonzero((before == _WAITS) & (found == now))
        refused = np.flatnonzero((before == _WAITS) & (found < 0))
        self._check_past(now, before, found)
        for jobs, start in ((new, now), (refused, _REFUSED)):
            for job in jobs.tolist():
                self._starts[job] = start
        later = int(found[found > now].min(initial=FOREVER))
        return Decided(new.tolist(), refused.tolist(), ask_again=later)

    @staticmethod
    def _check_past(now: int, before: Integers, found: Integers) -> None:
        """Stop if a decision of the past comes out differently."""
        missed = (before < 0) & (found >= 0) & (found < now)
        changed = np.flatnonzero(missed | (before >= 0) & (found != before))
        if len(changed):
            job = int(changed[0])
            raise ScheduleError(
                f"job {job} starts at {found[job]} s as Slurm's past is simulated at {now} s, "
                f"and {f'started at {before[job]} s' if before[job] >= 0 else 'has not started'}"
            )

    def _simulated(self, now: int) -> Integers:
        """Start times as they come out of what is known now."""
        columns = [np.array(column, np.int64) for column in zip(*self._jobs, strict=True)]
        submit_time, estimate, processors = columns
        starts, ends = np.array(self._starts), np.array(self._ends)
        lasting = np.maximum(estimate, np.where(starts >= 0, now - starts + 1, 0))
        workload = Workload(
            name="hosts",
            submit_time=submit_time,
            run_time=np.where(ends >= 0, ends - starts, lasting),
            requested_time=estimate,
            requested_processors=processors,
        )
        return self._scheduler.schedule(submit(workload, self._platform)).start_time
