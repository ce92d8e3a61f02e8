"""Why a simulated schedule of a recording differs from the record: job by job, and where it began.

Of a job that starts later than recorded it says what kept it at the recorded start, as of the model's pass at
that instant. Of one that starts earlier it says who had its nodes then in the record, and what the controller
had planned for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError
from gridsched.systems.differences import Loop, StartDifference, StartDifferences
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.controller import BACKFILL, MAIN, Controller, Outcome
from gridsched.systems.slurm.hostlist import compress_hosts
from gridsched.systems.slurm.kernels import CORES, GPUS, MEMORY
from gridsched.systems.slurm.recording import log_lines, milliseconds
from gridsched.systems.slurm.replay import MILLISECONDS, Replay

Integers = NDArray[np.int64]

PASSES = {MAIN: "main loop", BACKFILL: "backfilling"}
"""Kinds of passes, in words."""

TOLERANCES: dict[str, float] = {"closed": 0.2, "open": 3.0}
"""Seconds within which starts are the same."""

_PLAN = re.compile(r"_dump_job_sched: JobId=(\d+)\S* to start at (\S+), end at \S+ on nodes (\S+) in")
_MOST = 6


def explain_against(
    outcome: str | Path,
    *,
    loop: Loop = "closed",
    latency: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
) -> StartDifferences:
    """Set the model of Slurm against a recorded schedule, and explain every start that differs.

    Parameters
    ----------
    outcome : path
        `outcome.csv` of a recording, with `slurm.conf` and `slurmctld.log` or `.gz` beside it, see
        docs/slurm-reference.md.
    loop : {"closed", "open"}
        At the instants of the controller's passes, or at passes of the model's own.
    latency : int, optional
        Milliseconds from the end of a job until its nodes can be used: by default 8 in open loop, and those
        of the log in closed loop.
    seed : int
        Draws the phases of the passes in open loop.
    tolerance : float, optional
        Seconds within which starts are the same: 0.2 in closed loop, 3 in open loop.

    Raises
    ------
    ConfigurationError, TraceError
        If a file is missing or cannot be read.

    Examples
    --------
    >>> import gridsched as gs
    >>> why = gs.explain_against("recorded/outcome.csv")  # doctest: +SKIP
    >>> why.differences[0].why  # doctest: +SKIP
    """
    if loop not in get_args(Loop):
        raise ConfigurationError(f"loop is {loop!r}; use one of {', '.join(get_args(Loop))}")
    outcome = Path(outcome)
    if outcome.name != "outcome.csv" or not outcome.is_file():
        raise ConfigurationError(
            f"{outcome}: no outcome.csv of a recording; see docs/slurm-reference.md for its columns"
        )
    replay = Replay.of(outcome.parent)
    most = round(1000 * (TOLERANCES[loop] if tolerance is None else tolerance))
    delay = 8 if loop == "open" and latency is None else latency

    def run(controller: Controller) -> Outcome:
        if loop == "closed":
            return controller.follow(replay.recording.passes)
        phase = np.random.default_rng(seed).random(3)
        return controller.work(phase.tolist(), 0.001)

    priorities = "logged" if loop == "closed" else "computed"
    found = run(replay.controller(priorities, delay))
    recorded = np.array([job.start for job in replay.recording.jobs], np.int64)
    away = np.abs(found.start - recorded) > most
    different = np.flatnonzero(away | ((found.start < 0) != (recorded < 0)))
    told: dict[int, _Reason] = {}
    if len(different):
        # the same run again, stopped at the passes where these jobs might have started
        watch = _Watch(replay, {int(k): int(recorded[k]) for k in different if recorded[k] >= 0})
        run(replay.controller(priorities, delay, watch=watch))
        told = watch.told
    differences = _differences(replay, found, different.tolist(), told)
    same = [k for k in range(len(recorded)) if k not in set(different.tolist()) and recorded[k] >= 0]
    return StartDifferences(
        folder=replay.recording.folder,
        loop=loop,
        jobs=tuple(job.identifier for job in replay.recording.jobs),
        tolerance=most / 1000,
        same_nodes=sum(_nodes(replay, found, k) == replay.recording.jobs[k].where for k in same),
        never=int(((recorded < 0) & (found.start < 0)).sum()),
        differences=tuple(differences),
    )


_Run = tuple[int, int, tuple[str, ...]]
"""How a job runs in a schedule: from when to when [ms], and its nodes."""


def _differences(
    replay: Replay, found: Outcome, different: list[int], told: dict[int, _Reason]
) -> list[StartDifference]:
    """The jobs that differ, by their earlier start."""
    jobs = replay.recording.jobs
    since = {k: min(each for each in (jobs[k].start, int(found.start[k])) if each >= 0) for k in different}
    plans = _plans(replay) if different else {}
    names = {job.identifier: k for k, job in enumerate(jobs)}
    recorded = [(job.start, job.end, job.where) for job in jobs]
    simulated = [
        (start, start + job.end - job.last_start, _nodes(replay, found, k))
        for k, (job, start) in enumerate(zip(jobs, found.start.tolist(), strict=True))
    ]
    made = []
    for k in sorted(different, key=lambda k: (since[k], k)):
        job, start = jobs[k], int(found.start[k])
        if job.start >= 0 and (start < 0 or job.start < start):
            holders = _holders(replay, simulated, k, job.where, job.start)
            words, named = told.get(k, ("no pass looked at it any more", []))
            why = f"here {words}"
        else:
            holders = named = _holders(replay, recorded, k, simulated[k][2], start)
            why = f"recorded: {_recorded_reason(replay, found, k, holders, plans)}"
        follows = [
            name for name in dict.fromkeys([*named, *holders]) if since.get(names[name], FOREVER) < since[k]
        ]
        made.append(
            StartDifference(
                job=job.identifier,
                recorded=job.start / 1000 if job.start >= 0 else -1,
                predicted=start / 1000 if start >= 0 else -1,
                recorded_by=PASSES[job.by] if job.start >= 0 else "",
                predicted_by=PASSES[int(found.by[k])] if start >= 0 else "",
                recorded_on=job.where,
                predicted_on=simulated[k][2],
                why=why,
                holders=tuple(holders),
                follows=tuple(follows),
            )
        )
    return made


def _nodes(replay: Replay, found: Outcome, k: int) -> tuple[str, ...]:
    """Nodes that a job has in the model."""
    if found.start[k] < 0:
        return ()
    count = replay.recording.jobs[k].nodes
    return tuple(sorted(replay.configuration.nodes[n].name for n in found.nodes_of(k, count)))


def _holders(replay: Replay, runs: list[_Run], k: int, where: tuple[str, ...], at: int) -> list[str]:
    """Jobs that in a schedule have nodes of a job at an instant [ms]."""
    return [
        replay.recording.jobs[o].identifier
        for o, (start, end, nodes) in enumerate(runs)
        if o != k and 0 <= start <= at < end and not set(where).isdisjoint(nodes)
    ]


def _plans(replay: Replay) -> dict[int, list[tuple[int, str, str]]]:
    """What the controller planned for each job: instant [ms], start and nodes."""
    plans: dict[int, list[tuple[int, str, str]]] = {}
    for stamp, text in log_lines(replay.recording.folder):
        if planned := _PLAN.search(text):
            plans.setdefault(int(planned[1]), []).append((milliseconds(stamp), planned[2], planned[3]))
    return plans


def _recorded_reason(
    replay: Replay,
    found: Outcome,
    k: int,
    holders: list[str],
    plans: dict[int, list[tuple[int, str, str]]],
) -> str:
    """Why a job did not start in the record when it did in the model, as far as the log shows."""
    job, at = replay.recording.jobs[k], int(found.start[k])
    wanted = set(_nodes(replay, found, k))
    words = []
    if job.start < 0:
        words.append("it was cancelled" if job.cancelled >= 0 else "it never started")
    left = [other for other in replay.recording.jobs if other.start >= 0 and wanted & set(other.where)]
    last = max((other for other in left if other.end <= at), key=lambda other: other.end, default=None)
    if holders:
        words.append(f"{_listed(holders)} had its nodes")
    elif last is not None and at - last.end < MILLISECONDS:
        words.append(f"job {last.identifier} had left its nodes {at - last.end} ms before")
    else:
        words.append("its nodes ran nothing")
    before = [each for each in plans.get(job.number, []) if each[0] <= at + MILLISECONDS]
    if before:
        words.append(
            f"the controller had planned it for {before[-1][1].partition('T')[2]} on {before[-1][2]}"
        )
    return "; ".join(words)


def _listed(names: list[str]) -> str:
    """Some jobs, and how many more there are."""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"job{'s' if len(names) > 1 else ''} {', '.join(names[:_MOST])}{more}"


# --- what keeps a job in the model ----------------------------------------------------------------


_Reason = tuple[str, list[str]]
"""What kept a job, and the jobs that it names."""


class _Watch:
    """What keeps some jobs from starting, as of the last pass up to an instant each.

    Parameters
    ----------
    replay : Replay
        What is simulated.
    until : dict of int to int
        Instant [ms] for each job that is watched.
    """

    def __init__(self, replay: Replay, until: dict[int, int]) -> None:
        self.replay, self.until = replay, until
        self.told: dict[int, _Reason] = {}
        self.queue: Integers = np.zeros(0, np.int64)

    def __call__(self, controller: Controller, now: int, kind: int) -> None:
        """Say what kept the jobs from starting in a pass."""
        self.queue = controller.queue[: controller.waiting]
        for job, until in self.until.items():
            if now <= until and controller.start[job] < 0:
                self.told[job] = self._why(controller, job, now, kind)

    def _name(self, job: int) -> str:
        return self.replay.recording.jobs[job].identifier

    def _why(self, controller: Controller, job: int, now: int, kind: int) -> _Reason:
        """Why a job did not start in the pass that was made."""
        life = controller.lifecycles.jobs[job]
        if job not in self.queue:
            return self._absent(life, job)
        tables, record = controller.tables, controller.tables.jobs[job]
        if kernels.over_limit(tables, job):
            return "it was over a limit of its group or array", []
        if not kernels.has_licences(tables, job):
            return "licences that it needs were in use", []
        suits = tables.suits[record["kind"]] != 0
        up = suits & (tables.up != 0)
        if up.sum() < record["nodes"]:
            return f"{up.sum()} nodes were neither down nor drained, it needs {record['nodes']}", []
        second = now // MILLISECONDS
        kept = up & ~_reserved(tables, record, second)
        if kept.sum() < record["nodes"]:
            return f"a reservation left it {kept.sum()} nodes, it needs {record['nodes']}", []
        free = kept & _has_room(tables, record)
        room = f"{free.sum()} of its nodes were free, it needs {record['nodes']}"
        ahead = list(self._ahead(controller, job))
        if kind == MAIN:
            partition = record["partition"]
            blocking = [each for each in ahead if tables.jobs[each]["partition"] == partition]
            if blocking:
                name = self._name(blocking[0])
                return f"job {name} ahead of it in its partition did not fit; {room}", [name]
            return room, []
        if not record["plan"]:
            return f"backfilling made no plan for it; {room}", []
        begin = int(record["plan"])
        where = tables.placed[record["first"] : record["first"] + record["nodes"]]
        names = compress_hosts(self.replay.configuration.nodes[n].name for n in sorted(where.tolist()))
        words = f"backfilling planned it {begin - second} s later on {names}; {room}"
        taken = [self._name(each) for each in ahead if self._plan_takes(tables, each, record, free, second)]
        return (f"{words}, and {_listed(taken)} had plans for some of them" if taken else words), taken

    def _absent(self, life: Any, job: int) -> _Reason:
        """Why a job is not in the queue."""
        if life["fate"] == Fate.GAVE_UP:
            return "it had been cancelled", []
        if life["unmet"] > 0 or life["fate"] == Fate.NEVER_ELIGIBLE:
            on = [name for _, name in self.replay.recording.jobs[job].dependencies]
            named = [each.identifier for each in self.replay.recording.jobs if each.name in on]
            return (f"it waited for {_listed(named)}" if named else "it was not submitted yet"), named
        return "it was held, or its begin time had not come", []

    def _ahead(self, controller: Controller, job: int) -> Iterator[int]:
        """Jobs before one in the queue that are not over a limit."""
        for other in self.queue.tolist():
            if other == job:
                return
            if not kernels.over_limit(controller.tables, other):
                yield other

    @staticmethod
    def _plan_takes(tables: Any, other: int, record: Any, free: NDArray[np.bool_], now: int) -> bool:
        """Whether another job is planned on a free node before a job would end that starts now."""
        rival = tables.jobs[other]
        nodes = tables.placed[rival["first"] : rival["first"] + rival["nodes"]]
        return bool(0 < rival["plan"] <= now + record["limit"] and free[nodes].any())


def _has_room(tables: Any, record: Any) -> NDArray[np.bool_]:
    """Nodes that have what a part of a job asks for, beside those that run."""
    if record["whole"]:
        return np.asarray(tables.idle != 0)
    amounts = ((CORES, "cores"), (MEMORY, "memory"), (GPUS, "gpus"))
    room = [tables.free[row] >= record[name] for row, name in amounts]
    return np.asarray(np.logical_and.reduce(room) & (tables.alone == 0))


def _reserved(tables: Any, record: Any, now: int) -> NDArray[np.bool_]:
    """Nodes of reservations that a job would run into if it started now."""
    taken = np.zeros(len(tables.up), np.bool_)
    for w in tables.known[: tables.counts[1]]:
        if tables.windows[w]["begin"] < now + record["limit"] and tables.windows[w]["end"] > now:
            taken |= tables.reserved[w] != 0
    return taken
