"""Metrics of grid runs against loops over the jobs, a grid worked out by hand, and what must add up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from gridsched import summary as summaries
from gridsched.metrics import jobs as metrics
from gridsched.metrics.grid import (
    VARIABLES,
    offered_loads,
    summarise_grid,
    summarise_ideal,
)
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.systems.ideal.scheduler import Ideal
from gridsched.systems.superscheduler.scheduler import SchemeName, Superscheduler
from gridsched.workloads import Workload
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of

NAN = math.nan
PROCESSORS = (8, 12, 2)
SPEEDS = (1.0, 2.5, 0.5)


class Job(NamedTuple):
    """A job of a test run; start -1 is a rejected job."""

    submit: int
    start: int
    run: int
    processors: int
    allocated: int
    home: int
    cluster: int

    @property
    def end(self) -> int:
        return self.start + self.run if self.start >= 0 else -1


def run_dataset(jobs: list[Job]) -> xr.Dataset:
    """A run on three clusters in which the jobs were placed as they say."""

    def column(name: str, chosen: list[Job]) -> np.ndarray:
        return np.array([getattr(job, name) for job in chosen], np.int64)

    ran = [job for job in jobs if job.start >= 0]
    variables = {
        "submit_time": ("job", column("submit", jobs)),
        "run_time": ("job", column("run", jobs)),
        "processors": ("job", column("processors", jobs)),
        "start_time": ("job", column("start", jobs)),
        "end_time": ("job", column("end", jobs)),
        "home_cluster": ("job", column("home", jobs)),
        "segment_job": ("segment", np.array([k for k, job in enumerate(jobs) if job.start >= 0], np.int64)),
        "segment_cluster": ("segment", column("cluster", ran)),
        "segment_processors": ("segment", column("allocated", ran)),
        "segment_start": ("segment", column("start", ran)),
        "segment_end": ("segment", column("end", ran)),
        "cluster_processors": ("cluster", np.array(PROCESSORS)),
        "cluster_speed": ("cluster", np.array(SPEEDS)),
    }
    return xr.Dataset(
        variables,
        {"cluster": ["a", "b", "c"]},
        {"title": "a test", "scheme": "s-i", "queries": 7, "corrections": 3},
    )


def test_queues_of_a_grid_count_by_their_share_of_all_waiting() -> None:
    def jobs(cluster: int, wait: int, run: int) -> list[Job]:
        return [Job(100 * i, 100 * i + wait, run + i % 3, 2, 2, cluster, cluster) for i in range(50)]

    found = []
    for part in (jobs(0, 60, 20), jobs(1, 20, 40)):
        busy = sum(job.start - job.submit for job in part) / (100 * 49 + 60 + 22)
        work = np.array([2.0 * job.run for job in part])
        found.append(50 * (1 - busy) ** 2 / (work.var() / work.mean() ** 2))
    both = run_dataset(jobs(0, 60, 20) + jobs(1, 20, 40))
    expected = (0.75 / math.sqrt(found[0]) + 0.25 / math.sqrt(found[1])) ** -2
    assert metrics.relaxations(both) == pytest.approx(expected, rel=0.01)


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    """Jobs in submit order with ties, zero run times, waits of zero, rejections and whole nodes."""
    jobs = []
    submit = draw(st.integers(0, 100))
    for _ in range(draw(st.integers(0, 15))):
        submit += draw(st.sampled_from([0, 1, 30]))
        processors = draw(st.integers(1, 12))
        jobs.append(
            Job(
                submit=submit,
                start=-1 if draw(st.integers(0, 6)) == 0 else submit + draw(st.sampled_from([0, 0, 7, 5000])),
                run=draw(st.sampled_from([0, 1, 10, 3600])),
                processors=processors,
                allocated=processors + draw(st.integers(0, 3)),
                home=draw(st.integers(0, 2)),
                cluster=draw(st.integers(0, 2)),
            )
        )
    return jobs


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else NAN


def share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else NAN


def naive_deviation(waits: list[int]) -> float:
    """The formula of section 3.2 as it is printed."""
    n = len(waits)
    if not n:
        return NAN
    return math.sqrt(sum(w**2 for w in waits) - sum(Fraction(w, n) for w in waits) ** 2) / n


def naive_summary(jobs: list[Job]) -> dict[str, Any]:
    """Every variable of a summary, by loops over the jobs."""
    ran = [job for job in jobs if job.start >= 0]
    span = max(job.end for job in ran) - min(job.submit for job in ran) if ran else NAN
    waits = [job.start - job.submit for job in ran]
    slowdowns = [(job.end - job.submit) / max(job.run, 1) for job in ran]
    bounded = {job: max(1.0, (job.end - job.submit) / max(job.run, 10)) for job in ran}
    every = range(3)
    at_home = [[job for job in ran if job.home == home] for home in every]
    there = [[job for job in ran if job.cluster == cluster] for cluster in every]
    between = [[[job for job in ran if (job.home, job.cluster) == (h, c)] for c in every] for h in every]
    pool = sum(processors * speed for processors, speed in zip(PROCESSORS, SPEEDS, strict=True))

    def work(some: list[Job]) -> int:
        return sum(job.processors * job.run for job in some)

    last = max((job.submit for job in ran), default=0)
    offered = last - min((job.submit for job in ran), default=0)

    def within(job: Job) -> int:
        return sum(second < last for second in range(job.start, job.end))

    def own_span(some: list[Job]) -> float:
        return max(job.end for job in some) - min(job.submit for job in some) if some else 0

    return {
        "jobs": len(ran),
        "rejected": len(jobs) - len(ran),
        "wait_time_mean": mean([float(wait) for wait in waits]),
        "response_time_mean": mean([float(job.end - job.submit) for job in ran]),
        "wait_time_deviation": naive_deviation(waits),
        "wait_time_std": statistics.pstdev(waits) if waits else NAN,
        "wait_time_median": statistics.median(waits) if waits else NAN,
        "wait_time_p95": np.percentile(waits, 95) if waits else NAN,
        "bounded_slowdown_mean": mean([bounded[job] for job in ran]),
        "bounded_slowdown_median": statistics.median(bounded[job] for job in ran) if ran else NAN,
        "slowdown_mean": mean(slowdowns),
        "grid_efficiency": share(
            sum(within(job) * job.processors * SPEEDS[job.cluster] for job in ran), offered * pool
        ),
        "grid_efficiency_makespan": share(
            sum(job.run * job.processors * SPEEDS[job.cluster] for job in ran), span * pool
        ),
        "transferred": share(sum(job.home != job.cluster for job in ran), len(ran)),
        "makespan": span,
        "queries": 7,
        "corrections": 3,
        "jobs_home": [len(some) for some in at_home],
        "wait_time_mean_home": [mean([job.start - job.submit for job in some]) for some in at_home],
        "response_time_mean_home": [mean([job.end - job.submit for job in some]) for some in at_home],
        "run_time_mean_home": [mean([job.end - job.start for job in some]) for some in at_home],
        "bounded_slowdown_mean_home": [mean([bounded[job] for job in some]) for some in at_home],
        "utilisation": [
            share(sum(job.processors * within(job) for job in some), PROCESSORS[c] * offered)
            for c, some in enumerate(there)
        ],
        "utilisation_makespan": [share(work(some), PROCESSORS[c] * span) for c, some in enumerate(there)],
        "utilisation_own": [
            share(work(some), PROCESSORS[c] * own_span(some)) for c, some in enumerate(there)
        ],
        "occupied": [
            share(sum(job.allocated * within(job) for job in some), PROCESSORS[c] * offered)
            for c, some in enumerate(there)
        ],
        "occupied_makespan": [
            share(sum(job.allocated * job.run for job in some), PROCESSORS[c] * span)
            for c, some in enumerate(there)
        ],
        "flow_jobs": [[len(some) for some in row] for row in between],
        "flow_work": [[work(some) for some in row] for row in between],
    }


@given(job_lists())
def test_summaries_equal_loops_over_the_jobs(jobs: list[Job]) -> None:
    summary = summarise_grid(run_dataset(jobs))
    expected = naive_summary(jobs)
    assert set(summary.data_vars) == set(expected) == set(VARIABLES)
    for name, values in expected.items():
        np.testing.assert_allclose(summary[name].values, values, rtol=1e-12, atol=1e-12, err_msg=name)


@given(job_lists(), st.sampled_from([0.1, 0.25, 0.4]))
def test_times_leave_the_warm_up_out_and_nothing_else_does(jobs: list[Job], warm_up: float) -> None:
    run = run_dataset(jobs)
    whole, later = naive_summary(jobs), naive_summary(jobs[int(warm_up * len(jobs)) :])
    for summarise in (summarise_grid, summarise_ideal):
        summary, plain = summarise(run, warm_up=warm_up), summarise(run)
        for name in VARIABLES:
            of_times = name.startswith(("wait_time", "response_time", "run_time", "bounded_slow", "slowdown"))
            expected = later[name] if of_times else plain[name].values
            np.testing.assert_allclose(summary[name].values, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        assert float(summary["jobs"]) == whole["jobs"]


def test_all_measures_of_jobs_are_of_the_same_jobs() -> None:
    run = simulated("central")
    found = summaries.summarise(run, warm_up=0.25, cool_down=0.25, slowdown_threshold=1.0)
    pooled = found.isel(job_class=0)
    measured = metrics.measured_jobs(run, 0.25, 0.25)
    ran = measured[run["start_time"].values[measured] >= 0]
    jobs = np.bincount(run["home_cluster"].values[ran], minlength=run.sizes["cluster"])
    assert jobs.sum() == int(pooled["jobs"])
    for name in ("wait_time", "bounded_slowdown"):
        mean = np.average(found[f"{name}_mean_home"].fillna(0), weights=jobs)
        assert mean == pytest.approx(float(pooled[f"{name}_mean"]))


def test_a_grid_worked_out_by_hand() -> None:
    jobs = [
        Job(submit=0, start=0, run=10, processors=8, allocated=8, home=0, cluster=0),
        Job(submit=0, start=0, run=4, processors=5, allocated=6, home=0, cluster=1),
        Job(submit=2, start=6, run=12, processors=10, allocated=12, home=1, cluster=1),
        Job(submit=5, start=-1, run=12, processors=50, allocated=50, home=2, cluster=2),
        Job(submit=10, start=18, run=2, processors=6, allocated=6, home=1, cluster=1),
    ]
    run = run_dataset(jobs)
    summary = summarise_grid(run)
    assert summary.attrs == run.attrs
    # Waits 0, 0, 4, 8: squares 80, mean 3. Work 80 at speed 1, 20 + 120 + 12 at 2.5; the pool has 8 + 30 + 1.
    # Until 10, when the last job is submitted, the third has run for 4 s.
    assert_fields(
        summary,
        jobs=4,
        rejected=1,
        wait_time_mean=3,
        wait_time_deviation=math.sqrt(80 - 9) / 4,
        wait_time_std=math.sqrt(80 / 4 - 9),
        response_time_mean=(10 + 4 + 16 + 10) / 4,
        makespan=20,
        grid_efficiency_makespan=(80 + 152 * 2.5) / (20 * 39),
        grid_efficiency=(80 + 60 * 2.5) / (10 * 39),
        transferred=1 / 4,
        jobs_home=[2, 2, 0],
        wait_time_mean_home=pytest.approx([0, 6, NAN], nan_ok=True),
        run_time_mean_home=pytest.approx([7, 7, NAN], nan_ok=True),
        utilisation=[80 / 80, 60 / 120, 0],
        utilisation_makespan=[80 / 160, 152 / 240, 0],
        utilisation_own=pytest.approx([80 / 80, 152 / 240, NAN], nan_ok=True),
        occupied=[80 / 80, (24 + 48) / 120, 0],
        occupied_makespan=[80 / 160, (24 + 144 + 12) / 240, 0],
        flow_jobs=[[1, 1, 0], [0, 2, 0], [0, 0, 0]],
        flow_work=[[80, 20, 0], [0, 132, 0], [0, 0, 0]],
        home=["a", "b", "c"],
        cluster=["a", "b", "c"],
    )
    for name, variable in summary.items():
        assert variable.dtype == np.float64, name
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"] in ("s", "1"), name


# --- runs of the simulators -----------------------------------------------------------------------

CLUSTERS = [
    Cluster(name="a", processors=8),
    Cluster(name="b", processors=12, processors_per_node=4, node_exclusive=True, speed=2.5),
    Cluster(name="c", processors=2, speed=0.5),
]


def random_workloads(seed: int = 0, jobs: int = 200) -> list[Workload]:
    """Jobs for three clusters; the load is high at the first, and one job fits nowhere."""
    draws = np.random.default_rng(seed)
    workloads = []
    for index, cluster in enumerate(CLUSTERS):
        processors = draws.integers(1, cluster.processors + 1, jobs)
        processors[jobs // 2] = 13 if index == 0 else 1
        workloads.append(
            Workload(
                name=cluster.name,
                submit_time=np.sort(draws.integers(0, 20_000, jobs)),
                run_time=draws.integers(0, 300 // (1 + index), jobs),
                requested_processors=processors,
            )
        )
    return workloads


def simulated(scheme: SchemeName) -> xr.Dataset:
    return simulate(random_workloads(), CLUSTERS, Superscheduler(scheme=scheme))


def test_ideal_machines_have_the_variables_of_a_grid() -> None:
    run = simulate(random_workloads(), CLUSTERS, Ideal("srpt"))
    ideal, grid = summarise_ideal(run), summarise_grid(simulated("central"))
    both = xr.concat(
        [ideal.expand_dims(scheme=["ideal"]), grid.expand_dims(scheme=["central"])],
        "scheme",
        combine_attrs="drop_conflicts",
    )
    assert set(both.data_vars) == set(VARIABLES)
    unknown = {name for name in VARIABLES if ideal[name].isnull().any()}
    assert unknown == {
        "transferred",
        "queries",
        "corrections",
        "utilisation",
        "utilisation_makespan",
        "utilisation_own",
        "occupied",
        "occupied_makespan",
        "flow_jobs",
        "flow_work",
    }
    for name in ("jobs", "rejected", "jobs_home"):
        assert ideal[name].equals(grid[name])
    assert float(ideal["response_time_mean"]) < float(grid["response_time_mean"])
    assert 0 < float(ideal["grid_efficiency"]) <= 1


def test_an_ideal_machine_worked_out_by_hand() -> None:
    """On a pool of 39: works of 390 from the first, of 195 from the second cluster."""
    workloads = [
        jobs_of(submit_time=[submit], run_time=[run], requested_processors=[size])
        for submit, run, size in ((0, 65, 6), (5, 13, 6), (30, 39, 2))
    ]
    run = simulate(workloads, CLUSTERS, Ideal("srpt"), align="none")
    summary = summarise_ideal(run)
    # The first job runs from 0 to 10, since 5 s are left of it when the second comes, which takes 5 s.
    assert_fields(run, start_time=[0, 10, 30], end_time=[10, 15, 31])
    assert_fields(
        summary,
        wait_time_mean=pytest.approx(5 / 3),
        response_time_mean=pytest.approx(21 / 3),
        makespan=31,
        grid_efficiency_makespan=pytest.approx(16 / 31),
        grid_efficiency=pytest.approx(15 / 30),
        run_time_mean_home=[10, 5, 1],
        slowdown_mean=pytest.approx((10 / 65 + 10 / 13 + 1 / 39) / 3),
    )


def test_a_run_without_jobs_that_fit_has_no_means() -> None:
    for summarise in (summarise_grid, summarise_ideal):
        summary = summarise(run_dataset([Job(3, -1, 5, 50, 50, 0, 0)]))
        assert float(summary["rejected"]) == 1
        known = {name for name in VARIABLES if not summary[name].isnull().any()}
        assert known <= {"jobs", "rejected", "queries", "corrections", "jobs_home", "flow_jobs", "flow_work"}


@pytest.mark.parametrize("summarise", [summarise_grid, summarise_ideal])
def test_missing_variables_are_named(summarise: Callable[[xr.Dataset], xr.Dataset]) -> None:
    run = run_dataset([Job(0, 0, 5, 1, 1, 0, 0)])
    for name in ("home_cluster", "cluster_speed"):
        with refused(f"run 'a test': no variable {name}"):
            summarise(run.drop_vars(name))


def test_a_job_in_pieces_is_one_job() -> None:
    """One of two pieces is elsewhere: work is where it was done, the job where it ended."""
    run = run_dataset([Job(0, 0, 5, 1, 1, 0, 0), Job(0, 0, 7, 1, 1, 0, 1), Job(0, 0, 4, 1, 1, 1, 1)])
    run["segment_job"][:] = [0, 0, 2]
    run["start_time"][1] = -1
    summary = summarise_grid(run)
    assert_fields(summary, jobs=2, transferred=0.5)
    assert summary["flow_jobs"].values[:2, :2].tolist() == [[0, 1], [0, 1]]
    assert summary["flow_work"].values[:2, :2].tolist() == [[5, 7], [0, 4]]


# --- workloads ------------------------------------------------------------------------------------


def test_offered_loads_worked_out_by_hand() -> None:
    x = jobs_of(
        submit_time=[10, 20, 50], run_time=[4, 6, 8], requested_processors=[1, 2, 3], unix_start_time=1000
    )
    y = jobs_of(submit_time=[5, 15], run_time=[9, 1], requested_processors=[20, 4], unix_start_time=1100)
    clusters = CLUSTERS[:2]
    # Work 4 + 12 + 24 and 180 + 4. From the first to the last submission 40, 45 and 105 s.
    times: dict[AlignName, int] = {"start": 40, "none": 45, "clock": 105}
    for align, seconds in times.items():
        loads = offered_loads([x, y], clusters, align=align)
        shares = pytest.approx([40 / (8 * seconds), 184 / (12 * seconds)])
        assert_fields(loads, offered_load=shares, jobs_submitted=[3, 2], cluster=["a", "b"])
    at_once = [x.select(np.array([0])), y.select(np.array([0]))]
    assert np.isnan(offered_loads(at_once, clusters)["offered_load"]).all()
    with refused("2 workloads for 3 clusters"):
        offered_loads([x, y], CLUSTERS)
