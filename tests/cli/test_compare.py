"""`gridsched compare`: tables, files and what a simulation leaves out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gridsched as gs
from gridsched import results
from gridsched.calibration.measures import explained
from gridsched.traces.sacct import read_accounting
from tests.support.errors import says
from tests.support.logs import JOBS, KTH, assert_rows, odd_log, row, swf
from tests.traces.test_sacct import export, line

FILES = [
    "compare.csv",
    "compare.nc",
    "compare.png",
    "compare.svg",
    "figure.csv",
    "groups.csv",
    "index.json",
    "users.csv",
]


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    """Export of a site with two partitions, on which a wide job holds up two users."""
    jobs = [
        line(1, User="ada", AllocCPUS=8, Timelimit="01:00:00"),
        line(
            2,
            User="bob",
            Submit="2024-05-01T10:00:30",
            Start="2024-05-01T10:20:00",
            End="2024-05-01T10:30:00",
        ),
        line(
            "3_1", JobIDRaw=3, User="eve\x1b[31m", Submit="2024-05-01T10:00:40", Start="2024-05-01T10:40:00"
        ),
        line("3_2", JobIDRaw=4, User="eve\x1b[31m", Partition="gpu", Start="2024-05-01T10:00:50"),
        line("3_2.0", JobIDRaw="4.0"),
    ]
    return export(tmp_path, *jobs)


def test_recorded_waits_beside_simulated_ones(archive_mirror: Path, printed: Callable[..., str]) -> None:
    path = archive_mirror / KTH
    text = printed("compare", path, "--policy", "easy,fcfs", "--month", "1996-10")
    workload = gs.clean(gs.select_window(gs.read_swf(path), month="1996-10"))
    assert float(row(text, "recorded")[0]) == pytest.approx(workload.wait_time.mean(), abs=0.5)
    assert row(text, "recorded")[-1] == "-"
    for policy in ("easy", "fcfs"):
        run = gs.simulate(workload, scheduler=policy)
        waits = (run["start_time"] - run["submit_time"]).values
        mean, median, most, *_, change = row(text, policy)
        assert float(mean) == pytest.approx(waits.mean(), abs=0.5)
        assert float(median) == pytest.approx(np.median(waits), abs=0.5)
        assert float(most) == pytest.approx(np.quantile(waits, 0.95), abs=0.5)
        assert float(change) == pytest.approx((waits - workload.wait_time).mean(), abs=0.5)
        assert "±" not in text
        beside = explained(waits, workload.wait_time)
        said = f"{policy}: mean {beside.ratio:.2f} times, rank correlation {beside.correlation:.2f}, near "
        assert f"{said}{beside.near:.0%}" in text
    says(text, "2,407 jobs measured", "near: within 5 min or a factor of 2", "--calibrate")


def test_an_export_of_sacct(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", accounts, "--timezone", "Europe/Rome", "--processors", 8)
    assert_rows(
        text,
        {
            "left out: step of a job": ["1"],
            "jobs": ["4"],
            "partitions": ["2", "of", "them;", ...],
            "arrays, parts": ["2", "jobs", "are", ...],
        },
    )
    assert "\x1b" not in text
    assert "eve\N{REPLACEMENT CHARACTER}[31m" in text
    assert "hold this error and have no interval" in text


def test_partitions_and_the_most_in_use(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", accounts, "--partition", "batch")
    assert_rows(text, {"left out: in another partition": ["1"], "cluster": ["8", "processors"]})
    assert "name the cluster's with --processors" in text
    assert row(text, "jobs") == ["3"]


def test_what_is_odd_in_a_log_is_said(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = odd_log(tmp_path / "odd.swf", requested_memory=[2_000_000_000] * 6, preceding_job=[3] * 6)
    text = printed("compare", path, "--no-changes")
    lines = text.splitlines()
    size = next(place for place, each in enumerate(lines) if each.startswith("cluster "))
    assert "fewer than the 6" in lines[size + 1]
    assert "more for 25.0% of the time" in lines[size + 1]
    assert lines[size + 2].startswith("left out ")
    assert_rows(
        text,
        {
            "cancelled in the queue": ["1", "of", "5", "jobs", "(20.0%)", "after", "500", "s", ...],
            "beyond their request": ["1", "of", "5", "jobs", "(20.0%):", "a", "simulation", "doubles", ...],
            "recorded": ["40", ...],
            "dependencies": ["5", "not", "taken:", ...],
        },
    )
    assert "fixed increments" in printed("simulate", path, "--overrun", "increments")
    assert "beyond" not in printed("simulate", path, "--kill")
    nodes = printed("simulate", path, "--node-type", "2,4,64000", "--preceding")
    assert row(nodes, "memory in bytes?")[0] == "up"
    assert "a placeholder  5" in nodes
    waiting = printed("simulate", path, "--cancelled", "wait")
    assert row(waiting, "left out: cancelled before it ran, requested time unlimited") == ["1"]


def test_a_machine_smaller_than_the_log_shows(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = export(tmp_path, line(1), line(2))
    assert "fewer than the 8 that the log shows in use at once" in printed("compare", path, "--processors", 4)
    assert "in use" not in printed("compare", path, "--processors", 8)


def test_options_of_exports_reach_the_reader(accounts: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", accounts, "--unit", "nodes", "--processors", 3, "--from", "eligible")
    assert row(text, "cluster") == ["3", "processors"]
    for command in ("info", "simulate"):
        said = printed(command, accounts, *(["--processors", 8] if command == "simulate" else []))
        assert row(said, "left out: step of a job") == ["1"]


def test_policies_named_one_by_one_are_those_named_together(
    accounts: Path, printed: Callable[..., str]
) -> None:
    one_by_one = printed("compare", accounts, "--policy", "fcfs", "--policy", "easy,sjf")
    assert one_by_one == printed("compare", accounts, "--policy", "fcfs,easy,sjf")


def test_logs_without_waits_are_compared_with_the_first_policy(
    log: Path, printed: Callable[..., str]
) -> None:
    text = printed("compare", log, "--policy", "fcfs,easy")
    assert "too few waits" in text
    assert row(text, "fcfs")[-1] == "-"
    assert row(text, "easy")[-1] != "-"


def test_the_folder_holds_everything_and_its_index(
    accounts: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    folder = tmp_path / "new" / "out"
    printed("compare", accounts, "--processors", 8, "--policy", "easy,sjbf", "--out", folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    index = json.loads((folder / "index.json").read_text())
    assert index["sha256 of the log"] == read_accounting(accounts).workload.checksum
    for file in index["files"]:
        assert hashlib.sha256((folder / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    compared = results.read(folder / "compare.nc")
    schemes = pd.read_csv(folder / "compare.csv")
    assert schemes["scheme"].tolist() == compared["scheme"].values.tolist() == ["recorded", "easy", "sjbf"]
    assert np.allclose(schemes["wait_time_mean"], compared["wait_time_mean"])
    users = pd.read_csv(folder / "users.csv")
    assert users["jobs"].sum() == 4
    assert np.allclose(users["change_hours easy"], compared["user_wait_time_change"][1])
    assert len(pd.read_csv(folder / "groups.csv")) == 1
    assert len(pd.read_csv(folder / "figure.csv"))

    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "index.json"}
    printed("compare", accounts, "--processors", 8, "--policy", "easy,sjbf", "--out", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "index.json"} == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["out"]


def test_a_disk_that_is_full_leaves_the_old_folder(
    log: Path, tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    resource = pytest.importorskip("resource")
    folder = tmp_path / "out"
    printed("compare", log, "--out", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        message = mistake("compare", log, "--out", folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "cannot be written" in message
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{log} --timezone Europe/Rome", "--timezone is for exports of sacct and"),
        ("{accounts} --timezone Nowhere/City", "Nowhere"),
        ("{accounts} --partition big", "no partition 'big' in this log; it has batch, gpu"),
        ("{log} --partition 9", "no job in partition 9"),
        ("{damaged}", "damaged.txt:3: Start is 'soon'"),
        ("{bare}", "use --processors"),
        ("{log} --out {mine}", "holds other files, such as thesis.tex"),
        ("{log} --out {log}", "is no folder"),
        ("{log} --out {log}/out", "cannot be written"),
        ("{log} --out {link}", "is a link"),
    ],
)
def test_mistakes(
    given: str, reason: str, accounts: Path, log: Path, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    bare, mine, link = (tmp_path / name for name in ("none.swf", "mine", "link"))
    bare.write_text(swf(JOBS, header=""))
    mine.mkdir()
    (mine / "thesis.tex").write_text("years")
    link.symlink_to(tmp_path / "elsewhere")
    damaged = export(tmp_path, line(1), line(2, Start="soon"), name="damaged.txt")
    places = {"log": log, "accounts": accounts, "damaged": damaged, "bare": bare, "mine": mine, "link": link}
    assert reason in mistake("compare", *given.format(**places).split())
    assert [(path.name, path.read_text()) for path in mine.iterdir()] == [("thesis.tex", "years")]
