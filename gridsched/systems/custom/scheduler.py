"""Schedulers of users: a class with one method, which is asked at each instant at which something happens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.io import checksum
from gridsched.policies.callbacks import load_from_file
from gridsched.policies.local import Conventions
from gridsched.policies.online import Online
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler
from gridsched.systems.custom.compiled import CompiledDecision
from gridsched.systems.custom.online import OnlineCustom
from gridsched.systems.custom.simulator import Simulator

_KNOWN: dict[str, type[CustomScheduler]] = {}
"""Classes of users that this process has defined, by `source`."""


@dataclass(frozen=True)
class CustomScheduler(Scheduler):
    """A scheduler of one's own: derive a frozen dataclass from it, and define `decide`.

    The fields of the dataclass are its parameters. What it wants to remember between decisions it keeps in
    `sim.memory`. Jobs that are larger than every cluster are rejected before it is asked.

    A subclass may define ``rules(run)``, a class method that returns a line for each rule that a run breaks,
    and ``measures(run)``; `gridsched.verify` and `gridsched.summarise` use them where the class is defined.

    Examples
    --------
    >>> import gridsched as gs
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class FirstFit(gs.CustomScheduler):
    ...     depth: int = 100
    ...
    ...     def decide(self, sim):
    ...         for job, processors in sim.queue[["job", "processors"]][: self.depth].tolist():
    ...             if processors <= sim.free[0]:
    ...                 sim.start(job)
    >>> run = gs.simulate(gs.synthesise("M3", jobs=200, seed=1), 1152, FirstFit(depth=10))
    >>> gs.verify(run)
    >>> run.attrs["title"], run.attrs["parameter_depth"]
    ('FirstFit on M3-synthetic: 200 jobs', 10)
    """

    system: ClassVar[str] = "custom"
    knows: ClassVar[str] = "all that the simulator shows"
    source: ClassVar[str] = ""
    """File and name of the class."""
    source_checksum: ClassVar[str] = ""
    """SHA-256 of the file; empty where there is none."""
    cannot: ClassVar[Mapping[str, str]] = {
        "passes": "it is asked once for all events of an instant",
        "message delay": "it sees clusters as they are",
        "migration delay": "a job that has started stays where it is",
        "reservations": "it starts jobs when it decides, not at a given time",
        "arrays": "it counts the tasks of an array itself",
        "membership": "the clusters of a simulator stay",
        "changes": "the processors of a simulator's clusters stay",
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        path = _file_of(cls)
        cls.source = f"{path.name if path else '<interactive>'}:{cls.__qualname__}"
        cls.source_checksum = checksum(path) if path else ""
        _KNOWN[f"{cls.source} {cls.source_checksum}"] = cls

    @property
    def label(self) -> str:
        """Name in results."""
        return type(self).__name__

    def decide(self, sim: Simulator) -> None:
        """Start, send, reject or kill jobs, see `Simulator`; to be defined.

        Called at each instant at which a job is submitted, ends or leaves, an estimate is exceeded, a node
        fails or comes back, and when `Simulator.call_at` said.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method decide(self, sim)")

    def schedule(self, submission: Submission) -> Schedule:
        """Simulate the jobs, asking `decide` at each instant."""
        sim = Simulator.of(submission)
        decision = self.decision
        if decision is not None:
            sim.run_compiled(decision, self.numbers())
        else:
            self._simulate(sim)
        schedule = sim.schedule()
        return replace(schedule, counters={**schedule.counters, **self.made_by()})

    @property
    def decision(self) -> CompiledDecision | None:
        """What decides, where it is compiled."""
        decide: Any = inspect.getattr_static(type(self), "decide")
        return decide if isinstance(decide, CompiledDecision) else None

    def made_by(self) -> dict[str, str]:
        """What a run says of where the scheduler comes from."""
        return {"scheduler_source": self.source, "scheduler_checksum": self.source_checksum}

    def _simulate(self, sim: Simulator) -> None:
        """Ask `decide` until the end."""
        while sim.advance():
            self.ask(sim)

    def ask(self, sim: Any) -> None:
        """Ask `decide` now."""
        try:
            self.decide(sim)
        except Exception as error:
            error.add_note(f"in {type(self).source}, asked at {sim.now} s")
            raise

    def online(self, processors: int, conventions: Conventions | None = None) -> Online:
        """The scheduler, for a cluster of another simulator."""
        return OnlineCustom(self, processors, conventions or Conventions())

    def numbers(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Parameters, for a compiled decision."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        other = [name for name, value in values.items() if not isinstance(value, Real)]
        if other:
            raise ConfigurationError(
                f"{self.label}: parameter {other[0]} is {values[other[0]]!r}; a compiled decide takes numbers"
            )
        return np.array(list(values.values()), np.float64)

    @classmethod
    def of_run(cls, run: xr.Dataset) -> type[CustomScheduler]:
        """Class of the user that made a run, where this process has loaded it; else this one."""
        known = f"{run.attrs.get('scheduler_source')} {run.attrs.get('scheduler_checksum')}"
        return _KNOWN.get(known, cls)


def _file_of(made: type) -> Path | None:
    """File of a class; none of one that was typed in."""
    try:
        return Path(inspect.getfile(made))
    except (TypeError, OSError):
        return None


def load_scheduler(location: str) -> type[CustomScheduler]:
    """Class named as `path/to/file.py:Class`.

    Raises
    ------
    ConfigurationError
        If there is no such file or class, or the file fails to load.
    """
    found: type[CustomScheduler] = load_from_file("scheduler", location, "class", _is_custom)
    return found


def _is_custom(found: Any) -> bool:
    """Whether something is a scheduler of a user."""
    return isinstance(found, type) and issubclass(found, CustomScheduler)


SCHEDULER = CustomScheduler

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {}
"""None: users name theirs by file."""
