"""The logs of the archive read as its documentation counts them, and survive writing."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched.traces import clean, read_swf, write_swf
from gridsched.workloads.table import SWF_FIELDS
from tests.oracles.swf import naive_parse

COUNTS = {
    "KTH-SP2-1996-2.1-cln": (28476, 599850, 29363618, 214, 28476, 1),
    "CTC-SP2-1996-3.1-cln": (77222, 0, 29299062, 679, 77216, 0),
    "SDSC-SP2-1998-4.2-cln": (59715, 566129, 63582293, 437, 59649, 0),
    "LANL-CM5-1994-4.1-cln": (122060, 0, 62288828, 213, 110770, 3),
    "SDSC-BLUE-2000-4.2-cln": (243306, 430593, 84590739, 468, 243306, 0),
    "HPC2N-2002-2.2-cln": (202871, 342072, 109583573, 257, 202871, 0),
    "NASA-iPSC-1993-3.1-cln": (18239, 0, 7948936, 69, 0, 0),
    "SDSC-Par-1996-3.1-cln": (32135, 0, 32014059, 60, 0, 0),
    "LLNL-Atlas-2006-2.1-cln": (43778, 3273240, 19951051, 131, 35545, 4571),
    "LLNL-Thunder-2007-1.1-cln": (121039, -1, 12976987, 283, 38602, 2248),
    "DAS2-fs1-2003-1": (40315, 0, 31077267, 36, 39356, 959),
    "LPC-EGEE-2004-1.2-cln": (234889, 3585977, 24204918, 56, 220695, 0),
    "LCG-2005-1": (188041, 0, 950392, 216, 188041, 0),
    "OSC-Clust-2000-3.1-cln": (36097, 0, 58503302, 253, 0, 0),
    "SDSC-DS-2004-2.1-cln": (96069, 2137605, 33792175, 460, 96069, 0),
    "lublin_256-synthetic": (10000, None, None, None, 0, 0),
    "lublin_1024-synthetic": (20000, None, None, None, 0, 0),
}
"""Jobs, first and last submit time, values of the user field, jobs with requested time, jobs without size."""


@pytest.mark.parametrize("name", COUNTS)
def test_log_has_the_documented_counts_and_survives_writing(
    name: str, archive_mirror: Path, tmp_path: Path
) -> None:
    log = read_swf(archive_mirror / f"{name}.swf.gz")
    found = (
        len(log),
        log.submit_time.min(),
        log.submit_time.max(),
        np.unique(log.user).size,
        np.count_nonzero(log.requested_time > 0),
        np.count_nonzero(log.processors <= 0),
    )
    known = COUNTS[name]
    assert [each for each, told in zip(found, known, strict=True) if told is not None] == [
        told for told in known if told is not None
    ]
    assert log.name == name
    assert {c for c in SWF_FIELDS if getattr(log, c).dtype == np.float64} <= {"average_cpu_time"}

    write_swf(log, tmp_path / f"{name}.swf")
    back = read_swf(tmp_path / f"{name}.swf")
    assert back.equals(replace(log, checksum=back.checksum))

    cleaned = clean(log)
    assert len(cleaned) + sum(cleaned.left_out.values()) == len(log)
    assert (np.diff(cleaned.submit_time) >= 0).all()
    assert cleaned.repaired == {}


@pytest.mark.parametrize("name", ["lublin_256-synthetic", "NASA-iPSC-1993-3.1-cln", "OSC-Clust-2000-3.1-cln"])
def test_log_reads_as_the_naive_reader_reads_it(name: str, archive_mirror: Path) -> None:
    path = archive_mirror / f"{name}.swf.gz"
    log = read_swf(path)
    rows, comments, malformed = naive_parse(gzip.decompress(path.read_bytes()).decode())
    assert not malformed
    assert log.header == tuple(comments)
    for column, values in zip(log.columns.values(), zip(*rows, strict=True), strict=True):
        assert column.tolist() == list(values)
