"""Figures of grid studies: they show the numbers of the dataset with intervals over its replicates."""

from __future__ import annotations

import statistics
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from gridsched.errors import ConfigurationError
from gridsched.figures import grid_panels
from gridsched.figures.style import save
from gridsched.replication import difference_interval, mean_interval, ratio_interval
from gridsched.systems.superscheduler.figures import overview as grids

Drawing = tuple[Figure, pd.DataFrame]

SCHEMES = ["local", "s-i", "r-i", "sy-i", "central", "ideal-fcfs", "ideal-srpt"]
VARIANTS = [
    "local",
    "s-i",
    "r-i",
    "sy-i",
    "s-i, epsilon 60 s",
    "s-i, epsilon 600 s",
    "r-i, delta 0.5",
    "r-i, delta 0.9",
    "r-i, sigma 60 s",
    "r-i, sigma 1800 s",
]
ODD_LABELS = ["local", "$x_1$", "<b> & co", "_hidden", "two\nlines", "100 % $", "w" * 90, "$x_1$, \\alpha {}"]
LONG_NAMES = ["Blue Horizon at San Diego", "Seaborg", "M3", "a cluster", "WWWWWWWWWWWWWWWWWWWW", "i"]
PROCESSORS = [3072, 1220, 1152, 128, 296, 720]
SPEEDS = [375, 332, 375, 1300, 375, 375]

# Tables 5 and 6 of the superscheduler paper, local runs: jobs, utilisation, mean wait and response [s].
TABLES = {
    "heavy": [
        (10192, 0.94, 254797, 260010),
        (3342, 0.83, 5871, 9295),
        (2900, 0.88, 14293, 19554),
        (336, 0.33, 2779, 7756),
        (830, 0.72, 6872, 10154),
        (1658, 0.81, 18697, 24460),
    ],
    "light": [
        (10432, 0.82, 3064, 8266),
        (3483, 0.72, 661, 4199),
        (2774, 0.42, 1241, 6321),
        (350, 0.36, 3099, 7466),
        (864, 0.75, 7463, 11146),
        (1704, 0.62, 5509, 10865),
    ],
    "six-month": [(132069, 0.91, 8318, 13404), (42339, 0.72, 1955, 5445), (36131, 0.79, 11506, 16660)],
    "one-month": [(26343, 0.92, 7977, 12770), (5735, 0.72, 5173, 9525), (5974, 0.73, 15271, 20075)],
}
# Factor of the wait, fraction of jobs transferred, gain of efficiency: local, s-i, r-i, sy-i, central, ideal.
EFFECTS = {
    "local": (1.0, 0.0, 0.0),
    "s-i": (0.4, 0.42, 0.2),
    "r-i": (0.5, 0.09, 0.1),
    "sy-i": (0.45, 0.25, 0.15),
    "central": (0.39, 0.66, 0.2),
    "ideal-fcfs": (0.03, np.nan, 0.35),
    "ideal-srpt": (0.002, np.nan, 0.35),
}
BY_SCHEME = ["scenario", "policy", "scheme", "replicate"]


