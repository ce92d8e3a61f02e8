"""Schedulers in shared libraries: the header, schedules, faults."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import gridsched as gs
from gridsched.cli import main
from gridsched.engine import simulator as engine
from gridsched.engine.simulator import ACTION, QUEUED, RUNNING, Action
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.simulation import simulate
from gridsched.systems.custom.library import ABI as VERSION
from gridsched.systems.custom.library import LibraryScheduler
from tests.conftest import REPOSITORY
from tests.support.fields import assert_fields
from tests.support.libraries import ABI, DECIDE, HEAD, compiled, example, library
from tests.support.nodes import jobs_of


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Places of the examples by name."""
    folder = tmp_path_factory.mktemp("libraries")
    return {name: example(name, folder) for name in ("fcfs", "easy")}


RECORDS = {"queued": QUEUED, "running": RUNNING, "action": ACTION}


def test_the_header_describes_the_arrays_of_the_engine(tmp_path: Path) -> None:
    """As a C compiler lays them out: sizes, places of fields, and numbers of actions."""
    told = ["version " + str(VERSION)]
    shown = ['printf("version %d\\n", GRIDSCHED_ABI);']
    for name, record in RECORDS.items():
        told.append(f"{name} {record.itemsize}")
        shown.append(f'printf("{name} %zu\\n", sizeof(gridsched_{name}));')
        for field, own in (record.fields or {}).items():
            told.append(f"{field} {own[0].itemsize} {own[1]}")
            place = f"sizeof(((gridsched_{name} *)0)->{field}), offsetof(gridsched_{name}, {field})"
            shown.append(f'printf("{field} %zu %zu\\n", {place});')
    for action in Action:
        told.append(f"{action.name} {int(action)}")
        shown.append(f'printf("{action.name} %d\\n", GRIDSCHED_{action.name});')
    source = (
        f"#include <stddef.h>\n#include <stdio.h>\n{HEAD}int main(void) {{ {' '.join(shown)} return 0; }}\n"
    )
    program = compiled(source, tmp_path / "layout")
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == told


@pytest.mark.parametrize("trace", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln"])
@pytest.mark.parametrize("name", ["fcfs", "easy"])
def test_every_start_of_a_log_is_the_engines(
    archive_mirror: Path, trace: str, name: str, built: dict[str, str]
) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / f"{trace}.swf.gz"))
    run = simulate(jobs, None, LibraryScheduler(built[name]))
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, None, name).start_time)


def test_a_run_says_which_library_made_it(built: dict[str, str]) -> None:
    jobs = gs.synthesise("M3", jobs=200, seed=1)
    run = simulate(jobs, 1152, built["easy"])
    assert_fields(run, scheme="easy", system="custom", scheduler_source="libeasy.so")
    assert len(run.attrs["scheduler_checksum"]) == 64
    depths = [simulate(jobs, 1152, LibraryScheduler(built["easy"], (depth,))) for depth in (1, 1000)]
    assert [each.start_time.equals(run.start_time) for each in depths] == [False, True]


def test_without_compilation_the_same_jobs_start(built: dict[str, str]) -> None:
    jobs = gs.synthesise("M3", jobs=150, seed=2)
    sim = gs.Simulator(jobs, 1152)
    sim._run_plainly(LibraryScheduler(built["easy"]).decision, np.empty(0))
    sim._done = True
    assert sim.run().start_time.equals(simulate(jobs, 1152, "easy").start_time)


def test_a_library_may_do_all_that_a_scheduler_can(tmp_path: Path) -> None:
    """It sends what is submitted at the second cluster, asks to be called, and then starts its job again."""
    body = """{
        int64_t actioned = 0;
        for (int64_t k = 0; k < queued; k++) {
            int64_t kind = queue[k].home == 1 ? GRIDSCHED_SEND : GRIDSCHED_START;
            actions[actioned++] = (gridsched_action){kind, queue[k].job, queue[k].home, 0};
        }
        if (now == 0)
            actions[actioned++] = (gridsched_action){GRIDSCHED_CALL, 0, 0, 7};
        if (now == 7) {
            actions[actioned++] = (gridsched_action){GRIDSCHED_REQUEUE, running[0].job, 0, 0};
            actions[actioned++] = (gridsched_action){GRIDSCHED_START, running[0].job, 0, 0};
        }
        return actioned;
    }"""
    place = library(HEAD + ABI + DECIDE + body, tmp_path / "all.so")
    jobs = jobs_of(submit_time=[0], run_time=[50], requested_time=[50], requested_processors=[2])
    run = simulate([jobs, jobs], [gs.Cluster(processors=2, name=each) for each in "ab"], str(place))
    gs.verify(run)
    assert run.killed.values.tolist() == [1, 0]
    assert run.end_time.values.tolist() == [57, 50]


START_ALL = (
    "{ for (int64_t k = 0; k < queued; k++) "
    "actions[k] = (gridsched_action){KIND, queue[k].job, CLUSTER, 0}; return queued; }"
)

