"""The stages of a study of dynamic grids up to its runs: each task calls one of these functions.

Every run has the same jobs in the same order, those of all clusters and those of the grid's own users, so
that runs are compared job by job. What they are compared with first is every cluster on its own, and the
grid's own users on the cluster that their log comes from. Runs are simulated, verified and measured at once:
what is kept are measures. Every schedule follows, bit for bit, from the workloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import measured_run
from gridsched.experiments.machines import fates_of, machines
from gridsched.experiments.prepare import derived_seed
from gridsched.metrics import jobs as metrics
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.measures import (
    GRID_USERS,
    MESSAGES,
    TIMES,
    VARIABLES,
    WEEK,
    summarise_dynamic,
)
from gridsched.systems.dynamic_grid.membership import Stay, draw_membership
from gridsched.systems.dynamic_grid.outcome import FINISHED, REJECTED
from gridsched.systems.dynamic_grid.study.config import (
    ALL_USERS,
    CLUSTER_USERS,
    DYNAMIC,
    DepartureConfig,
    DynamicCase,
    DynamicGridStudy,
)
from gridsched.systems.registry import scheduler_of
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# --- jobs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DynamicPlatform:
    """Clusters with their jobs, and those of the grid's own users.

    Parameters
    ----------
    workloads, clusters : sequence
        Jobs of the users of each cluster, and the clusters.
    stream, stream_cluster : Workload and Cluster, optional
        Jobs of the grid's own users, and the cluster that they come from.
    jobs : Workload
        All jobs in order of submission.
    home : int64[n]
        Index of the cluster of each job, -1 for those of the grid's own users.
    """

    workloads: Sequence[Workload]
    clusters: Sequence[Cluster]
    stream: Workload | None
    stream_cluster: Cluster | None
    jobs: Workload
    home: Integers

    @classmethod
    def of(
        cls, study: DynamicGridStudy, workloads: Mapping[str, str | Path], seed: int = 0
    ) -> DynamicPlatform:
        """Platform of a study from its prepared workloads; its nodes fail alike in all runs."""
        made = {name: results.workload_from_dataset(files.shared(path)) for name, path in workloads.items()}
        jobs, origin = merge_workloads([workload for workload, _ in made.values()], align=study.grid.align)
        own_users = [made[name] for name in study.cluster_names]
        own = study.grid.stream
        stream, stream_cluster = made[own.name] if own is not None else (None, None)
        # nodes are shared, whatever they were on the cluster of the log
        plain = [
            (workload, Cluster(name=name, processors=cluster.processors))
            for name, (workload, cluster) in zip(study.cluster_names, own_users, strict=True)
        ]
        return cls(
            workloads=[workload for workload, _ in own_users],
            clusters=machines(plain, study.grid.clusters, study.grid.align, seed),
            stream=stream,
            stream_cluster=stream_cluster,
            jobs=jobs,
            home=np.where(origin == len(own_users), -1, origin).astype(np.int64),
        )

    @property
    def users(self) -> list[tuple[int, Workload, Cluster]]:
        """Home, jobs and cluster of all users: those of every cluster, and the grid's own."""
        own: list[tuple[int, Workload, Cluster]] = [
            (i, *pair) for i, pair in enumerate(zip(self.workloads, self.clusters, strict=True))
        ]
        if self.stream is not None and self.stream_cluster is not None:
            own.append((-1, self.stream, self.stream_cluster))
        return own

    @property
    def weeks(self) -> int:
        """Weeks with submissions."""
        return int(self.jobs.submit_time.max() - self.jobs.submit_time.min()) // WEEK + 1


