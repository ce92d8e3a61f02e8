"""Tables of the page: labels as they are written, and what stands in their cells."""

from __future__ import annotations

from pathlib import Path

from gridsched.experiments.config import study_from
from gridsched.presentation.sections import study_section
from tests.support.studies import run_study


def test_labels_that_look_like_numbers_stay_as_they_are(tmp_path: Path) -> None:
    jobs = [[0, 100, 200, 2], [10, 50, 60, 4], [20, 30, 30, 1], [30, 9, 9, 4]]
    names = ["010", "1.0", "Inf"]
    study = study_from(
        {
            "name": "tiny",
            "title": "Tiny",
            "scenarios": [{"name": name, "processors": 4, "jobs": jobs} for name in ("01", "02")],
            "schedulers": [{"name": name, "scheduler": "easy"} for name in names],
        }
    )
    run_study(study, tmp_path, 1, shown=True)
    table = study_section(study, tmp_path / "tiny")["table"]
    assert [row[0] for row in table.rows] == names
    assert all(all(row[:3]) for row in table.rows)
    assert [header.rpartition(", ")[2] for header in table.header[1:3]] == ["01", "02"]
