"""Grid schedulers on clusters of nodes: they do what naive grids of naive clusters do, in random cases."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.nodes import Limit, NodeEvent, NodeType, Partition
from gridsched.policies.local import LocalPolicy
from gridsched.systems.superscheduler.scheduler import Superscheduler
from gridsched.workloads.dependencies import dependency_table
from tests.oracles import nodes as oracle
from tests.oracles.grid import SCHEMES, _Options
from tests.oracles.node_grid import NodeGridJob, SiteDescription, SuperschedulerOnNodes

MIB = 1024

FATES = ["completed", "rejected", "gave up", "never eligible", "lost", "starved"]


@dataclass
class Case:
    """A grid and its jobs, for the package and for the oracle."""

    workload: gs.Workload
    platform: gs.Platform
    jobs: list[NodeGridJob]
    sites: list[SiteDescription]
    overrun: str


def _asked(row: dict[str, int], kinds: list[oracle.Node], whole: bool) -> dict[str, Any]:
    """What a job asks for on a cluster."""
    size, spread, gpus = row["processors"], min(row["nodes"], row["processors"]), row["gpus"]
    share = row["share"]
    units, most = size, size
    if spread > 0:
        units, most = spread, 1
    elif gpus > max(kind.gpus for kind in kinds):
        units = most = gpus
    elif gpus > 0 or share > 0:
        units = most = 1
    cores = -(-size // units)
    return {
        "units": units,
        "cores": cores,
        "memory": row["memory"] * cores,
        "gpus": -(-gpus // units),
        "share": share,
        "most": 1 if share else most,
        "whole": whole,
    }


def _rows(draw: random.Random, clusters: int, wanted: tuple[str, ...]) -> list[dict[str, int]]:
    """Jobs as their users give them."""
    now, rows = 0, []
    for _ in range(draw.randint(1, 12)):
        now += draw.choice([0, draw.randint(0, 8)])
        run = draw.choice([0, draw.randint(1, 9), draw.randint(1, 40)])
        processors = draw.choice([1, 1, 2, draw.randint(1, 10)])
        row = {
            "submit": now,
            "run": run,
            "estimate": max(1, draw.choice([run, run, 2 * run, run // 2, run + 7])),
            "processors": processors,
            "nodes": draw.choice([-1, -1, -1, 1, 2]),
            "memory": draw.choice([0, 0, 1, 2]) * MIB,
            "gpus": draw.choice([0, 0, 0, 1, 2]),
            "share": 0,
            "queue": draw.randint(0, 2),
            "user": draw.randint(0, 2),
            "home": draw.randrange(clusters),
            "status": draw.choice([1, 1, 1, 0]),
            "gives_up": -1,
        }
        if draw.random() < 0.15:
            row["gpus"], row["share"], row["nodes"] = 0, draw.choice([300, 600]), -1
        if "impatient" in wanted and draw.random() < 0.4:
            row["gives_up"] = now + draw.randint(0, 25)
        rows.append(row)
    return rows


def _dependencies(draw: random.Random, jobs: int) -> list[tuple[int, int, str, int]]:
    found = []
    for job in range(1, jobs):
        if draw.random() < 0.4:
            kinds = ["after", "afterany", "afterok", "afternotok"]
            for on in draw.sample(range(job), min(job, draw.choice([1, 1, 2]))):
                found.append((job, on, draw.choice(kinds), draw.choice([0, 0, 3])))
    return found


def _events(draw: random.Random, names: list[str]) -> tuple[list[NodeEvent], list[oracle.Event]]:
    given, known = [], []
    for _ in range(draw.randint(0, 3)):
        n, time = draw.randrange(len(names)), draw.randint(0, 50)
        kind = draw.choice(["down", "down", "drain", "window"])
        if kind == "window":
            start = time + draw.randint(0, 20)
            end = start + draw.randint(1, 15)
            given.append(NodeEvent(time=time, node=names[n], kind="maintenance", start=start, end=end))
            known.append(oracle.Event(time, n, "window", start, end))
        else:
            back: Any = {"down": "up", "drain": "resume"}[kind]
            first: Any = kind
            given.append(NodeEvent(time=time, node=names[n], kind=first))
            known.append(oracle.Event(time, n, kind))
            if draw.random() < 0.8:
                later = time + draw.randint(1, 20)
                given.append(NodeEvent(time=later, node=names[n], kind=back))
                known.append(oracle.Event(later, n, back))
    return given, known


def _policy(draw: random.Random, order: str) -> dict[str, Any]:
    easy = draw.random() < 0.4
    backfilling = "easy" if easy else draw.choice(["none", "first_fit", "easy", "conservative"])
    sorted_ = backfilling in ("easy", "first_fit")
    return {
        "order": order,
        "backfilling": backfilling,
        "reservations": draw.choice([1, 1, 2]) if backfilling == "easy" else 1,
        "backfill_order": draw.choice(["queue", "queue", "shortest"]) if sorted_ else "queue",
    }


def some_case(seed: int, wanted: tuple[str, ...] = ()) -> Case:
    """A grid of up to three clusters with its jobs."""
    draw = random.Random(seed)
    count = draw.choice([1, 2, 2, 3])
    rows = _rows(draw, count, wanted)
    overrun = draw.choice(["doubling", "doubling", "increments"])
    needs = _dependencies(draw, len(rows)) if "dependent" in wanted else []
    users = sorted({row["user"] for row in rows})
    clusters, sites, asked, groups = [], [], [], []
    for m in range(count):
        kinds = [
            oracle.Node(draw.randint(1, 8), draw.choice([0, 4, 16]) * MIB, draw.choice([0, 0, 1, 2]))
            for _ in range(draw.randint(1, 4))
        ]
        names = [f"n{k}x0" for k in range(len(kinds))]
        events, known = _events(draw, names) if "failures" in wanted else ([], [])
        allowed = [set(range(len(kinds)))]
        partitions = []
        if "partitions" in wanted and draw.random() < 0.7:
            allowed.append(set(draw.sample(range(len(kinds)), draw.randint(1, len(kinds)))))
            partitions = [Partition(number=0), Partition(number=1, nodes=[names[n] for n in allowed[1]])]
        limits, given = [], []
        if "limits" in wanted and draw.random() < 0.7:
            jobs, cores = draw.choice([(1, None), (2, None), (3, 12)])
            given = [Limit(by="user", jobs=jobs, processors=cores, processor_minutes=draw.choice([None, 9]))]
            minutes = given[0].processor_minutes
            seconds = oracle.NEVER if minutes is None else 60 * minutes
            limits = [oracle.Limit(jobs, cores or oracle.NEVER, seconds)] * len(users)
        policy = _policy(draw, draw.choice(["fcfs", "fcfs", "shortest", "smallest", "lxf"]))
        placement: Any = draw.choice(["first_fit", "best_fit", "worst_fit", "spread"])
        requeue: Any = draw.choice(["place", "end", "lost"])
        interval, cost = draw.choice([0, 0, 4, 10]), draw.choice([0, 1, 2])
        speed, whole = draw.choice([1.0, 1.0, 2.0, 0.5, 0.7]), draw.random() < 0.15
        clusters.append(
            gs.Cluster(
                name=f"c{m}",
                nodes=[
                    NodeType(cores=k.cores, memory=k.memory // MIB, gpus=k.gpus, name=f"n{n}x")
                    for n, k in enumerate(kinds)
                ],
                node_exclusive=whole,
                speed=speed,
                policy=LocalPolicy(**policy),
                placement=placement,
                partitions=partitions,
                partition_of="queue",
                limits=given,
                events=events,
                requeue=requeue,
                checkpoint_interval=interval,
                checkpoint_cost=cost,
            )
        )
        sites.append(
            SiteDescription(
                kinds,
                oracle.Policy(
                    **policy,
                    placement=placement,
                    overrun=overrun,
                    requeue=requeue,
                    interval=interval,
                    cost=cost,
                ),
                speed,
                allowed,
                known,
                limits,
            )
        )
        asked.append([_asked(row, kinds, whole) for row in rows])
        for row, each in zip(rows, asked[-1], strict=True):
            each["where"] = row["queue"] if len(partitions) > row["queue"] else 0
            each["groups"] = [users.index(row["user"])] if limits else []
        groups.append(given)
    jobs = [
        NodeGridJob(
            row["home"],
            oracle.Job(
                row["submit"],
                row["run"],
                row["estimate"],
                failed=row["status"] == 0,
                gives_up=row["gives_up"] if row["gives_up"] >= 0 else oracle.NEVER,
                after=[(on, kind, delay) for job, on, kind, delay in needs if job == j],
            ),
            [each[j] for each in asked],
        )
        for j, row in enumerate(rows)
    ]

    def column(name: str) -> Any:
        return np.array([row[name] for row in rows])

    extra: dict[str, Any] = {}
    if "impatient" in wanted:
        extra["gives_up_time"] = column("gives_up")
    if "dependent" in wanted:
        extra["dependencies"] = dependency_table(needs)
    workload = gs.Workload(
        name=f"case{seed}",
        submit_time=column("submit"),
        run_time=column("run"),
        requested_time=column("estimate"),
        requested_processors=column("processors"),
        requested_nodes=column("nodes"),
        requested_memory=column("memory"),
        requested_gpus=np.where(column("gpus") > 0, column("gpus"), -1),
        gpu_share=np.where(column("share") > 0, column("share"), -1),
        queue=column("queue"),
        user=column("user"),
        status=column("status"),
        home=column("home"),
        **extra,
    )
    return Case(workload, gs.Platform(clusters), jobs, sites, overrun)


def check(run: Any, found: dict[str, Any]) -> None:
    """Check that a run is what the oracle found."""
    gs.verify(run)
    assert run["start_time"].values.tolist() == found["start"]
    fates = [FATES[fate] for fate in run["fate"].values]
    assert fates == found["fate"]
    assert run["killed"].values.tolist() == found["kills"]
    offset = np.searchsorted(run["node_cluster"].values, np.arange(run.sizes["cluster"]))
    executions = []
    for p in range(run.sizes["piece"]):
        s = int(run["piece_segment"].values[p])
        m = int(run["segment_cluster"].values[s])
        bits, share = int(run["piece_devices"].values[p]), int(run["piece_share"].values[p])
        executions.append(
            (
                m,
                int(run["segment_job"].values[s]),
                int(run["piece_node"].values[p] - offset[m]),
                *(int(run[f"piece_{name}"].values[p]) for name in ("units", "cores", "memory")),
                tuple((d, share) for d in range(62) if bits >> d & 1),
                int(run["segment_start"].values[s]),
                int(run["segment_end"].values[s]),
            )
        )
    assert sorted(executions) == found["executions"]
    assert run.attrs["corrections"] == found["corrections"]


CAPABILITIES = ("partitions", "limits", "impatient", "dependent", "failures")

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
    keys = ("phi", "sigma", "delta", "epsilon")
    options = _Options(
        scheme,
        *(parameters[key] for key in keys),
        partners,
        parameters["message_delay"],
        parameters["migration_delay"],
        silent,
        *(parameters[key] for key in ("transfers", "no_gain", "busy", "standing")),
    )
    check(run, SuperschedulerOnNodes(case.jobs, case.sites, options, predictions).simulate())


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_superschedulers(scheme: str, wanted: tuple[str, ...]) -> None:
    for seed in range(40):
        superscheduler_case(seed, scheme, wanted)
