"""Schedulers in other processes and in libraries, in studies and in the arena."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from gridsched.experiments.config import study_from
from gridsched.experiments.tasks import OwnFile
from gridsched.warming import usable_cores
from tests.experiments.test_own_schedulers import arena_with, study_with
from tests.support.errors import says
from tests.support.libraries import ABI, DECIDE, HEAD, example, library
from tests.support.studies import message_about, run_study

PEER = """
import sys
from gridsched.cli import main
print("here I am", flush=True)
sys.exit(main(["decide", "easy", *sys.argv[1:]]))
"""

WAITING = """
import os, pathlib
here = pathlib.Path(__file__).parent
try:
    (here / "first").touch(exist_ok=False)
    mode = os.O_RDONLY
except FileExistsError:
    mode = os.O_WRONLY
os.close(os.open(here / "pipe", mode))  # comes back when the other end is open
"""

SEND_HOME = """{
    for (int64_t k = 0; k < queued; k++)
        actions[k] = (gridsched_action){GRIDSCHED_SEND, queue[k].job, queue[k].home, 0};
    return queued;
}"""


@pytest.fixture
def peer(tmp_path: Path) -> str:
    """A decision process: EASY of gridsched."""
    (tmp_path / "peer.py").write_text(PEER, encoding="utf-8")
    return str(tmp_path / "peer.py")


def spoken(peer: str, version: int, where: str = "{socket}") -> dict[str, Any]:
    """A process that speaks a version of the protocol, as studies write it."""
    command = [sys.executable, peer, "--batsim", str(version), "--socket", where]
    return {
        "name": f"b{version}",
        "scheduler": "external",
        "command": command,
        "protocol": f"batsim-{version}",
    }


def test_a_study_of_them_is_one_of_the_policies_that_they_are(peer: str, tmp_path: Path) -> None:
    own = {"name": "c", "scheduler": "external", "library": example("easy", tmp_path)}
    written = [spoken(peer, 4), spoken(peer, 5, "tcp://127.0.0.1:{port}"), own]
    study: Any = study_from({"kind": "local-policies", **study_with(*written)})
    dataset = run_study(study, tmp_path / "run", seed=1)
    waits = dataset.wait_time_mean.sel(group="all jobs")
    for name in ("b4", "b5", "c"):
        assert (waits.sel(scheduler=name) == waits.sel(scheduler="easy")).all()
    logs = sorted((tmp_path / "run").rglob("logs/*/external/*.txt"))
    assert len(logs) == 4  # two processes, two replicates
    assert all(each.read_text(encoding="utf-8").startswith("here I am") for each in logs)


def test_replicates_run_at_once_each_with_a_process_of_its_own(tmp_path: Path) -> None:
    """Each of two processes waits at its start for the other one."""
    if usable_cores() < 2:
        pytest.skip("one core: replicates follow one another")
    (tmp_path / "peer.py").write_text(WAITING + PEER, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    written = spoken(str(tmp_path / "peer.py"), 4, "tcp://127.0.0.1:{port}")
    study: Any = study_from({"kind": "local-policies", **study_with(written)})
    dataset = run_study(study, tmp_path / "run", seed=1)
    waits = dataset.wait_time_mean.sel(group="all jobs")
    assert (waits.sel(scheduler="b4") == waits.sel(scheduler="easy")).all()


def test_a_run_says_what_decided(peer: str, tmp_path: Path) -> None:
    study: Any = study_from({"kind": "local-policies", **study_with(spoken(peer, 5))})
    run_study(study, tmp_path / "run", seed=1)
    runs = [xr.open_dataset(path) for path in (tmp_path / "run").rglob("*.nc")]
    (run,) = [each for each in runs if "scheduler_source" in each.attrs]
    assert run.attrs["decision_process"] == f"gridsched easy {version('gridsched')}"
    assert "peer.py" in run.attrs["scheduler_source"]
    assert len(run.attrs["scheduler_checksum"].split(", ")) == len(run.attrs["scheduler_source"].split(", "))


def test_its_files_are_inputs_of_its_tasks(peer: str, tmp_path: Path) -> None:
    own = {"name": "c", "scheduler": "external", "library": example("easy", tmp_path)}
    study: Any = study_from({"kind": "local-policies", **study_with(spoken(peer, 4), own)})
    inputs = {
        label: {each.file for each in task.inputs if isinstance(each, OwnFile)}
        for task in study.experiment(1).tasks
        for label in ("b4", "c")
        if f", {label}," in task.name
    }
    assert peer in inputs["b4"]
    assert inputs["c"] == {own["library"]}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({}, "needs a command, a library or an edc_library"),
        ({"command": ["x"], "protocol": "batsim-3"}, "batsim-3"),
        ({"command": ["x"], "library": "y.so"}, "has command and library: give one of them"),
        ({"library": "y.so", "timeout": 5}, "timeout does not go with library"),
        ({"command": ["x"], "parameters": [1]}, "parameters does not go with command"),
        ({"command": ["x"], "timeout": 0}, "timeout is 0"),
        ({"commands": ["x"]}, "did you mean command?"),
        ({"command": ["x"], "socket": "tcp://*:1"}, "socket"),
    ],
)
def test_mistakes_are_said(written: dict[str, Any], found: str, tmp_path: Path) -> None:
    study = study_with({"name": "mine", "scheduler": "external", **written})
    says(message_about(tmp_path, study), "schedulers[mine]", found)


def test_in_the_arena_a_process_has_one_cluster_and_a_library_may_have_several(
    peer: str, tmp_path: Path
) -> None:
    command = f"{sys.executable} {peer} --batsim 4 --socket {{socket}}"
    home = library(HEAD + ABI + DECIDE + SEND_HOME, tmp_path / "libhome.so")
    dataset = arena_with(
        tmp_path,
        {"name": "process", "scheduler": "external", "command": command},
        {"name": "home", "scheduler": "external", "library": str(home)},
    )
    assert "its protocol has one cluster, and here are 2" in str(dataset.attrs) + str(dataset)
    responses = dataset.response_time_mean.sel(group="all jobs")
    assert (responses.sel(scheduler="home") == responses.sel(scheduler="local")).all()
