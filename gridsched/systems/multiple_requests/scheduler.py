"""Multiple simultaneous requests: a job waits on several clusters at once, and runs where it starts first.

Subramani, Kettimuthu, Srinivasan and Sadayappan, "Distributed job scheduling on computational grids using
multiple simultaneous requests" (HPDC 2002). A job is queued at the K clusters with the least load; when it
starts on one of them, its other requests are cancelled. In the dual variant (``priority="home"``) every
cluster serves the jobs of its own users before those of others. By name:

==========================  ===============================================================================
``multiple-requests``       each job waits on K clusters and runs where it starts first
``multiple-requests-dual``  the same, and each cluster serves the jobs of its own users before those of others
==========================  ===============================================================================

Only the abstract of the paper was at hand; what it leaves open is decided here:

load
    Processor-seconds that the jobs on a cluster, running and waiting, are estimated to take, over its
    processors. A request counts in full on every cluster where it waits, since none sees the others.
    Ties go to the home of the job, then to the first cluster.
home
    A job's home is one of the K clusters only if its load is small enough.
cancelling
    Takes no time. At one instant clusters have their scheduling passes in the order of the platform, and a
    request that is cancelled is gone before the next one's pass. A cluster that loses a request has another
    pass at that instant.
messages
    One to each cluster for its load, one for each request, and one for each that is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import ClassVar, Literal, get_args

import numpy as np

from gridsched.engine import clusters as grid
from gridsched.engine import node_clusters
from gridsched.engine.job_lifecycle import Fate
from gridsched.errors import ConfigurationError
from gridsched.platform import Platform
from gridsched.policies import scores
from gridsched.policies.local import Conventions
from gridsched.results import NO_TIME, Schedule, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.base import Scheduler
from gridsched.systems.cluster_records import FIRST_ROOM, cluster_records, overrun_code
from gridsched.systems.multiple_requests import kernel
from gridsched.systems.node_grids import is_node_grid, node_corrections, node_grid, node_grid_run
from gridsched.workloads.table import Workload

PriorityName = Literal["equal", "home"]

_ORDERS = ("fcfs", "shortest", "smallest")
"""Queue orders whose keys leave space for the jobs that home jobs precede."""


@dataclass(frozen=True, kw_only=True)
class MultipleRequests(Scheduler):
    """How many clusters a job is queued at, and who goes first there.

    Parameters
    ----------
    k : int
        Clusters at which a job waits at once; all that can hold it if these are fewer.
    priority : {"equal", "home"}
        Whether a cluster treats all jobs equally, or serves those of its own users first.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range.
    """

    k: int = 4
    priority: PriorityName = "equal"

    system: ClassVar[str] = "multiple_requests"
    knows: ClassVar[str] = "the work left on all clusters"
    cannot: ClassVar[Mapping[str, str]] = {
        "arrays": "a cluster counts its own tasks, not those that run elsewhere",
        "passes": "requests are cancelled once for all events of an instant",
        "message delay": "a job that two clusters could start at once needs an answer at that instant",
        "migration delay": "a job waits where it can run, and does not move",
        "deadlines": "a job runs where it starts first",
        "reservations": "a request is for the earliest start",
        "membership": "the clusters that jobs may ask are fixed",
        "changes": "the processors of a cluster stay the same under local policies",
        "preemption": "a job that has started runs to its end",
    }

    def __post_init__(self) -> None:
        if not isinstance(self.k, Integral) or int(self.k) < 1:
            raise ConfigurationError(f"k is {self.k!r}; use a whole number from 1 on")
        if self.priority not in get_args(PriorityName):
            raise ConfigurationError(
                f"priority is {self.priority!r}; use one of {', '.join(get_args(PriorityName))}"
            )

    @property
    def label(self) -> str:
        """Name in results."""
        return "multiple-requests" if self.priority == "equal" else "multiple-requests-dual"

    def incompatibility(
        self,
        platform: Platform,
        conventions: Conventions | None = None,
        workload: Workload | None = None,
    ) -> str:
        """Why it cannot schedule such jobs on such a platform under such conventions; empty if it can."""
        reasons = [super().incompatibility(platform, conventions, workload)]
        unordered = [policy.name for policy in platform.policies if policy.order not in _ORDERS]
        if self.priority == "home" and unordered:
            reasons.append(
                f"policy {unordered[0]}: home jobs come first only in the queue orders {', '.join(_ORDERS)}"
            )
        return "; ".join(reason for reason in reasons if reason)

    def schedule(self, submission: Submission) -> Schedule:
        """Queue each job at its clusters, and let it run where it starts first."""
        submission = submission.at_home()
        clusters, home, number = submission.clusters, submission.home, len(submission)
        if is_node_grid(clusters, submission.workload, submission.policies):
            return self._schedule_nodes(submission)
        records, score = cluster_records(clusters, submission.policies)
        options = self._options(submission)
        k, room = options.requests, FIRST_ROOM
        state, local = grid.allocate(
            np.repeat(submission.records(), k),
            np.repeat(labels_of(submission.workload), k),
            np.repeat(home, k),
            records,
            room,
            options.predictions,
            keyed=options.home_first,
        )
        jobs = _requests(number, k, len(clusters))
        compiled = scores.SCORE.compile(score)
        while not kernel.schedule(state, jobs, local, options, compiled):
            room *= 2
            local = grid.with_room(state, local, room, options.predictions)
        scores.check_order(score, state.state)
        ran = jobs.started >= 0
        entry = state.entry[jobs.started]
        cluster = np.where(ran, state.cluster[jobs.started], -1)
        start_time = np.where(ran, local.starts[0, entry], NO_TIME)
        run_time = np.where(ran, local.jobs[0]["run"][entry], submission.run_time)
        allocated = local.jobs[0]["processors"][entry].astype(np.int64)
        requests = int(state.clock["entered"][0])
        return Schedule(
            start_time=start_time,
            run_time=run_time,
            estimate=submission.estimate,
            segments=in_one_piece(start_time, run_time, cluster, allocated),
            counters={
                "corrections": int(state.state["corrections"][:-1].sum()),
                "requests": requests,
                "requests_cancelled": requests - int(ran.sum()),
            },
            messages=float(number * len(clusters) + 2 * requests - ran.sum()),
        )

    def _options(self, submission: Submission) -> kernel.MultipleRequestsOptions:
        """Parameters as the kernel wants them."""
        return kernel.MultipleRequestsOptions(
            overrun=overrun_code(submission.conventions.overrun),
            predictions=int(grid.StartPredictions.EXACT),
            requests=min(int(self.k), len(submission.clusters)),
            home_first=self.priority == "home",
        )

    def _schedule_nodes(self, submission: Submission) -> Schedule:
        """The same on clusters of nodes, or with jobs that give up or wait for others."""
        clusters, home, number = submission.clusters, submission.home, len(submission)
        records, score = cluster_records(clusters, submission.policies)
        options = self._options(submission)
        k = options.requests
        nodes = node_grid(submission, home, records, submission.policies)
        against = nodes.against(np.ones((len(clusters), len(clusters)), np.bool_))
        state, local = nodes.allocate(records, np.repeat(submission.records(), k), against > 0, k)
        jobs, compiled = _requests(number, k, len(clusters)), scores.SCORE.compile(score)
        while not kernel.schedule(state, jobs, local, options, compiled):
            local = node_clusters.with_room(local)
        run = node_grid_run(nodes, state, local, against, score)
        requests, ran = int(state.clock["entered"][0]), int((jobs.started >= 0).sum())
        asleep = np.repeat((jobs.started < 0) & (run.fate == int(Fate.STARVED)), k)
        cancelled = requests - ran - int((asleep & (state.entry >= 0)).sum())
        return Schedule(
            start_time=run.start_time,
            end_time=run.end_time,
            run_time=nodes.run_time_on(run.cluster),
            estimate=submission.estimate,
            segments=run.segments,
            variables=run.variables,
            counters={
                "corrections": node_corrections(local),
                "requests": requests,
                "requests_cancelled": cancelled,
                **run.counters,
            },
            messages=float(state.clock["queries"][0] + requests + cancelled),
        )


def _requests(jobs: int, requests: int, clusters: int) -> kernel.RequestArrays:
    """Requests of jobs that are not submitted yet."""
    return kernel.RequestArrays(
        load=np.empty(clusters),
        started=np.full(jobs, -1, np.int64),
        request=np.full(jobs * requests, -1, np.int64),
    )


SCHEDULER = MultipleRequests

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "multiple-requests": MultipleRequests,
    "multiple-requests-dual": partial(MultipleRequests, priority="home"),
}
"""The system by name, without and with priority of home jobs."""
