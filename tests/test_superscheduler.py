"""Superschedulers against the naive oracle of a grid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import results
from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.metrics import summarise
from gridsched.platforms import Cluster
from gridsched.schedulers import superscheduler as grid
from gridsched.schedulers.local import LocalPolicy, named_policy
from gridsched.simulation import simulate_grid
from gridsched.traces import fuse
from gridsched.verifier import verify
from gridsched.workloads import Workload, load_machines, synthesise
from tests import engine, naive_grid, strategies
from tests.naive import Job
from tests.naive_grid import GridCluster, GridJob

SCHEMES: tuple[grid.SchemeName, ...] = ("local", "central", "s-i", "r-i", "sy-i")


def platform(clusters: list[GridCluster]) -> tuple[list[Cluster], list[LocalPolicy]]:
    """Clusters and policies of the oracle in the engine's words."""
    machines = [
        Cluster(
            name=f"c{index}",
            processors=cluster.processors,
            processors_per_node=cluster.processors_per_node,
            node_exclusive=cluster.node_exclusive,
            speed=cluster.speed,
        )
        for index, cluster in enumerate(clusters)
    ]
    policies = [
        LocalPolicy(
            name="local",
            order=cluster.order,
            backfilling=cluster.backfilling,  # type: ignore[arg-type]
            reservations=cluster.reservations,
            backfill_order=cluster.backfill_order,
        )
        for cluster in clusters
    ]
    return machines, policies


def run(
    jobs: list[GridJob], clusters: list[GridCluster], scheme: str, **parameters: float
) -> list[tuple[int, int]]:
    records = np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in jobs], JOB)
    home = np.array([j.home for j in jobs], np.int64)
    done = grid.schedule_grid(
        records,
        home,
        *platform(clusters),
        grid.Superscheduler(scheme=scheme, **parameters),  # type: ignore[arg-type]
    )
    return [(int(s), int(c)) for s, c in zip(done.start_time, done.cluster, strict=True)]


def with_one_score(clusters: list[GridCluster]) -> list[GridCluster]:
    """The engine knows one changing order in a grid."""
    return [cluster._replace(order="lxf") if cluster.order == "lxwf" else cluster for cluster in clusters]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(
    grid_of_jobs=strategies.grids(),
    phi=st.sampled_from([1, 3, 60]),
    sigma=st.sampled_from([1, 2, 5, 30]),
    delta=st.sampled_from([0.3, 0.7, 1.0]),
    epsilon=st.sampled_from([0.0, 1.0, 10.0]),
)
@settings(max_examples=150, deadline=None)
def test_schemes_equal_the_oracle(
    scheme: str,
    grid_of_jobs: tuple[list[GridJob], list[GridCluster]],
    phi: int,
    sigma: int,
    delta: float,
    epsilon: float,
) -> None:
    jobs, clusters = grid_of_jobs
    clusters = with_one_score(clusters)
    parameters = {"phi": phi, "sigma": sigma, "delta": delta, "epsilon": epsilon}
    expected = naive_grid.simulate_grid(jobs, clusters, scheme=scheme, **parameters)  # type: ignore[arg-type]
    assert run(jobs, clusters, scheme, **parameters) == expected


@given(grid_of_jobs=strategies.grids(max_clusters=4), data=st.data())
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("scheme", ["s-i", "r-i", "sy-i"])
def test_partners_are_respected(
    scheme: str, grid_of_jobs: tuple[list[GridJob], list[GridCluster]], data: st.DataObject
) -> None:
    jobs, clusters = grid_of_jobs
    clusters = with_one_score(clusters)
    partners = data.draw(strategies.partnerships(len(clusters)))
    named = partners and {f"c{home}": [f"c{m}" for m in others] for home, others in enumerate(partners)}
    expected = naive_grid.simulate_grid(jobs, clusters, scheme=scheme, partners=partners, phi=2, sigma=3)
    assert run(jobs, clusters, scheme, partners=named, phi=2, sigma=3) == expected  # type: ignore[arg-type]


@given(grid_of_jobs=strategies.grids(max_clusters=1))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("scheme", ["local", "s-i", "central"])
def test_a_grid_of_one_cluster_is_that_cluster(
    scheme: str, grid_of_jobs: tuple[list[GridJob], list[GridCluster]]
) -> None:
    jobs, clusters = grid_of_jobs
    (machine,), (policy,) = platform(clusters)
    sizes = machine.allocation(np.array([job.processors for job in jobs], np.int64)).tolist()
    local = [
        Job(job.submit_time, job.run_time, job.estimate, size)
        for job, size in zip(jobs, sizes, strict=True)
        if size <= machine.processors
    ]
    starts = [start for start, cluster in run(jobs, clusters, scheme) if cluster == 0]
    assert starts == engine.simulate(local, machine.processors, policy)


SPEEDS = {"north": 375, "south": 1300, "west": 332}


