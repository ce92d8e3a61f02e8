"""Estimates and comparisons of a table of measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridsched.errors import ConfigurationError
from gridsched.inference.comparisons import compare
from gridsched.inference.estimates import mean
from gridsched.inference.evidence import Form
from gridsched.inference.units import Floats


def summary(
    table: pd.DataFrame,
    by: Sequence[str],
    reference: Mapping[str, Any] | None = None,
    form: Form = "ratio",
    *,
    weighted: bool = False,
    serial: bool = False,
    signed: bool = False,
    largest: float = np.inf,
    confidence: float = 0.95,
    comparisons: int | None = None,
) -> pd.DataFrame:
    """Estimate each row of a table of measures, and compare it with the reference in the same scenario.

    Parameters
    ----------
    table : pandas.DataFrame
        One row a unit: the columns of `by`, `replicate` and `value`; `number` (of jobs) if it is weighted.
        `relaxations` says of blocks how many times the log holds the memory of its queue, see `mean`.
    by : sequence of str
        Columns that tell rows of the result apart, such as scenario and scheduler.
    reference : mapping of str to value, optional
        What is different in the reference, such as ``{"scheduler": "easy"}``: a row is compared with that
        which has these keys, and otherwise the same.
    form : {"ratio", "difference"}
        How a row is compared.
    weighted : bool
        Whether units count by their `number`; blocks of a log always do.
    serial : bool
        Whether replicates are consecutive blocks of one log.
    signed, largest, confidence
        See `mean`.
    comparisons : int, optional
        Number of comparisons that are shown together; by default those of this table.

    Returns
    -------
    pandas.DataFrame
        One row a key, in order of first appearance: the keys, `value`, `low`, `high`, `number` of units,
        `reason`. With a reference also `{form}`, `{form}_low`, `{form}_high`, `{form}_reason`,
        `probability`, `significant`, see `Comparison`.

    Raises
    ------
    ConfigurationError
        If columns are missing, or a key has two values in a replicate.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     {"scheduler": ["fcfs"] * 5 + ["easy"] * 5, "replicate": [*range(5)] * 2,
    ...      "value": [9.0, 8.0, 11.0, 10.0, 9.5, 4.0, 4.2, 5.0, 5.1, 4.4]}
    ... )
    >>> found = summary(table, ["scheduler"], {"scheduler": "easy"})
    >>> found[["scheduler", "value", "number", "significant"]].round(2).values.tolist()
    [['fcfs', 9.5, 5, 1], ['easy', 4.54, 5, 0]]
    """
    keys, values, weights, memory = units_of(
        table, by, weighted=weighted, serial=serial, needs=reference or ()
    )
    estimate = mean(
        values,
        weights,
        serial=serial,
        signed=signed,
        largest=largest,
        relaxations=memory,
        confidence=confidence,
    )
    result = keys.assign(**estimate._asdict())
    if not reference:
        return result
    places = keys.reset_index(names="_place")
    wanted = keys.assign(**reference).merge(places, on=[*by], how="left")["_place"].to_numpy(np.float64)
    known = ~np.isnan(wanted)
    place = np.where(known, wanted, 0).astype(np.int64)
    base = np.where(known[:, np.newaxis], values[place], np.nan)
    found = compare(
        values,
        base,
        form,
        weights,
        None if weights is None else weights[place],
        serial=serial,
        relaxations=memory,
        reference_relaxations=None if memory is None else memory[place],
        confidence=confidence,
        comparisons=comparisons,
    )
    return result.assign(
        **{
            form: found.value,
            f"{form}_low": found.low,
            f"{form}_high": found.high,
            f"{form}_reason": np.where(known, found.reason, "no reference"),
            "probability": found.probability,
            "significant": found.significant,
        }
    )


def units_of(
    table: pd.DataFrame, by: Sequence[str], *, weighted: bool, serial: bool, needs: Iterable[str] = ()
) -> tuple[pd.DataFrame, Floats, Floats | None, Floats | None]:
    """Units of a table of measures as arrays, which have a row a key and a column a replicate.

    Parameters
    ----------
    table, by, weighted, serial
        See `summary`.
    needs : iterable of str
        Further columns that the table has to have.

    Returns
    -------
    keys : pandas.DataFrame
        In order of first appearance.
    values : float array
        NaN where a unit is absent.
    weights : float array or None
        Number of jobs, where units count by it.
    relaxations : float array or None
        How many times the log holds the memory of its queue, one number a key, where it is known.
    """
    by = list(by)
    use_weights = weighted or serial
    needed = [*by, "replicate", "value", *(["number"] if use_weights else []), *needs]
    missing = [name for name in needed if name not in table]
    if missing or not by:
        raise ConfigurationError(
            f"table of measures: no column {missing[0]!r}; it has {', '.join(map(str, table.columns))}"
            if missing
            else "by: give at least one column"
        )
    twice = table.duplicated([*by, "replicate"])
    if twice.any():
        where = table[twice].iloc[0]
        cell = ", ".join(f"{name} {where[name]}" for name in (*by, "replicate"))
        raise ConfigurationError(
            f"table of measures: two values for {cell}; name what tells them apart in by"
        )
    rows = table.groupby(by, sort=False, dropna=False).ngroup().to_numpy()
    columns, replicates = pd.factorize(table["replicate"], sort=True)
    keys = table[by].drop_duplicates(ignore_index=True)

    def matrix(column: str) -> Floats:
        cells = np.full((len(keys), len(replicates)), np.nan)
        cells[rows, columns] = table[column].to_numpy(np.float64)
        return cells

    known = serial and "relaxations" in table
    memory = np.fmin.reduce(matrix("relaxations"), axis=1) if known else None
    return keys, matrix("value"), matrix("number") if use_weights else None, memory
