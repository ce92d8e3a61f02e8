"""Studies of sequences: consecutive jobs of a log on an empty cluster, as learned policies are judged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import xarray as xr
from pydantic import Field, model_validator

from gridsched.engine import committed
from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, labelled
from gridsched.experiments.comparing import TABLES
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import log_of
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import ArchiveFile, Experiment, OwnFile, Task
from gridsched.experiments.validation import Count, Whole, unique
from gridsched.metrics.jobs import bounded_slowdown
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import ORDERS, OrderName
from gridsched.results import Schedule, in_one_piece, run_dataset
from gridsched.submission import cluster_of, labels_of
from gridsched.traces import read_swf
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

SequenceBackfilling = Literal["none", "shadow"]
WaitName = Literal["unset", "true"]

FOLDER = "GRIDSCHED_LITERATURE"
"""Environment variable: folders with logs that papers published themselves, separated by commas."""

_HERE = "gridsched.experiments.kinds.sequences"


class SequenceStudy(Study):
    """A study of sequences: consecutive jobs of a log on an empty cluster that commits itself to a job."""

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
        runs = [
            self._run(workload, backfilling, waits, order)
            for workload, backfilling, waits, order in product(
                self.workloads, self.backfilling, self.waits, self.orders
            )
        ]
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function="gridsched.experiments.collection:collect_study",
            arguments={
                "runs": runs,
                "labels": {
                    axis: list(dict.fromkeys(run.labels[axis] for run in runs))
                    for axis in ("scenario", "scheduler", "estimates")
                },
                "attributes": self.described(
                    reference=_scheduler(self.orders[0], self.waits[-1]), length=self.length
                ),
            },
        )
        return Experiment(datasets=[study], figures=self.drawn(study), tables=list(TABLES))

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
                "log": self._log(workload),
                "labels": labels,
            },
            labels=labels,
        )

    @property
    def specifications(self) -> list[Specification]:
        """Orders compared on each log, with and without backfilling."""
        slowdown = "bounded_slowdown_mean"
        by_order = Specification(
            name="slowdowns",
            form="ranking",
            title="Mean bounded slowdown by order",
            measures=(slowdown,),
            hue="order",
            lanes="waits",
            reference="",
        )
        used = replace(
            by_order, name="utilisation", title="Utilisation by order", measures=("utilisation_makespan",)
        )
        ranking = Specification(name="ranking", form="ranking", title="Orders compared", measures=(slowdown,))
        return [by_order, ranking, used]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How sequences were simulated: a sentence each."""
        return [
            f"{len(self.starts)} sequences of {self.length:,} jobs of each log, each on an empty cluster.",
            "A chosen job is waited for; with backfilling others start in its shadow.",
            "With unset waits, scores count waits to a start of -1, as the published simulator does.",
        ]

    def _log(self, workload: WorkloadConfig) -> ArchiveFile | OwnFile | None:
        """File of a log."""
        return OwnFile(located(workload.file)) if workload.file is not None else log_of(workload)


def located(path: str) -> str:
    """The path itself if there is such a file, else the first one in the folders of the environment."""
    folders = [folder.strip() for folder in os.environ.get(FOLDER, "").split(",") if folder.strip()]
    found = [each for each in (Path(path), *(Path(folder) / path for folder in folders)) if each.is_file()]
    return str(found[0]) if found else path


def _scheduler(order: str, waits: str) -> str:
    """Label of a queue order, and of what it knows of waits."""
    return order if waits == "unset" else f"{order}, true waits"


# --- tasks ----------------------------------------------------------------------------------------

_UNKNOWN_RUN_TIME = 10
"""Seconds that jobs run whose log does not say how long."""


