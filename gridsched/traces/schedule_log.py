"""The log of a simulated schedule: what a cluster that ran it would have recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.runs import check_run, first_allocation
from gridsched.traces.cleaning import CANCELLED
from gridsched.workloads.table import UNKNOWN, Workload

_FAILED, _COMPLETED = 0, 1
_STATUS_OF_FATE = (_COMPLETED, _FAILED, CANCELLED, CANCELLED, _FAILED, UNKNOWN)
"""Status (SWF) by the variable `fate`: completed, rejected, gave up, never eligible, lost, starved."""

_GAVE_UP = 2
_COLUMNS = ("submit_time", "start_time", "end_time", "processors", "user", "group", "queue")


def schedule_log(run: xr.Dataset) -> Workload:
    """Jobs of a run as a log that records the simulated schedule; see `gridsched.write_swf`.

    Raises
    ------
    ConfigurationError
        If the dataset is no run.
    """
    check_run(run)
    column = {name: run[name].to_numpy() for name in _COLUMNS}
    started = column["start_time"] >= 0
    cluster, allocated = first_allocation(run)
    clusters = [str(name) for name in run["cluster"].to_numpy()]
    several = len(clusters) > 1
    estimate = run["estimate"].to_numpy() if "estimate" in run else np.full(len(started), UNKNOWN)
    facts = run.attrs
    return Workload(
        name=str(facts["workload"]),
        job_number=run["job_number"].to_numpy(),
        submit_time=column["submit_time"],
        wait_time=_waits(run, started),
        run_time=np.where(started, column["end_time"] - column["start_time"], UNKNOWN),
        allocated_processors=allocated,
        requested_processors=column["processors"],
        requested_time=estimate,
        status=_status(run, started),
        user=column["user"],
        group=column["group"],
        queue=column["queue"],
        partition=np.where(several & (cluster >= 0), cluster + 1, UNKNOWN),
        processors_available=int(run["cluster_processors"].sum()),
        unix_start_time=int(facts["unix_start_time"]) if "unix_start_time" in facts else None,
        time_zone=facts.get("time_zone"),
        acknowledgement=str(facts.get("acknowledgement", "")),
        header=(
            "; Version: 2.2",
            f"; Computer: {_one_line(facts['workload'])}",
            f"; Note: schedule simulated by {_one_line(facts['source'])}, not recorded",
            f"; Note: scheduler {_one_line(facts['scheme'])}, local policies {_one_line(facts['policies'])}, "
            f"estimates {facts['estimates']}, seed {facts['seed']}",
            *(
                f"; Partition: {number} {_one_line(name)}"
                for number, name in enumerate(clusters, 1)
                if several
            ),
        ),
    )


def _waits(run: xr.Dataset, started: NDArray[np.bool_]) -> NDArray[Any]:
    """Wait of each job [s]; of those whose users gave up until then, of others that did not run -1."""
    submit = run["submit_time"].to_numpy()
    waits = np.where(started, run["start_time"].to_numpy() - submit, UNKNOWN)
    if "gives_up_time" in run:
        gave_up = run["fate"].to_numpy() == _GAVE_UP
        waits = np.where(gave_up, np.maximum(run["gives_up_time"].to_numpy() - submit, 0), waits)
    return waits


def _status(run: xr.Dataset, started: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Status (SWF) of each job."""
    if "fate" in run:
        status = np.array(_STATUS_OF_FATE)[run["fate"].to_numpy()]
    else:
        ended = run["killed"].to_numpy() == 0 if "killed" in run else started
        status = np.where(started & ended, _COMPLETED, _FAILED)
    if "killed_at_limit" in run:
        status = np.where(started & (run["killed_at_limit"].to_numpy() == 1), _FAILED, status)
    return np.asarray(status, np.int64)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
