"""Workloads from tables of pandas, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.clock import named_zone
from gridsched.workloads.columns import LABELS, TIMES, seconds
from gridsched.workloads.table import EXTRA_FIELDS, SWF_FIELDS, UNKNOWN, Workload

ALIASES: dict[str, str] = {"processors": "requested_processors"}
"""Other names that columns may have."""

_KNOWN = (*SWF_FIELDS, *EXTRA_FIELDS)
_POINTS = ("submit_time", "deadline", "reserved_start", "gives_up_time")
"""Columns that may be points in time."""

_WHOLE = (
    "job_number",
    "allocated_processors",
    "requested_processors",
    "status",
    "preceding_job",
    *LABELS,
    *EXTRA_FIELDS,
)
"""Columns that cannot have fractions."""

_FACTS = (
    "processors_available",
    "unix_start_time",
    "time_zone",
    "header",
    "acknowledgement",
    "checksum",
    "left_out",
    "repaired",
)
_ATTRIBUTE = "gridsched"
_LARGEST = 2.0**63


def to_dataframe(workload: Workload) -> pd.DataFrame:
    """Table of a workload, see `Workload.to_dataframe`."""
    columns = {**workload.columns, **workload.extra}
    frame = pd.DataFrame({name: column.copy() for name, column in columns.items()})
    # Plain lists and dictionaries, so that files with attributes (Parquet) can hold them.
    facts: dict[str, Any] = {name: getattr(workload, name) for name in _FACTS}
    facts |= {
        "name": workload.name,
        "header": list(workload.header),
        "left_out": dict(workload.left_out),
        "repaired": dict(workload.repaired),
        "real": [name for name, column in columns.items() if column.dtype == np.float64],
    }
    frame.attrs[_ATTRIBUTE] = facts
    return frame


def from_dataframe(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, str],
    ignore: bool,
    name: str | None,
    processors_available: int | None,
    unix_start_time: int | None,
    time_zone: str | None,
) -> Workload:
    """Workload of a table, see `Workload.from_dataframe`."""
    facts = dict(frame.attrs.get(_ATTRIBUTE, {}))
    made_here = bool(facts)  # by `to_dataframe`: a log may have negative times, which `clean` counts
    given = {
        "name": name,
        "processors_available": processors_available,
        "unix_start_time": unix_start_time,
        "time_zone": time_zone,
    }
    facts |= {key: value for key, value in given.items() if value is not None}
    title = str(facts.pop("name", "workload"))
    real = set(facts.pop("real", ()))
    found = _columns(frame, title, columns, ignore=ignore)
    clock = _Clock(facts.get("unix_start_time"), facts.get("time_zone"))
    values: dict[str, Any] = {}
    # Submit times come first: other points in time are on their clock.
    for field in sorted(found, key=lambda field: field != "submit_time"):
        column = _Column(title, field, str(found[field].name), found[field])
        values[field] = column.values(clock, keep_real=field in real)
        if not made_here:
            column.check_sign(values[field])
    facts |= {"unix_start_time": clock.start, "time_zone": clock.time_zone}
    facts["header"] = tuple(facts.get("header", ()))
    return Workload(name=title, **values, **facts)


def _columns(
    frame: pd.DataFrame, title: str, renamed: Mapping[str, str], *, ignore: bool
) -> dict[str, pd.Series[Any]]:
    """Column of the frame of each field."""
    allowed = (*_KNOWN, *ALIASES)
    absent = [str(own) for own in renamed if own not in frame.columns]
    if absent:
        raise WorkloadError(
            f"{title}: columns renames {_list(absent)}, which the frame does not have "
            f"(it has {_list(frame.columns)}); give {{column of the frame: field}}"
        )
    wrong = [str(field) for field in renamed.values() if field not in allowed]
    if wrong:
        raise WorkloadError(f"{title}: columns names no field {_list(wrong)}; fields are {_list(allowed)}")
    sources: dict[str, Any] = {}
    unknown: list[str] = []
    for own in frame.columns:
        field = renamed.get(own, own)
        if field not in allowed:
            unknown.append(str(own))
            continue
        field = ALIASES.get(field, field)
        if field in sources:
            raise WorkloadError(
                f"{title}: columns {sources[field]} and {own} of the frame are both {field}; drop one"
            )
        sources[field] = own
    if unknown and not ignore:
        raise WorkloadError(
            f"{title}: unknown columns {_list(unknown)}; rename them with columns=, or leave them aside with "
            f"ignore=True; fields are {_list(allowed)}"
        )
    needed = [field for field in ("submit_time", "run_time") if field not in sources]
    if not {"requested_processors", "allocated_processors"} & set(sources):
        needed.append("processors")
    if needed:
        raise WorkloadError(
            f"{title}: no column {_list(needed)} in the frame (it has {_list(frame.columns)}); "
            "say with columns= which it is"
        )
    found = {field: frame[own] for field, own in sources.items()}
    found.setdefault("requested_processors", pd.Series(np.full(len(frame), UNKNOWN), frame.index))
    return found


def _list(names: Any) -> str:
    return ", ".join(str(name) for name in names)


@dataclass
class _Clock:
    """Unix time of submit time 0 and time zone, as far as they are known."""

    start: int | None
    time_zone: str | None


@dataclass(frozen=True)
class _Column:
    """A column of the frame, as what it is read, and where it stands in messages."""

    title: str
    field: str
    own: str
    series: pd.Series[Any]

    def values(self, clock: _Clock, *, keep_real: bool) -> NDArray[Any]:
        """Numbers of the column; -1 where they are missing."""
        series = self.series
        if isinstance(series.dtype, pd.CategoricalDtype | pd.StringDtype):
            raise self._refused(0, self._remedy())
        if series.dtype == object:
            series = self._of_objects(series)
        missing = series.isna().to_numpy(bool)
        known = series[~missing]
        rows = np.flatnonzero(~missing)
        if isinstance(series.dtype, pd.DatetimeTZDtype) or series.dtype.kind == "M":
            numbers = self._points(known, rows, clock)
        elif series.dtype.kind == "m":
            if self.field not in TIMES:
                raise self._refused(0, "give numbers")
            numbers = seconds(self.field, known.to_numpy())
        else:
            numbers = self._numbers(known.to_numpy(), rows, keep_real=keep_real and not missing.any())
        if self.field in _WHOLE and numbers.dtype.kind == "f":
            fractions = numbers != np.floor(numbers)
            raise self._refused(rows[np.argmax(fractions)], "give whole numbers")
        if self.field in ("job_number", "deadline") and missing.any():
            raise self._refused(int(np.argmax(missing)), "give one to each job, or leave the column out")
        values = np.full(len(series), UNKNOWN, numbers.dtype)
        values[~missing] = numbers
        return values

    def check_sign(self, numbers: NDArray[Any]) -> None:
        """Refuse times before 0, except that which stands for unknown ones."""
        negative = (numbers < 0) & (numbers != UNKNOWN)
        if self.field in TIMES and negative.any():
            number = f"{int(negative.sum())} negative times" if negative.sum() > 1 else "a negative time"
            raise self._refused(
                int(np.argmax(negative)), f"{number}; give times from 0 on, -1 or a missing value for unknown"
            )

    def _of_objects(self, series: pd.Series[Any]) -> pd.Series[Any]:
        """Series of the type that all objects have; what is mixed stays as it is."""
        texts = [isinstance(value, str | bytes) for value in series]
        if any(texts):
            raise self._refused(texts.index(True), self._remedy())
        if series.isna().all():
            return pd.Series(np.full(len(series), np.nan), series.index)
        if all(isinstance(value, datetime) for value in series) and self.field in _POINTS:
            with_zone = [value.tzinfo is not None for value in series.dropna()]
            if any(with_zone) and not all(with_zone):
                raise self._refused(0, "give all times with their zone, or none")
            # Zones may differ, as those of summer and winter do.
            return pd.to_datetime(series, utc=all(with_zone))
        return series.infer_objects()

    def _numbers(self, values: NDArray[Any], rows: NDArray[np.int64], *, keep_real: bool) -> NDArray[Any]:
        """Numbers as int64, or float64 where there are fractions."""
        if values.dtype == object:
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                    raise self._refused(row, self._remedy())
            whole = all(isinstance(value, int | np.integer) for value in values)
            large = [whole and not -_LARGEST <= value < _LARGEST for value in values]
            if any(large):
                raise self._refused(rows[large.index(True)], "give numbers of at most 64 bits")
            values = values.astype(np.int64 if whole else np.float64)
        kind = values.dtype.kind
        if kind not in "iuf" and not (kind == "b" and self.field == "status"):
            raise self._refused(0, self._remedy())
        if kind == "u" and (values > np.iinfo(np.int64).max).any():
            raise self._refused(rows[np.argmax(values)], "give numbers below 2**63")
        if kind != "f":
            return values.astype(np.int64)
        reals = values.astype(np.float64)
        if not np.isfinite(reals).all():
            raise self._refused(rows[np.argmin(np.isfinite(reals))], "give finite numbers")
        whole_and_small = (reals == np.floor(reals)) & (abs(reals) < _LARGEST)
        # A column of whole numbers in floating point is one that had missing values once.
        return reals if keep_real or not whole_and_small.all() else reals.astype(np.int64)

    def _points(self, known: pd.Series[Any], rows: NDArray[np.int64], clock: _Clock) -> NDArray[Any]:
        """Seconds since submit time 0 of points in time; sets the clock by the submit times."""
        if self.field not in _POINTS:
            raise self._refused(0, "give a length of time, such as the difference of two columns, or seconds")
        unix = self._unix(known, rows, clock)
        first = self.field == "submit_time"
        if first and clock.start is None and len(unix):
            clock.start = int(unix.min() // np.timedelta64(1, "s"))
        if clock.start is None:
            raise self._refused(0, "say with unix_start_time= when submit time 0 is")
        since = unix - np.timedelta64(clock.start, "s")
        early = since < np.timedelta64(0, "s")
        if early.any():
            raise self._refused(rows[np.argmax(early)], f"this is before the start, Unix time {clock.start}")
        return seconds(self.field, since)

    def _unix(self, known: pd.Series[Any], rows: NDArray[np.int64], clock: _Clock) -> NDArray[Any]:
        """Time since 1970 in UTC, as timedelta64."""
        dtype = known.dtype
        if isinstance(dtype, pd.DatetimeTZDtype):
            if clock.time_zone is None and self.field == "submit_time":
                clock.time_zone = getattr(dtype.tz, "key", None) or getattr(dtype.tz, "zone", None)
                if clock.time_zone is None and str(dtype.tz) == "UTC":
                    clock.time_zone = "UTC"
            local = known
        else:
            if clock.time_zone is None:
                raise self._refused(0, 'say with time_zone="Area/City" what clock they are of')
            local = self._localised(known, rows, clock.time_zone)
        return np.asarray(local.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()) - np.datetime64(0, "s")

    def _localised(self, known: pd.Series[Any], rows: NDArray[np.int64], zone: str) -> pd.Series[Any]:
        there = named_zone(zone, f"{self.title}: ")
        local: pd.Series[Any] = known.dt.tz_localize(there, ambiguous="NaT", nonexistent="NaT")
        wrong = local.isna().to_numpy(bool)
        if wrong.any():
            raise self._refused(
                rows[np.argmax(wrong)],
                f"the clock of {zone} shows this time never or twice: give times with their zone",
            )
        return local

    def _remedy(self) -> str:
        if self.field in LABELS:
            return f"give numbers, such as pandas.factorize(frame[{self.own!r}])[0]"
        if self.field in _POINTS:
            return "give seconds, or points in time: pandas.to_datetime reads texts"
        if self.field in TIMES:
            return "give seconds, or lengths of time: pandas.to_timedelta reads texts"
        return "give numbers: pandas.to_numeric reads texts"

    def _refused(self, row: Any, remedy: str) -> WorkloadError:
        series = self.series
        where = ""
        if len(series):
            value = series.iloc[int(row)]
            shown = value.item() if isinstance(value, np.number | np.bool_) else value
            where = f", row {series.index[int(row)]}: {shown!r}"
        named = self.field if self.own == self.field else f"{self.own} ({self.field})"
        return WorkloadError(
            f"{self.title}: column {named} (dtype {series.dtype}{where}) cannot be read; {remedy}"
        )
