"""Superschedulers against the naive oracle of a grid."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine.records import JOB
from gridsched.errors import WorkloadError
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy, OverrunName, named_policy
from gridsched.simulation import simulate
from gridsched.systems import grids
from gridsched.systems.base import Scheduler
from gridsched.systems.local.scheduler import Local
from gridsched.systems.registry import names
from gridsched.systems.superscheduler import scheduler as grid
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload, load_machines, synthesise
from tests.oracles import grid as naive_grid
from tests.oracles.grid import GridCluster, GridJob
from tests.support import strategies
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.grids import places, schedule_grid
from tests.support.nodes import jobs_of

SCHEMES: tuple[grid.SchemeName, ...] = ("local", "central", "s-i", "r-i", "sy-i")


def platform(clusters: list[GridCluster]) -> tuple[list[Cluster], list[LocalPolicy]]:
    """Clusters and policies of the oracle in the engine's words."""
    machines = [
        Cluster(
            name=f"c{index}",
            processors=cluster.processors,
            processors_per_node=cluster.processors_per_node,
            node_exclusive=cluster.node_exclusive,
            speed=cluster.speed,
        )
        for index, cluster in enumerate(clusters)
    ]
    policies = [
        LocalPolicy(
            name="local",
            order=cluster.order,  # type: ignore[arg-type]
            backfilling=cluster.backfilling,  # type: ignore[arg-type]
            reservations=cluster.reservations,
            backfill_order=cluster.backfill_order,  # type: ignore[arg-type]
        )
        for cluster in clusters
    ]
    return machines, policies


def run(
    jobs: list[GridJob],
    clusters: list[GridCluster],
    scheme: str,
    overrun: OverrunName = "doubling",
    **parameters: Any,
) -> list[tuple[int, int]]:
    """Start time and cluster of each job under a scheme."""
    superscheduler = grid.Superscheduler(scheme=cast(grid.SchemeName, scheme), **parameters)
    return run_under(superscheduler, jobs, clusters, overrun)


def run_under(
    scheduler: Scheduler,
    jobs: list[GridJob],
    clusters: list[GridCluster],
    overrun: OverrunName = "doubling",
) -> list[tuple[int, int]]:
    """Start time and cluster of each job under a grid scheduler."""
    records = np.array([job[:4] for job in jobs], JOB)
    home = np.array([job.home for job in jobs], np.int64)
    return places(schedule_grid(records, home, *platform(clusters), scheduler, overrun))


def with_one_score(clusters: list[GridCluster]) -> list[GridCluster]:
    """The engine knows one changing order in a grid."""
    return [cluster._replace(order="lxf") if cluster.order == "lxwf" else cluster for cluster in clusters]


@st.composite
def silences(draw: st.DrawFn, clusters: int) -> list[list[tuple[int, int]]]:
    """Intervals of silence of each cluster: none, a few that may touch, or one that outlasts most jobs."""
    few = st.lists(st.sampled_from([0, 1, 2, 4, 5, 9, 10, 20, 30, 45]), min_size=2, max_size=4, unique=True)
    long = st.just([0, 150])
    result = []
    for _ in range(clusters):
        times = sorted(draw(st.just([]) | few | long))
        # of three times the middle one ends an interval and begins another
        times = times[:1] + [times[1]] * 2 + times[2:] if len(times) == 3 else times
        result.append(list(zip(times[::2], times[1::2], strict=True)))
    return result


@st.composite
def options(draw: st.DrawFn, clusters: int) -> dict[str, Any]:
    """Parameters and options of a scheme in the words of the oracle; delays meet checks and arrivals."""
    parameters: dict[str, Any] = {
        "phi": draw(st.sampled_from([1, 2, 3, 60])),
        "sigma": draw(st.sampled_from([1, 2, 3, 5, 30])),
        "delta": draw(st.sampled_from([0.3, 0.7, 1.0])),
        "epsilon": draw(st.sampled_from([0.0, 1.0, 10.0])),
        "partners": draw(st.none() | strategies.partnerships(clusters)),
        "predictions": draw(st.sampled_from(["exact", "plan"])),
        "overrun": draw(st.sampled_from(["doubling", "increments"])),
    }
    if draw(st.integers(0, 2)) == 0:
        return parameters
    return parameters | {
        "message_delay": draw(st.sampled_from([0, 0, 1, 2, 5, 7, 40])),
        "migration_delay": draw(st.sampled_from([0, 0, 1, 5, 13])),
        "transfers": draw(st.sampled_from(["one", "all"])),
        "no_gain": draw(st.sampled_from(["wait", "ask"])),
        "busy": draw(st.sampled_from(["now", "interval"])),
        "standing": draw(st.sampled_from(["until-check", "at-check"])),
        "silent": draw(st.none() | silences(clusters)),
    }