def made_up_grid(
    scenarios: Sequence[str] = ("heavy",),
    schemes: Sequence[str] = SCHEMES,
    policies: Sequence[str] = ("easy",),
    *,
    clusters: int = 6,
    replicates: int = 20,
    seed: int = 1,
) -> xr.Dataset:
    """Grid study around the numbers of the paper; scenarios of other names have the numbers of one of its."""
    names = [f"M{i + 1}" for i in range(clusters)]
    rng = np.random.default_rng(seed)
    shape = (len(scenarios), len(policies), len(schemes), replicates)
    blank = {
        "wait_time_mean": shape,
        "response_time_mean": shape,
        "wait_time_deviation": shape,
        "grid_efficiency": shape,
        "transferred": shape,
        "jobs_home": (*shape, clusters),
        "wait_time_mean_home": (*shape, clusters),
        "utilisation": (*shape, clusters),
        "utilisation_own": (*shape, clusters),
        "flow_jobs": (*shape, clusters, clusters),
        "flow_work": (*shape, clusters, clusters),
    }
    data = {name: np.full(size, np.nan) for name, size in blank.items()}
    offered = np.full((len(scenarios), replicates, clusters), np.nan)
    tables = list(TABLES.values())
    for s, scenario in enumerate(scenarios):
        table = TABLES.get(scenario, tables[s % len(tables)])[:clusters]
        used = len(table)
        jobs, busy, waits, responses = (np.array(column) for column in zip(*table, strict=True))
        work = busy * np.array(PROCESSORS[:used]) * 14 * 86400
        draws = rng.lognormal(0, 0.12, (replicates, used)) if replicates > 1 else np.ones((1, used))
        offered[s, :, :used] = busy * draws * 1.05
        for p, _ in enumerate(policies):
            for c, scheme in enumerate(schemes):
                base = scheme.split(",")[0]
                factor, moved, gain = EFFECTS.get(base, (0.7, 0.3, 0.1))
                tilt = rng.uniform(0.8, 1.25) if scheme != base else 1.0
                relief = (factor * (1 + 0.3 * p) * tilt) ** (0.6 + 0.4 * waits / waits.max())
                at = (s, p, c)
                noise = draws * rng.lognormal(0, 0.35 if replicates > 1 else 0, (replicates, used))
                own = waits * (relief if scheme != "local" else 1 + 0.2 * p) * noise
                share = jobs / jobs.sum()
                data["jobs_home"][*at, :, :used] = jobs
                data["wait_time_mean_home"][*at, :, :used] = own
                data["wait_time_mean"][at] = own @ share
                data["response_time_mean"][at] = (own + responses - waits) @ share
                data["wait_time_deviation"][at] = 4 * (own @ share) ** 0.8
                data["grid_efficiency"][at] = np.clip((0.65 + gain) * draws.mean(axis=-1), 0, 1)
                data["transferred"][at] = np.clip(moved * tilt * draws.mean(axis=-1), 0, 1)
                if np.isnan(moved):
                    continue
                flow = work[:, None] * moved * tilt * (1.1 - busy) / (1.1 - busy).sum() + np.zeros(
                    (used, used)
                )
                flow[np.diag_indices(used)] += work - flow.sum(axis=1)
                data["flow_work"][*at, :, :used, :used] = flow * draws[:, :, None]
                data["flow_jobs"][*at, :, :used, :used] = flow / work[:, None] * jobs[:, None]
                used_share = flow.sum(axis=0) / (np.array(PROCESSORS[:used]) * 14 * 86400)
                data["utilisation_own"][*at, :, :used] = np.clip(used_share * draws, 0, 1)
                data["utilisation"][*at, :, :used] = np.clip(used_share * draws * (0.7 + gain), 0, 1)
    dims = {4: BY_SCHEME, 6: [*BY_SCHEME, "home", "cluster"]}
    at_home = {"jobs_home", "wait_time_mean_home"}
    variables = {
        name: (dims.get(values.ndim, [*BY_SCHEME, "home" if name in at_home else "cluster"]), values)
        for name, values in data.items()
    }
    return xr.Dataset(
        {
            **variables,
            "offered_load": (["scenario", "replicate", "cluster"], offered),
            "cluster_processors": ("cluster", np.array(PROCESSORS[:clusters], np.float64)),
        },
        {
            "scenario": list(scenarios),
            "policy": list(policies),
            "scheme": list(schemes),
            "replicate": np.arange(replicates),
            "home": names,
            "cluster": names,
        },
        {"reference": "local"},
    )


