"""Random grids of clusters of nodes with all that can happen there, for the package and for the oracle."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gridsched as gs
from gridsched.nodes import Limit, NodeType, Partition
from gridsched.policies.local import LocalPolicy
from gridsched.workloads.dependencies import dependency_table
from tests.oracles import nodes as oracle
from tests.oracles.grid import AskedJob, SiteDescription
from tests.oracles.users import NEVER
from tests.support.fields import assert_fields
from tests.support.nodes import oracle_events, some_events

MIB = 1024

CAPABILITIES = ("partitions", "limits", "impatient", "dependent", "failures", "features", "predicting")
"""What may happen in a case."""

FEATURES: list[set[str]] = [set(), {"a"}, {"b"}, {"a", "b"}, {"c"}]
CONSTRAINTS: dict[int, tuple[str, list[set[str]], list[int]]] = {
    0: ("a|b", [{"a", "b"}], []),
    1: ("[a|b]", [{"a"}, {"b"}], []),
    2: ("[c|b|a]", [{"c"}, {"b"}, {"a"}], []),
    3: ("a*1", [{"a"}], [1]),
    4: ("[(a|c)*1&b*2]", [{"a", "c"}, {"b"}], [1, 2]),
}
"""Constraints; of each choice the features of which nodes have one; or how many parts are on such nodes."""

FATES = ["completed", "rejected", "gave up", "never eligible", "lost", "starved"]


@dataclass
class Case:
    """A grid and its jobs, for the package and for the oracle."""

    workload: gs.Workload
    platform: gs.Platform
    jobs: list[AskedJob]
    sites: list[SiteDescription]
    overrun: Any


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
        "kind": 0 if share else units * -(-gpus // units) if gpus else -1,
    }


def _typical(asked: list[dict[str, Any]]) -> list[oracle.Typical]:
    """The most frequent requests, which make up 95 % of all."""
    counts = Counter(
        (
            each["units"] * each["cores"],
            each["units"] * each["gpus"] + bool(each["share"]),
            each["share"] or 1000 * bool(each["gpus"]),
            each["where"],
        )
        for each in asked
    )
    chosen: list[tuple[int, int, int, int]] = []
    for kind in sorted(counts, key=lambda kind: (-counts[kind], kind)):
        if sum(counts[each] for each in chosen) < 0.95 * len(asked):
            chosen.append(kind)
    total = sum(counts[each] for each in chosen)
    return [oracle.Typical(*kind, counts[kind] / total) for kind in chosen]


def _rows(
    draw: random.Random, clusters: int, wanted: tuple[str, ...], number: int, sharing: float
) -> list[dict[str, int]]:
    """Jobs as their users give them."""
    now, rows = 0, []
    for _ in range(number):
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
        if draw.random() < sharing:
            row["gpus"], row["share"], row["nodes"] = 0, draw.choice([100, 200, 300, 600]), -1
        if "impatient" in wanted and draw.random() < 0.4:
            row["gives_up"] = now + draw.randint(0, 25)
        if "features" in wanted:
            row["constraint"] = draw.choice([-1, *CONSTRAINTS])
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


def _policy(draw: random.Random, order: str, predicting: bool, backfilling: str) -> dict[str, Any]:
    if predicting and not backfilling and draw.random() < 0.5:
        return {
            "backfilling": "easy",
            "backfill_order": draw.choice(["queue", "shortest"]),
            "prediction": "recent",
            "correction": draw.choice(["doubling", "requested", "increments"]),
        }
    easy = draw.random() < 0.4
    drawn = "easy" if easy else draw.choice(["none", "first_fit", "easy", "conservative"])
    backfilling = backfilling or drawn
    sorted_ = backfilling in ("easy", "first_fit")
    return {
        "prediction": draw.choice(["estimate", "double", "actual"]) if predicting else "estimate",
        "order": order,
        "backfilling": backfilling,
        "reservations": draw.choice([1, 1, 2]) if backfilling == "easy" else 1,
        "backfill_order": draw.choice(["queue", "queue", "shortest"]) if sorted_ else "queue",
    }


def _limits(
    draw: random.Random, wanted: tuple[str, ...], users: int
) -> tuple[list[Limit], list[oracle.Limit]]:
    """Limits for each user."""
    if "limits" not in wanted or draw.random() < 0.3:
        return [], []
    most, cores = draw.choice([(1, None), (2, None), (3, 12)])
    minutes = draw.choice([None, 9])
    seconds = NEVER if minutes is None else 60 * minutes
    given = Limit(by="user", jobs=most, processors=cores, processor_minutes=minutes)
    return [given], [oracle.Limit(most, cores or NEVER, seconds)] * users


def _site(
    draw: random.Random,
    m: int,
    wanted: tuple[str, ...],
    orders: tuple[str, ...],
    overrun: str,
    users: int,
    placement: Any = None,
    backfilling: str = "",
) -> tuple[gs.Cluster, SiteDescription]:
    """A cluster, for the package and for the oracle."""
    kinds = [
        oracle.Node(
            draw.randint(1, 8),
            draw.choice([0, 4, 16]) * MIB,
            draw.choice([0, 1, 2, 4]),
            draw.choice([0.0, 1.0]),
        )
        for _ in range(draw.randint(1, 5))
    ]
    names = [f"n{k}x0" for k in range(len(kinds))]
    features = [draw.choice(FEATURES) if "features" in wanted else set[str]() for _ in kinds]
    events = some_events(draw, names) if "failures" in wanted else []
    known = oracle_events(events, names)
    allowed = [set(range(len(kinds)))]
    partitions = []
    if "partitions" in wanted and draw.random() < 0.7:
        allowed.append(set(draw.sample(range(len(kinds)), draw.randint(1, len(kinds)))))
        partitions = [Partition(number=0), Partition(number=1, nodes=[names[n] for n in allowed[1]])]
    either: dict[int, list[set[int]]] = {}
    numbered: dict[int, list[tuple[set[int], int]]] = {}
    if "features" in wanted:
        partitions_only, allowed = allowed, []
        for nodes in partitions_only:
            allowed.append(nodes)
            for _, choices, numbers in CONSTRAINTS.values():
                sets = [{n for n in nodes if features[n] & choice} for choice in choices]
                if numbers:
                    numbered[len(allowed)] = list(zip(sets, numbers, strict=True))
                else:
                    either[len(allowed)] = sets
                # beside one that has a number of its own a job may have any node
                allowed.append(nodes if len(numbers) == 1 else set().union(*sets))
    given, limits = _limits(draw, wanted, users)
    order = draw.choice(["fcfs", "fcfs", "shortest", "smallest", *orders])
    policy = _policy(draw, order, "predicting" in wanted, backfilling)
    placement = placement or draw.choice(["first_fit", "best_fit", "worst_fit", "spread"])
    requeue: Any = draw.choice(["place", "end", "lost"])
    interval, cost = draw.choice([0, 0, 4, 10]), draw.choice([0, 1, 2])
    cluster = gs.Cluster(
        name=f"c{m}",
        nodes=[
            NodeType(
                cores=k.cores,
                memory=k.memory // MIB,
                gpus=k.gpus,
                weight=k.weight,
                name=f"n{n}x",
                features=sorted(features[n]),
            )
            for n, k in enumerate(kinds)
        ],
        node_exclusive=draw.random() < 0.15,
        speed=draw.choice([1.0, 1.0, 2.0, 0.5, 0.7]),
        policy=LocalPolicy(**policy),
        placement=placement,
        partitions=partitions,
        partition_of="queue",
        constraints={number: text for number, (text, *_) in CONSTRAINTS.items()} if either else {},
        limits=given,
        events=events,
        requeue=requeue,
        checkpoint_interval=interval,
        checkpoint_cost=cost,
    )
    named = oracle.Policy(
        **policy, placement=placement, overrun=overrun, requeue=requeue, interval=interval, cost=cost
    )
    description = SiteDescription(kinds, named, cluster.speed, allowed, known, limits)
    return cluster, replace(description, either=either, numbered=numbered)


def some_case(
    seed: int,
    wanted: tuple[str, ...] = (),
    orders: tuple[str, ...] = ("lxf",),
    *,
    homeless: bool = False,
    most_clusters: int = 3,
    number: tuple[int, int] = (1, 16),
    sharing: float = 0.15,
    **chosen: str,
) -> Case:
    """A grid of up to three clusters with its jobs; homeless ones have times as at speed 1.

    A job shares a GPU with probability `sharing`. All is drawn but a `placement` or `backfilling` that is
    chosen.
    """
    draw = random.Random(seed)
    count = min(draw.choice([1, 2, 2, 3]), most_clusters)
    rows = _rows(draw, count, wanted, draw.randint(*number), sharing)
    overrun = draw.choice(["doubling", "doubling", "increments"])
    needs = _dependencies(draw, len(rows)) if "dependent" in wanted else []
    users = sorted({row["user"] for row in rows})
    clusters, sites, asked = [], [], []
    for m in range(count):
        cluster, site = _site(draw, m, wanted, orders, overrun, len(users), **chosen)
        clusters.append(cluster)
        sites.append(site)
        asked.append([_asked(row, site.nodes, cluster.node_exclusive) for row in rows])
        for row, each in zip(rows, asked[-1], strict=True):
            each["where"] = row["queue"] if len(cluster.partitions) > row["queue"] else 0
            if "constraint" in row:
                each["where"] = each["where"] * (1 + len(CONSTRAINTS)) + 1 + row["constraint"]
            each["groups"] = [users.index(row["user"])] if site.limits else []
        site.typical = _typical(asked[-1])
    arrays = [draw.choice([-1, 0, 1]) if "limits" in wanted and most_clusters == 1 else -1 for _ in rows]
    most = [draw.randint(1, 3) for _ in range(2)]
    for each, array in zip(asked[0], arrays, strict=True):
        if array >= 0:
            each["groups"].append(len(sites[0].limits) + array)
    sites[0].limits += [oracle.Limit(each) for each in most]
    jobs = [
        AskedJob(
            count if homeless else row["home"],
            oracle.Job(
                row["submit"],
                row["run"],
                row["estimate"],
                failed=row["status"] == 0,
                user=row["user"],
                gives_up=row["gives_up"] if row["gives_up"] >= 0 else NEVER,
                after=[(on, kind, delay) for job, on, kind, delay in needs if job == j],
            ),
            [each[j] for each in asked],
        )
        for j, row in enumerate(rows)
    ]

    def column(name: str) -> Any:
        return np.array([row[name] for row in rows])

    extra: dict[str, Any] = {}
    if max(arrays) >= 0:
        extra["array"] = np.array(arrays)
        extra["array_limit"] = np.array([most[array] if array >= 0 else -1 for array in arrays])
    if "features" in wanted:
        extra["constraint"] = column("constraint")
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
        home=None if homeless else column("home"),
        **extra,
    )
    return Case(workload, gs.Platform(clusters), jobs, sites, overrun)


def check(run: Any, found: dict[str, Any]) -> None:
    """Check that a run is what the oracle found."""
    gs.verify(run)
    assert_fields(run, start_time=found["start"], killed=found["kills"], corrections=found["corrections"])
    assert [FATES[fate] for fate in run["fate"].values] == found["fate"]
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
    if "predicted_run_time" in run:
        ran = run["start_time"].values >= 0
        assert run["predicted_run_time"].values[ran].tolist() == np.array(found["predicted"])[ran].tolist()
