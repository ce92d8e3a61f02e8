"""Dynamic grids: the engine against the naive oracle, worked examples of each rule, invariants, bad input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from hypothesis import example as tried
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import results
from gridsched.engine.records import FOREVER, JOB
from gridsched.errors import ConfigurationError, ScheduleError, WorkloadError
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import LocalPolicy, OverrunName, named_policy
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
from gridsched.systems.dynamic_grid.membership import Membership, Stay, draw_membership, member_events
from gridsched.systems.dynamic_grid.outcome import OUTCOMES, REJECTED, STOPPED, STRANDED
from gridsched.systems.dynamic_grid.planning import GRID, DynamicSchedule, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.rules import dynamic_violations
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.verification import verify, violations
from gridsched.workloads import Workload
from tests.oracles.dynamic_grid import DynamicJob, MemberEvent, Oracle, Rules
from tests.oracles.local import POLICIES as NAIVE_POLICIES
from tests.oracles.local import Policy

STATES = ("ahead", "local queue", "local run", "grid queue", "grid run", "finished", "rejected", "gone")
SPEEDS = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(13, 10), Fraction(7, 10), Fraction(5, 8)]
SIMPLE = DynamicGrid(overhead=1.0, delta_t=0, superstep=1, migration_cost=0.0, status_period=0, policy="fcfs")
"""A grid without costs, in which nobody waits for reports."""


def leased(begin: int, length: int, leases: int) -> Stay:
    """Stay of a cluster with so many leases, one after the other."""
    ends = [begin + length * (k + 1) for k in range(leases)]
    return Stay(begin=begin, end=ends[-1], leases=ends)


def names_of(number: int) -> list[str]:
    return [f"c{i}" for i in range(number)]


def clusters_of(
    processors: Sequence[int], nodes: Sequence[int] = (), speeds: Sequence[Fraction] = ()
) -> list[Cluster]:
    """Clusters, of which those with nodes of several processors give whole ones to jobs."""
    number = len(processors)
    shapes = zip(processors, nodes or [1] * number, speeds or [Fraction(1)] * number, strict=True)
    return [
        Cluster(
            name=f"c{i}",
            processors=count,
            processors_per_node=node,
            node_exclusive=node > 1,
            speed=float(speed),
        )
        for i, (count, node, speed) in enumerate(shapes)
    ]


COMPOSED = {
    "sjf, first fit, smallest": Policy("shortest", "first_fit", 1, "smallest"),
    "smallest, easy(2)": Policy("smallest", "easy", 2),
    "area, none": Policy("smallest_area", "none"),
    "lxf, conservative": Policy("lxf", "conservative"),
}
"""Local policies without a name."""


def local_policy(name: str) -> LocalPolicy:
    """Local policy of a name, or composed as the oracle's."""
    if name in COMPOSED:
        return LocalPolicy(**COMPOSED[name]._asdict())
    return named_policy(name)


def schedule(
    jobs: list[DynamicJob],
    processors: list[int],
    edges: set[tuple[int, int]] | None = None,
    options: DynamicGrid = SIMPLE,
    membership: Membership | None = None,
    overrun: OverrunName = "doubling",
    nodes: Sequence[int] = (),
    speeds: Sequence[Fraction] = (),
    local: str = "",
) -> DynamicSchedule:
    records = np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], JOB)
    home = np.array([GRID if j.home is None else j.home for j in jobs], np.int64)
    names = names_of(len(processors))
    clusters = clusters_of(processors, nodes, speeds)
    graph = graph_of_edges(names, [(names[i], names[j]) for i, j in edges or set()])
    return schedule_dynamic_grid(
        records,
        home,
        clusters,
        graph,
        options,
        membership,
        policies=[local_policy(local or options.policy or "easy")] * len(clusters),
        overrun=overrun,
    )


def segments(done: DynamicSchedule, job: int) -> list[tuple[int, ...]]:
    """Cluster, processors, start, end and whether it was only held, of each segment of a job."""
    own = done.grid.segments[done.grid.segments["job"] == job]
    return sorted(tuple(int(s[n]) for n in ("cluster", "processors", "start", "end", "held")) for s in own)


def times(done: DynamicSchedule) -> list[tuple[int, int]]:
    return [(int(p["start"]), int(p["finish"])) for p in done.grid.progress]


def job(
    submit: int, run: int, processors: int, home: int | None = None, estimate: int | None = None
) -> DynamicJob:
    return DynamicJob(submit, run, max(run if estimate is None else estimate, 1), processors, home)


# --- against the oracle ---------------------------------------------------------------------------


class Case(NamedTuple):
    """A grid with its jobs; edges are pairs of indices of clusters."""

    jobs: list[DynamicJob]
    processors: list[int]
    edges: set[tuple[int, int]]
    membership: dict[str, list[Stay]]
    options: DynamicGrid
    overrun: OverrunName = "doubling"
    nodes: Sequence[int] = ()
    speeds: Sequence[Fraction] = ()


@st.composite
def stays(draw: st.DrawFn) -> list[Stay]:
    """Stays of a cluster, with and without leases; it may leave for good."""
    own = []
    begin = draw(st.sampled_from([0, 0, 3, 10]))
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(0, 3))
        if count:
            own.append(leased(begin, draw(st.sampled_from([3, 7, 20])), count))
        else:
            own.append(Stay(begin=begin, end=begin + draw(st.sampled_from([1, 5, 15]))))
        assert own[-1].end is not None
        begin = own[-1].end + draw(st.sampled_from([1, 2, 10]))
    return [*own, Stay(begin=begin)] if draw(st.integers(0, 3)) else own


@st.composite
def dynamic_options(draw: st.DrawFn) -> DynamicGrid:
    """Every option, with values that meet the times of small workloads."""
    pick = st.sampled_from
    return DynamicGrid(
        overhead=draw(pick([1.0, 1.25, 1.5, 2.0])),
        delta_t=draw(pick([None, 0, 2, 5, 20])),
        superstep=draw(pick([1, 1, 2, 5, 13])),
        migration_cost=draw(pick([0.0, 0.0, 0.3, 1.0])),
        resume_cost=draw(pick([None, 0.0, 0.5])),
        status_period=draw(pick([0, 0, 1, 5, 13])),
        migration=draw(pick([True, True, False])),
        checkpoint=draw(pick([True, True, False])),
        prefer=draw(pick(["wait", "migrate"])),
        victims=draw(pick(["fitting", "latest"])),
        placement=draw(pick(["tightest", "emptiest"])),
        new_jobs=draw(pick(["any", "any", "first"])),
        priority=draw(pick(["blocked", "strict"])),
        offers=draw(pick(["unclaimed", "all"])),
        release=draw(pick(["suspended", "moved"])),
        most_sites=draw(pick([None, None, 1, 2])),
        heed_leases=draw(st.booleans()),
        policy=draw(pick(["fcfs", "fcfs", "easy"])),
    )


