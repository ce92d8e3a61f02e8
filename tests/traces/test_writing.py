"""Writing logs: what is written reads back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gridsched as gs
from gridsched.errors import TraceError, WorkloadError
from gridsched.traces import read_swf, write_swf
from gridsched.workloads import LublinModel
from gridsched.workloads.resampling import squeezed
from gridsched.workloads.table import SWF_FIELDS, Workload
from tests.support.traces import HEADER, JOB, workload, write


@st.composite
def any_workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 5))
    whole = arrays(np.int64, jobs, elements=st.integers(-(2**63) + 1, 2**63 - 1))
    real = arrays(np.float64, jobs, elements=st.floats(allow_nan=False, allow_infinity=False))
    columns: dict[str, Any] = {name: draw(st.one_of(whole, whole, real)) for name in SWF_FIELDS}
    header = draw(st.lists(st.text("ab;:é\t ", max_size=9).map("; {}".format), max_size=3))
    return Workload(name="any", header=tuple(header), **columns)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_workloads(), st.sampled_from(["", ".gz", ".bz2", ".zst"]))
def test_any_workload_survives_the_trip(tmp_path: Path, original: Workload, suffix: str) -> None:
    path = tmp_path / f"any.swf{suffix}"
    write_swf(original, path)
    back = read_swf(path)
    if original.header:
        assert back.equals(replace(original, checksum=back.checksum))
    again = tmp_path / f"again.swf{suffix}"
    write_swf(back, again)
    assert again.read_bytes() == path.read_bytes()


def test_one_blank_between_fields_and_header_as_it_was(tmp_path: Path) -> None:
    original = read_swf(write(tmp_path, HEADER + JOB.replace(" ", "  ") + "\r\n"))
    path = tmp_path / "out.swf"
    write_swf(original, path)
    assert path.read_text() == HEADER + JOB + "\n"


def test_what_a_workload_without_header_knows_survives(tmp_path: Path) -> None:
    original = workload(
        processors_available=128,
        unix_start_time=0,
        time_zone="Europe/Paris",
        acknowledgement="Ada and Charles",
        run_time=[0.5, 1.0, 2.0, 1e30],
    )
    path = tmp_path / "example.swf"
    write_swf(original, path)
    back = read_swf(path)
    assert back.header[0] == "; Version: 2.2"
    assert back.equals(replace(original, checksum=back.checksum, header=back.header))


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ({"processors_available": 4}, ("MaxProcs", "MaxNodes")),
        ({"processors_available": None}, ("MaxProcs", "MaxNodes")),
        ({"unix_start_time": None}, ("UnixStartTime",)),
        ({"time_zone": None}, ("TimeZone", "TimeZoneString")),
        ({"acknowledgement": "Grace"}, ("Acknowledge", "acknowledge")),
        ({"acknowledgement": "", "unix_start_time": 7}, ("Acknowledge", "acknowledge", "UnixStartTime")),
    ],
)
def test_facts_that_differ_from_the_header_survive(
    tmp_path: Path, changes: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    original = replace(read_swf(write(tmp_path, HEADER + JOB)), **changes)
    write_swf(original, tmp_path / "example.swf")
    back = read_swf(tmp_path / "example.swf", name=original.name)
    assert back.equals(replace(original, checksum=back.checksum, header=back.header))
    kept = [line for line in original.header if line.strip("; ").partition(":")[0] not in left_out]
    assert list(back.header[-len(kept) :]) == kept
    assert len(back.header) == len(kept) + sum(value not in ("", None) for value in changes.values())


def test_all_rows_of_a_large_workload_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    original = workload(submit_time=np.arange(100_001) * 3, run_time=rng.random(100_001))
    path = tmp_path / "large.swf"
    write_swf(original, path)
    rows = [line.split() for line in path.read_text().splitlines() if not line.startswith(";")]
    assert [int(row[1]) for row in rows] == original.submit_time.tolist()
    assert [float(row[3]) for row in rows] == original.run_time.tolist()


def test_same_bytes_each_time(tmp_path: Path) -> None:
    for suffix in (".gz", ".zst", ".bz2"):
        one, two = tmp_path / f"one.swf{suffix}", tmp_path / f"two.swf{suffix}"
        write_swf(workload(), one)
        write_swf(workload(), two)
        assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "one.swf.gz").read_bytes()[4:8] == bytes(4)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"submit_time": np.empty(0, np.int64)}, "no jobs"),
        ({"run_time": [1.0, np.nan, 1.0, 1.0]}, "run_time has values that are not finite"),
        ({"header": ("; fine", "1 2 3")}, "'1 2 3' is not one comment line"),
        ({"header": ("; fine\n1 2 3",)}, "is not one comment line"),
    ],
)
def test_workload_that_cannot_be_written(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        write_swf(workload(**changes), tmp_path / "bad.swf")
    assert not list(tmp_path.iterdir())


def test_place_that_cannot_be_written(tmp_path: Path) -> None:
    write(tmp_path, "", "file")
    with pytest.raises(TraceError, match="cannot be written"):
        write_swf(workload(), tmp_path / "file" / "log.swf")


def made_workloads() -> list[Workload]:
    """One of each kind that the package makes, and what it makes of one."""
    drawn = gs.synthesise(gs.load_machines()["M3"], jobs=50, seed=1)
    lublin = LublinModel.published(64).synthesise(jobs=1500, seed=1)
    labelled = replace(lublin, user=lublin.job_number % 3, unix_start_time=10**9, time_zone="Europe/Rome")
    return [drawn, lublin, gs.shake(drawn, seed=1), squeezed(drawn, 2.0), gs.resample(labelled, seed=1)]


@pytest.mark.parametrize("number", range(5))
def test_every_workload_that_is_made_can_be_written(tmp_path: Path, number: int) -> None:
    original = made_workloads()[number]
    write_swf(original, tmp_path / "made.swf")
    back = read_swf(tmp_path / "made.swf", name=original.name)
    for name, column in original.columns.items():
        assert np.array_equal(getattr(back, name), column), name
    assert back.header[-len(original.header) :] == original.header
    assert back.processors_available == original.processors_available
