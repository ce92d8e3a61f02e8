"""Figures and page of studies of dynamic grids: they show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched.experiments.captions import caption
from gridsched.figures import style
from gridsched.presentation.page import build_report
from gridsched.replication import times_interval
from gridsched.systems.dynamic_grid.figures import numbers as dynamic_numbers
from gridsched.systems.dynamic_grid.figures.overview import DYNAMIC_FIGURES
from gridsched.systems.dynamic_grid.study.config import DynamicGridStudy
from tests.support.pages import Page
from tests.support.studies import read_page, run_study
from tests.systems.dynamic_grid.test_study import SEED, STUDY, write_inputs

NASTY = """</p><script>alert("1")</script> & {{ 7 * 7 }} $x_1$"""
SWEEPS: list[dict[str, Any]] = [
    *STUDY["sweeps"],
    {
        "name": "locality",
        "factor": "overhead",
        "values": [1.0, 4.0],
        "among": {"graph": ["chain", "complete"]},
    },
    {"name": "churn-more", "factor": "mean_stay", "values": [40_000, 400_000]},
    {"name": "patience", "factor": "delta_t", "values": [0, 5000, None]},
    {"name": "moved", "factor": "migration", "values": [False], "among": {"checkpoint": [True, False]}},
]


@pytest.fixture(scope="module")
def configuration() -> DynamicGridStudy:
    return DynamicGridStudy.model_validate(
        {**STUDY, "title": NASTY, "description": "Sites share.", "sweeps": SWEEPS}
    )


@pytest.fixture(scope="module")
def results(configuration: DynamicGridStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a small study and all its figures."""
    folder = tmp_path_factory.mktemp("results")
    write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_study(configuration, folder, SEED, shown=True)
    return folder


@pytest.fixture(scope="module")
def study(results: Path) -> xr.Dataset:
    return xr.load_dataset(results / "tiny" / "study.nc")


# --- numbers --------------------------------------------------------------------------------------


def test_cases_that_belong_together(study: xr.Dataset) -> None:
    assert dynamic_numbers.differing_in(study, "graph") == [
        *("default", "graph isolated", "graph some", "graph complete"),
    ]
    assert dynamic_numbers.counterpart(study, "policy easy, overhead 2") == "policy easy"
    assert dynamic_numbers.counterpart(study, "graph complete, overhead 4") == "default"
    assert dynamic_numbers.sweeps_of(study)["churn"] == "mean_stay"
    assert dynamic_numbers.is_numeric(study, "patience")
    assert not dynamic_numbers.is_numeric(study, "graphs")
    assert not dynamic_numbers.is_numeric(study, "moved")


def test_relative_needs_the_same_jobs(study: xr.Dataset) -> None:
    pairs = {"stream no": "default", "overhead 2": "default"}
    rows = dynamic_numbers.relative(study, pairs, ["sites", "grid", "all"])
    assert rows[["case", "group"]].to_numpy().tolist() == [
        ["stream no", "sites"],
        *(["overhead 2", group] for group in ("sites", "grid", "all")),
    ]
    ours, base = (
        study["response_time_by_week"].sel(case=case, group="all").values
        for case in ("overhead 2", "default")
    )
    expected = times_interval(ours, base)
    np.testing.assert_allclose(
        rows.loc[3, ["mean", "low", "high"]].astype(float), [float(bound) for bound in expected]
    )


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(DYNAMIC_FIGURES))
def test_every_figure_has_numbers(study: xr.Dataset, name: str) -> None:
    figure, numbers = DYNAMIC_FIGURES[name](study)
    assert len(numbers)
    assert figure.get_size_inches()[0] == style.WIDTH
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "nan" not in " ".join(texts)