def simulate_alone(
    study: DynamicGridStudy,
    policy: str,
    workloads: Mapping[str, str | Path],
    target: str | Path,
    *,
    seed: int = 0,
) -> None:
    """Run the jobs of every cluster there, and those of the grid's own users on their cluster.

    Parameters
    ----------
    study : DynamicGridStudy
        The study.
    policy : str
        Local policy.
    workloads : mapping of name to path
        Results of `gridsched.experiments.prepare.prepare_workload`, in the order of `all_workloads`.
    target : path
        Dataset to write.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    """
    platform = DynamicPlatform.of(study, workloads, seed)
    start, end = (np.full(len(platform.jobs), results.NO_TIME, np.int64) for _ in range(2))
    for home, _, cluster in platform.users:
        place = np.flatnonzero(platform.home == home)
        jobs = platform.jobs.select(place)
        run = simulate(jobs, cluster, policy, estimates=study.estimates[0], overrun=study.overrun)
        verify(run)
        start[place], end[place] = run["start_time"].values, run["end_time"].values
    whole = xr.Dataset(
        {
            "home_cluster": ("job", platform.home),
            "submit_time": ("job", platform.jobs.submit_time),
            "run_time": ("job", platform.jobs.run_time),
            "processors": ("job", platform.jobs.processors),
            "start_time": ("job", start),
            "end_time": ("job", end),
        },
        attrs={"title": f"every site of {study.name} on its own", "policy": policy, "verified": 1},
    )
    whole.attrs.update(results.provenance())
    files.write(whole, target)


# --- runs -----------------------------------------------------------------------------------------


RUN_VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    **{name: described for name, described in VARIABLES.items() if "week" not in described[0]},
    **{name: ((), name.replace("_", " "), "1") for name in MESSAGES},
    "adjacent": (("cluster", "neighbour"), "whether two clusters are neighbours", "1"),
    "cliques": ((), "maximal cliques that were used", "1"),
    "cliques_cut_off": ((), "whether the graph has more", "1"),
    "yield_wait_limit": ((), "superstep, and the cost of moving all tasks of the largest grid job", "s"),
    "yield_wait_share": ((), "longest wait for grid jobs to make place, as a share of its limit", "1"),
    "leave_time_share": ((), "longest time that a leave took, as a share of the same limit", "1"),
    "yield_wait_all": (
        (),
        "mean time that local jobs of all clusters waited for grid jobs to make place",
        "s",
    ),
    "stranded_or_rejected": ((), "jobs that did not end", "1"),
    "grid_suspensions": ((), "times that any job was given back to the grid scheduler", "1"),
    "grid_migrations": ((), "times that tasks of any job moved to neighbours", "1"),
    "utilisation_all": ((), "share of all processors that jobs executed on, over the makespan", "1"),
}
"""Measures of a run: dimensions, long name and unit."""

WEEKLY: dict[str, tuple[str, str]] = {
    "jobs_by_week": ("jobs submitted in a week that ended in the run and on their own machine", "1"),
    **{
        f"{prefix}{name}_by_week": (f"sum of {long_name}s of these jobs{where}", units)
        for prefix, where in (("", ""), ("alone_", ", every site on its own"))
        for name, (long_name, units) in TIMES.items()
    },
}
"""Sums by group of users and week: long name and unit."""

WEEKLY_VARIABLES = {name: (("group", "week"), *text) for name, text in WEEKLY.items()}
"""The same as measures of a run."""


def simulate_run(
    study: DynamicGridStudy,
    case: str,
    values: Mapping[str, Any],
    replicate: int,
    seed: int,
    workloads: Mapping[str, str | Path],
    alone: str | Path,
    target: str | Path,
) -> None:
    """Simulate, verify and measure a case in a replicate.

    Parameters
    ----------
    study : DynamicGridStudy
        The study.
    case : str
        Label of the case.
    values : mapping
        Parameters of the case that are not as by default.
    replicate : int
        Number of the replicate, from 0.
    seed : int
        Seed of the whole configuration.
    workloads : mapping of name to path
        Results of `prepare_workload`.
    alone : path
        Result of `simulate_alone` under the local policy of the case.
    target : path
        Dataset to write.
    """
    platform = DynamicPlatform.of(study, workloads, seed)
    parameters = DynamicCase.model_validate(values)
    run = simulate_case(study, platform, parameters, seed, replicate)
    names = [cluster.name for cluster in platform.clusters]
    own = {
        "users": [*names, GRID_USERS],
        "cluster": names,
        "neighbour": names,
        "group": [*names, GRID_USERS, CLUSTER_USERS, ALL_USERS],
    }
    measures = _measures(platform, parameters, run, files.shared(alone))
    labels = {"case": case, "replicate": replicate}
    measured = measured_run(measures, {**RUN_VARIABLES, **WEEKLY_VARIABLES}, labels, own)
    files.write(measured.merge(fates_of(run), combine_attrs="override"), target)


