"""Categories (user, queue, ...) as numbers that trees can split, from finished jobs only.

``frequency``
    Rank by number of finished jobs in the history, the most frequent category is 0; equally frequent ones
    by their number in the log.
``target``
    Mean logarithm of the run times of the category's finished jobs in the history, log(1 + seconds).

Unknown categories have a number of their own, -1: those of which fewer than `rare` jobs have finished.
Otherwise a category of one job would tell the tree the run time of this job, and nothing of others. That a
log does not know a job's category (-1 in the log) is a category like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.prediction.options import Encoding

UNKNOWN_CODE = -1.0
"""Number of categories that are not in the history; all others have numbers from 0 on."""


@dataclass(frozen=True, eq=False)
class Categories:
    """Numbers of the categories of one feature.

    Parameters
    ----------
    value : int64[k]
        Categories as the log writes them, increasing.
    code : float32[k]
        Their numbers, none negative.
    """

    value: NDArray[np.int64]
    code: NDArray[np.float32]

    def encode(self, values: NDArray[np.int64]) -> NDArray[np.float32]:
        """Number of each category."""
        if not len(self.value):
            return np.full(len(values), UNKNOWN_CODE, np.float32)
        places = np.minimum(np.searchsorted(self.value, values), len(self.value) - 1)
        found = self.value[places] == values
        return np.where(found, self.code[places], np.float32(UNKNOWN_CODE))


def learn_categories(
    values: NDArray[np.int64], run_time: NDArray[np.int64], encoding: Encoding, rare: int
) -> Categories:
    """Numbers of the categories of finished jobs.

    Parameters
    ----------
    values, run_time : int64[n]
        Category and run time [s] of each finished job.
    encoding : {"frequency", "target"}
        See the module.
    rare : int
        Least number of finished jobs of a known category.

    Returns
    -------
    Categories
    """
    kinds, kind_of, counts = np.unique(values, return_inverse=True, return_counts=True)
    frequent = counts >= rare
    if encoding == "frequency":
        code = np.empty(len(kinds), np.float64)
        code[np.argsort(-counts, kind="stable")] = np.arange(len(kinds))
    else:
        code = np.bincount(kind_of, np.log1p(run_time), minlength=len(kinds)) / counts
    return Categories(kinds[frequent], code[frequent].astype(np.float32))
