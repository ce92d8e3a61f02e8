"""Models of the run times that users request, for workloads that have none.

Two are simple: a multiple of the run time, and the f-model of Mu'alem and Feitelson (IEEE TPDS 12(6), 2001).
The third is the modal model of Tsafrir, Etsion and Feitelson (Modeling user runtime estimates, JSSPP 2005):
users choose from few round values, the longest allowed is the most popular one, and a job's estimate is tied
to its run time only by not being shorter.

Of the modal model these are the authors' (default parameters of the program that they published with the
paper): 20 popular values that hold 89 % of the jobs, the fifteen of them that four logs share and the round
units of the others, the fall of popularity (exponential for ranks 2 to 20, a power law after), the number of
distinct values by the number of jobs, the spread of the rare values over time, random feasible assignment.
Chosen here: the table that ties length to popularity is measured on the logs as the archive holds them today
(theirs agrees for CTC and KTH), numbers of jobs are rounded by largest remainders, minutes are added to
the round units, the longest estimate has a default, jobs may be exempt from it, and estimates are raised
where their program gives up.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import jit, to_int64
from gridsched.errors import WorkloadError, check_choice, check_number, check_whole
from gridsched.workloads.table import Workload, add_counts

_MINUTE, _HOUR = 60, 3600

_COMMON_VALUES = (
    *(m * _MINUTE for m in (5, 10, 15, 20, 30)),
    *(h * _HOUR for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)
"""Estimates among the twenty most popular of all four logs that Tsafrir et al. examined, in seconds."""

_ROUND_UNITS = (
    *(h * _HOUR for h in (200, 100, 50, 10, 5, 2, 1)),
    *(m * _MINUTE for m in (20, 10, 5, 1)),
)
"""The other popular values are multiples of these, coarse units first and long values first."""

HEAD_VALUES = 20
_HEAD_SHARE = 0.89
_HEAD_DECAY = (14.0491, -0.177531, 0.462513)
"""Per cent of the jobs at popularity rank r from 2 to 20: a exp(b r) + c."""
_TAIL_EXPONENT = -2.267
"""The share of a value at popularity rank r from 21 on is proportional to r to this power."""
_TAIL_TIME = (12.1039, -0.6026)
"""Rare value i of n is (a - 1) x / (a - x) of the longest: x = i / n, a = 1 + p K**q, K values in all."""
_DISTINCT_VALUES = ((0, 20, 200, 1000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))
"""Jobs, and distinct estimates among them; linear between the points, constant after the last."""

POPULARITY = np.array(
    [
        [3, 1, 4, 18, 13, 8, 7, 17, 2, 6, 16, 12, 5, 15, 14, 20, 10, 11, 9, 19],
        [1, 3, 4, 2, 12, 9, 8, 18, 6, 7, 11, 20, 16, 5, 14, 13, 10, 15, 17, 19],
        [1, 4, 10, 14, 20, 2, 3, 7, 12, 6, 19, 5, 18, 16, 9, 17, 15, 13, 8, 11],
        [13, 7, 6, 3, 8, 2, 19, 20, 5, 12, 4, 1, 10, 11, 15, 14, 17, 16, 18, 9],
    ]
)
"""Popularity ranks of the 20 most popular estimates in four logs: the longest first, the others by length.

