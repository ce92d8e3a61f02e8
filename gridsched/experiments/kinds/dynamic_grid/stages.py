"""Runs of studies of dynamic grids: a case, or every cluster on its own, with all replicates.

Every run has the same jobs in the same order, those of all clusters and those of the grid's own users. What
it is compared with is every cluster on its own, and the grid's own users on the cluster of their workload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import labelled
from gridsched.experiments.kinds.dynamic_grid.config import (
    DYNAMIC,
    DepartureConfig,
    DynamicCase,
    DynamicGraphConfig,
    made_graph,
)
from gridsched.experiments.machines import machines
from gridsched.experiments.measuring import BLOCKS, Measuring, measured
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import derived_seed
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.systems.dynamic_grid.measures import GRID_USERS
from gridsched.systems.dynamic_grid.membership import Stay, draw_membership
from gridsched.systems.registry import scheduler_of
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# --- jobs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class DynamicPlatform:
    """Clusters with their jobs, and those of the grid's own users, in one replicate.

    Parameters
    ----------
    name : str
        Name of the scenario, on which what is drawn depends.
    replicate, seed : int
        Number of the replicate, and seed of the whole configuration.
    workloads, clusters : sequence
        Jobs of the users of each cluster, and the clusters.
    stream, stream_cluster : Workload and Cluster, optional
        Jobs of the grid's own users, and the cluster of their workload.
    align, estimates : str
        See `gridsched.simulate`.
    jobs : Workload
        All jobs in order of submission.
    home : int64[n]
        Index of the cluster of each job, -1 for those of the grid's own users.
    """

    name: str
    replicate: int
    seed: int
    workloads: Sequence[Workload]
    clusters: Sequence[Cluster]
    stream: Workload | None
    stream_cluster: Cluster | None
    align: AlignName
    estimates: Any
    jobs: Workload
    home: Integers

    @property
    def names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.clusters]

    def drawn(self, what: str) -> int:
        """Seed of something, the same in all cases of a replicate."""
        return derived_seed(self.seed, f"{self.name}\n{what}\n{self.replicate}")


def platforms(
    grid: str | Path,
    clusters: Sequence[WorkloadConfig],
    align: AlignName,
    estimates: str,
    seed: int,
    *,
    stream: bool = True,
) -> Iterator[DynamicPlatform]:
    """Clusters and jobs of each replicate; nodes fail alike in all cases.

    Parameters
    ----------
    grid : path
        Result of `gridsched.experiments.prepare.prepare_grids`, the workload of the grid's own users last.
    clusters : sequence of WorkloadConfig
        What the study says of each cluster.
    align, estimates : str
        See `gridsched.simulate`.
    seed : int
        Seed of the whole configuration.
    stream : bool
        Whether the grid has users of its own.
    """
    prepared = files.shared(grid)
    for replicate, pairs in results.grids_from_dataset(prepared).items():
        # nodes are shared, whatever they were on the cluster of the log
        plain = [
            (workload, Cluster(name=cluster.name, processors=cluster.processors))
            for workload, cluster in pairs
        ]
        own, further = plain[: len(clusters)], plain[len(clusters) :] if stream else []
        workloads = [workload for workload, _ in own]
        guests, machine = further[0] if further else (None, None)
        jobs, origin = merge_workloads([*workloads, *([guests] if guests is not None else [])], align=align)
        yield DynamicPlatform(
            name=str(prepared.attrs["scenario"]),
            replicate=replicate,
            seed=seed,
            workloads=workloads,
            clusters=machines(own, clusters, align, seed, replicate),
            stream=guests,
            stream_cluster=machine,
            align=align,
            estimates=estimates,
            jobs=jobs,
            home=np.where(origin == len(own), -1, origin).astype(np.int64),
        )


# --- runs -----------------------------------------------------------------------------------------


def run_case(
    labels: Mapping[str, str],
    grid: str | Path,
    clusters: Sequence[WorkloadConfig],
    case: Mapping[str, Any] | None,
    graph: DynamicGraphConfig | None,
    policy: str,
    stream: bool,
    align: AlignName,
    estimates: str,
    overrun: str,
    parameters: Mapping[str, Any],
    scheduler_parameters: Mapping[str, Any],
    replicates_are: str,
    seed: int,
    target: str | Path,
) -> None:
    """Simulate, verify and measure all replicates of a case, or of every cluster on its own.

    Parameters
    ----------
    labels : mapping
        Scenario and scheduler.
    grid : path
        See `platforms`.
    clusters : sequence of WorkloadConfig
        What the study says of each cluster.
    case : mapping or None
        Parameters of the case that are not as by default; none for every cluster on its own.
    graph : DynamicGraphConfig or None
        Graph of the case, where it is one of the study.
    policy : str
        Local policy of clusters on their own.
    stream : bool
        Whether the jobs of the grid's own users are there.
    align, estimates, overrun : str
        See `gridsched.simulate`.
    parameters, scheduler_parameters : mapping
        Of the scenario and of the scheduler.
    replicates_are : str
        What the replicates are.
    seed : int
        Seed of the whole configuration.
    target : path
        The measures.
    """
    how = Measuring(blocks=BLOCKS if replicates_are == "blocks" else 0)
    parts = []
    for platform in platforms(grid, clusters, align, estimates, seed, stream=stream):
        if case is None:
            run = simulate_alone(platform, policy, overrun)
        else:
            run = simulate_case(platform, DynamicCase.model_validate(case), graph)
        home = run["home_cluster"].values
        groups = {"users of sites": home >= 0}
        groups |= {f"users of {name}": home == i for i, name in enumerate(platform.names)}
        if stream:
            groups[f"users of {GRID_USERS}"] = home < 0
        parts.append(measured(run, how, groups=groups))
    number = pd.RangeIndex(len(parts), name="replicate")
    several = len(parts) > 1 or not how.blocks
    whole = xr.concat(parts, dim=number, join="outer", combine_attrs="drop") if several else parts[0]
    done = labelled(
        whole,
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=estimates,
        scenario_parameters=parameters,
        scheduler_parameters=scheduler_parameters,
        replicates_are=replicates_are,
    )
    files.write(done, target)


def simulate_alone(platform: DynamicPlatform, policy: str, overrun: Any = "doubling") -> xr.Dataset:
    """Verified runs of every cluster on its own, as one run of no system, in the order of all jobs."""
    start, end = (np.full(len(platform.jobs), results.NO_TIME, np.int64) for _ in range(2))
    for home, cluster in [*enumerate(platform.clusters), (-1, platform.stream_cluster)]:
        place = np.flatnonzero(platform.home == home)
        if cluster is None or not len(place):
            continue
        jobs = platform.jobs.select(place)
        run = simulate(jobs, cluster, policy, estimates=platform.estimates, overrun=overrun)
        verify(run)
        start[place], end[place] = run["start_time"].values, run["end_time"].values
    columns = {
        "home_cluster": platform.home,
        "submit_time": platform.jobs.submit_time,
        "run_time": platform.jobs.run_time,
        "processors": platform.jobs.processors,
        "start_time": start,
        "end_time": end,
    }
    return xr.Dataset(
        {
            **{name: ("job", values) for name, values in columns.items()},
            "cluster_processors": ("cluster", [each.processors for each in platform.clusters]),
        },
        {"cluster": platform.names},
    )


def simulate_case(platform: DynamicPlatform, case: Any, graph: DynamicGraphConfig | None) -> xr.Dataset:
    """One verified run; random numbers are the same for all cases of a replicate."""
    links = made_graph(platform.names, case.graph, graph, platform.drawn(f"graph {case.graph}"))
    if case.scheduler != DYNAMIC:
        return _superscheduled(platform, case, links)
    membership: dict[str, Any] = {}
    if case.mean_stay is not None:
        membership = dict(
            draw_membership(
                platform.names,
                int(platform.jobs.submit_time.max()),
                mean_stay=case.mean_stay,
                mean_absence=case.mean_absence,
                seed=platform.drawn("membership"),
                lease=case.lease,
            )
        )
    if case.without is not None:
        membership[case.without] = []
    return _dynamic(platform, case, links, membership)


def _dynamic(
    platform: DynamicPlatform, case: Any, links: Any, membership: Mapping[str, Sequence[Stay]]
) -> xr.Dataset:
    """A verified run of a dynamic grid."""
    run = simulate(
        [*platform.workloads, platform.stream],
        Platform(platform.clusters, links=links, membership=membership).with_policy(case.local),
        case.options(),
        seed=platform.drawn("share"),
        estimates=platform.estimates,
        align=platform.align,
        overrun=case.overrun,
        times="unit",
    )
    verify(run)
    return run


# --- the superscheduler ---------------------------------------------------------------------------


def _superscheduled(platform: DynamicPlatform, case: Any, links: Any) -> xr.Dataset:
    """A verified run of the same jobs under a superscheduler, as one of no system.

    Every job needs a home there. Those of the grid's own users are submitted at clusters drawn at random
    among those that can hold them, in proportion to their processors.
    """
    names, home = platform.names, _homes(platform)
    places = [np.flatnonzero(home == i) for i in range(len(names))]
    partners = {name: sorted(links.neighbors(name), key=names.index) for name in names}
    scheduler: Any = scheduler_of(case.scheduler)
    run = simulate(
        [platform.jobs.select(place) for place in places],
        Platform(platform.clusters).with_policy(case.local),
        replace(scheduler, partners=partners),
        estimates=platform.estimates,
        align="none",
        overrun=case.overrun,
    )
    verify(run)
    # the run has its jobs in order of submission and cluster; ours have the grid's own users last
    gathered = np.concatenate(places)
    order = gathered[np.argsort(platform.jobs.submit_time[gathered], kind="stable")]
    run = run.drop_dims("segment").isel(job=np.argsort(order, kind="stable"))
    run["home_cluster"] = ("job", platform.home)
    del run.attrs["system"]
    return run


def _homes(platform: DynamicPlatform) -> Integers:
    """Cluster of each job; for those of the grid's own users one drawn at random."""
    processors = np.array([cluster.processors for cluster in platform.clusters], np.int64)
    fits = processors[None, :] >= platform.jobs.processors[:, None]
    weight = np.where(fits, processors, 0).astype(np.float64)
    weight[~fits.any(axis=1), int(processors.argmax())] = 1.0
    edges = weight.cumsum(axis=1)
    drawn = np.random.default_rng(platform.drawn("homes")).random(len(edges)) * edges[:, -1]
    home: Integers = (edges <= drawn[:, None]).sum(axis=1).astype(np.int64)
    return np.where(platform.home >= 0, platform.home, home)


