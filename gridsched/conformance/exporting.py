"""The conformance cases as files for other simulators: descriptions, workloads, and empty answers."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsched.conformance.answers import NEEDED
from gridsched.conformance.cases import NONE, Case, workload_path
from gridsched.conformance.running import workload_of
from gridsched.io import resource
from gridsched.traces.swf import write_swf
from gridsched.workloads.table import Workload

ENTRIES = ("README.md", "cases.yaml", "workloads", "answers")
"""What an exported folder holds."""


def export_cases(cases: list[Case], folder: Path) -> None:
    """Write conventions, workloads (CSV and SWF) and empty answers into a folder that is there."""
    for name in ENTRIES[:2]:
        shutil.copyfile(resource("resources", "conformance", name), folder / name)
    for name in ENTRIES[2:]:
        (folder / name).mkdir()
    for case in cases:
        shutil.copyfile(workload_path(case.name), folder / "workloads" / f"{case.name}.csv")
        write_swf(_log(case), folder / "workloads" / f"{case.name}.swf")
        with (folder / "answers" / f"{case.name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_sheet(case))


def _log(case: Case) -> Workload:
    """The workload with what SWF has no field for in its header; partition k is the k-th cluster."""
    notes = [
        f"; Note: partition {number} is cluster {name}: "
        f"{cluster.processors} processors, speed {cluster.speed:g}"
        for number, (name, cluster) in enumerate(case.clusters.items(), start=1)
        if name
    ]
    notes += [
        f"; Note: job {job.number} reserves the start time {job.reservation}"
        for job in case.jobs
        if job.reservation != NONE
    ]
    notes += [
        f"; Note: job {job.number} is cancelled at {job.gives_up_time} if it still waits"
        for job in case.jobs
        if job.gives_up_time != NONE
    ]
    return replace(workload_of(case, case.jobs), header=tuple(notes))


def _sheet(case: Case) -> list[list[Any]]:
    """An empty table of answers."""
    if case.kind == "cluster":
        empty = [""] * len(case.columns)
        return [["job", *case.columns], *([job.number, *empty] for job in case.jobs)]
    more = ["processors"] + (["earliest_time"] if case.kind == "calendars" else [])
    header: list[Any] = ["variant", *NEEDED, *more]
    return [
        header,
        *([variant, job.number, *[""] * (len(header) - 2)] for variant in case.variants for job in case.jobs),
    ]
