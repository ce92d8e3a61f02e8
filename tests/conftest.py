"""Fixtures that all tests share, and the profile of hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from gridsched.engine.jit import cache_root

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
def kernel_cache() -> Path:
    """Cache folder of this process, for processes that it starts, so that kernels are compiled once."""
    return cache_root().parent
