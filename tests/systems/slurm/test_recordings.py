"""The model against schedules that a real Slurm 22.05 controller made."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.errors import TraceError
from gridsched.systems.slurm.controller import BACKFILL, Controller, Outcome
from gridsched.systems.slurm.hostlist import expand_hosts
from gridsched.systems.slurm.priority import FirstCome, Multifactor, Priorities
from gridsched.systems.slurm.recording import log_lines, milliseconds, read_recording
from gridsched.systems.slurm.replay import Replay
from tests.systems.slurm.recordings import CONFIGURATION, Row, made_up, recorded, stamp

SLURM_AGAINST_ITSELF = {"w2a": 0.75, "w2b": 0.75, "ft": 0.16}
"""Starts within 3 s of each other in two runs of one plan."""


RECORDED = ("w1", "w2a", "w2b", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13", "ft")


@pytest.mark.parametrize("name", RECORDED)
def test_at_the_recorded_passes_every_job_starts_when_and_where_it_did(name: str) -> None:
    """Each execution, and the pass that started it."""
    replay = recorded(name)
    outcome = replay.closed_loop()
    assert replay.differences(outcome) == []
    ran = [k for k, job in enumerate(replay.recording.jobs) if job.start >= 0]
    assert [int(outcome.by[k]) for k in ran] == [replay.recording.jobs[k].by for k in ran]


@pytest.mark.parametrize("name", ["w3", "w4", "w8"])
def test_so_it_does_with_computed_priorities(name: str) -> None:
    replay = recorded(name)
    assert replay.differences(replay.closed_loop(priorities="computed")) == []


def test_those_give_way_who_did_for_whom_and_when() -> None:
    replay = recorded("w13")
    jobs, told = replay.recording.jobs, replay.closed_loop().preemptions
    found = sorted((jobs[each["job"]].number, jobs[each["by"]].number, int(each["time"])) for each in told)
    logged = sorted((job.number, each.by, each.end) for job in jobs for each in job.interruptions)
    assert [each[:2] for each in found] == [each[:2] for each in logged]
    assert len(found) == 13
    assert all(abs(one[2] - other[2]) <= 200 for one, other in zip(found, logged, strict=True))


def test_what_befell_jobs_that_never_ran_is_known() -> None:
    replay = recorded("w6")
    fate = replay.closed_loop().fate
    never = {job.name: Fate(fate[k]) for k, job in enumerate(replay.recording.jobs) if job.start < 0}
    cancelled = dict.fromkeys(("j18", "j26", "j35", "j55"), Fate.GAVE_UP)
    # the job that j40 waited for was cancelled, before it was itself
    assert never == {**cancelled, "j40": Fate.NEVER_ELIGIBLE, "depfail": Fate.NEVER_ELIGIBLE}


def test_a_reservation_that_changes_is_not_modelled(tmp_path: Path) -> None:
    (tmp_path / "outcome.csv").write_text("jobid\n")
    (tmp_path / "slurmctld.log").write_text(
        "[2026-11-22T07:12:29.043] sched: Updated reservation=maint users\n"
    )
    with pytest.raises(TraceError, match="reservation maint was changed"):
        read_recording(tmp_path)


@pytest.mark.parametrize(
    ("partition", "line", "start"),
    [
        # who wants all nodes closes the partition, and is planned after the first job
        ("", "", -1),
        ("MaxNodes=2", "", 4),
        ("MaxTime=5", "", 4),
        ("DenyAccounts=b", "EnforcePartLimits=ANY", 4),
        # backfilling plans jobs of accounts that the partition does not admit; the main loop passes over them
        ("DenyAccounts=b", "", 6),
    ],
)
def test_partitions_do_not_start_jobs_that_they_do_not_admit(
    partition: str, line: str, start: int, tmp_path: Path
) -> None:
    jobs = [Row(0, 1, 5, 1, 20, "n1"), Row(2, 3, 6, -1, 0, ""), Row(3, 1, 5, -1, 0, "")]
    folder = made_up(tmp_path, jobs, [(1, "main"), (4, "backfill"), (6, "main")])
    rows = (folder / "outcome.csv").read_text().splitlines()
    accounts = ("account", "a", "b", "a")
    text = "\n".join(f"{row},{account}" for row, account in zip(rows, accounts, strict=True))
    (folder / "outcome.csv").write_text(text)
    (folder / "slurm.conf").write_text(f"{CONFIGURATION.strip()} {partition}\n{line}\n")
    assert Replay.of(folder).closed_loop().start.tolist() == [1000, -1, -1 if start < 0 else 1000 * start]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_pass_knows_the_jobs_whose_lines_precede_it(is_told: bool, tmp_path: Path) -> None:
    lines = [f"[{stamp(1)}] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=9 usec=1"] if is_told else []
    folder = made_up(tmp_path, [Row(1, 1, 5, 1, 2, "n1")], [(1, "main")], *lines)
    assert Replay.of(folder).closed_loop().start.tolist() == [1000 if is_told else -1]


@pytest.mark.parametrize("way", ["logged", "computed"])
def test_a_job_has_a_priority_in_each_of_its_partitions(way: str, tmp_path: Path) -> None:
    lines = [
        f"[{stamp(0.5)}] priority/multifactor: init: Priority MULTIFACTOR plugin loaded",
        f"[{stamp(1)}] PRIO: JobId=1 multi-partition priorities: slow=100, main=1",
        f"[{stamp(1.001)}] priority/multifactor: Job 1 priority: 0 + 0 - 0 = 100.00",
        f"[{stamp(1)}] priority/multifactor: Job 2 priority: 0 + 0 - 0 = 50.00",
    ]
    jobs = [Row(1, 3, 5, -1, 0, ""), Row(1, 3, 5, -1, 0, "")]
    folder = made_up(tmp_path, jobs, [(2, "main")], *lines)
    configuration = CONFIGURATION.replace(
        "priority/basic", "priority/multifactor\nPriorityWeightPartition=100"
    )
    slow = "PartitionName=slow Nodes=n[1-3] OverSubscribe=EXCLUSIVE PriorityTier=0 PriorityJobFactor=10"
    (folder / "slurm.conf").write_text(f"{configuration}{slow}\n")
    (folder / "submissions.csv").write_text('jobid,partition\n1,"slow,main"\n2,main\n')
    # the second job goes before the first one in their partition, and that before the other one
    starts = Replay.of(folder).closed_loop(priorities=way).start.tolist()
    assert starts == ([-1, 2000] if way == "logged" else [2000, -1])


Plan = tuple[int, int, tuple[str, ...]]
"""A plan: the job, or its array, the second of its start, and its nodes."""


class Plans:
    """What backfill passes planned, by the instant of the pass, in order of the jobs."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.made: dict[int, list[Plan]] = {}

    def __call__(self, controller: Controller, now: int, kind: int) -> None:
        if kind == BACKFILL:
            jobs = self.replay.recording.jobs
            self.made[now] = sorted(
                (jobs[job].array, int(controller.tables.jobs["plan"][job]), self.nodes(controller, job))
                for job in controller.queue[: controller.waiting].tolist()
                if controller.tables.jobs["plan"][job]
            )

    def nodes(self, controller: Controller, job: int) -> tuple[str, ...]:
        record = controller.tables.jobs[job]
        placed = controller.tables.placed[record["first"] : record["first"] + record["nodes"]]
        return tuple(sorted(self.replay.configuration.nodes[node].name for node in placed.tolist()))


