"""The table of measures: what the runs of a study of any kind come to, in one dataset with the same axes.

A measure is one variable, with its name from `gridsched.measures`. Its dimensions are, in this order and
where
they apply, `scenario`, `scheduler`, `estimates`, `replicate` and `group` (all jobs, a class of jobs, the jobs
of a cluster's users, a cluster, or what went from one cluster to another). Parameters of scenarios and
schedulers are coordinates along these by their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.prepare import workload_facts
from gridsched.measures import measures

AXES = ("scenario", "scheduler", "estimates", "replicate", "group")
"""Dimensions of the table of measures, in their order."""


ALL = "all jobs"
"""Label of the group that every run has."""

ReplicatesAre = str
"""What replicates of a scenario are: "draws", "resampled logs", "shaken logs", "blocks" or "sequences"."""


def attrs_of(long_name: str, units: str) -> dict[str, str]:
    """Attributes of a variable."""
    return {"long_name": long_name, "units": units}


# --- groups ---------------------------------------------------------------------------------------

_GROUPS: dict[tuple[str, ...], str] = {
    (): ALL,
    ("job_class",): "{}",
    ("cluster",): "cluster {}",
    ("home",): "users of {}",
    ("users",): "users of {}",
    ("class_name",): "class {}",
    ("home", "cluster"): "{} to {}",
    ("users", "cluster"): "{} to {}",
    ("home", "job_class"): "users of {}, {}",
}
"""Labels of groups, by the dimensions of a measure."""

_SUFFIXES = ("_by_cluster", "_by_home", "_home", "_class", "_cluster")
"""Endings of the names of measures of parts of a platform, which groups say instead."""


def grouped(summary: xr.Dataset) -> xr.Dataset:
    """A summary of a run whose parts (job classes, clusters, users) are groups.

    Parameters
    ----------
    summary : xarray.Dataset
        Measures without dimensions, or on those of `_GROUPS`; others, such as `quantile` and `bin`, stay.

    Returns
    -------
    xarray.Dataset
        Measures on `group`, the first of which is `all jobs`. Variables that differ by an ending only become
        one: `wait_time_mean` and `wait_time_mean_home`.

    Examples
    --------
    >>> summary = xr.Dataset({"jobs": 3.0, "jobs_home": ("home", [1.0, 2.0])}, {"home": ["a", "b"]})
    >>> grouped(summary)["jobs"].to_series().to_dict()
    {'all jobs': 3.0, 'users of a': 1.0, 'users of b': 2.0}
    """
    parts: dict[str, dict[str, Any]] = {}
    shapes: dict[str, tuple[tuple[Hashable, ...], dict[str, Any]]] = {}
    for variable, array in summary.data_vars.items():
        inside = tuple(dim for dim in array.dims if (str(dim),) in _GROUPS)
        others = tuple(dim for dim in array.dims if dim not in inside)
        endings = (each for each in _SUFFIXES if inside and str(variable).endswith(each))
        name = str(variable).removesuffix(next(endings, ""))
        shapes.setdefault(name, (others, dict(array.attrs)))
        own = parts.setdefault(name, {})
        stacked = array.transpose(*inside, *others)
        for place in np.ndindex(*(stacked.sizes[dim] for dim in inside)):
            labels = [str(stacked[dim].values[i]) for dim, i in zip(inside, place, strict=True)]
            label = _GROUPS[tuple(map(str, inside))].format(*labels)
            own.setdefault(ALL if label == "all" else label, stacked.values[place])
    groups = list(dict.fromkeys([ALL, *(label for own in parts.values() for label in own)]))
    made: dict[str, Any] = {}
    for name, own in parts.items():
        others, attributes = shapes[name]
        if set(own) == {ALL} and others:
            made[name] = (others, own[ALL], attributes)  # distributions and time series are of all jobs
            continue
        empty = np.full_like(next(iter(own.values())), np.nan, dtype=np.float64)
        made[name] = (("group", *others), np.array([own.get(label, empty) for label in groups]), attributes)
    kept = {
        str(dim): summary[dim] for dim in summary.dims if (str(dim),) not in _GROUPS and dim in summary.coords
    }
    return xr.Dataset(made, {"group": groups, **kept}, summary.attrs)


# --- runs in one dataset --------------------------------------------------------------------------


def replicated(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Measures of all replicates of a run, which may be one that is divided into blocks."""
    return (
        parts[0]
        if len(parts) == 1
        else xr.concat(
            parts, dim=pd.RangeIndex(len(parts), name="replicate"), join="outer", combine_attrs="drop"
        )
    )


