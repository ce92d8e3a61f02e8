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
    return value.tolist() if isinstance(value, np.ndarray | np.generic | xr.DataArray) else value


def assert_fields(source: Any, /, **expected: Any) -> None:
    """The fields of these names are as expected."""
    found = {name: field(source, name) for name in expected}
    assert found == {name: plain(value) for name, value in expected.items()}
