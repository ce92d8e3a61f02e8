"""Policies beside the recorded waits: means, weeks, users and groups, and what is not simulated."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gridsched as gs
from gridsched.calibration.measures import explained
from gridsched.comparison import (
    NO_EFFECT_ALONE,
    compare,
    left_aside,
    recorded_excess,
    recorded_peak,
    what_each_changes,
)
from gridsched.errors import ConfigurationError
from gridsched.figures.comparison import comparison, extremes
from gridsched.forecasting.snapshot import recorded_timeline
from gridsched.policies.local import named_policy
from gridsched.systems.base import Site
from gridsched.traces.sacct import read_accounting
from tests.support.errors import each_refused
from tests.support.fields import assert_fields
from tests.support.logs import odd_log
from tests.traces.test_sacct import export, line

WEEK = 7 * 86400


def workload(jobs: int = 200, weeks: int = 5, seed: int = 1, **changes: Any) -> gs.Workload:
    random = np.random.default_rng(seed)
    run = random.integers(1, 20_000, jobs)
    columns: dict[str, Any] = {
        "submit_time": np.sort(random.integers(0, weeks * WEEK, jobs)),
        "run_time": run,
        "wait_time": random.integers(0, 9000, jobs),
        "requested_time": run + 100,
        "requested_processors": random.integers(1, 5, jobs),
        "user": random.integers(-1, 6, jobs),
        "group": random.integers(0, 2, jobs),
        **changes,
    }
    return gs.Workload(name="site", processors_available=4, **columns)


def waits_under(jobs: gs.Workload, policy: str) -> Any:
    """Wait of each job."""
    run = gs.simulate(jobs, 4, policy)
    return (run["start_time"] - run["submit_time"]).values


def test_means_are_those_of_the_runs() -> None:
    jobs = workload()
    policies = [named_policy("easy"), named_policy("fcfs")]
    said: list[str] = []
    found = compare(jobs, gs.Cluster(processors=4), policies, report=said.append)
    assert found["scheme"].values.tolist() == ["recorded", "easy", "fcfs"]
    assert said == ["simulating easy", "simulating fcfs", "comparing"]
    assert float(found["wait_time_mean"].sel(scheme="recorded")) == pytest.approx(jobs.wait_time.mean())
    for policy in ("easy", "fcfs"):
        run = gs.simulate(jobs, gs.Cluster(processors=4), policy)
        waits = (run["start_time"] - run["submit_time"]).values
        one = found.sel(scheme=policy)
        assert float(one["wait_time_quantile"].sel(quantile=0.95)) == pytest.approx(np.quantile(waits, 0.95))
        summary = gs.summarise(run).sel(job_class="all")
        assert_fields(
            one,
            wait_time_mean=pytest.approx(waits.mean()),
            wait_time_difference=pytest.approx((waits - jobs.wait_time).mean()),
            bounded_slowdown_mean=pytest.approx(float(summary["bounded_slowdown_mean"])),
            utilisation=pytest.approx(float(summary["utilisation"])),
        )
        # the error of the simulation is part of it
        for bound in ("low", "high"):
            assert np.isnan(float(one[f"wait_time_difference_{bound}"]))
            assert np.isnan(float(one[f"bounded_slowdown_difference_{bound}"]))
        assert str(one["wait_time_difference_reason"].values) == NO_EFFECT_ALONE
        for name, value in explained(waits, jobs.wait_time)._asdict().items():
            assert float(one[f"explained_{name}"]) == pytest.approx(value)


def easy_and_fcfs(jobs: gs.Workload) -> Any:
    """What a change from EASY to first come, first served does to the jobs of a log, for the latter."""
    cluster = gs.Cluster(processors=4)
    sites = {name: Site(cluster=cluster, scheduler=named_policy(name)) for name in ("easy", "fcfs")}
    found = gs.what_if(jobs, sites)
    assert found.attrs["reference"] == "easy"
    known = np.isfinite(found["wait_time_difference_low"].values)
    # a policy has no difference from itself, and recorded waits hold other causes
    assert not known[:2].any()
    return found.sel(scheme="fcfs")


@pytest.mark.parametrize("factor", [1.0, 0.8, 1.6])
def test_intervals_of_configurations_hold_the_error_of_the_present_one(factor: float) -> None:
    jobs = workload()
    easy, fcfs = (waits_under(jobs, name) for name in ("easy", "fcfs"))
    recorded = (factor * easy).astype(np.int64)
    one = easy_and_fcfs(replace(jobs, wait_time=recorded))
    low, high = (float(one[f"wait_time_difference_{end}"]) for end in ("low", "high"))
    assert one.attrs["replays"] == 24
    assert low < (fcfs - easy).mean() < high
    assert low - 2 < (fcfs - recorded).mean() < high + 2
    assert low - 2 < (fcfs - easy).mean() * factor < high + 2


def test_a_configuration_that_does_not_explain_the_log_has_no_interval() -> None:
    jobs = workload()
    one = easy_and_fcfs(replace(jobs, wait_time=3 * waits_under(jobs, "easy")))
    assert np.isnan(float(one["wait_time_difference_low"]))
    assert np.isfinite(float(one["wait_time_difference"]))
    assert "0.33 times the recorded" in str(one["wait_time_difference_reason"].values)


def test_the_change_of_a_mean_is_that_of_the_jobs_that_both_ran() -> None:
    sizes = {"now": 4, "smaller": 3}
    sites = {
        name: Site(cluster=gs.Cluster(processors=size), scheduler=named_policy("easy"))
        for name, size in sizes.items()
    }
    found = gs.what_if(workload(), sites)
    assert found["jobs_rejected"].values[-1] > found["jobs_rejected"].values[-2]
    change = float(found["wait_time_mean"][-1] - found["wait_time_mean"][-2])
    # replays have run times of up to a second more
    assert float(found["wait_time_difference"][-1]) == pytest.approx(change, rel=0.1)


def test_policies_by_name_and_a_cluster_by_its_processors() -> None:
    jobs = workload()
    by_name = compare(jobs, 4, ["easy", "easy(2)"])
    policies = [named_policy("easy"), named_policy("easy(2)")]
    assert by_name.drop_attrs().identical(compare(jobs, gs.Cluster(processors=4), policies).drop_attrs())


@pytest.mark.parametrize(
    ("cluster", "policies", "problem"),
    [
        (4, "easy", r"give a list, such as \['easy'\]"),
        (4, [], "give at least one"),
        (4, ["easy", "easy"], "'easy' is given twice"),
        (4, ["esy"], "unknown policy 'esy'"),
        (4, [replace(named_policy("easy"), name="recorded")], "'recorded' is what the log recorded"),
        (4, [None], "give a name or a LocalPolicy"),
        ("4", ["easy"], "platform is '4'"),
        ([gs.Cluster(processors=4, name=name) for name in "ab"], ["easy"], "2 clusters"),
    ],
)
def test_what_cannot_be_compared_is_refused(cluster: Any, policies: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        compare(workload(), cluster, policies)


def test_a_warm_up_is_a_share() -> None:
    jobs, cluster = workload(), gs.Cluster(processors=4)
    sites = {"now": Site(cluster=cluster, scheduler=named_policy("easy"))}
    each_refused(
        *(
            (ConfigurationError, f"warm_up is {warm_up}; it must be at least 0 and below 1", call)
            for warm_up in (-0.5, 1.0)
            for call in (
                partial(compare, jobs, cluster, ["easy"], warm_up=warm_up),
                partial(gs.what_if, jobs, sites, warm_up=warm_up),
                partial(what_each_changes, jobs, cluster, "easy", warm_up=warm_up),
            )
        )
    )


def test_users_and_groups_hold_all_that_is_known() -> None:
    jobs = workload()
    found = compare(
        jobs, gs.Cluster(processors=4), [named_policy("easy")], names={"user": list("abcdef"), "group": ["g"]}
    )
    run = gs.simulate(jobs, gs.Cluster(processors=4), "easy")
    change = (run["start_time"] - run["submit_time"]).values - jobs.wait_time
    for index, name in enumerate(found["user"].values.tolist()):
        mine = jobs.user == "abcdef".index(name)
        assert int(found["user_jobs"][index]) == mine.sum()
        work = (jobs.processors[mine] * jobs.run_time[mine]).sum() / 3600
        assert float(found["user_work"][index]) == pytest.approx(work)
        assert float(found["user_wait_time_change"][1, index]) == pytest.approx(change[mine].sum() / 3600)
        assert float(found["user_wait_time_mean"][0, index]) == pytest.approx(jobs.wait_time[mine].mean())
    assert found["user_jobs"].values.tolist() == sorted(found["user_jobs"].values, reverse=True)
    # A group beyond the names has its number.
    assert sorted(found["group"].values.tolist()) == ["1", "g"]
    assert int(found["group_jobs"].sum()) == len(jobs)


def test_without_recorded_waits_the_first_policy_is_compared_with() -> None:
    jobs = workload(wait_time=np.full(200, -1))
    found = compare(jobs, gs.Cluster(processors=4), [named_policy("easy"), named_policy("sjf")])
    assert found.attrs["reference"] == "easy"
    assert_array_equal(found["wait_time_difference"].sel(scheme="easy"), 0)


def test_jobs_that_cannot_be_compared_are_counted() -> None:
    waits = workload().wait_time.copy()
    waits[150:170] = -1
    jobs = workload(wait_time=waits)
    found = compare(jobs, gs.Cluster(processors=4), [named_policy("easy")], warm_up=0.25)
    assert_fields(found.attrs, jobs_measured=130, jobs_not_measured=70)
    assert np.isnan(found["utilisation"].sel(scheme="recorded"))
    assert float(found["wait_time_mean"][0]) == pytest.approx(waits[np.r_[50:150, 170:200]].mean())


def test_most_processors_in_use() -> None:
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 10],
        "run_time": [10, 5, 10],
        "requested_processors": [3, 4, 5],
    }
    assert recorded_peak(gs.Workload(name="x", wait_time=np.array([0, 0, 0]), **columns)) == 7
    assert recorded_peak(gs.Workload(name="x", wait_time=np.array([0, 5, 0]), **columns)) == 7
    assert recorded_peak(gs.Workload(name="x", wait_time=np.array([0, 20, 0]), **columns)) == 5
    assert recorded_peak(gs.Workload(name="x", **columns)) is None


def test_a_job_that_was_cancelled_before_it_started_has_no_recorded_wait(tmp_path: Path) -> None:
    jobs = gs.clean(gs.read_swf(odd_log(tmp_path / "odd.swf")))
    found = compare(jobs, 4, ["fcfs"])
    assert_fields(found.attrs, jobs_measured=4, jobs_not_measured=1)
    assert_fields(found.sel(scheme="recorded"), wait_time_mean=40.0, jobs_gave_up=1)
    assert recorded_peak(replace(jobs, requested_processors=np.array([4, 99, 2, 4, 1]))) == 6
    assert_fields(recorded_timeline(jobs), left_out={"cancelled before it started": 1})


def test_the_share_of_the_time_in_which_more_processors_are_in_use(tmp_path: Path) -> None:
    jobs = gs.read_swf(odd_log(tmp_path / "odd.swf"))
    assert [recorded_excess(jobs, size) for size in (3, 4, 5, 6)] == [0.75, 0.25, 0.25, 0.0]
    assert np.isnan(recorded_excess(replace(jobs, wait_time=np.full(6, -1)), 4))


def test_what_is_left_aside_comes_from_the_log(tmp_path: Path) -> None:
    log = read_accounting(
        export(
            tmp_path,
            line("1_1", JobIDRaw=1, Partition="gpu", AllocTRES="gres/gpu=1", Suspended="01:00:00"),
            line(2, QOS="high", Eligible="2024-05-01T10:00:30", Timelimit="UNLIMITED"),
            line(3, State="NODE_FAIL", ReqCPUS=1),
        )
    )
    aside = dict(left_aside(log.workload, log))
    for name, words in {
        "partitions": "2 of them",
        "queues, QOS": "2 of them",
        "dependencies": "1 jobs became eligible only after",
        "arrays, parts": "1 jobs are tasks of arrays",
        "memory, GPUs": "1 jobs held GPUs",
        "nodes": "1 jobs got more",
        "suspension": "1 h in all",
        "outages": "1 jobs ended with a node",
        "time zone": "--timezone",
        "time limits": "1 of 3 jobs",
    }.items():
        assert words in aside[name], name
    assert "clock" in dict(left_aside(log.workload, log)) or "runs again" not in aside
    # Of a part of the log, only what holds for it.
    part = dict(left_aside(log.workload.select(slice(1, 2)), log))
    assert {"partitions", "suspension", "arrays, parts"}.isdisjoint(part)


def test_what_is_left_aside_of_an_swf_log() -> None:
    aside = dict(left_aside(workload(preceding_job=np.r_[np.full(199, -1), 5])))
    assert aside["dependencies"].startswith("1 of the jobs follow another job")
    assert "time zone" not in aside
    constant = dict(left_aside(workload(preceding_job=np.full(200, 5))))["dependencies"]
    assert constant == "200 not taken: preceding job 5 in every job that has one, a placeholder"


def test_the_figure_shows_its_numbers() -> None:
    found = compare(workload(), gs.Cluster(processors=4), [named_policy("easy"), named_policy("sjbf")])
    figure, numbers = comparison(found)
    assert len(figure.axes) == 4
    means = numbers[(numbers["panel"] == "wait") & (numbers["statistic"] == "mean")].set_index("scheme")[
        "value"
    ]
    assert_allclose(means[found["scheme"].values], found["wait_time_mean"])
    users = numbers[numbers["panel"] == "user"]
    assert set(users["scheme"]) == {"easy"}
    assert users["value"].is_monotonic_increasing
    alone, _ = comparison(found.isel(scheme=[0]))
    assert len(alone.axes) == 2


def test_groups_of_one_user_each_are_not_drawn_again() -> None:
    user = np.random.default_rng(2).integers(0, 6, 200)
    found = compare(workload(user=user, group=user), gs.Cluster(processors=4), [named_policy("easy")])
    figure, numbers = comparison(found)
    assert {"user", "group"} & set(numbers["panel"]) == {"user"}
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]


def test_extremes() -> None:
    change = np.array([3.0, -1, 0, -5, 2, 9, -2])
    assert extremes(change, 2) == [3, 6, 0, 5]
    assert extremes(change, 10) == [3, 6, 1, 4, 0, 5]
    assert extremes(np.zeros(4), 3) == []
    # Nobody is hidden where there is room for all, however many of them gain.
    assert extremes(np.array([-1.0, -3, -2, np.nan]), 2) == [1, 2, 0]
