"""The conformance cases under the plain simulators, and as they are stored."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from gridsched.conformance.answers import NEEDED
from gridsched.conformance.cases import GRID, NONE, Case, CaseSchedule, Part, normalised, read_case
from gridsched.conformance.running import calendar_options, calendar_tree
from gridsched.io import atomic_write
from gridsched.platform import Cluster
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from tests.oracles import calendars as naive_calendar
from tests.oracles import nodes as on_nodes
from tests.oracles.dynamic_grid import DynamicJob, MemberEvent, Oracle
from tests.oracles.grid import GridCluster, GridJob, self_schedule, simulate_grid
from tests.oracles.local import POLICIES, Job, simulate_policy
from tests.oracles.users import NEVER

ALONE = {"fcfs": "none", "easy": "easy"}
"""Backfilling of the local policies of grids."""

NODE_POLICIES = {**ALONE, "conservative": "conservative"}
"""Backfilling of the policies of cases on nodes."""


class PlainCase(NamedTuple):
    """A case of one cluster, as the plain simulator takes it."""

    jobs: list[Job]
    processors: int


def read_plain(name: str) -> PlainCase:
    """A case of one cluster."""
    case = read_case(name)
    return PlainCase(_jobs(case), case.clusters[""].processors)


def simulate_plainly(case: Case, variant: str) -> CaseSchedule:
    """What a plain simulator makes of a case."""
    return _ORACLES[case.kind](case, variant)


def _jobs(case: Case) -> list[Job]:
    return [Job(job.submit_time, job.run_time, job.requested_time, job.processors) for job in case.jobs]


def _homes(case: Case) -> list[int]:
    return [list(case.clusters).index(job.home) if job.home in case.clusters else NONE for job in case.jobs]


def _clusters(case: Case, policy: str) -> list[GridCluster]:
    return [
        GridCluster(cluster.processors, speed=cluster.speed, backfilling=ALONE[policy])
        for cluster in case.clusters.values()
    ]


def _once(case: Case, places: list[tuple[int, int]]) -> CaseSchedule:
    """Schedule of jobs that run once, from their starts and clusters."""
    parts: dict[int, tuple[Part, ...]] = {}
    for job, (start, m) in zip(case.jobs, places, strict=True):
        name, cluster = list(case.clusters.items())[m]
        factor: Fraction | float = 1 / Fraction(cluster.speed)
        if job.home:
            factor = Fraction(case.clusters[job.home].speed) / Fraction(cluster.speed)
        end = start + math.ceil(job.run_time * factor)
        parts[job.number] = () if start == NONE else (Part(name, job.processors, start, end),)
    return CaseSchedule(parts, {})


def _cluster(case: Case, variant: str) -> CaseSchedule:
    policy, passes = variant.split(":")
    starts = simulate_policy(_jobs(case), case.clusters[""].processors, policy, case.overrun, passes)
    return _once(case, [(start, 0) for start in starts])


def _superscheduler(case: Case, variant: str) -> CaseSchedule:
    options = case.options_of(variant)
    clusters = _clusters(case, options.pop("policy"))
    jobs = [GridJob(*job, home=home) for job, home in zip(_jobs(case), _homes(case), strict=True)]
    return _once(case, simulate_grid(jobs, clusters, scheme=variant, **options))


def _self_scheduling(case: Case, variant: str) -> CaseSchedule:
    clusters = _clusters(case, case.options_of(variant)["policy"])
    everywhere = [list(range(len(clusters)))] * len(case.jobs)
    done = self_schedule(_jobs(case), clusters, samples=everywhere, metrics=[variant] * len(case.jobs))
    return _once(case, done.places)


def _calendars(case: Case, variant: str) -> CaseSchedule:
    jobs = [
        naive_calendar.Job(*plain, home=home, reserved=job.reservation)
        for plain, home, job in zip(_jobs(case), _homes(case), case.jobs, strict=True)
    ]
    done = naive_calendar.Simulation(jobs, calendar_tree(case), calendar_options(case, variant)).run()
    earliest = {j + 1: time for j, time in enumerate(done.earliest) if time != NONE}
    return _several(case, [segment[:5] for segment in done.segments], earliest)


def _dynamic_grid(case: Case, variant: str) -> CaseSchedule:
    options = {"policy": "fcfs", **case.options_of(variant)}
    overrun = options.pop("overrun", "doubling")
    index = {name: i for i, name in enumerate(case.clusters)}
    jobs = [
        DynamicJob(*plain, home=None if job.home == GRID else index[job.home])
        for plain, job in zip(_jobs(case), case.jobs, strict=True)
    ]
    links = {(index[one], index[other]) for one, other in case.links}
    clusters = [
        Cluster(name=name, processors=each.processors, speed=each.speed)
        for name, each in case.clusters.items()
    ]
    always = [MemberEvent(0, i, "join") for i in index.values()]
    policy = POLICIES[options["policy"]]
    oracle = Oracle(jobs, clusters, links, always, DynamicGrid(**options), policy, overrun)
    oracle.run()
    return _several(case, [segment[:5] for segment in oracle.segments], {})


def _nodes(case: Case, variant: str) -> CaseSchedule:
    options = case.options_of(variant)
    names = list(case.clusters)
    after: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for job, on, kind, *delay in options.get("dependencies", ()):
        after[job].append((on - 1, kind, delay[0] if delay else 0))
    jobs = [
        on_nodes.Job(
            job.submit_time,
            job.run_time,
            job.requested_time,
            units=job.processors,
            memory=max(job.memory, 0),
            gives_up=NEVER if job.gives_up_time == NONE else job.gives_up_time,
            failed=job.number in options.get("failed", ()),
            after=after[job.number],
        )
        for job in case.jobs
    ]
    events = [
        on_nodes.Event(time, names.index(node), "window" if window else kind, *window)
        for time, node, kind, *window in options.get("events", ())
    ]
    nodes = [
        on_nodes.Node(node.processors, NEVER if node.memory is None else node.memory)
        for node in case.clusters.values()
    ]
    policy = on_nodes.Policy(
        backfilling=NODE_POLICIES[options["policy"]], requeue=options.get("requeue", "place")
    )
    only = {names.index(name) for name in options.get("only", names)}
    done = on_nodes.Simulation(nodes, jobs, policy, allowed=[only], events=events).simulate()
    return _several(case, [(e.job, e.node, e.cores, e.start, e.end) for e in done.executions], {})


def _several(case: Case, segments: Sequence[tuple[int, ...]], earliest: dict[int, int]) -> CaseSchedule:
    """Schedule of jobs that run in parts."""
    parts: dict[int, list[Part]] = defaultdict(list)
    for j, cluster, *rest in segments:
        parts[j + 1].append(Part(list(case.clusters)[cluster], *rest))
    return CaseSchedule({job.number: normalised(parts[job.number]) for job in case.jobs}, earliest)


_ORACLES: dict[str, Callable[[Case, str], CaseSchedule]] = {
    "cluster": _cluster,
    "superscheduler": _superscheduler,
    "self-scheduling": _self_scheduling,
    "calendars": _calendars,
    "dynamic-grid": _dynamic_grid,
    "nodes": _nodes,
}


# --- files ----------------------------------------------------------------------------------------


def lines_of(case: Case, schedules: dict[str, CaseSchedule]) -> list[list[Any]]:
    """Answers to a case as the lines of a table."""
    if case.kind == "cluster":
        rows = [[job.number, *(_start(each, job.number) for each in schedules.values())] for job in case.jobs]
        return [["job", *schedules], *rows]
    calendars = case.kind == "calendars"
    lines: list[list[Any]] = [["variant", *NEEDED, "processors", *(["earliest_time"] if calendars else [])]]
    for variant, schedule in schedules.items():
        for job in case.jobs:
            more = [schedule.earliest.get(job.number, NONE)] if calendars else []
            for part in schedule.parts[job.number] or (Part("", 0, NONE, NONE),):
                times = (part.start_time, part.end_time)
                lines.append([variant, job.number, part.cluster, *times, part.processors, *more])
    return lines


def _start(schedule: CaseSchedule, job: int) -> int:
    parts = schedule.parts[job]
    return parts[0].start_time if parts else NONE


def write_lines(path: Path, lines: list[list[Any]]) -> None:
    """Write a table."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
