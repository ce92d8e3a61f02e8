"""Tables of the page: labels as they are written, and what stands in their cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gridsched.experiments.config import study_from
from gridsched.experiments.specification import Specification
from gridsched.presentation.sections import caption, study_section
from gridsched.presentation.tables import narrow_table, ranking_table
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


def test_replicates_that_differ_from_scenario_to_scenario_are_a_range() -> None:
    plain = Specification(name="r", form="ranking", title="R", measures=("wait_time_mean",), reference="")
    rows = [("one", "easy", 1), ("two", "easy", 4), ("one", "fcfs", 2), ("two", "fcfs", 2)]
    table = pd.DataFrame(rows, columns=["scenario", "scheduler", "number"])
    shown = ranking_table(table.assign(measure="wait_time_mean", value=60.0), plain, {}, "easy")
    assert [row[-1] for row in shown.rows] == ["1 to 4", "2"]


def test_rows_without_a_parameter_do_not_name_it() -> None:
    plain = Specification(
        name="r", form="ranking", title="R", measures=("wait_time_mean",), lanes="k", reference=""
    )
    table = pd.DataFrame({"scenario": ["s", "t", "t"], "scheduler": "easy", "k": [np.nan, 1.0, 2.0]})
    shown = narrow_table(table.assign(measure="wait_time_mean", value=60.0), plain)
    assert shown is not None
    assert [row[0] for row in shown.rows] == ["s", "t, 1.0", "t, 2.0"]


def test_a_series_of_no_measure_has_its_own_caption_alone() -> None:
    own = Specification(name="s", form="series", title="S", caption="Lines: load.", own="module:function")
    assert caption(own, pd.DataFrame()) == "Lines: load."
