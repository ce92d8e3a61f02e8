"""One pass of Slurm's main loop, and one of its backfill scheduler, on named nodes.

Rules: `schedule` of slurmctld (src/slurmctld/job_scheduler.c) and `_attempt_backfill` of sched/backfill, as
of Slurm 22.05; `kernels` says what a pass sees, `preemption` who gives way to whom.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine.jit import inline, jit, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.reference import by_reference
from gridsched.systems.slurm.components import (
    YEAR,
    begin_pass,
    note_start,
    others_start,
    start_hetjobs,
    who_gives_way,
    would_wait_for_each_other,
)
from gridsched.systems.slurm.kernels import (
    BY_ACCOUNT,
    BY_MEMORY,
    BY_QUALITY,
    BY_TIME,
    LINEAR,
    NOTED,
    REJECTED,
    Backfill,
    NoPreemption,
    Preemption,
    Room,
    Space,
    Tables,
    be_part,
    choices_of_kind,
    choose_lightest,
    choose_parts,
    clashes,
    count_test,
    earliest,
    end_of_plan,
    fitting_nodes,
    has_licences,
    has_parts,
    keep_off,
    keep_running,
    leave_bits,
    mark,
    mark_free,
    next_try,
    note_planned,
    note_wanted,
    number_of_both,
    number_pass,
    over_amounts,
    over_count,
    over_limit_on,
    pack,
    past_reservations,
    plan,
    start,
    stay_alone,
    tested,
    try_alone,
    unmark,
    usable_at,
)

TRIES, STARTS, NEXT, CUT, WHOLE = 2, 3, 4, 5, 6
"""Places in `Space.count`: of the jobs that a pass tried, of those that it started, and of the place in the
queue where it goes on, 0 for a new one; of 1 more than the array whose tasks have their shortest limit, 0 for
none, and of their own limit."""

NEITHER, STARTED, PLANNED, FULL = 0, 1, 2, 3
"""What a backfill pass did with a job."""


@inline
def gets_plan(t: Any, least_priority: float, least_age: int, j: int, now: int) -> bool:
    """Whether nodes are kept for a job that cannot start (bf_min_prio_reserve, bf_min_age_reserve)."""
    return bool(t.jobs[j]["priority"] >= least_priority and now - t.jobs[j]["begin"] >= least_age)


@inline
def mark_tested(t: Any, r: Any, j: int, nodes: Any, here: Any) -> None:
    """Mark nodes on which a job with GPUs was tried as if nothing else ran, since it could not start.

    Those in service that passes may use if there are enough of those that are available; if not, or if it
    could not run there, all (`_pick_best_nodes`).
    """
    job = t.jobs[j]
    if job["gpus"] and not r.ranks[LINEAR]:
        available = able = 0
        for node in range(len(here)):
            quiet = t.idle[node] != 0 if job["whole"] else t.alone[node] == 0
            available += here[node] != 0 and r.completing[node] == 0 and quiet
            able += here[node] & t.suits[job["kind"], node]
        if available >= job["nodes"]:
            mark(t, r, here, job)
        if available < job["nodes"] or able < job["nodes"]:
            mark(t, r, nodes, job)


@jit
def try_submitted(t: Tables, r: Room, j: int) -> bool:
    """Try a job that is submitted as if nothing else ran, which leaves marks on its nodes.

    Slurm looks at those on which no job has all, if they are enough, else at all; and at none if a limit of
    numbers of jobs keeps the job from starting. Whether it did.
    """
    stay_alone(t, j)
    if over_count(t, j):
        return False
    try_alone(t, j)
    job = t.jobs[j]
    unmark(t, r, j, t.tried[job["kind"]])
    first, choices = choices_of_kind(t, job["kind"])
    for kind in range(first, first + choices):
        nodes, able = t.tried[kind], 0
        for node in range(len(nodes)):
            quiet = t.idle[node] != 0 if job["whole"] else t.alone[node] == 0
            r.usable[node] = nodes[node] & t.up[node] if quiet and r.completing[node] == 0 else 0
            able += r.usable[node] & t.suits[kind, node]
        mark(t, r, r.usable if able >= job["nodes"] else nodes, job)
        if able >= job["nodes"]:
            break
    return True


# --- the main loop --------------------------------------------------------------------------------


@inline
def close(t: Any, r: Any, closed: Any, own: int) -> int:
    """Close a partition for the rest of a pass, and keep others off its nodes."""
    closed[own] = 1
    for node in range(len(r.lost)):
        r.lost[node] |= t.reach[own, node]
    return 1


@inline
def take_off_busy(t: Any, r: Any, suits: Any, whole: int) -> tuple[int, int]:
    """Take nodes that are being cleaned off the usable ones; how many these were, and of them in use.

    Nodes that others share are in use where a job has one to itself (nodes_busy of _pick_best_nodes).
    """
    there, busy = 0, 0
    for node in range(len(r.usable)):
        if r.usable[node]:
            there += suits[node]
            leaving = r.completing[node] > 0
            busy += leaving or (t.idle[node] == 0 if whole else t.alone[node] > 0)
            r.usable[node] = 0 if leaving else 1
    return there, busy


@noinline
def look_for_nodes(t: Any, r: Any, j: int, now: int, here: Any) -> tuple[bool, bool, bool]:
    """Choose nodes for a job that starts now; whether there are enough, would be if nothing ran, will be.

    The last is not so if it lacks nodes that are out or reserved, and none that a job has. `here` are
    afterwards the nodes in service that passes may use.
    """
    job = t.jobs[j]
    tried = t.tried[job["kind"]]
    for node in range(len(r.usable)):
        r.usable[node] = tried[node] & (1 - r.lost[node])
    if t.counts[1] > 0:
        keep_off(t, r, job["partition"], job["limit"], now)
    for node in range(len(here)):
        here[node] = r.usable[node]
    r.taken[:] = 0
    kind, wanted = job["kind"], job["nodes"]
    if has_parts(t, kind):
        for node in range(len(here)):
            r.low[node] = here[node] if r.completing[node] == 0 else 0
        if choose_parts(t, r, j, r.low) < 0:
            return True, True, True
        for node in range(len(here)):
            r.usable[node] = here[node] & t.tried[t.jobs[j]["kind"], node] & (1 - r.taken[node])
    found = look_among_usable(t, r, j)
    t.jobs[j]["kind"], t.jobs[j]["nodes"] = kind, wanted
    return found


@inline
def look_among_usable(t: Any, r: Any, j: int) -> tuple[bool, bool, bool]:
    """The same of the usable nodes, but for those that are taken."""
    job = t.jobs[j]
    suits = t.suits[job["kind"]]
    in_service, busy = take_off_busy(t, r, suits, job["whole"])
    able = 0
    for node in range(len(suits)):
        able += suits[node] & (1 - r.taken[node])
    mark_free(t, r, t.free, t.idle, t.alone, r.usable, job)
    enough = fitting_nodes(t.free, t.idle, t.alone, r.usable, r.fitting, job) >= job["nodes"]
    if enough:
        choose_lightest(t.free, r, job)
    return enough, able >= job["nodes"], bool(busy or in_service >= job["nodes"])


@jit
def main_pass(
    t: Tables,
    r: Room,
    kept: Any,
    rules: NoPreemption | Preemption,
    queue: Any,
    waiting: int,
    now: int,
    most: Any,
    started: Any,
) -> int:
    """Start jobs in order of priority; the first that does not fit ends it for its partition.

    Unless it is too young, or of too low priority, for a plan of the backfill scheduler, and there are as
    many nodes as it wants that are in service and not kept for jobs before it.

    Parameters
    ----------
    t, r : Tables, Room
        The cluster, and arrays to work in.
    kept : (float, int)
        Least priority and age [s] of jobs for which nodes are kept.
    rules : NoPreemption or Preemption
        Who gives way to whom.
    queue : int64[...]
        Waiting jobs by priority, of which there are `waiting`.
    now : int
        Second of the pass.
    most : (int, int, int)
        Jobs that are looked at, in all and of each partition, and that are started; 0 for all of them.
    started : int64[...]
        The jobs that it started, afterwards.

    Returns
    -------
    int
        How many it started.
    """
    p = by_reference(rules)
    number_pass(r, 0)
    count, looked = 0, 0
    partitions = t.reach.shape[0]
    for node in range(len(r.lost)):
        r.lost[node] = 1 - t.up[node]
    closed, here = np.zeros(partitions, np.uint8), np.zeros(len(r.lost), np.uint8)
    left = partitions
    for k in range(waiting):
        if most[2] and count >= most[2]:
            break
        j = queue[k]
        if who_gives_way.is_elsewhere(t, r, p, j) or t.jobs[j]["barred"] == BY_TIME:
            continue
        stay_alone(t, j)
        own, tasks = t.jobs[j]["partition"], t.jobs[j]["counter"]
        if t.jobs[j]["hetjob"] >= 0:
            if not closed[own]:
                left -= close(t, r, closed, own)
            continue
        if tasks >= 0:
            # tasks behind one that did not start are not looked at
            if tested(r, tasks):
                continue
            count_test(r, tasks, REJECTED)
            if t.tasks[t.jobs[j]["array"]] >= t.jobs[j]["most_tasks"]:
                continue
        count_test(r, own, 1)
        if most[1] and tested(r, own) > most[1]:
            continue
        looked += 1
        if most[0] and looked > most[0]:
            break
        if closed[own]:
            # that a job waits behind another one is noted each time
            t.counts[NOTED] = 1
            if left == 0:
                break
            continue
        if over_count(t, j):
            continue
        there = 0
        for node in range(len(r.lost)):
            there += t.reach[own, node] & (1 - r.lost[node])
        if t.jobs[j]["nodes"] > there:
            # too many nodes are out of service or kept for jobs before it, which is noted each time
            t.counts[NOTED] = 1
            left -= close(t, r, closed, own)
            continue
        if BY_TIME <= t.jobs[j]["barred"] <= BY_ACCOUNT or not has_licences(t, j):
            continue
        try_alone(t, j)
        kind = t.jobs[j]["kind"]
        unmark(t, r, j, t.tried[kind])
        if t.counts[1] > 0 and past_reservations(t, own, t.jobs[j]["limit"], now) > now:
            continue
        first, choices = choices_of_kind(t, kind)
        starts = over = able = waits = False
        for choice in range(choices):
            t.jobs[j]["kind"] = first + choice
            enough, is_able, would = look_for_nodes(t, r, j, now, here)
            over = over_limit_on(t, j, r.chosen, enough) or (t.jobs[j]["barred"] == BY_MEMORY and not enough)
            starts = enough and not over
            # that others give way to one that wants numbers of nodes is not modelled
            if not enough and not over and not has_parts(t, kind):
                starts = who_gives_way.makes_room(t, r, p, j, now)
            if enough:
                t.jobs[t.jobs[j]["of"]]["sized"] = 1
            if enough or starts:
                break
            mark_tested(t, r, j, t.tried[first + choice], here)
            able |= is_able
            waits |= would
            if who_gives_way.is_elsewhere(t, r, p, j):
                break  # others were killed for it
        t.jobs[j]["kind"] = kind
        if over:
            continue
        if starts:
            j = who_gives_way.change_places(t, p, j)
            start(t, r, j, now)
            started[count] = j
            count += 1
            if tasks >= 0:
                count_test(r, tasks, -REJECTED)
            continue
        # who can never run, or could not if it waited for jobs, closes nothing
        if able and waits and gets_plan(t, kept[0], kept[1], j, now):
            left -= close(t, r, closed, own)
    return count


# --- the backfill scheduler -----------------------------------------------------------------------


@inline
def waits_for_nodes(r: Any, count: int) -> bool:
    """Whether jobs that have ended have not left some of so many chosen nodes yet."""
    waits = False
    for k in range(count):
        waits |= r.completing[r.chosen[k]] > 0
    return waits


@noinline
def first_start(
    t: Any,
    s: Any,
    r: Any,
    b: Any,
    p: Any,
    j: int,
    now: int,
    moment: int,
    only_now: bool,
    horizon: int,
    idle: bool,
) -> tuple[int, int]:
    """When a job could start on nodes that no plan has from a moment on, and on how many.

    The former is -1 if there are too few. Of several choices of nodes it is the first of those with the
    earliest start (`_try_sched`).
    """
    kind, wanted = t.jobs[j]["kind"], t.jobs[j]["nodes"]
    if has_parts(t, kind):
        found = start_of_parts(t, s, r, b, p, j, now, moment, only_now)
        t.jobs[j]["kind"], t.jobs[j]["nodes"] = kind, wanted
        return found
    first, choices = t.choices[kind]
    begin, best, last = FOREVER, -1, -1
    for k in range(first, first + choices):
        t.jobs[j]["kind"] = k
        if usable_at(t, s, r, j, moment, horizon, idle) >= wanted:
            start_there = who_gives_way.earliest(t, r, b, p, j, now, only_now, horizon)
            last = k
            if start_there < begin:
                begin, best = start_there, k
                for i in range(wanted):
                    r.best[i] = r.chosen[i]
    if best < first + choices - 1 and begin < FOREVER:
        # others were looked at since
        t.jobs[j]["kind"] = best
        usable_at(t, s, r, j, moment, horizon, idle)
        if best != last:
            who_gives_way.earliest(t, r, b, p, j, now, only_now, horizon)
        for i in range(wanted):
            r.chosen[i] = r.best[i]  # marks that were left since may have changed them
    t.jobs[j]["kind"] = kind
    return int(begin) if last >= 0 else -1, wanted


@noinline
def start_of_parts(
    t: Any,
    s: Any,
    r: Any,
    b: Any,
    p: Any,
    j: int,
    now: int,
    moment: int,
    only_now: bool,
) -> tuple[int, int]:
    """The same of a job that wants numbers of nodes: the latest start of its parts, each on nodes of its own.

    Each has nodes for all processors that the job asks for, so has the rest, which only has to be possible.
    The rest comes, too, behind a part for which there are too few nodes (`_try_sched`).
    """
    kind, wanted = t.jobs[j]["kind"], t.jobs[j]["nodes"]
    # who asks for more processors than nodes asks for so many of each
    least = wanted if t.jobs[j]["wanted"] > wanted else -(-wanted // max(t.jobs[j]["cores"], 1))
    first, parts = t.choices[kind]
    t.jobs[j]["kind"] = first + parts
    if usable_at(t, s, r, j, moment, FOREVER, False) < wanted:
        return -1, 0
    r.taken[:] = 0
    begin, found, part = -1, 0, 0
    while part < parts or found < wanted:
        count = max(be_part(t, j, kind, part, wanted - found), least)
        most = wanted if part < parts else wanted - found
        t.jobs[j]["kind"], t.jobs[j]["nodes"] = first + part, count
        usable_at(t, s, r, j, moment, FOREVER, False)
        leave_bits(r.bits, r.taken)
        start_there = FOREVER
        if count <= most and number_of_both(r.bits, r.bits) >= count:
            start_there = earliest(t, r, b, p, j, now, only_now, FOREVER)
        if start_there == FOREVER:
            if part == parts or found == 0 or found >= wanted:
                return FOREVER, 0
            part = parts
            continue
        for i in range(count):
            r.best[found + i] = r.chosen[i]
            r.taken[r.chosen[i]] = 1
        found += count
        if part < parts:
            begin = max(begin, start_there)
            part += 1
    for i in range(found):
        r.chosen[i] = r.best[i]
    # it starts on any nodes that no plan has
    t.jobs[j]["kind"], t.jobs[j]["nodes"] = kind, wanted
    usable_at(t, s, r, j, moment, FOREVER, False)
    return int(begin), found


@noinline
def test_job(t: Any, s: Any, r: Any, b: Any, p: Any, j: int, now: int) -> int:
    """Start a job now or plan it; `STARTED`, `PLANNED`, `FULL` if that cannot be kept, or `NEITHER`."""
    if not has_licences(t, j):
        return NEITHER
    stay_alone(t, j)
    no_plan = not gets_plan(t, b.least_priority, b.least_age, j, now)
    again = b.one_plan and t.jobs[t.jobs[j]["of"]]["planned"] == r.passes[0]
    no_plan |= again
    limit, is_part = t.jobs[j]["least"], t.jobs[j]["hetjob"] >= 0
    floor = others_start(t, r, j) if is_part else now
    later, tried = now, 0
    while True:
        moment = max(later, floor)
        if t.counts[1] > 0:
            moment = past_reservations(t, t.jobs[j]["partition"], limit, moment)
            if moment > now + b.window:
                return NEITHER
        moment, later = next_try(t, s, r, b, j, now, moment, not no_plan)
        # what begins after `later` is not looked at: the job is tried then
        horizon = max(later, now) if later and not no_plan and not is_part else FOREVER
        idle_then = bool(b.needs_idle and tried and horizon < FOREVER)
        begin, count = first_start(t, s, r, b, p, j, now, moment, no_plan, horizon, idle_then)
        if begin >= 0:
            s.count[TRIES] += 1 - tried
            tried = 1
        if 0 <= begin < FOREVER:
            t.jobs[t.jobs[j]["of"]]["sized"] = 1
        begin = FOREVER if begin < 0 else begin
        if begin == FOREVER or (no_plan and begin > now):
            if later and not no_plan:
                continue
            return NEITHER
        if moment > begin:
            t.counts[NOTED] = 1  # another start than its nodes allow
            begin = moment
        if begin <= now and waits_for_nodes(r, count):
            begin, later = now + 1, 0
        if is_part:
            note_start(t, r, j, begin)
        elif begin <= now:
            may = t.jobs[j]["barred"] != BY_ACCOUNT and not over_count(t, j)
            room = who_gives_way.has_room(t, r, p, j, now) if may else -int(over_amounts(t, j))
            if room < 0:
                return NEITHER
            if room > 0:
                j = who_gives_way.change_places(t, p, j)
                t.jobs[j]["limit"] = limit
                start(t, r, j, now)
                if who_gives_way.is_never_preempted(p, j):
                    keep_running(t, s, r, b, j, now)
                return STARTED
            later = 0  # its nodes are kept for it
        if no_plan and (begin > now or again):
            note_planned(t, r, j)
            return NEITHER
        if later and begin > later:
            continue
        if begin > now + b.window:
            note_planned(t, r, j)
            return NEITHER
        first = begin // b.resolution * b.resolution
        end = max(end_of_plan(b, begin + limit), first + b.resolution)
        note_wanted(r, count)
        if begin > now and clashes(s, r, first, end):
            later = begin if begin > moment else begin + b.resolution
            continue
        if is_part and would_wait_for_each_other(t, r, j, begin):
            return NEITHER
        if over_amounts(t, j) or t.jobs[j]["barred"] == BY_MEMORY:
            note_planned(t, r, j)
            return NEITHER
        return PLANNED if plan(t, s, r, b, j, first, end) else FULL


@inline
def no_more_plans(t: Any, r: Any, b: Any, queue: Any, waiting: int, j: int, plans: int) -> bool:
    """Whether an array of which some tasks have plans in a partition gets none for a further one.

    Plans in its other partitions count if no other array has got one since (test_array_count).
    """
    if plans == 0:
        return False
    job = t.jobs[j]
    count = max(r.planned[1], plans) if r.planned[0] == job["array"] else plans
    if count >= b.max_per_array:
        return True
    if count > plans:
        left = 0
        for k in range(waiting):
            other = t.jobs[queue[k]]
            left += other["array"] == job["array"] and other["of"] == queue[k] and other["start"] < 0
        if count >= left:
            return True
    return bool(b.throttles and plans > 0 and plans + t.tasks[job["array"]] >= job["most_tasks"])


@inline
def limit_tasks(t: Any, queue: Any, waiting: int, array: int, limit: int) -> None:
    """Give the tasks of an array that still wait a time limit.

    When backfilling starts one with its shortest limit, the record of the others is a copy of it; they have
    their own limit again once the next of them has been tested (`job_array_split`, `_attempt_backfill`).
    """
    for k in range(waiting):
        other = t.jobs[queue[k]]
        if other["array"] == array and t.jobs[other["of"]]["start"] < 0:
            other["limit"] = limit


@jit
def backfill_pass(
    t: Tables,
    r: Room,
    s: Space,
    b: Backfill,
    rules: NoPreemption | Preemption,
    queue: Any,
    waiting: int,
    rows: Any,
    length: int,
    now: int,
    started: Any,
    most: int,
) -> int:
    """Start or plan jobs in order of priority, each such that it delays no plan of one before it.

    A pass that is interrupted goes on where it was, with the plans that it has made.

    Parameters
    ----------
    t, r, s : Tables, Room, Space
        The cluster, arrays to work in, and what is planned.
    b : Backfill
        Parameters.
    rules : NoPreemption or Preemption
        Who gives way to whom.
    queue : int64[...]
        Waiting jobs by priority, of which there are `waiting`.
    rows : int64[...]
        Those of them that the pass looks at, of which there are `length`, and before them one that it has
        looked at if it goes on.
    now : int
        Second of the pass.
    started : int64[...]
        The jobs that it started, afterwards.
    most : int
        Jobs that it tries before it is interrupted; 0 for all of them.

    Returns
    -------
    int
        How many it started.
    """
    p = by_reference(rules)
    r.changes[0] += 1
    pack(t.up, r.up)
    has_parts = len(t.hetjobs) > 0
    r.passes[0] = r.passes[1]  # others may have been made since it was interrupted
    if s.count[NEXT] == 0:
        number_pass(r, 1)
        r.planned[0] = -1
        for k in range(len(s.order)):
            s.order[k] = k
        s.count[:] = 0
        s.count[0] = s.count[1] = 1
        s.begin[0] = now // b.resolution * b.resolution
        s.end[0] = (now + b.window) // b.resolution * b.resolution
        s.up[:] = r.up
        s.free[0, :] = r.up
        s.number[0] = number_of_both(r.up, r.up)
        s.opens[0] = 0
        if has_parts:
            begin_pass(t, r)
    partitions = t.reach.shape[0]
    count, before = 0, s.count[TRIES]
    first = s.count[NEXT]
    for k in range(first, length):
        j = rows[k]
        own, u = t.jobs[j]["partition"], partitions + t.jobs[j]["user"]
        tasks, array = t.jobs[j]["counter"], t.jobs[j]["array"]
        # of an array one task is seen to be within limits of numbers of jobs (`next_task`)
        moved = tasks >= 0 and r.moved[0, array] == r.passes[0]
        is_further = moved or (tasks >= 0 and 0 < tested(r, tasks) < REJECTED)
        # whether there are enough tests was asked before an interruption, not after it (_attempt_backfill)
        goes_on = k == first and first > 0
        if b.most_tests and s.count[TRIES] >= b.most_tests and not is_further and not goes_on:
            break
        if most and s.count[TRIES] - before >= most:
            s.count[NEXT] = k
            return count
        if t.jobs[j]["hetjob"] >= 0:
            note_start(t, r, j, now + YEAR)
            if others_start(t, r, j) > now + b.window:
                continue
        if t.jobs[j]["barred"] == BY_QUALITY or who_gives_way.is_elsewhere(t, r, p, j):
            continue
        if t.tasks[array] >= t.jobs[j]["most_tasks"] if is_further else over_count(t, j):
            continue
        if (b.max_per_partition and tested(r, own) >= b.max_per_partition) or (
            b.max_per_user and tested(r, u) >= b.max_per_user
        ):
            continue
        if moved and r.moved[1, array] != own:
            continue  # the record of the tasks has become that of one that runs (_job_runnable_now)
        if tasks >= 0 and no_more_plans(t, r, b, queue, waiting, j, tested(r, tasks)):
            continue
        count_test(r, own, 1)
        count_test(r, u, 1)
        if s.count[CUT] == array + 1 > 0 and has_licences(t, j):
            limit_tasks(t, queue, waiting, array, s.count[WHOLE])
            s.count[CUT] = 0
        limit = t.jobs[j]["limit"]
        done = test_job(t, s, r, b, p, j, now)
        if done == FULL:
            break
        if tasks >= 0 and done != STARTED:
            # tasks behind one that got no plan are not tried
            count_test(r, tasks, 1 if done == PLANNED else REJECTED)
            if done == PLANNED:
                r.planned[1] = r.planned[1] + 1 if r.planned[0] == array else 1
                r.planned[0] = array
        if done == STARTED:
            if tasks >= 0:
                r.moved[0, array], r.moved[1, array] = r.passes[0], own
                if t.jobs[j]["least"] < limit and not b.keeps_limits:
                    limit_tasks(t, queue, waiting, array, t.jobs[j]["least"])
                    s.count[CUT], s.count[WHOLE] = array + 1, limit
            started[count] = t.jobs[j]["of"]
            count += 1
            s.count[STARTS] += 1
            if b.most_starts and s.count[STARTS] >= b.most_starts:
                break
            if b.ends_early and b.most_tests and s.count[TRIES] >= b.most_tests:
                break
    s.count[NEXT] = 0
    if has_parts:
        left = b.most_starts - s.count[STARTS] + count if b.most_starts else FOREVER
        count = start_hetjobs(t, r, p, left, now, started, count)
    return count
