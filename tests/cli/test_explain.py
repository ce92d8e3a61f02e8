"""`gridsched explain`: the words for one job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gridsched as gs
from gridsched.policies.local import POLICIES
from tests.support.logs import swf
from tests.systems.slurm.recordings import Row, made_up
from tests.traces.test_sacct import export, line

JOBS = [(0, 50, 3, 100), (5, 60, 4, 60), (6, 20, 1, 20), (7, 90, 1, 200)]


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Three of four processors are held to 50, expected to 100: job 2 waits for all, 3 and 4 for one."""
    path = tmp_path / "queue.swf"
    path.write_text(swf(JOBS))
    return path


def said(text: str, name: str) -> str:
    """What stands beside a name."""
    return next(line for line in text.splitlines() if line.startswith(name)).removeprefix(name).strip()


def assert_said(text: str, **expected: str) -> None:
    """What stands beside names, of which blanks are underscores."""
    assert {name: said(text, name.replace("_", " ")) for name in expected} == expected


def test_the_head_of_the_queue_and_its_reservation(queue: Path, printed: Callable[..., str]) -> None:
    text = printed("explain", queue, 2)
    assert_said(
        text,
        job_="2 of user 0",
        asks_for="4 processors, 1 min; runs for 1 min",
        overtaken_by="1 job behind it: 3",
    )
    assert said(text, "submitted").endswith("1 processors free, no job waiting")
    assert said(text, "reservation").startswith("on arrival, for 1970-01-01 01:01:40")
    assert said(text, "reservation").endswith(
        "it started 50 s before, since jobs ended earlier than estimated"
    )
    assert "after 45 s: first in the queue, when 1 ended" in said(text, "started")
    assert said(text, "first in the queue, too few processors free").split() == ["45", "s", "100.0%"]
    assert "50 s earlier" in text


def test_backfilled_and_held_back_jobs(queue: Path, printed: Callable[..., str]) -> None:
    assert "after 0 s: backfilled past 1 job ahead of it (2)" in printed("explain", queue, 3)
    text = printed("explain", queue, 4)
    assert said(text, "reservation").startswith("made 1970-01-01 01:00:50")
    assert "behind others, processors free, but a reservation needs them" in text


@pytest.mark.parametrize("policy", [*POLICIES, "easy(2)"])
def test_every_policy_has_its_words(policy: str, queue: Path, printed: Callable[..., str]) -> None:
    for job in range(1, 5):
        text = printed("explain", queue, job, "--policy", policy)
        assert said(text, "policy").startswith(f"{policy}: queue order")
        assert "expected then" in text


