"""Logs whose waits policies outside the calibration's family made, and what other policies truly change.

The jobs are those of archive logs; their waits are simulated and stand for recorded ones. The truth is the
change of the mean wait of the second half if another policy takes the place of that policy, and the limits
and partitions of the world stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import gridsched as gs
from gridsched.calibration.layers import ORDERS
from gridsched.systems.slurm.accounts import Accounting, Limits, Quality

CHOSEN = ("KTH-SP2-1996", "CTC-SP2-1996", "SDSC-SP2-1998", "SDSC-BLUE-2000", "LANL-CM5-1994", "SDSC-DS-2004")
"""Logs on which the criteria of headlines and the margin of intervals were chosen."""

JUDGED = ("HPC2N-2002", "SDSC-Par-1996", "OSC-Clust-2000", "LPC-EGEE-2004")
"""Logs on which they are judged."""

LOADS = (0.65, 0.9)
"""Offered load of a window; processors are changed where it is another one ..."""

LOAD = 0.75
"""... to have this load."""

LIMIT = 8
"""Running jobs of a user in the world with a limit."""

PART = 0.6
"""Share of the processors of the larger partition in the world with partitions."""

DAY = 86400


class World(NamedTuple):
    """A log with waits that a policy made, and the truth about others."""

    name: str
    jobs: gs.Workload
    processors: int
    truth: Mapping[str, NDArray[np.int64]]  # wait of each job under policies, by name


def _slurm(**parameters: Any) -> Callable[[], Any]:
    return lambda: gs.Slurm(**parameters)


SCHEDULERS: dict[str, Callable[[], Any]] = {
    "Slurm, first come": _slurm(priority_type="basic"),
    "Slurm, age and size": _slurm(
        priority_weight_age=1000,
        priority_weight_job_size=1000,
        priority_max_age=DAY,
        bf_interval=60,
        bf_max_job_test=100,
    ),
    "Slurm, small first": _slurm(
        priority_weight_age=1000, priority_weight_job_size=3000, priority_favor_small=True, bf_window=720
    ),
    "Slurm, fair share": _slurm(
        priority_weight_age=1000, priority_weight_fairshare=10_000, priority_decay_half_life=3 * DAY
    ),
    "conservative": lambda: "conservative",
    "lxf": lambda: "lxf",
}
"""Worlds of one pool without limits."""


def window(log: str, count: int) -> tuple[gs.Workload, int]:
    """Consecutive jobs of a log, from a third of it on, and processors for them."""
    whole = gs.clean(gs.read_swf(gs.fetch(log, progress=False)))
    first = max(min(len(whole) // 3, len(whole) - count), 0)
    place = np.arange(len(whole))
    jobs = whole.select((place >= first) & (place < first + count))
    span = float(jobs.submit_time[-1] - jobs.submit_time[0])
    work = float((jobs.processors.astype(np.float64) * jobs.run_time).sum())
    size = jobs.processors_available or int(jobs.processors.max())
    if not LOADS[0] <= work / span / size <= LOADS[1]:
        size = max(int(np.ceil(work / span / LOAD)), int(jobs.processors.max()))
    return jobs, size


def waits(jobs: gs.Workload, cluster: gs.Cluster | int, scheduler: Any) -> NDArray[np.int64]:
    """Wait of each job [s]."""
    run = gs.simulate(jobs, cluster, scheduler)
    return np.asarray(run["start_time"].values - run["submit_time"].values, np.int64)


def worlds(log: str, count: int) -> Iterator[World]:
    """The worlds of a log, one after the other."""
    jobs, size = window(log, count)
    plain = {name: waits(jobs, size, name) for name in ORDERS}
    for name, make in SCHEDULERS.items():
        yield World(name, replace(jobs, wait_time=waits(jobs, size, make())), size, plain)
    yield _limited(jobs, size)
    yield _in_partitions(jobs, size)


def _limited(jobs: gs.Workload, size: int) -> World:
    """Slurm with a limit of running jobs of each user, under which the other policies are too."""
    one = replace(jobs, queue=np.ones(len(jobs), np.int64))
    quality = Quality(name="1", limits=Limits(running={("user", "jobs"): LIMIT}))
    slurm = gs.Slurm(
        priority_type="basic", enforce_limits=True, accounting=Accounting(qualities={"1": quality})
    )
    cluster = gs.Cluster(processors=size, limits=[gs.Limit(by="user", jobs=LIMIT)])
    truth = {name: waits(jobs, cluster, name) for name in ORDERS}
    return World("Slurm, limit of users", replace(jobs, wait_time=waits(one, size, slurm)), size, truth)


def _in_partitions(jobs: gs.Workload, size: int) -> World:
    """Conservative backfilling in two partitions, of which the log says nothing."""
    larger = int(np.ceil(PART * size))
    jobs = jobs.select(jobs.processors <= larger)
    second = (jobs.user % 2 == 1) & (jobs.processors <= size - larger)
    truth = {name: np.zeros(len(jobs), np.int64) for name in ("conservative", *ORDERS)}
    for mine, processors in ((~second, larger), (second, size - larger)):
        part = jobs.select(mine)
        for name, found in truth.items():
            found[mine] = waits(part, processors, name)
    recorded = truth.pop("conservative")
    return World("two partitions", replace(jobs, wait_time=recorded), size, truth)
