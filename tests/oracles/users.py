"""Who submits which job when, who gives up, and who waits for whom, in plain form: part of most oracles.

Whether a job is eligible is worked out anew each time, from what has happened so far.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

NEVER = 10**12
UNKNOWN = NEVER - 1


class Life(Protocol):
    """What of a job is for its user to decide; `after` are (job, kind, delay)."""

    @property
    def submit(self) -> int: ...
    @property
    def gives_up(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    @property
    def after(self) -> Sequence[tuple[int, str, int]]: ...


class Submission(NamedTuple):
    """What of a job is for its user to decide."""

    submit: int
    gives_up: int = NEVER
    failed: bool = False
    after: tuple[tuple[int, str, int], ...] = ()


class Users:
    """The users of some jobs; who drives them says when jobs start, and when and how they leave."""

    def __init__(self, jobs: Sequence[Life], rejected: Collection[int] = ()) -> None:
        self.jobs = jobs
        self.fate = dict.fromkeys(rejected, "rejected")
        self.submitted: set[int] = set()
        self.entered: dict[int, int] = {}
        self.started: dict[int, int] = {}
        self.gone: dict[int, int] = {}

    def start(self, j: int, now: int) -> None:
        self.started.setdefault(j, now)

    def leave(self, j: int, now: int, fate: str) -> None:
        """Note that a job is over: completed, lost, rejected, given up, or never eligible."""
        self.fate[j], self.gone[j] = fate, now

    def met_at(self, on: int, kind: str) -> int:
        """When a dependency is met; UNKNOWN as long as it is not, NEVER if it cannot be any more."""
        fate = self.fate.get(on)
        if kind == "after" and on in self.started:
            return self.started[on]
        if on not in self.gone:
            return UNKNOWN
        is_ok = fate == "completed" and not self.jobs[on].failed
        never = fate == "never eligible" or (kind == "afterok" and not is_ok)
        return NEVER if never or (kind == "afternotok" and is_ok) else self.gone[on]

    def eligible(self, j: int) -> int:
        """When a job may start by its submission and dependencies."""
        times = [self.jobs[j].submit]
        for on, kind, delay in self.jobs[j].after:
            met = self.met_at(on, kind)
            times.append(met if met >= UNKNOWN else met + delay)
        return max(times)

    def pending(self) -> list[int]:
        """Jobs that have not entered."""
        return [j for j in range(len(self.jobs)) if j not in self.entered and j not in self.gone]

    def lose_hope(self, now: int) -> None:
        """Let those be gone that wait for what cannot be any more."""
        while lost := [j for j in self.pending() if j not in self.fate and self.eligible(j) == NEVER]:
            for j in lost:
                self.leave(j, now, "never eligible")

    def enter(self, now: int) -> list[int]:
        """Who enters now; those that were submitted before come first."""
        entering: list[int] = []
        before = -1
        while before != (before := len(self.entered) + len(self.gone)):
            self.lose_hope(now)
            coming = [j for j in self.pending() if self.jobs[j].submit <= now]
            for j in sorted(coming, key=lambda j: (j not in self.submitted, j)):
                self.submitted.add(j)
                if j in self.fate:
                    self.leave(j, now, self.fate[j])
                elif self.eligible(j) <= now:
                    self.entered[j] = now
                    entering.append(j)
        return entering

    def give_up(self, now: int) -> int | None:
        """The first job that has not started and whose user gives up now."""
        for j in sorted(self.submitted - self.gone.keys() - self.started.keys()):
            if self.jobs[j].gives_up <= now:
                self.leave(j, now, "gave up")
                return j
        return None

    def is_due(self, now: int) -> bool:
        """Whether somebody is still to enter or to leave now."""
        self.lose_hope(now)
        return any(time <= now for time in self.times())

    def look(self, now: int) -> tuple[list[int], list[int]]:
        """Who enters and who leaves now: one who gives up may let others enter, before the next one does."""
        entering, leaving = self.enter(now), []
        while (j := self.give_up(now)) is not None:
            leaving.append(j)
            entering += self.enter(now)
        return [j for j in entering if j not in leaving], leaving

    def times(self) -> list[int]:
        """When something is known to happen."""
        found = []
        for j, job in enumerate(self.jobs):
            if j not in self.gone and j not in self.started:
                known = UNKNOWN if j in self.entered else self.eligible(j)
                times = (known if j in self.submitted else job.submit, max(job.gives_up, job.submit))
                found += [time for time in times if time < UNKNOWN]
        return found
