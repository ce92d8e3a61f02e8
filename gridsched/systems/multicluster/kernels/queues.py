"""Clusters under local policies, driven from round to round; the local schedulers are those of `clusters`."""

from __future__ import annotations

from typing import Any

from gridsched.engine import clusters as grid
from gridsched.engine import heap, running
from gridsched.engine.clusters import GridArrays, LocalArrays
from gridsched.engine.jit import jit
from gridsched.engine.overrun import expected_end
from gridsched.engine.reference import by_reference


@jit
def advance(g: GridArrays, local: LocalArrays, until: int, options: grid.GridOptions, score: Any) -> None:
    """Let happen on all clusters what happens up to a time, if no job comes."""
    g, local, options = by_reference(g), by_reference(local), by_reference(options)
    now = grid.first_due(g)
    while now <= until:
        grid.finish_due(g, local, now, options)
        grid.pass_where_due(g, local, now, options, score)
        now = grid.first_due(g)


@jit
def receive(
    g: GridArrays, local: LocalArrays, jobs: Any, m: int, now: int, options: grid.GridOptions, score: Any
) -> None:
    """Let jobs enter the local queue of a cluster, which has a scheduling pass then."""
    g, local, options = by_reference(g), by_reference(local), by_reference(options)
    for job in jobs:
        grid.enter(g, local, job, m, now, options, score)
    grid.pass_on(g, local, m, now, options, score)


@jit
def withdraw(g: GridArrays, local: LocalArrays, jobs: Any, m: int, now: int) -> None:
    """Let jobs wait no longer on a cluster."""
    g, local = by_reference(g), by_reference(local)
    for job in jobs:
        grid.withdraw(g, local, job, m, now)


@jit
def foresee(
    g: GridArrays, local: LocalArrays, m: int, now: int, in_fact: bool, overrun: int, score: Any
) -> None:
    """When the jobs that wait on a cluster start if no other enters; see `clusters.foresee`."""
    grid.foresee(by_reference(g), by_reference(local), m, now, in_fact, overrun, score)


# --- other resources, and failures ----------------------------------------------------------------


@jit
def next_instant(g: GridArrays) -> int:
    """Time of the next event on any cluster."""
    return grid.first_due(g)


@jit
def finish(g: GridArrays, local: LocalArrays, now: int, options: grid.GridOptions) -> None:
    """Let happen on all clusters what ends or is outrun now, without the scheduling passes."""
    grid.finish_due(by_reference(g), by_reference(local), now, by_reference(options))


@jit
def rearrange(
    g: GridArrays,
    local: LocalArrays,
    killed: Any,
    leaving: Any,
    coming: Any,
    m: int,
    processors: int,
    held: Any,
    now: int,
    options: grid.GridOptions,
    score: Any,
) -> None:
    """Let a cluster have so many processors; jobs that are killed run no longer, and others wait there.

    Every plan is made anew, without a scheduling pass. Estimates that are outrun now have to be corrected
    before. `held` are the processors of each running job, by entry (`clusters.resize`).
    """
    g, local, options = by_reference(g), by_reference(local), by_reference(options)
    state = g.state[m, 0]
    for j in killed:
        e = g.entry[j]
        killed_job = local.jobs[0, e]
        state["ending"] = heap.without(local.events[m], state["ending"], e)
        if state["blocks"] > 0:
            end = expected_end(local.starts[0, e], int(killed_job["estimate"]), options.overrun, now + 1)
            state["blocks"] = running.remove(
                local.blocks[m], local.runs[m], state["blocks"], end, e, killed_job["processors"]
            )
    for job in leaving:
        grid.withdraw(g, local, job, m, now)
    grid.resize(g, local, m, processors, held, now)
    for job in coming:
        grid.enter(g, local, job, m, now, options, score)
    # all of them are planned in the order of the queue
    state["placed"] = state["waiting"]
