"""Studies of grids: every scheduler under every local policy on every grid, with replicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import xarray as xr
from pydantic import Field, model_validator

from gridsched.experiments.comparing import ComparisonStudy
from gridsched.experiments.parts import GridConfig, label_of
from gridsched.experiments.schedulers import Policies, scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import FROM_SUBMISSION
from gridsched.validation import suggestion


class GridComparison(ComparisonStudy):
    """What studies of schedulers on several clusters have in common."""

    scenarios: Annotated[tuple[GridConfig, ...], Field(min_length=1)]
    """The scenarios: clusters with their workloads."""
    policies: Policies = ("easy",)
    """Local policies of all clusters, where a scheduler leaves them open; each makes scenarios of its own."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for scenario in self.scenarios:
            self._check_partners(scenario)
        return self

    def _check_partners(self, scenario: GridConfig) -> None:
        clusters = [cluster.name for cluster in scenario.clusters]
        for scheduler in self.schedulers:
            partners = getattr(scheduler, "partners", None) or {}
            for name in (name for home, others in partners.items() for name in (home, *others)):
                if name not in clusters:
                    raise ValueError(
                        f"schedulers: partners of {label_of(scheduler)!r}: scenario {scenario.name} has no "
                        f"cluster {name!r}; {suggestion(name, clusters)}"
                    )

    # --- what is shown --------------------------------------------------------------------------------

    @property
    def details(self) -> list[Specification]:
        """Figures of all comparisons, what schedulers communicate, and who ran whose jobs."""
        messages = Specification(
            name="messages",
            form="response",
            title="Response time and messages",
            measures=("response_time_mean",),
            x="messages_per_job",
            where=self.usual,
            caption="A message is a query with its answer, or a piece of information sent.",
            finding="gridsched.presentation.grids:gain_against_cost",
        )
        flows = [
            Specification(
                name=f"flows-{number}",
                form="map",
                title=f"Where jobs ran: {label}",
                measures=("flow_work",),
                facets="scheduler",
                where={
                    **self.usual,
                    "scenario": label,
                    "group": [f"{home} to {cluster}" for home in clusters for cluster in clusters],
                },
                reference="",
            )
            for number, (label, clusters) in enumerate(self._grids.items(), start=1)
        ]
        means = Specification(
            name="means",
            form="ranking",
            title="Mean wait time and bounded slowdown",
            measures=("wait_time_mean", "bounded_slowdown_mean"),
            where=self.usual,
            reference="",
        )
        return [*([messages] if self._grids else []), *self.by_cluster, means, *flows]

    @property
    def _grids(self) -> dict[str, list[str]]:
        """Clusters of each usual scenario that has several."""
        names = {run.label: [each.name for each in run.scenario.clusters] for run in self.runs}
        usual = self.usual["scenario"]
        return {label: names[label] for label in usual if len(names[label]) > 1}

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        planned = [
            label_of(written)
            for written in self.schedulers
            if getattr(scheduler_made(written), "predictions", "exact") == "plan"
        ]
        policies = ", ".join(map(label_of, self.policies))
        return [
            *super().conventions(dataset),
            f"Local policy where a scheduler leaves it open: {policies}.",
            *([f"{', '.join(planned)}: waits are predicted from a conservative plan."] if planned else []),
        ]


class GridStudy(GridComparison):
    """A study of grids: every scheduler under every local policy on every scenario, with replicates."""

    refuses: ClassVar[Mapping[str, str]] = {"feedback": FROM_SUBMISSION}

    kind: Literal["grid"]
    """What is studied."""
