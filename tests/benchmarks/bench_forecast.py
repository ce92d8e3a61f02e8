"""A query of when waiting jobs will start: CPU time for a recorded queue of a thousand jobs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gridsched as gs
from gridsched.forecasting import recorded_timeline
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table

LOG = "HPC2N-2002-2.2-cln.swf.gz"
FUTURES = 64
MAX_SECONDS = 0.05


def test_a_queue_of_a_thousand_jobs(archive_mirror: Path, table: Table) -> None:
    """From a snapshot with all that was before: 64 futures of every waiting job, in one thread."""
    path = archive_mirror / LOG
    if not path.exists():
        pytest.skip(f"no {LOG} in the mirror of the workload archive")
    timeline = recorded_timeline(gs.clean(gs.read_swf(path)))
    submit, start = timeline.jobs["submit"], timeline.jobs["start"]
    queue = np.arange(1, len(submit) + 1) - np.searchsorted(np.sort(start), submit, "right")
    long = np.flatnonzero((queue >= 990) & (queue <= 1010))
    worst = 0.0
    for job in long[np.linspace(0, len(long) - 1, 5).astype(np.int64)].tolist():
        snapshot = timeline.at(int(submit[job]))
        query = partial(gs.forecast, snapshot, policy="easy", futures=FUTURES)
        worst = max(worst, best_time(query))
    what = f"forecast, 1,000 waiting jobs of HPC2N, {FUTURES} futures, one thread"
    table.add(what, worst, "s", digits=3, at_most=MAX_SECONDS)
