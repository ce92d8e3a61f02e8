"""A simulation that a scheduler goes through step by step.

>>> import gridsched as gs
>>> jobs = gs.synthesise("M3", jobs=300, seed=1)
>>> sim = gs.Simulator(jobs, gs.Cluster(name="M3", processors=1152))
>>> while sim.advance():  # first come, first served
...     for job, processors in sim.queue[["job", "processors"]].tolist():
...         if processors > sim.free[0]:
...             break
...         sim.start(job)
>>> run = sim.run()
>>> gs.verify(run)
>>> bool((run.start_time == gs.simulate(jobs, 1152, "fcfs").start_time).all())
True
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numba
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine import simulator as engine
from gridsched.engine.bundles import allocate, grow
from gridsched.engine.clusters import GridOptions, StartPredictions
from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.reference import pinned
from gridsched.engine.simulator import Action, Reply
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.platform import Cluster, Platform
from gridsched.policies.local import Conventions, OverrunName
from gridsched.results import Schedule
from gridsched.submission import AlignName, Estimates, Submission, TimesName
from gridsched.systems.base import Scheduler
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.custom import snapshots
from gridsched.systems.custom.compiled import CompiledDecision, miscounted, room_for_actions
from gridsched.systems.custom.snapshots import SimulatorSnapshot
from gridsched.systems.node_grids import NodeGrid
from gridsched.systems.request import Request
from gridsched.workloads.table import Workload

_NO_NODES: NDArray[np.int64] = np.empty(0, np.int64)

_FIRST_CALLS = 64
"""Calls that there is room for at first."""


Nodes = Sequence[int] | NDArray[Any] | None


class Actions(ABC):
    """What a scheduler can do with jobs, in a simulation of this package or of another one."""

    def start(self, job: int, cluster: int = 0, nodes: Nodes = None) -> None:
        """Start a job of the queue on a cluster.

        Parameters
        ----------
        job, cluster : int
            Which job, and where.
        nodes : sequence of int, optional
            Nodes of the cluster, the first with the smallest number; by default the cluster's own placement.

        Raises
        ------
        ScheduleError
            If the job does not wait, does not fit, or a node is not free.
        """
        self._act(Action.START, job, cluster, nodes=nodes)

    def send(self, job: int, cluster: int = 0) -> None:
        """Send a job of the queue to the local queue of a cluster, whose local policy starts it.

        Raises
        ------
        ScheduleError
            If the job does not wait, or the cluster cannot hold it.
        """
        self._act(Action.SEND, job, cluster)

    def withdraw(self, job: int) -> None:
        """Take a job that was sent to a cluster and has not started back into the queue, to its old place.

        Raises
        ------
        ScheduleError
            If it does not wait on a cluster.
        """
        self._act(Action.WITHDRAW, job)

    def reject(self, job: int) -> None:
        """Let a job of the queue never run.

        Raises
        ------
        ScheduleError
            If it does not wait in the queue, or has run before.
        """
        self._act(Action.REJECT, job)

    def kill(self, job: int, *, requeue: bool = False) -> None:
        """Kill a running job: it is lost, or waits again, without what it did since its last checkpoint.

        Raises
        ------
        ScheduleError
            If it does not run.
        """
        self._act(Action.REQUEUE if requeue else Action.KILL, job)

    def call_at(self, time: float) -> None:
        """Let `advance` stop at a time, or in the next whole second, as long as there are jobs.

        Raises
        ------
        ScheduleError
            If the time is not after now.
        """
        self._act(Action.CALL, -1, time=math.ceil(time))

    @abstractmethod
    def _act(self, kind: int, job: int, cluster: int = -1, time: int = 0, nodes: Nodes = None) -> None:
        """Take an action."""


class Simulator(Actions):
    """A simulation that stops at each instant at which something happens, so that a scheduler decides.

    Jobs are called by their place in the workload, clusters by theirs in the platform, from 0 on. What a
    scheduler sees are views of the simulator's own arrays: valid until the next action or `advance`.

    Parameters
    ----------
    workload, platform, estimates, seed, align, times, kill, overrun
        As of `gridsched.simulate`.

    Raises
    ------
    WorkloadError
        If a workload is not clean, or does not say how large its cluster is.
    ConfigurationError
        If workload and platform do not go together, or clusters join, leave or change.

    Examples
    --------
    >>> import gridsched as gs
    >>> sim = gs.Simulator(gs.synthesise("M3", jobs=20, seed=1), 1152)
    >>> sim.advance(), len(sim.queue), len(sim.running), sim.free.tolist()
    (True, 1, 0, [1152])
    >>> job = int(sim.queue["job"][0])
    >>> sim.start(job)
    >>> sim.running["job"].tolist()
    [0]
    >>> try:
    ...     sim.start(job)
    ... except gs.GridschedError as error:
    ...     print(error)
    job 1 (index 0) cannot start at 899 s: it does not wait in the queue
    """

    def __init__(
        self,
        workload: Workload | Sequence[Workload | None],
        platform: Cluster | Sequence[Cluster] | Platform | int | None = None,
        *,
        estimates: Estimates = "requested",
        seed: int = 0,
        align: AlignName = "start",
        times: TimesName = "home",
        kill: bool = False,
        overrun: OverrunName = "doubling",
    ) -> None:
        self._request: Request | None = Request.of(
            workload,
            platform,
            estimates=estimates,
            seed=seed,
            align=align,
            times=times,
            kill=kill,
            conventions=Conventions(overrun),
        )
        self._request.submission.check_limits()
        self._begin(self._request.submission)

    @classmethod
    def of(cls, submission: Submission) -> Simulator:
        """Simulator of jobs that are submitted to a platform."""
        made = cls.__new__(cls)
        made._request = None
        made._begin(submission)
        return made

    def _begin(self, submission: Submission) -> None:
        """Make the arrays of a simulation in which nothing has happened."""
        clusters, platform = submission.clusters, submission.platform
        if platform.membership is not None or platform.changes:
            raise ConfigurationError(
                "platform: clusters of a simulator neither join nor leave, nor do their processors change"
            )
        if len(clusters) == 1:
            submission = submission.at_home()
        self.submission = submission
        self._grid = NodeGrid(submission)
        self._fates = np.where(self._grid.against > 0, int(Fate.REJECTED), int(Fate.COMPLETED))
        g, local = self._grid.state, self._grid.local
        sizes = {
            "alive": local.real.waiting.shape[1],
            "room": 2 * local.real.waiting.shape[1],
            "clusters": len(clusters),
            "calls": _FIRST_CALLS,
            "jobs": len(submission),
            "one": 1,
        }
        self._options = GridOptions(overrun_code(submission.conventions.overrun), int(StartPredictions.EXACT))
        self._actions = np.zeros(1, engine.ACTION)
        self._done = False
        self._past: dict[object, None] = {}  # snapshots from which the simulation went on to where it is
        self._sends: Literal[True] | None = None
        self._pinned: Any = None
        self.memory: dict[str, Any] = {}
        self._keep(allocate(engine.Simulated, sizes, g=g, local=local))

    def _keep(self, arrays: engine.Simulated) -> None:
        """Work on these arrays from now on."""
        self._arrays, self._pinned = arrays, pinned(arrays, self._pinned)
        # records of NumPy are slow to read
        self._state: dict[str, NDArray[np.int64]] = {
            name: arrays.state[name] for name in engine.STATE.names or ()
        }

    def _call(self, kernel: Any, arguments: Callable[[], tuple[Any, ...]] = tuple) -> int:
        """Reply of a kernel, with more room and local policies if it wants them."""
        while True:
            # only local policies score, and a function is dear to hand over
            score = self._grid.score if self._sends else None
            asked = (self._pinned, *arguments(), *self._options, score, self._sends)
            reply = int(kernel(*asked))
            if reply == Reply.ROOM:
                self._make_room()
            elif reply == Reply.SENDS:
                self._sends = True
            else:
                return reply

    def _make_room(self) -> None:
        """Give each array that is full more room."""
        self._grid.make_room()
        local = self._grid.local
        calls = self._state["calls"].item() + 1
        alive, room = local.real.waiting.shape[1], len(self._arrays.calls)
        sizes = {"alive": alive, "room": 2 * alive, "calls": room if calls <= room else 2 * room}
        self._keep(grow(self._arrays._replace(local=local), sizes))
        if len(self._actions) > 1:
            self._actions = np.resize(self._actions, len(self._room_for_actions()))

    # --- what there is ------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """Present time [s]."""
        return self._state["now"].item()

    @property
    def queue(self) -> NDArray[Any]:
        """Jobs that wait for a decision, in order of entry.

        Fields: job, submit_time [s], estimate [s] and processors on the cluster of its submission (on whole
        nodes all that it takes), requested_processors, user, group, queue (numbers of the log), home (index
        of the cluster of submission, -1 for none).
        """
        first = self._state["first"].item()
        queue: NDArray[Any] = self._arrays.queue[first : first + self._state["queued"].item()]
        return queue

    @property
    def entered(self) -> int:
        """How many jobs have come to the end of the queue so far."""
        return self._state["entered"].item()

    def times_killed(self, job: int) -> int:
        """How often a job was killed so far, by `kill` or by a failure of its nodes."""
        return int(self._arrays.local.real.jobs["killed"][job])

    @property
    def running(self) -> NDArray[Any]:
        """Jobs that run, by start; fields: job, cluster, processors, start_time and expected_end [s]."""
        running: NDArray[Any] = self._arrays.running[: self._state["running"].item()]
        return running

    @property
    def free(self) -> NDArray[np.int64]:
        """Idle processors of each cluster, without those of nodes that take no jobs."""
        free: NDArray[np.int64] = self._arrays.free
        return free

    @property
    def workload(self) -> Workload:
        """All jobs in order of submission."""
        return self.submission.workload

    @property
    def clusters(self) -> Sequence[Cluster]:
        """The clusters."""
        return self.submission.clusters

    def nodes(self, cluster: int = 0) -> NDArray[Any]:
        """Nodes of a cluster; one where nodes do not matter.

        Fields: cores, memory [KiB], gpus, free_cores, free_memory, free_gpus, down, drained, windows (of
        maintenance that it is in), pieces (jobs that run there) and others.
        """
        site = self._arrays.local.sites[cluster]
        view: NDArray[Any] = self._arrays.local.real.nodes[site["node"] : site["node"] + site["nodes"]].view()
        view.flags.writeable = False
        return view

    def predicted_start(self, job: int, cluster: int = 0) -> int:
        """When a job of the queue would start if it were sent to a cluster now [s]; -1 if it is not known.

        As the cluster knows it: if nothing else came, and all estimates were right.
        """
        return int(engine.predicted_start(self._pinned, job, cluster, self._options, self._grid.score))

    # --- what can be done ---------------------------------------------------------------------------

    def advance(self) -> bool:
        """Go on to the next instant at which something happens; False if nothing can happen to jobs."""
        if not self._done:
            self._done = self._call(engine.go_on) == Reply.DONE
        return not self._done

    # --- there and back -----------------------------------------------------------------------------

    def snapshot(self) -> SimulatorSnapshot:
        """The simulation as it is now; its cost grows with the nodes and the jobs that wait or run."""
        taken = snapshots.take(self._arrays, self.memory, self._done)
        self._past[taken.mark] = None
        return taken

    def restore(self, snapshot: SimulatorSnapshot) -> None:
        """Go back to a snapshot of the past of this simulation.

        It may be restored any number of times, but not after one that is older: it is none of the past then.

        Raises
        ------
        ScheduleError
            If the simulation did not come from there.
        """
        if snapshot.mark not in self._past:
            raise ScheduleError(
                "this snapshot is not of the past of the simulation: an older one was restored since, or "
                "another simulation made it"
            )
        while next(reversed(self._past)) is not snapshot.mark:
            self._past.popitem()
        snapshots.put_back(self._arrays, snapshot, self._fates)
        self.memory, self._done = copy.deepcopy(snapshot.memory), snapshot.done

    def prepare(self) -> None:
        """Compile now what the simulation needs, for those who would not wait for it later."""
        before = self.snapshot()
        if self.advance():
            with suppress(ScheduleError):
                self.call_at(self.now)
        self.restore(before)

    def _act(self, kind: int, job: int, cluster: int = -1, time: int = 0, nodes: Nodes = None) -> None:
        """Take an action."""
        self._actions[0] = (kind, job, cluster, time)
        where = _NO_NODES if nodes is None else np.asarray(nodes, np.int64)
        outcome = self._call(engine.act, lambda: (self._actions, where))
        if outcome != Reply.DONE:
            raise self._refused(kind, job, cluster, time, Reply(outcome))
        self._done = False

    def _refused(self, kind: int, job: int, cluster: int, time: int, why: Reply) -> ScheduleError:
        """Error of an action that is not possible."""
        if kind == Action.CALL:
            return ScheduleError(f"cannot call at {time} s: it is {self.now} s already")
        known = 0 <= job < len(self.workload)
        number = f"{self.workload.job_number[job]} (index {job})" if known else f"index {job}"
        verb = _VERBS.get(kind, f"have action {kind}")
        return ScheduleError(f"job {number} cannot {verb} at {self.now} s: {self._reason(job, cluster, why)}")

    def _reason(self, job: int, cluster: int, why: Reply) -> str:
        """Why an action is not possible."""
        if why == Reply.NO_CLUSTER:
            return f"there is no cluster {cluster}; there are {len(self.clusters)}, from 0 on"
        if why in _REASONS:
            return _REASONS[why]
        name = self.clusters[cluster].name
        taken = int(self.clusters[cluster].allocation(self.workload.processors[job : job + 1])[0])
        free, takes = int(self.free[cluster]), f"it takes {taken} processor{'s' if taken > 1 else ''}"
        if why == Reply.TOO_LARGE:
            return f"{takes}, and {name} can never hold it: its nodes are too small, or a limit is against it"
        if why == Reply.OVER_LIMIT:
            return f"with it a group of jobs would be over its limit on {name}"
        if free < taken:
            return f"{takes}, and {free} are free on {name}"
        return f"{takes}; {free} are free on {name}, but not on the nodes for it, or others are planned there"

    # --- results ------------------------------------------------------------------------------------

    def schedule(self) -> Schedule:
        """What was decided, as every scheduler gives it.

        Raises
        ------
        ScheduleError
            If the simulation has not come to its end.
        """
        if not self._done:
            raise ScheduleError(
                f"the simulation is at {self.now} s, and not at its end: call advance() until it is False"
            )
        self._grid.check_order()
        counters = {"decisions": self._state["decisions"].item()}
        if self._state["refused"]:
            counters["jobs_refused"] = self._state["refused"].item()
        return replace(self._grid.schedule(counters), messages=0.0)

    def run_compiled(self, decision: CompiledDecision, parameters: NDArray[np.float64]) -> None:
        """Simulate to the end under a compiled decision.

        Raises
        ------
        ScheduleError
            If an action is not possible.
        """
        if numba.config.DISABLE_JIT:
            self._run_plainly(decision, parameters)
            return
        self._actions = self._room_for_actions()
        outcome = self._call(engine.run, lambda: (decision.callback, parameters, self._actions, _NO_NODES))
        if outcome == Reply.TOO_MANY:
            raise miscounted(self._state["actions"].item(), self.now, len(self._actions))
        if outcome != Reply.DONE:
            kind, job, cluster, time = self._actions[self._state["acted"].item()].tolist()
            raise self._refused(kind, job, cluster, time, Reply(outcome))
        self._done = True

    def _room_for_actions(self) -> NDArray[Any]:
        """Actions that there is room for at one instant."""
        return room_for_actions(len(self._arrays.running))

    def _run_plainly(self, decision: CompiledDecision, parameters: NDArray[np.float64]) -> None:
        """The same without compilation."""
        while self.advance():
            seen = (self.queue.copy(), self.running.copy(), self.free.copy())
            for action in decision.actions(self.now, *seen, parameters).tolist():
                self._act(*action)

    def run(self) -> xr.Dataset:
        """The run: a dataset like that of `gridsched.simulate`.

        Raises
        ------
        ScheduleError
            If the simulation has not come to its end.
        """
        if self._request is None:
            raise ScheduleError("this simulator belongs to a scheduler; gridsched.simulate makes its run")
        return self._request.run_of(self.schedule(), StepByStep())


@dataclass(frozen=True)
class StepByStep(Scheduler):
    """Whoever goes through a simulator step by step."""

    system: ClassVar[str] = "custom"

    @property
    def label(self) -> str:
        """Name in results."""
        return "step by step"

    def schedule(self, submission: Submission) -> Schedule:
        """Refused: only its user knows how it decides."""
        raise ConfigurationError("a simulator is gone through with advance(), not by gridsched.simulate")


_VERBS: dict[int, str] = {
    Action.START: "start",
    Action.SEND: "be sent",
    Action.WITHDRAW: "be withdrawn",
    Action.REJECT: "be rejected",
    Action.KILL: "be killed",
    Action.REQUEUE: "be killed",
}

_REASONS = {
    Reply.NOT_QUEUED: "it does not wait in the queue",
    Reply.NOT_RUNNING: "it does not run",
    Reply.NOT_SENT: "it does not wait on a cluster",
    Reply.BOUND: "it has run before, and stays with the cluster where it did",
    Reply.UNKNOWN: "there is no such action",
}
