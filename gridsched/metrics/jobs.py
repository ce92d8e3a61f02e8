"""What a schedule was worth: metrics of jobs and of the system, with intervals.

Job-level functions work on plain arrays in seconds. `summarise` condenses a run dataset to means with
confidence intervals, quantiles and time series, by job class; `difference` compares two such summaries by
batches of the same jobs. Job-level metrics follow Feitelson and Rudolph, "Metrics and benchmarking for
parallel job scheduling" (JSSPP 1998); job classes Srinivasan et al., "Characterization of backfilling
strategies for parallel job scheduling" (ICPP Workshops 2002).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from gridsched import inference
from gridsched.errors import ConfigurationError, check_number, check_whole
from gridsched.workloads.usage import Steps, steps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLOWDOWN_THRESHOLD = 10
"""Shortest run time [s] that counts as such in the bounded slowdown."""

LONG_RUN_TIME = 3600
"""Longest run time [s] of a short job."""

WIDE_PROCESSORS = 8
"""Most processors of a narrow job."""

JOB_CLASSES: tuple[str, ...] = ("all", "short narrow", "short wide", "long narrow", "long wide")
"""Names of the job classes; `job_classes` gives the index of each job's own class, 1 to 4."""

QUANTILES: Floats = np.append(np.arange(1, 100) / 100, 0.999)
"""Quantiles that a summary holds."""

METRICS: dict[str, tuple[str, str]] = {
    "wait_time": ("wait time", "s"),
    "response_time": ("response time", "s"),
    "slowdown": ("slowdown", "1"),
    "bounded_slowdown": ("bounded slowdown", "1"),
}
"""Job-level metrics of a summary: long name and unit by variable name."""

BATCHES = 128
"""Batches of consecutive jobs in which a run is looked at."""

RECORDED = "recorded"
"""Scheme of the run that a log itself recorded."""

NOT_STARTED = -1
"""Start and end time of a job that was rejected."""

COMPLETED, GAVE_UP = 0, 2
"""Values of the variable `fate`, where a run has it: of a job that ended, and whose user gave up waiting."""


SinceName = Literal["submit", "eligible"]
"""What waits count from: the submission, or when all that a job depends on was met as well."""


# --- metrics of jobs ------------------------------------------------------------------------------


def wait_time(submit_time: ArrayLike, start_time: ArrayLike) -> Floats:
    """Seconds from submission to the first start: start - submit.

    Parameters
    ----------
    submit_time, start_time : array_like
        Seconds, one entry a job.
    """
    return np.subtract(start_time, submit_time, dtype=np.float64)


def response_time(submit_time: ArrayLike, end_time: ArrayLike) -> Floats:
    """Seconds from submission to completion (turnaround): end - submit.

    Equals wait + run for a job that runs in one piece; a preempted job also counts the time it was stopped.

    Parameters
    ----------
    submit_time, end_time : array_like
        Seconds, one entry a job.
    """
    return np.subtract(end_time, submit_time, dtype=np.float64)


def slowdown(response_time: ArrayLike, run_time: ArrayLike) -> Floats:
    """Response time relative to the run time: response / max(run, 1 s).

    The floor of one second defines the slowdown of jobs that a log rounds to zero seconds; it makes the
    slowdown of such a job smaller than 1 if it waited less than a second.

    Parameters
    ----------
    response_time, run_time : array_like
        Seconds, one entry a job.
    """
    return np.asarray(response_time, np.float64) / np.maximum(np.asarray(run_time, np.float64), 1.0)


def bounded_slowdown(
    response_time: ArrayLike, run_time: ArrayLike, threshold: float = SLOWDOWN_THRESHOLD
) -> Floats:
    """Slowdown that very short jobs cannot dominate: max(1, response / max(run, threshold)).

    For a job that runs in one piece response is wait + run, and this is the formula of Feitelson and
    Rudolph (1998).

    Parameters
    ----------
    response_time, run_time : array_like
        Seconds, one entry a job.
    threshold : float
        Run time [s] below which jobs count as equally short; positive.
    """
    bounded_run = np.maximum(np.asarray(run_time, np.float64), threshold)
    return np.maximum(1.0, np.asarray(response_time, np.float64) / bounded_run)


