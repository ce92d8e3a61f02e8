"""How a run of Slurm tells who had which nodes, in the variables of all runs on nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.nodes import MOST_NUMBERED
from gridsched.platform import Cluster
from gridsched.results import SEGMENT
from gridsched.systems.node_records import ASKED_NAMES, ClusterNodes, NodeUse, times_of
from gridsched.systems.slurm.controller import Outcome
from gridsched.systems.slurm.jobs import ClusterJobs

Integers = NDArray[np.int64]

_WHOLE = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class SlurmRun:
    """Outcome of the n jobs of a cluster; jobs and nodes are named by their places there."""

    jobs: ClusterJobs
    outcome: Outcome
    end_time: Integers
    segments: RecordArray
    pieces: dict[str, Integers]


def run_of(jobs: ClusterJobs, outcome: Outcome, cluster: int) -> SlurmRun:
    """Outcomes of the jobs of a cluster that the controller had."""
    done = outcome.executions
    records = jobs.tickets.jobs[done["job"]]
    each = records["nodes"].astype(np.int64)
    segment = np.repeat(np.arange(len(done)), each)
    offset = np.arange(len(segment)) - np.repeat(np.cumsum(each) - each, each)
    node = outcome.placed[np.repeat(done["first"], each) + offset]
    nodes = jobs.machine.nodes
    whole = records["whole"] != 0

    def held(name: str) -> Integers:
        """What each piece has of its node: all of it where nodes are whole."""
        of_node: Integers = nodes[name][node]
        return of_node if whole.all() else np.where(whole[segment], of_node, records[name][segment])

    cores, memory, gpus = held("cores"), held("memory"), held("gpus")
    segments: RecordArray = np.zeros(len(done), SEGMENT)
    segments["job"], segments["cluster"] = done["job"], cluster
    segments["start"], segments["end"] = done["start"], done["end"]
    segments["processors"] = np.bincount(segment, weights=cores, minlength=len(done)).astype(np.int64)
    devices = _devices(segments, segment, node, gpus)
    return SlurmRun(
        jobs=jobs,
        outcome=outcome,
        end_time=times_of(segments, len(outcome.start))[1],
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


def _devices(segments: RecordArray, segment: Integers, node: Integers, gpus: Integers) -> Integers:
    """GPUs of each piece as bits: the lowest ones of its node that are free when it begins."""
    devices = np.zeros(len(node), np.int64)
    running: dict[int, list[tuple[int, int]]] = {}
    pieces = np.flatnonzero(gpus > 0)
    start, end = segments["start"][segment[pieces]], segments["end"][segment[pieces]]
    for place in np.lexsort((end, start)).tolist():
        piece = pieces[place]
        others = [each for each in running.get(int(node[piece]), []) if each[0] > start[place]]
        taken = 0
        for _, bits in others:
            taken |= bits
        bits, device = 0, 0
        while bits.bit_count() < gpus[piece]:
            if not taken >> device & 1:
                bits |= 1 << device
            device += 1
        devices[piece] = bits
        running[int(node[piece])] = [*others, (int(end[place]), bits)]
    return devices


def node_use(run: SlurmRun, cluster: Cluster) -> NodeUse:
    """What the jobs of a cluster had of its nodes."""
    rows, machine = run.jobs.tickets.jobs, run.jobs.machine
    records = rows[: len(run.outcome.start)]
    asked = {name: np.zeros(len(records), np.int64) for name in ASKED_NAMES}
    asked |= {name: records[name].astype(np.int64) for name in ("cores", "memory", "gpus")}
    asked["whole"] = (records["whole"] > 0).astype(np.int64)
    # those of all partitions of a job
    chosen = np.zeros((len(records), len(machine.reach)), np.bool_)
    chosen[rows["of"], rows["partition"]] = True
    kinds, row = np.unique(
        np.column_stack([np.packbits(chosen, axis=1), records["features"]]), axis=0, return_inverse=True
    )
    of_kind = np.unpackbits(kinds[:, :-1].astype(np.uint8), axis=1, count=len(machine.reach)) != 0
    reach = (of_kind @ (machine.reach != 0)).astype(np.int64)
    numbers = np.zeros((len(kinds), MOST_NUMBERED), np.int64)
    if machine.featured is not None:
        reach *= machine.featured[kinds[:, -1]]
    if machine.numbers is not None:
        numbers = machine.numbers[kinds[:, -1]]
    asked |= {"units": records["nodes"].astype(np.int64), "where": row.reshape(-1).astype(np.int64)}
    return NodeUse(
        site=ClusterNodes(
            nodes=machine.nodes,
            names=cluster.node_names,
            allowed=reach,
            numbers=numbers,
            events=machine.events,
            windows=machine.windows,
            outages=run.jobs.outages,
        ),
        segments=run.segments,
        pieces=run.pieces,
        asked=asked | {"most": np.ones(len(records), np.int64)},
        limits=run.jobs.limits,
        limited=run.jobs.limited,
        priority=np.zeros(len(records), np.int64),
    )
