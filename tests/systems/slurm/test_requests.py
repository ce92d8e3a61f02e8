"""What jobs of an export request: partitions, licences, whole nodes, shorter limits, arrays, admission."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import xarray as xr

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.traces import read_accounting
from tests.systems.slurm.test_conf import written
from tests.traces.test_sacct import COLUMNS, export, line

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=5,bf_resolution=1
Licenses=matlab:1
NodeName=n[1-4] CPUs=4
PartitionName=a Nodes=n[1-2] Default=YES
PartitionName=b Nodes=n[3-4]
"""


class Asks(NamedTuple):
    """A job: minute of its submission, nodes of four processors each, minutes, and its command line."""

    submit: int
    nodes: int
    minutes: int
    options: str = ""
    partition: str = "a"
    limit: int = 0
    account: str = "maths"
    user: str = "ada"
    identifier: str = ""
    processors: int = 0


def simulated(
    folder: Path,
    jobs: list[Asks],
    conf: str = CONF,
    *,
    groups: Path | None = None,
    version: str | None = None,
) -> tuple[gs.Site, gs.Workload, xr.Dataset]:
    """A run of an export of some jobs on a site."""
    rows = []
    for number, job in enumerate(jobs, 1):
        submit, processors = f"2024-05-01T10:{job.submit:02d}:00", job.processors or 4 * job.nodes
        end = job.submit + job.minutes
        row = line(
            number,
            JobID=job.identifier or number,
            JobIDRaw=number,
            Account=job.account,
            User=job.user,
            Partition=job.partition,
            AllocCPUS=processors,
            ReqCPUS=processors,
            AllocTRES=f"cpu={processors},node={job.nodes}",
            Submit=submit,
            Eligible=submit,
            Start=submit,
            End=f"2024-05-01T{10 + end // 60}:{end % 60:02d}:00",
            ElapsedRaw=60 * job.minutes,
            Timelimit=f"00:{job.limit or job.minutes:02d}:00",
        )
        rows.append(f"{row}|sbatch {job.options} job.sh")
    log = read_accounting(export(folder, *rows, header=f"{COLUMNS}|SubmitLine"))
    conf_file = written(folder, conf)
    site = gs.read_slurm_site(conf_file, groups=groups, names=log.names, version=version)
    workload = gs.clean(log.workload)
    run = gs.simulate(workload, site.cluster, site.scheduler)
    gs.verify(run)
    return site, workload, run


def starts(run: xr.Dataset) -> list[float]:
    """Whole minutes from the first submission to each start; -1 for jobs that never started."""
    start = run["start_time"].values
    return [int(each) // 60 if each >= 0 else -1 for each in start.tolist()]


def nodes_of(run: xr.Dataset, job: int) -> set[str]:
    """Names of the nodes of a job."""
    pieces = run["segment_job"].values[run["piece_segment"].values] == job
    return set(run["node_name"].values[run["piece_node"].values[pieces]].tolist())


PARTS = [
    Asks(0, 1, 10, identifier="9+0"),
    Asks(0, 2, 10, partition="b", identifier="9+1"),
]
LONG, WIDE = Asks(0, 2, 30), Asks(0, 2, 30, partition="b")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        # in the first of its partitions in which it can start; alone, it waits for its own
        ([LONG, Asks(1, 2, 5, "-p a,b")], [0, 1]),
        ([LONG, Asks(1, 2, 5, "-p b,a")], [0, 1]),
        ([LONG, Asks(1, 2, 5)], [0, 30]),
        ([LONG, WIDE, Asks(1, 2, 5, "--partition=a,b")], [0, 0, 30]),
        # its plan in one partition does not keep it from the other
        ([LONG, Asks(0, 2, 10, partition="b"), Asks(1, 2, 5, "-p a,b")], [0, 0, 10]),
        # a list without the partition in which it ran, and one of which no other is known
        ([LONG, Asks(1, 2, 5, "-p b,c")], [0, 30]),
        ([LONG, Asks(1, 2, 5, "-p a,c")], [0, 30]),
        # licences: there is one
        ([Asks(0, 1, 10, "-L matlab"), Asks(0, 1, 10, "--licenses=matlab:1"), Asks(0, 1, 10)], [0, 10, 0]),
        ([Asks(0, 1, 10, "-L matlab:2"), Asks(0, 1, 10, "-L other:5")], [-1, 0]),
        # whole nodes: of two processors each, two jobs share a node, unless one wants it for itself
        ([Asks(0, 1, 10, processors=2) for _ in range(4)], [0, 0, 0, 0]),
        ([Asks(0, 1, 10, "--exclusive", processors=2) for _ in range(3)], [0, 0, 10]),
        ([Asks(0, 1, 10, "--exclusive=user", processors=2) for _ in range(3)], [0, 0, 0]),
        # a short job passes by a wide one before its plan; a long one only with a shorter limit
        ([Asks(0, 1, 20), Asks(1, 2, 5), Asks(2, 1, 5, limit=40)], [0, 20, 25]),
        ([Asks(0, 1, 20), Asks(1, 2, 5), Asks(2, 1, 5, "--time-min=10", limit=40)], [0, 20, 2]),
        # one task of the array at a time
        ([Asks(0, 1, 10, "-a 1-2%1", identifier=f"7_{task}") for task in (1, 2)], [0, 10]),
        ([Asks(0, 1, 10, "-a 1-2%2", identifier=f"7_{task}") for task in (1, 2)], [0, 0]),
        # components start together, each in its partition, as soon as all can, and others before their plans
        (PARTS, [0, 0]),
        ([WIDE, *PARTS], [0, 30, 30]),
        ([WIDE, *PARTS, Asks(2, 2, 5)], [0, 30, 30, 2]),
        ([WIDE, *PARTS, Asks(2, 2, 40)], [0, 30, 30, 40]),
        ([WIDE, LONG._replace(minutes=10), *PARTS], [0, 0, 30, 30]),
        # one that is rejected, or never fits beside another, keeps them all waiting
        ([PARTS[0], PARTS[1]._replace(nodes=3), Asks(0, 2, 5)], [-1, -1, 0]),
        ([PARTS[0], PARTS[1]._replace(partition="a"), Asks(1, 2, 5, partition="b")], [-1, -1, 1]),
    ],
)
def test_jobs_start_as_they_may(jobs: list[Asks], expected: list[int], tmp_path: Path) -> None:
    _, _, run = simulated(tmp_path, jobs)
    assert starts(run) == expected


