"""Superschedulers: which cluster of a grid runs a job.

Shan, Oliker and Biswas, "Job superscheduler architecture and performance in computational grid environments"
(SC 2003), section 2. Schemes by name:

===========  ==========================================================================================
``local``    every job runs where it was submitted
``central``  every job goes to the cluster with the smallest turnaround cost
``s-i``      sender-initiated: a job that would wait long asks all partners and goes where it costs least
``r-i``      receiver-initiated: a job that would wait long waits for a partner that volunteers
``sy-i``     symmetrically-initiated: as ``r-i`` while there are volunteers, else as ``s-i``
===========  ==========================================================================================

The turnaround cost is the predicted wait plus the estimated run time; among clusters that differ by no
more than epsilon the least busy one is chosen, and the first of those. Where the paper is silent: a
cluster is as busy as the share of its processors that jobs hold at that moment; checks come at
multiples of sigma; a volunteer stands until the next check and takes one job; at each check every job in
a grid queue is decided anew, home by home and in order of submission; with volunteers that bring no gain,
a job of ``sy-i`` waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import grid
from gridsched.engine.records import LABELS, LARGEST, Backfilling, Overrun
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers import scores
from gridsched.schedulers.local import AS_QUEUE, ORDERS, LocalPolicy, OverrunName

SchemeName = Literal["local", "central", "s-i", "r-i", "sy-i"]

_SCHEMES: dict[str, grid.Scheme] = {
    "local": grid.Scheme.LOCAL,
    "central": grid.Scheme.CENTRAL,
    "s-i": grid.Scheme.SENDER_INITIATED,
    "r-i": grid.Scheme.RECEIVER_INITIATED,
    "sy-i": grid.Scheme.SYMMETRICALLY_INITIATED,
}

FIRST_ROOM = 1024
"""Entries that a row has room for at first; rows grow when they need to."""


@dataclass(frozen=True, kw_only=True)
class Superscheduler:
    """A scheme and its parameters.

    Parameters
    ----------
    scheme : str
        ``local``, ``central``, ``s-i``, ``r-i`` or ``sy-i``.
    phi : int
        A job whose predicted wait at home is shorter stays there, seconds.
    sigma : int
        Time between checks of how busy the clusters are, seconds.
    delta : float
        A cluster that is less busy than this share of its processors volunteers.
    epsilon : float
        Turnaround times that differ by no more count as equal, seconds.
    partners : mapping of cluster name to names, optional
        Clusters that a home may deal with; all others if not given.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    scheme: SchemeName
    phi: int = 60
    sigma: int = 300
    delta: float = 0.7
    epsilon: float = 0.0
    partners: Mapping[str, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        if self.scheme not in _SCHEMES:
            raise ConfigurationError(
                f"scheme is {self.scheme!r}; use one of {', '.join(get_args(SchemeName))}"
            )
        for key, low in (("phi", 1), ("sigma", 1), ("epsilon", 0)):
            if not getattr(self, key) >= low:
                raise ConfigurationError(f"{key} is {getattr(self, key)}; use {low} or more seconds")
        if not 0 < self.delta <= 1:
            raise ConfigurationError(f"delta is {self.delta}; use a share above 0, at most 1")

    def reach(self, clusters: Sequence[Cluster]) -> NDArray[np.int64]:
        """Processors of the largest cluster that a job of each home may use."""
        processors = np.array([cluster.processors for cluster in clusters], np.int64)
        if self.scheme == "central":
            return np.full(len(clusters), processors.max())
        if self.scheme == "local":
            return processors
        reached = _partners(self, clusters) | np.eye(len(clusters), dtype=np.bool_)
        largest: NDArray[np.int64] = np.where(reached, processors, 0).max(axis=1)
        return largest


@dataclass(frozen=True)
class GridSchedule:
    """What a superscheduler and the local schedulers decided.

    Parameters
    ----------
    start_time : int64[n]
        Start times, seconds; -1 for a job that fits nowhere in its reach.
    cluster : int64[n]
        Index of the cluster that ran each job; -1 likewise.
    corrections : int
        How often a running job outran its expected end.
    queries : int
        How many predicted starts were asked for.
    """

    start_time: NDArray[np.int64]
    cluster: NDArray[np.int64]
    corrections: int
    queries: int


def schedule_grid(
    jobs: NDArray[Any],
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    policies: Sequence[LocalPolicy],
    superscheduler: Superscheduler,
    *,
    overrun: OverrunName = "doubling",
    labels: NDArray[Any] | None = None,
) -> GridSchedule:
    """Run jobs through a superscheduler and the local schedulers of its clusters.

    Parameters
    ----------
    jobs : JOB[n]
        Jobs in order of submission, with run times and estimates as on their home cluster and the
        processors they ask for (`gridsched.engine.records.JOB`).
    home : int64[n]
        Index of the cluster where each job is submitted.
    clusters : sequence of Cluster
        The grid. On another cluster than its home a job takes run time x home speed / speed there.
    policies : sequence of LocalPolicy
        Local policy of each cluster; all whose order is a score must share it.
    superscheduler : Superscheduler
        Who decides.
    overrun : {"doubling", "increments"}
        Expected end of a job that has outrun its estimate.
    labels : LABELS[n], optional
        User, group and queue of each job, for scores that look at them.

    Raises
    ------
    ConfigurationError
        If the clusters, policies, partners and jobs do not go together.
    """
    sites, score = _sites(clusters, policies)
    _check_jobs(jobs, home, sites)
    if labels is None:
        labels = np.full(len(jobs), -1, LABELS)
    room = FIRST_ROOM
    state = grid.allocate(
        jobs, labels, home, sites, _partners(superscheduler, clusters), superscheduler.sigma, room
    )
    options = grid.Options(
        scheme=int(_SCHEMES[superscheduler.scheme]),
        phi=int(superscheduler.phi),
        sigma=int(superscheduler.sigma),
        delta=float(superscheduler.delta),
        epsilon=float(superscheduler.epsilon),
        overrun=int(Overrun[overrun.upper()]),
    )
    compiled = scores.compile_score(score)
    todo, costs = np.empty(len(jobs), np.int64), np.empty(len(clusters), np.int64)
    while not grid.schedule(state, options, compiled, todo, costs):
        room *= 2
        state = grid.with_room(state, room)
    return _result(state)


def _result(state: grid.Grid) -> GridSchedule:
    """Start time of each job, from the rows of the clusters where they entered."""
    placed = state.cluster >= 0
    start_time = np.full(len(state.cluster), -1, np.int64)
    start_time[placed] = state.starts[state.cluster[placed], state.entry[placed]]
    return GridSchedule(
        start_time=start_time,
        cluster=np.where(placed, state.cluster, -1),
        corrections=int(state.state["corrections"][:-1].sum()),
        queries=int(state.clock["queries"][0]),
    )


def _sites(clusters: Sequence[Cluster], policies: Sequence[LocalPolicy]) -> tuple[NDArray[Any], scores.Score]:
    """Clusters and their policies as the engine wants them, and the score of those that change with time."""
    if not clusters or len(clusters) != len(policies):
        raise ConfigurationError(
            f"{len(clusters)} clusters and {len(policies)} policies; give one policy for each cluster"
        )
    names = [cluster.name for cluster in clusters]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")
    sites = np.zeros(len(clusters), grid.SITE)
    changing: set[scores.Score] = set()
    for site, cluster, policy in zip(sites, clusters, policies, strict=True):
        site["processors"] = cluster.processors
        site["processors_per_node"] = cluster.processors_per_node
        site["node_exclusive"] = cluster.node_exclusive
        site["speed"] = cluster.speed
        site["order"] = _order(policy.order, changing)
        site["backfilling"] = Backfilling[policy.backfilling.upper()]
        site["reservations"] = policy.reservations
        site["queue_as_order"] = policy.backfill_order == AS_QUEUE
        if policy.backfill_order != AS_QUEUE:
            site["backfill_order"] = _backfill_order(policy)
    if len(changing) > 1:
        raise ConfigurationError("the clusters of a grid may have only one order that is a score")
    return sites, changing.pop() if changing else scores.largest_expansion_factor


def _order(order: str | scores.Score, changing: set[scores.Score]) -> int:
    """Order of a local queue as the engine knows it; a score is collected, to be asked at each pass."""
    if isinstance(order, str) and order.upper() in grid.Order.__members__:
        return int(grid.Order[order.upper()])
    changing.add(ORDERS[order] if isinstance(order, str) else order)
    return int(grid.Order.SCORE)


def _backfill_order(policy: LocalPolicy) -> int:
    """Backfill order as the engine knows it."""
    if not isinstance(policy.backfill_order, str):
        raise ConfigurationError(
            f"policy {policy.name!r}: on the clusters of a grid backfill_order is a name, not a score"
        )
    return int(grid.Order[policy.backfill_order.upper()])


def _partners(superscheduler: Superscheduler, clusters: Sequence[Cluster]) -> NDArray[np.bool_]:
    """Whose jobs may go where, without the diagonal."""
    names = [cluster.name for cluster in clusters]
    partners = ~np.eye(len(clusters), dtype=np.bool_)
    if superscheduler.partners is None:
        return partners
    allowed = np.zeros_like(partners)
    for home, others in superscheduler.partners.items():
        for name in (home, *others):
            if name not in names:
                raise ConfigurationError(f"partners: unknown cluster {name!r}; there are {', '.join(names)}")
        allowed[names.index(home), [names.index(name) for name in others]] = True
    return partners & allowed


def _check_jobs(jobs: NDArray[Any], home: NDArray[np.int64], sites: NDArray[Any]) -> None:
    """Refuse homes that do not exist, and times that the slowest cluster would stretch beyond what fits."""
    if len(home) != len(jobs) or (len(home) and not 0 <= home.min() <= home.max() < len(sites)):
        raise ConfigurationError(f"home: give an index of one of the {len(sites)} clusters for each job")
    stretch = sites["speed"].max() / sites["speed"].min()
    if len(jobs) and jobs["estimate"].max() * stretch > LARGEST:
        raise ConfigurationError(
            f"clusters: the slowest is {stretch:g} times slower than the fastest; an estimate of "
            f"{jobs['estimate'].max()} s would exceed {LARGEST} s there"
        )
