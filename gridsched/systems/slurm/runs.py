"""How a run of Slurm tells who had which nodes, in the variables of all runs on nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.platform import Cluster
from gridsched.results import NO_TIME, SEGMENT, Variable
from gridsched.systems.node_records import ASKED_TEXTS, PIECES
from gridsched.systems.slurm.controller import Outcome
from gridsched.systems.slurm.jobs import ClusterJobs

Integers = NDArray[np.int64]

_WHOLE = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class SlurmRun:
    """What became of the n jobs of a cluster; jobs and nodes are named by their places there."""

    jobs: ClusterJobs
    start: Integers
    by: Integers
    fate: Integers
    eligible: Integers
    segments: NDArray[Any]
    pieces: dict[str, Integers]


def run_of(jobs: ClusterJobs, outcome: Outcome, cluster: int) -> SlurmRun:
    """What became of the jobs of a cluster that the controller had."""
    ran = np.flatnonzero(outcome.start >= 0)
    records = jobs.tickets.jobs[ran]
    each = records["nodes"].astype(np.int64)
    segment = np.repeat(np.arange(len(ran)), each)
    offset = np.arange(len(segment)) - np.repeat(np.cumsum(each) - each, each)
    node = outcome.placed[np.repeat(outcome.first[ran], each) + offset]
    nodes = jobs.machine.nodes
    whole = records["whole"][segment] != 0
    cores = np.where(whole, nodes["cores"][node], records["cores"][segment])
    memory = np.where(whole, nodes["memory"][node], records["memory"][segment])
    gpus = np.where(whole, nodes["gpus"][node], records["gpus"][segment])
    segments = np.zeros(len(ran), SEGMENT)
    segments["job"], segments["cluster"] = ran, cluster
    segments["start"] = outcome.start[ran]
    segments["end"] = outcome.start[ran] + jobs.tickets.run[ran]
    segments["processors"] = np.bincount(segment, weights=cores, minlength=len(ran)).astype(np.int64)
    devices = _devices(segments["start"][segment], segments["end"][segment], node, gpus)
    return SlurmRun(
        jobs=jobs,
        start=np.where(outcome.start >= 0, outcome.start, NO_TIME),
        by=outcome.by,
        fate=outcome.fate,
        eligible=outcome.eligible,
        segments=segments,
        pieces={
            "segment": segment,
            "node": node,
            "units": np.ones(len(segment), np.int64),
            "cores": cores,
            "memory": memory,
            "devices": devices,
            "share": np.where(gpus > 0, _WHOLE, 0),
        },
    )


def _devices(start: Integers, end: Integers, node: Integers, gpus: Integers) -> Integers:
    """GPUs of each piece as bits: the lowest ones of its node that are free when it begins."""
    devices = np.zeros(len(node), np.int64)
    running: dict[int, list[tuple[int, int]]] = {}
    order = np.lexsort((end, start))
    for piece in order[gpus[order] > 0].tolist():
        others = [each for each in running.get(int(node[piece]), []) if each[0] > start[piece]]
        taken = 0
        for _, bits in others:
            taken |= bits
        bits, device = 0, 0
        while bits.bit_count() < gpus[piece]:
            if not taken >> device & 1:
                bits |= 1 << device
            device += 1
        devices[piece] = bits
        running[int(node[piece])] = [*others, (int(end[piece]), bits)]
    return devices


def node_records(
    runs: list[tuple[int, Cluster, Integers, SlurmRun]], number: int
) -> tuple[NDArray[Any], dict[str, Variable]]:
    """Segments of all jobs, and what runs on nodes say of jobs, pieces, nodes and outages."""
    segments: list[NDArray[Any]] = []
    pieces: dict[str, list[Integers]] = {name: [] for name in PIECES}
    asked = {name: np.zeros(number, np.int64) for name in ASKED_TEXTS}
    nodes, owner, names = [], [], []
    rows = sum(len(run.jobs.machine.reach) for *_, run in runs)
    columns = sum(len(run.jobs.machine.nodes) for *_, run in runs)
    reach = np.zeros((rows, columns), np.int8)
    row, column, segment = 0, 0, 0
    for index, cluster, own, run in runs:
        machine, records = run.jobs.machine, run.jobs.tickets.jobs
        segments.append(run.segments.copy())
        segments[-1]["job"] = own[run.segments["job"]]
        shift = {"segment": segment, "node": column}
        for name, parts in pieces.items():
            parts.append(run.pieces[name] + shift.get(name, 0))
        asked["units"][own] = records["nodes"]
        asked["cores"][own] = records["cores"]
        asked["memory"][own] = records["memory"]
        asked["gpus"][own] = records["gpus"]
        asked["most"][own] = 1
        asked["whole"][own] = records["whole"]
        asked["where"][own] = records["partition"] + row
        nodes.append(machine.nodes)
        owner.append(np.full(len(machine.nodes), index))
        prefix = f"{cluster.name}/" if len(runs) > 1 else ""
        names += [prefix + name for name in run.jobs.node_names]
        reach[row : row + len(machine.reach), column : column + len(machine.nodes)] = machine.reach
        row, column = row + len(machine.reach), column + len(machine.nodes)
        segment += len(run.segments)
    table = np.concatenate(nodes)
    none = np.zeros(0, np.int64)
    variables: dict[str, Variable] = {
        **{f"piece_{name}": ("piece", np.concatenate(pieces[name]), *text) for name, text in PIECES.items()},
        **{f"asked_{name}": ("job", asked[name], *text) for name, text in ASKED_TEXTS.items()},
        "node_name": ("node", np.array(names), "name of the node", "1"),
        "node_cluster": ("node", np.concatenate(owner), "index of the cluster", "1"),
        "node_cores": ("node", table["cores"].copy(), "processors of the node", "1"),
        "node_memory": ("node", table["memory"].copy(), "memory of the node", "KiB"),
        "node_gpus": ("node", table["gpus"].copy(), "GPUs of the node", "1"),
        "node_reach": (("reach", "node"), reach, "1 for the nodes that jobs may use", "1"),
        "outage_node": ("outage", none, "index of the node that was out", "1"),
        "outage_start": ("outage", none, "start of an outage", "s"),
        "outage_end": ("outage", none, "end of an outage", "s"),
        "outage_kind": ("outage", none, "why", "1"),
        "outage_announced": ("outage", none, "when it was known", "s"),
    }
    return np.concatenate(segments), variables
