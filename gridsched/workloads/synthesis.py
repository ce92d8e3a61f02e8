"""Synthetic workloads drawn from models of size classes.

Each class is a renewal process of its own; the classes are merged by time. Every class and every kind of
value has its own random stream, named by machine, kind and class: a further class or another option leaves
the other streams as they are, and a longer workload begins with the shorter one (estimates excepted: the
modal model depends on the number of jobs).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_number, check_whole, meant
from gridsched.workloads.estimates import EstimateModel, Estimates, Modal, repairs
from gridsched.workloads.hyper_erlang import HyperErlang
from gridsched.workloads.size_classes import Machine, SizeClass, SizeModel, load_machines
from gridsched.workloads.table import Workload, add_counts

_BLOCK = 4096
"""Values drawn at a time. Blocks of one size make the first n values independent of how many follow."""


class RandomStream(IntEnum):
    """Kinds of random streams; the numbers are part of what a seed means."""

    ARRIVAL = 0
    SERVICE = 1
    SIZE = 2
    ESTIMATE = 3


def synthesise(
    machine: Machine | str,
    *,
    seed: int,
    jobs: int | None = None,
    duration: float | None = None,
    sizes: SizeModel | None = None,
    estimates: EstimateModel | None = None,
    load_scale: float = 1.0,
) -> Workload:
    """Draw a workload of a machine.

    Parameters
    ----------
    machine : Machine or str
        With the models of its size classes; a name is that of one of `load_machines()`.
    seed : int
        The same seed and parameters give the same workload, bit for bit.
    jobs, duration : int or float
        The first `jobs` jobs, or all that arrive in the first `duration` seconds; exactly one of the two.
    sizes : SizeModel, optional
        Spread of sizes inside the classes.
    estimates : EstimateModel, optional
        Requested times; without it the modal model, whose longest estimate holds the longest run time.
    load_scale : float
        Inter-arrival times are divided by it: 2 doubles the offered load and changes nothing else.

    Returns
    -------
    Workload
        In whole seconds: submit times rounded down, run times up. No start time and time zone.

    Raises
    ------
    WorkloadError
        Where parameters are out of range, the machine is unknown, or no job arrives.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.synthesise("M3", jobs=1000, seed=1)
    Workload 'M3-synthetic': ...

    Notes
    -----
    Each class starts with a whole inter-arrival time at time 0, so that in T seconds about
    T / mean + (cv**2 - 1) / 2 of its jobs arrive: a few more than the rate says where arrivals are bursty.
    """
    if isinstance(machine, str):
        machine = _published(machine)
    jobs = check_extent(f"machine {machine.name}", jobs, duration, load_scale)
    seed = check_whole(f"machine {machine.name}: seed", seed, error=WorkloadError)
    size_model = sizes or SizeModel()
    estimate_model = estimates or Modal()

    time, classes = _arrivals(machine, seed, jobs, duration, load_scale)
    run_time = np.empty(len(time), np.int64)
    processors = np.empty(len(time), np.int64)
    for index, size_class in enumerate(machine.classes):
        members = classes == index
        count = int(np.count_nonzero(members))
        service = _draw(
            size_class.service, count, random_stream(machine.name, seed, RandomStream.SERVICE, index)
        )
        run_time[members] = np.maximum(np.ceil(service), 1)
        processors[members] = _sizes(
            size_model,
            size_class,
            machine,
            count,
            random_stream(machine.name, seed, RandomStream.SIZE, index),
        )
    drawn = estimate_model.draw(run_time, random_stream(machine.name, seed, RandomStream.ESTIMATE, 0))
    options = {
        "seed": seed,
        "jobs": jobs,
        "duration": duration,
        "sizes": asdict(size_model),
        "estimates": repr(estimate_model),
        "load_scale": load_scale,
    }
    return drawn_workload(
        f"{machine.name}-synthetic",
        machine.processors,
        (
            f"synthetic workload of {machine.name}, by size class, hyper-Erlang of common order",
            f"parameters {json.dumps(options, sort_keys=True)}",
        ),
        json.dumps({"machine": asdict(machine), **options}, sort_keys=True),
        np.floor(time).astype(np.int64),
        processors,
        drawn,
    )


def _published(name: str) -> Machine:
    """One of the machines that come with gridsched."""
    machines = load_machines()
    if name not in machines:
        raise WorkloadError(
            f"machine {name!r} is unknown{meant(name, machines)}; use one of {', '.join(machines)}, "
            "or give a Machine"
        )
    return machines[name]


def check_extent(where: str, jobs: int | None, duration: float | None, load_scale: float) -> int | None:
    """Number of jobs, if it is given.

    Refuse a workload without an extent, or whose extent or load scale no workload can have.
    """
    if (jobs is None) == (duration is None):
        raise WorkloadError(f"{where}: give either jobs or duration")
    check_number(f"{where}: duration", duration, above=0, error=WorkloadError)
    check_number(f"{where}: load_scale", load_scale, above=0, error=WorkloadError)
    return None if jobs is None else check_whole(f"{where}: jobs", jobs, least=1, error=WorkloadError)


def random_stream(name: str, seed: int, kind: RandomStream, index: int = 0) -> np.random.Generator:
    """Random stream of one kind of value of one class of one machine, or of a model."""
    key = (zlib.crc32(name.encode()), int(kind), index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclass
class _ArrivalProcess:
    """Arrival times of a class, drawn as far as they are asked for."""

    interarrival: HyperErlang
    rng: np.random.Generator
    times: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def before(self, horizon: float) -> NDArray[np.float64]:
        """All arrivals before `horizon`, s."""
        blocks = [self.times]
        last = float(self.times[-1]) if len(self.times) else 0.0
        while last < horizon:
            blocks.append(last + np.cumsum(self.interarrival.sample(_BLOCK, self.rng)))
            last = float(blocks[-1][-1])
        self.times = np.concatenate(blocks)
        return self.times[: np.searchsorted(self.times, horizon)]


def _arrivals(
    machine: Machine, seed: int, jobs: int | None, duration: float | None, load_scale: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Arrival times of the merged classes, rising, and the class of each job."""
    processes = [
        _ArrivalProcess(
            c.interarrival.scaled(1 / load_scale),
            random_stream(machine.name, seed, RandomStream.ARRIVAL, index),
        )
        for index, c in enumerate(machine.classes)
    ]
    rate = float(machine.arrival_rates.sum()) * load_scale
    horizon = duration if duration is not None else (jobs or 0) / rate
    by_class = [process.before(horizon) for process in processes]
    while jobs is not None and sum(map(len, by_class)) < jobs:
        horizon *= 1.25
        by_class = [process.before(horizon) for process in processes]
    time = np.concatenate(by_class)
    order = np.argsort(time, kind="stable")[:jobs]
    if not len(order):
        raise WorkloadError(
            f"machine {machine.name}: no job arrives in {duration:g} s, use a longer duration"
        )
    return time[order], np.repeat(np.arange(len(by_class)), [len(t) for t in by_class])[order]


