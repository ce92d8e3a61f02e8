"""Reading tables of Slurm jobs: what is a job, what it asked for, and tables of any kind that are wrong."""

from __future__ import annotations

import gzip
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gridsched.errors import ConfigurationError, TraceError
from gridsched.traces import AccountingLog, read_slurm_table
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.tables import published, table
from tests.support.traces import write

JOB = {
    "job_id": 7,
    "user": "ada",
    "account": "maths",
    "partition": "gpu",
    "qos": "normal",
    "wallclock_req": "3600.0",
    "nodes_req": 2,
    "processors_req": 8,
    "gpus_req": 4,
    "mem_req": "16.0",
    "submit_time": "2019-01-01 08:55:00",
    "start_time": "2019-01-01 08:56:00",
    "end_time": "2019-01-01 09:06:00",
    "run_time": "600.0",
    "state": "COMPLETED",
}


def read(tmp_path: Path, *changes: dict[str, object], **options: Any) -> AccountingLog:
    return read_slurm_table(table(tmp_path, *({**JOB, **each} for each in changes)), **options)


def without(*columns: str) -> dict[str, object]:
    return {name: value for name, value in JOB.items() if name not in columns}


def test_a_job_in_the_columns_of_a_workload(tmp_path: Path) -> None:
    log = read(tmp_path, {}, time_zone="America/Denver")
    workload = log.workload
    assert (workload.name, workload.time_zone) == ("table", "America/Denver")
    assert workload.unix_start_time == 1546358100
    columns = {
        "job_number": 7,
        "submit_time": 0,
        "wait_time": 60,
        "run_time": 600,
        "requested_processors": 8,
        "allocated_processors": -1,
        "requested_time": 3600,
        "requested_memory": 2048,
        "requested_nodes": 2,
        "requested_gpus": 4,
        "status": 1,
    }
    assert {name: int(getattr(workload, name)[0]) for name in columns} == columns
    assert_fields(
        log,
        names={
            "user": ("ada",),
            "group": ("maths",),
            "partition": ("gpu",),
            "queue": ("normal",),
            "constraint": (),
        },
        gpus=[4],
    )


def test_jobs_that_never_started_are_counted(tmp_path: Path) -> None:
    never = {"start_time": "", "end_time": "", "run_time": ""}
    log = read(
        tmp_path,
        {},
        {"job_id": 8, "state": "CANCELLED by 12", **never},
        {"job_id": 9, "state": "PENDING", **never},
    )
    assert log.workload.left_out == {"waiting when the export was made": 1, "cancelled before it started": 1}
    assert log.idle_states == {"CANCELLED": 1, "PENDING": 1}


def test_rows_of_one_number_are_tasks_of_an_array(tmp_path: Path) -> None:
    log = read(tmp_path, {}, {}, {"job_id": 8})
    assert_fields(log.workload, job_number=[7, 9, 8], repaired={"job number of another job, made unique": 1})
    assert sorted(log.flags["array task"].tolist()) == [False, True, True]


@pytest.mark.parametrize("column", ["end_time", "run_time"])
def test_the_end_or_the_run_time_will_do(column: str, tmp_path: Path) -> None:
    assert read_slurm_table(table(tmp_path, without(column))).workload.run_time.tolist() == [600]


def test_what_a_table_does_not_have_is_unknown(tmp_path: Path) -> None:
    optional = ("user", "account", "partition", "qos", "wallclock_req", "nodes_req", "gpus_req", "mem_req")
    log = read_slurm_table(table(tmp_path, without(*optional)))
    assert not log.workload.extra
    assert log.workload.requested_memory.tolist() == log.workload.user.tolist() == [-1]
    assert log.gpus.tolist() == [-1]


def test_nodes_as_processors(tmp_path: Path) -> None:
    assert_fields(read(tmp_path, {}, unit="nodes").workload, processors=[2], requested_memory=[8192])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "cores"}, "unit is 'cores'; use one of cpus, nodes"),
        ({"time_zone": "Golden"}, "time zone 'Golden'"),
        ({"max_bytes": 10}, "GRIDSCHED_MAX_BYTES"),
    ],
)
def test_options_that_will_not_do(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with refused(message):
        read(tmp_path, {}, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"job_id": "seven"}, "table.csv:3: job_id is 'seven': no job ID"),
        ({"job_id": "7.batch"}, "leave out the steps"),
        ({"start_time": "tomorrow"}, "table.csv:3: start_time is 'tomorrow': no time like"),
        ({"processors_req": "1.5"}, "table.csv:3: processors_req is '1.5': no whole number"),
        ({"mem_req": "4G"}, "table.csv:3: mem_req is '4G': no number"),
        ({"mem_req": "1e300"}, "table.csv:3: mem_req is '1e300': no number"),
        ({"gpus_req": "nan"}, "table.csv:3: gpus_req is 'nan': no whole number"),
        *(
            ({column: None}, f"table.csv:1: no column {column} (")
            for column in ("job_id", "submit_time", "start_time", "state", "processors_req")
        ),
        ({"end_time": None, "run_time": None}, "no column end_time, nor run_time; add one"),
        ({"mem_req": "-5"}, "table.csv:3: mem_req is '-5': no memory from 0 on"),
    ],
)
def test_a_wrong_value_or_a_column_that_is_not_there(
    wrong: dict[str, object], message: str, tmp_path: Path
) -> None:
    """Without a column where the value is None."""
    kept = [name for name in JOB if wrong.get(name, "") is not None]
    rows = ({name: row[name] for name in kept} for row in (JOB, {**JOB, **wrong}))
    with refused(message, error=TraceError):
        read_slurm_table(table(tmp_path, *rows))


