"""Snapshots of a simulation: as much is copied as there are nodes and jobs that wait or run, not all jobs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.clusters import UNDECIDED
from gridsched.engine.simulator import Simulated

_OF_PLATFORM = (
    "state",
    "store",
    "recent",
    "nodes",
    "devices",
    "fragments",
    "limits",
    "windows",
    "refused",
    "pieces",
    "changes",
)
"""Arrays of clusters that are copied whole."""


@dataclass(frozen=True, eq=False)
class SimulatorSnapshot:
    """The state of a simulation at some instant; see `Simulator.snapshot`."""

    sizes: tuple[NDArray[Any], ...]
    arrays: tuple[NDArray[Any], ...]
    alive: NDArray[np.int64]
    of_alive: tuple[NDArray[Any], ...]
    pieces: int
    memory: dict[str, Any]
    done: bool
    mark: object = field(default_factory=object)
    """What is its own alone, so that a simulator knows it again without keeping it."""


def _of_jobs(a: Simulated) -> list[NDArray[Any]]:
    """Arrays with an element for each job."""
    real = a.local.real
    own = [real.jobs, real.queue_key, real.order_key, real.limited]
    return [*own, a.g.cluster, a.g.entry, a.entry, a.direct, a.local.lifecycles.jobs]


def _sizes(a: Simulated) -> list[NDArray[Any]]:
    """What says how much of other arrays is in use."""
    return [a.state, a.local.lifecycles.state, a.local.real.state, a.local.real.store]


def _arrays(a: Simulated) -> list[NDArray[Any]]:
    """All that is copied besides: whole, or what of it is in use."""
    state, real, lives = a.state[0], a.local.real, a.local.lifecycles
    first, store = int(state["first"]), real.store[0]
    found = [getattr(real, name) for name in _OF_PLATFORM]
    found += [a.local.clock, a.g.dirty, a.g.due, a.g.clock, a.free, a.freed]
    found += [
        a.queue[first : first + int(state["queued"])],
        a.running[: int(state["running"])],
        a.calls[: int(state["calls"])],
        real.ending[: int(store["ending"])],
        real.expecting[: int(store["expecting"])],
        lives.timers[: int(lives.state[0]["timers"])],
        real.waiting[:, : int(real.state["waiting"].max())],
    ]
    return [*found, lives.jobs] if len(lives.dependents) else found


def _alive(a: Simulated) -> NDArray[np.int64]:
    """Jobs that wait or run, and those that were submitted and may not start yet."""
    state, real, lives = a.state[0], a.local.real, a.local.lifecycles
    first = int(state["first"])
    parts = [a.queue["job"][first : first + int(state["queued"])], a.running["job"][: int(state["running"])]]
    # the last state is that of the copy on which starts are predicted
    of_clusters = real.state["waiting"][: len(real.waiting), 0]
    parts += [real.waiting[m, : int(count)] for m, count in enumerate(of_clusters) if count]
    later = lives.timers["job"][: int(lives.state[0]["timers"])]
    parts.append(later[later < len(lives.jobs)])
    if len(lives.dependents):
        parts.append(np.flatnonzero(lives.jobs["unmet"][: int(lives.state[0]["arrival"])] > 0))
    return np.concatenate(parts)


def take(a: Simulated, memory: dict[str, Any], done: bool) -> SimulatorSnapshot:
    """Snapshot of a simulation."""
    alive = _alive(a)
    return SimulatorSnapshot(
        sizes=tuple(each.copy() for each in _sizes(a)),
        arrays=tuple(each.copy() for each in _arrays(a)),
        alive=alive,
        of_alive=tuple(each[alive] for each in _of_jobs(a)),
        pieces=len(a.local.real.pieces),
        memory=copy.deepcopy(memory),
        done=done,
    )


def put_back(a: Simulated, snapshot: SimulatorSnapshot, fates: NDArray[np.int64]) -> None:
    """Let a simulation be as it was; `fates` are those of jobs before they are submitted."""
    lives = a.local.lifecycles
    arrived = int(lives.state[0]["arrival"])
    for array, values in zip(_sizes(a), snapshot.sizes, strict=True):
        array[:] = values
    _forget_jobs(a, slice(int(lives.state[0]["arrival"]), arrived), fates)
    for array, values in zip(_of_jobs(a), snapshot.of_alive, strict=True):
        array[snapshot.alive] = values
    for array, values in zip(_arrays(a), snapshot.arrays, strict=True):
        array[tuple(slice(length) for length in values.shape)] = values
    _add_pieces(a, snapshot.pieces)


def _forget_jobs(a: Simulated, jobs: slice, fates: NDArray[np.int64]) -> None:
    """Let jobs be as before they were submitted."""
    own, lives = a.local.real.jobs, a.local.lifecycles
    own[jobs] = np.zeros(1, own.dtype)
    own["start"][jobs] = -1
    a.g.cluster[jobs] = UNDECIDED
    a.g.entry[jobs] = a.entry[jobs] = -1
    a.direct[jobs] = False
    if not len(lives.dependents):
        lives.jobs["unmet"][jobs] = 1
        for name in ("eligible", "started", "killed"):
            lives.jobs[name][jobs] = 0
        lives.jobs["fate"][jobs] = fates[jobs]


def _add_pieces(a: Simulated, before: int) -> None:
    """Let pieces that there was no room for at the time of the snapshot be free."""
    pieces, store = a.local.real.pieces, a.local.real.store[0]
    more = len(pieces) - before
    if more:
        pieces["next"][before:] = np.arange(before + 1, len(pieces) + 1)
        pieces["next"][-1] = store["free_piece"]
        store["free_piece"] = before
        store["free_pieces"] += more
