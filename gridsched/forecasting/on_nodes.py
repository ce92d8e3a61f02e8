"""Futures on the nodes of a cluster, where memory, GPUs, constraints, partitions and limits count.

Each future is a run of the engine. The jobs that run are submitted when they started, so that they get
nodes of the placement's choice rather than those that they have; one that these leave no room for starts as
soon as it fits. The jobs that wait are submitted now, in the order of their submission.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.forecasting.snapshot import Snapshot, recorded_places
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy, looks_at
from gridsched.simulation import start_times
from gridsched.systems.node_records import REASONS, asked_for, nodes_for, reasons_against
from gridsched.workloads.table import Workload, add_counts


@dataclass(frozen=True, eq=False)
class PolicyOnNodes:
    """A local policy that goes on from queues of a log on the nodes of its cluster.

    Dependencies, cancellations, limits of job arrays and outages are not in the futures.

    Parameters
    ----------
    workload : Workload
        Clean jobs with recorded waits, without those that the cluster cannot hold, see `held_by`.
    cluster : Cluster
        Where they run.
    policy : LocalPolicy
        Its queue order may look at what jobs ask for, and not at how long they have waited.

    Raises
    ------
    ConfigurationError
        If the queue order depends on times of submission in another way than first come, first served.

    Examples
    --------
    >>> import gridsched as gs
    >>> from dataclasses import replace
    >>> cluster = gs.Cluster(nodes=[gs.NodeType(count=8, cores=16)])
    >>> jobs = gs.synthesise("M3", jobs=300, seed=1).select(slice(None))
    >>> jobs = replace(jobs, requested_processors=jobs.processors % 64 + 1)
    >>> run = gs.simulate(jobs, cluster, "easy")
    >>> log = replace(jobs, wait_time=run.start_time.values - jobs.submit_time)
    >>> policy = gs.forecasting.PolicyOnNodes(log, cluster, gs.LocalPolicy(name="easy", backfilling="easy"))
    >>> forecast = gs.forecast(log, int(log.submit_time[200]), policy=policy, adjust=0, futures=5)
    >>> forecast.attrs["policies"]
    'easy'
    """

    workload: Workload
    cluster: Cluster
    policy: LocalPolicy
    _future: tuple[Workload, Cluster] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.policy.predicts or looks_at(self.policy, "now", "submit_time"):
            raise ConfigurationError(
                f"policy {self.policy.name!r}: it depends on how long jobs have waited or ran before, which "
                "futures on nodes do not know; use another policy, or leave the nodes out (--without nodes)"
            )
        places = recorded_places(self.workload, self.cluster.processors)
        object.__setattr__(self, "_future", for_futures(self.workload.select(places), self.cluster))

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.policy.name

    def starts(
        self,
        snapshot: Snapshot,
        which: NDArray[np.int64],
        submit: NDArray[np.int64],
        run_time: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Simulate a future; as of `gridsched.forecasting.calibrated.CalibratedPolicy`."""
        begun = np.where(submit <= snapshot.now, snapshot.past["start"][which], -1)
        enters = np.where(begun >= 0, begun, np.maximum(submit, snapshot.now))
        turn = np.argsort(enters, kind="stable")
        workload, cluster = self._future
        jobs = workload.select(
            which[turn],
            submit_time=enters[turn],
            run_time=run_time[turn],
            requested_time=snapshot.past["estimate"][which[turn]],
        )
        starts = np.empty(len(which), np.int64)
        present = int((enters <= snapshot.now).sum())
        starts[turn] = start_times(jobs, cluster, self.policy, awaited=present)
        return starts

    def moved(self, snapshot: Snapshot) -> int:
        """How many running jobs start later in futures than they did."""
        past, running = snapshot.past, snapshot.running
        if not len(running):
            return 0
        starts = self.starts(snapshot, running, past["submit"][running], past["estimate"][running])
        return int((starts != past["start"][running]).sum())


def for_futures(workload: Workload, cluster: Cluster) -> tuple[Workload, Cluster]:
    """Jobs of a log and its cluster, without what is not in futures on nodes."""
    # what happens at the beginning is how the site is
    lasting = [event for event in cluster.events if event.time <= int(workload.submit_time[0])]
    return (
        replace(workload, dependencies=None, gives_up_time=None, array_limit=None, component_of=None),
        replace(cluster, events=lasting),
    )


def held_by(workload: Workload, cluster: Cluster) -> Workload:
    """The jobs that the nodes of a cluster can hold; the others are counted among those left out.

    Parameters
    ----------
    workload : Workload
        Clean jobs.
    cluster : Cluster
        Where they run.
    """
    site, where = nodes_for(cluster, workload)
    jobs = asked_for(workload, cluster, site, where)
    jobs["estimate"] = workload.requested_time
    against = reasons_against(jobs, workload, cluster, site, np.asarray(workload.requested_time, np.int64))
    counts = np.bincount(against, minlength=len(REASONS) + 1)[1:].tolist()
    left_out = add_counts(workload.left_out, dict(zip(REASONS, counts, strict=True)))
    return workload.select(against == 0, left_out=left_out)
