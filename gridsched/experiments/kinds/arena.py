"""Studies of the arena: schedulers of all systems on the same grids, under several loads and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import xarray as xr
from pydantic import Field, model_validator

from gridsched.experiments.comparing import ComparedRun
from gridsched.experiments.kinds.grid import GridComparison
from gridsched.experiments.parts import BaselineConfig, GridConfig, label_of
from gridsched.experiments.schedulers import AnyScheduler, scheduler_made
from gridsched.experiments.validation import Number, unique


class ArenaScenario(GridConfig, BaselineConfig):
    """Clusters of a grid with what their users submit, and the scenario that it is compared with."""


class ArenaStudy(GridComparison):
    """A study of the arena: schedulers of all systems on the same clusters, jobs and estimates."""

    refuses_the_unable = False
    leads = True

    kind: Literal["arena"]
    """What is studied."""
    scenarios: Annotated[tuple[ArenaScenario, ...], Field(min_length=1)]
    """The scenarios: clusters with their workloads."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=2)]
    """Schedulers: names, or names with parameters. A list of values where a parameter takes one makes a
    scheduler of each, with all combinations where there are several lists."""
    loads: Annotated[tuple[Annotated[Number, Field(ge=0.01, le=100)], ...], Field(min_length=1)] = (1.0,)
    """Loads, relative to the workloads as they are: times between submissions are divided by this."""
    estimate_errors: tuple[Annotated[Number, Field(gt=0, le=100)], ...] = ()
    """Further estimates: shares of the difference between requested times and run times that are left. That
    of the estimates `actual` is 0, that of `requested` 1."""

    @model_validator(mode="after")
    def _conditions(self) -> Self:
        unique("loads", [str(load) for load in self.loads])
        unique("estimate_errors", [str(error) for error in self.estimate_errors])
        if 1.0 not in self.loads:
            raise ValueError("loads: give 1 too, the workloads as they are")
        if 1.0 in self.estimate_errors:
            raise ValueError("estimate_errors: 1 stands for requested times; name them in estimates")
        return self

    @property
    def _errors(self) -> dict[str, float]:
        """Errors of estimates by label."""
        return {f"requested, {error:g} of the error": error for error in self.estimate_errors}

    def estimates_in(self, scenario: Any) -> Sequence[str]:
        """Runtime estimates of the schedulers in a scenario."""
        return [*super().estimates_in(scenario), *self._errors]

    def conventions_of(self, run: ComparedRun) -> dict[str, Any]:
        """Keyword arguments of `gridsched.simulate`, and what is changed in the workload."""
        given = super().conventions_of(run)
        if run.estimates not in self._errors:
            return given
        return {**given, "estimates": "requested", "estimate_error": self._errors[run.estimates]}

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
