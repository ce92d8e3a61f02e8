"""The workload model of a log beside a published one, and what the spread of sizes inside its classes does.

Shan, Oliker and Biswas (SC 2003, section 3.1) fit size classes of three logs. The log of their machine M3,
SDSC Blue Horizon, is public, so that their Table 4 can be computed again. They do not say how sizes spread
inside the classes, which decides the load of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import scipy
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_choice
from gridsched.workloads.clock import zone_of
from gridsched.workloads.fitting import (
    MAX_ORDER,
    PROBABILITIES,
    HyperErlangFit,
    fit_hyper_erlang,
    hyper_erlang_quantile,
    non_central_moments,
)
from gridsched.workloads.hyper_erlang import HyperErlang
from gridsched.workloads.machine_fit import MINIMUM_SHARE, size_classes_of
from gridsched.workloads.size_classes import (
    Fill,
    Machine,
    SizeClass,
    SizeModel,
    Weighting,
    calibrate_exponent,
    offered_load,
)
from gridsched.workloads.table import Workload
from gridsched.workloads.variables import variable

LOG, PAPER, OBSERVED = "log", "paper", "observed"
SOURCES = (LOG, PAPER)
"""Models that are compared: the one fitted to the log, and the published one."""

DISTRIBUTIONS = (OBSERVED, *SOURCES)
"""What quantiles are of: the times of the log themselves, and the two models."""

POWER_LAW = "power law"
SPREADS: dict[str, Weighting] = {POWER_LAW: "power-law", "log-uniform": "log-uniform", "uniform": "uniform"}
"""Weightings of the sizes inside a class, by label."""

MOMENTS = (1, 2, 3)

_KINDS = {"interarrival": "time between arrivals of the class", "service": "run time"}
_PARAMETERS = {
    "order": ("stages of each path", "1"),
    "rate_1": ("rate of a stage of the first path", "s-1"),
    "rate_2": ("rate of a stage of the second path", "s-1"),
    "p": ("probability of the first path", "1"),
}


def models_dataset(
    workload: Workload,
    machines: Mapping[str, Machine],
    published_name: str,
    *,
    exponents: Mapping[str, float] | None = None,
    fill: Fill = "powers",
) -> xr.Dataset:
    """Dataset of a study of workload models: that of `compare_models` with that of `compare_spreads`.

    Parameters
    ----------
    workload : Workload
        Log of the machine `published_name`.
    machines, published_name, exponents, fill
        As in `compare_spreads`.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    WorkloadError
        As the two.
    """
    models = compare_models(workload, _machine(machines, published_name))
    spreads = compare_spreads(machines, workload, published_name, exponents=exponents, fill=fill)
    return models.merge(spreads).assign_attrs({**spreads.attrs, **models.attrs})


def compare_models(
    workload: Workload,
    published: Machine,
    *,
    minimum_share: float = MINIMUM_SHARE,
    max_order: int = MAX_ORDER,
) -> xr.Dataset:
    """Fit the published size classes of a machine to its log, and put both models side by side.

    Parameters
    ----------
    workload : Workload
        Log of the machine. Jobs without a positive run time count as arrivals only, see
        `gridsched.workloads.fit_machine`; jobs of a size that no class has are left out and counted.
    published : Machine
        The published model.
    minimum_share : float
        For the classes that the log itself would have, see `gridsched.workloads.size_classes_of`.
    max_order : int
        As in `fit_hyper_erlang`.

    Returns
    -------
    xarray.Dataset
        By `size_class` ("low-high", processors): `low`, `high`, `jobs`, `served` (jobs whose run time was
        used), `unknown_run_time`, `zero_run_time`, `zero_interarrival` (counts), and `own_class`, 1 where the
        log's own classes include this one. By `source` ("log", "paper") and size class: `share`, and for
        the kinds `interarrival` and `service`, as prefixes: `order`, `rate_1`, `rate_2`, `p`, `mean`, `ks`
        (Kolmogorov-Smirnov distance between the times of the log and the model), and, by `moment` too,
        `moment`: non-central ones, of the log's times themselves and of the published model.
        `*_quantile` by source ("observed": the times themselves), size class and `quantile`. `*_mean_all` by
        source: over the jobs of all classes. `*_exact` by size class: 1 where the fit meets three moments;
        where it does not, `*_note` says why, and where nothing can be fitted the numbers are NaN.
        Attributes: the log, its jobs, the jobs in no class, and its own classes.

    Raises
    ------
    WorkloadError
        Where no job has the size of a class, or jobs have no submit time.
    """
    unknown = int(np.count_nonzero(workload.submit_time < 0))
    if unknown:
        raise WorkloadError(f"{workload.name}: {unknown:,} jobs have no submit time; clean the log first")
    inside = _in_classes(workload, published)
    if not inside.any():
        raise WorkloadError(f"{workload.name}: no job has the size of a class of machine {published.name}")
    jobs = workload.select(inside)
    compared = [_compare_class(jobs, c, max_order) for c in published.classes]
    own = size_classes_of(jobs.processors, published.processors_per_node, minimum_share, published.processors)
    variables = _class_variables(published, compared, {(c.low, c.high) for c in own}) | _share(
        published, compared
    )
    for kind in _KINDS:
        variables |= _kind_variables(kind, [c.times[kind] for c in compared])
    variables |= _means_over_all(jobs, published)
    coordinates = {
        "size_class": variable(("size_class",), _labels(published.classes), "processors"),
        "source": variable(("source",), list(DISTRIBUTIONS), "times of the log, or a model"),
        "moment": variable(("moment",), list(MOMENTS), "order of the non-central moment of order k"),
        "quantile": variable(("quantile",), PROBABILITIES, "probability of the quantile"),
    }
    attributes = {
        "title": f"Workload model of {workload.name} beside the published one of {published.name}",
        "workload": workload.name,
        "workload_checksum": workload.checksum,
        "published": published.name,
        "jobs": len(workload),
        "jobs_in_no_class": int(np.count_nonzero(~inside)),
        "log_classes": ", ".join(f"{c.low}-{c.high}" for c in own),
        "log_classes_minimum_share": minimum_share,
        **_window(workload),
        **{f"left_out: {reason}": count for reason, count in workload.left_out.items()},
    }
    return xr.Dataset(
        {name: _with_observed(each) for name, each in variables.items()}, coordinates, attributes
    )


def _with_observed(found: xr.Variable) -> xr.Variable:
    """A variable of the models with the times of the log, of which it says nothing, as a further source."""
    if found.dims[:1] != ("source",) or len(found) == len(DISTRIBUTIONS):
        return found
    unknown = np.full((1, *found.shape[1:]), np.nan)
    return xr.Variable(found.dims, np.concatenate([unknown, found.values]), found.attrs)


def compare_spreads(
    machines: Mapping[str, Machine],
    observed: Workload | None,
    published_name: str,
    *,
    exponents: Mapping[str, float] | None = None,
    fill: Fill = "powers",
) -> xr.Dataset:
    """What spreads of sizes inside the classes do to the load of machines and to the sizes of their jobs.

    Parameters
    ----------
    machines : mapping of str to Machine
        The published machines, see `load_machines`.
    observed : Workload, optional
        Log of the machine `published_name`; jobs of a size that no class has are left out.
    published_name : str
        The machine whose sizes are described.
    exponents : mapping of str to float, optional
        Exponents of the power law by machine. Others are calibrated to the machine's utilisation.
    fill : {"powers", "whole", "partial"}
        As in `SizeModel`.

    Returns
    -------
    xarray.Dataset
        `offered_load` by `machine` and `spread` ("power law", "log-uniform", "uniform"; "observed": with the
        mean size of each class in the log, for the machine of the log), `target_utilisation`
        and `exponent` by machine; NaN where a machine has no published utilisation and no given exponent, and
        where no exponent gives its utilisation: the attribute `exponents_not_found` says so.
        `size_cdf` by spread and `nodes`: share of the jobs of `published_name`
        that need at most so many nodes, the classes weighted by their arrival rates; NaN without a log.

    Raises
    ------
    WorkloadError
        Where `published_name` or a name of `exponents` is no machine.
    """
    published = _machine(machines, published_name)
    given = dict(exponents or {})
    for name in given:
        _machine(machines, name)
    chosen: dict[str, float] = {}
    failures = []
    for name, machine in machines.items():
        try:
            chosen[name] = given[name] if name in given else _calibrated(machine, fill)
        except WorkloadError as error:
            chosen[name] = np.nan
            failures.append(str(error))
    sizes = {name: _size_models(exponent, fill) for name, exponent in chosen.items()}
    loads = [
        [
            *(np.nan if model is None else offered_load(machine, model) for model in sizes[name].values()),
            _observed_load(observed, machine) if observed is not None and name == published_name else np.nan,
        ]
        for name, machine in machines.items()
    ]
    targets = [np.nan if m.utilisation is None else m.utilisation for m in machines.values()]
    curves = [_model_cdf(model, published) for model in sizes[published_name].values()]
    curves.append(_observed_cdf(observed, published))
    variables = {
        "offered_load": variable(("machine", "spread"), loads, "expected offered load"),
        "target_utilisation": variable(("machine",), targets, "published utilisation over six months"),
        "exponent": variable(("machine",), list(chosen.values()), "exponent of the power law of node counts"),
        "size_cdf": variable(
            ("spread", "nodes"),
            curves,
            f"share of the jobs of {published_name} that need at most so many nodes",
        ),
    }
    coordinates = {
        "machine": variable(("machine",), list(machines), "machine"),
        "spread": variable(("spread",), [*SPREADS, OBSERVED], "sizes of the log, or a spread in classes"),
        "nodes": variable(("nodes",), np.arange(1, published.nodes + 1), "nodes"),
    }
    attributes = {
        "title": f"Spread of sizes inside the classes of {', '.join(machines)}",
        "published": published_name,
        "fill": fill,
        "exponents_given": ", ".join(given),
        "exponents_not_found": "; ".join(failures),
    }
    return xr.Dataset(variables, coordinates, attributes)


def table_four(dataset: xr.Dataset) -> pd.DataFrame:
    """The two models of a log in the form of Table 4 of Shan, Oliker and Biswas.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of `compare_models` or `models_dataset`.

    Returns
    -------
    pandas.DataFrame
        One row a class and source, the log above the paper: `low`, `high` (processors), `source`,
        `percent_of_jobs`, then, with the prefixes `interarrival_` and `service_`, the paper's `n`,
        `lambda_1`, `lambda_2` (1/s) and `rho`; `note` says where a fit does not meet three moments.
    """
    rows = []
    for label in dataset["size_class"].to_numpy():
        of_class = dataset.sel(size_class=label)
        for source in SOURCES:
            model = of_class.sel(source=source)
            row: dict[str, Any] = {
                "low": int(of_class["low"]),
                "high": int(of_class["high"]),
                "source": source,
            }
            row["percent_of_jobs"] = 100 * float(model["share"])
            for kind in _KINDS:
                for name, symbol in zip(_PARAMETERS, ("n", "lambda_1", "lambda_2", "rho"), strict=True):
                    row[f"{kind}_{symbol}"] = float(model[f"{kind}_{name}"])
            row["note"] = _notes(of_class) if source == LOG else ""
            rows.append(row)
    table = pd.DataFrame(rows)
    return table.astype({f"{kind}_n": "Int64" for kind in _KINDS})


def _notes(of_class: xr.Dataset) -> str:
    """Why the fits of a class are not exact; empty where they are."""
    notes = {kind: str(of_class[f"{kind}_note"].item()) for kind in _KINDS}
    return "; ".join(f"{kind}: {note}" for kind, note in notes.items() if note)


# --- a log beside a published machine -------------------------------------------------------------


@dataclass(frozen=True)
class _Times:
    """Times of one kind in a class: those of the log, the model fitted to them, and the published one."""

    values: NDArray[np.float64]
    fit: HyperErlangFit | None
    note: str
    published: HyperErlang

    @property
    def models(self) -> tuple[HyperErlang | None, HyperErlang]:
        """Models of the two sources."""
        return None if self.fit is None else self.fit.distribution, self.published

    @property
    def moments(self) -> NDArray[np.float64]:
        """Moments of the times of the log, and of the published model; shape (2, 3)."""
        own = [float(np.mean(self.values**k)) if self.values.size else np.nan for k in MOMENTS]
        return np.stack([own, self.published.moments(len(MOMENTS))])


@dataclass(frozen=True)
class _Compared:
    """A class of the log beside the published one."""

    counts: dict[str, int]
    times: dict[str, _Times]


def _compare_class(jobs: Workload, size_class: SizeClass, max_order: int) -> _Compared:
    """Counts and fits of one class."""
    members = (jobs.processors >= size_class.low) & (jobs.processors <= size_class.high)
    between = np.diff(np.sort(jobs.submit_time[members]))
    run_time = jobs.run_time[members]
    served = run_time[run_time > 0]
    counts = {
        "jobs": int(np.count_nonzero(members)),
        "served": len(served),
        "unknown_run_time": int(np.count_nonzero(run_time < 0)),
        "zero_run_time": int(np.count_nonzero(run_time == 0)),
        "zero_interarrival": int(np.count_nonzero(between == 0)),
    }
    times = {
        "interarrival": _fit_times(between, "times between arrivals", size_class.interarrival, max_order),
        "service": _fit_times(served, "run times", size_class.service, max_order),
    }
    return _Compared(counts, times)


def _fit_times(times: NDArray[Any], what: str, published: HyperErlang, max_order: int) -> _Times:
    """Fit of times, with a note instead where there is none, or beside where it is not exact."""
    values = times.astype(np.float64)
    try:
        fit = fit_hyper_erlang(non_central_moments(values, what=what, allow_zero=True), max_order=max_order)
    except WorkloadError as error:
        return _Times(values, None, str(error), published)
    return _Times(values, fit, "" if fit.matched == len(MOMENTS) else fit.reason, published)


def _class_variables(
    published: Machine, compared: Sequence[_Compared], own: set[tuple[int, int]]
) -> dict[str, xr.Variable]:
    """Bounds and counts by class."""
    classes = published.classes
    columns: dict[str, tuple[list[int], str]] = {
        "low": ([c.low for c in classes], "smallest number of processors"),
        "high": ([c.high for c in classes], "largest number of processors"),
        "own_class": ([int((c.low, c.high) in own) for c in classes], "1 if the log's own classes have it"),
    }
    counted = {
        "jobs": "jobs",
        "served": "jobs whose run time was used",
        "unknown_run_time": "jobs of unknown run time",
        "zero_run_time": "jobs with a run time of 0 s",
        "zero_interarrival": "times between arrivals of 0 s",
    }
    columns |= {name: ([c.counts[name] for c in compared], text) for name, text in counted.items()}
    return {name: variable(("size_class",), values, text) for name, (values, text) in columns.items()}


def _share(published: Machine, compared: Sequence[_Compared]) -> dict[str, xr.Variable]:
    """Shares of the jobs by source and class."""
    jobs = np.array([c.counts["jobs"] for c in compared])
    printed = [np.nan if c.share is None else c.share for c in published.classes]
    shares = np.stack([jobs / jobs.sum(), printed])
    return {"share": variable(("source", "size_class"), shares, "share of the jobs")}


def _kind_variables(kind: str, classes: Sequence[_Times]) -> dict[str, xr.Variable]:
    """All that is known of one kind of times."""
    text = _KINDS[kind]
    by_class = ("source", "size_class")
    moments = np.stack([times.moments for times in classes], axis=1)
    values: dict[str, xr.Variable] = {
        name: variable(by_class, _by_source(classes, name), f"{text}: {meaning}", units)
        for name, (meaning, units) in _PARAMETERS.items()
    }
    values["mean"] = variable(by_class, moments[..., 0], f"{text}: mean", "s")
    values["moment"] = variable(
        (*by_class, "moment"), moments, f"{text}: non-central moment of order k", "s^k"
    )
    distances = [[_distance(times.values, model) for model in times.models] for times in classes]
    values["ks"] = variable(by_class, np.transpose(distances), f"{text}: Kolmogorov-Smirnov distance")
    quantiles = np.stack([_quantiles(times) for times in classes], axis=1)
    values["quantile"] = variable(("source", "size_class", "quantile"), quantiles, f"{text}: quantile", "s")
    exact = [int(times.fit is not None and times.fit.matched == len(MOMENTS)) for times in classes]
    values["exact"] = variable(("size_class",), exact, f"{text}: 1 if the fit meets three moments")
    values["note"] = variable(("size_class",), [t.note for t in classes], f"{text}: why the fit is not exact")
    return {f"{kind}_{name}": found for name, found in values.items()}


def _by_source(classes: Sequence[_Times], parameter: str) -> NDArray[np.float64]:
    """A parameter of the models; shape (sources, classes)."""
    values = [
        [np.nan if model is None else float(getattr(model, parameter)) for model in times.models]
        for times in classes
    ]
    return np.transpose(values)


def _distance(times: NDArray[np.float64], model: HyperErlang | None) -> float:
    """Kolmogorov-Smirnov distance; NaN without times or model."""
    if model is None or not times.size:
        return np.nan
    return float(scipy.stats.ks_1samp(times, model.cdf, method="asymp").statistic)


def _quantiles(times: _Times) -> NDArray[np.float64]:
    """Quantiles of the times of the log and of the models; shape (3, quantiles)."""
    unknown = np.full(len(PROBABILITIES), np.nan)
    own = np.quantile(times.values, PROBABILITIES) if times.values.size else unknown
    models = [
        unknown if model is None else hyper_erlang_quantile(model, PROBABILITIES) for model in times.models
    ]
    return np.stack([own, *models])


def _means_over_all(jobs: Workload, published: Machine) -> dict[str, xr.Variable]:
    """Mean times over the jobs of all classes; those of the paper follow from its arrival rates."""
    rates = published.arrival_rates
    served = jobs.run_time[jobs.run_time > 0]
    between = np.ptp(jobs.submit_time) / (len(jobs) - 1) if len(jobs) > 1 else np.nan
    service = np.average([c.service.mean for c in published.classes], weights=rates)
    means = {
        "interarrival": [between, 1 / rates.sum()],
        "service": [served.mean() if served.size else np.nan, service],
    }
    texts = {
        "interarrival": "mean time between arrivals of all classes",
        "service": "mean run time of all classes",
    }
    return {f"{kind}_mean_all": variable(("source",), means[kind], texts[kind], "s") for kind in _KINDS}


def _window(workload: Workload) -> dict[str, str]:
    """First and last submission by the clock of the log, where these are known."""
    if workload.unix_start_time is None:
        return {}
    zone = zone_of(workload)
    ends = {"first_submission": workload.submit_time.min(), "last_submission": workload.submit_time.max()}
    return {
        "time_zone": workload.time_zone or "UTC, since the time zone of the log is not known",
        **{
            name: datetime.fromtimestamp(workload.unix_start_time + int(second), zone).isoformat()
            for name, second in ends.items()
        },
    }


# --- spreads of sizes -----------------------------------------------------------------------------


def _calibrated(machine: Machine, fill: Fill) -> float:
    """Exponent that gives the machine its published utilisation; NaN where none is published."""
    if machine.utilisation is None:
        return np.nan
    return calibrate_exponent(machine, machine.utilisation, fill=fill)


def _size_models(exponent: float, fill: Fill) -> dict[str, SizeModel | None]:
    """Size model of each spread; none for the power law without an exponent."""
    models: dict[str, SizeModel | None] = {
        label: SizeModel(weighting, fill=fill) for label, weighting in SPREADS.items() if label != POWER_LAW
    }
    power_law = None if np.isnan(exponent) else SizeModel("power-law", exponent, fill)
    return {POWER_LAW: power_law} | models


def _observed_load(workload: Workload, machine: Machine) -> float:
    """Offered load with published rates and run times, and the log's mean size of each class."""
    work = 0.0
    for size_class, rate in zip(machine.classes, machine.arrival_rates, strict=True):
        members = (workload.processors >= size_class.low) & (workload.processors <= size_class.high)
        if not members.any():
            return np.nan
        work += float(rate) * size_class.service.mean * float(workload.processors[members].mean())
    return work / machine.processors


