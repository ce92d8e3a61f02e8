"""The Python interface: simulating a workload, and what the datasets and files of runs hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import gridsched as gs
from gridsched import results
from gridsched.errors import ConfigurationError, GridschedError, WorkloadError
from gridsched.platform import Platform, ResourceChange
from gridsched.policies.local import POLICIES
from gridsched.submission import AlignName
from gridsched.systems.registry import SYSTEMS, names, system_of
from gridsched.traces import merge_workloads
from tests.oracles import local as naive
from tests.support import strategies
from tests.support.errors import refused
from tests.support.fields import assert_fields, assert_stacked

KTH = "KTH-SP2-1996-2.1-cln.swf.gz"


def workload(**changes: Any) -> gs.Workload:
    """Four jobs on a machine of four processors, unless said otherwise; lists become columns."""
    facts: dict[str, Any] = {
        "name": "abacus",
        "submit_time": [0, 10, 20, 20],
        "run_time": [100, 50, 30, 0],
        "requested_processors": [2, 4, 2, 1],
        "requested_time": [80, 60, -1, 10],
        "user": [3, 1, 4, 1],
        "processors_available": 4,
        "checksum": "abc",
        "acknowledgement": "Ada",
    }
    facts.update(changes)
    fields: dict[str, Any] = {k: np.array(v) if isinstance(v, list) else v for k, v in facts.items()}
    return gs.Workload(**fields)


# --- simulate -------------------------------------------------------------------------------------


def test_the_default_is_easy_on_the_machine_of_the_log() -> None:
    run = gs.simulate(workload())
    # The third job ends by the shadow time, 80 s, and the fourth needs one processor for 10 s.
    assert_fields(
        run,
        start_time=[0, 100, 20, 50],
        end_time=[100, 150, 50, 50],
        cluster_processors=[4],
        cluster=["abacus"],
        scheme="local",
        system="local",
        policies="easy",
    )
    cluster = gs.Cluster(processors=4, name="abacus")
    assert gs.simulate(workload(), cluster, "local").identical(run)
    named = gs.simulate(workload(), cluster, "easy")
    assert (named.attrs["scheme"], named.attrs["policies"]) == ("easy", "easy")
    assert named.equals(run)


def test_columns_and_segments_of_a_run() -> None:
    jobs = workload(job_number=[7, 8, 9, 12], wait_time=[5, -1, 0, 3], group=[1, 2, 3, 4], queue=[0, 0, 1, 1])
    run = gs.simulate(jobs, scheduler="fcfs")
    kept = ("job_number", "submit_time", "run_time", "processors", "user", "group", "queue")
    assert_fields(run, **{name: getattr(jobs, name) for name in kept}, recorded_wait_time=jobs.wait_time)
    assert_fields(
        run,
        segment_job=[0, 1, 2, 3],
        segment_cluster=[0, 0, 0, 0],
        segment_processors=[2, 4, 2, 1],
        segment_start=run["start_time"],
        segment_end=run["end_time"],
    )
    assert all({"long_name", "units"} <= run[name].attrs.keys() for name in run.data_vars)


def test_attributes_say_where_a_run_comes_from() -> None:
    jobs = workload(left_out={"no size": 2}, repaired={"out of order": 1})
    run = gs.simulate(jobs, scheduler="easy(2)", kill=True, overrun="increments", passes="event")
    expected = {
        "title": "easy(2) on abacus: 4 jobs",
        "workload": "abacus",
        "workload_checksum": "abc",
        "acknowledgement": "Ada",
        "scheme": "easy(2)",
        "estimates": "requested",
        "kill": 1,
        "overrun": "increments",
        "passes": "event",
        "left_out: no size": 2,
        "repaired: out of order": 1,
        "jobs_rejected": 0,
        "jobs_killed": 1,
        "jobs_without_requested_time": 1,
    }
    assert_fields(run.attrs, **expected)
    assert run.attrs["source"].startswith("gridsched ")


TIMES = {"run_time": [100, 50, 30, 0], "estimates": "requested", "estimate": [80, 60, 30, 10]}
NODES = gs.Cluster(processors=8, processors_per_node=4)


@pytest.mark.parametrize(
    ("changes", "arguments", "expected"),
    [
        # Whole nodes
        (
            {"requested_processors": [1, 5, 9, 8]},
            {"platform": replace(NODES, node_exclusive=True), "scheduler": "fcfs"},
            {
                "segment_job": [0, 1, 3],
                "segment_processors": [4, 8, 8],
                "start_time": [0, 100, -1, 150],
                "end_time": [100, 150, -1, 150],
                "processors": [1, 5, 9, 8],
                "jobs_rejected": 1,
            },
        ),
        # Nodes that jobs share
        ({"requested_processors": [1, 5, 1, 1]}, {"platform": NODES}, {"segment_processors": [1, 5, 1, 1]}),
        # All jobs may be rejected
        *(
            (
                {"requested_processors": [5, 6, 7, 8]},
                {"scheduler": policy},
                {"start_time": [-1] * 4, "segment_job": [], "jobs_rejected": 4},
            )
            for policy in POLICIES
        ),
        # Speed divides times and rounds them up
        (
            {},
            {"platform": gs.Cluster(processors=4, speed=1.5), "estimates": "clairvoyant"},
            {"run_time": [67, 34, 20, 0], "estimate": [67, 40, 20, 7]},
        ),
        (
            {},
            {"platform": gs.Cluster(processors=4, speed=0.5), "scheduler": "fcfs"},
            {"end_time": [200, 300, 360, 300]},
        ),
        # Estimates are those of the scheduler
        ({}, {"estimates": "requested"}, TIMES),
        ({}, {"estimates": "actual"}, TIMES | {"estimate": [100, 50, 30, 1], "estimates": "actual"}),
        (
            {},
            {"estimates": "clairvoyant"},
            TIMES | {"estimate": [100, 60, 30, 10], "estimates": "clairvoyant"},
        ),
        (
            {},
            {"estimates": np.array([0.5, 7.2, -4.0, 60.0])},
            TIMES | {"estimate": [1, 8, 1, 60], "estimates": "given", "corrections": 15},
        ),
        # Jobs may end at their requested time
        (
            {},
            {"kill": True, "estimates": "actual"},
            {"run_time": [80, 50, 30, 0], "estimate": [80, 50, 30, 1], "jobs_killed": 1, "corrections": 0},
        ),
    ],
)
def test_what_a_run_holds(
    changes: dict[str, Any], arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    run = gs.simulate(workload(**changes), **arguments)
    assert_fields(run, **expected)
    gs.verify(run)
    wait = float(gs.summarise(run)["wait_time_mean"].sel(job_class="all"))
    assert math.isnan(wait) == (run.attrs["jobs_rejected"] == 4)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"submit_time": [-1, 0, 0, 0]}, "1 jobs have no submit time (first: job 1)"),
        ({"submit_time": [-9, -1, 0, 1]}, "1 jobs have no submit time"),
        ({"submit_time": [-9, -8, 0, 1]}, "2 jobs have a negative submit time"),
        ({"run_time": [5, -1, -1, 5]}, "2 jobs have no run time (first: job 2)"),
        ({"run_time": [10, 10, -7, 10]}, "1 jobs have a negative run time (first: job 3)"),
        ({"requested_processors": [1, 1, 0, -1]}, "2 jobs have no processors (first: job 3)"),
        ({"submit_time": [0, 5, 4, 6]}, "not in order of submission"),
        ({"submit_time": [0.0, 1.5, 2.0, 3.0]}, "submit_time has fractions"),
        ({"run_time": [0.0, 1.5, 2.0, 3.0]}, "run_time has fractions"),
        ({"requested_time": [0.0, 1.5, 2.0, 3.0]}, "requested_time has fractions"),
        ({"processors_available": None}, "give a cluster"),
        ({"requested_time": [1, 1, 1, 2**31]}, "job 4 is estimated at 2147483648 s"),
        ({"submit_time": [0, 0, 0, 2**41]}, "job 4 is submitted at 2199023255552 s"),
        ({"run_time": [0, 2**41, 0, 0], "requested_time": [1, 1, 1, 1]}, "job 2 runs for 2199023255552 s"),
        (
            {
                "submit_time": [],
                "run_time": [],
                "requested_processors": [],
                "requested_time": [],
                "user": [],
            },
            "no jobs to simulate",
        ),
    ],
)
def test_workloads_that_cannot_be_simulated(changes: dict[str, Any], reason: str) -> None:
    with refused(reason, error=WorkloadError, one_line=True):
        gs.simulate(workload(**changes))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"scheduler": "speedy"}, "unknown scheduler 'speedy'; use one of local, fcfs"),
        ({"scheduler": "easy(0)"}, "reservations is 0"),
        ({"estimates": np.ones(3)}, "(3,) values for 4 jobs"),
        ({"estimates": np.array([1, np.nan, 1, 1])}, "nan for the job at index 1"),
        ({"estimates": np.array([1, 1, np.inf, 1])}, "inf for the job at index 2"),
        ({"platform": {"speed": 1e-9}}, "can be simulated"),
        ({"platform": {"speed": 1e-320}}, "can be simulated"),
        ({"platform": {"processors": 2**31}}, "can be simulated"),
        ({"platform": {"processors": 0}}, "cluster cluster: "),
        ({"platform": {"processors": 5, "processors_per_node": 2}}, "cluster cluster: "),
        ({"platform": {"processors_per_node": 0}}, "cluster cluster: "),
        ({"platform": {"speed": 0.0}}, "cluster cluster: "),
        ({"platform": {"speed": math.nan}}, "cluster cluster: "),
        ({"platform": {"speed": math.inf}}, "cluster cluster: "),
    ],
)
def test_options_and_clusters_that_cannot_exist(options: dict[str, Any], reason: str) -> None:
    with refused(reason, error=GridschedError):
        platform = gs.Cluster(**{"processors": 4, **options.pop("platform", {})})
        gs.simulate(workload(), platform, **options)


def users_take_turns(user: int, submit_time: int) -> float:
    return -1000.0 * user - submit_time


def ageing(now: int, submit_time: int, processors: int) -> float:
    return float(now - submit_time + 3 * processors)


@pytest.mark.parametrize(
    ("order", "same"),
    [(users_take_turns, None), (ageing, lambda now, submit, _, size: float(now - submit + 3 * size))],
)
def test_the_queue_order_may_be_a_function(
    order: Callable[..., float], same: Callable[..., float] | None
) -> None:
    jobs = workload(submit_time=[0, 1, 1, 1], run_time=[10] * 4, requested_processors=[4, 4, 3, 4])
    run = gs.simulate(jobs, scheduler=gs.LocalPolicy(name="mine", order=order, backfilling="easy"))
    assert run.attrs["scheme"] == run.attrs["policies"] == "mine"
    # the function by name: its address would differ from process to process
    assert f"order={order.__name__}" in run.attrs["parameter_policy"]
    assert " at 0x" not in run.attrs["parameter_policy"]
    if same is None:
        assert run["start_time"].values.tolist() == [0, 10, 30, 20]
    else:
        listed = [naive.Job(*job) for job in ((0, 10, 80, 4), (1, 10, 60, 4), (1, 10, 10, 3), (1, 10, 10, 4))]
        expected = naive.simulate(listed, 4, order=same, backfilling="easy")
        assert run["start_time"].values.tolist() == expected


# --- every scheduler through the one function -----------------------------------------------------

NAMES = tuple(names())
NORTH = gs.Cluster(processors=8, name="north")
SOUTH = gs.Cluster(processors=8, name="south")
PAIR = [NORTH, SOUTH]


def crowd(name: str, seed: int, jobs: int = 25, **facts: Any) -> gs.Workload:
    """Jobs for 8 processors, some of which outrun the requested time, some without any."""
    random = np.random.default_rng(seed)
    run = random.integers(1, 600, jobs)
    requested = np.ceil(run * random.choice([0.5, 1.0, 3.0], jobs)).astype(np.int64)
    return gs.Workload(
        name=name,
        submit_time=np.sort(random.integers(0, 3000, jobs)),
        run_time=run,
        requested_time=np.where(random.random(jobs) < 0.1, -1, requested),
        requested_processors=random.integers(1, 9, jobs),
        user=random.integers(1, 4, jobs),
        processors_available=8,
        **facts,
    )


CROWDS = [crowd("a", 1), crowd("b", 2)]


def crowds_in_one(align: AlignName = "start") -> gs.Workload:
    """The same jobs as one workload that says where they are submitted."""
    merged, origin = merge_workloads(CROWDS, align=align)
    return replace(merged, home=origin)


@cache
def run_of(name: str) -> xr.Dataset:
    """Run of a scheduler that is called by its name alone."""
    return gs.simulate(CROWDS, PAIR, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_gives_a_run_that_keeps_the_rules(name: str) -> None:
    run = run_of(name)
    gs.verify(run)
    assert run.attrs["system"] in SYSTEMS
    assert run.attrs["scheme"] == names()[name]().label
    merged = crowds_in_one()
    for column in ("job_number", "submit_time", "processors", "user"):
        assert_array_equal(run[column], getattr(merged, column))
    assert_array_equal(run["home_cluster"], merged.home)
    assert run["cluster"].values.tolist() == ["north", "south"]
    assert run.attrs["jobs_without_requested_time"] == (merged.requested_time < 0).sum() > 0
    assert all({"long_name", "units"} <= run[variable].attrs.keys() for variable in run.data_vars)


@pytest.mark.parametrize("name", NAMES)
def test_every_run_is_summarised(name: str) -> None:
    run = run_of(name)
    summary = gs.summarise(run)
    ran = run["start_time"].values >= 0
    whole = summary.sel(job_class="all")
    wait = (run["start_time"] - run["submit_time"]).values[ran]
    assert float(whole["wait_time_mean"]) == pytest.approx(wait.mean())
    own = set(system_of(run.attrs["system"]).measures(run).data_vars)
    assert own <= set(summary.data_vars)
    pieces = "segment" in run.sizes and run.sizes["segment"] != ran.sum()
    assert pieces or "flow_jobs" in summary


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_again_and_from_a_file(name: str, tmp_path: Path) -> None:
    run = run_of(name)
    assert gs.simulate(CROWDS, PAIR, names()[name]()).identical(run)
    results.write(run, tmp_path / "run.nc")
    assert results.read(tmp_path / "run.nc").identical(run)


@pytest.mark.parametrize("name", NAMES)
def test_attributes_tell_all_parameters(name: str) -> None:
    scheduler, attributes = names()[name](), run_of(name).attrs
    for field in fields(scheduler):  # type: ignore[arg-type]
        value = getattr(scheduler, field.name)
        found = attributes[f"parameter_{field.name}"]
        if isinstance(value, int | float | str):
            assert found == value
    assert not [key for key, value in attributes.items() if " at 0x" in str(value)]
    for key, value in {"seed": 0, "align": "start", "times": "home", "kill": 0, "passes": "instant"}.items():
        assert attributes[key] == value


@pytest.mark.parametrize("name", NAMES)
def test_one_workload_with_homes_is_one_for_each_cluster(name: str) -> None:
    run = gs.simulate(crowds_in_one(), PAIR, name)
    assert run.drop_vars("job_number").equals(run_of(name).drop_vars("job_number"))
    counted = {key: value for key, value in run.attrs.items() if not key.startswith(("repaired", "left_out"))}
    assert counted == {key: run_of(name).attrs[key] for key in counted}


@pytest.mark.parametrize("name", NAMES)
def test_jobs_may_end_at_their_requested_time_under_every_scheduler(name: str) -> None:
    run = gs.simulate(CROWDS, PAIR, name, kill=True)
    gs.verify(run)
    merged = crowds_in_one()
    over = (merged.requested_time > 0) & (merged.run_time > merged.requested_time)
    cut = np.where(over, merged.requested_time, merged.run_time)
    assert run.attrs["kill"] == 1
    assert run.attrs["jobs_killed"] == over.sum() > 0
    if "predicted_run_time" not in run:
        assert run.attrs.get("corrections", 0) == 0
    assert_array_equal(run["run_time"], cut)
    shorter = gs.simulate(replace(merged, run_time=cut, home=merged.home), PAIR, name)
    assert run["end_time"].equals(shorter["end_time"])


@pytest.mark.parametrize("name", NAMES)
def test_given_estimates_are_in_order_of_submission(name: str) -> None:
    merged = crowds_in_one()
    given = np.maximum(np.where(merged.requested_time > 0, merged.requested_time, merged.run_time), 1)
    run = gs.simulate(CROWDS, PAIR, name, estimates=given)
    assert run.attrs["estimates"] == "given"
    assert run["start_time"].equals(run_of(name)["start_time"])
    assert run["end_time"].equals(run_of(name)["end_time"])
    if "estimate" in run:
        assert_array_equal(run["estimate"], given)
    with pytest.raises(ConfigurationError, match=r"\(25,\) values for 50 jobs; give one for each job"):
        gs.simulate(CROWDS, PAIR, name, estimates=given[:25])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dynamic-grid"])  # has jobs of its own
def test_one_cluster_needs_no_home(name: str) -> None:
    """However the cluster and the jobs are given; the default is the cluster of the workload."""
    alone = CROWDS[0]
    run = gs.simulate(alone, gs.Cluster(processors=8, name="a"), name)
    gs.verify(run)
    gs.summarise(run)
    assert (run["home_cluster"] == -1).all()
    assert run.identical(gs.simulate(alone, scheduler=name))
    listed = gs.simulate([alone], [gs.Cluster(processors=8)], name, align="none")
    assert listed["start_time"].equals(run["start_time"])
    assert (listed["home_cluster"] == 0).all()
    assert gs.simulate(alone, 8, name)["end_time"].equals(run["end_time"])


NEED_NO_HOME = ("jscheduler", "multicluster", "muscle", "dll", "wrand", "dynamic-grid")
"""Schedulers for whom jobs may be submitted at no cluster."""


@pytest.mark.parametrize("name", NAMES)
def test_one_more_workload_is_submitted_nowhere(name: str) -> None:
    extra = [CROWDS[0], None, CROWDS[1]]
    if name in NEED_NO_HOME:
        run = gs.simulate(extra, PAIR, name)
        gs.verify(run)
        gs.summarise(run)
        home = merge_workloads(CROWDS)[1]
        assert_array_equal(run["home_cluster"], np.where(home == 1, -1, 0))
    else:
        for jobs in (extra, CROWDS[0], replace(crowds_in_one(), home=np.full(50, -1))):
            with pytest.raises(ConfigurationError, match=r"submitted at no cluster; .* column `home`"):
                gs.simulate(jobs, PAIR, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_may_be_without_users(name: str) -> None:
    run = gs.simulate([None, CROWDS[1]], PAIR, name)
    gs.verify(run)
    assert (run["home_cluster"] == 1).all()


def test_all_that_is_missing_is_said_at_once() -> None:
    changing = Platform(PAIR, changes=[ResourceChange(1500, "south", 4)])
    with refused("passes by instant or by event: ", "; processors that are added"):
        gs.simulate(CROWDS, changing, "dynamic-grid", passes="event")


def test_every_cluster_on_its_own_is_the_scheme_that_moves_nothing() -> None:
    clusters = [
        replace(NORTH, speed=2.0, policy="sjbf"),
        gs.Cluster(
            processors=8, processors_per_node=4, node_exclusive=True, speed=0.7, policy="conservative"
        ),
    ]
    for options in (
        {},
        {"kill": True},
        {"overrun": "increments"},
        {"times": "unit"},
        {"estimates": "actual"},
    ):
        local, scheme = (
            gs.simulate(CROWDS, clusters, scheduler, **options)
            for scheduler in ("local", gs.Superscheduler(scheme="local"))
        )
        assert local.equals(scheme)
        assert local.attrs["corrections"] == scheme.attrs["corrections"]
        assert local.attrs["policies"] == scheme.attrs["policies"] == "sjbf, conservative"
        for index, cluster in enumerate(clusters):
            if options.get("times") == "unit":
                continue
            # the same jobs alone, as at speed 1 on a cluster of that speed
            alone = gs.simulate(CROWDS[index], replace(cluster, speed=1.0), **options)
            own = local["home_cluster"].values == index
            wait = (local["start_time"] - local["submit_time"]).values[own]
            assert_array_equal(wait, (alone["start_time"] - alone["submit_time"]).values)


def test_a_local_policy_by_name_is_that_of_all_clusters() -> None:
    for policy in ("sjf", "easy(2)", gs.LocalPolicy(name="mine", order="smallest", backfilling="easy")):
        named = gs.simulate(CROWDS, PAIR, policy)
        own = gs.simulate(CROWDS, Platform(PAIR).with_policy(policy), "local")
        assert named.equals(own)
        label = policy if isinstance(policy, str) else "mine"
        assert named.attrs["scheme"] == label
        assert named.attrs["policies"] == own.attrs["policies"] == f"{label}, {label}"
    assert gs.simulate(CROWDS, PAIR).identical(gs.simulate(CROWDS, PAIR, "local"))


# --- times, speeds and starts ---------------------------------------------------------------------


def few(name: str = "few", **changes: Any) -> gs.Workload:
    """Two jobs of 30 and 31 s."""
    return workload(
        **{
            "name": name,
            "submit_time": [5, 9],
            "run_time": [30, 31],
            "requested_processors": [1, 1],
            "requested_time": [60, 61],
            "user": [1, 1],
            **changes,
        }
    )


UNLIKE = [replace(NORTH, speed=2.0), replace(SOUTH, speed=0.5)]


@pytest.mark.parametrize(
    ("jobs", "clusters", "options", "expected"),
    [
        ([few(), few()], UNLIKE, {}, {"run_time": [30, 30, 31, 31], "estimate": [60, 60, 61, 61]}),
        (
            [few(), few()],
            UNLIKE,
            {"times": "unit"},
            {"run_time": [15, 60, 16, 62], "estimate": [30, 120, 31, 122]},
        ),
        (
            [few(), few()],
            UNLIKE,
            {"times": "unit", "estimates": np.array([9, 8, 7, 6])},
            {"estimate": [5, 16, 4, 12]},
        ),
        # a cluster alone is not the home of a workload that does not say so
        (few(), UNLIKE[0], {}, {"run_time": [15, 16]}),
        (few(home=[0, 0]), UNLIKE[0], {}, {"run_time": [30, 31]}),
        ([few()], UNLIKE[:1], {}, {"run_time": [30, 31]}),
    ],
)
def test_times_are_those_of_the_home_or_of_speed_one(
    jobs: Any, clusters: Any, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert_fields(gs.simulate(jobs, clusters, "local", **options), **expected)


@pytest.mark.parametrize("scheduler", ["central", "jscheduler"])
def test_jobs_elsewhere_take_the_time_of_the_speed_there(scheduler: str) -> None:
    """The home is busy; 30 s there are 15 s at a cluster of twice the speed."""
    clusters = [gs.Cluster(processors=1, name="slow", speed=3.0), gs.Cluster(processors=1, speed=6.0)]
    jobs = few(submit_time=[0, 0])
    run = gs.simulate([jobs, None], clusters, scheduler)
    where, took = run["segment_cluster"].values, run["run_time"].values
    assert set(where) == {0, 1}
    assert took[where == 1].tolist() in ([15], [16])
    assert took[where == 0].tolist() in ([30], [31])
    gs.verify(run)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("ideal")])
@given(
    speeds=st.lists(st.sampled_from([1.0, 0.5, 0.1, 0.01, 3.0, 0.7]), min_size=2, max_size=2),
    times=st.sampled_from(["home", "unit"]),
    run_time=st.lists(st.integers(1, 100), min_size=6, max_size=6),
)
@settings(max_examples=20)
def test_times_are_rounded_once(name: str, speeds: list[float], times: Any, run_time: list[int]) -> None:
    """A job takes as long on a cluster whoever sends it there; at the speed of its home what it says."""
    clusters = [gs.Cluster(processors=2, name=f"at {k}", speed=speed) for k, speed in enumerate(speeds)]
    jobs = workload(
        submit_time=[0, 0, 1, 2, 2, 9],
        run_time=run_time,
        requested_time=run_time,
        requested_processors=[1] * 6,
        user=[1] * 6,
        home=[0, 1, 1, 0, 0, 1],
    )
    run = gs.simulate(jobs, clusters, name, times=times)
    gs.verify(run)
    for job, cluster in zip(run["segment_job"].values, run["segment_cluster"].values, strict=True):
        given_speed = speeds[run["home_cluster"].values[job]] if times == "home" else 1.0
        expected = run_time[job]
        if given_speed != speeds[cluster]:
            expected = math.ceil(expected * given_speed / speeds[cluster])
        # what a grid job of a dynamic grid does is counted at speed 1 where speeds differ
        if "work_time" not in run or run["sent_time"].values[job] < 0:
            assert run["run_time"].values[job] == expected


@pytest.mark.parametrize("name", NAMES)
def test_submit_times_go_together_as_aligned(name: str) -> None:
    jobs = [few("first", unix_start_time=1000), few("second", submit_time=[20, 30], unix_start_time=1100)]
    for align, submit in (
        ("start", [0, 0, 4, 10]),
        ("none", [5, 9, 20, 30]),
        ("clock", [5, 9, 120, 130]),
    ):
        run = gs.simulate(jobs, PAIR, name, align=align)  # type: ignore[arg-type]
        assert_fields(run, submit_time=submit, align=align)
        gs.verify(run)
    with pytest.raises(WorkloadError, match="first: the log does not say when it starts"):
        gs.simulate([few("first"), few("second")], PAIR, name, align="clock")


# --- what does not go together --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((CROWDS,), "platform: give a cluster for each workload"),
        ((CROWDS[:1], PAIR), "1 workloads for 2 clusters; give one (or None) for each"),
        ((CROWDS * 2, PAIR), "4 workloads for 2 clusters; give one (or None) for each"),
        (([None, None], PAIR), "no workloads; give one for a cluster"),
        (
            (CROWDS, "north"),
            "platform is 'north'; give a Cluster, a sequence of them, a Platform, or a number",
        ),
        ((CROWDS, 8.0), "platform is 8.0; give a Cluster"),
        ((CROWDS, True), "platform is True; give a Cluster"),
        ((CROWDS, []), "platform: no clusters; give at least one"),
        ((CROWDS, [NORTH, NORTH]), "clusters are called north, north; give each a name of its own"),
        ((CROWDS[0], 0), "processors"),
        ((CROWDS, PAIR, "s-j"), "unknown scheduler 's-j'; did you mean sjf?; use one of local, fcfs"),
        ((CROWDS, PAIR, 5), "scheduler is 5; give a name, a local policy, or a scheduler"),
        ((CROWDS, PAIR, gs.Superscheduler), "scheduler is <class"),
        (
            (replace(CROWDS[0], home=np.full(25, 2)), PAIR),
            "a: column home has values from 2 to 2; give -1 or",
        ),
        ((replace(CROWDS[0], home=np.full(25, -2)), PAIR), "a: column home has values from -2 to -2"),
    ],
)
def test_parts_that_do_not_go_together(arguments: tuple[Any, ...], reason: str) -> None:
    with refused(reason, one_line=True):
        gs.simulate(*arguments)


def test_a_workload_more_than_clusters_is_submitted_nowhere() -> None:
    """This makes no difference on one cluster."""
    assert gs.simulate(CROWDS, [NORTH]).sizes["job"] == 50


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"align": "end"}, "align is 'end'; use one of start, clock, none"),
        ({"times": "there"}, "times is 'there'; use one of home, unit"),
        ({"seed": -1}, "seed is -1; use a whole number from 0 on"),
        ({"seed": 1.5}, "seed is 1.5; use a whole number"),
        ({"overrun": "never"}, "overrun is 'never'; use one of doubling, increments"),
        ({"passes": "never"}, "passes is 'never'; use one of instant, event"),
        ({"estimates": "best"}, "estimates is 'best'; use requested, actual, clairvoyant or an array"),
    ],
)
def test_unknown_options_are_refused_whatever_the_scheduler(
    name: str, options: dict[str, Any], reason: str
) -> None:
    with refused(reason):
        gs.simulate(CROWDS, PAIR, name, **options)


@pytest.mark.parametrize("name", NAMES)
def test_unclean_workloads_are_refused_whatever_the_scheduler(name: str) -> None:
    unclean = replace(CROWDS[1], run_time=CROWDS[1].run_time - 1000)
    for jobs in ([CROWDS[0], unclean], replace(unclean, home=np.zeros(25, np.int64))):
        with pytest.raises(WorkloadError, match=r"b: 25 jobs have a negative run time \(first: job 1\)"):
            gs.simulate(jobs, PAIR, name)


# --- random workloads -----------------------------------------------------------------------------


@given(
    case=strategies.workloads(rejected=True),
    policy=st.sampled_from([*POLICIES, "easy(2)"]),
    node=st.integers(1, 4),
    exclusive=st.booleans(),
    speed=st.sampled_from([1.0, 0.5, 4.0]),
    kill=st.booleans(),
    estimates=st.sampled_from(["requested", "actual", "clairvoyant"]),
)
@settings(max_examples=300, deadline=None)
def test_runs_equal_the_oracle_and_the_verifier_accepts_them(
    case: tuple[list[naive.Job], int],
    policy: str,
    node: int,
    exclusive: bool,
    speed: float,
    kill: bool,
    estimates: Any,
) -> None:
    jobs, nodes = case
    assume(jobs)
    cluster = gs.Cluster(
        processors=nodes * node, processors_per_node=node, node_exclusive=exclusive, speed=speed
    )
    submit, run_time, requested, size = (list(column) for column in zip(*jobs, strict=True))
    made = workload(
        submit_time=submit, run_time=run_time, requested_time=requested, requested_processors=size, user=size
    )
    run = gs.simulate(made, cluster, policy, estimates=estimates, kill=kill)
    gs.verify(run)
    seen = [_as_seen(job, node if exclusive else 1, speed, kill=kill, estimates=estimates) for job in jobs]
    expected = naive.simulate(seen, cluster.processors, **naive.POLICIES[policy]._asdict())
    assert_fields(run, start_time=expected)


def _as_seen(job: naive.Job, node: int, speed: float, *, kill: bool, estimates: str) -> naive.Job:
    """The job as the cluster sees it."""
    run_time = min(job.run_time, job.estimate) if kill else job.run_time
    estimate = {"requested": job.estimate, "actual": run_time, "clairvoyant": max(job.estimate, run_time)}
    return naive.Job(
        job.submit_time,
        math.ceil(run_time / speed),
        math.ceil(max(estimate[estimates], 1) / speed),
        math.ceil(job.processors / node) * node,
    )


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"header": (), "acknowledgement": "", "checksum": "", "left_out": {}, "repaired": {}},
        {
            "name": "Ωmega “log”",
            "header": ("; Computer: Çomputer \\ \"x\" 'y'\t\x0b\x85", ";", "; {json: [1]}", "; %s \\n"),
            "acknowledgement": "Ada\nCharles 日本",
            "left_out": {"no size": 3, "Ω: / odd": 1},
            "repaired": {"out of order": 2},
        },
        {"unix_start_time": 2**33, "time_zone": "Europe/Rome", "average_cpu_time": [0.1, -1, 1e300, 5e-324]},
        {"processors_available": None, "job_number": [2**62, 5, 7, -3]},
    ],
    ids=["plain", "empty", "odd", "fractions", "large"],
)
def test_workloads_survive_a_file(changes: dict[str, Any], tmp_path: Path) -> None:
    jobs = workload(**changes)
    cluster = gs.Cluster(processors=6, processors_per_node=3, node_exclusive=True, speed=0.1, name=jobs.name)
    results.write(results.workload_dataset(jobs, cluster), tmp_path / "jobs.nc")
    back, same_cluster = results.workload_from_dataset(results.read(tmp_path / "jobs.nc"))
    assert back.equals(jobs)
    assert same_cluster == cluster
    assert gs.simulate(back, 4).identical(gs.simulate(jobs, 4))
    # Plain numbers again, not NumPy's, which JSON would refuse.
    json.dumps([back.processors_available, back.unix_start_time, dict(back.left_out)])


def _runs(**options: Any) -> list[xr.Dataset]:
    jobs = workload(requested_processors=[2, 4, 5, 1], left_out={"no size": 1})
    return [gs.simulate(jobs, scheduler=policy, **options) for policy in ("easy", "fcfs", "easy(3)")]


def test_stacked_runs_survive_a_file(tmp_path: Path) -> None:
    runs = [*_runs(), *_runs(estimates="clairvoyant")]
    stacked = results.stack_runs(runs, list("abcdef"))
    results.write(stacked, tmp_path / "deep" / "runs.nc")
    back = results.read(tmp_path / "deep" / "runs.nc")
    assert back["run"].values.tolist() == list("abcdef")
    for index, run in enumerate(runs):
        assert_stacked(stacked, index, run)
        assert_stacked(back, index, run)


def test_runs_without_segments_survive_stacking(tmp_path: Path) -> None:
    runs = [gs.simulate(workload(), gs.Cluster(processors=1), policy) for policy in ("easy", "sjf")]
    wide = workload(requested_processors=[9] * 4)
    none = [gs.simulate(wide, scheduler=policy) for policy in ("easy", "sjf")]
    for case in (runs, none):
        results.write(results.stack_runs(case, ["x", "y"]), tmp_path / "runs.nc")
        back = results.read(tmp_path / "runs.nc")
        for index, run in enumerate(case):
            assert_stacked(back, index, run)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: gs.simulate(workload(), kill=True), "run_time"),
        (lambda: gs.simulate(workload(), overrun="increments"), "overrun"),
        (lambda: gs.simulate(workload(), gs.Cluster(processors=8, name="abacus")), "cluster_processors"),
        (lambda: gs.simulate(workload(checksum="other")), "workload_checksum"),
        (lambda: gs.simulate(workload(submit_time=[0, 0, 0, 0])), "submit_time"),
        (lambda: gs.simulate(workload().select(slice(3))), "submit_time"),
    ],
)
def test_runs_of_different_things_are_not_stacked(other: Callable[[], xr.Dataset], difference: str) -> None:
    with pytest.raises(ConfigurationError, match=difference):
        results.stack_runs([gs.simulate(workload()), other()], ["a", "b"])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with refused("no such file", error=GridschedError):
        results.read(tmp_path / "missing.nc")
    path = tmp_path / "run.nc"
    results.write(gs.simulate(workload()), path)
    whole = path.read_bytes()
    (tmp_path / "folder").mkdir()
    for number, content in enumerate((b"", b"text", whole[:100], whole[: len(whole) // 2], whole[:-1])):
        (tmp_path / f"{number}.nc").write_bytes(content)
    for name in ("0.nc", "1.nc", "2.nc", "3.nc", "4.nc", "folder"):
        with refused("not a readable netCDF file", error=GridschedError):
            results.read(tmp_path / name)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    run = gs.simulate(workload())
    results.write(run, path)
    before = path.read_bytes()
    for broken in (
        run.assign_attrs(what={"a": 1}),
        run.assign_attrs(name="\udcff"),
        run.assign(x=("job", np.array([1, "a", None, 2.0], object))),
    ):
        with pytest.raises((GridschedError, TypeError, ValueError)):
            results.write(broken, path)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]


def test_writing_where_there_is_no_place(tmp_path: Path) -> None:
    run = gs.simulate(workload())
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        results.write(run, tmp_path / "file" / "run.nc")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        results.write(run, tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


# --- a real log -----------------------------------------------------------------------------------


def test_every_policy_on_the_kth_log(archive_mirror: Path, tmp_path: Path) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / KTH))
    runs = {policy: gs.simulate(jobs, scheduler=policy) for policy in POLICIES}
    mean_wait = {}
    for policy, run in runs.items():
        gs.verify(run)
        assert run.attrs["jobs_rejected"] == 0
        assert run.sizes["segment"] == len(jobs) == 28475
        assert gs.simulate(jobs, scheduler=policy).identical(run)
        mean_wait[policy] = float(gs.summarise(run)["wait_time_mean"].sel(job_class="all"))
    assert max(mean_wait, key=lambda policy: mean_wait[policy]) == "fcfs"
    assert mean_wait["sjbf"] < mean_wait["easy"] < mean_wait["conservative"]

    results.write(results.stack_runs([*runs.values()], [*runs]), tmp_path / "runs.nc")
    back = results.read(tmp_path / "runs.nc")
    for index, run in enumerate(runs.values()):
        assert_stacked(back, index, run)
