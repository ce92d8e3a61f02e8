"""Clusters under local policies, driven from round to round; the local schedulers are those of `clusters`."""

from __future__ import annotations

from typing import Any

from gridsched.engine import clusters as grid
from gridsched.engine.clusters import GridArrays, LocalArrays
from gridsched.engine.jit import jit
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
    for k in range(len(jobs)):
        grid.enter(g, local, jobs[k], m, now, options, score)
    grid.pass_on(g, local, m, now, options, score)


@jit
def withdraw(g: GridArrays, local: LocalArrays, jobs: Any, m: int, now: int) -> None:
    """Let jobs wait no longer on a cluster."""
    g, local = by_reference(g), by_reference(local)
    for k in range(len(jobs)):
        grid.withdraw(g, local, jobs[k], m, now)


@jit
def resize(g: GridArrays, local: LocalArrays, m: int, processors: int, held: Any, now: int) -> None:
    """Let a cluster have so many processors; see `clusters.resize`."""
    grid.resize(by_reference(g), by_reference(local), m, processors, held, now)


@jit
def foresee(
    g: GridArrays, local: LocalArrays, m: int, now: int, in_fact: bool, overrun: int, score: Any
) -> None:
    """When the jobs that wait on a cluster start if no other enters; see `clusters.foresee`."""
    grid.foresee(by_reference(g), by_reference(local), m, now, in_fact, overrun, score)
