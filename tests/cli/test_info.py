"""`gridsched info`: what it says of a log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridsched as gs
from tests.support.logs import HEADER, JOBS, KTH, row, swf


def test_info_of_the_kth_log(archive_mirror: Path, printed: Callable[..., str]) -> None:
    text = printed("info", archive_mirror / KTH)
    assert row(text, "computer") == ["IBM", "SP2"]
    assert row(text, "acknowledgement") == ["Lars", "Malinowsky"]
    assert row(text, "processors")[0] == "100"
    assert row(text, "start") == ["1996-09-23", "14:00:31", "CEST"]
    assert row(text, "time zone") == ["Europe/Stockholm"]
    assert row(text, "jobs") == ["28476"]
    assert row(text, "span") == ["332.9", "days"]
    assert row(text, "users") == ["214"]
    assert row(text, "requested time")[:3] == ["28476", "of", "28476"]
    assert row(text, "1996-10") == ["2407"]
    assert row(text, "1996-11") == ["1984"]
    assert row(text, "cleaning, left out: no size") == ["1"]
    workload = gs.read_swf(archive_mirror / KTH)
    run_time = np.percentile(workload.run_time, [10, 25, 50, 75, 90, 99, 100])
    assert row(text, "run time [s]") == [f"{value:.0f}" for value in run_time]


def test_info_counts_what_is_known_and_what_cleaning_does(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([*JOBS, (5, 10, 2, 10), (-1, 5, 1, 5), (99, -1, 1, 5), (99, 5, 5, 5)]))
    text = printed("info", path)
    assert row(text, "requested time")[:3] == ["8", "of", "9"]
    assert row(text, "recorded wait")[:3] == ["0", "of", "9"]
    assert row(text, "cleaning, left out: no submit time") == ["1"]
    assert row(text, "cleaning, left out: no run time") == ["1"]
    assert row(text, "cleaning, left out: larger than the machine") == ["1"]
    assert row(text, "cleaning, repaired: out of order") == ["1"]
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
    text = printed("info", path)
    assert "after the start" in text
    assert "cleaning          fails:" in text


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
