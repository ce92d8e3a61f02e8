"""Runs in one dataset, by what they differ in; and what datasets of all studies have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.replication import Interval

Described = Mapping[str, tuple[tuple[str, ...], str, str]]
"""Dimensions, long name and unit of variables."""

BOUNDS = {"": "", "_low": ", lower bound", "_high": ", upper bound"}
"""Endings of the variables of an interval, and of their long names."""


def attrs_of(long_name: str, units: str) -> dict[str, str]:
    """Attributes of a variable."""
    return {"long_name": long_name, "units": units}


def interval_variables(
    name: str, dims: tuple[str, ...], interval: Interval, long_name: str, units: str
) -> dict[str, Any]:
    """Variables of an interval: its middle, and its bounds."""
    return {
        f"{name}{ending}": (dims, values, attrs_of(long_name + BOUNDS[ending], units))
        for ending, values in zip(BOUNDS, interval, strict=True)
    }


def measured_run(
    values: Mapping[str, Any],
    variables: Described,
    labels: Mapping[str, Any],
    own: Mapping[str, Sequence[Any]],
) -> xr.Dataset:
    """Measures of a run, with what it is.

    Parameters
    ----------
    values : mapping
        Values of the variables.
    variables : mapping
        Their dimensions, long names and units.
    labels : mapping
        What the run is, by dimension of the dataset of its study.
    own : mapping
        Labels of the dimensions of the variables, where these have any.
    """
    whole = xr.Dataset(
        {
            name: (dims, np.asarray(values[name], np.float64), attrs_of(long_name, units))
            for name, (dims, long_name, units) in variables.items()
        },
        {**labels, **own},
    )
    whole.attrs = {"title": "measures of a run", "verified": 1, **results.provenance()}
    return whole


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
    variables: dict[str, xr.Variable] = {}
    for run in runs:
        where = [[place[name][run[name].item()]] for name in labels]
        for name, measure in run.data_vars.items():
            dims = (*labels, *map(str, measure.dims))
            whole = variables.setdefault(
                str(name),
                xr.Variable(dims, np.full([len(place[dim]) for dim in dims], np.nan), measure.attrs),
            )
            index = [[place[str(dim)][label] for label in run[dim].values.tolist()] for dim in measure.dims]
            whole.values[np.ix_(*where, *index)] = measure.values
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
