"""`gridsched info`: what it says of a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridsched as gs
from tests.support.errors import says
from tests.support.logs import HEADER, JOBS, KTH, assert_rows, odd_log, row, swf


def test_info_of_the_kth_log(archive_mirror: Path, printed: Callable[..., str]) -> None:
    text = printed("info", archive_mirror / KTH)
    assert_rows(
        text,
        {
            "computer": ["IBM", "SP2"],
            "acknowledgement": ["Lars", "Malinowsky"],
            "processors": ["100", ...],
            "start": ["1996-09-23", "14:00:31", "CEST"],
            "time zone": ["Europe/Stockholm"],
            "jobs": ["28476"],
            "span": ["332.9", "days"],
            "users": ["214"],
            "requested time": ["28476", "of", "28476", ...],
            "1996-10": ["2407"],
            "1996-11": ["1984"],
            "cleaning, left out: no size": ["1"],
        },
    )
    workload = gs.read_swf(archive_mirror / KTH)
    run_time = np.percentile(workload.run_time, [10, 25, 50, 75, 90, 99, 100])
    assert row(text, "run time [s]") == [f"{value:.0f}" for value in run_time]


def test_info_counts_what_is_known_and_what_cleaning_does(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([*JOBS, (5, 10, 2, 10), (-1, 5, 1, 5), (99, -1, 1, 5), (99, 5, 5, 5)]))
    text = printed("info", path)
    assert_rows(
        text,
        {
            "requested time": ["8", "of", "9", ...],
            "recorded wait": ["0", "of", "9", ...],
            "cleaning, left out: no submit time": ["1"],
            "cleaning, left out: no run time": ["1"],
            "cleaning, left out: larger than the machine": ["1"],
            "cleaning, repaired: out of order": ["1"],
        },
    )
    assert row(text, "recorded wait [s]") == ["-"] * 7


def test_info_of_a_log_that_says_nothing_of_itself(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=""))
    text = printed("info", path)
    assert row(text, "computer") == row(text, "start") == row(text, "time zone") == ["not", "given"]
    assert row(text, "offered load") == ["-"]
    assert "months  not known:" in text


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "Europe"])
def test_info_of_a_log_with_a_time_zone_that_does_not_exist(
    zone: str, tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=HEADER.replace("Europe/Rome", zone)))
    text = printed("info", path)
    assert row(text, "start") == ["1970-01-01", "00:00:00", "UTC"]
    assert "months  not known:" in text


def test_info_of_a_log_with_absurd_times(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([(2**60, 10, 1, 10)]))
    says(printed("info", path), "after the start", "cleaning          fails:")


def test_piped_lines_keep_their_width_and_cannot_command_the_terminal(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    computer = "x" * 300 + "\x1b[31m" + " [bold]markup[/bold] :smile: é"
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=f"; Computer: {computer}\n"))
    text = printed("info", path)
    assert "\x1b" not in text
    assert computer.replace("\x1b", "\N{REPLACEMENT CHARACTER}") in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_info_of_a_log_whose_jobs_ended_in_all_ways(tmp_path: Path, printed: Callable[..., str]) -> None:
    """Of 400 + 120 + 200 + 40 processor-seconds."""
    path = odd_log(tmp_path / "odd.swf", requested_memory=[2_000_000_000] * 6)
    text = printed("info", path)
    assert_rows(
        text,
        {
            "completed": ["1", "16.7", "52.6"],
            "failed": ["1", "16.7", "26.3"],
            "failed or cancelled at its time limit": ["1", "16.7", "15.8"],
            "cancelled before it started": ["2", "33.3", "0.0"],
            "unknown": ["1", "16.7", "5.3"],
            "recorded wait": ["4", "of", "6", ...],
            "recorded wait [s]": ["0", "0", "40", "80", "80", "80", "80"],
            "cancelled in the queue": ["2", "of", "6", "jobs", "(33.3%)", "after", "350", "s", ...],
            "no time limit": ["2", "of", "6", ...],
            "beyond their request": ["1", "of", "6", ...],
            "most in use": ["6", "processors", "more", "than", "4", "for", "25.0%", ...],
            "memory in bytes?": ["up", "to", "1907", "GiB", ...],
        },
    )
    assert "more than 5 for 25.0%" in printed("info", path, "--processors", 5)
    sound = odd_log(tmp_path / "sound.swf", requested_memory=[2_000_000] * 6, status=[-1] * 6)
    assert not {"memory in bytes?", "How jobs ended"} & set(printed("info", sound).split("\n"))
    assert "bytes?" not in printed("info", sound)


def accounting(tmp_path: Path) -> Path:
    """An export with jobs of every kind of end, two partitions and GPUs."""
    lines = [
        # state, partition, start and end (minutes), processors, generic resources
        ("COMPLETED", "batch", 0, 10, 4, ""),
        ("COMPLETED", "gpu", 0, 20, 2, "gres/gpu:a100=2,gres/gpu=2"),
        ("FAILED", "gpu", 5, 15, 2, "gres/gpu:a100=1"),
        ("CANCELLED by 1000", "batch", 5, 10, 8, ""),
        ("CANCELLED by 1000", "batch", None, None, 0, ""),
        ("TIMEOUT", "batch", 20, 40, 1, "gres/gpumem=40G"),
        ("PENDING", "batch", None, None, 0, ""),
    ]
    text = "JobID|Partition|Submit|Start|End|State|AllocCPUS|ReqCPUS|AllocTRES\n"
    for job, (state, partition, start, end, processors, resources) in enumerate(lines, start=1):
        times = ["Unknown" if each is None else str(1_700_000_000 + 60 * each) for each in (start, end)]
        fields = [job, partition, 1_700_000_000, *times, state, processors, 1, resources]
        text += "|".join(map(str, fields)) + "\n"
    path = tmp_path / "export.txt"
    path.write_text(text)
    return path


def test_info_of_an_export_says_how_jobs_ended(tmp_path: Path, printed: Callable[..., str]) -> None:
    text = printed("info", accounting(tmp_path))
    # 40 + 40 + 20 + 40 + 20 processor-minutes
    assert_rows(
        text,
        {
            "COMPLETED": ["2", "0", "50.0"],
            "FAILED": ["1", "0", "12.5"],
            "CANCELLED": ["1", "1", "25.0"],
            "TIMEOUT": ["1", "0", "12.5"],
            "PENDING": ["0", "1", "0.0"],
            "all": ["5", "2", "100.0"],
        },
    )


def test_info_of_an_export_says_what_was_used(tmp_path: Path, printed: Callable[..., str]) -> None:
    text = printed("info", accounting(tmp_path))
    assert_rows(
        text,
        {
            "batch": ["3", "62.5"],
            "gpu": ["2", "37.5"],
            "most in use": ["16", "processors"],
            "jobs with GPUs": ["2", "of", "5", ...],
        },
    )
    # 2 GPUs for 20 minutes, 1 for 10
    assert_rows(text, {"GPU-hours": ["0.8"], "most GPUs in use": ["3"]})


def test_info_of_an_export_without_resources_or_partitions(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "export.txt"
    path.write_text("JobID|Submit|Start|End|State|AllocCPUS\n7|100000|100060|100120||4\n")
    text = printed("info", path)
    assert row(text, "(none)") == ["1", "0", "100.0"]
    assert "GPU" not in text
    assert "partition" not in text


@pytest.mark.parametrize("named", [True, False])
def test_partitions_of_a_workload_of_batsim(named: bool, tmp_path: Path, printed: Callable[..., str]) -> None:
    """They are names or numbers, and some jobs may have none."""
    profiles = {"short": {"type": "delay", "delay": 60}}
    jobs = [
        {"id": job, "subtime": job, "res": 1, "profile": "short", "partition": partition}
        for job, partition in ((1, "gpu" if named else 1), (2, None), (3, "gpu" if named else 1))
    ]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    text = printed("info", path)
    if named:
        assert_rows(text, {"gpu": ["2", "66.7"], "(none)": ["1", "33.3"]})
    wanted = "gpu" if named else "1"
    told = printed("simulate", path, "--policy", "fcfs", "--partition", wanted)
    assert row(told, "left out: in another partition") == ["1"]


def test_times_for_people(log: Path, printed: Callable[..., str]) -> None:
    assert row(printed("info", log), "run time [s]")[-1] == "500"
    text = printed("info", log, "--human")
    assert row(text, "run time")[-2:] == ["8.33", "min"]
    assert "[s]" not in text
