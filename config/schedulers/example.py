"""Schedulers of one's own, for studies: `scheduler: config/schedulers/example.py:Easy`."""

from dataclasses import dataclass

import gridsched as gs


@dataclass(frozen=True)
class Easy(gs.CustomScheduler):
    """EASY backfilling that looks at the first jobs of the queue.

    Parameters
    ----------
    depth : int
        Jobs that are looked at.
    """

    depth: int = 1000

    def decide(self, sim: gs.Simulator) -> None:
        """Start what does not delay the first job that does not fit."""
        while len(sim.queue) and sim.queue["processors"][0] <= sim.free[0]:
            sim.start(sim.queue["job"][0])
        free = int(sim.free[0])
        if len(sim.queue) < 2 or free == 0:
            return
        waiting = sim.queue[["job", "processors", "estimate"]][: self.depth].tolist()
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


@dataclass(frozen=True)
class ShortestWait(gs.CustomScheduler):
    """A job goes to the cluster with the earliest predicted start, or waits for news.

    Parameters
    ----------
    patience : int
        Predicted wait [s] above which a job waits.
    """

    patience: int = 600

    def decide(self, sim: gs.Simulator) -> None:
        """Send each job, or let it wait."""
        for job in sim.queue["job"].tolist():
            known = [(sim.predicted_start(job, m), m) for m in range(len(sim.clusters))]
            start, cluster = min(each for each in known if each[0] >= 0)
            if start <= sim.now + self.patience:
                sim.send(job, cluster)
