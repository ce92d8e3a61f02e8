"""Studies of forecasts: what is judged, page, figures, findings, bad keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import gridsched as gs
from gridsched.experiments.forecasts import figures
from gridsched.experiments.forecasts.config import ForecastStudy
from gridsched.experiments.forecasts.findings import FINDINGS
from gridsched.experiments.forecasts.report import forecasts_view
from gridsched.experiments.forecasts.stages import coverage_table
from gridsched.forecasting.judging import CORRECTIONS, METHODS, RANGES
from gridsched.results import read
from tests.support.studies import message_about, run_study

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "forecast",
    "title": "Tiny",
    "workloads": [{"name": "own", "file": "own.swf", "processors": 8}],
    "instants": 40,
    "jobs": 4,
    "futures": 9,
}


def study_of(**changes: Any) -> ForecastStudy:
    return ForecastStudy.model_validate({**STUDY, **changes})


def busy_log(policy: str = "easy") -> str:
    """A log whose recorded starts are those under a policy."""
    rng = np.random.default_rng(3)
    run_time = rng.integers(100, 5000, 400)
    columns: dict[str, Any] = {
        "submit_time": np.sort(rng.integers(0, 400 * 1200, 400)),
        "run_time": run_time,
        "requested_time": run_time * 2,
        "requested_processors": rng.integers(1, 8, 400),
        "user": rng.integers(0, 5, 400),
    }
    run = gs.simulate(gs.Workload(name="own", **columns), 8, policy)
    wait = (run["start_time"] - run["submit_time"]).to_numpy()
    lines = [
        f"{job + 1} {columns['submit_time'][job]} {wait[job]} {run_time[job]} "
        f"{columns['requested_processors'][job]} -1 -1 {columns['requested_processors'][job]} "
        f"{columns['requested_time'][job]} -1 1 {columns['user'][job]} 1 1 1 1 -1 -1\n"
        for job in range(400)
    ]
    return "; MaxProcs: 8\n" + "".join(lines)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study and all that belongs to it, in a folder."""
    place = tmp_path_factory.mktemp("forecasts")
    (place / "own.swf").write_text(busy_log(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run_study(study_of(), place / "results", 1, shown=True)
    return place / "results"


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "tiny" / "study.nc")


def test_every_method_is_judged(dataset: xr.Dataset) -> None:
    assert set(coverage_table(dataset)["predictor"]) == set(METHODS)
    whole = dataset.sel(range=RANGES[0], workload="own")
    assert np.isnan(whole["coverage"].sel(predictor="combined", correction="raw")).all()
    assert (whole["coverage"].sel(predictor="estimates", correction="raw") < 0.1).all(), "points hold nothing"
    assert (whole["width"].sel(predictor="estimates", correction="raw") == 0).all()
    futures = whole.sel(predictor="futures", correction="raw")
    assert (futures["width"] < whole["width"].sel(predictor="null", correction="raw")).all()
    assert (futures["coverage"] > 0.4).all()


def test_recorded_starts_under_the_same_policy_are_simulated_ones(dataset: xr.Dataset) -> None:
    """Where the log was made by the policy, both truths are one."""
    left, right = (dataset["score"].sel(truth=truth, predictor="null") for truth in ("simulated", "recorded"))
    np.testing.assert_array_equal(left, right)


def test_page_figures_and_findings(made: Path, dataset: xr.Dataset) -> None:
    view = forecasts_view(study_of(), made / "tiny")
    assert len(view["rows"]) == 2 * (2 * len(METHODS) - 1)
    _, numbers = figures.forecast_coverage(dataset)
    assert set(numbers["correction"]) == {CORRECTIONS[0], CORRECTIONS[-1]}
    good = numbers.assign(coverage=0.8)
    assert "on 1 of 1 log (own 80 %)" in FINDINGS["forecast_coverage"](good, {})
    assert "on 0 of 1 log (own 50 %)" in FINDINGS["forecast_coverage"](good.assign(coverage=0.5), {})
    _, lines = figures.forecast_horizons(dataset)
    assert "cover least on own" in FINDINGS["forecast_horizons"](lines, {})


def test_recorded_starts_under_a_calibrated_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The null model knows no policy; futures are others than those of EASY where the log is another's."""
    monkeypatch.chdir(tmp_path)
    Path("own.swf").write_text(busy_log("sjf"), encoding="utf-8")
    scores = {}
    for calibrated in (False, True):
        study = study_of(truths=["recorded"], calibrate=calibrated, instants=20)
        run_study(study, tmp_path / str(calibrated), 1)
        whole = read(tmp_path / str(calibrated) / "tiny" / "study.nc")
        assert whole.attrs["policy"] == ("calibrated" if calibrated else "easy")
        scores[calibrated] = whole["score"].sel(range=RANGES[0], correction="raw").squeeze(drop=True)
    assert scores[True].sel(predictor="null") == scores[False].sel(predictor="null")
    assert scores[True].sel(predictor="futures") != scores[False].sel(predictor="futures")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"policy": "fastest"}, "policy"),
        ({"truths": ["guessed"]}, "truths"),
        ({"instants": 5}, "instants"),
        ({"calibrate": True}, "truths: [recorded]"),
        ({"workloads": [{"name": "own", "processors": 4, "jobs": [[0, 1, 1, 1]]}]}, "only a log"),
    ],
)
def test_bad_keys_are_named(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    assert key in message_about(tmp_path, {**STUDY, **changes})
