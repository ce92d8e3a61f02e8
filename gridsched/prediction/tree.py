"""Decision trees as plain arrays: no pickle, and the same predictions wherever they are read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import jit

LEAF = -1
"""What stands for the children of a leaf."""


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """A binary decision tree; node 0 is the root.

    Parameters
    ----------
    left, right : int64[k]
        Children of each node, -1 for leaves. A row goes left where its feature is at most the threshold.
    feature : int64[k]
        Column that each node looks at; of no meaning for leaves.
    threshold : float64[k]
        What the feature is compared with.
    value : float64[k]
        What a leaf predicts: a class, or a number.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.left)

    def predict(self, matrix: NDArray[np.float32]) -> NDArray[np.float64]:
        """Prediction for each row; features are float32, as in training."""
        leaves = np.empty(len(matrix), np.int64)
        _walk(
            np.ascontiguousarray(matrix, np.float32),
            self.left,
            self.right,
            self.feature,
            self.threshold,
            leaves,
        )
        return self.value[leaves]


def classification_tree(estimator: Any) -> DecisionTree:
    """Tree of a fitted `sklearn.tree.DecisionTreeClassifier`; the first of equally likely classes counts."""
    shares = estimator.tree_.value[:, 0, :]
    return _tree(estimator, estimator.classes_[np.argmax(shares, axis=1)])


def regression_tree(estimator: Any) -> DecisionTree:
    """Tree of a fitted `sklearn.tree.DecisionTreeRegressor`."""
    return _tree(estimator, estimator.tree_.value[:, 0, 0])


def _tree(estimator: Any, value: NDArray[Any]) -> DecisionTree:
    nodes = estimator.tree_
    return DecisionTree(
        left=nodes.children_left.astype(np.int64),
        right=nodes.children_right.astype(np.int64),
        feature=nodes.feature.astype(np.int64),
        threshold=nodes.threshold.astype(np.float64),
        value=value.astype(np.float64),
    )


@jit
def _walk(matrix: Any, left: Any, right: Any, feature: Any, threshold: Any, leaves: Any) -> None:
    for row in range(len(matrix)):
        node = 0
        while left[node] != LEAF:
            node = left[node] if matrix[row, feature[node]] <= threshold[node] else right[node]
        leaves[row] = node
