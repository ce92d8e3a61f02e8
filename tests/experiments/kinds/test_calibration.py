"""Studies of calibration: batches make the fit, what is judged, figures, tables, mistakes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xarray as xr

from gridsched.calibration.ceiling import restarted_waits
from gridsched.calibration.composition import Composition, composition
from gridsched.calibration.fitting import USUAL, fit
from gridsched.calibration.layers import judged, simulated_waits
from gridsched.calibration.measures import Explained
from gridsched.calibration.site import LoggedSite, site_of
from gridsched.experiments.kinds import calibration as kind
from gridsched.experiments.kinds.calibration import EXPLAINED, HALVES, RECORDED, CalibrationStudy
from gridsched.measures import measures
from gridsched.presentation.page import build_report
from gridsched.results import read
from gridsched.traces import clean, read_swf, write_swf
from tests.calibration.logs import log
from tests.support.errors import says
from tests.support.studies import message_about, study_in

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "calibration",
    "title": "Tiny",
    "workloads": [{"name": "own", "file": "own.swf"}, {"name": "other", "file": "other.swf"}],
    "layers": ["shares", "order", "idle waits"],
    "batches": 2,
}
SEED = 3


def write_logs(folder: Path) -> None:
    """Logs of two busy clusters."""
    write_swf(log(700, seed=9, policy="fcfs"), folder / "other.swf")
    write_swf(log(700, seed=8, policy="lxf"), folder / "own.swf")


def study_of(**changes: Any) -> CalibrationStudy:
    return CalibrationStudy.model_validate({**STUDY, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study and all that belongs to it, in a folder."""
    place = tmp_path_factory.mktemp("calibration")
    write_logs(place)
    made = study_in(place, study_of, SEED, shown=True)
    with contextlib.chdir(place):
        build_report([study_of()], made / "report.html")
    return place


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "results" / "tiny" / "study.nc")


@pytest.fixture(scope="module")
def site(made: Path) -> LoggedSite:
    return site_of(clean(read_swf(made / "own.swf")), 32)


def of(dataset: xr.Dataset, scheduler: str, group: str) -> list[float]:
    """Measures of a policy on a half of the first log."""
    part = dataset.sel(scenario="own", scheduler=scheduler, group=group)
    return [float(part[key]) for key in EXPLAINED]


def test_batches_find_what_one_fit_finds(site: LoggedSite, dataset: xr.Dataset) -> None:
    best = fit(site, STUDY["layers"], seed=SEED)[0].calibration
    for half, group in zip(("first", "second"), HALVES, strict=True):
        expected = judged(site, simulated_waits(site, best), half)
        assert of(dataset, "calibrated", group) == pytest.approx(list(expected))
    assert json.loads(dataset.attrs["calibrations"])["own"]["calibrated"] == best


def test_diagnostics_and_the_other_half_are_judged_too(site: LoggedSite, dataset: xr.Dataset) -> None:
    best = fit(site, STUDY["layers"], seed=SEED)[0].calibration
    daily = judged(site, restarted_waits(site, best, 86400), "second")
    assert of(dataset, "calibrated, restarted every day", HALVES[1]) == list(daily)
    other = fit(site, STUDY["layers"], half="second", seed=SEED)[0].calibration
    swapped = judged(site, simulated_waits(site, other, history=site.learnt("second")), "first")
    assert of(dataset, "calibrated on the second half", HALVES[0]) == list(swapped)
    assert of(dataset, "self-agreement, first day left out", HALVES[1])[1] > 0.5


def test_recorded_waits_are_measured(site: LoggedSite, dataset: xr.Dataset) -> None:
    assert (len(EXPLAINED), len(RECORDED)) == (len(Explained._fields), len(Composition._fields))
    own = dataset.sel(scenario="own")
    for half, group in zip(("first", "second"), HALVES, strict=True):
        part = own.sel(group=group)
        assert [float(part[key]) for key in RECORDED] == list(composition(site, half))
    assert own["jobs_submitted"].values.tolist() == [350, 350]
    assert float(own["recorded_wait_mean"].mean()) == pytest.approx(site.recorded.mean())


def test_the_dataset_is_a_table_of_measures(made: Path, dataset: xr.Dataset) -> None:
    assert set(map(str, dataset.data_vars)) <= set(measures())
    assert dataset["wait_ratio"].dims == ("scenario", "scheduler", "group")
    assert not [key for key, each in dataset.data_vars.items() if not each.attrs.get("long_name")]
    tables = made / "results" / "tiny" / "tables"
    parameters = pd.read_csv(tables / "parameters.csv")
    fitted = json.loads(dataset.attrs["calibrations"])
    assert len(parameters) == sum(len(given) for each in fitted.values() for given in each.values())
    for row in parameters.to_dict("records"):
        assert fitted[row["scenario"]][row["scheduler"]][row["parameter"]] == pytest.approx(row["value"])
    assert set(dataset.data_vars) <= set(pd.read_csv(tables / "measures.csv"))


