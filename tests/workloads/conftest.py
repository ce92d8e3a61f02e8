"""Logs that several tests of this folder need."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gridsched.traces import by_interval, read_swf
from gridsched.workloads import Workload


@pytest.fixture(scope="module")
def blue_log(archive_mirror: Path) -> Workload:
    """Batch jobs of SDSC Blue Horizon from March to August 2002, local time."""
    log = read_swf(archive_mirror / "SDSC-BLUE-2000-4.2-cln.swf.gz")
    assert log.unix_start_time is not None
    zone = ZoneInfo(str(log.time_zone))
    start, end = (int(datetime(2002, m, 1, tzinfo=zone).timestamp()) - log.unix_start_time for m in (3, 9))
    window = by_interval(log, start, end)
    return window.select(window.queue != 0)
