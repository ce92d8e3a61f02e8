"""`gridsched costs`: what a workflow run took."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import assert_rows, row


def made(path: Path, task: str, costs: tuple[float, float, float], **changes: Any) -> None:
    """A sidecar as tasks leave it: seconds, seconds of processors, megabytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = dict(zip(("elapsed", "cpu_time", "memory"), costs, strict=True))
    about = {"study": path.parts[-3], "task": task, "time": "2026-11-22T09:00:00+00:00"}
    path.write_text(json.dumps({**about, **measured, "sha256": "0", **changes}), encoding="utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made(tmp_path / "one" / "runs" / "a.made.json", "KTH, easy", (60, 30, 1200.4))
    made(tmp_path / "one" / "runs" / "b.made.json", "KTH, fcfs", (120, 120, 300))
    # One task with two datasets, and two of one name, as under two readings of a paper
    made(tmp_path / "two" / "runs" / "c.schedules.made.json", "M1", (4, 4, 50))
    made(tmp_path / "two" / "runs" / "c.made.json", "M1", (5, 5, 50))
    made(tmp_path / "two" / "runs" / "d.made.json", "M2", (2, 2, 60), time="2026-11-21T09:00:00+00:00")
    made(tmp_path / "two" / "runs" / "e.made.json", "M2", (1, 1, 70))
    (tmp_path / "two" / "own.made.json").write_text('{"sha256": "0"}', encoding="utf-8")
    return tmp_path


def test_sums_and_maxima_by_study(results: Path, printed: Callable[..., str]) -> None:
    assert_rows(
        printed("costs", results),
        {
            "one": ["2", "180", "150", "120", "1200"],
            "two": ["3", "8", "8", "5", "70"],
            "all": ["5", "188", "158", "120", "1200"],
        },
    )


def test_runs_count_for_the_study_that_alone_has_them(results: Path, printed: Callable[..., str]) -> None:
    (results / "one" / "runs.csv").write_text("run,dataset\na,one/runs/a.nc\n", encoding="utf-8")
    (results / "two" / "runs.csv").write_text("\n", encoding="utf-8")
    (results / "many").mkdir()
    table = "run,dataset\na,one/runs/a.nc\nb,one/runs/b.nc\nc,two/runs/c.nc\n"
    (results / "many" / "runs.csv").write_text(table, encoding="utf-8")
    assert_rows(
        printed("costs", results),
        {
            "one": ["1", "60", "30", "60", "1200"],
            "two": ["2", "3", "3", "2", "70"],
            "many": ["2", "125", "125", "120", "300"],
            "all": ["5", "188", "158", "120", "1200"],
        },
    )


def test_damaged_table_of_runs(results: Path, mistake: Callable[..., str]) -> None:
    (results / "one" / "runs.csv").write_text("run\na\n", encoding="utf-8")
    assert "runs.csv: damaged" in mistake("costs", results)


def test_times_for_people(results: Path, printed: Callable[..., str]) -> None:
    text = printed("costs", results, "--human")
    assert row(text, "one") == ["2", "3", "min", "2.5", "min", "2", "min", "1200"]


def test_folder_without_results(tmp_path: Path, mistake: Callable[..., str]) -> None:
    assert "no costs of tasks" in mistake("costs", tmp_path)


@pytest.mark.parametrize("text", ["", "7", '{"elapsed": 1}', '{"elapsed": 1, "study": "two", "task": "M1"}'])
def test_damaged_sidecar(results: Path, mistake: Callable[..., str], text: str) -> None:
    (results / "two" / "runs" / "e.made.json").write_text(text, encoding="utf-8")
    assert "e.made.json: damaged" in mistake("costs", results)
