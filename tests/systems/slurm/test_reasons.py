"""Reasons of waiting jobs: their names, what they follow from, and those that a controller showed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.account import RunNames, as_text, queue_account
from gridsched.explanation import explain_in_queue
from gridsched.nodes import NodeEvent, Partition
from gridsched.policies.local import named_policy
from gridsched.systems.slurm.accounts import Accounting, Association, Limits, Quality
from gridsched.systems.slurm.reasons import ARRAY_LIMIT, TOO_FEW, QueueWatch, limit_reason
from gridsched.workloads.dependencies import dependency_table
from tests.support.errors import refused
from tests.support.nodes import jobs_of
from tests.systems.slurm.recordings import RECORDINGS, recorded

ONE_USER = {"user": [1, 1, 1], "group": [1, 1, 1], "queue": [1, 1, 1]}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("qos", "q", "group", "", "processors"), "QOSGrpCpuLimit"),
        (("qos", "q", "group", "", "used processors"), "QOSGrpCPUMinutesLimit"),
        (("qos", "q", "user", "ada", "processors"), "QOSMaxCpuPerUserLimit"),
        (("qos", "q", "user", "ada", "jobs"), "QOSMaxJobsPerUserLimit"),
        (("qos", "q", "user", "ada", "gpus"), "QOSMaxGRESPerUser"),
        (("qos", "q", "account", "a", "jobs"), "MaxJobsPerAccount"),
        (("association", "a", "", "group", "memory"), "AssocGrpMemLimit"),
        (("association", "a", "", "group", "running processors"), "AssocGrpCPURunMinutesLimit"),
        (("association", "a", "", "group", "running memory"), "AssocGrpMemRunMinutes"),
        (("association", "a", "ada", "user", "jobs"), "AssocMaxJobsLimit"),
    ],
)
def test_names_of_limits(key: tuple[str, ...], reason: str) -> None:
    assert limit_reason(key) == reason


def reasons(columns: dict[str, Any], cluster: gs.Cluster, job: int, **parameters: Any) -> list[str]:
    """Reasons of a job of three, of which the first runs for 100 s from 0 on, without repetition."""
    jobs = jobs_of(
        **{
            "submit_time": [0, 5, 6],
            "run_time": [100, 60, 20],
            "requested_time": [100, 60, 20],
            "requested_processors": [4, 4, 4],
            **ONE_USER,
            **columns,
        }
    )
    scheduler = gs.Slurm(select_type="linear", **parameters)
    why, shown = explain_in_queue(jobs, cluster, scheduler, job)
    assert why.run.drop_attrs().identical(gs.simulate(jobs, cluster, scheduler).drop_attrs())
    assert sum(each.end - each.start for each in shown) == why.wait_time
    assert [each.start for each in shown[1:]] == [each.end for each in shown[:-1]]
    return [each.reason for each in shown if each.reason != "None"]


def limited(*, account: Limits | None = None, quality: Limits | None = None) -> dict[str, Any]:
    accounting = Accounting(
        associations=(
            Association(account="root"),
            Association(account="1", parent="root", limits=account or Limits()),
        ),
        qualities={"1": Quality(name="1", limits=quality or Limits())},
    )
    return {"accounting": accounting, "enforce_limits": True}


@pytest.mark.parametrize(
    ("columns", "cluster", "job", "parameters", "expected"),
    [
        ({}, {"processors": 4}, 1, {}, ["Resources"]),
        ({}, {"processors": 4}, 2, {}, ["Priority", "Resources"]),
        (
            {"partition": [0, 0, 1]},
            {"processors": 4, "partitions": [Partition(number=0), Partition(number=1)]},
            2,
            {},
            [TOO_FEW, "Resources"],
        ),
        ({"dependencies": dependency_table([(1, 0, "afterok")])}, {"processors": 8}, 1, {}, ["Dependency"]),
        ({"array": [7, 7, 7], "array_limit": [1] * 3}, {"processors": 12}, 1, {}, [ARRAY_LIMIT]),
        (
            {},
            {"processors": 12},
            1,
            limited(quality=Limits(running={("user", "jobs"): 1})),
            ["QOSMaxJobsPerUserLimit"],
        ),
        (
            {},
            {"processors": 12},
            1,
            limited(account=Limits(running={("group", "processors"): 6})),
            ["AssocGrpCpuLimit"],
        ),
        # who is over a limit does not stand in the way
        (
            {"queue": [1, 1, 2], "requested_processors": [4, 4, 12]},
            {"processors": 12},
            2,
            limited(quality=Limits(running={("user", "jobs"): 1})),
            ["Resources"],
        ),
        (
            {"run_time": [3, 60, 20]},
            {
                "processors": 4,
                "events": [NodeEvent(time=4, kind="drain"), NodeEvent(time=60, kind="resume")],
            },
            1,
            {},
            [TOO_FEW],
        ),
        # a job of another partition that waits keeps the nodes of both
        (
            {"partition": [0, 1, 0], "requested_processors": [4, 12, 8], "requested_time": [100, 60, 200]},
            {"processors": 12, "partitions": [Partition(number=0), Partition(number=1, priority=2)]},
            2,
            {},
            [TOO_FEW, "Resources"],
        ),
        # who wants more nodes than are in service closes the partition at any age
        (
            {"run_time": [3, 60, 20], "requested_processors": [4, 12, 4]},
            {"processors": 12, "events": [NodeEvent(time=4, kind="drain", node="node2")]},
            1,
            {"bf_min_age_reserve": 1000},
            [TOO_FEW],
        ),
    ],
)
def test_what_reasons_follow_from(
    columns: dict[str, Any], cluster: dict[str, Any], job: int, parameters: Any, expected: list[str]
) -> None:
    whole = gs.Cluster(**{"processors_per_node": 4, **cluster})
    assert reasons(columns, whole, job, **parameters) == expected


@pytest.mark.parametrize(("mode", "happens"), [("requeue", "requeued"), ("cancel", "cancelled")])
def test_the_account_of_a_preempted_job(mode: Any, happens: str) -> None:
    jobs = jobs_of(
        submit_time=[0, 100],
        run_time=[1000, 50],
        requested_time=[1000, 50],
        requested_processors=[4, 4],
        partition=[0, 1],
    )
    tiers = [Partition(number=0), Partition(number=1, priority=5)]
    cluster = gs.Cluster(processors=4, processors_per_node=4, partitions=tiers)
    scheduler = gs.Slurm(preempt_type="partition_prio", preempt_mode=mode)
    why, shown = explain_in_queue(jobs, cluster, scheduler, 0)
    text = as_text(queue_account(why, shown, "Slurm", RunNames(why.run)))
    assert re.search(rf"preempted +1\d\d s by 2, {happens}", text)
    assert ("BeginTime" in [each.reason for each in shown]) == (mode == "requeue")
    assert "lost with its node" not in text
    other, shown = explain_in_queue(jobs, cluster, scheduler, 1)
    text = as_text(queue_account(other, shown, "Slurm", RunNames(other.run)))
    assert re.search(
        r"started +1\d\d s, when 1 ended" + ("" if mode == "cancel" else " or was preempted"), text
    )


@pytest.mark.parametrize("scheduler", [gs.Multicluster(), named_policy("easy")])
def test_others_have_no_reasons(scheduler: Any) -> None:
    jobs = jobs_of(submit_time=[0, 1], run_time=[9, 9], requested_time=[9, 9], requested_processors=[4, 4])
    with refused("no reasons of waiting jobs"):
        explain_in_queue(jobs, gs.Cluster(processors=4, processors_per_node=4), scheduler, 1)


def test_a_job_that_is_not_there() -> None:
    jobs = jobs_of(submit_time=[0, 1], run_time=[9, 9], requested_time=[9, 9], requested_processors=[4, 9])
    for job, reason in ((2, "from index 0"), (1, "was rejected: no nodes that it may use")):
        with refused(reason):
            explain_in_queue(jobs, gs.Cluster(processors=4, processors_per_node=4), gs.Slurm(), job)


@pytest.mark.parametrize(
    "name", ["w1", "w2a", "w2b", "w3", "w4", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13"]
)
def test_reasons_are_those_that_the_controller_showed(name: str) -> None:
    """At each poll of squeue, of jobs that a pass has looked at since they were submitted."""
    replay = recorded(name)
    limits, _, of_jobs = replay._limits()
    keys = [limit_reason(key) for key in of_jobs.keys]
    jobs = replay.recording.jobs
    watch = QueueWatch([*keys, *[ARRAY_LIMIT] * (len(limits) - len(keys))], range(len(jobs)))
    found = replay.controller("logged", watch=watch).follow(replay.recording.passes)
    places = {each: k for k, job in enumerate(jobs) for each in (str(job.number), job.identifier)}
    pairs: Counter[bool] = Counter()
    with (RECORDINGS / name / "squeue_poll.csv").open(encoding="utf-8") as polls:
        for poll in csv.DictReader(polls):
            # what holds a job is not in a recording
            if poll["state"] != "PD" or poll["reason"] == "JobHeldUser":
                continue
            job, now = places[poll["jobid"]], 1000 * float(poll["wall"])
            noted = watch.noted[job]
            place = int(np.searchsorted([each[0] for each in noted], now - 5)) - 1
            if place >= 0 and noted[place][1] != "not submitted" and found.start[job] > now:
                pairs[noted[place][1] == poll["reason"]] += 1
    assert pairs.total() > 1000
    assert pairs[True] / pairs.total() > 0.975


def test_a_rejected_job_has_the_reason_of_its_own() -> None:
    asked = [4, 9, 4]
    jobs = jobs_of(
        submit_time=[0, 1, 2],
        run_time=[9] * 3,
        requested_time=[9, 9, 99],
        requested_processors=asked,
        partition=[0] * 3,
    )
    partition = Partition(number=0, time_limit=50)
    cluster = gs.Cluster(processors=4, processors_per_node=4, partitions=[partition])
    for job, reason in ((1, "no nodes that it may use can hold it"), (2, "over a limit of its partition")):
        with refused(f"job {job + 1} was rejected: {reason}"):
            explain_in_queue(jobs, cluster, gs.Slurm(), job)
