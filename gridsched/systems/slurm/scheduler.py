"""Slurm: the scheduler of the clusters that run it, with its parameters, its cadence and its nodes.

Slurm starts jobs in two ways. Its main loop takes them in order of priority, and the first that does not fit
ends the pass for its partition. Its backfill scheduler plans every job that it tests, on named nodes, and
starts those that delay no plan of a job before them; it forgets its plans at the end of each pass. Neither
looks at the queue at once when a job comes or ends: there is a cadence, and jobs wait for it.

What is modelled follows Slurm 22.05 and was compared with schedules that its controller made, see
docs/slurm.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.results import NO_TIME, Schedule, of_tasks
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler
from gridsched.systems.job_outcomes import JobOutcome, outcome_variables
from gridsched.systems.node_records import node_variables
from gridsched.systems.slurm.accounts import RESOURCES, ROOT, Accounting, Association, Quality
from gridsched.systems.slurm.conf import SlurmConfiguration, read_configuration
from gridsched.systems.slurm.controller import Cadence, Controller, FirstCome, Outcome
from gridsched.systems.slurm.jobs import ClusterJobs, cluster_jobs
from gridsched.systems.slurm.minutes import MinuteRules
from gridsched.systems.slurm.preempting import MODES, PreemptionRules, PreemptMode, PreemptType
from gridsched.systems.slurm.priority import (
    Multifactor,
    Priorities,
    PriorityWeights,
    ResetPeriod,
    Resets,
    Shares,
)
from gridsched.systems.slurm.rules import preemption_variables, preemption_violations
from gridsched.systems.slurm.runs import SlurmRun, node_use, run_of
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

SchedulerType = Literal["backfill", "builtin"]
SelectType = Literal["cons_tres", "linear"]
PriorityType = Literal["multifactor", "basic"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Slurm(Scheduler):
    """Slurm with the parameters of slurm.conf, by their names there in small letters, with Slurm's defaults.

    Parameters
    ----------
    scheduler_type : {"backfill", "builtin"}
        SchedulerType: the main loop and the backfill scheduler, or the main loop alone.
    select_type : {"cons_tres", "linear"}
        SelectType: jobs share nodes, or get whole ones.
    memory_is_consumed : bool
        Whether jobs that share nodes are given memory (CR_Core_Memory), or only cores and GPUs.
    sched_interval : int
        Seconds between passes of the main loop over the whole queue.
    batch_sched_delay : int
        Seconds from one pass of the main loop to the next at least, where jobs came or ended.
    default_queue_depth : int
        Jobs that a pass of the main loop looks at, but for those over the whole queue; 0 for all.
    partition_job_depth : int
        Jobs of each partition that a pass of the main loop looks at; 0 for all.
    sched_max_job_start : int
        Jobs that a pass of the main loop starts at most; 0 for any number.
    bf_interval : int
        Seconds between passes of the backfill scheduler.
    bf_window : int
        Minutes that the backfill scheduler plans ahead.
    bf_resolution : int
        Seconds to which plans are rounded.
    bf_max_job_test : int
        Jobs that a backfill pass tests; 0 for all.
    bf_max_job_user, bf_max_job_part : int
        Jobs of each user, and of each partition, that a backfill pass tests; 0 for all.
    bf_max_job_array_resv : int
        Tasks of each job array that get a plan in a backfill pass, 1 at least.
    bf_max_job_start : int
        Jobs that a backfill pass starts at most; 0 for any number.
    bf_min_prio_reserve : int
        Jobs of a lower priority may be backfilled, but get no plan.
    bf_min_age_reserve : int
        Jobs that have waited fewer seconds may be backfilled, but get no plan.
    kill_wait : int
        KillWait: seconds that a job is thought to go on after its time limit.
    preempt_type : {"none", "partition_prio", "qos"}
        PreemptType: jobs of partitions with a higher priority (PriorityTier) preempt those of lower ones, or
        those of a quality of service others that it names (`accounting`).
    preempt_mode : {"off", "requeue", "cancel", "suspend"}
        PreemptMode: the treatment of a job that is preempted. It waits again and starts again, is lost, or
        keeps its nodes and memory and goes on when its cores are free again.
    preempt_exempt_time : int
        PreemptExemptTime: seconds that a job runs at least before it is requeued or cancelled.
    preempt_youngest_first, preempt_strict_order : bool
        PreemptParameters: the youngest job is preempted first, not the one of the lowest partition or quality
        of service and the fewest nodes; or that order is kept where another one would do with fewer jobs.
    preempt_reorder_count : int
        PreemptParameters: how often that order is looked for.
    message_timeout : int
        MessageTimeout: seconds that, with `kill_wait`, a job waits before it has others preempted once more.
    requeue_delay : int
        Seconds for which a requeued job is held (cred_expire of AuthInfo).
    priority_type : {"multifactor", "basic"}
        PriorityType: a sum of factors times weights, or first come first served.
    priority_weight_age, priority_weight_fairshare, priority_weight_job_size : int
        Weights of the time that a job has waited, of the fair share of its user, and of its size.
    priority_weight_partition, priority_weight_qos : int
        Weights of the factors of its partition and of its quality of service.
    priority_weight_tres : mapping of str to float, optional
        Weights of what it asks for: "cpu", "node", "mem", "gres/gpu".
    priority_max_age : int
        Seconds of waiting after which the factor of age is 1.
    priority_favor_small : bool
        Whether the factor of size is large for small jobs.
    small_relative_to_time : bool
        PriorityFlags=SMALL_RELATIVE_TO_TIME: size by time limit.
    priority_decay_half_life : int
        Seconds after which what was used counts half; 0 for never.
    priority_calc_period : int
        Seconds after which priorities are recalculated.
    fair_tree : bool
        Fair Tree, else the classic formula (PriorityFlags=NO_FAIR_TREE).
    fair_share_dampening_factor : int
        Of the classic formula.
    priority_usage_reset_period : {"none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"}
        PriorityUsageResetPeriod: when what was used is forgotten, by the calendar of the workload
        (`unix_start_time`, `time_zone`); without one second 0 is the beginning of Thursday, 1970-01-01.
    enforce_limits : bool
        Whether AccountingStorageEnforce has limits. Without them Slurm counts what jobs use only while they
        run when priorities are calculated.
    safe_limits : bool
        Whether AccountingStorageEnforce has safe: a job starts only if its group has minutes (GrpTRESMins)
        for it to run to its time limit. Otherwise jobs are killed when their group has used up its minutes.
    account_shares, user_shares : mapping of int to int, optional
        Raw shares of accounts and users by number, 1 for the others. Accounts are the groups of the workload.
    partition_factors : mapping of int to int, optional
        PriorityJobFactor of partitions by number; by default their priority.
    partition_preempt_modes : mapping of int to {"off", "requeue", "cancel", "suspend"}, optional
        PreemptMode of partitions by number, where it is another one.
    accounting : Accounting, optional
        Accounts, users and qualities of service with shares, priorities and limits, instead of these shares.
        Their names are their numbers in the workload: its groups, users and queues. Limits count where
        `enforce_limits` says so.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range.
    """

    scheduler_type: SchedulerType = "backfill"
    select_type: SelectType = "cons_tres"
    memory_is_consumed: bool = False
    sched_interval: int = 60
    batch_sched_delay: int = 3
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_max_job_start: int = 0
    bf_interval: int = 30
    bf_window: int = 1440
    bf_resolution: int = 60
    bf_max_job_test: int = 500
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_array_resv: int = 20
    bf_max_job_start: int = 0
    bf_min_prio_reserve: int = 0
    bf_min_age_reserve: int = 0
    kill_wait: int = 30
    preempt_type: PreemptType = "none"
    preempt_mode: PreemptMode = "off"
    preempt_exempt_time: int = 0
    preempt_youngest_first: bool = False
    preempt_strict_order: bool = False
    preempt_reorder_count: int = 1
    message_timeout: int = 10
    requeue_delay: int = 120
    priority_type: PriorityType = "multifactor"
    priority_weight_age: int = 0
    priority_weight_fairshare: int = 0
    priority_weight_job_size: int = 0
    priority_weight_partition: int = 0
    priority_weight_qos: int = 0
    priority_weight_tres: Mapping[str, float] | None = None
    priority_max_age: int = 7 * 86400
    priority_favor_small: bool = False
    small_relative_to_time: bool = False
    priority_decay_half_life: int = 7 * 86400
    priority_calc_period: int = 300
    fair_tree: bool = True
    fair_share_dampening_factor: int = 1
    priority_usage_reset_period: ResetPeriod = "none"
    enforce_limits: bool = False
    safe_limits: bool = False
    account_shares: Mapping[int, int] | None = None
    user_shares: Mapping[int, int] | None = None
    partition_factors: Mapping[int, int] | None = None
    partition_preempt_modes: Mapping[int, PreemptMode] | None = None
    accounting: Accounting | None = None

    system: ClassVar[str] = "slurm"
    knows: ClassVar[str] = "its own cluster, its nodes included"
    not_in_studies: ClassVar[frozenset[str]] = frozenset(
        {
            "priority_weight_tres",
            "account_shares",
            "user_shares",
            "partition_factors",
            "partition_preempt_modes",
            "accounting",
        }
    )
    cannot: ClassVar[Mapping[str, str]] = {
        "predictions": "Slurm is the local scheduler",
        "local policies": "Slurm is the local scheduler",
        "overrun": "Slurm expects a job that exceeds its limit to end immediately",
        "passes": "passes follow Slurm's own timing",
        "message delay": "no messages are sent",
        "migration delay": "jobs do not move",
        "deadlines": "not built yet: --deadline is not modelled",
        "reservations": "not built yet: jobs start as soon as they can",
        "membership": "a cluster on its own belongs to no grid",
        "changes": "the nodes of a cluster stay the same",
        "own functions": "the rules are Slurm's",
    }
    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "preemption": {"preempt_type": "partition_prio", "preempt_mode": "requeue"}
    }

    def __post_init__(self) -> None:
        for key, words in (
            ("scheduler_type", get_args(SchedulerType)),
            ("select_type", get_args(SelectType)),
            ("priority_type", get_args(PriorityType)),
            ("preempt_type", get_args(PreemptType)),
            ("preempt_mode", get_args(PreemptMode)),
            ("priority_usage_reset_period", get_args(ResetPeriod)),
        ):
            if getattr(self, key) not in words:
                raise ConfigurationError(f"{key} is {getattr(self, key)!r}; use one of {', '.join(words)}")
        if (self.preempt_type == "none") != (self.preempt_mode == "off"):
            raise ConfigurationError(
                f"preempt_type is {self.preempt_type!r} and preempt_mode is {self.preempt_mode!r}, which "
                "contradict each other; set both, or neither"
            )
        if self.preempt_type == "qos" and self.accounting is None:
            raise ConfigurationError(
                "preempt_type is 'qos', and nothing says which quality of service preempts which; give "
                "accounting (--sacctmgr and --qos)"
            )
        least_one = {"sched_interval", "bf_interval", "bf_window", "bf_resolution", "priority_calc_period"}
        least_one |= {"priority_max_age", "fair_share_dampening_factor"}
        for key, value in vars(self).items():
            if isinstance(value, int) and value < (1 if key in least_one else 0):
                raise ConfigurationError(
                    f"{key} is {value}; give a whole number from {1 if key in least_one else 0} on"
                )
        for name in self.priority_weight_tres or ():
            if name not in RESOURCES:
                raise ConfigurationError(
                    f"priority_weight_tres names {name!r}; use some of {', '.join(RESOURCES)}"
                )

    @classmethod
    def from_configuration(cls, configuration: SlurmConfiguration | str) -> Self:
        """The scheduler of a slurm.conf, or of what `scontrol show config` printed.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        if not isinstance(configuration, SlurmConfiguration):
            configuration = read_configuration(configuration)
        return cls(**configuration.parameters)

    @property
    def label(self) -> str:
        """Name in results."""
        return "slurm" if self.scheduler_type == "backfill" else "slurm-builtin"

    @property
    def cadence(self) -> Cadence:
        """When the controller works, and how far it looks."""
        names = [name for name in Cadence.__dataclass_fields__ if name != "backfill"]
        return Cadence(
            backfill=self.scheduler_type == "backfill", **{name: getattr(self, name) for name in names}
        )

    @property
    def weights(self) -> PriorityWeights:
        """Parameters of priority/multifactor."""
        return PriorityWeights(
            age=self.priority_weight_age,
            fairshare=self.priority_weight_fairshare,
            job_size=self.priority_weight_job_size,
            partition=self.priority_weight_partition,
            qos=self.priority_weight_qos,
            tres={RESOURCES[name]: weight for name, weight in (self.priority_weight_tres or {}).items()},
            max_age=self.priority_max_age,
            favor_small=self.priority_favor_small,
            decay_half_life=self.priority_decay_half_life,
            calc_period=self.priority_calc_period,
            fair_tree=self.fair_tree,
            small_relative_to_time=self.small_relative_to_time,
            damping=self.fair_share_dampening_factor,
            count_ended=self.enforce_limits,
        )

    @property
    def draws(self) -> bool:
        """Phases of its periodic work."""
        return True

    def schedule(self, submission: Submission) -> Schedule:
        """Let the controller of each cluster work."""
        submission = submission.at_home()
        workload, clusters, number = submission.workload, submission.clusters, len(submission)
        rng = np.random.default_rng(submission.seed)
        runs: list[tuple[int, Cluster, Integers, SlurmRun]] = []
        for index, cluster in enumerate(clusters):
            own = np.flatnonzero(submission.home == index)
            phase = rng.random(3)
            if len(own):
                runs.append((index, cluster, own, self._run(submission, cluster, own, index, phase)))
        columns = {name: np.full(number, NO_TIME, np.int64) for name in ("start", "end", "by")}
        columns["fate"] = np.full(number, int(Fate.REJECTED), np.int64)
        columns |= {name: np.zeros(number, np.int64) for name in ("eligible", "killed", "extra")}
        reasons: dict[str, int] = {}
        shared = sum(run.jobs.shared_gpus for *_, run in runs)
        for _, _, own, run in runs:
            for name, column in columns.items():
                column[own] = run.end_time if name == "end" else getattr(run.outcome, name)
            reasons = add_counts(reasons, run.jobs.reasons)
        uses = [(index, cluster, own, node_use(run)) for index, cluster, own, run in runs]
        segments: RecordArray = np.concatenate([run.segments for *_, run in runs])
        segments["job"] = np.concatenate([own[run.segments["job"]] for *_, own, run in runs])
        size = np.asarray(workload.processors, np.int64)
        told, counted = outcome_variables(
            workload,
            JobOutcome(
                fate=columns["fate"],
                killed=columns["killed"],
                extra_work=columns["extra"] * size,
                eligible_time=columns["eligible"],
            ),
        )
        return Schedule(
            start_time=columns["start"],
            end_time=columns["end"],
            run_time=submission.run_time,
            estimate=submission.estimate,
            segments=segments,
            variables={
                **of_tasks(size[segments["job"]]),
                **node_variables(uses, clusters, number),
                **told,
                **preemption_variables(
                    [(own, run.jobs.tickets.preemption, run.outcome) for _, _, own, run in runs], number
                ),
                "started_by": (
                    "job",
                    columns["by"],
                    "0 if the main loop started it, 1 if the backfill scheduler, else -1",
                    "1",
                ),
            },
            counters={
                **counted,
                "backfilled": int((columns["by"] == 1).sum()),
                **self._preempted([run.outcome for *_, run in runs]),
                **self._timed_out([run for *_, run in runs]),
                **({"whole GPUs for parts": shared} if shared else {}),
                **{f"rejected: {reason}": count for reason, count in reasons.items()},
            },
        )

    def _preempted(self, outcomes: Sequence[Outcome]) -> dict[str, int]:
        """How often jobs were preempted, by their outcomes; nothing without preemption."""
        if self.preempt_type == "none":
            return {}
        modes = np.concatenate([outcome.preemptions["mode"] for outcome in outcomes])
        names = {"requeue": "requeued", "cancel": "cancelled", "suspend": "suspended"}
        return {f"preempted: {name}": int((modes == MODES.index(mode)).sum()) for mode, name in names.items()}

    @staticmethod
    def _timed_out(runs: Sequence[SlurmRun]) -> dict[str, int]:
        """How many jobs were killed since minutes were used up; nothing without limits of minutes."""
        if all(run.jobs.keeps is None for run in runs):
            return {}
        return {"killed: minutes used up": sum(run.outcome.timed_out for run in runs)}

    @classmethod
    def rules(cls, run: xr.Dataset) -> list[str]:
        """Who preempted whom had to be allowed to, and who was preempted to be treated as is said."""
        return preemption_violations(run)

    def _run(
        self, submission: Submission, cluster: Cluster, own: Integers, index: int, phase: NDArray[np.float64]
    ) -> SlurmRun:
        """Run the jobs of one cluster."""
        jobs = cluster_jobs(
            submission,
            own,
            cluster,
            whole=self.select_type == "linear" or cluster.node_exclusive,
            memory_is_consumed=self.memory_is_consumed or self.select_type == "linear",
            accounting=self.accounting if self.enforce_limits else None,
            safe=self.safe_limits,
        )
        if self.partition_factors is not None:
            factor = [self.partition_factors.get(each.number, 1) for each in cluster.partitions] or [1]
            jobs = replace(jobs, factor=np.array(factor, np.int64))
        workload = submission.workload.select(own)
        resets = Resets(
            period=self.priority_usage_reset_period,
            origin=workload.unix_start_time or 0,
            zone=workload.time_zone or "UTC",
        )
        priorities = self._priorities(workload, jobs, resets)
        rules = self._preemption(workload, jobs, cluster)
        minutes = None
        if jobs.keeps is not None:
            minutes = self.minute_rules(
                self._usage_factors(workload), jobs.keeps, int(workload.submit_time[0]), resets
            )
        jobs = replace(jobs, tickets=replace(jobs.tickets, preemption=rules, minutes=minutes))
        controller = Controller(jobs.machine, jobs.tickets, self.cadence, priorities)
        return run_of(jobs, controller.work(phase.tolist()), index)

    def minute_rules(
        self, factor: NDArray[np.float64], keeps: NDArray[np.bool_], begin: int, resets: Resets
    ) -> MinuteRules:
        """How minutes of groups are counted; see `MinuteRules`."""
        return MinuteRules(
            factor=factor,
            keeps=keeps,
            safe=self.safe_limits,
            counts=self.priority_type == "multifactor",
            period=self.priority_calc_period,
            half_life=self.priority_decay_half_life,
            begin=begin,
            resets=resets,
        )

    def _usage_factors(self, workload: Workload) -> NDArray[np.float64]:
        """UsageFactor of the quality of service of each job."""
        qualities = {} if self.accounting is None else self.accounting.qualities
        return np.array(
            [qualities.get(str(queue), _NO_QUALITY).usage_factor for queue in workload.queue.tolist()]
        )

    def _preemption(self, workload: Workload, jobs: ClusterJobs, cluster: Cluster) -> PreemptionRules | None:
        """Who preempts whom among the jobs of a cluster; none without preemption."""
        partition = jobs.tickets.jobs["partition"]
        partitions = [each.number for each in cluster.partitions] or [0]
        named = self.partition_preempt_modes or {}
        modes = [named.get(number, self.preempt_mode) for number in partitions]
        return self.preemption_rules(
            partition.astype(np.int64),
            jobs.machine.tier,
            modes,
            [str(each) for each in workload.queue.tolist()],
        )

    def preemption_rules(
        self,
        partition: Integers,
        tier: Integers,
        modes: Sequence[PreemptMode],
        quality: Sequence[str],
    ) -> PreemptionRules | None:
        """Who preempts whom; none without preemption.

        Parameters
        ----------
        partition : int64[n]
            Place of the partition of each job.
        tier : int64[p]
            PriorityTier of each partition.
        modes : sequence of str
            PreemptMode of each partition.
        quality : sequence of str
            Name of the quality of service of each job.
        """
        if self.preempt_type == "none":
            return None
        exempt = np.full(len(partition), self.preempt_exempt_time, np.int64)
        if self.preempt_type == "partition_prio":
            group, level = partition, tier[partition]
            may = (tier[:, None] > tier[None, :]).astype(np.uint8)
            mode = np.array([MODES.index(each) for each in modes], np.int64)[partition]
        else:
            qualities = {} if self.accounting is None else dict(self.accounting.qualities)
            names = [*qualities, *sorted(set(quality) - set(qualities))]
            known = [qualities.get(name, _NO_QUALITY) for name in names]
            group = np.array([names.index(name) for name in quality], np.int64)
            level = np.minimum(np.array([each.priority for each in known], np.int64), 0xFFFF)[group]
            may = np.array([[other in each.preempts for other in names] for each in known], np.uint8)
            np.fill_diagonal(may, 0)
            own = [each.preempt_mode or self.preempt_mode for each in known]
            mode = np.array([MODES.index(each) for each in own], np.int64)[group]
            times = [
                self.preempt_exempt_time if each.preempt_exempt_time is None else each.preempt_exempt_time
                for each in known
            ]
            exempt = np.array(times, np.int64)[group]
        return PreemptionRules(
            group=group,
            may=may,
            level=level,
            mode=mode,
            exempt=exempt,
            linear=self.select_type == "linear",
            youngest_first=self.preempt_youngest_first,
            strict_order=self.preempt_strict_order,
            reorder_count=self.preempt_reorder_count,
            patience=self.kill_wait + self.message_timeout,
            hold=self.requeue_delay,
        )

    def _priorities(self, workload: Workload, jobs: ClusterJobs, resets: Resets) -> Priorities:
        """Where the priorities of the jobs of a cluster come from."""
        weights, records, number = self.weights, jobs.tickets.jobs, len(workload)
        weighed = (weights.age, weights.fairshare, weights.job_size, weights.partition, weights.qos)
        nice = nice_of(workload)
        if self.priority_type == "basic" or not (any(weighed) or weights.tres or nice.any()):
            return FirstCome(number, nice=nice)
        account, user = np.asarray(workload.group, np.int64), np.asarray(workload.user, np.int64)
        if self.accounting is None:
            tree = _tree(account, user, self.account_shares or {}, self.user_shares or {})
            qualities = {}
        else:
            tree = _with_strangers(self.accounting, account, user)
            qualities = dict(self.accounting.qualities)
        shares = Shares(tree, fair_tree=self.fair_tree, damping=self.fair_share_dampening_factor)
        place = [shares.place[str(a), str(u)] for a, u in zip(account.tolist(), user.tolist(), strict=True)]
        highest = max((each.priority for each in qualities.values()), default=0)
        of_jobs = [qualities.get(str(queue), _NO_QUALITY) for queue in workload.queue.tolist()]
        nodes = jobs.machine.nodes
        partition = np.asarray(jobs.factor, np.float64)[records["partition"]]
        return Multifactor(
            weights,
            records,
            place=np.array(place, np.int64),
            quality=np.array([each.priority for each in of_jobs], np.float64) / max(highest, 1),
            partition=partition / max(float(jobs.factor.max(initial=0)), 1.0),
            nice=nice,
            early_processors=records["nodes"] if self.select_type == "linear" else records["processors"],
            nodes=nodes,
            shares=shares,
            unit=1,
            begin=int(workload.submit_time[0]),
            usage_factor=self._usage_factors(workload),
            resets=resets,
        )


