"""`gridsched forecast`: what it says of a log, a simulated log and a queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.kinds.test_forecast import busy_log
from tests.support.logs import assert_rows, odd_log, row, swf
from tests.traces.test_sacct import export, line

JOBS = [(0, 50, 3, 100), (5, 60, 4, 60), (6, 20, 1, 20), (7, 90, 1, 200)]
QUEUE = "job,state,elapsed,processors,time_limit,user\n1,R,10,4,60,ada\n2,PD,0,1,3600,bob\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "queue.swf"
    path.write_text(swf(JOBS))
    return path


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    path = tmp_path / "queue.csv"
    path.write_text(QUEUE)
    return path


def cells(text: str, job: str) -> list[str]:
    """Cells of a row of the table."""
    return next(row for row in text.splitlines() if row.startswith(f"{job} ")).split()


def test_the_queue_of_a_simulation(log: Path, printed: Callable[..., str]) -> None:
    """At 10 job 2 waits for job 1, which may run until 100."""
    text = printed("forecast", log, "--at", "10", "--simulated")
    assert "4 of 4 processors in use by 2 jobs" in text
    number, user, size, requested, waited, low, middle, high, soon, expected = cells(text, "2")
    assert (number, user, size, requested, waited, expected) == ("2", "0", "4", "60", "5", "90")
    assert 0 < int(low) <= int(middle) <= int(high) <= 90
    assert soon == "100%"
    assert cells(text, "4")[0] == "4"
    dated = printed("forecast", log, "--at", "1970-01-01T01:00:10", "--simulated", "--job", 2, "--human")
    assert "\n4 " not in dated
    assert "1 min" in dated
    assert "No job waits." in printed("forecast", log, "--at", "1", "--simulated")


def test_the_recorded_queue_of_an_export(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = export(
        tmp_path, line(10, User="ada"), line(11, User="bob", Submit="2024-05-01T10:00:10", AllocCPUS=1)
    )
    text = printed("forecast", path, "--at", "2024-05-01T10:00:30", "--processors", 4)
    assert cells(text, "11")[1] == "bob"


def test_a_queue_from_a_file(queue: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    text = printed("forecast", queue, "--processors", 4)
    assert "none: run times" in text
    assert cells(text, "2")[-1] == "50"
    history = export(tmp_path, line(10, User="ada"))
    text = printed("forecast", queue, "--processors", 4, "--history", history)
    assert "1 job, finished before" in text


def test_what_is_odd_in_a_queue_is_said(
    tmp_path: Path, queue: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    """The history ends at 200."""
    history = odd_log(tmp_path / "odd.swf")
    given = ("forecast", queue, "--processors", 4, "--history", history)
    assert "the last end in the history" in printed(*given)
    later = printed(*given, "--at", 200 + 10 * 86_400)
    assert row(later, "history")[:2] == ["4", "jobs"]
    assert "it ends 10.0 days before the queue" in later
    assert "it ends" not in printed(*given, "--at", 200 + 86_400)
    queue.write_text(
        "job,state,elapsed,processors,time_limit,partition,reason\n"
        "1,R,10,4,UNLIMITED,a,\n2,PD,0,1,3600,a,\n3,PD,0,1,3600,b,\n4,PD,0,1,3600,a,JobHeldUser\n"
    )
    assert_rows(
        printed("forecast", queue, "--processors", 4),
        {
            "left out: held in the queue": ["1"],
            "repaired: in 2 partitions of the queue, taken as one pool": ["3"],
            "repaired: no time limit in the queue, taken as 3,600 s": ["1"],
        },
    )
    text = printed("forecast", queue, "--processors", 4, "--partition", "a")
    assert_rows(text, {"left out: in another partition of the queue": ["1"], "waiting": ["1", "job"]})
    queue.write_text("\n".join(queue.read_text().splitlines()[1:]))
    assert "the first row is a job" in mistake("forecast", queue, "--processors", 4)
    queue.write_text(" JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 1 a x ada R 1:00 1 n1\n")
    assert "squeue -o" in mistake("forecast", queue, "--processors", 4)


def test_more_processors_than_were_given_are_said(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = odd_log(tmp_path / "odd.swf")
    text = printed("forecast", path, "--at", 120)
    assert "6 in place of 4" in text
    assert row(text, "left out: no run time") == ["1"]
    assert "in place of" not in printed("forecast", path, "--at", 120, "--processors", 6)


def test_a_queue_is_corrected_by_its_history(
    log: Path, queue: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    """Jobs 2 and 4 of the history waited; nothing more is known of the queue than of a log."""
    history = log.with_name("history.swf")
    history.write_text(swf(JOBS).replace(" -1 ", " 50 ", 4))
    given = (queue, "--processors", 4, "--history", history, "--at", 300)
    text = printed("forecast", *given, "--adjust", 5)
    assert "nothing (fewer than 100 earlier" in text
    assert re.search(r"held \d+% of the starts of \d+ earlier", text)
    assert "no queueing" in mistake("forecast", *given, "--calibrate")
    assert "before time 0" in mistake("forecast", *given[:-1], 5)


def test_past_forecasts_are_scored(tmp_path: Path, printed: Callable[..., str]) -> None:
    """Of a log that EASY has made: learned forecasts are beside those of futures and of the null model."""
    path = tmp_path / "busy.swf"
    path.write_text(busy_log())
    text = printed("forecast", path, "--processors", 8, "--score", "--adjust", 60)
    header, *rows = text[text.index("forecast  ") :].splitlines()
    assert header.split()[-7:] == ["[s]", "of", "null", "median", "error", "[s]", "of", "null"][1:]
    learned, *others, null = (row.split(", ")[1].split() for row in rows)
    assert 60 <= float(learned[2].rstrip("%")) <= 95
    assert null[-3] == null[-1] == "100%"
    assert len(others) == 2
    simulated = printed("forecast", path, "--processors", 8, "--score", "--adjust", 60, "--simulated")
    assert simulated == text, "recorded starts are simulated ones"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{log}", "--at: give a time of the log"),
        ("{queue} --processors 4 --score", "--score is for logs"),
        ("{waits} --score --at 10", "not with --at"),
        ("{waits} --score --job 2", "not with --job"),
        ("{waits} --score --adjust 0", "not with --adjust 0"),
        ("{log} --score", "no recorded waits"),
        ("{log} --at noon --simulated", "--at is 'noon'"),
        ("{log} --at 1970-01-03 --simulated", "1970-01-03"),
        ("{log} --at 1970-01-03 --simulated", "1970-01-01"),
        ("{log} --at=-5 --simulated", "not within the log"),
        ("{log} --at 10", "no recorded waits"),
        ("{waits} --at 10 --calibrate --policy easy", "leave that out"),
        ("{waits} --at 10 --calibrate", "give a longer log, or leave out --calibrate"),
        ("{log} --at 10 --policy easy,fcfs", "takes one policy"),
        ("{log} --at 10 --simulated --job 3", "--job 3"),
        ("{log} --at 10 --history {queue}", "--history"),
        ("{waits} --score --futures 3", "not with --futures"),
        ("{waits} --score --within 5", "not with --within"),
        ("{waits} --at 10 --estimates actual", "--estimates: has no effect on forecasts of recorded waits"),
        ("{waits} --at 10 --speed 2", "--speed: has no effect"),
        ("{queue} --processors 4 --month 1970-01", "--month: has no effect on forecasts of a queue without"),
        ("{queue} --processors 4 --nodes nothing.yaml", "--nodes: has no effect"),
        ("{queue}", "give the processors of the cluster"),
        ("{queue} --processors 4 --adjust 3", "--adjust is for logs"),
        ("{queue} --processors 4 --calibrate", "--calibrate is for logs"),
        ("{queue} --processors 4 --at 3", "--at is for logs"),
        ("{queue} --processors 3", "the cluster has 3"),
    ],
)
def test_mistakes(given: str, expected: str, log: Path, queue: Path, mistake: Callable[..., str]) -> None:
    waits = log.with_name("waits.swf")
    waits.write_text(swf(JOBS).replace(" -1 ", " 10 ", 4))
    assert expected in mistake("forecast", *given.format(log=log, queue=queue, waits=waits).split())


def test_where_nobody_waited_nothing_is_learned(log: Path, printed: Callable[..., str]) -> None:
    given = ("forecast", log, "--at", "5", "--simulated")
    assert cells(printed(*given, "--adjust", 3), "2") == cells(printed(*given), "2")


def test_partitions_in_which_nobody_waited_are_passed_over(
    tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    """Partition a queues; partition b has nodes of its own, begins a day later, and nobody waits there."""
    header = "JobID|User|Partition|Submit|Start|End|ElapsedRaw|State|Timelimit|AllocCPUS|NNodes|NodeList"
    rows = [(k, "a", 900 * k, 3600 * k, "n1") for k in range(30)] + [(30, "b", 172_800, 172_800, "n2")]
    begin = 1_714_557_600
    lines = [
        f"{k + 1}|ada|{name}|{begin + submit}|{begin + start}|{begin + start + 3600}|3600|COMPLETED|02:00:00|"
        f"4|1|{node}"
        for k, name, submit, start, node in rows
    ]
    path = export(tmp_path, *lines, header=header)
    early = printed("forecast", path, "--at", "2024-05-01T12:30:00", "--timezone", "UTC", "--adjust", 3)
    assert "No job waits in b." in early
    score = ("forecast", path, "--timezone", "UTC", "--score", "--adjust", 20)
    assert "Nobody waited in the second half of b" in printed(*score)
    assert "nobody waits in its second half" in mistake(*score, "--partition", "b")


def test_futures_are_on_nodes_where_these_are_known(
    tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    """Job 8 waits for the GPU of job 7 though processors are free; job 9 needs a feature no log had."""
    history = export(tmp_path, line(6, User="ada", ReqTRES="cpu=1,mem=1G,node=1", AllocCPUS=1))
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        "nodes:\n"
        "- {name: c, count: 1, cores: 4, memory: 8192, features: [old]}\n"
        "- {name: g, count: 1, cores: 2, memory: 8192, gpus: 1}\n"
    )
    queue = tmp_path / "queue.txt"
    queue.write_text(
        "JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER|TRES_ALLOC|FEATURES\n"
        "7|RUNNING|10:00|1|1:00:00|ada|cpu=1,mem=1G,node=1,gres/gpu=1|(null)\n"
        "8|PENDING|0:00|1|30:00|ada|cpu=1,mem=1G,node=1,gres/gpu=1|(null)\n"
        "9|PENDING|0:00|4|30:00|ada|cpu=4,mem=1G,node=1|old\n"
    )
    given = ("forecast", queue, "--history", history, "--nodes", nodes)
    text = printed(*given)
    assert_rows(text, {"information used": ["nodes", "memory", "gpus", "constraints"]})
    assert [cells(text, number)[-1] for number in ("8", "9")] == ["3,000", "0"]
    text = printed(*given, "--without", "gpus,constraints")
    assert cells(text, "8")[-1] == "0"
    assert "--without nodes" in mistake(*given, "--policy", "lxf")
    nodes.write_text(nodes.read_text().replace("c, count: 1", "c, count: 256"))
    many = printed(*given)
    assert "simulated only with --adjust" in many
    assert "information used" not in many
    assert cells(many, "8")[-1] == "0"
    assert cells(printed(*given, "--adjust", 5), "8")[-1] == "3,000"
    nodes.write_text(nodes.read_text().replace("c, count: 256", "c, count: 1"))
    text = printed("forecast", history, "--at", "2024-05-01T10:00:30", "--nodes", nodes, "--simulated")
    assert_rows(text, {"information used": ["nodes", "memory"]})