def job_classes(
    run_time: ArrayLike,
    processors: ArrayLike,
    *,
    long_run_time: float = LONG_RUN_TIME,
    wide_processors: int = WIDE_PROCESSORS,
) -> Integers:
    """Class of each job as an index of `JOB_CLASSES`, 1 to 4 (Srinivasan et al. 2002).

    Parameters
    ----------
    run_time : array_like
        Seconds; a job is long if it ran longer than `long_run_time`.
    processors : array_like
        Processors asked for; a job is wide if they are more than `wide_processors`.
    """
    is_long = np.asarray(run_time) > long_run_time
    is_wide = np.asarray(processors) > wide_processors
    return 1 + is_wide + 2 * is_long.astype(np.int64)


def job_metrics(
    run: xr.Dataset, *, slowdown_threshold: float = SLOWDOWN_THRESHOLD, since: SinceName = "submit"
) -> dict[str, Floats]:
    """Every metric of `METRICS` for every job of a run dataset, NaN for rejected jobs."""
    submit, run_time = run[f"{since}_time"].to_numpy(), run["run_time"].to_numpy()
    started = _started(run)
    response = np.where(started, response_time(submit, run["end_time"].to_numpy()), np.nan)
    return {
        "wait_time": np.where(started, wait_time(submit, run["start_time"].to_numpy()), np.nan),
        "response_time": response,
        "slowdown": slowdown(response, run_time),
        "bounded_slowdown": bounded_slowdown(response, run_time, slowdown_threshold),
    }


def quotient(part: ArrayLike, whole: ArrayLike) -> Floats:
    """Parts of wholes, NaN where the whole is not positive."""
    parts, wholes = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.asarray(np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0))


def _started(run: xr.Dataset) -> NDArray[np.bool_]:
    return np.asarray(run["start_time"].to_numpy() != NOT_STARTED)


# --- batches -------------------------------------------------------------------------------------


def batch_means(values: ArrayLike, batches: int = BATCHES) -> tuple[Floats, Floats]:
    """Means of consecutive batches of equally many jobs, and how many values each of them has.

    They are units of `gridsched.inference` with ``serial=True``, the numbers their weights.

    Parameters
    ----------
    values : array_like
        One value a job in submit order; NaN where a job has none. Such jobs keep their place, so that two
        schemes of one workload have the same jobs in the same batch.
    batches : int
        Number of batches; sizes differ by one job at most.

    Returns
    -------
    means, numbers : float64[batches]
        The mean is NaN for a batch without a known value.
    """
    data = np.asarray(values, np.float64)
    batch = np.arange(len(data)) * batches // max(len(data), 1)
    known = ~np.isnan(data)
    counts = np.bincount(batch[known], minlength=batches)
    sums = np.bincount(batch[known], weights=data[known], minlength=batches)
    return quotient(sums, counts), counts.astype(np.float64)


def relaxations(run: xr.Dataset, since: SinceName = "submit") -> float:
    """How many times the memory of its queue a run holds, see `gridsched.inference.relaxations`.

    Each cluster of a grid has a queue of its own, see `relaxations_of_queues`. NaN for fewer than three jobs
    that ran.
    """
    waited, submit, until = waits(run, since)
    where = np.zeros(len(waited), np.int64)
    if "segment_job" in run and run.sizes["cluster"] > 1:
        where[:] = -1
        where[run["segment_job"].to_numpy()] = run["segment_cluster"].to_numpy()
    work = (run["processors"] * run["run_time"]).to_numpy().astype(np.float64)
    own = waited & (where >= 0)
    return relaxations_of_queues(where[own], submit[own], until[own], work[own], observed(run))


