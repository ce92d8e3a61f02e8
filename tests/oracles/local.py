"""A cluster whose processors are counted, in plain form: one node with that many cores.

The simulator is that of `tests.oracles.nodes`. Only here there may be one scheduling pass an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracles import nodes
from tests.oracles.orders import Score

REJECTED = -1


class Job(NamedTuple):
    """A job as the cluster sees it; times in seconds, `estimate` >= 1, `run_time` >= 0."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int


class Policy(NamedTuple):
    """A point of the policy space."""

    order: str | Score
    backfilling: str
    reservations: int = 1
    backfill_order: str = "queue"


POLICIES: dict[str, Policy] = {
    "fcfs": Policy("fcfs", "none"),
    "ff": Policy("fcfs", "first_fit"),
    "sjf": Policy("shortest", "none"),
    "easy": Policy("fcfs", "easy"),
    "easy(2)": Policy("fcfs", "easy", reservations=2),
    "sjbf": Policy("fcfs", "easy", backfill_order="shortest"),
    "lxf": Policy("lxf", "easy"),
    "lxwf": Policy("lxwf", "easy"),
    "creasy": Policy("critical", "easy"),
    "conservative": Policy("fcfs", "conservative"),
}
"""The policies that have names."""


def simulate(
    jobs: list[Job],
    processors: int,
    *,
    order: str | Score,
    backfilling: str,
    reservations: int = 1,
    backfill_order: str = "queue",
    overrun: str = "doubling",
    passes: str = "instant",
) -> list[int]:
    """Start times [s] of the jobs on one cluster; -1 for a job that is larger than the cluster.

    Parameters
    ----------
    jobs : list of Job
        By submit time, never decreasing.
    processors : int
        Processors of the cluster.
    order : str or Score
        `fcfs`, `shortest`, `smallest`, `smallest_area`, `lxf`, `lxwf`, or a score.
    backfilling : str
        `none`, `first_fit`, `easy` or `conservative`.
    reservations : int
        How many waiting jobs hold a reservation in a pass of `easy`.
    backfill_order : str
        `queue`, or a name of `order` that is no score.
    overrun : str
        What a job that reaches its expected end is expected to do: `doubling` or `increments`.
    passes : str
        One scheduling pass an `instant`, or one an `event`, or one an event with `arrivals-first`.
    """
    policy = Policy(order, backfilling, reservations, backfill_order)
    return CountedProcessors(jobs, processors, policy, overrun=overrun, passes=passes).simulate().first_start


def simulate_policy(
    jobs: list[Job], processors: int, policy: str, overrun: str = "doubling", passes: str = "instant"
) -> list[int]:
    """Start times [s] of the jobs under a named policy."""
    return simulate(jobs, processors, **POLICIES[policy]._asdict(), overrun=overrun, passes=passes)


class CountedProcessors(nodes.Simulation):
    """A cluster with its whole workload; `more` are fields of `tests.oracles.nodes.Policy`."""

    def __init__(
        self, jobs: list[Job], processors: int, policy: Policy, *, users: Sequence[int] = (), **more: str
    ) -> None:
        assert all(job.run_time >= 0 and job.estimate >= 1 and job.processors >= 1 for job in jobs)
        assert [job.submit_time for job in jobs] == sorted(job.submit_time for job in jobs)
        asked = [nodes.Job(*job[:3], cores=job.processors, most=1) for job in jobs]
        for job, user in zip(asked, users, strict=False):
            job.user = user
        super().__init__([nodes.Node(processors)], asked, nodes.Policy(*policy, **more))  # type: ignore[arg-type]

    def instant(self) -> None:
        if self.policy.passes == "instant":
            super().instant()
            return
        arriving = self.users.enter(self.now)
        if self.arrivals_first:
            self.left = {j for j in self.ending() if self.expected[j] == self.now}
        while (happened := self.process_one(arriving)) or self.is_due():
            started = self.one_pass()
            for j in started:
                self.users.start(j, self.now)
            assert happened or started, "a planned start that never happens"

    def is_due(self) -> bool:
        """Whether a planned job is to start now."""
        return any(time <= self.now for time, _ in self.planned.values())

    def process_one(self, arriving: list[int]) -> bool:
        """Let the next event happen, if there is one."""
        late, ending = self.outrun() if self.track else [], self.ending()
        if ending and not (self.arrivals_first and (late or arriving)):
            self.users.leave(ending[0], self.now, "completed")
            self.complete(ending[0])
        elif late:
            self.correct(late[0])
            self.changed &= not self.is_lazy()
        elif arriving:
            j = arriving.pop(0)
            self.predict(j)
            self.enter(j)
            is_sorted = self.policy.backfill_order != "queue"
            self.changed = not self.is_lazy() or is_sorted or self.size(j) <= self.free()
        else:
            return False
        return True

    def is_lazy(self) -> bool:
        """Whether not all events call for a pass, as where run times are predicted."""
        return self.arrivals_first and self.policy.prediction == "recent"
