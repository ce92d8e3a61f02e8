"""The runs that follow from a study, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pandas as pd

from gridsched.simulation import EstimateName
from gridsched.study.config import StudyConfig


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
        words = "\n".join((self.study, self.workload, self.scheme, self.estimate))
        return hashlib.sha256(words.encode()).hexdigest()[:12]


def expand(study: StudyConfig) -> list[Run]:
    """Every run of a study: workloads x estimates x policies, in this order."""
    return [
        Run(study.name, workload.name, scheme, estimate)
        for workload in study.workloads
        for estimate in study.estimates
        for scheme in study.schemes
    ]


def chunks(study: StudyConfig, workload: str, size: int) -> list[list[Run]]:
    """Runs of one workload in groups of at most `size`."""
    runs = [run for run in expand(study) if run.workload == workload]
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def run_table(study: StudyConfig, chunk_size: int) -> pd.DataFrame:
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
