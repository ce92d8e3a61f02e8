"""Local policies that decide while jobs are submitted and end, for a host that knows when they do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import counted, online, runtime_prediction
from gridsched.engine.records import FOREVER, LARGEST, Backfilling, Correction, Overrun
from gridsched.engine.reference import pinned
from gridsched.errors import ConfigurationError
from gridsched.policies import scores
from gridsched.policies.local import AS_QUEUE, Conventions, LocalPolicy, order_score, sort_keys

_FIRST_ROOM = 1024
"""Jobs that there is room for at first."""

LABELS = ("user", "group", "queue")
"""What a host may say of a job beside its size and estimate."""

FIRST_TEXT = 2**40
"""Number of the first user, group or queue that is a text."""

_NEEDS = {"recent": "user", "actual": "run_time"}
"""What a kind of prediction looks at."""


class NewJob(NamedTuple):
    """A job that is submitted; times are seconds. What is not known is -1."""

    submit_time: int
    estimate: int
    processors: int
    user: int = -1
    group: int = -1
    queue: int = -1
    run_time: int = -1


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

    needs: frozenset[str] = frozenset()
    """Fields of `NewJob` with a default that it cannot do without."""

    names: Mapping[tuple[str, str], int] = MappingProxyType({})
    """Numbers of users, groups and queues that it knows by texts: by which of these it is, and the text."""

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
        If there is to be more than one pass an instant, or a score cannot be compiled.

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
        if conventions.passes != "instant":
            raise ConfigurationError(
                f"policy {policy.name!r} cannot decide while jobs run: passes are {conventions.passes!r}, "
                "and there is one for all events of an instant"
            )
        self._prediction, self._processors = policy.prediction, processors
        self._order = order_score(policy.order, "order")
        as_queue = policy.backfill_order == AS_QUEUE
        self._tried = None if as_queue else order_score(policy.backfill_order, "backfill_order")
        orders = [self._order, *([] if self._tried is None else [self._tried])]
        looked_at = {name for order in orders for name in scores.SCORE.parameters_of(order)}
        self.needs = frozenset(looked_at & set(LABELS) | {_NEEDS.get(policy.prediction, "")} - {""})
        self._recent = policy.prediction == "recent"
        self._users: dict[int, int] = {}
        overrun = int(Overrun[conventions.overrun.upper()])
        self._predicting = runtime_prediction.PredictionOptions(
            correction=int(Correction[policy.correction.upper()]),
            overrun=overrun,
            pass_per_event=False,
            arrivals_first=False,
            shortest_first=policy.backfill_order == "shortest",
        )
        self._options = counted.CountedOptions(
            backfilling=int(Backfilling[policy.backfilling.upper()]),
            reservations=policy.reservations,
            overrun=overrun,
            pass_per_event=False,
            arrivals_first=False,
            changing=scores.changes_with_time(self._order),
            queue_as_order=as_queue,
        )
        changing = self._options.changing
        self._score = scores.SCORE.compile(self._order if changing else scores.largest_expansion_factor)
        self._jobs = 0
        self._cluster: Any = ()
        self._pinned: Any = None
        self._make_room(_FIRST_ROOM)

    def _make_room(self, jobs: int) -> None:
        """Let there be room for so many jobs."""
        allocate: Any = online.allocate_predicting if self._recent else online.allocate
        larger = allocate(self._processors, jobs)
        for mine, its in zip(larger, self._cluster, strict=False):
            mine[: len(its)] = its
        self._cluster, self._pinned = larger, pinned(larger, self._pinned)
        self._started = np.empty(jobs, np.int64)

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        if submitted:
            self._add(submitted)
        # those that end at one time do so by number, as in the engine
        arguments = self._pinned, len(submitted), np.array(sorted(ended), np.int64), now
        if self._recent:
            count = online.decide_predicting(*arguments, self._predicting, self._started)
        else:
            count = online.decide(*arguments, self._options, self._score, self._started)
            scores.check_order(self._order, self._cluster.state)
        return Decided(self._started[:count].tolist(), ask_again=online.next_time(self._pinned))

    def _add(self, submitted: Sequence[NewJob]) -> None:
        """Write down what is known of new jobs."""
        first, self._jobs = self._jobs, self._jobs + len(submitted)
        if self._jobs > len(self._cluster.jobs):
            self._make_room(2 * self._jobs)
        c = self._cluster
        for j, job in enumerate(submitted, first):
            c.jobs[j] = (job.submit_time, online.NEVER, self._estimate(job), job.processors)
            if self._recent:
                c.limits[j] = job.estimate
                c.users[j] = self._users.setdefault(job.user, len(self._users)) if job.user >= 0 else -1
            else:
                c.labels[j] = (job.user, job.group, job.queue, job.processors, j + 1)
        new = slice(first, self._jobs)
        if self._recent:
            return
        if not self._options.changing:
            c.queue_key[new] = sort_keys(self._order, c.jobs[new], c.labels[new])
        if self._tried is not None:
            c.order_key[new] = sort_keys(self._tried, c.jobs[new], c.labels[new])

    def _estimate(self, job: NewJob) -> int:
        """How long a job is expected to run when it is submitted."""
        if self._prediction == "actual":
            return min(max(job.run_time, 1), LARGEST)
        return min((2 if self._prediction == "double" else 1) * job.estimate, LARGEST)
