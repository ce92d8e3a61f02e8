"""The table of measures: groups, runs in one dataset, long tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.experiments.collection import (
    ALL,
    grouped,
    labelled,
    measure_table,
    measures_table,
    table_of_runs,
)
from gridsched.measures import measure, measures
from tests.support.fields import assert_fields


def summary() -> xr.Dataset:
    """Measures of two clusters with users of their own."""
    return xr.Dataset(
        {
            "jobs": ((), 5.0),
            "jobs_home": ("home", [2.0, 3.0]),
            "utilisation": ("cluster", [0.5, 0.7]),
            "flow_jobs": (("home", "cluster"), [[2.0, 0.0], [1.0, 2.0]]),
            "wait_time_quantile": ("quantile", [1.0, 2.0]),
        },
        {"home": ["a", "b"], "cluster": ["a", "b"], "quantile": [0.5, 0.9]},
    )


def test_parts_of_a_platform_are_groups() -> None:
    found = grouped(summary())
    assert found["group"].values[0] == ALL
    assert found["jobs"].sel(group="users of b") == 3
    assert found["jobs"].sel(group=ALL) == 5
    assert found["utilisation"].sel(group="cluster b") == 0.7
    assert np.isnan(found["utilisation"].sel(group=ALL))
    assert found["flow_jobs"].sel(group="b to a") == 1
    assert found["wait_time_quantile"].dims == ("quantile",)


def runs() -> list[xr.Dataset]:
    """Runs of two schedulers, one with two replicates, one with one."""
    plain = grouped(summary())[["jobs", "utilisation"]]
    both = xr.concat([plain, plain * 2], dim="replicate").assign_coords(replicate=[0, 1])
    return [
        labelled(both, scenario="s", scheduler="one", scheduler_parameters={"k": 2, "metric": "wait"}),
        labelled(plain, scenario="s", scheduler="two", scenario_parameters={"load": 0.8}),
    ]


def test_runs_stand_by_their_labels_with_parameters_as_coordinates() -> None:
    labels = {"scenario": ["s"], "scheduler": ["two", "one"], "estimates": ["requested"]}
    whole = table_of_runs(runs(), labels)
    assert whole["jobs"].dims == ("scenario", "scheduler", "estimates", "replicate", "group")
    of_one = whole["jobs"].sel(scenario="s", scheduler="one", estimates="requested", group=ALL)
    assert of_one.values.tolist() == [5, 10]
    assert np.isnan(whole["jobs"].sel(scheduler="two", replicate=1)).all()
    assert whole["k"].values.tolist()[1] == 2
    assert np.isnan(whole["k"].values[0])
    assert_fields(whole, metric=["", "wait"], load=[0.8])
    assert whole["jobs"].attrs["long_name"] == measure("jobs").words


def test_a_long_table_has_the_weights_of_means_over_jobs() -> None:
    labels = {"scenario": ["s"], "scheduler": ["one", "two"], "estimates": ["requested"]}
    whole = table_of_runs(runs(), labels)
    whole["wait_time_mean"] = whole["jobs"] / 10
    assert_fields(measure_table(whole, "wait_time_mean", group=ALL), number=[5, 10, 5], value=[0.5, 1.0, 0.5])
    assert measure_table(whole, "utilisation", group="cluster a")["number"].tolist() == [1, 1, 1]


def test_the_table_of_measures_has_a_row_a_run_and_group() -> None:
    labels = {"scenario": ["s"], "scheduler": ["one", "two"], "estimates": ["requested"]}
    whole = table_of_runs(runs(), labels)
    whole["wait_time_mean"] = whole["jobs"] / 10
    keys = ["scenario", "scheduler", "estimates", "replicate", "group"]
    every = measures_table(whole)
    assert not every.duplicated(keys).any()
    every = every.set_index([*keys, "k", "metric", "load"])
    for name in ("jobs", "utilisation", "wait_time_mean"):
        long = measure_table(whole, name).set_index(every.index.names)["value"]
        pd.testing.assert_series_equal(every[name].dropna(), long, check_names=False)
    assert every.notna().any(axis="columns").all()


def test_measures_are_declared_once_with_words_and_units() -> None:
    for name, found in measures().items():
        assert found.name == name
        assert found.words
        assert found.unit
    with pytest.raises(ConfigurationError, match="not known"):
        measure("nonsense")
