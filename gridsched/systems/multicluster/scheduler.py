"""Simulate parallel jobs with deadlines on a multicluster: MUSCLE or a rival, and TITAN on each cluster.

Jobs are collected, and from time to time handed to the clusters: a *round* (step 1 of algorithm 4 in He et
al., see `muscle`). Collecting goes on while the clusters still have enough to do: while
the expected makespan of the jobs that have not started, from now to the end of the last of them, exceeds a
threshold on every cluster (``any``: the first that falls to it ends the collection, as printed), or on at
least one (``all``: the last ends it). It goes on, too, until there is a job. Jobs that have not started by
the next round stay where they are; the local scheduler plans them again together with the new ones. Jobs that
have started do not move. The rivals give each job to a cluster when it arrives, but the local schedulers are
reported at the rounds, as under MUSCLE; or there is a round whenever a job arrives.

Dispatchers by name, each with TITAN on the clusters:

==================  ================================================================================
``muscle``          packs collected jobs into compositions that fill the processors of a cluster
``multicluster``    the same as muscle
``dll``             dynamic least load: each job goes to the cluster with the least load
``wrand``           weighted random: each job goes to a cluster drawn in proportion to its capacity
==================  ================================================================================

A job may enter at a cluster. It is announced to MUSCLE, after a delay if messages take time, and allocated
like all others.

Where a cluster gives whole nodes to jobs, its resources are nodes, and a job uses as many as hold its
processors, see `muscle` and `titan`.

Below MUSCLE and its rivals stands TITAN, or any local policy (see `queues`), which has a scheduling pass when
a job ends or is handed over.

At one instant jobs end and start, then resources are added and removed, then jobs arrive, then there is a
round. A job that waits on a cluster that has become too small for it is collected again. What happens where
resources fail, users give up, or jobs wait for others, is said in `interruptions`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import POLICIES, named_policy
from gridsched.results import Schedule, Variable
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices, check_values
from gridsched.systems.job_outcomes import needs_lifecycles
from gridsched.systems.multicluster.interruptions import FailureAwareRun
from gridsched.systems.multicluster.managed_cluster import (
    FitName,
    LoadName,
    MulticlusterJobs,
    SeedingName,
)
from gridsched.systems.multicluster.measures import (
    mean_performance,
    performance_balance,
    summarise_multicluster,
)
from gridsched.systems.multicluster.muscle import weights_of
from gridsched.systems.multicluster.rounds import OWN, PLANNED, Run
from gridsched.systems.multicluster.titan import Titan, Weights
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines

DispatcherName = Literal["muscle", "dll", "wrand"]
RoundsName = Literal["collected", "arrival"]
EndsName = Literal["any", "all"]
DueName = Literal["submission", "round"]

LOCALS: tuple[str, ...] = (*PLANNED, OWN, *POLICIES)
"""Values of `local`, besides easy(r)."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Multicluster(Scheduler):
    """Who allocates jobs to clusters, and how each cluster schedules them.

    Parameters
    ----------
    dispatcher : {"muscle", "dll", "wrand"}
        MUSCLE, dynamic least load, or weighted random.
    local : str
        What clusters do: ``titan``, the genetic algorithm; ``seed``, the schedule that it would start
        from, as it is; ``policy``, the local policy of each; or a local policy by name, such as ``easy``, on
        all. The job that comes first is the one that was allocated first.
    seeding : {"muscle", "arrival", "last", "none"}, optional
        What the first population of the genetic algorithm holds besides random schedules: what MUSCLE hands
        over; all jobs in order of arrival; jobs that waited already as in the last plan, and new ones behind
        them in order of arrival; nothing. By default ``muscle`` with MUSCLE, ``arrival`` without.
    rounds : {"collected", "arrival"}
        Whether jobs are collected, or handed over when they arrive.
    ends : {"any", "all"}
        Whose expected makespan ends a collection: the first that falls to the threshold, as printed, or the
        last. With ``any`` no cluster stands idle while jobs are collected, but the work that is left over on
        the others adds up: how many jobs are collected then depends on chance more than on the rate of
        arrivals. With ``all`` and no threshold all clusters begin a round without jobs that wait.
    threshold : int
        Expected makespan at which a collection ends, seconds.
    load : {"unfinished", "unstarted"}
        Which jobs of a cluster are its load in equation (6).
    fit : {"exact", "larger"}
        Which clusters DLL and WRAND choose from: those that hold the job, or, as printed, only those that are
        larger than it, if there are any.
    epsilon : {"unstarted", "unfinished"}
        Which jobs of a cluster count in equation (3), besides those that it is given.
    due_from : {"submission", "round"}
        From when on deadlines count: from the submission of a job, or from the first round that hands it
        over, so that no time is lost while it is collected. `deadline` of the run is then that of the round.
    titan : Titan
        Parameters of the genetic algorithm.
    weights : Weights or a sequence of them, optional
        What all clusters want, or each.
    deadlines : ServiceClass
        Range of the deadlines that are drawn where the jobs have none.
    announcement_delay : int
        After how long MUSCLE is notified of a job that is submitted at a cluster, seconds.
    threads : int
        Clusters whose schedules are improved beside each other; does not change the result.
    measure : bool
        Whether every round is measured on every cluster, also where nothing was planned again. Without, the
        schedule is the same and found in half the time where every arrival is a round.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range, or the values do not go together.
    """

    dispatcher: DispatcherName = "muscle"
    local: str = "titan"
    seeding: SeedingName | None = None
    rounds: RoundsName = "collected"
    ends: EndsName = "all"
    threshold: int = 0
    load: LoadName = "unfinished"
    fit: FitName = "exact"
    epsilon: LoadName = "unstarted"
    due_from: DueName = "submission"
    titan: Titan = field(default_factory=Titan)
    weights: Weights | Sequence[Weights] | None = None
    deadlines: ServiceClass = field(default_factory=ServiceClass)
    announcement_delay: int = 0
    threads: int = 1
    measure: bool = True

    system: ClassVar[str] = "multicluster"
    knows: ClassVar[str] = "all jobs collected, their deadlines, and the plans of all clusters"
    terms: ClassVar[Mapping[str, str]] = {
        "MCP": "Mean comprehensive performance: a weighted sum of time over deadlines, makespan and idle "
        "time of what clusters plan, mean over clusters and rounds; lower is better.",
        "PB": "Performance balance factor: the deviation of that sum between clusters; lower is better.",
        "workload level": "How many jobs are collected for the next round on average under MUSCLE, which "
        "sets the rate of arrivals.",
        "TITAN": "A genetic algorithm that plans the jobs of one cluster.",
    }
    not_in_studies: ClassVar[frozenset[str]] = frozenset({"threads"})
    cannot: ClassVar[Mapping[str, str]] = {
        "predictions": "its clusters use the run times with which the dispatcher plans",
        "arrays": "a cluster counts its own tasks, not those that run elsewhere",
        "nodes": "its resources are interchangeable: a composition table adds up numbers of processors",
        "passes": "jobs are handed over in rounds",
        "migration delay": "jobs that have started do not move",
        "reservations": "jobs have deadlines, no start times",
        "membership": "clusters are fixed; their processors may change",
        "preemption": "a job that has started runs to its end",
    }

    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "local policies": {"local": OWN},
        "message delay": {"announcement_delay": 60},
        "own functions": {"local": OWN},
    }

    def __post_init__(self) -> None:
        if self.seeding is None:
            object.__setattr__(self, "seeding", "muscle" if self.dispatcher == "muscle" else "arrival")
        check_choices(self)
        words = get_args(SeedingName)
        check_values(self, {"seeding": (self.seeding in words, f"one of {', '.join(words)}")})
        if self.local not in (*PLANNED, OWN):
            try:
                policy = named_policy(self.local)
            except ConfigurationError:
                raise ConfigurationError(
                    f"local is {self.local!r}; use one of {', '.join(LOCALS)}, easy(r)"
                ) from None
            if policy.predicts:
                raise ConfigurationError(
                    f"local is {self.local!r}, which predicts run times, but {self.cannot['predictions']}; "
                    f"use one of {', '.join(LOCALS)}, easy(r)"
                )
        lowest = {"threshold": 0, "announcement_delay": 0, "threads": 1}
        check_values(self, {key: (getattr(self, key) >= n, f"{n} or more") for key, n in lowest.items()})
        if self.seeding == "muscle" and self.dispatcher != "muscle":
            raise ConfigurationError(
                f"seeding is 'muscle', but dispatcher is {self.dispatcher!r}; use arrival, last or none"
            )
        if self.local == "seed" and self.seeding == "none":
            raise ConfigurationError(
                "seeding is 'none', but local is 'seed'; use another seeding or local titan"
            )

    @property
    def label(self) -> str:
        """Name in results, such as ``muscle+titan``."""
        return f"{self.dispatcher}+{self.local}"

    @property
    def information(self) -> str:
        """What the dispatcher has to know; rivals of MUSCLE do not look at deadlines and plans."""
        if self.dispatcher == "muscle":
            return self.knows
        told = {"dll": "the work left on all clusters", "wrand": "the capacities of all clusters"}
        rounds = ", and when they run out of planned work" if self.rounds == "collected" else ""
        return told[self.dispatcher] + rounds

    @property
    def draws(self) -> bool:
        """What genetic algorithms and dispatchers draw, and deadlines of jobs without."""
        return True

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs through the dispatcher and the local schedulers.

        A job takes at least 1 s. Segments have the resources (segment_resources, as bits; of nodes where the
        cluster gives whole nodes) besides. On `job`:
        deadline, job_round (-1 if rejected). On `round`: round_time, round_collected, and if measured mcp,
        pb. On (`round`, `cluster`), if measured: comprehensive_performance, round_jobs, round_makespan,
        round_idle_time, round_over_deadline, round_generations. Besides queue_mean and waiting_mean: jobs
        collected and not started, averaged from the first to the last submission; reach_processors. Where
        jobs may be killed, leave or wait for others, their outcomes (`gridsched.systems.job_outcomes`).
        """
        workload, clusters, home = submission.workload, submission.clusters, submission.home
        wanted = weights_of(self.weights, clusters)
        due = self._deadlines_of(submission)
        changes = _checked_changes(submission.platform)
        reach = _reach(clusters, changes)
        actual, expected = (
            np.stack([np.maximum(submission.seconds_at(each.speed, seconds), 1) for each in clusters])
            for seconds in (submission.run_time, submission.estimate)
        )
        accepted = np.flatnonzero(workload.processors <= reach)
        jobs = MulticlusterJobs(
            np.ascontiguousarray(workload.submit_time[accepted]),
            np.ascontiguousarray(due[accepted]),
            np.ascontiguousarray(workload.submit_time[accepted]),
            np.ascontiguousarray(workload.processors[accepted]),
            np.stack(
                [cluster.allocation(workload.processors[accepted]) // cluster.unit for cluster in clusters]
            ),
            np.ascontiguousarray(actual[:, accepted]),
            np.ascontiguousarray(expected[:, accepted]),
            np.arange(len(accepted)),
        )
        announced = jobs.submit + np.where(home[accepted] >= 0, int(self.announcement_delay), 0)
        kind = FailureAwareRun if needs_lifecycles(clusters, workload) else Run
        with ThreadPoolExecutor(self.threads) if self.threads > 1 else nullcontext() as pool:
            run = kind(self, submission, jobs, accepted, announced, wanted, changes, pool)
            run.execute()
        met = due.copy()
        met[accepted] = jobs.deadline
        return _schedule(self, submission, accepted, run, expected, met, reach)

    def _deadlines_of(self, submission: Submission) -> Integers:
        """Deadline of each job; drawn where there are none."""
        workload = submission.workload
        if workload.deadline is None:
            slowest = min(cluster.speed for cluster in submission.clusters)
            longest = replace(workload, run_time=submission.seconds_at(slowest, submission.run_time))
            return draw_deadlines(longest, [self.deadlines], seed=submission.seed)
        due = np.asarray(workload.deadline, np.int64)
        early = due < workload.submit_time
        if early.any():
            job = int(np.argmax(early))
            raise WorkloadError(
                f"{workload.name}: job {workload.job_number[job]} has its deadline at {due[job]} s, before "
                f"its submission at {workload.submit_time[job]} s ({int(early.sum())} jobs in all); fix them"
            )
        return due

    @classmethod
    def measures(cls, run: xr.Dataset) -> xr.Dataset:
        """Rounds, over-deadline, MCP and PB; none of a run that was not measured."""
        return summarise_multicluster(run) if "comprehensive_performance" in run else xr.Dataset()


# --- what is given --------------------------------------------------------------------------------


def _checked_changes(platform: Platform) -> list[ResourceChange]:
    """Changes of the resources of clusters in order of time."""
    names = platform.names
    for change in platform.changes:
        if change.cluster not in names:
            raise ConfigurationError(
                f"changes: unknown cluster {change.cluster!r}; there are {', '.join(names)}"
            )
        if change.processors < 0:
            raise ConfigurationError(
                f"changes: cluster {change.cluster} has {change.processors} processors "
                f"from {change.time} s on; use 0 or more"
            )
        unit = platform.clusters[names.index(change.cluster)].unit
        if change.processors % unit:
            raise ConfigurationError(
                f"changes: cluster {change.cluster} has {change.processors} processors "
                f"from {change.time} s on, which are not whole nodes of {unit}; use a multiple"
            )
    return sorted((ResourceChange(*change) for change in platform.changes), key=lambda change: change.time)


def _reach(clusters: Sequence[Cluster], changes: Sequence[ResourceChange]) -> int:
    """Processors of the largest cluster, at the time when that is smallest."""
    present = {cluster.name: cluster.processors for cluster in clusters}
    reach = max(present.values())
    for k, change in enumerate(changes):
        present[change.cluster] = change.processors
        if k + 1 == len(changes) or changes[k + 1].time > change.time:
            reach = min(reach, max(present.values()))
    if reach < 1:
        raise ConfigurationError("changes: at some time no cluster has processors; leave one some")
    return reach


# --- the result -----------------------------------------------------------------------------------

_OF_ROUNDS: dict[str, tuple[str, str]] = {
    "comprehensive_performance": ("comprehensive performance of the jobs that have not started", "s"),
    "round_jobs": ("jobs that have not started", "1"),
    "round_makespan": ("makespan of the jobs that have not started", "s"),
    "round_idle_time": ("idle time of resources", "s"),
    "round_over_deadline": ("time over deadlines of the jobs that have not started", "s"),
    "round_generations": ("generations of the genetic algorithm", "1"),
}


def _schedule(
    policy: Multicluster,
    submission: Submission,
    accepted: Integers,
    run: Run,
    expected: Integers,
    due: Integers,
    reach: int,
) -> Schedule:
    workload, jobs = submission.workload, len(submission)
    outcome = run.outcome()
    cluster, start, end, number = np.full((4, jobs), -1, np.int64)
    ran = run.start >= 0
    cluster[accepted], start[accepted], number[accepted] = run.cluster, run.start, run.round
    end[accepted[ran]] = outcome.end[ran]
    run_time = submission.seconds_at_home(submission.run_time)
    run_time[accepted[ran]] = outcome.run_time[ran]
    told, counted = run.told(outcome)
    rounds = _rounds(run, measured=policy.measure)
    segments: RecordArray = outcome.segments
    segments["job"] = accepted[segments["job"]]
    largest = [max(run.widest[each.name], 1) for each in submission.clusters]
    variables: dict[str, Variable] = {
        "cluster_processors": ("cluster", np.array(largest), "processors of the cluster, the most", "1"),
        "deadline": ("job", due, "deadline", "s"),
        "job_round": ("job", number, "round in which the job was allocated last", "1"),
        "reach_processors": (
            "job",
            np.full(jobs, reach),
            "processors of the largest cluster at the time when that is smallest",
            "1",
        ),
        "segment_resources": (
            ("segment", "word"),
            outcome.masks,
            "resources of the segment as bits, the lowest first",
            "1",
        ),
        **told,
        **rounds,
        **_queues(run),
    }
    plans = len(rounds["round_time"][1]) * len(submission.clusters)
    asked = jobs * len(submission.clusters) if policy.dispatcher == "dll" else 0
    return Schedule(
        start_time=start,
        end_time=end,
        run_time=run_time,
        estimate=np.where(
            cluster >= 0,
            expected[cluster, np.arange(jobs)],
            submission.seconds_at_home(workload.requested_time),
        ),
        segments=segments,
        variables=variables,
        counters={
            "parameter_titan": json.dumps(asdict(policy.titan)),
            "parameter_weights": json.dumps(
                [asdict(each) for each in weights_of(policy.weights, submission.clusters)]
            ),
            "changes": json.dumps([list(change) for change in submission.platform.changes]),
            "jobs_lengthened": int((workload.run_time < 1).sum()),
            **counted,
        },
        messages=float(jobs + plans + asked),
    )


def _rounds(run: Run, *, measured: bool) -> dict[str, Variable]:
    """When there were rounds, with how many jobs, and if measured what the clusters planned."""
    rounds = run.rounds
    variables: dict[str, Variable] = {
        "round_time": ("round", rounds["time"], "time of the round", "s"),
        "round_collected": ("round", rounds["collected"], "jobs that the clusters were given", "1"),
    }
    if not measured:
        return variables
    jobs, found = rounds["jobs"], np.moveaxis(rounds["metrics"], -1, 0)
    planned = [
        cluster.weights.performance(*found[:, :, i].astype(np.float64))
        for i, cluster in enumerate(run.clusters)
    ]
    performance = np.stack(planned, axis=1)
    values = (performance, jobs, *found, rounds["generations"])
    mcp, pb = mean_performance(performance, jobs), performance_balance(performance, jobs)
    return {
        **variables,
        **{
            name: (("round", "cluster"), each, *words)
            for (name, words), each in zip(_OF_ROUNDS.items(), values, strict=True)
        },
        "mcp": ("round", mcp, "mean comprehensive performance", "s"),
        "pb": ("round", pb, "performance balance factor", "s"),
    }


def _queues(run: Run) -> dict[str, Variable]:
    """Mean numbers of jobs that are collected, and that have not started, while jobs arrive."""
    submit, handed_over, start = run.queued()
    last = int(submit.max(initial=0))
    window = last - int(submit.min(initial=last))

    def mean(until: Integers) -> NDArray[np.float64]:
        return np.asarray((np.minimum(until, last) - submit).sum() / window if window else np.nan)

    when = "mean from the first to the last submission"
    return {
        "queue_mean": ((), mean(handed_over), f"jobs collected for the next round, {when}", "1"),
        "waiting_mean": ((), mean(start), f"jobs that have not started, {when}", "1"),
    }


SCHEDULER = Multicluster

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "multicluster": Multicluster,
    "muscle": Multicluster,
    "dll": partial(Multicluster, dispatcher="dll"),
    "wrand": partial(Multicluster, dispatcher="wrand"),
}
"""Dispatchers by name, each with TITAN below it by default."""
