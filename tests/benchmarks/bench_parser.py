"""Reading a log in the Standard Workload Format beside pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gridsched.traces import read_swf, write_swf
from gridsched.workloads.table import SWF_FIELDS, Workload
from tests.benchmarks import workload
from tests.benchmarks.measure import best_times
from tests.benchmarks.table import Table

LINES = 1_000_000


def read_with_pandas(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep=r"\s+", comment=";", header=None, names=list(SWF_FIELDS))


def test_parser(tmp_path: Path, table: Table) -> None:
    jobs = workload.synthetic(0.9, LINES).jobs
    path = tmp_path / "log.swf"
    write_swf(
        Workload(
            name="log",
            submit_time=jobs["submit"],
            wait_time=jobs["run"] // 3,
            run_time=jobs["run"],
            allocated_processors=jobs["processors"],
            requested_processors=jobs["processors"],
            requested_time=jobs["estimate"],
            status=np.ones(LINES),
            user=jobs["run"] % 997,
            processors_available=workload.PROCESSORS,
        ),
        path,
    )
    ours, theirs = best_times([lambda: read_swf(path), lambda: read_with_pandas(path)])
    table.add(
        f"read_swf, {LINES:,} lines, beside pandas.read_csv",
        theirs / ours,
        "times as fast",
        digits=2,
        at_least=3,
        note=f", {LINES / ours / 1e6:.2f} M lines/s",
        yardstick=f"{LINES / theirs / 1e6:.2f} M lines/s",
    )
