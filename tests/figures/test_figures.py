"""Figures: they show the numbers of the dataset, come out the same each time, and take labels literally."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.figures import style
from gridsched.figures.characterisation import workload_characterisation
from gridsched.figures.gantt import gantt
from gridsched.figures.style import save
from gridsched.metrics import jobs as metrics
from gridsched.workloads.characterisation import characterise
from gridsched.workloads.table import Workload
from tests.support.errors import each_refused, says
from tests.support.legibility import texts_of

ALL_SCHEMES = ["FCFS", "EASY", "SJBF", "LXWF", "conservative", "FF", "EASY(2)", "EASY(4)"]


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
    _, numbers = gantt(placed([0, 0, 0, 1], [10, 30, 10, 5], [3, 2, 3, 6], [0, 0, 0, 10]))
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
    assert numbers.groupby("job_number")["processors"].sum().tolist() == processors


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
    each_refused(
        (ConfigurationError, r"at most 60 jobs, this run has 61", lambda: gantt(many)),
        (ConfigurationError, "not a valid schedule", lambda: gantt(placed([0, 0], [5, 5], [5, 5], [0, 0]))),
    )


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
    says(
        " ".join(texts_of(save(*drawing, tmp_path / "workload")[0])),
        "no requested times in this log",
        "start of the workload is not known",
    )
