"""Studies of forecasts: what is judged, figures, findings, bad keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridsched as gs
from gridsched.experiments.collection import ALL
from gridsched.experiments.kinds import forecast as kind
from gridsched.experiments.kinds.forecast import ForecastStudy
from gridsched.forecasting.history import COMPARED, NULL
from gridsched.forecasting.judging import RANGES
from gridsched.results import read
from tests.support.studies import message_about, run_study, study_in

FAILING = {"mean_time_between": 1e6, "mean_repair": 3600}
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
    return study_in(place, study_of, 1, shown=True)


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "tiny" / "study.nc")


def of(dataset: xr.Dataset, measure: str, scheduler: str, starts: str = "simulated") -> xr.DataArray:
    where = {"scenario": f"own, {starts} starts", "scheduler": scheduler, "estimates": "requested"}
    return dataset[measure].sel(where).sel(group=ALL)


def test_every_method_is_judged(dataset: xr.Dataset) -> None:
    assert set(dataset["predictor"].values) == set(COMPARED)
    assert dataset.sizes["scheduler"] == 3 * len(COMPARED) - 1
    assert dataset["replicates_are"].values.tolist() == ["blocks"] * 2
    assert float(of(dataset, "coverage", "estimates, uncorrected").mean()) < 0.1, "points hold nothing"
    assert (of(dataset, "interval_width_mean", "estimates, uncorrected").dropna("replicate") == 0).all()
    futures, null = (
        float(of(dataset, "interval_width_mean", f"{name}, uncorrected").mean()) for name in ("futures", NULL)
    )
    assert futures < null
    assert float(of(dataset, "coverage", "futures, uncorrected").mean()) > 0.4


def test_parts_add_up_to_all_forecasts(dataset: xr.Dataset) -> None:
    """Ranges of the median forecast share the forecasts of each part."""
    assert dataset["group"].values.tolist() == [ALL, *RANGES[1:]]
    number = of(dataset, "jobs", "futures")
    ranges = dataset["jobs"].sel(scheduler="futures").drop_sel(group=ALL).sum("group")
    np.testing.assert_array_equal(ranges.sel(scenario="own, simulated starts").squeeze(), number.fillna(0))


def test_recorded_starts_under_the_same_policy_are_simulated_ones(dataset: xr.Dataset) -> None:
    """Where the log was made by the policy, both truths are one."""
    left, right = (of(dataset, "interval_score_mean", NULL, name) for name in ("simulated", "recorded"))
    np.testing.assert_array_equal(left, right)


def test_figures_and_findings(made: Path, dataset: xr.Dataset) -> None:
    folder = made / "tiny" / "figures"
    assert {path.stem for path in folder.glob("*.svg")} == {"coverage", "ranking", "horizons"}
    first, *_ = study_of().specifications
    numbers = pd.read_csv(folder / "coverage.csv")  # as users read it: no label is a missing value
    assert set(numbers["predictor"]) == {"futures", "combined", NULL, "estimates"}
    assert set(numbers["correction"]) == {"uncorrected", "corrected online"}
    for row in numbers.to_dict("records"):
        starts = row["scenario"].removeprefix("own, ").removesuffix(" starts")
        values, weights = (of(dataset, name, row["scheduler"], starts) for name in ("coverage", "jobs"))
        assert row["value"] == pytest.approx(float((values * weights).sum() / weights.sum()))
    good, bad = (kind.covered(numbers.assign(value=value), first, {})[0] for value in (0.8, 0.5))
    assert good.endswith("in two of two scenarios.")
    assert bad.endswith("in none of two scenarios.")
    conventions = study_of().conventions(dataset)
    assert any("own, simulated starts" in line for line in conventions)
    assert any("up to 60 consecutive parts" in line for line in conventions)


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
        scores[calibrated] = {
            name: float(of(whole, "interval_score_mean", f"{name}, uncorrected", "recorded").mean())
            for name in (NULL, "futures")
        }
    assert scores[True][NULL] == scores[False][NULL]
    assert scores[True]["futures"] != scores[False]["futures"]


def test_learned_forecasts_are_a_predictor_that_is_asked_for(tmp_path: Path, dataset: xr.Dataset) -> None:
    """The null model is as without it; nothing is learned anew in a correction by the first half."""
    (tmp_path / "own.swf").write_text(busy_log(), encoding="utf-8")
    asked = {"predictors": ["learned", NULL], "truths": ["recorded"]}
    made = read(study_in(tmp_path, partial(study_of, **asked), 1, shown=True) / "tiny" / "study.nc")
    assert set(made["scheduler"].values) == {
        *("learned", "learned, uncorrected"),
        *(NULL, f"{NULL}, uncorrected", f"{NULL}, corrected once"),
    }
    for name in (NULL, "learned"):
        assert float(of(made, "jobs", name, "recorded").sum()) > 30
    left, right = (of(each, "coverage", NULL, "recorded") for each in (made, dataset))
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"policy": "fastest"}, "policy"),
        ({"truths": ["guessed"]}, "truths"),
        ({"instants": 5}, "instants"),
        ({"predictors": ["futures"]}, "add null"),
        ({"predictors": [NULL, "guessed"]}, "predictors"),
        ({"calibrate": True}, "truths: [recorded]"),
        ({"workloads": [{"name": "own", "processors": 4, "jobs": [[0, 1, 1, 1]]}]}, "only a log"),
        (
            {"workloads": [{"name": "own", "file": "own.swf", "processors": 8, "failures": FAILING}]},
            "without nodes and failures",
        ),
    ],
)
def test_bad_keys_are_named(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    assert key in message_about(tmp_path, {**STUDY, **changes})
