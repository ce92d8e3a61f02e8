"""The numbers behind a figure: estimates and comparisons.

Made of the table of measures by inference alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import inference
from gridsched.experiments.collection import ALL, AXES, measure_table
from gridsched.experiments.specification import Specification
from gridsched.metrics.measure import Measure
from gridsched.presentation.sentences import known_measure
from gridsched.systems import registry

SERIAL = "blocks"
"""What replicates are where they are consecutive parts of one log."""

UNITS = ("replicate", "value", "number", "relaxations")
"""Columns of a table of a measure that are no labels."""


def numbers(specification: Specification, study: xr.Dataset, *, shared_by: int = 1) -> pd.DataFrame:
    """Estimates and comparisons that a figure shows.

    Parameters
    ----------
    specification : Specification
        The figure.
    study : xarray.Dataset
        The dataset of its study.
    shared_by : int
        Figures with comparisons that the study shows: all of them are corrected for their common number.

    Returns
    -------
    pandas.DataFrame
        A row for each measure and label of the axes: `measure`; the axes and parameters; `value`, `low`,
        `high`,
        `number` (of replicates) and `reason` (why there is no interval); where there is a reference also
        `ratio`
        (or `difference`) with `_low`, `_high` and `_reason`, `probability`, `significant` (-1, 0 or 1), and
        `best` and `apart`, whether it does not, or does differ significantly from the best scheduler of its
        scenario.
    """
    if specification.form == "series":
        return _series(specification, study)
    found = [
        _of_measure(name, specification, study, shared_by * len(specification.measures))
        for name in specification.measures
        if name in study
    ]
    known = [part for part in found if len(part)]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame(columns=["measure", "value"])


def _of_measure(name: str, specification: Specification, study: xr.Dataset, shares: int) -> pd.DataFrame:
    known, dims = known_measure(name), study[name].dims
    where = {**({"group": ALL} if "group" in dims else {}), **specification.where}
    table = with_memory(measure_table(study, name, **where), study)
    keys = [str(dim) for dim in dict.fromkeys((*AXES, *dims)) if dim in table and dim != "replicate"]
    families = [
        (bool(serial), own, reference)
        for serial, part in table.groupby(_is_serial(table), sort=False)
        for own, reference in _families(specification, study, part)
    ]
    # all that a figure compares counts, whatever it is compared with
    comparisons = shares * sum(max(len(own[keys].drop_duplicates()) - 1, 1) for _, own, _ in families)
    found = []
    for serial, own, reference in families:
        options = {"weighted": known.aggregation == "jobs", "serial": serial}
        family = inference.summary(
            own,
            keys,
            reference,
            specification.relation,
            comparisons=comparisons,
            largest=known.largest if known.share else math.inf,
            **options,
        )
        if "scheduler" in reference:
            family = family.join(_beside_best(own, keys, family, known, **options))
        for axis, label in reference.items():
            # what is relative to itself is 1 by definition; only the reference of a study is shown
            if axis != "scheduler" or specification.against:
                family = family[family[axis] != label]
        found.append(family)
    if not found:
        return pd.DataFrame()
    whole = pd.concat(found, ignore_index=True)
    parameters = [column for column in table if column not in {*keys, *UNITS}]
    if parameters:
        whole = whole.merge(table[[*keys, *parameters]].drop_duplicates(keys), on=keys, how="left")
    if specification.x in study.data_vars:
        over = measure_table(study, specification.x, **where)
        shared = [key for key in keys if key in over]
        means = over.groupby(shared, sort=False)["value"].mean().rename(specification.x)
        whole = whole.merge(means.reset_index(), on=shared, how="left")

    def places(labels: pd.Series[Any]) -> pd.Series[Any]:
        """Places of labels in the study."""
        order = study[str(labels.name)].values.tolist()
        return labels.map({label: place for place, label in enumerate(order)})

    ordered = [key for key in keys if key in study.coords]
    return whole.sort_values(ordered, key=places, kind="stable", ignore_index=True).assign(measure=name)


def _series(specification: Specification, study: xr.Dataset) -> pd.DataFrame:
    """Time series of the first replicate, as they are."""
    chosen = study.isel(replicate=0).sel(
        {axis: labels for axis, labels in specification.where.items() if axis in study.dims}
    )
    frames = [
        chosen[[name, specification.x]]
        .to_dataframe()
        .reset_index()
        .rename(columns={name: "value"})
        .assign(measure=name)
        for name in specification.measures
    ]
    return pd.concat(frames, ignore_index=True).dropna(subset="value", ignore_index=True)


def with_memory(table: pd.DataFrame, study: xr.Dataset) -> pd.DataFrame:
    """The table of a measure with how many times each log holds the memory of its queue, where known."""
    if "relaxations" not in study:
        return table
    held = measure_table(study, "relaxations", group=ALL).rename(columns={"value": "relaxations"})
    shared = [axis for axis in AXES if axis in table and axis in held and axis not in ("replicate", "group")]
    known = held[[*shared, "relaxations"]].drop_duplicates(shared)
    return table.merge(known, on=shared, how="left")


def units_word(table: pd.DataFrame) -> str:
    """What a table calls what means were taken over: replicates, blocks of a log, or either."""
    serial = set(_is_serial(table))
    return "replicates" if serial <= {False} else "blocks" if serial == {True} else "replicates or blocks"


def _is_serial(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are of scenarios whose replicates are parts of one log."""
    known = table["replicates_are"] == SERIAL if "replicates_are" in table else False
    return pd.Series(known, index=table.index)


