"""Job arrays of which only so many tasks may run at once, such as Slurm's `--array=0-99%4`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError

if TYPE_CHECKING:
    from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]


def limited_arrays(workload: Workload) -> tuple[Integers, Integers]:
    """Job arrays that have a limit.

    Returns
    -------
    of_array : int64[n]
        Index of the array of each job, -1 where it has none with a limit.
    most : int64[arrays]
        Most tasks of each that may run at once.

    Raises
    ------
    WorkloadError
        If a limit is 0, is that of a job without an array, or is not the same for all jobs of one array.
    """
    limit, array = workload.array_limit, workload.array
    if limit is None:
        return np.full(len(workload), -1), np.empty(0, np.int64)
    if (limit == 0).any():
        raise WorkloadError(
            f"{workload.name}: array_limit is 0 for the job at index {np.argmax(limit == 0)}; "
            "give 1 or more, or -1 for any number"
        )
    if array is None or (array[limit > 0] < 0).any():
        without = limit > 0 if array is None else (limit > 0) & (array < 0)
        raise WorkloadError(
            f"{workload.name}: the job at index {np.argmax(without)} has an array_limit but no array; "
            "give the number of its array in the column array"
        )
    numbers, first, place = np.unique(array, return_index=True, return_inverse=True)
    of_array, most = place.reshape(-1), limit[first]
    wrong = (limit != most[of_array]) & (array >= 0)
    if wrong.any():
        job = int(np.argmax(wrong))
        raise WorkloadError(
            f"{workload.name}: array_limit is {most[of_array[job]]} and {limit[job]} for jobs of array "
            f"{array[job]}; give one for all of them"
        )
    limited = (most > 0) & (numbers >= 0)
    index = np.where(limited, np.cumsum(limited) - 1, -1)
    return index[of_array], np.asarray(most[limited], np.int64)