@st.composite
def cases(draw: st.DrawFn, *, alike: bool = True) -> Case:
    """Small grids with churn, rich in coincidences; of clusters that are alike or not."""
    number = draw(st.integers(1, 5))
    processors = [draw(st.sampled_from([1, 2, 3, 4, 6, 8])) for _ in range(number)]
    nodes, speeds = [1] * number, [Fraction(1)] * number
    if not alike:
        nodes = [draw(st.sampled_from([1, 2, 3])) for _ in range(number)]
        processors = [count * node for count, node in zip(processors, nodes, strict=True)]
        if draw(st.booleans()):
            speeds = [draw(st.sampled_from(SPEEDS)) for _ in range(number)]
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    edges = {pair for pair in pairs if draw(st.integers(0, 2))}
    unit = draw(st.sampled_from([1, 2, 5]))
    homes = st.sampled_from([None, None, *range(number)])
    jobs, submit_time = [], 0
    for _ in range(draw(st.integers(0, 14))):
        submit_time += draw(st.sampled_from([0, 0, 1, unit, 4 * unit]))
        estimate = unit * draw(st.integers(1, 8))
        run_time = draw(
            st.sampled_from([estimate, estimate, 0]) | st.integers(0, estimate) | st.integers(1, 20 * unit)
        )
        home = draw(homes)
        most = sum(processors) if home is None else processors[home]
        size = draw(st.sampled_from([1, max(1, most // 2), most]) | st.integers(1, most))
        if draw(st.integers(0, 9)) == 9:
            size = draw(st.integers(1, sum(processors) + 1))
        jobs.append(DynamicJob(submit_time, run_time, estimate, size, home))
    membership = {f"c{i}": draw(stays()) for i in range(number) if draw(st.integers(0, 2)) == 2}
    overrun: Any = draw(st.sampled_from(["doubling", "increments"]))
    return Case(jobs, processors, edges, membership, draw(dynamic_options()), overrun, nodes, speeds)


def oracle(case: Case, local: str = "", **failures: Any) -> Oracle:
    """The naive run of a case; `failures` are further arguments of the oracle."""
    jobs, processors, edges, membership, options, overrun, nodes, speeds = case
    kinds = ("join", "renew", "leave")
    events = [
        MemberEvent(
            int(event["time"]),
            int(event["cluster"]),
            kinds[int(event["kind"])],  # type: ignore[arg-type]
            math.inf if event["lease"] == FOREVER else int(event["lease"]),
        )
        for event in member_events(names_of(len(processors)), membership)
    ]
    resume = options.migration_cost if options.resume_cost is None else options.resume_cost
    given = {name: getattr(options, name) for name in Rules._fields if name != "overrun"}
    given.update(
        overrun=overrun,
        policy=COMPOSED.get(local) or NAIVE_POLICIES[local or options.policy or "easy"],
        overhead=Fraction(round(1000 * options.overhead), 1000),
        migration_cost=Fraction(round(1000 * options.migration_cost), 1000),
        resume_cost=Fraction(round(1000 * resume), 1000),
        delta_t=math.inf if options.delta_t is None else options.delta_t,
        most_sites=options.most_sites or math.inf,
    )
    # Run times are as there where all speeds are the same
    differ = speeds if len(set(speeds)) > 1 else ()
    naive = Oracle(jobs, processors, edges, events, Rules(**given), nodes, differ, **failures)
    naive.run()
    return naive


def as_number(time: int | None) -> int:
    return -1 if time is None else time


COUNTS = ("suspensions", "migrations", "tasks_moved")
INSTANTS = ("start", "finish", "headed", "yielded", "sent")


def of_oracle(naive: Oracle) -> dict[str, Any]:
    return {
        "jobs": [
            (
                state.state,
                *(getattr(state, n) for n in COUNTS),
                *(as_number(getattr(state, n)) for n in INSTANTS),
            )
            for state in naive.states
        ],
        "segments": sorted(tuple(map(int, segment)) for segment in naive.segments),
        "proxies": sorted(naive.proxies),
        "counts": naive.count,
        "left": sorted((i, time, left) for (i, time), left in naive.left_at.items()),
    }


def of_engine(done: DynamicSchedule, naive: Oracle) -> dict[str, Any]:
    parts = ("job", "cluster", "processors", "start", "end", "held", "tasks", "killed")
    proxies = ("job", "cluster", "tasks", "begin", "end")
    left = done.grid.events[
        (done.grid.events["kind"] == dynamic_state.LEAVE) & (done.grid.events["done"] >= 0)
    ]
    return {
        "jobs": [
            (STATES[p["state"]], *(int(p[n]) for n in (*COUNTS, *INSTANTS))) for p in done.grid.progress
        ],
        "segments": sorted(tuple(int(s[n]) for n in parts) for s in done.grid.segments),
        "proxies": sorted(tuple(int(p[n]) for n in proxies) for p in done.grid.proxies),
        "counts": {name: int(done.grid.clusters[name].sum()) for name in naive.count},
        "left": sorted((int(e["cluster"]), int(e["time"]), int(e["done"])) for e in left),
    }


@pytest.mark.parametrize("alike", [True, False])
@given(data=st.data())
@settings(max_examples=120)
def test_engine_equals_the_oracle(alike: bool, data: st.DataObject) -> None:
    case = data.draw(cases(alike=alike))
    local = data.draw(st.sampled_from(["fcfs", "easy"]) | st.sampled_from([*NAIVE_POLICIES, *COMPOSED]))
    naive = oracle(case, local)
    done = schedule(
        *case[:3],
        case.options,
        case.membership,
        case.overrun,
        nodes=case.nodes,
        speeds=case.speeds,
        local=local,
    )
    assert of_engine(done, naive) == of_oracle(naive)
    # What is left over in the end could not be held by the clusters that are left.
    for j in np.flatnonzero(done.grid.progress["state"] == dynamic_state.GRID_QUEUE):
        assert case.jobs[j].processors > done.remaining


# --- worked examples ------------------------------------------------------------------------------


def test_conformance_first_job_runs_if_it_fits() -> None:
    assert times(schedule([job(0, 10, 3, 0), job(1, 5, 1, 0)], [4])) == [(0, 10), (1, 6)]


def test_conformance_first_job_waits_within_delta_t() -> None:
    jobs = [job(0, 10, 4, 0), job(2, 5, 4, 0)]
    done = schedule(jobs, [4, 4], options=replace(SIMPLE, delta_t=8))
    assert times(done) == [(0, 10), (10, 15)]
    assert done.grid.clusters["sent"].sum() == 0


def test_conformance_first_job_goes_to_the_grid_if_it_would_wait_longer() -> None:
    jobs = [job(0, 10, 4, 0), job(2, 5, 4, 0)]
    done = schedule(jobs, [4, 4], options=replace(SIMPLE, delta_t=7))
    assert segments(done, 1) == [(1, 4, 2, 7, 0)]
    assert int(done.grid.progress["sent"][1]) == 2


def test_conformance_waiting_ends_when_it_is_expected_to_last_too_long() -> None:
    """The running job outruns its estimate of 5 s and is expected to run for 10 s then."""
    jobs = [job(0, 30, 4, 0, estimate=5), job(0, 5, 4, 0)]
    done = schedule(jobs, [4, 4], options=replace(SIMPLE, delta_t=6))
    assert (int(done.grid.progress["headed"][1]), int(done.grid.progress["sent"][1])) == (0, 5)


def test_conformance_job_has_its_turn_when_a_slow_cluster_is_taken() -> None:
    """With the slow cluster the first job would outlast the second lease; the next job takes that cluster."""
    membership = {"c1": [Stay(begin=0, end=23, leases=[23])]}
    done = schedule(
        [job(16, 4, 7), job(16, 2, 2)],
        [4, 4, 2],
        {(0, 1), (1, 2), (0, 2)},
        replace(SIMPLE, heed_leases=True),
        membership,
        speeds=[Fraction(1), Fraction(1), Fraction(1, 2)],
    )
    assert times(done) == [(16, 20), (16, 20)]


def test_conformance_local_job_makes_a_grid_job_migrate() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6, 6], {(0, 1)}, replace(SIMPLE, placement="emptiest"))
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (1, 4, 5, 20, 0)]
    assert times(done)[1] == (5, 15)
    assert int(done.grid.progress["migrations"][0]) == 1


def test_conformance_without_neighbour_the_grid_job_is_suspended_and_goes_on() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6], set())
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (0, 4, 15, 30, 0)]


