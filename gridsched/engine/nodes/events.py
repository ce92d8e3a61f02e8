"""What happens to nodes and to jobs: failures, maintenance, dependencies, users who give up, ends."""

from __future__ import annotations

from gridsched.engine import job_lifecycle
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import (
    COMPLETED,
    REQUEUE_AT_END,
    REQUEUE_NEVER,
    let_enter,
    let_give_up,
    next_of_lifecycles,
)
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions
from gridsched.engine.nodes.plans import (
    expect_begin,
    expect_end,
    forget_begin,
    forget_end,
    free_piece,
    take_piece,
)
from gridsched.engine.nodes.queue import enter, leave, lose_progress, note_freed, set_lengths, stop
from gridsched.engine.nodes.records import (
    ANNOUNCE,
    CLOSE,
    DOWN,
    DRAIN,
    RESUME,
    UP,
)
from gridsched.engine.nodes.runtime_prediction import learn, predict
from gridsched.engine.records import BY_ESTIMATE

# --- who enters and who leaves --------------------------------------------------------------------


@inline
def _predict(a: NodeArrays, j: int, options: NodeOptions) -> None:
    """Predict the run time of a job that enters the queue first; who comes before whom may depend on it."""
    job = a.jobs[j]
    estimate = job["estimate"]
    predict(a.jobs, j, a.recent, options.prediction)
    set_lengths(job, options.interval, options.cost)
    if options.shortest_first:
        a.order_key[j] += job["estimate"] - estimate


@noinline
def process_lifecycles(a: NodeArrays, now: int, options: NodeOptions) -> None:
    """Let jobs enter the queue whose time has come, and those leave whose users give up.

    A job that enters and leaves at one instant changes nothing for the others.
    """
    state = a.state[0]
    first, changed, staying = state["entered"], state["changed"], 0
    while next_of_lifecycles(a.lifecycles) == now:
        for k in range(let_enter(a.lifecycles, now, a.later)):
            if options.prediction != BY_ESTIMATE:
                _predict(a, a.later[k], options)
            enter(a, a.later[k])
            staying += 1
        for k in range(let_give_up(a.lifecycles, now, a.later)):
            entry = a.jobs[a.later[k]]["entry"]
            if entry >= first:
                staying -= 1
            elif entry >= 0:
                changed = True
            if entry >= 0:
                leave(a, a.later[k])
    state["changed"] = changed or staying > 0


# --- ends -----------------------------------------------------------------------------------------


@noinline
def finish(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Let a job end by itself."""
    job = a.jobs[j]
    job["extra"] += job["run"] - job["work"]
    stop(a, j, now, options)
    learn(a.jobs, j, a.recent, options.prediction)
    job["done"] = True
    if options.requests > 0:
        job_lifecycle.note_end(a.lifecycles, j // options.requests, now, COMPLETED)


@inline
def kill(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Take a running job off its nodes; it waits again, or is lost."""
    job = a.jobs[j]
    elapsed = now - job["start"]
    stop(a, j, now, options)
    job["killed"] += 1
    lose_progress(a, j, elapsed, options)
    if options.requests > 0:
        job_lifecycle.note_kill(a.lifecycles, j // options.requests, options.requeue, now)
    if options.requeue == REQUEUE_NEVER:
        return
    if options.requeue == REQUEUE_AT_END:
        job["entry"] = -1
    enter(a, j)


@noinline
def _clear(a: NodeArrays, n: int, now: int, options: NodeOptions) -> None:
    """Kill the jobs that run on a node, in order of submission."""
    victim = 0
    while victim >= 0:
        victim = -1
        c = a.nodes[n]["change"]
        while c >= 0:
            j = a.pieces[c >> 1]["job"]
            if c & 1 and j >= 0 and a.jobs[j]["start"] >= 0 and (victim < 0 or j < victim):
                victim = j
            c = a.changes[c]["next"]
        if victim >= 0:
            kill(a, victim, now, options)


# --- nodes ----------------------------------------------------------------------------------------


@inline
def _announce(a: NodeArrays, w: int) -> None:
    """Plan a maintenance window."""
    window = a.windows[w]
    p = take_piece(a)
    a.pieces[p]["job"] = -1
    a.pieces[p]["node"] = window["node"]
    window["piece"] = p
    expect_begin(a, p, window["start"])
    expect_end(a, p, window["end"])


@inline
def _open(a: NodeArrays, w: int) -> None:
    """Let a maintenance window be over."""
    forget_end(a, a.windows[w]["piece"])
    free_piece(a, a.windows[w]["piece"])


@noinline
def process_node_event(a: NodeArrays, now: int, options: NodeOptions) -> None:
    """Let the next event of a node happen."""
    state = a.state[0]
    event = a.events[state["event"]]
    state["event"] += 1
    n, kind = event["node"], event["kind"]
    node = a.nodes[n]
    if kind == DOWN:
        node["down"] = True
        _clear(a, n, now, options)
    elif kind == UP:
        node["down"] = False
    elif kind == DRAIN:
        node["drained"] = True
    elif kind == RESUME:
        node["drained"] = False
    elif kind == ANNOUNCE:
        _announce(a, event["window"])
    elif kind == CLOSE:
        forget_begin(a, a.windows[event["window"]]["piece"])
        node["windows"] += 1
        _clear(a, n, now, options)
    else:
        node["windows"] -= 1
        _open(a, event["window"])
    state["broken"] = True
    note_freed(a)
