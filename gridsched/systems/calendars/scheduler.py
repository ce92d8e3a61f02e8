"""Imprecise calendars under a tree of managers: when and where jobs run, and which reservations are granted.

Hollingsworth and Maneewongvatana, "Imprecise calendars: an approach to scheduling computational grids" (ICDCS
1999), section 2. Nodes are the processors of a cluster. Where the paper is silent or leaves a choice:

slots
    All calendars of a tree have the same slots, which begin at the same times (the paper shares the
    fundamental slot only), so that jobs which span clusters start together. The first slot begins at the last
    multiple of the fundamental slot that is not after the first submission. When a level is down to its
    low-water mark, the first slot of the level above is split. The last level is open: it grows at its far
    end as jobs need it.
requests
    A job takes whole slots: first fit is the earliest slot that begins now or later from which on enough
    slots for its estimate have its nodes free. Jobs start when a slot begins. In slots that are not
    fundamental the commitments together stay within the resource threshold, unless there is one job only.
moves
    When a slot is split, jobs keep the parts that they touch. After splits, early exits and displacements
    each waiting job, in order of submission, moves to its first fit if that is earlier, as in the
    conservative backfilling of Feitelson and Weil (1998). Managers above move their jobs before those below.
    An event in one cluster makes its own managers move their jobs only; a split, all.
reservations
    A job may ask for a start at a multiple of the fundamental slot. It gets it exactly, or not at all: then
    it receives the earliest later time that was possible. The local manager is asked first, then its
    parent for all clusters below it, and so on. In a coarse slot it holds the whole slot, and starts at its
    time.
overruns
    A job that is not done when its slots are over takes one fundamental slot after the other. Where
    nodes are missing, waiting jobs without reservation that were to start then give way and are placed
    again; where that is not enough, the job is killed, or suspended: its rest is a new request with the same
    estimate. With estimates that are upper bounds no planned start is ever put off.
managers
    A leaf manager has one cluster, where users submit jobs. A job goes up to the parent if the rule of its
    manager says so (`promote_processors`, `promote_duration`), if it needs more nodes than the manager has,
    or if its first fit is later than `bump` seconds (and `bump_stretch` times its estimate) from now and
    managers above have an earlier one. A
    manager above places a job at the sub-manager with the earliest first fit; if only some clusters together
    have the nodes, the job spans these, with parts as large as possible on one after the other.
shadow calendars
    With a period, a manager knows the calendars of the clusters below it as they were at the last
    multiple of the period, and what it reserved since. It asks the cluster that it chooses; if that
    declines, it says when it could, and the manager chooses again. To reserve, all parts must agree, else
    those that did are given back (two phases). A job stays with the manager that placed it.
balance of trade
    Node-seconds that a cluster consumed elsewhere less those that it supplied to others, counted as jobs
    end. Above `borrow_limit` jobs of that home are neither promoted nor bumped; what is larger than its home
    still goes up.
whole nodes
    The nodes of a calendar are the processors of its cluster. Where a cluster gives whole nodes to jobs, a
    job, or a part of one that spans clusters, takes as many of them as make up whole nodes there: these count
    for what is free, for the resource threshold and for the balance of trade. What goes up is decided by
    what a job asks for.
speed
    Run times and estimates are divided by the speed of the cluster (the slowest one of the manager whose
    clusters a job spans) and rounded up.
outages
    Processors that go down or are drained leave all slots, since nobody knows for how long, until they are
    back; an announced window takes its processors out of the slots that it touches, as a job of its own that
    counts for the resource threshold. The nodes that the threshold keeps back stay as many. Which processors
    a running job has is known only where nodes fail: the lowest, first those that no announced window takes
    before its planned end. What a running job has of processors that will be out counts once. Drained
    processors serve their jobs to the end.
who is hit
    A job on a node that goes down, or that still runs when a window begins, is killed; its rest from its last
    checkpoint is a new request at its manager. Waiting jobs whose slots have fewer nodes than are held lose
    them. At one instant jobs are placed again in this order: killed jobs that keep their place, reservations,
    others, killed jobs that go to the end; within each, in the order in which they made their requests. A
    reservation that cannot be kept becomes an ordinary job, and is counted. One that spans clusters takes
    the checkpoints of the first cluster of the manager below which it runs.
too few nodes
    All managers know at once how many nodes are up (shadow calendars tell what is booked). A request for
    more goes up; a job for which even the root has too few waits there without a place, until something
    changes. If nothing ever does, it starves.
patience and dependencies
    A job makes its request when it is eligible; if the start that it would reserve is over by then, it is
    refused. When a user gives up before the first start, the slots of the job are released, and others may
    move forward. A job that is killed at the end of its slots did not end well.

Counts: a message is a request sent up, an inquiry or its answer, a reserve request or its answer, a part that
is given back, a place from above the local manager that is given up in a move or by a user, or one shadow
calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster, Platform
from gridsched.results import NO_TIME, SEGMENT, Schedule, Variable, described, of_tasks
from gridsched.submission import Submission
from gridsched.systems.base import Scheduler, check_choices, check_values
from gridsched.systems.calendars.kernels.bookings import NOWHERE, REQUEST, Status
from gridsched.systems.calendars.measures import calendar_measures
from gridsched.systems.calendars.planning import (
    CalendarSchedule,
    Interruptions,
    schedule_calendars,
    together,
)
from gridsched.systems.calendars.tree import (
    Level,
    Manager,
    OverrunName,
    PlacementName,
    RefusedName,
    SlotPlan,
    check_levels,
    clusters_of,
    describe,
    reach,
    tree_of_levels,
)
from gridsched.systems.job_outcomes import (
    JobOutcome,
    lifecycles_of,
    needs_lifecycles,
    outage_variables,
    outages_of,
    outcome_variables,
)


def _placements(tree: Manager | Cluster) -> set[str]:
    """How the managers of a tree place jobs."""
    if isinstance(tree, Cluster):
        return set()
    return {str(tree.placement)}.union(*map(_placements, tree.children))


@dataclass(frozen=True, kw_only=True)
class Calendars(Scheduler):
    """Slots and rules of the calendars of a tree, and the tree.

    Without `managers`, every cluster has a local manager below one manager of all clusters, and a job goes up
    by its size relative to its cluster, or by its estimate.

    Parameters
    ----------
    slots : SlotPlan
        The slots.
    low_water : float
        Share of the slots of a level at which one of the level above is split, from 0 to below 1; rounded
        down to whole slots.
    threshold : float
        Resource threshold: largest share of the nodes that jobs may take in advance in slots which are not
        fundamental, above 0, at most 1.
    overrun : {"suspend", "kill"}
        What happens to a job that is not done when its slots are over, and for which there is no space.
    refused : {"reject", "queue"}
        What happens to a job whose reservation is refused.
    promote_share : float
        A job goes up if it asks for more than this share of the processors of its cluster.
    promote_duration : int
        A job goes up if its estimate, as on its cluster, is at least this number of seconds.
    placement : {"unbiased", "lowest"}
        See `Manager`; of the manager of all clusters.
    levels : sequence of Level, optional
        Levels of managers instead, from those of the clusters up to the one above all. With none of them
        each cluster is by itself.
    managers : Manager or Cluster, optional
        Another tree, whose leaves are the clusters of the platform.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    slots: SlotPlan = field(default_factory=lambda: SlotPlan.doubling(60, 60, 8))
    low_water: float = 0.5
    threshold: float = 1.0
    overrun: OverrunName = "suspend"
    refused: RefusedName = "reject"
    promote_share: float = 1 / 3
    promote_duration: int = 43_200
    placement: PlacementName = "unbiased"
    levels: Sequence[Level] | None = None
    managers: Manager | Cluster | None = None

    system: ClassVar[str] = "calendars"
    knows: ClassVar[str] = "slots of the clusters below, by each manager"
    not_in_studies: ClassVar[frozenset[str]] = frozenset({"managers"})
    cannot: ClassVar[Mapping[str, str]] = {
        "predictions": "the slots of the calendars are the policy",
        "arrays": "a manager books jobs one by one",
        "nodes": "a slot of a calendar says how many processors are free, not which, so that it stays small",
        "local policies": "the slots of the calendars are the policy",
        "overrun": "a job that is not done when its slots are over is killed or suspended, see `overrun`",
        "passes": "jobs start when a slot begins",
        "message delay": "managers answer immediately, possibly from outdated information (`period`)",
        "migration delay": "a job stays with the manager that placed it, and does not move",
        "deadlines": "the paper has start times, not deadlines",
        "membership": "the tree of managers is fixed",
        "changes": "the nodes of a calendar stay the same",
        "preemption": "a job has its slots to itself until they are over",
        "own functions": "first fit decides",
    }

    def __post_init__(self) -> None:
        positive = "a share above 0, at most 1"
        check_values(
            self,
            {
                "low_water": (0 <= self.low_water < 1, "a share from 0 to below 1"),
                "threshold": (0 < self.threshold <= 1, positive),
                "promote_share": (0 < self.promote_share <= 1, positive),
            },
        )
        check_choices(self)
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(self.levels))
            check_levels(self.levels)
            if self.managers is not None:
                raise ConfigurationError("levels, managers: give one of them, or none")

    def tree(self, clusters: Sequence[Cluster]) -> Manager | Cluster:
        """The tree of managers above the clusters of a platform.

        Raises
        ------
        ConfigurationError
            If the leaves of the tree are not these clusters.
        """
        if self.managers is not None:
            leaves = clusters_of(self.managers)
            if [leaf.name for leaf in leaves] != [cluster.name for cluster in clusters]:
                found = ", ".join(leaf.name for leaf in leaves)
                raise ConfigurationError(
                    f"managers: the leaves are {found}; give the clusters of the platform, in their order: "
                    f"{', '.join(cluster.name for cluster in clusters)}"
                )
            return self.managers
        if len(clusters) == 1:
            return clusters[0]
        if self.levels is not None:
            if not self.levels:
                raise ConfigurationError(
                    f"levels: there are none, but {len(clusters)} clusters; give two or more, or run each "
                    "cluster by itself"
                )
            return tree_of_levels(self.levels, clusters)
        local = [
            Manager(
                name=f"manager of {cluster.name}",
                children=[cluster],
                # a share such as 0.29 of 100 is 29, whatever its digits in binary
                promote_processors=int(self.promote_share * cluster.processors + 1e-9),
                promote_duration=self.promote_duration,
            )
            for cluster in clusters
        ]
        return Manager(name="all clusters", children=local, placement=self.placement)

    @property
    def draws(self) -> bool:
        """Managers that hold equal bids."""
        if self.managers is not None:
            return "unbiased" in _placements(self.managers)
        return "unbiased" in ([self.placement] if self.levels is None else [x.placement for x in self.levels])

    def schedule(self, submission: Submission) -> Schedule:
        """Run the jobs under the tree of managers.

        Job variables besides: reach_processors (0 for a job that did not run because its reservation was
        refused), planned_start (as submitted), reservation_time (as requested), reserved (0 or 1),
        reserved_start (-1 without), earliest_time (of a refused reservation), killed. Cluster variables:
        supplied, consumed, local_work (processor-seconds). Segments have segment_tasks where clusters give
        whole nodes. The counts of `planning.COUNTS` are attributes. Where nodes fail, users give up or jobs
        wait for others, `killed` counts what failing nodes did and overrun_killed is 1 for a job that was
        killed at the end of its slots; reservation_broken is 1 for one whose reservation could not be kept;
        and the counts of `planning.COUNTS_OF_OUTAGES` are attributes, too.

        Raises
        ------
        ConfigurationError
            If jobs, platform and tree do not go together.
        """
        home, workload, clusters = submission.homes(), submission.workload, submission.clusters
        asked = workload.reserved_start
        jobs: RecordArray = np.zeros(len(submission), REQUEST)
        for name, column in {
            "submit": workload.submit_time,
            "run": submission.run_time,
            "estimate": submission.estimate,
            "speed": submission.given_speed,
            "nodes": workload.processors,
            "home": home,
            "reserved": NOWHERE if asked is None else asked,
        }.items():
            jobs[name] = column
        roots = list(clusters) if self.levels == () and len(clusters) > 1 else [self.tree(clusters)]
        nodes = np.array([reach(root) for root in roots], np.int64)[home if len(roots) > 1 else 0]
        done = self._under(roots, submission, jobs)
        told, counted = _fates(submission, done)
        tasks = {} if all(each.unit == 1 for each in clusters) else of_tasks(done.segments["tasks"].copy())
        trade = described("cluster", _OF_CLUSTERS, done.clusters)
        return Schedule(
            start_time=done.jobs["start_time"],
            end_time=done.jobs["end_time"],
            run_time=done.jobs["run_time"],
            estimate=submission.seconds_at_home(submission.estimate),
            segments=done.segments[[*(SEGMENT.names or ())]].astype(SEGMENT),
            variables={**_reservations(jobs, done, nodes), **trade, **tasks, **told},
            counters={
                "managers": "; ".join(line for root in roots for line in describe(root)),
                "parameter_slots": str(self.slots),
                **done.counts,
                **counted,
            },
            messages=float(done.counts["messages"]),
        )

    def _under(
        self, roots: Sequence[Manager | Cluster], submission: Submission, jobs: RecordArray
    ) -> CalendarSchedule:
        """Run the jobs under a tree of managers, or those of each cluster by itself."""
        if len(roots) == 1:
            interruptions = _interruptions(submission, roots[0])
            return schedule_calendars(jobs, roots[0], self, seed=submission.seed, interruptions=interruptions)
        parts = []
        for index in np.unique(jobs["home"]).tolist():
            own = np.flatnonzero(jobs["home"] == index)
            alone = replace(
                submission,
                workload=submission.workload.select(own),
                home=np.zeros(len(own), np.int64),
                platform=Platform([submission.clusters[index]]),
                estimates=submission.estimate[own],
            )
            asked = jobs[own]
            asked["home"] = 0
            parts.append((own, index, self._under([roots[index]], alone, asked)))
        return together(parts, len(jobs), len(roots))

    @classmethod
    def measures(cls, run: xr.Dataset) -> xr.Dataset:
        """Trade between clusters, reservations, and what the calendars cost."""
        return calendar_measures(run)


