"""Local time of what happens in a workload: hours of the day and days of the week where its users sit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import GridschedError, WorkloadError

if TYPE_CHECKING:
    from gridsched.workloads.table import Workload

_DAY = 86_400
_MONDAY = 4 * _DAY
"""A Monday at midnight in Unix time, which begins on a Thursday."""


def named_zone(name: str, where: str = "", error: type[GridschedError] = WorkloadError) -> ZoneInfo:
    """Time zone of a name; an unknown one is an error of what is named."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise error(f"{where}time zone {name!r} is unknown; name one like Europe/Rome") from None


def zone_of(workload: Workload) -> ZoneInfo:
    """Time zone of a workload; UTC where it is not known.

    Raises
    ------
    WorkloadError
        If there is no time zone of that name.
    """
    return named_zone(workload.time_zone or "UTC", f"{workload.name}: ")


def zone_or_utc(name: str | None) -> ZoneInfo:
    """Time zone of a name; UTC where there is none, or it is unknown."""
    try:
        return named_zone(name or "UTC")
    except WorkloadError:
        return ZoneInfo("UTC")


def moment(seconds: float, unix_start_time: int | None, time_zone: str | None) -> str:
    """Date and time of seconds since a start, on the clock of a time zone; UTC if that is not known.

    Seconds, where the start is not known.
    """
    if unix_start_time is None:
        return f"{seconds:,.0f} s"
    zone = zone_or_utc(time_zone)
    try:
        return f"{datetime.fromtimestamp(unix_start_time + float(seconds), zone):%Y-%m-%d %H:%M:%S %Z}"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:,.0f} s after the start"


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
    if not workload.time_zone:
        return unix
    zone = zone_of(workload)
    local = pd.DatetimeIndex(unix.astype("datetime64[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
    return np.asarray(local.values.astype("datetime64[s]").astype(np.int64))
