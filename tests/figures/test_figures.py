"""Figures: they show the numbers of the dataset, come out the same each time, and take labels literally."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.figures import style
from gridsched.figures.characterisation import workload_characterisation
from gridsched.figures.gantt import gantt
from gridsched.figures.style import save
from gridsched.metrics import jobs as metrics
from gridsched.systems.local.figures.load import load_series
from gridsched.systems.local.figures.policies import (
    policies_classes,
    policies_differences,
    policies_distribution,
    policies_means,
    recorded_waits,
)
from gridsched.workloads.characterisation import characterise
from gridsched.workloads.table import Workload

Drawing = tuple[Figure, pd.DataFrame]

ALL_SCHEMES = ["FCFS", "EASY", "SJBF", "LXWF", "conservative", "FF", "EASY(2)", "EASY(4)"]
ODD_LABELS = ["$x_1$", "<b> & co", "_hidden", "two\nlines", "100 % $", "w" * 90, r"\alpha\$", "{}"]

STUDY_FIGURES: list[Callable[..., Drawing]] = [
    policies_means,
    policies_differences,
    policies_distribution,
    policies_classes,
    recorded_waits,
    load_series,
]


def made_up_run(seed: int, factor: float, jobs: int = 150) -> xr.Dataset:
    """Run of jobs that wait for random times, with recorded waits."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.integers(0, 900, jobs))
    run_time = rng.lognormal(6, 2, jobs).astype(np.int64)
    processors = 2 ** rng.integers(0, 6, jobs)
    start = submit + (factor * rng.lognormal(4, 2, jobs) * (rng.random(jobs) < 0.6)).astype(np.int64)
    return xr.Dataset(
        {
            "submit_time": ("job", submit),
            "run_time": ("job", run_time),
            "processors": ("job", processors),
            "start_time": ("job", start),
            "end_time": ("job", start + run_time),
            "recorded_wait_time": ("job", rng.integers(0, 9000, jobs)),
            "segment_job": ("segment", np.arange(jobs)),
            "segment_cluster": ("segment", np.zeros(jobs, np.int64)),
            "segment_processors": ("segment", processors),
            "segment_start": ("segment", start),
            "segment_end": ("segment", start + run_time),
            "cluster_processors": ("cluster", [512]),
        }
    )


def made_up_study(
    workloads: list[str], schemes: list[str], estimates: list[str], *, recorded: bool = True, jobs: int = 150
) -> xr.Dataset:
    """Study dataset; the second workload has no recorded waits, the last scheme only the first estimates."""
    names = [*schemes, *([metrics.RECORDED] if recorded else [])]
    cells: dict[tuple[str, str, str], xr.Dataset] = {}
    for w, workload in enumerate(workloads):
        for s, scheme in enumerate(schemes):
            kinds = estimates if s < len(schemes) - 1 else estimates[:1]
            for e, estimate in enumerate(kinds):
                run = made_up_run(w, 0.2 + 3 * s + e, jobs)
                cells[workload, scheme, estimate] = metrics.summarise(run, bins=20)
        known = metrics.recorded(made_up_run(w, 1.0, jobs))
        if recorded and w != 1 and known is not None:
            cells[workload, metrics.RECORDED, estimates[0]] = metrics.summarise(known, bins=20)
    blank = xr.full_like(next(iter(cells.values())).astype(float), np.nan)
    study = xr.combine_nested(
        [[[cells.get((w, s, e), blank) for e in estimates] for s in names] for w in workloads],
        concat_dim=["workload", "scheme", "estimate"],
        combine_attrs="drop_conflicts",
    ).assign_coords(workload=workloads, scheme=names, estimate=estimates)
    study.attrs["reference"] = schemes[min(1, len(schemes) - 1)]
    reference = study.sel(scheme=study.attrs["reference"], drop=True)
    return study.merge(metrics.difference(study, reference))


@pytest.fixture(scope="module")
def small_study() -> xr.Dataset:
    return made_up_study(["KTH"], ALL_SCHEMES, ["requested"])


