"""The verifier accepts the schedules of the oracle and names what is wrong with broken ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import ScheduleError
from gridsched.verification import verify, violations
from tests.oracles.local import POLICIES, Job, simulate_policy
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


# Mutations of a valid run: each breaks one rule for one job (given by index, and its only segment), or
# says that it cannot; and each tells what the verifier must say of that job.


def start_before_submission(run: xr.Dataset, job: int, segment: int) -> str:
    early = run.submit_time.values[job] - 1 - run.start_time.values[job]
    for name in ("start_time", "end_time"):
        run[name].values[job] += early
    for name in ("segment_start", "segment_end"):
        run[name].values[segment] += early
    assume(run.start_time.values[job] != -1)
    return "submitted at"


def lose_segment(run: xr.Dataset, job: int, segment: int) -> str:
    keep = np.arange(run.sizes["segment"]) != segment
    for name in [name for name in run if str(name).startswith("segment_")]:
        run[name] = ("kept", run[name].values[keep])
    return "has no segment"


def lose_job(run: xr.Dataset, job: int, segment: int) -> str:
    lose_segment(run, job, segment)
    run.start_time.values[job] = run.end_time.values[job] = -1
    return "was never started"


def run_longer(run: xr.Dataset, job: int, segment: int) -> str:
    run.segment_end.values[segment] += 1
    run.end_time.values[job] += 1
    return "processor-seconds instead of"


def run_shorter(run: xr.Dataset, job: int, segment: int) -> str:
    assume(run.run_time.values[job] > 0)
    run.segment_end.values[segment] -= 1
    run.end_time.values[job] -= 1
    return "processor-seconds instead of"


def run_narrower(run: xr.Dataset, job: int, segment: int) -> str:
    assume(run.processors.values[job] > 1)
    run.segment_processors.values[segment] -= 1
    return "but asks for"


def take_no_processor(run: xr.Dataset, job: int, segment: int) -> str:
    run.segment_processors.values[segment] = 0
    return "with 0 processors"


def run_backwards(run: xr.Dataset, job: int, segment: int) -> str:
    run.segment_end.values[segment] = run.segment_start.values[segment] - 1
    return "back to"


def reject_although_executed(run: xr.Dataset, job: int, segment: int) -> str:
    run.start_time.values[job] = -1
    return "is rejected"


def state_another_start(run: xr.Dataset, job: int, segment: int) -> str:
    run.start_time.values[job] += 1
    return "first segment starts"


def state_another_end(run: xr.Dataset, job: int, segment: int) -> str:
    run.end_time.values[job] += 1
    return "last segment ends"


def use_unknown_cluster(run: xr.Dataset, job: int, segment: int) -> str:
    run.segment_cluster.values[segment] = 1
    return "cluster index 1"


def miss_reservation(run: xr.Dataset, job: int, segment: int) -> str:
    run["reserved_start"] = ("job", np.full(run.sizes["job"], -1))
    run.reserved_start.values[job] = run.start_time.values[job] + 1
    return "is reserved for"


MUTATIONS: list[Callable[[xr.Dataset, int, int], str]] = [
    start_before_submission,
    lose_segment,
    lose_job,
    run_longer,
    run_shorter,
    run_narrower,
    take_no_processor,
    run_backwards,
    reject_although_executed,
    state_another_start,
    state_another_end,
    use_unknown_cluster,
    miss_reservation,
]


@pytest.mark.parametrize("mutate", MUTATIONS)
@settings(max_examples=25)
@given(run=valid_runs(), data=st.data())
def test_a_broken_schedule_is_caught_and_its_job_named(
    mutate: Callable[[xr.Dataset, int, int], str], run: xr.Dataset, data: st.DataObject
) -> None:
    assume(run.sizes["segment"] > 0)
    segment = data.draw(st.integers(0, run.sizes["segment"] - 1))
    job = int(run.segment_job.values[segment])
    expected = mutate(run, job, segment)
    found = violations(run)
    assert any(line.startswith(f"job {FIRST_NUMBER + job} ") and expected in line for line in found), found
    with pytest.raises(ScheduleError, match=f"job {FIRST_NUMBER + job} "):
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


def test_oversubscription_names_cluster_time_and_job() -> None:
    jobs = [Job(0, 10, 10, 3), Job(0, 10, 10, 2), Job(5, 10, 10, 1), Job(7, 1, 1, 4)]
    segments = [Segment(0, 0, 10, 3), Segment(1, 10, 20, 2), Segment(2, 9, 19, 1), Segment(3, 19, 20, 4)]
    assert violations(dataset(jobs, segments, [4])) == [
        "cluster machine-0 uses 6 of its 4 processors at 19 s, when job 104 starts"
    ]
    segments[1] = Segment(1, 9, 19, 2)
    assert violations(dataset(jobs, segments, [4])) == [
        "cluster machine-0 uses 5 of its 4 processors at 9 s, when job 102 starts (and 1 more starts)"
    ]


def test_a_processor_that_is_freed_can_be_used_at_once() -> None:
    jobs = [Job(0, 10, 10, 4), Job(0, 10, 10, 4), Job(0, 0, 10, 4), Job(0, 0, 5, 4)]
    segments = [Segment(0, 0, 10, 4), Segment(1, 10, 20, 4), Segment(2, 10, 10, 4), Segment(3, 10, 10, 4)]
    verify(dataset(jobs, segments, [4]))


def test_a_job_without_run_time_must_fit_beside_what_runs_through() -> None:
    jobs = [Job(0, 10, 10, 1), Job(0, 0, 10, 4)]
    for time, fits in ((0, True), (5, False), (10, True)):
        run = dataset(jobs, [Segment(0, 0, 10, 1), Segment(1, time, time, 4)], [4])
        assert (violations(run) == []) is fits


def test_whole_nodes_may_be_more_than_the_job_asks_for() -> None:
    verify(dataset([Job(0, 10, 10, 3)], [Segment(0, 0, 10, 4)], [8]))


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


def test_preempted_and_moved_jobs_add_up_to_their_run_time() -> None:
    jobs = [Job(0, 10, 10, 3)]
    verify(dataset(jobs, [Segment(0, 0, 4, 3), Segment(0, 7, 13, 4)], [4]))
    verify(dataset(jobs, [Segment(0, 0, 4, 3), Segment(0, 4, 10, 4, 1)], [4, 4]))
    (found,) = violations(dataset(jobs, [Segment(0, 0, 4, 3), Segment(0, 7, 12, 3)], [4]))
    assert found == "job 101 is executed for 27 processor-seconds instead of 30 (10 s on 3 processors)"


def test_jobs_may_span_clusters_but_not_run_twice() -> None:
    jobs = [Job(0, 10, 10, 6)]
    verify(dataset(jobs, [Segment(0, 0, 10, 4), Segment(0, 0, 10, 2, 1)], [4, 4]))
    # The same work, in half the time on all processors twice.
    found = violations(dataset(jobs, [Segment(0, 0, 5, 6), Segment(0, 0, 5, 6, 1)], [6, 6]))
    assert found == ["job 101 runs on 12 processors at once at 0 s, but asks for 6"]


def test_a_narrow_segment_on_one_cluster_is_not_excused_by_its_length() -> None:
    found = violations(dataset([Job(0, 10, 10, 2)], [Segment(0, 0, 20, 1)], [4]))
    assert found == ["job 101 runs on 1 processors from 0 s, but asks for 2"]


def test_kept_reservations_pass() -> None:
    verify(
        dataset([Job(0, 5, 5, 1), Job(0, 5, 5, 1)], [Segment(0, 3, 8, 1), Segment(1, 0, 5, 1)], [4], {0: 3})
    )


def test_segments_of_unknown_jobs_are_reported() -> None:
    run = dataset([Job(0, 5, 5, 1)], [Segment(0, 0, 5, 1), Segment(7, 0, 5, 1)], [4])
    assert violations(run) == ["segment 1 names job index 7, but there are 1 jobs"]


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
    with pytest.raises(ScheduleError, match=r"without the variable.*segment_end"):
        verify(run.drop_vars("segment_end"))
    with pytest.raises(ScheduleError, match="end_time is float64"):
        verify(run.assign(end_time=run.end_time / 2))


def test_a_run_without_jobs_passes() -> None:
    verify(dataset([], [], [4]))


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
