"""Record types of clusters of nodes. All whole numbers are int64, so that helpers are compiled once."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

WHOLE = 1000
"""Thousandths of a GPU."""

MAX_GPUS = 62
"""GPUs that a node can have: the devices of a piece are bits of a number."""

NODE = np.dtype(
    [
        ("cores", np.int64),
        ("memory", np.int64),
        ("gpus", np.int64),
        ("device", np.int64),  # its first GPU in `devices`
        ("weight", np.float64),
        ("free_cores", np.int64),
        ("free_memory", np.int64),
        ("free_gpus", np.int64),  # GPUs of which nothing is taken
        ("free_share", np.int64),  # thousandths of all its GPUs that are free
        ("largest_share", np.int64),  # most thousandths that are free of one GPU
        ("pieces", np.int64),  # jobs that run there
        ("change", np.int64),  # its first change, see `CHANGE`
        ("plans", np.int64),  # changes that take something
        ("down", np.int64),  # whether it failed
        ("drained", np.int64),  # whether it takes no more jobs
        ("windows", np.int64),  # maintenance windows that it is in
    ]
)
"""A node: what it has, what is free, and its state."""

JOB = np.dtype(
    [
        ("submit", np.int64),
        ("work", np.int64),  # seconds of work that are left
        ("guess", np.int64),  # how many are thought to be left
        ("given", np.int64),  # how many are left by its runtime estimate
        ("run", np.int64),  # seconds that its next execution takes, checkpoints included
        ("estimate", np.int64),  # how many it is expected to take
        ("limit", np.int64),  # how many it takes by its runtime estimate
        ("predicted", np.int64),  # `guess` when it entered the queue first
        ("user", np.int64),  # number of its user, -1 if not known
        ("units", np.int64),  # equal parts, each on one node
        ("cores", np.int64),  # of a unit
        ("memory", np.int64),  # of a unit
        ("gpus", np.int64),  # whole GPUs of a unit
        ("share", np.int64),  # thousandths of one GPU of a unit
        ("most", np.int64),  # units on one node at most
        ("whole", np.int64),  # whether its nodes run nothing else
        ("where", np.int64),  # row of `allowed`
        ("choices", np.int64),  # of nodes that there are in it: bits
        ("choice", np.int64),  # the bit of the one that is tried; all bits if they are of its parts
        ("parts", np.int64),  # groups of units with nodes of their own: bits of one choice; 0 without
        ("affinity", np.int64),  # kind of GPU job, below 62; -1 without GPU
        ("priority", np.float64),  # added to the keys of its queue
        ("done", np.int64),  # whether it ended by itself
        ("killed", np.int64),  # how often it was killed
        ("extra", np.int64),  # seconds that were lost or spent on checkpoints
        ("entry", np.int64),  # number in the order of entry into the queue
        ("piece", np.int64),  # its first piece; -1 without
        ("start", np.int64),  # of its present execution; -1 while it does not run
        ("end", np.int64),  # of its present execution
        ("expected", np.int64),  # end of its present execution
        ("plan", np.int64),  # planned start; FOREVER without
        ("shape", np.int64),  # jobs of one shape ask for the same
    ]
)
"""A job: what it asks for and its outcome."""

PIECE = np.dtype(
    [
        ("job", np.int64),  # -1 for a maintenance window
        ("node", np.int64),
        ("units", np.int64),
        ("cores", np.int64),
        ("memory", np.int64),
        ("devices", np.int64),  # bits: GPUs of which it takes something
        ("share", np.int64),  # thousandths of each of them
        ("next", np.int64),  # next piece of the job; or next free piece
        ("execution", np.int64),  # its entry among the executions
        ("start", np.int64),
        ("end", np.int64),
    ]
)
"""What a job has, or will have, on one node; pieces that were executed are kept as they were then."""

CHANGE = np.dtype([("time", np.int64), ("next", np.int64)])
"""A change of what is free on a node, in a list by time: piece p begins at change 2p and ends at 2p + 1."""

EVENT = np.dtype([("time", np.int64), ("node", np.int64), ("kind", np.int64), ("window", np.int64)])
"""Something that happens to a node; `window` is the number of a maintenance window."""

WINDOW = np.dtype([("node", np.int64), ("start", np.int64), ("end", np.int64), ("piece", np.int64)])
"""A maintenance window of a node; `piece` takes the whole node while the window is known."""

LIMIT = np.dtype(
    [
        ("jobs", np.int64),  # that may run at once
        ("cores", np.int64),  # that they may have
        ("seconds", np.int64),  # cores times estimated seconds that they may have
        ("used_jobs", np.int64),
        ("used_cores", np.int64),
        ("used_seconds", np.int64),
    ]
)
"""What a group of jobs may use at once, and uses."""

TYPICAL = np.dtype(
    [
        ("cores", np.int64),
        ("gpus", np.int64),
        ("share", np.int64),  # thousandths of each of its GPUs
        ("where", np.int64),
        ("frequency", np.float64),
    ]
)
"""A kind of job that is to be expected, see `placement.fragments`."""

STATE = np.dtype(
    [
        ("now", np.int64),
        ("event", np.int64),  # next event of a node
        ("entered", np.int64),  # entries into the queue so far
        ("waiting", np.int64),
        ("changed", np.int64),  # whether a pass is needed
        ("early", np.int64),  # whether something became free before it was expected
        ("broken", np.int64),  # whether plans no longer hold
        ("planned", np.int64),  # earliest planned start
        ("placed", np.int64),  # waiting jobs that have been planned
        ("freed", np.int64),  # how often something became free
        ("looked", np.int64),  # nodes that `fitting` is about
        ("unordered", np.int64),  # number of the first job whose score was not a finite number ...
        ("unordered_at", np.int64),  # ... plus 1, and when
        ("corrections", np.int64),
    ]
)
"""Scalars of a cluster."""

STORE = np.dtype(
    [
        ("ending", np.int64),  # entries of the heap of ends
        ("expecting", np.int64),  # entries of the heap of expected ends
        ("free_piece", np.int64),  # first free piece
        ("free_pieces", np.int64),
        ("executions", np.int64),
        ("short", np.int64),  # pieces or executions for which there was no room
    ]
)
"""How much is used of what the clusters of a grid have together."""


class Placement(IntEnum):
    """Which nodes a job gets; `gridsched.platform.PLACEMENTS` explains them."""

    FIRST_FIT = 0
    BEST_FIT = 1
    WORST_FIT = 2
    PACKED = 3
    SPREAD = 4
    WEIGHT = 5
    RANDOM = 6
    DOT_PRODUCT = 7
    CLUSTERED = 8
    FRAGMENTS = 9


FIRST_FIT, BEST_FIT, WORST_FIT, PACKED, SPREAD, WEIGHT, RANDOM, DOT_PRODUCT, CLUSTERED, FRAGMENTS = map(
    int, Placement
)


class EventKind(IntEnum):
    """What happens to a node."""

    DOWN = 0
    UP = 1
    DRAIN = 2
    RESUME = 3
    ANNOUNCE = 4
    CLOSE = 5
    OPEN = 6


DOWN, UP, DRAIN, RESUME, ANNOUNCE, CLOSE, OPEN = map(int, EventKind)
