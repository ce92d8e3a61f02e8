"""Kinds of studies: one line each, and the place of the model that declares keys, tasks, figures and view."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gridsched.experiments.tasks import function_at

if TYPE_CHECKING:
    from gridsched.experiments.config import Study

KINDS: dict[str, str] = {
    "local-policies": "gridsched.experiments.kinds.local_policies:LocalStudy",
    "grid": "gridsched.experiments.kinds.grid:GridStudy",
    "self-scheduling": "gridsched.experiments.kinds.jscheduler.config:JSchedulerStudy",
    "arena": "gridsched.experiments.kinds.arena:ArenaStudy",
    "calendars": "gridsched.experiments.kinds.calendars:CalendarStudy",
    "dynamic-grid": "gridsched.experiments.kinds.dynamic_grid.config:DynamicGridStudy",
    "multicluster": "gridsched.experiments.kinds.multicluster.config:MulticlusterStudy",
    "workload-models": "gridsched.experiments.kinds.workload_models:ModelStudy",
    "placements": "gridsched.experiments.kinds.placements:PlacementStudy",
    "forecast": "gridsched.experiments.kinds.forecast:ForecastStudy",
    "sequences": "gridsched.experiments.kinds.sequences:SequenceStudy",
    "calibration": "gridsched.experiments.kinds.calibration:CalibrationStudy",
    "readings": "gridsched.experiments.kinds.readings.config:ReadingsStudy",
}
"""Place of the model of each kind of study; it is loaded when a study asks for it."""


@cache
def study_kind(kind: str) -> type[Study]:
    """Model of a kind of study."""
    model: type[Study] = function_at(KINDS[kind])
    return model
