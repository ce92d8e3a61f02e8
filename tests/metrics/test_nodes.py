"""Use of resources and fragmentation, second by second and node by node, and by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import xarray as xr

import gridsched as gs
from gridsched.metrics.nodes import fragmentation, resource_use, summarise_nodes
from gridsched.nodes import NodeEvent, NodeType
from gridsched.workloads.usage import Steps
from tests.support.nodes import jobs_of, some_cluster, some_jobs

UNKNOWN_MEMORY = 2**51


def at(function: Steps, time: int) -> float:
    """Value of a step function at a time."""
    place = np.searchsorted(function.time, time, "right") - 1
    return float(function.value[place]) if place >= 0 else 0.0


class Naive:
    """A run, looked at instant by instant with loops over pieces."""

    def __init__(self, run: xr.Dataset) -> None:
        self.v = {str(name): run[name].values.tolist() for name in run.variables}
        v = self.v
        self.pieces = [
            {
                "node": v["piece_node"][p],
                "start": v["segment_start"][s],
                "end": v["segment_end"][s],
                "cores": v["piece_cores"][p],
                "memory": v["piece_memory"][p],
                "gpus": {d: v["piece_share"][p] for d in range(8) if v["piece_devices"][p] >> d & 1},
            }
            for p, s in enumerate(v["piece_segment"])
        ]
        names = ("cores", "memory", "gpus", "share", "whole", "where")
        kinds = Counter(zip(*(v[f"asked_{name}"] for name in names), strict=True))
        jobs = sum(kinds.values())
        self.kinds: list[tuple[tuple[int, ...], int]] = []
        for kind, count in sorted(kinds.items(), key=lambda each: (-each[1], each[0])):
            if sum(n for _, n in self.kinds) >= 0.95 * jobs:
                break
            self.kinds.append((kind, count))

    def out(self, node: int, time: int) -> bool:
        outages = zip(*(self.v[f"outage_{name}"] for name in ("node", "start", "end")), strict=True)
        return any(n == node and start <= time < end for n, start, end in outages)

    def here(self, node: int, time: int) -> list[dict[str, Any]]:
        return [p for p in self.pieces if p["node"] == node and p["start"] <= time < p["end"]]

    def use(self, name: str, time: int) -> tuple[int, int]:
        used = there = 0
        for node, has in enumerate(self.v[f"node_{name}"]):
            if name == "memory" and has == UNKNOWN_MEMORY:
                continue
            running = self.here(node, time)
            taken = sum(sum(p["gpus"].values()) if name == "gpus" else p[name] for p in running)
            used += taken
            there += taken if self.out(node, time) else has * (1000 if name == "gpus" else 1)
        return used, there

    def fragments(self, time: int) -> tuple[float, float]:
        """Expected fragments, and what is free: of GPUs if there are any, else of cores."""
        v, lost, free = self.v, 0.0, 0
        for node, gpus in enumerate(v["node_gpus"]):
            if self.out(node, time):
                continue
            running = self.here(node, time)
            cores = v["node_cores"][node] - sum(p["cores"] for p in running)
            memory = v["node_memory"][node] - sum(p["memory"] for p in running)
            devices = [1000 - sum(p["gpus"].get(d, 0) for p in running) for d in range(gpus)]
            left = sum(devices) if any(v["node_gpus"]) else cores
            free += left
            for (c, m, g, share, whole, where), count in self.kinds:
                fits = v["node_reach"][where][node] and cores >= c and memory >= m
                fits = fits and sum(each == 1000 for each in devices) >= g and not (whole and running)
                fits = fits and (not share or max(devices, default=0) >= share)
                useless: float = left
                if any(v["node_gpus"]):
                    if fits and (g or share):
                        useless = sum(each for each in devices if each < (share or 1000))
                elif fits:
                    useless = 0
                lost += useless * count / sum(n for _, n in self.kinds)
        return lost, free


@pytest.mark.random_cases(30)
def test_use_and_fragments_are_those_of_every_second(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = some_cluster(rng, gpus=seed % 3 > 0)
    exclusive = seed % 5 == 0
    jobs = some_jobs(rng, 25, gpus=seed % 3 > 0)
    if exclusive:
        cluster = gs.Cluster(nodes=cluster.nodes, node_exclusive=True, events=cluster.events)
    run = gs.simulate(jobs, cluster, "easy")
    gs.verify(run)
    naive, use = Naive(run), resource_use(run)
    resource, fragments = fragmentation(run)
    ran = run["start_time"].values >= 0
    first, last = int(run["submit_time"].values[ran].min()), int(run["end_time"].values[ran].max())
    offered = int(run["submit_time"].values[ran].max()) - first
    wanted: dict[str, list[tuple[float, float]]] = {name: [] for name in (*use, "fragmentation")}
    for time in range(first, last):
        for name, each in use.items():
            assert (at(each.part, time), at(each.whole, time)) == naive.use(name, time), (name, time)
            wanted[name].append(naive.use(name, time))
        lost, free = naive.fragments(time)
        assert at(fragments.whole, time) == free
        assert at(fragments.part, time) == pytest.approx(lost, abs=1e-6)
        wanted["fragmentation"].append((lost, free))
    assert resource == ("gpus" if seed % 3 else "cores")
    summary = summarise_nodes(run, bins=1)
    for name, pairs in wanted.items():
        variable = "fragmentation" if name == "fragmentation" else f"utilisation_{name}"
        for found, seconds in (
            (summary[variable], offered),
            (summary[f"{variable}_series"][0], last - first),
        ):
            part, whole = np.sum([(0, 0), *pairs[:seconds]], axis=0)
            # where nothing is there, or free, there is no share of it
            assert float(found) == pytest.approx(part / whole if whole else np.nan, nan_ok=True)


def test_measures_by_hand() -> None:
    """Two nodes of 4 cores and 2 GPUs; the second is in maintenance from 50 to 100."""
    jobs = jobs_of(
        submit_time=[0, 0],
        run_time=[100, 50],
        requested_time=[100, 50],
        requested_processors=[4, 1],
        requested_gpus=[-1, 1],
    )
    window = NodeEvent(time=0, node="node1", kind="maintenance", start=50, end=100)
    cluster = gs.Cluster(nodes=[NodeType(count=2, cores=4, gpus=2)], events=[window])
    run = gs.simulate(jobs, cluster, "fcfs")
    gs.verify(run)
    summary = gs.summarise(run, bins=2)
    # 500 of 8 cores for 50 s and 4 for 50 s; the second job has one GPU of 4 for 50 s, then of 2 none
    assert run["start_time"].values.tolist() == [0, 0]
    assert summary["utilisation_cores_series"].values == pytest.approx([250 / 400, 1.0])
    assert summary["utilisation_gpus_series"].values == pytest.approx([50 / 200, 0])
    assert np.isnan(summary["utilisation_cores"]), "all is submitted at one instant"
    assert "utilisation_memory" not in summary
    # the GPUs of the first node have no core left; that of the second is of use to half of the jobs
    assert summary["fragmentation_series"].values == pytest.approx([(2 + 0.5) / 3, 1.0])


def test_a_run_in_which_nothing_ran() -> None:
    jobs = jobs_of(submit_time=[0], run_time=[9], requested_processors=[99])
    summary = gs.summarise(gs.simulate(jobs, gs.Cluster(nodes=[NodeType(cores=4)]), "easy"))
    assert np.isnan(summary["utilisation_cores"])
    assert np.isnan(summary["fragmentation_series"]).all()


def test_lost_jobs_have_no_share_in_extra_work() -> None:
    events = [NodeEvent(time=10, node="node0", kind="down"), NodeEvent(time=20, node="node0", kind="up")]
    cluster = gs.Cluster(processors=4, processors_per_node=2, requeue="lost", events=events)
    jobs = jobs_of(submit_time=[0, 0], run_time=[1000, 100], requested_processors=[2, 2])
    run = gs.simulate(jobs, cluster, "easy")
    assert (run["fate"].values == 4).any()
    assert float(gs.summarise(run)["extra_work_share"]) == 0
