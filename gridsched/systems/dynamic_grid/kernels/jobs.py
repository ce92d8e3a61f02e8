"""Jobs of a dynamic grid as they start, run in spells, move, are suspended and end.

A *spell* is the time that a grid job runs on the same clusters. It begins when the job gets their processors;
it runs from `resume` on, when the tasks that were moved have arrived. A superstep lasts a whole number of
seconds, and a job can be stopped where one ends: `superstep`, 2 `superstep`, ... after `resume`. Each spell
thus does some work before it is stopped.
"""

from __future__ import annotations

from gridsched.engine import cluster_state, heap, line, running
from gridsched.engine.jit import inline, noinline
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.engine.reference import by_reference
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
    corrected,
    expect,
    forget,
    line_of,
    mark_dirty,
    offered,
    set_due,
    tell,
    whole,
)

_SPARSE = 64
"""A queue is compacted when it has so many places more than twice its jobs."""


@noinline
def tidy(queue: line.Line, waiting: int) -> None:
    """Close the gaps of a queue that has many."""
    line.skip_gaps(queue)
    span = queue.span[0]
    if waiting == 0:
        line.clear(queue)
    elif span["end"] - span["first"] > 2 * waiting + _SPARSE:
        line.copy(queue, queue)


@noinline
def _push_end(g: DynamicGridArrays, j: int, time: int) -> None:
    """Let a grid job end at a time, unless its spell is cut short; forget such spells if there is no room."""
    clock = g.clock[0]
    if clock["ending"] == len(g.ends):
        kept = 0
        for k in range(clock["ending"]):
            job = g.progress[g.ends[k]["job"]]
            if job["end"] == g.ends[k]["key"] and job["listed"] == 0:
                job["listed"] = 1
                # what is kept is a heap in front of this entry
                kept = heap.push(g.ends, kept, g.ends[k]["key"], g.ends[k]["job"])
        for k in range(kept):
            g.progress[g.ends[k]["job"]]["listed"] = 0
        clock["ending"] = kept
    clock["ending"] = heap.push(g.ends, clock["ending"], time, j)


@noinline
def next_end(g: DynamicGridArrays) -> int:
    """Time of the next end of a grid job."""
    clock = g.clock[0]
    while clock["ending"] > 0 and g.progress[g.ends[0]["job"]]["end"] != g.ends[0]["key"]:
        clock["ending"] = heap.pop(g.ends, clock["ending"])
    return g.ends[0]["key"] if clock["ending"] > 0 else FOREVER


@inline
def _finish(g: DynamicGridArrays, j: int, now: int) -> None:
    """Let a job be done."""
    job = g.progress[j]
    job["state"] = FINISHED
    job["finish"] = now
    job["end"] = NOBODY
    g.clock[0]["present"] -= 1
    tell(g, len(g.requests) + j)


# --- local jobs -----------------------------------------------------------------------------------


@inline
def _note_first_start(g: DynamicGridArrays, j: int, now: int) -> None:
    """Note that a job has started, if it is for the first time."""
    if g.progress[j]["start"] == NOBODY:
        g.progress[j]["start"] = now
        tell(g, j)


@noinline
def note_start(g: DynamicGridArrays, j: int, now: int) -> None:
    """Note that a local scheduler has started a job."""
    job = g.progress[j]
    job["state"] = LOCAL_RUN
    _note_first_start(g, j, now)