def run_sequences(
    workload: str,
    processors: int | None,
    starts: Sequence[int],
    length: int,
    order: OrderName,
    backfilling: SequenceBackfilling,
    waits: WaitName,
    log: str | Path,
    labels: Mapping[str, str],
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
        What scores know of waits.
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
    rows = []
    for start in starts:
        if start + length > len(jobs):
            raise ConfigurationError(
                f"{workload}: a sequence from {start} on needs {start + length} jobs, the log has {len(jobs)}"
            )
        part = jobs.select(np.arange(start, start + length))
        rows.append(_measured(_simulated(part, cluster, order, backfilling, waits)))
    columns: dict[str, Any] = {
        name: (("replicate", "group"), np.array([[row[name]] for row in rows])) for name in rows[0]
    }
    made = labelled(
        xr.Dataset(columns, {"replicate": np.arange(len(rows)), "group": [ALL]}),
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=labels["estimates"],
        scheduler_parameters={"order": order, "waits": waits},
        scenario_parameters={"backfilling": backfilling},
        replicates_are="sequences",
    )
    files.write(made, target)


def published_jobs(read: Workload) -> Workload:
    """Jobs of a log as the published simulator reads them.

    Processors are the larger of the requested and the allocated ones; a job without requested time asks for
    its run time; jobs without run time are left out, those whose run time is unknown run for 10 s.
    """
    size = np.maximum(
        np.asarray(read.requested_processors, np.int64), np.asarray(read.allocated_processors, np.int64)
    )
    run = np.asarray(read.run_time, np.int64)
    requested = np.asarray(read.requested_time, np.int64)
    unknown, none = run < 0, requested < 0
    run = np.where(unknown, _UNKNOWN_RUN_TIME, run)
    kept = np.flatnonzero((run > 0) & (size > 0))
    made = Workload(
        name=read.name,
        job_number=read.job_number[kept],
        submit_time=read.submit_time[kept],
        run_time=run[kept],
        requested_time=np.where(none, np.asarray(read.run_time, np.int64), requested)[kept],
        requested_processors=size[kept],
        acknowledgement=read.acknowledgement,
        checksum=read.checksum,
        left_out=add_counts(read.left_out, {"without run time or size": len(run) - len(kept)}),
        repaired=add_counts(
            read.repaired,
            {"unknown run time": int(unknown[kept].sum()), "no requested time": int(none[kept].sum())},
        ),
    )
    return made.select(np.argsort(made.submit_time, kind="stable"))


def _simulated(
    jobs: Workload, cluster: Cluster, order: OrderName, backfilling: SequenceBackfilling, waits: WaitName
) -> xr.Dataset:
    """A verified run of one sequence."""
    size = np.asarray(jobs.processors, np.int64)
    if size.max() > cluster.processors:
        raise ConfigurationError(
            f"{jobs.name}: a job asks for {size.max()} of {cluster.processors} processors; give processors"
        )
    records = np.empty(len(jobs), JOB)
    records["submit"], records["run"] = jobs.submit_time, jobs.run_time
    records["estimate"], records["processors"] = jobs.requested_time, size
    state = committed.allocate(records, labels_of(jobs), cluster.processors)
    score = scores.SCORE.compile(ORDERS[order])
    committed.schedule(state, backfilling == "shadow", waits == "true", score)
    run_time = np.asarray(jobs.run_time, np.int64)
    home = np.zeros(len(jobs), np.int64)
    schedule = Schedule(
        start_time=state.starts,
        run_time=run_time,
        segments=in_one_piece(state.starts, run_time, home, size),
    )
    run = run_dataset(jobs, home, [cluster], schedule, {"scheme": f"committed {order}"})
    verify(run)
    return run


def _measured(run: xr.Dataset) -> dict[str, float]:
    """Measures of one sequence."""
    start, end = run["start_time"].to_numpy(), run["end_time"].to_numpy()
    first = int(run["submit_time"].min())
    work = float((run["processors"] * run["run_time"]).sum())
    processors = int(run["cluster_processors"].sum())
    return {
        "jobs": float(run.sizes["job"]),
        "bounded_slowdown_mean": float(
            bounded_slowdown(end - run["submit_time"].to_numpy(), run["run_time"].to_numpy()).mean()
        ),
        "utilisation_makespan": work / (processors * float(end.max() - first)),
        "utilisation_to_last_start": work / (processors * float(start.max() - first)),
    }
