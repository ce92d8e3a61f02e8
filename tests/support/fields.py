"""Several fields of a result at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr


def field(source: Any, name: str) -> Any:
    """A field in plain numbers: a variable or attribute of a dataset, a value of a mapping or an object."""
    if isinstance(source, xr.Dataset):
        found = source[name].values if name in source.variables else source.attrs[name]
    elif isinstance(source, Mapping | np.ndarray | np.void):
        found = source[name]
    else:
        found = getattr(source, name)
    return plain(found)


def plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as lists and numbers of Python."""
    values = value.values if isinstance(value, xr.DataArray) else value
    return values.tolist() if isinstance(values, np.ndarray | np.generic) else values


def assert_fields(source: Any, /, **expected: Any) -> None:
    """The fields of these names are as expected."""
    found = {name: (field(source, name), plain(value)) for name, value in expected.items()}
    different = {name: values for name, values in found.items() if values[0] != values[1]}
    assert not different, f"found and expected: {different}"
