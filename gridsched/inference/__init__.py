"""Estimates with intervals, comparisons and rankings: the only place that computes an interval.

What is repeated are *units*: replicates (independent draws of a workload and of what schedulers draw, or
resampled logs), or with ``serial=True`` consecutive blocks of one log. All functions take arrays with the
units on the last axis, NaN where one is absent. Comparisons are paired: unit k of both sides has the same
jobs, and only units that both sides have count.

Where no valid interval exists the bounds are NaN, and `reason` says why. An interval and the significance
of a comparison come from one test, so that they never contradict each other. Which estimator is used where,
and how often its intervals hold the truth, is in ``docs/statistics.md``.

>>> import numpy as np
>>> from gridsched import inference
>>> easy = np.array([110.0, 140.0, 120.0, 131.0, 125.0, 99.0])
>>> sjbf = np.array([62.0, 70.0, 60.0, 71.0, 60.0, 50.0])
>>> found = inference.ratio(sjbf, easy)
>>> round(float(found.value), 3), round(float(found.low), 2), round(float(found.high), 2)
(0.514, 0.48, 0.55)
"""

from gridsched.inference.comparisons import Comparison, Pairs, best, compare, compare_pairs, holm
from gridsched.inference.estimates import Estimate, difference, mean, next_difference, ratio, share
from gridsched.inference.evidence import FEWEST, IDENTICAL, Form
from gridsched.inference.serial import moving_block_error, relaxations
from gridsched.inference.tables import summary, units_of

__all__ = [
    "FEWEST",
    "IDENTICAL",
    "Comparison",
    "Estimate",
    "Form",
    "Pairs",
    "best",
    "compare",
    "compare_pairs",
    "difference",
    "holm",
    "mean",
    "moving_block_error",
    "next_difference",
    "ratio",
    "relaxations",
    "share",
    "summary",
    "units_of",
]
