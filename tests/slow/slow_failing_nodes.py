"""A study of each kind in which nodes fail: it runs to its end, and says what that made of the jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsched.experiments.config import study_from
from gridsched.experiments.machines import FATES
from gridsched.presentation.conditions import MAX_ROWS, failures_told, outcome_table
from tests.experiments.kinds import test_calendars as calendars
from tests.experiments.kinds import test_dynamic_grid as dynamic_grid
from tests.experiments.kinds import test_jscheduler as jscheduler
from tests.support.studies import changed, run_study
from tests.systems.multicluster import test_study as multicluster

FAILURES = {
    "mean_time_between": 40_000,
    "mean_repair": 3000,
    "checkpoint_interval": 600,
    "checkpoint_cost": 5,
}


def _local() -> dict[str, Any]:
    calm = {"name": "calm", "synthetic": {"machine": "M4", "jobs": 60}}
    return {
        "kind": "local-policies",
        "scenarios": [calm, {**calm, "name": "failing", "baseline": "calm", "failures": FAILURES}],
        "schedulers": ["easy"],
    }


def _grid() -> dict[str, Any]:
    clusters = [{"name": name, "synthetic": {"machine": name, "jobs": 40}} for name in ("M4", "M5")]
    return {
        "kind": "grid",
        "common": {"clusters": clusters},
        "scenarios": [{"name": "calm"}, {"name": "failing", "failures": FAILURES}],
        "schedulers": ["local", "s-i"],
        "replicates": 2,
    }


def _calendars() -> dict[str, Any]:
    study = changed(calendars.STUDY, "scenarios.0.failures", FAILURES)
    schedulers = [study["schedulers"][1], "easy"]
    return {
        **study,
        "scenarios": study["scenarios"][:1],
        "schedulers": schedulers,
        "reservations": {},
        "estimates": ["requested"],
    }


def _dynamic_grid() -> dict[str, Any]:
    study = changed(dynamic_grid.STUDY, "scenarios.0.failures", FAILURES)
    return {key: value for key, value in study.items() if key not in ("sweeps", "departure")}


def _multicluster() -> dict[str, Any]:
    clusters = [
        {"name": "C1", "processors": 8, "failures": {**FAILURES, "mean_time_between": 4000}},
        {"name": "C2", "processors": 5, "speed": 1.3},
    ]
    jobs = {"count": 60, "load": 0.8, "largest": 5, "unit": 10}
    return {
        "kind": "multicluster",
        "schedulers": [{"name": "muscle", "scheduler": "muscle", "titan": multicluster.QUICK}, "dll"],
        "scenarios": [{"name": "failing", "clusters": clusters, "jobs": jobs}],
    }


def _self_scheduling() -> dict[str, Any]:
    schedulers = ["plan three"]
    calm = {"name": "calm", "factor": "none", "schedulers": schedulers, "estimates": ["predicted"]}
    failing = {**calm, "name": "failing", "failures": FAILURES, "estimates": ["predicted", "retrained"]}
    return {**jscheduler.STUDY, "scenarios": [calm, failing]}


KINDS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Path], object] | None]] = {
    "local-policies": (_local, None),
    "grid": (_grid, None),
    "calendars": (_calendars, calendars.write_logs),
    "dynamic-grid": (_dynamic_grid, dynamic_grid.write_inputs),
    "multicluster": (_multicluster, None),
    "self-scheduling": (_self_scheduling, jscheduler.write_inputs),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_of_each_kind_runs_with_failures(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, inputs = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    if inputs is not None:
        inputs(tmp_path)
    study: Any = study_from({**written(), "name": "tiny", "title": "Tiny"})
    dataset = run_study(study, tmp_path, 1)
    killed = dataset["executions_killed"].values
    assert np.nansum(killed) > 0
    assert set(FATES) <= set(dataset)
    assert not np.nansum(dataset["jobs_lost"].values)
    (line,) = failures_told(study)
    assert "checkpoint" in line
    table = outcome_table(dataset)
    assert table is not None
    assert 0 < len(table.rows) <= MAX_ROWS
