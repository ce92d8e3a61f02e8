"""Runs of studies of dynamic grids: a case, or every cluster on its own, with all replicates.

Every run has the same jobs in the same order, those of all clusters and those of the grid's own users. What
it is compared with is every cluster on its own, and the grid's own users on the cluster of their workload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, labelled, replicated
from gridsched.experiments.kinds.dynamic_grid.config import (
    ALONE,
    DYNAMIC,
    DepartureConfig,
    DynamicCase,
    DynamicGraphConfig,
)
from gridsched.experiments.machines import machines
from gridsched.experiments.measuring import BLOCKS, Measuring, measured
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import derived_seed
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.systems.dynamic_grid.graphs import grid_graph
from gridsched.systems.dynamic_grid.kernels.state import LEAVE
from gridsched.systems.dynamic_grid.measures import GRID_USERS
from gridsched.systems.dynamic_grid.membership import Membership, Stay, draw_membership
from gridsched.systems.registry import scheduler_of
from gridsched.tables import segments
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload

Integers = NDArray[np.int64]

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
    jobs : Workload
        All jobs in order of submission, with their homes: -1 for those of the grid's own users.
    clusters : sequence of Cluster
        The clusters.
    stream_cluster : Cluster, optional
        The cluster of the workload of the grid's own users, if there are any.
    estimates : str
        See `gridsched.simulate`.
    """

    name: str
    replicate: int
    seed: int
    jobs: Workload
    clusters: Sequence[Cluster]
    stream_cluster: Cluster | None
    estimates: Any

    @property
    def names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.clusters]

    @property
    def home(self) -> Integers:
        """Index of the cluster of each job, -1 for those of the grid's own users."""
        return np.asarray(self.jobs.home, np.int64)

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
        Whether the jobs of the grid's own users are there.
    """
    prepared = files.shared(grid)
    for replicate, pairs in results.grids_from_dataset(prepared).items():
        # nodes are shared, whatever they were on the cluster of the log
        plain = [
            (workload, Cluster(name=cluster.name, processors=cluster.processors))
            for workload, cluster in pairs
        ]
        own, guests = plain[: len(clusters)], plain[len(clusters) :] if stream else []
        jobs, origin = merge_workloads([workload for workload, _ in (*own, *guests)], align=align)
        yield DynamicPlatform(
            name=str(prepared.attrs["scenario"]),
            replicate=replicate,
            seed=seed,
            jobs=replace(jobs, home=np.where(origin == len(own), -1, origin)),
            clusters=machines(own, clusters, align, seed, replicate),
            stream_cluster=guests[0][1] if guests else None,
            estimates=estimates,
        )


# --- runs -----------------------------------------------------------------------------------------


def run_case(
    labels: Mapping[str, str],
    grid: str | Path,
    clusters: Sequence[WorkloadConfig],
    case: Mapping[str, Any],
    graph: DynamicGraphConfig | None,
    align: AlignName,
    estimates: str,
    scheduler_parameters: Mapping[str, Any],
    replicates_are: str,
    seed: int,
    target: str | Path,
) -> None:
    """Simulate, verify and measure all replicates of a case, or of every cluster on its own.

    Parameters
    ----------
    labels : mapping
        Scenario and scheduler; the latter says whether clusters are on their own.
    grid : path
        See `platforms`.
    clusters : sequence of WorkloadConfig
        What the study says of each cluster.
    case : mapping
        Parameters of the case that are not as by default.
    graph : DynamicGraphConfig or None
        Graph of the case, where it is one of the study.
    align, estimates : str
        See `gridsched.simulate`.
    scheduler_parameters : mapping
        Of the scheduler.
    replicates_are : str
        What the replicates are.
    seed : int
        Seed of the whole configuration.
    target : path
        The measures.
    """
    made = DynamicCase.model_validate(case)
    how = Measuring(blocks=BLOCKS if replicates_are == "blocks" else 0)
    parts = []
    for platform in platforms(grid, clusters, align, estimates, seed, stream=made.stream):
        alone = labels["scheduler"] == ALONE
        run = simulate_alone(platform, made) if alone else simulate_case(platform, made, graph)
        home = platform.home
        users = {"sites": home >= 0, **{name: home == i for i, name in enumerate(platform.names)}}
        users |= {GRID_USERS: home < 0} if platform.stream_cluster is not None else {}
        groups = {f"users of {name}": jobs for name, jobs in users.items()}
        parts.append(measured(run, how, groups=groups))
    done = labelled(
        replicated(parts),
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=estimates,
        scenario_parameters={"policy": made.local},
        scheduler_parameters=scheduler_parameters,
        replicates_are=replicates_are,
    )
    files.write(done, target)


def simulate_alone(platform: DynamicPlatform, case: Any) -> xr.Dataset:
    """A verified run of every cluster on its own, also that of the grid's own users, as one of no system."""
    further = [] if platform.stream_cluster is None else [platform.stream_cluster]
    home = np.where(platform.home < 0, len(platform.clusters), platform.home)
    run = simulate(
        replace(platform.jobs, home=home),
        Platform([*platform.clusters, *further]).with_policy(case.local),
        estimates=platform.estimates,
        overrun=case.overrun,
    )
    verify(run)
    run["home_cluster"] = ("job", platform.home)
    return run[_OF_ALONE].isel(cluster=slice(len(platform.clusters))).drop_attrs()


