"""Data structures of the engine against plain lists."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine import due_times, heap, jit, overrun, profile, rings, running, waiting_tree
from gridsched.engine.records import ENTRY, FOREVER, RUN, SCORED, STEP, Overrun
from tests.oracles.orders import corrected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 99)), unique=True))
@settings(deadline=None)
@pytest.mark.parametrize("kind", [ENTRY, SCORED])
def test_heap_gives_keys_in_order_and_ties_by_job(
    kind: np.dtype[np.void], entries: list[tuple[int, int]]
) -> None:
    room = np.empty(len(entries) + 1, kind)
    size = 0
    for key, job in entries:
        size = heap.push(room, size, key, job)
    out = []
    while size:
        out.append((int(room[0]["key"]), int(room[0]["job"])))
        size = heap.pop(room, size)
    assert out == sorted(entries)


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 12))
@settings(deadline=None)
def test_what_is_taken_out_of_a_heap_leaves_the_others_in_order(keys: list[int], job: int) -> None:
    room = np.empty(len(keys) + 1, ENTRY)
    size = 0
    for j, key in enumerate(keys):
        size = heap.push(room, size, key, j)
    size = heap.without(room, size, job)
    out = []
    while size:
        out.append((heap.first_time(room, size), int(room[0]["job"])))
        size = heap.pop(room, size)
    assert out == sorted((key, j) for j, key in enumerate(keys) if j != job)
    assert heap.first_time(room, 0) == FOREVER


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 3)), max_size=20),
)
@settings(deadline=None)
def test_clusters_that_are_due_first_are_found_in_order(
    times: list[int], changes: list[tuple[int, int]]
) -> None:
    due = due_times.allocate(times)
    for place, time in changes:
        times[place % len(times)] = time
        due_times.put(due, place % len(times), time)
    assert [due_times.of(due, m) for m in range(len(times))] == times
    now = due_times.first(due)
    assert now == min(times)
    found = [due_times.next_at(due, 0, now)]
    while found[-1] < len(times):
        found.append(due_times.next_at(due, found[-1] + 1, now))
    assert found[:-1] == [m for m, time in enumerate(times) if time == now]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=20))
@settings(deadline=None)
def test_rings_are_lists(changes: list[tuple[int, int]]) -> None:
    """An item goes to the end of a list, or off the list where it is."""
    heads = 3
    links, lists = rings.allocate(heads, np.arange(6)), [list[int]() for _ in range(heads)]
    for head, item in changes:
        where = next((own for own in lists if item in own), None)
        if where is None:
            rings.insert(links, heads + item, head)
            lists[head].append(item)
        else:
            rings.remove(links, heads + item)
            where.remove(item)
        assert [list(rings.items(links, own)) for own in range(heads)] == lists


def naive_shadow(jobs: list[tuple[int, int, int]], free: int, needed: int) -> tuple[int, int]:
    """When so many processors are expected to be free, and how many are then; jobs by end."""
    available, time = free, 0
    for end, _, processors in jobs:
        if available >= needed and end > time:
            break
        available += processors
        time = end
    return time, available


def blocks_as_list(blocks: np.ndarray, runs: np.ndarray, count: int) -> list[tuple[int, int, int]]:
    out = []
    for block in blocks[:count]:
        base = int(block["slot"]) * running.SIZE
        entries = runs[base : base + int(block["count"])]
        assert len(entries) > 0
        assert block["last"] == entries[-1]["end"]
        assert block["processors"] == entries["processors"].sum()
        out += [(int(e["end"]), int(e["job"]), int(e["processors"])) for e in entries]
    return out


@pytest.mark.parametrize(("most", "span"), [(20, 5), (600, 40), (600, 100_000)])
def test_running_jobs_stay_sorted_through_splits_and_merges(most: int, span: int) -> None:
    rng = np.random.default_rng(most + span)
    blocks, runs = running.allocate(most)
    naive: list[tuple[int, int, int]] = []
    count = 0
    for job in range(6000):
        growing = (job // 1500) % 2 == 0
        if len(naive) < most and (not naive or rng.random() < (0.7 if growing else 0.3)):
            entry = (int(rng.integers(span)), job, int(rng.integers(1, 9)))
            count = running.insert(blocks, runs, count, *entry)
            naive = sorted([*naive, entry])
        else:
            entry = naive.pop(int(rng.integers(len(naive))))
            count = running.remove(blocks, runs, count, *entry)
        if job % 50 == 0:
            assert blocks_as_list(blocks, runs, count) == naive
        if naive:
            total = sum(processors for _, _, processors in naive)
            needed = int(rng.integers(3, 3 + total)) + 1
            assert running.shadow(blocks, runs, count, 3, needed) == naive_shadow(naive, 3, needed)
    assert blocks_as_list(blocks, runs, count) == naive


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.none(), min_size=1, max_size=40),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 40),
)
@settings(deadline=None, max_examples=500)
def test_tree_finds_the_first_job_that_fits(
    waiting: list[tuple[int, int] | None], narrow: int, more: int, window: int, position: int
) -> None:
    wide = narrow + more
    tree = waiting_tree.allocate(len(waiting))
    for place, job in enumerate(waiting):
        waiting_tree.insert(tree, place, 3, 3)
        waiting_tree.remove(tree, place)
        if job is not None:
            waiting_tree.insert(tree, place, *job)
    fitting = [
        place
        for place, job in enumerate(waiting)
        if place >= position and job and (job[0] <= narrow or (job[0] <= wide and job[1] <= window))
    ]
    assert waiting_tree.next_fit(tree, position, narrow, wide, window) == (fitting or [-1])[0]


changes = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 3)), min_size=0, max_size=12
)


def naive_profile(processors: int, changed: list[tuple[int, int, int]]) -> list[int]:
    """Free processors at each second."""
    free = [processors] * 80
    for start, length, size in changed:
        for second in range(start, start + length):
            free[second] -= size
    return free


@given(changes, st.integers(0, 12), st.integers(1, 25), st.integers(1, 40), st.integers(0, 20))
@settings(deadline=None, max_examples=500)
def test_profile_equals_free_processors_second_by_second(
    changed: list[tuple[int, int, int]], processors: int, duration: int, limit: int, now: int
) -> None:
    total = 40
    steps = np.empty(100, STEP)
    steps[0] = (0, total)
    low, high = 0, 1
    for start, length, size in changed:
        high = profile.change(steps, low, high, start, start + length, -size)
    if changed:
        start, length, size = changed.pop()
        high = profile.change(steps, low, high, start, start + length, size)
    free = naive_profile(total, changed)
    for second in range(80):
        assert steps[profile.find(steps, low, high, second)]["free"] == free[second]
    assert all(a["free"] != b["free"] for a, b in itertools.pairwise(steps[:high]))

    bounds = np.zeros(1, [("low", np.int64), ("high", np.int64)])
    bounds["low"], bounds["high"] = low, high
    profile.forget_past(steps, bounds[0], now)
    low, high = bounds[0]
    assert steps[low]["time"] == now

    wanted = total - processors
    fits = [
        second
        for second in range(now, 52)
        if all(available >= wanted for available in free[second : second + duration])
    ]
    assert profile.earliest_fit(steps, low, high, now, wanted, duration, FOREVER) == fits[0]
    limited = [
        second
        for second in range(now, limit)
        if all(available >= wanted for available in free[second : min(second + duration, limit)])
    ]
    if limit >= now:
        found = profile.earliest_fit(steps, low, high, now, wanted, duration, limit)
        assert found == (limited or [limit])[0]


def test_profile_of_running_jobs_joins_equal_ends() -> None:
    blocks, runs = running.allocate(10)
    count = 0
    for job, end in enumerate([30, 20, 30, 10]):
        count = running.insert(blocks, runs, count, end, job, job + 1)
    steps = np.empty(20, STEP)
    high = profile.from_running(steps, blocks, runs, count, 5, 10)
    assert steps[:high].tolist() == [(10, 9), (20, 11), (30, 15)]


@pytest.mark.parametrize("rule", Overrun)
@given(st.integers(0, 100), st.integers(1, 5000), st.integers(0, 2_000_000))
@settings(deadline=None)
def test_expected_ends_follow_the_rule(rule: Overrun, start: int, estimate: int, not_before: int) -> None:
    found = overrun.expected_end(start, estimate, int(rule), not_before)
    assert found == start + corrected(estimate, not_before - 1 - start, rule.name.lower())


def test_shift_moves_overlapping_ranges_compiled_and_plain() -> None:
    @numba.njit
    def compiled(array: np.ndarray, target: int, source: int, count: int) -> None:
        jit.shift(array, target, source, count)

    for target, source in ((0, 3), (3, 0), (2, 2)):
        results = []
        for function in (compiled, jit.shift):
            array = np.zeros(10, RUN)
            array["job"] = np.arange(10)
            function(array, target, source, 6)
            results.append(array["job"].tolist())
        assert results[0] == results[1]