def test_no_job_that_ran(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no job that ran \(1 cancelled before it started\)"):
        read(tmp_path, {"state": "CANCELLED", "start_time": ""})


# --- tables of any kind ---------------------------------------------------------------------------


def test_compressed_quoted_and_with_columns_in_any_order_and_case(tmp_path: Path) -> None:
    row = dict(reversed(JOB.items()))
    header = "\ufeff" + ",".join(["Name", *(name.upper() for name in row)])
    path = tmp_path / "jobs.csv.gz"
    text = f'{header}\r\n"a, long\r\nname",{",".join(map(str, row.values()))}\r\n\r\n'
    path.write_bytes(gzip.compress(text.encode()))
    log = read_slurm_table(path)
    assert (log.workload.name, log.workload.job_number.tolist()) == ("jobs", [7])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r":1: no column job_id.*an empty file"),
        (",".join(JOB), "no rows, only names of columns"),
        (f"{','.join(JOB)}\n1,2", r":2: 2 fields, the header has 15; the file may have been cut off"),
        (f'{",".join(JOB)}\n"1', r":2: no CSV \(unexpected end of data\); fix this line"),
        ("PAR1\0\1\2", r":1: no column job_id"),
    ],
)
def test_no_table(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        read_slurm_table(write(tmp_path, text, "jobs.csv"))


def test_parquet_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused("jobs.parquet: Parquet is read with pyarrow", "pip install pyarrow", error=TraceError):
        read_slurm_table(write(tmp_path, b"PAR1", "jobs.parquet"))


@pytest.mark.skipif(not importlib.util.find_spec("pyarrow"), reason="pyarrow is not installed")
def test_parquet_reads_as_csv_does(tmp_path: Path) -> None:
    frame = pd.DataFrame([{**JOB, "mem_req": None}, {**JOB, "job_id": 8}])
    for column in ("submit_time", "start_time", "end_time"):
        frame[column] = pd.to_datetime(frame[column])
    for column in ("wallclock_req", "run_time", "mem_req"):
        frame[column] = frame[column].astype(float)
    frame.to_parquet(tmp_path / "table.parquet")
    found = read_slurm_table(tmp_path / "table.parquet").workload
    expected = read(tmp_path, {"mem_req": ""}, {"job_id": 8}).workload
    for name, values in {**expected.columns, **expected.extra}.items():
        assert np.array_equal(getattr(found, name), values), name


# --- the published table --------------------------------------------------------------------------


def test_the_published_sample() -> None:
    log = read_slurm_table(published("eagle-sample.csv.gz"), time_zone="America/Denver")
    workload = log.workload
    assert len(workload) == 1000
    assert not workload.left_out
    assert sum(log.state == log.states.index("TIMEOUT")) == 15
    assert {key: len(names) for key, names in log.names.items()} == {
        "user": 15,
        "group": 8,
        "partition": 5,
        "queue": 1,
        "constraint": 0,
    }
    assert np.count_nonzero(workload.requested_gpus > 0) == 4  # type: ignore[operator]
    assert (workload.requested_memory * workload.processors).max() == 20160000 * 1024


def test_cancelled_jobs_wait_until_their_end(tmp_path: Path) -> None:
    rows = (
        "1,2024-05-01 10:00:00,2024-05-01 10:00:00,2024-05-01 10:10:00,COMPLETED,4,1000\n"
        "2,2024-05-01 10:00:00,,2024-05-01 10:05:00,CANCELLED,4,1000\n"
    )
    header = "job_id,submit_time,start_time,end_time,state,processors_req,wallclock_req\n"
    path = write(tmp_path, header + rows, "jobs.csv")
    assert len(read_slurm_table(path).workload) == 1
    assert_fields(read_slurm_table(path, cancelled="wait").workload, gives_up_time=[-1, 300])
    with pytest.raises(ConfigurationError, match="cancelled is"):
        read_slurm_table(path, cancelled="no")  # type: ignore[arg-type]
