"""A trained predictor: intervals of run time, numbers of categories, and the classification tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import GridschedError
from gridsched.prediction.categories import Categories
from gridsched.prediction.features import JobTable
from gridsched.prediction.intervals import Intervals
from gridsched.prediction.tree import DecisionTree


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
    tree : DecisionTree
        The tree; the values of its leaves are indices of intervals.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, Categories]
    intervals: Intervals
    tree: DecisionTree

    def classify(self, table: JobTable, jobs: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        """Index of the interval that each job is expected in."""
        matrix = table.matrix(jobs, self.columns, self.categories, self.intervals)
        return self.tree.predict(matrix).astype(np.int64)


_NAMES: dict[str, tuple[str, str, str]] = {
    "node_left": ("node", "index of the left child, -1 for a leaf", "1"),
    "node_right": ("node", "index of the right child, -1 for a leaf", "1"),
    "node_feature": ("node", "index of the feature that is compared", "1"),
    "node_threshold": ("node", "largest value of the feature that goes left", "1"),
    "node_interval": ("node", "index of the interval of run time that a leaf predicts", "1"),
    "interval_upper": ("interval", "longest run time of the interval", "s"),
    "interval_representative": ("interval", "run time that the interval stands for", "s"),
    "category_feature": ("category", "index of the feature that the category belongs to", "1"),
    "category_value": ("category", "category as the log writes it", "1"),
    "category_code": ("category", "number of the category in the tree", "1"),
    "encoded": ("feature", "whether the feature is a category", "1"),
}


def to_dataset(model: Model) -> xr.Dataset:
    """Model as a dataset of plain numbers and names, which can be written as netCDF.

    Parameters
    ----------
    model : Model

    Returns
    -------
    xarray.Dataset
        Dimensions `node`, `interval`, `feature` (with the names as coordinate) and `category`.
    """
    encoders = [(i, model.categories[c]) for i, c in enumerate(model.columns) if c in model.categories]
    values = {
        "node_left": model.tree.left,
        "node_right": model.tree.right,
        "node_feature": model.tree.feature,
        "node_threshold": model.tree.threshold,
        "node_interval": model.tree.value.astype(np.int64),
        "interval_upper": model.intervals.upper,
        "interval_representative": model.intervals.representative,
        "category_feature": np.repeat([i for i, _ in encoders], [len(c.value) for _, c in encoders]),
        "category_value": np.concatenate([np.empty(0, np.int64), *(c.value for _, c in encoders)]),
        "category_code": np.concatenate([np.empty(0, np.float32), *(c.code for _, c in encoders)]),
        "encoded": np.array([name in model.categories for name in model.columns], np.int8),
    }
    variables = {
        name: xr.Variable((_NAMES[name][0],), value, {"long_name": _NAMES[name][1], "units": _NAMES[name][2]})
        for name, value in values.items()
    }
    features = xr.Variable(("feature",), list(model.columns), {"long_name": "name of the feature"})
    return xr.Dataset(variables, {"feature": features}, {"title": "classification tree of run times"})


def from_dataset(dataset: xr.Dataset) -> Model:
    """The model of a dataset made by `to_dataset`; it predicts exactly what the first one does.

    Raises
    ------
    GridschedError
        If the dataset lacks a variable of a model.
    """
    missing = [name for name in _NAMES if name not in dataset]
    if missing:
        raise GridschedError(f"no model of run times: {', '.join(missing)} missing; use one by to_dataset")
    get = {name: dataset[name].to_numpy() for name in _NAMES}
    columns = tuple(str(name) for name in dataset["feature"].to_numpy())
    categories = {}
    for i in np.flatnonzero(get["encoded"]):
        own = get["category_feature"] == i
        categories[columns[i]] = Categories(
            get["category_value"][own].astype(np.int64), get["category_code"][own].astype(np.float32)
        )
    tree = DecisionTree(
        left=get["node_left"].astype(np.int64),
        right=get["node_right"].astype(np.int64),
        feature=get["node_feature"].astype(np.int64),
        threshold=get["node_threshold"].astype(np.float64),
        value=get["node_interval"].astype(np.float64),
    )
    intervals = Intervals(
        get["interval_upper"].astype(np.int64), get["interval_representative"].astype(np.int64)
    )
    return Model(columns, categories, intervals, tree)
