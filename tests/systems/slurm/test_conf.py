"""Readers of slurm.conf, of scontrol show config, of host lists and of the accounting."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.engine.job_lifecycle import Fate
from gridsched.simulation import simulate
from gridsched.systems.slurm.accounts import USE_PARENT, minutes, read_accounting, read_usage
from gridsched.systems.slurm.conf import SlurmNode, read_configuration
from gridsched.systems.slurm.hostlist import expand_hosts
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.systems.slurm.site import read_slurm_site
from gridsched.verification import verify
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.systems.slurm.recordings import RECORDINGS

CONF = """
# a cluster
ClusterName=small
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=2880,bf_continue,defer,bf_one_resv_per_job,\\
    sched_min_interval=2000000,batch_sched_delay=5   # goes on
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightTRES=CPU=100,GRES/gpu=500
PriorityDecayHalfLife=14-0
PriorityMaxAge=1-12
PriorityFlags=NO_FAIR_TREE,INCR_ONLY
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PreemptParameters=youngest_first,reclaim_licenses
PreemptExemptTime=00:01:30
AccountingStorageEnforce=limits,qos
NodeName=DEFAULT Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000
NodeName=n[01-03] Weight=5
NodeName=gpu1 CPUs=32 RealMemory=128000 Gres=gpu:a100:4
PartitionName=DEFAULT MaxTime=1-0
PartitionName=batch Nodes=ALL Default=YES
PartitionName=gpu Nodes=gpu1 PriorityTier=5 PriorityJobFactor=10 MaxTime=2:00:00 OverSubscribe=EXCLUSIVE \\
    QOS=gpu
