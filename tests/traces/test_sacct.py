"""Reading exports of sacct: what is a job, when it ran, on how much, and what is said of the rest."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import GridschedError, TraceError
from gridsched.traces import _delimited
from gridsched.traces._slurm_values import parse_duration
from gridsched.traces.sacct import AccountingLog, is_sacct, read_accounting, read_sacct
from gridsched.workloads.dependencies import KINDS
from tests.support.errors import refused
from tests.support.fields import assert_fields, field

COLUMNS = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|Suspended|State|Timelimit|"
    "AllocCPUS|ReqCPUS|NNodes|Reservation|AllocTRES"
)
DEFAULTS = {
    "User": "ada",
    "Account": "maths",
    "Partition": "batch",
    "QOS": "normal",
    "Submit": "2024-05-01T10:00:00",
    "Eligible": "2024-05-01T10:00:00",
    "Start": "2024-05-01T10:01:00",
    "End": "2024-05-01T10:11:00",
    "ElapsedRaw": "600",
    "Suspended": "00:00:00",
    "State": "COMPLETED",
    "Timelimit": "01:00:00",
    "AllocCPUS": "4",
    "ReqCPUS": "4",
    "NNodes": "1",
    "Reservation": "",
    "AllocTRES": "cpu=4,mem=8G,node=1",
}


def line(job: object, **fields: object) -> str:
    """A line of the export with the usual values where none is given; ElapsedRaw is `Elapsed`."""
    values = {"JobID": job, "JobIDRaw": job, **DEFAULTS, **fields}
    return "|".join(str(values[column]) for column in COLUMNS.split("|"))


def export(tmp_path: Path, *lines: str, header: str = COLUMNS, name: str = "export.txt") -> Path:
    path = tmp_path / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(tmp_path: Path, *lines: str, **options: Any) -> AccountingLog:
    return read_accounting(export(tmp_path, *lines), **options)


def ids(log: AccountingLog) -> list[str]:
    return [identifier.decode() for identifier in log.identifiers]


# --- what is a job --------------------------------------------------------------------------------


def test_a_job_in_the_columns_of_a_workload(tmp_path: Path) -> None:
    log = read(tmp_path, line(7, AllocCPUS=8, ReqCPUS=6, Timelimit="1-02:03:04"), time_zone="Europe/Rome")
    workload = log.workload
    assert_fields(
        workload,
        name="export",
        job_number=[7],
        submit_time=[0],
        wait_time=[60],
        run_time=[600],
        requested_time=[93784],
        status=[1],
    )
    assert workload.processors.tolist() == workload.allocated_processors.tolist() == [8]
    start = datetime(2024, 5, 1, 10, tzinfo=ZoneInfo("Europe/Rome"))
    assert_fields(workload, unix_start_time=start.timestamp(), time_zone="Europe/Rome")
    assert log.names == {
        "user": ("ada",),
        "group": ("maths",),
        "partition": ("batch",),
        "queue": ("normal",),
        "constraint": (),
    }
    assert not log.without_zone


WAITING: dict[str, object] = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "AllocCPUS": 0}
SPRING, AUTUMN, UNIX = "2024-03-31T", "2024-10-27T", 1714557600
IN_UNIX_TIME = line(1, Submit=UNIX, Eligible=UNIX, Start=UNIX + 60, End=UNIX + 660)
ELIGIBLE = (
    line(1),
    line(2, Eligible="2024-05-01T10:00:40"),
    line(3, Eligible="Unknown"),
    line(4, Eligible="2024-05-01T12:00:00"),
)


@pytest.mark.parametrize(
    ("lines", "options", "expected"),
    [
        pytest.param(
            (line(1), line("1.batch"), line("1.extern"), line("1.0"), line("2_3.4"), line("2_3")),
            {},
            {"ids": ["1", "2_3"], "left_out": {"step of a job": 4}},
            id="steps",
        ),
        pytest.param(
            (line("9_1", JobIDRaw=11), line("9_2", JobIDRaw=12), line("9_[3-9%2]", JobIDRaw=9, **WAITING)),
            {},
            {
                "ids": ["9_1", "9_2"],
                "job_number": [11, 12],
                "left_out": {"array tasks that had not started": 1},
                "array task": [True, True],
            },
            id="tasks of arrays",
        ),
        pytest.param(
            (line(1), line(f"10_[{','.join(map(str, range(1, 900, 2)))}]", JobIDRaw=10, State="PENDING")),
            {},
            {"ids": ["1"]},
            id="a long list of tasks",
        ),
        pytest.param(
            (line("5+0", JobIDRaw=5), line("5+1", JobIDRaw=6)),
            {},
            {"ids": ["5+0", "5+1"], "component of a heterogeneous job": [True, True]},
            id="parts of heterogeneous jobs",
        ),
        pytest.param(
            (
                line(1, State="RUNNING", End="Unknown", ElapsedRaw=100),
                line(2, **WAITING),
                line(3, State="REQUEUED"),
                line(1),
                line(2),
                line(3, Submit="2024-05-01T10:11:00", Start="2024-05-01T10:12:00", End="2024-05-01T10:22:00"),
            ),
            {},
            {
                "ids": ["1", "2", "3", "3"],
                "left_out": {"repeated line of a job": 2},
                "run_time": [600] * 4,
                "job_number": [1, 2, 3, 4],
            },
            id="the last line of a run counts, and every run is a job",
        ),
        pytest.param(
            (line(1, State="RUNNING", End="Unknown", ElapsedRaw=4321),),
            {},
            {"run_time": [4321], "repaired": {"still running, taken to end at the export": 1}},
            id="running at the export",
        ),
        pytest.param(
            (line(1, ElapsedRaw=400, Suspended="00:03:20"), line(2, ElapsedRaw="", Suspended="00:03:20")),
            {},
            {"run_time": [400, 400], "seconds suspended": [200, 200], "flags": ["suspended"]},
            id="suspended time is no run time",
        ),
        pytest.param(
            (line(1, Submit="2024-05-01T10:01:30"),),
            {},
            {"wait_time": [0], "repaired": {"started before it was submitted, wait taken as 0": 1}},
            id="a start before the submission",
        ),
        pytest.param((line(1),), {}, {"unix_start_time": UNIX, "without zone": True}, id="no zone is UTC"),
        pytest.param(
            (IN_UNIX_TIME,),
            {},
            {"unix_start_time": UNIX, "wait_time": [60], "without zone": False},
            id="Unix times",
        ),
        pytest.param(
            (IN_UNIX_TIME,), {"time_zone": "Asia/Tokyo"}, {"unix_start_time": UNIX}, id="Unix times anywhere"
        ),
        pytest.param(
            ELIGIBLE,
            {},
            {"wait_time": [60] * 4, "eligible after submission": [False, True, False, True]},
            id="waits from submission",
        ),
        pytest.param(
            ELIGIBLE,
            {"begin": "eligible"},
            {"ids": ["1", "3", "4", "2"], "wait_time": [60, 60, 60, 20]},
            id="waits from eligibility",
        ),
        pytest.param(
            (line(1, Submit=f"{SPRING}01:00:00", Start=f"{SPRING}02:30:00", End=f"{SPRING}04:00:00"),),
            {"time_zone": "Europe/Rome"},
            {"time that the clock never showed": [True]},
            id="an hour that never was",
        ),
        pytest.param(
            # The clock in Rome showed the hour from 2:00 twice. In the order of their submissions:
            (
                # Only the elapsed time tells that it ended the second time.
                line(
                    2,
                    Submit=f"{AUTUMN}01:00:00",
                    Start=f"{AUTUMN}01:30:00",
                    End=f"{AUTUMN}02:30:00",
                    ElapsedRaw=7200,
                ),
                # Only the elapsed time tells that it started the second time.
                line(
                    3,
                    Submit=f"{AUTUMN}01:00:00",
                    Start=f"{AUTUMN}02:30:00",
                    End=f"{AUTUMN}03:30:00",
                    ElapsedRaw=3600,
                ),
                # Nothing tells: the first time.
                line(
                    4,
                    Submit=f"{AUTUMN}01:00:00",
                    Start=f"{AUTUMN}02:30:00",
                    End=f"{AUTUMN}02:40:00",
                    ElapsedRaw=600,
                ),
                # Submitted the first time, started the second: the other way it would start before.
                line(
                    5,
                    Submit=f"{AUTUMN}02:50:00",
                    Start=f"{AUTUMN}02:10:00",
                    End=f"{AUTUMN}03:10:00",
                    ElapsedRaw=3600,
                ),
            ),
            {"time_zone": "Europe/Rome"},
            {"wait_time": [1800, 9000, 5400, 1200], "time that the clock showed twice": [True] * 4},
            id="a night of two o'clocks",
        ),
        pytest.param(
            (line(1, AllocCPUS=128, ReqCPUS=1), line(2)),
            {},
            {"processors": [128, 4], "more processors than requested": [True, False]},
            id="what was held counts",
        ),
        pytest.param(
            (line(1, AllocTRES="cpu=4,gres/gpu=2"), line(2, Reservation="maintenance"), line(3)),
            {},
            {"generic resources": [True, False, False], "reservation": [False, True, False]},
            id="resources and reservations",
        ),
        pytest.param(
            (line(1, AllocTRES="cpu=4,gres/gpu:a100=2,node=2"), line(2, AllocTRES="cpu=4,mem=4M")),
            {},
            {"requested_gpus": [2, -1], "requested_nodes": [2, -1], "requested_memory": [-1, 1024]},
            id="GPUs and nodes",
        ),
        pytest.param(
            (line(1), COLUMNS, line(2)),
            {},
            {"ids": ["1", "2"], "left_out": {"repeated header": 1}},
            id="exports behind one another",
        ),
    ],
)
def test_lines_and_what_is_read(
    lines: tuple[str, ...], options: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    log = read(tmp_path, *lines, **options)
    found = {name: flag.tolist() for name, flag in log.flags.items()}
    found |= {"ids": ids(log), "flags": list(log.flags), "seconds suspended": log.suspended.tolist()}
    found |= {"without zone": log.without_zone}
    found |= {name: field(log.workload, name) for name in expected if name not in found}
    assert {name: found[name] for name in expected} == expected


def test_jobs_are_in_order_of_submission_and_names_are_numbered(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        line(1, User="ada", Submit="2024-05-01T10:00:50", Start="2024-05-01T10:01:00"),
        line(2, User="bob", Submit="2024-05-01T10:00:20"),
        line(3, User="ada", Submit="2024-05-01T10:00:20"),
    )
    assert ids(log) == ["2", "3", "1"]
    assert log.workload.submit_time.tolist() == [0, 0, 30]
    assert [log.names["user"][number] for number in log.workload.user] == ["bob", "ada", "ada"]
    assert log.rows(log.workload.select(np.array([2, 0]))).tolist() == [2, 0]


def test_without_raw_numbers_repeated_ones_are_made_unique(tmp_path: Path) -> None:
    columns = ("JobID", "Submit", "Start", "End", "State", "NCPUS")
    rows = [
        "|".join([job, *(DEFAULTS[column] for column in columns[1:5]), "2"]) for job in ("10_1", "10_2", "11")
    ]
    log = read_accounting(export(tmp_path, *rows, header="|".join(columns)))
    assert_fields(
        log.workload,
        job_number=[10, 12, 11],
        repaired={"job number of another job, made unique": 1},
        run_time=[600, 600, 600],
        user=[-1, -1, -1],
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "AllocCPUS": 0},
            "waiting when the export was made",
        ),
        ({"State": "CANCELLED by 1000", "Start": "None", "AllocCPUS": 0}, "cancelled before it started"),
        # Older versions write the time of the cancellation as start and end.
        (
            {
                "State": "CANCELLED",
                "Start": "2024-05-01T11:00:00",
                "End": "2024-05-01T11:00:00",
                "AllocCPUS": 0,
            },
            "cancelled before it started",
        ),
        ({"State": "DEADLINE", "Start": "Unknown", "AllocCPUS": 0}, "cancelled before it started"),
        ({"State": "BOOT_FAIL", "Start": "Unknown", "AllocCPUS": 0}, "never started"),
        ({"Submit": "Unknown"}, "no submit time"),
        ({"State": "RUNNING", "End": "Unknown", "ElapsedRaw": ""}, "still running, for an unknown time"),
        (
            {"Start": "2024-05-01T10:01:00", "End": "2024-05-01T10:00:30", "ElapsedRaw": ""},
            "ends before it starts",
        ),
        ({"AllocCPUS": "", "ReqCPUS": ""}, "no size"),
    ],
)
def test_what_did_not_run_is_left_out_and_counted(
    fields: dict[str, object], reason: str, tmp_path: Path
) -> None:
    log = read(tmp_path, line(1), line(2, **fields))
    assert_fields(log.workload, job_number=[1], left_out={reason: 1})


@pytest.mark.parametrize(
    ("held", "sizes", "ran"),
    [
        ("AllocCPUS", ("|8", "|0"), False),
        ("AllocCPUS", ("|8", "|8"), True),
        ("AllocNodes|ReqNodes", ("|2|2", "|0|2"), False),
        ("AllocNodes|ReqNodes", ("|2|2", "|2|2"), True),
        ("", ("", ""), False),
    ],
)
def test_nodes_that_jobs_asked_for_do_not_say_that_they_ran(
    held: str, sizes: tuple[str, str], ran: bool, tmp_path: Path
) -> None:
    clock = "2024-05-06T10:00:00|2024-05-06T15:00:00|2024-05-06T"
    rows = [f"1|{clock}16:00:00|COMPLETED|2{sizes[0]}", f"2|{clock}15:00:00|CANCELLED by 1000|2{sizes[1]}"]
    path = export(tmp_path, *rows, header="|".join(["JobID|Submit|Start|End|State|NNodes", held]).rstrip("|"))
    left_out = {} if ran else {"cancelled before it started": 1}
    assert read_sacct(path, unit="nodes").left_out == left_out
    waiting = read_sacct(path, unit="nodes", cancelled="wait")
    assert_fields(waiting, run_time=[3600, 0 if ran else -1], processors=[2, 2])


@pytest.mark.parametrize(
    ("state", "status", "flag"),
    [
        ("COMPLETED", 1, None),
        ("FAILED", 0, None),
        ("TIMEOUT", 0, None),
        ("CANCELLED by 1000", 5, None),
        ("CANCELLED+", 5, None),
        ("NODE_FAIL", 0, "node failure"),
        ("PREEMPTED", 0, "preempted"),
        ("OUT_OF_MEMORY", 0, "out of memory"),
        ("REQUEUED", -1, "requeued"),
        ("RESIZING", 0, "resized"),
        ("A_STATE_OF_TOMORROW", 0, None),
    ],
)
def test_jobs_that_ran_stay_however_they_ended(
    state: str, status: int, flag: str | None, tmp_path: Path
) -> None:
    log = read(tmp_path, line(1, State=state))
    assert_fields(log.workload, status=[status], run_time=[600])
    assert list(log.flags) == ([flag] if flag else [])


def test_a_state_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_bytes(f"{COLUMNS}\n{line(1, State='?')}\n".encode().replace(b"?", b"\xff"))
    assert read_sacct(path).status.tolist() == [0]


def test_cancelled_jobs_that_ran_no_time_are_left_out_where_nothing_says_what_they_held(
    tmp_path: Path,
) -> None:
    rows = [
        f"{job}|{DEFAULTS['Submit']}|{DEFAULTS['Start']}|{elapsed}|{state}|2"
        for job, elapsed, state in ((1, 0, "CANCELLED by 1"), (2, 0, "COMPLETED"), (3, 5, "CANCELLED by 1"))
    ]
    log = read_accounting(export(tmp_path, *rows, header="JobID|Submit|Start|ElapsedRaw|State|ReqCPUS"))
    assert ids(log) == ["2", "3"]
    assert log.workload.left_out == {"cancelled before it started": 1}


# --- times ----------------------------------------------------------------------------------------


@given(
    zone=st.sampled_from(["Europe/Rome", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]),
    submit=st.integers(1_577_836_800, 1_893_456_000),
    wait=st.integers(0, 10_000),
    run=st.integers(0, 200_000),
)
@settings(max_examples=60)
@example(zone="Europe/Rome", submit=1_729_990_000, wait=0, run=3600)
def test_times_of_any_zone_come_back(
    tmp_path_factory: pytest.TempPathFactory, zone: str, submit: int, wait: int, run: int
) -> None:
    """Waits are right unless the clock was set back in between; then they are at most that much wrong."""
    clock = ZoneInfo(zone)

    def shown(seconds: int) -> datetime:
        return datetime.fromtimestamp(seconds, clock)

    times = [shown(submit + seconds) for seconds in (0, wait, wait + run)]
    texts = [f"{time:%Y-%m-%dT%H:%M:%S}" for time in times]
    path = tmp_path_factory.mktemp("zones")
    job = line(1, Submit=texts[0], Eligible=texts[0], Start=texts[1], End=texts[2], ElapsedRaw=run)
    workload = read(path, job, time_zone=zone).workload
    assert workload.run_time.tolist() == [run]
    twice = any(time.replace(fold=0).utcoffset() != time.replace(fold=1).utcoffset() for time in times)
    if twice:
        assert workload.wait_time[0] >= 0
        assert abs(int(workload.wait_time[0]) - wait) <= 3600
    else:
        assert_fields(workload, wait_time=[wait], unix_start_time=submit)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00", 0),
        ("05:30", 330),
        ("01:00:00", 3600),
        ("1-00:00:00", 86400),
        ("10-23:59:59", 950399),
        ("00:00:01.500", 1),
        ("UNLIMITED", -1),
        ("Partition_Limit", -1),
        ("", -1),
        ("1-", None),
        ("an hour", None),
        ("-5:00", None),
        ("1:2:3:4", None),
    ],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@given(st.timedeltas(timedelta(0), timedelta(days=5000)))
def test_durations_come_back(duration: timedelta) -> None:
    seconds = int(duration.total_seconds())
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    assert parse_duration(f"{days}-{clock}" if days else clock) == seconds


def test_time_limits(tmp_path: Path) -> None:
    log = read(tmp_path, line(1, Timelimit="UNLIMITED"), line(2, Timelimit="Partition_Limit"), line(3))
    assert log.workload.requested_time.tolist() == [-1, -1, 3600]
    header = COLUMNS.replace("Timelimit", "TimelimitRaw")
    raw = read_accounting(export(tmp_path, line(1, Timelimit="90"), line(2, Timelimit=""), header=header))
    assert raw.workload.requested_time.tolist() == [5400, -1]


# --- processors -----------------------------------------------------------------------------------


def test_nodes_instead_of_cpus(tmp_path: Path) -> None:
    path = export(tmp_path, line(1, AllocCPUS=256, NNodes=2))
    assert read_sacct(path).processors.tolist() == [256]
    assert read_sacct(path, unit="nodes").processors.tolist() == [2]


# --- the file -------------------------------------------------------------------------------------


def test_columns_in_any_order_and_with_another_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(
        b"\xef\xbb\xbfstate;comment;end;start;submit;jobid;alloccpus;user\r\n"
        b"COMPLETED;a|b;200;100;50;7;3;Ad\xe1\r\n\r\n"
    )
    log = read_accounting(path)
    assert log.workload.name == "export"
    assert (log.workload.wait_time[0], log.workload.run_time[0], log.workload.processors[0]) == (50, 100, 3)
    assert log.names["user"] == ("Ad\N{REPLACEMENT CHARACTER}",)


def test_a_delimiter_at_the_end_of_lines(tmp_path: Path) -> None:
    """What `--parsable` prints, without the 2."""
    assert len(read_sacct(export(tmp_path, line(1) + "|", header=COLUMNS + "|"))) == 1


def test_compressed_exports(tmp_path: Path) -> None:
    path = tmp_path / "month.txt.gz"
    path.write_bytes(gzip.compress(export(tmp_path, line(1)).read_bytes()))
    assert read_sacct(path).name == "month"


def test_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["ada", "bob", "eve", "dan"]
    path = export(tmp_path, *(line(job, User=names[job * 7 % 4]) for job in range(1, 200)))
    whole = read_accounting(path)
    monkeypatch.setattr(_delimited, "_BLOCK", 1)
    monkeypatch.setattr("gridsched.traces._bytes._CHUNK", 100)
    parts = read_accounting(path)
    assert parts.workload.equals(whole.workload)
    assert parts.names == whole.names


def test_the_same_workload_as_its_own_swf_log(tmp_path: Path) -> None:
    workload = read_sacct(export(tmp_path, *(line(job, AllocCPUS=job) for job in range(1, 9))))
    gs.write_swf(workload, tmp_path / "log.swf")
    again = gs.read_swf(tmp_path / "log.swf")
    assert all(np.array_equal(column, again.columns[name]) for name, column in workload.columns.items())
    assert (again.unix_start_time, again.time_zone) == (workload.unix_start_time, "UTC")
    assert "ada" not in (tmp_path / "log.swf").read_text()


def test_what_is_an_export(tmp_path: Path) -> None:
    swf = tmp_path / "log.swf"
    swf.write_text("; Note: sacct | JobID\n1 0 0 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n")
    assert not is_sacct(swf)
    assert not is_sacct(tmp_path / "missing")
    assert not is_sacct(tmp_path)
    assert is_sacct(export(tmp_path, line(1)))
    (tmp_path / "wide").write_text("       JobID    State \n------------ -------- \n")
    assert is_sacct(tmp_path / "wide")


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "where", "what"),
    [
        ([line(1), line(2) + "|x"], ":3:", "20 fields, the header has 19"),
        ([line(1), "2|3"], ":3:", "2 fields, the header has 19"),
        ([line(1), "2|3"], ":3:", "cut off"),
        ([line(1), line("x7")], ":3:", "JobID is 'x7'"),
        ([line(1), line(2, Submit="Mon 12:34")], ":3:", "Submit is 'Mon 12:34'"),
        ([line(1), line(2, Start="2024-02-30T00:00:00")], ":3:", "Start is '2024-02-30"),
        ([line(1), line(2, End="3024-02-20T00:00:00")], ":3:", "SLURM_TIME_FORMAT"),
        ([line(1), line(2, ElapsedRaw="1.5K")], ":3:", "ElapsedRaw is '1.5K'"),
        ([line(1), line(2, AllocCPUS="4M")], ":3:", "--noconvert"),
        ([line(1), line(2, Timelimit="soon")], ":3:", "Timelimit is 'soon'"),
        ([line(1), line(2, Suspended="x")], ":3:", "Suspended is 'x'"),
        ([line(1), line(2, User="u" * 300)], ":3:", "at most 256"),
        ([line(1), line("7" * 65)], ":3:", "at most 64"),
        ([line(1), line("7" * 20)], ":3:", "no job ID"),
        ([line(1), line(2, User="a\0b")], ":3:", "zero byte"),
        ([line(1), "sacct: error: no connection"], ":3:", "1 fields"),
        ([], "export.txt:", "no job, only a header"),
        ([line("1.0")], "export.txt:", "1 step of a job"),
        ([line(1, State="PENDING", Start="Unknown")], "export.txt:", "1 waiting when the export was made"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_errors_name_the_line_and_the_remedy(lines: list[str], where: str, what: str, tmp_path: Path) -> None:
    with refused(where, what, error=TraceError):
        read(tmp_path, *lines)


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ("", "the file is empty"),
        ("JobID State", "no header of columns"),
        ("       JobID    JobName", "no header of columns"),
        ("------------ ----------", "no header of columns"),
        ("sacct: error: Unable to connect", "an error of sacct"),
        ("JobID|State|Submit", "no column Start"),
        ("JobID|State|Submit|Start|AllocCPUS", "no column End"),
        ("JobID|State|Submit|Start|End", "no column AllocCPUS"),
        ("JobName|State|Submit|Start|End|AllocCPUS", "no column JobID"),
    ],
)
def test_headers_that_will_not_do(header: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    fields = header.count("|")
    path.write_text(f"{header}\n1{'|' * fields}\n" if header else "")
    with pytest.raises(TraceError, match=what):
        read_sacct(path)


def test_nodes_as_processors_need_their_number(tmp_path: Path) -> None:
    rows = "|".join(["1", *(DEFAULTS[column] for column in ("Submit", "Start", "End", "State")), "2"])
    without = export(tmp_path, rows, header="JobID|Submit|Start|End|State|AllocCPUS", name="cpus.txt")
    with pytest.raises(TraceError, match="no column NNodes"):
        read_sacct(without, unit="nodes")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_delimited, "LONGEST_LINE", 1000)
    monkeypatch.setattr(_delimited, "_BLOCK", 2000)
    for length in (1500, 10_000):
        path = export(tmp_path, line(1), "x" * length)
        with pytest.raises(TraceError, match=r":3: a line of more than 1,000 bytes"):
            read_sacct(path)


def test_blank_lines_before_the_header_and_long_fields_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    short = "\n".join(f"{job}|5|6|7|COMPLETED|1|" for job in range(1, 40_000))
    long = f"\n40000|5|6|7|COMPLETED|1|{'u' * 256}\n40001|5|6|7|COMPLETED|1|{'u' * 256}"
    path.write_text("\n" * 5_000_000 + "JobID|Submit|Start|End|State|AllocCPUS|User\n" + short + long)
    tracemalloc.start()
    try:
        log = read_accounting(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(log.workload) == 40_001
    assert peak < 150e6


# --- anything at all ------------------------------------------------------------------------------

FIELD = st.one_of(
    st.sampled_from(
        [
            *DEFAULTS.values(),
            *("1", "1_2", "1_[3-5]", "2+1", "3.batch", "Unknown", "None", "", "0", "-1", "1-00:00:00"),
            *(
                "PENDING",
                "RUNNING",
                "CANCELLED by 0",
                "9" * 19,
                "2024-10-27T02:30:00",
                "\u00e9",
                "JobID",
                "1.5K",
            ),
        ]
    ),
    st.text(st.characters(exclude_characters="\n\r|", exclude_categories=["Cs"]), max_size=12),
)


@given(st.lists(st.lists(FIELD, min_size=19, max_size=19), max_size=6), st.sampled_from(["cpus", "nodes"]))
@settings(max_examples=150)
def test_fields_of_any_kind_give_a_clean_workload_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], unit: Any
) -> None:
    path = export(tmp_path_factory.mktemp("fields"), *("|".join(row) for row in rows))
    try:
        log = read_accounting(path, time_zone="Europe/Rome", unit=unit)
    except GridschedError:
        return
    workload = log.workload
    assert (sum(workload.left_out.values()) + len(workload)) == sum(any(row) for row in rows)
    assert len(np.unique(workload.job_number)) == len(workload)
    assert (workload.wait_time >= 0).all()
    assert (workload.run_time >= 0).all()
    assert (workload.processors > 0).all()
    assert (np.diff(workload.submit_time) >= 0).all()


@given(st.binary(max_size=400))
@settings(max_examples=150)
@example(COLUMNS.encode())
@example(COLUMNS.encode() + b"\n" + b"|" * 18)
@example(b"\n\n\r\n")
@example(b"JobID|")
def test_bytes_of_any_kind_end_in_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "export"
    path.write_bytes(content)
    with pytest.raises(GridschedError):
        read_sacct(path)
    is_sacct(path)


@given(st.data())
@settings(max_examples=80)
def test_damaged_exports_end_well(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A good export with some bytes changed, cut out or repeated."""
    content = bytearray("\n".join([COLUMNS, *(line(job) for job in range(1, 4))]).encode() + b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=5))
        if not content:
            break
    path = tmp_path_factory.mktemp("damage") / "export.txt"
    path.write_bytes(bytes(content))
    try:
        workload = read_sacct(path)
    except GridschedError:
        return
    assert len(workload)


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ("cpu=4,mem=8G,node=1", 0),
        ("billing=4,gres/gpu=3,cpu=4", 3),
        ("gres/gpu:a100=2,gres/gpu:h100=1", 3),
        ("cpu=4,gres/gpu:a100=2,gres/gpu=2", 2),
        ("gres/gpumem=40G,gres/gpuutil=50,gres/nvme=1", 0),
        ("gres/gpu=,gres/gpu=x", 0),
    ],
)
def test_gpus_are_counted_once(resources: str, gpus: int, tmp_path: Path) -> None:
    assert read(tmp_path, line(1, AllocTRES=resources)).gpus.tolist() == [gpus]


