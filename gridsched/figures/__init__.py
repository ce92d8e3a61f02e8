"""Figures: one function a figure, each gives the figure and a table of the numbers that it shows.

`save` writes them as SVG, PNG and CSV.
"""

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
from gridsched.figures.style import save

__all__ = [
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
