"""Why a job of a run on nodes waited: for what, and how long for each.

Everything follows from the run: who had what of which node, which nodes were out, which limits there are. At
every instant of a wait the first of these that is true is the reason. A job waits for

- *dependency*: jobs that it depends on;
- *limit*: other jobs of its group or its job array, which have all that a limit allows;
- *maintenance*: nodes on which it would fit, but for a window that is on, or begins before it would end;
- *outage*: nodes on which it would fit if they were not down or drained;
- *partition*: nodes that it may use; it would fit on others;
- *nodes*, *cores*, *memory*, *gpus*: what is not free in such an amount where it may run, alone or several at
  once; of a job that wants nodes to itself they are nodes;
- *together*: enough of each is free, but not on the same nodes;
- *queue*: it would fit, but jobs ahead of it come first, or nodes are kept for them.

All states are those after everything that happens at an instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.nodes import Outage
from gridsched.policies.local import BY_SIZE, ORDERS, LocalPolicy
from gridsched.policies.scores import SCORE
from gridsched.workloads.dependencies import KINDS

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

_REJECTED, _GAVE_UP, _NEVER_ELIGIBLE, _LOST, _STARVED = range(1, 6)
_WHOLE_GPU = 1000
_FOREVER = 2**62


@dataclass(frozen=True)
class NodePhase:
    """A part of a wait [s]: its reasons, of `REASONS`, and the jobs ahead when it began, by index."""

    start: int
    end: int
    reasons: tuple[str, ...]
    ahead: tuple[int, ...]


@dataclass(frozen=True)
class NodeExplanation:
    """How a job came to start when it did; jobs are indices into the run, times seconds.

    Parameters
    ----------
    job : int
        The job.
    submit_time, eligible_time : int
        When it was submitted, and when it could have started first; the latter -1 if that never came.
    starts : tuple of int
        Starts of its executions: several for a job that failing nodes killed, none for one that never ran.
    fate : int
        Its outcome, see docs/nodes-reference.md.
    nodes : tuple of int
        Nodes of its first execution.
    phases : tuple of NodePhase
        Its waits in parts, one after the other; between them it ran.
    depends_on : tuple of int
        Jobs for which it waited last to become eligible, or which it waited for in vain.
    freed_by : tuple of int
        Jobs that left nodes at its first start.
    run : xarray.Dataset
        The run that it is from.
    policy : LocalPolicy
        The policy of the run.

    As text (`print(explanation)`) it is the account that `gridsched explain` prints.
    """

    job: int
    submit_time: int
    eligible_time: int
    starts: tuple[int, ...]
    fate: int
    nodes: tuple[int, ...]
    phases: tuple[NodePhase, ...]
    depends_on: tuple[int, ...]
    freed_by: tuple[int, ...]
    run: xr.Dataset = field(repr=False, compare=False)
    policy: LocalPolicy = field(repr=False, compare=False)

    def __str__(self) -> str:
        from gridsched.account import RunNames, account, as_text

        return as_text(account(self, self.run, self.policy, RunNames(self.run)))

    @property
    def wait_time(self) -> int:
        """Seconds of all its waits."""
        return sum(phase.end - phase.start for phase in self.phases)

    def seconds(self, reason: str) -> int:
        """Seconds of its waits for which something was a reason, alone or with others."""
        return sum(phase.end - phase.start for phase in self.phases if reason in phase.reasons)


def explain_on_nodes(run: xr.Dataset, job: int, policy: LocalPolicy) -> NodeExplanation:
    """Explain the waits of a job of a run on nodes.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variables piece_*, node_*, asked_*, outage_*, fate, eligible_time.
    job : int
        Index of the job.
    policy : LocalPolicy
        The policy of the run, whose queue order has a name.

    Raises
    ------
    ConfigurationError
        If the job was rejected.
    """
    if int(run["fate"].values[job]) == _REJECTED:
        raise ConfigurationError(
            f"job {run['job_number'].values[job]} was rejected: it does not fit on the nodes that it may "
            "use, or is over a limit"
        )
    return _NodeSchedule(run, policy).explain(job)


class _NodeSchedule:
    """A run on nodes: who waited when, and what was free."""

    def __init__(self, run: xr.Dataset, policy: LocalPolicy) -> None:
        self.v: dict[str, NDArray[Any]] = {str(name): run[name].to_numpy() for name in run.variables}
        self.run, self.policy = run, policy
        self.order = ORDERS[str(policy.order)]
        v = self.v
        self.segments = np.lexsort((v["segment_start"], v["segment_job"]))
        self.first_segment = np.searchsorted(v["segment_job"][self.segments], np.arange(len(v["fate"]) + 1))
        self.piece_start = v["segment_start"][v["piece_segment"]]
        self.piece_end = v["segment_end"][v["piece_segment"]]
        self.size = v["asked_units"] * v["asked_cores"]
        # of the nodes that jobs may use, whether or not they have a home
        self.cluster = v["node_cluster"][np.argmax(v["node_reach"], axis=1)][v["asked_where"]]
        self.last = int(max(v["segment_end"].max(initial=0), v["submit_time"].max(initial=0)))
        self.waits = np.array([wait for job in range(len(self.size)) for wait in self._waits(job)], np.int64)
        self.waits = self.waits.reshape(-1, 3)

    def explain(self, job: int) -> NodeExplanation:
        """Explanation of a job."""
        v = self.v
        submit, fate = int(v["submit_time"][job]), int(v["fate"][job])
        own = self._executions(job)
        eligible = self._eligible(job)
        phases: list[NodePhase] = []
        until = min(self._leaves(job), self.last) if eligible < 0 else eligible
        if until > submit:
            phases.append(NodePhase(submit, until, ("dependency",), ()))
        for _, begin, end in self._waits(job):
            for phase in self._phases(job, begin, min(end, self.last)):
                joins = phases and (phases[-1].reasons, phases[-1].end) == (phase.reasons, phase.start)
                phases[-1:] = [replace(phases[-1], end=phase.end)] if joins else [*phases[-1:], phase]
        first = own[:1]
        nodes = np.unique(v["piece_node"][np.isin(v["piece_segment"], first)])
        freed: Integers = np.empty(0, np.int64)
        if len(first):
            start = v["segment_start"][first[0]]
            freed = np.unique(v["segment_job"][(v["segment_end"] == start) & (v["segment_start"] < start)])
        return NodeExplanation(
            job=job,
            submit_time=submit,
            eligible_time=eligible,
            starts=tuple(v["segment_start"][own].tolist()),
            fate=fate,
            nodes=tuple(nodes.tolist()),
            phases=tuple(phases),
            depends_on=self._depends_on(job, eligible),
            freed_by=tuple(freed.tolist()),
            run=self.run,
            policy=self.policy,
        )

    # --- who waits when ---------------------------------------------------------------------------

    def _executions(self, job: int) -> Integers:
        """Segments of a job, by time."""
        return self.segments[self.first_segment[job] : self.first_segment[job + 1]]

    def _eligible(self, job: int) -> int:
        """When a job entered the queue; -1 if it never did."""
        v = self.v
        eligible, fate = int(v["eligible_time"][job]), int(v["fate"][job])
        if fate in (_REJECTED, _NEVER_ELIGIBLE) or eligible < v["submit_time"][job]:
            return -1
        if fate in (_GAVE_UP, _STARVED) and (eligible > self._leaves(job) or self._waits_in_vain(job)):
            return -1
        return eligible

    def _waits_in_vain(self, job: int) -> bool:
        """Whether the jobs that a job depends on had not done what it waits for when it left, if it did."""
        if "dependency_job" not in self.v:
            return False
        mine = np.flatnonzero(self.v["dependency_job"] == job)
        return any(self._met(k) > self._leaves(job) for k in mine.tolist())

    def _met(self, dependency: int) -> int:
        """When what a dependency waits for had happened, well or not; 2**62 for never."""
        v = self.v
        on, kind = int(v["dependency_on"][dependency]), int(v["dependency_kind"][dependency])
        delay = int(v["dependency_delay"][dependency])
        if v["start_time"][on] >= 0 and kind == KINDS["after"]:
            return int(v["start_time"][on]) + delay
        if v["fate"][on] in (_NEVER_ELIGIBLE, _STARVED):
            return _FOREVER
        return delay + (int(v["end_time"][on]) if v["start_time"][on] >= 0 else self._leaves(on))

    def _leaves(self, job: int) -> int:
        """When a job that never ran left; just before 2**62 if it waits forever."""
        v = self.v
        submit = int(v["submit_time"][job])
        if v["fate"][job] == _STARVED:
            return _FOREVER - 1
        return max(submit, int(v["gives_up_time"][job])) if v["fate"][job] == _GAVE_UP else submit

    def _depends_on(self, job: int, eligible: int) -> tuple[int, ...]:
        """Jobs that kept a job from being eligible until it was."""
        if "dependency_job" not in self.v or (eligible == self.v["submit_time"][job]):
            return ()
        mine = np.flatnonzero(self.v["dependency_job"] == job).tolist()
        return tuple(
            int(self.v["dependency_on"][k]) for k in mine if eligible < 0 or self._met(k) == eligible
        )

    def _waits(self, job: int) -> Iterator[tuple[int, int, int]]:
        """When a job waited in the queue: rows (job, begin, end)."""
        v = self.v
        begin, fate = self._eligible(job), int(v["fate"][job])
        if begin < 0:
            return
        for segment in self._executions(job).tolist():
            if v["segment_start"][segment] > begin:
                yield job, begin, int(v["segment_start"][segment])
            begin = int(v["segment_end"][segment])
        end = self._leaves(job) if fate in (_GAVE_UP, _STARVED) else begin
        if end > begin:
            yield job, begin, end

    def _ahead(self, job: int, now: int) -> tuple[int, ...]:
        """Jobs of the cluster that wait at a time ahead of a job, first the first."""
        job_waits = (self.waits[:, 1] <= now) & (self.waits[:, 2] > now)
        others = self.waits[job_waits, 0]
        others = others[self.cluster[others] == self.cluster[job]]
        keys = self._keys(np.append(others, job), now)
        order = np.lexsort(keys[::-1])
        place = int(np.flatnonzero(order == len(others))[0])
        return tuple(int(others[k]) for k in order[:place] if others[k] != job)

    def _keys(self, jobs: Integers, now: int) -> tuple[NDArray[Any], ...]:
        """What the queue is ordered by, first the first: priority, score, entry."""
        v, wanted = self.v, SCORE.parameters_of(self.order)
        # an order that does not change is that of submission
        since = now if "now" in wanted else -1
        values = {
            "now": now,
            "submit_time": v["submit_time"][jobs],
            "estimate": np.array([self._length(job, since) for job in jobs.tolist()], np.int64),
            "processors": (self.size if self.order in BY_SIZE else v["processors"])[jobs],
        }
        score = np.zeros(len(jobs))
        if self.order is not ORDERS["fcfs"]:
            score = np.asarray(self.order(**{name: values[name] for name in wanted}), np.float64)
        priority = v["partition_priority"][jobs] if "partition_priority" in v else np.zeros(len(jobs))
        entries = self._entries(jobs, now)
        rounds = [self._round(job, entry) for job, entry in zip(jobs.tolist(), entries.tolist(), strict=True)]
        return -priority, -score, entries, np.array(rounds, np.int64), jobs

    def _entries(self, jobs: Integers, now: int) -> Integers:
        """When jobs entered the queue at their place: again after a kill, if that is the rule."""
        entries = self.v["eligible_time"][jobs].copy()
        for k, job in enumerate(jobs.tolist()):
            if self._of_cluster("requeue", job) == "end":
                ended = [int(end) for end in self.v["segment_end"][self._executions(job)] if end <= now]
                entries[k] = max([int(entries[k]), *ended])
        return np.asarray(entries, np.int64)

    def _round(self, job: int, entry: int) -> int:
        """How many passes of the instant at which a job entered came first: it may wait for a start there."""
        v = self.v
        if "dependency_job" not in v or v["eligible_time"][job] != entry:
            return 0
        mine = np.flatnonzero((v["dependency_job"] == job) & (v["dependency_delay"] == 0)).tolist()
        on = [int(v["dependency_on"][k]) for k in mine if self._met(k) == entry]
        # others ended, having run for a while, before anybody entered
        waited_for = [each for each in on if v["start_time"][each] in (entry, -1)]
        return max((1 + self._round(each, entry) for each in waited_for), default=0)

    def _of_cluster(self, name: str, job: int) -> Any:
        """What a cluster does when nodes fail; nothing where none does."""
        known = self.v.get(f"cluster_{name}")
        return None if known is None else known[self.cluster[job]]

    def _length(self, job: int, now: int) -> int:
        """Seconds that the scheduler expects the next execution of a job to take, checkpoints included."""
        guess = int(self.v["estimate"][job])
        interval, cost = (
            int(self._of_cluster(f"checkpoint_{name}", job) or 0) for name in ("interval", "cost")
        )
        if interval == 0:
            return guess
        for segment in self._executions(job).tolist():
            start, end = int(self.v["segment_start"][segment]), int(self.v["segment_end"][segment])
            if end <= now:
                guess = max(1, guess - interval * ((end - start) // (interval + cost)))
        return guess + cost * ((guess - 1) // interval)

    # --- why --------------------------------------------------------------------------------------

    def _phases(self, job: int, begin: int, end: int) -> Iterator[NodePhase]:
        """A wait in parts of one reason each."""
        instants = self._instants(job, begin, end)
        free = _Free(self.v, self.piece_start, self.piece_end, begin)
        length = self._length(job, begin)
        current: NodePhase | None = None
        for now, until in pairwise([*instants, end]):
            free.advance(now)
            reasons = tuple(self._reasons(job, now, length, free))
            if current is not None and current.reasons == reasons:
                current = replace(current, end=until)
                continue
            if current is not None:
                yield current
            current = NodePhase(now, until, reasons, self._ahead(job, now))
        if current is not None:
            yield current

    def _instants(self, job: int, begin: int, end: int) -> list[int]:
        """Times at which the reason may change."""
        v = self.v
        length = self._length(job, begin)
        times = [v["segment_start"], v["segment_end"]]
        times += [v[f"outage_{name}"] for name in ("start", "end", "announced")]
        # from then on it would not end before the window
        times.append(v["outage_start"] - length + 1)
        together = np.concatenate(times)
        inside = together[(together > begin) & (together < end)]
        return [begin, *np.unique(inside).tolist()] if end > begin else []

    def _reasons(self, job: int, now: int, length: int, free: _Free) -> Iterable[str]:
        """Why a waiting job does not run at a time."""
        v = self.v
        if self._is_over_limit(job, now, length):
            return ["limit"]
        mine = v["node_reach"][v["asked_where"][job]] == 1
        down, windows = self._out(now, now + length)
        if free.fits(job, mine & ~down & ~windows):
            return ["queue"]
        if free.fits(job, mine & ~down):
            return ["maintenance"]
        if free.fits(job, mine):
            return ["outage"]
        cluster = v["node_cluster"] == self.cluster[job]
        if free.fits(job, cluster & ~down & ~windows):
            return ["partition"]
        return free.lacking(job, mine & ~down & ~windows) or ["together"]

    def _out(self, now: int, end: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Nodes that are down or drained at a time, and those of known windows until another one."""
        v = self.v
        node, start, back, kind = (v[f"outage_{name}"] for name in ("node", "start", "end", "kind"))
        down, windows = (np.zeros(len(v["node_name"]), np.bool_) for _ in range(2))
        is_window = kind == int(Outage.MAINTENANCE)
        down[node[~is_window & (start <= now) & (back > now)]] = True
        known = is_window & (v["outage_announced"] <= now)
        windows[node[known & (start < end) & (back > now)]] = True
        return down, windows

    def _is_over_limit(self, job: int, now: int, length: int) -> bool:
        """Whether the jobs that run leave a job no space in one of its groups."""
        v = self.v
        if "limited" not in v:
            return False
        running = v["segment_job"][(v["segment_start"] <= now) & (v["segment_end"] > now)]
        for group in v["limited"][job][v["limited"][job] >= 0].tolist():
            others = running[(v["limited"][running] == group).any(axis=1)]
            size = self.size[others]
            if 0 <= v["limit_jobs"][group] <= len(others):
                return True
            if 0 <= v["limit_cores"][group] < size.sum() + self.size[job]:
                return True
            if v["limit_seconds"][group] >= 0:
                lengths = np.array([self._length(k, self._began(k, now)) for k in others.tolist()], np.int64)
                if v["limit_seconds"][group] < (size * lengths).sum() + self.size[job] * length:
                    return True
        return False

    def _began(self, job: int, now: int) -> int:
        """When the present execution of a running job began."""
        starts = self.v["segment_start"][self._executions(job)]
        return int(starts[starts <= now].max())