def test_states_of_all_lines_that_stand_for_a_job(tmp_path: Path) -> None:
    never = {"Start": "Unknown", "AllocCPUS": "0", "ElapsedRaw": "0"}
    log = read(
        tmp_path,
        line(1, State="TIMEOUT"),
        line(1, State="FAILED"),
        line("1.batch", State="FAILED"),
        line(2, State="CANCELLED by 1000"),
        line(3, State="CANCELLED by 1001", **never),
        line(4, State="PENDING", **never),
    )
    assert [log.states[code] for code in log.state] == ["FAILED", "CANCELLED"]
    assert log.idle_states == {"CANCELLED": 1, "PENDING": 1}


# --- memory, GPUs and nodes -----------------------------------------------------------------------

TRES = f"{COLUMNS}|ReqTRES"


def resources(tmp_path: Path, held: str, asked: str = "", **fields: object) -> AccountingLog:
    """Log of a job on 4 CPUs with these resources."""
    row = f"{line(1, AllocTRES=held, **fields)}|{asked}"
    return read_accounting(export(tmp_path, row, header=TRES))


@pytest.mark.parametrize(
    ("amount", "kibibytes"),
    [
        ("4000M", 1_024_000),
        ("4000", 1_024_000),
        ("8G", 2 * 1024**2),
        ("62.5g", 16_384_000),
        ("1T", 256 * 1024**2),
        ("5K", 1),
        ("3K", -1),
        ("0", -1),
    ],
)
def test_memory_is_shared_out_among_processors_and_never_grows(
    amount: str, kibibytes: int, tmp_path: Path
) -> None:
    log = resources(tmp_path, f"billing=4,cpu=4,mem={amount},node=1")
    assert log.workload.requested_memory.tolist() == [kibibytes]