# --- how a study is looked at ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    """Six clusters and 20 replicates in one scenario, three clusters and 5 replicates in another."""
    both = made_up_grid(["heavy", "one-month"], [*SCHEMES, "r-i, delta 0.5"], ["easy", "sjf"])
    few = (both["scenario"] == "one-month") & (both["replicate"] >= 5)
    return both.map(lambda values: values.where(~few) if "replicate" in values.dims else values)


def replicates_of(study: xr.Dataset, metric: str, **where: str) -> list[float]:
    """Known replicates of a cell."""
    cell = study[metric].sel({key: label for key, label in where.items() if key in study[metric].dims})
    return [float(value) for value in cell.to_numpy() if not np.isnan(value)]


def keys_of(row: Mapping[Any, Any]) -> dict[str, str]:
    """Labels of a row of numbers."""
    dimensions = ("scenario", "policy", "scheme", "home", "cluster")
    return {key: str(row[key]) for key in dimensions if row.get(key)}


def assert_shows(study: xr.Dataset, numbers: pd.DataFrame) -> None:
    """Every row holds mean, interval and number of the replicates of its cell, or of its ratio."""
    assert len(numbers)
    for row in numbers.to_dict("records"):
        metric, where = str(row["metric"]), keys_of(row)
        values = replicates_of(study, metric, **where)
        interval = mean_interval(values)
        expected = statistics.fmean(values)
        if row["relative_to"]:
            reference = replicates_of(study, metric, **{**where, "scheme": str(row["relative_to"])})
            interval = ratio_interval(values, reference)
            expected /= statistics.fmean(reference)
        assert row["mean"] == pytest.approx(expected)
        np.testing.assert_allclose([row["low"], row["high"]], [interval.low, interval.high])
        assert row["replicates"] == len(values)


def every_figure(study: xr.Dataset) -> dict[str, Drawing]:
    """All figures of a study and of its first scenario."""
    scenario = str(study["scenario"].to_numpy()[0])
    whole = {name: draw(study) for name, draw in grids.GRID_FIGURES.items()}
    single = {name: draw(study, scenario=scenario) for name, draw in grids.SCENARIO_FIGURES.items()}
    return {**whole, **single}


def texts_of(svg: Path) -> list[str]:
    """Texts of an SVG file; a mathematical formula would come as several or none."""
    elements = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in elements]


