"""Fixtures of the benchmarks, and the table at the end."""

from __future__ import annotations

import pytest

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[_TABLE].lines()
    if len(lines) > 1:
        terminalreporter.section("gridsched beside its yardsticks")
        for line in lines:
            terminalreporter.write_line(line)