def logged_plans(replay: Replay) -> dict[int, list[Plan]]:
    """The same of the log, where the tasks of an array that wait have its number."""
    wanted = re.compile(r"_dump_job_sched: JobId=(\d+)\S* to start at (\S+), end at \S+ on nodes (\S+) in")
    plans: dict[int, list[Plan]] = {}
    for when, text in log_lines(replay.recording.folder):
        if "_attempt_backfill: beginning" in text:
            plans[milliseconds(when)] = latest = []
        elif found := wanted.search(text):
            where = tuple(sorted(expand_hosts(found[3])))
            latest.append((int(found[1]), milliseconds(found[2]) // 1000, where))
    return {at: sorted(each) for at, each in plans.items()}


@pytest.mark.parametrize(
    ("name", "plans"),
    [
        ("w2a", 2373),
        ("w2b", 2390),
        ("w3", 5563),
        ("w4", 1711),
        ("w5", 216),
        ("w6", 738),
        ("w7", 2633),
        ("w8", 1680),
        ("w9", 3452),
        ("w10", 681),
        ("w11", 4618),
        ("w12", 4340),
        ("w13", 7047),
        ("ft", 7953),
    ],
)
def test_plans_of_the_log_are_made_too(name: str, plans: int) -> None:
    """The second of a start, and all nodes; nobody else is planned."""
    replay = recorded(name)
    seen, logged = Plans(replay), logged_plans(replay)
    controller = replay.controller("logged", watch=seen)
    controller.follow(replay.recording.passes)
    # a pass without a waiting job is not made
    logged = {at: each for at, each in logged.items() if each or at in seen.made}
    assert sum(map(len, logged.values())) == plans
    assert {at: seen.made[at] for at in logged} == logged


class Watched(Priorities):
    """Priorities, written down as they are given."""

    def __init__(self, inner: Multifactor) -> None:
        self.inner = inner
        self.given: dict[int, list[tuple[int, float]]] = {}

    def submitted(self, job: int, now: int, since: int) -> float:
        priority = self.inner.submitted(job, now, since)
        self.given.setdefault(job, []).append((now, priority))
        return priority

    def begin(self, rows: Sequence[int], now: int) -> None:
        self.inner.begin(rows, now)

    def requeued(self, job: int, now: int) -> None:
        self.inner.requeued(job, now)

    def started(self, job: int, now: int) -> None:
        self.inner.started(job, now)

    def ended(self, job: int, now: int) -> None:
        self.inner.ended(job, now)

    def due(self) -> int:
        return self.inner.due()

    def recalculate(self, now: int, waiting: NDArray[np.int64]) -> NDArray[np.float64]:
        priorities = self.inner.recalculate(now, waiting)
        for job, priority in zip(waiting.tolist(), priorities.tolist(), strict=True):
            self.given.setdefault(job, []).append((now, priority))
        return priorities


def watched(replay: Replay) -> dict[int, list[tuple[int, float]]]:
    """Priorities that the model gives at the recorded passes, with their instants."""
    priorities = Watched(replay.multifactor())
    replay.closed_loop(priorities=priorities)
    return priorities.given


def polled_usage(replay: Replay) -> list[tuple[int, dict[tuple[str, str], int]]]:
    """Instants [ms] at which sshare was asked, and RawUsage of accounts and users."""
    polls = []
    for block in (replay.recording.folder / "sshare_poll.txt").read_text().split("# ")[1:]:
        at, _, *rows = block.splitlines()
        fields = [row.split("|") for row in rows]
        polls.append((round(float(at) * 1000), {(f[0].strip(), f[1].strip()): int(f[4]) for f in fields}))
    return polls


def test_what_was_used_is_what_sshare_said() -> None:
    replay = recorded("w3")
    priorities = replay.multifactor()
    used: list[tuple[int, dict[tuple[str, str], float]]] = []

    class Noted(Watched):
        def recalculate(self, now: int, waiting: NDArray[np.int64]) -> NDArray[np.float64]:
            given = super().recalculate(now, waiting)
            shares = self.inner.shares
            used.append((now, {who: float(shares.used[k]) for who, k in shares.place.items()}))
            return given

    replay.closed_loop(priorities=Noted(priorities))
    compared = 0
    for at, polled in polled_usage(replay):
        before = [each for when, each in used if when < at - 100]
        if before:
            assert {who: int(amount) for who, amount in before[-1].items()} == polled
            compared += 1
    assert compared > 40


@pytest.mark.parametrize(("name", "least"), [("w3", 400), ("w4", 100)])
def test_priorities_are_those_of_the_log(name: str, least: int) -> None:
    replay = recorded(name)
    given = watched(replay)
    place = {job.number: k for k, job in enumerate(replay.recording.jobs)}
    compared = 0
    for at, number, logged in replay.recording.priorities:
        near = [priority for when, priority in given[place[number]] if abs(when - at) < 500]
        assert near, (number, at)
        assert min(abs(priority - logged) for priority in near) <= 0.01 * logged
        compared += 1
    assert compared > least


def test_backfill_passes_saw_the_priorities_that_are_computed() -> None:
    replay = recorded("w4")
    given = watched(replay)
    place = {job.number: k for k, job in enumerate(replay.recording.jobs)}
    compared = 0
    with gzip.open(replay.recording.folder / "slurmctld.log.gz", "rt", errors="replace") as file:
        for line in file:
            found = re.match(r"\[(\S+)\] .*BACKFILL: test for JobId=(\d+) Prio=(\d+)", line)
            if found:
                at, job = milliseconds(found[1]), place[int(found[2])]
                before = [priority for when, priority in given[job] if when < at]
                assert abs(before[-1] - int(found[3])) <= max(0.01 * int(found[3]), 1)
                compared += 1
    assert compared > 1000


def test_given_plans_of_nothing_the_first_come_is_first_served() -> None:
    replay = recorded("w1")
    order = np.argsort(
        replay.closed_loop(priorities=FirstCome(np.arange(len(replay.recording.jobs)))).start, kind="stable"
    )
    assert (np.diff(order) > 0).all()


def open_loops(replay: Replay, runs: int) -> list[Outcome]:
    """Open loops at several phases of the cadence."""
    rng = np.random.default_rng(0)
    # the accelerated controller sleeps 1 % longer, and takes ten times as long to free a node
    latency, drift = (80, 0.01) if replay.recording.folder.name == "ft" else (8, 0.001)
    phases = [(rng.random(), rng.random(), rng.random()) for _ in range(runs)]
    return [replay.open_loop(phase, latency=latency, drift=drift) for phase in phases]


@pytest.mark.parametrize("name", ["w1", "w2a", "w2b", "w3", "w4", "w6", "ft"])
def test_at_passes_of_its_own_mean_waits_are_near(name: str) -> None:
    replay = recorded(name)
    measures = [replay.measures(outcome) for outcome in open_loops(replay, 16)]
    means = {key: float(np.mean([each[key] for each in measures])) for key in measures[0]}
    assert means["mean_wait"] == pytest.approx(means["recorded_mean_wait"], rel=0.05)
    assert means["pairs_swapped"] < 0.045
    assert means["within_3"] > SLURM_AGAINST_ITSELF.get(name, 0.4) - 0.05
