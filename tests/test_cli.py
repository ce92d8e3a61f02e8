"""The command line: what it prints and writes, and that every mistake ends in one line."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import gridsched as gs
from gridsched import results
from gridsched.cli import main
from gridsched.schedulers.local import POLICIES, OverrunName, PassName
from gridsched.simulation import EstimateName, simulate

SCRIPT = Path(sys.executable).parent / "gridsched"
KTH = "KTH-SP2-1996-2.1-cln.swf.gz"
HEADER = "; Computer: Abacus\n; MaxProcs: 4\n; UnixStartTime: 0\n; TimeZoneString: Europe/Rome\n"
JOBS = [(0, 100, 2, 200), (10, 50, 4, 60), (20, 30, 2, 30), (20, 10, 1, -1), (40, 500, 3, 400)]
"""Submit time, run time, processors and requested time."""


def swf(jobs: Iterable[tuple[int, int, int, int]], header: str = HEADER) -> str:
    lines = (
        f"{number} {submit} -1 {run} {size} -1 -1 {size} {requested} -1 1 {number % 2} 1 1 1 1 -1 -1\n"
        for number, (submit, run, size, requested) in enumerate(jobs, start=1)
    )
    return header + "".join(lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "abacus.swf"
    path.write_text(swf(JOBS))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of what is kept, empty and without mirrors; kernels that are loaded already stay."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GRIDSCHED_CACHE", str(folder))
    monkeypatch.delenv("GRIDSCHED_MIRRORS", raising=False)
    return folder


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Function that runs a command which succeeds and gives its output."""

    def run(*arguments: Any) -> str:
        assert main([str(argument) for argument in arguments]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.fixture
def mistake(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Function that runs a command which fails and gives the line that says why."""

    def run(*arguments: Any) -> str:
        assert main([str(argument) for argument in arguments]) == 2
        captured = capsys.readouterr()
        *warned, line = captured.err.splitlines()
        assert line.startswith("gridsched: error: ")
        assert all(warning.startswith("gridsched: warning: ") for warning in warned)
        return line

    return run


def row(text: str, name: str) -> list[str]:
    """Cells of the first line that begins with a name, without thousands separators."""
    line = next(line for line in text.splitlines() if line.startswith(f"{name} "))
    return line.removeprefix(name).replace(",", "").split()


# --- info -----------------------------------------------------------------------------------------


def test_info_of_the_kth_log(archive_mirror: Path, printed: Callable[..., str]) -> None:
    text = printed("info", archive_mirror / KTH)
    assert row(text, "computer") == ["IBM", "SP2"]
    assert row(text, "acknowledgement") == ["Lars", "Malinowsky"]
    assert row(text, "processors")[0] == "100"
    assert row(text, "start") == ["1996-09-23", "14:00:31", "CEST"]
    assert row(text, "time zone") == ["Europe/Stockholm"]
    assert row(text, "jobs") == ["28476"]
    assert row(text, "span") == ["332.9", "days"]
    assert row(text, "users") == ["214"]
    assert row(text, "requested time")[:3] == ["28476", "of", "28476"]
    assert row(text, "1996-10") == ["2407"]
    assert row(text, "1996-11") == ["1984"]
    assert row(text, "cleaning, left out: no size") == ["1"]
    workload = gs.read_swf(archive_mirror / KTH)
    run_time = np.percentile(workload.run_time, [10, 25, 50, 75, 90, 99, 100])
    assert row(text, "run time [s]") == [f"{value:.0f}" for value in run_time]


def test_info_counts_what_is_known_and_what_cleaning_does(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([*JOBS, (5, 10, 2, 10), (-1, 5, 1, 5), (99, -1, 1, 5), (99, 5, 5, 5)]))
    text = printed("info", path)
    assert row(text, "requested time")[:3] == ["8", "of", "9"]
    assert row(text, "recorded wait")[:3] == ["0", "of", "9"]
    assert row(text, "cleaning, left out: no submit time") == ["1"]
    assert row(text, "cleaning, left out: no run time") == ["1"]
    assert row(text, "cleaning, left out: larger than the machine") == ["1"]
    assert row(text, "cleaning, repaired: out of order") == ["1"]
    assert row(text, "recorded wait [s]") == ["-"] * 7


def test_info_of_a_log_that_says_nothing_of_itself(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=""))
    text = printed("info", path)
    assert row(text, "computer") == row(text, "start") == row(text, "time zone") == ["not", "given"]
    assert row(text, "offered load") == ["-"]
    assert "months  not known:" in text


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "Europe"])
def test_info_of_a_log_with_a_time_zone_that_does_not_exist(
    zone: str, tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=HEADER.replace("Europe/Rome", zone)))
    text = printed("info", path)
    assert row(text, "start") == ["1970-01-01", "00:00:00", "UTC"]
    assert "months  not known:" in text


def test_info_of_a_log_with_absurd_times(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([(2**60, 10, 1, 10)]))
    text = printed("info", path)
    assert "after the start" in text
    assert "cleaning          fails:" in text


def test_piped_lines_keep_their_width_and_cannot_command_the_terminal(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    computer = "x" * 300 + "\x1b[31m" + " [bold]markup[/bold] :smile: é"
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=f"; Computer: {computer}\n"))
    text = printed("info", path)
    assert "\x1b" not in text
    assert computer.replace("\x1b", "\N{REPLACEMENT CHARACTER}") in text
    assert not any(line.endswith(" ") for line in text.splitlines())


# --- simulate -------------------------------------------------------------------------------------


def test_simulating_a_month_of_the_kth_log(
    archive_mirror: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = archive_mirror / KTH
    starts, stacked = tmp_path / "new" / "starts.csv", tmp_path / "new" / "runs.nc"
    text = printed(
        "simulate", path, "--policy", "easy,fcfs", "--month", "1996-10", "--csv", starts, "--output", stacked
    )
    assert row(text, "jobs") == ["2407"]
    assert row(text, "left out: outside the window") == ["26069"]

    workload = gs.clean(gs.select_window(gs.read_swf(path), month="1996-10"))
    table = pd.read_csv(starts)
    assert list(table) == [
        *("job_number", "submit_time", "run_time", "processors", "start_time easy", "start_time fcfs")
    ]
    assert_array_equal(table["job_number"], workload.job_number)
    written = results.read(stacked)
    for index, policy in enumerate(("easy", "fcfs")):
        run = gs.simulate(workload, policy=policy)
        assert_array_equal(table[f"start_time {policy}"], run["start_time"])
        assert_array_equal(results.unstack_run(written, index)["start_time"], run["start_time"])
        summary = gs.summarise(run).sel(job_class="all")
        mean, half, median, slowdown, slowdown_half, used, longest = row(text, policy)
        assert float(mean) == pytest.approx(float(summary["wait_time_mean"]), abs=0.5)
        assert float(half.removeprefix("±")) == pytest.approx(
            float(summary["wait_time_mean_high"] - summary["wait_time_mean"]), abs=0.5
        )
        assert float(median) == pytest.approx(float(summary["wait_time_quantile"].sel(quantile=0.5)), abs=0.5)
        assert float(slowdown) == pytest.approx(float(summary["bounded_slowdown_mean"]), abs=0.005)
        assert float(slowdown_half.removeprefix("±")) == pytest.approx(
            float(summary["bounded_slowdown_mean"] - summary["bounded_slowdown_mean_low"]), abs=0.005
        )
        assert float(used) == pytest.approx(float(summary["utilisation"]), abs=0.0005)
        assert float(longest) == float(summary["queue_length_max"])
    assert float(row(text, "recorded")[0]) == pytest.approx(workload.wait_time.mean(), abs=0.5)


def test_recorded_waits_use_no_share_of_another_machine(
    archive_mirror: Path, printed: Callable[..., str]
) -> None:
    command = ("simulate", archive_mirror / KTH, "--jobs", "0:500")
    assert row(printed(*command), "recorded")[-2] != "-"
    assert row(printed(*command, "--processors", 128), "recorded")[-2] == "-"


def test_recorded_slowdowns_are_those_of_the_log_at_any_speed(
    archive_mirror: Path, printed: Callable[..., str]
) -> None:
    command = ("simulate", archive_mirror / KTH, "--jobs", "0:500")
    plain = row(printed(*command), "recorded")
    assert row(printed(*command, "--speed", 2, "--kill"), "recorded") == plain


def test_every_option_reaches_the_simulation(log: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    target = tmp_path / "runs.nc"
    options = (
        "--estimates clairvoyant --processors 6 --processors-per-node 2 --node-exclusive --speed 1.5 "
        "--kill --overrun increments --passes event --policy all,easy(2),fcfs --jobs 1:4"
    )
    text = printed("simulate", log, *options.split(), "--output", target)
    assert "6 processors in nodes of 2, one job a node, speed 1.5" in text
    assert row(text, "no requested time") == ["1", "jobs", "whose", "run", "time", "is", "taken"]
    assert row(text, "killed") == ["1", "jobs", "at", "their", "requested", "time"]

    cluster = gs.Cluster(processors=6, processors_per_node=2, node_exclusive=True, speed=1.5, name="abacus")
    workload = gs.clean(gs.select_window(gs.read_swf(log), jobs=(1, 4)), processors=6)
    stacked = results.read(target)
    assert stacked["run"].values.tolist() == [*POLICIES, "easy(2)"]
    for index, policy in enumerate(stacked["run"].values):
        expected = simulate(
            workload,
            cluster,
            str(policy),
            estimates="clairvoyant",
            kill=True,
            overrun="increments",
            passes="event",
        )
        assert results.unstack_run(stacked, index).equals(expected)


def test_warm_up_jobs_are_not_measured(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf([(0, 100, 4, 100), (0, 10, 4, 10), (1000, 10, 4, 10), (1000, 10, 4, 10)]))
    assert row(printed("simulate", path), "easy")[0] == "28"
    assert row(printed("simulate", path, "--warm-up", 0.5), "easy")[0] == "5"


def test_jobs_larger_than_the_cluster_are_counted(log: Path, printed: Callable[..., str]) -> None:
    text = printed("simulate", log, "--processors", 2)
    assert row(text, "left out: larger than the machine") == ["2"]
    assert row(text, "jobs") == ["3"]


def test_a_score_is_the_queue_order_of_a_policy(
    log: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    score, starts = tmp_path / "score.py", tmp_path / "starts.csv"
    score.write_text("def narrow(processors: int) -> float:\n    return -processors\n")
    text = printed("simulate", log, "--score", f"{score}:narrow", "--csv", starts)
    assert "policy score" in text
    assert "with EASY backfilling" in text
    policy = gs.LocalPolicy(name="narrow", order="smallest", backfilling="easy")
    run = gs.simulate(gs.clean(gs.read_swf(log)), policy=policy)
    table = pd.read_csv(starts)
    assert list(table)[-2:] == ["start_time easy", "start_time score"]
    assert_array_equal(table["start_time score"], run["start_time"])
    only = printed("simulate", log, "--policy", "score", "--score", f"{score}:narrow")
    assert row(only, "score") == row(text, "score")
    assert "easy " not in only


# --- fetch and cache ------------------------------------------------------------------------------


def test_fetching_from_a_mirror_makes_the_log_known_by_name(
    archive_mirror: Path, cache: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    assert "gridsched fetch KTH-SP2-1996" in mistake("info", "kth-sp2-1996")
    assert row(printed("fetch", "--list"), "KTH-SP2-1996") == ["28476", "100", "0.4", "MB", "known", "no"]
    path = cache / "archive" / KTH
    assert printed("fetch", "--mirror", archive_mirror, "KTH-SP2-1996") == f"{path}\n"
    assert path.read_bytes() == (archive_mirror / KTH).read_bytes()
    assert row(printed("fetch", "--list", "KTH-SP2-1996"), "KTH-SP2-1996")[-1] == "yes"
    assert row(printed("info", "kth-sp2-1996"), "file") == [str(path)]


def test_fetching_several_logs_to_a_folder(
    archive_mirror: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    folder = tmp_path / "logs"
    text = printed(
        *("fetch", "KTH-SP2-1996", "NASA-iPSC-1993", "--folder", folder),
        *("--mirror", tmp_path, "--mirror", archive_mirror),
    )
    paths = [Path(line) for line in text.splitlines()]
    assert paths == [folder / KTH, folder / "NASA-iPSC-1993-3.1-cln.swf.gz"]
    assert all(path.is_file() for path in paths)


def test_a_log_that_no_place_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Callable[..., str]
) -> None:
    # A proxy that does not exist keeps the archive out of this test; nobody waits before trying it again.
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    message = mistake("fetch", "KTH-SP2-1996", "--mirror", tmp_path)
    assert f"no good copy found; tried {tmp_path / KTH} (no such file)" in message


def test_the_cache_of_kernels_is_shown_and_cleared(cache: Path, printed: Callable[..., str]) -> None:
    kernel = cache / "kernels" / "0123" / "kernel.nbi"
    kernel.parent.mkdir(parents=True)
    kernel.write_bytes(bytes(2_000_000))
    kept = cache / "archive" / KTH
    kept.parent.mkdir()
    kept.write_bytes(b"")
    assert row(printed("cache", "show"), str(cache / "kernels")) == ["compiled", "kernels", "1", "2.0", "MB"]
    assert str(cache / "kernels") in printed("cache", "clear")
    assert not (cache / "kernels").exists()
    assert kept.exists()
    assert row(printed("cache", "show"), str(cache / "kernels")) == ["compiled", "kernels", "0", "0.0", "MB"]
    printed("cache", "clear")


# --- mistakes -------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("command", ["info", "simulate"])
def test_files_that_cannot_be_read(command: str, tmp_path: Path, mistake: Callable[..., str]) -> None:
    assert "no such file" in mistake(command, tmp_path / "missing.swf")
    assert "missing.swf: no such file, and" in mistake(command, "missing.swf")
    assert "is a directory" in mistake(command, tmp_path)
    assert "not a regular file" in mistake(command, "/dev/null")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--policy speedy", "unknown policy 'speedy'; use one of fcfs, "),
        ("--policy easy,", "unknown policy ''"),
        ("--policy score", "name it with --score"),
        ("--month 1996-13", "'1996-13' is no month"),
        ("--month October", "'October' is no month"),
        ("--month 1999-10", "no job in 1999-10; the log has 1970-01 to 1970-01"),
        ("--jobs 3:5", "no 5 jobs from index 3 on"),
        ("--jobs 0:0", "no 0 jobs"),
        ("--processors 4 --jobs 1:1 --processors 3", "no job remains after cleaning (1 larger than the"),
        ("--processors 99999999999", "at most 2147483647 can be simulated"),
        ("--processors-per-node 3", "4 processors are not whole nodes of 3"),
        ("--speed 1e-300", "at most 1099511627776 s can be simulated"),
        ("--speed 1e-8", "at most 2147483647 s can be simulated"),
    ],
)
def test_options_that_make_no_sense_for_the_log(
    options: str, reason: str, log: Path, mistake: Callable[..., str]
) -> None:
    assert reason in mistake("simulate", log, *options.split())


def test_logs_that_lack_what_an_option_needs(tmp_path: Path, mistake: Callable[..., str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header=""))
    assert "use --processors" in mistake("simulate", path)
    assert "UnixStartTime" in mistake("simulate", path, "--processors", 4, "--month", "1996-10")


@pytest.mark.parametrize(
    "options",
    [
        "",
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
    ],
)
def test_wrong_options_end_with_the_usage(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(options.split())
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("usage: gridsched")


@pytest.mark.parametrize("option", ["--output", "--csv"])
def test_targets_that_cannot_be_written(
    option: str, log: Path, tmp_path: Path, mistake: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    content = log.read_bytes()
    assert "is a folder" in mistake("simulate", log, option, tmp_path)
    assert "is the log itself" in mistake("simulate", log, option, log)
    assert "cannot be written" in mistake("simulate", log, option, log / "result")
    assert "is no regular file" in mistake("simulate", log, option, "/dev/full")
    assert log.read_bytes() == content
    assert Path("/dev/full").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == [log.name]


def test_one_target_for_two_files(log: Path, tmp_path: Path, mistake: Callable[..., str]) -> None:
    target = tmp_path / "result"
    assert "use two names" in mistake("simulate", log, "--output", target, "--csv", target)


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
        ("def f(processors): return float('nan')", "not a number"),
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


def test_scores_that_are_not_there(log: Path, tmp_path: Path, mistake: Callable[..., str]) -> None:
    assert "write it as path/to/file.py:function" in mistake("simulate", log, "--score", "score.py")
    assert "there is no file" in mistake("simulate", log, "--score", f"{tmp_path}/score.py:f")


def test_fetching_what_does_not_exist(log: Path, mistake: Callable[..., str]) -> None:
    assert "at least one log" in mistake("fetch")
    assert "did you mean KTH-SP2-1996" in mistake("fetch", "KTH-SP2-1997")
    assert "cannot be made" in mistake("fetch", "KTH-SP2-1996", "--folder", log / "folder")


def test_an_interrupt_ends_quietly(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "score.py"
    path.write_text("raise KeyboardInterrupt")
    assert main(["simulate", str(log), "--score", f"{path}:f"]) == 130
    assert capsys.readouterr() == ("", "")


# --- the program ----------------------------------------------------------------------------------


def test_help_names_what_the_library_offers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["simulate", "--help"])
    assert end.value.code == 0
    words = capsys.readouterr().out.replace(",", " ").replace("{", " ").replace("}", " ").split()
    assert {*POLICIES, *get_args(EstimateName), *get_args(OverrunName), *get_args(PassName)} <= {*words}


def test_help_loads_nothing_heavy() -> None:
    program = """
import sys
from gridsched.cli import main
try:
    main(["--help"])
except SystemExit:
    print(sorted({"numpy", "pandas", "xarray", "numba", "rich", "pooch"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "gridsched"]], ids=["script", "module"])
def test_the_installed_program(command: list[str | Path], log: Path) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gridsched ")
    done = subprocess.run([*command, "info", log.parent], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"gridsched: error: {log.parent}: is a directory; give the path of an SWF log\n"


def test_output_that_the_encoding_lacks_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernels of this process are taken, rather than compiled once more.
    monkeypatch.delenv("GRIDSCHED_CACHE")
    path = tmp_path / "log.swf"
    path.write_text(swf(JOBS, header="; Computer: Çomputer\n"), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([SCRIPT, "info", path], capture_output=True, text=True, check=True, env=environment)
    assert row(done.stdout, "computer") == ["?omputer"]


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen([SCRIPT, "fetch", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_output_to_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SCRIPT, "fetch", "--list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("gridsched: error: ")
    assert len(done.stderr.splitlines()) == 1
