"""What a scheduler is: parameters, what it cannot do, what it decides, how its runs are checked and measured.

A scheduler is a frozen dataclass. Its fields are the parameters, declared there and nowhere else:
configuration models, schemas, tables of keys and defaults follow from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster, Platform
from gridsched.policies.callbacks import Kind
from gridsched.policies.local import Conventions, LocalPolicy
from gridsched.policies.online import Online
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.workloads.table import Workload

CAPABILITIES: dict[str, str] = {
    "speed": "clusters of different speed",
    "whole nodes": "clusters that allocate whole nodes",
    "local policies": "any local policy on the clusters",
    "predictions": "local policies that predict run times while they run",
    "estimates": "requested times, actual run times, clairvoyant or given estimates",
    "kill": "jobs killed at their requested time",
    "overrun": "both rules for jobs that exceed their estimate",
    "passes": "scheduling passes by instant or by event",
    "message delay": "messages between clusters with a delay",
    "migration delay": "transfers of jobs with a delay",
    "deadlines": "deadlines of jobs",
    "reservations": "advance reservations",
    "membership": "clusters that join and leave",
    "changes": "processors that are added and removed",
    "nodes": "nodes with cores, memory and GPUs, partitions of them, limits of groups",
    "arrays": "limits of job arrays, of which only some tasks run at once",
    "failures": "nodes that fail, or are maintained",
    "cancellations": "cancellation of waiting jobs",
    "dependencies": "dependencies between jobs",
    "preemption": "preemption of running jobs",
    "own functions": "users' functions",
}
"""What a scheduler may be able to do, by name; docs/capabilities.md has the table."""


def check_choices(parameters: Any, where: str = "") -> None:
    """Refuse a word in a field of a dataclass that is not among those of its literal type.

    Raises
    ------
    ConfigurationError
        If there is one; the message begins with `where`.
    """
    words = _choices(parameters.__class__)
    rules = {key: (getattr(parameters, key) in of, f"one of {', '.join(of)}") for key, of in words.items()}
    check_values(parameters, rules, where)


@cache
def _choices(made_of: type) -> dict[str, tuple[str, ...]]:
    """Words that fields of literal type may be; looking types up takes longer than all other checks."""
    kinds = get_type_hints(made_of).items()
    return {key: get_args(kind) for key, kind in kinds if get_origin(kind) is Literal}


def check_values(parameters: Any, rules: Mapping[str, tuple[bool, str]], where: str = "") -> None:
    """Refuse the first value that does not keep its rule.

    Parameters
    ----------
    parameters : object
        What has the values as attributes.
    rules : mapping of name to (bool, str)
        Whether each value is good, and what to use instead.
    where : str
        What messages begin with.

    Raises
    ------
    ConfigurationError
        If a value is not good.
    """
    for key, (is_good, wanted) in rules.items():
        if not is_good:
            raise ConfigurationError(f"{where}{key} is {getattr(parameters, key)!r}; use {wanted}")


def is_whole(value: Any, low: int, high: int = LARGEST) -> bool:
    """Whether a value is a whole number in a range."""
    return not isinstance(value, bool) and isinstance(value, Integral) and low <= int(value) <= high


@dataclass(frozen=True)
class QueueReason:
    """A part of a wait [s] as the queue of the real scheduler shows it.

    Its reason, and the jobs that were ahead of it for the same nodes when that began, by index.
    """

    start: int
    end: int
    reason: str
    ahead: tuple[int, ...]


class Scheduler(ABC):
    """Decides when and where jobs run."""

    system: ClassVar[str]
    """Name of the subpackage of `gridsched.systems`."""

    names_clusters: ClassVar[bool] = True
    """Whether its schedules say on which cluster a job ran."""

    cannot: ClassVar[Mapping[str, str]] = {}
    """Reasons, by the names of `CAPABILITIES`; what is not named it can do."""

    uses: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Parameters that make use of a capability, by its name. The others are a matter of platform, jobs and
    conventions, and need no parameter."""

    functions: ClassVar[Mapping[str, Kind]] = {}
    """Parameters that may be functions of one's own, with what these may look at."""

    not_in_studies: ClassVar[frozenset[str]] = frozenset()
    """Parameters that study files cannot give."""

    opened: ClassVar[Mapping[str, type]] = {}
    """Parameters that are dataclasses, whose fields study files give as if they were parameters."""

    knows: ClassVar[str] = ""
    """What it has to know to decide, for tables; see `information`."""

    terms: ClassVar[Mapping[str, str]] = {}
    """Words of its results that need a sentence in a report, by term."""

    @property
    def label(self) -> str:
        """Name in results."""
        return self.system.replace("_", "-")

    @property
    def information(self) -> str:
        """What it has to know to decide with these parameters."""
        return self.knows

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers with these parameters, so that runs depend on the seed."""
        return False

    @abstractmethod
    def schedule(self, submission: Submission) -> Schedule:
        """Decide when and where the jobs run.

        Raises
        ------
        ConfigurationError
            If jobs and platform do not go together.
        """

    def online(self, processors: int, conventions: Conventions | None = None) -> Online:
        """The scheduler of a cluster of so many processors that another simulator runs.

        Raises
        ------
        ConfigurationError
            If it cannot decide while jobs run; with the reason.
        """
        raise ConfigurationError(
            f"{self.label} cannot decide while jobs run; local policies, Slurm and schedulers of your own can"
        )

    def schedule_watched(self, submission: Submission, job: int) -> tuple[Schedule, list[QueueReason]]:
        """The schedule, and how the queue of the real scheduler shows a job while it waits.

        Raises
        ------
        ConfigurationError
            If it is not known, the job is rejected, or jobs and platform do not go together.
        """
        raise ConfigurationError(f"{self.label} has no reasons of waiting jobs; explain a run of a policy")

    def rejects(self, submission: Submission, cluster: Cluster) -> dict[str, NDArray[np.bool_]]:
        """Jobs of one cluster that are rejected when they are submitted, by the reason, if that is known."""
        return {}

    @property
    def has_process(self) -> bool:
        """Whether each simulation starts a process that decides."""
        return False

    def logged(self, path: Path) -> Scheduler:
        """The same, such that what another process of it writes is in a file; most have none."""
        return self

    def incompatibility(
        self,
        platform: Platform,
        conventions: Conventions | None = None,
        workload: Workload | None = None,
    ) -> str:
        """Why it cannot schedule such jobs on such a platform under such conventions; empty if it can."""
        conventions = conventions or Conventions()
        extra = {} if workload is None else workload.extra
        needed = {
            "speed": len({cluster.speed for cluster in platform.clusters}) > 1,
            "whole nodes": any(cluster.node_exclusive for cluster in platform.clusters),
            "predictions": any(policy.predicts for policy in platform.policies),
            "overrun": conventions.overrun != Conventions.overrun,
            "passes": conventions.passes != Conventions.passes,
            "membership": platform.membership is not None,
            "changes": bool(platform.changes),
            "nodes": any(each.nodes or each.partitions or each.limits for each in platform.clusters),
            "arrays": "array_limit" in extra,
            "failures": any(each.events for each in platform.clusters),
            "cancellations": "gives_up_time" in extra,
            "dependencies": workload is not None and workload.dependencies is not None,
            "deadlines": "deadline" in extra,
            "reservations": "reserved_start" in extra and bool((extra["reserved_start"] >= 0).any()),
        }
        missing = [name for name, wanted in needed.items() if wanted and name in self.cannot]
        return "; ".join(f"{CAPABILITIES[name]}: {self.cannot[name]}" for name in missing)

    @classmethod
    def of_run(cls, run: xr.Dataset) -> type[Scheduler]:
        """Class of the scheduler that made a run of this system."""
        return cls

    @classmethod
    def rules(cls, run: xr.Dataset) -> list[str]:
        """What is wrong with a run of this scheduler besides the rules of every schedule: a line each."""
        return []

    @classmethod
    def measures(cls, run: xr.Dataset) -> xr.Dataset:
        """Measures of a run of this scheduler besides those of every run."""
        return xr.Dataset()


CONSTRAINT = "constraint "
"""What stands before a constraint of jobs among what is not modelled of a site."""

LICENCE = "licence "
"""The same of licences that the configuration does not have."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster and the scheduler that runs it, as the configuration of the real one says.

    Parameters
    ----------
    cluster : Cluster or None
        The cluster; none where the configuration does not have its nodes.
    scheduler : Scheduler or LocalPolicy
        The scheduler with its parameters, or a policy instead of it.
    not_modelled : tuple of str
        What the configuration says and is not modelled, by name.
    partly : mapping of str to tuple of int
        Numbers of the partitions to whose jobs it matters, for those that do not matter to all.
    unchanged : str
        Why changes of the configuration leave cluster and scheduler as they are; empty if they do not.
    assumed : str
        What is assumed where the configuration does not say it; empty if nothing is.
    """

    cluster: Cluster | None
    scheduler: Scheduler | LocalPolicy
    not_modelled: tuple[str, ...] = ()
    partly: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unchanged: str = ""
    assumed: str = ""
