"""Schedulers of users, libraries and Slurm that decide for another simulator, as far as it lets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.policies.online import Decided, NewJob
from gridsched.simulation import simulate
from gridsched.systems.custom.online import OnlineCustom
from gridsched.systems.registry import scheduler_of
from gridsched.systems.slurm.accounts import Accounting, Association, Limits, Quality
from gridsched.systems.slurm.jobs import owners_of
from gridsched.systems.slurm.scheduler import tree_of
from tests.oracles.local import Job
from tests.support import strategies
from tests.support.hosts import starts_under
from tests.support.libraries import ABI, DECIDE, HEAD, example, library
from tests.support.nodes import workload_of
from tests.systems.custom.schedulers import CompiledEasy, Easy, Fcfs


@given(
    case=strategies.workloads().filter(lambda case: case[0]),
    scheduler=st.sampled_from([Fcfs, Easy, CompiledEasy]),
)
def test_users_start_jobs_as_in_a_simulation(
    case: tuple[list[Job], int], scheduler: type[gs.CustomScheduler]
) -> None:
    jobs = workload_of(case[0])
    starts = starts_under(scheduler().online(case[1]), jobs)
    assert starts.tolist() == simulate(jobs, case[1], scheduler()).start_time.values.tolist()


def test_libraries_do(tmp_path: Path) -> None:
    jobs = gs.synthesise("M3", jobs=200, seed=3)
    scheduler = gs.LibraryScheduler(example("easy", tmp_path))
    starts = starts_under(scheduler.online(1152), jobs)
    assert starts.tolist() == simulate(jobs, 1152, "easy").start_time.values.tolist()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scheduler_type": "builtin"},
        {"select_type": "linear", "priority_type": "basic", "bf_min_prio_reserve": 5},
        {"priority_weight_age": 1000, "priority_weight_fairshare": 1000, "bf_max_job_user": 2},
        {"priority_weight_job_size": 1000, "priority_favor_small": True},
    ],
)
def test_slurm_does(archive_mirror: Path, options: dict[str, Any]) -> None:
    """It starts jobs at times of its own, at which it asks to be asked, and has room for all that come.

    The fair share of a user depends on how many others there are, who have to be known beforehand.
    """
    jobs = gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))
    jobs = jobs.select(np.arange(len(jobs)) < 1200)
    scheduler = gs.Slurm(**{"accounting": tree_of(gs.Slurm(), owners_of(jobs)), **options})
    asked: list[int] = []

    def note(now: int, decided: Decided) -> None:
        asked.extend([now] * len(decided.started))

    starts = starts_under(scheduler.online(100), jobs, note)
    assert starts.tolist() == simulate(jobs, 100, scheduler).start_time.values.tolist()
    assert not set(asked) <= set(jobs.submit_time.tolist())


RUNNING = {
    "jobs": {"physics": {("group", "jobs"): 9, ("user", "jobs"): 2}, "2": {("user", "nodes"): 20}},
    "processors": {"physics": {("group", "processors"): 40}, "2": {("user", "processors"): 9}},
    "minutes that run": {"physics": {("group", "running processors"): 9000}},
    "minutes that were used": {"physics": {("group", "used processors"): 60_000}},
}
"""Limits of accounts."""


@pytest.mark.parametrize("kind", RUNNING)
@pytest.mark.parametrize("priority", ["basic", "multifactor"])
def test_slurm_keeps_limits_as_in_a_simulation(archive_mirror: Path, kind: str, priority: Any) -> None:
    """Those of accounts and users of the accounting, of users who come later, and of a quality of service.

    Names that are no numbers are known to the host by the numbers that it is given. The first jobs of the
    account with minutes come late, when some of what it had used before has decayed.
    """
    jobs = gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))
    jobs = jobs.select(np.arange(len(jobs)) < 1200)
    late = np.arange(len(jobs)) >= 300
    jobs = replace(
        jobs, group=np.where(late & (jobs.user % 3 == 0), 1, 2 + jobs.user % 3), queue=jobs.user % 2
    )

    def scheduler(account: str) -> gs.Slurm:
        limits = RUNNING[kind]
        own = Limits(
            running={("user", "processors"): 60, ("group", "running nodes"): 40_000}, job={"wall": 40_000}
        )
        return gs.Slurm(
            priority_type=priority,
            priority_weight_age=1000,
            priority_decay_half_life=86400,
            enforce_limits=True,
            safe_limits=True,
            accounting=Accounting(
                associations=(
                    Association(account="root"),
                    Association(account=account, parent="root", limits=Limits(running=limits["physics"])),
                    Association(account=account, user="1", parent=account),
                    Association(account="2", parent="root", limits=Limits(running=limits.get("2", {}))),
                ),
                qualities={"1": Quality(name="1", limits=own, usage_factor=2.0)},
                usage={(account, "1"): 3e6},
            ),
        )

    online = scheduler("physics").online(100)
    number = online.names["group", "physics"]
    starts = starts_under(online, replace(jobs, group=np.where(jobs.group == 1, number, jobs.group)))
    expected = simulate(jobs, 100, scheduler("1")).start_time.values
    assert starts.tolist() == expected.tolist()
    free = simulate(jobs, 100, replace(scheduler("1"), enforce_limits=False)).start_time.values
    assert (expected > free).sum() > 50
    assert (expected < 0).any()


def test_users_join_the_fair_shares_with_their_first_jobs() -> None:
    """Of equal jobs that wait, that of the user who has used nothing starts first, whenever she came."""
    jobs = gs.Workload(
        name="three",
        submit_time=np.array([0, 100, 100]),
        run_time=np.full(3, 600),
        requested_processors=np.full(3, 4),
        user=np.array([7, 7, 8]),
        group=np.full(3, 1),
    )
    slurm = gs.Slurm(priority_weight_fairshare=1000, priority_calc_period=60)
    first, same, other = starts_under(slurm.online(4), jobs).tolist()
    assert first < other < same


def test_slurm_has_to_be_called_when_it_asks() -> None:
    slurm = gs.Slurm().online(8)
    assert slurm.decide(0, [NewJob(0, 50, 8)], []).ask_again < 50
    with pytest.raises(ScheduleError, match="for which slurm asked to be called, and was not until 40 s"):
        slurm.decide(40, [], [])


USED_UP = Accounting(
    qualities={"1": Quality(name="1", limits=Limits(running={("group", "used nodes"): 60}))},
)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preempt_type": "partition_prio", "preempt_mode": "cancel"}, "does not let jobs wait again"),
        ({"enforce_limits": True, "accounting": USED_UP}, "would be killed.*AccountingStorageEnforce=safe"),
    ],
)
def test_what_slurm_cannot_do_there(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot decide while jobs run.*{words}"):
        gs.Slurm(**options).online(8)


@pytest.mark.parametrize("name", ["central", "ideal-srpt", "jscheduler", "muscle"])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot decide while jobs run; local policies, Slurm and"):
        scheduler_of(name).online(8)


# --- what a class of a user can do ----------------------------------------------------------------


def online(decide: Callable[[Any], Any]) -> OnlineCustom:
    """A scheduler that does this on eight processors."""

    class Own(gs.CustomScheduler):
        def decide(self, sim: Any) -> None:
            decide(sim)

    made = Own().online(8)
    assert isinstance(made, OnlineCustom)
    return made


def test_it_kills_rejects_and_is_asked_again() -> None:
    def decide(sim: Any) -> None:
        sim.memory["asked"] = sim.memory.get("asked", 0) + 1
        if sim.now == 0:
            sim.start(0)
            sim.reject(1)
            sim.call_at(7)
        elif sim.now == 7:
            assert sim.running.tolist() == [(0, 0, 4, 0, 50)]
            sim.kill(0)
        elif sim.now == 8:
            assert (len(sim.running), sim.free.tolist()) == (0, [8])

    own = online(decide)
    assert own.decide(0, [NewJob(0, 50, 4), NewJob(0, 50, 4)], []) == Decided([0], [1], ask_again=7)
    assert own.decide(3, [], []) == Decided(ask_again=7)  # nothing has happened, and it is not asked
    assert own.decide(7, [], []) == Decided(killed=[0], ask_again=50)
    assert own.decide(8, [], [0]) == Decided()


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda sim: sim.start(5), ScheduleError, "job 5 cannot start at 0 s: it does not wait"),
        (lambda sim: sim.start(0, 1), ScheduleError, "job 0 cannot start at 0 s: there is one cluster"),
        (lambda sim: sim.start(1), ScheduleError, "it takes 9 processors, and 8 are free"),
        (lambda sim: sim.start(0, nodes=[0]), ConfigurationError, "nodes=...\\) cannot be used here"),
        (lambda sim: sim.kill(0), ScheduleError, "job 0 cannot be killed at 0 s: it does not run"),
        (lambda sim: sim.kill(0, requeue=True), ConfigurationError, "a killed job is lost"),
        (lambda sim: sim.call_at(0), ScheduleError, "cannot call at 0 s"),
        (lambda sim: sim.send(0), ConfigurationError, "sim.send cannot be used here: there are no local"),
        (lambda sim: sim.workload, ConfigurationError, "jobs are not known before they are submitted"),
        (lambda sim: sim.predicted_start(0), ConfigurationError, "there are no local queues"),
        (lambda sim: sim.nodes(), ConfigurationError, "hosts of another simulator are identical"),
    ],
)
def test_what_cannot_be_done(action: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        online(action).decide(0, [NewJob(0, 50, 4), NewJob(0, 50, 9)], [])


@pytest.mark.parametrize(
    ("kind", "words"),
    [(1, "sim.send cannot be used here"), (5, "a killed job is lost there"), (9, "cannot have action 9")],
)
def test_actions_of_libraries_that_cannot_be(kind: int, words: str, tmp_path: Path) -> None:
    body = f"{{ actions[0] = (gridsched_action){{{kind}, 0, 0, 0}}; return 1; }}"
    scheduler = gs.LibraryScheduler(str(library(HEAD + ABI + DECIDE + body, tmp_path / "own.so")))
    with pytest.raises((ConfigurationError, ScheduleError), match=words):
        scheduler.online(8).decide(0, [NewJob(0, 50, 4)], [])


def test_what_is_asked_of_a_user_is_what_there_is() -> None:
    """Queue, running jobs and idle processors are those of a simulation at each decision."""
    jobs = gs.synthesise("M3", jobs=80, seed=6, load_scale=1.4)

    class Noting(Easy):
        def decide(self, sim: Any) -> None:
            seen.append((sim.now, sim.queue.tolist(), sim.running.tolist(), sim.free.tolist()))
            super().decide(sim)

    seen: list[Any] = []
    simulate(jobs, 1152, Noting())
    expected, seen = seen, []
    starts_under(Noting().online(1152), jobs)
    # the simulation has decisions at which nothing has happened to jobs: outrun estimates of those that run
    assert seen == expected
    assert any(queue for _, queue, _, _ in seen)
