"""Figures: one function a figure, each gives the figure and a table of the numbers that it shows.

`save` writes them as SVG, PNG and CSV.
"""

from collections.abc import Callable

import xarray as xr

from gridsched.figures.arena import ARENA_FIGURES
from gridsched.figures.calendars import CALENDAR_FIGURES, CASE_FIGURES
from gridsched.figures.characterisation import workload_characterisation
from gridsched.figures.dynamic_grids import DYNAMIC_FIGURES
from gridsched.figures.gantt import gantt
from gridsched.figures.grids import GRID_FIGURES, SCENARIO_FIGURES
from gridsched.figures.load import load_series
from gridsched.figures.models import MODEL_FIGURES
from gridsched.figures.multicluster import MULTICLUSTER_FIGURES
from gridsched.figures.policies import (
    POLICY_FIGURES,
    policies_classes,
    policies_differences,
    policies_distribution,
    policies_means,
    recorded_waits,
)
from gridsched.figures.prediction import PREDICTION_FIGURES
from gridsched.figures.self_scheduling import SELF_SCHEDULING_FIGURES
from gridsched.figures.style import Drawing, save

STUDY_FIGURES: dict[str, Callable[[xr.Dataset], Drawing]] = {
    **POLICY_FIGURES,
    **GRID_FIGURES,
    **MODEL_FIGURES,
    **SELF_SCHEDULING_FIGURES,
    **ARENA_FIGURES,
    **CALENDAR_FIGURES,
    **DYNAMIC_FIGURES,
    **MULTICLUSTER_FIGURES,
}
"""Figures of a whole study by name."""

__all__ = [
    "CASE_FIGURES",
    "DYNAMIC_FIGURES",
    "MULTICLUSTER_FIGURES",
    "PREDICTION_FIGURES",
    "SCENARIO_FIGURES",
    "SELF_SCHEDULING_FIGURES",
    "STUDY_FIGURES",
    "gantt",
    "load_series",
    "policies_classes",
    "policies_differences",
    "policies_distribution",
    "policies_means",
    "recorded_waits",
    "save",
    "workload_characterisation",
]
