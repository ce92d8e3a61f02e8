"""Options of the fault tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=5, help="how often the workflow is killed")
    parser.addoption("--moments", type=int, default=1, help="seed of the moments at which it is killed")