def test_conformance_without_checkpoint_the_work_is_lost() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, checkpoint=False))
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (0, 4, 15, 35, 0)]
    assert int(done.grid.progress["kept_from"][0]) == 5


def test_conformance_without_migration_a_job_is_killed_and_restarted() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    options = replace(SIMPLE, checkpoint=False, migration=False)
    done = schedule(jobs, [6, 5], {(0, 1)}, replace(options, placement="emptiest"))
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (1, 4, 5, 25, 0)]
    assert int(done.grid.progress["suspensions"][0]) == 1


def test_conformance_local_job_waits_for_the_end_of_the_superstep() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, superstep=8))
    assert times(done)[1] == (8, 18)
    assert segments(done, 0) == [(0, 4, 0, 8, 0), (0, 4, 18, 30, 0)]


def test_conformance_order_to_make_place_is_withdrawn_if_it_is_not_needed() -> None:
    """A local job ends at 6, before the superstep of the grid job does."""
    jobs = [job(0, 6, 2, 0), job(0, 20, 4), job(5, 10, 2, 0, estimate=10)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, superstep=8))
    assert times(done)[2] == (6, 16)
    assert segments(done, 1) == [(0, 4, 0, 20, 0)]


@pytest.mark.parametrize(("prefer", "start"), [("wait", 20), ("migrate", 5)])
def test_conformance_what_is_tried_first(prefer: Any, start: int) -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, delta_t=None, prefer=prefer))
    assert times(done)[1][0] == start


@pytest.mark.parametrize(
    ("needed", "victims", "stopped"),
    [
        (2, "fitting", [1]),
        (3, "fitting", [0]),
        (5, "fitting", [0, 1]),
        (2, "latest", [1, 2]),
        (6, "fitting", [0, 1, 2]),
    ],
)
def test_conformance_as_few_grid_jobs_as_possible_make_place(
    needed: int, victims: Any, stopped: list[int]
) -> None:
    """Grid jobs of 3, 2 and 1 processors run on all six of the cluster."""
    jobs = [job(0, 50, 3), job(0, 50, 2), job(0, 50, 1), job(5, 1, needed, 0)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, victims=victims))
    assert list(np.flatnonzero(done.grid.progress["suspensions"])) == stopped


def test_conformance_multi_site_job_is_stretched() -> None:
    done = schedule([job(0, 10, 7)], [4, 4], {(0, 1)}, replace(SIMPLE, overhead=1.25))
    assert segments(done, 0) == [(0, 4, 0, 13, 0), (1, 3, 0, 13, 0)]  # 12.5 s, in whole seconds


def test_conformance_overhead_counts_only_while_several_sites_are_used() -> None:
    """Four seconds of work at half speed on two clusters, the other six at full speed on one."""
    jobs = [job(0, 6, 1, 1), job(0, 10, 4), job(8, 5, 1, 0)]
    done = schedule(jobs, [3, 4], {(0, 1)}, replace(SIMPLE, overhead=2.0, placement="emptiest"))
    assert segments(done, 1) == [(0, 3, 0, 8, 0), (1, 1, 0, 8, 0), (1, 4, 8, 14, 0)]


def test_conformance_no_clique_no_start() -> None:
    """Eight processors are idle on two clusters that are no neighbours: the job waits for one with six."""
    jobs = [job(0, 10, 6, 2), job(1, 5, 6)]
    done = schedule(jobs, [4, 4, 6], set(), SIMPLE)
    assert segments(done, 1) == [(2, 6, 10, 15, 0)]


def test_conformance_target_is_adjacent_to_every_other_site() -> None:
    """c0 and c1 are neighbours; c2 is one of c0 only, c3 of both: tasks of c0 move to c3."""
    jobs = [job(0, 40, 8), job(5, 10, 4, 0)]
    options = replace(SIMPLE, most_sites=2)
    events = {"c2": [Stay(begin=1)], "c3": [Stay(begin=1)]}
    edges = {(0, 1), (0, 2), (0, 3), (1, 3)}
    done = schedule(jobs, [4, 4, 6, 7], edges, options, events)
    assert {s[0] for s in segments(done, 0) if s[2] >= 5} == {1, 3}
    without = schedule(jobs, [4, 4, 6], {(0, 1), (0, 2)}, options, {"c2": [Stay(begin=1)]})
    assert int(without.grid.progress["suspensions"][0]) == 1


def test_conformance_a_site_of_the_job_comes_first() -> None:
    """c2 has more idle processors, but the job runs on c1 already."""
    jobs = [job(0, 40, 8), job(0, 3, 2, 1), job(5, 10, 4, 0)]
    options = replace(SIMPLE, placement="emptiest")
    done = schedule(jobs, [4, 8, 4], {(0, 1), (0, 2), (1, 2)}, options, {"c2": [Stay(begin=1)]})
    assert segments(done, 0) == [(0, 2, 0, 5, 0), (1, 6, 0, 5, 0), (1, 8, 5, 40, 0)]


def test_conformance_migration_costs_time_for_each_task() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    options = replace(SIMPLE, migration_cost=0.5, placement="emptiest")
    done = schedule(jobs, [6, 6], {(0, 1)}, options)
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (1, 4, 5, 7, 1), (1, 4, 7, 22, 0)]
    assert times(done)[1] == (5, 15)


def test_conformance_processors_may_be_free_only_when_tasks_have_moved() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    options = replace(SIMPLE, migration_cost=0.5, placement="emptiest", release="moved")
    done = schedule(jobs, [6, 6], {(0, 1)}, options)
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (0, 4, 5, 7, 1), (1, 4, 5, 7, 1), (1, 4, 7, 22, 0)]
    assert times(done)[1] == (7, 17)


def test_conformance_suspended_job_takes_time_to_resume() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, resume_cost=1.0))
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (0, 4, 15, 19, 1), (0, 4, 19, 34, 0)]


def test_conformance_stopped_jobs_go_before_new_ones() -> None:
    """Job 2 came before job 0 was stopped; both fit when the local job ends at 15, but not together."""
    jobs = [job(0, 20, 4), job(5, 10, 6, 0), job(3, 20, 5)]
    jobs.sort(key=lambda j: j.submit_time)
    done = schedule(jobs, [6], set())
    stopped, new = 0, 1
    assert segments(done, stopped)[1][2] == 15
    assert segments(done, new)[0][2] == 30


