"""Grid schedulers on clusters of nodes: they do what naive grids of naive clusters do, in random cases."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.nodes import PLACEMENTS, Limit, NodeEvent, NodeType, Partition
from gridsched.policies.local import LocalPolicy
from gridsched.prediction.options import PredictorOptions
from gridsched.systems import grids
from gridsched.systems.jscheduler.retraining import retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, draw_samples_of
from gridsched.systems.multiple_requests.scheduler import MultipleRequests
from gridsched.systems.superscheduler.scheduler import Superscheduler
from gridsched.workloads.dependencies import dependency_table
from tests.oracles import grid as naive
from tests.oracles.grid import METRICS, SCHEMES, SelfScheduling
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.node_cases import CAPABILITIES, FATES, check, some_case
from tests.support.nodes import crowd, jobs_of

WANTED: list[tuple[str, ...]] = [(), *((each,) for each in CAPABILITIES), CAPABILITIES]


def superscheduler_case(seed: int, scheme: str, wanted: tuple[str, ...]) -> None:
    """Compare a superscheduler with the oracle."""
    case, draw = some_case(seed, wanted), random.Random(seed + 10**6)
    count = len(case.sites)
    parameters: dict[str, Any] = {
        "phi": draw.choice([1, 1, 2, 5, 20]),
        "sigma": draw.choice([2, 5, 10, 30]),
        "delta": draw.choice([0.25, 0.5, 0.7, 1.0]),
        "epsilon": draw.choice([0.0, 0.5, 1.0, 10.0]),
        "message_delay": draw.choice([0, 0, 0, 1, 4]),
        "migration_delay": draw.choice([0, 0, 3]),
        "transfers": draw.choice(["one", "all"]),
        "no_gain": draw.choice(["wait", "ask"]),
        "busy": draw.choice(["now", "interval"]),
        "standing": draw.choice(["until-check", "until-check", "at-check"]),
    }
    predictions: Any = draw.choice(["exact", "exact", "plan"])
    others = [set(range(count)) - {m} for m in range(count)]
    partners = [set(draw.sample(range(count), draw.randint(0, count))) for _ in range(count)]
    partners = others if draw.random() < 0.6 else [some - {m} for m, some in enumerate(partners)]
    silent: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    if draw.random() < 0.2:
        begin = draw.randint(0, 30)
        silent[draw.randrange(count)] = [(begin, begin + draw.randint(1, 40))]
    chosen: Any = scheme
    run = gs.simulate(
        case.workload,
        case.platform,
        Superscheduler(
            scheme=chosen,
            predictions=predictions,
            partners={f"c{m}": [f"c{k}" for k in sorted(some)] for m, some in enumerate(partners)},
            silent={f"c{m}": each for m, each in enumerate(silent) if each},
            **parameters,
        ),
        overrun=case.overrun,
    )
    options = naive.Options(scheme, partners=partners, silent=silent, **parameters)
    check(run, naive.Superscheduler(case.jobs, case.sites, predictions, options).simulate())


@pytest.mark.random_cases(12)
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_superschedulers(scheme: str, wanted: tuple[str, ...], seed: int) -> None:
    superscheduler_case(seed, scheme, wanted)


def jscheduler_case(seed: int, metric: Any, wanted: tuple[str, ...]) -> None:
    """Compare jobs that schedule themselves with the oracle."""
    case, draw = some_case(seed, wanted, homeless=True), random.Random(seed + 10**6)
    k, predictions = draw.choice([1, 2, 3]), draw.choice(["exact", "exact", "plan"])
    chosen: Any = predictions
    run = gs.simulate(
        case.workload,
        case.platform,
        JScheduler(metric=metric, k=k, predictions=chosen),
        overrun=case.overrun,
        seed=seed,
    )
    grid = SelfScheduling(case.jobs, case.sites, predictions)
    count, number = len(case.sites), len(case.jobs)

    def held(m: int) -> Any:
        return np.array([grid.fits(j, m) for j in range(number)])

    processors, home = np.ones(number, np.int64), np.full(number, -1, np.int16)
    samples = draw_samples_of(held, processors, count, JScheduler(k=k), seed, home)
    check(run, grid.simulate([[int(m) for m in row if m >= 0] for row in samples], [metric] * number))


@pytest.mark.random_cases(12)
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("metric", METRICS)
def test_jscheduler(metric: str, wanted: tuple[str, ...], seed: int) -> None:
    jscheduler_case(seed, metric, wanted)


def multiple_requests_case(seed: int, priority: Any, wanted: tuple[str, ...]) -> None:
    """Compare jobs that wait on several clusters with the oracle."""
    dual = priority == "home"
    case = some_case(seed, wanted, () if dual else ("lxf",))
    k = random.Random(seed).choice([1, 2, 3])
    run = gs.simulate(
        case.workload, case.platform, MultipleRequests(k=k, priority=priority), overrun=case.overrun
    )
    check(run, naive.MultipleRequests(case.jobs, case.sites, k=k, home_first=dual).simulate())


@pytest.mark.random_cases(12)
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("priority", ["equal", "home"])
def test_multiple_requests(priority: str, wanted: tuple[str, ...], seed: int) -> None:
    multiple_requests_case(seed, priority, wanted)


# --- by hand --------------------------------------------------------------------------------------


NEVER_MIND = NodeEvent(time=10**7, node="node0", kind="drain")
"""An event that touches nobody makes nodes matter."""


def two_sites(policy: str | LocalPolicy, node: int, **south: Any) -> list[gs.Platform]:
    """The same clusters, as numbers of processors and as nodes."""
    clusters = [
        gs.Cluster(name=name, processors=64, processors_per_node=node, policy=policy, **more)
        for name, more in (("north", {}), ("south", {"speed": 2.0, **south}))
    ]
    return [gs.Platform(clusters), gs.Platform([replace(each, events=[NEVER_MIND]) for each in clusters])]


@pytest.mark.parametrize("scheduler", ["central", "s-i", "r-i", "sy-i", "jscheduler", "multiple-requests"])
@pytest.mark.parametrize(
    ("policy", "node"),
    [("fcfs", 4), ("ff", 4), ("sjf", 4), ("easy", 64), ("sjbf", 64), ("lxf", 64), ("conservative", 64)],
)
def test_nodes_that_do_not_matter(policy: str, node: int, scheduler: str) -> None:
    """Without reservations, which name nodes, or on one node, jobs start as on as many processors."""
    plain, nodes = two_sites(policy, node)
    jobs = [crowd(k, 120, longest=400, widest=32) for k in (1, 2)]
    runs = [gs.simulate(jobs, platform, scheduler) for platform in (plain, nodes)]
    for run in runs:
        gs.verify(run)
    np.testing.assert_array_equal(runs[0]["start_time"], runs[1]["start_time"])


PREDICTING = [
    LocalPolicy(name="easy++", backfilling="easy", backfill_order="shortest", prediction="recent"),
    LocalPolicy(backfilling="easy", prediction="recent", correction="doubling"),
    LocalPolicy(backfilling="easy", prediction="recent", correction="requested"),
    LocalPolicy(order="shortest", backfilling="easy", prediction="double"),
    LocalPolicy(order="lxf", backfilling="easy", prediction="actual"),
    LocalPolicy(backfilling="conservative", prediction="double"),
]


@pytest.mark.parametrize("policy", PREDICTING, ids=[policy.name for policy in PREDICTING])
def test_predictions_on_a_node_are_those_on_processors(policy: LocalPolicy) -> None:
    """One node has the starts of as many processors, under local policies alone and as part of a grid."""
    jobs = [crowd(k, 120, longest=400, widest=32) for k in (7, 8)]
    plain, nodes = two_sites(policy, 64)
    expected = gs.simulate(jobs, plain, "local")
    assert (expected["predicted_run_time"] != expected["estimate"]).any()
    for platform, scheduler in ((nodes, "local"), (plain, Superscheduler(scheme="local"))):
        run = gs.simulate(jobs, platform, scheduler)
        gs.verify(run)
        for name in ("start_time", "predicted_run_time"):
            np.testing.assert_array_equal(run[name], expected[name])
        assert run.attrs["corrections"] == expected.attrs["corrections"]


def cost_of_waiting(wait: int, idle: int) -> float:
    """A cost of one's own."""
    return wait - idle


