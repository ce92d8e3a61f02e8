"""The files of a site: named once, taken by the commands, checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gridsched.traces._slurm_options import options_of
from tests.support.logs import row
from tests.traces.test_sacct import COLUMNS, export, line

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
Licenses=fluent:2
NodeName=n[1-4] CPUs=4 Weight=2 CoreSpecCount=1
PartitionName=batch Nodes=n[1-4] Default=YES
PartitionName=fat Nodes=n[1-2] PriorityTier=2 LLN=YES
"""
DUMP = """\
Cluster - 'lab':Fairshare=1
Parent - 'root'
Account - 'maths':Fairshare=3
Parent - 'maths'
User - 'ada':DefaultAccount='maths':Fairshare=1
"""
QOS = "Name|Priority|UsageFactor|MaxJobsPU|MaxWall\nnormal|0|1.0||\n"
SSHARE = "Account|User|RawUsage\nroot||90\n maths||90\n  maths|ada|90\n"
GROUPS = "staff:x:50:ada,bob\n"
QUEUE = "JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER\n90|RUNNING|1:00|8|30:00|ada\n91|PENDING|0:00|12|10:00|eve\n"
SDIAG = """\
Main schedule statistics (microseconds):
\tTotal cycles: 9
\tMean cycle:   9
Backfilling stats
\tTotal cycles: 120
\tMax cycle:  18000
\tMean cycle: 2000
\tDepth Mean (try depth): 13
\tQueue length mean: 15
"""
REQUESTS = [
    "sbatch job.sh -L no-option-of-sbatch",
    "sbatch -p batch,fat --ntasks-per-node=2 --parsable job.sh",
    "sbatch --licenses=matlab:1 job.sh",
    "sbatch --exclusive -Cfast -a 0-9%3 job.sh",
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Files in a folder of their own, of 24 jobs of which a quarter requests something each."""
    folder = tmp_path / "files"
    folder.mkdir()
    rows = [
        line(
            number,
            User="eve" if number == 4 else "ada",
            Partition=["batch", "fat", "old"][number % 3 if number < 4 else 0],
            AllocCPUS=[2, 16, 4][number % 3],
            ReqCPUS=[2, 16, 4][number % 3],
            AllocTRES=["cpu=2,node=1", "cpu=16,node=4", "cpu=4,node=1"][number % 3],
            Submit=f"2024-05-01T10:{number:02d}:00",
            Eligible=f"2024-05-01T10:{number:02d}:00",
            Start=f"2024-05-01T10:{number + 1:02d}:00",
            End=f"2024-05-01T10:{number + 11:02d}:00",
        )
        + f"|{'n[3-5]' if number == 2 else 'n[1-4]'}|{REQUESTS[number % 4]}"
        for number in range(1, 25)
    ]
    export(folder, *rows, header=f"{COLUMNS}|NodeList|SubmitLine", name="jobs.txt")
    files = {
        "slurm_conf": CONF,
        "sacctmgr": DUMP,
        "qos": QOS,
        "sshare": SSHARE,
        "sdiag": SDIAG,
        "groups": GROUPS,
    }
    keys = ["accounting: files/jobs.txt", "time_zone: Europe/Rome"]
    for name, text in (files | {"squeue": QUEUE}).items():
        (folder / name).write_text(text, encoding="utf-8")
        keys.append(f"{name}: files/{name}")
    path = tmp_path / "our-site.yaml"
    path.write_text("\n".join(keys), encoding="utf-8")
    return path


def test_the_file_stands_for_the_options(
    site: Path, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    folder = site.parent / "files"
    options = ["--timezone", "Europe/Rome", "--slurm-conf", folder / "slurm_conf"]
    accounts = [
        part for name in ("sacctmgr", "qos", "sshare", "groups") for part in (f"--{name}", folder / name)
    ]
    change = ["--change", "SchedulerParameters=bf_interval=300"]
    whole = printed("compare", folder / "jobs.txt", *options, *accounts, *change)
    assert printed("compare", "--site", site, *change) == whole
    assert "what sshare says was used before the first job, 2024-05-01 10:01:00 CEST" in whole
    assert "SubmitLine" not in whole
    assert row(whole, "slurm_conf")[0].isdigit()
    told = printed("explain", folder / "jobs.txt", "8", *options, "--policy", "conservative")
    assert printed("explain", "8", "--site", site, "--policy", "conservative") == told
    assert row(told, "on")[0].strip(",") in ("n1", "n2", "n3", "n4")


def test_a_job_is_explained_as_the_queue_of_slurm_would(site: Path, printed: Callable[..., str]) -> None:
    text = printed("explain", "8", "--site", site)
    assert row(text, "scheduler") == ["Slurm", "as", "in", "slurm_conf"]
    assert row(text, "started by")[0] == "the"
    assert row(text, "Priority")[0].isdigit()
    assert "ahead of it in its partition then" in text
    assert "Who had its place:" in text


def test_options_go_before_the_file(site: Path, printed: Callable[..., str]) -> None:
    assert "CEST" in printed("explain", "8", "--site", site)
    assert "UTC" in printed("explain", "8", "--site", site, "--timezone", "UTC")
    other = export(site.parent, line(70), name="other.txt")
    assert printed("explain", other, "70", "--site", site).split()[1:5] == ["70", "of", "user", "ada"]


def test_a_forecast_of_the_queue_of_the_site(site: Path, printed: Callable[..., str]) -> None:
    text = printed("forecast", "--site", site, "--futures", 5)
    assert row(text, "cluster")[:4] == ["8", "of", "16", "processors"]
    assert row(text, "91")[:2] == ["eve", "12"]
    assert row(text, "information used")[0] == "nodes"
    assert "without Slurm's priorities, limits and passes; not used: sacctmgr, qos, sshare, sdiag" in text
    past = printed(
        "forecast", site.parent / "files" / "jobs.txt", "--site", site, "--at", "2024-05-01T10:20:00"
    )
    assert row(past, "time")[:2] == ["2024-05-01", "10:20:00"]


def test_partitions_that_only_the_queue_has_keep_their_nodes(site: Path, printed: Callable[..., str]) -> None:
    """Nobody of the history was in `new`, whose node is one of `batch`; slurm.conf has no `other`."""
    folder = site.parent / "files"
    (folder / "slurm_conf").write_text(f"{CONF}PartitionName=new Nodes=n4\n", encoding="utf-8")
    rows = [
        "JOBID|STATE|TIME|CPUS|TIME_LIMIT|USER|PARTITION",
        "90|RUNNING|1:00|4|30:00|ada|new",
        *(f"{91 + k}|PENDING|0:00|4|10:00|eve|{name}" for k, name in enumerate(("new", "fat,new", "other"))),
    ]
    (folder / "squeue").write_text("\n".join(rows), encoding="utf-8")
    text = printed("forecast", "--site", site, "--futures", 5, "--adjust", 0)
    assert [row(text, str(job))[-1] for job in (91, 92, 93)] == ["1740", "0", "0"]
    assert row(text, "repaired: of a partition that there is not, taken as of batch") == ["1"]
    assert row(text, "repaired: may start in several partitions, taken as of the first one") == ["1"]
    assert "one pool" not in text


def test_partitions_on_nodes_of_their_own_are_forecast_by_themselves(
    site: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    folder = site.parent / "files"
    conf = CONF.replace("fat Nodes=n[1-2]", "fat Nodes=n[5-6]").replace("NodeName=n[1-4]", "NodeName=n[1-6]")
    idle = "PartitionName=idle Nodes=n7\nNodeName=n7 CPUs=4\n"
    (folder / "slurm_conf").write_text(conf + idle, encoding="utf-8")
    header, *rows = QUEUE.splitlines()
    names = ["batch", "fat", "fat", "other", "idle"]
    rows += [rows[1].replace("91", number).replace("12", "2") for number in ("92", "93", "94")]
    lines = [f"{header}|PARTITION", *(f"{line}|{name}" for line, name in zip(rows, names, strict=True))]
    (folder / "squeue").write_text("\n".join(lines).replace("|12|", "|8|"), encoding="utf-8")
    text = printed("forecast", "--site", site, "--futures", 5)
    batch, fat = text.split("Partition fat:")
    assert row(batch, "cluster")[:4] == ["8", "of", "16", "processors"]
    assert row(batch, "93")[0] == "eve"  # whose partition nobody knows
    assert row(batch, "left out: in a partition without history") == ["1"]
    assert row(fat, "cluster")[:4] == ["0", "of", "8", "processors"]
    assert {row(fat, job)[0] for job in ("91", "92")} == {"eve"}
    one = printed("forecast", "--site", site, "--futures", 5, "--partition", "fat")
    assert [row(one, job) for job in ("91", "92")] == [row(fat, job) for job in ("91", "92")]
    assert "batch" not in printed("forecast", "--site", site, "--futures", 5, "--job", "92")
    assert "--job 94: is not among those that wait then, 3 jobs" in mistake(
        "forecast", "--site", site, "--job", "94"
    )


def test_the_check_says_what_is_read_and_what_the_rest_touches(
    site: Path, printed: Callable[..., str]
) -> None:
    text = printed("site", "check", site)
    assert printed("site", site) == text
    for name, cells in {
        "accounting": ["24", "jobs"],
        "slurm_conf": ["4", "nodes", "16", "processors;"],
        "sacctmgr": ["2", "accounts", "1", "users"],
        "qos": ["1", "qualities"],
        "sshare": ["usage", "of", "1"],
        "squeue": ["1", "lines", "of", "running"],
        "sdiag": ["120", "backfill", "passes", "0.002", "s"],
        "groups": ["1", "group", "with", "2", "users;"],
        "licence matlab:1 that slurm.conf does not have": ["6", "25.0%"],
        "tasks per node": ["6", "25.0%"],
        "features (--constraint) without the column Constraints": ["6", "25.0%"],
        "slurm.conf: PartitionName lln": ["1", "4.2%"],
        "ran on nodes that slurm.conf does not have": ["1", "4.2%"],
        "partitions that slurm.conf does not have: taken as batch": ["1", "4.2%"],
        "users or accounts that sacctmgr does not have: one share no limits": ["1", "4.2%"],
    }.items():
        assert (
            row(text.replace("share, no", "share no").replace("), without", ") without"), name)[: len(cells)]
            == cells
        ), name
    assert "take 0.154 ms a job" in text
    assert "Not given" not in text
    assert "may touch any job: NodeName corespeccount." in text
    work = sum(10 * [2, 16, 4][number % 3] for number in range(1, 25))
    some = sum(10 * [2, 16, 4][number % 3] for number in range(1, 25) if number % 4 == 1)
    assert row(text, "tasks per node")[2:] == [f"{some / 60:.1f}", f"{some / work:.1%}"]
    for modelled in ("several partitions", "whole nodes", "limits of job arrays", "licences "):
        assert f"\n{modelled}" not in text


def test_requests_beside_delimiters_of_the_export_are_counted(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    rows = [
        f"{line(1)}||sbatch --nice=5 job.sh",
        f"{line(2)}|std|ib|sbatch -C std|ib --nice=5 job.sh",
        f"{line(3)}|std|sbatch -C std job.sh a|b --nice=5",
    ]
    export(tmp_path, *rows, header=f"{COLUMNS}|Constraints|SubmitLine", name="jobs.txt")
    file = tmp_path / "our-site.yaml"
    file.write_text("accounting: jobs.txt", encoding="utf-8")
    assert row(printed("site", "check", file), "nice values")[0] == "2"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("SchedulerParameters=bf_interval=300", "nobody waited in the log"),
        ("PartitionName=batch MaxTime=1", "fewer than two jobs are measured"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_compared_is_said(
    tmp_path: Path, printed: Callable[..., str], change: str, why: str
) -> None:
    """No job waited; each asks for ten minutes, which the change may forbid."""
    rows = [
        line(
            number,
            User="ada",
            Partition="batch",
            Submit=f"2024-05-01T1{number}:00:00",
            Eligible=f"2024-05-01T1{number}:00:00",
            Start=f"2024-05-01T1{number}:00:00",
            End=f"2024-05-01T1{number}:05:00",
        )
        for number in range(5)
    ]
    log = export(tmp_path, *rows)
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF, encoding="utf-8")
    text = printed("compare", log, "--slurm-conf", conf, "--change", change)
    assert f"slurm.conf: not known, since {why}" in text
    assert "nan" not in text


def test_jobs_that_ran_and_that_the_files_reject_are_said(site: Path, printed: Callable[..., str]) -> None:
    """A third of the jobs has 16 processors: four nodes."""
    why = "ran, and would be rejected by these files:"
    assert why not in printed("site", "check", site)
    conf = site.parent / "files" / "slurm_conf"
    conf.write_text(CONF.replace("n[1-4]", "n[1-3]"), encoding="utf-8")
    text = printed("site", "check", site)
    assert row(text, f"{why} no nodes that it may use can hold it")[:2] == ["8", "33.3%"]


def test_limits_that_are_not_enforced_are_said(site: Path, printed: Callable[..., str]) -> None:
    said = []
    for enforced in ("AccountingStorageEnforce=associations\n", "AccountingStorageEnforce=limits\n"):
        (site.parent / "files" / "slurm_conf").write_text(CONF + enforced, encoding="utf-8")
        text = printed("site", "check", site)
        said.append(["no limits" in " ".join(row(text, name)) for name in ("sacctmgr", "qos")])
    assert said == [[True, True], [False, False]]


def test_what_is_not_given_is_said(site: Path, printed: Callable[..., str]) -> None:
    export(site.parent, line(1), name="plain.txt")
    site.write_text("accounting: plain.txt\n", encoding="utf-8")
    assert row(printed("compare", "--site", site), "SubmitLine")[:3] == ["no", "such", "column:"]
    text = printed("site", "check", site)
    for name in (
        "time_zone",
        "slurm_conf",
        "sacctmgr",
        "qos",
        "sshare",
        "squeue",
        "sdiag",
        "groups",
        "SubmitLine",
    ):
        assert row(text, name), name


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("sacctmgr:", "sacctmgrr:", "our-site.yaml: sacctmgrr: unknown key; did you mean sacctmgr?"),
        ("accounting:", "# accounting:", "our-site.yaml: accounting: missing"),
        ("files/qos", "files/qqos", "our-site.yaml: qos: found 'files/qqos'; there is no such file"),
        ("Europe/Rome", "Europe/Room", "time zone 'Europe/Room' is unknown"),
        ("slurm_conf:", "# slurm_conf:", "our-site.yaml: sacctmgr: give slurm_conf too"),
        ("squeue: files/squeue", "squeue: files/qos", "qos: no queue; print it with squeue"),
        ("sdiag: files/sdiag", "sdiag: files/qos", "qos: no backfilling stats"),
        ("accounting: files/jobs.txt", "accounting: files/qos", "files/qos: no column"),
    ],
)
def test_mistakes_name_file_and_key(
    old: str, new: str, reason: str, site: Path, mistake: Callable[..., str]
) -> None:
    site.write_text(site.read_text().replace(old, new), encoding="utf-8")
    assert reason in mistake("site", "check", site)


def test_without_a_site_a_log_is_needed(mistake: Callable[..., str]) -> None:
    for command in (["compare"], ["forecast"]):
        assert "name a TRACE, or the files of a site with --site" in mistake(*command)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("sbatch -N 2 --mem=4G job.sh -p x", {"N": "2", "mem": "4G"}),
        (
            "sbatch --parsable --hold -p=a,b --licenses a:1 job.sh",
            {"parsable": "", "hold": "", "p": "a,b", "licenses": "a:1"},
        ),
        ("srun --pty bash -p x", {"pty": ""}),
        (
            "srun --label --exclusive --constraint -p a,b bash",
            {"label": "", "exclusive": "", "constraint": "", "p": "a,b"},
        ),
        ("salloc -I --x11 --no-shell -u -N 2", {"I": "", "x11": "", "no-shell": "", "u": "", "N": "2"}),
        ("sbatch -C std\x1fib -p a,b job.sh", {"C": "std\x1fib", "p": "a,b"}),
        ("srun", {}),
        ("", {}),
    ],
)
def test_options_of_command_lines(command: str, options: dict[str, str]) -> None:
    assert options_of(command) == options
