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
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import RecordArray
from gridsched.platform import Cluster
from gridsched.policies.local import Conventions
from gridsched.policies.online import Online
from gridsched.results import NO_TIME, Schedule, of_tasks
from gridsched.submission import Submission
from gridsched.systems.base import QueueReason, Scheduler
from gridsched.systems.job_outcomes import JobOutcome, outcome_variables
from gridsched.systems.node_records import node_variables
from gridsched.systems.slurm.accounts import ROOT, Accounting, Association, Owner, usage_factors
from gridsched.systems.slurm.conf import SlurmConfiguration, read_configuration
from gridsched.systems.slurm.controller import Controller, Outcome
from gridsched.systems.slurm.jobs import WHY_REJECTED, ClusterJobs, cluster_jobs, owners_of
from gridsched.systems.slurm.minutes import MinuteRules
from gridsched.systems.slurm.online import OnlineSlurm
from gridsched.systems.slurm.parameters import SlurmParameters
from gridsched.systems.slurm.preempting import MODES, preemption_of
from gridsched.systems.slurm.priority import FirstCome, Multifactor, Priorities, Resets
from gridsched.systems.slurm.rules import preemption_variables, preemption_violations
from gridsched.systems.slurm.runs import SlurmRun, node_use, run_of
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Slurm(SlurmParameters, Scheduler):
    """Slurm with the parameters of slurm.conf, by their names there in small letters, with Slurm's defaults.

    Parameters
    ----------
    **parameters
        Those of `SlurmParameters`.
    """

    system: ClassVar[str] = "slurm"
    knows: ClassVar[str] = "its own cluster, its nodes included"
    not_in_studies: ClassVar[frozenset[str]] = frozenset(
        {
            "priority_weight_tres",
            "account_shares",
            "user_shares",
            "partition_factors",
            "partition_preempt_modes",
            "partition_qualities",
            "partition_lists",
            "partition_rules",
            "billing_weights",
            "licences",
            "licence_lists",
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
    def draws(self) -> bool:
        """Phases of its periodic work."""
        return True

    def online(self, processors: int, conventions: Conventions | None = None) -> Online:
        """The controller, for a cluster of another simulator."""
        return OnlineSlurm(self, processors)

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
        rejected = {"start": NO_TIME, "end": NO_TIME, "by": NO_TIME, "fate": int(Fate.REJECTED)}
        rejected |= {"eligible": 0, "killed": 0, "extra": 0}
        columns = {name: np.full(number, value, np.int64) for name, value in rejected.items()}
        reasons: dict[str, int] = {}
        shared = sum(run.jobs.shared_gpus for *_, run in runs)
        for _, _, own, run in runs:
            for name, column in columns.items():
                column[own] = run.end_time if name == "end" else getattr(run.outcome, name)
            reasons = add_counts(reasons, run.jobs.reasons)
        uses = [(index, cluster, own, node_use(run, cluster)) for index, cluster, own, run in runs]
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
                    [(own, run.jobs.tickets.preemption, run.outcome) for _, _, own, run in runs],
                    number,
                    self.requeue_delay,
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
        jobs, owners, priorities = self.prepared(submission, cluster, own)
        controller = self.controller(jobs, owners, priorities)
        return run_of(jobs, controller.work(phase.tolist()), index)

    def rejects(self, submission: Submission, cluster: Cluster) -> dict[str, NDArray[np.bool_]]:
        """Jobs of one cluster that are rejected when they are submitted, by the reason."""
        submission = submission.at_home()
        jobs = cluster_jobs(submission, np.arange(len(submission)), cluster, parameters=self)
        return {text: jobs.rejected == k for k, text in enumerate(WHY_REJECTED, 1)}

    def prepared(
        self, submission: Submission, cluster: Cluster, own: Integers
    ) -> tuple[ClusterJobs, list[Owner], Priorities]:
        """The jobs of one cluster, who has them, and their priorities."""
        jobs = cluster_jobs(submission, own, cluster, parameters=self)
        of = jobs.tickets.jobs["of"]
        workload = submission.workload.select(own)
        by_job = owners_of(workload)
        owners = [by_job[job] for job in of.tolist()]
        resets = Resets(
            period=self.priority_usage_reset_period,
            origin=workload.unix_start_time or 0,
            zone=workload.time_zone or "UTC",
        )
        modes = self.partition_preempt_modes or {}
        preemption = preemption_of(
            self,
            len(jobs.machine.nodes),
            jobs.tickets.jobs["partition"],
            jobs.machine.tier,
            [modes.get(each.number, self.preempt_mode) for each in cluster.partitions] or [self.preempt_mode],
            [name for *_, name in owners],
        )
        minutes = None
        if jobs.keeps is not None:
            minutes = MinuteRules(
                factor=usage_factors(self.accounting, owners),
                keeps=jobs.keeps,
                begin=int(workload.submit_time[0]),
                resets=resets,
            )
        jobs = replace(jobs, tickets=replace(jobs.tickets, preemption=preemption, minutes=minutes))
        priorities = self._priorities(workload, cluster, owners, jobs, resets)
        return jobs, owners, priorities

    def controller(self, jobs: ClusterJobs, owners: Sequence[Owner], priorities: Priorities) -> Controller:
        """The controller of the jobs of a cluster."""
        return Controller(jobs.machine, jobs.tickets, self, priorities)

    def schedule_watched(self, submission: Submission, job: int) -> tuple[Schedule, list[QueueReason]]:
        """The schedule of one cluster, with the reasons of a job as `squeue` shows them."""
        from gridsched.systems.slurm.reasons import watched

        return watched(self, submission, job)

    def _priorities(
        self,
        workload: Workload,
        cluster: Cluster,
        owners: Sequence[Owner],
        jobs: ClusterJobs,
        resets: Resets,
    ) -> Priorities:
        """Where the priorities of the jobs of a cluster come from."""
        records = jobs.tickets.jobs
        nice = nice_of(workload)
        weighed = any(getattr(self, name) for name in vars(self) if name.startswith("priority_weight_"))
        if self.priority_type == "basic" or not (weighed or nice.any()):
            return FirstCome(records["of"], nice=nice, array=records["array"])
        known = self.partition_factors
        factor = [
            each.priority if known is None else known.get(each.number, 1) for each in cluster.partitions
        ]
        return Multifactor(
            self,
            records,
            owners,
            tree_of(self, owners),
            factor=np.array(factor or [1], np.int64),
            nice=nice[records["of"]],
            early_processors=records["nodes"] if self.select_type == "linear" else records["processors"],
            nodes=jobs.machine.nodes,
            reach=jobs.machine.reach,
            begin=int(workload.submit_time[0]),
            resets=resets,
            billing=[(self.billing_weights or {}).get(each.number, {}) for each in cluster.partitions],
            mebibyte=1024,
        )


def nice_of(workload: Workload) -> Integers:
    """Nice value of each job, 0 where it has none."""
    if workload.nice is None:
        return np.zeros(len(workload), np.int64)
    given = np.asarray(workload.nice, np.int64)
    return np.where(given == UNKNOWN, 0, given)


def tree_of(parameters: SlurmParameters, owners: Sequence[Owner]) -> Accounting:
    """The accounting, with those who have jobs and are not in it: accounts below the root, users in them."""
    known, accounts, users = parameters.accounting, parameters.account_shares, parameters.user_shares
    if known is not None:
        accounts = users = None
    known = known or Accounting()
    made = {(each.account, each.user): each for each in known.associations}
    for account, user in sorted({(int(a), int(u)) for a, u, _ in owners}):
        above, below = str(account), str(user)
        own = Association(account=above, parent=ROOT, shares=(accounts or {}).get(account, 1))
        made.setdefault((above, ""), own)
        own = Association(account=above, user=below, parent=above, shares=(users or {}).get(user, 1))
        made.setdefault((above, below), own)
    return replace(known, associations=tuple(made.values()))


SCHEDULER = Slurm

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"slurm": Slurm}
"""Slurm with its default parameters."""
