"""The arrays of a simulated cluster of nodes, and what does not change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles
from gridsched.engine.bundles import column
from gridsched.engine.job_lifecycle import Lifecycles
from gridsched.engine.nodes.records import CHANGE, MAX_GPUS, PIECE, STATE, STORE, WHOLE
from gridsched.engine.records import ENTRY, FOREVER, SCORED

CORES, MEMORY, CLOSED, UNTIL, DEVICES = 0, 1, 2, 3, 4
"""Where a level of resources has cores, memory, whether the node is closed, until when it holds, its GPUs."""


class NodeOptions(NamedTuple):
    """What does not change during a simulation."""

    backfilling: int
    reservations: int
    overrun: int
    prediction: int
    correction: int
    changing: bool  # the queue order is given by the score at each pass, else by `queue_key`
    queue_as_order: bool  # backfill order is the queue order, else given by `order_key`
    shortest_first: bool  # `order_key` grows with the estimate
    placement: int
    track: bool  # whether expected ends matter
    requeue: int
    interval: int  # seconds of work between checkpoints; 0 for none
    cost: int  # seconds that a checkpoint takes
    seed: int
    requests: int = 1  # jobs that are one job of its user, see `lifecycles`; 0 where nobody is told of them
    awaited: int = 0  # first jobs whose starts end the simulation; 0 to go on to the last end


class NodeArrays(NamedTuple):
    """A cluster of m nodes and its n jobs."""

    jobs: Any  # JOB[n], in order of submission
    labels: Any  # LABELS[n], for the score
    lifecycles: Lifecycles  # of the jobs as their users see them
    queue_key: Any  # float64[n], smallest first, ties by entry
    order_key: Any  # float64[n], likewise
    nodes: Any  # NODE[m]
    allowed: Any  # int64[w, m], nodes that jobs may use: a bit for each choice, or each part of a job
    numbers: Any  # int64[w, ...], units of each part of a job, but for the last one, which has the others
    overlap: Any  # bool[w, w], whether two rows of `allowed` share nodes
    events: Any  # EVENT[...], by time
    windows: Any  # WINDOW[...]
    limits: Any  # LIMIT[...]
    limited: Any  # int64[n, l], limits that a job is subject to, -1 for none
    typical: Any  # TYPICAL[...]
    largest: Any  # int64[2], most cores and GPUs of a node
    # see `gridsched.engine.nodes.runtime_prediction`
    recent: Any = column(np.int64, "users", "two", fill=-1)
    # free thousandths of each GPU
    devices: Any = column(np.int64, "devices", fill=WHOLE)
    # what `placement.fragments` says of each node; negative if it has to be asked
    fragments: Any = column(np.float64, "nodes", fill=-1.0)
    # reservations that jobs of a row of `allowed` have to respect
    held: Any = column(np.int64, "rows")
    # waiting jobs in order of entry, a heap of those that a pass still has to try, those that it tries later
    waiting: Any = column(np.int64, "waiting")
    candidates: Any = column(SCORED, "waiting")
    later: Any = column(np.int64, "waiting")
    # heaps of ends and of expected ends; entries of jobs that were killed are void
    ending: Any = column(ENTRY, "ends")
    expecting: Any = column(ENTRY, "ends")
    pieces: Any = column(PIECE, "pieces")
    changes: Any = column(CHANGE, "changes")
    executions: Any = column(PIECE, "executions")
    # `freed` when a job of a shape did not fit last
    refused: Any = column(np.int64, "shapes")
    # scratch: what is free on a node at some time, and the least over some time
    level: Any = column(np.int64, "level")
    least: Any = column(np.int64, "level")
    # scratch: units of a job that fit on each node, nodes in the order of a placement, when to look again
    fitting: Any = column(np.int64, "nodes")
    scores: Any = column(np.float64, "nodes")
    ranking: Any = column(SCORED, "turns")
    turns: Any = column(ENTRY, "turns")
    state: Any = column(STATE, "one")
    store: Any = column(STORE, "one")


def made(nodes: Any, sizes: dict[str, int], **given: Any) -> NodeArrays:
    """Arrays of an idle cluster, or of the rows of several ones, on which nothing has begun.

    `sizes` names users, devices, rows, waiting and shapes; there is no room for pieces yet.
    """
    always = {"two": 2, "one": 1, "level": DEVICES + MAX_GPUS}
    room = dict.fromkeys(("ends", "pieces", "changes", "executions"), 0)
    of_nodes = {"nodes": len(nodes), "turns": len(nodes) + 1}
    a = bundles.allocate(NodeArrays, always | room | of_nodes | sizes, nodes=nodes, **given)
    a.state["planned"] = FOREVER
    a.state["freed"] = 1
    a.store["free_piece"] = -1
    return a


def idle_nodes(nodes: Any) -> Any:
    """Nodes of which only what they have is known, with all of it free."""
    nodes = nodes.copy()
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    nodes["free_gpus"], nodes["free_share"] = nodes["gpus"], WHOLE * nodes["gpus"]
    nodes["largest_share"] = np.where(nodes["gpus"] > 0, WHOLE, 0)
    nodes["change"] = -1
    return nodes


def allocate(
    jobs: Any,
    labels: Any,
    users: int,
    nodes: Any,
    allowed: Any,
    numbers: Any,
    keys: tuple[Any, Any],
    events: Any,
    windows: Any,
    lifecycles: Lifecycles,
    limits: Any,
    limited: Any,
    typical: Any,
) -> NodeArrays:
    """Arrays of an idle cluster, for jobs of so many users; `nodes` have only what they have."""
    nodes = idle_nodes(nodes)
    nodes["device"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
    reach = (allowed != 0).astype(np.int64)
    sizes = {
        "users": users,
        "devices": int(nodes["gpus"].sum()),
        "rows": len(allowed),
        "waiting": len(jobs) + 1,
        "shapes": int(jobs["shape"].max(initial=0)) + 1,
    }
    a = made(
        nodes,
        sizes,
        jobs=jobs,
        labels=labels,
        lifecycles=lifecycles,
        queue_key=keys[0],
        order_key=keys[1],
        allowed=allowed,
        numbers=numbers,
        overlap=(reach @ reach.T) > 0,
        events=events,
        windows=windows,
        limits=limits,
        limited=limited,
        typical=typical,
        largest=np.array([nodes["cores"].max(), nodes["gpus"].max()], np.int64),
    )
    return with_room(a, 4 * len(nodes) + len(jobs) + len(windows) + 16)


def with_room(a: NodeArrays, more: int) -> NodeArrays:
    """The same cluster with room for so many more pieces, executions and ends."""
    executions, ends = (len(each) + more for each in (a.executions, a.ending))
    a.store["short"] = 0
    return grown(a, len(a.pieces) + more, {"executions": executions, "ends": ends})


def grown(a: NodeArrays, pieces: int, sizes: dict[str, int]) -> NodeArrays:
    """The same cluster with so many pieces, which are free, and more room for other things."""
    used = len(a.pieces)
    a = bundles.grow(a, {"pieces": pieces, "changes": 2 * pieces} | sizes)
    if pieces > used:
        a.pieces["next"][used:-1] = np.arange(used + 1, pieces)
        a.pieces["next"][-1] = a.store["free_piece"][0]
        a.store["free_piece"] = used
        a.store["free_pieces"] += pieces - used
    return a
