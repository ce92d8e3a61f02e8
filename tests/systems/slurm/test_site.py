"""A site of slurm.conf and its changes, and the limits of those who have accounts there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched.systems.base import Site
from gridsched.systems.slurm.accounts import Accounting, Association, Limits, Quality
from gridsched.systems.slurm.limits import limits_of_jobs
from gridsched.systems.slurm.scheduler import Slurm
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.systems.slurm.test_conf import CONF, written
from tests.systems.slurm.test_scheduler import NODES, mixed

DUMP = """\
Cluster - 'c':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='p':Fairshare=30:GrpTRES=cpu=48
Account - 'biology':Description='b':Fairshare=10:MaxJobs=2
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=2
Parent - 'biology'
User - 'bob':DefaultAccount='biology':Fairshare=1
User - 'eve':DefaultAccount='biology':Fairshare=1:MaxJobs=5
"""
QOS = "Name|Priority|UsageFactor|MaxJobsPU|MaxWall\nnormal|0|1.0||\nurgent|100|2.0|1|60\n"
NAMES = {"group": ["biology", "physics"], "user": ["eve", "ada", "bob"], "queue": ["urgent", "normal"]}


def site(folder: Path, *changes: str) -> Site:
    return gs.read_slurm_site(written(folder, CONF), changes=changes)


def slurm(given: Site) -> Slurm:
    assert isinstance(given.scheduler, Slurm)
    return given.scheduler


def test_a_site_has_the_nodes_and_partitions_of_its_file(tmp_path: Path) -> None:
    names = {"partition": ["gpu", "other"]}
    found = gs.read_slurm_site(written(tmp_path, CONF), names=names)
    assert found.cluster is not None
    assert found.cluster.node_names == ["n01", "n02", "n03", "gpu1"]
    assert found.cluster.processors == 3 * 16 + 32
    assert [(kind.memory, kind.gpus) for kind in found.cluster.nodes] == [(64000, 0), (128000, 4)]
    batch, gpu = found.cluster.partitions
    assert (batch.name, gpu.name, gpu.number, gpu.priority) == ("batch", "gpu", 0, 5)
    assert batch.number not in (0, 1)
    assert (batch.time_limit, gpu.time_limit, gpu.nodes) == (86400, 7200, ("gpu1",))
    assert slurm(found).partition_factors == {batch.number: 1, 0: 10}
    assert "PreemptParameters=reclaim_licenses" in found.not_modelled


USAGE = """\
Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare
root|||0.000000|900||1.000000|
 physics||30|0.75|0|0.0|0.0|
  physics|ada|2|1.0|0|0.0|0.0|1.0
 biology||10|0.25|900|1.0|1.0|
  biology|bob|1|0.5|800|1.0|1.0|0.3
  biology|eve|1|0.5|100|1.0|1.0|0.3
