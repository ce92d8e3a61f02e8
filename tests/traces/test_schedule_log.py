"""Schedules as logs: what a run is written as says when, where and how its jobs ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import gridsched as gs
from gridsched.engine.job_lifecycle import Fate
from gridsched.nodes import NodeEvent, NodeType
from gridsched.workloads.dependencies import dependency_table
from tests.support.fields import assert_fields
from tests.support.traces import workload

SCHEDULERS: list[Any] = ["local", "s-i", gs.JScheduler(k=2), "dynamic-grid", gs.Multicluster(), "ideal-srpt"]


def written(run: xr.Dataset, folder: Path) -> gs.Workload:
    path = folder / "run.swf.gz"
    gs.write_swf(run, path)
    return gs.read_swf(path)


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
def test_schedule_survives_the_trip(tmp_path: Path, scheduler: Any) -> None:
    model = gs.load_machines()["M3"]
    jobs = [gs.synthesise(model, jobs=80, seed=seed) for seed in (1, 2)]
    clusters = [gs.Cluster(name="north", processors=1152), gs.Cluster(name="south", processors=1152, speed=2)]
    if scheduler == "ideal-srpt":
        clusters[1] = gs.Cluster(name="south", processors=1152)
    run = gs.simulate(jobs, clusters, scheduler)
    log = written(run, tmp_path)
    start = log.submit_time + log.wait_time
    assert np.array_equal(log.job_number, run.job_number)
    assert np.array_equal(log.submit_time, run.submit_time)
    # Ideal schedules have fractions of seconds, of which sums lose the last bits
    assert np.allclose(start, run.start_time, rtol=0, atol=1e-9)
    assert np.allclose(start + log.run_time, run.end_time, rtol=0, atol=1e-9)
    assert np.array_equal(log.requested_processors, run.processors)
    assert (log.status == 1).all()
    assert log.processors_available == 2304
    if "segment_job" in run:
        for job in range(0, len(log), 7):
            first = (run.segment_job == job) & (run.segment_start == run.start_time[job])
            assert log.allocated_processors[job] == run.segment_processors[first].sum()
            assert log.partition[job] - 1 in run.segment_cluster[first]
        assert "; Partition: 2 south" in log.header
    else:
        assert (log.allocated_processors == -1).all()


def test_reading_a_schedule_gives_what_was_simulated(tmp_path: Path) -> None:
    """The log of a run can be simulated, and its recorded waits are those of the run."""
    original = gs.clean(
        workload(
            submit_time=np.arange(0, 400, 10),
            run_time=np.full(40, 35),
            requested_time=np.full(40, 60),
            requested_processors=np.tile([1, 3], 20),
            processors_available=4,
            unix_start_time=1_000_000_000,
            time_zone="Europe/Rome",
            acknowledgement="Ada",
        )
    )
    run = gs.simulate(original, scheduler="easy")
    log = gs.clean(written(run, tmp_path))
    assert (log.unix_start_time, log.time_zone, log.acknowledgement) == (1_000_000_000, "Europe/Rome", "Ada")
    again = gs.simulate(log, scheduler="easy")
    assert np.array_equal(again.start_time, run.start_time)
    assert np.array_equal(again.recorded_wait_time, run.start_time - run.submit_time)


def test_status_says_how_jobs_ended(tmp_path: Path) -> None:
    """One job of each fate on two nodes, of which the second is lost for good."""
    jobs = workload(
        submit_time=[0, 0, 1, 2, 3, 4],
        run_time=[100, 10, 10, 10, 10, 10],
        requested_time=[100, 10, 10, 10, 10, 10],
        requested_processors=[4, 4, 99, 4, 4, 4],
        gives_up_time=np.array([-1, -1, -1, 7, -1, -1]),
        dependencies=dependency_table([(4, 2, "afterok")]),
    )
    lost = NodeEvent(time=5, node="n1", kind="down")
    cluster = gs.Cluster(
        nodes=[NodeType(name="n", count=2, cores=4)], events=[lost], requeue="lost", policy="fcfs"
    )
    run = gs.simulate(jobs, cluster)
    log = written(run, tmp_path)
    expected = {
        Fate.COMPLETED: 1,
        Fate.REJECTED: 0,
        Fate.LOST: 0,
        Fate.GAVE_UP: 5,
        Fate.NEVER_ELIGIBLE: 5,
        Fate.STARVED: -1,
    }
    assert log.status.tolist() == [expected[Fate(fate)] for fate in run.fate.values.tolist()]
    assert {Fate(fate) for fate in run.fate.values.tolist()} >= {Fate.COMPLETED, Fate.REJECTED, Fate.GAVE_UP}
    assert log.wait_time[3] == 5
    assert (log.run_time[run.start_time.values < 0] == -1).all()


def test_job_that_is_killed_at_its_limit_failed(tmp_path: Path) -> None:
    jobs = workload(run_time=[10, 10, 10, 10], requested_time=[9, 10, 11, -1], processors_available=4)
    run = gs.simulate(jobs, kill=True)
    assert run.attrs["jobs_killed"] == 1
    assert_fields(written(run, tmp_path), status=[0, 1, 1, 1], run_time=[9, 10, 10, 10])


def test_dataset_that_is_no_run(tmp_path: Path) -> None:
    summary = gs.summarise(gs.simulate(workload(processors_available=4)))
    with pytest.raises(gs.GridschedError, match=r"no run.*submit_time.*gridsched\.simulate"):
        gs.write_swf(summary, tmp_path / "log.swf")
    assert not list(tmp_path.iterdir())