@pytest.mark.parametrize(
    ("held", "asked", "gpus"),
    [
        ("cpu=4,gres/gpu=2", "cpu=4,gres/gpu=1", [2]),
        ("", "cpu=4,gres/gpu=1", [1]),
        ("cpu=4", "cpu=4,gres/gpu=1", None),
    ],
)
def test_what_a_job_held_goes_before_what_it_asked_for(
    held: str, asked: str, gpus: list[int] | None, tmp_path: Path
) -> None:
    column = resources(tmp_path, held, asked).workload.requested_gpus
    assert (None if column is None else column.tolist()) == gpus


def test_what_is_asked_for_counts_where_there_is_no_other_column(tmp_path: Path) -> None:
    header = "JobID|Submit|Start|End|State|ReqCPUS|ReqTRES"
    row = f"1|{DEFAULTS['Submit']}|{DEFAULTS['Start']}|{DEFAULTS['End']}|COMPLETED|2|cpu=2,mem=2M,node=1"
    workload = read_sacct(export(tmp_path, row, header=header))
    assert workload.requested_memory.tolist() == [1024]
    assert list(workload.extra) == ["requested_nodes"]


def test_memory_of_nodes_where_these_are_the_processors(tmp_path: Path) -> None:
    path = export(tmp_path, line(1, NNodes=2, AllocTRES="cpu=4,mem=4M,node=2"))
    assert read_sacct(path, unit="nodes").requested_memory.tolist() == [2048]


