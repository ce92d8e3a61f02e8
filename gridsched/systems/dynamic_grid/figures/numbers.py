"""Numbers behind the figures of dynamic grids: which cases belong together, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from gridsched.figures import panels
from gridsched.replication import times_interval
from gridsched.systems.dynamic_grid.measures import GRID_USERS

CLUSTER_USERS, EVERYBODY = "sites", "all"
"""Groups of users: those of all clusters, and they and those of the grid."""

DEFAULT = "default"
"""Label of the default case."""

CHURN = ("mean_stay", "mean_absence", "lease")
"""Factors that have to do with clusters that leave."""

NONE = "none"
"""Text of a value that is not there."""

VALUE = ["mean", "low", "high"]

GROUP_NAMES = {
    CLUSTER_USERS: "users of the clusters",
    GRID_USERS: "users of the grid",
    EVERYBODY: "all users",
}


def group_name(group: str) -> str:
    """Group of users in a figure."""
    return GROUP_NAMES.get(group, group)


def parameters(study: xr.Dataset) -> dict[str, dict[str, str]]:
    """Parameters of every case as text."""
    keys = panels.labels(study, "parameter")
    rows = study["parameters"].transpose("case", "parameter").to_numpy()
    return {
        case: dict(zip(keys, map(str, row), strict=True))
        for case, row in zip(panels.labels(study, "case"), rows, strict=True)
    }


def differing_in(study: xr.Dataset, *keys: str) -> list[str]:
    """Cases that differ from the default in no other parameters than these, the default first."""
    table = parameters(study)
    default = table[DEFAULT]
    return [
        case
        for case, values in table.items()
        if all(values[key] == text for key, text in default.items() if key not in keys)
    ]


def counterpart(study: xr.Dataset, case: str, keys: Sequence[str] = ("policy",)) -> str:
    """The case that has these parameters of a case, and otherwise those of the default."""
    table = parameters(study)
    wanted = {**table[DEFAULT], **{key: table[case][key] for key in keys}}
    return next((label for label, values in table.items() if values == wanted), DEFAULT)


def groups(study: xr.Dataset) -> list[str]:
    """Groups that stand for many: the users of all clusters, and those of the grid if there are any."""
    has_grid = float(study["jobs_by_week"].sel(group=GRID_USERS, case=DEFAULT).sum()) > 0
    return [CLUSTER_USERS, *([GRID_USERS] if has_grid else [])]


def relative(
    study: xr.Dataset, cases: Mapping[str, str], chosen: Sequence[str], metric: str = "response_time"
) -> pd.DataFrame:
    """Ratios of means of cases to those of others, paired by week; only where both have the same jobs.

    Parameters
    ----------
    study : xarray.Dataset
        A study of dynamic grids.
    cases : mapping of case to case
        What is compared with what.
    chosen : sequence of str
        Groups of users.
    metric : str
        Response time, or another one with sums by week.

    Returns
    -------
    DataFrame
        Columns case, group, relative_to, metric, mean, low, high.
    """
    rows = []
    for case, against in cases.items():
        for group in chosen:
            ours, theirs = (
                study[f"{metric}_by_week"].sel(case=c, group=group).values for c in (case, against)
            )
            jobs, same = (study["jobs_by_week"].sel(case=c, group=group).values for c in (case, against))
            used = np.where(jobs > 0, 1.0, np.nan)
            if not (jobs > 0).any() or (jobs != same).any():
                continue
            interval = times_interval(ours * used, theirs * used)
            rows.append((case, group, against, metric, *(float(bound) for bound in interval)))
    return pd.DataFrame(rows, columns=["case", "group", "relative_to", "metric", *VALUE])


def points(study: xr.Dataset, sweep: str) -> pd.DataFrame:
    """Cases of a sweep: columns sweep, factor, case, line, text, value (NaN where it is no number)."""
    part = study.sel(sweep=sweep)
    inside = part["in_sweep"].values > 0
    return pd.DataFrame(
        {
            "sweep": sweep,
            "factor": str(part["sweep_factor"].values),
            "case": part["case"].values[inside].astype(str),
            "line": part["sweep_line"].values[inside].astype(str),
            "text": part["sweep_text"].values[inside].astype(str),
            "value": part["sweep_value"].values[inside],
        }
    )


def sweeps_of(study: xr.Dataset) -> dict[str, str]:
    """Factor of each sweep."""
    if "sweep_factor" not in study:
        return {}
    names = panels.labels(study, "sweep")
    return dict(zip(names, map(str, study["sweep_factor"].values), strict=True))


def is_numeric(study: xr.Dataset, sweep: str) -> bool:
    """Whether a line can be drawn through the values of a sweep."""
    table = points(study, sweep)
    return bool(table["value"].nunique() > 1 and table["text"].nunique() > 2)


def swept(study: xr.Dataset, sweep: str, metric: str = "response_time") -> pd.DataFrame:
    """Points of a sweep with means relative to the default case under the same local policy.

    Returns
    -------
    DataFrame
        Columns sweep, factor, line, text, value, case, group, relative_to, metric, mean, low, high.
    """
    table = points(study, sweep)
    cases = {case: counterpart(study, case) for case in table["case"]}
    return table.merge(relative(study, cases, groups(study), metric), on="case")


def line_names(lines: Sequence[str]) -> dict[str, str]:
    """Short names of the lines of a sweep: only what differs, with its key where it is yes or no."""
    pairs = {line: dict(part.rsplit(" ", 1) for part in line.split(", ") if part) for line in lines}
    keys = dict.fromkeys(key for each in pairs.values() for key in each)
    differing = [key for key in keys if len({each.get(key) for each in pairs.values()}) > 1]
    return {
        line: ", ".join(_short(key, each.get(key, "")) for key in differing) for line, each in pairs.items()
    }


def _short(key: str, text: str) -> str:
    return f"{key.replace('_', ' ')}: {text}" if text in ("yes", "no") else text
