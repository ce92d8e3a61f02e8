"""Small tables for the tests of readers of CSV, and where the published ones are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "multi-resource"


def published(name: str) -> Path:
    """A published trace, from the folder beside the checkout; tests that need it skip without."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"no trace {name} in ../shared/multi-resource")
    return path


def table(folder: Path, *rows: Mapping[str, object], name: str = "table.csv") -> Path:
    """CSV file with the columns of the first row."""
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
