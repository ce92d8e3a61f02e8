"""Measures of one run, in the shape that the table of measures of a study wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.experiments.collection import ALL, attrs_of, grouped
from gridsched.experiments.machines import fates_of
from gridsched.experiments.tasks import function_at
from gridsched.measures import values_of
from gridsched.metrics import jobs as metrics
from gridsched.metrics.grid import summarise_grid, summarise_ideal
from gridsched.metrics.nodes import summarise_nodes
from gridsched.metrics.users import user_measures
from gridsched.systems.registry import class_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BLOCKS = 60
"""Blocks of consecutive jobs into which the measures of a log are divided, by default. Inference joins
neighbours that are not independent, see `gridsched.inference`."""


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """How runs are measured.

    Parameters
    ----------
    warm_up, cool_down : float
        Share of the jobs, in order of submission, that enter no mean at the beginning and the end.
    blocks : int
        Blocks of consecutive jobs, for a run that is the only one of its log; 0 for a run that is one
        replicate.
    bins : int
        Bins of time series; 0 for none.
    quantiles : bool
        Whether distributions of waits and slowdowns are kept.
    long_run_time, wide_processors : float, int
        See `gridsched.metrics.jobs.job_classes`.
    think_time : int, optional
        Longest think time in a session, where users react; by default they do not.
    sessions : str
        When sessions begin, where users react.
    borders : tuple of int
        Run times [s] that divide jobs into classes, each a group; none by default.
    further : str
        Place of a function, module:name, that measures jobs besides: (run, values of jobs by metric, jobs of
        each group, block of each job or None) -> dataset on `group`, with blocks also on `replicate`.
    """

    warm_up: float = 0.0
    cool_down: float = 0.0
    blocks: int = 0
    bins: int = 0
    quantiles: bool = True
    long_run_time: float = metrics.LONG_RUN_TIME
    wide_processors: int = metrics.WIDE_PROCESSORS
    think_time: int | None = None
    sessions: str = "clock"
    borders: tuple[int, ...] = ()
    further: str = ""


def measured(
    run: xr.Dataset,
    how: Measuring | None = None,
    *further: xr.Dataset,
    groups: Mapping[str, Flags] | None = None,
) -> xr.Dataset:
    """Measures of a run by group of jobs, cluster and users.

    Parameters
    ----------
    run : xarray.Dataset
        A verified run of `gridsched.simulate`, the waits that its log recorded, or several runs as one of no
        system.
    how : Measuring, optional
        How it is measured.
    *further : Dataset
        What else is known of the run, as summaries that `grouped` takes.
    groups : mapping, optional
        Further groups of jobs: a flag for each job of the run.

    Returns
    -------
    xarray.Dataset
        Measures on `group` (and `quantile`, `bin`). With `blocks` also on `replicate`: means over jobs for
        each block; what is known of the whole run only stands at the first.
    """
    how = how or Measuring()
    # of a log in which no job follows another, jobs are eligible when they are submitted
    reacts = how.think_time is not None and "eligible_time" in run
    since: metrics.SinceName = "eligible" if reacts else "submit"
    members = _members(run, how, groups or {})
    values = metrics.job_metrics(run, since=since)
    whole = _of_jobs(values, members, how)
    # to combine with what is empty takes as long as with anything else
    summaries = [grouped(part) for part in [*_of_system(run, how, since), *further] if part]
    for part in summaries:
        whole = whole.combine_first(part)
    labels = list(
        dict.fromkeys([*members, *(str(each) for part in summaries for each in part["group"].values)])
    )
    whole = whole.reindex(group=labels)
    block = block_of(members[ALL], how.blocks, len(run["submit_time"])) if how.blocks else None
    own = function_at(how.further)(run, values, members, block) if how.further else xr.Dataset()
    if block is None:
        return (whole.combine_first(own) if own else whole).reindex(group=labels)
    blocks = in_blocks(values, members, block).merge(own)
    once = whole.drop_vars(_BLOCKED).expand_dims(replicate=[0]).reindex(replicate=blocks["replicate"])
    whole = xr.merge([blocks, once], join="outer", compat="no_conflicts")
    return whole.reindex(group=labels)


_BLOCKED = [f"{name}_mean" for name in metrics.METRICS] + ["jobs"]
"""Measures that blocks of a run have."""


def _members(run: xr.Dataset, how: Measuring, groups: Mapping[str, Flags]) -> dict[str, NDArray[np.int64]]:
    """Jobs of each group, in order of submission, without those that are left out."""
    kept = metrics.measured_jobs(run, how.warm_up, how.cool_down)
    classes = metrics.job_classes(
        run["run_time"].to_numpy()[kept],
        run["processors"].to_numpy()[kept],
        long_run_time=how.long_run_time,
        wide_processors=how.wide_processors,
    )
    found = {ALL: kept}
    found |= {name: kept[classes == index] for index, name in enumerate(metrics.JOB_CLASSES) if index}
    if run.sizes.get("cluster", 1) > 1 and "home_cluster" in run:
        home = run["home_cluster"].to_numpy()[kept]
        own = {f"users of {name}": kept[home == i] for i, name in enumerate(run["cluster"].values)}
        found |= {name: jobs for name, jobs in own.items() if (home >= 0).any()}
    length = np.searchsorted(how.borders, run["run_time"].to_numpy()[kept], side="right")
    found |= {name: kept[length == i] for i, name in enumerate(length_classes(how.borders))}
    return found | {name: kept[chosen[kept]] for name, chosen in groups.items()}


def length_classes(borders: Sequence[int]) -> list[str]:
    """Names of the classes of jobs between some run times [s], which belong to the class above.

    >>> length_classes([10, 100])
    ['under 10 s', '10 to 100 s', '100 s and more']
    """
    if not len(borders):
        return []
    between = [f"{low} to {high} s" for low, high in pairwise(borders)]
    return [f"under {borders[0]} s", *between, f"{borders[-1]} s and more"]


_STATISTICS: dict[str, Callable[[Floats], Any]] = {
    "mean": np.mean,
    "median": partial(np.quantile, q=0.5),
    "max": np.max,
    "p95": partial(np.quantile, q=0.95),
    "std": np.std,
}
_SHOWN_OF = {"wait_time": tuple(_STATISTICS), "bounded_slowdown": ("mean", "median", "max")}
"""Statistics of metrics of jobs; of others the mean alone."""


def _of_jobs(
    values: Mapping[str, Floats], members: Mapping[str, NDArray[np.int64]], how: Measuring
) -> xr.Dataset:
    """Counts, statistics and quantiles of the jobs of each group."""
    started = ~np.isnan(values["wait_time"])
    variables: dict[str, Any] = {"jobs": ("group", [float(started[jobs].sum()) for jobs in members.values()])}
    for name, of_jobs in values.items():
        known = [np.sort(of_jobs[jobs][started[jobs]]) for jobs in members.values()]
        for key in _SHOWN_OF.get(name, ("mean",)):
            variables[f"{name}_{key}"] = ("group", [statistic(key, each) for each in known])
        if how.quantiles and name in _SHOWN_OF and len(known[0]):
            variables[f"{name}_quantile"] = ("quantile", np.quantile(known[0], metrics.QUANTILES))
    return xr.Dataset(
        variables, {"group": list(members), **({"quantile": metrics.QUANTILES} if how.quantiles else {})}
    )


def statistic(key: str, ordered: Floats) -> float:
    """A statistic of values in order: mean, median, max, p95 or std; NaN without any."""
    return float(_STATISTICS[key](ordered)) if len(ordered) else np.nan


def block_of(measured_jobs: NDArray[np.int64], blocks: int, jobs: int) -> NDArray[np.int64]:
    """Block of consecutive jobs of each job of a run, the same for all schedulers."""
    number = min(blocks, max(len(measured_jobs) // 2, 1))
    block = np.zeros(jobs, np.int64)
    block[measured_jobs] = np.arange(len(measured_jobs)) * number // max(len(measured_jobs), 1)
    return block


def in_blocks(
    values: Mapping[str, Floats],
    members: Mapping[str, NDArray[np.int64]],
    block: NDArray[np.int64],
    weights: Mapping[str, Floats] | None = None,
) -> xr.Dataset:
    """Number and means of the jobs of each group in blocks; weights of jobs, by group, are 1 by default."""
    number = int(block.max(initial=0)) + 1
    ones = np.ones(len(block))
    # looked up once for all values
    places = {group: (block[own], (weights or {}).get(group, ones)[own]) for group, own in members.items()}
    variables: dict[str, Any] = {}
    for name, of_jobs in values.items():
        counts, means = [], []
        for group, own in members.items():
            mine = of_jobs[own]
            place, weight = places[group]
            known = ~np.isnan(mine)
            if not known.all():
                mine, place, weight = mine[known], place[known], weight[known]
            count = np.bincount(place, weight, number)
            total = np.bincount(place, mine * weight, number)
            counts.append(count)
            means.append(np.divide(total, count, out=np.full(number, np.nan), where=count > 0))
        variables[f"{name}_mean"] = (("group", "replicate"), np.array(means))
        variables["jobs"] = (("group", "replicate"), np.array(counts))
    return xr.Dataset(variables, {"group": list(members), "replicate": np.arange(number)})


_ALLOCATED = {
    "utilisation": "utilisation_requested",
    "utilisation_makespan": "utilisation_requested_makespan",
    "occupied": "utilisation",
    "occupied_makespan": "utilisation_makespan",
}
"""Names of shares of the processors of clusters here."""


def _of_system(run: xr.Dataset, how: Measuring, since: metrics.SinceName) -> list[xr.Dataset]:
    """What clusters did, job outcomes, and what the system of the scheduler measures."""
    parts: list[xr.Dataset] = [_totals(run, how, since)]
    scheduler = class_of(run)
    if run.attrs.get("scheme") == metrics.RECORDED or scheduler is None:
        return parts
    if how.bins and "piece_segment" in run:
        parts.append(summarise_nodes(run, how.bins))
    if run.sizes.get("cluster", 1) > 1 and (run["home_cluster"].to_numpy() >= 0).all():
        summary = (summarise_grid if scheduler.names_clusters else summarise_ideal)(
            run,
            warm_up=how.warm_up,
            cool_down=how.cool_down,
            since=since,
        )
        # Utilisation is by allocated processors, of clusters as of the whole grid
        parts.append(summary.rename(_ALLOCATED))
    return [*parts, scheduler.measures(run), values_of(run), fates_of(run)]


def _totals(run: xr.Dataset, how: Measuring, since: metrics.SinceName) -> xr.Dataset:
    """Measures of the whole run."""
    started = run["start_time"].to_numpy() != metrics.NOT_STARTED
    system = metrics.system_level(run, max(how.bins, 1), since)
    values: dict[str, Any] = {
        "rejected": float((~started).sum()),
        "corrections": float(run.attrs.get("corrections", 0)),
        "jobs_killed": float(run.attrs.get("jobs_killed", 0)),
        **{name: system[name].values for name in _OF_RUNS},
        "messages_per_job": run.attrs["messages"] / max(len(started), 1)
        if "messages" in run.attrs
        else np.nan,
    }
    if how.blocks:
        values["relaxations"] = metrics.relaxations(run, since)
    if how.think_time is not None:
        told = user_measures(run, think_time=how.think_time)
        # a session that begins by a clock goes on from one that lasted until then
        values |= {
            **told,
            "jobs_per_session": told["jobs_per_session"] if how.sessions == "leave" else np.nan,
        }
    whole = xr.Dataset({name: ((), value) for name, value in values.items()})
    for name, (words, unit) in _SERIES.items() if how.bins else ():
        whole[name] = ("bin", system[name].values, attrs_of(words, unit))
    return whole


_OF_RUNS = ("makespan", "queue_length_mean", "queue_length_max", "utilisation", "utilisation_makespan")
_SERIES = {
    "bin_time": ("start of the time bin", "s"),
    "queue_length_series": ("queue length", "1"),
    "utilisation_series": ("utilisation", "1"),
}
