"""Local policies that decide while jobs are submitted and end, for a host that knows when they do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gridsched.engine import counted, online
from gridsched.engine.records import FOREVER, LARGEST, Backfilling, Overrun
from gridsched.engine.reference import pinned
from gridsched.errors import ConfigurationError
from gridsched.policies import scores
from gridsched.policies.local import AS_QUEUE, Conventions, LocalPolicy, order_score, sort_keys

_FIRST_ROOM = 1024
"""Jobs that there is room for at first."""

_UNKNOWN = ("user", "group", "queue")
"""What a score may look at, and a host does not send."""

_CANNOT = {
    "actual": "it needs run times, which nobody knows before jobs end",
    "recent": "it predicts run times by user, and users are not told",
}
"""Why predictions are refused."""


class NewJob(NamedTuple):
    """A job that is submitted; times are seconds. Who is not told is -1."""

    submit_time: int
    estimate: int
    processors: int
    user: int = -1
    group: int = -1
    queue: int = -1


@dataclass(frozen=True)
class Decided:
    """What is to be done now: jobs by their numbers, from 0 on in order of submission.

    Parameters
    ----------
    started, rejected, killed : sequence of int
        Jobs that start, never run, or are ended.
    ask_again : int
        When it wants to be asked even if nothing happens [s]; FOREVER for never.
    """

    started: Sequence[int] = ()
    rejected: Sequence[int] = ()
    killed: Sequence[int] = ()
    ask_again: int = FOREVER


class Online(ABC):
    """Decides about the jobs of one cluster while they are submitted and end."""

    @abstractmethod
    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now.

        Parameters
        ----------
        now : int
            Present time, seconds; never before that of the call before.
        submitted : sequence of NewJob
            Jobs that have been submitted since; none is larger than the cluster.
        ended : sequence of int
            Running jobs that have ended since.
        """


class OnlinePolicy(Online):
    """A local policy; its passes and plans are those of the engine.

    Parameters
    ----------
    policy : LocalPolicy
        The policy.
    processors : int
        Of the cluster.
    conventions : Conventions, optional
        What becomes of exceeded estimates; passes can only be "instant".

    Raises
    ------
    ConfigurationError
        If the policy needs what is not known while jobs run, or a score cannot be compiled.

    Examples
    --------
    >>> from gridsched.policies.local import named_policy
    >>> easy = OnlinePolicy(named_policy("easy"), 4)
    >>> easy.decide(0, [NewJob(0, 60, 3), NewJob(0, 90, 2), NewJob(0, 60, 1)], [])
    Decided(started=[0, 2], rejected=(), killed=(), ask_again=60)
    >>> easy.decide(50, [], [0]).started
    [1]
    """

    def __init__(self, policy: LocalPolicy, processors: int, conventions: Conventions | None = None) -> None:
        conventions = conventions or Conventions()
        self._order = order_score(policy.order, "order")
        as_queue = policy.backfill_order == AS_QUEUE
        self._tried = None if as_queue else order_score(policy.backfill_order, "backfill_order")
        _check(policy, conventions, [self._order, *([] if self._tried is None else [self._tried])])
        self._factor = 2 if policy.prediction == "double" else 1
        changing = scores.changes_with_time(self._order)
        self._options = counted.CountedOptions(
            backfilling=int(Backfilling[policy.backfilling.upper()]),
            reservations=policy.reservations,
            overrun=int(Overrun[conventions.overrun.upper()]),
            pass_per_event=False,
            arrivals_first=False,
            changing=changing,
            queue_as_order=as_queue,
        )
        self._score = scores.SCORE.compile(self._order if changing else scores.largest_expansion_factor)
        self._cluster = online.allocate(processors, _FIRST_ROOM)
        self._pinned = pinned(self._cluster)
        self._started = np.empty(_FIRST_ROOM, np.int64)
        self._jobs = 0

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        if submitted:
            self._add(submitted)
        told = np.array(ended, np.int64)
        count = online.decide(
            self._pinned, len(submitted), told, now, self._options, self._score, self._started
        )
        scores.check_order(self._order, self._cluster.state)
        return Decided(self._started[:count].tolist(), ask_again=online.next_time(self._pinned))

    def _add(self, submitted: Sequence[NewJob]) -> None:
        """Write down what is known of new jobs."""
        first, self._jobs = self._jobs, self._jobs + len(submitted)
        if self._jobs > len(self._cluster.jobs):
            self._cluster = online.grow(self._cluster, 2 * self._jobs)
            self._pinned = pinned(self._cluster, self._pinned)
            self._started = np.empty(2 * self._jobs, np.int64)
        c = self._cluster
        for j, job in enumerate(submitted, first):
            c.jobs[j] = (
                job.submit_time,
                online.NEVER,
                min(self._factor * job.estimate, LARGEST),
                job.processors,
            )
            c.labels[j]["processors"], c.labels[j]["number"] = job.processors, j + 1
        new = slice(first, self._jobs)
        if not self._options.changing:
            c.queue_key[new] = sort_keys(self._order, c.jobs[new], c.labels[new])
        if self._tried is not None:
            c.order_key[new] = sort_keys(self._tried, c.jobs[new], c.labels[new])


def _check(policy: LocalPolicy, conventions: Conventions, orders: Sequence[scores.Score]) -> None:
    """Refuse a policy that needs what is not known while jobs run."""
    reason = _CANNOT.get(policy.prediction, "")
    for order in orders:
        for name in scores.SCORE.parameters_of(order):
            if name in _UNKNOWN:
                reason = f"a score of it looks at {name}, which is not told"
    if conventions.passes != "instant":
        reason = f"passes are {conventions.passes!r}, and there is one for all events of an instant"
    if reason:
        raise ConfigurationError(f"policy {policy.name!r} cannot decide while jobs run: {reason}")
