"""Schedulers of users: they start jobs when the engine does, are verified, and say what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.simulation import simulate
from gridsched.systems.custom.scheduler import load_scheduler
from tests.oracles.local import Job
from tests.support import strategies
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of, some_cluster, some_jobs, workload_of
from tests.systems.custom.schedulers import (
    CompiledEasy,
    Eager,
    Easy,
    Fcfs,
    ShortestWait,
)
from tests.systems.test_capabilities import SendHome

PAIRS = [(Fcfs, "fcfs"), (Easy, "easy"), (CompiledEasy, "easy"), (Eager, "ff")]


@given(case=strategies.workloads().filter(lambda case: case[0]), pair=st.sampled_from(PAIRS))
def test_they_start_jobs_when_the_engine_does(case: tuple[list[Job], int], pair: Any) -> None:
    scheduler, name = pair
    jobs, processors = case
    run = simulate(workload_of(jobs), processors, scheduler())
    gs.verify(run)
    assert run.start_time.equals(simulate(workload_of(jobs), processors, name).start_time)


@pytest.mark.random_cases(40)
def test_nodes_failures_dependencies_and_cancellations_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = some_cluster(rng)
    jobs = some_jobs(rng, 40, gives_up_time=rng.choice([-1, 200, 400], 40))
    jobs = replace(jobs, dependencies=gs.dependency_table([(9, 2, "afterok"), (30, 9, "afterany")]))
    run = simulate(jobs, cluster, Eager())
    gs.verify(run)
    reference = simulate(jobs, cluster, "ff")
    for name in ("start_time", "end_time", "fate", "killed", "extra_work"):
        assert run[name].equals(reference[name]), name


@pytest.mark.parametrize("trace", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln"])
def test_every_start_of_a_log_is_the_engines(archive_mirror: Path, trace: str) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / f"{trace}.swf.gz"))
    run = simulate(jobs, None, CompiledEasy())
    assert run.start_time.equals(simulate(jobs, None, "easy").start_time)


def test_sending_all_home_is_what_clusters_do_alone() -> None:
    rng = np.random.default_rng(3)
    jobs = [some_jobs(rng, 30, gpus=False) for _ in range(2)]
    clusters = [gs.Cluster(processors=8, name="a"), gs.Cluster(processors=6, name="b", policy="conservative")]
    run = simulate(jobs, clusters, SendHome(), align="none")
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, clusters, "local", align="none").start_time)


def test_predicted_starts_are_kept_where_nothing_else_comes() -> None:
    """With exact estimates and first come, first served, no later job delays one that was sent."""
    rng = np.random.default_rng(4)
    jobs = some_jobs(rng, 60, gpus=False)
    clusters = [gs.Cluster(processors=8, name=name, policy="fcfs") for name in ("a", "b")]
    told = {}

    class Telling(ShortestWait):
        def decide(self, sim: gs.Simulator) -> None:
            for job in sim.queue["job"].tolist():
                told[job] = min(sim.predicted_start(job, m) for m in range(2))
            super().decide(sim)

    run = simulate(jobs, clusters, Telling(patience=10**6), estimates="actual")
    gs.verify(run)
    assert run.start_time.to_numpy().tolist() == [told[job] for job in range(60)]


def test_a_grid_scheduler_may_let_jobs_wait_and_ask_again() -> None:
    rng = np.random.default_rng(5)
    jobs = some_jobs(rng, 60, gpus=False)
    clusters = [gs.Cluster(processors=8, name=name) for name in ("a", "b")]
    runs = [simulate(jobs, clusters, ShortestWait(patience=patience)) for patience in (0, 60)]
    for run in runs:
        gs.verify(run)
        assert (run.fate == 0).all()
    assert not runs[0].start_time.equals(runs[1].start_time)


def test_compiled_decisions_do_what_their_function_says(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = gs.synthesise("M3", jobs=150, seed=2)
    compiled = simulate(jobs, 1152, CompiledEasy())
    sim = gs.Simulator(jobs, 1152)
    decision = vars(CompiledEasy)["decide"]
    sim._run_plainly(decision, np.empty(0))
    sim._done = True
    assert sim.run().start_time.equals(compiled.start_time)


def test_impossible_actions_of_compiled_decisions_are_said() -> None:
    class Greedy(gs.CustomScheduler):
        @gs.compiled
        @staticmethod
        def decide(now: Any, queue: Any, running: Any, free: Any, parameters: Any, actions: Any) -> int:
            for k in range(len(queue)):
                actions[k]["kind"], actions[k]["cluster"], actions[k]["job"] = 0, 0, queue[k]["job"]
            return len(queue)

    jobs = jobs_of(submit_time=[0, 5], run_time=[9, 9], requested_time=[9, 9], requested_processors=[2, 2])
    with pytest.raises(
        ScheduleError, match=r"job 2 .* cannot start at 5 s: it takes 2 processors, and 1 are free"
    ):
        simulate(jobs, 3, Greedy())


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without compilation a slice has no more than there is")
def test_more_actions_than_there_is_room_for_are_refused() -> None:
    class Chatty(gs.CustomScheduler):
        @gs.compiled
        @staticmethod
        def decide(now: Any, queue: Any, running: Any, free: Any, parameters: Any, actions: Any) -> int:
            return len(actions) + 1

    with pytest.raises(ScheduleError, match=r"decide returned \d+ actions at 899 s; there is room for \d+"):
        simulate(gs.synthesise("M3", jobs=20, seed=1), 1152, Chatty())


def test_nothing_is_explained_whose_rules_are_not_known() -> None:
    run = simulate(gs.synthesise("M3", jobs=20, seed=2), 1152, Fcfs())
    with pytest.raises(ConfigurationError, match="Fcfs is a scheduler of a user, whose rules are not known"):
        gs.explain(run, 3)


def test_errors_of_a_user_say_when_they_happened() -> None:
    class Broken(gs.CustomScheduler):
        def decide(self, sim: gs.Simulator) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        simulate(gs.synthesise("M3", jobs=20, seed=2), 1152, Broken())
    assert re.search(r"in test_scheduler.py:.*Broken, asked at \d+ s", error.value.__notes__[0])


def test_a_class_without_decide_says_so() -> None:
    class Empty(gs.CustomScheduler):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty has no method decide\(self, sim\)"):
        simulate(gs.synthesise("M3", jobs=20, seed=2), 1152, Empty())


def test_rules_and_measures_of_a_class_are_used() -> None:
    class Idle(Fcfs):
        @classmethod
        def rules(cls, run: xr.Dataset) -> list[str]:
            return ["it was far too idle"] if run.attrs["decisions"] < 1000 else []

        @classmethod
        def measures(cls, run: xr.Dataset) -> xr.Dataset:
            return xr.Dataset({"asked": ((), run.attrs["decisions"])})

    run = simulate(gs.synthesise("M3", jobs=20, seed=2), 1152, Idle())
    with pytest.raises(ScheduleError, match="it was far too idle"):
        gs.verify(run)
    assert int(gs.summarise(run).asked) == run.attrs["decisions"]


# --- from files -----------------------------------------------------------------------------------

SOURCE = '''
from __future__ import annotations
from dataclasses import dataclass
import gridsched as gs

@dataclass(frozen=True)
class Limited(gs.CustomScheduler):
    """First fit among the first jobs.

    Parameters
    ----------
    depth : int
        How many jobs are looked at.
    """

    depth: int = 3

    def decide(self, sim):
        for job, processors in sim.queue[["job", "processors"]][: self.depth].tolist():
            if processors <= sim.free[0]:
                sim.start(job)
'''


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "limited.py").write_text(SOURCE)
    return f"{tmp_path / 'limited.py'}:Limited"


def test_a_class_in_a_file_is_a_scheduler(place: str) -> None:
    jobs = gs.synthesise("M3", jobs=100, seed=2)
    run = simulate(jobs, 1152, place)
    gs.verify(run)
    assert_fields(run, scheme="Limited", parameter_depth=3, scheduler_source="limited.py:Limited")
    assert len(run.attrs["scheduler_checksum"]) == 64


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("missing.py:Limited", "there is no file"),
        ("limited.py:Other", "has no class Other; derive one from gridsched.CustomScheduler"),
        ("limited.py:dataclass", "has no class dataclass"),
        ("limited.py", "write it as path/to/file.py:class"),
    ],
)
def test_files_that_have_no_scheduler(place: str, end: str, found: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(found)):
        load_scheduler(str(Path(place).parent / end))
