"""Draws whose truth is known: queues, models of workloads, the demo's workloads, resampled logs, a grid.

Every source gives independent draws of several schedulers on the same jobs. Where no formula has the truth
it is the mean of all draws, of which a study sees ten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import gridsched as gs
from gridsched.inference import relaxations
from gridsched.metrics import jobs as metrics
from gridsched.systems.jscheduler.scheduler import JScheduler
from gridsched.workloads import Modal, SizeModel, calibrate_exponent, load_machines, synthesise
from gridsched.workloads.lublin import LublinModel

Floats = NDArray[np.float64]

WEEK, DAY = 7 * 86_400, 86_400

LUBLIN_LOAD = 0.36856
"""Offered load of the published model of Lublin and Feitelson for 128 processors, from 400,000 jobs."""


class Draws(NamedTuple):
    """Values of schedulers, the first of which is the reference."""

    values: Floats
    """[measures, schedulers, draws], or with blocks [..., draws, blocks]."""
    truth: Floats
    """[measures, schedulers]."""
    memory: Floats | None = None
    """Relaxation times of each log of blocks, [schedulers, draws]."""


def _by_mean(values: Floats) -> Draws:
    return Draws(values, values.mean(axis=-1))


# --- queues ---------------------------------------------------------------------------------------


def queue_waits(gaps: Floats, services: Floats, servers: int, warm_up: int = 0) -> tuple[Floats, Floats]:
    """Waits of successive jobs in first-come-first-served queues, a row each, and the share of time in which
    some job waits.

    Parameters
    ----------
    gaps, services : float64[queues, jobs]
        Time from each job to the next one, and service times.
    servers : int
        Servers of each queue.
    warm_up : int
        Jobs at the beginning that are left out.
    """
    queues, jobs = gaps.shape
    free = np.zeros((queues, servers))
    now, started, waited = np.zeros(queues), np.zeros(queues), np.zeros(queues)
    waits = np.empty((queues, jobs - warm_up))
    for job in range(jobs):
        start = np.maximum(now, free[:, 0])
        if job >= warm_up:
            waits[:, job - warm_up] = start - now
            waited += np.maximum(start - np.maximum(now, started), 0.0)
        started = start
        free[:, 0] = start + services[:, job]
        if servers > 1:
            free.sort(axis=1)
        now = now + gaps[:, job]
    return waits, waited / gaps[:, warm_up:].sum(axis=1)


def erlang_wait(load: float, servers: int) -> float:
    """Mean wait in M/M/c with one arrival a unit of time and this load of each server."""
    offered = load * servers
    blocking = 1.0
    for count in range(1, servers + 1):
        blocking = offered * blocking / (count + offered * blocking)
    return (blocking / (1 - load * (1 - blocking))) * load / (1 - load)


def queues(servers: int, draws: int, seed: int, jobs: int = 1000) -> Draws:
    """Queues of the same arrivals and, up to their load, the same services: loads 0.7, 0.6 and 0.5."""
    gaps, services = np.random.default_rng(seed).exponential(1.0, (2, draws, jobs + 500))
    loads = (0.7, 0.6, 0.5)
    values = [queue_waits(gaps, load * servers * services, servers, 500)[0].mean(axis=1) for load in loads]
    return Draws(np.stack(values)[np.newaxis], np.array([[erlang_wait(load, servers) for load in loads]]))


def queue_logs(load: float, jobs: int, draws: int, seed: int, blocks: int = metrics.BATCHES) -> Draws:
    """Logs of one M/M/1 queue each, in blocks; beside it the queue at three quarters of its load."""
    rng = np.random.default_rng(seed)
    jobs = jobs // blocks * blocks
    found, memory, loads = [], [], (load, 0.75 * load)
    gaps, services = rng.exponential(1.0, (2, draws, jobs + 2000))
    for own in loads:
        waits, busy = queue_waits(gaps, own * services, 1, 2000)
        found.append(waits.reshape(draws, blocks, -1).mean(axis=2))
        memory.append(relaxations(jobs, busy, 2.0))
    truth = np.array([[erlang_wait(own, 1) for own in loads]])
    return Draws(np.stack(found)[np.newaxis], truth, np.stack(memory))


# --- simulated schedulers -------------------------------------------------------------------------


def _means(run: Any, skip: int = 0) -> list[float]:
    found = metrics.job_metrics(run)
    return [float(np.nanmean(found[name][skip:])) for name in ("wait_time", "bounded_slowdown")]


@cache
def _demo_size() -> SizeModel:
    machine = load_machines()["M3"]
    assert machine.utilisation is not None
    return SizeModel(exponent=calibrate_exponent(machine, machine.utilisation))


def demo(load_scale: float, draws: int, seed: int) -> Draws:
    """The workload of config/studies/demo.yaml under four policies: mean wait and bounded slowdown."""
    machine = load_machines()["M3"]
    cluster = gs.Cluster(
        processors=machine.processors, processors_per_node=machine.processors_per_node, node_exclusive=True
    )
    values = np.empty((2, 4, draws))
    for draw in range(draws):
        jobs = synthesise(
            machine,
            seed=seed + draw,
            jobs=5000,
            load_scale=load_scale,
            sizes=_demo_size(),
            estimates=Modal(max_estimate=129600),
        )
        clean = gs.clean(jobs, processors=machine.processors)
        for place, policy in enumerate(("easy", "fcfs", "sjbf", "lxf")):
            values[:, place, draw] = _means(gs.simulate(clean, cluster, policy), 250)
    return _by_mean(values)


def _lublin_jobs(load: float, jobs: int, seed: int) -> gs.Workload:
    drawn = LublinModel.published(128).synthesise(jobs=jobs, seed=seed, load_scale=load / LUBLIN_LOAD)
    return gs.clean(drawn, processors=128)


def lublin(load: float, draws: int, seed: int, jobs: int = 2000) -> Draws:
    """Draws of Lublin's model on 128 processors under EASY, SJBF and FCFS."""
    values = np.empty((2, 3, draws))
    for draw in range(draws):
        workload = _lublin_jobs(load, jobs, seed + draw)
        for place, policy in enumerate(("easy", "sjbf", "fcfs")):
            values[:, place, draw] = _means(gs.simulate(workload, 128, policy))
    return _by_mean(values)


