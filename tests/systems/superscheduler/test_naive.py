"""The oracle of grids against schedules computed by hand, and against the oracle of one cluster."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.grid import GridCluster, GridJob, ideal_fcfs, ideal_srpt, simulate_grid
from tests.oracles.local import Job, simulate
from tests.support.strategies import GridParameters, grid_parameters, grids

Grid = tuple[list[GridJob], list[GridCluster]]

Places = list[tuple[int, int]]
Worked = tuple[str, list[GridJob], list[GridCluster], dict[str, Any], Places]
"""Scheme, jobs, clusters, options, and start and cluster of the last jobs."""


def at_home(
    submit_time: int, run_time: int, home: int = 0, processors: int = 1, estimate: int | None = None
) -> GridJob:
    """A job submitted at a cluster, the first unless said otherwise; its estimate is mostly exact."""
    return GridJob(submit_time, run_time, estimate or run_time, processors, home)


SINGLES = [GridCluster(1), GridCluster(1)]
# All but job 3 come to cluster 0, which job 0 holds until 1000.
ONE_BUSY = [at_home(0, 1000), at_home(10, 100), at_home(20, 100), at_home(301, 100, 1)]
SOON = [at_home(0, 60), at_home(1, 61), at_home(2, 5)]
VOLUNTEERS = [GridCluster(2), GridCluster(1), GridCluster(2)]
WITH_VOLUNTEERS = [
    at_home(0, 1000, processors=2),
    at_home(0, 401, 2, processors=2),
    at_home(0, 10, 1),
    at_home(310, 10, processors=2),
    at_home(320, 100),
    at_home(330, 10),
]
OVERTAKEN = [at_home(0, 1000), at_home(10, 50), at_home(950, 100)]
HALF_SPEED = [GridCluster(2), GridCluster(2, speed=0.5)]
FIFTH_OF_SPEED = [GridCluster(2), GridCluster(2, speed=0.2)]
FOR_HALF_SPEED = [at_home(0, 10), at_home(1, 10, processors=2)]
FOR_FIFTH = [at_home(0, 200), at_home(100, 50, processors=2)]
AS_USED = [at_home(0, 200), at_home(0, 200, 1, processors=2), at_home(100, 50, processors=2)]
BLOCKED = [at_home(0, 100), at_home(0, 50, processors=2), at_home(1, 5)]
NODES_OF_TWO = GridCluster(4, processors_per_node=2, node_exclusive=True)
IN_REACH = [GridCluster(2, 2, True), GridCluster(1), GridCluster(4)]
WIDE = [at_home(0, 10, processors=3), at_home(0, 10, 2, processors=5)]
NO_PARTNER = {"partners": [{1}, {0, 2}, {0, 1}]}
NOWHERE = (-1, -1)

WORKED: list[Worked] = [
    ("local", ONE_BUSY, SINGLES, {}, [(0, 0), (1000, 0), (1100, 0), (301, 1)]),
    # The smallest turnaround time: job 1 sees 990 + 100 s or 0 + 100 s, job 2 980 + 100 s or 90 + 100 s
    ("central", ONE_BUSY, SINGLES, {}, [(0, 0), (10, 1), (110, 1), (301, 1)]),
    # s-i moves what would wait for phi: job 1 would wait 59 s, which is less than 60 s; job 2 sees 119 s at
    # home, nothing at cluster 1
    ("s-i", SOON, SINGLES, {}, [(0, 0), (60, 0), (2, 1)]),
    # A wait of phi exactly is too long
    ("s-i", SOON, SINGLES, {"phi": 59}, [(0, 0), (1, 1), (60, 0)]),
    # r-i waits for the check, and a volunteer takes one job. Nobody is a volunteer before 300. Then cluster 1
    # is, and takes job 1 (until 400), not job 2. Job 3 would wait 99 s at home and finds no volunteer: it
    # waits for a check, too. At 600 cluster 1, idle again, takes job 2 (home 0 comes first), behind which job
    # 3 would wait 100 s; at 900 it starts at once
    ("r-i", ONE_BUSY, SINGLES, {}, [(0, 0), (300, 1), (600, 1), (900, 1)]),
    # sy-i sends where nobody volunteers: before 300 jobs 1 and 2 go as with s-i. At 301 cluster 1 is idle
    ("sy-i", ONE_BUSY, SINGLES, {}, [(0, 0), (10, 1), (110, 1), (301, 1)]),
    # sy-i waits where somebody volunteers: at 300 cluster 1 volunteers, though job 3 (2 processors) can never
    # fit there; and though it accepts job 4 at 320, it counts at 330, where job 5 waits too. Cluster 2, busy
    # until 401, would give job 3 its start at 401: that is where sy-i sends it at 400, the first check (of
    # 300, 400, ...) without volunteers, since cluster 1 is busy with job 4. Job 5 then has AWTs of 600
    # (home), 20 (1) and 11 (2, behind job 3): it goes to 2
    (
        "sy-i",
        WITH_VOLUNTEERS,
        VOLUNTEERS,
        {"sigma": 100},
        [(0, 0), (0, 2), (0, 1), (401, 2), (320, 1), (411, 2)],
    ),
    # With r-i both wait for a volunteer that has room: cluster 2 at the check at 500
    (
        "r-i",
        WITH_VOLUNTEERS,
        VOLUNTEERS,
        {"sigma": 100},
        [(0, 0), (0, 2), (0, 1), (500, 2), (320, 1), (500, 1)],
    ),
    # Completions and corrections precede checks, which precede arrivals: cluster 1 falls idle at 300,
    # volunteers in the check of that instant and takes job 2, which waits since 10; job 3 arrives at 300,
    # finds that it has accepted one, and waits until 600
    (
        "r-i",
        [at_home(0, 1000), at_home(0, 300, 1), at_home(10, 100), at_home(300, 1)],
        SINGLES,
        {},
        [(0, 0), (0, 1), (300, 1), (600, 1)],
    ),
    # The grid queue may be overtaken, and order is that of entry: alone there are no volunteers. Job 1 waits
    # in the grid queue (990, 400, 100 s at 10, 600, 900), job 2 would wait 50 s and enters the local queue at
    # once; at 1200 nothing is left before job 1
    ("r-i", OVERTAKEN, [GridCluster(1)], {}, [(0, 0), (1200, 0), (1000, 0)]),
    # At 960, where its wait is 40 s, a check lets it in behind job 2: it starts behind it
    ("r-i", OVERTAKEN, [GridCluster(1)], {"phi": 141, "sigma": 960}, [(0, 0), (1100, 0), (1000, 0)]),
    # Scores count the wait from the submission: job 2 enters the local queue at 950, job 1 at the check at
    # 960; the expansion factors at 1000 are (990 + 50) / 50 of job 1, (50 + 50) / 50 of job 2
    (
        "r-i",
        [at_home(0, 1000), at_home(10, 50), at_home(950, 50)],
        [GridCluster(1, order="lxf")],
        {"sigma": 960},
        [(0, 0), (1000, 0), (1050, 0)],
    ),
    # Equal turnaround times go by utilisation, then index: at 0 nothing runs yet: job 1 goes to cluster 0,
    # too, where both fit. At 1 cluster 0 is full: job 2 goes to 1; at 2 the utilisations are 1/2 and 1/4: job
    # 3 goes to 1
    (
        "central",
        [at_home(0, 9), at_home(0, 9, 1), at_home(1, 9), at_home(2, 9)],
        [GridCluster(4), GridCluster(4)],
        {},
        [(0, 0), (0, 0), (1, 1), (2, 1)],
    ),
    # Epsilon lets utilisation decide: at 1 job 1 sees 9 + 10 s on cluster 0, which is half used, and 20 s on
    # cluster 1 (half the speed), which is idle
    ("central", FOR_HALF_SPEED, HALF_SPEED, {}, [(0, 0), (10, 0)]),
    ("central", FOR_HALF_SPEED, HALF_SPEED, {"epsilon": 1}, [(0, 0), (1, 1)]),
    # A volunteer must be better than home: at 100 home (1 of 2 processors used) offers 100 + 50 s, the idle
    # volunteer of a fifth of the speed 250 s: better only if a difference of 100 s counts as none, since then
    # it is the less used one
    ("r-i", FOR_FIFTH, FIFTH_OF_SPEED, {"sigma": 100}, [(0, 0), (200, 0)]),
    ("r-i", FOR_FIFTH, FIFTH_OF_SPEED, {"sigma": 100, "epsilon": 100}, [(0, 0), (100, 1)]),
    # With as many processors used there, home is as good, although the volunteer is faster
    (
        "r-i",
        AS_USED,
        [GridCluster(2), GridCluster(4)],
        {"sigma": 100, "epsilon": 100},
        [(0, 0), (0, 1), (200, 0)],
    ),
    ("r-i", AS_USED, [GridCluster(2), GridCluster(4)], {"sigma": 100}, [(0, 0), (0, 1), (100, 1)]),
    # Predictions see corrected expected ends under every policy: job 0 is expected to end at 10, 20, 40, 80,
    # 160: at 81 job 1 would wait 79 s at home, and moves; at 79 it would wait 1 s, stays, and waits until
    # 1000
    *(
        (
            "s-i",
            [at_home(0, 1000, estimate=10), at_home(submit, 5)],
            [GridCluster(1, backfilling=backfilling), GridCluster(1)],
            {},
            [place],
        )
        for backfilling in ("none", "first_fit", "easy", "conservative")
        for submit, place in ((81, (81, 1)), (79, (1000, 0)))
    ),
    # Predictions follow the local policy: a job of 5 s on 1 of 2 processors; job 0 leaves one idle until 100,
    # job 1 waits for both. It would be backfilled under EASY, not under FCFS without backfilling, where it
    # waits until 150
    ("s-i", BLOCKED, [GridCluster(2), GridCluster(1)], {"phi": 200}, [(0, 0), (100, 0), (1, 0)]),
    *(
        (
            "s-i",
            BLOCKED,
            [GridCluster(2, backfilling="none"), GridCluster(1)],
            {"phi": phi},
            [(0, 0), (100, 0), place],
        )
        for phi, place in ((149, (1, 1)), (150, (150, 0)))
    ),
    # Speed divides times and rounds up: 5 s of cluster 0 are 3 s on cluster 1: the second job, 1 s long on
    # both, sees 3 + 1 s there and 1 s at home. The third, 11 s of cluster 0, takes 6 s there, from 3 on,
    # which is less than 1 + 11 s. The fourth at 8 sees 0 + 5 s at home and 1 + 3 s there
    (
        "central",
        [at_home(0, 5), at_home(0, 1), at_home(0, 11), at_home(8, 5)],
        [GridCluster(1), GridCluster(1, speed=2.0)],
        {},
        [(0, 1), (0, 0), (3, 1), (9, 1)],
    ),
    # 3 processors are 4 on a cluster of whole nodes of 2, of which there are 2: the second job waits there
    *(
        (
            "local",
            [at_home(0, 10, processors=3), at_home(0, 10)],
            [NODES_OF_TWO._replace(node_exclusive=exclusive)],
            {},
            [(0, 0), (start, 0)],
        )
        for exclusive, start in ((True, 10), (False, 0))
    ),
    # Jobs are rejected where nothing in reach holds them: 3 processors need 4 at home, where there are 2;
    # cluster 2 holds them, but is no partner of 0
    ("local", WIDE, IN_REACH, {}, [NOWHERE, NOWHERE]),
    ("central", WIDE, IN_REACH, NO_PARTNER, [(0, 2), NOWHERE]),
    ("s-i", WIDE, IN_REACH, {}, [(0, 2), NOWHERE]),
    ("r-i", WIDE, IN_REACH, {}, [(300, 2), NOWHERE]),
    ("sy-i", WIDE, IN_REACH, {}, [(0, 2), NOWHERE]),
    *((scheme, WIDE, IN_REACH, NO_PARTNER, [NOWHERE, NOWHERE]) for scheme in ("s-i", "r-i", "sy-i")),
]
"""Examples of the schemes, which the engine is tested on, too."""


@pytest.mark.parametrize(("scheme", "jobs", "clusters", "chosen", "places"), WORKED)
def test_worked_examples(
    scheme: str, jobs: list[GridJob], clusters: list[GridCluster], chosen: dict[str, Any], places: Places
) -> None:
    assert simulate_grid(jobs, clusters, scheme=scheme, **chosen)[-len(places) :] == places


def test_increments_are_expected_too() -> None:
    """The expected ends are 10, 70, 370: at 79 the second job would wait, and moves."""
    jobs = [at_home(0, 1000, estimate=10), at_home(79, 5)]
    assert simulate_grid(jobs, SINGLES, scheme="s-i", overrun="increments")[1] == (79, 1)


@pytest.mark.parametrize("scheme", ["local", "central", "s-i", "sy-i"])
@given(
    case=grids(max_clusters=1),
    parameters=grid_parameters(),
    overrun=st.sampled_from(["doubling", "increments"]),
)
def test_one_cluster_is_the_oracle_of_one_cluster(
    case: Grid, parameters: GridParameters, overrun: str, scheme: str
) -> None:
    jobs, clusters = case
    expected = [(start, 0 if start >= 0 else -1) for start in alone(jobs, clusters[0], overrun)]
    assert simulate_grid(jobs, clusters, scheme=scheme, overrun=overrun, **parameters) == expected


@given(case=grids())
def test_local_clusters_do_not_know_of_each_other(case: Grid) -> None:
    jobs, clusters = case
    result = simulate_grid(jobs, clusters, scheme="local")
    for home, cluster in enumerate(clusters):
        own = [j for j, job in enumerate(jobs) if job.home == home]
        assert [result[j][0] for j in own] == alone([jobs[j] for j in own], cluster)


@given(case=grids(), scheme=st.sampled_from(["s-i", "r-i", "sy-i"]))
def test_whoever_is_content_with_any_wait_stays_at_home(case: Grid, scheme: str) -> None:
    jobs, clusters = case
    at_home = simulate_grid(jobs, clusters, scheme="local")
    fitting = [job for job, (_, cluster) in zip(jobs, at_home, strict=True) if cluster >= 0]
    expected = [place for place in at_home if place != (-1, -1)]
    assert simulate_grid(fitting, clusters, scheme=scheme, phi=math.inf) == expected


def alone(jobs: list[GridJob], cluster: GridCluster, overrun: str = "doubling") -> list[int]:
    """Start times of the jobs on one cluster."""
    return simulate(
        [Job(job.submit_time, job.run_time, job.estimate, allocated(job, cluster)) for job in jobs],
        cluster.processors,
        order=cluster.order,
        backfilling=cluster.backfilling,
        reservations=cluster.reservations,
        backfill_order=cluster.backfill_order,
        overrun=overrun,
    )


def allocated(job: GridJob, cluster: GridCluster) -> int:
    node = cluster.processors_per_node if cluster.node_exclusive else 1
    return -(-job.processors // node) * node


def test_ideal_machines() -> None:
    # The pool does 2 x 1 + 1 x 2 = 4 units of work a second. Job 0 has 20 units of work; job 1, of a machine
    # twice as fast, 4. At 1 job 0 has 16 left: job 1 goes first. Job 2, without work, waits only in FCFS.
    clusters = [GridCluster(2), GridCluster(1, speed=2.0)]
    jobs = [GridJob(0, 10, 10, 2, 0), GridJob(1, 2, 2, 1, 1), GridJob(3, 0, 1, 1, 0), GridJob(10, 1, 1, 1, 0)]
    assert ideal_srpt(jobs, clusters) == [6, 2, 3, 10.25]
    assert ideal_fcfs(jobs, clusters) == [5, 6, 6, 10.25]


@given(case=grids())
def test_ideal_machines_do_the_same_work(case: Grid) -> None:
    jobs, clusters = case
    shortest, first = ideal_srpt(jobs, clusters), ideal_fcfs(jobs, clusters)
    assert max(shortest, default=0) == pytest.approx(max(first, default=0))
    assert sum(shortest) <= sum(first) + 1e-6
    assert all(end >= job.submit_time for job, end in zip(jobs, shortest, strict=True))
