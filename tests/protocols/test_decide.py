"""Schedulers of gridsched as decision processes: against gridsched as the simulator, and by hand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zmq

import gridsched as gs
from gridsched.cli import main
from gridsched.errors import ConfigurationError, GridschedError, ProtocolError
from gridsched.policies.local import LocalPolicy
from gridsched.protocols import batsim5
from gridsched.protocols import messages as m
from gridsched.protocols.answering import answer_all
from gridsched.protocols.batsim4 import Batsim4
from gridsched.simulation import simulate
from gridsched.systems.custom.external import CODECS, External
from gridsched.systems.deciding import DecisionProcess
from gridsched.systems.registry import scheduler_of
from gridsched.traces.batsim import NO_LABELS, Labels
from tests.systems.custom.schedulers import Easy

PROTOCOLS = ("batsim-4", "batsim-5")


@dataclass(frozen=True)
class Inside(External):
    """A decision process within this process."""

    who: Any = "easy"

    @contextmanager
    def _peer(self) -> Iterator[Any]:
        handshake = self.handshake if self.protocol == "batsim-5" else None
        process = DecisionProcess(scheduler_of(self.who), CODECS[self.protocol], handshake=handshake)
        yield Exchange(process)
        assert process.ended


class Exchange:
    """Answers of a decision process."""

    def __init__(self, process: DecisionProcess) -> None:
        self.exchange = process.answer


def log(folder: Path, trace: str, jobs: int | None = None) -> gs.Workload:
    """First jobs of a log."""
    found = gs.clean(gs.read_swf(folder / f"{trace}.swf.gz"))
    return found if jobs is None else found.select(np.arange(len(found)) < jobs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_easy_on_both_sides_is_the_engines(archive_mirror: Path, protocol: Any) -> None:
    jobs = log(archive_mirror, "KTH-SP2-1996-2.1-cln")
    run = simulate(jobs, None, Inside(protocol=protocol))
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, None, "easy").start_time)


def by_user(submit_time: int, user: int) -> float:
    """A score that looks at who has the job."""
    return -user - 1e-9 * submit_time


POLICIES: tuple[Any, ...] = (
    "fcfs",
    "ff",
    "sjf",
    "sjbf",
    "lxf",
    "easy(4)",
    "conservative",
    LocalPolicy(order="wfp3", backfilling="first_fit"),
    "easy++",
    LocalPolicy(order=by_user, backfilling="easy"),
    Easy(),
)


@pytest.mark.parametrize("trace", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln"])
@pytest.mark.parametrize("who", POLICIES, ids=lambda who: getattr(who, "label", who))
def test_others_are_on_the_first_jobs(archive_mirror: Path, trace: str, who: Any) -> None:
    jobs = log(archive_mirror, trace, 2000)
    expected = simulate(jobs, None, who).start_time
    for protocol in PROTOCOLS:
        handshake: Any = "dev" if protocol == "batsim-5" else "rc"
        run = simulate(jobs, None, Inside(who=who, handshake=handshake, protocol=protocol))  # type: ignore[arg-type]
        gs.verify(run)
        assert run.start_time.equals(expected)


@pytest.mark.parametrize(
    "arguments", [["--batsim", "4"], ["--batsim", "5"], ["--batsim", "5", "--handshake", "dev"]]
)
def test_the_command_decides_in_another_process(arguments: Sequence[str]) -> None:
    jobs = gs.synthesise("M3", jobs=60, seed=8, load_scale=1.3)
    command = [sys.executable, "-m", "gridsched", "decide", "easy", "--order", "lxf", *arguments]
    external = External(
        command=" ".join([*command, "--socket", "{socket}"]),
        protocol=f"batsim-{arguments[1]}",  # type: ignore[arg-type]
        handshake=arguments[-1] if len(arguments) > 2 else "rc",  # type: ignore[arg-type]
    )
    run = simulate(jobs, 1152, external)
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, 1152, "lxf").start_time)


def test_slurm_decides_by_its_configuration(tmp_path: Path) -> None:
    jobs = gs.synthesise("M3", jobs=60, seed=8, load_scale=1.3)
    conf = tmp_path / "slurm.conf"
    lines = [
        "SchedulerParameters=bf_interval=60,bf_window=2880",
        "NodeName=n[1-2] CPUs=4",
        "PriorityType=priority/basic",
    ]
    conf.write_text("\n".join([*lines, "PartitionName=batch Nodes=ALL Default=YES"]))
    command = f"{sys.executable} -m gridsched decide slurm --slurm-conf {conf} --batsim 4 --socket {{socket}}"
    run = simulate(jobs, 1152, External(command=command, log=str(tmp_path / "log")))
    gs.verify(run)
    assert run.start_time.equals(simulate(jobs, 1152, gs.read_slurm_site(conf).scheduler).start_time)
    assert "nodes and partitions" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("version", ["4", "5"])
def test_slurm_keeps_the_limits_of_accounts_that_the_workload_names(tmp_path: Path, version: str) -> None:
    """A user has one job at a time, an account two processors; who is not in the accounting has no limits."""
    conf, dump, log, output = (tmp_path / name for name in ("slurm.conf", "dump.cfg", "jobs.json", "run.nc"))
    conf.write_text("NodeName=n CPUs=1\nPartitionName=batch Nodes=ALL\nAccountingStorageEnforce=limits\n")
    account = ["Parent - 'root'", "Account - 'physics':GrpTRES=cpu=2", "Parent - 'physics'"]
    dump.write_text("\n".join([*account, "User - 'ada':MaxJobs=1"]))
    asked = [("ada", "physics", 1), ("ada", "physics", 1), ("ben", "physics", 2), ("ben", "physics", 3)]
    known = {"subtime": 0, "walltime": 100, "profile": "delay"}
    wanted = [
        {"id": str(k), "user": user, "group": group, "res": size, **known}
        for k, (user, group, size) in enumerate([*asked, ("cyd", "maths", 1)])
    ]
    profiles = {"delay": {"type": "delay", "delay": 50}}
    log.write_text(json.dumps({"nb_res": 4, "jobs": wanted, "profiles": profiles}))
    command = f"{sys.executable} -m gridsched decide slurm --slurm-conf {conf} --sacctmgr {dump}"
    command = f"{command} --batsim {version} --socket {{socket}}"
    options = ["--processors", "4", "--batsim", version, "--command", command, "--output", str(output)]
    assert main(["serve", str(log), *options]) == 0
    assert xr.open_dataset(output).start_time.values.tolist() == [2, 52, 102, -1, 2]


# --- by hand --------------------------------------------------------------------------------------

CODEC = Batsim4()
BEGIN = m.SimulationBegins(0.0, tuple(m.Host(k, f"host{k}") for k in range(4)))


def job(
    name: str, hosts: int, walltime: float | None = 60.0, time: float = 0.0, **labels: Any
) -> m.JobSubmitted:
    """A job that is submitted."""
    return m.JobSubmitted(time, name, hosts, walltime, time, labels=Labels(**labels))


def told(process: DecisionProcess, now: float, *events: m.Event) -> tuple[m.Decision, ...]:
    """What is decided about events."""
    return CODEC.decode_decisions(process.answer(CODEC.encode_events(now, events))).decisions


def test_jobs_get_the_hosts_with_the_smallest_numbers() -> None:
    process = DecisionProcess(scheduler_of("fcfs"), CODEC)
    decided = told(process, 0.0, BEGIN, job("w!a", 1), job("w!b", 1), job("w!c", 1))
    assert decided == tuple(m.ExecuteJob(0.0, f"w!{each}", str(k)) for k, each in enumerate("abc"))
    ended = m.JobCompleted(1.5, "w!b", "COMPLETED_SUCCESSFULLY")
    assert told(process, 1.5, ended, job("w!d", 2, time=1.5)) == (m.ExecuteJob(1.5, "w!d", "1 3"),)


def test_a_job_without_walltime_is_expected_to_run_forever() -> None:
    process = DecisionProcess(scheduler_of("easy"), CODEC)
    (first,) = told(process, 0.0, BEGIN, job("w!a", 3, None), job("w!b", 2), job("w!c", 2))
    assert first == m.ExecuteJob(0.0, "w!a", "0-2")


def test_walltimes_with_fractions_are_rounded_up_and_asked_for_again() -> None:
    process = DecisionProcess(scheduler_of("easy"), CODEC)
    decided = told(process, 0.25, BEGIN, job("w!a", 3, 10.5), job("w!b", 5))
    assert decided == (
        m.RejectJob(0.25, "w!b"),
        m.ExecuteJob(0.25, "w!a", "0-2"),
        m.CallLater(0.25, 11.0),
    )
    assert told(process, 11.0, m.RequestedCall(11.0)) == (m.CallLater(11.0, 22.0),)
    assert process.counts == {"messages": 2, "jobs": 2, "started": 1, "rejected": 1, "killed": 0}


class Killer(gs.CustomScheduler):
    """Kills what runs when a second job comes."""

    def decide(self, sim: Any) -> None:
        for number in sim.running["job"].tolist() if len(sim.queue) and len(sim.running) else []:
            sim.kill(number)
        if len(sim.queue) and not len(sim.running):
            sim.start(sim.queue["job"][0])


def test_a_killed_job_may_be_told_of_twice() -> None:
    process = DecisionProcess(Killer(), CODEC)
    told(process, 0.0, BEGIN, job("w!a", 3))
    assert told(process, 1.0, job("w!b", 2, time=1.0))[0] == m.KillJobs(1.0, ("w!a",))
    killed = m.JobCompleted(2.0, "w!a", "COMPLETED_KILLED"), m.JobsKilled(2.0, ("w!a",))
    assert told(process, 2.0, *killed)[0] == m.ExecuteJob(2.0, "w!b", "0-1")


def by_queue(submit_time: int, queue: int) -> float:
    """A score that looks at queues."""
    return queue


ACTUAL = LocalPolicy(backfilling="easy", prediction="actual")


@pytest.mark.parametrize(
    ("who", "codec", "labels", "words"),
    [
        ("easy++", Batsim4(), {"group": 1}, "data.job.user is not sent, and easy++ looks at it"),
        ("easy++", batsim5.Batsim5(), {}, "event.job.extra_data.user is not sent, and easy++"),
        ("easy++", Batsim4(), {"user": 1.5}, "data.job.user is 1.5, no whole number or text"),
        ("easy++", Batsim4(), {"user": None}, "data.job.user is None, no whole number or text"),
        (LocalPolicy(order=by_queue), Batsim4(), {"user": 3}, "data.job.queue is not sent, and by_queue"),
        (gs.Slurm(priority_weight_fairshare=1), Batsim4(), {"user": 3}, "data.job.group is not sent"),
        (ACTUAL, Batsim4(), {}, "delay of its profile is not sent"),
    ],
)
def test_what_a_policy_looks_at_has_to_be_sent(
    who: Any, codec: Any, labels: dict[str, Any], words: str
) -> None:
    process = DecisionProcess(scheduler_of(who), codec)
    with pytest.raises(ProtocolError, match=re.escape(f"job 'w!a' at 0 s: {words}")):
        process.answer(codec.encode_events(0.0, [BEGIN, job("w!a", 1, **labels)]))


@pytest.mark.parametrize("codec", [Batsim4(), batsim5.Batsim5()], ids=PROTOCOLS)
def test_workloads_may_name_users(codec: Any) -> None:
    """Texts have numbers in the order in which they come; what nobody looks at may be anything."""

    class Seeing(gs.CustomScheduler):
        def decide(self, sim: Any) -> None:
            seen.extend(sim.queue[["user", "group", "queue"]].tolist())

    seen: list[Any] = []
    ada, ben = job("w!a", 1, user="ada", group=7), job("w!b", 1, user="ben", group={}, queue="ada")
    process = DecisionProcess(Seeing(), codec)
    process.answer(codec.encode_events(0.0, [BEGIN, ada, ben]))
    first = 2**40
    assert seen == [(first, 7, -1), (first + 1, -1, first + 2)]


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '"user"', "the third run"])
def test_other_texts_of_a_workload_are_passed_over(text: str) -> None:
    codec = batsim5.Batsim5()
    message = codec.encode_events(0.0, [job("w!a", 1, user=5)])
    changed = message.replace(b'"{\\"user\\":5}"', json.dumps(text).encode())
    assert changed != message
    (event,) = codec.decode_events(changed).events
    assert isinstance(event, m.JobSubmitted)
    assert event.labels == NO_LABELS


ENDS = m.JobCompleted(0.0, "w!a", "COMPLETED_SUCCESSFULLY")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([(0.0, [job("w!a", 1)])], "JobSubmitted at 0 s before SimulationBegins"),
        ([(0.0, [BEGIN, BEGIN])], "SimulationBegins at 0 s: it has begun already"),
        ([(0.0, [m.SimulationBegins(0.0, ())])], "SimulationBegins: there are no hosts"),
        ([(0.0, [BEGIN, job("w!a", 1), job("w!a", 1)])], "'w!a' at 0 s: it was submitted before"),
        ([(0.0, [BEGIN, job("w!a", 0)])], "job 'w!a' at 0 s: asks for 0 hosts"),
        ([(0.0, [BEGIN, ENDS])], "job 'w!a' ends at 0 s, and does not run"),
        ([(9.0, [BEGIN]), (8.0, [])], "batsim-4, message 2, at 9 s: $.now is 8, and was 9 or later before"),
        ([(0.0, [BEGIN, m.HostsChanged(0.0, "1", False)])], "hosts '1' at 0 s: hosts that fail"),
    ],
)
def test_what_a_simulator_cannot_say(messages: list[tuple[float, list[m.Event]]], words: str) -> None:
    process = DecisionProcess(scheduler_of("easy"), CODEC)
    *before, (now, events) = messages
    for each in before:
        told(process, each[0], *each[1])
    with pytest.raises(ProtocolError, match=re.escape(words)):
        told(process, now, *events)


def test_other_handshakes_are_refused() -> None:
    process = DecisionProcess(scheduler_of("easy"), batsim5.Batsim5(), handshake="rc")
    with pytest.raises(ProtocolError, match="not size and data of the handshake 'rc'"):
        process.answer(batsim5.write_init(b"", "dev"))


def test_nobody_waits_forever(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match=r"no message on ipc:.* within 0.05 s"):
        answer_all(f"ipc://{tmp_path}/peer", lambda message: message, lambda: True, timeout=0.05)


def test_patience_may_be_long(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/peer"
    with zmq.Context() as context, context.socket(zmq.REQ) as asking:
        asking.setsockopt(zmq.LINGER, 0)
        asking.connect(address)
        asking.send(b"hello")
        answer_all(address, lambda message: message, iter([True, False]).__next__, timeout=2_147_484.0)
        assert asking.recv() == b"hello"


def test_addresses_that_cannot_be_bound_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be bound to"):
        answer_all("tcp://8.8.8.8:1", lambda message: message, lambda: True, timeout=1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["central"], "central cannot decide while jobs run"),
        (["esay"], "did you mean easy"),
        (["slurm", "--order", "lxf"], "--order: slurm is no local policy"),
        (["slurm", "--slurm-version", "24.05"], "--slurm-version: name the policy slurm, and give its"),
        (["easy", "--slurm-conf", "slurm.conf"], "--slurm-conf: name the policy slurm, and give its"),
        (["easy", "--order", "nonsense"], "order is 'nonsense'"),
        (["easy", "--timeout", "1", "--socket", "tcp://*:99999999"], "give a port from 1 to 65535"),
    ],
)
def test_mistakes_on_the_command_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", "--batsim", "4", "--socket", "ipc:///nowhere/peer", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_errors_of_a_user_end_it() -> None:
    class Wrong(gs.CustomScheduler):
        def decide(self, sim: Any) -> None:
            sim.start(77)

    process = DecisionProcess(Wrong(), CODEC)
    with pytest.raises(GridschedError, match="job 77 cannot start at 0 s: it does not wait"):
        told(process, 0.0, BEGIN, job("w!a", 1))
