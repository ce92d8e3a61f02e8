"""Hypothesis strategies of small workloads, rich in coincidences and corner cases."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from gridsched.nodes import NodeEvent
from tests.oracles.grid import GridCluster, GridJob
from tests.oracles.local import Job
from tests.oracles.users import NEVER, Submission
from tests.support.nodes import some_events


def clusters() -> st.SearchStrategy[int]:
    """Processors of a cluster; one processor is as likely as any."""
    return st.sampled_from([1, 2, 3, 4, 7, 8])


@st.composite
def sizes(draw: st.DrawFn, processors: int) -> int:
    """Processors of a job: any size, but one processor, half and the full cluster often."""
    likely = st.sampled_from([1, max(1, processors // 2), processors])
    return draw(likely | st.integers(1, processors))


@st.composite
def run_and_estimate(draw: st.DrawFn, unit: int, *, accurate: bool) -> tuple[int, int]:
    """Run time and estimate [s]: in whole units, so that ends and expected ends meet.

    Unless `accurate`, there are zero run times, early ends, exact estimates and overruns of up to
    many corrections.
    """
    estimate = unit * draw(st.integers(1, 6))
    if accurate:
        return estimate, estimate
    kind = draw(st.sampled_from(["exact", "early", "zero", "over", "far over"]))
    if kind == "exact":
        return estimate, estimate
    if kind == "early":
        return draw(st.integers(0, estimate)), estimate
    if kind == "zero":
        return 0, estimate
    if kind == "over":
        return unit * draw(st.integers(1, 12)), estimate
    return unit * draw(st.integers(1, 100)), draw(st.sampled_from([1, unit]))


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    max_jobs: int = 12,
    accurate: bool = False,
    rejected: bool = False,
) -> tuple[list[Job], int]:
    """Jobs by submit time and the processors of the cluster.

    Parameters
    ----------
    draw : callable
        Given by hypothesis.
    max_jobs : int
        Most jobs of a workload; there may be none.
    accurate : bool
        Whether every estimate is the run time (at least 1 s).
    rejected : bool
        Whether there may be jobs larger than the cluster.
    """
    processors = draw(clusters())
    # The unit of 60 s makes the first increments of Tsafrir et al. meet other events.
    unit = draw(st.sampled_from([1, 2, 5, 60]))
    gaps = draw(
        st.sampled_from([[0], [0, 1], [0, 0, 0, unit, 4 * unit], [0, 1, unit], [unit], [0, 20 * unit]])
    )
    jobs: list[Job] = []
    submit_time = 0
    for _ in range(draw(st.integers(0, max_jobs))):
        submit_time += draw(st.sampled_from(gaps))
        run_time, estimate = draw(run_and_estimate(unit, accurate=accurate))
        size = draw(sizes(processors))
        if rejected and draw(st.integers(0, 9)) == 0:
            size = processors + 1
        jobs.append(Job(submit_time, run_time, estimate, size))
    return jobs, processors


@st.composite
def grid_clusters(draw: st.DrawFn) -> GridCluster:
    """A small cluster of any size, node shape, speed and local policy; a plain EASY cluster often.

    Times multiplied and divided by a speed of 0.7 are not always what they were in float64.
    """
    node = draw(st.sampled_from([1, 1, 2, 3]))
    processors = node * draw(st.integers(1, 4))
    if draw(st.booleans()):
        return GridCluster(processors)
    backfilling = draw(st.sampled_from(["none", "first_fit", "easy", "conservative"]))
    return GridCluster(
        processors=processors,
        processors_per_node=node,
        node_exclusive=draw(st.booleans()),
        speed=draw(st.sampled_from([1.0, 1.0, 2.0, 0.5, 1.5, 0.7])),
        order=draw(st.sampled_from(["fcfs", "shortest", "smallest", "smallest_area", "lxf", "lxwf"])),
        backfilling=backfilling,
        reservations=draw(st.integers(1, 3)) if backfilling == "easy" else 1,
        backfill_order=draw(st.sampled_from(["queue", "fcfs", "shortest", "smallest", "smallest_area"]))
        if backfilling in ("first_fit", "easy")
        else "queue",
    )


@st.composite
def grids(
    draw: st.DrawFn, max_jobs: int = 12, max_clusters: int = 3
) -> tuple[list[GridJob], list[GridCluster]]:
    """Jobs by submit time and the clusters of a grid; some jobs fit only elsewhere, a few nowhere."""
    number = draw(st.sampled_from([max_clusters, max_clusters, 1]) | st.integers(1, max_clusters))
    clusters = [draw(grid_clusters()) for _ in range(number)]
    widest = max(cluster.processors for cluster in clusters)
    unit = draw(st.sampled_from([1, 2, 5]))
    gaps = draw(st.sampled_from([[0], [0, 1], [0, 0, 0, unit, 4 * unit], [unit], [0, 20 * unit]]))
    # With one busy home there is more to move.
    homes = st.integers(0, len(clusters) - 1) if draw(st.booleans()) else st.just(0)
    jobs: list[GridJob] = []
    submit_time = 0
    for _ in range(draw(st.integers(max_jobs // 2, max_jobs) | st.integers(0, max_jobs))):
        submit_time += draw(st.sampled_from(gaps))
        run_time, estimate = draw(run_and_estimate(unit, accurate=False))
        home = draw(homes)
        size = draw(sizes(clusters[home].processors))
        if draw(st.integers(0, 9)) == 9:
            size = draw(st.sampled_from([widest, widest, widest + 1]))
        jobs.append(GridJob(submit_time, run_time, estimate, size, home))
    return jobs, clusters


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[GridJob], list[GridCluster]]:
    """Many jobs on few processors, mostly served in order of entry; estimates may all be right.

    Queues are long, jobs enter while forecasts hold, and ends coincide.
    """
    processors = draw(st.sampled_from([2, 5, 8]))
    backfilling = draw(st.sampled_from(["none", "first_fit", "easy", "easy", "conservative"]))
    clusters = [
        GridCluster(processors, backfilling=backfilling),
        GridCluster(processors + draw(st.integers(0, 2)), speed=draw(st.sampled_from([1.0, 2.0]))),
    ]
    accurate = draw(st.booleans())
    unit = draw(st.sampled_from([1, 3, 10]))
    gap = st.sampled_from([0, 0, 1, unit])
    jobs = []
    submit_time = 0
    for _ in range(draw(st.integers(15, 40))):
        submit_time += draw(gap)
        run_time, estimate = draw(run_and_estimate(unit, accurate=accurate))
        jobs.append(GridJob(submit_time, run_time, estimate, draw(sizes(processors)), 0))
    return jobs, clusters


@st.composite
def partnerships(draw: st.DrawFn, clusters: int) -> list[set[int]] | None:
    """The partners of each cluster: all others, or any, not always mutual."""
    if draw(st.booleans()):
        return None
    return [draw(st.sets(st.integers(0, clusters - 1))) for _ in range(clusters)]


def node_events(nodes: int, first: int = 0) -> st.SearchStrategy[list[NodeEvent]]:
    """What happens to so many nodes about a time."""
    names = [f"node{k}" for k in range(nodes)]
    return st.randoms(use_true_random=False).map(lambda draw: some_events(draw, names, first))


@st.composite
def lives(draw: st.DrawFn, submit_times: Sequence[int]) -> list[Submission]:
    """Jobs whose users may give up, and which may wait for others and fail."""
    wants, needs = draw(st.booleans()), draw(st.booleans())
    kinds, delays = (
        st.sampled_from(["after", "afterany", "afterok", "afternotok"]),
        st.sampled_from([0, 0, 3]),
    )
    found = []
    for j, submit in enumerate(submit_times):
        patience = draw(st.sampled_from([None, 0, 1, 5, 12, 30, -2])) if wants else None
        others = draw(st.lists(st.integers(0, j - 1), max_size=2, unique=True)) if needs and j else []
        after = tuple((on, draw(kinds), draw(delays)) for on in others)
        gives_up = NEVER if patience is None else max(submit + patience, 0)
        found.append(Submission(submit, gives_up, needs and draw(st.integers(0, 4)) == 0, after))
    return found