def _families(
    specification: Specification, study: xr.Dataset, table: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, Mapping[str, Any]]]:
    """Parts of a table, each with the labels of what its rows are compared with, if with anything."""
    reference = specification.against or study.attrs.get("reference")
    if specification.reference == "scheduler" and reference in set(table.get("scheduler", ())):
        yield table, {"scheduler": reference}
    elif specification.reference == "estimates" and "estimates" in table:
        yield table, {"estimates": str(study["estimates"].values[0])}
    elif specification.reference == "scenario" and "baseline" in table:
        for baseline in dict.fromkeys(table["baseline"][table["baseline"] != ""]):
            own = table[(table["baseline"] == baseline) | (table["scenario"] == baseline)]
            yield own, {"scenario": baseline}
    elif len(table):
        yield table, {}


def _beside_best(
    table: pd.DataFrame,
    keys: list[str],
    found: pd.DataFrame,
    known: Measure,
    *,
    weighted: bool,
    serial: bool,
) -> pd.DataFrame:
    """Which rows differ significantly, by the test of the pair, from the best of their scenario.

    `best` are those that do not, and `apart` those that do; neither, where the pair cannot be tested. Ideal
    machines are no schedulers: they are left out.
    """
    beside = pd.DataFrame({"best": False, "apart": False}, index=found.index)
    places = [key for key in keys if key != "scheduler"]
    schedulers = found[~found["scheduler"].map(is_bound) & found["value"].notna()]
    for place, part in schedulers.groupby(places, sort=False, dropna=False):
        own = table.merge(pd.DataFrame([place], columns=places), on=places)
        units, values, *others = inference.units_of(own, ["scheduler"], weighted=weighted, serial=serial)
        rows = pd.Index(units["scheduler"]).get_indexer(part["scheduler"])
        weights, memory = (None if each is None else each[rows] for each in others)
        pairs = inference.compare_pairs(
            values[rows], "difference", weights, serial=serial, relaxations=memory
        )
        best = part["value"].argmax() if known.better == "higher" else part["value"].argmin()
        tested, differs = ~np.isnan(pairs.probability[best]), pairs.significant[best] != 0
        beside.loc[part.index, "best"] = (tested & ~differs) | (np.arange(len(part)) == best)
        beside.loc[part.index, "apart"] = tested & differs
    return beside


def is_bound(label: str) -> bool:
    """Whether a label is the name of an ideal machine, which is no scheduler of clusters."""
    made = registry.names().get(label)
    return made is not None and not made().names_clusters
