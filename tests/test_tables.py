"""Tables of runs: every row against the run by hand, and labels, measures and errors of tables of several."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.systems.registry import names
from tests.support.errors import each_refused
from tests.support.fields import assert_fields
from tests.support.traces import workload

SCHEDULERS: list[Any] = ["local", "s-i", gs.JScheduler(k=2), "dynamic-grid", gs.Multicluster(), "ideal-srpt"]


def grid_run(scheduler: Any) -> xr.Dataset:
    jobs = [gs.synthesise("M3", jobs=60, seed=seed) for seed in (1, 2)]
    clusters = [gs.Cluster(name=name, processors=1152) for name in ("north", "south")]
    return gs.simulate(jobs, clusters, scheduler)


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
def test_one_row_a_job(scheduler: Any) -> None:
    run = grid_run(scheduler)
    table = gs.jobs(run)
    assert len(table) == run.sizes["job"]
    for job in range(0, len(table), 11):
        row, one = table.loc[job], run.isel(job=job)
        wait, run_time = float(one.start_time - one.submit_time), float(one.run_time)
        response = float(one.end_time - one.submit_time)
        assert (row.job_number, row.submit_time) == (one.job_number, one.submit_time)
        assert (row.wait_time, row.response_time) == (wait, response)
        assert_fields(
            row,
            slowdown=pytest.approx(response / max(run_time, 1)),
            home_cluster=("north", "south")[int(one.home_cluster)],
        )
        if "segment_job" in run:
            where = {("north", "south")[int(c)] for c in run.segment_cluster[run.segment_job == job]}
            assert row.cluster in where


def test_jobs_that_did_not_run_have_no_wait() -> None:
    table = gs.jobs(gs.simulate(workload(requested_processors=[1, 9, 1, 1], processors_available=4)))
    assert table["wait_time"].isna().tolist() == [False, True, False, False]
    assert table["cluster"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("scheduler", SCHEDULERS[:-1], ids=str)
def test_one_row_a_segment(scheduler: Any) -> None:
    run = grid_run(scheduler)
    table = gs.segments(run)
    assert len(table) == run.sizes["segment"]
    assert_fields(
        table,
        processors=run.segment_processors.values.tolist(),
        job_number=run.job_number.values[run.segment_job.values].tolist(),
    )
    by_job = table.groupby("job")
    assert np.array_equal(by_job["start"].min(), run.start_time)
    assert np.array_equal(by_job["end"].max(), run.end_time)
    assert set(table["cluster"]) <= {"north", "south"}


def test_run_that_names_no_clusters_has_no_segments() -> None:
    with pytest.raises(ConfigurationError, match=r"does not say on which clusters.*gridsched\.jobs"):
        gs.segments(grid_run("ideal-srpt"))


def test_table_has_the_measures_of_each_run() -> None:
    jobs = gs.synthesise("M3", jobs=300, seed=1, load_scale=1.5)
    runs = {"a": gs.simulate(jobs, scheduler="fcfs"), "b": gs.simulate(jobs, scheduler="easy")}
    options: dict[str, Any] = {"warm_up": 0.1, "confidence": 0.9}
    table = gs.table(runs, job_class="short wide", **options)
    for label, run in runs.items():
        summary = gs.summarise(run, **options).sel(job_class="short wide")
        for name, value in table.loc[label].items():
            assert value == pytest.approx(summary[str(name)].item(), nan_ok=True), name
    assert table.attrs["units"]["wait_time_mean"] == "s"
    assert_fields(
        gs.table(runs.values(), measures=["utilisation", "wait_time_mean"]),
        index=["fcfs", "easy"],
        columns=["utilisation", "wait_time_mean"],
    )


def test_measures_that_only_one_run_has_are_unknown_for_the_others() -> None:
    jobs = gs.synthesise("M3", jobs=40, seed=1)
    clusters = [gs.Cluster(name=name, processors=1152) for name in ("north", "south")]
    runs = [gs.simulate([jobs, jobs], clusters, scheduler) for scheduler in ("local", gs.JScheduler(k=2))]
    assert gs.table(runs)["queries"].isna().tolist() == [True, False]


def test_runs_are_labelled_by_the_parameters_that_differ() -> None:
    jobs = gs.synthesise("M3", jobs=20, seed=1)
    clusters = [gs.Cluster(name=name, processors=1152) for name in ("north", "south")]
    runs = [gs.simulate([jobs, jobs], clusters, gs.JScheduler(k=k)) for k in (1, 2)]
    assert gs.table(runs).index.tolist() == ["k 1", "k 2"]
    runs.append(gs.simulate([jobs, jobs], clusters, "ideal-srpt"))
    assert gs.table(runs).index.tolist() == ["jscheduler, k 1", "jscheduler, k 2", "ideal-srpt"]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda run: gs.table([run], measures=["wait_mean"]), "no measure 'wait_mean'; did you mean wait_"),
        (lambda run: gs.table([run], job_class="wide"), "job_class is 'wide'; use one of all"),
        (lambda run: gs.table(run), "this is one run; give several"),
        (lambda run: gs.table(cast(Any, 3)), "int is no list of runs"),
        (lambda run: gs.table([run, run]), "cannot be distinguished"),
        (lambda run: gs.table(cast(Any, {1: run, "1": run})), "two runs have the label '1'"),
        (lambda run: gs.table([run], warm_up=2), "warm_up"),
    ],
)
def test_mistakes_in_a_table(call: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        call(gs.simulate(workload(processors_available=4)))


@pytest.mark.parametrize(
    "function",
    [
        gs.jobs,
        gs.segments,
        gs.summarise,
        gs.verify,
        gs.plot.load,
        lambda run: gs.table([run]),
        lambda run: gs.explain(run, 0),
    ],
)
def test_what_is_no_run_is_named_as_such(function: Any) -> None:
    run = gs.simulate(workload(processors_available=4))
    each_refused(
        (
            ConfigurationError,
            r"no run, it has no submit_time.*give what gridsched",
            lambda: function(gs.summarise(run)),
        ),
        (
            ConfigurationError,
            r"no run, it holds several runs",
            lambda: function(xr.concat([run, run], "run")),
        ),
        (ConfigurationError, "Workload is no run", lambda: function(workload())),
        (ConfigurationError, "DataFrame is no run", lambda: function(pd.DataFrame())),
    )


def test_lists_of_policies_and_schedulers_are_complete_and_can_be_used() -> None:
    policies, schedulers = gs.local_policies().index, gs.grid_schedulers().index
    assert set(policies) | set(schedulers) == set(names())
    assert not set(policies) & set(schedulers)
    for name in policies:
        assert gs.simulate(workload(processors_available=4), scheduler=name).attrs["scheme"] == name
    for kind in gs.grid_schedulers()["class"]:
        assert kind in gs.__all__