def test_an_export_without_resources_has_no_further_columns(tmp_path: Path) -> None:
    header, _, _ = COLUMNS.rpartition("|")
    row, _, _ = line(1).rpartition("|")
    workload = read_sacct(export(tmp_path, row, header=header))
    assert not workload.extra
    assert workload.requested_memory.tolist() == [-1]


@pytest.mark.parametrize(("held", "asked", "column"), [("mem=4X", "", "AllocTRES"), ("", "mem=x", "ReqTRES")])
def test_memory_that_is_no_amount_names_line_and_column(
    held: str, asked: str, column: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match=rf"export\.txt:2: {column} is 'mem=.*no amount like 4000M; export"):
        resources(tmp_path, held, asked)


# --- who gave up, and who waited for whom ---------------------------------------------------------

NEVER: dict[str, object] = {"Start": "Unknown", "AllocCPUS": 0, "ElapsedRaw": 0, "AllocTRES": ""}


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({"State": "CANCELLED by 1000", **NEVER}, True),
        ({"State": "DEADLINE", **NEVER, "Start": "None", "ElapsedRaw": ""}, True),
        # older versions write the time of the cancellation as start and end
        ({"State": "CANCELLED", **NEVER, "Start": "2024-05-01T10:11:00"}, True),
        ({"State": "REVOKED", **NEVER}, False),
        ({"State": "CANCELLED", **NEVER, "End": "Unknown"}, False),
        ({"State": "PENDING", **NEVER, "End": "Unknown"}, False),
    ],
)
def test_jobs_that_were_cancelled_before_they_started_wait_until_their_end(
    fields: dict[str, object], waits: bool, tmp_path: Path
) -> None:
    lines = (line(1, Submit="2024-05-01T09:59:00"), line(2, **{**fields, "User": "eve"}))
    workload = read(tmp_path, *lines, cancelled="wait").workload
    assert len(workload) == 1 + waits
    assert read(tmp_path, *lines).workload.gives_up_time is None
    if not waits:
        assert sum(workload.left_out.values()) == 1
        return
    assert_fields(
        workload,
        left_out={},
        gives_up_time=[-1, 60 + 11 * 60],
        wait_time=[120, 11 * 60],
        run_time=[600, -1],
        status=[1, 5],
        processors=[4, 4],
    )
    waiting = gs.clean(workload, cancelled="wait")
    assert waiting.gives_up_time is not None
    assert waiting.gives_up_time.tolist() == [-1, 720]
    # as the job that ran: 600 of 3600 s
    assert waiting.run_time.tolist() == [600, 600]
    assert_fields(gs.clean(workload), left_out={"cancelled before it started": 1}, gives_up_time=None)


