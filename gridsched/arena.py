"""One arena for all grid schedulers: the same machines, jobs and beliefs, and the same measures of every job.

A *contender* is a grid scheduler with its parameters. Every contender gets the jobs that users submit to each
machine (`Grid`) and gives back when each of them started and ended (`play`). What differs between the systems
is said here once:

superschedulers, ideal machines
    As in `gridsched.simulate_grid` and `gridsched.simulation.ideal`.
self-scheduling
    Jobs choose among `k` machines, whatever their home. A machine is one resource.
multicluster
    MUSCLE and its rivals allocate jobs; deadlines, which the other systems do not know, are drawn by
    equation (5) of its paper. The estimate is the predicted execution time.
calendars
    Two levels: a local manager for each machine, one above all. A job goes up by its size relative to its
    machine, or by its estimate.
dynamic grid
    Jobs of a machine's users are local; what has to wait goes to the grid. Machines must be equally fast.

Messages are counted as each system needs them, one for a question with its answer:

==================  ==================================================================================
superschedulers     predicted starts asked for
self-scheduling     predicted starts asked for
multicluster        a job that is announced; a plan handed to a machine; for dynamic least load the loads
                    of all machines at each job
calendars           messages between managers (`gridsched.schedulers.calendars.COUNTS`)
dynamic grid        reports, confirmations, dispatches, inquiries, returns
==================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers.calendars import CalendarOptions, Manager, SlotPlan
from gridsched.schedulers.dynamic_grid import DynamicGrid
from gridsched.schedulers.grid_graphs import GraphName
from gridsched.schedulers.ideal import IdealForm
from gridsched.schedulers.jscheduler import JScheduler
from gridsched.schedulers.local import LocalPolicy
from gridsched.schedulers.superscheduler import Superscheduler
from gridsched.simulation.calendars import simulate_calendars
from gridsched.simulation.clusters import simulate_grid
from gridsched.simulation.dynamic_grid import FINISHED, simulate_dynamic_grid
from gridsched.simulation.ideal import simulate_ideal
from gridsched.simulation.multicluster import Multicluster, simulate_multicluster
from gridsched.simulation.self_scheduling import simulate_self_scheduling
from gridsched.traces.fusing import fuse
from gridsched.verification.dynamic_grid import verify_dynamic
from gridsched.verification.runs import verify
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines
from gridsched.workloads.table import Workload

Align = Literal["start", "clock", "none"]
Integers = NDArray[np.int64]

IDEAL_MACHINE = "ideal machine"
"""System of contenders that are no schedulers but bounds: all processors of a grid as one machine."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Machines and what their users submit.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs of each machine, with run and requested times as on that machine.
    clusters : sequence of Cluster
        The machines, one for each workload.
    align : {"start", "clock", "none"}
        How submit times go together, see `gridsched.traces.fuse`.
    policy : str or LocalPolicy
        Local policy of all machines, where a system leaves it open.
    seed : int
        Of everything that contenders draw.
    """

    workloads: Sequence[Workload]
    clusters: Sequence[Cluster]
    align: Align = "start"
    policy: str | LocalPolicy = "easy"
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.workloads) != len(self.clusters) or not self.clusters:
            raise ConfigurationError(
                f"{len(self.workloads)} workloads for {len(self.clusters)} clusters; give one for each"
            )

    def under(self, load: float = 1.0, estimate_error: float = 1.0) -> Grid:
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

    def fused(self) -> tuple[Workload, Integers]:
        """All jobs in order of submission, with the index of the machine where each is submitted."""
        return fuse(self.workloads, align=self.align)

    def at_unit_speed(self) -> tuple[Workload, Integers]:
        """As `fused`, with run and requested times as on a machine of speed 1."""
        return fuse(self.each_at_unit_speed(), align=self.align)

    def each_at_unit_speed(self) -> list[Workload]:
        """The workloads, with run and requested times as on a machine of speed 1, rounded up."""
        return [
            workload if cluster.speed == 1.0 else _stretched(workload, cluster.speed)
            for workload, cluster in zip(self.workloads, self.clusters, strict=True)
        ]


def _stretched(workload: Workload, factor: float) -> Workload:
    """Jobs whose known run and requested times are so many times as long."""
    columns: dict[str, Any] = {
        name: np.where(values > 0, np.ceil(values * factor), values).astype(np.int64)
        for name, values in (("run_time", workload.run_time), ("requested_time", workload.requested_time))
    }
    return replace(workload, **columns)


def _under(workload: Workload, load: float, error: float) -> Workload:
    """Jobs of a machine under another load, with other estimates."""
    first = int(workload.submit_time.min(initial=2**62)) if len(workload) else 0
    submit = first + np.round((workload.submit_time - first) / load).astype(np.int64)
    run, requested = workload.run_time, workload.requested_time
    believed = np.where(requested > 0, np.ceil(run + error * (requested - run)), run)
    return replace(workload, submit_time=submit, requested_time=np.maximum(believed, 1).astype(np.int64))


class Contender(Protocol):
    """A grid scheduler with its parameters."""

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid; empty if it can."""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""