def simulate_case(
    study: DynamicGridStudy, platform: DynamicPlatform, case: Any, seed: int, replicate: int
) -> xr.Dataset:
    """One verified run; random numbers are the same for all cases of a replicate."""

    def drawn(what: str) -> int:
        return derived_seed(seed, f"{study.name}\n{what}\n{replicate}")

    graph = study.graph_of(case.graph, drawn(f"graph {case.graph}"))
    if case.scheduler != DYNAMIC:
        return _superscheduled(study, platform, case, graph, drawn("homes"))
    membership: dict[str, Any] = {}
    if case.mean_stay is not None:
        membership = dict(
            draw_membership(
                study.cluster_names,
                int(platform.jobs.submit_time.max()),
                mean_stay=case.mean_stay,
                mean_absence=case.mean_absence,
                seed=drawn("membership"),
                lease=case.lease,
            )
        )
    if case.without is not None:
        membership[case.without] = []
    return _dynamic(study, platform, case, graph, membership, drawn("share"))


def _dynamic(
    study: DynamicGridStudy,
    platform: DynamicPlatform,
    case: Any,
    graph: Any,
    membership: Mapping[str, Sequence[Stay]],
    seed: int,
) -> xr.Dataset:
    """A verified run of a dynamic grid."""
    run = simulate(
        [*platform.workloads, platform.stream if case.stream else None],
        Platform(platform.clusters, links=graph, membership=membership).with_policy(case.local),
        case.options(),
        seed=seed,
        estimates=study.estimates[0],
        align=study.grid.align,
        overrun=case.overrun,
        times="unit",
    )
    verify(run)
    return run


# --- the superscheduler ---------------------------------------------------------------------------


def _superscheduled(
    study: DynamicGridStudy, platform: DynamicPlatform, case: Any, graph: Any, seed: int
) -> xr.Dataset:
    """A verified run of the same jobs under a superscheduler, as one of a dynamic grid.

    Every job needs a home there. Those of the grid's own users are submitted at clusters drawn at random
    among those that can hold them, in proportion to their processors.
    """
    clusters = len(platform.clusters)
    chosen = np.flatnonzero(platform.home >= 0) if not case.stream else np.arange(len(platform.home))
    home = _homes(platform, seed)
    places = [chosen[home[chosen] == i] for i in range(clusters)]
    names = [cluster.name for cluster in platform.clusters]
    partners = {name: sorted(graph.neighbors(name), key=names.index) for name in names}
    scheduler: Any = scheduler_of(case.scheduler)
    run = simulate(
        [platform.jobs.select(place) for place in places],
        Platform(platform.clusters).with_policy(case.local),
        replace(scheduler, partners=partners),
        estimates=study.estimates[0],
        align="none",
        overrun=case.overrun,
    )
    verify(run)
    # the run has its jobs in order of submission and cluster; ours have the grid's own users last
    gathered = np.concatenate(places)
    order = gathered[np.argsort(platform.jobs.submit_time[gathered], kind="stable")]
    back = np.argsort(order, kind="stable")
    rank = np.empty(len(back), np.int64)
    rank[back] = np.arange(len(back))
    segments = {name: run[name] for name in run.data_vars if str(name).startswith("segment_")}
    run = run.drop_dims("segment").isel(job=back).assign(segments)
    run["segment_job"] = ("segment", rank[run["segment_job"].values], run["segment_job"].attrs)
    run["home_cluster"] = ("job", platform.home[chosen])
    return _as_dynamic(run, graph, names)