def labelled(
    measured: xr.Dataset,
    *,
    scenario: str,
    scheduler: str,
    estimates: str = "requested",
    replicate: int | None = None,
    scenario_parameters: Mapping[str, Any] | None = None,
    scheduler_parameters: Mapping[str, Any] | None = None,
    replicates_are: ReplicatesAre = "draws",
) -> xr.Dataset:
    """Measures of a run with what it is, as `collect_study` wants them.

    Parameters
    ----------
    measured : xarray.Dataset
        Measures of one run, see `grouped`; with a dimension `replicate` where it has them already.
    scenario, scheduler, estimates : str
        Labels of the run.
    replicate : int, optional
        Number of the replicate, of a run that is one.
    scenario_parameters, scheduler_parameters : mapping, optional
        Numbers or texts by which scenarios or schedulers differ.
    replicates_are : str
        What the replicates of the scenario are.
    """
    whole = measured.assign_coords(scenario=scenario, scheduler=scheduler, estimates=estimates)
    if "replicate" not in whole.dims:
        whole = whole.assign_coords(replicate=0 if replicate is None else replicate)
    whole.attrs = {
        "title": "measures of a run",
        "verified": 1,
        "replicates_are": replicates_are,
        **{f"scenario parameter {key}": value for key, value in (scenario_parameters or {}).items()},
        **{f"scheduler parameter {key}": value for key, value in (scheduler_parameters or {}).items()},
        **results.provenance(),
    }
    return whole


def collect_study(
    runs: Sequence[str | Path],
    labels: Mapping[str, Sequence[Any]],
    attributes: Mapping[str, Any],
    target: str | Path,
    *,
    coordinates: Coordinates | None = None,
    grids: Sequence[str | Path] = (),
    facts: Sequence[str | Path] = (),
) -> None:
    """Put the measures of all runs of a study, and what is known of its workloads, into its dataset.

    Parameters
    ----------
    runs : sequence of paths
        Measures of runs, see `labelled`; without variables those of schedulers that cannot run a scenario.
    labels : mapping
        Labels of scenarios, schedulers and estimates, in the order of the study.
    attributes : mapping
        Of the dataset: title, reference ... (`SchedulerStudy.attributes`).
    target : path
        The dataset.
    coordinates : mapping, optional
        See `table_of_runs`.
    grids : sequence of paths
        Results of `gridsched.experiments.prepare.prepare_grids`.
    facts : sequence of paths
        Datasets of what else is known of workloads and platforms, which are merged into it.
    """
    measured = [results.read(path) for path in runs]
    whole = table_of_runs([run for run in measured if run.data_vars], labels, coordinates)
    if grids:
        whole = whole.merge(workload_facts(grids).rename(scenario="prepared"))
    for path in facts:
        whole = whole.merge(results.read(path), join="left")
    whole.attrs = {**attributes, "verified": 1, **results.provenance()}
    unfit = [
        f"{run['scenario'].item()}, {run['scheduler'].item()}: {run.attrs['unfit']}"
        for run in measured
        if run.attrs.get("unfit")
    ]
    if unfit:
        whole.attrs["cannot"] = "; ".join(unfit)
    files.write(whole, target)


