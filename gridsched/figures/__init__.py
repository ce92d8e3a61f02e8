"""Figures: one function a figure, each gives the figure and a table of the numbers that it shows.

`save` writes them as SVG, PNG and CSV.
"""

from collections.abc import Callable

import xarray as xr

from gridsched.figures.characterisation import workload_characterisation
from gridsched.figures.gantt import gantt
from gridsched.figures.load import load_series
from gridsched.figures.policies import (
    policies_classes,
    policies_differences,
    policies_distribution,
    policies_means,
    recorded_waits,
)
from gridsched.figures.style import Drawing, save

STUDY_FIGURES: dict[str, Callable[[xr.Dataset], Drawing]] = {
    "policies_means": policies_means,
    "policies_differences": policies_differences,
    "policies_distribution": policies_distribution,
    "policies_classes": policies_classes,
    "recorded_waits": recorded_waits,
}
"""Figures of a study dataset by name."""

__all__ = [
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
