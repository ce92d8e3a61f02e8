"""The runs that follow from a study of imprecise calendars, and how they are divided among workflow jobs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from gridsched.study.calendar_config import BeliefName
from gridsched.study.config import CalendarStudy


@dataclass(frozen=True)
class CalendarRun:
    """One simulation of a study of imprecise calendars."""

    study: str
    case: str
    scheduler: str
    estimates: BeliefName

    @property
    def identifier(self) -> str:
        """Short name that is the same whenever the study says the same of this run."""
        words = (self.study, self.case, self.scheduler, self.estimates)
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]

    def values(self) -> dict[str, Any]:
        """The run as plain values, as workflow rules hand it on."""
        return asdict(self)


def expand_calendars(study: CalendarStudy, case: str) -> list[CalendarRun]:
    """Every run of a case: estimates x schedulers."""
    return [
        CalendarRun(study.name, case, scheduler, estimates)
        for estimates in study.estimates
        for scheduler in study.schedulers_of(case)
    ]


def calendar_chunks(study: CalendarStudy, case: str, size: int) -> list[list[CalendarRun]]:
    """Runs of a case in groups of at most `size` that take about the same time."""
    runs = expand_calendars(study, case)
    number = -(-len(runs) // size)
    return [runs[first::number] for first in range(number)]


def calendar_run_table(study: CalendarStudy, chunk_size: int) -> pd.DataFrame:
    """One row a run of a study of imprecise calendars: identifier, what it is made of, and its chunk."""
    return pd.DataFrame(
        [
            {"run": run.identifier, **run.values(), "chunk": chunk}
            for case in study.cases
            for chunk, runs in enumerate(calendar_chunks(study, case.name, chunk_size))
            for run in runs
        ]
    )
