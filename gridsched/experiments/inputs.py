"""What studies of several kinds begin with: logs, prepared workloads, users' own functions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from gridsched.errors import ConfigurationError
from gridsched.experiments.parts import ClusterConfig, ScenarioConfig, VariedConfig, WorkloadConfig
from gridsched.experiments.tasks import ArchiveFile, OwnFile, Task
from gridsched.traces import find_log

PREPARE = "gridsched.experiments.prepare"

UNKNOWN_SIZE = 50_000
"""Jobs that a log is expected to have of which nothing is known."""


def log_of(workload: WorkloadConfig) -> ArchiveFile | OwnFile | None:
    """SWF file that a workload is read from; none if it is synthetic."""
    if workload.archive is not None:
        return ArchiveFile(find_log(workload.archive).file)
    return OwnFile(workload.file) if workload.file is not None else None


def logs_of(workloads: Iterable[WorkloadConfig]) -> dict[str, ArchiveFile | OwnFile]:
    """SWF files of the workloads that are read from a log, by their names."""
    found = {workload.name: log_of(workload) for workload in workloads}
    return {name: log for name, log in found.items() if log is not None}


def located(path: str, folder: str) -> str:
    """The path itself if there is such a file, else the first one in the folders that a variable names.

    Parameters
    ----------
    path : str
        As the study gives it.
    folder : str
        Environment variable: folders, separated by commas.
    """
    folders = [each.strip() for each in os.environ.get(folder, "").split(",") if each.strip()]
    places = [Path(path), *(Path(each) / path for each in folders)]
    return next((str(each) for each in places if each.is_file()), path)


def check_located(key: str, path: str, folder: str, source: str) -> None:
    """Refuse a file that is not there, with a `ConfigurationError` that says where (`source`) to get it."""
    if not Path(located(path, folder)).is_file():
        raise ConfigurationError(
            f"{key}: found {path!r}; there is no such file, seen from {Path.cwd()}: get it {source} and name "
            f"its folder in {folder}"
        )


def drawing_seed(seed: int, *workloads: WorkloadConfig) -> int:
    """Seed of workloads of which one is drawn; no others depend on it."""
    return seed if any(workload.synthetic is not None for workload in workloads) else 0


def expected_jobs(workload: WorkloadConfig) -> float:
    """About how many jobs a workload has, as far as the configuration says."""
    if workload.synthetic is not None:
        return workload.synthetic.jobs or UNKNOWN_SIZE / 10
    if workload.jobs is not None:
        return len(workload.jobs)
    if workload.window is not None:
        return workload.window.jobs[1] if workload.window.jobs is not None else UNKNOWN_SIZE / 5
    known = find_log(workload.archive).jobs if workload.archive is not None else None
    return known or UNKNOWN_SIZE


def plain(model: Any, **changes: Any) -> dict[str, Any]:
    """A part of a study as plain values without those that are as by default."""
    values: dict[str, Any] = model.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True)
    return values


Machine = TypeVar("Machine", bound=ClusterConfig)


def without_machine(config: Machine) -> Machine:
    """What its workload depends on of the configuration of a cluster: nodes are so many processors."""
    default = type(config).model_fields
    changes = {key: default[key].default for key in ("nodes", "placement", "failures")}
    return config.model_copy(update={**changes, "processors": config.size})


def failure_seed(configs: Iterable[ClusterConfig], seed: int) -> dict[str, int]:
    """The seed as an argument of runs in which failures are drawn; others do not depend on it."""
    drawn = (config.failures is not None and config.failures.events is None for config in configs)
    return {"seed": seed} if any(drawn) else {}


def event_files(configs: Iterable[ClusterConfig]) -> list[OwnFile]:
    """Files of failures that clusters name."""
    found = {config.failures.events for config in configs if config.failures is not None}
    return [OwnFile(file) for file in sorted(file for file in found if file is not None)]


def prepared_workload(study: str, workload: WorkloadConfig, seed: int) -> Task:
    """Task that prepares one workload with the cluster that replays it."""
    return Task(
        stage="prepare",
        study=study,
        name=f"workload {workload.name}",
        function=f"{PREPARE}:prepare_workload",
        arguments={
            "workload": plain(without_machine(workload)),
            "seed": drawing_seed(seed, workload),
            "log": log_of(workload),
        },
        cost=1 + expected_jobs(workload) / 50_000,
    )


def varied_keys(scenario: VariedConfig) -> dict[str, Any]:
    """What makes replicates of the logs of a scenario, as arguments of tasks; others do not depend on it."""
    keys = ("resampling", "shaking")
    return {key: plain(varied) for key in keys if (varied := getattr(scenario, key)) is not None}


def prepared_grid(study: str, scenario: ScenarioConfig, replicates: Iterable[int], seed: int) -> Task:
    """Task that prepares the clusters of a scenario with their workloads for some replicates."""
    numbers = list(replicates)
    varied = varied_keys(scenario)
    several = f"replicates {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"replicate {numbers[0]}"
    return Task(
        stage="prepare",
        study=study,
        name=f"{scenario.name}, {several}",
        function=f"{PREPARE}:prepare_grids",
        arguments={
            "scenario": scenario.name,
            "clusters": [plain(without_machine(cluster)) for cluster in scenario.clusters],
            "replicates": numbers,
            "seed": seed if varied else drawing_seed(seed, *scenario.clusters),
            "logs": logs_of(scenario.clusters),
            **varied,
        },
        cost=0.5 + len(numbers) * sum(map(expected_jobs, scenario.clusters)) / 50_000,
        memory=1500,
    )
