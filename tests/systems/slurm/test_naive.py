"""Thousands of small clusters and queues: every start, pass and node as in the naive twin."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import DEPENDENT, LIFE, Lifecycles, allocate
from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER
from gridsched.nodes import MOST_NUMBERED
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.cadence import END
from gridsched.systems.slurm.controller import (
    BACKFILL,
    Controller,
    SlurmCluster,
    Tickets,
    chain_tasks,
    job_records,
)
from gridsched.systems.slurm.kernels import NoPreemption, Preemption
from gridsched.systems.slurm.minutes import MinuteRules
from gridsched.systems.slurm.parameters import Version
from gridsched.systems.slurm.preempting import MODES, NOBODY, preemption_arrays
from gridsched.systems.slurm.priority import Priorities, Resets
from gridsched.systems.slurm.scheduler import Slurm
from tests.oracles import slurm as naive

VERSIONS = get_args(Version)

BARRED = ("", "time", "quality", "account", "wall", "resources", "memory")
"""What keeps jobs from starting, as `kernels.BY_TIME` and the following number it."""


def some_of(rng: np.random.Generator, count: int, part: float) -> set[int]:
    """Each of so many nodes with a probability."""
    return set(np.flatnonzero(rng.random(count) < part).tolist())


def draw(
    rng: np.random.Generator, whole: str, preempting: bool = False, minutes: bool = False
) -> tuple[list[naive.Job], naive.Cluster, list[tuple[int, int]]]:
    """Jobs, a cluster and passes."""

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    count = number(2, 8)
    alike = rng.random() < 0.6
    kinds = [naive.Node(number(2, 6), number(2, 8), number(0, 3)) for _ in range(count)]
    nodes = [kinds[0]] * count if alike else kinds
    if rng.random() < 0.4:
        nodes = [node._replace(weight=number(1, 2), line=1000 * number(0, 2)) for node in nodes]
    featured = [some_of(rng, count, part) for part in (1.0, 0.6, 0.6)] if rng.random() < 0.4 else []
    choices = {}
    if featured and rng.random() < 0.6:
        choices[2] = [some_of(rng, count, 0.5) for _ in range(number(2, 3))]
        featured[2] = set().union(*choices[2])
    licences = (number(1, 3), number(1, 2)) if rng.random() < 0.3 else ()
    partitions = [set(range(count))]
    if rng.random() < 0.5:
        partitions.append(set(range(number(0, count - 1), count)))
        if rng.random() < 0.4:
            partitions.append(some_of(rng, count, 0.5) | {0})
    limits = [
        (
            naive.Limit(jobs=number(1, 3)),
            naive.Limit(cores=number(4, 16)),
            naive.Limit(nodes=number(1, 5)),
        )[number(0, 2)]
        for _ in range(number(0, 2))
    ]
    jobs = []
    for _ in range(number(4, 24)):
        run = number(0, 300)
        jobs.append(
            naive.Job(
                submit=number(0, 300),
                run=run,
                limit=max(run + number(-30, 200), 1),
                nodes=number(1, max(count // 2, 1)) if rng.random() < 0.8 else count,
                cores=number(1, 4),
                memory=number(0, 4),
                gpus=number(0, 2) if rng.random() < 0.4 else 0,
                whole={"all": True, "none": False}.get(whole, rng.random() < 0.4),
                partition=number(0, len(partitions) - 1),
                user=number(0, 2),
                priority=float(number(0, 3)),
                groups=tuple(g for g in range(len(limits)) if rng.random() < 0.5),
                array=number(0, 1) if rng.random() < 0.3 else -1,
                features=number(0, 2) if featured and rng.random() < 0.5 else 0,
                licences=tuple(number(0, 1) for _ in licences),
            )
        )
        if rng.random() < 0.1:
            jobs[-1] = jobs[-1]._replace(barred=str(rng.choice(BARRED[1:])))
        if rng.random() < 0.15:
            jobs[-1] = jobs[-1]._replace(least=number(1, jobs[-1].limit))
    if len(partitions) > 1 and rng.random() < 0.6:
        for k, job in enumerate(jobs):
            elsewhere = [p for p in range(len(partitions)) if p != job.partition]
            if rng.random() < 0.5:
                jobs[k] = job._replace(others=(int(rng.choice(elsewhere)),))
    if rng.random() < 0.25:
        for hetjob in range(number(1, 3)):
            submit = number(0, 300)
            for k in rng.choice(len(jobs), number(2, 3), replace=False):
                jobs[k] = jobs[k]._replace(submit=submit, array=-1, hetjob=hetjob)
    jobs.sort(key=lambda job: job.submit)
    numbered = {}
    if featured and rng.random() < 0.6:
        for _ in range(2):
            parts = [(some_of(rng, count, 0.6), number(1, 2)) for _ in range(number(1, 3))]
            numbered[len(featured)] = parts
            featured.append(
                set().union(*[nodes for nodes, _ in parts]) if len(parts) > 1 else set(range(count))
            )
        for k, job in enumerate(jobs):
            row = number(3, 4)
            named = sum(n for _, n in numbered[row])
            if rng.random() < 0.5 and named <= count:
                wide = min(named + number(0, 2), count)
                wanted = int(rng.choice([wide, wide, 2 * wide]))
                jobs[k] = job._replace(nodes=wide, features=row, wanted=wanted)
    cluster = naive.Cluster(
        nodes=nodes,
        partitions=partitions,
        tiers=[number(0, 2) for _ in partitions],
        limits=limits,
        window=60 * number(2, 30),
        resolution=int(rng.choice([1, 1, 30, 60])),
        kill_wait=number(0, 40),
        linear=whole == "all" and rng.random() < 0.5,
        featured=featured,
        choices=choices,
        numbered=numbered,
        licences=licences,
        one_plan=rng.random() < 0.2,
        version=str(rng.choice(VERSIONS)) if rng.random() < 0.5 else "22.05",
    )
    if not cluster.linear and rng.random() < 0.4:
        cluster.exclusive = [bool(rng.random() < 0.5) for _ in partitions]
        cluster.tries_all = bool(rng.random() < 0.5)
    if rng.random() < 0.3:
        cluster.bonus = [float(number(0, 2)) for _ in partitions]
    if limits and not minutes and rng.random() < 0.4:
        cluster.groups = [(number(0, len(limits) - 1),) if rng.random() < 0.5 else () for _ in partitions]
        jobs = [job._replace(groups=()) for job in jobs]
    for key, high in (
        ("depth", 8),
        ("partition_depth", 4),
        ("most_started", 3),
        ("tests", 6),
        ("stretches", 8),
        ("tests_of_user", 3),
        ("tests_of_partition", 4),
        ("most_backfilled", 3),
        ("least_priority", 3),
        ("least_age", 60),
    ):
        if rng.random() < 0.15:
            setattr(cluster, key, number(1, high))
    cluster.array_limits = {array: number(1, 3) for array in (0, 1) if rng.random() < 0.4}
    cluster.plans_of_array = number(1, 3) if rng.random() < 0.3 else 20
    for node in range(count):
        if rng.random() < 0.3:
            begin = number(0, 600)
            kills = rng.random() < 0.5
            cluster.outages.append(naive.Outage(node, begin, begin + number(1, 300), kills))
    for _ in range(number(-2, 2)):
        known, some = number(0, 400), rng.random(count) < rng.choice([0.3, 0.7, 1.0])
        begin = known + number(0, 200)
        held = frozenset(np.flatnonzero(some).tolist())
        cluster.reservations.append(naive.Reservation(known, begin, begin + number(1, 300), held))
    if preempting:
        fates = ["keep", "kill", "kill", "cancel", "suspend", "suspend"]
        groups = number(2, 4)
        ways = [str(rng.choice(fates)) for _ in range(groups)]
        level = [number(0, 3) for _ in range(groups)]
        pairs = [(a, b) for a in range(groups) for b in range(groups) if a != b]
        by_level = rng.random() < 0.6
        chosen = [(a, b) for a, b in pairs if (level[a] > level[b] if by_level else rng.random() < 0.4)]
        pairs_of_jobs = len(jobs) + sum(len(job.others) for job in jobs)
        group = [number(0, groups - 1) for _ in range(pairs_of_jobs)]
        jobs = [
            job._replace(priority=job.priority + 2 * level[g])
            for job, g in zip(jobs, group[: len(jobs)], strict=True)
        ]
        jobs = [job._replace(array=-1) for job in jobs]
        cluster.rules = naive.Rules(
            group=group,
            may=set(chosen),
            level=[level[g] for g in group],
            way=[ways[g] for g in group],
            exempt=[number(0, 100) if rng.random() < 0.3 else 0 for _ in group],
            linear=cluster.linear,
            youngest=rng.random() < 0.3,
            strict=rng.random() < 0.3,
            reorder=number(0, 3),
            patience=number(0, 60),
            hold=number(1, 120),
        )
    instants = sorted({number(1, 900) for _ in range(number(10, 60))})
    passes = [(now, number(0, 2)) for now in instants]
    if minutes:
        period = number(20, 200)
        cluster.calculations = list(range(period, 1000, period))
        cluster.half_life = float(rng.choice([float("inf"), 200, 2000]))
        cluster.resets = [cluster.calculations[0]] if rng.random() < 0.2 else []
        others = len(cluster.limits)
        kinds_of_limits = ["running"] + (["safe"] if rng.random() < 0.5 else ["spent"])
        for _ in range(number(1, 2)):
            cluster.limits.append(
                naive.Limit(
                    minutes=number(0, 60),
                    resource=str(rng.choice(["processors", "processors", "nodes", "memory", "gpus"])),
                    way=str(rng.choice(kinds_of_limits)),
                    keeps=rng.random() < 0.3,
                    before=float(number(0, 1000)) if rng.random() < 0.3 else 0.0,
                )
            )
        names = range(others, len(cluster.limits))
        jobs = [
            job._replace(
                groups=(*job.groups, *(g for g in names if rng.random() < 0.7)),
                factor=float(rng.choice([1, 1, 1, 0, 0.5, 2.0])),
            )
            for job in jobs
        ]
    return jobs, cluster, passes


_OF_ROWS = {"partition", "priority", "array", "barred"}
"""Fields that rows of jobs have in another way."""


def _bits(cluster: naive.Cluster, row: int, nodes: int) -> list[int]:
    """A set of nodes as the package has it: a bit for each choice, or part."""
    choices = cluster.choices.get(row, [cluster.featured[row]])
    if row in cluster.numbered:
        choices = [*[nodes for nodes, _ in cluster.numbered[row]], cluster.featured[row]]
    return [sum((node in each) << k for k, each in enumerate(choices)) for node in range(nodes)]


def _numbers(cluster: naive.Cluster) -> NDArray[np.int64]:
    """Numbers of nodes that jobs with each set of nodes want."""
    numbers = np.zeros((len(cluster.featured), MOST_NUMBERED), np.int64)
    for row, parts in cluster.numbered.items():
        numbers[row, : len(parts)] = [number for _, number in parts]
    return numbers


def controller_of(jobs: list[naive.Job], cluster: naive.Cluster) -> Controller:
    """The same for the package."""
    nodes = np.array([each[:4] for each in cluster.nodes], kernels.NODE)
    reach = np.array(
        [[n in partition for n in range(len(nodes))] for partition in cluster.partitions], np.uint8
    )
    limits = np.zeros(len(cluster.limits) + len(cluster.array_limits), kernels.LIMIT)
    for name in ("jobs", "processors", "nodes", "memory", "gpus", "minutes"):
        limits[name] = FOREVER
    ways = {"running": kernels.RUNNING, "spent": kernels.SPENT, "safe": kernels.SAFE}
    for k, limit in enumerate(cluster.limits):
        limits[k]["jobs"] = min(limit.jobs, FOREVER)
        limits[k]["processors"] = min(limit.cores, FOREVER)
        limits[k]["nodes"] = min(limit.nodes, FOREVER)
        limits[k]["minutes"] = min(limit.minutes, FOREVER)
        limits[k]["resource"] = kernels.RESOURCES.index(limit.resource)
        limits[k]["way"], limits[k]["spent"] = ways[limit.way], limit.before
    for k, most_tasks in enumerate(cluster.array_limits.values(), len(cluster.limits)):
        limits[k]["jobs"] = most_tasks
    pairs = [(k, job.partition) for k, job in enumerate(jobs)]
    pairs += [(k, partition) for k, job in enumerate(jobs) for partition in job.others]
    records = job_records(len(pairs))
    limited = np.full((len(pairs), 6), -1, np.int64)
    for row, (k, partition) in enumerate(pairs):
        job = jobs[k]
        for name in set(job._fields) & set(records.dtype.names or ()) - _OF_ROWS:
            records[row][name] = getattr(job, name)
        records[row]["of"], records[row]["partition"] = k, partition
        records[row]["barred"] = BARRED.index(job.barred)
        if cluster.exclusive and cluster.exclusive[partition]:
            records[row]["whole"] |= kernels.EXCLUSIVE
        records[row]["processors"] = job.cores * job.nodes
        limited[row, : len(job.groups)] = job.groups
        if job.array in cluster.array_limits:
            limited[row, 4] = len(cluster.limits) + list(cluster.array_limits).index(job.array)
        if cluster.groups and cluster.groups[partition]:
            limited[row, 5] = cluster.groups[partition][0]
    of = records["of"].astype(np.int64)
    most = np.array([cluster.array_limits.get(job.array, 0) for job in jobs])
    chain_tasks(records, np.array([job.array for job in jobs]), most)
    events = []
    for out in cluster.outages:
        kinds = (EventKind.DOWN, EventKind.UP) if out.kills else (EventKind.DRAIN, EventKind.RESUME)
        events += [(out.begin, kinds[0], out.node), (out.end, kinds[1], out.node)]
    for k, each in enumerate(cluster.reservations):
        events += [(each.known, EventKind.ANNOUNCE, k), (each.end, EventKind.OPEN, k)]
    held = [[n in each.nodes for n in range(len(nodes))] for each in cluster.reservations]
    return Controller(
        SlurmCluster(
            nodes=nodes,
            lines=np.array([each.line for each in cluster.nodes]),
            featured=np.array([_bits(cluster, row, len(nodes)) for row in range(len(cluster.featured))])
            if cluster.featured
            else None,
            numbers=_numbers(cluster) if cluster.featured else None,
            licences=np.array(cluster.licences, np.int64),
            reach=reach,
            tier=np.array(cluster.tiers),
            limits=limits,
            events=sorted(events),
            windows=np.array([(each.begin, each.end) for each in cluster.reservations], kernels.WINDOW),
            reserved=np.array(held, np.uint8) if held else None,
        ),
        Tickets(
            jobs=records,
            run=np.array([job.run for job in jobs]),
            limited=limited,
            licences=np.array([job.licences for job in jobs], np.int64).reshape(len(jobs), -1)[of],
            lifecycles=lifecycles_of(jobs),
            preemption=preemption_of(cluster.rules, len(nodes)),
            minutes=minutes_of([jobs[k] for k in of], cluster, len(limits)) if cluster.calculations else None,
        ),
        Slurm(
            scheduler_type="builtin" if cluster.fifo else "backfill",
            priority_type="basic" if cluster.fifo else "multifactor",
            select_type="linear" if cluster.linear else "cons_tres",
            bf_node_space_size=cluster.stretches,
            default_queue_depth=cluster.depth,
            bf_one_resv_per_job=cluster.one_plan,
            every_partition_admits=cluster.tries_all,
            version=cluster.version,  # type: ignore[arg-type]
            partition_job_depth=cluster.partition_depth,
            sched_max_job_start=cluster.most_started,
            bf_window=cluster.window // 60,
            bf_resolution=cluster.resolution,
            bf_max_job_test=cluster.tests,
            bf_max_job_user=cluster.tests_of_user,
            bf_max_job_part=cluster.tests_of_partition,
            bf_max_job_array_resv=cluster.plans_of_array,
            bf_max_job_start=cluster.most_backfilled,
            bf_min_prio_reserve=int(cluster.least_priority),
            bf_min_age_reserve=cluster.least_age,
            kill_wait=cluster.kill_wait,
            requeue_delay=cluster.rules.hold if cluster.rules else 120,
            safe_limits=all(limit.way != "spent" for limit in cluster.limits),
            priority_calc_period=cluster.calculations[0] if cluster.calculations else 300,
            priority_decay_half_life=0 if cluster.half_life == float("inf") else int(cluster.half_life),
        ),
        OfPartitions(records, [job.priority for job in jobs], cluster.bonus or [0.0] * len(reach)),
    )


class OfPartitions(Priorities):
    """Priorities of jobs, more in some partitions."""

    def __init__(self, records: Any, priority: list[float], bonus: list[float]) -> None:
        super().__init__(priority, records["of"].astype(np.int64))
        self.records, self.bonus = records, bonus

    def submitted(self, job: int, now: int, since: int) -> float:
        return super().submitted(job, now, since) + float(self.bonus[self.records["partition"][job]])

    def recalculate(self, now: int, waiting: NDArray[np.int64]) -> NDArray[np.float64]:
        more = np.array(self.bonus)[self.records["partition"][waiting]]
        return np.asarray(super().recalculate(now, waiting) + more)


def lifecycles_of(jobs: list[naive.Job]) -> Lifecycles:
    """Lifecycles of jobs that wait for nothing but their nodes."""
    lives = np.zeros(len(jobs), LIFE)
    lives["submit"] = [job.submit for job in jobs]
    lives["gives_up"], lives["unmet"] = FOREVER, 1
    return allocate(lives, np.zeros(0, DEPENDENT), np.zeros(len(jobs) + 1, np.int64))


class Noted:
    """Which passes changed what the controller notes of jobs."""

    def __init__(self) -> None:
        self.passes: list[int] = []

    def __call__(self, controller: Controller, now: int, kind: int) -> None:
        if controller.tables.counts[kernels.NOTED]:
            self.passes.append(now)


class Once(Resets):
    """What was used is forgotten at given instants."""

    def after(self, second: int) -> int:
        return min((each for each in given_resets if each > second), default=FOREVER)


given_resets: list[int] = []


def minutes_of(jobs: list[naive.Job], cluster: naive.Cluster, limits: int) -> MinuteRules:
    """How minutes are counted."""
    keeps = np.zeros(limits, np.bool_)
    keeps[: len(cluster.limits)] = [limit.keeps for limit in cluster.limits]
    given_resets[:] = cluster.resets
    return MinuteRules(
        factor=np.array([job.factor for job in jobs]),
        keeps=keeps,
        begin=0,
        resets=Once(),
    )


def preemption_of(rules: naive.Rules | None, nodes: int) -> Preemption | NoPreemption:
    """The same for the package."""
    if rules is None:
        return NOBODY
    groups = max(rules.group) + 1
    may = [[(a, b) in rules.may for b in range(groups)] for a in range(groups)]
    modes = {"keep": "off", "kill": "requeue", "cancel": "cancel", "suspend": "suspend"}
    parameters = Slurm(
        select_type="linear" if rules.linear else "cons_tres",
        preempt_youngest_first=rules.youngest,
        preempt_strict_order=rules.strict,
        preempt_reorder_count=rules.reorder,
        kill_wait=rules.patience,
        message_timeout=0,
    )
    return preemption_arrays(
        parameters,
        nodes,
        group=np.array(rules.group),
        may=np.array(may, np.uint8),
        level=np.array(rules.level),
        mode=np.array([MODES.index(modes[way]) for way in rules.way]),
        exempt=np.array(
            [0 if way == "suspend" else time for way, time in zip(rules.way, rules.exempt, strict=True)]
        ),
    )


def compare_preemptions(seed: int, whole: str) -> list[int]:
    """Compare one case with preemption: first starts, who gave way, for whom and when; how, by kind."""
    jobs, cluster, passes = draw(np.random.default_rng(seed), whole, preempting=True)
    assert cluster.rules is not None
    twin = naive.Controller(jobs, cluster)
    twin.work(passes)
    outcome = controller_of(jobs, cluster).follow(passes)
    assert [tuple(each)[:3] for each in outcome.preemptions.tolist()] == [
        (j, by, now) for j, by, now in twin.given_way
    ], seed
    ran = [*twin.killed, *twin.started.items()]
    first = {j: min(done.time for k, done in ran if k == j) for j, _ in ran}
    assert {j: int(start) for j, start in enumerate(outcome.start) if start >= 0} == first, seed
    where = {j: sorted(done.nodes) for j, done in twin.started.items()}
    assert {j: outcome.nodes_of(j, jobs[j].nodes) for j in where} == where, seed
    ended = {j: twin.started[j].time + twin.slept[j] + jobs[j].run for j in twin.ended}
    last = {int(each["job"]): int(each["end"]) for each in outcome.executions}
    assert {j: last[j] for j in ended} == ended, seed
    modes = outcome.preemptions["mode"].tolist()
    return [modes.count(mode) for mode in range(len(MODES))]


def compare(
    seed: int, whole: str, minutes: bool = False, interrupted: bool = False, fifo: bool = False
) -> tuple[int, int, int, int]:
    """Compare one case; how many jobs started, were killed, were killed since minutes were used up.

    And how many components of heterogeneous jobs started.
    """
    rng = np.random.default_rng(seed)
    jobs, cluster, drawn = draw(rng, whole, minutes=minutes)
    if fifo:
        cluster.fifo, cluster.tiers = True, [0] * len(cluster.tiers)
        drawn = [(now, kind) for now, kind in drawn if kind != BACKFILL]
    passes: list[tuple[int, ...]] = list(drawn)
    if interrupted:
        passes = [
            (now, kind, int(rng.choice([1, 1, 2, END]))) if kind == BACKFILL else (now, kind)
            for now, kind in drawn
        ]
    twin = naive.Controller(jobs, cluster)
    twin.work(passes)
    expected = [*twin.killed, *twin.started.items()]
    noted = Noted()
    controller = controller_of(jobs, cluster)
    controller.watch = noted
    if interrupted:
        for now, kind, *most in passes:
            controller.process_events(now - 1)
            controller.run_pass(now, kind % 2, most[0] if most else (cluster.depth + 1) * (kind // 2))
    outcome = controller.follow([] if interrupted else drawn)
    assert noted.passes == sorted(set(twin.noted)), seed
    found = [
        (int(job), int(start), sorted(outcome.placed[first : first + jobs[job].nodes].tolist()))
        for job, start, _, first, _ in outcome.executions
    ]
    assert found == sorted((j, done.time, sorted(done.nodes)) for j, done in expected), seed
    never_killed = {j: done.by for j, done in twin.started.items() if outcome.killed[j] == 0}
    assert {j: int(outcome.by[j]) for j in never_killed} == never_killed, seed
    assert outcome.timed_out == len(twin.over)
    parts = sum(jobs[j].hetjob >= 0 for j in twin.started)
    return len(found), len(twin.killed), len(twin.over), parts


@pytest.mark.random_cases(200)
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_every_start_is_that_of_the_naive_twin(whole: str, seed: int) -> None:
    compare(seed, whole)


@pytest.mark.random_cases(160)
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_who_gives_way_is_as_in_the_naive_twin(whole: str, seed: int) -> None:
    compare_preemptions(seed, whole)


@pytest.mark.random_cases(120)
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_minutes_are_kept_as_in_the_naive_twin(whole: str, seed: int) -> None:
    compare(seed, whole, minutes=True)


@pytest.mark.random_cases(120)
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_passes_are_interrupted_as_in_the_naive_twin(whole: str, seed: int) -> None:
    compare(seed, whole, interrupted=True)


@pytest.mark.random_cases(120)
@pytest.mark.parametrize("whole", ["all", "some"])
def test_jobs_come_by_their_records_as_in_the_naive_twin(whole: str, seed: int) -> None:
    compare(seed, whole, fifo=True)


def test_cases_hold_what_they_are_to_compare() -> None:
    """Jobs that start, are killed, use up minutes, and each way to give way."""
    started, killed, _, parts = np.sum([compare(seed, "some") for seed in range(130)], axis=0)
    assert started > 500
    assert killed > 10
    assert parts > 10
    counts = np.sum([compare(seed, "some", minutes=True) for seed in range(100)], axis=0)
    assert counts[2] > 5
    kinds = np.sum([compare_preemptions(seed, "some") for seed in range(160)], axis=0)
    assert (kinds[1:] > 4).all()


class Passes(Noted):
    """When backfill passes are made."""

    def __call__(self, controller: Controller, now: int, kind: int) -> None:
        if kind == BACKFILL:
            self.passes.append(now)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        # nothing is noted: the scheduler looks each second whether something has happened
        ([], 205),
        # a plan had to be pushed behind another one, so that a pass followed each interval after the other
        ([naive.Job(submit=2, run=1, limit=100, nodes=2, whole=True)], 210),
        # a job waits behind the first one, as each pass over the whole queue (at 180 s) notes
        ([naive.Job(submit=2, run=1, limit=500, nodes=1, whole=True)], 210),
    ],
)
def test_when_backfilling_follows_an_arrival(others: list[naive.Job], expected: int) -> None:
    first = [naive.Job(submit=0, run=run, limit=run, nodes=1, whole=True) for run in (1000, 2000)]
    wide = naive.Job(submit=1, run=1, limit=100, nodes=2, whole=True)
    jobs = [*first, wide, *others, wide._replace(submit=205)]
    cluster = naive.Cluster(nodes=[naive.Node(1, 1, 0)] * 2, partitions=[{0, 1}], tiers=[0])
    controller = controller_of(jobs, cluster)
    controller.watch = watch = Passes()
    controller.work()
    assert next(now for now in watch.passes if now >= 200) == expected
