"""`gridsched conformance`: answers of others are compared, cases exported, and the page written."""

from __future__ import annotations

import base64
import csv
import random
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gridsched.cli import main
from gridsched.conformance.cases import names, read_case, read_cases, schedule_path
from gridsched.presentation.lesson import build_lesson
from gridsched.traces import read_swf
from tests.support.fields import assert_fields
from tests.support.studies import read_page

Rows = list[list[str]]


def read(path: Path) -> Rows:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def write(folder: Path, name: str, rows: Rows) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def stored(name: str) -> Rows:
    return read(schedule_path(name))


def last_line(output: str) -> str:
    return output.splitlines()[-1]


def check(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    code = main(["conformance", "check", *map(str, arguments)])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def test_stored_schedules_pass(printed: Callable[..., str]) -> None:
    out = printed("conformance", "check", schedule_path("speed").parent)
    assert last_line(out) == (
        f"{len(names())} cases pass, 0 fail, 0 were not compared; 0 columns are missing."
    )


def test_order_extra_columns_and_whole_floats_do_not_matter(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    shuffle = random.Random(7).shuffle
    for name in names():
        header, *rows = stored(name)
        shuffle(rows)
        order = list(range(len(header)))
        shuffle(order)
        times = {"start_time", "end_time", "processors", "earliest_time"}
        numeric = [":" in each or each in times for each in header]
        rows = [[f"{v}.0" if n and v else v for v, n in zip(row, numeric, strict=True)] for row in rows]
        lines = [[*(row[i] for i in order), "7"] for row in [header, *rows]]
        lines[0][-1] = "remark"
        write(tmp_path / "answers", name, lines)
    out = printed("conformance", "check", tmp_path / "answers")
    assert last_line(out).startswith(f"{len(names())} cases pass, 0 fail, 0 were not compared")


@pytest.mark.parametrize("name", names())
def test_a_changed_time_fails_and_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = stored(name)
    column = rows[0].index("easy:event" if "easy:event" in rows[0] else "start_time")
    row = next(row for row in rows[2:] if row[column] != "-1")
    expected, row[column] = row[column], str(int(row[column]) + 1)
    write(tmp_path / "answers", name, rows)
    code, out = check(capsys, tmp_path / "answers")
    assert code == 1
    case = read_case(name)
    (line,) = [line for line in out.split("expected")[1].splitlines() if line.startswith(f"{name} ")][:1]
    words = line.replace(",", " ").split()
    assert words[1] == ("easy:event" if case.kind == "cluster" else row[0])
    assert words[2] == row[rows[0].index("job")]
    assert {expected, row[column]} <= set(words)
    assert case.convention in out
    assert last_line(out).startswith(f"0 cases pass, 1 fail, {len(names()) - 1} were not compared")


def test_one_column_of_one_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = stored("equal_submits")
    at = header.index("sjf:event")
    own = [["start_time", "job"], *([row[at], row[0]] for row in rows)]
    write(tmp_path / "answers", "equal_submits", own)
    assert check(capsys, tmp_path / "answers", "--policy", "sjf", "--passes", "event")[0] == 0
    assert check(capsys, tmp_path / "answers", "--policy", "sjf", "--passes", "instant")[0] == 1
    own[0][0] = "sjf"
    write(tmp_path / "answers", "equal_submits", own)
    code, out = check(capsys, tmp_path / "answers", "--passes", "event")
    assert code == 0
    assert [line.split() for line in out.splitlines() if line.startswith("equal_submits ")] == [
        ["equal_submits", "1", "0", "8"]
    ]


def test_one_variant_needs_no_name_and_processors_may_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *rows = stored("reservation_kept")
    keep = [header.index(each) for each in ("job", "cluster", "start_time", "end_time")]
    own = [[row[i] for i in keep] for row in [header, *rows] if row[0] in ("variant", "reject")]
    write(tmp_path / "answers", "reservation_kept", own)
    code, out = check(capsys, tmp_path / "answers", "--policy", "reject")
    assert code == 0
    assert "not compared, no column: earliest_time, processors" in out


def test_two_columns_of_one_policy_are_refused(tmp_path: Path, mistake: Callable[..., str]) -> None:
    write(tmp_path / "answers", "equal_submits", [["job", "easy", "easy:event"], ["1", "0", "0"]])
    told = mistake("conformance", "check", tmp_path / "answers", "--passes", "event")
    assert "the columns 'easy' and 'easy:event' both have starts" in told


def test_cases_of_another_overrun_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = check(capsys, schedule_path("speed").parent, "--overrun", "increments")
    left_out = [line.split()[0] for line in out.splitlines() if "jobs outrun their estimates" in line]
    assert left_out == ["zero_run_times", "overrun_doubling", "correction_after_completion"]


def test_missing_lines_are_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "answers", "speed", [row for row in stored("speed") if row[:2] != ["central", "4"]])
    code, out = check(capsys, tmp_path / "answers")
    assert code == 1
    assert "no line" in out


@pytest.mark.parametrize(
    ("name", "rows", "reason"),
    [
        ("speed", [["a", "b"]], "speed.csv:1: no column 'job'; the columns are a, b"),
        ("speed", [["job", "start_time"]], "speed.csv:1: no column 'variant'"),
        ("equal_submits", [], "equal_submits.csv:1: no column 'job'; the columns are none"),
        ("equal_submits", [["job", "easy:event"], ["1"]], "equal_submits.csv:2: 1 fields instead of 2"),
        ("equal_submits", [["job", "easy:event"], ["1", "soon"]], ":2: easy:event is 'soon'"),
        ("equal_submits", [["job", "easy:event"], ["1", "1.5"]], ":2: easy:event is '1.5'"),
        ("equal_submits", [["job", "easy:event"], ["9", "1"]], ":2: there is no job 9"),
        ("equal_submits", [["job", "easy:event"], ["1", "0"], ["1", "0"]], ":3: job 1 is there twice"),
        ("equal_submits", [["job", "easy"], ["1", "0"]], "call it easy:instant or easy:event"),
        ("equal_submits", [["job", "start_time"], ["1", "0"]], "name one by --policy"),
        ("equal_submits", [["job", "job"], ["1", "0"]], "the column 'job' is there twice"),
        (
            "speed",
            [["variant", "job", "cluster", "start_time", "end_time"], ["", "1", "a", "0", "1"]],
            "speed.csv:2: variant is empty",
        ),
        ("equal_submits", [["job", "easy:event"], ["1", ""]], "no answers to compare"),
    ],
)
def test_tables_that_are_no_answers(
    name: str, rows: Rows, reason: str, tmp_path: Path, mistake: Callable[..., str]
) -> None:
    write(tmp_path / "answers", name, rows)
    assert reason in mistake("conformance", "check", tmp_path / "answers")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("check {folder}/nowhere", "no such folder"),
        ("check {folder} --policy hasty", "unknown policy 'hasty'"),
        ("check {folder}", "speed.csv: cannot be read"),
        ("export {folder}", "holds other files"),
        ("page {folder}", "is a folder"),
    ],
)
def test_other_mistakes(given: str, reason: str, tmp_path: Path, mistake: Callable[..., str]) -> None:
    (tmp_path / "speed.csv").write_bytes(b"\xff\xfe\x00job")
    assert reason in mistake("conformance", *given.format(folder=tmp_path).split())


