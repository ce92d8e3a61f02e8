"""Platforms of many centres: resources with a CPU factor and a local policy, and the log submitted there.

The one that comes with gridsched, `resources/jscheduler.yaml`, is Table 1 of Guim, Garcia, Rodero and
Corbalan, "The XtreemOS JScheduler: using self-scheduling techniques in large computing architectures" (2008).
By section 6.3.1 a job takes its run time in the log times the CPU factor of its resource. Many centres would
then be offered several times the work that they can do; so a factor has three readings:

============  ====================================================
``multiply``  run time x factor, as the paper says
``divide``    run time / factor: a larger factor is a faster cluster
``none``      run time as in the log
============  ====================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError, meant
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.workloads.table import Workload

Reading = Literal["multiply", "divide", "none"]
"""What a CPU factor does to run times."""


@dataclass(frozen=True, kw_only=True)
class Centre:
    """A centre of a grid.

    Parameters
    ----------
    name : str
        Name in results and file names.
    log : str, optional
        Log of the archive that is submitted there, by name.
    file : str, optional
        Path of an SWF file of one's own instead, relative to the working directory.
    resources : tuple of (int, int)
        How many resources, and processors of each; several pairs where they differ.
    factor : float
        CPU factor of all resources; see `Reading`.
    policy : str
        Local policy of all resources, by name (`gridsched.policies.local.POLICIES`).
    paper : mapping of str to float, optional
        What the paper measured when each centre had its own log (Table 2): ``wait_mean`` and ``wait_p95``
        [s], ``slowdown_mean`` and ``slowdown_p95``; p95 are 95th percentiles.
    absent : str
        Why jobs of the log are not used; "" if they are.
    """

    name: str
    log: str | None = None
    file: str | None = None
    resources: tuple[tuple[int, int], ...]
    factor: float
    policy: str
    paper: Mapping[str, float] | None = None
    absent: str = ""

    @property
    def processors(self) -> int:
        """Processors of all its resources."""
        return _processors(self.resources)


@dataclass(frozen=True)
class CentrePlatform:
    """Centres of a grid.

    Parameters
    ----------
    centres : tuple of Centre
        The centres, in the order of the file.
    source : str
        Where the platform comes from, in one line.
    """

    centres: tuple[Centre, ...]
    source: str = ""

    def centre(self, name: str) -> Centre:
        """Centre of this name.

        Raises
        ------
        ConfigurationError
            If there is none.
        """
        centres = {centre.name: centre for centre in self.centres}
        if name not in centres:
            raise ConfigurationError(
                f"the platform has no centre {name!r}{meant(name, centres)}; there are {', '.join(centres)}"
            )
        return centres[name]

    def changed(self, rows: Mapping[str, Mapping[str, Any]]) -> CentrePlatform:
        """A platform of which some centres are different.

        Parameters
        ----------
        rows : mapping of str to mapping
            By name of the centre, what is different: values of `Centre`, such as `policy`.

        Raises
        ------
        ConfigurationError
            If there is no such centre.
        """
        for name in rows:
            self.centre(name)
        return replace(
            self, centres=tuple(replace(centre, **rows.get(centre.name, {})) for centre in self.centres)
        )

    def resources(self, reading: Reading) -> tuple[list[Cluster], list[LocalPolicy], NDArray[np.int64]]:
        """Every resource of the grid by itself.

        Parameters
        ----------
        reading : {"multiply", "divide", "none"}
            What a CPU factor does to run times.

        Returns
        -------
        clusters : list of Cluster
            Named after the centre, and numbered where it has several: LPC/01, LPC/02 ...
        policies : list of LocalPolicy
            Policy of each.
        centre_index : int64[m]
            Index of the centre of each.

        Raises
        ------
        ConfigurationError
            If there is no such reading.
        """
        clusters, policies, centre_index = [], [], []
        for index, centre in enumerate(self.centres):
            processors = [each for number, each in centre.resources for _ in range(number)]
            speed, policy = _speed(centre.factor, reading), named_policy(centre.policy)
            for name, each in zip(_names(centre.name, len(processors)), processors, strict=True):
                clusters.append(Cluster(processors=each, speed=speed, name=name))
                policies.append(policy)
                centre_index.append(index)
        return clusters, policies, np.array(centre_index, np.int64)

    def pool(self, name: str, reading: Reading) -> tuple[Cluster, LocalPolicy]:
        """All processors of a centre as one cluster, and its policy.

        Parameters
        ----------
        name : str
            The centre.
        reading : {"multiply", "divide", "none"}
            What its CPU factor does to run times.

        Raises
        ------
        ConfigurationError
            If there is no such centre or reading.
        """
        centre = self.centre(name)
        speed = _speed(centre.factor, reading)
        return Cluster(processors=centre.processors, speed=speed, name=name), named_policy(centre.policy)


def _speed(factor: float, reading: Reading) -> float:
    """Speed of a cluster with a CPU factor, relative to that of its log."""
    if reading not in get_args(Reading):
        raise ConfigurationError(f"reading is {reading!r}; use one of {', '.join(get_args(Reading))}")
    return {"multiply": 1 / factor, "divide": float(factor), "none": 1.0}[reading]


def _processors(resources: tuple[tuple[int, int], ...]) -> int:
    return sum(number * processors for number, processors in resources)


def check_size(resources: tuple[tuple[int, int], ...]) -> None:
    """Refuse a centre with more processors than can be simulated."""
    processors = _processors(resources)
    if processors > LARGEST:
        raise ValueError(f"resources: {processors} processors; a centre can have {LARGEST}")


def _names(centre: str, number: int) -> list[str]:
    """Names of the resources of a centre, all of the same length."""
    if number == 1:
        return [centre]
    digits = len(str(number))
    return [f"{centre}/{place:0{digits}d}" for place in range(1, number + 1)]


def offered_load(workload: Workload, cluster: Cluster) -> float:
    """Work that is submitted, relative to what a cluster can do from the first submission to the last.

    Parameters
    ----------
    workload : Workload
        Clean jobs. Those that the cluster cannot hold are not counted.
    cluster : Cluster
        The cluster; jobs take its processors and its run times.

    Returns
    -------
    float
        Infinite if all jobs are submitted at one instant, 0 if none fits.
    """
    allocated = cluster.allocation(workload.processors)
    fits = allocated <= cluster.processors
    work = float(allocated[fits] @ cluster.duration(workload.run_time[fits]).astype(np.float64))
    capacity = cluster.processors * float(np.ptp(workload.submit_time)) if len(workload) else 0.0
    if capacity == 0:
        return float("inf") if work else 0.0
    return work / capacity