@pytest.fixture(scope="module")
def large_study() -> xr.Dataset:
    return made_up_study([f"log {i}" for i in range(8)], ALL_SCHEMES, ["requested", "actual"])


def assert_numbers_of(study: xr.Dataset, numbers: pd.DataFrame, columns: dict[str, str]) -> None:
    """Every row of `numbers` holds what the study holds under its labels, `{metric}_{suffix}` by column."""
    assert len(numbers)
    keys = [key for key in ("workload", "scheme", "estimate", "job_class", "quantile") if key in numbers]
    for row in numbers.to_dict("records"):
        where = {key: row[key] for key in keys}
        if row["scheme"] == metrics.RECORDED:
            where["estimate"] = str(study["estimate"].to_numpy()[0])
        for column, suffix in columns.items():
            expected = study[f"{row['metric']}_{suffix}"].sel(where).item()
            np.testing.assert_equal(row[column], expected)


@pytest.mark.parametrize("size", ["small_study", "large_study"])
def test_means_show_the_numbers_of_the_study(size: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(size)
    _, numbers = policies_means(study)
    everything = study.sel(job_class="all")
    assert_numbers_of(everything, numbers, {"mean": "mean", "low": "mean_low", "high": "mean_high"})
    known = everything[["wait_time_mean", "bounded_slowdown_mean"]].count()
    assert len(numbers) == int(known["wait_time_mean"]) + int(known["bounded_slowdown_mean"])


@pytest.mark.parametrize("size", ["small_study", "large_study"])
def test_differences_show_the_numbers_of_the_study(size: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(size)
    _, numbers = policies_differences(study)
    columns = {"mean": "difference", "low": "difference_low", "high": "difference_high"}
    assert_numbers_of(study.sel(job_class="all"), numbers, columns)
    assert not {"EASY", metrics.RECORDED} & set(numbers["scheme"])
    contains_zero = (numbers["low"] <= 0) & (numbers["high"] >= 0)
    assert (numbers["clear"] == ~contains_zero).all()


@pytest.mark.parametrize("size", ["small_study", "large_study"])
def test_distributions_show_the_quantiles_of_the_study(size: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(size)
    estimate = str(study["estimate"].to_numpy()[-1])
    _, numbers = policies_distribution(study, estimate=estimate)
    assert_numbers_of(study.sel(job_class="all"), numbers[::97], {"value": "quantile"})
    assert set(numbers["estimate"]) == {estimate, ""}


@pytest.mark.parametrize("size", ["small_study", "large_study"])
def test_classes_show_the_numbers_of_the_study(size: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(size)
    _, numbers = policies_classes(study)
    assert_numbers_of(study, numbers, {"mean": "mean"})
    first = numbers[numbers["workload"] == study["workload"].to_numpy()[0]]
    jobs = first.drop_duplicates("job_class").set_index("job_class")["jobs"]
    assert jobs["all"] == jobs.drop("all").sum() == 150


@pytest.mark.parametrize("size", ["small_study", "large_study"])
def test_recorded_waits_show_the_numbers_of_the_study(size: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(size).sel(job_class="all")
    _, numbers = recorded_waits(study.expand_dims(job_class=["all"]))
    assert_numbers_of(study, numbers[numbers["statistic"] == "mean"], {"value": "mean"})
    median = numbers[numbers["statistic"] == "median"].assign(quantile=0.5)
    assert_numbers_of(study, median, {"value": "quantile"})
    assert "log 1" not in set(numbers["workload"])


def test_a_study_without_recorded_waits_gives_a_figure_that_says_so() -> None:
    study = made_up_study(["a"], ["FCFS", "EASY"], ["requested"], recorded=False)
    figure, numbers = recorded_waits(study)
    assert numbers.empty
    assert "recorded" in figure.axes[0].texts[0].get_text()


def test_load_series_shows_the_series_of_one_workload(large_study: xr.Dataset) -> None:
    schemes = ["FCFS", "SJBF"]
    _, numbers = load_series(large_study, workload="log 3", estimate="actual", schemes=schemes)
    assert set(numbers["scheme"]) == set(schemes)
    for scheme in schemes:
        expected = large_study.sel(workload="log 3", estimate="actual", scheme=scheme)
        shown = numbers[numbers["scheme"] == scheme]
        np.testing.assert_array_equal(shown["bin_time"], expected["bin_time"])
        np.testing.assert_array_equal(shown["utilisation"], expected["utilisation_series"])
        np.testing.assert_array_equal(shown["queue_length"], expected["queue_length_series"])


@pytest.mark.parametrize("draw", STUDY_FIGURES)
def test_one_job_a_class_and_empty_classes_can_be_drawn(draw: Callable[..., Drawing]) -> None:
    study = made_up_study(["a", "b"], ["FCFS", "EASY", "SJBF"], ["requested"], jobs=2)
    _, numbers = draw(study)
    assert len(numbers)


@pytest.mark.parametrize("draw", STUDY_FIGURES[:4])
def test_a_workload_without_any_numbers_leaves_a_panel_that_says_so(draw: Callable[..., Drawing]) -> None:
    study = made_up_study(["a", "b"], ["FCFS", "EASY"], ["requested"])
    gap = study.where(study["workload"] != "b")
    figure, numbers = draw(gap)
    assert set(numbers["workload"]) == {"a"}
    assert any("no data" in text.get_text() for axes in figure.axes for text in axes.texts)


@pytest.mark.parametrize("draw", STUDY_FIGURES)
def test_schemes_that_never_make_anyone_wait_can_be_drawn(draw: Callable[..., Drawing]) -> None:
    study = made_up_study(["a"], ["FCFS", "EASY"], ["requested"])
    idle = study.copy()
    for name in study:
        if str(name).startswith(("wait_time", "queue_length")):
            idle[name] = xr.zeros_like(study[name])
        elif str(name).startswith("bounded_slowdown"):
            idle[name] = xr.ones_like(study[name])
    _, numbers = draw(idle)
    assert len(numbers)


@pytest.mark.parametrize(
    ("option", "draw"),
    [
        ("estimate", policies_distribution),
        ("estimate", policies_classes),
        ("job_class", policies_means),
        ("workload", load_series),
    ],
)
def test_an_unknown_label_is_refused_with_the_known_ones(
    option: str, draw: Callable[..., Drawing], small_study: xr.Dataset
) -> None:
    with pytest.raises(ConfigurationError, match=f"no {option} 'nothing'; it has"):
        draw(small_study, **{option: "nothing"})


def texts_of(svg: Path) -> list[str]:
    """Texts of an SVG file; a mathematical formula would come as several or none."""
    elements = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in elements]


@pytest.mark.parametrize("draw", STUDY_FIGURES)
def test_odd_labels_are_written_literally(draw: Callable[..., Drawing], tmp_path: Path) -> None:
    study = made_up_study(["$a_b$ $<c>$", "&amp;"], ODD_LABELS, ["$e^2$", "<i>"])
    svg, _, csv = save(*draw(study), tmp_path / "figure")
    texts = texts_of(svg)
    assert any("$a_b$ $<c>$" in text for text in texts)
    shown = {"$x_1$", "<b> & co", "_hidden", "100 % $", "{}"} - {study.attrs["reference"]}
    assert shown <= set(texts)
    table = pd.read_csv(csv, keep_default_na=False)
    assert set(table["scheme"]) <= {*ODD_LABELS, metrics.RECORDED}


def test_saving_twice_and_drawing_again_give_the_same_bytes(small_study: xr.Dataset, tmp_path: Path) -> None:
    first = policies_means(small_study)
    saved = [
        [path.read_bytes() for path in save(*drawing, tmp_path / name)]
        for name, drawing in (("a", first), ("b", first), ("c", policies_means(small_study)))
    ]
    assert saved[0] == saved[1] == saved[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{suffix}" for name in "abc" for suffix in ("svg", "png", "csv")
    )


def test_the_csv_holds_the_numbers_exactly(small_study: xr.Dataset, tmp_path: Path) -> None:
    figure, numbers = policies_means(small_study)
    _, _, csv = save(figure, numbers, tmp_path / "means of v1.2")
    assert csv.name == "means of v1.2.csv"
    again = pd.read_csv(csv, keep_default_na=False, na_values={"low": "", "high": ""})
    pd.testing.assert_frame_equal(again, numbers, check_dtype=False)


def test_settings_of_the_user_change_nothing_and_stay(small_study: xr.Dataset, tmp_path: Path) -> None:
    plain = save(*policies_means(small_study), tmp_path / "plain")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        other = save(*policies_means(small_study), tmp_path / "other")
        assert matplotlib.rcParams["font.size"] == 30
    assert [path.read_bytes() for path in plain] == [path.read_bytes() for path in other]


def test_a_scheme_keeps_its_style_in_every_study_figure() -> None:
    styles = style.scheme_styles([*ALL_SCHEMES, metrics.RECORDED])
    assert len({look.color for look in styles.values()}) == len(styles)
    assert len({look.marker for look in styles.values()}) == len(styles)
    assert style.scheme_styles(ALL_SCHEMES[:3])["EASY"] == styles["EASY"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (1, "1 s"),
        (90, "1.5 min"),
        (7200, "2 h"),
        (-86400, "\N{MINUS SIGN}1 d"),
        (999.96, "16.7 min"),
    ],
)
def test_durations_have_the_largest_fitting_unit(seconds: float, text: str) -> None:
    assert style.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (12.34, "12.3"),
        (999.9, "1k"),
        (1234, "1.23k"),
        (0.05, "0.05"),
        (1e-6, "1e\N{MINUS SIGN}06"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert style.number(value) == text


# --- Gantt charts ---------------------------------------------------------------------------------


def placed(
    submit: list[int], run: list[int], processors: list[int], start: list[int], size: int = 8
) -> xr.Dataset:
    """Run dataset of a small schedule on one cluster."""
    begins, runs = np.array(start, np.int64), np.array(run, np.int64)
    chosen = np.flatnonzero(begins >= 0)
    return xr.Dataset(
        {
            "submit_time": ("job", np.array(submit, np.int64)),
            "run_time": ("job", runs),
            "processors": ("job", np.array(processors, np.int64)),
            "start_time": ("job", begins),
            "end_time": ("job", np.where(begins >= 0, begins + runs, -1)),
            "segment_job": ("segment", chosen),
            "segment_cluster": ("segment", np.zeros_like(chosen)),
            "segment_processors": ("segment", np.array(processors, np.int64)[chosen]),
            "segment_start": ("segment", begins[chosen]),
            "segment_end": ("segment", (begins + runs)[chosen]),
            "cluster_processors": ("cluster", [size]),
        },
        {"job_number": ("job", np.arange(1, len(submit) + 1)), "cluster": ["<machine> $1$"]},
    )


def test_a_job_that_no_gap_holds_is_split() -> None:
    run = placed([0, 0, 0, 1], [10, 30, 10, 5], [3, 2, 3, 6], [0, 0, 0, 10])
    _, numbers = gantt(run)
    last = numbers[numbers["job_number"] == 4]
    assert last[["first_processor", "processors"]].to_numpy().tolist() == [[0, 3], [5, 3]]
    assert (last["start_time"] == 10).all()


@settings(deadline=None, max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30), st.integers(1, 8)), min_size=1, max_size=12)
)
def test_rectangles_never_overlap_and_hold_all_processors(jobs: list[tuple[int, int, int]]) -> None:
    submit, run_time, processors = (list(column) for column in zip(*jobs, strict=True))
    busy = np.zeros(2000, np.int64)
    start = []
    for submitted, duration, wanted in jobs:
        begin = next(t for t in range(submitted, 1500) if (busy[t : t + duration] + wanted <= 8).all())
        busy[begin : begin + duration] += wanted
        start.append(begin)
    _, numbers = gantt(placed(submit, run_time, processors, start))
    grid = np.zeros((8, 2000), np.int64)
    for row in numbers.to_dict("records"):
        first, last = row["first_processor"], row["first_processor"] + row["processors"]
        grid[first:last, row["start_time"] : row["end_time"]] += 1
    assert grid.max() <= 1
    np.testing.assert_array_equal(grid.sum(axis=0), busy)
    drawn = numbers.groupby("job_number")["processors"].sum()
    assert drawn.tolist() == processors


def test_jobs_without_run_time_leave_the_machine_to_others() -> None:
    _, numbers = gantt(placed([0, 0, 0], [5, 0, 4], [8, 3, 8], [0, 5, 5]))
    assert numbers.groupby("job_number")["processors"].sum().tolist() == [8, 3, 8]


def test_gantt_charts_of_grids_and_rejected_jobs(tmp_path: Path) -> None:
    run = placed([0, 3, 5], [10, 10, 10], [8, 2, 4], [0, -1, 6])
    grid = run.drop_dims("cluster").assign(cluster_processors=("cluster", [8, 4]))
    grid["segment_cluster"] = ("segment", np.array([0, 1]))
    grid = grid.assign_coords(cluster=["_north", "$s_1$"])
    figure, numbers = gantt(grid)
    assert numbers["cluster"].tolist() == ["_north", "$s_1$"]
    svg, *_ = save(figure, numbers, tmp_path / "gantt")
    assert {"_north", "$s_1$", "1", "2", "3"} <= set(texts_of(svg))


def test_gantt_charts_show_reservations(tmp_path: Path) -> None:
    """Job 2 waits for job 1, which is expected to end at 20 and ends at 10."""
    workload = gs.Workload(
        name="example",
        submit_time=np.array([0, 1]),
        run_time=np.array([10, 10]),
        requested_time=np.array([20, 10]),
        requested_processors=np.array([3, 3]),
    )
    for policy, said in (("easy", True), ("fcfs", False)):
        svg, *_ = save(*gantt(gs.simulate(workload, gs.Cluster(processors=4), policy)), tmp_path / policy)
        text = "job 2: at 1 s reserved for 20 s; starts 10 s earlier"
        assert (text in svg.read_text(encoding="utf-8")) is said


def test_gantt_charts_refuse_what_they_cannot_show() -> None:
    many = placed([0] * 61, [1] * 61, [1] * 61, list(range(61)))
    with pytest.raises(ConfigurationError, match=r"at most 60 jobs, this run has 61"):
        gantt(many)
    with pytest.raises(ConfigurationError, match="not a valid schedule"):
        gantt(placed([0, 0], [5, 5], [5, 5], [0, 0]))


# --- workloads ------------------------------------------------------------------------------------


def made_up_workload(jobs: int = 300, **more: object) -> Workload:
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "submit_time": np.cumsum(rng.integers(0, 9000, jobs)),
        "run_time": rng.lognormal(6, 2, jobs).astype(np.int64),
        "requested_processors": 2 ** rng.integers(0, 9, jobs),
    }
    return Workload(name="log <1> $x$", processors_available=512, **{**columns, **more})


@pytest.mark.parametrize("jobs", [1, 300])
def test_a_workload_is_drawn_with_the_numbers_of_its_characterisation(jobs: int, tmp_path: Path) -> None:
    workload = made_up_workload(
        jobs, requested_time=np.full(jobs, 3600), unix_start_time=10**9, time_zone="Europe/Stockholm"
    )
    described = characterise(workload)
    figure, numbers = workload_characterisation(described)
    for name, rows in numbers.groupby("variable"):
        np.testing.assert_array_equal(rows["value"], described[str(name)])
    texts = texts_of(save(figure, numbers, tmp_path / "workload")[0])
    assert any(text.startswith("log <1> $x$") for text in texts)
    assert any("Europe/Stockholm" in text for text in texts)


def test_panels_say_what_a_log_does_not_know(tmp_path: Path) -> None:
    drawing = workload_characterisation(characterise(made_up_workload()))
    texts = " ".join(texts_of(save(*drawing, tmp_path / "workload")[0]))
    assert "no requested times in this log" in texts
    assert "start of the workload is not known" in texts
