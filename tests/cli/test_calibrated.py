"""`gridsched compare --calibrate`: what it says first, what it refuses, what it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gridsched.calibration import fitting, trust
from gridsched.cli import main
from gridsched.traces import write_swf
from tests.calibration.logs import log
from tests.support.errors import says
from tests.support.logs import row


@pytest.fixture(autouse=True)
def little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit of few candidates, which is enough for a log that EASY made."""
    usual = trust.trusted_changes

    def quick(*arguments: Any, **options: Any) -> trust.Trusted:
        return usual(*arguments, **options, effort=fitting.Effort(2, 1, 1, 2, 1))

    monkeypatch.setattr(trust, "trusted_changes", quick)


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    write_swf(log(3000, seed=6, policy="conservative", processors=38), tmp_path / "busy.swf")
    return tmp_path / "busy.swf"


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) != 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    return lines[0]


def test_trust_is_said_first(busy: Path, printed: Callable[..., str], tmp_path: Path) -> None:
    text = printed("compare", busy, "--policy", "easy,fcfs", "--calibrate", "--out", tmp_path / "out")
    assert "waits of the second half of the log are explained by" in text
    assert text.index("null model") < text.index("recorded  ")
    changes = pd.read_csv(tmp_path / "out" / "calibration.csv").to_dict("list")
    assert changes["policy"] == ["easy", "fcfs"]
    assert changes["verdict"][1] == "more"
    assert 0 < changes["low"][1] < changes["high"][1]
    assert row(text, "fcfs")[-1] == "more"
    assert pd.read_csv(tmp_path / "out" / "calibration_users.csv")["number"].nunique() == 12


def test_where_waits_are_not_explained_nothing_is_told(
    busy: Path, printed: Callable[..., str], tmp_path: Path
) -> None:
    text = printed(
        "compare", busy, "--policy", "fcfs", "--processors", 60, "--calibrate", "--out", tmp_path / "out"
    )
    assert "waits of the second half of the log are not explained" in text
    assert " ".join(row(text, "fcfs")).endswith("cannot tell")
    assert "wait significantly" not in text
    told = pd.read_csv(tmp_path / "out" / "calibration_users.csv")
    assert set(told["verdict"]) == {"cannot tell"}
    assert told["low"].isna().all()
    assert told["change"].notna().all()


def test_a_site_of_nodes_is_calibrated_on_them(busy: Path, printed: Callable[..., str]) -> None:
    text = printed("compare", busy, "--node-type", "4,16", "--calibrate")
    assert "fitted on the first, with nodes:" in text
    assert row(text, "information used") == ["nodes"]
    assert row(text, "EASY") == row(printed("compare", busy, "--processors", 64, "--calibrate"), "EASY")


def test_jobs_that_the_nodes_cannot_hold_are_left_out(
    tmp_path: Path, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = log(3000, seed=6, policy="conservative", processors=38)
    memory = np.where(np.arange(len(jobs)) % 40 == 7, 20_000, 10)
    write_swf(replace(jobs, requested_memory=memory), tmp_path / "large.swf")
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes:\n- {name: n, count: 10, cores: 4, memory: 16}\n", encoding="utf-8")
    given = ("compare", tmp_path / "large.swf", "--nodes", nodes, "--calibrate")
    text = printed(*given)
    assert f"without {(memory > 10).sum()} jobs that the nodes cannot hold" in text
    assert row(text, "EASY")[0] != "-"
    monkeypatch.setattr("gridsched.forecasting.on_nodes.held_by", lambda workload, _: workload)
    text = printed(*given)
    assert row(text, "EASY")[0] == "-"
    assert "more than 1% of the jobs never start" in text


def test_options_that_do_not_go_together_are_one_line(busy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "fcfs, ff, easy" in refusal(capsys, "compare", busy, "--policy", "creasy", "--calibrate")
    assert "--kill" in refusal(capsys, "compare", busy, "--policy", "easy", "--kill", "--calibrate")


def test_what_cannot_be_calibrated_ends_with_the_figures(tmp_path: Path, printed: Callable[..., str]) -> None:
    write_swf(replace(log(600, seed=6), wait_time=np.zeros(600, np.int64)), tmp_path / "calm.swf")
    text = printed("compare", tmp_path / "calm.swf", "--policy", "easy,fcfs", "--calibrate")
    says(text, "Cannot be calibrated", "holds no queueing", "give a longer log, or leave out --calibrate.")
    plain = printed("compare", tmp_path / "calm.swf", "--policy", "easy,fcfs")
    assert row(text, "fcfs") == row(plain, "fcfs")