@pytest.mark.parametrize(
    ("keys", "rejected"),
    [
        ("AllowAccounts=maths", [1]),
        ("DenyAccounts=maths", [0]),
        ("AllowAccounts=maths DenyAccounts=maths", [1]),
        ("AllowQos=urgent", [0, 1]),
        ("DenyQos=urgent", []),
        ("AllowAccounts=ALL AllowQos=ALL", []),
        ("MinNodes=2", [0]),
        ("MaxNodes=1", [1]),
    ],
)
def test_partitions_reject_jobs_and_say_why(keys: str, rejected: list[int], tmp_path: Path) -> None:
    jobs = [Asks(0, 1, 5), Asks(0, 2, 5, account="physics")]
    site, _, run = simulated(tmp_path, jobs, CONF.replace("Nodes=n[1-2]", f"Nodes=n[1-2] {keys}"))
    assert not site.not_modelled
    assert [job for job, start in enumerate(starts(run)) if start < 0] == rejected
    reason = "over a limit of its partition" if "Nodes" in keys else "not admitted to its partition"
    assert run.attrs.get(f"rejected: {reason}", 0) == len(rejected)


GROUPS = "staff:x:50:ada,bob\nops:x:51:root\nguests:x:52:\n"
USERS = "ada:x:1:50:Ada:/home/ada:/bin/sh\neve:x:2:51:Eve:/home/eve:/bin/sh\n"


@pytest.mark.parametrize(
    ("allowed", "groups", "rejected", "left"),
    [
        ("staff", GROUPS + USERS, ["eve", "zoe"], ()),
        # by the primary group; root may run everywhere
        ("ops", GROUPS + USERS, ["ada", "zoe"], ()),
        ("guests", GROUPS + USERS, ["ada", "eve", "zoe"], ()),
        ("staff,ops", GROUPS + USERS, ["zoe"], ()),
        ("ALL", GROUPS + USERS, [], ()),
        ("ALL", None, [], ()),
        # what is not known is named
        ("ops", GROUPS, ["ada", "eve", "zoe"], ("primary groups of users",)),
        ("ops,lost", GROUPS + USERS, ["ada", "zoe"], ("group lost of AllowGroups",)),
        ("staff", None, [], ("PartitionName allowgroups",)),
    ],
)
def test_a_partition_admits_the_users_of_its_groups(
    allowed: str, groups: str | None, rejected: list[str], left: tuple[str, ...], tmp_path: Path
) -> None:
    file = None if groups is None else written(tmp_path, groups, "groups.txt")
    users = ["ada", "eve", "root", "zoe"]
    jobs = [Asks(0, 1, 5, user=user) for user in users]
    conf = CONF.replace("Nodes=n[1-2]", f"Nodes=n[1-4] AllowGroups={allowed}")
    site, _, run = simulated(tmp_path, jobs, conf, groups=file)
    assert [user for user, start in zip(users, starts(run), strict=True) if start < 0] == rejected
    assert run.attrs.get("rejected: not admitted to its partition", 0) == len(rejected)
    assert [text.startswith(known) for text, known in zip(site.not_modelled, left, strict=True)] == [
        True
    ] * len(left)


