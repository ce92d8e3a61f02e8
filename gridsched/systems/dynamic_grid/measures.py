"""What a dynamic grid does for its users: gains and losses of each cluster, moved work, messages and weeks.

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
from gridsched.replication import ratio_interval

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

WEEK = 7 * 24 * 3600
"""Length of a week [s], counted from the first submission."""

GRID_USERS = "grid"
"""Label of the users of the grid among those of the clusters."""

_REJECTED, _FINISHED, _STOPPED, _STRANDED = range(4)
_LEAVE = 2

TIMES: dict[str, tuple[str, str]] = {
    "wait_time": ("wait time", "s"),
    "response_time": ("response time", "s"),
    "bounded_slowdown": ("bounded slowdown", "1"),
}
"""What is compared of jobs: long name and unit."""

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "jobs": (("users",), "jobs that ended", "1"),
    "jobs_rejected": (("users",), "jobs that were rejected", "1"),
    "jobs_stopped": (("users",), "jobs stopped far over their estimate", "1"),
    "jobs_stranded": (("users",), "jobs left over at the end", "1"),
    "jobs_sent": (("users",), "jobs that a local scheduler sent to the grid", "1"),
    "wait_time_mean": (("users",), "mean wait time", "s"),
    "response_time_mean": (("users",), "mean response time", "s"),
    "bounded_slowdown_mean": (("users",), "mean bounded slowdown", "1"),
    "wait_time_by_week": (("users", "week"), "sum of wait times of the jobs submitted in a week", "s"),
    "response_time_by_week": (
        ("users", "week"),
        "sum of response times of the jobs submitted in a week",
        "s",
    ),
    "bounded_slowdown_by_week": (
        ("users", "week"),
        "sum of bounded slowdowns of the jobs submitted in a week",
        "1",
    ),
    "jobs_by_week": (("users", "week"), "jobs submitted in a week that ended", "1"),
    "local_wait_time_mean": (("cluster",), "mean wait time of the jobs that ran as local jobs", "s"),
    "yield_wait_mean": (("cluster",), "mean time that local jobs waited for grid jobs to make place", "s"),
    "yield_wait_max": (("cluster",), "longest time that a local job waited for grid jobs to make place", "s"),
    "jobs_yielded_to": (("cluster",), "local jobs that grid jobs made place for", "1"),
    "flow_work": (("users", "cluster"), "work executed, by users and by cluster", "s"),
    "work_by_week": (("users", "week"), "work executed of the jobs submitted in a week", "s"),
    "work_given": (("cluster",), "work of others that the cluster executed", "s"),
    "work_received": (("cluster",), "work of its users that other clusters executed", "s"),
    "balance": (("cluster",), "work received minus work given", "s"),
    "held_work": (("cluster",), "processor-seconds held while tasks were on their way", "s"),
    "lost_work": (("users",), "work executed and lost", "s"),
    "overhead_work": (("users",), "work executed because jobs ran on several clusters", "s"),
    "suspensions": (("users",), "times that jobs were given back to the grid scheduler", "1"),
    "migrations": (("users",), "times that tasks of jobs moved to neighbours", "1"),
    "tasks_moved": (("users",), "tasks that moved to neighbours", "1"),
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
    "utilisation": (("cluster",), "share of the processors that jobs executed on, over the makespan", "1"),
    "multi_site_jobs": (("users",), "jobs that ran on several clusters at once", "1"),
    "makespan": ((), "time from the first submission to the last end", "s"),
}
"""Variables of a summary besides messages: dimensions, long name and unit."""

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
"""Counts of messages that a run has as attributes, and its summary as variables."""


def summarise_dynamic(run: xr.Dataset, *, weeks: int | None = None) -> xr.Dataset:
    """Condense a run of a dynamic grid to the variables of `VARIABLES` and `MESSAGES`.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `scheduler.DynamicGrid`.
    weeks : int, optional
        Number of weeks; as many as have submissions if not given. Later jobs count for the last one.

    Returns
    -------
    xarray.Dataset
        Dimensions `users` (the clusters, then `GRID_USERS`), `cluster` and `week`; the attributes of the run.
        Means are NaN where there are no jobs.

    Raises
    ------
    ConfigurationError
        If the run is no run of a dynamic grid.
    """
    _require(run)
    count = weeks or _number_of_weeks(run)
    values = _of_jobs(run, count) | _of_local_jobs(run) | _of_work(run, count) | _of_clusters(run)
    clusters = run["cluster"].to_numpy()
    variables: dict[str, xr.Variable] = {}
    for name, (dims, long_name, units) in VARIABLES.items():
        data = np.asarray(values[name], np.float64)
        variables[name] = xr.Variable(dims, data, {"long_name": long_name, "units": units})
    for name in MESSAGES:
        attributes = {"long_name": name.replace("_", " "), "units": "1"}
        variables[name] = xr.Variable((), float(run.attrs[name]), attributes)
    coordinates = {
        "users": ("users", _labels(run), {"long_name": "whose jobs"}),
        "cluster": ("cluster", clusters, {"long_name": "cluster"}),
        "week": ("week", np.arange(count), {"long_name": "week of submission"}),
    }
    return xr.Dataset(variables, coordinates, run.attrs)


def compare_dynamic(run: xr.Dataset, reference: xr.Dataset, *, confidence: float = 0.95) -> xr.Dataset:
    """What users gain or lose in a run against another run of the same jobs.

    Only jobs that ended in both count. The reference may be any run of the same workloads with the variables
    `home_cluster` and `start_time`: with every cluster alone, without migration, or under a superscheduler.

    Parameters
    ----------
    run, reference : xarray.Dataset
        Runs of the same jobs in the same order.
    confidence : float
        Nominal coverage of the intervals.

    Returns
    -------
    xarray.Dataset
        On `users`: common_jobs; for each of `TIMES` the means in both (`..._mean`, `..._reference`), the
        mean gain of a job, reference - run (`..._gain`, with `_low`, `_high`), and the ratio of the means,
        reference / run (`..._ratio`, with `_low`, `_high`). Both intervals are those of ratios of sums
        over weeks of submission (`gridsched.replication.ratio_interval`); weeks without jobs are left out.

    Raises
    ------
    ConfigurationError
        If the runs do not have the same jobs.
    """
    _check_same_jobs(run, reference)
    both = _ended(run) & _ended(reference)
    users, week = _users(run), _weeks(run)
    count = _number_of_weeks(run)
    values: dict[str, Floats] = {"common_jobs": _sum(users, both.astype(np.float64), run)}
    jobs = _by_week(users, week, both.astype(np.float64), run, count)
    ours, theirs = metrics.job_metrics(run), metrics.job_metrics(reference)
    for name in TIMES:
        left = _by_week(users, week, np.where(both, ours[name], 0.0), run, count)
        right = _by_week(users, week, np.where(both, theirs[name], 0.0), run, count)
        total = jobs.sum(axis=1)
        values[f"{name}_mean"] = _share(left.sum(axis=1), total)
        values[f"{name}_reference"] = _share(right.sum(axis=1), total)
        known = np.where(jobs > 0, 1.0, np.nan)
        gain = ratio_interval((right - left) * known, jobs * known, confidence, signed=True)
        ratio = ratio_interval(right * known, left * known, confidence)
        values[f"{name}_gain"] = gain.mean
        for bound in ("low", "high"):
            values[f"{name}_gain_{bound}"] = getattr(gain, bound)
            values[f"{name}_ratio_{bound}"] = getattr(ratio, bound)
        values[f"{name}_ratio"] = ratio.mean
    variables = {name: ("users", data, _described(name)) for name, data in values.items()}
    return xr.Dataset(variables, {"users": ("users", _labels(run), {"long_name": "whose jobs"})})


def _described(name: str) -> dict[str, str]:
    """Long name and unit of a variable of a comparison."""
    for time, (long_name, units) in TIMES.items():
        if name.startswith(time):
            rest = name.removeprefix(f"{time}_").replace("_", " ")
            return {"long_name": f"{long_name}: {rest}", "units": "1" if "ratio" in rest else units}
    return {"long_name": "jobs that ended in both runs", "units": "1"}


def _require(run: xr.Dataset) -> None:
    for name in ("home_cluster", "outcome", "segment_held", "event_kind", "proxy_begin", "yield_time"):
        if name not in run:
            raise ConfigurationError(
                f"run {run.attrs.get('title', '')!r}: no variable {name}; give a run of DynamicGrid"
            )


def _check_same_jobs(run: xr.Dataset, reference: xr.Dataset) -> None:
    for name in ("submit_time", "processors", "home_cluster"):
        if name not in reference or not np.array_equal(run[name].values, reference[name].values):
            raise ConfigurationError(
                f"the runs differ in {name}; compare runs of the same workloads in the same order"
            )


def _labels(run: xr.Dataset) -> list[str]:
    return [*map(str, run["cluster"].to_numpy()), GRID_USERS]


def _users(run: xr.Dataset) -> Integers:
    """Index of the users of each job; those of the grid come last."""
    home = run["home_cluster"].to_numpy()
    return np.where(home < 0, run.sizes["cluster"], home).astype(np.int64)


def _ended(run: xr.Dataset) -> Flags:
    """Whether each job ended."""
    if "outcome" not in run:
        return np.asarray(run["start_time"].to_numpy() != metrics.NOT_STARTED)
    return np.isin(run["outcome"].to_numpy(), (_FINISHED, _STOPPED))


def _weeks(run: xr.Dataset) -> Integers:
    """Week of submission of each job."""
    submit = run["submit_time"].to_numpy()
    return np.asarray((submit - submit.min(initial=2**62)) // WEEK, np.int64)


def _number_of_weeks(run: xr.Dataset) -> int:
    return int(_weeks(run).max(initial=0)) + 1


def _sum(users: Integers, values: Any, run: xr.Dataset) -> Floats:
    """Sum for each group of users."""
    total = np.bincount(users, np.asarray(values, np.float64), run.sizes["cluster"] + 1)
    return np.asarray(total, np.float64)


def _by_week(users: Integers, week: Integers, values: Any, run: xr.Dataset, count: int) -> Floats:
    """Sum for each group of users and each week."""
    groups = run.sizes["cluster"] + 1
    index = users * count + np.minimum(week, count - 1)
    total = np.bincount(index, np.asarray(values, np.float64), groups * count)
    return np.asarray(total, np.float64).reshape(groups, count)


def _share(part: Any, whole: Any) -> Floats:
    """Quotients, NaN where the whole is not positive."""
    parts, wholes = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    shares: Floats = np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)
    return shares


def _of_jobs(run: xr.Dataset, count: int) -> dict[str, Any]:
    users, week, ended = _users(run), _weeks(run), _ended(run)
    outcome = run["outcome"].to_numpy()
    home = run["home_cluster"].to_numpy()
    sent = (home >= 0) & (run["sent_time"].to_numpy() >= 0) & (run["head_time"].to_numpy() >= 0)
    values: dict[str, Any] = {"makespan": metrics.makespan(run), "jobs": _sum(users, ended, run)}
    for name, number in (("rejected", _REJECTED), ("stopped", _STOPPED), ("stranded", _STRANDED)):
        values[f"jobs_{name}"] = _sum(users, outcome == number, run)
    values["jobs_sent"] = _sum(users, sent, run)
    values["jobs_by_week"] = _by_week(users, week, ended, run, count)
    columns = metrics.job_metrics(run)
    for name in TIMES:
        sums = _by_week(users, week, np.where(ended, columns[name], 0.0), run, count)
        values[f"{name}_by_week"] = sums
        values[f"{name}_mean"] = _share(sums.sum(axis=1), values["jobs"])
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
    waited = (start - run["yield_time"].to_numpy()).astype(np.float64)
    longest = np.full(clusters, np.nan)
    np.fmax.at(longest, home[yielded], waited[yielded])
    count = np.bincount(home[yielded], minlength=clusters)
    return {
        "local_wait_time_mean": _share(
            np.bincount(home[local], wait[local], clusters), np.bincount(home[local], minlength=clusters)
        ),
        "yield_wait_mean": _share(np.bincount(home[yielded], waited[yielded], clusters), count),
        "yield_wait_max": longest,
        "jobs_yielded_to": count,
    }


def _of_work(run: xr.Dataset, count: int) -> dict[str, Any]:
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
    capacity = run["cluster_processors"].to_numpy() * metrics.makespan(run)
    return {
        "flow_work": flow,
        "work_by_week": _by_week(users, _weeks(run)[job], executed, run, count),
        "work_given": given,
        "work_received": received,
        "balance": received - given,
        "held_work": np.bincount(cluster, np.where(held, work, 0.0), clusters),
        "utilisation": _share(flow.sum(axis=0), capacity),
    }


def _of_clusters(run: xr.Dataset) -> dict[str, Any]:
    """Counters of clusters, leaves and proxies."""
    clusters = run.sizes["cluster"]
    values: Mapping[str, Any] = {
        name: run[f"cluster_{name}"].to_numpy()
        for name in ("tasks_out", "tasks_in", "evictions", "asked", "refused")
    }
    leave = run["event_kind"].to_numpy() == _LEAVE
    cluster = run["event_cluster"].to_numpy()[leave]
    took = (run["event_done"].to_numpy() - run["event_time"].to_numpy())[leave].astype(np.float64)
    gone = run["event_done"].to_numpy()[leave] >= 0
    longest = np.full(clusters, np.nan)
    np.fmax.at(longest, cluster[gone], took[gone])
    count = np.bincount(cluster[gone], minlength=clusters)
    source = run["proxy_cluster"].to_numpy()
    lived = (run["proxy_end"].to_numpy() - run["proxy_begin"].to_numpy()).astype(np.float64)
    return {
        **values,
        "leaves": np.bincount(cluster, minlength=clusters),
        "leave_time_mean": _share(np.bincount(cluster[gone], took[gone], clusters), count),
        "leave_time_max": longest,
        "proxies": np.bincount(source, minlength=clusters),
        "proxy_time": np.bincount(source, lived, clusters),
    }