def relaxations_of_queues(
    where: NDArray[np.int64],
    submit: NDArray[Any],
    until: NDArray[Any],
    work: Floats,
    window: tuple[float, float],
) -> float:
    """How many times several queues hold their memory: that of each counts by its share w of all waiting.

    1 / sqrt(r) is the sum of w / sqrt(r of the queue), as if all were congested at the same times. Queues of
    fewer than three jobs do not count; NaN without any other.

    Parameters
    ----------
    where : int array
        Queue of each job.
    submit, until : array
        When a job begins and ends to wait [s].
    work : float64 array
        Processors times run time.
    window : (float, float)
        Begin and end of what was observed [s].
    """
    found, waits = [], []
    # short integers are sorted in a tenth of the time
    order = np.argsort(where.astype(np.min_scalar_type(where.max(initial=0))), kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(where[order])) + 1):
        if len(own) < 3:
            continue
        ones = np.ones(len(own), np.int64)
        queue = steps(np.concatenate([submit[own], until[own]]), np.concatenate([ones, -ones]))
        busy = time_average(Steps(queue.time, queue.value > 0), window)[0] if len(queue.time) else 0.0
        gaps = np.diff(np.sort(submit[own])).astype(np.float64)
        parts = [each.var() / each.mean() ** 2 for each in (work[own], gaps) if each.mean() > 0]
        found.append(float(inference.relaxations(len(ones), busy, sum(parts))))
        waits.append(float((until[own] - submit[own]).sum()))
    shares = np.array(waits) / sum(waits) if sum(waits) > 0 else np.full(len(waits), 1 / max(len(waits), 1))
    with np.errstate(divide="ignore"):
        error = float((shares[shares > 0] / np.sqrt(np.array(found)[shares > 0])).sum())
    return error**-2 if found and error > 0 else np.nan


# --- metrics of the system ------------------------------------------------------------------------


def time_average(function: Steps, edges: ArrayLike) -> Floats:
    """Exact time averages of a step function between consecutive edges; NaN between equal edges.

    The integral of a step function is piecewise linear in time, so that interpolating it at the edges
    loses nothing.

    Parameters
    ----------
    function : Steps
    edges : array_like
        Seconds, increasing.
    """
    bounds = np.asarray(edges, np.float64)
    widths = np.diff(bounds)
    if not len(function.time):
        return np.where(widths > 0, 0.0, np.nan)
    times = function.time.astype(np.float64)
    if times[-1] < bounds[-1]:
        times = np.append(times, bounds[-1])
    integral = np.append(0.0, np.cumsum(function.value[: len(times) - 1] * np.diff(times)))
    parts = np.diff(np.interp(bounds, times, integral))
    return quotient(parts, widths)


def busy_processors(run: xr.Dataset) -> Steps:
    """Processors that are allocated to jobs, over all clusters, as a step function."""
    processors = run["segment_processors"].to_numpy()
    times = np.concatenate([run["segment_start"].to_numpy(), run["segment_end"].to_numpy()])
    return steps(times, np.concatenate([processors, -processors]))


def queue_length(run: xr.Dataset, since: SinceName = "submit") -> Steps:
    """Jobs that have been submitted and have not started for the first time, as a step function.

    A job whose user gives up waits until then.
    """
    waited, submit, until = waits(run, since)
    ones = np.ones(int(waited.sum()), np.int64)
    return steps(np.concatenate([submit[waited], until[waited]]), np.concatenate([ones, -ones]))


def waits(run: xr.Dataset, since: SinceName) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[Any]]:
    """Which jobs waited, and when they began and ended to; a job whose user gives up waits until then."""
    waited = _started(run)
    submit, until = run[f"{since}_time"].to_numpy(), run["start_time"].to_numpy()
    if "gives_up_time" in run:
        gave_up = run["fate"].to_numpy() == GAVE_UP
        until = np.where(gave_up, np.maximum(run["gives_up_time"].to_numpy(), submit), until)
        waited = waited | gave_up
    return waited, submit, until


def productivity(run: xr.Dataset) -> float:
    """Jobs a day that ended between the first and the last submission; none where there is no time between.

    Where users react (`gridsched.workloads.feedback`), a scheduler that serves them sooner gets more jobs in
    the same time. Elsewhere it says how much of the work was left in the end.
    """
    submit, end = run["submit_time"].to_numpy(), run["end_time"].to_numpy()
    started = _started(run)
    if not started.any() or submit.max() == submit.min():
        return np.nan
    return float((started & (end <= submit.max())).sum() / (submit.max() - submit.min()) * 86_400)


def makespan(run: xr.Dataset) -> float:
    """Seconds from the first submission to the last end of the jobs that ran; NaN for an empty run."""
    first, last = observed(run)
    return last - first


def utilisation(run: xr.Dataset) -> float:
    """Share of the processors that was allocated between the first and the last submission.

    This is the window in which a system is offered work (Feitelson, "Workload Modeling for Computer Systems
    Performance Evaluation", section 10.2, leaves out warm-up and cool-down; Frachtenberg and Feitelson,
    "Pitfalls in parallel job scheduling evaluation", JSSPP 2005). It is the same for all schedulers, and jobs
    that still run after it do not stretch it. NaN for a run without segments, or whose jobs are all submitted
    at one instant, for which see `utilisation_makespan`.
    """
    return _utilisation(run, submitted(run))