class _Free:
    """What is free on each node at a time, from the pieces that run."""

    def __init__(self, v: dict[str, NDArray[Any]], start: Integers, end: Integers, now: int) -> None:
        self.v, self.start, self.end, self.now = v, start, end, now
        self.cores, self.memory = v["node_cores"].copy(), v["node_memory"].copy()
        columns = np.arange(int(v["node_gpus"].max(initial=0)))
        self.gpus = np.where(columns < v["node_gpus"][:, np.newaxis], _WHOLE_GPU, 0)
        self.pieces = np.zeros(len(self.cores), np.int64)
        self.by_start, self.by_end = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
        for piece in np.flatnonzero((start <= now) & (end > now)).tolist():
            self._hand_over(piece, -1)

    def advance(self, now: int) -> None:
        """Go on to a later time."""
        for order, times, sign in ((self.by_end, self.end, 1), (self.by_start, self.start, -1)):
            low, high = np.searchsorted(times[order], [self.now, now], "right")
            for piece in order[low:high].tolist():
                self._hand_over(piece, sign)
        self.now = now

    def _hand_over(self, piece: int, sign: int) -> None:
        """Take (-1) or give back (1) what a piece has."""
        v, node = self.v, int(self.v["piece_node"][piece])
        self.cores[node] += sign * v["piece_cores"][piece]
        self.memory[node] += sign * v["piece_memory"][piece]
        self.pieces[node] -= sign
        bits = (int(v["piece_devices"][piece]) >> np.arange(self.gpus.shape[1])) & 1
        self.gpus[node] += sign * bits * int(v["piece_share"][piece])

    def _units(self, job: int) -> dict[str, Integers]:
        """Parts of a job for which there is space on each node, by each resource alone."""
        v = self.v
        most = np.full(len(self.cores), min(int(v["asked_most"][job]), int(v["asked_units"][job])))
        units = {}
        for name, free in (("cores", self.cores), ("memory", self.memory)):
            asked = int(v[f"asked_{name}"][job])
            units[name] = np.minimum(most, free // asked) if asked else most
        gpus, share = int(v["asked_gpus"][job]), int(v["asked_share"][job])
        units["gpus"] = np.minimum(most, (self.gpus == _WHOLE_GPU).sum(axis=1) // gpus) if gpus else most
        if share:
            units["gpus"] = np.where(self.gpus.max(axis=1, initial=0) >= share, most, 0)
        if v["asked_whole"][job]:
            units["nodes"] = np.where(self.pieces == 0, most, 0)
        return units

    def fits(self, job: int, where: NDArray[np.bool_]) -> bool:
        """Whether a job fits on some nodes now."""
        least = np.min(list(self._units(job).values()), axis=0)
        return bool(least[where].sum() >= self.v["asked_units"][job])

    def lacking(self, job: int, where: NDArray[np.bool_]) -> list[str]:
        """Resources of which there is not enough on some nodes, whatever there is of the others."""
        units, wanted = self._units(job), self.v["asked_units"][job]
        short = [name for name, each in units.items() if each[where].sum() < wanted]
        # a node that is not idle lacks processors too
        return ["nodes"] if "nodes" in short else short
