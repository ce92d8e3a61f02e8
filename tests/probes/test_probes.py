"""What it costs to change gridsched: each patch adds something by changing few files, and it is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

HERE = Path(__file__).parent

JOBS = "import gridsched as gs; jobs = gs.synthesise('M3', jobs=60, seed=1)\n"

SEEN = {
    "local-policy": JOBS
    + "run = gs.simulate(jobs, 1152, 'narrow'); gs.verify(run); print(run.attrs['scheme'])\n"
    "from gridsched.experiments.schedulers import scheduler_models; print('narrow' in scheduler_models())\n",
    "measure": JOBS + "run = gs.simulate(jobs, 1152, 'easy')\n"
    "print(float(gs.summarise(run).latest_start) == float(run.start_time.max()))\n"
    "from gridsched.experiments.measuring import measured\n"
    "print('latest_start' in measured(run))\n",
    "figure": "from pathlib import Path\n"
    "from gridsched.experiments.config import load_study\n"
    "study = load_study(Path('study.yaml'))\n"
    "print('longest' in [each.name for each in study.specifications])\n",
    "node-failures": (HERE / "node_failures.py").read_text(encoding="utf-8"),
    "node-zones": (HERE / "node_zones.py").read_text(encoding="utf-8"),
}
"""What a user does with what a patch adds."""

FOUND = {
    "local-policy": ["narrow", "True"],
    "measure": ["True", "True"],
    "figure": ["True"],
    "node-failures": [*["1150"] * 7, "1160"],
    "node-zones": ["True"] * 4,
}

MOST_FILES = {"node-zones": 3}
"""Files of code that a patch may change, where these are more than one; rules of verifiers come on top."""

STUDY = """
name: probe
title: Probe
question: Is it there?
scenarios: [{ name: busy, synthetic: { machine: M3, jobs: 100 } }]
schedulers: [fcfs, easy]
replicates: 5
"""


def changed_files(patch: str) -> list[str]:
    """Files of code that a patch changes, without rules of verifiers."""
    changed = re.findall(r"^\+\+\+ b/(.*\.py)$", (HERE / f"{patch}.patch").read_text(encoding="utf-8"), re.M)
    return [name for name in changed if "verification" not in name and not name.endswith("/rules.py")]


@pytest.mark.parametrize("patch", sorted(SEEN))
def test_few_files_of_code_add_it(patch: str, tmp_path: Path) -> None:
    assert len(changed_files(patch)) <= MOST_FILES.get(patch, 1)
    for folder in ("gridsched", "resources"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    subprocess.run(
        ["git", "apply", "--recount", "-C2", str(HERE / f"{patch}.patch")],
        cwd=tmp_path,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        check=True,
    )
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    # without compilation: patched kernels would all be compiled anew
    seen = subprocess.run(
        [sys.executable, "-c", SEEN[patch]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert seen.stdout.split() == FOUND[patch], seen.stderr
