"""The runs that follow from a study of dynamic grids, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from gridsched.study.config import DynamicGridStudy


@dataclass(frozen=True)
class DynamicRun:
    """One simulation of a study of dynamic grids."""

    study: str
    case: str
    replicate: int

    @property
    def identifier(self) -> str:
        """Short name that is the same whenever the study says the same of this run."""
        words = "\n".join((self.study, self.case, str(self.replicate)))
        return hashlib.sha256(words.encode()).hexdigest()[:12]


def expand_dynamic(study: DynamicGridStudy) -> list[DynamicRun]:
    """Every run of a study, case by case; cases without chance have one replicate."""
    return [
        DynamicRun(study.name, label, replicate)
        for label, case in study.cases.items()
        for replicate in range(study.replicates if study.has_chance(case) else 1)
    ]


def dynamic_chunks(study: DynamicGridStudy, size: int) -> list[list[DynamicRun]]:
    """Runs in groups of at most `size`, as many of each case as possible apart, so that they take alike."""
    runs = expand_dynamic(study)
    number = -(-len(runs) // size)
    return [runs[first::number] for first in range(number)]


def chunk_values(study: DynamicGridStudy, runs: list[DynamicRun]) -> list[dict[str, Any]]:
    """Runs with the parameters of their cases as plain values, as workflow rules hand them on."""
    cases = study.cases
    return [{**asdict(run), "values": cases[run.case].model_dump(mode="json")} for run in runs]


def dynamic_run_table(study: DynamicGridStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run: identifier, case, replicate, parameters, and the chunk that holds it."""
    cases = study.cases
    return pd.DataFrame(
        [
            {"run": run.identifier, **asdict(run), **cases[run.case].model_dump(), "chunk": chunk}
            for chunk, runs in enumerate(dynamic_chunks(study, chunk_size))
            for run in runs
        ]
    )
