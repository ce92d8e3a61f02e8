"""Formats of logs are told by their first line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gridsched.errors import TraceError
from gridsched.traces.formats import FORMATS, recognise
from tests.support.logs import JOBS, swf
from tests.traces.test_sacct import COLUMNS

FIRST = {
    "swf": swf(JOBS),
    "sacct": f"{COLUMNS}\n",
    "slurm-table": '\ufeff"Job_ID",submit_time,start_time,end_time,state,processors_req\n',
    "gpu-pods": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n",
    "gpu-jobs": "timestamp, duration, num_gpus\r\n",
    "batsim": ' {"nb_res": 4, "jobs": [], "profiles": {}}\n',
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("compressed", [False, True])
def test_each_format_by_its_first_line(name: str, compressed: bool, tmp_path: Path) -> None:
    content = FIRST[name].encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert recognise(path) == name


@pytest.mark.parametrize("content", [b"", b"\r\n\r\n", bytes(range(256)), b"a,b,c\n1,2,3\n"])
def test_anything_else_is_left_to_the_reader_of_swf(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    assert recognise(path) == "swf"


def test_parquet_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"table\.parquet: "):
        recognise(path)
