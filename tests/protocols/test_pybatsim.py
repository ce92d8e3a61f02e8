"""Schedulers of pybatsim as they are published, against `gridsched serve`.

They are installed with pip into an environment that is kept in the cache; where this cannot be done, the
tests are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import gridsched as gs
from gridsched.engine.jit import cache_root
from gridsched.nodes import NodeType
from gridsched.protocols.hosts import read_hosts
from tests.support.pybatsim import EasyBackfill, Filler

NEEDS = ("docopt", "procset", "sortedcontainers", "pyzmq")
"""What both versions import; their own bounds are of 2022."""

NAMES = {
    "3.2.1": {"easy": "easyBackfill", "fcfs": "fcfsSchedSleep", "filler": "fillerSched"},
    "4.0.0a0": {"easy": "backfill-easy", "fcfs": "fcfs-sleeper", "filler": "filler"},
}


@pytest.fixture(scope="module", params=NAMES)
def pybatsim(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A version and its program."""
    version = str(request.param)
    folder = cache_root() / f"pybatsim-{version}-{sys.version_info.major}.{sys.version_info.minor}"
    program = folder / "bin" / "pybatsim"
    if not program.exists():
        try:
            venv.create(folder, with_pip=True)
            pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
            for what in (NEEDS, ("--no-deps", f"pybatsim=={version}")):
                subprocess.run([*pip, *what], check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", b"") or str(error).encode()
            pytest.skip(f"pybatsim {version} cannot be installed: {said.decode(errors='replace')[-200:]}")
    return version, program


def served(
    pybatsim: tuple[str, Path], policy: str, archive_mirror: Path, number: int = 500
) -> tuple[gs.Workload, xr.Dataset]:
    """Jobs of KTH-SP2 and their verified run."""
    version, program = pybatsim
    log = gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")
    jobs = gs.clean(gs.select_window(log, jobs=(0, number)))
    scheduler = gs.External(
        # it would give up after two seconds without a message, which a busy machine may take
        command=f"{program} -s {{socket}} --timeout 60000 {NAMES[version][policy]}",
        sleep_state=3,
        state_as_number=True,
    )
    cluster = gs.Cluster(nodes=[NodeType(count=100, cores=1)])
    run = gs.simulate(jobs, cluster, scheduler, kill=True)
    gs.verify(run)
    return jobs, run


def test_fcfs_that_lets_idle_hosts_sleep_is_fcfs(pybatsim: tuple[str, Path], archive_mirror: Path) -> None:
    """Power states take no time, so that they change nothing."""
    jobs, run = served(pybatsim, "fcfs", archive_mirror)
    wanted = gs.simulate(jobs, 100, "fcfs", kill=True)
    np.testing.assert_array_equal(run.start_time, wanted.start_time)
    assert run.attrs["power_state_requests"] > len(jobs)


@pytest.mark.parametrize("policy", ["easy", "filler"])
def test_it_starts_jobs_when_its_rule_does(
    policy: str, pybatsim: tuple[str, Path], archive_mirror: Path
) -> None:
    jobs, run = served(pybatsim, policy, archive_mirror)
    starts, hosts = run.start_time.astype(int).values.tolist(), run.hosts.values.tolist()
    rule = EasyBackfill() if policy == "easy" else Filler(starts, [read_hosts(each, 100) for each in hosts])
    np.testing.assert_array_equal(run.start_time, gs.simulate(jobs, 100, rule, kill=True).start_time)
