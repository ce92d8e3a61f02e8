"""Figures and page of studies of self-scheduling: they show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.captions import caption
from gridsched.experiments.parts import Window
from gridsched.figures import panels, style
from gridsched.figures.prediction import PREDICTION_FIGURES
from gridsched.figures.style import save
from gridsched.prediction import PredictorOptions, evaluate, stack_workloads
from gridsched.presentation.page import build_report
from gridsched.replication import times_interval
from gridsched.results import provenance
from gridsched.systems.jscheduler import figures as self_scheduling
from gridsched.systems.jscheduler.figures import SELF_SCHEDULING_FIGURES
from gridsched.systems.jscheduler.study.config import SelfSchedulingStudy
from tests.support.legibility import assert_legible, shown_texts, texts_of
from tests.support.pages import Page
from tests.support.prediction import busy_log
from tests.support.studies import draw, read_page

Drawing = tuple[Figure, pd.DataFrame]

CENTRES = ["NASA", "CTC-SP2", "KTH-SP2", "SDSC-SP2", "SDSC-DS"]
PROCESSORS = [128, 512, 100, 128, 184]
CPU_FACTORS = [4.0, 2.0, 4.0, 4.0, 5.0]
LOADS = {
    "multiply": [1.9, 1.1, 2.9, 3.0, 17.7],
    "divide": [0.12, 0.28, 0.18, 0.19, 0.71],
    "none": [0.47, 0.55, 0.72, 0.75, 3.5],
}
PAPER = {
    "wait_time_mean": [232.45, 5249.0, 8864.0, 116.12, np.nan],
    "wait_time_p95": [2133.0, 29586.0, 54222.0, 1233.0, np.nan],
    "slowdown_mean": [2.43, 7.76, 74.46, 1.45, np.nan],
    "slowdown_p95": [10.43, 39.01, 571.5, 4.22, np.nan],
}
ABSENT = {"Atlas": "no checksum of the log is registered", "$SDSC_1$ <b>": "no log is named"}
KS = (1, 2, 4, 8, 16, 55)
ESTIMATES = ("predicted", "requested", "actual", "retrained")
METRICS = ("wait", "slowdown", "queued-jobs", "work-left")
MEASURES = {"wait_time": 9000.0, "slowdown": 90.0, "bounded_slowdown": 40.0}
WEEKS = 34


def was_run(factor: str, mode: str, estimates: str, metric: str, k: int) -> bool:
    """Which runs the made-up study has."""
    if factor != "divide":
        return (
            mode == "plan" and estimates == "predicted" and metric in ("wait", "slowdown") and k in (1, 4, 16)
        )
    if mode == "exact":
        return estimates == "predicted" and metric in ("wait", "slowdown") and k in (1, 2, 4, 8, 16, 55)
    if estimates == "retrained":
        return metric == "wait" and k in (1, 8, 10, 55)
    return estimates == "predicted" or metric in ("wait", "slowdown")


def gain_of(factor: str, mode: str, estimates: str, metric: str, k: int) -> float:
    """How many times better a made-up run is than the original scenario, about as the paper has it."""
    if metric in ("queued-jobs", "work-left"):
        return float(0.5 * k ** (0.3 if metric == "work-left" else 0.2))
    base = float(0.6 * k ** (0.95 if metric == "slowdown" else 0.8))
    tilt = {"predicted": 1.0, "requested": 0.8, "actual": 1.4, "retrained": 0.93}[estimates]
    return base * tilt * (1.08 if mode == "exact" and k > 1 else 1.0) * (1.0 if factor == "divide" else 12.0)


def made_up_study(
    factors: Sequence[str] = ("divide", "multiply"),
    ks: Sequence[int] = KS,
    *,
    weeks: int = WEEKS,
    seed: int = 1,
) -> xr.Dataset:
    """Study of self-scheduling in which means and intervals follow from the sums by week."""
    rng = np.random.default_rng(seed)
    labels: dict[str, list[Any]] = {
        "factor": list(factors),
        "mode": ["plan", "exact"],
        "estimates": list(ESTIMATES),
        "metric": list(METRICS),
        "k": list(ks),
    }
    run, shape = tuple(labels), tuple(map(len, labels.values()))
    known = np.array([was_run(*each) for each in product(*labels.values())]).reshape(shape)
    gain = np.array([gain_of(*each) for each in product(*labels.values())]).reshape(shape)
    gain[~known] = np.nan
    jobs = rng.integers(500, 4000, (len(factors), weeks)).astype(np.float64)
    facts = {"factor": len(factors), "estimates": len(ESTIMATES), "centre": len(CENTRES), "week": weeks}
    by_centre = np.geomspace(0.05, 20, len(CENTRES))
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {"jobs_by_week": (("factor", "week"), jobs)}
    for measure, size in MEASURES.items():
        original = size * jobs[:, None] * rng.lognormal(0, 0.8, (1, facts["estimates"], weeks))
        noise = rng.lognormal(0, 0.25, (*shape, weeks))
        sums = original[:, None, :1, None, None] / gain[..., None] * noise
        # With one resource there is nothing to choose by.
        sums[..., 0, :] = sums[:, :, :, :1, 0, :] if ks[0] == 1 else sums[..., 0, :]
        sums = np.where(known[..., None], sums, np.nan)
        total = jobs.sum(axis=1)
        variables[f"original_{measure}_by_week"] = (("factor", "estimates", "week"), original)
        variables[f"original_{measure}_mean"] = (
            ("factor", "estimates"),
            original.sum(axis=-1) / total[:, None],
        )
        variables[f"{measure}_by_week"] = ((*run, "week"), sums)
        means = sums.sum(axis=-1) / total[:, None, None, None, None]
        variables[f"{measure}_mean"] = (run, means)
        reference = original[:, 1][:, None, None, None, None, :]
        for suffix, values in zip(("", "_low", "_high"), times_interval(reference, sums), strict=True):
            variables[f"{measure}_improvement{suffix}"] = (run, np.where(known, values, np.nan))
        variables[f"{measure}_improvement_centres"] = (run, np.where(known, 0.8 * gain, np.nan))
        variables[f"{measure}_improvement_light"] = (run, np.where(known, 0.5 * gain, np.nan))
        variables[f"{measure}_first_k"] = (run[:4], np.where(known.any(axis=-1), 2.0, np.nan))
        for statistic, times in (("mean", 1.0), ("p95", 5.0)):
            name = f"{measure}_{statistic}_by_centre"
            floor = 0.0 if measure == "wait_time" else 1.0
            variables[name] = ((*run, "centre"), floor + means[..., None] * by_centre * times)
            own = variables[f"original_{measure}_mean"][1][..., None] * by_centre[::-1] * times
            variables[f"original_{name}"] = (("factor", "estimates", "centre"), floor + own)
    counts = np.where(known, np.array(ks) * jobs.sum(), np.nan)
    shares = np.where(known, 0.9 - 0.1 * np.log10(np.array(ks)), np.nan)
    shares[:, :, 1:] = np.nan
    by_factor = ("factor", "centre")
    full = np.ones((len(factors), len(CENTRES)))
    variables |= {
        "queries": (run, counts),
        "corrections": (run, counts / 100),
        "makespan": (run, np.where(known, 2.2e7, np.nan)),
        "predictions_on_unfinished": (run, shares),
        "predictions_unfinished_share": (run, shares / 4),
        "jobs": (by_factor, full * [3000, 41000, 12000, 20000, 1_234_567]),
        "jobs_rejected": (by_factor, full * [0, 0, 0, 0, 17]),
        "jobs_rejected_original": (by_factor, full * [0, 0, 3, 0, 1701]),
        "requested_times_cut": (by_factor, full * [0, 0, 0, 2, 0]),
        "offered_load": (by_factor, np.array([LOADS[factor] for factor in factors])),
        "offered_load_by_reading": (("reading", "centre"), np.array(list(LOADS.values()))),
        "processors": (("centre",), np.array(PROCESSORS)),
        "cpu_factor": (("centre",), np.array(CPU_FACTORS)),
        "local_policy": (("centre",), np.array(["sjbf", "easy", "easy", "lxwf", "easy"])),
        "log": (
            ("centre",),
            np.array(["NASA-iPSC-1993", "CTC-SP2-1996", "KTH-SP2-1996", "SDSC-SP2-1998", ""]),
        ),
        "left_out": (("centre", "left_out_reason"), np.array([[0, 0]] * 4 + [[12, 3456]])),
        "repaired": (("centre", "repaired_reason"), np.array([[0]] * 4 + [[7]])),
        "acknowledgement": (("centre",), np.array(["Bill Nitzberg", "", "", "", "<img src=x> & co"])),
        "workload_checksum": (("centre",), np.array([letter * 64 for letter in "abcde"])),
        "jobs_without_requested_time": (("centre",), np.array([3000, 0, 0, 0, 5])),
        "absent": (("resource_centre",), np.array([""] * len(CENTRES) + list(ABSENT.values()))),
        **{f"paper_{name}": (("centre",), np.array(values)) for name, values in PAPER.items()},
    }
    coords = {
        **labels,
        "centre": CENTRES,
        "week": np.arange(weeks),
        "resource_centre": [*CENTRES, *ABSENT],
        "reading": list(LOADS),
        "left_out_reason": ["queue 2", "after the window"],
        "repaired_reason": ["out of order"],
    }
    attributes = {"title": "made up", "study": "tiny", "configuration_hash": "0" * 64, "months": 8}
    return xr.Dataset(variables, coords, attributes)


RUN = ["factor", "mode", "estimates", "metric", "k"]


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return made_up_study()


@pytest.fixture(scope="module")
def drawings(study: xr.Dataset) -> dict[str, Drawing]:
    """All figures of the made-up study."""
    return {name: make(study) for name, make in SELF_SCHEDULING_FIGURES.items()}


def at(study: xr.Dataset, name: str, row: Any, **other: Any) -> float:
    """Value of a variable for the run of a row."""
    labels = {key: getattr(row, key) for key in RUN} | other
    values = study[name]
    return float(values.sel({key: label for key, label in labels.items() if key in values.dims}))


# --- improvement ----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["bounded_slowdown", "wait_time"])
def test_improvements_are_those_of_the_dataset(
    study: xr.Dataset, drawings: dict[str, Drawing], measure: str
) -> None:
    _, numbers = drawings[f"improvement_{measure}"]
    for row in panels.each_row(numbers):
        assert row.mean == at(study, f"{measure}_improvement", row)
        assert [row.low, row.high] == [
            at(study, f"{measure}_improvement_{side}", row) for side in ("low", "high")
        ]
        means = [
            at(study, name, row, estimates=estimates)
            for name, estimates in (
                (f"original_{measure}_mean", "requested"),
                (f"{measure}_mean", row.estimates),
            )
        ]
        assert row.mean == pytest.approx(means[0] / means[1])
    runs = study["wait_time_mean"].sel(estimates="predicted")
    assert len(numbers) == int(runs.notnull().sum()) == len(numbers.drop_duplicates(RUN))
    assert set(numbers["estimates"]) == {"predicted"}


def test_every_reading_has_a_panel_with_a_line_a_metric(drawings: dict[str, Drawing]) -> None:
    figure, numbers = drawings["improvement_wait_time"]
    assert [axes.get_title("left") for axes in figure.axes] == [
        "run time \N{DIVISION SIGN} CPU factor",
        "run time \N{MULTIPLICATION SIGN} CPU factor",
    ]
    for axes, factor in zip(figure.axes, ("divide", "multiply"), strict=True):
        planned = numbers[(numbers["factor"] == factor) & (numbers["mode"] == "plan")]
        curves = {
            tuple(np.asarray(line.get_ydata())): line for line in axes.lines if np.size(line.get_xdata()) > 2
        }
        for metric, rows in planned.groupby("metric"):
            rows = rows.sort_values("k")
            line = curves[tuple(rows["mean"])]
            assert np.asarray(line.get_xdata()).tolist() == list(rows["k"])
            assert (line.get_linestyle() == "-") == (metric in ("wait", "slowdown"))
        assert [1, 1] in [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def test_exact_starts_are_hollow_markers_in_the_colour_of_their_line(drawings: dict[str, Drawing]) -> None:
    figure, numbers = drawings["improvement_bounded_slowdown"]
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    exact = numbers[numbers["mode"] == "exact"]
    assert {tuple(np.asarray(line.get_ydata())) for line in hollow} == {
        tuple(rows.sort_values("k")["mean"]) for _, rows in exact.groupby("metric")
    }
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert {to_hex(line.get_color()) for line in hollow} <= {to_hex(line.get_color()) for line in lines}
    assert all(line.get_linestyle() == "None" for line in hollow)
    assert "exact predicted starts" in [text for text, _ in shown_texts(figure)]


def test_many_values_are_a_line_without_markers() -> None:
    figure, _ = self_scheduling.improvement_wait_time(made_up_study(["divide"], range(1, 56)))
    long = [line for line in figure.axes[0].lines if np.size(line.get_xdata()) == 55]
    assert len(long) == 4
    assert {line.get_marker() for line in long} == {""}
    ticks = [tick for tick in figure.axes[0].get_xticks() if 1 <= tick <= 55]
    assert ticks == [1, 2, 5, 10, 20, 50]


def test_other_estimates_can_be_looked_at(study: xr.Dataset) -> None:
    _, numbers = self_scheduling.improvement_wait_time(study, estimates="actual")
    assert set(numbers["estimates"]) == {"actual"}
    without = study.sel(estimates=["requested", "actual"])
    assert set(self_scheduling.improvement_wait_time(without)[1]["estimates"]) == {"requested"}
    with pytest.raises(ConfigurationError, match="no estimates 'guessed'; it has predicted, requested"):
        self_scheduling.improvement_wait_time(study, estimates="guessed")


# --- estimates and predictions --------------------------------------------------------------------


def test_worth_of_estimates_is_shown_where_they_differ(
    study: xr.Dataset, drawings: dict[str, Drawing]
) -> None:
    figure, numbers = drawings["prediction_worth"]
    assert set(numbers["factor"]) == {"divide"}
    assert set(numbers["metric"]) == {"wait", "slowdown"}
    assert set(numbers["mode"]) == {"plan"}
    by_metric = numbers.groupby("metric")["estimates"].unique()
    assert set(by_metric["wait"]) == {"predicted", "requested", "actual", "retrained"}
    assert set(by_metric["slowdown"]) == {"predicted", "requested", "actual"}
    for row in panels.each_row(numbers):
        assert row.mean == at(study, f"{row.measure}_improvement", row)
    assert [axes.get_title("left") for axes in figure.axes] == ["LWT", "LSLD"] * 2


def test_exact_starts_are_compared_with_planned_ones_where_both_were_run(
    study: xr.Dataset, drawings: dict[str, Drawing]
) -> None:
    _, numbers = drawings["plan_and_exact"]
    assert len(numbers) == 2 * 2 * len(KS)
    for row in panels.each_row(numbers):
        exact, planned = (
            study[f"{row.measure}_by_week"].sel(
                factor=row.factor, mode=mode, estimates="predicted", metric=row.metric, k=row.k
            )
            for mode in ("exact", "plan")
        )
        assert row.mean == pytest.approx(float(exact.sum() / planned.sum()))
        interval = times_interval(exact.values, planned.values)
        np.testing.assert_allclose([row.low, row.high], [interval.low, interval.high])


def test_retraining_is_compared_with_predictions_made_before(
    study: xr.Dataset, drawings: dict[str, Drawing]
) -> None:
    _, numbers = drawings["retraining_effect"]
    ratios = numbers[numbers["measure"].isin(["wait_time", "bounded_slowdown"])]
    assert set(ratios["k"]) == {1, 8, 55}
    assert set(ratios["metric"]) == {"wait"}
    for row in panels.each_row(ratios):
        values = study[f"{row.measure}_mean"].sel(factor=row.factor, mode=row.mode, metric="wait", k=row.k)
        ratio = float(values.sel(estimates="retrained") / values.sel(estimates="predicted"))
        assert row.mean == pytest.approx(ratio)
    shares = numbers[~numbers.index.isin(ratios.index)]
    assert set(shares["measure"]) == {"predictions_on_unfinished", "predictions_unfinished_share"}
    assert set(shares["k"]) == set(KS)
    for row in panels.each_row(shares):
        assert row.estimates == "predicted"
        assert row.mean == at(study, str(row.measure), row)


def test_what_was_not_run_is_said(study: xr.Dataset) -> None:
    planned = study.sel(mode=["plan"], estimates=["predicted"])
    texts = {
        "plan_and_exact": "no runs of both kinds, exact and plan",
        "retraining_effect": "no runs of both kinds, retrained and predicted",
        "prediction_worth": "no runs that differ in their estimates only",
    }
    for name, text in texts.items():
        figure, numbers = SELF_SCHEDULING_FIGURES[name](planned)
        assert numbers.empty
        assert [each.get_text() for each in figure.axes[0].texts] == [text]
    apart = study.where((study["mode"] == "plan") ^ (study["k"] == 4))
    assert SELF_SCHEDULING_FIGURES["plan_and_exact"](apart)[1].empty


def test_ratios_that_differ_in_their_fourth_digit_have_ticks_of_their_own(study: xr.Dataset) -> None:
    near = study.copy(deep=True)
    for measure in ("wait_time", "bounded_slowdown"):
        sums = near[f"{measure}_by_week"]
        sums.loc[{"mode": "exact"}] = sums.sel(mode="plan") * (1 + near["k"] / 1e5)
    figure, _ = self_scheduling.plan_and_exact(near)
    for axes in figure.axes:
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert len(set(labels)) == len(labels) > 2


# --- centres --------------------------------------------------------------------------------------


def test_centres_are_shown_as_published_alone_and_in_the_grid(
    study: xr.Dataset, drawings: dict[str, Drawing]
) -> None:
    figure, numbers = drawings["centre_table"]
    assert set(numbers["source"]) == {"paper", "original scenario", "K = 8", "K = 55"}
    runs = study.sel(factor="divide", mode="plan", estimates="predicted")
    alone = study.sel(factor="divide", estimates="requested")
    for row in panels.each_row(numbers):
        name = f"{row.measure}_{row.statistic}_by_centre"
        metric = "wait" if row.measure == "wait_time" else "slowdown"
        expected = {
            "paper": study[f"paper_{row.measure}_{row.statistic}"],
            "original scenario": alone[f"original_{name}"],
            "K = 8": runs[name].sel(metric=metric, k=8),
            "K = 55": runs[name].sel(metric=metric, k=55),
        }[str(row.source)]
        assert row.mean == float(expected.sel(centre=row.centre))
    paper = numbers[numbers["source"] == "paper"]
    assert set(paper["centre"]) == set(CENTRES) - {"SDSC-DS"}
    assert [axes.get_xlabel() for axes in figure.axes] == ["wait", "wait", "slowdown", "slowdown"]


def test_numbers_of_resources_of_the_centres_are_the_nearest_and_the_largest(study: xr.Dataset) -> None:
    _, numbers = self_scheduling.centre_table(study, factor="multiply", k=3)
    assert set(numbers["source"]) == {"paper", "original scenario", "K = 4", "K = 16"}
    _, numbers = self_scheduling.centre_table(study.sel(k=[2]))
    assert set(numbers["source"]) == {"paper", "original scenario", "K = 2"}
    with pytest.raises(ConfigurationError, match="no factor 'none'; it has divide, multiply"):
        self_scheduling.centre_table(study, factor="none")


def test_centres_that_nobody_published_have_no_marker_of_a_paper(study: xr.Dataset) -> None:
    own = study.assign({name: study[name] * np.nan for name in study if str(name).startswith("paper_")})
    figure, numbers = self_scheduling.centre_table(own)
    assert "paper" not in set(numbers["source"]) | {text for text, _ in shown_texts(figure)}


def test_loads_are_shown_by_reading(study: xr.Dataset, drawings: dict[str, Drawing]) -> None:
    figure, numbers = drawings["offered_loads"]
    assert len(numbers) == len(LOADS) * len(CENTRES)
    for row in panels.each_row(numbers):
        assert row.load == LOADS[str(row.factor)][CENTRES.index(str(row.centre))]
        assert row.cpu_factor == CPU_FACTORS[CENTRES.index(str(row.centre))]
    axes: Axes = figure.axes[0]
    assert [1, 1] in [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    low, high = axes.get_xlim()
    assert low < numbers["load"].min() < numbers["load"].max() < high


def test_an_infinite_load_does_not_stretch_the_axis(study: xr.Dataset) -> None:
    loads = study["offered_load_by_reading"]
    endless = study.assign(offered_load_by_reading=loads.where(study["centre"] != "NASA", np.inf))
    figure, numbers = self_scheduling.offered_loads(endless)
    assert np.isinf(numbers.loc[numbers["centre"] == "NASA", "load"]).all()
    assert figure.axes[0].get_xlim()[1] < 100
    assert_legible(figure)


# --- all figures ----------------------------------------------------------------------------------


def test_figures_have_captions() -> None:
    for name in [*SELF_SCHEDULING_FIGURES, *PREDICTION_FIGURES]:
        assert caption(name)["text"]


def test_texts_are_not_cut_and_do_not_overlap(drawings: dict[str, Drawing]) -> None:
    for figure, _ in drawings.values():
        assert_legible(figure)
        assert figure.get_figheight() <= 10


def test_three_readings_and_many_values_are_legible() -> None:
    large = made_up_study(["divide", "multiply", "none"], range(1, 56))
    for make in SELF_SCHEDULING_FIGURES.values():
        assert_legible(make(large)[0])


def test_a_centre_table_of_a_whole_platform_fits_on_a_page(study: xr.Dataset) -> None:
    several = xr.concat([study] * 4, "centre", data_vars="minimal", coords="minimal", compat="override")
    whole = several.assign_coords(centre=[f"{name}{i}" for i in range(4) for name in CENTRES])
    for name in ("centre_table", "offered_loads"):
        figure, numbers = SELF_SCHEDULING_FIGURES[name](whole)
        assert numbers["centre"].nunique() == 20
        assert_legible(figure)
        assert figure.get_figheight() <= 10


def test_odd_names_of_centres_are_written_literally(study: xr.Dataset, tmp_path: Path) -> None:
    odd = ["$x_1$", "<b> & co", "_hidden", "two\nlines", "W" * 60]
    for name in ("centre_table", "offered_loads"):
        drawing = SELF_SCHEDULING_FIGURES[name](study.assign_coords(centre=odd))
        assert_legible(drawing[0])
        svg, _, csv = save(*drawing, tmp_path / name)
        assert {"$x_1$", "<b> & co", "_hidden", "two lines"} <= set(texts_of(svg))
        assert set(pd.read_csv(csv)["centre"]) == set(odd)


def test_one_week_has_no_intervals() -> None:
    short = made_up_study(["divide"], weeks=1)
    for name, make in SELF_SCHEDULING_FIGURES.items():
        figure, numbers = make(short)
        if "low" in numbers:
            assert numbers[["low", "high"]].isna().all(axis=None), name
        assert "95 % interval" not in [text for text, _ in shown_texts(figure)]


def test_a_study_without_any_run_gives_figures_that_say_so(study: xr.Dataset) -> None:
    nothing = study.where(study["week"] < 0)
    for figure, numbers in (make(nothing) for make in SELF_SCHEDULING_FIGURES.values()):
        assert numbers.empty
        assert figure.axes[0].texts[0].get_text().startswith("no ")


def test_figures_come_out_the_same_each_time(
    study: xr.Dataset, drawings: dict[str, Drawing], tmp_path: Path
) -> None:
    for name in ("improvement_wait_time", "retraining_effect", "centre_table"):
        saved = save(*drawings[name], tmp_path / "first")
        again = save(*SELF_SCHEDULING_FIGURES[name](study), tmp_path / "again")
        assert [path.read_bytes() for path in saved] == [path.read_bytes() for path in again]


# --- the page -------------------------------------------------------------------------------------


def predictions(jobs: int) -> xr.Dataset:
    """How good predictions are for a made-up log."""
    options = PredictorOptions(minimum_history=50, min_samples_leaf=5, retrain_seconds=20_000, intervals=6)
    return stack_workloads([evaluate(*busy_log(jobs), options)])


def test_intervals_are_those_of_the_largest_log_that_all_methods_predict() -> None:
    small, large = predictions(300), predictions(600)
    unknown = (large["predictor"] == "requested time") & (large["workload"] == "made up")
    without = large.assign(confusion=2 * large["confusion"].where(~unknown))
    logs = [
        each.assign_coords(workload=[name]) for each, name in ((small, "a"), (without, "b"), (large, "c"))
    ]
    figure, numbers = PREDICTION_FIGURES["prediction_intervals"](xr.concat(logs, "workload"))
    assert figure.get_suptitle() == "c"
    own = large["confusion"].sel(predictor=["classification tree", "requested time"])
    assert numbers["jobs"].sum() == float(own.sum())


NASTY = """</p><script>alert("1")</script> & {{ 7 * 7 }} $x_1$"""


@pytest.fixture(scope="module")
def configuration() -> SelfSchedulingStudy:
    sweep = {"scheduler": "jscheduler", "metric": ["wait", "slowdown"], "k": [1, 2]}
    factor = ["divide", "multiply"]
    return SelfSchedulingStudy.model_validate(
        {
            "name": "tiny",
            "kind": "self-scheduling",
            "title": NASTY,
            "description": "Jobs choose.",
            "scenarios": [
                {"name": "plan", "factor": factor, "schedulers": ["plan"]},
                {"name": "exact", "factor": factor, "schedulers": ["exact"], "estimates": ["predicted"]},
            ],
            "schedulers": [
                {"name": "plan", **sweep, "predictions": "plan"},
                {"name": "exact", **sweep, "predictions": "exact"},
            ],
            "estimates": ["predicted", "requested", "retrained"],
            "evaluate": True,
        }
    )


@pytest.fixture(scope="module")
def results(
    configuration: SelfSchedulingStudy, study: xr.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Folder with the made-up study and all its figures."""
    folder = tmp_path_factory.mktemp("results")
    own = folder / configuration.name
    predicted = predictions(600).assign_coords(workload=["KTH-SP2"])
    files.write(study.assign_attrs(**study.attrs, **provenance()), own / "study.nc")
    files.write(predicted.assign_attrs(**predicted.attrs, **provenance()), own / "prediction.nc")
    draw(configuration, folder)
    return folder


