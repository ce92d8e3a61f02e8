"""Whole logs of the archive through studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.traces.archive import find_log
from tests.experiments.kinds.test_jscheduler import SEED, runs_of, study_of
from tests.support.studies import run_study


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
    users = [f"users of {name}" for name in made["centre"].values]
    here = made.squeeze("scenario").sel(estimates="requested", group=users)
    original = here.sel(scheduler="original").sum("replicate")
    left = made["left_out"].sum("left_out_reason").values
    accounted = original["jobs"].values + original["rejected"].values + left
    assert accounted.tolist() == [find_log(centre.log or "").jobs for centre in study.centres]
    assert (original["jobs"] > 500).all()
    wait = (here["wait_time_mean"] * here["jobs"]).sum(["replicate", "group"])
    assert float(wait.sel(scheduler="wait, k 8")) < float(wait.sel(scheduler="wait, k 1"))
