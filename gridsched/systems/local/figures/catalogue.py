"""Figures of a study of local policies by kind."""

from __future__ import annotations

import math
from collections.abc import Callable

import xarray as xr

from gridsched.figures.characterisation import workload_characterisation
from gridsched.figures.gantt import gantt
from gridsched.figures.style import Drawing
from gridsched.systems.local.figures.conditions import CONDITION_FIGURES
from gridsched.systems.local.figures.findings import FINDINGS as FINDINGS
from gridsched.systems.local.figures.load import load_series
from gridsched.systems.local.figures.policies import POLICY_FIGURES
from gridsched.systems.local.figures.users import USER_FIGURES


def gantt_of_run(run: xr.Dataset) -> Drawing:
    """Schedule of a run."""
    return gantt(run, until=_common_end(run))


def _common_end(run: xr.Dataset) -> float:
    """End of the time axis, the same for most policies on the same jobs: they are made apart, yet compared.

    It is the first of 1, 1.5, 2... times the shortest possible schedule that is not before the last end.
    """
    first, last = float(run["submit_time"].min()), float(run["segment_end"].max())
    length = run["segment_end"] - run["segment_start"]
    work = float((run["segment_processors"] * length).sum())
    shortest = max(work / float(run["cluster_processors"].sum()), float(length.max()), 1.0)
    return first + shortest * math.ceil(2 * (last - first) / shortest) / 2


FIGURES: dict[str, Callable[..., Drawing]] = {
    **POLICY_FIGURES,
    **CONDITION_FIGURES,
    **USER_FIGURES,
    "load": load_series,
    "workload": workload_characterisation,
    "gantt": gantt_of_run,
}
"""What draws each kind of figure; besides the dataset, some are told of which workload or run."""
