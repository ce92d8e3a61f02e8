"""Ideal machines: against the oracle, worked out by hand, and as bounds of every scheme."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.systems.ideal.scheduler import Ideal, IdealForm, ideal_times
from gridsched.systems.registry import names
from gridsched.verification import verify
from gridsched.workloads import Workload
from tests.oracles import grid as naive_grid
from tests.oracles.grid import GridCluster, GridJob
from tests.support import strategies
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.systems.superscheduler.test_scheduler import SCHEMES, platform, run, with_one_score

FORMS: tuple[IdealForm, ...] = ("fcfs", "srpt")
ORACLES = {"fcfs": naive_grid.ideal_fcfs, "srpt": naive_grid.ideal_srpt}


def times(
    jobs: list[GridJob], clusters: list[GridCluster], form: IdealForm
) -> tuple[list[float], list[float]]:
    """Start and end times [s] of the jobs of the oracle."""
    records = np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], JOB)
    home = np.array([j.home for j in jobs], np.int64)
    start, end = ideal_times(records, home, platform(clusters)[0], form)
    return start.tolist(), end.tolist()


def one_processor(*jobs: tuple[int, int]) -> tuple[list[GridJob], list[GridCluster]]:
    """Jobs of one processor, by submit and run time, on a machine of one."""
    return [GridJob(submit, run_time, 1, 1, 0) for submit, run_time in jobs], [GridCluster(1)]


@pytest.mark.parametrize("form", FORMS)
@given(grid=strategies.grids(max_jobs=20))
@settings(max_examples=300)
def test_ends_equal_the_oracle(form: IdealForm, grid: tuple[list[GridJob], list[GridCluster]]) -> None:
    jobs, clusters = grid
    _, ends = times(jobs, clusters, form)
    expected = ORACLES[form](jobs, clusters)
    if any(cluster.speed == 0.7 for cluster in clusters):
        # Work is not exact in float64: of two jobs that tie, the other one may come first.
        ends, expected = sorted(ends), sorted(expected)
    assert ends == pytest.approx(expected, rel=1e-12)


Machine = tuple[list[GridJob], list[GridCluster]]
# Eight processors of 300 MHz for 100 s are one second of a pool of 240,000 MHz
PAPER: Machine = (
    [GridJob(7, 100, 100, 8, 0)],
    [GridCluster(400, speed=300), GridCluster(100, speed=1200)],
)
# The job of 3 s takes over from 8 s that are left; the job of 4 s does not interrupt 2 s, but waits
INTERRUPTING = one_processor((0, 10), (2, 3), (3, 4), (30, 1))
NOTHING_TO_DO = one_processor((0, 5), (2, 0), (2, 0), (9, 0))
# The pool does 2 x 1 + 1 x 2 = 4 units of work a second. Job 0 has 20 units of work; job 1, of a machine
# twice as fast, 4. At 1 job 0 has 16 left: job 1 goes first. Job 2, without work, waits only in FCFS.
TWO_SPEEDS: Machine = (
    [GridJob(0, 10, 10, 2, 0), GridJob(1, 2, 2, 1, 1), GridJob(3, 0, 1, 1, 0), GridJob(10, 1, 1, 1, 0)],
    [GridCluster(2), GridCluster(1, speed=2.0)],
)


@pytest.mark.parametrize(
    ("machine", "form", "starts", "ends"),
    [
        *((PAPER, form, [7], [8]) for form in FORMS),
        (INTERRUPTING, "srpt", [0, 2, 5, 30], [17, 5, 9, 31]),
        (INTERRUPTING, "fcfs", [0, 10, 13, 30], [10, 13, 17, 31]),
        (NOTHING_TO_DO, "srpt", [0, 2, 2, 9], [5, 2, 2, 9]),
        (NOTHING_TO_DO, "fcfs", [0, 5, 5, 9], [5, 5, 5, 9]),
        (TWO_SPEEDS, "srpt", [0, 1, 3, 10], [6, 2, 3, 10.25]),
        (TWO_SPEEDS, "fcfs", [0, 5, 6, 10], [5, 6, 6, 10.25]),
        (([], [GridCluster(1)]), "srpt", [], []),
    ],
)
def test_machines_by_hand(machine: Machine, form: IdealForm, starts: list[float], ends: list[float]) -> None:
    assert times(*machine, form) == (starts, ends)
    assert ORACLES[form](*machine) == ends


@pytest.mark.parametrize("scheme", SCHEMES)
@given(grid=strategies.grids(max_jobs=16), sigma=st.sampled_from([1, 5, 30]))
@settings(max_examples=150)
def test_no_scheme_responds_sooner_than_shortest_remaining(
    scheme: str, grid: tuple[list[GridJob], list[GridCluster]], sigma: int
) -> None:
    jobs, clusters = grid
    placed = run(jobs, with_one_score(clusters), scheme, sigma=sigma, phi=2)
    accepted = [(job, *place) for job, place in zip(jobs, placed, strict=True) if place[1] >= 0]
    assume(accepted)
    response = sum(
        start + run_time_on(job, clusters, cluster) - job.submit_time for job, start, cluster in accepted
    )
    _, ends = times([job for job, *_ in accepted], clusters, "srpt")
    ideal = sum(end - job.submit_time for (job, *_), end in zip(accepted, ends, strict=True))
    assert ideal <= response + 1e-9


def run_time_on(job: GridJob, clusters: list[GridCluster], cluster: int) -> int:
    if cluster == job.home:
        return job.run_time
    return math.ceil(job.run_time * clusters[job.home].speed / clusters[cluster].speed)


# --- from workloads to datasets -------------------------------------------------------------------


def workload(name: str, *jobs: tuple[int, int, int], **columns: list[int]) -> Workload:
    """Jobs by submit time, run time and processors."""
    submit, run_time, processors = zip(*jobs, strict=True) if jobs else ([], [], [])
    given = {"submit_time": submit, "run_time": run_time, "requested_processors": processors}
    return jobs_of(name=name, left_out={"no processors": 2}, **given, **columns)


NORTH = Cluster(name="north", processors=4, speed=2.0)
SOUTH = Cluster(name="south", processors=8, processors_per_node=4, node_exclusive=True)


def two_workloads() -> list[Workload]:
    """On a pool of 16: works of 32 and 24 from the north, of 8 and 0 from the south, and a job too large."""
    return [
        workload("a", (10, 8, 2), (11, 3, 4), job_number=[5, 6]),
        workload("b", (0, 2, 4), (4, 1, 9), (9, 0, 1), user=[1, 2, 3]),
    ]


def test_workloads_become_a_dataset() -> None:
    first_come = simulate(two_workloads(), [NORTH, SOUTH], "ideal-fcfs")
    # Submitted at 0 (twice), 1, 4 and 9 s.
    assert_fields(
        first_come,
        submit_time=[0, 0, 1, 4, 9],
        start_time=[0, 2, 2.5, -1, 9],
        end_time=[2, 2.5, 4, -1, 9],
        home_cluster=[0, 1, 0, 1, 1],
        run_time=[8, 2, 3, 1, 0],
        processors=[2, 4, 4, 9, 1],
        job_number=[5, 1, 6, 2, 3],
        cluster=["north", "south"],
        cluster_processors=[4, 8],
        cluster_speed=[2, 1],
        scheme="ideal-fcfs",
        jobs_rejected=1,
        **{"left_out: a: no processors": 2},
    )
    shortest = simulate(two_workloads(), [NORTH, SOUTH], "ideal-srpt")
    assert_fields(
        shortest, start_time=[0.5, 0, 2.5, -1, 9], end_time=[2.5, 0.5, 4, -1, 9], scheme="ideal-srpt"
    )
    assert "segment" not in first_come.dims
    assert "estimate" not in first_come
    for made, form in zip((first_come, shortest), FORMS, strict=True):
        verify(made)
        assert made.attrs["parameter_form"] == form
        assert names()[f"ideal-{form}"]() == Ideal(form)


@pytest.mark.parametrize("align", ["start", "none"])
def test_jobs_are_those_that_a_central_scheduler_accepts(align: AlignName) -> None:
    clusters = [NORTH, SOUTH]
    central = simulate(two_workloads(), clusters, "central", align=align)
    for form in FORMS:
        ideal = simulate(two_workloads(), clusters, Ideal(form), align=align)
        assert ((ideal["start_time"] < 0) == (central["start_time"] < 0)).all()
        for name in ("job_number", "submit_time", "processors", "home_cluster"):
            assert ideal[name].equals(central[name])


A, B = two_workloads()
OUT_OF_ORDER = np.array([(5, 1, 1, 1), (4, 1, 1, 1)], JOB)


def under(form: str, *workloads: Workload, clusters: Sequence[Cluster] = (NORTH, SOUTH)) -> object:
    return simulate(workloads, clusters, f"ideal-{form}")


def of_records(form: Any, *home: int) -> object:
    return ideal_times(OUT_OF_ORDER[: len(home)], np.array(home), [NORTH, SOUTH], form)


@pytest.mark.parametrize(
    ("wrong", "error", "complaint"),
    [
        (lambda: under("fcfs", A), ConfigurationError, "1 workloads for 2 clusters"),
        (
            lambda: under("fcfs", A, B, A, clusters=[NORTH]),
            ConfigurationError,
            "3 workloads for 1 clusters",
        ),
        (
            lambda: Ideal(cast(Any, "best")),
            ConfigurationError,
            "form is 'best'; use one of fcfs, srpt",
        ),
        (lambda: under("srpt", A, workload("c")), WorkloadError, "c: no jobs to simulate"),
        (
            lambda: under("srpt", A, workload("c", (5, 1, 1), (4, 1, 1))),
            WorkloadError,
            "not in order of submission",
        ),
        (lambda: of_records("fcfs", 0, 0), ConfigurationError, "not in order of submission"),
        (lambda: of_records("fcfs", 2), ConfigurationError, "index of one of the 2 clusters"),
    ],
)
def test_mistakes_are_named(wrong: Callable[[], object], error: type[Exception], complaint: str) -> None:
    with refused(complaint, error=error):
        wrong()