def test_figures_hold_the_measures(made: Path, dataset: xr.Dataset) -> None:
    folder = made / "results" / "tiny" / "figures"
    names = {"overview", "recorded-waits", "layers-own", "layers-other"}
    assert {path.stem for path in folder.glob("*.svg")} == names
    overview = pd.read_csv(folder / "overview.csv")
    assert set(overview["scheduler"]) == {"EASY", "calibrated", "mean of shaken replays", "null model"}
    assert set(overview["group"]) == {HALVES[1]}
    layers = pd.read_csv(folder / "layers-own.csv")
    assert {*(f"EASY with {layer}" for layer in STUDY["layers"]), "null model"} <= set(layers["scheduler"])
    assert not layers["scheduler"].str.startswith(kind.ALTERNATIVE).any()
    for row in pd.concat([overview, layers]).to_dict("records"):
        place = {axis: row[axis] for axis in ("scenario", "scheduler", "group")}
        assert float(dataset[row["measure"]].sel(place)) == pytest.approx(row["value"])
    assert all(
        (folder / f"{each}.txt").read_text(encoding="utf-8").startswith("In this run") for each in names
    )


def test_the_page_has_every_row_of_each_log(made: Path, dataset: xr.Dataset) -> None:
    overview, own, other, layers = study_of().page_tables(dataset)
    assert overview.rows[0][:2] == ["own", "{1:.2f}, {0:.2f}".format(*of(dataset, "EASY", HALVES[1])[:2])]
    rows = {row[0]: row for row in own.rows}
    assert set(rows) == {
        policy
        for policy in study_of().policies
        if dataset["wait_ratio"].sel(scenario="own", scheduler=policy).notnull().any()
    }
    assert own.caption.startswith("own: 700 jobs in ")
    for row in [*own.rows, *other.rows]:
        assert len(row) == len(own.header)
    assert rows["calibrated"][3] == f"{of(dataset, 'calibrated', HALVES[1])[2]:.2f}"
    assert rows["calibrated, restarted every day"][4:7] == ["", "", ""], "restarts are of the second half"
    assert "order: " in rows["calibrated"][-1]
    assert [row[0] for row in layers.rows] == STUDY["layers"]
    says(
        (made / "results" / "report.html").read_text(encoding="utf-8"),
        "What recorded waits consist of",
        "no difference between policies is tested",
    )


def numbers(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    """Scenario, scheduler, rank correlation and ratio as the numbers of a figure have them."""
    names = ["scenario", "scheduler", "wait_correlation", "wait_ratio"]
    return (
        pd.DataFrame(rows, columns=names)
        .melt(["scenario", "scheduler"], var_name="measure")
        .assign(group=HALVES[1])
    )


def test_findings_say_where_waits_are_explained() -> None:
    overview, _, layers, *_ = study_of().specifications
    both = numbers(
        ("one", "EASY", 0.3, 0.5),
        ("one", "calibrated", 0.7, 1.0),
        ("one", "null model", 0.5, 1.0),
        ("two", "EASY", 0.2, 0.2),
        ("two", "calibrated", 0.65, 2.0),
        ("two", "null model", 0.8, 1.0),
    )
    reached, ranges, null = kind.explained_logs(both, overview, {})
    assert "0.5 on the second half of two of two logs" in reached
    assert reached.endswith("from 0.6 to 1.67 besides on one.")
    assert "0.20 (two) to 0.30 (one) under EASY, and from 0.65 (two) to 0.70 (one) calibrated" in ranges
    assert null.endswith("better on two.")
    one = numbers(
        ("one", "EASY", 0.3, 0.5),
        ("one", "EASY with shares", 0.5, 0.9),
        ("one", "calibrated", 0.7, 1.0),
        ("one", "calibrated without shares", 0.4, 0.8),
    )
    whole, alone, missed = kind.explained_by_layers(one, layers, {})
    assert "0.30 under EASY and 0.70 calibrated; the ratio of the mean waits is 0.50 and 1.00" in whole
    assert "shares has the highest, 0.50" in alone
    assert missed == "Without shares it falls by 0.30."
    assert kind.explained_logs(both[:0], overview, {}) == kind.explained_by_layers(one[:0], layers, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": ["limit"]}, "layers[item 1]: found 'limit'"),
        ({"layers": ["shares", "shares"]}, "layers: 'shares' is there twice"),
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
    assert len(keys() - keys(layers=["shares"])) == 2 * (1 + 2 * 2 * USUAL.rounds)
    assert len(keys() - keys(reverse=False)) == 2 * (1 + 2 * USUAL.rounds)
    assert not keys(layers=["order"]) <= keys()
