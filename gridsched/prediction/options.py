"""What can be chosen about run time prediction, with defaults that were measured.

Mean absolute error [s] of the classification tree on the whole logs KTH-SP2 and SDSC-SP2, with recorded ends;
all else as by default:

==========================  =====  ========    ==========================  =====  ========
changed                     KTH    SDSC-SP2    changed                     KTH    SDSC-SP2
==========================  =====  ========    ==========================  =====  ========
nothing                     4,327  4,685       discretisation mdl          4,685  4,710
5 intervals                 5,173  5,302       10 jobs in a leaf           4,305  4,709
10 intervals                4,549  4,967       50 jobs in a leaf           4,443  4,947
15 intervals                4,373  4,770       window of 2,000 jobs        4,491  4,890
30 intervals                4,393  4,741       window of 10,000 jobs       4,358  4,861
40 intervals                4,338  4,783       criterion gini              4,390  4,728
discretisation by equal     4,892  4,871       encoding by frequency       4,393  4,861
frequency
discretisation by k-means   4,642  4,807
==========================  =====  ========    ==========================  =====  ========

Few intervals are coarse, and those of equal frequency are widest for the long jobs, where errors are largest;
from 15 to 40 intervals of equal width in logarithmic time the error hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from gridsched.errors import ConfigurationError, check_choice, check_number, check_whole

Discretisation = Literal["equal_frequency", "log_width", "k_means", "mdl"]
Representative = Literal["median", "mean", "upper"]
Encoding = Literal["frequency", "target"]
Criterion = Literal["gini", "entropy"]
Scope = Literal["source", "global"]
Category = Literal["user", "group", "executable", "queue", "partition"]

CATEGORIES: tuple[str, ...] = get_args(Category)
"""Features that are names written as numbers."""

NUMBERS: tuple[str, ...] = (
    "processors",
    "requested_time",
    "hour",
    "weekday",
    "last_run_time",
    "previous_run_time",
    "mean_run_time",
    "jobs_finished",
    "last_interval",
    "think_time",
    "jobs_in_system",
)
"""Features that are numbers, see `gridsched.prediction.features`."""

FEATURES: tuple[str, ...] = (*CATEGORIES, *NUMBERS)
"""All features; where several logs share a history, the log that a job comes from is one more."""


@dataclass(frozen=True, kw_only=True)
class PredictorOptions:
    """How run times are predicted.

    Parameters
    ----------
    discretisation : {"equal_frequency", "log_width", "k_means", "mdl"}
        How run times are cut into intervals, see `gridsched.prediction.intervals`.
    intervals : int
        Number of intervals; the most of them, for "mdl". Fewer where the history has fewer different run
        times, and never more than half the jobs of the history.
    representative : {"median", "mean", "upper"}
        Which run time an interval stands for: median or mean of the history in it, or its upper bound.
    mdl_label : {"user", "group", "executable", "queue", "partition"}
        For "mdl" only: what the intervals are to tell apart.
    features : tuple of str
        Some of `FEATURES`.
    encoding : {"frequency", "target"}
        How categories become numbers, see `gridsched.prediction.categories`.
    rare : int
        Categories with fewer finished jobs than this in the history count as unknown.
    criterion : {"gini", "entropy"}
        Impurity that the splits of the classification tree reduce; entropy is information gain.
    min_samples_leaf : int
        Least number of finished jobs in a leaf, of all trees.
    max_depth : int, optional
        Depth of the trees; by default as deep as the leaves allow.
    window : int
        Trees learn from so many jobs, those that finished last.
    minimum_history : int
        No tree is trained before so many jobs have finished.
    retrain_seconds : int, optional
        Trees are retrained at multiples of this time [s] after the first submission.
    retrain_jobs : int, optional
        Trees are also retrained when this number of jobs has finished, twice this number, and so on.
    retrain_growth : float
        A scheduled training is left out where fewer jobs than this share of the history have finished since
        the one before.
    scope : {"source", "global"}
        Where jobs come from several logs: whether each log has its own history and trees, or all share one.
    bounded_by_request : bool
        Whether a prediction above the requested time is cut at it, since jobs are killed there or users say
        so.
    constant : int
        Prediction [s] where there is neither a requested time nor a finished job.
    random_state : int
        Decides between splits that are equally good.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range.
    """

    discretisation: Discretisation = "log_width"
    intervals: int = 20
    representative: Representative = "median"
    mdl_label: Category = "user"
    features: tuple[str, ...] = FEATURES
    encoding: Encoding = "target"
    rare: int = 5
    criterion: Criterion = "entropy"
    min_samples_leaf: int = 30
    max_depth: int | None = None
    window: int = 5000
    minimum_history: int = 100
    retrain_seconds: int | None = 86_400
    retrain_jobs: int | None = 1000
    retrain_growth: float = 0.01
    scope: Scope = "source"
    bounded_by_request: bool = True
    constant: int = 3600
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, allowed in _WORDS.items():
            check_choice(f"predictor: {name}", getattr(self, name), allowed)
        check_number("predictor: retrain_growth", self.retrain_growth, least=0)
        for name, least in _LEAST.items():
            given = getattr(self, name)
            if given is not None:
                value = check_whole(f"predictor: {name}", given, least=least, most=_MOST.get(name))
                object.__setattr__(self, name, value)
        self._check("features", len(self.features) > 0, "name at least one")
        unknown = [name for name in self.features if name not in FEATURES]
        self._check("features", not unknown, f"features are {', '.join(FEATURES)}")
        is_retrained = self.retrain_seconds is not None or self.retrain_jobs is not None
        self._check("retrain_seconds", is_retrained, "give retrain_seconds or retrain_jobs")

    def _check(self, name: str, holds: bool, advice: str) -> None:
        if not holds:
            raise ConfigurationError(f"predictor: {name} is {getattr(self, name)!r}; {advice}")

    def attributes(self) -> dict[str, Any]:
        """The options as attributes of a dataset; what is not given is empty."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Value as netCDF can hold it."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return int(value) if isinstance(value, bool) else "" if value is None else value


_WORDS: dict[str, tuple[str, ...]] = {
    "discretisation": get_args(Discretisation),
    "representative": get_args(Representative),
    "mdl_label": CATEGORIES,
    "encoding": get_args(Encoding),
    "criterion": get_args(Criterion),
    "scope": get_args(Scope),
}
_LEAST = {
    "intervals": 1,
    "rare": 1,
    "min_samples_leaf": 1,
    "max_depth": 1,
    "window": 1,
    "minimum_history": 1,
    "retrain_seconds": 1,
    "retrain_jobs": 1,
    "constant": 1,
    "random_state": 0,
}
_MOST = {"random_state": 2**32 - 1}