def test_exported_cases_are_complete_and_unanswered(
    tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    folder = tmp_path / "cases"
    assert f"wrote {len(names())} cases" in printed("conformance", "export", folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "answers",
        "cases.yaml",
        "workloads",
    ]
    for case in read_cases():
        assert_fields(
            read_swf(folder / "workloads" / f"{case.name}.swf"),
            submit_time=[job.submit_time for job in case.jobs],
            requested_time=[job.requested_time for job in case.jobs],
            processors_available=sum(cluster.processors for cluster in case.clusters.values()),
        )
        assert set(read(folder / "answers" / f"{case.name}.csv")[0]) >= {"job"}
    assert "no answers to compare" in mistake("conformance", "check", folder / "answers")
    # Filled in with the schedules, the sheets pass.
    for name in names():
        assert sorted(read(folder / "answers" / f"{name}.csv")[0]) == sorted(stored(name)[0])


def test_list_names_every_case(printed: Callable[..., str]) -> None:
    out = printed("conformance", "list")
    assert all(f"{case.name} " in out and case.convention in out for case in read_cases())


def test_the_page_is_complete_and_holds_everything(tmp_path: Path) -> None:
    cases = [read_case(name) for name in ("equal_submits", "spanning", "migration")]
    seen: list[str] = []
    build_lesson(cases, tmp_path / "lesson.html", begin=lambda case: seen.append(case.name))
    assert seen == [case.name for case in cases]
    page = read_page(tmp_path / "lesson.html")
    assert page.open == []
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    # Different schedules of each case: five of the first, one, and three.
    assert len(images) >= 3 + 1 + 3
    for image in images:
        kind, content = image.split(",", 1)
        assert kind == "data:image/svg+xml;base64"
        ElementTree.fromstring(base64.b64decode(content))
    assert not any(tag == "script" for tag, _ in page.tags)
    assert not [value for _, attributes in page.tags for value in attributes.values() if "http" in value]
    words = " ".join(page.pieces)
    for case in cases:
        assert {case.title, case.convention, case.account} <= {piece.strip() for piece in page.pieces}
        for exercise in case.exercises:
            assert exercise.question in words
            assert exercise.answer in words
        for variant in case.variants.values():
            assert all(step in words for step in variant.steps)
    # Each job is accounted for under every policy.
    assert words.count("Step by step") >= len(images)


@pytest.mark.parametrize(("policy", "decides", "failed"), [("easy", "easy", 1), ("fcfs", "ff", 12)])
def test_a_scheduler_in_another_process_answers(
    policy: str, decides: str, failed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EASY with one rule for outrun estimates passes all cases but the one of the other rule."""
    command = f"{sys.executable} -m gridsched decide {decides} --batsim 4 --socket {{socket}}"
    run = ["conformance", "run", str(tmp_path / "answers"), "--policy", policy, "--command", command]
    assert main([*run, "--log", str(tmp_path / "logs" / "peer.log")]) == 1
    found = capsys.readouterr().out
    assert f"{failed} fail, 0 were not compared; 0 columns are missing." in last_line(found)
    if policy == "easy":
        assert "overrun_increments" in found.partition("First difference")[2]
    assert main(["conformance", "check", str(tmp_path / "answers"), "--policy", policy]) == 1
    answered = {f"peer-{path.stem}.log" for path in (tmp_path / "answers").iterdir()}
    assert {path.name for path in (tmp_path / "logs").iterdir()} == answered
    assert all("answers batsim-4" in path.read_text() for path in (tmp_path / "logs").iterdir())


def test_only_policies_of_the_cases_can_be_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["conformance", "run", str(tmp_path / "new"), "--policy", "easi", "--command", "x"]) == 2
    assert "no case of one cluster has the policy 'easi'" in capsys.readouterr().err