def by_name(chosen: dict[str, Any]) -> dict[str, Any]:
    """Options of the oracle in the words of the engine, which calls clusters by name."""
    named = dict(chosen)
    if chosen.get("partners") is not None:
        named["partners"] = {
            f"c{h}": [f"c{m}" for m in others] for h, others in enumerate(chosen["partners"])
        }
    if chosen.get("silent") is not None:
        named["silent"] = {f"c{m}": intervals for m, intervals in enumerate(chosen["silent"])}
    return named


@pytest.mark.parametrize("scheme", SCHEMES)
@given(grid_of_jobs=strategies.grids(max_clusters=4) | strategies.crowds(), data=st.data())
@settings(max_examples=400, deadline=None)
def test_schemes_equal_the_oracle(
    scheme: str, grid_of_jobs: tuple[list[GridJob], list[GridCluster]], data: st.DataObject
) -> None:
    jobs, clusters = grid_of_jobs
    clusters = with_one_score(clusters)
    chosen = data.draw(options(len(clusters)))
    expected = naive_grid.simulate_grid(jobs, clusters, scheme=scheme, **chosen)
    assert run(jobs, clusters, scheme, **by_name(chosen)) == expected


# --- worked examples ------------------------------------------------------------------------------


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


LONG = GridJob(0, 1000, 1000, 1, 0)
"""Holds a processor of cluster 0 until 1000."""


DOUBLES = [GridCluster(2), GridCluster(2)]
SECOND_SLOW = [GridCluster(1), GridCluster(1, speed=0.01)]
NO_GAIN = [GridCluster(1), GridCluster(1, speed=0.01), GridCluster(2)]
"""Cluster 1 volunteers and is too slow; cluster 2, half used, is better and does not volunteer."""
NO_GAIN_JOBS = [LONG, at_home(0, 2000, 2), at_home(310, 10)]
TWO_LATER = [LONG, at_home(10, 100), at_home(20, 100)]
BEHIND = [LONG, at_home(10, 50), at_home(20, 50)]
TRANSIT = [LONG, at_home(0, 100, 2), at_home(10, 100), at_home(20, 100)]
SILENT = [LONG, at_home(10, 100), at_home(15, 100)]
VOLUNTEERED = [LONG, at_home(0, 2000, 2), at_home(310, 100)]
UNANSWERED = [at_home(10, 100, processors=2)]
MANY = [LONG, at_home(10, 100), at_home(20, 100), at_home(301, 100)]
LOADED = [LONG, at_home(0, 290, 1), at_home(10, 100)]
AT_50 = [at_home(0, 40), at_home(50, 9)]
AT_CHECK = [LONG, at_home(10, 5), at_home(300, 5), at_home(310, 5)]
SLOW: dict[str, Any] = {"sigma": 100, "message_delay": 30}

