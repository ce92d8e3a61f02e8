"""Hypothesis strategies of small workloads, rich in coincidences and corner cases."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.naive import Job


def machines() -> st.SearchStrategy[int]:
    """Processors of a machine; one processor is as likely as any."""
    return st.sampled_from([1, 2, 3, 4, 7, 8])


@st.composite
def sizes(draw: st.DrawFn, processors: int) -> int:
    """Processors of a job: any size, but one processor, half and the full machine often."""
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
    """Jobs by submit time and the processors of the machine.

    Parameters
    ----------
    draw : callable
        Given by hypothesis.
    max_jobs : int
        Most jobs of a workload; there may be none.
    accurate : bool
        Whether every estimate is the run time (at least 1 s).
    rejected : bool
        Whether there may be jobs larger than the machine.
    """
    processors = draw(machines())
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
