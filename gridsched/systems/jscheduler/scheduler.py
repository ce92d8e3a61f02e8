"""JScheduler: every job asks K clusters of a large grid, and goes where its metric is best.

Guim, Garcia, Rodero and Corbalan, "The XtreemOS JScheduler: using self-scheduling techniques in large
computing architectures" (2008), sections 3.1, 4 and 6.1. A directory (the ADS) names K clusters that can
hold the job, drawn uniformly. The job's own scheduler (the jScheduler, which keeps nothing from one job to
the next) predicts its run time, asks each cluster for its wait, and chooses. Metrics by name:

===============  ==========================================================================================
``wait``         LWT-pred of the paper: predicted wait
``slowdown``     LSLD-pred: (predicted wait + predicted run time) / predicted run time, both on the cluster
``response``     predicted wait + predicted run time; a slowdown against a cluster of speed 1 prefers the same
``queued-jobs``  Less-Queued-Jobs, an older policy: number of waiting jobs
``work-left``    Less-WorkLeft, an older policy: processor-seconds that running and waiting jobs are expected
                 to take still, for each processor of the cluster
===============  ==========================================================================================

Where the paper is silent:

- Ties go to the smaller predicted completion, then to the cluster that was named first (`ties`); the older
  policies predict nothing, so theirs go to the first.
- A job that only one cluster can hold, or that asks for one, goes there unasked.
- The local schedulers and the predictions use the same estimates of run times.
- The paper draws each of the K clusters anew (section 5), which may name one twice; here they differ unless
  `sampling` says otherwise.

Predicted waits come in two modes, see `gridsched.engine.clusters`. What happens in which order at
one instant is said in `kernel`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.clusters import StartPredictions
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies.callbacks import Kind
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices, check_values, is_whole
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.grids import CountedGrid
from gridsched.systems.jscheduler import kernel as self_scheduling
from gridsched.systems.jscheduler.costs import COST, Cost, predicted_wait
from gridsched.systems.node_grids import grid_for

MetricName = Literal["wait", "slowdown", "response", "queued-jobs", "work-left"]
PredictionsName = Literal["exact", "plan"]
TiesName = Literal["completion", "first"]
SamplingName = Literal["distinct", "repeated", "normal", "home"]
KPerName = Literal["job", "processor"]

_METRICS: dict[str, self_scheduling.SelfSchedulingMetric] = {
    name: self_scheduling.SelfSchedulingMetric[name.upper().replace("-", "_")]
    for name in get_args(MetricName)
}

_OWN = self_scheduling.SelfSchedulingMetric.OWN

_DRAWN_AT_ONCE = 2**17
"""Random numbers of a block of samples."""

_MAX_RESOURCES = 2**15 - 1
"""Indices of clusters are stored in 16 bits."""

_KEPT = 64
"""Clusters that are drawn for each job at least, so that runs that ask more need not draw again."""


@dataclass(frozen=True, kw_only=True)
class JScheduler(Scheduler):
    """What jobs want, and how many clusters they ask.

    Parameters
    ----------
    metric : str or Cost
        ``wait``, ``slowdown``, ``response``, ``queued-jobs`` or ``work-left``, for jobs that name none; or a
        function of one's own, see `costs`.
    k : int
        Clusters that a job asks; all that can hold it if these are fewer. A grid that has fewer clusters than
        k is a warning, and the attribute `clusters_asked` of the run says how many were asked at most. The
        sample of each job for k clusters begins that for more.
    predictions : {"exact", "plan"}
        Where predicted waits come from.
    ties : {"completion", "first"}
        Which of several equally good clusters a job takes: the one with the smallest predicted completion,
        then the first that was named, or the first that was named at once.
    sampling : {"distinct", "repeated", "normal", "home"}
        How the clusters that a job asks are drawn of those that can hold it: different ones, all alike; each
        anew, so that one may come twice; each anew by a normal distribution around the middle of the
        directory, a sixth of it wide (both readings of section 5 of the paper); or different ones, the first
        of them that where the job is submitted.
    k_per : {"job", "processor"}
        Whether a job asks k clusters, or k for each processor that it asks for (section 6.3.2 of the paper
        can be read so), but no more than can hold it.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range.
    """

    metric: MetricName | Cost = "wait"
    k: int = 10
    predictions: PredictionsName = "exact"
    ties: TiesName = "completion"
    sampling: SamplingName = "distinct"
    k_per: KPerName = "job"

    system: ClassVar[str] = "jscheduler"
    knows: ClassVar[str] = "predicted starts on the clusters asked, by each job for itself"
    functions: ClassVar[Mapping[str, Kind]] = {"metric": COST}
    cannot: ClassVar[Mapping[str, str]] = {
        "arrays": "a cluster counts its own tasks, not those that run elsewhere",
        "passes": "predicted starts assume one pass for all events of an instant",
        "message delay": "queries of a job take no time in the paper",
        "migration delay": "a job is submitted to a cluster once, and does not move",
        "deadlines": "jobs minimise wait or slowdown and have no deadline",
        "reservations": "jobs start as soon as they can",
        "membership": "the directory of clusters is fixed",
        "changes": "predicted waits assume fixed processors of a cluster",
        "preemption": "a job that has started runs to its end",
    }

    def __post_init__(self) -> None:
        if callable(self.metric):
            COST.parameters_of(self.metric)
        elif self.metric not in _METRICS:
            raise ConfigurationError(
                f"metric is {self.metric!r}; use one of {', '.join(_METRICS)}, or a function"
            )
        check_choices(self)
        check_values(self, {"k": (is_whole(self.k, 1), "a whole number from 1 on")})

    @property
    def information(self) -> str:
        """What jobs have to know; one that may ask a single cluster has no choice."""
        return (
            self.knows if self.k > 1 else "nothing: one cluster is drawn at random, of those that can hold it"
        )

    @property
    def draws(self) -> bool:
        """The clusters that jobs ask."""
        return True

    def schedule(self, submission: Submission) -> Schedule:
        """Let every job choose among clusters."""
        clusters = len(submission.clusters)
        if self.k > clusters:
            there = "is 1 cluster" if clusters == 1 else f"are {clusters} clusters"
            warnings.warn(
                f"JScheduler: k is {self.k}, but there {there}: every job asks all that can hold it, "
                f"as with k={clusters}",
                stacklevel=3,
            )
        simulation = Simulation(submission, self)
        simulation.run()
        return simulation.result()


class Simulation:
    """A simulation that can be halted, so that estimates of jobs to come can be given while it runs.

    Parameters
    ----------
    submission : Submission
        The jobs and the grid; all local policies whose order is a score must share it.
    jscheduler : JScheduler
        What jobs want.
    samples : int16[n, ...], optional
        Clusters that each job may ask, see `draw_samples`, at least as many as it asks; drawn if not given.
        Where `k_per` is "processor", those that are given are all that each job asks.
    estimates_follow : bool
        Whether all estimates are given while the simulation runs, see `estimate`. Those of the submission
        then only say which jobs limits of processor-minutes reject.

    Raises
    ------
    ConfigurationError
        If clusters, policies, jobs and samples do not go together.
    """

    def __init__(
        self,
        submission: Submission,
        jscheduler: JScheduler,
        *,
        samples: NDArray[np.int16] | None = None,
        estimates_follow: bool = False,
    ) -> None:
        clusters, workload, number = submission.clusters, submission.workload, len(submission)
        self._options = self_scheduling.JSchedulerOptions(
            overrun=overrun_code(submission.conventions.overrun),
            predictions=int(StartPredictions[jscheduler.predictions.upper()]),
            metric=int(_OWN if callable(jscheduler.metric) else _METRICS[jscheduler.metric]),
            resources=most_asked(jscheduler, workload.processors, len(clusters)),
            first=int(jscheduler.ties == "first"),
        )
        self._grid = grid_for(submission, StartPredictions(self._options.predictions))
        self._jobs = self._grid.state.requests
        if estimates_follow:
            self._jobs["estimate"] = 1
        self._grid.check_estimates(self._jobs)
        asked = self._options.resources
        given = workload.processors, jscheduler, submission.seed, submission.home
        if samples is not None:
            _check_samples(samples, self._grid.can_hold, clusters, asked, number)
        elif isinstance(self._grid, CountedGrid):
            samples = draw_samples(given[0], clusters, *given[1:])
        else:
            samples = draw_samples_of(self._grid.can_hold, given[0], len(clusters), *given[1:])
        self._cost = jscheduler.metric if callable(jscheduler.metric) else predicted_wait
        self._directory = self_scheduling.Directory(
            sample=np.ascontiguousarray(samples, np.int16),
            starts=np.empty(asked, np.int64),
            cost=COST.compile(self._cost),
        )
        self._counters = {
            "clusters_asked": asked,
            "metric": COST.named(self._cost) if callable(jscheduler.metric) else jscheduler.metric,
        }

    def run(self, until: int = FOREVER) -> None:
        """Go on until before the first instant at or after this time [s], by default to the end."""
        while (stop := self._schedule(until)) == self_scheduling.Stop.NEEDS_ROOM:
            self._grid.make_room()
        self._grid.check_order()
        if stop == self_scheduling.Stop.FAILED:
            job = int(np.flatnonzero(self._grid.state.cluster == self_scheduling.NOT_A_NUMBER)[0])
            asked = self._jobs[job]
            raise COST.not_a_number(
                self._cost,
                f"the job at index {job}, submitted at {asked['submit']} s "
                f"for {asked['processors']} processors",
            )

    def _schedule(self, until: int) -> int:
        grid = self._grid
        return int(
            self_scheduling.schedule(
                grid.state, self._directory, grid.local, until, self._options, grid.score
            )
        )

    def estimate(self, jobs: NDArray[np.int64], seconds: NDArray[np.int64]) -> None:
        """Give estimates [s] of jobs, by index, that are not submitted yet.

        Raises
        ------
        ConfigurationError
            If one is below 1, too long for the slowest cluster, or of a job that was submitted.
        """
        if len(jobs) and int(jobs.min()) < self._grid.submitted:
            raise ConfigurationError(f"estimate: job {int(jobs.min())} is submitted already; give it before")
        if len(seconds) and not 1 <= int(np.min(seconds)) <= int(np.max(seconds)) <= LARGEST:
            raise ConfigurationError(
                f"estimates from {np.min(seconds)} to {np.max(seconds)} s; use 1 to {LARGEST} s"
            )
        given = self._jobs[jobs]
        given["estimate"] = seconds
        self._grid.check_estimates(given)
        self._jobs["estimate"][jobs] = seconds

    def is_rejected(self, jobs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether no cluster can hold jobs, by index."""
        rejected: NDArray[np.bool_] = self._directory.sample[jobs, 0] < 0
        return rejected

    def ends(self, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """When jobs end that have started, by index [s]; -1 for the others.

        One that has been killed has not ended.
        """
        return self._grid.ends(jobs)

    def is_gone(self, jobs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether jobs, by index, have left without an end of their own: given up, never eligible, lost."""
        return self._grid.is_gone(jobs)

    def result(self) -> Schedule:
        """The schedule as far as it is known; jobs that no cluster can hold have run times as submitted."""
        return self._grid.schedule({**self._counters, "queries": self._grid.queries})


def draw_samples(
    processors: NDArray[Any],
    resources: Sequence[Cluster],
    jscheduler: JScheduler,
    seed: int,
    home: NDArray[Any] | None = None,
) -> NDArray[np.int16]:
    """Clusters that the directory names to each job.

    Parameters
    ----------
    processors : int[n]
        Processors that each job asks for.
    resources : sequence of Cluster
        The grid.
    jscheduler : JScheduler
        How many clusters a job asks, and how they are drawn.
    seed : int
        Seed of the draws.
    home : int[n], optional
        Index of the cluster where each job is submitted; -1 if nowhere.

    Returns
    -------
    int16[n, ...]
        Indices of clusters that can hold the job, in the order of asking, then -1 where these are fewer: by
        default the first k of a random permutation. The first columns are the same for every k.
    """
    own = _homes(home, len(processors), len(resources))
    same = jscheduler.sampling in ("distinct", "home")
    k = most_asked(jscheduler, processors, len(resources))
    drawn = _drawn(
        np.asarray(processors, np.int64).tobytes(),
        _sizes(resources),
        own.tobytes(),
        jscheduler.sampling,
        min(max(k, _KEPT), len(resources)) if same else k,
        seed,
    )
    return _limited(drawn[:, :k], processors, jscheduler)


@lru_cache(maxsize=1)
def _drawn(
    processors: bytes, sizes: Sizes, home: bytes, sampling: SamplingName, k: int, seed: int
) -> NDArray[np.int16]:
    """What `draw_samples` draws: kept for the next run, since those of a study mostly differ in k alone."""
    held = _held_by(np.frombuffer(processors, np.int64), sizes)
    return _draw_blocks(held, len(sizes), np.frombuffer(home, np.int16), sampling, k, seed)


def most_asked(jscheduler: JScheduler, processors: NDArray[Any], resources: int) -> int:
    """How many clusters a job asks at most."""
    each = int(np.max(processors, initial=1)) if jscheduler.k_per == "processor" else 1
    return min(jscheduler.k * each, resources)


Held = Callable[[int], NDArray[np.bool_]]
"""Whether a cluster, by index, can hold each job."""

Sizes = tuple[tuple[int, int], ...]
"""Of each cluster, the processors that it gives to jobs in one piece, and all of them."""


def _sizes(resources: Sequence[Cluster]) -> Sizes:
    return tuple((each.unit, each.processors) for each in resources)


def _held_by(processors: NDArray[np.int64], sizes: Sizes) -> Held:
    """Who can hold jobs of so many processors."""

    def held(m: int) -> NDArray[np.bool_]:
        unit, size = sizes[m]
        fits: NDArray[np.bool_] = processors <= size // unit * unit
        return fits

    return held


def draw_samples_of(
    held: Held,
    processors: NDArray[Any],
    resources: int,
    jscheduler: JScheduler,
    seed: int,
    home: NDArray[Any],
) -> NDArray[np.int16]:
    """Clusters that the directory names to each job, see `draw_samples`."""
    k = most_asked(jscheduler, processors, resources)
    drawn = _draw_blocks(held, resources, home, jscheduler.sampling, k, seed)
    return _limited(drawn, processors, jscheduler)


def _limited(
    samples: NDArray[np.int16], processors: NDArray[Any], jscheduler: JScheduler
) -> NDArray[np.int16]:
    """Samples of no more clusters than each job may ask."""
    if jscheduler.k_per == "job":
        return samples
    most = jscheduler.k * np.asarray(processors, np.int64)
    return np.where(np.arange(samples.shape[1]) < most[:, np.newaxis], samples, np.int16(-1))


def _draw_blocks(
    held: Held, resources: int, home: NDArray[Any], sampling: SamplingName, k: int, seed: int
) -> NDArray[np.int16]:
    """Samples of k clusters, drawn block by block of jobs."""
    if resources > _MAX_RESOURCES:
        raise ConfigurationError(f"{resources} clusters; at most {_MAX_RESOURCES} can be simulated")
    samples = np.empty((len(home), k), np.int16)
    random = np.random.default_rng(seed)
    fits = np.array([held(m) for m in range(resources)])
    size = -(-_DRAWN_AT_ONCE // resources)
    for begin in range(0, len(home), size):
        block = slice(begin, begin + size)
        holding = np.ascontiguousarray(fits[:, block].T)
        if sampling in ("repeated", "normal"):
            samples[block] = _draw_anew(random, holding, k, sampling)
        else:
            samples[block] = _draw(random, holding, k, home[block] if sampling == "home" else None)
    return samples


def _draw(
    random: np.random.Generator, holding: NDArray[np.bool_], k: int, home: NDArray[Any] | None
) -> NDArray[np.int64]:
    """First k clusters of a random permutation, for each job, of those that can hold it; then -1.

    The permutation sorts numbers whose high bits are random and whose low ones are the index of the cluster.
    Those of the jobs' homes, if they count, are the smallest.
    """
    jobs, resources = holding.shape
    bits = resources.bit_length()
    nowhere = np.iinfo(np.int64).max
    keys = random.integers(2 ** (62 - bits), size=(jobs, resources))
    keys <<= bits
    keys |= np.arange(resources)
    if home is not None:
        known = np.flatnonzero(home >= 0)
        keys[known, home[known]] = home[known]
    keys[~holding] = nowhere
    keys.sort(axis=1)
    first = keys[:, :k]
    return np.where(first == nowhere, -1, first & (2**bits - 1))


_NORMAL_WIDTH = 1 / 6
"""Standard deviation of the place that is drawn, relative to the length of the directory."""


def _draw_anew(
    random: np.random.Generator, holding: NDArray[np.bool_], k: int, sampling: SamplingName
) -> NDArray[np.int64]:
    """K clusters, for each job, of those that can hold it, each drawn without regard to the others."""
    # Clusters that can hold the job, in the order of the directory, then the others
    directory = np.argsort(~holding, axis=1, kind="stable")
    length = holding.sum(axis=1)[:, np.newaxis]
    if sampling == "normal":
        place = random.normal(0.5, _NORMAL_WIDTH, (len(holding), k))
    else:
        place = random.random((len(holding), k))
    index = np.clip((place * length).astype(np.int64), 0, np.maximum(length - 1, 0))
    drawn: NDArray[np.int64] = np.take_along_axis(directory, index, axis=1)
    return np.where(length > 0, drawn, -1)


def _check_samples(
    samples: NDArray[np.int16], held: Held, resources: Sequence[Cluster], k: int, jobs: int
) -> None:
    """Refuse samples of other jobs or grids, or of too few clusters."""
    if samples.ndim != 2 or len(samples) != jobs or samples.shape[1] < min(k, len(resources)):
        raise ConfigurationError(f"samples: shape {samples.shape} for {jobs} jobs that ask {k} clusters each")
    asked = samples[:, :k]
    if asked.size and not -1 <= int(asked.min()) <= int(asked.max()) < len(resources):
        raise ConfigurationError(f"samples: give indices of the {len(resources)} clusters, or -1")
    for m, resource in enumerate(resources):
        too_large = ~held(m)
        if too_large.any() and (asked[too_large] == m).any():
            raise ConfigurationError(f"samples: cluster {resource.name} is named to a job it cannot hold")


def _homes(home: NDArray[Any] | None, jobs: int, resources: int) -> NDArray[np.int16]:
    """Where jobs are submitted, as the engine knows it."""
    if home is None:
        return np.full(jobs, -1, np.int16)
    given = np.asarray(home)
    if given.shape != (jobs,) or (jobs and not -1 <= int(given.min()) <= int(given.max()) < resources):
        raise ConfigurationError(
            f"home: give the index of one of the {resources} clusters, or -1, for each of the {jobs} jobs"
        )
    return given.astype(np.int16)


SCHEDULER = JScheduler

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"jscheduler": JScheduler}
"""The system by name."""
