"""What happens to nodes and to jobs: failures, maintenance, dependencies, users who give up, ends."""

from __future__ import annotations

from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import Fate, let_enter, let_give_up, next_of_lifecycles, note_end
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
from gridsched.engine.nodes.records import EventKind, Requeue
from gridsched.engine.nodes.runtime_prediction import learn, predict
from gridsched.engine.records import Prediction

_ESTIMATE = int(Prediction.ESTIMATE)
_COMPLETED = int(Fate.COMPLETED)
_LOST = int(Fate.LOST)
_DOWN = int(EventKind.DOWN)
_UP = int(EventKind.UP)
_DRAIN = int(EventKind.DRAIN)
_RESUME = int(EventKind.RESUME)
_ANNOUNCE = int(EventKind.ANNOUNCE)
_CLOSE = int(EventKind.CLOSE)
_END = int(Requeue.END)
_LOSE = int(Requeue.LOST)


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
    """Let jobs enter the queue whose time has come, and those leave whose users give up."""
    while next_of_lifecycles(a.lifecycles) == now:
        for k in range(let_enter(a.lifecycles, now, a.later)):
            if options.prediction != _ESTIMATE:
                _predict(a, a.later[k], options)
            enter(a, a.later[k])
        for k in range(let_give_up(a.lifecycles, now, a.later)):
            if a.jobs[a.later[k]]["entry"] >= 0:
                leave(a, a.later[k])


# --- ends -----------------------------------------------------------------------------------------


@inline
def _tell_end(a: NodeArrays, j: int, now: int, fate: int, options: NodeOptions) -> None:
    """Tell those who wait for a job that it is done with."""
    if options.requests > 0:
        note_end(a.lifecycles, j // options.requests, now, fate)


@noinline
def finish(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Let a job end by itself."""
    job = a.jobs[j]
    job["extra"] += job["run"] - job["work"]
    stop(a, j, now, options)
    learn(a.jobs, j, a.recent, options.prediction)
    job["done"] = True
    _tell_end(a, j, now, _COMPLETED, options)


@inline
def kill(a: NodeArrays, j: int, now: int, options: NodeOptions) -> None:
    """Take a running job off its nodes; it waits again, or is lost."""
    job = a.jobs[j]
    elapsed = now - job["start"]
    stop(a, j, now, options)
    job["killed"] += 1
    lose_progress(a, j, elapsed, options)
    if options.requeue == _LOSE:
        _tell_end(a, j, now, _LOST, options)
        return
    if options.requeue == _END:
        job["entry"] = -1
    enter(a, j)


@noinline
def _kill_all_on(a: NodeArrays, n: int, now: int, options: NodeOptions) -> None:
    """Kill all jobs that run on a node, in order of submission."""
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
    if kind == _DOWN:
        node["down"] = True
        _kill_all_on(a, n, now, options)
    elif kind == _UP:
        node["down"] = False
    elif kind == _DRAIN:
        node["drained"] = True
    elif kind == _RESUME:
        node["drained"] = False
    elif kind == _ANNOUNCE:
        _announce(a, event["window"])
    elif kind == _CLOSE:
        forget_begin(a, a.windows[event["window"]]["piece"])
        node["windows"] += 1
        _kill_all_on(a, n, now, options)
    else:
        node["windows"] -= 1
        _open(a, event["window"])
    state["broken"] = True
    note_freed(a)