Coordinates = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Coordinates along scenarios and schedulers: values by label, by name, by axis."""


def table_of_runs(
    runs: Sequence[xr.Dataset], labels: Mapping[str, Sequence[Any]], coordinates: Coordinates | None = None
) -> xr.Dataset:
    """The table of measures of runs that `labelled` has made, with parameters as coordinates.

    Parameters
    ----------
    runs : sequence of Dataset
        The runs.
    labels : mapping
        Labels of scenarios, schedulers and estimates, in the order of the study.
    coordinates : mapping, optional
        Further coordinates along scenarios and schedulers: values by label, by name, by axis.
    """
    replicates = sorted({int(each) for run in runs for each in np.atleast_1d(run["replicate"].values)})
    expanded = [run.expand_dims("replicate") if "replicate" not in run.dims else run for run in runs]
    whole = collected(expanded, labels, {"replicate": replicates})
    whole = whole.transpose(*(axis for axis in AXES if axis in whole.dims), ...)
    for name, array in whole.data_vars.items():
        known = measures().get(str(name))
        if known is not None:
            array.attrs = attrs_of(known.words, known.unit)
        elif "quantile" in array.dims and not array.attrs:
            of = str(name).removesuffix("_quantile")
            array.attrs = attrs_of(f"quantiles of the {of.replace('_', ' ')}", measures()[f"{of}_mean"].unit)
    are = {str(run["scenario"].item()): str(run.attrs["replicates_are"]) for run in runs}
    made: dict[str, Any] = {"replicates_are": _coordinate(whole, "scenario", "what replicates are", are)}
    for axis in ("scenario", "scheduler"):
        for key, values in {**_parameters(runs, axis), **(coordinates or {}).get(axis, {})}.items():
            made[key] = _coordinate(whole, axis, key.replace("_", " "), values)
    return whole.assign_coords(made)


def _coordinate(whole: xr.Dataset, axis: str, words: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Values by label as a coordinate: numbers or texts; NaN or nothing where there is none."""
    column = pd.Series([values.get(str(label)) for label in whole[axis].values], dtype=object)
    numeric = all(isinstance(each, int | float) for each in column.dropna())
    full = column.astype(float) if numeric else column.fillna("").astype(str)
    return axis, full.tolist(), {"long_name": words}


