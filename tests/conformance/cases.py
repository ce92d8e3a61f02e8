"""The conformance cases on disk: reading workloads, and reading and writing their exact schedules."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gridsched.io import atomic_write
from tests.naive import POLICIES, Job

FOLDER = Path(__file__).parent
PASSES = ("instant", "event")

Simulator = Callable[[list[Job], int, str, str, str], list[int]]
"""`simulator(jobs, processors, policy, overrun, passes)`: start times under a named policy."""

Schedules = dict[str, list[int]]
"""Start times of the jobs by `policy:passes`."""


class Case(NamedTuple):
    """A workload, its machine, and what jobs are expected to do that outrun their requested time."""

    processors: int
    overrun: str
    jobs: list[Job]


def names() -> list[str]:
    """All cases."""
    return sorted(path.stem for path in (FOLDER / "workloads").glob("*.csv"))


def read_case(name: str) -> Case:
    """The workload of a case; job numbers are 1, 2, 3 ..."""
    lines = (FOLDER / "workloads" / f"{name}.csv").read_text().splitlines()
    header = dict(line.removeprefix("# ").split(": ") for line in lines if line.startswith("#"))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [int(row["job"]) for row in rows] == list(range(1, len(rows) + 1))
    columns = ("submit_time", "run_time", "requested_time", "processors")
    jobs = [Job(*(int(row[column]) for column in columns)) for row in rows]
    return Case(int(header["processors"]), header["overrun"], jobs)


def simulate_case(case: Case, simulator: Simulator) -> Schedules:
    """The schedules of a case under all named policies and both conventions of passes."""
    return {
        f"{policy}:{passes}": simulator(case.jobs, case.processors, policy, case.overrun, passes)
        for policy in POLICIES
        for passes in PASSES
    }


def read_schedules(name: str) -> Schedules:
    """The stored schedules of a case."""
    with (FOLDER / "schedules" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row.pop("job")) for row in rows] == list(range(1, len(rows) + 1))
    return {column: [int(row[column]) for row in rows] for column in rows[0]}


def write_schedules(name: str, schedules: Schedules) -> None:
    """Store the schedules of a case."""
    with atomic_write(FOLDER / "schedules" / f"{name}.csv") as path, path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["job", *schedules])
        for number, starts in enumerate(zip(*schedules.values(), strict=True), start=1):
            writer.writerow([number, *starts])