@pytest.mark.parametrize(("priority", "start"), [("blocked", 5), ("strict", 15)])
def test_conformance_new_jobs_may_start_while_a_stopped_one_has_no_place(priority: Any, start: int) -> None:
    """Two processors stay idle beside the local job; the stopped job needs four."""
    jobs = [job(0, 20, 4), job(5, 10, 4, 0), job(5, 5, 2)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, priority=priority))
    assert times(done)[2][0] == start


@pytest.mark.parametrize(("new_jobs", "start"), [("any", 0), ("first", 20)])
def test_conformance_any_new_job_is_a_candidate(new_jobs: Any, start: int) -> None:
    jobs = [job(0, 10, 4), job(0, 10, 6), job(0, 10, 2)]
    done = schedule(jobs, [6], set(), replace(SIMPLE, new_jobs=new_jobs))
    assert times(done)[2][0] == start


def test_conformance_reports_are_old_and_processors_are_confirmed() -> None:
    """At 10 all is idle; the local job of 12 is not known at 15, when the grid job asks in vain."""
    jobs = [job(12, 20, 3, 0), job(15, 5, 4)]
    done = schedule(jobs, [4], set(), replace(SIMPLE, status_period=10))
    assert int(done.grid.clusters["refused"][0]) == 1
    assert times(done)[1] == (40, 45)  # the first report after 32


def test_conformance_others_may_be_chosen_after_a_refusal() -> None:
    jobs = [job(12, 20, 3, 0), job(15, 5, 4)]
    done = schedule(jobs, [4, 5], set(), replace(SIMPLE, status_period=10))
    assert segments(done, 1) == [(1, 4, 15, 20, 0)]
    assert (int(done.grid.clusters["asked"].sum()), int(done.grid.clusters["refused"].sum())) == (2, 1)


def test_conformance_cluster_that_waits_offers_nothing() -> None:
    """Until its first local job starts at 10, two processors stay idle; or they do not."""
    jobs = [job(0, 10, 4, 0), job(1, 10, 6, 0), job(2, 5, 2)]
    unclaimed = replace(SIMPLE, delta_t=None)
    assert times(schedule(jobs, [6], set(), unclaimed))[2][0] == 20
    assert times(schedule(jobs, [6], set(), replace(unclaimed, offers="all")))[2][0] == 2


def test_conformance_leaving_cluster_moves_its_grid_jobs() -> None:
    jobs = [job(0, 20, 4), job(0, 20, 2, 0)]
    options = replace(SIMPLE, superstep=8, placement="emptiest")
    done = schedule(jobs, [6, 5], {(0, 1)}, options, {"c0": [Stay(end=9)], "c1": [Stay(begin=1)]})
    assert segments(done, 0) == [(0, 4, 0, 16, 0), (1, 4, 16, 20, 0)]
    assert times(done)[1] == (0, 20)
    leave = done.grid.events[done.grid.events["kind"] == dynamic_state.LEAVE][0]
    assert (int(leave["time"]), int(leave["done"])) == (9, 16)
    assert done.grid.proxies[["job", "cluster", "tasks", "begin", "end"]].tolist() == [(0, 0, 4, 16, 20)]


def test_conformance_leaving_cluster_without_sufficient_neighbours_gives_jobs_back() -> None:
    jobs = [job(0, 20, 4), job(5, 50, 3, 1)]
    events = {"c0": [Stay(end=9), Stay(begin=100)], "c1": [Stay(begin=1)]}
    done = schedule(jobs, [6, 5], {(0, 1)}, SIMPLE, events)
    assert segments(done, 0) == [(0, 4, 0, 9, 0), (1, 4, 55, 66, 0)]


def test_conformance_users_of_a_cluster_that_left_are_served_alone() -> None:
    jobs = [job(0, 10, 4, 0), job(1, 5, 4, 0)]
    done = schedule(jobs, [4, 8], set(), SIMPLE, {"c0": []})
    assert times(done) == [(0, 10), (10, 15)]


def test_conformance_lease_ends_like_a_leave_unless_it_is_renewed() -> None:
    jobs = [job(0, 30, 4)]
    once = schedule(jobs, [4], set(), SIMPLE, {"c0": [leased(0, 10, 1), Stay(begin=50)]})
    assert segments(once, 0) == [(0, 4, 0, 10, 0), (0, 4, 50, 70, 0)]
    twice = schedule(jobs, [4], set(), SIMPLE, {"c0": [leased(0, 10, 2), Stay(begin=50)]})
    assert segments(twice, 0) == [(0, 4, 0, 20, 0), (0, 4, 50, 60, 0)]


@pytest.mark.parametrize(("heed", "start"), [(False, 0), (True, 50)])
def test_conformance_leases_may_be_heeded(heed: bool, start: int) -> None:
    options = replace(SIMPLE, heed_leases=heed)
    done = schedule([job(0, 30, 4)], [4], set(), options, {"c0": [leased(0, 29, 1), Stay(begin=50)]})
    assert times(done)[0][0] == start


def test_conformance_jobs_far_over_their_estimate_are_stopped() -> None:
    jobs = [job(0, 100, 4, 0, estimate=10), job(0, 100, 4, None, estimate=10)]
    done = schedule(jobs, [4, 4], set(), replace(SIMPLE, stop_factor=2.5))
    assert times(done) == [(0, 25), (0, 25)]


def test_conformance_local_job_wider_than_its_cluster_is_a_grid_job() -> None:
    jobs = [job(0, 10, 6, 0)]
    assert segments(schedule(jobs, [4, 4], {(0, 1)}), 0) == [(0, 4, 0, 10, 0), (1, 2, 0, 10, 0)]
    alone = schedule(jobs, [4, 4], {(0, 1)}, SIMPLE, {"c0": []})
    assert alone.grid.progress["state"][0] == dynamic_state.REJECTED


def test_conformance_jobs_that_no_member_could_hold_do_not_block_others() -> None:
    jobs = [job(0, 40, 8), job(30, 5, 2)]
    events = {"c0": [Stay(end=10), Stay(begin=100)]}
    options = replace(SIMPLE, priority="strict")
    done = schedule(jobs, [8, 4], set(), options, events)
    assert segments(done, 0) == [(0, 8, 0, 10, 0), (0, 8, 100, 130, 0)]
    assert times(done)[1] == (30, 35)


def test_conformance_fewest_clusters_of_a_clique() -> None:
    """c1 and c3 suffice together, and are neighbours; c0, c1 and c2 would be three."""
    edges = {(0, 1), (0, 2), (1, 2), (1, 3)}
    done = schedule([job(0, 10, 9)], [3, 4, 3, 5], edges)
    assert segments(done, 0) == [(1, 4, 0, 10, 0), (3, 5, 0, 10, 0)]


# --- whole nodes and speeds -----------------------------------------------------------------------


def test_conformance_local_jobs_run_at_the_speed_of_their_clusters() -> None:
    jobs = [job(0, 10, 1, 0), job(0, 10, 1, 1)]
    assert times(schedule(jobs, [1, 1], speeds=[Fraction(1), Fraction(3, 2)])) == [(0, 10), (0, 7)]


