"""Reading nodes, pods and jobs of clusters with GPUs: what they ask for, when they ran, what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.errors import ConfigurationError, TraceError
from gridsched.nodes import NodeType
from gridsched.traces import (
    gpu_partitions,
    read_gpu_job_log,
    read_gpu_jobs,
    read_gpu_nodes,
    read_gpu_pod_log,
    read_gpu_pods,
)
from tests.support.fields import assert_fields
from tests.support.tables import published, table

NODE = {"sn": "a", "cpu_milli": 32000, "memory_mib": 262144, "gpu": 2, "model": "T4"}
POD = {
    "name": "p0",
    "cpu_milli": 12000,
    "memory_mib": 16384,
    "num_gpu": 1,
    "gpu_milli": 1000,
    "gpu_spec": "",
    "qos": "LS",
    "pod_phase": "Succeeded",
    "creation_time": 100,
    "deletion_time": 160,
    "scheduled_time": 110,
}
JOB = {
    "timestamp": "2017-10-09 07:00:00",
    "duration": "66.0",
    "num_gpus": 2,
    "gpu_time": "132.0",
    "cluster": "red",
}


def pods(tmp_path: Path, *changes: Mapping[str, object], **options: Any) -> Any:
    return read_gpu_pod_log(table(tmp_path, *({**POD, **each} for each in changes)), **options)


# --- nodes ----------------------------------------------------------------------------------------


def test_each_node_is_a_type_of_its_own(tmp_path: Path) -> None:
    path = table(tmp_path, NODE, {**NODE, "sn": "b", "gpu": 0, "model": ""})
    assert read_gpu_nodes(path) == (
        NodeType(name="a", cores=32000, memory=262144, gpus=2),
        NodeType(name="b", cores=32000, memory=262144, gpus=0),
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cpu_milli": "many"}, r"table\.csv:3: cpu_milli is 'many': no whole number"),
        ({"cpu_milli": 0}, r"table\.csv:3: node type b: cores is 0; it must be at least 1"),
        ({"gpu": 100}, r"table\.csv:3: node type b: gpus is 100; it must be at least 0"),
        ({"memory_mib": -1}, r"table\.csv:3: memory_mib is '-1': no whole number from 0 on"),
        ({"sn": "a"}, r"table\.csv:3: sn is 'a': no name of its own; give"),
        ({"sn": ""}, r"table\.csv:3: sn is '': no name of its own; give"),
    ],
)
def test_a_wrong_node_is_named(wrong: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        read_gpu_nodes(table(tmp_path, NODE, {**NODE, "sn": "b", **wrong}))


def test_partitions_have_the_nodes_of_the_models(tmp_path: Path) -> None:
    models = {"a": "T4", "b": "A10", "c": "", "d": "P100"}
    path = table(tmp_path, *({**NODE, "sn": name, "model": model} for name, model in models.items()))
    anywhere, some = gpu_partitions(path, ["", "A10|T4"])
    assert (anywhere.number, anywhere.nodes) == (0, ())
    assert (some.number, some.nodes, some.name) == (1, ("a", "b"), "A10|T4")
    with pytest.raises(TraceError, match="no node whose model is H100"):
        gpu_partitions(path, ["", "H100"])


# --- pods -----------------------------------------------------------------------------------------


def test_a_pod_in_the_columns_of_a_workload(tmp_path: Path) -> None:
    log = pods(tmp_path, {})
    workload = log.workload
    assert_fields(
        workload, name="table", submit_time=[100], run_time=[60], requested_processors=[12000], partition=[0]
    )
    assert_fields(log, identifiers=("p0",), names={"partition": ("",), "queue": ("LS",)})
    assert {name: column.tolist() for name, column in workload.extra.items()} == {
        "requested_nodes": [1],
        "requested_gpus": [1],
        "gpu_share": [-1],
    }
    assert (workload.status.tolist(), workload.repaired) == ([1], {})


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ([{"num_gpu": 0, "gpu_milli": 0}], {"requested_gpus": [-1], "gpu_share": [-1]}),
        ([{"num_gpu": 1, "gpu_milli": 460}], {"requested_gpus": [-1], "gpu_share": [460]}),
        ([{"num_gpu": 8, "gpu_milli": 1000}], {"requested_gpus": [8], "gpu_share": [-1]}),
        (
            [{"cpu_milli": 0, "memory_mib": 0}, {}],
            {
                "requested_processors": [100, 12000],
                "requested_memory": [-1, 1398],
                "repaired": {"asked for no CPU, taken as 100 thousandths of a core": 1},
            },
        ),
        ([{"gpu_spec": models} for models in ("T4|A10", "", "A10|T4", "P100")], {"partition": [1, 0, 1, 2]}),
        ([{"creation_time": 105}, {}], {"submit_time": [100, 105], "job_number": [2, 1]}),
        ([{"pod_phase": "Failed"}], {"status": [0], "run_time": [60], "repaired": {}}),
        (
            [{"pod_phase": "Running"}],
            {
                "status": [-1],
                "run_time": [60],
                "repaired": {"still running when the trace ended, run time up to then": 1},
            },
        ),
        (
            [{"pod_phase": "Pending", "scheduled_time": ""}],
            {
                "status": [5],
                "run_time": [60],
                "repaired": {"never scheduled, run time is how long it waited": 1},
            },
        ),
    ],
)
def test_what_pods_ask_for_and_how_they_ended(
    changes: list[dict[str, object]], fields: dict[str, object], tmp_path: Path
) -> None:
    assert_fields(pods(tmp_path, *changes).workload, **fields)


def test_names_come_in_the_order_of_numbers(tmp_path: Path) -> None:
    log = pods(
        tmp_path,
        {"name": "late", "creation_time": 105, "gpu_spec": "T4|A10"},
        {"name": "early", "gpu_spec": ""},
        {"name": "last", "creation_time": 110, "gpu_spec": "P100"},
    )
    assert log.identifiers == ("early", "late", "last")
    assert log.names["partition"] == ("", "A10|T4", "P100")


def test_run_times_from_where_pods_were_scheduled(tmp_path: Path) -> None:
    workload = pods(
        tmp_path, {}, {"pod_phase": "Pending", "scheduled_time": ""}, run_from="scheduled"
    ).workload
    assert_fields(workload, wait_time=[10], run_time=[50], left_out={"never scheduled": 1})
    with pytest.raises(ConfigurationError, match="run_from is 'deletion'"):
        pods(tmp_path, {}, run_from="deletion")


@pytest.mark.parametrize(("number", "milli"), [(0, 500), (1, 0), (1, 1001), (2, 500)])
def test_shares_that_make_no_sense_are_refused(number: int, milli: int, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=rf"table\.csv:2: gpu_milli is '{milli}': where num_gpu is {number}"):
        pods(tmp_path, {"num_gpu": number, "gpu_milli": milli})


@pytest.mark.parametrize(
    ("cpu", "memory"), [(12000, 16384), (16000, 122880), (3, 1), (7, 5), (64000, 262144)]
)
def test_memory_is_never_more_than_the_trace_says_and_hardly_less(
    cpu: int, memory: int, tmp_path: Path
) -> None:
    workload = pods(tmp_path, {"cpu_milli": cpu, "memory_mib": memory}).workload
    lost = memory * 1024 - int(workload.requested_memory[0] * workload.requested_processors[0])
    assert 0 <= lost < cpu


def test_a_pod_as_large_as_a_node_runs_on_it(tmp_path: Path) -> None:
    nodes = read_gpu_nodes(
        table(tmp_path, {**NODE, "cpu_milli": 16000, "memory_mib": 122880}, name="nodes.csv")
    )
    workload = pods(tmp_path, {"cpu_milli": 16000, "memory_mib": 122880}).workload
    run = gs.simulate(workload, gs.Cluster(processors=16000, nodes=nodes), "fcfs")
    assert run["start_time"].values.tolist() == [100]


def test_a_list_without_times(tmp_path: Path) -> None:
    row = {name: POD[name] for name in ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")}
    path = table(tmp_path, row, row)
    assert_fields(
        read_gpu_pods(path),
        submit_time=[0, 0],
        run_time=[-1, -1],
        repaired={"no times in the table, submitted at 0 for an unknown time": 2},
    )
    with pytest.raises(TraceError, match="no column creation_time, deletion_time, scheduled_time"):
        read_gpu_pods(path, run_from="scheduled")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"deletion_time": 99}, "2: deletion_time is '99': a pod is created, scheduled, then deleted"),
        ({"creation_time": "soon"}, "2: creation_time is 'soon': no whole number"),
        ({"memory_mib": ""}, "2: memory_mib is '': no whole number"),
    ],
)
def test_a_wrong_pod_is_named(wrong: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        pods(tmp_path, wrong)


# --- jobs of deep learning ------------------------------------------------------------------------


def test_a_job_has_a_processor_for_each_gpu(tmp_path: Path) -> None:
    path = table(tmp_path, {**JOB, "timestamp": "2017-10-09 07:00:30", "cluster": "blue"}, JOB)
    log = read_gpu_job_log(path, time_zone="America/Los_Angeles")
    workload = log.workload
    assert_fields(workload, submit_time=[0, 30], run_time=[66, 66], unix_start_time=1507557600)
    assert workload.processors.tolist() == workload.requested_gpus.tolist() == [2, 2]  # type: ignore[union-attr]
    assert [log.names["partition"][number] for number in workload.partition] == ["red", "blue"]
    assert (workload.time_zone, workload.left_out, workload.repaired) == ("America/Los_Angeles", {}, {})


def test_jobs_that_say_too_little_are_counted(tmp_path: Path) -> None:
    changes: list[dict[str, object]] = [{"timestamp": ""}, {"duration": ""}, {"num_gpus": 0}, {}]
    workload = read_gpu_jobs(table(tmp_path, *({**JOB, **each} for each in changes)))
    assert len(workload) == 1
    assert workload.left_out == {"no submit time": 1, "no run time": 1, "no GPU": 1}


def test_fractions_and_other_sums_are_counted(tmp_path: Path) -> None:
    rows = ({**JOB, "duration": "65.5", "gpu_time": "131.0"}, {**JOB, "gpu_time": "500"})
    assert_fields(
        read_gpu_jobs(table(tmp_path, *rows)),
        run_time=[66, 66],
        repaired={
            "run time rounded up to whole seconds": 1,
            "gpu_time other than duration times GPUs, ignored": 1,
        },
    )


def test_a_wrong_time_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"table\.csv:3: timestamp is '9 Oct': no time like 2024"):
        read_gpu_jobs(table(tmp_path, JOB, {**JOB, "timestamp": "9 Oct"}))


# --- the published traces -------------------------------------------------------------------------


def test_the_published_nodes() -> None:
    nodes = read_gpu_nodes(published("openb_node_list_all_node.csv.gz"))
    assert (len(nodes), sum(node.gpus for node in nodes)) == (1523, 6212)
    assert nodes[0] == NodeType(name="openb-node-0000", cores=32000, memory=262144)


@pytest.mark.parametrize(
    ("name", "jobs", "running", "pending"), [("default", 8152, 5193, 897), ("cpu100", 7853, 4910, 883)]
)
def test_the_published_pods(name: str, jobs: int, running: int, pending: int) -> None:
    log = read_gpu_pod_log(published(f"openb_pod_list_{name}.csv.gz"))
    workload = log.workload
    assert len(workload) == len(log.identifiers) == jobs
    assert list(workload.repaired.values()) == [running, pending]
    assert Counter(workload.status.tolist())[1] == (192 if name == "default" else 191)
    assert np.count_nonzero(workload.gpu_share > 0) == 3078  # type: ignore[operator]
    assert (np.diff(workload.submit_time) >= 0).all()
    assert len(gs.clean(workload)) == jobs


def test_the_published_pods_without_times() -> None:
    workload = read_gpu_pods(published("openb_pod_list_multigpu20.csv.gz"))
    assert len(workload) == 8324
    assert (workload.run_time == -1).all()


def test_the_published_jobs_of_deep_learning() -> None:
    log = read_gpu_job_log(published("philly-2017.csv.gz"))
    assert len(log.workload) == 82247
    assert len(log.names["partition"]) == 15
    assert log.workload.processors.max() == 128
    assert not log.workload.left_out
    assert not log.workload.repaired
