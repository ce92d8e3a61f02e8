"""What commands take into account of a log, which nodes they simulate, and which formats they read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gridsched as gs
from gridsched.cli import main
from gridsched.nodes import read_events
from tests.support.logs import assert_rows, row, swf
from tests.traces.test_sacct import COLUMNS, export, line

TABLE = f"{COLUMNS}|ReqTRES|NodeList|Dependency"
START = 1_700_000_000


def job(
    number: int,
    times: tuple[int, int | None, int],
    cpus: int,
    tres: str,
    nodes: str,
    dependency: str = "",
    **fields: object,
) -> str:
    """A line with times of submission, start and end in seconds."""
    submit, start, end = times
    ran = start is not None
    values = {
        "Submit": START + submit,
        "Eligible": START + submit,
        "Start": "Unknown" if start is None else START + start,
        "End": START + end,
        "ElapsedRaw": 0 if start is None else end - start,
        "State": "COMPLETED" if ran else "CANCELLED by 7",
        "AllocCPUS": cpus if ran else 0,
        "ReqCPUS": cpus,
        "Timelimit": "00:20:00",
        "AllocTRES": tres if ran else "",
        **fields,
    }
    return f"{line(number, **values)}|{tres}|{nodes if ran else 'None assigned'}|{dependency}"


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    """Export of a site with two nodes, of which one has GPUs, and a job that nobody waited for."""
    rows = [
        job(1, (0, 0, 600), 4, "mem=4G,node=1", "c1"),
        job(2, (10, 10, 500), 2, "mem=2G,node=1,gres/gpu=2", "g1", Partition="gpu", User="bob"),
        job(3, (20, 600, 900), 2, "mem=2G,node=1", "c1", User="bob"),
        job(4, (30, None, 100), 4, "mem=4G,node=1", "", User="eve"),
        job(5, (40, 500, 800), 1, "mem=1G,node=1,gres/gpu=1", "g1", Partition="gpu"),
        job(6, (50, 900, 950), 2, "mem=1G,node=1", "c1", "afterok:3", User="eve"),
    ]
    return export(tmp_path, *rows, header=TABLE)


def changed(text: str) -> dict[str, list[str]]:
    """Rows of the table of what each changes."""
    lines = text[text.index("Effect of each") :].split("\n\n")[1].splitlines()[1:]
    return {cells[0]: cells[1:] for cells in (re.split(r"\s+", line.strip()) for line in lines)}


def test_all_that_an_export_tells_counts_by_default(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", accounts)
    assert_rows(
        text,
        {
            "information used": [
                "nodes",
                "memory",
                "gpus",
                "partitions",
                "cancellations",
                "dependencies",
            ],
            "cluster": ["6", "processors", "on", "2", "nodes:", "1", ...],
        },
    )
    # the simulated schedule is the recorded one
    assert row(text, "easy")[:3] == row(text, "recorded")[:3]
    assert row(text, "users gave up waiting") == ["recorded", "1", "easy", "1"]
    assert list(changed(text)) == [
        "nothing",
        "nodes",
        "memory",
        "gpus",
        "partitions",
        "cancellations",
        "dependencies",
    ]
    assert changed(text)["dependencies"][-1] == "-60"
    left = text[text.index("What this leaves out:") :]
    for word in ("partitions", "memory", "nodes", "dependencies", "cancellations"):
        assert f"\n{word}" not in left


def test_each_can_be_switched_off(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", accounts, "--without", "cancellations,gpus", "--without", "dependencies")
    assert_rows(
        text,
        {
            "information used": ["nodes", "memory", "partitions"],
            "left out: cancelled before it started": ["1"],
        },
    )
    left = text[text.index("What this leaves out:") :]
    assert row(left, "cancellations")[:2] == ["1", "jobs"]
    assert "GPUs" in left
    text = printed("compare", accounts, "--without", "all")
    assert "information used" not in text
    assert "Effect of each" not in text
    assert row(text, "cluster") == ["6", "processors"]
    assert "partitions" in text[text.index("What this leaves out:") :]


def test_a_number_of_processors_is_a_pool(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("simulate", accounts, "--processors", 6)
    assert row(text, "cluster") == ["6", "processors"]
    assert "leave --processors out to simulate the nodes" in text
    assert row(text, "information used") == ["cancellations", "dependencies"]


def test_without_nodes_memory_and_gpus_do_not_count_and_it_is_said(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = export(tmp_path, line(1, AllocTRES="mem=4G,gres/gpu=1"))
    text = printed("compare", path)
    assert "memory and GPUs: the log does not say what nodes there are; give them with --nodes" in text
    assert "information used" not in text
    text = printed("compare", path, "--without", "memory,gpus")
    assert "give them with --nodes" not in text


def test_nodes_of_a_file(accounts: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        "nodes: [{name: c, cores: 4, memory: 8192, count: 2}, {name: g, cores: 4, gpus: 1}]\n"
        "partitions: [{name: batch, nodes: [c]}, {name: other}]\n"
        "limits: [{by: user, of: bob, jobs: 1}]\n"
    )
    text = printed("compare", accounts, "--nodes", nodes)
    assert row(text, "cluster")[:2] == ["12", "processors"]
    assert "3 nodes: 2 of 4 cores, 8,192 MiB; 1 of 4 cores, 1 GPUs" in text
    assert " ".join(row(text, "partitions")).startswith("2 jobs of partitions that the file does not have")
    assert "limits" in row(text, "information used")
    # bob's jobs with GPUs may not use nodes that have any
    assert row(text, "rejected: no nodes that it may use can hold it") == ["easy", "2"]
    assert "fewer than" not in text


def test_nodes_of_the_command_line(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("simulate", accounts, "--node-type", "2,4,8192", "--node-type", "1,4,,2")
    assert "3 nodes: 2 of 4 cores, 8,192 MiB; 1 of 4 cores, 2 GPUs" in text
    assert row(text, "information used")[:3] == ["nodes", "memory", "gpus"]


def test_events_of_nodes_by_their_names(accounts: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    events = tmp_path / "events.csv"
    events.write_text("time,node,kind\n100,c1,down\n200,c1,up\n")
    text = printed("compare", accounts, "--events", events)
    assert row(text, "killed by failing nodes") == ["easy", "1"]
    assert "nodes" not in changed(text)


def test_what_each_changes_is_written(accounts: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    printed("compare", accounts, "--out", tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "counts.csv")
    assert table["left_out"].tolist()[:2] == ["nothing", "nodes"]
    text = printed("compare", accounts, "--out", tmp_path / "out", "--no-changes")
    assert not (tmp_path / "out" / "counts.csv").exists()
    assert "Effect of each" not in text
    assert "information used" in text


@pytest.mark.parametrize(
    ("command", "file", "content", "reason"),
    [
        (
            "compare {accounts} --nodes {file}",
            "nodes.yaml",
            "nodes: [{cores: 4, memory: -1}]",
            "nodes.yaml: nodes[item 1]: node type node: memory is -1",
        ),
        (
            "simulate {accounts} --nodes {file}",
            "nodes.yaml",
            "nodes: [{cores: 4}]\npartitions: [{name: gpu, nodes: [g1]}]",
            "nodes.yaml: partitions[gpu].nodes: found 'g1'; known are",
        ),
        ("simulate {accounts} --nodes 300,16", "", "", "--nodes 300,16: no such file; give a file of nodes"),
        ("simulate {accounts} --nodes {file} --processors 4", "nodes.yaml", "", "give one of the two"),
        ("simulate {accounts} --nodes {file} --node-type 1,4", "nodes.yaml", "", "give one of the two"),
        (
            "simulate {accounts} --events {file}",
            "events.csv",
            "time,node,kind\n5,c1,down\n100,c2,down\n",
            "events.csv:3: node is 'c2': no node",
        ),
        (
            "simulate {accounts} --events {file}",
            "events.csv",
            "time,node,kind,start,end\n500,*,maintenance,100,200\n",
            "events.csv:2: event of * at 500 s: maintenance from 100 to 200",
        ),
        ("compare {accounts} --passes event", "", "", "leave these out with --without nodes,memory"),
    ],
)
def test_mistakes(
    command: str,
    file: str,
    content: str,
    reason: str,
    accounts: Path,
    tmp_path: Path,
    mistake: Callable[..., str],
) -> None:
    path = tmp_path / (file or "unused")
    path.write_text(content)
    assert reason in mistake(*command.format(accounts=accounts, file=path).split())


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ([("mem=4G", "afterok:2"), ("mem=4G", "afterok:1")], r"export\.txt:[23]: a circle of dependencies"),
        ([("mem=-4G", "")], r"export\.txt:2: AllocTRES is 'mem=-4G'"),
    ],
)
def test_mistakes_of_exports(
    jobs: list[tuple[str, str]], reason: str, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    rows = [job(k, (0, 0, 600), 4, tres, "c1", depends) for k, (tres, depends) in enumerate(jobs, 1)]
    assert re.search(reason, mistake("info", export(tmp_path, *rows, header=TABLE)))


@pytest.mark.parametrize(
    "options", ["--without mem", "--node-type 4", "--node-type 4,x", "--seed -1", "--format tsv"]
)
def test_wrong_options_end_with_one_line(
    options: str, accounts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["compare", str(accounts), *options.split()])
    error = capsys.readouterr().err
    assert error.startswith("gridsched: error: ")
    assert error.count("\n") == 1


# --- formats --------------------------------------------------------------------------------------


def test_tables_of_slurm_jobs(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "eagle.csv"
    path.write_text(
        "job_id,user,account,partition,qos,wallclock_req,processors_req,gpus_req,mem_req,submit_time,"
        "start_time,end_time,state\n"
        "1,ada,x,gpu,q,600,4,2,4096,2024-05-01 10:00:00,2024-05-01 10:00:00,2024-05-01 10:10:00,COMPLETED\n"
        "2,bob,x,gpu,q,600,4,0,4096,2024-05-01 10:00:00,2024-05-01 10:10:00,2024-05-01 10:15:00,TIMEOUT\n"
        "3,bob,x,gpu,q,600,4,0,4096,2024-05-01 10:00:00,,2024-05-01 10:05:00,CANCELLED\n"
    )
    text = printed("info", path, "--timezone", "Europe/Rome")
    assert_rows(
        text,
        {
            "TIMEOUT": ["1", "0", "33.3"],
            "CANCELLED": ["0", "1", "0.0"],
            "most GPUs in use": ["2"],
            "most memory in use": ["4.0", "GiB"],
        },
    )
    text = printed("compare", path, "--timezone", "Europe/Rome", "--node-type", "1,4,8192,2")
    assert row(text, "information used") == ["nodes", "memory", "gpus", "cancellations"]
    assert row(text, "users gave up waiting")[-1] == "1"


def test_gpu_jobs_are_a_pool_or_run_on_nodes(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:00:00,100.0,4,400,a\n2017-10-09 07:00:10,50,2,100,b\n"
    )
    text = printed("info", path)
    assert_rows(text, {"jobs with GPUs": ["2", ...], "a": ["1", "80.0"]})
    text = printed("simulate", path, "--processors", 4)
    assert "are GPUs, one pool of them" in text
    assert row(text, "easy")[0] == "45"
    text = printed("simulate", path, "--node-type", "2,4,,4")
    assert row(text, "easy")[0] == "0"


def test_pods_run_on_their_nodes(tmp_path: Path, printed: Callable[..., str]) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
        "a,4000,1024,1,500,,0,100\nb,4000,1024,1,600,T4,0,100\nc,4000,1024,1,1000,A10,0,100\n"
    )
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,1,T4\nn1,4000,8192,1,A10\n")
    assert row(printed("info", pods), "GPU-hours") == ["0.1"]
    text = printed("simulate", pods, "--nodes", nodes)
    assert_rows(
        text, {"information used": ["nodes", "memory", "gpus", "partitions"], "cluster": ["12000", ...]}
    )
    # two of them do not share the GPU of n0
    assert row(text, "easy")[0] == "33"


def test_a_format_that_is_told(
    accounts: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    assert row(printed("info", accounts, "--format", "sacct"), "jobs") == ["5"]
    assert "give a log in the Standard Workload Format" in mistake("info", accounts, "--format", "swf")
    assert "--extra-fields is for logs in the Standard" in mistake(
        "info", accounts, "--extra-fields", "ignore"
    )


def test_parquet_says_what_it_needs(
    tmp_path: Path, mistake: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1")
    assert "pip install pyarrow" in mistake("info", path)


# --- outages and patience -------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """SWF log of a cluster of 4 processors that was out from 10000 to 20000 s, with a wait and a status."""
    submit = 500 * np.arange(40)
    jobs = gs.Workload(
        name="stopped",
        submit_time=submit,
        wait_time=np.where(submit > 9000, np.maximum(20_000 - submit, 0), 0),
        run_time=np.full(40, 400),
        requested_processors=np.full(40, 4),
        requested_time=np.full(40, 800),
        status=np.ones(40, np.int64),
        processors_available=4,
    )
    gs.write_swf(jobs, tmp_path / "stopped.swf")
    return tmp_path / "stopped.swf"


def test_outages_are_listed_and_written(stopped: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    assert "most they could use" not in printed("info", stopped)
    target = tmp_path / "outages.csv"
    text = printed("info", stopped, "--outages", "--write-events", target)
    assert "1 outages of 4 processors" in text
    (event,) = read_events(target)
    assert (event.kind, event.node, event.start, event.end) == ("maintenance", "*", 9500, 20_000)
    assert float(row(printed("simulate", stopped, "--events", target), "easy")[0]) > 1000
    printed("info", stopped, "--write-events", target, "--events-are", "down")
    assert [each.kind for each in read_events(target)] == ["down", "up"]
    assert "No outages" in printed("info", stopped, "--outages", "--shortest", 20_000)


def test_patience_is_drawn_from_the_log(
    tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    rng = np.random.default_rng(1)
    gave_up, path = rng.random(200) < 0.3, tmp_path / "log.swf"
    log = gs.Workload(
        name="log",
        submit_time=np.sort(rng.integers(0, 20_000, 200)),
        wait_time=rng.integers(1, 3000, 200),
        run_time=np.where(gave_up, 0, 300),
        requested_processors=np.full(200, 2),
        requested_time=np.full(200, 600),
        status=np.where(gave_up, 5, 1),
        processors_available=4,
    )
    gs.write_swf(log, path)
    text = printed("simulate", path, "--cancelled", "patience", "--seed", 3)
    assert int(row(text, "repaired: time at which the user gives up, drawn")[0]) > 50
    made = gs.workloads.with_patience(gs.clean(gs.read_swf(path), cancelled="wait"), seed=3)
    run = gs.simulate(made, 4, "easy")
    assert row(text, "users gave up waiting") == ["easy", str(run.attrs["jobs_gave_up"])]
    assert printed("simulate", path, "--cancelled", "patience", "--seed", 3) == text
    without = tmp_path / "plain.swf"
    without.write_text(swf([(0, 10, 1, 10)]))
    assert "no job waited until it was cancelled" in mistake("simulate", without, "--cancelled", "patience")