def test_conformance_a_grid_job_is_as_fast_as_its_slowest_cluster() -> None:
    """20 s at speed 1: alone on the fast cluster, and over both with an overhead of 1.25."""
    speeds = [Fraction(1), Fraction(2)]
    assert segments(schedule([job(0, 20, 4)], [2, 4], {(0, 1)}, speeds=speeds), 0) == [(1, 4, 0, 10, 0)]
    done = schedule([job(0, 20, 6)], [2, 4], {(0, 1)}, replace(SIMPLE, overhead=1.25), speeds=speeds)
    assert segments(done, 0) == [(0, 2, 0, 25, 0), (1, 4, 0, 25, 0)]


def test_conformance_a_grid_job_keeps_its_work_when_it_moves_to_a_slower_cluster() -> None:
    """10 of 40 s are done in 5 s at speed 2; the other 30 take 60 s at speed 0.5."""
    jobs = [job(0, 40, 4), job(5, 10, 6, 0)]
    options = replace(SIMPLE, placement="emptiest", superstep=5)
    done = schedule(jobs, [6, 4], {(0, 1)}, options, speeds=[Fraction(2), Fraction(1, 2)])
    assert segments(done, 0) == [(0, 4, 0, 5, 0), (1, 4, 5, 65, 0)]
    assert times(done)[1] == (5, 10)


def test_conformance_parts_take_whole_nodes() -> None:
    """Nodes of 4 and of 3 processors; the local job of one task waits, though 2 processors are idle."""
    jobs = [job(0, 10, 5), job(1, 5, 1, 0)]
    done = schedule(jobs, [4, 3], {(0, 1)}, replace(SIMPLE, delta_t=None), nodes=[4, 3])
    assert segments(done, 0) == [(0, 4, 0, 10, 0), (1, 3, 0, 10, 0)]
    assert sorted(done.grid.segments["tasks"].tolist()) == [1, 1, 4]
    assert times(done)[1] == (10, 15)


def test_conformance_tasks_that_meet_share_nodes() -> None:
    """6 tasks move to where one is alone on a node of 4: the 7 take 8 processors there."""
    jobs = [job(0, 3, 1, 0), job(0, 20, 7), job(4, 5, 2, 1)]
    done = schedule(jobs, [8, 6], {(0, 1)}, nodes=[4, 3])
    assert segments(done, 1) == [(0, 4, 0, 4, 0), (0, 8, 4, 20, 0), (1, 6, 0, 4, 0)]
    assert sorted(done.grid.segments["tasks"].tolist()) == [1, 1, 2, 6, 7]
    assert int(done.grid.progress["tasks_moved"][1]) == 6


# --- invariants -----------------------------------------------------------------------------------


def workload_of(jobs: list[DynamicJob], name: str = "w") -> Workload:
    columns = np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], np.int64)
    columns = columns.reshape(-1, 4)
    return Workload(
        name=name,
        submit_time=columns[:, 0],
        run_time=columns[:, 1],
        requested_time=columns[:, 2],
        requested_processors=columns[:, 3],
    )


def run_of(case: Case, *, seed: int = 0) -> xr.Dataset:
    jobs, processors, edges, membership, options, overrun, nodes, speeds = case
    names = names_of(len(processors))
    clusters = clusters_of(processors, nodes, speeds)
    of_home = [[j for j in jobs if j.home == i] for i in range(len(processors))]
    of_grid = [j for j in jobs if j.home is None]
    workloads = [workload_of(own, f"w{i}") if own else None for i, own in enumerate(of_home)]
    links = graph_of_edges(names, [(names[i], names[j]) for i, j in edges])
    return simulate(
        [*workloads, workload_of(of_grid, "grid") if of_grid else None],
        Platform(clusters, links=links, membership=membership),
        options,
        seed=seed,
        align="none",
        overrun=overrun,
        times="unit",
    )


@given(case=cases().filter(lambda case: bool(case.jobs)), factor=st.sampled_from([None, 1, 1.5]))
@settings(max_examples=50)
def test_every_run_keeps_the_rules(case: Case, factor: float | None) -> None:
    """No oversubscription, local jobs in peace, cliques of members, work conserved."""
    run = run_of(case._replace(options=replace(case.options, stop_factor=factor)))
    verify(run)
    summary = dynamic_measures(run)
    executed = (run["segment_end"] - run["segment_start"]) * run["segment_processors"]
    total = float(executed.where(run["segment_held"] == 0, 0).sum())
    assert float(summary["flow_work"].sum()) == total
    assert float(summary["work_balance_cluster"].sum()) == -float(
        summary["flow_work"].sel(home=GRID_USERS).sum()
    )
    wanted = (run["run_time"] * run["processors"]).where(run["start_time"] >= 0, 0)
    assert (
        float(wanted.sum() + summary["lost_work_home"].sum() + summary["overhead_work_home"].sum()) == total
    )
    assert float(summary["jobs_home"].sum()) == int((run["outcome"].isin([1, 2])).sum())


# At speed 2 the job ends after 3 seconds as it would be stopped; at speed 1 it would be stopped after 4 of 5
ENDS_AS_STOPPED = Case(
    [DynamicJob(submit_time=0, run_time=5, estimate=3, processors=1, home=0)],
    [1, 1],
    set(),
    {},
    DynamicGrid(),
    "doubling",
    [1, 1],
    [Fraction(2), Fraction(1)],
)


