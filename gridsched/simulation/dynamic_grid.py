"""Simulate workloads on a dynamic grid: what users call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine import dynamic_state
from gridsched.engine.records import FOREVER, JOB
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers.dynamic_grid import GRID, DynamicGrid, DynamicSchedule, schedule_dynamic_grid
from gridsched.schedulers.grid_graphs import GraphName, grid_graph
from gridsched.schedulers.membership import Membership
from gridsched.simulation.clusters import EstimateName, believed, check_clean, check_limits
from gridsched.traces.fusing import fuse
from gridsched.workloads.table import Workload

OUTCOMES: tuple[str, ...] = ("rejected", "finished", "stopped", "stranded")
"""What the numbers of the variable `outcome` mean."""

REJECTED, FINISHED, STOPPED, STRANDED = range(len(OUTCOMES))

_JOB_VARIABLES: dict[str, tuple[str, str]] = {
    "home_cluster": ("index of the cluster of submission, -1 for the grid's own workload", "1"),
    "outcome": ("what became of the job: 0 rejected, 1 finished, 2 stopped, 3 stranded", "1"),
    "reach_processors": ("processors of the largest clique that the job may use", "1"),
    "sent_time": ("time when the job came to the grid scheduler, -1 if never", "s"),
    "head_time": ("time when its local scheduler first found that it cannot start, -1 if never", "s"),
    "yield_time": ("time when grid jobs were first told to make place for it, -1 if never", "s"),
    "suspensions": ("times that the job was given back to the grid scheduler", "1"),
    "migrations": ("times that tasks of the job moved to neighbours", "1"),
    "tasks_moved": ("tasks that moved to neighbours", "1"),
    "multi_site_time": ("time executed on several clusters", "s"),
    "extra_work": ("processor-seconds executed beyond run time x processors", "s"),
    "lost_work": ("processor-seconds executed and lost", "s"),
    "kept_from": ("what was executed before this time was lost, -1 if nothing was", "s"),
}

_CLUSTER_VARIABLES: dict[str, tuple[str, str]] = {
    "sent": ("local jobs sent to the grid scheduler", "1"),
    "evictions": ("parts of grid jobs that had to leave", "1"),
    "tasks_out": ("tasks that moved to neighbours", "1"),
    "tasks_in": ("tasks that came from neighbours", "1"),
    "suspensions": ("evictions for which no neighbour had processors", "1"),
    "inquiries": ("neighbours asked for processors", "1"),
    "asked": ("confirmations that the grid scheduler asked for", "1"),
    "refused": ("confirmations refused", "1"),
}

_EVENT_VARIABLES: dict[str, tuple[str, str]] = {
    "time": ("time of the event", "s"),
    "cluster": ("index of the cluster", "1"),
    "kind": ("0 joins, 1 renews its lease, 2 leaves", "1"),
    "lease": ("end of the lease, -1 without", "s"),
    "done": ("time when a cluster that left had no grid job any more, -1 if it came back before", "s"),
}

_PROXY_VARIABLES: dict[str, tuple[str, str]] = {
    "job": ("index of the job", "1"),
    "cluster": ("index of the cluster that tasks left", "1"),
    "tasks": ("tasks that left", "1"),
    "begin": ("time when they left", "s"),
    "end": ("time when the job ended or was suspended", "s"),
}


def simulate_dynamic_grid(
    workloads: Sequence[Workload | None],
    clusters: Sequence[Cluster],
    graph: GraphName | Any = "complete",
    options: DynamicGrid | None = None,
    *,
    grid_workload: Workload | None = None,
    grid_share: float = 0.0,
    seed: int = 0,
    membership: Membership | None = None,
    estimates: EstimateName = "requested",
    align: Literal["start", "clock", "none"] = "start",
) -> xr.Dataset:
    """Run the workloads of several clusters, and one of the grid, on a dynamic grid.

    Parameters
    ----------
    workloads : sequence of Workload or None
        Clean jobs that users submit to each cluster; None for a cluster without users of its own.
    clusters : sequence of Cluster
        The clusters, one for each workload, all of the same speed.
    graph : str or networkx.Graph
        Which clusters are neighbours: ``isolated``, ``ring``, ``complete``, or a graph whose vertices are
        their names (see `gridsched.schedulers.grid_graphs`).
    options : DynamicGrid, optional
        Parameters; the defaults if not given.
    grid_workload : Workload, optional
        Clean jobs that are submitted to the grid scheduler.
    grid_share : float
        Share of the jobs of each cluster that users submit to the grid scheduler instead, drawn at random.
        The jobs drawn for a share are among those for a larger one.
    seed : int
        Of the drawing.
    membership : mapping of cluster name to stays, optional
        When clusters belong to the grid, in seconds of the merged workload; always if not given.
    estimates : {"requested", "actual", "clairvoyant"}
        What the schedulers believe of run times, see `gridsched.simulate`.
    align : {"start", "clock", "none"}
        How submit times of the workloads go together, see `gridsched.traces.fuse`.

    Returns
    -------
    xarray.Dataset
        A run dataset, see `gridsched.results.run_dataset`, in which grid jobs have several segments: one for
        each cluster and each spell there, and those in which processors are only held (`segment_held`).
        `run_time` is that on one cluster; jobs are executed for `extra_work` more because of overhead, and
        because work was lost. Besides, job variables say what happened to each job (see their long names);
        cluster variables `cluster_...` count events; `adjacent` (cluster, neighbour) is the graph;
        `event_...` are joins, renewals and leaves; `proxy_...` are proxies.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If clusters, workloads, graph and stays do not go together, or an option is wrong.
    """
    options = options or DynamicGrid()
    if len(workloads) != len(clusters):
        raise ConfigurationError(
            f"{len(workloads)} workloads for {len(clusters)} clusters; give one (or None) for each"
        )
    if not 0 <= grid_share <= 1:
        raise ConfigurationError(f"grid_share is {grid_share}; use a share from 0 to 1")
    if isinstance(graph, str):
        graph = grid_graph([cluster.name for cluster in clusters], cast(GraphName, graph))
    merged, home = _merged([*workloads, grid_workload], align)
    run = np.asarray(merged.run_time, np.int64)
    requested = np.asarray(merged.requested_time, np.int64)
    jobs = np.empty(len(merged), JOB)
    for cluster in clusters:
        run_time = cluster.duration(run)
        estimate = cluster.duration(believed(run, requested, estimates))
        check_limits(merged, cluster, run_time, estimate)
    jobs["submit"] = merged.submit_time
    jobs["run"] = run_time
    jobs["estimate"] = estimate
    jobs["processors"] = merged.processors
    drawn = np.random.default_rng(seed).random(len(merged)) < grid_share
    done = schedule_dynamic_grid(jobs, np.where(drawn, GRID, home), clusters, graph, options, membership)
    attributes = {
        "scheme": "dynamic-grid",
        "estimates": estimates,
        "grid_share": float(grid_share),
        "seed": seed,
        "jobs_without_requested_time": int((requested <= 0).sum()),
        **{field.name: _plain(getattr(options, field.name)) for field in fields(options)},
        "membership": _as_text(membership),
    }
    return _dataset(merged, home, clusters, jobs, options, done, attributes)


def _merged(
    workloads: Sequence[Workload | None], align: Literal["start", "clock", "none"]
) -> tuple[Workload, NDArray[np.int64]]:
    """All jobs in order of submission with the cluster of each; the last workload is the grid's."""
    given = [(index, workload) for index, workload in enumerate(workloads) if workload is not None]
    if not given:
        raise ConfigurationError("no workloads; give one for a cluster, or one for the grid")
    for _, workload in given:
        check_clean(workload)
    merged, origin = fuse([workload for _, workload in given], align=align)
    home = np.array([index for index, _ in given], np.int64)[origin]
    return merged, np.where(home == len(workloads) - 1, GRID, home)


