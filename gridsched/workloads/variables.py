"""Variables of datasets that describe workloads."""

from __future__ import annotations

import xarray as xr


def variable(dims: tuple[str, ...], values: object, long_name: str, units: str = "1") -> xr.Variable:
    """A variable with its meaning and unit."""
    return xr.Variable(dims, values, {"long_name": long_name, "units": units})
