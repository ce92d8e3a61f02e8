"""Minutes of resources that groups have used, and that their running jobs may still use.

GrpTRESMins and GrpTRESRunMins of associations and qualities of service. Slurm counts at each calculation of
priorities and at the end of each job. What was used decays with PriorityDecayHalfLife, and is forgotten with
PriorityUsageResetPeriod; priority/basic counts nothing, so that there only what was used before counts.

Source: src/slurmctld/acct_policy.c and src/plugins/priority/multifactor of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.kernels import RUNNING, Tables
from gridsched.systems.slurm.parameters import SlurmParameters
from gridsched.systems.slurm.priority import Priorities, Resets, Usage

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class MinuteRules:
    """What counts for limits of minutes, and how.

    Parameters
    ----------
    factor : float64[n]
        What each job uses counts so many times: UsageFactor of its quality of service.
    keeps : bool[...]
        Rows of limits of which what was used does not decay (flag NoDecay of a quality of service).
    begin : int
        When the controller started [ticks].
    resets : Resets
        When what was used is forgotten.
    """

    factor: NDArray[np.float64]
    keeps: NDArray[np.bool_]
    begin: int
    resets: Resets


class Minutes(Usage):
    """Priorities of another source, and the minutes of groups beside them.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler. What jobs use is counted with priority/multifactor only; without safe
        limits the running jobs of a group that has used up its minutes are killed.
    inner : Priorities
        Where priorities come from.
    rules : MinuteRules
        What counts, and how.
    tables : Tables
        The controller's: its limits have what was used before.
    unit : int
        Ticks a second.
    """

    def __init__(
        self,
        parameters: SlurmParameters,
        inner: Priorities,
        rules: MinuteRules,
        tables: Tables,
        unit: int,
    ) -> None:
        super().__init__(parameters, rules.begin, unit, rules.resets)
        self.inner, self.tables = inner, tables
        self.counts = parameters.priority_type == "multifactor"
        if not self.counts:
            self.next = FOREVER
        limits = tables.limits
        self.fades = ~np.resize(rules.keeps, len(limits)) & (limits["minutes"] < FOREVER)
        if rules.resets.period == "now":
            limits["spent"] = 0
        self.factor = rules.factor.copy()
        self.whole = np.zeros(len(tables.jobs), np.int64)
        self.left = self.whole.copy()
        self.take_in(slice(len(self.whole)), rules.factor)

    def take_in(self, rows: slice, factor: NDArray[np.float64]) -> None:
        """Take notice of jobs, each of which counts so many times."""
        jobs = self.tables.jobs[rows]
        # time limits are whole minutes
        whole = -(-jobs["limit"].astype(np.int64) // 60) * 60
        jobs["asked"] = np.where(factor == 0, 0, whole)
        jobs["promise"] = whole * factor
        self.factor[rows], self.whole[rows], self.left[rows] = factor, whole, whole

    def submitted(self, job: int, now: int, since: int) -> float:
        """Priority of a job that enters the queue at `now`, and is known since then or before [ticks]."""
        return self.inner.submitted(job, now, since)

    def begin(self, rows: Sequence[int], now: int) -> None:
        """Tasks of arrays, and jobs that waited for others, are seen by a pass first."""
        self.inner.begin(rows, now)

    def requeued(self, job: int, now: int) -> None:
        """A job that was preempted waits again."""
        self.inner.requeued(job, now)

    def started(self, job: int, now: int) -> None:
        """A job starts, or goes on."""
        self.inner.started(job, now)
        super().started(job, now)
        if self.tables.jobs["start"][job] == self.since[job]:
            self.left[job] = self.whole[job]  # one that goes on has less

    def ended(self, job: int, now: int) -> None:
        """A job ends, or is suspended."""
        self.inner.ended(job, now)
        self._use(np.array([job]), now // self.unit)
        del self.since[job]

    def due(self) -> int:
        """When priorities or what was used change next [ticks]."""
        return min(self.inner.due(), self.next)

    def recalculate(self, now: int, waiting: Integers) -> NDArray[np.float64]:
        """New priorities of the waiting jobs."""
        if self.next <= now:
            self.next = now + self.parameters.priority_calc_period * self.unit
            self._calculate(now // self.unit)
        return self.inner.recalculate(now, waiting)

    def _calculate(self, second: int) -> None:
        """Let what was used decay, and add what running jobs have used since."""
        spent = self.tables.limits["spent"]
        if second >= self.reset:
            spent[:] = 0
            self.reset = self.resets.after(second)
        spent[self.fades] *= self.decay ** (second - self.last)
        jobs = np.array(sorted(self.since), np.int64)
        ran = self._use(jobs, second)
        before = self.tables.jobs["promised"][jobs]
        self.left[jobs] = np.maximum(self.left[jobs] - ran, 0)
        after = (self.left[jobs] * self.factor[jobs]).astype(np.int64)
        rows, which, amount = self._rows(jobs)
        np.subtract.at(self.tables.limits["promised"], rows, (before - after)[which] * amount)
        self.tables.jobs["promised"][jobs] = after
        self.last = second

    def _use(self, jobs: Integers, second: int) -> Integers:
        """Add what running jobs have used since the last calculation; for how many seconds each ran."""
        since = np.array([self.since[job] for job in jobs.tolist()], np.int64)
        ran: Integers = np.maximum(second - np.maximum(since, self.last), 0)
        if self.counts:
            rows, which, amount = self._rows(jobs)
            seconds = (ran * self.factor[jobs])[which]
            fading = np.where(self.fades[rows], self.decay ** ran[which], 1.0)
            np.add.at(self.tables.limits["spent"], rows, seconds * fading * amount)
        return ran

    def _rows(self, jobs: Integers) -> tuple[Integers, Integers, Integers]:
        """Limits of minutes of some jobs, the place of the job for each, and what it has of the resource."""
        limits, limited = self.tables.limits, self.tables.limited[jobs]
        # also limits for which jobs only count: `kernels.unchecked` on arrays
        limited = np.maximum(limited, -2 - limited)
        which, column = np.nonzero((limited >= 0) & (limits["minutes"][limited] < FOREVER))
        rows: Integers = limited[which, column]
        return rows, which, self.tables.amounts[jobs[which], 1 + limits["resource"][rows]]

    def overdrawn(self) -> list[int]:
        """Running jobs of groups that have used up their minutes, to be killed; none with safe limits."""
        if self.parameters.safe_limits or not self.since:
            return []
        limits = self.tables.limits
        spent = (limits["spent"] / 60).astype(np.int64)
        over = (limits["way"] != RUNNING) & (limits["minutes"] < FOREVER) & (spent >= limits["minutes"])
        jobs = np.array(sorted(self.since), np.int64)
        rows, which, amount = self._rows(jobs)
        return [int(job) for job in np.unique(jobs[which[over[rows] & (amount > 0)]])]

    def may_free(self, waiting: Integers) -> bool:
        """Whether a waiting job is over a limit, and is not once enough has decayed or is forgotten."""
        if not self.counts or (self.decay == 1 and self.reset == FOREVER):
            return False
        held = [int(job) for job in waiting if kernels.over_limit(self.tables, job)]
        spent = self.tables.limits["spent"]
        kept = spent.copy()
        spent[self.fades if self.reset == FOREVER else slice(None)] = 0
        freed = any(not kernels.over_limit(self.tables, job) for job in held)
        spent[:] = kept
        return freed
