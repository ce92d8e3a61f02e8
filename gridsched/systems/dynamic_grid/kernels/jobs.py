"""Jobs of a dynamic grid as they start, run in spells, move, are suspended or killed, and end.

A *spell* is the time that a grid job runs on the same clusters. It begins when the job gets their processors;
it runs from `resume` on, when the tasks that were moved have arrived. A superstep lasts a whole number of
seconds, and a job can be stopped where one ends: `superstep`, 2 `superstep`, ... after `resume`. Each spell
thus does some work before it is stopped.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import cluster_state, heap, job_lifecycle, line, rings, running
from gridsched.engine.checkpoints import saved_work, with_checkpoints, work_done
from gridsched.engine.jit import as_int64, inline, noinline
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.processors import hand_over
from gridsched.systems.dynamic_grid.kernels.state import (
    FINISHED,
    GRID_QUEUE,
    GRID_RUN,
    IN_PROGRESS,
    LOCAL_RUN,
    NOBODY,
    UNIT,
    DynamicGridArrays,
    DynamicGridOptions,
    expect,
    forget,
    line_of,
    mark_dirty,
    offered,
    part_on,
    set_due,
    whole,
)


@inline
def finish(g: DynamicGridArrays, j: int, now: int, state: int) -> None:
    """Let a job that has run be done with; of one that was killed those who wait for it know already."""
    g.progress[j]["state"] = state
    g.progress[j]["finish"] = now
    g.clock[0]["present"] -= 1
    if state == FINISHED:
        job_lifecycle.note_end(g.lifecycles, j, now, job_lifecycle.COMPLETED)


@noinline
def note_start(g: DynamicGridArrays, j: int, now: int, state: int) -> None:
    """Note that a job has started to run at home or in the grid."""
    g.progress[j]["state"] = state
    if g.progress[j]["start"] == NOBODY:
        g.progress[j]["start"] = now
    job_lifecycle.note_start(g.lifecycles, j, now)


@noinline
def let_wait(g: DynamicGridArrays, row: int, j: int, estimate: int) -> None:
    """Let a job wait in NJ or CJ."""
    g.progress[j]["state"] = GRID_QUEUE
    queue = by_reference(line.row(g.grid_queues, row))
    line.append(queue, j, g.requests[j]["processors"], line.as_column(estimate))
    g.queued[row] += 1


@noinline
def write(
    g: DynamicGridArrays,
    j: int,
    i: int,
    processors: int,
    tasks: int,
    start: int,
    end: int,
    held: bool,
    killed: bool,
) -> None:
    """Write down that a job had processors for some time."""
    clock = g.clock[0]
    segment = g.segments[clock["segments"]]
    clock["segments"] += 1
    segment["job"] = j
    segment["cluster"] = i
    segment["processors"] = processors
    segment["start"] = start
    segment["end"] = end
    segment["held"] = held
    segment["tasks"] = tasks
    segment["killed"] = killed


# --- local jobs -----------------------------------------------------------------------------------


@noinline
def _end_local(g: DynamicGridArrays, j: int, i: int, now: int, kept: int, killed: bool) -> None:
    """Write down what a local job did that has left its processors."""
    start = g.starts[j]
    closed = hand_over(g, g.outages, i, j, NOBODY)
    g.state[i, 0]["free"] -= closed
    g.clusters[i]["loose"] += closed
    write(g, j, i, as_int64(g.jobs[j]["processors"]), g.requests[j]["processors"], start, now, False, killed)
    g.progress[j]["executed"] += now - start
    g.progress[j]["kept"] += kept
    mark_dirty(g, i)


@noinline
def _complete_local(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Take the local jobs of a cluster that end now off their processors."""
    c = by_reference(line_of(g, i))
    while cluster_state.ends(c, now):
        j = c.events[0]["job"]
        cluster_state.complete(c, now, o.overrun, True)
        _end_local(g, j, i, now, now - g.starts[j], False)
        finish(g, j, now, FINISHED)
    set_due(g, i)