@tried(case=ENDS_AS_STOPPED, factor=1.5)
@given(case=cases(alike=False).filter(lambda case: bool(case.jobs)), factor=st.sampled_from([None, 1, 1.5]))
@settings(max_examples=50)
def test_every_run_on_unlike_clusters_keeps_the_rules(case: Case, factor: float | None) -> None:
    run = run_of(case._replace(options=replace(case.options, stop_factor=factor)))
    verify(run)
    summary = dynamic_measures(run)
    seconds = (run["segment_end"] - run["segment_start"]).where(run["segment_held"] == 0, 0)
    assert float(summary["flow_work"].sum()) == float((seconds * run["segment_processors"]).sum())
    wanted = (run["run_time"] * run["processors"]).where(run["start_time"] >= 0, 0).sum()
    tasks = run["segment_tasks" if "segment_tasks" in run else "segment_processors"]
    assert float(wanted + summary["lost_work_home"].sum() + summary["overhead_work_home"].sum()) == float(
        (seconds * tasks).sum()
    )
    assert (run["extra_work"] >= run["lost_work"]).all()
    assert ("work_time" in run) == (len(set(case.speeds)) > 1)
    units = np.array(case.nodes)[run["segment_cluster"].to_numpy()]
    assert (run["segment_processors"] == -(-tasks // units) * units).all()
    assert ("segment_tasks" in run) == (max(case.nodes) > 1)


@given(case=cases(alike=False).filter(lambda case: any(j.home is not None for j in case.jobs)))
@settings(max_examples=30)
def test_isolated_unlike_clusters_are_on_their_own(case: Case) -> None:
    own = [j for j in case.jobs if j.home is not None and j.processors <= case.processors[j.home]]
    if not own:
        return
    options = replace(case.options, delta_t=None)
    run = run_of(case._replace(jobs=own, edges=set(), membership={}, options=options))
    for i, cluster in enumerate(clusters_of(case.processors, case.nodes, case.speeds)):
        local = [j for j in own if j.home == i]
        if local:
            alone = simulate(workload_of(local), cluster, options.policy, overrun=case.overrun, times="unit")
            mine = run["home_cluster"] == i
            for name in ("start_time", "end_time", "run_time", "estimate"):
                np.testing.assert_array_equal(run[name].values[mine], alone[name].values)


@given(case=cases(alike=False).filter(lambda case: bool(case.jobs)), speed=st.sampled_from(SPEEDS))
@settings(max_examples=30)
def test_speeds_that_are_the_same_shorten_jobs_only(case: Case, speed: Fraction) -> None:
    """As on clusters of speed 1 with shorter or longer jobs."""
    one = run_of(case._replace(speeds=[speed] * len(case.processors)))
    shorter = [
        j._replace(
            run_time=math.ceil(j.run_time / float(speed)), estimate=math.ceil(j.estimate / float(speed))
        )
        for j in case.jobs
    ]
    other = run_of(case._replace(jobs=shorter, speeds=[]))
    assert one.drop_vars("cluster_speed").equals(other.drop_vars("cluster_speed"))


@given(case=cases().filter(lambda case: bool(case.jobs)))
@settings(max_examples=30)
def test_work_is_conserved_with_checkpoints(case: Case) -> None:
    """Without overhead, jobs that end are executed for exactly their run times."""
    run = run_of(case._replace(options=replace(case.options, checkpoint=True, overhead=1.0)))
    ended = run["outcome"].isin([1, 2])
    assert int(run["extra_work"].where(ended, 0).sum()) == 0
    assert int(run["lost_work"].sum()) == 0


@given(case=cases().filter(lambda case: bool(case.jobs)))
@settings(max_examples=30)
def test_local_jobs_wait_for_one_superstep_at_most(case: Case) -> None:
    """Where moving costs nothing, a local job for which grid jobs make place starts within a superstep."""
    options = replace(case.options, migration_cost=0.0, resume_cost=0.0)
    run = run_of(case._replace(membership={}, options=options))
    yielded = (run["yield_time"] >= 0) & (run["sent_time"] < 0)
    wait = (run["start_time"] - run["yield_time"]).where(yielded, 0)
    assert int(wait.max()) <= options.superstep


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@given(case=cases().filter(lambda case: any(j.home is not None for j in case.jobs)))
@settings(max_examples=30)
def test_isolated_clusters_are_on_their_own(policy: Any, case: Case) -> None:
    """With an infinite delta_t and no grid jobs, local schedules are those of each cluster alone."""
    jobs, processors, _, _, options, overrun, *_ = case
    own = [j for j in jobs if j.home is not None and j.processors <= processors[j.home]]
    if not own:
        return
    options = replace(options, delta_t=None, policy=policy)
    run = run_of(Case(own, processors, set(), {}, options, overrun))
    for i, count in enumerate(processors):
        local = [j for j in own if j.home == i]
        if local:
            alone = simulate(workload_of(local), Cluster(processors=count), policy, overrun=overrun)
            mine = run["home_cluster"] == i
            np.testing.assert_array_equal(run["start_time"].values[mine], alone["start_time"].values)


@given(case=cases().filter(lambda case: bool(case.jobs)))
@settings(max_examples=30)
def test_leaving_cluster_runs_nothing_of_the_grid_after_it_left(case: Case) -> None:
    run = run_of(case)
    grid = run["sent_time"].values[run["segment_job"].values] >= 0
    for kind, cluster, time, done in zip(
        run["event_kind"].values,
        run["event_cluster"].values,
        run["event_time"].values,
        run["event_done"].values,
        strict=True,
    ):
        joins = run["event_time"].values[
            (run["event_kind"].values == 0) & (run["event_cluster"].values == cluster)
        ]
        again = joins[joins > time].min(initial=FOREVER)
        if kind == dynamic_state.LEAVE and done >= 0:
            there = grid & (run["segment_cluster"].values == cluster) & (run["segment_start"].values < again)
            assert (run["segment_end"].values[there] <= done).all()


def test_parameters_may_be_numbers_of_numpy() -> None:
    case = Case([job(0, 10, 6), job(0, 3, 1, 1)], [4, 4], {(0, 1)}, {}, SIMPLE)
    plain: dict[str, Any] = {"superstep": 5, "delta_t": 9, "overhead": 1.5}
    kinds = {"superstep": np.int64, "delta_t": np.int32, "overhead": np.float64}
    numpy = {name: kind(plain[name]) for name, kind in kinds.items()}
    runs = [run_of(case._replace(options=replace(SIMPLE, **given_))) for given_ in (plain, numpy)]
    verify(runs[1])
    xr.testing.assert_identical(*runs)


def test_runs_are_the_same_each_time_and_survive_a_file(tmp_path: Any) -> None:
    case = crowded()
    first, second = run_of(case), run_of(case)
    xr.testing.assert_identical(first, second)
    results.write(first, tmp_path / "run.nc")
    xr.testing.assert_equal(results.read(tmp_path / "run.nc"), first)


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
    membership = draw_membership(names_of(4), 20_000, mean_stay=900, mean_absence=60, seed=1)
    options = DynamicGrid(delta_t=20, status_period=30, migration_cost=1.0, policy="fcfs")
    return Case(jobs, processors, edges, membership, options)


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
    done = schedule([job(0, 1500, 4), *visits], [4, 4], {(0, 1)})
    assert int(done.grid.progress["migrations"][0]) > 100
    assert times(done)[0] == (0, 1500)


# --- the run dataset ------------------------------------------------------------------------------


def example() -> xr.Dataset:
    """A job over two clusters loses its work when c0 leaves; a local job is sent to the grid."""
    options = replace(SIMPLE, overhead=2.0, checkpoint=False, superstep=5)
    jobs = [job(0, 10, 6), job(0, 3, 1, 1), job(2, 50, 4, 1), job(3, 1, 99, 0)]
    return run_of(Case(jobs, [4, 4], {(0, 1)}, {"c0": [Stay(end=5), Stay(begin=30)]}, options))


def test_dataset_tells_what_happened() -> None:
    run = example()
    verify(run)
    assert {OUTCOMES[k] for k in run["outcome"].values} == {"finished", "rejected"}
    first = run.isel(job=int(np.argmax(run["processors"].values == 6)))
    assert int(first["suspensions"]) == 1
    assert int(first["lost_work"]) == 30
    assert int(first["kept_from"]) == 5
    assert int(first["extra_work"]) == 30 + 60
    assert int(first["multi_site_time"]) == 25
    assert run.attrs["messages"] == sum(run.attrs[name] for name in MESSAGES[1:-1])
    assert run.attrs["jobs_rejected"] == 1
    for name in run.variables:
        if name not in ("job_number", "cluster", "neighbour"):
            assert run[name].attrs["long_name"], name


def test_stopped_and_stranded_jobs_are_counted() -> None:
    jobs = [job(0, 100, 2, None, estimate=10), job(0, 40, 4), job(20, 5, 3)]
    options = replace(SIMPLE, stop_factor=2.0)
    run = run_of(Case(jobs, [2, 4], set(), {"c1": [Stay(end=10)]}, options))
    assert list(run["outcome"].values) == [STOPPED, STRANDED, STRANDED]
    assert (run.attrs["jobs_stopped"], run.attrs["jobs_stranded"]) == (1, 2)
    assert list(run["end_time"].values) == [20, 10, -1]
    verify(run)


def test_grid_share_draws_jobs_of_the_sites() -> None:
    jobs = [job(k, 5, 1, k % 2) for k in range(200)]
    options = replace(SIMPLE, delta_t=None)
    counts = []
    drawn = []
    for share in (0.0, 0.3, 0.6, 1.0):
        run = run_of(Case(jobs, [4, 4], set(), {}, replace(options, grid_share=share)), seed=3)
        drawn.append(set(np.flatnonzero(run["sent_time"].values >= 0)))
        counts.append(len(drawn[-1]))
        assert set(run["home_cluster"].values) == {0, 1}
    assert counts[0] == 0
    assert counts[3] == 200
    assert 30 < counts[1] < counts[2] < 170
    assert drawn[1] < drawn[2]


def test_measures_have_every_variable() -> None:
    measures = dynamic_measures(example())
    of_dimensions = {
        f"{name}_{dims[0]}" if len(dims) == 1 else name for name, (dims, *_) in VARIABLES.items()
    }
    assert set(measures.data_vars) > {*of_dimensions, *MESSAGES, *TOTALS} - {"cluster_processors"}
    assert float(measures["lost_work_home"].sel(home=GRID_USERS)) == 30
    assert float(measures["overhead_work_home"].sel(home=GRID_USERS)) == 60
    assert float(measures["leaves_cluster"].sel(cluster="c0")) == 1
    assert float(measures["leave_time_max_cluster"].sel(cluster="c0")) == 0
    assert float(measures["jobs_rejected_home"].sel(home="c0")) == 1
    assert float(measures["makespan"]) == float(example()["end_time"].max())
    whole = summarise(example())
    assert set(whole.data_vars) > set(measures.data_vars) - {"cluster_processors"}
    for name in ("suspensions", "lost_work"):
        assert float(whole[name]) == float(measures[name]) == float(whole[f"{name}_home"].sum())
    assert float(whole["jobs_unfinished"]) == float(measures["jobs_rejected"] + measures["jobs_stranded"])


def test_yield_waits_are_those_of_the_jobs() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0)]
    summary = dynamic_measures(run_of(Case(jobs, [6], set(), {}, replace(SIMPLE, superstep=8))))
    assert float(summary["yield_wait_mean_cluster"][0]) == 3
    assert float(summary["yield_wait_max_cluster"][0]) == 3
    assert float(summary["jobs_yielded_to_cluster"][0]) == 1


