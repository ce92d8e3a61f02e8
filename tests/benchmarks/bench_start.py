"""What a user pays besides simulating: compilation, start of a process, memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import workload
from tests.benchmarks.table import Table

REPOSITORY = Path(__file__).parents[2]

FIRST_SIMULATION = """
import gridsched as gs
import numpy as np

times = np.array([0, 1, 2])
workload = gs.Workload(
    name="three",
    submit_time=times,
    run_time=10 + times,
    requested_processors=1 + times,
    processors_available=3,
)
"""

EASY = "gs.simulate(workload, scheduler='easy')"

EVERY_KERNEL = """
for policy in ("easy", "lxf", "conservative"):
    gs.simulate(workload, scheduler=policy)
"""

ENGINE_ALONE = """
import numpy as np
from gridsched.engine.records import JOB
from gridsched.policies.local import POLICIES, schedule
schedule(np.array([(0, 10, 10, 1), (1, 10, 10, 2)], JOB), 2, POLICIES["easy"])
"""

# The jobs are read without copies on the way, so that the process has not been larger before than it is.
# Linux hands the peak of `getrusage` down from the parent process, hence VmHWM.
MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from gridsched.engine.records import LABELS
from gridsched.policies.local import POLICIES, schedule

def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])

jobs = np.load(sys.argv[1])
labels = np.full(len(jobs), -1, LABELS)
policy = POLICIES[sys.argv[2]]
schedule(jobs[:10].copy(), int(sys.argv[3]), policy, labels=labels[:10].copy())
before = peak()
schedule(jobs, int(sys.argv[3]), policy, labels=labels)
print((peak() - before) / len(jobs))
"""


def run(code: str, *arguments: str, kernels: Path) -> tuple[float, str]:
    """CPU seconds and output of a fresh process with this folder of compiled kernels."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "GRIDSCHED_CACHE": str(kernels)},
        check=True,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, process.stdout


@pytest.fixture(scope="module")
def cold_start(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, Path]:
    """CPU seconds of a process that compiles every kernel, and the folder into which it did."""
    kernels = tmp_path_factory.mktemp("kernels")
    seconds, _ = run(FIRST_SIMULATION + EVERY_KERNEL, kernels=kernels)
    return seconds, kernels


def test_compilation(cold_start: tuple[float, Path], table: Table) -> None:
    seconds, _ = cold_start
    table.add("cold start: import, compile easy, lxf, conservative", seconds, "s", digits=1, at_most=60)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("cached start: import gridsched, first simulation", FIRST_SIMULATION + EASY),
        ("cached start: engine and local policies alone", ENGINE_ALONE),
    ],
)
def test_cached_start(what: str, code: str, cold_start: tuple[float, Path], table: Table) -> None:
    seconds = min(run(code, kernels=cold_start[1])[0] for _ in range(5))
    table.add(what, seconds, "s", digits=2, at_most=1)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_memory(policy: str, cold_start: tuple[float, Path], tmp_path: Path, table: Table) -> None:
    stream = workload.synthetic(0.9)
    np.save(tmp_path / "jobs.npy", stream.jobs)
    arguments = (str(tmp_path / "jobs.npy"), policy, str(stream.processors))
    _, printed = run(MEMORY, *arguments, kernels=cold_start[1])
    what = f"memory of the engine, {policy}, {stream.name}, {len(stream.jobs):,} jobs"
    table.add(what, float(printed), "B/job", at_most=100)
