"""Reading logs: against a naive reader, and every way in which a file can be wrong."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError, GridschedError, TraceError
from gridsched.traces import read_swf
from gridsched.workloads.table import SWF_FIELDS, Workload
from tests.oracles.swf import naive_parse
from tests.support.errors import each_refused
from tests.support.fields import assert_fields
from tests.support.traces import HEADER, JOB, job_line, write

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}

whole_numbers = st.integers(-(2**63) + 1, 2**63 - 1).map(str) | st.sampled_from(
    ["-1", "0", "+7", "007", "-0", "9223372036854775807", "1000000000000000000"]
)
awkward_fractions = (
    "5. .5 -.5e-3 1e5 2E+2 0.1 489.00 1e22 1e23 9007199254740993.0 5e-324 -0.0 0.30000000000000004 "
    "2.2250738585072011e-308 123456789012345678901234567890.5 1e-400 +1.5e+3"
)
fractions = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.sampled_from(
    awkward_fractions.split()
)
mostly_whole = st.one_of(whole_numbers, whole_numbers, st.integers(-1, 99).map(str), fractions)
awkward_words = (
    "abc 1x --1 1e 1.2.3 nan inf 1_000 0x10 - . 9223372036854775808 1e999 -99999999999999999999 e5 1e5.0 é "
    "11111111111111111111111111111111111111111111111111111111111111111"
)
nonsense = st.sampled_from(awkward_words.split())
gaps = st.text(" \t\r\v\f", min_size=1, max_size=3)
margins = st.text(" \t\r", max_size=2)


@st.composite
def lines(draw: st.DrawFn, fields: st.SearchStrategy[str], counts: st.SearchStrategy[int]) -> str:
    values = [draw(fields) for _ in range(draw(counts))]
    spaced = "".join(value + draw(gaps) for value in values[:-1]) + "".join(values[-1:])
    return draw(margins) + spaced + draw(margins) + draw(st.sampled_from(["", "", "; note", ";"]))


comment_lines = st.builds(
    "{}{}{}".format, margins, st.sampled_from([";", ";;"]), st.text("ab 1:;é\t", max_size=9)
)
blank_lines = st.text(" \t\r", max_size=3)
job_lines = lines(mostly_whole, st.just(18))
odd_lines = lines(nonsense | mostly_whole, st.sampled_from([1, 17, 18, 18, 19, 30]))


def same_as_naive(found: Workload, text: str) -> None:
    rows, comments, malformed = naive_parse(text)
    assert not malformed
    assert found.header == tuple(comments)
    for index, name in enumerate(SWF_FIELDS):
        values = [row[index] for row in rows]
        column = getattr(found, name)
        has_fraction = any(isinstance(value, float) for value in values)
        assert column.dtype == (np.float64 if has_fraction else np.int64)
        expected = [float(value) if has_fraction else value for value in values]
        assert [str(value) for value in column.tolist()] == [str(value) for value in expected]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(job_lines | comment_lines | blank_lines, max_size=8), job_lines, st.booleans())
def test_any_log_reads_as_the_naive_reader_reads_it(
    tmp_path: Path, some: list[str], last: str, newline: bool
) -> None:
    text = "\n".join([*some, last]) + "\n" * newline
    found = read_swf(write(tmp_path, text))
    same_as_naive(found, text)
    assert found.checksum == hashlib.sha256(text.encode()).hexdigest()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(job_lines | odd_lines | comment_lines, min_size=1, max_size=8))
def test_malformed_lines_are_those_of_the_naive_reader(tmp_path: Path, some: list[str]) -> None:
    text = "\n".join(some)
    rows, _, malformed = naive_parse(text)
    path = write(tmp_path, text)
    if not malformed and rows:
        same_as_naive(read_swf(path), text)
        return
    with pytest.raises(TraceError) as raised:
        read_swf(path)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:{malformed[0]}: " if malformed else f"{path}: no job line")
    assert len(malformed) < 2 or f"({len(malformed)} malformed lines in all)" in message


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_compression_is_told_by_content(tmp_path: Path, compression: str) -> None:
    text = HEADER + "\n".join(job_line(number=n) for n in range(1, 5000))
    found = read_swf(write(tmp_path, COMPRESSORS[compression](text.encode()), "some.swf.gz"))
    assert len(found) == 4999
    assert_fields(found, name="some", checksum=hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "zstd"])
def test_compressed_parts_may_follow_each_other(tmp_path: Path, compression: str) -> None:
    compress = COMPRESSORS[compression]
    parts = compress(f"{JOB}\n".encode()) + compress(f"{job_line(number=2)}\n".encode())
    assert read_swf(write(tmp_path, parts)).job_number.tolist() == [1, 2]


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "zstd"])
def test_truncated_file(tmp_path: Path, compression: str) -> None:
    rng = np.random.default_rng(1)
    text = "\n".join(job_line(number=n, run=rng.integers(1, 10**9)) for n in range(1, 3000))
    compressed = COMPRESSORS[compression](text.encode())
    for kept in (len(compressed) - 1, len(compressed) // 2, 8):
        with pytest.raises(TraceError, match=r"log\.swf: the compressed file is truncated"):
            read_swf(write(tmp_path, compressed[:kept]))


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "zstd"])
def test_damaged_file(tmp_path: Path, compression: str) -> None:
    compressed = bytearray(COMPRESSORS[compression]((JOB + "\n").encode() * 2000))
    compressed[len(compressed) // 2] ^= 0xFF
    with pytest.raises(TraceError, match=r"log\.swf: "):
        read_swf(write(tmp_path, bytes(compressed)))


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_bound_on_the_uncompressed_size(
    tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (JOB + "\n" + " " * 1_000_000).encode()
    path = write(tmp_path, COMPRESSORS[compression](text))
    with pytest.raises(TraceError, match=r"decompression bomb.*GRIDSCHED_MAX_BYTES"):
        read_swf(path, max_bytes=len(text) - 1)
    assert len(read_swf(path, max_bytes=len(text))) == 1
    monkeypatch.setenv("GRIDSCHED_MAX_BYTES", "100000")
    with pytest.raises(TraceError, match="more than 100,000 bytes"):
        read_swf(path)
    monkeypatch.setenv("GRIDSCHED_MAX_BYTES", "4 GB")
    with pytest.raises(ConfigurationError, match="GRIDSCHED_MAX_BYTES is '4 GB'"):
        read_swf(path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 2 3", "3 fields instead of 18: '1 2 3'"),
        (JOB + " 7", "19 fields instead of 18"),
        (JOB + "\t", None),
        (JOB + " ; why not", None),
        (JOB + "; why not", None),
        (job_line(run="12h"), r"field 4 \(run_time\) is '12h', not a number"),
        (job_line(run="nan"), r"field 4 \(run_time\) is 'nan', not a number"),
        (job_line(run="1_0"), "not a number"),
        (job_line(run="1e"), "not a number"),
        (job_line(run="٣"), "not a number"),
        (job_line(submit=2**63), r"field 2 \(submit_time\) is '9223372036854775808', a number out of range"),
        (job_line(submit=-(10**30)), "a number out of range"),
        (job_line(wait="1e309"), r"field 3 \(wait_time\) is '1e309', a number out of range"),
        (job_line(wait="-1.8e308"), "a number out of range"),
        (job_line(wait="0" * 65), "a number of more than 64 characters"),
        (JOB.replace(" ", ","), "not a number"),
        ("<html>", "not a number"),
    ],
)
def test_line_that_is_no_job(tmp_path: Path, line: str, problem: str | None) -> None:
    path = write(tmp_path, f"; comment\n{JOB}\n\n{line}\n{JOB}\n")
    if problem is None:
        assert len(read_swf(path)) == 3
        return
    with pytest.raises(TraceError, match=f"log.swf:4: .*{problem}.*fix these lines"):
        read_swf(path)


LONGER = [f"{job_line(number=n)} 1 2.5 gpu" for n in range(1, 4)]


def test_a_log_whose_lines_all_have_more_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "; comment\n" + "\n".join(LONGER))
    with pytest.raises(
        TraceError, match=r'log.swf:2: 21 fields instead of 18, as every job line has.*extra_fields="ignore"'
    ):
        read_swf(path)
    read = read_swf(path, extra_fields="ignore")
    plain = read_swf(write(tmp_path, "; comment\n" + "\n".join(job_line(number=n) for n in range(1, 4))))
    assert all(np.array_equal(read.columns[name], plain.columns[name]) for name in SWF_FIELDS)
    assert read.repaired == {"more than 18 fields, the others ignored": 3}
    with pytest.raises(ConfigurationError, match="use one of refuse, ignore"):
        read_swf(path, extra_fields="drop")  # type: ignore[arg-type]


def test_fields_too_few_are_not_ignored_nor_lines_that_differ(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join([*LONGER, "1 2 3"]))
    each_refused(
        (
            TraceError,
            r"log\.swf:4: 3 fields instead of 18.*fix these lines",
            lambda: read_swf(path, extra_fields="ignore"),
        ),
        (
            TraceError,
            r"log.swf:1: 21 fields.*\(4 malformed lines in all\).*fix these lines",
            lambda: read_swf(path),
        ),
    )


def test_all_malformed_lines_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join([JOB, *[f"{n} x" for n in range(1234)], JOB]))
    with pytest.raises(TraceError) as raised:
        read_swf(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:2: field 2 (submit_time) is 'x', not a number; line 3: ")
    assert "(1,234 malformed lines in all)" in message
    assert len(message) < 1000


def test_many_overflowing_numbers_are_counted_by_line(tmp_path: Path) -> None:
    line = job_line(wait="1e400", run="1e500")
    with pytest.raises(TraceError, match=r"log\.swf:2: .*\(2,000 malformed lines in all\)"):
        read_swf(write(tmp_path, "\n".join([JOB, *[line] * 2000])))


def test_long_fractions_and_comments_in_any_number(tmp_path: Path) -> None:
    waits = np.random.default_rng(2).random(3000) * 1e-7
    text = "\n".join(f"; {n}\n{job_line(wait=f'{wait:.25f}')}" for n, wait in enumerate(waits.tolist()))
    text += "\n;" * 6000
    same_as_naive(read_swf(write(tmp_path, text)), text)


def test_fraction_after_many_whole_numbers_keeps_them(tmp_path: Path) -> None:
    lines = [job_line(run=2**53 + 1), *[job_line(run=n) for n in range(100)], job_line(run="0.5")]
    found = read_swf(write(tmp_path, "\n".join(lines)))
    assert found.run_time.tolist() == [float(2**53 + 1), *map(float, range(100)), 0.5]
    assert found.submit_time.dtype == np.int64


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"\n \n", "no job line"),
        (b"; MaxProcs: 7\n", "no job line"),
        (JOB.encode() + b"\n\x7fELF\0\0", r"log\.swf:2: a zero byte: this is a binary file"),
        (JOB.encode("utf-16"), "binary file"),
    ],
)
def test_content_that_is_no_log(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(TraceError, match=problem):
        read_swf(write(tmp_path, content))


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    each_refused(
        (TraceError, r"none\.swf: no such file", lambda: read_swf(tmp_path / "none.swf")),
        (TraceError, "is a directory", lambda: read_swf(tmp_path)),
        (TraceError, "is not a regular file", lambda: read_swf("/dev/null")),
    )


def test_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path, JOB)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(TraceError, match="cannot be read"):
            read_swf(path)
    else:
        pytest.skip("permissions do not bind this user")


def test_byte_order_mark_is_no_part_of_the_log(tmp_path: Path) -> None:
    found = read_swf(write(tmp_path, b"\xef\xbb\xbf; MaxProcs: 8\n" + JOB.encode()))
    assert found.header == ("; MaxProcs: 8",)
    assert len(found) == 1


def test_header_facts(tmp_path: Path) -> None:
    assert_fields(
        read_swf(write(tmp_path, HEADER + JOB), name="abacus"),
        name="abacus",
        header=tuple(HEADER.splitlines()),
        processors_available=64,
        unix_start_time=843480031,
        time_zone="Europe/Stockholm",
        acknowledgement="Ada; Charles",
    )


@pytest.mark.parametrize(
    ("header", "processors", "start", "zone"),
    [
        ("", None, None, None),
        ("; MAXPROCS: 1,024", 1, None, None),
        (";maxprocs:12\r", 12, None, None),
        ("; MaxNodes: 7\n; MaxProcs: -1", 7, None, None),
        ("; MaxNodes: 7\n; MaxProcs: 14", 14, None, None),
        ("; MaxNodes: many", None, None, None),
        ("; Note: MaxProcs: 9", None, None, None),
        ("; UnixStartTime: 0\n; UnixStartTime: 5", None, 0, None),
        ("; UnixStartTime: -1", None, None, None),
        ("; TimeZone: 3600   # DEPRECATED", None, None, "Etc/GMT-1"),
        ("; TimeZone: -18000", None, None, "Etc/GMT+5"),
        ("; TimeZone: 0", None, None, "Etc/GMT"),
        ("; TimeZone: 19800", None, None, None),
        ("; TimeZone: 3600\n; TimeZoneString: US/Pacific", None, None, "US/Pacific"),
        ("; TimeZoneString:", None, None, None),
    ],
)
def test_header_variants(
    tmp_path: Path, header: str, processors: int | None, start: int | None, zone: str | None
) -> None:
    found = read_swf(write(tmp_path, f"{header}\n{JOB}"))
    facts = (found.processors_available, found.unix_start_time, found.time_zone)
    assert facts == (processors, start, zone)


def test_comments_that_are_not_utf8(tmp_path: Path) -> None:
    latin, utf8 = "; Nürnberg".encode("latin-1"), "; Nürnberg".encode()
    found = read_swf(write(tmp_path, b"\n".join([latin, utf8, b"; \xff\x85\x1c", JOB.encode()])))
    assert found.header == ("; Nürnberg", "; Nürnberg", "; ÿ\x85\x1c")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: JOB.encode() + b"\n" + tail))
def test_no_content_makes_anything_but_our_errors(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    with contextlib.suppress(GridschedError):
        assert len(read_swf(path))
    path = write(tmp_path, gzip.compress(content)[:-1])
    with pytest.raises(TraceError):
        read_swf(path)
