"""The runs that follow from a study, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import pandas as pd

from gridsched.simulation import EstimateName
from gridsched.study.config import GridStudy, LocalStudy


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
