"""Studies of local policies: every policy on one cluster at a time, under every kind of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import xarray as xr
from pydantic import Field, StrictBool, model_validator

from gridsched import results
from gridsched.comparison import recorded_run
from gridsched.experiments import files
from gridsched.experiments.collection import labelled
from gridsched.experiments.comparing import ComparisonStudy, plain_measuring
from gridsched.experiments.inputs import without_machine
from gridsched.experiments.measuring import Measuring, measured
from gridsched.experiments.parts import BaselineConfig, VariedConfig, WorkloadConfig, label_of
from gridsched.experiments.schedulers import scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Figure, Task
from gridsched.metrics import jobs as metrics
from gridsched.policies.local import PassName
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.workloads.characterisation import characterise

RECORDED = metrics.RECORDED
"""Label of the waits that a log has recorded."""

_HERE = "gridsched.experiments.kinds.local_policies"


class LocalScenario(WorkloadConfig, BaselineConfig, VariedConfig):
    """A cluster by itself and the workload that its users submit."""

    align: ClassVar[AlignName] = "start"
    schedulers: ClassVar[None] = None
    estimates: ClassVar[None] = None

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn."""
        return (self,)

    @property
    def clusters(self) -> Sequence[WorkloadConfig]:
        """The cluster alone, by the name of the scenario whose jobs it has."""
        own = {key: getattr(self, key) for key in WorkloadConfig.model_fields if key in self.model_fields_set}
        return (WorkloadConfig(**{**own, "name": self.baseline or self.name}),)


class LocalStudy(ComparisonStudy):
    """A study of one cluster at a time: every scheduler on every workload under every kind of estimate."""

    shows_series = True

    kind: Literal["local-policies"] = "local-policies"
    """What is studied."""
    scenarios: Annotated[tuple[LocalScenario, ...], Field(min_length=1)]
    """The scenarios: clusters, each by itself with its workload."""
    kill: StrictBool = False
    """Whether jobs end at their requested time."""
    passes: PassName = "instant"
    """Whether a scheduling pass follows all events of an instant, or each event."""

    @model_validator(mode="after")
    def _local_policies(self) -> Self:
        if RECORDED in self.labels:
            raise ValueError(
                f"schedulers: the name {RECORDED!r} stands for the waits of the log; choose another"
            )
        for scheduler in self.schedulers:
            if scheduler_made(scheduler).system not in ("local", "custom"):
                raise ValueError(f"schedulers: {label_of(scheduler)!r} schedules grids; give a local policy")
        return self

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"scenarios[{workload.name}]"

    def _jobs_of(self, scenario: LocalScenario) -> Any:
        """What tells whether two scenarios have the same jobs: those of one log have, by their numbers."""
        changes = {"name": "any", "cancelled": "recorded", "preceding": False}
        workload = without_machine(scenario).model_copy(update={"baseline": None, **changes})
        return workload.model_copy(
            update=dict.fromkeys(("processors", "processors_per_node", "node_exclusive"))
        )

    # --- what is made ---------------------------------------------------------------------------------

    @property
    def _with_recorded(self) -> list[LocalScenario]:
        """Scenarios whose log may have recorded waits, beside which simulated ones are shown."""
        return [
            each
            for each in self.scenarios
            if each.is_log and each.variation is None and each.feedback is None and each.baseline is None
        ]

    @property
    def dataset_labels(self) -> list[str]:
        """Labels of the schedulers in the dataset."""
        return [*self.labels, *([RECORDED] if self._with_recorded else [])]

    def further_tasks(self, grids: Mapping[str, Task], seed: int) -> list[Task]:
        """What the logs have recorded themselves."""
        return [
            Task(
                stage="simulate",
                study=self.name,
                name=f"recorded waits of {each.name}",
                function=f"{_HERE}:measure_recorded",
                arguments={
                    "scenario": each.name,
                    "estimates": self.all_estimates[0],
                    "grid": grids[each.name],
                    "how": plain_measuring(self.measuring(each)),
                },
                cost=1.0,
            )
            for each in self._with_recorded
        ]

    def further_figures(self, grids: Mapping[str, Task]) -> list[Figure]:
        """What each workload looks like."""
        found = []
        for name in self._looked_at:
            specification = Specification(
                name=f"workload-{name}",
                form="composition",
                title=f"Workload {name}",
                own="gridsched.figures.characterisation:workload_characterisation",
                finding="gridsched.presentation.findings:workload",
            )
            task = Task(
                stage="prepare",
                study=self.name,
                name=f"character of {name}",
                function=f"{_HERE}:characterise_workload",
                arguments={"grid": grids[name]},
                cost=1.0,
            )
            found.append(
                Figure(
                    name=specification.name,
                    dataset=task,
                    specification=specification.values(),
                    part="Workloads",
                    title=name,
                )
            )
        return found

    @property
    def _looked_at(self) -> list[str]:
        """Scenarios with a workload of their own that is too large to be followed job by job."""
        return (
            []
            if self.small
            else [each.name for each in self.scenarios if each.baseline is None and each.variation is None]
        )

    @property
    def main_specification(self) -> Specification:
        """The figure that ranks the policies."""
        return Specification(
            name="ranking",
            form="ranking",
            title="Policies compared",
            measures=("wait_time_mean", "bounded_slowdown_mean"),
        )

    @property
    def details(self) -> list[Specification]:
        """Figures of all comparisons, and the course of the queue."""
        reacting = any(each.feedback is not None for each in self.scenarios)
        measures = ("productivity", "jobs_per_user_week", "jobs_per_session")
        productivity = Specification(
            name="productivity",
            form="ranking",
            title="What users complete",
            measures=measures,
            caption="Users submit jobs when earlier ones have ended.",
        )
        series = Specification(
            name="load",
            form="series",
            title="Queue length over time",
            measures=("queue_length_series",),
            x="bin_time",
            where={"estimates": self.all_estimates[0]},
            reference="",
        )
        return [*([productivity] if reacting else []), *super().details, series]


# --- tasks ----------------------------------------------------------------------------------------


def measure_recorded(
    scenario: str, estimates: str, grid: str | Path, how: Mapping[str, Any], target: str | Path
) -> None:
    """Measure the waits that a log has recorded; nothing where fewer than half of its jobs have one.

    Parameters
    ----------
    scenario, estimates : str
        Labels of the run.
    grid : path
        Result of `gridsched.experiments.prepare.prepare_grids`.
    how : mapping
        Parameters of `Measuring`.
    target : path
        The measures.
    """
    ((workload, cluster),) = results.grids_from_dataset(files.shared(grid))[0]
    history = recorded_run(simulate(replace(workload, dependencies=None), cluster, "ff"), workload)
    found = xr.Dataset() if history is None else measured(history, Measuring(**how))
    made = labelled(
        found, scenario=scenario, scheduler=RECORDED, estimates=estimates, replicates_are="blocks"
    )
    files.write(made, target)


def characterise_workload(grid: str | Path, target: str | Path) -> None:
    """Write what the first replicate of a prepared workload looks like."""
    ((workload, _),) = results.grids_from_dataset(files.shared(grid))[0]
    files.write(characterise(workload), target)
