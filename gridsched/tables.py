"""Tables of pandas: a row a job, a segment or a run; the policies and schedulers that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, check_choice, meant
from gridsched.metrics.jobs import JOB_CLASSES, job_metrics
from gridsched.policies.local import POLICIES, PREDICTING
from gridsched.runs import check_run, first_allocation, labelled_runs, name_of_run, names_clusters
from gridsched.summary import summarise
from gridsched.systems.registry import names

_FIRST = ("job_number", "submit_time", "start_time", "end_time")
_NAMED = ("home_cluster",)
"""Columns of jobs that hold indices of clusters, of which tables give the names."""


def jobs(run: xr.Dataset) -> pd.DataFrame:
    """Table of a run with one row a job.

    `run.to_dataframe()` has a row for every combination of job, segment and cluster, and is of no use.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate`.

    Returns
    -------
    pandas.DataFrame
        Rows in the order of the run, which is that of submission; the index `job` is that of
        `gridsched.explain` and of `segments`. Columns: job number, submit, start and end time [s]; wait and
        response time [s], slowdown and bounded slowdown, NaN for jobs that did not run; the name of the
        cluster where the job started, missing for none; and the other variables of the run that have one
        value a job, see docs/run-variables.md.

    Raises
    ------
    ConfigurationError
        If it is no run.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=500, seed=1), scheduler="easy")
    >>> table = gs.jobs(run)
    >>> table[["submit_time", "start_time", "wait_time", "slowdown"]].head(2)
         submit_time  start_time  wait_time  slowdown
    job...
    0            899         899        0.0       1.0
    1           1558        1558        0.0       1.0
    >>> longest = table["wait_time"].idxmax()
    >>> print(gs.explain(run, longest))
    job ...
    """
    check_run(run)
    columns: dict[str, Any] = {name: run[name].to_numpy() for name in _FIRST if name in run.variables}
    columns |= job_metrics(run)
    if names_clusters(run):
        columns["cluster"] = _names(run, first_allocation(run)[0])
    for name, variable in run.variables.items():
        if variable.dims == ("job",) and str(name) not in columns:
            values = variable.to_numpy()
            columns[str(name)] = _names(run, values) if name in _NAMED else values
    return pd.DataFrame(columns, index=pd.RangeIndex(run.sizes["job"], name="job"))


def segments(run: xr.Dataset) -> pd.DataFrame:
    """Table of a run with one row a segment: an execution of a job on one cluster.

    Under most schedulers a job has one; those that preempt, migrate or span clusters give it several.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate`.

    Returns
    -------
    pandas.DataFrame
        Columns: index of the job, its number, name of the cluster, processors that the segment takes, start
        and end [s]; and what else the run says of segments.

    Raises
    ------
    ConfigurationError
        If it is no run, or does not say where jobs ran, as those of ideal schedulers.

    Examples
    --------
    >>> import gridsched as gs
    >>> clusters = [gs.Cluster(name=name, processors=1152) for name in ("north", "south")]
    >>> run = gs.simulate(gs.synthesise("M3", jobs=500, seed=1), clusters, gs.JScheduler(k=2))
    >>> gs.segments(run).groupby("cluster")["processors"].count()
    cluster
    north...
    south...
    Name: processors, dtype: int64
    """
    check_run(run)
    if not names_clusters(run):
        raise ConfigurationError(
            f"{name_of_run(run)}: the run does not say on which clusters jobs run; use gridsched.jobs"
        )
    job = run["segment_job"].to_numpy()
    columns: dict[str, Any] = {"job": job, "job_number": run["job_number"].to_numpy()[job]}
    for name, variable in run.variables.items():
        if variable.dims == ("segment",) and name != "segment_job":
            values = variable.to_numpy()
            short = str(name).removeprefix("segment_")
            columns[short] = _names(run, values) if short == "cluster" else values
    return pd.DataFrame(columns, index=pd.RangeIndex(len(job), name="segment"))


def table(
    runs: Iterable[xr.Dataset] | Mapping[str, xr.Dataset],
    *,
    measures: Sequence[str] | None = None,
    job_class: str = "all",
    **options: Any,
) -> pd.DataFrame:
    """Measures of several runs side by side, a row for each.

    Parameters
    ----------
    runs : sequence of xarray.Dataset or mapping of str to them
        Runs of `gridsched.simulate`, maybe with labels. By default the label is the scheduler, with what else
        differs (its parameters, policies, estimates ...) where schedulers are the same.
    measures : sequence of str, optional
        Names of measures, in the order of the columns; all by default.
    job_class : str
        Jobs that measures of jobs are about: one of `gridsched.metrics.jobs.JOB_CLASSES`.
    options
        Of `gridsched.summarise`: warm_up, cool_down, batches, confidence ...

    Returns
    -------
    pandas.DataFrame
        The measures of `gridsched.summarise` that are one number, NaN where a run does not have one, and
        texts `{metric}_mean_reason` that say why a mean has no interval. Units are in the attribute
        `attrs["units"]` of the table, by column.

    Raises
    ------
    ConfigurationError
        If one is no run, runs cannot be distinguished, or a measure, class or option is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> workload = gs.synthesise("M3", jobs=2000, seed=1, load_scale=1.2)
    >>> runs = [gs.simulate(workload, scheduler=policy) for policy in ("fcfs", "easy")]
    >>> gs.table(runs, measures=["wait_time_mean", "utilisation"]).round(2)
          wait_time_mean  utilisation
    run...
    fcfs ...
    easy ...
    """
    labelled = labelled_runs(runs)
    check_choice("job_class", job_class, JOB_CLASSES)
    rows: dict[str, dict[str, float]] = {}
    units: dict[str, str] = {}
    for label, run in labelled.items():
        summary = summarise(run, **options).sel(job_class=job_class)
        numbers = {str(name): value for name, value in summary.data_vars.items() if value.ndim == 0}
        rows[label] = {name: value.item() for name, value in numbers.items()}
        units |= {name: str(value.attrs.get("units", "1")) for name, value in numbers.items()}
    for name in measures or ():
        if name not in units:
            raise ConfigurationError(
                f"no measure {name!r}{meant(name, units)}; these runs have {', '.join(units)}"
            )
    chosen = [*units] if measures is None else [*measures]
    frame = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=chosen).rename_axis("run")
    frame.attrs["units"] = {name: units[name] for name in chosen}
    return frame


def _names(run: xr.Dataset, indices: NDArray[Any]) -> NDArray[Any]:
    """Names of clusters by index, missing for -1."""
    names = np.array([*(str(name) for name in run["cluster"].to_numpy()), None], object)
    return np.asarray(names[indices])


def local_policies() -> pd.DataFrame:
    """Table of the local policies that have a name.

    Each name can be given to `gridsched.simulate` and as the policy of a cluster; `easy(2)`, `easy(3)` ...
    are EASY with so many reservations. Others are made with `gridsched.LocalPolicy`.

    Returns
    -------
    pandas.DataFrame
        A row a policy, by name, with the parameters of `gridsched.LocalPolicy`.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.local_policies().loc["easy", ["order", "backfilling"]].to_list()
    ['fcfs', 'easy']
    >>> [name for name in gs.local_policies().index if "easy" in name]
    ['easy', 'creasy', 'easy++']
    """
    named = {**POLICIES, **PREDICTING}
    rows = [asdict(policy) for policy in named.values()]
    return pd.DataFrame(rows, index=pd.Index(named, name="policy")).drop(columns="name")


def grid_schedulers() -> pd.DataFrame:
    """Table of the schedulers of several clusters, and of others that are no local policy.

    Each name can be given to `gridsched.simulate` for a scheduler with its default parameters.

    Returns
    -------
    pandas.DataFrame
        A row a scheduler, by name: its class in `gridsched`, what it has to know, and the names of its
        parameters. What each cannot do is in docs/capabilities.md.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.grid_schedulers().loc["jscheduler", "class"]
    'JScheduler'
    >>> "s-i" in gs.grid_schedulers().index
    True
    """
    made = {name: make() for name, make in names().items() if name not in {*POLICIES, *PREDICTING}}
    rows = [
        {
            "class": type(scheduler).__name__,
            "has to know": scheduler.information,
            "parameters": ", ".join(field.name for field in fields(cast(Any, scheduler))),
        }
        for scheduler in made.values()
    ]
    return pd.DataFrame(rows, index=pd.Index(made, name="scheduler"))