@pytest.fixture(scope="module")
def page(configuration: SelfSchedulingStudy, results: Path) -> Page:
    return page_of(configuration, results)


def page_of(configuration: SelfSchedulingStudy, folder: Path) -> Page:
    build_report([configuration], folder / "report.html")
    return read_page(folder / "report.html")


def test_the_page_is_well_formed_and_takes_text_literally(page: Page) -> None:
    assert page.open == []
    assert page.foreign == []
    assert page.text.count(NASTY) >= 3
    assert all(source.startswith("data:image/svg+xml;charset=utf-8,") for source in page.attributes("src"))


def test_the_page_has_every_figure_with_its_caption(page: Page, configuration: SelfSchedulingStudy) -> None:
    names = [*configuration.study_figures, *PREDICTION_FIGURES]
    assert len(names) == len(page.attributes("src")) == 9
    for name in names:
        assert caption(name)["text"] in page.words


def test_the_page_says_what_was_run_and_what_not(page: Page) -> None:
    for text in (
        "199 in 22 centres",
        "41,678",
        "jobs measured 1,310,567",
        "jobs that no single cluster can hold 17",
        "jobs that their own centre cannot hold 1,704",
        "12 queue 2; 3,456 after the window",
        "7 out of order",
        "Atlas: no checksum of the log is registered",
        "$SDSC_1$ <b>: no log is named",
        "the first 8 months of each log",
        "Bill Nitzberg",
        "0" * 12,
        "tiny/runs.csv",
    ):
        assert text in page.words, text