@pytest.mark.parametrize(
    ("fields", "options", "what"),
    [
        ({"State": "CANCELLED", **NEVER}, {"cancelled": "wait"}, "no job that ran"),
        ({}, {"cancelled": "gone"}, "cancelled is 'gone'; use one of recorded, wait"),
        ({}, {"max_bytes": 100}, "GRIDSCHED_MAX_BYTES"),
        ({}, {"time_zone": "Nowhere/City"}, "Nowhere/City"),
        ({}, {"time_zone": "../x"}, "../x"),
        ({}, {"unit": "cores"}, "cores"),
        ({}, {"begin": "start"}, "start"),
    ],
)
def test_options_that_will_not_do(
    fields: dict[str, object], options: dict[str, Any], what: str, tmp_path: Path
) -> None:
    with refused(what):
        read(tmp_path, line(1, **fields), **options)


def depending(
    folder: Path, *rows: tuple[str, str], header: str = "Dependency|JobName", **options: Any
) -> Any:
    """Log of lines with what each depends on and its name."""
    return read_accounting(
        export(folder, *(f"{row}|{text}" for row, text in rows), header=f"{COLUMNS}|{header}"), **options
    )


def kept(log: AccountingLog) -> set[tuple[str, str, int, int]]:
    """Dependencies of a log by job IDs."""
    table = log.workload.dependencies
    rows = [] if table is None else table.tolist()
    return {(ids(log)[job], ids(log)[on], kind, delay) for job, on, kind, delay in rows}