def test_a_summary_needs_a_run_of_a_dynamic_grid() -> None:
    one = run_of(Case([job(0, 5, 1, 0)], [4], set(), {}, SIMPLE))
    with pytest.raises(ConfigurationError, match="outcome"):
        dynamic_measures(one.drop_vars("outcome"))


# --- verifiers ------------------------------------------------------------------------------------


def changed(run: xr.Dataset, name: str, index: int, value: int) -> xr.Dataset:
    values = run[name].values.copy()
    values[index] = value
    return run.assign({name: (run[name].dims, values, run[name].attrs)})


def test_verifiers_find_what_is_wrong() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 6, 0), job(30, 10, 8)]
    options = replace(SIMPLE, placement="emptiest", migration_cost=0.5, superstep=5)
    run = run_of(Case(jobs, [6, 6], {(0, 1)}, {"c1": [Stay(begin=0, end=60)]}, options))
    verify(run)
    held = int(np.argmax(run["segment_held"].values))
    assert "processor-seconds instead" in violations(changed(run, "segment_held", held, 0))[0]
    local = int(np.argmax(run["sent_time"].values[run["segment_job"].values] < 0))
    moved = changed(run, "segment_cluster", local, 1)
    assert any("local job" in line for line in dynamic_violations(moved))
    apart = run.assign(adjacent=(run["adjacent"].dims, np.zeros((2, 2), np.int8)))
    assert any("no neighbours" in line for line in dynamic_violations(apart))
    leave = int(np.argmax(run["event_kind"].values == dynamic_state.LEAVE))
    early = changed(changed(run, "event_time", leave, 1), "event_done", leave, 2)
    assert any("not in the grid" in line for line in dynamic_violations(early))
    longer = changed(run, "run_time", 0, 21)
    assert any("does not do the work" in line for line in dynamic_violations(longer))
    cut = run.assign_attrs(parameter_superstep=4)
    assert any("within a superstep" in line for line in dynamic_violations(cut))
    with pytest.raises(ScheduleError, match="superstep"):
        verify(cut)


def test_broken_speeds_are_found() -> None:
    jobs = [job(0, 20, 6), job(0, 5, 1, 0)]
    run = run_of(Case(jobs, [4, 4], {(0, 1)}, {}, SIMPLE, nodes=[1, 2], speeds=[Fraction(1), Fraction(2)]))
    verify(run)
    grid = int(np.argmax(run["processors"].values == 6))
    assert run["work_time"].values.tolist() == run["run_time"].values.tolist()
    more = changed(run, "work_time", grid, 21)
    assert any("does not do the work" in line for line in dynamic_violations(more))
    more = changed(run, "work_time", 1 - grid, 6)
    assert any("at the speed of its cluster" in line for line in dynamic_violations(more))
    alike = run.assign(cluster_speed=run["cluster_speed"] * 2)
    assert any("does not do the work" in line for line in dynamic_violations(alike))


def test_verifier_counts_extra_work() -> None:
    run = example()
    verify(run)
    assert "instead of" in violations(run.drop_vars("extra_work"))[0]
    assert "more)" in violations(changed(run, "extra_work", 0, 7))[0]


# --- graphs and members ---------------------------------------------------------------------------


def test_graphs_have_the_edges_that_they_should() -> None:
    names = names_of(6)
    assert grid_graph(names, "isolated").number_of_edges() == 0
    assert sorted(dict(grid_graph(names, "ring").degree).values()) == [2] * 6
    assert grid_graph(names, "complete").number_of_edges() == 15
    assert grid_graph(names[:1], "ring").number_of_edges() == 0
    assert grid_graph(names[:2], "ring").number_of_edges() == 1
    few = grid_graph(names, "random", mean_degree=2, seed=4)
    more = grid_graph(names, "random", mean_degree=3, seed=4)
    assert (few.number_of_edges(), more.number_of_edges()) == (6, 9)
    assert {frozenset(edge) for edge in few.edges()} < {frozenset(edge) for edge in more.edges()}


@given(number=st.integers(1, 7), data=st.data())
@settings(max_examples=40)
def test_cliques_are_the_maximal_ones(number: int, data: st.DataObject) -> None:
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    edges = {pair for pair in pairs if data.draw(st.booleans())}
    names = names_of(number)
    adjacent = adjacency(graph_of_edges(names, [(names[i], names[j]) for i, j in edges]), names)
    found = [tuple(map(int, clique)) for clique in maximal_cliques(adjacent).each()]
    assert found == Oracle([], [1] * number, edges, [], Rules()).cliques
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
    run = run_of(Case([job(0, 5, 1)], [1] * 12, {(i, j) for i, j in np.argwhere(adjacent)}, {}, SIMPLE))
    assert (run.attrs["cliques"], run.attrs["cliques_cut_off"]) == (64, 0)


