"""What is asked of a simulation, and the run that comes of the schedule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster, Platform, platform_of
from gridsched.policies.local import Conventions, LocalPolicy
from gridsched.submission import AlignName, Estimates, Submission, TimesName, cluster_of, submit
from gridsched.systems.base import Scheduler
from gridsched.workloads.table import Workload


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """Jobs on a platform, and what a run says of how it was asked for."""

    submission: Submission
    asked: dict[str, Any]

    @classmethod
    def of(
        cls,
        workload: Workload | Sequence[Workload | None],
        platform: Cluster | Sequence[Cluster] | Platform | int | None,
        *,
        estimates: Estimates,
        seed: int,
        align: AlignName,
        times: TimesName,
        kill: bool,
        conventions: Conventions,
    ) -> Request:
        """Request with the options of `gridsched.simulate`."""
        if platform is None:
            if not isinstance(workload, Workload):
                raise ConfigurationError("platform: give a cluster for each workload")
            platform = cluster_of(workload)
        submission = submit(
            workload,
            platform_of(platform),
            estimates=estimates,
            conventions=conventions,
            align=align,
            seed=seed,
            times=times,
            kill=kill,
        )
        asked = {
            "estimates": estimates if isinstance(estimates, str) else "given",
            "seed": seed,
            "align": align,
            "times": times,
            "kill": int(kill),
            "overrun": conventions.overrun,
            "passes": conventions.passes,
        }
        return cls(submission=submission, asked=asked)

    def check(self, scheduler: Scheduler) -> None:
        """Refuse what a scheduler cannot do, and numbers that the engine cannot hold."""
        submission = self.submission
        reason = scheduler.incompatibility(submission.platform, submission.conventions, submission.workload)
        if reason:
            raise ConfigurationError(f"{scheduler.label} cannot schedule this: {reason}")
        submission.check_limits()

    def run_of(self, schedule: results.Schedule, scheduler: Scheduler) -> xr.Dataset:
        """The run of what a scheduler decided."""
        submission = self.submission
        run = results.run_dataset(
            submission.workload,
            submission.home,
            submission.clusters,
            schedule,
            {
                "scheme": scheduler.label,
                "system": scheduler.system,
                **_parameters(scheduler),
                "policies": ", ".join(policy.name for policy in submission.policies),
                **self.asked,
                "jobs_without_requested_time": int((submission.workload.requested_time <= 0).sum()),
                "jobs_killed": 0 if submission.killed is None else int(submission.killed.sum()),
                "jobs_transferred": _transferred(schedule, submission.home),
            },
        )
        if submission.killed is None:
            return run
        words = {"long_name": "whether the job is killed at its requested time", "units": "1"}
        return run.assign(killed_at_limit=("job", submission.killed.astype(np.int64), words))


def check_policy_of(run: xr.Dataset, policy: LocalPolicy) -> None:
    """Refuse a policy that has the name of the one that made a run, and is another one."""
    made_by = str(run.attrs.get("parameter_policy"))
    if made_by.startswith(type(policy).__name__) and made_by != _plain(policy):
        raise ConfigurationError(
            f"policy {policy.name!r} is not that of the run, which is of the same name; give policy={made_by}"
        )


def _parameters(scheduler: Any) -> dict[str, int | float | str]:
    """Parameters of a scheduler, a dataclass, as attributes of a dataset can hold them.

    A field that its `repr` leaves out has no effect on what it decides, or is part of the input.
    """
    names = [field.name for field in fields(scheduler) if field.repr]
    return {f"parameter_{name}": _plain(getattr(scheduler, name)) for name in names}


def _plain(value: Any) -> int | float | str:
    """Value as netCDF can hold it; as text it is the same in every process."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return value if isinstance(value, str) else _without_addresses(repr(value))


def _without_addresses(text: str) -> str:
    """Functions by their names alone: where they are in memory differs from process to process."""
    return re.sub(r"<function (.+?) at 0x[0-9a-fA-F]+>", r"\1", text)


def _transferred(schedule: results.Schedule, home: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """Jobs of which some part ran on another cluster than where they were submitted."""
    if schedule.segments is None:
        return 0
    job, cluster = schedule.segments["job"], schedule.segments["cluster"]
    return len(np.unique(job[(home[job] >= 0) & (cluster != home[job])]))
