"""Nodes of an export: lists of nodes, and the most that jobs held on each at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridsched as gs
from gridsched.errors import TraceError, WorkloadError
from gridsched.nodes import NodeType
from gridsched.traces._slurm_nodes import is_node_list, node_count, node_names
from gridsched.traces.node_lists import infer_nodes
from gridsched.traces.sacct import AccountingLog, read_accounting
from tests.support.fields import assert_fields
from tests.traces.test_sacct import COLUMNS, export, line

HEADER = f"{COLUMNS}|NodeList"


def log_of(folder: Path, *rows: tuple[str, str]) -> AccountingLog:
    """Log of lines, each with its list of nodes."""
    return read_accounting(export(folder, *(f"{row}|{nodes}" for row, nodes in rows), header=HEADER))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cn1", ["cn1"]),
        ("cn[1-3]", ["cn1", "cn2", "cn3"]),
        ("cn[008-010,7],gpu-a.1", ["cn008", "cn009", "cn010", "cn7", "gpu-a.1"]),
        ("r[1-2]n[01-02]x", ["r1n01x", "r1n02x", "r2n01x", "r2n02x"]),
    ],
)
def test_lists_of_nodes(text: str, names: list[str]) -> None:
    assert is_node_list(text.encode())
    assert node_names(text) == names
    assert node_count(text) == len(names)


@pytest.mark.parametrize("text", ["cn[1-", "cn[3-1]", "cn[-1]", "cn[1-9999999]", "a b", ",", "cn[]"])
def test_what_is_no_list_of_nodes(text: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"export\.txt:3: NodeList is .*no list of nodes like cn"):
        log_of(tmp_path, (line(1), "cn1"), (line(2), text))


def clock(minutes: int) -> str:
    return f"2024-05-01T{10 + minutes // 60:02d}:{minutes % 60:02d}:00"


def job(number: int, start: int, end: int, cpus: int, tres: str = "", **fields: object) -> str:
    return line(
        number,
        Submit=clock(0),
        Start=clock(start),
        End=clock(end),
        ElapsedRaw=60 * (end - start),
        AllocCPUS=cpus,
        AllocTRES=tres,
        **fields,
    )


def test_a_node_has_the_most_that_jobs_held_at_once(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        (job(1, 0, 10, 8, "mem=8M,gres/gpu=2"), "cn1"),
        (job(2, 5, 20, 4, "mem=12M"), "cn1"),
        # begins as another ends
        (job(3, 20, 30, 11, "mem=1M"), "cn1"),
        # ten on three nodes: four on each
        (job(4, 0, 5, 10, "mem=10M,node=3"), "cn[2-4]"),
        (job(5, 40, 40, 64), "cn2"),
    )
    found = infer_nodes(log)
    nodes = {name: kind for kind in found.nodes for name in kind.nodes}
    assert list(nodes) == ["cn1", "cn2", "cn3", "cn4"]
    assert {name: kind.cores for name, kind in nodes.items()} == {"cn1": 12, "cn2": 64, "cn3": 4, "cn4": 4}
    assert {name: kind.memory for name, kind in nodes.items()} == {"cn1": 20, "cn2": 4, "cn3": 4, "cn4": 4}
    assert nodes["cn1"].gpus == 2
    assert nodes["cn3"] is nodes["cn4"]
    assert_fields(found, partitions=(), without_nodes=0)


def test_partitions_have_the_nodes_of_their_jobs(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        (job(1, 0, 10, 8, Partition="batch"), "cn[1-2]"),
        (job(2, 0, 10, 8, Partition="gpu"), "g1"),
        (job(3, 20, 30, 8, Partition="gpu,batch"), "cn2"),
        (job(4, 20, 30, 8, Partition="all"), "cn[1-2],g1"),
        (line(5, State="CANCELLED", Start="Unknown", AllocCPUS=0, Partition="new"), "None assigned"),
        (line(6, Start=clock(1), End=clock(2), Partition="batch"), ""),
    )
    found = infer_nodes(log)
    names = log.names["partition"]
    assert {names[each.number]: each.nodes for each in found.partitions} == {
        "batch": ("cn1", "cn2"),
        "gpu": ("g1",),
        # the nodes of both are all nodes
        "gpu,batch": (),
        "all": (),
        "new": (),
    }
    assert found.without_nodes == 1
    gpu = log.workload.partition == names.index("gpu")
    assert [name for kind in infer_nodes(log, log.workload.select(gpu)).nodes for name in kind.nodes] == [
        "g1"
    ]


def test_peaks_are_those_of_a_naive_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows, jobs = [], []
    for number in range(60):
        nodes = sorted(rng.choice(5, rng.integers(1, 4), replace=False).tolist())
        start, length, cpus = (int(rng.integers(*bounds)) for bounds in ((0, 50), (0, 9), (1, 20)))
        rows.append((job(number + 1, start, start + length, cpus), ",".join(f"n{k}" for k in nodes)))
        jobs.append((nodes, start, start + length, -(-cpus // len(nodes))))
    found = {name: kind.cores for kind in infer_nodes(log_of(tmp_path, *rows)).nodes for name in kind.nodes}
    for k in range(5):
        mine = [each for each in jobs if k in each[0]]
        at_once = [sum(size for _, a, b, size in mine if a <= now < b) for now in range(60)]
        assert found[f"n{k}"] == max(at_once + [size for *_, size in mine])


def test_the_recorded_schedule_fits_into_its_nodes(tmp_path: Path) -> None:
    """Jobs that a simulation ran on nodes run on those that are found at the same times again."""
    rng = np.random.default_rng(4)
    count = 200
    cores = rng.choice([2, 4, 8], count)
    run = 60 * rng.integers(1, 60, count)
    workload = gs.Workload(
        name="x",
        submit_time=60 * np.sort(rng.integers(0, 600, count)),
        run_time=run,
        requested_time=60 * (run // 50 + 1),
        requested_processors=cores,
        requested_memory=rng.choice([1024, 4096], count),
        requested_nodes=rng.choice([1, 2], count),
    )
    cluster = gs.Cluster(nodes=[NodeType(name="n", count=3, cores=8, memory=32)])
    schedule = gs.simulate(workload, cluster, "easy")
    of_job: dict[int, list[str]] = {}
    for segment, node in zip(schedule["piece_segment"].values, schedule["piece_node"].values, strict=True):
        name = str(schedule["node_name"].values[node])
        of_job.setdefault(int(schedule["segment_job"].values[segment]), []).append(name)
    rows = []
    for k in range(count):
        start, end = (int(schedule[f"{which}_time"].values[k]) for which in ("start", "end"))
        times = (int(workload.submit_time[k]), start, end)
        submit, begin, until = (1_700_000_000 + each for each in times)
        tres = f"mem={workload.requested_memory[k] * cores[k]}K,node={len(of_job[k])}"
        limit = int(workload.requested_time[k])
        row = line(
            k + 1,
            Submit=submit,
            Eligible=submit,
            Start=begin,
            End=until,
            ElapsedRaw=end - start,
            Timelimit=f"{limit // 60}:00",
            AllocCPUS=cores[k],
            ReqCPUS=cores[k],
            NNodes=len(of_job[k]),
            AllocTRES=tres,
        )
        rows.append((row, ",".join(of_job[k])))
    log = log_of(tmp_path, *rows)
    again = gs.simulate(log.workload, gs.Cluster(nodes=infer_nodes(log).nodes), "easy")
    assert again.attrs["jobs_rejected"] == 0
    gs.verify(again)
    assert (again["start_time"] - again["submit_time"]).values.tolist() == log.workload.wait_time.tolist()


def test_an_export_without_nodes(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="export the column NodeList"):
        infer_nodes(read_accounting(export(tmp_path, line(1))))
