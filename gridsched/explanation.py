"""Why a job of a simulated schedule started when it did.

The schedule tells who waited and who ran at every instant; the policy tells who was ahead of whom. From both
follows where a job stood in the queue, what it waited for, who overtook it and whom it overtook. All states
are those after everything that happens at an instant. Runs on nodes are explained by
`gridsched.node_explanation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import JOB, unlabelled
from gridsched.errors import ConfigurationError
from gridsched.metrics.jobs import steps
from gridsched.node_explanation import NodeExplanation, explain_on_nodes
from gridsched.policies.local import (
    BY_SIZE,
    ORDERS,
    Conventions,
    LocalPolicy,
    OverrunName,
    PassName,
    named_policy,
    schedule,
)
from gridsched.policies.scores import SCORE
from gridsched.runs import check_run

Integers = NDArray[np.int64]

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds that successive corrections add, the last again and again; see `gridsched.engine.overrun`."""

RESERVING = ("easy", "conservative")
"""Kinds of backfilling under which jobs have reservations."""

_MAX_PAIRS = 4_000_000


@dataclass(frozen=True)
class Phase:
    """A part of a wait: whether the job was first in the queue, and whether enough processors were free."""

    start: int
    end: int
    first: bool
    enough: bool


@dataclass(frozen=True)
class Holder:
    """A running job, by its index: what it held, and when it was expected to end and did."""

    job: int
    processors: int
    start: int
    expected_end: int
    end: int


@dataclass(frozen=True)
class Explanation:
    """How a job came to start when it did; jobs are indices into the run, times seconds.

    Parameters
    ----------
    job : int
        The job.
    submit_time, start_time : int
        When it was submitted, and started.
    processors : int
        What it took of the cluster.
    waiting, ahead : int
        Jobs that waited at its arrival besides it, and those of them ahead of it.
    free : int
        Processors free just before its arrival, when everything that ended then had ended.
    expected_start : int
        When it would have started if no job had come after it and all estimates had been right. Under
        conservative backfilling this is the place that was reserved for it at its arrival.
    phases : tuple of Phase
        The wait in parts, one after the other.
    first_at : int or None
        When it was first in the queue for the first time; None if it never waited there.
    reserved_at, reserved_for : int or None
        When it got a reservation, and for when; None if it never had one.
    holders : tuple of Holder
        Jobs that ran when it got its reservation, else when it was first, else when it arrived.
    freed_by : int64[n]
        Jobs that ended when it started.
    passed_over : int64[n]
        Jobs ahead of it that still waited when it started: it was backfilled past them.
    overtaken_by : int64[n]
        Jobs behind it that started while it waited.
    run : xarray.Dataset
        The run that it is from.
    policy : LocalPolicy
        The policy of the run.

    As text (`print(explanation)`) it is the account that `gridsched explain` prints.
    """

    job: int
    submit_time: int
    start_time: int
    processors: int
    waiting: int
    ahead: int
    free: int
    expected_start: int
    phases: tuple[Phase, ...]
    first_at: int | None
    reserved_at: int | None
    reserved_for: int | None
    holders: tuple[Holder, ...]
    freed_by: Integers
    passed_over: Integers
    overtaken_by: Integers
    run: xr.Dataset = field(repr=False, compare=False)
    policy: LocalPolicy = field(repr=False, compare=False)

    def __str__(self) -> str:
        from gridsched.account import RunNames, account, as_text

        return as_text(account(self, self.run, self.policy, RunNames(self.run)))

    def seconds(self, *, first: bool, enough: bool) -> int:
        """Seconds of the wait in phases of one kind."""
        return sum(
            phase.end - phase.start for phase in self.phases if (phase.first, phase.enough) == (first, enough)
        )


@dataclass(frozen=True)
class PlannedStart:
    """The first reservation of a job, by its index: made at one time, for another [s]."""

    job: int
    reserved_at: int
    reserved_for: int


def reservations(run: xr.Dataset, policy: str | LocalPolicy | None = None) -> list[PlannedStart]:
    """First reservation of each job of a run that had one; parameters and errors as those of `explain`.

    Under EASY a job gets one when it is first in the queue and has to wait, under conservative backfilling at
    its submission.

    Raises
    ------
    ConfigurationError
        As `explain`, and of a run on nodes.
    """
    if "piece_segment" in run:
        raise ConfigurationError("a run on nodes does not say for when its jobs had reservations")
    schedule_of = _Schedule(run, _policy_of(run, policy))
    return list(filter(None, map(schedule_of.planned_start, range(len(schedule_of.index)))))