def test_map_shows_all_work(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_map"](study)
    part = numbers[numbers["case"] == "graph complete"]
    flow = study["flow_work"].sel(case="graph complete").isel(replicate=0)
    assert part["work"].sum() == pytest.approx(float(flow.sum()))
    assert part.groupby("users")["share"].sum().to_numpy() == pytest.approx(1.0)
    row = part[(part["users"] == "west") & (part["cluster"] == "north")].iloc[0]
    assert row["work"] == float(flow.sel(users="west", cluster="north"))
    assert row["links"] == 1
    chain = numbers[numbers["case"] == "default"].set_index(["users", "cluster"])["links"]
    assert chain["west", "north"] == 0
    assert chain["south", "north"] == 1


def test_sites_show_the_factors_of_the_study(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_sites"](study)
    assert set(numbers["case"]) == {"default", "graph complete", "policy easy"}
    place = {"case": "policy easy", "group": "south"}
    rows = numbers[(numbers["case"] == place["case"]) & (numbers["group"] == place["group"])]
    row = rows[rows["metric"] == "bounded_slowdown"].iloc[0]
    for column, end in (("mean", ""), ("low", "_low"), ("high", "_high")):
        assert row[column] == float(study[f"bounded_slowdown_factor{end}"].sel(place))


def test_joining_shows_own_users_others_and_work(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_joining"](study)
    rows = numbers[(numbers["site"] == "west") & (numbers["line"] == "policy easy")]
    for party in ("own", "others"):
        mean = float(rows.loc[rows["party"] == party, "mean"].iloc[0])
        found = study["response_time_joining_factor"].sel(case="policy easy, without west", party=party)
        assert mean == float(found)
    given = numbers[(numbers["metric"] == "work_given") & (numbers["site"] == "west")]["mean"].iloc[0]
    part = study.sel(case="default").isel(replicate=0)
    assert given == pytest.approx(float(part["work_given"].sel(cluster="west")) / 6 / float(part["makespan"]))


def test_lines_are_relative_to_the_default_case(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_overhead"](study)
    assert set(numbers["sweep"]) == {"overhead", "locality"}
    own = numbers[(numbers["case"] == "default") & (numbers["group"] == "sites")]
    assert (own[["mean", "low", "high"]] == 1).all(axis=None)
    easy = numbers[numbers["case"] == "policy easy, overhead 2"]
    assert set(easy["relative_to"]) == {"policy easy"}
    _, churn = DYNAMIC_FIGURES["dynamic_churn"](study)
    assert churn["text"].drop_duplicates().tolist() == ["none", "40000", "400000"]
    figure, patience = DYNAMIC_FIGURES["dynamic_sweeps"](study)
    assert set(patience["factor"]) == {"delta_t", "grid_share"}
    labels = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    assert "\N{INFINITY}" in labels


def test_names_of_lines_say_what_differs() -> None:
    lines = ["mean_stay 86400, heed_leases no", "mean_stay 86400, heed_leases yes"]
    assert list(dynamic_numbers.line_names(lines).values()) == ["heed leases: no", "heed leases: yes"]
    lines = ["graph ring, policy fcfs", "graph ring, policy easy", "graph complete, policy fcfs"]
    assert list(dynamic_numbers.line_names(lines).values()) == ["ring, fcfs", "ring, easy", "complete, fcfs"]
    assert dynamic_numbers.line_names([""]) == {"": ""}


def test_variants_show_each_change_once(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_variants"](study)
    assert not numbers.duplicated(["case", "group"]).any()
    assert {"graph complete", "stream no", "migration no, checkpoint no"} <= set(numbers["case"])
    assert "default" not in set(numbers["case"])


def test_departure_shows_one_site(study: xr.Dataset) -> None:
    _, numbers = DYNAMIC_FIGURES["dynamic_departure"](study)
    assert set(numbers["site"]) == {"south"}
    assert set(numbers["use"]) == {"local", "grid", "held", "proxies"}
    used = numbers[numbers["use"] != "proxies"].groupby("time")["processors"].sum()
    assert used.max() <= 8


@pytest.mark.parametrize("name", ["dynamic_joining", "dynamic_overhead", "dynamic_churn", "dynamic_variants"])
def test_figures_say_why_they_are_empty(study: xr.Dataset, name: str) -> None:
    figure, numbers = DYNAMIC_FIGURES[name](study.isel(sweep=[]))
    assert numbers.empty
    assert [text.get_text() for text in figure.axes[0].texts]


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(configuration: DynamicGridStudy, results: Path) -> Page:
    build_report([configuration], results / "report.html")
    return read_page(results / "report.html")


def test_the_page_is_well_formed_and_takes_text_literally(page: Page) -> None:
    assert page.open == []
    assert page.foreign == []
    assert NASTY in page.text
    assert "nan" not in page.words.lower().split()


def test_the_page_has_every_figure_with_its_caption(page: Page, configuration: DynamicGridStudy) -> None:
    names = configuration.study_figures
    assert len(names) == len(page.attributes("src")) == 8
    for name in names:
        assert caption(name)["text"] in page.words


def test_the_page_answers_the_questions(page: Page, study: xr.Dataset) -> None:
    for question in (
        "What do local users lose, and what do grid users gain?",
        "What do the grid's own users cost the users of the clusters?",
        "What is each graph worth?",
        "When does locality cost more than it brings?",
        "What does each cluster gain or lose by joining?",
        "How does the grid degrade under churn?",
        "What are migration and checkpoints worth, and how does a superscheduler do?",
    ):
        assert question in page.words, question
    part = study.sel(case="default", group="north")
    shown = style.duration(float(part["group_response_time_mean"]))
    factor = style.number(float(part["response_time_factor"]))
    alone = style.duration(float(study["alone_response_time_mean"].sel(policy="fcfs", group="north")))
    assert f"north {alone} {shown}" in page.words
    assert factor in page.words
    assert "kill and restart: chain, fcfs" in page.words
    assert "complete, overhead 4, fcfs" in page.words
    assert "mean stay 11.1 h" in page.words


def test_the_page_says_what_was_run(page: Page, study: xr.Dataset) -> None:
    jobs = int(study["jobs_submitted"].sum())
    assert f"jobs {jobs:,}" in page.words
    assert f"cases {study.sizes['case']}" in page.words
    assert "overhead 1.25, delta_t 300" in page.words
    assert "of which submitted to the grid (guests)" in page.words
    assert "tiny/runs.csv" in page.words


def test_a_study_of_little_has_a_page(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(results)
    bare = DynamicGridStudy.model_validate(
        {
            **STUDY,
            "name": "bare",
            "scenarios": [{**STUDY["scenarios"][0], "stream": None}],
            "sweeps": [],
            "departure": None,
            "replicates": 1,
        }
    )
    run_study(bare, tmp_path, SEED, shown=True)
    build_report([bare], tmp_path / "report.html")
    parsed = read_page(tmp_path / "report.html")
    assert "What do local users lose" in parsed.words
    assert "under churn" not in parsed.words
