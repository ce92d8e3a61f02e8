"""Dynamic grids: the engine against the naive oracle, worked examples of each rule, invariants, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import example as tried
from hypothesis import strategies as st

from gridsched.engine.records import FOREVER
from gridsched.errors import ScheduleError, WorkloadError
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.simulation import simulate
from gridsched.summary import summarise
from gridsched.systems.dynamic_grid.graphs import adjacency, graph_of_edges, grid_graph, maximal_cliques
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.measures import (
    GRID_USERS,
    MESSAGES,
    TOTALS,
    VARIABLES,
    dynamic_measures,
)
from gridsched.systems.dynamic_grid.membership import Stay, draw_membership, member_events
from gridsched.systems.dynamic_grid.outcome import OUTCOMES, REJECTED, STOPPED, STRANDED
from gridsched.systems.dynamic_grid.planning import WORK, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.rules import dynamic_violations
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.verification import verify, violations
from gridsched.workloads import Workload
from tests.oracles.dynamic_grid import DynamicJob, Oracle
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import workload_of
from tests.systems.dynamic_grid.cases import (
    SIMPLE,
    Case,
    as_given,
    cases,
    changed,
    clusters_of,
    grid,
    job,
    leased,
    of_engine,
    of_oracle,
    oracle,
    run_of,
    schedule,
    where,
)

# --- against the oracle ---------------------------------------------------------------------------


KINDS: dict[str, dict[str, bool]] = {
    "equal": {"equal_clusters": True},
    "unequal": {"equal_clusters": False},
    "failures": {"fails": True},
    "lifecycles": {"lives": True},
    "failures and lifecycles": {"fails": True, "lives": True},
}
"""What is drawn."""


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=120)
def test_engine_equals_the_oracle(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(**KINDS[kind]))
    naive, done = oracle(case), schedule(case)
    assert of_engine(done, naive) == of_oracle(naive)
    # What is left over in the end could not be held by the clusters that are left.
    for j in np.flatnonzero(done.grid.progress["state"] == dynamic_state.GRID_QUEUE):
        assert kind not in ("equal", "unequal") or case.jobs[j].processors > done.remaining


# --- worked examples ------------------------------------------------------------------------------


VISIT = [job(0, 20, 4), job(5, 10, 6, 0)]
"""A local job of six processors comes while a grid job of four runs."""
FAST_FIRST = [Fraction(2), Fraction(1, 2)]
SLOW_FIRST = [Fraction(1), Fraction(2)]

WORKED: dict[str, tuple[Case, dict[Any, Any]]] = {
    "first job runs if it fits": (
        grid([job(0, 10, 3, 0), job(1, 5, 1, 0)], [4]),
        {"times": [(0, 10), (1, 6)]},
    ),
    "first job waits within delta_t": (
        grid([job(0, 10, 4, 0), job(2, 5, 4, 0)], [4, 4], delta_t=8),
        {"times": [(0, 10), (10, 15)], "total sent": 0},
    ),
    "first job goes to the grid if it would wait longer": (
        grid([job(0, 10, 4, 0), job(2, 5, 4, 0)], [4, 4], delta_t=7),
        {1: [(1, 4, 2, 7, 0)], "sent": [-1, 2]},
    ),
    # The running job outruns its estimate of 5 s and is expected to run for 10 s then
    "waiting ends when it is expected to last too long": (
        grid([job(0, 30, 4, 0, estimate=5), job(0, 5, 4, 0)], [4, 4], delta_t=6),
        {"headed": [-1, 0], "sent": [-1, 5]},
    ),
    # The local job's home is not the cluster at which the end of the grid job's run is noticed to be later
    "waiting ends when a job of several clusters is expected to last too long": (
        grid([job(0, 3, 9, estimate=1), job(1, 1, 1, 1)], [1, 8], [(0, 1)], delta_t=1),
        {"times": [(0, 4), (2, 3)], "suspensions": [1, 0]},
    ),
    # With the slow cluster the first job would outlast the second lease; the next job takes that cluster
    "job has its turn when a slow cluster is taken": (
        grid(
            [job(16, 4, 7), job(16, 2, 2)],
            [4, 4, 2],
            [(0, 1), (1, 2), (0, 2)],
            members={"c1": [Stay(begin=0, end=23, leases=[23])]},
            speeds=[Fraction(1), Fraction(1), Fraction(1, 2)],
            heed_leases=True,
        ),
        {"times": [(16, 20), (16, 20)]},
    ),
    "local job makes a grid job migrate": (
        grid(VISIT, [6, 6], [(0, 1)], placement="emptiest"),
        {0: [(0, 4, 0, 5, 0), (1, 4, 5, 20, 0)], "times": [(0, 20), (5, 15)], "migrations": [1, 0]},
    ),
    "without neighbour the grid job is suspended and goes on": (
        grid(VISIT, [6]),
        {0: [(0, 4, 0, 5, 0), (0, 4, 15, 30, 0)]},
    ),
    "without checkpoint the work is lost": (
        grid(VISIT, [6], checkpoint=False),
        {0: [(0, 4, 0, 5, 0), (0, 4, 15, 35, 0)], "kept_from": [5, -1]},
    ),
    "without migration a job is killed and restarted": (
        grid(VISIT, [6, 5], [(0, 1)], checkpoint=False, migration=False, placement="emptiest"),
        {0: [(0, 4, 0, 5, 0), (1, 4, 5, 25, 0)], "suspensions": [1, 0]},
    ),
    "local job waits for the end of the superstep": (
        grid(VISIT, [6], superstep=8),
        {"times": [(0, 30), (8, 18)], 0: [(0, 4, 0, 8, 0), (0, 4, 18, 30, 0)]},
    ),
    # A local job ends at 6, before the superstep of the grid job does
    "order to make place is withdrawn if it is not needed": (
        grid([job(0, 6, 2, 0), job(0, 20, 4), job(5, 10, 2, 0, estimate=10)], [6], superstep=8),
        {"times": [(0, 6), (0, 20), (6, 16)], 1: [(0, 4, 0, 20, 0)]},
    ),
    "waiting is tried first": (
        grid(VISIT, [6], delta_t=None, prefer="wait"),
        {"times": [(0, 20), (20, 30)]},
    ),
    "making place is tried first": (
        grid(VISIT, [6], delta_t=None, prefer="migrate"),
        {"times": [(0, 30), (5, 15)]},
    ),
    # Grid jobs of 3, 2 and 1 processors run on all six of the cluster
    **{
        f"as few grid jobs as possible make place: {needed}, {victims}": (
            grid([job(0, 50, 3), job(0, 50, 2), job(0, 50, 1), job(5, 1, needed, 0)], [6], victims=victims),
            {"suspensions": stopped},
        )
        for needed, victims, stopped in (
            (2, "fitting", [0, 1, 0, 0]),
            (3, "fitting", [1, 0, 0, 0]),
            (5, "fitting", [1, 1, 0, 0]),
            (2, "latest", [0, 1, 1, 0]),
            (6, "fitting", [1, 1, 1, 0]),
        )
    },
    "multi-site job is stretched, to whole seconds": (
        grid([job(0, 10, 7)], [4, 4], [(0, 1)], overhead=1.25),
        {0: [(0, 4, 0, 13, 0), (1, 3, 0, 13, 0)]},
    ),
    # Four seconds of work at half speed on two clusters, the other six at full speed on one
    "overhead counts only while several sites are used": (
        grid(
            [job(0, 6, 1, 1), job(0, 10, 4), job(8, 5, 1, 0)],
            [3, 4],
            [(0, 1)],
            overhead=2.0,
            placement="emptiest",
        ),
        {1: [(0, 3, 0, 8, 0), (1, 1, 0, 8, 0), (1, 4, 8, 14, 0)]},
    ),
    # Eight processors are idle on two clusters that are no neighbours: the job waits for one with six
    "no clique, no start": (
        grid([job(0, 10, 6, 2), job(1, 5, 6)], [4, 4, 6]),
        {1: [(2, 6, 10, 15, 0)]},
    ),
    # c0 and c1 are neighbours; c2 is one of c0 only, c3 of both: tasks of c0 move to c3
    "target is adjacent to every other site": (
        grid(
            [job(0, 40, 8), job(5, 10, 4, 0)],
            [4, 4, 6, 7],
            [(0, 1), (0, 2), (0, 3), (1, 3)],
            members={"c2": [Stay(begin=1)], "c3": [Stay(begin=1)]},
            most_sites=2,
        ),
        {0: [(0, 4, 0, 5, 0), (1, 4, 0, 5, 0), (1, 4, 5, 40, 0), (3, 4, 5, 40, 0)]},
    ),
    "without such a target the job is suspended": (
        grid(
            [job(0, 40, 8), job(5, 10, 4, 0)],
            [4, 4, 6],
            [(0, 1), (0, 2)],
            members={"c2": [Stay(begin=1)]},
            most_sites=2,
        ),
        {"suspensions": [1, 0]},
    ),
    # c2 has more idle processors, but the job runs on c1 already
    "a site of the job comes first": (
        grid(
            [job(0, 40, 8), job(0, 3, 2, 1), job(5, 10, 4, 0)],
            [4, 8, 4],
            [(0, 1), (0, 2), (1, 2)],
            members={"c2": [Stay(begin=1)]},
            placement="emptiest",
        ),
        {0: [(0, 2, 0, 5, 0), (1, 6, 0, 5, 0), (1, 8, 5, 40, 0)]},
    ),
    "migration costs time for each task": (
        grid(VISIT, [6, 6], [(0, 1)], migration_cost=0.5, placement="emptiest"),
        {0: [(0, 4, 0, 5, 0), (1, 4, 5, 7, 1), (1, 4, 7, 22, 0)], "times": [(0, 22), (5, 15)]},
    ),
    "processors may be free only when tasks have moved": (
        grid(VISIT, [6, 6], [(0, 1)], migration_cost=0.5, placement="emptiest", release="moved"),
        {
            0: [(0, 4, 0, 5, 0), (0, 4, 5, 7, 1), (1, 4, 5, 7, 1), (1, 4, 7, 22, 0)],
            "times": [(0, 22), (7, 17)],
        },
    ),
    "suspended job takes time to resume": (
        grid(VISIT, [6], resume_cost=1.0),
        {0: [(0, 4, 0, 5, 0), (0, 4, 15, 19, 1), (0, 4, 19, 34, 0)]},
    ),
    # Job 1 came before job 0 was stopped; both fit when the local job ends at 15, but not together
    "stopped jobs go before new ones": (
        grid([job(0, 20, 4), job(3, 20, 5), job(5, 10, 6, 0)], [6]),
        {0: [(0, 4, 0, 5, 0), (0, 4, 15, 30, 0)], 1: [(0, 5, 30, 50, 0)]},
    ),
    # Two processors stay idle beside the local job; the stopped job needs four
    **{
        f"a stopped job without a place, {priority}": (
            grid([job(0, 20, 4), job(5, 10, 4, 0), job(5, 5, 2)], [6], priority=priority),
            {"start": [0, 5, start]},
        )
        for priority, start in (("blocked", 5), ("strict", 15))
    },
    **{
        f"candidates are {new_jobs} of the new jobs": (
            grid([job(0, 10, 4), job(0, 10, 6), job(0, 10, 2)], [6], new_jobs=new_jobs),
            {"start": [0, 10, start]},
        )
        for new_jobs, start in (("any", 0), ("first", 20))
    },
    # At 10 all is idle; the local job of 12 is not known at 15, when the grid job asks in vain until the
    # first report after 32
    "reports are old and processors are confirmed": (
        grid([job(12, 20, 3, 0), job(15, 5, 4)], [4], status_period=10),
        {"total refused": 1, "times": [(12, 32), (40, 45)]},
    ),
    "others may be chosen after a refusal": (
        grid([job(12, 20, 3, 0), job(15, 5, 4)], [4, 5], status_period=10),
        {1: [(1, 4, 15, 20, 0)], "total asked": 2, "total refused": 1},
    ),
    # Until its first local job starts at 10, two processors stay idle; or they do not
    **{
        f"cluster that waits offers {offers}": (
            grid([job(0, 10, 4, 0), job(1, 10, 6, 0), job(2, 5, 2)], [6], delta_t=None, offers=offers),
            {"start": [0, 10, start]},
        )
        for offers, start in (("unclaimed", 20), ("all", 2))
    },
    "leaving cluster moves its grid jobs": (
        grid(
            [job(0, 20, 4), job(0, 20, 2, 0)],
            [6, 5],
            [(0, 1)],
            members={"c0": [Stay(end=9)], "c1": [Stay(begin=1)]},
            superstep=8,
            placement="emptiest",
        ),
        {
            0: [(0, 4, 0, 16, 0), (1, 4, 16, 20, 0)],
            "times": [(0, 20), (0, 20)],
            "leaves": [(0, 9, 16)],
            "proxies": [(0, 0, 4, 16, 20)],
        },
    ),
    "leaving cluster without sufficient neighbours gives jobs back": (
        grid(
            [job(0, 20, 4), job(5, 50, 3, 1)],
            [6, 5],
            [(0, 1)],
            members={"c0": [Stay(end=9), Stay(begin=100)], "c1": [Stay(begin=1)]},
        ),
        {0: [(0, 4, 0, 9, 0), (1, 4, 55, 66, 0)]},
    ),
    "users of a cluster that left are served alone": (
        grid([job(0, 10, 4, 0), job(1, 5, 4, 0)], [4, 8], members={"c0": []}),
        {"times": [(0, 10), (10, 15)]},
    ),
    "lease ends like a leave": (
        grid([job(0, 30, 4)], [4], members={"c0": [leased(0, 10, 1), Stay(begin=50)]}),
        {0: [(0, 4, 0, 10, 0), (0, 4, 50, 70, 0)]},
    ),
    "lease ends like a leave unless it is renewed": (
        grid([job(0, 30, 4)], [4], members={"c0": [leased(0, 10, 2), Stay(begin=50)]}),
        {0: [(0, 4, 0, 20, 0), (0, 4, 50, 60, 0)]},
    ),
    **{
        f"leases may be heeded: {heed}": (
            grid([job(0, 30, 4)], [4], members={"c0": [leased(0, 29, 1), Stay(begin=50)]}, heed_leases=heed),
            {"start": [start]},
        )
        for heed, start in ((False, 0), (True, 50))
    },
    "jobs far over their estimate are stopped": (
        grid([job(0, 100, 4, 0, estimate=10), job(0, 100, 4, estimate=10)], [4, 4], stop_factor=2.5),
        {"times": [(0, 25), (0, 25)]},
    ),
    "local job wider than its cluster is a grid job": (
        grid([job(0, 10, 6, 0)], [4, 4], [(0, 1)]),
        {0: [(0, 4, 0, 10, 0), (1, 2, 0, 10, 0)]},
    ),
    "local job wider than a cluster that is no member is rejected": (
        grid([job(0, 10, 6, 0)], [4, 4], [(0, 1)], members={"c0": []}),
        {"state": [dynamic_state.REJECTED]},
    ),
    "jobs that no member could hold do not block others": (
        grid(
            [job(0, 40, 8), job(30, 5, 2)],
            [8, 4],
            members={"c0": [Stay(end=10), Stay(begin=100)]},
            priority="strict",
        ),
        {0: [(0, 8, 0, 10, 0), (0, 8, 100, 130, 0)], "times": [(0, 130), (30, 35)]},
    ),
    # c1 and c3 suffice together, and are neighbours; c0, c1 and c2 would be three
    "fewest clusters of a clique": (
        grid([job(0, 10, 9)], [3, 4, 3, 5], [(0, 1), (0, 2), (1, 2), (1, 3)]),
        {0: [(1, 4, 0, 10, 0), (3, 5, 0, 10, 0)]},
    ),
    "local jobs run at the speed of their clusters": (
        grid([job(0, 10, 1, 0), job(0, 10, 1, 1)], [1, 1], speeds=[Fraction(1), Fraction(3, 2)]),
        {"times": [(0, 10), (0, 7)]},
    ),
    "a grid job alone on the fast cluster": (
        grid([job(0, 20, 4)], [2, 4], [(0, 1)], speeds=SLOW_FIRST),
        {0: [(1, 4, 0, 10, 0)]},
    ),
    "a grid job is as fast as its slowest cluster": (
        grid([job(0, 20, 6)], [2, 4], [(0, 1)], overhead=1.25, speeds=SLOW_FIRST),
        {0: [(0, 2, 0, 25, 0), (1, 4, 0, 25, 0)]},
    ),
    # 10 of 40 s are done in 5 s at speed 2; the other 30 take 60 s at speed 0.5
    "a grid job keeps its work when it moves to a slower cluster": (
        grid(
            [job(0, 40, 4), job(5, 10, 6, 0)],
            [6, 4],
            [(0, 1)],
            speeds=FAST_FIRST,
            placement="emptiest",
            superstep=5,
        ),
        {0: [(0, 4, 0, 5, 0), (1, 4, 5, 65, 0)], "times": [(0, 65), (5, 10)]},
    ),
    # Nodes of 4 and of 3 processors; the local job of one task waits, though 2 processors are idle
    "parts take whole nodes": (
        grid([job(0, 10, 5), job(1, 5, 1, 0)], [4, 3], [(0, 1)], nodes=[4, 3], delta_t=None),
        {
            0: [(0, 4, 0, 10, 0), (1, 3, 0, 10, 0)],
            "tasks": [1, 1, 4],
            "times": [(0, 10), (10, 15)],
        },
    ),
    # 6 tasks move to where one is alone on a node of 4: the 7 take 8 processors there
    "tasks that meet share nodes": (
        grid([job(0, 3, 1, 0), job(0, 20, 7), job(4, 5, 2, 1)], [8, 6], [(0, 1)], nodes=[4, 3]),
        {
            1: [(0, 4, 0, 4, 0), (0, 8, 4, 20, 0), (1, 6, 0, 4, 0)],
            "tasks": [1, 1, 2, 6, 7],
            "tasks_moved": [0, 6, 0],
        },
    ),
}
"""Cases with what comes out: by job its segments (cluster, processors, start, end, whether only held), by
name a value of each job, or the total of all clusters."""


@pytest.mark.parametrize(("case", "expected"), WORKED.values(), ids=WORKED)
def test_conformance_worked_example(case: Case, expected: dict[Any, Any]) -> None:
    done = schedule(case)
    progress, clusters = done.grid.progress, done.grid.clusters
    leaves = done.grid.events[done.grid.events["kind"] == dynamic_state.LEAVE]
    segments = sorted(done.grid.segments[["job", "cluster", "processors", "start", "end", "held"]].tolist())
    found = {
        "times": progress[["start", "finish"]].tolist(),
        "tasks": sorted(done.grid.segments["tasks"].tolist()),
        "leaves": leaves[["cluster", "time", "done"]].tolist(),
        "proxies": done.grid.proxies[["job", "cluster", "tasks", "begin", "end"]].tolist(),
        **{j: [segment[1:] for segment in segments if segment[0] == j] for j in range(len(progress))},
        **{name: progress[name].tolist() for name in progress.dtype.names or ()},
        **{f"total {name}": int(clusters[name].sum()) for name in clusters.dtype.names or ()},
    }
    assert {name: found[name] for name in expected} == expected


# --- invariants -----------------------------------------------------------------------------------


# At speed 2 the job ends after 3 seconds as it would be stopped; at speed 1 it would be stopped after 4 of 5
ENDS_AS_STOPPED = grid(
    [DynamicJob(submit_time=0, run_time=5, estimate=3, processors=1, home=0)],
    [1, 1],
    speeds=[Fraction(2), Fraction(1)],
)._replace(options=DynamicGrid())


FACTORS = st.sampled_from([None, 1, 1.5])


@tried(case=ENDS_AS_STOPPED, factor=1.5)
@given(case=cases(least=1), factor=FACTORS)
@settings(max_examples=100)
def test_every_run_keeps_the_rules(case: Case, factor: float | None) -> None:
    """No oversubscription, local jobs in peace, cliques of members, whole nodes, work conserved."""
    run = run_of(case._replace(options=replace(case.options, stop_factor=factor)))
    verify(run)
    total = {str(name): float(value) for name, value in dynamic_measures(run).sum().items()}
    seconds = (run["segment_end"] - run["segment_start"]).where(run["segment_held"] == 0, 0)
    tasks = run["segment_tasks" if "segment_tasks" in run else "segment_processors"]
    wanted = (run["run_time"] * run["processors"]).where(run["start_time"] >= 0, 0)
    of_grid = dynamic_measures(run)["flow_work"].sel(home=GRID_USERS)
    assert total["flow_work"] == float((seconds * run["segment_processors"]).sum())
    assert total["work_balance_cluster"] == -float(of_grid.sum())
    lost = total["lost_work_home"] + total["overhead_work_home"]
    assert float(wanted.sum()) + lost == float((seconds * tasks).sum())
    assert total["jobs_home"] == int(run["outcome"].isin([1, 2]).sum())
    assert (run["extra_work"] >= run["lost_work"]).all()
    assert ("work_time" in run) == (len({each.speed for each in case.clusters}) > 1)
    nodes = np.array([each.processors_per_node for each in case.clusters])
    units = nodes[run["segment_cluster"].to_numpy()]
    assert (run["segment_processors"] == -(-tasks // units) * units).all()
    assert ("segment_tasks" in run) == (nodes.max() > 1)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@given(case=cases())
@settings(max_examples=30)
def test_isolated_clusters_are_on_their_own(policy: Any, case: Case) -> None:
    """With an infinite delta_t and no grid jobs, local schedules are those of each cluster alone."""
    own = [j for j in case.jobs if j.home is not None and j.processors <= case.clusters[j.home].processors]
    assume(own)
    options = replace(case.options, delta_t=None, policy=policy)
    run = run_of(case._replace(jobs=own, edges=set(), membership={}, options=options))
    for i, cluster in enumerate(case.clusters):
        local = [j for j in own if j.home == i]
        if local:
            times: Any = "home" if local[0].there else "unit"
            jobs = replace(workload_of(list(map(as_given, local))), home=np.zeros(len(local), np.int64))
            alone = simulate(jobs, cluster, policy, overrun=case.overrun, times=times)
            mine = run["home_cluster"] == i
            for name in ("start_time", "end_time", "run_time", "estimate"):
                np.testing.assert_array_equal(run[name].values[mine], alone[name].values)


def test_parameters_may_be_numbers_of_numpy() -> None:
    case = grid([job(0, 10, 6), job(0, 3, 1, 1)], [4, 4], [(0, 1)])
    plain: dict[str, Any] = {"superstep": 5, "delta_t": 9, "overhead": 1.5}
    kinds = {"superstep": np.int64, "delta_t": np.int32, "overhead": np.float64}
    numpy = {name: kind(plain[name]) for name, kind in kinds.items()}
    runs = [run_of(case._replace(options=replace(SIMPLE, **given_))) for given_ in (plain, numpy)]
    verify(runs[1])
    xr.testing.assert_identical(*runs)


def crowded(number: int = 3000) -> Case:
    """More jobs in the queues than there is room for at first, on a busy grid with churn."""
    random = np.random.default_rng(5)
    processors = [12, 16, 24, 9]
    homes = [None, None, 0, 1, 2, 3]
    jobs = []
    for submit in np.sort(random.integers(0, 4000, number)):
        home = homes[random.integers(len(homes))]
        most = 30 if home is None else processors[home]
        run = int(random.integers(0, 60))
        estimate = max(1, run + int(random.integers(-20, 60)))
        jobs.append(DynamicJob(int(submit), run, estimate, int(random.integers(1, most + 1)), home))
    edges = {(0, 1), (1, 2), (2, 3), (0, 2)}
    membership = draw_membership(["c0", "c1", "c2", "c3"], 20_000, mean_stay=900, mean_absence=60, seed=1)
    options = DynamicGrid(delta_t=20, status_period=30, migration_cost=1.0, policy="fcfs")
    return Case(jobs, clusters_of(processors), edges, membership, options)


def test_crowded_grid_keeps_the_rules() -> None:
    run = run_of(crowded())
    verify(run)
    assert run.attrs["jobs_stranded"] == 0
    assert int(run["suspensions"].sum()) > 100
    assert int(run["migrations"].sum()) > 50
    assert run.sizes["segment"] > 3000


def test_a_job_that_moves_often_has_one_end() -> None:
    """One grid job moves to and fro more often than the heap of ends has room for."""
    visits = [job(10 * k, 5, 4, k % 2) for k in range(200)]
    first = schedule(grid([job(0, 1500, 4), *visits], [4, 4], [(0, 1)])).grid.progress[0]
    assert first["migrations"] > 100
    assert (first["start"], first["finish"]) == (0, 1500)


# --- the run dataset ------------------------------------------------------------------------------


# A job over two clusters loses its work when c0 leaves; a local job is sent to the grid
EXAMPLE = grid(
    [job(0, 10, 6), job(0, 3, 1, 1), job(2, 50, 4, 1), job(3, 1, 99, 0)],
    [4, 4],
    [(0, 1)],
    members={"c0": [Stay(end=5), Stay(begin=30)]},
    overhead=2.0,
    checkpoint=False,
    superstep=5,
)


def test_dataset_tells_what_happened() -> None:
    run = run_of(EXAMPLE)
    verify(run)
    assert {OUTCOMES[k] for k in run["outcome"].values} == {"finished", "rejected"}
    first = run.isel(job=int(np.argmax(run["processors"].values == 6)))
    assert_fields(first, suspensions=1, lost_work=30, kept_from=5, extra_work=30 + 60, multi_site_time=25)
    assert_fields(run, messages=sum(run.attrs[name] for name in MESSAGES[1:-1]), jobs_rejected=1)
    without = [name for name in run.variables if not run[name].attrs.get("long_name")]
    assert {*without} <= {"job_number", "cluster", "neighbour"}
    unlike = run_of(UNLIKE)
    assert_fields(unlike, work_time=unlike["run_time"])


def test_stopped_and_stranded_jobs_are_counted() -> None:
    jobs = [job(0, 100, 2, None, estimate=10), job(0, 40, 4), job(20, 5, 3)]
    run = run_of(grid(jobs, [2, 4], members={"c1": [Stay(end=10)]}, stop_factor=2.0))
    outcomes = [STOPPED, STRANDED, STRANDED]
    assert_fields(run, outcome=outcomes, end_time=[20, 10, -1], jobs_stopped=1, jobs_stranded=2)
    verify(run)


def test_grid_share_draws_jobs_of_the_sites() -> None:
    jobs = [job(k, 5, 1, k % 2) for k in range(200)]
    drawn = []
    for share in (0.0, 0.3, 0.6, 1.0):
        run = run_of(grid(jobs, [4, 4], delta_t=None, grid_share=share), seed=3)
        drawn.append(set(np.flatnonzero(run["sent_time"].values >= 0)))
        assert set(run["home_cluster"].values) == {0, 1}
    assert (len(drawn[0]), len(drawn[3])) == (0, 200)
    assert 30 < len(drawn[1]) < len(drawn[2]) < 170
    assert drawn[1] < drawn[2]


def test_measures_have_every_variable() -> None:
    run = run_of(EXAMPLE)
    measures = dynamic_measures(run)
    of_dimensions = {
        f"{name}_{dims[0]}" if len(dims) == 1 else name for name, (dims, *_) in VARIABLES.items()
    }
    assert set(measures.data_vars) > {*of_dimensions, *MESSAGES, *TOTALS} - {"cluster_processors"}
    assert_fields(measures.sel(home=GRID_USERS), lost_work_home=30, overhead_work_home=60)
    there = measures.sel(cluster="c0", home="c0")
    assert_fields(there, leaves_cluster=1, leave_time_max_cluster=0, jobs_rejected_home=1)
    assert float(measures["makespan"]) == float(run["end_time"].max())
    whole = summarise(run)
    assert set(whole.data_vars) > set(measures.data_vars) - {"cluster_processors"}
    for name in ("suspensions", "lost_work"):
        assert float(whole[name]) == float(measures[name]) == float(whole[f"{name}_home"].sum())
    assert float(whole["jobs_unfinished"]) == float(measures["jobs_rejected"] + measures["jobs_stranded"])


def test_yield_waits_are_those_of_the_jobs() -> None:
    of_cluster = dynamic_measures(run_of(grid(VISIT, [6], superstep=8))).isel(cluster=0)
    waits = {"yield_wait_mean_cluster": 3, "yield_wait_max_cluster": 3}
    assert_fields(of_cluster, jobs_yielded_to_cluster=1, **waits)


# --- verifiers ------------------------------------------------------------------------------------


Change = Callable[[xr.Dataset], xr.Dataset]


def with_early_leave(run: xr.Dataset) -> xr.Dataset:
    leaves = run["event_kind"] == dynamic_state.LEAVE
    return where(where(run, "event_time", leaves, 1), "event_done", leaves, 2)


VISITED = grid(
    [*VISIT, job(30, 10, 8)],
    [6, 6],
    [(0, 1)],
    members={"c1": [Stay(begin=0, end=60)]},
    placement="emptiest",
    migration_cost=0.5,
    superstep=5,
)
UNLIKE = grid([job(0, 20, 6), job(0, 5, 1, 0)], [4, 4], [(0, 1)], nodes=[1, 2], speeds=SLOW_FIRST)
BROKEN: list[tuple[Case, Change, str]] = [
    (VISITED, lambda run: where(run, "segment_held", run["segment_held"], 0), "processor-seconds instead"),
    (
        VISITED,
        lambda run: where(run, "segment_cluster", run["sent_time"][run["segment_job"]] < 0, 1),
        "local job",
    ),
    (VISITED, lambda run: run.assign(adjacent=run["adjacent"] * 0), "no neighbours"),
    (VISITED, with_early_leave, "not in the grid"),
    (VISITED, lambda run: changed(run, "run_time", 0, 21), "does not do the work"),
    (VISITED, lambda run: run.assign_attrs(parameter_superstep=4), "within a superstep"),
    (UNLIKE, lambda run: where(run, "work_time", run["processors"] == 6, 21), "does not do the work"),
    (UNLIKE, lambda run: where(run, "work_time", run["processors"] == 1, 6), "at the speed of its cluster"),
    (UNLIKE, lambda run: run.assign(cluster_speed=run["cluster_speed"] * 2), "does not do the work"),
    (EXAMPLE, lambda run: run.drop_vars("extra_work"), "instead of"),
    (EXAMPLE, lambda run: changed(run, "extra_work", 0, 7), "more)"),
]


@pytest.mark.parametrize(("case", "change", "complaint"), BROKEN)
def test_verifiers_find_what_is_wrong(case: Case, change: Change, complaint: str) -> None:
    run = run_of(case)
    verify(run)
    broken = change(run)
    assert any(complaint in line for line in [*violations(broken), *dynamic_violations(broken)])


def test_rules_of_dynamic_grids_are_verified() -> None:
    with refused("superstep", error=ScheduleError):
        verify(run_of(VISITED).assign_attrs(parameter_superstep=4))


# --- graphs and members ---------------------------------------------------------------------------


def test_graphs_have_the_edges_that_they_should() -> None:
    names = [f"c{i}" for i in range(6)]
    rings = {size: dict(grid_graph(names[:size], "ring").degree) for size in (1, 2, 6)}
    assert [[*degrees.values()] for degrees in rings.values()] == [[0], [1] * 2, [2] * 6]
    few, more = (grid_graph(names, "random", mean_degree=degree, seed=4) for degree in (2, 3))
    graphs = [grid_graph(names, "isolated"), grid_graph(names, "complete"), few, more]
    assert [graph.number_of_edges() for graph in graphs] == [0, 15, 6, 9]
    assert {frozenset(edge) for edge in few.edges()} < {frozenset(edge) for edge in more.edges()}


@given(number=st.integers(1, 7), data=st.data())
@settings(max_examples=40)
def test_cliques_are_the_maximal_ones(number: int, data: st.DataObject) -> None:
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    edges = {pair for pair in pairs if data.draw(st.booleans())}
    names = [f"c{i}" for i in range(number)]
    adjacent = adjacency(graph_of_edges(names, [(names[i], names[j]) for i, j in edges]), names)
    found = [tuple(map(int, clique)) for clique in maximal_cliques(adjacent).each()]
    assert found == Oracle([], clusters_of([1] * number), edges).cliques
    assert not maximal_cliques(adjacent).cut_off


def test_cut_off_cliques_keep_every_edge() -> None:
    """The complement of a perfect matching on 2 x 6 vertices has 64 maximal cliques."""
    adjacent = ~np.eye(12, dtype=np.bool_)
    adjacent[range(12), [i ^ 1 for i in range(12)]] = False
    assert len(maximal_cliques(adjacent).ends) == 65
    few = maximal_cliques(adjacent, 5)
    assert few.cut_off
    cliques = [set(map(int, clique)) for clique in few.each()]
    assert sum(len(clique) > 2 for clique in cliques) == 5
    assert all(any({i, j} <= clique for clique in cliques) for i, j in np.argwhere(adjacent))
    run = run_of(grid([job(0, 5, 1)], [1] * 12, [(i, j) for i, j in np.argwhere(adjacent)]))
    assert (run.attrs["cliques"], run.attrs["cliques_cut_off"]) == (64, 0)


def test_hundred_clusters() -> None:
    names = [f"c{i}" for i in range(100)]
    clusters = [Cluster(name=name, processors=4) for name in names]
    graph = grid_graph(names, "random", mean_degree=8, seed=1)
    random = np.random.default_rng(2)
    jobs = [job(k, int(random.integers(1, 200)), int(random.integers(1, 17))) for k in range(300)]
    scheduler = DynamicGrid(migration_cost=1.0, policy="fcfs")
    run = simulate([None] * 100 + [workload_of(jobs)], Platform(clusters, links=graph), scheduler)
    verify(run)
    assert int((run["multi_site_time"] > 0).sum()) > 0


def test_members_are_drawn_for_each_cluster_alone() -> None:
    few = draw_membership(["a", "b"], 10**6, mean_stay=50_000, mean_absence=1000, seed=2)
    more = draw_membership(["a", "b", "c"], 10**6, mean_stay=50_000, mean_absence=1000, seed=2)
    assert few == {name: more[name] for name in ("a", "b")}
    for own in more.values():
        assert own[0].begin == 0
        assert own[-1].end is None
        stays_ended = [stay for stay in own if stay.end is not None]
        assert 8 < len(stays_ended) < 40
        assert all(before.end is not None and before.end < after.begin for before, after in pairwise(own))


def test_leases_are_renewed_as_often_as_clusters_would_stay() -> None:
    drawn = draw_membership(["a"], 10**7, mean_stay=50_000, mean_absence=1000, seed=2, lease=10_000)["a"]
    lengths = [stay.end - stay.begin for stay in drawn if stay.end is not None]
    assert all(length % 10_000 == 0 for length in lengths)
    assert 40_000 < np.mean(lengths) < 70_000
    assert all(stay.leases[-1] == stay.end for stay in drawn if stay.end is not None)


def test_events_are_in_order_of_time_and_cluster() -> None:
    events = member_events(["a", "b"], {"b": [leased(0, 10, 2), Stay(begin=30)]})
    assert events[["time", "cluster", "kind", "lease"]].tolist() == [
        (0, 0, 0, FOREVER),
        (0, 1, 0, 10),
        (10, 1, 1, 20),
        (20, 1, 2, 20),
        (30, 1, 0, FOREVER),
    ]


# --- bad input ------------------------------------------------------------------------------------


ONE_JOB = workload_of([job(0, 5, 1, 0)])
LONG = replace(ONE_JOB, run_time=np.array([2**39]))
A, B = (Cluster(name=name, processors=4) for name in "ab")
NAMES = ["a", "b"]


def membership(**wrong: Any) -> object:
    return draw_membership(["a"], **{"horizon": 10, "mean_stay": 1.0, "mean_absence": 1.0, **wrong})


def on(platform: Any, workloads: Sequence[Workload | None] = (ONE_JOB, None), **options: Any) -> object:
    return simulate(workloads, platform, DynamicGrid(**options))


def of_jobs(home: int, clusters: list[Cluster], names: list[str]) -> object:
    jobs, homes = np.zeros(1, WORK), np.array([home])
    return schedule_dynamic_grid(jobs, homes, clusters, graph_of_edges(names, []), DynamicGrid())


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        (lambda: DynamicGrid(overhead=0.9), "overhead"),
        (lambda: DynamicGrid(overhead=1.2345), "0.001"),
        (lambda: DynamicGrid(overhead=math.nan), "overhead"),
        (lambda: DynamicGrid(migration_cost=-1.0), "migration_cost"),
        (lambda: DynamicGrid(resume_cost=-0.1), "resume_cost"),
        (lambda: DynamicGrid(delta_t=-1), "delta_t"),
        (lambda: DynamicGrid(delta_t=cast(Any, 2.5)), "delta_t"),
        (lambda: DynamicGrid(superstep=0), "superstep"),
        (lambda: DynamicGrid(superstep=True), "superstep"),
        (lambda: DynamicGrid(status_period=-1), "status_period"),
        (lambda: DynamicGrid(most_sites=0), "most_sites"),
        (lambda: DynamicGrid(most_cliques=0), "most_cliques"),
        (lambda: DynamicGrid(stop_factor=0.5), "stop_factor"),
        (lambda: DynamicGrid(prefer=cast(Any, "run")), "prefer"),
        (lambda: DynamicGrid(policy="sfj"), "policy"),
        (lambda: DynamicGrid(grid_share=1.5), "grid_share"),
        (lambda: DynamicGrid(grid_share=-0.1), "grid_share"),
        (lambda: Stay(begin=10, end=10), "ends at 10 s, but begins at 10 s"),
        (lambda: Stay(begin=-1), "begin"),
        (lambda: Stay(begin=5, end=8, leases=[4, 8]), "lease ends at 4 s, but begins at 5 s"),
        (lambda: Stay(begin=0, end=8, leases=[4]), "make them equal"),
        (lambda: Stay(begin=cast(Any, 0.5)), "begin"),
        (lambda: member_events(["a"], {"x": []}), "unknown cluster 'x'"),
        (lambda: member_events(["a"], {"a": [Stay(end=10), Stay(begin=10)]}), "has not left"),
        (lambda: membership(mean_stay=0.0), "mean_stay"),
        (lambda: membership(mean_absence=-1.0), "mean_absence"),
        (lambda: membership(lease=0), "lease"),
        (lambda: membership(horizon=-1), "horizon"),
        (lambda: graph_of_edges(NAMES, [("a", "x")]), "unknown cluster 'x'"),
        (lambda: graph_of_edges(NAMES, [("a", "a")]), "two different"),
        (lambda: adjacency(nx.path_graph(["a", "b", "x"]), NAMES), "unknown cluster 'x'"),
        (lambda: adjacency(nx.path_graph(["a"]), NAMES), "'b' is missing"),
        (lambda: adjacency(nx.DiGraph([("a", "b")]), NAMES), "undirected"),
        (lambda: adjacency(nx.Graph([("a", "b"), ("a", "a")]), NAMES), "itself"),
        (lambda: grid_graph(NAMES, cast(Any, "star")), "star"),
        (lambda: grid_graph(NAMES, "random"), "mean_degree"),
        (lambda: grid_graph(NAMES, "random", mean_degree=2), "mean_degree"),
        (lambda: grid_graph(["a", "a"], "ring"), "name of its own"),
        (lambda: on([A, B], [ONE_JOB]), "1 workloads for 2 clusters"),
        (lambda: on([A, B], [ONE_JOB] * 4), "4 workloads for 2 clusters"),
        (
            lambda: on([A, replace(B, speed=2.0)], [LONG, None], overhead=1e6),
            "too long for an overhead of 1e+06",
        ),
        (lambda: on(Platform([A, B], changes=[ResourceChange(5, "a", 2)])), "added and removed"),
        (lambda: on([A, A]), "name of its own"),
        (lambda: on(Platform([A, B], links=graph_of_edges(["a"], []))), "'b' is missing"),
        (lambda: on(Platform([A, B], membership={"x": []})), "unknown cluster 'x'"),
        (lambda: on([A, B], [None, None]), "no workloads"),
        (lambda: of_jobs(7, [A, B], NAMES), "home"),
        (lambda: of_jobs(0, [A, A], ["a"]), "name of its own"),
        (lambda: dynamic_measures(run_of(EXAMPLE).drop_vars("outcome")), "outcome"),
    ],
)
def test_mistakes_are_refused(wrong: Callable[[], object], part: str) -> None:
    with refused(part):
        wrong()


def test_workloads_without_jobs_are_refused() -> None:
    with refused("no jobs", error=WorkloadError):
        on([A, B], [workload_of([]), None])


def test_local_policy_is_that_of_the_clusters_unless_it_is_given() -> None:
    """The third job fits beside the first, which EASY lets it and first come, first served does not."""
    work = workload_of([job(0, 10, 3, 0), job(1, 10, 4, 0), job(2, 5, 1, 0)])
    for policy, start in (("fcfs", 20), ("easy", 2)):
        for own, every in ((policy, None), ("sjf", policy)):
            cluster = Cluster(name="a", processors=4, policy=own)
            run = simulate([work], cluster, DynamicGrid(delta_t=None, policy=every))
            assert_fields(run, start_time=[0, 10, start])


def test_job_larger_than_every_clique_is_rejected_and_counted() -> None:
    jobs = [job(0, 5, 9), job(0, 5, 8), job(0, 5, 12, 0)]
    run = run_of(grid(jobs, [4, 4, 4], [(0, 1)]))
    rejected = run["processors"].values[run["outcome"].values == REJECTED]
    assert sorted(rejected) == [9, 12]
    assert run.attrs["jobs_rejected"] == 2
    verify(run)