def test_hundred_clusters() -> None:
    names = names_of(100)
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
    assert events[["time", "cluster", "kind"]].tolist() == [
        (0, 0, 0),
        (0, 1, 0),
        (10, 1, 1),
        (20, 1, 2),
        (30, 1, 0),
    ]
    assert events["lease"].tolist() == [FOREVER, 10, 20, 20, FOREVER]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"overhead": 0.9}, "overhead"),
        ({"overhead": 1.2345}, "0.001"),
        ({"overhead": math.nan}, "overhead"),
        ({"migration_cost": -1.0}, "migration_cost"),
        ({"resume_cost": -0.1}, "resume_cost"),
        ({"delta_t": -1}, "delta_t"),
        ({"delta_t": 2.5}, "delta_t"),
        ({"superstep": 0}, "superstep"),
        ({"superstep": True}, "superstep"),
        ({"status_period": -1}, "status_period"),
        ({"most_sites": 0}, "most_sites"),
        ({"most_cliques": 0}, "most_cliques"),
        ({"stop_factor": 0.5}, "stop_factor"),
        ({"prefer": "run"}, "prefer"),
        ({"policy": "sfj"}, "policy"),
        ({"grid_share": 1.5}, "grid_share"),
        ({"grid_share": -0.1}, "grid_share"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        DynamicGrid(**options)


@pytest.mark.parametrize(
    ("stay", "what"),
    [
        ({"begin": 10, "end": 10}, "ends at 10 s, but begins at 10 s"),
        ({"begin": -1}, "begin"),
        ({"begin": 5, "end": 8, "leases": [4, 8]}, "lease ends at 4 s, but begins at 5 s"),
        ({"begin": 0, "end": 8, "leases": [4]}, "make them equal"),
        ({"begin": 0.5}, "begin"),
    ],
)
def test_wrong_stays_are_refused(stay: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        Stay(**stay)


def test_wrong_members_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown cluster 'x'"):
        member_events(["a"], {"x": []})
    with pytest.raises(ConfigurationError, match="has not left"):
        member_events(["a"], {"a": [Stay(end=10), Stay(begin=10)]})
    for wrong in ({"mean_stay": 0.0}, {"mean_absence": -1.0}, {"lease": 0}, {"horizon": -1}):
        given_values = {"horizon": 10, "mean_stay": 1.0, "mean_absence": 1.0, **wrong}
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            draw_membership(["a"], given_values.pop("horizon"), **given_values)  # type: ignore[arg-type]


def test_wrong_graphs_are_refused() -> None:
    names = ["a", "b"]
    with pytest.raises(ConfigurationError, match="unknown cluster 'x'"):
        graph_of_edges(names, [("a", "x")])
    with pytest.raises(ConfigurationError, match="two different"):
        graph_of_edges(names, [("a", "a")])
    with pytest.raises(ConfigurationError, match="unknown cluster 'x'"):
        adjacency(nx.path_graph(["a", "b", "x"]), names)
    with pytest.raises(ConfigurationError, match="'b' is missing"):
        adjacency(nx.path_graph(["a"]), names)
    with pytest.raises(ConfigurationError, match="undirected"):
        adjacency(nx.DiGraph([("a", "b")]), names)
    with pytest.raises(ConfigurationError, match="itself"):
        adjacency(nx.Graph([("a", "b"), ("a", "a")]), names)
    with pytest.raises(ConfigurationError, match="star"):
        grid_graph(names, "star")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="mean_degree"):
        grid_graph(names, "random")
    with pytest.raises(ConfigurationError, match="mean_degree"):
        grid_graph(names, "random", mean_degree=2)
    with pytest.raises(ConfigurationError, match="name of its own"):
        grid_graph(["a", "a"], "ring")


def test_wrong_platforms_are_refused() -> None:
    work = workload_of([job(0, 5, 1, 0)])
    pair = [Cluster(name="a", processors=4), Cluster(name="b", processors=4)]
    grid = DynamicGrid()
    with pytest.raises(ConfigurationError, match="1 workloads for 2 clusters"):
        simulate([work], pair, grid)
    with pytest.raises(ConfigurationError, match="4 workloads for 2 clusters"):
        simulate([work] * 4, pair, grid)
    long = replace(work, run_time=np.array([2**39]))
    with pytest.raises(ConfigurationError, match="too long for an overhead of 1e\\+06"):
        simulate([long, None], [pair[0], replace(pair[1], speed=2.0)], replace(grid, overhead=1e6))
    with pytest.raises(ConfigurationError, match="added and removed"):
        simulate([work, None], Platform(pair, changes=[ResourceChange(5, "a", 2)]), grid)
    with pytest.raises(ConfigurationError, match="name of its own"):
        simulate([work, None], [pair[0], pair[0]], grid)
    with pytest.raises(ConfigurationError, match="'b' is missing"):
        simulate([work, None], Platform(pair, links=graph_of_edges(["a"], [])), grid)
    with pytest.raises(ConfigurationError, match="unknown cluster 'x'"):
        simulate([work, None], Platform(pair, membership={"x": []}), grid)
    with pytest.raises(ConfigurationError, match="no workloads"):
        simulate([None, None], pair, grid)
    with pytest.raises(WorkloadError, match="no jobs"):
        simulate([workload_of([]), None], pair, grid)
    jobs, graph = np.zeros(1, JOB), grid_graph(["a", "b"], "ring")
    with pytest.raises(ConfigurationError, match="home"):
        schedule_dynamic_grid(jobs, np.array([7]), pair, graph, grid)
    with pytest.raises(ConfigurationError, match="name of its own"):
        schedule_dynamic_grid(jobs, np.array([0]), [pair[0], pair[0]], graph_of_edges(["a"], []), grid)


def test_local_policy_is_that_of_the_clusters_unless_it_is_given() -> None:
    """The third job fits beside the first, which EASY lets it and first come, first served does not."""
    work = workload_of([job(0, 10, 3, 0), job(1, 10, 4, 0), job(2, 5, 1, 0)])
    for policy, start in (("fcfs", 20), ("easy", 2)):
        cluster = Cluster(name="a", processors=4, policy=policy)
        for given_policy in (None, policy):
            other = replace(cluster, policy="sjf") if given_policy else cluster
            grid = DynamicGrid(delta_t=None, policy=given_policy)
            run = simulate([work], other, grid)
            assert run["start_time"].values.tolist() == [0, 10, start]


def test_job_larger_than_every_clique_is_rejected_and_counted() -> None:
    jobs = [job(0, 5, 9), job(0, 5, 8), job(0, 5, 12, 0)]
    run = run_of(Case(jobs, [4, 4, 4], {(0, 1)}, {}, SIMPLE))
    rejected = run["processors"].values[run["outcome"].values == REJECTED]
    assert sorted(rejected) == [9, 12]
    assert run.attrs["jobs_rejected"] == 2
    verify(run)
