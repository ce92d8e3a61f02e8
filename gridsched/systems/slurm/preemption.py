"""Preemption: which running jobs give way when a job does not fit, and where it could start without them.

A job that could start if others were out of the way has them killed; it does not start in that pass, since
their nodes take a moment to be free. Jobs that can be suspended keep their memory and GPUs, and the other
job starts at once.

Rules: `slurm_find_preemptable_jobs` of slurmctld (src/slurmctld/preempt.c), `_run_now` and `_will_run_test`
of select/linear and select/cons_tres, `_preempt_jobs` (src/slurmctld/node_scheduler.c), as of Slurm 22.05.
Where jobs share nodes it is not known which cores each has: of the jobs that may be suspended on a node,
those of least worth are until there are enough.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import FOREVER
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.kernels import (
    CORES,
    KEPT,
    KILLED,
    LINEAR,
    PATIENCE,
    REORDERED,
    STRICT,
    SUSPENDED,
    YOUNGEST,
    choose,
    choose_anew,
    earliest_shared,
    fitting_nodes,
    give,
    has_parts,
    mark_free,
    next_on,
    over_limit_on,
    overlaps,
    suppose_gone,
    suppose_now,
    take_off,
    try_alone,
    unpack,
)

CANDIDATES, VICTIMS, TAKES = 0, 1, 2
"""Counts of a pass."""


@inline
def is_elsewhere(t: Any, r: Any, p: Any, j: int) -> bool:
    """Whether a job has started in another of its partitions, or has jobs killed there in this pass."""
    return bool(kernels.is_elsewhere(t, r, p, j) or p.killed[t.jobs[j]["of"]] == r.passes[0])


@inline
def is_never_preempted(p: Any, j: int) -> bool:
    """Whether no job makes a running one give way."""
    return bool(p.way[j] == KEPT)


@inline
def change_places(t: Any, p: Any, row: int) -> int:
    """Let a job have the partition of one of its rows, and the row that of the job; which job it is."""
    job = kernels.change_places(t, p, row)
    if job != row:
        p.group[job], p.group[row] = p.group[row], p.group[job]
        p.level[job], p.level[row] = p.level[row], p.level[job]
        p.mode[job], p.mode[row] = p.mode[row], p.mode[job]
        p.way[job], p.way[row] = p.way[row], p.way[job]
        p.exempt[job], p.exempt[row] = p.exempt[row], p.exempt[job]
    return int(job)


# --- who may give way -----------------------------------------------------------------------------


@inline
def comes_before(t: Any, p: Any, one: int, other: int) -> bool:
    """Whether a job is to give way rather than another one: smaller jobs of lower partitions, or younger."""
    first, second = t.jobs[one], t.jobs[other]
    if p.settings[YOUNGEST]:
        if first["start"] != second["start"]:
            return bool(first["start"] > second["start"])
    elif p.level[one] != p.level[other]:
        return bool(p.level[one] < p.level[other])
    elif first["nodes"] != second["nodes"]:
        return bool(first["nodes"] < second["nodes"])
    return bool(first["record"] < second["record"])


@noinline
def find_candidates(t: Any, p: Any, j: int, now: int) -> int:
    """Running jobs that may give way to a job, those of least worth first; how many there are."""
    count = 0
    for k in range(t.counts[0]):
        other = t.running[k]
        record = t.jobs[other]
        way = p.way[other]
        if way == KEPT or p.may[p.group[j], p.group[other]] == 0:
            continue
        if now - record["start"] < p.exempt[other]:
            continue
        if not overlaps(t, t.reach[t.jobs[j]["partition"]], record):
            continue
        place = count
        while place > 0 and comes_before(t, p, other, p.candidates[place - 1]):
            p.candidates[place] = p.candidates[place - 1]
            place -= 1
        p.candidates[place] = other
        count += 1
    p.counts[CANDIDATES] = count
    return count


# --- what would be if they did --------------------------------------------------------------------


@noinline
def leave_out(t: Any, r: Any, j: int, cores_only: bool) -> None:
    """Suppose that a job were not there, or that only its cores were free."""
    job = t.jobs[j]
    for i in range(job["nodes"]):
        node = t.placed[job["first"] + i]
        if cores_only:
            r.free[CORES, node] += job["cores"]
        else:
            give(r.free, job, node, 1)
        suppose_gone(r, job, node)


@noinline
def would_fit(t: Any, r: Any, j: int) -> bool:
    """Whether a job would fit on the usable nodes; who is suspended keeps memory and GPUs."""
    job = t.jobs[j]
    mark_free(t, r, r.free, r.quiet, r.alone, r.usable, job)
    return bool(fitting_nodes(r.free, r.quiet, r.alone, r.usable, r.fitting, job) >= job["nodes"])


@inline
def on_chosen(t: Any, r: Any, j: int, other: int) -> int:
    """How many of the nodes that are chosen for a job another one has."""
    count = 0
    for i in range(t.jobs[other]["nodes"]):
        for k in range(t.jobs[j]["nodes"]):
            count += 1 if t.placed[t.jobs[other]["first"] + i] == r.chosen[k] else 0
    return count


@inline
def add_victim(p: Any, other: int, j: int) -> None:
    """Note that a job gives way to another one; who is to be suspended is from now on."""
    p.suspended[other] = 1 if p.way[other] == SUSPENDED else 0
    p.victims[p.counts[VICTIMS]] = other
    p.by[p.counts[VICTIMS]] = j
    p.counts[VICTIMS] += 1


@noinline
def add_victims(t: Any, r: Any, p: Any, j: int, way: int, count: int) -> bool:
    """Let the first candidates give way in one of the ways that have chosen nodes; whether any does."""
    before = p.counts[VICTIMS]
    for i in range(count):
        other = p.candidates[i]
        if p.way[other] == way and p.suspended[other] == 0 and on_chosen(t, r, j, other) > 0:
            add_victim(p, other, j)
    return bool(p.counts[VICTIMS] > before)


# --- which of them do -----------------------------------------------------------------------------


@inline
def sort_by_overlap(p: Any) -> None:
    """Put candidates with more overlap before those with less."""
    for i in range(1, p.counts[CANDIDATES]):
        other, overlap, place = p.candidates[i], p.overlap[i], i
        while place > 0 and p.overlap[place - 1] < overlap:
            p.candidates[place], p.overlap[place] = p.candidates[place - 1], p.overlap[place - 1]
            place -= 1
        p.candidates[place], p.overlap[place] = other, overlap


@noinline
def leave_in_order(t: Any, r: Any, p: Any, j: int) -> int:
    """Suppose that candidates of select/linear leave until a job fits; the last of them, -1 if it does not.

    Of each is noted how many of its nodes were of use to the job then.
    """
    suppose_now(t, r)
    for i in range(p.counts[CANDIDATES]):
        other = p.candidates[i]
        leave_out(t, r, other, p.way[other] == SUSPENDED)
        fits = would_fit(t, r, j)
        p.overlap[i] = 0
        for k in range(t.jobs[other]["nodes"]):
            p.overlap[i] += r.fitting[t.placed[t.jobs[other]["first"] + k]]
        if fits:
            return int(i)
    return -1


@noinline
def take_whole_nodes(t: Any, r: Any, p: Any, j: int) -> int:
    """select/linear: candidates leave in order until the job fits; what becomes of them.

    Then once more, the last of them first, and the others by the nodes that they gave.
    """
    last = leave_in_order(t, r, p, j)
    if last < 0:
        return KEPT
    if p.counts[CANDIDATES] > 1:
        p.overlap[last] = FOREVER
        for i in range(last + 1, p.counts[CANDIDATES]):
            p.overlap[i] = 0
        sort_by_overlap(p)
        leave_in_order(t, r, p, j)
    choose(r.free, r, t.jobs[j])
    if add_victims(t, r, p, j, KILLED, p.counts[CANDIDATES]):
        return KILLED
    add_victims(t, r, p, j, SUSPENDED, p.counts[CANDIDATES])
    return SUSPENDED


@noinline
def reorder(t: Any, r: Any, p: Any, last: int, j: int) -> None:
    """Candidates anew, after they were left out up to one: it first, then those with most of the nodes."""
    count = p.counts[CANDIDATES]
    for i in range(count):
        other = p.candidates[i]
        p.overlap[i] = 0
        if i < last and not p.settings[STRICT]:
            p.overlap[i] = on_chosen(t, r, j, other)
    p.overlap[last] = FOREVER
    sort_by_overlap(p)


@noinline
def killed_for(t: Any, r: Any, p: Any, j: int) -> int:
    """select/cons_tres: candidates to be killed, in order until the job fits; KILLED or KEPT.

    They are put into another order up to some times, so that fewer are killed.
    """
    count, passes = p.counts[CANDIDATES], 0
    while True:
        suppose_now(t, r)
        last = -1
        for i in range(count):
            other = p.candidates[i]
            if last >= 0 or p.way[other] != KILLED or not overlaps(t, r.usable, t.jobs[other]):
                continue
            leave_out(t, r, other, False)
            if would_fit(t, r, j):
                last = i
        if last < 0:
            return KEPT
        choose(r.free, r, t.jobs[j])
        passes += 1
        if passes > p.settings[REORDERED] + 1 or passes >= count:
            break
        reorder(t, r, p, last, j)
    add_victims(t, r, p, j, KILLED, last + 1)
    return KILLED


@noinline
def suppose_suspended(t: Any, r: Any, p: Any, below: int) -> int:
    """Suppose that candidates below a level had no cores; the highest level among them, -1 without any."""
    suppose_now(t, r)
    highest = -1
    for i in range(p.counts[CANDIDATES]):
        other = p.candidates[i]
        if p.way[other] == SUSPENDED and p.level[other] < below:
            leave_out(t, r, other, True)
            highest = max(highest, p.level[other])
    return int(highest)


@noinline
def suspended_for(t: Any, r: Any, p: Any, j: int) -> int:
    """select/cons_tres: candidates to be suspended, of higher levels only if need be; SUSPENDED or KEPT."""
    below = FOREVER
    highest = suppose_suspended(t, r, p, below)
    if highest < 0 or not would_fit(t, r, j):
        return KEPT
    while highest >= 0:
        next_highest = suppose_suspended(t, r, p, highest)
        if not would_fit(t, r, j):
            break
        below, highest = highest, next_highest
    suppose_suspended(t, r, p, below)
    would_fit(t, r, j)
    choose(r.free, r, t.jobs[j])
    job = t.jobs[j]
    for k in range(job["nodes"]):
        node = r.chosen[k]
        # cores that are free once those sleep that do already, and those that are added
        free, awake = t.free[CORES, node], t.busy[node]
        for added in range(2):
            for i in range(p.counts[CANDIDATES]):
                other = p.candidates[i]
                record = t.jobs[other]
                if p.way[other] != SUSPENDED or p.level[other] >= below:
                    continue
                if p.suspended[other] != 1 - added:
                    continue
                here = False
                for a in range(record["nodes"]):
                    here |= t.placed[record["first"] + a] == node
                enough = free >= job["cores"] and (not job["whole"] or awake == 0)
                if not here or (added == 1 and enough and record["whole"] == 0):
                    continue
                free += record["cores"]
                awake -= 1
                if added == 1:
                    add_victim(p, other, j)
    return SUSPENDED


@noinline
def makes_room(t: Any, r: Any, p: Any, j: int, now: int) -> bool:
    """Let jobs give way to one that does not fit on the usable nodes; whether it can start at once.

    It can on the chosen nodes if others are suspended; if they are killed, once they have left.
    """
    if find_candidates(t, p, j, now) == 0:
        return False
    before = p.counts[VICTIMS]
    if r.ranks[LINEAR]:
        how = take_whole_nodes(t, r, p, j)
    else:
        how = suspended_for(t, r, p, j)
        if how == KEPT:
            how = killed_for(t, r, p, j)
    job = t.jobs[j]["of"]
    if how == KILLED and now < p.again[job]:
        p.counts[VICTIMS] = before
    elif how == KILLED:
        p.again[job] = now + p.settings[PATIENCE]
        p.killed[job] = r.passes[0]
        for i in range(before, p.counts[VICTIMS]):
            victim = t.jobs[p.victims[i]]
            for k in range(victim["nodes"]):
                r.completing[t.placed[victim["first"] + k]] += 1
            take_off(t, p.victims[i])
    return how == SUSPENDED


# --- what passes ask ------------------------------------------------------------------------------


@noinline
def earliest(t: Any, r: Any, b: Any, p: Any, j: int, now: int, now_only: bool, horizon: int) -> int:
    """When a job could start on the usable nodes if those that may give way did, and on which."""
    p.counts[TAKES] = p.counts[CANDIDATES] = 0
    if t.jobs[j]["gpus"] and r.ranks[LINEAR] == 0:
        now_only, horizon = False, FOREVER  # as in `kernels.earliest`: all tests leave marks
    unpack(r.bits, r.usable)
    suppose_now(t, r)
    fits = would_fit(t, r, j)
    if not fits and find_candidates(t, p, j, now) > 0:
        for i in range(p.counts[CANDIDATES]):
            leave_out(t, r, p.candidates[i], p.way[p.candidates[i]] == SUSPENDED)
        fits = would_fit(t, r, j)
        p.counts[TAKES] = 1 if fits else 0
    if fits:
        choose(r.free, r, t.jobs[j])
        return now
    if now_only:
        return FOREVER
    for i in range(p.counts[CANDIDATES]):
        r.off[p.candidates[i]] = 1
    found = FOREVER
    if r.ranks[LINEAR] == 0:
        found = earliest_shared(t, r, b, j, now, horizon)
    else:
        k = next_on(t, r, 0)
        while k < t.counts[0] and found == FOREVER and t.jobs[t.running[k]]["expected"] <= horizon:
            leave_out(t, r, t.running[k], False)
            if would_fit(t, r, j):
                choose(r.free, r, t.jobs[j])
                found = max(t.jobs[t.running[k]]["expected"], now + 1)
            k = next_on(t, r, k + 1)
    for i in range(p.counts[CANDIDATES]):
        r.off[p.candidates[i]] = 0
    return int(found)


@noinline
def has_room(t: Any, r: Any, p: Any, j: int, now: int) -> int:
    """Whether a job can start now on the chosen nodes (1), those suspended that are to give way.

    If they are killed instead, it cannot yet (0), and its nodes stay the chosen ones; -1 for a limit.
    """
    try_alone(t, j)
    if has_parts(t, t.jobs[j]["kind"]):
        p.counts[TAKES] = 0  # nobody gives way to one that wants numbers of nodes
    if p.counts[TAKES] == 0 and not choose_anew(t, r, j):
        return 0
    if over_limit_on(t, j, r.chosen, True):
        return -1
    if p.counts[TAKES] == 0:
        return 1
    nodes = t.jobs[j]["nodes"]
    for k in range(nodes):
        p.chosen[k] = r.chosen[k]
    r.changes[0] += 1
    can_start = makes_room(t, r, p, j, now)
    if not can_start:
        for k in range(nodes):
            r.chosen[k] = p.chosen[k]
    return int(can_start)
