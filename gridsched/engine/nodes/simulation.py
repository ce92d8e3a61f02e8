"""The order in which things happen on a cluster of nodes.

At one instant: ends, outrun estimates, events of nodes, jobs that become eligible or are submitted, users who
give up, then one scheduling pass. A user who gives up at an instant takes a job away that could start then.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import heap
from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.job_lifecycle import next_of_lifecycles
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.events import finish, process_lifecycles, process_node_event
from gridsched.engine.nodes.queue import correct, next_end, next_expected_end
from gridsched.engine.passes import scheduling_pass
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference


@inline
def _next_node_event(a: NodeArrays) -> int:
    """When something happens to a node next."""
    k = a.state[0]["event"]
    return a.events[k]["time"] if k < len(a.events) else FOREVER


@inline
def next_on_nodes(a: NodeArrays) -> int:
    """When something happens next that is not told by users."""
    return min(next_end(a), next_expected_end(a), _next_node_event(a), a.state[0]["planned"])


@noinline
def process_on_nodes(a: NodeArrays, now: int, options: NodeOptions) -> None:
    """Ends, outrun estimates and what happens to nodes at an instant."""
    store = a.store[0]
    while next_end(a) == now:
        j = a.ending[0]["job"]
        store["ending"] = heap.pop(a.ending, store["ending"])
        finish(a, j, now, options)
    while next_expected_end(a) == now:
        j = a.expecting[0]["job"]
        store["expecting"] = heap.pop(a.expecting, store["expecting"])
        correct(a, j, now, options)
    while _next_node_event(a) == now:
        process_node_event(a, now, options)
    a.state[0]["changed"] |= a.state[0]["planned"] <= now


@inline
def _is_done(a: NodeArrays) -> bool:
    """Whether nothing can happen to jobs any more."""
    if next_of_lifecycles(a.lifecycles) < FOREVER or a.state[0]["waiting"] > 0:
        return False
    return next_end(a) == FOREVER


@inline
def _first_unstarted(a: NodeArrays, j: int, end: int) -> int:
    """First job at or after `j` that has not started, `end` if there is none before it."""
    while j < end and (a.jobs[j]["start"] >= 0 or a.jobs[j]["done"] > 0):
        j += 1
    return j


@jit
def schedule(bundle: NodeArrays, options: NodeOptions, score: Any) -> bool:
    """Simulate the cluster until no job is left, or until there is no room; return whether it is done.

    It is also done when all jobs have started that are awaited.

    `score` is a compiled function of (now, submit_time, estimate, processors, user, group, queue); the
    waiting job of the largest score is first in the queue.
    """
    a = by_reference(bundle)
    state = a.state[0]
    unstarted = 0
    while True:
        if state["changed"]:
            scheduling_pass(a, state["now"], options, score)
            if a.store[0]["short"] > 0:
                return False
            state["changed"] = False
            unstarted = _first_unstarted(a, unstarted, options.awaited)
            if 0 < options.awaited == unstarted:
                return True
        now = min(next_on_nodes(a), next_of_lifecycles(a.lifecycles))
        if now == FOREVER or _is_done(a):
            return True
        state["now"] = now
        process_on_nodes(a, now, options)
        process_lifecycles(a, now, options)
