"""Heterogeneous jobs: components that start together, each on nodes of its own.

The main loop starts none of them: it stops for the partition of a component that waits. A backfill pass plans
each component no earlier than the starts of the others that it knows, and at its end starts those jobs
of which all components can start at that instant. What it knows is kept for two passes.

Rules: `schedule` of slurmctld (src/slurmctld/job_scheduler.c, `het_job_id`) and `_het_job_start_set`,
`_het_job_start_find`, `_het_job_start_test`, `_het_job_limit_check`, `_het_job_start_now`,
`_het_job_kill_now`, `_het_job_deadlock_test` and `backfill_agent` of sched/backfill, Slurm 22.05.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import FOREVER
from gridsched.engine.type_dispatch import ModuleDispatch
from gridsched.systems.slurm import kernels, preemption
from gridsched.systems.slurm.kernels import (
    Preemption,
    choices_of_kind,
    choose_all_parts,
    choose_lightest,
    count_for_limits,
    fitting_nodes,
    has_licences,
    has_parts,
    keep_off,
    mark_free,
    over_limit,
    past_reservations,
    start,
    stay_alone,
    take_off,
    try_alone,
    unmark,
)

who_gives_way = ModuleDispatch(kernels, preemption, Preemption)
"""`earliest`, `has_room`, `makes_room`, `is_elsewhere` and `change_places` without preemption or with it."""

YEAR = 365 * 86400
"""Seconds until the start of a component of which nothing better is known."""

SEEN, JOBS, PASSES, FAILED = 0, 1, 2, 3
"""Places of `Room.parts_counts`: components and jobs that passes have seen, passes, starts that failed."""


@noinline
def begin_pass(t: Any, r: Any) -> None:
    """Forget every other time what earlier passes have found."""
    if r.parts_counts[PASSES] % 2 == 0:
        for i in range(r.parts_counts[SEEN]):
            t.jobs[r.parts[i]]["latest"] = -1
        r.parts_counts[SEEN] = 0
        for k in range(len(t.hetjobs)):
            t.hetjobs[k]["floor"] = 0
    r.parts_counts[PASSES] += 1
    r.parts_starts[:, :] = 0


@inline
def note_start(t: Any, r: Any, row: int, begin: int) -> None:
    """Note when a component could start in one of its partitions, if that is its earliest."""
    job = t.jobs[row]["of"]
    which = t.jobs[job]["hetjob"]
    if t.hetjobs[which]["seen"] == 0:
        t.hetjobs[which]["seen"] = 1
        r.hetjobs[r.parts_counts[JOBS]] = which
        r.parts_counts[JOBS] += 1
    if t.jobs[job]["latest"] < 0:
        r.parts[r.parts_counts[SEEN]] = job
        r.parts_counts[SEEN] += 1
    elif t.jobs[job]["latest"] <= begin:
        return
    t.jobs[job]["latest"], t.jobs[job]["there"] = begin, row


@noinline
def others_start(t: Any, r: Any, row: int) -> int:
    """The latest of the starts that are known of the other components of a job."""
    which = t.jobs[row]["hetjob"]
    latest = t.hetjobs[which]["floor"]
    for i in range(r.parts_counts[SEEN]):
        part = r.parts[i]
        if t.jobs[part]["hetjob"] == which and part != t.jobs[row]["of"]:
            latest = max(latest, t.jobs[part]["latest"])
    return int(latest)


@noinline
def would_wait_for_each_other(t: Any, r: Any, row: int, begin: int) -> bool:
    """Whether a job that is planned behind this one here is planned before it in another partition."""
    own, which = t.jobs[row]["partition"], t.jobs[row]["hetjob"]
    starts = r.parts_starts
    starts[own, which] = max(starts[own, which], begin)
    for p in range(starts.shape[0]):
        if p != own and starts[p, which] > 0:
            for other in range(starts.shape[1]):
                if starts[own, other] > starts[own, which] and 0 < starts[p, other] < starts[own, which]:
                    return True
    return False


@noinline
def within_limits(t: Any, r: Any, which: int) -> bool:
    """Whether all components of a job are within their limits together."""
    counted, within = 0, True
    for i in range(r.parts_counts[SEEN]):
        row = t.jobs[r.parts[i]]["there"]
        if within and t.jobs[row]["hetjob"] == which:
            if over_limit(t, row):
                within = False
            else:
                t.jobs[row]["promised"] = t.jobs[row]["promise"]
                count_for_limits(t, row, 1, False)
                counted += 1
    for i in range(r.parts_counts[SEEN]):
        row = t.jobs[r.parts[i]]["there"]
        if counted and t.jobs[row]["hetjob"] == which:
            count_for_limits(t, row, -1, False)
            counted -= 1
    return within


@noinline
def fits_now(t: Any, r: Any, row: int, now: int) -> bool:
    """Whether a component fits on nodes that the others left, whoever has planned them; chooses them."""
    own, limit = t.jobs[row]["partition"], t.jobs[row]["limit"]
    if not has_licences(t, row):
        return False
    stay_alone(t, row)
    try_alone(t, row)
    if t.counts[1] > 0 and past_reservations(t, own, limit, now) > now:
        return False
    job = t.jobs[row]
    unmark(t, r, row, t.tried[job["kind"]])
    first, choices = choices_of_kind(t, job["kind"])
    for kind in range(first, first + choices):
        for node in range(len(r.usable)):
            r.usable[node] = t.tried[kind, node] & (1 - r.lost[node])
        if t.counts[1] > 0:
            keep_off(t, r, own, limit, now)
        if has_parts(t, kind):
            return choose_all_parts(t, r, row)
        mark_free(t, r, t.free, t.idle, t.alone, r.usable, job)
        if fitting_nodes(t.free, t.idle, t.alone, r.usable, r.fitting, job) >= job["nodes"]:
            choose_lightest(t.free, r, job)
            return True
    return False


@noinline
def start_of(t: Any, r: Any, which: int) -> int:
    """The earliest start of a job that is known now; FOREVER if a component is not known."""
    count, latest = 0, t.hetjobs[which]["floor"]
    for i in range(r.parts_counts[SEEN]):
        part = t.jobs[r.parts[i]]
        if part["hetjob"] == which and part["start"] < 0:
            count += 1
            latest = max(latest, part["latest"])
    return int(latest) if count == t.hetjobs[which]["size"] else FOREVER


@noinline
def start_parts(t: Any, r: Any, p: Any, which: int, now: int, started: Any, count: int) -> int:
    """Start the components of a job one after the other; none of them if one does not fit."""
    before = count
    for node in range(len(r.lost)):
        r.lost[node] = 1 if t.up[node] == 0 or r.completing[node] > 0 else 0
    for i in range(r.parts_counts[SEEN]):
        row = t.jobs[r.parts[i]]["there"]
        if t.jobs[row]["hetjob"] != which:
            continue
        if not fits_now(t, r, row, now):
            for k in range(before, count):
                # they wait for the time that a job is held which is requeued
                failed = r.parts_counts[FAILED]
                r.failed[failed] = started[k]
                r.parts_counts[FAILED] += 1
                take_off(t, started[k])
                t.jobs[started[k]]["start"] = -1
                r.changes[0] += 1
            return before
        job = who_gives_way.change_places(t, p, row)
        t.jobs[job]["there"] = job
        start(t, r, job, now)
        for k in range(t.jobs[job]["nodes"]):
            r.lost[r.chosen[k]] = 1
        started[count] = job
        count += 1
    return count


@noinline
def start_hetjobs(t: Any, r: Any, p: Any, most_starts: int, now: int, started: Any, count: int) -> int:
    """Start the jobs of which all components can at the end of a pass; how many jobs started in all."""
    for i in range(r.parts_counts[JOBS]):
        which = r.hetjobs[i]
        if count >= most_starts:
            break
        begin = start_of(t, r, which)
        if begin <= now and not within_limits(t, r, which):
            begin = FOREVER
        t.hetjobs[which]["floor"] = min(begin, now + YEAR)
        if begin <= now:
            count = start_parts(t, r, p, which, now, started, count)
    return count
