"""Which known pitfalls of evaluations of schedulers a study is exposed to, and what to do about each.

Frachtenberg and Feitelson list them ("Pitfalls in parallel job scheduling evaluation", JSSPP 2005), and
Feitelson's "Workload modeling for computer systems performance evaluation" (Cambridge University Press, 2015)
has more. A check looks at what a study says and at its dataset; it says what it found, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import xarray as xr

from gridsched.experiments.collection import ALL, measure_table
from gridsched.experiments.config import Study
from gridsched.figures.style import number
from gridsched.inference import FEWEST
from gridsched.presentation.sentences import listed
from gridsched.traces import find_log

SHAKEN = "shaken logs"
"""What replicates of a scenario with `shaking` are."""

SATURATED = 0.9
"""Utilisation or offered load from which a cluster counts as nearly saturated."""

UNSTABLE = 0.1
"""A mean is unstable where the middle 95 % of its shaken replicates span more than this share of it."""

DOMINATED = 10.0
"""A mean slowdown so many times the median is made by few jobs."""


class Pitfall(NamedTuple):
    """A pitfall that a study is exposed to."""

    name: str
    found: str
    remedy: str


class PitfallCheck(NamedTuple):
    """How a pitfall is found.

    Parameters
    ----------
    meaning : str
        What the pitfall is, for the words of the page.
    remedy : str
        What to do about it.
    finds : function
        What a study and its dataset show of it; empty if nothing.
    """

    meaning: str
    remedy: str
    finds: Callable[[Any, xr.Dataset], str]


def pitfalls(study: Study, dataset: xr.Dataset) -> list[Pitfall]:
    """The pitfalls that a study is exposed to, in the order of `CHECKS`; none where nothing is simulated.

    Parameters
    ----------
    study : Study
        The study.
    dataset : xarray.Dataset
        Its dataset.
    """
    if not study.simulates:
        return []
    found = ((name, check.finds(study, dataset), check.remedy) for name, check in CHECKS.items())
    return [Pitfall(*each) for each in found if each[1]]


# --- checks ---------------------------------------------------------------------------------------


def _warm_up(study: Any, dataset: xr.Dataset) -> str:
    settings = getattr(study, "metrics", None)
    left_out = {"first": getattr(settings, "warm_up", 0.0), "last": getattr(settings, "cool_down", 0.0)}
    missing = " and the ".join(text for text, share in left_out.items() if not share)
    # workloads that are longer than examples which are written out
    simulates_logs = any(each.jobs is None for each in study.all_workloads)
    text = f"The {missing} jobs count, which find an emptier cluster than the others."
    return text if missing and simulates_logs else ""


def _saturation(study: Any, dataset: xr.Dataset) -> str:
    for variable in ("offered_load", "utilisation"):
        if variable in dataset and dataset[variable].notnull().any():
            values = dataset[variable]
            values = values.mean("replicate") if "replicate" in values.dims else values
            largest = float(values.max())
            if largest >= SATURATED:
                highest = values.where(values == values.max(), drop=True)
                group = str(highest["group"].values[0]) if "group" in highest.dims else ALL
                where = f"{variable.replace('_', ' ')}{'' if group == ALL else f' of {group}'}"
                return f"The largest {where} is {largest:.2f}: waits grow as long as the workload lasts."
    return ""


def _single_log(study: Any, dataset: xr.Dataset) -> str:
    logs = list({each.archive or each.file for each in study.all_workloads if each.is_log})
    resampled = any(getattr(each, "resampling", None) for each in _scenarios(study))
    is_single = len(logs) == 1 and not resampled
    return f"All jobs come from one log, {logs[0]}: one sample of one site." if is_single else ""


def _unclean_log(study: Any, dataset: xr.Dataset) -> str:
    files = {
        each.archive or each.file: find_log(each.archive).file if each.archive else each.file
        for each in study.all_workloads
        if each.is_log
    }
    raw = [name for name, file in files.items() if "-cln" not in (file or "")]
    return f"Not cleaned of bursts of single users: {', '.join(raw)}." if raw else ""


def _perfect_estimates(study: Any, dataset: xr.Dataset) -> str:
    estimates = tuple(getattr(study, "estimates", ()))
    if estimates and set(estimates) <= {"actual", "clairvoyant"}:
        return "Schedulers know run times exactly in all runs."
    if "jobs_without_requested_time" not in dataset or "jobs" not in dataset:
        return ""
    without = dataset["jobs_without_requested_time"]
    jobs = dataset["jobs"].max([dim for dim in dataset["jobs"].dims if dim not in without.dims])
    share = float((without / jobs).max())
    text = f"Of {share:.0%} of the jobs of some log no requested time is known; their estimates are perfect."
    return text if share >= 0.5 else ""


def _average_of_slowdowns(study: Any, dataset: xr.Dataset) -> str:
    if "bounded_slowdown_median" not in dataset:
        return ""
    times = float((dataset["bounded_slowdown_mean"] / dataset["bounded_slowdown_median"]).max())
    text = f"Mean bounded slowdowns are up to {number(times)} times the median: few jobs make them."
    return text if times > DOMINATED else ""


def _unstable(study: Any, dataset: xr.Dataset) -> str:
    if "wait_time_mean" not in dataset or SHAKEN not in dataset.get("replicates_are", ()):
        return ""
    table = measure_table(dataset, "wait_time_mean", **({"group": ALL} if "group" in dataset.dims else {}))
    runs = table[table["replicates_are"] == SHAKEN].groupby(["scenario", "scheduler"], sort=False)["value"]
    spread = (runs.quantile(0.975) - runs.quantile(0.025)) / runs.mean()
    labels = spread.index[spread > UNSTABLE].get_level_values("scheduler").unique()
    text = f"Shaking changes the mean wait time by more than {UNSTABLE:.0%}: {listed(labels)}."
    return "" if labels.empty else text


def _no_intervals(study: Any, dataset: xr.Dataset) -> str:
    bounds = [name for name in dataset if str(name).endswith("_low")]
    known = any(bool(dataset[name].notnull().any()) for name in bounds)
    repeated = not bounds and dataset.sizes.get("replicate", 1) >= FEWEST
    return "" if known or repeated else "No mean has an interval."


def _squeezed(study: Any, dataset: xr.Dataset) -> str:
    resampled = (getattr(each, "resampling", None) for each in _scenarios(study))
    factors = {
        *getattr(study, "loads", ()),
        *(getattr(getattr(each, "jobs", None), "speed_up", 1.0) for each in _scenarios(study)),
        *(each.squeeze for each in resampled if each is not None),
    }
    loads = ", ".join(f"{load:g}" for load in sorted(factors - {1.0}))
    text = f"Loads of {loads} come from dividing the times between submissions, which shortens days."
    return text if loads else ""


def _overlap(study: Any, dataset: xr.Dataset) -> str:
    estimates = getattr(study, "estimates", ())
    text = (
        "No tree predicts a job that it learned from, but trees learn from ends as they were with every log "
        "on its own centre, not from those of the run."
    )
    return text if "predicted" in estimates and "retrained" not in estimates else ""


def _no_feedback(study: Any, dataset: xr.Dataset) -> str:
    logs = [each for each in study.all_workloads if each.is_log]
    reacting = any(each.feedback is not None for each in logs)
    return "Users submit when the log says, however long they have to wait." if logs and not reacting else ""


def _scenarios(study: Any) -> Iterable[Any]:
    """The scenarios of a study; none of a study without."""
    return getattr(study, "scenarios", ())


CHECKS: dict[str, PitfallCheck] = {
    "warm-up and drain": PitfallCheck(
        "At the beginning and the end of a simulation clusters are emptier than in between.",
        "Give metrics.warm_up and cool_down where the kind of study has them, or a longer workload.",
        _warm_up,
    ),
    "saturation": PitfallCheck(
        "Where jobs come about as fast as a cluster can run them, means depend on how long the workload is.",
        "Read only who is ahead, or lower the load (fewer users: resampling.users).",
        _saturation,
    ),
    "single log": PitfallCheck(
        "One log is one sample of what the users of one site submit.",
        "Add logs of other sites, and resampling to see how far the result holds for these users.",
        _single_log,
    ),
    "unclean log": PitfallCheck(
        "Some logs hold bursts of jobs of single users that no scheduler should be chosen by.",
        "Take the cleaned version (-cln) of the archive, or look for such bursts with gridsched info.",
        _unclean_log,
    ),
    "perfect estimates": PitfallCheck(
        "Real users overestimate run times, which changes what backfilling can do.",
        "Add requested times (estimates: requested), or a model of estimates.",
        _perfect_estimates,
    ),
    "average of slowdowns": PitfallCheck(
        "A mean of slowdowns is made by few short jobs that waited long.",
        "Look at the distribution and at job classes beside the mean.",
        _average_of_slowdowns,
    ),
    "unstable mean": PitfallCheck(
        "A mean that small random changes of submit times change by a tenth says more of the log than of the "
        "policy.",
        "Resample the log by users, or add logs.",
        _unstable,
    ),
    "no intervals": PitfallCheck(
        "Without an interval nobody can tell a difference from chance.",
        "Give replicates, or more jobs, so that batches and blocks can be formed.",
        _no_intervals,
    ),
    "load by squeezing": PitfallCheck(
        "Dividing the times between submissions makes days shorter and users faster, besides the load.",
        "Change the number of users (resampling.users) instead: the study users-or-squeezing shows both.",
        _squeezed,
    ),
    "overlap of training and test": PitfallCheck(
        "A predictor that learned from what it predicts, or from what comes later, looks better than it is.",
        "Add estimates: retrained, which learn from what finishes in the run.",
        _overlap,
    ),
    "no feedback": PitfallCheck(
        "Real users submit less while queues are long; replayed ones do not.",
        "Add a scenario with feedback, in a study of kind local-policies or arena.",
        _no_feedback,
    ),
}
"""Checks by the name of their pitfall."""
