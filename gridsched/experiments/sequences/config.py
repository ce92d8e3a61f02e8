"""What studies of sequences are made of: logs, starts of sequences, queue orders, backfilling, waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gridsched.errors import ConfigurationError
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import log_of
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.tasks import ArchiveFile, Experiment, OwnFile, StudyTable, Task
from gridsched.experiments.validation import Count, Whole, unique
from gridsched.policies.local import OrderName

SequenceBackfilling = Literal["none", "shadow"]
WaitName = Literal["unset", "true"]

FOLDER = "GRIDSCHED_LITERATURE"
"""Environment variable: folders with logs that papers published themselves, separated by commas."""

_STAGES = "gridsched.experiments.sequences.stages"


class SequenceStudy(Study):
    """A study of sequences: consecutive jobs of a log on an empty cluster that commits itself to a job."""

    catalogue = "gridsched.experiments.sequences.figures:SEQUENCE_FIGURES"
    figures = ("sequence_slowdowns",)
    view = "gridsched.experiments.sequences.report:sequences_view"
    main_figure = "sequence_slowdowns"
    refuses = dict.fromkeys(VARYING, "the published numbers are those of sequences of the log as it is")

    kind: Literal["sequences"]
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The logs. A `file` is looked for in the folders that the environment variable
    `GRIDSCHED_LITERATURE` names, too."""
    starts: Annotated[tuple[Whole, ...], Field(min_length=2)]
    """Places of the jobs in the log, from 0, at which sequences begin."""
    length: Annotated[Count, Field(ge=2)] = 1024
    """Jobs of a sequence."""
    orders: Annotated[tuple[OrderName, ...], Field(min_length=1)] = (
        "fcfs",
        "wfp3",
        "unicep",
        "shortest",
        "f1",
    )
    """Queue orders."""
    backfilling: Annotated[tuple[SequenceBackfilling, ...], Field(min_length=1)] = ("none", "shadow")
    """Whether other jobs start in the shadow of the chosen one."""
    waits: Annotated[tuple[WaitName, ...], Field(min_length=1)] = ("unset", "true")
    """What scores know of waits: the true one, or one that is counted to a start of -1, which the published
    simulator has set nowhere when it asks."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique("workloads", [workload.name for workload in self.workloads])
        for key in ("starts", "orders", "backfilling", "waits"):
            unique(key, list(getattr(self, key)))
        for workload in self.workloads:
            if not workload.is_log:
                raise ValueError(f"workloads: {workload.name}: only a log (archive or file) has sequences")
        return self

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(workload for workload in self.workloads if workload.file is None)

    def _places(self) -> Iterator[tuple[str, WorkloadConfig]]:
        for workload in self.workloads:
            yield f"workloads[{workload.name}]", workload

    def check_files(self) -> None:
        """Refuse logs that are not there."""
        for workload in self.workloads:
            if workload.file is not None and not Path(located(workload.file)).is_file():
                raise ConfigurationError(
                    f"workloads: {workload.name}: found {workload.file!r}; there is no such file, seen from "
                    f"{Path.cwd()}: get it where the paper published it and name its folder in {FOLDER}"
                )

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; nothing of it is drawn at random."""
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=f"{_STAGES}:aggregate_sequence_study",
            arguments={
                "study": self.values(),
                "runs": {
                    workload.name: {
                        backfilling: {
                            waits: [self._run(workload, backfilling, waits, order) for order in self.orders]
                            for waits in self.waits
                        }
                        for backfilling in self.backfilling
                    }
                    for workload in self.workloads
                },
            },
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[StudyTable("means", f"{_STAGES}:means_table", "sequence_means")],
        )

    def _run(
        self, workload: WorkloadConfig, backfilling: SequenceBackfilling, waits: WaitName, order: OrderName
    ) -> Task:
        """All sequences of a log under one scheduler."""
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{workload.name}, {order}, backfilling {backfilling}, waits {waits}",
            function=f"{_STAGES}:run_sequences",
            arguments={
                "workload": workload.name,
                "processors": workload.processors,
                "starts": list(self.starts),
                "length": self.length,
                "order": order,
                "backfilling": backfilling,
                "waits": waits,
                "log": self._log(workload),
            },
            labels={"workload": workload.name, "backfilling": backfilling, "waits": waits, "order": order},
        )

    def _log(self, workload: WorkloadConfig) -> ArchiveFile | OwnFile | None:
        """File of a log."""
        return OwnFile(located(workload.file)) if workload.file is not None else log_of(workload)


def located(path: str) -> str:
    """The path itself if there is such a file, else the first one in the folders of the environment."""
    folders = [folder.strip() for folder in os.environ.get(FOLDER, "").split(",") if folder.strip()]
    found = [each for each in (Path(path), *(Path(folder) / path for folder in folders)) if each.is_file()]
    return str(found[0]) if found else path
