"""Running jobs in blocks against a sorted list: ties across blocks, splits and merges."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.engine import running


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
