"""The oracle of grids against schedules computed by hand, and against the oracle of one cluster."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.grid import SCHEMES, GridCluster, GridJob, ideal_fcfs, ideal_srpt, simulate_grid
from tests.oracles.local import Job, simulate
from tests.support.strategies import GridParameters, grid_parameters, grids, partnerships

Grid = tuple[list[GridJob], list[GridCluster]]

# Two clusters of one processor each; all but job 3 come to cluster 0, which job 0 holds until 1000.
ONE_BUSY = [
    GridJob(0, 1000, 1000, 1, 0),
    GridJob(10, 100, 100, 1, 0),
    GridJob(20, 100, 100, 1, 0),
    GridJob(301, 100, 100, 1, 1),
]
SINGLES = [GridCluster(1), GridCluster(1)]


def test_local_jobs_stay_at_home() -> None:
    starts = [(0, 0), (1000, 0), (1100, 0), (301, 1)]
    assert simulate_grid(ONE_BUSY, SINGLES, scheme="local") == starts


def test_central_takes_the_smallest_turnaround_time() -> None:
    # Job 1 sees 990 + 100 s or 0 + 100 s, job 2 980 + 100 s or 90 + 100 s.
    starts = [(0, 0), (10, 1), (110, 1), (301, 1)]
    assert simulate_grid(ONE_BUSY, SINGLES, scheme="central") == starts


def test_sender_initiated_moves_what_would_wait_for_phi() -> None:
    # Job 1 would wait 59 s, which is less than 60 s; job 2 sees 119 s at home, nothing at cluster 1.
    jobs = [GridJob(0, 60, 60, 1, 0), GridJob(1, 61, 61, 1, 0), GridJob(2, 5, 5, 1, 0)]
    assert simulate_grid(jobs, SINGLES, scheme="s-i") == [(0, 0), (60, 0), (2, 1)]
    # A wait of phi exactly is too long.
    assert simulate_grid(jobs, SINGLES, scheme="s-i", phi=59) == [(0, 0), (1, 1), (60, 0)]


def test_receiver_initiated_waits_for_the_check_and_a_volunteer_takes_one_job() -> None:
    # Nobody is a volunteer before 300. Then cluster 1 is, and takes job 1 (until 400), not job 2.
    # Job 3 would wait 99 s at home and finds no volunteer: it waits for a check, too. At 600 cluster 1,
    # idle again, takes job 2 (home 0 comes first), behind which job 3 would wait 100 s; at 900 it
    # starts at once.
    starts = [(0, 0), (300, 1), (600, 1), (900, 1)]
    assert simulate_grid(ONE_BUSY, SINGLES, scheme="r-i") == starts


def test_symmetrically_initiated_sends_where_nobody_volunteers() -> None:
    # Before 300 nobody volunteers: jobs 1 and 2 go as with s-i. At 301 cluster 1 is idle.
    starts = [(0, 0), (10, 1), (110, 1), (301, 1)]
    assert simulate_grid(ONE_BUSY, SINGLES, scheme="sy-i") == starts


def test_symmetrically_initiated_waits_where_somebody_volunteers() -> None:
    # At 300 cluster 1 volunteers, though job 3 (2 processors) can never fit there; and though it accepts
    # job 4 at 320, it counts at 330, where job 5 waits too. Cluster 2, busy until 401, would give job 3
    # its start at 401: that is where sy-i sends it at 400, the first check (of 300, 400, ...) without
    # volunteers, since cluster 1 is busy with job 4. Job 5 then has AWTs of 600 (home), 20 (1) and
    # 11 (2, behind job 3): it goes to 2.
    clusters = [GridCluster(2), GridCluster(1), GridCluster(2)]
    jobs = [
        GridJob(0, 1000, 1000, 2, 0),
        GridJob(0, 401, 401, 2, 2),
        GridJob(0, 10, 10, 1, 1),
        GridJob(310, 10, 10, 2, 0),
        GridJob(320, 100, 100, 1, 0),
        GridJob(330, 10, 10, 1, 0),
    ]
    starts = simulate_grid(jobs, clusters, scheme="sy-i", sigma=100)
    assert starts == [(0, 0), (0, 2), (0, 1), (401, 2), (320, 1), (411, 2)]
    # With r-i both wait for a volunteer that has room: cluster 2 at the check at 500.
    starts = simulate_grid(jobs, clusters, scheme="r-i", sigma=100)
    assert starts == [(0, 0), (0, 2), (0, 1), (500, 2), (320, 1), (500, 1)]


def test_completions_and_corrections_precede_checks_which_precede_arrivals() -> None:
    # Cluster 1 falls idle at 300, volunteers in the check of that instant and takes job 2, which waits
    # since 10; job 3 arrives at 300, finds that it has accepted one, and waits until 600.
    jobs = [
        GridJob(0, 1000, 1000, 1, 0),
        GridJob(0, 300, 300, 1, 1),
        GridJob(10, 100, 100, 1, 0),
        GridJob(300, 1, 1, 1, 0),
    ]
    assert simulate_grid(jobs, SINGLES, scheme="r-i") == [(0, 0), (0, 1), (300, 1), (600, 1)]


def test_grid_queue_may_be_overtaken_and_order_is_that_of_entry() -> None:
    # Alone there are no volunteers. Job 1 waits in the grid queue (990, 400, 100 s at 10, 600, 900), job 2
    # would wait 50 s and enters the local queue at once; at 1200 nothing is left before job 1.
    jobs = [GridJob(0, 1000, 1000, 1, 0), GridJob(10, 50, 50, 1, 0), GridJob(950, 100, 100, 1, 0)]
    assert simulate_grid(jobs, [GridCluster(1)], scheme="r-i") == [(0, 0), (1200, 0), (1000, 0)]
    # At 960, where its wait is 40 s, a check lets it in behind job 2: it starts behind it.
    starts = simulate_grid(jobs, [GridCluster(1)], scheme="r-i", phi=141, sigma=960)
    assert starts == [(0, 0), (1100, 0), (1000, 0)]


def test_scores_count_the_wait_from_the_submission() -> None:
    # Job 2 enters the local queue at 950, job 1 at the check at 960; the expansion factors at 1000 are
    # (990 + 50) / 50 of job 1, (50 + 50) / 50 of job 2.
    jobs = [GridJob(0, 1000, 1000, 1, 0), GridJob(10, 50, 50, 1, 0), GridJob(950, 50, 50, 1, 0)]
    clusters = [GridCluster(1, order="lxf")]
    starts = simulate_grid(jobs, clusters, scheme="r-i", sigma=960)
    assert starts == [(0, 0), (1000, 0), (1050, 0)]


def test_equal_turnaround_times_go_by_utilisation_then_index() -> None:
    # At 0 nothing runs yet: job 1 goes to cluster 0, too, where both fit. At 1 cluster 0 is full: job 2
    # goes to 1; at 2 the utilisations are 1/2 and 1/4: job 3 goes to 1.
    clusters = [GridCluster(4), GridCluster(4)]
    jobs = [GridJob(0, 9, 9, 1, 0), GridJob(0, 9, 9, 1, 1), GridJob(1, 9, 9, 1, 0), GridJob(2, 9, 9, 1, 0)]
    starts = simulate_grid(jobs, clusters, scheme="central")
    assert starts == [(0, 0), (0, 0), (1, 1), (2, 1)]


def test_epsilon_lets_utilisation_decide() -> None:
    # At 1 job 1 sees 9 + 10 s on cluster 0, which is half used, and 20 s on cluster 1 (half the speed),
    # which is idle.
    clusters = [GridCluster(2), GridCluster(2, speed=0.5)]
    jobs = [GridJob(0, 10, 10, 1, 0), GridJob(1, 10, 10, 2, 0)]
    assert simulate_grid(jobs, clusters, scheme="central") == [(0, 0), (10, 0)]
    assert simulate_grid(jobs, clusters, scheme="central", epsilon=1) == [(0, 0), (1, 1)]


def test_volunteer_must_be_better_than_home() -> None:
    # At 100 home (1 of 2 processors used) offers 100 + 50 s, the idle volunteer of a fifth of the speed
    # 250 s: better only if a difference of 100 s counts as none, since then it is the less used one.
    clusters = [GridCluster(2), GridCluster(2, speed=0.2)]
    jobs = [GridJob(0, 200, 200, 1, 0), GridJob(100, 50, 50, 2, 0)]
    assert simulate_grid(jobs, clusters, scheme="r-i", sigma=100) == [(0, 0), (200, 0)]
    assert simulate_grid(jobs, clusters, scheme="r-i", sigma=100, epsilon=100) == [(0, 0), (100, 1)]
    # With as many processors used there, home is as good, although the volunteer is faster.
    clusters = [GridCluster(2), GridCluster(4)]
    jobs = [GridJob(0, 200, 200, 1, 0), GridJob(0, 200, 200, 2, 1), GridJob(100, 50, 50, 2, 0)]
    starts = simulate_grid(jobs, clusters, scheme="r-i", sigma=100, epsilon=100)
    assert starts == [(0, 0), (0, 1), (200, 0)]
    assert simulate_grid(jobs, clusters, scheme="r-i", sigma=100) == [(0, 0), (0, 1), (100, 1)]


def test_predictions_see_corrected_expected_ends_under_every_policy() -> None:
    # Job 0 is expected to end at 10, 20, 40, 80, 160: at 81 job 1 would wait 79 s at home, and moves; at 79
    # it would wait 1 s, stays, and waits until 1000. With increments the expected ends are 10, 70, 370.
    for backfilling in ("none", "first_fit", "easy", "conservative"):
        clusters = [GridCluster(1, backfilling=backfilling), GridCluster(1)]
        late = [GridJob(0, 1000, 10, 1, 0), GridJob(81, 5, 5, 1, 0)]
        early = [GridJob(0, 1000, 10, 1, 0), GridJob(79, 5, 5, 1, 0)]
        assert simulate_grid(late, clusters, scheme="s-i")[1] == (81, 1)
        assert simulate_grid(early, clusters, scheme="s-i")[1] == (1000, 0)
        assert simulate_grid(early, clusters, scheme="s-i", overrun="increments")[1] == (79, 1)


def test_prediction_follows_the_local_policy() -> None:
    # A job of 5 s on 1 of 2 processors; job 0 leaves one idle until 100, job 1 waits for both. It would
    # be backfilled under EASY, not under FCFS without backfilling, where it waits until 150.
    jobs = [GridJob(0, 100, 100, 1, 0), GridJob(0, 50, 50, 2, 0), GridJob(1, 5, 5, 1, 0)]
    clusters = [GridCluster(2, backfilling="easy"), GridCluster(1)]
    assert simulate_grid(jobs, clusters, scheme="s-i", phi=200) == [(0, 0), (100, 0), (1, 0)]
    clusters = [GridCluster(2, backfilling="none"), GridCluster(1)]
    assert simulate_grid(jobs, clusters, scheme="s-i", phi=149) == [(0, 0), (100, 0), (1, 1)]
    assert simulate_grid(jobs, clusters, scheme="s-i", phi=150) == [(0, 0), (100, 0), (150, 0)]


def test_speed_divides_times_and_rounds_up() -> None:
    # 5 s of cluster 0 are 3 s on cluster 1: the second job, 1 s long on both, sees 3 + 1 s there and 1 s
    # at home. The third, 11 s of cluster 0, takes 6 s there, from 3 on, which is less than 1 + 11 s. The
    # fourth at 8 sees 0 + 5 s at home and 1 + 3 s there.
    clusters = [GridCluster(1), GridCluster(1, speed=2.0)]
    jobs = [GridJob(0, 5, 5, 1, 0), GridJob(0, 1, 1, 1, 0), GridJob(0, 11, 11, 1, 0), GridJob(8, 5, 5, 1, 0)]
    starts = simulate_grid(jobs, clusters, scheme="central")
    assert starts == [(0, 1), (0, 0), (3, 1), (9, 1)]


def test_whole_nodes_are_allocated() -> None:
    # 3 processors are 4 on cluster 0 (nodes of 2, of which there are 2): the second job waits there.
    clusters = [GridCluster(4, processors_per_node=2, node_exclusive=True)]
    jobs = [GridJob(0, 10, 10, 3, 0), GridJob(0, 10, 10, 1, 0)]
    assert simulate_grid(jobs, clusters, scheme="local") == [(0, 0), (10, 0)]
    shared = [clusters[0]._replace(node_exclusive=False)]
    assert simulate_grid(jobs, shared, scheme="local") == [(0, 0), (0, 0)]


def test_jobs_are_rejected_where_nothing_in_reach_holds_them() -> None:
    # 3 processors need 4 at home, where there are 2; cluster 2 holds them, but is no partner of 0.
    clusters = [GridCluster(2, 2, True), GridCluster(1), GridCluster(4)]
    jobs = [GridJob(0, 10, 10, 3, 0), GridJob(0, 10, 10, 5, 2)]
    nowhere = (-1, -1)
    partners = [{1}, {0, 2}, {0, 1}]
    assert simulate_grid(jobs, clusters, scheme="local") == [nowhere, nowhere]
    assert simulate_grid(jobs, clusters, scheme="central", partners=partners) == [(0, 2), nowhere]
    assert simulate_grid(jobs, clusters, scheme="s-i") == [(0, 2), nowhere]
    assert simulate_grid(jobs, clusters, scheme="r-i") == [(300, 2), nowhere]
    assert simulate_grid(jobs, clusters, scheme="sy-i") == [(0, 2), nowhere]
    for scheme in ("s-i", "r-i", "sy-i"):
        assert simulate_grid(jobs, clusters, scheme=scheme, partners=partners) == [nowhere, nowhere]


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


@given(data=st.data(), case=grids(), parameters=grid_parameters(), scheme=st.sampled_from(SCHEMES))
@settings(max_examples=200, deadline=None)
def test_every_scheme_gives_a_schedule(
    data: st.DataObject, case: Grid, parameters: GridParameters, scheme: str
) -> None:
    jobs, clusters = case
    partners = data.draw(partnerships(len(clusters)))
    result = simulate_grid(jobs, clusters, scheme=scheme, partners=partners, **parameters)
    spans = []
    for job, (start, m) in zip(jobs, result, strict=True):
        reach = {job.home}
        if scheme != "local":
            reach |= (
                set(range(len(clusters))) if partners is None or scheme == "central" else partners[job.home]
            )
        possible = {m for m in reach if allocated(job, clusters[m]) <= clusters[m].processors}
        if not possible:
            assert (start, m) == (-1, -1)
            continue
        assert m in possible
        assert start >= job.submit_time
        run_time = job.run_time
        if m != job.home:
            run_time = math.ceil(job.run_time * clusters[job.home].speed / clusters[m].speed)
        spans.append((m, start, start + run_time, allocated(job, clusters[m])))
    for m, begin, _, _ in spans:
        used = sum(size for other, start, end, size in spans if other == m and start <= begin < end)
        assert used <= clusters[m].processors


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