def test_the_page_marks_overloaded_centres(page: Page) -> None:
    """Under `divide` no centre of the made-up study is overloaded, under `multiply` all are."""
    assert page.words.count("overloaded: grows with the length of the log") == len(CENTRES)
    assert "NASA 1.90 overloaded" in page.words
    assert "NASA 0.12" in page.words


def test_the_page_shows_paper_ours_and_the_difference(page: Page, study: xr.Dataset) -> None:
    waits = study["original_wait_time_mean_by_centre"].sel(factor="divide", estimates="requested")
    ours = float(waits.sel(centre="KTH-SP2"))
    paper = PAPER["wait_time_mean"][CENTRES.index("KTH-SP2")]
    sign = "+" if ours > paper else "\N{MINUS SIGN}"
    shown = f"{style.duration(paper)} {style.duration(ours)} {sign}{style.duration(abs(ours - paper))}"
    assert f"KTH-SP2 0.18 {shown}" in page.words


def test_the_page_shows_improvements_with_their_intervals(page: Page, study: xr.Dataset) -> None:
    run = study.sel(factor="divide", mode="plan", estimates="predicted", metric="slowdown", k=8)
    mean, low, high = (
        style.number(float(run[f"bounded_slowdown_improvement{side}"])) for side in ("", "_low", "_high")
    )
    assert f"{mean} {low} to {high}" in page.words
    assert "LSLD-pred: bounded slowdown" in page.words
    assert "Less-WorkLeft: wait" in page.words


def test_the_page_shows_how_good_predictions_are(page: Page) -> None:
    assert "KTH-SP2 600" in page.words
    assert "method with the smallest error" in page.words


def test_a_page_without_published_numbers_shows_ours_alone(
    configuration: SelfSchedulingStudy, study: xr.Dataset, results: Path, tmp_path: Path
) -> None:
    shutil.copytree(results / "tiny" / "figures", tmp_path / "tiny" / "figures")
    own = study.assign({name: study[name] * np.nan for name in study if str(name).startswith("paper_")})
    files.write(own.assign_attrs(**study.attrs, **provenance()), tmp_path / "tiny" / "study.nc")
    page = page_of(
        configuration.model_copy(update={"window": Window(first_months=1), "evaluate": False}), tmp_path
    )
    assert page.open == []
    assert "Table 2 and ours" not in page.words
    ours = study["original_wait_time_mean_by_centre"].sel(factor="divide", estimates="requested")
    assert f"KTH-SP2 0.18 {style.duration(float(ours.sel(centre='KTH-SP2')))}" in page.words
    assert "the first month of each log" in page.words
    assert "method with the smallest error" not in page.words