OUT_UNTIL_700 = [NodeEvent(time=0, kind="down"), NodeEvent(time=700, kind="up")]
WINDOW = NodeEvent(time=0, kind="maintenance", start=60, end=1000)
WINDOW_OF_ALL = NodeEvent(time=1, node="*", kind="maintenance", start=10, end=20)
FAILING_HOME = [NodeEvent(time=100, kind="down"), NodeEvent(time=5000, kind="up")]
DRAINED = [NodeEvent(time=0, node="node0", kind="drain")]
RANKED = gs.Cluster(
    name="a",
    nodes=[NodeType(cores=4)],
    partitions=[Partition(number=0), Partition(number=1, priority=5)],
    partition_of="queue",
    policy="sjf",
)
OF_QUEUES: dict[str, Any] = {
    "submit_time": [0, 1, 2],
    "run_time": [50, 10, 20],
    "requested_time": [50, 10, 20],
    "requested_processors": [4, 4, 4],
    "queue": [0, 0, 1],
    "home": [0, 0, 0],
}
KINDS = [NodeType(count=4, cores=4)]

BY_HAND: dict[str, tuple[dict[str, Any], list[gs.Cluster], list[Any], dict[str, Any]]] = {
    # Both clusters are down until 700: it is sent at the check at 900, or when its home is up again
    **{
        f"a job that nobody can start waits until {start}": (
            {"submit_time": [10], "run_time": [5], "requested_processors": [2], "home": [0]},
            [gs.Cluster(name=name, processors=4, events=OUT_UNTIL_700) for name in "ab"],
            schedulers,
            {"start_time": [start]},
        )
        for start, schedulers in (
            (900, ["central", "s-i", "r-i", "sy-i"]),
            (700, ["jscheduler", "multiple-requests"]),
        )
    },
    # The home of all jobs is down from 100 to 5000: what comes then runs elsewhere. Killed at 100, the first
    # job goes on at home from there
    "jobs flee from a cluster that fails": (
        {
            "submit_time": [0, 200, 300],
            "run_time": [150, 50, 50],
            "requested_time": [150, 50, 50],
            "requested_processors": [8, 4, 4],
            "home": [0, 0, 0],
        },
        [
            gs.Cluster(name="home", processors=8, events=FAILING_HOME, checkpoint_interval=10),
            gs.Cluster(name="away", processors=8),
        ],
        ["s-i"],
        {
            "start_time": [0, 200, 300],
            "end_time": [5050, 250, 350],
            "killed": [1, 0, 0],
            "jobs_transferred": 2,
        },
    ),
    # A job of 100 s is not started 50 s before maintenance of its home: it goes elsewhere
    "maintenance is planned around": (
        {
            "submit_time": [10, 11],
            "run_time": [100, 20],
            "requested_time": [100, 20],
            "requested_processors": [4, 4],
            "home": [0, 0],
        },
        [gs.Cluster(name="a", processors=4, events=[WINDOW]), gs.Cluster(name="b", processors=4)],
        [
            Superscheduler(scheme="s-i", predictions="exact"),
            Superscheduler(scheme="s-i", predictions="plan"),
        ],
        {"start_time": [10, 11], "segment_cluster": [0, 1]},
    ),
    # Jobs of the partition that comes first overtake the others, at home and elsewhere
    "partitions of priority": (
        OF_QUEUES,
        [RANKED],
        ["s-i", "jscheduler", "multiple-requests-dual"],
        {"start_time": [0, 70, 50]},
    ),
    "limits reject by reason": (
        {
            "submit_time": [0, 0],
            "run_time": [5, 5],
            "requested_processors": [6, 9],
            "user": [1, 1],
            "home": [1, 1],
        },
        [
            gs.Cluster(name="a", nodes=[NodeType(cores=8)], limits=[Limit(processors=4)]),
            gs.Cluster(name="b", nodes=[NodeType(cores=2)]),
        ],
        ["central"],
        {
            "jobs_rejected": 2,
            "rejected: over a limit of its group": 1,
            "rejected: no nodes that it may use can hold it": 1,
        },
    ),
    # Idle cores are those of nodes that are up
    "costs of one's own": (
        {"submit_time": [5], "run_time": [5], "requested_processors": [2]},
        [
            gs.Cluster(name="a", processors=12, processors_per_node=4, events=DRAINED),
            gs.Cluster(name="b", processors=10),
        ],
        [JScheduler(metric=cost_of_waiting, k=2)],
        {"segment_cluster": [1]},
    ),
    # The jobs of the first cluster are killed at 10 s, and all four come back before the last one, which runs
    # at the second one at 50 s
    "starts are predicted of jobs that maintenance kills": (
        {
            "submit_time": [0] * 5 + [5],
            "run_time": [100] * 4 + [50, 5],
            "requested_processors": [4] * 4 + [16, 1],
            "home": [0] * 4 + [1, 0],
        },
        [
            gs.Cluster(name="maintained", nodes=KINDS, policy="conservative", events=[WINDOW_OF_ALL]),
            gs.Cluster(name="busy", nodes=KINDS, policy="conservative"),
        ],
        ["s-i"],
        {"start_time": [0] * 5 + [50], "jobs_transferred": 1},
    ),
}
"""Jobs, clusters, schedulers, and variables of the run."""