def three_sites() -> tuple[list[Workload], list[Cluster]]:
    """Synthetic jobs of machine M3 on three machines of unlike speed, the first of them overloaded."""
    machine = load_machines()["M3"]
    loads = (2.0, 1.0, 0.5)
    workloads = [synthesise(machine, jobs=400, seed=k, load_scale=load) for k, load in enumerate(loads)]
    clusters = [
        Cluster(name=name, processors=1152, processors_per_node=8, node_exclusive=True, speed=speed)
        for name, speed in SPEEDS.items()
    ]
    return workloads, clusters


@pytest.mark.parametrize("scheme", SCHEMES)
def test_simulated_grids_are_schedules(scheme: grid.SchemeName, tmp_path: Path) -> None:
    workloads, clusters = three_sites()
    done = simulate_grid(workloads, clusters, scheme)
    verify(done)
    assert done.sizes["job"] == done.sizes["segment"] == 1200
    home, there = done["home_cluster"].values, done["segment_cluster"].values
    assert done.attrs["jobs_transferred"] == (home != there).sum()
    assert (home == there).all() == (scheme == "local")
    merged, origin = fuse(workloads)
    assert home.tolist() == origin.tolist()
    speed = np.array(list(SPEEDS.values()))
    scaled = np.ceil(merged.run_time * speed[home] / speed[there])
    assert done["run_time"].values.tolist() == np.where(home == there, merged.run_time, scaled).tolist()
    assert done.identical(simulate_grid(workloads, clusters, scheme))
    results.write(done, tmp_path / "grid.nc")
    assert results.read(tmp_path / "grid.nc")["start_time"].equals(done["start_time"])


def test_superschedulers_help_the_overloaded_site() -> None:
    workloads, clusters = three_sites()
    wait = {}
    for scheme in SCHEMES:
        summary = summarise(simulate_grid(workloads, clusters, scheme))
        wait[scheme] = float(summary["wait_time_mean"].sel(job_class="all"))
    assert wait["s-i"] < 0.5 * wait["local"]
    assert wait["r-i"] < wait["local"]


def test_rows_grow_when_one_cluster_takes_everything() -> None:
    jobs = [GridJob(t, 10, 10, 1, t % 3) for t in range(3500)]
    slow = GridCluster(1, speed=0.125)
    clusters = [GridCluster(14, backfilling="conservative"), slow, slow]
    done = run(jobs, clusters, "central")
    assert [cluster for _, cluster in done].count(0) > grid.FIRST_ROOM * 3
    assert done == [(t, 0) for t in range(3500)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scheme": "best"}, "scheme is 'best'"),
        ({"sigma": 0}, "sigma is 0"),
        ({"phi": 0}, "phi is 0"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": 1.5}, "delta is 1.5"),
        ({"partners": {"c0": ["c7"]}}, "unknown cluster 'c7'"),
    ],
)
def test_impossible_superschedulers_are_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        run([GridJob(0, 1, 1, 1, 0)], [GridCluster(1)], **{"scheme": "s-i", **change})  # type: ignore[arg-type]


def test_platforms_that_do_not_go_together_are_refused() -> None:
    jobs = np.array([(0, 1, 2**30, 1)], JOB)
    one, two = Cluster(name="a", processors=1), Cluster(name="b", processors=1, speed=8)
    easy = named_policy("easy")
    scheme = grid.Superscheduler(scheme="s-i")
    home = np.zeros(1, np.int64)
    for clusters, policies, homes, complaint in (
        ([one], [], home, "one policy for each"),
        ([one, one], [easy, easy], home, "a name of its own"),
        ([one, two], [easy, easy], home, "8 times slower"),
        ([one], [easy], home + 1, "give an index"),
        ([one, two], [named_policy("lxf"), named_policy("lxwf")], home, "only one order"),
        ([one], [LocalPolicy(name="own", order=lambda processors: processors)], home, "must take `now`"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            grid.schedule_grid(jobs, homes, clusters, policies, scheme)


def small(name: str, submit_time: list[int], run_time: list[int], **facts: object) -> Workload:
    columns = {"submit_time": submit_time, "run_time": run_time, "requested_processors": [1, 1]}
    return Workload(name=name, **{key: np.array(values) for key, values in columns.items()}, **facts)  # type: ignore[arg-type]


def test_fused_workloads_keep_their_jobs_and_counts() -> None:
    first = small("a", [5, 9], [1, 2], left_out={"x": 2})
    second = small("b", [3, 7], [3, 4], unix_start_time=100)
    merged, origin = fuse([first, second])
    assert merged.submit_time.tolist() == [0, 0, 4, 4]
    assert merged.run_time.tolist() == [1, 3, 2, 4]
    assert origin.tolist() == [0, 1, 0, 1]
    assert merged.left_out == {"a: x": 2}
    with pytest.raises(WorkloadError, match="a: the log does not say when it starts"):
        fuse([first, second], align="clock")
    later = replace(first, unix_start_time=102)
    assert fuse([later, second], align="clock")[0].submit_time.tolist() == [3, 7, 7, 11]
    assert fuse([first, second], align="none")[0].submit_time.tolist() == [3, 5, 7, 9]
