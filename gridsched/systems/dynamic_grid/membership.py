"""When clusters belong to a dynamic grid: stays, leases and their renewal, churn.

A stay begins when a cluster joins and ends when it tells the grid that it leaves. With leases, the grid knows
at any time how long the cluster stays at least; a lease that is not renewed when it ends ends like a leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.workloads.columns import LONGEST_TIME

_MAX_RENEWALS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Stay:
    """A time in which a cluster belongs to the grid.

    Parameters
    ----------
    begin : int
        When it joins, seconds.
    end : int, optional
        When it leaves; it stays for good if not given.
    leases : sequence of int
        Ends of its leases, increasing: known one after the other, each from the end of the one before, when
        the lease is renewed. The last one is the end of the stay. Without leases nobody knows when it leaves.

    Raises
    ------
    ConfigurationError
        If times are no whole seconds or in the wrong order.
    """

    begin: int = 0
    end: int | None = None
    leases: Sequence[int] = ()

    def __post_init__(self) -> None:
        for key, time in (("begin", self.begin), ("end", self.end), *(("leases", t) for t in self.leases)):
            if time is not None and (not isinstance(time, Integral) or not 0 <= int(time) <= LONGEST_TIME):
                raise ConfigurationError(
                    f"stay: {key} is {time!r}; use whole seconds from 0 to {LONGEST_TIME}"
                )
        if self.end is not None and self.end <= self.begin:
            raise ConfigurationError(f"stay: it ends at {self.end} s, but begins at {self.begin} s")
        for before, after in pairwise([self.begin, *self.leases]):
            if after <= before:
                raise ConfigurationError(
                    f"stay: a lease ends at {after} s, but begins at {before} s; give increasing ends"
                )
        if self.leases and self.leases[-1] != self.end:
            raise ConfigurationError(
                f"stay: the last lease ends at {self.leases[-1]} s, the stay at {self.end} s; make them equal"
            )


Membership = Mapping[str, Sequence[Stay]]
"""Stays of clusters by name. A cluster that is not named belongs to the grid from the beginning, for good."""


def draw_membership(
    names: Sequence[str],
    horizon: int,
    *,
    mean_stay: float,
    mean_absence: float,
    seed: int = 0,
    lease: int | None = None,
) -> dict[str, list[Stay]]:
    """Stays of clusters that leave and come back at random.

    All clusters belong to the grid at time 0 and after the horizon, so that no job is left over for want of
    clusters. Without leases stays and absences last exponentially distributed times, rounded up to whole
    seconds. With leases, each is renewed with the probability exp(-lease / mean stay), which makes the mean
    number of leaves nearly the same; a cluster whose lease ends after the horizon stays.

    Parameters
    ----------
    names : sequence of str
        The clusters. Each has random numbers of its own, which do not depend on the other clusters.
    horizon : int
        Time after which no cluster leaves, seconds.
    mean_stay, mean_absence : float
        Mean times, seconds; positive.
    seed : int
        Of the random numbers.
    lease : int, optional
        Length of the leases, seconds.

    Raises
    ------
    ConfigurationError
        If a time is not positive.
    """
    for key, seconds in (("mean_stay", mean_stay), ("mean_absence", mean_absence)):
        if not (np.isfinite(seconds) and seconds > 0):
            raise ConfigurationError(f"{key} is {seconds}; use a positive number of seconds")
    if lease is not None and lease < 1:
        raise ConfigurationError(f"lease is {lease}; use 1 second or more")
    if not 0 <= horizon <= LONGEST_TIME:
        raise ConfigurationError(f"horizon is {horizon}; use 0 to {LONGEST_TIME} seconds")
    children = np.random.SeedSequence(seed).spawn(len(names))
    return {
        name: _draw_stays(np.random.default_rng(child), horizon, mean_stay, mean_absence, lease)
        for name, child in zip(names, children, strict=True)
    }


def _draw_stays(
    random: np.random.Generator, horizon: int, mean_stay: float, mean_absence: float, lease: int | None
) -> list[Stay]:
    """Stays of one cluster."""
    stays: list[Stay] = []
    begin = 0
    while begin <= horizon:
        if lease is None:
            end = begin + max(1, int(np.ceil(random.exponential(mean_stay))))
            leases: list[int] = []
        else:
            count = int(random.geometric(-np.expm1(-lease / mean_stay)))
            end = begin + lease * min(count, _MAX_RENEWALS)
            leases = list(range(begin + lease, min(end, horizon + lease) + 1, lease))
        if end > horizon:
            break
        stays.append(Stay(begin=begin, end=end, leases=leases))
        begin = end + max(1, int(np.ceil(random.exponential(mean_absence))))
    # the last stay has no end; what leases it would have is of no interest
    return [*stays, Stay(begin=begin)]


def member_events(names: Sequence[str], membership: Membership | None) -> NDArray[np.void]:
    """What clusters do, in order of time and cluster, as the engine takes it.

    Raises
    ------
    ConfigurationError
        If a cluster is unknown, or its stays overlap or touch.
    """
    stays = membership or {}
    for name in stays:
        if name not in names:
            raise ConfigurationError(f"membership: unknown cluster {name!r}; there are {', '.join(names)}")
    rows: list[tuple[int, int, int, int, int]] = []
    for i, name in enumerate(names):
        own = sorted(stays.get(name, [Stay()]), key=lambda stay: stay.begin)
        for before, after in pairwise(own):
            if before.end is None or before.end >= after.begin:
                raise ConfigurationError(
                    f"membership: cluster {name!r} joins at {after.begin} s, but has not left by then; "
                    "let stays end before the next begins"
                )
        for stay in own:
            ends = [*stay.leases] or [FOREVER]
            rows.append((int(stay.begin), i, dynamic_state.JOIN, int(ends[0]), -1))
            rows += [(int(old), i, dynamic_state.RENEW, int(new), -1) for old, new in pairwise(ends)]
            if stay.end is not None:
                rows.append((int(stay.end), i, dynamic_state.LEAVE, int(stay.end), -1))
    rows.sort()
    return np.array(rows, dynamic_state.EVENT)
