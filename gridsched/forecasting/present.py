"""When waiting jobs will start: quantiles from simulated futures and from what earlier forecasts teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, check_whole
from gridsched.forecasting.adjustment import HIGH, LEVELS, LOW, Adjustment, mixed, unmoved
from gridsched.forecasting.history import (
    Forecasts,
    feature_matrix,
    make_forecasts,
    probability_within,
    quantiles_of,
)
from gridsched.forecasting.learning import Forest, fit, followed, weight_of_forests
from gridsched.forecasting.on_nodes import PolicyOnNodes
from gridsched.forecasting.scenarios import Replayed, Scenarios
from gridsched.forecasting.snapshot import (
    Snapshot,
    Timeline,
    policy_of_run,
    recorded_timeline,
    timeline_of_run,
)
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName, PassName, named_policy
from gridsched.systems.request import check_policy_of
from gridsched.workloads.table import Workload

QUANTILES = (0.1, 0.5, 0.9)

_NOT_YET = -1
"""A start beyond the horizon."""

JOBS = 20
"""Jobs that are forecast at an earlier time at most."""

EFFORT = (600, 20)
"""Earlier times at which forecasts are made to learn from, and simulated futures of each."""

EFFORT_ON_NODES = (200, 10)
"""The same where each future is a run on nodes, which takes some milliseconds."""

CHECKED = 60
"""Earlier times at which forecasts are made only to see what their intervals held."""


@dataclass(frozen=True, eq=False)
class _Learned:
    """What earlier forecasts teach.

    Parameters
    ----------
    forest : Forest or None
        None where nothing is learned.
    weight : float
        Of the forest beside simulated futures.
    ends : Adjustment
        How far the ends of its intervals are moved.
    outcomes : int
        Known outcomes that it has learned from.
    checked : int
        Earlier forecasts of which it is known whether their intervals of 80 % held the start.
    held : float
        The share of those that did.
    """

    forest: Forest | None
    weight: float
    ends: Adjustment
    outcomes: int
    checked: int
    held: float


_NOTHING_LEARNED = _Learned(None, 1.0, unmoved(), 0, 0, float("nan"))


def forecast(
    queue: xr.Dataset | Workload | Timeline | Snapshot,
    now: int | None = None,
    *,
    policy: str | LocalPolicy | Replayed | None = None,
    quantiles: Sequence[float] = QUANTILES,
    within: int = 3600,
    futures: int = 100,
    adjust: int | None = None,
    seed: int = 0,
    threads: int = 1,
) -> xr.Dataset:
    """Quantiles of the start of every job that waits.

    Futures are simulated from the present queue on: run times are drawn from those of earlier jobs of the
    same user, given how long a job has run; jobs to come are drawn from the weeks before; the policy does the
    rest. What they say is corrected by what is learned from forecasts of earlier times and their outcomes.
    Nothing is used that was not known at the time: no later start, end or submission.

    Parameters
    ----------
    queue : xarray.Dataset, Workload, Timeline or Snapshot
        A run of one cluster; a clean log with recorded waits, whose queue was what it says; or a queue that
        `gridsched.forecasting.read_queue` has read.
    now : int, optional
        The time, seconds, after everything that happens then. A snapshot has its own.
    policy : str, LocalPolicy, CalibratedPolicy or PolicyOnNodes, optional
        The policy that goes on from there; by default that of the run, else EASY backfilling. For a log also
        what `gridsched.forecasting.calibrate` has fitted to it, or a policy on its nodes.
    quantiles : sequence of float
        Levels above 0 and below 1.
    within : int
        Seconds for the probability to start soon.
    futures : int
        How many are simulated.
    adjust : int, optional
        At how many earlier times waiting jobs are forecast to learn from, see
        `gridsched.forecasting.learning`; 0 gives the quantiles of the futures as they are. By default 600
        where the past is known, 200 with a policy on nodes, whose futures take longer; a snapshot has none.
    seed : int
        Of everything that is drawn.
    threads : int
        Threads that simulate futures. Results do not depend on it.

    Returns
    -------
    xarray.Dataset
        For each waiting job, in order of submission: `start` (job, quantile), seconds, -1 where it is beyond
        all that was simulated; `probability`, to start within the time; `expected_start`, if all estimates
        were right and nobody came; submit_time, processors, estimate, user. Attributes say what was known:
        among them `learned_from`, the outcomes of earlier forecasts that were learned from; `weight`, that of
        what was learned beside the futures themselves; `checked`, the earlier forecasts of the same kind of
        which it is known whether their intervals of 80 % held the start; `held`, the share of those that did;
        and on nodes `jobs_moved`, the running jobs that start later in futures than they did, for want of
        room beside the others.

    Raises
    ------
    ConfigurationError
        If nobody has submitted anything yet, the run is no run of counted processors under a local policy, or
        an option makes no sense.
    WorkloadError
        If a log has no recorded waits, or is not clean.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=800, seed=1, load_scale=1.5), scheduler="easy")
    >>> when = int(run.submit_time[600])
    >>> forecast = gs.forecast(run, when, adjust=60, futures=20)
    >>> bool((forecast.start.sel(quantile=0.9) >= forecast.start.sel(quantile=0.1)).all())
    True
    """
    levels = np.array(sorted(quantiles), np.float64)
    if not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ConfigurationError(f"quantiles are {list(quantiles)}; give levels above 0 and below 1")
    learns = not isinstance(queue, Snapshot) and adjust != 0
    if learns and not LEVELS[0] <= levels[0] <= levels[-1] <= LEVELS[-1]:
        raise ConfigurationError(
            f"quantiles are {list(quantiles)}; forecasts that learn have those from {LEVELS[0]:g} to "
            f"{LEVELS[-1]:g}; give some of these, or adjust=0"
        )
    futures = check_whole("futures", futures, least=1)
    adjust = None if adjust is None else check_whole("adjust", adjust)
    within, seed = check_whole("within", within), check_whole("seed", seed)
    threads = check_whole("threads", threads, least=1)
    chosen, conventions = _rules(queue, policy)
    timeline, snapshot = _state(queue, now)
    if timeline is None and adjust:
        raise ConfigurationError("adjust: a queue alone has no earlier forecasts; give a run or a log")
    learned = _NOTHING_LEARNED
    instants, drawn = effort_for(chosen)
    if timeline is not None and timeline.has_waited(snapshot.now):
        earlier = make_forecasts(
            timeline,
            chosen,
            conventions,
            instants=CHECKED if adjust == 0 else adjust or instants,
            jobs=JOBS,
            futures=drawn,
            seed=seed,
            methods=("futures",) if adjust == 0 else ("learned",),
            until=snapshot.now,
            threads=threads,
        )
        learned = _learned(earlier, snapshot.now)
    made = Scenarios(snapshot, chosen, conventions)
    ensemble = np.sort(made.starts(futures, seed, threads=threads).T - snapshot.now, axis=1)
    if learned.forest is not None and len(ensemble):
        everyone = np.arange(len(snapshot.waiting))
        simulated = quantiles_of(ensemble, LEVELS)
        known = learned.forest.quantiles(feature_matrix(made, everyone, simulated))
        ensemble = learned.ends.apply(mixed(known, simulated, learned.weight))
    return _dataset(snapshot, chosen, made, ensemble, levels, within, futures, seed, learned)


def effort_for(policy: LocalPolicy | Replayed) -> tuple[int, int]:
    """Earlier times to learn from, unless a number is given, and simulated futures of each."""
    return EFFORT_ON_NODES if isinstance(policy, PolicyOnNodes) else EFFORT


def _learned(earlier: Forecasts, now: int) -> _Learned:
    """What earlier forecasts teach, as far as their outcomes are known at a time."""
    age = (now - earlier.now).astype(np.float64)
    truth = np.where(earlier.truth <= age, earlier.truth, np.inf)
    futures, weight = earlier.remaining["futures"], 1.0
    made, ends, forest = futures, _NOTHING_LEARNED.ends, None
    if "learned" in earlier.methods:
        forest = fit(earlier.matrix, truth, age)
        if forest is not None:
            made, ends = followed(earlier.now, earlier.remaining["learned"], truth, now)
            weight = weight_of_forests(earlier.of_forests, futures, truth, age)
    low, high = made[:, LOW], made[:, HIGH]
    decided = np.isfinite(low) & (np.minimum(truth, high) <= age)
    held = ((truth >= low) & (truth <= high))[decided]
    return _Learned(
        forest,
        weight,
        ends,
        0 if forest is None else len(forest.outcome),
        len(held),
        float(held.mean()) if len(held) else float("nan"),
    )


def _rules(
    queue: xr.Dataset | Workload | Timeline | Snapshot, policy: str | LocalPolicy | Replayed | None
) -> tuple[LocalPolicy | Replayed, Conventions]:
    """Policy and conventions of the futures."""
    if isinstance(policy, Replayed):
        if isinstance(queue, xr.Dataset):
            raise ConfigurationError("policy: it continues from recorded queues; leave it out for a run")
        return policy, Conventions()
    if not isinstance(queue, xr.Dataset):
        return named_policy("easy" if policy is None else policy), Conventions()
    conventions = Conventions(
        cast(OverrunName, str(queue.attrs["overrun"])), cast(PassName, str(queue.attrs["passes"]))
    )
    if policy is not None:
        return named_policy(policy), conventions
    own = named_policy(policy_of_run(queue))
    check_policy_of(queue, own)
    return own, conventions


def _state(
    queue: xr.Dataset | Workload | Timeline | Snapshot, now: int | None
) -> tuple[Timeline | None, Snapshot]:
    """The queue at the time, and what it is cut from."""
    if isinstance(queue, Snapshot):
        if now is not None and now != queue.now:
            raise ConfigurationError(f"now is {now}; the queue is that of {queue.now}, leave it out")
        return None, queue
    if now is None:
        raise ConfigurationError("now: say at which time, in seconds")
    if isinstance(queue, xr.Dataset):
        queue = timeline_of_run(queue)
    elif isinstance(queue, Workload):
        queue = recorded_timeline(queue)
    return queue, queue.at(int(now))


def _dataset(
    snapshot: Snapshot,
    policy: LocalPolicy | Replayed,
    made: Scenarios,
    ensemble: NDArray[np.float64],
    levels: NDArray[np.float64],
    within: int,
    futures: int,
    seed: int,
    learned: _Learned,
) -> xr.Dataset:
    """Dataset of a forecast."""
    waiting = snapshot.past[snapshot.waiting]
    starts = snapshot.now + quantiles_of(ensemble, levels)
    whole = np.where(np.isfinite(starts), np.round(starts), _NOT_YET).astype(np.int64)
    if learned.forest is None:
        soon = np.asarray((ensemble <= within).mean(axis=1))
    else:
        soon = probability_within(ensemble, within)
    expected = made.expected if len(waiting) else np.empty(0, np.int64)
    return xr.Dataset(
        {
            "start": (("job", "quantile"), whole, _attributes("start, -1 beyond all futures", "s")),
            "probability": ("job", soon, _attributes(f"probability to start within {within} s", "1")),
            "expected_start": ("job", expected, _attributes("start if all estimates were right", "s")),
            "submit_time": ("job", waiting["submit"], _attributes("submit time", "s")),
            "processors": ("job", waiting["processors"], _attributes("processors", "1")),
            "estimate": ("job", waiting["estimate"], _attributes("estimated run time", "s")),
            "user": ("job", waiting["user"], _attributes("user number", "1")),
        },
        coords={"quantile": levels, "job_number": ("job", waiting["number"])},
        attrs={
            "title": "when waiting jobs will start",
            "now": snapshot.now,
            "policies": policy.name,
            "processors": snapshot.processors,
            "processors_free": snapshot.free,
            "jobs_running": len(snapshot.running),
            "jobs_waiting": len(waiting),
            "jobs_finished": len(snapshot.finished),
            "futures": futures,
            "seed": seed,
            "learned_from": learned.outcomes,
            "weight": learned.weight,
            "checked": learned.checked,
            "held": learned.held,
            **({"jobs_moved": policy.moved(snapshot)} if isinstance(policy, PolicyOnNodes) else {}),
        },
    )


def _attributes(long_name: str, units: str) -> dict[str, Any]:
    return {"long_name": long_name, "units": units}
