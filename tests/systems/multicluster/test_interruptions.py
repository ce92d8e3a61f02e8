"""Failures, users who give up, and jobs that wait for others: against a naive walk over the seconds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
import xarray as xr

from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.systems.multicluster.measures import summarise_multicluster
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.titan import resources_of, stream
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.estimates import with_prediction_errors
from tests.oracles.local import Policy
from tests.oracles.multicluster import InterruptedJob, InterruptedMulticluster, Outage, Resize, Site
from tests.oracles.users import NEVER
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.systems.multicluster.test_muscle import pick
from tests.systems.multicluster.test_scheduler import (
    CASES,
    CLUSTERS,
    FAST,
    NODES,
    assert_resources_apart,
    drawn,
)

FATES = ("completed", "rejected", "gave up", "never eligible", "lost", "starved")
KINDS = ("after", "afterany", "afterok", "afternotok")
DELAY = 3


class Case:
    """Jobs for some clusters of which nodes fail, and who schedules them, all drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.seed = seed
        self.overrun = rng.choice(["doubling", "increments"])
        self.dispatcher: Any = rng.choice(["muscle", "dll", "wrand"])
        self.rounds: Any = rng.choice(["collected", "arrival"])
        self.ends: Any = rng.choice(["any", "all"])
        self.threshold = rng.choice([0, 0, 4])
        self.load: Any = rng.choice(["unfinished", "unstarted"])
        seedings = ["arrival", "last"] + ["muscle"] * (self.dispatcher == "muscle")
        self.seeding: Any = rng.choice(seedings)
        self.planned = rng.random() < 0.5
        score = rng.choice(["lxf", "lxwf"])
        self.sites = [self._site(score) for _ in range(rng.choice([1, 2, 2, 3]))]
        self.nodes = [rng.choice([1, 2]) if site.unit == 1 else 1 for site in self.sites]
        self.outages = [each for m in range(len(self.sites)) for each in self._outages(m)]
        self.changes = self._changes()
        self.jobs = self._jobs()

    def _site(self, score: str) -> Site:
        rng = self.rng
        backfilling = rng.choice(["none", "first_fit", "easy", "easy", "conservative"])
        orders = ["fcfs", "fcfs", "shortest", "smallest", "smallest_area", score]
        policy = Policy(
            rng.choice(orders),
            backfilling,
            rng.randint(1, 3) if backfilling == "easy" else 1,
            rng.choice(["queue", "fcfs", "shortest"]) if backfilling in ("easy", "first_fit") else "queue",
        )
        return Site(
            resources=2 * rng.randint(1, 4),
            unit=rng.choice([1, 1, 2, 3]),
            speed=rng.choice([1.0, 1.0, 2.0, 0.5]),
            policy=None if self.planned else policy,
            requeue=rng.choice(["place", "end", "lost"]),
            interval=rng.choice([0, 0, 2, 3]),
            cost=rng.choice([0, 1]),
        )

    def _outages(self, m: int) -> list[Outage]:
        rng, size = self.rng, self.nodes[m]
        found = []
        for node in range(self.sites[m].resources // size):
            time = rng.randint(0, 12)
            while rng.random() < 0.55:
                end = time + rng.randint(1, 12)
                until = 10**9 if rng.random() < 0.1 else end
                drained = rng.random() < 0.3
                found.append(Outage(m, node * size, (node + 1) * size, time, until, drained))
                time = until + rng.randint(1, 9)
        return [each for each in found if each.start < 10**9]

    def _changes(self) -> list[Resize]:
        """Changes of clusters but the largest, so that it is what jobs are measured by."""
        rng = self.rng
        largest = max(self.sites, key=lambda site: site.resources * site.unit)
        others = [m for m, site in enumerate(self.sites) if site is not largest]
        if not others or rng.random() < 0.7:
            return []
        times = sorted(rng.sample(range(40), 2))
        chosen = [rng.choice(others) for _ in times]
        return [
            Resize(t, m, self.sites[m].unit * rng.randint(0, 5)) for t, m in zip(times, chosen, strict=True)
        ]

    def _jobs(self) -> list[InterruptedJob]:
        rng = self.rng
        widest = max(site.resources * site.unit for site in self.sites)
        gives_up, depend = rng.random() < 0.6, rng.random() < 0.6
        jobs: list[InterruptedJob] = []
        gaps = rng.choice([[0, 0, 1, 2, 5], [0, 0, 0, 1]])
        submit = 0
        for j in range(rng.randint(1, 18)):
            submit += rng.choice(gaps)
            estimate = rng.randint(1, 10)
            run = rng.choice([estimate, estimate, rng.randint(0, estimate), rng.randint(1, 20)])
            width = rng.choice([1, widest, rng.randint(1, widest), rng.randint(1, max(1, widest // 2))])
            others = [on for on in range(j) if depend and rng.random() < 0.15]
            jobs.append(
                InterruptedJob(
                    submit,
                    run,
                    estimate,
                    width + (rng.random() < 0.03),
                    submit + rng.randint(0, 60),
                    rng.choice([0, 0, DELAY]),
                    submit + rng.randint(0, 15) if gives_up and rng.random() < 0.4 else NEVER,
                    rng.random() < 0.2,
                    tuple((on, rng.choice(KINDS), rng.choice([0, 0, 2])) for on in others),
                )
            )
        return jobs

    def workload(self) -> Workload:
        jobs = self.jobs
        workload = jobs_of(
            submit_time=[job.submit for job in jobs],
            run_time=[job.run for job in jobs],
            requested_time=[job.estimate for job in jobs],
            requested_processors=[job.processors for job in jobs],
            deadline=[job.due for job in jobs],
            home=[0 if job.delay else -1 for job in jobs],
            status=[0 if job.failed else 1 for job in jobs],
        )
        gives_up = np.array([-1 if job.gives_up == NEVER else job.gives_up for job in jobs])
        if (gives_up >= 0).any():
            workload = replace(workload, gives_up_time=gives_up)
        needs = [(j, *need) for j, job in enumerate(jobs) for need in job.after]
        return replace(workload, dependencies=dependency_table(needs)) if needs else workload

    def platform(self) -> Platform:
        """The clusters, with the outages as events of their nodes."""
        clusters = []
        for m, site in enumerate(self.sites):
            size = self.nodes[m] * site.unit
            events = []
            for each in self.outages:
                if each.cluster == m:
                    down, up = ("drain", "resume") if each.drained else ("down", "up")
                    name = f"node{each.first // self.nodes[m]}"
                    if not each.drained and each.until < 10**9 and self.rng.random() < 0.3:
                        window: dict[str, Any] = {"start": each.start, "end": each.until}
                        events.append(NodeEvent(time=0, node=name, kind="maintenance", **window))
                        continue
                    events.append(NodeEvent(time=each.start, node=name, kind=down))  # type: ignore[arg-type]
                    if each.until < 10**9:
                        events.append(NodeEvent(time=each.until, node=name, kind=up))  # type: ignore[arg-type]
            clusters.append(
                Cluster(
                    name=f"c{m}",
                    processors=site.resources * site.unit,
                    processors_per_node=size,
                    node_exclusive=site.unit > 1,
                    speed=site.speed,
                    policy="easy" if site.policy is None else LocalPolicy(**site.policy._asdict()),
                    events=events,
                    requeue=site.requeue,  # type: ignore[arg-type]
                    checkpoint_interval=site.interval,
                    checkpoint_cost=site.cost,
                )
            )
        changes = [ResourceChange(each.time, f"c{each.cluster}", each.processors) for each in self.changes]
        return Platform(clusters, changes=changes)

    def simulated(self) -> xr.Dataset:
        scheduler = Multicluster(
            dispatcher=self.dispatcher,
            local="seed" if self.planned else "policy",
            seeding=self.seeding,
            rounds=self.rounds,
            ends=self.ends,
            threshold=self.threshold,
            load=self.load,
            announcement_delay=DELAY,
            measure=self.rng.random() < 0.3,
        )
        options: dict[str, Any] = {"seed": self.seed, "times": "unit", "overrun": self.overrun}
        return simulate(self.workload(), self.platform(), scheduler, **options)

    def expected(self) -> InterruptedMulticluster:
        streams: dict[int, Any] = {}

        def draw(number: int, equals: int) -> int:
            if number not in streams:
                streams[number] = stream(self.seed, number, len(self.sites))
            return pick(streams[number], equals)

        naive = InterruptedMulticluster(
            self.jobs,
            self.sites,
            outages=self.outages,
            changes=self.changes,
            overrun=self.overrun,
            dispatcher=self.dispatcher,
            seeding=self.seeding,
            rounds=self.rounds,
            ends=self.ends,
            threshold=self.threshold,
            load=self.load,
            draw=draw,
        )
        accepted = [j for j in range(len(self.jobs)) if naive.fate.get(j) != "rejected"]
        generator = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(len(self.sites),)))
        naive.drawn = dict(zip(accepted, generator.random(len(accepted)).tolist(), strict=True))
        return naive.run()


def executions(run: xr.Dataset, units: list[int]) -> list[tuple[Any, ...]]:
    """Job, cluster, resources, start and end of each segment."""
    width = 64 * run.sizes["word"]
    used = [
        tuple(np.flatnonzero(row).tolist()) for row in resources_of(run["segment_resources"].values, width)
    ]
    columns = [run[f"segment_{name}"].values.tolist() for name in ("job", "cluster", "start", "end")]
    jobs, clusters, start, end = columns
    return sorted(zip(jobs, clusters, start, end, used, strict=True))


def check(seed: int) -> tuple[int, ...]:
    """One case against the oracle; how often each fate, and killed executions."""
    case = Case(seed)
    workload = case.workload()
    is_interrupted = case.outages or workload.gives_up_time is not None or workload.dependencies is not None
    if not is_interrupted:
        return (0,) * 7
    run, naive = case.simulated(), case.expected()
    verify(run)
    found = executions(run, [site.unit for site in case.sites])
    wanted = sorted(
        (each.job, each.cluster, each.start, each.end, tuple(sorted(each.resources)))
        for each in naive.executions
    )
    assert found == wanted
    assert [FATES[fate] for fate in run["fate"].values] == [naive.fate[j] for j in range(len(case.jobs))]
    assert run["killed"].values.tolist() == [naive.kills[j] for j in range(len(case.jobs))]
    fates = np.bincount(run["fate"].values, minlength=6).tolist()
    return (*fates, int(run["killed"].sum()))


@pytest.mark.random_cases(480)
def test_runs_equal_a_walk_over_the_seconds(seed: int) -> None:
    check(seed)


def test_cases_hold_every_fate() -> None:
    assert (np.sum([check(seed) for seed in range(60)], axis=0) > 0).all()


# --- TITAN, which draws ---------------------------------------------------------------------------


def failing(clusters: list[Cluster], requeue: Any = "place") -> list[Cluster]:
    """Clusters of which some nodes fail, are drained or maintained."""
    events = [
        NodeEvent(time=300, node="node0", kind="down"),
        NodeEvent(time=900, node="node0", kind="up"),
        NodeEvent(time=500, node="node1", kind="drain"),
        NodeEvent(time=1500, node="node1", kind="resume"),
        NodeEvent(time=100, kind="maintenance", start=2000, end=2100),
    ]
    return [replace(each, events=events, requeue=requeue, checkpoint_interval=50) for each in clusters]


def interrupted(workload: Workload) -> Workload:
    """The jobs, some of which wait for others, or for their users to give up."""
    number = np.arange(len(workload))
    chained = dependency_table([(j, j - 3, KINDS[j % 4], 10 * (j % 2)) for j in range(5, len(workload), 7)])
    gives_up = np.where(number % 4 == 0, workload.submit_time + 500, -1)
    return replace(workload, gives_up_time=gives_up, dependencies=chained)


@pytest.mark.parametrize("requeue", ["place", "end", "lost"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_variant_keeps_off_what_is_out(case: dict[str, Any], requeue: str) -> None:
    workload = replace(interrupted(drawn()), home=np.arange(70) % 4 - 1)
    clusters = failing([*CLUSTERS[:1], *NODES[:2]], requeue)
    policy = Multicluster(titan=FAST, announcement_delay=40, threads=2, **case)
    changes = [ResourceChange(900, "N1", 2), ResourceChange(1200, "N1", 10)]
    run = simulate(workload, Platform(clusters, changes=changes), policy, times="unit")
    verify(run)
    assert_resources_apart(run, [each.unit for each in clusters])
    assert run["killed"].sum() > 0
    used = resources_of(run["segment_resources"].to_numpy(), 10)
    for cluster, first, end, start, until in zip(
        *(run[f"closure_{name}"].values.tolist() for name in ("cluster", "first", "end", "start", "until")),
        strict=True,
    ):
        unit = clusters[cluster].unit
        there = run["segment_cluster"].to_numpy() == cluster
        there &= (run["segment_start"].to_numpy() < until) & (run["segment_end"].to_numpy() > start)
        assert not used[there, first // unit : end // unit].any()
    assert float(summarise_multicluster(run)["jobs"]) == int((run["start_time"] >= 0).sum())


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_who_never_gives_up_changes_nothing(case: dict[str, Any]) -> None:
    """From instant to instant all is as from round to round."""
    workload = replace(with_prediction_errors(drawn(), 0.7, seed=3), home=np.arange(70) % 4 - 1)
    patient = replace(workload, gives_up_time=np.full(70, -1))
    changes = [ResourceChange(900, "C1", 3), ResourceChange(1200, "C2", 0), ResourceChange(1200, "C1", 9)]
    place = Platform(CLUSTERS, changes=changes)
    policy = Multicluster(titan=FAST, announcement_delay=40, **case)
    plain, other = (simulate(jobs, place, policy, times="unit") for jobs in (workload, patient))
    assert set(plain.variables) <= set(other.variables)
    assert all(plain[name].identical(other[name]) for name in plain.variables)


# --- by hand --------------------------------------------------------------------------------------


DOWN = [NodeEvent(time=4, node="node0", kind="down"), NodeEvent(time=6, node="node0", kind="up")]
NODE = Cluster(processors=2, processors_per_node=2, events=DOWN)
DRAINED = [NodeEvent(time=2, node="node0", kind="drain"), NodeEvent(time=20, node="node0", kind="resume")]
LEAVES = ((0, 10, 2), (1, 3, 2))
NEEDS = dependency_table([(1, 0, "afterok"), (2, 0, "after", 2), (3, 0, "afternotok")])


def planned(
    jobs: Sequence[tuple[int, int, int]], clusters: Sequence[Cluster], local: str = "seed", **columns: Any
) -> xr.Dataset:
    """A run of jobs by submit time, run time and processors, as they are planned or queued."""
    submit, run_time, processors = zip(*jobs, strict=True)
    workload = jobs_of(
        submit_time=submit,
        run_time=run_time,
        requested_processors=processors,
        deadline=[time + 1000 for time in submit],
        **columns,
    )
    policy = Multicluster(local=local, seeding="last", rounds="arrival")
    run = simulate(workload, Platform(clusters), policy, times="unit")
    verify(run)
    return run


WORKED: dict[str, tuple[tuple[str, ...], dict[str, Any], list[Cluster], dict[str, Any]]] = {
    "killed jobs wait first": (
        ("seed", "fcfs"),
        {"jobs": LEAVES},
        [replace(NODE, requeue="place")],
        {"executions": [(0, 0, 0, 4), (0, 0, 6, 16), (1, 0, 16, 19)], "extra_work": [8, 0]},
    ),
    "killed jobs wait last": (
        ("seed", "fcfs"),
        {"jobs": LEAVES},
        [replace(NODE, requeue="end")],
        {"executions": [(0, 0, 0, 4), (0, 0, 9, 19), (1, 0, 6, 9)]},
    ),
    "killed jobs are lost": (
        ("seed", "fcfs"),
        {"jobs": LEAVES},
        [replace(NODE, requeue="lost")],
        {"executions": [(0, 0, 0, 4), (1, 0, 6, 9)], "jobs_lost": 1, "executions_killed": 1},
    ),
    # The first takes the wide cluster; the second has done 3 of its 10 s on the other when that fails. It has
    # 20 s on the wide one, less the 6 s that the checkpoint is worth there
    "a checkpoint goes with its job to a faster cluster": (
        ("seed", "easy"),
        {"jobs": [(0, 3, 4), (0, 10, 2)]},
        [
            replace(NODE, name="slow", events=DOWN[:1], checkpoint_interval=3),
            Cluster(name="fast", processors=4, speed=0.5),
        ],
        {
            "executions": [(0, 1, 0, 6), (1, 0, 0, 4), (1, 1, 6, 20)],
            "run_time": [6, 3 + 14],
            "extra_work": [0, 2],
        },
    ),
    # The second asks for all processors while a node is down; the last one for ever
    "who is too wide waits and holds up nobody": (
        ("seed", "easy", "conservative"),
        {"jobs": [(4, 1, 2), (5, 2, 4), (5, 1, 1), (7, 5, 4)]},
        [replace(NODE, processors=4, events=[*DOWN, NodeEvent(time=9, kind="down")])],
        {
            "executions": [(0, 0, 4, 5), (1, 0, 6, 8), (2, 0, 5, 6), (3, 0, 8, 9)],
            "fate": [0, 0, 0, 5],
        },
    ),
    "drained processors finish what they run": (
        ("seed",),
        {"jobs": [(0, 9, 1), (3, 5, 1), (4, 5, 1)]},
        [Cluster(processors=2, events=DRAINED)],
        {
            "executions": [(0, 0, 0, 9), (1, 0, 3, 8), (2, 0, 8, 13)],
            "killed": [0, 0, 0],
            "closure_start": [],
        },
    ),
    # The second leaves the queue when it could start, so that the third starts then
    "a user who gives up leaves the plan": (
        ("seed", "easy"),
        {"jobs": [(0, 8, 2), (1, 9, 2), (2, 4, 2)], "gives_up_time": [-1, 8, -1]},
        [Cluster(processors=2)],
        {"executions": [(0, 0, 0, 8), (2, 0, 8, 12)], "jobs_gave_up": 1},
    ),
    "jobs are collected once they are eligible": (
        ("seed", "easy"),
        {"jobs": [(0, 6, 2), (0, 1, 1), (0, 1, 1), (0, 1, 1)], "dependencies": NEEDS},
        [Cluster(processors=4)],
        {
            "start_time": [0, 6, 2, -1],
            "eligible_time": [0, 6, 2, ANY],
            "jobs_never_eligible": 1,
        },
    ),
}
"""Local schedulers, jobs, clusters, and variables, with job, cluster, start and end of each execution."""


@pytest.mark.parametrize(
    ("local", "jobs", "clusters", "expected"),
    [(local, *case) for locals_, *case in WORKED.values() for local in locals_],
    ids=[f"{name}: {local}" for name, (locals_, *_) in WORKED.items() for local in locals_],
)
def test_worked_example(
    local: str, jobs: dict[str, Any], clusters: list[Cluster], expected: dict[str, Any]
) -> None:
    run = planned(clusters=clusters, local=local, **jobs)
    columns = [run[f"segment_{name}"].values.tolist() for name in ("job", "cluster", "start", "end")]
    segments = list(zip(*columns, strict=True))
    assert segments == expected.get("executions", segments)
    assert_fields(run, **{name: value for name, value in expected.items() if name != "executions"})


def test_collected_jobs_leave_too() -> None:
    """The third job is collected while the second waits."""
    workload = jobs_of(
        submit_time=[0, 0, 1, 2],
        run_time=[5] * 4,
        requested_processors=[1] * 4,
        deadline=[99] * 4,
        gives_up_time=[-1, -1, 3, -1],
    )
    run = simulate(workload, Cluster(processors=1), Multicluster(local="seed"), times="unit")
    verify(run)
    assert_fields(run, round_time=[0, 5], start_time=[0, 5, -1, 10], queue_mean=(2 - 1) / 2)


def test_checkpoints_that_take_too_long_are_refused() -> None:
    cluster = Cluster(processors=1, events=DOWN, checkpoint_interval=1, checkpoint_cost=2**20)
    with refused("checkpoints let a job of 5000 s take more than"):
        planned([(0, 5000, 1)], [cluster])