def utilisation_makespan(run: xr.Dataset) -> float:
    """Share of the processors that was allocated between the first submission and the last end.

    One long job at the end makes it small, whatever the scheduler does: it suits a closed set of jobs. NaN
    for a run without segments or without duration.
    """
    return _utilisation(run, observed(run))


def _utilisation(run: xr.Dataset, window: tuple[float, float]) -> float:
    capacity = _total_processors(run) * (window[1] - window[0])
    if not (run.sizes["segment"] and capacity > 0):
        return np.nan
    return float((run["segment_processors"].to_numpy() * seconds_within(run, window)).sum() / capacity)


def seconds_within(run: xr.Dataset, window: tuple[float, float]) -> Floats:
    """Seconds of each segment of a run that lie between two times."""
    start, end = run["segment_start"].to_numpy(), run["segment_end"].to_numpy()
    return np.asarray(np.clip(np.minimum(end, window[1]) - np.maximum(start, window[0]), 0.0, None))


def _total_processors(run: xr.Dataset) -> int:
    return int(run["cluster_processors"].to_numpy().sum())


def submitted(run: xr.Dataset) -> tuple[float, float]:
    """First and last submission [s] of the jobs that ran; NaN if none did."""
    submit = run["submit_time"].to_numpy()[_started(run)]
    return (float(submit.min()), float(submit.max())) if len(submit) else (np.nan, np.nan)


def observed(run: xr.Dataset) -> tuple[float, float]:
    """First submission and last end [s] of the jobs that ran; NaN if none did."""
    started = _started(run)
    if not started.any():
        return np.nan, np.nan
    submit, end = run["submit_time"].to_numpy(), run["end_time"].to_numpy()
    return float(submit[started].min()), float(end[started].max())


# --- summary --------------------------------------------------------------------------------------


def summarise(
    run: xr.Dataset,
    *,
    warm_up: float = 0.0,
    cool_down: float = 0.0,
    batches: int = BATCHES,
    bins: int = 200,
    confidence: float = 0.95,
    slowdown_threshold: float = SLOWDOWN_THRESHOLD,
    long_run_time: float = LONG_RUN_TIME,
    wide_processors: int = WIDE_PROCESSORS,
    since: SinceName = "submit",
) -> xr.Dataset:
    """Condense a run dataset to means with intervals, quantiles, batch means and time series.

    Rejected jobs (start time -1) enter no metric and are counted in `rejected`. System-level values cover
    the whole run; they are NaN for a recorded run in which the waits of some jobs are unknown.

    Parameters
    ----------
    run : xarray.Dataset
        A run as `gridsched.simulate` or `recorded` gives it.
    warm_up, cool_down : float
        Fraction of the jobs, in submit order, that job-level metrics leave out at the beginning and end.
    batches : int
        Batches of consecutive jobs, from which intervals come.
    bins : int
        Equal bins of the time series between first submission and last end.
    confidence : float
        Nominal coverage of the intervals.
    slowdown_threshold : float
        See `bounded_slowdown`; seconds.
    long_run_time, wide_processors : float, int
        See `job_classes`.
    since : {"submit", "eligible"}
        What waits count from. Where submissions follow the ends of other jobs, see
        `gridsched.workloads.feedback`, it is when jobs became eligible.

    Returns
    -------
    xarray.Dataset
        Dimensions `job_class`, `quantile`, `batch`, `bin`; the attributes of the run and the settings. Bounds
        `{metric}_mean_low` and `_high` are NaN where there is no valid interval, and `{metric}_mean_reason`
        says why; the mean is then this run's mean, and no comparison should be drawn from it.

    Raises
    ------
    ConfigurationError
        If warm-up and cool-down leave no jobs, or a number is out of range.
    """
    batches = check_whole("batches", batches, least=2)
    bins = check_whole("bins", bins, least=1)
    check_number("confidence", confidence, above=0, below=1)
    _check_trim(warm_up, cool_down)
    check_number("slowdown_threshold", slowdown_threshold, above=0)
    if since not in get_args(SinceName) or f"{since}_time" not in run:
        raise ConfigurationError(f"since is {since!r}; use submit, or eligible for a run with eligible_time")
    measured = measured_jobs(run, warm_up, cool_down)
    classes = job_classes(
        run["run_time"].to_numpy()[measured],
        run["processors"].to_numpy()[measured],
        long_run_time=long_run_time,
        wide_processors=wide_processors,
    )
    members = [measured, *(measured[classes == index] for index in range(1, len(JOB_CLASSES)))]
    variables = _job_level(run, members, slowdown_threshold, batches, confidence, since)
    variables |= system_level(run, bins, since)
    settings = {
        "warm_up": warm_up,
        "cool_down": cool_down,
        "confidence": confidence,
        "slowdown_threshold": slowdown_threshold,
        "long_run_time": long_run_time,
        "wide_processors": wide_processors,
    }
    coordinates = {
        "job_class": ("job_class", list(JOB_CLASSES), {"long_name": "job class"}),
        "quantile": ("quantile", QUANTILES, {"long_name": "quantile", "units": "1"}),
    }
    return xr.Dataset(variables, coordinates, {**run.attrs, **settings})