def explain(
    run: xr.Dataset, job: int, policy: str | LocalPolicy | None = None
) -> Explanation | NodeExplanation:
    """Explain when a job of a run started.

    Parameters
    ----------
    run : xarray.Dataset
        A run of one cluster, as `gridsched.simulate` gives it; of several, where it is one on nodes.
    job : int
        Index of the job in the run.
    policy : str or LocalPolicy, optional
        The policy of the run, or its name; its queue order must have a name. Needed only for a policy that is
        none of the named ones.

    Returns
    -------
    Explanation or NodeExplanation
        The second for a run on nodes, or with limits, jobs that leave the queue, or that wait for others.

    Raises
    ------
    ConfigurationError
        If it is no run, there is no such job, it was rejected, or the policy is another or orders by a
        function.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.Workload(
    ...     name="lab",
    ...     submit_time=[0, 5, 6],
    ...     run_time=[50, 60, 20],
    ...     requested_time=[100, 60, 20],
    ...     requested_processors=[3, 4, 1],
    ... )
    >>> run = gs.simulate(jobs, 4, "easy")
    >>> why = gs.explain(run, 1)
    >>> why.overtaken_by
    array([2])
    >>> print(why)
    job            2 of user -1
    asks for       4 processors, 1 min; runs for 1 min
    policy         easy: queue order fcfs; later jobs may start if they delay no reservation, which ...
    submitted      5 s: 1 processors free, no job waiting
    expected then  start at 100 s without later arrivals and with exact estimates; it started 50 s earlier
    reservation    on arrival, for 100 s; it started 50 s before, since jobs ended earlier than estimated
    started        50 s, after 45 s: first in the queue, when 1 ended
    overtaken by   1 job behind it: 3
    <BLANKLINE>
    Its wait in parts:
    <BLANKLINE>
    waited                                       for   share
    first in the queue, too few processors free  45 s  100.0%
    <BLANKLINE>
    In order:
    <BLANKLINE>
    from  for   what
    5 s   45 s  first in the queue, too few processors free
    <BLANKLINE>
    Running on its arrival:
    <BLANKLINE>
    job  user  processors  expected end  end   that is
    1    -1    3           100 s         50 s  50 s earlier
    """
    check_run(run)
    if "piece_segment" in run:
        _check_job(run, job)
        return explain_on_nodes(run, job, _policy_of(run, policy))
    return explain_counted(run, job, policy)


def explain_counted(run: xr.Dataset, job: int, policy: str | LocalPolicy | None = None) -> Explanation:
    """Explain when a job of a run started whose processors are only counted; as `explain`."""
    _check_job(run, job)
    schedule_of = _Schedule(run, _policy_of(run, policy))
    if run["start_time"].values[job] < 0:
        raise ConfigurationError(
            f"job {run['job_number'].values[job]} was rejected: it is larger than the cluster"
        )
    return schedule_of.explain(int(np.searchsorted(schedule_of.index, job)))


def _check_job(run: xr.Dataset, job: int) -> None:
    """Refuse an index that is none of a job."""
    if not 0 <= job < run.sizes["job"]:
        raise ConfigurationError(f"job {job}: the run has {run.sizes['job']} jobs, from index 0")


def _policy_of(run: xr.Dataset, policy: str | LocalPolicy | None) -> LocalPolicy:
    """The policy that made a run, which is the one that is given if any is."""
    made_by = str(run.attrs["policies" if run.attrs["scheme"] == "local" else "scheme"])
    policy = named_policy(made_by if policy is None else policy)
    if policy.name != made_by:
        raise ConfigurationError(f"policy {policy.name!r} is not that of the run, {made_by!r}")
    if not isinstance(policy.order, str):
        raise ConfigurationError(
            f"policy {policy.name!r}: its order is a function; use one of {', '.join(ORDERS)}"
        )
    if policy.predicts:
        raise ConfigurationError(
            f"policy {policy.name!r}: explanations do not know predictions; explain a run of another policy"
        )
    return policy


def expected_end(start: int, estimate: int, now: int, overrun: str) -> int:
    """When a running job is expected to end at a time at which it still runs; see `Conventions`."""
    end = start + estimate
    for correction in range(now - start + 1):
        if end > now:
            break
        if overrun == "doubling":
            end = start + 2 * (end - start)
        else:
            end += INCREMENTS[min(correction, len(INCREMENTS) - 1)]
    return end


