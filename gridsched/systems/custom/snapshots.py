"""Snapshots of a simulation: as much is copied as there are nodes and jobs that wait or run, not all jobs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.clusters import UNDECIDED
from gridsched.engine.simulator import Simulated

_OF_PLATFORM = (
    "recent",
    "nodes",
    "devices",
    "fragments",
    "limits",
    "windows",
    "refused",
    "pieces",
    "changes",
    "state",
    "store",
    "clock",
)
"""Arrays of clusters that are copied whole."""

_OF_JOBS = (
    ("local", "jobs"),
    ("local", "killed"),
    ("local", "extra"),
    ("local", "queue_key"),
    ("local", "order_key"),
    ("local", "limited"),
    ("g", "cluster"),
    ("g", "entry"),
    ("", "entry"),
    ("", "direct"),
)
"""Arrays with an element for each job; of those with two rows the first is meant."""


@dataclass(frozen=True, eq=False)
class SimulatorSnapshot:
    """The state of a simulation at some instant; see `Simulator.snapshot`."""

    arrays: tuple[NDArray[Any], ...]
    alive: NDArray[np.int64]
    of_alive: tuple[NDArray[Any], ...]
    arrived: int
    pieces: int
    memory: dict[str, Any]
    done: bool


def _column(a: Simulated, part: str, name: str) -> NDArray[Any]:
    """An array with an element for each job."""
    values = getattr(getattr(a, part) if part else a, name)
    column: NDArray[Any] = values[0] if part == "local" and name in ("jobs", "killed", "extra") else values
    return column


def _arrays(a: Simulated, sizes: Any) -> list[NDArray[Any]]:
    """All that is copied whole, of arrays that are partly in use the part; `sizes` is the state of all."""
    state, local, lives = sizes, a.local, a.local.lifecycles
    store = local.store[0, 0]
    first = int(state["first"])
    found = [getattr(local, name) for name in _OF_PLATFORM]
    found += [a.g.dirty, a.g.due, a.g.clock, a.free, a.freed, lives.state, a.state]
    found += [
        a.queue[first : first + int(state["queued"])],
        a.running[: int(state["running"])],
        a.calls[: int(state["calls"])],
        local.ending[: int(store["ending"])],
        local.expecting[: int(store["expecting"])],
        lives.timers[: int(lives.state[0]["timers"])],
        local.waiting[:-1, : int(local.state["waiting"].max())],
    ]
    if len(lives.dependents):
        found.append(lives.jobs)
    return found


def _alive(a: Simulated) -> NDArray[np.int64]:
    """Jobs that are submitted and not done with, as far as clusters know them."""
    state, local = a.state[0], a.local
    first = int(state["first"])
    parts = [a.queue["job"][first : first + int(state["queued"])], a.running["job"][: int(state["running"])]]
    parts += [
        local.waiting[m, : int(count)] for m, count in enumerate(local.state["waiting"][:-1, 0]) if count
    ]
    return np.concatenate(parts)


def take(a: Simulated, memory: dict[str, Any], done: bool) -> SimulatorSnapshot:
    """SimulatorSnapshot of a simulation."""
    alive = _alive(a)
    lives = a.local.lifecycles
    of_alive = [_column(a, part, name)[alive] for part, name in _OF_JOBS]
    return SimulatorSnapshot(
        arrays=tuple(each.copy() for each in _arrays(a, a.state[0])),
        alive=alive,
        of_alive=(*of_alive, lives.jobs[alive]),
        arrived=int(lives.state[0]["arrival"]),
        pieces=len(a.local.pieces),
        memory=copy.deepcopy(memory),
        done=done,
    )


def put_back(a: Simulated, snapshot: SimulatorSnapshot, fates: NDArray[np.int64]) -> None:
    """Let a simulation be as it was; `fates` are those of jobs before they are submitted."""
    lives, arrived = a.local.lifecycles, snapshot.arrived
    _forget_jobs(a, slice(arrived, int(lives.state[0]["arrival"])), fates)
    for (part, name), values in zip(_OF_JOBS, snapshot.of_alive[:-1], strict=True):
        _column(a, part, name)[snapshot.alive] = values
    lives.jobs[snapshot.alive] = snapshot.of_alive[-1]
    # sizes first: they say how much of each array is in use
    whole = len(_OF_PLATFORM)
    states = {
        "state": snapshot.arrays[_OF_PLATFORM.index("state")],
        "store": snapshot.arrays[_OF_PLATFORM.index("store")],
    }
    for name, values in states.items():
        getattr(a.local, name)[:] = values
    a.state[:] = snapshot.arrays[whole + 6]
    lives.state[:] = snapshot.arrays[whole + 5]
    for array, values in zip(_arrays(a, a.state[0]), snapshot.arrays, strict=True):
        array[tuple(slice(length) for length in values.shape)] = values
    _add_pieces(a, snapshot.pieces)


def _forget_jobs(a: Simulated, jobs: slice, fates: NDArray[np.int64]) -> None:
    """Let jobs be as before they were submitted."""
    local, lives = a.local, a.local.lifecycles
    for name in ("start", "end", "entry", "piece"):
        local.jobs[name][0, jobs] = -1
    local.jobs["done"][0, jobs] = 0
    local.killed[0, jobs] = local.extra[0, jobs] = 0
    a.g.cluster[jobs] = UNDECIDED
    a.g.entry[jobs] = a.entry[jobs] = -1
    a.direct[jobs] = False
    if not len(lives.dependents):
        lives.jobs["unmet"][jobs] = 1
        lives.jobs["eligible"][jobs] = lives.jobs["started"][jobs] = 0
        lives.jobs["fate"][jobs] = fates[jobs]


def _add_pieces(a: Simulated, before: int) -> None:
    """Let pieces that there was no room for at the time of the snapshot be free."""
    pieces, store = a.local.pieces, a.local.store[0, 0]
    more = len(pieces) - before
    if more:
        pieces["next"][before:] = np.arange(before + 1, len(pieces) + 1)
        pieces["next"][-1] = store["free_piece"]
        store["free_piece"] = before
        store["free_pieces"] += more