def shown_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Texts of a figure that a reader sees, with the room they take."""
    figure.draw_without_rendering()
    texts: list[Text] = [
        text for legend in figure.legends for text in (*legend.get_texts(), legend.get_title())
    ]
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        inside = axes.get_legend()
        texts += [*(inside.get_texts() if inside else [])]
        texts += [text for text in axes.get_children() if isinstance(text, Text)]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [axis.label, *(tick.label1 for tick in ticks)]
    seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in seen]


def assert_legible(figure: Figure) -> None:
    """No text is cut, and none covers another."""
    texts, page = shown_texts(figure), figure.bbox
    assert texts
    for text, room in texts:
        assert min(room.x0, room.y0, page.x1 - room.x1, page.y1 - room.y1) >= -1, text
    for (text, room), (other, next_room) in combinations(texts, 2):
        common = Bbox.intersection(room, next_room)
        assert common is None or min(common.width, common.height) < 1, (text, other)


@pytest.fixture(scope="module")
def small_study() -> xr.Dataset:
    """A few schemes, one of them a variant, on three clusters."""
    return made_up_grid(["one-month"], ["local", "s-i", "s-i, 60 s", "ideal-srpt"], clusters=3, replicates=3)


@pytest.fixture(scope="module")
def small_drawings(small_study: xr.Dataset) -> dict[str, Drawing]:
    """Its figures."""
    return every_figure(small_study)


# --- figures of a whole study ---------------------------------------------------------------------


def test_the_overview_shows_ratios_to_local_and_shares(study: xr.Dataset) -> None:
    _, numbers = grids.grid_overview(study, policy="sjf")
    beside = {"wait_time_mean_home", "waiting_share", "wait_time_mean_others"}
    assert beside <= set(numbers["metric"])
    numbers = numbers[~numbers["metric"].isin(beside)].drop(columns="home")
    assert_shows(study, numbers)
    assert set(numbers["policy"]) == {"sjf"}
    relative = numbers[numbers["relative_to"] == "local"]
    assert set(relative["metric"]) == {"response_time_mean", "wait_time_mean", "wait_time_deviation"}
    assert len(relative) == 3 * 2 * study.sizes["scheme"]
    assert (relative.loc[relative["scheme"] == "local", ["mean", "low", "high"]] == 1).all(axis=None)
    moved = numbers[numbers["metric"] == "transferred"]
    assert not {"ideal-fcfs", "ideal-srpt"} & set(moved["scheme"])
    assert set(numbers.loc[numbers["scenario"] == "one-month", "replicates"]) == {5}


def test_the_overview_has_the_waiting_of_each_home_and_of_all_but_the_largest(study: xr.Dataset) -> None:
    _, numbers = grids.grid_overview(study)
    part = study.sel(scenario="one-month", policy="easy")
    waiting = part["wait_time_mean_home"] * part["jobs_home"]
    shares = waiting.sel(scheme="local").sum("replicate") / waiting.sel(scheme="local").sum()
    own = numbers[numbers["scenario"] == "one-month"]
    told = own[own["metric"] == "waiting_share"].set_index("home")["mean"]
    for home, share in told.items():
        assert share == pytest.approx(float(shares.sel(home=home)))
    rest = part["home"].values != told.idxmax()
    means = waiting.isel(home=rest).sum("home") / part["jobs_home"].isel(home=rest).sum("home")
    others = own[own["metric"] == "wait_time_mean_others"].set_index("scheme")["mean"]
    expected = means.sel(scheme="s-i").sum() / means.sel(scheme="local").sum()
    assert others["s-i"] == pytest.approx(float(expected))


def test_ratios_use_the_replicates_that_both_sides_have(study: xr.Dataset) -> None:
    partly = study.copy(deep=True)
    partly["wait_time_mean"].loc[{"scheme": "local", "replicate": [0, 1]}] = np.nan
    partly["wait_time_mean"].loc[{"scheme": "s-i", "replicate": [2]}] = np.nan
    _, numbers = grids.grid_overview(partly)
    rows = numbers[(numbers["scheme"] == "s-i") & (numbers["metric"] == "wait_time_mean")]
    assert rows.set_index("scenario")["replicates"].to_dict() == {"heavy": 17, "one-month": 2}
    cell = partly["wait_time_mean"].sel(scenario="one-month", policy="easy", replicate=[3, 4])
    ratio = cell.sel(scheme="s-i").sum() / cell.sel(scheme="local").sum()
    assert rows.set_index("scenario")["mean"]["one-month"] == pytest.approx(float(ratio))


@pytest.mark.parametrize("scheme", [None, "r-i"])
def test_policies_are_compared_with_their_own_local_runs(study: xr.Dataset, scheme: str | None) -> None:
    _, numbers = grids.grid_policies(study, scheme=scheme)
    assert_shows(study, numbers)
    shown = scheme or "s-i"
    assert set(numbers["scheme"]) == {"local", shown}
    relative = numbers[numbers["relative_to"] == "local"]
    assert set(relative["scheme"]) == {shown}
    assert len(relative) == 2 * 2 * 2


def test_without_s_i_the_first_other_scheme_is_compared(study: xr.Dataset) -> None:
    _, numbers = grids.grid_policies(study.sel(scheme=["local", "central", "r-i"]))
    assert set(numbers["scheme"]) == {"local", "central"}


def test_variants_are_compared_with_their_base() -> None:
    study = made_up_grid(["heavy", "light"], VARIANTS, replicates=8)
    figure, numbers = grids.grid_sensitivity(study)
    assert_shows(study, numbers)
    assert set(numbers["scheme"]) == set(VARIANTS[1:])
    bases = numbers.set_index("scheme")["base"].to_dict()
    assert bases["s-i, epsilon 600 s"] == "s-i"
    assert bases["sy-i"] == "sy-i"
    for row in numbers.to_dict("records"):
        if row["scheme"] == row["base"]:
            assert np.isnan(row["difference"])
            continue
        where = keys_of(row)
        values = replicates_of(study, row["metric"], **where)
        expected = difference_interval(
            values, replicates_of(study, row["metric"], **{**where, "scheme": row["base"]})
        )
        found = [row["difference"], row["difference_low"], row["difference_high"]]
        np.testing.assert_allclose(found, expected)
        assert row["clear"] == (expected.low > 0 or expected.high < 0)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows[:4] == ["s-i", "epsilon 60 s", "epsilon 600 s", "r-i"]
    assert rows[-1] == "sy-i"


def test_filled_markers_are_those_that_differ_from_their_base() -> None:
    study = made_up_grid(["heavy"], ["local", "s-i", "s-i, as it is", "s-i, better"], replicates=8)
    waits = study["wait_time_mean"]
    waits.loc[{"scheme": "s-i, as it is"}] = waits.sel(scheme="s-i") + np.array([5, -5, 3, -3, 2, -2, 1, -1])
    waits.loc[{"scheme": "s-i, better"}] = 0.9 * waits.sel(scheme="s-i")
    figure, numbers = grids.grid_sensitivity(study)
    relative = numbers[numbers["relative_to"] == "local"].set_index("scheme")
    assert relative["clear"].to_dict() == {"s-i": False, "s-i, as it is": False, "s-i, better": True}
    markers = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    faces = {int(np.asarray(line.get_ydata())[0]): line.get_markerfacecolor() for line in markers}
    assert {row: face == "white" for row, face in faces.items()} == {1: True, 2: False}


def test_variants_without_their_base_are_drawn_by_their_full_name() -> None:
    study = made_up_grid(["heavy"], ["local", "s-i, epsilon 60 s", "r-i"], replicates=3)
    figure, numbers = grids.grid_sensitivity(study)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["s-i, epsilon 60 s", "r-i"]
    assert numbers["difference"].isna().all()
    assert not numbers["clear"].any()


def test_another_metric_can_be_looked_at() -> None:
    study = made_up_grid(["heavy"], VARIANTS, replicates=3)
    _, numbers = grids.grid_sensitivity(study, metric="grid_efficiency")
    assert set(numbers["metric"]) == {"grid_efficiency", "transferred"}
    with pytest.raises(ConfigurationError, match=r"no metric 'jobs_home' by scheme; it has .*wait_time_mean"):
        grids.grid_sensitivity(study, metric="jobs_home")


# --- figures of one scenario ----------------------------------------------------------------------


def test_waits_are_shown_by_home_and_relative_to_local(study: xr.Dataset) -> None:
    _, numbers = grids.grid_waits(study, scenario="heavy", policy="sjf")
    assert_shows(study, numbers)
    assert set(numbers["scheme"]) == set(study["scheme"].to_numpy())
    assert set(numbers["home"]) == set(study["home"].to_numpy())
    assert "local" not in set(numbers.loc[numbers["relative_to"] == "local", "scheme"])


def test_utilisation_is_shown_with_the_offered_load(study: xr.Dataset) -> None:
    _, numbers = grids.grid_utilisation(study, scenario="heavy")
    assert_shows(study, numbers)
    assert set(numbers["metric"]) == {"utilisation", "utilisation_own", "offered_load"}
    assert not {"ideal-fcfs", "ideal-srpt"} & set(numbers["scheme"])


def test_an_offered_load_far_above_the_capacity_is_written_at_the_edge(small_study: xr.Dataset) -> None:
    load = small_study["offered_load"]
    overloaded = small_study.assign(offered_load=load.where(load["cluster"] != "M2", 2.5))
    figure, numbers = grids.grid_utilisation(overloaded, scenario="one-month")
    offered = numbers[numbers["metric"] == "offered_load"].set_index("cluster")
    assert offered["mean"]["M2"] == 2.5
    for axes in figure.axes:
        assert [text.get_text() for text in axes.texts] == ["250 % \N{BLACK RIGHT-POINTING SMALL TRIANGLE}"]
        assert axes.get_xlim()[1] < 1.5
    assert_legible(figure)


@pytest.mark.parametrize("name", list(grids.SCENARIO_FIGURES))
def test_machines_that_a_scenario_does_not_have_are_left_out(study: xr.Dataset, name: str) -> None:
    _, numbers = grids.SCENARIO_FIGURES[name](study, scenario="one-month")
    shown = {*numbers.get("home", []), *numbers.get("cluster", [])} - {""}
    assert shown == {"M1", "M2", "M3"}
    assert set(numbers["scenario"]) == {"one-month"}


def test_flows_add_up(study: xr.Dataset) -> None:
    _, numbers = grids.grid_flows(study, scenario="heavy")
    assert_shows(study, numbers[numbers["metric"].isin(["flow_work", "flow_jobs"])])
    for scheme, rows in numbers.groupby("scheme"):
        work = rows[rows["metric"] == "flow_work"].pivot(index="home", columns="cluster", values="mean")
        share = rows[rows["metric"] == "work_share"].pivot(index="home", columns="cluster", values="mean")
        np.testing.assert_allclose(share, work.div(work.sum(axis=1), axis=0))
        moved = rows.loc[rows["metric"] == "work_moved", "mean"].item()
        assert moved == pytest.approx(1 - np.trace(work) / work.to_numpy().sum())
        assert (moved == 0) == (scheme == "local")


@pytest.mark.parametrize("scenario", ["heavy", "one-month"])
def test_bands_are_as_wide_as_their_work_and_fill_the_bars(study: xr.Dataset, scenario: str) -> None:
    schemes = ["central", "s-i"]
    figure, numbers = grids.grid_flows(study, scenario=scenario, schemes=schemes)
    assert [axes.get_title("left") for axes in figure.axes[:2]] == schemes
    totals = []
    for scheme, axes in zip(schemes, figure.axes, strict=False):
        bands = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
        bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        rows = numbers[(numbers["scheme"] == scheme) & (numbers["metric"] == "flow_work")]
        work = rows.set_index(["home", "cluster"])["mean"]
        outlines = [np.asarray(band.get_path().vertices) for band in bands]
        heights = sorted(float(outline[7, 1] - outline[0, 1]) for outline in outlines)
        scale = sum(heights) / work.sum()
        np.testing.assert_allclose(heights, np.sort(work[work > 0]) * scale)
        totals.append(scale)
        for side, edge in (("home", min), ("cluster", max)):
            place = edge(bar.get_x() for bar in bars)
            lengths = sorted(bar.get_height() for bar in bars if bar.get_x() == place)
            np.testing.assert_allclose(lengths, np.sort(work.groupby(side).sum()) * scale)
    assert totals[0] == pytest.approx(totals[1])


def test_bands_of_a_machine_lie_side_by_side_inside_its_bar(study: xr.Dataset) -> None:
    figure, _ = grids.grid_flows(study, scenario="heavy", schemes=["central"])
    axes = figure.axes[0]
    bands = [np.asarray(patch.get_path().vertices) for patch in axes.patches if isinstance(patch, PathPatch)]
    for top, bottom in ((0, 7), (3, 4)):
        spans = sorted((float(band[top, 1]), float(band[bottom, 1])) for band in bands)
        assert all(below[0] >= above[1] - 1e-9 for above, below in pairwise(spans))


def test_flows_of_many_schemes_between_machines_of_long_names_fit_on_a_page() -> None:
    study = made_up_grid(["heavy"], ODD_LABELS, replicates=1).assign_coords(
        home=LONG_NAMES, cluster=LONG_NAMES
    )
    figure, _ = grids.grid_flows(study, scenario="heavy")
    assert_legible(figure)
    assert figure.get_figheight() <= 10


def test_schemes_without_flows_are_refused(study: xr.Dataset) -> None:
    with pytest.raises(ConfigurationError, match=r"'ideal-srpt' has no flows .* in heavy; .* local, s-i"):
        grids.grid_flows(study, scenario="heavy", schemes=["s-i", "ideal-srpt"])
    only = study.sel(scheme=["ideal-fcfs", "ideal-srpt"])
    for name in ("grid_flows", "grid_utilisation"):
        figure, numbers = grids.SCENARIO_FIGURES[name](only, scenario="heavy")
        assert numbers.empty
        assert "no scheme was run on clusters in heavy" in figure.axes[0].texts[0].get_text()


# --- all figures ----------------------------------------------------------------------------------


def test_one_replicate_has_no_intervals(small_study: xr.Dataset) -> None:
    for figure, numbers in every_figure(small_study.isel(replicate=[0])).values():
        assert numbers[["low", "high"]].isna().all(axis=None)
        assert numbers["mean"].notna().all()
        assert "95 % interval" not in [text for text, _ in shown_texts(figure)]


def test_intervals_are_explained_where_they_are_drawn(small_drawings: dict[str, Drawing]) -> None:
    for name, (figure, _) in small_drawings.items():
        drawn = name != "grid_flows"
        assert ("95 % interval" in [text for text, _ in shown_texts(figure)]) == drawn


def test_equal_replicates_have_intervals_of_no_width(small_study: xr.Dataset) -> None:
    equal = small_study.isel(replicate=[0, 0, 0]).assign_coords(replicate=[0, 1, 2])
    for _, numbers in every_figure(equal).values():
        np.testing.assert_array_equal(numbers["low"], numbers["mean"])
        np.testing.assert_array_equal(numbers["high"], numbers["mean"])


CASES: dict[str, Callable[[], xr.Dataset]] = {
    "one replicate": lambda: made_up_grid(["one-month"], clusters=3, replicates=1),
    "variants": lambda: made_up_grid(["heavy", "light"], VARIANTS, replicates=4),
    "long labels": lambda: made_up_grid(
        ["one-month, M3 from the archive log", "six-month-synthetic with more text", "heavy", "light"],
        ["local", "s-i", "ideal-srpt", "a scheme of the user with a long label"],
        ["easy", "a local policy with a long label"],
    ).assign_coords(home=LONG_NAMES, cluster=LONG_NAMES),
}


@pytest.mark.parametrize("case", list(CASES))
def test_texts_are_not_cut_and_do_not_overlap(case: str) -> None:
    for figure, _ in every_figure(CASES[case]()).values():
        assert_legible(figure)


def test_six_scenarios_and_eight_schemes_fit_on_a_page() -> None:
    scenarios = [f"scenario {number} of the six" for number in range(6)]
    figure, _ = grids.grid_overview(made_up_grid(scenarios, [*SCHEMES, "mine"]))
    assert_legible(figure)
    assert figure.get_figheight() <= 10


def test_odd_labels_are_written_literally(tmp_path: Path) -> None:
    odd = made_up_grid(["$a_b$ $<c>$", "W" * 50], ODD_LABELS, ["$e^2$", "W" * 50], clusters=3, replicates=2)
    names = ["$m_1$", "<b>", "_x"]
    for name, drawing in every_figure(odd.assign_coords(home=names, cluster=names)).items():
        assert_legible(drawing[0])
        svg, _, csv = save(*drawing, tmp_path / name)
        texts = texts_of(svg)
        assert any("$a_b$ $<c>$" in text for text in texts), name
        shown = {"$x_1$", "<b> & co", "_hidden", "100 % $"}
        assert shown <= set(texts) if name != "grid_policies" else "$x_1$" in texts, name
        if name in grids.SCENARIO_FIGURES:
            assert all(any(text.startswith(cluster) for text in texts) for cluster in names)
        table = pd.read_csv(csv, keep_default_na=False)
        assert set(table["scheme"]) - {""} <= set(ODD_LABELS)


def test_figures_come_out_the_same_each_time(
    small_study: xr.Dataset, small_drawings: dict[str, Drawing], tmp_path: Path
) -> None:
    again = every_figure(small_study)
    for name, drawing in small_drawings.items():
        saved = save(*drawing, tmp_path / "first")
        other = save(*again[name], tmp_path / "again")
        assert [path.read_bytes() for path in saved] == [path.read_bytes() for path in other]


def test_a_scenario_that_was_not_run_leaves_a_panel_that_says_so(study: xr.Dataset) -> None:
    gap = study.where(study["scenario"] != "heavy")
    for draw in (grids.grid_policies, grids.grid_sensitivity):
        figure, numbers = draw(gap)
        assert set(numbers["scenario"]) == {"one-month"}
        assert any("no data" in text.get_text() for axes in figure.axes for text in axes.texts)
    for draw_one in grids.SCENARIO_FIGURES.values():
        figure, numbers = draw_one(gap, scenario="heavy")
        assert numbers.empty
        assert "heavy" in figure.axes[0].texts[0].get_text()


def test_a_study_without_any_run_gives_figures_that_say_so(study: xr.Dataset) -> None:
    for figure, numbers in every_figure(study.where(study["replicate"] < 0)).values():
        assert numbers.empty
        assert any(text.get_text().startswith("no ") for axes in figure.axes for text in axes.texts)


def test_schemes_that_never_make_anyone_wait_can_be_drawn(small_study: xr.Dataset) -> None:
    idle = small_study.map(lambda values: values * 0 if str(values.name).startswith("wait") else values)
    for name, (_, numbers) in every_figure(idle).items():
        waits = numbers[numbers["metric"].str.startswith("wait")]
        assert (waits.loc[waits["relative_to"] == "", "mean"] == 0).all(), name
        assert waits.loc[waits["relative_to"] != "", "mean"].isna().all(), name


def test_a_study_of_the_reference_alone_can_be_drawn() -> None:
    drawings = every_figure(made_up_grid(["heavy"], ["local"], replicates=2))
    assert drawings["grid_sensitivity"][1].empty
    assert set(drawings["grid_overview"][1]["scheme"]) == {"local"}


@pytest.mark.parametrize(
    ("option", "draw"),
    [
        ("policy", lambda study, **options: grids.grid_overview(study, **options)),
        ("scheme", lambda study, **options: grids.grid_policies(study, **options)),
        ("policy", lambda study, **options: grids.grid_sensitivity(study, **options)),
        *(("scenario", draw) for draw in grids.SCENARIO_FIGURES.values()),
    ],
)
def test_an_unknown_label_is_refused_with_the_known_ones(
    option: str, draw: Callable[..., Drawing], study: xr.Dataset
) -> None:
    with pytest.raises(ConfigurationError, match=f"no {option} 'nothing'; it has"):
        draw(study, **{option: "nothing"})


def test_a_study_without_its_reference_is_refused(study: xr.Dataset) -> None:
    with pytest.raises(ConfigurationError, match="no scheme 'local'; it has s-i, r-i"):
        grids.grid_overview(study.sel(scheme=["s-i", "r-i"]))


def test_variants_have_the_colour_of_their_base_and_a_marker_of_their_own() -> None:
    looks = grid_panels.scheme_looks(made_up_grid(["heavy"], VARIANTS, replicates=1))
    assert len({look.marker for look in looks.values()}) == len(VARIANTS)
    for scheme, look in looks.items():
        assert look.color == looks[grid_panels.base_of(scheme)].color
    assert len({look.color for look in looks.values()}) == 4
