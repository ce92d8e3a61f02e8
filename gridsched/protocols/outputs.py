"""Results of a run in the tables of Batsim: one of jobs, and one row for the schedule as a whole.

Columns and their order are those of docs/output-jobs.rst and docs/output-schedule.rst of Batsim 4 (the fields
of version 5 are the same, and some more). What gridsched does not have is empty: energy, and real times,
which would differ from run to run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.io import atomic_write

_SUCCESS = "COMPLETED_SUCCESSFULLY"
_NOT_RUN = "REJECTED"


def jobs_table(run: xr.Dataset) -> pd.DataFrame:
    """Jobs of a run of a decision process, as `jobs.csv` has them.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.External`.

    Returns
    -------
    pandas.DataFrame
        A row for each job in order of submission; times in seconds. Jobs that were rejected have no times,
        and those that hosts failed under have the time of all their executions.

    Raises
    ------
    ConfigurationError
        If the run is of another scheduler.
    """
    if "final_state" not in run:
        raise ConfigurationError(f"{run.attrs.get('title')}: no run of a decision process of Batsim")
    names = pd.Series(run["job_id"].to_numpy()).str.partition("!")
    state = run["final_state"].to_numpy().astype(str)
    started = (run["start_time"] >= 0).to_numpy()

    def times(values: np.ndarray) -> pd.Series:
        return pd.Series(values, dtype="Int64").where(started)

    submit, start, end = (run[f"{name}_time"].to_numpy() for name in ("submit", "start", "end"))
    turnaround = end - submit
    spent = (run["segment_end"] - run["segment_start"]).to_numpy()
    execution = np.bincount(run["segment_job"].to_numpy(), spent, len(state)).astype(np.int64)
    metadata = run["metadata"].to_numpy() if "metadata" in run else np.full(len(state), "")
    return pd.DataFrame(
        {
            "job_id": names[2],
            "workload_name": names[0],
            "profile": run["profile"].to_numpy(),
            "submission_time": submit,
            "requested_number_of_resources": run["hosts_requested"].to_numpy(),
            "requested_time": run["estimate"].to_numpy(),
            "success": (state == _SUCCESS).astype(int),
            "final_state": state,
            "starting_time": times(start),
            "execution_time": times(execution),
            "finish_time": times(end),
            "waiting_time": times(start - submit),
            "turnaround_time": times(turnaround),
            # as there, a job of no length has a very short one
            "stretch": pd.Series(turnaround / np.where(execution > 0, execution, 1e-5)).where(started),
            "consumed_energy": "",
            "allocated_resources": run["hosts"].to_numpy(),
            "metadata": metadata,
        }
    )


def schedule_table(run: xr.Dataset, hosts: int, version: str) -> pd.DataFrame:
    """The schedule of a run of a decision process as a whole, as `schedule.csv` has it.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.External`.
    hosts : int
        Hosts of the cluster.
    version : str
        What made it.

    Returns
    -------
    pandas.DataFrame
        One row; times in seconds.
    """
    jobs = jobs_table(run)
    ran = jobs[jobs["final_state"] != _NOT_RUN]
    computing = int((ran["execution_time"] * ran["requested_number_of_resources"]).sum())
    makespan = int(ran["finish_time"].max() - jobs["submission_time"].min()) if len(ran) else 0
    killed = ran["final_state"].isin(["COMPLETED_KILLED", "COMPLETED_WALLTIME_REACHED"])
    row = {
        "batsim_version": version,
        "consumed_joules": "",
        "makespan": makespan,
        **{
            f"{kind}_{name}": getattr(ran[column].astype(float), kind)()
            for kind in ("max", "mean")
            for name, column in (
                ("slowdown", "stretch"),
                ("turnaround_time", "turnaround_time"),
                ("waiting_time", "waiting_time"),
            )
        },
        "nb_computing_machines": hosts,
        "nb_grouped_switches": int(run.attrs.get("power_state_requests", 0)),
        "nb_jobs": len(jobs),
        "nb_jobs_finished": len(ran),
        "nb_jobs_killed": int(killed.sum()),
        "nb_jobs_rejected": len(jobs) - len(ran),
        "nb_jobs_success": int(jobs["success"].sum()),
        "nb_machine_switches": int(run.attrs.get("power_state_changes", 0)),
        "scheduling_time": "",
        "simulation_time": "",
        "success_rate": jobs["success"].mean(),
        "time_computing": computing,
        "time_idle": makespan * hosts - computing,
        "time_sleeping": "",
        "time_switching_off": 0,
        "time_switching_on": 0,
    }
    return pd.DataFrame([row])


def write_table(table: pd.DataFrame, target: Path) -> None:
    """Write a table as CSV, whole or not at all."""
    with atomic_write(target) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
