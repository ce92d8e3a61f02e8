"""Several fields of one result, compared at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr


def plain(value: Any) -> Any:
    """Arrays as lists, those without dimensions as single values; all else as it is."""
    if isinstance(value, xr.DataArray | pd.Series | pd.Index):
        value = value.to_numpy()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def field(found: Any, name: str) -> Any:
    """A variable of a dataset, column of a table or of records, value of a mapping, or else an attribute.

    In plain numbers, as lists where there are several.
    """
    names: Any = found if isinstance(found, Mapping | pd.Series | pd.DataFrame) else ()
    if isinstance(found, np.ndarray | np.void):
        names = found.dtype.names or ()
    return plain(found[name] if name in names else getattr(found, name))


def assert_fields(found: Any, /, **expected: Any) -> None:
    """The fields have exactly these values.

    Arrays are compared as lists, NaN equals NaN, and all that differs is shown at once.
    """
    wrong = {}
    for name, wanted in expected.items():
        value, wanted = field(found, name), plain(wanted)
        if not (value == wanted or (value is not None and value != value and wanted != wanted)):
            wrong[name] = f"found {value!r}, expected {wanted!r}"
    assert not wrong, wrong


def assert_stacked(stacked: xr.Dataset, index: int, run: xr.Dataset) -> None:
    """A file of several runs has all of this one: what runs share, its segments, pieces and own facts."""
    own = stacked.isel(run=index, segment=stacked["segment_run"].values == index)
    if "piece" in stacked.sizes:
        places = np.flatnonzero(stacked["segment_run"].values == index)
        own = own.isel(piece=np.isin(stacked["piece_segment"].values, places))
        own["piece_segment"] = own["piece_segment"] - places[:1].sum()
    for name in set(run.variables) - {"start_time", "end_time"}:
        np.testing.assert_array_equal(own[name].values, run[name].values, err_msg=str(name))
    facts = {
        key: own.attrs.get(key, field(own, f"run_{key}") if f"run_{key}" in own else None)
        for key in run.attrs
    }
    assert facts == {**run.attrs, "title": stacked.attrs["title"]}