class _Schedule:
    """The jobs of a run that were not rejected, in order of submission."""

    def __init__(self, run: xr.Dataset, policy: LocalPolicy) -> None:
        self.run, self.policy = run, policy
        self.overrun = cast(OverrunName, str(run.attrs["overrun"]))
        self.passes = cast(PassName, str(run.attrs["passes"]))
        self.index = run["segment_job"].values
        self.submit = run["submit_time"].values[self.index]
        self.estimate = run["estimate"].values[self.index]
        self.size = run["segment_processors"].values
        self.requested = run["processors"].values[self.index]
        self.start = run["segment_start"].values
        self.end = run["segment_end"].values
        self.processors = int(run["cluster_processors"].values.sum())
        self.order = ORDERS[str(policy.order)]
        self.changes = "now" in SCORE.parameters_of(self.order)

    def explain(self, job: int) -> Explanation:
        """Explanation of a job by its place among these jobs."""
        submit, start = int(self.submit[job]), int(self.start[job])
        others = np.arange(len(self.submit)) != job
        before = (self.submit < submit) | ((self.submit == submit) & (np.arange(len(others)) < job))
        queued = np.flatnonzero(others & before & (self.start >= submit))
        running = (self.start < submit) & (self.end > submit)
        phases, position = self._phases(job)
        first = next((phase.start for phase in phases if phase.first), None)
        expected = self._expected_start(job)
        reserved_at, reserved_for = self._reservation(job, position, expected)
        moments = [time for time in (reserved_at, first, submit) if time is not None]
        waiting = np.flatnonzero(others & (self.submit <= start) & (self.start > start))
        started = np.flatnonzero(others & (self.start >= submit) & (self.start < start))
        return Explanation(
            job=int(self.index[job]),
            submit_time=submit,
            start_time=start,
            processors=int(self.size[job]),
            waiting=len(queued),
            ahead=int(np.count_nonzero(self._are_ahead(queued, job, submit))),
            free=self.processors - int(self.size[running].sum()),
            expected_start=expected,
            phases=phases,
            first_at=first,
            reserved_at=reserved_at,
            reserved_for=reserved_for,
            holders=tuple(self._holders(job, moments[0])),
            freed_by=self.index[np.flatnonzero((self.end == start) & (self.start < start))],
            passed_over=self.index[waiting[self._are_ahead(waiting, job, start)]],
            overtaken_by=self.index[started[~self._are_ahead(started, job, self.start[started])]],
            run=self.run,
            policy=self.policy,
        )

    def planned_start(self, job: int) -> PlannedStart | None:
        """First reservation of a job by its place among these jobs, if it had one."""
        if self.policy.backfilling not in RESERVING or self.start[job] == self.submit[job]:
            return None
        _, position = self._phases(job)
        expected = self._expected_start(job) if self.policy.backfilling == "conservative" else 0
        reserved_at, reserved_for = self._reservation(job, position, expected)
        if reserved_at is None or reserved_for is None:
            return None
        return PlannedStart(int(self.index[job]), reserved_at, reserved_for)

    # --- order of the queue -----------------------------------------------------------------------

    def _are_ahead(self, jobs: Integers, job: int, now: Any) -> NDArray[np.bool_]:
        """Whether other jobs are ahead of a job in the queue at a time, or at one time for each."""
        theirs, its = self._score(jobs, now), self._score(job, now)
        return np.asarray((theirs > its) | ((theirs == its) & (jobs < job)))

    def _score(self, jobs: Any, now: Any) -> Any:
        values = {
            "now": now,
            "submit_time": self.submit[jobs],
            "estimate": self.estimate[jobs],
            "processors": (self.size if self.order in BY_SIZE else self.requested)[jobs],
        }
        score = self.order(**{name: values[name] for name in SCORE.parameters_of(self.order)})
        return np.asarray(score, np.float64)

    def _number_ahead(self, job: int, instants: Integers) -> Integers:
        """Jobs ahead of a job in the queue after each of the instants."""
        start = self.start[job]
        rivals = np.flatnonzero((self.submit < start) & (self.start > self.submit[job]))
        rivals = rivals[rivals != job]
        if not self.changes:
            rivals = rivals[self._are_ahead(rivals, job, 0)]
            came = np.searchsorted(np.sort(self.submit[rivals]), instants, "right")
            gone = np.searchsorted(np.sort(self.start[rivals]), instants, "right")
            return np.asarray(came - gone)
        counts = [
            np.count_nonzero(
                self._are_ahead(rivals, job, now[:, np.newaxis])
                & (self.submit[rivals] <= now[:, np.newaxis])
                & (self.start[rivals] > now[:, np.newaxis]),
                axis=1,
            )
            for now in np.array_split(instants, 1 + len(instants) * len(rivals) // _MAX_PAIRS)
        ]
        return np.concatenate(counts)

    # --- phases -----------------------------------------------------------------------------------

    def _phases(self, job: int) -> tuple[tuple[Phase, ...], list[tuple[int, int]]]:
        """The wait in parts, and how many jobs were ahead from each instant on."""
        submit, start = self.submit[job], self.start[job]
        if submit == start:
            return (), []
        times = np.concatenate([self.submit, self.start, self.end, self._corrections(submit, start)])
        instants = np.unique(np.append(times[(times >= submit) & (times < start)], submit))
        busy = steps(
            np.concatenate([self.start, self.end]), np.concatenate([self.size, -self.size]).astype(np.int64)
        )
        place = np.searchsorted(busy.time, instants, "right") - 1
        used = np.where(place >= 0, busy.value[np.maximum(place, 0)], 0)
        enough = self.processors - used >= self.size[job]
        ahead = self._number_ahead(job, instants)
        ends = np.append(instants[1:], start)
        parts: list[Phase] = []
        for begin, end, first, fits in zip(
            instants.tolist(), ends.tolist(), (ahead == 0).tolist(), enough.tolist(), strict=True
        ):
            if parts and (parts[-1].first, parts[-1].enough) == (first, fits):
                parts[-1] = replace(parts[-1], end=end)
            else:
                parts.append(Phase(begin, end, first, fits))
        return tuple(parts), list(zip(instants.tolist(), ahead.tolist(), strict=True))

    # --- expectations -----------------------------------------------------------------------------

    def _expected_start(self, job: int) -> int:
        """When the job starts if no job comes after it, and all that run or wait end as is expected then."""
        now = int(self.submit[job])
        jobs = np.empty(job + 1, JOB)
        jobs["submit"] = self.submit[: job + 1]
        jobs["estimate"] = self.estimate[: job + 1]
        jobs["processors"] = self.size[: job + 1]
        run = self.end[: job + 1] - self.start[: job + 1]
        run = np.where(self.start[: job + 1] >= now, self.estimate[: job + 1], run)
        for other in np.flatnonzero((self.start[: job + 1] < now) & (self.end[: job + 1] > now)):
            start, estimate = int(self.start[other]), int(self.estimate[other])
            run[other] = expected_end(start, estimate, now, self.overrun) - start
        jobs["run"] = run
        conventions = Conventions(self.overrun, self.passes)
        labels = unlabelled(jobs)
        labels["processors"] = self.requested[: job + 1]
        starts, _ = schedule(jobs, self.processors, self.policy, conventions, labels)
        return int(starts[job])

    def _reservation(
        self, job: int, position: list[tuple[int, int]], expected: int
    ) -> tuple[int | None, int | None]:
        """When the job got a reservation, and for when."""
        if not position or self.policy.backfilling not in RESERVING:
            return None, None
        if self.policy.backfilling == "conservative":
            return int(self.submit[job]), expected
        now = next((time for time, ahead in position if ahead < self.policy.reservations), None)
        return now, None if now is None else self._place(job, now)

    def _place(self, job: int, now: int) -> int:
        """Earliest place of a job beside those that run, and beside the places of those ahead of it."""
        running = self._running(now)
        held = [(now, self._expected_end(other, now), int(self.size[other])) for other in running.tolist()]
        waiting = np.flatnonzero((self.submit <= now) & (self.start > now))
        ahead = waiting[(waiting != job) & self._are_ahead(waiting, job, now)]
        order = np.lexsort((ahead, -self._score(ahead, now)))
        begin = now
        for other in [*ahead[order].tolist(), job]:
            size, estimate = int(self.size[other]), int(self.estimate[other])
            candidates = sorted({now, *(end for _, end, _ in held)})
            begin = next(time for time in candidates if self._fits(time, estimate, size, held))
            held.append((begin, begin + estimate, size))
        return begin

    def _fits(self, begin: int, length: int, size: int, held: list[tuple[int, int, int]]) -> bool:
        """Whether processors are free for a time beside those that are held."""
        inside = [(start, end, count) for start, end, count in held if start < begin + length and end > begin]
        moments = {begin, *(start for start, _, _ in inside if start > begin)}
        return all(
            size + sum(count for start, end, count in inside if start <= moment < end) <= self.processors
            for moment in moments
        )

    def _corrections(self, begin: int, end: int) -> Integers:
        """Times at which expected ends are moved, and an order that changes with time is recomputed."""
        moved: list[int] = []
        if self.changes:
            outrun = (self.start < end) & (self.end > begin) & (self.end > self.start + self.estimate)
            for job in np.flatnonzero(outrun).tolist():
                now = self._expected_end(job, max(begin - 1, int(self.start[job])))
                while now < min(end, int(self.end[job])):
                    moved.append(now)
                    now = self._expected_end(job, now)
        return np.array(moved, np.int64)

    def _running(self, now: int) -> Integers:
        return np.flatnonzero((self.start <= now) & (self.end > now))

    def _expected_end(self, job: int, now: int) -> int:
        return expected_end(int(self.start[job]), int(self.estimate[job]), now, self.overrun)

    def _holders(self, job: int, now: int) -> Iterator[Holder]:
        """Jobs that ran at a time beside the job, the widest first."""
        running = self._running(now)
        running = running[running != job]
        for other in running[np.argsort(-self.size[running], kind="stable")].tolist():
            yield Holder(
                int(self.index[other]),
                int(self.size[other]),
                int(self.start[other]),
                self._expected_end(other, now),
                int(self.end[other]),
            )
