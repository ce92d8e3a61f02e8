"""Clusters of nodes: the engine does what the naive simulator does, in random cases of every kind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gridsched.engine.job_lifecycle import Fate, Requeue
from gridsched.engine.nodes import arrays, simulation
from gridsched.engine.nodes.records import (
    EVENT,
    JOB,
    LIMIT,
    NODE,
    TYPICAL,
    WINDOW,
    EventKind,
    Placement,
)
from gridsched.engine.records import FOREVER, LABELS, Backfilling, Correction, Overrun, Prediction
from gridsched.policies.scores import SCORE, largest_expansion_factor
from tests.oracles import nodes as oracle
from tests.oracles.users import NEVER
from tests.support.engine import lifecycles


def _jobs(jobs: list[oracle.Job], cluster: oracle.Simulation) -> Any:
    records = np.zeros(len(jobs), JOB)
    for record, job in zip(records, jobs, strict=True):
        for name in (
            "submit",
            "units",
            "cores",
            "memory",
            "gpus",
            "share",
            "whole",
            "where",
            "user",
        ):
            record[name] = getattr(job, name)
        record["work"], record["guess"], record["given"] = job.run, job.estimate, job.estimate
        record["run"], record["estimate"] = cluster.length(job.run), cluster.length(job.estimate)
        record["limit"], record["predicted"] = cluster.length(job.estimate), job.estimate
        record["most"] = min(job.most, job.units)
        record["affinity"] = job.kind
    records["entry"] = records["piece"] = records["start"] = records["end"] = -1
    records["plan"] = FOREVER
    asked = ["units", "cores", "memory", "gpus", "share", "most", "whole", "where"]
    records["shape"] = np.unique(records[asked], return_inverse=True)[1]
    return records


def _events(events: list[oracle.Event]) -> tuple[Any, Any]:
    windows = [event for event in events if event.kind == "window"]
    found = []
    for event in events:
        if event.kind == "window":
            w = windows.index(event)
            found += [
                (event.time, event.node, EventKind.ANNOUNCE, w),
                (event.start, event.node, EventKind.CLOSE, w),
                (event.end, event.node, EventKind.OPEN, w),
            ]
        else:
            found.append((event.time, event.node, EventKind[event.kind.upper()], -1))
    found.sort(key=lambda each: each[0])
    return np.array(found, EVENT), np.array([(w.node, w.start, w.end, -1) for w in windows], WINDOW)


def _keys(order: str, jobs: Any) -> Any:
    size = jobs["units"] * jobs["cores"]
    return np.asarray({"shortest": jobs["estimate"], "smallest": size}.get(order, 0 * size), np.float64)


def simulate(cluster: oracle.Simulation, events: list[oracle.Event], room: int = 3) -> arrays.NodeArrays:
    """What the engine makes of the cluster of the oracle."""
    policy = cluster.policy
    jobs = _jobs(cluster.jobs, cluster)
    nodes = np.zeros(len(cluster.nodes), NODE)
    for record, node in zip(nodes, cluster.nodes, strict=True):
        for name in node._fields:
            record[name] = getattr(node, name)
    allowed = np.array([[n in row for n in range(len(nodes))] for row in cluster.allowed])
    groups = max((len(job.groups) for job in cluster.jobs), default=0)
    limited = np.full((len(jobs), groups), -1, np.int64)
    for row, job in zip(limited, cluster.jobs, strict=True):
        row[: len(job.groups)] = job.groups
    a = arrays.allocate(
        jobs,
        np.zeros(len(jobs), LABELS),
        int(jobs["user"].max(initial=-1)) + 1,
        nodes,
        allowed,
        (_keys(str(policy.order), jobs), _keys(policy.backfill_order, jobs)),
        *_events(events),
        lifecycles(cluster.jobs, [j for j, fate in cluster.users.fate.items() if fate == "rejected"]),
        np.array([(*limit, 0, 0, 0) for limit in cluster.limits], LIMIT),
        limited,
        np.array([tuple(kind) for kind in cluster.typical], TYPICAL),
    )
    options = arrays.NodeOptions(
        backfilling=int(Backfilling[policy.backfilling.upper()]),
        reservations=policy.reservations,
        overrun=int(Overrun[policy.overrun.upper()]),
        prediction=int(Prediction[policy.prediction.upper()]),
        correction=int(Correction[policy.correction.upper()]),
        changing=policy.order == "lxf",
        queue_as_order=policy.backfill_order == "queue",
        shortest_first=policy.backfill_order == "shortest",
        placement=int(Placement[policy.placement.upper()]),
        track=cluster.track,
        requeue=int(Requeue[policy.requeue.upper()]),
        interval=policy.interval,
        cost=policy.cost,
        seed=0,
    )
    score = SCORE.compile(largest_expansion_factor)
    while not simulation.schedule(a, options, score):
        a = arrays.with_room(a, max(room, int(a.store["short"][0])))
    return a


def _executions(a: arrays.NodeArrays) -> list[oracle.Execution]:
    found = a.executions[: a.store["executions"][0]]
    columns: Any = [found[name].tolist() for name in ("job", "node", "units", "cores", "memory")]
    devices = [
        tuple((d, share) for d in range(62) if bits >> d & 1)
        for bits, share in zip(found["devices"].tolist(), found["share"].tolist(), strict=True)
    ]
    columns += [devices, found["start"].tolist(), found["end"].tolist()]
    return sorted(oracle.Execution(*row) for row in zip(*columns, strict=True))


_FATES = {
    "completed": Fate.COMPLETED,
    "rejected": Fate.REJECTED,
    "gave up": Fate.GAVE_UP,
    "never eligible": Fate.NEVER_ELIGIBLE,
    "lost": Fate.LOST,
    "starved": Fate.COMPLETED,
}


def compare(cluster: oracle.Simulation, events: list[oracle.Event]) -> None:
    """Check that engine and oracle come to the same."""
    a = simulate(cluster, events)
    cluster.simulate()
    assert _executions(a) == sorted(cluster.executions)
    assert a.lifecycles.jobs["fate"].tolist() == [int(_FATES[fate]) for fate in cluster.fate]
    assert a.jobs["killed"].tolist() == cluster.kills
    assert a.jobs["extra"].tolist() == cluster.extra
    assert a.state["corrections"][0] == cluster.corrections
    # one that gives up in the second in which it could enter the queue need not have been predicted
    stayed = [j for j, fate in enumerate(cluster.fate) if fate != "gave up"]
    assert a.jobs["predicted"][stayed].tolist() == [cluster.predicted[j] for j in stayed]


CAPABILITIES = ("partitions", "limits", "impatient", "dependent", "failures", "predicting")


# --- random cases ---------------------------------------------------------------------------------


def _some_nodes(draw: random.Random) -> list[oracle.Node]:
    return [
        oracle.Node(
            draw.randint(1, 8), draw.choice([0, 4, 16]), draw.choice([0, 0, 1, 2, 4]), draw.choice([0.0, 1.0])
        )
        for _ in range(draw.randint(1, 5))
    ]


def _some_job(draw: random.Random, now: int, index: int, options: dict[str, Any]) -> oracle.Job:
    run = draw.choice([0, draw.randint(1, 9), draw.randint(1, 40)])
    job = oracle.Job(now, run, max(1, draw.choice([run, run, 2 * run, run // 2, run + 7])))
    job.units = draw.choice([1, 1, draw.randint(1, 10)])
    job.cores = draw.choice([1, 1, 2, 4])
    job.memory = draw.choice([0, 0, 1, 2])
    job.gpus = draw.choice([0, 0, 0, 1, 2])
    if draw.random() < 0.2:
        job.gpus, job.share, job.most, job.units = 0, draw.choice([200, 500, 700]), 1, draw.randint(1, 2)
    elif draw.random() < 0.3:
        job.most = draw.choice([1, 2])
    job.whole = draw.random() < 0.15 and not job.share
    job.kind = draw.randint(0, 2) if job.gpus or job.share else -1
    job.where = draw.randrange(options["rows"])
    job.failed = draw.random() < 0.2
    if options["impatient"] and draw.random() < 0.4:
        job.gives_up = now + draw.randint(0, 25)
    if options["dependent"] and index and draw.random() < 0.4:
        kinds = ["after", "afterany", "afterok", "afternotok"]
        for on in draw.sample(range(index), min(index, draw.choice([1, 1, 2]))):
            job.after.append((on, draw.choice(kinds), draw.choice([0, 0, 3])))
    if options["predicting"]:
        job.user = draw.choice([-1, 0, 1, 1])
    if options["limits"]:
        job.groups = draw.sample(range(options["limits"]), draw.randint(0, options["limits"]))
    return job


def _some_events(draw: random.Random, nodes: int) -> list[oracle.Event]:
    found = []
    for _ in range(draw.randint(1, 4)):
        n, time = draw.randrange(nodes), draw.randint(0, 50)
        kind = draw.choice(["down", "drain", "window"])
        if kind == "window":
            start = time + draw.randint(0, 20)
            found.append(oracle.Event(time, n, "window", start, start + draw.randint(1, 15)))
        else:
            found.append(oracle.Event(time, n, kind))
            back = {"down": "up", "drain": "resume"}[kind]
            if draw.random() < 0.8:
                found.append(oracle.Event(time + draw.randint(1, 20), n, back))
    return sorted(found, key=lambda event: event.time)


def some_case(
    seed: int, wanted: tuple[str, ...] = (), placement: str = "", *, plans: bool = False
) -> tuple[oracle.Simulation, list[oracle.Event]]:
    """A cluster with its workload, and what happens to it; with `plans` many jobs with a reservation each."""
    draw = random.Random(seed)
    failures = "failures" in wanted
    nodes = _some_nodes(draw)
    rows = draw.choice([1, 2, 3]) if "partitions" in wanted else 1
    allowed = [set(range(len(nodes)))]
    for _ in range(rows - 1):
        allowed.append(set(draw.sample(range(len(nodes)), draw.randint(1, len(nodes)))))
    limits = draw.randint(1, 3) if "limits" in wanted else 0
    options = {
        "rows": rows,
        "impatient": "impatient" in wanted,
        "dependent": "dependent" in wanted,
        "limits": limits,
        "predicting": "predicting" in wanted,
    }
    now, jobs = 0, []
    many = plans or wanted == ("predicting",)
    for index in range(draw.randint(20, 40) if many else draw.randint(1, 14)):
        now += draw.choice([0, draw.randint(0, 8)])
        jobs.append(_some_job(draw, now, index, options))
    easy = draw.random() < 0.4
    backfilling = "easy" if easy else draw.choice(["none", "first_fit", "easy", "conservative"])
    backfilling = "conservative" if plans else backfilling
    policy = oracle.Policy(
        order=draw.choice(["fcfs", "fcfs", "shortest", "smallest", "lxf"]),
        backfilling=backfilling,
        reservations=draw.choice([1, 1, 2, 3]) if backfilling == "easy" else 1,
        backfill_order=draw.choice(["queue", "shortest"])
        if backfilling in ("easy", "first_fit")
        else "queue",
        placement=placement or draw.choice(["first_fit", "best_fit", "worst_fit", "spread"]),
        requeue=draw.choice(["place", "end", "lost"]),
        interval=draw.choice([0, 0, 4, 10]) if failures else 0,
        cost=draw.choice([0, 1, 2]),
        overrun=draw.choice(["doubling", "doubling", "increments"]),
    )
    if wanted == ("predicting",) or ("predicting" in wanted and not plans and draw.random() < 0.4):
        correction = draw.choice(["doubling", "requested", "increments"])
        policy = policy._replace(
            order="fcfs", backfilling="easy", reservations=1, prediction="recent", correction=correction
        )
    events = _some_events(draw, len(nodes)) if failures else []
    typical = [
        oracle.Typical(draw.choice([1, 2, 4]), gpus, share, 0, 0.25)
        for gpus, share in ((0, 0), (1, 300), (1, 1000), (2, 1000))
    ]
    cluster = oracle.Simulation(
        nodes,
        jobs,
        policy,
        allowed=allowed,
        events=events,
        limits=[
            oracle.Limit(draw.randint(1, 4), draw.choice([4, 12, NEVER]), draw.choice([200, 10**9]))
            for _ in range(limits)
        ],
        typical=typical,
    )
    return cluster, events


@pytest.mark.random_cases(40)
@pytest.mark.parametrize("placement", [name.lower() for name in Placement.__members__ if name != "RANDOM"])
def test_placements(placement: str, seed: int) -> None:
    """Under each placement, every job gets the nodes and GPUs that the naive simulator gives it."""
    compare(*some_case(seed, placement=placement))


@pytest.mark.random_cases(200)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_capabilities(capability: str, seed: int) -> None:
    """Partitions, limits, users who give up, dependencies and failures, one at a time."""
    compare(*some_case(seed, (capability,)))


@pytest.mark.random_cases(15)
@pytest.mark.parametrize("wanted", [(), ("partitions",), ("failures",), CAPABILITIES])
def test_plans_of_long_queues(wanted: tuple[str, ...], seed: int) -> None:
    """Under conservative backfilling the earliest place is found among many plans."""
    compare(*some_case(seed, wanted, plans=True))


@pytest.mark.random_cases(400)
def test_all_at_once(seed: int) -> None:
    """Everything that can happen in one workload."""
    compare(*some_case(seed, CAPABILITIES))