@noinline
def break_off_local(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Take a local job off its processors before its end; what its last checkpoint has is kept."""
    i, job = g.requests[j]["home"], g.progress[j]
    start, estimate = g.starts[j], as_int64(g.jobs[j]["estimate"])
    g.state[i, 0]["ending"] = heap.without(g.local_ends[i], g.state[i, 0]["ending"], j)
    processors = as_int64(g.jobs[j]["processors"])
    g.state[i, 0]["free"] += processors
    forget(g, i, j, expected_end(start, estimate, o.overrun, now), processors)
    done = saved_work(now - start, g.clusters[i]["interval"], g.clusters[i]["pause"])
    _end_local(g, j, i, now, done, True)
    job["work"] -= done
    job["guess"] = max(1, job["guess"] - done)
    if o.keeps:
        # should it be sent to the grid scheduler
        job["left"] = max(0, job["left"] - done * o.scale * g.clusters[i]["pace"])
        job["served"] += done * o.scale
    g.starts[j] = NOBODY


# --- parts of grid jobs ---------------------------------------------------------------------------


@inline
def share(clusters: int, o: DynamicGridOptions) -> int:
    """Units of work that a job on so many clusters does in a second at a pace of 1."""
    return o.scale if clusters == 1 else UNIT


@inline
def _new_part(g: DynamicGridArrays, j: int, i: int) -> int:
    """An unused part, for no tasks of a job on a cluster."""
    link = g.chains[len(g.requests)]["after"]
    p = int(g.chains[link]["item"])
    rings.remove(g.chains, link)
    rings.insert(g.chains, link, j)
    rings.insert(g.sites, len(g.clusters) + p, i)
    g.progress[j]["clusters"] += 1
    g.clock[0]["parts"] += 1
    # the first one is never used
    g.parts[p] = g.parts[0]
    g.parts[p]["job"] = j
    g.parts[p]["cluster"] = i
    return p


@noinline
def add_part(g: DynamicGridArrays, j: int, i: int, tasks: int) -> int:
    """Let a job have tasks on a cluster, in addition to those that it may have there; return the part."""
    p = part_on(g, j, i)
    if p == NOBODY:
        p = _new_part(g, j, i)
    part = g.parts[p]
    more = whole(g, i, part["tasks"] + tasks) - part["processors"]
    part["tasks"] += tasks
    part["processors"] += more
    g.state[i, 0]["free"] -= more
    g.clusters[i]["grid"] += more
    mark_dirty(g, i)
    return p


@inline
def left_by(part: Any) -> int:
    """Processors that others may have when a part leaves."""
    return int(part["processors"] - part["closed"])


@noinline
def _unlink(g: DynamicGridArrays, p: int) -> None:
    """Let a part be none of its job and its cluster any more, whose processors it has still."""
    i = g.parts[p]["cluster"]
    rings.remove(g.chains, len(g.requests) + p)
    rings.remove(g.sites, len(g.clusters) + p)
    g.clusters[i]["grid"] -= left_by(g.parts[p])
    g.progress[g.parts[p]["job"]]["clusters"] -= 1
    mark_dirty(g, i)


@noinline
def _free_part(g: DynamicGridArrays, p: int, holder: int) -> None:
    """Give back the processors of a part, which its cluster knows under a holder's number."""
    part, unused = g.parts[p], len(g.requests)
    hand_over(g, g.outages, part["cluster"], holder, NOBODY)
    g.state[part["cluster"], 0]["free"] += left_by(part)
    g.clusters[part["cluster"]]["loose"] += part["closed"]
    rings.insert(g.chains, unused + p, g.chains[unused]["after"])
    g.clock[0]["parts"] -= 1


@noinline
def drop_all(g: DynamicGridArrays, j: int, now: int) -> None:
    """Take all parts of a job off their clusters, and let its proxies end."""
    job = g.progress[j]
    for p in rings.items(g.chains, j):
        _unlink(g, p)
        _free_part(g, p, j)
    while job["proxy"] != NOBODY:
        proxy = g.proxies[job["proxy"]]
        proxy["end"] = now
        job["proxy"] = proxy["before"]


@inline
def is_wanted(g: DynamicGridArrays, p: int) -> bool:
    """Whether a part has to leave its cluster."""
    told = g.parts[p]["marked"] != 0 or g.parts[p]["fleeing"] != 0
    return told or g.clusters[g.parts[p]["cluster"]]["member"] == 0


# --- spells ---------------------------------------------------------------------------------------


@inline
def boundary(g: DynamicGridArrays, j: int, now: int, superstep: int) -> int:
    """First end of a superstep of a running grid job that is not before now."""
    resume = g.progress[j]["resume"]
    return resume + max(1, -(-(now - resume) // superstep)) * superstep


@noinline
def expected_length(g: DynamicGridArrays, j: int, clusters: int, pace: int, o: DynamicGridOptions) -> int:
    """Seconds that a job is expected to run on so many clusters at a pace; at least one."""
    done = int(g.requests[j]["run"]) * o.work - g.progress[j]["left"]
    estimate = expected_end(0, int(g.requests[j]["estimate"]), o.overrun, done // o.work + 1)
    return -(-(estimate * o.work - done) // (share(clusters, o) * pace))


@inline
def _set_rates(g: DynamicGridArrays, j: int) -> None:
    """Let a job be as fast as its slowest cluster, and save its work as often as the most careful one."""
    job = g.progress[j]
    pace, interval, pause = FOREVER, FOREVER, 0
    for p in rings.items(g.chains, j):
        cluster = g.clusters[g.parts[p]["cluster"]]
        pace = min(pace, cluster["pace"])
        if cluster["interval"] > 0:
            interval = min(interval, cluster["interval"])
        pause = max(pause, cluster["pause"])
    job["pace"] = pace
    job["interval"] = interval if interval < FOREVER else 0
    job["pause"] = pause


@noinline
def begin_spell(g: DynamicGridArrays, j: int, now: int, cost: int, o: DynamicGridOptions) -> None:
    """Let a job run on the clusters where it has parts, after the seconds that moving its tasks costs."""
    job, clock = g.progress[j], g.clock[0]
    note_start(g, j, now, GRID_RUN)
    job["begin"] = now
    job["resume"] = now + cost
    _set_rates(g, j)
    seconds = -(-job["left"] // (share(job["clusters"], o) * job["pace"]))
    end = job["resume"] + with_checkpoints(seconds, job["interval"], job["pause"])
    clock["ending"] = heap.push(g.ends, clock["ending"], end, j)
    length = expected_length(g, j, job["clusters"], job["pace"], o)
    job["length"] = with_checkpoints(length, job["interval"], job["pause"])
    job["expected"] = job["resume"] + job["length"]
    for p in rings.items(g.chains, j):
        expect(g, g.parts[p]["cluster"], j, job["expected"], g.parts[p]["processors"])


@noinline
def _end_spell(g: DynamicGridArrays, j: int, now: int, killed: bool, o: DynamicGridOptions) -> None:
    """Write down what a job did in a spell that ends now; if it is `killed`, only what was saved counts."""
    job = g.progress[j]
    seconds = max(0, now - job["resume"])
    done = work_done(seconds, job["interval"], job["pause"])
    if killed:
        done = saved_work(seconds, job["interval"], job["pause"])
    for p in rings.items(g.chains, j):
        part = g.parts[p]
        i, processors, tasks = part["cluster"], part["processors"], part["tasks"]
        if job["begin"] < job["resume"]:
            write(g, j, i, processors, tasks, job["begin"], min(job["resume"], now), True, False)
        if seconds > 0 or not killed:
            write(g, j, i, processors, tasks, job["resume"], now, False, killed)
        forget(g, i, j, job["expected"], processors)
        mark_dirty(g, i)
    job["executed"] += seconds
    job["kept"] += done if killed else seconds
    if job["clusters"] > 1:
        job["multi"] += seconds
    done *= share(job["clusters"], o)
    job["served"] += done
    job["left"] = max(0, job["left"] - done * job["pace"])


@inline
def _arrive(g: DynamicGridArrays, p: int, until: int) -> None:
    """Give back the processors of tasks that were on their way until a time."""
    part, holder = g.parts[p], len(g.requests) + p
    g.clusters[part["cluster"]]["awaited"] -= 1
    g.clusters[part["cluster"]]["leaving"] -= left_by(part)
    forget(g, part["cluster"], holder, until, part["processors"])
    _free_part(g, p, holder)
    mark_dirty(g, part["cluster"])


@noinline
def complete(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let all jobs end whose time has come, and tasks on their way arrive."""
    clock = g.clock[0]
    for i in range(len(g.clusters)):
        if g.clusters[i]["due"] == now:
            _complete_local(g, i, now, o)
    while heap.first_time(g.ends, clock["ending"]) == now:
        j = g.ends[0]["job"]
        clock["ending"] = heap.pop(g.ends, clock["ending"])
        _end_spell(g, j, now, False, o)
        drop_all(g, j, now)
        finish(g, j, now, FINISHED)
    while heap.first_time(g.moves, clock["moving"]) == now:
        p = g.moves[0]["job"]
        clock["moving"] = heap.pop(g.moves, clock["moving"])
        _arrive(g, p, now)


@noinline
def correct(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Expect the jobs of a cluster that should have ended now to end later."""
    c = by_reference(line_of(g, i))
    while cluster_state.first_expected_end(c) == now:
        j = as_int64(g.runs[i, g.blocks[i, 0]["slot"] * running.SIZE]["job"])
        job = g.progress[j]
        if o.looks:
            mark_dirty(g, i)
        if job["state"] == LOCAL_RUN:
            cluster_state.correct(c, now, o.overrun)
            continue
        job["expected"] = expected_end(job["resume"], job["length"], o.overrun, now + 1)
        g.clock[0]["corrections"] += 1
        for p in rings.items(g.chains, j):
            there, processors = g.parts[p]["cluster"], g.parts[p]["processors"]
            forget(g, there, j, now, processors)
            expect(g, there, j, job["expected"], processors)
            if o.looks:
                mark_dirty(g, there)
    set_due(g, i)


# --- eviction -------------------------------------------------------------------------------------


@inline
def _may_take(g: DynamicGridArrays, t: int) -> bool:
    """Whether a cluster is adjacent to all others where a job will have tasks by `scratch[2]`."""
    apart = 0
    for i in range(len(g.clusters)):
        apart += int(i != t and g.scratch[2, i] > 0 and not g.adjacent[i, t])
    return apart == 0


@noinline
def _find_neighbour(g: DynamicGridArrays, p: int, o: DynamicGridOptions) -> int:
    """Neighbour that takes the tasks of a part; NOBODY if none has the processors.

    One where the job will run anyhow comes first, then the one with the fewest or most processors, then the
    first one.
    """
    i, tasks = g.parts[p]["cluster"], g.parts[p]["tasks"]
    chosen = NOBODY
    best = 0
    with_job = False
    for t in range(len(g.clusters)):
        if not g.adjacent[i, t] or g.clusters[t]["member"] == 0:
            continue
        g.clusters[i]["inquiries"] += 1
        there = g.scratch[2, t]
        taken = whole(g, t, there)
        has = offered(g, t, o) - (taken - whole(g, t, g.scratch[3, t]))
        if has < whole(g, t, there + tasks) - taken or not _may_take(g, t):
            continue
        own = there > 0
        better = has > best if o.emptiest else has < best
        if chosen == NOBODY or (own and not with_job) or (own == with_job and better):
            chosen = t
            best = has
            with_job = own
    return chosen


@noinline
def _find_neighbours(g: DynamicGridArrays, j: int, o: DynamicGridOptions) -> bool:
    """Find a neighbour for each part of a job that has to leave; return whether all were found.

    The tasks that clusters will have of it stand in `scratch[2]`, those of them that stay in `scratch[3]`.
    """
    g.scratch[2:4, :] = 0
    for p in rings.items(g.chains, j):
        part = g.parts[p]
        i, leaves = part["cluster"], is_wanted(g, p)
        g.clusters[i]["evictions"] += leaves
        part["target"] = NOBODY if leaves else i
        g.scratch[2:4, i] = 0 if leaves else part["tasks"]
    for p in rings.items(g.chains, j):
        if g.parts[p]["target"] == NOBODY:
            t = _find_neighbour(g, p, o) if o.migrates else NOBODY
            if t == NOBODY:
                return False
            g.parts[p]["target"] = t
            g.scratch[2, t] += g.parts[p]["tasks"]
    return True


@inline
def cost_of(tasks: int, each: int) -> int:
    """Whole seconds that moving so many tasks takes."""
    return -(-tasks * each // UNIT)


@inline
def _hold(g: DynamicGridArrays, p: int, now: int, until: int) -> None:
    """Hold the processors of a part that leaves until its tasks have arrived elsewhere."""
    clock, part = g.clock[0], g.parts[p]
    j, i, processors, holder = part["job"], part["cluster"], part["processors"], len(g.requests) + p
    part["segment"] = clock["segments"]
    write(g, j, i, processors, part["tasks"], now, until, True, False)
    clock["moving"] = heap.push(g.moves, clock["moving"], until, p)
    g.clusters[i]["awaited"] += 1
    g.clusters[i]["leaving"] += left_by(part)
    expect(g, i, holder, until, processors)
    hand_over(g, g.outages, i, j, holder)


@inline
def _leave_proxy(g: DynamicGridArrays, j: int, i: int, tasks: int, now: int) -> None:
    """Let tasks that move on leave a proxy behind."""
    clock = g.clock[0]
    proxy = g.proxies[clock["proxies"]]
    proxy["job"] = j
    proxy["cluster"] = i
    proxy["tasks"] = tasks
    proxy["begin"] = now
    proxy["before"] = g.progress[j]["proxy"]
    g.progress[j]["proxy"] = clock["proxies"]
    clock["proxies"] += 1


@noinline
def _migrate(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Move the tasks that have to leave to the neighbours that were found."""
    job = g.progress[j]
    moved = g.scratch[2].sum() - g.scratch[3].sum()
    cost = cost_of(moved, o.migration_cost)
    for p in rings.items(g.chains, j):
        i, t, tasks = g.parts[p]["cluster"], g.parts[p]["target"], g.parts[p]["tasks"]
        if t != i:
            _unlink(g, p)
            if o.holds_source and cost > 0:
                _hold(g, p, now, now + cost)
            else:
                _free_part(g, p, j)
            _leave_proxy(g, j, i, tasks, now)
            g.clusters[i]["tasks_out"] += tasks
            g.clusters[t]["tasks_in"] += tasks
            # those that join others stay with them
            g.parts[add_part(g, j, t, tasks)]["target"] = t
    job["migrations"] += 1
    job["tasks_moved"] += moved
    begin_spell(g, j, now, cost, o)


@noinline
def suspend(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Give a job back to the grid scheduler."""
    job, request = g.progress[j], g.requests[j]
    drop_all(g, j, now)
    job["suspensions"] += 1
    if not o.keeps:
        job["left"] = request["run"] * o.work
        job["served"] = 0
        job["kept"] = 0
        job["kept_from"] = now
    let_wait(g, IN_PROGRESS, j, request["estimate"])
    g.clock[0]["retest"] = 1


@noinline
def evict(g: DynamicGridArrays, j: int, i: int, now: int, o: DynamicGridOptions) -> None:
    """Stop a job at the end of a superstep, as a cluster, perhaps with others, wants its tasks to leave."""
    found = _find_neighbours(g, j, o)
    g.clock[0]["ending"] = heap.without(g.ends, g.clock[0]["ending"], j)
    _end_spell(g, j, now, False, o)
    if found:
        _migrate(g, j, now, o)
    else:
        g.clusters[i]["suspensions"] += 1
        suspend(g, j, now, o)


@noinline
def break_off_spell(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Stop a grid job in a superstep or while its tasks move; what it saved is kept."""
    clock = g.clock[0]
    k = 0
    while k < clock["moving"]:
        until, p = g.moves[k]["key"], g.moves[k]["job"]
        if g.parts[p]["job"] == j:
            g.segments[g.parts[p]["segment"]]["end"] = now
            clock["moving"] = heap.without(g.moves, clock["moving"], p)
            _arrive(g, p, until)
            k = 0
        else:
            k += 1
    clock["ending"] = heap.without(g.ends, clock["ending"], j)
    _end_spell(g, j, now, True, o)