# --- a departure ----------------------------------------------------------------------------------

KINDS: tuple[Literal["local", "grid", "held"], ...] = ("local", "grid", "held")
"""What processors of a cluster are used for: local jobs, grid jobs, tasks on their way."""


def simulate_departure(
    grid: str | Path,
    clusters: Sequence[WorkloadConfig],
    case: Mapping[str, Any],
    graph: DynamicGraphConfig | None,
    align: AlignName,
    estimates: str,
    departure: DepartureConfig,
    seed: int,
    target: str | Path,
) -> None:
    """Run a case, first replicate, with a cluster that leaves once and comes back; keep what happens there.

    Parameters
    ----------
    grid, clusters, case, graph, align, estimates, seed
        See `run_case`.
    departure : DepartureConfig
        The cluster, and when it leaves.
    target : path
        Dataset to write: the processors in use on the cluster from one change to the next, tasks that moved
        from there and where they went, and proxies.
    """
    made = DynamicCase.model_validate(case)
    platform = next(platforms(grid, clusters, align, estimates, seed, stream=made.stream))
    stays = [Stay(begin=0, end=departure.time), Stay(begin=departure.time + departure.absence)]
    links = made_graph(platform.names, made.graph, graph, platform.drawn(f"graph {made.graph}"))
    run = _dynamic(platform, made, links, {departure.site: stays})
    whole = _departure(run, departure, platform.names)
    whole.attrs = {
        "title": f"{departure.site} leaves the grid",
        "site": departure.site,
        "absence": departure.absence,
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def _departure(run: xr.Dataset, leave: DepartureConfig, names: Sequence[str]) -> xr.Dataset:
    """What happens around the departure of a cluster."""
    begin, end = leave.time - leave.margin, leave.time + leave.absence + leave.margin
    left = names.index(leave.site)
    start, stop = run["segment_start"].values, run["segment_end"].values
    near = (start < end) & (stop > begin) & (stop > start)
    cluster = run["segment_cluster"].values[near]
    kind = _kinds(run)[near]
    change = np.unique(np.clip(np.concatenate([start[near], stop[near], [begin, end]]), begin, end))
    used = np.zeros((len(names), len(KINDS), len(change)), np.float64)
    processors = run["segment_processors"].values[near].astype(np.float64)
    first = np.searchsorted(change, np.maximum(start[near], begin))
    last = np.searchsorted(change, np.minimum(stop[near], end))
    np.add.at(used, (cluster, kind, first), processors)
    np.add.at(used, (cluster, kind, last), -processors)
    moved, suspended = _evicted(run, left, leave.time)
    of_left = run["proxy_cluster"].values == left
    proxies = np.sort(run["proxy_begin"].values[of_left]), np.sort(run["proxy_end"].values[of_left])
    alive = np.searchsorted(proxies[0], change, "right") - np.searchsorted(proxies[1], change, "right")
    gone = run["event_done"].values[(run["event_kind"].values == 2) & (run["event_cluster"].values == left)]
    described: dict[str, tuple[tuple[str, ...], Any, str, str]] = {
        "departure_used": (
            ("cluster", "use", "change"),
            used.cumsum(axis=-1),
            "processors in use from a change on",
            "1",
        ),
        "departure_proxies": (("change",), alive, "proxies on the site from a change on", "1"),
        "departure_tasks_moved": (("cluster",), moved, "tasks of the site that moved to a neighbour", "1"),
        "departure_jobs_suspended": ((), suspended, "jobs of the site that were suspended", "1"),
        "departure_duration": (
            (),
            float(gone[0] - leave.time) if len(gone) else np.nan,
            "time until the last grid job was gone",
            "s",
        ),
        "departure_processors": (
            ("cluster",),
            run["cluster_processors"].values,
            "processors of the cluster",
            "1",
        ),
    }
    return xr.Dataset(
        {
            name: (dims, np.asarray(data, np.float64), {"long_name": text, "units": units})
            for name, (dims, data, text, units) in described.items()
        },
        {"cluster": list(names), "use": list(KINDS), "change": change - leave.time},
    )


def _kinds(run: xr.Dataset) -> Integers:
    """Index in `KINDS` of each segment."""
    grid = run["sent_time"].values[run["segment_job"].values] >= 0
    return np.where(run["segment_held"].values != 0, 2, grid.astype(np.int64))


def _evicted(run: xr.Dataset, departed: int, time: int) -> tuple[Floats, int]:
    """Tasks that went to each neighbour, and jobs that were suspended, when a cluster left."""
    start, stop = run["segment_start"].values, run["segment_end"].values
    cluster, job = run["segment_cluster"].values, run["segment_job"].values
    done = run["event_done"].values[
        (run["event_kind"].values == 2) & (run["event_cluster"].values == departed)
    ]
    until = int(done[0]) if len(done) and done[0] >= 0 else time
    grid = run["sent_time"].values[job] >= 0
    left = grid & (cluster == departed) & (start <= time) & (stop > time) & (stop <= until)
    moved = np.zeros(run.sizes["cluster"], np.float64)
    suspended = 0
    for j in np.unique(job[left]):
        if run["end_time"].values[j] in stop[left & (job == j)]:
            continue
        gone_at = int(stop[left & (job == j)].max())
        own = job == j
        after = own & (start == gone_at)
        if not after.any():
            suspended += 1
            continue
        before = own & (stop == gone_at)
        for i in range(len(moved)):
            gain = run["segment_processors"].values[after & (cluster == i)].sum()
            gain -= run["segment_processors"].values[before & (cluster == i)].sum()
            moved[i] += max(0, int(gain)) if i != departed else 0
    return moved, suspended