def assert_repaired(log: AccountingLog, expected: dict[str, int]) -> None:
    """Reasons with these words, and how often."""
    repaired = log.workload.repaired
    assert len(repaired) == len(expected)
    assert {word: n for word in expected for reason, n in repaired.items() if word in reason} == expected


AFTER, AFTER_ANY, AFTER_OK, AFTER_NOT_OK = (
    KINDS[name] for name in ("after", "afterany", "afterok", "afternotok")
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set()),
        ("(null)", set()),
        ("afterok:1", {("9", "1", AFTER_OK, 0)}),
        ("afterok:1:5_1(unfulfilled)", {("9", "1", AFTER_OK, 0), ("9", "5_1", AFTER_OK, 0)}),
        ("afterany:5", {("9", "5_1", AFTER_ANY, 0), ("9", "5_2", AFTER_ANY, 0)}),
        ("afternotok:5_*", {("9", "5_1", AFTER_NOT_OK, 0), ("9", "5_2", AFTER_NOT_OK, 0)}),
        ("after:1+5,afterany:7", {("9", "1", AFTER, 300), ("9", "5_2", AFTER_ANY, 0)}),
        ("afterburstbuffer:1", {("9", "1", AFTER_ANY, 0)}),
    ],
)
def test_dependencies(text: str, found: set[Any], tmp_path: Path) -> None:
    log = depending(
        tmp_path,
        (line(1), "|a"),
        (line("5_1", JobIDRaw=6), "|a"),
        (line("5_2", JobIDRaw=7), "|a"),
        (line(9), f"{text}|a"),
    )
    assert kept(log) == found
    assert log.workload.repaired == {}
    # with waits from eligibility, those for other jobs are over
    again = depending(tmp_path, (line(1), "|a"), (line(9), f"{text}|a"), begin="eligible")
    assert again.workload.dependencies is None


