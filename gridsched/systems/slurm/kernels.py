"""One pass of Slurm's main loop, and one of its backfill scheduler, on named nodes.

Rules: `schedule` of slurmctld (src/slurmctld/job_scheduler.c), `_attempt_backfill` of sched/backfill, and the
node selection of select/linear and select/cons_tres, as of Slurm 22.05. Times are whole seconds of the
controller's clock; a set of nodes is an array with 1 for its nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import jit, leaf, part

NEVER = 2**62

JOB = np.dtype(
    [
        ("nodes", np.int64),
        ("cores", np.int64),  # of each node
        ("memory", np.int64),  # of each node
        ("gpus", np.int64),  # of each node
        ("whole", np.int64),  # whether its nodes run nothing else
        ("limit", np.int64),  # time limit [s]
        ("partition", np.int64),
        ("user", np.int64),
        ("processors", np.int64),  # that count for limits
        ("priority", np.float64),
        ("begin", np.int64),  # when it became eligible [s]
        ("start", np.int64),  # [s]; -1 while it waits
        ("expected", np.int64),  # when it has to end [s]
        ("first", np.int64),  # of its nodes in `placed`
    ]
)
"""A job: what it asks for, and where it stands."""

NODE = np.dtype(
    [
        ("cores", np.int64),
        ("memory", np.int64),
        ("gpus", np.int64),
        ("free_cores", np.int64),
        ("free_memory", np.int64),
        ("free_gpus", np.int64),
        ("jobs", np.int64),  # that run there
        ("whole", np.int64),  # whether the one that runs there has it to itself
        ("out", np.int64),  # whether it takes no jobs
    ]
)
"""A node: what it has, and what is free."""

LIMIT = np.dtype(
    [
        ("jobs", np.int64),
        ("processors", np.int64),
        ("nodes", np.int64),
        ("memory", np.int64),
        ("gpus", np.int64),
        ("used_jobs", np.int64),
        ("used_processors", np.int64),
        ("used_nodes", np.int64),
        ("used_memory", np.int64),
        ("used_gpus", np.int64),
    ]
)
"""What the running jobs of a group may have, and have."""


class Tables(NamedTuple):
    """The cluster and its jobs."""

    jobs: Any  # JOB[n]
    nodes: Any  # NODE[m]
    reach: Any  # uint8[partitions, m]: nodes of each partition
    limits: Any  # LIMIT[...]
    limited: Any  # int64[n, k]: limits of each job, -1 for none
    placed: Any  # int64[...]: nodes of each job that started, from its `first` on
    running: Any  # int64[n]: jobs that run, by expected end and place among the jobs
    counts: Any  # int64[1]: how many run


class Space(NamedTuple):
    """What backfilling plans: stretches of time, each with the nodes that no planned job has then."""

    begin: Any  # int64[most]
    end: Any  # int64[most]
    free: Any  # uint8[most, m]
    order: Any  # int64[most]: stretches by time
    count: Any  # int64[1]


class Room(NamedTuple):
    """Arrays to work in."""

    usable: Any  # uint8[m]: nodes that a job could have by time
    fitting: Any  # uint8[m]: those of them that have what it asks for
    chosen: Any  # int64[m]: nodes that it gets
    lost: Any  # uint8[m]: nodes that are of no use any more in a pass
    free: Any  # int64[3, m]: cores, memory and GPUs of each node that are free
    busy: Any  # int64[m]: jobs on each node
    tested: Any  # int64[...]: jobs of each user, then of each partition, that a pass tested


# --- limits, starts and ends ----------------------------------------------------------------------


@leaf
def over_limit(t: Any, j: int) -> bool:
    """Whether a group of the job has too much running for it to start now."""
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        if which < 0:
            continue
        group, job = t.limits[which], t.jobs[j]
        if (
            group["used_jobs"] + 1 > group["jobs"]
            or group["used_processors"] + job["processors"] > group["processors"]
            or group["used_nodes"] + job["nodes"] > group["nodes"]
            or group["used_memory"] + job["memory"] * job["nodes"] > group["memory"]
            or group["used_gpus"] + job["gpus"] * job["nodes"] > group["gpus"]
        ):
            return True
    return False


@leaf
def count_for_limits(t: Any, j: int, sign: int) -> None:
    """Add a job to what its groups have, or take it off."""
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        if which >= 0:
            job = t.jobs[j]
            t.limits[which]["used_jobs"] += sign
            t.limits[which]["used_processors"] += sign * job["processors"]
            t.limits[which]["used_nodes"] += sign * job["nodes"]
            t.limits[which]["used_memory"] += sign * job["memory"] * job["nodes"]
            t.limits[which]["used_gpus"] += sign * job["gpus"] * job["nodes"]


@leaf
def take(t: Any, j: int, node: int, sign: int) -> None:
    """Take what a job asks for from a node, or give it back."""
    job = t.jobs[j]
    t.nodes[node]["jobs"] += sign
    t.nodes[node]["whole"] = 1 if sign > 0 and job["whole"] else 0
    t.nodes[node]["free_cores"] -= sign * job["cores"]
    t.nodes[node]["free_memory"] -= sign * job["memory"]
    t.nodes[node]["free_gpus"] -= sign * job["gpus"]


@part
def start(t: Any, r: Any, j: int, now: int) -> None:
    """Start a job on the chosen nodes."""
    job = t.jobs[j]
    count_for_limits(t, j, 1)
    t.jobs[j]["start"] = now
    expected = now + job["limit"]
    t.jobs[j]["expected"] = expected
    for k in range(job["nodes"]):
        node = r.chosen[k]
        t.placed[job["first"] + k] = node
        take(t, j, node, 1)
    place = t.counts[0]
    while place > 0:
        other = t.running[place - 1]
        if t.jobs[other]["expected"] < expected or (t.jobs[other]["expected"] == expected and other < j):
            break
        t.running[place] = other
        place -= 1
    t.running[place] = j
    t.counts[0] += 1


@jit
def finish(t: Tables, j: int) -> None:
    """End a job: its nodes are free."""
    job = t.jobs[j]
    count_for_limits(t, j, -1)
    for k in range(job["nodes"]):
        take(t, j, t.placed[job["first"] + k], -1)
    place = 0
    while t.running[place] != j:
        place += 1
    for k in range(place, t.counts[0] - 1):
        t.running[k] = t.running[k + 1]
    t.counts[0] -= 1


# --- which nodes ----------------------------------------------------------------------------------


@leaf
def fits(t: Any, r: Any, job: Any, node: int) -> bool:
    """Whether a node has what a job asks for, beside what others have there."""
    if job["whole"]:
        kind = t.nodes[node]
        return bool(
            r.busy[node] == 0
            and kind["cores"] >= job["cores"]
            and kind["memory"] >= job["memory"]
            and kind["gpus"] >= job["gpus"]
        )
    return bool(
        r.free[0, node] >= job["cores"]
        and r.free[1, node] >= job["memory"]
        and r.free[2, node] >= job["gpus"]
    )


@part
def fitting_nodes(t: Any, r: Any, j: int) -> int:
    """Mark the usable nodes that have what a job asks for; how many there are."""
    job = t.jobs[j]
    count = 0
    for node in range(len(r.usable)):
        yes = r.usable[node] != 0 and fits(t, r, job, node)
        r.fitting[node] = 1 if yes else 0
        count += 1 if yes else 0
    return count


@part
def look_at_nodes(t: Any, r: Any) -> None:
    """What is free on the nodes now."""
    for node in range(len(t.nodes)):
        r.free[0, node] = t.nodes[node]["free_cores"]
        r.free[1, node] = t.nodes[node]["free_memory"]
        r.free[2, node] = t.nodes[node]["free_gpus"]
        # A job that has its nodes to itself leaves nothing to others.
        r.busy[node] = t.nodes[node]["jobs"]
        if t.nodes[node]["whole"]:
            r.free[0, node] = 0


@leaf
def value(r: Any, job: Any, node: int) -> int:
    """What a run of nodes is measured by: nodes, free cores, or cores that a job with GPUs would take."""
    if job["whole"]:
        return 1
    return int(job["cores"] if job["gpus"] > 0 else r.free[0, node])


@part
def choose(t: Any, r: Any, j: int) -> None:
    """Choose among the fitting nodes, of which there are enough: best-fit runs of neighbours.

    Of the runs that suffice it is the one of least value, else the one of most; the first on ties. A run gives
    its first nodes; for the last node of a job that shares nodes, the one with the fewest free cores. What a
    run does not give comes from the others in the same way.
    """
    job = t.jobs[j]
    found = 0
    while found < job["nodes"]:
        need = job["nodes"] - found
        best, best_value, best_end, best_enough = -1, 0, -1, False
        begin, worth = -1, 0
        for node in range(len(r.fitting) + 1):
            if node < len(r.fitting) and r.fitting[node] != 0:
                if begin < 0:
                    begin, worth = node, 0
                worth += value(r, job, node)
            elif begin >= 0:
                enough = node - begin >= need
                if best < 0:
                    better = True
                elif enough:
                    better = not best_enough or worth < best_value
                else:
                    better = not best_enough and worth > best_value
                if better:
                    best, best_value, best_end, best_enough = begin, worth, node, enough
                begin = -1
        if need == 1 and not job["whole"]:
            for node in range(best, best_end):
                if value(r, job, node) < value(r, job, best):
                    best = node
            best_end = best + 1
        for node in range(best, best_end):
            if found < job["nodes"]:
                r.chosen[found] = node
                found += 1
            r.fitting[node] = 0


# --- the main loop --------------------------------------------------------------------------------


@jit
def main_pass(t: Tables, r: Room, queue: Any, waiting: int, now: int, most: Any, started: Any) -> int:
    """Start jobs in order of priority; the first that does not fit ends it for its partition.

    Parameters
    ----------
    t, r : Tables, Room
        The cluster, and arrays to work in.
    queue : int64[...]
        Waiting jobs by priority, of which there are `waiting`.
    now : int
        Second of the pass.
    most : int64[3]
        Jobs that are looked at, in all and of each partition, and that are started; 0 for all of them.
    started : int64[...]
        The jobs that it started, afterwards.

    Returns
    -------
    int
        How many it started.
    """
    count = 0
    partitions = t.reach.shape[0]
    r.tested[:partitions] = 0
    r.lost[:] = 0
    closed = np.zeros(partitions, np.uint8)
    left = partitions
    look_at_nodes(t, r)
    for k in range(waiting):
        if left == 0 or (most[0] and k >= most[0]) or (most[2] and count >= most[2]):
            break
        j = queue[k]
        p = t.jobs[j]["partition"]
        if closed[p]:
            continue
        r.tested[p] += 1
        if (most[1] and r.tested[p] > most[1]) or over_limit(t, j):
            continue
        for node in range(len(r.usable)):
            r.usable[node] = t.reach[p, node] if r.lost[node] == 0 and t.nodes[node]["out"] == 0 else 0
        if fitting_nodes(t, r, j) >= t.jobs[j]["nodes"]:
            choose(t, r, j)
            start(t, r, j, now)
            look_at_nodes(t, r)
            started[count] = j
            count += 1
        else:
            closed[p] = 1
            left -= 1
            for node in range(len(r.usable)):
                r.lost[node] |= t.reach[p, node]
    return count


# --- the backfill scheduler -----------------------------------------------------------------------


class Backfill(NamedTuple):
    """Parameters of the backfill scheduler."""

    window: int  # [s] that are planned
    resolution: int  # [s]
    most_tests: int  # jobs that are tested; 0 for all of them, as in the other numbers
    most_of_user: int
    most_of_partition: int
    most_starts: int
    least_priority: float  # of jobs that get a plan
    least_age: int  # [s] of jobs that get a plan
    kill_wait: int  # [s] that a job has after its time limit


@leaf
def no_more_than(small: Any, large: Any, usable: Any, also: Any) -> bool:
    """Whether no node of `usable` that is in `small` is missing in what is in both `large` and `also`."""
    for node in range(len(usable)):
        if usable[node] and small[node] and not (large[node] and also[node]):
            return False
    return True


@part
def usable_at(t: Any, s: Any, r: Any, j: int, moment: int) -> int:
    """Mark the nodes that no plan has from a moment on until the job would end; when to try again.

    That is the end of the first stretch after which there could be other nodes, or 0.
    """
    p = t.jobs[j]["partition"]
    until = moment + t.jobs[j]["limit"]
    later = 0
    reach = t.reach[p]
    for node in range(len(r.usable)):
        r.usable[node] = reach[node] if t.nodes[node]["out"] == 0 else 0
    last = s.count[0] - 1
    for k in range(last + 1):
        row = s.order[k]
        if s.end[row] <= moment:
            continue
        if k < last and later == 0:
            following = s.order[k + 1]
            if not no_more_than(s.free[following], s.free[row], reach, r.usable):
                later = s.end[row]
        if s.begin[row] > until:
            break
        free = s.free[row]
        for node in range(len(r.usable)):
            r.usable[node] &= free[node]
    return later


@leaf
def give_back(t: Any, r: Any, j: int) -> None:
    """What is free once a running job has ended."""
    job = t.jobs[j]
    for k in range(job["nodes"]):
        node = t.placed[job["first"] + k]
        r.busy[node] -= 1
        if job["whole"]:
            r.free[0, node] = t.nodes[node]["free_cores"]
        r.free[0, node] += job["cores"]
        r.free[1, node] += job["memory"]
        r.free[2, node] += job["gpus"]


@leaf
def overlaps(t: Any, r: Any, j: int) -> bool:
    """Whether a running job has a usable node."""
    job = t.jobs[j]
    for k in range(job["nodes"]):
        if r.usable[t.placed[job["first"] + k]]:
            return True
    return False


@part
def earliest(t: Any, r: Any, b: Any, j: int, now: int, now_only: bool) -> int:
    """When a job could start on the usable nodes if no other came, and on which; NEVER if it could not.

    Running jobs are taken off in the order in which they have to end. A job of whole nodes is tried after
    each of them; one that shares nodes after all that end within a time that doubles at each trial.
    """
    job = t.jobs[j]
    look_at_nodes(t, r)
    count = fitting_nodes(t, r, j)
    if count >= job["nodes"]:
        choose(t, r, j)
        return now
    if now_only:
        return NEVER
    running = t.counts[0]
    if job["whole"]:
        for k in range(running):
            other = t.running[k]
            give_back(t, r, other)
            for i in range(t.jobs[other]["nodes"]):
                node = t.placed[t.jobs[other]["first"] + i]
                if r.usable[node] and r.fitting[node] == 0 and fits(t, r, job, node):
                    r.fitting[node] = 1
                    count += 1
            if count >= job["nodes"]:
                choose(t, r, j)
                return max(t.jobs[other]["expected"], now + 1)
        return NEVER
    k, bound, step = 0, 0, 30
    while k < running:
        last, taken = -1, 0
        while k < running:
            other = t.running[k]
            k += 1
            if not overlaps(t, r, other):
                continue
            expected = t.jobs[other]["expected"]
            if bound == 0:
                bound = expected + 30 - expected % 30
            last = other
            give_back(t, r, other)
            taken += 1
            if k < running and t.jobs[t.running[k]]["expected"] > bound + step:
                break
            if taken > 201:
                break
        if last < 0:
            return NEVER
        if taken > 201:
            continue
        step *= 2
        while k < running and t.jobs[t.running[k]]["expected"] > bound + step:
            step *= 2
        if fitting_nodes(t, r, j) >= job["nodes"]:
            choose(t, r, j)
            expected = t.jobs[last]["expected"]
            if expected > now:
                return int(expected)
            return int(max(expected + b.kill_wait, now + 1))
    return NEVER


@part
def clashes(t: Any, s: Any, r: Any, j: int, begin: int, end: int) -> bool:
    """Whether a plan has one of the chosen nodes at some time in a stretch."""
    for k in range(s.count[0]):
        row = s.order[k]
        if s.end[row] > begin and s.begin[row] < end:
            for i in range(t.jobs[j]["nodes"]):
                if s.free[row, r.chosen[i]] == 0:
                    return True
    return False


@leaf
def split(s: Any, moment: int) -> None:
    """Let a stretch begin at a moment, if it lies within one."""
    count = s.count[0]
    for k in range(count):
        row = s.order[k]
        if s.begin[row] < moment < s.end[row]:
            new = s.order[count]
            for i in range(count, k + 1, -1):
                s.order[i] = s.order[i - 1]
            s.order[k + 1] = new
            s.begin[new], s.end[new] = moment, s.end[row]
            s.end[row] = moment
            for node in range(s.free.shape[1]):
                s.free[new, node] = s.free[row, node]
            s.count[0] += 1
            return


@part
def plan(t: Any, s: Any, r: Any, j: int, begin: int, end: int) -> None:
    """Plan a job on the chosen nodes; one pair of neighbouring stretches with the same nodes becomes one."""
    begin = max(begin, s.begin[s.order[0]])
    split(s, begin)
    split(s, end)
    for k in range(s.count[0]):
        row = s.order[k]
        if s.begin[row] >= begin and s.end[row] <= end:
            for i in range(t.jobs[j]["nodes"]):
                s.free[row, r.chosen[i]] = 0
    for k in range(s.count[0] - 1):
        row, following = s.order[k], s.order[k + 1]
        same = True
        for node in range(s.free.shape[1]):
            if s.free[row, node] != s.free[following, node]:
                same = False
                break
        if same:
            s.end[row] = s.end[following]
            for i in range(k + 1, s.count[0] - 1):
                s.order[i] = s.order[i + 1]
            s.count[0] -= 1
            s.order[s.count[0]] = following
            return


@part
def test_job(t: Any, s: Any, r: Any, b: Any, j: int, now: int) -> bool:
    """Start a job now or plan it; whether it started."""
    no_plan = t.jobs[j]["priority"] < b.least_priority or now - t.jobs[j]["begin"] < b.least_age
    limit = t.jobs[j]["limit"]
    later = now
    while True:
        moment = later
        later = usable_at(t, s, r, j, moment)
        count = 0
        for node in range(len(r.usable)):
            count += r.usable[node]
        begin = NEVER
        if count >= t.jobs[j]["nodes"]:
            begin = earliest(t, r, b, j, now, no_plan)
        if begin == NEVER:
            if later and not no_plan:
                continue
            return False
        begin = max(begin, moment)
        if begin <= now:
            if over_limit(t, j):
                return False
            start(t, r, j, now)
            return True
        if no_plan:
            return False
        if later and begin > later:
            continue
        if begin > now + b.window:
            return False
        first = begin // b.resolution * b.resolution
        end = max((begin + limit) // b.resolution * b.resolution, first + b.resolution)
        if clashes(t, s, r, j, first, end):
            later = begin if begin > moment else begin + b.resolution
            continue
        if not over_limit(t, j):
            plan(t, s, r, j, first, end)
        return False


@jit
def backfill_pass(
    t: Tables, r: Room, s: Space, b: Backfill, queue: Any, waiting: int, now: int, started: Any
) -> int:
    """Start or plan jobs in order of priority, each such that it delays no plan of one before it.

    Parameters
    ----------
    t, r, s : Tables, Room, Space
        The cluster, arrays to work in, and what is planned.
    b : Backfill
        Parameters.
    queue : int64[...]
        Waiting jobs by priority, of which there are `waiting`.
    now : int
        Second of the pass.
    started : int64[...]
        The jobs that it started, afterwards.

    Returns
    -------
    int
        How many it started.
    """
    for k in range(len(s.order)):
        s.order[k] = k
    s.count[0] = 1
    s.begin[0] = now // b.resolution * b.resolution
    s.end[0] = (now + b.window) // b.resolution * b.resolution
    s.free[0, :] = 1
    r.tested[:] = 0
    partitions = t.reach.shape[0]
    count, tests = 0, 0
    for k in range(waiting):
        if (b.most_tests and tests >= b.most_tests) or s.count[0] + 2 >= len(s.order):
            break
        j = queue[k]
        if over_limit(t, j):
            continue
        p, u = t.jobs[j]["partition"], partitions + t.jobs[j]["user"]
        if (b.most_of_partition and r.tested[p] >= b.most_of_partition) or (
            b.most_of_user and r.tested[u] >= b.most_of_user
        ):
            continue
        r.tested[p] += 1
        r.tested[u] += 1
        tests += 1
        if test_job(t, s, r, b, j, now):
            started[count] = j
            count += 1
            if b.most_starts and count >= b.most_starts:
                break
    return count
