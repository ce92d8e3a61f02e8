"""Fixtures that all tests share, and the profile of hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parent.parent

# Machines differ in speed, so no example has a deadline. Continuous integration must not fail by chance: its
# examples are the same each time, and a failure prints what reproduces it.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def archive_mirror() -> Path:
    """Folder with logs of the Parallel Workloads Archive; tests that need it skip without."""
    folder = REPOSITORY.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no mirror of the workload archive at ../shared/traces")
    return folder


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache folder that all processes of a test session share, so that kernels are compiled once."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    return folder / "gridsched-cache"