PREDICTED: dict[str, tuple[list[GridCluster], list[GridJob], dict[str, tuple[int, int]]]] = {
    # Cluster 0 has two processors: job 0 holds one of them until 100, job 1 needs both. Without backfilling
    # job 2 would start at 150; a plan has a hole for it now. Cluster 1 would run it within 35 s.
    "exact follows the policy and a plan does not": (
        [GridCluster(2, backfilling="none"), GridCluster(1, speed=30 / 35)],
        [GridJob(0, 100, 100, 1, 0), GridJob(0, 50, 50, 2, 0), GridJob(1, 30, 30, 1, 0)],
        {"exact": (1, 1), "plan": (150, 0)},
    ),
    # Shortest first. At 2 job 3 (5 s) would start at 10, ahead of job 2; the plan has it behind: at 60.
    # Cluster 1 is busy until 40: exact prefers cluster 0 (10 + 5), the plan cluster 1.
    "a plan places a job that enters behind all others until it is made anew": (
        [GridCluster(1, order="shortest", backfilling="none"), GridCluster(1)],
        [
            GridJob(0, 10, 10, 1, 0),
            GridJob(0, 40, 40, 1, 1),
            GridJob(1, 50, 50, 1, 0),
            GridJob(2, 5, 5, 1, 0),
        ],
        {"exact": (10, 0), "plan": (40, 1)},
    ),
    # Job 2 could start beside job 0, but not ahead of job 1. The plan that job 3 has made at 5 lets it run
    # from 5 to 15; at 6 it has not started: made anew, the plan offers job 4 a start at 16 and an end at 26,
    # as does cluster 1, which is idle.
    "a planned start that the policy does not make outdates the plan": (
        [GridCluster(2, backfilling="none"), GridCluster(1, speed=0.5)],
        [
            GridJob(0, 100, 100, 1, 0),
            GridJob(0, 50, 50, 2, 0),
            GridJob(1, 10, 10, 1, 0),
            GridJob(5, 0, 1, 1, 0),
            GridJob(6, 10, 10, 1, 0),
        ],
        {"plan": (6, 1)},
    ),
    # Job 0 is expected to end at 10, later at 20, 40, 80. At 39 job 2 makes a plan and waits for 40; at 41
    # job 3 would wait until 81 there, on cluster 1 until 60.
    **{
        f"outrun estimates outdate the plan, {order}, {backfilling}": (
            [GridCluster(1, order=order, backfilling=backfilling), GridCluster(1)],
            [
                GridJob(0, 1000, 10, 1, 0),
                GridJob(0, 60, 60, 1, 1),
                GridJob(39, 0, 1, 1, 0),
                GridJob(41, 5, 5, 1, 0),
            ],
            dict.fromkeys(("exact", "plan"), (60, 1)),
        )
        for order in ("fcfs", "shortest")
        for backfilling in ("none", "easy")
    },
    # Cluster 0 is expected to be busy until 1000, cluster 1 until 30; the first ends at 5 already.
    "early ends are seen by both": (
        [GridCluster(1), GridCluster(1)],
        [
            GridJob(0, 5, 1000, 1, 0),
            GridJob(0, 30, 30, 1, 1),
            GridJob(4, 9, 9, 1, 0),
            GridJob(6, 9, 9, 1, 1),
        ],
        dict.fromkeys(("exact", "plan"), (6, 0)),
    ),
}
"""Clusters, jobs, and the place of the last one with predictions of both modes, or of each."""

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
    ("s-i", [at_home(0, 1000, estimate=10), at_home(79, 5)], SINGLES, {"overrun": "increments"}, [(79, 1)]),
    *(
        ("central", jobs, clusters, {"predictions": mode}, [place])
        for clusters, jobs, found in PREDICTED.values()
        for mode, place in found.items()
    ),
    # One request at a time: job 1 asks at 10 and enters cluster 1 at 40. Job 2 cannot ask before; at 40 it
    # sees 100 + 100 s there, behind job 1, which is less than 960 + 100 s, and enters at 70. Without delay
    # they start at 10 and 110.
    ("s-i", TWO_LATER, SINGLES, {"message_delay": 30}, [(0, 0), (40, 1), (140, 1)]),
    ("s-i", TWO_LATER, SINGLES, {}, [(0, 0), (10, 1), (110, 1)]),
    # The central scheduler needs no messages; nor does who has no partners
    ("central", TWO_LATER, SINGLES, {"message_delay": 30}, [(0, 0), (10, 1), (110, 1)]),
    (
        "s-i",
        TWO_LATER,
        SINGLES,
        {"message_delay": 30, "partners": [set(), set()]},
        [(0, 0), (1000, 0), (1100, 0)],
    ),
    # The local queue is looked at while answers are awaited: job 1 needs both processors and asks at 10; job
    # 2 starts at home at 20
    (
        "s-i",
        [LONG, at_home(10, 100, processors=2), at_home(20, 100)],
        DOUBLES,
        {"message_delay": 30},
        [(0, 0), (40, 1), (20, 0)],
    ),
    # A decision takes effect later at home too: job 2 sees 90 + 9 s at home and 290 + 9 s at cluster 1, and
    # enters the queue at home at 40. Job 3, which would wait 65 s, enters it at 35
    (
        "s-i",
        [at_home(0, 100), at_home(0, 300, 1), at_home(10, 9), at_home(35, 5)],
        SINGLES,
        {"message_delay": 30, "phi": 66},
        [(0, 0), (0, 1), (105, 0), (100, 0)],
    ),
    # Answers are those of the time of the request: job 1 finds cluster 1 idle at 10. When it enters at 40,
    # job 2 has it until 520
    (
        "s-i",
        [LONG, at_home(10, 100), at_home(20, 500, 1)],
        SINGLES,
        {"message_delay": 30},
        [(0, 0), (520, 1), (20, 1)],
    ),
    # A job is decided anew when its grid scheduler is free: job 2 finds the scheduler occupied at 935, when
    # it would wait 65 s; at 945 that is 55 s, and it stays
    (
        "s-i",
        [LONG, at_home(915, 100), at_home(935, 100)],
        SINGLES,
        {"message_delay": 30},
        [(0, 0), (945, 1), (1000, 0)],
    ),
    # Jobs that a check finds behind another are decided after it: the check at 100 lets job 1 ask cluster 1,
    # which it enters at 130. Then job 2 finds that cluster 1 has accepted job 1, and waits for the check at
    # 200; if it takes all, job 2 asks, and enters at 160
    ("r-i", BEHIND, SINGLES, SLOW, [(0, 0), (130, 1), (230, 1)]),
    ("r-i", BEHIND, SINGLES, {**SLOW, "transfers": "all"}, [(0, 0), (130, 1), (180, 1)]),
    (
        "r-i",
        BEHIND,
        SINGLES,
        {**SLOW, "transfers": "all", "standing": "at-check"},
        [(0, 0), (130, 1), (230, 1)],
    ),
    # A request in vain takes as long: job 1 does not fit on cluster 1, the only volunteer; job 2 asks it when
    # the scheduler is free at 130
    (
        "r-i",
        [at_home(0, 1000, processors=2), at_home(10, 50, processors=2), at_home(20, 50)],
        [GridCluster(2), GridCluster(1)],
        SLOW,
        [(0, 0), (1000, 0), (160, 1)],
    ),
    # A check marks the job whose answers are awaited: at 100 job 1 asks cluster 1, which is too slow, until
    # 250. Since the check at 200 has marked it, it is decided at 250, not at 300, and would wait 55 s at
    # home: it precedes job 2
    (
        "r-i",
        [at_home(0, 305), at_home(10, 10), at_home(260, 10)],
        SECOND_SLOW,
        {"sigma": 100, "message_delay": 150},
        [(0, 0), (305, 0), (315, 0)],
    ),
    # At 200 it asks anew until 290, when no check has come in between: it waits for that at 300
    (
        "r-i",
        [at_home(0, 305), at_home(10, 10), at_home(260, 10)],
        SECOND_SLOW,
        {"sigma": 100, "message_delay": 90},
        [(0, 0), (315, 0), (305, 0)],
    ),
    # A check looks at home while answers are awaited: at 200 job 2 would wait 55 s and enters the queue at
    # home; job 1, whose answers come at 250, follows
    (
        "r-i",
        [at_home(0, 255), at_home(10, 10), at_home(20, 10)],
        SECOND_SLOW,
        {"sigma": 100, "message_delay": 150},
        [(0, 0), (265, 0), (255, 0)],
    ),
    # Jobs in transit count nowhere: job 2 leaves for cluster 1 at 10 and arrives at 40. At 20 job 3 sees an
    # idle cluster 1 and 80 s of wait on cluster 2, follows, arrives at 50 and starts after job 2
    (
        "s-i",
        TRANSIT,
        [GridCluster(1)] * 3,
        {"migration_delay": 30},
        [(0, 0), (0, 2), (40, 1), (140, 1)],
    ),
    ("s-i", TRANSIT, [GridCluster(1)] * 3, {}, [(0, 0), (0, 2), (10, 1), (100, 2)]),
    # After the answers, which job 3 can only ask for at 15
    (
        "s-i",
        TRANSIT,
        [GridCluster(1)] * 3,
        {"message_delay": 5, "migration_delay": 30},
        [(0, 0), (0, 2), (45, 1), (145, 1)],
    ),
    # A central scheduler sends jobs on their way too: job 1 is in transit to cluster 1 from 10 to 40; job 2
    # was submitted there, starts at 20 and ends at 70
    (
        "central",
        [LONG, at_home(10, 100), at_home(20, 50, 1)],
        SINGLES,
        {"migration_delay": 30},
        [(0, 0), (70, 1), (20, 1)],
    ),
    # Whoever arrives at an instant precedes whoever is submitted then: job 1 arrives on cluster 1 at 40,
    # where job 2 is submitted at 40
    (
        "s-i",
        [LONG, at_home(10, 100), at_home(40, 9, 1)],
        SINGLES,
        {"migration_delay": 30, "phi": 200},
        [(0, 0), (40, 1), (140, 1)],
    ),
    # The wait of a job counts from its submission through its transit: at 200 the expansion factors on
    # cluster 1 are (190 + 50) / 50 of job 2, in transit until 190, and (100 + 50) / 50 of job 3
    (
        "s-i",
        [LONG, at_home(0, 200, 1), at_home(10, 50), at_home(100, 50, 1)],
        [GridCluster(1, order="lxf")] * 2,
        {"migration_delay": 180, "phi": 101},
        [(0, 0), (0, 1), (200, 1), (250, 1)],
    ),
    # Who is silent is ignored: at 10 cluster 1 does not answer job 1, which stays; at 15 it answers job 2
    ("s-i", SILENT, SINGLES, {"silent": [[], [(0, 15)]]}, [(0, 0), (1000, 0), (15, 1)]),
    # At 300 it does not volunteer, at 600 it does: for job 1 only
    ("r-i", SILENT, SINGLES, {"silent": [[], [(300, 301)]]}, [(0, 0), (600, 1), (900, 1)]),
    # The silent scheduler itself sends; the central scheme has none
    ("s-i", SILENT, SINGLES, {"silent": [[(0, 500)], []]}, [(0, 0), (10, 1), (110, 1)]),
    ("central", SILENT, SINGLES, {"silent": [[(0, 500)], [(0, 15)]]}, [(0, 0), (10, 1), (110, 1)]),
    # Who falls silent after it volunteered counts as a volunteer: cluster 1 volunteers at 300, and is silent
    # when job 1 asks at 310. Cluster 2, half used, does not volunteer, so that only sy-i without volunteers
    # would ask it
    *(
        (
            scheme,
            VOLUNTEERED,
            [*SINGLES, GridCluster(2)],
            {"delta": 0.5, "silent": [[], [(305, 320)], []]},
            [(0, 0), (0, 2), (600, 1)],
        )
        for scheme in ("r-i", "sy-i")
    ),
    (
        "sy-i",
        VOLUNTEERED,
        [*SINGLES, GridCluster(2)],
        {"delta": 0.5, "silent": [[], [(300, 320)], []]},
        [(0, 0), (0, 2), (310, 2)],
    ),
    # A job that nobody answers asks again: job 0 fits on cluster 1 only, which is silent at 10 and 300
    *(
        (
            scheme,
            UNANSWERED,
            [GridCluster(1), GridCluster(2)],
            {"silent": [[], [(0, 200), (200, 301)]]},
            [(600, 1)],
        )
        for scheme in ("s-i", "r-i", "sy-i")
    ),
    # Answers of 300 that are there at 340 are as empty; those of 600 let it enter at 640
    *(
        (
            scheme,
            UNANSWERED,
            [GridCluster(1), GridCluster(2)],
            {"silent": [[], [(0, 301)]], "message_delay": 40},
            [(640, 1)],
        )
        for scheme in ("s-i", "r-i", "sy-i")
    ),
    # A volunteer takes one or all
    ("r-i", MANY, SINGLES, {}, [(0, 0), (300, 1), (600, 1), (900, 1)]),
    ("r-i", MANY, SINGLES, {"transfers": "all"}, [(0, 0), (300, 1), (400, 1), (500, 1)]),
    # A job without gain waits or asks all: waiting it is too late for 900, where it would wait 100 s at home
    ("sy-i", NO_GAIN_JOBS, NO_GAIN, {"delta": 0.5}, [(1200, 0)]),
    ("sy-i", NO_GAIN_JOBS, NO_GAIN, {"delta": 0.5, "no_gain": "ask"}, [(310, 2)]),
    # Two requests, one after the other
    ("sy-i", NO_GAIN_JOBS, NO_GAIN, {"delta": 0.5, "no_gain": "ask", "message_delay": 20}, [(350, 2)]),
    # A job that comes in between is next at 350: the only processor left is taken by then
    (
        "sy-i",
        [*NO_GAIN_JOBS, at_home(315, 10)],
        NO_GAIN,
        {"delta": 0.5, "no_gain": "ask", "message_delay": 20},
        [(350, 2), (390, 2)],
    ),
    # r-i only ever asks volunteers
    ("r-i", NO_GAIN_JOBS, NO_GAIN, {"delta": 0.5, "no_gain": "ask"}, [(1200, 0)]),
    # Busy now or on average: cluster 1 is idle at 300, after 290 s of work: 290 / 300 is above 0.7. From 300
    # to 600 it is idle
    ("r-i", LOADED, SINGLES, {"busy": "now"}, [(300, 1)]),
    ("r-i", LOADED, SINGLES, {"busy": "interval"}, [(600, 1)]),
    # At 50 both clusters are idle; cluster 0 was busy for 40 of 50 s, or for none of the last 5 s
    ("central", AT_50, SINGLES, {"busy": "now"}, [(50, 0)]),
    ("central", AT_50, SINGLES, {"busy": "interval"}, [(50, 1)]),
    ("central", AT_50, SINGLES, {"busy": "interval", "sigma": 45}, [(50, 0)]),
    # At 50 itself the last 50 s count
    ("central", AT_50, SINGLES, {"busy": "interval", "sigma": 50}, [(50, 1)]),
    # Volunteers are known until the check or at it: job 2 comes at the check, job 3 after it; job 1 has
    # waited
    ("r-i", AT_CHECK, SINGLES, {"transfers": "all"}, [(0, 0), (300, 1), (305, 1), (310, 1)]),
    (
        "r-i",
        AT_CHECK,
        SINGLES,
        {"transfers": "all", "standing": "at-check"},
        [(0, 0), (300, 1), (600, 1), (605, 1)],
    ),
    # A job of sy-i that sees no volunteer asks
    ("sy-i", NO_GAIN_JOBS, NO_GAIN, {"delta": 0.5, "standing": "at-check"}, [(310, 2)]),
]


