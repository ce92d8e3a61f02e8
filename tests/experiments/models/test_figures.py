"""Figures of workload models: they show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from gridsched.experiments.models import figures as models
from gridsched.figures import style
from gridsched.workloads import Workload, load_machines, synthesise
from gridsched.workloads.estimates import Multiple
from gridsched.workloads.model_comparison import compare_spreads, models_dataset

MACHINES = load_machines()
FIGURES: list[Callable[[xr.Dataset], tuple[Figure, pd.DataFrame]]] = [
    models.model_quantiles,
    models.model_shares,
    models.size_spread,
]


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    log = synthesise(MACHINES["M3"], seed=1, jobs=500, estimates=Multiple())
    return models_dataset(log, MACHINES, "M3")


@pytest.fixture(scope="module")
def poor() -> xr.Dataset:
    """A log of two jobs of M2, which has thirteen classes: nearly all of them are empty."""
    log = Workload(
        name="two",
        submit_time=np.array([0, 0]),
        run_time=np.array([5, -1]),
        requested_processors=np.array([1, 9]),
    )
    return models_dataset(log, MACHINES, "M2")


def texts_of(svg: Path) -> list[str]:
    elements = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in elements]


def test_quantiles_show_the_numbers_of_the_dataset(dataset: xr.Dataset, tmp_path: Path) -> None:
    figure, numbers = models.model_quantiles(dataset)
    assert len(numbers) == 2 * 7 * 3 * dataset.sizes["quantile"]
    for row in numbers.iloc[::211].to_dict("records"):
        own = dataset.sel(size_class=row["size_class"])
        shown = own[f"{row['kind']}_quantile"].sel(source2=row["source"], quantile=row["quantile"])
        assert row["value"] == shown
        distance = (
            own[f"{row['kind']}_ks"].sel(source=row["source"]) if row["source"] != "observed" else np.nan
        )
        np.testing.assert_equal(row["ks"], float(distance))
    texts = texts_of(style.save(figure, numbers, tmp_path / "figure")[0])
    for value in dataset["service_ks"].values.flat:
        assert f"KS {value:.2f}" in texts


def test_shares_and_means_show_the_numbers_of_the_dataset(dataset: xr.Dataset) -> None:
    _, numbers = models.model_shares(dataset)
    for row in numbers.to_dict("records"):
        if row["size_class"] == "all":
            expected = dataset[f"{row['quantity']}_all"].sel(source=row["source"])
        else:
            expected = dataset[row["quantity"]].sel(source=row["source"], size_class=row["size_class"])
        assert row["value"] == expected
    assert len(numbers) == 2 * (7 + 8 + 8)


def test_spreads_show_the_numbers_of_the_dataset(dataset: xr.Dataset) -> None:
    _, numbers = models.size_spread(dataset)
    for row in numbers.iloc[::7].to_dict("records"):
        if row["quantity"] == "size_cdf":
            expected = dataset["size_cdf"].sel(spread2=row["spread"], nodes=row["nodes"])
        elif row["quantity"] == "target_utilisation":
            expected = dataset["target_utilisation"].sel(machine=row["machine"])
        elif row["spread"] == "observed":
            expected = dataset["offered_load_observed"].sel(machine=row["machine"])
        else:
            expected = dataset["offered_load"].sel(machine=row["machine"], spread=row["spread"])
        assert row["value"] == expected
    known = ["offered_load", "offered_load_observed", "target_utilisation", "size_cdf"]
    assert len(numbers) == sum(int(dataset[name].count()) for name in known)


@pytest.mark.parametrize("draw", FIGURES)
def test_logs_that_lack_most_classes_can_be_drawn(
    draw: Callable[[xr.Dataset], tuple[Figure, pd.DataFrame]], poor: xr.Dataset
) -> None:
    _, numbers = draw(poor)
    assert len(numbers)
    assert np.isfinite(numbers["value"]).all()


def test_spreads_can_be_drawn_without_a_log_and_without_exponents() -> None:
    machines = {"$M_1$": replace(MACHINES["M1"], utilisation=None), "<M3>": MACHINES["M3"]}
    figure, numbers = models.size_spread(compare_spreads(machines, None, "$M_1$"))
    assert set(numbers[numbers["quantity"] == "size_cdf"]["spread"]) == {"log-uniform", "uniform"}
    assert any("M_1" in axes.get_title(loc="left") for axes in figure.axes)


@pytest.mark.parametrize("draw", FIGURES)
def test_drawing_again_gives_the_same_bytes(
    draw: Callable[[xr.Dataset], tuple[Figure, pd.DataFrame]], dataset: xr.Dataset, tmp_path: Path
) -> None:
    first, second = (
        [path.read_bytes() for path in style.save(*draw(dataset), tmp_path / name)] for name in "ab"
    )
    assert first == second
