"""Supervised discretisation by minimum description length.

U. M. Fayyad and K. B. Irani, "Multi-interval discretization of continuous-valued attributes for
classification learning", IJCAI 1993: a range of sorted values is cut where the labels on both sides are
told apart best (least class entropy), if the cut pays for its own description, and so on in both parts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import jit, noinline, to_int64

_FEW_LABELS = 30
"""Up to so many labels 3**k - 2 is computed; beyond, its logarithm is k log2(3) in float64."""


class _Cut(NamedTuple):
    """Best cut of the values from index `low` to before `high`.

    It is before the value at `place`, and saves `bits` more than its description takes.
    """

    bits: float
    low: int
    place: int
    high: int


def mdl_cuts(values: NDArray[Any], labels: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Largest value of every interval but the last.

    Parameters
    ----------
    values : int64[n]
        What is cut, in any order.
    labels : int64[n]
        Any numbers.
    most : int
        Most intervals. Where more cuts are accepted, those that save most bits come first; a cut inside a
        part is considered once that part exists.

    Returns
    -------
    int64[k]
        Increasing, k < `most`; empty where no cut is accepted.
    """
    order = np.argsort(values, kind="stable")
    ordered = to_int64(values)[order]
    codes = to_int64(np.unique(labels, return_inverse=True)[1])[order]
    counts = np.zeros((2, int(codes.max(initial=0)) + 1), np.int64)
    logarithms = _count_times_log(len(ordered))
    cuts: list[int] = []
    candidates = [_Cut(*_best_cut(ordered, codes, 0, len(ordered), counts, logarithms))]
    while len(cuts) < most - 1:
        best = max(candidates)
        if best.bits <= 0:
            break
        cuts.append(int(ordered[best.place - 1]))
        candidates.remove(best)
        for low, high in ((best.low, best.place), (best.place, best.high)):
            candidates.append(_Cut(*_best_cut(ordered, codes, low, high, counts, logarithms)))
    return np.array(sorted(cuts), np.int64)


def _count_times_log(most: int) -> NDArray[np.float64]:
    """Table of c log2(c) for counts up to `most`; entropies are differences of its entries."""
    counts = np.arange(most + 1, dtype=np.float64)
    return counts * np.log2(np.maximum(counts, 1.0))


@noinline
def _log_of_codes(labels: int) -> float:
    """Bits that name one of the non-empty assignments of `labels` labels to two parts: log2(3**k - 2)."""
    if labels > _FEW_LABELS:
        return labels * math.log2(3.0)
    return math.log2(3.0**labels - 2.0)


@jit
def _best_cut(
    values: Any, labels: Any, low: int, high: int, counts: Any, table: Any
) -> tuple[float, int, int, int]:
    """Cut of values[low:high] with the least class entropy; bits saved beyond its description, or at most 0.

    `counts` is working memory: jobs of each label left and right of the cut. `table` is c log2(c).
    """
    counts[:] = 0
    size = high - low
    for i in range(low, high):
        counts[1, labels[i]] += 1
    whole = 0.0
    kinds = 0
    for count in counts[1]:
        whole += table[count]
        kinds += count > 0
    # sum of c log2(c) over labels: entropy of a part x its size is table[size] minus this
    left, right = 0.0, whole
    kinds_left, kinds_right = 0, kinds
    best, place = -np.inf, low
    sum_left, sum_right, best_kinds_left, best_kinds_right = 0.0, 0.0, 0, 0
    for i in range(low, high - 1):
        label = labels[i]
        here, there = counts[0, label], counts[1, label]
        left += table[here + 1] - table[here]
        right += table[there - 1] - table[there]
        kinds_left += here == 0
        kinds_right -= there == 1
        counts[0, label] = here + 1
        counts[1, label] = there - 1
        if values[i] == values[i + 1]:
            continue
        size_left = i + 1 - low
        score = left + right - table[size_left] - table[size - size_left]
        if score > best:
            best, place = score, i + 1
            sum_left, sum_right = left, right
            best_kinds_left, best_kinds_right = kinds_left, kinds_right
    if place == low:
        return -np.inf, low, low, high
    size_left = place - low
    size_right = high - place
    entropy = table[size] - whole
    entropy_left = table[size_left] - sum_left
    entropy_right = table[size_right] - sum_right
    gain = entropy - entropy_left - entropy_right
    described = kinds * entropy / size
    described -= best_kinds_left * entropy_left / size_left + best_kinds_right * entropy_right / size_right
    cost = math.log2(size - 1.0) + _log_of_codes(kinds) - described
    return gain - cost, low, place, high
