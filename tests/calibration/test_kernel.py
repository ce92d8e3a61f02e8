"""The replay kernel beside a plain one, and beside the engine where no layer is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridsched as gs
from gridsched.calibration import kernel
from gridsched.calibration.layers import ORDERS, simulated_waits
from gridsched.calibration.site import site_of
from gridsched.engine.records import FOREVER
from tests.calibration.logs import log, site
from tests.oracles import calibration as oracle

NAMES = {
    "none": kernel.NONE,
    "first fit": kernel.FIRST_FIT,
    "easy": kernel.EASY,
    "shortest first": kernel.SHORTEST_FIRST,
    "conservative": kernel.CONSERVATIVE,
}


def case(rng: np.random.Generator) -> tuple[list[oracle.Job], oracle.Site, oracle.Policy]:
    """A few jobs, shares that bind, and outages."""
    count, users, queues = int(rng.integers(2, 30)), 3, 2
    size = int(rng.integers(2, 9))
    unit = int(rng.choice([1, 300, 1800]))
    jobs = []
    for _ in range(count):
        submit = unit * int(rng.integers(0, 40))
        eligible = submit + (unit * int(rng.integers(0, 6)) if rng.random() < 0.3 else 0)
        run = unit * int(rng.integers(1, 12))
        estimate = max(1, int(run * rng.choice([0.5, 1.0, 2.0])))
        user, queue = (int(rng.integers(0, most)) for most in (users, queues))
        score = float(rng.integers(0, 3)) if rng.random() < 0.3 else 0.0
        processors, is_long = int(rng.integers(1, size + 1)), int(rng.random() < 0.5)
        jobs.append(oracle.Job(submit, eligible, run, estimate, processors, user, queue, score, is_long))
    jobs.sort(key=lambda job: job.eligible)
    if rng.random() < 0.3:
        # some run already when the first of the others comes
        first = jobs[0].eligible
        jobs[:0] = [
            each._replace(begun=max(0, first - unit * int(rng.integers(0, 4))), processors=1)
            for each in jobs[: int(rng.integers(1, 3))]
        ]

    def limit(most: int) -> int:
        return int(rng.integers(1, most + 1)) if rng.random() < 0.4 else FOREVER

    long = np.full(168, FOREVER, np.int64)
    if rng.random() < 0.4:
        long[rng.random(168) < 0.3] = max(1, size // 2)
    capacity = [(-1, size)]
    if rng.random() < 0.5:
        begin = unit * int(rng.integers(0, 60))
        capacity += [(begin, int(rng.integers(0, size))), (begin + unit * int(rng.integers(1, 20)), size)]
    site = oracle.Site(
        queue_processors=[limit(size) for _ in range(queues)],
        long_processors=long.tolist(),
        capacity=capacity,
    )
    policy = oracle.Policy(
        backfilling=str(rng.choice(list(NAMES))),
        age=float(rng.choice([0.0, 1.0])),
        expansion=float(rng.choice([0.0, 1.0])),
        notice=int(rng.choice([0, 10 * unit])),
        week=int(rng.integers(0, 168 * 3600)),
    )
    return jobs, site, policy


def starts(jobs: list[oracle.Job], site: oracle.Site, policy: oracle.Policy) -> list[int]:
    columns = dict(zip(oracle.Job._fields, zip(*jobs, strict=True), strict=True))
    whole = kernel.ReplayJobs(
        **{
            name: np.array(column, np.float64 if name == "score" else np.int64)
            for name, column in columns.items()
        }
    )
    rules = kernel.SiteRules(
        *(np.array(each) for each in site[:-1]),
        *(np.array(column, np.int64) for column in zip(*site.capacity, strict=True)),
    )
    numbers = kernel.Numbers(
        backfilling=NAMES[policy.backfilling],
        age=policy.age,
        expansion=policy.expansion,
        fair=0.0,
        half_life=1.0,
        notice=policy.notice,
        week=policy.week,
        most=len(jobs),
    )
    return [int(each) for each in kernel.replay(whole, rules, numbers)]


@pytest.mark.random_cases(8)
def test_starts_are_those_of_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        given = case(rng)
        assert starts(*given) == oracle.replay(*given), given


@pytest.mark.parametrize("policy", ORDERS)
def test_without_layers_policies_are_those_of_the_engine(policy: str) -> None:
    jobs = log(600, seed=3)
    run = gs.simulate(jobs, 32, policy)
    waits = simulated_waits(site(jobs), {}, order=ORDERS[policy])
    assert waits.tolist() == (run["start_time"].values - jobs.submit_time).tolist()


@pytest.mark.parametrize("policy", ORDERS)
def test_on_nodes_policies_are_those_of_the_engine(policy: str) -> None:
    jobs = log(400, seed=3)
    jobs = replace(jobs, partition=jobs.queue, requested_memory=np.full(400, 2**20))
    nodes = [gs.NodeType(name=name, count=2, cores=8, memory=6 * 2**10) for name in "ab"]
    partitions = [gs.Partition(number=1, nodes=["a"]), gs.Partition(number=2, nodes=["a", "b"])]
    cluster = gs.Cluster(nodes=nodes, partitions=partitions)
    run = gs.simulate(jobs, cluster, policy)
    whole = site_of(jobs, cluster)
    waits = simulated_waits(whole, {}, order=ORDERS[policy])
    assert waits.tolist() == (run["start_time"].values - jobs.submit_time).tolist()
    # a job that is held keeps its place in the order of submission
    held = np.where(np.arange(400) == 4, 7200, 0)
    late = simulated_waits(whole, {}, order=ORDERS[policy], held=held)
    assert late[4] >= 7200
    assert (late[:4] == waits[:4]).all()


def without_limits(processors: int) -> kernel.SiteRules:
    """What jobs may have where nothing is limited."""
    return kernel.SiteRules(
        queue_processors=np.full(1, FOREVER),
        long_processors=np.full(168, FOREVER),
        times=np.array([-1]),
        capacity=np.array([processors]),
    )


def test_a_replay_that_piles_up_is_given_up() -> None:
    submit = np.arange(0, 1000, 10)
    many = kernel.ReplayJobs(
        submit=submit,
        eligible=submit,
        run=np.full(100, 10_000),
        estimate=np.full(100, 10_000),
        processors=np.ones(100, np.int64),
        user=np.zeros(100, np.int64),
        queue=np.zeros(100, np.int64),
        score=np.zeros(100),
        long=np.zeros(100, np.int64),
        begun=np.full(100, -1),
    )
    rules = without_limits(2)
    numbers = kernel.Numbers(kernel.EASY, 1.0, 0.0, 0.0, 1.0, 0, 0, 20)
    assert (kernel.replay(many, rules, numbers) < 0).sum() == 98
    assert (kernel.replay(many, rules, numbers._replace(most=100)) >= 0).all()


def test_who_had_much_comes_later() -> None:
    # user 0 has the cluster for long; then both ask for all of it, user 0 first
    submit = np.array([0, 50_000, 50_001])
    whole = kernel.ReplayJobs(
        submit=submit,
        eligible=submit,
        run=np.array([60_000, 100, 100]),
        estimate=np.array([60_000, 100, 100]),
        processors=np.array([4, 4, 4]),
        user=np.array([0, 0, 1]),
        queue=np.zeros(3, np.int64),
        score=np.zeros(3),
        long=np.zeros(3, np.int64),
        begun=np.full(3, -1),
    )
    rules = without_limits(4)
    plain = kernel.Numbers(kernel.EASY, 1.0, 0.0, 0.0, 86400.0, 0, 0, 10)
    assert kernel.replay(whole, rules, plain).tolist() == [0, 60_000, 60_100]
    fair = plain._replace(fair=10.0)
    assert kernel.replay(whole, rules, fair).tolist() == [0, 60_100, 60_000]
    # what user 1 had before the replay began counts too
    assert kernel.replay(whole, rules, fair, np.array([0.0, 10**7])).tolist() == [0, 60_000, 60_100]