def _check_trim(warm_up: float, cool_down: float) -> None:
    check_number("warm_up", warm_up, least=0, below=1)
    check_number("cool_down", cool_down, least=0, below=1)
    if warm_up + cool_down >= 1:
        raise ConfigurationError(f"warm_up {warm_up} and cool_down {cool_down} together leave no jobs")


def measured_jobs(run: xr.Dataset, warm_up: float, cool_down: float) -> Integers:
    """Indices of the jobs in submit order, without warm-up and cool-down."""
    order = np.argsort(run["submit_time"].to_numpy(), kind="stable")
    jobs = len(order)
    return order[int(warm_up * jobs) : jobs - int(cool_down * jobs)]


def _job_level(
    run: xr.Dataset,
    members: list[Integers],
    threshold: float,
    batches: int,
    confidence: float,
    since: SinceName,
) -> dict[str, xr.Variable]:
    started = _started(run)
    counts = [int(started[jobs].sum()) for jobs in members]
    variables = {
        "jobs": xr.Variable("job_class", counts, {"long_name": "jobs measured", "units": "1"}),
        "rejected": xr.Variable(
            (),
            int((~started).sum()),
            {
                "long_name": "jobs without a start",
                "units": "1",
                "comment": "rejected jobs; in a recorded run also those whose wait is unknown",
            },
        ),
    }
    memory = relaxations(run, since)
    variables["relaxations"] = xr.Variable(
        (), memory, {"long_name": "how many times the run holds the memory of its queue", "units": "1"}
    )
    for name, values in job_metrics(run, slowdown_threshold=threshold, since=since).items():
        found = [batch_means(values[jobs], batches) for jobs in members]
        means, numbers = (np.stack(part) for part in zip(*found, strict=True))
        variables["batch_jobs"] = xr.Variable(
            ("job_class", "batch"), numbers, {"long_name": "jobs of each batch that started", "units": "1"}
        )
        estimate = inference.mean(means, numbers, serial=True, relaxations=memory, confidence=confidence)
        variables |= _metric(name, [values[jobs] for jobs in members], means, estimate, confidence)
    return variables


def _metric(
    name: str, values: list[Floats], means: Floats, estimate: inference.Estimate, confidence: float
) -> dict[str, xr.Variable]:
    """Variables of one metric from the values of each job class, means of their batches and the estimate."""
    ordered = [np.sort(data[~np.isnan(data)]) for data in values]
    label, unit = METRICS[name]
    level = f"{confidence:.0%} interval"
    columns: dict[str, tuple[Any, Any, str]] = {
        "mean": ("job_class", [data.mean() if len(data) else np.nan for data in ordered], f"mean {label}"),
        "mean_low": ("job_class", estimate.low, f"mean {label}, lower bound of the {level}"),
        "mean_high": ("job_class", estimate.high, f"mean {label}, upper bound of the {level}"),
        "max": ("job_class", [data[-1] if len(data) else np.nan for data in ordered], f"largest {label}"),
        "quantile": (
            ("job_class", "quantile"),
            [_quantiles(data) for data in ordered],
            f"{label}, quantiles",
        ),
        "batch": (("job_class", "batch"), means, f"mean {label} of consecutive batches of jobs"),
    }
    found = {
        f"{name}_{suffix}": xr.Variable(dims, np.asarray(data), {"long_name": text, "units": unit})
        for suffix, (dims, data, text) in columns.items()
    }
    why = {"long_name": f"why there is no {level} of the mean {label}"}
    return found | {f"{name}_mean_reason": xr.Variable("job_class", estimate.reason.astype(np.str_), why)}


