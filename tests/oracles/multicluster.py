"""Least load and MUSCLE over clusters with local policies, in plain form: the oracle of `multicluster`.

Clusters are those of `tests.oracles.local`; what MUSCLE allocates is left to the oracle of its algorithms. A
job is handed over when it arrives. Resources are sets of numbers. Jobs run at least 1 s, since a round is
over before anything else happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.oracles.local import REJECTED, Cluster, Job, Policy
from tests.oracles.packing import NaiveCluster, allocate


class DueJob(NamedTuple):
    """A job with its deadline; run time and estimate [s] are those on every cluster."""

    job: Job
    due: int


class Resize(NamedTuple):
    """From a time on a cluster has so many processors, the lowest ones."""

    time: int
    cluster: int
    processors: int


class Multicluster:
    """The state of a simulation; jobs are named by their index."""

    def __init__(
        self,
        jobs: Sequence[DueJob],
        clusters: Sequence[tuple[int, Policy]],
        changes: Sequence[Resize],
        overrun: str,
        dispatcher: str,
        draw: Callable[[int, int], int],
    ) -> None:
        assert dispatcher in ("muscle", "dll")
        self.jobs = jobs
        self.clusters = [Cluster(processors, policy, overrun) for processors, policy in clusters]
        self.changes = list(changes)
        self.dispatcher = dispatcher
        self.draw = draw
        self.rounds = 0
        self.coming = list(range(len(jobs)))
        self.numbers: list[dict[int, int]] = [{} for _ in clusters]
        self.held: list[dict[int, set[int]]] = [{} for _ in clusters]

    def run(self) -> list[tuple[int, int]]:
        """Cluster and start of each job."""
        while instants := self.instants():
            now = min(instants)
            for m, cluster in enumerate(self.clusters):
                cluster.now = now
                self.go_on(m)
            changed, again = self.change(now)
            arrived = again + [j for j in self.coming if self.jobs[j].job.submit_time == now]
            self.coming = [j for j in self.coming if j not in arrived]
            if not arrived and not changed:
                continue
            given = self.dispatch(arrived, now) if arrived else {}
            self.rounds += 1
            for m, cluster in enumerate(self.clusters):
                own = [j for j, chosen in given.items() if chosen == m]
                for j in own:
                    self.numbers[m][j] = cluster.enter(self.jobs[j].job)
                if own or m in changed:
                    self.schedule(m)
        places: dict[int, tuple[int, int]] = {}
        for m, numbers in enumerate(self.numbers):
            places |= {j: (m, self.clusters[m].start[number]) for j, number in numbers.items()}
        assert all(start != REJECTED for _, start in places.values())
        return [places[j] for j in range(len(self.jobs))]

    def instants(self) -> list[int]:
        happening = [time for cluster in self.clusters for time in cluster.future_instants()]
        arriving = [self.jobs[j].job.submit_time for j in self.coming]
        return happening + arriving + [change.time for change in self.changes]

    def go_on(self, m: int) -> None:
        """Ends, corrections and planned starts of this instant, and the pass that follows."""
        cluster = self.clusters[m]
        ended = cluster.completions_now()
        for number in ended:
            cluster.complete(number)
            del self.held[m][number]
        # MUSCLE asks when jobs are expected to end, also where the local policy does not look at it
        outrun = cluster.overruns_now()
        for number in outrun:
            cluster.correct(number)
        if ended or (outrun and cluster.uses_expected_ends()) or cluster.start_is_planned_now():
            self.schedule(m)

    def schedule(self, m: int) -> None:
        """A scheduling pass; jobs take the lowest resources that are free, in order of entry."""
        cluster = self.clusters[m]
        cluster.schedule()
        for number in sorted(set(cluster.running) - set(self.held[m])):
            self.held[m][number] = self.lowest(m, self.held[m], self.size(m, number))

    def size(self, m: int, number: int) -> int:
        return next(self.jobs[j].job.processors for j, own in self.numbers[m].items() if own == number)

    def lowest(self, m: int, held: dict[int, set[int]], size: int) -> set[int]:
        taken = {r for own in held.values() for r in own}
        return set([r for r in range(self.clusters[m].processors) if r not in taken][:size])

    def change(self, now: int) -> tuple[set[int], list[int]]:
        """Clusters that change, and the jobs that become too large for them."""
        changed, again = set(), []
        while self.changes and self.changes[0].time == now:
            change = self.changes.pop(0)
            m, cluster = change.cluster, self.clusters[change.cluster]
            changed.add(m)
            cluster.processors = change.processors
            for number in list(cluster.waiting):
                if cluster.jobs[number].processors > change.processors:
                    j = next(j for j, own in self.numbers[m].items() if own == number)
                    again.append(j)
                    del self.numbers[m][j]
                    cluster.waiting.remove(number)
                    cluster.planned.pop(number, None)
                    cluster.arrived_since_pass = [n for n in cluster.arrived_since_pass if n != number]
            for number, own in self.held[m].items():
                here = len([r for r in own if r < change.processors])
                cluster.jobs[number] = cluster.jobs[number]._replace(processors=here)
            cluster.corrected_since_pass = True
        return changed, again

    def dispatch(self, arrived: list[int], now: int) -> dict[int, int]:
        """Cluster of each job, in the order in which they are handed over."""
        if self.dispatcher == "dll":
            added = [0.0] * len(self.clusters)
            chosen = {}
            for j in arrived:
                job = self.jobs[j].job
                able = [m for m, c in enumerate(self.clusters) if c.processors >= job.processors]
                loads = {m: self.load(m) + added[m] for m in able}
                chosen[j] = min(able, key=lambda m: (loads[m], m))
                added[chosen[j]] += job.estimate * job.processors / self.clusters[chosen[j]].processors
            return chosen
        seeds = allocate(
            [self.jobs[j].job.processors for j in arrived],
            [[self.jobs[j].job.estimate for j in arrived] for _ in self.clusters],
            [[self.slack(j) for j in arrived] for _ in self.clusters],
            [NaiveCluster(self.free(m, now), self.workload(m)) for m in range(len(self.clusters))],
            lambda equals: self.draw(self.rounds, equals),
        )
        return {arrived[k]: seed.cluster for k, seed in seeds.items()}

    def slack(self, j: int) -> int:
        job, due = self.jobs[j]
        return due - job.estimate - job.submit_time

    def load(self, m: int) -> float:
        cluster = self.clusters[m]
        there = cluster.running + cluster.waiting
        work = sum(cluster.jobs[number].estimate * self.size(m, number) for number in there)
        return work / cluster.processors

    def workload(self, m: int) -> list[tuple[int, int, int]]:
        waiting = [j for j, number in self.numbers[m].items() if number in self.clusters[m].waiting]
        jobs = [self.jobs[j].job for j in waiting]
        slacks = [max(self.slack(j), 1) for j in waiting]
        return [(job.estimate, job.processors, slack) for job, slack in zip(jobs, slacks, strict=True)]

    def free(self, m: int, now: int) -> list[int]:
        """When each resource is left by the jobs that the cluster has, if all estimates are right."""
        cluster = self.clusters[m]
        left = [now] * cluster.processors
        ahead, held = cluster.as_expected(), dict(self.held[m])
        for number in cluster.running:
            for r in held[number]:
                if r < cluster.processors:
                    left[r] = cluster.expected_end[number]
        while ahead.waiting:
            ahead.now = min(ahead.future_instants())
            for number in ahead.completions_now():
                ahead.complete(number)
                del held[number]
            ahead.schedule()
            for number in sorted(set(ahead.running) - set(held)):
                held[number] = self.lowest(m, held, ahead.jobs[number].processors)
                for r in held[number]:
                    left[r] = ahead.now + ahead.jobs[number].estimate
        return left