def _homes(platform: DynamicPlatform, seed: int) -> Integers:
    """Cluster of each job; for those of the grid's own users one drawn at random."""
    processors = np.array([cluster.processors for cluster in platform.clusters], np.int64)
    fits = processors[None, :] >= platform.jobs.processors[:, None]
    weight = np.where(fits, processors, 0).astype(np.float64)
    weight[~fits.any(axis=1), int(processors.argmax())] = 1.0
    edges = weight.cumsum(axis=1)
    drawn = np.random.default_rng(seed).random(len(edges)) * edges[:, -1]
    home: Integers = (edges <= drawn[:, None]).sum(axis=1).astype(np.int64)
    return np.where(platform.home >= 0, platform.home, home)


def _as_dynamic(run: xr.Dataset, graph: Any, names: Sequence[str]) -> xr.Dataset:
    """A run of a superscheduler with the variables of a dynamic grid, in which nothing is preempted."""
    jobs, segments = run.sizes["job"], run.sizes["segment"]
    home, submit = run["home_cluster"].values, run["submit_time"].values
    cluster = np.full(jobs, -1, np.int64)
    cluster[run["segment_job"].values] = run["segment_cluster"].values
    away = (cluster != home) & (cluster >= 0)
    sent = np.where(away, submit, -1)
    none, never = np.zeros(jobs, np.int64), np.full(jobs, -1, np.int64)
    of_jobs = {
        "outcome": np.where(run["start_time"].values >= 0, FINISHED, REJECTED),
        "sent_time": sent,
        "head_time": sent,
        "yield_time": never,
        **dict.fromkeys(
            ("suspensions", "migrations", "tasks_moved", "multi_site_time", "extra_work", "lost_work"), none
        ),
    }
    counters = ("tasks_out", "tasks_in", "evictions", "asked", "refused")
    empty = np.empty(0, np.int64)
    adjacent = np.array([[graph.has_edge(one, other) for other in names] for one in names], np.int8)
    whole = run.assign(
        {
            **{name: ("job", values) for name, values in of_jobs.items()},
            "segment_held": ("segment", np.zeros(segments, np.int8)),
            **{f"cluster_{name}": ("cluster", np.zeros(len(names), np.int64)) for name in counters},
            **{f"event_{name}": ("event", empty) for name in ("time", "cluster", "kind", "done")},
            **{f"proxy_{name}": ("proxy", empty) for name in ("cluster", "begin", "end")},
            "adjacent": (("cluster", "neighbour"), adjacent),
        }
    )
    whole.attrs.update({**dict.fromkeys(MESSAGES, np.nan), "cliques": np.nan, "cliques_cut_off": 0})
    return whole


# --- measures -------------------------------------------------------------------------------------


def _measures(platform: DynamicPlatform, case: Any, run: xr.Dataset, alone: xr.Dataset) -> dict[str, Any]:
    """Values of `RUN_VARIABLES` and `WEEKLY`."""
    summary = summarise_dynamic(run, weeks=platform.weeks)
    values: dict[str, Any] = {name: summary[name].values for name in (*VARIABLES, *MESSAGES)}
    limit = _yield_limit(case, run)
    capacity = float(run["cluster_processors"].sum()) * float(summary["makespan"])
    yielded = values["jobs_yielded_to"]
    waits = np.nansum(values["yield_wait_mean"] * yielded)
    return {
        **values,
        "adjacent": run["adjacent"].values,
        "cliques": run.attrs["cliques"],
        "cliques_cut_off": run.attrs["cliques_cut_off"],
        "yield_wait_limit": limit,
        "yield_wait_share": _largest(values["yield_wait_max"]) / limit,
        "leave_time_share": _largest(values["leave_time_max"]) / limit,
        "yield_wait_all": waits / yielded.sum() if yielded.sum() else np.nan,
        "stranded_or_rejected": values["jobs_stranded"].sum() + values["jobs_rejected"].sum(),
        "grid_suspensions": values["suspensions"].sum(),
        "grid_migrations": values["migrations"].sum(),
        "utilisation_all": values["flow_work"].sum() / capacity,
        **_weekly(platform, run, alone),
    }


