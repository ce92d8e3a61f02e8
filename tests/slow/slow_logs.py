"""Whole logs of the archive through studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.traces.archive import find_log
from tests.support.studies import run_study
from tests.systems.jscheduler.test_study import SEED, runs_of, study_of


def test_every_job_of_a_self_scheduled_log_is_accounted_for(
    archive_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = study_of(
        platform=None,
        logs=["NASA", "KTH-SP2"],
        **runs_of(["requested"], [1, 8], "none"),
    )
    (tmp_path / "results" / "archive").mkdir(parents=True)
    for log in archive_mirror.iterdir():
        (tmp_path / "results" / "archive" / log.name).symlink_to(log)
    made = run_study(study, tmp_path / "results", SEED)
    assert made["centre"].values.tolist() == ["NASA", "KTH-SP2"]
    found = made.sel(factor="none")
    accounted = found["jobs"] + found["jobs_rejected_original"] + found["left_out"].sum("left_out_reason")
    assert accounted.values.tolist() == [find_log(str(log)).jobs for log in made["log"].values]
    assert (found["jobs"] > 500).all()
    wait = found["wait_time_mean"].sel(mode="plan", estimates="requested", metric="wait")
    assert float(wait.sel(k=8)) < float(wait.sel(k=1))
    assert made["paper_wait_time_mean"].notnull().all()