@dataclass(frozen=True, kw_only=True)
class Brokered:
    """A superscheduler: jobs are submitted at a home, and may move once before they start."""

    superscheduler: Superscheduler

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid; it always can."""
        return ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""
        run = simulate_grid(grid.workloads, grid.clusters, self.superscheduler, grid.policy, align=grid.align)
        verify(run)
        return run, float(run.attrs["queries"])


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """An ideal machine of all processors, which bounds what sharing can bring."""

    form: IdealForm

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid; it always can."""
        return ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A run; an ideal machine sends no message."""
        return simulate_ideal(grid.workloads, grid.clusters, self.form, align=grid.align), 0.0


@dataclass(frozen=True, kw_only=True)
class SelfScheduled:
    """Self-scheduling: each job chooses among k machines by what it predicts there."""

    jscheduler: JScheduler

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid."""
        if self.jscheduler.k > len(grid.clusters):
            return f"asks {self.jscheduler.k} machines, there are {len(grid.clusters)}"
        return ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""
        merged, home = grid.at_unit_speed()
        jscheduler = replace(self.jscheduler, seed=grid.seed)
        run = simulate_self_scheduling(merged, grid.clusters, grid.policy, jscheduler, home=home)
        verify(run)
        return run, float(run.attrs["queries"])


@dataclass(frozen=True, kw_only=True)
class Packed:
    """MUSCLE, dynamic least load or weighted random, with the local scheduler that belongs to it."""

    multicluster: Multicluster
    deadlines: ServiceClass = field(default_factory=lambda: ServiceClass(name="all"))

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid."""
        exclusive = [cluster.name for cluster in grid.clusters if cluster.node_exclusive]
        return f"{', '.join(exclusive)} gives whole nodes to jobs" if exclusive else ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""
        merged, home = grid.at_unit_speed()
        slowest = min(cluster.speed for cluster in grid.clusters)
        due = draw_deadlines(merged, [self.deadlines], seed=grid.seed, slowest=slowest)
        policy = replace(self.multicluster, seed=grid.seed)
        run = simulate_multicluster(merged, grid.clusters, due, policy, entry=home, measure=False)
        verify(run)
        plans = run.sizes["round"] * len(grid.clusters)
        asked = len(merged) * len(grid.clusters) if policy.dispatcher == "dll" else 0
        return run, float(len(merged) + plans + asked)


@dataclass(frozen=True, kw_only=True)
class Calendared:
    """Imprecise calendars on two levels: local managers below one manager of all machines.

    Parameters
    ----------
    options : CalendarOptions
        Slots and conventions.
    promote_share : float
        A job goes up if it asks for more than this share of the processors of its machine.
    promote_duration : int
        A job goes up if its estimate is so many seconds or more.
    placement : {"lowest", "unbiased"}
        See `gridsched.schedulers.calendars.Manager`.
    """

    options: CalendarOptions = field(
        default_factory=lambda: CalendarOptions(slots=SlotPlan.doubling(60, 60, 8))
    )
    promote_share: float = 1 / 3
    promote_duration: int = 43_200
    placement: Literal["lowest", "unbiased"] = "unbiased"

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid."""
        exclusive = [cluster.name for cluster in grid.clusters if cluster.node_exclusive]
        return f"{', '.join(exclusive)} gives whole nodes to jobs" if exclusive else ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""
        local = [
            Manager(
                name=f"manager of {cluster.name}",
                children=[cluster],
                promote_processors=int(self.promote_share * cluster.processors),
                promote_duration=round(self.promote_duration * cluster.speed),
            )
            for cluster in grid.clusters
        ]
        root = Manager(name="all machines", children=local, placement=self.placement)
        run = simulate_calendars(
            grid.each_at_unit_speed(),
            root,
            self.options,
            estimates="requested",
            align=grid.align,
            seed=grid.seed,
        )
        verify(run)
        return run, float(run.attrs["messages"])


@dataclass(frozen=True, kw_only=True)
class Dynamic:
    """A dynamic grid: local jobs first, grid jobs on neighbours, preemption and migration."""

    graph: GraphName = "complete"
    options: DynamicGrid = field(default_factory=DynamicGrid)

    def unfit_for(self, grid: Grid) -> str:
        """Why it cannot schedule such a grid."""
        if len({cluster.speed for cluster in grid.clusters}) > 1:
            return "machines differ in speed"
        exclusive = [cluster.name for cluster in grid.clusters if cluster.node_exclusive]
        return f"{', '.join(exclusive)} gives whole nodes to jobs" if exclusive else ""

    def run(self, grid: Grid) -> tuple[xr.Dataset, float]:
        """A verified run, and the number of messages."""
        run = simulate_dynamic_grid(
            grid.each_at_unit_speed(), grid.clusters, self.graph, self.options, align=grid.align
        )
        verify_dynamic(run)
        return run, float(run.attrs["messages"])


def play(contender: Contender, grid: Grid) -> xr.Dataset:
    """What a contender makes of a grid, job by job.

    Parameters
    ----------
    contender : Contender
        The grid scheduler.
    grid : Grid
        Machines and jobs.

    Returns
    -------
    xarray.Dataset
        On `job`, in the order of submission (`Grid.fused`): start_time (when it first runs) and end_time in
        seconds, -1 for a job that never ran to its end; moved, whether it ran elsewhere than at home (-1
        where no machine can be named). Attributes: messages, jobs_not_run.

    Raises
    ------
    ConfigurationError
        If the contender cannot schedule such a grid.
    """
    reason = contender.unfit_for(grid)
    if reason:
        raise ConfigurationError(f"{contender!r} cannot schedule this grid: {reason}")
    _, home = grid.fused()
    run, messages = contender.run(grid)
    ran = np.asarray(run["start_time"].to_numpy() >= 0)
    if "outcome" in run:
        ran &= run["outcome"].to_numpy() == FINISHED
    whole = xr.Dataset(
        {
            "start_time": ("job", np.where(ran, run["start_time"].to_numpy(), results.NO_TIME)),
            "end_time": ("job", np.where(ran, run["end_time"].to_numpy(), results.NO_TIME)),
            "moved": ("job", np.where(ran, _moved(run, home), 0).astype(np.int8)),
        },
        attrs={"messages": messages, "jobs_not_run": int((~ran).sum())},
    )
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
