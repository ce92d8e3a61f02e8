"""Workloads of Batsim: what becomes of jobs and profiles, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gridsched.errors import TraceError
from gridsched.traces import clean, read_batsim

PROFILES = {
    "short": {"type": "delay", "delay": 20.2},
    "broken": {"type": "DelayProfile", "delay": 5, "ret": 1},
    "mpi": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
}
JOBS: list[dict[str, Any]] = [
    {"id": "late", "subtime": 10.5, "res": 2, "profile": "short", "walltime": 12.0, "comment": "x"},
    {"id": 7, "subtime": 3, "res": 1, "profile": "broken"},
    {"id": "same", "subtime": 3, "res": 4, "profile": "short", "walltime": -1},
]


def written(folder: Path, *, compressed: bool = False, **parts: Any) -> Path:
    path = folder / "w.json"
    content = json.dumps({"nb_res": 4, "jobs": JOBS, "profiles": PROFILES, **parts}).encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_jobs_in_order_of_submission(tmp_path: Path, compressed: bool) -> None:
    log = read_batsim(written(tmp_path, compressed=compressed))
    jobs = clean(log.workload)
    assert [log.names["job"][number - 1] for number in jobs.job_number] == ["7", "same", "late"]
    assert [log.names["executable"][k] for k in jobs.executable] == ["broken", "short", "short"]
    assert jobs.submit_time.tolist() == [3, 3, 11]
    assert jobs.run_time.tolist() == [5, 21, 21]
    assert jobs.requested_time.tolist() == [-1, -1, 12]
    assert jobs.processors.tolist() == [1, 4, 2]
    assert jobs.status.tolist() == [0, 1, 1]
    assert (jobs.processors_available, jobs.name) == (4, "w")
    assert jobs.repaired["times rounded up to whole seconds"] == 2


def test_users_groups_and_queues(tmp_path: Path) -> None:
    """Numbers stay what they are; texts are numbered; both may be in `extra_data`, an object or its text."""
    more: list[dict[str, Any]] = [
        {"user": 5, "group": "physics", "queue": 1},
        {"user": None, "group": 7, "extra_data": '{"user": 2, "queue": [1]}'},
        {"group": "physics", "extra_data": {"user": 3, "group": "other", "partition": 4}},
    ]
    jobs = [{**job, **each} for job, each in zip(JOBS, more, strict=True)]
    log = read_batsim(written(tmp_path, jobs=jobs))
    assert log.workload.user.tolist() == [-1, 3, 5]
    assert [log.names["group"][k] for k in log.workload.group] == ["7", "physics", "physics"]
    assert log.workload.queue.tolist() == [-1, -1, 1]
    assert log.workload.partition.tolist() == [-1, 4, -1]
    assert "user" not in log.names
    wrong = "users, groups, queues and partitions that are neither numbers nor texts"
    assert log.workload.repaired[wrong] == 1


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({"jobs": []}, r"\$\.jobs"),
        ({"jobs": [JOBS[0], JOBS[1], JOBS[0]]}, r"\$\.jobs\[2\] has the id .* of \$\.jobs\[0\]"),
        ({"jobs": [{**JOBS[0], "res": "2"}]}, r"\$\.jobs\[0\]\.res"),
        ({"jobs": [JOBS[1], {**JOBS[0], "profile": "none"}]}, r"\$\.jobs\[1\] \(id 'late'\)"),
        ({"jobs": [{**JOBS[0], "profile": "mpi"}]}, "'parallel_homogeneous'"),
        ({"profiles": {**PROFILES, "short": {"type": "delay"}}}, "delay"),
        ({"profiles": {**PROFILES, "short": {"type": "delay", "delay": -1}}}, "delay"),
        ({"profiles": {**PROFILES, "short": {"type": "delay", "delay": 1e300}}}, "run_time"),
        ({"profiles": []}, r"\$\.profiles"),
        ({"jobs": [{"job_id": 1, "time": {}}]}, "sacct --parsable2"),
    ],
)
def test_what_is_refused_names_the_field(tmp_path: Path, parts: dict[str, Any], wrong: str) -> None:
    with pytest.raises(TraceError, match=wrong):
        read_batsim(written(tmp_path, **parts))


def test_no_json(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_bytes(b'{"jobs": [')
    with pytest.raises(TraceError, match="truncated"):
        read_batsim(path)
