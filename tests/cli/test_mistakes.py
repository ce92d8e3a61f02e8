"""Every mistake ends in one line that says what to do."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from gridsched.cli import main
from tests.support.logs import HEADER, JOBS, swf


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (HEADER.encode(), "no job line"),
        (bytes(range(256)) * 20, "binary file"),
        (b"\x7fELF\x00\x01", "binary file"),
        (swf(JOBS).encode() + b"1 2 3\n", "log:10: 3 fields instead of 18"),
        (swf(JOBS).replace(" 500 ", " long ").encode(), "log:9: field 4 (run_time) is 'long', not a number"),
        (gzip.compress(swf(JOBS).encode())[:-9], "truncated"),
    ],
    ids=["empty", "no jobs", "binary", "executable", "fields", "text", "truncated"],
)
@pytest.mark.parametrize("command", ["info", "simulate"])
def test_files_that_are_no_logs(
    command: str, content: bytes, reason: str, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    assert reason in mistake(command, path)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        *(
            (f"{command} {path}", reason)
            for command in ("info", "simulate")
            for path, reason in (
                ("{folder}/missing.swf", "no such file"),
                ("missing.swf", "missing.swf: no such file, and"),
                ("{folder}", "is a directory"),
                ("/dev/null", "not a regular file"),
            )
        ),
        *(
            (f"simulate {{log}} {options}", reason)
            for options, reason in (
                ("--policy speedy", "unknown policy 'speedy'; use one of fcfs, "),
                ("--policy easy,", "unknown policy ''"),
                ("--policy EASY", "unknown policy 'EASY'; did you mean easy?"),
                ("--policy easy(-1)", "unknown policy 'easy(-1)'; did you mean easy?"),
                ("--policy easy(0)", "reservations is 0"),
                ("--policy score", "name it with --score"),
                ("--month 1996-13", "'1996-13' is no month"),
                ("--month October", "'October' is no month"),
                ("--month 1999-10", "no job in 1999-10; the log has 1970-01 to 1970-01"),
                ("--jobs 3:5", "no 5 jobs from index 3 on"),
                ("--jobs 0:0", "no 0 jobs"),
                ("--processors 4 --jobs 1:1 --processors 3", "no job remains after cleaning (1 larger than"),
                ("--processors 99999999999", "at most 2147483647 can be simulated"),
                ("--processors-per-node 3", "4 processors are not whole nodes of 3"),
                ("--speed 1e-300", "at most 1099511627776 s can be simulated"),
                ("--speed 1e-8", "at most 2147483647 s can be simulated"),
                ("--score score.py", "write it as path/to/file.py:function"),
                ("--score {folder}/score.py:f", "there is no file"),
                ("--output {folder}/runs.csv", "ends in .nc"),
                ("--csv {folder}/starts.nc", "ends in .csv"),
                ("--output {folder}/result --csv {folder}/result", "use two names"),
                *(
                    (f"{option} {target}", reason)
                    for option in ("--output", "--csv")
                    for target, reason in (
                        ("{folder}", "is a folder"),
                        ("{log}", "is the log itself"),
                        ("{log}/result", "cannot be written"),
                        ("/dev/full", "is no regular file"),
                    )
                ),
            )
        ),
        ("simulate {bare}", "use --processors"),
        ("simulate {bare} --processors 4 --month 1996-10", "UnixStartTime"),
        ("fetch", "at least one log"),
        ("fetch KTH-SP2-1997", "did you mean KTH-SP2-1996"),
        ("fetch KTH-SP2-1996 --folder {log}/folder", "cannot be made"),
        # a file in place of a folder
        *(
            (command, "{log}")
            for command in (
                "demo --no-open --folder {log}",
                "conformance page {log}/page.html",
                "conformance export {log}",
                "conformance check {log}",
                "compare {log} --out {log}",
                "simulate {log} --output {log}/runs.nc",
                "fetch KTH-SP2-1996 --folder {log}",
            )
        ),
    ],
)
def test_commands_that_make_no_sense(
    command: str, reason: str, log: Path, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    """They say why, and leave files as they are."""
    bare = tmp_path / "bare.swf"
    bare.write_text(swf(JOBS, header=""))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    places = {"log": log, "folder": tmp_path, "bare": bare}
    assert reason.format(**places) in mistake(*command.format(**places).split())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    "options",
    [
        "fly",
        "info",
        "info a b",
        "simulate a --estimates best",
        "simulate a --processors 0",
        "simulate a --processors x",
        "simulate a --processors-per-node -1",
        "simulate a --speed 0",
        "simulate a --speed nan",
        "simulate a --speed fast",
        "simulate a --warm-up 1",
        "simulate a --warm-up -0.1",
        "simulate a --jobs 5",
        "simulate a --jobs 1:2:3",
        "simulate a --month 1996-10 --jobs 0:1",
        "simulate a --overrun never",
        "simulate a --passes never",
        "cache",
        "cache fill",
        "info ''",
        "simulate a --output ''",
        "simulate a --csv ''",
        "compare a --out ''",
        "conformance page ''",
        "fetch --folder ''",
        "explain a 1 --run x",
        "explain a 1 --run -1",
        "explain a",
        "demo more",
        "completion",
        "compare a --human=yes",
    ],
)
def test_wrong_options_end_with_one_line(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(shlex.split(options))
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("gridsched: error: ")
    assert error.count("\n") == 1
    assert "--help)" in error


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ("simulat log.swf", "did you mean simulate?"),
        ("compare log.swf --polcy easy", "did you mean --policy?"),
        ("compare log.swf --pol easy", "unknown option --pol"),
        ("simulate log.swf --estimates requestd", "did you mean requested?"),
        ("cache sho", "did you mean show?"),
        ("info log.swf other.swf", "'other.swf' is one word too many (see gridsched info --help)"),
        ("cache clear all", "'all' is one word too many (see gridsched cache clear --help)"),
        ("simulate log.swf --jobs -1:5", "--jobs: needs a value"),
        ("--policy easy", "unknown command 'easy'"),
        ("completion tcsh", "use one of bash, zsh, fish"),
    ],
)
def test_what_was_meant(options: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(options.split())
    assert meant in capsys.readouterr().err


def test_the_bare_program_shows_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "gridsched compare" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--output", "--csv"])
def test_a_disk_that_is_full(
    option: str,
    log: Path,
    tmp_path: Path,
    printed: Callable[..., str],
    mistake: Callable[..., str],
) -> None:
    resource = pytest.importorskip("resource")
    target = tmp_path / "result"
    printed("simulate", log, option, target)
    before = target.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        message = mistake("simulate", log, option, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"{target}: cannot be written" in message
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([log.name, target.name])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "has no function f"),
        ("def f(size): return size", "unknown parameter 'size'"),
        ("def f(): return 1.0", "takes no parameter"),
        ("def f(processors): return 'a'", "Numba cannot compile it"),
        ("def f(processors): return float('nan')", "not a finite number"),
        ("def f(processors): raise ValueError('too wide')", "fails with ValueError('too wide')"),
        ("f = max", "f"),
        ("class f:\n    def __init__(self, processors): pass", "has no function f"),
        ("def f(:", "fails to load"),
        ("import sys; sys.exit(0)", "fails to load: SystemExit"),
    ],
)
def test_scores_that_do_not_work(
    code: str, reason: str, log: Path, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    path = tmp_path / "score.py"
    path.write_text(code)
    assert reason in mistake("simulate", log, "--score", f"{path}:f")


def test_an_interrupt_ends_quietly(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "score.py"
    path.write_text("raise KeyboardInterrupt")
    assert main(["simulate", str(log), "--score", f"{path}:f"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("figure.png", b"\x89PNG\r\n\x1a\n", "no line is a job"),
        ("table.csv", b"job,submit\n1,0\n2,5\n", "no line is a job"),
        ("facts.json", b'{"jobs": 3}\n', "$.jobs"),
        ("page.html", b"<html>\n<body>moved</body>\n</html>\n", "no line is a job"),
    ],
)
def test_files_of_another_kind(
    name: str, content: bytes, why: str, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    (tmp_path / name).write_bytes(content)
    line = mistake("info", tmp_path / name)
    assert why in line
    assert "line 2" not in line