def test_tasks_wait_for_the_same_task_of_another_array(tmp_path: Path) -> None:
    tasks = [
        (line(f"{array}_{task}", JobIDRaw=10 * array + task), f"{'aftercorr:1' if array == 2 else ''}|a")
        for array in (1, 2)
        for task in (1, 2)
    ]
    assert kept(depending(tmp_path, *tasks)) == {
        ("2_1", "1_1", AFTER_OK, 0),
        ("2_2", "1_2", AFTER_OK, 0),
    }


def test_singletons_run_one_at_a_time_with_jobs_of_their_name(tmp_path: Path) -> None:
    rows = [(line(1), "|a"), (line(2), "|b"), (line(3), "singleton|a"), (line(4, User="bob"), "singleton|a")]
    assert kept(depending(tmp_path, *rows)) == {("3", "1", AFTER_ANY, 0)}


@pytest.mark.parametrize(
    ("rows", "header", "repaired"),
    [
        (
            [
                (line(1), "|a"),
                (line(2), "afterok:1?afterok:99|a"),
                (line(3), "afterok:99|a"),
                (line(4), "afterok:5|a"),
                (line(5, State="CANCELLED", **NEVER), "|a"),
            ],
            "Dependency|JobName",
            {"is not in the log": 2, "any of several": 1},
        ),
        (
            [(line(1), ""), (line(3), "singleton"), (line(4, User="bob"), "singleton")],
            "Dependency",
            {"JobName": 2},
        ),
    ],
)
def test_dependencies_that_cannot_be_kept_are_counted(
    rows: list[tuple[str, str]], header: str, repaired: dict[str, int], tmp_path: Path
) -> None:
    log = depending(tmp_path, *rows, header=header)
    assert kept(log) == set()
    assert_repaired(log, repaired)