def _quantiles(ordered: Floats) -> Floats:
    """`QUANTILES` of sorted values, linear between neighbours as numpy.quantile; NaN without values."""
    if not len(ordered):
        return np.full(len(QUANTILES), np.nan)
    return np.interp(QUANTILES * (len(ordered) - 1), np.arange(len(ordered)), ordered)


def system_level(run: xr.Dataset, bins: int, since: SinceName) -> dict[str, xr.Variable]:
    """What the clusters and the queue of a run did, over the run and in time bins; NaN where it is not known.

    Parameters
    ----------
    run : xarray.Dataset
    bins : int
        Equal parts of the time from the first submission to the last end.
    since : {"submit", "eligible"}
        When a wait begins.
    """
    first, last = observed(run)
    empty = np.full(bins, np.nan)
    scalars = {
        "utilisation": np.nan,
        "utilisation_makespan": np.nan,
        "makespan": np.nan,
        "queue_length_mean": np.nan,
        "queue_length_max": np.nan,
    }
    series = {"bin_time": empty, "utilisation_series": empty, "queue_length_series": empty}
    if run.attrs.get("recorded_share", 1.0) == 1.0 and not np.isnan(first):
        edges = np.linspace(first, last, bins + 1)
        queue = queue_length(run, since)
        scalars = {
            "utilisation": utilisation(run) if "segment_job" in run else np.nan,
            "utilisation_makespan": utilisation_makespan(run) if "segment_job" in run else np.nan,
            "makespan": last - first,
            "queue_length_mean": float(time_average(queue, (first, last))[0]),
            "queue_length_max": float(queue.value.max()),
        }
        series = {"bin_time": edges[:-1], "queue_length_series": time_average(queue, edges)}
        busy = time_average(busy_processors(run), edges) if run.sizes.get("segment") else empty
        series["utilisation_series"] = busy / _total_processors(run)
    scalars |= _fates(run)
    return {
        name: xr.Variable(dims, values, {"long_name": _SYSTEM[name][0], "units": _SYSTEM[name][1]})
        for dims, group in (((), scalars), ("bin", series))
        for name, values in group.items()
    }


def _fates(run: xr.Dataset) -> dict[str, float]:
    """Outcomes of jobs that did not run once to their end, where a run has them."""
    if "fate" not in run or not run.sizes["job"]:
        return {}
    fate, work = run["fate"].to_numpy(), run["processors"].to_numpy() * run["run_time"].to_numpy()
    # of others `extra_work` has what was not done taken off
    ran = _started(run) & (fate == COMPLETED)
    return {
        "gave_up_share": float((fate == GAVE_UP).mean()),
        "killed": float(run["killed"].sum()),
        "extra_work_share": float(run["extra_work"].to_numpy()[ran].sum() / max(work[ran].sum(), 1)),
    }


_SYSTEM = {
    "gave_up_share": ("share of the jobs whose users gave up waiting", "1"),
    "killed": ("executions that failing nodes killed", "1"),
    "extra_work_share": ("work that was lost or spent on checkpoints, relative to that of the jobs", "1"),
    "utilisation": ("share of the processors allocated to jobs, first to last submission", "1"),
    "utilisation_makespan": ("share of the processors allocated to jobs, first submission to last end", "1"),
    "makespan": ("time from the first submission to the last end", "s"),
    "queue_length_mean": ("waiting jobs, time average", "1"),
    "queue_length_max": ("waiting jobs, largest number", "1"),
    "bin_time": ("left edge of the time bin", "s"),
    "utilisation_series": ("share of the processors allocated to jobs in the time bin", "1"),
    "queue_length_series": ("waiting jobs, time average in the time bin", "1"),
}