FAULTS: dict[str, tuple[str, type[Exception], str]] = {
    "no version": (DECIDE + "{ return 0; }", ConfigurationError, "has no function gridsched_abi"),
    "no decision": (ABI, ConfigurationError, "has no function gridsched_decide"),
    "another version": (
        "int64_t gridsched_abi(void) { return 99; }" + DECIDE + "{ return 0; }",
        ConfigurationError,
        f"compiled with version 99 of gridsched.h, this is {VERSION}; compile it with",
    ),
    "parameters": (
        ABI
        + "int64_t gridsched_begin(const double *parameters, int64_t number) { return 3; }"
        + DECIDE
        + "{ return 0; }",
        ConfigurationError,
        "gridsched_begin refuses the parameters [] with 3",
    ),
    "too many actions": (
        ABI + DECIDE + "{ return room + 1; }",
        ScheduleError,
        "decide returned {} actions at 0",
    ),
    "an error of its own": (
        ABI + DECIDE + "{ return -5; }",
        ScheduleError,
        "decide returned -5 actions at 0 s",
    ),
    "too large a job": (
        ABI + DECIDE + START_ALL.replace("KIND", "GRIDSCHED_START").replace("CLUSTER", "0"),
        ScheduleError,
        "job 2 (index 1) cannot start at 5 s: it takes 2 processors, and 1 are free",
    ),
    "no such cluster": (
        ABI + DECIDE + START_ALL.replace("KIND", "GRIDSCHED_START").replace("CLUSTER", "7"),
        ScheduleError,
        "job 1 (index 0) cannot start at 0 s: there is no cluster 7; there are 1, from 0 on",
    ),
    "no such action": (
        ABI + DECIDE + START_ALL.replace("KIND", "44").replace("CLUSTER", "0"),
        ScheduleError,
        "job 1 (index 0) cannot have action 44 at 0 s: there is no such action",
    ),
    "no such job": (
        ABI + DECIDE + "{ actions[0] = (gridsched_action){GRIDSCHED_START, -8, 0, 0}; return 1; }",
        ScheduleError,
        "job index -8 cannot start at 0 s: it does not wait in the queue",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, tmp_path: Path) -> None:
    body, kind, words = FAULTS[fault]
    place = library(HEAD + body, tmp_path / "faulty.so")
    jobs = jobs_of(submit_time=[0, 5], run_time=[9, 9], requested_time=[9, 9], requested_processors=[2, 2])
    with pytest.raises(kind) as error:
        simulate(jobs, 3, LibraryScheduler(str(place)))
    for part in words.split("{}"):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"", "cannot be loaded"),
        (b"\x7fELF and no more", "cannot be loaded"),
    ],
)
def test_files_that_are_no_library(content: bytes | None, words: str, tmp_path: Path) -> None:
    place = tmp_path / "libnone.so"
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(ConfigurationError, match=words):
        simulate(gs.synthesise("M3", jobs=20, seed=1), 1152, LibraryScheduler(str(place)))


def test_a_library_that_changes_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    jobs: Any = gs.synthesise("M3", jobs=20, seed=1)
    place = example("fcfs", tmp_path)
    simulate(jobs, 1152, LibraryScheduler(place))
    Path(example("easy", tmp_path)).replace(place)
    with pytest.raises(ConfigurationError, match="has changed since this process loaded it"):
        simulate(jobs, 1152, LibraryScheduler(place))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_libraries_compile_no_kernel_of_their_own(built: dict[str, str]) -> None:
    kernel: Any = engine.run
    jobs = gs.synthesise("M3", jobs=20, seed=1)
    simulate(jobs, 1152, LibraryScheduler(built["fcfs"]))
    before = len(kernel.signatures)
    simulate(jobs, 1152, LibraryScheduler(built["easy"]))
    assert len(kernel.signatures) == before


PAGE = (REPOSITORY / "docs" / "protocols-libraries.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "compiler"), [("c", "cc"), ("rust", "rustc")])
def test_what_the_page_shows_is_first_come_first_served(language: str, compiler: str, tmp_path: Path) -> None:
    source = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)[0]
    target = tmp_path / "libshown.so"
    if language == "c":
        library(source, target)
    elif shutil.which(compiler) is None or subprocess.run([compiler, "--version"], check=False).returncode:
        pytest.skip("no compiler of Rust, or one without a toolchain")
    else:
        rust = [compiler, "--crate-type=cdylib", "-Copt-level=2", "-o", str(target), "-"]
        subprocess.run(rust, input=source, text=True, check=True, capture_output=True)
    jobs = gs.synthesise("M3", jobs=150, seed=9, load_scale=1.3)
    run = simulate(jobs, 1152, LibraryScheduler(str(target)))
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, 1152, "fcfs").start_time)


def test_the_command_line_has_it_beside_a_policy_of_its_name(
    archive_mirror: Path, built: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")
    assert (
        main(["simulate", trace, "--jobs", "0:500", "--policy", f"easy,{built['easy']},{built['fcfs']}"]) == 0
    )
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {row[0]: row[1:] for row in rows if row and row[0] in ("easy", "fcfs", built["easy"])}
    assert found[built["easy"]] == found["easy"] != found["fcfs"]