def _observed_cdf(workload: Workload | None, machine: Machine) -> NDArray[np.float64]:
    """Share of a log's jobs that need at most 1, 2, ... nodes; NaN without jobs."""
    if workload is None:
        return np.full(machine.nodes, np.nan)
    processors = workload.processors[_in_classes(workload, machine)]
    if not processors.size:
        return np.full(machine.nodes, np.nan)
    return _cdf(machine, processors, np.full(len(processors), 1 / len(processors)))


def _model_cdf(model: SizeModel | None, machine: Machine) -> NDArray[np.float64]:
    """Share of a model's jobs that need at most 1, 2, ... nodes; NaN without a model."""
    if model is None:
        return np.full(machine.nodes, np.nan)
    shares = machine.arrival_rates / machine.arrival_rates.sum()
    spreads = [model.distribution(c, machine.processors_per_node) for c in machine.classes]
    processors = np.concatenate([sizes for sizes, _ in spreads])
    weights = [share * probability for share, (_, probability) in zip(shares, spreads, strict=True)]
    return _cdf(machine, processors, np.concatenate(weights))


def _cdf(
    machine: Machine, processors: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight of the sizes that need at most 1, 2, ... nodes."""
    nodes = -(-processors // machine.processors_per_node)
    return np.minimum(np.cumsum(np.bincount(nodes - 1, weights, minlength=machine.nodes)), 1.0)


# --- both -----------------------------------------------------------------------------------------


def _machine(machines: Mapping[str, Machine], name: str) -> Machine:
    check_choice("machine", name, machines, WorkloadError)
    return machines[name]


def _in_classes(workload: Workload, machine: Machine) -> NDArray[np.bool_]:
    """Jobs of a size that one of the classes has."""
    inside = np.zeros(len(workload), np.bool_)
    for c in machine.classes:
        inside |= (workload.processors >= c.low) & (workload.processors <= c.high)
    return inside


def _labels(classes: Sequence[SizeClass]) -> list[str]:
    return [f"{c.low}-{c.high}" for c in classes]
