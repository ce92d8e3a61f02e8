"""Schedulers as users write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gridsched as gs


class Fcfs(gs.CustomScheduler):
    """First come, first served."""

    def decide(self, sim: gs.Simulator) -> None:
        """Start jobs up to the first that does not fit."""
        while len(sim.queue) and sim.queue["processors"][0] <= sim.free[0]:
            sim.start(sim.queue["job"][0])


class Easy(gs.CustomScheduler):
    """EASY backfilling."""

    def decide(self, sim: gs.Simulator) -> None:
        """Start jobs that do not delay the first that does not fit."""
        while len(sim.queue) and sim.queue["processors"][0] <= sim.free[0]:
            sim.start(sim.queue["job"][0])
        free = int(sim.free[0])
        if len(sim.queue) < 2 or free == 0:
            return
        waiting = sim.queue[["job", "processors", "estimate"]].tolist()
        shadow, extra = sim.now, free - waiting[0][1]
        for end, processors in sorted(sim.running[["expected_end", "processors"]].tolist()):
            if extra >= 0 and end > shadow:
                break
            shadow, extra = end, extra + processors
        for job, processors, estimate in waiting[1:]:
            in_time = sim.now + estimate <= shadow
            if processors <= free and (in_time or processors <= extra):
                sim.start(job)
                free -= processors
                extra -= 0 if in_time else processors


class CompiledEasy(gs.CustomScheduler):
    """EASY backfilling, compiled."""

    @gs.compiled
    @staticmethod
    def decide(now: Any, queue: Any, running: Any, free: Any, parameters: Any, actions: Any) -> int:
        """Start jobs that do not delay the first that does not fit."""
        count, idle, shadow, extra = 0, free[0], -1, 0
        for place in range(len(queue)):
            job = queue[place]
            in_time = shadow < 0 or now + job["estimate"] <= shadow
            if job["processors"] <= idle and (in_time or job["processors"] <= extra):
                actions[count]["kind"], actions[count]["cluster"] = gs.Action.START, 0
                actions[count]["job"] = job["job"]
                count += 1
                idle -= job["processors"]
                extra -= 0 if in_time else job["processors"]
            elif shadow < 0:
                ends = [(each["expected_end"], each["processors"]) for each in running]
                ends += [(now + each["estimate"], each["processors"]) for each in queue[:place]]
                ends.sort()
                shadow, extra = now, idle - job["processors"]
                for end, processors in ends:
                    if extra >= 0 and end > shadow:
                        break
                    shadow, extra = end, extra + processors
        return count


class Eager(gs.CustomScheduler):
    """First fit, by trying: what does not fit raises an error."""

    def decide(self, sim: gs.Simulator) -> None:
        """Start every job that fits, in order of submission."""
        for job in sim.queue["job"].tolist():
            try:
                sim.start(job)
            except gs.GridschedError:
                continue


@dataclass(frozen=True)
class ShortestWait(gs.CustomScheduler):
    """A grid scheduler: a job goes to the cluster with the earliest predicted start, or waits.

    Parameters
    ----------
    patience : int
        Predicted wait [s] from which on a job waits for news.
    """

    patience: int = 600

    def decide(self, sim: gs.Simulator) -> None:
        """Send each job, or let it wait."""
        for job in sim.queue["job"].tolist():
            known = [(sim.predicted_start(job, m), m) for m in range(len(sim.clusters))]
            start, cluster = min(each for each in known if each[0] >= 0)
            if start <= sim.now + self.patience:
                sim.send(job, cluster)
