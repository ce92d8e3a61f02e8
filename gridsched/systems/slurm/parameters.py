"""Parameters of the scheduler `slurm`: those of slurm.conf, and what is known of accounts and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gridsched.errors import ConfigurationError
from gridsched.systems.base import check_choices
from gridsched.systems.slurm.accounts import RESOURCES, Accounting

SchedulerType = Literal["backfill", "builtin"]
SelectType = Literal["cons_tres", "linear"]
PriorityType = Literal["multifactor", "basic"]
PreemptType = Literal["none", "partition_prio", "qos"]
PreemptMode = Literal["off", "requeue", "cancel", "suspend"]
Version = Literal["22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"]
ResetPeriod = Literal["none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"]


def is_since(version: Version, release: Version) -> bool:
    """Whether a version is a release or a later one."""
    known = get_args(Version)
    return known.index(version) >= known.index(release)


@dataclass(frozen=True, kw_only=True)
class PartitionRules:
    """What the jobs of a partition must be, and get.

    Parameters
    ----------
    users : frozenset of str, optional
        Users in a group of AllowGroups; by default all.
    accounts, qualities : frozenset of str, optional
        AllowAccounts and AllowQos: accounts and qualities of service of its jobs; by default all.
    no_accounts, no_qualities : frozenset of str
        DenyAccounts and DenyQos: those that its jobs may not have; without effect beside those above.
    least_nodes : int
        MinNodes of a job.
    exclusive : bool
        Whether its jobs get whole nodes (OverSubscribe=EXCLUSIVE).
    """

    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    qualities: frozenset[str] | None = None
    no_accounts: frozenset[str] = frozenset()
    no_qualities: frozenset[str] = frozenset()
    least_nodes: int = 0
    exclusive: bool = False

    def admits(self, account: str, user: str, quality: str) -> bool:
        """Whether jobs of an account, a user and a quality of service may run there."""
        return (
            _is_among(user, self.users, frozenset())
            and _is_among(account, self.accounts, self.no_accounts)
            and _is_among(quality, self.qualities, self.no_qualities)
        )


def _is_among(name: str, allowed: frozenset[str] | None, denied: frozenset[str]) -> bool:
    return name in allowed if allowed is not None else name not in denied


@dataclass(frozen=True, kw_only=True)
class SlurmParameters:
    """Parameters of slurm.conf, by their names there in small letters, with Slurm's defaults.

    Parameters
    ----------
    version : {"22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"}
        Release whose rules hold, see docs/slurm-reference.md for what differs.
    scheduler_type : {"backfill", "builtin"}
        SchedulerType: the main loop and the backfill scheduler, or the main loop alone.
    select_type : {"cons_tres", "linear"}
        SelectType: jobs share nodes, or get whole ones.
    memory_is_consumed : bool
        Whether jobs that share nodes are given memory (CR_Core_Memory), or only cores and GPUs.
    sched_interval : int
        Seconds between passes of the main loop over the whole queue.
    sched_min_interval : int
        Microseconds from one pass of the main loop to the next at least.
    batch_sched_delay : int
        Seconds from one pass of the main loop to the next at least, where jobs came or ended.
    default_queue_depth : int
        Jobs that a pass of the main loop looks at beside a first one, but for passes over the whole queue.
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
        Jobs that have waited fewer seconds may be backfilled, but get no plan, and close no partition.
    bf_one_resv_per_job : bool
        Whether a job that may run in several partitions gets a plan in the first of them only.
    bf_node_space_size : int
        Stretches of time into which plans may divide a pass, before it ends; 0 for `bf_max_job_test`.
    bf_time_per_job : int
        Microseconds that a backfill pass takes for each job it tests: mean cycle by try depth of `sdiag`.
        Passes take no time by default, and the following parameters have no effect then.
    bf_max_time : int
        Seconds after which a backfill pass ends; 0 for `bf_interval`.
    bf_yield_interval, bf_yield_sleep : int
        Microseconds after which a backfill pass lets others work, and for how long.
    bf_continue : bool
        Whether a backfill pass goes on then if something has changed.
    kill_wait : int
        KillWait: seconds that a job is thought to go on after its time limit.
    preempt_type : {"none", "partition_prio", "qos"}
        PreemptType: jobs of partitions with a higher priority (PriorityTier) preempt those of lower ones, or
        those of a quality of service others that it names (`accounting`).
    preempt_mode : {"off", "requeue", "cancel", "suspend"}
        PreemptMode: the treatment of a job that is preempted. It waits again and starts again, is lost, or
        keeps its nodes and memory and goes on when its cores are free again.
    preempt_exempt_time : int
        PreemptExemptTime: seconds that a job runs at least before it is requeued or cancelled, and since
        26.05 before it is suspended by jobs of another partition.
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
    max_tres : bool
        PriorityFlags=MAX_TRES: a job is billed for the largest of its weighted resources, not for their sum.
    billing_weights : mapping of int to mapping of str to float, optional
        TRESBillingWeights of partitions by number: "cpu", "node", "mem" (of a MiB) and "gres/gpu". Jobs of
        other partitions are billed for their processors.
    priority_usage_reset_period : {"none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"}
        PriorityUsageResetPeriod: when what was used is forgotten, by the calendar of the workload
        (`unix_start_time`, `time_zone`); without one second 0 is the beginning of Thursday, 1970-01-01.
    enforce_limits : bool
        Whether AccountingStorageEnforce has limits. Without them Slurm counts what jobs use only while they
        run when priorities are calculated.
    safe_limits : bool
        Whether AccountingStorageEnforce has safe: a job starts only if its group has minutes (GrpTRESMins)
        for it to run to its time limit. Otherwise jobs are killed when their group has used up its minutes.
    every_partition_admits : bool
        Whether EnforcePartLimits is ALL: a job that names partitions is rejected if one of them rejects it.
    account_shares, user_shares : mapping of int to int, optional
        Raw shares of accounts and users by number, 1 for the others. Accounts are the groups of the workload.
    partition_factors : mapping of int to int, optional
        PriorityJobFactor of partitions by number; by default their priority.
    partition_preempt_modes : mapping of int to {"off", "requeue", "cancel", "suspend"}, optional
        PreemptMode of partitions by number, where it is another one.
    partition_qualities : mapping of int to str, optional
        Quality of service of partitions by number, whose limits their jobs are held to (QOS).
    partition_lists : mapping of int to sequence of int, optional
        Numbers of partitions, by the number of their list in the column `partitions` of the workload: a job
        runs in that in which it can start first, by priority in the order of the list.
    partition_rules : mapping of int to PartitionRules, optional
        What jobs of partitions must be and get, by number. Names of accounts and qualities of service are
        their numbers in the workload.
    licences : mapping of str to int, optional
        How many of each licence there are (Licenses).
    licence_lists : mapping of int to mapping of str to int, optional
        Licences of jobs, by the number of their list in the column `licences` of the workload.
    accounting : Accounting, optional
        Accounts, users and qualities of service with shares, priorities and limits, instead of these shares.
        Their names are their numbers in the workload: its groups, users and queues. Limits count where
        `enforce_limits` says so.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range.
    """

    version: Version = "22.05"
    scheduler_type: SchedulerType = "backfill"
    select_type: SelectType = "cons_tres"
    memory_is_consumed: bool = False
    sched_interval: int = 60
    sched_min_interval: int = 2
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
    bf_one_resv_per_job: bool = False
    bf_node_space_size: int = 0
    bf_time_per_job: int = 0
    bf_max_time: int = 0
    bf_yield_interval: int = 2_000_000
    bf_yield_sleep: int = 500_000
    bf_continue: bool = False
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
    max_tres: bool = False
    billing_weights: Mapping[int, Mapping[str, float]] | None = None
    priority_usage_reset_period: ResetPeriod = "none"
    enforce_limits: bool = False
    safe_limits: bool = False
    every_partition_admits: bool = False
    account_shares: Mapping[int, int] | None = None
    user_shares: Mapping[int, int] | None = None
    partition_factors: Mapping[int, int] | None = None
    partition_preempt_modes: Mapping[int, PreemptMode] | None = None
    partition_qualities: Mapping[int, str] | None = None
    partition_lists: Mapping[int, Sequence[int]] | None = None
    partition_rules: Mapping[int, PartitionRules] | None = None
    licences: Mapping[str, int] | None = None
    licence_lists: Mapping[int, Mapping[str, int]] | None = None
    accounting: Accounting | None = None

    def is_since(self, release: Version) -> bool:
        """Whether rules hold that came with a release."""
        return is_since(self.version, release)

    def __post_init__(self) -> None:
        check_choices(self)
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
