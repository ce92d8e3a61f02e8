"""Size classes and machine models from logs, with the real log of M3 beside Table 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import WorkloadError
from gridsched.workloads import (
    Workload,
    fit_machine,
    load_machines,
    size_classes_of,
    synthesise,
)
from gridsched.workloads.estimates import Multiple
from tests.support.fields import assert_fields

MACHINES = load_machines()
M3 = MACHINES["M3"]
TABLE_4 = [(c.low, c.high) for c in M3.classes]
SHAPE: dict[str, Any] = {"nodes": 144, "processors_per_node": 8, "mhz": 375}


def naive_classes(
    sizes: list[int], per_node: int, minimum_share: float, largest: int
) -> list[tuple[int, int]]:
    """One node count after another, joined to the class below where it is rare."""
    classes: list[list[int]] = []
    for low in range(1, largest + 1, per_node):
        high = min(low + per_node - 1, largest)
        rare = sum(low <= size <= high for size in sizes) / len(sizes) < minimum_share
        if classes and rare:
            classes[-1][1] = high
        else:
            classes.append([low, high])
    low, high = classes[0]
    if len(classes) > 1 and sum(low <= size <= high for size in sizes) / len(sizes) < minimum_share:
        classes[:2] = [[low, classes[1][1]]]
    return [(low, high) for low, high in classes]


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=80),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.02, 0.1, 0.25, 0.6]),
    st.integers(0, 20),
)
def test_classes_are_those_of_the_rule(
    sizes: list[int], per_node: int, minimum_share: float, more: int
) -> None:
    largest = max(sizes) + more
    classes = size_classes_of(sizes, per_node, minimum_share, largest)
    assert [(c.low, c.high) for c in classes] == naive_classes(sizes, per_node, minimum_share, largest)
    assert (classes[0].low, classes[-1].high) == (1, largest)
    for c in classes:
        assert c.share == pytest.approx(np.mean([c.low <= size <= c.high for size in sizes]))
        assert c.share >= minimum_share - 1e-12
    if more == 0:
        assert classes == size_classes_of(sizes, per_node, minimum_share)


@pytest.mark.parametrize(
    ("sizes", "options", "named"),
    [
        ([], {}, "no jobs"),
        ([1, 0, -1], {}, "2 of 3 jobs have a size outside 1 to 1"),
        ([1, 9], {"largest": 8}, "1 of 2 jobs have a size outside 1 to 8"),
        ([1], {"processors_per_node": 0}, "processors per node is 0"),
        ([1], {"minimum_share": 1.0}, "minimum share is 1"),
    ],
)
def test_bad_sizes_are_named(sizes: list[int], options: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        size_classes_of(sizes, **({"processors_per_node": 8} | options))


def jobs(submit: list[int], run: list[int], size: list[int]) -> Workload:
    return Workload(
        name="log",
        submit_time=np.array(submit),
        run_time=np.array(run),
        requested_processors=np.array(size),
    )


def test_a_small_log_by_hand() -> None:
    log = jobs([30, 0, 10, 5, 5, 9], [1, 2, 3, -1, 4, 6], [1, 2, 2, 1, 4, 3])
    fitted = fit_machine(log, nodes=2, processors_per_node=2, mhz=1, incomplete="leave-out")
    small, large = (fitted.table.loc[label] for label in ("1-2", "3-4"))
    assert (small.jobs, small.served, small.unknown_run_time, large.jobs) == (4, 3, 1, 2)
    # Arrivals of the first class at 0, 5, 10 and 30 s.
    assert_fields(
        small,
        interarrival_moment_1=pytest.approx(10),
        interarrival_moment_2=pytest.approx((25 + 25 + 400) / 3),
        service_moment_3=pytest.approx((1 + 8 + 27) / 3),
    )
    assert large.interarrival_matched == 1
    assert_fields(
        fitted.machine.classes[0], share=pytest.approx(4 / 6), service=fitted.service[0].distribution
    )


def test_model_of_a_synthetic_log_is_that_of_its_machine() -> None:
    drawn = synthesise(M3, seed=1, jobs=200_000, estimates=Multiple())
    fitted = fit_machine(drawn, classes=TABLE_4, name="again", **SHAPE)
    assert fitted.machine.name == "again"
    for fit, c in zip(fitted.interarrival, M3.classes, strict=True):
        assert fit.distribution.mean == pytest.approx(c.interarrival.mean, rel=0.06)
    # Classes with rare long jobs rest on a handful of draws; these do not.
    assert fitted.table.loc[["1-8", "57-120"], "service_ks_distance"].max() < 0.02
    assert synthesise(fitted.machine, seed=1, jobs=10).processors_available == 1152


@pytest.mark.parametrize(
    ("log", "options", "named"),
    [
        (jobs([], [], []), {}, "log: there are no jobs"),
        (jobs([1, 2], [1, 1], [1, -1]), {}, "1 jobs have no size"),
        (jobs([-1, 2], [1, 1], [1, 1]), {}, "1 jobs have no submit time"),
        (jobs([1, 2, 3], [0, -1, 5], [1, 1, 1]), {}, "1 jobs have no run time and 1 one of zero"),
        (jobs([1, 2, 3], [5, 5, 5], [1, 1, 9]), {}, "size class 9-1152 has 1 job, two"),
        (jobs([1, 2], [5, 5], [1, 1]), {"classes": [(1, 8), (9, 16)]}, "size class 9-16 has 0 jobs"),
        (jobs([1, 2], [5, 5], [1, 9]), {"classes": [(1, 8)]}, "1 jobs are in none"),
        (jobs([1, 2], [5, 5], [1, 9]), {"classes": [(1, 8), (8, 9)]}, "begins below the end"),
        (jobs([1, 1], [5, 5], [1, 1]), {}, "times between arrivals: all 1 are zero"),
        (jobs([1, 2], [0, 0], [1, 1]), {"incomplete": "leave-out"}, "run times: there are none"),
        (jobs([1, 2], [5, 5], [1, 2000]), {}, "log: size classes: 1 of 2 jobs .* outside 1 to 1152"),
        (jobs([1, 2], [5, 5], [1, 1]), {"incomplete": "drop"}, "incomplete is .drop."),
    ],
)
def test_unusable_logs_are_named(log: Workload, options: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        fit_machine(log, **SHAPE, **options)


def test_real_log_of_m3_gives_the_slow_paths_of_table_4(blue_log: Workload) -> None:
    """All orders, and the rates of the slower paths but of the widest jobs to 8 %, are the paper's."""
    assert len(blue_log) == 35_695
    fitted = fit_machine(blue_log, classes=TABLE_4, incomplete="leave-out", **SHAPE)
    assert (fitted.table[["interarrival_matched", "service_matched"]] == 3).all(axis=None)
    pairs = [
        (mine, paper)
        for c, p in zip(fitted.machine.classes, M3.classes, strict=True)
        for mine, paper in ((c.interarrival, p.interarrival), (c.service, p.service))
    ]
    for mine, paper in pairs:
        assert mine.order == paper.order
        assert mine.rate_1 == pytest.approx(paper.rate_1, rel=0.085)


