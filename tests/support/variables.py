"""What docs/run-variables.md says of the variables of runs."""

from __future__ import annotations

import re
from functools import cache

import xarray as xr

from tests.conftest import REPOSITORY

ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (.+) \| ([^|]+) \|$", re.MULTILINE)


@cache
def described() -> dict[str, tuple[str, list[str], str]]:
    """Dimensions, meanings and unit of each variable of the page."""
    page = (REPOSITORY / "docs" / "run-variables.md").read_text(encoding="utf-8")
    rows = ROW.findall(page)
    assert len({name for name, *_ in rows}) == len(rows)
    return {name: (dimensions, meaning.split("; "), unit) for name, dimensions, meaning, unit in rows}


def check_described(run: xr.Dataset) -> None:
    """Every variable of the run is on the page with its dimensions, meaning and unit."""
    for name, variable in run.variables.items():
        row = described().get(str(name))
        assert row is not None, f"docs/run-variables.md does not have {name}"
        dimensions, meanings, unit = row
        assert dimensions == (", ".join(map(str, variable.dims)) or "-"), name
        if "long_name" in variable.attrs:  # index coordinates have none
            assert set(variable.attrs["long_name"].split("; ")) <= set(meanings), name
            assert variable.attrs["units"] == unit, name