def _parameters(runs: Sequence[xr.Dataset], axis: str) -> dict[str, dict[str, Any]]:
    """Parameters of the scenarios or schedulers of some runs: values by label, by name."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for key, value in run.attrs.items():
            _, is_parameter, parameter = str(key).partition(f"{axis} parameter ")
            if is_parameter:
                plain = value.item() if isinstance(value, np.generic) else value
                found.setdefault(parameter, {})[str(run[axis].item())] = plain
    return found


def measure_table(study: xr.Dataset, name: str, **where: Any) -> pd.DataFrame:
    """One measure of a study as a long table.

    Parameters
    ----------
    study : xarray.Dataset
        The dataset of a study.
    name : str
        The measure.
    where
        Labels of axes to keep, one or several of each, or by scenario the one that is kept there; the axis
        stays a column.

    Returns
    -------
    pandas.DataFrame
        A column for each axis, `replicate` among them; the parameters of scenarios and schedulers; `value`
        and `number`, its weight where the measure is a mean over jobs (as a rule their number), else 1. Rows
        without a value are left out.
    """
    by_scenario = {axis: labels for axis, labels in where.items() if isinstance(labels, Mapping)}
    listed = where | {axis: dict.fromkeys(labels.values()) for axis, labels in by_scenario.items()}
    chosen = {
        axis: [labels] if isinstance(labels, str | int | float) else list(labels)
        for axis, labels in listed.items()
    }
    array = study[name].sel({axis: labels for axis, labels in chosen.items() if axis in study[name].dims})
    known = measures().get(name)
    if known is not None and known.aggregation == "jobs" and known.weight in study:
        number = study[known.weight].broadcast_like(study[name]).reindex_like(array)
    else:
        number = xr.ones_like(array)
    columns = xr.Dataset({"value": array, "number": number})
    frame = columns.to_dataframe().reset_index()
    if "replicate" not in frame:
        frame["replicate"] = 0
    kept = frame["value"].notna()
    for axis, labels in by_scenario.items():
        if axis in frame:
            kept &= frame[axis] == frame["scenario"].map(labels)
    return frame[kept].reset_index(drop=True)


def measures_table(study: xr.Dataset) -> pd.DataFrame:
    """All measures of a study in one table: a row a run, replicate and group, a column a measure.

    Parameters
    ----------
    study : xarray.Dataset
        The dataset of a study.

    Returns
    -------
    pandas.DataFrame
        Columns for the axes, for the parameters of scenarios and schedulers, and for the measures, in the
        units of their variables; NaN where a row has no value of a measure; one without an axis stands in all
        rows of that. Rows without any value are left out. The weights of means over jobs are measures
        themselves, as a rule `jobs`.
    """
    names = [
        name for name in map(str, study.data_vars) if name in measures() and set(study[name].dims) <= {*AXES}
    ]
    axes = [axis for axis in AXES if any(axis in study[name].dims for name in names)]
    whole = study[names].broadcast_like(study[axes]).transpose(*axes)
    # By the rows that there are: most combinations of labels are no run
    rows = np.nonzero(np.logical_or.reduce([whole[name].notnull().values for name in names]))
    place = dict(zip(axes, rows, strict=True))
    labels = {axis: whole[axis].values[place[axis]] for axis in axes}
    parameters = {
        str(name): each.values[place[str(each.dims[0])]]
        for name, each in study.coords.items()
        if name not in AXES and each.dims and each.dims[0] in axes
    }
    return pd.DataFrame({**labels, **parameters, **{name: whole[name].values[rows] for name in names}})


def collected(
    runs: Sequence[xr.Dataset],
    labels: Mapping[str, Sequence[Any]],
    own: Mapping[str, Sequence[Any]] | None = None,
) -> xr.Dataset:
    """Measures of runs on the dimensions that these differ in; NaN where there is no run.

    Parameters
    ----------
    runs : sequence of Dataset
        Numbers, and a scalar coordinate for each of the dimensions.
    labels : mapping
        Labels of these dimensions, in their order.
    own : mapping, optional
        Labels of dimensions of the measures, in their order; else as they come.

    Returns
    -------
    Dataset
        Variables with the dimensions of `labels` before their own. A dimension without labels is as
        long as in the longest run.
    """
    inside = {**_dimensions(runs), **(own or {})}
    everything = {**labels, **inside}
    place = {name: {label: i for i, label in enumerate(known)} for name, known in everything.items()}
    dims: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, measure in run.data_vars.items():
            dims.setdefault(str(name), dict.fromkeys(labels)).update(dict.fromkeys(map(str, measure.dims)))
    variables: dict[str, xr.Variable] = {}
    for run in runs:
        where = {name: [place[name][run[name].item()]] for name in labels}
        for dim in run.dims:
            where[str(dim)] = [place[str(dim)][label] for label in run[dim].values.tolist()]
        for name, measure in run.data_vars.items():
            own_dims = list(dims[str(name)])
            whole = variables.setdefault(
                str(name),
                xr.Variable(own_dims, np.full([len(place[dim]) for dim in own_dims], np.nan), measure.attrs),
            )
            # A measure without groups is one of all jobs
            missing = {dim for dim in own_dims if dim not in measure.dims and dim not in labels}
            index = [[place[dim].get(ALL, 0)] if dim in missing else where[dim] for dim in own_dims]
            present = [dim for dim in own_dims if dim in measure.dims]
            values = measure.transpose(*present).values.reshape([len(each) for each in index])
            whole.values[np.ix_(*index)] = values
    known = [name for name in inside if any(name in run.indexes for run in runs)]
    coordinates = {**labels, **{name: inside[name] for name in known}}
    return xr.Dataset(variables, {name: list(values) for name, values in coordinates.items()})


def _dimensions(runs: Sequence[xr.Dataset]) -> dict[str, Sequence[Any]]:
    """Labels of the dimensions of measures as they come, and indices where these have none."""
    found: dict[str, dict[Any, None]] = {}
    for run in runs:
        for dim in run.dims:
            # Without labels this gives 0, 1, ...
            found.setdefault(str(dim), {}).update(dict.fromkeys(run[dim].values.tolist()))
    return {name: list(values) for name, values in found.items()}
