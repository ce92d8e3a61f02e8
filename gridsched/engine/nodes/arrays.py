"""The arrays of a simulated cluster of nodes, and what does not change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.nodes.records import CHANGE, EXECUTION, MAX_GPUS, PIECE, STATE, STORE, WHOLE
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


class NodeArrays(NamedTuple):
    """A cluster of m nodes and its n jobs."""

    jobs: Any  # JOB[n], in order of submission
    labels: Any  # LABELS[n], for the score
    recent: Any  # int64[users, 2], see `gridsched.engine.nodes.runtime_prediction`
    queue_key: Any  # float64[n], smallest first, ties by entry
    order_key: Any  # float64[n], likewise
    nodes: Any  # NODE[m]
    devices: Any  # int64[...], free thousandths of each GPU
    allowed: Any  # bool[w, m], nodes that jobs may use
    overlap: Any  # bool[w, w], whether two rows of `allowed` share nodes
    held: Any  # int64[w], reservations that jobs of a row have to respect
    waiting: Any  # int64[n], waiting jobs in order of entry
    candidates: Any  # SCORED[n + 1], heap of the jobs that a pass still has to try
    later: Any  # int64[n], jobs that a pass tries in backfill order
    ending: Any  # ENTRY[...], heap of ends; entries of jobs that were killed are void
    expecting: Any  # ENTRY[...], heap of expected ends, likewise
    timers: Any  # ENTRY[2n], heap of times when jobs become eligible (job) or give up (n + job)
    pieces: Any  # PIECE[p]
    changes: Any  # CHANGE[2p]
    executions: Any  # EXECUTION[...]
    level: Any  # int64[...], scratch: what is free on a node at some time
    least: Any  # int64[...], scratch: the least that is free on a node over some time
    refused: Any  # int64[shapes], `freed` when a job of a shape did not fit last
    fitting: Any  # int64[m], scratch: units of a job that fit on each node
    scores: Any  # float64[m], scratch: places of nodes in the order of a placement
    ranking: Any  # SCORED[m + 1], scratch: nodes in the order of a placement
    turns: Any  # ENTRY[m + 1], scratch: when to look at a node again
    events: Any  # EVENT[...], by time
    windows: Any  # WINDOW[...]
    dependents: Any  # DEPENDENT[...], of each job one after the other
    first_dependent: Any  # int64[n + 1], where those of a job begin
    limits: Any  # LIMIT[...]
    limited: Any  # int64[n, l], limits that a job is subject to, -1 for none
    typical: Any  # TYPICAL[...]
    fragments: Any  # float64[m], what `placement.fragments` says of each node; negative if it has to be asked
    largest: Any  # int64[2], most cores and GPUs of a node
    stack: Any  # int64[n], scratch: jobs whose dependents are to be told
    killed: Any  # int64[n], how often each job was killed
    extra: Any  # int64[n], seconds of each job that were lost or spent on checkpoints
    state: Any  # STATE[1]
    store: Any  # STORE[1]


def allocate(
    jobs: Any,
    labels: Any,
    users: int,
    nodes: Any,
    allowed: Any,
    keys: tuple[Any, Any],
    events: Any,
    windows: Any,
    dependents: Any,
    first_dependent: Any,
    limits: Any,
    limited: Any,
    typical: Any,
) -> NodeArrays:
    """Arrays of an idle cluster, for jobs of so many users; `nodes` have only what they have."""
    number, size = len(jobs), len(nodes)
    nodes = nodes.copy()
    nodes["device"] = np.cumsum(nodes["gpus"]) - nodes["gpus"]
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    nodes["free_gpus"] = nodes["gpus"]
    nodes["free_share"] = WHOLE * nodes["gpus"]
    nodes["largest_share"] = np.where(nodes["gpus"] > 0, WHOLE, 0)
    nodes["change"] = -1
    state = np.zeros(1, STATE)
    state["planned"] = FOREVER
    state["freed"] = 1
    store = np.zeros(1, STORE)
    store["free_piece"] = -1
    reach = allowed.astype(np.int64)
    return with_room(
        NodeArrays(
            jobs=jobs,
            labels=labels,
            recent=no_run_times(users),
            queue_key=keys[0],
            order_key=keys[1],
            nodes=nodes,
            devices=np.full(int(nodes["gpus"].sum()), WHOLE, np.int64),
            allowed=allowed,
            overlap=(reach @ reach.T) > 0,
            held=np.zeros(len(allowed), np.int64),
            waiting=np.empty(number, np.int64),
            candidates=np.empty(number + 1, SCORED),
            later=np.empty(number, np.int64),
            ending=np.empty(number + 1, ENTRY),
            expecting=np.empty(number + 1, ENTRY),
            timers=np.empty(2 * number, ENTRY),
            pieces=np.empty(0, PIECE),
            changes=np.empty(0, CHANGE),
            executions=np.empty(0, EXECUTION),
            level=np.zeros(DEVICES + MAX_GPUS, np.int64),
            least=np.zeros(DEVICES + MAX_GPUS, np.int64),
            refused=np.zeros(int(jobs["shape"].max(initial=0)) + 1, np.int64),
            fitting=np.zeros(size, np.int64),
            scores=np.empty(size),
            ranking=np.empty(size + 1, SCORED),
            turns=np.empty(size + 1, ENTRY),
            events=events,
            windows=windows,
            dependents=dependents,
            first_dependent=first_dependent,
            limits=limits,
            limited=limited,
            typical=typical,
            fragments=np.full(size, -1.0),
            largest=np.array([nodes["cores"].max(), nodes["gpus"].max()], np.int64),
            stack=np.empty(number, np.int64),
            killed=np.zeros(number, np.int64),
            extra=np.zeros(number, np.int64),
            state=state,
            store=store,
        ),
        4 * size + number + len(windows) + 16,
    )


def no_run_times(users: int) -> Any:
    """What is known of users at first, see `gridsched.engine.nodes.runtime_prediction`."""
    return np.full((users, 2), -1, np.int64)


def with_room(a: NodeArrays, more: int) -> NodeArrays:
    """The same cluster with room for so many more pieces, executions and ends."""
    used = len(a.pieces)
    pieces = _longer(a.pieces, more)
    pieces["next"][used:-1] = np.arange(used + 1, len(pieces))
    pieces["next"][-1] = a.store["free_piece"][0]
    a.store["free_piece"] = used
    a.store["free_pieces"] += more
    a.store["short"] = 0
    return a._replace(
        pieces=pieces,
        changes=_longer(a.changes, 2 * more),
        executions=_longer(a.executions, more),
        ending=_longer(a.ending, more),
        expecting=_longer(a.expecting, more),
    )


def _longer(column: Any, more: int) -> Any:
    longer = np.zeros(len(column) + more, column.dtype)
    longer[: len(column)] = column
    return longer