def lublin_logs(load: float, jobs: int, draws: int, seed: int) -> Draws:
    """Logs of Lublin's model in blocks, under EASY and SJBF."""
    values, memory = np.empty((2, 2, draws, metrics.BATCHES)), np.empty((2, draws))
    for draw in range(draws):
        workload = _lublin_jobs(load, jobs, seed + draw)
        for place, policy in enumerate(("easy", "sjbf")):
            run = gs.simulate(workload, 128, policy)
            found = metrics.job_metrics(run)
            for measure, name in enumerate(("wait_time", "bounded_slowdown")):
                values[measure, place, draw] = metrics.batch_means(found[name])[0]
            memory[place, draw] = metrics.relaxations(run)
    return Draws(values, values.mean(axis=(2, 3)), memory)


def _site(draws: np.random.Generator, weeks: int = 26, before: int = 60) -> gs.Workload:
    """A log of users who come as a Poisson process, for some weeks or for long, to 64 processors."""
    rows = []
    number = 0
    for week in range(-before, weeks):
        for _ in range(draws.poisson(4.0)):
            number += 1
            own = _user(draws, before)
            own[:, 0] += week * WEEK
            own[:, 3] = number
            rows.append(own[(own[:, 0] >= 0) & (own[:, 0] < weeks * WEEK)])
    jobs = np.concatenate(rows)
    jobs = jobs[np.argsort(jobs[:, 0], kind="stable")]
    return gs.Workload(
        name="site",
        submit_time=jobs[:, 0],
        run_time=jobs[:, 1],
        requested_time=2 * jobs[:, 1],
        requested_processors=jobs[:, 2],
        user=jobs[:, 3],
        processors_available=64,
    )


def _user(draws: np.random.Generator, longest: int) -> NDArray[np.int64]:
    """Jobs of a user from week 0 on: submit time, run time, processors, and room for a number."""
    lasting = draws.random() < 0.3
    stay = int(draws.integers(13, longest + 1)) if lasting else min(int(draws.geometric(1 / 4)), 12)
    rate, size, length = draws.lognormal(0.8, 0.7), draws.choice([1, 2, 4, 8, 16]), draws.lognormal(7.6, 0.8)
    submit = [np.empty(0, np.int64)]
    for week in range(stay):
        if draws.random() >= 0.3:
            count = draws.poisson(3 * rate)
            day = draws.integers(0, 5, count)
            hour = draws.normal(13, 3, count).clip(0, 23.9)
            submit.append((week * WEEK + day * DAY + hour * 3600).astype(np.int64))
    times = np.concatenate(submit)
    run = np.maximum(1, draws.exponential(length, len(times))).astype(np.int64)
    wide = np.minimum(32, size * draws.choice([1, 1, 2], len(times)))
    return np.stack([times, run, wide, np.zeros(len(times), np.int64)], axis=1)


def resampled(draws: int, seed: int) -> Draws:
    """Resampled logs of one synthetic site of many users, under EASY and SJBF."""
    log = _site(np.random.default_rng(seed))
    values = np.empty((2, 2, draws))
    for draw in range(draws):
        jobs = gs.resample(log, seed=seed + draw)
        for place, policy in enumerate(("easy", "sjbf")):
            values[:, place, draw] = _means(gs.simulate(jobs, 64, policy))
    return _by_mean(values)


def random_grid(draws: int, seed: int, equal: bool = False) -> Draws:
    """Four clusters whose scheduler asks one, two or three of them at random; or six times one, drawn anew.

    Where all schedulers are equal nothing differs but what they draw.
    """
    schedulers = [1] * 6 if equal else [1, 2, 3]
    clusters = [gs.Cluster(processors=32, name=name) for name in "abcd"]
    values = np.empty((1, len(schedulers), draws))
    rng = np.random.default_rng(seed)
    for draw in range(draws):
        jobs = 300
        run_time = np.maximum(1, rng.lognormal(6.5, 1.2, jobs)).astype(np.int64)
        workload = gs.Workload(
            name="grid",
            submit_time=np.cumsum(rng.exponential(110.0, jobs)).astype(np.int64),
            run_time=run_time,
            requested_time=2 * run_time,
            requested_processors=rng.choice([1, 2, 4, 8, 16], jobs),
            home=rng.integers(0, 4, jobs),
        )
        for place, k in enumerate(schedulers):
            run = gs.simulate(workload, clusters, JScheduler(k=k), seed=1000 * draw + place)
            values[0, place, draw] = float(np.mean(metrics.job_metrics(run)["response_time"]))
    if equal:
        return Draws(values, np.full((1, len(schedulers)), values.mean()))
    return _by_mean(values)


def equal_queues(draws: int, seed: int, jobs: int = 500) -> Draws:
    """Six M/M/1 queues of the same arrivals, with services of the same distribution."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(1.0, (draws, jobs + 300))
    values = [
        queue_waits(gaps, 0.7 * rng.exponential(1.0, gaps.shape), 1, 300)[0].mean(axis=1) for _ in range(6)
    ]
    return Draws(np.stack(values)[np.newaxis], np.full((1, 6), erlang_wait(0.7, 1)))


Source = Callable[[], Draws]
