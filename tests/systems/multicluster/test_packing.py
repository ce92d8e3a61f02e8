"""Placement on particular resources and comprehensive performance against the plain oracle."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.engine.jit import jit
from gridsched.systems.multicluster.kernels import packing
from gridsched.systems.multicluster.titan import (
    Coding,
    IdleName,
    Weights,
    in_order,
    measured,
    packed,
    resources_of,
    starts,
)
from tests.oracles import packing as naive_packing
from tests.oracles.packing import PackedJob

WIDTHS = (1, 2, 3, 5, 8, 63, 64, 65, 130)
IDLE = ("holes", "makespan")


def masks_of(resources: list[set[int]], width: int) -> NDArray[np.uint64]:
    masks = np.zeros((len(resources), packing.words(width)), np.uint64)
    for job, own in enumerate(resources):
        for resource in own:
            masks[job, resource // 64] |= np.uint64(1 << resource % 64)
    return masks


@st.composite
def schedules(
    draw: st.DrawFn, max_jobs: int = 8
) -> tuple[list[PackedJob], list[int], list[set[int]], list[int], int]:
    """Jobs, an order, resources of each job, when resources become available, and the present time."""
    width = draw(st.sampled_from(WIDTHS))
    count = draw(st.integers(0, max_jobs))
    jobs, resources = [], []
    for _ in range(count):
        processors = draw(st.sampled_from([1, max(1, width // 2), width]) | st.integers(1, width))
        jobs.append(PackedJob(draw(st.integers(0, 9)), draw(st.integers(0, 40)), processors))
        shift = draw(st.integers(0, width - 1))
        step = draw(st.sampled_from([1, width - 1]))
        resources.append({(shift + step * k) % width for k in range(processors)} if step else {0})
    for job, own in enumerate(resources):
        jobs[job] = jobs[job]._replace(processors=len(own))
    now = draw(st.integers(0, 5))
    base = [now + draw(st.sampled_from([0, 0, 3, 7])) for _ in range(width)]
    return jobs, draw(st.permutations(range(count))), resources, base, now


def arrays(
    jobs: list[PackedJob], order: list[int], resources: list[set[int]], base: list[int]
) -> tuple[Coding, NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    columns = np.array(jobs, np.int64).reshape(-1, 3).T
    coding = Coding(np.array(order, np.int32), masks_of(resources, len(base)))
    return coding, packed(*columns), np.ascontiguousarray(columns[0]), np.array(base, np.int64)


@given(schedules())
@settings(max_examples=200)
def test_starts_equal_the_oracle(
    schedule: tuple[list[PackedJob], list[int], list[set[int]], list[int], int],
) -> None:
    jobs, order, resources, base, now = schedule
    coding, _, durations, free = arrays(jobs, order, resources, base)
    begin, left = starts(coding, durations, free, now)
    assert begin.tolist() == naive_packing.place(order, resources, durations.tolist(), base, now)
    for resource, end in enumerate(left.tolist()):
        ends = [begin[j] + durations[j] for j in range(len(jobs)) if resource in resources[j]]
        assert end == max([base[resource], *ends])


@pytest.mark.parametrize("idle_time", IDLE)
@given(schedule=schedules(), weights=st.tuples(*[st.integers(0, 9)] * 3).filter(any))
@settings(max_examples=200)
def test_performance_equals_the_oracle(
    idle_time: str,
    schedule: tuple[list[PackedJob], list[int], list[set[int]], list[int], int],
    weights: tuple[int, int, int],
) -> None:
    jobs, order, resources, base, now = schedule
    coding, records, durations, free = arrays(jobs, order, resources, base)
    begin = naive_packing.place(order, resources, durations.tolist(), base, now)
    expected = naive_packing.metrics(begin, resources, jobs, base, now, idle_time)
    wanted = Weights(
        makespan=weights[0],
        idle=weights[1],
        over_deadline=weights[2],
        idle_time=cast(IdleName, idle_time),
    )
    _, left = starts(coding, durations, free, now)
    found = measured(np.array(begin, np.int64), left, records, free, now, wanted, 1)
    assert found == expected
    cp = naive_packing.performance(expected, weights)
    assert wanted.performance(*expected) == cp
    assert packing_performance([coding], records, free, now, wanted)[0] == cp


def packing_performance(
    codings: Sequence[Coding], jobs: NDArray[Any], free: NDArray[np.int64], now: int, weights: Weights
) -> NDArray[np.float64]:
    """Comprehensive performance of several schedules of the same jobs."""
    order, masks = (np.stack(each) for each in zip(*((c.order, c.masks) for c in codings), strict=True))
    found = np.empty(len(codings))
    room = packing.lanes_for(len(jobs), len(free))
    packing.evaluate(order, masks, 0, jobs, free, now, weights.goal, found, room)
    return found


@given(schedules(), st.integers(1, 40), st.sampled_from([1, 2**26]), st.randoms(use_true_random=False))
def test_many_schedules_together_equal_the_oracle(
    schedule: tuple[list[PackedJob], list[int], list[set[int]], list[int], int],
    count: int,
    second: int,
    random: Random,
) -> None:
    """Also where times do not fit in 32 bits."""
    jobs, order, resources, base, now = schedule
    longer = [PackedJob(job.duration * second, job.deadline * second, job.processors) for job in jobs]
    codings, expected = [], []
    for _ in range(count):
        random.shuffle(order)
        shift = random.randrange(len(base))
        moved = [{(resource + shift) % len(base) for resource in own} for own in resources]
        coding, records, _, free = arrays(longer, order, moved, [each * second for each in base])
        begin = naive_packing.place(order, moved, [job.duration for job in jobs], base, now)
        found = naive_packing.metrics(begin, moved, jobs, base, now, "holes")
        codings.append(coding)
        expected.append(naive_packing.performance(found, (3, 1, 4)) * second)
    assert packing_performance(codings, records, free, now * second, Weights()).tolist() == expected


@given(st.integers(1, 2**64 - 1))
def test_bits(word: int) -> None:
    assert packing.lowest(np.uint64(word)) == (word & -word).bit_length() - 1
    assert packing.count(np.uint64(word)) == word.bit_count()
    ones = [k for k in range(64) if word >> k & 1]
    assert [int(packing.nth(np.uint64(word), n)) for n in range(len(ones))] == [1 << k for k in ones]


@given(st.integers(1, 2**64 - 1))
def test_bits_in_compiled_code(word: int) -> None:
    ones = [k for k in range(64) if word >> k & 1]
    assert compiled_bits(np.uint64(word), len(ones) - 1) == (ones[0], len(ones), 1 << ones[-1])


@jit
def compiled_bits(word: Any, n: int) -> tuple[int, int, int]:
    return packing.lowest(word), packing.count(word), packing.nth(word, n)


def test_sets_of_all_resources() -> None:
    for width in WIDTHS:
        full = np.array([[packing.every(width, w) for w in range(packing.words(width))]], np.uint64)
        assert resources_of(full, width).all()
        assert sum(packing.count(word) for word in full[0]) == width


@given(schedules())
def test_jobs_in_order_take_what_is_free_first(
    schedule: tuple[list[PackedJob], list[int], list[set[int]], list[int], int],
) -> None:
    jobs, order, _, base, now = schedule
    durations = np.array([job.duration for job in jobs], np.int64)
    sizes = np.array([job.processors for job in jobs], np.int64)
    coding = in_order(np.array(order, np.int64), durations, sizes, np.array(base, np.int64), now)
    own = coding.resources(len(base))
    free = list(base)
    for job in order:
        expected = sorted(range(len(base)), key=lambda r: (free[r], r))[: sizes[job]]
        assert np.flatnonzero(own[job]).tolist() == sorted(expected)
        start = max([now, *(free[r] for r in expected)])
        for r in expected:
            free[r] = start + int(durations[job])


def test_jobs_that_are_kept_stay() -> None:
    durations, sizes = np.array([4, 2, 3]), np.array([1, 2, 1])
    kept = np.array([[2]], np.uint64)
    coding = in_order(np.arange(3), durations, sizes, np.zeros(3, np.int64), 0, kept)
    assert coding.resources(3).tolist() == [[False, True, False], [True, False, True], [True, False, False]]
    assert starts(coding, durations, np.zeros(3, np.int64), 0)[0].tolist() == [0, 0, 2]
