"""One arena for all schedulers: the same clusters, jobs and estimates, and the same measures of every job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments.machines import ended, fates_of
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.systems.base import Scheduler
from gridsched.traces.merging import merge_workloads
from gridsched.verification import verify
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

_FINISHED = 1
"""Value of the variable `outcome` of jobs that ran to their end."""

IDEAL_MACHINE = "ideal machine"
"""System of bounds, which are no schedulers: all processors of a grid as one cluster."""


@dataclass(frozen=True, kw_only=True)
class ArenaGrid:
    """Clusters and what their users submit.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs of each cluster, with run and requested times as on that cluster.
    clusters : sequence of Cluster
        The clusters, one for each workload.
    align : {"start", "clock", "none"}
        How submit times go together, see `gridsched.traces.merge_workloads`.
    policy : str or LocalPolicy
        Local policy of all clusters, where a system leaves it open.
    seed : int
        Of everything that schedulers draw.
    """

    workloads: Sequence[Workload]
    clusters: Sequence[Cluster]
    align: AlignName = "start"
    policy: str | LocalPolicy = "easy"
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.workloads) != len(self.clusters) or not self.clusters:
            raise ConfigurationError(
                f"{len(self.workloads)} workloads for {len(self.clusters)} clusters; give one for each"
            )

    def under(self, load: float = 1.0, estimate_error: float = 1.0) -> ArenaGrid:
        """The grid under another load, with other estimates.

        Parameters
        ----------
        load : float
            Times between submissions are divided by this.
        estimate_error : float
            Share of what users add to (or leave out of) their run times when they request time: with 0
            estimates are perfect, with 1 as requested. Jobs without requested time are estimated perfectly.

        Raises
        ------
        ConfigurationError
            If the load is not positive, or the error negative.
        """
        if not (np.isfinite(load) and load > 0 and np.isfinite(estimate_error) and estimate_error >= 0):
            raise ConfigurationError(
                f"load is {load} and estimate_error is {estimate_error}; use a positive load, and 0 or more"
            )
        return replace(self, workloads=[_under(each, load, estimate_error) for each in self.workloads])

    @property
    def platform(self) -> Platform:
        """The clusters under the local policy."""
        return Platform(self.clusters).with_policy(self.policy)

    def merged(self) -> tuple[Workload, Integers]:
        """All jobs in order of submission, with the index of the cluster where each is submitted."""
        return merge_workloads(self.workloads, align=self.align)


def _under(workload: Workload, load: float, error: float) -> Workload:
    """Jobs of a cluster under another load, with other estimates."""
    first = int(workload.submit_time.min(initial=2**62)) if len(workload) else 0
    submit = first + np.round((workload.submit_time - first) / load).astype(np.int64)
    run, requested = workload.run_time, workload.requested_time
    estimate = np.where(requested > 0, np.ceil(run + error * (requested - run)), run)
    return replace(workload, submit_time=submit, requested_time=np.maximum(estimate, 1).astype(np.int64))


def schedule(scheduler: Scheduler, grid: ArenaGrid) -> xr.Dataset:
    """What a scheduler makes of a grid, job by job; the run is verified.

    Parameters
    ----------
    scheduler : Scheduler
        The scheduler.
    grid : ArenaGrid
        Clusters and jobs.

    Returns
    -------
    xarray.Dataset
        On `job`, in the order of submission (`ArenaGrid.merged`): start_time (when it first runs) and
        end_time in seconds, -1 for a job that never ran to its end; moved, whether it ran elsewhere than at
        home (-1 where no cluster can be named). Where the run says what became of jobs, eligible_time too.
        Attributes: messages, jobs_not_run, and then those of `gridsched.experiments.machines.FATES`.

    Raises
    ------
    ConfigurationError
        If the scheduler cannot schedule such a grid.
    """
    run = simulate(grid.workloads, grid.platform, scheduler, align=grid.align, seed=grid.seed)
    verify(run)
    home = run["home_cluster"].to_numpy()
    ran = ended(run)
    if "outcome" in run:
        ran &= run["outcome"].to_numpy() == _FINISHED
    whole = xr.Dataset(
        {
            "start_time": ("job", np.where(ran, run["start_time"].to_numpy(), results.NO_TIME)),
            "end_time": ("job", np.where(ran, run["end_time"].to_numpy(), results.NO_TIME)),
            "moved": ("job", np.where(ran, _moved(run, home), 0).astype(np.int8)),
        },
        attrs={
            "messages": float(run.attrs["messages"]),
            "jobs_not_run": int((~ran).sum()),
            **{str(name): float(value) for name, value in fates_of(run).items()},
        },
    )
    if "eligible_time" in run:
        whole["eligible_time"] = run["eligible_time"].variable
    for name, long_name in (
        ("start_time", "time of the first start, -1 if the job did not run to its end"),
        ("end_time", "time of the last end, -1 if the job did not run to its end"),
        ("moved", "whether the job ran elsewhere than where it was submitted, -1 on an ideal machine"),
    ):
        whole[name].attrs = {"long_name": long_name, "units": "1" if name == "moved" else "s"}
    return whole


def _moved(run: xr.Dataset, home: Integers) -> Integers:
    """Whether some segment of each job is elsewhere than its home; -1 where nothing says where it ran."""
    if "segment_job" not in run:
        return np.full(len(home), -1)
    job = run["segment_job"].to_numpy()
    moved = np.zeros(len(home), np.int64)
    np.maximum.at(moved, job, (run["segment_cluster"].to_numpy() != home[job]).astype(np.int64))
    return moved
