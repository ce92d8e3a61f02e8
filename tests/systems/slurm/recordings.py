"""Recorded schedules of a real controller, where there are any, and small ones that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from gridsched.systems.slurm.replay import Replay
from tests.conftest import REPOSITORY

RECORDINGS = REPOSITORY.parent / "shared" / "slurm"

CONFIGURATION = """\
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_resolution=1,bf_window=60
SelectType=select/linear
PriorityType=priority/basic
NodeName=n[1-3] CPUs=1
PartitionName=main Nodes=n[1-3] Default=YES OverSubscribe=EXCLUSIVE
"""


def recorded(name: str) -> Replay:
    """A recorded schedule by name; skips the test where it is not at hand."""
    folder = RECORDINGS / name
    if not folder.exists():
        pytest.skip(f"no recording {name} in ../shared/slurm")
    return Replay.of(folder)


class Row(NamedTuple):
    """A job of a recording that is made up; seconds, the limit in minutes; a start of -1 for none."""

    submit: float
    nodes: int
    limit: int
    start: float
    end: float
    where: str
    by: str = "main"
    extra: str = ""
    state: str = "COMPLETED"


def made_up(folder: Path, jobs: Sequence[Row], passes: Sequence[tuple[float, str]], *lines: str) -> Path:
    """A folder with a recording: jobs 1, 2, ... named j1, j2, ..., and further lines of the log."""
    names = "jobid,jobidraw,name,state,nnodes,nodelist,time_limit_min,submit_ms,start_ms,done_ms,by"
    rows = [names]
    asked = ["jobid,extra"]
    for number, job in enumerate(jobs, 1):
        start, end = (f"{job.start:.3f}", f"{job.end:.3f}") if job.start >= 0 else ("", "")
        rows.append(
            f'{number},{number},j{number},{job.state},{job.nodes},"{job.where}",{job.limit},{job.submit:.3f},'
            f"{start},{end},{job.by}"
        )
        asked.append(f"{number},{job.extra}")
    words = {
        "main": "debug:  sched: Running job scheduler for default depth.",
        "backfill": "sched/backfill: _attempt_backfill: beginning",
    }
    log = [(at, words[kind]) for at, kind in passes]
    text = [f"[{stamp(at)}] {what}" for at, what in log]
    folder.mkdir(exist_ok=True)
    (folder / "outcome.csv").write_text("\n".join(rows) + "\n")
    (folder / "submissions.csv").write_text("\n".join(asked) + "\n")
    (folder / "slurm.conf").write_text(CONFIGURATION)
    (folder / "slurmctld.log").write_text("\n".join(sorted([*text, *lines])) + "\n")
    return folder


def stamp(seconds: float) -> str:
    """Time stamp of a log, within the first minute of Unix time."""
    return f"1970-01-01T00:00:{seconds:06.3f}"