def _interruptions(submission: Submission, root: Manager | Cluster) -> Interruptions | None:
    """What happens to jobs and nodes besides submissions and ends; None if nothing does."""
    clusters = submission.clusters
    if not needs_lifecycles(clusters, submission.workload):
        return None
    for leaf, cluster in zip(clusters_of(root), clusters, strict=True):
        if leaf.processors != cluster.processors:
            raise ConfigurationError(
                f"managers: cluster {leaf.name} has {leaf.processors} processors there and "
                f"{cluster.processors} on the platform; give the clusters of the platform"
            )
    too_large = np.asarray(submission.workload.processors) > reach(root)
    return Interruptions(
        lifecycles=lambda: lifecycles_of(submission, too_large),
        outages=outages_of(list(clusters)),
        clusters=clusters,
    )


def _fates(submission: Submission, done: CalendarSchedule) -> tuple[dict[str, Variable], dict[str, int]]:
    """Variables and counters with the outcomes of the jobs, where it has to be said."""
    if "fate" not in done.jobs:
        return {}, {}
    outcomes = JobOutcome(**{each.name: done.jobs[each.name] for each in fields(JobOutcome)})
    told, counted = outcome_variables(submission.workload, outcomes)
    killed = done.jobs["status"] == Status.KILLED
    columns = {"reservation_broken": done.jobs["broken"].astype(np.int64), "overrun_killed": 1 * killed}
    outages = outage_variables(outages_of(list(submission.clusters)))
    return told | outages | described("job", _OF_OUTAGES, columns), counted


