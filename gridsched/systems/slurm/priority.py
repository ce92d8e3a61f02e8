"""priority/multifactor: age, fair share, size, partition, quality of service, resources.

Each factor is between 0 and 1; the priority is the sum of factors times weights, less the job's nice value.
Source: Slurm's manual ("Multifactor Priority Plugin", "Fair Tree Fairshare Algorithm", "Classic Fairshare
Algorithm"), and src/plugins/priority/multifactor of Slurm 22.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.systems.slurm.accounts import RESOURCES, ROOT, USE_PARENT, Accounting, Owner, usage_factors
from gridsched.systems.slurm.parameters import ResetPeriod, SlurmParameters

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Resets:
    """When what was used is forgotten.

    Parameters
    ----------
    period : {"none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"}
        PriorityUsageResetPeriod: never, once at the start, or each time a day, a week (on Sundays), a month,
        a quarter or a year begins.
    origin : int
        Unix time of second 0.
    zone : str
        Time zone of the controller.
    """

    period: ResetPeriod = "none"
    origin: int = 0
    zone: str = "UTC"

    def after(self, second: int) -> int:
        """The first one after a second; FOREVER without one.

        Raises
        ------
        ConfigurationError
            If there is no such time zone.
        """
        if self.period in ("none", "now"):
            return FOREVER
        try:
            zone = ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:
            raise ConfigurationError(
                f"time zone {self.zone!r} of the workload is unknown; name one like Europe/Rome"
            ) from error
        day = datetime.fromtimestamp(self.origin + second, zone).replace(
            hour=0, minute=0, second=0, microsecond=0, tzinfo=None
        )
        if self.period == "daily":
            day += timedelta(days=1)
        elif self.period == "weekly":
            day += timedelta(days=7 - (day.weekday() + 1) % 7)
        else:
            months = {"monthly": 1, "quarterly": 3, "yearly": 12}[self.period]
            month = (day.month - 1) // months * months + months
            day = day.replace(year=day.year + month // 12, month=month % 12 + 1, day=1)
        return int(day.replace(tzinfo=zone).timestamp()) - self.origin


class Priorities:
    """Priorities that do not change, and what those that do are told.

    Jobs that enter the queue are told once for each of their partitions, by their rows.

    Parameters
    ----------
    priority : sequence of float
        Priority of each job.
    of : int64[n + m], optional
        The job of each row; by default each has one.
    """

    def __init__(self, priority: list[float], of: Integers | None = None) -> None:
        self.priority = priority
        self.of: Integers = np.arange(len(priority)) if of is None else of

    def submitted(self, job: int, now: int, since: int) -> float:
        """Priority of a job that enters the queue at `now`, and is known since then or before [ticks]."""
        return float(self.priority[self.of[job]])

    def begin(self, rows: Sequence[int], now: int) -> None:
        """Tasks of arrays, and jobs that waited for others, wait from the first pass on that sees them."""

    def requeued(self, job: int, now: int) -> None:
        """A job that was preempted waits again from `now` [ticks] on; it keeps its priority for now."""

    def started(self, job: int, now: int) -> None:
        """A job starts, or goes on."""

    def ended(self, job: int, now: int) -> None:
        """A job ends, or is suspended."""

    def due(self) -> int:
        """When priorities change next [ticks]."""
        return FOREVER

    def recalculate(self, now: int, waiting: Integers) -> NDArray[np.float64]:
        """New priorities of the waiting jobs."""
        return np.array([self.priority[job] for job in self.of[waiting].tolist()])


_TOP_PRIORITY = float(0xFFFF0000)
"""Of which jobs get less and less; TOP_PRIORITY of slurmctld/job_mgr.c."""


class FirstCome(Priorities):
    """priority/basic: who was submitted first comes first.

    Parameters
    ----------
    of : int64[n + m]
        The job of each row; jobs are in order of submission.
    rank : int64[n], optional
        Their places, where some were held and released later.
    nice : int64[n], optional
        What is taken off the priority of each, which is one less than the last one without that
        (set_job_prio() of slurmctld, Slurm 22.05).
    array : int64[n], optional
        Job array of each, -1 for none: its tasks are submitted as one record, and have one priority.
    """

    def __init__(
        self,
        of: Integers,
        rank: Integers | None = None,
        nice: Integers | None = None,
        array: Integers | None = None,
    ) -> None:
        jobs = int(of.max(initial=-1)) + 1
        super().__init__([0.0] * jobs, of)
        self.came = [False] * jobs
        self.nice = np.zeros(jobs, np.int64) if nice is None else nice
        self.last = _TOP_PRIORITY
        records = np.full(jobs, -1) if array is None else array[:jobs]
        last = -1
        for k in range(jobs) if rank is None else np.argsort(rank, kind="stable").tolist():
            if last == records[k] >= 0:
                self.last += 1  # further tasks of an array come with the first
            last = records[k]
            self._come(k)

    def _come(self, job: int) -> None:
        """Give a job the priority of one that comes after all others."""
        self.last -= 1
        self.priority[job] = self.last - int(self.nice[job])

    def submitted(self, job: int, now: int, since: int) -> float:
        """Priority of a job that enters the queue, after all others if it does once more."""
        if job < len(self.came):  # its first row
            if self.came[job]:
                self._come(job)
            self.came[job] = True
        return super().submitted(job, now, since)


class Usage(Priorities):
    """What jobs use is counted each period, and decays.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler.
    begin : int
        When the controller started [ticks]: it counts each period from then on.
    unit : int
        Ticks a second.
    resets : Resets
        When what was used is forgotten.
    """

    def __init__(self, parameters: SlurmParameters, begin: int, unit: int, resets: Resets) -> None:
        self.parameters, self.unit, self.resets = parameters, unit, resets
        self.next = begin + parameters.priority_calc_period * unit
        self.last = begin // unit
        self.reset = resets.after(self.last)
        half_life = parameters.priority_decay_half_life
        self.decay = 1 - 0.693 / half_life if half_life > 0 else 1.0
        self.since: dict[int, int] = {}

    def started(self, job: int, now: int) -> None:
        """A job starts, or goes on."""
        self.since[job] = now // self.unit

    def due(self) -> int:
        """When priorities or what was used change next [ticks]."""
        return self.next


class Shares:
    """The tree of accounts and users, what they used, and their fair shares.

    Parameters
    ----------
    accounting : Accounting
        The tree.
    fair_tree : bool
        Fair Tree, else the classic formula.
    damping : int
        `FairShareDampeningFactor` of the classic formula.
    """

    def __init__(self, accounting: Accounting, *, fair_tree: bool = True, damping: int = 1) -> None:
        tree = accounting.associations
        self.place = {(each.account, each.user): k for k, each in enumerate(tree)}
        self.fair_tree, self.damping = fair_tree, damping
        self.is_user = [bool(each.user) for each in tree]
        self.shares = [each.shares for each in tree]
        self.parent = [
            -1 if each.account == ROOT and not each.user else self.place[each.parent, ""] for each in tree
        ]
        self.children: list[list[int]] = [[] for _ in tree]
        for k, above in enumerate(self.parent):
            if above >= 0:
                self.children[above].append(k)
        # raw shares of those below each
        self.below = [sum(max(self.shares[child], 0) for child in own) for own in self.children]
        self.used = np.zeros(len(tree))
        self.factor = np.ones(len(tree))
        # of the classic formula: associations, those above first; normalised shares; effective use
        self.order = [self.place[ROOT, ""]] if tree else []
        for above in self.order:
            self.order += self.children[above]
        self.normal, self.effective = np.ones(len(tree)), np.ones(len(tree))
        for k in self.order[1:]:
            self.normal[k] = self.normal[self.parent[k]] * self._part(k)
        self.known = False
        self.users = sum(self.is_user)
        for who, usage in accounting.usage.items():
            self.add(self.place[who], usage)

    def add(self, place: int, usage: float) -> None:
        """Add billed seconds to an association and those above it."""
        while place >= 0:
            self.used[place] += usage
            place = self.parent[place]
        self.known = False

    def decay(self, factor: float) -> None:
        """Let what was used count less, or not at all."""
        self.used *= factor
        self.known = self.known and factor > 0

    def refresh(self) -> None:
        """Work out the fair shares again, if anything was used since; with the classic formula see `see`."""
        if not self.fair_tree:
            for k in self.order[1:]:
                self.effective[k] = math.nan if self.is_user[k] else self._effective(k)
        elif not self.known:
            self.known = True
            self.rank = self.left = self.users
            self.values = self.used.tolist()
            self._rank(self.children[self.place[ROOT, ""]], False)

    def see(self, place: int) -> None:
        """Work out a fair share of the classic formula: two to the minus effective use by normalised shares.

        The effective use of accounts is worked out with `refresh`, that of a user when it is needed first
        after that, by what was used until then (_set_children_usage_efctv and _get_fairshare_priority of
        priority/multifactor, Slurm 22.05).
        """
        if self.fair_tree or place < 0:
            return
        if math.isnan(self.effective[place]):
            self.effective[place] = self._effective(place)
        normal = self.normal[place] * self.damping
        self.factor[place] = 2.0 ** -(self.effective[place] / normal) if normal > 0 else 0.0

    def _level(self, k: int) -> float:
        """Fair share of an association among its siblings: its part of the shares by its part of the use."""
        total = self.below[self.parent[k]]
        above = self.values[self.parent[k]]
        if self.shares[k] == USE_PARENT:
            return math.inf if above <= 0 else self._level(self.parent[k])
        if total == 0 or self.shares[k] == 0:
            return 0.0
        used = self.values[k] / above if above > 0 else 0.0
        return math.inf if used <= 0 else self.shares[k] / total / used

    def _rank(self, siblings: list[int], tied: bool) -> None:
        """Rank users by the fair share of their level, depth first; accounts that tie are merged."""
        level = {k: self._level(k) for k in siblings}
        ordered = sorted(siblings, key=lambda k: (-level[k], not self.is_user[k]))
        before: float | None = None
        i = 0
        while i < len(ordered):
            k = ordered[i]
            same = tied if before is None else level[k] == before
            before = level[k]
            if self.is_user[k]:
                if not same:
                    self.rank = self.left
                self.factor[k] = self.rank / self.users
                self.left -= 1
                i += 1
                continue
            merged: list[int] = []
            while i < len(ordered) and level[ordered[i]] == before and not self.is_user[ordered[i]]:
                merged += self.children[ordered[i]]
                i += 1
            self._rank(merged, same)

    def _part(self, k: int) -> float:
        """Part that an association has of the shares beside it; all where they are those of its parent."""
        if self.shares[k] == USE_PARENT:
            return 1.0
        total = self.below[self.parent[k]]
        return max(self.shares[k], 0) / total if total else 0.0

    def _effective(self, k: int) -> float:
        """Effective use of an association: its own, and its part of what those beside it used."""
        above, root = self.parent[k], self.order[0]
        if self.shares[k] == USE_PARENT:
            return float(self.effective[above])
        used = float(min(self.used[k] / self.used[root], 1.0)) if self.used[root] > 0 else 0.0
        return used if above == root else used + float(self.effective[above] - used) * self._part(k)


class Multifactor(Usage):
    """Priorities of priority/multifactor, for the controller.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler.
    jobs : JOB[n]
        The rows of the jobs, those of the controller.
    owners : sequence of (str, str, str)
        Account, user and quality of service of each.
    accounting : Accounting
        The tree, in which those are not who have no fair share, and the qualities of service.
    factor : int64[p]
        PriorityJobFactor of each partition.
    nice : int64[n]
        Nice value of each job.
    early_processors : int64[n]
        Processors by which its size is known until it was tested first.
    nodes : NODE[m]
        Nodes of the cluster.
    reach : uint8[p, m]
        Nodes of each partition, by whose resources PriorityWeightTRES weighs (_get_tres_factors).
    billing : sequence of mapping of str to float
        Weights of resources by which jobs of each partition are billed; none for processors.
    mebibyte : int
        Units of memory of the jobs that are one.
    asked_memory : int64[n], optional
        What each asks for on a node, where memory is not given to jobs; that of its record by default.
    held : bool[n], optional
        Jobs that are submitted with a hold, and are not tested before it ends.
    begin, unit, resets
        As of `Usage`.
    """

    def __init__(
        self,
        parameters: SlurmParameters,
        jobs: RecordArray,
        owners: Sequence[Owner],
        accounting: Accounting,
        *,
        factor: Integers,
        nice: Integers,
        early_processors: Integers,
        nodes: RecordArray,
        reach: NDArray[np.uint8],
        begin: int,
        unit: int = 1,
        resets: Resets,
        billing: Sequence[Mapping[str, float]] = (),
        mebibyte: int = 1,
        asked_memory: Integers | None = None,
        held: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(parameters, begin, unit, resets)
        self.jobs, self.billing, self.mebibyte = jobs, billing, mebibyte
        self.shares = Shares(
            accounting, fair_tree=parameters.fair_tree, damping=parameters.fair_share_dampening_factor
        )
        if resets.period == "now":
            self.shares.decay(0.0)
        self.place = np.array([self.shares.place.get((a, u), -1) for a, u, _ in owners], np.int64)
        self.usage_factor = usage_factors(accounting, owners)
        self.submit = np.zeros(len(jobs), np.int64)
        self.calculated = -1
        self.machine = {
            "nodes": float(len(nodes)),
            "processors": float(nodes["cores"].sum()),
            "memory": float(nodes["memory"].sum()),
            "gpus": float(nodes["gpus"].sum()),
        }
        priority = {name: each.priority for name, each in accounting.qualities.items()}
        quality = np.array([priority.get(name, 0) for *_, name in owners], np.float64)
        quality /= max([1, *priority.values()])
        self.of_partition = (
            parameters.priority_weight_partition * factor / max(float(factor.max(initial=0)), 1.0)
        )
        # what does not change
        fixed = parameters.priority_weight_qos * quality - nice
        self.fixed = fixed
        per_node = nodes["memory"].sum() / max(len(nodes), 1)
        self.held = np.zeros(len(jobs), np.bool_) if held is None else held
        # what is asked for at submission, by what the partition has; all memory where none is named
        asked = jobs["memory"] if asked_memory is None else asked_memory
        per_job = {
            "processors": early_processors,
            "nodes": jobs["nodes"],
            "memory": np.where(asked > 0, asked, per_node) * jobs["nodes"],
            "gpus": jobs["gpus"] * jobs["nodes"],
        }
        of_nodes = {"processors": nodes["cores"], "nodes": np.ones(len(nodes))}
        of_nodes |= {name: nodes[name] for name in ("memory", "gpus")}
        self.by_resource = [
            (weight * per_job[RESOURCES[name]], np.maximum(reach @ of_nodes[RESOURCES[name]], 1.0))
            for name, weight in (parameters.priority_weight_tres or {}).items()
        ]
        weight = parameters.priority_weight_job_size
        self.early = weight * self._size(jobs["nodes"], early_processors, jobs["limit"])
        self.late = weight * self._size(jobs["nodes"], jobs["processors"], jobs["limit"])
        # total_cpus is that of whole nodes once select/linear has tested a job at its submission, or
        # select/cons_tres has found nodes for it, as sched/builtin tries every bf_interval
        self.sized_at_once = parameters.select_type == "linear" or parameters.scheduler_type == "builtin"
        self.shares.refresh()

    def _size(self, nodes: Any, processors: Any, limit: Any) -> NDArray[np.float64]:
        """Factor of the size of jobs."""
        all_nodes, all_processors = self.machine["nodes"], self.machine["processors"]
        if self.parameters.small_relative_to_time:
            size = np.maximum(nodes * all_processors / all_nodes, processors)
            size = size / np.maximum(limit / 60, 1) / all_processors
            factor = 1 - size if self.parameters.priority_favor_small else size
        elif self.parameters.priority_favor_small:
            factor = ((all_nodes - nodes) / all_nodes + (all_processors - processors) / all_processors) / 2
        else:
            factor = (nodes / all_nodes + processors / all_processors) / 2
        return np.clip(np.asarray(factor, np.float64), 0.0, 1.0)

    def _sum(self, size: Any, age: Any, which: Any) -> Any:
        """Whole-number priorities, at least 1."""
        factor = np.where(self.place[which] >= 0, self.shares.factor[self.place[which]], 0.0)
        total = self.parameters.priority_weight_age * age + self.parameters.priority_weight_fairshare * factor
        partition = self.jobs["partition"][which]
        total = total + size + (self.fixed[which] + self.of_partition[partition])
        for weighed, has in self.by_resource:
            total = total + weighed[which] / has[partition]
        return np.maximum(np.floor(total), 1.0)

    def submitted(self, job: int, now: int, since: int) -> float:
        """Priority of a job that enters the queue at `now`, and is known since then or before [ticks]."""
        self.submit[job] = now // self.unit
        self.shares.see(int(self.place[job]))
        calculated_since = since < self.calculated and not self.held[job]
        return float(self._sum((self.late if calculated_since else self.early)[job], 0.0, job))

    def begin(self, rows: Sequence[int], now: int) -> None:
        """Tasks of arrays, and jobs that waited for others, are seen by a pass first: their age starts."""
        self.submit[rows] = now // self.unit

    def requeued(self, job: int, now: int) -> None:
        """A job that was preempted waits again: its age starts again."""
        self.submit[job] = now // self.unit

    def ended(self, job: int, now: int) -> None:
        """A job ends, or is suspended."""
        if self.parameters.enforce_limits:
            self._use(job, now // self.unit)
        del self.since[job]

    def _use(self, job: int, now: int) -> None:
        """Add what a job used since the last calculation, decayed by as many seconds as it ran since."""
        ran = now - max(self.since[job], self.last)
        if ran > 0 and self.place[job] >= 0:
            billed = ran * self.decay**ran * self._billed(job) * self.usage_factor[job]
            self.shares.add(int(self.place[job]), billed)

    def _billed(self, job: int) -> float:
        """What a job is billed for each second.

        Source: calc_job_billable_tres() of slurmctld and assoc_mgr_tres_weighted(), Slurm 22.05.
        """
        record = self.jobs[job]
        weights = self.billing[record["partition"]] if self.billing else {}
        if not weights:
            return float(record["processors"])
        amounts = {
            "cpu": record["processors"],
            "node": record["nodes"],
            "mem": record["memory"] * record["nodes"] / self.mebibyte,
            "gres/gpu": record["gpus"] * record["nodes"],
        }
        parts = [float(weight * amounts[name]) for name, weight in weights.items()]
        return max(parts) if self.parameters.max_tres else sum(parts)

    def _in_order(self, waiting: Integers) -> list[int]:
        """Jobs that run, and with the classic formula those that wait, in the order of their records.

        The tasks of an array that wait have one record, that of the first.
        """
        if self.shares.fair_tree:
            return sorted(self.since)
        first: dict[tuple[int, int], int] = {}
        for job in np.unique(self.jobs["of"][waiting]).tolist():
            array = int(self.jobs[job]["array"])
            first.setdefault((array, job if array < 0 else -1), job)
        return sorted([*self.since, *first.values()], key=lambda job: int(self.jobs[job]["record"]))

    def recalculate(self, now: int, waiting: Integers) -> NDArray[np.float64]:
        """New priorities of the waiting jobs."""
        self.next = now + self.parameters.priority_calc_period * self.unit
        self.calculated = now
        second = now // self.unit
        if self.parameters.priority_weight_fairshare:
            if second >= self.reset:
                self.shares.decay(0.0)
                self.reset = self.resets.after(second)
            if not self.shares.fair_tree:
                self.shares.refresh()
            self.shares.decay(self.decay ** (second - self.last))
            for job in self._in_order(waiting):
                if job in self.since:
                    self._use(job, second)
                else:
                    self.shares.see(int(self.place[job]))
            if self.shares.fair_tree:
                self.shares.refresh()
        self.last = second
        age = np.clip((second - self.submit[waiting]) / max(self.parameters.priority_max_age, 1), 0.0, 1.0)
        size = np.where(self._sized(waiting), self.late[waiting], self.early[waiting])
        priorities: NDArray[np.float64] = self._sum(size, age, waiting)
        return priorities

    def _sized(self, waiting: Integers) -> NDArray[np.bool_]:
        """Of which waiting jobs all processors are known; the tasks of an array that wait have one record."""
        if self.sized_at_once:
            return np.ones(len(waiting), np.bool_)
        own, array = self.jobs["sized"][self.jobs["of"][waiting]] != 0, self.jobs["array"][waiting]
        return np.asarray(own | np.isin(array, array[own & (array >= 0)]))
