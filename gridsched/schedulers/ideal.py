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

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import ideal
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster

IdealForm = Literal["fcfs", "srpt"]


def ideal_times(
    jobs: NDArray[Any], home: NDArray[np.int64], clusters: Sequence[Cluster], form: IdealForm
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
        If the form is unknown, a home does not exist, or jobs are not in order of submission.
    """
    _check(jobs, home, clusters, form)
    speed = np.array([cluster.speed for cluster in clusters], np.float64)
    pool = float(sum(cluster.processors * cluster.speed for cluster in clusters))
    work = jobs["run"] * jobs["processors"].astype(np.float64) * speed[home]
    start, end = np.empty(len(jobs)), np.empty(len(jobs))
    kernel = ideal.first_come if form == "fcfs" else ideal.shortest_remaining
    kernel(jobs["submit"] * pool, work, start, end)
    # Back in seconds, rounding must not let a job start before it is there.
    start = np.maximum(start / pool, jobs["submit"])
    return start, np.maximum(end / pool, start)


def _check(jobs: NDArray[Any], home: NDArray[np.int64], clusters: Sequence[Cluster], form: str) -> None:
    if form not in get_args(IdealForm):
        raise ConfigurationError(f"form is {form!r}; use one of {', '.join(get_args(IdealForm))}")
    if len(home) != len(jobs) or (len(home) and not 0 <= home.min() <= home.max() < len(clusters)):
        raise ConfigurationError(f"home: give an index of one of the {len(clusters)} clusters for each job")
    if (np.diff(jobs["submit"]) < 0).any():
        raise ConfigurationError("jobs: not in order of submission; sort them")
