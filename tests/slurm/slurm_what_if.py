"""Changes of a configuration that a real controller is given here and now, and what was predicted.

Not collected by `pytest`; `make test-slurm` runs it while there is a Slurm: see README.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.session import RefusalError
from tests.slurm.what_if import BASE, CHANGES, plan_in_partitions, record_pairs, table

JOBS = 40
SHOWN = (CHANGES[0], CHANGES[2], CHANGES[3])
"""Changes of the short form, each recorded once."""


def test_changes_are_predicted(tmp_path: Path) -> None:
    plan = plan_in_partitions(JOBS, seed=1)
    try:
        places = record_pairs(tmp_path, plan, [(BASE, 1), (BASE, 2), *((change, 1) for change in SHOWN)])
    except RefusalError as refusal:
        pytest.skip(f"no recordings to compare with: {refusal}")
    rows = table(places, SHOWN)
    shown = rows.round(1).to_string()
    # one recording of each: the sign counts where the interval says it
    told = (rows["low"] > 0) | (rows["high"] < 0)
    assert (rows["right sign"] | ~told).all(), shown
    assert rows["inside"].sum() >= len(rows) - 1, shown
