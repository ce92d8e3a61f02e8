"""What a run was worth, whatever the system that made it."""

from __future__ import annotations

from typing import Any, cast

import xarray as xr

from gridsched.measures import values_of
from gridsched.metrics import jobs
from gridsched.metrics.grid import JobOptions, summarise_grid, summarise_ideal
from gridsched.metrics.nodes import summarise_nodes
from gridsched.runs import check_run
from gridsched.systems.registry import class_of

_RENAMED = {
    "utilisation": "utilisation_cluster",
    "utilisation_makespan": "utilisation_cluster_makespan",
}
"""Measures of clusters whose name is that of a measure of the whole platform."""


def summarise(run: xr.Dataset, **options: Any) -> xr.Dataset:
    """Condense a run to measures.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate`.
    options
        Of `gridsched.metrics.jobs.summarise`: warm_up, cool_down, batches, confidence ...

    Returns
    -------
    xarray.Dataset
        The measures of `gridsched.metrics.jobs.summarise`; of runs on nodes those of
        `gridsched.metrics.nodes.summarise_nodes`; where jobs are submitted at several clusters those
        of `gridsched.metrics.grid.VARIABLES` (utilisation of clusters as `utilisation_cluster`); and
        those that the system adds. A measure that is there already is not repeated.

    Raises
    ------
    ConfigurationError
        If it is no run, or an option is out of range.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=2000, seed=1), scheduler="easy")
    >>> summary = gs.summarise(run, warm_up=0.1)
    >>> summary.sel(job_class=["short narrow", "long wide"]).wait_time_mean.round().values
    array([  267., 10498.])
    """
    check_run(run)
    parts = [jobs.summarise(run, **options)]
    if "piece_segment" in run:
        parts.append(summarise_nodes(run, parts[0].sizes["bin"]))
    scheduler = class_of(run)
    if run.sizes.get("cluster", 1) > 1 and (run["home_cluster"].to_numpy() >= 0).all():
        pooled = scheduler is not None and not scheduler.names_clusters
        of_jobs = {name: options[name] for name in JobOptions.__annotations__ if name in options}
        summary = (summarise_ideal if pooled else summarise_grid)(run, **cast(JobOptions, of_jobs))
        parts.append(summary.rename(_RENAMED))
    if scheduler is not None:
        parts.append(scheduler.measures(run))
    parts.append(values_of(run))
    whole = parts[0]
    for part in parts[1:]:
        new = part.drop_vars([name for name in part.data_vars if name in whole])
        whole = whole.merge(new, join="outer", combine_attrs="override")
    return whole
