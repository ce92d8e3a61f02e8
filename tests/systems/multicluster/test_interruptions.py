"""Failures, users who give up, and jobs that wait for others: against a naive walk over the seconds."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.titan import resources_of, stream
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import dependency_table
from tests.oracles.local import Policy
from tests.oracles.multicluster import LivedJob, LivedMulticluster, Outage, Resize, Site
from tests.systems.multicluster.test_scheduler import pick

FATES = ("completed", "rejected", "gave up", "never eligible", "lost", "starved")
KINDS = ("after", "afterany", "afterok", "afternotok")
DELAY = 3


class Case:
    """Jobs for some clusters of which nodes fail, and who schedules them, all drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.seed = seed
        self.overrun = rng.choice(["doubling", "increments"])
        self.dispatcher = rng.choice(["muscle", "dll", "wrand"])
        self.rounds = rng.choice(["collected", "arrival"])
        self.ends = rng.choice(["any", "all"])
        self.threshold = rng.choice([0, 0, 4])
        self.load = rng.choice(["unfinished", "unstarted"])
        seedings = ["arrival", "last"] + ["muscle"] * (self.dispatcher == "muscle")
        self.seeding = rng.choice(seedings)
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
            while rng.random() < 0.4:
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

    def _jobs(self) -> list[LivedJob]:
        rng = self.rng
        widest = max(site.resources * site.unit for site in self.sites)
        gives_up, depend = rng.random() < 0.6, rng.random() < 0.6
        jobs: list[LivedJob] = []
        submit = 0
        for j in range(rng.randint(1, 14)):
            submit += rng.choice([0, 0, 1, 2, 5])
            estimate = rng.randint(1, 10)
            run = rng.choice([estimate, estimate, rng.randint(0, estimate), rng.randint(1, 20)])
            width = rng.choice([1, widest, rng.randint(1, widest), rng.randint(1, max(1, widest // 2))])
            others = [on for on in range(j) if depend and rng.random() < 0.15]
            jobs.append(
                LivedJob(
                    submit,
                    run,
                    estimate,
                    width + (rng.random() < 0.03),
                    submit + rng.randint(0, 60),
                    rng.choice([0, 0, DELAY]),
                    submit + rng.randint(0, 15) if gives_up and rng.random() < 0.4 else None,
                    rng.random() < 0.2,
                    tuple((on, rng.choice(KINDS), rng.choice([0, 0, 2])) for on in others),
                )
            )
        return jobs

    def workload(self) -> Workload:
        jobs = self.jobs
        workload = Workload(
            name="w",
            submit_time=np.array([job.submit for job in jobs]),
            run_time=np.array([job.run for job in jobs]),
            requested_time=np.array([job.estimate for job in jobs]),
            requested_processors=np.array([job.processors for job in jobs]),
            deadline=np.array([job.due for job in jobs]),
            home=np.array([0 if job.delay else -1 for job in jobs]),
            status=np.array([0 if job.failed else 1 for job in jobs]),
        )
        gives_up = np.array([-1 if job.gives_up is None else job.gives_up for job in jobs])
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

    def expected(self) -> LivedMulticluster:
        streams: dict[int, Any] = {}

        def draw(number: int, equals: int) -> int:
            if number not in streams:
                streams[number] = stream(self.seed, number, len(self.sites))
            return pick(streams[number], equals)

        naive = LivedMulticluster(
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
    is_lived = case.outages or workload.gives_up_time is not None or workload.dependencies is not None
    if not is_lived:
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


@pytest.mark.parametrize("block", range(8))
def test_runs_equal_a_walk_over_the_seconds(block: int) -> None:
    totals = np.sum([check(seed) for seed in range(150 * block, 150 * (block + 1))], axis=0)
    assert (totals > 0).all()
