"""`gridsched serve`: a log under a scheduler in another process, and the files that come of it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from gridsched import results
from gridsched.verification import verify
from tests.conftest import REPOSITORY

OWN = f"{shlex.quote(sys.executable)} -m tests.support.peers {{socket}}"


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


@pytest.mark.parametrize("version", ["4", "5"])
def test_a_log(version: str, log: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    files = [tmp_path / name for name in ("run.nc", "jobs.csv", "schedule.csv")]
    text = printed(
        *("serve", log, "--batsim", version, "--command", f"{OWN} {version} fcfs", "-o", files[0]),
        *("--jobs-csv", files[1], "--schedule-csv", files[2]),
    )
    assert "jobs COMPLETED_WALLTIME_REACHED" in text
    run = results.read(files[0])
    verify(run)
    table = pd.read_csv(files[1])
    assert table["starting_time"].tolist() == run["start_time"].values.tolist()
    assert table["allocated_resources"].astype(str).tolist() == run["hosts"].values.tolist()
    assert pd.read_csv(files[2])["nb_jobs"].tolist() == [len(table)]


def test_a_workload_of_batsim(tmp_path: Path, printed: Callable[..., str]) -> None:
    jobs = [
        {"id": "b", "subtime": 4, "res": 2, "profile": "short", "walltime": 30},
        {"id": "a", "subtime": 1.5, "res": 1, "profile": "long", "walltime": 60},
    ]
    profiles = {"short": {"type": "delay", "delay": 10}, "long": {"type": "delay", "delay": 50.5}}
    path, table = tmp_path / "w.json", tmp_path / "jobs.csv"
    path.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    printed("serve", path, "--command", f"{OWN} 4 fcfs", "--jobs-csv", table)
    found = pd.read_csv(table)
    columns = ["job_id", "profile", "submission_time", "starting_time", "execution_time"]
    assert found[columns].values.tolist() == [["a", "long", 2, 2, 51], ["b", "short", 4, 53, 10]]


def test_nothing_is_written_where_the_peer_fails(
    log: Path, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    files = [tmp_path / "run.nc", tmp_path / "jobs.csv"]
    line = mistake("serve", log, "--command", f"{OWN} 4", "-o", files[0], "--jobs-csv", files[1])
    assert "at 0 s: no answer" in line
    assert not any(file.exists() for file in files)
    assert "edc_library: its protocol is batsim-5" in mistake(
        "serve", log, "--batsim", "4", "--edc-library", "libmissing.so", "--abi", "rc"
    )
    assert "use two names" in mistake(
        "serve", log, "--socket", "tcp://*:1", "--jobs-csv", files[1], "--schedule-csv", files[1]
    )


@pytest.mark.parametrize(
    ("target", "reason"),
    [("abacus.swf", "is the log itself"), ("jobs.csv", "use two names"), ("link.csv", "use two names")],
)
def test_what_the_scheduler_prints_replaces_no_other_file(
    target: str, reason: str, log: Path, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    before = log.read_bytes()
    (tmp_path / "link.csv").symlink_to(tmp_path / "jobs.csv")
    assert reason in mistake(
        *("serve", log, "--command", f"{OWN} 4 fcfs", "--jobs-csv", tmp_path / "jobs.csv"),
        *("--log", tmp_path / target),
    )
    assert log.read_bytes() == before
