"""What users got done, where they react: jobs for each session and for each week that they were there."""

from __future__ import annotations

import numpy as np
import xarray as xr

from gridsched.metrics.jobs import productivity
from gridsched.workloads.feedback import THINK_TIME, sessions_of
from gridsched.workloads.table import Workload

WEEK = 7 * 86_400

USER_MEASURES: dict[str, tuple[str, str]] = {
    "productivity": ("jobs a day that ended before the last submission", "day-1"),
    "jobs_per_session": ("jobs in a session of a user", "1"),
    "jobs_per_user_week": (
        "jobs for each week from the first job of a user to the end of the last",
        "week-1",
    ),
}
"""Names of the measures with what they are and their units."""


def user_measures(run: xr.Dataset, *, think_time: int = THINK_TIME) -> dict[str, float]:
    """The measures of `USER_MEASURES`: NaN where no job of a known user ended.

    Parameters
    ----------
    run : xarray.Dataset
        A run; jobs are eligible when they are submitted where it has no `eligible_time`.
    think_time : int
        Longest think time within a session [s].

    Notes
    -----
    Shmueli and Feitelson (IEEE TPDS 20(7), 2009) take the productivity of users as what their schedulers are
    to be judged by, in throughput and in jobs a session. Users of a log have so many jobs, not more: who is
    served sooner is done sooner. So the weeks that users need for their jobs count, not those of the log.
    """
    return {
        "productivity": productivity(run),
        "jobs_per_session": jobs_per_session(run, think_time=think_time),
        "jobs_per_user_week": jobs_per_user_week(run),
    }


def jobs_per_session(run: xr.Dataset, *, think_time: int = THINK_TIME) -> float:
    """Mean number of jobs in the sessions that users had in a run."""
    held = _as_recorded(run)
    sessions = int(sessions_of(held, think_time=think_time).opens.sum())
    return len(held) / sessions if sessions else np.nan


def jobs_per_user_week(run: xr.Dataset) -> float:
    """Jobs of all users by the weeks of all users, from when each could submit first to his last end."""
    held = _as_recorded(run)
    names, place = np.unique(held.user, return_inverse=True)
    begin = np.full(len(names), np.iinfo(np.int64).max)
    end = np.full(len(names), np.iinfo(np.int64).min)
    np.minimum.at(begin, place, held.submit_time)
    np.maximum.at(end, place, held.submit_time + held.wait_time + held.run_time)
    weeks = float((end - begin).sum()) / WEEK
    return len(held) / weeks if weeks > 0 else np.nan


def _as_recorded(run: xr.Dataset) -> Workload:
    """Jobs of known users that ran, as a log of this run would have them.

    Users of different homes are different: logs number theirs each by itself.
    """
    v = {name: run[name].to_numpy() for name in ("start_time", "end_time", "user")}
    eligible = run["eligible_time" if "eligible_time" in run else "submit_time"].to_numpy()
    jobs = np.flatnonzero((v["start_time"] >= 0) & (v["user"] >= 0))
    jobs = jobs[np.argsort(eligible[jobs], kind="stable")]
    home = run["home_cluster"].to_numpy()[jobs] if "home_cluster" in run else np.zeros(len(jobs), np.int64)
    user = np.unique(np.stack([home, v["user"][jobs]]), axis=1, return_inverse=True)[1]
    return Workload(
        name="run",
        submit_time=eligible[jobs],
        wait_time=(v["start_time"] - eligible)[jobs],
        run_time=(v["end_time"] - v["start_time"])[jobs],
        requested_processors=np.ones(len(jobs), np.int64),
        user=user.reshape(-1),
    )
