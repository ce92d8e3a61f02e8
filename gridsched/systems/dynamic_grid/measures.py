"""What a dynamic grid does: waits by users, moved work, tasks and jobs that make way, messages.

Users are those of each cluster and those of the grid; jobs that a local scheduler sent to the grid still
count for the users of their cluster. The label `GRID_USERS` stands for the users of the grid. Work is in
processor-seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.metrics import jobs as metrics
from gridsched.metrics.measure import Measure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

GRID_USERS = "grid"
"""Label of the users of the grid among those of the clusters."""

_REJECTED, _FINISHED, _STOPPED, _STRANDED = range(4)
_LEAVE = 2

TIMES = ("wait_time", "response_time", "bounded_slowdown")
"""Metrics of jobs of which users have means."""

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "jobs": (("home",), "jobs that ended", "1"),
    "jobs_rejected": (("home",), "jobs that were rejected", "1"),
    "jobs_stopped": (("home",), "jobs stopped far over their estimate", "1"),
    "jobs_stranded": (("home",), "jobs left over at the end", "1"),
    "jobs_sent": (("home",), "jobs that a local scheduler sent to the grid", "1"),
    "wait_time_mean": (("home",), "mean wait time", "s"),
    "response_time_mean": (("home",), "mean response time", "s"),
    "bounded_slowdown_mean": (("home",), "mean bounded slowdown", "1"),
    "local_wait_time_mean": (("cluster",), "mean wait time of the jobs that ran as local jobs", "s"),
    "yield_wait_mean": (("cluster",), "mean wait for grid jobs to make place", "s"),
    "yield_wait_max": (("cluster",), "longest wait for grid jobs to make place", "s"),
    "jobs_yielded_to": (("cluster",), "local jobs that grid jobs made place for", "1"),
    "flow_work": (("home", "cluster"), "work executed, by users and by cluster", "s"),
    "work_given": (("cluster",), "work of others that the cluster executed", "s"),
    "work_received": (("cluster",), "work of its users that other clusters executed", "s"),
    "work_balance": (("cluster",), "work received minus work given", "s"),
    "held_work": (("cluster",), "processor-seconds held while tasks were on their way", "s"),
    "lost_work": (("home",), "work executed and lost", "s"),
    "overhead_work": (("home",), "work executed because jobs ran on several clusters", "s"),
    "suspensions": (("home",), "suspensions of grid jobs", "1"),
    "migrations": (("home",), "migrations of grid jobs", "1"),
    "tasks_moved": (("home",), "tasks that moved to neighbours", "1"),
    "tasks_out": (("cluster",), "tasks that left the cluster for a neighbour", "1"),
    "tasks_in": (("cluster",), "tasks that came from a neighbour", "1"),
    "evictions": (("cluster",), "parts of grid jobs that had to leave", "1"),
    "asked": (("cluster",), "confirmations asked for", "1"),
    "refused": (("cluster",), "confirmations refused", "1"),
    "leaves": (("cluster",), "times that the cluster left the grid", "1"),
    "leave_time_mean": (("cluster",), "mean time from leaving until the last grid job was gone", "s"),
    "leave_time_max": (("cluster",), "longest time from leaving until the last grid job was gone", "s"),
    "proxies": (("cluster",), "proxies that tasks left behind", "1"),
    "proxy_time": (("cluster",), "time for which proxies lived, added up", "s"),
    "utilisation": (
        ("cluster",),
        "share of the processors that jobs executed on, first to last submission",
        "1",
    ),
    "multi_site_jobs": (("home",), "jobs that ran on several clusters at once", "1"),
    "makespan": ((), "time from the first submission to the last end", "s"),
}
"""What is measured besides messages: dimensions, long name and unit.

