"""Fixtures of the benchmarks, and the table at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridsched as gs
from tests.benchmarks.table import Table
from tests.benchmarks.yardstick import Yardstick, compiler

_TABLE = pytest.StashKey[Table]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = Table()


@pytest.fixture(scope="session")
def table(pytestconfig: pytest.Config) -> Table:
    return pytestconfig.stash[_TABLE]


@pytest.fixture(scope="session")
def yardstick(tmp_path_factory: pytest.TempPathFactory) -> Yardstick:
    """The C++ implementation; what is compared with it is skipped where it cannot be compiled."""
    path = compiler()
    if path is None:
        pytest.skip("no C++ compiler for the yardstick: install g++ or clang++, or set CXX")
    return Yardstick(path, tmp_path_factory.mktemp("yardstick"))


@pytest.fixture(scope="session")
def kth(archive_mirror: Path) -> gs.Workload:
    """The log of KTH-SP2."""
    return gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[_TABLE].lines()
    if len(lines) > 1:
        terminalreporter.section("gridsched beside its yardsticks")
        for line in lines:
            terminalreporter.write_line(line)