def _largest(values: Floats) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else np.nan


def _yield_limit(case: Any, run: xr.Dataset) -> float:
    """Longest time [s] that the model lets a local job wait for grid jobs that make place."""
    each = max(case.migration_cost, case.migration_cost if case.resume_cost is None else case.resume_cost)
    grid = run["processors"].values[run["sent_time"].values >= 0]
    return float(case.superstep + np.ceil(each * grid.max(initial=0)))


def _weekly(platform: DynamicPlatform, run: xr.Dataset, alone: xr.Dataset) -> dict[str, Floats]:
    """Sums by group of users and week over the jobs that ended in the run and on their own cluster."""
    if run.sizes["job"] < alone.sizes["job"]:
        alone = alone.isel(job=alone["home_cluster"].values >= 0)
    ours, theirs = metrics.job_metrics(run), metrics.job_metrics(alone)
    both = np.isfinite(theirs["response_time"]) & np.isin(run["outcome"].values, (1, 2))
    clusters, weeks = len(platform.clusters), platform.weeks
    home = np.where(run["home_cluster"].values < 0, clusters, run["home_cluster"].values)
    week = (run["submit_time"].values - platform.jobs.submit_time.min()) // WEEK
    index = (home * weeks + week)[both]

    def sums(values: Floats) -> Floats:
        of_users = np.bincount(index, values[both], (clusters + 1) * weeks).reshape(clusters + 1, weeks)
        of_clusters = of_users[:clusters].sum(axis=0)
        return np.vstack([of_users, of_clusters, of_clusters + of_users[clusters]])

    values = {"jobs_by_week": sums(np.ones(len(home)))}
    for name in TIMES:
        values[f"{name}_by_week"] = sums(ours[name])
        values[f"alone_{name}_by_week"] = sums(theirs[name])
    return values


# --- a departure ----------------------------------------------------------------------------------

KINDS: tuple[Literal["local", "grid", "held"], ...] = ("local", "grid", "held")
"""What processors of a cluster are used for: local jobs, grid jobs, tasks on their way."""


def simulate_departure(
    study: DynamicGridStudy, seed: int, workloads: Mapping[str, str | Path], target: str | Path
) -> None:
    """Run the default case with a cluster that leaves once and comes back, and keep what happens there.

    Parameters
    ----------
    study : DynamicGridStudy
        The study.
    seed : int
        Seed of the whole configuration.
    workloads : mapping of name to path
        Results of `prepare_workload`.
    target : path
        Dataset to write: the processors in use on each cluster from one change to the next, tasks that moved
        from the cluster and where they went, and proxies.
    """
    assert study.departure is not None
    leave = study.departure
    platform = DynamicPlatform.of(study, workloads, seed)
    stays = [Stay(begin=0, end=leave.time), Stay(begin=leave.time + leave.absence)]
    drawn = derived_seed(seed, f"{study.name}\ngraph {study.default.graph}\n0")
    graph = study.graph_of(study.default.graph, drawn)
    run = _dynamic(study, platform, study.default, graph, {leave.site: stays}, drawn)
    whole = _departure(run, leave, study.cluster_names)
    whole.attrs = {
        "title": f"{leave.site} leaves the grid of {study.name}",
        "departure_site": leave.site,
        "departure_time": leave.time,
        "departure_absence": leave.absence,
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