def _plain(value: Any) -> Any:
    """Option as netCDF can hold it."""
    if value is None:
        return "none"
    return int(value) if isinstance(value, bool) else value


def _as_text(membership: Membership | None) -> str:
    """Stays in JSON, for the attributes of a run."""
    stays = {
        name: [[int(stay.begin), stay.end if stay.end is None else int(stay.end)] for stay in own]
        for name, own in (membership or {}).items()
    }
    return json.dumps(stays, sort_keys=True)


def _dataset(
    merged: Workload,
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    jobs: NDArray[Any],
    options: DynamicGrid,
    done: DynamicSchedule,
    attributes: dict[str, Any],
) -> xr.Dataset:
    """The run dataset of a schedule."""
    progress = done.progress
    segments = _segments(home, jobs, done)
    run_time = _run_time(jobs, options, progress)
    outcome = _outcome(jobs, run_time, progress)
    executed = np.where(progress["sent"] >= 0, progress["single"] + progress["multi"], run_time)
    started = progress["start"] >= 0
    columns = {
        "home_cluster": home,
        "outcome": outcome,
        "reach_processors": _reach(home, jobs, clusters, outcome, done),
        "sent_time": progress["sent"],
        "head_time": progress["headed"],
        "yield_time": progress["yielded"],
        "suspensions": progress["suspensions"],
        "migrations": progress["migrations"],
        "tasks_moved": progress["tasks_moved"],
        "multi_site_time": progress["multi"],
        "extra_work": np.where(started, (executed - run_time) * jobs["processors"], 0),
        "lost_work": _lost_work(segments, progress),
        "kept_from": progress["kept_from"],
    }
    counts = {
        "jobs_sent": int(done.sites["sent"].sum()),
        "jobs_stopped": int((outcome == STOPPED).sum()),
        "jobs_stranded": int((outcome == STRANDED).sum()),
        "cliques": done.cliques,
        "cliques_cut_off": int(done.cut_off),
        "largest_clique": done.largest_clique,
        "corrections": done.corrections,
        **_messages(done),
    }
    dataset = results.run_dataset(
        merged,
        clusters,
        cluster=np.zeros(len(jobs), np.int64),
        start_time=progress["start"],
        run_time=run_time,
        estimate=jobs["estimate"].astype(np.int64),
        allocated=merged.processors,
        attributes={**attributes, **counts, "jobs_rejected": int((outcome == REJECTED).sum())},
    )
    described = {
        f"segment_{name}": ("segment", segments[name], dataset[f"segment_{name}"].attrs)
        for name in ("job", "cluster", "processors", "start", "end")
    }
    dataset = dataset.drop_dims("segment").assign(described)
    held = {"long_name": "whether processors are held without execution: tasks move", "units": "1"}
    return dataset.assign(
        {
            "segment_held": ("segment", segments["held"], held),
            "end_time": ("job", _end_time(segments, progress), dataset["end_time"].attrs),
            **_described("", "job", _JOB_VARIABLES, columns),
            **_of_clusters(done),
        }
    ).assign_coords(neighbour=("neighbour", dataset["cluster"].to_numpy()))