def test_other_classes_of_the_log_of_m3_lack_short_jobs(blue_log: Workload) -> None:
    """The log has the paper's long jobs, p x jobs, but fewer short ones: mean service times are longer."""
    fitted = fit_machine(blue_log, classes=TABLE_4, incomplete="leave-out", **SHAPE)
    for label, c in zip(fitted.table.index, M3.classes, strict=True):
        if label not in ("25-56", "121-248", "505-1152"):
            continue
        assert c.share is not None
        row = fitted.table.loc[label]
        assert row.service_p * row.served == pytest.approx(c.service.p * c.share * 36_131, rel=0.04)
        assert row.service_moment_1 > 1.35 * c.service.mean


def test_jobs_of_m3_that_got_processors(blue_log: Workload) -> None:
    """Without the 2,055 jobs that never started: 823 s and, unknown run times taken as -1 s, 2,080 s."""
    ran = blue_log.select(blue_log.allocated_processors > 0)
    small = fit_machine(ran, classes=TABLE_4, incomplete="leave-out", **SHAPE).table.loc["1-8"]
    assert len(ran) == 33_640
    assert small.jobs == 19_299
    # 54.1 % of all jobs, 57.4 % of those that got processors.
    assert small.jobs / len(blue_log) == pytest.approx(0.541, abs=5e-4)
    assert_fields(
        small, share=pytest.approx(0.574, abs=5e-4), interarrival_moment_1=pytest.approx(823.4, abs=0.1)
    )
    assert ran.run_time[ran.processors <= 8].mean() == pytest.approx(2080, abs=0.5)
    assert small.service_moment_1 == pytest.approx(2083, abs=0.5)


def test_rule_gives_five_of_the_six_bounds_of_table_4(blue_log: Workload) -> None:
    bounds = [(c.low, c.high) for c in size_classes_of(blue_log.processors, 8, largest=1152)]
    assert bounds == [*TABLE_4[:5], (249, 1152)]


def test_real_log_needs_a_decision_about_incomplete_jobs(blue_log: Workload) -> None:
    with pytest.raises(WorkloadError, match="2,083 jobs have no run time and 4 one of zero"):
        fit_machine(blue_log, **SHAPE)
