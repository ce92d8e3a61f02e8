"""The program itself: help, streams, encodings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from gridsched.cli import main
from gridsched.policies.local import POLICIES, OverrunName, PassName
from gridsched.submission import EstimateName
from tests.support.fields import assert_fields
from tests.support.logs import JOBS, row, swf

SCRIPT = Path(sys.executable).parent / "gridsched"


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
    assert_fields(
        done,
        returncode=2,
        stdout="",
        stderr=f"gridsched: error: {log.parent}: is a directory; give the path of a log\n",
    )


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
