"""The verifier accepts the schedules of the oracle and names what is wrong with broken ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gridsched as gs
from gridsched.errors import ScheduleError
from gridsched.nodes import Limit, NodeEvent, NodeType
from gridsched.verification import verify, violations
from gridsched.workloads.dependencies import dependency_table
from tests.oracles.local import POLICIES, Job, simulate_policy
from tests.support.errors import refused
from tests.support.nodes import jobs_of
from tests.support.strategies import workloads

FIRST_NUMBER = 101
"""Job numbers are not indices."""


class Segment(NamedTuple):
    job: int
    start: int
    end: int
    processors: int
    cluster: int = 0


def as_column(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def dataset(
    jobs: list[Job], segments: list[Segment], machines: list[int], reserved: dict[int, int] | None = None
) -> xr.Dataset:
    """A run that executed these segments; jobs without a segment are rejected."""
    by_job = [[s for s in segments if s.job == j] for j in range(len(jobs))]
    run = xr.Dataset(
        {
            "submit_time": ("job", as_column(job.submit_time for job in jobs)),
            "run_time": ("job", as_column(job.run_time for job in jobs)),
            "processors": ("job", as_column(job.processors for job in jobs)),
            "start_time": ("job", as_column(min((s.start for s in own), default=-1) for own in by_job)),
            "end_time": ("job", as_column(max((s.end for s in own), default=-1) for own in by_job)),
            "segment_job": ("segment", as_column(s.job for s in segments)),
            "segment_cluster": ("segment", as_column(s.cluster for s in segments)),
            "segment_processors": ("segment", as_column(s.processors for s in segments)),
            "segment_start": ("segment", as_column(s.start for s in segments)),
            "segment_end": ("segment", as_column(s.end for s in segments)),
            "cluster_processors": ("cluster", as_column(machines)),
        },
        coords={
            "job_number": ("job", as_column(range(FIRST_NUMBER, FIRST_NUMBER + len(jobs)))),
            "cluster": ("cluster", [f"machine-{c}" for c in range(len(machines))]),
        },
    )
    if reserved is not None:
        run["reserved_start"] = ("job", as_column(reserved.get(j, -1) for j in range(len(jobs))))
    return run


def executed(jobs: list[Job], starts: list[int], processors: int) -> xr.Dataset:
    """A run on one cluster without preemption."""
    segments = [
        Segment(j, start, start + job.run_time, job.processors)
        for j, (job, start) in enumerate(zip(jobs, starts, strict=True))
        if start >= 0
    ]
    return dataset(jobs, segments, [processors])


@st.composite
def valid_runs(draw: st.DrawFn) -> xr.Dataset:
    """Runs of the oracle with some jobs that are rejected."""
    jobs, processors = draw(workloads(rejected=True, max_jobs=8))
    policy = draw(st.sampled_from(sorted(POLICIES)))
    passes = draw(st.sampled_from(["instant", "event", "arrivals-first"]))
    return executed(jobs, simulate_policy(jobs, processors, policy, passes=passes), processors)


@given(valid_runs())
def test_schedules_of_the_oracle_pass(run: xr.Dataset) -> None:
    verify(run)


Values = dict[str, int]
"""Variables of one job and of its only segment."""


class Mutation(NamedTuple):
    """What breaks one rule for one job, and what the verifier must say of that job."""

    complaint: str
    changes: dict[str, Callable[[Values], int]]
    possible: Callable[[Values], bool] = lambda v: True
    keeps_segment: bool = True


MUTATIONS: dict[str, Mutation] = {
    "starts before its submission": Mutation(
        "submitted at",
        {
            "start_time": lambda v: v["submit_time"] - 1,
            "end_time": lambda v: v["submit_time"] - 1 + v["run_time"],
            "segment_start": lambda v: v["submit_time"] - 1,
            "segment_end": lambda v: v["submit_time"] - 1 + v["run_time"],
        },
        lambda v: v["submit_time"] != 0,
    ),
    "loses its segment": Mutation("has no segment", {}, keeps_segment=False),
    "is lost": Mutation(
        "was never started",
        {"start_time": lambda v: -1, "end_time": lambda v: -1},
        keeps_segment=False,
    ),
    "runs longer": Mutation(
        "processor-seconds instead of",
        {"segment_end": lambda v: v["segment_end"] + 1, "end_time": lambda v: v["end_time"] + 1},
    ),
    "runs shorter": Mutation(
        "processor-seconds instead of",
        {"segment_end": lambda v: v["segment_end"] - 1, "end_time": lambda v: v["end_time"] - 1},
        lambda v: v["run_time"] > 0,
    ),
    "runs on fewer processors": Mutation(
        "but asks for",
        {"segment_processors": lambda v: v["segment_processors"] - 1},
        lambda v: v["processors"] > 1,
    ),
    "takes no processor": Mutation("with 0 processors", {"segment_processors": lambda v: 0}),
    "runs backwards": Mutation("back to", {"segment_end": lambda v: v["segment_start"] - 1}),
    "is rejected although it ran": Mutation("is rejected", {"start_time": lambda v: -1}),
    "says another start": Mutation("first segment starts", {"start_time": lambda v: v["start_time"] + 1}),
    "says another end": Mutation("last segment ends", {"end_time": lambda v: v["end_time"] + 1}),
    "uses an unknown cluster": Mutation("cluster index 1", {"segment_cluster": lambda v: 1}),
    "misses its reservation": Mutation("is reserved for", {"reserved_start": lambda v: v["start_time"] + 1}),
}


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
@settings(max_examples=25)
@given(run=valid_runs(), data=st.data())
def test_a_broken_schedule_is_caught_and_its_job_named(
    mutation: Mutation, run: xr.Dataset, data: st.DataObject
) -> None:
    assume(run.sizes["segment"] > 0)
    run["reserved_start"] = ("job", np.full(run.sizes["job"], -1))
    segment = data.draw(st.integers(0, run.sizes["segment"] - 1))
    job = int(run.segment_job.values[segment])
    of_job = run.isel(job=job, segment=segment)
    values = {str(name): int(of_job[name]) for name in of_job.data_vars if of_job[name].ndim == 0}
    assume(mutation.possible(values))
    for name, change in mutation.changes.items():
        run[name].values[segment if name.startswith("segment_") else job] = change(values)
    if not mutation.keeps_segment:
        run = run.isel(segment=np.arange(run.sizes["segment"]) != segment)
    found = violations(run)
    named = [line for line in found if line.startswith(f"job {FIRST_NUMBER + job} ")]
    assert any(mutation.complaint in line for line in named), found
    with refused(f"job {FIRST_NUMBER + job} ", error=ScheduleError):
        verify(run)


@given(valid_runs(), st.data())
def test_a_segment_that_is_there_twice_is_caught(run: xr.Dataset, data: st.DataObject) -> None:
    long = np.flatnonzero(run.segment_end.values > run.segment_start.values)
    assume(len(long) > 0)
    segment = data.draw(st.sampled_from(list(long)))
    number = FIRST_NUMBER + int(run.segment_job.values[segment])
    found = violations(run.isel(segment=[*range(run.sizes["segment"]), segment]))
    for expected in ("processor-seconds instead of", "still runs", "processors at once"):
        assert any(line.startswith(f"job {number} ") and expected in line for line in found), found


segments_of_a_job = st.builds(
    lambda start, length, processors, cluster: (start, start + length, processors, cluster),
    st.integers(0, 6),
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(0, 1),
)


@given(st.lists(segments_of_a_job, max_size=8))
def test_capacity_agrees_with_looking_at_every_second(parts: list[tuple[int, int, int, int]]) -> None:
    machines = [4, 5]
    jobs = [Job(0, end - start, 1, processors) for start, end, processors, _ in parts]
    segments = [Segment(j, *part) for j, part in enumerate(parts)]

    def used(cluster: int, time: int, *, throughout: bool = False) -> int:
        """Processors used just after a time, or both just before and just after it."""
        return sum(
            s.processors
            for s in segments
            if s.cluster == cluster and s.start <= time < s.end and not (throughout and s.start == time)
        )

    oversubscribed = any(used(cluster, t) > machines[cluster] for cluster in (0, 1) for t in range(12))
    no_room = any(
        used(s.cluster, s.start, throughout=True) + s.processors > machines[s.cluster]
        for s in segments
        if s.start == s.end
    )
    assert bool(violations(dataset(jobs, segments, machines))) == (oversubscribed or no_room)


CROWDED = [Job(0, 10, 10, 3), Job(0, 10, 10, 2), Job(5, 10, 10, 1), Job(7, 1, 1, 4)]
ALL_OF_FOUR = [Job(0, 10, 10, 4), Job(0, 10, 10, 4), Job(0, 0, 10, 4), Job(0, 0, 5, 4)]
BESIDE = [Job(0, 10, 10, 1), Job(0, 0, 10, 4)]
THREE, SIX = [Job(0, 10, 10, 3)], [Job(0, 10, 10, 6)]


@pytest.mark.parametrize(
    ("jobs", "segments", "machines", "expected"),
    [
        # Oversubscription names cluster, time and job
        (
            CROWDED,
            [Segment(0, 0, 10, 3), Segment(1, 10, 20, 2), Segment(2, 9, 19, 1), Segment(3, 19, 20, 4)],
            [4],
            ["cluster machine-0 uses 6 of its 4 processors at 19 s, when job 104 starts"],
        ),
        (
            CROWDED,
            [Segment(0, 0, 10, 3), Segment(1, 9, 19, 2), Segment(2, 9, 19, 1), Segment(3, 19, 20, 4)],
            [4],
            ["cluster machine-0 uses 5 of its 4 processors at 9 s, when job 102 starts (and 1 more starts)"],
        ),
        # A processor that is freed can be used at once
        (
            ALL_OF_FOUR,
            [Segment(0, 0, 10, 4), Segment(1, 10, 20, 4), Segment(2, 10, 10, 4), Segment(3, 10, 10, 4)],
            [4],
            [],
        ),
        # A job without run time must fit beside what runs through
        (BESIDE, [Segment(0, 0, 10, 1), Segment(1, 0, 0, 4)], [4], []),
        (
            BESIDE,
            [Segment(0, 0, 10, 1), Segment(1, 5, 5, 4)],
            [4],
            ["cluster machine-0 uses 5 of its 4 processors at 5 s, when job 102 starts"],
        ),
        (BESIDE, [Segment(0, 0, 10, 1), Segment(1, 10, 10, 4)], [4], []),
        # Whole nodes may be more than the job asks for
        (THREE, [Segment(0, 0, 10, 4)], [8], []),
        # Preempted and moved jobs add up to their run time
        (THREE, [Segment(0, 0, 4, 3), Segment(0, 7, 13, 4)], [4], []),
        (THREE, [Segment(0, 0, 4, 3), Segment(0, 4, 10, 4, 1)], [4, 4], []),
        (
            THREE,
            [Segment(0, 0, 4, 3), Segment(0, 7, 12, 3)],
            [4],
            ["job 101 is executed for 27 processor-seconds instead of 30 (10 s on 3 processors)"],
        ),
        # Jobs may span clusters but not run twice: the same work, in half the time on all processors twice
        (SIX, [Segment(0, 0, 10, 4), Segment(0, 0, 10, 2, 1)], [4, 4], []),
        (
            SIX,
            [Segment(0, 0, 5, 6), Segment(0, 0, 5, 6, 1)],
            [6, 6],
            ["job 101 runs on 12 processors at once at 0 s, but asks for 6"],
        ),
        # A narrow segment on one cluster is not excused by its length
        (
            [Job(0, 10, 10, 2)],
            [Segment(0, 0, 20, 1)],
            [4],
            ["job 101 runs on 1 processors from 0 s, but asks for 2"],
        ),
        # Segments of unknown jobs are reported
        (
            [Job(0, 5, 5, 1)],
            [Segment(0, 0, 5, 1), Segment(7, 0, 5, 1)],
            [4],
            ["segment 1 names job index 7, but there are 1 jobs"],
        ),
        # A run without jobs passes
        ([], [], [4], []),
    ],
)
def test_violations_by_hand(
    jobs: list[Job], segments: list[Segment], machines: list[int], expected: list[str]
) -> None:
    assert violations(dataset(jobs, segments, machines)) == expected


def test_jobs_may_span_clusters_that_give_whole_nodes() -> None:
    jobs = [Job(0, 10, 10, 5)]
    run = dataset(jobs, [Segment(0, 0, 10, 4), Segment(0, 0, 10, 4, 1)], [4, 4])
    assert violations(run)
    run["segment_tasks"] = ("segment", np.array([3, 2]))
    assert violations(run) == []
    run["segment_tasks"] = ("segment", np.array([3, 3]))
    assert violations(run)[-1] == "job 101 runs on 6 processors at once at 0 s, but asks for 5"
    for tasks in (0, 5):
        run["segment_tasks"] = ("segment", np.array([tasks, 2]))
        assert violations(run)[0] == f"job 101 has {tasks} tasks on 4 processors at 0 s"


def test_kept_reservations_pass() -> None:
    verify(
        dataset([Job(0, 5, 5, 1), Job(0, 5, 5, 1)], [Segment(0, 3, 8, 1), Segment(1, 0, 5, 1)], [4], {0: 3})
    )


def test_the_error_is_one_line_that_names_the_workload_and_every_broken_rule() -> None:
    run = dataset([Job(5, 10, 10, 2)], [Segment(0, 3, 10, 2)], [1]).assign_attrs(workload="KTH")
    with pytest.raises(ScheduleError) as caught:
        verify(run)
    assert str(caught.value) == (
        "the schedule of KTH breaks 3 rule(s): "
        "cluster machine-0 uses 2 of its 1 processors at 3 s, when job 101 starts; "
        "job 101 starts at 3 s, submitted at 5 s; "
        "job 101 is executed for 14 processor-seconds instead of 20 (10 s on 2 processors)"
    )


def test_what_cannot_be_verified_is_said() -> None:
    run = dataset([Job(0, 5, 5, 1)], [Segment(0, 0, 5, 1)], [4])
    with refused("without the variable", "segment_end", error=ScheduleError):
        verify(run.drop_vars("segment_end"))
    with refused("end_time is float64", error=ScheduleError):
        verify(run.assign(end_time=run.end_time / 2))


def test_processors_that_are_out_run_nothing() -> None:
    jobs = [Job(0, 10, 10, 4)]

    def run_with(closures: list[tuple[int, int, int, int, int]]) -> list[str]:
        run = dataset(jobs, [Segment(0, 5, 15, 4)], [8])
        run["fate"] = ("job", np.zeros(1, np.int64))
        for k, name in enumerate(("cluster", "first", "end", "start", "until")):
            run[f"closure_{name}"] = ("closure", as_column(row[k] for row in closures))
        return violations(run)

    assert run_with([(0, 0, 4, 0, 20)]) == []
    assert run_with([(0, 0, 4, 0, 12), (0, 0, 4, 10, 20)]) == [], "what is out twice is out once"
    assert run_with([(0, 0, 4, 0, 20), (0, 4, 6, 15, 20)]) == [], "it begins when the job has ended"
    (line,) = run_with([(0, 0, 4, 0, 20), (0, 4, 6, 14, 20)])
    assert "10 of its 8" in line
    assert "14 s" in line


# --- outcomes of jobs -----------------------------------------------------------------------------


def run_with_outcomes() -> xr.Dataset:
    """Job 1 has a response of 10 s, of which its user goes away until 100 s; job 2 follows 5 s later.

    Job 3 starts when job 1 has ended, and the user of job 4 gives up behind it. Job 5 fails, so that job 6 is
    never eligible, and job 7 is larger than the cluster.
    """
    jobs = jobs_of(
        submit_time=[0, 0, 1, 2, 200, 200, 200],
        run_time=[10, 10, 30, 10, 10, 10, 10],
        requested_processors=[2, 2, 4, 4, 1, 1, 9],
        status=[1, 1, 1, 1, 0, 1, 1],
        gives_up_time=[-1, -1, 11, 30, -1, -1, -1],
        response_limit=[10, -1, -1, -1, -1, -1, -1],
        returns_at=[100, 0, 0, 0, 0, 0, 0],
        away_days=[0] * 7,
        dependencies=dependency_table([(1, 0, "afterok", 5), (5, 4, "afterok")]),
    )
    return gs.simulate(jobs, gs.Cluster(processors=4), "fcfs")


@pytest.mark.parametrize(
    ("variable", "place", "value", "complaint"),
    [
        ("fate", 6, 0, "job 7 neither ran nor has another fate"),
        ("fate", 2, 1, "job 3 ran, but is said not to have run"),
        ("gives_up_time", 2, 10, "job 3 starts after its user gave up"),
        ("gives_up_time", 3, -1, "job 4 gave up, but was never to"),
        ("dependency_delay", 0, 6, "job 2 starts before a job that it waits for"),
        ("returns_at", 0, 101, "job 2 starts before a job that it waits for"),
        ("away_days", 0, 1, "job 2 starts before a job that it waits for"),
        ("fate", 0, 4, "job 2 starts although a job that it waits for ended otherwise"),
        ("fate", 0, 4, "job 1 is said to be lost, but was never killed"),
        ("fails", 0, 1, "job 2 starts although a job that it waits for ended otherwise"),
        ("dependency_kind", 0, 3, "job 2 starts although a job that it waits for ended otherwise"),
        ("dependency_job", 1, 6, "job 6 is said never to be eligible, but could be"),
        ("fails", 4, 0, "job 6 is said never to be eligible, but could be"),
        ("dependency_kind", 1, 3, "job 6 is said never to be eligible, but could be"),
    ],
)
def test_a_broken_rule_of_outcomes_is_named(variable: str, place: int, value: int, complaint: str) -> None:
    run = run_with_outcomes()
    assert violations(run) == []
    assert run["start_time"].values.tolist() == [0, 105, 10, -1, 200, -1, -1]
    run[variable][place] = value
    assert [line for line in violations(run) if line.startswith(complaint)], violations(run)


# --- nodes ----------------------------------------------------------------------------------------


def run_on_nodes() -> xr.Dataset:
    """Two jobs with a GPU each beside each other on node n0, one of four parts on n1; all end at 10 s."""
    jobs = jobs_of(
        submit_time=[0, 0, 0],
        run_time=[10, 10, 10],
        requested_time=[10, 10, 10],
        requested_processors=[2, 2, 4],
        requested_gpus=[1, 1, 0],
        requested_memory=[1024, 1024, 1024],
        user=[1, 1, 2],
    )
    cluster = gs.Cluster(
        nodes=[NodeType(count=2, cores=4, memory=6, gpus=2, name="n")],
        limits=[Limit(by="user", jobs=2)],
        events=[NodeEvent(time=10, node="n1", kind="down"), NodeEvent(time=20, node="n1", kind="up")],
    )
    return gs.simulate(jobs, cluster, "easy")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"piece_devices": [1, 1, 0]}, "GPU 0 of node n0 has 2000 thousandths taken at some time"),
        ({"piece_devices": [2, 2, 0]}, "GPU 1 of node n0 has 2000 thousandths taken at some time"),
        ({"piece_devices": [1, 4, 0]}, "job 2 has a GPU that its node has not"),
        ({"piece_devices": [1, 0, 0]}, "job 2 has less on a node than its parts ask for"),
        ({"piece_share": [1000, 500, 0]}, "job 2 has less on a node than its parts ask for"),
        ({"piece_memory": [2048, 2047, 4096]}, "job 2 has less on a node than its parts ask for"),
        ({"piece_memory": [4096, 2049, 4096]}, "node n0 has 6145 of 6144 memory taken at some time"),
        ({"node_cores": [3, 4]}, "node n0 has 4 of 3 cores taken at some time"),
        ({"piece_cores": [2, 3, 4]}, "job 2 has pieces that do not add up to its segment"),
        ({"piece_units": [1, 1, 3]}, "job 3 has more or fewer parts than it asks for"),
        ({"asked_most": [1, 1, 3]}, "job 3 has too many parts on one node"),
        ({"asked_whole": [0, 1, 1]}, "job 2 wants whole nodes, but has a part of one"),
        ({"node_reach": [[1, 0]]}, "job 3 runs on a node that it may not use"),
        ({"node_cluster": [0, 1]}, "job 3 has a piece on a node of another cluster"),
        ({"outage_start": [9]}, "job 3 runs on a node that is out"),
        ({"limit_jobs": [1, 1]}, "a group has 2 jobs at some time, its limit is 1"),
        ({"limit_cores": [3, 4]}, "a group has 4 cores at some time, its limit is 3"),
    ],
)
def test_a_broken_rule_of_nodes_is_named(changes: dict[str, Any], complaint: str) -> None:
    run = run_on_nodes()
    assert violations(run) == []
    for name, values in changes.items():
        run[name] = (run[name].dims, np.array(values))
    assert [line for line in violations(run) if line.startswith(complaint)], violations(run)
