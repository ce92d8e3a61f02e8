"""Local time of what happens in a workload: hours of the day and days of the week where its users sit."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.table import Workload

_DAY = 86_400
_MONDAY = 4 * _DAY
"""A Monday at midnight in Unix time, which begins on a Thursday."""


def wall_clock(workload: Workload, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Local time of seconds since the start of a workload, as seconds of a clock that knows no time zones.

    UTC where the time zone is not known; where the start is not known either, second 0 is a Monday, 0:00.

    Parameters
    ----------
    workload : Workload
        The workload.
    seconds : int64[n]
        Seconds since its start, as submit times are.

    Returns
    -------
    int64[n]
        Seconds since Thursday, 1970-01-01, 0:00 on the local clock.

    Raises
    ------
    WorkloadError
        If there is no time zone of that name.
    """
    if workload.unix_start_time is None:
        return seconds + _MONDAY
    unix = seconds + workload.unix_start_time
    if workload.time_zone is None:
        return unix
    try:
        zone = ZoneInfo(workload.time_zone)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise WorkloadError(
            f"{workload.name}: time zone {workload.time_zone!r} does not exist; use an IANA name"
        ) from error
    local = pd.DatetimeIndex(unix.astype("datetime64[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
    return np.asarray(local.values.astype("datetime64[s]").astype(np.int64))