Rows: SDSC-SP2-1998-4.2-cln, CTC-SP2-1996-3.1-cln, KTH-SP2-1996-2.1-cln (estimates up to 4 h),
SDSC-BLUE-2000-4.2-cln."""


_ERRORS = 3
"""Random stream of drawn errors: those of arrivals, run times and sizes of multiclusters have 0 to 2."""


@dataclass(frozen=True)
class Estimates:
    """Estimates drawn for jobs, and what had to be changed.

    Parameters
    ----------
    requested_time : array of int64
        Estimate of each job, s; at least its run time and at least 1.
    run_time : array of int64
        Run time of each job, s, cut where the model cuts.
    jobs_cut : int
        Jobs whose run time was cut at the longest estimate.
    jobs_exempt : int
        Jobs whose estimate is longer than the longest of the model.
    jobs_raised : int
        Estimates raised to a longer value of the model because too few long ones were drawn.
    """

    requested_time: NDArray[np.int64]
    run_time: NDArray[np.int64]
    jobs_cut: int = 0
    jobs_exempt: int = 0
    jobs_raised: int = 0


class EstimateModel(Protocol):
    """Anything that draws estimates for run times in whole seconds."""

    def draw(self, run_time: NDArray[np.int64], rng: np.random.Generator) -> Estimates:
        """Estimates of jobs with these run times."""


@dataclass(frozen=True)
class Multiple:
    """Estimate = run time x `factor`, rounded up; with the default of 1, exact estimates."""

    factor: float = 1.0

    def __post_init__(self) -> None:
        check_number("estimates: factor", self.factor, least=1, error=WorkloadError)

    def draw(self, run_time: NDArray[np.int64], rng: np.random.Generator) -> Estimates:
        """Estimates of jobs with these run times; draws no random number."""
        estimate = np.ceil(run_time * self.factor).astype(np.int64)
        return Estimates(np.maximum(estimate, 1), run_time)


@dataclass(frozen=True)
class FModel:
    """Estimate uniform between the run time and (f + 1) times it, rounded up (Mu'alem and Feitelson 2001).

    f is 0 for exact estimates. Tsafrir (JSSPP 2010) shows why conclusions should not rest on this model:
    it tells the scheduler more than users do.
    """

    f: float

    def __post_init__(self) -> None:
        check_number("estimates: f", self.f, least=0, error=WorkloadError)

    def draw(self, run_time: NDArray[np.int64], rng: np.random.Generator) -> Estimates:
        """Estimates of jobs with these run times."""
        estimate = np.ceil(run_time * (1 + self.f * rng.random(len(run_time)))).astype(np.int64)
        return Estimates(np.maximum(estimate, 1), run_time)


@dataclass(frozen=True)
class Modal:
    """The modal model of Tsafrir, Etsion and Feitelson (JSSPP 2005).

    Parameters
    ----------
    max_estimate : int, optional
        Longest estimate that the site allows, s. Without it, the longest run time, in full hours.
    max_share : float, optional
        Share of the jobs that request the longest; without it about 22 %, what the others leave.
    head_share : float
        Share of the jobs that request one of the twenty most popular values.
    distinct : int, optional
        Largest number of distinct values; without it, by the number of jobs (90 for 10,000, up to 565).
    longer : {"cut", "raise", "exempt"}
        For run times beyond `max_estimate`: cut and count them (the authors' way), raise the longest estimate
        to the longest run time in full hours, or let these jobs request their own run time in full hours.
    """

    max_estimate: int | None = None
    max_share: float | None = None
    head_share: float = _HEAD_SHARE
    distinct: int | None = None
    longer: Literal["cut", "raise", "exempt"] = "cut"

    def __post_init__(self) -> None:
        for name in ("max_estimate", "distinct"):
            if (value := getattr(self, name)) is not None:
                whole = check_whole(f"estimates: {name}", value, least=1, error=WorkloadError)
                object.__setattr__(self, name, whole)
        check_number("estimates: head_share", self.head_share, above=0, most=1, error=WorkloadError)
        check_number(
            "estimates: max_share", self.max_share, above=0, most=self.head_share, error=WorkloadError
        )
        check_choice("estimates: longer", self.longer, ("cut", "raise", "exempt"), WorkloadError)

    def draw(self, run_time: NDArray[np.int64], rng: np.random.Generator) -> Estimates:
        """Estimates of jobs with these run times.

        Values and their frequencies are drawn first, then given to the jobs: every assignment in which no job
        outruns its estimate has the same chance. Where the values drawn admit none, the estimates that
        are too short are raised to the next value of the model and counted.
        """
        if not len(run_time):
            return Estimates(np.empty(0, np.int64), run_time)
        longest = self._longest(int(run_time.max()))
        kept = np.minimum(to_int64(run_time), longest)
        values, counts = self.frequencies(len(kept), longest, rng)
        by_length = np.argsort(-kept, kind="stable")
        descending = np.repeat(values, counts)[::-1].copy()
        needed = values[np.searchsorted(values, kept[by_length])]
        raised = int(np.count_nonzero(descending < needed))
        descending = np.maximum(descending, needed)
        _shuffle_feasibly(kept[by_length], descending, rng.random(len(kept)))
        requested = np.empty_like(kept)
        requested[by_length] = descending
        beyond = run_time > longest
        count = int(np.count_nonzero(beyond))
        if self.longer == "exempt":
            requested[beyond] = _whole_hours(run_time[beyond])
            return Estimates(requested, run_time, jobs_exempt=count, jobs_raised=raised)
        return Estimates(requested, kept, jobs_cut=count, jobs_raised=raised)

    def frequencies(
        self, jobs: int, longest: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Values (s, rising, the last is `longest`) and how many of `jobs` jobs request each."""
        distinct = self.distinct or max(1, round(float(np.interp(jobs, *_DISTINCT_VALUES))))
        head = _head_values(longest, min(HEAD_VALUES, distinct))
        tail = _tail_values(longest, distinct - len(head), distinct, set(head.tolist()))
        head_share = self.head_share if len(tail) else 1.0
        shares = np.concatenate(
            [
                self._head_shares(len(head), head_share, rng),
                (1 - head_share) * _tail_shares(len(tail), rng),
            ]
        )
        values = np.concatenate([head, tail])
        order = np.argsort(values)
        return values[order], _apportion(shares, jobs)[order]

    def _longest(self, longest_run: int) -> int:
        """Longest estimate, given the longest run time."""
        if self.max_estimate is None or (self.longer == "raise" and longest_run > self.max_estimate):
            return int(_whole_hours(max(longest_run, 1)))
        return self.max_estimate

    def _head_shares(self, values: int, head_share: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Shares of the popular values, which sum to `head_share`: the longest first, then by length."""
        a, b, c = _HEAD_DECAY
        others = (a * np.exp(b * np.arange(2, values + 1)) + c) / 100
        longest = _HEAD_SHARE - others.sum()
        shares = np.concatenate([[longest], others]) * head_share / _HEAD_SHARE
        if self.max_share and values > 1:
            shares[1:] *= (head_share - self.max_share) / shares[1:].sum()
            shares[0] = self.max_share
        return np.asarray(shares[_popularity_ranks(rng, values) - 1], np.float64)


def _whole_hours(seconds: Any) -> Any:
    """Seconds rounded up to whole hours."""
    return -(-seconds // _HOUR) * _HOUR


def _head_values(longest: int, count: int) -> NDArray[np.int64]:
    """Popular values: the longest, then the others by length; fewer than `count` if so many do not exist."""
    chosen = [longest]
    units = (range(longest // unit * unit, 0, -unit) for unit in _ROUND_UNITS)
    for value in (*_COMMON_VALUES, *(multiple for multiples in units for multiple in multiples)):
        if len(chosen) == count:
            break
        if value < longest and value not in chosen:
            chosen.append(value)
    return np.array([longest, *sorted(chosen[1:])], np.int64)


def _popularity_ranks(rng: np.random.Generator, values: int) -> NDArray[np.int64]:
    """Draw the popularity ranks (1 = most popular) of the popular values, in the order of `_head_values`.

    The longest has rank 1. Then, from short to long: a rank that no log has at a greater length must be given
    now; else it is the more popular of two ranks picked at random from those that logs have up to here.
    """
    latest = {r: int(np.nonzero(np.equal(POPULARITY, r))[1].max()) for r in range(1, HEAD_VALUES + 1)}
    given = [1]
    for length in range(1, HEAD_VALUES):
        due = [r for r in latest if r not in given and latest[r] <= length]
        pool = [r for r in POPULARITY[:, : length + 1].ravel().tolist() if r not in given]
        given.append(min(due) if due else min(rng.choice(pool, size=2).tolist()))
    ranks = np.array(given[:values])
    return np.asarray(np.argsort(np.argsort(ranks)) + 1, np.int64)


def _tail_values(longest: int, count: int, distinct: int, taken: set[int]) -> NDArray[np.int64]:
    """Rare values, in whole minutes, shifted by 10 to 30 s where another value is there already."""
    scale, power = _TAIL_TIME
    a = 1 + scale * distinct**power
    x = np.arange(1, count + 1) / max(count, 1)
    minutes = np.rint((a - 1) * x / (a - x) * longest / _MINUTE).astype(np.int64)
    values: list[int] = []
    used = set(taken)
    for second in (minutes * _MINUTE).tolist():
        near = (second + shift for shift in (0, 30, -30, 20, -20, 10, -10))
        free = next((value for value in near if 0 < value < longest and value not in used), None)
        if free is not None:
            values.append(free)
            used.add(free)
    return np.array(values, np.int64)


def _tail_shares(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Shares among the rare values (sum 1), in random order."""
    ranks = np.arange(HEAD_VALUES + 1, HEAD_VALUES + 1 + count, dtype=np.float64)
    shares = ranks**_TAIL_EXPONENT
    return np.asarray(rng.permutation(shares / shares.sum()), np.float64)


def _apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to `shares` that sum to `total`, by largest remainders."""
    exact = shares / shares.sum() * total
    counts = np.floor(exact).astype(np.int64)
    largest = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[largest] += 1
    return np.asarray(counts)


@jit
def _shuffle_feasibly(run_time: Any, estimate: Any, uniform: Any) -> None:
    """Permute `estimate` in place so that none is shorter than its job.

    Both arrays fall, and estimate[j] >= run_time[j] for all j. Job after job, one of the remaining estimates
    that are long enough is drawn; how many there are does not depend on the draws before, so that all
    feasible permutations are equally likely.
    """
    jobs = len(run_time)
    high = 0
    for j in range(jobs):
        high = max(high, j)
        while high + 1 < jobs and estimate[high + 1] >= run_time[j]:
            high += 1
        k = j + int(uniform[j] * (high - j + 1))
        estimate[j], estimate[k] = estimate[k], estimate[j]


def with_estimates(workload: Workload, model: EstimateModel, *, seed: int) -> Workload:
    """Workload whose requested times are drawn from a model.

    Parameters
    ----------
    workload : Workload
        Every run time must be known.
    model : EstimateModel
    seed : int

    Returns
    -------
    Workload
        With new `requested_time`; run times cut and estimates raised by the model are counted in `repaired`.

    Raises
    ------
    WorkloadError
        Where a run time is not known, or the seed is no whole number from 0 on.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=1000, seed=1)
    >>> exact = gs.with_estimates(jobs, gs.Multiple(factor=2), seed=1)
    >>> bool((exact.requested_time == 2 * exact.run_time).all())
    True
    """
    seed = check_whole(f"{workload.name}: seed", seed, error=WorkloadError)
    unknown = int(np.count_nonzero(workload.run_time < 0))
    if unknown:
        raise WorkloadError(
            f"{workload.name}: {unknown} jobs have no run time to draw estimates for; clean the log first"
        )
    run_time = np.ceil(workload.run_time).astype(np.int64)
    estimates = model.draw(run_time, np.random.default_rng(seed))
    return replace(
        workload,
        run_time=estimates.run_time,
        requested_time=estimates.requested_time,
        repaired=add_counts(workload.repaired, repairs(estimates)),
    )


def with_prediction_errors(workload: Workload, deviation: float, *, seed: int) -> Workload:
    """Workload whose requested times are its run times times random factors.

    Parameters
    ----------
    workload : Workload
        The jobs.
    deviation : float
        Standard deviation of the logarithm of the factors, whose median is 1.
    seed : int
        Seed of the factors. Another deviation draws the same ones, farther apart.

    Raises
    ------
    WorkloadError
        If the deviation is negative, or the seed is no whole number from 0 on.
    """
    seed = check_whole("prediction errors: seed", seed, error=WorkloadError)
    check_number("prediction errors: deviation", deviation, least=0, error=WorkloadError)
    stream = np.random.SeedSequence(seed, spawn_key=(_ERRORS,))
    factors = np.exp(deviation * np.random.default_rng(stream).standard_normal(len(workload)))
    requested = np.maximum(np.rint(workload.run_time * factors), 1).astype(np.int64)
    digest = hashlib.sha256(f"{workload.checksum} {deviation!r} {seed}".encode())
    return replace(workload, requested_time=requested, checksum=digest.hexdigest())


def repairs(estimates: Estimates) -> dict[str, int]:
    """Counts of changed jobs by reason, as `Workload.repaired` holds them."""
    return {
        "run time cut at the longest estimate": estimates.jobs_cut,
        "estimate beyond the longest of the model": estimates.jobs_exempt,
        "drawn estimate raised to hold the run time": estimates.jobs_raised,
    }
