"""Figures and page of studies of imprecise calendars: they show the numbers of the dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.captions import caption
from gridsched.figures.style import save
from gridsched.presentation.page import build_report
from gridsched.replication import times_interval
from gridsched.systems.calendars import figures as calendars
from gridsched.systems.calendars.figures import AGGREGATE_NAMES, CALENDAR_FIGURES, CASE_FIGURES
from gridsched.systems.calendars.study.config import CalendarStudy
from tests.support.legibility import assert_legible
from tests.support.pages import Page
from tests.support.studies import draw, read_page, run_study
from tests.systems.calendars.test_study import SEED, STUDY, study_of, write_logs

NASTY = "<b>Zoë</b> & {{ 7 }} $x$"


@pytest.fixture(scope="module")
def study() -> CalendarStudy:
    schedulers = [
        {**each, "name": NASTY} if each != "easy" and each["name"] == "fine" else each
        for each in STUDY["schedulers"]
    ]
    return study_of(schedulers=schedulers, description=NASTY)


@pytest.fixture(scope="module")
def dataset(study: CalendarStudy, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    root = tmp_path_factory.mktemp("calendar-figures")
    write_logs(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return run_study(study, root / "made", SEED)


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CALENDAR_FIGURES)
def test_figures_of_the_study(name: str, dataset: xr.Dataset) -> None:
    figure, numbers = CALENDAR_FIGURES[name](dataset)
    assert_legible(figure)
    assert len(numbers)
    assert numbers["mean"].notna().all()


def test_a_figure_is_the_same_again(dataset: xr.Dataset, tmp_path: Path) -> None:
    first = save(*calendars.calendar_staleness(dataset), tmp_path / "first")
    second = save(*calendars.calendar_staleness(dataset), tmp_path / "second")
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("case", ["pair", "parts"])
@pytest.mark.parametrize("name", CASE_FIGURES)
def test_figures_of_a_case(name: str, case: str, dataset: xr.Dataset) -> None:
    figure, numbers = CASE_FIGURES[name](dataset, case=case)
    # Names of groups of bars are turned, so that the boxes around them touch, not they
    if name != "calendar_classes":
        assert_legible(figure)
    assert len(numbers)
    with pytest.raises(ConfigurationError, match="no case 'nowhere'; it has pair, parts"):
        CASE_FIGURES[name](dataset, case="nowhere")


def test_delays_are_those_of_the_dataset(dataset: xr.Dataset) -> None:
    _, numbers = calendars.calendar_delays(dataset)
    assert set(numbers["aggregate"]) == set(AGGREGATE_NAMES)
    expected = dataset["delay"].sel(job_class="all")
    assert len(numbers) == int(expected.notnull().sum())
    for row in numbers.to_dict("records"):
        place = {key: row[key] for key in ("case", "scheduler", "estimates", "aggregate")}
        assert float(expected.sel(place)) == row["mean"]


def test_bars_are_the_classes(dataset: xr.Dataset) -> None:
    figure, numbers = calendars.calendar_classes(dataset, case="pair")
    delays = dataset["delay"].sel(case="pair", estimates="actual")
    for axes, aggregate in zip(figure.axes, AGGREGATE_NAMES, strict=True):
        heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
        drawn = sorted(height + 1 for height in heights if not np.isnan(height))
        own = delays.sel(aggregate=aggregate).values
        np.testing.assert_allclose(drawn, sorted(own[~np.isnan(own)]), rtol=1e-9)
    colors = {to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches}
    assert len(colors) == numbers["job_class"].nunique()


def test_trade_has_the_paper_beside(dataset: xr.Dataset) -> None:
    _, numbers = calendars.calendar_trade(dataset, case="parts")
    paper = numbers[(numbers["scheduler"] == "paper") & (numbers["measure"] == "balance")]
    assert paper.set_index("cluster")["mean"].to_dict() == {"small": -82.0, "twin": -77.0, "large": -226.9}
    _, without = calendars.calendar_trade(dataset, case="pair")
    assert "paper" not in set(without["scheduler"])
    assert without.groupby(["scheduler"])["mean"].count().gt(0).all()


def test_reservations_are_relative_to_none(dataset: xr.Dataset) -> None:
    _, numbers = calendars.calendar_reservations(dataset)
    assert sorted(numbers["value"].unique()) == [0.0, 0.25, 0.5]
    ratios = numbers[numbers["measure"] == "delay_others_ratio"]
    parts = dataset["delay_others_by_block"].sel(case="pair", estimates="actual")
    for aggregate in AGGREGATE_NAMES:
        rows = ratios[ratios["aggregate"] == aggregate].set_index("scheduler")
        own = parts.sel(aggregate=aggregate)
        expected = times_interval(own.sel(scheduler="reserved"), own.sel(scheduler="alone"))
        found = rows.loc["reserved", ["mean", "low", "high"]].to_numpy(np.float64)
        np.testing.assert_allclose(found, np.array(expected))
        assert rows.loc["alone", "mean"] == 1


def test_sweeps_show_what_differs_in_one_thing_only(dataset: xr.Dataset) -> None:
    _, numbers = calendars.calendar_options(dataset)
    assert set(numbers["scheduler"]) == {"alone", "low threshold"}
    assert set(numbers["parameter"]) == {"threshold"}
    _, stale = calendars.calendar_staleness(dataset)
    # The two with managers differ in `bump`, which figures do not look at
    assert set(stale["scheduler"]) == {"together", "late news"}


@pytest.mark.parametrize("name", CALENDAR_FIGURES)
def test_nothing_to_compare(name: str, dataset: xr.Dataset) -> None:
    only = dataset.sel(scheduler=["easy"]).assign_attrs(reference="easy")
    figure, _ = CALENDAR_FIGURES[name](only)
    assert_legible(figure)


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(study: CalendarStudy, dataset: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Page:
    root = tmp_path_factory.mktemp("calendar-page")
    folder = root / study.name
    files.write(dataset, folder / "study.nc")
    draw(study, root)
    build_report([study], root / "report.html")
    return read_page(root / "report.html")


def test_page_takes_text_literally(page: Page) -> None:
    assert page.open == []
    assert page.foreign == []
    assert page.text.count(NASTY) >= 3
    assert all(source.startswith("data:image/svg+xml;charset=utf-8,") for source in page.attributes("src"))


def test_page_says_what_was_found(page: Page, dataset: xr.Dataset) -> None:
    words = page.words
    assert "parts, beside the paper's Figure 7: the paper's number, then ours" in words
    assert "pair, requested run times" in words
    assert "<8, 10 s>, <4, 120 s>, <*, 2400 s>" in words
    counted = int(dataset["left_out"].sel(case="parts", left_out_reason="no CPU time"))
    assert f"{counted} no CPU time" in words
    assert f"{int(dataset['promoted'].sel(case='pair', scheduler='together', estimates='actual')):,}" in words
    for title in ("Balance of trade and utilisation: pair", "What reservations cost", "Slots and operations"):
        assert title in words


def test_figures_follow_from_the_study() -> None:
    study = study_of()
    assert study.study_figures == [
        *("calendar_delays", "calendar_cost", "calendar_reservations"),
        *("calendar_staleness", "calendar_options"),
    ]
    plain = study_of(schedulers=STUDY["schedulers"][:1], scenarios=STUDY["scenarios"][:1], reservations={})
    assert plain.study_figures == ["calendar_delays"]
    assert set(study.case_figures) == {
        (figure, case) for figure in ("calendar_clusters", "calendar_trade") for case in ("pair", "parts")
    }
    many = study_of(scenarios=[{**STUDY["scenarios"][0], "name": f"case-{k}"} for k in range(9)])
    assert many.case_figures == []
    assert "calendar_delays" not in many.study_figures
    for name in (*CALENDAR_FIGURES, *CASE_FIGURES, "calendar_means"):
        assert set(caption(name)) == {"title", "text"}