Those of one dimension are called so with `_home` or `_cluster` behind it: users of each cluster and of the
grid, or clusters.
"""

MESSAGES: tuple[str, ...] = (
    "messages",
    "messages_reports",
    "messages_confirmations",
    "messages_dispatches",
    "messages_inquiries",
    "messages_returns",
    "messages_sent_jobs",
    "messages_membership",
    "confirmations_refused",
)
"""Counts of messages that a run has as attributes, and its measures as variables."""


TOTALS: dict[str, tuple[str, str]] = {
    "yield_wait_limit": ("superstep, and the cost of moving all tasks of the largest grid job", "s"),
    "yield_wait_share": ("longest wait for grid jobs to make place, relative to its limit", "1"),
    "leave_time_share": ("longest time that a leave took, relative to the same limit", "1"),
    "yield_wait_of_response": (
        "mean wait for grid jobs to make place, relative to the mean response time",
        "1",
    ),
    "jobs_unfinished": ("jobs that did not end", "1"),
    "cliques": ("maximal cliques that were used", "1"),
    "cliques_cut_off": ("whether the graph has more cliques", "1"),
    "adjacent": ("whether two clusters are neighbours", "1"),
    "cluster_processors": ("processors of the cluster", "1"),
}
"""Measures of the whole run or the graph: words and unit."""

_SUMMED = (
    *("jobs_rejected", "jobs_stopped", "jobs_stranded", "jobs_sent", "jobs_yielded_to", "suspensions"),
    *("migrations", "tasks_moved", "multi_site_jobs", "lost_work", "overhead_work", "held_work"),
    *("tasks_out", "tasks_in", "evictions", "asked", "refused", "leaves", "proxies", "proxy_time"),
)
"""Measures whose sums over users or clusters are those of the run."""

_BETTER_LESS = {
    *("jobs_rejected", "jobs_stopped", "jobs_stranded", "jobs_unfinished", "local_wait_time_mean"),
    *("yield_wait_mean", "yield_wait_max", "yield_wait_share", "yield_wait_of_response", "suspensions"),
    *("lost_work", "overhead_work", "held_work", "leave_time_mean", "leave_time_max", "leave_time_share"),
}

_SHARED = {"jobs", "flow_work", "makespan", "utilisation", *(f"{name}_mean" for name in TIMES)}
"""Variables that are measures of all systems."""

MEASURES: tuple[Measure, ...] = tuple(
    Measure(name, words, unit, "lower" if name in _BETTER_LESS else "")
    for name, (words, unit) in {
        **{name: described[1:] for name, described in VARIABLES.items() if name not in _SHARED},
        **{name: (name.replace("_", " "), "1") for name in MESSAGES},
        **TOTALS,
    }.items()
)
"""Measures of dynamic grids, for studies, tables and figures."""


def dynamic_measures(run: xr.Dataset) -> xr.Dataset:
    """Condense a run of a dynamic grid to what it has of users, of clusters and as a whole.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `scheduler.DynamicGrid`.

    Returns
    -------
    xarray.Dataset
        The variables of `VARIABLES`, on `home` (the clusters, then `GRID_USERS`) and `cluster`; without a
        dimension those of `MESSAGES` and `TOTALS`, and sums over users or clusters. Also `adjacent` on `home`
        and `cluster`. The attributes of the run. Means are NaN where there are no jobs.

    Raises
    ------
    ConfigurationError
        If the run is no run of a dynamic grid.
    """
    _require(run)
    values = _of_jobs(run) | _of_local_jobs(run) | _of_work(run) | _of_clusters(run)
    clusters = run["cluster"].to_numpy()
    labels = {"home": [*map(str, clusters), GRID_USERS], "cluster": clusters}
    found: dict[str, Any] = {
        f"{name}_{dims[0]}" if len(dims) == 1 else name: (
            dims,
            np.asarray(values[name], np.float64),
            {"long_name": long_name, "units": units},
        )
        for name, (dims, long_name, units) in VARIABLES.items()
    }
    for name in MESSAGES:
        found[name] = ((), float(run.attrs[name]), {"long_name": name.replace("_", " "), "units": "1"})
    adjacent = np.vstack([run["adjacent"].to_numpy(), np.zeros((1, len(clusters)))])
    found["adjacent"] = (("home", "cluster"), adjacent.astype(np.float64))
    found["cluster_processors_cluster"] = ("cluster", run["cluster_processors"].to_numpy().astype(np.float64))
    totals = {name: np.sum(values[name]) for name in _SUMMED} | _of_run(run, values)
    return xr.Dataset(found | {name: float(total) for name, total in totals.items()}, labels, run.attrs)


def _of_run(run: xr.Dataset, values: Mapping[str, Any]) -> dict[str, float]:
    """The variables of `TOTALS`, and those of clusters over all clusters."""
    cost = float(run.attrs["parameter_migration_cost"])
    resume = str(run.attrs["parameter_resume_cost"])
    largest = run["processors"].to_numpy()[run["sent_time"].to_numpy() >= 0].max(initial=0)
    each = cost if resume == "None" else max(cost, float(resume))
    limit = float(run.attrs["parameter_superstep"]) + float(np.ceil(each * largest))
    home, ended = run["home_cluster"].to_numpy(), _ended(run)
    response = metrics.job_metrics(run)["response_time"][ended & (home >= 0)]
    yielded = values["jobs_yielded_to"]
    waits = float(np.nansum(values["yield_wait_mean"] * yielded))
    wait = waits / yielded.sum() if yielded.sum() else np.nan
    longest = {name: float(np.fmax.reduce(values[name])) for name in ("yield_wait_max", "leave_time_max")}
    return {
        **longest,
        "yield_wait_mean": wait,
        "yield_wait_limit": limit,
        "yield_wait_share": longest["yield_wait_max"] / limit,
        "leave_time_share": longest["leave_time_max"] / limit,
        "yield_wait_of_response": wait / response.mean() if response.sum() > 0 else np.nan,
        "jobs_unfinished": float((~ended).sum()),
        "cliques": float(run.attrs["cliques"]),
        "cliques_cut_off": float(run.attrs["cliques_cut_off"]),
    }


def _require(run: xr.Dataset) -> None:
    for name in ("home_cluster", "outcome", "segment_held", "event_kind", "proxy_begin", "yield_time"):
        if name not in run:
            raise ConfigurationError(
                f"run {run.attrs.get('title', '')!r}: no variable {name}; give a run of DynamicGrid"
            )


def _users(run: xr.Dataset) -> Integers:
    """Index of the users of each job; those of the grid come last."""
    home = run["home_cluster"].to_numpy()
    return np.where(home < 0, run.sizes["cluster"], home).astype(np.int64)


def _ended(run: xr.Dataset) -> Flags:
    """Whether each job ended."""
    return np.isin(run["outcome"].to_numpy(), (_FINISHED, _STOPPED))


def _sum(users: Integers, values: Any, run: xr.Dataset) -> Floats:
    """Sum for each group of users."""
    return np.asarray(np.bincount(users, values, run.sizes["cluster"] + 1), np.float64)


def _mean_and_longest(cluster: Integers, seconds: Floats, clusters: int) -> tuple[Floats, Floats]:
    """Mean and longest time at each of so many clusters; NaN where there is none."""
    longest = np.full(clusters, np.nan)
    np.fmax.at(longest, cluster, seconds)
    total, count = np.bincount(cluster, seconds, clusters), np.bincount(cluster, minlength=clusters)
    return metrics.quotient(total, count), longest


def _of_jobs(run: xr.Dataset) -> dict[str, Any]:
    users, ended = _users(run), _ended(run)
    outcome = run["outcome"].to_numpy()
    home = run["home_cluster"].to_numpy()
    sent = (home >= 0) & (run["sent_time"].to_numpy() >= 0) & (run["head_time"].to_numpy() >= 0)
    values: dict[str, Any] = {"makespan": metrics.makespan(run), "jobs": _sum(users, ended, run)}
    for name, number in (("rejected", _REJECTED), ("stopped", _STOPPED), ("stranded", _STRANDED)):
        values[f"jobs_{name}"] = _sum(users, outcome == number, run)
    values["jobs_sent"] = _sum(users, sent, run)
    columns = metrics.job_metrics(run)
    for name in TIMES:
        total = _sum(users, np.where(ended, columns[name], 0.0), run)
        values[f"{name}_mean"] = metrics.quotient(total, values["jobs"])
    for name in ("suspensions", "migrations", "tasks_moved", "lost_work"):
        values[name] = _sum(users, run[name].to_numpy(), run)
    values["multi_site_jobs"] = _sum(users, run["multi_site_time"].to_numpy() > 0, run)
    # what is executed besides run time and what was lost is overhead, with the last seconds rounded up
    extra = run["extra_work"].to_numpy() - run["lost_work"].to_numpy()
    values["overhead_work"] = _sum(users, extra, run)
    return values


def _of_local_jobs(run: xr.Dataset) -> dict[str, Any]:
    """How local jobs wait at each cluster."""
    clusters = run.sizes["cluster"]
    local = (run["sent_time"].to_numpy() < 0) & _ended(run)
    home, start = run["home_cluster"].to_numpy(), run["start_time"].to_numpy()
    wait = (start - run["submit_time"].to_numpy()).astype(np.float64)
    yielded = local & (run["yield_time"].to_numpy() >= 0)
    # a job that was killed may have started before grid jobs yield to it
    job, begins = run["segment_job"].to_numpy(), run["segment_start"].to_numpy()
    after = begins >= run["yield_time"].to_numpy()[job]
    next_start = np.full(len(start), np.iinfo(np.int64).max)
    np.minimum.at(next_start, job[after], begins[after])
    waited = (np.maximum(start, next_start) - run["yield_time"].to_numpy()).astype(np.float64)
    mean, longest = _mean_and_longest(home[yielded], waited[yielded], clusters)
    return {
        "local_wait_time_mean": _mean_and_longest(home[local], wait[local], clusters)[0],
        "yield_wait_mean": mean,
        "yield_wait_max": longest,
        "jobs_yielded_to": np.bincount(home[yielded], minlength=clusters),
    }


def _of_work(run: xr.Dataset) -> dict[str, Any]:
    """Who executed whose work."""
    clusters = run.sizes["cluster"]
    job, cluster = run["segment_job"].to_numpy(), run["segment_cluster"].to_numpy()
    seconds = (run["segment_end"].to_numpy() - run["segment_start"].to_numpy()).astype(np.float64)
    work = seconds * run["segment_processors"].to_numpy()
    held = run["segment_held"].to_numpy() != 0
    users = _users(run)[job]
    executed = np.where(held, 0.0, work)
    flow = np.bincount(users * clusters + cluster, executed, (clusters + 1) * clusters)
    flow = flow.reshape(clusters + 1, clusters)
    own = np.diagonal(flow[:clusters])
    given, received = flow.sum(axis=0) - own, flow[:clusters].sum(axis=1) - own
    window = metrics.submitted(run)
    within = metrics.seconds_within(run, window) * run["segment_processors"].to_numpy()
    used = np.bincount(cluster, np.where(held, 0.0, within), clusters)
    return {
        "flow_work": flow,
        "work_given": given,
        "work_received": received,
        "work_balance": received - given,
        "held_work": np.bincount(cluster, np.where(held, work, 0.0), clusters),
        "utilisation": metrics.quotient(used, run["cluster_processors"].to_numpy() * (window[1] - window[0])),
    }


def _of_clusters(run: xr.Dataset) -> dict[str, Any]:
    """Counters of clusters, leaves and proxies."""
    clusters = run.sizes["cluster"]
    leave = run["event_kind"].to_numpy() == _LEAVE
    cluster = run["event_cluster"].to_numpy()[leave]
    took = (run["event_done"].to_numpy() - run["event_time"].to_numpy())[leave].astype(np.float64)
    gone = run["event_done"].to_numpy()[leave] >= 0
    mean, longest = _mean_and_longest(cluster[gone], took[gone], clusters)
    source = run["proxy_cluster"].to_numpy()
    lived = (run["proxy_end"].to_numpy() - run["proxy_begin"].to_numpy()).astype(np.float64)
    counters = ("tasks_out", "tasks_in", "evictions", "asked", "refused")
    return {
        **{name: run[f"cluster_{name}"].to_numpy() for name in counters},
        "leaves": np.bincount(cluster, minlength=clusters),
        "leave_time_mean": mean,
        "leave_time_max": longest,
        "proxies": np.bincount(source, minlength=clusters),
        "proxy_time": np.bincount(source, lived, clusters),
    }