def _described(
    prefix: str, dimension: str, names: dict[str, tuple[str, str]], columns: Any
) -> dict[str, tuple[str, NDArray[Any], dict[str, str]]]:
    """Variables of one dimension with their attributes."""
    return {
        f"{prefix}{name}": (dimension, columns[name], {"long_name": long_name, "units": units})
        for name, (long_name, units) in names.items()
    }


def _segments(home: NDArray[np.int64], jobs: NDArray[Any], done: DynamicSchedule) -> NDArray[Any]:
    """Segments of all jobs, in order of job, start and cluster."""
    local = np.flatnonzero((done.progress["sent"] < 0) & (done.progress["start"] >= 0))
    own = np.zeros(len(local), dynamic_state.SEGMENT)
    own["job"] = local
    own["cluster"] = home[local]
    own["processors"] = jobs["processors"][local]
    own["start"] = done.progress["start"][local]
    own["end"] = done.progress["finish"][local]
    segments = np.concatenate([own, done.segments])
    return segments[np.lexsort((segments["held"], segments["cluster"], segments["start"], segments["job"]))]


def _run_time(jobs: NDArray[Any], options: DynamicGrid, progress: NDArray[Any]) -> NDArray[np.int64]:
    """Seconds that each job runs on one cluster; of one that is stranded, whole seconds done and kept."""
    run = options.stopped_at(jobs["run"], jobs["estimate"])
    scale = round(options.overhead * dynamic_state.UNIT)
    left = -(-progress["left"] // scale)
    return np.where(
        (progress["state"] == dynamic_state.GRID_QUEUE) & (progress["start"] >= 0), run - left, run
    )


def _outcome(jobs: NDArray[Any], run_time: NDArray[np.int64], progress: NDArray[Any]) -> NDArray[np.int64]:
    """What became of each job."""
    ended = np.where(run_time < jobs["run"], STOPPED, FINISHED)
    outcome = np.where(progress["state"] == dynamic_state.FINISHED, ended, STRANDED)
    return np.where(progress["state"] == dynamic_state.REJECTED, REJECTED, outcome).astype(np.int64)


def _reach(
    home: NDArray[np.int64],
    jobs: NDArray[Any],
    clusters: Sequence[Cluster],
    outcome: NDArray[np.int64],
    done: DynamicSchedule,
) -> NDArray[np.int64]:
    """Processors of the largest clique that each job may use.

    Of a job whose cluster was not in the grid when it was rejected, those of the cluster; of stranded ones,
    those that were left in the end.
    """
    processors = np.array([cluster.processors for cluster in clusters], np.int64)
    reach = np.where(outcome == STRANDED, done.remaining, done.largest_clique)
    alone = (outcome == REJECTED) & (jobs["processors"] <= done.largest_clique)
    return np.where(alone, processors[home], reach)


def _lost_work(segments: NDArray[Any], progress: NDArray[Any]) -> NDArray[np.int64]:
    """Processor-seconds of each job that were executed and lost."""
    lost = (segments["held"] == 0) & (segments["start"] < progress["kept_from"][segments["job"]])
    work = ((segments["end"] - segments["start"]) * segments["processors"])[lost]
    total = np.zeros(len(progress), np.int64)
    np.add.at(total, segments["job"][lost], work)
    return total


def _end_time(segments: NDArray[Any], progress: NDArray[Any]) -> NDArray[np.int64]:
    """Last end of the segments of each job."""
    end = np.full(len(progress), results.NO_TIME, np.int64)
    np.maximum.at(end, segments["job"], segments["end"])
    return end


def _messages(done: DynamicSchedule) -> dict[str, int]:
    """Messages of each kind between clusters and the grid scheduler, and all together."""
    sites, progress = done.sites, done.progress
    counts = {
        "messages_reports": done.reports,
        "messages_confirmations": int(sites["asked"].sum()),
        "messages_dispatches": done.dispatches,
        "messages_inquiries": int(sites["inquiries"].sum()),
        "messages_returns": int(progress["suspensions"].sum()),
        "messages_sent_jobs": int(sites["sent"].sum()),
        "messages_membership": len(done.events),
    }
    return {**counts, "messages": sum(counts.values()), "confirmations_refused": int(sites["refused"].sum())}


def _of_clusters(done: DynamicSchedule) -> dict[str, Any]:
    """What is known of clusters, the graph, members and proxies."""
    events = done.events.copy()
    events["lease"][events["lease"] == FOREVER] = -1
    neighbours = {"long_name": "whether two clusters are neighbours", "units": "1"}
    return {
        **_described("cluster_", "cluster", _CLUSTER_VARIABLES, done.sites),
        "adjacent": (("cluster", "neighbour"), done.adjacent.astype(np.int8), neighbours),
        **_described("event_", "event", _EVENT_VARIABLES, events),
        **_described("proxy_", "proxy", _PROXY_VARIABLES, done.proxies),
    }
