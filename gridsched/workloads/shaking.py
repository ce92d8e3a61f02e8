"""Small random changes of submit times, to tell what a scheduler does from what one log does.

Tsafrir, Ouaknine and Feitelson ("Reducing performance evaluation sensitivity and variability by input
shaking", MASCOTS 2007) simulate a log many times, each time with the arrivals moved by some random seconds,
and look at the mean of the results and at how far they are apart. A number that such a change moves far says
more of chance meetings of jobs in this log than of the scheduler.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from gridsched.errors import WorkloadError, check_whole
from gridsched.workloads.table import Workload


def shake(workload: Workload, *, seed: int, seconds: int = 60) -> Workload:
    """The workload with every submission moved by a random time.

    Parameters
    ----------
    workload : Workload
        Clean jobs.
    seed : int
        The same seed and parameters give the same workload, bit for bit.
    seconds : int
        Submissions move by a whole number of seconds from minus to plus this, each as likely; none before the
        first submission of the workload.

    Returns
    -------
    Workload
        Jobs in order of submission, in which deadlines, requested starts and times at which users give up
        move along. A job that depends on another one is still submitted when it is, and waits for it.

    Raises
    ------
    WorkloadError
        If the seed or the seconds are no whole number from 0 on.

    Examples
    --------
    >>> import gridsched as gs
    >>> import numpy as np
    >>> jobs = gs.synthesise("M3", jobs=1000, seed=1)
    >>> moved = gs.shake(jobs, seed=2, seconds=60)
    >>> int(np.abs(np.sort(moved.submit_time) - jobs.submit_time).max()) <= 60
    True
    """
    seed = check_whole(f"{workload.name}: seed", seed, error=WorkloadError)
    seconds = check_whole(f"{workload.name}: seconds", seconds, error=WorkloadError)
    submit = np.asarray(workload.submit_time, np.int64)
    moved = submit + np.random.default_rng(seed).integers(-seconds, seconds, len(submit), endpoint=True)
    moved = np.maximum(moved, submit.min(initial=2**62))
    columns: dict[str, Any] = workload.moved_times(moved - submit)
    order = np.argsort(moved, kind="stable")
    options = f"seed {seed}, seconds {seconds}"
    return replace(
        replace(workload, submit_time=moved, **columns).select(order),
        header=(*workload.header, f"; Note: shaken: {options}"),
        checksum=hashlib.sha256(f"{workload.checksum}\nshaken: {options}".encode()).hexdigest(),
    )