_OF_JOBS = {
    "reach_processors": ("largest job that may run; 0 after a refused reservation", "1"),
    "planned_start": ("start that was planned at submission, -1 if none", "s"),
    "reservation_time": ("requested start time, -1 if none", "s"),
    "reserved": ("whether a reservation was granted", "1"),
    "reserved_start": ("start time of the granted reservation, -1 if none", "s"),
    "earliest_time": ("earliest start that a refused reservation could have", "s"),
    "killed": ("whether the job was killed", "1"),
}
"""What the variables of jobs mean, and their units."""

_OF_CLUSTERS = {
    "supplied": ("work for jobs of other clusters", "s"),
    "consumed": ("work of own jobs on other clusters", "s"),
    "local_work": ("work of own jobs at home", "s"),
}
"""What the variables of clusters mean, and their units: the balance of trade."""

_OF_OUTAGES = {
    "reservation_broken": ("whether outages did not let its reservation be kept", "1"),
    "overrun_killed": ("whether the job was killed at the end of its slots", "1"),
}
"""What the further variables of jobs mean where nodes fail, users give up or jobs wait for others."""


def _reservations(jobs: RecordArray, done: CalendarSchedule, nodes: NDArray[np.int64]) -> dict[str, Variable]:
    """What was reserved and refused, and its outcome."""
    # The others gave up, or outages came between
    kept = done.jobs["reserved"] & ~done.jobs["broken"] & (done.jobs["start_time"] >= 0)
    columns = done.jobs | {
        "reach_processors": np.where(done.jobs["status"] == Status.REFUSED, 0, nodes),
        "reservation_time": jobs["reserved"].copy(),
        "reserved": done.jobs["reserved"].astype(np.int64),
        "reserved_start": np.where(kept, jobs["reserved"], NO_TIME),
        "killed": (done.jobs["status"] == Status.KILLED).astype(np.int64),
    }
    return described("job", _OF_JOBS, columns)


SCHEDULER = Calendars

SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"calendars": Calendars}
"""The system by name."""
