"""`gridsched compare --slurm-conf`: a configuration as it is, and with changes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gridsched as gs
from gridsched import results
from gridsched.systems.base import Site
from tests.support.logs import row
from tests.traces.test_sacct import export, line

CONF = """\
SchedulerParameters=bf_interval=30,batch_sched_delay=1
SelectType=select/cons_tres
PriorityType=priority/multifactor
PriorityWeightAssoc=5
NodeName=n[1-4] CPUs=4
NodeName=big CPUs=16
PartitionName=batch Nodes=n[1-4] Default=YES
PartitionName=fat Nodes=big PriorityTier=2
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "ours.conf"
    path.write_text(CONF, encoding="utf-8")
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Export of a busy site; a wide job waits behind a long one."""
    rows = [
        line(
            number,
            User=["ada", "bob", "eve"][number % 3],
            Partition="fat" if number % 12 in (0, 8) else "batch",
            AllocCPUS=[2, 16, 4][number % 3],
            AllocTRES=["cpu=2,node=1", "cpu=16,node=4", "cpu=4,node=1"][number % 3],
            Submit=f"2024-05-01T10:{number:02d}:00",
            Start=f"2024-05-01T10:{number:02d}:30",
            End=f"2024-05-01T10:{number + 9:02d}:30",
            Timelimit=["00:20:00", "01:00:00", "00:30:00"][number % 3],
        )
        for number in range(1, 41)
    ]
    return export(tmp_path, *rows)


def mean_wait(workload: gs.Workload, site: Site, seed: int) -> float:
    """Mean wait in a replay, in which run times are up to a second longer."""
    longer = np.random.default_rng(seed).integers(0, 2, len(workload))
    assert site.cluster is not None
    shaken = dataclasses.replace(workload, run_time=workload.run_time + longer)
    run = gs.simulate(shaken, site.cluster, site.scheduler, seed=seed)
    return float((run["start_time"] - run["submit_time"]).mean())


def test_each_change_alone_and_all_together(
    jobs: Path, conf: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    changes = ("SchedulerParameters=bf_interval=300,bf_window=60", "PriorityWeightJobSize=1000")
    options = [option for change in changes for option in ("--change", change)]
    folder = tmp_path / "out"
    text = printed("compare", jobs, "--slurm-conf", conf, *options, "--out", folder)
    schemes = ["recorded", "ours.conf", "bf_interval=300,bf_window=60", changes[1], "all changes"]
    compared = results.read(folder / "compare.nc")
    assert compared["scheme"].values.tolist() == schemes
    assert compared.attrs["reference"] == "ours.conf"
    workload = gs.clean(gs.read_sacct(jobs, cancelled="wait"))
    names = {"partition": ["batch", "fat"]}
    replayed = {}
    for scheme, given in zip(schemes[1:], [(), changes[:1], changes[1:], changes], strict=True):
        site = gs.read_slurm_site(conf, changes=given, names=names)
        run = gs.simulate(workload, site.cluster, site.scheduler)
        mean = float((run["start_time"] - run["submit_time"]).mean())
        assert float(compared["wait_time_mean"].sel(scheme=scheme)) == pytest.approx(mean)
        assert float(row(text, scheme)[0]) == pytest.approx(mean, abs=0.5)
        replayed[scheme] = np.mean([mean_wait(workload, site, seed) for seed in range(compared.replays)])
    for scheme in schemes[2:]:
        change = float(compared["wait_time_difference"].sel(scheme=scheme))
        assert change == pytest.approx(replayed[scheme] - replayed["ours.conf"])
    assert row(text, "ours.conf")[-1] == "-"
    assert row(text, "slurm.conf")[-1] == "PriorityWeightAssoc"
    assert "4 of 4 cores; 1 of 16 cores" in text
    users = pd.read_csv(folder / "users.csv")
    assert "change_hours recorded" in users
    assert "change_hours ours.conf" not in users
    total = float((compared["user_wait_time_change"].sel(scheme="all changes")).sum())
    difference = compared["wait_time_mean"] - compared["wait_time_mean"].sel(scheme="ours.conf")
    assert total == pytest.approx(float(difference.sel(scheme="all changes")) * len(workload) / 3600)
    assert len(json.loads((folder / "index.json").read_text())["files"]) == 7


def test_preemption_is_a_change_like_any_other(
    jobs: Path, conf: Path, tmp_path: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    everywhere = "PartitionName=batch Nodes=ALL"
    modes = [f"PreemptType=preempt/partition_prio PreemptMode={mode}" for mode in ("REQUEUE", "CANCEL")]
    for mode in modes:
        folder = tmp_path / mode[-6:]
        options = ("--change", everywhere, "--change", mode, "--out", folder)
        text = printed("compare", jobs, "--slurm-conf", conf, *options)
        compared = results.read(folder / "compare.nc")
        schemes = ["recorded", "ours.conf", everywhere, mode, "all changes"]
        assert compared["scheme"].values.tolist() == schemes
        waits = [float(row(text, scheme)[0]) for scheme in schemes]
        assert waits[2] != waits[4]
        assert "killed by failing nodes" not in text
        outcome = {"REQUEUE": "preempted and requeued", "CANCEL": "preempted and cancelled"}[
            mode[-7:].lstrip("=")
        ]
        assert row(text, outcome)[:2] == ["all", "changes"]
    alone = mistake("compare", jobs, "--slurm-conf", conf, "--change", "PreemptMode=REQUEUE")
    assert "PreemptMode is REQUEUE and PreemptType is preempt/none, which contradict each other" in alone
    assert mistake("compare", jobs, "--slurm-conf", conf, "--change", "PreemptMod=REQUEUE").count(
        "PreemptMode"
    )


def test_a_configuration_alone_is_compared_with_the_recorded_waits(
    jobs: Path, conf: Path, printed: Callable[..., str]
) -> None:
    text = printed("compare", jobs, "--slurm-conf", conf)
    assert row(text, "recorded")[-1] == "-"
    assert row(text, "ours.conf")[-1] != "-"
    assert "all changes" not in text


@pytest.mark.parametrize(
    ("changes", "allocated"),
    [
        ({}, "SelectType=select/cons_tres: jobs get processors; the log says nothing of memory; "),
        ({"cons_tres": "linear"}, "SelectType=select/linear: jobs get whole nodes, with all their memory"),
    ],
)
def test_what_jobs_get_follows_from_the_select_type(
    changes: dict[str, str], allocated: str, jobs: Path, conf: Path, printed: Callable[..., str]
) -> None:
    text = conf.read_text()
    for old, new in changes.items():
        text = text.replace(old, new)
    conf.write_text(text, encoding="utf-8")
    found = printed("compare", jobs, "--slurm-conf", conf)
    assert allocated in found
    assert "only processors are allocated" not in found


@pytest.mark.parametrize(
    ("memory", "allocated"),
    [
        ("=4", "jobs get processors; no node has a RealMemory"),
        ("=4 RealMemory=800", "jobs get processors, memory"),
    ],
)
def test_whether_memory_counts_is_said(
    memory: str, allocated: str, tmp_path: Path, printed: Callable[..., str]
) -> None:
    conf = tmp_path / "slurm.conf"
    text = CONF.replace("=4\n", f"{memory}\n")
    conf.write_text(f"{text}SelectTypeParameters=CR_Core_Memory\n", encoding="utf-8")
    rows = [line(number, Partition="batch", AllocTRES="cpu=1,mem=100M,node=1") for number in (1, 2)]
    assert allocated in printed("compare", export(tmp_path, *rows), "--slurm-conf", conf)


def test_policies_run_on_the_nodes_of_the_configuration(
    jobs: Path, conf: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    folder = tmp_path / "out"
    text = printed("compare", jobs, "--slurm-conf", conf, "--policy", "sjbf,conservative", "--out", folder)
    compared = results.read(folder / "compare.nc")
    assert compared["scheme"].values.tolist() == ["recorded", "ours.conf", "sjbf", "conservative"]
    assert compared.attrs["reference"] == "ours.conf"
    workload = gs.clean(gs.read_sacct(jobs, cancelled="wait"))
    site = gs.read_slurm_site(conf, names={"partition": ["batch", "fat"]})
    run = gs.simulate(workload, site.cluster, "conservative")
    mean = float((run["start_time"] - run["submit_time"]).mean())
    assert float(compared["wait_time_mean"].sel(scheme="conservative")) == pytest.approx(mean)
    assert "without Slurm's priorities" in text


def test_the_cluster_of_options_goes_before_that_of_the_file(
    jobs: Path, conf: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    pool = printed("compare", jobs, "--slurm-conf", conf, "--processors", 32)
    assert row(pool, "cluster") == ["32", "processors"]
    nodes = printed("compare", jobs, "--slurm-conf", conf, "--node-type", "2,16")
    assert row(nodes, "cluster")[:5] == ["32", "processors", "on", "2", "nodes:"]
    change = ("--change", "PartitionName=fat MaxTime=1")
    assert "changes nothing" in mistake("compare", jobs, "--slurm-conf", conf, "--processors", 32, *change)
    without = printed("compare", jobs, "--slurm-conf", conf, "--without", "partitions")
    assert row(without, "information used") == ["nodes"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--change PriorityWeightAge=1", "--change: give the configuration too, with --slurm-conf"),
        ("--sacctmgr dump.cfg", "--sacctmgr: give the configuration too"),
        ("--slurm-conf missing.conf", "missing.conf: no such file"),
        ("--slurm-conf {conf} --sacctmgr missing.cfg", "missing.cfg: no such file"),
        ("--slurm-conf {conf} --change Nonsense=1", "change 'Nonsense=1': unknown key Nonsense"),
        (
            "--slurm-conf {conf} --change PriorityWeightAssoc=7",
            "changes nothing: PriorityWeightAssoc is not modelled",
        ),
        ("--slurm-conf {conf} --overrun increments", "slurm cannot schedule this"),
        (
            "--slurm-conf {conf} --change PriorityWeightAge=1 --change PriorityWeightAge=2",
            "the same key as in change 'PriorityWeightAge=1'",
        ),
    ],
)
def test_mistakes_are_one_line(
    options: str, reason: str, jobs: Path, conf: Path, mistake: Callable[..., str]
) -> None:
    assert reason in mistake("compare", jobs, *options.format(conf=conf).split())
