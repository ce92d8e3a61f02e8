"""The table of jobs: what columns may hold, tables of pandas and back, what is shown of a workload."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gridsched.errors import WorkloadError
from gridsched.simulation import simulate
from gridsched.workloads.columns import LABELS, TIMES
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.frames import ALIASES
from gridsched.workloads.table import EXTRA_FIELDS, SWF_FIELDS, Workload
from tests.support.fields import assert_fields

ROME = "Europe/Rome"
CLOCK = pd.Series(pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:00", "2024-01-02 00:00"]))
LENGTHS = pd.to_timedelta(["1s", "1min", "1h"])
WHOLE = {"job_number", "requested_processors", "allocated_processors", "status", "preceding_job", *LABELS}


def three(**changes: Any) -> Workload:
    """Workload of three jobs."""
    columns: dict[str, Any] = {
        "submit_time": [0, 5, 9],
        "run_time": [1, 2, 3],
        "requested_processors": [1, 2, 4],
    }
    return Workload(name="three", **{**columns, **changes})


def table(**changes: Any) -> pd.DataFrame:
    """Table of three jobs; None leaves a column out."""
    columns = {"submit_time": [0, 5, 9], "run_time": [1, 2, 3], "processors": [1, 2, 4], **changes}
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


# --- columns that are given directly --------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (LENGTHS, [1, 60, 3600]),
        (pd.Series(LENGTHS), [1, 60, 3600]),
        (list(LENGTHS), [1, 60, 3600]),
        ([datetime.timedelta(hours=1)] * 3, [3600] * 3),
        (np.array([1, 2, 3], "timedelta64[h]"), [3600, 7200, 10800]),
        (pd.to_timedelta(["1s", "1.5s", "1ns"]), [1.0, 1.5, 1e-9]),
        (list(pd.to_timedelta(["1s", "1.5s", "1ns"])), [1.0, 1.5, 1e-9]),
        (np.array([1, 2.5, 3], np.float32), [1.0, 2.5, 3.0]),
        (pd.array([1, 2, 3], "Int64"), [1, 2, 3]),
        (np.array([1, 2, 3], object), [1, 2, 3]),
        (np.array([1, 2.5, 3], object), [1.0, 2.5, 3.0]),
        (np.array([1, 2, 3], np.uint8), [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("name", ["submit_time", "run_time", "requested_time"])
def test_times_are_seconds(name: str, given: Any, expected: list[float]) -> None:
    column = getattr(three(**{name: given}), name)
    assert column.tolist() == expected
    assert column.dtype == np.asarray(expected).dtype


def test_deadlines_may_be_lengths_of_time() -> None:
    assert three(deadline=LENGTHS).extra["deadline"].tolist() == [1, 60, 3600]


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("submit_time", CLOCK, "three: column submit_time has points in time .*from_dataframe reads them"),
        ("submit_time", list(CLOCK), "points in time"),
        ("submit_time", CLOCK.dt.tz_localize(ROME), "points in time"),
        ("run_time", CLOCK.to_numpy(), "points in time"),
        ("run_time", [*LENGTHS[:2], pd.NaT], "column run_time has NaT at index 2; give lengths of time"),
        ("run_time", np.array([1, "NaT", 3], "m8[s]"), "NaT at index 1; give a length, -1 s for unknown"),
        ("run_time", [pd.Timedelta(1), 2, 3], "has 2 at index 1; give lengths of time"),
        ("run_time", [datetime.timedelta(days=200_000)] * 3, "more than 290 years"),
        ("user", LENGTHS, "column user has lengths of time"),
        ("user", [1, np.nan, 3], "column user has nan at index 1; give whole numbers, -1 for unknown"),
        ("queue", [1, 2, np.inf], "column queue has inf at index 2"),
        ("group", [1, None, 3], "column group has None at index 1; give numbers"),
        ("partition", ["a", "b", "c"], "column partition has dtype <U1; give numbers"),
        ("executable", ["a", 1, None], "dtype|'a' at index 0"),
        ("run_time", [1j, 2, 3], "dtype complex128"),
        ("run_time", np.array([1, 2**63, 3], np.uint64), "below 2"),
        ("run_time", [1, 10**30, 3], "more than 64 bits"),
        ("deadline", [1, 2, 2.5], "column deadline .* give whole numbers for each of the 3 jobs"),
        ("deadline", CLOCK, "points in time"),
        ("home", [0, 1], "column home has shape"),
        ("wait_time", [0, 1], r"column wait_time has shape \(2,\), submit_time has 3 jobs"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_no_column_can_hold_is_refused(name: str, given: Any, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        three(**{name: given})


def test_labels_with_fractions_are_read_but_not_simulated() -> None:
    """A log is read as it is; a simulation would take another number."""
    workload = three(user=[1.0, 2.0, 3.5], processors_available=4)
    assert workload.user.tolist() == [1.0, 2.0, 3.5]
    with pytest.raises(WorkloadError, match=r"three: user of job 3 is 3\.5; give whole numbers"):
        simulate(workload)


# --- tables of pandas -----------------------------------------------------------------------------


@st.composite
def any_workloads(draw: st.DrawFn) -> Workload:
    """Workloads with any whole numbers, fractions where columns may have them, and all other fields."""
    jobs = draw(st.integers(0, 5))
    whole = arrays(np.int64, jobs, elements=st.integers(-(2**63), 2**63 - 1))
    real = arrays(np.float64, jobs, elements=st.floats(allow_nan=False, allow_infinity=False))
    small = arrays(np.float64, jobs, elements=st.integers(-9, 9).map(float))
    columns: dict[str, Any] = {
        name: draw(whole if name in WHOLE else st.one_of(whole, real, small)) for name in SWF_FIELDS
    }
    columns |= {name: draw(whole) for name in EXTRA_FIELDS if draw(st.booleans())}
    counts = st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2)
    return Workload(
        name=draw(st.text(max_size=5)),
        **columns,
        processors_available=draw(st.none() | st.integers(1, 99)),
        unix_start_time=draw(st.none() | st.integers(0, 2**40)),
        time_zone=draw(st.none() | st.just(ROME)),
        header=tuple(draw(st.lists(st.text(max_size=5), max_size=2))),
        acknowledgement=draw(st.text(max_size=5)),
        checksum=draw(st.text(max_size=5)),
        left_out=draw(counts),
        repaired=draw(counts),
    )


@given(any_workloads())
def test_any_workload_survives_the_trip(workload: Workload) -> None:
    frame = workload.to_dataframe()
    assert [*frame.columns] == [*workload.columns, *workload.extra]
    assert Workload.from_dataframe(frame).equals(workload)
    # Files hold the attributes of a table as JSON.
    frame.attrs = json.loads(json.dumps(frame.attrs))
    assert Workload.from_dataframe(frame).equals(workload)


@given(any_workloads())
def test_any_workload_can_be_shown(workload: Workload) -> None:
    assert repr(workload).startswith(f"Workload {workload.name!r}: {len(workload)} job")
    assert len(repr(workload)) < 500


def test_a_table_is_a_copy() -> None:
    workload = three()
    workload.to_dataframe().loc[0, "run_time"] = 99
    assert workload.run_time[0] == 1


def test_rows_may_be_chosen_before_the_way_back() -> None:
    workload = three(left_out={"no size": 2}, processors_available=8)
    frame = workload.to_dataframe()
    back = Workload.from_dataframe(frame[frame["requested_processors"] > 1], name="wide")
    assert back.equals(replace(workload.select(slice(1, None)), name="wide"))


def test_names_of_columns() -> None:
    frame = table(submit_time=None, when=[0, 5, 9], who=[7, 8, 9])
    found = Workload.from_dataframe(frame, columns={"when": "submit_time", "who": "user"}, name="three")
    assert found.equals(three(user=[7, 8, 9]))
    assert Workload.from_dataframe(table(), name="three").equals(three())
    assert_fields(
        Workload.from_dataframe(table(processors=None, allocated_processors=[1, 2, 4])),
        processors=[1, 2, 4],
        requested_processors=[-1, -1, -1],
    )
    assert Workload.from_dataframe(table(colour=["red"] * 3), ignore=True, name="three").equals(three())
    assert not {*ALIASES} & {*SWF_FIELDS, *EXTRA_FIELDS}


@pytest.mark.parametrize(
    ("changes", "options", "problem"),
    [
        (
            {"colour": 1, "mood": 2},
            {},
            "unknown columns colour, mood; rename .* columns=, .* ignore=True; fields are job_number",
        ),
        (
            {"run_time": None},
            {},
            r"no column run_time in the frame \(it has submit_time, processors\); say with",
        ),
        ({"processors": None}, {}, "no column processors"),
        (
            {"requested_processors": 1},
            {},
            "processors and requested_processors .* are both requested_processors",
        ),
        (
            {"size": 1},
            {"columns": {"size": "processors"}},
            "processors and size .* are both requested_processors",
        ),
        ({"who": 1}, {"columns": {"user": "who"}}, "columns renames user, which the frame does not have"),
        ({"who": 1}, {"columns": {"who": "uzer"}}, "columns names no field uzer; fields are"),
        ({}, {"time_zone": "Europe/Room", "columns": {}}, None),
        ({"submit_time": CLOCK}, {"time_zone": "Europe/Room"}, "time zone 'Europe/Room' is unknown"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    changes: dict[str, Any], options: dict[str, Any], problem: str | None
) -> None:
    if problem is None:
        assert Workload.from_dataframe(table(**changes), **options).time_zone == "Europe/Room"
        return
    with pytest.raises(WorkloadError, match=problem):
        Workload.from_dataframe(table(**changes), **options)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, None], [1, 2, -1]),
        ([1.0, 2.0, 3.0], [1, 2, 3]),
        ([1.5, None, 3], [1.5, -1.0, 3.0]),
        (pd.array([1, None, 3], "Int64"), [1, -1, 3]),
        (pd.array([1, None, 3], "UInt8"), [1, -1, 3]),
        (pd.array([1.5, None, 3], "Float64"), [1.5, -1.0, 3.0]),
        ([None, None, None], [-1, -1, -1]),
        (LENGTHS, [1, 60, 3600]),
        ([LENGTHS[0], None, LENGTHS[2]], [1, -1, 3600]),
        (pd.to_timedelta(["1s", "1.25s", None]), [1.0, 1.25, -1.0]),
        (pd.Series([1, 2.5, None], dtype=object), [1.0, 2.5, -1.0]),
    ],
)
@pytest.mark.parametrize("name", [*sorted({*TIMES} - {*EXTRA_FIELDS})])
def test_times_of_a_table(name: str, values: Any, expected: list[float]) -> None:
    column = getattr(Workload.from_dataframe(table(**{name: values})), name)
    assert column.tolist() == expected
    assert column.dtype == np.asarray(expected).dtype


def test_points_in_time_of_a_clock_without_zone() -> None:
    assert_fields(
        Workload.from_dataframe(table(submit_time=CLOCK), time_zone=ROME),
        submit_time=[0, 3600, 14 * 3600],
        unix_start_time=pd.Timestamp("2024-01-01 09:00", tz="UTC").timestamp(),
        time_zone=ROME,
    )


@pytest.mark.parametrize("zone", [ROME, "UTC", "America/New_York"])
def test_points_in_time_bring_their_zone(zone: str) -> None:
    assert_fields(
        Workload.from_dataframe(table(submit_time=CLOCK.dt.tz_localize(zone))),
        submit_time=[0, 3600, 14 * 3600],
        unix_start_time=CLOCK.dt.tz_localize(zone)[0].timestamp(),
        time_zone=zone,
    )


def test_points_in_time_in_other_forms() -> None:
    unix = CLOCK.dt.tz_localize(ROME)
    expected = Workload.from_dataframe(table(submit_time=unix))
    mixed = [unix[0], unix[1].tz_convert("UTC"), unix[2].to_pydatetime()]
    for other in (
        mixed,
        [time.to_pydatetime() for time in unix],
        unix.dt.as_unit("ns"),
        unix.dt.as_unit("s"),
        unix.dt.tz_convert("+05:30"),
    ):
        found = Workload.from_dataframe(table(submit_time=pd.Series(other)), time_zone=ROME)
        assert found.equals(expected)
    assert Workload.from_dataframe(table(submit_time=unix.dt.tz_convert("+05:30"))).time_zone is None


def test_points_in_time_with_fractions_unknown_ones_and_a_given_start() -> None:
    first = pd.Timestamp("2024-01-01 00:00:10.25", tz="UTC")
    times = pd.Series([first, pd.NaT, first + pd.Timedelta("1.75s")])
    found = Workload.from_dataframe(table(submit_time=times))
    assert found.submit_time.tolist() == [0.25, -1.0, 2.0]
    start = int(pd.Timestamp("2024-01-01", tz="UTC").timestamp())
    given = Workload.from_dataframe(table(submit_time=times), unix_start_time=start)
    assert given.submit_time.tolist() == [10.25, -1.0, 12.0]
    with pytest.raises(WorkloadError, match=f"row 0: .* this is before the start, Unix time {start + 11}"):
        Workload.from_dataframe(table(submit_time=times), unix_start_time=start + 11)


def test_clocks_that_are_set_forward_and_back() -> None:
    spring = pd.Series(pd.to_datetime(["2024-03-31 01:30", "2024-03-31 03:30", "2024-03-31 04:30"]))
    assert Workload.from_dataframe(table(submit_time=spring), time_zone=ROME).submit_time.tolist() == [
        0,
        3600,
        7200,
    ]
    for wrong in ("2024-03-31 02:30", "2024-10-27 02:30"):
        times = pd.Series([CLOCK[0], pd.Timestamp(wrong), CLOCK[2]])
        with pytest.raises(
            WorkloadError, match=r"row 1: .* clock of Europe/Rome shows this time never or twice"
        ):
            Workload.from_dataframe(table(submit_time=times), time_zone=ROME)


def test_deadlines_and_reserved_starts_are_on_the_clock_of_the_submit_times() -> None:
    times = CLOCK.dt.tz_localize(ROME)
    later = times + pd.Timedelta("1D")
    found = Workload.from_dataframe(
        table(deadline=later, reserved_start=[None, *later[1:]], submit_time=times)
    )
    assert_fields(found.extra, deadline=[86400, 90000, 136800], reserved_start=[-1, 90000, 136800])
    numbers = table(deadline=later)
    with pytest.raises(WorkloadError, match="say with unix_start_time= when submit time 0 is"):
        Workload.from_dataframe(numbers)
    start = int(times[0].timestamp())
    assert Workload.from_dataframe(numbers, unix_start_time=start).extra["deadline"][0] == 86400


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("submit_time", CLOCK, r"column submit_time \(dtype datetime64.*, row 0: .*; say with time_zone="),
        (
            "submit_time",
            CLOCK.astype(str),
            r"\(dtype .*, row 0: '2024.*; give seconds, .* pandas.to_datetime",
        ),
        (
            "submit_time",
            [CLOCK[0], CLOCK[1].tz_localize(ROME), CLOCK[2]],
            "all times with their zone, or none",
        ),
        ("run_time", CLOCK, "give a length of time, such as the difference of two columns"),
        ("run_time", ["1", "2", "3"], "row 0: '1'.*pandas.to_timedelta"),
        ("run_time", [1, "2", 3], r"dtype object, row 1: '2'"),
        ("run_time", [1, np.inf, 3], r"dtype float64, row 1: inf\) cannot be read; give finite numbers"),
        ("run_time", [True, False, True], "dtype bool, row 0: True"),
        ("run_time", [1, 10**30, 2], f"row 1: {10**30}.*64 bits"),
        ("run_time", np.array([1, 2, 2**63], np.uint64), "row 2: 9223372036854775808.*below 2"),
        ("run_time", [1, LENGTHS[0], 3], "dtype object, row 1: Timedelta.*give seconds, or lengths of time"),
        ("user", ["ada", "bob", "ada"], r"row 0: 'ada'.*pandas.factorize\(frame\['user'\]\)\[0\]"),
        ("user", pd.Categorical(["ada", "bob", "ada"]), "dtype category, row 0: 'ada'.*pandas.factorize"),
        ("user", [1, 2.5, 3], r"row 1: 2.5\) cannot be read; give whole numbers"),
        ("user", LENGTHS, "dtype timedelta64.*give numbers"),
        (
            "processors",
            [1, 2.5, 3],
            r"column processors \(requested_processors\) \(dtype float64, row 1: 2.5",
        ),
        ("job_number", [1, None, 3], "row 1: nan.*give one to each job, or leave the column out"),
        ("deadline", [1, None, 3], "row 1: nan.*give one to each job, or leave the column out"),
        ("used_memory", ["1K", "2K", "3K"], "pandas.to_numeric"),
        ("wait_time", pd.period_range("2024", periods=3, freq="D"), "dtype period"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_values_that_cannot_be_read_are_refused(name: str, values: Any, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        Workload.from_dataframe(table(**{name: values}))


def test_rows_are_named_by_the_index() -> None:
    frame = table(user=[1, 2, 0.5]).set_index(pd.Index(["a", "b", "c"]))
    with pytest.raises(WorkloadError, match=r"row c: 0\.5"):
        Workload.from_dataframe(frame)


def test_success_may_be_true_or_false() -> None:
    assert Workload.from_dataframe(table(status=[True, False, True])).status.tolist() == [1, 0, 1]


def test_a_table_without_jobs() -> None:
    empty = Workload.from_dataframe(table().iloc[:0])
    assert len(empty) == 0
    assert repr(empty) == "Workload 'workload': 0 jobs"
    objects = pd.DataFrame({"submit_time": [], "run_time": [], "processors": []}, dtype=object)
    assert len(Workload.from_dataframe(objects)) == 0


@pytest.mark.parametrize(
    "changes", [{"deadline": [5, 6, 7]}, {"dependencies": dependency_table([(1, 0, "after")])}]
)
def test_workloads_of_which_one_has_a_column_differ(changes: dict[str, Any]) -> None:
    more = replace(three(), **changes)
    assert not three().equals(more)
    assert not more.equals(three())
    assert more.equals(replace(three(), **changes))


# --- what is shown --------------------------------------------------------------------------------


def test_what_is_shown_of_a_workload() -> None:
    workload = three(
        submit_time=[0, 3600, 86400 * 10],
        run_time=[86400, 43200, -1],
        processors_available=8,
        unix_start_time=int(pd.Timestamp("2024-05-06", tz="UTC").timestamp()),
        left_out={"larger than the machine": 4, "status 5": 1000},
        repaired={"out of order": 1},
        home=[0, 1, 0],
    )
    assert repr(workload) == (
        "Workload 'three': 3 jobs submitted over 10.0 d from 2024-05-06, 1 to 4 processors, "
        "cluster of 8, load 0.025\n"
        "  left out: 4 larger than the machine, 1,000 status 5\n"
        "  repaired: 1 out of order\n"
        "  also: home"
    )
    assert repr(three().select(slice(1, 2))) == "Workload 'three': 1 job submitted over 0 s, 2 processors"


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("run_time", [1, -50, -1], r"column run_time .*row b: -50.*a negative time; give times from 0 on"),
        ("run_time", pd.to_timedelta(["1s", "1s", "-2min"]), r"row c: .*a negative time"),
        ("submit_time", [-5, -3, 0], r"column submit_time .*row a: -5.*2 negative times"),
        ("wait_time", [0.0, -0.5, np.nan], r"row b: -0.5.*a negative time"),
    ],
)
def test_negative_times_are_named_as_such(column: str, values: Any, problem: str) -> None:
    good = {"submit_time": [0, 1, 2], "run_time": [1, 2, 3], "processors": [1, 1, 1]}
    frame = pd.DataFrame({**good, column: values}, index=["a", "b", "c"])
    with pytest.raises(WorkloadError, match=problem):
        Workload.from_dataframe(frame)


def test_unknown_times_and_those_of_logs_are_no_mistake() -> None:
    """-1 is unknown; what a log says survives the trip, for `clean` to count."""
    frame = pd.DataFrame({"submit_time": [0, 1], "run_time": [5, -1], "processors": [1, 1]})
    assert Workload.from_dataframe(frame).run_time.tolist() == [5, -1]
    log = Workload(
        name="log",
        submit_time=np.array([0, 1]),
        run_time=np.array([-7, 5]),
        requested_processors=np.array([1, 1]),
    )
    assert Workload.from_dataframe(log.to_dataframe()).equals(log)
