"""Small dynamic grids with churn, failures and lifecycles of jobs, for the engine and for the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import LocalPolicy, OverrunName, named_policy
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.graphs import graph_of_edges
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Stay, member_events
from gridsched.systems.dynamic_grid.planning import GRID, WORK, DynamicSchedule, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import DEPENDENCY
from tests.oracles.dynamic_grid import DynamicJob, MemberEvent, Oracle
from tests.oracles.local import POLICIES as NAIVE_POLICIES
from tests.oracles.local import Policy
from tests.oracles.users import NEVER, Submission
from tests.support.engine import KINDS, lifecycles
from tests.support.nodes import workload_of
from tests.support.strategies import lives as lives_of
from tests.support.strategies import node_events

STATES = ("ahead", "local queue", "local run", "grid queue", "grid run", "finished", "rejected", "gone")
SPEEDS = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(13, 10), Fraction(7, 10), Fraction(5, 8)]
SIMPLE = DynamicGrid(overhead=1.0, delta_t=0, superstep=1, migration_cost=0.0, status_period=0, policy="fcfs")
"""A grid without costs, in which nobody waits for reports."""


COMPOSED = {
    "sjf, first fit, smallest": Policy("shortest", "first_fit", 1, "smallest"),
    "smallest, easy(2)": Policy("smallest", "easy", 2),
    "area, none": Policy("smallest_area", "none"),
    "lxf, conservative": Policy("lxf", "conservative"),
}
"""Local policies without a name."""


class Case(NamedTuple):
    """A grid with its jobs; edges are pairs of indices of clusters.

    The local policy is that of the options unless there is another one; lifecycles are as the oracle has
    them, if there are any.
    """

    jobs: list[DynamicJob]
    clusters: list[Cluster]
    edges: set[tuple[int, int]]
    membership: dict[str, list[Stay]]
    options: DynamicGrid
    overrun: OverrunName = "doubling"
    local: str = ""
    lifecycles: Sequence[Submission] = ()

    @property
    def names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.clusters]

    @property
    def links(self) -> Any:
        """Neighbours by name."""
        return graph_of_edges(self.names, [(self.names[i], self.names[j]) for i, j in self.edges])

    @property
    def policy(self) -> str:
        """The local policy of all clusters."""
        return self.local or self.options.policy or "easy"


def job(
    submit: int, run: int, processors: int, home: int | None = None, estimate: int | None = None
) -> DynamicJob:
    """A job; its estimate is exact unless there is one."""
    return DynamicJob(submit, run, max(run if estimate is None else estimate, 1), processors, home)


def grid(
    jobs: list[DynamicJob],
    processors: Sequence[int],
    edges: Sequence[tuple[int, int]] = (),
    *,
    members: dict[str, list[Stay]] | None = None,
    nodes: Sequence[int] = (),
    speeds: Sequence[Fraction] = (),
    lives: Sequence[Submission] = (),
    **options: Any,
) -> Case:
    """A case whose options are those of `SIMPLE` with changes."""
    clusters = clusters_of(processors, nodes, speeds)
    return Case(jobs, clusters, set(edges), members or {}, replace(SIMPLE, **options), lifecycles=lives)


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


def leased(begin: int, length: int, leases: int) -> Stay:
    """Stay of a cluster with so many leases, one after the other."""
    ends = [begin + length * (k + 1) for k in range(leases)]
    return Stay(begin=begin, end=ends[-1], leases=ends)


# --- engine and oracle ----------------------------------------------------------------------------


def schedule(case: Case) -> DynamicSchedule:
    """What the engine makes of a case."""
    lives = None
    if case.lifecycles:
        jobs = zip(case.jobs, case.lifecycles, strict=True)
        lives = lifecycles([life._replace(submit=job.submit_time) for job, life in jobs], ())
    local = LocalPolicy(**COMPOSED[case.policy]._asdict()) if case.policy in COMPOSED else case.policy
    return schedule_dynamic_grid(
        np.array([record_of(case, j) for j in case.jobs], WORK),
        np.array([GRID if j.home is None else j.home for j in case.jobs], np.int64),
        case.clusters,
        case.links,
        case.options,
        case.membership,
        policies=[named_policy(local)] * len(case.clusters),
        overrun=case.overrun,
        lifecycles=lives,
    )


def record_of(case: Case, job: DynamicJob) -> tuple[int, ...]:
    """A job as the engine takes it."""
    run, estimate = job.run_time, job.estimate
    there = job.there or (run, estimate)
    if job.home is not None and job.there is None and len({each.speed for each in case.clusters}) > 1:
        speed = case.clusters[job.home].speed
        there = math.ceil(run / speed), math.ceil(estimate / speed)
    return job.submit_time, run, estimate, *there, job.processors


def as_given(job: DynamicJob) -> DynamicJob:
    """A job with the times that it has at home, if they are given so."""
    run_time, estimate = job.there or (job.run_time, job.estimate)
    return job._replace(run_time=run_time, estimate=estimate)


def oracle(case: Case) -> Oracle:
    """The naive run of a case."""
    kinds = ("join", "renew", "leave")
    events = [
        MemberEvent(
            int(event["time"]),
            int(event["cluster"]),
            kinds[int(event["kind"])],  # type: ignore[arg-type]
            math.inf if event["lease"] == FOREVER else int(event["lease"]),
        )
        for event in member_events(case.names, case.membership)
    ]
    policy = COMPOSED.get(case.policy) or NAIVE_POLICIES[case.policy]
    naive = Oracle(
        case.jobs, case.clusters, case.edges, events, case.options, policy, case.overrun, case.lifecycles
    )
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
        "fate": [naive.users.fate.get(j, "completed") for j in range(len(naive.states))],
        "killed": [state.killed for state in naive.states],
        "eligible": [naive.users.eligible(j) for j, state in enumerate(naive.states) if state.entry],
    }


def of_engine(done: DynamicSchedule, naive: Oracle) -> dict[str, Any]:
    parts = ("job", "cluster", "processors", "start", "end", "held", "tasks", "killed")
    proxies = ("job", "cluster", "tasks", "begin", "end")
    lives: NDArray[Any] = done.grid.lifecycles.jobs
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
        "fate": [Fate(fate).name.lower().replace("_", " ") for fate in lives["fate"].tolist()],
        "killed": lives["killed"].tolist(),
        "eligible": [int(lives["eligible"][j]) for j, state in enumerate(naive.states) if state.entry],
    }


# --- strategies -----------------------------------------------------------------------------------


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
def cases(
    draw: st.DrawFn,
    *,
    equal_clusters: bool | None = None,
    fails: bool = False,
    lives: bool = False,
    least: int = 0,
) -> Case:
    """Small grids with churn, rich in coincidences.

    Clusters are equal or not; nodes may fail; users may give up, and jobs wait for others.
    """
    equal_clusters = draw(st.booleans()) if equal_clusters is None else equal_clusters
    number = draw(st.integers(1, 5))
    processors = [draw(st.sampled_from([1, 2, 3, 4, 6, 8])) for _ in range(number)]
    nodes, speeds = [1] * number, [Fraction(1)] * number
    if not equal_clusters:
        nodes = [draw(st.sampled_from([1, 2, 3])) for _ in range(number)]
        processors = [count * node for count, node in zip(processors, nodes, strict=True)]
        if draw(st.booleans()):
            speeds = [draw(st.sampled_from(SPEEDS)) for _ in range(number)]
    times_at_home = len(set(speeds)) > 1 and draw(st.booleans())
    clusters = clusters_of(processors, nodes, speeds)
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    edges = {pair for pair in pairs if draw(st.integers(0, 2))}
    unit = draw(st.sampled_from([1, 2, 5]))
    homes = st.sampled_from([None, None, *range(number)])
    jobs, submit_time = [], 0
    for _ in range(draw(st.integers(least, 14))):
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
        job = DynamicJob(submit_time, run_time, estimate, size, home)
        if times_at_home and home is not None:
            speed = float(speeds[home])
            at_unit = math.ceil(run_time * speed), math.ceil(estimate * speed)
            job = job._replace(run_time=at_unit[0], estimate=at_unit[1], there=(run_time, estimate))
        jobs.append(job)
    membership = {f"c{i}": draw(stays()) for i in range(number) if draw(st.integers(0, 2)) == 2}
    return Case(
        jobs,
        [draw(failing(cluster)) for cluster in clusters] if fails else clusters,
        edges,
        membership,
        draw(dynamic_options()),
        draw(st.sampled_from(["doubling", "increments"])),
        draw(st.sampled_from(["fcfs", "easy"]) | st.sampled_from([*NAIVE_POLICIES, *COMPOSED])),
        draw(lives_of([job.submit_time for job in jobs])) if lives else (),
    )


@st.composite
def failing(draw: st.DrawFn, cluster: Cluster) -> Cluster:
    """A cluster whose nodes may fail."""
    per_node = cluster.processors_per_node
    if not cluster.node_exclusive:
        per_node = draw(st.sampled_from([k for k in (1, 2, 3) if cluster.processors % k == 0]))
    return replace(
        cluster,
        processors_per_node=per_node,
        events=draw(node_events(cluster.processors // per_node)) if draw(st.integers(0, 3)) else [],
        requeue=draw(st.sampled_from(["place", "place", "end", "lost"])),
        checkpoint_interval=draw(st.sampled_from([0, 0, 1, 3, 7])),
        checkpoint_cost=draw(st.sampled_from([0, 1, 2])),
    )


# --- runs -----------------------------------------------------------------------------------------


def columns_of(lives: Sequence[Submission], own: Sequence[int]) -> dict[str, Any]:
    """Columns of some of the jobs that say what they live through; dependencies are those among them."""
    needs = [
        (own.index(j), own.index(on), int(KINDS[kind]), delay)
        for j in own
        for on, kind, delay in lives[j].after
        if on in own
    ]
    table = np.zeros(len(needs), DEPENDENCY)
    for name, values in zip(("job", "on", "kind", "delay"), zip(*needs, strict=True), strict=False):
        table[name] = values
    return {
        "status": np.array([0 if lives[j].failed else 1 for j in own]),
        "gives_up_time": np.array([-1 if lives[j].gives_up == NEVER else lives[j].gives_up for j in own]),
        "dependencies": table,
    }


def run_of(case: Case, *, seed: int = 0) -> xr.Dataset:
    """The run of a case with all that a run says."""
    homes = [*range(len(case.clusters)), None]
    workloads: list[Workload | None] = []
    for home in homes:
        own = [j for j, each in enumerate(case.jobs) if each.home == home]
        lives = columns_of(case.lifecycles, own) if case.lifecycles else {}
        workloads.append(workload_of([as_given(case.jobs[j]) for j in own], **lives) if own else None)
    platform = Platform(case.clusters, links=case.links, membership=case.membership)
    times = "home" if any(job.there for job in case.jobs) else "unit"
    options = {"seed": seed, "align": "none", "overrun": case.overrun, "times": times}
    return simulate(workloads, platform, case.options, **options)  # type: ignore[arg-type]


def changed(run: xr.Dataset, name: str, index: int, value: int) -> xr.Dataset:
    """The run with another value at a place."""
    values = run[name].values.copy()
    values[index] = value
    return run.assign({name: (run[name].dims, values, run[name].attrs)})


def where(run: xr.Dataset, name: str, condition: Any, value: int) -> xr.Dataset:
    """The run with another value at the first place where a condition holds."""
    return changed(run, name, int(np.argmax(np.asarray(condition))), value)
