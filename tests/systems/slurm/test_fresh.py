"""What the log of a controller says of each job, as `make test-slurm` reads it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.slurm.recording import PlannedJob, compared, observed
from tests.systems.slurm.recordings import RECORDINGS

LOG = """\
[2026-01-05T08:00:00.100] debug:  sched: Running job scheduler for default depth.
[2026-01-05T08:00:01.200] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=99
[2026-01-05T08:00:02.300] debug2: node_did_resp n02
[2026-01-05T08:00:03.400] debug:  sched: Running job scheduler for default depth.
[2026-01-05T08:00:03.450] sched: Allocate JobId=1 NodeList=n[01-02] #CPUs=8 Partition=main
[2026-01-05T08:00:03.500] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=4294901758 usec=99
[2026-01-05T08:00:04.000] sched/backfill: _attempt_backfill: beginning
[2026-01-05T08:00:04.100] debug:  sched: Running job scheduler for full queue.
[2026-01-05T08:00:04.200] sched/backfill: _start_job: Started JobId=2 in main on n03
[2026-01-05T08:00:06.000] debug:  sched: Running job scheduler for default depth.
[2026-01-05T08:00:06.050] sched: Allocate JobId=3 NodeList=n04 #CPUs=4 Partition=main
[2026-01-05T08:00:06.100] _slurm_rpc_submit_batch_job: JobId=3 InitPrio=4294901757 usec=150000
[2026-01-05T08:00:09.000] _job_complete: JobId=1 done
[2026-01-05T08:00:09.100] debug2: node_did_resp n03
[2026-01-05T08:00:09.200] debug2: node_did_resp n01
[2026-01-05T08:00:09.300] debug2: node_did_resp n02
"""


def test_instants_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "slurmctld.log"
    path.write_text(LOG, encoding="utf-8")
    jobs = observed(path)
    origin = jobs[1].submit - 1200
    assert [(job.submit - origin, job.start - origin, job.by, job.where) for job in jobs.values()] == [
        (1200, 3400, 0, "n[01-02]"),
        (3500, 4000, 1, "n03"),
        (5999, 6000, 0, "n04"),
    ]
    assert (jobs[1].done - origin, jobs[2].done) == (9000, -1)


@pytest.fixture
def accelerated(tmp_path: Path) -> tuple[Path, list[PlannedJob]]:
    """The log of the accelerated run, and its plan."""
    source = RECORDINGS / "ft"
    if not source.exists():
        pytest.skip("no recording ft in ../shared/slurm")
    (tmp_path / "slurmctld.log").write_bytes(gzip.decompress((source / "slurmctld.log.gz").read_bytes()))
    (tmp_path / "slurm.conf").write_bytes((source / "slurm.conf").read_bytes())
    rows = [line.split() for line in (source / "plan.txt").read_text(encoding="utf-8").splitlines()]
    return tmp_path, [PlannedJob(int(row[0]), int(row[2]), int(row[3]), int(row[4])) for row in rows]


def test_a_recorded_schedule_is_told_from_another_one(
    accelerated: tuple[Path, list[PlannedJob]],
) -> None:
    folder, plan = accelerated
    assert compared(folder, plan) == []
    # a controller that plans two minutes ahead only would not have made this schedule
    conf = folder / "slurm.conf"
    conf.write_text(
        conf.read_text(encoding="utf-8").replace("bf_window=120", "bf_window=2"), encoding="utf-8"
    )
    assert compared(folder, plan)
