"""Futures on nodes: the same as on counted processors where nodes do not matter, and what they add."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.calibration.site import site_of
from gridsched.forecasting import CalibratedPolicy, PolicyOnNodes, Scenarios, calibrate, recorded_timeline
from gridsched.forecasting.on_nodes import held_by
from gridsched.forecasting.queues import constraints_in, continue_log
from gridsched.policies.local import Conventions, named_policy
from gridsched.simulation import start_times
from gridsched.workloads.dependencies import dependency_table
from tests.forecasting.test_forecast import EASY, _Known, busy_workload
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of

ONE_CORE = gs.Cluster(nodes=[gs.NodeType(count=32, cores=1)])
WITH_GPUS = gs.Cluster(
    nodes=[
        gs.NodeType(name="plain", count=24, cores=1),
        gs.NodeType(name="gpu", count=8, cores=1, gpus=1),
    ]
)


def log_of(workload: gs.Workload, cluster: gs.Cluster, policy: str) -> gs.Workload:
    """A log whose recorded starts are those of a run."""
    run = gs.simulate(workload, cluster, policy)
    return workload.select(slice(None), wait_time=run["start_time"].to_numpy() - workload.submit_time)


def some_with_gpus(workload: gs.Workload) -> gs.Workload:
    """A quarter of the jobs has up to eight processors, each with a GPU; the others leave GPUs alone."""
    asks = np.arange(len(workload)) % 4 == 0
    size = np.where(asks, np.minimum(workload.processors, 8), np.minimum(workload.processors, 24))
    return workload.select(
        slice(None),
        requested_processors=size,
        requested_gpus=np.where(asks, size, -1),
        constraint=np.where(asks, -1, 0),
    )


@pytest.mark.parametrize("policy", ["fcfs", "ff", "sjf"])
def test_where_nodes_do_not_matter_futures_are_those_of_counted_processors(policy: str) -> None:
    """Reservations are on nodes, so that policies with them differ."""
    log = log_of(busy_workload(900, 4, load=1.1), ONE_CORE, policy)
    timeline = recorded_timeline(log)
    waited = 0
    for now in log.submit_time[200::90].tolist():
        snapshot = timeline.at(now)
        counted, on_nodes = (
            Scenarios(snapshot, each, Conventions()).starts(3, 1)
            for each in (named_policy(policy), PolicyOnNodes(log, ONE_CORE, named_policy(policy)))
        )
        np.testing.assert_array_equal(on_nodes, counted)
        waited += len(snapshot.waiting)
    assert waited > 50


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_who_knows_all_tells_the_actual_starts_on_nodes_with_gpus(policy: str) -> None:
    """With actual run times and nobody to come; on counted processors other jobs would start."""
    cluster = gs.Cluster(
        nodes=[
            gs.NodeType(name="plain", count=24, cores=1, features=["plain"]),
            gs.NodeType(name="gpu", count=8, cores=1, gpus=1),
        ],
        constraints={0: "plain"},
    )
    workload = some_with_gpus(busy_workload(300, 2, load=3.0)).select(slice(None), user=np.arange(300))
    log = log_of(workload, cluster, policy)
    snapshot = recorded_timeline(log).at(int(log.submit_time[-1]))
    known = _Known(np.asarray(log.run_time))
    truth = recorded_timeline(log).starts(snapshot)
    assert len(truth) > 20
    on_nodes, counted = (
        Scenarios(snapshot, each, Conventions(), known, arrivals=False).starts(2, threads=2)
        for each in (PolicyOnNodes(log, cluster, named_policy(policy)), named_policy(policy))
    )
    assert (on_nodes == truth).all()
    assert (counted != truth).any()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_starts_that_are_awaited_are_those_of_the_whole_run(policy: str) -> None:
    cluster = gs.Cluster(
        nodes=[
            gs.NodeType(name="plain", count=24, cores=1),
            gs.NodeType(name="gpu", count=8, cores=1, gpus=1),
        ]
    )
    workload = some_with_gpus(busy_workload(300, 2, load=3.0))
    whole = start_times(workload, cluster, named_policy(policy))
    for awaited in (1, 40, 150):
        starts = start_times(workload, cluster, named_policy(policy), awaited=awaited)
        np.testing.assert_array_equal(starts[:awaited], whole[:awaited])
        begun = starts >= 0
        np.testing.assert_array_equal(starts[begun], whole[begun])
        # nothing happens after the last of them
        assert starts.max() == whole[:awaited].max()


def test_a_forecast_on_nodes_says_who_has_no_room_there() -> None:
    """Two jobs of three cores run on two nodes of four, and a third on both: beside these it finds none."""
    cluster = gs.Cluster(nodes=[gs.NodeType(count=2, cores=4)])
    log = jobs_of(
        submit_time=[0, 0, 0, 10],
        wait_time=[0, 0, 0, 100],
        run_time=[90, 90, 90, 10],
        requested_time=[200, 200, 200, 50],
        requested_processors=[3, 3, 2, 1],
        requested_nodes=[1, 1, 1, 1],
    )
    policy = PolicyOnNodes(log, cluster, EASY)
    issued = gs.forecast(recorded_timeline(log, 8), 20, policy=policy, adjust=0, futures=3)
    assert issued.attrs["jobs_moved"] == 1
    assert issued["expected_start"].to_numpy().tolist() == [20]
    few = gs.forecast(recorded_timeline(log, 8).at(20), policy=policy, futures=3)
    assert few["start"].equals(issued["start"])


def test_jobs_that_nodes_cannot_hold_are_counted() -> None:
    log = jobs_of(
        submit_time=[0, 0, 0],
        wait_time=[0, 0, 0],
        run_time=[9, 9, 9],
        requested_time=[9, 9, 90],
        requested_processors=[13, 9, 1],
        requested_gpus=[13, -1, -1],
        left_out={"no run time": 2},
    )
    site = gs.Cluster(
        nodes=[gs.NodeType(name="a", count=12, cores=1, gpus=1)],
        partitions=[gs.Partition(number=-1, nodes=["a"], time_limit=60)],
    )
    assert_fields(
        held_by(log, site),
        job_number=[2],
        left_out={
            "no run time": 2,
            "no nodes that it may use can hold it": 1,
            "over a limit of its partition": 1,
        },
    )


@pytest.mark.parametrize("name", ["lxf", "lxwf", "creasy", "easy++"])
def test_policies_that_know_more_than_a_future_are_refused(name: str) -> None:
    with refused("--without nodes", one_line=True):
        PolicyOnNodes(busy_workload(20, 1), ONE_CORE, named_policy(name))


def test_a_calibration_goes_on_on_the_nodes_of_its_log() -> None:
    """Without layers it is EASY there; what was fitted by replays on the nodes goes on on them."""
    log = log_of(some_with_gpus(busy_workload(900, 4, load=1.1)), WITH_GPUS, "easy")
    snapshot = recorded_timeline(log, 32).at(int(log.submit_time[600]))
    assert len(snapshot.waiting) > 3
    site = site_of(log, WITH_GPUS)
    plain = Scenarios(snapshot, CalibratedPolicy(site, {}, np.arange(len(log))), Conventions())
    easy = Scenarios(snapshot, PolicyOnNodes(log, WITH_GPUS, EASY), Conventions())
    np.testing.assert_array_equal(plain.starts(3), easy.starts(3))
    effort = gs.calibration.fitting.Effort(2, 1, 1, 1, 1)
    fitted = calibrate(log, WITH_GPUS, now=snapshot.now, effort=effort)
    made = Scenarios(snapshot, fitted, Conventions()).starts(3)
    assert np.isfinite(made).all()
    assert (made >= snapshot.now).all()


SQUEUE = """\
JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER|PARTITION|QOS|SUBMIT_TIME|REASON|PRIORITY|TRES_ALLOC|FEATURES
2|RUNNING|5:00|6|30:00|root|main|(null)|2024-05-01T09:50:00|None|9|cpu=6,mem=6G,node=1,billing=6,gres/gpu=2|ib|slow
4|PENDING|0:00|10|1:30:00|root|main|(null)|2024-05-01T09:52:10|Resources|8|cpu=10,mem=7000M,node=2|ib&fast
5_[1-9%2]|PENDING|0:00|8|1-00:00:00|root|main|(null)|2024-05-01T09:53:10|Priority|7|cpu=8,mem=62.50G,node=1|(null)
"""
"""Format of `squeue -O "jobarrayid:|,..."` of a controller (22.05.8)."""


def test_a_queue_says_what_its_jobs_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(SQUEUE)
    assert constraints_in(path) == ["ib|slow", "ib&fast"]
    history = jobs_of(
        submit_time=[0],
        wait_time=[0],
        run_time=[60],
        requested_time=[60],
        requested_processors=[1],
        unix_start_time=1714557000,
    )
    names = {"constraint": ["fast", "ib|slow", "ib&fast"], "user": ["root"]}
    log = continue_log(history, path, 64, now=3600, names=names)
    columns: dict[str, Any] = {
        "job_number": [1, 2, 4, 5, 5],
        "requested_memory": [-1, 2**20, 7000 * 1024 // 10, 62.5 * 2**17, 62.5 * 2**17],
        "requested_gpus": [-1, 2, -1, -1, -1],
        "requested_nodes": [-1, 1, 2, 1, 1],
        "constraint": [-1, 1, 2, -1, -1],
    }
    assert_fields(log, **columns)
    path.write_text(SQUEUE.replace("mem=6G", "mem=6X"))
    with refused("row 1, column TRES_ALLOC", "give resources like", one_line=True):
        continue_log(history, path, 64, now=3600)


def test_outages_and_dependencies_are_not_in_futures() -> None:
    """A node that is out from the beginning stays out; a later outage and the wait for a job do not count."""
    kind = gs.NodeType(name="n", count=2, cores=4)
    events = [
        gs.NodeEvent(time=time, node=node, kind="drain")
        for time, node in zip((15, 0), kind.nodes, strict=True)
    ]
    cluster = gs.Cluster(nodes=[kind], events=sorted(events, key=lambda event: event.time))
    log = jobs_of(
        submit_time=[0, 10, 11],
        wait_time=[0, 500, 500],
        run_time=[90, 90, 10],
        requested_time=[100, 100, 50],
        requested_processors=[1, 2, 2],
        dependencies=dependency_table([(1, 0, "afterany")]),
    )
    policy = PolicyOnNodes(log, cluster, EASY)
    issued = gs.forecast(recorded_timeline(log, 8), 20, policy=policy, adjust=0, futures=3)
    assert issued["expected_start"].to_numpy().tolist() == [20, 100]
