"""Trees of managers: against the oracle, worked out by hand, and what two phases guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan, clusters_of
from gridsched.traces import clean, read_swf, select_window
from gridsched.verification import verify
from gridsched.workloads import Workload
from tests.oracles.calendars import Job
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.systems.calendars.cases import TENS, check_worked, run
from tests.systems.calendars.test_scheduler import workload


def local(name: str, nodes: int, **rules: Any) -> Manager:
    """A local manager with its cluster."""
    return Manager(name=name, children=[Cluster(name=name, processors=nodes)], **rules)


# --- where jobs go --------------------------------------------------------------------------------


def root_of(*children: Manager | Cluster, **rules: Any) -> Manager:
    return Manager(name="root", children=children, **rules)


def cluster_of(name: str, processors: int) -> Cluster:
    return Cluster(name=name, processors=processors)


def limited(borrow_limit: int | None) -> Manager:
    return root_of(local("a", 1, promote_duration=50, borrow_limit=borrow_limit), cluster_of("b", 2))


INNER = Manager(
    name="inner", children=[local("a", 2, promote_processors=0), cluster_of("b", 2)], promote_duration=50
)
SMALL = Manager(name="inner", children=[cluster_of("a", 2), cluster_of("b", 3)])
PROMOTING: list[Manager | Cluster] = [
    cluster_of("a", 1),
    cluster_of("b", 1),
    local("c", 1, promote_duration=0),
]
SOON = [Job(5, 40, 40, 1), Job(6, 20, 20, 1, home=2)]
BORROWING = [
    Job(0, 90, 90, 1),
    Job(0, 90, 90, 1),
    Job(100, 40, 40, 1),
    Job(100, 90, 90, 1),
    Job(100, 10, 10, 2),
]

WORKED: dict[str, tuple[list[Job], Manager, dict[str, Any]]] = {
    # The first job fills the cluster of the others; who may, leaves it. One step up, an inquiry with its
    # answer, and a reservation with its answer, each
    "promotion by size and duration": (
        [Job(0, 50, 50, 2), Job(0, 50, 50, 2), Job(0, 20, 20, 2), Job(0, 20, 20, 3), Job(0, 100, 100, 1)],
        root_of(local("a", 4, promote_processors=2, promote_duration=100), cluster_of("b", 4)),
        {
            "clusters": [0, 0, 0, 1, 1],
            "start_time": [0, 0, 50, 0, 0],
            "total_promoted": 2,
            "total_inquiries": 2,
            "total_messages": 10,
        },
    ),
    "rules hold at every level": (
        [Job(0, 40, 40, 1, home=1), Job(0, 50, 50, 1, home=1)],
        root_of(cluster_of("c", 2), INNER),
        {"clusters": [1, 0]},
    ),
    # The job of 5 spans the first two clusters, although the third could hold it; that of 13 spans all
    "large jobs are forwarded to who has the nodes": (
        [Job(0, 10, 10, size) for size in (2, 3, 5, 8, 13, 14)],
        root_of(SMALL, cluster_of("c", 8)),
        {
            "clusters": [0, 1, 0, 1, 2, 0, 1, 2],
            "shares": [(0, 2), (1, 3), (2, 2), (2, 3), (3, 8), (4, 2), (4, 3), (4, 8)],
            "total_forwarded": 4,
            "total_spanning": 2,
            "start_time": [0, 0, 10, 0, 20, -1],
        },
    ),
    # 30 s are not too long; the third would start at 60 s at home, the fourth at 30 s over there
    "jobs are bumped up if they would wait too long": (
        [Job(0, 30, 30, 1), Job(0, 30, 30, 1), Job(0, 30, 30, 1), Job(0, 90, 90, 1)],
        root_of(local("a", 1, bump=30), cluster_of("b", 1)),
        {"start_time": [0, 30, 0, 30], "clusters": [0, 0, 1, 1], "total_bumped": 2},
    ),
    "a bump that gains nothing stays": (
        [Job(0, 50, 50, 1, home=1), Job(0, 10, 10, 1), Job(0, 10, 10, 1)],
        root_of(local("a", 1, bump=0), cluster_of("b", 1)),
        {"clusters": [1, 0, 0], "total_bumped": 0},
    ),
    **{
        f"borrowing up to {limit}": (
            BORROWING,
            limited(limit),
            {
                "clusters": [0, 1, 0, 1, 1],
                "start_time": [0, 0, 100, 100, 190],
                "total_kept_home": 0,
                "total_over_limit": 0,
            },
        )
        for limit in (None, 90)
    },
    # The 90 node-seconds of the second job were too much for the fourth; the last has no place at home
    "the limit of borrowing": (
        BORROWING,
        limited(89),
        {
            "clusters": [0, 1, 0, 0, 1],
            "start_time": [0, 0, 100, 140, 100],
            "total_kept_home": 1,
            "total_over_limit": 1,
        },
    ),
    # The manager last looked at 0 s: it does not know what the first cluster has taken at 5 s. Declined by
    # that, which could at 50 s; then the second is as early as hoped
    "stale hints are declined and corrected": (
        SOON,
        root_of(*PROMOTING, period=100),
        {
            "clusters": [0, 1],
            "start_time": [10, 10],
            "total_inquiries": 2,
            "total_failed_inquiries": 1,
        },
    ),
    "fresh hints are right": (
        SOON,
        root_of(*PROMOTING),
        {"start_time": [10, 10], "total_inquiries": 1, "total_failed_inquiries": 0},
    ),
    # By the hints the job could have nodes of all clusters; it takes them from those that have any
    "answers say how large a part can be": (
        [Job(5, 40, 40, 1), Job(6, 10, 10, 2, home=2)],
        root_of(*(cluster_of(name, 1) for name in "abc"), period=100),
        {
            "clusters": [0, 1, 2],
            "start_time": [10, 10],
            "total_inquiries": 3,
            "total_failed_inquiries": 0,
        },
    ),
    "managers remember what they reserved": (
        [Job(0, 30, 30, 1), Job(1, 30, 30, 1), Job(2, 30, 30, 1)],
        root_of(local("a", 1, promote_duration=0), cluster_of("b", 1), period=1000),
        {"clusters": [0, 1, 0], "total_failed_inquiries": 0},
    ),
    # Four nodes of one cluster are free again at 70 s, but by then reserved when the last job asks
    "reservations go up the tree": (
        [
            Job(0, 50, 50, 2, reserved=20),
            Job(0, 50, 50, 2, reserved=20),
            Job(0, 50, 50, 4, reserved=40),
            Job(0, 50, 50, 6, reserved=70),
            Job(0, 10, 10, 6, reserved=60),
        ],
        root_of(cluster_of("a", 2), cluster_of("b", 4)),
        {
            "start_time": [20, 20, -1, 70, -1],
            "earliest_time": [-1, -1, 70, -1, 120],
            "shares": [(0, 2), (1, 2), (3, 2), (3, 4)],
        },
    ),
}
"""Jobs, their managers, and columns of the jobs, counts (`total_`), and of each execution job and nodes
(`shares`) and the cluster (`clusters`)."""


@pytest.mark.parametrize(("jobs", "tree", "expected"), WORKED.values(), ids=WORKED)
def test_worked_example(jobs: list[Job], tree: Manager, expected: dict[str, Any]) -> None:
    check_worked(run(jobs, tree), **expected)


def test_a_refused_part_aborts_the_others() -> None:
    """The whole job comes a slot later, and the second job finds its node free."""
    jobs = [Job(0, 10, 10, 6), Job(0, 10, 10, 2, home=2)]
    tree = root_of(*(cluster_of(name, 2) for name in "abc"))
    done = run(jobs, tree, TENS, refusals=[False, False, True])
    check_worked(done, start_time=[10, 0], total_aborts=1, total_messages=1 + 6 + 6 + 2 + 6 + 6)


def test_ties_go_to_the_lowest_or_to_anyone() -> None:
    """The footnote of the paper: first fit favours clusters with low numbers."""

    def supplied(placement: Any, seed: int = 0) -> list[int]:
        children = [local(f"c{k}", 40, promote_duration=0) for k in range(4)]
        tree = root_of(*children, placement=placement)
        done = run([Job(0, 10, 10, 1)] * 40, tree, TENS, seed=seed)
        return [int(number) for number in np.bincount(done.segments["cluster"], minlength=4)]

    assert supplied("lowest") == [40, 0, 0, 0]
    shares = np.mean([supplied("unbiased", seed) for seed in range(50)], axis=0)
    assert shares == pytest.approx([10] * 4, abs=1)
    assert supplied("unbiased", 1) == supplied("unbiased", 1) != supplied("unbiased", 2)


# --- whole nodes ----------------------------------------------------------------------------------


def test_jobs_that_span_clusters_take_whole_nodes_of_each() -> None:
    """Of nodes of 4 and of 3 processors; a job of one task waits for a node though processors are idle."""
    clusters = [
        Cluster(name="a", processors=8, processors_per_node=4, node_exclusive=True),
        Cluster(name="b", processors=6, processors_per_node=3, node_exclusive=True),
    ]
    calendars = Calendars(
        slots=SlotPlan(levels=[(None, 10)]), managers=Manager(name="root", children=clusters)
    )
    jobs = [workload("a", (0, 20, 20, 9), (0, 10, 10, 1)), workload("b", (0, 10, 10, 4), (1, 5, 5, 5))]
    done = simulate(jobs, clusters, calendars)
    verify(done)
    names = ("job", "cluster", "processors", "tasks", "start", "end")
    found = zip(*(done[f"segment_{name}"].values.tolist() for name in names), strict=True)
    assert list(found) == [
        (0, 0, 8, 8, 0, 20),
        (0, 1, 3, 1, 0, 20),
        (1, 0, 4, 1, 20, 30),
        (2, 1, 6, 4, 20, 30),
        (3, 1, 6, 5, 30, 35),
    ]
    assert_fields(done, supplied=[0, 60], local_work=[200, 90])


def test_nodes_of_one_processor_change_nothing() -> None:
    clusters = [Cluster(name=name, processors=4) for name in "ab"]
    jobs = [workload("a", (0, 20, 20, 6), (0, 10, 10, 1)), workload("b", (0, 10, 10, 3))]
    plain = simulate(jobs, clusters, Calendars())
    whole = simulate(jobs, [replace(each, node_exclusive=True) for each in clusters], Calendars())
    assert plain.equals(whole)


# --- what is no tree ------------------------------------------------------------------------------


def test_a_manager_is_not_among_its_own_children() -> None:
    cycle = Manager(name="root", children=[cluster_of("a", 1), local("b", 1)])
    object.__setattr__(cycle, "children", (cluster_of("a", 1), cycle))
    with refused("manager root: it is among its own children"):
        clusters_of(cycle)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Manager(name="empty", children=[]), "manager empty: no children"),
        (
            lambda: clusters_of(root_of(cluster_of("a", 1), local("a", 2))),
            "a: two managers or clusters have this name",
        ),
        (
            lambda: clusters_of(root_of(cluster_of("a", 1), cluster_of("root", 1))),
            "root: two managers or clusters have this name",
        ),
        (lambda: local("a", 1, promote_processors=-1), "promote_processors is -1"),
        (lambda: local("a", 1, promote_duration=1.5), "promote_duration is 1.5"),
        (lambda: local("a", 1, bump=-1), "bump is -1"),
        (lambda: local("a", 1, period=-5), "period is -5"),
        (lambda: local("a", 1, placement="best"), "placement is 'best'; use one of lowest, unbiased"),
        (lambda: local("a", 1, borrow_limit=-1), "borrow_limit is -1"),
    ],
)
def test_trees_and_rules_that_make_no_sense(wrong: Callable[[], object], message: str) -> None:
    with refused(message):
        wrong()


# --- from workloads to datasets -------------------------------------------------------------------


def run_under(
    root: Manager | Cluster, workloads: Sequence[Workload], options: Calendars, **more: Any
) -> xr.Dataset:
    """Run of the workloads on the clusters of a tree, as at speed 1."""
    return simulate(workloads, clusters_of(root), replace(options, managers=root), times="unit", **more)


def test_workloads_become_a_dataset() -> None:
    a = workload("a", (0, 50, 50, 2), (0, 20, 20, 3), (1, 10, 10, 6))
    b = workload("b", (0, 20, 20, 2))
    root = Manager(name="root", children=[local("a", 2), local("b", 4)])
    done = run_under(root, [a, b], TENS, estimates="actual")
    verify(done)
    # Submitted at 0 (twice at a, once at b) and 1 s.
    assert_fields(
        done,
        home_cluster=[0, 0, 1, 0],
        start_time=[0, 0, 20, 50],
        segment_job=[0, 1, 2, 3, 3],
        segment_cluster=[0, 1, 1, 0, 1],
        segment_processors=[2, 3, 2, 2, 4],
        supplied=[0, 20 * 3 + 10 * 4],
        consumed=[100, 0],
        local_work=[50 * 2 + 10 * 2, 20 * 2],
        jobs_transferred=2,
        managers="root: placement lowest; a (2 processors): placement lowest; "
        + ("b (4 processors): placement lowest"),
    )
    assert (done["reach_processors"] == 6).all()


WINDOWS = (939, 2267, 1597, 1594, 2549, 1759, 1700, 2119, 1630, 1483)
"""Jobs of the ten clusters in Figure 9 of the paper."""

DAY = 86400


@pytest.fixture(scope="module")
def ten_clusters(archive_mirror: Path) -> list[Workload]:
    """The first 8 days of ten successive intervals of 31 days from the start of the log."""
    log = clean(read_swf(archive_mirror / "CTC-SP2-1996-3.1-cln.swf.gz"))
    return [select_window(log, interval=(31 * DAY * k, (31 * k + 8) * DAY)) for k in range(10)]


def test_the_ten_clusters_of_the_paper(ten_clusters: list[Workload]) -> None:
    assert [len(window) for window in ten_clusters] == list(WINDOWS)
    options = Calendars(slots=SlotPlan(levels=[(32, 10), (8, 320), (None, 2560)]))
    rule = {"promote_processors": 112, "promote_duration": 12 * 3600}
    root = Manager(name="grid", children=[local(f"c{k}", 336, **rule) for k in range(10)])
    run = run_under(root, ten_clusters, options, estimates="actual")
    verify(run)
    # "Just over 2,000" may leave their home.
    assert run.attrs["promoted"] == 2070
    assert (run["start_time"] <= run["planned_start"]).all()
    assert int(run["supplied"].sum()) == int(run["consumed"].sum()) > 0


def test_clusters_without_rules_are_as_good_as_alone(ten_clusters: list[Workload]) -> None:
    """What happens in one cluster is of no concern to the others."""
    options = Calendars(slots=SlotPlan(levels=[(64, 40), (None, 2560)]))
    few = ten_clusters[:3]
    root = Manager(name="grid", children=[local(f"c{k}", 336) for k in range(3)])
    together = run_under(root, few, options, estimates="actual")
    for k, window in enumerate(few):
        alone = simulate([window], Cluster(processors=336), options, estimates="actual")
        own = together["home_cluster"].values == k
        assert alone["start_time"].values.tolist() == together["start_time"].values[own].tolist()