def test_dependencies_of_command_lines(tmp_path: Path) -> None:
    lines = [
        "",
        "sbatch --dependency=afterok:1 x.sh",
        "sbatch -d afterany:2 x",
        'sbatch -d "afterok:3" --dep x',
        "sbatch --dependency=$LAST x.sh",
        "sbatch --wrap='ls -d a'",
        "sbatch --dependency=afterok:1 run.sh -d none",
        "sbatch -d afterany:2 run.sh --dependency=afterok:1",
        "sbatch --dependency=$LAST run.sh -d afterok:1",
    ]
    rows = [(line(number), text) for number, text in enumerate(lines, start=1)]
    log = depending(tmp_path, *rows, header="SubmitLine")
    assert kept(log) == {
        ("2", "1", AFTER_OK, 0),
        ("3", "2", AFTER_ANY, 0),
        ("4", "3", AFTER_OK, 0),
        ("7", "1", AFTER_OK, 0),
        ("8", "2", AFTER_ANY, 0),
    }
    assert_repaired(log, {"on its command line": 2})


def test_a_run_that_was_put_back_is_what_others_wait_for(tmp_path: Path) -> None:
    log = depending(
        tmp_path,
        (line(1, State="REQUEUED"), ""),
        (line(1, Submit="2024-05-01T10:11:00", Start="2024-05-01T10:12:00", End="2024-05-01T10:22:00"), ""),
        (line(2, Submit="2024-05-01T10:30:00", Start="2024-05-01T10:31:00"), "afterok:1"),
        header="Dependency",
    )
    assert [(job, on) for job, on, *_ in log.workload.dependencies.tolist()] == [(2, 1)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        *(
            (["", text], r"export\.txt:3: Dependency is .* no dependency like afterok")
            for text in ("afterok", "afterok:x", "sometimes:1", "afterok:1;afterok:2", "1")
        ),
        (
            ["", "afterok:4", "afterok:2", "afterok:3"],
            r"export\.txt:\d: a circle of dependencies \(lines [345], [345], [345]\)",
        ),
    ],
)
def test_what_is_no_dependency_names_its_lines(texts: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        depending(tmp_path, *((line(job), text) for job, text in enumerate(texts, 1)), header="Dependency")


def test_names_of_jobs_of_any_length_are_left_aside_without_dependencies(tmp_path: Path) -> None:
    path = export(tmp_path, f"{line(1)}|{'x' * 5000}", header=f"{COLUMNS}|JobName")
    assert len(read_sacct(path)) == 1


def test_the_jobs_of_an_export_are_simulated_with_all_that_it_tells(tmp_path: Path) -> None:
    log = depending(
        tmp_path,
        (line(1), ""),
        (line(2, State="FAILED"), "afterok:1"),
        (line(3), "afterok:2"),
        (line(4, State="CANCELLED", **NEVER, End="2024-05-01T10:00:30"), ""),
        header="Dependency",
        cancelled="wait",
    )
    run = gs.simulate(gs.clean(log.workload, cancelled="wait"), 4, "fcfs")
    gs.verify(run)
    assert_fields(run, fate=[0, 0, 3, 2], start_time=[0, 600, -1, -1])
