"""A log beside a published model, and spreads of sizes, with the real log of M3 beside Table 4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import results
from gridsched.errors import WorkloadError
from gridsched.workloads import (
    HyperErlang,
    Machine,
    SizeClass,
    SizeModel,
    Workload,
    load_machines,
    offered_load,
    synthesise,
)
from gridsched.workloads.estimates import Multiple
from gridsched.workloads.model_comparison import (
    SOURCES,
    compare_models,
    compare_spreads,
    models_dataset,
    table_four,
)
from tests.support.fields import assert_fields

MACHINES = load_machines()
M3 = MACHINES["M3"]
COUNTS = ["jobs", "served", "unknown_run_time", "zero_run_time", "zero_interarrival"]

SMALL = HyperErlang(2, 0.5, 4.0, 0.25)
LARGE = HyperErlang(1, 0.1, 1.0, 0.5)
TWO = Machine(
    "two",
    2,
    2,
    1.0,
    (SizeClass(1, 2, SMALL, LARGE, 0.6), SizeClass(3, 4, LARGE, SMALL, 0.4)),
    utilisation=0.5,
)


def log_of(submit: list[int], run: list[int], size: list[int]) -> Workload:
    return Workload(
        name="log",
        submit_time=np.array(submit),
        run_time=np.array(run),
        requested_processors=np.array(size),
    )


HAND = log_of([30, 0, 10, 5, 5, 9, 9], [1, 2, 3, -1, 4, 0, 6], [1, 2, 2, 1, 4, 3, 3])


def naive_distance(times: list[int], cdf: Callable[[float], Any]) -> float:
    """Largest gap between a model and the steps of the empirical distribution, just before and at each."""
    n = len(times)
    gaps = [abs(sum(t <= x for t in times) / n - float(cdf(x))) for x in times]
    return max(gaps + [abs(sum(t < x for t in times) / n - float(cdf(x))) for x in times])


def test_a_small_log_by_hand() -> None:
    compared = compare_models(HAND, TWO)
    # Arrivals of the classes at 0, 5, 10, 30 s and at 5, 9, 9 s.
    between, run_times = {"1-2": [5, 5, 20], "3-4": [4, 0]}, {"1-2": [1, 2, 3], "3-4": [4, 6]}
    assert {name: compared[name].values.tolist() for name in COUNTS} == {
        "jobs": [4, 3],
        "served": [3, 2],
        "unknown_run_time": [1, 0],
        "zero_run_time": [0, 1],
        "zero_interarrival": [0, 1],
    }
    models = compared.sel(source=list(SOURCES))
    np.testing.assert_allclose(models["share"], [[4 / 7, 3 / 7], [0.6, 0.4]])
    for label, pair in zip(between, ((SMALL, LARGE), (LARGE, SMALL)), strict=True):
        for kind, times, model in zip(("interarrival", "service"), (between, run_times), pair, strict=True):
            own = compared.sel(size_class=label)
            for k in (1, 2, 3):
                moments = own[f"{kind}_moment"].sel(moment=k)
                assert moments.sel(source="log") == pytest.approx(np.mean([t**k for t in times[label]]))
                assert moments.sel(source="paper") == pytest.approx(model.moment(k))
            assert own[f"{kind}_mean"].sel(source="log") == pytest.approx(np.mean(times[label]))
            for source in ("log", "paper"):
                row = own.sel(source=source)
                order, rate_1, rate_2, p = (
                    float(row[f"{kind}_{x}"]) for x in ("order", "rate_1", "rate_2", "p")
                )
                fitted = HyperErlang(int(order), rate_1, rate_2, p)
                assert source == "log" or fitted == model
                assert row[f"{kind}_ks"] == pytest.approx(naive_distance(times[label], fitted.cdf))
                quantiles = own[f"{kind}_quantile"].sel(source=source)
                np.testing.assert_allclose(fitted.cdf(quantiles), compared["quantile"], atol=1e-9)
            median = own[f"{kind}_quantile"].sel(source="observed", quantile=0.5)
            assert median == pytest.approx(np.median(times[label]))
    np.testing.assert_allclose(
        models["interarrival_mean_all"], [30 / 6, 1 / (1 / SMALL.mean + 1 / LARGE.mean)]
    )
    assert compared["service_mean_all"].sel(source="log") == pytest.approx((1 + 2 + 3 + 4 + 6) / 5)
    # The means of the other kind are each other's weights here.
    paper = (LARGE.mean / SMALL.mean + SMALL.mean / LARGE.mean) / (1 / SMALL.mean + 1 / LARGE.mean)
    assert compared["service_mean_all"].sel(source="paper") == pytest.approx(paper)


@pytest.mark.parametrize(
    ("log", "kind", "jobs", "noted"),
    [
        (log_of([0, 1, 9], [5, 6, 7], [1, 1, 2]), "interarrival", 0, "there are none"),
        (log_of([0, 1, 9], [5, 6, 7], [1, 1, 2]), "service", 0, "there are none"),
        (log_of([0, 1, 9], [5, 6, 7], [1, 1, 4]), "interarrival", 1, "there are none"),
        (log_of([0, 9, 9], [5, 6, 7], [1, 4, 4]), "interarrival", 2, "all 1 are zero"),
        (log_of([0, 3, 9], [5, 0, -1], [1, 4, 4]), "service", 2, "there are none"),
        (log_of([0, 3, 9], [5, 7, 7], [1, 4, 4]), "service", 2, "infinite order"),
    ],
)
def test_classes_that_cannot_be_fitted_say_so(log: Workload, kind: str, jobs: int, noted: str) -> None:
    compared = compare_models(log, TWO)
    large = compared.sel(size_class="3-4")
    assert (int(large["jobs"]), int(large[f"{kind}_exact"])) == (jobs, 0)
    assert noted in str(large[f"{kind}_note"].item())
    assert noted in table_four(compared)["note"][2]
    unfitted = "infinite" not in noted
    assert np.isnan(large[f"{kind}_order"].sel(source="log")) == unfitted
    assert np.isnan(large[f"{kind}_ks"].sel(source="log")) == unfitted
    assert np.isfinite(large[f"{kind}_quantile"].sel(source="paper")).all()


jobs_of_any_kind = st.lists(
    st.tuples(st.integers(0, 10), st.integers(-1, 9), st.integers(-1, 6)), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(jobs_of_any_kind)
def test_any_log_is_compared_and_every_job_counted(jobs: list[tuple[int, int, int]]) -> None:
    log = log_of(*(list(column) for column in zip(*jobs, strict=True)))
    inside = [1 <= size <= 4 for *_, size in jobs]
    if not any(inside):
        with pytest.raises(WorkloadError, match="no job has the size of a class of machine two"):
            compare_models(log, TWO)
        return
    compared = compare_models(log, TWO)
    assert compared["jobs"].sum() == sum(inside)
    assert compared.attrs["jobs_in_no_class"] == len(jobs) - sum(inside)
    parts = compared["served"] + compared["unknown_run_time"] + compared["zero_run_time"]
    assert parts.values.tolist() == compared["jobs"].values.tolist()
    assert compared["share"].sel(source="log").sum() == pytest.approx(1)
    for kind in ("interarrival", "service"):
        exact = compared[f"{kind}_exact"] == 1
        assert (exact == (compared[f"{kind}_note"] == "")).all()
        assert np.isfinite(compared[f"{kind}_rate_1"].sel(source="log").where(exact, 1.0)).all()


def test_jobs_without_submit_time_are_refused() -> None:
    with pytest.raises(WorkloadError, match="log: 1 jobs have no submit time"):
        compare_models(log_of([-1, 3], [1, 1], [1, 1]), TWO)


def test_the_window_is_told_by_the_clock_of_the_log() -> None:
    log = replace(HAND, unix_start_time=0, time_zone="Europe/Stockholm")
    assert_fields(
        compare_models(log, TWO).attrs,
        first_submission="1970-01-01T01:00:00+01:00",
        last_submission="1970-01-01T01:00:30+01:00",
    )
    assert "first_submission" not in compare_models(HAND, TWO).attrs
    with pytest.raises(WorkloadError, match="time zone 'Mars' is unknown"):
        compare_models(replace(log, time_zone="Mars"), TWO)


def test_own_classes_of_the_log_are_told() -> None:
    log = log_of(list(range(100)), [5] * 100, [1] * 99 + [4])
    compared = compare_models(log, TWO)
    assert compared.attrs["log_classes"] == "1-4"
    assert compared["own_class"].values.tolist() == [0, 0]
    assert compare_models(log, TWO, minimum_share=0.01)["own_class"].values.tolist() == [1, 1]


# --- spreads --------------------------------------------------------------------------------------


def naive_cdf(machine: Machine, sizes: SizeModel, nodes: int) -> float:
    """Share of the jobs that need at most `nodes` nodes, class by class."""
    share = 0.0
    for c, rate in zip(machine.classes, machine.arrival_rates, strict=True):
        for processors, p in zip(*sizes.distribution(c, machine.processors_per_node), strict=True):
            share += rate * p * (processors <= nodes * machine.processors_per_node)
    return float(share / machine.arrival_rates.sum())


def test_loads_and_sizes_are_those_of_the_spreads() -> None:
    compared = compare_spreads(MACHINES, None, "M3", exponents={"M4": -0.5})
    np.testing.assert_array_equal(compared["target_utilisation"], [0.91, 0.72, 0.79, *[np.nan] * 3])
    calibrated = compared.sel(spread="power law", machine=["M1", "M2", "M3"])
    np.testing.assert_allclose(calibrated["offered_load"], calibrated["target_utilisation"])
    np.testing.assert_array_equal(compared["exponent"][3:], [-0.5, np.nan, np.nan])
    assert np.isnan(compared["offered_load"].sel(spread="power law", machine="M5"))
    for name, machine in MACHINES.items():
        models = {"log-uniform": SizeModel("log-uniform"), "uniform": SizeModel("uniform")}
        exponent = float(compared["exponent"].sel(machine=name))
        if np.isfinite(exponent):
            models["power law"] = SizeModel(exponent=exponent)
        for spread, model in models.items():
            load = compared["offered_load"].sel(machine=name, spread=spread)
            assert load == pytest.approx(offered_load(machine, model))
            for nodes in (1, 3, 8, 16, 143, 144) if name == "M3" else ():
                cdf = compared["size_cdf"].sel(spread=spread, nodes=nodes)
                assert cdf == pytest.approx(naive_cdf(machine, model, nodes))
    assert np.isnan(compared["size_cdf"].sel(spread="observed")).all()
    assert np.isnan(compared["offered_load"].sel(spread="observed")).all()


def test_sizes_of_a_log_by_hand() -> None:
    log = log_of([0, 1, 2, 3, 4], [1] * 5, [1, 2, 2, 3, 9])
    compared = compare_spreads({"two": TWO, "M3": M3}, log, "two")
    np.testing.assert_allclose(compared["size_cdf"].sel(spread="observed"), [3 / 4, 1])
    # Mean sizes of the classes are 5/3 and 3 processors.
    load = (LARGE.mean / SMALL.mean * 5 / 3 + SMALL.mean / LARGE.mean * 3) / 4
    np.testing.assert_allclose(compared["offered_load"].sel(spread="observed"), [load, np.nan])
    narrow = compare_spreads({"two": TWO}, log_of([0], [1], [1]), "two")
    assert np.isnan(narrow["offered_load"].sel(spread="observed")).all()


def test_utilisations_that_no_exponent_gives_are_stated() -> None:
    machines = {"M3": replace(M3, utilisation=0.42), "M1": MACHINES["M1"]}
    compared = compare_spreads(machines, None, "M3")
    assert "M3: no exponent gives load 0.42" in compared.attrs["exponents_not_found"]
    assert np.isnan(compared["exponent"].values).tolist() == [True, False]
    assert np.isnan(compared["size_cdf"].sel(spread="power law")).all()


@pytest.mark.parametrize(
    "options", [{"published_name": "M9"}, {"published_name": "M3", "exponents": {"M9": 1}}]
)
def test_unknown_machines_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError, match=r"machine is .M9."):
        compare_spreads(MACHINES, None, **options)


def test_the_whole_dataset_is_described_and_can_be_stored(tmp_path: Path) -> None:
    log = synthesise(M3, seed=3, jobs=400, estimates=Multiple())
    dataset = models_dataset(log, MACHINES, "M3")
    parts = compare_models(log, M3), compare_spreads(MACHINES, log, "M3")
    for part in parts:
        for name, variable in part.variables.items():
            xr.testing.assert_identical(dataset[name].variable, variable)
    assert set(dataset.variables) == {name for part in parts for name in part.variables}
    assert dataset.attrs == {**parts[1].attrs, **parts[0].attrs}
    for variable in dataset.variables.values():
        assert set(variable.attrs) >= {"long_name", "units"}
    results.write(dataset, tmp_path / "study.nc")
    again = results.read(tmp_path / "study.nc")
    xr.testing.assert_equal(again, dataset)
    assert table_four(again).equals(table_four(dataset))


def test_table_four_of_the_paper_is_the_published_one() -> None:
    table = table_four(models_dataset(synthesise(M3, seed=3, jobs=400), MACHINES, "M3"))
    assert table["source"].tolist() == ["log", "paper"] * 7
    paper = table[table["source"] == "paper"]
    for row, c in zip(paper.to_dict("records"), M3.classes, strict=True):
        assert (row["low"], row["high"]) == (c.low, c.high)
        assert row["percent_of_jobs"] / 100 == pytest.approx(c.share)
        for kind, d in (("interarrival", c.interarrival), ("service", c.service)):
            printed = [row[f"{kind}_{symbol}"] for symbol in ("n", "lambda_1", "lambda_2", "rho")]
            assert printed == [d.order, d.rate_1, d.rate_2, d.p]


# --- the real log ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blue(blue_log: Workload) -> xr.Dataset:
    """The log of SDSC Blue Horizon beside M3."""
    return models_dataset(blue_log, MACHINES, "M3")


def test_real_log_beside_table_4(blue: xr.Dataset) -> None:
    assert (blue.attrs["jobs"], blue.attrs["jobs_in_no_class"]) == (35_695, 0)
    assert blue.attrs["first_submission"].startswith("2002-03-01T")
    assert blue.attrs["last_submission"].startswith("2002-08-31T")
    assert blue["jobs"].values.tolist() == [19_917, 3_228, 3_106, 5_621, 1_350, 2_070, 403]
    assert int(blue["served"].sum()) == 35_695 - 2_087
    assert int(blue["zero_run_time"].sum()) == 4
    assert bool((blue["interarrival_exact"] == 1).all() and (blue["service_exact"] == 1).all())
    models = blue.sel(source=list(SOURCES))
    first = models.sel(size_class="1-8")
    np.testing.assert_allclose(first["share"], [0.5580, 0.55], atol=5e-5)
    np.testing.assert_allclose(first["interarrival_mean"], [797.9, 794.3], atol=0.05)
    np.testing.assert_allclose(first["service_mean"], [2082.9, 1979.5], atol=0.05)
    np.testing.assert_allclose(models["interarrival_mean_all"], [445.2, 435.7], atol=0.05)
    np.testing.assert_allclose(models["service_mean_all"], [5751.8, 5160.6], atol=0.05)


def test_real_sizes_give_the_published_utilisation(blue: xr.Dataset) -> None:
    """With the mean sizes of the log the published rates and run times give 79 %; other spreads much more."""
    m3 = blue.sel(machine="M3")
    assert m3["offered_load"].sel(spread="observed") == pytest.approx(0.7926, abs=5e-5)
    assert m3["target_utilisation"] == 0.79
    assert m3["offered_load"].sel(spread="log-uniform") == pytest.approx(0.983, abs=5e-4)
    assert m3["offered_load"].sel(spread="uniform") == pytest.approx(1.025, abs=5e-4)
    assert blue["size_cdf"].sel(spread="observed", nodes=1) == pytest.approx(0.5580, abs=5e-5)
    gap = abs(blue["size_cdf"] - blue["size_cdf"].sel(spread="observed")).max("nodes")
    assert gap.sel(spread="power law") < gap.sel(spread="log-uniform") < gap.sel(spread="uniform")
