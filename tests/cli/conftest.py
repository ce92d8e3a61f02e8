"""Running commands as a user does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Kernels are loaded here from the usual cache, before a test names another.
import gridsched.simulation  # noqa: F401
from gridsched.cli import main
from tests.support.logs import JOBS, swf


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
        # A first simulation says that it compiles
        said = [line for line in captured.err.splitlines() if "compiling kernels" not in line]
        assert not said
        return captured.out

    return run


@pytest.fixture
def mistake(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Function that runs a command which fails and gives the line that says why."""

    def run(*arguments: Any) -> str:
        assert main([str(argument) for argument in arguments]) == 2
        captured = capsys.readouterr()
        *warned, line = [line for line in captured.err.splitlines() if "compiling kernels" not in line]
        assert line.startswith("gridsched: error: ")
        assert all(warning.startswith("gridsched: warning: ") for warning in warned)
        return line

    return run
