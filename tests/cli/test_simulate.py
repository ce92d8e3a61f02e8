"""`gridsched simulate`: what it prints and writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import gridsched as gs
from gridsched import results
from gridsched.policies.local import POLICIES
from gridsched.simulation import simulate
from tests.conftest import REPOSITORY
from tests.support.errors import says
from tests.support.fields import assert_stacked
from tests.support.logs import KTH, assert_rows, row, swf
from tests.support.nodes import jobs_of


def test_simulating_a_month_of_the_kth_log(
    archive_mirror: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = archive_mirror / KTH
    starts, stacked = tmp_path / "new" / "starts.csv", tmp_path / "new" / "runs.nc"
    text = printed(
        "simulate", path, "--policy", "easy,fcfs", "--month", "1996-10", "--csv", starts, "--output", stacked
    )
    assert_rows(text, {"jobs": ["2407"], "left out: outside the window": ["26069"]})

    workload = gs.clean(gs.select_window(gs.read_swf(path), month="1996-10"))
    table = pd.read_csv(starts)
    assert list(table) == [
        *("job_number", "submit_time", "run_time", "processors", "start_time easy", "start_time fcfs")
    ]
    assert_array_equal(table["job_number"], workload.job_number)
    written = results.read(stacked)
    for index, policy in enumerate(("easy", "fcfs")):
        run = gs.simulate(workload, scheduler=policy)
        assert_array_equal(table[f"start_time {policy}"], run["start_time"])
        assert_stacked(written, index, run)
        summary = gs.summarise(run).sel(job_class="all")
        mean, median, slowdown, used, longest = row(text, policy)
        assert float(mean) == pytest.approx(float(summary["wait_time_mean"]), abs=0.5)
        assert float(median) == pytest.approx(float(summary["wait_time_quantile"].sel(quantile=0.5)), abs=0.5)
        assert float(slowdown) == pytest.approx(float(summary["bounded_slowdown_mean"]), abs=0.005)
        why = str(summary["wait_time_mean_reason"].item())
        assert why
        assert why in text
        assert float(used) == pytest.approx(float(summary["utilisation"]), abs=0.0005)
        assert float(longest) == float(summary["queue_length_max"])
    assert float(row(text, "recorded")[0]) == pytest.approx(workload.wait_time.mean(), abs=0.5)


def test_means_of_a_short_queue_have_intervals(tmp_path: Path, printed: Callable[..., str]) -> None:
    rng = np.random.default_rng(1)
    submit = np.cumsum(rng.exponential(100, 8000)).astype(np.int64)
    run = rng.exponential(100, 8000).astype(np.int64) + 1
    jobs = jobs_of(submit_time=submit, run_time=run, requested_processors=rng.integers(1, 3, 8000))
    gs.write_swf(jobs, tmp_path / "light.swf")
    text = printed("simulate", tmp_path / "light.swf", "--policy", "fcfs", "--processors", 4)
    summary = gs.summarise(gs.simulate(jobs, gs.Cluster(processors=4), "fcfs")).sel(job_class="all")
    for name, digits in (("wait_time", 0), ("bounded_slowdown", 2)):
        mean, low, high = (float(summary[f"{name}_mean{bound}"]) for bound in ("", "_low", "_high"))
        assert low < mean < high
        assert f"{mean:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})" in text
    assert "without one" not in text


def test_recorded_waits_use_no_share_of_another_machine(
    archive_mirror: Path, printed: Callable[..., str]
) -> None:
    command = ("simulate", archive_mirror / KTH, "--jobs", "0:500")
    assert row(printed(*command), "recorded")[-2] != "-"
    assert row(printed(*command, "--processors", 128), "recorded")[-2] == "-"


def test_recorded_slowdowns_are_those_of_the_log_at_any_speed(
    archive_mirror: Path, printed: Callable[..., str]
) -> None:
    command = ("simulate", archive_mirror / KTH, "--jobs", "0:500")
    plain = row(printed(*command), "recorded")
    assert row(printed(*command, "--speed", 2, "--kill"), "recorded") == plain


def test_every_option_reaches_the_simulation(log: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    target = tmp_path / "runs.nc"
    options = (
        "--estimates clairvoyant --processors 6 --processors-per-node 2 --node-exclusive --speed 1.5 "
        "--kill --overrun increments --passes event --policy all,easy(2),fcfs --jobs 1:4"
    )
    text = printed("simulate", log, *options.split(), "--output", target)
    assert "6 processors in nodes of 2, one job a node, speed 1.5" in text
    assert_rows(
        text,
        {
            "no requested time": ["1", "job", "whose", "run", "time", "is", "used"],
            "killed": ["1", "job", "at", "their", "requested", "time"],
        },
    )

    cluster = gs.Cluster(processors=6, processors_per_node=2, node_exclusive=True, speed=1.5, name="abacus")
    workload = gs.clean(gs.select_window(gs.read_swf(log), jobs=(1, 4)), processors=6)
    stacked = results.read(target)
    assert stacked["run"].values.tolist() == [*POLICIES, "easy(2)"]
    for index, policy in enumerate(stacked["run"].values):
        expected = simulate(
            workload,
            cluster,
            str(policy),
            estimates="clairvoyant",
            kill=True,
            overrun="increments",
            passes="event",
        )
        assert_stacked(stacked, index, expected)


def test_warm_up_jobs_are_not_measured(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([(0, 100, 4, 100), (0, 10, 4, 10), (1000, 10, 4, 10), (1000, 10, 4, 10)]))
    assert row(printed("simulate", path), "easy")[0] == "28"
    assert row(printed("simulate", path, "--warm-up", 0.5), "easy")[0] == "5"


def test_jobs_larger_than_the_cluster_are_counted(log: Path, printed: Callable[..., str]) -> None:
    assert_rows(
        printed("simulate", log, "--processors", 2),
        {"left out: larger than the machine": ["2"], "jobs": ["3"]},
    )


def test_a_class_of_a_user_is_one_more_policy(log: Path, printed: Callable[..., str]) -> None:
    own = REPOSITORY / "config" / "schedulers" / "example.py"
    text = printed("simulate", log, "--policy", f"easy,{own}:Easy")
    assert row(text, "Easy") == row(text, "easy")


def test_a_score_is_the_queue_order_of_a_policy(
    log: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    score, starts = tmp_path / "score.py", tmp_path / "starts.csv"
    score.write_text("def narrow(processors: int) -> float:\n    return -processors\n")
    text = printed("simulate", log, "--score", f"{score}:narrow", "--csv", starts)
    says(text, "policy score", "with EASY backfilling")
    policy = gs.LocalPolicy(name="narrow", order="smallest", backfilling="easy")
    run = gs.simulate(gs.clean(gs.read_swf(log)), scheduler=policy)
    table = pd.read_csv(starts)
    assert list(table)[-2:] == ["start_time easy", "start_time score"]
    assert_array_equal(table["start_time score"], run["start_time"])
    only = printed("simulate", log, "--policy", "score", "--score", f"{score}:narrow")
    assert row(only, "score") == row(text, "score")
    assert "easy " not in only


def test_times_for_people(log: Path, printed: Callable[..., str]) -> None:
    """The same numbers in other units, and nothing else changes."""
    seconds = row(printed("simulate", log, "--policy", "fcfs"), "fcfs")
    text = printed("simulate", log, "--policy", "fcfs", "--human")
    mean, unit, median, other, *rest = row(text, "fcfs")
    assert (unit, other) == ("min", "min")
    assert 60 * float(mean) == pytest.approx(float(seconds[0]), abs=1)
    assert 60 * float(median) == pytest.approx(float(seconds[1]), abs=1)
    assert rest == seconds[2:]
    assert "[s]" not in text