@noinline
def _complete_local(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Take the local jobs of a cluster that end now off their processors."""
    c = by_reference(line_of(g, i))
    while cluster_state.ends(c, now):
        j = c.events[0]["job"]
        cluster_state.complete(c, now, o.overrun, True)
        _finish(g, j, now)
        mark_dirty(g, i)
    set_due(g, i)


# --- parts of grid jobs ---------------------------------------------------------------------------


@inline
def pace_of(g: DynamicGridArrays, j: int) -> int:
    """Pace of the slowest cluster where a job has tasks."""
    slowest = FOREVER
    p = g.progress[j]["part"]
    while p != NOBODY:
        slowest = min(slowest, g.clusters[g.parts[p]["cluster"]]["pace"])
        p = g.parts[p]["of_job"]
    return slowest


@inline
def share(clusters: int, o: DynamicGridOptions) -> int:
    """Units of work that a job on so many clusters does in a second at a pace of 1."""
    return o.scale if clusters == 1 else UNIT


@inline
def part_on(g: DynamicGridArrays, j: int, i: int) -> int:
    """Part of a job on a cluster; NOBODY if it has none."""
    p = g.progress[j]["part"]
    while p != NOBODY and g.parts[p]["cluster"] != i:
        p = g.parts[p]["of_job"]
    return p


@noinline
def add_part(g: DynamicGridArrays, j: int, i: int, tasks: int) -> None:
    """Let a job have tasks on a cluster, in addition to those that it may have there."""
    p = part_on(g, j, i)
    before = 0 if p == NOBODY else int(g.parts[p]["processors"])
    processors = whole(g, i, tasks if p == NOBODY else tasks + g.parts[p]["tasks"])
    g.state[i, 0]["free"] -= processors - before
    g.clusters[i]["grid"] += processors - before
    mark_dirty(g, i)
    if p != NOBODY:
        g.parts[p]["processors"] = processors
        g.parts[p]["tasks"] += tasks
        return
    clock = g.clock[0]
    p = clock["spare"]
    clock["spare"] = g.parts[p]["next"]
    clock["parts"] += 1
    new = g.parts[p]
    new["job"] = j
    new["cluster"] = i
    new["processors"] = processors
    new["tasks"] = tasks
    new["closed"] = 0
    new["placed"] = 0
    new["marked"] = 0
    new["fleeing"] = 0
    new["of_job"] = NOBODY
    new["next"] = NOBODY
    new["previous"] = g.clusters[i]["last_part"]
    if new["previous"] == NOBODY:
        g.clusters[i]["part"] = p
    else:
        g.parts[new["previous"]]["next"] = p
    g.clusters[i]["last_part"] = p
    last = g.progress[j]["part"]
    if last == NOBODY:
        g.progress[j]["part"] = p
    else:
        while g.parts[last]["of_job"] != NOBODY:
            last = g.parts[last]["of_job"]
        g.parts[last]["of_job"] = p
    g.progress[j]["clusters"] += 1


@noinline
def drop_part(g: DynamicGridArrays, p: int) -> None:
    """Take a part off its cluster; its processors are free."""
    old = g.parts[p]
    i = old["cluster"]
    cluster = g.clusters[i]
    left = old["processors"] - old["closed"]
    g.state[i, 0]["free"] += left
    cluster["grid"] -= left
    cluster["loose"] += old["closed"]
    mark_dirty(g, i)
    if old["previous"] == NOBODY:
        cluster["part"] = old["next"]
    else:
        g.parts[old["previous"]]["next"] = old["next"]
    if old["next"] == NOBODY:
        cluster["last_part"] = old["previous"]
    else:
        g.parts[old["next"]]["previous"] = old["previous"]
    job = g.progress[old["job"]]
    if job["part"] == p:
        job["part"] = old["of_job"]
    else:
        before = job["part"]
        while g.parts[before]["of_job"] != p:
            before = g.parts[before]["of_job"]
        g.parts[before]["of_job"] = old["of_job"]
    job["clusters"] -= 1
    clock = g.clock[0]
    old["next"] = clock["spare"]
    clock["spare"] = p
    clock["parts"] -= 1


@inline
def drop_all(g: DynamicGridArrays, j: int) -> None:
    """Take all parts of a job off their clusters."""
    while g.progress[j]["part"] != NOBODY:
        drop_part(g, g.progress[j]["part"])


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


@inline
def _estimated(g: DynamicGridArrays, j: int, o: DynamicGridOptions) -> int:
    """Units of work that a job is expected to have left; at least one."""
    done = int(g.requests[j]["run"]) * o.work - g.progress[j]["left"]
    estimate = expected_end(0, int(g.requests[j]["estimate"]), o.overrun, done // o.work + 1)
    return estimate * o.work - done


@inline
def expected_length(g: DynamicGridArrays, j: int, clusters: int, pace: int, o: DynamicGridOptions) -> int:
    """Seconds that a job is expected to run on so many clusters at a pace."""
    return -(-_estimated(g, j, o) // (share(clusters, o) * pace))


@inline
def with_checkpoints(work: int, interval: int, pause: int) -> int:
    """Seconds that so many seconds of work take, checkpoints included; there is none at their end."""
    if interval <= 0 or work <= 0:
        return work
    return work + pause * ((work - 1) // interval)


@inline
def without_checkpoints(seconds: int, interval: int, pause: int) -> int:
    """Seconds of work that are done in so many seconds."""
    if interval <= 0:
        return seconds
    rounds = seconds // (interval + pause)
    return rounds * interval + min(seconds - rounds * (interval + pause), interval)


@inline
def saved(seconds: int, interval: int, pause: int) -> int:
    """Seconds of work that the last checkpoint in so many seconds has."""
    return interval * (seconds // (interval + pause)) if interval > 0 else 0


@inline
def _set_checkpoints(g: DynamicGridArrays, j: int) -> None:
    """Let a job save its work as often as the cluster does that does it most often."""
    job = g.progress[j]
    job["interval"] = 0
    job["pause"] = 0
    p = job["part"]
    while p != NOBODY:
        cluster = g.clusters[g.parts[p]["cluster"]]
        if cluster["interval"] > 0 and (job["interval"] == 0 or cluster["interval"] < job["interval"]):
            job["interval"] = cluster["interval"]
        job["pause"] = max(job["pause"], cluster["pause"])
        p = g.parts[p]["of_job"]


@noinline
def begin_spell(g: DynamicGridArrays, j: int, now: int, cost: int, o: DynamicGridOptions) -> None:
    """Let a job run on the clusters where it has parts, after the seconds that moving its tasks costs."""
    job = g.progress[j]
    pace = pace_of(g, j)
    speed = share(job["clusters"], o) * pace
    job["state"] = GRID_RUN
    job["begin"] = now
    job["resume"] = now + cost
    _set_checkpoints(g, j)
    job["end"] = job["resume"] + with_checkpoints(-(-job["left"] // speed), job["interval"], job["pause"])
    length = expected_length(g, j, job["clusters"], pace, o)
    job["length"] = with_checkpoints(length, job["interval"], job["pause"])
    job["expected"] = job["resume"] + job["length"]
    _note_first_start(g, j, now)
    _push_end(g, j, job["end"])
    p = job["part"]
    while p != NOBODY:
        expect(g, g.parts[p]["cluster"], j, job["expected"], int(g.parts[p]["processors"]))
        p = g.parts[p]["of_job"]


@inline
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


@noinline
def end_spell(g: DynamicGridArrays, j: int, now: int, killed: bool, o: DynamicGridOptions) -> None:
    """Write down what a job did in a spell that ends now; if it is `killed`, only what was saved counts."""
    job = g.progress[j]
    seconds = max(0, now - job["resume"])
    if killed:
        done = saved(seconds, job["interval"], job["pause"])
    else:
        done = without_checkpoints(seconds, job["interval"], job["pause"])
    done *= share(job["clusters"], o)
    p = job["part"]
    while p != NOBODY:
        i = g.parts[p]["cluster"]
        processors = int(g.parts[p]["processors"])
        tasks = g.parts[p]["tasks"]
        if job["begin"] < job["resume"]:
            write(g, j, i, processors, tasks, job["begin"], min(job["resume"], now), True, False)
        if seconds > 0 or not killed:
            write(g, j, i, processors, tasks, job["resume"], now, False, killed)
        forget(g, i, j, job["expected"], processors)
        mark_dirty(g, i)
        p = g.parts[p]["of_job"]
    if job["clusters"] == 1:
        job["single"] += seconds
    else:
        job["multi"] += seconds
    job["served"] += done
    job["left"] = max(0, job["left"] - done * pace_of(g, j))
    job["end"] = NOBODY


@inline
def close_proxies(g: DynamicGridArrays, j: int, now: int) -> None:
    """Let the proxies of a job end."""
    k = g.progress[j]["proxy"]
    while k != NOBODY:
        g.proxies[k]["end"] = now
        k = g.proxies[k]["before"]
    g.progress[j]["proxy"] = NOBODY


@inline
def _leave_proxy(g: DynamicGridArrays, j: int, i: int, tasks: int, now: int) -> None:
    """Let tasks that move on leave a proxy behind."""
    clock = g.clock[0]
    proxy = g.proxies[clock["proxies"]]
    proxy["job"] = j
    proxy["cluster"] = i
    proxy["tasks"] = tasks
    proxy["begin"] = now
    proxy["end"] = NOBODY
    proxy["before"] = g.progress[j]["proxy"]
    g.progress[j]["proxy"] = clock["proxies"]
    clock["proxies"] += 1


@inline
def end_hold(g: DynamicGridArrays, k: int, until: int) -> None:
    """Give back the processors of tasks that were on their way until a time."""
    clock = g.clock[0]
    hold = g.holds[k]
    i = hold["cluster"]
    left = hold["processors"] - hold["closed"]
    g.state[i, 0]["free"] += left
    g.clusters[i]["leaving"] -= left
    forget(g, i, len(g.requests) + k, until, int(hold["processors"]))
    hold["next"] = clock["hold"]
    clock["hold"] = k


@noinline
def complete(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> None:
    """Let all jobs end whose time has come, and tasks on their way arrive."""
    clock = g.clock[0]
    for i in range(len(g.clusters)):
        if g.clusters[i]["due"] == now:
            _complete_local(g, i, now, o)
    while next_end(g) == now:
        j = g.ends[0]["job"]
        clock["ending"] = heap.pop(g.ends, clock["ending"])
        end_spell(g, j, now, False, o)
        drop_all(g, j)
        close_proxies(g, j, now)
        _finish(g, j, now)
    while clock["moving"] > 0 and g.moves[0]["key"] == now:
        k = g.moves[0]["job"]
        clock["moving"] = heap.pop(g.moves, clock["moving"])
        end_hold(g, k, now)
        mark_dirty(g, g.holds[k]["cluster"])


@noinline
def correct(g: DynamicGridArrays, i: int, now: int, o: DynamicGridOptions) -> None:
    """Expect the jobs of a cluster that should have ended now to end later."""
    c = by_reference(line_of(g, i))
    while cluster_state.first_expected_end(c) == now:
        j = int(g.runs[i, g.blocks[i, 0]["slot"] * running.SIZE]["job"])
        job = g.progress[j]
        if job["state"] == LOCAL_RUN:
            cluster_state.correct(c, now, o.overrun)
            _note_correction(g, i, o)
        else:
            later = corrected(g, j, o.overrun, now)
            g.clock[0]["corrections"] += 1
            p = job["part"]
            while p != NOBODY:
                there = g.parts[p]["cluster"]
                forget(g, there, j, now, int(g.parts[p]["processors"]))
                expect(g, there, j, later, int(g.parts[p]["processors"]))
                _note_correction(g, there, o)
                p = g.parts[p]["of_job"]
            job["expected"] = later
    set_due(g, i)


@inline
def _note_correction(g: DynamicGridArrays, i: int, o: DynamicGridOptions) -> None:
    """Let a cluster be looked at whose local scheduler looks at expected ends."""
    if o.looks:
        mark_dirty(g, i)


# --- eviction -------------------------------------------------------------------------------------


@inline
def _is_adjacent_to_job(g: DynamicGridArrays, j: int, t: int, moving: int) -> bool:
    """Whether a cluster may take tasks of a job: it is adjacent to all others where the job will be."""
    p = g.progress[j]["part"]
    while p != NOBODY:
        there = g.parts[p]["target"]
        if p != moving and there != NOBODY and there != t and not g.adjacent[there, t]:
            return False
        p = g.parts[p]["of_job"]
    return True


@inline
def _has_cluster(g: DynamicGridArrays, j: int, t: int) -> bool:
    """Whether a job will have tasks on a cluster."""
    p = g.progress[j]["part"]
    while p != NOBODY:
        if g.parts[p]["target"] == t:
            return True
        p = g.parts[p]["of_job"]
    return False


@inline
def _staying(g: DynamicGridArrays, j: int, t: int) -> int:
    """Tasks that a job has on a cluster and that stay there."""
    p = part_on(g, j, t)
    return int(g.parts[p]["tasks"]) if p != NOBODY and g.parts[p]["target"] == t else 0


@inline
def _find_neighbour(g: DynamicGridArrays, j: int, p: int, o: DynamicGridOptions) -> int:
    """Neighbour that takes the tasks of a part; NOBODY if none has the processors.

    One where the job runs already comes first, then the one with the fewest or most processors, then the
    first one.
    """
    i = g.parts[p]["cluster"]
    tasks = g.parts[p]["tasks"]
    chosen = NOBODY
    best = 0
    with_job = False
    for t in range(len(g.clusters)):
        if not g.adjacent[i, t] or g.clusters[t]["member"] == 0:
            continue
        g.clusters[i]["inquiries"] += 1
        stays = _staying(g, j, t)
        there = whole(g, t, stays + g.scratch[2, t])
        has = offered(g, t, o) - (there - whole(g, t, stays))
        more = whole(g, t, stays + g.scratch[2, t] + tasks) - there
        if has < more or not _is_adjacent_to_job(g, j, t, p):
            continue
        own = _has_cluster(g, j, t)
        better = has > best if o.emptiest else has < best
        if chosen == NOBODY or (own and not with_job) or (own == with_job and better):
            chosen = t
            best = has
            with_job = own
    return chosen


@noinline
def _find_neighbours(g: DynamicGridArrays, j: int, o: DynamicGridOptions) -> bool:
    """Find a neighbour for each part of a job that has to leave; return whether all were found.

    Neighbours are promised tasks in `scratch[2]`.
    """
    p = g.progress[j]["part"]
    while p != NOBODY:
        g.parts[p]["target"] = NOBODY if is_wanted(g, p) else g.parts[p]["cluster"]
        p = g.parts[p]["of_job"]
    g.scratch[2, :] = 0
    p = g.progress[j]["part"]
    while p != NOBODY:
        if g.parts[p]["target"] == NOBODY:
            t = _find_neighbour(g, j, p, o) if o.migrates else NOBODY
            if t == NOBODY:
                return False
            g.parts[p]["target"] = t
            g.scratch[2, t] += g.parts[p]["tasks"]
        p = g.parts[p]["of_job"]
    return True


@inline
def _hold(
    g: DynamicGridArrays,
    j: int,
    i: int,
    processors: int,
    closed: int,
    tasks: int,
    now: int,
    until: int,
) -> None:
    """Hold the processors that tasks leave, some of which are `closed`, until they have arrived."""
    clock = g.clock[0]
    k = clock["hold"]
    clock["hold"] = g.holds[k]["next"]
    hold = g.holds[k]
    hold["cluster"] = i
    hold["processors"] = processors
    hold["closed"] = closed
    hold["placed"] = 0
    hold["job"] = j
    hold["segment"] = clock["segments"]
    clock["moving"] = heap.push(g.moves, clock["moving"], until, k)
    g.state[i, 0]["free"] -= processors - closed
    g.clusters[i]["leaving"] += processors - closed
    g.clusters[i]["loose"] -= closed
    write(g, j, i, processors, tasks, now, until, True, False)
    expect(g, i, len(g.requests) + k, until, processors)


@inline
def cost_of(tasks: int, each: int) -> int:
    """Whole seconds that moving so many tasks takes."""
    return -(-tasks * each // UNIT)


@noinline
def _migrate(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Move the tasks that have to leave to the neighbours that were found."""
    job = g.progress[j]
    moved = 0
    p = job["part"]
    while p != NOBODY:
        if g.parts[p]["target"] != g.parts[p]["cluster"]:
            moved += g.parts[p]["tasks"]
        p = g.parts[p]["of_job"]
    cost = cost_of(moved, o.migration_cost)
    p = job["part"]
    while p != NOBODY:
        following = g.parts[p]["of_job"]
        i = g.parts[p]["cluster"]
        t = g.parts[p]["target"]
        tasks = int(g.parts[p]["tasks"])
        processors = int(g.parts[p]["processors"])
        closed = int(g.parts[p]["closed"])
        if t != i:
            drop_part(g, p)
            if o.holds_source and cost > 0:
                _hold(g, j, i, processors, closed, tasks, now, now + cost)
            _leave_proxy(g, j, i, tasks, now)
            g.clusters[i]["tasks_out"] += tasks
            g.clusters[t]["tasks_in"] += tasks
            add_part(g, j, t, tasks)
            g.parts[part_on(g, j, t)]["target"] = t
        p = following
    job["migrations"] += 1
    job["tasks_moved"] += moved
    begin_spell(g, j, now, cost, o)


@noinline
def suspend(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Give a job back to the grid scheduler."""
    job = g.progress[j]
    drop_all(g, j)
    close_proxies(g, j, now)
    job["suspensions"] += 1
    job["state"] = GRID_QUEUE
    if not o.keeps:
        job["left"] = g.requests[j]["run"] * o.work
        job["served"] = 0
        job["kept_from"] = now
    request = g.requests[j]
    queue = line.row(g.grid_queues, IN_PROGRESS)
    line.append(queue, j, request["processors"], line.as_column(min(request["estimate"], LARGEST)))
    g.clock[0]["in_progress"] += 1
    g.clock[0]["retest"] = 1


@noinline
def evict(g: DynamicGridArrays, j: int, i: int, now: int, o: DynamicGridOptions) -> None:
    """Stop a job at the end of a superstep, as a cluster, perhaps with others, wants its tasks to leave."""
    p = g.progress[j]["part"]
    while p != NOBODY:
        g.clusters[g.parts[p]["cluster"]]["evictions"] += is_wanted(g, p)
        p = g.parts[p]["of_job"]
    found = _find_neighbours(g, j, o)
    end_spell(g, j, now, False, o)
    if found:
        _migrate(g, j, now, o)
    else:
        g.clusters[i]["suspensions"] += 1
        suspend(g, j, now, o)
