"""Studies of the arena: schedulers of all systems on the same grids, under several loads and estimates."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import xarray as xr
from pydantic import Field, model_validator

from gridsched.experiments.kinds.grid import GridComparison
from gridsched.experiments.parts import BaselineConfig, GridConfig, label_of
from gridsched.experiments.schedulers import AnyScheduler, scheduler_made
from gridsched.validation import Different, Number


class ArenaScenario(GridConfig, BaselineConfig):
    """Clusters of a grid with what their users submit, and the scenario that it is compared with."""


class ArenaStudy(GridComparison):
    """A study of the arena: schedulers of all systems on the same clusters, jobs and estimates."""

    refuses_the_unable = False

    kind: Literal["arena"]
    """What is studied."""
    scenarios: Annotated[tuple[ArenaScenario, ...], Field(min_length=1)]
    """The scenarios: clusters with their workloads."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=2)]
    """Schedulers: names, or names with parameters. A list of values where a parameter takes one makes a
    scheduler of each, with all combinations where there are several lists."""
    loads: Annotated[
        tuple[Annotated[Number, Field(ge=0.01, le=100)], ...], Field(min_length=1), Different
    ] = (1.0,)
    """Loads, relative to the workloads as they are: times between submissions are divided by this."""

    @model_validator(mode="after")
    def _conditions(self) -> Self:
        if 1.0 not in self.loads:
            raise ValueError("loads: give 1 too, the workloads as they are")
        return self

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        made = {label_of(written): scheduler_made(written) for written in self.schedulers}
        ideal = [label for label, each in made.items() if not each.names_clusters]
        deadlines = [label for label, each in made.items() if "deadlines" not in each.cannot]
        return [
            *super().conventions(dataset),
            *([f"{', '.join(ideal)}: a bound, no scheduler of clusters."] if ideal else []),
            *([f"{', '.join(deadlines)}: made for deadlines, compared here by times."] if deadlines else []),
        ]
