"""A trained predictor: intervals of run time, numbers of categories, and the classification tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from gridsched.prediction.categories import Categories
from gridsched.prediction.features import JobTable
from gridsched.prediction.intervals import Intervals


@dataclass(frozen=True, eq=False)
class Model:
    """A classification tree over intervals of run time, with what turns jobs into its features.

    Parameters
    ----------
    columns : tuple of str
        Features of the tree, in order.
    categories : mapping of str to Categories
        Numbers of the categories among the features.
    intervals : Intervals
        The classes.
    tree : sklearn.tree.DecisionTreeClassifier
        The tree; its classes are indices of intervals.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, Categories]
    intervals: Intervals
    tree: DecisionTreeClassifier

    def classify(self, table: JobTable, jobs: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        """Index of the interval that each job is expected in."""
        matrix = table.matrix(jobs, self.columns, self.categories, self.intervals)
        return np.asarray(self.tree.predict(matrix, check_input=False), np.int64)
