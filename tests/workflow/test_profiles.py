"""Profiles for clusters: what rules ask for, what is submitted where, and what became of a job."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.support.errors import says
from tests.support.workspace import AGAIN, TARGET, Workspace

PROFILES = REPOSITORY / "profiles"
STAGES = ("prepare", "predict", "simulate", "collect")


def rules() -> dict[str, str]:
    """Text of every rule, by name."""
    found: dict[str, str] = {}
    for path in (REPOSITORY / "workflow" / "rules").glob("*.smk"):
        parts = re.split(
            r"^(?:use )?rule (?:\w+ as )?(\w+)(?: with)?:\n",
            path.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


@pytest.mark.parametrize("resource", ["mem_mb", "runtime"])
def test_every_rule_says_what_it_needs(resource: str) -> None:
    assert set(rules()) == {*STAGES, "fetch", "draw", "claims", "report"}
    silent = [
        name for name, text in rules().items() if not re.search(rf"^\s+{resource}=", text, re.MULTILINE)
    ]
    assert silent == []


def test_rules_that_stay_here_exist() -> None:
    snakefile = (REPOSITORY / "workflow" / "Snakefile").read_text(encoding="utf-8")
    here = re.findall(r"\w+", snakefile.split("localrules:")[1].split("\n\n")[0])
    assert set(here) <= {"all", *rules()}
    assert not set(STAGES) & set(here)


def test_no_rule_names_a_system() -> None:
    systems = {path.name for path in (REPOSITORY / "gridsched" / "systems").iterdir() if path.is_dir()}
    for path in (REPOSITORY / "workflow").rglob("*"):
        if path.suffix in ("", ".smk", ".py") and path.is_file():
            assert not systems & set(re.findall(r"\w+", path.read_text(encoding="utf-8"))), path
    assert len(list((REPOSITORY / "workflow" / "scripts").glob("*.py"))) <= 6


@pytest.mark.parametrize("profile", ["slurm", "cluster-generic"])
def test_profile_is_understood(tmp_path: Path, kernel_cache: Path, profile: str) -> None:
    """Nothing is submitted in a dry run, so that no Slurm is needed."""
    workspace = Workspace(tmp_path / "work", kernel_cache)
    says(
        workspace.run(TARGET, "--dry-run", "--profile", str(PROFILES / profile), cores=1),
        f"Using profiles {PROFILES / profile} and workflow specific profile",
        AGAIN,
    )


SAYS = {
    "PENDING": "running",
    "RUNNING": "running",
    "COMPLETING": "running",
    "COMPLETED": "success",
    "FAILED": "failed",
    "CANCELLED": "failed",
    "TIMEOUT": "failed",
    "OUT_OF_MEMORY": "failed",
    "slurm_load_jobs error: Unable to contact slurm controller": "running",
    "slurm_load_jobs error: Invalid job id specified": "failed",
}


@pytest.mark.parametrize("answer", SAYS)
def test_status_of_a_job(tmp_path: Path, answer: str) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    squeue.chmod(0o755)
    done = subprocess.run(
        [PROFILES / "cluster-generic" / "status.sh", "7"],
        env={"PATH": f"{tmp_path}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{SAYS[answer]}\n"


def test_accounts_know_jobs_that_the_queue_has_forgotten(tmp_path: Path) -> None:
    for name, answer in (
        ("squeue", "slurm_load_jobs error: Invalid job id specified"),
        ("sacct", "COMPLETED"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    command = [str(PROFILES / "cluster-generic" / "status.sh"), "7"]
    environment = {"PATH": f"{tmp_path}:{os.defpath}"}
    assert subprocess.check_output(command, env=environment, text=True) == "success\n"
