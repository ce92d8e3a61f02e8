"""Whole simulations: jobs a second beside the C++ yardstick, with equal schedules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.engine.records import LABELS
from gridsched.policies.local import POLICIES, schedule
from tests.benchmarks import workload
from tests.benchmarks.measure import best_time, best_times
from tests.benchmarks.table import Table
from tests.benchmarks.workload import Stream
from tests.benchmarks.yardstick import Yardstick

LOGS = ("KTH-SP2-1996-2.1-cln", "CTC-SP2-1996-3.1-cln", "HPC2N-2002-2.2-cln")
LOADS = (0.7, 0.9, 1.1)
SATURATED = 1.25
VARIANTS = {"fcfs": ("fcfs",), "easy": ("easy_plain", "easy_blocks")}
MAX_RATIO = {"fcfs": 1.1, "easy": 1.25}


@dataclass(frozen=True)
class Comparison:
    """CPU seconds a job, and what the queue was like."""

    ours: float
    yardstick: float
    mean_queue: float
    longest_queue: int


@cache
def log(path: Path) -> Stream:
    if not path.is_file():
        pytest.skip(f"no {path.name} in the mirror of the workload archive")
    return workload.archive(path)


synthetic = cache(workload.synthetic)


def simulate(stream: Stream, policy: str, labels: NDArray[Any]) -> NDArray[np.int64]:
    return schedule(stream.jobs, stream.processors, POLICIES[policy], labels=labels)[0]


def labels_of(stream: Stream) -> NDArray[Any]:
    return np.full(len(stream.jobs), -1, LABELS)


def queue_lengths(stream: Stream, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Jobs that wait just after each submission."""
    number = len(starts)
    return np.arange(1, number + 1) - np.searchsorted(np.sort(starts), stream.jobs["submit"], side="right")


@cache
def compare(stream: Stream, policy: str, yardstick: Yardstick) -> Comparison:
    """Time our engine and every variant of the yardstick, whose schedules must be the same."""
    labels = labels_of(stream)
    starts = simulate(stream, policy, labels)
    for variant in VARIANTS[policy]:
        np.testing.assert_array_equal(yardstick.schedule(variant, stream.jobs, stream.processors), starts)

    def of_variant(variant: str) -> Any:
        return lambda: yardstick.schedule(variant, stream.jobs, stream.processors)

    ours, *theirs = best_times(
        [lambda: simulate(stream, policy, labels), *(of_variant(variant) for variant in VARIANTS[policy])]
    )
    queue = queue_lengths(stream, starts)
    return Comparison(ours / len(starts), min(theirs) / len(starts), float(queue.mean()), int(queue.max()))


def report(table: Table, stream: Stream, policy: str, yardstick: Yardstick) -> None:
    found = compare(stream, policy, yardstick)
    table.add(
        f"{policy}, {stream.name}, {len(stream.jobs):,} jobs (queue mean {found.mean_queue:,.0f}, "
        f"max {found.longest_queue:,})",
        found.ours / found.yardstick,
        "times as long",
        digits=2,
        at_most=MAX_RATIO[policy],
        note=f", {1e-6 / found.ours:.2f} M jobs/s",
        yardstick=f"{1e-6 / found.yardstick:.2f} M jobs/s",
    )


@pytest.mark.parametrize("policy", VARIANTS)
@pytest.mark.parametrize("name", LOGS)
def test_log(name: str, policy: str, archive_mirror: Path, yardstick: Yardstick, table: Table) -> None:
    report(table, log(archive_mirror / f"{name}.swf.gz"), policy, yardstick)


@pytest.mark.parametrize("policy", VARIANTS)
@pytest.mark.parametrize("load", LOADS)
def test_synthetic(load: float, policy: str, yardstick: Yardstick, table: Table) -> None:
    report(table, synthetic(load), policy, yardstick)


def test_cost_grows_little_with_the_queue(yardstick: Yardstick, table: Table) -> None:
    report(table, synthetic(SATURATED), "easy", yardstick)
    light = compare(synthetic(LOADS[0]), "easy", yardstick)
    saturated = compare(synthetic(SATURATED), "easy", yardstick)
    table.add(
        f"easy, time a job at load {SATURATED} / at {LOADS[0]} (queue {light.mean_queue:,.0f} -> "
        f"{saturated.mean_queue:,.0f})",
        saturated.ours / light.ours,
        "times as long",
        digits=2,
        at_most=6,
        yardstick=f"{saturated.yardstick / light.yardstick:.2f}",
    )


def test_conservative(archive_mirror: Path, table: Table) -> None:
    stream = log(archive_mirror / "CTC-SP2-1996-3.1-cln.swf.gz")
    best = best_time(lambda: simulate(stream, "conservative", labels_of(stream)))
    table.add(f"conservative, {stream.name}", len(stream.jobs) / best, "jobs/s", at_least=1e5)
