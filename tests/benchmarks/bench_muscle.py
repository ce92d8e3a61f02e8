"""MUSCLE and TITAN: evaluations and composition tables a second, and a whole run of a study."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.multicluster.jobs import MulticlusterModel, synthesise_multicluster
from gridsched.systems.multicluster.kernels import composition, genetic, packing
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.titan import Titan, Weights, packed, stream
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table

TABLE_THREE = [
    Cluster(name=f"C{k + 1}", processors=size, speed=speed)
    for k, (size, speed) in enumerate([(20, 1.0), (16, 1.2), (12, 1.4), (10, 1.6)])
]
MAX_SECONDS = 7
"""Run of a study: at about 870 runs, all studies end within an hour on two cores."""


def queue(count: int, largest: int) -> NDArray[Any]:
    generator = np.random.default_rng(4)
    sizes = generator.integers(1, largest + 1, count)
    run_time = generator.integers(5000, 100_000, count)
    return packed(run_time, run_time * 3, sizes)


@pytest.mark.parametrize(
    ("count", "width", "largest", "least"),
    [(40, 10, 10, 4_000_000), (160, 56, 10, 800_000), (160, 56, 56, 800_000)],
)
def test_evaluation(count: int, width: int, largest: int, least: int, table: Table) -> None:
    jobs, base = queue(count, largest), np.zeros(width, np.int64)
    population, random = genetic.population(50, count, width), stream(1)
    for i in range(50):
        genetic.draw_individual(population, i, jobs, width, random)
    goal, room = Weights().goal, packing.lanes_for(count, width)
    given = population.order, population.masks, 0, jobs, base, 0, goal, population.performance, room
    seconds = best_time(lambda: packing.evaluate(*given), seconds=1.0)
    what = f"CP of {count} jobs of up to {largest} on {width} resources"
    table.add(what, 50 / seconds, "/s", at_least=least)


@pytest.mark.parametrize("largest", [10, 56])
def test_composition_table(largest: int, table: Table) -> None:
    sizes = np.ascontiguousarray(queue(200, largest)["processors"])
    room = partial(composition.tables_for, 1, 200, 56)
    seconds = best_time(lambda: composition.build(room(), 0, sizes), seconds=1.0)
    what = f"composition table of 200 jobs of up to {largest} for 56 processors"
    table.add(what, 1e3 * seconds, "ms", digits=2, at_most=10)


@pytest.mark.parametrize(("count", "width"), [(40, 10), (160, 56)])
def test_genetic_algorithm(count: int, width: int, table: Table) -> None:
    jobs, base = queue(count, 10), np.zeros(width, np.int64)
    seeds, options = genetic.population(0, count, width), Titan(threshold=None).options
    given = seeds.order, seeds.masks, 50, jobs, base, base, 0, Weights().goal, options
    seconds = best_time(lambda: genetic.evolve(*given, stream(1)), seconds=1.0)
    table.add(f"genetic algorithm, {count} jobs on {width} resources", 5000 / seconds, "individuals/s")


@pytest.mark.parametrize("dispatcher", ["muscle", "dll", "wrand"])
def test_run_of_a_study(dispatcher: Any, table: Table) -> None:
    model = MulticlusterModel()
    capacity = sum(cluster.processors * cluster.speed for cluster in TABLE_THREE) / model.mean_work
    workload = synthesise_multicluster(model, jobs=20_000, rate=0.77 * capacity, seed=1)
    due = draw_deadlines(workload, [ServiceClass(name="all")], seed=1)
    workload, policy = replace(workload, deadline=due), Multicluster(dispatcher=dispatcher)
    simulate(workload.select(slice(200)), TABLE_THREE, policy, times="unit")
    begin = time.process_time()
    run = simulate(workload, TABLE_THREE, policy, times="unit")
    seconds = time.process_time() - begin
    what = f"{dispatcher} and TITAN, 20,000 jobs, {float(run['queue_mean']):.0f} collected on average"
    table.add(what, seconds, "s", digits=1, at_most=MAX_SECONDS)
