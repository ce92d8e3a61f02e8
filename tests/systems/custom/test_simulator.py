"""Going through a simulation step by step: what is seen, what can be done, and what cannot."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.engine.job_lifecycle import Fate
from gridsched.errors import ScheduleError
from gridsched.nodes import NodeEvent, NodeType, Partition
from gridsched.platform import ResourceChange
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of, some_cluster, some_jobs


def three_jobs(**columns: Any) -> gs.Workload:
    """Jobs of 2, 3 and 1 processors, of 100 s each."""
    return jobs_of(
        submit_time=[0, 10, 20],
        run_time=[100, 100, 100],
        requested_time=[120, 120, 120],
        requested_processors=[2, 3, 1],
        **columns,
    )


def stepped(**columns: Any) -> gs.Simulator:
    """A simulator of three jobs on four processors, at its first instant."""
    sim = gs.Simulator(three_jobs(**columns), 4)
    assert sim.advance()
    return sim


def to_the_end(sim: gs.Simulator) -> Any:
    """The run, with jobs that are started as soon as they fit."""
    more = True
    while more:
        for job, processors in sim.queue[["job", "processors"]].tolist():
            if processors <= sim.free[0]:
                sim.start(job)
        more = sim.advance()
    run = sim.run()
    gs.verify(run)
    return run


def assert_seen(sim: gs.Simulator, **expected: Any) -> None:
    """The present time, jobs that wait and run, free processors, and those of each node."""
    seen = {
        "now": sim.now,
        "queue": sim.queue["job"],
        "running": sim.running["job"],
        "free": sim.free,
        "free_cores": sim.nodes()["free_cores"],
    }
    assert_fields(seen, **expected)


def test_what_is_seen() -> None:
    sim = stepped()
    assert_seen(sim, now=0, queue=[0])
    assert sim.queue[["submit_time", "estimate", "processors"]].tolist() == [(0, 120, 2)]
    sim.start(0)
    assert_seen(sim, queue=[], free=[2])
    assert sim.running.tolist() == [(0, 0, 2, 0, 120)]
    assert sim.advance()
    assert_seen(sim, now=10, queue=[1], free_cores=[2])


def test_views_are_no_copies() -> None:
    sim = stepped()
    assert np.shares_memory(sim.queue, sim.queue)
    sim.start(0)
    assert np.shares_memory(sim.running, sim.running)
    assert np.shares_memory(sim.free, sim.free)


def test_exceeded_estimates_are_expected_to_end_later() -> None:
    jobs = jobs_of(submit_time=[0], run_time=[100], requested_time=[30], requested_processors=[1])
    sim = gs.Simulator(jobs, 1)
    sim.advance()
    sim.start(0)
    seen = []
    while sim.advance():
        seen += sim.running["expected_end"].tolist()
    assert seen == [60, 120]


def test_calls_stop_the_simulation() -> None:
    """Each once, and there is room for many."""
    sim = stepped()
    sim.call_at(7)
    for time in range(1, 300):
        sim.call_at(time)
    seen = []
    while sim.advance():
        seen.append(sim.now)
    assert seen == list(range(1, 300))


def test_jobs_that_nobody_starts_are_said_to_be_starved() -> None:
    sim = gs.Simulator(three_jobs(), 4)
    while sim.advance():
        pass
    run = sim.run()
    gs.verify(run)
    assert_fields(run, fate=[Fate.STARVED] * 3, jobs_starved=3)


def test_a_rejected_job_never_runs_and_who_waits_for_it_is_told() -> None:
    after = gs.dependency_table([(2, 0, "afterany"), (1, 0, "afterok")])
    sim = stepped(dependencies=after)
    sim.reject(0)
    fates = [Fate.REFUSED, Fate.NEVER_ELIGIBLE, Fate.COMPLETED]
    assert_fields(to_the_end(sim), fate=fates, jobs_refused=1)


def test_a_killed_job_is_lost_or_waits_again() -> None:
    sim = stepped()
    sim.start(0)
    sim.advance()
    sim.kill(0, requeue=True)
    assert_seen(sim, queue=[0, 1], free=[4])
    sim.start(0)
    sim.advance()
    sim.kill(0)
    run = to_the_end(sim)
    assert_fields(run, fate=[Fate.LOST, Fate.COMPLETED, Fate.COMPLETED], killed=[2, 0, 0])
    assert_fields(run.isel(segment=run.segment_job == 0), segment_end=[10, 20])


@pytest.mark.parametrize(("requeue", "queue"), [("place", [0, 1]), ("end", [1, 0])])
def test_a_killed_job_waits_where_its_cluster_says(requeue: Any, queue: list[int]) -> None:
    sim = gs.Simulator(three_jobs(), gs.Cluster(processors=4, requeue=requeue))
    sim.advance()
    sim.start(0)
    sim.advance()
    sim.kill(0, requeue=True)
    assert_seen(sim, queue=queue, free=[4])


def test_a_job_may_start_on_nodes_that_are_named() -> None:
    cluster = gs.Cluster(nodes=[NodeType(count=3, cores=4, name="n")])
    sim = gs.Simulator(three_jobs(), cluster)
    sim.advance()
    sim.start(0, nodes=[2])
    assert_seen(sim, free_cores=[4, 4, 2])
    sim.advance()
    with refused("job 2 ", " cannot start at 10 s: it takes 3 processors; 10 are free", error=ScheduleError):
        sim.start(1, nodes=[2])
    sim.start(1, nodes=[1, 2])
    assert_seen(sim, free_cores=[4, 1, 2])


def test_nodes_that_are_named_have_to_be_those_of_the_job() -> None:
    kinds = [NodeType(count=2, cores=2, name=name, features=[name]) for name in "abc"]
    only = Partition(number=0, nodes=["a", "b"])
    cluster = gs.Cluster(nodes=kinds, partitions=[only], constraints={1: "[a|b]"})
    sim = gs.Simulator(three_jobs(partition=[0] * 3, constraint=[-1, 1, -1]), cluster)
    sim.advance()
    with refused("job 1 ", " cannot start at 0 s", error=ScheduleError):
        sim.start(0, nodes=[4, 5])
    sim.start(0, nodes=[0])
    sim.advance()
    with refused("job 2 ", " cannot start at 10 s", error=ScheduleError):
        sim.start(1, nodes=[1, 2])
    sim.start(1, nodes=[2, 3])


def test_a_node_that_is_down_takes_nothing() -> None:
    down = NodeEvent(time=5, node="n1", kind="down")
    cluster = gs.Cluster(nodes=[NodeType(count=2, cores=2, name="n")], events=[down])
    sim = gs.Simulator(three_jobs(), cluster)
    sim.advance()
    sim.start(0, nodes=[1])
    sim.advance()
    assert_seen(sim, now=5, queue=[0], free=[2])
    with refused("job 1 ", " cannot start at 5 s", error=ScheduleError):
        sim.start(0, nodes=[1])


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (lambda sim: sim.start(1), "job 2 (index 1) cannot start at 0 s: it does not wait in the queue"),
        (lambda sim: sim.start(9), "job index 9 cannot start at 0 s: it does not wait in the queue"),
        (lambda sim: sim.start(-1), "job index -1 cannot start"),
        (lambda sim: sim.start(0, cluster=1), "there is no cluster 1; there are 1, from 0 on"),
        (
            lambda sim: sim.send(0, cluster=-1),
            "job 1 (index 0) cannot be sent at 0 s: there is no cluster -1",
        ),
        (lambda sim: sim.withdraw(0), "job 1 (index 0) cannot be withdrawn at 0 s: it does not wait on a"),
        (lambda sim: sim.kill(0), "job 1 (index 0) cannot be killed at 0 s: it does not run"),
        (
            lambda sim: sim.reject(2),
            "job 3 (index 2) cannot be rejected at 0 s: it does not wait in the queue",
        ),
        (lambda sim: sim.call_at(0), "cannot call at 0 s: it is 0 s already"),
        (lambda sim: sim.run(), "the simulation is at 0 s, and not at its end"),
    ],
)
def test_what_is_not_possible_is_said(action: Any, found: str) -> None:
    sim = stepped()
    with refused(found, error=ScheduleError):
        action(sim)
    assert_seen(sim, queue=[0])


def test_a_job_that_does_not_fit_now_is_refused() -> None:
    sim = stepped()
    sim.start(0)
    sim.advance()
    with refused(
        "job 2 ", " cannot start at 10 s: it takes 3 processors, and 2 are free", error=ScheduleError
    ):
        sim.start(1)
    assert_seen(sim, queue=[1])
    assert_fields(to_the_end(sim), start_time=[0, 100, 20])


def test_a_job_that_ran_stays_with_its_cluster() -> None:
    sim = gs.Simulator(three_jobs(), [gs.Cluster(processors=4, name=name) for name in ("a", "b")])
    sim.advance()
    sim.start(0, cluster=1)
    sim.advance()
    sim.kill(0, requeue=True)
    for action in (partial(sim.start, 0, 0), partial(sim.send, 0, 1), partial(sim.reject, 0)):
        with refused("it has run before, and stays with the cluster where it did", error=ScheduleError):
            action()
    sim.start(0, cluster=1)
    assert_seen(sim, free=[4, 2])


def test_a_sent_job_that_was_killed_stays_in_the_local_queue() -> None:
    events = [NodeEvent(time=5, node="*", kind="down"), NodeEvent(time=50, node="*", kind="up")]
    cluster = gs.Cluster(nodes=[NodeType(count=1, cores=4, name="n")], events=events)
    sim = gs.Simulator(three_jobs(), cluster)
    sim.advance()
    sim.send(0)
    sim.advance()
    assert_seen(sim, now=5, queue=[], running=[])
    with refused("it has run before, and stays with the cluster where it did", error=ScheduleError):
        sim.withdraw(0)
    assert_fields(to_the_end(sim), end_time=[250, 150, 150], killed=[1, 0, 0])


def test_platforms_that_change_are_refused() -> None:
    place = gs.Platform([gs.Cluster(processors=4, name="a")], changes=[ResourceChange(5, "a", 2)])
    with refused("neither join nor leave"):
        gs.Simulator(three_jobs(), place)


def test_a_job_that_is_withdrawn_waits_at_its_old_place() -> None:
    sim = gs.Simulator(three_jobs(), [gs.Cluster(processors=2, name="a"), gs.Cluster(processors=4, name="b")])
    sim.advance()
    sim.start(0, cluster=0)
    sim.advance()
    sim.send(1, cluster=1)
    sim.advance()
    assert_seen(sim, running=[0, 1])
    sim.send(2, cluster=0)
    assert_seen(sim, queue=[])
    sim.withdraw(2)
    assert_seen(sim, queue=[2])
    sim.start(2, cluster=1)
    while sim.advance():
        pass
    run = sim.run()
    gs.verify(run)
    assert_fields(run, start_time=[0, 10, 20], segment_cluster=[0, 1, 1])


def wander(sim: gs.Simulator, rng: random.Random, instants: int = 10**9) -> None:
    """Do this and that for some instants."""
    while instants and sim.advance():
        instants -= 1
        for job in sim.queue["job"].tolist():
            if rng.random() < 0.5:
                try:
                    sim.start(job)
                except ScheduleError:
                    sim.memory["refused"] = sim.memory.get("refused", 0) + 1
        if len(sim.running) and rng.random() < 0.1:
            sim.kill(int(sim.running["job"][0]), requeue=rng.random() < 0.7)
        if len(sim.queue) and rng.random() < 0.05:
            sim.call_at(sim.now + 1)


@pytest.mark.random_cases(12)
def test_a_simulation_goes_on_from_a_snapshot_as_it_did(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    jobs = some_jobs(drawn, 40)
    if seed % 3 == 0:
        jobs = replace(jobs, gives_up_time=np.full(40, 400))
    if seed % 3 == 1:
        jobs = replace(jobs, dependencies=gs.dependency_table([(9, 2, "afterok"), (30, 9, "afterany")]))
    sim = gs.Simulator(jobs, some_cluster(drawn))
    wander(sim, random.Random(seed), instants=seed % 25)
    taken, memory = sim.snapshot(), dict(sim.memory)
    runs = []
    for _ in range(2):
        wander(sim, random.Random(seed + 1))
        runs.append(sim.run())
        sim.restore(taken)
        assert sim.memory == memory
        wander(sim, random.Random(seed + 2), instants=7)
        sim.restore(taken)
    gs.verify(runs[0])
    assert runs[0].identical(runs[1])


def test_a_snapshot_is_restored_with_the_past_that_it_has() -> None:
    sim = gs.Simulator(jobs_of(submit_time=[0, 0], run_time=[10, 10], requested_processors=[4, 4]), 4)
    sim.advance()
    root = sim.snapshot()
    sim.start(0)
    sim.advance()
    branch = sim.snapshot()
    sim.restore(branch)
    sim.restore(root)
    sim.start(1)
    with pytest.raises(ScheduleError, match="not of the past"):
        sim.restore(branch)
    sim.restore(root)
    assert sim.queue["job"].tolist() == [0, 1]


def test_a_snapshot_may_be_taken_beside_predictions() -> None:
    jobs = jobs_of(submit_time=[0, 0, 0], run_time=[10, 10, 5], requested_processors=[2, 4, 2])
    sim = gs.Simulator(jobs, 4)
    sim.advance()
    sim.start(0)
    sim.send(1)
    assert sim.predicted_start(2) == 0
    sim.restore(sim.snapshot())
    assert sim.queue["job"].tolist() == [2]


def test_a_job_whose_user_gave_up_is_not_withdrawn() -> None:
    jobs = jobs_of(
        submit_time=[0, 1, 30],
        run_time=[100, 10, 10],
        requested_processors=[4, 4, 4],
        gives_up_time=np.array([-1, 20, -1]),
    )
    sim = gs.Simulator(jobs, 4)
    while sim.advance() and sim.now < 30:
        for job in sim.queue["job"].tolist():
            sim.send(job)
    with pytest.raises(ScheduleError, match="does not wait on a cluster"):
        sim.withdraw(1)


def test_a_simulation_goes_on_with_what_is_done_at_its_end() -> None:
    sim = gs.Simulator(jobs_of(submit_time=[0, 5], run_time=[10, 10], requested_processors=[2, 4]), 4)
    while sim.advance():
        if sim.now == 0:
            sim.start(0)
    sim.start(1)
    with pytest.raises(ScheduleError, match="not at its end"):
        sim.run()
    while sim.advance():
        pass
    run = sim.run()
    assert run["start_time"].values.tolist() == [0, 10]
    assert run["end_time"].values.tolist() == [10, 20]


def test_executions_that_begin_at_one_instant_are_two() -> None:
    sim = gs.Simulator(jobs_of(submit_time=[0], run_time=[10], requested_processors=[2]), 4)
    sim.advance()
    sim.start(0)
    sim.kill(0, requeue=True)
    sim.start(0)
    while sim.advance():
        pass
    run = sim.run()
    gs.verify(run)
    assert run["segment_end"].values.tolist() == [0, 10]


def test_calls_come_in_the_next_whole_second() -> None:
    sim = stepped()
    sim.call_at(sim.now + 1.5)
    sim.advance()
    assert sim.now == 2


def test_a_snapshot_survives_that_arrays_grow() -> None:
    many = jobs_of(
        submit_time=np.arange(3000) // 2,
        run_time=np.full(3000, 500),
        requested_time=np.full(3000, 600),
        requested_processors=np.ones(3000, np.int64),
    )
    sim = gs.Simulator(many, 40)
    sim.advance()
    taken = sim.snapshot()
    first = to_the_end(sim)
    sim.restore(taken)
    assert to_the_end(sim).identical(first)