@pytest.mark.parametrize(("scheme", "jobs", "clusters", "chosen", "places"), WORKED)
def test_worked_examples_of_the_options(
    scheme: str, jobs: list[GridJob], clusters: list[GridCluster], chosen: dict[str, Any], places: Places
) -> None:
    result = run(jobs, clusters, scheme, **by_name(chosen))
    assert result[-len(places) :] == places
    assert result == naive_grid.simulate_grid(jobs, clusters, scheme=scheme, **chosen)


# --- larger grids ---------------------------------------------------------------------------------

SPEEDS = {"north": 375, "south": 1300, "west": 332}


def three_sites() -> tuple[list[Workload], list[Cluster]]:
    """Synthetic jobs of machine M3 on three machines of unlike speed, the first of them overloaded."""
    machine = load_machines()["M3"]
    loads = (2.0, 1.0, 0.5)
    workloads = [synthesise(machine, jobs=400, seed=k, load_scale=load) for k, load in enumerate(loads)]
    clusters = [
        Cluster(name=name, processors=1152, processors_per_node=8, node_exclusive=True, speed=speed)
        for name, speed in SPEEDS.items()
    ]
    return workloads, clusters


@pytest.mark.parametrize("scheme", SCHEMES)
def test_simulated_grids_are_schedules(scheme: grid.SchemeName) -> None:
    workloads, clusters = three_sites()
    done = simulate(workloads, clusters, grid.Superscheduler(scheme=scheme))
    verify(done)
    merged, home = merge_workloads(workloads)
    there = done["segment_cluster"].values
    assert done.sizes["job"] == done.sizes["segment"] == 1200
    assert (home == there).all() == (scheme == "local")
    speed = np.array(list(SPEEDS.values()))
    scaled = np.ceil(merged.run_time * speed[home] / speed[there])
    assert_fields(
        done,
        scheme=scheme,
        system="superscheduler",
        home_cluster=home,
        jobs_transferred=(home != there).sum(),
        run_time=np.where(home == there, merged.run_time, scaled),
    )


