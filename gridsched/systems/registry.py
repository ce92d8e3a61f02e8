"""The systems, a line each, and their schedulers by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import Any

import xarray as xr

from gridsched.errors import ConfigurationError, meant
from gridsched.policies.local import LocalPolicy
from gridsched.systems.base import Scheduler

SYSTEMS: tuple[str, ...] = (
    "local",
    "ideal",
    "superscheduler",
    "jscheduler",
    "calendars",
    "multicluster",
    "dynamic_grid",
    "multiple_requests",
    "slurm",
    "custom",
)
"""Rooms under `gridsched.systems`; the module `scheduler` of each has `SCHEDULERS`, schedulers by name."""

_OPEN = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@cache
def names() -> Mapping[str, Callable[[], Scheduler]]:
    """Schedulers with their default parameters, by name."""
    return {name: make for system in SYSTEMS for name, make in _names_of(system).items()}


def _names_of(system: str) -> Mapping[str, Callable[[], Scheduler]]:
    """Schedulers of one system by name."""
    made: Mapping[str, Callable[[], Scheduler]] = _module_of(system).SCHEDULERS
    return made


def _module_of(system: str, module: str = "scheduler") -> Any:
    """Module of a subpackage."""
    return importlib.import_module(f"gridsched.systems.{system}.{module}")


def scheduler_of(scheduler: str | LocalPolicy | Scheduler | None) -> Scheduler:
    """Scheduler of a name or a local policy; a scheduler is returned as it is.

    Raises
    ------
    ConfigurationError
        If the name is unknown, or it is something else.
    """
    if isinstance(scheduler, Scheduler):
        return scheduler
    local = _module_of("local").Local
    if scheduler is None or isinstance(scheduler, LocalPolicy):
        made: Scheduler = local(policy=scheduler)
        return made
    if not isinstance(scheduler, str):
        raise ConfigurationError(
            f"scheduler is {scheduler!r}; give a name, a local policy, or a scheduler with its parameters"
        )
    if is_in_file(scheduler):
        own: Scheduler = _with_defaults(scheduler, load_scheduler(scheduler))
        return own
    if is_library(scheduler):
        return library(library=scheduler)
    # one after the other: a local policy, by far the most usual, needs no other subpackage
    for system in SYSTEMS:
        if scheduler in _names_of(system):
            return _names_of(system)[scheduler]()
    if scheduler.startswith("easy("):
        by_policy: Scheduler = local(policy=scheduler)
        return by_policy
    raise ConfigurationError(
        f"unknown scheduler {scheduler!r}{meant(scheduler, names())}; "
        f"use one of {', '.join(names())}, easy(r), path/to/file.py:Class, or path/to/library.so"
    )


def _with_defaults(name: str, scheduler: Any) -> Any:
    """A user's scheduler with its parameters as by default."""
    parameters = signature(scheduler).parameters.values()
    lacking = [each.name for each in parameters if each.default is each.empty and each.kind not in _OPEN]
    if lacking:
        raise ConfigurationError(
            f"scheduler {name}: {lacking[0]} has no default; give it one, or give an object of the class"
        )
    return scheduler()


def is_in_file(name: Any) -> bool:
    """Whether a scheduler is named by the place of a user's class."""
    return isinstance(name, str) and ".py:" in name


def is_library(name: Any) -> bool:
    """Whether a scheduler is named by the file of a shared library."""
    return isinstance(name, str) and name.endswith((".so", ".dylib"))


def load_scheduler(place: str) -> Any:
    """Class of a user's scheduler, named as `path/to/file.py:Class`.

    Raises
    ------
    ConfigurationError
        If there is no such file or class, or the file fails to load.
    """
    return _module_of("custom").load_scheduler(place)


def external(**parameters: Any) -> Any:
    """A scheduler in another process, see `gridsched.External`.

    Raises
    ------
    ConfigurationError
        If a parameter is out of range.
    """
    return _module_of("custom", "external").External(**parameters)


def library(**parameters: Any) -> Scheduler:
    """A scheduler in a shared library, see `gridsched.LibraryScheduler`."""
    made: Scheduler = _module_of("custom", "library").LibraryScheduler(**parameters)
    return made


def system_of(name: str) -> type[Scheduler]:
    """Class of schedulers of a system, for the rules and measures of its runs.

    Raises
    ------
    ConfigurationError
        If there is no such system.
    """
    if name not in SYSTEMS:
        raise ConfigurationError(f"unknown system {name!r}; use one of {', '.join(SYSTEMS)}")
    found: type[Scheduler] = _module_of(name).SCHEDULER
    return found


def class_of(run: xr.Dataset) -> type[Scheduler] | None:
    """Class of the scheduler that made a run, for its rules and measures; None where the run names none.

    Of a user's scheduler it is the user's own class where this process has loaded it, else the base of all.

    Raises
    ------
    ConfigurationError
        If there is no such system.
    """
    name = str(run.attrs.get("system", ""))
    return system_of(name).of_run(run) if name else None
