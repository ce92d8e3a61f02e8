"""What a run made of its nodes: use of each resource, and how much of what is free is in useless pieces.

Everything follows from the pieces of a run, see docs/nodes-reference.md. A node that is out (down, in
maintenance, drained) counts for what its jobs still have, and for nothing else.

Fragmentation is that of Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with
fragmentation gradient descent" (USENIX ATC 2023, section 3): what is free on a node is of no use to a job if
a part of it does not fit there, or if it is the rest of a GPU that is smaller than the share that the job
wants; a job without GPUs has no use for any. The mean over typical jobs, weighted by how many there are, is
the expected fragment. Here memory, partitions and whole nodes count too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.metrics.jobs import observed, submitted, time_average
from gridsched.nodes import UNLIMITED_MEMORY
from gridsched.workloads.usage import Steps, steps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESOURCES: dict[str, str] = {"cores": "processors", "memory": "memory", "gpus": "GPUs"}
"""Resources of nodes with what they are called."""

WHOLE_GPU = 1000
"""Parts of a GPU."""

TYPICAL_SHARE = 0.95
"""Share of the jobs whose kinds are typical, as in the experiments of Weng et al. 2023."""

MAX_KINDS = 200
"""Most kinds that are typical: where jobs hardly ever ask for the same there is no end of them."""


class ResourceUse(NamedTuple):
    """A part of a resource and what it is a part of, over time: cores, KiB, or thousandths of GPUs."""

    part: Steps
    whole: Steps

    def share(self, edges: Floats) -> Floats:
        """The part relative to the whole, of time averages between edges; NaN where there is nothing."""
        part, whole = (time_average(each, edges) for each in self)
        return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 1e-9))


def resource_use(run: xr.Dataset) -> dict[str, ResourceUse]:
    """What is used of each resource of the nodes, relative to what is there, over all nodes.

    Memory of nodes that do not say how much they have counts for nothing, used or not.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variables piece_*, node_* and outage_*.

    Returns
    -------
    dict of str to ResourceUse
        By name of `RESOURCES`; without those of which the nodes have nothing.
    """
    pieces = _Pieces(run)
    found = {}
    for name in RESOURCES:
        capacity, amount = pieces.capacity(name), pieces.amount(name)
        if not capacity.any():
            continue
        used = steps(np.concatenate([pieces.start, pieces.end]), np.concatenate([amount, -amount]))
        times, changes = [np.array([pieces.begin])], [np.array([capacity.sum()])]
        for node, start, end in pieces.out.tolist():
            # what its jobs still have stays
            here = np.flatnonzero((pieces.node == node) & (pieces.start < end) & (pieces.end > start))
            kept = [np.maximum(pieces.start[here], start), np.minimum(pieces.end[here], end)]
            times += [np.array([start, end]), *kept]
            changes += [np.array([-capacity[node], capacity[node]]), amount[here], -amount[here]]
        found[name] = ResourceUse(used, steps(np.concatenate(times), np.concatenate(changes)))
    return found


def fragmentation(run: xr.Dataset) -> tuple[str, ResourceUse]:
    """What is free on the nodes but of no use to typical jobs where it is, relative to all that is free.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variables piece_*, node_*, asked_* and outage_*.

    Returns
    -------
    resource : str
        "gpus" where nodes have some, else "cores": that of which the fragments are.
    fragments : ResourceUse
        Expected fragments, and what is free.
    """
    states = _States(_Pieces(run))
    kinds = typical_parts(run)
    reach = run["node_reach"].to_numpy()
    with_gpus = bool(run["node_gpus"].to_numpy().any())
    free = states.devices.sum(axis=1) if with_gpus else states.cores
    fragments = np.zeros(len(free))
    for kind in kinds:
        fits = states.fit(kind, reach[kind["where"]])
        if with_gpus:
            wanted = kind["share"] or WHOLE_GPU
            rest = np.where(states.devices < wanted, states.devices, 0).sum(axis=1)
            fits &= (kind["gpus"] > 0) | (kind["share"] > 0)
        else:
            rest = np.zeros_like(free)
        fragments += kind["frequency"] * np.where(fits, rest, free)
    return "gpus" if with_gpus else "cores", ResourceUse(states.total(fragments), states.total(free))


def typical_parts(run: xr.Dataset) -> RecordArray:
    """Kinds of parts of jobs, the most frequent first, until they are those of 95 % of the jobs; at most 200.

    Returns
    -------
    array of records
        Fields cores, memory, gpus, share, whole, where as `asked_*` of the run, and frequency, 1 together.
    """
    names = ("cores", "memory", "gpus", "share", "whole", "where")
    asked = np.empty(run.sizes["job"], [(name, np.int64) for name in names])
    for name in names:
        asked[name] = run[f"asked_{name}"].to_numpy()
    kinds, counts = np.unique(asked, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    enough = int(np.searchsorted(np.cumsum(counts[order]), TYPICAL_SHARE * len(asked))) + 1
    chosen = order[: min(enough, MAX_KINDS)]
    typical = np.empty(len(chosen), [*asked.dtype.descr, ("frequency", np.float64)])
    for name in names:
        typical[name] = kinds[name][chosen]
    typical["frequency"] = counts[chosen] / counts[chosen].sum()
    return typical


# --- summary --------------------------------------------------------------------------------------


def summarise_nodes(run: xr.Dataset, bins: int = 200) -> xr.Dataset:
    """Mean use of each resource from the first to the last submission, and fragmentation, with series.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variables piece_*, node_*, asked_* and outage_*.
    bins : int
        Equal parts of the time for the series.

    Returns
    -------
    xarray.Dataset
        `utilisation_cores`, `utilisation_memory`, `utilisation_gpus` (without those of which nodes have
        nothing) and `fragmentation`, each with a series on `bin` from the first submission to the last end:
        shares of time averages. NaN for a run in which no job ran or all were submitted at once, and where
        nothing is there, or free.
    """
    (first, last), window = observed(run), submitted(run)
    resource, fragments = fragmentation(run)
    shown = {
        f"utilisation_{name}": (use, f"share of the {RESOURCES[name]} of nodes that are not out in use")
        for name, use in resource_use(run).items()
    }
    shown["fragmentation"] = (fragments, f"share of the free {RESOURCES[resource]} of no use to typical jobs")
    variables: dict[str, Any] = {}
    for name, (use, text) in shown.items():
        mean, series = np.nan, np.full(bins, np.nan)
        if window[1] > window[0]:
            mean = float(use.share(np.array(window))[0])
        if last > first:
            series = use.share(np.linspace(first, last, bins + 1))
        variables[name] = ((), mean, {"long_name": text, "units": "1"})
        variables[f"{name}_series"] = (
            "bin",
            series,
            {"long_name": f"{text}, in the time bin", "units": "1"},
        )
    return xr.Dataset(variables)


# --- what pieces say ------------------------------------------------------------------------------


class _Pieces:
    """Where pieces ran, from when to when, what they had, and which nodes were out."""

    def __init__(self, run: xr.Dataset) -> None:
        self._run = run
        segment = run["piece_segment"].to_numpy()
        self.node = run["piece_node"].to_numpy()
        self.start = run["segment_start"].to_numpy()[segment]
        self.end = run["segment_end"].to_numpy()[segment]
        self.devices = run["piece_devices"].to_numpy()
        self.share = run["piece_share"].to_numpy()
        # before anything that happens
        self.begin = min(0, int(run["submit_time"].to_numpy().min(initial=0))) - 1
        # nothing is asked about later times
        self.out = _times_out(run, 1 + int(self.end.max(initial=self.begin)))

    def capacity(self, name: str) -> Integers:
        """What each node has of a resource."""
        has = np.asarray(self._run[f"node_{name}"].to_numpy(), np.int64)
        if name == "memory":
            return np.where(has == UNLIMITED_MEMORY, 0, has)
        return WHOLE_GPU * has if name == "gpus" else has

    def amount(self, name: str) -> Integers:
        """What each piece has of a resource."""
        if name == "gpus":
            return np.asarray(self.share * np.bitwise_count(self.devices), np.int64)
        has = np.asarray(self._run[f"piece_{name}"].to_numpy(), np.int64)
        return np.where(self.capacity(name)[self.node] > 0, has, 0)

    def changes(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """When what becomes free on which node: time, node, and columns as those of `_States.values`."""
        gpus = np.asarray(self._run["node_gpus"].to_numpy(), np.int64)
        columns = np.arange(int(gpus.max(initial=0)))
        has = [np.asarray(self._run[f"node_{name}"].to_numpy(), np.int64) for name in ("cores", "memory")]
        devices = WHOLE_GPU * (columns < gpus[:, np.newaxis])
        full = np.column_stack([np.zeros_like(gpus), *has, devices])
        # on each node all is free in the end, so that the next one begins with the difference
        yield np.full(len(gpus), self.begin), np.arange(len(gpus)), np.diff(full, axis=0, prepend=0)
        got = [np.asarray(self._run[f"piece_{name}"].to_numpy(), np.int64) for name in ("cores", "memory")]
        bits = (self.devices[:, np.newaxis] >> columns) & 1
        taken = np.column_stack([np.zeros_like(self.node), *got, bits * self.share[:, np.newaxis]])
        yield self.start, self.node, -taken
        yield self.end, self.node, taken
        closed = np.zeros((len(self.out), full.shape[1]), np.int64)
        closed[:, 0] = 1
        yield self.out[:, 1], self.out[:, 0], closed
        yield self.out[:, 2], self.out[:, 0], -closed


def _times_out(run: xr.Dataset, horizon: int) -> Integers:
    """When which node was out for whatever reason: rows (node, start, end), apart from each other."""
    rows = np.stack([run[f"outage_{name}"].to_numpy() for name in ("node", "start", "end")], axis=1)
    merged: list[list[int]] = []
    rows[:, 1:] = np.minimum(rows[:, 1:], horizon)
    for node, start, end in rows[np.lexsort((rows[:, 1], rows[:, 0]))].tolist():
        if merged and merged[-1][0] == node and start <= merged[-1][2]:
            merged[-1][2] = max(merged[-1][2], end)
        elif start < end:
            merged.append([node, start, end])
    return np.array(merged, np.int64).reshape(-1, 3)


class _States:
    """What is free on each node from each change on, one node after the other; nothing where it is out."""

    def __init__(self, pieces: _Pieces) -> None:
        time, node, change = (np.concatenate(each) for each in zip(*pieces.changes(), strict=True))
        order = np.lexsort((time, node))
        self.time, self.node = time[order], node[order]
        values = np.cumsum(change[order], axis=0)
        last = np.append((np.diff(self.node) != 0) | (np.diff(self.time) != 0), True)
        self.time, self.node, values = self.time[last], self.node[last], values[last]
        self.full = values[np.searchsorted(self.node, self.node)]
        values[values[:, 0] > 0, 1:] = 0
        self.values = values
        self.idle = (self.devices == WHOLE_GPU).sum(axis=1)
        self.largest = self.devices.max(axis=1, initial=0)

    @property
    def cores(self) -> Integers:
        """Free processors."""
        return np.asarray(self.values[:, 1])

    @property
    def devices(self) -> Integers:
        """Free thousandths of each GPU."""
        return np.asarray(self.values[:, 3:])

    def fit(self, kind: Any, allowed: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether a part of a kind of job fits there."""
        fits = (self.values[:, 0] == 0) & (allowed[self.node] != 0)
        fits &= (self.cores >= kind["cores"]) & (self.values[:, 2] >= kind["memory"])
        if kind["whole"]:
            fits &= (self.values == self.full).all(axis=1)
        if kind["gpus"] > 0:
            fits &= self.idle >= kind["gpus"]
        if kind["share"] > 0:
            fits &= self.largest >= kind["share"]
        return np.asarray(fits)

    def total(self, values: NDArray[Any]) -> Steps:
        """Sum over the nodes of what is so much from each change on."""
        changes = np.diff(values, prepend=0)
        first = np.diff(self.node, prepend=-1) > 0
        changes[first] = values[first]
        return steps(self.time, changes)
