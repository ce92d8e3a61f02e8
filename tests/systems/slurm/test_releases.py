"""Rules of releases: what differs from 22.05, where one job shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.systems.slurm.controller import BACKFILL, MAIN
from tests.oracles import slurm as naive
from tests.support.fields import assert_fields
from tests.systems.slurm.test_conf import written
from tests.systems.slurm.test_naive import controller_of
from tests.systems.slurm.test_requests import CONF, PARTS, Asks, simulated, starts


@pytest.mark.parametrize(
    ("version", "select", "priority", "said"),
    [
        (None, "linear", "basic", "the default of 22.05 (since 23.11 select/cons_tres, priority/multifactor"),
        ("23.02", "linear", "basic", "the default of 23.02"),
        (
            "23.11",
            "cons_tres",
            "multifactor",
            "SelectType=select/cons_tres, PriorityType=priority/multifactor",
        ),
        ("26.05.1", "cons_tres", "multifactor", "23.11; SelectTypeParameters=CR_Core_Memory, the default"),
    ],
)
def test_what_is_not_configured_is_the_default_of_the_release(
    version: str | None, select: str, priority: str, said: str, tmp_path: Path
) -> None:
    conf = written(tmp_path, "NodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL\n")
    site = gs.read_slurm_site(conf, version=version)
    assert_fields(site.scheduler, select_type=select, priority_type=priority)
    assert said in site.assumed
    both = "SelectType=select/linear", "PriorityType=priority/basic"
    assert not gs.read_slurm_site(conf, changes=both, version=version).assumed


def test_what_select_cons_tres_shares_out_by_default_is_said(tmp_path: Path) -> None:
    lines = "SelectType=select/cons_tres\nPriorityType=priority/basic\nNodeName=n1 CPUs=4 RealMemory=9\n"
    for more, said in (("", "SelectTypeParameters=CR_Core_Memory, the default"), ("CR_Core", "")):
        text = f"{lines}{more and f'SelectTypeParameters={more}'}\nPartitionName=p Nodes=ALL\n"
        assert gs.read_slurm_site(written(tmp_path, text)).assumed == said


def test_other_releases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"release of Slurm: found '21\.08'; use one of 22\.05, 23\.02"
    ):
        gs.read_slurm_site(written(tmp_path, "NodeName=n1 CPUs=4\n"), version="21.08")


@pytest.mark.parametrize(("version", "delay"), [("25.05", 90), ("25.11", 5)])
def test_the_delay_of_requeued_jobs_has_an_option_of_its_own(
    version: str, delay: int, tmp_path: Path
) -> None:
    lines = "SchedulerParameters=requeue_delay=5\nAuthInfo=cred_expire=90\nNodeName=n1 CPUs=4\n"
    assert_fields(
        gs.read_slurm_site(written(tmp_path, lines), version=version).scheduler, requeue_delay=delay
    )


@pytest.mark.parametrize(
    ("kind", "exclusive", "left"),
    [
        ("NO", False, ()),
        ("NODE", True, ()),
        ("TOPO", True, ("Exclusive=TOPO",)),
        ("USER", False, ("Exclusive=USER",)),
    ],
)
def test_partitions_have_a_new_key(kind: str, exclusive: bool, left: tuple[str, ...], tmp_path: Path) -> None:
    site = gs.read_slurm_site(
        written(tmp_path, CONF.replace("Nodes=n[1-2]", f"Nodes=n[1-2] Exclusive={kind}"))
    )
    scheduler: Any = site.scheduler
    assert site.not_modelled == left
    assert bool(scheduler.partition_rules) == exclusive


@pytest.mark.parametrize(("version", "start"), [("22.05", -1), ("23.02", 0)])
def test_only_the_first_component_holds_licences(version: str, start: int, tmp_path: Path) -> None:
    jobs = [part._replace(options="-L matlab") for part in PARTS]
    _, _, run = simulated(tmp_path, jobs, version=version)
    assert starts(run) == [start, start]


@pytest.mark.parametrize(("version", "start"), [("22.05", 20), ("23.11", 0)])
def test_nodes_are_whole_where_the_partition_says_so(version: str, start: int, tmp_path: Path) -> None:
    """The second job is tried in a partition whose nodes are in use, and runs in the other one."""
    conf = CONF.replace("Nodes=n[1-2]", "Nodes=n1 OverSubscribe=EXCLUSIVE PriorityTier=2").replace(
        "n[3-4]", "n2"
    )
    jobs = [
        Asks(0, 1, 40),
        Asks(0, 1, 20, "-p a,b", processors=1),
        Asks(0, 1, 10, partition="b", processors=1),
    ]
    _, _, run = simulated(tmp_path, jobs, conf.replace("n[3-4]", "n2"), version=version)
    assert starts(run) == [0, 0, start]


@pytest.mark.parametrize(("version", "plan"), [("22.05", 0), ("24.11", 1101)])
def test_a_job_is_planned_behind_others_that_are_long(version: str, plan: int) -> None:
    """Its nodes are taken until 1101; the two times after which passes look are of plans on other nodes."""
    every, pair = set(range(4)), {0, 1}
    cluster = naive.Cluster(
        nodes=[naive.Node(4, 8, 0)] * 4, partitions=[every, pair, {2}, {3}], tiers=[0] * 4, version=version
    )
    asked = [(0, 4, 100), (1, 2, 1000), (2, 1, 200), (3, 1, 400), (1, 2, 10)]
    jobs = [
        naive.Job(
            submit=0, run=limit, limit=limit, nodes=nodes, cores=4, partition=partition, priority=float(9 - k)
        )
        for k, (partition, nodes, limit) in enumerate(asked)
    ]
    controller = controller_of(jobs, cluster)
    plans: list[list[int]] = []
    controller.watch = lambda told, *_: plans.append(told.tables.jobs["plan"].tolist())
    controller.follow([(1, MAIN), (2, BACKFILL)])
    assert plans[-1] == [0, 101, 101, 101, plan]