"""


def written(folder: Path, text: str, name: str = "slurm.conf") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_modelled_becomes_parameters_and_the_rest_is_named(tmp_path: Path) -> None:
    conf = read_configuration(written(tmp_path, CONF))
    scheduler = Slurm.from_configuration(conf)
    assert_fields(
        scheduler,
        bf_interval=60,
        bf_window=2880,
        bf_max_job_test=500,
        batch_sched_delay=5,
        sched_min_interval=2_000_000,
        bf_one_resv_per_job=True,
        memory_is_consumed=True,
        fair_tree=False,
        enforce_limits=True,
        priority_weight_age=1000,
        priority_weight_tres={"cpu": 100, "gres/gpu": 500},
        priority_max_age=36 * 3600,
        priority_decay_half_life=14 * 86400,
    )
    assert [node.name for node in conf.nodes] == ["n01", "n02", "n03", "gpu1"]
    assert conf.nodes[0] == SlurmNode(name="n01", cores=16, memory=64000, weight=5, line=1)
    assert conf.nodes[3] == SlurmNode(name="gpu1", cores=32, memory=128000, gpus=4, line=2)
    batch, gpu = conf.partitions
    assert (batch.default, len(batch.nodes), batch.time_limit) == (True, 4, 86400)
    assert_fields(gpu, tier=5, job_factor=10, time_limit=7200, exclusive=True, quality="gpu")
    assert set(conf.not_modelled) == {
        "SchedulerParameters=defer",
        "PriorityFlags=INCR_ONLY",
        "PreemptParameters=reclaim_licenses",
    }


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("CryptoType=crypto/munge\nFastSchedule=1", ()),
        ("PartitionName=p Nodes=ALL AllowGroups=ALL LLN=NO MaxCPUsPerNode=UNLIMITED", ()),
        (
            "PartitionName=p Nodes=ALL MaxCPUsPerNode=4 LLN=YES",
            ("PartitionName maxcpuspernode", "PartitionName lln"),
        ),
        ("SchedulerParameters=bf_continue,bf_max_time=60,bf_yield_sleep=1", ()),
        ("LicenseParameters=x", ("LicenseParameters",)),
        ("EnforcePartLimits=ALL", ()),
        ("PriorityFlags=FAIR_TREE", ()),
        ("PriorityFlags=DEPTH_OBLIVIOUS,FAIR_TREE", ("PriorityFlags=DEPTH_OBLIVIOUS",)),
        ("SchedulerParameters=bf_max_job_test=0", ("SchedulerParameters=bf_max_job_test=0",)),
        ("Prolog=/a\nProlog=/b", ("Prolog",)),
        ("Epilog[0] = /a\nEpilog[1] = /b", ("Epilog",)),
        ("PartitionName=p LLN=FALSE MaxCPUsPerNode=-1 ExclusiveUser=0", ()),
        ("Cgroup Support Configuration:\nAllowedRAMSpace = 100.0%\n\nSlurmctld(primary) at c is UP", ()),
        (
            "SchedulerParameters=bf_windw=5,kill_invalid_depend,bf_one_resv_per_job,sched_min_interval=9",
            (
                "SchedulerParameters=bf_windw (unknown; did you mean bf_window?)",
                "SchedulerParameters=kill_invalid_depend (unknown)",
            ),
        ),
    ],
)
def test_only_what_changes_something_is_named(lines: str, left: tuple[str, ...], tmp_path: Path) -> None:
    read = read_configuration(written(tmp_path, f"NodeName=n1 CPUs=1\n{lines}"))
    assert set(read.not_modelled) == set(left)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("PriorityWeightAeg=5", ["slurm.conf:3", "PriorityWeightAeg", "PriorityWeightAge"]),
        ("EnforcePartLimits=SOME", ["slurm.conf:3", "EnforcePartLimits", "all, any"]),
        ("bf_windw=5", ["slurm.conf:3", "bf_windw", "did you mean SchedulerParameters=bf_window?"]),
        ("default_queue_deph=5", ["SchedulerParameters=default_queue_depth"]),
        ("SchedulerParameters=bf_window=many", ["slurm.conf:3", "bf_window", "many"]),
        ("SchedulerParameters=bf_interval=0", ["slurm.conf:3", "bf_interval"]),
        ("ClusterName=other", ["slurm.conf:3", "ClusterName", "slurm.conf:2"]),
        ("SchedulerType=sched/wiki", ["slurm.conf:3", "sched/wiki", "sched/backfill"]),
        ("SelectType=select/linear\nSelectTypeParameters=CR_Core", ["slurm.conf:4", "select/linear"]),
        ("PriorityMaxAge=soon", ["slurm.conf:3", "PriorityMaxAge", "soon"]),
        ("NodeName=n[1-", ["slurm.conf:3", "NodeName"]),
        ("NodeName=n[3-1]", ["slurm.conf:3", "3-1"]),
        ("NodeName=n1 CPUs=two", ["slurm.conf:3", "cpus", "two"]),
        ("NodeName=n1 Cpu=2", ["slurm.conf:3", "cpu"]),
        ("PartitionName=p Nodes=n1", ["slurm.conf:3", "n1"]),
        ("PartitionName=p Tier=1", ["slurm.conf:3", "tier"]),
        ("PartitionName=p PriorityTeir=1", ["slurm.conf:3", "priorityteir", "did you mean prioritytier?"]),
        ("NodeName=n1 RealMemry=2", ["realmemry", "did you mean realmemory?"]),
        ("PartitionName=p\nPartitionName=p", ["partition p"]),
        ("NodeName=n[1-3] CPUs=1\nNodeName=n2 CPUs=4", ["slurm.conf:4", "node n2 is given twice"]),
        ("PartitionName=p Default=YES\nPartitionName=q Default=YES", ["p and q"]),
        ("PartitionName=p Default=maybe", ["slurm.conf:3", "Default is 'maybe'", "yes or no"]),
        ("PartitionName=p MaxTime=-5", ["slurm.conf:3", "MaxTime", "-5"]),
        ("PartitionName=p GraceTime=5m", ["slurm.conf:3", "GraceTime", "5m"]),
        ("PriorityFavorSmall=some", ["slurm.conf:3", "PriorityFavorSmall is 'some'"]),
        ("PriorityMaxAge=-2", ["slurm.conf:3", "PriorityMaxAge", "-2"]),
        ("PriorityCalcPeriod=-1", ["slurm.conf:3", "PriorityCalcPeriod", "-1"]),
        ("AccountingStorageEnforce=limit", ["slurm.conf:3", "AccountingStorageEnforce has limit"]),
        ("AccountingStorageEnforce=0", ["slurm.conf:3", "AccountingStorageEnforce has 0"]),
        ("SchedulerParameters=bf_interval=-1", ["slurm.conf:3", "bf_interval is -1", "not modelled"]),
        ("SchedulerParameters=sched_interval=-1", ["slurm.conf:3", "sched_interval is -1", "not modelled"]),
    ],
)
def test_what_makes_no_sense_is_one_line_with_file_line_and_key(
    tmp_path: Path, line: str, named: list[str]
) -> None:
    path = written(tmp_path, f"\nClusterName=small\n{line}\n")
    with refused(*named, one_line=True):
        read_configuration(path)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("0.500000", "1-0-0", ["qos.txt:3", "UsageFactor", "1-0-0"]),
        ("500|", "9" * 30 + "|", ["qos.txt:3", "whole number"]),
        ("node=8", "node=nan", ["qos.txt:3", "GrpTRES", "node=nan"]),
        ("cpu=64", "cpu=1e400", ["qos.txt:3", "MaxTRES", "cpu=1e400"]),
        ("02:00:00", "9" * 30, ["qos.txt:3", "MaxWall", "no time"]),
    ],
)
def test_numbers_of_qualities_that_make_no_sense(
    tmp_path: Path, old: str, new: str, named: list[str]
) -> None:
    dump, changed = written(tmp_path, DUMP, "dump.cfg"), QUALITIES.replace(old, new)
    with refused(*named):
        read_accounting(dump, written(tmp_path, changed, "qos.txt"))


@pytest.mark.parametrize(
    "lines",
    [
        'SchedulerParameters="bf_interval=60,bf_window=2880"\nPriorityWeightAge="7"\n',
        "PriorityWeightAge=7 SchedulerParameters=bf_interval=60,bf_window=2880\n",
        "SchedulerParameters = bf_interval=60,\\\nbf_window=2880\nPriorityWeightAge = 7\n",
        "SchedulerParameters=bf_interval=60, bf_window=2880\r\n  PriorityWeightAge=\\\r\n7\r\n",
    ],
    ids=["quotes", "one line", "goes on", "blanks"],
)
def test_ways_to_write_values(lines: str, tmp_path: Path) -> None:
    conf = read_configuration(written(tmp_path, f"{lines}NodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL\n"))
    assert_fields(Slurm.from_configuration(conf), bf_interval=60, bf_window=2880, priority_weight_age=7)


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("PriorityFavorSmall=1", {"priority_favor_small": True}),
        ("PriorityFlags=NO_FAIR_TREE,FAIR_TREE", {"fair_tree": False}),
        ("PriorityFlags=DEPTH_OBLIVIOUS,FAIR_TREE", {"fair_tree": False}),
        ("PriorityMaxAge=UNLIMITED", {"priority_max_age": 2**32 - 60}),
        ("PriorityDecayHalfLife=-1", {"priority_decay_half_life": 2**32 - 60}),
        (
            "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPreemptExemptTime=UNLIMITED",
            {"preempt_exempt_time": 0},
        ),
        ("AccountingStorageEnforce=associations,qos", {"enforce_limits": False}),
        ("AccountingStorageEnforce=2", {"enforce_limits": True}),
        ("AccountingStorageEnforce=safe, qos", {"enforce_limits": True, "safe_limits": True}),
        ("SelectType=select/cons_tres", {"memory_is_consumed": True}),
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core", {"memory_is_consumed": False}),
        ("SelectType=select/linear", {"memory_is_consumed": False}),
        ("SchedulerParameters=bf_max_job_test=0", {"bf_max_job_test": 500}),
    ],
)
def test_values_mean_what_they_mean_to_slurmctld(
    lines: str, known: dict[str, object], tmp_path: Path
) -> None:
    conf = read_configuration(written(tmp_path, f"{lines}\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL\n"))
    assert_fields(Slurm.from_configuration(conf), **known)


def test_a_partition_without_a_limit(tmp_path: Path) -> None:
    text = "NodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL MaxTime=-1 MaxNodes=-1 Default=1\n"
    (partition,) = read_configuration(written(tmp_path, text)).partitions
    assert_fields(partition, time_limit=None, most_nodes=None, default=True)


def test_a_word_before_a_key_is_not_dropped(tmp_path: Path) -> None:
    with refused("slurm.conf:1", "unknown key Also PriorityWeightAge"):
        read_configuration(written(tmp_path, "Also PriorityWeightAge=7\nNodeName=n1 CPUs=4\n"))


def test_another_file_is_not_taken_for_a_configuration(tmp_path: Path) -> None:
    with refused("log.swf:1", "no Key=value", "give slurm.conf"):
        read_configuration(written(tmp_path, "; MaxProcs: 8\n1 0 5 60 1\n", "log.swf"))
    with refused("empty.conf: no Key=value"):
        read_configuration(written(tmp_path, "# nothing\n", "empty.conf"))


def test_a_line_without_a_value_is_not_passed_over(tmp_path: Path) -> None:
    with refused("slurm.conf:2", "'PriorityWeightAge 5' is no Key=value"):
        read_configuration(written(tmp_path, "ClusterName=a\nPriorityWeightAge 5\n"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with refused("none.conf"):
        read_configuration(tmp_path / "none.conf")


def test_a_running_configuration_says_the_same_as_the_file_it_came_from() -> None:
    folder = RECORDINGS / "w3"
    if not folder.exists():
        pytest.skip("no recording w3 in ../shared/slurm")
    shown = read_configuration(folder / "scontrol_config.txt")
    file = read_configuration(folder / "slurm.conf")
    assert shown.parameters == file.parameters
    assert not shown.not_modelled
    assert not shown.nodes


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[01-03]", ["n01", "n02", "n03"]),
        ("a,b[1,3-4]c", ["a", "b1c", "b3c", "b4c"]),
        ("r[1-2]n[08-09]", ["r1n08", "r1n09", "r2n08", "r2n09"]),
        ("", []),
    ],
)
def test_host_lists(text: str, hosts: list[str]) -> None:
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5), ("90:00", 90), ("1:30:00", 90), ("1-0", 1440), ("1-12:30", 2190), ("0:01", 1)],
)
def test_times(text: str, expected: int) -> None:
    assert minutes(text, "here") == expected


DUMP = """# a comment
Cluster - 'small':Fairshare=1:QOS='normal':GrpTRES=cpu=1000
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics':Organization='o':Fairshare=60:GrpTRES=cpu=128,mem=1T
Parent - 'physics'
User - 'ann':DefaultAccount='physics':Fairshare=parent:MaxJobs=4:GrpTRESMins=cpu=1000
"""

QUALITIES = """Name|Priority|UsageFactor|GrpTRES|MaxJobsPU|MaxTRES|MaxWall|Flags|GrpTRESRunMins|GrpWall
normal|0|1.000000|||||||
short|500|0.500000|node=8|2|cpu=64|02:00:00|DenyOnLimit,NoDecay|gres/gpu=90,billing=8|600
"""


def test_accounts_users_shares_and_limits(tmp_path: Path) -> None:
    dump = written(tmp_path, DUMP, "dump.cfg")
    accounting = read_accounting(dump, written(tmp_path, QUALITIES, "qos.txt"))
    by_name = {(each.account, each.user): each for each in accounting.associations}
    assert list(by_name) == [("root", ""), ("root", "root"), ("physics", ""), ("physics", "ann")]
    assert by_name["physics", ""].shares == 60
    assert by_name["physics", ""].limits.running == {
        ("group", "processors"): 128,
        ("group", "memory"): 1024 * 1024,
    }
    assert by_name["physics", "ann"].shares == USE_PARENT
    assert by_name["physics", "ann"].limits.running == {
        ("user", "jobs"): 4,
        ("group", "used processors"): 1000,
    }
    short = accounting.qualities["short"]
    assert (short.priority, short.usage_factor) == (500, 0.5)
    assert short.limits.running == {
        ("group", "nodes"): 8,
        ("user", "jobs"): 2,
        ("group", "running gpus"): 90,
    }
    assert short.limits.job == {"processors": 64, "wall": 7200}
    assert (short.decays, accounting.qualities["normal"].decays) == (False, True)
    assert accounting.not_modelled == ("limits of the whole cluster", "GrpTRESRunMins=billing", "GrpWall")


def test_values_with_colons_and_several_associations_of_a_user(tmp_path: Path) -> None:
    dump = DUMP.replace("GrpTRES=cpu=128,mem=1T", "GrpTRES=cpu=128,gres/gpu:tesla=8,mem=1P:MaxJobs=5")
    accounting = read_accounting(written(tmp_path, dump, "dump.cfg"))
    physics = next(each for each in accounting.associations if each.account == "physics" and not each.user)
    assert physics.limits.running == {
        ("group", "processors"): 128,
        ("group", "memory"): 1024**3,
        ("user", "jobs"): 5,
    }
    assert "GrpTRES=gres/gpu:tesla" in accounting.not_modelled
    table = "Account|User|RawUsage\nphysics||1100\nphysics|ann|1000\nphysics|ann|100\n"
    used = read_usage(written(tmp_path, table, "sshare.txt"), accounting)
    assert used.usage == {("physics", "ann"): 1100.0}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Nonsense\n", ["dump.cfg:1", "Nonsense"]),
        ("Parent - 'physics'\n", ["dump.cfg:1", "physics"]),
        ("Account - 'a':Fairshare=lots\n", ["dump.cfg:1", "lots"]),
        ("Account - 'a':GrpTRES=cpu=few\n", ["dump.cfg:1", "cpu=few"]),
    ],
)
def test_a_broken_dump_is_one_line(tmp_path: Path, text: str, named: list[str]) -> None:
    with refused(*named):
        read_accounting(written(tmp_path, text, "dump.cfg"))


@pytest.mark.parametrize(
    "states",
    [
        "NodeName=n4 State=DRAIN",
        'NodeName=n4\nDownNodes=n[4-5] Reason="a fan"',
        "NodeName=n4\nDownNodes=n4 State=FAIL",
    ],
)
def test_states_of_nodes_and_sizes_of_partitions(states: str, tmp_path: Path) -> None:
    text = f"""\
