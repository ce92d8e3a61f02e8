"""The conformance cases as gridsched runs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched.conformance.cases import GRID, NONE, Case, CaseSchedule, Job, Part, normalised
from gridsched.errors import ProtocolError
from gridsched.nodes import NodeEvent, NodeType, Partition
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan
from gridsched.systems.dynamic_grid.graphs import graph_of_edges
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.jscheduler.scheduler import JScheduler
from gridsched.systems.superscheduler.scheduler import Superscheduler
from gridsched.verification import verify
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.table import Workload


def run_case(case: Case, variant: str) -> xr.Dataset:
    """Run of a case under one of its variants."""
    return _RUNNERS[case.kind](case, variant)


def answer_case(case: Case, scheduler: Scheduler, column: str, folder: Path) -> None:
    """Write the start times of a case of one cluster under a scheduler, as answers of a column.

    Raises
    ------
    ProtocolError
        If it is in another process and breaks the protocol; with the case.
    """
    (cluster,) = _clusters(case)
    options: dict[str, Any] = {"overrun": case.overrun}
    try:
        run = simulate(workload_of(case, case.jobs), cluster, scheduler, **options)
    except ProtocolError as error:
        raise ProtocolError(f"case {case.name}: {error}") from None
    verify(run)
    rows = zip(run["job_number"].values.tolist(), run["start_time"].values.tolist(), strict=True)
    lines = [f"job,{column}", *(f"{job},{start}" for job, start in rows)]
    (folder / f"{case.name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def schedule_of(run: xr.Dataset) -> CaseSchedule:
    """What a run made of the jobs; on nodes these stand for the clusters."""
    clusters = [str(name) for name in run["cluster"].values]
    numbers = run["job_number"].values.tolist()
    parts: dict[int, list[Part]] = defaultdict(list)
    segments = [run[f"segment_{name}"].values for name in ("job", "cluster", "processors")]
    times = [run[f"segment_{name}"].values for name in ("start", "end")]
    if "piece_segment" in run:
        clusters = [str(name).removesuffix("0") for name in run["node_name"].values]
        of = run["piece_segment"].values
        segments = [segments[0][of], run["piece_node"].values, run["piece_cores"].values]
        times = [each[of] for each in times]
    for job, cluster, processors, start, end in zip(*segments, *times, strict=True):
        parts[numbers[job]].append(Part(clusters[cluster], processors, start, end))
    earliest = run["earliest_time"].values.tolist() if "earliest_time" in run else []
    return CaseSchedule(
        {number: normalised(parts[number]) for number in sorted(numbers)},
        {number: time for number, time in zip(numbers, earliest, strict=False) if time != NONE},
    )


def workload_of(case: Case, jobs: Sequence[Job]) -> Workload:
    """Some jobs of a case as a workload."""
    columns = {name: np.array([getattr(job, name) for job in jobs], np.int64) for name in _COLUMNS}
    homes = [*case.clusters]
    return Workload(
        name=case.name,
        job_number=columns["number"],
        submit_time=columns["submit_time"],
        run_time=columns["run_time"],
        requested_time=columns["requested_time"],
        requested_processors=columns["processors"],
        reserved_start=np.array([job.reservation for job in jobs], np.int64),
        requested_memory=np.where(columns["memory"] < 0, NONE, columns["memory"] * _KIBIBYTES),
        gives_up_time=columns["gives_up_time"] if (columns["gives_up_time"] != NONE).any() else None,
        partition=np.array([homes.index(job.home) + 1 if job.home in homes else NONE for job in jobs]),
        processors_available=sum(cluster.processors for cluster in case.clusters.values()),
    )


_COLUMNS = (
    "number",
    "submit_time",
    "run_time",
    "requested_time",
    "processors",
    "memory",
    "gives_up_time",
)
_KIBIBYTES = 1024


def _clusters(case: Case) -> list[Cluster]:
    return [
        Cluster(name=name, processors=cluster.processors, speed=cluster.speed)
        for name, cluster in case.clusters.items()
    ]


def _workloads(case: Case) -> list[Workload]:
    """The jobs of each home."""
    return [workload_of(case, [job for job in case.jobs if job.home == home]) for home in case.clusters]


def _run_cluster(case: Case, variant: str) -> xr.Dataset:
    policy, passes = variant.split(":")
    (cluster,) = _clusters(case)
    workload = workload_of(case, case.jobs)
    # words of a case file, which are checked where they are used
    options: dict[str, Any] = {"overrun": case.overrun, "passes": passes}
    return simulate(workload, cluster, policy, **options)


def _run_superscheduler(case: Case, variant: str) -> xr.Dataset:
    options = case.options_of(variant)
    policy = options.pop("policy")
    scheme = Superscheduler(**{"scheme": variant, **options})
    return simulate(_workloads(case), Platform(_clusters(case)).with_policy(policy), scheme, align="none")


def _run_self_scheduling(case: Case, variant: str) -> xr.Dataset:
    options = case.options_of(variant)
    policy = options.pop("policy")
    jscheduler = JScheduler(**{"metric": variant, "k": len(case.clusters), **options})
    platform = Platform(_clusters(case)).with_policy(policy)
    return simulate(workload_of(case, case.jobs), platform, jscheduler)


def _run_calendars(case: Case, variant: str) -> xr.Dataset:
    calendars = replace(calendar_options(case, variant), managers=calendar_tree(case))
    return simulate(_workloads(case), _clusters(case), calendars, align="none", times="unit")


def calendar_tree(case: Case) -> Manager | Cluster:
    """The cluster of a case, or a manager above its clusters."""
    clusters = _clusters(case)
    return clusters[0] if len(clusters) == 1 else Manager(name="top", children=clusters)


def calendar_options(case: Case, variant: str) -> Calendars:
    """Slots and rules of the calendars of a case."""
    options = case.options_of(variant)
    levels = [tuple(level) for level in options.pop("slots")]
    return Calendars(slots=SlotPlan(levels=levels), **options)


def _run_dynamic_grid(case: Case, variant: str) -> xr.Dataset:
    homes = {home: [job for job in case.jobs if job.home == home] for home in [*case.clusters, GRID]}
    workloads = {home: workload_of(case, jobs) if jobs else None for home, jobs in homes.items()}
    options = {"policy": "fcfs", **case.options_of(variant)}
    conventions: dict[str, Any] = {"overrun": options.pop("overrun", "doubling")}
    return simulate(
        [*workloads.values()],
        Platform(_clusters(case), links=graph_of_edges([*case.clusters], case.links)),
        DynamicGrid(**options),
        align="none",
        times="unit",
        **conventions,
    )


def _run_nodes(case: Case, variant: str) -> xr.Dataset:
    options = case.options_of(variant)
    # a node type of one node calls it name0
    only = [f"{name}0" for name in options.get("only", case.clusters)]
    cluster = Cluster(
        nodes=[
            NodeType(name=name, cores=node.processors, memory=node.memory)
            for name, node in case.clusters.items()
        ],
        partitions=[Partition(number=NONE, nodes=only)],
        events=[event_of(given) for given in options.get("events", ())],
        requeue=options.get("requeue", "place"),
    )
    numbers = [job.number for job in case.jobs]
    dependencies = [
        (numbers.index(job), numbers.index(on), *rest) for job, on, *rest in options.get("dependencies", ())
    ]
    workload = replace(
        workload_of(case, case.jobs),
        status=np.where(np.isin(numbers, options.get("failed", ())), 0, 1),
        dependencies=dependency_table(dependencies),
    )
    return simulate(workload, cluster, options["policy"])


def event_of(given: Sequence[Any]) -> NodeEvent:
    """An event of a node: time, node, kind, and begin and end of a maintenance window."""
    time, node, kind, *window = given
    start, end = window or (NONE, NONE)
    return NodeEvent(time=time, node=node, kind=kind, start=start, end=end)


_RUNNERS: dict[str, Callable[[Case, str], xr.Dataset]] = {
    "cluster": _run_cluster,
    "superscheduler": _run_superscheduler,
    "self-scheduling": _run_self_scheduling,
    "calendars": _run_calendars,
    "dynamic-grid": _run_dynamic_grid,
    "nodes": _run_nodes,
}
