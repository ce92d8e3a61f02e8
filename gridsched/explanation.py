"""Why a job of a simulated schedule started when it did.

Everything follows from the run: who waited and who had what of which node at every instant, which nodes were
out, which limits there are; the policy tells who was ahead of whom. A cluster whose processors are only
counted is one node. At every instant of a wait the first of these that is true is the reason. A job waits for

- *dependency*: jobs that it depends on;
- *limit*: other jobs of its group or its job array, which have all that a limit allows;
- *maintenance*: nodes on which it would fit, but for a window that is on, or begins before it would end;
- *outage*: nodes on which it would fit if they were not down or drained;
- *partition*: nodes that it may use; it would fit on others;
- *nodes*, *cores*, *memory*, *gpus*: what is not free in such an amount where it may run, alone or several at
  once; of a job that wants nodes to itself they are nodes;
- *together*: enough of each is free, but not on the same nodes;
- *queue*: it would fit, but jobs ahead of it come first, or processors or nodes are kept for them.

Where processors are only counted it also follows what the job could expect, which reservation it had, who
overtook it and whom it overtook. All states are those after everything that happens at an instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine import checkpoints, overrun
from gridsched.engine.records import JOB, Overrun, unlabelled
from gridsched.errors import ConfigurationError
from gridsched.nodes import Outage
from gridsched.platform import Cluster
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
from gridsched.submission import EstimateName
from gridsched.systems.base import QueueReason, Scheduler
from gridsched.systems.request import Request, check_policy_of
from gridsched.verification import verify
from gridsched.verification.nodes import is_enough
from gridsched.workloads.dependencies import KINDS
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

REASONS: dict[str, str] = {
    "dependency": "jobs that it depends on",
    "limit": "a limit of its group or job array",
    "maintenance": "a maintenance window",
    "outage": "nodes that are down or drained",
    "partition": "nodes of its partition, while others are free",
    "nodes": "whole nodes",
    "cores": "processors",
    "memory": "memory",
    "gpus": "GPUs",
    "together": "enough of all on the same nodes",
    "queue": "jobs ahead of it",
}
"""What a job may wait for, in words."""

DELAYS: dict[str, str] = {
    "overtaken": "jobs that came later, or overtook it",
    "late": "jobs that ran longer than estimated",
    "both": "the former and jobs that ran longer than estimated, together",
    "before": "jobs that came before it",
    "kept": "jobs ahead of it in the queue, although it would have fitted",
}
"""Who may have had the place of a waiting job, in words; see `Delay`."""

_OF_JOBS = frozenset({"partition", "nodes", "cores", "memory", "gpus", "together"})
"""Reasons for which other jobs have the place of a waiting one."""

_REJECTED, _GAVE_UP, _NEVER_ELIGIBLE, _LOST, _STARVED = range(1, 6)
_WHOLE_GPU = 1000
_FOREVER = 2**62
_NOBODY = np.empty(0, np.int64)

# a few calls are not worth a compilation
_expected_end: Any = getattr(overrun.expected_end, "py_func", overrun.expected_end)


@dataclass(frozen=True)
class Phase:
    """A part of a wait [s]: its reasons, of `REASONS`, and the jobs ahead when it began, by index."""

    start: int
    end: int
    reasons: tuple[str, ...]
    ahead: tuple[int, ...]

    @property
    def first(self) -> bool:
        """Whether the job was first in the queue."""
        return not self.ahead

    @property
    def enough(self) -> bool:
        """Whether it would have fitted."""
        return self.reasons == ("queue",)


@dataclass(frozen=True)
class Delay:
    """A part of a wait [s] in which others had the place of the job, by index.

    Its kind is the first of `DELAYS` without whose jobs it would have fitted.
    """

    start: int
    end: int
    kind: str
    jobs: tuple[int, ...]


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
    submit_time, eligible_time : int
        When it was submitted, and when it could have started first; the latter -1 if that never came.
    starts : tuple of int
        Starts of its executions: several for a job that failing nodes killed, none for one that never ran.
    processors : int
        What it took of the cluster.
    fate : int
        Its outcome, see docs/nodes-reference.md.
    nodes : tuple of int
        Nodes of its first execution.
    phases : tuple of Phase
        Its waits in parts, one after the other; between them it ran.
    delays : tuple of Delay
        Who had its place meanwhile; not where it waited for anything else.
    depends_on : tuple of int
        Jobs for which it waited last to become eligible, or which it waited for in vain.
    freed_by : int64[n]
        Jobs that ended, or left nodes, at its first start.
    run : xarray.Dataset
        The run that it is from.
    policy : LocalPolicy
        The policy of the run.
    counted : bool
        Whether processors are only counted: what follows is known of such runs only, and of jobs that no
        failing node kills, which leave no queue and wait for no other job.
    waiting, ahead : int
        Jobs that waited at its arrival besides it, and those of them ahead of it.
    free : int
        Processors free just before its arrival, when everything that ended then had ended.
    expected_start : int
        When it would have started if no job had come after it and all estimates had been right. Under
        conservative backfilling this is the place that was reserved for it at its arrival.
    first_at : int or None
        When it was first in the queue for the first time; None if it never waited there.
    reserved_at, reserved_for : int or None
        When it got a reservation, and for when; None if it never had one.
    holders : tuple of Holder
        Jobs that ran when it got its reservation, else when it was first, else when it arrived.
    passed_over : int64[n]
        Jobs ahead of it that still waited when it started: it was backfilled past them.
    overtaken_by : int64[n]
        Jobs behind it that started while it waited.

    As text (`print(explanation)`) it is the account that `gridsched explain` prints.
    """

    job: int
    submit_time: int
    eligible_time: int
    starts: tuple[int, ...]
    processors: int
    fate: int
    nodes: tuple[int, ...]
    phases: tuple[Phase, ...]
    delays: tuple[Delay, ...]
    depends_on: tuple[int, ...]
    freed_by: Integers
    run: xr.Dataset = field(repr=False, compare=False)
    policy: LocalPolicy = field(repr=False, compare=False)
    counted: bool = False
    waiting: int = 0
    ahead: int = 0
    free: int = 0
    expected_start: int = -1
    first_at: int | None = None
    reserved_at: int | None = None
    reserved_for: int | None = None
    holders: tuple[Holder, ...] = ()
    passed_over: Integers = field(default_factory=_NOBODY.copy)
    overtaken_by: Integers = field(default_factory=_NOBODY.copy)

    def __str__(self) -> str:
        from gridsched.account import RunNames, account, as_text

        return as_text(account(self, self.run, self.policy, RunNames(self.run)))

    @property
    def start_time(self) -> int:
        """Its first start; -1 if it never ran."""
        return self.starts[0] if self.starts else -1

    @property
    def wait_time(self) -> int:
        """Seconds of all its waits."""
        return sum(phase.end - phase.start for phase in self.phases)

    def delayed(self, kind: str) -> dict[int, int]:
        """Seconds for which each job had its place in delays of one kind; most processor-seconds first."""
        seconds: dict[int, int] = {}
        for delay in self.delays:
            for job in delay.jobs if delay.kind == kind else ():
                seconds[job] = seconds.get(job, 0) + delay.end - delay.start
        size = self.run["processors"].to_numpy()
        return dict(sorted(seconds.items(), key=lambda each: -each[1] * size[each[0]]))

    def seconds(
        self, reason: str | None = None, *, first: bool | None = None, enough: bool | None = None
    ) -> int:
        """Seconds of its waits for which something was a reason, alone or with others, or of one kind."""
        return sum(
            phase.end - phase.start
            for phase in self.phases
            if (reason is None or reason in phase.reasons)
            and (first is None or phase.first == first)
            and (enough is None or phase.enough == enough)
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
    of_run = _Schedule(run, _policy_of(run, policy))
    accepted = np.flatnonzero(run["start_time"].values >= 0).tolist()
    found = ((job, *of_run.reservation(job)) for job in accepted)
    return [PlannedStart(job, at, until) for job, at, until in found if at is not None and until is not None]


def explain(run: xr.Dataset, job: int, policy: str | LocalPolicy | None = None) -> Explanation:
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
    Explanation
        Not `counted` for a run on nodes, or with limits, jobs that leave the queue, or that wait for others.

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
    Who had its place:
    <BLANKLINE>
    had by                    for   share   most by
    jobs that came before it  45 s  100.0%  1 (45 s)
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
    _check_index(job, run.sizes["job"])
    of_run = _Schedule(run, _policy_of(run, policy))
    _check_accepted(of_run, job)
    return of_run.explain(job)


def explain_in_queue(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler | LocalPolicy,
    job: int,
    *,
    estimates: EstimateName = "requested",
    kill: bool = False,
    seed: int = 0,
) -> tuple[Explanation, tuple[QueueReason, ...]]:
    """Simulate a real scheduler, and explain a job by the reasons that its queue would show.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    cluster : Cluster
        Where they run.
    scheduler : Scheduler
        A scheduler that has reasons, such as `gridsched.Slurm`.
    job : int
        Index of the job.
    estimates, kill, seed
        See `gridsched.simulate`.

    Returns
    -------
    Explanation
        What happened to the job, and who had its place: jobs that came later, ran longer than estimated, or
        came before it. It does not know the order of the queue: `ahead` of its phases is that of submission.
    tuple of QueueReason
        Its waits with their reasons, one after the other.

    Raises
    ------
    ConfigurationError
        If there is no such job, it was rejected, or the scheduler has no reasons.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.explanation import explain_in_queue
    >>> jobs = gs.Workload(
    ...     name="lab",
    ...     submit_time=[0, 5, 6],
    ...     run_time=[50, 60, 20],
    ...     requested_time=[100, 60, 20],
    ...     requested_processors=[3, 4, 2],
    ... )
    >>> _, reasons = explain_in_queue(jobs, gs.Cluster(processors=4), gs.Slurm(), 2)
    >>> [each.reason for each in reasons]
    ['None', 'Priority', 'Resources']
    """
    if isinstance(scheduler, LocalPolicy):
        raise ConfigurationError(f"policy {scheduler.name} has no reasons of waiting jobs; use explain")
    request = Request.of(
        workload,
        cluster,
        estimates=estimates,
        seed=seed,
        align="start",
        times="home",
        kill=kill,
        conventions=Conventions(),
    )
    request.check(scheduler)
    _check_index(job, len(workload))
    made, reasons = scheduler.schedule_watched(request.submission, job)
    run = request.run_of(made, scheduler)
    verify(run)
    found = _Schedule(run, named_policy("fcfs")).explain(job)
    return replace(found, delays=tuple(each for each in found.delays if each.kind != "kept")), tuple(reasons)


def _check_index(job: int, count: int) -> None:
    """Refuse a job that is not there."""
    if not 0 <= job < count:
        raise ConfigurationError(f"job {job}: the run has {count} jobs, from index 0")


def _check_accepted(of_run: _Schedule, job: int) -> None:
    """Refuse a job that was rejected."""
    if of_run.v["fate"][job] == _REJECTED:
        told = [str(name) for name in of_run.run.attrs if str(name).startswith("rejected: ")]
        why = " or ".join(name.removeprefix("rejected: ") for name in told) or "larger than the cluster"
        raise ConfigurationError(f"job {of_run.run['job_number'].values[job]} was rejected: {why}")


def _policy_of(run: xr.Dataset, policy: str | LocalPolicy | None) -> LocalPolicy:
    """The policy that made a run, which is the one that is given if any is."""
    if run.attrs.get("system") == "custom":
        raise ConfigurationError(
            f"{run.attrs['scheme']} is a scheduler of a user, whose rules are not known; "
            "explain a run of a local policy"
        )
    if run.attrs.get("system") != "local" or (run.sizes["cluster"] > 1 and "piece_segment" not in run):
        raise ConfigurationError(
            f"a run of {run.attrs['scheme']} on {run.sizes['cluster']} clusters; "
            "explain a run of a local policy on one cluster"
        )
    made_by = str(run.attrs["policies" if run.attrs["scheme"] == "local" else "scheme"])
    if run.attrs["scheme"] == "local" and len(each := set(made_by.split(", "))) == 1:
        made_by = each.pop()  # the same on all clusters
    policy = named_policy(made_by if policy is None else policy)
    if policy.name != made_by:
        raise ConfigurationError(f"policy {policy.name!r} is not that of the run, {made_by!r}")
    if not isinstance(policy.order, str):
        raise ConfigurationError(
            f"policy {policy.name!r}: its order is a function; use one of {', '.join(ORDERS)}"
        )
    check_policy_of(run, policy)
    if policy.predicts:
        raise ConfigurationError(
            f"policy {policy.name!r}: explanations do not know predictions; explain a run of another policy"
        )
    return policy


def expected_end(start: int, estimate: int, now: int, overrun: str) -> int:
    """When a running job is expected to end at a time at which it still runs; see `Conventions`."""
    return int(_expected_end(start, estimate, int(Overrun[overrun.upper()]), now + 1))


def _as_one_node(v: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Variables of a run on nodes of one whose processors are only counted."""
    zero, size = (np.zeros(len(v["submit_time"]), np.int64) for _ in range(2))
    size[v["segment_job"]] = v["segment_processors"]
    none, segments = np.empty(0, np.int64), np.arange(len(v["segment_job"]))
    parts = {
        "node": {"cores": v["cluster_processors"].sum(keepdims=True), "reach": np.ones((1, 1), np.int64)}
        | dict.fromkeys(("memory", "gpus", "cluster"), zero[:1]),
        "asked": {"units": size, "most": size, "cores": zero + 1}
        | dict.fromkeys(("memory", "gpus", "share", "whole", "where"), zero),
        "piece": {"segment": segments, "cores": v["segment_processors"]}
        | dict.fromkeys(("node", "memory", "devices", "share"), 0 * segments),
        "outage": dict.fromkeys(("node", "start", "end", "kind", "announced"), none),
    }
    named = {f"{part}_{name}": values for part, each in parts.items() for name, values in each.items()}
    fate = np.where(v["start_time"] < 0, _REJECTED, 0)
    return v | named | {"fate": fate, "eligible_time": v["submit_time"]}


class _Schedule:
    """A run: who waited when, and what was free."""

    def __init__(self, run: xr.Dataset, policy: LocalPolicy) -> None:
        self.run, self.policy, self.order = run, policy, ORDERS[str(policy.order)]
        self.conventions = Conventions(
            cast(OverrunName, str(run.attrs["overrun"])), cast(PassName, str(run.attrs["passes"]))
        )
        self.changes = "now" in SCORE.parameters_of(self.order)
        v: dict[str, NDArray[Any]] = {str(name): run[name].to_numpy() for name in run.variables}
        self.counted = "piece_segment" not in v
        self.v = v = _as_one_node(v) if self.counted else v
        self.processors = int(v["cluster_processors"].sum())
        self.segments = np.lexsort((v["segment_start"], v["segment_job"]))
        self.piece_start, self.piece_end = (
            v[f"segment_{name}"][v["piece_segment"]] for name in ("start", "end")
        )
        self.size = v["asked_units"] * v["asked_cores"]
        # of the nodes that jobs may use, whether or not they have a home
        self.cluster = v["node_cluster"][np.argmax(v["node_reach"], axis=1)][v["asked_where"]]
        self.last = int(max(v["segment_end"].max(initial=0), v["submit_time"].max(initial=0)))
        self.eligible = self._eligible()
        self.waits = self._waits()

    def explain(self, job: int) -> Explanation:
        """Explanation of a job."""
        v, own = self.v, self._executions(job)
        starts = v["segment_start"][own].tolist()
        first = starts[0] if starts else -1
        freed = (v["segment_end"] == first) & (v["segment_start"] < first)
        freed &= self.cluster[v["segment_job"]] == self.cluster[job]
        phases, behind = self._phases(job), self._overtaking(job)
        found = Explanation(
            job=job,
            submit_time=int(v["submit_time"][job]),
            eligible_time=int(self.eligible[job]),
            starts=tuple(starts),
            processors=int(self.size[job]),
            fate=int(v["fate"][job]),
            nodes=tuple(np.unique(v["piece_node"][np.isin(v["piece_segment"], own[:1])]).tolist()),
            phases=tuple(phases),
            delays=tuple(self._delays(job, phases, behind)),
            depends_on=self._depends_on(job),
            freed_by=np.unique(v["segment_job"][freed]),
            run=self.run,
            policy=self.policy,
        )
        if not self.counted:
            return found
        overtaken_by = np.unique(v["segment_job"][behind])
        return replace(self._with_expectations(found), overtaken_by=overtaken_by)

    # --- what was expected where processors are only counted --------------------------------------

    def _with_expectations(self, found: Explanation) -> Explanation:
        """The explanation with what the job found on arrival, could expect, and whom it overtook."""
        v, job, submit, start = self.v, found.job, found.submit_time, found.start_time
        starts = v["start_time"]
        queued = np.flatnonzero(starts[:job] >= submit)
        first = next((phase.start for phase in found.phases if phase.first), None)
        reserved_at, reserved_for = self.reservation(job)
        watched = next(time for time in (reserved_at, first, submit) if time is not None)
        return replace(
            found,
            counted=True,
            waiting=len(queued),
            ahead=len(self._those_ahead(queued, job, submit)),
            free=self.processors - int(self.size[(starts < submit) & (v["end_time"] > submit)].sum()),
            expected_start=self._expected_start(job),
            first_at=first,
            reserved_at=reserved_at,
            reserved_for=reserved_for,
            holders=self._holders(job, watched),
            passed_over=np.sort(np.array(self._ahead(job, start), np.int64)),
        )

    def reservation(self, job: int) -> tuple[int, int] | tuple[None, None]:
        """When a job got its first reservation and for when, if it had one."""
        submit, start = int(self.v["submit_time"][job]), int(self.v["start_time"][job])
        if start == submit or self.policy.backfilling not in ("easy", "conservative"):
            return None, None
        if self.policy.backfilling == "conservative":
            return submit, self._expected_start(job)
        instants = self._instants(job, submit, start)
        close = (now for now in instants if len(self._ahead(job, now)) < self.policy.reservations)
        return next(((now, self._place(job, now)) for now in close), (None, None))

    def _expected_start(self, job: int) -> int:
        """When the job starts if no job comes after it, and all that run or wait end as is expected then."""
        v, now = self.v, int(self.v["submit_time"][job])
        known = np.flatnonzero(v["fate"][: job + 1] != _REJECTED)
        jobs = np.empty(len(known), JOB)
        jobs["submit"], jobs["estimate"] = v["submit_time"][known], v["estimate"][known]
        jobs["processors"] = self.size[known]
        start, end = v["start_time"][known], v["end_time"][known]
        jobs["run"] = np.where(start >= now, jobs["estimate"], end - start)
        for k in np.flatnonzero((start < now) & (end > now)).tolist():
            jobs["run"][k] = self._expected_end(int(known[k]), now) - start[k]
        labels = unlabelled(jobs)
        labels["processors"] = v["processors"][known]
        starts, _ = schedule(jobs, self.processors, self.policy, self.conventions, labels)
        return int(starts[-1])

    def _place(self, job: int, now: int) -> int:
        """Earliest place of a job beside those that run, and beside the places of those ahead of it."""
        held = [(now, self._expected_end(k, now), int(self.size[k])) for k in self._running(now).tolist()]
        for other in (*self._ahead(job, now), job):
            size, estimate = int(self.size[other]), int(self.v["estimate"][other])
            candidates = sorted({now, *(end for _, end, _ in held)})
            begin = next(time for time in candidates if self._is_free(time, estimate, size, held))
            held.append((begin, begin + estimate, size))
        return held[-1][0]

    def _is_free(self, begin: int, length: int, size: int, held: list[tuple[int, int, int]]) -> bool:
        """Whether processors are free for a time beside those that are held."""
        moments = {begin, *(start for start, _, _ in held if begin < start < begin + length)}
        return all(
            size + sum(count for start, end, count in held if start <= moment < end) <= self.processors
            for moment in moments
        )

    def _corrections(self, begin: int, end: int) -> Iterator[int]:
        """Times at which expected ends are moved, and an order that changes with time is recomputed."""
        starts, ends = self.v["start_time"], self.v["end_time"]
        outrun = self.changes & (starts < end) & (ends > begin) & (ends > starts + self.v["estimate"])
        for job in np.flatnonzero(outrun).tolist():
            now = self._expected_end(job, max(begin - 1, int(starts[job])))
            while now < min(end, int(ends[job])):
                yield now
                now = self._expected_end(job, now)

    def _running(self, now: int) -> Integers:
        """Jobs that run at a time."""
        return np.flatnonzero((self.v["start_time"] <= now) & (self.v["end_time"] > now))

    def _expected_end(self, job: int, now: int) -> int:
        """When a job that runs at a time is expected to end then."""
        start, estimate = (int(self.v[name][job]) for name in ("start_time", "estimate"))
        return expected_end(start, estimate, now, self.conventions.overrun)

    def _holders(self, job: int, now: int) -> tuple[Holder, ...]:
        """Jobs that ran at a time beside the job, the widest first."""
        running = self._running(now)
        widest = running[np.argsort(-self.size[running], kind="stable")].tolist()
        return tuple(
            Holder(
                job=other,
                processors=int(self.size[other]),
                start=int(self.v["start_time"][other]),
                expected_end=self._expected_end(other, now),
                end=int(self.v["end_time"][other]),
            )
            for other in widest
            if other != job
        )

    # --- who waits when ---------------------------------------------------------------------------

    def _executions(self, job: int) -> Integers:
        """Segments of a job, by time."""
        return np.asarray(self.segments[self.v["segment_job"][self.segments] == job])

    def _eligible(self) -> Integers:
        """When each job entered the queue; -1 for those that never did."""
        v, fate = self.v, self.v["fate"]
        eligible = np.array(v["eligible_time"], np.int64)
        never = np.isin(fate, (_REJECTED, _NEVER_ELIGIBLE)) | (eligible < v["submit_time"])
        for job in np.flatnonzero(np.isin(fate, (_GAVE_UP, _STARVED))).tolist():
            # the jobs that it depends on may not have done what it waits for when it left
            met = max(map(self._met, self._dependencies(job)), default=0)
            never[job] |= max(int(eligible[job]), met) > self._leaves(job)
        return np.asarray(np.where(never, -1, eligible), np.int64)

    def _waits(self) -> Integers:
        """When jobs waited in the queue: rows (job, begin, end), those of a job by time."""
        v, segments = self.v, self.segments
        job = v["segment_job"][segments]
        # from the end of its execution before this one on
        begin = np.where(
            np.diff(job, prepend=-1) == 0, np.roll(v["segment_end"][segments], 1), self.eligible[job]
        )
        rows = [np.column_stack([job, begin, v["segment_start"][segments]])]
        for left in np.flatnonzero(np.isin(v["fate"], (_GAVE_UP, _STARVED))).tolist():
            ran = v["segment_end"][self._executions(left)].max(initial=self.eligible[left])
            rows.append(np.array([[left, ran, min(self._leaves(left), self.last)]]))
        waits = np.concatenate(rows)
        # by column, since they are searched at every instant
        return np.asfortranarray(waits[(self.eligible[waits[:, 0]] >= 0) & (waits[:, 2] > waits[:, 1])])

    def _dependencies(self, job: int) -> list[int]:
        """Rows of the dependencies of a job."""
        return np.flatnonzero(self.v.get("dependency_job", _NOBODY) == job).tolist()

    def _met(self, dependency: int) -> int:
        """When what a dependency waits for had happened, well or not; 2**62 for never."""
        v = self.v
        on, kind, delay = (int(v[f"dependency_{name}"][dependency]) for name in ("on", "kind", "delay"))
        if v["start_time"][on] >= 0 and kind == KINDS["after"]:
            return int(v["start_time"][on]) + delay
        if v["fate"][on] in (_NEVER_ELIGIBLE, _STARVED):
            return _FOREVER
        return delay + (int(v["end_time"][on]) if v["start_time"][on] >= 0 else self._leaves(on))

    def _leaves(self, job: int) -> int:
        """When a job that never ran left; just before 2**62 if it waits forever."""
        submit, fate = (int(self.v[name][job]) for name in ("submit_time", "fate"))
        if fate == _STARVED:
            return _FOREVER - 1
        return max(submit, int(self.v["gives_up_time"][job])) if fate == _GAVE_UP else submit

    def _depends_on(self, job: int) -> tuple[int, ...]:
        """Jobs that kept a job from being eligible until it was."""
        submit, eligible = self.v["submit_time"][job], self.eligible[job]
        mine = (k for k in self._dependencies(job) if eligible < 0 or submit < eligible == self._met(k))
        return tuple(int(self.v["dependency_on"][k]) for k in mine)

    def _ahead(self, job: int, now: int) -> tuple[int, ...]:
        """Jobs of the cluster that wait at a time ahead of a job, first the first."""
        waiting = self.waits[(self.waits[:, 1] <= now) & (self.waits[:, 2] > now), 0]
        return self._those_ahead(waiting[self.cluster[waiting] == self.cluster[job]], job, now)

    def _those_ahead(self, others: Integers, job: int, now: int) -> tuple[int, ...]:
        """Which of other jobs are ahead of a job in the queue at a time, first the first."""
        jobs = np.append(others[others != job], job)
        order = jobs[np.lexsort(self._keys(jobs, now)[::-1])].tolist()
        return tuple(order[: order.index(job)])

    def _keys(self, jobs: Integers, now: int) -> tuple[NDArray[Any], ...]:
        """What the queue is ordered by, first the first: priority, score, entry."""
        v = self.v
        values = {
            "now": now,
            "submit_time": v["submit_time"][jobs],
            # an order that does not change is that of submission
            "estimate": self._lengths(jobs, now if self.changes else -1),
            "processors": (self.size if self.order in BY_SIZE else v["processors"])[jobs],
        }
        score = np.zeros(len(jobs))
        if self.order is not ORDERS["fcfs"]:
            chosen = {name: values[name] for name in SCORE.parameters_of(self.order)}
            score = np.asarray(self.order(**chosen), np.float64)
        priority = v["partition_priority"][jobs] if "partition_priority" in v else 0 * jobs
        return -priority, -score, *self._entries(jobs, now)

    def _entries(self, jobs: Integers, now: int) -> tuple[NDArray[Any], ...]:
        """When jobs entered the queue at their place, and their order among those of one instant.

        Those that a failed node killed enter again, if that is the rule: before others, node by node, those
        of one node as they entered first.
        """
        v = self.v
        first = v["eligible_time"][jobs]
        rounds = np.array([self._round(*each) for each in zip(jobs.tolist(), first.tolist(), strict=True)])
        entries, nodes = first.copy(), np.full(len(jobs), len(v["node_cluster"]))
        goes_last = v["cluster_requeue"][self.cluster[jobs]] == "end" if "cluster_requeue" in v else jobs[:0]
        for k in np.flatnonzero(goes_last).tolist():
            ended = self._executions(jobs[k])
            ended = ended[v["segment_end"][ended] <= now]
            if len(ended):
                entries[k] = v["segment_end"][ended[-1]]
                out = v["outage_node"][v["outage_start"] == entries[k]]
                own = v["piece_node"][v["piece_segment"] == ended[-1]]
                nodes[k] = own[np.isin(own, out)].min(initial=nodes[k])
        return entries, nodes, first, rounds, jobs

    def _round(self, job: int, entry: int) -> float:
        """How many passes of the instant at which a job entered came first: it may wait for a start there.

        A half more if others, who give up before the first pass, had to do so before it entered.
        """
        v = self.v
        if "dependency_job" not in v or v["eligible_time"][job] != entry:
            return 0
        mine = (k for k in self._dependencies(job) if v["dependency_delay"][k] == 0 and self._met(k) == entry)
        rounds = [0.0]
        for on in (int(v["dependency_on"][k]) for k in mine):
            # others ended, having run for a while, before anybody entered
            if v["start_time"][on] == entry:
                rounds.append(1 + self._round(on, entry) // 1)
            elif v["fate"][on] == _GAVE_UP:
                rounds.append(0.5)
        return max(rounds)

    def _lengths(self, jobs: Integers, now: int) -> Integers:
        """Seconds that the scheduler expects the next execution of jobs to take, checkpoints included."""
        v = self.v
        lengths: Integers = np.array(v["estimate"][jobs], np.int64)
        with_checkpoints = jobs.tolist() if "cluster_checkpoint_interval" in v else []
        for k, job in enumerate(with_checkpoints):
            rule = [int(v[f"cluster_checkpoint_{name}"][self.cluster[job]]) for name in ("interval", "cost")]
            start, end = (v[f"segment_{name}"][self._executions(job)] for name in ("start", "end"))
            saved = sum(
                checkpoints.saved_work_of(elapsed, *rule) for elapsed in (end - start)[end <= now].tolist()
            )
            lengths[k] = checkpoints.lengths_with_checkpoints(max(1, lengths[k] - saved), *rule)
        return lengths

    # --- why --------------------------------------------------------------------------------------

    def _phases(self, job: int) -> list[Phase]:
        """The waits of a job in parts of one reason each; where processors are counted, of one place too."""
        submit, eligible = int(self.v["submit_time"][job]), int(self.eligible[job])
        until = min(self._leaves(job), self.last) if eligible < 0 else eligible
        phases = [Phase(submit, until, ("dependency",), ())] if until > submit else []
        for begin, end in self.waits[self.waits[:, 0] == job, 1:].tolist():
            for now, until in pairwise([*self._instants(job, begin, end), end]):
                reasons = tuple(self._reasons(job, now))
                joins = bool(phases) and (phases[-1].reasons, phases[-1].end) == (reasons, now)
                ahead = self._ahead(job, now) if self.counted or not joins else ()
                if joins and not (self.counted and phases[-1].first == bool(ahead)):
                    phases[-1] = replace(phases[-1], end=until)
                else:
                    phases.append(Phase(now, until, reasons, ahead))
        return phases

    def _overtaking(self, job: int) -> NDArray[np.bool_]:
        """Executions of jobs behind a job that began while it waited."""
        v = self.v
        begins, others = v["segment_start"], v["segment_job"]
        own = self.waits[self.waits[:, 0] == job, 1:]
        meanwhile = np.zeros(len(begins), np.bool_)
        for begin, end in own.tolist():
            meanwhile |= (begins >= begin) & (begins < end)
        meanwhile &= (others != job) & (self.cluster[others] == self.cluster[job])
        for k in np.flatnonzero(meanwhile).tolist():
            meanwhile[k] = not self._those_ahead(others[k : k + 1], job, int(begins[k]))
        return meanwhile

    def _delays(self, job: int, phases: Iterable[Phase], behind: NDArray[np.bool_]) -> Iterator[Delay]:
        """Who had the place of a job while it waited, one after the other."""
        v = self.v
        expected = v["segment_start"] + v["estimate"][v["segment_job"]]
        # who comes later may be ahead by the order of the queue
        behind = behind | (v["segment_job"] > job)
        for phase in phases:
            if phase.enough:
                yield Delay(phase.start, phase.end, "kept", phase.ahead)
            if not _OF_JOBS.intersection(phase.reasons):
                continue
            late = expected[(expected > phase.start) & (expected < phase.end)]
            instants = np.unique([*self._instants(job, phase.start, phase.end), *late, phase.end]).tolist()
            held = [self._in_its_place(job, now, behind, expected <= now) for now in instants[:-1]]
            for (now, until), (kind, jobs) in zip(pairwise(instants), held, strict=True):
                yield Delay(now, until, kind, jobs)

    def _in_its_place(
        self, job: int, now: int, behind: NDArray[np.bool_], late: NDArray[np.bool_]
    ) -> tuple[str, tuple[int, ...]]:
        """Who has what a job needs at a time: the first kind without whose executions it would fit."""
        v = self.v
        mine, down, windows = self._nodes_of(job, now)
        where = mine & ~down & ~windows
        there = (self.piece_start <= now) & (self.piece_end > now) & where[v["piece_node"]]
        behind, late = behind[v["piece_segment"]], late[v["piece_segment"]]
        kind, chosen = "before", there & ~behind & ~late
        for name, those in (("overtaken", behind), ("late", late & ~behind), ("both", late | behind)):
            left = ~(those & there)
            if not left.all():
                units = np.min(list(self._units(job, now, left).values()), axis=0)
                if self._has_space(job, units, where):
                    kind, chosen = name, those & there
                    break
        jobs = np.unique(v["segment_job"][v["piece_segment"][chosen]])
        return kind, tuple(jobs.tolist())

    def _nodes_of(self, job: int, now: int) -> tuple[NDArray[np.bool_], ...]:
        """Nodes that a job may use, those that are out at a time, and those of windows before its end."""
        mine = self.v["node_reach"][self.v["asked_where"][job]] != 0
        return mine, *self._out(now, now + int(self._lengths(np.array([job]), now)[0]))

    def _has_space(self, job: int, units: Integers, where: NDArray[np.bool_]) -> bool:
        """Whether a job fits where there is space for so many of its parts on each of some nodes."""
        reach = self.v["node_reach"][self.v["asked_where"][job]].astype(np.int64)
        return is_enough(self.v, job, reach[where], units[where])

    def _instants(self, job: int, begin: int, end: int) -> list[int]:
        """Times of a wait from which on the reason or the place may be another."""
        v = self.v
        # from then on it would not end before the window
        too_long = v["outage_start"] - self._lengths(np.array([job]), begin) + 1
        times = [v[f"outage_{name}"] for name in ("start", "end", "announced")]
        if self.counted:
            times += [v["submit_time"], np.fromiter(self._corrections(begin, end), np.int64)]
        together = np.concatenate([v["segment_start"], v["segment_end"], too_long, *times])
        return [begin, *np.unique(together[(together > begin) & (together < end)]).tolist()]

    def _reasons(self, job: int, now: int) -> Iterable[str]:
        """Why a waiting job does not run at a time."""
        v = self.v
        if "limited" in v and self._is_over_limit(job, now):
            return ["limit"]
        units = self._units(job, now)
        fitting = np.min(list(units.values()), axis=0)
        mine, down, windows = self._nodes_of(job, now)
        for reason, where in (
            ("queue", mine & ~down & ~windows),
            ("maintenance", mine & ~down),
            ("outage", mine),
        ):
            if self._has_space(job, fitting, where):
                return [reason]
        if (
            fitting[(v["node_cluster"] == self.cluster[job]) & ~down & ~windows].sum()
            >= v["asked_units"][job]
        ):
            return ["partition"]
        there = mine & ~down & ~windows
        short = [name for name, each in units.items() if not self._has_space(job, each, there)]
        # a node that is not idle lacks processors too
        return ["nodes"] if "nodes" in short else short or ["together"]

    def _units(self, job: int, now: int, those: NDArray[np.bool_] | bool = True) -> dict[str, Integers]:
        """Parts of a job for which there is space on each node at a time, by each resource alone.

        Only those pieces of running jobs count.
        """
        v = self.v
        running = np.flatnonzero((self.piece_start <= now) & (self.piece_end > now) & those)
        node = v["piece_node"][running]
        most = min(int(v["asked_most"][job]), int(v["asked_units"][job]))
        units = {}
        for name in ("cores", "memory"):
            free, asked = np.array(v[f"node_{name}"], np.int64), int(v[f"asked_{name}"][job])
            np.subtract.at(free, node, v[f"piece_{name}"][running])
            units[name] = free // asked if asked else np.full(len(free), most)
        columns = np.arange(int(v["node_gpus"].max(initial=0)))
        gpus = np.where(columns < v["node_gpus"][:, np.newaxis], _WHOLE_GPU, 0)
        bits = (v["piece_devices"][running, np.newaxis] >> columns) & 1
        np.subtract.at(gpus, node, bits * v["piece_share"][running, np.newaxis])
        whole, share = int(v["asked_gpus"][job]), int(v["asked_share"][job])
        enough = (gpus >= (share or _WHOLE_GPU)).sum(axis=1)
        units["gpus"] = enough // whole if whole and not share else most * ((enough > 0) | (share == 0))
        if v["asked_whole"][job]:
            units["nodes"] = most * (np.bincount(node, minlength=len(gpus)) == 0)
        return {name: np.minimum(most, each) for name, each in units.items()}

    def _out(self, now: int, end: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Nodes that are down or drained at a time, and those of known windows until another one."""
        v, nodes = self.v, np.arange(len(self.v["node_cores"]))
        is_window = v["outage_kind"] == int(Outage.MAINTENANCE)
        lasts = v["outage_end"] > now
        down = ~is_window & (v["outage_start"] <= now) & lasts
        known = is_window & (v["outage_announced"] <= now) & (v["outage_start"] < end) & lasts
        return np.isin(nodes, v["outage_node"][down]), np.isin(nodes, v["outage_node"][known])

    def _is_over_limit(self, job: int, now: int) -> bool:
        """Whether the jobs that run leave a job no space in one of its groups."""
        v = self.v
        running = v["segment_job"][(v["segment_start"] <= now) & (v["segment_end"] > now)]
        for group in v["limited"][job][v["limited"][job] >= 0].tolist():
            jobs = np.append(running[(v["limited"][running] == group).any(axis=1)], job)
            size = self.size[jobs]
            wanted = {
                "jobs": len(jobs),
                "cores": size.sum(),
                "seconds": (size * self._lengths(jobs, now)).sum(),
            }
            if any(0 <= v[f"limit_{name}"][group] < amount for name, amount in wanted.items()):
                return True
        return False
