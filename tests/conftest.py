"""Fixtures that all tests share, and the cases that random tests draw."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from gridsched.engine.jit import cache_root
from tests.support.examples import StoredExamples, stored

REPOSITORY = Path(__file__).parent.parent

# Machines differ in speed, so no example has a deadline. A run of the suite must not fail by chance: its
# examples are the same each time (`--hypothesis-seed` in pyproject.toml), and do not depend on constants in
# modules that happen to be loaded. `make hunt` draws others.
DATABASE = StoredExamples()
settings.register_profile(
    "gridsched",
    deadline=None,
    print_blob=True,
    database=DATABASE,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gridsched")
providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-seed", type=int, default=0, help="first seed of tests marked random_cases")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Seeds of tests that draw their cases themselves: as many as the marker says, and stored ones."""
    marker = metafunc.definition.get_closest_marker("random_cases")
    if marker is not None:
        first = metafunc.config.getoption("--first-seed")
        seeds = range(first, first + marker.args[0])
        name = metafunc.definition.nodeid
        metafunc.parametrize(
            "seed", [*seeds, *(each for each in stored().get(name, []) if each not in seeds)]
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let hypothesis find stored examples by the name of a test, whatever its source is."""
    test = getattr(item, "function", None)
    if test is not None and is_hypothesis_test(test):
        test._hypothesis_internal_database_key = item.nodeid.encode()


@pytest.fixture(scope="session")
def archive_mirror() -> Path:
    """Folder with logs of the Parallel Workloads Archive; tests that need it skip without."""
    folder = REPOSITORY.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no mirror of the workload archive at ../shared/traces")
    return folder


@pytest.fixture(scope="session")
def kernel_cache() -> Path:
    """Cache folder of this process, for processes that it starts, so that kernels are compiled once."""
    return cache_root().parent