@pytest.mark.parametrize(("columns", "clusters", "schedulers", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_runs_by_hand(
    columns: dict[str, Any], clusters: list[gs.Cluster], schedulers: list[Any], expected: dict[str, Any]
) -> None:
    for scheduler in schedulers:
        run = gs.simulate(jobs_of(**columns), gs.Platform(clusters), scheduler)
        gs.verify(run)
        assert_fields(run, **expected)


def no_number(idle: int) -> float:
    """No cost at all."""
    return math.nan if idle >= 0 else 0.0


@pytest.mark.parametrize(
    ("cluster", "scheduler", "complaint"),
    [
        (replace(RANKED, policy="lxf"), "s-i", "priorities"),
        (RANKED, JScheduler(metric=no_number, k=2), "index 0"),
    ],
)
def test_what_does_not_go_together_is_refused(cluster: gs.Cluster, scheduler: Any, complaint: str) -> None:
    with refused(complaint):
        gs.simulate(jobs_of(**OF_QUEUES), [cluster, replace(cluster, name="b")], scheduler)


@pytest.mark.parametrize("scheme", [*SCHEMES, "jscheduler", "multiple-requests"])
def test_what_is_never_up_again_starves(scheme: str) -> None:
    down = NodeEvent(time=0, kind="down")
    platform = gs.Platform([gs.Cluster(name=name, processors=4, events=[down]) for name in ("a", "b")])
    jobs = jobs_of(submit_time=[10, 20], run_time=[5, 5], requested_processors=[2, 8], home=[0, 1])
    delayed = Superscheduler(scheme="sy-i", message_delay=7, migration_delay=3, busy="interval")
    for scheduler in (Superscheduler(scheme="local") if scheme == "local" else scheme, delayed):
        run = gs.simulate(jobs, platform, scheduler)
        gs.verify(run)
        assert [FATES[fate] for fate in run["fate"].values] == ["starved", "rejected"]
        assert run.attrs["rejected: no nodes that it may use can hold it"] == 1


def test_run_times_are_learnt_from_jobs_that_ended_by_themselves() -> None:
    """Jobs that are killed, lost or given up leave the predictor without an end of their own."""
    rng = np.random.default_rng(7)
    jobs = crowd(8, 200, longest=400, widest=32, status=rng.choice([0, 1], 200))
    jobs = replace(
        jobs,
        gives_up_time=jobs.submit_time + rng.choice([50, 10**6], 200),
        dependencies=dependency_table([(k, k - 3, "afterok") for k in range(5, 200, 9)]),
    )
    down = [NodeEvent(time=t, node="node0", kind="down") for t in (500, 1500)]
    up = [NodeEvent(time=t, node="node0", kind="up") for t in (700, 1700)]
    for requeue in ("end", "lost"):
        chosen: Any = requeue
        clusters = [
            gs.Cluster(name=name, processors=64, processors_per_node=16, events=[*down, *up], requeue=chosen)
            for name in ("a", "b")
        ]
        done = retrained_schedule(
            [jobs],
            clusters,
            ["easy", "easy"],
            JScheduler(k=2),
            options=PredictorOptions(minimum_history=10, retrain_jobs=20),
            refresh=100,
        )
        assert done.counters["trainings"] > 0
        fates = {FATES[fate] for fate in done.variables["fate"][1]}
        assert {"completed", "gave up", "never eligible"} <= fates
        assert ("lost" in fates) == (requeue == "lost")


@pytest.mark.random_cases(10)
def test_arrays_grow_when_they_need_to(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(grids, "FIRST_ROOM", 1)
    superscheduler_case(seed, "sy-i", CAPABILITIES)
    jscheduler_case(seed, "wait", CAPABILITIES)
    multiple_requests_case(seed, "equal", CAPABILITIES)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_placements(placement: Any) -> None:
    rng = np.random.default_rng(1)
    kinds = [NodeType(count=2, cores=8, gpus=2, name="gpu"), NodeType(count=2, cores=8, name="cpu")]
    platform = gs.Platform([gs.Cluster(name=name, nodes=kinds, placement=placement) for name in ("a", "b")])
    share = rng.choice([-1, -1, 300, 600], 40)
    jobs = jobs_of(
        submit_time=np.sort(rng.integers(0, 400, 40)),
        run_time=rng.integers(1, 100, 40),
        requested_processors=rng.integers(1, 9, 40),
        requested_gpus=np.where(share < 0, rng.choice([-1, 1, 2], 40), -1),
        gpu_share=share,
        home=rng.integers(0, 2, 40),
    )
    run = gs.simulate(jobs, platform, "s-i")
    gs.verify(run)
    assert (run["start_time"] >= 0).mean() > 0.9
