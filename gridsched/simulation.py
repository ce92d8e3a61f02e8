"""One simulation: a workload on a platform under a scheduler, whatever the system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.platform import Cluster, Platform
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName, PassName
from gridsched.submission import AlignName, Estimates, TimesName
from gridsched.systems.base import Scheduler
from gridsched.systems.registry import scheduler_of
from gridsched.systems.request import Request
from gridsched.workloads.table import Workload


def simulate(
    workload: Workload | Sequence[Workload | None],
    platform: Cluster | Sequence[Cluster] | Platform | int | None = None,
    scheduler: str | LocalPolicy | Scheduler | None = None,
    *,
    estimates: Estimates = "requested",
    seed: int = 0,
    align: AlignName = "start",
    times: TimesName = "home",
    kill: bool = False,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
) -> xr.Dataset:
    """Run jobs through a scheduler.

    Parameters
    ----------
    workload : Workload or a sequence of them
        Clean jobs in order of submission (see `gridsched.clean`): one workload, or one for each cluster with
        the jobs that its users submit there (None for a cluster without users), and maybe one more whose jobs
        are submitted at no cluster. A single workload may say with a column `home` where its jobs are
        submitted. Run times and requested times are as on the cluster of submission, of jobs that are
        submitted at none as on a cluster of speed 1 (see `times`). On another cluster they are divided by its
        speed and multiplied with that of the cluster of submission, and rounded up to whole seconds.
    platform : Cluster, sequence of Cluster, Platform or int, optional
        Where jobs run; an integer is a cluster with that many processors. By default one cluster of the size
        that the workload states. Each cluster has its own local policy.
    scheduler : str, LocalPolicy or Scheduler, optional
        A name of `gridsched.systems.registry.names`, a local policy (for every cluster on its own), or a
        scheduler with its parameters. By default every cluster schedules the jobs submitted to it.
    estimates : {"requested", "actual", "clairvoyant"} or array of seconds
        Run times that schedulers expect: the requested time (the actual run time where a job has none,
        counted in the attributes), the actual run time, the larger of both, or the given values, one for
        each job in order of submission. Never less than one second.
    seed : int
        Of everything that the scheduler draws.
    align : {"start", "clock", "none"}
        How submit times of several workloads go together, see `gridsched.traces.merge_workloads`.
    times : {"home", "unit"}
        Whether run times and requested times are as on the cluster of submission, or as at speed 1.
    kill : bool
        Whether jobs end at their requested time.
    overrun, passes
        Conventions, see `gridsched.policies.local.Conventions`.

    Returns
    -------
    xarray.Dataset
        A run, see `gridsched.results.run_dataset`. Its attributes say which system and scheduler made it,
        with all parameters.

    Raises
    ------
    WorkloadError
        If a workload is not clean, or does not say how large its cluster is.
    ConfigurationError
        If the parts do not go together, or an option is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=500, seed=1)
    >>> gs.simulate(jobs, scheduler="easy").attrs["title"]
    'easy on M3-synthetic: 500 jobs'
    >>> clusters = [
    ...     gs.Cluster(name="north", processors=1152),
    ...     gs.Cluster(name="south", processors=1152, speed=2),
    ... ]
    >>> run = gs.simulate([jobs, None], clusters, gs.JScheduler(metric="response", k=2), estimates="actual")
    >>> run.attrs["jobs_transferred"] > 0
    True
    """
    chosen = scheduler_of(scheduler)
    request = Request.of(
        workload,
        platform,
        estimates=estimates,
        seed=seed,
        align=align,
        times=times,
        kill=kill,
        conventions=Conventions(overrun, passes),
    )
    request.check(chosen)
    return request.run_of(chosen.schedule(request.submission), chosen)


def start_times(
    workload: Workload, platform: Cluster, policy: LocalPolicy, *, awaited: int = 0
) -> NDArray[np.int64]:
    """Starts of jobs as in the run of `simulate` [s], without the run; -1 for those that never start.

    Where only the starts of the first jobs are awaited, those of the others may be -1.
    """
    chosen = scheduler_of(policy)
    request = Request.of(
        workload,
        platform,
        estimates="requested",
        seed=0,
        align="start",
        times="home",
        kill=False,
        conventions=Conventions(),
    )
    request.check(chosen)
    return chosen.schedule(replace(request.submission, awaited=awaited)).start_time
