"""Every cell of the table of capabilities: what a system can do works, what it cannot do is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsched.nodes import Limit, NodeEvent, NodeType, Partition
from gridsched.platform import Cluster, Platform, ResourceChange
from gridsched.policies.local import POLICIES, LocalPolicy
from gridsched.simulation import simulate
from gridsched.systems.base import CAPABILITIES, Scheduler
from gridsched.systems.capabilities import capabilities_page
from gridsched.systems.custom.scheduler import CustomScheduler
from gridsched.systems.custom.simulator import Simulator
from gridsched.systems.registry import SYSTEMS, system_of
from gridsched.verification import verify
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.table import Workload
from tests.conftest import REPOSITORY
from tests.support.errors import refused
from tests.support.nodes import crowd
from tests.support.variables import check_described

CROWDS = [crowd(seed, 40) for seed in (1, 2)]
"""Jobs of two clusters."""


class SendHome(CustomScheduler):
    """A scheduler of a user: each job goes to the local queue of the cluster where it is submitted."""

    def decide(self, sim: Simulator) -> None:
        """Send all."""
        for job, home in sim.queue[["job", "home"]].tolist():
            sim.send(job, home)


def class_of(system: str) -> type[Scheduler]:
    """Schedulers of a system."""
    return SendHome if system == "custom" else system_of(system)


def platform(**changes: Any) -> Platform:
    """Two clusters, changed all alike."""
    clusters = [Cluster(processors=16, processors_per_node=4, name=name) for name in ("north", "south")]
    return Platform([replace(cluster, **changes) for cluster in clusters])


def starts(scheduler: Scheduler, jobs: list[Workload], place: Platform, **options: Any) -> list[float]:
    """Start times of a verified run."""
    run = simulate(jobs, place, scheduler, **options)
    verify(run)
    check_described(run)
    return [float(start) for start in run["start_time"].values]


def with_column(**columns: Callable[[Workload], Any]) -> list[Workload]:
    """The jobs with further columns."""
    return [replace(jobs, **{name: make(jobs) for name, make in columns.items()}) for jobs in CROWDS]


def patient(submit_time: int, processors: int) -> float:
    """A score of one's own."""
    return processors - 0.001 * submit_time


