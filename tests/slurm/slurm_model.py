"""A schedule that a real controller makes here and now, and the model at the controller's own passes.

Not collected by `pytest`; `make test-slurm` runs it while there is a Slurm: see README.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.recording import compared, plan_of, record
from tests.slurm.session import RefusalError

JOBS = 40


def test_the_model_starts_every_job_when_the_controller_did(tmp_path: Path) -> None:
    plan = plan_of(JOBS, seed=1)
    try:
        record(tmp_path, plan)
    except RefusalError as refusal:
        pytest.skip(f"no schedule to compare with: {refusal}")
    differences = compared(tmp_path, plan)
    assert not differences, f"{len(differences)} of {JOBS} jobs differ:\n" + "\n".join(differences)
