"""The registry of measures: name, unit, words, better direction, aggregation and source of each, once.

Studies, `gs.summarise`, figures, tables and the report take what they need about a measure from here. A
measure of one system is declared in the `measures.py` of its subpackage, as `MEASURES`, and found here too.

>>> measure("wait_time_mean").words
'mean wait time'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.metrics.measure import Measure
from gridsched.systems.registry import SYSTEMS

_FEITELSON = "Feitelson and Rudolph, Metrics and benchmarking for parallel job scheduling, JSSPP 1998"
_GNEITING = "Gneiting and Raftery, Strictly proper scoring rules, JASA 2007"
_PITFALLS = "Frachtenberg and Feitelson, Pitfalls in parallel job scheduling evaluation, JSSPP 2005"
_SHAN = "Shan, Oliker and Biswas, SC 2003, section 3.2"

_SHARED: tuple[Measure, ...] = (
    Measure("wait_time_mean", "mean wait time", "s", "lower", "jobs", source=_FEITELSON),
    Measure("response_time_mean", "mean response time", "s", "lower", "jobs", source=_FEITELSON),
    Measure("run_time_mean", "mean run time", "s", "", "jobs"),
    Measure("slowdown_mean", "mean slowdown", "1", "lower", "jobs", source=_FEITELSON),
    Measure("bounded_slowdown_mean", "mean bounded slowdown", "1", "lower", "jobs", source=_FEITELSON),
    Measure("wait_time_median", "median wait time", "s", "lower"),
    Measure("wait_time_p95", "95th percentile of the wait time", "s", "lower"),
    Measure("wait_time_max", "longest wait time", "s", "lower"),
    Measure("wait_time_std", "standard deviation of the wait time", "s", "lower"),
    Measure("wait_time_deviation", "average wait time deviation", "s", "lower", source=_SHAN),
    Measure("bounded_slowdown_median", "median bounded slowdown", "1", "lower"),
    Measure("bounded_slowdown_max", "largest bounded slowdown", "1", "lower"),
    Measure("jobs", "jobs that ran"),
    Measure("jobs_submitted", "jobs submitted"),
    Measure("rejected", "jobs rejected", "1", "lower"),
    Measure("utilisation", "utilisation", "1", "higher", share=True, source=_PITFALLS),
    Measure("utilisation_requested", "utilisation by requested processors", "1", "higher", share=True),
    Measure("utilisation_makespan", "utilisation over the makespan", "1", "higher", share=True),
    Measure(
        "utilisation_requested_makespan",
        "utilisation by requested processors over the makespan",
        "1",
        "higher",
        share=True,
    ),
    Measure("utilisation_own", "utilisation over the cluster's own window", "1", "higher", share=True),
    Measure("utilisation_to_last_start", "utilisation until the last start", "1", "higher", share=True),
    Measure("allocated_full", "share of GPUs allocated", "1", "higher", share=True),
    Measure("allocated", "share of GPUs allocated so far", "1", "higher", share=True),
    Measure("waiting", "GPUs that pods wait for", "1", "lower", share=True, largest=math.inf),
    Measure("pods_arrived", "pods that have arrived"),
    Measure("pods_placed", "pods that were placed", "1", "higher"),
    Measure("coverage", "share of starts in the interval of 80 %", "1", "", "jobs", share=True),
    Measure("low_misses", "share of starts before the interval", "1", "", "jobs", share=True),
    Measure("high_misses", "share of starts after the interval", "1", "", "jobs", share=True),
    Measure("interval_width_mean", "mean width of the interval of 80 %", "s", "lower", "jobs"),
    Measure("interval_width_median", "median width of the interval of 80 %", "s", "lower"),
    Measure("interval_score_mean", "mean interval score", "s", "lower", "jobs", source=_GNEITING),
    Measure("error_median", "median absolute error of the median forecast", "s", "lower"),
    Measure("early", "share of starts before the median forecast", "1", "", "jobs", share=True),
    Measure("occupied", "share of processors allocated", share=True),
    Measure("occupied_makespan", "share of processors allocated over the makespan", share=True),
    Measure("grid_efficiency", "grid efficiency", "1", "higher", share=True),
    Measure(
        "grid_efficiency_makespan",
        "grid efficiency over the makespan",
        "1",
        "higher",
        share=True,
        source=_SHAN,
    ),
    Measure("transferred", "share of jobs transferred", share=True),
    Measure("messages_per_job", "messages per job", "1", "lower"),
    Measure("makespan", "makespan", "s", "lower"),
    Measure("queue_length_mean", "mean queue length", "1", "lower"),
    Measure("queue_length_max", "longest queue", "1", "lower"),
    Measure("offered_load", "offered load"),
    Measure("share", "share of the jobs", share=True),
    Measure("interarrival", "interarrival time", "s"),
    Measure("interarrival_mean", "mean interarrival time", "s"),
    Measure("interarrival_ks", "distance of the interarrival times", "1", "lower"),
    Measure("service", "run time", "s"),
    Measure("service_mean", "mean run time", "s"),
    Measure("service_ks", "distance of the run times", "1", "lower"),
    Measure("size_cdf", "share of jobs up to this size", share=True),
    Measure("wait_correlation", "rank correlation of waits", "1", "higher"),
    Measure("wait_ratio", "mean simulated / recorded wait"),
    Measure("near_share", "share of waits near the recorded ones", "1", "higher", share=True),
    Measure("recorded_wait_mean", "mean recorded wait time", "s"),
    Measure("prompt_share", "share of jobs that waited at most 1 min", share=True),
    Measure("idle_wait_share", "share of waits with free processors", share=True),
    Measure("top_user_wait_share", "share of waits of one user", share=True),
    Measure("start_after_own_share", "share of starts after own jobs", share=True),
    Measure("start_after_any_share", "share of starts after any jobs", share=True),
    Measure("relaxations", "times the log holds the memory of its queue"),
    Measure("queries", "predicted starts requested"),
    Measure("corrections", "estimates outrun"),
    Measure("jobs_killed", "jobs ended at their requested time"),
    Measure("flow_jobs", "jobs transferred"),
    Measure("flow_work", "work transferred", "s"),
    Measure("executions_killed", "executions killed by node failures", "1", "lower"),
    Measure(
        "extra_work_share", "work lost to failures or checkpoints", "1", "lower", share=True, largest=math.inf
    ),
    Measure("jobs_gave_up", "jobs abandoned by their users", "1", "lower"),
    Measure("jobs_never_eligible", "jobs whose dependency was never met", "1", "lower"),
    Measure("jobs_lost", "jobs lost to node failures", "1", "lower"),
    Measure("jobs_starved", "jobs that waited without end", "1", "lower"),
    Measure("productivity", "jobs completed per day", "d-1", "higher"),
    Measure("jobs_per_session", "jobs per session", "1", "higher"),
    Measure("claims", "claims"),
    Measure("claims_missed", "claims not reproduced by default"),
    Measure("claims_decided", "contingent claims"),
    Measure("jobs_per_user_week", "jobs per user and week", "week-1", "higher"),
)


def measure(name: str) -> Measure:
    """The measure of a name.

    Raises
    ------
    ConfigurationError
        If there is none; names those that are known.
    """
    try:
        return measures()[name]
    except KeyError:
        raise ConfigurationError(
            f"measure {name!r} is not known; known are {', '.join(sorted(measures()))}"
        ) from None


@cache
def measures() -> Mapping[str, Measure]:
    """All measures by name: those that systems share, and those that systems add.

    Raises
    ------
    ConfigurationError
        If a system declares a measure that exists already with another meaning.
    """
    found: dict[str, Measure] = {}
    for each in (*_SHARED, *_of_systems()):
        if found.setdefault(each.name, each) != each:
            raise ConfigurationError(f"measure {each.name!r} is declared twice, with different meanings")
    return found


def values_of(run: xr.Dataset) -> xr.Dataset:
    """The measures of a run that say themselves how they are computed."""
    own = [(each, each.value) for each in measures().values() if each.value is not None]
    return xr.Dataset(
        {each.name: ((), value(run), {"long_name": each.words, "units": each.unit}) for each, value in own}
    )


def _of_systems() -> Iterable[Measure]:
    """Measures that subpackages of `gridsched.systems` and studies of other kinds declare."""
    places = [*(f"gridsched.systems.{name}.measures" for name in SYSTEMS), *_FURTHER]
    for place in places:
        if find_spec(place) is not None:
            yield from getattr(import_module(place), "MEASURES", ())


_FURTHER = ("gridsched.metrics.nodes",)
"""Modules besides those of systems that declare measures."""