_OF_ALONE = [
    *("home_cluster", "submit_time", "run_time", "processors", "start_time", "end_time"),
    "cluster_processors",
]
"""What is kept of runs of clusters on their own, which are no grid."""


def simulate_case(
    platform: DynamicPlatform,
    case: Any,
    graph: DynamicGraphConfig | None,
    membership: Membership | None = None,
) -> xr.Dataset:
    """One verified run; random numbers are the same for all cases of a replicate.

    Parameters
    ----------
    platform : DynamicPlatform
        Clusters and jobs.
    case : DynamicCase
        The case.
    graph : DynamicGraphConfig or None
        Graph of the case, where it is one of the study.
    membership : mapping, optional
        When clusters are in the grid; by default as the case says.
    """
    drawn = platform.drawn(f"graph {case.graph}")
    links = grid_graph(platform.names, case.graph) if graph is None else graph.made(platform.names, drawn)
    if case.scheduler != DYNAMIC:
        return _superscheduled(platform, case, links)
    run = simulate(
        platform.jobs,
        Platform(
            platform.clusters,
            links=links,
            membership=_membership(platform, case) if membership is None else membership,
        ).with_policy(case.local),
        case.made(),
        seed=platform.drawn("share"),
        estimates=platform.estimates,
        overrun=case.overrun,
        times="unit",
    )
    verify(run)
    return run


def _membership(platform: DynamicPlatform, case: Any) -> Membership:
    """When clusters are in the grid: all, or those that never join it aside, as it is drawn."""
    drawn: Membership = (
        {}
        if case.mean_stay is None
        else draw_membership(
            platform.names,
            int(platform.jobs.submit_time.max()),
            mean_stay=case.mean_stay,
            mean_absence=case.mean_absence,
            seed=platform.drawn("membership"),
            lease=case.lease,
        )
    )
    return drawn if case.without is None else {**drawn, case.without: []}


def _superscheduled(platform: DynamicPlatform, case: Any, links: Any) -> xr.Dataset:
    """A verified run of the same jobs under a superscheduler, as one of no system.

    Every job needs a home there. Those of the grid's own users are submitted at clusters drawn at random
    among those that can hold them, in proportion to their processors.
    """
    names, home = platform.names, _homes(platform)
    scheduler: Any = scheduler_of(case.scheduler)
    partners = {name: sorted(links.neighbors(name), key=names.index) for name in names}
    run = simulate(
        [platform.jobs.select(home == i) for i in range(len(names))],
        Platform(platform.clusters).with_policy(case.local),
        replace(scheduler, partners=partners),
        estimates=platform.estimates,
        align="none",
        overrun=case.overrun,
    )
    verify(run)
    # the run has its jobs in order of submission and cluster; ours have the grid's own users last
    order = np.lexsort((home, platform.jobs.submit_time))
    run = run.drop_dims("segment").isel(job=np.argsort(order))
    run["home_cluster"] = ("job", platform.home)
    del run.attrs["system"]
    return run


def _homes(platform: DynamicPlatform) -> Integers:
    """Cluster of each job; for those of the grid's own users one drawn at random."""
    processors = np.array([cluster.processors for cluster in platform.clusters], np.int64)
    fits = processors >= platform.jobs.processors[:, None]
    # what fits nowhere is submitted at the largest, which rejects it
    fits[~fits.any(axis=1), processors.argmax()] = True
    edges = np.where(fits, processors, 0).astype(np.float64).cumsum(axis=1)
    drawn = np.random.default_rng(platform.drawn("homes")).random(len(edges)) * edges[:, -1]
    return np.where(platform.home >= 0, platform.home, (edges <= drawn[:, None]).sum(axis=1))