def _draw(distribution: HyperErlang, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """First `count` values of the stream of a distribution."""
    blocks = [distribution.sample(_BLOCK, rng) for _ in range(-(-count // _BLOCK))]
    return np.concatenate([np.zeros(0), *blocks])[:count]


def _sizes(
    model: SizeModel, size_class: SizeClass, machine: Machine, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Processors of `count` jobs of a class."""
    processors, probability = model.distribution(size_class, machine.processors_per_node)
    below = np.cumsum(probability)[:-1]
    return processors[np.searchsorted(below, rng.random(count), side="right")]


def drawn_workload(
    name: str,
    available: int,
    notes: tuple[str, str],
    described: str,
    submit_time: NDArray[np.int64],
    processors: NDArray[np.int64],
    drawn: Estimates,
) -> Workload:
    """Workload of drawn columns; `described` says all that they depend on, and is part of the checksum."""
    digest = hashlib.sha256(described.encode())
    for column in (submit_time, drawn.run_time, processors, drawn.requested_time):
        digest.update(column.astype("<i8").tobytes())
    return Workload(
        name=name,
        submit_time=submit_time,
        run_time=drawn.run_time,
        requested_processors=processors,
        requested_time=drawn.requested_time,
        processors_available=available,
        header=tuple(f"; Note: {note}" for note in notes),
        checksum=digest.hexdigest(),
        repaired=add_counts({}, repairs(drawn)),
    )
