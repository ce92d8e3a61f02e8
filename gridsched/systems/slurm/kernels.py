"""The cluster as Slurm sees it: what is free, which nodes a job gets, when it could start, and plans.

Rules: `_attempt_backfill` of sched/backfill, and the node selection of select/linear and select/cons_tres, as
of Slurm 22.05. Times are whole seconds of the controller's clock; a set of nodes is an array with 1 for its
nodes, or where many sets are compared one with a bit for each node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import inline, jit, noinline, shift
from gridsched.engine.records import FOREVER

JOB = np.dtype(
    [
        ("of", np.int64),  # the job that it is, or of which it is a further row, for another partition
        ("nodes", np.int64),
        ("cores", np.int64),  # of each node
        ("memory", np.int64),  # of each node
        ("gpus", np.int64),  # of each node
        # whether its nodes run nothing else: not if 0, EVERYWHERE, since its partition is EXCLUSIVE, or both
        ("whole", np.int64),
        ("details", np.int64),  # the first task of its array, or the job: what is noted there is so for all
        ("tried_alone", np.int64),  # whether it was tried in a partition that is EXCLUSIVE
        ("kind_alone", np.int64),  # its `kind` and `processors` if they were
        ("processors_alone", np.int64),
        ("wanted", np.int64),  # processors that it asks for, whatever its nodes give
        ("limit", np.int64),  # time limit [s]
        ("least", np.int64),  # the shortest one, with which backfilling starts it [s]
        ("partition", np.int64),
        ("user", np.int64),
        ("processors", np.int64),  # that count for limits
        ("priority", np.float64),
        ("begin", np.int64),  # when it became eligible [s]
        ("start", np.int64),  # [s]; -1 while it waits
        ("late", np.int64),  # seconds from the pass that starts it to the start that the controller notes
        ("expected", np.int64),  # when it has to end [s]
        ("first", np.int64),  # of its nodes in `placed`
        ("features", np.int64),  # row of the sets of nodes that constraints allow
        ("barred", np.int64),  # what keeps it from starting in its partition, 0 for nothing
        ("kind", np.int64),  # row of `suits`
        ("array", np.int64),  # its job array, -1 without one
        ("most_tasks", np.int64),  # of that array which may run at once, FOREVER for any number
        ("counter", np.int64),  # of the tasks of its array in its partition that a pass tested
        ("hetjob", np.int64),  # the heterogeneous job of which it is a component, -1 for none
        ("latest", np.int64),  # the earliest start that passes found for a component [s], -1 for none
        ("there", np.int64),  # row with which they did
        ("record", np.int64),  # place among the records of jobs, which follows their age
        ("next_task", np.int64),  # of its job array, whose record is made when this one starts; -1 for none
        ("plan", np.int64),  # start that was planned last [s]; its nodes are in `placed` then
        ("planned", np.int64),  # the last pass that planned it in one of its partitions
        ("sized", np.int64),  # whether a pass has found nodes for it, now or later
        ("asked", np.int64),  # time for which it counts for limits of minutes before it starts [s]
        ("promise", np.int64),  # time for which it counts once it has started [s]
        ("promised", np.int64),  # what is left of that [s]
    ]
)
"""A job in a partition: what it asks for, and where it stands. Times are seconds.

Like Slurm, passes see a job that may run in several partitions once for each of them. The first row of a job
is the job itself, and has the partition in which it runs; a row that starts changes places with it.
"""

EVERYWHERE, EXCLUSIVE = 1, 2
"""Why the nodes of a job run nothing else: bits."""

BY_TIME, BY_QUALITY, BY_ACCOUNT, BY_WALL, BY_LIMIT, BY_MEMORY = 1, 2, 3, 4, 5, 6
"""What keeps a job from starting in a partition: its time limit, which does not matter to backfilling if the
shortest one does not exceed MaxTime; or, with EnforcePartLimits=NO, AllowQos and DenyQos, or AllowAccounts
and DenyAccounts. Backfilling plans jobs of accounts that are not allowed, and fails to start them. Or that
it asks for more time or resources than one job may have; or more memory, which counts only while it cannot
start where memory is not given to jobs (job_get_tres_mem).