_NO_QUALITY = Quality(name="")


def nice_of(workload: Workload) -> Integers:
    """Nice value of each job, 0 where it has none."""
    if workload.nice is None:
        return np.zeros(len(workload), np.int64)
    given = np.asarray(workload.nice, np.int64)
    return np.where(given == UNKNOWN, 0, given)


def _with_strangers(accounting: Accounting, account: Integers, user: Integers) -> Accounting:
    """The tree, and those who have jobs and are not in it: accounts below the root, users in accounts."""
    made = {(each.account, each.user): each for each in accounting.associations}
    for a, u in sorted(set(zip(account.tolist(), user.tolist(), strict=True))):
        own = Association(account=str(a), user=str(u), parent=str(a))
        made.setdefault((str(a), ""), Association(account=str(a), parent=ROOT))
        made.setdefault((str(a), str(u)), own)
    return replace(accounting, associations=tuple(made.values()))


def _tree(
    account: Integers, user: Integers, account_shares: Mapping[int, int], user_shares: Mapping[int, int]
) -> Accounting:
    """A tree of the accounts that there are, and of the users in them."""
    made = [Association(account=ROOT)]
    for number in np.unique(account).tolist():
        made.append(Association(account=str(number), parent=ROOT, shares=account_shares.get(number, 1)))
        for member in np.unique(user[account == number]).tolist():
            made.append(
                Association(
                    account=str(number),
                    user=str(member),
                    parent=str(number),
                    shares=user_shares.get(member, 1),
                )
            )
    return Accounting(associations=tuple(made))


SCHEDULER = Slurm

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"slurm": Slurm}
"""Slurm with its default parameters."""
