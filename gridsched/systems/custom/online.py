"""What a user's scheduler sees of a cluster that another simulator runs, and what it can do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.overrun import expected_end
from gridsched.engine.records import FOREVER, Overrun
from gridsched.engine.simulator import QUEUED, RUNNING, Action
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.platform import Cluster
from gridsched.policies.local import Conventions
from gridsched.policies.online import Decided, NewJob, Online
from gridsched.systems.custom.simulator import Actions, Nodes

if TYPE_CHECKING:
    from gridsched.systems.custom.scheduler import CustomScheduler

_NO_QUEUES = "there are no local queues behind another simulator"
_UNAVAILABLE = {
    "workload": "jobs are not known before they are submitted",
    "submission": "jobs are not known before they are submitted",
    "nodes": "the hosts of another simulator are identical, and take one job each",
    "predicted_start": _NO_QUEUES,
    "snapshot": "another simulator does not go back in time",
    "restore": "another simulator does not go back in time",
    "advance": "the other simulator advances by itself",
    "schedule": "the other simulator has the results",
    "run": "the other simulator has the results",
}
"""What `Simulator` has and this has not, with reasons."""


class OnlineSimulator(Actions):
    """A cluster of another simulator, seen through the interface of `Simulator`.

    A job that is killed runs until the other simulator says that it has ended.
    """

    def __init__(self, processors: int, conventions: Conventions) -> None:
        self.now = 0
        self.queue: NDArray[Any] = np.empty(0, QUEUED)
        self.running: NDArray[Any] = np.empty(0, RUNNING)
        self.free = np.array([processors], np.int64)
        self.clusters = (Cluster(processors=processors, name="hosts"),)
        self.memory: dict[str, Any] = {}
        self._overrun = int(Overrun[conventions.overrun.upper()])
        self._estimates: dict[int, int] = {}
        self._jobs = 0
        self._calls: set[int] = set()
        self._done: dict[int, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in _UNAVAILABLE:
            raise ConfigurationError(f"sim.{name} cannot be used here: {_UNAVAILABLE[name]}")
        raise AttributeError(f"a simulator has no {name!r}")

    # --- what happens ---------------------------------------------------------------------------------

    def go_to(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> bool:
        """Take notice of what has happened; whether anything has."""
        self.now, self._done = now, {}
        gone = np.isin(self.running["job"], ended)
        self.free[0] += self.running["processors"][gone].sum()
        self.running = self.running[~gone]
        over = np.flatnonzero(self.running["expected_end"] <= now)
        for k in over:
            begun, estimate = int(self.running[k]["start_time"]), self._estimates[int(self.running[k]["job"])]
            self.running[k]["expected_end"] = expected_end(begun, estimate, self._overrun, now + 1)
        new = np.empty(len(submitted), QUEUED)
        for place, job in enumerate(submitted):
            new[place] = (self._jobs, *job[:3], job.processors, job.user, job.group, job.queue, 0)
            self._estimates[self._jobs] = job.estimate
            self._jobs += 1
        self.queue = np.concatenate([self.queue, new])
        due = {time for time in self._calls if time <= now}
        self._calls -= due
        return bool(len(new) or len(ended) or len(over) or due)

    @property
    def decided(self) -> Decided:
        """What was done since it went to the present time."""
        ends = int(self.running["expected_end"].min(initial=FOREVER))
        started, rejected, killed = (
            self._done.get(kind, ()) for kind in (Action.START, Action.REJECT, Action.KILL)
        )
        return Decided(started, rejected, killed, ask_again=min([ends, *self._calls]))

    # --- what can be done -----------------------------------------------------------------------------

    def _act(self, kind: int, job: int, cluster: int = -1, time: int = 0, nodes: Nodes = None) -> None:
        """Take an action."""
        if nodes is not None:
            raise ConfigurationError(f"sim.start(nodes=...) cannot be used here: {_UNAVAILABLE['nodes']}")
        match kind:
            case Action.START:
                self._start(job, cluster)
            case Action.REJECT:
                self._taken(job, "be rejected")
                self._leave(job, Action.REJECT)
            case Action.KILL:
                if job not in self.running["job"]:
                    raise ScheduleError(f"job {job} cannot be killed at {self.now} s: it does not run")
                self._done.setdefault(Action.KILL, []).append(int(job))
            case Action.REQUEUE:
                raise ConfigurationError(
                    "sim.kill(requeue=True) cannot be used here: a killed job is lost there"
                )
            case Action.CALL:
                if time <= self.now:
                    raise ScheduleError(f"cannot call at {time} s: it is {self.now} s already")
                self._calls.add(int(time))
            case Action.SEND | Action.WITHDRAW:
                raise ConfigurationError(f"sim.{Action(kind).name.lower()} cannot be used here: {_NO_QUEUES}")
            case _:
                raise ScheduleError(
                    f"job {job} cannot have action {kind} at {self.now} s: there is no such action"
                )

    def _start(self, job: int, cluster: int) -> None:
        """Start a job of the queue."""
        if cluster != 0:
            raise ScheduleError(f"job {job} cannot start at {self.now} s: there is one cluster, 0")
        waiting = self._taken(job, "start")
        taken, free = int(waiting["processors"]), int(self.free[0])
        if taken > free:
            raise ScheduleError(
                f"job {job} cannot start at {self.now} s: it takes {taken} processors, and {free} are free"
            )
        end = self.now + int(waiting["estimate"])
        self.running = np.append(self.running, np.array([(job, 0, taken, self.now, end)], RUNNING))
        self.free[0] -= taken
        self._leave(job, Action.START)

    def _taken(self, job: int, verb: str) -> Any:
        """The record of a job that waits."""
        place = np.flatnonzero(self.queue["job"] == job)
        if not len(place):
            raise ScheduleError(f"job {job} cannot {verb} at {self.now} s: it does not wait in the queue")
        return self.queue[place[0]]

    def _leave(self, job: int, kind: Action) -> None:
        """Take a job out of the queue."""
        self.queue = self.queue[self.queue["job"] != job]
        self._done.setdefault(kind, []).append(int(job))


class OnlineCustom(Online):
    """A scheduler of a user that decides for another simulator."""

    def __init__(self, scheduler: CustomScheduler, processors: int, conventions: Conventions) -> None:
        self._scheduler, self._decision = scheduler, scheduler.decision
        self._sim = OnlineSimulator(processors, conventions)

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        sim = self._sim
        if sim.go_to(now, submitted, ended):
            if self._decision is None:
                self._scheduler.ask(sim)
            else:
                seen = (sim.queue, sim.running, sim.free.copy())
                for action in self._decision.actions(now, *seen, self._scheduler.numbers()).tolist():
                    sim._act(*action)
        return sim.decided
