"""Schedules of rigid jobs on particular resources of one cluster: placement, and how good it is.

A schedule is an order of the jobs and, for each job, the set of resources that it runs on (figure 2 of He et
al., "Hybrid performance-based workload management for multiclusters and grids", IEE Proceedings - Software
151, 2004). Jobs are placed one after the other: each starts as soon as the last of its resources has been
left by the jobs before it in the order. So a resource may stand idle before a job, and no later job slips
into such a hole. Times are whole seconds (int64), which makes every sum exact.

Sets of resources are bits, `WORD` of them in a word: `masks[i, j, w]` has those of job j in schedule i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from gridsched.engine.jit import as_int64, inline, jit, noinline, unchecked
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER

PACKED = np.dtype([("duration", np.int64), ("deadline", np.int64), ("processors", np.int64)])
"""A job of a schedule: how long it is expected to run, and when it should have ended, seconds."""

WORD = 64
"""Resources in one word of a set."""

ONE, NOTHING = np.uint64(1), np.uint64(0)


class Goal(NamedTuple):
    """Weights of equation (1), and what idle time is."""

    makespan: float
    idle: float
    over_deadline: float
    to_makespan: bool  # idle time is counted up to the makespan on every resource, else up to its last job
    unit: int  # processors of a resource


@jit
def words(resources: int) -> int:
    """Words of a set of so many resources."""
    return -(-resources // WORD)


# --- bits -----------------------------------------------------------------------------------------


def count(word: Any) -> int:
    """How many bits of a word are 1."""
    return int(word).bit_count()


def nth(word: Any, n: int) -> Any:
    """The bit that has n lower ones in a word, as a word."""
    for _ in range(n):
        word = word & (word - ONE)
    return word & (~word + ONE)


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    """Compiled body of `count`."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def _nth(typing_context: Any, word: Any, n: Any) -> Any:
    """Compiled body of `nth`: one operation where the processor has it, since nobody can predict the loop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if "+bmi2" not in context.codegen().magic_tuple()[-1]:
            return context.compile_internal(builder, nth, signature, arguments)
        word, kind = arguments[0].type, ir.FunctionType(arguments[0].type, [arguments[0].type] * 2)
        deposit = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.bmi.pdep.64")
        return builder.call(deposit, [builder.shl(word(1), arguments[1]), arguments[0]])

    return types.uint64(types.uint64, types.int64), generate


@overload(nth, jit_options={"forceinline": True})
def _compiled_nth(word: Any, n: Any) -> Any:
    def body(word: Any, n: Any) -> Any:
        return _nth(word, n)

    return body


@overload(count, jit_options={"forceinline": True})
def _compiled_count(word: Any) -> Any:
    def body(word: Any) -> int:
        return _ones(word)

    return body


@inline
def lowest(word: Any) -> int:
    """Position of the lowest bit of a word that is not 0."""
    return count(~word & (word - ONE))


@inline
def bit(resource: int) -> Any:
    """The word in which only one resource is set."""
    return ONE << np.uint64(resource % WORD)


@inline
def every(resources: int, word: int) -> Any:
    """A word of the set of all resources."""
    inside = min(resources - word * WORD, WORD)
    return ~NOTHING if inside == WORD else (ONE << np.uint64(inside)) - ONE


# --- placement ------------------------------------------------------------------------------------


@inline
def _run(masks: Any, job: Any, free: Any, now: int, duration: int) -> int:
    """Let a job run once all its resources are free, not before now; return its start."""
    start = now
    for w in range(masks.shape[1]):
        word = masks[job, w]
        while word != NOTHING:
            start = max(start, free[unchecked(lowest(word) + w * WORD)])
            word &= word - ONE
    for w in range(masks.shape[1]):
        word = masks[job, w]
        while word != NOTHING:
            free[unchecked(lowest(word) + w * WORD)] = start + duration
            word &= word - ONE
    return start


@inline
def _idle(base: Any, free: Any, last: int, to_makespan: bool) -> int:
    """Time of resources from when they become available to the makespan, or to their last job."""
    total = 0
    for r in range(len(base)):
        end = last if to_makespan else free[unchecked(r)]
        total += max(end - base[unchecked(r)], 0)
    return total


@inline
def combine(goal: Goal, makespan: int, idle: int, over_deadline: int) -> float:
    """Comprehensive performance, equation (1), with idle time of processors."""
    total = goal.makespan * makespan + goal.idle * (idle * goal.unit) + goal.over_deadline * over_deadline
    return total / (goal.makespan + goal.idle + goal.over_deadline)


# --- many schedules of the same jobs --------------------------------------------------------------

LANES = 16
"""Schedules that are looked at together: what one vector register of a present-day processor holds."""

PART = 32
"""Resources in one word of a set here, and bits of a time: as numbers of 32 bits, twice as many fit."""


class Lanes(NamedTuple):
    """Room to place the jobs of `LANES` schedules in their orders; on the last axis these.

    Times are seconds from now on, except for deadlines. Before the first job and behind the last one is one
    without resources.
    """

    free: Any  # int32[m, lanes], when each resource is left
    held: Any  # uint32[n + 2, parts, lanes], resources of each job
    duration: Any  # int32[n + 1, lanes]
    deadline: Any  # int64[n + 1, lanes]
    last: Any  # int32[lanes], end of all jobs
    late: Any  # int64[lanes], time over deadlines
    left: Any  # int64[m], when each resource is left by the jobs of one schedule


@jit
def lanes_for(jobs: int, resources: int) -> Lanes:
    """Room for schedules of so many jobs on so many resources."""
    return Lanes(
        np.zeros((resources, LANES), np.int32),
        np.zeros((jobs + 2, -(-resources // PART), LANES), np.uint32),
        np.zeros((jobs + 1, LANES), np.int32),
        np.full((jobs + 1, LANES), FOREVER, np.int64),
        np.zeros(LANES, np.int32),
        np.zeros(LANES, np.int64),
        np.zeros(resources, np.int64),
    )


def place_in_lanes(room: Lanes, now: int) -> None:
    """Place all jobs in each lane."""
    place = np.arange(len(room.free))
    shift = (place % PART).astype(np.uint32)[:, np.newaxis]
    inside = (room.held[:, place // PART] >> shift) & np.uint32(1) != 0
    for held, duration, deadline in zip(inside[1:], room.duration, room.deadline, strict=True):
        end = np.where(held, room.free, 0).max(axis=0, initial=0) + duration
        room.free[:] = np.where(held, end, room.free)
        room.last[:] = np.maximum(room.last, end)
        room.late[:] += np.maximum(end - (deadline - now), 0)


class _Rows:
    """Compiled code for the rows of an array of `LANES` numbers each."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self._builder = builder
        array = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
        self.count = builder.extract_value(array.shape, 0)
        self.vector = ir.VectorType(ir.IntType(array_type.dtype.bitwidth), LANES)
        self._data = builder.bitcast(array.data, ir.PointerType(self.vector))

    def __getitem__(self, index: Any) -> Any:
        return self._builder.load(cgutils.gep(self._builder, self._data, index), align=4)

    def __setitem__(self, index: Any, values: Any) -> None:
        self._builder.store(values, cgutils.gep(self._builder, self._data, index), align=4)


