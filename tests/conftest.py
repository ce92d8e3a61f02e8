"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def archive_mirror() -> Path:
    """Folder with logs of the Parallel Workloads Archive; tests that need it skip without."""
    folder = REPOSITORY.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no mirror of the workload archive at ../shared/traces")
    return folder