# --- a departure ----------------------------------------------------------------------------------

USES = ("local", "grid", "held")
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
    run = simulate_case(platform, made, graph, {departure.site: stays})
    files.write(_departure(run, departure, platform.names), target)


def _departure(run: xr.Dataset, leave: DepartureConfig, names: list[str]) -> xr.Dataset:
    """What happens around the departure of a cluster."""
    begin, end = leave.time - leave.margin, leave.time + leave.absence + leave.margin
    parts = segments(run)
    sent = run["sent_time"].to_numpy()[parts["job"]] >= 0
    parts["use"] = np.select([parts["held"] != 0, sent], ["held", "grid"], "local")
    near = parts[(parts["start"] < end) & (parts["end"] > begin) & (parts["end"] > parts["start"])]
    steps = pd.concat(
        [
            near.assign(change=near["start"].clip(lower=begin)),
            near.assign(change=near["end"].clip(upper=end), processors=-near["processors"]),
        ]
    )
    change = np.union1d([begin, end], steps["change"])
    every = pd.MultiIndex.from_product([names, USES, change])
    used = steps.groupby(["cluster", "use", "change"])["processors"].sum().reindex(every, fill_value=0)
    left = names.index(leave.site)
    proxies = run["proxy_cluster"].to_numpy() == left
    begun, ended = (
        np.searchsorted(np.sort(run[f"proxy_{key}"].to_numpy()[proxies]), change, side="right")
        for key in ("begin", "end")
    )
    leaves = (run["event_kind"] == LEAVE) & (run["event_cluster"] == left)
    gone = [*run["event_done"].to_numpy()[leaves], np.nan][0]
    moved, suspended = _evicted(run, parts[sent], leave, until=gone)
    described: dict[str, tuple[tuple[str, ...], Any, str, str]] = {
        "used": (
            ("cluster", "use", "change"),
            used.to_numpy().reshape(len(names), len(USES), len(change)).cumsum(axis=-1),
            "processors in use from a change on",
            "1",
        ),
        "proxies": (("change",), begun - ended, "proxies on the site from a change on", "1"),
        "tasks_moved": (
            ("cluster",),
            moved.reindex(names, fill_value=0),
            "tasks of the site that moved to a neighbour",
            "1",
        ),
        "jobs_suspended": ((), suspended, "jobs of the site that were suspended", "1"),
        "duration": ((), gone - leave.time, "time until the last grid job was gone", "s"),
        "processors": (("cluster",), run["cluster_processors"], "processors of the cluster", "1"),
    }
    return xr.Dataset(
        {
            f"departure_{name}": (dims, np.asarray(values, np.float64), attrs_of(text, units))
            for name, (dims, values, text, units) in described.items()
        },
        {"cluster": names, "use": list(USES), "change": change - leave.time},
        {
            "title": f"{leave.site} leaves the grid",
            "site": leave.site,
            "absence": leave.absence,
            "verified": 1,
            **results.provenance(),
        },
    )


def _evicted(
    run: xr.Dataset, parts: pd.DataFrame, leave: DepartureConfig, until: float
) -> tuple[pd.Series[int], int]:
    """Tasks that went to each neighbour, and jobs that were suspended, when a cluster left.

    Parameters
    ----------
    run : Dataset
        The run.
    parts : DataFrame
        Segments of grid jobs.
    leave : DepartureConfig
        The cluster, and when it leaves.
    until : float
        When its last grid job was gone.
    """
    there = parts[(parts["cluster"] == leave.site) & (parts["start"] <= leave.time)]
    there = there[(there["end"] > leave.time) & (there["end"] <= until)]
    ended = there["job"][there["end"] == run["end_time"].to_numpy()[there["job"]]]
    gone = there.groupby("job")["end"].max().drop(ended.unique())
    own = parts.assign(gone=parts["job"].map(gone))
    after, before = own[own["start"] == own["gone"]], own[own["end"] == own["gone"]]
    kept, lost = (part.groupby(["job", "cluster"])["processors"].sum() for part in (after, before))
    gain = kept.sub(lost, fill_value=0).clip(lower=0).groupby("cluster").sum()
    return gain.drop(leave.site, errors="ignore"), len(gone) - after["job"].nunique()
