"""The Python interface: simulating a workload, and what the datasets and files of runs hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
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
from gridsched.schedulers.local import POLICIES
from tests import naive, strategies

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
    assert run["start_time"].values.tolist() == [0, 100, 20, 50]
    assert run["end_time"].values.tolist() == [100, 150, 50, 50]
    assert run["cluster_processors"].values.tolist() == [4]
    assert run["cluster"].values.tolist() == ["abacus"]
    assert run.attrs["scheme"] == "easy"
    assert gs.simulate(workload(), gs.Cluster(processors=4, name="abacus"), "easy").identical(run)


def test_columns_and_segments_of_a_run() -> None:
    jobs = workload(job_number=[7, 8, 9, 12], wait_time=[5, -1, 0, 3], group=[1, 2, 3, 4], queue=[0, 0, 1, 1])
    run = gs.simulate(jobs, policy="fcfs")
    for name in ("job_number", "submit_time", "run_time", "processors", "user", "group", "queue"):
        assert_array_equal(run[name], getattr(jobs, name))
    assert_array_equal(run["recorded_wait_time"], jobs.wait_time)
    assert run["segment_job"].values.tolist() == [0, 1, 2, 3]
    assert run["segment_cluster"].values.tolist() == [0, 0, 0, 0]
    assert run["segment_processors"].values.tolist() == [2, 4, 2, 1]
    assert_array_equal(run["segment_start"], run["start_time"])
    assert_array_equal(run["segment_end"], run["end_time"])
    assert all({"long_name", "units"} <= run[name].attrs.keys() for name in run.data_vars)


def test_attributes_say_where_a_run_comes_from() -> None:
    jobs = workload(left_out={"no size": 2}, repaired={"out of order": 1})
    run = gs.simulate(jobs, policy="easy(2)", kill=True, overrun="increments", passes="event")
    expected = {
        "title": "easy(2) on abacus",
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
    assert {key: run.attrs.get(key) for key in expected} == expected
    assert run.attrs["source"].startswith("gridsched ")


def test_node_exclusive_clusters_give_whole_nodes() -> None:
    cluster = gs.Cluster(processors=8, processors_per_node=4, node_exclusive=True)
    run = gs.simulate(workload(requested_processors=[1, 5, 9, 8]), cluster, "fcfs")
    assert run["segment_job"].values.tolist() == [0, 1, 3]
    assert run["segment_processors"].values.tolist() == [4, 8, 8]
    assert run["start_time"].values.tolist() == [0, 100, -1, 150]
    assert run["end_time"].values.tolist() == [100, 150, -1, 150]
    assert run["processors"].values.tolist() == [1, 5, 9, 8]
    assert run.attrs["jobs_rejected"] == 1
    gs.verify(run)


def test_nodes_that_jobs_share_are_not_rounded() -> None:
    cluster = gs.Cluster(processors=8, processors_per_node=4)
    run = gs.simulate(workload(requested_processors=[1, 5, 1, 1]), cluster)
    assert run["segment_processors"].values.tolist() == [1, 5, 1, 1]


def test_all_jobs_may_be_rejected() -> None:
    for policy in POLICIES:
        run = gs.simulate(workload(requested_processors=[5, 6, 7, 8]), policy=policy)
        assert run["start_time"].values.tolist() == [-1] * 4
        assert run.sizes["segment"] == 0
        assert run.attrs["jobs_rejected"] == 4
        gs.verify(run)
        assert math.isnan(gs.summarise(run)["wait_time_mean"].sel(job_class="all"))


def test_speed_divides_times_and_rounds_them_up() -> None:
    run = gs.simulate(workload(), gs.Cluster(processors=4, speed=1.5), estimates="clairvoyant")
    assert run["run_time"].values.tolist() == [67, 34, 20, 0]
    assert run["estimate"].values.tolist() == [67, 40, 20, 7]
    slow = gs.simulate(workload(), gs.Cluster(processors=4, speed=0.5), "fcfs")
    assert slow["end_time"].values.tolist() == [200, 300, 360, 300]


def test_estimates_are_what_the_scheduler_believes() -> None:
    jobs = workload()
    for name, expected in {
        "requested": [80, 60, 30, 10],
        "actual": [100, 50, 30, 1],
        "clairvoyant": [100, 60, 30, 10],
    }.items():
        run = gs.simulate(jobs, estimates=name)  # type: ignore[arg-type]
        assert run["estimate"].values.tolist() == expected
        assert run["run_time"].values.tolist() == [100, 50, 30, 0]
        assert run.attrs["estimates"] == name
    given = gs.simulate(jobs, estimates=np.array([0.5, 7.2, -4.0, 60.0]))
    assert given["estimate"].values.tolist() == [1, 8, 1, 60]
    assert given.attrs["estimates"] == "given"
    assert given.attrs["corrections"] > 0


def test_jobs_may_end_at_their_requested_time() -> None:
    run = gs.simulate(workload(), kill=True, estimates="actual")
    assert run["run_time"].values.tolist() == [80, 50, 30, 0]
    assert run["estimate"].values.tolist() == [80, 50, 30, 1]
    assert run.attrs["jobs_killed"] == 1
    assert run.attrs["corrections"] == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"submit_time": [-1, 0, 0, 0]}, "1 jobs have no submit time (first: job 1)"),
        ({"run_time": [5, -1, -1, 5]}, "2 jobs have no run time (first: job 2)"),
        ({"requested_processors": [1, 1, 0, -1]}, "2 jobs have no processors (first: job 3)"),
        ({"submit_time": [0, 5, 4, 6]}, "not in order of submission"),
        ({"submit_time": [0.0, 1.5, 2.0, 3.0]}, "submit_time has fractions"),
        ({"run_time": [0.0, 1.5, 2.0, 3.0]}, "run_time has fractions"),
        ({"requested_time": [0.0, 1.5, 2.0, 3.0]}, "requested_time has fractions"),
        ({"processors_available": None}, "give a cluster"),
        ({"requested_time": [1, 1, 1, 2**31]}, "job 4 is estimated at 2147483648 s"),
        ({"submit_time": [0, 0, 0, 2**41]}, "job 4 is submitted at 2199023255552 s"),
        ({"run_time": [0, 2**41, 0, 0], "requested_time": [1, 1, 1, 1]}, "job 2 runs for 2199023255552 s"),
    ],
)
def test_workloads_that_cannot_be_simulated(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(WorkloadError) as error:
        gs.simulate(workload(**changes))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_an_empty_workload_cannot_be_simulated() -> None:
    with pytest.raises(WorkloadError, match="no jobs to simulate"):
        gs.simulate(workload().select(slice(0)))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"policy": "speedy"}, "unknown policy 'speedy'"),
        ({"policy": "easy(0)"}, "reservations is 0"),
        ({"estimates": "best"}, "estimates is 'best'"),
        ({"estimates": np.ones(3)}, "(3,) values for 4 jobs"),
        ({"estimates": np.array([1, np.nan, 1, 1])}, "nan for the job at index 1"),
        ({"estimates": np.array([1, 1, np.inf, 1])}, "inf for the job at index 2"),
        ({"overrun": "never"}, "overrun is 'never'"),
        ({"passes": "never"}, "passes is 'never'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        gs.simulate(workload(), **options)
    assert reason in str(error.value)


@pytest.mark.parametrize("cluster", [{"speed": 1e-9}, {"speed": 1e-320}, {"processors": 2**31}])
def test_clusters_beyond_what_can_be_simulated(cluster: dict[str, Any]) -> None:
    with pytest.raises(GridschedError, match="can be simulated"):
        gs.simulate(workload(), gs.Cluster(**{"processors": 4, **cluster}))


@pytest.mark.parametrize(
    "cluster",
    [
        {"processors": 0},
        {"processors": 5, "processors_per_node": 2},
        {"processors": 4, "processors_per_node": 0},
        {"processors": 4, "speed": 0.0},
        {"processors": 4, "speed": math.nan},
        {"processors": 4, "speed": math.inf},
    ],
)
def test_clusters_that_cannot_exist(cluster: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="cluster cluster: "):
        gs.Cluster(**cluster)


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
    run = gs.simulate(jobs, policy=gs.LocalPolicy(name="mine", order=order, backfilling="easy"))
    assert run.attrs["scheme"] == "mine"
    if same is None:
        assert run["start_time"].values.tolist() == [0, 10, 30, 20]
    else:
        listed = [naive.Job(*job) for job in ((0, 10, 80, 4), (1, 10, 60, 4), (1, 10, 10, 3), (1, 10, 10, 4))]
        expected = naive.simulate(listed, 4, order=same, backfilling="easy")
        assert run["start_time"].values.tolist() == expected


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
    point = naive.POLICIES[policy]
    seen = [_as_seen(job, node if exclusive else 1, speed, kill=kill, estimates=estimates) for job in jobs]
    expected_starts = naive.simulate(
        seen,
        cluster.processors,
        order=point.order,
        backfilling=point.backfilling,
        reservations=point.reservations,
        backfill_order=point.backfill_order,
    )
    assert run["start_time"].values.tolist() == expected_starts


def _as_seen(job: naive.Job, node: int, speed: float, *, kill: bool, estimates: str) -> naive.Job:
    """The job as the cluster sees it."""
    run_time = min(job.run_time, job.estimate) if kill else job.run_time
    believed = {"requested": job.estimate, "actual": run_time, "clairvoyant": max(job.estimate, run_time)}
    return naive.Job(
        job.submit_time,
        math.ceil(run_time / speed),
        math.ceil(max(believed[estimates], 1) / speed),
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
    # Plain numbers again, not NumPy's, which JSON would refuse.
    json.dumps([back.processors_available, back.unix_start_time, dict(back.left_out)])


def test_a_simulation_is_the_same_from_a_file(tmp_path: Path) -> None:
    jobs = workload(left_out={"no size": 1})
    results.write(results.workload_dataset(jobs, gs.Cluster(processors=4)), tmp_path / "jobs.nc")
    back, _ = results.workload_from_dataset(results.read(tmp_path / "jobs.nc"))
    assert gs.simulate(back).identical(gs.simulate(jobs))


def _runs(**options: Any) -> list[xr.Dataset]:
    jobs = workload(requested_processors=[2, 4, 5, 1], left_out={"no size": 1})
    return [gs.simulate(jobs, policy=policy, **options) for policy in ("easy", "fcfs", "easy(3)")]


def test_stacked_runs_survive_a_file(tmp_path: Path) -> None:
    runs = [*_runs(), *_runs(estimates="clairvoyant")]
    stacked = results.stack_runs(runs, list("abcdef"))
    results.write(stacked, tmp_path / "deep" / "runs.nc")
    back = results.read(tmp_path / "deep" / "runs.nc")
    assert back["run"].values.tolist() == list("abcdef")
    for index, run in enumerate(runs):
        assert results.unstack_run(stacked, index).identical(run)
        again = results.unstack_run(back, index)
        assert again.identical(run)
        gs.verify(again)
        assert gs.summarise(again).equals(gs.summarise(run))


def test_runs_without_segments_survive_stacking(tmp_path: Path) -> None:
    runs = [gs.simulate(workload(), gs.Cluster(processors=1), policy) for policy in ("easy", "sjf")]
    none = [gs.simulate(workload(requested_processors=[9] * 4), policy=policy) for policy in ("easy", "sjf")]
    for case in (runs, none):
        results.write(results.stack_runs(case, ["x", "y"]), tmp_path / "runs.nc")
        back = results.read(tmp_path / "runs.nc")
        assert all(results.unstack_run(back, index).identical(run) for index, run in enumerate(case))


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
    with pytest.raises(GridschedError, match="no such file"):
        results.read(tmp_path / "missing.nc")
    path = tmp_path / "run.nc"
    results.write(gs.simulate(workload()), path)
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:100], whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(GridschedError, match="not a readable netCDF file"):
            results.read(path)
    with pytest.raises(GridschedError, match="not a readable netCDF file"):
        results.read(tmp_path)


def test_damage_inside_the_data_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    submit = np.cumsum(np.random.default_rng(1).integers(0, 10**6, 20_000)).tolist()
    ones = [1] * len(submit)
    jobs = workload(
        submit_time=submit, run_time=ones, requested_processors=ones, requested_time=ones, user=ones
    )
    results.write(gs.simulate(jobs), path)
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 1000] = bytes(1000)
    path.write_bytes(damaged)
    with pytest.raises(GridschedError, match="not a readable netCDF file"):
        results.read(path)


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


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.nc", "b.nc"):
        results.write(results.stack_runs(_runs(), list("abc")), tmp_path / name)
    assert results.read(tmp_path / "a.nc").identical(results.read(tmp_path / "b.nc"))


# --- a real log -----------------------------------------------------------------------------------


def test_every_policy_on_the_kth_log(archive_mirror: Path, tmp_path: Path) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / KTH))
    runs = {policy: gs.simulate(jobs, policy=policy) for policy in POLICIES}
    mean_wait = {}
    for policy, run in runs.items():
        gs.verify(run)
        assert run.attrs["jobs_rejected"] == 0
        assert run.sizes["segment"] == len(jobs) == 28475
        assert gs.simulate(jobs, policy=policy).identical(run)
        mean_wait[policy] = float(gs.summarise(run)["wait_time_mean"].sel(job_class="all"))
    assert max(mean_wait, key=lambda policy: mean_wait[policy]) == "fcfs"
    assert mean_wait["sjbf"] < mean_wait["easy"] < mean_wait["conservative"]

    results.write(results.stack_runs([*runs.values()], [*runs]), tmp_path / "runs.nc")
    back = results.read(tmp_path / "runs.nc")
    for index, run in enumerate(runs.values()):
        assert results.unstack_run(back, index).identical(run)


def test_a_log_survives_a_file_whole(archive_mirror: Path, tmp_path: Path) -> None:
    log = gs.read_swf(archive_mirror / "lublin_256-synthetic.swf.gz")
    results.write(results.workload_dataset(log, gs.Cluster(processors=256, name=log.name)), tmp_path / "x.nc")
    back, _ = results.workload_from_dataset(results.read(tmp_path / "x.nc"))
    assert back.equals(log)
