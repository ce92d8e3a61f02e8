"""How the starts of a recorded schedule differ from those of a model of its scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Loop = Literal["closed", "open"]


@dataclass(frozen=True, kw_only=True)
class StartDifference:
    """A job that started at another time than recorded; instants are seconds of Unix time, -1 for never.

    Parameters
    ----------
    job : str
        Its ID.
    recorded, predicted : float
        When it started in the record and in the model.
    recorded_by, predicted_by : str
        The kind of pass that started it; empty if it never started.
    recorded_on, predicted_on : tuple of str
        Its nodes.
    why : str
        What kept it from the earlier start in the other schedule.
    holders : tuple of str
        Jobs that had nodes of the earlier start then in the other schedule.
    follows : tuple of str
        Jobs that the reason or the holders name and that differ before it: if any, it may follow from them.
    """

    job: str
    recorded: float
    predicted: float
    recorded_by: str
    predicted_by: str
    recorded_on: tuple[str, ...]
    predicted_on: tuple[str, ...]
    why: str
    holders: tuple[str, ...]
    follows: tuple[str, ...]

    @property
    def first(self) -> float:
        """The earlier start."""
        return min(each for each in (self.recorded, self.predicted) if each >= 0)


@dataclass(frozen=True, kw_only=True)
class StartDifferences:
    """How the starts of a recording differ from those of the model.

    Parameters
    ----------
    folder : Path
        The recording.
    loop : {"closed", "open"}
        Whether the instants of the passes were those of the record.
    jobs : tuple of str
        IDs of all jobs.
    tolerance : float
        Seconds within which starts are the same.
    same_nodes : int
        Jobs that started at the same time and on the same nodes.
    never : int
        Jobs that started in neither.
    differences : tuple of StartDifference
        By the earlier start: the first one is the fork, where the schedules part.
    """

    folder: Path
    loop: Loop
    jobs: tuple[str, ...]
    tolerance: float
    same_nodes: int
    never: int
    differences: tuple[StartDifference, ...]
