"""Sources: each log that a study uses is named with its own origin."""

from __future__ import annotations

from pathlib import Path

from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.local_policies import LocalStudy
from gridsched.presentation.sources import sources
from tests.conftest import REPOSITORY

STUDY = {"name": "some", "title": "Some", "schedulers": ["easy"]}


def test_logs_with_the_same_acknowledgement_are_named_apart() -> None:
    """Both SDSC logs acknowledge one person."""
    logs = ["SDSC-SP2-1998", "SDSC-DS-2004", "KTH-SP2-1996"]
    study = LocalStudy.model_validate(
        {**STUDY, "scenarios": [{"name": f"w{i}", "archive": log} for i, log in enumerate(logs)]}
    )
    found = sources([study, study])
    assert [each.name for each in found] == sorted(logs)
    assert all(each.url.endswith(".swf.gz") and each.acknowledgement for each in found)


def test_a_grid_of_logs_names_all_of_them() -> None:
    study = load_study(REPOSITORY / "config" / "studies" / "jscheduler-month.yaml")
    assert {"SDSC-SP2-1998", "SDSC-DS-2004"} <= {each.name for each in sources([study])}


def test_own_logs_acknowledge_whom_their_header_names(tmp_path: Path) -> None:
    log = tmp_path / "own.swf"
    log.write_text("; MaxProcs: 8\n; Acknowledge: Ada\n1 0 0 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n", "utf-8")
    study = LocalStudy.model_validate({**STUDY, "scenarios": [{"name": "own", "file": str(log)}]})
    (found,) = sources([study])
    assert (found.name, found.url, found.acknowledgement) == (str(log), "", "Ada")
