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
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from gridsched.engine.clusters import StartPredictions
from gridsched.engine.job_lifecycle import Fate
from gridsched.platform import Platform
from gridsched.policies.local import Conventions
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices, check_values, is_whole
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.multiple_requests import kernel
from gridsched.systems.node_grids import grid_for
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
        check_values(self, {"k": (is_whole(self.k, 1), "a whole number from 1 on")})
        check_choices(self)

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
        submission = submission.with_homes()
        clusters, number, options = len(submission.clusters), len(submission), self._options(submission)
        k = options.requests
        grid = grid_for(submission, requests=k, keyed=options.home_first)
        jobs = kernel.RequestArrays(
            load=np.empty(clusters),
            started=np.full(number, -1, np.int64),
            request=np.full(number * k, -1, np.int64),
        )
        grid.run(lambda: kernel.schedule(grid.state, jobs, grid.local, options, grid.score))
        requests, ran = int(grid.state.clock["entered"][0]), jobs.started >= 0
        schedule = grid.schedule({"requests": requests})
        cancelled = requests - int(ran.sum())
        if "fate" in schedule.variables:
            # who waits for ever still does with all its requests
            asleep = np.repeat(~ran & (schedule.variables["fate"][1] == int(Fate.STARVED)), k)
            cancelled -= int((asleep & (grid.state.entry >= 0)).sum())
        return replace(
            schedule,
            counters={**schedule.counters, "requests_cancelled": cancelled},
            messages=float(grid.queries + requests + cancelled),
        )

    def _options(self, submission: Submission) -> kernel.MultipleRequestsOptions:
        """Parameters as the kernel wants them."""
        return kernel.MultipleRequestsOptions(
            overrun=overrun_code(submission.conventions.overrun),
            predictions=int(StartPredictions.EXACT),
            requests=min(int(self.k), len(submission.clusters)),
            home_first=self.priority == "home",
        )


SCHEDULER = MultipleRequests

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "multiple-requests": MultipleRequests,
    "multiple-requests-dual": partial(MultipleRequests, priority="home"),
}
"""The system by name, without and with priority of home jobs."""