NodeName=DEFAULT CPUs=4
NodeName=n[1-3]
NodeName=n[5-9] State=FUTURE
{states}
PartitionName=all Nodes=n[1-9] Default=YES MaxNodes=2
"""
    path = written(tmp_path, text)
    conf = read_configuration(path)
    assert [(node.name, node.out) for node in conf.nodes] == [
        *((f"n{k}", False) for k in (1, 2, 3)),
        ("n4", True),
    ]
    assert_fields(conf.partitions[0], nodes=("n1", "n2", "n3", "n4"), most_nodes=2)
    site = read_slurm_site(path)
    assert site.cluster is not None
    jobs = jobs_of(
        submit_time=[0] * 3,
        run_time=[100] * 3,
        requested_processors=[12, 8, 8],
        requested_nodes=[3, 2, 2],
    )
    run = simulate(jobs, site.cluster, site.scheduler)
    verify(run)
    # the first one asks for too many nodes; of three nodes two jobs of two run one after the other
    assert run["fate"].values[0] == Fate.REJECTED
    starts = run["start_time"].values[1:]
    assert abs(int(starts[0]) - int(starts[1])) >= 100


@pytest.mark.parametrize(
    ("weights", "found", "left"),
    [
        ("CPU=1.0,Mem=0.5G,GRES/gpu=2", {"cpu": 1.0, "mem": 0.5 / 1024, "gres/gpu": 2.0}, ()),
        ("mem=2M,Node=.5,GRES/gpu:a100=4", {"mem": 2.0, "node": 0.5}, ("TRESBillingWeights GRES/gpu:a100",)),
    ],
)
def test_billing_weights(
    weights: str, found: dict[str, float], left: tuple[str, ...], tmp_path: Path
) -> None:
    conf = f"NodeName=n1 CPUs=1\nPartitionName=a Nodes=n1 TRESBillingWeights={weights}\n"
    read = read_configuration(written(tmp_path, conf + "PriorityFlags=MAX_TRES\n"))
    assert dict(read.partitions[0].billing) == pytest.approx(found)
    assert (read.not_modelled, read.parameters["max_tres"]) == (left, True)
    with refused("is no weight; give it as CPU=1.0"):
        read_configuration(written(tmp_path, conf.replace(weights, "CPU=much")))
