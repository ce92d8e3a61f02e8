"""Why a model of Slurm starts a job when the controller did not, in recordings that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsched.errors import ConfigurationError
from gridsched.systems.differences import StartDifference, StartDifferences
from gridsched.systems.slurm.differences import explain_against
from gridsched.systems.slurm.hostlist import compress_hosts, expand_hosts
from tests.systems.slurm.recordings import RECORDINGS, Row, made_up, stamp

PASSES = [(1.0, "main"), (2.5, "backfill"), (11.0, "main"), (21.0, "main"), (22.5, "backfill")]


def told(folder: Path, jobs: list[Row], *lines: str) -> StartDifferences:
    return explain_against(made_up(folder, jobs, PASSES, *lines) / "outcome.csv")


def only(differences: StartDifferences) -> StartDifference:
    (one,) = differences.differences
    return one


def test_a_schedule_by_the_rules_differs_in_nothing(tmp_path: Path) -> None:
    jobs = [Row(0.1, 2, 1, 1.0, 20.5, "n[1-2]"), Row(0.2, 3, 1, 21.0, 30.0, "n[1-3]")]
    found = told(tmp_path, jobs)
    assert found.differences == ()
    assert (found.same_nodes, found.never, found.jobs) == (2, 0, ("1", "2"))


def test_a_job_is_kept_by_one_ahead_of_it_that_does_not_fit(tmp_path: Path) -> None:
    jobs = [
        Row(0.1, 2, 1, 1.0, 20.5, "n[1-2]"),
        Row(0.2, 3, 1, 21.0, 30.0, "n[1-3]"),
        Row(0.3, 1, 2, 11.0, 20.0, "n3"),
    ]
    late = only(told(tmp_path, jobs))
    assert (late.job, late.recorded, late.predicted) == ("3", 11.0, -1)
    assert "job 2 ahead of it in its partition did not fit; 1 of its nodes were free, it needs 1" in late.why
    assert late.follows == ()


def test_a_job_waits_for_its_plan(tmp_path: Path) -> None:
    jobs = [
        Row(0.1, 2, 1, 1.0, 20.5, "n[1-2]"),
        Row(0.2, 3, 1, 21.0, 30.0, "n[1-3]"),
        Row(0.3, 1, 2, 2.5, 20.0, "n3", "backfill"),
    ]
    late = next(each for each in told(tmp_path, jobs).differences if each.job == "3")
    # planned behind the job before it, which is planned for the end of the first
    assert "backfilling planned it 119 s later on n3" in late.why
    assert "job 2 had plans for some of them" in late.why


def test_what_the_record_had_on_the_nodes_is_named_and_what_it_planned(tmp_path: Path) -> None:
    jobs = [Row(0.1, 3, 1, 1.0, 20.999, "n[1-3]"), Row(0.2, 1, 1, 22.5, 30.0, "n1", "backfill")]
    plan = "JobId=2 to start at 1970-01-01T00:01:01, end at x on nodes n1 in main"
    early = only(told(tmp_path, jobs, f"[{stamp(2.501)}] sched/backfill: _dump_job_sched: {plan}"))
    assert early.predicted == 21.0
    assert "job 1 had left its nodes 1 ms before" in early.why
    assert "planned it for 00:01:01 on n1" in early.why
    jobs = [Row(0.1, 3, 1, 1.0, 20.0, "n[1-3]"), Row(0.2, 1, 1, -1, -1, "", state="CANCELLED by 0")]
    never = only(told(tmp_path, jobs))
    assert (never.recorded, never.predicted) == (-1, 21.0)
    assert "it never started" in never.why


def test_differences_follow_from_those_before_them(tmp_path: Path) -> None:
    jobs = [Row(0.1, 3, 1, 11.0, 20.0, "n[1-3]"), Row(0.2, 3, 1, 21.0, 25.0, "n[1-3]")]
    first, second = told(tmp_path, jobs).differences
    assert (first.job, first.predicted) == ("1", 1.0)
    assert (second.job, second.predicted) == ("2", 11.0)
    assert second.holders == second.follows == ("1",)


@pytest.mark.parametrize(
    ("change", "lines", "words"),
    [
        ({"extra": "dep:afterok:j2"}, [], "it waited for job 2"),
        ({"extra": "hold"}, [f"[{stamp(30)}] _release_job_rec: release hold on JobId=1 by"], "it was held"),
        ({}, [f"[{stamp(0.5)}] job_signal: 9 of pending JobId=1 successful"], "it had been cancelled"),
        ({}, [f"[{stamp(0)}] update_node: node n1 state set to DRAINED"], "2 nodes were neither down nor"),
        (
            {},
            [f"[{stamp(0)}] Created reservation=r x nodes=n[1-2] x start={stamp(30)} end={stamp(40)} "],
            "a reservation left it 1 nodes, it needs 3",
        ),
    ],
)
def test_other_reasons(tmp_path: Path, change: dict[str, Any], lines: list[str], words: str) -> None:
    job = Row(0.1, 3, 1, 11.0, 20.0, "n[1-3]")._replace(**change)
    other = Row(10.5, 3, 1, 22.5, 23.0, "n[1-3]", "backfill")
    late = next(each for each in told(tmp_path, [job, other], *lines).differences if each.job == "1")
    assert words in late.why


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no outcome\.csv"):
        explain_against(tmp_path / "outcome.csv")
    with pytest.raises(ConfigurationError, match="closed, open"):
        explain_against(tmp_path / "outcome.csv", loop="half")  # type: ignore[arg-type]


def test_a_real_record_differs_by_the_time_until_nodes_are_free() -> None:
    if not RECORDINGS.exists():
        pytest.skip("no recordings in ../shared/slurm")
    outcome = RECORDINGS / "w5" / "outcome.csv"
    assert "had left its nodes 1 ms before" in only(explain_against(outcome, latency=0)).why
    assert explain_against(outcome).differences == ()
    parted = explain_against(RECORDINGS / "w6" / "outcome.csv", loop="open", seed=2)
    assert all(each.why for each in parted.differences)
    assert any(each.follows for each in parted.differences)


@pytest.mark.parametrize("text", ["n1", "n[01-03,07]", "n[9-10]", "login,n[1-2]", "a1b[08-10]"])
def test_hosts_are_written_as_they_are_read(text: str) -> None:
    hosts = expand_hosts(text)
    assert expand_hosts(compress_hosts(hosts)) == hosts