def reserved_by_some(jobs: Workload) -> Any:
    """Starts that every fifth job asks for, -1 for the others."""
    return np.where(np.arange(len(jobs)) % 5 == 0, (jobs.submit_time // 60 + 20) * 60, -1)


def in_turn(number: int) -> Callable[[Workload], Any]:
    """Users or queues that take turns."""
    return lambda jobs: np.arange(len(jobs)) % number


KINDS = [NodeType(count=2, cores=4, gpus=2, name="gpu"), NodeType(count=2, cores=4, name="cpu")]
LIMIT = Limit(by="queue", processors=16)
DOWN, UP = NodeEvent(time=300, node="node1", kind="down"), NodeEvent(time=400, node="node1", kind="up")
GATES = {"partitions": [Partition(number=0), Partition(number=1, priority=5)], "partition_of": "queue"}
NEEDS = dependency_table([(5, 2, "afterany"), (9, 2, "afterok")])
NORTH, SOUTH = platform().clusters

COLUMNS: dict[str, dict[str, Callable[[Workload], Any]]] = {
    "predictions": {"user": in_turn(3)},
    "deadlines": {"deadline": lambda jobs: jobs.submit_time + 10 * jobs.run_time},
    "reservations": {"reserved_start": reserved_by_some},
    "nodes": {"requested_gpus": lambda jobs: np.where(jobs.requested_processors < 4, 1, -1)},
    "arrays": {
        "array": lambda jobs: np.arange(len(jobs)) // 5,
        "array_limit": lambda jobs: np.full(len(jobs), 2),
    },
    "cancellations": {"gives_up_time": lambda jobs: jobs.submit_time + 100},
    "dependencies": {"dependencies": lambda jobs: NEEDS},
    "preemption of slurm": {"queue": in_turn(2)},
}
"""Columns of jobs that a capability is about."""

PLATFORMS: dict[str, Platform] = {
    "speed": Platform([NORTH, replace(SOUTH, speed=2.0)]),
    "whole nodes": platform(node_exclusive=True),
    "predictions": platform(policy="easy++"),
    "membership": replace(platform(), membership={"south": []}),
    "changes": replace(platform(), changes=[ResourceChange(400, "south", 8)]),
    "nodes": Platform([Cluster(nodes=KINDS, limits=[LIMIT], name=name) for name in ("north", "south")]),
    "failures": platform(events=[DOWN, UP]),
    "own functions": platform(policy=LocalPolicy(name="patient", order=patient, backfilling="easy")),
    "preemption of slurm": platform(**GATES),
}
"""Platforms that a capability is about."""

OPTIONS: dict[str, dict[str, Any]] = {
    "kill": {"kill": True},
    "overrun": {"overrun": "increments"},
    "passes": {"passes": "event"},
    "reservations": {"align": "none"},
}
"""Options of a simulation that a capability is about."""


def starts_with(scheduler: type[Scheduler], capability: str) -> list[float]:
    """Start times of a verified run that needs a capability."""
    made = scheduler(**scheduler.uses.get(capability, {}))
    if (capability, scheduler.system) == ("preemption", "slurm"):
        capability = "preemption of slurm"
    place = PLATFORMS.get(capability, platform())
    return starts(made, with_column(**COLUMNS.get(capability, {})), place, **OPTIONS.get(capability, {}))


CELLS = [(name, capability) for name in SYSTEMS for capability in CAPABILITIES]

REFUSED = (
    "speed",
    "whole nodes",
    "predictions",
    "overrun",
    "passes",
    "deadlines",
    "reservations",
    "membership",
    "changes",
    "nodes",
    "arrays",
    "failures",
    "cancellations",
    "dependencies",
)
"""Capabilities that platform, jobs or conventions ask for, so that there is something to refuse."""


@pytest.mark.parametrize(("system", "capability"), CELLS)
def test_cell(system: str, capability: str) -> None:
    scheduler = class_of(system)
    reason = scheduler.cannot.get(capability)
    if reason is None:
        assert max(starts_with(scheduler, capability)) > 0
    elif capability in REFUSED:
        with refused(reason):
            starts_with(scheduler, capability)
    else:
        assert capability not in scheduler.uses


@pytest.mark.parametrize("system", SYSTEMS)
def test_local_policies_matter_or_are_refused_or_not_looked_at(system: str) -> None:
    scheduler = class_of(system)
    outcomes = set()
    made = scheduler(**scheduler.uses.get("local policies", {}))
    for policy in POLICIES:
        place = platform(policy=policy)
        reason = made.incompatibility(place)
        if reason:
            assert scheduler.cannot["local policies"] in reason
        else:
            outcomes.add(tuple(starts(made, CROWDS, place)))
    assert len(outcomes) > 1 or "local policies" in scheduler.cannot


@pytest.mark.parametrize("system", [name for name in SYSTEMS if "predictions" not in class_of(name).cannot])
def test_predictions_matter(system: str) -> None:
    jobs = with_column(user=lambda jobs: np.arange(len(jobs)) % 3)
    scheduler = class_of(system)()
    assert starts(scheduler, jobs, platform(policy="easy++")) != starts(
        scheduler, jobs, platform(policy="sjbf")
    )


@pytest.mark.parametrize("parameter", [{"policy": "easy++"}, {"local": "easy++"}])
def test_a_parameter_that_names_a_policy_with_predictions_is_refused(parameter: dict[str, str]) -> None:
    system = "dynamic_grid" if "policy" in parameter else "multicluster"
    with refused(system_of(system).cannot["predictions"]):
        system_of(system)(**parameter)


@pytest.mark.parametrize("system", SYSTEMS)
def test_estimates_matter_unless_said_otherwise(system: str) -> None:
    scheduler = class_of(system)
    kinds: list[Any] = ["requested", "actual", "clairvoyant", np.full(80, 300)]
    outcomes = {tuple(starts(scheduler(), CROWDS, platform(), estimates=kind)) for kind in kinds}
    assert (len(outcomes) > 1) == ("estimates" not in scheduler.cannot)


def test_the_page_is_up_to_date() -> None:
    page = (REPOSITORY / "docs" / "capabilities.md").read_text(encoding="utf-8")
    assert page.startswith(capabilities_page()), "run `make schemas`"