"""


def test_what_was_used_before_decides_who_comes_first(tmp_path: Path) -> None:
    files = {"accounts": DUMP, "usage": USAGE}
    paths = {kind: tmp_path / kind for kind in files}
    for kind, text in files.items():
        paths[kind].write_text(text)
    conf = written(tmp_path, CONF)
    names = {kind: NAMES[kind] for kind in ("group", "user")}
    found = gs.read_slurm_site(conf, names=names, accounts=paths["accounts"], usage=paths["usage"])
    accounting = slurm(found).accounting
    assert accounting is not None
    assert accounting.usage == {("1", "1"): 0.0, ("0", "2"): 800.0, ("0", "0"): 100.0}
    # of two users of one account the one who used less is before the other, who was submitted first
    users = np.array([2, 0, 2, 0])
    jobs = jobs_of(
        submit_time=range(4),
        run_time=[600] * 4,
        requested_time=[600] * 4,
        requested_processors=[8] * 4,
        user=users,
        group=[0] * 4,
    )
    scheduler = Slurm(accounting=accounting, priority_weight_fairshare=1000, priority_calc_period=100000)
    start = gs.simulate(jobs, 8, scheduler)["start_time"].to_numpy()
    assert users[np.argsort(start)].tolist() == [0, 0, 2, 2]
    with refused("give also the accounts"):
        gs.read_slurm_site(conf, usage=paths["usage"])
    for text, named in (
        (USAGE.replace("|bob|", "|zoe|"), "usage:6: user zoe of account biology is not in the dump"),
        (USAGE.replace("RawUsage", "Usage"), "usage:2: no Account, User and RawUsage"),
        (USAGE.replace("|800|", "|many|"), "usage:6: RawUsage: 'many' is no whole number"),
    ):
        paths["usage"].write_text(text)
        with refused(named):
            gs.read_slurm_site(conf, names=names, accounts=paths["accounts"], usage=paths["usage"])


def test_a_site_without_nodes_has_no_cluster(tmp_path: Path) -> None:
    told = written(tmp_path, "SchedulerType           = sched/builtin\nPreemptMode = OFF\n", "config.txt")
    found = gs.read_slurm_site(told)
    assert (found.cluster, slurm(found).scheduler_type) == (None, "builtin")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            ["schedulerparameters = bf_window=4000,bf_max_job_test=9"],
            {"bf_window": 4000, "bf_max_job_test": 9},
        ),
        # an old name
        (
            ["SchedulerParameters=max_job_bf=7", "SchedulerParameters=bf_interval=9"],
            {"bf_max_job_test": 7, "bf_interval": 9},
        ),
        (["PriorityWeightAge=7"], {"priority_weight_age": 7}),
        (["PriorityWeightQOS=3"], {"priority_weight_qos": 3}),
        (
            ["PriorityWeightAge=7 PriorityMaxAge = 2-0"],
            {"priority_weight_age": 7, "priority_max_age": 2 * 86400},
        ),
    ],
)
def test_a_change_is_of_one_key(tmp_path: Path, changes: list[str], expected: dict[str, Any]) -> None:
    assert slurm(site(tmp_path, *changes)) == replace(slurm(site(tmp_path)), **expected)


def test_a_change_of_partitions_and_of_what_is_shared_out(tmp_path: Path) -> None:
    changed = site(tmp_path, "PartitionName=gpu MaxTime=1-0 PriorityTier=2").cluster
    assert changed is not None
    assert [(each.time_limit, each.priority) for each in changed.partitions] == [(86400, 1), (86400, 2)]
    # whether memory is shared out says whether nodes have any
    without = site(tmp_path, "SelectTypeParameters=CR_Core").cluster
    assert without is not None
    assert {kind.memory for kind in without.nodes} == {None}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["PriorityWeightAgee=1"], "change 'PriorityWeightAgee=1': unknown key PriorityWeightAgee; did you"),
        (["bf_window=60"], "bf_window is an option of SchedulerParameters; write SchedulerParameters=bf_win"),
        (["SchedulerParameters=bf_windo=60"], "unknown option bf_windo; did you mean bf_window?"),
        (["SchedulerParameters=bf_window=long"], "bf_window is 'long'; give a whole number"),
        (["PriorityWeightAge"], "change 'PriorityWeightAge': give it as Key=value"),
        (["PriorityWeightAge="], "give it as Key=value"),
        (["SchedulerParameters=bf_window=1", "SchedulerParameters=bf_window=2"], "the same key as in change"),
        (["PriorityWeightAge=1", "priorityweightage=2"], "the same key as in change 'PriorityWeightAge=1'"),
        (["PriorityWeightAge=1 PriorityMaxAge=5", "PriorityMaxAge=2-0"], "PriorityMaxAge is the same key"),
        (["SchedulerParameters=bf_window=1,bf_window=2"], "bf_window is the same key"),
        (["PartitionName=gpu MaxTime=1", "PartitionName=gpu MaxTime=2"], "the same key as in change"),
        (["PartitionName=long MaxTime=1"], "the file has no partition long"),
        (["PartitionName=gpu"], "say what of it, such as PartitionName=gpu MaxTime=2-0"),
        (["PartitionName=gpu MaxTme=1"], "unknown key maxtme of a partition"),
        (["NodeName=n01 CPUs=3"], "nodes are not changed one by one"),
        (["DownNodes=n01 State=DOWN"], "nodes are not changed one by one"),
        (["SelectType=select/linear", "SelectTypeParameters=CR_Core"], "shares out CR_CORE, but SelectType"),
    ],
)
def test_changes_that_are_mistakes(tmp_path: Path, changes: Sequence[str], reason: str) -> None:
    with refused(reason, one_line=True):
        site(tmp_path, *changes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("SchedulerParameters=bf_interval=60", "bf_interval: the configuration says so already"),
        ("PartitionName=batch MaxTime=24:00:00", "MaxTime: the configuration says so already"),
        ("SchedulerParameters=bf_max_time=5", "bf_max_time is without effect on starts here"),
        ("FirstJobId=2", "FirstJobId is without effect on starts here"),
        ("PartitionName=batch MaxCPUsPerNode=2", "MaxCPUsPerNode is not modelled"),
        ("PartitionName=batch State=DOWN", "State is not modelled"),
        ("PartitionName=batch OverSubscribe=FORCE:4", "what OverSubscribe says is not modelled"),
        ("PartitionName=gpu QOS=GPU", "QOS: the configuration says so already"),
        (
            "SchedulerParameters=bf_busy_nodes,bf_licenses,bf_interval=60",
            "bf_busy_nodes, bf_licenses are not modelled; bf_interval: the configuration says so already",
        ),
    ],
)
def test_a_change_without_effect_is_refused_with_its_reason(tmp_path: Path, change: str, reason: str) -> None:
    changed = site(tmp_path, change)
    assert changed.unchanged == reason
    with refused(f"changed changes nothing: {reason}"):
        gs.what_if(mixed(3), {"now": site(tmp_path), "changed": changed})


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ("OverSubscribe=FORCE:4", "OverSubscribe=NO"),
        ("AllowGroups=hep", "AllowGroups=bio"),
        ("TRESBillingWeights=license/a=1", "TRESBillingWeights=license/a=2"),
    ],
)
def test_another_value_that_is_not_modelled_is_not_said_already(
    tmp_path: Path, now: str, change: str
) -> None:
    conf = written(tmp_path, CONF.replace("PartitionName=batch", f"PartitionName=batch {now}"))
    changed = gs.read_slurm_site(conf, changes=[f"PartitionName=batch {change}"])
    assert changed.unchanged == f"what {change.partition('=')[0]} says is not modelled"


def test_a_change_with_effect_has_no_such_reason(tmp_path: Path) -> None:
    for change in ("SchedulerParameters=bf_interval=61,bf_busy_nodes", "PartitionName=batch MaxTime=1"):
        assert not site(tmp_path, change).unchanged


def test_sites_that_cannot_be_compared(tmp_path: Path) -> None:
    none = {"now": Site(cluster=None, scheduler=Slurm())}
    for sites, reason in ((none, "has no nodes"), ({}, "no site")):
        with refused(reason):
            gs.what_if(mixed(3), sites)


def accounts(folder: Path) -> Accounting:
    text = CONF.replace("SelectTypeParameters=CR_Core_Memory", "SelectTypeParameters=CR_Core")
    found = gs.read_slurm_site(
        written(folder, text),
        accounts=written(folder, DUMP, "dump.cfg"),
        qualities=written(folder, QOS, "qos.txt"),
        names=NAMES,
    )
    accounting = slurm(found).accounting
    assert accounting is not None
    return accounting


def test_accounts_have_the_numbers_of_the_log(tmp_path: Path) -> None:
    read = accounts(tmp_path)
    physics, biology, eve, ada, bob = "1", "0", "0", "1", "2"
    shares = {(physics, ""): 30, (biology, ""): 10, (physics, ada): 2, (biology, bob): 1, (biology, eve): 1}
    assert shares.items() <= {(each.account, each.user): each.shares for each in read.associations}.items()
    assert {name: each.priority for name, each in read.qualities.items()} == {"0": 100, "1": 0}


def test_a_partition_without_nodes_is_refused(tmp_path: Path) -> None:
    conf = CONF.replace("PartitionName=batch Nodes=ALL", "PartitionName=batch")
    with refused("partition batch has no nodes; leave it out of the file"):
        gs.read_slurm_site(written(tmp_path, conf))


def test_a_quality_of_a_partition_that_is_not_given_is_named(tmp_path: Path) -> None:
    """The limits of the quality gpu of the partition gpu would hold."""
    left = "QOS=gpu of partition gpu, which --qos does not have"
    conf, dump = written(tmp_path, CONF), written(tmp_path, DUMP, "dump.cfg")
    for text, missing in ((QOS, True), (f"{QOS}gpu|0|1.0||\n", False)):
        qualities = written(tmp_path, text, "qos.txt")
        found = gs.read_slurm_site(conf, accounts=dump, qualities=qualities, names=NAMES)
        assert (left in found.not_modelled) == missing
    assert left in gs.read_slurm_site(conf).not_modelled
    conf = written(tmp_path, CONF.replace("limits,qos", "associations"))
    assert left not in gs.read_slurm_site(conf).not_modelled


def test_names_of_qualities_of_service_are_compared_without_case(tmp_path: Path) -> None:
    conf = CONF.replace("QOS=gpu", "QOS=GPU AllowQos=Normal DenyQos=URGENT")
    assert conf != CONF
    found = gs.read_slurm_site(
        written(tmp_path, conf),
        accounts=written(tmp_path, DUMP, "dump.cfg"),
        qualities=written(tmp_path, f"{QOS}gpu|0|1.0||\n", "qos.txt"),
        names=NAMES | {"partition": ["gpu"]},
    )
    scheduler = slurm(found)
    assert scheduler.partition_rules is not None
    assert scheduler.partition_qualities is not None
    assert_fields(scheduler.partition_rules[0], qualities={"1"}, no_qualities={"0"})
    assert scheduler.accounting is not None
    assert scheduler.partition_qualities[0] in scheduler.accounting.qualities
    assert not [text for text in found.not_modelled if text.startswith("QOS")]


def test_limits_of_submission_are_named(tmp_path: Path) -> None:
    text = DUMP.replace("MaxJobs=2", "MaxSubmitJobs=2")
    accounts = written(tmp_path, text, "dump.cfg")
    found = gs.read_slurm_site(written(tmp_path, CONF), accounts=accounts)
    assert "MaxSubmitJobs" in found.not_modelled


def test_qualities_need_accounts(tmp_path: Path) -> None:
    with refused("give also the accounts"):
        gs.read_slurm_site(written(tmp_path, CONF), qualities=written(tmp_path, QOS, "qos.txt"))


def test_the_nearest_limit_counts_and_that_of_a_quality_of_service_first(tmp_path: Path) -> None:
    physics, biology, eve, ada, bob, urgent, normal = "1", "0", "0", "1", "2", "0", "1"
    owners = [
        (physics, ada, normal),
        (biology, bob, normal),
        (biology, eve, normal),
        (biology, bob, urgent),
        (biology, eve, urgent),
        ("9", "9", normal),
    ]
    found = limits_of_jobs(accounts(tmp_path), owners)

    limits = [[found.rows[row] for row in rows if row >= 0] for rows in found.limited.tolist()]
    assert limits == [[{"processors": 48}], [{"jobs": 2}], [{"jobs": 5}], [{"jobs": 1}], [{"jobs": 1}], []]
    assert set(found.limited[3]) != set(found.limited[4])
    assert found.own["wall"].tolist() == [np.inf, np.inf, np.inf, 3600, 3600, np.inf]


def test_jobs_keep_the_limits_of_their_accounts() -> None:
    """Random jobs and limits: at no start has a group more than it may, counted anew."""
    accounting = Accounting(
        associations=(
            Association(account="root"),
            Association(account="0", parent="root", limits=Limits(running={("group", "processors"): 40})),
            Association(account="1", parent="root", limits=Limits(running={("user", "jobs"): 2})),
            Association(account="2", parent="1", limits=Limits(running={("group", "gpus"): 3})),
        ),
        qualities={
            "0": Quality(name="0", limits=Limits(running={("user", "nodes"): 3}, job={"wall": 9000})),
        },
    )
    jobs = mixed(200, seed=3)
    cluster = gs.Cluster(nodes=NODES)
    free = gs.simulate(jobs, cluster, Slurm(accounting=accounting))
    run = gs.simulate(jobs, cluster, Slurm(accounting=accounting, enforce_limits=True))
    gs.verify(run)
    assert (run["start_time"] != free["start_time"]).any()
    start, end = run["start_time"].values, run["end_time"].values
    over = jobs.requested_time > 9000
    assert (start[over & (jobs.queue == 0)] < 0).all()
    # a node that several jobs of a group share counts once
    has = np.zeros((len(jobs), run.sizes["node"]), bool)
    has[run["segment_job"].values[run["piece_segment"].values], run["piece_node"].values] = True
    assert jobs.requested_gpus is not None
    gpus = np.maximum(jobs.requested_gpus, 0)
    for now in start[start >= 0]:
        running = (start >= 0) & (start <= now) & (now < end)
        assert jobs.processors[running & (jobs.group == 0)].sum() <= 40
        assert gpus[running & (jobs.group == 2)].sum() <= 3
        for user in range(10):
            mine = running & (jobs.user == user)
            assert has[mine & (jobs.queue == 0)].any(axis=0).sum() <= 3
            for account in (1, 2):
                assert (mine & (jobs.group == account)).sum() <= 2


def budget(
    *rules: tuple[str, str, int], qos: tuple[str, int] | None = None, decays: bool = True
) -> Accounting:
    """Account 0 with limits of minutes; quality of service 0 with one more."""
    limits = Limits(running={("group", f"{way} {what}"): most for way, what, most in rules})
    own = Limits() if qos is None else Limits(running={("group", qos[0]): qos[1]})
    return Accounting(
        associations=(
            Association(account="root"),
            Association(account="0", parent="root", limits=limits),
            Association(account="0", user="0", parent="0"),
        ),
        qualities={"0": Quality(name="0", limits=own, decays=decays)},
    )


def hours(count: int) -> gs.Workload:
    """Jobs of one hour and one processor that come at once, and ask for two hours."""
    columns = {"run_time": 3600, "requested_time": 7200, "requested_processors": 1}
    zeros = dict.fromkeys(("submit_time", "user", "group", "queue"), 0)
    return jobs_of(**{name: [value] * count for name, value in {**columns, **zeros}.items()})


NEVER: dict[str, Any] = {"priority_decay_half_life": 0}
SAFE: dict[str, Any] = {"safe_limits": True}
THREE = budget(("used", "processors", 180))
HALF_DAY: dict[str, Any] = {"safe_limits": True, "priority_decay_half_life": 43200}
TWO_OF_QOS = ("used processors", 120)


@pytest.mark.parametrize(
    ("count", "accounting", "parameters", "least", "most"),
    [
        # Running jobs: two at once, and a third when the time that is left of them is short enough: after an
        # hour, at their end
        (4, budget(("running", "processors", 240)), {}, [0, 0, 1, 1], [0, 0, 1, 1]),
        (2, budget(qos=("running nodes", 100)), {}, [-1, -1], [-1, -1]),
        # With safe limits a job starts if it can run to its limit, else it runs until the minutes are used up
        (3, THREE, {**SAFE, **NEVER}, [0, 1, -1], [0, 1, -1]),
        (4, THREE, NEVER, [0, 0, 0, 0], [0, 0, 0, 0]),
        # After two hours 120 of 180 minutes are used; 60 of them have decayed after a day
        (3, THREE, {**SAFE, "priority_decay_half_life": 86400}, [0, 1, 24], [0, 1, 26]),
        # Second 0 is on a Thursday
        (3, THREE, {**SAFE, **NEVER, "priority_usage_reset_period": "weekly"}, [0, 1, 72], [0, 1, 72]),
        # Nothing counts
        (3, THREE, {**SAFE, **NEVER, "priority_type": "basic"}, [0, 1, 2], [0, 1, 2]),
        # What was used before counts, and what does not decay
        (1, replace(THREE, usage={("0", "0"): 7200.0}), HALF_DAY, [11], [13]),
        (2, budget(qos=TWO_OF_QOS, decays=False), HALF_DAY, [0, -1], [0, -1]),
        (2, budget(qos=TWO_OF_QOS), HALF_DAY, [0, 41], [0, math.inf]),
    ],
)
def test_minutes_that_are_used_up_hold_jobs_until_they_have_decayed(
    count: int, accounting: Accounting, parameters: dict[str, Any], least: list[int], most: list[float]
) -> None:
    """Starts [h] of jobs of one hour that ask for two, on plenty of processors; never is -1."""
    jobs = hours(count)
    run = gs.simulate(jobs, 64, Slurm(accounting=accounting, enforce_limits=True, **parameters))
    gs.verify(run)
    starts = np.where(run["start_time"] < 0, -1, run["start_time"] // 3600)
    assert (np.array(least) <= starts).all(), starts
    assert (starts <= np.array(most)).all(), starts
    unsafe = accounting is THREE and "safe_limits" not in parameters
    assert run.attrs.get("killed: minutes used up", 0) == (4 if unsafe else 0)