Source: _part_access_check, select_nodes, _attempt_backfill of Slurm 22.05.
"""

NODE = np.dtype([("cores", np.int64), ("memory", np.int64), ("gpus", np.int64), ("weight", np.int64)])
"""What a node has, and its Weight: nodes of low weight are taken first."""

HETJOB = np.dtype(
    [
        ("size", np.int64),  # components
        ("floor", np.int64),  # earliest start that passes know of [s]
        ("seen", np.int64),  # whether a pass has seen it
    ]
)
"""A heterogeneous job."""

AMOUNTS = ("jobs", "processors", "nodes", "memory", "gpus")
"""What the running jobs of a group may have together."""

NODES = AMOUNTS.index("nodes")

LIMIT = np.dtype(
    [
        *((name, np.int64) for name in AMOUNTS),
        ("minutes", np.int64),  # of one resource that the group may use; FOREVER where that is not limited
        ("resource", np.int64),  # which one: a place in `RESOURCES`
        ("way", np.int64),  # RUNNING, SPENT or SAFE: how it is limited
        ("spent", np.float64),  # what was used of it [s]
        ("promised", np.int64),  # what running jobs may still use of it [s]
        ("held", np.int64),  # row of `Tables.held` if its nodes are limited, else -1
    ]
)
"""What the running jobs of a group may have, and what they have used."""

RESOURCES = AMOUNTS[1:]
"""Resources of which minutes are limited."""

RUNNING, SPENT, SAFE = 0, 1, 2
"""Ways to limit minutes: those that running jobs may still use (GrpTRESRunMins), or those that were used
(GrpTRESMins), with SAFE such that each job that starts can run to its time limit."""

WINDOW = np.dtype([("begin", np.int64), ("end", np.int64)])
"""A reservation of nodes that no job may use [s]."""

NOTED = 3
"""Place in `Tables.counts`."""

CORES, MEMORY, GPUS = 0, 1, 2
"""Rows of what is free."""


class Tables(NamedTuple):
    """The cluster and its jobs; n rows of jobs, m nodes."""

    jobs: Any  # JOB[n]
    free: Any  # int64[3, m]: what each node has left
    idle: Any  # uint8[m]: 1 if nothing runs there
    alone: Any  # int64[m]: jobs there that have the node to themselves, of which all but one are suspended
    busy: Any  # int64[m]: jobs on each node
    reach: Any  # uint8[partitions, m]: nodes of each partition
    reach_bits: Any  # int64[partitions, words]: the same as bits
    suits: Any  # uint8[kinds, m]: nodes of its partition that could hold a part of a job if nothing else ran
    # uint8[kinds, m]: nodes on which Slurm tries such a job: those, and with select/cons_tres those that lack
    # the GPUs; and the same as bits
    tried: Any
    tried_bits: Any
    # int64[kinds, 2]: of kinds of jobs that have one of several features on all nodes the first of their
    # choices, kinds too, and how many there are; of those that want numbers of nodes their parts; of others
    # the kind itself
    choices: Any
    numbers: Any  # int64[kinds]: nodes of a kind that is such a part, else 0
    gpus: Any  # int64[m]: GPUs of each node
    amounts: Any  # int64[n, 5]: `AMOUNTS` of each job
    licences: Any  # int64[n, l]: how many of each kind of licence each job holds while it runs
    unused: Any  # int64[l]: how many of each are left
    limits: Any  # LIMIT[...]
    most: Any  # int64[..., 5]: `AMOUNTS` of each limit
    used: Any  # int64[..., 5]: what the running jobs have of them
    held: Any  # int64[..., m]: jobs of the groups with limited nodes on each node, which counts once
    order: Any  # int64[m]: `Room.rank` of each node without marks
    lines: Any  # int64[m]: line of slurm.conf of each node
    limited: Any  # int64[n, k]: limits of each job, -1 for none, `unchecked` where it only counts
    placed: Any  # int64[...]: nodes of each job that started, from its `first` on
    running: Any  # int64[n]: jobs that run, by expected end and record
    tasks: Any  # int64[arrays + 1]: running tasks of each job array
    hetjobs: Any  # HETJOB[...]
    up: Any  # uint8[m]: 1 for nodes that take jobs, neither down nor drained
    windows: Any  # WINDOW[...]: reservations
    reserved: Any  # uint8[windows, m]: nodes of each
    known: Any  # int64[windows]: those that have been announced and are not over
    # int64[4]: how many run, how many reservations are known, the place of the next record, and whether a
    # pass changed what the controller notes of jobs
    counts: Any


class Space(NamedTuple):
    """What backfilling plans: stretches of time, each with the nodes that no planned job has then."""

    begin: Any  # int64[most]
    end: Any  # int64[most]
    free: Any  # int64[most, words]: bits
    number: Any  # int64[most]: how many nodes these are
    opens: Any  # uint8[most]: 1 if other nodes are free after it
    up: Any  # int64[words]: bits of the nodes in service when the pass began
    order: Any  # int64[most]: stretches by time
    # int64[5]: how many there are, how many there were in this pass, the jobs that it tried and started, and
    # the place in the queue where it goes on
    count: Any


class Room(NamedTuple):
    """Arrays to work in."""

    usable: Any  # uint8[m]: nodes that a job could have by time
    fitting: Any  # uint8[m]: those of them that have what it asks for
    chosen: Any  # int64[m]: nodes that it gets
    best: Any  # int64[m]: those of the best of its choices, or of its parts, so far
    kept: Any  # int64[m]: nodes that were chosen before it is seen whether a job can start
    taken: Any  # uint8[m]: nodes that parts of a job have
    low: Any  # uint8[m]: nodes among which those of each part of a job are chosen
    lost: Any  # uint8[m]: nodes that are of no use any more in a pass
    free: Any  # int64[3, m]: what each node will have left
    alone: Any  # int64[m]: jobs that will have each node to themselves
    busy: Any  # int64[m]: jobs that will be on each node
    quiet: Any  # uint8[m]: 1 if nothing will run there
    off: Any  # uint8[n]: running jobs that a test leaves out
    completing: Any  # int64[m]: jobs that have ended and not left each node yet
    # int64[2, ...]: jobs of each partition and user that a pass tested, and plans of arrays, by kind of pass
    counted: Any
    planned: Any  # int64[2]: the job array that got a plan last in a pass, and how many in succession
    passes: Any  # int64[3]: numbers of the present pass, of the last one of backfilling, and of the last
    parts: Any  # int64[...]: components of which a start is noted, in the order in which passes saw them
    hetjobs: Any  # int64[...]: heterogeneous jobs in that order
    failed: Any  # int64[...]: components whose start was undone in a pass
    parts_starts: Any  # int64[partitions, ...]: last start of a component of each job that a pass planned
    parts_counts: Any  # int64[4]: see `components`
    begin: Any  # int64[m]: runs of neighbours: first node of each
    end: Any  # int64[m]: node after the last one of each
    worth: Any  # int64[m]: what each is worth, -1 once it is taken
    # int64[3, m]: groups of nodes that are tried one after the other for jobs that SHARE nodes or are ALONE,
    # and the ORDER of nodes, of which runs of neighbours have one: `MARK` times the Weight, and the mark
    rank: Any
    # int64[4]: how many groups there are, whether any node has another mark than `NO_MARK`, and whether nodes
    # are LINEAR: the plugin that gives whole nodes only has rules of its own
    ranks: Any
    up: Any  # int64[words]: bits of the nodes that take jobs
    allowed: Any  # int64[words]: bits of those of the partition of a job that no reservation keeps off
    bits: Any  # int64[words]: bits of `usable`
    wanted: Any  # int64[words]: bits of `chosen`
    idle: Any  # int64[n + 1, words]: bits of the nodes that are idle once so many running jobs have ended
    fits: Any  # int64[kinds, words]: bits of the nodes that have room for a part of a job of each kind
    touched: Any  # int64[n + 1, words]: bits of those, and of the nodes of so many running jobs
    moved: Any  # int64[2, arrays + 1]: the last pass that started a task of each array, and its partition
    touched_since: Any  # int64[1]: the change after which `touched` was worked out
    idle_since: Any  # int64[1]: the change after which `idle` was worked out
    fits_since: Any  # int64[kinds]: the same of `fits`
    changes: Any  # int64[1]: how often what runs has changed, or may have


class NoPreemption(NamedTuple):
    """Running jobs keep their nodes."""

    nothing: Any  # int64[0]


class Preemption(NamedTuple):
    """Which jobs give way to which others, and how."""

    group: Any  # int64[n]: partition or quality of service of each job
    may: Any  # uint8[groups, groups]: whether jobs of one group preempt those of another
    level: Any  # int64[n]: tier of the partition of each job, or priority of its quality of service
    mode: Any  # int64[n]: how each is preempted: a place in `MODES`
    way: Any  # int64[n]: KEPT, KILLED or SUSPENDED: what becomes of a job that gives way
    exempt: Any  # int64[n]: seconds that a job runs at least before it is killed
    settings: Any  # int64[4]: YOUNGEST, STRICT, REORDERED, PATIENCE
    suspended: Any  # uint8[n]: jobs that are suspended
    again: Any  # int64[n]: until when a job kills no others, since it did just now
    killed: Any  # int64[n]: the last pass in which it did
    candidates: Any  # int64[n]: jobs that could give way
    overlap: Any  # int64[n]: by what they are ordered anew
    chosen: Any  # int64[m]: nodes that a plan has
    victims: Any  # int64[n]: jobs that gave way in a pass
    by: Any  # int64[n]: for whom
    counts: Any  # int64[3]: how many candidates and victims there are, and whether a start takes victims


KEPT, KILLED, SUSPENDED = 0, 1, 2
"""What becomes of a job that gives way."""

YOUNGEST, STRICT, REORDERED, PATIENCE = 0, 1, 2, 3
"""Settings of preemption: order of candidates, and seconds of patience."""


# --- sets of nodes as bits ------------------------------------------------------------------------

BITS = 62
"""Nodes of a word: bits are counted without a sign, and without overflow."""

_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_EIGHTS, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@inline
def pack(nodes: Any, bits: Any) -> None:
    """Bits of a set of nodes."""
    for word in range(len(bits)):
        packed = 0
        for node in range(word * BITS, min((word + 1) * BITS, len(nodes))):
            packed |= (1 if nodes[node] else 0) << (node - word * BITS)
        bits[word] = packed


def bits_of(sets: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Bits of sets of nodes, one a row."""
    words = -(-sets.shape[1] // BITS)
    padded = np.zeros((len(sets), words * BITS), np.int64)
    padded[:, : sets.shape[1]] = sets
    bits: NDArray[np.int64] = (padded.reshape(len(sets), words, BITS) << np.arange(BITS)).sum(axis=2)
    return bits


@inline
def unpack(bits: Any, nodes: Any) -> None:
    """A set of nodes of its bits."""
    for word in range(len(bits)):
        packed = bits[word]
        for node in range(word * BITS, min((word + 1) * BITS, len(nodes))):
            nodes[node] = (packed >> (node - word * BITS)) & 1


@inline
def ones(bits: int) -> int:
    """How many bits of a word are set, written such that LLVM uses the instruction for it."""
    x = np.uint64(bits)
    x -= (x >> np.uint64(1)) & _PAIRS
    x = (x & _FOURS) + ((x >> np.uint64(2)) & _FOURS)
    x = (x + (x >> np.uint64(4))) & _EIGHTS
    return int((x * _BYTES) >> np.uint64(56))


@inline
def leave_bits(bits: Any, nodes: Any) -> None:
    """Take nodes out of a set of bits."""
    for node in range(len(nodes)):
        if nodes[node]:
            bits[node // BITS] &= ~(1 << (node % BITS))


@inline
def number_of_both(one: Any, other: Any) -> int:
    """How many nodes two sets have in common."""
    count = 0
    for word in range(len(one)):
        count += ones(one[word] & other[word])
    return count


# --- counters of a pass ---------------------------------------------------------------------------

_PASS = 2**32
REJECTED = 2**31
"""What is counted of a job array of which a pass tests no further tasks."""


@inline
def number_pass(r: Any, kind: int) -> None:
    """Give a new pass a number, even for the main loop (0) and odd for backfilling (1)."""
    r.passes[2] += 2
    r.passes[0] = r.passes[2] + kind
    r.passes[1] = r.passes[0] if kind else r.passes[1]


@inline
def tested(r: Any, k: int) -> int:
    """What this pass has counted; what an earlier one did is less than the number of this one."""
    return int(max(r.counted[r.passes[0] % 2, k] - r.passes[0] * _PASS, 0))


@inline
def count_test(r: Any, k: int, more: int) -> None:
    """Count something in this pass."""
    r.counted[r.passes[0] % 2, k] = r.passes[0] * _PASS + tested(r, k) + more


# --- the queue ------------------------------------------------------------------------------------


@inline
def is_before(t: Any, tier: Any, place: Any, one: int, other: int) -> bool:
    """Whether a row comes before another one in the queue: by tier, priority and number."""
    a, b = t.jobs[one], t.jobs[other]
    if tier[a["partition"]] != tier[b["partition"]]:
        return bool(tier[a["partition"]] > tier[b["partition"]])
    if a["priority"] != b["priority"]:
        return bool(a["priority"] > b["priority"])
    return bool(place[one] < place[other])


@jit
def insert(t: Tables, queue: Any, tier: Any, place: Any, ordered: int, waiting: int) -> None:
    """Put rows that stand behind the first ones of a queue, which are in order, at their places."""
    for k in range(ordered, waiting):
        row = queue[k]
        low, high = 0, k
        while low < high:
            middle = (low + high) // 2
            if is_before(t, tier, place, row, queue[middle]):
                high = middle
            else:
                low = middle + 1
        shift(queue, low + 1, low, k - low)
        queue[low] = row


@jit
def leave(queue: Any, waiting: int, of: Any, start: Any, gone: int) -> int:
    """Take out of the queue the rows of jobs that have started, so many of them; how many are left."""
    kept = k = 0
    while k < waiting and k - kept < gone:
        if start[of[queue[k]]] < 0:
            queue[kept] = queue[k]
            kept += 1
        k += 1
    shift(queue, kept, k, waiting - k)
    return int(waiting - k + kept)


# --- limits, starts and ends ----------------------------------------------------------------------


@inline
def unchecked(row: int) -> int:
    """The place of a limit for which a job counts without being held to it, and back."""
    return -2 - row


@inline
def over_minutes(group: Any, asked: int, amount: int) -> bool:
    """Whether a group has used too many minutes, or its running jobs may, for a job to start now.

    Like Slurm, whole minutes are compared.
    """
    wanted = asked // 60 * amount
    if wanted == 0:
        return False
    promised = group["promised"] // 60
    if group["way"] == RUNNING:
        return bool(promised + wanted > group["minutes"])
    left = group["minutes"] - int(group["spent"] / 60.0)
    return bool(left <= 0 or (group["way"] == SAFE and promised + wanted > left))


@inline
def over_count(t: Any, j: int) -> bool:
    """Whether a group of the job has too many jobs running, or it asks for too much time.

    Slurm looks at these limits before it looks for nodes, and at those of resources and minutes afterwards
    (acct_policy_job_runnable_pre_select, acct_policy_job_runnable_post_select).
    """
    over = t.jobs[j]["barred"] == BY_WALL
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        over |= which >= 0 and t.used[which, 0] + t.amounts[j, 0] > t.most[which, 0]
    return bool(over)


@inline
def over_amounts(t: Any, j: int) -> bool:
    """Whether a group of the job has too much of a resource, or too few minutes, or it asks for too much."""
    return over_amounts_on(t, j, t.running, False)


@noinline
def over_amounts_on(t: Any, j: int, nodes: Any, known: bool) -> bool:
    """The same where its nodes may be known: those that its group has already do not count once more.

    Source: `_get_unique_job_node_cnt` and `acct_policy_get_max_nodes` of slurmctld (acct_policy.c).
    """
    if BY_WALL <= t.jobs[j]["barred"] <= BY_LIMIT:
        return True
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        if which < 0:
            continue
        group = t.limits[which]
        for what in range(1, t.amounts.shape[1]):
            more = t.amounts[j, what]
            if what == NODES and known and group["held"] >= 0 and more <= t.most[which, what]:
                for i in range(t.jobs[j]["nodes"]):
                    more -= t.held[group["held"], nodes[i]] > 0
            if t.used[which, what] + more > t.most[which, what]:
                return True
        amount = t.amounts[j, 1 + group["resource"]]
        if group["minutes"] < FOREVER and over_minutes(group, t.jobs[j]["asked"], amount):
            return True
    return False


@inline
def over_limit(t: Any, j: int) -> bool:
    """Whether a limit keeps a job from starting now."""
    return over_count(t, j) or over_amounts(t, j)


@inline
def over_limit_on(t: Any, j: int, nodes: Any, known: bool) -> bool:
    """The same where its nodes may be known."""
    return over_count(t, j) or over_amounts_on(t, j, nodes, known)


@inline
def has_licences(t: Any, j: int) -> bool:
    """Whether there are licences for a job to start now."""
    enough = True
    for k in range(len(t.unused)):
        enough &= t.licences[j, k] <= t.unused[k]
    return bool(enough)


@inline
def count_for_limits(t: Any, j: int, sign: int, has_nodes: bool) -> None:
    """Add a job, which may have no nodes yet, to what its groups and licences have, or take it off."""
    for k in range(len(t.unused)):
        t.unused[k] -= sign * t.licences[j, k]
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        if which == -1:
            continue
        which = which if which >= 0 else unchecked(which)
        group = t.limits[which]
        for what in range(t.amounts.shape[1]):
            if what != NODES or group["held"] < 0 or not has_nodes:
                t.used[which, what] += sign * t.amounts[j, what]
        if has_nodes and group["held"] >= 0:
            for i in range(t.jobs[j]["nodes"]):
                node = t.placed[t.jobs[j]["first"] + i]
                t.held[group["held"], node] += sign
                t.used[which, NODES] += sign * (t.held[group["held"], node] == (1 if sign > 0 else 0))
        if group["minutes"] < FOREVER:
            group["promised"] += sign * t.jobs[j]["promised"] * t.amounts[j, 1 + group["resource"]]


@inline
def give(free: Any, job: Any, node: int, sign: int) -> None:
    """Give back what a job has of a node, or take it."""
    free[CORES, node] += sign * job["cores"]
    free[MEMORY, node] += sign * job["memory"]
    free[GPUS, node] += sign * job["gpus"]


@inline
def take(t: Any, j: int, node: int, sign: int) -> None:
    """Take what a job asks for from a node, or give it back."""
    job = t.jobs[j]
    t.busy[node] += sign
    t.idle[node] = 1 if t.busy[node] == 0 else 0
    t.alone[node] += sign * (job["whole"] != 0)
    give(t.free, job, node, -sign)


@inline
def is_elsewhere(t: Any, r: Any, p: Any, j: int) -> bool:
    """Whether a job has started in another of its partitions."""
    return bool(t.jobs[t.jobs[j]["of"]]["start"] >= 0)


@inline
def change_places(t: Any, p: Any, row: int) -> int:
    """Let a job have the partition of one of its rows, and the row that of the job; which job it is."""
    job = t.jobs[row]["of"]
    if job != row:
        one, other = t.jobs[job], t.jobs[row]
        one["partition"], other["partition"] = other["partition"], one["partition"]
        one["kind"], other["kind"] = other["kind"], one["kind"]
        one["processors"], other["processors"] = other["processors"], one["processors"]
        # where its nodes are whole it has all of their cores
        one["cores"], other["cores"] = other["cores"], one["cores"]
        one["memory"], other["memory"] = other["memory"], one["memory"]
        one["counter"], other["counter"] = other["counter"], one["counter"]
        one["priority"], other["priority"] = other["priority"], one["priority"]
        one["whole"], other["whole"] = other["whole"], one["whole"]
        one["kind_alone"], other["kind_alone"] = other["kind_alone"], one["kind_alone"]
        alone = one["processors_alone"]
        one["processors_alone"], other["processors_alone"] = other["processors_alone"], alone
        for k in range(t.limited.shape[1]):
            t.limited[job, k], t.limited[row, k] = t.limited[row, k], t.limited[job, k]
        for k in range(t.amounts.shape[1]):
            t.amounts[job, k], t.amounts[row, k] = t.amounts[row, k], t.amounts[job, k]
    return int(job)


@inline
def stay_alone(t: Any, j: int) -> None:
    """Let a job have whole nodes in all of its partitions from when it was tried in one that is EXCLUSIVE.

    Source: `_resolve_shared_status` of slurmctld (node_scheduler.c), which sets whole_node of the job and
    never takes it back; passes of backfilling call it for jobs that they start only.
    """
    job = t.jobs[j]
    if not job["whole"] & EVERYWHERE and t.jobs[job["details"]]["tried_alone"]:
        job["whole"], job["kind"] = job["whole"] | EVERYWHERE, job["kind_alone"]
        t.amounts[j, 1] = job["processors"] = job["processors_alone"]


@inline
def try_alone(t: Any, j: int) -> None:
    """Note that a job was tried in its partition, if that is EXCLUSIVE and has nodes for it."""
    nodes = t.tried_bits[t.jobs[j]["kind"]]
    if t.jobs[j]["whole"] == EXCLUSIVE and number_of_both(nodes, nodes) > 0:
        t.jobs[t.jobs[j]["details"]]["tried_alone"] = 1
        stay_alone(t, j)


@noinline
def start(t: Any, r: Any, j: int, now: int) -> None:
    """Start a job on the chosen nodes."""
    r.changes[0] += 1
    job = t.jobs[j]
    t.jobs[j]["promised"] = job["promise"]
    t.tasks[job["array"]] += 1
    t.jobs[j]["start"] = now + job["late"]
    expected = now + job["late"] + job["limit"]
    t.jobs[j]["expected"] = expected
    for k in range(job["nodes"]):
        node = r.chosen[k]
        t.placed[job["first"] + k] = node
        take(t, j, node, 1)
    count_for_limits(t, j, 1, True)
    place = t.counts[0]
    while place > 0:
        other = t.running[place - 1]
        ends = t.jobs[other]["expected"]
        if ends < expected or (ends == expected and t.jobs[other]["record"] < job["record"]):
            break
        t.running[place] = other
        place -= 1
    t.running[place] = j
    t.counts[0] += 1
    following = job["next_task"]
    if following >= 0 and t.jobs[following]["start"] < 0:
        t.jobs[following]["record"] = t.counts[2]
        t.counts[2] += 1
        t.jobs[following]["sized"] = 1
        t.jobs[j]["next_task"] = -1


@noinline
def take_off(t: Any, j: int) -> None:
    """Take a job off its nodes."""
    job = t.jobs[j]
    count_for_limits(t, j, -1, True)
    t.tasks[job["array"]] -= 1
    for k in range(job["nodes"]):
        take(t, j, t.placed[job["first"] + k], -1)
    place = 0
    while t.running[place] != j:
        place += 1
    for k in range(place, t.counts[0] - 1):
        t.running[k] = t.running[k + 1]
    t.counts[0] -= 1


@jit
def finish(t: Tables, j: int) -> None:
    """End a job: its nodes are free."""
    take_off(t, j)


# --- marks ----------------------------------------------------------------------------------------

SHARE, ALONE, ORDER, LINEAR = 0, 1, 2, 3
"""Rows of `Room.rank`, and places in `Room.ranks`."""

MARK = 256
NO_MARK = MARK - 1
"""The least mark, and the one that nodes have at first.

Source: `can_job_run_on_node` of select/cons_tres (job_test.c: near GPUs make a node lighter), and how
slurmctld sets `sched_weight` before it tries a job (node_scheduler.c), Slurm 22.05.
"""


@inline
def unmark(t: Any, r: Any, j: int, nodes: Any) -> None:
    """Take the marks off some nodes, before a job is tried on them.

    If nodes of its groups are limited, those that they do not have are heavier by one where they have others
    of the same line of slurm.conf (`_find_grp_node_bitmap`, `_build_node_list` of node_scheduler.c).
    """
    if r.ranks[ORDER]:
        for node in range(len(nodes)):
            if nodes[node]:
                r.rank[ORDER, node] = t.order[node]
        if t.held.shape[0] and not r.ranks[LINEAR]:
            prefer_own(t, r, j, nodes)


@noinline
def prefer_own(t: Any, r: Any, j: int, nodes: Any) -> None:
    """Make nodes heavier that the groups of a job do not have, see `unmark`."""
    own, of_line = r.begin, r.end
    own[:], of_line[:] = 0, 0
    for k in range(t.limited.shape[1]):
        which = t.limited[j, k]
        if which >= 0 and t.limits[which]["held"] >= 0:
            for node in range(len(nodes)):
                own[node] |= t.held[t.limits[which]["held"], node] > 0
    for node in range(len(nodes)):
        of_line[t.lines[node]] |= nodes[node] & own[node]
    for node in range(len(nodes)):
        if nodes[node] and of_line[t.lines[node]] and not own[node]:
            r.rank[ORDER, node] += MARK


@inline
def lighten(t: Any, r: Any, node: int, job: Any) -> None:
    """Mark a node on which a job with GPUs was tried, for all jobs from then on."""
    r.ranks[ORDER] = 1
    gpus = t.gpus[node] if job["whole"] & EVERYWHERE else job["gpus"]
    r.rank[ORDER, node] = (r.rank[ORDER, node] | NO_MARK) - gpus


@inline
def mark(t: Any, r: Any, nodes: Any, job: Any) -> None:
    """Mark nodes on which a job with GPUs was tried as if nothing else ran."""
    if job["gpus"] and not r.ranks[LINEAR]:
        for node in range(len(nodes)):
            if nodes[node] and t.gpus[node] >= job["gpus"]:
                lighten(t, r, node, job)


@inline
def mark_free(t: Any, r: Any, free: Any, idle: Any, alone: Any, nodes: Any, job: Any) -> None:
    """Mark those nodes that have the memory and the GPUs for a job, whatever cores they have.

    A job that has whole nodes everywhere is tried where no GPU is in use, one of an EXCLUSIVE partition where
    nothing runs (`_verify_node_state`).
    """
    if job["gpus"] and not r.ranks[LINEAR]:
        for node in range(len(nodes)):
            least = t.gpus[node] if job["whole"] & EVERYWHERE else job["gpus"]
            enough = free[MEMORY, node] >= job["memory"] and free[GPUS, node] >= max(least, job["gpus"])
            enough &= alone[node] == 0 and (not job["whole"] & EXCLUSIVE or idle[node] != 0)
            if nodes[node] and enough:
                lighten(t, r, node, job)


# --- which nodes ----------------------------------------------------------------------------------


@noinline
def fitting_nodes(free: Any, idle: Any, alone: Any, usable: Any, fitting: Any, job: Any) -> int:
    """Mark the usable nodes that have what a job asks for, beside what others have; how many there are."""
    whole, cores, memory, gpus = job["whole"] != 0, job["cores"], job["memory"], job["gpus"]
    count = 0
    for node in range(len(usable)):
        quiet = idle[node] != 0 if whole else alone[node] == 0
        # without branches, so that several nodes are looked at together
        yes = (
            (usable[node] != 0)
            & quiet
            & (free[CORES, node] >= cores)
            & (free[MEMORY, node] >= memory)
            & (free[GPUS, node] >= gpus)
        )
        fitting[node] = 1 if yes else 0
        count += 1 if yes else 0
    return count


@inline
def runs_of(free: Any, r: Any, job: Any) -> int:
    """Runs of neighbours among the fitting nodes, and what each is worth for a job; how many there are."""
    whole, gpus, cores = r.ranks[LINEAR], job["gpus"], job["cores"]
    last = -1
    for node in range(len(r.fitting)):
        if r.fitting[node] == 0:
            continue
        if last < 0 or r.end[last] < node or r.rank[ORDER, node] != r.rank[ORDER, node - 1]:
            last += 1
            r.begin[last], r.worth[last] = node, 0
        r.end[last] = node + 1
        r.worth[last] += 1 if whole else cores if gpus > 0 else free[CORES, node]
    return last + 1


@noinline
def runs_of_bits(r: Any) -> int:
    """Runs of neighbours among the wanted nodes, for select/linear; how many there are."""
    last, end = -1, -1  # the node after the last one of the last run
    for word in range(len(r.wanted)):
        bits, first = r.wanted[word], word * BITS
        while bits:
            lowest = bits & -bits
            carried = bits + lowest  # the lowest run is gone, and the bit above it is set
            begin = first + ones(lowest - 1)
            if end != begin:
                last += 1
                r.begin[last] = begin
            end = first + ones((carried & -carried) - 1)
            r.end[last] = end
            bits &= carried
    for run in range(last + 1):
        r.worth[run] = r.end[run] - r.begin[run]
    return last + 1


@noinline
def choose(free: Any, r: Any, job: Any) -> None:
    """Choose among the fitting nodes, of which there are enough: best-fit runs of neighbours.

    With select/linear a run is worth its nodes. With select/cons_tres a run has one weight, and is worth the
    free cores of its nodes, or for a job with GPUs the cores that it would take. Of the runs of least weight
    it is the one of least worth that suffices, else the one of most; the first on ties. A run gives its first
    nodes; the last node of a job without GPUs is the one of least worth with select/cons_tres. What a run
    does not give comes from the others in the same way.
    """
    choose_of_runs(free, r, job, runs_of(free, r, job))


@noinline
def choose_of_runs(free: Any, r: Any, job: Any, runs: int) -> None:
    """Choose nodes of so many runs, see `choose`."""
    wanted, alone_or_few = job["nodes"], r.ranks[LINEAR] or job["gpus"] > 0
    found = 0
    while found < wanted:
        need = wanted - found
        best, best_enough = -1, False
        for run in range(runs):
            worth = r.worth[run]
            if worth < 0:
                continue
            enough = r.end[run] - r.begin[run] >= need
            order, least = r.rank[ORDER, r.begin[run]], r.rank[ORDER, r.begin[max(best, 0)]]
            if best >= 0 and order != least:
                better = order < least
            elif enough:
                better = not best_enough or worth < r.worth[best]
            else:
                # one of select/cons_tres that is worth more than one that suffices takes its place
                lesser = best < 0 or worth > r.worth[best]
                better = lesser and (not best_enough or not r.ranks[LINEAR])
            if better:
                best, best_enough = run, enough
        first, end = r.begin[best], r.end[best]
        if need == 1 and not alone_or_few:
            for node in range(r.begin[best], r.end[best]):
                if free[CORES, node] < free[CORES, first]:
                    first = node
            end = first + 1
        for node in range(first, end):
            if found < wanted:
                r.chosen[found] = node
                found += 1
        r.worth[best] = -1


@noinline
def choose_lightest(free: Any, r: Any, job: Any) -> None:
    """Choose for a job that starts now: among the fitting nodes of the first groups that are enough.

    Source: `_pick_best_nodes` of slurmctld (node_scheduler.c): groups are the lines of slurm.conf by Weight;
    for jobs that share nodes those of one Weight are one. What backfilling plans for later is not chosen so:
    select/cons_tres looks at weights itself, select/linear does not.
    """
    keep_lightest(r, job)
    choose(free, r, job)


@inline
def keep_lightest(r: Any, job: Any) -> None:
    """Keep of the fitting nodes those of the first groups that are enough, see `choose_lightest`."""
    own = ALONE if job["whole"] else SHARE
    if r.ranks[own] > 1 and r.ranks[LINEAR]:
        fitting = r.worth
        fitting[: r.ranks[own]] = 0
        for node in range(len(r.fitting)):
            fitting[r.rank[own, node]] += r.fitting[node]
        enough, last = fitting[0], 0
        while enough < job["nodes"]:
            last += 1
            enough += fitting[last]
        for node in range(len(r.fitting)):
            r.fitting[node] &= 1 if r.rank[own, node] <= last else 0


@inline
def look_at_run(free: Any, r: Any, job: Any, run: int) -> tuple[int, int, int, int]:
    """How many nodes of a run fit, what they are worth, the first of them, and the first taken one, or -1."""
    count, worth, fit, taken = 0, 0, -1, -1
    for node in range(r.begin[run], r.end[run]):
        if r.fitting[node]:
            fit = node if fit < 0 else fit
            count += 1
            worth += 1 if r.ranks[LINEAR] else job["cores"] if job["gpus"] > 0 else free[CORES, node]
        elif taken < 0:
            taken = node
    return count, worth, fit, taken


@noinline
def choose_beside_taken(free: Any, r: Any, job: Any) -> None:
    """Choose among the fitting nodes for a job that has the taken ones: as `choose`, but first next to them.

    A run that has a taken node comes before one that has none, unless a later one is the better of both. It
    gives nodes from that one upwards, then downwards. Source: `_eval_nodes` of select/cons_tres and
    `_job_test` of select/linear, where they look at `req_node_bitmap`.
    """
    keep_lightest(r, job)
    # the order of a run is that of its first node that fits; where one of another order ended the run before,
    # taken nodes ahead of that one do not belong to it
    runs, order_of_run = 0, -1
    for node in range(len(r.fitting)):
        if r.fitting[node] | r.taken[node]:
            order = r.rank[ORDER, node]
            is_next = runs > 0 and r.end[runs - 1] == node
            if is_next and order_of_run == -2:
                r.begin[runs - 1] = node
            elif not is_next or order_of_run not in (-1, order):
                r.begin[runs], order_of_run = node, -2 if is_next else -1
                runs += 1
            r.end[runs - 1] = node + 1
            if r.fitting[node]:
                order_of_run = order
    found, wanted = 0, job["nodes"]
    while found < wanted:
        best, best_worth, best_taken, best_order, best_enough = -1, 0, -1, 0, False
        for run in range(runs):
            count, worth, fit, taken = look_at_run(free, r, job, run)
            if count == 0:
                continue
            enough, order = count >= wanted - found, 0 if r.ranks[LINEAR] else r.rank[ORDER, fit]
            better = best < 0 or (best_taken < 0 and taken >= 0) or order < best_order
            if not better and order == best_order:
                lesser = worth < best_worth or not best_enough
                better = lesser if enough else worth > best_worth
            if better:
                best, best_worth, best_taken, best_order, best_enough = run, worth, taken, order, enough
        first = max(best_taken, r.begin[best])
        for step in range(r.end[best] - r.begin[best]):
            node = first + step
            if node >= r.end[best]:
                node = r.end[best] - 1 - step
            if found < wanted and r.fitting[node]:
                r.fitting[node] = 0
                r.chosen[found] = node
                found += 1


@inline
def has_parts(t: Any, kind: int) -> bool:
    """Whether jobs of a kind want numbers of nodes with features."""
    return bool(t.numbers[t.choices[kind, 0]] > 0)


@inline
def choices_of_kind(t: Any, kind: int) -> tuple[int, int]:
    """First of the choices of a kind of job, and how many there are; one with parts has no choice."""
    first, count = t.choices[kind]
    return (kind, 1) if has_parts(t, kind) else (first, count)


@inline
def be_part(t: Any, j: int, kind: int, part: int, nodes: int) -> int:
    """Let a job ask for a part of its nodes, of which the last is the rest; how many nodes these are."""
    first, parts = t.choices[kind]
    t.jobs[j]["kind"] = first + part if part < parts else kind
    rest = nodes if nodes >= 0 else FOREVER  # parts of more nodes than the job has
    t.jobs[j]["nodes"] = t.numbers[first + part] if part < parts else rest
    return int(t.jobs[j]["nodes"])


@noinline
def choose_parts(t: Any, r: Any, j: int, nodes: Any) -> int:
    """Choose among some nodes for each part of a job in turn; -1, or the first part that gets too few.

    The job asks for the nodes of that part then. Source: `_get_req_features` of slurmctld (node_scheduler.c),
    which does not try other nodes for the parts before it.
    """
    kind, wanted = t.jobs[j]["kind"], t.jobs[j]["nodes"]
    first, parts = t.choices[kind]
    r.taken[:] = 0
    found = 0
    for part in range(parts + 1):
        count = be_part(t, j, kind, part, wanted - found)
        job, enough = t.jobs[j], count == 0
        # nodes that have the first feature, too, come first, then those with the second one
        for other in range(parts if part < parts else 1):
            if enough:
                break
            along = first + other if part < parts else kind
            for node in range(len(nodes)):
                here = nodes[node] & t.tried[job["kind"], node] & t.tried[along, node]
                r.usable[node] = here & (1 - r.taken[node])
            mark_free(t, r, t.free, t.idle, t.alone, r.usable, job)
            enough = fitting_nodes(t.free, t.idle, t.alone, r.usable, r.fitting, job) >= count
            if enough and part < parts:
                choose_lightest(t.free, r, job)
            elif enough:
                choose_beside_taken(t.free, r, job)
        if not enough:
            return part
        for k in range(count):
            r.best[found + k] = r.chosen[k]
            r.taken[r.chosen[k]] = 1
        found += count
    t.jobs[j]["kind"], t.jobs[j]["nodes"] = kind, wanted
    for k in range(found):
        r.chosen[k] = r.best[k]
    return -1


@inline
def choose_all_parts(t: Any, r: Any, j: int) -> bool:
    """Choose among the usable nodes for each part of a job; whether there are enough."""
    kind, wanted = t.jobs[j]["kind"], t.jobs[j]["nodes"]
    for node in range(len(r.low)):
        r.low[node] = r.usable[node]
    short = choose_parts(t, r, j, r.low)
    t.jobs[j]["kind"], t.jobs[j]["nodes"] = kind, wanted
    return bool(short < 0)


@inline
def choose_anew(t: Any, r: Any, j: int) -> bool:
    """Choose again among the fitting nodes for a job that starts: without the marks of those before it.

    Whether there are enough, which is not sure if each part of a job was planned on its own.
    """
    if has_parts(t, t.jobs[j]["kind"]):
        unpack(r.bits, r.usable)
        unmark(t, r, j, r.usable)
        for k in range(len(r.chosen)):
            r.kept[k] = r.chosen[k]
        found = choose_all_parts(t, r, j)
        if not found:
            for k in range(len(r.chosen)):
                r.chosen[k] = r.kept[k]  # they stay planned for it
        return found
    if r.ranks[ORDER] or (r.ranks[LINEAR] and r.ranks[ALONE] > 1):
        unpack(r.bits, r.usable)
        unmark(t, r, j, r.usable)
        mark_free(t, r, t.free, t.idle, t.alone, r.usable, t.jobs[j])
        choose_lightest(t.free, r, t.jobs[j])
    return True


# --- reservations ---------------------------------------------------------------------------------


@inline
def has_all_of(t: Any, w: int, p: int) -> bool:
    """Whether a reservation has all nodes of a partition."""
    beside = 0
    for node in range(len(t.up)):
        beside |= t.reach[p, node] & (1 - t.reserved[w, node])
    return beside == 0


@noinline
def past_reservations(t: Any, p: int, limit: int, moment: int) -> int:
    """First moment from one on from which no reservation with all nodes of a partition hinders a job."""
    moved = True
    while moved:
        moved = False
        for i in range(t.counts[1]):
            window = t.windows[t.known[i]]
            hinders = window["begin"] < moment + limit and window["end"] > moment
            if hinders and has_all_of(t, t.known[i], p):
                moment = window["end"]
                moved = True
    return int(moment)


@noinline
def keep_off(t: Any, r: Any, p: int, limit: int, moment: int) -> bool:
    """Take nodes off the usable ones that are reserved before a job would end; whether its partition has any.

    Only a job that would start at the moment is looked at. Plans for later can run into a reservation.
    """
    hindered = 0
    for i in range(t.counts[1]):
        w = t.known[i]
        if t.windows[w]["begin"] < moment + limit and t.windows[w]["end"] > moment:
            for node in range(len(t.up)):
                r.usable[node] &= 1 - t.reserved[w, node]
                hindered |= t.reserved[w, node] & t.reach[p, node]
    return hindered != 0


@inline
def after_reservations(t: Any, moment: int, resolution: int) -> int:
    """Second after the first end of a reservation from a moment on."""
    first = FOREVER
    for i in range(t.counts[1]):
        end = t.windows[t.known[i]]["end"]
        if end >= moment:
            first = min(first, end)
    return int(-(-first // resolution) * resolution + 1)


# --- plans of the backfill scheduler ------------------------------------------------------------------


class Backfill(NamedTuple):
    """Parameters of the backfill scheduler."""

    window: int  # [s] that are planned
    resolution: int  # [s]
    most_tests: int  # jobs that are tested; 0 for all of them, as in the other numbers
    max_per_user: int
    max_per_partition: int
    max_per_array: int  # tasks that get a plan
    most_starts: int
    least_priority: float  # of jobs that get a plan
    least_age: int  # [s] of jobs that get a plan
    one_plan: bool  # whether a job gets a plan in one of its partitions only
    throttles: bool  # whether plans of an array and its running tasks are together no more than may run
    ends_early: bool  # whether a pass ends, too, when the last job that it may test has started
    rounds_up: bool  # whether ends of plans are rounded up to the resolution
    goes_far: bool  # whether a job that nothing comes free for while it would run is tried after that
    keeps_limits: bool  # whether tasks of an array keep their limit when one starts with its shortest one
    kill_wait: int  # [s] that a job has after its time limit
    most_stretches: int  # after which a pass makes no more plans
    needs_idle: bool  # whether jobs start on idle nodes only, and nobody has to leave them


@inline
def has_other(following: Any, present: Any, allowed: Any) -> bool:
    """Whether an allowed node is free in the following stretch, and not in the present one."""
    found = 0
    for word in range(len(allowed)):
        found |= allowed[word] & following[word] & ~present[word]
    return found != 0


@inline
def is_beyond(wanted: Any, free: Any) -> bool:
    """Whether some wanted nodes are not free."""
    found = 0
    for word in range(len(wanted)):
        found |= wanted[word] & ~free[word]
    return found != 0


@inline
def first_after(s: Any, moment: int) -> int:
    """Place of the first stretch that ends after a moment; that of the last one if none does."""
    low, high = 0, s.count[0] - 1
    while low < high:
        middle = (low + high) // 2
        if s.end[s.order[middle]] > moment:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def last_too_full(s: Any, k: int, moment: int, until: int, wanted: int) -> int:
    """Place of the last stretch between two moments that has too few nodes, from one place on; else -1."""
    last = -1
    while k < s.count[0]:
        row = s.order[k]
        if s.begin[row] > until or s.end[row] <= moment:
            break
        if s.number[row] < wanted:
            last = k
        k += 1
    return last


@noinline
def next_try(t: Any, s: Any, r: Any, b: Any, j: int, now: int, moment: int, skips: bool) -> tuple[int, int]:
    """From which moment on a job is tried next, and when again if it cannot start then.

    The latter is the end of the first stretch after which there are other nodes, or of the first reservation
    where one is in the way, or 0; since 24.11 that of the second stretch after the job's end where there are
    none until then. The bits of the nodes that are allowed then are noted. If it skips, moments
    are left out where some stretch that the job would run into has fewer nodes than it needs.
    """
    limit, own, wanted = t.jobs[j]["least"], t.jobs[j]["partition"], t.jobs[j]["nodes"]
    reopened = 0
    allowed = r.allowed
    if t.counts[1] > 0:
        for node in range(len(r.usable)):
            r.usable[node] = t.reach[own, node] & t.up[node]
        if keep_off(t, r, own, limit, moment):
            reopened = after_reservations(t, moment, b.resolution)
        pack(r.usable, allowed)
        skips = False
    else:
        reach, up = t.reach_bits[own], r.up
        for word in range(len(allowed)):
            allowed[word] = reach[word] & up[word]
    everywhere = not is_beyond(s.up, allowed)
    first = first_after(s, moment)
    too_full = -1
    while True:
        if skips and too_full < first:
            too_full = last_too_full(s, first, moment, moment + limit, wanted)
        later = 0
        k = first
        while k < s.count[0] - 1:
            row = s.order[k]
            if s.opens[row] and (everywhere or has_other(s.free[s.order[k + 1]], s.free[row], allowed)):
                later = s.end[row]
                break
            if s.begin[row] > moment + limit:
                if b.goes_far and k < s.count[0] - 2:
                    k += 1
                    later = s.end[s.order[k]]
                break
            k += 1
        if later == 0 or too_full < first:
            break
        moment, first = later, k + 1
    if 0 < reopened < now + b.window and (later == 0 or reopened < later):
        later = reopened
    return moment, later


_OFTEN = 4
"""Stretches after which it is seen whether enough nodes are left, which takes as long as one or two."""


@noinline
def usable_at(t: Any, s: Any, r: Any, j: int, moment: int, horizon: int, idle_then: bool) -> int:
    """Bits of the nodes that no plan has from a moment on until the job would end; how many there are.

    With a horizon, after which the job is tried again, that may be only whether they are enough; nodes are
    left out that nothing makes idle until then if only idle ones matter.
    """
    # names for arrays, so that their addresses are not read again for each word
    bits, allowed, suits = r.bits, r.allowed, t.tried_bits[t.jobs[j]["kind"]]
    for word in range(len(bits)):
        bits[word] = allowed[word] & suits[word]
    if idle_then:
        note_idle(t, r)
        idle = r.idle[ended_by(t, horizon)]
        for word in range(len(bits)):
            bits[word] &= idle[word]
    until, wanted = moment + t.jobs[j]["least"], t.jobs[j]["nodes"]
    first = first_after(s, moment)
    for k in range(first, s.count[0]):
        row = s.order[k]
        if s.begin[row] > until or s.end[row] <= moment:
            break
        free = s.free[row]
        for word in range(len(bits)):
            bits[word] &= free[word]
        if horizon < FOREVER and (k - first) % _OFTEN == 0 and number_of_both(bits, bits) < wanted:
            break  # it will be tried later anyway
    return number_of_both(bits, bits)


@noinline
def note_nodes(t: Any, r: Any, nodes: Any, only_idle: bool) -> None:
    """Note the nodes that are idle once the first, the first two ... of the running jobs have ended.

    Or those, too, that others still have of the nodes of these jobs.
    """
    pack(t.idle, nodes[0])
    for node in range(len(t.busy)):
        r.free[CORES, node] = t.busy[node]
    for k in range(t.counts[0]):
        other = t.jobs[t.running[k]]
        for word in range(nodes.shape[1]):
            nodes[k + 1, word] = nodes[k, word]
        for i in range(other["nodes"]):
            # one that shares a node with others frees it only when it is the last
            node = t.placed[other["first"] + i]
            r.free[CORES, node] -= 1
            if r.free[CORES, node] == 0 or not only_idle:
                nodes[k + 1, node // BITS] |= 1 << (node % BITS)


@inline
def ended_by(t: Any, horizon: int) -> int:
    """How many of the running jobs have to end up to a time."""
    low, high = 0, t.counts[0]
    while low < high:
        middle = (low + high) // 2
        if t.jobs[t.running[middle]]["expected"] > horizon:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def note_idle(t: Any, r: Any) -> None:
    """Note the nodes that are idle once running jobs have ended, if what runs has changed."""
    if r.idle_since[0] != r.changes[0]:
        note_nodes(t, r, r.idle, True)
        r.idle_since[0] = r.changes[0]


@noinline
def earliest_whole(t: Any, r: Any, j: int, now: int, now_only: bool, horizon: int) -> int:
    """When a job of whole nodes could start on the usable ones: running jobs are taken off one at a time."""
    job = t.jobs[j]
    note_idle(t, r)
    ended = 0
    if number_of_both(r.bits, r.idle[0]) < job["nodes"]:
        # the fewest that have to end, of those that have to before the horizon
        most = ended_by(t, horizon)
        if now_only or number_of_both(r.bits, r.idle[most]) < job["nodes"]:
            return FOREVER
        while most - ended > 1:
            middle = (ended + most) // 2
            if number_of_both(r.bits, r.idle[middle]) < job["nodes"]:
                ended = middle
            else:
                most = middle
        ended = most
    wanted, bits, idle = r.wanted, r.bits, r.idle[ended]
    for word in range(len(wanted)):
        wanted[word] = bits[word] & idle[word]
    choose_of_runs(t.free, r, job, runs_of_bits(r))
    return now if ended == 0 else int(max(t.jobs[t.running[ended - 1]]["expected"], now + 1))


@inline
def next_on(t: Any, r: Any, k: int) -> int:
    """Place of the first running job from one on that a test does not leave out."""
    while k < t.counts[0] and r.off[t.running[k]] != 0:
        k += 1
    return int(k)


@inline
def suppose_now(t: Any, r: Any) -> None:
    """Let what will be free begin with what is."""
    for node in range(len(t.busy)):
        r.free[CORES, node] = t.free[CORES, node]
        r.free[MEMORY, node] = t.free[MEMORY, node]
        r.free[GPUS, node] = t.free[GPUS, node]
        r.alone[node] = t.alone[node]
        r.busy[node] = t.busy[node]
        r.quiet[node] = t.idle[node]


@inline
def suppose_gone(r: Any, job: Any, node: int) -> None:
    """Suppose that a job were not on a node."""
    r.alone[node] -= job["whole"] != 0
    r.busy[node] -= 1
    r.quiet[node] = 1 if r.busy[node] == 0 else 0


@inline
def overlaps(t: Any, nodes: Any, other: Any) -> bool:
    """Whether a running job has a node of a set."""
    found = False
    for i in range(other["nodes"]):
        found |= nodes[t.placed[other["first"] + i]] != 0
    return found


@noinline
def earliest_shared(t: Any, r: Any, b: Any, j: int, now: int, horizon: int) -> int:
    """When a job of select/cons_tres could start on the usable nodes.

    Running jobs are taken off by the time when they have to end, all of a stretch of time together; each
    stretch is at least twice as long as the one before.
    """
    k, bound, step = next_on(t, r, 0), 0, 30
    running = t.counts[0]
    while k < running:
        last, taken = -1, 0
        while k < running:
            which = t.running[k]
            other = t.jobs[which]
            k = next_on(t, r, k + 1)
            if not overlaps(t, r.usable, other):
                continue
            expected = other["expected"]
            if bound == 0:
                bound = expected + 30 - expected % 30
            if expected > horizon:
                return FOREVER
            last = which
            for i in range(other["nodes"]):
                node = t.placed[other["first"] + i]
                give(r.free, other, node, 1)
                suppose_gone(r, other, node)
            taken += 1
            if taken > 201 or (k < running and t.jobs[t.running[k]]["expected"] > bound + step):
                break
        if last < 0:
            return FOREVER
        if taken > 201:
            continue
        step *= 2
        while k < running and t.jobs[t.running[k]]["expected"] > bound + step:
            step *= 2
        mark_free(t, r, r.free, r.quiet, r.alone, r.usable, t.jobs[j])
        if fitting_nodes(r.free, r.quiet, r.alone, r.usable, r.fitting, t.jobs[j]) >= t.jobs[j]["nodes"]:
            choose(r.free, r, t.jobs[j])
            expected = t.jobs[last]["expected"]
            if expected > now:
                return int(expected)
            return int(max(expected + b.kill_wait, now + 1))
    return FOREVER


@noinline
def earliest(t: Any, r: Any, b: Any, p: Any, j: int, now: int, now_only: bool, horizon: int) -> int:
    """When a job could start on the usable nodes if no other came, and on which.

    FOREVER if it could not, or not before the horizon. Without one this is what select/linear and
    select/cons_tres answer; with one it saves work.
    """
    job = t.jobs[j]
    if r.ranks[LINEAR]:
        return int(earliest_whole(t, r, j, now, now_only, horizon))
    kind = job["kind"]
    if job["gpus"]:
        # all tests leave marks, those too whose answer is of no use
        now_only, horizon = False, FOREVER
        unpack(r.bits, r.usable)
        mark_free(t, r, t.free, t.idle, t.alone, r.usable, job)
    if r.fits_since[kind] != r.changes[0]:
        # which nodes have room for a part of such a job does not change until a job starts
        fitting_nodes(t.free, t.idle, t.alone, t.up, r.fitting, job)
        pack(r.fitting, r.fits[kind])
        r.fits_since[kind] = r.changes[0]
    if number_of_both(r.bits, r.fits[kind]) >= job["nodes"]:
        for word in range(len(r.bits)):
            r.wanted[word] = r.bits[word] & r.fits[kind, word]
        unpack(r.wanted, r.fitting)
        choose(t.free, r, job)
        return now
    if now_only:
        return FOREVER
    if r.touched_since[0] != r.changes[0]:
        note_nodes(t, r, r.touched, False)
        r.touched_since[0] = r.changes[0]
    if job["gpus"] == 0:
        ended = ended_by(t, horizon)
        count = 0
        for word in range(len(r.bits)):
            count += ones(r.bits[word] & (r.fits[kind, word] | r.touched[ended, word]))
        if count < job["nodes"]:
            return FOREVER
    unpack(r.bits, r.usable)
    suppose_now(t, r)
    return int(earliest_shared(t, r, b, j, now, horizon))


@inline
def has_room(t: Any, r: Any, p: Any, j: int, now: int) -> int:
    """Whether a job can start now on the chosen nodes, which nobody has to leave: 1, or -1 for a limit.

    0 if they are not enough.
    """
    if r.ranks[LINEAR] and r.ranks[ALONE] > 1:
        unpack(r.wanted, r.fitting)
    try_alone(t, j)
    if not choose_anew(t, r, j):
        return 0
    return -1 if over_limit_on(t, j, r.chosen, True) else 1


@inline
def makes_room(t: Any, r: Any, p: Any, j: int, now: int) -> bool:
    """Whether others give way to a job that does not fit, so that it can start now: nobody does."""
    return False


@inline
def clashes(s: Any, r: Any, begin: int, end: int) -> bool:
    """Whether a plan has one of the wanted nodes at some time in a stretch."""
    for k in range(s.count[0]):
        row = s.order[k]
        if s.end[row] > begin and s.begin[row] < end and is_beyond(r.wanted, s.free[row]):
            return True
    return False


@inline
def differ(one: Any, other: Any) -> bool:
    """Whether two sets of nodes differ."""
    found = 0
    for word in range(len(one)):
        found |= one[word] ^ other[word]
    return found != 0


@inline
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
            s.opens[new], s.opens[row] = s.opens[row], 0
            s.number[new] = s.number[row]
            for word in range(s.free.shape[1]):
                s.free[new, word] = s.free[row, word]
            s.count[0] += 1
            s.count[1] += 1
            return


@inline
def note_planned(t: Any, r: Any, j: int) -> None:
    """Note that this pass knows a start of a job in one of its partitions."""
    t.jobs[t.jobs[j]["of"]]["planned"] = r.passes[0]


@noinline
def plan(t: Any, s: Any, r: Any, b: Any, j: int, begin: int, end: int) -> bool:
    """Plan a job on the wanted nodes; whether there was room to keep the plan."""
    job = t.jobs[j]
    t.jobs[j]["plan"] = begin
    note_planned(t, r, j)
    for i in range(job["nodes"]):
        t.placed[job["first"] + i] = r.chosen[i]
    if s.count[1] >= b.most_stretches:
        return False
    reserve(s, r, begin, end)
    return True


@inline
def end_of_plan(b: Any, moment: int) -> int:
    """End of a plan for a job that would end at a moment, a multiple of the resolution (`_set_slot_time`)."""
    up = b.resolution - 1 if b.rounds_up else 0
    return int((moment + up) // b.resolution * b.resolution)


@noinline
def keep_running(t: Any, s: Any, r: Any, b: Any, j: int, now: int) -> None:
    """Keep plans off the chosen nodes of a job that starts and has them to itself, until its time limit.

    Source: `_bf_reserve_running` of sched/backfill; select/linear does not note that nodes are whole.
    """
    if t.jobs[j]["whole"] and not r.ranks[LINEAR] and s.count[1] < b.most_stretches:
        note_wanted(r, t.jobs[j]["nodes"])
        begin = s.begin[s.order[0]]
        end = end_of_plan(b, now + t.jobs[j]["limit"])
        reserve(s, r, begin, max(end, begin + b.resolution))


@inline
def note_wanted(r: Any, count: int) -> None:
    """Note the bits of the nodes that are chosen, of which there are so many."""
    r.wanted[:] = 0
    for i in range(count):
        r.wanted[r.chosen[i] // BITS] |= 1 << (r.chosen[i] % BITS)


@inline
def is_never_preempted(p: Any, j: int) -> bool:
    """Whether no job makes a running one give way: none does."""
    return True


@noinline
def reserve(s: Any, r: Any, begin: int, end: int) -> None:
    """Take the wanted nodes off stretches; one pair of neighbours with the same nodes becomes one."""
    begin = max(begin, s.begin[s.order[0]])
    split(s, begin)
    split(s, end)
    first, last = s.count[0], -1
    for k in range(s.count[0]):
        row = s.order[k]
        if s.begin[row] >= begin and s.end[row] <= end:
            first, last = min(first, k), k
            wanted, free = r.wanted, s.free[row]
            for word in range(len(wanted)):
                free[word] &= ~wanted[word]
            s.number[row] = number_of_both(free, free)
    for k in range(max(first - 1, 0), min(last + 1, s.count[0] - 1)):
        row = s.order[k]
        if s.opens[row] or k == last:
            s.opens[row] = has_other(s.free[s.order[k + 1]], s.free[row], s.up)
    for k in range(max(first - 1, 0), min(last + 1, s.count[0] - 1)):
        row, following = s.order[k], s.order[k + 1]
        if not s.opens[row] and not differ(s.free[row], s.free[following]):
            s.end[row], s.opens[row] = s.end[following], s.opens[following]
            for i in range(k + 1, s.count[0] - 1):
                s.order[i] = s.order[i + 1]
            s.count[0] -= 1
            s.order[s.count[0]] = following
            break
