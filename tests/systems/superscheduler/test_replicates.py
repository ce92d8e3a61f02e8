"""Replicates of grid studies on logs: what schedulers draw is drawn anew in each, and nothing is copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gridsched.systems.superscheduler.study.config import GridStudy

from tests.support.studies import changed, log_text, message_about, run_study

LOGS = [{"name": name, "file": f"{name}.swf", "processors": 8, "speed": 1} for name in ("A", "B", "C")]
STUDY: dict[str, Any] = {
    "name": "copies",
    "kind": "grid",
    "title": "Logs",
    "scenarios": [{"name": "logs", "clusters": LOGS}],
    "schedulers": ["local", {"name": "asks one", "scheduler": "jscheduler", "k": 1}],
    "replicates": 3,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the logs."""
    for number, log in enumerate(LOGS):
        (tmp_path / str(log["file"])).write_text(log_text(number, 60, 8), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_schedulers_draw_anew_in_each_replicate(folder: Path) -> None:
    study = run_study(GridStudy.model_validate(STUDY), folder / "results", 1)
    waits = study["wait_time_mean"].squeeze(drop=True).transpose("scheme", "replicate")
    assert len(np.unique(waits.sel(scheme="asks one"))) == 3
    assert len(np.unique(waits.sel(scheme="local"))) == 1, "a log is the same in every replicate"


def test_replicates_in_which_nothing_is_drawn_are_refused(folder: Path) -> None:
    written = changed(STUDY, "schedulers", ["local", "s-i", "central"])
    assert "replicates: found 3; nothing is drawn" in message_about(folder, written)
    GridStudy.model_validate({**written, "replicates": 1})


def test_scenarios_in_which_nothing_is_drawn_are_run_once() -> None:
    drawn = {"name": "drawn", "clusters": [{"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}}]}
    study = GridStudy.model_validate(
        {**STUDY, "schedulers": ["local", "s-i"], "scenarios": [*STUDY["scenarios"], drawn]}
    )
    assert [study.draws(scenario) for scenario in study.scenarios] == [1, 3]