def test_jobs_on_nodes_that_fail(queue: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    """Job 2 wants all processors, and one is out from 40 to 70."""
    events = tmp_path / "events.csv"
    events.write_text("time,node,kind\n40,node3,down\n70,node3,up\n", encoding="utf-8")
    text = printed("explain", queue, 2, "--policy", "fcfs", "--events", events)
    assert_said(text, on_="node0, node1, node2, node3", waited="1 min 5 s in all")
    assert said(text, "policy").startswith("fcfs")
    assert said(text, "processors").split() == ["45", "s", "69.2%"]
    assert said(text, "nodes that are down or drained").split() == ["20", "s", "30.8%"]
    assert said(text, "started").endswith("01:01:10 CET")
    at_once = printed("explain", queue, 1, "--policy", "fcfs", "--events", events)
    assert "What it waited for" not in at_once
    lost = printed("explain", queue, 2, "--events", events, "--policy", "sjf", "--requeue", "lost")
    assert "waited" in lost


def test_job_ids_and_names_of_an_export(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = export(
        tmp_path,
        line("10_1", JobIDRaw=11, User="ada"),
        line("10_2", JobIDRaw=12, User="bob", Submit="2024-05-01T10:00:10"),
    )
    text = printed("explain", path, "10_2", "--timezone", "Europe/Rome", "--processors", 4)
    assert said(text, "job ") == "10_2 of user bob"
    assert said(text, "recorded") == "the log has it wait for 50 s"
    assert "2024-05-01 10:00:10 CEST" in said(text, "submitted")
    assert said(text, "10_1").startswith("ada")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{queue} 9", "the log has no such job"),
        ("{queue} 1 --jobs 1:3", "it was left out, by --jobs, or by cleaning"),
        ("{queue} 1_2", "give a job number"),
        ("{queue} 1 --policy easy,fcfs", "takes one policy"),
        ("{queue} 1 --policy score", "name it with --score"),
        ("{log} 10", "it is a job array; name one of its tasks: 10_1"),
        ("{log} 11 --cancelled recorded", "left out: cancelled before it started"),
        ("{log} 12", "the export has no such job"),
        ("{log} 10_1 --processors 1", "it was left out, by cleaning"),
        ("{log} 6", "left out: waiting when the export was made"),
        ("{log} 7", "a job array of which nothing ran: 7_[2-9] (array tasks that had not"),
        ("{log} 7_4", "only as one of the tasks 7_[2-9], left out: array tasks that had not started"),
        ("{log} 7_10", "the export has no such job"),
        ("{log} 14", "name one of its tasks: 14_1; nothing ran of 14_[2,4-10:2%2] (array tasks that had"),
        ("{log} 14_6", "only as one of the tasks 14_[2,4-10:2%2], left out"),
        ("{log} 14_5", "the export has no such job"),
        ("{log} 8", "a heterogeneous job; name one of its components: 8+0, 8+1"),
        ("7 --against {outcome}", "has no such job"),
        ("--against {outcome} --latency=-1", "give milliseconds"),
        ("--against {outcome}.other", "no outcome.csv"),
    ],
)
def test_mistakes(given: str, reason: str, queue: Path, tmp_path: Path, mistake: Callable[..., str]) -> None:
    idle = {"Start": "Unknown", "End": "Unknown", "AllocCPUS": 0, "ElapsedRaw": 0}
    log = export(
        tmp_path,
        line("10_1", AllocCPUS=2, ReqCPUS=2),
        line(9, AllocCPUS=1, ReqCPUS=1),
        line(11, State="CANCELLED by 1", Start="Unknown", AllocCPUS=0),
        line(6, State="PENDING", **idle),
        line("7_[2-9]", State="PENDING", **idle),
        line("14_1", JobIDRaw=15),
        line("14_[2,4-10:2%2]", State="PENDING", **idle),
        line("8+0", JobIDRaw=8),
        line("8+1", JobIDRaw=12),
    )
    record = made_up(tmp_path / "r", [Row(0.1, 3, 1, 1.0, 10.0, "n[1-3]")], [(1, "main")])
    places = {"queue": queue, "log": log, "outcome": record / "outcome.csv"}
    assert reason in mistake("explain", *given.format(**places).split())


def test_each_run_of_a_requeued_job_can_be_explained(
    tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    again = {"Submit": "2024-05-01T11:00:00", "Start": "2024-05-01T11:30:00", "End": "2024-05-01T11:40:00"}
    path = export(tmp_path, line(5, State="REQUEUED"), line(5, **again))
    assert said(printed("explain", path, "5"), "run ").startswith("2 of 2 (1 submitted 2024-05-01 10:00:00")
    first = printed("explain", path, "5", "--run", 1)
    assert said(first, "run ").startswith("1 of 2")
    assert said(first, "recorded") == "the log has it wait for 1 min"
    assert "give 1 to 2" in mistake("explain", path, "5", "--run", 3)


def test_a_recorded_schedule_is_explained(tmp_path: Path, printed: Callable[..., str]) -> None:
    jobs = [Row(0.1, 3, 1, 11.0, 20.0, "n[1-3]"), Row(0.2, 3, 1, 21.0, 25.0, "n[1-3]")]
    outcome = made_up(tmp_path / "record", jobs, [(1, "main"), (11, "main"), (21, "main")]) / "outcome.csv"
    text = printed("explain", "--against", outcome)
    assert said(text, "same start").startswith("0 of 2 jobs")
    assert said(text, "they part at") == "00:00:01.000, with job 1"
    assert said(printed("explain", 2, "--against", outcome), "follows from") == "1"
    jobs = [Row(0.1, 3, 1, 1.0, 10.0, "n[1-3]")]
    outcome = made_up(tmp_path / "record", jobs, [(1, "main"), (11, "main")]) / "outcome.csv"
    assert "No difference is left" in printed("explain", "--against", outcome)
    assert "starts when it did" in printed("explain", 1, "--against", outcome)


@pytest.mark.parametrize("events", [False, True])
def test_explanations_in_python_are_the_same_text(
    events: bool, queue: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    """Counted processors, and nodes of which one fails, with the clock of the log."""
    options, cluster = [], gs.Cluster(processors=4, name="queue")
    if events:
        path = tmp_path / "events.csv"
        path.write_text("time,node,kind\n40,node3,down\n70,node3,up\n", encoding="utf-8")
        options = ["--events", path]
        cluster = replace(cluster, events=gs.read_events(path))
    run = gs.simulate(gs.clean(gs.read_swf(queue)), cluster, "easy")
    for job in range(4):
        text = str(gs.explain(run, job))
        assert text.split() == printed("explain", queue, job + 1, "--policy", "easy", *options).split()
