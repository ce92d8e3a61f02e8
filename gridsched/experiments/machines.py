"""Clusters of a study as they are in a run: with nodes and failures; and what these made of the jobs.

Workloads are prepared once for all scenarios that differ in nodes and failures alone, which are added when a
run begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.experiments.collection import attrs_of
from gridsched.experiments.parts import ClusterConfig, FailuresConfig
from gridsched.experiments.prepare import derived_seed
from gridsched.nodes import NodeEvent, draw_failures, read_events
from gridsched.platform import Cluster
from gridsched.submission import AlignName
from gridsched.traces import merge_workloads
from gridsched.workloads import Workload

FATES: dict[str, str] = {
    "executions_killed": "executions that failing nodes killed",
    "extra_work_share": "work that was lost or spent on checkpoints, relative to that of the jobs that ended",
    "jobs_gave_up": "jobs whose users gave up waiting",
    "jobs_never_eligible": "jobs that waited for a job which did not end as they needed",
    "jobs_lost": "jobs that were lost when a node failed",
    "jobs_starved": "jobs whose nodes never came back",
}
"""Job outcomes in a run in which nodes fail, users give up or jobs wait for others: long names."""

_DRAWN_UNTIL = 2
"""Failures are drawn for so many times the time in which jobs are submitted."""


def machines(
    pairs: Sequence[tuple[Workload, Cluster]],
    configs: Sequence[ClusterConfig],
    align: AlignName,
    seed: int,
    replicate: int = 0,
) -> list[Cluster]:
    """The clusters of a grid with their nodes and failures.

    Parameters
    ----------
    pairs : sequence of (Workload, Cluster)
        As prepared.
    configs : sequence of ClusterConfig
        What the study says of each cluster.
    align : {"start", "clock", "none"}
        How the submit times of the workloads go together; failures are by the same clock.
    seed : int
        Seed of the whole configuration.
    replicate : int
        Failures of replicates are drawn apart.
    """
    if all(config.failures is None for config in configs):
        return [_with_nodes(cluster, config) for (_, cluster), config in zip(pairs, configs, strict=True)]
    merged, home = merge_workloads([workload for workload, _ in pairs], align=align)
    window = int(merged.submit_time[0]), int(merged.submit_time[-1])
    made = []
    for index, ((workload, cluster), config) in enumerate(zip(pairs, configs, strict=True)):
        own = merged.submit_time[home == index]
        shift = int(own[0] - workload.submit_time[0]) if len(own) else 0
        made.append(_equipped(cluster, config, window, shift, seed, f"{cluster.name}\n{replicate}"))
    return made


def machines_of_stream(
    submit_time: NDArray[np.int64],
    clusters: Sequence[Cluster],
    configs: Sequence[ClusterConfig],
    seed: int,
    replicate: int = 0,
) -> list[Cluster]:
    """The clusters that jobs of these submit times share, with nodes and failures, see `machines`."""
    window = int(submit_time[0]), int(submit_time[-1])
    return [
        _equipped(cluster, config, window, 0, seed, f"{cluster.name}\n{replicate}")
        for cluster, config in zip(clusters, configs, strict=True)
    ]


def _with_nodes(cluster: Cluster, config: ClusterConfig) -> Cluster:
    if not config.nodes:
        return replace(cluster, placement=config.placement)
    nodes = [each.made() for each in config.nodes]
    return replace(cluster, nodes=nodes, processors=0, processors_per_node=1, placement=config.placement)


def _equipped(
    cluster: Cluster,
    config: ClusterConfig,
    window: tuple[int, int],
    shift: int,
    seed: int,
    drawn: str,
) -> Cluster:
    cluster, failures = _with_nodes(cluster, config), config.failures
    if failures is None:
        return cluster
    if config.processors_per_node is not None:
        cluster = replace(cluster, processors_per_node=config.processors_per_node)
    events = (
        _drawn(cluster, failures, window, derived_seed(seed, f"failures {failures.seed}\n{drawn}"))
        if failures.events is None
        else shifted(read_events(failures.events), shift)
    )
    return replace(
        cluster,
        events=events,
        requeue=failures.requeue,
        checkpoint_interval=failures.checkpoint_interval,
        checkpoint_cost=failures.checkpoint_cost,
    )


def _drawn(cluster: Cluster, failures: FailuresConfig, window: tuple[int, int], seed: int) -> list[NodeEvent]:
    """Failures from the first submission on."""
    first, last = window
    assert failures.mean_time_between is not None
    events = draw_failures(
        cluster.node_names,
        until=_DRAWN_UNTIL * (last - first),
        mean_time_between=failures.mean_time_between,
        mean_repair=failures.mean_repair,
        shape=failures.shape,
        rack=failures.rack,
        seed=seed,
    )
    return shifted(events, first)


def shifted(events: Iterable[NodeEvent], shift: int) -> list[NodeEvent]:
    """Events by another clock; what was before its time 0 holds from then on."""
    moved = []
    for event in events:
        start, end = event.start, event.end
        if event.kind == "maintenance":
            start, end = max(start + shift, 0), end + shift
            if end <= 0:
                continue
        moved.append(replace(event, time=max(event.time + shift, 0), start=start, end=end))
    return moved


def fates_of(*runs: xr.Dataset) -> xr.Dataset:
    """The variables of `FATES` for runs with job outcomes, together; none for others."""
    if not all("fate" in run for run in runs):
        return xr.Dataset()
    fate, killed, extra = (
        np.concatenate([run[name].to_numpy() for run in runs]) for name in ("fate", "killed", "extra_work")
    )
    work = np.concatenate([(run["processors"] * run["run_time"]).to_numpy() for run in runs])
    ended = fate == Fate.COMPLETED
    values = {
        "executions_killed": killed.sum(),
        "extra_work_share": extra[ended].sum() / max(work[ended].sum(), 1),
        **{f"jobs_{each.name.lower()}": (fate == each).sum() for each in Fate},
    }
    return xr.Dataset(
        {name: ((), np.float64(values[name]), attrs_of(text, "1")) for name, text in FATES.items()}
    )


def ended(run: xr.Dataset) -> NDArray[np.bool_]:
    """Which jobs of a run ended, not lost, given up or left."""
    started = np.asarray(run["start_time"].to_numpy() >= 0)
    return started & (run["fate"].to_numpy() == Fate.COMPLETED) if "fate" in run else started