def _repeated(builder: Any, number: Any) -> Any:
    """A row of equal numbers."""
    row = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(row, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, row, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


def _larger(builder: Any, one: Any, other: Any) -> Any:
    """The larger of two numbers, or of each two in rows."""
    return builder.select(builder.icmp_signed(">", one, other), one, other)


@intrinsic
def _place_in_lanes(
    typing_context: Any, free: Any, held: Any, duration: Any, deadline: Any, last: Any, late: Any, now: Any
) -> Any:
    """Compiled body of `place_in_lanes`: of loops Numba makes an operation for each lane, five times slower.

    While the resources of a job are left, the next one looks at when its own are free.
    """
    signature = types.void(free, held, duration, deadline, last, late, now)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        *arrays, now = arguments
        rows = [_Rows(context, builder, *each) for each in zip(signature.args, arrays, strict=False)]
        free, held, duration, deadline, last, late = rows
        number, zero = free.count.type, free.count.type(0)
        parts = builder.udiv(builder.add(free.count, number(PART - 1)), number(PART))
        nothing, present = ir.Constant(free.vector, None), _repeated(builder, now)
        end, best, bit = (cgutils.alloca_once_value(builder, nothing) for _ in range(3))

        def if_inside(part: Any, time: Any) -> Any:
            held = builder.icmp_unsigned("!=", builder.and_(part, builder.load(bit)), nothing)
            return builder.select(held, time, nothing)

        with cgutils.for_range(builder, duration.count) as jobs:
            builder.store(nothing, best)
            with cgutils.for_range(builder, parts) as sets:
                first = builder.mul(sets.index, number(PART))
                full = builder.add(first, number(PART))
                behind = builder.select(builder.icmp_signed("<", full, free.count), full, free.count)
                before = builder.add(builder.mul(jobs.index, parts), sets.index)
                left, taken = held[before], held[builder.add(before, parts)]
                builder.store(_repeated(builder, ir.IntType(PART)(1)), bit)
                with cgutils.for_range_slice(builder, first, behind, number(1), number) as (resource, _):
                    # what is held is left later than before; so no part of a row is written alone, which
                    # would delay reading it again
                    time = _larger(builder, if_inside(left, builder.load(end)), free[resource])
                    free[resource] = time
                    builder.store(_larger(builder, if_inside(taken, time), builder.load(best)), best)
                    builder.store(builder.add(builder.load(bit), builder.load(bit)), bit)
            builder.store(builder.add(builder.load(best), duration[jobs.index]), end)
            last[zero] = _larger(builder, builder.load(end), last[zero])
            time = builder.add(builder.sext(builder.load(end), late.vector), present)
            over = builder.sub(time, deadline[jobs.index])
            late[zero] = builder.add(late[zero], _larger(builder, over, ir.Constant(late.vector, None)))
        return context.get_dummy_value()

    return signature, generate


@overload(place_in_lanes, jit_options={"forceinline": True})
def _compiled_place_in_lanes(room: Any, now: Any) -> Any:
    def body(room: Any, now: Any) -> None:
        _place_in_lanes(room.free, room.held, room.duration, room.deadline, room.last, room.late, now)

    return body


@inline
def _fill_lane(room: Lanes, lane: Any, order: Any, parts: Any, i: Any, jobs: Any) -> None:
    """Get a lane ready to place the jobs of schedule i."""
    for k in range(order.shape[1]):
        job = unchecked(order[i, unchecked(k)])
        room.duration[unchecked(k), lane] = jobs[job]["duration"]
        room.deadline[unchecked(k), lane] = jobs[job]["deadline"]
        for part in range(room.held.shape[1]):
            room.held[unchecked(k + 1), unchecked(part), lane] = parts[i, job, unchecked(part)]


@inline
def _place_one(order: Any, masks: Any, jobs: Any, now: int, free: Any) -> tuple[int, int]:
    """Place the jobs of one schedule, which may end at any time; return the last end, and what is late."""
    last, late = now, 0
    for k in range(len(order)):
        job = order[k]
        end = _run(masks, job, free, now, jobs[job]["duration"]) + jobs[job]["duration"]
        last = max(last, end)
        late += max(end - jobs[job]["deadline"], 0)
    return last, late


@noinline
def evaluate(
    order: Any, masks: Any, first: int, jobs: Any, base: Any, now: int, goal: Goal, found: Any, room: Lanes
) -> None:
    """Comprehensive performance of schedules.

    Parameters
    ----------
    order, masks : int32[p, n], uint64[p, n, w]
        Schedules.
    first : int
        The first that is looked at; all after it are, too.
    jobs : PACKED[n]
        The jobs.
    base : int64[m]
        When each resource becomes available, not before now.
    now : int
        From when on the makespan counts.
    goal : Goal
        Weights.
    found : float64[p]
        Filled with the performance of each.
    room : Lanes
        Room to work in.
    """
    parts = masks.view(np.uint32)
    work, latest = 0, 0
    for r in range(len(base)):
        latest = max(latest, base[r] - now)
    for job in range(len(jobs)):
        work += jobs[job]["duration"] * jobs[job]["processors"]
        latest += jobs[job]["duration"]
    fits = latest < 2 ** (PART - 1)
    for begin in range(first, len(found), LANES):
        count = min(LANES, len(found) - begin)
        room.last[:], room.late[:] = 0, 0
        if fits:
            for r in range(len(base)):
                room.free[unchecked(r)] = base[unchecked(r)] - now
            for lane in range(count):
                _fill_lane(room, unchecked(lane), order, parts, unchecked(begin + lane), jobs)
            place_in_lanes(room, now)
        for lane in range(count):
            last, late = now + as_int64(room.last[lane]), room.late[lane]
            for r in range(len(base)):
                left = now + as_int64(room.free[unchecked(r), lane])
                room.left[unchecked(r)] = left if fits else base[unchecked(r)]
            if not fits:
                last, late = _place_one(order[begin + lane], masks[begin + lane], jobs, now, room.left)
            idle = _idle(base, room.left, last, goal.to_makespan) - work
            found[begin + lane] = combine(goal, last - now, idle, late)


@jit
def place(order: Any, masks: Any, durations: Any, base: Any, now: int) -> tuple[Any, Any]:
    """Place the jobs of a schedule.

    Parameters
    ----------
    order, masks : int32[n], uint64[n, w]
        The schedule.
    durations : int64[n]
        How long each job runs, expected or in fact.
    base : int64[m]
        When each resource becomes available.
    now : int
        No job starts before.

    Returns
    -------
    starts, free : int64[n], int64[m]
        The start of each job, and when each resource is left by its last job.
    """
    starts, free = np.empty_like(durations), base.copy()
    for k in range(len(order)):
        job = unchecked(order[k])
        starts[job] = _run(masks, job, free, now, durations[job])
    return starts, free


@jit
def append_earliest(
    order: Any, masks: Any, kept: int, durations: Any, processors: Any, base: Any, now: int
) -> None:
    """Choose resources for the jobs of a schedule from place `kept` of its order on.

    Each job in turn takes the resources that are free first, the lowest of equals. The jobs before keep what
    they have.
    """
    free = base.copy()
    for k in range(len(order)):
        job = order[k]
        if k >= kept:
            for resource in np.argsort(free, kind="mergesort")[: processors[job]]:
                masks[job, resource // WORD] |= bit(resource)
        _run(masks, job, free, now, durations[job])


@jit
def measure(begin: Any, left: Any, jobs: Any, base: Any, now: int, to_makespan: bool) -> tuple[int, int, int]:
    """Makespan, idle time of resources and over-deadline of a schedule, seconds.

    Parameters
    ----------
    begin, left : int64[n], int64[m]
        When each job starts, and when each resource is left by its last job, see `place`.
    jobs : PACKED[n]
        The jobs.
    base : int64[m]
        When each resource becomes available, not before now.
    now : int
        From when on the makespan counts.
    to_makespan : bool
        As in `Goal`.
    """
    last, late, work = now, 0, 0
    for job in range(len(jobs)):
        end = begin[job] + jobs[job]["duration"]
        last = max(last, end)
        late += max(end - jobs[job]["deadline"], 0)
        work += jobs[job]["duration"] * jobs[job]["processors"]
    return last - now, _idle(base, left, last, to_makespan) - work, late


# --- execution ------------------------------------------------------------------------------------

OCCUPANT = np.dtype([("end", np.int64), ("start", np.int64), ("estimate", np.int64)])
"""The job that a resource has started last: when it ends in fact, when it began, for how long as expected."""


@jit
def begin(masks: Any, starts: Any, ends: Any, estimates: Any, occupants: Any) -> None:
    """Let jobs, in the order of their starts on each resource, be what their resources have started last."""
    for job in range(len(starts)):
        for w in range(masks.shape[1]):
            word = masks[job, w]
            while word != NOTHING:
                occupant = occupants[lowest(word) + w * WORD]
                occupant["start"], occupant["end"] = starts[job], ends[job]
                occupant["estimate"] = estimates[job]
                word &= word - ONE


@jit
def releases(occupants: Any, now: int, overrun: int) -> Any:
    """When each resource will be free, in fact and as far as one can know; not before now; int64[2, m]."""
    free = np.full((2, len(occupants)), now)
    for resource in range(len(occupants)):
        occupant = occupants[resource]
        if occupant["end"] > now:
            free[0, resource] = occupant["end"]
            free[1, resource] = expected_end(occupant["start"], occupant["estimate"], overrun, now + 1)
    return free


@jit
def take_lowest(order: Any, starts: Any, durations: Any, sizes: Any, free: Any, masks: Any) -> None:
    """Start jobs on the lowest resources that are free then.

    Parameters
    ----------
    order : int64[n]
        Jobs in the order of their starts.
    starts : int64[n]
        Start of each job.
    durations, sizes : int64[n]
        How long each job runs, and its resources, which are free at its start.
    free : int64[m]
        When each resource is left by the jobs before; changes.
    masks : uint64[n, w]
        Filled with the resources of each job; empty sets before.
    """
    for job in order:
        for resource in np.flatnonzero(free <= starts[job])[: sizes[job]]:
            masks[job, resource // WORD] |= bit(resource)
            free[resource] = starts[job] + durations[job]
