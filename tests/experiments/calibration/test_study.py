"""Studies of calibration: batches make the fit, what is judged, figures, page, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched.calibration.ceiling import restarted_waits
from gridsched.calibration.composition import composition
from gridsched.calibration.fitting import USUAL, fit
from gridsched.calibration.layers import judged, simulated_waits
from gridsched.calibration.measures import Explained
from gridsched.calibration.site import site_of
from gridsched.experiments.calibration import figures
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.calibration.findings import FINDINGS
from gridsched.experiments.calibration.report import calibration_view
from gridsched.experiments.calibration.stages import layers_table
from gridsched.presentation.page import build_report
from gridsched.results import read
from gridsched.traces import clean, read_swf, write_swf
from tests.calibration.logs import log
from tests.support.studies import message_about, run_study

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "calibration",
    "title": "Tiny",
    "workloads": [{"name": "own", "file": "own.swf"}, {"name": "other", "file": "other.swf"}],
    "layers": ["limits", "processors", "idle waits"],
    "batches": 2,
}
SEED = 3


def write_logs(folder: Path) -> None:
    """Logs of two busy clusters."""
    write_swf(log(700, seed=9, policy="fcfs"), folder / "other.swf")
    write_swf(log(700, seed=8, policy="fcfs"), folder / "own.swf")


def study_of(**changes: Any) -> CalibrationStudy:
    return CalibrationStudy.model_validate({**STUDY, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study and all that belongs to it, in a folder."""
    place = tmp_path_factory.mktemp("calibration")
    write_logs(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run_study(study_of(), place / "results", SEED, shown=True)
    return place


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "results" / "tiny" / "study.nc")


def test_batches_find_what_one_fit_finds(made: Path, dataset: xr.Dataset) -> None:
    workload = clean(read_swf(made / "own.swf"))
    site = site_of(workload, 32)
    best = fit(site, STUDY["layers"], seed=SEED)[0].calibration
    for half in ("first", "second"):
        expected = judged(site, simulated_waits(site, best), half)
        part = dataset.sel(workload="own", layers="calibrated", half=half)
        assert [float(part[name]) for name in Explained._fields] == pytest.approx(list(expected))


def test_what_stands_beside_is_judged_too(made: Path, dataset: xr.Dataset) -> None:
    site = site_of(clean(read_swf(made / "own.swf")), 32)
    best = fit(site, STUDY["layers"], seed=SEED)[0].calibration
    part = dataset.sel(workload="own", half="second")
    daily = judged(site, restarted_waits(site, best, 86400), "second")
    assert float(part["correlation_beside"].sel(beside="restarted every day")) == daily.correlation
    assert float(part["made_of"].sel(made="idle")) == composition(site, "second").idle
    other = fit(site, STUDY["layers"], half="second", seed=SEED)[0].calibration
    swapped = judged(site, simulated_waits(site, other, history=site.learnt("second")), "first")
    part = dataset.sel(workload="own", half="first")
    assert float(part["ratio_fitted"].sel(fitted="second")) == swapped.ratio


def test_every_variable_says_what_it_is(dataset: xr.Dataset) -> None:
    assert not [name for name, each in dataset.data_vars.items() if not each.attrs.get("long_name")]


def test_the_table_has_every_set_of_layers(dataset: xr.Dataset) -> None:
    whole = layers_table(dataset)
    for name in ("own", "other"):
        table = whole[whole["workload"] == name].set_index("layers")
        assert {"EASY", "limits", "processors", "calibrated", "null model"} <= set(table.index)
        assert table.loc["EASY", "parameters"] == ""
        assert np.isfinite(table[["ratio_second", "correlation_second"]]).all(axis=None)


def test_figures_and_page(made: Path, dataset: xr.Dataset) -> None:
    _, numbers = figures.calibration_overview(dataset)
    assert set(numbers["layers"]) == {"EASY", "calibrated", "calibrated, mean of shaken", "null model"}
    _, single = figures.calibration_layers(dataset, workload="own")
    assert len(single) == 2 * (layers_table(dataset)["workload"] == "own").sum()
    view = calibration_view(study_of(), made / "results" / "tiny")
    assert [each.kind for each in view["figures"]] == ["calibration_overview", *2 * ["calibration_layers"]]
    assert all(each.finding for each in view["figures"])
    assert view["logs"][0]["rows"][0]["layers"] == "EASY"
    beside = {row["name"]: row for row in view["logs"][0]["beside"]}
    assert float(beside["itself, without the first day"]["correlation_second"]) > 0.5
    assert view["logs"][0]["swapped"]["correlation_first"] != ""
    build_report([study_of()], made / "results" / "report.html")
    assert "What the layers explain" in (made / "results" / "report.html").read_text(encoding="utf-8")


def test_findings_say_where_waits_are_explained() -> None:
    rows = [
        ("one", "EASY", 0.3, 0.5),
        ("one", "calibrated", 0.7, 1.0),
        ("one", "null model", 0.5, 1.0),
        ("two", "EASY", 0.2, 0.2),
        ("two", "calibrated", 0.65, 2.0),
        ("two", "null model", 0.8, 1.0),
    ]
    numbers = pd.DataFrame(rows, columns=["workload", "layers", "correlation", "ratio"]).assign(half="second")
    text = FINDINGS["calibration_overview"](numbers, {})
    assert "reached for 2 of 2 logs, together with a ratio from 0.8 to 1.25 for 1" in text
    assert "one 0.30 to 0.70 (ratio 1.00)" in text
    assert "better on two" in text
    own = pd.DataFrame(
        [
            ("EASY", 0.3, 0.5),
            ("limits", 0.5, 0.9),
            ("calibrated", 0.7, 1.0),
            ("calibrated without limits", 0.4, 0.8),
        ],
        columns=["layers", "correlation", "ratio"],
    ).assign(half="second", workload="one")
    told = FINDINGS["calibration_layers"](own, {})
    assert "Alone limits reaches most, 0.50" in told
    assert "Without limits the rank correlation falls by 0.30" in told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": ["limit"]}, "layers[item 1]: found 'limit'"),
        ({"layers": ["limits", "limits"]}, "layers: 'limits' is there twice"),
        ({"workloads": [{"name": "own", "synthetic": {"jobs": 9}}]}, "only a log"),
        ({"batches": 0}, "batches: found 0"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in message_about(tmp_path, {**STUDY, **changes})


def test_only_what_is_new_is_run(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)

    def keys(**changes: Any) -> set[str]:
        return {task.key for task in study_of(**changes).experiment(SEED).tasks}

    assert keys(title="Other") == keys()
    # of two logs what is judged, and two batches of each round for both halves
    assert len(keys() - keys(layers=["limits"])) == 2 * (1 + 2 * 2 * USUAL.rounds)
    assert len(keys() - keys(reverse=False)) == 2 * (1 + 2 * USUAL.rounds)
    assert not np.isin(list(keys(layers=["order"])), list(keys())).all()