def test_names_are_schemes_and_the_default_is_sender_initiated() -> None:
    for scheme in SCHEMES:
        if scheme != "local":
            assert names()[scheme]() == grid.Superscheduler(scheme=scheme)
    assert grid.Superscheduler().scheme == "s-i"
    assert names()["local"]() == Local()


ALL_OPTIONS: dict[str, Any] = {
    "message_delay": 45,
    "migration_delay": 600,
    "silent": {"south": [(0, 86_400), (200_000, 250_000)], "west": [(90_000, 100_000)]},
    "transfers": "all",
    "no_gain": "ask",
    "busy": "interval",
    "standing": "at-check",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_simulated_grids_with_options_are_schedules(scheme: grid.SchemeName) -> None:
    workloads, clusters = three_sites()
    some: list[dict[str, Any]] = [
        {"predictions": "plan"},
        {"message_delay": 300},
        {"migration_delay": 3600, "busy": "interval"},
    ]
    for chosen in [*some, ALL_OPTIONS]:
        done = simulate(workloads, clusters, grid.Superscheduler(scheme=scheme, **chosen))
        verify(done)
        moved = done["home_cluster"].values != done["segment_cluster"].values
        wait = done["segment_start"].values - done["submit_time"].values
        assert (wait[moved] >= chosen.get("migration_delay", 0)).all()
        silent = {name: [list(pair) for pair in pairs] for name, pairs in chosen.get("silent", {}).items()}
        assert json.loads(done.attrs["silence"]) == silent
        told = {f"parameter_{key}": value for key, value in chosen.items() if key != "silent"}
        assert_fields(done, **told)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(grid_of_jobs=strategies.grids(max_clusters=4), data=st.data())
@settings(max_examples=30, deadline=None)
def test_small_schedules_do_not_depend_on_the_room(
    scheme: str, grid_of_jobs: tuple[list[GridJob], list[GridCluster]], data: st.DataObject
) -> None:
    jobs, clusters = grid_of_jobs
    clusters = with_one_score(clusters)
    chosen = by_name(data.draw(options(len(clusters))))
    expected = run(jobs, clusters, scheme, **chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "FIRST_ROOM", 1)
        assert run(jobs, clusters, scheme, **chosen) == expected


def test_rows_have_room_for_jobs_that_enter_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six jobs that waited in the grid queue, or were in transit, enter one row, submissions or not."""
    monkeypatch.setattr(grids, "FIRST_ROOM", 1)
    jobs = [LONG, *(GridJob(10 + k, 5, 5, 1, 0) for k in range(6))]
    entered = [(start, 1) for start in range(300, 330, 5)]
    assert run(jobs, SINGLES, "r-i", transfers="all")[1:] == entered
    jobs = [
        LONG,
        *(GridJob(10, 5, 5, 1, 0) for _ in range(6)),
        *(GridJob(20 + k, 1, 1, 1, 1) for k in range(5)),
    ]
    assert run(jobs, SINGLES, "s-i", migration_delay=290)[1:7] == entered


def test_rows_grow_when_one_cluster_takes_everything() -> None:
    jobs = [GridJob(t, 10, 10, 1, t % 3) for t in range(3500)]
    slow = GridCluster(1, speed=0.125)
    clusters = [GridCluster(14, backfilling="conservative"), slow, slow]
    done = run(jobs, clusters, "central")
    assert [cluster for _, cluster in done].count(0) > grids.FIRST_ROOM * 3
    assert done == [(t, 0) for t in range(3500)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scheme": "best"}, "scheme is 'best'"),
        ({"sigma": 0}, "sigma is 0"),
        ({"predictions": "guess"}, "predictions is 'guess'; use one of exact, plan"),
        ({"phi": 0}, "phi is 0"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": 1.5}, "delta is 1.5"),
        ({"partners": {"c0": ["c7"]}}, "partners: unknown cluster 'c7'"),
        ({"message_delay": -1}, "message_delay is -1; use whole seconds"),
        ({"message_delay": 1.5}, "message_delay is 1.5; use whole seconds"),
        ({"migration_delay": -1}, "migration_delay is -1; use whole seconds"),
        ({"migration_delay": 2**40}, "migration_delay is"),
        ({"transfers": "two"}, "transfers is 'two'; use one of one, all"),
        ({"no_gain": "go"}, "no_gain is 'go'; use one of wait, ask"),
        ({"busy": "never"}, "busy is 'never'; use one of now, interval"),
        ({"standing": "long"}, "standing is 'long'; use one of until-check, at-check"),
        ({"silent": {"c7": [(1, 2)]}}, "silent: unknown cluster 'c7'"),
        ({"silent": {"c0": [(2, 2)]}}, "silent: cluster 'c0' has an interval from 2 to 2 s"),
        ({"silent": {"c0": [(1, 2**41)]}}, "silent: cluster 'c0' has an interval from 1"),
        ({"silent": {"c0": [(8, 9), (1, 5), (4, 7)]}}, "'c0' has intervals that overlap, from 1 to 5 s and"),
        ({"silent": {"c0": [(1, 2.5)]}}, "silent: cluster 'c0' has (1, 2.5); use pairs"),
        ({"silent": {"c0": (1, 2)}}, "silent: cluster 'c0' has 1; use pairs"),
    ],
)
def test_impossible_superschedulers_are_refused(change: dict[str, Any], complaint: str) -> None:
    with refused(complaint):
        run([at_home(0, 1)], [GridCluster(1)], **{"scheme": "s-i", **change})


def test_order_by_a_score_that_never_changes() -> None:
    """A score of one's own need not take the time."""
    jobs = np.array([(0, 10, 10, 1), (1, 5, 5, 1), (2, 3, 3, 1)], JOB)
    own = LocalPolicy(name="own", order=lambda estimate: -estimate)
    home = np.zeros(3, np.int64)
    done = schedule_grid(jobs, home, [ONE], [own], grid.Superscheduler(scheme="s-i"))
    assert done.start_time.tolist() == [0, 13, 10]


ONE, EIGHT = Cluster(name="a", processors=1), Cluster(name="b", processors=1, speed=8)
EASY = named_policy("easy")
BY_SCORE = LocalPolicy(name="own", backfilling="easy", backfill_order=lambda processors: processors)


@pytest.mark.parametrize(
    ("clusters", "policies", "home", "complaint"),
    [
        ([ONE, ONE], [EASY, EASY], 0, "a name of its own"),
        ([ONE, EIGHT], [EASY, EASY], 1, "8 times slower"),
        ([ONE, EIGHT], [named_policy("lxf"), named_policy("lxwf")], 0, "only one order"),
        ([ONE], [BY_SCORE], 0, "backfill_order is a name, not a score"),
    ],
)
def test_platforms_that_do_not_go_together_are_refused(
    clusters: list[Cluster], policies: list[LocalPolicy], home: int, complaint: str
) -> None:
    jobs = np.array([(0, 1, 2**30, 1)], JOB)
    with refused(complaint):
        schedule_grid(jobs, np.array([home]), clusters, policies, grid.Superscheduler())


def small(name: str, submit_time: list[int], run_time: list[int], **facts: Any) -> Workload:
    return jobs_of(
        name=name, submit_time=submit_time, run_time=run_time, requested_processors=[1, 1], **facts
    )


def test_merged_workloads_keep_their_jobs_and_counts() -> None:
    first = small("a", [5, 9], [1, 2], left_out={"x": 2})
    second = small("b", [3, 7], [3, 4], unix_start_time=100)
    merged, origin = merge_workloads([first, second])
    assert_fields(merged, submit_time=[0, 0, 4, 4], run_time=[1, 3, 2, 4], left_out={"a: x": 2})
    assert origin.tolist() == [0, 1, 0, 1]
    with refused("a: the log does not say when it starts", error=WorkloadError):
        merge_workloads([first, second], align="clock")
    later = replace(first, unix_start_time=102)
    assert_fields(merge_workloads([later, second], align="clock")[0], submit_time=[3, 7, 7, 11])
    assert_fields(merge_workloads([first, second], align="none")[0], submit_time=[3, 5, 7, 9])