def recorded(run: xr.Dataset) -> xr.Dataset | None:
    """The waits that the log recorded, as a run dataset of the scheme "recorded".

    Starts are submit + recorded wait, ends start + run time. Jobs that the run rejected, and jobs whose wait
    is unknown, have start -1. Segments, from which the utilisation comes, exist only where the wait of every
    job is known and the platform is one cluster.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variable `recorded_wait_time` (seconds, -1 where unknown).

    Returns
    -------
    xarray.Dataset or None
        None where fewer than half of the jobs have a recorded wait. The attribute `recorded_share` is the
        share of the run's accepted jobs whose wait is known.
    """
    accepted = _started(run)
    wait, submit = run["recorded_wait_time"].to_numpy(), run["submit_time"].to_numpy()
    known = accepted & (wait >= 0)
    if not known.any() or 2 * known.sum() < accepted.sum():
        return None
    start = np.where(known, submit + wait, NOT_STARTED)
    end = np.where(known, start + run["run_time"].to_numpy(), NOT_STARTED)
    whole = known.sum() == accepted.sum() and run.sizes["cluster"] == 1
    jobs = np.flatnonzero(known) if whole else np.empty(0, np.int64)
    segments = {
        "segment_job": jobs,
        "segment_cluster": np.zeros_like(jobs),
        "segment_processors": run["processors"].to_numpy()[jobs],
        "segment_start": start[jobs],
        "segment_end": end[jobs],
    }
    result = run.drop_dims("segment").assign(
        {name: ("segment", values, run[name].attrs) for name, values in segments.items()}
    )
    result["start_time"] = ("job", start, run["start_time"].attrs)
    result["end_time"] = ("job", end, run["end_time"].attrs)
    share = float(known.sum() / accepted.sum())
    return result.assign_attrs(scheme=RECORDED, recorded_share=share)


def difference(
    summary: xr.Dataset, reference: xr.Dataset, *, confidence: float = 0.95, tolerance: float = 0.01
) -> xr.Dataset:
    """Paired difference of means between summaries of the same workload, by batches of the same jobs.

    All dimensions besides `batch` broadcast, so that a whole study can be compared with one scheme.

    Parameters
    ----------
    summary, reference : xarray.Dataset
        Summaries with the same batches and warm-up.
    confidence : float
        Nominal coverage.
    tolerance : float
        The two may differ in the number of jobs that they could measure (rejections, unknown waits) by this
        share; beyond it the means are not of the same jobs, and the difference is NaN.

    Returns
    -------
    xarray.Dataset
        `{metric}_difference`, `{metric}_difference_low`, `{metric}_difference_high` and
        `{metric}_difference_reason` for every metric; bounds are NaN where there is no valid interval, and
        the reason says why.
    """
    most = np.maximum(summary["jobs"], reference["jobs"])
    comparable = abs(summary["jobs"] - reference["jobs"]) <= tolerance * most
    variables: dict[str, xr.DataArray] = {}
    for name, (label, unit) in METRICS.items():
        centre = (summary[f"{name}_mean"] - reference[f"{name}_mean"]).where(comparable)
        _, low, high, _, reason = xr.apply_ufunc(
            _blocks_apart,
            summary[f"{name}_batch"],
            reference[f"{name}_batch"],
            summary["batch_jobs"],
            reference["batch_jobs"],
            summary["relaxations"],
            reference["relaxations"],
            confidence,
            input_core_dims=[["batch"]] * 4 + [[], [], []],
            output_core_dims=[[]] * 5,
        )
        for suffix, values in (("", centre), ("_low", low), ("_high", high)):
            attributes = {"long_name": f"difference of the mean {label} from the reference", "units": unit}
            variables[f"{name}_difference{suffix}"] = values.where(comparable).assign_attrs(attributes)
        why = {"long_name": f"why there is no interval of the difference of the mean {label}"}
        said = reason.where(comparable, "the two do not measure the same jobs").astype(np.str_)
        variables[f"{name}_difference_reason"] = said.assign_attrs(why)
    return xr.Dataset(variables)


def _blocks_apart(
    values: Floats,
    reference: Floats,
    jobs: Floats,
    reference_jobs: Floats,
    memory: Floats,
    reference_memory: Floats,
    confidence: float,
) -> inference.Estimate:
    return inference.difference(
        values,
        reference,
        jobs,
        reference_jobs,
        serial=True,
        relaxations=memory,
        reference_relaxations=reference_memory,
        confidence=confidence,
    )
