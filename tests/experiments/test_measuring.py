"""Measures of a run, against a naive recomputation."""

from __future__ import annotations

import numpy as np
import pytest

import gridsched as gs
from gridsched.experiments.collection import ALL
from gridsched.experiments.measuring import Measuring, measured
from gridsched.metrics import jobs as metrics
from gridsched.simulation import simulate


def workload(seed: int, jobs: int = 300) -> gs.Workload:
    """Jobs of a small crowded machine."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 5000, jobs)
    return gs.Workload(
        name=f"w{seed}",
        submit_time=np.sort(rng.integers(0, 100_000, jobs)),
        run_time=run,
        requested_time=run * 2,
        requested_processors=rng.integers(1, 12, jobs),
        processors_available=16,
    )


def test_groups_of_jobs_have_their_means() -> None:
    run = simulate(workload(1), scheduler="easy")
    found = measured(run, Measuring(warm_up=0.1))
    kept = np.argsort(run["submit_time"].values, kind="stable")[30:]
    wait = (run["start_time"] - run["submit_time"]).values
    classes = metrics.job_classes(run["run_time"].values, run["processors"].values)
    assert found["jobs"].sel(group=ALL) == len(kept)
    assert found["wait_time_mean"].sel(group=ALL) == pytest.approx(wait[kept].mean())
    assert found["wait_time_max"].sel(group=ALL) == wait[kept].max()
    for index, name in enumerate(metrics.JOB_CLASSES[1:], start=1):
        own = kept[classes[kept] == index]
        assert found["jobs"].sel(group=name) == len(own)
        if len(own):
            assert found["wait_time_mean"].sel(group=name) == pytest.approx(wait[own].mean())
    assert found["utilisation"].sel(group=ALL) == pytest.approx(metrics.utilisation(run))


def test_users_and_clusters_of_a_grid_are_groups() -> None:
    jobs = [workload(2), workload(3)]
    clusters = [gs.Cluster(name=name, processors=16) for name in ("north", "south")]
    run = simulate(jobs, clusters, "central")
    found = measured(run)
    wait, home = (run["start_time"] - run["submit_time"]).values, run["home_cluster"].values
    for index, name in enumerate(("north", "south")):
        assert found["wait_time_mean"].sel(group=f"users of {name}") == pytest.approx(
            wait[home == index].mean()
        )
        assert 0 < found["utilisation"].sel(group=f"cluster {name}") <= 1
    assert found["flow_jobs"].sel(group="north to south") == found["transferred"].sel(
        group=ALL
    ) * 600 - found["flow_jobs"].sel(group="south to north")


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_blocks_of_a_log_weigh_as_many_jobs_as_they_have(policy: str) -> None:
    run = simulate(workload(4), scheduler=policy)
    whole, blocks = measured(run), measured(run, Measuring(blocks=10))
    assert blocks.sizes["replicate"] == 10
    for group in (ALL, "short narrow", "long wide"):
        jobs = blocks["jobs"].sel(group=group)
        assert jobs.sum() == whole["jobs"].sel(group=group)
        mean = (blocks["wait_time_mean"].sel(group=group) * jobs).sum() / jobs.sum()
        assert float(mean) == pytest.approx(float(whole["wait_time_mean"].sel(group=group)))
    assert blocks["makespan"].sel(group=ALL).notnull().values.tolist() == [True, *[False] * 9]
