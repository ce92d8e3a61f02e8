"""What is in use over time: sums of what begins and ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


class Steps(NamedTuple):
    """A step function of time: `value[i]` holds from `time[i]` until `time[i + 1]`; 0 before the first."""

    time: Integers
    value: NDArray[Any]


def steps(times: ArrayLike, changes: ArrayLike) -> Steps:
    """Step function that is the sum of the changes up to and at each time.

    All changes of one instant count together, so that a job which starts at once never was in the queue.

    Parameters
    ----------
    times : array_like
        Seconds, in any order.
    changes : array_like
        What is added at each time.
    """
    moments = np.asarray(times, np.int64)
    order = np.argsort(moments)
    moments = moments[order]
    added = np.asarray(changes)
    totals = np.cumsum((added if added.dtype.kind == "f" else added.astype(np.int64))[order])
    last = np.append(moments[1:] != moments[:-1], True)[: len(moments)]
    return Steps(moments[last], totals[last])


def peaks(start: Integers, end: Integers, weight: Integers, group: Integers, groups: int) -> Integers:
    """Largest sum of weights of each group at any instant; what ends at an instant is gone."""
    times = np.concatenate([end, start])
    change = np.concatenate([-weight, weight])
    both = np.concatenate([group, group])
    # ends come first at one instant
    order = np.lexsort((change, times, both))
    total, owner = np.cumsum(change[order]), both[order]
    found = np.zeros(groups, np.int64)
    # every group begins and ends with nothing, so that sums start at 0 in each
    np.maximum.at(found, owner, total)
    return found
