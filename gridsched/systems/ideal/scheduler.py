"""Ideal machines: bounds for what any scheduler of a grid can reach.

Shan, Oliker and Biswas, "Job superscheduler architecture and performance in computational grid environments"
(SC 2003), section 2.3: the grid is one pool of all processors, each counted with its speed, and a job may
use the whole pool with perfect speed-up. The paper does not say in which order jobs use it:

==============  =======================================================================================
``ideal-fcfs``  one job after the other, in order of submission
``ideal-srpt``  always the job with the least remaining work, which a shorter one interrupts
==============  =======================================================================================

The mean response of ``ideal-srpt`` is a true lower bound, for schedulers that know all run times too: the
pool can do at every instant what the clusters do together, so that every schedule of rigid jobs on the
clusters is one on the pool with the same ends, and on one machine no preemptive schedule has a smaller sum of
completion times than the shortest remaining processing time first (Schrage, "A proof of the optimality of the
shortest remaining processing time discipline", Operations Research 16, 1968). Mean waits are not bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.results import NO_TIME, Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices
from gridsched.systems.ideal import kernel as ideal

IdealForm = Literal["fcfs", "srpt"]


@dataclass(frozen=True)
class Ideal(Scheduler):
    """All processors of a platform as one machine.

    Jobs that fit on none of the clusters are rejected, as by the scheme ``central``, although the pool could
    hold them: schedulers are compared by the same jobs.

    Parameters
    ----------
    form : {"srpt", "fcfs"}
        Order of the jobs.

    Raises
    ------
    ConfigurationError
        If the form is unknown.
    """

    form: IdealForm = "srpt"

    system: ClassVar[str] = "ideal"
    terms: ClassVar[Mapping[str, str]] = {
        "SRPT": "Shortest remaining processing time first: always the job with the least work left, which a "
        "shorter one interrupts.",
    }
    knows: ClassVar[str] = "everything, at once"
    names_clusters: ClassVar[bool] = False
    cannot: ClassVar[Mapping[str, str]] = {
        "predictions": "the pool knows run times",
        "arrays": "it is a bound for jobs that start as soon as they can",
        "nodes": "the pool is one machine of processors",
        "failures": "it is a bound for platforms that stay the same",
        "cancellations": "it is a bound for jobs that all run",
        "dependencies": "it is a bound for jobs that depend on nothing",
        "local policies": "the pool is one machine without a local scheduler",
        "estimates": "the pool knows run times",
        "overrun": "the pool knows run times, so that no job exceeds its estimate",
        "passes": "the pool decides at every instant",
        "message delay": "no messages are sent",
        "migration delay": "a job uses all clusters at once",
        "deadlines": "its order is fixed by arrival or remaining work",
        "reservations": "it is a bound for jobs that start as soon as they can",
        "membership": "it is a bound for platforms that stay the same",
        "changes": "it is a bound for platforms that stay the same",
        "own functions": "its order is fixed by arrival or remaining work",
    }

    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {"preemption": {"form": "srpt"}}

    def __post_init__(self) -> None:
        check_choices(self)

    @property
    def label(self) -> str:
        """Name in results."""
        return f"ideal-{self.form}"

    def schedule(self, submission: Submission) -> Schedule:
        """Times at which each job first has the pool, and is done: fractions of seconds, on no cluster."""
        submission = submission.at_home()
        widest = max(cluster.processors for cluster in submission.clusters)
        accepted = np.asarray(submission.workload.processors <= widest)
        times = np.full((2, len(submission)), float(NO_TIME))
        times[:, accepted] = ideal_times(
            submission.records()[accepted], submission.home[accepted], submission.clusters, self.form
        )
        return Schedule(
            start_time=times[0],
            end_time=times[1],
            run_time=submission.run_time,
            variables={
                "reach_processors": (
                    "job",
                    np.full(len(submission), widest),
                    "processors of the largest cluster",
                    "1",
                )
            },
        )

    @classmethod
    def rules(cls, run: xr.Dataset) -> list[str]:
        """No job begins before it is submitted, nor ends sooner than the whole pool can do its work."""
        start, end, submit = (run[f"{name}_time"].to_numpy() for name in ("start", "end", "submit"))
        speed, processors = run["cluster_speed"].to_numpy(), run["processors"].to_numpy()
        pool = float((speed * run["cluster_processors"].to_numpy()).sum())
        work = run["run_time"].to_numpy() * processors * speed[run["home_cluster"].to_numpy()]
        ran = start >= 0
        found = []
        for broken, what in (
            (ran & (start < submit), "begins before it is submitted"),
            (
                ran & (end - start < work / pool * (1 - 1e-9) - 1e-6),
                "ends sooner than the pool can do its work",
            ),
            (~ran & (processors <= run["reach_processors"].to_numpy()), "fits a cluster, but never ran"),
        ):
            if broken.any():
                job = int(run["job_number"].to_numpy()[np.argmax(broken)])
                found.append(f"job {job} {what} ({int(broken.sum())} jobs in all)")
        return found


def ideal_times(
    jobs: RecordArray, home: NDArray[np.int64], clusters: Sequence[Cluster], form: IdealForm
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When each job has the pool of all clusters for the first time, and when it is done.

    The work of a job is processors x run time x speed of its home: the processors that it asks for, not
    whole nodes. Times have fractions of seconds.

    Parameters
    ----------
    jobs : JOB[n]
        Jobs in order of submission, with run times as on their home cluster
        (`gridsched.engine.records.JOB`); estimates are not looked at.
    home : int64[n]
        Index of the cluster where each job is submitted.
    clusters : sequence of Cluster
        What the pool is made of.
    form : {"fcfs", "srpt"}
        Order of the jobs.

    Returns
    -------
    start_time, end_time : float64[n]
        Seconds.

    Raises
    ------
    ConfigurationError
        If a home does not exist, or jobs are not in order of submission.
    """
    if len(home) != len(jobs) or (len(home) and not 0 <= home.min() <= home.max() < len(clusters)):
        raise ConfigurationError(f"home: give an index of one of the {len(clusters)} clusters for each job")
    if (np.diff(jobs["submit"]) < 0).any():
        raise ConfigurationError("jobs: not in order of submission; sort them")
    speed = np.array([cluster.speed for cluster in clusters], np.float64)
    pool = float(sum(cluster.processors * cluster.speed for cluster in clusters))
    work = jobs["run"] * jobs["processors"].astype(np.float64) * speed[home]
    start, end = np.empty(len(jobs)), np.empty(len(jobs))
    kernel = ideal.first_come if form == "fcfs" else ideal.shortest_remaining
    kernel(jobs["submit"] * pool, work, start, end)
    # Back in seconds, rounding must not let a job start before it is there.
    start = np.maximum(start / pool, jobs["submit"])
    return start, np.maximum(end / pool, start)


SCHEDULER = Ideal

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    f"ideal-{form}": partial(Ideal, form) for form in get_args(IdealForm)
}
"""Ideal machines by name."""