def test_a_job_runs_in_the_partition_that_admits_its_user(tmp_path: Path) -> None:
    file = written(tmp_path, GROUPS + USERS, "groups.txt")
    conf = CONF.replace("Nodes=n[1-2]", "Nodes=n[1-2] AllowGroups=staff")
    jobs = [Asks(0, 1, 5, "-p a,b", user="ada"), Asks(0, 1, 5, "-p a,b", user="eve")]
    _, _, run = simulated(tmp_path, jobs, conf, groups=file)
    assert [nodes_of(run, job) for job in range(2)] == [{"n1"}, {"n3"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("staff:x:50:ada\nops:51", "groups.txt:2: neither a group nor a user"),
        ("ada:x:1:50:Ada:/home/ada:/bin/sh", "groups.txt: no group"),
    ],
)
def test_mistakes_in_groups_name_the_line(text: str, reason: str, tmp_path: Path) -> None:
    conf = CONF.replace("Nodes=n[1-2]", "Nodes=n[1-2] AllowGroups=staff")
    with pytest.raises(ConfigurationError, match=reason):
        simulated(tmp_path, [Asks(0, 1, 5)], conf, groups=written(tmp_path, text, "groups.txt"))


@pytest.mark.parametrize(
    ("enforced", "options", "nodes", "start"),
    [
        ("ANY", "-p a,b", 1, 0),
        ("YES", "-p a,b", 1, 0),
        ("ALL", "-p a,b", 1, -1),
        # a partition is too small
        ("ANY", "-p b,c", 2, 0),
        ("ALL", "-p b,c", 2, -1),
        # all of them admit it
        ("ALL", "-p b,d", 2, 0),
    ],
)
def test_a_job_that_one_partition_rejects_may_run_in_another(
    enforced: str, options: str, nodes: int, start: int, tmp_path: Path
) -> None:
    conf = CONF.replace("Nodes=n[1-2]", "Nodes=n[1-2] DenyAccounts=maths")
    more = f"EnforcePartLimits={enforced}\nPartitionName=c Nodes=n1\nPartitionName=d Nodes=n[2-3]\n"
    jobs = [Asks(0, nodes, 5, options, partition=options[3]), Asks(0, 1, 5)]
    _, _, run = simulated(tmp_path, jobs, f"{conf}{more}")
    assert starts(run) == [start, -1]
    if start == 0:
        assert nodes_of(run, 0) <= {"n3", "n4"}


def test_a_job_of_several_partitions_in_the_column_may_run_in_each(tmp_path: Path) -> None:
    jobs = [Asks(0, 2, 10, partition="a"), Asks(1, 1, 5, partition="a,b"), Asks(2, 1, 5, partition="b,a")]
    site, workload, run = simulated(tmp_path, jobs)
    assert site.cluster is not None
    numbers = {each.label: each.number for each in site.cluster.partitions}
    assert workload.partition.tolist() == [numbers["a"], numbers["a"], numbers["b"]]
    assert starts(run) == [0, 1, 2]
    assert nodes_of(run, 1) | nodes_of(run, 2) == {"n3", "n4"}


def test_partitions_whose_jobs_have_nodes_for_themselves(tmp_path: Path) -> None:
    conf = CONF.replace("PartitionName=b", "PartitionName=b OverSubscribe=EXCLUSIVE")
    jobs = [Asks(0, 1, 10, partition=name, processors=1) for name in "aaabbb"]
    _, _, run = simulated(tmp_path, jobs, conf)
    assert starts(run) == [0, 0, 0, 0, 0, 10]


def test_what_is_read_of_command_lines(tmp_path: Path) -> None:
    jobs = [Asks(0, 1, 5, "-p a,b --time-min 1:30:00 -L x:2,y"), Asks(0, 1, 5, identifier="8+1")]
    site, workload, _ = simulated(tmp_path, jobs)
    found = {name: column.tolist() for name, column in workload.extra.items()}
    assert found == {
        "requested_nodes": [1, 1],
        "partitions": [1, -1],
        "licences": [1, -1],
        "least_time": [5400, -1],
        "component_of": [-1, 8],
    }
    assert site.not_modelled == ("licence x:2,y",)
