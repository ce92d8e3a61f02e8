"""The runs that follow from a study, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import pandas as pd

from gridsched.schedulers.jscheduler import MetricName, PredictionsName
from gridsched.simulation.clusters import EstimateName
from gridsched.study.config import ArenaStudy, GridStudy, LocalStudy, SelfSchedulingStudy
from gridsched.study.sweeps import BeliefName


@dataclass(frozen=True)
class Run:
    """One simulation of a study."""

    study: str
    workload: str
    scheme: str
    estimate: EstimateName

    @property
    def identifier(self) -> str:
        """Short name that is the same whenever the study says the same of this run."""
        return _identifier(self.study, self.workload, self.scheme, self.estimate)


@dataclass(frozen=True)
class GridRun:
    """One simulation of a study of grids."""

    study: str
    scenario: str
    policy: str
    scheme: str
    replicate: int

    @property
    def identifier(self) -> str:
        """Short name that is the same whenever the study says the same of this run."""
        return _identifier(self.study, self.scenario, self.policy, self.scheme, str(self.replicate))


@dataclass(frozen=True)
class SelfSchedulingRun:
    """One simulation of a study of self-scheduling."""

    study: str
    factor: str
    mode: PredictionsName
    estimates: BeliefName
    metric: MetricName
    k: int

    @property
    def identifier(self) -> str:
        """Short name that is the same whenever the study says the same of this run."""
        return _identifier(self.study, self.factor, self.mode, self.estimates, self.metric, str(self.k))

    @property
    def is_retrained(self) -> bool:
        """Whether predictors learn inside the run."""
        return self.estimates == "retrained"

    def values(self) -> dict[str, Any]:
        """The run as plain values, as workflow rules hand it on."""
        return asdict(self)


def _identifier(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def expand(study: LocalStudy) -> list[Run]:
    """Every run of a study: workloads x estimates x policies, in this order."""
    return [
        Run(study.name, workload.name, scheme, estimate)
        for workload in study.workloads
        for estimate in study.estimates
        for scheme in study.schemes
    ]


def chunks(study: LocalStudy, workload: str, size: int) -> list[list[Run]]:
    """Runs of one workload in groups of at most `size`."""
    runs = [run for run in expand(study) if run.workload == workload]
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def run_table(study: LocalStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run: its identifier, what it is made of, and the chunk that holds it."""
    rows = [
        {
            "run": run.identifier,
            "study": run.study,
            "workload": run.workload,
            "estimate": run.estimate,
            "scheme": run.scheme,
            "chunk": chunk,
        }
        for workload in study.workloads
        for chunk, runs in enumerate(chunks(study, workload.name, chunk_size))
        for run in runs
    ]
    return pd.DataFrame(rows)


def replicate_chunks(study: GridStudy, size: int) -> list[list[int]]:
    """Replicates in groups of at most `size` simulations of one scenario, but at least one replicate."""
    each = max(1, size // (len(study.schemes) * len(study.policies)))
    return [
        list(range(first, min(first + each, study.replicates))) for first in range(0, study.replicates, each)
    ]


def grid_run_table(study: GridStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run of a study of grids: its identifier, what it is made of, and the chunk that holds it."""
    runs = [
        (GridRun(study.name, scenario.name, policy, scheme, replicate), chunk)
        for scenario in study.scenarios
        for chunk, replicates in enumerate(replicate_chunks(study, chunk_size))
        for replicate in replicates
        for policy in study.policy_labels
        for scheme in study.scheme_labels
    ]
    return pd.DataFrame([{"run": run.identifier, **asdict(run), "chunk": chunk} for run, chunk in runs])


def expand_self_scheduling(study: SelfSchedulingStudy, factor: str) -> list[SelfSchedulingRun]:
    """Every run under one reading of the CPU factor: the union of all sweeps, each run once."""
    runs = {
        SelfSchedulingRun(study.name, factor, sweep.predictions, estimates, metric, k): None
        for sweep in study.sweeps
        if factor in sweep.factors
        for estimates, metric, k in product(sweep.estimates, sweep.metrics, sweep.numbers)
    }
    return list(runs)


_LEAST_CHUNKS = 8
"""Groups into which the runs under one reading of the CPU factor are divided at least ..."""

_FEW = 4
"""... unless so few would be in one."""


def self_scheduling_chunks(
    study: SelfSchedulingStudy, factor: str, size: int
) -> list[list[SelfSchedulingRun]]:
    """Runs under one reading of the CPU factor in groups of at most `size` that take about the same time.

    A run takes longer the more resources a job asks, and in exact mode. One whose predictors learn inside it
    is a group of its own. There are some groups even where few runs would fit in one, since a run on
    overloaded resources takes minutes.
    """
    runs = expand_self_scheduling(study, factor)
    plain = [run for run in runs if not run.is_retrained]
    plain.sort(key=lambda run: (run.mode != "exact", -run.k))
    number = max(-(-len(plain) // size), min(len(plain) // _FEW, _LEAST_CHUNKS))
    return [plain[first::number] for first in range(number)] + [[run] for run in runs if run.is_retrained]


def self_scheduling_run_table(study: SelfSchedulingStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run of a study of self-scheduling: identifier, parameters, and the chunk that holds it."""
    return pd.DataFrame(
        [
            {"run": run.identifier, **run.values(), "chunk": chunk}
            for factor in study.factors
            for chunk, runs in enumerate(self_scheduling_chunks(study, factor, chunk_size))
            for run in runs
        ]
    )


def arena_run_table(study: ArenaStudy) -> pd.DataFrame:
    """One row a run of a study of the arena: its identifier and what it is made of."""
    places = [
        (scenario.name, label, load, error, replicate)
        for scenario in study.scenarios
        for label in study.labels
        for load, error in product(study.loads, study.estimate_errors)
        for replicate in range(study.draws(scenario.name))
    ]
    names = ("scenario", "contender", "load", "estimate_error", "replicate")
    return pd.DataFrame(
        [
            {
                "run": _identifier(study.name, *map(str, place)),
                "study": study.name,
                **dict(zip(names, place, strict=True)),
            }
            for place in places
        ]
    )
