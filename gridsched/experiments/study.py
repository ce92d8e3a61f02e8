"""The vocabulary of studies that compare schedulers: scenarios x schedulers x estimates x replicates.

A scenario says which clusters there are and what their users submit; a scheduler is a name with parameters.
A list of values where a key takes one makes a scenario, or a scheduler, of each value. Every kind of study
has these keys; its model adds what is a question of its system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import Field, model_validator

from gridsched.errors import ConfigurationError
from gridsched.experiments.config import Study
from gridsched.experiments.inputs import event_files, without_machine
from gridsched.experiments.parts import EstimateErrors, EstimateKeys, WorkloadConfig, label_of
from gridsched.experiments.schedulers import (
    AnyScheduler,
    Written,
    combinations,
    expanded,
    lists_of,
    scheduler_made,
)
from gridsched.experiments.tasks import OwnFile
from gridsched.io import shown
from gridsched.policies.local import OverrunName
from gridsched.validation import ConfigModel, Whole, check_known, unique, unique_files

FROM_SUBMISSION = (
    "times of this kind of study count from submissions, which users who react make only when earlier jobs "
    "have ended; use a study of kind local-policies or arena"
)
"""Why a kind of study refuses feedback."""

Replicates = Annotated[Whole, Field(ge=1, le=10_000)]

_UNMERGED = ("stream",)
"""Keys of scenarios with a source of jobs, of which there is one: what is common is not merged into it."""


class SchedulerStudy(Study):
    """What every study says that compares schedulers."""

    refuses_the_unable: ClassVar[bool] = True
    """Whether a scheduler that cannot run in a scenario is a mistake, and no result."""

    common: dict[str, Any] = Field({})
    """What all scenarios say that do not say otherwise, key by key."""
    scenarios: tuple[Any, ...]
    """The scenarios: clusters with what their users submit."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=1)]
    """Schedulers: names, or names with parameters. A list of values where a parameter takes one makes a
    scheduler of each, with all combinations where there are several lists."""
    estimates: EstimateKeys = ("requested",)
    """Runtime estimates of the schedulers: `requested`, `actual`, `clairvoyant` (the larger of both), or with
    errors, `{ share: 0.5 }` or `{ deviation: 0.3 }`."""
    reference: str | None = None
    """Scheduler that the others are compared with; the first one by default."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""

    # --- what is written ------------------------------------------------------------------------------

    @classmethod
    def completed(cls, values: Any) -> Any:
        """Values whose scenarios have what is common, with a scenario and a scheduler a listed value."""
        if not isinstance(values, dict):
            return values
        schedulers, labels = expanded(values.get("schedulers"))
        scenarios = _scenarios(values.get("scenarios"), values.get("common"), cls._scenario_model(), labels)
        policies, _ = expanded(values.get("policies"))
        given = {"schedulers": schedulers, "scenarios": scenarios, "policies": policies}
        whole = {**values, **{key: value for key, value in given.items() if key in values}}
        if isinstance(values.get("common"), dict):
            del whole["common"]
        return whole

    @classmethod
    def _scenario_model(cls) -> type[ConfigModel]:
        model: type[ConfigModel] = get_args(cls.model_fields["scenarios"].annotation)[0]
        return model

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: Any) -> Any:
        whole = cls.completed(values)
        scenarios = whole.get("scenarios") if isinstance(whole, dict) else None
        for scenario in scenarios if isinstance(scenarios, list | tuple) else ():
            for key, reason in cls.refuses.items():
                if isinstance(scenario, dict) and scenario.get(key) is not None:
                    raise ValueError(f"scenarios[{scenario.get('name')}].{key}: {reason}")
        return whole

    @model_validator(mode="after")
    def _parts_go_together(self) -> Any:
        unique_files("scenarios", [scenario.name for scenario in self.scenarios])
        unique("schedulers", self.labels)
        unique("estimates", [_estimates_label(each) for each in self.estimates])
        if self.reference is not None:
            check_known("reference", self.reference, self.labels)
        for scenario in self.scenarios:
            self._check_choice(scenario)
            if self.refuses_the_unable:
                self._check_abilities(scenario)
            self._check_baseline(scenario)
            self._check_variation(scenario)
        return self

    def _check_choice(self, scenario: Any) -> None:
        """Refuse schedulers of a scenario that are not there."""
        where = f"scenarios[{scenario.name}].schedulers"
        chosen = getattr(scenario, "schedulers", None) or ()
        unique(where, list(chosen))
        for name in chosen:
            check_known(where, name, self.labels)

    def _check_abilities(self, scenario: Any) -> None:
        """Refuse nodes, failures and jobs that leave or wait where a scheduler does not know them."""
        for label in self.labels_in(scenario):
            cannot = scheduler_made(self.scheduler(label)).cannot
            for capability, key in asked_of(scenario).items():
                if capability in cannot:
                    where = f"scenarios[{scenario.name}]: {key}"
                    raise ValueError(f"{where}: {label!r} does not know this: {cannot[capability]}")

    def _check_baseline(self, scenario: Any) -> None:
        """Refuse what a scenario cannot be set against."""
        name = getattr(scenario, "baseline", None)
        if name is None:
            return
        where = f"scenarios[{scenario.name}].baseline"
        check_known(where, name, [each.name for each in self.scenarios if each.baseline is None])
        baseline = self.scenario(name)
        if self._jobs_of(scenario) != self._jobs_of(baseline):
            raise ValueError(f"{where}: the jobs of {name!r} are others; only conditions may differ")
        for what, labels in (("estimates", self.estimates_in), ("schedulers", self.labels_in)):
            if not set(labels(scenario)).intersection(labels(baseline)):
                raise ValueError(
                    f"{where}: no {what} are those of {name!r}, which has {', '.join(labels(baseline))}"
                )

    def _jobs_of(self, scenario: Any) -> Any:
        """What jobs of a scenario follow from, to tell whether two scenarios have the same."""
        return [scenario.align, scenario.variation, *map(without_machine, scenario.clusters)]

    def _places(self) -> Iterator[tuple[str, WorkloadConfig]]:
        for scenario in self.scenarios:
            for workload in getattr(scenario, "workloads", ()):
                yield f"scenarios[{scenario.name}]", workload

    def _check_variation(self, scenario: Any) -> None:
        """Refuse replicates of logs where they have no meaning."""
        if scenario.variation is None:
            return
        where = f"scenarios[{scenario.name}].{'resampling' if scenario.resampling else 'shaking'}"
        if not any(workload.is_log for workload in scenario.workloads):
            raise ValueError(f"{where}: only a log (archive or file) is varied; models draw replicates")
        reacting = [each.feedback for each in scenario.workloads if each.feedback is not None]
        if scenario.resampling is not None and any(each.sessions == "think" for each in reacting):
            raise ValueError(
                f"{where}: feedback.sessions: with 'think' a history has no weeks that could be moved; "
                "use 'clock' or 'leave'"
            )
        if reacting and scenario.resampling is not None and scenario.resampling.squeeze != 1:
            raise ValueError(
                f"{where}.squeeze: users who react submit when earlier jobs have ended; use users, or leave "
                "feedback out"
            )
        if scenario.resampling is not None and event_files(scenario.machines):
            raise ValueError(
                f"{where}: failures.events are by the clock of the log, which resampled logs do not have; "
                "draw failures (mean_time_between)"
            )

    def check_files(self) -> None:
        """Refuse to begin without the files of failures, with a `ConfigurationError`."""
        for scenario in self.scenarios:
            for file in event_files(scenario.machines):
                if not Path(file.file).is_file():
                    where = f"scenarios[{scenario.name}]: failures.events"
                    raise ConfigurationError(
                        f"{where}: found {shown(file.file)}; there is no such file, seen from {Path.cwd()}"
                    )

    # --- what it says ---------------------------------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """Labels of the schedulers."""
        return [label_of(scheduler) for scheduler in self.schedulers]

    @property
    def reference_label(self) -> str:
        """The scheduler that the others are compared with."""
        return self.reference or self.labels[0]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(workload for scenario in self.scenarios for workload in scenario.workloads)

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        scenario = next(scenario for scenario in self.scenarios if workload in scenario.workloads)
        is_stream = getattr(scenario, "stream", None) == workload
        return f"scenarios[{scenario.name}].{'stream' if is_stream else f'clusters[{workload.name}]'}"

    def scenario(self, name: str) -> Any:
        """The scenario of a name."""
        return next(scenario for scenario in self.scenarios if scenario.name == name)

    def scheduler(self, label: str) -> Written:
        """The scheduler of a label."""
        found: Written = self.schedulers[self.labels.index(label)]
        return found

    def labels_in(self, scenario: Any) -> list[str]:
        """Labels of the schedulers that run in a scenario."""
        chosen = getattr(scenario, "schedulers", None)
        return [label for label in self.labels if chosen is None or label in chosen]

    def estimates_in(self, scenario: Any) -> Sequence[str]:
        """Labels of the runtime estimates of the schedulers in a scenario."""
        return list(self._estimates_in(scenario))

    def estimate_errors(self, scenario: Any, label: str) -> EstimateErrors | None:
        """Errors of the estimates of a label; none where they have a name."""
        written = self._estimates_in(scenario)[label]
        return written if isinstance(written, EstimateErrors) else None

    def _estimates_in(self, scenario: Any) -> dict[str, Any]:
        written = getattr(scenario, "estimates", None) or self.estimates
        return {_estimates_label(each): each for each in written}

    def with_fewer(self, replicates: int) -> Self:
        """The study with no more replicates than these."""
        changes: dict[str, Any] = {
            "scenarios": tuple(_with_fewer(each, replicates) for each in self.scenarios)
        }
        if getattr(self, "replicates", 0) > replicates:
            changes["replicates"] = replicates
        return self.model_copy(update=changes)

    # --- what is made ---------------------------------------------------------------------------------

    def facts(self, seed: int) -> dict[str, Any]:
        """Attributes of the table of measures of the study."""
        return self.described(reference=self.reference_label, seed=seed, overrun=self.overrun)


class ReplicatedStudy(SchedulerStudy):
    """What every study says of its replicates: draws of workloads, variations of logs, or blocks."""

    replicates: Replicates = 10
    """How often synthetic workloads are drawn. A log is replayed once, in blocks of consecutive jobs,
    unless its scenario has `resampling` or `shaking`, which say how many replicates there are."""

    def draws(self, scenario: Any) -> int:
        """How many replicates of a scenario are simulated."""
        if scenario.variation is not None:
            return int(scenario.variation.replicates)
        return self.replicates if any(each.synthetic is not None for each in scenario.workloads) else 1

    def replicates_are(self, scenario: Any) -> str:
        """What the replicates of a scenario are."""
        if scenario.variation is not None:
            return "resampled logs" if scenario.resampling is not None else "shaken logs"
        if any(each.synthetic is not None for each in scenario.workloads):
            return "draws"
        return "blocks" if any(each.is_log for each in scenario.workloads) else "the workload itself"


def _estimates_label(estimates: Any) -> str:
    return estimates.label if isinstance(estimates, EstimateErrors) else str(estimates)


def alone(scenario: Any) -> Any:
    """A scenario without what it chooses of its study, and without what makes replicates of its logs."""
    keys = ("schedulers", "estimates", "baseline", "resampling", "shaking")
    choice = {key: None for key in keys if key in type(scenario).model_fields}
    return scenario.model_copy(update=choice)


def _with_fewer(scenario: Any, replicates: int) -> Any:
    """A scenario with no more replicates of its logs than these, but two, which an interval needs."""
    changes = {
        key: varied.model_copy(update={"replicates": min(varied.replicates, max(replicates, 2))})
        for key in ("resampling", "shaking")
        if (varied := getattr(scenario, key)) is not None
    }
    return scenario.model_copy(update=changes) if changes else scenario


def asked_of(scenario: Any) -> dict[str, str]:
    """Capabilities that schedulers need in a scenario beyond plain clusters, with the keys that ask."""
    asked: dict[str, str] = {}
    for part in (*scenario.machines, *getattr(scenario, "workloads", ())):
        asked |= part.asks_for
    return asked


def function_files(*schedulers: Written) -> list[OwnFile]:
    """Python files of the user that schedulers and local policies are made of."""
    files = set().union(*(each.files for each in schedulers if not isinstance(each, str)))
    return [OwnFile(file) for file in sorted(files)]


def _scenarios(
    written: Any, common: Any, model: type[ConfigModel], labels: Mapping[str, Sequence[str]]
) -> Any:
    """Scenarios with what is common and a scenario for each listed value, which name expanded schedulers."""
    if not isinstance(written, list | tuple):
        return written
    made: list[Any] = []
    for each in written:
        if not isinstance(each, dict) or "name" not in each:
            made.append(each)
            continue
        whole = merged(common, each) if isinstance(common, dict) else each
        chosen = whole.get("schedulers")
        if isinstance(chosen, list | tuple):
            whole = {**whole, "schedulers": [one for name in chosen for one in _made_of(name, labels)]}
        for values in combinations(lists_of(whole, model)):
            name = {"name": "-".join(map(str, (whole["name"], *values.values())))} if values else {}
            made.append({**whole, **values, **name})
    return made


def _made_of(name: Any, labels: Mapping[str, Sequence[str]]) -> Sequence[Any]:
    """Labels of the schedulers that a written name stands for."""
    return labels.get(name, [name]) if isinstance(name, str) else [name]


def merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings; what the second says holds, key by key also inside of what both say."""
    inside = {
        key: merged(value, own[key])
        for key, value in common.items()
        if isinstance(value, dict) and isinstance(own.get(key), dict) and key not in _UNMERGED
    }
    return {**common, **own, **inside}
