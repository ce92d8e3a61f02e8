"""Machines whose workload is modelled by classes of job size, each with arrivals and run times of its own.

Shan, Oliker and Biswas (SC 2003, section 3.1) group jobs by processors and fit, for each class, hyper-Erlang
distributions to inter-arrival and service times. They do not say how sizes are spread inside a class: this
module offers three weightings of node counts and three ways to fill the nodes, and finds the exponent of a
power law that gives a machine a wanted load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_choice, check_number
from gridsched.io import read_yaml, resource
from gridsched.validation import ConfigModel, validated
from gridsched.workloads.hyper_erlang import HyperErlang

DEFAULT_EXPONENT = 7.47
"""Exponent at which the expected load of M3 is its 79 % of Table 5, with the other options at their defaults.

It is steep: most jobs of a class have its smallest size. The classes of M3 begin at 1, 2, 4, 8, 16, 32 and
64 nodes, sizes that users favour."""

_EXPONENT_BOUND = 30.0
"""Beyond this nearly all jobs of a class have its smallest (or, negative, its largest) size."""

Weighting = Literal["power-law", "log-uniform", "uniform"]
Fill = Literal["powers", "whole", "partial"]


@dataclass(frozen=True)
class SizeClass:
    """Jobs of similar size.

    Parameters
    ----------
    low, high : int
        Smallest and largest number of processors, both inside.
    interarrival, service : HyperErlang
        Seconds between arrivals of the class, and run time in seconds.
    share : float, optional
        Share of all jobs as published, in [0, 1]; for comparison, nothing is computed from it.
    """

    low: int
    high: int
    interarrival: HyperErlang
    service: HyperErlang
    share: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise WorkloadError(f"size class {self.low}-{self.high}: bounds must rise and be at least 1")


@dataclass(frozen=True)
class Machine:
    """A cluster of equal nodes and the model of its workload.

    Parameters
    ----------
    name : str
    nodes : int
    processors_per_node : int
    mhz : float
        Clock speed of a processor.
    classes : tuple of SizeClass
    utilisation : float, optional
        Utilisation measured on the real machine (Table 5, six months), the target of a calibration.
    """

    name: str
    nodes: int
    processors_per_node: int
    mhz: float
    classes: tuple[SizeClass, ...]
    utilisation: float | None = None

    def __post_init__(self) -> None:
        check_number(f"machine {self.name}: nodes", self.nodes, least=1, error=WorkloadError)
        check_number(
            f"machine {self.name}: processors per node",
            self.processors_per_node,
            least=1,
            error=WorkloadError,
        )
        if not self.classes:
            raise WorkloadError(f"machine {self.name}: no size class fits its {self.processors} processors")
        widest = max(c.high for c in self.classes)
        if widest > self.processors:
            raise WorkloadError(
                f"machine {self.name}: a size class reaches {widest} processors, it has {self.processors}"
            )

    @property
    def processors(self) -> int:
        """Processors of all nodes."""
        return self.nodes * self.processors_per_node

    @property
    def arrival_rates(self) -> NDArray[np.float64]:
        """Jobs a second of each class, 1 / mean inter-arrival time; shape (classes,)."""
        return np.array([1 / c.interarrival.mean for c in self.classes])


@dataclass(frozen=True)
class SizeModel:
    """How job sizes spread inside a class.

    Parameters
    ----------
    weighting : {"power-law", "log-uniform", "uniform"}
        Weight of a node count k: k**-exponent, 1/k, or the same for all.
    exponent : float
        Exponent of the power law; the other weightings ignore it.
    fill : {"powers", "whole", "partial"}
        Processors of a job of k nodes. "whole": all of them. "powers" (default): all where k > 1, while a job
        within one node has 1, 2, 4, ... processors with equal chance. "partial": any number that needs
        k nodes, with equal chance. Counts outside the class are left out.

    Notes
    -----
    The paper gives the bounds of the classes only, and says that nodes are not shared between jobs.
    """

    weighting: Weighting = "power-law"
    exponent: float = DEFAULT_EXPONENT
    fill: Fill = "powers"

    def __post_init__(self) -> None:
        check_choice("size weighting", self.weighting, get_args(Weighting), WorkloadError)
        check_choice("node fill", self.fill, get_args(Fill), WorkloadError)
        check_number("size exponent", self.exponent, error=WorkloadError)

    def distribution(
        self, size_class: SizeClass, processors_per_node: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers of processors that jobs of a class can have, rising, and their probabilities."""
        fewest = -(-size_class.low // processors_per_node)
        most = -(-size_class.high // processors_per_node)
        nodes = np.arange(fewest, most + 1)
        counts = [self._processors(int(k), size_class, processors_per_node) for k in nodes]
        weights = self._node_weights(nodes)
        spread = [np.full(len(c), w / len(c)) for c, w in zip(counts, weights, strict=True)]
        return np.concatenate(counts), np.concatenate(spread)

    def _node_weights(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probabilities of node counts."""
        exponent = {"power-law": self.exponent, "log-uniform": 1.0, "uniform": 0.0}[self.weighting]
        # Relative to the largest weight, so that no power overflows.
        logarithms = -exponent * np.log(nodes)
        weights = np.exp(logarithms - logarithms.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def _processors(self, nodes: int, size_class: SizeClass, per_node: int) -> NDArray[np.int64]:
        """Numbers of processors, inside the class, of jobs that need `nodes` nodes."""
        largest = min(nodes * per_node, size_class.high)
        smallest = max((nodes - 1) * per_node + 1, size_class.low)
        if self.fill == "partial":
            return np.arange(smallest, largest + 1)
        if self.fill == "powers" and nodes == 1:
            powers = 2 ** np.arange(largest.bit_length())
            inside = powers[powers >= smallest]
            if len(inside):
                return inside
        return np.array([largest])


def offered_load(machine: Machine, sizes: SizeModel | None = None, *, occupied: bool = False) -> float:
    """Expected offered load of the model: work that arrives in a second, divided by the processors.

    Parameters
    ----------
    machine : Machine
    sizes : SizeModel, optional
    occupied : bool
        Count every processor of the nodes that a job holds, not only those that it asks for.

    Returns
    -------
    float
        Sum over classes of arrival rate x mean run time x mean processors, divided by all processors.
    """
    model = sizes or SizeModel()
    work = 0.0
    for size_class, rate in zip(machine.classes, machine.arrival_rates, strict=True):
        processors, probability = model.distribution(size_class, machine.processors_per_node)
        if occupied:
            processors = -(-processors // machine.processors_per_node) * machine.processors_per_node
        work += rate * size_class.service.mean * float(processors @ probability)
    return float(work / machine.processors)


def calibrate_exponent(machine: Machine, load: float, *, fill: Fill = "powers") -> float:
    """Exponent of the power law at which a machine has the offered load `load`.

    This calibrates an input, sizes inside the classes, which the paper does not give; it is no result.

    Parameters
    ----------
    machine : Machine
    load : float
        Wanted offered load, 1 for a load that equals the capacity.
    fill : {"powers", "whole", "partial"}
        As in `SizeModel`.

    Raises
    ------
    WorkloadError
        Where no exponent gives that load; the message has the range that is possible.
    """

    def excess(exponent: float) -> float:
        return offered_load(machine, SizeModel(exponent=exponent, fill=fill)) - load

    most, least = excess(-_EXPONENT_BOUND) + load, excess(_EXPONENT_BOUND) + load
    if not least <= load <= most:
        raise WorkloadError(
            f"machine {machine.name}: no exponent gives load {load:g}; sizes inside the classes "
            f"allow {least:.4g} to {most:.4g}"
        )
    return float(scipy.optimize.brentq(excess, -_EXPONENT_BOUND, _EXPONENT_BOUND, xtol=1e-10))


def derive_machine(
    model: Machine,
    name: str,
    nodes: int,
    processors_per_node: int,
    mhz: float,
) -> Machine:
    """Machine with the workload of another one, scaled to its own size.

    A size class that reaches beyond the machine is left out, which comes nearest to the numbers of jobs and
    the utilisations of M4 and M6 in Table 6. Arrival rates are multiplied by the ratio of the processors;
    run times stay, since in Table 6 the difference between response and wait on M4 is the unscaled mean run
    time of M1.

    Parameters
    ----------
    model : Machine
        Where the workload comes from.
    name, nodes, processors_per_node, mhz
        As in `Machine`.

    Returns
    -------
    Machine
    """
    processors = nodes * processors_per_node
    slower = model.processors / processors
    classes = tuple(
        replace(c, interarrival=c.interarrival.scaled(slower), share=None)
        for c in model.classes
        if c.high <= processors
    )
    return Machine(name, nodes, processors_per_node, mhz, classes)


class _ClassEntry(ConfigModel):
    processors: tuple[int, int]
    interarrival: HyperErlang
    service: HyperErlang
    share: float | None = None

    def build(self) -> SizeClass:
        return SizeClass(*self.processors, self.interarrival, self.service, self.share)


class _MachineEntry(ConfigModel):
    nodes: int
    processors_per_node: int
    mhz: float
    utilisation: float | None = None
    size_classes: tuple[_ClassEntry, ...] = ()
    like: str | None = None

    def build(self, name: str) -> Machine:
        classes = tuple(entry.build() for entry in self.size_classes)
        return Machine(name, self.nodes, self.processors_per_node, self.mhz, classes, self.utilisation)


class _MachineFile(ConfigModel):
    machines: dict[str, _MachineEntry]


def load_machines(path: Path | None = None) -> dict[str, Machine]:
    """Read machines and workload models from a YAML file.

    Parameters
    ----------
    path : Path, optional
        File of the form of `resources/superscheduler.yaml`, which is the default: the machines M1 to M6 of
        Shan, Oliker and Biswas (Tables 1 to 4).

    Returns
    -------
    dict of str to Machine
        In the order of the file.

    Raises
    ------
    ConfigurationError
        Where the file cannot be read or is not of that form.
    WorkloadError
        Where no such machine can be, or one is `like` a machine that the file does not model.

    Examples
    --------
    >>> import gridsched as gs
    >>> machines = gs.load_machines()
    >>> machines["M3"].processors
    1152
    """
    source = path or resource("resources", "superscheduler.yaml")
    try:
        entries = validated(_MachineFile, read_yaml(source), str(source)).machines
        own = {name: entry.build(name) for name, entry in entries.items() if entry.like is None}
        return {name: own.get(name) or _derived(own, name, entry) for name, entry in entries.items()}
    except WorkloadError as error:
        raise WorkloadError(f"{source}: {error}") from error


def _derived(models: Mapping[str, Machine], name: str, entry: _MachineEntry) -> Machine:
    """Machine of an entry that takes its workload from another one."""
    if entry.size_classes:
        raise WorkloadError(f"machine {name}: give either size_classes or like")
    if entry.like is None or entry.like not in models:
        raise WorkloadError(f"machine {name} is like {entry.like}, which has no size classes of its own")
    return derive_machine(models[entry.like], name, entry.nodes, entry.processors_per_node, entry.mhz)
