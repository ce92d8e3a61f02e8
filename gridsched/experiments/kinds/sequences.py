"""Studies of sequences: consecutive jobs of a log on an empty cluster, as learned policies are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from gridsched.engine import committed
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, labelled
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import check_located, located, log_of
from gridsched.experiments.parts import LogConfig, WorkloadConfig
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, OwnFile, Task
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import ORDERS, OrderName
from gridsched.results import Schedule, in_one_piece, run_dataset
from gridsched.sequences import SequenceBackfilling, WaitName, idle_clusters, measures_of, published_jobs
from gridsched.submission import cluster_of
from gridsched.traces import read_swf
from gridsched.validation import Count, Different, Whole
from gridsched.verification import verify
from gridsched.workloads import Workload

FOLDER = "GRIDSCHED_LITERATURE"
"""Environment variable: folders with logs that papers published themselves, separated by commas."""

MEASURES = ("jobs", "bounded_slowdown_mean", "utilisation_makespan", "utilisation_to_last_start")
"""What a study measures of each sequence."""

_HERE = "gridsched.experiments.kinds.sequences"


_USED = {"name", "archive", "file", "processors"}
"""Keys of logs that have a part in sequences."""


class SequenceStudy(Study):
    """A study of sequences: consecutive jobs of a log on an empty cluster that commits itself to a job."""

    refuses = dict.fromkeys(VARYING, "the published numbers are those of sequences of the log as it is")

    kind: Literal["sequences"]
    """What is studied."""
    workloads: Annotated[tuple[LogConfig, ...], Field(min_length=1), Different]
    """The logs. A `file` is looked for in the folders that the environment variable
    `GRIDSCHED_LITERATURE` names, too."""
    starts: Annotated[tuple[Whole, ...], Field(min_length=2), Different]
    """Places of the jobs in the log, from 0, at which sequences begin."""
    length: Annotated[Count, Field(ge=2)] = 1024
    """Jobs of a sequence."""
    orders: Annotated[tuple[OrderName, ...], Field(min_length=1), Different] = (
        "fcfs",
        "wfp3",
        "unicep",
        "shortest",
        "f1",
    )
    """Queue orders."""
    backfilling: Annotated[tuple[SequenceBackfilling, ...], Field(min_length=1), Different] = (
        "none",
        "shadow",
    )
    """Whether other jobs start in the shadow of the chosen one."""
    waits: Annotated[tuple[WaitName, ...], Field(min_length=1), Different] = ("unset", "true")
    """Waits that scores have: the true one, or one that is counted to a start of -1, which the published
    simulator has set nowhere when it asks."""

    @model_validator(mode="after")
    def _whole_logs(self) -> Self:
        for workload in self.workloads:
            unused = workload.model_fields_set - _USED
            if unused:
                raise ValueError(
                    f"workloads: {workload.name}: {min(unused)} has no effect on sequences; leave it out"
                )
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
            if workload.file is not None:
                check_located(
                    f"workloads: {workload.name}", workload.file, FOLDER, "where the paper published it"
                )

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; nothing of it is drawn at random."""
        runs = [
            self._run(*each) for each in product(self.workloads, self.backfilling, self.waits, self.orders)
        ]
        return self.collected(
            {
                "runs": runs,
                "labels": {
                    axis: list(dict.fromkeys(run.labels[axis] for run in runs))
                    for axis in ("scenario", "scheduler", "estimates")
                },
                "attributes": self.described(
                    reference=_scheduler(self.orders[0], self.waits[-1]), length=self.length
                ),
            }
        )

    def _run(
        self, workload: WorkloadConfig, backfilling: SequenceBackfilling, waits: WaitName, order: OrderName
    ) -> Task:
        """All sequences of a log under one scheduler."""
        scenario = workload.name if backfilling == "none" else f"{workload.name}, backfilling"
        labels = {"scenario": scenario, "scheduler": _scheduler(order, waits), "estimates": "requested"}
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{scenario}, {labels['scheduler']}",
            function=f"{_HERE}:run_sequences",
            arguments={
                "workload": workload.name,
                "processors": workload.processors,
                "starts": list(self.starts),
                "length": self.length,
                "order": order,
                "backfilling": backfilling,
                "waits": waits,
                "log": OwnFile(located(workload.file, FOLDER)) if workload.file else log_of(workload),
                "labels": labels,
            },
            labels=labels,
        )

    @property
    def specifications(self) -> list[Specification]:
        """Orders compared on each log, with and without backfilling."""
        slowdown = ("bounded_slowdown_mean",)
        by_order: dict[str, Any] = {"form": "ranking", "hue": "order", "lanes": "waits", "reference": ""}
        return [
            Specification(
                name="slowdowns", title="Mean bounded slowdown by order", measures=slowdown, **by_order
            ),
            Specification(name="ranking", form="ranking", title="Orders compared", measures=slowdown),
            Specification(
                name="utilisation",
                title="Utilisation by order",
                measures=("utilisation_makespan",),
                **by_order,
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How sequences were simulated: a sentence each."""
        return [
            f"{len(self.starts)} sequences of {self.length:,} jobs of each log, each on an empty cluster.",
            "A chosen job is waited for; with backfilling others start in its shadow.",
            "With unset waits, scores count waits to a start of -1, as the published simulator does.",
        ]


def _scheduler(order: str, waits: str) -> str:
    """Label of a queue order, and of the waits that it has."""
    return order if waits == "unset" else f"{order}, true waits"


# --- tasks ----------------------------------------------------------------------------------------


def run_sequences(
    workload: str,
    processors: int | None,
    starts: Sequence[int],
    length: int,
    order: OrderName,
    backfilling: SequenceBackfilling,
    waits: WaitName,
    log: str | Path,
    labels: Mapping[str, Any],
    target: str | Path,
) -> None:
    """Run all sequences of a log under one scheduler.

    Parameters
    ----------
    workload : str
        Name in messages.
    processors : int, optional
        Of the cluster; by default as many as the log says.
    starts : sequence of int
        Places of the jobs at which sequences begin.
    length : int
        Jobs of a sequence.
    order : str
        Key of `gridsched.policies.local.ORDERS`.
    backfilling : {"none", "shadow"}
        Whether other jobs start in the shadow of the chosen one.
    waits : {"unset", "true"}
        Waits that scores have.
    log : path
        The log, in the Standard Workload Format.
    labels : mapping
        Scenario, scheduler and estimates.
    target : path
        Measures to write; each replicate is a sequence.

    Raises
    ------
    ConfigurationError
        If a sequence goes beyond the log, or a job is larger than the cluster.
    """
    read = read_swf(log, name=workload)
    cluster = Cluster(processors=processors or cluster_of(read).processors, name=workload)
    jobs = published_jobs(read)
    state = idle_clusters(jobs, cluster, starts, length)
    committed.schedule(state, backfilling == "shadow", waits == "true", scores.SCORE.compile(ORDERS[order]))
    parts = [jobs.select(slice(start, start + length)) for start in starts]
    for part, started in zip(parts, state.starts, strict=True):
        _verify(part, cluster, started, order)
    rows = [{name: values[name] for name in MEASURES} for values in measures_of(state)]
    measured = pd.DataFrame(rows).rename_axis("replicate").to_xarray().expand_dims(group=[ALL])
    made = labelled(
        measured,
        **labels,
        scheduler_parameters={"order": order, "waits": waits},
        scenario_parameters={"backfilling": backfilling},
        replicates_are="sequences",
    )
    files.write(made, target)


def _verify(jobs: Workload, cluster: Cluster, start: NDArray[np.int64], order: str) -> None:
    """Check the schedule of a sequence."""
    home = np.zeros(len(jobs), np.int64)
    schedule = Schedule(
        start_time=start,
        run_time=jobs.run_time,
        segments=in_one_piece(start, jobs.run_time, home, jobs.processors),
    )
    verify(run_dataset(jobs, home, [cluster], schedule, {"scheme": f"committed {order}"}))
